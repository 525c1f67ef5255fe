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

// Domains whose ports Linux gives to nobody who asks for any port, which it does from 32768 to 60999: above
// them first, where no robot is, then below.
enum { FIRST = 215, LAST = 230, FIRST_LOW = 80, LAST_LOW = 101 };

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
    for (int32_t i = FIRST_LOW; !mine[which] && i <= LAST_LOW; i++) {
        if (take(i)) mine[which] = i;
    }
    if (!mine[which])
        fail_msg("no DDS domain from %d to %d, or %d to %d, is free: end other tests", FIRST, LAST, FIRST_LOW,
                 LAST_LOW);
    return mine[which];
}
