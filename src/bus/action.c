// What servers and clients of actions share.
#include "bus/action.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

us_status usi_action_part(const char *name, const char *part, char out[USI_NAME_LENGTH], us_error *err) {
    // The longest of DDS's names: rq, the part's and Request.
    if (!name || name[0] != '/' || strlen(name) > USI_NAME_LENGTH - 40)
        return us_error_set(err, US_ERR_NAME, NULL, "Write a short absolute name, for example /k10/drive_to.",
                            "invalid name of an action \"%.200s\"", name ? name : "");
    snprintf(out, USI_NAME_LENGTH, "%.220s/_action/%s", name, part);
    return US_OK;
}

bool usi_action_has_types(const us_action_types *t) {
    return t->send_goal_request && t->send_goal_response && t->get_result_request && t->get_result_response &&
           t->feedback;
}

us_status us_action_types_find(const char *name, us_action_types *out_types, us_error *err) {
    return us_action_types_of(NULL, name, out_types, err);
}

us_status us_action_types_of(const us_interface *types, const char *name, us_action_types *out_types,
                             us_error *err) {
    if (!name || !out_types)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "an action's types need a name and a place");
    const struct {
        const char *part;
        const us_message_type **type;
    } rows[] = {{"SendGoal_Request", &out_types->send_goal_request},
                {"SendGoal_Response", &out_types->send_goal_response},
                {"GetResult_Request", &out_types->get_result_request},
                {"GetResult_Response", &out_types->get_result_response},
                {"FeedbackMessage", &out_types->feedback}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char full[USI_NAME_LENGTH];
        snprintf(full, sizeof full, "%.200s_%s", name, rows[i].part);
        *rows[i].type = types ? us_interface_find(types, full) : us_message_find(full);
        if (!*rows[i].type)
            return us_error_set(
                err, US_ERR_NAME, NULL,
                "Write the name of a known action, as simulation_interfaces/action/SimulateSteps.",
                "unknown action type \"%.200s\": there is no %s", name, full);
    }
    return US_OK;
}

us_goal_id usi_goal_get(const void *bytes) {
    us_goal_id id;
    memcpy(id.bytes, (const uint8_t *)bytes + USI_GOAL_AT, sizeof id.bytes);
    return id;
}

void usi_goal_put(void *bytes, us_goal_id id) {
    memcpy((uint8_t *)bytes + USI_GOAL_AT, id.bytes, sizeof id.bytes);
}

int64_t usi_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
