// understudy eval: all that the equations of motion say about one state, in numbers that others can check.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "state.h"

// Everything that is printed. Vectors in the order of the model.
typedef struct results {
    us_model_counts n;
    double *mass_matrix;                 // n_v x n_v
    double *bias, *passive;              // n_v
    double *forward, *inverse;           // n_v
    double *constrained, *lambda, *phi;  // n_v, n_row, n_row; only when there are rows
    int32_t rank;
    us_energy energy;
    us_momentum momentum;
    us_pose *pose;                   // n_body
    us_twist *twist, *acceleration;  // n_body
    int32_t *order;                  // joints with coordinates, by their place in v
    int32_t n_order;
} results;

static const char *const conventions[][2] = {
    {"units", "SI: m, kg, s, rad, N, N m, J"},
    {"world", "right-handed, z up"},
    {"quaternion", "w, x, y, z (Hamilton), unit length, rotates link axes to world axes"},
    {"spatial_order", "angular, then linear"},
    {"floating_joint",
     "position: quaternion w x y z, then x y z; velocity: angular then linear, both in the link's own axes"},
    {"spherical_joint", "position: quaternion w x y z; velocity: angular velocity in the child link's axes"},
    {"base", "position and quaternion of the root link in the world; twist in the base's axes unless its "
             "frame is \"world\""},
    {"accelerations", "time derivatives of the velocities v"},
    {"mass_matrix", "row-major, order of v, armature included"},
    {"bias", "torques that hold the accelerations at 0: Coriolis, centrifugal, gravity, minus passive"},
    {"passive", "torques of the joints' dampers and springs; contained in bias with the opposite sign"},
    {"forward", "accelerations caused by the given torques and wrenches, without loops and couplings"},
    {"forward_constrained", "the same with loops and couplings"},
    {"inverse",
     "torques that cause the given accelerations (0 where none are given), wrenches taken into account"},
    {"potential_energy", "gravity (0 at the world's origin) and joint springs"},
    {"momentum", "of everything that moves; angular about the common centre of mass, world axes"},
    {"links",
     "position of the link's origin in the world; velocities in world axes, linear at the link's origin"},
    {"wrenches", "at the link's origin, world axes"},
    {"drives", "ignored: only the torques of the state act"},
    {"dry_friction", "ignored"},
};

enum { N_CONVENTION = sizeof conventions / sizeof conventions[0] };

static void results_fini(results *x) {
    void *all[] = {x->mass_matrix, x->bias, x->passive, x->forward, x->inverse,      x->constrained,
                   x->lambda,      x->phi,  x->pose,    x->twist,   x->acceleration, x->order};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    memset(x, 0, sizeof *x);
}

static double *vector(int32_t n) { return cli_allocate((size_t)n, sizeof(double)); }

// Dampers and springs alone: what they give at this state.
static void compute_passive(const us_spec *spec, const us_model *model, const cli_state *state, results *x) {
    for (int32_t j = 0; j < x->n.n_joint; j++) {
        us_joint_info info = us_model_get_joint(model, (us_joint){j});
        const us_joint_def *def = us_spec_view_joint(spec, j);
        for (int32_t i = 0; i < info.n_v; i++) {
            double torque = -def->damping * state->v[info.first_v + i];
            if (def->stiffness != 0 && info.n_q == info.n_v)
                torque -= def->stiffness * (state->q[info.first_q + i] - def->rest);
            x->passive[info.first_v + i] = torque;
        }
    }
}

static void compute_order(const us_model *model, results *x) {
    x->order = cli_allocate((size_t)x->n.n_v + 1, sizeof *x->order);
    int32_t *joint_at = cli_allocate((size_t)x->n.n_v + 1, sizeof *joint_at);
    for (int32_t i = 0; i < x->n.n_v; i++)
        joint_at[i] = -1;
    for (int32_t j = 0; j < x->n.n_joint; j++) {
        us_joint_info info = us_model_get_joint(model, (us_joint){j});
        if (info.n_v > 0) joint_at[info.first_v] = j;
    }
    for (int32_t i = 0; i < x->n.n_v; i++) {
        if (joint_at[i] >= 0) x->order[x->n_order++] = joint_at[i];
    }
    free(joint_at);
}

