// A motor server on loopback, what it hands over, and clients that talk to it, for tests.
//
// A failure here fails the running cmocka test.
#ifndef TESTS_SUPPORT_MOTOR_RIG_H
#define TESTS_SUPPORT_MOTOR_RIG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "bus/motor_server.h"

enum {
    RIG_DEADLINE = 20,
    RIG_MAX_COMMAND = 4096
};  // s: far beyond what anything takes, so that only a failure meets it

double rig_now(void);  // s

// ---- A server and what it hands over ----

typedef struct rig_command {
    int32_t client;
    usi_motor_command command;
    char text[USI_MOTOR_TEXT];
    size_t length;
} rig_command;

typedef struct motor_rig {
    usi_motor_server *server;
    bool is_prompt;  // each command is acknowledged in the callback; else by rig_answer_all
    pthread_mutex_t mutex;
    int32_t n_taken, n_answered;
    rig_command taken[RIG_MAX_COMMAND];
} motor_rig;

extern motor_rig rig;

// The motors FLDR, FRDR and ARM1, any free port.
usi_motor_server_def rig_def(void);
void rig_start(const usi_motor_server_def *def, bool is_prompt);
void rig_stop(void);
int32_t rig_n_taken(void);
void rig_answer_all(void);

#define RIG_WAIT_UNTIL(condition)                                                       \
    do {                                                                                \
        double end_ = rig_now() + RIG_DEADLINE;                                         \
        while (!(condition)) {                                                          \
            if (rig_now() > end_) fail_msg("this did not happen in time: " #condition); \
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);                     \
        }                                                                               \
    } while (0)

#define RIG_COUNT(name) (usi_motor_server_get_counts(rig.server).name)

// ---- A client ----

typedef struct rig_peer {
    int fd;
    char in[65536];
    size_t at, end;
} rig_peer;

// kind: SOCK_STREAM or SOCK_DGRAM; receive_buffer in bytes, 0: as the system has it.
int rig_connect(int kind, int receive_buffer);
rig_peer *rig_open(int kind);
void rig_close(rig_peer *peer);
void rig_say(rig_peer *peer, const char *text);
// The next message without its ';'. False: the connection has ended. A silent server fails the test.
bool rig_hear(rig_peer *peer, char *out, size_t cap);
// The next message that begins so.
void rig_hear_next(rig_peer *peer, const char *keyword, char *out, size_t cap);
void rig_expect(rig_peer *peer, const char *expected);
void rig_expect_end(rig_peer *peer);

#endif
