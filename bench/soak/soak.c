// A day in the life: 24 simulated hours of a rover that drives in circles on a bumpy field, and of a stack of
// ten boxes.
//
//     soak [HOURS]                  default 24
//
// Looks at every simulated second: nothing may be NaN, no energy may come from nowhere, nothing may be
// allocated, the rover must keep driving and the stack stand. Ends with 1 when something is wrong. Takes
// about half an hour for a day of both.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "understudy/sim.h"

static long allocations;
static void *count_alloc(void *user, size_t size, size_t align) {
    (void)user;
    allocations++;
    return aligned_alloc(align, (size + align - 1) / align * align);
}
static void count_release(void *user, void *memory, size_t size, size_t align) {
    (void)user;
    (void)size;
    (void)align;
    free(memory);
}

static void must(us_status status, const char *what) {
    if (status == US_OK) return;
    fprintf(stderr, "soak: %s: %s\n", what, us_status_text(status));
    exit(2);
}

static us_shape_def shape_on(us_shape_kind kind, int32_t link, double x, double y, double z) {
    us_shape_def s = us_shape_def_default(kind);
    s.link = link;
    s.size[0] = x;
    s.size[1] = y;
    s.size[2] = z;
    return s;
}

static int32_t add_body(us_spec *spec, const char *name, int32_t parent, us_joint_type type,
                        us_inertia inertia, us_vec3 at, us_vec3 axis) {
    int32_t i;
    us_link_def link = us_link_def_default();
    link.name = name;
    link.inertia = inertia;
    must(us_spec_add_link(spec, &link, &i), name);
    us_joint_def joint = us_joint_def_default(type);
    joint.name = name;
    joint.parent = parent;
    joint.child = i;
    joint.axis = axis;
    if (type == US_JOINT_FLOATING) {
        joint.q0[4] = at.x;
        joint.q0[5] = at.y;
        joint.q0[6] = at.z;
    } else
        joint.X_PF.p = at;
    must(us_spec_add_joint(spec, &joint, NULL), name);
    return i;
}

static us_inertia box_inertia(double m, double x, double y, double z) {
    us_inertia i = {m,
                    {0, 0, 0},
                    {m / 12 * (y * y + z * z), m / 12 * (x * x + z * z), m / 12 * (x * x + y * y), 0, 0, 0}};
    return i;
}

static us_spec *new_world(void) {
    us_spec *spec;
    must(us_spec_create(NULL, &spec), "spec");
    us_pair_def pair = us_pair_def_default();
    pair.values.static_friction = pair.values.kinetic_friction = 0.8;
    must(us_spec_add_pair(spec, &pair, NULL), "pair");
    return spec;
}

static us_spec *stack(void) {
    us_spec *spec = new_world();
    us_shape_def ground = us_shape_def_default(US_SHAPE_HALF_SPACE);
    must(us_spec_add_shape(spec, &ground, NULL), "ground");
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "box%d", i);
        int32_t b = add_body(spec, name, US_WORLD, US_JOINT_FLOATING, box_inertia(1, 0.2, 0.2, 0.2),
                             us_vec3_make(0, 0, 0.1 + 0.2 * i), us_vec3_make(1, 0, 0));
        us_shape_def s = shape_on(US_SHAPE_BOX, b, 0.2, 0.2, 0.2);
        must(us_spec_add_shape(spec, &s, NULL), "box");
    }
    return spec;
}

// 95 kg on four wheels, each steered and driven, on waves of 0.2 m; the front wheels are turned in, the rear
// ones out: a circle of about 2 m.
static us_spec *rover(void) {
    enum { N = 256 };
    static double heights[N * N];
    us_spec *spec = new_world();
    for (int j = 0; j < N; j++) {
        for (int i = 0; i < N; i++) {
            double x = (i - 127.5) * 0.25, y = (j - 127.5) * 0.25, turn = 2 * 3.14159265358979;
            heights[j * N + i] = 0.2 * sin(turn * x / 12) * cos(turn * y / 10) + 0.05 * sin(turn * x / 3.1);
        }
    }
    us_shape_def ground = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    ground.heights = heights;
    ground.n_x = ground.n_y = N;
    ground.size[0] = ground.size[1] = 0.25;
    must(us_spec_add_shape(spec, &ground, NULL), "field");
    int32_t body = add_body(spec, "body", US_WORLD, US_JOINT_FLOATING, box_inertia(95, 1.4, 0.7, 0.3),
                            us_vec3_make(0, 0, 0.7), us_vec3_make(1, 0, 0));
    us_shape_def s = shape_on(US_SHAPE_BOX, body, 1.4, 0.7, 0.3);
    must(us_spec_add_shape(spec, &s, NULL), "body");
    for (int k = 0; k < 4; k++) {
        char steer[16], wheel[16];
        snprintf(steer, sizeof steer, "steer%d", k);
        snprintf(wheel, sizeof wheel, "wheel%d", k);
        us_inertia small = {1, {0, 0, 0}, {0.01, 0.01, 0.01, 0, 0, 0}},
                   round = {5, {0, 0, 0}, {0.0594, 0.1, 0.0594, 0, 0, 0}};
        int32_t a =
            add_body(spec, steer, body, US_JOINT_CONTINUOUS, small,
                     us_vec3_make(k < 2 ? 0.55 : -0.55, k % 2 ? -0.5 : 0.5, -0.2), us_vec3_make(0, 0, 1));
        int32_t w = add_body(spec, wheel, a, US_JOINT_CONTINUOUS, round, us_vec3_make(0, 0, 0),
                             us_vec3_make(0, 1, 0));
        s = shape_on(US_SHAPE_CYLINDER, w, 0.2, 0.15, 0);
        s.X_BG.q = (us_quat){0.70710678118654752, 0.70710678118654752, 0, 0};
        must(us_spec_add_shape(spec, &s, NULL), "wheel");
        us_drive_def turn = us_drive_def_default(), drive = us_drive_def_default();
        turn.name = steer;
        turn.joint = us_spec_find_joint(spec, steer);
        turn.kp = 200;
        turn.kd = 10;
        turn.limit = 100;
        turn.position = k < 2 ? 0.25 : -0.25;
        drive.name = wheel;
        drive.joint = us_spec_find_joint(spec, wheel);
        drive.kd = 10;
        drive.velocity = 2.5;
        drive.limit = 30;
        must(us_spec_add_drive(spec, &turn, NULL), "drive");
        must(us_spec_add_drive(spec, &drive, NULL), "drive");
    }
    return spec;
}

