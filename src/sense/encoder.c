// Encoders: position and velocity of joints. One behind a break has lost its cable: its last reading stays,
// and nothing moves.
#include "sense/sense.h"

void usi_sense_encoders(const usi_sensor *k, int32_t n, const usi_sense_input *in, usi_sensor_state *s,
                        double *reading) {
    for (int32_t i = 0; i < n; i++) {
        double *out = reading + k[i].reading;
        if (s[i].drift != 0) s[i].offset[0] += s[i].drift * in->time;
        if (s[i].is_stuck || k[i].is_lost) {
            out[1] = 0;
            continue;
        }
        out[0] = in->q[k[i].q] + s[i].offset[0];
        out[1] = in->v[k[i].v] + s[i].drift;
    }
}
