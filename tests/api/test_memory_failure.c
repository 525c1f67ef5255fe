// Out of memory at every allocation, one after the other: a clean error, no leak, no crash, and nothing half
// made.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "contract_build.h"

enum { MOST = 100000 };  // an operation that still fails after so many allocations does not end

// Runs `attempt` with the n-th allocation failing, n = 1, 2, ... until it succeeds; once with that one alone
// failing, once with all later ones too. `attempt` returns the status and releases what it made.
static void at_every_allocation(us_status (*attempt)(test_allocator *t, void *context), void *context) {
    for (int keep = 0; keep < 2; keep++) {
        us_status status = US_ERR_MEMORY;
        int n_failed = 0;
        for (int n = 1; status != US_OK; n++) {
            assert_true(n < MOST);
            test_allocator t;
            test_allocator_init(&t);
            t.fail_at = n;
            t.keep_failing = keep;
            status = attempt(&t, context);
            test_allocator_check(&t);
            if (t.n_failed == 0) {
                assert_int_equal(status, US_OK);
            } else {
                if (status != US_ERR_MEMORY)
                    fail_msg("allocation %d: status %d, %s", n, (int)status, us_status_text(status));
                n_failed++;
            }
        }
        assert_true(n_failed > 0);
    }
}

static us_status build_spec(test_allocator *t, void *context) {
    us_spec *spec = NULL;
    us_status status =
        contract_spec(*(contract_world *)context, US_INTEGRATOR_MIDPOINT, &t->allocator, &spec);
    assert_true((spec == NULL) == (status != US_OK));
    us_spec_destroy(spec);
    return status;
}

static void building_a_spec(void **state) {
    (void)state;
    for (contract_world w = 0; w < CONTRACT_WORLD_COUNT; w++)
        at_every_allocation(build_spec, &w);
}

// Every kind of element, so many of each that lists grow; a failed call leaves the spec as it was and can be
// tried again.
static us_status add_everything(test_allocator *t, void *context) {
    (void)context;
    us_spec *spec = NULL;
    us_status status = us_spec_create(&t->allocator, &spec);
    if (status) return status;
    const char *values[] = {"time", "energy"};
    us_group_def group = {.name = "group", .file = "f"};
    us_link_def link = us_link_def_default();
    us_joint_def joint = us_joint_def_default(US_JOINT_REVOLUTE);
    us_shape_def shape = us_shape_def_default(US_SHAPE_MESH);
    us_coupling_def coupling = us_coupling_def_default();
    us_loop_def loop = us_loop_def_default(US_LOOP_POINT);
    us_drive_def drive = us_drive_def_default();
    us_record_def record = us_record_def_default();
    us_extension_def extension = {.tag = "gazebo", .xml = "<gazebo/>", .reference = "r", .file = "f"};
    us_error warning;
    us_error_set(&warning, US_OK, NULL, NULL, "w");
    us_world_settings world = us_world_settings_default();
    world.name = "a world";
    link.name = joint.name = coupling.name = loop.name = drive.name = "name";
    link.file = joint.file = shape.file = coupling.file = loop.file = drive.file = record.file = "file";
    shape.mesh = "mesh";
    shape.mesh_uri = "uri";
    shape.material = "paint";
    static const us_vec3 points[3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
    static const int32_t triangle[3] = {0, 1, 2};
    static const double heights[4] = {0, 1, 2, 3};
    us_shape_def part = us_shape_def_default(US_SHAPE_HEIGHT_FIELD);
    part.heights = heights;
    part.n_x = part.n_y = 2;
    shape.name = "shape";
    shape.surface = "rubber";
    shape.points = points;
    shape.n_point = 3;
    shape.triangles = triangle;
    shape.n_triangle = 1;
    shape.parts = &part;
    shape.n_part = 1;
    us_property property = {.key = "key", .type = US_PROPERTY_STRING, .text = "text"};
    us_material_def material = {.name = "rubber", .properties = &property, .n_property = 1, .file = "file"};
    us_pair_def pair = us_pair_def_default();
    pair.material_a = "rubber";
    pair.fidelity = "high";
    pair.parameters = &property;
    pair.n_parameter = 1;
    pair.file = "file";
    us_exclude_def exclude = {.link_a = US_WORLD, .file = "file"};
    record.file_name = "out.csv";
    record.n_value = 2;
    record.values = values;
    us_status first = US_OK;
    int failures = 0;
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 16; k++) {
            us_spec_counts before = us_spec_get_counts(spec);
            int32_t index = -7;
            switch (k) {
            case 0:
                status = us_spec_set_world(spec, &world);
                break;
            case 1:
                status = us_spec_add_group(spec, &group, &index);
                break;
            case 2:
                status = us_spec_add_link(spec, &link, &index);
                break;
            case 3:
                status = us_spec_add_joint(spec, &joint, &index);
                break;
            case 4:
                status = us_spec_add_shape(spec, &shape, &index);
                break;
            case 5:
                status = us_spec_add_coupling(spec, &coupling, &index);
                break;
            case 6:
                status = us_spec_add_loop(spec, &loop, &index);
                break;
            case 7:
                status = us_spec_add_drive(spec, &drive, &index);
                break;
            case 8:
                status = us_spec_add_record(spec, &record, &index);
                break;
            case 9:
                status = us_spec_add_extension(spec, &extension, &index);
                break;
            case 10:
                status = us_spec_add_warning(spec, &warning);
                break;
            case 11:
                status = us_spec_set_joint(spec, 0, &joint);
                break;
            case 12:
                status = us_spec_add_material(spec, &material, &index);
                break;
            case 13:
                status = us_spec_add_pair(spec, &pair, &index);
                break;
            case 14:
                status = us_spec_add_exclude(spec, &exclude, &index);
                break;
            default:
                status = us_spec_set_drive(spec, 0, &drive);
                break;
            }
            if (!status) continue;
            us_spec_counts after = us_spec_get_counts(spec);
            assert_memory_equal(&before, &after, sizeof before);
            assert_int_equal(index, -7);
            if (!first) first = status;
            if (++failures > 1000 || t->keep_failing) goto done;
            k--;  // once more, now with memory
        }
    }
    assert_int_equal(us_spec_get_counts(spec).n_extension, 20);
    assert_string_equal(us_spec_view_record(spec, 19)->values[1], "energy");
    assert_string_equal(us_spec_view_pair(spec, 19)->parameters[0].text, "text");
    assert_true(us_spec_view_shape(spec, 19)->parts[0].heights[3] == 3);
