// Block-sparse LU: the linear solve inside every Newton step of an island.
//
// The units of an island (free bodies of 6 velocities, robots of up to some hundred) are the nodes of a
// graph, the pairs that touch its edges. Eliminating a unit joins all its neighbours to each other (fill); a
// good order keeps that small. Minimum degree: the next unit is the one whose neighbours have the fewest
// velocities together. Ties go to the unit that was touched longest ago, then to the lowest index. So a stack
// is taken from both ends in turn,
//
//     0 - 1 - 2 - 3 - 4 - 5        order 0 5 1 4 2 3
//
// and the processor works on one end while it waits for the divisions of the other: neighbours in the order
// depend less on each other than in 0 1 2 3 4 5, at the same fill.
//
// From then on units are numbered by their place in the order. Column k owns its diagonal block, and for each
// later neighbour j the two blocks (k, j), in U, and (j, k), in L. The neighbours are a set of bits, and the
// place of block (i, j) is the number of bits of i below j: no lists are searched. Elimination fills the set
// of the first later neighbour with the rest of the set, which is all there is to finding the fill (Liu 1990,
// "The role of elimination trees in sparse factorization").
//
// The factorisation is right-looking: column k is finished, then its products are taken off the blocks
// between its neighbours.
//
//     D_k = L_k diag(d) U_k,   U_kj = L_k^-1 A_kj,   L_jk = A_jk U_k^-1 diag(1/d),   A_ij -= L_ik U_kj
//
// L_jk is stored transposed (by columns): its rows are then the long vectors of the triangular solve and of
// the forward pass.
#include <string.h>

#include "contact/contact.h"
#include "contact/contact__sparse_kernel.h"

enum { MAX_ROWS = (1 << 20) - 1 };  // rows of all units: what the keys of the ordering hold

typedef struct sparse_column {
    double *D;        // diagonal block; factored: see contact__sparse_kernel.h (of size 6: by columns)
    double *inv, *x;  // 1/d, and the unit's part of the padded vector
    int32_t size, stride;
    int32_t first, end;  // its blocks beside the diagonal
    int32_t unit;
    int32_t start;  // in the caller's vector
} sparse_column;

typedef struct sparse_entry {
    double *upper;  // (k, row), size_k rows of stride_row
    double *lower;  // (row, k), size_row rows of stride_k; factored: its transpose, size_k rows of stride_row
    int32_t row;
    int32_t first_pair;  // of the setup that has these blocks; -1: they are fill
} sparse_entry;

struct usi_sparse {
    int32_t n, n_pair, n_word;
    int32_t n_row;          // of all units
    sparse_column *column;  // in the order of elimination
    int32_t *place;         // of each unit in that order
    uint64_t *later;        // n_word words for each column: its later neighbours
    int32_t *rank;          // for each of these words the number of the column's entry that its first bit has
    sparse_entry *entry;    // of all columns, one after another
    int32_t *pair;  // for each pair of the setup 2 * entry + (1 when the pair's first unit comes later in the
                    // order); -1 - column for i == j
    double *value;  // all blocks
    size_t n_value;
    double *scratch;  // one block
};

static size_t round_up(size_t size, size_t to) { return (size + to - 1) / to * to; }
static size_t stride_of(int32_t size) { return round_up((size_t)size, 4); }
static size_t words_of(int32_t n) { return ((size_t)n + 63) / 64; }

// What is needed before the fill is known. The ordering's own arrays are at the end, where blocks will be
// later.
typedef struct sparse_layout {
    size_t column, place, later, rank, pair, fixed_end;
    size_t adjacent, key, where, order_end;
} sparse_layout;

