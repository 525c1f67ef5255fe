// An encoder: position and velocity of a joint. One behind a break has lost its cable: its last reading
// stays, and nothing moves.
#include "sense/sense.h"

void usi_sense_encoder(const usi_sensor *k, const usi_sense_input *in, usi_sensor_state *s, double *reading) {
    s->offset[0] += s->drift * in->time;
    if (!reading) return;
    if (s->is_stuck || k->is_lost) {
        reading[1] = 0;
        return;
    }
    reading[0] = in->q[k->q] + s->offset[0];
    reading[1] = in->v[k->v] + s->drift;
}
