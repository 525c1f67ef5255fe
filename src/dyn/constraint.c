// Loops and couplings: rows K of the constraint Jacobian, forces lambda that keep K a = target, and the way
// back when the positions have drifted.
//
//     H a + C = tau + K^T lambda,   K a + bias = 0     ->     (K H^-1 K^T) lambda = -bias - K H^-1 (tau - C)
//
// H = L^T D L (crba.c), so with W = K L^-1 the matrix is G = W D^-1 W^T. G is factored row by row (Cholesky),
// each row from its first entry that is not 0, because loops far apart do not touch each other. A row whose
// pivot vanishes depends on earlier ones (the third row of a planar loop, the second of two equal couplings):
// it is dropped and carries no force. The base takes part like every other velocity.
#include "dyn/kinematics.h"

// A pivot below this fraction of the row's own size means that the row is redundant. Rounding leaves 1e-15,
// two bars of a four-bar one micrometre from lying in line leave 1e-12.
static const double REDUNDANT = 1e-12;

// One side of a loop: the frame's axes and point, and how they move.
typedef struct side {
    usi_v4 axis[3];  // world axes
    usi_v4 p;        // from O
    usi_v4 world_p;
    usi_v4 w, aw;
    usi_v4 acc;  // acceleration of the point without joint accelerations
} side;

static side side_of(const us_dyn *d, int32_t node, us_pose X) {
    const us_model *m = d->model;
    const usi_link *k = node < 0 ? &d->world : &d->link[node];
    usi_v4 O = node < 0 ? usi_v4_zero() : d->origin[m->node[node].tree];
    us_mat3 R = us_quat_matrix(X.q);
    side s;
    s.p = usi_link_point(k, X.p);
    s.world_p = s.p + O;
    for (int c = 0; c < 3; c++)
        s.axis[c] = k->X * R.m[c] + k->Y * R.m[3 + c] + k->Z * R.m[6 + c];
    s.w = k->w;
    s.aw = k->aw;
    s.acc = k->av + usi_v4_cross(k->aw, s.p) + usi_v4_cross(k->w, k->v + usi_v4_cross(k->w, s.p));
    return s;
}

// Adds sign * (velocity of the side's point, angular velocity along each row's normal) to the rows of K.
static void add_side(const us_dyn *d, const usi_loop *l, int32_t node, const side *s, const usi_v4 *normals,
                     double sign, double *K) {
    const us_model *m = d->model;
    size_t stride = (size_t)m->n_pad;
    if (node < 0) return;
    for (int32_t at = m->row_start[node]; at < m->row_start[node + 1]; at++) {
        int32_t i = m->path[at];
        const usi_link *k = &d->link[i];
        usi_v4 v = k->Sv + usi_v4_cross(k->Sw, s->p);
        double *column = K + (size_t)l->row * stride + i;
        for (size_t r = 0; r < 3; r++)
            column[r * stride] += sign * v[r];
        for (size_t r = 0; r < (size_t)l->n_axis; r++)
            column[(3 + r) * stride] += sign * usi_v4_dot(k->Sw, normals[r]);
    }
}

void usi_constraint_rows(us_dyn *d, const double *q, double *phi, double *K, double *bias) {
    const us_model *m = d->model;
    size_t stride = (size_t)m->n_pad;
    memset(K, 0, (size_t)m->n_row * stride * sizeof *K);
    for (int32_t i = 0; i < m->n_coupling; i++) {
        const usi_coupling *c = &m->coupling[i];
        phi[c->row] = -c->offset;
        for (int32_t t = 0; t < c->n_term; t++) {
            phi[c->row] += c->factor[t] * q[c->q[t]];
            K[(size_t)c->row * stride + (size_t)c->v[t]] += c->factor[t];
        }
        if (bias) bias[c->row] = 0;
    }
    for (int32_t i = 0; i < m->n_loop; i++) {
        const usi_loop *l = &m->loop[i];
        side a = side_of(d, l->node_a, l->X_AC), b = side_of(d, l->node_b, l->X_BD);
        usi_v4 gap = a.world_p - b.world_p, acc = a.acc - b.acc, normals[3];
        for (int r = 0; r < 3; r++) {
            phi[l->row + r] = gap[r];
            if (bias) bias[l->row + r] = acc[r];
        }
        // The cosine of two axes, one on each side: its rate is (w_A - w_B) . (c x d).
        for (int32_t r = 0; r < l->n_axis; r++) {
            usi_v4 c = a.axis[l->axis_c[r]], e = b.axis[l->axis_d[r]];
            normals[r] = usi_v4_cross(c, e);
            phi[l->row + 3 + r] = usi_v4_dot(c, e);
            if (!bias) continue;
            usi_v4 turning = usi_v4_cross(usi_v4_cross(a.w, c), e) + usi_v4_cross(c, usi_v4_cross(b.w, e));
            bias[l->row + 3 + r] = usi_v4_sum((a.aw - b.aw) * normals[r] + (a.w - b.w) * turning);
        }
        add_side(d, l, l->node_a, &a, normals, 1, K);
        add_side(d, l, l->node_b, &b, normals, -1, K);
    }
}