done:
    us_spec_destroy(spec);
    return first;
}

static void adding_every_kind_of_element(void **state) {
    (void)state;
    at_every_allocation(add_everything, NULL);
}

static us_status compile(test_allocator *t, void *context) {
    us_spec *spec = NULL;
    assert_int_equal(contract_spec(*(contract_world *)context, US_INTEGRATOR_MIDPOINT, NULL, &spec), US_OK);
    us_model *m = NULL;
    us_error err;
    memset(&err, 0, sizeof err);
    us_status status = us_model_compile(spec, &t->allocator, &m, &err);
    assert_true((m == NULL) == (status != US_OK));
    if (status) assert_true(err.code == US_ERR_MEMORY && err.message[0] != 0 && err.remedy[0] != 0);
    us_model_destroy(m);
    us_spec_destroy(spec);
    return status;
}

static void compiling_a_model(void **state) {
    (void)state;
    for (contract_world w = 0; w < CONTRACT_WORLD_COUNT; w++)
        at_every_allocation(compile, &w);
}

// Here the spec's memory runs out, when a warning is to be added.
static us_status compile_with_warning(test_allocator *t, void *context) {
    (void)context;
    us_spec *spec = NULL;
    int64_t fail_at = t->fail_at;
    t->fail_at = 0;
    assert_int_equal(us_spec_create(&t->allocator, &spec), US_OK);
    int32_t leaf = contract_link(spec, "leaf", 0, us_vec3_make(0, 0, 0), 0, 0, 0);
    contract_joint(spec, US_JOINT_REVOLUTE, "joint", US_WORLD, leaf, us_vec3_make(0, 0, 0));
    t->fail_at = t->n_alloc + fail_at;
    us_model *m = NULL;
    us_error err;
    us_status status = us_model_compile(spec, NULL, &m, &err);
    if (status) assert_true(err.code == US_ERR_MEMORY && err.remedy[0] != 0);
    if (!status) assert_int_equal(us_spec_get_counts(spec).n_warning, 1);
    us_model_destroy(m);
    us_spec_destroy(spec);
    return status;
}

static void compiling_a_model_with_a_warning(void **state) {
    (void)state;
    at_every_allocation(compile_with_warning, NULL);
}

