// Distance, depth and contact points of boxes and all convex kinds after them, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_BOX, US_GEOM_BOX, PAIRS_POSES(10000)); }
