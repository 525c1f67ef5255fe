// understudy info: what a compiled model consists of, down to every array.
#include <string.h>

#include "cli.h"

// The fields of model, state and scratch, counted through.
static int32_t n_field(const cli_world *world) {
    return us_model_n_field(world->model) + us_sim_n_field(world->sim);
}

static us_field_info get_field(const cli_world *world, int32_t i) {
    int32_t n_model = us_model_n_field(world->model);
    return i < n_model ? us_model_get_field(world->model, i) : us_sim_get_field(world->sim, i - n_model);
}

static size_t bytes_of(const cli_world *world, const char *block) {
    size_t sum = 0;
    for (int32_t i = 0; i < n_field(world); i++) {
        us_field_info field = get_field(world, i);
        if (strcmp(field.block, block) == 0) sum += field.bytes;
    }
    return sum;
}

static void print_counts(const cli_world *world, const us_model_counts *n) {
    printf("bodies %d, joints %d, drives %d, trees %d, moving nodes %d\n", (int)n->n_body, (int)n->n_joint,
           (int)n->n_drive, (int)n->n_tree, (int)n->n_node);
    printf("shapes that collide %d (n_geom), materials %d (n_material)\n", (int)n->n_geom,
           (int)n->n_material);
    printf("positions %d (n_q), velocities %d (n_v), constraint rows %d (n_row)\n", (int)n->n_q, (int)n->n_v,
           (int)n->n_row);
    us_vec3 g = us_model_get_gravity(world->model);
    printf("step %.9g s, integrator %s, gravity (%.9g, %.9g, %.9g) m/s^2\n", us_model_get_step(world->model),
           us_integrator_name(us_model_get_integrator(world->model)), g.x, g.y, g.z);
    printf("memory: model %zu bytes, state %zu bytes, scratch %zu bytes\n", n->model_bytes,
           bytes_of(world, "state"), bytes_of(world, "scratch"));
    printf("hash: model %016llx, state at start %016llx\n", (unsigned long long)us_model_hash(world->model),
           (unsigned long long)us_sim_hash(world->sim));
}

static const char *body_name(const us_model *model, us_body body) {
    const char *name = us_model_body_name(model, body);
    return name ? name : "the world";
}

static void print_text(const cli_load *load, const cli_world *world) {
    const us_model *model = world->model;
    us_model_counts n = us_model_get_counts(model);
    printf("%s\n", load->file);
    print_counts(world, &n);

    printf("\njoints: index, name, type, parent -> child, positions in q, velocities in v\n");
    for (int32_t i = 0; i < n.n_joint; i++) {
        us_joint_info j = us_model_get_joint(model, (us_joint){i});
        printf("  %3d %-28s %-11s %s -> %s", (int)i, us_model_joint_name(model, (us_joint){i}),
               us_joint_type_name(j.type), body_name(model, j.parent), body_name(model, j.child));
        if (j.n_q == 1) printf("  q[%d] v[%d]", (int)j.first_q, (int)j.first_v);
        if (j.n_q > 1)
            printf("  q[%d..%d] v[%d..%d]", (int)j.first_q, (int)(j.first_q + j.n_q - 1), (int)j.first_v,
                   (int)(j.first_v + j.n_v - 1));
        putchar('\n');
    }
    printf("\nbodies: index, name, mass of the link alone (kg), centre of mass (m, link axes)\n");
    for (int32_t i = 0; i < n.n_body; i++) {
        us_inertia inertia = us_model_get_inertia(model, (us_body){i});
        printf("  %3d %-28s %12.6g  (%.6g, %.6g, %.6g)\n", (int)i, us_model_body_name(model, (us_body){i}),
               inertia.mass, inertia.com.x, inertia.com.y, inertia.com.z);
    }
    printf("\ndrives: index, name, joint\n");
    for (int32_t i = 0; i < n.n_drive; i++) {
        const char *joint = us_model_joint_name(model, us_model_get_drive_joint(model, (us_drive){i}));
        printf("  %3d %-28s %s\n", (int)i, us_model_drive_name(model, (us_drive){i}), joint ? joint : "?");
    }
    printf("\nshapes that collide: index, kind, body, material\n");
    for (int32_t i = 0; i < n.n_geom; i++) {
        us_geom_info g = us_model_get_geom(model, i);
        printf("  %3d %-13s %-28s %s\n", (int)i, us_geom_kind_name(g.kind), body_name(model, g.body),
               us_model_material_name(model, g.material));
    }
    printf("\nmaterials: index, name\n");
    for (int32_t i = 0; i < n.n_material; i++)
        printf("  %3d %s\n", (int)i, us_model_material_name(model, (us_material){i}));
    cli_print_interfaces(world->spec, "\n");
    printf("\nfields: block, name, type, count, bytes, unit, meaning\n");
    for (int32_t i = 0; i < n_field(world); i++) {
        us_field_info f = get_field(world, i);
        printf("  %-8s %-20s %-10s %8zu %10zu  %-14s %s\n", f.block, f.name, f.type, f.count, f.bytes, f.unit,
               f.about);
    }
}

