// Events: what happened at which moment of a step.
//
// Conditions and limits are functions g(q, v, t). They are looked at where a step begins and where it ends,
// and, by the error-controlled integrator, where its sub-steps do. Where g has changed its sign its zero is
// sought within the part, by false position with bisection as a safeguard, on a curve through the motion:
//
//     g                 o        adaptive: the continuous extension of its scheme, order 4
//     |            .             others: of positions the cubic that has the positions and velocities of both
//     |_______x____________t     ends, of velocities a straight line; of what contact moves a straight line
//     o   .
//
// The motion itself is not changed by being watched. Impacts are found from what the contact solve was told
// (contact/impact_time.c).
#include <math.h>
#include <string.h>

#include "sim/half_steps.h"
#include "understudy/query.h"

struct usi_events {
    us_condition *condition;  // n_condition
    int32_t *limit;           // n_limit: numbers of joint laws
    double *before, *after;   // n_watch, values at the two ends of a part: conditions, lower, upper ends
    bool *is_found;           // n_watch: once in this step
    double *q, *v;            // at a moment
    us_event *event;
    usi_impact *impact;  // max_contact
    usi_arena arena;
    int32_t n_condition, n_limit, n_watch, n, max_contact;
    bool enable_all;  // limits and impacts too
    bool has_parts;   // the integrator has shown the parts of this step
};

// ---------------------------------------------------------------- what is watched

static int32_t count_limits(const us_model *m, int32_t *out) {
    int32_t n = 0;
    for (int32_t t = 0; t < m->n_actuated; t++) {
        const int32_t *first = m->actuated[t].first;
        for (int32_t i = first[USI_LAW_LIMIT]; i < first[USI_LAW_LIMIT + 1]; i++, n++) {
            if (out) out[n] = i;
        }
    }
    return n;
}

static us_status check(const us_sim_def *def, us_error *err) {
    for (int32_t i = 0; i < def->n_condition; i++) {
        if (!def->conditions[i].value)
            return us_error_set(err, US_ERR_ARG, NULL, "give it a function `value`",
                                "condition %d (%s) has none", (int)i,
                                def->conditions[i].name ? def->conditions[i].name : "without a name");
    }
    return US_OK;
}

static bool make_lists(us_sim *s, usi_events *e, const us_sim_def *def) {
    const us_model *m = s->model;
    const size_t n_watch = (size_t)e->n_watch, room = (size_t)e->max_contact;
    e->condition = usi_arena_alloc(&e->arena, ((size_t)e->n_condition + 1) * sizeof *e->condition,
                                   _Alignof(us_condition));
    e->limit = usi_arena_alloc(&e->arena, ((size_t)e->n_limit + 1) * sizeof *e->limit, _Alignof(int32_t));
    e->before = usi_arena_alloc(&e->arena, (n_watch + 1) * sizeof(double), _Alignof(double));
    e->after = usi_arena_alloc(&e->arena, (n_watch + 1) * sizeof(double), _Alignof(double));
    e->is_found = usi_arena_alloc(&e->arena, (n_watch + 1) * sizeof(bool), _Alignof(bool));
    e->q = usi_arena_alloc(&e->arena, (size_t)m->n_q_pad * sizeof(double) + USI_ALIGN, USI_ALIGN);
    e->v = usi_arena_alloc(&e->arena, (size_t)m->n_pad * sizeof(double) + USI_ALIGN, USI_ALIGN);
    e->event = usi_arena_alloc(&e->arena, (n_watch + room + 1) * sizeof *e->event, _Alignof(us_event));
    e->impact = usi_arena_alloc(&e->arena, (room + 1) * sizeof *e->impact, _Alignof(usi_impact));
    if (!e->condition || !e->limit || !e->before || !e->after || !e->is_found || !e->q || !e->v ||
        !e->event || !e->impact)
        return false;
    if (e->n_condition > 0)
        memcpy(e->condition, def->conditions, (size_t)e->n_condition * sizeof *e->condition);
    if (e->n_limit > 0) count_limits(m, e->limit);
    return true;
}

