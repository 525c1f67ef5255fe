// The order in which Gauss-Seidel visits the points of an island: by colours.
//
// Pairs of bodies are coloured one after the other, in the order of their shapes, each with the first colour
// that neither of its bodies has. What stands on the world comes first in that order and is all of one
// colour, and the colours after it go on upwards through a pile as the list of pairs does.
#include <string.h>

#include "contact/contact__sweep.h"

enum { CLASSES = USI_SWEEP_POINTS + 1 };  // pairs that are plain, by how many points they have; the others

size_t usi_sweep_order_bytes(int32_t n_body, int32_t n_block) {
    return 2 * usi_sweep_up((size_t)n_block * sizeof(usi_sweep_pair)) +
           usi_sweep_up(((size_t)n_body + 1) * sizeof(uint64_t));
}

// Along the same directions.
static bool is_along(const usi_block *k, const usi_block *first) {
    return !memcmp(k->d, first->d, sizeof k->d);
}

static bool is_square(const usi_block *k) {
    const double small = 1e-12;
    for (int i = 0; i < 3; i++) {
        if (!(fabs(usi_v4_dot(k->d[i], k->d[i]) - 1) <= small)) return false;
        if (!(fabs(usi_v4_dot(k->d[i], k->d[(i + 1) % 3])) <= small)) return false;
    }
    return true;
}

static int32_t find_pairs(const usi_block *block, int32_t n_block, usi_sweep_pair *pair) {
    int32_t n = 0;
    for (int32_t i = 0; i < n_block;) {
        const usi_block *k = &block[i];
        usi_sweep_pair *p = &pair[n++];
        *p = (usi_sweep_pair){.first = i, .a = k->a, .b_ = k->b_, .is_plain = is_square(k)};
        // What turns about a point belongs to it.
        for (; i < n_block; i++) {
            const usi_block *next = &block[i];
            const bool turns = next->law == USI_ROTATION;
            if (next->a != k->a || next->b_ != k->b_ || !(turns || is_along(next, k))) break;
            p->is_plain = p->is_plain && next->law == USI_POINT && next->n == 3 && next->mu > 0;
        }
        p->n = i - p->first;
        p->is_plain = p->is_plain && p->n <= USI_SWEEP_POINTS;
    }
    return n;
}

static int32_t first_free(uint64_t taken) {
    return taken == UINT64_MAX ? USI_SWEEP_COLOURS - 1 : __builtin_ctzll(~taken);
}

// The colours that are taken are kept per body, with the world before them, which takes none.
static void colour_pairs(usi_sweep_pair *pair, int32_t n_pair, uint64_t *taken) {
    const int32_t last = USI_SWEEP_COLOURS - 1;
    for (int32_t i = 0; i < n_pair; i++) {
        usi_sweep_pair *p = &pair[i];
        uint64_t *a = &taken[p->a + 1], *b = &taken[p->b_ + 1];
        p->colour = first_free(*a | *b);
        if (p->colour == last) {
            p->is_plain = false;
            continue;
        }
        *a |= p->a < 0 ? 0 : 1ull << p->colour;
        *b |= p->b_ < 0 ? 0 : 1ull << p->colour;
    }
}

static int32_t class_of(const usi_sweep_pair *p) {
    return p->is_plain ? USI_SWEEP_POINTS - p->n : CLASSES - 1;
}

void usi_sweep_find_order(const usi_block *block, int32_t n_block, int32_t n_body, void *work,
                          usi_sweep_order *out) {
    const size_t list = usi_sweep_up((size_t)n_block * sizeof(usi_sweep_pair));
    usi_sweep_pair *found = work, *sorted = (usi_sweep_pair *)((char *)work + list);
    uint64_t *taken = (uint64_t *)((char *)work + 2 * list);
    int32_t count[USI_SWEEP_COLOURS * CLASSES + 1] = {0};
    memset(taken, 0, ((size_t)n_body + 1) * sizeof *taken);
    out->pair = sorted;
    out->n_pair = find_pairs(block, n_block, found);
    colour_pairs(found, out->n_pair, taken);

    // Counted, then put in their places, each class in the order in which it was found.
    out->n_colour = 0;
    for (int32_t i = 0; i < out->n_pair; i++) {
        count[found[i].colour * CLASSES + class_of(&found[i]) + 1]++;
        if (found[i].colour >= out->n_colour) out->n_colour = found[i].colour + 1;
    }
    for (int32_t i = 0; i < out->n_colour * CLASSES; i++)
        count[i + 1] += count[i];
    for (int32_t i = 0; i < out->n_colour; i++) {
        out->start[i] = count[i * CLASSES];
        out->end_plain[i] = count[i * CLASSES + CLASSES - 1];
    }
    out->start[out->n_colour] = out->n_pair;
    for (int32_t i = 0; i < out->n_pair; i++)
        sorted[count[found[i].colour * CLASSES + class_of(&found[i])]++] = found[i];
}
