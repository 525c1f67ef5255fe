// The work space, and forward dynamics as the public functions offer it.
#include "dyn/dyn.h"

#include <string.h>

int32_t usi_dyn_fields(const us_model *m, usi_field *out, int32_t cap, size_t *out_size) {
    const size_t n_node = (size_t)m->n_node, n_pad = (size_t)m->n_pad, n_tree = (size_t)m->n_tree,
                 n_path = (size_t)m->n_path, n_row = (size_t)m->n_row;
    size_t size = 0;
    int32_t n = 0;
    USI_DYN_FIELDS(USI_FIELD_ROW)
    if (out_size) *out_size = size ? size : 1;
    return n;
}

us_status us_dyn_create(const us_model *model, const us_allocator *allocator, us_dyn **out_dyn) {
    if (!model || !out_dyn) return US_ERR_ARG;
    us_allocator a = allocator ? *allocator : us_allocator_default();
    us_dyn *d = usi_alloc(&a, sizeof *d, _Alignof(us_dyn));
    if (!d) return US_ERR_MEMORY;
    memset(d, 0, sizeof *d);
    d->model = model;
    d->allocator = a;
    d->world.X = usi_v4_set(1, 0, 0);
    d->world.Y = usi_v4_set(0, 1, 0);
    d->world.Z = usi_v4_set(0, 0, 1);
    d->world.av = usi_v4_set(-model->gravity.x, -model->gravity.y, -model->gravity.z);
    usi_field f[32];
    usi_dyn_fields(model, f, 32, &d->block_size);
    d->block = usi_alloc(&a, d->block_size, USI_ALIGN);
    if (!d->block) {
        usi_release(&a, d, sizeof *d, _Alignof(us_dyn));
        return US_ERR_MEMORY;
    }
    int32_t i = 0;
#define CARVE(type, name, count, unit, about) d->name = (type *)(void *)((char *)d->block + f[i++].offset);
    USI_DYN_FIELDS(CARVE)
#undef CARVE
    usi_run_all(d);
    *out_dyn = d;
    return US_OK;
}

void us_dyn_destroy(us_dyn *d) {
    if (!d) return;
    us_allocator a = d->allocator;
    usi_release(&a, d->block, d->block_size, USI_ALIGN);
    usi_release(&a, d, sizeof *d, _Alignof(us_dyn));
}

bool usi_forward(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms,
                 const us_wrench *wrench, double *out_a) {
    if (d->model->n_row == 0 || d->ignores_rows) return usi_aba(d, q, v, terms, wrench, out_a);
    return usi_forward_constrained(d, q, v, terms, wrench, out_a, NULL);
}

bool usi_forward_again(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms,
                       const us_wrench *wrench, double *out_a) {
    if (d->model->n_row > 0 && !d->ignores_rows)
        return usi_forward_constrained(d, q, v, terms, wrench, out_a, NULL);
    usi_aba_again(d, v, terms, wrench, out_a);
    return true;
}

// Torques with joint springs and dampers, explicit.
static usi_joint_terms plain_terms(us_dyn *d, const double *q, const double *v, const double *tau) {
    const us_model *m = d->model;
    if (tau && m->n_soft == 0) return (usi_joint_terms){tau, NULL, NULL, false};
    for (int32_t i = 0; i < m->n_node; i++) {
        d->tau[i] = (tau ? tau[i] : 0) - m->damping[i] * v[i];
        if (m->stiffness[i] != 0) d->tau[i] -= m->stiffness[i] * (q[m->node[i].q] - m->rest[i]);
    }
    usi_joint_terms terms = {d->tau, NULL, NULL, false};
    return terms;
}

us_status us_dyn_forward(us_dyn *d, const double *q, const double *v, const double *tau,
                         const us_wrench *wrench, double *out_a) {
    if (!d || !q || !v || !out_a) return US_ERR_ARG;
    usi_joint_terms terms = plain_terms(d, q, v, tau);
    return usi_aba(d, q, v, &terms, wrench, out_a) ? US_OK : US_ERR_MASS;
}

us_status us_dyn_forward_crba(us_dyn *d, const double *q, const double *v, const double *tau,
                              const us_wrench *wrench, double *out_a) {
    if (!d || !q || !v || !out_a) return US_ERR_ARG;
    const us_model *m = d->model;
    usi_joint_terms terms = plain_terms(d, q, v, tau);
    usi_kinematics(d, q, v, NULL);
    usi_inertias(d, true);
    usi_apply_wrenches(d, wrench);
    usi_project_forces(d, d->work);
    usi_crba(d);
    if (!usi_factor(d, NULL, NULL)) return US_ERR_MASS;
    for (int32_t i = 0; i < m->n_node; i++)
        out_a[i] = terms.tau[i] - d->work[i];
    usi_solve(d, out_a);
    return US_OK;
}

us_status us_dyn_forward_constrained(us_dyn *d, const double *q, const double *v, const double *tau,
                                     const us_wrench *wrench, double *out_a, double *out_lambda,
                                     int32_t *out_rank) {
    if (!d || !q || !v || !out_a) return US_ERR_ARG;
    usi_joint_terms terms = plain_terms(d, q, v, tau);
    if (!usi_forward_constrained(d, q, v, &terms, wrench, out_a, out_rank)) return US_ERR_MASS;
    if (out_lambda) memcpy(out_lambda, d->rhs, (size_t)d->model->n_row * sizeof *out_lambda);
    return US_OK;
}
