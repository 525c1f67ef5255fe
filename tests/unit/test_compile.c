// From the spec to the model: every mistake has its status, its element and a remedy; doubtful content has a
// warning.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "contract_build.h"

// The base of every mistake: two links on two hinges, and a slider beside them, all from "robot.xml".
typedef struct parts {
    us_world_settings world;
    us_link_def link[4];
    us_joint_def joint[4];
    us_drive_def drive[2];
    us_coupling_def coupling;
    us_loop_def loop;
    us_record_def record;
    int n_link, n_joint, n_drive, n_coupling, n_loop, n_record;
} parts;

static parts good_parts(void) {
    static const char *const links[] = {"upper", "lower", "slider", "spare"}, *const joints[] = {
                                                                                  "shoulder", "elbow", "rail",
                                                                                  "extra"};
    parts p;
    memset(&p, 0, sizeof p);
    p.world = us_world_settings_default();
    for (int i = 0; i < 4; i++) {
        p.link[i] = us_link_def_default();
        p.link[i].name = links[i];
        p.link[i].inertia = (us_inertia){1, {0, 0, -0.5}, {0.1, 0.1, 0.1, 0, 0, 0}};
        p.link[i].file = "robot.xml";
        p.link[i].line = 10 + i;
        p.joint[i] = us_joint_def_default(i == 2 ? US_JOINT_PRISMATIC : US_JOINT_REVOLUTE);
        p.joint[i].name = joints[i];
        p.joint[i].parent = i == 1 ? 0 : US_WORLD;
        p.joint[i].child = i;
        p.joint[i].file = "robot.xml";
        p.joint[i].line = 20 + i;
    }
    for (int i = 0; i < 2; i++) {
        p.drive[i] = us_drive_def_default();
        p.drive[i].name = i ? "motor b" : "motor a";
        p.drive[i].joint = i;
        p.drive[i].file = "robot.xml";
        p.drive[i].line = 30 + i;
    }
    p.coupling = us_coupling_def_default();
    p.coupling.name = "gear";
    p.coupling.n_term = 2;
    p.coupling.joint[1] = 1;
    p.coupling.factor[0] = 1;
    p.coupling.factor[1] = 1;
    p.coupling.file = "robot.xml";
    p.coupling.line = 40;
    p.loop = us_loop_def_default(US_LOOP_POINT);
    p.loop.name = "chain";
    p.loop.link_a = 1;
    p.loop.link_b = 2;
    p.loop.file = "robot.xml";
    p.loop.line = 50;
    p.record = us_record_def_default();
    p.record.file_name = "out.csv";
    p.record.file = "robot.xml";
    p.record.line = 60;
    p.n_link = p.n_joint = 3;
    p.n_drive = 2;
    p.n_coupling = p.n_loop = p.n_record = 1;
    return p;
}

static us_spec *spec_of(const parts *p) {
    us_spec *spec = NULL;
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    assert_int_equal(us_spec_set_world(spec, &p->world), US_OK);
    for (int i = 0; i < p->n_link; i++)
        assert_int_equal(us_spec_add_link(spec, &p->link[i], NULL), US_OK);
    for (int i = 0; i < p->n_joint; i++)
        assert_int_equal(us_spec_add_joint(spec, &p->joint[i], NULL), US_OK);
    for (int i = 0; i < p->n_drive; i++)
        assert_int_equal(us_spec_add_drive(spec, &p->drive[i], NULL), US_OK);
    for (int i = 0; i < p->n_coupling; i++)
        assert_int_equal(us_spec_add_coupling(spec, &p->coupling, NULL), US_OK);
    for (int i = 0; i < p->n_loop; i++)
        assert_int_equal(us_spec_add_loop(spec, &p->loop, NULL), US_OK);
    for (int i = 0; i < p->n_record; i++)
        assert_int_equal(us_spec_add_record(spec, &p->record, NULL), US_OK);
    return spec;
}

