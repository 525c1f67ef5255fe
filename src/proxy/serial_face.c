// Faces of a robot's devices on serial lines.
//
//     stepping thread   readings (a copy under a lock that it only tries) ----> registers <---> bytes thread
//     of
//                       mailbox <----- orders, as commands of the ASCII link ----- |                   the
//                       lines
//
// Registers are the devices' own, and no part of the world's state: what they order of motors is, since it
// comes as commands that are recorded.
#include "proxy/serial_face.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bus/serial_line.h"
#include "firmware/device_face.h"
#include "proxy/rover_link.h"

enum { MAX_CHIP = 64 };

static const double CLOCK = 6e6;  // Hz, of the motor controllers

struct usi_faces {
    usi_robot *r;
    usi_serial *serial;
    pthread_mutex_t lock;  // of the registers
    int32_t n_chip;
    usi_lm629 chip[MAX_CHIP];
    char name[MAX_CHIP][5];
    bool has_readings;
    uint8_t frame[3];  // of the motor controllers: what came of one
    int n_frame;
    usi_adc adc;
    usi_gyro gyro;
    char names[1200];
};

// ---------------------------------------------------------------- orders

static void post(const usi_faces *f, const char *text) {
    uint8_t bytes[USI_MOTOR_TEXT + 32];
    size_t n = 0;
    char line[USI_MOTOR_TEXT + 1];
    snprintf(line, sizeof line, "%s", text);
    const us_msg_string m = {line};
    // A full mailbox counts what it drops; the driver sees a motor that does not follow.
    if (!us_message_encode(usi_type_string, &m, bytes, sizeof bytes, &n))
        (void)usi_mailbox_put(f->r->mailbox, USI_COMMAND_MOTOR_TEXT, "motor:lm629", bytes, n);
}

static void carry_out(const usi_faces *f, int32_t chip, const usi_lm629_order *o) {
    char text[USI_MOTOR_TEXT];
    const char *name = f->name[chip];
    if (o->kind == USI_LM629_NOTHING) return;
    if (o->kind == USI_LM629_OFF || o->kind == USI_LM629_STOP) {
        snprintf(text, sizeof text, "MSTP%s", name);
        post(f, text);
    }
    snprintf(text, sizeof text, "MPWR%s%d", name, o->kind != USI_LM629_OFF);
    post(f, text);
    if (o->kind == USI_LM629_VELOCITY) {
        snprintf(text, sizeof text, "MMOV%sV%.9g", name, o->velocity);
        post(f, text);
    } else if (o->kind == USI_LM629_TRAPEZOID) {
        snprintf(text, sizeof text, "MMOV%sT%.9g,%.9g,%.9g", name, o->acceleration, o->velocity, o->position);
        post(f, text);
    }
}

// ---------------------------------------------------------------- bytes

// A frame of three bytes, operation, chip and value, is answered by two: 06 and a value, or 15 and why.
static void answer_frame(usi_faces *f, uint8_t out[2]) {
    const uint8_t operation = f->frame[0], value = f->frame[2];
    const int32_t i = f->frame[1];
    out[0] = 0x06;
    out[1] = 0;
    if (i >= f->n_chip) {
        out[0] = 0x15;
        out[1] = 2;
        return;
    }
    usi_lm629 *chip = &f->chip[i];
    usi_lm629_order order = {.kind = USI_LM629_NOTHING};
    switch (operation) {
    case 'C':
        order = usi_lm629_write_command(chip, value);
        break;
    case 'D':
        order = usi_lm629_write_data(chip, value);
        break;
    case 'S':
        out[1] = usi_lm629_read_status(chip);
        break;
    case 'R':
        out[1] = usi_lm629_read_data(chip);
        break;
    case 'I':
        out[1] = usi_lm629_host_interrupt(chip);
        break;
    default:
        out[0] = 0x15;
        out[1] = 1;
        break;
    }
    carry_out(f, i, &order);
}

static size_t talk_motors(void *context, const uint8_t *in, size_t n, uint8_t *out, size_t cap) {
    usi_faces *f = context;
    size_t n_out = 0;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < n && n_out + 2 <= cap; i++) {
        f->frame[f->n_frame++] = in[i];
        if (f->n_frame < 3) continue;
        f->n_frame = 0;
        answer_frame(f, out + n_out);
        n_out += 2;
    }
    pthread_mutex_unlock(&f->lock);
    return n_out;
}

static size_t talk_adc(void *context, const uint8_t *in, size_t n, uint8_t *out, size_t cap) {
    usi_faces *f = context;
    const size_t n_out = n < cap ? n : cap;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < n_out; i++)
        out[i] = usi_adc_exchange(&f->adc, in[i]);
    pthread_mutex_unlock(&f->lock);
    return n_out;
}

