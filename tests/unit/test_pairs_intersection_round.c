// Distance and depth of intersections with spheres, capsules, lozenges and discs, against an independent
// reference; see pairs.h.
#include "pairs.h"

int main(void) {
    return pairs_run_with(US_GEOM_INTERSECTION, US_GEOM_SPHERE, US_GEOM_DISC, PAIRS_POSES(10000));
}
