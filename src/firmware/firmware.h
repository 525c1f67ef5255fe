// A robot's firmware: readings in, drive commands out, once per tick.
//
// It knows its own joints, drives, wheels and legs by number, and nothing of what moves them: a simulated
// body and one of metal are the same to it. Settings are constant. The state is plain bytes that the caller
// keeps, so that it can be copied, hashed and sent: usi_firmware_state with arrays behind it, fw->state_size
// in all.
//
//     usi_firmware_lay_out(&fw);                        once the settings are complete
//     usi_firmware_start(&fw, state, &readings);        the state was all 0
//     for (;;) usi_firmware_step(&fw, state, &readings, output);
//
// Commands come between steps, by the functions that take a usi_firmware_request. A command is checked whole,
// then accepted or refused; one that is refused changes nothing.
#ifndef USI_FIRMWARE_FIRMWARE_H
#define USI_FIRMWARE_FIRMWARE_H

#include "firmware/gait.h"
#include "firmware/locomotion.h"
#include "firmware/trapezoid.h"
#include "understudy/rover.h"

enum {
    USI_TRAJECTORY_POINTS = 128,
    USI_ROUTE_POINTS = 64,
    USI_REFUSAL_MAX = 160,
    USI_MAX_WHEEL = USI_LOCOMOTION_WHEELS,
    USI_MAX_LINE = 32,  // inputs and outputs of the ASCII link
};

// ---------------------------------------------------------------- settings

// What the loop of a drive controls: with a position gain, with a velocity gain alone, with none.
typedef enum usi_drive_kind {
    USI_DRIVE_BY_POSITION,
    USI_DRIVE_BY_VELOCITY,
    USI_DRIVE_BY_TORQUE
} usi_drive_kind;

// A joint with one coordinate and an encoder.
typedef struct usi_firmware_joint {
    const char *name;
    int32_t drive;        // -1: none
    double lower, upper;  // rad, m; infinite: none
    double max_speed;     // rad/s, m/s; 0: not known
} usi_firmware_joint;

typedef struct usi_firmware_drive {
    int32_t joint;
    usi_drive_kind kind;
    double rate;  // 1/s: how fast a velocity drive closes the distance to a position
} usi_firmware_drive;

typedef struct usi_firmware {
    double step;                 // s between two ticks
    double timeout;              // s: a motion command older than this stops the robot; 0: never
    double max_speed, max_turn;  // m/s, rad/s: commands beyond are refused; 0: no limit
    double max_acceleration;     // m/s^2 with which body velocities are followed; 0: at once
    bool releases_drives;        // drives give no torque while the computer starts; else they hold
    int32_t n_joint, n_drive;
    const usi_firmware_joint *joint;
    const usi_firmware_drive *drive;
    usi_locomotion locomotion;                                       // n_wheel 0: none
    int32_t wheel_joint[USI_MAX_WHEEL], steer_joint[USI_MAX_WHEEL];  // steer_joint -1: it does not steer
    usi_gait gait;                                                   // n_leg 0: none
    int32_t leg_joint[USI_GAIT_LEGS][3];
    // By usi_firmware_lay_out: bytes from the start of the state. Trajectories, which rarely change, are
    // last.
    size_t drives_at, trajectory_at, state_size;
} usi_firmware;

void usi_firmware_lay_out(usi_firmware *fw);

// How fast a velocity drive closes the distance to a position at a step (s): a fifth of 1/step and at most
// 10/s, for a loop as fast as the drive settles would ring.
double usi_firmware_position_rate(double step);

// Whether it follows a velocity of its body.
static inline bool usi_firmware_can_move(const usi_firmware *fw) {
    return fw->locomotion.n_wheel > 0 || fw->gait.n_leg > 0;
}

// ---------------------------------------------------------------- state

typedef enum usi_motion {
    USI_MOTION_SCENE,     // no command came yet: drives keep what they had at the start
    USI_MOTION_STOP,      // stands: by a command, or safe stop
    USI_MOTION_TWIST,     // follows a body velocity that must be renewed
    USI_MOTION_ARC,       // drives a distance
    USI_MOTION_TURN,      // rotates by an angle
    USI_MOTION_NAVIGATE,  // drives along points
    USI_MOTION_JOINTS,    // each drive for itself
} usi_motion;

