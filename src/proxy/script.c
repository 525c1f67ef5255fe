// Faults that a scene has in store: when each of them comes, and when it goes.
//
// Which have come is part of the robot's state, and what decides is the state alone: a world that goes the
// same way has the same faults at the same ticks. Carrying them out is the world's, for some of them change
// the model.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proxy/fault.h"
#include "proxy/proxy__robot.h"
#include "sim/sim.h"

// ---------------------------------------------------------------- conditions

static double own_value(const usi_robot *r, const us_sim *sim, const usi_robot_state *s,
                        usi_own_value value) {
    const usi_firmware_state *f = usi_view_firmware(r, s);
    switch (value) {
    case USI_OWN_ODOM_X:
        return f->odom[0];
    case USI_OWN_ODOM_Y:
        return f->odom[1];
    case USI_OWN_ODOM_YAW:
        return f->odom[2];
    case USI_OWN_SPEED:
        return hypot(f->odom_v[0], f->odom_v[1]);
    case USI_OWN_BATTERY:
        return usi_robot_charge(r, sim);
    default:
        return NAN;
    }
}

static bool holds(const usi_robot *r, us_sim *sim, const usi_robot_state *s, int32_t script) {
    const usi_script *x = &r->model->script[script];
    const int32_t *id = r->script_value[script];
    for (int32_t i = 0; i < x->condition.n_term; i++) {
        const usi_term *t = &x->condition.term[i];
        double value = t->own == USI_OWN_NONE ? us_sim_get_value(sim, id[i]) : own_value(r, sim, s, t->own);
        bool is_so = t->compare == USI_LESS         ? value < t->value
                     : t->compare == USI_LESS_EQUAL ? value <= t->value
                     : t->compare == USI_MORE       ? value > t->value
                                                    : value >= t->value;
        if (!is_so) return false;
    }
    return true;
}

// ---------------------------------------------------------------- what is due

static bool is_due(const usi_robot *r, us_sim *sim, const usi_robot_state *s, int32_t i) {
    const usi_script *x = &r->model->script[i];
    const usi_script_state *all = usi_view_scripts(r, s);
    if (all[i].fired != 0 || (x->after >= 0 && all[x->after].fired == 0)) return false;
    int64_t since = x->after >= 0 ? all[x->after].fired - 1 : 0;
    return us_sim_get_tick(sim) >= since + x->at && holds(r, sim, s, i);
}

// Names with blanks go in quotes.
static void write_command(const usi_robot *r, const char *what, char *out, size_t cap) {
    bool is_plain = r->name[0] && !strpbrk(r->name, " \t");
    snprintf(out, cap, is_plain ? "fault %s %s" : "fault \"%s\" %s", r->name, what);
}

// For a change of what is known about a fault.
static usi_script_state *note(const usi_robot *r, us_sim *sim, int32_t i) {
    return &usi_scripts_of(r, usi_take_state(r, sim))[i];
}

bool usi_proxy_next_script(us_proxy *p, us_sim *sim, char *out, size_t cap) {
    int64_t tick = us_sim_get_tick(sim);
    for (int32_t k = 0; k < p->n_robot; k++) {
        const usi_robot *r = &p->robot[k];
        const usi_robot_state *s = r->model->n_script > 0 ? usi_view_state(r, sim) : NULL;
        const usi_script_state *all = s ? usi_view_scripts(r, s) : NULL;
        for (int32_t i = 0; all && i < r->model->n_script; i++) {
            const usi_script *x = &r->model->script[i];
            if (is_due(r, sim, s, i)) {
                note(r, sim, i)->fired = tick + 1;
                write_command(r, x->def->what, out, cap);
                return true;
            }
            if (x->duration > 0 && all[i].fired != 0 && all[i].undone == 0 &&
                tick >= all[i].fired - 1 + x->duration) {
                note(r, sim, i)->undone = tick + 1;
                write_command(r, x->undo, out, cap);
                return true;
            }
        }
    }
    return false;
}

// ---------------------------------------------------------------- for those who look

const us_fault_def *usi_proxy_script(const us_proxy *p, int32_t robot, int32_t i) {
    bool is_good = robot >= 0 && robot < p->n_robot && i >= 0 && i < p->robot[robot].model->n_script;
    return is_good ? p->robot[robot].model->script[i].def : NULL;
}

int32_t usi_proxy_script_state(const us_proxy *p, const us_sim *sim, int32_t robot, int32_t i) {
    const usi_robot_state *s = usi_proxy_script(p, robot, i) ? usi_view_state(&p->robot[robot], sim) : NULL;
    if (!s) return 0;
    const usi_script_state *x = &usi_view_scripts(&p->robot[robot], s)[i];
    return x->undone != 0 ? 2 : x->fired != 0 ? 1 : 0;
}