// Compiles what must not compile. `element` is the whole element, or "" for the world; `line` where it was
// written.
static void refused(const parts *p, us_status want, const char *element, int32_t line, const char *message) {
    test_allocator t;
    test_allocator_init(&t);
    us_spec *spec = spec_of(p);
    us_spec_counts before = us_spec_get_counts(spec);
    us_model *model = (us_model *)&t;
    us_error err;
    memset(&err, 0xff, sizeof err);
    us_status status = us_model_compile(spec, &t.allocator, &model, &err);
    if (status != want)
        fail_msg("%s \"%s\": status %d rather than %d (%s)", element, message, (int)status, (int)want,
                 status ? err.message : "compiled");
    assert_int_equal(err.code, want);
    assert_string_equal(err.element, element);
    if (!strstr(err.message, message))
        fail_msg("%s: \"%s\" does not speak of \"%s\"", element, err.message, message);
    assert_true(err.remedy[0] != 0);
    assert_int_equal(err.line, line);
    assert_string_equal(err.file, line ? "robot.xml" : "");
    assert_ptr_equal(model, &t);
    us_spec_counts after = us_spec_get_counts(spec);
    assert_memory_equal(&before, &after, sizeof before);
    // The error is a courtesy, not a duty.
    assert_int_equal(us_model_compile(spec, &t.allocator, &model, NULL), want);
    us_spec_destroy(spec);
    test_allocator_check(&t);
}

static void the_base_of_the_mistakes_is_itself_right(void **state) {
    (void)state;
    parts p = good_parts();
    us_model *m = contract_compile(spec_of(&p));
    assert_int_equal(us_model_get_counts(m).n_v, 3);
    assert_int_equal(us_model_get_counts(m).n_row, 4);
    us_model_destroy(m);
}

static void settings_of_the_world_are_checked(void **state) {
    (void)state;
    const double bad_steps[] = {0, -1e-3, 11, NAN, INFINITY};
    for (int i = 0; i < 5; i++) {
        parts p = good_parts();
        p.world.step = bad_steps[i];
        refused(&p, US_ERR_VALUE, "", 0, "step");
    }
    const double bad_tolerances[] = {0, -1, 1, NAN};
    for (int i = 0; i < 4; i++) {
        parts p = good_parts();
        p.world.tolerance = bad_tolerances[i];
        refused(&p, US_ERR_VALUE, "", 0, "tolerance");
    }
    for (int i = 0; i < 3; i++) {
        parts p = good_parts();
        (&p.world.gravity.x)[i] = i ? NAN : INFINITY;
        refused(&p, US_ERR_VALUE, "", 0, "gravity");
    }
    parts p = good_parts();
    p.world.integrator = US_INTEGRATOR_COUNT;
    refused(&p, US_ERR_ARG, "", 0, "integrator");
    p = good_parts();
    p.world.duration = NAN;
    refused(&p, US_ERR_VALUE, "", 0, "duration");
    p.world.duration = -1;
    refused(&p, US_ERR_VALUE, "", 0, "duration");
}

static void names_must_be_there_and_differ(void **state) {
    (void)state;
    parts p = good_parts();
    p.link[2].name = "upper";
    refused(&p, US_ERR_NAME, "link \"upper\"", 12, "twice");
    p.link[2].name = "";
    refused(&p, US_ERR_NAME, "link \"\"", 12, "no name");
    p.link[2].name = NULL;
    refused(&p, US_ERR_NAME, "link \"\"", 12, "no name");
    p = good_parts();
    p.joint[1].name = "shoulder";
    refused(&p, US_ERR_NAME, "joint \"shoulder\"", 21, "twice");
    p.joint[1].name = NULL;
    refused(&p, US_ERR_NAME, "joint \"\"", 21, "no name");
    p = good_parts();
    p.drive[1].name = "motor a";
    refused(&p, US_ERR_NAME, "drive \"motor a\"", 31, "twice");
    p.drive[0].name = "";
    refused(&p, US_ERR_NAME, "drive \"\"", 30, "no name");
    p = good_parts();
    p.n_coupling = 2;
    refused(&p, US_ERR_NAME, "coupling \"gear\"", 40, "twice");
    p = good_parts();
    p.n_loop = 2;
    refused(&p, US_ERR_NAME, "loop \"chain\"", 50, "twice");
    // Couplings and loops may go without.
    p = good_parts();
    p.n_coupling = 2;
    p.coupling.name = "";
    us_model_destroy(contract_compile(spec_of(&p)));
    // A link, a joint and a drive may share one.
    p = good_parts();
    p.link[0].name = p.joint[0].name = p.drive[0].name = "same";
    us_model_destroy(contract_compile(spec_of(&p)));
}

