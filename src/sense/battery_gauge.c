// A battery's gauge: what is left in it, its voltage and its current.
#include "sense/sense.h"

void usi_sense_battery(const us_model *m, const usi_sensor *k, const usi_sense_input *in, usi_sensor_state *s,
                       double *reading) {
    const usi_battery *b = &m->battery[k->battery];
    const double energy = in->battery_energy[k->battery], drawn = s->before[0] - energy;
    s->before[0] = energy;
    if (!reading) return;
    reading[0] = energy / b->capacity;
    // A pack's voltage falls by about an eighth from full to empty.
    reading[1] = b->voltage * (0.9375 + 0.125 * reading[0]);
    reading[2] = in->time > 0 ? -drawn / (in->time * reading[1]) : 0;
}
