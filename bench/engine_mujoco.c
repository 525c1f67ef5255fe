// MuJoCo as one of the engines. The scene goes in as URDF, which is flat: MuJoCo's own format nests bodies,
// and version 2.2.2 refuses a hundred of them inside each other. What URDF cannot say (step, armature,
// gravity) is set afterwards.
#include "bench.h"

#ifdef US_HAVE_MUJOCO

#include <mujoco/mujoco.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct engine {
    mjModel *m;
    mjData *d;
    const bench_scene *scene;
    double target[BENCH_MAX_LINKS];
} engine;

static void write_origin(FILE *f, us_pose X) {
    us_mat3 R = us_quat_matrix(X.q);
    fprintf(f, "<origin xyz=\"%.17g %.17g %.17g\" rpy=\"%.17g %.17g %.17g\"/>", X.p.x, X.p.y, X.p.z,
            atan2(R.m[7], R.m[8]), asin(fmax(-1, fmin(1, -R.m[6]))), atan2(R.m[3], R.m[0]));
}

static void write_urdf(FILE *f, const bench_scene *s) {
    fprintf(f,
            "<robot name=\"%s\"><mujoco><compiler balanceinertia=\"false\" "
            "fusestatic=\"false\"/></mujoco><link name=\"base\"/>\n",
            s->name);
    for (int32_t i = 0; i < s->n_link; i++) {
        const bench_link *l = &s->link[i];
        const double *I = l->inertia.about_com;
        fprintf(f, "<link name=\"b%d\"><inertial><origin xyz=\"%.17g %.17g %.17g\"/><mass value=\"%.17g\"/>",
                (int)i, l->inertia.com.x, l->inertia.com.y, l->inertia.com.z, l->inertia.mass);
        fprintf(f,
                "<inertia ixx=\"%.17g\" iyy=\"%.17g\" izz=\"%.17g\" ixy=\"%.17g\" ixz=\"%.17g\" "
                "iyz=\"%.17g\"/></inertial></link>\n",
                I[0], I[1], I[2], I[3], I[4], I[5]);
        char parent[16] = "base";
        if (l->parent >= 0) snprintf(parent, sizeof parent, "b%d", (int)l->parent);
        fprintf(f, "<joint name=\"j%d\" type=\"%s\"><parent link=\"%s\"/><child link=\"b%d\"/>", (int)i,
                l->has_limits ? "revolute" : "continuous", parent, (int)i);
        write_origin(f, l->X_PF);
        fprintf(f, "<axis xyz=\"%.17g %.17g %.17g\"/><dynamics damping=\"%.17g\"/>", l->axis.x, l->axis.y,
                l->axis.z, l->damping);
        if (l->has_limits)
            fprintf(f, "<limit lower=\"%.17g\" upper=\"%.17g\" effort=\"%.17g\" velocity=\"100\"/>", l->lower,
                    l->upper, l->limit);
        fprintf(f, "</joint>\n");
    }
    fprintf(f, "</robot>\n");
}

static mjModel *load(const bench_scene *s) {
    char path[] = "/tmp/understudy-bench-XXXXXX.urdf", err[1000] = "no temporary file";
    mjModel *m = NULL;
    int fd = mkstemps(path, 5);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (f) {
        write_urdf(f, s);
        if (fclose(f) == 0) m = mj_loadXML(path, NULL, err, sizeof err);
    }
    if (fd >= 0) unlink(path);
    if (!m) fprintf(stderr, "bench: mujoco: %s\n", err);
    return m;
}

static void destroy(void *self) {
    engine *e = self;
    if (e->d) mj_deleteData(e->d);
    if (e->m) mj_deleteModel(e->m);
    free(e);
}

static void restore(void *self) {
    engine *e = self;
    mj_resetData(e->m, e->d);
    for (int32_t i = 0; i < e->scene->n_link; i++)
        e->d->qpos[i] = e->scene->link[i].q0;
    memset(e->target, 0, sizeof e->target);
    mj_forward(e->m, e->d);
}

static void *create(const bench_scene *scene, const char *variant) {
    (void)variant;
    engine *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->scene = scene;
    e->m = load(scene);
    if (e->m) {
        e->m->opt.timestep = scene->step;
        e->m->opt.gravity[0] = scene->gravity.x;
        e->m->opt.gravity[1] = scene->gravity.y;
        e->m->opt.gravity[2] = scene->gravity.z;
        for (int i = 0; i < e->m->nv && i < scene->n_link; i++)
            e->m->dof_armature[i] = scene->link[i].armature;
        e->d = mj_makeData(e->m);
    }
    if (!e->d || e->m->nq != scene->n_link || e->m->nv != scene->n_link) {
        fprintf(stderr, "bench: mujoco: %s could not be built\n", scene->name);
        destroy(e);
        return NULL;
    }
    return e;
}

static bool forward(void *self) {
    engine *e = self;
    mj_forward(e->m, e->d);
    return true;
}

static bool step(void *self) {
    engine *e = self;
    const bench_scene *s = e->scene;
    for (int32_t i = 0; s->is_driven && i < s->n_link; i++) {
        const bench_link *l = &s->link[i];
        double torque = l->kp * (e->target[i] - e->d->qpos[i]) - l->kd * e->d->qvel[i];
        e->d->qfrc_applied[i] = l->limit > 0 ? fmax(-l->limit, fmin(l->limit, torque)) : torque;
    }
    mj_step(e->m, e->d);
    return true;
}

static void aim(void *self, const double *target) {
    engine *e = self;
    memcpy(e->target, target, (size_t)e->scene->n_link * sizeof *target);
}

static us_vec3 tip(void *self) {
    engine *e = self;
    mj_kinematics(e->m, e->d);
    const mjtNum *p = e->d->xipos + 3 * (e->m->nbody - 1);
    return us_vec3_make(p[0], p[1], p[2]);
}

static uint64_t hash(void *self) {
    engine *e = self;
    uint64_t h = us_hash_bytes(0, e->d->qpos, (size_t)e->m->nq * sizeof *e->d->qpos);
    return us_hash_bytes(h, e->d->qvel, (size_t)e->m->nv * sizeof *e->d->qvel);
}

int bench_engines_mujoco(bench_engine *out, int cap) {
    if (cap < 1) return 0;
    out[0] = (bench_engine){"mujoco", "euler", true, true, BENCH_MAX_LINKS, create, destroy, restore, forward,
                            step,     aim,     tip,  hash};
    return 1;
}

#else

int bench_engines_mujoco(bench_engine *out, int cap) {
    (void)out, (void)cap;
    return 0;
}

#endif
