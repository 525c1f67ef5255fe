// Ground that is paged in, and what varies over it.
//
// Contact reads a field under the grown boxes of shapes and nowhere else, and these boxes hold for many
// steps: the pairs of near shapes are found anew when a shape leaves its own (collide.c). That is when the
// tiles are asked for. Over the plane of the field each box is two intervals, and so is each tile; where both
// overlap, the tile is needed:
//
//           x ->
//      +--------+--------+--------+
//      |        |  +-----|--+     |      the box of a wheel, grown: tiles 1 and 2
//    y |   0    |  | 1   |2 |     |
//      |        |  +-----|--+     |      and the same moved on for LEAD seconds, grown by some samples: what
//      is read ahead
//      +--------+--------+--------+
//
// A tile that is needed is waited for, so that results do not depend on the disk. What lies beyond the
// field's edge is no ground.
//
// Soil in a patch flows where wheels have been, for some seconds after they have left: the ground under its
// tiles with busy columns is needed as well. When a quiet tile of a patch gets such columns, the ask is made
// anew before the next step, in which they may be looked at.
#include "contact/residency.h"
#include "contact/contact__collide.h"
#include "contact/contact__parts.h"

#include "geom/geom.h"
#include "soil/deformable.h"

// Read ahead: where a shape gets in this time, s, and this many samples around it. A tile takes some
// milliseconds to read.
static const double LEAD = 2;
enum { AROUND = 32 };
// Contact looks at the neighbours of the cells under a box, and one more is for rounding.
enum { RIM = 3 };
// Columns of a patch beyond a box: a wheel looks one ahead, covers two behind it, and wakes their neighbours,
// whose own neighbours are looked at.
enum { BED_RIM = 5 };

struct usi_residency {
    const us_height_field *field;
    us_pose X_WG;
    us_mat3 R_WG;
    double more;    // m, that the field itself reaches out of its surface
    double x, y;    // m, of the field's middle in the ground's frame: a map's may be elsewhere
    int32_t patch;  // 1 + the number of the patch that flows by it; 0: none
    usi_pager_client *client;
};

// A field whose middle is at a place of a ground, with a patch (-1: without).
static us_status add_footing(usi_contacts *c, const usi_geom *g, const us_height_field *field, us_vec3 middle,
                             int32_t patch) {
    usi_residency *ground = &c->residency[c->n_paged];
    *ground = (usi_residency){.field = field,
                              .X_WG = {g->X_NG.q, us_pose_point(g->X_NG, middle)},
                              .R_WG = us_quat_matrix(g->X_NG.q),
                              .x = middle.x,
                              .y = middle.y,
                              .patch = patch + 1};
    // As collide.c grows the shapes of the world, and a millimetre.
    ground->more = g->margin + g->geom.radius + 1e-3;
    if (patch >= 0) ground->more += (double)BED_RIM * c->model->patch[patch].spacing;
    us_status status = usi_pager_client_create(field->pager, &ground->client);
    if (!status) c->n_paged++;
    return status;
}

us_status usi_residency_create(usi_contacts *c) {
    const us_model *m = c->model;
    int32_t n = 0;
    for (int32_t i = 0; i < m->n_geom; i++)
        n += m->geom[i].geom.kind == US_GEOM_HEIGHT_FIELD && m->geom[i].geom.field->pager;
    for (int32_t i = 0; i < m->n_soil_map; i++)
        n += m->soil_map[i].paged != NULL;
    if (n == 0) return US_OK;
    c->residency = usi_arena_alloc(&c->fixed, (size_t)n * sizeof *c->residency, USI_ALIGN);
    if (!c->residency) return US_ERR_MEMORY;
    us_status status = US_OK;
    for (int32_t i = 0; i < m->n_geom && !status; i++) {
        const usi_geom *g = &m->geom[i];
        if (g->geom.kind == US_GEOM_HEIGHT_FIELD && g->geom.field->pager)
            status = add_footing(c, g, g->geom.field, us_vec3_make(0, 0, 0), g->patch);
    }
    // What varies over a ground is read where the ground is.
    for (int32_t i = 0; i < m->n_soil_map && !status; i++) {
        const usi_soil_map *r = &m->soil_map[i];
        const usi_geom *g = &m->geom[r->geom];
        if (r->paged)
            status = add_footing(c, g, r->paged, us_vec3_make(r->x, r->y, 0),
                                 g->has_region || g->has_flow_map ? g->patch : -1);
    }
    return status;
}