us_status usi_events_create(us_sim *s, const us_sim_def *def, us_error *err) {
    if (!def->enable_events && def->n_condition <= 0) return US_OK;
    us_status status = check(def, err);
    if (status) return status;
    usi_events *e = usi_alloc(&s->allocator, sizeof *e, _Alignof(usi_events));
    if (!e) return US_ERR_MEMORY;
    memset(e, 0, sizeof *e);
    usi_arena_init(&e->arena, &s->allocator);
    e->enable_all = def->enable_events;
    e->n_condition = def->n_condition > 0 ? def->n_condition : 0;
    e->n_limit = e->enable_all ? count_limits(s->model, NULL) : 0;
    e->n_watch = e->n_condition + 2 * e->n_limit;
    e->max_contact = s->max_contact;
    s->events = e;
    return make_lists(s, e, def) ? US_OK : US_ERR_MEMORY;
}

void usi_events_destroy(us_sim *s) {
    if (!s->events) return;
    usi_arena_fini(&s->events->arena);
    usi_release(&s->allocator, s->events, sizeof *s->events, _Alignof(usi_events));
}

void usi_events_clear(us_sim *s) {
    if (s->events) s->events->n = 0;
}

void usi_events_define(const us_sim *s, us_sim_def *def) {
    if (!s->events) return;
    def->enable_events = s->events->enable_all;
    def->n_condition = s->events->n_condition;
    def->conditions = s->events->condition;
}

bool usi_events_grow(us_sim *s, int32_t max_contact) {
    usi_events *e = s->events;
    if (!e || max_contact <= e->max_contact) return true;
    us_event *event = usi_arena_alloc(
        &e->arena, ((size_t)e->n_watch + (size_t)max_contact + 1) * sizeof *event, _Alignof(us_event));
    usi_impact *impact =
        usi_arena_alloc(&e->arena, ((size_t)max_contact + 1) * sizeof *impact, _Alignof(usi_impact));
    if (!event || !impact) return false;
    if (e->n > 0) memcpy(event, e->event, (size_t)e->n * sizeof *event);
    e->event = event;
    e->impact = impact;
    e->max_contact = max_contact;
    return true;
}

// ---------------------------------------------------------------- values

static const usi_joint_law *law_of(const us_sim *s, int32_t watch) {
    const usi_events *e = s->events;
    return &s->model->joint_law[e->limit[(watch - e->n_condition) / 2]];
}

static double limit_of(const us_sim *s, int32_t watch) {
    const usi_joint_law *law = law_of(s, watch);
    return (watch - s->events->n_condition) % 2 == 0 ? law->lower : law->upper;
}

static double value_of(const us_sim *s, int32_t watch, const double *q, const double *v, double time) {
    const usi_events *e = s->events;
    if (watch >= e->n_condition) return q[law_of(s, watch)->q] - limit_of(s, watch);
    const us_condition *c = &e->condition[watch];
    return c->value(c->context, s->model, q, v, time);
}

// All values; a condition that is not finite is an error.
static us_status look(us_sim *s, const double *q, const double *v, double time, double *out) {
    const usi_events *e = s->events;
    for (int32_t i = 0; i < e->n_watch; i++) {
        out[i] = value_of(s, i, q, v, time);
        if (i >= e->n_condition || isfinite(out[i])) continue;
        return us_error_set(&s->error, US_ERR_VALUE, NULL, "let it give a finite number in every state",
                            "tick %lld: condition %d (%s) is not finite", (long long)s->now.tick[0], (int)i,
                            e->condition[i].name ? e->condition[i].name : "without a name");
    }
    return US_OK;
}

static double start_time(const us_sim *s) { return (double)s->now.tick[0] * s->model->step; }

// ---------------------------------------------------------------- the motion within a step

// The displacement from one position to another, of the joints of nodes first .. end - 1.
void usi_difference(const us_model *m, usi_span nodes, const double *q0, const double *q1, double *out) {
    for (int32_t i = nodes.first; i < nodes.end; i++) {
        const usi_node *n = &m->node[i];
        if (n->kind == USI_NODE_BALL || n->kind == USI_NODE_FREE) {
            const double *a = q0 + n->q, *b = q1 + n->q;
            const us_vec3 turn = us_quat_log(us_quat_mul(us_quat_conj((us_quat){a[0], a[1], a[2], a[3]}),
                                                         (us_quat){b[0], b[1], b[2], b[3]}));
            out[i] = turn.x;
            out[i + 1] = turn.y;
            out[i + 2] = turn.z;
            for (int k = 0; n->kind == USI_NODE_FREE && k < 3; k++)
                out[i + 3 + k] = b[4 + k] - a[4 + k];
            i += n->kind == USI_NODE_FREE ? 5 : 2;
        } else {
            out[i] = q1[n->q] - q0[n->q];
        }
    }
}

