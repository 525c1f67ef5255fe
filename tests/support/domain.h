// DDS domains for tests that choose their own: no two processes of this machine have the same one at the same
// time.
#ifndef TEST_DOMAIN_H
#define TEST_DOMAIN_H

#include <stdint.h>

enum { TEST_N_DOMAIN = 4 };

// The domain number `which` (0 to TEST_N_DOMAIN - 1) of this process, the same at each call, and its own
// until it and its children end. CTest gives the tests that choose none domains from 1 to 200; these lie
// above.
int32_t test_domain_of(int which);

#endif
