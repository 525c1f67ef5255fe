// Reserved addresses: far more than memory, of which only what is written takes any.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/pages.h"

// How many of n pages have memory behind them.
static int32_t count_resident(char *from, int32_t n) {
    unsigned char here[64] = {0};
    int32_t count = 0;
    assert_true(n <= 64);
    assert_int_equal(mincore(from, (size_t)n * usi_page_size(), here), 0);
    for (int32_t i = 0; i < n; i++)
        count += here[i] & 1;
    return count;
}

static void pages_take_memory_when_they_are_written_and_give_it_back(void **state) {
    (void)state;
    const size_t page = usi_page_size(), size = (size_t)1 << 32;
    char *p = usi_pages_reserve(size);
    assert_non_null(p);
    char *far = p + size / page / 2 * page;
    assert_int_equal(count_resident(far, 64), 0);
    for (int32_t i = 0; i < 8; i++)
        memset(far + 2 * (size_t)i * page, 7, page);
    assert_int_equal(count_resident(far, 64), 8);
    // Pages 4 to 7: two of them were written.
    usi_pages_drop(far + 4 * page, 4 * page);
    assert_int_equal(count_resident(far, 64), 6);
    assert_true(far[2 * page] == 7 && far[4 * page] == 0 && far[6 * page] == 0 && far[8 * page] == 7);
    usi_pages_free(p, size);
    usi_pages_free(NULL, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_take_memory_when_they_are_written_and_give_it_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
