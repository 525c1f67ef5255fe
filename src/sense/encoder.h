// What encoders say: a joint's coordinate, right or wrong.
//
// An encoder is a row of the model (usi_encoder). It takes no samples: what it says follows from the state at
// any moment, so that a step has nothing to do for it. Its fault lies in the state, and drives close their
// loops over what it says.
#ifndef USI_SENSE_ENCODER_H
#define USI_SENSE_ENCODER_H

#include "model/model.h"

// What is wrong with an encoder. All 0: nothing.
typedef struct usi_encoder_state {
    double held;       // rad, m: what it says while it is stuck or lost
    double offset;     // rad, m: at the tick `since`
    double drift;      // rad/s, m/s: by which the offset grows
    int64_t since;     // tick
    int64_t is_stuck;  // it sees nothing move
} usi_encoder_state;

typedef struct usi_encoder_reading {
    double q, v;
} usi_encoder_reading;

// By how much it is off at a time of `tick` steps.
static inline double usi_encoder_offset(const usi_encoder_state *s, double step, int64_t tick) {
    return s->drift == 0 ? s->offset : s->offset + s->drift * (step * (double)(tick - s->since));
}

static inline usi_encoder_reading usi_encoder_read(const usi_encoder *k, const usi_encoder_state *s,
                                                   const double *q, const double *v, double step,
                                                   int64_t tick) {
    if (s->is_stuck || k->is_lost) return (usi_encoder_reading){s->held, 0};
    return (usi_encoder_reading){q[k->q] + usi_encoder_offset(s, step, tick), v[k->v] + s->drift};
}

#endif
