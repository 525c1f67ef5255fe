// Hand-over of the state from the source in control to the other, so that operators see no jump.
//
//     hardware -> proxy    the proxy adopts the hardware's state and confirms it; the two are compared before
//                          control changes
//     proxy -> hardware    the two must agree, for hardware cannot be set; on request the hardware is driven
//     to
//                          the proxy's pose first
//     both                 the first velocity commands begin at the new source's velocity and approach the
//                          requested one at a bounded rate
#ifndef USI_SWITCH_HANDOVER_H
#define USI_SWITCH_HANDOVER_H

#include <pthread.h>

#include "switch/authority_machine.h"
#include "switch/estimate.h"

typedef struct usi_route usi_route;

enum { USI_HANDOVER_LINE = 48 * 1024, USI_HANDOVER_COMMAND = 4096 };

// Differences of two states at one time. NaN: at least one of the two does not publish it.
typedef struct usi_handover_difference {
    double position, yaw, speed, yaw_rate;  // m, rad, m/s, rad/s
    double joint;                           // rad or m: the largest among joints with a motor and limits
    char name[USI_ESTIMATE_NAME];           // of that joint
} usi_handover_difference;

// All that is known of one hand-over: the content of the line of evidence.
typedef struct usi_handover_record {
    int64_t time, began;  // ns of wall time, and of usi_switch_now
    uint64_t epoch;
    us_switch_source from, to;
    us_switch_mode mode;
    bool is_forced, is_refused;
    char reason[160], why[160];
    usi_estimate before[2], after[2];
    int64_t before_now, after_now;  // times of the two, ns of usi_switch_now
    usi_handover_difference before_difference, after_difference;
    // Durations, s: until the proxy answered, until its published state agreed, until the gap between samples
    // was right; and in all.
    double adopt, look, align, total;
    double lag;  // s: delay of the proxy's stamps behind the hardware's
} usi_handover_record;

// The hardware on its drive to the proxy's pose. Only the switch's thread uses it.
typedef struct usi_match {
    bool is_on, is_turning, is_arrived;
    int64_t since, sent, joints_sent, better;  // ns of usi_switch_now: begun, last commands, last progress
    double best;                               // m: the smallest remaining distance so far
    double speed[2];                           // m/s, rad/s: last commanded
} usi_match;

typedef struct usi_handover {
    us_handover_def def;
    char evidence[512];
    us_writer *command;    // in the proxy's domain: /understudy/command
    us_writer *report[2];  // /understudy/handover: usi_switch_add_report
    bool is_prepared;      // the proxy was set to the state of hardware that is about to be lost; `record` is
                           // begun
    char *line;            // USI_HANDOVER_LINE
    usi_handover_record record;
    usi_match match;

    pthread_mutex_t lock;  // guards what follows
    pthread_cond_t wake;
    char awaited[128];  // beginning of the awaited answer; "": none
    bool is_answered, is_accepted;
    char message[160];
    double requested[3];     // the operators' last velocity command: m/s, m/s, rad/s
    int64_t requested_time;  // ns of usi_switch_now; 0: none yet

    // Used by the forwarder with the gate open, and by the switch's thread with the gate closed.
    int64_t changed;  // ns of usi_switch_now: the last hand-over
    bool is_ramping;
    double ramp[3];     // m/s, m/s, rad/s: last passed on
    int64_t ramp_time;  // ns
} usi_handover;

// A request for a mode, and the policy of its hand-over.
typedef struct usi_request {
    us_switch_mode mode;
    us_switch_policy policy;
} usi_request;

us_status usi_handover_check_def(const us_handover_def *def, us_error *err);
us_status usi_handover_open(us_switch *sw, const us_handover_def *def, us_error *err);
us_status usi_handover_join(us_switch *sw, us_error *err);  // once the buses are open
void usi_handover_close(us_switch *sw);

// ---- steps of each change, in this order, on the switch's thread ----
void usi_handover_begin(us_switch *sw, const usi_verdict *verdict, bool is_forced);
// The hand-over before a change that the watchdog may soon force, so that the change itself need not wait.
void usi_handover_prepare_loss(us_switch *sw);
// The hand-over itself, while samples still flow. Anything but US_OK refuses, with err's message as the
// reason.
us_status usi_handover_prepare(us_switch *sw, us_switch_policy policy, us_error *err);
// A wait, of at most two periods, until about one period will lie between the last sample of the old source
// and the first of the new one. Refuses where the two have diverged again meanwhile.
us_status usi_handover_align(us_switch *sw, us_error *err);
// With the gate closed: the ramp begins at the new source's velocity, and its stamps continue where those of
// the old source ended.
void usi_handover_start_ramp(us_switch *sw);
// Writes the line of evidence. `why` is the reason of a refusal; NULL: the hand-over is done.
void usi_handover_end(us_switch *sw, uint64_t epoch, const char *why);

// A velocity of the operators that is about to be passed on, on the forwarder's thread with the gate open.
// Returns the sample to pass instead: `given` itself, or one in `buf` that the ramp has limited. With is_sent
// false it is only remembered as what the operators want.
const us_sample *usi_handover_ramp(us_switch *sw, const usi_route *route, const us_sample *given,
                                   bool is_sent, us_sample *out, uint8_t *buf, size_t cap);

// The proxy is set to the hardware's state as it is now; nobody's control changes. On the switch's thread;
// waits for the answer, at most half a watchdog.
us_status usi_switch_resync(us_switch *sw, us_error *err);

// ---- building blocks ----
// The base's position, heading and velocity, extrapolated to `now` from when the sample arrived.
void usi_estimate_planar(const usi_estimate *e, int64_t now, double out_pose[3], double out_velocity[3]);
usi_handover_difference usi_handover_compare(us_switch *sw, const usi_estimate *a, const usi_estimate *b,
                                             int64_t now);
// True when they agree within the limits; else `out` says what differs and by how much.
bool usi_handover_agree(const us_handover_def *def, const usi_handover_difference *d, char *out, size_t cap);
// Whether a joint has a motor and limits, by the robot's description; false without a description.
bool usi_handover_is_steered(const char *description, const char *joint);
// The latched description of the robot, or NULL; valid until the next sample of it. With the gate closed or
// on the forwarder's thread.
const char *usi_switch_description(us_switch *sw);

// ---- match.c: the hardware is driven to the proxy's pose ----
us_status usi_match_begin(us_switch *sw, us_error *err);
typedef enum usi_match_state {
    USI_MATCH_NONE,
    USI_MATCH_DRIVING,
    USI_MATCH_ARRIVED,
    USI_MATCH_FAILED
} usi_match_state;
usi_match_state usi_match_tick(us_switch *sw, char *why, size_t cap);
void usi_match_end(us_switch *sw);
// The velocity that brings a rover at `from` to `goal`: towards the point, then about itself. `is_turning`
// remembers which.
void usi_match_steer(const us_handover_def *def, const double from[3], const double goal[3], bool *is_turning,
                     double out[2], double *out_left);

// ---- evidence.c: one line of JSON ----
size_t usi_evidence_write(const usi_handover_record *r, const us_handover_def *def, const char *robot,
                          char *text, size_t cap);

#endif
