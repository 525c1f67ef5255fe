// Contact points to rows, and back: the interaction models, the anchors, and what is kept for the next step.
//
// Each point has three rows: along the normal (only pushes), and two tangents held by a spring that remembers how far it is
// stretched (xi) and gives way at the friction limit. The stretch after the step follows from the impulse alone,
//
//     xi' = (c xi - g) / (h k + c)                      (k, c: stiffness and damping of the anchor; g: tangential impulse)
//
// which is xi + h u while the point sticks, and the return to the friction circle while it slides: one formula.
#include <string.h>

#include "contact/interaction.h"
#include "contact/world.h"

// Restitution acts on impacts faster than this, m/s: slower ones are contact at rest.
static const double IMPACT_SPEED = 0.02;
// How much stiffer the row of an impact is than that of contact at rest.
static const double IMPACT_STIFFNESS = 1000;
// A contact that slides sticks again below this speed, m/s.
static const double STICK_SPEED = 1e-3;

// Two unit vectors across n.
static void tangents(usi_v4 n, usi_v4 *t, usi_v4 *s) {
    // Along the axis that is least along n there is always something across it.
    double x = fabs(n[0]), y = fabs(n[1]), z = fabs(n[2]);
    usi_v4 axis = x <= y && x <= z ? usi_v4_set(1, 0, 0) : y <= z ? usi_v4_set(0, 1, 0) : usi_v4_set(0, 0, 1);
    usi_v4 a = axis - n * usi_v4_all(usi_v4_dot(n, axis));
    *t = a * (1 / sqrt(usi_v4_dot(a, a)));
    *s = usi_v4_cross(n, *t);
}

static inline usi_v4 to_world(const usi_carrier *k, us_vec3 p) { return usi_v4_columns_of(k->X, k->Y, k->Z, p); }
static inline us_vec3 to_local(const usi_carrier *k, usi_v4 p) {
    return us_vec3_make(usi_v4_dot(k->X, p), usi_v4_dot(k->Y, p), usi_v4_dot(k->Z, p));
}

static double mass_of(const usi_contacts *c, const usi_carrier *k) { return k->node < 0 ? INFINITY : c->tree_mass[k->tree]; }

static double reduced(double a, double b) { return isinf(a) ? b : isinf(b) ? a : a * b / (a + b); }

// An island that is swept needs rows that are not much stiffer than the bodies are heavy.
static void soften(us_touch_law *law, double mass, double h, double normal_velocity) {
    double most = mass / (h * h);
    if (law->stiffness <= most) return;
    double scale = most / law->stiffness, elastic = (law->force + law->damping * normal_velocity) * scale;
    law->stiffness = most;
    law->damping *= sqrt(scale);
    law->force = elastic - law->damping * normal_velocity;
    law->tangent_stiffness *= scale;
    law->tangent_damping *= sqrt(scale);
}

static void set_row(usi_block *k, int row, double stiffness, double damping, double h) {
    double K = h * (h * stiffness + damping);
    k->R[row] = 1 / K;
    k->K[row > 0] = K;
}

// Torsion about the normal and rolling across it, on a lever that makes their stiffness one of turning.
static void turn_block(usi_block *k, const usi_block *point, const us_touch_law *law, double h, usi_v4 turn) {
    double lever = law->torsion + law->rolling, square = lever * lever + 1e-6;
    double stiffness = law->tangent_stiffness * square, damping = law->tangent_damping * square;
    *k = (usi_block){.law = USI_TURN, .n = 3, .a = point->a, .b_ = point->b_, .point = point->point, .mu = law->torsion, .limit = law->rolling};
    double erp = stiffness / (h * stiffness + damping);
    for (int i = 0; i < 3; i++) {
        k->m[i] = point->d[i];
        k->d[i] = usi_v4_zero();
        k->b[i] = erp * usi_v4_dot(turn, point->d[i]);
        set_row(k, i, stiffness, damping, h);
    }
    k->radius = point->g[0];
}

