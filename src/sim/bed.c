// Beds of soil in a world that steps: memory, what wheels and feet leave behind, snapshots.
//
// A bed belongs to the state, but is far too large to be kept twice: it is changed in place, when a step has turned out good. What was in the soil
// during the step is pressed into it, in the order in which it was found; then the soil flows, as many columns as would flow in a step's time.
//
// Its memory is addresses whose pages come from the system cleared: what nothing has touched takes none. Snapshots have the tiles that were touched.
#include <string.h>

#include "base/pages.h"
#include "contact/soil.h"
#include "sim/sim.h"

enum { RING = 1 << 18, MOST_FLOW = 5000 };
// m/s: slower wheels leave the soil as it is.
static const double SLOW = 5e-3;

// ---------------------------------------------------------------- life

static int32_t ground_units(const void *context, int32_t x, int32_t y) {
    const usi_bed *bed = context;
    double u = (x - 0.5 * (bed->n_x - 1)) * bed->spacing, v = (y - 0.5 * (bed->n_y - 1)) * bed->spacing;
    return (int32_t)lrint(usi_ground_at(bed->shape, u, v) / USI_BED_UNIT);
}

static size_t n_column(const usi_bed *bed) { return (size_t)bed->n_x * (size_t)bed->n_y; }
static int32_t n_tile_y(const usi_bed *bed) { return (bed->n_y + USI_BED_TILE - 1) / USI_BED_TILE; }
static size_t n_tile(const usi_bed *bed) { return (size_t)bed->n_tile_x * (size_t)n_tile_y(bed); }
static size_t bytes_of(const usi_bed *bed) { return n_column(bed) * 7 + (RING + n_tile(bed)) * 4 + 64; }

static bool make_bed(usi_bed *bed, const us_model *m, const usi_bed_row *row) {
    *bed = (usi_bed){.n_x = row->n_x,
                     .n_y = row->n_y,
                     .spacing = row->spacing,
                     .depth = row->depth,
                     .ground = ground_units,
                     .ground_context = bed,
                     .shape = &m->geom[row->geom],
                     .cap = RING,
                     .n_tile_x = (row->n_x + USI_BED_TILE - 1) / USI_BED_TILE};
    char *memory = usi_pages_reserve(bytes_of(bed));
    if (!memory) return false;
    size_t n = n_column(bed);
    bed->change = (int32_t *)(void *)memory;
    bed->ring = (uint32_t *)(void *)(memory + 4 * n);
    bed->version = bed->ring + RING;
    bed->pressed = (uint16_t *)(void *)(bed->version + n_tile(bed));
    bed->flag = (uint8_t *)(bed->pressed + n);
    return true;
}

us_status usi_beds_create(us_sim *s) {
    const us_model *m = s->model;
    if (m->n_bed == 0) return US_OK;
    s->bed = usi_alloc(&s->allocator, (size_t)m->n_bed * sizeof *s->bed, _Alignof(usi_bed));
    if (!s->bed) return US_ERR_MEMORY;
    memset(s->bed, 0, (size_t)m->n_bed * sizeof *s->bed);
    for (int32_t i = 0; i < m->n_bed; i++) {
        if (!make_bed(&s->bed[i], m, &m->bed[i])) return US_ERR_MEMORY;
    }
    s->contacts->bed = s->bed;
    return US_OK;
}

void usi_beds_destroy(us_sim *s) {
    for (int32_t i = 0; s->bed && i < s->model->n_bed; i++) {
        if (s->bed[i].change) usi_pages_free(s->bed[i].change, bytes_of(&s->bed[i]));
    }
    usi_release(&s->allocator, s->bed, (size_t)s->model->n_bed * sizeof *s->bed, _Alignof(usi_bed));
}

typedef struct tile {
    int32_t x0, y0, x1, y1;  // columns
} tile;

static tile tile_of(const usi_bed *bed, size_t i) {
    int32_t x = (int32_t)(i % (size_t)bed->n_tile_x) * USI_BED_TILE, y = (int32_t)(i / (size_t)bed->n_tile_x) * USI_BED_TILE;
    return (tile){x, y, x + USI_BED_TILE < bed->n_x ? x + USI_BED_TILE : bed->n_x, y + USI_BED_TILE < bed->n_y ? y + USI_BED_TILE : bed->n_y};
}