typedef enum usi_drive_mode {
    USI_DRIVE_KEEP,  // the output stays as it is, or follows the body's motion
    USI_DRIVE_VELOCITY,
    USI_DRIVE_POSITION,
    USI_DRIVE_PROFILE,
    USI_DRIVE_TORQUE,
    USI_DRIVE_TRAJECTORY,
    USI_DRIVE_IMPEDANCE,  // a torque, and a spring and damper of the command's own towards a position and
                          // velocity
} usi_drive_mode;

// Gains that come with a command: torque + kp (position - q) + kd (velocity - v).
typedef struct usi_impedance {
    double velocity, torque, kp, kd;
} usi_impedance;

typedef struct usi_drive_state {
    int64_t tick;  // when the command came
    double value;
    union {
        usi_trapezoid profile;
        usi_impedance impedance;  // of that mode
    };
    int32_t mode;                  // usi_drive_mode
    int32_t is_off;                // switched off by a command
    int32_t is_lasting, reserved;  // a velocity that need not be renewed
    double v_before;  // rad/s, m/s: the reading of the last step, for the acceleration in telemetry
} usi_drive_state;

// Of a service: number of the last command, how it fares, and why it was refused or has failed.
typedef struct usi_service_state {
    uint32_t sequence;
    uint8_t state;  // us_rover_state
    uint8_t error;  // us_rover_error
    char message[USI_REFUSAL_MAX - 6];
} usi_service_state;

// What a client may set: 0 is as built. m/s, m, s; where the site's frame stands in `map`: x, y, angle.
typedef struct usi_firmware_setting {
    double speed, tolerance, timeout;
    double site[3];
} usi_firmware_setting;

typedef struct usi_firmware_state {
    int64_t motion_tick;  // of the last motion command
    int64_t n_command, n_refused, n_timeout, refused_tick;
    double want[3], now[3];  // body velocity wanted, and as far as the acceleration let it come: vx, vy, wz
    double odom[3], odom_v[3];  // odometry: x, y, angle; vx, vy, wz
    double pose_offset[3];      // the pose estimator's frame
    double way, turned;         // m, rad: by odometry since its pose was last set
    double goal, done, speed;   // of an arc or a turn: m or rad to do and done, m/s or rad/s
    double route[USI_ROUTE_POINTS][2], tolerance;
    double end_heading;  // rad: where it turns to at the end of its route, if has_end_heading
    usi_firmware_setting setting;
    double line[USI_MAX_LINE];         // outputs, as they were last set
    int64_t deadline;                  // tick after which the body's motion has failed; 0: none
    double wheel_q[USI_MAX_WHEEL];     // rad, in the tick before
    double wheel_goal[USI_MAX_WHEEL];  // rad: where a wheel should be by now
    double steer[USI_MAX_WHEEL];       // rad, last commanded
    usi_gait_state gait;
    int64_t trajectory_tick;
    int32_t motion;  // usi_motion
    int32_t n_route, next_route;
    int32_t n_trajectory;
    int32_t has_end_heading;
    int32_t function;  // usi_function that was run last
    // `mobility` and `function_run` are the ASCII link's.
    usi_service_state motors, locomotor, pose, navigator, mobility, function_run;
    char refusal[USI_REFUSAL_MAX];
} usi_firmware_state;

static inline usi_drive_state *usi_firmware_drives(const usi_firmware *fw, usi_firmware_state *s) {
    return (usi_drive_state *)(void *)((char *)s + fw->drives_at);
}
static inline const usi_drive_state *usi_firmware_view_drives(const usi_firmware *fw,
                                                              const usi_firmware_state *s) {
    return (const usi_drive_state *)(const void *)((const char *)s + fw->drives_at);
}

// state_check.c: whether a state that comes from a file can be gone on with.
bool usi_firmware_is_sound(const usi_firmware *fw, const usi_firmware_state *s);

// ---------------------------------------------------------------- one tick

typedef struct usi_firmware_readings {
    int64_t tick;
    const double *q, *v;  // n_joint, by the encoders: rad or m, rad/s or m/s
    bool is_powered;      // motors have power
    bool is_running;      // the computer has started; else nobody commands the drives
} usi_firmware_readings;

