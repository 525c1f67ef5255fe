// Holds: what stands on ground that cannot be read stops, and the rest of the world goes on.
//
// A tile of a site may be deleted, cut off or unreadable while the world runs. Without the heights under a
// tree of links nothing can be said about it: it stays where it is, without speed, and takes no part in
// contact, until the tile is back. Trees that loops and couplings join stop together. So does the flow of
// soil in a patch that reaches over such a tile.
//
//     step   collide --> ground is lost --> hold what needs it --> collide again --> ...
//     later  the tile is back --> it goes on from there, as if put there at rest
//
// What is held is part of the state. That it was is an input like others: a recording has it, since the disk
// will not fail again in the same way.
#include "base/memory.h"
#include "contact/residency.h"
#include "sim/sim.h"
#include "soil/deformable.h"

void usi_sim_set_hold_tap(us_sim *s, usi_hold_tap *tap, void *context) {
    s->hold_tap = tap;
    s->hold_context = context;
}

int32_t usi_sim_n_held(const us_sim *s) {
    int32_t n = 0;
    for (int32_t i = 0; i < s->model->n_hold; i++)
        n += s->now.held[i];
    return n;
}

us_status usi_hold_follow(us_sim *s) {
    const us_model *m = s->model;
    bool has_tree = false;
    if (m->n_hold == 0 || s->has_ghosts) return US_OK;
    for (int32_t t = 0; t < m->n_tree; t++)
        has_tree |= s->now.held[t];
    if (has_tree && usi_sim_make_marks(s)) return US_ERR_MEMORY;
    for (int32_t t = 0; t < m->n_tree && s->ghost; t++)
        s->ghost[t] = s->now.held[t] ? USI_GHOST_STILL : USI_OWN;
    for (int32_t i = 0; i < m->n_deformable && s->patch; i++) {
        s->patch[i].has_stirred |= s->patch[i].is_held;
        s->patch[i].is_held = s->now.held[m->n_tree + i];
    }
    s->contacts->ghost = has_tree ? s->ghost : NULL;
    s->contacts->pushed = has_tree ? s->pushed : NULL;
    s->contacts->collide.is_fat_valid = false;
    return US_OK;
}

us_status usi_sim_set_hold(us_sim *s, int32_t index, int32_t is_held) {
    const us_model *m = s->model;
    if (index < 0 || index >= m->n_hold || is_held < 0 || is_held > 1 || s->has_ghosts) return US_ERR_ARG;
    const uint8_t before = s->now.held[index];
    if (before == is_held) return US_OK;
    s->now.held[index] = (uint8_t)is_held;
    us_status status = usi_hold_follow(s);
    if (status) {
        s->now.held[index] = before;
        return status;
    }
    if (!is_held && index < m->n_tree) usi_sim_restart(s, index);
    return US_OK;
}

const char *usi_sim_held_name(const us_sim *s, int32_t index) {
    const us_model *m = s->model;
    if (index >= m->n_tree) return "the soil that flows";
    for (int32_t i = 0; i < m->n_body; i++) {
        if (m->body[i].node >= 0 && m->node[m->body[i].node].tree == index) return m->names + m->body_name[i];
    }
    return "";
}

void usi_stop_held(us_sim *s, int32_t tree, int32_t end) {
    const us_model *m = s->model;
    for (; tree < end; tree++) {
        if (!s->next.held[tree]) continue;
        for (int32_t i = m->tree[tree].first; i < m->tree[tree].end; i++)
            s->next.v[i] = s->next.a[i] = 0;
    }
}

// ---------------------------------------------------------------- ground that is lost

// Whether two trees are joined by a loop or coupling, of which the first is as `held` says and the second
// not: then the second becomes so.
static bool spread(uint8_t *held, int32_t a, int32_t b) {
    if (a < 0 || b < 0 || held[a] == held[b]) return false;
    held[a] = held[b] = 1;
    return true;
}

static void spread_over_joins(const us_model *m, uint8_t *held) {
    for (bool is_new = true; is_new;) {
        is_new = false;
        for (int32_t i = 0; i < m->n_loop; i++) {
            const int32_t a = m->loop[i].node_a, b = m->loop[i].node_b;
            if (a >= 0 && b >= 0) is_new |= spread(held, m->node[a].tree, m->node[b].tree);
        }
        for (int32_t i = 0; i < m->n_coupling; i++) {
            const usi_coupling *c = &m->coupling[i];
            for (int32_t k = 1; k < c->n_term; k++)
                is_new |= spread(held, m->node[c->v[0]].tree, m->node[c->v[k]].tree);
        }
    }
}

static void tell(us_sim *s, int32_t index, const us_error *why) {
    if (s->hold_tap)
        s->hold_tap(s->hold_context, &(usi_input){USI_INPUT_HOLD, index, why ? 1 : 0, 0, NULL}, why);
}

// Next takes what is found until now has it: both are as before when nothing is.
bool usi_hold_lost(us_sim *s) {
    const us_model *m = s->model;
    const us_error why = s->contacts->residency_error;
    if (!s->hold_tap || s->is_trial || s->has_ghosts || !s->has_stepped || why.code != US_ERR_IO ||
        usi_sim_make_marks(s))
        return false;
    for (int32_t i = 0; i < m->n_hold; i++)
        s->next.held[i] = s->now.held[i];
    usi_residency_find_lost(s->contacts, s->next.held);
    spread_over_joins(m, s->next.held);
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_hold; i++) {
        if (s->next.held[i] == s->now.held[i]) continue;
        s->now.held[i] = 1;
        tell(s, i, &why);
        n++;
    }
    return n > 0 && usi_hold_follow(s) == US_OK;
}

// Around a tree: further than the boxes of contact reach, m. Ground that is looked at and found is then
// enough for the steps that follow.
static const double AROUND = 1;

void usi_sim_release_held(us_sim *s) {
    const us_model *m = s->model;
    if (usi_sim_n_held(s) == 0 || s->has_ghosts) return;
    const size_t n = (size_t)m->n_tree + 1, bytes = n * sizeof(us_aabb), more = (size_t)m->n_hold;
    us_aabb *box = usi_alloc(&s->allocator, bytes, USI_ALIGN);
    uint8_t *held = usi_alloc(&s->allocator, more, 1);
    if (box && held) {
        usi_contacts_reach(s->contacts, s->now.q, s->now.v, 0, AROUND, box);
        for (int32_t i = 0; i < m->n_hold; i++) {
            held[i] = 0;
            if (!s->now.held[i]) continue;
            held[i] = i < m->n_tree ? usi_residency_look(s->contacts, box[i]) != US_OK
                                    : usi_residency_look_at_flow(s->contacts, i - m->n_tree) != US_OK;
        }
        spread_over_joins(m, held);
        for (int32_t i = 0; i < m->n_hold; i++) {
            if (!s->now.held[i] || held[i] || usi_sim_set_hold(s, i, 0)) continue;
            tell(s, i, NULL);
        }
        s->contacts->collide.is_fat_valid = false;
    }
    usi_release(&s->allocator, box, bytes, USI_ALIGN);
    usi_release(&s->allocator, held, more, 1);
}