static sparse_layout lay_out(int32_t n, int32_t n_pair) {
    sparse_layout l;
    size_t size = sizeof(usi_sparse), words = (size_t)n * words_of(n);
    l.column = usi_carve(&size, (size_t)n, sizeof(sparse_column));
    l.place = usi_carve(&size, (size_t)n, sizeof(int32_t));
    l.later = usi_carve(&size, words, sizeof(uint64_t));
    l.rank = usi_carve(&size, words, sizeof(int32_t));
    l.pair = usi_carve(&size, (size_t)n_pair, sizeof(int32_t));
    l.fixed_end = size;
    l.adjacent = usi_carve(&size, words, sizeof(uint64_t));
    l.key = usi_carve(&size, (size_t)n, sizeof(uint64_t));
    l.where = usi_carve(&size, (size_t)n, sizeof(int32_t));
    l.order_end = size;
    return l;
}

size_t usi_sparse_bytes(int32_t n, const int32_t *size, int32_t n_pair) {
    // A block of i and j takes at most stride_i stride_j max(size/stride): for units of one size that is
    // exact.
    size_t total = 0, largest = 0, fullest = 1, of = 4;
    for (int32_t i = 0; i < n; i++) {
        size_t stride = size[i] < 1 ? 0 : stride_of(size[i]);
        total += stride;
        if (stride > largest) largest = stride;
        if (stride > 0 && (size_t)size[i] * of > fullest * stride) {
            fullest = (size_t)size[i];
            of = stride;
        }
    }
    sparse_layout l = lay_out(n, n_pair);
    size_t bytes = l.fixed_end, entries = n > 0 ? (size_t)n * ((size_t)n - 1) / 2 : 0;
    usi_carve(&bytes, entries, sizeof(sparse_entry));
    usi_carve(&bytes, 2 * total, sizeof(double));
    usi_carve(&bytes, largest * largest, sizeof(double));
    usi_carve(&bytes, total * total / of * fullest + of * fullest, sizeof(double));
    return (bytes > l.order_end ? bytes : l.order_end) + 2 * USI_ALIGN;
}

// ---- the order ----

static void join(uint64_t *bits, size_t n_word, int32_t i, int32_t j) {
    bits[(size_t)i * n_word + (size_t)j / 64] |= (uint64_t)1 << (j % 64);
}

// Keys sort by degree (rows of all neighbours), then by the step of the last touch, then by index.
static uint64_t make_key(uint64_t degree, uint64_t step, uint64_t unit) {
    return degree << 40 | step << 20 | unit;
}

static void find_order(usi_sparse *s, const int32_t *size, uint64_t *adjacent, uint64_t *key,
                       int32_t *where) {
    size_t n_word = (size_t)s->n_word;
    for (int32_t i = 0; i < s->n; i++) {
        uint64_t degree = 0;
        for (size_t w = 0; w < n_word; w++) {
            uint64_t bits = adjacent[(size_t)i * n_word + w];
            for (; bits; bits &= bits - 1)
                degree += (uint64_t)size[64 * w + (size_t)__builtin_ctzll(bits)];
        }
        key[i] = make_key(degree, 0, (uint64_t)i);
        where[i] = i;
    }
    for (int32_t step = 0; step < s->n; step++) {
        int32_t n_left = s->n - step;
        uint64_t min = key[0];
        for (int32_t i = 1; i < n_left; i++)
            min = key[i] < min ? key[i] : min;
        int32_t k = (int32_t)(min & MAX_ROWS), hole = where[k];
        uint64_t last = key[n_left - 1];
        key[hole] = last;
        where[last & MAX_ROWS] = hole;
        s->column[step].unit = k;
        s->place[k] = step;
        // Each neighbour loses k and gets the other neighbours.
        const uint64_t *mine = adjacent + (size_t)k * n_word;
        for (size_t w = 0; w < n_word; w++) {
            for (uint64_t bits = mine[w]; bits; bits &= bits - 1) {
                int32_t j = (int32_t)(64 * w) + __builtin_ctzll(bits);
                uint64_t *theirs = adjacent + (size_t)j * n_word,
                         degree = (key[where[j]] >> 40) - (uint64_t)size[k];
                for (size_t v = 0; v < n_word; v++) {
                    uint64_t more = mine[v] & ~theirs[v];
                    if ((size_t)j / 64 == v) more &= ~((uint64_t)1 << (j % 64));
                    theirs[v] |= more;
                    for (; more; more &= more - 1)
                        degree += (uint64_t)size[64 * v + (size_t)__builtin_ctzll(more)];
                }
                theirs[(size_t)k / 64] &= ~((uint64_t)1 << (k % 64));
                key[where[j]] = make_key(degree, (uint64_t)step + 1, (uint64_t)j);
            }
        }
    }
}

