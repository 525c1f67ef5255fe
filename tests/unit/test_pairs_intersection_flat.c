// Distance and depth of intersections with triangles, boxes and cylinders, against an independent reference;
// see pairs.h.
#include "pairs.h"

int main(void) {
    return pairs_run_with(US_GEOM_INTERSECTION, US_GEOM_TRIANGLE, US_GEOM_CYLINDER, PAIRS_POSES(10000));
}
