// The pieces: see build.h.
#include "build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void check(us_status status, const us_error *err) {
    if (status == US_OK) return;
    char text[2048] = "";
    if (err && err->code) us_error_format(err, text, sizeof text);
    fail_msg("%s: %s", us_status_text(status), text);
}

us_spec *build_spec_gravity(us_vec3 gravity, double step, us_integrator integrator) {
    us_spec *spec = NULL;
    check(us_spec_create(NULL, &spec), NULL);
    us_world_settings world = us_world_settings_default();
    world.gravity = gravity;
    world.step = step;
    world.integrator = integrator;
    check(us_spec_set_world(spec, &world), NULL);
    return spec;
}

us_spec *build_spec(double gravity, double step, us_integrator integrator) {
    return build_spec_gravity(us_vec3_make(0, 0, -gravity), step, integrator);
}

int32_t build_link(us_spec *spec, const char *name, double mass, us_vec3 com, us_vec3 moments) {
    us_link_def def = us_link_def_default();
    int32_t index = -1;
    def.name = name;
    def.inertia.mass = mass;
    def.inertia.com = com;
    memset(def.inertia.about_com, 0, sizeof def.inertia.about_com);
    def.inertia.about_com[0] = moments.x;
    def.inertia.about_com[1] = moments.y;
    def.inertia.about_com[2] = moments.z;
    check(us_spec_add_link(spec, &def, &index), NULL);
    return index;
}

us_joint_def build_joint_at(us_joint_type type, int32_t parent, int32_t child, us_vec3 p, us_vec3 axis) {
    us_joint_def def = us_joint_def_default(type);
    def.parent = parent;
    def.child = child;
    def.X_PF = us_pose_identity();
    def.X_PF.p = p;
    def.axis = axis;
    return def;
}

int32_t build_joint_def(us_spec *spec, const char *name, const us_joint_def *def) {
    us_joint_def named = *def;
    int32_t index = -1;
    named.name = name;
    check(us_spec_add_joint(spec, &named, &index), NULL);
    return index;
}

int32_t build_joint(us_spec *spec, const char *name, us_joint_type type, int32_t parent, int32_t child,
                    us_vec3 p, us_vec3 axis, double q0, double v0) {
    us_joint_def def = build_joint_at(type, parent, child, p, axis);
    if (us_joint_type_n_v(type) == 1) {
        def.q0[0] = q0;
        def.v0[0] = v0;
    }
    return build_joint_def(spec, name, &def);
}

int32_t build_loop(us_spec *spec, const char *name, us_loop_type type, int32_t a, us_vec3 p_AC, int32_t b,
                   us_vec3 p_BD) {
    us_loop_def def = us_loop_def_default(type);
    int32_t index = -1;
    def.name = name;
    def.link_a = a;
    def.link_b = b;
    def.X_AC = def.X_BD = us_pose_identity();
    def.X_AC.p = p_AC;
    def.X_BD.p = p_BD;
    check(us_spec_add_loop(spec, &def, &index), NULL);
    return index;
}

int32_t build_coupling(us_spec *spec, const char *name, int32_t joint_a, double factor_a, int32_t joint_b,
                       double factor_b, double offset) {
    us_coupling_def def = us_coupling_def_default();
    int32_t index = -1;
    def.name = name;
    def.n_term = 2;
    def.joint[0] = joint_a;
    def.joint[1] = joint_b;
    def.factor[0] = factor_a;
    def.factor[1] = factor_b;
    def.offset = offset;
    check(us_spec_add_coupling(spec, &def, &index), NULL);
    return index;
}

int32_t build_drive(us_spec *spec, const char *name, int32_t joint, double kp, double kd, double position,
                    double limit) {
    us_drive_def def = us_drive_def_default();
    int32_t index = -1;
    def.name = name;
    def.joint = joint;
    def.kp = kp;
    def.kd = kd;
    def.position = position;
    def.limit = limit;
    check(us_spec_add_drive(spec, &def, &index), NULL);
    return index;
}

// ---- A compiled world ----

static void *room(int32_t n) {
    void *memory = calloc((size_t)n + 1, sizeof(double));
    assert_non_null(memory);
    return memory;
}

built build_model(us_spec *spec) {
    built b;
    us_error err;
    memset(&b, 0, sizeof b);
    memset(&err, 0, sizeof err);
    us_status status = us_model_compile(spec, NULL, &b.model, &err);
    check(status, &err);
    check(us_dyn_create(b.model, NULL, &b.dyn), NULL);
    b.n = us_model_get_counts(b.model);
    b.q = room(b.n.n_q);
    b.v = room(b.n.n_v);
    us_spec_counts counts = us_spec_get_counts(spec);
    for (int32_t i = 0; i < counts.n_joint; i++) {
        const us_joint_def *def = us_spec_view_joint(spec, i);
        us_joint_info info = us_model_get_joint(b.model, (us_joint){i});
        memcpy(b.q + info.first_q, def->q0, (size_t)info.n_q * sizeof(double));
        memcpy(b.v + info.first_v, def->v0, (size_t)info.n_v * sizeof(double));
    }
    us_spec_destroy(spec);
    return b;
}