static void groups_must_be_those_of_the_spec(void **state) {
    (void)state;
    static const int32_t bad[] = {-2, 0, 5};  // there is none
    for (int i = 0; i < 3; i++) {
        parts p = good_parts();
        p.link[1].group = bad[i];
        refused(&p, US_ERR_NAME, "link \"lower\"", 11, "group");
        p = good_parts();
        p.joint[0].group = bad[i];
        refused(&p, US_ERR_NAME, "joint \"shoulder\"", 20, "group");
        p = good_parts();
        p.coupling.group = bad[i];
        refused(&p, US_ERR_NAME, "coupling \"gear\"", 40, "group");
        p = good_parts();
        p.loop.group = bad[i];
        refused(&p, US_ERR_NAME, "loop \"chain\"", 50, "group");
    }
}

static void rates_of_recordings_must_be_finite_and_not_negative(void **state) {
    (void)state;
    static const double bad[] = {-1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        parts p = good_parts();
        p.record.rate = bad[i];
        refused(&p, US_ERR_VALUE, "record \"out.csv\"", 60, "rate");
    }
}

static void mass_properties_must_be_finite_and_not_negative(void **state) {
    (void)state;
    double *number = NULL;
    for (int i = 0; i < 10; i++) {
        parts p = good_parts();
        us_inertia *I = &p.link[1].inertia;
        number = i == 0 ? &I->mass : i < 4 ? &I->com.x + (i - 1) : &I->about_com[i - 4];
        *number = i % 2 ? NAN : -INFINITY;
        refused(&p, US_ERR_MASS, "link \"lower\"", 11, "not finite");
    }
    parts p = good_parts();
    p.link[0].inertia.mass = -1e-9;
    refused(&p, US_ERR_MASS, "link \"upper\"", 10, "negative");
    for (int i = 0; i < 3; i++) {
        p = good_parts();
        p.link[0].inertia.about_com[i] = -1e-9;
        refused(&p, US_ERR_MASS, "link \"upper\"", 10, "negative");
    }
}

static void products_of_inertia_must_fit_the_moments(void **state) {
    (void)state;
    for (int i = 3; i < 6; i++) {
        parts p = good_parts();
        p.link[0].inertia.about_com[i] = 0.1001;
        refused(&p, US_ERR_MASS, "link \"upper\"", 10, "products");
        p.link[0].inertia.about_com[i] = -0.1001;
        refused(&p, US_ERR_MASS, "link \"upper\"", 10, "products");
        p.link[0].inertia.about_com[i] = 0.0999;
        us_model_destroy(contract_compile(spec_of(&p)));
    }
    // Each pair fits, the three together do not: the moment about (1, 1, 1) would be negative.
    parts p = good_parts();
    for (int i = 3; i < 6; i++)
        p.link[0].inertia.about_com[i] = -0.06;
    refused(&p, US_ERR_MASS, "link \"upper\"", 10, "products");
    // Thin rods and points are allowed.
    p = good_parts();
    p.link[0].inertia = (us_inertia){1, {0.5, 0.5, 0}, {0.5, 0.5, 1, -0.5, 0, 0}};
    us_model_destroy(contract_compile(spec_of(&p)));
    p.link[0].inertia = (us_inertia){1, {0.5, 0.5, 0}, {0}};
    us_model_destroy(contract_compile(spec_of(&p)));
}

static void joints_must_name_links_that_exist_and_differ(void **state) {
    (void)state;
    const int32_t bad[] = {-2, 3, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        parts p = good_parts();
        p.joint[1].parent = bad[i];
        refused(&p, US_ERR_TREE, "joint \"elbow\"", 21, "not a link");
        p = good_parts();
        p.joint[1].child = bad[i];
        refused(&p, US_ERR_TREE, "joint \"elbow\"", 21, "not a link");
    }
    parts p = good_parts();
    p.joint[1].child = US_WORLD;
    refused(&p, US_ERR_TREE, "joint \"elbow\"", 21, "not a link");
    p = good_parts();
    p.joint[1].parent = 1;
    refused(&p, US_ERR_TREE, "joint \"elbow\"", 21, "same link");
}

