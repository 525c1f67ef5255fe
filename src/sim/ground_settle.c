// Ground models of somebody else after a step: they hear what each column carried, and change the ground.
//
// The columns under bodies are covered meanwhile, as those under feet are: what the library's automaton moves
// afterwards does not flow in there.
#include "contact/soil.h"
#include "sim/sim.h"

// The bed of a ground, for writing.
static usi_deformable *bed_of(const us_ground *g) { return g->host; }

static bool has_column(const us_ground *g, int32_t i, int32_t j) {
    return i >= 0 && j >= 0 && i < g->n_x && j < g->n_y;
}

static bool set_change(const us_ground *g, int32_t i, int32_t j, double change) {
    const double units = change / USI_DEFORMABLE_UNIT;
    return has_column(g, i, j) && fabs(units) < 2e9 &&
           usi_deformable_set(bed_of(g), i, j, llrint(units), bed_of(g)->is_flowing);
}

static bool set_column(const us_ground *g, int32_t i, int32_t j, const double *numbers) {
    const int32_t n = bed_of(g)->n_extra;
    if (!has_column(g, i, j) || !numbers || n == 0) return false;
    for (int32_t k = 0; k < n; k++) {
        if (!isfinite(numbers[k])) return false;
    }
    return usi_deformable_set_extra(bed_of(g), i, j, numbers);
}

static void cover(usi_deformable *bed, const us_ground_node *node, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (node[i].sinkage > 0) usi_deformable_cover(bed, node[i].i, node[i].j);
    }
}

// Collects the patches of a bed: nodes one behind the other. Returns how many nodes there are.
static int32_t find_patches(us_sim *s, int32_t bed, int32_t *out_n_patch) {
    const usi_contacts *c = s->contacts;
    us_ground_node *node = c->collide.ground_node;
    int32_t n = 0, n_patch = 0;
    for (int32_t i = 0; i < c->collide.n_soil_contact;) {
        const usi_soil_contact *k = &c->collide.soil_contact[i];
        const int32_t end = k->is_node ? usi_ground_patch_end(c, i) : i + 1;
        if (k->is_node && s->model->geom[k->ground].patch == bed) {
            c->collide.ground_patch[n_patch++] = usi_ground_patch(c, &s->now.contact, i, end, node + n);
            for (int32_t at = i; at < end; at++) {
                const us_vec3 *g = &s->now.contact.anchor[c->collide.soil_contact[at].point].g;
                node[n++] = usi_ground_node(c, &s->now.contact, at, g);
            }
        }
        i = end;
    }
    *out_n_patch = n_patch;
    return n;
}

void usi_settle_grounds(us_sim *s) {
    const us_model *m = s->model;
    usi_contacts *c = s->contacts;
    for (int32_t i = 0; i < m->n_deformable; i++) {
        const us_ground_model *model = m->patch[i].model >= 0 ? &m->ground_model[m->patch[i].model] : NULL;
        usi_deformable *bed = &s->patch[i];
        if (!model || !model->settle || bed->is_held) continue;
        us_ground ground = usi_ground_of(c, &s->now.contact, i);
        ground.set_change = set_change;
        ground.set_column = set_column;
        int32_t n_patch = 0;
        const int32_t n = find_patches(s, i, &n_patch);
        cover(bed, c->collide.ground_node, n);
        model->settle(&ground, bed->own, c->collide.ground_patch, n_patch, model->user);
    }
}

void usi_uncover_grounds(us_sim *s) {
    const usi_contacts *c = s->contacts;
    for (int32_t i = 0; i < c->collide.n_soil_contact; i++) {
        const usi_soil_contact *k = &c->collide.soil_contact[i];
        if (k->is_node)
            usi_deformable_uncover(&s->patch[s->model->geom[k->ground].patch], k->column[0], k->column[1]);
    }
}

// ---------------------------------------------------------------- questions

static const usi_deformable *bed_at(const us_sim *s, int32_t bed, int32_t *out_n) {
    if (out_n) *out_n = 0;
    return s && bed >= 0 && bed < s->model->n_deformable ? &s->patch[bed] : NULL;
}

const double *us_sim_view_ground_state(const us_sim *s, int32_t bed, int32_t *out_n) {
    const usi_deformable *b = bed_at(s, bed, out_n);
    if (!b || b->n_own == 0) return NULL;
    if (out_n) *out_n = b->n_own;
    return b->own;
}

const double *us_sim_view_ground_column(const us_sim *s, int32_t bed, int32_t i, int32_t j, int32_t *out_n) {
    const usi_deformable *b = bed_at(s, bed, out_n);
    if (!b || b->n_extra == 0 || i < 0 || j < 0 || i >= b->n_x || j >= b->n_y) return NULL;
    if (out_n) *out_n = b->n_extra;
    return usi_deformable_extra(b, usi_deformable_column(b, i, j));
}
