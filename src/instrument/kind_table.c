// The table of the library's kinds of sensors, and the random numbers of all kinds.
#include <string.h>

#include "instrument/instrument.h"

// Ended by NULL.
static const us_sensor_kind *const kinds[] = {
    &usi_imu_kind,
    &usi_lidar_kind,
    &usi_battery_kind,
    &usi_gyro_kind,
    &usi_accelerometer_kind,
    &usi_tilt_kind,
    &usi_magnetometer_kind,
    &usi_compass_kind,
    &usi_sun_sensor_kind,
    &usi_star_tracker_kind,
    &usi_navsat_kind,
    &usi_range_kind,
    &usi_altimeter_kind,
    &usi_proximity_kind,
    &usi_encoder_kind,
    &usi_potentiometer_kind,
    &usi_motor_current_kind,
    &usi_motor_voltage_kind,
    &usi_motor_temperature_kind,
    &usi_force_torque_kind,
    &usi_contact_switch_kind,
    &usi_tactile_kind,
    &usi_wheel_soil_kind,
    &usi_spectrometer_kind,
    &usi_camera_kind,
    &usi_lamp_kind,
    NULL,
};

const us_sensor_kind *us_sensor_kind_view(int32_t i) {
    for (int32_t k = 0; i >= 0 && kinds[k]; k++) {
        if (k == i) return kinds[k];
    }
    return NULL;
}

const us_sensor_kind *us_sensor_kind_find(const char *name) {
    for (int32_t k = 0; name && kinds[k]; k++) {
        if (strcmp(kinds[k]->name, name) == 0) return kinds[k];
    }
    return NULL;
}

// Each tick has 65536 numbers.
static uint64_t counter_of(const us_sensor_view *view, int32_t i) {
    return ((uint64_t)view->tick << 16) + (uint64_t)(uint32_t)i % 65536;
}

double us_sensor_normal(const us_sensor_view *view, int32_t i) {
    return us_random_normal(view->seed, view->stream, counter_of(view, i));
}

// A stream of its own: normals are made of the bits at both sides of their counter.
double us_sensor_uniform(const us_sensor_view *view, int32_t i) {
    return us_random_uniform(view->seed, view->stream + (UINT64_C(1) << 48), counter_of(view, i));
}
