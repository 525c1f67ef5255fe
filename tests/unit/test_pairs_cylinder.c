// Distance, depth and contact points of cylinders and all convex kinds after them, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_CYLINDER, US_GEOM_CYLINDER, PAIRS_POSES(10000)); }