// Versions go on, so that whoever looks sees the change.
static void clear_bed(usi_bed *bed) {
    for (size_t i = 0; i < n_tile(bed); i++) {
        if (bed->version[i] == 0) continue;
        tile t = tile_of(bed, i);
        for (int32_t y = t.y0; y < t.y1; y++) {
            size_t at = usi_bed_at(bed, t.x0, y), n = (size_t)(t.x1 - t.x0);
            memset(bed->change + at, 0, 4 * n);
            memset(bed->pressed + at, 0, 2 * n);
            memset(bed->flag + at, 0, n);
        }
        bed->version[i]++;
    }
    // Active columns may lie beside the tiles that changed.
    for (uint32_t i = 0; i < bed->n; i++) bed->flag[bed->ring[(bed->head + i) & (bed->cap - 1)]] = 0;
    bed->head = bed->n = bed->turn = 0;
    bed->digest = bed->pressed_digest = 0;
    bed->lowest = bed->highest = 0;
    bed->n_lost = 0;
}

void usi_beds_clear(us_sim *s) {
    for (int32_t i = 0; s->bed && i < s->model->n_bed; i++) clear_bed(&s->bed[i]);
}

// ---------------------------------------------------------------- prints

enum { MOST_PRINT = 96 };  // columns each way

// The columns around a place, as far as they are in the bed. False: none, or too many.
static bool columns_around(const usi_bed *bed, double x, double y, double reach_x, double reach_y, tile *out) {
    double cx = x / bed->spacing + 0.5 * (bed->n_x - 1), cy = y / bed->spacing + 0.5 * (bed->n_y - 1);
    double rx = reach_x / bed->spacing, ry = reach_y / bed->spacing;
    out->x0 = (int32_t)fmax(0, ceil(cx - rx)), out->x1 = (int32_t)fmin(bed->n_x, floor(cx + rx) + 1);
    out->y0 = (int32_t)fmax(0, ceil(cy - ry)), out->y1 = (int32_t)fmin(bed->n_y, floor(cy + ry) + 1);
    return out->x1 > out->x0 && out->y1 > out->y0 && out->x1 - out->x0 <= MOST_PRINT && out->y1 - out->y0 <= MOST_PRINT;
}

static double column_x(const usi_bed *bed, int32_t i) { return (i - 0.5 * (bed->n_x - 1)) * bed->spacing; }
static double column_y(const usi_bed *bed, int32_t j) { return (j - 0.5 * (bed->n_y - 1)) * bed->spacing; }

static us_vec3 to_bed(us_pose X_WG, usi_v4 p) { return us_quat_rotate(us_quat_conj(X_WG.q), us_vec3_sub(usi_v4_vec3(p), X_WG.p)); }
static us_vec3 turn_to_bed(us_pose X_WG, usi_v4 d) { return us_quat_rotate(us_quat_conj(X_WG.q), usi_v4_vec3(d)); }

// The columns around a wheel as far as it covers them: under it, and one row behind it.
static bool wheel_columns(const usi_bed *bed, const usi_sunk *k, us_pose X_WG, tile *out) {
    double reach = us_soil_radius(&k->wheel) * sin(fmin(k->reaction.parts.entry, 1.5)) + 1.5 * bed->spacing, half = 0.5 * k->wheel.width;
    us_vec3 hub = to_bed(X_WG, k->hub), ahead = turn_to_bed(X_WG, k->ahead), left = turn_to_bed(X_WG, k->left);
    double rx = reach * fabs(ahead.x) + half * fabs(left.x), ry = reach * fabs(ahead.y) + half * fabs(left.y);
    return k->sinkage > 0 && columns_around(bed, hub.x, hub.y, rx, ry, out);
}

