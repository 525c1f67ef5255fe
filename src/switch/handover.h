// Handing the state over from the one who plays to the other, so that the audience sees no jump.
//
//     hardware -> proxy    the proxy takes over the hardware's state (adopt), says so, and is looked at once
//     more before it plays proxy -> hardware    the two must agree, for a robot cannot be set; on request the
//     hardware is driven to where the proxy is first both                 the first velocities that the new
//     one is told begin with what it does, and go to what is asked at a bounded rate
#ifndef USI_SWITCH_HANDOVER_H
#define USI_SWITCH_HANDOVER_H

#include <pthread.h>

#include "switch/authority.h"
#include "switch/estimate.h"

typedef struct usi_route usi_route;

enum { USI_HANDOVER_LINE = 48 * 1024, USI_HANDOVER_COMMAND = 4096 };

// How far two states are apart, at one time. NaN: at least one of them does not tell.
typedef struct usi_difference {
    double position, yaw, speed, turn;  // m, rad, m/s, rad/s
    double joint;                       // rad or m: the greatest among joints with a motor and an end
    char name[USI_ESTIMATE_NAME];       // of that joint
} usi_difference;

// All that is known of one hand-over: what the line of evidence says.
typedef struct usi_handover_record {
    int64_t time, began;  // ns of wall time, and of usi_switch_now
    uint64_t epoch;
    us_switch_source from, to;
    us_switch_mode mode;
    bool is_forced, is_refused;
    char reason[160], why[160];
    usi_estimate before[2], after[2];
    int64_t before_now, after_now;  // when they were looked at, ns of usi_switch_now
    usi_difference before_difference, after_difference;
    double adopt, look, align,
        total;   // s: until the proxy answered, until it was seen to agree, until the moment was right; all
    double lag;  // s: how far the proxy's stamps are behind the hardware's
} usi_handover_record;

// The hardware on its way to where the proxy is. The switch's thread's own.
typedef struct usi_match {
    bool is_on, is_turning, is_arrived;
    int64_t since, sent, joints_sent, better;  // ns of usi_switch_now: begun, last commands, last progress
    double best;                               // m: the least that was left to do
    double speed[2];                           // m/s, rad/s: last commanded
} usi_match;

typedef struct usi_handover {
    us_handover_def def;
    char evidence[512];
    us_writer *command;  // in the proxy's domain: /understudy/command
    us_writer *told;     // on the operators' side: /understudy/handover
    bool is_foreseen;  // the proxy was set to the state of the hardware that is about to be lost; the record
                       // has begun
    char *line;        // USI_HANDOVER_LINE
    usi_handover_record record;
    usi_match match;

    pthread_mutex_t lock;  // guards what follows
    pthread_cond_t wake;
    char awaited[128];  // how the answer that is waited for begins; "": none
    bool is_answered, is_accepted;
    char message[160];
    double want[3];     // the last velocity that the operators asked for
    int64_t want_time;  // ns of usi_switch_now; 0: none yet

    // The forwarder's, with the gate open; the switch's thread's, with the gate closed.
    int64_t changed;  // ns of usi_switch_now: the last hand-over
    bool is_ramping;
    double ramp[3];     // m/s, m/s, rad/s: last passed on
    int64_t ramp_time;  // ns
} usi_handover;

// What a request says beside the mode: us_switch_how.
typedef struct usi_asked {
    us_switch_mode mode;
    us_switch_how how;
} usi_asked;

us_status usi_handover_check_def(const us_handover_def *def, us_error *err);
us_status usi_handover_open(us_switch *sw, const us_handover_def *def, us_error *err);
us_status usi_handover_join(us_switch *sw, us_error *err);  // once the buses are open
void usi_handover_close(us_switch *sw);

// ---- of each change, in this order, on the switch's thread ----
void usi_handover_begin(us_switch *sw, const usi_verdict *verdict, bool is_forced);
// Before a change that the watchdog may soon ask for: the state is handed over now, so that nothing is left
// to wait for then.
void usi_handover_foresee(us_switch *sw);
// The hand-over itself, while samples still flow. Anything but US_OK refuses, with err's message as the
// reason.
us_status usi_handover_prepare(us_switch *sw, us_switch_how how, us_error *err);
// Waits, not longer than two periods, for a moment between samples: between the last of the old one and the
// first of the new one about one period passes. Refuses where the two have parted again meanwhile.
us_status usi_handover_align(us_switch *sw, us_error *err);
// With the gate closed: the new one's velocity is where the ramp begins, and its stamps go on where the old
// one's ended.
void usi_handover_start_ramp(us_switch *sw);
// Writes the line of evidence. `why` NULL: it is done.
void usi_handover_end(us_switch *sw, uint64_t epoch, const char *why);

// A velocity of the operators that is about to be passed on, on the forwarder's thread with the gate open.
// Returns the sample to pass instead: `given` itself, or one in `buf` that the ramp has limited.
const us_sample *usi_handover_ramp(us_switch *sw, const usi_route *route, const us_sample *given,
                                   us_sample *out, uint8_t *buf, size_t cap);

// The proxy is set to the hardware's state as it is now; nobody's control changes. On the switch's thread;
// waits for the answer, at most half a watchdog.
us_status usi_switch_resync(us_switch *sw, us_error *err);

// ---- parts ----
// The base's place, heading and velocity, extrapolated to `now` from when it was heard.
void usi_estimate_planar(const usi_estimate *e, int64_t now, double out_pose[3], double out_velocity[3]);
usi_difference usi_handover_compare(us_switch *sw, const usi_estimate *a, const usi_estimate *b, int64_t now);
// True when they agree within the limits; else `out` says what differs and by how much.
bool usi_handover_agree(const us_handover_def *def, const usi_difference *d, char *out, size_t cap);
// A joint that has a motor and an end, by the robot's description; false without a description.
bool usi_handover_is_steered(const char *description, const char *joint);
// The latched description of the robot, or NULL; valid until the next sample of it. With the gate closed or
// on the forwarder's thread.
const char *usi_switch_description(us_switch *sw);

// match.c: the hardware is driven to the proxy's pose.
us_status usi_match_begin(us_switch *sw, us_error *err);
typedef enum usi_match_state {
    USI_MATCH_NONE,
    USI_MATCH_ON_ITS_WAY,
    USI_MATCH_THERE,
    USI_MATCH_FAILED
} usi_match_state;
usi_match_state usi_match_tick(us_switch *sw, char *why, size_t cap);
void usi_match_end(us_switch *sw);
// The velocity that brings a rover at `from` to `goal`: towards the point, then about itself. `is_turning`
// remembers which.
void usi_match_steer(const us_handover_def *def, const double from[3], const double goal[3], bool *is_turning,
                     double out[2], double *out_left);

// evidence.c: one line of JSON.
size_t usi_evidence_write(const usi_handover_record *r, const us_handover_def *def, const char *robot,
                          char *text, size_t cap);

#endif
