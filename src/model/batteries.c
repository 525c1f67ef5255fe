// Batteries: one per robot whose network has one. It feeds the drives of the robot's group.
#include "model/compile.h"

bool usi_build_has_battery(const us_network_def *n) { return n->battery_capacity > 0 && n->group >= 0; }

void usi_build_count_batteries(const usi_build *b, us_model *m) {
    m->n_battery = 0;
    for (int32_t i = 0; i < b->spec->n_network; i++)
        m->n_battery += usi_build_has_battery(&b->spec->network[i]);
}

void usi_build_batteries(const usi_build *b, us_model *m) {
    int32_t n = 0;
    for (int32_t i = 0; i < b->spec->n_network; i++) {
        const us_network_def *d = &b->spec->network[i];
        if (!usi_build_has_battery(d)) continue;
        m->battery[n++] = (usi_battery){d->battery_capacity, d->battery_idle, d->battery_voltage};
    }
}

int32_t usi_build_battery_of(const usi_build *b, int32_t group) {
    int32_t n = 0;
    for (int32_t i = 0; i < b->spec->n_network; i++) {
        if (!usi_build_has_battery(&b->spec->network[i])) continue;
        if (b->spec->network[i].group == group) return n;
        n++;
    }
    return -1;
}
