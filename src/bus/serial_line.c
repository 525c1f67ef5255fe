// Serial lines of robots, by pseudo terminals.
//
// The master side tells by a hang-up that no program has the other side open. Then the line waits: it is
// looked at every 20 ms, and nothing is written. When somebody opens it, a bridge connects to the robot's
// port, so that a program on the line is a client of the link like any other: its rates are bounded, its
// stops get through, its states give way to newer ones.
#include "bus/serial_line.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/memory.h"

enum { LOOK_MS = 20, DEVICE_MS = 5 };

typedef struct line {
    usi_serial_def def;
    char path[PATH_MAX], terminal[64];
    int master;  // -1: none
    int tcp;     // of a bridge with somebody on the line; -1: none
    bool is_open, has_name;
    size_t n_in, n_out;  // to the robot; to the program
    uint8_t in[USI_SERIAL_BYTES], out[2 * USI_SERIAL_BYTES];
} line;

struct usi_serial {
    us_allocator allocator;
    pthread_t thread;
    bool is_started;
    _Atomic bool is_over;
    int32_t n;
    line lines[USI_SERIAL_LINES];
};

// ---------------------------------------------------------------- terminals and names

static void make_raw(int fd) {
    struct termios t;
    if (tcgetattr(fd, &t)) return;
    cfmakeraw(&t);
    (void)tcsetattr(fd, TCSANOW, &t);
}

// What a program left unread is thrown away. Its side is opened and closed, so that a hang-up is seen.
static void drain(const line *l) {
    const int fd = open(l->terminal, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    make_raw(fd);
    (void)tcflush(fd, TCIOFLUSH);
    close(fd);
}

static us_status open_terminal(line *l, us_error *err) {
    l->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    const bool is_good = l->master >= 0 && !grantpt(l->master) && !unlockpt(l->master) &&
                         !ptsname_r(l->master, l->terminal, sizeof l->terminal) &&
                         // Terminals can be written by their group, for messages: here these were commands.
                         !chmod(l->terminal, S_IRUSR | S_IWUSR) && fcntl(l->master, F_SETFL, O_NONBLOCK) == 0;
    if (!is_good)
        return us_error_set(err, US_ERR_IO, NULL,
                            "End programs that have terminals open, or do without --serial.",
                            "no pseudo terminal can be made: %s", strerror(errno));
    make_raw(l->master);
    drain(l);
    return US_OK;
}

// A link to a terminal that is no more, left behind by a program that was killed.
static bool is_left_behind(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0 && S_ISLNK(s.st_mode) && stat(path, &s) != 0;
}

static us_status make_name(line *l, us_error *err) {
    if (is_left_behind(l->path)) (void)unlink(l->path);
    if (symlink(l->terminal, l->path) == 0) {
        l->has_name = true;
        return US_OK;
    }
    const char *remedy = errno == EEXIST ? "Remove it, or give --serial another directory."
                                         : "Give --serial a directory that may be written.";
    return us_error_set(err, US_ERR_IO, NULL, remedy, "the serial line %.300s cannot be made: %s", l->path,
                        errno == EEXIST ? "there is something of that name" : strerror(errno));
}

static void remove_name(line *l) {
    char target[64];
    const ssize_t n = l->has_name ? readlink(l->path, target, sizeof target - 1) : -1;
    if (n < 0) return;
    target[n] = 0;
    if (strcmp(target, l->terminal) == 0) (void)unlink(l->path);
}

// ---------------------------------------------------------------- one line

static void hang_up(line *l) {
    if (l->tcp >= 0) close(l->tcp);
    l->tcp = -1;
    l->is_open = false;
    l->n_in = l->n_out = 0;
    drain(l);
}

static bool is_hung(const line *l) {
    struct pollfd p = {.fd = l->master};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP);
}