// What a wheel has rolled over, behind its hub, lies as deep as its rim. What is under it before the hub does not rise, and stands until the hub has
// come to it. Nor does anything rise in the rut just behind the wheel: what is pressed out comes up beside it.
static void print_wheel(usi_bed *bed, const usi_sunk *k, us_pose X_WG, double compaction) {
    double r = us_soil_radius(&k->wheel), half = 0.5 * k->wheel.width, reach = r * sin(fmin(k->reaction.parts.entry, 1.5));
    us_vec3 hub = to_bed(X_WG, k->hub), ahead = turn_to_bed(X_WG, k->ahead), left = turn_to_bed(X_WG, k->left), up = turn_to_bed(X_WG, k->up);
    bool is_rolling = fmax(fabs(k->vx), fabs(r * k->spin)) >= SLOW, any = false;
    tile t;
    int32_t to[MOST_PRINT * MOST_PRINT];
    if (!wheel_columns(bed, k, X_WG, &t)) return;
    for (int32_t j = t.y0; j < t.y1; j++) {
        for (int32_t i = t.x0; i < t.x1; i++) {
            int32_t *goal = &to[(j - t.y0) * (t.x1 - t.x0) + i - t.x0];
            double dx = column_x(bed, i) - hub.x, dy = column_y(bed, j) - hub.y;
            *goal = INT32_MAX;
            // Where the column meets the rim from below: (dx, dy, z) on the cylinder around the axle.
            double a = dx * ahead.x + dy * ahead.y, n = dx * up.x + dy * up.y, A = ahead.z * ahead.z + up.z * up.z;
            double B = a * ahead.z + n * up.z, C = a * a + n * n - r * r, D = B * B - A * C;
            if (D < 0) continue;
            double z = (-B - sqrt(D)) / A, along = k->way * (a + z * ahead.z), side = dx * left.x + dy * left.y + z * left.z;
            if (fabs(side) > half || along > reach || along < -reach - 1.5 * bed->spacing) continue;
            bed->flag[usi_bed_at(bed, i, j)] |= USI_BED_COVERED;
            if (along > 0 || along < -reach) continue;
            *goal = (int32_t)lrint((hub.z + z) / USI_BED_UNIT);
            any = true;
        }
    }
    if (any && is_rolling) usi_bed_press(bed, t.x0, t.y0, t.x1, t.y1, to, compaction);
}

// When the soil has flowed: what is covered is found anew in the next step.
static void uncover_wheel(usi_bed *bed, const usi_sunk *k, us_pose X_WG) {
    tile t;
    if (!wheel_columns(bed, k, X_WG, &t)) return;
    for (int32_t j = t.y0; j < t.y1; j++) {
        for (int32_t i = t.x0; i < t.x1; i++) bed->flag[usi_bed_at(bed, i, j)] &= (uint8_t)~USI_BED_COVERED;
    }
}

// A ball's print is its own form; another foot's share of one is level.
static void print_foot(usi_bed *bed, const usi_sunk *k, const usi_point_now *p, us_pose X_WG, double compaction) {
    if (!(k->sinkage > 0)) return;
    us_vec3 bottom = to_bed(X_WG, p->p_B);
    double half = k->radius > 0 ? sqrt(fmin(k->sinkage, k->radius) * (2 * k->radius - fmin(k->sinkage, k->radius))) : 0.5 * sqrt(k->area);
    tile t;
    int32_t to[MOST_PRINT * MOST_PRINT];
    if (!columns_around(bed, bottom.x, bottom.y, half, half, &t)) {
        // Smaller than a column: it takes the nearest one down by its share.
        double grow = half > 0 ? bed->spacing * bed->spacing / (4 * half * half) : 1;
        if (half >= bed->spacing || !columns_around(bed, bottom.x, bottom.y, 0.5 * bed->spacing, 0.5 * bed->spacing, &t)) return;
        t.x1 = t.x0 + 1, t.y1 = t.y0 + 1;
        to[0] = (int32_t)lrint((bottom.z + k->sinkage * (1 - fmin(1, 1 / grow))) / USI_BED_UNIT);
        usi_bed_press(bed, t.x0, t.y0, t.x1, t.y1, to, compaction);
        return;
    }
    for (int32_t j = t.y0; j < t.y1; j++) {
        for (int32_t i = t.x0; i < t.x1; i++) {
            double dx = column_x(bed, i) - bottom.x, dy = column_y(bed, j) - bottom.y, square = dx * dx + dy * dy, rise = 0;
            bool is_in = k->radius <= 0 || square < half * half;
            if (k->radius > 0 && is_in) rise = k->radius - sqrt(fmax(k->radius * k->radius - square, 0));
            to[(j - t.y0) * (t.x1 - t.x0) + i - t.x0] = is_in ? (int32_t)lrint((bottom.z + rise) / USI_BED_UNIT) : INT32_MAX;
        }
    }
    usi_bed_press(bed, t.x0, t.y0, t.x1, t.y1, to, compaction);
}