static void links_and_joints_must_form_a_tree(void **state) {
    (void)state;
    parts p = good_parts();
    p.n_joint = 4;
    p.joint[3].child = 1;
    refused(&p, US_ERR_TREE, "joint \"extra\"", 23, "already hangs on joint \"elbow\"");
    p = good_parts();
    p.n_link = 4;
    refused(&p, US_ERR_TREE, "link \"spare\"", 13, "no joint holds");
    // Two links that hold each other, beside a good robot.
    p = good_parts();
    p.joint[0].parent = 1;
    refused(&p, US_ERR_TREE, "joint \"shoulder\"", 20, "cycle");
    // A cycle of three, and nothing on the world at all.
    p.joint[0].parent = 1;
    p.joint[1].parent = 2;
    p.joint[2].parent = 0;
    refused(&p, US_ERR_TREE, "joint \"shoulder\"", 20, "cycle");
}

static void frames_axes_and_start_states_must_be_finite(void **state) {
    (void)state;
    for (int i = 0; i < 28; i++) {
        parts p = good_parts();
        us_joint_def *j = &p.joint[2];
        double *number = i < 4     ? &j->X_PF.q.w + i
                         : i < 7   ? &j->X_PF.p.x + (i - 4)
                         : i < 10  ? &j->axis.x + (i - 7)
                         : i < 13  ? &j->axis2.x + (i - 10)
                         : i < 20  ? &j->q0[i - 13]
                         : i < 26  ? &j->v0[i - 20]
                         : i == 26 ? &j->pitch
                                   : &j->rest;
        *number = i % 2 ? NAN : INFINITY;
        refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "not finite");
    }
}

static void axes_and_quaternions_must_not_be_zero(void **state) {
    (void)state;
    for (int type = 0; type < US_JOINT_COUNT; type++) {
        parts p = good_parts();
        p.n_drive = p.n_coupling = p.n_loop = 0;
        p.joint[2] = us_joint_def_default((us_joint_type)type);
        p.joint[2].name = "rail";
        p.joint[2].child = 2;
        p.joint[2].file = "robot.xml";
        p.joint[2].line = 22;
        p.joint[2].axis = us_vec3_make(0, 0, 0);
        bool has_axis = type != US_JOINT_FIXED && type != US_JOINT_SPHERICAL && type != US_JOINT_FLOATING;
        if (has_axis) {
            refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "axis is 0");
            p.joint[2].axis = us_vec3_make(0, 1e200, 0);
            refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "too long");
        } else {
            us_model_destroy(contract_compile(spec_of(&p)));
        }
        p.joint[2].axis = us_vec3_make(1, 0, 0);
        p.joint[2].X_PF.q = (us_quat){0, 0, 0, 0};
        refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "quaternion of its frame");
        p.joint[2].X_PF.q = (us_quat){1e200, 0, 0, 0};
        refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "quaternion of its frame");
        p.joint[2].X_PF.q = (us_quat){2, 0, 0, 0};
        p.joint[2].q0[0] = 0;
        if (type == US_JOINT_SPHERICAL || type == US_JOINT_FLOATING)
            refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "start state is 0");
    }
}

static void the_axes_of_a_universal_joint_must_not_be_parallel(void **state) {
    (void)state;
    parts p = good_parts();
    p.n_drive = p.n_coupling = p.n_loop = 0;
    p.joint[2].type = US_JOINT_UNIVERSAL;
    p.joint[2].axis = us_vec3_make(1, 2, 3);
    p.joint[2].axis2 = us_vec3_make(-2, -4, -6);
    refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "parallel");
    p.joint[2].axis2 = us_vec3_make(0, 0, 0);
    refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "parallel");
    // They need not be perpendicular.
    p.joint[2].axis2 = us_vec3_make(1, 2, 3.1);
    us_model_destroy(contract_compile(spec_of(&p)));
}

static void joint_terms_must_not_be_negative(void **state) {
    (void)state;
    const double bad[] = {-1e-9, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            parts p = good_parts();
            us_joint_def *j = &p.joint[0];
            double *const number[] = {&j->damping, &j->stiffness, &j->armature, &j->friction};
            *number[k] = bad[i];
            refused(&p, US_ERR_VALUE, "joint \"shoulder\"", 20, "negative or not finite");
        }
    }
    for (int k = 0; k < 2; k++) {
        parts p = good_parts();
        *(k ? &p.joint[0].effort : &p.joint[0].velocity) = k ? NAN : -1;
        refused(&p, US_ERR_VALUE, "joint \"shoulder\"", 20, "effort or velocity");
    }
    for (int k = 0; k < 2; k++) {
        parts p = good_parts();
        p.n_drive = p.n_coupling = p.n_loop = 0;
        p.joint[2] = us_joint_def_default(k ? US_JOINT_SPHERICAL : US_JOINT_FLOATING);
        p.joint[2].name = "rail";
        p.joint[2].child = 2;
        p.joint[2].stiffness = 1;
        p.joint[2].file = "robot.xml";
        p.joint[2].line = 22;
        refused(&p, US_ERR_VALUE, "joint \"rail\"", 22, "no spring");
    }
}

