// A robot's serial lines: its ASCII link, and the faces of its devices.
#ifndef USI_PROXY_SERIAL_FACE_H
#define USI_PROXY_SERIAL_FACE_H

#include "proxy/proxy__robot.h"

typedef struct usi_faces usi_faces;

// Lines DIRECTORY/ROBOT, .lm629, .adc and .imu, as far as the robot has them. *out NULL: it has none.
us_status usi_faces_create(usi_robot *r, const char *directory, usi_faces **out, us_error *err);
void usi_faces_destroy(usi_faces *faces);  // NULL is allowed
// Readings after a step. It never waits: where a device is being talked to, they come with the next.
void usi_faces_observe(usi_faces *faces, const usi_robot *r, const us_sim *sim, const usi_robot_state *s);
// "DIRECTORY/k10 DIRECTORY/k10.lm629": names that were made.
const char *usi_faces_names(const usi_faces *faces);

#endif