static void json_joints(cli_json *json, const us_model *model, int32_t n) {
    cli_json_begin(json, "joints", '[');
    for (int32_t i = 0; i < n; i++) {
        us_joint_info j = us_model_get_joint(model, (us_joint){i});
        cli_json_begin_short(json, NULL, '{');
        cli_json_integer(json, "index", i);
        cli_json_text(json, "name", us_model_joint_name(model, (us_joint){i}));
        cli_json_text(json, "type", us_joint_type_name(j.type));
        cli_json_text(json, "parent", us_model_body_name(model, j.parent));
        cli_json_text(json, "child", us_model_body_name(model, j.child));
        cli_json_integer(json, "first_q", j.first_q);
        cli_json_integer(json, "n_q", j.n_q);
        cli_json_integer(json, "first_v", j.first_v);
        cli_json_integer(json, "n_v", j.n_v);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_bodies(cli_json *json, const us_model *model, int32_t n) {
    cli_json_begin(json, "bodies", '[');
    for (int32_t i = 0; i < n; i++) {
        us_inertia inertia = us_model_get_inertia(model, (us_body){i});
        cli_json_begin_short(json, NULL, '{');
        cli_json_integer(json, "index", i);
        cli_json_text(json, "name", us_model_body_name(model, (us_body){i}));
        cli_json_number(json, "mass", inertia.mass);
        cli_json_vector(json, "com", inertia.com);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_drives(cli_json *json, const us_model *model, int32_t n) {
    cli_json_begin(json, "drives", '[');
    for (int32_t i = 0; i < n; i++) {
        cli_json_begin_short(json, NULL, '{');
        cli_json_integer(json, "index", i);
        cli_json_text(json, "name", us_model_drive_name(model, (us_drive){i}));
        cli_json_text(json, "joint",
                      us_model_joint_name(model, us_model_get_drive_joint(model, (us_drive){i})));
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_shapes(cli_json *json, const us_model *model, int32_t n) {
    cli_json_begin(json, "shapes", '[');
    for (int32_t i = 0; i < n; i++) {
        us_geom_info g = us_model_get_geom(model, i);
        cli_json_begin_short(json, NULL, '{');
        cli_json_integer(json, "index", i);
        cli_json_text(json, "kind", us_geom_kind_name(g.kind));
        cli_json_text(json, "body", us_model_body_name(model, g.body));
        cli_json_text(json, "material", us_model_material_name(model, g.material));
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_materials(cli_json *json, const us_model *model, int32_t n) {
    cli_json_begin(json, "materials", '[');
    for (int32_t i = 0; i < n; i++) {
        cli_json_begin_short(json, NULL, '{');
        cli_json_integer(json, "index", i);
        cli_json_text(json, "name", us_model_material_name(model, (us_material){i}));
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_fields(cli_json *json, const cli_world *world) {
    cli_json_begin(json, "fields", '[');
    for (int32_t i = 0; i < n_field(world); i++) {
        us_field_info f = get_field(world, i);
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "block", f.block);
        cli_json_text(json, "name", f.name);
        cli_json_text(json, "type", f.type);
        cli_json_integer(json, "count", (int64_t)f.count);
        cli_json_integer(json, "bytes", (int64_t)f.bytes);
        cli_json_text(json, "unit", f.unit);
        cli_json_text(json, "about", f.about);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_tables(cli_json *json, const cli_world *world, const us_model_counts *n) {
    const us_model *model = world->model;
    json_joints(json, model, n->n_joint);
    json_bodies(json, model, n->n_body);
    json_drives(json, model, n->n_drive);
    json_shapes(json, model, n->n_geom);
    json_materials(json, model, n->n_material);
    json_fields(json, world);
}

static void print_json(const cli_load *load, const cli_world *world) {
    const us_model *model = world->model;
    us_model_counts n = us_model_get_counts(model);
    const char *const names[] = {"n_body", "n_joint", "n_drive", "n_tree", "n_node",
                                 "n_q",    "n_v",     "n_row",   "n_geom", "n_material"};
    const int32_t values[] = {n.n_body, n.n_joint, n.n_drive, n.n_tree, n.n_node,
                              n.n_q,    n.n_v,     n.n_row,   n.n_geom, n.n_material};
    char hash[20];
    cli_json json = {.out = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "file", load->file);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        cli_json_integer(&json, names[i], values[i]);
    cli_json_number(&json, "step", us_model_get_step(model));
    cli_json_text(&json, "integrator", us_integrator_name(us_model_get_integrator(model)));
    cli_json_vector(&json, "gravity", us_model_get_gravity(model));
    cli_json_integer(&json, "model_bytes", (int64_t)n.model_bytes);
    cli_json_integer(&json, "state_bytes", (int64_t)bytes_of(world, "state"));
    cli_json_integer(&json, "scratch_bytes", (int64_t)bytes_of(world, "scratch"));
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)us_model_hash(model));
    cli_json_text(&json, "model_hash", hash);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)us_sim_hash(world->sim));
    cli_json_text(&json, "state_hash", hash);
    json_tables(&json, world, &n);
    cli_json_interfaces(&json, world->spec);
    cli_json_end(&json);
}

static int run(const cli_command *command, int argc, char **argv) {
    cli_load load = {0};
    bool is_json = false;
    const cli_option table[] = {
        {"json", CLI_FLAG, &is_json, NULL, "the same as JSON"},
        CLI_LOAD_OPTIONS(load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &load.file);
    if (code != CLI_GO_ON) return code;
    cli_world world;
    code = cli_load_spec(&load, US_BASE_FIXED, &world);
    if (code == CLI_GO_ON) code = cli_compile(&world);
    if (code == CLI_GO_ON) code = cli_create_sim(&world, NULL);
    if (code == CLI_GO_ON) {
        cli_print_warnings(stderr, world.spec);
        if (is_json) {
            print_json(&load, &world);
        } else {
            print_text(&load, &world);
        }
        code = CLI_OK;
    }
    cli_world_fini(&world);
    return code;
}

const cli_command cli_command_info = {
    .name = "info",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "list indices, memory and every field of the compiled model",
    .about = "The joint table says where each joint stands in q and v; the field table says what the model, "
             "the state (all that a\n"
             "snapshot holds) and the scratch consist of.\n",
    .run = run,
};
