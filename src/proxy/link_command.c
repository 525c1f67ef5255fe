// Commands of the ASCII link to the firmware: single motors, the body, functions by name, outputs.
#include <math.h>
#include <string.h>

#include "proxy/rover_link.h"
#include "proxy/rover_property.h"

typedef struct order {
    const usi_robot *r;
    const us_sim *sim;
    usi_firmware_request *c;
    const usi_motor_command *m;
    usi_motor_reason reason;  // of a refusal, where the kind of the firmware's does not say it
} order;

// ---------------------------------------------------------------- motors

static int32_t find_motor(const usi_robot *r, const char *name) {
    for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
        if (strcmp(r->model->drive[k].motor, name) == 0) return k;
    }
    return -1;
}

static bool take_motor(order *o) {
    const usi_motor_command *m = o->m;
    if (m->kind == USI_MOTOR_STOP_ALL) return usi_firmware_stop(o->c);
    const int32_t drive = find_motor(o->r, m->name);
    if (drive < 0) return usi_firmware_refuse_as(o->c, US_ROVER_UNKNOWN_NAME, "no motor \"%.4s\"", m->name);
    if (m->kind == USI_MOTOR_POWER) {
        usi_firmware_switch_drive(o->c, drive, m->is_on);
        return true;
    }
    if (usi_firmware_view_drives(o->c->fw, o->c->s)[drive].is_off && m->kind != USI_MOTOR_STOP) {
        o->reason = USI_MOTOR_UNPOWERED;
        return usi_firmware_refuse(o->c, "motor %.4s has no power", m->name);
    }
    // By this protocol a motor moves until the next command.
    const usi_drive_command command = {.drive = drive,
                                       .mode = m->kind == USI_MOTOR_STOP       ? USI_DRIVE_KEEP
                                               : m->kind == USI_MOTOR_VELOCITY ? USI_DRIVE_VELOCITY
                                               : m->kind == USI_MOTOR_POSITION ? USI_DRIVE_POSITION
                                                                               : USI_DRIVE_PROFILE,
                                       .value = m->value,
                                       .acceleration = m->acceleration,
                                       .velocity = m->max_velocity,
                                       .is_lasting = true};
    return usi_firmware_command_drives(o->c, &command, 1);
}

// ---------------------------------------------------------------- the body

// A number of the command that may be left out.
static double given(const usi_motor_command *m, int i, double otherwise) {
    return i < m->n_number ? m->number[i] : otherwise;
}

static bool can_turn(const usi_firmware *fw) {
    return fw->gait.n_leg > 0 || fw->locomotion.kind != USI_LOCOMOTION_ACKERMANN;
}

// Points of the site's frame, or of the body's. The numbers of the command from `at` on: speed, tolerance,
// time-out; -1: they are not given.
typedef struct journey {
    double point[USI_MOTOR_NUMBERS / 2][2];
    int32_t n;
    bool is_relative;
    double speed, tolerance, timeout;  // 0: the robot's own
} journey;

static bool go(order *o, const journey *j) {
    const usi_firmware_state *s = o->c->s;
    double points[USI_MOTOR_NUMBERS / 2][2], pose[3];
    usi_firmware_pose(s, pose);
    for (int32_t i = 0; i < j->n; i++) {
        const double at[3] = {j->point[i][0], j->point[i][1], 0};
        double place[3];
        if (j->is_relative) {
            usi_odometry_compose(pose, at, place);
        } else {
            usi_site_to_map(s, at, place);
        }
        memcpy(points[i], place, sizeof points[i]);
    }
    const double speed = j->speed > 0 ? j->speed : usi_default_speed(o->c->fw, s),
                 tolerance = j->tolerance > 0 ? j->tolerance : usi_default_tolerance(s);
    if (!usi_firmware_navigate(o->c, (const double(*)[2])points, j->n, 0, speed, tolerance)) return false;
    usi_firmware_limit_time(o->c, j->timeout > 0 ? j->timeout : s->setting.timeout);
    return true;
}

static bool take_go_to(order *o) {
    const usi_motor_command *m = o->m;
    journey j = {.n = 1, .is_relative = m->is_relative};
    memcpy(j.point[0], m->number, sizeof j.point[0]);
    j.speed = given(m, 2, 0);
    j.tolerance = given(m, 3, 0);
    j.timeout = given(m, 4, 0);
    return go(o, &j);
}

static bool take_arc(order *o) {
    const double *x = o->m->number;
    if (!usi_firmware_drive_arc(o->c, x[0], x[1], x[2])) return false;
    usi_firmware_limit_time(o->c, given(o->m, 3, 0));
    return true;
}

static bool take_turn(order *o, double angle, double rate, double timeout) {
    if (!usi_firmware_rotate(o->c, angle, rate)) return false;
    usi_firmware_limit_time(o->c, timeout);
    return true;
}

