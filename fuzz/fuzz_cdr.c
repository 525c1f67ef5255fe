// Any bytes as a message: the first byte picks the type, the others are its CDR. Decoder and printer must
// agree on whether it is one; what was decoded is encoded, and that must decode and print as the same
// message.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "understudy/wire.h"

enum { MEMORY = 1 << 20, TEXT = 1 << 18 };
static _Alignas(16) uint8_t memory[2][MEMORY];
static uint8_t encoded[2][MEMORY];
static char text[2][TEXT];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition) {
    if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    const us_message_type *type = us_message_get_type(data[0] % us_message_n_type());
    const uint8_t *bytes = data + 1;
    size_t length = size - 1, n_text[2] = {0, 0}, n[2] = {0, 0};
    const void *message = NULL;
    us_error err;
    us_status status = us_message_decode(type, bytes, length, memory[0], MEMORY, &message, &err);
    us_status printed = us_message_print(type, bytes, length, 0, text[0], TEXT, &n_text[0], &err);
    require((printed == US_OK) == (status != US_ERR_SYNTAX));
    // Cut short it may pass over a bool that is neither 0 nor 1, but never the other way round.
    char start[100];
    us_status cut = us_message_print(type, bytes, length, 2, start, sizeof start, NULL, &err);
    require(cut == US_OK || printed != US_OK);
    (void)us_message_get_number(type, bytes, length, "header.stamp.nanosec");
    (void)us_message_get_number(type, bytes, length, "transforms[1].transform.rotation.w");
    (void)us_message_get_number(type, bytes, length, "points[2].positions[1]");
    (void)us_message_get_number(type, bytes, length, "changed_parameters[1].value.integer_array_value[3]");
    if (status) return 0;

    require(us_message_encode(type, message, encoded[0], MEMORY, &n[0]) == US_OK);
    require(us_message_decode(type, encoded[0], n[0], memory[1], MEMORY, &message, &err) == US_OK);
    require(us_message_print(type, encoded[0], n[0], 0, text[1], TEXT, &n_text[1], &err) == US_OK);
    require(n_text[0] == n_text[1] && strcmp(text[0], text[1]) == 0);
    require(us_message_encode(type, message, encoded[1], MEMORY, &n[1]) == US_OK);
    require(n[0] == n[1] && memcmp(encoded[0], encoded[1], n[0]) == 0);
    return 0;
}
