// Understudy as one of the engines.
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct understudy {
    us_model *model;
    us_sim *sim;
    us_dyn *dyn;
    us_model_counts n;
    us_vec3 tip_com;
    double shift;
    double target[BENCH_MAX_LINKS];
    bool is_new_target;
    double q[BENCH_MAX_LINKS], v[BENCH_MAX_LINKS], tau[BENCH_MAX_LINKS], a[BENCH_MAX_LINKS];
} understudy;

static us_status describe(us_spec *spec, const bench_scene *s, const char *variant) {
    us_world_settings world = us_world_settings_default();
    world.gravity = s->gravity;
    world.step = s->step;
    for (int k = 0; k < US_INTEGRATOR_COUNT; k++) {
        if (strcmp(us_integrator_name((us_integrator)k), variant) == 0) world.integrator = (us_integrator)k;
    }
    us_status status = us_spec_set_world(spec, &world);
    for (int32_t i = 0; i < s->n_link && !status; i++) {
        const bench_link *l = &s->link[i];
        char link_name[16], joint_name[16], drive_name[16];
        snprintf(link_name, sizeof link_name, "link%d", (int)i);
        snprintf(joint_name, sizeof joint_name, "joint%d", (int)i);
        snprintf(drive_name, sizeof drive_name, "drive%d", (int)i);
        us_link_def link = us_link_def_default();
        link.name = link_name;
        link.inertia = l->inertia;
        status = us_spec_add_link(spec, &link, NULL);
        us_joint_def joint = us_joint_def_default(l->has_limits ? US_JOINT_REVOLUTE : US_JOINT_CONTINUOUS);
        joint.name = joint_name;
        joint.parent = l->parent < 0 ? US_WORLD : l->parent;
        joint.child = i;
        joint.X_PF = l->X_PF;
        joint.axis = l->axis;
        joint.q0[0] = l->q0;
        joint.armature = l->armature;
        joint.damping = l->damping;
        joint.has_limits = l->has_limits;
        joint.lower = l->lower;
        joint.upper = l->upper;
        if (!status) status = us_spec_add_joint(spec, &joint, NULL);
        if (status || !s->is_driven) continue;
        us_drive_def drive = us_drive_def_default();
        drive.name = drive_name;
        drive.joint = i;
        drive.kp = l->kp;
        drive.kd = l->kd;
        drive.limit = l->limit;
        status = us_spec_add_drive(spec, &drive, NULL);
    }
    return status;
}

static us_status compile(const bench_scene *scene, const char *variant, us_model **out_model, us_error *err) {
    us_spec *spec = NULL;
    us_status status = us_spec_create(NULL, &spec);
    if (!status) status = describe(spec, scene, variant);
    if (!status) status = us_model_compile(spec, NULL, out_model, err);
    us_spec_destroy(spec);
    return status;
}

static void complain(us_status status, const us_error *err) {
    char text[1500];
    us_error_format(err, text, sizeof text);
    fprintf(stderr, "bench: understudy: %s: %s\n", us_status_text(status), text);
}

static void destroy(void *self) {
    understudy *e = self;
    us_dyn_destroy(e->dyn);
    us_sim_destroy(e->sim);
    us_model_destroy(e->model);
    free(e);
}

static void *create(const bench_scene *scene, const char *variant) {
    understudy *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    us_error err = {.code = US_OK};
    us_status status = compile(scene, variant, &e->model, &err);
    if (!status) status = us_sim_create(e->model, NULL, &e->sim, &err);
    if (!status) status = us_dyn_create(e->model, NULL, &e->dyn);
    if (status) {
        complain(status, &err);
        destroy(e);
        return NULL;
    }
    e->n = us_model_get_counts(e->model);
    e->tip_com = scene->link[scene->n_link - 1].inertia.com;
    e->shift = 1e-9;
    return e;
}

static void restore(void *self) {
    understudy *e = self;
    us_sim_reset(e->sim);
    memcpy(e->q, us_sim_view_q(e->sim), (size_t)e->n.n_q * sizeof *e->q);
    memcpy(e->v, us_sim_view_v(e->sim), (size_t)e->n.n_v * sizeof *e->v);
    e->is_new_target = false;
}

// q and v change with each call, so that nothing could be kept from the last one.
static bool forward(void *self) {
    understudy *e = self;
    e->shift = -e->shift;
    for (int32_t i = 0; i < e->n.n_q; i++)
        e->q[i] += e->shift;
    for (int32_t i = 0; i < e->n.n_v; i++)
        e->v[i] += e->shift;
    return us_dyn_forward(e->dyn, e->q, e->v, e->tau, NULL, e->a) == US_OK;
}

static bool step(void *self) {
    understudy *e = self;
    us_command command = {.drive_position = e->target};
    us_status status = us_sim_step(e->sim, e->is_new_target ? &command : NULL);
    e->is_new_target = false;
    if (status) complain(status, us_sim_view_error(e->sim));
    return !status;
}

static void aim(void *self, const double *target) {
    understudy *e = self;
    memcpy(e->target, target, (size_t)e->n.n_drive * sizeof *target);
    e->is_new_target = true;
}

static us_vec3 tip(void *self) {
    understudy *e = self;
    return us_pose_point(us_sim_get_pose(e->sim, (us_body){e->n.n_body - 1}), e->tip_com);
}

static uint64_t hash(void *self) { return us_sim_hash(((understudy *)self)->sim); }

int bench_engines_understudy(bench_engine *out, int cap) {
    static const char *const variants[] = {"euler", "midpoint"};
    int n = 0;
    for (; n < 2 && n < cap; n++) {
        out[n] = (bench_engine){"understudy",
                                variants[n],
                                false,
                                true,
                                BENCH_MAX_LINKS,
                                create,
                                destroy,
                                restore,
                                n == 0 ? forward : NULL,
                                step,
                                aim,
                                tip,
                                hash};
    }
    return n;
}

bool bench_understudy_profile(const bench_scene *scene, const char *variant, int n_step, int n_run,
                              us_profile *out) {
    us_model *model = NULL;
    us_sim *sim = NULL;
    us_sim_def def = us_sim_def_default();
    us_error err = {.code = US_OK};
    def.enable_profile = true;
    us_status status = compile(scene, variant, &model, &err);
    if (!status) status = us_sim_create(model, &def, &sim, &err);
    for (int i = 0; i < n_step && !status; i++) {
        // The first tenth warms up.
        if (i == n_step / 10) us_sim_take_profile(sim);
        if (i % n_run == 0) us_sim_reset(sim);
        status = us_sim_step(sim, NULL);
        if (status) err = *us_sim_view_error(sim);
    }
    if (status) {
        complain(status, &err);
    } else {
        *out = us_sim_take_profile(sim);
    }
    us_sim_destroy(sim);
    us_model_destroy(model);
    return !status;
}
