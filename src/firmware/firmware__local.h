// What the files of the firmware share.
#ifndef USI_FIRMWARE_LOCAL_H
#define USI_FIRMWARE_LOCAL_H

#include "firmware/firmware.h"

// Trajectories in the state: times, then positions and velocities of each drive, USI_TRAJECTORY_POINTS of
// each.
typedef struct usi_trajectory_memory {
    double *times, *positions, *velocities;
} usi_trajectory_memory;
usi_trajectory_memory usi_firmware_trajectory(const usi_firmware *fw, usi_firmware_state *s);

// body_motion.c: a motion command begins; another kind of motion that was under way ends.
void usi_firmware_begin(usi_firmware_request *c, usi_motion motion);
// The services whose command moves the body are over.
void usi_firmware_end_motion(usi_firmware_state *s, us_rover_state state, us_rover_error error,
                             const char *message);
// Whether the drive belongs to a wheel, its steering or a leg.
bool usi_firmware_is_locomotive(const usi_firmware *fw, int32_t drive);
// Odometry by the readings since the last tick.
void usi_firmware_count(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in);
// Wheels or legs for the body's motion.
void usi_firmware_move_body(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in,
                            usi_firmware_output *output);
// Stands from now on.
void usi_firmware_halt(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in);

// drive_modes.c: the drives that are commanded one by one.
void usi_firmware_run_drives(const usi_firmware *fw, usi_firmware_state *s, const usi_firmware_readings *in,
                             usi_firmware_output *output);

static inline double usi_clamp_abs(double x, double max) { return x > max ? max : x < -max ? -max : x; }

#endif
