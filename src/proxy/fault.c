// Faults of drives: what they have lost, and how a robot tells of it.
#include "proxy/fault.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/robot.h"
#include "sim/sim.h"

// The drive of a joint, in the robot's own count; -1: it has none.
static int32_t drive_of(const usi_robot *r, const char *joint) {
    for (int32_t i = 0; i < r->n_joint; i++) {
        if (strcmp(r->joint[i].name, joint) == 0) return r->joint[i].drive;
    }
    return -1;
}

us_status usi_proxy_set_strength(us_proxy *p, us_sim *sim, const char *robot, const char *joint, double share, double *out_before, us_error *err) {
    int32_t index = us_proxy_find_robot(p, robot);
    if (index < 0 || !(share >= 0 && share <= 1))
        return us_error_set(err, US_ERR_NAME, NULL, "name a robot that is on the network", "there is no robot \"%.100s\" with a network interface",
                            robot);
    const usi_robot *r = &p->robot[index];
    int32_t k = drive_of(r, joint);
    char *state = usi_sim_part(sim, 0);
    if (k < 0 || !state)
        return us_error_set(err, US_ERR_NAME, NULL, "name a joint with a drive; \"understudy info\" lists them", "\"%.100s/%.100s\" has no drive",
                            robot, joint);
    if (share > 0 && share < 1 && !isfinite(p->model->drive[r->drive[k].index].limit))
        return us_error_set(err, US_ERR_VALUE, NULL, "give the drive a limit in the scene, or write dead",
                            "the drive of \"%.100s/%.100s\" has no limit of which a part could be left", robot, joint);
    usi_robot_state *s = (usi_robot_state *)(void *)(state + r->state_at);
    if (out_before) *out_before = 1 - usi_drives_of(r, s)[k].lost;
    usi_drives_of(r, s)[k].lost = 1 - share;
    return US_OK;
}

int32_t usi_robot_list_faults(const usi_robot *r, const usi_robot_state *s, char *out, size_t cap) {
    const usi_drive_state *d = usi_view_drives(r, s);
    int32_t n = 0;
    size_t at = 0;
    out[0] = 0;
    for (int32_t k = 0; k < r->n_drive; k++) {
        int32_t joint = us_spec_view_drive(r->proxy->spec, r->drive[k].index)->joint;
        double blockage = us_spec_view_joint(r->proxy->spec, joint)->blockage;
        if (d[k].lost == 0 && blockage == 0) continue;
        char text[160];
        const char *name = r->joint[r->drive[k].joint].name;
        if (blockage > 0) {
            snprintf(text, sizeof text, "%.100s blocked by %.4g", name, blockage);
        } else if (d[k].lost >= 1) {
            snprintf(text, sizeof text, "%.100s dead", name);
        } else {
            snprintf(text, sizeof text, "%.100s weak, %.4g of its strength", name, 1 - d[k].lost);
        }
        n++;
        size_t length = strlen(text) + 2;
        if (at + length >= cap) continue;
        snprintf(out + at, cap - at, "%s%s", at > 0 ? "; " : "", text);
        at = strlen(out);
    }
    return n;
}
