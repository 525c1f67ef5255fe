// Properties of a robot by name.
#include "proxy/rover_property.h"

#include <math.h>
#include <string.h>

const usi_property_row usi_property_rows[USI_PROPERTY_COUNT] = {
#define PROPERTY_ROW(code, name, unit, is_open, about) {name, unit, is_open, about},
    USI_PROPERTY_LIST(PROPERTY_ROW)
#undef PROPERTY_ROW
};

int32_t usi_property_find(const char *name) {
    for (int32_t i = 0; i < USI_PROPERTY_COUNT; i++) {
        if (strcmp(usi_property_rows[i].name, name) == 0) return i;
    }
    return -1;
}

double usi_default_speed(const usi_firmware *fw, const usi_firmware_state *s) {
    if (s->setting.speed > 0) return s->setting.speed;
    return fw->max_speed > 0 ? 0.5 * fw->max_speed : 0.2;
}

double usi_default_tolerance(const usi_firmware_state *s) {
    return s->setting.tolerance > 0 ? s->setting.tolerance : 0.1;
}

void usi_site_to_map(const usi_firmware_state *s, const double at[3], double out[3]) {
    usi_odometry_compose(s->setting.site, at, out);
}

void usi_map_to_site(const usi_firmware_state *s, const double at[3], double out[3]) {
    usi_odometry_between(s->setting.site, at, out);
}

static double battery_reading(const usi_robot *r, const us_sim *sim, int part) {
    const int32_t sensor = usi_robot_find_sensor(r->proxy->model, r->model, "battery", "battery");
    return sensor < 0 ? NAN : usi_sim_reading(sim, sensor)[part];
}

double usi_property_get(const usi_robot *r, const us_sim *sim, const usi_firmware_state *s,
                        int32_t property) {
    const usi_firmware *fw = &r->model->firmware;
    double pose[3], here[3];
    usi_firmware_pose(s, pose);
    usi_map_to_site(s, pose, here);
    switch ((usi_property)property) {
    case USI_PROPERTY_LIMIT_SPEED:
        return fw->max_speed;
    case USI_PROPERTY_LIMIT_TURN:
        return fw->max_turn;
    case USI_PROPERTY_LIMIT_ACCELERATION:
        return fw->max_acceleration;
    case USI_PROPERTY_COMMAND_TIMEOUT:
        return fw->timeout;
    case USI_PROPERTY_COMMAND_COUNT:
        return (double)s->n_command;
    case USI_PROPERTY_COMMAND_REFUSED:
        return (double)s->n_refused;
    case USI_PROPERTY_STOP_COUNT:
        return (double)s->n_timeout;
    case USI_PROPERTY_MOTOR_COUNT:
        return fw->n_drive;
    case USI_PROPERTY_WHEEL_COUNT:
        return fw->locomotion.n_wheel;
    case USI_PROPERTY_LEG_COUNT:
        return fw->gait.n_leg;
    case USI_PROPERTY_NAVIGATOR_SPEED:
        return usi_default_speed(fw, s);
    case USI_PROPERTY_NAVIGATOR_TOLERANCE:
        return usi_default_tolerance(s);
    case USI_PROPERTY_NAVIGATOR_TIMEOUT:
        return s->setting.timeout;
    case USI_PROPERTY_SITE_X:
    case USI_PROPERTY_SITE_Y:
    case USI_PROPERTY_SITE_HEADING:
        return s->setting.site[property - USI_PROPERTY_SITE_X];
    case USI_PROPERTY_POSE_X:
    case USI_PROPERTY_POSE_Y:
    case USI_PROPERTY_POSE_HEADING:
        return here[property - USI_PROPERTY_POSE_X];
    case USI_PROPERTY_BATTERY_CHARGE:
    case USI_PROPERTY_BATTERY_VOLTAGE:
    case USI_PROPERTY_BATTERY_CURRENT:
        return battery_reading(r, sim, property - USI_PROPERTY_BATTERY_CHARGE);
    default:
        return NAN;
    }
}

bool usi_property_set(usi_firmware_request *c, int32_t property, double value) {
    usi_firmware_setting *set = &c->s->setting;
    const usi_property_row *row = &usi_property_rows[property];
    if (!row->is_open)
        return usi_firmware_refuse_as(c, US_ROVER_NOT_SUPPORTED, "%s cannot be set", row->name);
    if (!(fabs(value) <= 1e6)) return usi_firmware_refuse(c, "%s: %g is out of range", row->name, value);
    switch ((usi_property)property) {
    case USI_PROPERTY_SITE_X:
    case USI_PROPERTY_SITE_Y:
    case USI_PROPERTY_SITE_HEADING:
        set->site[property - USI_PROPERTY_SITE_X] = value;
        return true;
    case USI_PROPERTY_NAVIGATOR_TIMEOUT:
        if (value < 0) return usi_firmware_refuse(c, "%s is below 0", row->name);
        set->timeout = value;
        return true;
    case USI_PROPERTY_NAVIGATOR_TOLERANCE:
        if (!(value > 0)) return usi_firmware_refuse(c, "%s must be above 0", row->name);
        set->tolerance = value;
        return true;
    default:
        if (!(value > 0) || (c->fw->max_speed > 0 && value > c->fw->max_speed * (1 + 1e-9)))
            return usi_firmware_refuse(c, "%s: %g m/s is not above 0 and within the limit", row->name, value);
        set->speed = value;
        return true;
    }
}