static void limits_must_be_in_order(void **state) {
    (void)state;
    parts p = good_parts();
    p.joint[0].has_limits = true;
    p.joint[0].lower = 1;
    p.joint[0].upper = -1;
    refused(&p, US_ERR_VALUE, "joint \"shoulder\"", 20, "lower limit");
    p.joint[0].upper = NAN;
    refused(&p, US_ERR_VALUE, "joint \"shoulder\"", 20, "lower limit");
    p.joint[0].has_limits = false;
    us_model_destroy(contract_compile(spec_of(&p)));
    p.joint[0].has_limits = true;
    p.joint[0].lower = -INFINITY;
    p.joint[0].upper = INFINITY;
    us_model_destroy(contract_compile(spec_of(&p)));
}

static void drives_must_fit_their_joints(void **state) {
    (void)state;
    const int32_t bad[] = {-1, 3, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        parts p = good_parts();
        p.drive[1].joint = bad[i];
        refused(&p, US_ERR_NAME, "drive \"motor b\"", 31, "does not exist");
        p = good_parts();
        p.drive[1].coordinate = i == 0 ? -1 : i;
        refused(&p, US_ERR_VALUE, "drive \"motor b\"", 31, "no such coordinate");
    }
    const us_joint_type without[] = {US_JOINT_FIXED, US_JOINT_SPHERICAL, US_JOINT_FLOATING};
    for (int i = 0; i < 3; i++) {
        parts p = good_parts();
        p.n_coupling = p.n_loop = 0;
        p.joint[1].type = without[i];
        p.joint[1].q0[0] = 1;
        refused(&p, US_ERR_VALUE, "drive \"motor b\"", 31, "no such coordinate");
    }
    for (int k = 0; k < 6; k++) {
        parts p = good_parts();
        us_drive_def *d = &p.drive[0];
        double *const number[] = {&d->kp, &d->kd, &d->limit, &d->position, &d->velocity, &d->torque};
        *number[k] = NAN;
        refused(&p, US_ERR_VALUE, "drive \"motor a\"", 30, "not finite");
        *number[k] = -1;
        if (k < 3) refused(&p, US_ERR_VALUE, "drive \"motor a\"", 30, "negative");
    }
}

static void couplings_must_fit_their_joints(void **state) {
    (void)state;
    parts p = good_parts();
    p.coupling.n_term = 0;
    refused(&p, US_ERR_VALUE, "coupling \"gear\"", 40, "no terms");
    p = good_parts();
    p.coupling.joint[1] = 3;
    refused(&p, US_ERR_NAME, "coupling \"gear\"", 40, "does not exist");
    p.coupling.joint[1] = -1;
    refused(&p, US_ERR_NAME, "coupling \"gear\"", 40, "does not exist");
    p = good_parts();
    p.coupling.coordinate[1] = 1;
    refused(&p, US_ERR_VALUE, "coupling \"gear\"", 40, "no such coordinate");
    p = good_parts();
    p.n_drive = p.n_loop = 0;
    p.joint[1].type = US_JOINT_SPHERICAL;
    p.joint[1].q0[0] = 1;
    refused(&p, US_ERR_VALUE, "coupling \"gear\"", 40, "no such coordinate");
    p = good_parts();
    p.coupling.factor[1] = NAN;
    refused(&p, US_ERR_VALUE, "coupling \"gear\"", 40, "not finite");
    p = good_parts();
    p.coupling.offset = INFINITY;
    refused(&p, US_ERR_VALUE, "coupling \"gear\"", 40, "not finite");
}

