// Properties of a robot by name: what it is, how it stands, and what may be set. The ASCII link and the
// requests of the rover services show the same list.
#ifndef USI_PROXY_ROVER_PROPERTY_H
#define USI_PROXY_ROVER_PROPERTY_H

#include "proxy/proxy__robot.h"

// X(code, name, unit, may be set, about)
#define USI_PROPERTY_LIST(X)                                                                               \
    X(LIMIT_SPEED, "limit.speed", "m/s", false, "commands beyond are refused; 0: no limit")                \
    X(LIMIT_TURN, "limit.turn", "rad/s", false, "commands beyond are refused; 0: no limit")                \
    X(LIMIT_ACCELERATION, "limit.acceleration", "m/s^2", false, "of body velocities; 0: at once")          \
    X(COMMAND_TIMEOUT, "command.timeout", "s", false, "after which a velocity must be renewed; 0: never")  \
    X(COMMAND_COUNT, "command.count", "1", false, "commands that were taken")                              \
    X(COMMAND_REFUSED, "command.refused", "1", false, "commands that were refused")                        \
    X(STOP_COUNT, "stop.count", "1", false, "safe stops, because a command was not renewed or late")       \
    X(MOTOR_COUNT, "motor.count", "1", false, "drives")                                                    \
    X(WHEEL_COUNT, "wheel.count", "1", false, "wheels that drive")                                         \
    X(LEG_COUNT, "leg.count", "1", false, "legs")                                                          \
    X(NAVIGATOR_SPEED, "navigator.speed", "m/s", true, "of a motion to a place that says none")            \
    X(NAVIGATOR_TOLERANCE, "navigator.tolerance", "m", true, "of a motion to a place that says none")      \
    X(NAVIGATOR_TIMEOUT, "navigator.timeout", "s", true, "of a motion to a place that says none; 0: none") \
    X(SITE_X, "site.x", "m", true, "origin of the site's frame in map")                                    \
    X(SITE_Y, "site.y", "m", true, "origin of the site's frame in map")                                    \
    X(SITE_HEADING, "site.heading", "rad", true, "angle of the site's frame in map")                       \
    X(POSE_X, "pose.x", "m", false, "by the pose estimator, in the site's frame")                          \
    X(POSE_Y, "pose.y", "m", false, "by the pose estimator, in the site's frame")                          \
    X(POSE_HEADING, "pose.heading", "rad", false, "by the pose estimator, in the site's frame")            \
    X(BATTERY_CHARGE, "battery.charge", "1", false, "share that is left, by its gauge")                    \
    X(BATTERY_VOLTAGE, "battery.voltage", "V", false, "by its gauge")                                      \
    X(BATTERY_CURRENT, "battery.current", "A", false, "by its gauge; negative while it is drained")

typedef enum usi_property {
#define USI_PROPERTY_ENUM(code, name, unit, is_open, about) USI_PROPERTY_##code,
    USI_PROPERTY_LIST(USI_PROPERTY_ENUM)
#undef USI_PROPERTY_ENUM
        USI_PROPERTY_COUNT
} usi_property;

typedef struct usi_property_row {
    const char *name, *unit;
    bool is_open;  // may be set
    const char *about;
} usi_property_row;

extern const usi_property_row usi_property_rows[USI_PROPERTY_COUNT];

int32_t usi_property_find(const char *name);  // -1: there is none
// NaN: this robot has none, for example of a battery.
double usi_property_get(const usi_robot *r, const us_sim *sim, const usi_firmware_state *s, int32_t property);
// False with the reason: it cannot be set, or not so.
bool usi_property_set(usi_firmware_request *c, int32_t property, double value);

// How fast and how near a motion to a place goes that does not say so. 0.1 m is what wheel odometry of a
// metre or two can promise.
double usi_default_speed(const usi_firmware *fw, const usi_firmware_state *s);
double usi_default_tolerance(const usi_firmware_state *s);
// From the site's frame to that of the pose estimator (map), and back: x, y, angle.
void usi_site_to_map(const usi_firmware_state *s, const double at[3], double out[3]);
void usi_map_to_site(const usi_firmware_state *s, const double at[3], double out[3]);

#endif
