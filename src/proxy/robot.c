// The robots of a model in the proxy: where their states stand, and what they have on the outside.
#include "proxy/proxy__robot.h"

#include <stdio.h>
#include <string.h>

#include "sim/sim.h"

const us_message_type *usi_command_type(int32_t topic) {
    switch ((usi_command_topic)topic) {
    case USI_COMMAND_TWIST:
        return usi_type_twist;
    case USI_COMMAND_TWIST_STAMPED:
        return usi_type_twist_stamped;
    case USI_COMMAND_TRAJECTORY:
        return usi_type_joint_trajectory;
    case USI_COMMAND_JOINTS:
        return usi_type_float64_multi_array;
    case USI_COMMAND_MOTORS:
        return usi_type_motor_group_command;
    case USI_COMMAND_LOCOMOTOR:
        return usi_type_locomotor_command;
    case USI_COMMAND_POSE:
        return usi_type_pose_estimator_command;
    case USI_COMMAND_GAIT:
    case USI_COMMAND_MOTOR_TEXT:
        return usi_type_string;
    case USI_COMMAND_NAVIGATOR:
        return usi_type_navigator_command;
    case USI_COMMAND_ASK_MOTORS:
        return usi_type_motor_group_request;
    case USI_COMMAND_ASK_LOCOMOTOR:
        return usi_type_locomotor_request;
    case USI_COMMAND_ASK_POSE:
        return usi_type_pose_estimator_request;
    case USI_COMMAND_ASK_NAVIGATOR:
        return usi_type_navigator_request;
    case USI_COMMAND_ASK_PROPERTIES:
        return usi_type_properties_request;
    case USI_COMMAND_ASK_WAIT:
        return usi_type_wait_request;
    default:
        return NULL;
    }
}

// ---------------------------------------------------------------- state

static size_t align_up(size_t n) { return (n + 63) / 64 * 64; }

static void lay_out(usi_robot *r, size_t at) {
    size_t size = align_up(sizeof(usi_robot_state));
    r->state_at = at;
    r->scripts_at = size;
    size = align_up(size + (size_t)r->model->n_script * sizeof(usi_script_state));
    r->open_at = size;
    if (r->model->interface_.has_endings) size = align_up(size + sizeof(usi_open_command));
    r->firmware_at = size;
    size = align_up(size + r->model->firmware.state_size);
    r->uplink_size = usi_link_is_perfect(&r->model->network->uplink) ? USI_UPLINK_SPARE : USI_UPLINK_SIZE;
    r->uplink_at = size;
    size = align_up(size + r->uplink_size);
    r->state_size = size;
}

// ---------------------------------------------------------------- all

// Which values of the sim the conditions of scripted faults compare.
static us_status find_values(us_proxy *p, usi_robot *r) {
    const usi_robot_model *m = r->model;
    size_t bytes = ((size_t)m->n_script + 1) * sizeof *r->script_value;
    r->script_value = usi_arena_alloc(&p->bound, bytes, _Alignof(int32_t));
    if (!r->script_value) return US_ERR_MEMORY;
    for (int32_t i = 0; i < m->n_script; i++) {
        const usi_condition *c = &m->script[i].condition;
        for (int32_t k = 0; k < c->n_term; k++)
            r->script_value[i][k] = usi_find_value(p->model, c->term[k].name);
    }
    return US_OK;
}

us_status usi_robots_make(us_proxy *p) {
    p->robot = usi_arena_alloc(&p->arena, ((size_t)p->n_robot + 1) * sizeof *p->robot, _Alignof(usi_robot));
    if (!p->robot) return US_ERR_MEMORY;
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot *r = &p->robot[i];
        memset(r, 0, sizeof *r);
        r->proxy = p;
        r->index = i;
        r->number = p->first_robot + i;
        r->node_number = -1;
        r->model = &p->model->robot[r->number];
        r->name = r->model->name;
        lay_out(r, p->state_size);
        p->state_size += r->state_size;
    }
    us_status status = US_OK;
    for (int32_t i = 0; i < p->n_robot && !status; i++)
        status = find_values(p, &p->robot[i]);
    return status;
}

// The whole file when it is a URDF; NULL when it cannot be read or is none.
static const char *read_description(us_proxy *p, const char *path) {
    if (!path) return NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    const char *found = NULL;
    long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = length > 0 && length < 16 << 20 ? usi_arena_alloc(&p->arena, (size_t)length + 1, 1) : NULL;
    if (text && fseek(file, 0, SEEK_SET) == 0 && fread(text, 1, (size_t)length, file) == (size_t)length) {
        text[length] = 0;
        // A scene has its robots inside: only a file that is a robot describes one.
        if (strstr(text, "<robot") && !strstr(text, "<scene")) found = text;
    }
    fclose(file);
    return found;
}

us_status usi_robots_equip(us_proxy *p) {
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot *r = &p->robot[i];
        bool is_good = true;
        r->description = usi_description_name_frames(p, read_description(p, r->model->file),
                                                     r->model->network->frame_prefix);
        r->name = usi_arena_text(&p->arena, r->name, &is_good);
        r->mailbox = usi_alloc(&p->allocator, sizeof *r->mailbox, _Alignof(usi_mailbox));
        if (r->mailbox) usi_mailbox_init(r->mailbox);
        r->wait = usi_arena_alloc(&p->arena, USI_MAX_WAIT * sizeof *r->wait, _Alignof(usi_wait));
        if (!is_good || !r->mailbox || !r->wait) return US_ERR_MEMORY;
        memset(r->wait, 0, USI_MAX_WAIT * sizeof *r->wait);
        r->downlink.head = &r->downlink_head;
        r->downlink.cap = USI_UPLINK_SIZE * (usi_link_is_perfect(&r->model->network->downlink) ? 4 : 16);
        r->downlink.bytes = usi_arena_alloc(&p->arena, r->downlink.cap, 8);
        if (!r->downlink.bytes) return US_ERR_MEMORY;
    }
    return US_OK;
}