// The first call that fails ends it; `out_what` says which.
static us_status compute(const cli_world *world, const cli_state *s, results *x, const char **out_what) {
    us_model_counts n = us_model_get_counts(world->model);
    *x = (results){.n = n};
    x->mass_matrix = cli_allocate((size_t)n.n_v * (size_t)n.n_v, sizeof(double));
    x->bias = vector(n.n_v);
    x->passive = vector(n.n_v);
    x->forward = vector(n.n_v);
    x->inverse = vector(n.n_v);
    x->constrained = vector(n.n_v);
    x->lambda = vector(n.n_row);
    x->phi = vector(n.n_row);
    x->pose = cli_allocate((size_t)n.n_body, sizeof *x->pose);
    x->twist = cli_allocate((size_t)n.n_body, sizeof *x->twist);
    x->acceleration = cli_allocate((size_t)n.n_body, sizeof *x->acceleration);
    compute_order(world->model, x);
    compute_passive(world->spec, world->model, s, x);

    us_dyn *dyn;
    *out_what = "work space";
    us_status status = us_dyn_create(world->model, NULL, &dyn);
    if (status != US_OK) return status;
    const us_wrench *wrench = s->has_wrench ? s->wrench : NULL;
    double *K = cli_allocate((size_t)n.n_row * (size_t)n.n_v, sizeof(double));
#define TRY(what, call) \
    if (status == US_OK) *out_what = what, status = call
    TRY("mass matrix", us_dyn_mass_matrix(dyn, s->q, x->mass_matrix));
    TRY("bias", us_dyn_bias(dyn, s->q, s->v, x->bias));
    TRY("inverse dynamics", us_dyn_inverse(dyn, s->q, s->v, s->a, wrench, x->inverse));
    TRY("forward dynamics", us_dyn_forward(dyn, s->q, s->v, s->tau, wrench, x->forward));
    TRY("energy", us_dyn_energy(dyn, s->q, s->v, &x->energy));
    TRY("momentum", us_dyn_momentum(dyn, s->q, s->v, &x->momentum));
    TRY("poses", us_dyn_poses(dyn, s->q, x->pose));
    TRY("twists", us_dyn_twists(dyn, s->q, s->v, x->twist));
    if (s->has_a) TRY("accelerations", us_dyn_accelerations(dyn, s->q, s->v, s->a, x->acceleration));
    if (n.n_row > 0) {
        TRY("constraints", us_dyn_constraints(dyn, s->q, x->phi, K));
        TRY("constrained forward dynamics",
            us_dyn_forward_constrained(dyn, s->q, s->v, s->tau, wrench, x->constrained, x->lambda, &x->rank));
    }
#undef TRY
    free(K);
    us_dyn_destroy(dyn);
    return status;
}

static const char *base_of(const cli_world *world) {
    if (!world->is_robot) return "scene";
    return us_spec_view_group(world->spec, 0)->is_floating ? "floating" : "fixed";
}

// ---- as text ----

static void print_vector(const char *title, const us_model *model, const double *x, int32_t n,
                         bool is_position) {
    printf("\n%s\n", title);
    for (int32_t i = 0; i < n; i++) {
        char name[256];
        if (is_position) {
            us_model_position_name(model, i, name, sizeof name);
        } else {
            us_model_velocity_name(model, i, name, sizeof name);
        }
        printf("  %3d %-28s % .12g\n", (int)i, name, x[i]);
    }
}

static void print_links(const cli_world *world, const results *x) {
    printf("\nlinks: position (m), quaternion (w x y z), angular velocity (rad/s), linear velocity (m/s), "
           "world axes\n");
    for (int32_t i = 0; i < x->n.n_body; i++) {
        us_pose X = x->pose[i];
        us_twist V = x->twist[i];
        printf("  %s\n    position (% .9g, % .9g, % .9g)  quaternion (% .9g, % .9g, % .9g, % .9g)\n",
               us_model_body_name(world->model, (us_body){i}), X.p.x, X.p.y, X.p.z, X.q.w, X.q.x, X.q.y,
               X.q.z);
        printf("    angular (% .9g, % .9g, % .9g)  linear (% .9g, % .9g, % .9g)\n", V.w.x, V.w.y, V.w.z,
               V.v.x, V.v.y, V.v.z);
    }
}