static bool take_place(order *o) {
    double place[3];
    if (!usi_firmware_can_move(o->c->fw))
        return usi_firmware_refuse_as(o->c, US_ROVER_NOT_SUPPORTED, "this robot has no <locomotion>");
    usi_site_to_map(o->c->s, o->m->number, place);
    usi_firmware_set_pose(o->c, place);
    return true;
}

// What moves the body has a number, by which a client knows the states that belong to it.
static bool take_mobility(order *o) {
    usi_firmware_state *s = o->c->s;
    const double *x = o->m->number;
    bool is_taken = false, is_over = false;
    switch (o->m->kind) {
    case USI_MOTOR_GO_TO:
        is_taken = take_go_to(o);
        break;
    case USI_MOTOR_DRIVE:
        is_taken = usi_firmware_drive_velocity(o->c, x);
        break;
    case USI_MOTOR_ARC:
        is_taken = take_arc(o);
        break;
    case USI_MOTOR_TURN:
        is_taken = take_turn(o, x[0], x[1], given(o->m, 2, 0));
        break;
    case USI_MOTOR_STOP_ROVER:
        is_taken = is_over = usi_firmware_stop(o->c);
        break;
    case USI_MOTOR_PLACE:
        return take_place(o);
    default:  // RGET
        return true;
    }
    if (!is_taken) return false;
    s->mobility = (usi_service_state){.sequence = s->mobility.sequence + !is_over,
                                      .state = is_over ? US_ROVER_STOPPED : US_ROVER_MOVING};
    return true;
}

// ---------------------------------------------------------------- functions

static bool move(order *o) {
    const double *x = o->m->number;
    journey j = {.n = 1, .is_relative = true, .speed = given(o->m, 2, 0), .timeout = given(o->m, 3, 0)};
    if (!(x[0] > 0)) return usi_firmware_refuse(o->c, "the length must be above 0");
    j.point[0][0] = x[0] * cos(x[1]);
    j.point[0][1] = x[0] * sin(x[1]);
    return go(o, &j);
}

static bool move_to(order *o) {
    const usi_motor_command *m = o->m;
    journey j = {.n = 1};
    memcpy(j.point[0], m->number, sizeof j.point[0]);
    j.speed = given(m, 3, 0);
    j.tolerance = given(m, 4, 0);
    j.timeout = given(m, 5, 0);
    const bool has_heading = m->n_number > 2;
    if (has_heading && !can_turn(o->c->fw))
        return usi_firmware_refuse_as(o->c, US_ROVER_NOT_SUPPORTED, "it cannot turn on the spot");
    if (!go(o, &j)) return false;
    const double heading = o->c->s->setting.site[2] + given(m, 2, 0);
    return !has_heading || usi_firmware_end_with_heading(o->c, heading);
}

static bool route(order *o) {
    journey j = {.n = o->m->n_number / 2};
    memcpy(j.point, o->m->number, sizeof j.point);
    return go(o, &j);
}

static bool turn_to(order *o) {
    const usi_firmware *fw = o->c->fw;
    const double turn = 6.28318530717958647693;
    double pose[3], here[3];
    usi_firmware_pose(o->c->s, pose);
    usi_map_to_site(o->c->s, pose, here);
    const double rate = given(o->m, 1, fw->max_turn > 0 ? 0.5 * fw->max_turn : 0.5);
    if (!take_turn(o, remainder(o->m->number[0] - here[2], turn), rate, given(o->m, 2, 0))) return false;
    return usi_firmware_end_with_heading(o->c, o->c->s->setting.site[2] + o->m->number[0]);
}

static bool home(order *o) {
    const journey j = {.n = 1, .speed = given(o->m, 0, 0), .timeout = given(o->m, 1, 0)};
    return go(o, &j);
}

static bool power(order *o) {
    const double value = o->m->number[0];
    if (value != 0 && value != 1) return usi_firmware_refuse(o->c, "power is 0 or 1");
    for (int32_t k = 0; k < o->c->fw->n_drive; k++)
        usi_firmware_switch_drive(o->c, k, value == 1);
    return true;
}

static bool gait(order *o) {
    const double value = o->m->number[0];
    if (value != 0 && value != 1) return usi_firmware_refuse(o->c, "the gait is 0 tripod or 1 wave");
    return usi_firmware_set_gait(o->c, value == 1 ? USI_GAIT_WAVE : USI_GAIT_TRIPOD, 0);
}