void usi_residency_destroy(usi_contacts *c) {
    for (int32_t i = 0; i < c->n_paged; i++)
        usi_pager_client_destroy(c->residency[i].client);
    c->n_paged = 0;
}

static int32_t sample_at(double x, double spacing, int32_t n, int32_t more) {
    double i = floor(x / spacing + 0.5 * (n - 1)) + more;
    // A little beyond the ends is as good as far beyond; and a box that is not finite is nowhere.
    return i > -2 ? (i < n + 1 ? (int32_t)i : n + 1) : -2;
}

// The samples of a field under a box of the world, whatever its height, and so many more around it.
static usi_window window_under(const usi_residency *g, us_aabb box, int32_t around) {
    const double *R = g->R_WG.m;
    us_vec3 middle = us_vec3_scale(0.5, us_vec3_add(box.min, box.max)), half = us_vec3_sub(box.max, middle);
    us_vec3 p = us_quat_rotate(us_quat_conj(g->X_WG.q), us_vec3_sub(middle, g->X_WG.p));
    double x = fabs(R[0]) * half.x + fabs(R[3]) * half.y + fabs(R[6]) * half.z + g->more;
    double y = fabs(R[1]) * half.x + fabs(R[4]) * half.y + fabs(R[7]) * half.z + g->more;
    const us_height_field *f = g->field;
    return (usi_window){
        sample_at(p.x - x, f->dx, f->n_x, -around), sample_at(p.x + x, f->dx, f->n_x, 1 + around),
        sample_at(p.y - y, f->dy, f->n_y, -around), sample_at(p.y + y, f->dy, f->n_y, 1 + around)};
}

// The samples around a tile of a patch and the columns that flow there may look at.
static usi_window window_of_tile(const usi_residency *g, const usi_deformable *patch, uint32_t place) {
    const us_height_field *f = g->field;
    int32_t u = (int32_t)(place % (uint32_t)patch->n_tile_x),
            v = (int32_t)(place / (uint32_t)patch->n_tile_x);
    const int32_t reach = USI_DEFORMABLE_REACH + 1;
    double side = (double)(USI_DEFORMABLE_TILE - 2 + 2 * reach) * patch->spacing,
           x = (u * USI_DEFORMABLE_TILE - reach - 0.5 * (patch->n_x - 1)) * patch->spacing - g->x;
    double y = (v * USI_DEFORMABLE_TILE - reach - 0.5 * (patch->n_y - 1)) * patch->spacing - g->y;
    return (usi_window){
        sample_at(x, f->dx, f->n_x, -1), sample_at(x + side + patch->spacing, f->dx, f->n_x, 2),
        sample_at(y, f->dy, f->n_y, -1), sample_at(y + side + patch->spacing, f->dy, f->n_y, 2)};
}

static void need_busy(const usi_residency *g, const usi_deformable *patch) {
    if (patch->is_held) return;
    for (uint32_t i = 1; i <= patch->n_tile; i++) {
        if (patch->spot[i].n_busy > 0)
            usi_pager_need(g->client, window_of_tile(g, patch, patch->spot[i].place));
    }
}

// All that a box passes over when it moves by d.
static us_aabb moved_on(us_aabb box, usi_v4 d) {
    us_vec3 v = usi_v4_vec3(d);
    box.min = us_vec3_add(box.min, us_vec3_make(fmin(v.x, 0), fmin(v.y, 0), fmin(v.z, 0)));
    box.max = us_vec3_add(box.max, us_vec3_make(fmax(v.x, 0), fmax(v.y, 0), fmax(v.z, 0)));
    return box;
}

static us_aabb carrier_box(const usi_contacts *c, const usi_collision_body *k) {
    us_aabb all = c->collide.fat[k->first_geom].box;
    for (int32_t g = k->first_geom + 1; g < k->end_geom; g++) {
        const us_aabb *b = &c->collide.fat[g].box;
        all.min =
            us_vec3_make(fmin(all.min.x, b->min.x), fmin(all.min.y, b->min.y), fmin(all.min.z, b->min.z));
        all.max =
            us_vec3_make(fmax(all.max.x, b->max.x), fmax(all.max.y, b->max.y), fmax(all.max.z, b->max.z));
    }
    return all;
}

