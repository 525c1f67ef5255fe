// Inputs by calls: what a program sets in a sim between two steps, as numbers that can be recorded and
// applied again.
//
// A tap gets every input that was accepted. What plug-ins set within a step follows from the state and is not
// reported.
#include <stddef.h>
#include <string.h>

#include "sim/sim__sensors.h"
#include "understudy/sensing.h"

static const char *const NAMES[USI_INPUT_COUNT] = {
#define INPUT_NAME(kind, name) [kind] = (name),
    USI_INPUT_LIST(INPUT_NAME)
#undef INPUT_NAME
};

const char *usi_input_name(usi_input_kind kind) { return NAMES[kind]; }

bool usi_input_find(const char *name, usi_input_kind *out_kind) {
    for (int i = 0; i < USI_INPUT_COUNT; i++) {
        if (strcmp(NAMES[i], name) != 0) continue;
        *out_kind = (usi_input_kind)i;
        return true;
    }
    return false;
}

void usi_sim_set_input_tap(us_sim *s, usi_input_tap *tap, void *context) {
    s->input_tap = tap;
    s->input_context = context;
}

void usi_report_input(const us_sim *s, const usi_input *input) {
    if (s->input_tap && !s->is_stepping && !s->is_trial) s->input_tap(s->input_context, input);
}

enum { SOIL_NUMBERS = offsetof(us_soil, lateral) / sizeof(double) };

void usi_report_soil(const us_sim *s, int32_t material, const us_soil *soil) {
    double number[SOIL_NUMBERS];
    memcpy(number, soil, sizeof number);
    usi_report_input(s, &(usi_input){USI_INPUT_SOIL, material, (int32_t)soil->lateral, SOIL_NUMBERS, number});
}

static us_status apply_soil(us_sim *s, const usi_input *in) {
    us_soil soil = {.lateral = (us_soil_lateral)in->other};
    if (in->n != SOIL_NUMBERS) return US_ERR_ARG;
    memcpy(&soil, in->number, SOIL_NUMBERS * sizeof(double));
    return us_sim_set_soil(s, (us_material){in->index}, &soil, NULL);
}

static us_status apply_pair(us_sim *s, const usi_input *in) {
    us_pair_values values;
    if (in->n != (int32_t)(sizeof values / sizeof(double))) return US_ERR_ARG;
    memcpy(&values, in->number, sizeof values);
    return us_sim_set_pair(s, (us_material){in->index}, (us_material){in->other}, &values);
}

static us_status apply_pair_model(us_sim *s, const usi_input *in) {
    const us_model *m = s->model;
    if (in->n != 1 || !(in->number[0] >= USI_MODEL_SOIL - m->n_soil_law && in->number[0] < m->n_interaction))
        return US_ERR_ARG;
    return us_sim_set_pair_model(s, (us_material){in->index}, (us_material){in->other},
                                 usi_pair_model_name(m, (int32_t)in->number[0]));
}

void usi_report_joint(const us_sim *s, us_joint joint, const double *q, const double *v) {
    const usi_joint *j = &s->model->joint[joint.i];
    double number[13];  // of a floating joint, which has most
    int32_t n = 0;
    for (int32_t i = 0; q && i < j->n_q; i++)
        number[n++] = q[i];
    for (int32_t i = 0; v && i < j->n_v; i++)
        number[n++] = v[i];
    usi_report_input(s, &(usi_input){USI_INPUT_JOINT, joint.i, (q ? 1 : 0) + (v ? 2 : 0), n, number});
}

static us_status apply_joint(us_sim *s, const usi_input *in) {
    if (in->index < 0 || in->index >= s->model->n_joint) return US_ERR_ARG;
    const usi_joint *j = &s->model->joint[in->index];
    const bool has_q = in->other & 1, has_v = in->other & 2;
    if (in->n != (has_q ? j->n_q : 0) + (has_v ? j->n_v : 0)) return US_ERR_ARG;
    const double *v = in->number + (has_q ? j->n_q : 0);
    return us_sim_set_joint(s, (us_joint){in->index}, has_q ? in->number : NULL, has_v ? v : NULL);
}

us_status usi_sim_apply_input(us_sim *s, const usi_input *in) {
    const double *x = in->number;
    switch (in->kind) {
    case USI_INPUT_DRIVE:
        return in->n == 2 ? us_sim_set_drive(s, (us_drive){in->index}, x[0], x[1]) : US_ERR_ARG;
    case USI_INPUT_TORQUE:
        return in->n == 1 ? us_sim_set_drive_torque(s, (us_drive){in->index}, x[0]) : US_ERR_ARG;
    case USI_INPUT_WRENCH:
        if (in->n != 6) return US_ERR_ARG;
        return us_sim_apply_wrench(s, (us_body){in->index},
                                   (us_wrench){{x[0], x[1], x[2]}, {x[3], x[4], x[5]}});
    case USI_INPUT_STRENGTH:
        return in->n == 1 ? us_sim_set_drive_strength(s, (us_drive){in->index}, x[0]) : US_ERR_ARG;
    case USI_INPUT_BLOCKAGE:
        return in->n == 1 ? us_sim_set_blockage(s, (us_joint){in->index}, x[0]) : US_ERR_ARG;
    case USI_INPUT_BATTERY:
        return in->n == 1 ? us_sim_set_battery(s, (us_battery){in->index}, x[0]) : US_ERR_ARG;
    case USI_INPUT_JOINT:
        return apply_joint(s, in);
    case USI_INPUT_PAIR:
        return apply_pair(s, in);
    case USI_INPUT_PAIR_MODEL:
        return apply_pair_model(s, in);
    case USI_INPUT_SOIL:
        return apply_soil(s, in);
    case USI_INPUT_REGION:
        return us_sim_set_region(s, in->index, (us_material){in->other});
    case USI_INPUT_HOLD:
        return usi_sim_set_hold(s, in->index, in->other);
    case USI_INPUT_SENSOR:
    case USI_INPUT_SENSOR_FAULT:
    case USI_INPUT_SENSOR_ERROR:
        return usi_sim_apply_sensor_input(s, in);
    case USI_INPUT_LIDAR_HOLD:
        return us_sim_hold_lidar(s, (us_lidar){in->index}, in->other != 0);
    default:
        return US_ERR_ARG;
    }
}
