// A proxy's life. What it does is in robot_tick.c (commands in), publish.c (samples out) and connect.c
// (network).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus.h"
#include "bus/node.h"
#include "proxy/cameras.h"
#include "proxy/proxy__robot.h"
#include "proxy/serial_face.h"
#include "sim/sim.h"

// A JointTrajectory of 128 points for 30 joints, or a route, with room to spare.
static const size_t DECODED_SIZE = 512 * 1024, MESSAGE_SIZE = 256 * 1024, BYTES_SIZE = 1024 * 1024;

us_proxy_def us_proxy_def_default(void) {
    return (us_proxy_def){
        .allocator = us_allocator_default(), .enable_motor_servers = true, .motor_address = "127.0.0.1"};
}

// ---------------------------------------------------------------- create and destroy

// Memory for what goes into one robot's firmware and comes out of it.
static us_status make_scratch(us_proxy *p) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_firmware *fw = &p->robot[i].model->firmware;
        if (p->n_reading < fw->n_joint) p->n_reading = fw->n_joint;
        if (p->n_output < fw->n_drive) p->n_output = fw->n_drive;
        if (p->n_value < p->robot[i].model->interface_.n_value)
            p->n_value = p->robot[i].model->interface_.n_value;
    }
    p->readings = usi_arena_alloc(&p->arena, (2 * (size_t)p->n_reading + 1) * sizeof *p->readings, 8);
    p->output = usi_arena_alloc(&p->arena, ((size_t)p->n_output + 1) * sizeof *p->output, 8);
    // A message may name a drive several times.
    p->n_commands = 4 * p->n_output;
    p->commands = usi_arena_alloc(&p->arena, ((size_t)p->n_commands + 1) * sizeof *p->commands, 8);
    if (p->n_value < US_SENSOR_MAX_MEMBER + 8) p->n_value = US_SENSOR_MAX_MEMBER + 8;
    p->values = usi_arena_alloc(&p->arena, ((size_t)p->n_value + 1) * sizeof *p->values, 8);
    return p->readings && p->output && p->commands && p->values ? US_OK : US_ERR_MEMORY;
}

us_status us_proxy_create(const us_model *model, const us_proxy_def *def, us_proxy **out_proxy,
                          us_error *err) {
    if (!model || !out_proxy)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a model and a place for the proxy",
                            "us_proxy_create: an argument is NULL");
    return usi_proxy_create_part(model, def, &(usi_proxy_part){0, model->n_robot, false}, out_proxy, err);
}

us_status usi_proxy_create_part(const us_model *model, const us_proxy_def *def, const usi_proxy_part *part,
                                us_proxy **out_proxy, us_error *err) {
    us_proxy_def d = def ? *def : us_proxy_def_default();
    us_proxy *p = usi_alloc(&d.allocator, sizeof *p, _Alignof(us_proxy));
    if (!p)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory",
                            "no memory left for the robots' network");
    memset(p, 0, sizeof *p);
    p->allocator = d.allocator;
    p->def = d;
    p->model = model;
    p->step = us_model_get_step(model);
    p->seed = model->seed;
    p->clock_rate = part->is_added ? 0 : model->clock_rate;
    p->first_robot = part->first;
    p->n_robot = part->n;
    p->is_part = part->is_added;
    p->owes_all = true;
    atomic_init(&p->owes_tap, false);
    usi_arena_init(&p->arena, &p->allocator);
    usi_arena_init(&p->bound, &p->allocator);
    p->n_decoded = DECODED_SIZE;
    const size_t points = usi_lidar_sample_size(p->model), picture = usi_cameras_sample_size(p->model),
                 frame = points > picture ? points : picture, own = usi_interface_sample_size(p->model);
    p->n_message = MESSAGE_SIZE + frame;
    p->n_byte = BYTES_SIZE + (frame > own ? frame : own);
    p->mails = usi_arena_alloc(&p->arena, USI_MAILBOX_SIZE, 64);
    p->decoded = usi_arena_alloc(&p->arena, DECODED_SIZE, 64);
    p->message = usi_arena_alloc(&p->arena, p->n_message, 64);
    p->bytes = usi_arena_alloc(&p->arena, p->n_byte, 64);
    us_status status = p->mails && p->decoded && p->message && p->bytes ? US_OK : US_ERR_MEMORY;
    if (!status) status = usi_cameras_create(p->model, &p->allocator, &p->cameras, err);
    if (!status) status = usi_robots_make(p);
    if (!status) status = make_scratch(p);
    if (!status) status = usi_robots_equip(p);
    if (!status) status = usi_channels_make(p);
    if (status == US_ERR_MEMORY)
        us_error_set(err, status, NULL, "free memory", "no memory left for the robots' network");
    if (status) {
        us_proxy_destroy(p);
        return status;
    }
    *out_proxy = p;
    return US_OK;
}

void us_proxy_destroy(us_proxy *p) {
    if (!p) return;
    // First nothing comes in any more, then all that waits goes out, then the writers go.
    if (!p->robot) p->n_robot = 0;
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_faces_destroy(p->robot[i].faces);
        usi_motor_server_destroy(p->robot[i].motors);
        for (int k = 0; k < USI_COMMAND_COUNT; k++) {
            if (p->robot[i].reader[k]) us_reader_remove(p->robot[i].reader[k]);
        }
        for (int k = 0; k < USI_COMMAND_SOURCES; k++) {
            if (p->robot[i].own_reader[k]) us_reader_remove(p->robot[i].own_reader[k]);
        }
        usi_interface_disconnect(&p->robot[i]);
        for (int k = 0; k < USI_SERVICE_COUNT; k++)
            usi_service_deafen(p->robot[i].service[k]);
    }
    us_gate_close(p->gate);
    usi_cameras_destroy(p->cameras);
    usi_outbox_destroy(p->outbox);
    for (int32_t i = 0; i < p->n_robot; i++) {
        const usi_robot *r = &p->robot[i];
        for (int32_t k = 0; r->outlet && k < r->n_outlet; k++) {
            if (r->outlet[k].writer && !r->outlet[k].is_shared) us_writer_remove(r->outlet[k].writer);
        }
        usi_node_close(r->node);
        us_interface_release(r->types);
        for (int k = 0; k < USI_SERVICE_COUNT; k++)
            us_service_remove(r->service[k]);
        if (p->robot[i].mailbox) {
            usi_mailbox_fini(p->robot[i].mailbox);
            usi_release(&p->allocator, p->robot[i].mailbox, sizeof(usi_mailbox), _Alignof(usi_mailbox));
        }
    }
    if (p->clock) us_writer_remove(p->clock);
    for (int32_t i = 0; i < p->n_robot && p->bus; i++)
        usi_bus_remove_node(p->bus, p->robot[i].node_number);
    us_allocator a = p->allocator;
    usi_arena_fini(&p->bound);
    usi_arena_fini(&p->arena);
    usi_release(&a, p, sizeof *p, _Alignof(us_proxy));
}

// ---------------------------------------------------------------- settings

void usi_proxy_set_ghost(us_proxy *p, int32_t robot) { p->robot[robot].is_ghost = true; }
void usi_proxy_mute_clock(us_proxy *p) { p->is_clock_off = true; }

void usi_proxy_set_record_tap(us_proxy *p, const usi_record_tap *tap) {
    p->record = tap ? *tap : (usi_record_tap){0};
    // One that begins in the middle lacks the latched samples of before.
    if (tap) p->owes_record = true;
}