static us_status wait_all(usi_contacts *c) {
    us_status status = US_OK;
    for (int32_t i = 0; i < c->n_paged && !status; i++)
        status = usi_pager_wait(c->residency[i].client, &c->residency_error);
    c->is_residency_error = status != US_OK;
    return status;
}

// The patch of a ground; NULL: it has none.
static usi_deformable *patch_of(const usi_contacts *c, const usi_residency *g) {
    return g->patch > 0 && c->patch ? &c->patch[g->patch - 1] : NULL;
}

bool usi_residency_is_due(const usi_contacts *c) {
    for (int32_t i = 0; i < c->n_paged; i++) {
        const usi_deformable *patch = patch_of(c, &c->residency[i]);
        if (patch && patch->has_stirred && !patch->is_held) return true;
    }
    return false;
}

us_status usi_residency_ask(usi_contacts *c) {
    for (int32_t i = 0; i < c->n_paged; i++) {
        const usi_residency *g = &c->residency[i];
        usi_pager_begin(g->client);
        // All that is needed before anything that is expected: a tile is in one list.
        for (int pass = 0; pass < 2; pass++) {
            for (int32_t n = 0; n < c->n_collision_body; n++) {
                const usi_collision_body *k = &c->collide.collision_body[n];
                bool is_still = c->ghost && k->tree >= 0 && c->ghost[k->tree] == USI_GHOST_STILL;
                if (k->node < 0 || is_still || k->first_geom == k->end_geom) continue;
                us_aabb box = carrier_box(c, k);
                if (pass == 0)
                    usi_pager_need(g->client, window_under(g, box, RIM));
                else
                    usi_pager_expect(g->client, window_under(g, moved_on(box, LEAD * k->v), AROUND));
            }
            if (pass == 0 && patch_of(c, g)) need_busy(g, patch_of(c, g));
        }
    }
    us_status status = wait_all(c);
    for (int32_t i = 0; i < c->n_paged; i++) {
        usi_deformable *patch = patch_of(c, &c->residency[i]);
        if (patch) patch->has_stirred = status != US_OK;
    }
    return status;
}

// Whether a window of a ground has a tile that could not be read.
static bool is_lost(const usi_residency *g, usi_window w) { return usi_pager_is_broken(g->client, w); }

void usi_residency_find_lost(const usi_contacts *c, uint8_t *out_lost) {
    for (int32_t i = 0; i < c->n_paged; i++) {
        const usi_residency *g = &c->residency[i];
        for (int32_t n = 0; n < c->n_collision_body; n++) {
            const usi_collision_body *k = &c->collide.collision_body[n];
            if (k->node < 0 || usi_is_still_ghost(c, k->tree) || k->first_geom == k->end_geom) continue;
            if (is_lost(g, window_under(g, carrier_box(c, k), RIM))) out_lost[k->tree] = 1;
        }
        const usi_deformable *patch = patch_of(c, g);
        for (uint32_t t = 1; patch && !patch->is_held && t <= patch->n_tile; t++) {
            if (patch->spot[t].n_busy > 0 && is_lost(g, window_of_tile(g, patch, patch->spot[t].place)))
                out_lost[c->model->n_tree + g->patch - 1] = 1;
        }
    }
}

us_status usi_residency_look_at_flow(usi_contacts *c, int32_t patch) {
    for (int32_t i = 0; i < c->n_paged; i++) {
        const usi_residency *g = &c->residency[i];
        const usi_deformable *p = patch_of(c, g);
        usi_pager_begin(g->client);
        for (uint32_t t = 1; p && g->patch == patch + 1 && t <= p->n_tile; t++) {
            if (p->spot[t].n_busy > 0) usi_pager_need(g->client, window_of_tile(g, p, p->spot[t].place));
        }
    }
    c->collide.is_fat_valid = false;
    return wait_all(c);
}

us_status usi_residency_look(usi_contacts *c, us_aabb box) {
    for (int32_t i = 0; i < c->n_paged; i++) {
        usi_pager_begin(c->residency[i].client);
        usi_pager_need(c->residency[i].client, window_under(&c->residency[i], box, RIM));
    }
    c->collide.is_fat_valid = false;
    return wait_all(c);
}

usi_pager_info usi_residency_info(const usi_contacts *c, int32_t residency, int64_t *out_n_wait) {
    *out_n_wait = usi_pager_n_wait(c->residency[residency].client);
    return usi_pager_get_info(c->residency[residency].field->pager);
}
