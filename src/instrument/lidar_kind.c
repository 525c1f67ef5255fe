// Lidars: their frames are made by the sim, beam by beam (sim/lidar.c), and what they are made of is a
// us_lidar_def. Rate, seed, faults, truth and listing are the frame's.
#include "instrument/instrument.h"

const us_sensor_kind usi_lidar_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "lidar",
    .about = "a head that turns about its z axis and measures ranges with one or more beams",
    .is_frame = true,
    .topic = "points",
};