static bool run_function(order *o) {
    static bool (*const run[USI_FUNCTION_COUNT])(order *) = {
        [USI_FUNCTION_MOVE] = move,       [USI_FUNCTION_MOVE_TO] = move_to, [USI_FUNCTION_ROUTE] = route,
        [USI_FUNCTION_TURN_TO] = turn_to, [USI_FUNCTION_HOME] = home,       [USI_FUNCTION_PARK] = NULL,
        [USI_FUNCTION_POWER] = power,     [USI_FUNCTION_GAIT] = gait};
    usi_firmware_state *s = o->c->s;
    const usi_function f = o->m->function;
    const bool is_taken = run[f] ? run[f](o) : usi_firmware_stop(o->c);
    if (!is_taken) return false;
    const bool is_motion = f <= USI_FUNCTION_HOME;
    s->function = (int32_t)f;
    s->function_run = (usi_service_state){.sequence = s->function_run.sequence + 1,
                                          .state = is_motion ? US_ROVER_MOVING : US_ROVER_DONE};
    return true;
}

static bool take_property(order *o) {
    const usi_motor_command *m = o->m;
    const int32_t i = usi_property_find(m->word);
    if (i < 0) {
        o->reason = USI_MOTOR_UNKNOWN_PROPERTY;
        return usi_firmware_refuse_as(o->c, US_ROVER_UNKNOWN_NAME, "no property \"%s\"", m->word);
    }
    if (m->kind == USI_MOTOR_SET_PROPERTY) {
        if (!usi_property_rows[i].is_open) o->reason = USI_MOTOR_READ_ONLY;
        return usi_property_set(o->c, i, m->value);
    }
    if (!isnan(usi_property_get(o->r, o->sim, o->c->s, i))) return true;
    return usi_firmware_refuse_as(o->c, US_ROVER_NOT_SUPPORTED, "this robot has no %s", m->word);
}

static bool take_function(order *o) {
    if (o->m->kind == USI_MOTOR_STOP_FUNCTION) return usi_firmware_stop(o->c);
    return o->m->kind == USI_MOTOR_RUN ? run_function(o) : take_property(o);
}

// ---------------------------------------------------------------- lines and inertial units

static bool take_line(order *o) {
    const us_network_def *d = o->r->model->network;
    int32_t i = 0;
    while (i < d->n_line && strcmp(d->lines[i].name, o->m->name) != 0)
        i++;
    if (i == d->n_line) {
        o->reason = USI_MOTOR_UNKNOWN_LINE;
        return usi_firmware_refuse_as(o->c, US_ROVER_UNKNOWN_NAME, "no line \"%.4s\"", o->m->name);
    }
    if (o->m->kind == USI_MOTOR_GET_LINE) return true;
    const us_line_kind kind = d->lines[i].kind;
    if (kind == US_LINE_DIGITAL_IN || kind == US_LINE_ANALOG_IN) {
        o->reason = USI_MOTOR_READ_ONLY;
        return usi_firmware_refuse_as(o->c, US_ROVER_NOT_SUPPORTED, "line %.4s is an input", o->m->name);
    }
    if (kind == US_LINE_DIGITAL_OUT && o->m->value != 0 && o->m->value != 1) {
        o->reason = USI_MOTOR_BAD_VALUE;
        return usi_firmware_refuse(o->c, "line %.4s is 0 or 1", o->m->name);
    }
    o->c->s->line[i] = o->m->value;
    return true;
}

// ---------------------------------------------------------------- all

static usi_motor_reason reason_of(us_rover_error error) {
    switch (error) {
    case US_ROVER_NOT_SUPPORTED:
        return USI_MOTOR_UNSUPPORTED;
    case US_ROVER_UNKNOWN_NAME:
        return USI_MOTOR_UNKNOWN;
    case US_ROVER_BUSY:
        return USI_MOTOR_BUSY;
    default:
        return USI_MOTOR_OUTSIDE;
    }
}

bool usi_link_command(const usi_robot *r, const us_sim *sim, usi_firmware_request *c, const char *text,
                      usi_motor_reason *out_reason) {
    usi_motor_command m;
    order o = {r, sim, c, &m, usi_motor_parse(text, strlen(text), &m)};
    *out_reason = o.reason;
    if (o.reason) return usi_firmware_refuse(c, "\"%.60s\" is no command of the link", text);
    bool is_taken = false;
    switch (usi_motor_level_of(m.kind)) {
    case USI_LEVEL_MOTOR:
        is_taken = take_motor(&o);
        break;
    case USI_LEVEL_MOBILITY:
        is_taken = take_mobility(&o);
        break;
    case USI_LEVEL_FUNCTION:
        is_taken = take_function(&o);
        break;
    case USI_LEVEL_LINE:
        is_taken = take_line(&o);
        break;
    default:
        is_taken = true;  // an inertial unit is asked
        break;
    }
    if (!is_taken) *out_reason = o.reason ? o.reason : reason_of(c->error);
    return is_taken;
}
