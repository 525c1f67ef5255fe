// Broad phase: a sweep along x for few boxes, and for many a hashed grid with one level per power of two of
// size, built anew at each call.
//
// The sweep. Boxes are put in buckets by their min.x. A box can overlap only those after it whose bucket is
// no later than that of its max.x: one run, compared eight at a time as floats that are rounded outwards;
// what passes is compared exactly. A thousand boxes in a cube have some ninety to compare with each, a dozen
// instructions of eight; ten thousand have four hundred, and then the grid is quicker.
//
// The grid. Each box has a level k, the smallest with 2^k m > its longest side, and lies in one cell of that
// level's grid, the cell of its min corner. Two boxes of the same level that overlap then lie in the same
// cell or in neighbouring ones:
//
//         +------+------+------+        A in the middle cell is compared with the entries after it in its own
//         |  +   |  +   |  +   |  y+1   cell, and with half of the neighbours: those marked + and the nine of
//         +------+------+------+        the layer z+1. The other half finds A. Cells that A's max corner does
//         |      |  A   |  +   |  y     not reach cannot hold a min corner of a box that overlaps: skipped.
//         +------+------+------+
//         |      |      |      |  y-1   A box of level k is compared also with all coarser levels c, in the
//         +------+------+------+        cells from floor(min / 2^c) - 1 to floor(max / 2^c): two or three on
//           x-1     x     x+1           each axis.
//
// The cells of one row (y, z, level) are stored side by side: bucket = (hash of the row + x) mod M. So the
// boxes of three neighbouring cells are one run in an array sorted by bucket, and all neighbours are five
// runs. Rows that fall on the same buckets are distinguished by the row's key, which every entry carries;
// cells of one row M apart by the boxes themselves.
//
// Boxes that are infinite, or of a level with few boxes, are tested against all others. Small levels are
// first merged into the next coarser one, which takes any smaller box.
//
// Pairs come out in the order of the buckets; counting sorts put them into the order (a, b).
//
// Keeping the order of the sweep from step to step would save its sorting, but would make memory part of the
// state.
#include <string.h>

#include "geom/broad.h"
#include "math/v4.h"

enum {
    LEVEL_MIN = -20,  // 2^-20 m: smaller boxes share the grid of 1 micrometre cells
    LEVEL_MAX = 40,   // 2^40 m: larger boxes are tested against all
    N_LEVEL = LEVEL_MAX - LEVEL_MIN + 1,
    LARGE = N_LEVEL,  // "level" of the boxes that are tested against all
    SWEEP = 1500,     // maximum number of boxes that are swept
    N_SIDE = 6,       // of a box
    FEW = 16,         // a level with no more boxes does not pay for a lookup of 27 cells by each smaller box
};

// Box as it is stored in a cell, in one cache line.
typedef struct box_entry {
    us_vec3 min, max;
    uint64_t row;  // level and the cell's y, z, 28 bits each: rows further apart than that do not touch
    int32_t id;    // index of the box
    uint32_t bucket;
} box_entry;

struct usi_broad {
    us_allocator allocator;
    size_t bytes;
    int32_t max_box, n_body, n_excluded;
    int64_t max_pair;
    int32_t *partner_start;   // n_body + 1: excluded partners of a body, those of larger number
    int32_t *partner;         // ascending within a body
    box_entry *sorted;        // max_box, by bucket
    box_entry *unsorted;      // max_box; the large ones at the end
    uint32_t *start;          // buckets + 3
    int32_t *count;           // max_box + 1
    usi_broad_pair *pair[2];  // max_pair each
    float *side[N_SIDE];      // SWEEP + 8: min and max, x y z, of the boxes in the order of the sweep
};

// A power of two of buckets, at least two per box.
static uint32_t bucket_count(int32_t n_box) {
    uint32_t n = 16;
    while (n < 2 * (uint32_t)n_box)
        n *= 2;
    return n;
}

// ---------------------------------------------------------------- memory