// What a drive is commanded. It is kept by the caller from step to step: a drive that nothing commands keeps
// it.
typedef struct usi_firmware_output {
    double position, velocity, torque;  // rad or m, rad/s or m/s, N m or N
    bool is_enabled;                    // else it gives no torque
} usi_firmware_output;

// As after switching on: odometry at 0, wheels counted from where they are.
void usi_firmware_start(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in);
// `output` has n_drive elements.
void usi_firmware_step(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in,
                       usi_firmware_output *output);
// The computer loses its memory: commands, odometry, services. Every drive holds where it is.
void usi_firmware_forget(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in);
// The computer has started again after usi_firmware_forget.
void usi_firmware_restart(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in);

// ---------------------------------------------------------------- commands

typedef struct usi_firmware_request {
    const usi_firmware *fw;
    usi_firmware_state *s;
    const usi_firmware_readings *in;
    char why[USI_REFUSAL_MAX];  // of the refusal
    us_rover_error error;       // and of which kind it is
} usi_firmware_request;

// Writes why, and returns false. Of the kind US_ROVER_BAD_VALUE, or of another.
bool usi_firmware_refuse(usi_firmware_request *c, const char *format, ...) US_PRINTF(2, 3);
bool usi_firmware_refuse_as(usi_firmware_request *c, us_rover_error error, const char *format, ...)
    US_PRINTF(3, 4);

// All of these return whether the command was accepted. Body velocities are vx, vy, wz.
bool usi_firmware_drive_velocity(usi_firmware_request *c, const double body[3]);
bool usi_firmware_drive_arc(usi_firmware_request *c, double distance, double curvature, double speed);
bool usi_firmware_rotate(usi_firmware_request *c, double angle, double rate);
// Along n points x, y of the pose estimator's frame, from the one numbered `first` on.
bool usi_firmware_navigate(usi_firmware_request *c, const double (*points)[2], int32_t n, int32_t first,
                           double speed, double tolerance);
// What was just accepted shall end within this time, s, else it has failed; 0: it takes what it takes.
// Velocities, which have the timeout of the settings, have no other.
void usi_firmware_limit_time(usi_firmware_request *c, double timeout);
// The route or turn that was just accepted ends with this angle in the pose estimator's frame.
bool usi_firmware_end_with_heading(usi_firmware_request *c, double heading);
// Where the robot is by its pose estimator: x, y, angle.
void usi_firmware_pose(const usi_firmware_state *s, double out[3]);
// What the body's motion still has to do: m of a route or arc, rad of a turn.
double usi_firmware_left(const usi_firmware_state *s);
// Wheels to 0, legs to their stand, other drives hold where they are.
bool usi_firmware_stop(usi_firmware_request *c);
// From now on the pose estimator has the robot at x, y, angle.
void usi_firmware_set_pose(usi_firmware_request *c, const double pose[3]);
// `spared`: bit i keeps leg i up.
bool usi_firmware_set_gait(usi_firmware_request *c, usi_gait_kind kind, uint32_t spared);

// A command to one drive.
typedef struct usi_drive_command {
    int32_t drive;
    usi_drive_mode mode;            // not USI_DRIVE_TRAJECTORY; USI_DRIVE_KEEP: hold where it is
    double value;                   // velocity, position, torque, or the end of a profile
    double acceleration, velocity;  // of a profile
    usi_impedance impedance;        // of that mode: gains of 0 or more
    bool is_lasting;                // a velocity that need not be renewed
} usi_drive_command;
// All of them, or none.
bool usi_firmware_command_drives(usi_firmware_request *c, const usi_drive_command *commands, int32_t n);
void usi_firmware_switch_drive(usi_firmware_request *c, int32_t drive, bool is_on);

typedef struct usi_trajectory_point {
    double time;                           // s from now; rises from point to point, from 0 or later
    const double *positions, *velocities;  // n_drive; velocities NULL: straight lines to and from this point
} usi_trajectory_point;

typedef struct usi_trajectory {
    int32_t n_drive, n_point;
    const int32_t *drives;  // no drive twice
    const usi_trajectory_point *points;
} usi_trajectory;
bool usi_firmware_follow(usi_firmware_request *c, const usi_trajectory *trajectory);

#endif
