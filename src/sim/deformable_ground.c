// Beds of soil in a world that steps: memory and snapshots.
//
// A patch belongs to the state, but is far too large to be kept twice: it is changed in place, when a step
// has turned out good (deformable_print.c).
//
// Its memory is addresses whose pages come from the system cleared: what nothing has touched takes none.
// Snapshots have the tiles that were touched. A patch has a bound, bed-memory. A step may go beyond it by
// what a single step can touch, and the next one is refused: so there is always room, and the state is whole.
//
// Ground that is paged in lies below a patch like any other: contact/residency.c sees to it that it is there
// under all columns that may flow.
#include <stddef.h>
#include <string.h>

#include "base/pages.h"
#include "base/sound.h"
#include "contact/residency.h"
#include "contact/soil.h"
#include "sim/sim.h"

enum { RING = 1 << 18 };

// ---------------------------------------------------------------- life

static int32_t ground_units(const void *context, int32_t x, int32_t y) {
    const usi_deformable *patch = context;
    double u = (x - 0.5 * (patch->n_x - 1)) * patch->spacing,
           v = (y - 0.5 * (patch->n_y - 1)) * patch->spacing;
    return (int32_t)lrint(usi_ground_at(patch->shape, u, v) / USI_DEFORMABLE_UNIT);
}

static int32_t n_tile_y(const usi_deformable *patch) {
    return (patch->n_y + USI_DEFORMABLE_TILE - 1) / USI_DEFORMABLE_TILE;
}
static size_t n_tile(const usi_deformable *patch) {
    return (size_t)patch->n_tile_x * (size_t)n_tile_y(patch);
}

// Bytes of a tile's numbers of a ground model.
static size_t extra_bytes(const usi_deformable *patch) {
    return (size_t)USI_DEFORMABLE_COLUMNS * (size_t)patch->n_extra * sizeof *patch->extra;
}

// The arrays of a patch one behind the other, the first two in whole pages of any size.
typedef struct layout {
    size_t extra, spot, ring, slot, size;
} layout;

static layout layout_of(const usi_deformable *patch) {
    const size_t page = 1 << 16, n = (size_t)patch->max_tile + 1;
    layout l = {.extra = (n * sizeof *patch->tile + page - 1) / page * page};
    l.spot = l.extra + (n * extra_bytes(patch) + page - 1) / page * page;
    l.ring = l.spot + n * sizeof *patch->spot;
    l.slot = l.ring + 2 * (size_t)RING * sizeof *patch->ring;
    l.size = l.slot + n_tile(patch) * sizeof *patch->slot;
    return l;
}

static uint32_t limit_of(const us_model *m, const usi_deformable_row *row) {
    const us_ground_model *models = m->ground_model;
    const int32_t n = models && row->model >= 0 ? models[row->model].n_column_state : 0;
    const size_t more = (size_t)USI_DEFORMABLE_COLUMNS * (size_t)n * sizeof(double);
    return (uint32_t)fmax(1, row->memory / (double)(sizeof(usi_deformable_tile) + more));
}

static bool make_patch(usi_deformable *patch, const us_model *m, const usi_deformable_row *row,
                       int32_t max_contact) {
    const us_ground_model *model = row->model >= 0 ? &m->ground_model[row->model] : NULL;
    *patch = (usi_deformable){.n_x = row->n_x,
                              .n_y = row->n_y,
                              .spacing = row->spacing,
                              .depth = row->depth,
                              .ground = ground_units,
                              .ground_context = patch,
                              .shape = &m->geom[row->geom],
                              .cap = RING,
                              .has_stirred = true,
                              .n_own = model ? model->n_state : 0,
                              .n_extra = model ? model->n_column_state : 0,
                              .is_flowing = !model || model->is_flowing,
                              .n_tile_x = (row->n_x + USI_DEFORMABLE_TILE - 1) / USI_DEFORMABLE_TILE};
    // A print lies in nine tiles, few in more, and a column that is looked at may reach three more, and two
    // of the face that it belongs to.
    size_t max = (size_t)limit_of(m, row) + 9 * (size_t)max_contact + 5 * USI_MAX_FLOW;
    patch->max_tile = (uint32_t)(max < n_tile(patch) ? max : n_tile(patch));
    layout l = layout_of(patch);
    char *memory = usi_pages_reserve(l.size);
    if (!memory) return false;
    patch->tile = (usi_deformable_tile *)(void *)memory;
    patch->extra = (double *)(void *)(memory + l.extra);
    patch->spot = (usi_deformable_tile_info *)(void *)(memory + l.spot);
    patch->ring = (uint32_t *)(void *)(memory + l.ring);
    patch->wait = patch->ring + RING;
    patch->slot = (uint32_t *)(void *)(memory + l.slot);
    return true;
}

