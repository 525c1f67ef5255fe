// The kinds of sensors of the library: one file each. They see what plug-ins see.
#ifndef USI_INSTRUMENT_INSTRUMENT_H
#define USI_INSTRUMENT_INSTRUMENT_H

#include "understudy/sensor.h"

extern const us_sensor_kind usi_imu_kind, usi_lidar_kind, usi_battery_kind;
extern const us_sensor_kind usi_gyro_kind, usi_accelerometer_kind, usi_tilt_kind, usi_magnetometer_kind,
    usi_compass_kind, usi_sun_sensor_kind, usi_star_tracker_kind, usi_navsat_kind, usi_range_kind,
    usi_altimeter_kind, usi_proximity_kind, usi_encoder_kind, usi_potentiometer_kind, usi_motor_current_kind,
    usi_motor_voltage_kind, usi_motor_temperature_kind, usi_force_torque_kind, usi_contact_switch_kind,
    usi_tactile_kind, usi_wheel_soil_kind, usi_spectrometer_kind, usi_camera_kind, usi_lamp_kind;

#endif
