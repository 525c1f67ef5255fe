// Sensors of a sim: when they sample, what is under way, what is wrong with them.
//
// A sample is taken when the sensor is due, from the state at the end of the step. Its truth is there at
// once; what the instrument made of it waits in the sensor's queue until its latency is over, and is then
// what the sensor says: firmware, topics of the robot and whoever reads it see no others. A fault sits at the
// sensor.
#ifndef USI_SIM_SENSORS_H
#define USI_SIM_SENSORS_H

#include "model/model.h"

// What the frame keeps of a sensor, beside the numbers of usi_sensor_part. Ticks are -1 where there was none.
typedef struct usi_sensor_state {
    int64_t wake;               // the tick at which it has to be looked at
    int64_t due;                // of the next sample
    int64_t sampled;            // of the last sample
    int64_t tick, tick_before;  // when that was taken which it says now, and which it said before
    int64_t delivered;          // when it began to say that
    int64_t n_sample, n_lost;   // samples so far, and those that a fault has lost
    int64_t first, n_pending;   // of its queue: the oldest sample's place, and how many there are
    int64_t is_stuck;           // frozen
    int64_t is_dead;
    double scale;          // of its error: 1 and this more
    double delay;          // s, on top of its latency
    double drop;           // probability that a sample is lost
    double rate, latency;  // Hz, s: as they are now
    double offset[4];      // lidar: its faults (lidar_return.h)
    double before[3];      // m/s: velocity of its point in the world when it was last looked at
    int64_t moved;         // the tick of that
} usi_sensor_state;

struct us_sim;

// Memory for queues; their samples are part of the state, changed in place: a step that fails has not moved
// the marks of its queues, and what lies between those is as it was.
us_status usi_sensors_create(struct us_sim *s);
void usi_sensors_destroy(struct us_sim *s);
// At the start: parameters as in the model, each kind's own start, and a first sample. With an error in
// s->error.
us_status usi_sensors_start(struct us_sim *s);
// After a step: what is due. On an error s->error has it, and the readings mean nothing.
us_status usi_sensors_step(struct us_sim *s);
// What a snapshot has of the queues (`to` NULL: the length alone), whether bytes can be those of a state, and
// back.
size_t usi_sensors_save(const struct us_sim *s, char *to);
size_t usi_sensors_length(const us_model *m, const usi_sensor_state *state);
bool usi_sensors_are_sound(const us_model *m, const usi_sensor_state *state, const char *from);
void usi_sensors_restore(struct us_sim *s, const char *from);
uint64_t usi_sensors_hash(const struct us_sim *s, uint64_t seed);
// The queue of a sensor goes on in another sim, where its kind is the same.
void usi_sensor_carry_queue(const struct us_sim *from, int32_t old, struct us_sim *to, int32_t sensor);

// s until the robot has a sample, as ticks, latency and delay together.
int64_t usi_sensor_latency_ticks(const us_model *m, const usi_sensor_state *k);

#endif
