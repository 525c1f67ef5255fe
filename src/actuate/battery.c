// Batteries: what the drives take from them.
#include "actuate/actuate.h"

// W. Motors that are driven give nothing back.
static double drive_power(const usi_drive *d, double effort, const double *v) {
    const double power = effort * v[d->v];
    return power > 0 ? power : 0;
}

double usi_battery_power(const us_model *m, int32_t battery, const double *effort, const double *v,
                         double energy) {
    if (!(energy > 0)) return 0;
    double power = m->battery[battery].idle;
    for (int32_t i = 0; i < m->n_drive; i++) {
        const usi_drive *d = &m->drive[i];
        if (d->battery == battery && d->v >= 0) power += drive_power(d, effort[i], v);
    }
    return power;
}

void usi_batteries_draw(const us_model *m, const double *effort, const double *v, const double *is_on,
                        const double *energy, double *out_energy) {
    // Power first, in the place of the energy: one pass over the drives, however many batteries there are.
    double *const power = out_energy;
    for (int32_t b = 0; b < m->n_battery; b++)
        power[b] = m->battery[b].idle;
    for (int32_t i = 0; i < m->n_drive && m->n_battery > 0; i++) {
        const usi_drive *d = &m->drive[i];
        if (d->battery >= 0 && d->v >= 0) power[d->battery] += drive_power(d, effort[i], v);
    }
    for (int32_t b = 0; b < m->n_battery; b++) {
        const double left = energy[b] - (is_on[b] > 0 && energy[b] > 0 ? m->step * power[b] : 0);
        out_energy[b] = left > 0 ? left : 0;
    }
}