static bool make_point(usi_contacts *c, const usi_island *s, int32_t i, const usi_contact_state *now, usi_contact_state *next, usi_block **at) {
    const us_model *m = c->model;
    const double h = m->step;
    const usi_point_now *p = &c->point[i];
    const usi_touch *t = &c->touch_now[p->touch];
    const usi_carrier *A = &c->carrier[c->carrier_of[t->geom_a]], *B = &c->carrier[c->carrier_of[t->geom_b]];
    const usi_anchor *old = p->old >= 0 ? &now->anchor[p->old] : NULL;
    usi_anchor *kept = &next->anchor[i];
    usi_v4 u = A->v + usi_v4_cross(A->w, p->p - A->p) - B->v - usi_v4_cross(B->w, p->p - B->p);
    double un = usi_v4_dot(u, p->n);
    int32_t ma = m->geom[t->geom_a].material, mb = m->geom[t->geom_b].material, entry = ma * m->n_material + mb;
    const usi_pair *pair = &m->pair[entry];
    us_touch touch = {.step = h,
                      .gap = p->gap,
                      .point = usi_v4_vec3(p->p),
                      .normal = usi_v4_vec3(p->n),
                      .velocity = usi_v4_vec3(u),
                      .normal_velocity = un,
                      .mass = reduced(mass_of(c, A), mass_of(c, B)),
                      .load = s->load,
                      .is_new = !old,
                      .material_a = m->names + m->material_name[ma],
                      .material_b = m->names + m->material_name[mb],
                      .values = &next->pair[entry]};
    if (pair->parameter >= 0) touch.parameters = m->pair_row[pair->parameter].parameters, touch.n_parameter = m->pair_row[pair->parameter].n_parameter;
    us_touch_law law;
    memset(kept, 0, sizeof *kept);
    if (old) memcpy(kept->memory, old->memory, sizeof kept->memory);
    if (!usi_touch_ask(pair->model, &m->interaction[pair->model], &touch, kept->memory, &law)) return false;
    if (s->kind == USI_ISLAND_SWEEPS) soften(&law, touch.mass, h, un);

    usi_block *k = (*at)++;
    *k = (usi_block){.law = USI_POINT, .n = 3, .a = A->body, .b_ = B->body, .point = i};
    usi_v4 r = p->p - s->O;
    k->d[0] = p->n;
    tangents(p->n, &k->d[1], &k->d[2]);
    for (int j = 0; j < 3; j++) k->m[j] = usi_v4_cross(r, k->d[j]);
    set_row(k, 0, law.stiffness, law.damping, h);
    set_row(k, 1, law.tangent_stiffness, law.tangent_damping, h);
    set_row(k, 2, law.tangent_stiffness, law.tangent_damping, h);
    k->b[0] = p->gap > 0 ? p->gap / h : -k->R[0] * h * (law.force + law.damping * un);
    if (law.restitution > 0 && un < -IMPACT_SPEED && p->gap + h * un <= 0) {
        k->b[0] = law.restitution * un;
        k->R[0] /= IMPACT_STIFFNESS;
        k->K[0] *= IMPACT_STIFFNESS;
    }
    k->viscous = h * law.viscous;
    kept->stiffness = law.tangent_stiffness, kept->damping = law.tangent_damping;
    k->mu = law.static_friction;
    usi_v4 turn = usi_v4_zero();
    if (old) {
        usi_v4 ut = u - p->n * usi_v4_all(un);
        bool is_sliding = old->is_sliding && usi_v4_dot(ut, ut) > STICK_SPEED * STICK_SPEED;
        if (is_sliding) k->mu = law.kinetic_friction;
        // A row that has become stiffer is stretched less by the same force.
        usi_v4 xi = to_world(A, old->xi) * (old->stiffness / law.tangent_stiffness), g = to_world(A, old->g);
        double erp = law.tangent_stiffness / (h * law.tangent_stiffness + law.tangent_damping);
        k->b[1] = erp * usi_v4_dot(xi, k->d[1]), k->b[2] = erp * usi_v4_dot(xi, k->d[2]);
        for (int j = 0; j < 3; j++) k->g[j] = usi_v4_dot(g, k->d[j]);
        if (k->g[0] < 0) k->g[0] = 0;
        turn = to_world(A, old->turn);
    }
    k->radius = k->mu * k->g[0];
    if (law.torsion > 0 || law.rolling > 0) turn_block((*at)++, k, &law, h, turn);
    return true;
}

