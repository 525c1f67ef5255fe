// Forces at the nodes of the patch under what is in soil: those of the last step, shared out when they are
// asked for.
//
//         hub          A wheel's arc from entry to exit in strips. A strip's share of the normal force is
//         that
//        / | \         of the normal stress (Wong and Reece), towards the hub; of the shear the same share,
//    exit  |  entry    along the rim. What resultants of stresses in strips leave of the contact's force is
//     \_o_o_o_o/       spread over them alike.
#include <math.h>

#include "contact/soil.h"
#include "sim/sim.h"

enum { ARC_NODES = 24, FOOT_NODES = 1024 };

static const usi_soil_contact *contact_at(const us_sim *s, int32_t i) {
    return i >= 0 && i < us_sim_n_soil_contact(s) ? &s->contacts->collide.soil_contact[i] : NULL;
}

static bool has_arc(const usi_soil_contact *k) {
    return k->reaction.parts.entry > k->reaction.parts.exit && k->sinkage > 0;
}

int32_t us_sim_n_soil_node(const us_sim *s, int32_t contact) {
    const usi_soil_contact *k = contact_at(s, contact);
    if (!k) return 0;
    if (k->is_node) return 1;
    if (k->is_wheel) return has_arc(k) ? ARC_NODES : 1;
    const int32_t n = usi_foot_columns(s, k, NULL, 0);
    return n < 1 ? 1 : n > FOOT_NODES ? FOOT_NODES : n;
}

// The normal stress at an angle of the rim over that at its peak.
static double stress_at(const us_wheel_force *f, double n, double angle) {
    double front = angle;
    if (angle < f->peak)
        front = f->entry - (angle - f->exit) / fmax(f->peak - f->exit, 1e-9) * (f->entry - f->peak);
    const double drop = cos(f->peak) - cos(f->entry), here = cos(front) - cos(f->entry);
    return drop > 0 && here > 0 ? pow(here / drop, n) : 0;
}

// Of node i of a wheel's arc: its angle, and its share of the stress.
static double share_of(const usi_soil_contact *k, double n, int32_t i, double *out_angle) {
    const us_wheel_force *f = &k->reaction.parts;
    const double step = (f->entry - f->exit) / ARC_NODES;
    double all = 0, own = 0;
    for (int32_t j = 0; j < ARC_NODES; j++) {
        const double stress = stress_at(f, n, f->exit + (j + 0.5) * step);
        all += stress;
        if (j == i) own = stress;
    }
    *out_angle = f->exit + (i + 0.5) * step;
    return all > 0 ? own / all : 1.0 / ARC_NODES;
}

// Along the wheel, up: what a strip of unit normal force and one of unit shear push.
static void add_strip(double share, double angle, double normal, double shear, double *x, double *z) {
    *x += share * (shear * cos(angle) - normal * sin(angle));
    *z += share * (normal * cos(angle) + shear * sin(angle));
}

static us_soil_node arc_node(const us_sim *s, const usi_soil_contact *k, int32_t i) {
    const us_soil *soil = usi_soil_contact_soil(s->contacts, &s->now.contact, k);
    const double r = us_soil_wheel_radius(&k->wheel), shear = k->blend * k->reaction.moment.y / r;
    const us_wheel_force *f = &k->reaction.parts;
    // What is kept is the impulse on the ground, which stands still.
    const usi_v4 force = usi_v4_from(s->now.contact.anchor[k->point].g) * (-1 / s->model->step);
    const double fx = usi_v4_dot(force, k->ahead), fy = usi_v4_dot(force, k->left),
                 fz = usi_v4_dot(force, k->up);
    // The normal force that carries the load with this shear, and what is left.
    double unit_x = 0, unit_z = 0, shear_x = 0, shear_z = 0, angle, own_angle;
    for (int32_t j = 0; j < ARC_NODES; j++) {
        const double share = share_of(k, soil->n, j, &angle);
        add_strip(share, angle, 1, 0, &unit_x, &unit_z);
        add_strip(share, angle, 0, shear, &shear_x, &shear_z);
    }
    const double normal = unit_z > 0 ? (fz - shear_z) / unit_z : 0, rest_x = fx - normal * unit_x - shear_x,
                 rest_z = fz - normal * unit_z - shear_z, share = share_of(k, soil->n, i, &own_angle);
    double x = share * rest_x, z = share * rest_z;
    add_strip(share, own_angle, normal, shear, &x, &z);
    const usi_v4 place =
        k->hub + k->left * k->aside + k->ahead * (r * sin(own_angle)) - k->up * (r * cos(own_angle));
    return (us_soil_node){
        .place = usi_v4_vec3(place),
        .force = usi_v4_vec3(k->ahead * x + k->left * (share * fy) + k->up * z),
        .area = k->share * k->wheel.width * r * (f->entry - f->exit) / ARC_NODES,
    };
}

// Columns carry in proportion to the pressure k z^n, within the foot's own force.
static us_soil_node foot_node(const us_sim *s, const usi_soil_contact *k, us_vec3 force, int32_t i) {
    static const us_vec3 nowhere = {NAN, NAN, NAN};
    usi_foot_column column[FOOT_NODES];
    const int32_t found = usi_foot_columns(s, k, column, FOOT_NODES),
                  n = found < FOOT_NODES ? found : FOOT_NODES;
    if (i >= (n > 0 ? n : 1)) return (us_soil_node){nowhere, nowhere, NAN};
    if (n == 0)
        return (us_soil_node){usi_v4_vec3(s->contacts->collide.point[k->point].p_B), force,
                              k->radius > 0 ? 2 * 3.141592653589793 * k->radius * fmax(k->sinkage, 0)
                                            : k->area};
    const double exponent = usi_soil_contact_soil(s->contacts, &s->now.contact, k)->n,
                 spacing = s->patch[s->model->geom[k->ground].patch].spacing;
    double all = 0;
    for (int32_t j = 0; j < n; j++)
        all += pow(column[j].depth, exponent);
    const double share = all > 0 ? pow(column[i].depth, exponent) / all : 1.0 / n;
    const us_vec3 place = us_vec3_make(column[i].x, column[i].y, column[i].z);
    return (us_soil_node){us_pose_point(s->model->geom[k->ground].X_NG, place), us_vec3_scale(share, force),
                          spacing * spacing};
}

us_soil_node us_sim_get_soil_node(const us_sim *s, int32_t contact, int32_t node) {
    const usi_soil_contact *k = contact_at(s, contact);
    us_soil_node bad = {.area = NAN};
    bad.place = bad.force = us_vec3_make(NAN, NAN, NAN);
    if (!k || node < 0 || node >= us_sim_n_soil_node(s, contact)) return bad;
    const us_vec3 force = us_vec3_scale(-1 / s->model->step, s->now.contact.anchor[k->point].g);
    if (k->is_node)
        return (us_soil_node){usi_v4_vec3(s->contacts->collide.point[k->point].p_B), force, k->area};
    if (k->is_wheel && has_arc(k)) return arc_node(s, k, node);
    if (k->is_wheel) return (us_soil_node){usi_v4_vec3(s->contacts->collide.point[k->point].p), force, 0};
    return foot_node(s, k, force, node);
}
