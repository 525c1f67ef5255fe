// Serial lines of robots: pseudo terminals, each behind a link with a name that stays.
//
// A program opens the name as it would a serial port; what it sets of speed, parity or echo does not matter.
// It may close and open it again as often as it likes: what was not read by then is gone. One thread serves
// all lines of a robot. A line is either a bridge to the robot's ASCII link, or a device of bytes.
#ifndef USI_BUS_SERIAL_LINE_H
#define USI_BUS_SERIAL_LINE_H

#include "understudy/base.h"

// Bytes came, or (n 0) some milliseconds have passed: what the device answers, at most cap bytes. On the
// thread of the lines, while a program has the line open.
typedef size_t usi_serial_function(void *context, const uint8_t *in, size_t n, uint8_t *out, size_t cap);

typedef struct usi_serial_def {
    const char *path;               // the name; copied
    int32_t port;                   // of TCP on this machine, to which it is a bridge; 0: it is a device
    usi_serial_function *on_bytes;  // of a device
    void *context;
} usi_serial_def;

enum { USI_SERIAL_LINES = 8, USI_SERIAL_BYTES = 1024 };

typedef struct usi_serial usi_serial;

// US_ERR_IO with the remedy when a terminal cannot be made, or the name is taken by something else; then no
// name is left behind. A link that a program left behind which has ended is replaced.
us_status usi_serial_create(const us_allocator *allocator, const usi_serial_def *lines, int32_t n,
                            usi_serial **out_serial, us_error *err);
void usi_serial_destroy(usi_serial *serial);  // removes the names; NULL is allowed

#endif
