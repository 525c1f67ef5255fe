// The scenes, as plain numbers.
#include <stdio.h>
#include <string.h>

#include "bench.h"

void bench_scene_chain(int32_t n, bench_scene *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "chain-%d", (int)n);
    out->n_link = n;
    out->step = 1e-3;
    out->gravity = us_vec3_make(0, 0, -9.81);
    for (int32_t i = 0; i < n; i++) {
        // A uniform box of 0.2 x 0.05 x 0.05 m.
        const double x = 0.2 * 0.2, y = 0.05 * 0.05;
        bench_link *l = &out->link[i];
        l->parent = i - 1;
        l->X_PF = us_pose_identity();
        l->X_PF.p.x = i == 0 ? 0 : 0.2;
        l->axis = i % 2 == 0 ? us_vec3_make(0, 1, 0) : us_vec3_make(0, 0, 1);
        l->inertia = (us_inertia){1, {0.1, 0, 0}, {2 * y / 12, (x + y) / 12, (x + y) / 12, 0, 0, 0}};
        l->q0 = 0.1;
    }
}

// Link of the spec -> link of the scene: the robot's base is fixed, so it becomes the world.
static int32_t scene_link(const bench_scene *s, const int32_t *link_of, int32_t spec_link) {
    for (int32_t i = 0; i < s->n_link; i++) {
        if (link_of[i] == spec_link) return i;
    }
    return -1;
}

static bool read_arm(const us_spec *spec, bench_scene *out) {
    us_spec_counts n = us_spec_get_counts(spec);
    int32_t link_of[BENCH_MAX_LINKS];
    us_pose X_WB = us_pose_identity();  // of the base
    for (int32_t j = 0; j < n.n_joint; j++) {
        const us_joint_def *d = us_spec_view_joint(spec, j);
        if (d->type == US_JOINT_FIXED && d->parent == US_WORLD) X_WB = d->X_PF;
        if (d->type != US_JOINT_REVOLUTE || out->n_link == BENCH_MAX_LINKS) continue;
        int32_t i = out->n_link, parent = scene_link(out, link_of, d->parent);
        // The three joints of the shoulder and the elbow carry big motors, the wrist's small ones: the gains
        // of scenes/arm.xml.
        bool is_big = i < 3;
        out->link[i] = (bench_link){
            .parent = parent,
            .X_PF = parent < 0 ? us_pose_mul(X_WB, d->X_PF) : d->X_PF,
            .axis = us_vec3_scale(1 / us_vec3_norm(d->axis), d->axis),
            .inertia = us_spec_view_link(spec, d->child)->inertia,
            .armature = is_big ? 2 : 0.2,
            .damping = d->damping,
            .has_limits = d->has_limits,
            .lower = d->lower,
            .upper = d->upper,
            .kp = is_big ? 6000 : 800,
            .kd = is_big ? 600 : 60,
            .limit = d->effort,
        };
        link_of[i] = d->child;
        out->n_link++;
    }
    return out->n_link == 6;
}

bool bench_scene_arm(bench_scene *out) {
    static const char path[] = US_SOURCE_DIR "/models/arm6.urdf";
    us_load_def load = us_load_def_default();
    us_spec *spec = NULL;
    us_error err = {.code = US_OK};
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "arm-6");
    out->is_driven = true;
    out->step = 1e-3;
    out->gravity = us_vec3_make(0, 0, -9.81);
    if (us_spec_load(path, &load, &spec, &err)) {
        char text[1500];
        us_error_format(&err, text, sizeof text);
        fprintf(stderr, "bench: %s\n", text);
        return false;
    }
    bool ok = read_arm(spec, out);
    us_spec_destroy(spec);
    if (!ok) fprintf(stderr, "bench: %s: six revolute joints expected, found %d\n", path, (int)out->n_link);
    return ok;
}