void usi_beds_step(us_sim *s) {
    const us_model *m = s->model;
    const usi_contacts *c = s->contacts;
    for (int32_t i = 0; i < c->n_sunk; i++) {
        const usi_sunk *k = &c->sunk[i];
        const usi_geom *g = &m->geom[k->ground];
        if (g->bed < 0) continue;
        double compaction = usi_sunk_soil(c, &s->now.contact, k)->compaction;
        if (k->is_wheel)
            print_wheel(&s->bed[g->bed], k, g->X_NG, compaction);
        else
            print_foot(&s->bed[g->bed], k, &c->point[k->point], g->X_NG, compaction);
    }
    double gravity = us_vec3_norm(m->gravity);
    for (int32_t i = 0; i < m->n_bed; i++) {
        usi_bed *bed = &s->bed[i];
        if (bed->n == 0 && bed->n_lost == 0) continue;
        const us_soil *soil = &s->now.contact.soil[m->bed[i].soil];
        usi_bed_law law = usi_bed_law_of(soil, bed->spacing, gravity);
        // A column's soil falls by one spacing in about sqrt(spacing / g): that is how long looking once at all of them lasts.
        double share = m->step * sqrt(fmax(gravity, 0.01) / bed->spacing), most = ceil(share * bed->n);
        usi_bed_settle(bed, &law, most < MOST_FLOW ? (int64_t)most : MOST_FLOW);
    }
    for (int32_t i = 0; i < c->n_sunk; i++) {
        const usi_sunk *k = &c->sunk[i];
        const usi_geom *g = &m->geom[k->ground];
        if (g->bed >= 0 && k->is_wheel) uncover_wheel(&s->bed[g->bed], k, g->X_NG);
    }
}

// ---------------------------------------------------------------- snapshots

typedef struct bed_header {
    int64_t n_lost;
    uint64_t digest, pressed_digest;
    int32_t lowest, highest;
    uint32_t n, turn;
    uint64_t n_tile;  // that follow, each with its number
} bed_header;

static size_t tile_bytes(const usi_bed *bed, size_t i) {
    tile t = tile_of(bed, i);
    return 8 + (size_t)(t.x1 - t.x0) * (size_t)(t.y1 - t.y0) * 7;
}

static char *put(char *to, const void *from, size_t n) {
    memcpy(to, from, n);
    return to + n;
}

static size_t save_bed(const usi_bed *bed, char *to) {
    bed_header h = {bed->n_lost, bed->digest, bed->pressed_digest, bed->lowest, bed->highest, bed->n, bed->turn, 0};
    size_t length = sizeof h + 4 * (size_t)bed->n;
    for (size_t i = 0; i < n_tile(bed); i++) {
        if (bed->version[i] > 0) h.n_tile++, length += tile_bytes(bed, i);
    }
    if (!to) return length;
    to = put(to, &h, sizeof h);
    for (uint32_t i = 0; i < bed->n; i++) to = put(to, &bed->ring[(bed->head + i) & (bed->cap - 1)], 4);
    for (size_t i = 0; i < n_tile(bed); i++) {
        if (bed->version[i] == 0) continue;
        uint64_t number = i;
        tile t = tile_of(bed, i);
        to = put(to, &number, sizeof number);
        for (int32_t y = t.y0; y < t.y1; y++) {
            size_t at = usi_bed_at(bed, t.x0, y), n = (size_t)(t.x1 - t.x0);
            to = put(to, bed->change + at, 4 * n);
            to = put(to, bed->pressed + at, 2 * n);
            to = put(to, bed->flag + at, n);
        }
    }
    return length;
}

size_t usi_beds_save(const us_sim *s, char *to) {
    size_t length = 0;
    for (int32_t i = 0; s->bed && i < s->model->n_bed; i++) length += save_bed(&s->bed[i], to ? to + length : NULL);
    return length;
}

// Whether what follows is a bed's, and how long it is.
static bool check_bed(const usi_bed *bed, const char *from, size_t left, size_t *out_length) {
    bed_header h;
    if (left < sizeof h) return false;
    memcpy(&h, from, sizeof h);
    if (h.n > bed->cap || h.n_tile > n_tile(bed) || left - sizeof h < 4 * (size_t)h.n) return false;
    size_t at = sizeof h;
    for (uint32_t i = 0; i < h.n; i++, at += 4) {
        uint32_t column;
        memcpy(&column, from + at, 4);
        if (column >= n_column(bed)) return false;
    }
    for (uint64_t i = 0; i < h.n_tile; i++) {
        uint64_t number;
        if (left - at < sizeof number) return false;
        memcpy(&number, from + at, sizeof number);
        if (number >= n_tile(bed) || left - at < tile_bytes(bed, number)) return false;
        at += tile_bytes(bed, number);
    }
    *out_length = at;
    return true;
}

static const char *take(void *to, const char *from, size_t n) {
    memcpy(to, from, n);
    return from + n;
}

