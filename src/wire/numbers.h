// All numbers of a message, straight from its bytes, in their order.
#ifndef USI_WIRE_NUMBERS_H
#define USI_WIRE_NUMBERS_H

#include "understudy/wire.h"

enum { USI_NUMBER_PATH = 192 };

// `path` as us_message_get_number has it, "pose.pose.position.x", "position[2]"; borrowed. False ends the
// walk.
typedef bool usi_number_function(void *context, const char *path, double value);
// Strings are passed over. False when it was ended, or when the bytes are no such message.
bool usi_message_each_number(const us_message_type *type, const void *bytes, size_t length,
                             usi_number_function *visit, void *context);

#endif
