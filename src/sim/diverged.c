// What a step that fails says: tick, stage, and the joint where it began.
#include <math.h>
#include <stdio.h>

#include "sim/sim.h"

// A joint whose inertia is not positive, or else the first velocity that is not finite, or else the one that
// changed most.
static int32_t find_culprit(const us_sim *s) {
    const us_model *m = s->model;
    const us_dyn *d = s->dyn;
    int32_t fastest = 0;
    for (int32_t r = 0; r < d->n_run; r++) {
        for (int32_t i = d->run[r].first; i < d->run[r].end; i++) {
            if (!(d->pivot[i] > 0)) return i;
        }
    }
    for (int32_t i = 0; i < m->n_node; i++) {
        if (!isfinite(s->next.v[i])) return i;
        if (fabs(s->next.v[i] - s->now.v[i]) > fabs(s->next.v[fastest] - s->now.v[fastest])) fastest = i;
    }
    return fastest;
}

us_status usi_diverged(us_sim *s, const char *stage, const char *remedy) {
    char name[100] = "", element[128] = "";
    us_model_velocity_name(s->model, find_culprit(s), name, sizeof name);
    if (name[0]) snprintf(element, sizeof element, "joint \"%s\"", name);
    us_place place = {NULL, 0, 0, element};
    return us_error_set(
        &s->error, US_ERR_DIVERGED, &place,
        remedy ? remedy
               : "make the step smaller, or look for forces and speeds beyond what the robot can have",
        "tick %lld, stage %s: the motion diverged", (long long)s->now.tick[0], stage);
}