static bool run(const char *name, us_spec *spec, double hours, bool is_driven) {
    us_error err;
    us_model *model;
    us_sim_def def = us_sim_def_default();
    def.allocator.alloc = count_alloc;
    def.allocator.release = count_release;
    us_sim *sim;
    must(us_model_compile(spec, NULL, &model, &err), "compile");
    must(us_sim_create(model, &def, &sim, &err), "sim");
    us_spec_destroy(spec);
    const long seconds = (long)(hours * 3600), before = allocations;
    us_energy start = us_sim_get_energy(sim);
    double last = start.kinetic + start.potential, work = 0, worst = 0, way = 0;
    us_vec3 at = us_sim_get_pose(sim, (us_body){0}).p;
    const time_t began = time(NULL);
    for (long t = 0; t < seconds; t++) {
        for (int i = 0; i < 1000; i++) {
            if (us_sim_step(sim, NULL)) {
                char text[1000];
                us_error_format(us_sim_view_error(sim), text, sizeof text);
                fprintf(stderr, "\nsoak: %s: %s\n", name, text);
                return false;
            }
            // What the drives put in during the step, at its later velocities, as they are applied.
            for (int k = 0; is_driven && k < us_model_get_counts(model).n_drive; k++)
                work += 1e-3 * us_sim_view_torque(sim)[k] *
                        us_sim_view_v(
                            sim)[us_model_get_joint(model, us_model_get_drive_joint(model, (us_drive){k}))
                                     .first_v];
        }
        us_energy e = us_sim_get_energy(sim);
        double gained = e.kinetic + e.potential - last - work;
        us_vec3 p = us_sim_get_pose(sim, (us_body){0}).p;
        way += us_vec3_norm(us_vec3_sub(p, at));
        at = p;
        last += e.kinetic + e.potential - last;
        work = 0;
        if (gained > worst) worst = gained;
        if (!isfinite(last) || !isfinite(p.x + p.y + p.z)) {
            fprintf(stderr, "\nsoak: %s: not a number after %ld s\n", name, t + 1);
            return false;
        }
        if (t % 60 == 59 || t + 1 == seconds) {
            fprintf(stderr, "\r%s: %5.1f %% of %g h, %.0f times real time ", name,
                    100.0 * (double)(t + 1) / (double)seconds, hours,
                    (double)(t + 1) / fmax(1, difftime(time(NULL), began)));
        }
    }
    bool moves = !is_driven || way > 0.1 * (double)seconds, stands = is_driven || at.z < 0.11;
    us_vec3 top = us_sim_get_pose(sim, (us_body){is_driven ? 0 : 9}).p;
    if (!is_driven) stands = fabs(top.z - 1.9) < 1e-3 && hypot(top.x, top.y) < 1e-6;
    // A second's work is summed from a thousand products with the step's end velocities: for 120 kg at 0.5
    // m/s this is off by some millijoules.
    bool is_passive = worst <= (is_driven ? 0.5 : 1e-9);
    fprintf(stderr,
            "\n%s: %g h, most energy gained in a second %.3g J, way %.1f m, last body at %.6f %.6f %.6f, "
            "allocations %ld: %s\n",
            name, hours, worst, way, top.x, top.y, top.z, allocations - before,
            moves && stands && is_passive && allocations == before ? "good" : "WRONG");
    bool ok = moves && stands && is_passive && allocations == before;
    us_sim_destroy(sim);
    us_model_destroy(model);
    return ok;
}

int main(int argc, char **argv) {
    double hours = argc > 1 ? atof(argv[1]) : 24;
    if (!(hours > 0)) {
        fprintf(stderr, "soak: \"%s\" is not a number of hours\nremedy: write soak 24\n", argv[1]);
        return 2;
    }
    // One of them alone, so that two processors can share the day.
    const char *only = argc > 2 ? argv[2] : "";
    bool ok = strcmp(only, "stack") == 0 || run("rover", rover(), hours, true);
    ok = (strcmp(only, "rover") == 0 || run("stack", stack(), hours, false)) && ok;
    return ok ? 0 : 1;
}