// Sorts the excluded pairs by counting: partners of each body, ascending, each once.
static void build_exclusion(usi_broad *broad, const usi_broad_def *def) {
    int32_t *start = broad->partner_start;
    memset(start, 0, ((size_t)broad->n_body + 1) * sizeof *start);
    for (int32_t i = 0; i < def->n_excluded; i++) {
        int32_t a = def->excluded[i].a, b = def->excluded[i].b;
        start[(a < b ? a : b) + 1]++;
    }
    for (int32_t i = 0; i < broad->n_body; i++)
        start[i + 1] += start[i];
    // Filled from each start on, in order; the starts move while they are used and are moved back at the end.
    for (int32_t i = 0; i < def->n_excluded; i++) {
        int32_t a = def->excluded[i].a, b = def->excluded[i].b, low = a < b ? a : b, high = a < b ? b : a;
        broad->partner[start[low]++] = high;
    }
    for (int32_t i = broad->n_body; i > 0; i--)
        start[i] = start[i - 1];
    start[0] = 0;
    for (int32_t body = 0; body < broad->n_body; body++) {
        // Shell sort: lists are short as a rule, but nothing keeps a caller from excluding one body from
        // thousands.
        int32_t *list = broad->partner + start[body], n = start[body + 1] - start[body], gap = 1;
        while (gap < n / 3)
            gap = 3 * gap + 1;
        for (; gap > 0; gap /= 3) {
            for (int32_t i = gap; i < n; i++) {
                int32_t value = list[i], j = i;
                for (; j >= gap && list[j - gap] > value; j -= gap)
                    list[j] = list[j - gap];
                list[j] = value;
            }
        }
    }
}

static bool is_excluded(const usi_broad *broad, int32_t body_a, int32_t body_b) {
    int32_t low = body_a < body_b ? body_a : body_b, high = body_a < body_b ? body_b : body_a;
    int32_t first = broad->partner_start[low], end = broad->partner_start[low + 1];
    while (first < end) {
        int32_t middle = first + (end - first) / 2;
        if (broad->partner[middle] == high) return true;
        if (broad->partner[middle] < high)
            first = middle + 1;
        else
            end = middle;
    }
    return false;
}

us_status usi_broad_create(const usi_broad_def *def, usi_broad **out_broad, us_error *err) {
    if (!def || !out_broad)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "the broad phase needs a definition and a place for the result");
    *out_broad = NULL;
    if (def->max_box < 0 || def->max_box > INT32_MAX / 4 || def->n_body < 0 || def->n_body == INT32_MAX ||
        def->max_pair < 0 || def->max_pair > INT32_MAX || def->n_excluded < 0 ||
        (def->n_excluded > 0 && !def->excluded)) {
        return us_error_set(err, US_ERR_ARG, NULL, "counts are 0 or more; at most 2^29 boxes and 2^31 pairs",
                            "the broad phase is asked for %d boxes, %d bodies, %lld pairs, %d exclusions",
                            def->max_box, def->n_body, (long long)def->max_pair, def->n_excluded);
    }
    for (int32_t i = 0; i < def->n_excluded; i++) {
        usi_broad_pair p = def->excluded[i];
        if (p.a < 0 || p.b < 0 || p.a >= def->n_body || p.b >= def->n_body) {
            return us_error_set(err, US_ERR_VALUE, NULL, "exclude bodies by their index, below n_body",
                                "excluded pair %d names bodies %d and %d, of %d", i, p.a, p.b, def->n_body);
        }
    }
    us_allocator allocator = def->allocator ? *def->allocator : us_allocator_default();
    size_t size = sizeof(usi_broad), n_box = (size_t)def->max_box, n_pair = (size_t)def->max_pair;
    size_t partner_start = usi_carve(&size, (size_t)def->n_body + 1, sizeof(int32_t));
    size_t partner = usi_carve(&size, (size_t)def->n_excluded, sizeof(int32_t));
    size_t sorted = usi_carve(&size, n_box, sizeof(box_entry)),
           unsorted = usi_carve(&size, n_box, sizeof(box_entry));
    size_t start = usi_carve(&size, (size_t)bucket_count(def->max_box) + 3, sizeof(uint32_t));
    size_t count = usi_carve(&size, n_box + 1, sizeof(int32_t));
    size_t pair0 = usi_carve(&size, n_pair, sizeof(usi_broad_pair)),
           pair1 = usi_carve(&size, n_pair, sizeof(usi_broad_pair));
    size_t n_swept = (size_t)(def->max_box < SWEEP ? def->max_box : SWEEP) + 8,
           side = usi_carve(&size, N_SIDE * n_swept, sizeof(float));
    char *block = usi_alloc(&allocator, size, USI_ALIGN);
    if (!block)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a broad phase of %d boxes",
                            def->max_box);
    usi_broad *broad = (usi_broad *)block;
    *broad = (usi_broad){allocator,
                         size,
                         def->max_box,
                         def->n_body,
                         def->n_excluded,
                         def->max_pair,
                         (int32_t *)(block + partner_start),
                         (int32_t *)(block + partner),
                         (box_entry *)(block + sorted),
                         (box_entry *)(block + unsorted),
                         (uint32_t *)(block + start),
                         (int32_t *)(block + count),
                         {(usi_broad_pair *)(block + pair0), (usi_broad_pair *)(block + pair1)},
                         {NULL}};
    for (size_t k = 0; k < N_SIDE; k++)
        broad->side[k] = (float *)(block + side) + k * n_swept;
    build_exclusion(broad, def);
    *out_broad = broad;
    return US_OK;
}

