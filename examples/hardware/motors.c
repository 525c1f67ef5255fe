// Motions of single joints: joint_commands and motor_group/command. Checked whole before any of it is obeyed.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hardware.h"
#include "understudy/wire.h"

static const double WATCHDOG = 0.5;  // s: velocities must be renewed, positions end by themselves
static const double APPROACH = 10;   // 1/s: a wheel goes to a position with this times what is left

static void refuse(firmware *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(firmware *f, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(f->refusal, sizeof f->refusal, format, args);
    va_end(args);
    f->refused_time = f->time;
    f->n_refused++;
}

// ---- checks ----

static bool check(firmware *f, const body *b, const char *topic, int32_t i, joint_mode mode, double value) {
    const joint *j = &b->joint[i];
    if (!isfinite(value)) {
        refuse(f, "%s: the value for \"%s\" is not a finite number", topic, j->name);
    } else if (mode == JOINT_POSITION && j->is_limited &&
               (value < j->lower - 1e-6 || value > j->upper + 1e-6)) {
        refuse(f, "%s: position %.6g of \"%s\" is beyond its limits %.6g .. %.6g", topic, value, j->name,
               j->lower, j->upper);
    } else if (mode == JOINT_VELOCITY && fabs(value) > j->most_speed * (1 + 1e-6)) {
        refuse(f, "%s: velocity %.6g of \"%s\" is beyond its limit of %.6g", topic, value, j->name,
               j->most_speed);
    } else if (f->is_emergency) {
        refuse(f, "%s: the emergency stop is on", topic);
    } else {
        return true;
    }
    return false;
}

static void set(firmware *f, const body *b, int32_t i, joint_mode mode, double value) {
    f->mode[i] = mode;
    f->value[i] = value;
    f->goal[i] = b->joint[i].q - f->zero[i];
    f->mode_time[i] = f->time;
}

// The body comes to rest, as a whole; what was told to single joints stays.
static void begin(firmware *f) {
    f->motion = MOTION_JOINTS;
    memset(f->want, 0, sizeof f->want);
    f->n_taken++;
}

// ---- joint_commands: one number per drive, an angle for steering, a velocity for wheels ----

void motors_take_joints(firmware *f, const body *b, const void *bytes, size_t length) {
    const us_message_type *type = us_message_find("std_msgs/msg/Float64MultiArray");
    double value[2 * N_WHEEL];
    char path[32];
    int n = 0;
    for (int32_t i = 0; i < b->n_joint; i++) {
        if (b->joint[i].actuator < 0) continue;
        snprintf(path, sizeof path, "data[%d]", n);
        value[n] = us_message_get_number(type, bytes, length, path);
        if (!check(f, b, "joint_commands", i, b->joint[i].is_limited ? JOINT_POSITION : JOINT_VELOCITY,
                   value[n]))
            return;
        n++;
    }
    snprintf(path, sizeof path, "data[%d]", n);
    if (!isnan(us_message_get_number(type, bytes, length, path))) {
        refuse(f, "joint_commands: more numbers than the %d drives", n);
        return;
    }
    begin(f);
    n = 0;
    for (int32_t i = 0; i < b->n_joint; i++) {
        if (b->joint[i].actuator >= 0)
            set(f, b, i, b->joint[i].is_limited ? JOINT_POSITION : JOINT_VELOCITY, value[n++]);
    }
}

// ---- motor_group/command ----

// Little endian CDR, read by hand: what is beyond the end reads as 0, and `is_bad` says so.
typedef struct reader {
    const unsigned char *bytes;
    size_t length, at;
    bool is_bad;
} reader;

static void get(reader *r, void *out, size_t size) {
    while ((r->at - 4) % size)
        r->at++;
    memset(out, 0, size);
    r->is_bad = r->is_bad || r->at + size > r->length;
    if (r->is_bad) return;
    memcpy(out, r->bytes + r->at, size);
    r->at += size;
}

static uint32_t get_count(reader *r) {
    uint32_t x;
    get(r, &x, sizeof x);
    return x;
}

static double get_number(reader *r) {
    double x;
    get(r, &x, sizeof x);
    return x;
}

// Ends with a 0 that is counted; what does not fit is no name of ours.
static void get_text(reader *r, char out[NAME_SIZE]) {
    uint32_t n = get_count(r);
    out[0] = 0;
    r->is_bad = r->is_bad || n > r->length - r->at;
    if (r->is_bad) return;
    if (n > 0 && n <= NAME_SIZE) {
        memcpy(out, r->bytes + r->at, n);
        out[n - 1] = 0;
    }
    r->at += n;
}

static int32_t find_motor(const body *b, const char *name) {
    for (int32_t i = 0; i < b->n_joint; i++) {
        if (b->joint[i].actuator >= 0 && strcmp(b->joint[i].name, name) == 0) return i;
    }
    return -1;
}

// Goes through the motors of a command: to check them, and then to obey.
static bool walk(firmware *f, const body *b, reader r, uint32_t n, bool is_obeyed) {
    const char *topic = "motor_group/command";
    bool is_named[MAX_JOINT] = {false};
    for (uint32_t k = 0; k < n; k++) {
        char name[NAME_SIZE];
        uint8_t mode;
        get_text(&r, name);
        get(&r, &mode, sizeof mode);
        double value = get_number(&r);
        get_number(&r);  // acceleration and velocity are for trapezoids
        get_number(&r);
        int32_t i = find_motor(b, name);
        if (r.is_bad) {
            refuse(f, "%s: these bytes are no message of its type", topic);
        } else if (i < 0 || is_named[i]) {
            refuse(f, i < 0 ? "%s: there is no motor \"%s\"" : "%s: motor \"%s\" is named twice", topic,
                   name);
        } else if (mode > 2) {
            refuse(f, "%s: mode %d is not one that these motors have: 0 stop, 1 velocity, 2 position", topic,
                   (int)mode);
        } else if (is_obeyed || check(f, b, topic, i, mode == 2 ? JOINT_POSITION : JOINT_VELOCITY,
                                      mode == 0 ? 0 : value)) {
            is_named[i] = true;
            if (is_obeyed) set(f, b, i, mode == 2 ? JOINT_POSITION : JOINT_VELOCITY, mode == 0 ? 0 : value);
            continue;
        }
        return false;
    }
    return true;
}

void motors_take_group(firmware *f, const body *b, const void *bytes, size_t length) {
    reader r = {.bytes = bytes, .length = length, .at = 4};
    char frame[NAME_SIZE];
    r.is_bad = length < 4 || r.bytes[1] != 1;
    get_count(&r);
    get_count(&r);
    get_text(&r, frame);
    uint32_t sequence = get_count(&r), n = get_count(&r);
    bool is_good = !r.is_bad && walk(f, b, r, n, false);
    if (r.is_bad) refuse(f, "motor_group/command: these bytes are no message of its type");
    f->motors_sequence = sequence;
    f->is_motors_refused = !is_good;
    snprintf(f->motors_message, sizeof f->motors_message, "%s", is_good ? "" : f->refusal);
    if (!is_good) return;
    begin(f);
    walk(f, b, r, n, true);
}

// ---- every tick ----

void motors_tick(firmware *f, body *b, double step) {
    bool is_late = false;
    for (int32_t i = 0; i < b->n_joint; i++) {
        joint *j = &b->joint[i];
        double q = j->q - f->zero[i];
        if (f->mode[i] == JOINT_FREE) continue;
        if (f->mode[i] == JOINT_VELOCITY && f->value[i] != 0 && f->time - f->mode_time[i] > WATCHDOG) {
            f->value[i] = 0;
            is_late = true;
        }
        // Goals move no faster than the joint can; they are kept near to where it is, so that one that is
        // held fast stores nothing up.
        double to_go = f->mode[i] == JOINT_POSITION ? f->value[i] - f->goal[i] : f->value[i] * step,
               most = j->most_speed * step;
        f->goal[i] += fmax(-most, fmin(most, to_go));
        f->goal[i] = fmax(q - 0.2, fmin(q + 0.2, f->goal[i]));
        if (j->is_limited) f->goal[i] = fmax(j->lower, fmin(j->upper, f->goal[i]));
        double rate = f->mode[i] == JOINT_VELOCITY ? f->value[i] : 0;
        j->target = j->is_limited ? f->goal[i] : rate + APPROACH * (f->goal[i] - q);
    }
    f->n_safe_stop += is_late;
    // The body, when it moves again, does so from where they stand.
    for (int i = 0; i < N_WHEEL; i++) {
        const wheel *w = &b->wheel[i];
        if (f->mode[w->steer] != JOINT_FREE) f->steer[i] = f->goal[w->steer];
        if (f->mode[w->drive] != JOINT_FREE) f->wheel_goal[i] = b->joint[w->drive].q - f->zero[w->drive];
    }
}
