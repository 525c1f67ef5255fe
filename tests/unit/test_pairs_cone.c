// Distance, depth and contact points of cones and all convex kinds after them, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_CONE, US_GEOM_CONE, PAIRS_POSES(10000)); }
