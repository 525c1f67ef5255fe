// Topics of an <interface> that command the robot: from their rows to conditions and values.
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "model/model__interface.h"

static const char *const actions[USI_ACTION_COUNT] = {"velocity", "stop",   "go",  "drive",
                                                      "turn",     "joints", "none"};
static const char *const action_values[USI_ACTION_COUNT][USI_COMMAND_VALUES] = {
    {"x", "y", "turn"},
    {NULL},
    {"x", "y", "speed", "tolerance"},
    {"distance", "curvature", "speed"},
    {"angle", "speed"},
    {NULL},
    {NULL}};
static const char *const joint_values[USI_JOINT_VALUES] = {"joint.position", "joint.velocity", "joint.torque",
                                                           "joint.kp", "joint.kd"};

static us_status add_take(usi_linker *k, const us_binding *b, const usi_member *m, usi_take take) {
    us_status status = usi_link_row(k, b, m);
    if (!status) k->take[k->n++] = take;
    return status;
}

static us_status get_joints(usi_linker *k, const us_binding *b, const us_message_type *type, usi_take take) {
    usi_joint_list list;
    take.use = USI_TAKE_JOINT;
    while (take.index < USI_JOINT_VALUES && strcmp(joint_values[take.index], b->value) != 0)
        take.index++;
    if (take.index == USI_JOINT_VALUES) {
        us_error why = {0};
        usi_fail_unknown("value of joints", b->value, joint_values, USI_JOINT_VALUES, &why);
        return usi_link_fail(k, b, US_ERR_NAME, why.remedy, "%.200s", why.message);
    }
    us_status status = usi_link_joints(k, b, true, &list);
    for (int32_t i = 0; i < list.n && !status; i++) {
        usi_member m = {0};
        usi_take own = take;
        if (list.joint[i] < 0) continue;
        own.drive = k->r->firmware.joint[list.joint[i]].drive;
        // Gains have no sign.
        if (take.index <= USI_JOINT_TORQUE) own.scale *= list.sign[i];
        if (b->member) {
            status = usi_link_element(k, b, type, i, &m);
            if (!status) status = usi_link_check_kind(k, b, &m, false);
        } else if (take.index <= USI_JOINT_TORQUE) {
            own.number *= list.sign[i];
        }
        if (!status) status = add_take(k, b, &m, own);
    }
    return status;
}

static us_status get_value(usi_linker *k, const us_binding *b, usi_action action, const us_message_type *type,
                           usi_take take) {
    usi_member m = {0};
    const char *const *names = action_values[action];
    int32_t n = 0;
    while (n < USI_COMMAND_VALUES && names[n])
        n++;
    if (action == USI_ACTION_JOINTS) return get_joints(k, b, type, take);
    if (n == 0)
        return usi_link_fail(k, b, US_ERR_NAME, "leave it out", "\"%s\" has no values", actions[action]);
    while (take.index < n && strcmp(names[take.index], b->value) != 0)
        take.index++;
    if (take.index == n) {
        us_error why = {0};
        usi_fail_unknown("value of the command", b->value, names, n, &why);
        return usi_link_fail(k, b, US_ERR_NAME, why.remedy, "%.200s", why.message);
    }
    take.use = USI_TAKE_VALUE;
    us_status status = b->member ? usi_link_member(k, b, type, -1, &m) : US_OK;
    if (!status && b->member && usi_member_is_whole(&m))
        return usi_link_fail(k, b, US_ERR_VALUE, "write an index", "it is more than one number");
    if (!status && b->member) status = usi_link_check_kind(k, b, &m, false);
    return status ? status : add_take(k, b, &m, take);
}

static us_status get_condition(usi_linker *k, const us_binding *b, const us_message_type *type,
                               usi_take take) {
    usi_member m;
    us_status status = usi_link_member(k, b, type, -1, &m);
    if (!status && usi_member_is_whole(&m))
        return usi_link_fail(k, b, US_ERR_VALUE, "write an index", "it is more than one value");
    // A number may be a text that looks like one.
    char number[40];
    snprintf(number, sizeof number, "%.17g", b->number);
    if (!status && m.leaf->kind == USI_KIND_STRING && !b->text) {
        bool ok = true;
        take.text = usi_arena_text(k->arena, number, &ok);
        if (!ok) return US_ERR_MEMORY;
    } else if (!status) {
        status = usi_link_check_kind(k, b, &m, b->text != NULL);
    }
    return status ? status : add_take(k, b, &m, take);
}

