#include "domain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { FIRST = 201, LAST = 230 };

// A name in the abstract name space has one owner on the machine, and is free again when the last process
// that holds it ends.
static bool take(int32_t domain) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "understudy test domain %d", (int)domain);
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (s < 0) return false;
    if (bind(s, (const struct sockaddr *)&at,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
        return true;
    close(s);
    return false;
}

int32_t test_domain_of(int which) {
    static int32_t mine[TEST_N_DOMAIN];
    assert_in_range(which, 0, TEST_N_DOMAIN - 1);
    for (int32_t i = FIRST; !mine[which] && i <= LAST; i++) {
        if (take(i)) mine[which] = i;
    }
    if (!mine[which]) fail_msg("no DDS domain from %d to %d is free: end other tests", FIRST, LAST);
    return mine[which];
}
