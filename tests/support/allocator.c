// Each block has a head in front of it, which remembers what was asked for, and a guard behind it.
//
//   | head ... room up to the alignment | memory | guard |
#include "allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct head {
    uint64_t magic;
    const test_allocator *owner;
    size_t size, align;
} head;

static const uint64_t LIVE = 0x6c6976656c697665u, DEAD = 0x6465616464656164u;
enum { GUARD_BYTES = 16, GUARD = 0x5a, FRESH = 0xa5, STALE = 0xdd };

static size_t room_before(size_t align) { return align > 64 ? align : 64; }

static void *watched_alloc(void *context, size_t size, size_t align) {
    test_allocator *t = context;
    t->n_alloc++;
    if (t->fail_at && (t->n_alloc == t->fail_at || (t->keep_failing && t->n_alloc > t->fail_at))) {
        t->n_failed++;
        return NULL;
    }
    if (align == 0 || (align & (align - 1)) != 0 || size == 0) {
        t->n_wrong++;
        return NULL;
    }
    size_t before = room_before(align), total = (before + size + GUARD_BYTES + before - 1) / before * before;
    unsigned char *raw = aligned_alloc(before, total);
    if (!raw) return NULL;
    head h = {LIVE, t, size, align};
    memcpy(raw, &h, sizeof h);
    memset(raw + before, FRESH, size);
    memset(raw + before + size, GUARD, GUARD_BYTES);
    t->n_live++;
    return raw + before;
}

static void watched_release(void *context, void *memory, size_t size, size_t align) {
    test_allocator *t = context;
    if (!memory) {
        t->n_wrong++;
        return;
    }
    unsigned char *raw = (unsigned char *)memory - room_before(align);
    head h;
    memcpy(&h, raw, sizeof h);
    if (h.magic != LIVE || h.owner != t || h.size != size || h.align != align) {
        // Where the block begins is not known: it stays, and shows as a leak too.
        t->n_wrong++;
        return;
    }
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (((unsigned char *)memory)[size + i] == GUARD) continue;
        t->n_wrong++;
        break;
    }
    memset(memory, STALE, size);
    h.magic = DEAD;
    memcpy(raw, &h, sizeof h);
    t->n_live--;
    free(raw);
}

void test_allocator_init(test_allocator *t) {
    memset(t, 0, sizeof *t);
    t->allocator = (us_allocator){watched_alloc, watched_release, t};
}

void test_allocator_check(const test_allocator *t) {
    assert_int_equal(t->n_live, 0);
    assert_int_equal(t->n_wrong, 0);
}