us_status usi_deformables_create(us_sim *s) {
    const us_model *m = s->model;
    if (m->n_deformable == 0) return US_OK;
    s->patch = usi_alloc(&s->allocator, (size_t)m->n_deformable * sizeof *s->patch, _Alignof(usi_deformable));
    if (!s->patch) return US_ERR_MEMORY;
    memset(s->patch, 0, (size_t)m->n_deformable * sizeof *s->patch);
    for (int32_t i = 0; i < m->n_deformable; i++) {
        if (!make_patch(&s->patch[i], m, &m->patch[i], s->max_contact)) return US_ERR_MEMORY;
    }
    s->contacts->patch = s->patch;
    return US_OK;
}

void usi_deformables_destroy(us_sim *s) {
    for (int32_t i = 0; s->patch && i < s->model->n_deformable; i++) {
        if (s->patch[i].tile) usi_pages_free(s->patch[i].tile, layout_of(&s->patch[i]).size);
    }
    usi_release(&s->allocator, s->patch, (size_t)s->model->n_deformable * sizeof *s->patch,
                _Alignof(usi_deformable));
}

// A patch that has grown before another one finds no memory may stay so.
bool usi_deformables_grow(us_sim *s, int32_t max_contact) {
    const us_model *m = s->model;
    for (int32_t i = 0; s->patch && i < m->n_deformable; i++) {
        usi_deformable *old = &s->patch[i], fresh;
        if (!make_patch(&fresh, m, &m->patch[i], max_contact)) return false;
        if (fresh.max_tile <= old->max_tile) {
            usi_pages_free(fresh.tile, layout_of(&fresh).size);
            continue;
        }
        const size_t n = (size_t)old->n_tile + 1;
        memcpy(fresh.tile, old->tile, n * sizeof *old->tile);
        memcpy(fresh.extra, old->extra, n * extra_bytes(old));
        memcpy(fresh.spot, old->spot, n * sizeof *old->spot);
        memcpy(fresh.ring, old->ring, 2 * (size_t)RING * sizeof *old->ring);
        memcpy(fresh.slot, old->slot, n_tile(old) * sizeof *old->slot);
        usi_deformable grown = *old;
        grown.tile = fresh.tile;
        grown.extra = fresh.extra;
        grown.spot = fresh.spot;
        grown.ring = fresh.ring;
        grown.wait = fresh.wait;
        grown.slot = fresh.slot;
        grown.max_tile = fresh.max_tile;
        usi_pages_free(old->tile, layout_of(old).size);
        *old = grown;
    }
    return true;
}

typedef struct tile {
    int32_t x0, y0, x1, y1;  // columns
} tile;

static tile tile_of(const usi_deformable *patch, size_t place) {
    int32_t x = (int32_t)(place % (size_t)patch->n_tile_x) * USI_DEFORMABLE_TILE,
            y = (int32_t)(place / (size_t)patch->n_tile_x) * USI_DEFORMABLE_TILE;
    return (tile){x, y, x + USI_DEFORMABLE_TILE < patch->n_x ? x + USI_DEFORMABLE_TILE : patch->n_x,
                  y + USI_DEFORMABLE_TILE < patch->n_y ? y + USI_DEFORMABLE_TILE : patch->n_y};
}

// The memory of its tiles goes back.
static void clear_patch(usi_deformable *patch) {
    for (uint32_t i = 1; i <= patch->n_tile; i++)
        patch->slot[patch->spot[i].place] = 0;
    if (patch->n_tile > 0) usi_pages_drop(patch->tile, ((size_t)patch->n_tile + 1) * sizeof *patch->tile);
    if (patch->n_tile > 0 && patch->n_extra > 0)
        usi_pages_drop(patch->extra, ((size_t)patch->n_tile + 1) * extra_bytes(patch));
    memset(patch->own, 0, sizeof patch->own);
    patch->extra_digest = 0;
    patch->n_tile = patch->head = patch->n = patch->n_wait = patch->turn = 0;
    patch->digest = patch->pressed_digest = patch->flag_digest = 0;
    patch->lowest = patch->highest = 0;
    patch->n_lost = 0;
    patch->has_stirred = true;
}

