// What a robot's instruments add to the values that it publishes.
//
// Noise is no state: each value's depends on the seeds, the robot, the kind of value, its index and the
// number of the sample, so that a run that is repeated publishes the same. White noise is one draw. Noise
// with a memory T, of samples P apart, is the sum of the last draws w with weights that decay,
//
//     x_n = c (w_n + a w_(n-1) + a^2 w_(n-2) + ...),   a = exp(-P / T),
//
// cut where a^k is below TAIL; c makes its variance 1. Topics of one rate that are of one moment have the
// same noise of the same value: joint_states and tf agree.
#include <math.h>

#include "proxy/proxy__sample.h"

enum { MAX_DRAW = 512, MAX_INDEX = 1024 };
static const double TAIL = 0.01;

static double draw(const usi_sampling *w, us_noise_kind kind, int32_t index, double memory) {
    static const uint64_t noise_stream = UINT64_C(3) << 32;  // beside those of radio links and inertial units
    const usi_robot *r = w->r;
    const double rate = w->outlet < r->n_topic ? r->model->topic[w->outlet].rate : 0;
    const double period = rate > 0 ? 1 / rate : w->p->step;
    const int64_t n = llround(1e-9 * (double)w->of_time / period);
    const uint64_t stream = noise_stream +
                            ((uint64_t)r->number * US_NOISE_COUNT + (uint64_t)kind) * MAX_INDEX +
                            (uint64_t)(index % MAX_INDEX);
    const double a = memory > 0 ? exp(-period / memory) : 0;
    double sum = 0, weight = 1, variance = 0;
    for (int64_t k = 0; k < MAX_DRAW && weight > TAIL; k++) {
        sum += weight * us_random_normal(w->p->seed, stream, (uint64_t)(n - k));
        variance += weight * weight;
        weight *= a;
    }
    return sum / sqrt(variance);
}

double usi_noise_of(const usi_sampling *w, us_noise_kind kind, int32_t index, double x) {
    const us_noise *n = &w->r->model->network->noise[kind];
    if (n->deviation > 0) x += n->deviation * draw(w, kind, index, n->memory);
    if (n->step > 0) x = n->step * nearbyint(x / n->step);
    return x;
}

us_quat usi_noise_turn(const usi_sampling *w, int32_t index, us_quat q) {
    const us_noise *n = &w->r->model->network->noise[US_NOISE_IMU_ORIENTATION];
    if (n->deviation == 0 || w->is_truth) return q;
    double half[3];
    for (int i = 0; i < 3; i++)
        half[i] = 0.5 * n->deviation * draw(w, US_NOISE_IMU_ORIENTATION, 3 * index + i, n->memory);
    return us_quat_normalize(us_quat_mul(q, (us_quat){1, half[0], half[1], half[2]}));
}