static void print_text(const cli_load *load, const cli_world *world, const cli_state *s, const results *x) {
    const us_model *model = world->model;
    us_vec3 g = us_model_get_gravity(model);
    const char *base = base_of(world);
    printf("%s: %s%s, %d positions, %d velocities, gravity (%.9g, %.9g, %.9g) m/s^2\n", load->file,
           world->is_robot ? "robot, base " : "", base, (int)x->n.n_q, (int)x->n.n_v, g.x, g.y, g.z);
    printf("\nconventions\n");
    for (int32_t i = 0; i < N_CONVENTION; i++)
        printf("  %-20s %s\n", conventions[i][0], conventions[i][1]);
    printf("\njoints, in the order of every vector and matrix below: name, type, q, v\n");
    for (int32_t k = 0; k < x->n_order; k++) {
        us_joint_info j = us_model_get_joint(model, (us_joint){x->order[k]});
        printf("  %-28s %-11s q[%d..%d] v[%d..%d]\n", us_model_joint_name(model, (us_joint){x->order[k]}),
               us_joint_type_name(j.type), (int)j.first_q, (int)(j.first_q + j.n_q - 1), (int)j.first_v,
               (int)(j.first_v + j.n_v - 1));
    }
    print_vector("positions q", model, s->q, x->n.n_q, true);
    print_vector("velocities v", model, s->v, x->n.n_v, false);
    printf("\nmass matrix (row-major, order of v)\n");
    for (int32_t i = 0; i < x->n.n_v; i++) {
        for (int32_t j = 0; j < x->n.n_v; j++)
            printf(" % 16.9e", x->mass_matrix[(size_t)i * (size_t)x->n.n_v + (size_t)j]);
        putchar('\n');
    }
    print_vector("bias (torques that hold the accelerations at 0)", model, x->bias, x->n.n_v, false);
    if (s->has_tau) print_vector("torques given", model, s->tau, x->n.n_v, false);
    print_vector("forward dynamics: accelerations, without loops and couplings", model, x->forward, x->n.n_v,
                 false);
    if (s->has_a) {
        print_vector("accelerations given", model, s->a, x->n.n_v, false);
        print_vector("inverse dynamics: torques for these accelerations", model, x->inverse, x->n.n_v, false);
    }
    if (x->n.n_row > 0) {
        print_vector("forward dynamics with loops and couplings: accelerations", model, x->constrained,
                     x->n.n_v, false);
        printf("\nconstraint rows: %d, independent %d; residual, force\n", (int)x->n.n_row, (int)x->rank);
        for (int32_t i = 0; i < x->n.n_row; i++)
            printf("  %3d % .9e % .9e\n", (int)i, x->phi[i], x->lambda[i]);
    }
    us_momentum m = x->momentum;
    printf("\nenergy (J): kinetic %.12g, potential %.12g, total %.12g\n", x->energy.kinetic,
           x->energy.potential, x->energy.kinetic + x->energy.potential);
    printf("momentum: mass %.12g kg, com (%.9g, %.9g, %.9g) m\n  linear (%.9g, %.9g, %.9g) kg m/s\n  angular "
           "(%.9g, %.9g, %.9g) kg m^2/s about the "
           "com\n",
           m.mass, m.com.x, m.com.y, m.com.z, m.linear.x, m.linear.y, m.linear.z, m.angular.x, m.angular.y,
           m.angular.z);
    print_links(world, x);
    int32_t n_drive = us_spec_get_counts(world->spec).n_drive;
    if (n_drive > 0) printf("\nnote: the file has %d drives; they are ignored here\n", (int)n_drive);
}

// ---- as JSON ----