void usi_deformables_clear(us_sim *s) {
    for (int32_t i = 0; s->patch && i < s->model->n_deformable; i++)
        clear_patch(&s->patch[i]);
}

us_status usi_deformables_check(us_sim *s) {
    for (int32_t i = 0; s->patch && i < s->model->n_deformable; i++) {
        const usi_deformable_row *row = &s->model->patch[i];
        if (s->patch[i].n_tile <= limit_of(s->model, row)) continue;
        return us_error_set(&s->error, US_ERR_LIMIT, NULL,
                            "write a larger bed-memory=\"...\" at the height field, or a larger bed: columns "
                            "twice as far apart take a quarter",
                            "tick %lld: wheels and feet have touched %u tiles of the bed of soil, more than "
                            "fit into bed-memory=\"%.6g MB\"",
                            (long long)s->now.tick[0], s->patch[i].n_tile, row->memory / 1e6);
    }
    return US_OK;
}

// ---------------------------------------------------------------- snapshots

typedef struct patch_header {
    int64_t n_lost;
    uint64_t digest, pressed_digest, flag_digest;
    int32_t lowest, highest;
    uint32_t n, n_wait, turn;
    uint32_t n_tile;
} patch_header;

// The ground model's own numbers; columns of the ring and those that wait, 4 bytes each; tiles in the order
// in which they were touched, each with its place and its numbers.
static size_t length_of(const usi_deformable *patch, const patch_header *h) {
    return sizeof *h + (size_t)patch->n_own * sizeof *patch->own + 4 * ((size_t)h->n + h->n_wait) +
           h->n_tile * (4 + sizeof(usi_deformable_tile) + extra_bytes(patch));
}

static char *put(char *to, const void *from, size_t n) {
    memcpy(to, from, n);
    return to + n;
}

static size_t save_patch(const usi_deformable *patch, char *to) {
    patch_header h = {
        patch->n_lost,  patch->digest, patch->pressed_digest, patch->flag_digest, patch->lowest,
        patch->highest, patch->n,      patch->n_wait,         patch->turn,        patch->n_tile};
    if (!to) return length_of(patch, &h);
    to = put(to, &h, sizeof h);
    to = put(to, patch->own, (size_t)patch->n_own * sizeof *patch->own);
    for (uint32_t i = 0; i < patch->n; i++)
        to = put(to, &patch->ring[(patch->head + i) & (patch->cap - 1)], 4);
    to = put(to, patch->wait, 4 * (size_t)patch->n_wait);
    for (uint32_t i = 1; i <= patch->n_tile; i++) {
        to = put(to, &patch->spot[i].place, 4);
        to = put(to, &patch->tile[i], sizeof *patch->tile);
        to = put(to, usi_deformable_extra(patch, i << USI_DEFORMABLE_TILE_BITS), extra_bytes(patch));
    }
    return length_of(patch, &h);
}

size_t usi_deformables_save(const us_sim *s, char *to) {
    size_t length = 0;
    for (int32_t i = 0; s->patch && i < s->model->n_deformable; i++)
        length += save_patch(&s->patch[i], to ? to + length : NULL);
    return length;
}

// Whether numbers of a ground model are finite, and it can go on with them.
static bool are_numbers_sound(const us_ground_model *model, const char *from, int32_t n, bool is_column) {
    double numbers[USI_DEFORMABLE_OWN];
    memcpy(numbers, from, (size_t)n * sizeof *numbers);
    return usi_are_numbers(numbers, (size_t)n) &&
           (n == 0 || !model || !model->check || model->check(numbers, is_column, model->user));
}

static bool are_changes_sound(const usi_deformable *patch, const char *from) {
    for (size_t k = 0; k < USI_DEFORMABLE_COLUMNS; k++) {
        int32_t change;
        memcpy(&change, from + offsetof(usi_deformable_tile, change) + k * sizeof change, sizeof change);
        if (!usi_deformable_may_be(patch, change)) return false;
    }
    return true;
}

