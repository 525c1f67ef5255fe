// The default allocator, growing arrays, arenas, and blocks carved from field tables.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "base/memory.h"
#include "base/spare_memory.h"

static void the_default_allocator_keeps_every_alignment(void **state) {
    (void)state;
    us_allocator a = us_allocator_default();
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t size = 1; size < 300; size += 37) {
            char *memory = a.alloc(a.context, size, align);
            assert_non_null(memory);
            assert_int_equal((uintptr_t)memory % align, 0);
            memset(memory, 1, size);
            a.release(a.context, memory, size, align);
        }
    }
}

static void nothing_asked_for_is_still_memory_of_its_own(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    void *memory = usi_alloc(&t.allocator, 0, 8);
    assert_non_null(memory);
    usi_release(&t.allocator, memory, 0, 8);
    usi_release(&t.allocator, NULL, 100, 8);
    test_allocator_check(&t);
    assert_int_equal(t.n_alloc, 1);
}

static void memory_that_is_not_there_is_not_found(void **state) {
    (void)state;
    assert_true(usi_memory_is_there(1 << 20));
    // more than any machine has addresses for
    assert_false(usi_memory_is_there(SIZE_MAX / 4));
}

static void a_growing_array_keeps_its_contents(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    int32_t *array = NULL, cap = 0;
    for (int32_t n = 0; n < 1000; n++) {
        assert_int_equal(usi_grow(&t.allocator, (void **)&array, n, &cap, sizeof *array), US_OK);
        assert_true(cap > n);
        array[n] = 3 * n;
    }
    for (int32_t i = 0; i < 1000; i++)
        assert_int_equal(array[i], 3 * i);
    // Doubling: few allocations for many elements.
    assert_true(t.n_alloc < 12);
    assert_int_equal(t.n_live, 1);
    usi_release(&t.allocator, array, (size_t)cap * sizeof *array, _Alignof(max_align_t));
    test_allocator_check(&t);
}

static void an_array_that_cannot_grow_is_unchanged(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    int32_t *array = NULL, cap = 0;
    assert_int_equal(usi_grow(&t.allocator, (void **)&array, 0, &cap, sizeof *array), US_OK);
    int32_t *before = array, room = cap;
    for (int32_t i = 0; i < cap; i++)
        array[i] = i;
    t.fail_at = t.n_alloc + 1;
    assert_int_equal(usi_grow(&t.allocator, (void **)&array, room, &cap, sizeof *array), US_ERR_MEMORY);
    assert_ptr_equal(array, before);
    assert_int_equal(cap, room);
    for (int32_t i = 0; i < cap; i++)
        assert_int_equal(array[i], i);
    usi_release(&t.allocator, array, (size_t)cap * sizeof *array, _Alignof(max_align_t));
    int32_t huge = INT32_MAX;
    array = NULL;
    assert_int_equal(usi_grow(&t.allocator, (void **)&array, huge, &huge, 1), US_ERR_LIMIT);
    assert_int_equal(huge, INT32_MAX);
    test_allocator_check(&t);
}

static void things_in_an_arena_are_aligned_and_do_not_overlap(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    usi_arena arena;
    usi_arena_init(&arena, &t.allocator);
    enum { N = 2000 };
    static unsigned char *thing[N];
    static size_t sizes[N];
    for (int i = 0; i < N; i++) {
        size_t align = (size_t)1 << (i % 6);
        sizes[i] = (size_t)(i * 7919 % 90);
        // Some are larger than a chunk.
        if (i % 500 == 499) sizes[i] = 40000;
        thing[i] = usi_arena_alloc(&arena, sizes[i], align);
        assert_non_null(thing[i]);
        assert_int_equal((uintptr_t)thing[i] % align, 0);
        memset(thing[i], i & 0xff, sizes[i]);
    }
    for (int i = 0; i < N; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(thing[i][k], i & 0xff);
    }
    assert_true(t.n_alloc < 40);
    usi_arena_fini(&arena);
    test_allocator_check(&t);
    usi_arena_fini(&arena);
    test_allocator_check(&t);
}

