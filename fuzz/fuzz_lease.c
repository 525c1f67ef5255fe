// Any text as a line of the lease's topics: what is taken for a request or an answer is written and read back
// as the same.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gate/gate_machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) abort();
}

static void check_request(const char *text, size_t size) {
    usi_lease_request a, b;
    char line[USI_LEASE_LINE], again[USI_LEASE_LINE];
    if (!usi_lease_request_read(text, size, &a)) return;
    must(a.robot[0] && memchr(a.robot, 0, sizeof a.robot) && (unsigned)a.role < (unsigned)US_GATE_N_ROLE);
    usi_lease_request_write(&a, line);
    must(usi_lease_request_read(line, strlen(line), &b));
    usi_lease_request_write(&b, again);
    must(strcmp(line, again) == 0);
}

static void check_answer(const char *text, size_t size) {
    usi_lease_answer a, b;
    char line[USI_LEASE_LINE], again[USI_LEASE_LINE];
    if (!usi_lease_answer_read(text, size, &a)) return;
    must(a.robot[0] && memchr(a.robot, 0, sizeof a.robot) && (unsigned)a.access < (unsigned)US_GATE_N_ACCESS);
    must(a.left >= 0 && a.left <= US_GATE_LEASE);
    usi_lease_answer_write(&a, line);
    must(usi_lease_answer_read(line, strlen(line), &b));
    usi_lease_answer_write(&b, again);
    must(strcmp(line, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    check_request(text, size);
    check_answer(text, size);
    free(text);
    return 0;
}