// Whether what follows is a patch's, and how long it is.
static bool check_patch(const usi_deformable *patch, const us_ground_model *model, const char *from,
                        size_t left, size_t *out_length) {
    patch_header h;
    if (left < sizeof h) return false;
    memcpy(&h, from, sizeof h);
    if (h.n > patch->cap || h.n_wait > patch->cap || h.n_tile > patch->max_tile ||
        left < length_of(patch, &h) || h.n_lost < 0 || h.n_lost > (int64_t)h.n_tile * USI_DEFORMABLE_COLUMNS)
        return false;
    from += sizeof h;
    if (model && !are_numbers_sound(model, from, patch->n_own, false)) return false;
    from += (size_t)patch->n_own * sizeof *patch->own;
    for (uint32_t i = 0; i < h.n + h.n_wait; i++, from += 4) {
        uint32_t column;
        memcpy(&column, from, 4);
        if (column < USI_DEFORMABLE_COLUMNS || column >> USI_DEFORMABLE_TILE_BITS > h.n_tile) return false;
    }
    for (uint32_t i = 0; i < h.n_tile; i++) {
        uint32_t place;
        memcpy(&place, from, 4);
        if (place >= n_tile(patch)) return false;
        if (!are_changes_sound(patch, from + 4)) return false;
        from += 4 + sizeof *patch->tile;
        const size_t column = (size_t)patch->n_extra * sizeof *patch->extra;
        for (int32_t k = 0; column > 0 && k < USI_DEFORMABLE_COLUMNS; k++, from += column) {
            if (!are_numbers_sound(model, from, patch->n_extra, true)) return false;
        }
    }
    *out_length = length_of(patch, &h);
    return true;
}

static const char *take(void *to, const char *from, size_t n) {
    memcpy(to, from, n);
    return from + n;
}

static void load_patch(usi_deformable *patch, const char *from) {
    patch_header h;
    clear_patch(patch);
    from = take(&h, from, sizeof h);
    from = take(patch->own, from, (size_t)patch->n_own * sizeof *patch->own);
    patch->n_lost = h.n_lost;
    patch->digest = h.digest;
    patch->pressed_digest = h.pressed_digest;
    patch->flag_digest = h.flag_digest;
    patch->lowest = h.lowest;
    patch->highest = h.highest;
    patch->n = h.n;
    patch->n_wait = h.n_wait;
    patch->turn = h.turn;
    from = take(patch->ring, from, 4 * (size_t)h.n);
    from = take(patch->wait, from, 4 * (size_t)h.n_wait);
    for (uint32_t i = 0; i < h.n_tile; i++) {
        uint32_t place;
        from = take(&place, from, 4);
        uint32_t slot = usi_deformable_open_tile(patch, place);
        from = take(&patch->tile[slot], from, sizeof *patch->tile);
        from = take(usi_deformable_extra(patch, slot << USI_DEFORMABLE_TILE_BITS), from, extra_bytes(patch));
        usi_deformable_tile_info *spot = &patch->spot[slot];
        bool is_changed = false;
        for (int32_t k = 0; k < USI_DEFORMABLE_COLUMNS; k++) {
            spot->n_busy += patch->tile[slot].flag[k] & USI_DEFORMABLE_ACTIVE;
            is_changed = is_changed || patch->tile[slot].change[k] != 0;
        }
        if (is_changed) spot->version = ++patch->version ? patch->version : (patch->version = 1);
    }
    patch->extra_digest = patch->n_extra > 0 ? usi_deformable_extra_digest(patch) : 0;
}

static const us_ground_model *model_of(const us_sim *s, int32_t i) {
    const int32_t model = s->model->patch[i].model;
    return model >= 0 ? &s->model->ground_model[model] : NULL;
}

bool usi_deformables_restore(us_sim *s, const char *from, size_t length) {
    size_t at = 0;
    for (int32_t i = 0; s->patch && i < s->model->n_deformable; i++) {
        size_t one = 0;
        if (!check_patch(&s->patch[i], model_of(s, i), from + at, length - at, &one)) return false;
        at += one;
    }
    if (at != length) return false;
    at = 0;
    for (int32_t i = 0; s->patch && i < s->model->n_deformable; i++) {
        size_t one = 0;
        if (check_patch(&s->patch[i], model_of(s, i), from + at, length - at, &one))
            load_patch(&s->patch[i], from + at);
        at += one;
    }
    return true;
}

