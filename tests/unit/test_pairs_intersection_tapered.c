// Distance and depth of intersections with cones, ellipsoids and tetrahedra, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) {
    return pairs_run_with(US_GEOM_INTERSECTION, US_GEOM_CONE, US_GEOM_TETRAHEDRON, PAIRS_POSES(10000));
}
