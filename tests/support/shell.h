// A line for the shell.
#ifndef UNDERSTUDY_TEST_SHELL_H
#define UNDERSTUDY_TEST_SHELL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// Whether the line ran and ended with 0. One that is too long does not run.
__attribute__((format(printf, 1, 2))) static inline bool shell(const char *format, ...) {
    char line[4000];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return n >= 0 && n < (int)sizeof line && system(line) == 0;
}

#endif