static size_t talk_imu(void *context, const uint8_t *in, size_t n, uint8_t *out, size_t cap) {
    usi_faces *f = context;
    size_t n_out = 0;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < n && n_out + USI_GYRO_PACKET <= cap; i++)
        n_out += usi_gyro_take(&f->gyro, in[i], out + n_out);
    if (n_out + USI_GYRO_PACKET <= cap) n_out += usi_gyro_tick(&f->gyro, out + n_out);
    pthread_mutex_unlock(&f->lock);
    return n_out;
}

// ---------------------------------------------------------------- readings

static void observe_motors(usi_faces *f, const usi_robot *r, const us_sim *sim, double time) {
    const us_network_def *d = r->model->network;
    for (int32_t i = 0; i < f->n_chip; i++) {
        for (int32_t k = 0; k < r->model->firmware.n_drive; k++) {
            if (r->model->drive[k].index != d->motors[i].drive) continue;
            const int32_t joint = r->model->firmware.drive[k].joint;
            const usi_lm629_reading now = {time, usi_read_q(r, sim, joint), usi_read_v(r, sim, joint)};
            if (!f->has_readings) usi_lm629_init(&f->chip[i], d->motor_counts, CLOCK, &now);
            const usi_lm629_order order = usi_lm629_observe(&f->chip[i], &now);
            carry_out(f, i, &order);
        }
    }
}

void usi_faces_observe(usi_faces *f, const usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    const us_network_def *d = r->model->network;
    const usi_firmware_state *fw = usi_view_firmware(r, s);
    const double time = (double)us_sim_get_tick(sim) * r->proxy->step;
    if (!f || pthread_mutex_trylock(&f->lock) != 0) return;
    observe_motors(f, r, sim, time);
    f->has_readings = true;
    int n = 0;
    for (int32_t i = 0; i < d->n_line && n < USI_ADC_CHANNELS; i++) {
        if (d->lines[i].kind == US_LINE_ANALOG_IN) f->adc.volts[n++] = usi_link_read_line(r, sim, fw, i);
    }
    const int32_t imu = usi_link_imu(r, 0);
    if (imu >= 0) usi_link_read_imu(sim, imu, f->gyro.values);
    f->gyro.time = time;
    pthread_mutex_unlock(&f->lock);
}

// ---------------------------------------------------------------- making and ending

static bool has_analog(const us_network_def *d) {
    for (int32_t i = 0; i < d->n_line; i++) {
        if (d->lines[i].kind == US_LINE_ANALOG_IN) return true;
    }
    return false;
}

us_status usi_faces_create(usi_robot *r, const char *directory, usi_faces **out, us_error *err) {
    const us_network_def *d = r->model->network;
    *out = NULL;
    if (d->n_motor == 0 && d->n_line == 0 && !r->motors) return US_OK;
    // A directory that is not there is made; whether it can be used shows below.
    (void)mkdir(directory, 0700);
    usi_faces *f = usi_alloc(&r->proxy->allocator, sizeof *f, _Alignof(usi_faces));
    if (!f)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for a robot's serial lines");
    memset(f, 0, sizeof *f);
    f->r = r;
    f->n_chip = d->n_motor < MAX_CHIP ? d->n_motor : MAX_CHIP;
    for (int32_t i = 0; i < f->n_chip; i++)
        memcpy(f->name[i], d->motors[i].name, sizeof f->name[i]);
    usi_gyro_init(&f->gyro);
    pthread_mutex_init(&f->lock, NULL);

    const usi_serial_def all[] = {
        {"", r->motors ? usi_motor_server_port(r->motors) : 0, NULL, NULL},
        {".lm629", 0, f->n_chip > 0 ? talk_motors : NULL, f},
        {".adc", 0, has_analog(d) ? talk_adc : NULL, f},
        {".imu", 0, usi_link_imu(r, 0) >= 0 ? talk_imu : NULL, f},
    };
    usi_serial_def lines[4];
    char paths[4][280];
    int32_t n = 0;
    for (int i = 0; i < 4; i++) {
        if (all[i].port == 0 && !all[i].on_bytes) continue;
        char name[64];
        snprintf(name, sizeof name, "%.60s", r->name);
        // A name of a robot may have what a path has a meaning for.
        for (char *at = name; *at; at++)
            if (*at == '/') *at = '_';
        snprintf(paths[n], sizeof paths[n], "%.200s/%s%s", directory, name, all[i].path);
        lines[n] = all[i];
        lines[n].path = paths[n];
        const size_t used = strlen(f->names);
        snprintf(f->names + used, sizeof f->names - used, "%s%s", used ? " " : "", paths[n]);
        n++;
    }
    us_status status = usi_serial_create(&r->proxy->allocator, lines, n, &f->serial, err);
    if (status) {
        usi_faces_destroy(f);
        return status;
    }
    *out = f;
    return US_OK;
}

void usi_faces_destroy(usi_faces *faces) {
    if (!faces) return;
    usi_serial_destroy(faces->serial);
    pthread_mutex_destroy(&faces->lock);
    us_allocator a = faces->r->proxy->allocator;
    usi_release(&a, faces, sizeof *faces, _Alignof(usi_faces));
}

const char *usi_faces_names(const usi_faces *faces) { return faces ? faces->names : ""; }