int32_t usi_constraint_factor(us_dyn *d) {
    const us_model *m = d->model;
    const size_t stride = (size_t)m->n_pad, n_row = (size_t)m->n_row;
    int32_t rank = 0;
    double largest = 0;
    memcpy(d->W, d->K, n_row * stride * sizeof *d->W);
    for (size_t r = 0; r < n_row; r++) {
        double *W = d->W + r * stride;
        usi_solve_upper(d, W);
        int32_t first = 0, end = m->n_node;
        while (first < end && W[first] == 0)
            first++;
        while (end > first && W[end - 1] == 0)
            end--;
        d->W_first[r] = first;
        d->W_end[r] = end;
        d->G_first[r] = (int32_t)r;
        for (size_t s = 0; s <= r; s++) {
            const double *V = d->W + s * stride;
            int32_t from = first > d->W_first[s] ? first : d->W_first[s],
                    to = end < d->W_end[s] ? end : d->W_end[s];
            double sum = 0;
            for (int32_t i = from; i < to; i++)
                sum += W[i] * V[i] * d->inv_d[i];
            d->G[r * n_row + s] = sum;
            if (sum != 0 && (int32_t)s < d->G_first[r]) d->G_first[r] = (int32_t)s;
        }
        if (d->G[r * n_row + r] > largest) largest = d->G[r * n_row + r];
    }
    // Row by row: the diagonal takes the inverse of the pivot, 0 for a row that is dropped.
    for (size_t r = 0; r < n_row; r++) {
        double *row = d->G + r * n_row, size = row[r], pivot = size;
        for (size_t s = (size_t)d->G_first[r]; s < r; s++) {
            const double *other = d->G + s * n_row;
            double sum = row[s];
            size_t from = (size_t)(d->G_first[r] > d->G_first[s] ? d->G_first[r] : d->G_first[s]);
            for (size_t k = from; k < s; k++)
                sum -= row[k] * other[k];
            row[s] = sum * other[s];
            pivot -= row[s] * row[s];
        }
        bool keep = pivot > REDUNDANT * size && size > 1e-24 * largest;
        row[r] = keep ? 1 / sqrt(pivot) : 0;
        rank += keep;
    }
    return rank;
}

void usi_constraint_solve(us_dyn *d, double *x, const double *target) {
    const us_model *m = d->model;
    const size_t stride = (size_t)m->n_pad, n_row = (size_t)m->n_row;
    double *lambda = d->rhs;
    usi_solve(d, x);
    for (size_t r = 0; r < n_row; r++) {
        const double *row = d->G + r * n_row;
        double sum = target[r];
        for (int32_t i = 0; i < m->n_node; i++)
            sum -= d->K[r * stride + (size_t)i] * x[i];
        for (size_t s = (size_t)d->G_first[r]; s < r; s++)
            sum -= row[s] * lambda[s];
        lambda[r] = sum * row[r];
    }
    for (size_t r = n_row; r-- > 0;) {
        const double *row = d->G + r * n_row;
        lambda[r] *= row[r];
        for (size_t s = (size_t)d->G_first[r]; s < r; s++)
            lambda[s] -= row[s] * lambda[r];
    }
    double *push = d->work;
    memset(push, 0, stride * sizeof *push);
    for (size_t r = 0; r < n_row; r++) {
        for (int32_t i = d->W_first[r]; i < d->W_end[r]; i++)
            push[i] += lambda[r] * d->W[r * stride + (size_t)i];
    }
    for (int32_t i = 0; i < m->n_node; i++)
        push[i] *= d->inv_d[i];
    usi_solve_lower(d, push);
    for (int32_t i = 0; i < m->n_node; i++)
        x[i] += push[i];
}

bool usi_forward_constrained(us_dyn *d, const double *q, const double *v, const usi_joint_terms *terms,
                             const us_wrench *wrench, double *out_a, int32_t *out_rank) {
    const us_model *m = d->model;
    usi_kinematics(d, q, v, NULL);
    usi_constraint_rows(d, q, d->phi, d->K, d->bias);
    usi_inertias(d, true);
    usi_apply_wrenches(d, wrench);
    usi_project_forces(d, d->work);
    for (int32_t i = 0; i < m->n_node; i++)
        out_a[i] = terms->tau[i] - d->work[i];
    usi_crba(d);
    bool ok = usi_factor(d, terms->diag, terms->damp);
    int32_t rank = usi_constraint_factor(d);
    if (out_rank) *out_rank = rank;
    const double part = terms->closes_position ? -0.5 : -1;
    for (int32_t r = 0; r < m->n_row; r++)
        d->bias[r] *= part;
    usi_constraint_solve(d, out_a, d->bias);
    return ok;
}