static int connect_port(int32_t port) {
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // The robot's own port, on this machine: it answers at once.
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
        fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

// Somebody has opened a line that nobody had.
static void look(line *l) {
    if (l->is_open || is_hung(l)) return;
    make_raw(l->master);
    if (l->def.port > 0) {
        l->tcp = connect_port(l->def.port);
        if (l->tcp < 0) return;
    }
    l->is_open = true;
}

// Writes what waits; what is not taken stays. False: the other side is gone.
static bool flush_to(int fd, uint8_t *bytes, size_t *n) {
    while (*n > 0) {
        const ssize_t done = write(fd, bytes, *n);
        if (done < 0) return errno == EAGAIN || errno == EINTR;
        *n -= (size_t)done;
        memmove(bytes, bytes + done, *n);
    }
    return true;
}

// False: the other side has ended.
static bool fill_from(int fd, uint8_t *bytes, size_t cap, size_t *n) {
    if (*n == cap) return true;
    const ssize_t got = read(fd, bytes + *n, cap - *n);
    if (got > 0) *n += (size_t)got;
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool serve_bridge(line *l, bool has_master, bool has_tcp) {
    bool ok = !has_master || fill_from(l->master, l->in, sizeof l->in, &l->n_in);
    ok = ok && (!has_tcp || fill_from(l->tcp, l->out, sizeof l->out, &l->n_out));
    return ok && flush_to(l->tcp, l->in, &l->n_in) && flush_to(l->master, l->out, &l->n_out);
}

static bool serve_device(line *l, bool has_master) {
    bool ok = !has_master || fill_from(l->master, l->in, sizeof l->in, &l->n_in);
    // What it answers is at most as long as what it was asked, or a packet: there is room first.
    if (ok && l->n_out <= sizeof l->out / 2) {
        l->n_out +=
            l->def.on_bytes(l->def.context, l->in, l->n_in, l->out + l->n_out, sizeof l->out - l->n_out);
        l->n_in = 0;
    }
    return ok && flush_to(l->master, l->out, &l->n_out);
}

// ---------------------------------------------------------------- the thread

// Who is waited for: the terminal and, of a bridge, the port; nobody of a line that is not open.
static void list(const usi_serial *s, struct pollfd *out) {
    for (int32_t i = 0; i < s->n; i++) {
        const line *l = &s->lines[i];
        const bool has_room = l->n_in < sizeof l->in, may_read = l->n_out < sizeof l->out;
        out[2 * i] = (struct pollfd){.fd = l->is_open ? l->master : -1};
        out[2 * i].events = (short)((has_room ? POLLIN : 0) | (l->n_out > 0 ? POLLOUT : 0));
        out[2 * i + 1] = (struct pollfd){.fd = l->tcp};
        out[2 * i + 1].events = (short)((may_read ? POLLIN : 0) | (l->n_in > 0 ? POLLOUT : 0));
    }
}

static void *serve(void *context) {
    usi_serial *s = context;
    struct pollfd polls[2 * USI_SERIAL_LINES];
    while (!atomic_load(&s->is_over)) {
        bool has_device = false;
        for (int32_t i = 0; i < s->n; i++) {
            look(&s->lines[i]);
            has_device = has_device || (s->lines[i].is_open && s->lines[i].def.port == 0);
        }
        list(s, polls);
        (void)poll(polls, (nfds_t)(2 * s->n), has_device ? DEVICE_MS : LOOK_MS);
        for (int32_t i = 0; i < s->n; i++) {
            line *l = &s->lines[i];
            if (!l->is_open) continue;
            const bool has_master = polls[2 * i].revents & POLLIN,
                       has_tcp = polls[2 * i + 1].revents & (POLLIN | POLLHUP);
            const bool ok =
                l->def.port > 0 ? serve_bridge(l, has_master, has_tcp) : serve_device(l, has_master);
            // What was sent before the program closed the line has been read by now.
            if (!ok || (!has_master && (polls[2 * i].revents & POLLHUP))) hang_up(l);
        }
    }
    return NULL;
}

// ---------------------------------------------------------------- making and ending

us_status usi_serial_create(const us_allocator *allocator, const usi_serial_def *lines, int32_t n,
                            usi_serial **out_serial, us_error *err) {
    *out_serial = NULL;
    if (n < 1 || n > USI_SERIAL_LINES)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "%d serial lines", (int)n);
    us_allocator a = *allocator;
    usi_serial *s = usi_alloc(&a, sizeof *s, _Alignof(usi_serial));
    if (!s) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for serial lines");
    memset(s, 0, sizeof *s);
    s->allocator = a;
    us_status status = US_OK;
    for (int32_t i = 0; i < n && !status; i++) {
        line *l = &s->lines[s->n++];
        l->def = lines[i];
        l->master = l->tcp = -1;
        snprintf(l->path, sizeof l->path, "%s", lines[i].path);
        l->def.path = NULL;
        status = open_terminal(l, err);
        if (!status) status = make_name(l, err);
    }
    if (!status) {
        // Signals are for the program's own threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        s->is_started = !pthread_create(&s->thread, NULL, serve, s);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!s->is_started)
            status = us_error_set(err, US_ERR_LIMIT, NULL, "free memory, or end other programs",
                                  "the thread of the serial lines cannot be started");
    }
    if (status) {
        usi_serial_destroy(s);
        return status;
    }
    *out_serial = s;
    return US_OK;
}

void usi_serial_destroy(usi_serial *serial) {
    if (!serial) return;
    atomic_store(&serial->is_over, true);
    if (serial->is_started) pthread_join(serial->thread, NULL);
    for (int32_t i = 0; i < serial->n; i++) {
        line *l = &serial->lines[i];
        remove_name(l);
        if (l->tcp >= 0) close(l->tcp);
        if (l->master >= 0) close(l->master);
    }
    us_allocator a = serial->allocator;
    usi_release(&a, serial, sizeof *serial, _Alignof(usi_serial));
}