static void an_arena_without_memory_says_so_and_goes_on_later(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    t.fail_at = 1;
    usi_arena arena;
    usi_arena_init(&arena, &t.allocator);
    bool ok = true;
    assert_null(usi_arena_text(&arena, "lost", &ok));
    assert_false(ok);
    assert_null(arena.chunks);
    ok = true;
    assert_string_equal(usi_arena_text(&arena, "found", &ok), "found");
    assert_true(ok);
    usi_arena_fini(&arena);
    test_allocator_check(&t);
}

static void texts_in_an_arena_are_copies_and_none_stays_none(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    usi_arena arena;
    usi_arena_init(&arena, &t.allocator);
    char original[] = "original";
    bool ok = true;
    char *copy = usi_arena_text(&arena, original, &ok);
    original[0] = 'X';
    assert_string_equal(copy, "original");
    assert_null(usi_arena_text(&arena, NULL, &ok));
    assert_string_equal(usi_arena_text(&arena, "", &ok), "");
    assert_true(ok);
    usi_arena_fini(&arena);
    test_allocator_check(&t);
}

static void carved_arrays_start_on_cache_lines_and_do_not_overlap(void **state) {
    (void)state;
    size_t size = 0, end = 0;
    const size_t counts[] = {1, 0, 3, 100, 0, 8};
    for (int i = 0; i < 6; i++) {
        size_t offset = usi_carve(&size, counts[i], sizeof(double));
        assert_int_equal(offset % USI_ALIGN, 0);
        assert_true(offset >= end && offset - end < USI_ALIGN);
        end = offset + counts[i] * sizeof(double);
        assert_int_equal(size, end);
    }
}

// The watching allocator itself: a test that cannot fail proves nothing.
static void the_watching_allocator_finds_what_it_is_there_for(void **state) {
    (void)state;
    test_allocator t;
    test_allocator_init(&t);
    us_allocator a = t.allocator;
    char *memory = a.alloc(a.context, 10, 8);
    assert_int_equal(t.n_live, 1);
    a.release(a.context, memory, 11, 8);
    assert_int_equal(t.n_wrong, 1);
    assert_int_equal(t.n_live, 1);
    a.release(a.context, memory, 10, 16);
    assert_int_equal(t.n_wrong, 2);
    memory[10] = 1;
    a.release(a.context, memory, 10, 8);
    assert_int_equal(t.n_wrong, 3);
    assert_int_equal(t.n_live, 0);
    t.fail_at = 3;
    memory = a.alloc(a.context, 1, 1);
    assert_non_null(memory);
    assert_null(a.alloc(a.context, 1, 1));
    a.release(a.context, memory, 1, 1);
    memory = a.alloc(a.context, 1, 1);
    assert_non_null(memory);
    a.release(a.context, memory, 1, 1);
    t.keep_failing = true;
    assert_null(a.alloc(a.context, 1, 1));
    assert_int_equal(t.n_failed, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_allocator_keeps_every_alignment),
        cmocka_unit_test(nothing_asked_for_is_still_memory_of_its_own),
        cmocka_unit_test(a_growing_array_keeps_its_contents),
        cmocka_unit_test(an_array_that_cannot_grow_is_unchanged),
        cmocka_unit_test(things_in_an_arena_are_aligned_and_do_not_overlap),
        cmocka_unit_test(an_arena_without_memory_says_so_and_goes_on_later),
        cmocka_unit_test(texts_in_an_arena_are_copies_and_none_stays_none),
        cmocka_unit_test(memory_that_is_not_there_is_not_found),
        cmocka_unit_test(carved_arrays_start_on_cache_lines_and_do_not_overlap),
        cmocka_unit_test(the_watching_allocator_finds_what_it_is_there_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
