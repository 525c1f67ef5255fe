// Inverse dynamics (recursive Newton-Euler): accelerations outwards, forces inwards.
#include "dyn/kinematics.h"

void usi_project_forces(us_dyn *d, double *out_tau) {
    usi_project_forces_of(d, (usi_span){0, d->model->n_node}, out_tau);
}

void usi_project_forces_of(us_dyn *d, usi_span span, double *out_tau) {
    const us_model *m = d->model;
    // What a link hands on to the next one, mostly its parent, does not go through memory.
    usi_v4 n = usi_v4_zero(), f = n;
    for (int32_t i = span.end - 1; i >= span.first; i--) {
        usi_link *k = &d->link[i];
        int32_t parent = m->node[i].parent;
        n += k->n;
        f += k->f;
        k->n = n;
        k->f = f;
        out_tau[i] = usi_v4_sum(k->Sw * n + k->Sv * f);
        if (parent == i - 1 && parent >= span.first) continue;
        if (parent >= 0) {
            d->link[parent].n += n;
            d->link[parent].f += f;
        }
        n = f = usi_v4_zero();
    }
}

us_status us_dyn_inverse(us_dyn *d, const double *q, const double *v, const double *a,
                         const us_wrench *wrench, double *out_tau) {
    if (!d || !q || !v || !out_tau) return US_ERR_ARG;
    const us_model *m = d->model;
    usi_kinematics(d, q, v, a);
    usi_inertias(d, true);
    usi_apply_wrenches(d, wrench);
    usi_project_forces(d, out_tau);
    for (int32_t i = 0; i < m->n_node; i++) {
        int32_t at = m->node[i].q;
        if (a) out_tau[i] += m->armature[i] * a[i];
        out_tau[i] += m->damping[i] * v[i];
        if (m->stiffness[i] != 0) out_tau[i] += m->stiffness[i] * (q[at] - m->rest[i]);
    }
    return US_OK;
}

us_status us_dyn_bias(us_dyn *d, const double *q, const double *v, double *out_c) {
    return us_dyn_inverse(d, q, v, NULL, NULL, out_c);
}
