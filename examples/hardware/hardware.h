// A rover of the K10's kind that is none of ours: another physics engine plays its body, and a firmware of
// its own drives it.
//
//   main.c       options, the loop, reboot
//   body.c       the URDF file becomes a MuJoCo model; wheels, ground, inertial unit
//   firmware.c   commands, wheels, odometry, watchdog, emergency stop, battery
//   motors.c     motions of single joints
//   network.c    topics in and out, with latency and losses
//
// Of Understudy it uses the network alone: understudy/bus.h, wire.h and base.h. SI units, radians.
#ifndef K10_HARDWARE_H
#define K10_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { N_WHEEL = 4, MAX_JOINT = 32, NAME_SIZE = 64, REFUSAL_SIZE = 160 };

// What can be chosen on the command line.
typedef struct options {
    const char *urdf;
    const char *namespace_;
    int32_t domain;  // -1: as the environment says
    double time;     // s; 0: until it is told to end
    uint64_t seed;
    double x, y, yaw, ramp;           // where it starts; slope of a ramp ahead, 0: none
    double mass_error, radius_error;  // fractions by which the body differs from its description
    double friction;
    double noise;                                   // of the sensors: 1 is usual, 0 none
    double latency, jitter, drop;                   // of the radio link, both ways
    double dropout_every, dropout_time;             // the link is gone for a while, every so often
    double send_jitter;                             // s that its computer takes until it sends, at most
    double clock_offset, clock_drift, reboot_time;  // drift: s per s
} options;

// A joint as the URDF file has it, and where it is now.
typedef struct joint {
    char name[NAME_SIZE], parent[NAME_SIZE], child[NAME_SIZE];
    double xyz[3], rpy[3], axis[3];
    double lower, upper, most_speed;
    double q, v, torque;  // the truth
    double target;        // of a steering joint: angle; of a wheel: velocity
    double held;          // where the brake holds it
    bool is_held;
    int actuator;  // -1: none
    bool is_limited;
} joint;

typedef struct wheel {
    int32_t drive, steer;  // joints
    double x, y, radius;   // in the root link, when it stands straight
} wheel;

// The robot's body and the world around it.
typedef struct body {
    char root[NAME_SIZE];
    char *description;  // text of the URDF file
    int32_t n_joint;
    joint joint[MAX_JOINT];
    wheel wheel[N_WHEEL];
    double orientation[4], gyro[3], accelerometer[3];  // of the inertial unit at the root's origin; w x y z
    void *model, *data;                                // MuJoCo's
} body;

// Reads the robot and builds the world. False with the reason in `why`.
bool body_create(body *b, const options *o, char *why, size_t cap);
void body_destroy(body *b);
void body_step(body *b, double time);  // some time with the targets as they are

typedef enum motion { MOTION_STOPPED, MOTION_VELOCITY, MOTION_JOINTS } motion;
typedef enum joint_mode { JOINT_FREE, JOINT_VELOCITY, JOINT_POSITION } joint_mode;  // free: as the body moves

// What the rover's computer remembers.
typedef struct firmware {
    const options *options;
    uint64_t n_draw;  // of random numbers
    double time;      // s since the world began
    motion motion;
    double want[3], now[3], command_time;                // vx, vy, wz
    double q[MAX_JOINT], v[MAX_JOINT], zero[MAX_JOINT];  // by the encoders; their zero
    double acceleration[MAX_JOINT];
    double wheel_goal[N_WHEEL], wheel_before[N_WHEEL], steer[N_WHEEL];
    double odom[3], odom_v[3];
    joint_mode mode[MAX_JOINT];  // what single joints were told, when, and how far they are
    double value[MAX_JOINT], goal[MAX_JOINT], mode_time[MAX_JOINT];
    uint32_t motors_sequence;  // of the last motor_group/command, and what became of it
    bool is_motors_refused;
    char motors_message[REFUSAL_SIZE];
    double energy;  // J taken from the battery
    bool is_emergency;
    int64_t n_taken, n_refused, n_safe_stop;
    int64_t n_boot;  // after the first
    double refused_time;
    char refusal[REFUSAL_SIZE];
} firmware;

// As after switching on: standing still, odometry at 0, wheels counted from here. The battery and the
// emergency stop are not the computer's, and it knows how often it was started again.
void firmware_boot(firmware *f, const body *b);
void firmware_take(firmware *f, const double velocity[3]);  // a command; checked, refused with a reason
void firmware_stop(firmware *f, bool is_emergency);         // the emergency stop is pressed or released
void firmware_tick(firmware *f, body *b, double step);      // reads the encoders and sets the targets
void firmware_rest(body *b);                                // the targets while the computer is off: brakes
double firmware_normal(firmware *f);                        // noise: mean 0, variance 1
double firmware_uniform(firmware *f);                       // in [0, 1)

// Messages of joint_commands and motor_group/command, as they came.
void motors_take_joints(firmware *f, const body *b, const void *bytes, size_t length);
void motors_take_group(firmware *f, const body *b, const void *bytes, size_t length);
void motors_tick(firmware *f, body *b, double step);

extern const double BATTERY_CAPACITY, BATTERY_VOLTAGE;

typedef struct network network;

// Joins the domain as the robot's node. False with the reason in `why`.
bool network_open(const options *o, network **out, char *why, size_t cap);
void network_close(network *n);  // NULL is allowed
// Takes what has arrived. True when it is asked to reboot.
bool network_hear(network *n, firmware *f, const body *b);
// Sends what is due at a tick; `stamp` in ns of the robot's own clock.
void network_tell(network *n, firmware *f, const body *b, int64_t tick, double step, int64_t stamp);

#endif
