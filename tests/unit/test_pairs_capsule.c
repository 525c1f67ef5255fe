// Distance, depth and contact points of capsules and all convex kinds after them, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_CAPSULE, US_GEOM_CAPSULE, PAIRS_POSES(10000)); }
