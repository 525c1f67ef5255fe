// The errors of three gyroscopes or accelerometers. See triad.h.
#include "instrument/triad.h"

// Numbers of the unit: three biases, three scales, six angles, three changes by temperature.
enum { OWN_BIAS, OWN_SCALE = 3, OWN_MISALIGNMENT = 6, OWN_WARMTH = 12 };
// Numbers of a sample.
enum { DRAW_NOISE, DRAW_DENSITY = 3, DRAW_MARKOV = 6, DRAW_WALK = 9 };

enum { STATE_MARKOV, STATE_WALK = 3, STATE_OWN = 6 };

void usi_triad_start(const us_sensor_view *view, int32_t own, double *state) {
    for (int32_t i = 0; i < USI_TRIAD_OWN; i++)
        state[STATE_OWN + i] = usi_unit_normal(view, own + i);
}

static double own(const usi_triad *t, int which, int i) {
    return t->parameter[which] * t->state[STATE_OWN + i];
}

// A deviation of 0 draws nothing.
static double draw(const us_sensor_view *view, const usi_triad *t, int which, int32_t i) {
    return t->parameter[which] > 0 ? us_sensor_normal(view, t->draw + i) : 0;
}

us_vec3 usi_triad_read(const us_sensor_view *view, const usi_triad *t, us_vec3 truth) {
    const double *p = t->parameter, x[3] = {truth.x, truth.y, truth.z},
                 added[3] = {t->added.x, t->added.y, t->added.z};
    const double instability = usi_noise_markov_deviation(p[USI_TRIAD_INSTABILITY]);
    double y[3];
    for (int32_t i = 0; i < 3; i++) {
        const int32_t j = (i + 1) % 3, k = (i + 2) % 3;
        y[i] = (1 + own(t, USI_TRIAD_SCALE, OWN_SCALE + i)) * x[i] +
               own(t, USI_TRIAD_MISALIGNMENT, OWN_MISALIGNMENT + 2 * i) * x[j] +
               own(t, USI_TRIAD_MISALIGNMENT, OWN_MISALIGNMENT + 2 * i + 1) * x[k] + added[i] +
               own(t, USI_TRIAD_BIAS, OWN_BIAS + i) + own(t, USI_TRIAD_WARMTH, OWN_WARMTH + i) * t->warmth;
        y[i] += usi_noise_markov(instability, p[USI_TRIAD_INSTABILITY_TIME], view->interval,
                                 draw(view, t, USI_TRIAD_INSTABILITY, DRAW_MARKOV + i),
                                 &t->state[STATE_MARKOV + i]);
        y[i] += usi_noise_walk(p[USI_TRIAD_WALK], view->interval,
                               draw(view, t, USI_TRIAD_WALK, DRAW_WALK + i), &t->state[STATE_WALK + i]);
        y[i] += usi_noise_white(p[USI_TRIAD_DENSITY], view->interval,
                                draw(view, t, USI_TRIAD_DENSITY, DRAW_DENSITY + i));
        y[i] += p[USI_TRIAD_NOISE] * draw(view, t, USI_TRIAD_NOISE, DRAW_NOISE + i);
        y[i] = usi_noise_round(p[USI_TRIAD_QUANTUM], usi_noise_limit(p[USI_TRIAD_LIMIT], y[i]));
    }
    return us_vec3_make(y[0], y[1], y[2]);
}
