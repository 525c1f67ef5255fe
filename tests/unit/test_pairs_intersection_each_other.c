// Distance and depth of intersections with polyhedra and each other, against an independent reference; see
// pairs.h.
#include "pairs.h"

int main(void) {
    return pairs_run_with(US_GEOM_INTERSECTION, US_GEOM_CONVEX, US_GEOM_INTERSECTION, PAIRS_POSES(10000));
}