static void loops_must_join_links_that_move_against_each_other(void **state) {
    (void)state;
    const int32_t bad[] = {-2, 3};
    for (int i = 0; i < 2; i++) {
        parts p = good_parts();
        p.loop.link_a = bad[i];
        refused(&p, US_ERR_NAME, "loop \"chain\"", 50, "does not exist");
        p = good_parts();
        p.loop.link_b = bad[i];
        refused(&p, US_ERR_NAME, "loop \"chain\"", 50, "does not exist");
    }
    for (int i = 0; i < 14; i++) {
        parts p = good_parts();
        double *number = i < 7 ? &p.loop.X_AC.q.w + i : &p.loop.X_BD.q.w + (i - 7);
        *number = i % 2 ? NAN : INFINITY;
        refused(&p, US_ERR_VALUE, "loop \"chain\"", 50, "not finite");
    }
    for (int i = 0; i < 2; i++) {
        parts p = good_parts();
        (i ? &p.loop.X_AC : &p.loop.X_BD)->q = (us_quat){0, 0, 0, 0};
        refused(&p, US_ERR_VALUE, "loop \"chain\"", 50, "quaternion");
    }
    parts p = good_parts();
    p.loop.link_b = 1;
    refused(&p, US_ERR_CONSTRAINT, "loop \"chain\"", 50, "cannot move against");
    p.loop.link_a = p.loop.link_b = US_WORLD;
    refused(&p, US_ERR_CONSTRAINT, "loop \"chain\"", 50, "cannot move against");
    // Two links that a fixed joint has made one.
    p = good_parts();
    p.n_drive = p.n_coupling = 0;
    p.joint[1].type = US_JOINT_FIXED;
    p.loop.link_a = 0;
    p.loop.link_b = 1;
    refused(&p, US_ERR_CONSTRAINT, "loop \"chain\"", 50, "cannot move against");
}