static void load_bed(usi_bed *bed, const char *from) {
    bed_header h;
    clear_bed(bed);
    from = take(&h, from, sizeof h);
    bed->n_lost = h.n_lost, bed->digest = h.digest, bed->pressed_digest = h.pressed_digest, bed->lowest = h.lowest, bed->highest = h.highest;
    bed->n = h.n, bed->turn = h.turn, bed->head = 0;
    for (uint32_t i = 0; i < h.n; i++) from = take(&bed->ring[i], from, 4);
    for (uint64_t i = 0; i < h.n_tile; i++) {
        uint64_t number;
        from = take(&number, from, sizeof number);
        tile t = tile_of(bed, number);
        for (int32_t y = t.y0; y < t.y1; y++) {
            size_t at = usi_bed_at(bed, t.x0, y), n = (size_t)(t.x1 - t.x0);
            from = take(bed->change + at, from, 4 * n);
            from = take(bed->pressed + at, from, 2 * n);
            from = take(bed->flag + at, from, n);
        }
        bed->version[number]++;
    }
    for (uint32_t i = 0; i < h.n; i++) bed->flag[bed->ring[i]] |= USI_BED_ACTIVE;
}

bool usi_beds_restore(us_sim *s, const char *from, size_t length) {
    size_t at = 0;
    for (int32_t i = 0; s->bed && i < s->model->n_bed; i++) {
        size_t one = 0;
        if (!check_bed(&s->bed[i], from + at, length - at, &one)) return false;
        at += one;
    }
    if (at != length) return false;
    at = 0;
    for (int32_t i = 0; s->bed && i < s->model->n_bed; i++) {
        size_t one = 0;
        if (check_bed(&s->bed[i], from + at, length - at, &one)) load_bed(&s->bed[i], from + at);
        at += one;
    }
    return true;
}

uint64_t usi_beds_hash(const us_sim *s, uint64_t seed) {
    uint64_t h = seed;
    for (int32_t i = 0; s->bed && i < s->model->n_bed; i++) {
        const usi_bed *bed = &s->bed[i];
        const uint64_t numbers[] = {bed->digest, bed->pressed_digest, bed->n, bed->turn};
        h = us_hash_bytes(h, numbers, sizeof numbers);
        uint32_t first = bed->cap - bed->head < bed->n ? bed->cap - bed->head : bed->n;
        h = us_hash_bytes(h, bed->ring + bed->head, 4 * (size_t)first);
        h = us_hash_bytes(h, bed->ring, 4 * (size_t)(bed->n - first));
    }
    return h;
}

// The beds change places: the old world gets the untouched ones, and is given up.
void usi_beds_carry(us_sim *from, us_sim *to, bool (*is_same)(const us_model *, int32_t, const us_model *, int32_t)) {
    for (int32_t i = 0; to->bed && i < to->model->n_bed; i++) {
        for (int32_t k = 0; from->bed && k < from->model->n_bed; k++) {
            const usi_bed_row *a = &to->model->bed[i], *b = &from->model->bed[k];
            if (a->n_x != b->n_x || a->n_y != b->n_y || a->spacing != b->spacing || a->depth != b->depth) continue;
            if (!is_same(to->model, a->geom, from->model, b->geom)) continue;
            usi_bed old = from->bed[k], fresh = to->bed[i];
            to->bed[i] = old, to->bed[i].shape = fresh.shape, to->bed[i].ground_context = &to->bed[i];
            from->bed[k] = fresh, from->bed[k].shape = old.shape, from->bed[k].ground_context = &from->bed[k];
            break;
        }
    }
}

// ---------------------------------------------------------------- questions

int32_t us_sim_n_bed(const us_sim *s) { return s ? s->model->n_bed : 0; }

static const usi_bed *bed_at(const us_sim *s, int32_t i) { return s && i >= 0 && i < s->model->n_bed ? &s->bed[i] : NULL; }

us_bed_info us_sim_get_bed(const us_sim *s, int32_t i) {
    const usi_bed *bed = bed_at(s, i);
    if (!bed) return (us_bed_info){.shape = -1};
    const usi_geom *g = &s->model->geom[s->model->bed[i].geom];
    return (us_bed_info){.shape = g->shape,
                         .n_x = bed->n_x,
                         .n_y = bed->n_y,
                         .spacing = bed->spacing,
                         .X_WB = g->X_NG,
                         .n_tile_x = bed->n_tile_x,
                         .n_tile_y = n_tile_y(bed),
                         .digest = bed->digest,
                         .n_active = bed->n + bed->n_lost,
                         .lowest = USI_BED_UNIT * bed->lowest,
                         .highest = USI_BED_UNIT * bed->highest};
}

