// Laws of soil of somebody else: what they are told, and whether their answer can be used.
#include <string.h>

#include "contact/contact__soil.h"

void usi_carry_law_state(const usi_contacts *c, const usi_contact_state *now, usi_contact_state *next) {
    const size_t n = (size_t)c->model->n_law_state;
    for (int32_t i = 0; i < c->collide.n_point; i++) {
        const int32_t old = c->collide.point[i].old;
        double *to = next->law_state + (size_t)i * n;
        if (old >= 0)
            memcpy(to, now->law_state + (size_t)old * n, n * sizeof *to);
        else
            memset(to, 0, n * sizeof *to);
    }
}

static bool is_usable(double x) { return x >= 0 && x <= 1e300; }

static bool is_answer_usable(const us_soil_answer *a) {
    const double positive[] = {a->stiffness, a->drag[0], a->drag[1], a->hold},
                 rest[] = {a->damping, a->friction, a->torsion, a->rolling};
    bool ok = isfinite(a->force.x) && isfinite(a->force.y) && isfinite(a->force.z) && isfinite(a->moment);
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        ok = ok && is_usable(positive[i]) && positive[i] > 0;
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        ok = ok && is_usable(rest[i]);
    return ok;
}

bool usi_soil_ask(const usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                  const usi_soil_contact *k, const us_soil *soil, const us_touch *seen,
                  double normal_velocity, us_soil_answer *a) {
    const us_model *m = c->model;
    const us_soil_law *law = &m->soil_law[USI_MODEL_SOIL - 1 - usi_soil_model(c, k)];
    const int32_t other = m->geom[k->geom].material, entry = k->material * m->n_material + other,
                  row = m->pair[entry].parameter, old = c->collide.point[k->point].old;
    us_soil_touch touch = {.step = m->step,
                           .is_wheel = k->is_wheel,
                           .history = k->load,
                           .radius = k->radius,
                           .area = k->area,
                           .sinkage = k->sinkage,
                           .sinking = -normal_velocity,
                           .motion = k->is_wheel ? k->blend : 0,
                           .mass = seen->mass,
                           .place = usi_v4_vec3(c->collide.point[k->point].p),
                           .soil = soil,
                           .material_soil = m->material[k->material].name,
                           .material_body = m->material[other].name,
                           .values = &next->pair[entry],
                           .parameters = row >= 0 ? m->pair_row[row].parameters : NULL,
                           .n_parameter = row >= 0 ? m->pair_row[row].n_parameter : 0};
    if (k->is_wheel) {
        touch.wheel = k->wheel;
        touch.vx = k->vx;
        touch.vy = k->vy;
        touch.spin = k->spin;
    } else {
        touch.history.gravity = us_vec3_norm(m->gravity);
    }
    if (old >= 0) {
        // What is kept is the impulse on the ground, which stands still; the normal is from B to A.
        const us_vec3 g = now->anchor[old].g, n = now->anchor[old].normal;
        touch.carried = fmax(us_vec3_dot(g, n) / m->step, 0);
    }
    // Rows may be made more than once in a step: each time from the state that it began with.
    double state[US_SOIL_LAW_STATE] = {0};
    const size_t n = (size_t)m->n_law_state, bytes = (size_t)law->n_state * sizeof *state;
    if (old >= 0 && bytes > 0) memcpy(state, now->law_state + (size_t)old * n, bytes);
    if (!law->act(&touch, state, a, law->user) || !is_answer_usable(a)) return false;
    a->force.z = fmax(a->force.z, 0);
    for (int32_t i = 0; i < law->n_state; i++) {
        if (!isfinite(state[i])) return false;
    }
    if (bytes > 0) memcpy(next->law_state + (size_t)k->point * n, state, bytes);
    return true;
}

bool usi_soil_ask_foot(const usi_contacts *c, const usi_contact_state *now, usi_contact_state *next,
                       usi_soil_contact *k, const us_soil *soil, const us_touch *seen, double normal_velocity,
                       us_touch_law *law) {
    us_soil_answer a = {.force = us_vec3_make(0, 0, k->force),
                        .stiffness = law->stiffness,
                        .damping = law->damping,
                        .drag = {1, 1},
                        .friction = law->static_friction,
                        .hold = law->tangent_stiffness,
                        .rolling = law->rolling};
    a.torsion = a.friction > 0 ? law->torsion / a.friction : 0;
    if (!usi_soil_ask(c, now, next, k, soil, seen, normal_velocity, &a)) return false;
    k->force = a.force.z;
    k->stiffness = a.stiffness;
    *law = (us_touch_law){.force = a.force.z - a.damping * normal_velocity,
                          .stiffness = a.stiffness,
                          .damping = a.damping,
                          .tangent_stiffness = a.hold,
                          .tangent_damping = 2 * sqrt(a.hold * seen->mass),
                          .static_friction = a.friction,
                          .kinetic_friction = a.friction,
                          .torsion = a.torsion * a.friction,
                          .rolling = a.rolling};
    return true;
}
