// The pager alone: what is asked for is there, exactly, with its extremes; pages come and go.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "allocator.h"
#include "base/pages.h"
#include "site_make.h"
#include "terrain/pager.h"

enum { N_X = 1301, N_Y = 700 };
static const double DX = 0.5, DY = 0.25;
static const char *const SITE = "site";

static int setup(void **state) {
    (void)state;
    site_make(SITE, N_X, N_Y, DX, DY, site_hills);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    site_clear(SITE);
    return 0;
}

static double height(usi_window of, int32_t i, int32_t j) {
    return (double)site_hills((of.i0 + i - 0.5 * (N_X - 1)) * DX, (of.j0 + j - 0.5 * (N_Y - 1)) * DY);
}

static usi_pager *open_pager(usi_window window, size_t memory, const us_allocator *allocator) {
    us_allocator a = allocator ? *allocator : us_allocator_default();
    us_site *site = NULL;
    usi_pager *p = NULL;
    us_error err = {0};
    if (us_site_open(SITE, &a, &site, &err) || usi_pager_create(site, 0, window, memory, &a, &p, &err))
        fail_msg("%s: %s", err.file, err.message);
    return p;
}

static void ask(usi_pager_client *c, usi_window w) {
    us_error err = {0};
    usi_pager_begin(c);
    usi_pager_need(c, w);
    if (usi_pager_wait(c, &err)) fail_msg("%s: %s", err.file, err.message);
}

// Every sample in the window and the extremes of every 8 by 8 cells that have one there.
static void check(const usi_pager *p, usi_window of, usi_window w) {
    int32_t n_x = of.i1 - of.i0 + 1, n_y = of.j1 - of.j0 + 1, n_block_x = (n_x - 2) / 8 + 1,
            n_block_y = (n_y - 2) / 8 + 1;
    const double *h = usi_pager_heights(p);
    const double(*e)[2] = (const double(*)[2])usi_pager_extremes(p);
    for (int32_t j = w.j0; j <= w.j1; j++) {
        for (int32_t i = w.i0; i <= w.i1; i++) {
            assert_true(h[(size_t)j * (size_t)n_x + (size_t)i] == height(of, i, j));
            int32_t u = i / 8 < n_block_x ? i / 8 : n_block_x - 1,
                    v = j / 8 < n_block_y ? j / 8 : n_block_y - 1;
            if (i % 8 != 4 || j % 8 != 4) continue;
            double low = INFINITY, high = -INFINITY;
            for (int32_t b = 8 * v; b <= 8 * v + 8 && b < n_y; b++)
                for (int32_t a = 8 * u; a <= 8 * u + 8 && a < n_x; a++) {
                    low = fmin(low, height(of, a, b));
                    high = fmax(high, height(of, a, b));
                }
            const double *x = e[(size_t)v * (size_t)n_block_x + (size_t)u];
            assert_true(x[0] == low && x[1] == high);
        }
    }
}

static const usi_window whole = {0, N_X - 1, 0, N_Y - 1};

static void what_is_asked_for_is_there_wherever_it_lies(void **state) {
    (void)state;
    usi_pager *p = open_pager(whole, SIZE_MAX, NULL);
    usi_pager_client *c = NULL;
    assert_int_equal(usi_pager_client_create(p, &c), US_OK);
    // Inside a tile, over a corner of four, at the ends of the ground, and all of it.
    const usi_window windows[] = {{100, 120, 90, 95},
                                  {250, 260, 250, 260},
                                  {0, 3, 0, 3},
                                  {N_X - 20, N_X - 1, N_Y - 20, N_Y - 1},
                                  {0, N_X - 1, 0, N_Y - 1}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        ask(c, windows[i]);
        check(p, whole, windows[i]);
    }
    // 6 by 3 tiles, and nothing was given back.
    usi_pager_info info = usi_pager_get_info(p);
    assert_true(info.n_read == 18 && info.n_resident == 18 && info.n_drop == 0);
    // All that there is: the heights and their extremes, in whole pages.
    size_t page = usi_page_size(), heights = (size_t)N_X * N_Y * sizeof(double),
           blocks = (size_t)163 * 88 * 2 * sizeof(double);
    assert_int_equal(info.bytes, ((heights - 1) / page + 1 + (blocks - 1) / page + 1) * page);
    usi_pager_client_destroy(c);
    usi_pager_destroy(p);
}

static void a_part_of_the_ground_is_the_same_ground(void **state) {
    (void)state;
    // Not at a border of tiles, nor of 8 cells.
    const usi_window part = {243, 779, 131, 590};
    usi_pager *p = open_pager(part, SIZE_MAX, NULL);
    usi_pager_client *c = NULL;
    assert_int_equal(usi_pager_client_create(p, &c), US_OK);
    const usi_window windows[] = {{0, 40, 0, 40}, {5, 20, 120, 140}, {520, 536, 440, 459}, {0, 536, 0, 459}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        ask(c, windows[i]);
        check(p, part, windows[i]);
    }
    usi_pager_client_destroy(c);
    usi_pager_destroy(p);
}

static void a_window_beside_the_ground_asks_for_nothing(void **state) {
    (void)state;
    usi_pager *p = open_pager(whole, SIZE_MAX, NULL);
    usi_pager_client *c = NULL;
    assert_int_equal(usi_pager_client_create(p, &c), US_OK);
    ask(c, (usi_window){-50, -9, 0, 100});
    ask(c, (usi_window){N_X, N_X + 5, 0, 100});
    ask(c, (usi_window){10, 5, 0, 100});
    assert_int_equal(usi_pager_get_info(p).n_read, 0);
    ask(c, (usi_window){-50, 0, -50, 0});
    check(p, whole, (usi_window){0, 0, 0, 0});
    assert_int_equal(usi_pager_get_info(p).n_read, 1);
    usi_pager_client_destroy(c);
    usi_pager_destroy(p);
}