// ---- the fill ----

// Entry of block (k, j), k before j; -1 when it is not in the structure.
static inline int32_t find_entry(const usi_sparse *s, int32_t k, int32_t j) {
    size_t at = (size_t)k * (size_t)s->n_word + (size_t)j / 64;
    uint64_t word = s->later[at], bit = (uint64_t)1 << (j % 64);
    return word & bit ? s->rank[at] + __builtin_popcountll(word & (bit - 1)) : -1;
}

// Passes the set of each column on to its first later neighbour and counts entries.
static int32_t find_fill(usi_sparse *s) {
    int32_t n_entry = 0;
    size_t n_word = (size_t)s->n_word;
    for (int32_t k = 0; k < s->n; k++) {
        const uint64_t *mine = s->later + (size_t)k * n_word;
        s->column[k].first = n_entry;
        size_t w = (size_t)k / 64;
        while (w < n_word && !mine[w])
            s->rank[(size_t)k * n_word + w++] = n_entry;
        if (w < n_word) {
            int32_t parent = (int32_t)(64 * w) + __builtin_ctzll(mine[w]);
            uint64_t *theirs = s->later + (size_t)parent * n_word;
            for (size_t v = w; v < n_word; v++) {
                s->rank[(size_t)k * n_word + v] = n_entry;
                n_entry += __builtin_popcountll(mine[v]);
                theirs[v] |= mine[v];
            }
            theirs[(size_t)parent / 64] &= ~((uint64_t)1 << (parent % 64));
        }
        s->column[k].end = n_entry;
    }
    return n_entry;
}

static size_t lower_size(const sparse_column *k, const sparse_column *j) {
    size_t by_row = (size_t)j->size * (size_t)k->stride, by_column = (size_t)k->size * (size_t)j->stride;
    return by_row > by_column ? by_row : by_column;
}

// Fills in the entries' rows and counts the doubles of all blocks.
static size_t list_entries(usi_sparse *s) {
    size_t n_value = 0, n_word = (size_t)s->n_word;
    for (int32_t k = 0; k < s->n; k++) {
        const sparse_column *c = &s->column[k];
        n_value += (size_t)c->size * (size_t)c->stride;
        sparse_entry *e = s->entry + c->first;
        for (size_t w = (size_t)k / 64; w < n_word; w++) {
            for (uint64_t bits = s->later[(size_t)k * n_word + w]; bits; bits &= bits - 1, e++) {
                e->row = (int32_t)(64 * w) + __builtin_ctzll(bits);
                e->first_pair = -1;
                const sparse_column *j = &s->column[e->row];
                n_value += (size_t)c->size * (size_t)j->stride + lower_size(c, j);
            }
        }
    }
    return n_value;
}

static void place_blocks(usi_sparse *s) {
    double *at = s->value;
    for (int32_t k = 0; k < s->n; k++) {
        sparse_column *c = &s->column[k];
        c->D = at;
        at += (size_t)c->size * (size_t)c->stride;
        for (int32_t i = c->first; i < c->end; i++) {
            sparse_entry *e = &s->entry[i];
            const sparse_column *j = &s->column[e->row];
            e->upper = at;
            at += (size_t)c->size * (size_t)j->stride;
            e->lower = at;
            at += lower_size(c, j);
        }
    }
}

// ---- setup ----

// False when an index is outside, a size is not positive, or there are too many rows.
static bool check_units(int32_t n, const int32_t *size, const int32_t (*pair)[2], int32_t n_pair) {
    int64_t n_row = 0;
    if (n < 0 || n_pair < 0) return false;
    for (int32_t i = 0; i < n; i++) {
        if (size[i] < 1) return false;
        n_row += size[i];
    }
    for (int32_t p = 0; p < n_pair; p++) {
        if (pair[p][0] < 0 || pair[p][0] >= n || pair[p][1] < 0 || pair[p][1] >= n) return false;
    }
    return n_row <= MAX_ROWS;
}