uint64_t usi_deformables_hash(const us_sim *s, uint64_t seed) {
    uint64_t h = seed;
    for (int32_t i = 0; s->patch && i < s->model->n_deformable; i++) {
        const usi_deformable *patch = &s->patch[i];
        const uint64_t numbers[] = {patch->digest,
                                    patch->pressed_digest,
                                    patch->flag_digest,
                                    patch->n,
                                    patch->n_wait,
                                    patch->turn,
                                    (uint64_t)patch->n_lost,
                                    (uint64_t)patch->lowest,
                                    (uint64_t)patch->highest,
                                    patch->n_tile};
        h = us_hash_bytes(h, numbers, sizeof numbers);
        if (s->model->patch[i].model >= 0) {
            h = us_hash_bytes(h, patch->own, (size_t)patch->n_own * sizeof *patch->own);
            h = us_hash_bytes(h, &patch->extra_digest, sizeof patch->extra_digest);
        }
        h = us_hash_bytes(h, patch->wait, 4 * (size_t)patch->n_wait);
        uint32_t first = patch->cap - patch->head < patch->n ? patch->cap - patch->head : patch->n;
        h = us_hash_bytes(h, patch->ring + patch->head, 4 * (size_t)first);
        h = us_hash_bytes(h, patch->ring, 4 * (size_t)(patch->n - first));
    }
    return h;
}

static us_status move_patch(usi_deformable *to, const us_ground_model *model, const usi_deformable *from,
                            const us_allocator *allocator) {
    size_t length = save_patch(from, NULL), same;
    char *bytes = usi_alloc(allocator, length, USI_ALIGN);
    if (!bytes) return US_ERR_MEMORY;
    save_patch(from, bytes);
    bool fits = check_patch(to, model, bytes, length, &same);
    if (fits) load_patch(to, bytes);
    usi_release(allocator, bytes, length, USI_ALIGN);
    return fits ? US_OK : US_ERR_LIMIT;
}

// What a ground model keeps means nothing to another one.
static bool is_same_ground_model(const us_model *m, int32_t a, const us_model *o, int32_t b) {
    if (a < 0 || b < 0) return a < 0 && b < 0;
    const us_ground_model *x = &m->ground_model[a], *y = &o->ground_model[b];
    return strcmp(x->name, y->name) == 0 && x->n_state == y->n_state &&
           x->n_column_state == y->n_column_state;
}

// The patches change places: the old world gets the untouched ones, and is given up. One with another bound
// goes over as by a snapshot, and before the others, since that may fail.
us_status usi_deformables_carry(us_sim *from, us_sim *to,
                                bool (*is_same)(const us_model *, int32_t, const us_model *, int32_t),
                                us_error *err) {
    const int32_t n = to->patch && from->patch ? to->model->n_deformable : 0;
    for (int32_t i = 0; i < 2 * n; i++) {
        usi_deformable *fresh = &to->patch[i % n];
        for (int32_t k = 0; k < from->model->n_deformable; k++) {
            usi_deformable *old = &from->patch[k];
            const usi_deformable_row *a = &to->model->patch[i % n], *b = &from->model->patch[k];
            if (a->n_x != b->n_x || a->n_y != b->n_y || a->spacing != b->spacing || a->depth != b->depth)
                continue;
            if (!is_same(to->model, a->geom, from->model, b->geom)) continue;
            if (!is_same_ground_model(to->model, a->model, from->model, b->model)) continue;
            bool is_as_large = old->max_tile == fresh->max_tile;
            us_status status =
                i < n && !is_as_large ? move_patch(fresh, model_of(to, i % n), old, &to->allocator) : US_OK;
            if (status == US_ERR_LIMIT)
                us_error_set(err, status, NULL, "leave bed-memory as large as it was",
                             "the ruts of a bed do not fit into its new bed-memory");
            if (status) return status;
            if (i < n || !is_as_large) break;
            usi_deformable kept = *old;
            *old = *fresh;
            old->shape = kept.shape;
            old->ground_context = old;
            kept.shape = fresh->shape;
            kept.ground_context = fresh;
            kept.has_stirred = true;
            *fresh = kept;
            break;
        }
    }
    return US_OK;
}