static void long_names_do_not_break_the_error(void **state) {
    (void)state;
    char name[1000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    parts p = good_parts();
    p.joint[0].name = name;
    p.joint[0].damping = -1;
    us_spec *spec = spec_of(&p);
    us_model *model = NULL;
    us_error err;
    assert_int_equal(us_model_compile(spec, NULL, &model, &err), US_ERR_VALUE);
    assert_memory_equal(err.element, "joint \"nnn", 10);
    us_spec_destroy(spec);
}

// ---------------------------------------------------------------- warnings

static void a_joint_that_nothing_hangs_on_gets_an_armature_and_one_warning(void **state) {
    (void)state;
    const us_joint_type types[] = {US_JOINT_REVOLUTE, US_JOINT_PRISMATIC, US_JOINT_PLANAR, US_JOINT_SPHERICAL,
                                   US_JOINT_FLOATING};
    for (int i = 0; i < 5; i++) {
        us_spec *spec = contract_pendulum_spec();
        int32_t leaf = contract_link(spec, "leaf", 0, us_vec3_make(0, 0, 0), 0, 0, 0);
        contract_joint(spec, types[i], "leaf_joint", 0, leaf, us_vec3_make(0, 0, -1));
        us_model *m = NULL, *again = NULL;
        assert_int_equal(us_model_compile(spec, NULL, &m, NULL), US_OK);
        assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
        const us_error *w = us_spec_view_warning(spec, 0);
        assert_int_equal(w->code, US_OK);
        assert_string_equal(w->element, "joint \"leaf_joint\"");
        assert_true(strstr(w->message, "armature of 0.0001") && w->remedy[0] != 0);
        // Compiled again, it is not said again.
        assert_int_equal(us_model_compile(spec, NULL, &again, NULL), US_OK);
        assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
        us_dyn *d = NULL;
        us_model_counts n = us_model_get_counts(m);
        assert_int_equal(us_dyn_create(m, NULL, &d), US_OK);
        double q[8] = {0}, h[49];
        us_joint_info j = us_model_get_joint(m, us_model_find_joint(m, "leaf_joint"));
        if (types[i] == US_JOINT_SPHERICAL || types[i] == US_JOINT_FLOATING) q[j.first_q] = 1;
        assert_int_equal(us_dyn_mass_matrix(d, q, h), US_OK);
        for (int32_t k = 0; k < j.n_v; k++)
            assert_true(h[(j.first_v + k) * n.n_v + j.first_v + k] == 1e-4);
        us_sim *sim = contract_sim(m);
        for (int k = 0; k < 20; k++)
            assert_int_equal(us_sim_step(sim, NULL), US_OK);
        us_sim_destroy(sim);
        us_dyn_destroy(d);
        us_model_destroy(m);
        us_model_destroy(again);
        us_spec_destroy(spec);
    }
}

static void a_massless_link_with_an_armature_is_nobodys_business(void **state) {
    (void)state;
    us_spec *spec = contract_pendulum_spec();
    int32_t leaf = contract_link(spec, "leaf", 0, us_vec3_make(0, 0, 0), 0, 0, 0);
    us_joint_def j = contract_joint_def(US_JOINT_REVOLUTE, "leaf_joint", 0, leaf, us_vec3_make(0, 0, -1));
    j.armature = 0.1;
    contract_add_joint(spec, &j);
    us_model *m = NULL;
    assert_int_equal(us_model_compile(spec, NULL, &m, NULL), US_OK);
    assert_int_equal(us_spec_get_counts(spec).n_warning, 0);
    us_model_destroy(m);
    us_spec_destroy(spec);
}

static void a_start_outside_the_limits_is_a_warning_and_the_limit_pushes_back(void **state) {
    (void)state;
    for (int side = 0; side < 2; side++) {
        us_spec *spec = contract_pendulum_spec();
        us_joint_def j = *us_spec_view_joint(spec, 0);
        j.name = "hinge";  // the view is borrowed, and the spec goes before j does
        j.has_limits = true;
        j.lower = -0.5;
        j.upper = 0.5;
        j.q0[0] = side ? 0.6 : -0.6;
        j.file = "arm.urdf";
        j.line = 7;
        assert_int_equal(us_spec_set_joint(spec, 0, &j), US_OK);
        us_model *m = NULL;
        assert_int_equal(us_model_compile(spec, NULL, &m, NULL), US_OK);
        assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
        const us_error *w = us_spec_view_warning(spec, 0);
        assert_string_equal(w->element, "joint \"hinge\"");
        assert_string_equal(w->file, "arm.urdf");
        assert_int_equal(w->line, 7);
        assert_true(strstr(w->message, "outside its limits") && w->remedy[0] != 0);
        us_sim *sim = contract_sim(m);
        for (int k = 0; k < 500; k++)
            assert_int_equal(us_sim_step(sim, NULL), US_OK);
        assert_true(fabs(us_sim_view_q(sim)[0]) < 0.501);
        us_sim_destroy(sim);
        us_model_destroy(m);
        // Just on the limit is inside.
        us_spec_destroy(spec);
        spec = contract_pendulum_spec();
        j.q0[0] = side ? 0.5 : -0.5;
        assert_int_equal(us_spec_set_joint(spec, 0, &j), US_OK);
        assert_int_equal(us_model_compile(spec, NULL, &m, NULL), US_OK);
        assert_int_equal(us_spec_get_counts(spec).n_warning, 0);
        us_model_destroy(m);
        us_spec_destroy(spec);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_base_of_the_mistakes_is_itself_right),
        cmocka_unit_test(settings_of_the_world_are_checked),
        cmocka_unit_test(names_must_be_there_and_differ),
        cmocka_unit_test(groups_must_be_those_of_the_spec),
        cmocka_unit_test(rates_of_recordings_must_be_finite_and_not_negative),
        cmocka_unit_test(mass_properties_must_be_finite_and_not_negative),
        cmocka_unit_test(products_of_inertia_must_fit_the_moments),
        cmocka_unit_test(joints_must_name_links_that_exist_and_differ),
        cmocka_unit_test(links_and_joints_must_form_a_tree),
        cmocka_unit_test(frames_axes_and_start_states_must_be_finite),
        cmocka_unit_test(axes_and_quaternions_must_not_be_zero),
        cmocka_unit_test(the_axes_of_a_universal_joint_must_not_be_parallel),
        cmocka_unit_test(joint_terms_must_not_be_negative),
        cmocka_unit_test(limits_must_be_in_order),
        cmocka_unit_test(drives_must_fit_their_joints),
        cmocka_unit_test(couplings_must_fit_their_joints),
        cmocka_unit_test(loops_must_join_links_that_move_against_each_other),
        cmocka_unit_test(long_names_do_not_break_the_error),
        cmocka_unit_test(a_joint_that_nothing_hangs_on_gets_an_armature_and_one_warning),
        cmocka_unit_test(a_massless_link_with_an_armature_is_nobodys_business),
        cmocka_unit_test(a_start_outside_the_limits_is_a_warning_and_the_limit_pushes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