void usi_broad_destroy(usi_broad *broad) {
    if (!broad) return;
    us_allocator allocator = broad->allocator;
    usi_release(&allocator, broad, broad->bytes, USI_ALIGN);
}

// ---------------------------------------------------------------- cells

static us_status fail_box(const usi_broad_box *b, int32_t i, int32_t n_body, us_error *err) {
    if (b->body < 0 || b->body >= n_body) {
        return us_error_set(err, US_ERR_VALUE, NULL, "number bodies from 0 to n_body - 1",
                            "box %d belongs to body %d, of %d", i, b->body, n_body);
    }
    return us_error_set(err, US_ERR_VALUE, NULL,
                        "a NaN here is a pose that diverged; min must not exceed max",
                        "invalid box %d: min %g %g %g, max %g %g %g", i, b->box.min.x, b->box.min.y,
                        b->box.min.z, b->box.max.x, b->box.max.y, b->box.max.z);
}

// The level whose cells are longer than the box; LARGE when there is none.
static int32_t level_of(const us_aabb *box) {
    double x = box->max.x - box->min.x, y = box->max.y - box->min.y, z = box->max.z - box->min.z;
    double side = x > y ? x : y;
    side = side > z ? side : z;
    if (!(side < 0x1p40))
        return LARGE;  // infinite ones too; infinity - infinity is NaN and comes here as well
    if (side < 0x1p-20) return 0;
    // The exponent e of side = f 2^e, 1 <= f < 2, straight from the bits.
    uint64_t bits;
    memcpy(&bits, &side, sizeof bits);
    return (int32_t)(bits >> 52) - 1023 + 1 - LEVEL_MIN;
}

