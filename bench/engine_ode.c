// ODE as one of the engines: maximal coordinates, a hinge per joint. It has no forward dynamics of its own
// and no armature, so it takes part in the steps of undriven scenes. Variants: quick (QuickStep, 20
// iterations), step (dWorldStep, exact).
#include "bench.h"

#ifdef US_HAVE_ODE

#include <ode/ode.h>
#include <stdlib.h>
#include <string.h>

typedef struct engine {
    dWorldID world;
    dBodyID body[BENCH_MAX_LINKS];
    const bench_scene *scene;
    us_pose start[BENCH_MAX_LINKS];  // of the centre of mass, in the axes of the link
    bool is_exact;
} engine;

static void destroy(void *self) {
    engine *e = self;
    if (e->world) dWorldDestroy(e->world);
    free(e);
}

static void restore(void *self) {
    engine *e = self;
    dRandSetSeed(1);
    for (int32_t i = 0; i < e->scene->n_link; i++) {
        us_pose X = e->start[i];
        const dQuaternion q = {X.q.w, X.q.x, X.q.y, X.q.z};
        dBodySetPosition(e->body[i], X.p.x, X.p.y, X.p.z);
        dBodySetQuaternion(e->body[i], q);
        dBodySetLinearVel(e->body[i], 0, 0, 0);
        dBodySetAngularVel(e->body[i], 0, 0, 0);
    }
}

static void *create(const bench_scene *s, const char *variant) {
    engine *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    static bool is_ready = false;
    if (!is_ready) is_ready = dInitODE2(0) && dAllocateODEDataForThread(dAllocateMaskAll);
    e->scene = s;
    e->is_exact = strcmp(variant, "step") == 0;
    e->world = dWorldCreate();
    dWorldSetGravity(e->world, s->gravity.x, s->gravity.y, s->gravity.z);
    dWorldSetAutoDisableFlag(e->world, 0);
    us_pose X_WL[BENCH_MAX_LINKS];
    for (int32_t i = 0; i < s->n_link; i++) {
        const bench_link *l = &s->link[i];
        const double *I = l->inertia.about_com;
        us_pose turn = {us_quat_exp(us_vec3_scale(l->q0, l->axis)), {0, 0, 0}};
        us_pose X_WF = us_pose_mul(l->parent < 0 ? us_pose_identity() : X_WL[l->parent], l->X_PF);
        X_WL[i] = us_pose_mul(X_WF, turn);
        e->start[i] = (us_pose){X_WL[i].q, us_pose_point(X_WL[i], l->inertia.com)};
        e->body[i] = dBodyCreate(e->world);
        dMass mass;
        dMassSetParameters(&mass, l->inertia.mass, 0, 0, 0, I[0], I[1], I[2], I[3], I[4], I[5]);
        dBodySetMass(e->body[i], &mass);
    }
    restore(e);
    // Anchors are taken from where the bodies stand, so the hinges come last.
    for (int32_t i = 0; i < s->n_link; i++) {
        us_vec3 axis = us_quat_rotate(X_WL[i].q, s->link[i].axis);
        dJointID hinge = dJointCreateHinge(e->world, 0);
        dJointAttach(hinge, e->body[i], s->link[i].parent < 0 ? 0 : e->body[s->link[i].parent]);
        dJointSetHingeAnchor(hinge, X_WL[i].p.x, X_WL[i].p.y, X_WL[i].p.z);
        dJointSetHingeAxis(hinge, axis.x, axis.y, axis.z);
    }
    return e;
}

static bool step(void *self) {
    engine *e = self;
    return (e->is_exact ? dWorldStep(e->world, e->scene->step) : dWorldQuickStep(e->world, e->scene->step)) !=
           0;
}

static us_vec3 tip(void *self) {
    engine *e = self;
    const dReal *p = dBodyGetPosition(e->body[e->scene->n_link - 1]);
    return us_vec3_make(p[0], p[1], p[2]);
}

static uint64_t hash(void *self) {
    engine *e = self;
    uint64_t h = 0;
    for (int32_t i = 0; i < e->scene->n_link; i++) {
        h = us_hash_bytes(h, dBodyGetPosition(e->body[i]), 3 * sizeof(dReal));
        h = us_hash_bytes(h, dBodyGetQuaternion(e->body[i]), 4 * sizeof(dReal));
    }
    return h;
}

int bench_engines_ode(bench_engine *out, int cap) {
    // The exact step grows with the cube of the links: 6 ms at 100 of them.
    if (cap < 2) return 0;
    out[0] = (bench_engine){"ode", "quick", true, false, BENCH_MAX_LINKS, create, destroy, restore, NULL,
                            step,  NULL,    tip,  hash};
    out[1] =
        (bench_engine){"ode", "step", true, false, 30, create, destroy, restore, NULL, step, NULL, tip, hash};
    return 2;
}

#else

int bench_engines_ode(bench_engine *out, int cap) {
    (void)out;
    (void)cap;
    return 0;
}

#endif
