// Mass matrix, bias and forward dynamics against MuJoCo, on robots that others made.
//
// MuJoCo reads a copy of the robot file from which the shapes are taken (they have no part in the dynamics
// here, and a link without <inertial> would get a mass from them), with a <mujoco> element that forbids
// repairs and merging. For a floating base the copy gets a link for the world and a floating joint in front
// of the robot's root.
//
// Both sides round at 1e-16 and the condition of these matrices is below 1e5; MuJoCo diagonalises inertias,
// to about 1e-10 where they have products: 1e-8 of the greatest entry finds every wrong term and no rounding.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <mujoco/mujoco.h>

#include "build.h"

enum { STATES = 100, MOST = 64 };

// ---- The robot as MuJoCo gets it ----

static xmlNode *attribute(xmlNode *node, const char *name, const char *value) {
    xmlNewProp(node, BAD_CAST name, BAD_CAST value);
    return node;
}

static xmlNode *child(xmlNode *node, const char *name) {
    return xmlNewChild(node, NULL, BAD_CAST name, NULL);
}

static void remove_shapes(xmlNode *node) {
    for (xmlNode *c = node->children, *next; c; c = next) {
        next = c->next;
        if (c->type != XML_ELEMENT_NODE) continue;
        if (xmlStrcmp(c->name, BAD_CAST "visual") == 0 || xmlStrcmp(c->name, BAD_CAST "collision") == 0) {
            xmlUnlinkNode(c);
            xmlFreeNode(c);
        } else {
            remove_shapes(c);
        }
    }
}

static void write_copy(const char *path, const char *root_link, bool is_floating, const char *copy) {
    xmlDoc *doc = xmlReadFile(path, NULL, XML_PARSE_NOBLANKS);
    assert_non_null(doc);
    xmlNode *robot = xmlDocGetRootElement(doc);
    remove_shapes(robot);
    xmlNode *compiler = child(child(robot, "mujoco"), "compiler");
    attribute(attribute(attribute(attribute(compiler, "balanceinertia", "false"), "fusestatic", "false"),
                        "discardvisual", "true"),
              "strippath", "true");
    if (is_floating) {
        // A root link of this name is MuJoCo's world: what hangs on it may float.
        attribute(child(robot, "link"), "name", "world");
        xmlNode *joint = attribute(attribute(child(robot, "joint"), "name", "test_root"), "type", "floating");
        attribute(child(joint, "parent"), "link", "world");
        attribute(child(joint, "child"), "link", root_link);
    }
    assert_true(xmlSaveFile(copy, doc) > 0);
    xmlFreeDoc(doc);
}

// ---- Coordinates ----

// Which velocity of MuJoCo each of ours is, joint by joint through their names. The floating joint is
// special.
typedef struct pair {
    built b;
    mjModel *m;
    mjData *d;
    int free_q, free_v;  // first indices of the floating joint, or -1
} pair;

static void to_mujoco(const pair *p, const double *q, const double *v) {
    for (int32_t i = 0; i < p->b.n.n_joint; i++) {
        us_joint_info info = us_model_get_joint(p->b.model, (us_joint){i});
        if (info.n_v == 0) continue;
        if (info.type == US_JOINT_FLOATING) {
            // Ours: quaternion, position; (angular, linear) in the body. MuJoCo: position, quaternion; linear
            // in the world, angular in the body.
            const double *a = q + info.first_q, *w = v + info.first_v;
            us_vec3 linear =
                us_quat_rotate((us_quat){a[0], a[1], a[2], a[3]}, us_vec3_make(w[3], w[4], w[5]));
            const double position[7] = {a[4], a[5], a[6], a[0], a[1], a[2], a[3]},
                         velocity[6] = {linear.x, linear.y, linear.z, w[0], w[1], w[2]};
            memcpy(p->d->qpos + p->free_q, position, sizeof position);
            memcpy(p->d->qvel + p->free_v, velocity, sizeof velocity);
            continue;
        }
        int joint = mj_name2id(p->m, mjOBJ_JOINT, us_model_joint_name(p->b.model, (us_joint){i}));
        assert_true(joint >= 0);
        p->d->qpos[p->m->jnt_qposadr[joint]] = q[info.first_q];
        p->d->qvel[p->m->jnt_dofadr[joint]] = v[info.first_v];
    }
}