// Where contact moves a tree: straight on, from now to the step's end.
static void put_touched(us_sim *s, double share, double *q, double *v) {
    const us_model *m = s->model;
    for (int32_t t = 0; t < m->n_tree; t++) {
        if (!usi_is_touched(s, t)) continue;
        const bool is_still = usi_is_still(s, t);
        const double *end_q = is_still ? s->now.q : s->end_q, *end_v = is_still ? s->now.v : s->end_v;
        const usi_span nodes = {m->tree[t].first, m->tree[t].end};
        usi_difference(m, nodes, s->now.q, end_q, s->displacement);
        for (int32_t i = nodes.first; i < nodes.end; i++) {
            s->displacement[i] *= share;
            v[i] = s->now.v[i] + share * (end_v[i] - s->now.v[i]);
        }
        usi_add_range(m, s->now.q, s->displacement, q, nodes.first, nodes.end);
        const usi_node *root = &m->node[nodes.first];
        for (int k = 0; root->kind == USI_NODE_FREE && k < 3; k++)
            q[root->q + 4 + k] = s->now.q[root->q + 4 + k] + s->displacement[nodes.first + 3 + k];
    }
}

// A whole step of an integrator that shows no parts.
static void sample_step(us_sim *s, double share, double length, double *out_q, double *out_v) {
    const us_model *m = s->model;
    double *whole = s->rate, *first = s->rate + m->n_pad, *last = first + m->n_pad;
    memset(whole, 0, (size_t)m->n_pad * sizeof *whole);
    usi_difference(m, (usi_span){0, m->n_node}, s->now.q, s->next.q, whole);
    memset(s->displacement, 0, (size_t)m->n_pad * sizeof(double));
    usi_displacement_rate(m, s->displacement, s->now.q, s->now.v, first);
    usi_displacement_rate(m, whole, s->next.q, s->next.v, last);
    const double back = 1 - share;
    for (int32_t i = 0; i < m->n_node; i++) {
        const double bend = length * first[i] - whole[i], other = whole[i] - length * last[i] - bend;
        s->displacement[i] = share * (whole[i] + back * (bend + share * other));
        out_v[i] = s->now.v[i] + share * (s->next.v[i] - s->now.v[i]);
    }
    usi_displace(m, s->now.q, s->displacement, out_q);
}

// ---------------------------------------------------------------- zeros

typedef struct part {
    double from, length;  // s, since the start of the step
    usi_sample *sample;
} part;

static double value_at(us_sim *s, int32_t watch, const part *x, double share) {
    usi_events *e = s->events;
    x->sample(s, share, x->length, e->q, e->v);
    put_touched(s, (x->from + share * x->length) / s->model->step, e->q, e->v);
    return value_of(s, watch, e->q, e->v, start_time(s) + x->from + share * x->length);
}

// The share of a part at which a value is 0, between a and b, where it has different signs: false position;
// an end that stays counts half (Illinois), and every third time the middle is taken.
static double find_zero(us_sim *s, int32_t watch, const part *x, double g_a, double g_b) {
    double a = 0, b = 1;
    for (int i = 0; i < 60 && b - a > 1e-13 && g_b != 0; i++) {
        double middle = i % 3 == 2 ? 0.5 * (a + b) : a + (b - a) * g_a / (g_a - g_b);
        if (!(middle > a && middle < b)) middle = 0.5 * (a + b);
        const double g = value_at(s, watch, x, middle);
        if (g == 0) return middle;
        if ((g < 0) == (g_a < 0)) {
            a = middle;
            g_a = g;
            g_b *= i % 3 == 2 ? 1 : 0.5;
        } else {
            b = middle;
            g_b = g;
            g_a *= i % 3 == 2 ? 1 : 0.5;
        }
    }
    return b;
}

