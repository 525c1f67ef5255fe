// Energy and momentum.
#include "dyn/kinematics.h"

us_energy usi_energy(us_dyn *d, const double *q, const double *v) {
    const us_model *m = d->model;
    usi_v4 g = usi_v4_from(m->gravity);
    us_energy e = {0, 0};
    usi_kinematics(d, q, v, NULL);
    usi_inertias(d, false);
    for (int32_t i = 0; i < m->n_node; i++) {
        const usi_link *k = &d->link[i];
        usi_v4 angular, linear;
        usi_inertia_times(k->J, k->h, k->w, k->v, &angular, &linear);
        e.kinetic += 0.5 * usi_v4_sum(k->w * angular + k->v * linear);
        e.kinetic += 0.5 * m->armature[i] * v[i] * v[i];
        e.potential -=
            usi_v4_dot(g, k->h * (usi_v4){1, 1, 1, 0} + usi_v4_all(k->h[3]) * d->origin[m->node[i].tree]);
        if (m->stiffness[i] != 0) {
            double x = q[m->node[i].q] - m->rest[i];
            e.potential += 0.5 * m->stiffness[i] * x * x;
        }
    }
    return e;
}

usi_momentum usi_tree_momentum(const us_dyn *d, int32_t first, int32_t end) {
    usi_momentum r;
    memset(&r, 0, sizeof r);
    for (int32_t i = first; i < end; i++) {
        const usi_link *k = &d->link[i];
        usi_v4 angular, linear;
        usi_inertia_times(k->J, k->h, k->w, k->v, &angular, &linear);
        r.angular += angular;
        r.linear += linear;
        r.h += k->h;
        for (int j = 0; j < 3; j++)
            r.J[j] += k->J[j];
    }
    return r;
}

us_status us_dyn_energy(us_dyn *d, const double *q, const double *v, us_energy *out_energy) {
    if (!d || !q || !v || !out_energy) return US_ERR_ARG;
    *out_energy = usi_energy(d, q, v);
    return US_OK;
}

us_status us_dyn_momentum(us_dyn *d, const double *q, const double *v, us_momentum *out) {
    if (!d || !q || !v || !out) return US_ERR_ARG;
    const us_model *m = d->model;
    usi_kinematics(d, q, v, NULL);
    usi_inertias(d, false);
    usi_v4 moment = usi_v4_zero(), angular = moment, linear = moment;
    double mass = 0;
    for (int32_t t = 0; t < m->n_tree; t++) {
        usi_momentum r = usi_tree_momentum(d, m->tree[t].first, m->tree[t].end);
        usi_v4 O = d->origin[t], tree_mass = usi_v4_all(r.h[3]);
        mass += r.h[3];
        moment += r.h * (usi_v4){1, 1, 1, 0} + tree_mass * O;
        linear += r.linear;
        angular += r.angular + usi_v4_cross(O, r.linear);
    }
    usi_v4 com = mass > 0 ? moment * (1 / mass) : usi_v4_zero();
    out->mass = mass;
    out->com = usi_v4_vec3(com);
    out->linear = usi_v4_vec3(linear);
    out->angular = usi_v4_vec3(angular - usi_v4_cross(com, linear));
    return US_OK;
}