// ---------------------------------------------------------------- questions

int32_t us_sim_n_deformable(const us_sim *s) { return s ? s->model->n_deformable : 0; }

static const usi_deformable *patch_at(const us_sim *s, int32_t i) {
    return s && i >= 0 && i < s->model->n_deformable ? &s->patch[i] : NULL;
}

us_deformable_info us_sim_get_deformable(const us_sim *s, int32_t i) {
    const usi_deformable *patch = patch_at(s, i);
    if (!patch) return (us_deformable_info){.shape = -1};
    const usi_geom *g = &s->model->geom[s->model->patch[i].geom];
    return (us_deformable_info){.shape = g->shape,
                                .n_x = patch->n_x,
                                .n_y = patch->n_y,
                                .spacing = patch->spacing,
                                .X_WB = g->X_NG,
                                .n_tile_x = patch->n_tile_x,
                                .n_tile_y = n_tile_y(patch),
                                .n_touched = (int32_t)patch->n_tile,
                                .bytes = patch->n_tile * (sizeof *patch->tile + extra_bytes(patch)),
                                .memory = (size_t)s->model->patch[i].memory,
                                .digest = patch->digest,
                                .n_active = patch->n + patch->n_lost,
                                .lowest = USI_DEFORMABLE_UNIT * patch->lowest,
                                .highest = USI_DEFORMABLE_UNIT * patch->highest};
}

static bool has_tile(const usi_deformable *patch, int32_t u, int32_t v) {
    return patch && u >= 0 && v >= 0 && u < patch->n_tile_x && v < n_tile_y(patch);
}

// The number of a touched tile, from 1; 0: it is untouched, or not there.
static uint32_t slot_of(const usi_deformable *patch, int32_t u, int32_t v) {
    return has_tile(patch, u, v) ? patch->slot[(size_t)v * (size_t)patch->n_tile_x + (size_t)u] : 0;
}

uint32_t us_sim_get_deformable_version(const us_sim *s, int32_t i, int32_t u, int32_t v) {
    const usi_deformable *patch = patch_at(s, i);
    uint32_t slot = slot_of(patch, u, v);
    return slot ? patch->spot[slot].version : 0;
}

int32_t us_sim_find_deformable_tile(const us_sim *s, int32_t i, int32_t u, int32_t v) {
    return (int32_t)slot_of(patch_at(s, i), u, v) - 1;
}

us_status us_sim_get_deformable_touched(const us_sim *s, int32_t i, int32_t k, int32_t *out_u,
                                        int32_t *out_v) {
    const usi_deformable *patch = patch_at(s, i);
    if (!patch || k < 0 || k >= (int32_t)patch->n_tile || !out_u || !out_v) return US_ERR_ARG;
    uint32_t place = patch->spot[k + 1].place;
    *out_u = (int32_t)(place % (uint32_t)patch->n_tile_x);
    *out_v = (int32_t)(place / (uint32_t)patch->n_tile_x);
    return US_OK;
}

// Ground that is paged in is waited for.
static us_status look_at_ground(const us_sim *s, int32_t i, tile t) {
    const usi_geom *g = &s->model->geom[s->model->patch[i].geom];
    if (s->contacts->n_paged == 0) return US_OK;
    const usi_deformable *patch = &s->patch[i];
    us_aabb all = {us_vec3_make(INFINITY, INFINITY, 0), us_vec3_make(-INFINITY, -INFINITY, 0)};
    for (int k = 0; k < 4; k++) {
        us_vec3 p = us_pose_point(g->X_NG, us_vec3_make(usi_deformable_x(patch, k & 1 ? t.x1 - 1 : t.x0),
                                                        usi_deformable_y(patch, k & 2 ? t.y1 - 1 : t.y0), 0));
        all.min = us_vec3_make(fmin(all.min.x, p.x), fmin(all.min.y, p.y), 0);
        all.max = us_vec3_make(fmax(all.max.x, p.x), fmax(all.max.y, p.y), 0);
    }
    return usi_residency_look(s->contacts, all);
}

