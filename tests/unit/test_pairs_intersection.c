// Distance and depth of intersections and all convex kinds, against an independent reference; see pairs.h. A distance of one with curved parts takes
// about a millisecond, so there are fewer poses than elsewhere.
#include "pairs.h"

int main(void) { return pairs_run(US_GEOM_INTERSECTION, US_GEOM_INTERSECTION, PAIRS_POSES(150)); }
