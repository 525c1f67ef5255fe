// A second order for what contact moves: the same step once more, in two halves.
//
// The contact solve is implicit, q' = q + h v' with the forces of the step's end: first order, and damped
// however stiff a contact is. Its error begins with h^2 times a number that depends on the motion alone. Two
// halves of the step have half of that error,
//
//     one step    x(h)     = x + h^2 e + O(h^3)
//     two halves  x(h/2)   = x + h^2 e / 2 + O(h^3)          2 x(h/2) - x(h) = x + O(h^3)
//
// and the difference takes it away (Richardson; of implicit Euler this is a method of second order that is
// stable for any stiffness). That holds where the motion is smooth. So it is done for trees whose contacts
// press, stick and slide alike in all three solves, and where nothing begins or ends in them
// (contact/contact_modes.c); others keep the step as it is, with its exact restitution and its rest. Contacts
// remember what the whole step says: what sticks is measured between the bodies in any case.
//
// It costs two more solves of what touches, and is done by the adaptive integrator alone, which is there for
// accuracy.
#include "sim/half_steps.h"

#include <string.h>

#include "contact/contact_modes.h"

enum { FIRST, SECOND, WHOLE, N_SOLVE };

struct usi_half_steps {
    us_model model;  // the sim's, with half the step
    usi_state mid, last;
    size_t state_size;
    uint64_t *mode[N_SOLVE];  // n_tree
    usi_arena arena;
    bool is_good;  // both halves of this step were solved
};

static void release_states(us_sim *s) {
    usi_half_steps *x = s->half;
    usi_release(&s->allocator, x->mid.block, x->state_size, USI_ALIGN);
    usi_release(&s->allocator, x->last.block, x->state_size, USI_ALIGN);
    x->mid.block = x->last.block = NULL;
}

static bool make_states(us_sim *s) {
    usi_half_steps *x = s->half;
    const bool ok = usi_state_make(s, &x->mid) && usi_state_make(s, &x->last);
    x->state_size = s->state_size;
    return ok;
}

bool usi_half_steps_create(us_sim *s) {
    if (!s->contacts || s->model->integrator != US_INTEGRATOR_ADAPTIVE) return true;
    usi_half_steps *x = usi_alloc(&s->allocator, sizeof *x, _Alignof(usi_half_steps));
    if (!x) return false;
    memset(x, 0, sizeof *x);
    s->half = x;
    usi_arena_init(&x->arena, &s->allocator);
    x->model = *s->model;
    x->model.step *= 0.5;
    for (int i = 0; i < N_SOLVE; i++) {
        x->mode[i] = usi_arena_alloc(&x->arena, ((size_t)s->model->n_tree + 1) * sizeof *x->mode[i],
                                     _Alignof(uint64_t));
        if (!x->mode[i]) return false;
    }
    return make_states(s);
}

void usi_half_steps_destroy(us_sim *s) {
    if (!s->half) return;
    release_states(s);
    usi_arena_fini(&s->half->arena);
    usi_release(&s->allocator, s->half, sizeof *s->half, _Alignof(usi_half_steps));
    s->half = NULL;
}

bool usi_half_steps_grow(us_sim *s) {
    if (!s->half) return true;
    release_states(s);
    if (make_states(s)) return true;
    usi_half_steps_destroy(s);
    return false;
}

// One half, from s->now to s->next. False: it could not be taken, and the step stays as it is.
static bool take_half(us_sim *s, const us_model *whole, const us_command *command, uint64_t *out_mode) {
    usi_contacts *c = s->contacts;
    usi_forget_passed(c);
    if (usi_collide(c, &s->now.contact, s->now.q, s->now.v)) return false;
    usi_find_islands(c);
    // Encoders count time in whole steps.
    const us_model *half = s->model;
    s->model = whole;
    if (whole->n_actuated + whole->n_drive > 0) usi_make_joint_rows(s);
    s->model = half;
    if (!usi_solve_contacts_once(s, command)) return false;
    usi_contact_modes(c, &s->now.contact, &s->next.contact, out_mode);
    if (usi_integrate(s, command)) return false;
    usi_take_touched(s);
    if (usi_constrain(s)) return false;
    if (s->n_friction_row > 0)
        usi_stiction_move(whole, s->next.q, s->now.blockage, s->now.stuck, s->next.stuck);
    return true;
}

void usi_take_half_steps(us_sim *s, const us_command *command) {
    usi_half_steps *x = s->half;
    const us_model *whole = s->model;
    usi_contacts *c = s->contacts;
    const usi_state now = s->now, next = s->next;
    const us_error error = s->error;
    usi_events *events = s->events;
    const double fall_speed = c->fall_speed;
    x->is_good = false;
    if (s->is_trial || s->has_ghosts || usi_deformables_check(s)) return;
    memcpy(x->mid.block, next.block, s->state_size);
    memcpy(x->last.block, next.block, s->state_size);
    s->events = NULL;
    s->model = c->model = &x->model;
    c->fall_speed *= 0.5;
    s->next = x->mid;
    x->mid.tick[0] = x->last.tick[0] = now.tick[0];
    if (take_half(s, whole, command, x->mode[FIRST])) {
        s->now = x->mid;
        s->next = x->last;
        x->is_good = take_half(s, whole, command, x->mode[SECOND]);
    }
    s->now = now;
    s->next = next;
    s->events = events;
    s->model = c->model = whole;
    c->fall_speed = fall_speed;
    s->error = error;
}

// 2 b - a, of a tree's positions and velocities.
static void extrapolate(us_sim *s, const usi_tree *tree) {
    const us_model *m = s->model;
    const usi_state *b = &s->half->last;
    const usi_span nodes = {tree->first, tree->end};
    usi_difference(m, nodes, s->next.q, b->q, s->displacement);
    usi_add_range(m, b->q, s->displacement, s->next.q, nodes.first, nodes.end);
    const usi_node *root = &m->node[nodes.first];
    for (int k = 0; root->kind == USI_NODE_FREE && k < 3; k++)
        s->next.q[root->q + 4 + k] = b->q[root->q + 4 + k] + s->displacement[nodes.first + 3 + k];
    for (int32_t i = nodes.first; i < nodes.end; i++) {
        s->next.v[i] = 2 * b->v[i] - s->next.v[i];
        s->next.a[i] = (s->next.v[i] - s->now.v[i]) / m->step;
    }
}

void usi_refine_touched(us_sim *s) {
    const usi_half_steps *x = s->half;
    if (!x->is_good) return;
    usi_contact_modes(s->contacts, &s->now.contact, &s->next.contact, x->mode[WHOLE]);
    for (int32_t t = 0; t < s->model->n_tree; t++) {
        const uint64_t mode = x->mode[WHOLE][t];
        if (mode != 0 && mode == x->mode[FIRST][t] && mode == x->mode[SECOND][t] && usi_is_touched(s, t))
            extrapolate(s, &s->model->tree[t]);
    }
}
