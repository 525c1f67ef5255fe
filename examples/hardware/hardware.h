// A rover of the K10's kind whose body is none of ours: another physics engine plays it. The firmware inside
// is the one that drives simulated robots too.
//
//   main.c       options, the loop, reboot
//   body.c       the URDF file becomes a MuJoCo model; wheels, ground, inertial unit
//   firmware.c   the firmware between encoders and motors; emergency stop, battery
//   motors.c     messages to single joints
//   network.c    topics in and out, with latency and losses
//
// Of Understudy it uses the network (understudy/bus.h, wire.h and base.h), the gate that keeps switches apart
// (understudy/gate.h) and the firmware, which knows
// nothing of any simulation. SI units, radians.
#ifndef K10_HARDWARE_H
#define K10_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firmware/firmware.h"

enum { N_WHEEL = 4, MAX_JOINT = 32, NAME_SIZE = 64, REFUSAL_SIZE = 160 };

// What can be chosen on the command line.
typedef struct options {
    const char *urdf;
    const char *namespace_;
    int32_t domain;  // -1: that of the environment
    double time;     // s; 0: until it is ended
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
    double lower, upper, max_speed;
    double q, v, torque;  // the truth
    double commanded;     // rad: of a steering joint, as far as its motor's speed let it come
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
    joint joints[MAX_JOINT];
    wheel wheels[N_WHEEL];
    double orientation[4], gyro[3], accelerometer[3];  // of the inertial unit at the root's origin; w x y z
    void *model, *data;                                // MuJoCo's
} body;

// Reads the robot and builds the world. False with the reason in `why`.
bool body_create(body *b, const options *o, char *why, size_t cap);
void body_destroy(body *b);
void body_step(body *b, double time);  // some time with the targets as they are
// What the motor of a joint is to be given for a position and a velocity of its joint.
double body_target(const joint *j, double position, double velocity);

// What the rover's computer remembers.
typedef struct firmware {
    const options *chosen;
    uint64_t n_draw;  // of random numbers
    double time;      // s since the world began
    int64_t tick;
    usi_firmware settings;
    usi_firmware_joint joint[MAX_JOINT];
    usi_firmware_drive drive[MAX_JOINT];
    usi_firmware_state *state;  // settings.state_size bytes
    usi_firmware_output output[MAX_JOINT];
    double q[MAX_JOINT], v[MAX_JOINT], zero[MAX_JOINT];  // by the encoders; their zero
    double counted[MAX_JOINT],
        rolled[N_WHEEL];  // as odometry has it, which sees wheels slip; and without slip
    double acceleration[MAX_JOINT], odom_v[3];  // smoothed, for telemetry
    double energy, power;                       // J taken from the battery; W now
    bool is_emergency;
    int64_t n_boot;  // after the first
    double refused_time;
} firmware;

// Prepares the settings for a body; false without memory. firmware_boot comes next.
bool firmware_create(firmware *f, const options *o, const body *b);
void firmware_destroy(firmware *f);

// As after switching on: standing still, odometry at 0, wheels counted from here. The battery and the
// emergency stop are not the computer's, and it knows how often it was started again.
void firmware_boot(firmware *f, const body *b);
void firmware_take(firmware *f, const double velocity[3]);  // a command; checked, refused with a reason
void firmware_stop(firmware *f, bool is_emergency);         // the emergency stop is pressed or released
void firmware_tick(firmware *f, body *b);                   // reads the encoders and sets the targets
// A command to the firmware, and what became of it: counted, and the reason of a refusal kept.
usi_firmware_request firmware_request(firmware *f, usi_firmware_readings *readings);
bool firmware_close(firmware *f, const usi_firmware_request *c, const char *topic, bool is_accepted);
void firmware_rest(body *b);           // the targets while the computer is off: brakes
double firmware_normal(firmware *f);   // noise: mean 0, variance 1
double firmware_uniform(firmware *f);  // in [0, 1)

// Messages of joint_commands and motor_group/command, as they came.
void motors_take_joints(firmware *f, const void *bytes, size_t length);
void motors_take_group(firmware *f, const void *bytes, size_t length);

extern const double BATTERY_CAPACITY, BATTERY_VOLTAGE, STEP;

typedef struct network network;

// Joins the domain as the robot's node. False with the reason in `why`.
bool network_open(const options *o, network **out, char *why, size_t cap);
void network_close(network *n);  // NULL is allowed
// Takes what has arrived. True when it is asked to reboot.
bool network_poll(network *n, firmware *f);
// Sends what is due at a tick; `stamp` in ns of the robot's own clock.
void network_publish(network *n, firmware *f, const body *b, int64_t tick, double step, int64_t stamp);

#endif
