// Whether the process may open files and sockets enough: libraries of others do not all survive when it may
// not.
#ifndef USI_BUS_DESCRIPTORS_H
#define USI_BUS_DESCRIPTORS_H

#include <fcntl.h>
#include <unistd.h>

#include "understudy/base.h"

enum { USI_DESCRIPTORS = 32 };  // of a bus, or of a web server with a few clients

static inline us_status usi_need_descriptors(const char *what, us_error *err) {
    int fd[USI_DESCRIPTORS], n = 0;
    while (n < USI_DESCRIPTORS && (fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    for (int i = 0; i < n; i++)
        close(fd[i]);
    if (n == USI_DESCRIPTORS) return US_OK;
    return us_error_set(err, US_ERR_LIMIT, NULL, "raise the limit of open files (ulimit -n 1024)",
                        "%s needs %d files and sockets, and %d can be opened", what, (int)USI_DESCRIPTORS, n);
}

#endif