us_status us_sim_get_deformable_tile(const us_sim *s, int32_t i, int32_t u, int32_t v, float *out_height,
                                     float *out_change) {
    const usi_deformable *patch = patch_at(s, i);
    if (!has_tile(patch, u, v)) return US_ERR_ARG;
    tile t = tile_of(patch, (size_t)v * (size_t)patch->n_tile_x + (size_t)u);
    us_status status = out_height ? look_at_ground(s, i, t) : US_OK;
    for (int32_t y = t.y0, k = 0; y < t.y1 && !status; y++) {
        for (int32_t x = t.x0; x < t.x1; x++, k++) {
            if (out_height) out_height[k] = (float)usi_deformable_height(patch, x, y);
            if (out_change)
                out_change[k] = (float)(USI_DEFORMABLE_UNIT *
                                        usi_deformable_change(patch, usi_deformable_column(patch, x, y)));
        }
    }
    return status;
}

us_status us_sim_set_soil(us_sim *s, us_material material, const us_soil *soil, us_error *err) {
    if (!s || !soil || material.i < 0 || material.i >= s->model->n_soil ||
        !s->model->material[material.i].is_soil)
        return us_error_set(err, US_ERR_ARG, NULL, "name a material that has a <soil>",
                            "this material is no soil");
    us_status status = us_soil_check(soil, err);
    if (!status) status = usi_soil_map_check(s->model, material.i, soil, err);
    if (status) return status;
    us_soil copy = *soil;
    copy.reserved = 0;
    s->now.contact.soil[material.i] = copy;
    usi_report_soil(s, material.i, soil);
    return US_OK;
}

us_status us_sim_get_soil(const us_sim *s, us_material material, us_soil *out_soil) {
    if (!s || !out_soil || material.i < 0 || material.i >= s->model->n_soil ||
        !s->model->material[material.i].is_soil)
        return US_ERR_ARG;
    *out_soil = s->now.contact.soil[material.i];
    return US_OK;
}

us_status us_sim_set_region(us_sim *s, int32_t region, us_material material) {
    if (!s || region < 0 || region >= s->model->n_region || material.i < 0 ||
        material.i >= s->model->n_material)
        return US_ERR_ARG;
    s->now.contact.region[region] = material.i;
    usi_report_input(s, &(usi_input){.kind = USI_INPUT_REGION, .index = region, .other = material.i});
    return US_OK;
}

us_material us_sim_get_region(const us_sim *s, int32_t region) {
    return (us_material){s && region >= 0 && region < s->model->n_region ? s->now.contact.region[region]
                                                                         : -1};
}

int32_t us_sim_n_soil_contact(const us_sim *s) {
    return s && s->contacts ? s->contacts->collide.n_soil_contact : 0;
}

us_soil_contact us_sim_get_soil_contact(const us_sim *s, int32_t i) {
    us_soil_contact out = {
        .body = {-1}, .soil = {-1}, .sinkage = NAN, .slip = NAN, .slip_angle = NAN, .moment = NAN};
    out.force = out.place = us_vec3_make(NAN, NAN, NAN);
    if (i < 0 || i >= us_sim_n_soil_contact(s)) return out;
    const usi_contacts *c = s->contacts;
    const usi_soil_contact *k = &c->collide.soil_contact[i];
    const usi_anchor *a = &s->now.contact.anchor[k->point];
    // What is kept is the impulse on the ground, which stands still.
    usi_v4 force = usi_v4_from(a->g) * (-1 / s->model->step);
    out.body = (us_body){s->model->geom[k->geom].body};
    out.soil = (us_material){k->material};
    out.is_wheel = k->is_wheel;
    out.sinkage = k->sinkage;
    out.place = usi_v4_vec3(c->collide.point[k->point].p);
    out.force = usi_v4_vec3(force);
    out.slip = out.slip_angle = out.moment = 0;
    if (!k->is_wheel) return out;
    out.is_buried = k->reaction.parts.is_buried;
    out.slip = k->reaction.slip.slip;
    out.slip_angle = k->reaction.slip.left * k->reaction.slip.angle;
    out.force =
        us_vec3_make(usi_v4_dot(force, k->ahead), usi_v4_dot(force, k->left), usi_v4_dot(force, k->up));
    out.moment = k->reaction.moment.y;
    return out;
}