// Which places lie behind each: the graph in the order of elimination.
static void find_later(usi_sparse *s, const int32_t (*pair)[2]) {
    memset(s->later, 0, (size_t)s->n * (size_t)s->n_word * sizeof *s->later);
    for (int32_t p = 0; p < s->n_pair; p++) {
        int32_t i = s->place[pair[p][0]], j = s->place[pair[p][1]];
        if (i != j) join(s->later, (size_t)s->n_word, i < j ? i : j, i < j ? j : i);
    }
}

// Rows of the columns. Returns the numbers of a padded vector; *out_largest is the longest column's.
static size_t size_columns(usi_sparse *s, const int32_t *size, size_t *out_largest) {
    size_t n_pad = 0;
    *out_largest = 0;
    for (int32_t i = 0; i < s->n; i++) {
        sparse_column *c = &s->column[s->place[i]];
        c->size = size[i];
        c->stride = (int32_t)stride_of(size[i]);
        c->start = s->n_row;
        s->n_row += size[i];
        n_pad += (size_t)c->stride;
        if ((size_t)c->stride > *out_largest) *out_largest = (size_t)c->stride;
    }
    return n_pad;
}

// Where the block of each pair is.
static void find_pairs(usi_sparse *s, const int32_t (*pair)[2]) {
    for (int32_t p = 0; p < s->n_pair; p++) {
        int32_t i = s->place[pair[p][0]], j = s->place[pair[p][1]];
        s->pair[p] = i == j ? -1 - i : i < j ? 2 * find_entry(s, i, j) : 2 * find_entry(s, j, i) + 1;
        if (i == j) continue;
        sparse_entry *e = &s->entry[s->pair[p] / 2];
        if (e->first_pair < 0) e->first_pair = p;
    }
}

usi_sparse *usi_sparse_setup(void *memory, size_t bytes, int32_t n, const int32_t *size,
                             const int32_t (*pair)[2], int32_t n_pair) {
    if (!memory || !check_units(n, size, pair, n_pair)) return NULL;
    size_t skip = round_up((size_t)(uintptr_t)memory, USI_ALIGN) - (size_t)(uintptr_t)memory;
    sparse_layout l = lay_out(n, n_pair);
    if (bytes < skip || bytes - skip < l.order_end) return NULL;
    char *base = (char *)memory + skip;
    bytes -= skip;
    usi_sparse *s = (usi_sparse *)(void *)base;
    *s = (usi_sparse){.n = n, .n_pair = n_pair, .n_word = (int32_t)words_of(n)};
    s->column = (sparse_column *)(void *)(base + l.column);
    s->place = (int32_t *)(void *)(base + l.place);
    s->later = (uint64_t *)(void *)(base + l.later);
    s->rank = (int32_t *)(void *)(base + l.rank);
    s->pair = (int32_t *)(void *)(base + l.pair);
    uint64_t *adjacent = (uint64_t *)(void *)(base + l.adjacent), *key = (uint64_t *)(void *)(base + l.key);
    int32_t *where = (int32_t *)(void *)(base + l.where);
    size_t n_word = (size_t)s->n_word;

    memset(adjacent, 0, (size_t)n * n_word * sizeof *adjacent);
    for (int32_t p = 0; p < n_pair; p++) {
        if (pair[p][0] == pair[p][1]) continue;
        join(adjacent, n_word, pair[p][0], pair[p][1]);
        join(adjacent, n_word, pair[p][1], pair[p][0]);
    }
    find_order(s, size, adjacent, key, where);

    find_later(s, pair);
    int32_t n_entry = find_fill(s);
    size_t largest = 0, n_pad = size_columns(s, size, &largest);

    size_t end = l.fixed_end, entry_at = usi_carve(&end, (size_t)n_entry, sizeof(sparse_entry)),
           vector_at = usi_carve(&end, 2 * n_pad, sizeof(double));
    size_t scratch_at = usi_carve(&end, largest * largest, sizeof(double));
    if (end > bytes) return NULL;
    s->entry = (sparse_entry *)(void *)(base + entry_at);
    s->scratch = (double *)(void *)(base + scratch_at);
    s->n_value = list_entries(s);
    size_t value_at = usi_carve(&end, s->n_value, sizeof(double));
    if (end > bytes) return NULL;
    s->value = (double *)(void *)(base + value_at);
    place_blocks(s);
    double *vector = (double *)(void *)(base + vector_at);
    memset(vector, 0, 2 * n_pad * sizeof *vector);
    for (int32_t k = 0; k < n; k++) {
        sparse_column *c = &s->column[k];
        c->x = vector;
        c->inv = vector + n_pad;
        vector += c->stride;
    }
    find_pairs(s, pair);
    usi_sparse_clear(s);
    return s;
}

