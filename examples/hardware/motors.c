// Messages to single joints, joint_commands and motor_group/command, as commands to the firmware.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hardware.h"
#include "understudy/wire.h"

// ---- joint_commands: one number per drive, an angle for steering, a velocity for wheels ----

static bool read_joints(firmware *f, usi_firmware_request *c, const void *bytes, size_t length) {
    const us_message_type *type = us_message_find("std_msgs/msg/Float64MultiArray");
    const int32_t n = f->settings.n_drive;
    usi_drive_command commands[MAX_JOINT];
    char path[32];
    for (int32_t k = 0; k < n; k++) {
        snprintf(path, sizeof path, "data[%d]", (int)k);
        bool is_angle = f->drive[k].kind == USI_DRIVE_BY_POSITION;
        usi_drive_command command = US_ZERO;
        command.drive = k;
        command.mode = is_angle ? USI_DRIVE_POSITION : USI_DRIVE_VELOCITY;
        command.value = us_message_get_number(type, bytes, length, path);
        commands[k] = command;
    }
    snprintf(path, sizeof path, "data[%d]", (int)n);
    if (!isnan(us_message_get_number(type, bytes, length, path)))
        return usi_firmware_refuse(c, "more numbers than the %d drives", (int)n);
    if (f->is_emergency) return usi_firmware_refuse(c, "the emergency stop is on");
    return usi_firmware_command_drives(c, commands, n);
}

void motors_take_joints(firmware *f, const void *bytes, size_t length) {
    usi_firmware_readings readings;
    usi_firmware_request c = firmware_request(f, &readings);
    firmware_close(f, &c, "joint_commands", read_joints(f, &c, bytes, length));
}

// ---- motor_group/command ----

// Little endian CDR, read by hand: what is beyond the end reads as 0, and `is_bad` is set.
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

static int32_t find_motor(const firmware *f, const char *name) {
    for (int32_t k = 0; k < f->settings.n_drive; k++) {
        if (strcmp(f->joint[f->drive[k].joint].name, name) == 0) return k;
    }
    return -1;
}

static bool read_group(firmware *f, usi_firmware_request *c, reader *r, uint32_t n) {
    static const usi_drive_mode modes[] = {USI_DRIVE_KEEP, USI_DRIVE_VELOCITY, USI_DRIVE_POSITION,
                                           USI_DRIVE_PROFILE};
    usi_drive_command commands[MAX_JOINT];
    bool is_named[MAX_JOINT] = {false};
    for (uint32_t k = 0; k < n && !r->is_bad; k++) {
        char name[NAME_SIZE];
        uint8_t mode;
        get_text(r, name);
        get(r, &mode, sizeof mode);
        usi_drive_command command = US_ZERO;
        command.value = get_number(r);
        command.acceleration = get_number(r);
        command.velocity = get_number(r);
        command.drive = find_motor(f, name);
        if (r->is_bad) break;
        if (command.drive < 0) return usi_firmware_refuse(c, "there is no motor \"%s\"", name);
        if (is_named[command.drive]) return usi_firmware_refuse(c, "motor \"%s\" is named twice", name);
        if (mode > 3)
            return usi_firmware_refuse(c,
                                       "mode %d is not one that these motors have: 0 stop, 1 velocity, "
                                       "2 position, 3 trapezoid",
                                       (int)mode);
        is_named[command.drive] = true;
        command.mode = modes[mode];
        commands[k] = command;
    }
    if (r->is_bad) return usi_firmware_refuse(c, "these bytes are no message of its type");
    if (f->is_emergency) return usi_firmware_refuse(c, "the emergency stop is on");
    return usi_firmware_command_drives(c, commands, (int32_t)n);
}

void motors_take_group(firmware *f, const void *bytes, size_t length) {
    reader r = {(const unsigned char *)bytes, length, 4, false};
    char frame[NAME_SIZE];
    usi_firmware_readings readings;
    usi_firmware_request c = firmware_request(f, &readings);
    r.is_bad = length < 4 || r.bytes[1] != 1;
    get_count(&r);
    get_count(&r);
    get_text(&r, frame);
    uint32_t sequence = get_count(&r), n = get_count(&r);
    bool is_accepted = firmware_close(f, &c, "motor_group/command", read_group(f, &c, &r, n));
    usi_service_state *motors = &f->state->motors;
    motors->sequence = sequence;
    motors->state = is_accepted ? US_ROVER_IDLE : US_ROVER_REFUSED;
    snprintf(motors->message, sizeof motors->message, "%.150s", is_accepted ? "" : c.why);
}
