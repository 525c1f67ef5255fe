// Sensors that a robot file asks for in <gazebo> elements.
#ifndef USI_SPEC_GAZEBO_SENSOR_H
#define USI_SPEC_GAZEBO_SENSOR_H

#include "spec/scene.h"

// Adds those of the group's extensions to the robot's sensors and topics, with warnings for what is not
// understood. Its lists are then the reader's.
us_status usi_gazebo_sensors(usi_reader *r, us_network_def *d);

#endif
