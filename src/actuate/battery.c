// Batteries: what the drives take from them.
#include "actuate/actuate.h"

double usi_battery_power(const us_model *m, int32_t battery, const double *effort, const double *v,
                         double energy) {
    if (!(energy > 0)) return 0;
    double power = m->battery[battery].idle;
    for (int32_t i = 0; i < m->n_drive; i++) {
        const usi_drive *d = &m->drive[i];
        if (d->battery == battery && d->v >= 0) power += fmax(0, effort[i] * v[d->v]);
    }
    return power;
}

void usi_batteries_draw(const us_model *m, const double *effort, const double *v, const double *is_on,
                        const double *energy, double *out_energy) {
    for (int32_t b = 0; b < m->n_battery; b++) {
        double power = is_on[b] > 0 ? usi_battery_power(m, b, effort, v, energy[b]) : 0;
        out_energy[b] = fmax(0, energy[b] - m->step * power);
    }
}