// T: MuJoCo's velocity = T times ours, at the orientation of q.
static void fill_map(const pair *p, const double *q, double *T) {
    int n = p->b.n.n_v;
    memset(T, 0, (size_t)(n * n) * sizeof *T);
    for (int32_t i = 0; i < p->b.n.n_joint; i++) {
        us_joint_info info = us_model_get_joint(p->b.model, (us_joint){i});
        if (info.n_v == 0) continue;
        if (info.type == US_JOINT_FLOATING) {
            const double *a = q + info.first_q;
            us_mat3 R = us_quat_matrix((us_quat){a[0], a[1], a[2], a[3]});
            for (int r = 0; r < 3; r++) {
                T[(p->free_v + 3 + r) * n + info.first_v + r] = 1;
                for (int c = 0; c < 3; c++)
                    T[(p->free_v + r) * n + info.first_v + 3 + c] = R.m[3 * r + c];
            }
            continue;
        }
        T[p->m->jnt_dofadr[mj_name2id(p->m, mjOBJ_JOINT, us_model_joint_name(p->b.model, (us_joint){i}))] *
              n +
          info.first_v] = 1;
    }
}

// ---- The comparison ----

static void compare(const char *robot, const char *file, const char *root_link, bool is_floating,
                    int n_expected) {
    const char *path = build_shared(file);
    if (!path) skip();
    char message[1000] = "";
    us_error err;
    us_spec *spec = NULL;
    us_load_def load = us_load_def_default();
    load.skip_meshes = true;
    load.base = is_floating ? US_BASE_FLOATING : US_BASE_FIXED;
    memset(&err, 0, sizeof err);
    if (us_spec_load(path, &load, &spec, &err)) fail_msg("%s: %s", err.message, err.remedy);
    write_copy(path, root_link, is_floating, "copy.urdf");
    pair p = {.b = build_model(spec),
              .m = mj_loadXML("copy.urdf", NULL, message, sizeof message),
              .free_q = -1,
              .free_v = -1};
    if (!p.m) fail_msg("MuJoCo: %s", message);
    p.d = mj_makeData(p.m);
    int n = p.b.n.n_v;
    assert_int_equal(n, n_expected);
    assert_int_equal(p.m->nv, n);
    assert_true(n <= MOST);
    for (int j = 0; j < p.m->njnt; j++) {
        if (p.m->jnt_type[j] == mjJNT_FREE) {
            p.free_q = p.m->jnt_qposadr[j];
            p.free_v = p.m->jnt_dofadr[j];
        }
    }
    assert_true((p.free_q >= 0) == is_floating);
    double worst[4] = {0, 0, 0, 0};
    static double H[MOST * MOST], M[MOST * MOST], T[MOST * MOST], X[MOST * MOST];
    for (uint64_t seed = 0; seed < STATES; seed++) {
        double q[MOST + 8], v[MOST], tau[MOST], c[MOST], a[MOST], bias[MOST] = {0}, expected[MOST];
        uint64_t counter = 0;
        build_random_state(p.b.model, seed, 3, q, v);
        for (int i = 0; i < n; i++)
            tau[i] = build_uniform(seed + 1000, &counter, -20, 20);
        fill_map(&p, q, T);
        to_mujoco(&p, q, v);
        // Power is the same on both sides: tau = T^T tau', so tau' = T^-T tau, and T is a rotation: T^-T = T.
        for (int r = 0; r < n; r++) {
            p.d->qfrc_applied[r] = 0;
            for (int k = 0; k < n; k++)
                p.d->qfrc_applied[r] += T[r * n + k] * tau[k];
        }
        p.m->opt.disableflags |= mjDSBL_CONSTRAINT;
        mj_forward(p.m, p.d);
        assert_int_equal(us_dyn_mass_matrix(p.b.dyn, q, H), US_OK);
        assert_int_equal(us_dyn_bias(p.b.dyn, q, v, c), US_OK);
        assert_int_equal(us_dyn_forward(p.b.dyn, q, v, tau, NULL, a), US_OK);
        // H = T^T M T.
        mj_fullM(p.m, M, p.d->qM);
        for (int r = 0; r < n; r++) {
            for (int k = 0; k < n; k++) {
                X[r * n + k] = 0;
                for (int j = 0; j < n; j++)
                    X[r * n + k] += M[r * n + j] * T[j * n + k];
            }
        }
        for (int r = 0; r < n; r++) {
            for (int k = 0; k < n; k++) {
                double sum = 0;
                for (int j = 0; j < n; j++)
                    sum += T[j * n + r] * X[j * n + k];
                M[r * n + k] = sum;
            }
        }
        worst[0] = fmax(worst[0], build_difference(H, M, n * n) / build_greatest(H, n * n));
        // The floating joint's linear velocity turns with the body: dv'/dt = R (dv/dt + w x v). That belongs
        // to our bias, not to MuJoCo's. Dampers are passive forces there, part of the bias here.
        double rate[MOST] = {0};
        if (is_floating) {
            us_joint_info info = {.type = US_JOINT_COUNT};
            for (int32_t i = 0; i < p.b.n.n_joint; i++) {
                if (us_model_get_joint(p.b.model, (us_joint){i}).type == US_JOINT_FLOATING)
                    info = us_model_get_joint(p.b.model, (us_joint){i});
            }
            const double *w = v + info.first_v;
            us_vec3 turning = us_vec3_cross(us_vec3_make(w[0], w[1], w[2]), us_vec3_make(w[3], w[4], w[5]));
            rate[info.first_v + 3] = turning.x;
            rate[info.first_v + 4] = turning.y;
            rate[info.first_v + 5] = turning.z;
        }
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < n; k++)
                bias[i] += T[k * n + i] * (p.d->qfrc_bias[k] - p.d->qfrc_passive[k]) + M[i * n + k] * rate[k];
        }
        worst[1] =
            fmax(worst[1], build_difference(c, bias, n) /
                               fmax(1, build_greatest(c, n)));  // wheels in balance have none: then of 1 N m
        for (int i = 0; i < n; i++) {
            expected[i] = -rate[i];
            for (int k = 0; k < n; k++)
                expected[i] += T[k * n + i] * p.d->qacc_smooth[k];
        }
        worst[2] = fmax(worst[2], build_difference(a, expected, n) / build_greatest(a, n));
        // Every link's position, by name.
        us_pose pose[MOST];
        assert_true(p.b.n.n_body <= MOST);
        assert_int_equal(us_dyn_poses(p.b.dyn, q, pose), US_OK);
        for (int32_t i = 0; i < p.b.n.n_body; i++) {
            int body = mj_name2id(p.m, mjOBJ_BODY, us_model_body_name(p.b.model, (us_body){i}));
            if (body <= 0) continue;  // the root of a fixed robot is MuJoCo's world
            const double *x = p.d->xpos + 3 * body;
            worst[3] = fmax(worst[3], us_vec3_norm(us_vec3_sub(pose[i].p, us_vec3_make(x[0], x[1], x[2]))));
        }
    }
    printf("    %s, %s: mass matrix %.1e, bias %.1e, accelerations %.1e, link positions %.1e m\n", robot,
           is_floating ? "floating" : "fixed", worst[0], worst[1], worst[2], worst[3]);
    assert_true(worst[0] <= 1e-8);
    assert_true(worst[1] <= 1e-8);
    assert_true(worst[2] <= 1e-8);
    assert_true(worst[3] <= 1e-8);
    mj_deleteData(p.d);
    mj_deleteModel(p.m);
    build_free(&p.b);
}

static void fixed_husky_agrees(void **state) {
    (void)state;
    compare("husky", "data/models/husky/husky.urdf", "base_link", false, 4);
}

static void floating_husky_agrees(void **state) {
    (void)state;
    compare("husky", "data/models/husky/husky.urdf", "base_link", true, 10);
}

static void fixed_ur10_agrees(void **state) {
    (void)state;
    compare("ur10", "data/models/ur10/ur10.urdf", "world", false, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_husky_agrees),
        cmocka_unit_test(floating_husky_agrees),
        cmocka_unit_test(fixed_ur10_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