static void add_passage(us_sim *s, int32_t watch, double time, int32_t direction) {
    usi_events *e = s->events;
    const bool is_limit = watch >= e->n_condition;
    e->is_found[watch] = true;
    e->event[e->n++] = (us_event){.kind = is_limit ? US_EVENT_LIMIT : US_EVENT_CONDITION,
                                  .time = start_time(s) + time,
                                  .index = is_limit ? law_of(s, watch)->v : watch,
                                  .direction = direction,
                                  .limit = is_limit ? limit_of(s, watch) : 0,
                                  .shape_a = -1,
                                  .shape_b = -1};
}

// 1: from below to 0 or above; -1: from above to 0 or below; 0: it does not pass.
static int32_t passage(double before, double after) {
    return before < 0 && after >= 0 ? 1 : before > 0 && after <= 0 ? -1 : 0;
}

static us_status find_in_part(us_sim *s, const part *x, const double *q1, const double *v1) {
    usi_events *e = s->events;
    us_status status = look(s, q1, v1, start_time(s) + x->from + x->length, e->after);
    if (status) return status;
    for (int32_t i = 0; i < e->n_watch; i++) {
        const int32_t direction = passage(e->before[i], e->after[i]);
        const int32_t wanted = i < e->n_condition ? e->condition[i].direction : 0;
        if (direction != 0 && !e->is_found[i] && (wanted == 0 || (wanted > 0) == (direction > 0))) {
            const double share = find_zero(s, i, x, e->before[i], e->after[i]);
            add_passage(s, i, x->from + share * x->length, direction);
        }
        e->before[i] = e->after[i];
    }
    return US_OK;
}

// ---------------------------------------------------------------- a step

us_status usi_events_begin(us_sim *s) {
    usi_events *e = s->events;
    e->has_parts = false;
    if (s->is_trial) return US_OK;
    e->n = 0;
    memset(e->is_found, 0, (size_t)e->n_watch * sizeof *e->is_found);
    return look(s, s->now.q, s->now.v, start_time(s), e->before);
}

us_status usi_events_in_part(us_sim *s, double from, double length, usi_sample *sample, const double *q1,
                             const double *v1) {
    usi_events *e = s->events;
    if (s->is_trial) return US_OK;
    e->has_parts = true;
    memcpy(e->q, q1, (size_t)s->model->n_q * sizeof *e->q);
    memcpy(e->v, v1, (size_t)s->model->n_pad * sizeof *e->v);
    put_touched(s, (from + length) / s->model->step, e->q, e->v);
    return find_in_part(s, &(part){from, length, sample}, e->q, e->v);
}

static void add_impacts(us_sim *s) {
    usi_events *e = s->events;
    const us_model *m = s->model;
    const int32_t n = usi_find_impacts(s->contacts, &s->now.contact, e->impact);
    for (int32_t i = 0; i < n; i++)
        e->event[e->n++] = (us_event){.kind = US_EVENT_IMPACT,
                                      .time = start_time(s) + e->impact[i].time,
                                      .index = -1,
                                      .speed = e->impact[i].speed,
                                      .shape_a = m->geom[e->impact[i].geom_a].shape,
                                      .shape_b = m->geom[e->impact[i].geom_b].shape};
}

// By time; those of the same moment stay as they were found.
static void sort(usi_events *e) {
    for (int32_t i = 1; i < e->n; i++) {
        const us_event x = e->event[i];
        int32_t k = i;
        for (; k > 0 && e->event[k - 1].time > x.time; k--)
            e->event[k] = e->event[k - 1];
        e->event[k] = x;
    }
}

us_status usi_events_end(us_sim *s) {
    usi_events *e = s->events;
    if (s->is_trial) return US_OK;
    us_status status = US_OK;
    if (!e->has_parts && e->n_watch > 0)
        status = find_in_part(s, &(part){0, s->model->step, sample_step}, s->next.q, s->next.v);
    if (!status && e->enable_all && s->contacts) add_impacts(s);
    sort(e);
    return status;
}

// ---------------------------------------------------------------- queries

int32_t us_sim_n_event(const us_sim *s) { return s && s->events ? s->events->n : 0; }

us_event us_sim_get_event(const us_sim *s, int32_t i) {
    const us_event none = {US_EVENT_CONDITION, NAN, -2, 0, NAN, NAN, -1, -1};
    return s && s->events && i >= 0 && i < s->events->n ? s->events->event[i] : none;
}
