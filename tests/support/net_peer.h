// The other side of the network, for tests: a real `understudy run` in a process of its own, and a program
// that listens to it and commands it.
//
// Each test program has a DDS domain of its own, on the loopback only. Everything that is heard is kept, so
// that a test looks at it when it likes. Nothing here asserts how fast the machine is: conditions are waited
// for, and time is that of /clock.
#ifndef TEST_NET_PEER_H
#define TEST_NET_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "understudy/bus.h"
#include "wire/messages.h"

// Far beyond what a busy machine needs, also with sanitizers; reached only when something is broken.
#define NET_PATIENCE 40.0  // s

double net_clock(void);  // s of the machine
void net_nap(void);      // a millisecond

// Looks at a condition until it holds; fails, with what the program said, when it does not for long.
#define NET_WAIT(condition)                                                   \
    do {                                                                      \
        double net_until_ = net_clock() + NET_PATIENCE;                       \
        while (!(condition)) {                                                \
            if (net_clock() > net_until_) net_fail("waited for", #condition); \
            net_nap();                                                        \
        }                                                                     \
    } while (0)

// Ends the test, and shows the output of the running program.
void net_fail(const char *what, const char *detail);

int32_t net_domain(void);

// ---- the program ----

// Writes a scene with the K10 on flat ground; `inside` is put into its <robot>, for example a <network>. It
// has joints that steer (kp, kd) and drive (kd), all-wheel locomotion up to 0.9 m/s, 1.5 rad/s and 1 m/s^2,
// and a battery of 1 Wh.
void net_write_k10(const char *path, const char *inside);
// The same on other ground: what is inside <world>, and behind it.
void net_write_scene(const char *path, const char *world, const char *materials, const char *inside);
void net_write_text(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The whole file, to be freed.
char *net_read_text(const char *path);

// The RMW_IMPLEMENTATION of programs that are started from now on; NULL: none.
void net_set_rmw(const char *name);
// And their ROS_STATIC_PEERS.
void net_set_static_peers(const char *peers);
// Starts `understudy run ARGUMENTS` (separated by single blanks). One at a time: one that is left over from a
// failed test is ended first.
void net_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
int net_process(void);  // its number
// Sends a signal (0: none) and waits for the end. The exit code, or 128 + the signal.
int net_end(int signal_number);
const char *net_output(void);  // what it printed, both outputs
// A TCP port that was free a moment ago.
int net_free_port(void);
// Kills what runs. For the end of a test program.
int net_teardown(void **state);

// ---- the peer ----

enum { NET_EARS = 64 };

typedef struct net_heard {
    uint8_t *bytes;
    size_t length;
    int64_t order;  // among all that this peer heard
    double clock;   // s: the newest /clock that had come before; -1: none
} net_heard;

typedef struct net_peer net_peer;

// Listens to /clock from the start. NULL when the vendor's plug-in is not there.
net_peer *net_open(const char *vendor);
void net_close(net_peer *p);
us_bus *net_bus(net_peer *p);
double net_time(net_peer *p);  // s: the newest /clock; -1 before the first
void net_wait_until(net_peer *p, double time);

// Keeps everything on a topic from now on. The number of the ear.
int32_t net_listen(net_peer *p, const char *topic, const us_message_type *type);
// Until the robot's writer has been found.
void net_wait_match(net_peer *p, int32_t ear);
int64_t net_count(net_peer *p, int32_t ear);
net_heard net_get(net_peer *p, int32_t ear, int64_t i);  // i < 0: from the end, -1 is the newest
double net_number(net_peer *p, int32_t ear, int64_t i, const char *path);
double net_stamp(net_peer *p, int32_t ear, int64_t i);  // s: of the header, the first transform or the clock
// The message, valid until the next call.
const void *net_decode(net_peer *p, int32_t ear, int64_t i);
// Waits for a message that was stamped after `time`; its number.
int64_t net_wait_after(net_peer *p, int32_t ear, double time);

// A writer whose messages somebody hears.
us_writer *net_speak(net_peer *p, const char *topic, const us_message_type *type);
void net_say(us_writer *writer, const us_message_type *type, const void *message);

#endif