static bool has_tile(const usi_bed *bed, int32_t u, int32_t v) { return bed && u >= 0 && v >= 0 && u < bed->n_tile_x && v < n_tile_y(bed); }

uint32_t us_sim_get_bed_version(const us_sim *s, int32_t i, int32_t u, int32_t v) {
    const usi_bed *bed = bed_at(s, i);
    return has_tile(bed, u, v) ? bed->version[(size_t)v * (size_t)bed->n_tile_x + (size_t)u] : 0;
}

us_status us_sim_get_bed_tile(const us_sim *s, int32_t i, int32_t u, int32_t v, float *out_height, float *out_change) {
    const usi_bed *bed = bed_at(s, i);
    if (!has_tile(bed, u, v)) return US_ERR_ARG;
    tile t = tile_of(bed, (size_t)v * (size_t)bed->n_tile_x + (size_t)u);
    for (int32_t y = t.y0, k = 0; y < t.y1; y++) {
        for (int32_t x = t.x0; x < t.x1; x++, k++) {
            if (out_height) out_height[k] = (float)usi_bed_height(bed, x, y);
            if (out_change) out_change[k] = (float)(USI_BED_UNIT * bed->change[usi_bed_at(bed, x, y)]);
        }
    }
    return US_OK;
}

us_status us_sim_set_soil(us_sim *s, us_material material, const us_soil *soil, us_error *err) {
    if (!s || !soil || material.i < 0 || material.i >= s->model->n_soil || !s->model->material[material.i].is_soil)
        return us_error_set(err, US_ERR_ARG, NULL, "name a material that has a <soil>", "this material is no soil");
    us_status status = us_soil_check(soil, err);
    if (!status) status = usi_soil_map_check(s->model, material.i, soil, err);
    if (status) return status;
    us_soil copy = *soil;
    copy.reserved = 0;
    s->now.contact.soil[material.i] = copy;
    return US_OK;
}

us_status us_sim_get_soil(const us_sim *s, us_material material, us_soil *out_soil) {
    if (!s || !out_soil || material.i < 0 || material.i >= s->model->n_soil || !s->model->material[material.i].is_soil) return US_ERR_ARG;
    *out_soil = s->now.contact.soil[material.i];
    return US_OK;
}

us_status us_sim_set_region(us_sim *s, int32_t region, us_material material) {
    if (!s || region < 0 || region >= s->model->n_region || material.i < 0 || material.i >= s->model->n_material) return US_ERR_ARG;
    s->now.contact.region[region] = material.i;
    return US_OK;
}

us_material us_sim_get_region(const us_sim *s, int32_t region) {
    return (us_material){s && region >= 0 && region < s->model->n_region ? s->now.contact.region[region] : -1};
}

int32_t us_sim_n_sunk(const us_sim *s) { return s && s->contacts ? s->contacts->n_sunk : 0; }

us_sunk_info us_sim_get_sunk(const us_sim *s, int32_t i) {
    us_sunk_info out = {.body = {-1}, .soil = {-1}, .sinkage = NAN, .slip = NAN, .slip_angle = NAN, .moment = NAN};
    out.force = out.place = us_vec3_make(NAN, NAN, NAN);
    if (i < 0 || i >= us_sim_n_sunk(s)) return out;
    const usi_contacts *c = s->contacts;
    const usi_sunk *k = &c->sunk[i];
    const usi_anchor *a = &s->now.contact.anchor[k->point];
    // What is kept is the impulse on the ground, which stands still.
    usi_v4 force = usi_v4_from(a->g) * (-1 / s->model->step);
    out.body = (us_body){s->model->geom[k->geom].body};
    out.soil = (us_material){k->material};
    out.is_wheel = k->is_wheel;
    out.sinkage = k->sinkage;
    out.place = usi_v4_vec3(c->point[k->point].p);
    out.force = usi_v4_vec3(force);
    out.slip = out.slip_angle = out.moment = 0;
    if (!k->is_wheel) return out;
    out.is_buried = k->reaction.parts.is_buried;
    out.slip = k->reaction.slip.slip, out.slip_angle = k->reaction.slip.left * k->reaction.slip.angle;
    out.force = us_vec3_make(usi_v4_dot(force, k->ahead), usi_v4_dot(force, k->left), usi_v4_dot(force, k->up));
    out.moment = k->reaction.moment.y;
    return out;
}
