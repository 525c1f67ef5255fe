// Distance, depth and contact points of triangles and all convex kinds after them, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_TRIANGLE, US_GEOM_TRIANGLE, PAIRS_POSES(10000)); }
