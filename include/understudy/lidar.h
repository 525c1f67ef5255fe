// Lidars: what they are made of. docs/lidar.md has the mathematics; understudy/query.h gives their frames.
//
// A lidar fires all its beams one after the other, again and again, while its head turns. A frame is what one
// turn saw. Each beam leaves at its own time, from where the sensor is then, into the world as it is then:
// between the states of two steps positions go straight and rotations turn evenly.
#ifndef UNDERSTUDY_LIDAR_H
#define UNDERSTUDY_LIDAR_H

#include "understudy/base.h"
#include "understudy/math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    US_LIDAR_MAX_BEAM = 256,       // beams of a lidar
    US_LIDAR_MAX_POINT = 4000000,  // points of a frame
    US_LIDAR_MAX_RAY = 9,          // rays in the cone of a beam
    US_LIDAR_MAX_BLIND = 4,        // sectors in which it is blind
};

// In which order a lidar looks: a head that turns; a mirror that goes over a window row by row, from the left
// to the right and from the lowest row up; two prisms that turn one behind the other (Risley) and bend the
// beam into a rosette.
typedef enum us_lidar_pattern {
    US_LIDAR_SPIN,
    US_LIDAR_GRID,
    US_LIDAR_ROSETTE,
    US_LIDAR_PATTERN_COUNT
} us_lidar_pattern;

// Which of the returns of a shot are told. Dual: the strongest and the last; where they are one, the second
// strongest stands beside it.
typedef enum us_lidar_returns {
    US_LIDAR_STRONGEST,
    US_LIDAR_FIRST,
    US_LIDAR_LAST,
    US_LIDAR_DUAL,
    US_LIDAR_RETURNS_COUNT
} us_lidar_returns;

typedef struct us_lidar_beam {
    double elevation;  // rad, above the xy plane of the sensor
    double azimuth;    // rad, to the left of the head's direction
    double time;       // s, after the first beam of the group
} us_lidar_beam;

typedef struct us_lidar_def {
    int32_t n_beam;
    const us_lidar_beam *beams;  // in any order; rings are counted from the lowest up
    int32_t columns;             // groups in a whole turn, at even angles; 0: one each `period`
    double period;               // s from group to group where there are no columns
    double start;                // rad: the head's azimuth when a turn begins, from +x towards +y
    double sweep;  // rad by which it turns while it fires: counter-clockwise seen from above, or
                   // clockwise when negative; up to a whole turn
    double min_range, max_range;  // m; nearer and farther there is no return
    double range_noise;           // m, standard deviation
    double angle_noise;           // rad, standard deviation across the beam, both ways
    double quantum;               // m to which ranges are rounded; 0: not
    double reach;        // m at which a surface of reflectivity 0.1, met squarely, returns half of the shots;
                         // 0: every surface returns all
    double power_noise;  // standard deviation of the received power, over that which is needed; default 0.1
    double reflectivity;  // of surfaces whose material has none of its own, 0 to 1; default 0.3

    us_lidar_pattern pattern;
    double window[2];      // rad: grid: its width and height, the middle straight ahead
    double resolution[2];  // rad: grid: from column to column, and from row to row
    double bend[2];        // rad: rosette: by which each prism bends the beam
    double spin[2];        // rad/s: rosette: of each prism, counter-clockwise seen along the beam

    double divergence;         // rad: the whole opening of a beam's cone; 0: a line
    int32_t n_ray;             // lines that stand for the cone; default 5: the axis and four around it
    double pulse;              // m: surfaces that are nearer to each other give one return; default 0.4
    us_lidar_returns returns;  // default: the strongest
    double extinction;         // 1/m, of dust or fog: light fades by exp(-extinction r) each way
    double backscatter;        // 1/(m sr), of the same: what it sends back; 0: it gives no returns of its own
    double sun;                // variance of the received power that a white surface adds which the sun meets
                               // squarely, over the device's own; 0: no sun
    us_vec3 sun_direction;     // towards it, in the world; default: overhead
    int32_t n_blind;           // sectors in which its housing or a mast is in the way
    double blind[US_LIDAR_MAX_BLIND][2];  // rad: azimuths, counter-clockwise from the first to the second
    bool hides_own_robot;                 // points on the robot that carries it are taken out of the frame
    bool is_deskewed;  // clouds on the network: all points in the frame of when the turn began
    uint32_t
        packet_address;     // IPv4, of this machine: 127.0.0.1 is 0x7f000001. Where packets of its maker go,
    uint16_t packet_port;   // by UDP; 0: nowhere
    uint8_t packet_device;  // what they say that it is; of presets of devices that send such packets
} us_lidar_def;

// One without beams, columns and ranges.
US_API us_lidar_def us_lidar_def_default(void);
// Names of makers' devices by number, "hdl-32e" first; NULL beyond the last.
US_API const char *us_lidar_preset_name(int32_t i);
// What a device is made of: `beams`, of which there are US_LIDAR_MAX_BEAM, gets its beams, and *out_rate the
// usual turns per second. US_ERR_NAME: there is none of that name.
US_API us_status us_lidar_preset(const char *name, us_lidar_beam *beams, us_lidar_def *out_def,
                                 double *out_rate);

#ifdef __cplusplus
}
#endif
#endif