// Rows with members first: the others have no place in the sample.
static int32_t part_rows(usi_linker *k) {
    int32_t n = 0;
    for (int32_t i = 0; i < k->n; i++) {
        if (k->take[i].is_constant) continue;
        const usi_member m = k->member[i];
        const usi_take t = k->take[i];
        k->member[i] = k->member[n];
        k->take[i] = k->take[n];
        k->member[n] = m;
        k->take[n++] = t;
    }
    return n;
}

static us_status link_command(usi_linker *k, int32_t i, int32_t own, const us_message_type *type,
                              usi_action *out) {
    const us_network_def *d = k->r->network;
    int32_t action = 0;
    while (action < USI_ACTION_COUNT && strcmp(actions[action], d->commands[i].action) != 0)
        action++;
    if (action == USI_ACTION_COUNT) return US_ERR_NAME;
    *out = (usi_action)action;
    us_status status = US_OK;
    for (int32_t row = 0; row < d->n_binding && !status; row++) {
        const us_binding *b = &d->bindings[row];
        if (b->command != i) continue;
        const usi_take take = {.use = USI_TAKE_WHEN,
                               .command = own,
                               .scale = b->scale,
                               .offset = b->offset,
                               .number = b->number,
                               .text = b->text,
                               .is_constant = !b->member};
        status =
            b->use == US_BINDING_WHEN ? get_condition(k, b, type, take) : get_value(k, b, *out, type, take);
    }
    return status;
}

// Whom the samples of an inlet are for: conditions of no command.
static us_status link_address(usi_linker *k, int32_t inlet, const us_message_type *type) {
    const us_network_def *d = k->r->network;
    us_status status = US_OK;
    for (int32_t row = 0; row < d->n_binding && !status; row++) {
        const us_binding *b = &d->bindings[row];
        const usi_take take = {
            .use = USI_TAKE_WHEN, .command = -1, .scale = 1, .number = b->number, .text = b->text};
        if (b->use == US_BINDING_WHEN && b->command < 0 && b->endpoint == inlet)
            status = get_condition(k, b, type, take);
    }
    return status;
}

static us_status link_copies(usi_linker *k, int32_t inlet, usi_inlet *out) {
    const us_network_def *d = k->r->network;
    us_status status = US_OK;
    for (int32_t row = 0; row < d->n_binding && !status; row++) {
        us_binding b = d->bindings[row];
        const us_endpoint_def *e = &d->endpoints[b.endpoint];
        usi_member m;
        if (!b.copy || e->use < US_ENDPOINT_TAKEN || e->of != inlet) continue;
        b.member = b.copy;
        status = usi_link_member(k, &b, out->type, -1, &m);
        if (!status && (usi_member_is_whole(&m) || m.leaf->kind == USI_KIND_MESSAGE))
            return usi_link_fail(k, &b, US_ERR_VALUE, "copy single numbers and texts",
                                 "it is more than one value");
        if (out->n_copy == USI_COPIES)
            return usi_link_fail(k, &b, US_ERR_LIMIT, "copy fewer", "more than %d copies", USI_COPIES);
        if (!status)
            status =
                add_take(k, &b, &m,
                         (usi_take){.use = USI_TAKE_COPY, .command = -1, .index = out->n_copy++, .scale = 1});
    }
    return status;
}

us_status usi_link_inlet(usi_linker *k, int32_t i, usi_inlet *out) {
    const us_network_def *d = k->r->network;
    const us_endpoint_def *e = &d->endpoints[i];
    const void *take = NULL;
    k->n = 0;
    *out = (usi_inlet){.def = e, .answer = {-1, -1, -1, -1}};
    us_status status = usi_link_type(k, e, &out->type, &out->topic);
    usi_action *action = USI_LINK_TAKE(k->arena, d->n_command, usi_action);
    if (!action) return US_ERR_MEMORY;
    for (int32_t c = 0; c < d->n_command && !status; c++) {
        if (d->commands[c].endpoint == i)
            status = link_command(k, c, out->n_command, out->type, &action[out->n_command]);
        out->n_command += d->commands[c].endpoint == i;
    }
    if (!status) status = link_address(k, i, out->type);
    if (!status) status = link_copies(k, i, out);
    if (status) return status;
    out->n_member = part_rows(k);
    status = usi_link_sort(k, out->type, e, out->n_member, true);
    if (!status) status = usi_link_keep(k, out->n_member, &out->member, sizeof *k->take, k->take, &take);
    out->n = k->n;
    out->take = take;
    out->action = action;
    return status;
}
