// What acts on the joints in a step: motors, friction, springs, limits become one list of joint rows.
//
// The list is made once per step, from the state and the commands. Every solver takes it as it is, in the air
// and on the ground, so that the law of a motor stands in one place (joint_row.c). A row is linear in its
// coordinate's position q and velocity v up to its bounds:
//
//     clamp(torque - kp (q - q0) - kd v, low, high)          q0: position at the step's start
//
// Each solver says at which moment of the step q and v are taken:
//
//     implicit schemes (sim/integrate.c)    torque - kp (lead v0 + spring a) - kd (v0 + theta span a)
//     contact (contact/joints.c)            torque - (h kp + kd) v_end
//     explicit schemes                      torque - kp (q - q0) - kd v
#ifndef USI_ACTUATE_ACTUATE_H
#define USI_ACTUATE_ACTUATE_H

#include "model/model.h"
#include "sense/encoder.h"

typedef struct usi_joint_row {
    double torque;     // N m or N, at the start position and zero velocity, without bounds
    double kp, kd;     // N m/rad, N m s/rad: how much less of it per displacement and per velocity
    double low, high;  // N m or N
    int32_t v, q;      // coordinate
    int32_t kind;      // usi_joint_law_kind
    int32_t drive;     // whose effort it is; -1: none
} usi_joint_row;

// The rows of a step, tree by tree and kind by kind: those of m->actuated[k] are start[k] .. start[k + 1]
// - 1.
typedef struct usi_actuation {
    usi_joint_row *row;  // room for max_joint_row
    int32_t *start;      // n_actuated + 1
    int32_t n_friction;  // rows of dry friction
} usi_actuation;

// What the rows of a step are made of.
typedef struct usi_actuation_input {
    const double *q, *v;                                           // state at the step's start
    const double *drive_position, *drive_velocity, *drive_torque;  // n_drive, commands
    const double *drive_limit_scale;                               // n_drive
    const double *drive_strength;                                  // n_drive
    const double *battery_energy, *battery_on;                     // n_battery
    const double *blockage;                                        // n_friction
    const double *stuck;                                           // n_friction
    const usi_encoder_state *encoder;  // n_encoder; NULL: drives see their joints as they are
    int64_t tick;
} usi_actuation_input;

// Makes the rows. Those that can give no torque in this step are left out; the effort of a drive without a
// row is 0, and `out_effort` (n_drive) is set to 0 for all: solvers write those of the rows. Cost: some
// nanoseconds per law.
void usi_actuate(const us_model *m, const usi_actuation_input *in, usi_actuation *out, double *out_effort);

static inline double usi_row_clamp(const usi_joint_row *r, double torque) {
    return torque < r->low ? r->low : torque > r->high ? r->high : torque;
}

// stiction.c: where dry friction holds the joints. All at the positions q; and after a step to positions q: a
// joint that slid takes the place where it is stuck along, as far from it as friction stretches.
void usi_stiction_set(const us_model *m, const double *q, const double *blockage, double *out_stuck);
void usi_stiction_move(const us_model *m, const double *q, const double *blockage, const double *stuck,
                       double *out_stuck);

// Dry friction of a law as it is now, with what a fault adds.
typedef struct usi_friction {
    double bound, kp, kd;
} usi_friction;
static inline usi_friction usi_friction_now(const usi_joint_law *law, double blockage) {
    usi_friction f = {law->bound, law->kp, law->kd};
    if (blockage == 0) return f;
    f.bound += blockage;
    usi_friction_gains(law, f.bound, &f.kp, &f.kd);
    return f;
}

// battery.c: what a battery gives while its drives give `effort` at velocities v, W. Motors take the power
// they give, and give nothing back; an empty battery gives none.
double usi_battery_power(const us_model *m, int32_t battery, const double *effort, const double *v,
                         double energy);
// What is left of all batteries after a step that ended with v. One that is not connected gives nothing.
void usi_batteries_draw(const us_model *m, const double *effort, const double *v, const double *is_on,
                        const double *energy, double *out_energy);

#endif
