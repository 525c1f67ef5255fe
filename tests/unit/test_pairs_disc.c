// Distance, depth and contact points of discs and all convex kinds after them, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_DISC, US_GEOM_DISC, PAIRS_POSES(10000)); }
