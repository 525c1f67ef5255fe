// A pendulum built by calls, without any file: the smallest program that uses Understudy as a library.
//
// A rod without mass, 0.5 m long, hangs from the world by a hinge about y; at its end are 2 kg. It is
// released at 1 rad. Prints the angle after one second and how much the energy changed.
#include <stdio.h>
#include <understudy/sim.h>

// Every call that can fail returns a status; `err` says what was wrong and what to do about it.
static int report(us_status status, const us_error *err) {
    char text[1200];
    us_error_format(err, text, sizeof text);
    fprintf(stderr, "%s: %s\n", us_status_text(status), text);
    return 1;
}

int main(void) {
    us_error err = US_ZERO;
    us_status status;

    // The spec is the editable description. Gravity is 9.81 m/s^2 along -z and the step 1 ms unless we say
    // otherwise.
    us_spec *spec = NULL;
    if ((status = us_spec_create(NULL, &spec))) return report(status, &err);

    us_link_def bob = us_link_def_default();
    bob.name = "bob";
    bob.inertia.mass = 2.0;                      // kg
    bob.inertia.com = us_vec3_make(0, 0, -0.5);  // m, from the hinge
    bob.inertia.about_com[0] = 0.02;             // kg m^2: xx, yy, zz
    bob.inertia.about_com[1] = 0.02;
    bob.inertia.about_com[2] = 0.02;
    int32_t link = -1;
    if ((status = us_spec_add_link(spec, &bob, &link))) return report(status, &err);

    us_joint_def hinge = us_joint_def_default(US_JOINT_REVOLUTE);
    hinge.name = "hinge";
    hinge.parent = US_WORLD;
    hinge.child = link;
    hinge.axis = us_vec3_make(0, 1, 0);
    hinge.q0[0] = 1.0;  // rad
    if ((status = us_spec_add_joint(spec, &hinge, NULL))) return report(status, &err);

    // The model is compiled from the spec and never changes; the sim is a world in motion.
    us_model *model = NULL;
    if ((status = us_model_compile(spec, NULL, &model, &err))) return report(status, &err);
    us_sim *sim = NULL;
    if ((status = us_sim_create(model, NULL, &sim, &err))) return report(status, &err);

    us_energy before = us_sim_get_energy(sim);
    while (us_sim_get_tick(sim) < 1000) {
        if ((status = us_sim_step(sim, NULL))) return report(status, us_sim_view_error(sim));
    }
    us_energy after = us_sim_get_energy(sim);

    double total = after.kinetic + after.potential;
    double change = total - (before.kinetic + before.potential);
    printf("Understudy %s\n", us_version());
    printf("time %.3f s, angle %.9f rad, energy %.9f J, relative change %.3g\n", us_sim_get_time(sim),
           us_sim_view_q(sim)[0], total, change / (2.0 * 9.81 * 0.5));

    us_sim_destroy(sim);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return 0;
}
