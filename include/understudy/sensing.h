// Sensors of a world that steps: what they say, what is true, and what is changed while they run.
//
// understudy/sensor.h says what a kind of sensor is. Names of parameters are those of the kind, and "rate"
// (Hz) and "latency" (s) of all of them. Changes between steps are inputs: recorded, and part of the state at
// once.
#ifndef UNDERSTUDY_SENSING_H
#define UNDERSTUDY_SENSING_H

#include "understudy/query.h"
#include "understudy/sensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// A sensor of a model; -1: none.
typedef struct us_sensor {
    int32_t i;
} us_sensor;

typedef struct us_sensor_info {
    const us_sensor_kind *kind;  // NULL for a bad index
    const char *robot, *name;    // they belong to the model
    const char *frame;           // id of the frame of its readings
    us_body body;                // the link that it sits on; -1: none
    us_pose X_BS;                // in that link
    us_lidar lidar;              // whose frames it makes; -1: it has readings
} us_sensor_info;

US_API int32_t us_model_n_sensor(const us_model *model);
US_API us_sensor us_model_find_sensor(const us_model *model, const char *robot, const char *name);
US_API us_sensor_info us_model_get_sensor(const us_model *model, us_sensor sensor);

// What a sensor has said. The arrays have kind->n_reading numbers and die at the next step or change; NULL
// for a bad index and for sensors of frames.
typedef struct us_sensor_sample {
    int64_t tick;           // when it was taken; -1: there is none yet
    int64_t number;         // how many there were until now, this one included
    int64_t n_lost;         // of them lost by faults
    const double *truth;    // what a perfect instrument would say
    const double *reading;  // what this one says
} us_sensor_sample;

// The last sample that was taken.
US_API us_sensor_sample us_sim_view_sensor_sample(const us_sim *sim, us_sensor sensor);
// What the robot has of it: the last one whose latency is over. It has no truth (NULL).
US_API us_sensor_sample us_sim_view_sensor_reading(const us_sim *sim, us_sensor sensor);

// Parameters as they are now; NaN for a name that it does not have.
US_API double us_sim_get_sensor_parameter(const us_sim *sim, us_sensor sensor, const char *name);
// US_ERR_NAME: no such parameter; US_ERR_VALUE: out of its range, which the error names, or one that cannot
// be changed while it runs; US_ERR_LIMIT: too many samples would be under way.
US_API us_status us_sim_set_sensor_parameter(us_sim *sim, us_sensor sensor, const char *name, double value,
                                             us_error *err);

// What is wrong with a sensor as a whole, whatever its kind.
typedef struct us_sensor_fault {
    bool is_dead;    // it gives nothing any more
    bool is_frozen;  // it gives the same again and again, each time as if it were new
    double noise;    // factor of its error, the difference of reading and truth; default 1
    double delay;    // s, on top of its latency, 0 to 1
    double drop;     // share of samples that are lost, 0 to 1
} us_sensor_fault;
US_API us_sensor_fault us_sensor_fault_default(void);  // nothing is wrong
US_API us_sensor_fault us_sim_get_sensor_fault(const us_sim *sim, us_sensor sensor);
US_API us_status us_sim_set_sensor_fault(us_sim *sim, us_sensor sensor, const us_sensor_fault *fault);
// While a lidar is held it begins no frame, and casts no beam; the one that it is collecting becomes whole.
// For who keeps a pace and has fallen behind (`understudy run` does so). An input as others are: recorded,
// and replayed. How many frames were left out: us_lidar_frame.
US_API us_status us_sim_hold_lidar(us_sim *sim, us_lidar lidar, bool is_held);
// What is wrong with one reading: an offset, and the standard deviation of white noise that is added, in its
// unit. US_ERR_NAME: no such reading; US_ERR_VALUE: a number is not finite, or the reading is part of a
// rotation or a code.
US_API us_status us_sim_set_sensor_error(us_sim *sim, us_sensor sensor, const char *reading, double offset,
                                         double deviation, us_error *err);

#ifdef __cplusplus
}
#endif
#endif