built build_sim(us_spec *spec) {
    built b = build_model(spec);
    us_error err;
    memset(&err, 0, sizeof err);
    check(us_sim_create(b.model, NULL, &b.sim, &err), &err);
    return b;
}

void build_free(built *b) {
    us_sim_destroy(b->sim);
    us_dyn_destroy(b->dyn);
    us_model_destroy(b->model);
    free(b->q);
    free(b->v);
    memset(b, 0, sizeof *b);
}

void build_step(built *b, int64_t n, const us_command *command) {
    for (int64_t i = 0; i < n; i++) {
        us_status status = us_sim_step(b->sim, command);
        if (status) check(status, us_sim_view_error(b->sim));
    }
}

double build_total_energy(built *b) {
    us_energy e = us_sim_get_energy(b->sim);
    return e.kinetic + e.potential;
}

// ---- Numbers ----

double build_uniform(uint64_t seed, uint64_t *counter, double low, double high) {
    return low + (high - low) * us_random_uniform(seed, 0, (*counter)++);
}

us_quat build_random_rotation(uint64_t seed, uint64_t *counter) {
    double x[4];
    for (int i = 0; i < 4; i++)
        x[i] = us_random_normal(seed, 1, (*counter)++);
    return us_quat_normalize((us_quat){x[0], x[1], x[2], x[3]});
}

us_vec3 build_random_vec3(uint64_t seed, uint64_t *counter, double size) {
    double x = build_uniform(seed, counter, -size, size), y = build_uniform(seed, counter, -size, size),
           z = build_uniform(seed, counter, -size, size);
    return us_vec3_make(x, y, z);
}

double build_greatest(const double *x, int32_t n) {
    double most = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!(fabs(x[i]) <= most)) most = fabs(x[i]);
    }
    return most;
}

double build_difference(const double *x, const double *y, int32_t n) {
    double most = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!(fabs(x[i] - y[i]) <= most)) most = fabs(x[i] - y[i]);
    }
    return most;
}

void build_random_state(const us_model *model, uint64_t seed, double speed, double *out_q, double *out_v) {
    us_model_counts n = us_model_get_counts(model);
    uint64_t counter = 0;
    for (int32_t i = 0; i < n.n_joint; i++) {
        us_joint_info info = us_model_get_joint(model, (us_joint){i});
        double *q = out_q + info.first_q;
        int32_t k = 0;
        if (info.type == US_JOINT_SPHERICAL || info.type == US_JOINT_FLOATING) {
            us_quat r = build_random_rotation(seed, &counter);
            q[0] = r.w;
            q[1] = r.x;
            q[2] = r.y;
            q[3] = r.z;
            k = 4;
        }
        for (; k < info.n_q; k++) {
            bool is_length = info.type == US_JOINT_PRISMATIC || info.type == US_JOINT_FLOATING ||
                             (info.type == US_JOINT_CYLINDRICAL && k == 1) ||
                             (info.type == US_JOINT_PLANAR && k < 2);
            q[k] = build_uniform(seed, &counter, -1, 1) * (is_length ? 1 : 3.14159265358979);
        }
    }
    for (int32_t i = 0; i < n.n_v; i++)
        out_v[i] = build_uniform(seed, &counter, -speed, speed);
}

void build_near(const char *what, double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%s is %.15g, expected %.15g within %.3g (off by %.3g)", what, value, expected, tolerance,
                 value - expected);
}

// ---- Data ----

const char *build_shared(const char *name) {
    static char path[1024];
    const char *root = getenv("US_SHARED");
    snprintf(path, sizeof path, "%s/%s", root ? root : US_SOURCE_DIR "/../shared", name);
    if (access(path, R_OK) == 0) return path;
    printf("skipped: %s is not there\n", path);
    return NULL;
}

us_sim *build_sim_of(const us_model *model, int32_t n_thread, const us_allocator *allocator) {
    us_sim_def def = us_sim_def_default();
    def.n_thread = n_thread;
    if (allocator) def.allocator = *allocator;
    us_sim *sim = NULL;
    us_error err = {0};
    check(us_sim_create(model, &def, &sim, &err), &err);
    return sim;
}

uint64_t build_motion_hash(const us_sim *sim) {
    us_model_counts n = us_model_get_counts(us_sim_view_model(sim));
    return us_hash_bytes(us_hash_bytes(0, us_sim_view_q(sim), (size_t)n.n_q * sizeof(double)),
                         us_sim_view_v(sim), (size_t)n.n_v * sizeof(double));
}