// A loop's rows. Their compliance is that of a joint a million times as stiff as the bodies are heavy in a step; what it leaves open
// is closed by the projection.
static void make_loop(usi_contacts *c, const usi_island *s, const usi_loop *l, const int32_t carrier[2], usi_block **at) {
    const double h = c->model->step, K = 1e6 * s->most_mass;
    const usi_carrier *A = &c->carrier[carrier[0]], *B = &c->carrier[carrier[1]];
    us_pose X_WC = us_pose_mul(A->X_WN, l->X_AC), X_WD = us_pose_mul(B->X_WN, l->X_BD);
    us_vec3 phi = us_vec3_sub(X_WC.p, X_WD.p);
    usi_v4 r = 0.5 * (usi_v4_from(X_WC.p) + usi_v4_from(X_WD.p)) - s->O;
    usi_block *k = (*at)++;
    *k = (usi_block){.law = USI_EQUAL, .n = 3, .a = A->body, .b_ = B->body, .point = -1};
    const double error[3] = {phi.x, phi.y, phi.z};
    for (int j = 0; j < 3; j++) {
        k->d[j] = usi_v4_set(j == 0, j == 1, j == 2);
        k->m[j] = usi_v4_cross(r, k->d[j]);
        k->b[j] = error[j] / h;
        k->R[j] = 1 / K, k->K[j > 0] = K;
    }
    if (l->n_axis == 0) return;
    k = (*at)++;
    *k = (usi_block){.law = USI_EQUAL, .n = l->n_axis, .a = A->body, .b_ = B->body, .point = -1};
    us_mat3 C = us_quat_matrix(X_WC.q), D = us_quat_matrix(X_WD.q);
    for (int j = 0; j < 3; j++) {
        usi_v4 x = usi_v4_zero(), y = x;
        if (j < l->n_axis) {
            int ic = l->axis_c[j], id = l->axis_d[j];
            x = usi_v4_set(C.m[ic], C.m[3 + ic], C.m[6 + ic]), y = usi_v4_set(D.m[id], D.m[3 + id], D.m[6 + id]);
        }
        k->m[j] = usi_v4_cross(x, y);
        k->d[j] = usi_v4_zero();
        k->b[j] = usi_v4_dot(x, y) / h;
        k->R[j] = 1 / K, k->K[j > 0] = K;
    }
}

bool usi_make_rows(usi_contacts *c, usi_island *s, const usi_contact_state *now, usi_contact_state *next) {
    const us_model *m = c->model;
    usi_block *at = &c->block[s->first_block];
    for (int32_t k = 0; k < s->n_point; k++) {
        if (!make_point(c, s, c->order[s->first_point + k], now, next, &at)) return false;
    }
    for (int32_t l = 0; l < m->n_loop; l++) {
        const int32_t *carrier = &c->loop_carrier[2 * l];
        int32_t tree = c->carrier[carrier[c->carrier[carrier[0]].node < 0]].tree;
        if (&c->island[c->tree[tree].island] == s) make_loop(c, s, &m->loop[l], carrier, &at);
    }
    s->n_block = (int32_t)(at - &c->block[s->first_block]);
    return true;
}

void usi_keep_rows(usi_contacts *c, const usi_island *s, usi_contact_state *next) {
    const double h = c->model->step;
    for (int32_t i = 0; i < s->n_block; i++) {
        const usi_block *k = &c->block[s->first_block + i];
        if (k->point < 0) continue;
        const usi_point_now *p = &c->point[k->point];
        const usi_touch *t = &c->touch_now[p->touch];
        const usi_carrier *A = &c->carrier[c->carrier_of[t->geom_a]], *B = &c->carrier[c->carrier_of[t->geom_b]];
        usi_anchor *a = &next->anchor[k->point];
        // b = erp xi / h with erp = h k / (h k + c), so that (h k + c) b / k is the old stretch.
        if (k->law == USI_TURN) {
            double lever = k->mu + k->limit, square = lever * lever + 1e-6, stiffness = a->stiffness * square, damping = a->damping * square;
            double sum = h * stiffness + damping;
            usi_v4 turn = usi_v4_zero();
            for (int j = 0; j < 3; j++) turn += k->m[j] * usi_v4_all((damping * k->b[j] * sum / stiffness - k->g[j]) / sum);
            a->turn = to_local(A, turn);
            continue;
        }
        double sum = h * a->stiffness + a->damping;
        usi_v4 xi = usi_v4_zero(), g = k->d[0] * usi_v4_all(k->g[0]);
        bool is_sliding = false;
        if (k->g[0] > 0) {
            // The damper of sliding is not part of the spring.
            double u[2] = {c->u[3 * (s->first_block + i) + 1], c->u[3 * (s->first_block + i) + 2]};
            double g1 = k->g[1] + k->viscous * u[0], g2 = k->g[2] + k->viscous * u[1], limit = k->mu * k->g[0];
            double x1 = (a->damping * k->b[1] * sum / a->stiffness - g1) / sum, x2 = (a->damping * k->b[2] * sum / a->stiffness - g2) / sum;
            xi = k->d[1] * usi_v4_all(x1) + k->d[2] * usi_v4_all(x2);
            g += k->d[1] * usi_v4_all(k->g[1]) + k->d[2] * usi_v4_all(k->g[2]);
            is_sliding = g1 * g1 + g2 * g2 >= limit * limit * (1 - 1e-9);
        }
        a->xi = to_local(A, xi);
        a->g = to_local(A, g);
        a->normal = to_local(A, p->n);
        a->p_A = to_local(A, p->p_A - A->p);
        a->p_B = to_local(B, p->p_B - B->p);
        a->feature = p->feature;
        a->is_sliding = is_sliding;
    }
}