static us_status create_sim(test_allocator *t, void *context) {
    us_sim_def def = us_sim_def_default();
    def.allocator = t->allocator;
    us_sim *sim = NULL;
    us_error err;
    memset(&err, 0, sizeof err);
    us_status status = us_sim_create(context, &def, &sim, &err);
    assert_true((sim == NULL) == (status != US_OK));
    if (status) assert_true(err.code == US_ERR_MEMORY && err.message[0] != 0 && err.remedy[0] != 0);
    if (!status) assert_int_equal(us_sim_step(sim, NULL), US_OK);
    us_sim_destroy(sim);
    return status;
}

static us_status create_dyn(test_allocator *t, void *context) {
    us_dyn *d = NULL;
    us_status status = us_dyn_create(context, &t->allocator, &d);
    assert_true((d == NULL) == (status != US_OK));
    us_dyn_destroy(d);
    return status;
}

static void creating_a_sim_and_a_work_space(void **state) {
    (void)state;
    for (contract_world w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        us_model *m = contract_model(w, US_INTEGRATOR_ADAPTIVE);
        at_every_allocation(create_sim, m);
        at_every_allocation(create_dyn, m);
        us_model_destroy(m);
    }
}

static const char SCENE[] =
    "<?xml version=\"1.0\"?>\n"
    "<scene name=\"small\" version=\"1\">\n"
    "  <parameter name=\"length\" value=\"0.3\"/>\n"
    "  <world step=\"1 ms\" duration=\"1 s\"/>\n"
    "  <default name=\"soft\"><joint stiffness=\"20\" damping=\"0.2\"/></default>\n"
    "  <object name=\"thing\" xyz=\"0 0 1\" default=\"soft\">\n"
    "    <link name=\"box\" density=\"500\"><shape type=\"box\" size=\"0.1 0.1 0.3\"/></link>\n"
    "    <joint name=\"joint\" type=\"prismatic\" parent=\"world\" child=\"box\" axis=\"0 1 0\" q=\"10 "
    "cm\"/>\n"
    "  </object>\n"
    "</scene>\n";

static const char ROBOT[] =
    "<?xml version=\"1.0\"?>\n"
    "<robot name=\"two\">\n"
    "  <material name=\"red\"><color rgba=\"1 0 0 1\"/></material>\n"
    "  <link name=\"base\"/>\n"
    "  <link name=\"arm\">\n"
    "    <inertial><origin xyz=\"0 0 0.1\" rpy=\"0 0 0\"/><mass value=\"1\"/><inertia ixx=\"0.1\" "
    "iyy=\"0.1\" izz=\"0.1\" "
    "ixy=\"0\" ixz=\"0\" iyz=\"0\"/></inertial>\n"
    "    <visual><geometry><box size=\"1 1 1\"/></geometry><material name=\"red\"/></visual>\n"
    "  </link>\n"
    "  <joint name=\"hinge\" type=\"revolute\"><parent link=\"base\"/><child link=\"arm\"/><axis xyz=\"0 0 "
    "1\"/>"
    "<limit lower=\"-1\" upper=\"1\" effort=\"5\" velocity=\"1\"/><dynamics damping=\"0.1\"/></joint>\n"
    "  <gazebo reference=\"arm\"><mu1>0.2</mu1></gazebo>\n"
    "</robot>\n";

static us_status load(test_allocator *t, void *context) {
    const char *text = context;
    us_load_def def = us_load_def_default();
    def.allocator = t->allocator;
    us_spec *spec = NULL;
    us_error err;
    memset(&err, 0, sizeof err);
    us_status status = us_spec_load_text(text, strlen(text), "memory.xml", &def, &spec, &err);
    assert_true((spec == NULL) == (status != US_OK));
    if (status) assert_true(err.code == status && err.message[0] != 0 && err.remedy[0] != 0);
    us_spec_destroy(spec);
    return status;
}

// libxml2 has its own heap; what is ours fails here.
static void loading_a_scene_and_a_robot(void **state) {
    (void)state;
    char scene[sizeof SCENE], robot[sizeof ROBOT];
    memcpy(scene, SCENE, sizeof SCENE);
    memcpy(robot, ROBOT, sizeof ROBOT);
    at_every_allocation(load, scene);
    at_every_allocation(load, robot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(building_a_spec),
        cmocka_unit_test(adding_every_kind_of_element),
        cmocka_unit_test(compiling_a_model),
        cmocka_unit_test(compiling_a_model_with_a_warning),
        cmocka_unit_test(creating_a_sim_and_a_work_space),
        cmocka_unit_test(loading_a_scene_and_a_robot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
