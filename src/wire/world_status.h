// Lines of JSON that worlds and switches publish, as far as programs read them: docs/world-commands.md,
// docs/switch.md.
#ifndef USI_WIRE_WORLD_STATUS_H
#define USI_WIRE_WORLD_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One of the answers in a line of /understudy/status.
typedef struct usi_status_answer {
    bool is_ok;
    char message[256];  // cut
} usi_status_answer;

// The answer to the command that begins with `text`; false when the line has none. Of several the first.
bool usi_status_find_answer(const char *line, size_t length, const char *text, usi_status_answer *out);

// A line of /understudy/authority.
typedef struct usi_authority_line {
    char robot[65];
    bool has_epoch;
    uint64_t epoch;  // of the switch
} usi_authority_line;

// False when it does not begin with the robot's name.
bool usi_authority_read(const char *line, size_t length, usi_authority_line *out);

#endif