static void walks_in_little_memory_find_every_sample(void **state) {
    (void)state;
    const size_t memory = 6300 * 1000;
    test_allocator t;
    test_allocator_init(&t);
    usi_pager *p = open_pager(whole, memory, &t.allocator);
    usi_pager_client *c[2] = {NULL, NULL};
    for (int k = 0; k < 2; k++)
        assert_int_equal(usi_pager_client_create(p, &c[k]), US_OK);
    int64_t n_alloc = t.n_alloc;
    for (uint64_t n = 0; n < 300; n++) {
        for (int k = 0; k < 2; k++) {
            double x = us_random_uniform(3, (uint64_t)k, 2 * n),
                   y = us_random_uniform(3, (uint64_t)k, 2 * n + 1);
            int32_t i = (int32_t)(x * (N_X - 12)), j = (int32_t)(y * (N_Y - 12));
            // The second keeps inside single tiles: two corners of four tiles would be more than fits.
            if (k == 1) {
                i = (int32_t)(x * 5) * 256 + 100;
                j = (int32_t)(y * 2) * 256 + 100;
            }
            usi_window w = {i, i + 11, j, j + 11};
            us_error err = {0};
            usi_pager_begin(c[k]);
            usi_pager_need(c[k], w);
            usi_pager_expect(c[k], (usi_window){i - 200, i + 200, j, j});
            us_status status = usi_pager_wait(c[k], &err);
            if (status) fail_msg("%s", err.message);
            check(p, whole, w);
            assert_true(usi_pager_get_info(p).bytes <= memory);
        }
    }
    usi_pager_info info = usi_pager_get_info(p);
    assert_true(info.n_drop > 100 && usi_pager_n_wait(c[0]) > 0);
    assert_int_equal(t.n_alloc, n_alloc);
    for (int k = 0; k < 2; k++)
        usi_pager_client_destroy(c[k]);
    usi_pager_destroy(p);
    test_allocator_check(&t);
}

static void what_one_needs_is_not_given_back_for_another(void **state) {
    (void)state;
    usi_pager *p = open_pager(whole, 2 * 1000 * 1000, NULL);
    usi_pager_client *a = NULL, *b = NULL;
    us_error err = {0};
    assert_true(!usi_pager_client_create(p, &a) && !usi_pager_client_create(p, &b));
    const usi_window here = {100, 110, 100, 110}, there = {600, 610, 400, 410};
    ask(a, here);
    // A tile takes more than 1 MB here: both do not fit.
    usi_pager_begin(b);
    usi_pager_need(b, there);
    assert_int_equal(usi_pager_wait(b, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "memory=\"2 MB\""));
    check(p, whole, here);
    // When the first has gone, there is room.
    usi_pager_client_destroy(a);
    ask(b, there);
    check(p, whole, there);
    usi_pager_client_destroy(b);
    usi_pager_destroy(p);
}

static void what_is_expected_is_read_without_being_waited_for(void **state) {
    (void)state;
    usi_pager *p = open_pager(whole, SIZE_MAX, NULL);
    usi_pager_client *c = NULL;
    us_error err = {0};
    assert_int_equal(usi_pager_client_create(p, &c), US_OK);
    usi_pager_begin(c);
    usi_pager_need(c, (usi_window){100, 110, 100, 110});
    usi_pager_expect(c, (usi_window){100, 300, 100, 110});
    assert_int_equal(usi_pager_wait(c, &err), US_OK);
    // The worker takes what is needed first, and then the rest: two tiles. A minute is far more than it
    // takes.
    for (int k = 0; k < 60000 && usi_pager_get_info(p).n_read < 2; k++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_int_equal(usi_pager_get_info(p).n_read, 2);
    ask(c, (usi_window){290, 300, 100, 110});
    assert_int_equal(usi_pager_n_wait(c), 0);
    usi_pager_client_destroy(c);
    usi_pager_destroy(p);
}

static void out_of_memory_at_any_allocation_leaves_nothing_behind(void **state) {
    (void)state;
    bool is_whole = false;
    for (int64_t at = 1; !is_whole; at++) {
        assert_true(at < 40);
        test_allocator t;
        test_allocator_init(&t);
        t.fail_at = at;
        us_site *site = NULL;
        usi_pager *p = NULL;
        usi_pager_client *c = NULL;
        us_error err = {0};
        us_status status = us_site_open(SITE, &t.allocator, &site, &err);
        if (!status) status = usi_pager_create(site, 0, whole, SIZE_MAX, &t.allocator, &p, &err);
        if (!status) status = usi_pager_client_create(p, &c);
        is_whole = status == US_OK;
        assert_true(is_whole || status == US_ERR_MEMORY);
        usi_pager_client_destroy(c);
        usi_pager_destroy(p);
        test_allocator_check(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for_is_there_wherever_it_lies),
        cmocka_unit_test(a_part_of_the_ground_is_the_same_ground),
        cmocka_unit_test(a_window_beside_the_ground_asks_for_nothing),
        cmocka_unit_test(walks_in_little_memory_find_every_sample),
        cmocka_unit_test(what_one_needs_is_not_given_back_for_another),
        cmocka_unit_test(what_is_expected_is_read_without_being_waited_for),
        cmocka_unit_test(out_of_memory_at_any_allocation_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