void usi_sparse_clear(usi_sparse *s) { memset(s->value, 0, s->n_value * sizeof *s->value); }

void usi_sparse_clear_fill(usi_sparse *s) {
    for (int32_t n = 0; n < s->n; n++) {
        const sparse_column *k = &s->column[n];
        for (const sparse_entry *e = s->entry + k->first, *end = s->entry + k->end; e < end; e++) {
            if (e->first_pair >= 0) continue;
            const sparse_column *j = &s->column[e->row];
            memset(e->upper, 0, (size_t)k->size * (size_t)j->stride * sizeof(double));
            memset(e->lower, 0, lower_size(k, j) * sizeof(double));
        }
    }
}

bool usi_sparse_is_first(const usi_sparse *s, int32_t pair) {
    return s->pair[pair] >= 0 && s->entry[s->pair[pair] / 2].first_pair == pair;
}

double *usi_sparse_block(usi_sparse *s, int32_t i, int32_t j) {
    if (i < 0 || j < 0 || i >= s->n || j >= s->n) return NULL;
    int32_t a = s->place[i], b = s->place[j];
    if (a == b) return s->column[a].D;
    int32_t e = a < b ? find_entry(s, a, b) : find_entry(s, b, a);
    if (e < 0) return NULL;
    return a < b ? s->entry[e].upper : s->entry[e].lower;
}

void usi_sparse_pair_blocks(usi_sparse *s, int32_t pair, double **ij, double **ji) {
    int32_t at = s->pair[pair];
    if (at < 0) {
        *ij = *ji = s->column[-1 - at].D;
        return;
    }
    const sparse_entry *e = &s->entry[at / 2];
    *ij = at & 1 ? e->lower : e->upper;
    *ji = at & 1 ? e->upper : e->lower;
}

int32_t usi_sparse_stride(const usi_sparse *s, int32_t j) { return s->column[s->place[j]].stride; }

// ---- numbers ----

// Turns the blocks of column k beside its diagonal into factors, sizes other than 6 among them.
static void finish_entry(const usi_sparse *s, const sparse_column *k, const sparse_entry *e) {
    const sparse_column *j = &s->column[e->row];
    // L(r, q) of the diagonal block is at D[r * row + q * col], U(p, c) at D[p * row + c * col].
    ptrdiff_t row = k->size == 6 ? 1 : k->stride, col = k->size == 6 ? k->stride : 1;
    usi_substitute(k->size, j->stride, k->D, row, col, e->upper, j->stride);
    double *t = s->scratch;
    for (int32_t p = 0; p < k->size; p++) {
        for (int32_t r = 0; r < j->size; r++)
            t[p * j->stride + r] = e->lower[r * k->stride + p];
        for (int32_t r = j->size; r < j->stride; r++)
            t[p * j->stride + r] = 0;
    }
    usi_substitute(k->size, j->stride, k->D, col, row, t, j->stride);
    for (int32_t p = 0; p < k->size; p++) {
        usi_v4 factor = usi_v4_all(k->inv[p]);
        for (int32_t r = 0; r < j->stride; r += 4)
            usi_store(e->lower + p * j->stride + r, factor * usi_load(t + p * j->stride + r));
    }
}

