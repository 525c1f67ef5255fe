// The law of motors, dry friction, springs, dampers and joint limits: the only place where it stands.
#include "actuate/actuate.h"

#include <string.h>

// How much faster than now a joint can be at the end of a step, rad/s or m/s. A limit that would not act even
// then is left out. A joint that gets beyond it for all that, by a hard impact, is held a step later.
static const double MAX_SPEED_CHANGE = 10;

// The torque limit of a drive that has a fraction of its strength. A drive without a limit has all or
// nothing.
static double torque_limit(double limit, double fraction) {
    if (fraction >= 1) return limit;
    return fraction > 0 ? (isfinite(limit) ? fraction * limit : limit) : 0;
}

// Towards a place: where a spring is slack or a limit is.
static inline double spring_torque(const usi_joint_law *law, double at, const double *q) {
    return law->kp == 0 ? 0 : law->kp * (at - q[law->q]);
}

static inline usi_joint_row *put_row(usi_joint_row *r, const usi_joint_law *law, double torque, double low,
                                     double high, usi_joint_law_kind kind) {
    *r = (usi_joint_row){torque, law->kp, law->kd, low, high, law->v, law->q, (int32_t)kind, -1};
    return r + 1;
}

// What the loop of a drive knows of its joint, by its encoder.
typedef struct feedback {
    double q;      // rad, m: at the step's start
    double drift;  // rad/s, m/s: by which it believes to be faster than it is
    bool is_live;  // else it sees nothing move
} feedback;

static inline feedback feedback_of(const us_model *m, const usi_joint_law *law,
                                   const usi_actuation_input *in) {
    const double q = in->q[law->q];
    if (law->encoder < 0 || !in->encoder) return (feedback){q, 0, true};
    const usi_encoder_state *s = &in->encoder[law->encoder];
    if (s->is_stuck) return (feedback){s->held, 0, false};
    return (feedback){q + usi_encoder_offset(s, m->step, in->tick), s->drift, true};
}

// Towards the commanded position and velocity, plus the commanded torque. The torque of a drive whose encoder
// is stuck does not change while the joint moves.
static usi_joint_row *drive_row(usi_joint_row *r, const us_model *m, const usi_joint_law *law,
                                const usi_actuation_input *in) {
    const int32_t i = law->index;
    const feedback seen = feedback_of(m, law, in);
    const bool is_fed =
        law->battery < 0 || (in->battery_energy[law->battery] > 0 && in->battery_on[law->battery] > 0);
    const double limit =
        is_fed ? torque_limit(law->bound, in->drive_limit_scale[i] * in->drive_strength[i]) : 0;
    double torque = in->drive_torque[i] + law->kd * (in->drive_velocity[i] - seen.drift);
    if (law->kp != 0) torque += law->kp * (in->drive_position[i] - seen.q);
    if (!(limit > 0) || (law->kp == 0 && law->kd == 0 && torque == 0)) return r;
    usi_joint_row *next = put_row(r, law, torque, -limit, limit, USI_LAW_DRIVE);
    r->drive = i;
    if (!seen.is_live) r->kp = r->kd = 0;
    return next;
}

// Towards the place where the joint stuck.
static usi_joint_row *friction_row(usi_joint_row *r, const usi_joint_law *law,
                                   const usi_actuation_input *in) {
    const double blockage = in->blockage[law->index];
    if (law->bound + blockage == 0) return r;
    const usi_friction f = usi_friction_now(law, blockage);
    double torque = f.kp != 0 ? f.kp * (in->stuck[law->index] - in->q[law->q]) : 0;
    *r = (usi_joint_row){torque, f.kp, f.kd, -f.bound, f.bound, law->v, law->q, USI_LAW_FRICTION, -1};
    return r + 1;
}

// A stiff spring and damper that only pushes back, where it can push within the step. Both act together, so
// that a fast joint is slowed down before it is there and does not bounce.
static usi_joint_row *limit_rows(usi_joint_row *r, const usi_joint_law *law, const usi_actuation_input *in) {
    const double q = in->q[law->q], reach = law->reach * (fabs(in->v[law->v]) + MAX_SPEED_CHANGE);
    const double below = q - law->lower, above = law->upper - q;
    if ((below < above ? below : above) >= reach) return r;
    if (below < reach) r = put_row(r, law, spring_torque(law, law->lower, in->q), 0, INFINITY, USI_LAW_LIMIT);
    if (above < reach)
        r = put_row(r, law, spring_torque(law, law->upper, in->q), -INFINITY, 0, USI_LAW_LIMIT);
    return r;
}

void usi_actuate(const us_model *m, const usi_actuation_input *in, usi_actuation *out, double *out_effort) {
    usi_joint_row *const row = out->row, *r = row;
    out->n_friction = 0;
    for (int32_t i = 0; i < m->n_drive; i++)
        out_effort[i] = 0;
    for (int32_t k = 0; k < m->n_actuated; k++) {
        const int32_t *first = m->actuated[k].first;
        const usi_joint_law *law = m->joint_law + first[0],
                            *const drives = m->joint_law + first[USI_LAW_DRIVE],
                            *const frictions = m->joint_law + first[USI_LAW_FRICTION],
                            *const limits = m->joint_law + first[USI_LAW_LIMIT],
                            *const end = m->joint_law + first[USI_LAW_KINDS];
        out->start[k] = (int32_t)(r - row);
        for (; law < drives; law++)
            r = put_row(r, law, spring_torque(law, law->lower, in->q), -INFINITY, INFINITY, USI_LAW_SPRING);
        for (; law < frictions; law++)
            r = drive_row(r, m, law, in);
        const usi_joint_row *before = r;
        for (; law < limits; law++)
            r = friction_row(r, law, in);
        out->n_friction += (int32_t)(r - before);
        for (; law < end; law++)
            r = limit_rows(r, law, in);
    }
    out->start[m->n_actuated] = (int32_t)(r - row);
}
