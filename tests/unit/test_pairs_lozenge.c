// Distance, depth and contact points of lozenges and all convex kinds after them, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_LOZENGE, US_GEOM_LOZENGE, PAIRS_POSES(10000)); }
