// The ASCII link of a robot: its commands to the firmware, its states to the clients.
#ifndef USI_PROXY_ROVER_LINK_H
#define USI_PROXY_ROVER_LINK_H

#include "proxy/proxy__robot.h"
#include "wire/motor.h"

enum { USI_LINK_IMUS = 10 };  // inertial units that have a name there: IMU0 to IMU9

// link_command.c: a command has come. False with the reason, in the link's words too.
bool usi_link_command(const usi_robot *r, const us_sim *sim, usi_firmware_request *c, const char *text,
                      usi_motor_reason *out_reason);

// link_report.c: the states that a robot's link has beside those of motors: rover, function, then lines, then
// inertial units. How many; `out` has room for USI_LINK_REPORTS.
enum {
    USI_LINK_ROVER,
    USI_LINK_FUNCTION,
    USI_LINK_LINES,
    USI_LINK_REPORTS = 2 + USI_LINE_LIMIT + USI_LINK_IMUS
};
int32_t usi_link_list(const usi_robot *r, usi_motor_report *out);
// To the clients of the link, who get what has changed.
void usi_link_publish(const usi_robot *r, const us_sim *sim, const usi_robot_state *s);
// A client's command gets its answer: `reason` USI_MOTOR_GOOD acknowledges it, with what it asked for.
void usi_link_answer(const usi_robot *r, const us_sim *sim, const usi_robot_state *s, const usi_mail *mail,
                     usi_motor_reason reason);
// What a line shows: the reading of an input, what an output was told.
double usi_link_read_line(const usi_robot *r, const us_sim *sim, const usi_firmware_state *s, int32_t line);
// The robot's inertial unit number i, a sensor of the model; -1: none.
int32_t usi_link_imu(const usi_robot *r, int32_t i);
// Its values as the link has them: roll, pitch, angular velocity, specific force.
void usi_link_read_imu(const us_sim *sim, int32_t sensor, double out[8]);

#endif