us_wrench usi_loop_wrench(const us_dyn *d, int32_t loop) {
    const usi_loop *l = &d->model->loop[loop];
    const double *lambda = d->rhs + l->row;
    side a = side_of(d, l->node_a, l->X_AC), b = side_of(d, l->node_b, l->X_BD);
    usi_v4 n = usi_v4_zero();
    for (int32_t r = 0; r < l->n_axis; r++)
        n += usi_v4_cross(a.axis[l->axis_c[r]], b.axis[l->axis_d[r]]) * usi_v4_all(lambda[3 + r]);
    return (us_wrench){usi_v4_vec3(n), us_vec3_make(lambda[0], lambda[1], lambda[2])};
}

static double max_abs(const double *x, int32_t n) {
    double max = 0;
    for (int32_t i = 0; i < n; i++) {
        if (isnan(x[i])) return NAN;
        max = fmax(max, fabs(x[i]));
    }
    return max;
}

// q (+) dq, of trees that dq moves.
static void add_moved(const us_model *m, const double *dq, double *q) {
    for (int32_t t = 0; t < m->n_tree; t++) {
        bool has_moved = false;
        for (int32_t i = m->tree[t].first; i < m->tree[t].end; i++)
            has_moved |= dq[i] != 0;
        if (has_moved) usi_add_range(m, q, dq, q, m->tree[t].first, m->tree[t].end);
    }
}

double usi_project(us_dyn *d, double *q, double *v, int max_newton) {
    const us_model *m = d->model;
    if (m->n_row == 0) return 0;
    double error = NAN;
    for (int it = 0;; it++) {
        usi_kinematics(d, q, NULL, NULL);
        // Velocities are not needed for K; the rows' bias is not asked for.
        usi_constraint_rows(d, q, d->phi, d->K, NULL);
        error = max_abs(d->phi, m->n_row);
        usi_inertias(d, false);
        usi_crba(d);
        if (!usi_factor(d, NULL, NULL)) return NAN;
        usi_constraint_factor(d);
        if (!(error > USI_CLOSED) || it == max_newton) break;
        // A coupling that is closed stays as it is, and so does the robot that it belongs to, to the last
        // bit, whatever others do.
        for (int32_t r = 0; r < m->n_row; r++)
            d->phi[r] = m->n_loop == 0 && fabs(d->phi[r]) <= USI_CLOSED ? 0 : -d->phi[r];
        memset(d->acc, 0, (size_t)m->n_pad * sizeof *d->acc);
        usi_constraint_solve(d, d->acc, d->phi);
        add_moved(m, d->acc, q);
    }
    for (int32_t r = 0; r < m->n_row; r++) {
        double sum = 0;
        for (int32_t i = 0; i < m->n_node; i++)
            sum += d->K[(size_t)r * (size_t)m->n_pad + (size_t)i] * v[i];
        d->phi[r] = -sum;
    }
    memset(d->acc, 0, (size_t)m->n_pad * sizeof *d->acc);
    usi_constraint_solve(d, d->acc, d->phi);
    for (int32_t i = 0; i < m->n_node; i++)
        v[i] += d->acc[i];
    return error;
}

us_status us_dyn_constraints(us_dyn *d, const double *q, double *out_phi, double *out_K) {
    if (!d || !q) return US_ERR_ARG;
    const us_model *m = d->model;
    usi_kinematics(d, q, NULL, NULL);
    usi_constraint_rows(d, q, d->phi, d->K, NULL);
    if (out_phi) memcpy(out_phi, d->phi, (size_t)m->n_row * sizeof *out_phi);
    for (size_t r = 0; out_K && r < (size_t)m->n_row; r++)
        memcpy(out_K + r * (size_t)m->n_node, d->K + r * (size_t)m->n_pad, (size_t)m->n_node * sizeof *out_K);
    return US_OK;
}

us_status us_dyn_project(us_dyn *d, double *q, double *v) {
    if (!d || !q || !v) return US_ERR_ARG;
    // A start far from closed needs more than the step's one or two iterations: half of the way is found by
    // the first few.
    return usi_project(d, q, v, 60) <= USI_CLOSED * 100 ? US_OK : US_ERR_CONSTRAINT;
}