// C -= L U, with L of row i and U of column j.
static inline void update(const sparse_column *k, const sparse_column *i, const sparse_column *j,
                          const double *L, const double *U, double *C) {
    if (k->size == 6 && i->size == 6 && j->size == 6) {
        usi_update6(L, U, C);
    } else {
        usi_subtract_product(i->size, j->stride, k->size, L, 1, i->stride, U, j->stride, C, j->stride);
    }
}

bool usi_sparse_factor(usi_sparse *s) {
    for (int32_t n = 0; n < s->n; n++) {
        const sparse_column *k = &s->column[n];
        bool ok = k->size == 6 ? usi_factor6(k->D, k->inv) : usi_factor_any(k->size, k->stride, k->D, k->inv);
        if (!ok) return false;
        const sparse_entry *end = s->entry + k->end;
        for (const sparse_entry *e = s->entry + k->first; e < end; e++) {
            if (k->size == 6 && s->column[e->row].size == 6) {
                usi_upper6(k->D, e->upper);
                usi_lower6(k->D, e->lower);
            } else {
                finish_entry(s, k, e);
            }
        }
        for (const sparse_entry *a = s->entry + k->first; a < end; a++) {
            const sparse_column *i = &s->column[a->row];
            update(k, i, i, a->lower, a->upper, i->D);
            for (const sparse_entry *b = a + 1; b < end; b++) {
                const sparse_column *j = &s->column[b->row];
                const sparse_entry *target = &s->entry[find_entry(s, a->row, b->row)];
                update(k, i, j, a->lower, b->upper, target->upper);
                update(k, j, i, b->lower, a->upper, target->lower);
            }
        }
    }
    return true;
}

void usi_sparse_solve(usi_sparse *s, double *x) {
    for (int32_t n = 0; n < s->n; n++) {
        const sparse_column *k = &s->column[n];
        if (k->size == 6) {
            memcpy(k->x, x + k->start, 6 * sizeof *x);
        } else {
            memcpy(k->x, x + k->start, (size_t)k->size * sizeof *x);
        }
    }
    for (int32_t n = 0; n < s->n; n++) {
        const sparse_column *k = &s->column[n];
        if (k->size == 6) {
            usi_forward6(k->D, k->x);
        } else {
            usi_forward_any(k->size, k->stride, k->D, k->x);
        }
        for (const sparse_entry *e = s->entry + k->first, *end = s->entry + k->end; e < end; e++) {
            const sparse_column *j = &s->column[e->row];
            if (k->size == 6 && j->size == 6) {
                usi_spread6(e->lower, k->x, j->x);
            } else {
                usi_subtract_product(1, j->stride, k->size, k->x, 0, 1, e->lower, j->stride, j->x, j->stride);
            }
        }
    }
    for (int32_t n = s->n - 1; n >= 0; n--) {
        const sparse_column *k = &s->column[n];
        for (const sparse_entry *e = s->entry + k->first, *end = s->entry + k->end; e < end; e++) {
            const sparse_column *j = &s->column[e->row];
            if (k->size == 6 && j->size == 6) {
                usi_gather6(e->upper, j->x, k->x);
                continue;
            }
            for (int32_t r = 0; r < k->size; r += 4) {
                int32_t m = k->size - r < 4 ? k->size - r : 4;
                usi_v4 sum = usi_dot_rows(m, j->stride, e->upper + r * j->stride, j->stride, j->x);
                for (int32_t i = 0; i < m; i++)
                    k->x[r + i] -= sum[i];
            }
        }
        if (k->size == 6) {
            usi_backward6(k->D, k->inv, k->x);
            memcpy(x + k->start, k->x, 6 * sizeof *x);
        } else {
            usi_backward_any(k->size, k->stride, k->D, k->inv, k->x);
            memcpy(x + k->start, k->x, (size_t)k->size * sizeof *x);
        }
    }
}