static void json_joints(cli_json *json, const us_model *model, const results *x) {
    cli_json_begin(json, "joints", '[');
    for (int32_t k = 0; k < x->n_order; k++) {
        us_joint_info j = us_model_get_joint(model, (us_joint){x->order[k]});
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", us_model_joint_name(model, (us_joint){x->order[k]}));
        cli_json_text(json, "type", us_joint_type_name(j.type));
        cli_json_integer(json, "q", j.first_q);
        cli_json_integer(json, "n_q", j.n_q);
        cli_json_integer(json, "v", j.first_v);
        cli_json_integer(json, "n_v", j.n_v);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_links(cli_json *json, const cli_world *world, const cli_state *s, const results *x) {
    cli_json_begin(json, "links", '{');
    for (int32_t i = 0; i < x->n.n_body; i++) {
        us_pose X = x->pose[i];
        double q[4] = {X.q.w, X.q.x, X.q.y, X.q.z};
        cli_json_begin(json, us_model_body_name(world->model, (us_body){i}), '{');
        cli_json_vector(json, "position", X.p);
        cli_json_numbers(json, "quaternion", q, 4);
        cli_json_vector(json, "angular_velocity", x->twist[i].w);
        cli_json_vector(json, "linear_velocity", x->twist[i].v);
        if (s->has_a) {
            cli_json_vector(json, "angular_acceleration", x->acceleration[i].w);
            cli_json_vector(json, "linear_acceleration", x->acceleration[i].v);
        }
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_warning(void *context, const us_error *warning, int32_t n_times) {
    cli_json_error(context, NULL, warning, n_times);
}

static void print_json(const cli_load *load, const cli_world *world, const cli_state *s, const results *x) {
    size_t n_v = (size_t)x->n.n_v, n_row = (size_t)x->n.n_row;
    cli_json json = {.out = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "file", load->file);
    cli_json_text(&json, "base", base_of(world));
    cli_json_begin(&json, "conventions", '{');
    for (int32_t i = 0; i < N_CONVENTION; i++)
        cli_json_text(&json, conventions[i][0], conventions[i][1]);
    cli_json_end(&json);
    cli_json_vector(&json, "gravity", us_model_get_gravity(world->model));
    json_joints(&json, world->model, x);
    cli_json_numbers(&json, "positions", s->q, (size_t)x->n.n_q);
    cli_json_numbers(&json, "velocities", s->v, n_v);
    cli_json_numbers(&json, "torques", s->tau, n_v);
    cli_json_numbers(&json, "accelerations", s->a, n_v);
    cli_json_begin(&json, "mass_matrix", '[');
    for (size_t i = 0; i < n_v; i++)
        cli_json_numbers(&json, NULL, x->mass_matrix + i * n_v, n_v);
    cli_json_end(&json);
    cli_json_numbers(&json, "bias", x->bias, n_v);
    cli_json_numbers(&json, "passive", x->passive, n_v);
    cli_json_numbers(&json, "forward", x->forward, n_v);
    cli_json_numbers(&json, "inverse", x->inverse, n_v);
    if (n_row > 0) {
        cli_json_numbers(&json, "forward_constrained", x->constrained, n_v);
        cli_json_begin(&json, "constraints", '{');
        cli_json_integer(&json, "rows", x->n.n_row);
        cli_json_integer(&json, "independent", x->rank);
        cli_json_numbers(&json, "residuals", x->phi, n_row);
        cli_json_numbers(&json, "forces", x->lambda, n_row);
        cli_json_end(&json);
    }
    cli_json_begin_short(&json, "energy", '{');
    cli_json_number(&json, "kinetic", x->energy.kinetic);
    cli_json_number(&json, "potential", x->energy.potential);
    cli_json_number(&json, "total", x->energy.kinetic + x->energy.potential);
    cli_json_end(&json);
    cli_json_begin(&json, "momentum", '{');
    cli_json_number(&json, "mass", x->momentum.mass);
    cli_json_vector(&json, "com", x->momentum.com);
    cli_json_vector(&json, "linear", x->momentum.linear);
    cli_json_vector(&json, "angular", x->momentum.angular);
    cli_json_end(&json);
    json_links(&json, world, s, x);
    cli_json_integer(&json, "drives_ignored", us_spec_get_counts(world->spec).n_drive);
    cli_json_begin(&json, "warnings", '[');
    cli_each_warning(world->spec, json_warning, &json);
    cli_json_end(&json);
    cli_json_end(&json);
}

// ---- the command ----

static int set_gravity(us_spec *spec, const char *text) {
    us_world_settings def = *us_spec_view_world(spec);
    if (!cli_parse_vector(text, &def.gravity)) {
        return cli_fail(CLI_BAD_INPUT, "understudy eval",
                        "write --gravity X,Y,Z in m/s^2, for example --gravity 0,0,-1.62",
                        "--gravity: \"%s\" is not three numbers", text);
    }
    char *name = def.name ? strdup(def.name) : NULL;
    def.name = name;
    us_status status = us_spec_set_world(spec, &def);
    free(name);
    return status == US_OK ? CLI_GO_ON
                           : cli_fail(CLI_BAD_INPUT, "understudy eval", NULL, "the gravity cannot be set: %s",
                                      us_status_text(status));
}

static int evaluate(const cli_load *load, const cli_state_file *file, const char *gravity, bool is_json) {
    cli_world world;
    cli_state state = {0};
    int code = cli_load_spec(load, cli_state_has_base(file) ? US_BASE_FLOATING : US_BASE_FIXED, &world);
    if (code == CLI_GO_ON && gravity) code = set_gravity(world.spec, gravity);
    if (code == CLI_GO_ON) code = cli_compile(&world);
    if (code == CLI_GO_ON) {
        cli_print_warnings(stderr, world.spec);
        code = cli_state_read(file, world.spec, world.model, &state);
    }
    if (code == CLI_GO_ON) {
        results x;
        const char *what;
        us_status status = compute(&world, &state, &x, &what);
        if (status != US_OK) {
            code = cli_fail(
                CLI_RUN_FAILED, load->file,
                "check masses and inertias with \"understudy check\", and the size of the state's numbers",
                "%s cannot be computed at this state: %s", what, us_status_text(status));
        } else if (is_json) {
            print_json(load, &world, &state, &x);
        } else {
            print_text(load, &world, &state, &x);
        }
        results_fini(&x);
    }
    cli_state_fini(&state);
    cli_world_fini(&world);
    return code == CLI_GO_ON ? CLI_OK : code;
}

static int run(const cli_command *command, int argc, char **argv) {
    cli_load load = {0};
    const char *path = NULL, *gravity = NULL;
    bool is_json = false;
    const cli_option table[] = {
        {"state", CLI_TEXT, &path, "STATE.json",
         "positions, velocities, torques, base (the start state); - is standard input"},
        {"gravity", CLI_TEXT, &gravity, "X,Y,Z", "another gravity, m/s^2"},
        {"json", CLI_FLAG, &is_json, NULL, "the same as JSON, numbers with 17 digits"},
        CLI_LOAD_OPTIONS(load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &load.file);
    if (code != CLI_GO_ON) return code;
    cli_state_file file;
    code = cli_state_open(&file, path);
    if (code == CLI_GO_ON) code = evaluate(&load, &file, gravity, is_json);
    cli_state_close(&file);
    return code;
}

const cli_command cli_command_eval = {
    .name = "eval",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "print mass matrix, bias, dynamics, energies and poses at a state",
    .about =
        "The state, all of it optional, joints by name or as plain arrays in joint order:\n"
        "  {\"positions\": {\"elbow\": 0.5, \"ball\": [1, 0, 0, 0]}, \"velocities\": {}, \"accelerations\": "
        "{}, \"torques\": {},\n"
        "   \"base\": {\"position\": [0, 0, 1], \"quaternion\": [1, 0, 0, 0],\n"
        "            \"twist\": {\"angular\": [0, 0, 0], \"linear\": [0.1, 0, 0], \"frame\": \"base\"}},\n"
        "   \"wrenches\": {\"tool\": {\"moment\": [0, 0, 0], \"force\": [0, 0, -10]}}}\n"
        "A robot file has a fixed base unless the state has a \"base\" or --base says otherwise. Drives are "
        "ignored.\n"
        "\n"
        "Example:\n"
        "  understudy eval robot.urdf --state state.json --json\n",
    .run = run,
};