// Cells per metre of a level: a power of two, made from its exponent.
static double cells_per_metre(int32_t level) {
    uint64_t bits = (uint64_t)(1023 - (level + LEVEL_MIN)) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// floor(x / cell), kept where a 64-bit number can hold it. Monotonic, which is all that is needed far away.
static int64_t cell_of(double x, double per_cell) {
    double c = floor(x * per_cell);
    c = c > 0x1p60 ? 0x1p60 : c < -0x1p60 ? -0x1p60 : c;
    return (int64_t)c;
}

static uint64_t row_key(int32_t level, int64_t y, int64_t z) {
    const uint64_t low28 = (UINT64_C(1) << 28) - 1;
    return (uint64_t)(uint32_t)level << 56 | ((uint64_t)z & low28) << 28 | ((uint64_t)y & low28);
}

// Where the row's cell x is. The multiplier is 2^64 over the golden ratio, which spreads neighbouring keys
// far apart.
static uint32_t bucket_of(uint64_t row, int64_t x, uint32_t mask) {
    return ((uint32_t)((row * UINT64_C(0x9E3779B97F4A7C15)) >> 32) + (uint32_t)(uint64_t)x) & mask;
}

// Which level's grid each level uses: that of the next coarser one when it has few boxes. The coarsest few
// are tested against all.
static void choose_grids(const int32_t *n_of_level, int32_t *grid) {
    int32_t carried = 0, first = 0;
    for (int32_t k = 0; k < N_LEVEL; k++) {
        carried += n_of_level[k];
        if (carried > FEW) {
            for (int32_t j = first; j <= k; j++)
                grid[j] = k;
            first = k + 1;
            carried = 0;
        }
    }
    for (int32_t j = first; j < N_LEVEL; j++)
        grid[j] = LARGE;
    grid[LARGE] = LARGE;
}

// ---------------------------------------------------------------- pairs

typedef struct pair_search {
    const usi_broad *broad;
    const usi_broad_box *boxes;
    uint32_t mask;    // buckets - 1
    int64_t n, room;  // pairs found, pairs that fit
    usi_broad_pair *out;
} pair_search;

static inline bool overlap(const box_entry *a, const box_entry *b) {
    return (a->min.x <= b->max.x) & (b->min.x <= a->max.x) & (a->min.y <= b->max.y) & (b->min.y <= a->max.y) &
           (a->min.z <= b->max.z) & (b->min.z <= a->max.z);
}

// Adds a pair of overlapping boxes, unless their groups, masks, bodies or an exclusion forbid it.
static void add_pair(pair_search *s, int32_t i, int32_t j) {
    const usi_broad_box *A = &s->boxes[i], *B = &s->boxes[j];
    if (!(A->group & B->mask) || !(B->group & A->mask) || A->body == B->body) return;
    if (s->broad->n_excluded > 0 && is_excluded(s->broad, A->body, B->body)) return;
    if (s->n < s->room) s->out[s->n] = i < j ? (usi_broad_pair){i, j} : (usi_broad_pair){j, i};
    s->n++;
}

// Runs of the sorted entries that a box has to be compared with: collected first, so that their loads
// overlap.
typedef struct bucket_runs {
    int32_t n;
    struct {
        uint32_t first, end;
        uint64_t row;
    } run[2 * 9];
} bucket_runs;

// Appends a run without a branch, which the processor could not predict: always written, counted if wanted.
static inline void add_run(bucket_runs *r, uint64_t row, uint32_t first, uint32_t end, bool is_wanted) {
    r->run[r->n].first = first;
    r->run[r->n].end = end;
    r->run[r->n].row = row;
    r->n += is_wanted & (first < end);
}

// The cells x .. x + n - 1 of a row, n at most 3: one run of entries, or two where the buckets wrap.
static inline void add_cells(const pair_search *s, bucket_runs *r, uint64_t row, int64_t x, uint32_t n,
                             bool is_wanted) {
    const uint32_t *start = s->broad->start;
    uint32_t first = bucket_of(row, x, s->mask), end = first + n;
    if (end <= s->mask + 1) {
        add_run(r, row, start[first], start[end], is_wanted);
    } else {
        add_run(r, row, start[first], start[s->mask + 1], is_wanted);
        add_run(r, row, 0, start[end - s->mask - 1], is_wanted);
    }
}

// overlap() of many with one, four numbers at a time. An entry begins with min and max: four numbers from its
// start are min and max.x, four from max on are max and the row. The fourth lanes are given bounds that
// nothing exceeds, not even a row read as a number.
typedef struct bounds {
    usi_v4 min, max;
} bounds;

static inline bounds bounds_of(const box_entry *a) {
    return (bounds){{a->min.x, a->min.y, a->min.z, -INFINITY}, {a->max.x, a->max.y, a->max.z, INFINITY}};
}

static inline bool overlaps(const bounds *a, const box_entry *b) {
    usi_v4 low, high;
    memcpy(&low, (const char *)b + offsetof(box_entry, min), sizeof low);
    memcpy(&high, (const char *)b + offsetof(box_entry, max), sizeof high);
    usi_v4i apart = (a->min > high) | (low > a->max);
    return ((apart[0] | apart[1]) | (apart[2] | apart[3])) == 0;
}

static void add_found(pair_search *s, int32_t i, const int32_t *found, int32_t n) {
    // Every entry below n has been written; the analyzer does not follow the sum of outcomes that n is.
    for (int32_t k = 0; k < n; k++)
        add_pair(s, i, found[k]);  // NOLINT(clang-analyzer-core.CallAndMessage)
}

// Compares a box with runs of entries, without branches that depend on the outcome: each candidate is
// written, and counted if it overlaps.
static void compare_runs(pair_search *s, const box_entry *a, const bucket_runs *r) {
    enum { BATCH = 64 };
    int32_t found[BATCH], n = 0;
    const bounds at = bounds_of(a);
    for (int32_t k = 0; k < r->n; k++) {
        uint64_t row = r->run[k].row;
        const box_entry *b = s->broad->sorted + r->run[k].first, *end = s->broad->sorted + r->run[k].end;
        for (; b < end; b++) {
            found[n] = b->id;
            n += (b->row == row) & overlaps(&at, b);
            if (n == BATCH) {
                add_found(s, a->id, found, n);
                n = 0;
            }
        }
    }
    add_found(s, a->id, found, n);
}

// Pairs with neighbours of the same level: what follows in its own cell, and half of the cells around.
static void find_neighbours(pair_search *s, const box_entry *a, int32_t level, double per_cell) {
    int64_t x = cell_of(a->min.x, per_cell), y = cell_of(a->min.y, per_cell), z = cell_of(a->min.z, per_cell);
    bool reaches_x = cell_of(a->max.x, per_cell) > x, reaches_y = cell_of(a->max.y, per_cell) > y,
         reaches_z = cell_of(a->max.z, per_cell) > z;
    bucket_runs r;
    r.n = 0;
    add_run(&r, a->row, (uint32_t)(a - s->broad->sorted) + 1, s->broad->start[a->bucket + 1], true);
    add_cells(s, &r, a->row, x + 1, 1, reaches_x);
    uint32_t n = 2 + (uint32_t)reaches_x;
    add_cells(s, &r, row_key(level, y + 1, z), x - 1, n, reaches_y);
    add_cells(s, &r, row_key(level, y - 1, z + 1), x - 1, n, reaches_z);
    add_cells(s, &r, row_key(level, y, z + 1), x - 1, n, reaches_z);
    add_cells(s, &r, row_key(level, y + 1, z + 1), x - 1, n, reaches_y & reaches_z);
    compare_runs(s, a, &r);
}

// Pairs with boxes of a coarser level.
static void find_coarser(pair_search *s, const box_entry *a, int32_t level, double per_cell) {
    int64_t x0 = cell_of(a->min.x, per_cell) - 1, y0 = cell_of(a->min.y, per_cell) - 1,
            z0 = cell_of(a->min.z, per_cell) - 1;
    int64_t x1 = cell_of(a->max.x, per_cell), y1 = cell_of(a->max.y, per_cell),
            z1 = cell_of(a->max.z, per_cell);
    for (int64_t z = z0; z <= z1; z++) {
        bucket_runs r;
        r.n = 0;
        for (int64_t y = y0; y <= y1; y++)
            add_cells(s, &r, row_key(level, y, z), x0, (uint32_t)(x1 - x0 + 1), true);
        compare_runs(s, a, &r);
    }
}

// ---------------------------------------------------------------- the sweep

// Rounding outwards, by more than a float's precision.
static inline float round_down(double x) { return (float)(x - 1.5e-7 * fabs(x) - 1e-37); }
static inline float round_up(double x) { return (float)(x + 1.5e-7 * fabs(x) + 1e-37); }

// Which of the eight boxes from k on overlap the one with the given sides, as bits.
static inline uint32_t overlap8(float *const side[N_SIDE], int32_t k, const float a[N_SIDE]) {
#ifdef __AVX__
    __m256 x = _mm256_and_ps(_mm256_cmp_ps(_mm256_loadu_ps(side[0] + k), _mm256_set1_ps(a[3]), _CMP_LE_OQ),
                             _mm256_cmp_ps(_mm256_loadu_ps(side[3] + k), _mm256_set1_ps(a[0]), _CMP_GE_OQ));
    __m256 y = _mm256_and_ps(_mm256_cmp_ps(_mm256_loadu_ps(side[1] + k), _mm256_set1_ps(a[4]), _CMP_LE_OQ),
                             _mm256_cmp_ps(_mm256_loadu_ps(side[4] + k), _mm256_set1_ps(a[1]), _CMP_GE_OQ));
    __m256 z = _mm256_and_ps(_mm256_cmp_ps(_mm256_loadu_ps(side[2] + k), _mm256_set1_ps(a[5]), _CMP_LE_OQ),
                             _mm256_cmp_ps(_mm256_loadu_ps(side[5] + k), _mm256_set1_ps(a[2]), _CMP_GE_OQ));
    return (uint32_t)_mm256_movemask_ps(_mm256_and_ps(x, _mm256_and_ps(y, z)));
#else
    uint32_t bits = 0;
    for (int32_t i = 0; i < 8; i++) {
        bool is_in = (side[0][k + i] <= a[3]) & (side[3][k + i] >= a[0]) & (side[1][k + i] <= a[4]) &
                     (side[4][k + i] >= a[1]) & (side[2][k + i] <= a[5]) & (side[5][k + i] >= a[2]);
        bits |= (uint32_t)is_in << i;
    }
    return bits;
#endif
}

static inline uint32_t sweep_bucket(double x, double low, double scale, uint32_t n_bucket) {
    double at = (x - low) * scale;
    return at < n_bucket - 1 ? (at > 0 ? (uint32_t)at : 0) : n_bucket - 1;
}

// Sweeps the n entries at `unsorted`, all finite, along x.
static void sweep(pair_search *s, usi_broad *broad, int32_t n) {
    double low = INFINITY, high = -INFINITY;

    // Buckets along x.
    for (int32_t i = 0; i < n; i++) {
        double x = broad->unsorted[i].min.x;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    uint32_t n_bucket = 16, *start = broad->start;
    while (n_bucket < (uint32_t)n)
        n_bucket *= 2;
    double scale = high > low ? n_bucket / (high - low) : 0;
    memset(start, 0, ((size_t)n_bucket + 2) * sizeof *start);
    for (int32_t i = 0; i < n; i++) {
        uint32_t b = sweep_bucket(broad->unsorted[i].min.x, low, scale, n_bucket);
        broad->unsorted[i].bucket = b;
        start[b + 1]++;
    }
    for (uint32_t b = 1; b <= n_bucket; b++)
        start[b] += start[b - 1];

    // Sides as floats, in the order of the buckets. After this, start[b] is where bucket b ends.
    float *const *side = broad->side;
    int32_t *id = broad->count;
    for (int32_t i = 0; i < n; i++) {
        const box_entry *e = &broad->unsorted[i];
        uint32_t k = start[e->bucket]++;
        side[0][k] = round_down(e->min.x);
        side[1][k] = round_down(e->min.y);
        side[2][k] = round_down(e->min.z);
        side[3][k] = round_up(e->max.x);
        side[4][k] = round_up(e->max.y);
        side[5][k] = round_up(e->max.z);
        id[k] = i;
    }
    for (int32_t k = n; k < n + 8; k++) {
        for (int c = 0; c < 3; c++) {
            side[c][k] = INFINITY;
            side[c + 3][k] = -INFINITY;
        }
    }

    // Pairs.
    for (int32_t i = 0; i < n; i++) {
        const box_entry *a = &broad->unsorted[id[i]];
        const float at[N_SIDE] = {side[0][i], side[1][i], side[2][i], side[3][i], side[4][i], side[5][i]};
        int32_t end = (int32_t)start[sweep_bucket(a->max.x, low, scale, n_bucket)];
        for (int32_t k = i + 1; k < end; k += 8) {
            for (uint32_t bits = overlap8(side, k, at); bits; bits &= bits - 1) {
                const box_entry *b = &broad->unsorted[id[k + __builtin_ctz(bits)]];
                if (overlap(a, b)) add_pair(s, a->id, b->id);
            }
        }
    }
}

// ---------------------------------------------------------------- all of it

// One stable counting sort of the pairs, by a or by b.
static void sort_pairs(const usi_broad_pair *from, usi_broad_pair *to, int64_t n, int32_t *count,
                       int32_t n_box, bool by_a) {
    memset(count, 0, ((size_t)n_box + 1) * sizeof *count);
    for (int64_t i = 0; i < n; i++)
        count[(by_a ? from[i].a : from[i].b) + 1]++;
    for (int32_t i = 0; i < n_box; i++)
        count[i + 1] += count[i];
    for (int64_t i = 0; i < n; i++)
        to[count[by_a ? from[i].a : from[i].b]++] = from[i];
}

// Sorts the pairs by (a, b). As a rule a box has a handful of partners after it: a counting sort by a, then
// insertion by b within each. Where some have many, a counting sort by b goes first.
static const usi_broad_pair *sort_all(usi_broad *broad, int64_t n, int32_t n_box) {
    enum { MANY = 24 };
    usi_broad_pair *from = broad->pair[0], *to = broad->pair[1];
    int32_t *count = broad->count, max_partner = 0;
    memset(count, 0, ((size_t)n_box + 1) * sizeof *count);
    for (int64_t i = 0; i < n; i++)
        count[from[i].a + 1]++;
    for (int32_t i = 0; i < n_box; i++) {
        max_partner = count[i + 1] > max_partner ? count[i + 1] : max_partner;
        count[i + 1] += count[i];
    }
    if (max_partner > MANY) {
        sort_pairs(from, to, n, count, n_box, false);
        sort_pairs(to, from, n, count, n_box, true);
        return from;
    }
    for (int64_t i = 0; i < n; i++) {
        usi_broad_pair p = from[i];
        to[count[p.a]++] = p;
    }
    for (int64_t i = 1; i < n; i++) {
        usi_broad_pair p = to[i];
        int64_t k = i;
        for (; k > 0 && to[k - 1].a == p.a && to[k - 1].b > p.b; k--)
            to[k] = to[k - 1];
        to[k] = p;
    }
    return to;
}

// Pairs of large boxes with the small ones and each other.
static void find_large(pair_search *s, const box_entry *small, int32_t n_small, const box_entry *large,
                       int32_t n_large) {
    for (int32_t i = 0; i < n_large; i++) {
        for (int32_t j = 0; j < n_small; j++) {
            if (overlap(&large[i], &small[j])) add_pair(s, large[i].id, small[j].id);
        }
        for (int32_t j = i + 1; j < n_large; j++) {
            if (overlap(&large[i], &large[j])) add_pair(s, large[i].id, large[j].id);
        }
    }
}

static void sweep_boxes(pair_search *s, usi_broad *broad, int32_t n_box) {
    int32_t n_small = 0, n_large = 0;
    for (int32_t i = 0; i < n_box; i++) {
        const us_aabb *b = &s->boxes[i].box;
        // Beyond 1e30 m floats do not reach. Infinite boxes are among these.
        const double far = 1e30;
        bool is_small = (b->min.x > -far) & (b->min.y > -far) & (b->min.z > -far) & (b->max.x < far) &
                        (b->max.y < far) & (b->max.z < far);
        box_entry *e = is_small ? &broad->unsorted[n_small++] : &broad->unsorted[n_box - ++n_large];
        e->min = b->min;
        e->max = b->max;
        e->row = 0;
        e->id = i;
        e->bucket = 0;
    }
    sweep(s, broad, n_small);
    find_large(s, broad->unsorted, n_small, broad->unsorted + n_small, n_large);
}

// Pairs by the grid. `broad->count` holds the boxes' levels.
static void search_grid(pair_search *s, usi_broad *broad, int32_t n_box, const int32_t *grid) {
    // Buckets. The large boxes wait at the end.
    uint32_t n_bucket = bucket_count(n_box), mask = n_bucket - 1, *start = broad->start;
    memset(start, 0, ((size_t)n_bucket + 3) * sizeof *start);
    int32_t n_small = 0, n_large = 0;
    bool is_used[N_LEVEL] = {false};
    for (int32_t i = 0; i < n_box; i++) {
        const us_aabb *b = &s->boxes[i].box;
        int32_t level = grid[broad->count[i]];
        if (level == LARGE) {
            broad->unsorted[n_box - ++n_large] = (box_entry){b->min, b->max, 0, i, 0};
            continue;
        }
        double per_cell = cells_per_metre(level);
        uint64_t row = row_key(level, cell_of(b->min.y, per_cell), cell_of(b->min.z, per_cell));
        uint32_t bucket = bucket_of(row, cell_of(b->min.x, per_cell), mask);
        broad->unsorted[n_small++] = (box_entry){b->min, b->max, row, i, bucket};
        is_used[level] = true;
        start[bucket + 2]++;
    }
    for (uint32_t k = 2; k < n_bucket + 2; k++)
        start[k] += start[k - 1];
    for (int32_t i = 0; i < n_small; i++)
        broad->sorted[start[broad->unsorted[i].bucket + 1]++] = broad->unsorted[i];

    // Pairs. Levels in use, the coarsest first.
    int32_t used[N_LEVEL], n_used = 0;
    for (int32_t level = N_LEVEL - 1; level >= 0; level--) {
        if (is_used[level]) used[n_used++] = level;
    }
    s->mask = mask;
    for (int32_t i = 0; i < n_small; i++) {
        const box_entry *a = &broad->sorted[i];
        int32_t level = (int32_t)(a->row >> 56);
        find_neighbours(s, a, level, cells_per_metre(level));
        for (int32_t k = 0; k < n_used && used[k] > level; k++)
            find_coarser(s, a, used[k], cells_per_metre(used[k]));
    }
    find_large(s, broad->sorted, n_small, broad->unsorted + n_small, n_large);
}

us_status usi_broad_find(usi_broad *broad, const usi_broad_box *boxes, int32_t n_box,
                         const usi_broad_pair **out_pairs, int64_t *out_n, us_error *err) {
    if (out_pairs) *out_pairs = NULL;
    if (out_n) *out_n = 0;
    if (!broad || !out_pairs || !out_n || n_box < 0 || (n_box > 0 && !boxes)) {
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "the broad phase needs boxes and a place for the pairs");
    }
    if (n_box > broad->max_box) {
        return us_error_set(err, US_ERR_LIMIT, NULL, "create the broad phase with a larger max_box",
                            "%d boxes, room for %d", n_box, broad->max_box);
    }
    // Levels, and how many boxes each has.
    int32_t n_of_level[N_LEVEL + 1] = {0}, grid[N_LEVEL + 1];
    for (int32_t i = 0; i < n_box; i++) {
        const us_aabb *b = &boxes[i].box;
        bool is_box =
            (b->min.x <= b->max.x) & (b->min.y <= b->max.y) & (b->min.z <= b->max.z);  // false for NaN
        if (!is_box || boxes[i].body < 0 || boxes[i].body >= broad->n_body)
            return fail_box(&boxes[i], i, broad->n_body, err);
        int32_t level = level_of(b);
        broad->count[i] = level;
        n_of_level[level]++;
    }
    pair_search s = {broad, boxes, 0, 0, broad->max_pair, broad->pair[0]};
    if (n_box <= SWEEP) {
        sweep_boxes(&s, broad, n_box);
    } else {
        choose_grids(n_of_level, grid);
        search_grid(&s, broad, n_box, grid);
    }
    *out_n = s.n;
    if (s.n > broad->max_pair) {
        return us_error_set(err, US_ERR_LIMIT, NULL, "create the broad phase with a larger max_pair",
                            "%lld pairs of boxes overlap, room for %lld", (long long)s.n,
                            (long long)broad->max_pair);
    }
    *out_pairs = sort_all(broad, s.n, n_box);
    return US_OK;
}
