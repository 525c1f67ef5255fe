// Sensors: what a kind of sensor is, and how to add one. docs/sensors.md is the guide.
//
// A kind is a constant table: parameters, readings, numbers that it keeps, a message, and a function that
// samples. Rate, latency, seed, faults, topics, truth and recordings are the frame's and the same for all.
// The kinds of the library are made as a plug-in's are.
//
// A sample is a function of the world's state and past, the seeds and the tick alone: a kind keeps nothing
// but its declared numbers, which are part of the world's state, and draws from us_sensor_normal and
// us_sensor_uniform. All public questions to a sim (understudy/sim.h, query.h) can be asked through the view.
#ifndef UNDERSTUDY_SENSOR_H
#define UNDERSTUDY_SENSOR_H

#include "understudy/base.h"
#include "understudy/math.h"

#ifdef __cplusplus
extern "C" {
#endif

struct us_sim;
struct us_spec;

enum {
    US_SENSOR_ABI = 1,
    US_SENSOR_MAX_PARAMETER = 64,
    US_SENSOR_MAX_READING = 64,
    US_SENSOR_MAX_STATE = 512,
    US_SENSOR_MAX_MEMBER = 64,
};

typedef enum us_parameter_type {
    US_PARAMETER_NUMBER,
    US_PARAMETER_WHOLE,   // a whole number
    US_PARAMETER_CHOICE,  // one of `choices`; its value is the number of the choice
    US_PARAMETER_JOINT,   // of the robot, by name; its value is a us_joint's index, -1: none was named
    US_PARAMETER_LINK     // of the robot; a us_body's
} us_parameter_type;

// A number that can be set where the sensor is written, as an attribute, and while it runs.
typedef struct us_sensor_parameter {
    const char *name;  // "range-noise"; not that of an attribute that all sensors have
    const char *unit;  // SI, as scenes write it: "m", "rad/s", "m/s^2"; "1": none. Of any other the attribute
                       // takes a plain number, or one with exactly this unit
    double low, high;  // both allowed; of a choice, a joint and a link they mean nothing
    double usual;      // where nothing is written; of a joint and a link: -1, or NAN: it has to be written
    const char *about;
    us_parameter_type type;
    bool is_fixed;               // not while it runs
    const char *const *choices;  // ended by NULL
} us_sensor_parameter;

// A number that a sample has.
typedef struct us_sensor_reading {
    const char *name;  // "acceleration.x"
    const char *unit;  // "m/s^2"; "1": none
    bool is_exact;     // the frame's faults add nothing to it: part of a rotation, a code, a count
} us_sensor_reading;

// A parameter and its value. A preset is a list of them.
typedef struct us_sensor_setting {
    const char *parameter;
    double value;
} us_sensor_setting;

typedef struct us_sensor_preset {
    const char *name, *about;
    int32_t n;
    const us_sensor_setting *settings;
} us_sensor_preset;

// A member of the message that a sensor is published as. The header's stamp (when the sample was taken) and
// frame_id are the frame's to fill in. Members that no row names are 0 or empty.
typedef struct us_sensor_member {
    const char *path;      // "range", "orientation.x", "covariance[4]"
    const char *value;     // a reading or a parameter by name; NULL: a constant
    double scale, offset;  // scale times the value plus offset; a scale of 0 counts as 1; a constant is the
                           // offset
    bool is_squared;       // of the value before it is scaled: variances of deviations
    const char *text;      // a constant text
} us_sensor_member;

// What a sample is taken of. World axes. It lives as long as the call.
typedef struct us_sensor_view {
    const struct us_sim *sim;
    void *user;  // of the kind
    int64_t tick;
    double time;      // s, of the tick
    double interval;  // s since the sample before; 0: there was none, or the state was set by hand since
    int32_t sensor;   // us_sensor: its number in the model
    int32_t body;     // us_body: the link that it sits on
    int32_t battery;  // us_battery of its robot; -1: none
    double battery_energy;    // J, left in it; 0 without one
    us_pose X_WS;             // of the sensor
    us_vec3 v_WS;             // m/s, of its point
    us_vec3 w_WS;             // rad/s
    us_vec3 force;            // m/s^2: the point's acceleration less gravity, a mean over the last step; with
                              // us_sensor_kind.uses_force, else 0. Without an interval: less gravity alone
    const double *parameter;  // values now, in the order of the kind
    uint64_t seed, stream;    // of its random numbers
    us_error *why;            // where `sample` may say why there is none: message and remedy; or NULL
} us_sensor_view;

// Random numbers of a sample: i, from 0 to 65535, tells them apart. The same world, seed, sensor, tick and i
// give the same number. Normal: mean 0, variance 1; uniform: in [0, 1).
US_API double us_sensor_normal(const us_sensor_view *view, int32_t i);
US_API double us_sensor_uniform(const us_sensor_view *view, int32_t i);

// All 0 beyond what is needed is a good default.
typedef struct us_sensor_kind {
    int32_t abi, size;  // US_SENSOR_ABI, sizeof(us_sensor_kind)
    const char *name;   // as in <sensor type="...">
    const char *about;  // one line
    int32_t n_parameter, n_reading, n_preset, n_member;
    const us_sensor_parameter *parameters;
    const us_sensor_reading *readings;
    const us_sensor_preset *presets;
    int32_t n_state;  // numbers that it keeps from sample to sample
    bool uses_force;
    bool is_frame;        // of the library alone: what it measures are frames of points, not readings
    double usual_rate;    // Hz where none is written; 0: each step
    const char *topic;    // the last part of its own topic; NULL: "data"
    const char *message;  // "sensor_msgs/msg/Range", of the types that the library knows; NULL: names, units
                          // and values of all readings (understudy_msgs/msg/SensorReadings)
    const us_sensor_member *members;
    void *user;  // passed on; must outlive all that is made with the kind

    // Called by the thread that steps, in the order of the sensors. Must not allocate, block, or keep
    // anything elsewhere. `state` is 0 before `start`, which may be NULL.
    void (*start)(const us_sensor_view *view, double *state);
    // A sample: all readings twice. `truth` is what a perfect instrument would say, `reading` what this one
    // says: robots, firmware and topics of robots see `reading` alone. False: there is none, and the step
    // fails, as it does for a number that is not finite and for one written beyond the declared ends.
    bool (*sample)(const us_sensor_view *view, double *state, double *truth, double *reading);
    // Whether these numbers can be the state of such a sensor, asked of snapshots; finite ones anyway. NULL:
    // all can.
    bool (*check)(const double *parameter, const double *state);
} us_sensor_kind;

// The kinds of the library by number, "imu" first; NULL beyond the last. And by name; NULL: there is none.
US_API const us_sensor_kind *us_sensor_kind_view(int32_t i);
US_API const us_sensor_kind *us_sensor_kind_find(const char *name);

// Whether a kind is as it must be: US_ERR_VALUE for another abi or size, no function, too many numbers or a
// range that has none, US_ERR_NAME for names that are missing, twice or a word of the frame's.
US_API us_status us_sensor_kind_check(const us_sensor_kind *kind, us_error *err);

// Makes a kind known to a spec by its name, for scenes; it must outlive the spec and all that is made of it.
// The same again changes nothing. Errors: those of us_sensor_kind_check, and US_ERR_NAME for a name that
// another kind has.
US_API us_status us_spec_add_sensor_kind(struct us_spec *spec, const us_sensor_kind *kind, us_error *err);
// Of the library or of this spec, by name and by number; NULL: there is none.
US_API const us_sensor_kind *us_spec_find_sensor_kind(const struct us_spec *spec, const char *name);
US_API const us_sensor_kind *us_spec_view_sensor_kind(const struct us_spec *spec, int32_t i);

// A shared library (us_spec_load_plugin) offers kinds by a function of this type under the name
// "us_plugin_sensor_kinds".
typedef const us_sensor_kind *(*us_plugin_sensor_kind_function)(int32_t *out_n);

#ifdef __cplusplus
}
#endif
#endif
