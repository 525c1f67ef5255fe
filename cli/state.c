// Reads the state file of `understudy eval`. Nothing in it is passed over: an unknown key, name or size is an
// error.
#include "state.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// ---- what the keys mean ----

typedef enum state_topic {
    POSITION,
    VELOCITY,
    ACCELERATION,
    TORQUE,
    BASE,
    BASE_TWIST,
    JOINTS,
    WRENCHES,
    NAMES,
    N_TOPIC
} state_topic;

// The first name of each topic is the one that messages use; the others are what people also write.
static const struct {
    const char *key;
    state_topic topic;
} keys[] = {
    {"positions", POSITION},
    {"velocities", VELOCITY},
    {"accelerations", ACCELERATION},
    {"torques", TORQUE},
    {"base", BASE},
    {"base_twist", BASE_TWIST},
    {"joints", JOINTS},
    {"wrenches", WRENCHES},
    {"names", NAMES},
    {"q", POSITION},
    {"position", POSITION},
    {"joint_positions", POSITION},
    {"v", VELOCITY},
    {"qd", VELOCITY},
    {"velocity", VELOCITY},
    {"joint_velocities", VELOCITY},
    {"a", ACCELERATION},
    {"qdd", ACCELERATION},
    {"acceleration", ACCELERATION},
    {"joint_accelerations", ACCELERATION},
    {"tau", TORQUE},
    {"efforts", TORQUE},
    {"effort", TORQUE},
    {"joint_torques", TORQUE},
    {"torque", TORQUE},
    {"base_pose", BASE},
    {"base_velocity", BASE_TWIST},
    {"name", NAMES},
    {"joint_names", NAMES},
    {"external_wrenches", WRENCHES},
};

enum { N_KEY = sizeof keys / sizeof keys[0] };

typedef struct reader {
    const char *path;
    const us_spec *spec;
    const us_model *model;
    us_model_counts n;
    cli_state *state;
    int32_t base;        // the floating joint that "base" means; -1: none
    const cJSON *names;  // the order of plain arrays; NULL: the model's
} reader;

US_PRINTF(4, 5)
static int fail(const reader *r, const char *element, const char *remedy, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    us_error err = {0};
    us_place place = {r->path, 0, 0, element};
    us_error_set(&err, US_ERR_VALUE, &place, remedy, "%s", message);
    cli_print_error(&err);
    return CLI_BAD_INPUT;
}

// ---- opening ----

int cli_state_open(cli_state_file *file, const char *path) {
    *file = (cli_state_file){.path = path};
    if (!path) return CLI_GO_ON;
    char *text;
    size_t length;
    int code = cli_read_file(path, &text, &length);
    if (code != CLI_GO_ON) return code;
    const char *end = text;
    file->root = cJSON_ParseWithLengthOpts(text, length + 1, &end, true);
    if (!file->root) {
        int32_t line = 1, column = 1;
        for (const char *p = text; p < end; p++) {
            if (*p == '\n') {
                line++;
                column = 0;
            }
            column++;
        }
        us_error err = {0};
        us_place place = {path, line, column, NULL};
        us_error_set(&err, US_ERR_SYNTAX, &place, "write an object such as {\"positions\": {\"elbow\": 0.5}}",
                     "not JSON from byte %zu on", (size_t)(end - text));
        cli_print_error(&err);
        code = CLI_BAD_INPUT;
    } else if (!cJSON_IsObject(file->root)) {
        reader r = {.path = path};
        code = fail(&r, NULL, "write an object such as {\"positions\": {\"elbow\": 0.5}}",
                    "the state is not an object");
    }
    free(text);
    return code;
}

void cli_state_close(cli_state_file *file) {
    cJSON_Delete(file->root);
    file->root = NULL;
}

static int32_t topic_of(const char *key) {
    for (int32_t i = 0; i < N_KEY; i++) {
        if (strcmp(keys[i].key, key) == 0) return (int32_t)keys[i].topic;
    }
    return -1;
}

bool cli_state_has_base(const cli_state_file *file) {
    const cJSON *item;
    cJSON_ArrayForEach(item, file->root) {
        int32_t topic = topic_of(item->string);
        if (topic == BASE || topic == BASE_TWIST) return true;
    }
    return false;
}

// ---- small pieces ----

static int check_twice(const reader *r, const cJSON *object, const char *element) {
    for (const cJSON *a = object->child; a; a = a->next) {
        for (const cJSON *b = object->child; b != a; b = b->next) {
            if (strcmp(a->string, b->string) == 0)
                return fail(r, element, "write it once", "\"%s\" is given twice", a->string);
        }
    }
    return CLI_GO_ON;
}

static int read_number(const reader *r, const cJSON *item, const char *element, double *out) {
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
        return fail(r, element, "write a finite number in SI units", "not a finite number");
    *out = item->valuedouble;
    return CLI_GO_ON;
}

// An array of n numbers. Three or four may also be an object with the letters of `letters` ("xyz", "wxyz") as
// keys.
static int read_numbers(const reader *r, const cJSON *item, const char *element, const char *letters,
                        int32_t n, double *out) {
    char remedy[96];
    snprintf(remedy, sizeof remedy, "write an array of %d numbers%s%s", (int)n,
             letters ? " in the order " : "", letters ? letters : "");
    if (letters && cJSON_IsObject(item)) {
        int code = check_twice(r, item, element);
        if (code == CLI_GO_ON && cJSON_GetArraySize(item) != n)
            code = fail(r, element, remedy, "has %d keys where there should be %d", cJSON_GetArraySize(item),
                        (int)n);
        for (int32_t i = 0; i < n && code == CLI_GO_ON; i++) {
            char key[2] = {letters[i], 0};
            const cJSON *part = cJSON_GetObjectItemCaseSensitive(item, key);
            code = part ? read_number(r, part, element, &out[i])
                        : fail(r, element, remedy, "\"%s\" is missing", key);
        }
        return code;
    }
    if (!cJSON_IsArray(item)) return fail(r, element, remedy, "not an array");
    if (cJSON_GetArraySize(item) != n)
        return fail(r, element, remedy, "has %d numbers where there should be %d", cJSON_GetArraySize(item),
                    (int)n);
    int32_t i = 0;
    const cJSON *part;
    cJSON_ArrayForEach(part, item) {
        int code = read_number(r, part, element, &out[i++]);
        if (code != CLI_GO_ON) return code;
    }
    return CLI_GO_ON;
}

// Scales four numbers to unit length. A rounded quaternion is fine, one of length 0 is an error.
static int make_unit(const reader *r, const char *element, double *q) {
    double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(length > 1e-6))
        return fail(r, element, "write a unit quaternion [w, x, y, z], for example [1, 0, 0, 0]",
                    "the quaternion has length %g", length);
    if (fabs(length - 1) > 1e-4)
        cli_warn("write a unit quaternion [w, x, y, z]",
                 "%s: %s: the quaternion has length %g and is scaled to 1", r->path, element, length);
    for (int32_t i = 0; i < 4; i++)
        q[i] /= length;
    return CLI_GO_ON;
}

// ---- joints ----

static double *values_of(const reader *r, state_topic topic) {
    return topic == POSITION       ? r->state->q
           : topic == VELOCITY     ? r->state->v
           : topic == ACCELERATION ? r->state->a
                                   : r->state->tau;
}

static int find_joint(const reader *r, const char *name, const char *element, us_joint *out_joint) {
    *out_joint = us_model_find_joint(r->model, name);
    if (out_joint->i >= 0) return CLI_GO_ON;
    char remedy[384];
    const char **candidates = cli_allocate((size_t)r->n.n_joint, sizeof *candidates);
    for (int32_t i = 0; i < r->n.n_joint; i++)
        candidates[i] = us_model_joint_name(r->model, (us_joint){i});
    const char *near = cli_nearest(name, candidates, r->n.n_joint);
    if (near) {
        snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", near);
    } else {
        snprintf(remedy, sizeof remedy, "\"understudy info\" lists the joints");
    }
    free(candidates);
    return fail(r, element, remedy, "unknown joint \"%s\"", name);
}

static int read_joint(const reader *r, state_topic topic, const char *name, const cJSON *item) {
    char element[128];
    snprintf(element, sizeof element, "%s \"%s\"", keys[topic].key, name);
    us_joint joint;
    int code = find_joint(r, name, element, &joint);
    if (code != CLI_GO_ON) return code;
    us_joint_info info = us_model_get_joint(r->model, joint);
    int32_t n = topic == POSITION ? info.n_q : info.n_v;
    if (n == 0) return fail(r, element, "leave it out", "the joint is fixed and has no coordinate");
    double *out = values_of(r, topic) + (topic == POSITION ? info.first_q : info.first_v);
    if (n == 1 && !cJSON_IsArray(item)) return read_number(r, item, element, out);
    code = read_numbers(r, item, element, NULL, n, out);
    bool has_quaternion =
        topic == POSITION && (info.type == US_JOINT_SPHERICAL || info.type == US_JOINT_FLOATING);
    return code == CLI_GO_ON && has_quaternion ? make_unit(r, element, out) : code;
}

// A plain array: one number per coordinate, in the order of the model; or, beside a base, of all but the
// base's joint.
static int read_array(const reader *r, state_topic topic, const cJSON *item) {
    const char *element = keys[topic].key;
    if (r->names) {
        int32_t n = cJSON_GetArraySize(r->names);
        if (cJSON_GetArraySize(item) != n)
            return fail(r, element, "give one value per name", "has %d values for %d names",
                        cJSON_GetArraySize(item), (int)n);
        for (const cJSON *name = r->names->child, *value = item->child; name;
             name = name->next, value = value->next) {
            if (!cJSON_IsString(name)) return fail(r, "names", "write the joints' names", "not a text");
            int code = read_joint(r, topic, name->valuestring, value);
            if (code != CLI_GO_ON) return code;
        }
        return CLI_GO_ON;
    }
    us_joint_info base =
        r->base >= 0 ? us_model_get_joint(r->model, (us_joint){r->base}) : (us_joint_info){0};
    int32_t all = topic == POSITION ? r->n.n_q : r->n.n_v;
    int32_t first = topic == POSITION ? base.first_q : base.first_v,
            n_base = topic == POSITION ? base.n_q : base.n_v;
    int32_t n = cJSON_GetArraySize(item);
    bool skips_base = n_base > 0 && n == all - n_base;
    if (n != all && !skips_base) {
        char remedy[256];
        snprintf(remedy, sizeof remedy,
                 "write %d numbers in the order that eval prints%s, or an object with the joints' names",
                 (int)all, n_base > 0 ? " (or all but the floating joint's)" : "");
        return fail(r, element, remedy, "has %d numbers", (int)n);
    }
    double *out = values_of(r, topic);
    const cJSON *part = item->child;
    for (int32_t i = 0; part; i++) {
        if (skips_base && i >= first && i < first + n_base) continue;
        int code = read_number(r, part, element, &out[i]);
        if (code != CLI_GO_ON) return code;
        part = part->next;
    }
    // Quaternions may sit anywhere in the array.
    for (int32_t j = 0; topic == POSITION && j < r->n.n_joint; j++) {
        us_joint_info info = us_model_get_joint(r->model, (us_joint){j});
        if (info.type != US_JOINT_SPHERICAL && info.type != US_JOINT_FLOATING) continue;
        int code = make_unit(r, us_model_joint_name(r->model, (us_joint){j}), out + info.first_q);
        if (code != CLI_GO_ON) return code;
    }
    return CLI_GO_ON;
}

static int read_quantity(const reader *r, state_topic topic, const cJSON *item) {
    if (cJSON_IsArray(item)) return read_array(r, topic, item);
    if (!cJSON_IsObject(item))
        return fail(r, keys[topic].key, "write an object with the joints' names, or an array",
                    "neither an object nor an array");
    int code = check_twice(r, item, keys[topic].key);
    for (const cJSON *child = item->child; child && code == CLI_GO_ON; child = child->next)
        code = read_joint(r, topic, child->string, child);
    return code;
}

// {"elbow": 0.5} is a position; {"elbow": {"position": 0.5, "velocity": 1}} says more.
static int read_joints(reader *r, const cJSON *item) {
    if (cJSON_IsArray(item)) return read_array(r, POSITION, item);
    if (!cJSON_IsObject(item))
        return fail(r, "joints", "write an object with the joints' names, or an array",
                    "neither an object nor an array");
    int code = check_twice(r, item, "joints");
    for (const cJSON *child = item->child; child && code == CLI_GO_ON; child = child->next) {
        if (!cJSON_IsObject(child)) {
            code = read_joint(r, POSITION, child->string, child);
            continue;
        }
        for (const cJSON *part = child->child; part && code == CLI_GO_ON; part = part->next) {
            int32_t topic = topic_of(part->string);
            if (topic < 0 || topic > TORQUE) {
                char element[128];
                snprintf(element, sizeof element, "joints \"%s\"", child->string);
                return fail(r, element, "write position, velocity, acceleration or torque",
                            "unknown key \"%s\"", part->string);
            }
            r->state->has_a |= topic == ACCELERATION;
            r->state->has_tau |= topic == TORQUE;
            code = read_joint(r, (state_topic)topic, child->string, part);
        }
    }
    return code;
}

// ---- the base ----

static int read_base(const reader *r, const cJSON *item, const cJSON **out_twist) {
    us_joint_info info = us_model_get_joint(r->model, (us_joint){r->base});
    us_pose X_PF = us_spec_view_joint(r->spec, r->base)->X_PF;
    double *q = r->state->q + info.first_q;
    us_pose X_FM = {{q[0], q[1], q[2], q[3]}, {q[4], q[5], q[6]}};
    us_pose X_WB = us_pose_mul(X_PF, X_FM);
    double p[3] = {X_WB.p.x, X_WB.p.y, X_WB.p.z}, o[4] = {X_WB.q.w, X_WB.q.x, X_WB.q.y, X_WB.q.z};
    int code = CLI_GO_ON;
    if (cJSON_IsArray(item)) {
        double both[7];
        code = read_numbers(r, item, "base", NULL, 7, both);
        if (code != CLI_GO_ON) return code;
        memcpy(p, both, sizeof p);
        memcpy(o, both + 3, sizeof o);
    } else if (!cJSON_IsObject(item)) {
        return fail(r, "base", "write {\"position\": [x, y, z], \"quaternion\": [w, x, y, z]}",
                    "not an object");
    } else {
        code = check_twice(r, item, "base");
        for (const cJSON *part = item->child; part && code == CLI_GO_ON; part = part->next) {
            if (strcmp(part->string, "position") == 0) {
                code = read_numbers(r, part, "base position", "xyz", 3, p);
            } else if (strcmp(part->string, "quaternion") == 0 || strcmp(part->string, "orientation") == 0) {
                code = read_numbers(r, part, "base quaternion", "wxyz", 4, o);
            } else if (strcmp(part->string, "twist") == 0) {
                *out_twist = part;
            } else {
                code = fail(r, "base", "write position, quaternion or twist", "unknown key \"%s\"",
                            part->string);
            }
        }
    }
    if (code == CLI_GO_ON) code = make_unit(r, "base quaternion", o);
    if (code != CLI_GO_ON) return code;
    X_WB = (us_pose){{o[0], o[1], o[2], o[3]}, {p[0], p[1], p[2]}};
    X_FM = us_pose_mul(us_pose_inverse(X_PF), X_WB);
    double result[7] = {X_FM.q.w, X_FM.q.x, X_FM.q.y, X_FM.q.z, X_FM.p.x, X_FM.p.y, X_FM.p.z};
    memcpy(q, result, sizeof result);
    return CLI_GO_ON;
}

// Angular and linear velocity of the base, in its own axes unless "frame" says "world".
static int read_base_twist(const reader *r, const cJSON *item) {
    us_joint_info info = us_model_get_joint(r->model, (us_joint){r->base});
    double *v = r->state->v + info.first_v;
    if (cJSON_IsArray(item)) return read_numbers(r, item, "base twist", NULL, 6, v);
    if (!cJSON_IsObject(item))
        return fail(r, "base twist", "write {\"angular\": [x, y, z], \"linear\": [x, y, z]}",
                    "not an object");
    int code = check_twice(r, item, "base twist");
    bool is_world = false;
    for (const cJSON *part = item->child; part && code == CLI_GO_ON; part = part->next) {
        if (strcmp(part->string, "angular") == 0) {
            code = read_numbers(r, part, "base twist angular", "xyz", 3, v);
        } else if (strcmp(part->string, "linear") == 0) {
            code = read_numbers(r, part, "base twist linear", "xyz", 3, v + 3);
        } else if (strcmp(part->string, "frame") == 0) {
            is_world = cJSON_IsString(part) && strcmp(part->valuestring, "world") == 0;
            bool is_base = cJSON_IsString(part) &&
                           (strcmp(part->valuestring, "base") == 0 || strcmp(part->valuestring, "body") == 0);
            if (!is_world && !is_base)
                code =
                    fail(r, "base twist frame", "write \"base\" (the default) or \"world\"", "unknown frame");
        } else {
            code =
                fail(r, "base twist", "write angular, linear or frame", "unknown key \"%s\"", part->string);
        }
    }
    if (code != CLI_GO_ON || !is_world) return code;
    const double *q = r->state->q + info.first_q;
    us_pose X_WB = us_pose_mul(us_spec_view_joint(r->spec, r->base)->X_PF,
                               (us_pose){{q[0], q[1], q[2], q[3]}, {q[4], q[5], q[6]}});
    us_quat q_BW = us_quat_conj(X_WB.q);
    us_vec3 angular = us_quat_rotate(q_BW, us_vec3_make(v[0], v[1], v[2])),
            linear = us_quat_rotate(q_BW, us_vec3_make(v[3], v[4], v[5]));
    double result[6] = {angular.x, angular.y, angular.z, linear.x, linear.y, linear.z};
    memcpy(v, result, sizeof result);
    return CLI_GO_ON;
}

// The one joint that lets a robot float. -1 when there is none, -2 when there are several.
static int32_t find_base(const us_model *model, int32_t n_joint) {
    int32_t base = -1;
    for (int32_t j = 0; j < n_joint; j++) {
        us_joint_info info = us_model_get_joint(model, (us_joint){j});
        if (info.type == US_JOINT_FLOATING && info.parent.i == US_WORLD) base = base == -1 ? j : -2;
    }
    return base;
}

// ---- wrenches ----

static int read_wrenches(const reader *r, const cJSON *item) {
    if (!cJSON_IsObject(item))
        return fail(r, "wrenches", "write {\"link\": {\"moment\": [x, y, z], \"force\": [x, y, z]}}",
                    "not an object");
    int code = check_twice(r, item, "wrenches");
    for (const cJSON *child = item->child; child && code == CLI_GO_ON; child = child->next) {
        char element[128];
        snprintf(element, sizeof element, "wrenches \"%s\"", child->string);
        us_body body = us_model_find_body(r->model, child->string);
        if (body.i < 0)
            return fail(r, element, "\"understudy info\" lists the links", "unknown link \"%s\"",
                        child->string);
        double x[6] = {0};
        if (cJSON_IsObject(child)) {
            code = check_twice(r, child, element);
            for (const cJSON *part = child->child; part && code == CLI_GO_ON; part = part->next) {
                if (strcmp(part->string, "moment") == 0 || strcmp(part->string, "torque") == 0) {
                    code = read_numbers(r, part, element, "xyz", 3, x);
                } else if (strcmp(part->string, "force") == 0) {
                    code = read_numbers(r, part, element, "xyz", 3, x + 3);
                } else {
                    code = fail(r, element, "write moment or force, each in world axes at the link's origin",
                                "unknown key \"%s\"", part->string);
                }
            }
        } else {
            code = read_numbers(r, child, element, NULL, 6, x);
        }
        r->state->wrench[body.i] = (us_wrench){{x[0], x[1], x[2]}, {x[3], x[4], x[5]}};
    }
    return code;
}

// ---- all of it ----

// The start state as the file of the robot or scene has it.
static void fill_start(const us_spec *spec, const us_model *model, int32_t n_joint, cli_state *state) {
    for (int32_t j = 0; j < n_joint; j++) {
        us_joint_info info = us_model_get_joint(model, (us_joint){j});
        const us_joint_def *def = us_spec_view_joint(spec, j);
        memcpy(state->q + info.first_q, def->q0, (size_t)info.n_q * sizeof(double));
        memcpy(state->v + info.first_v, def->v0, (size_t)info.n_v * sizeof(double));
        if (info.type != US_JOINT_SPHERICAL && info.type != US_JOINT_FLOATING) continue;
        double *q = state->q + info.first_q;
        double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        if (length == 0) q[0] = length = 1;
        for (int32_t i = 0; i < 4; i++)
            q[i] /= length;
    }
}

static int fail_key(const reader *r, const char *key) {
    const char *names[N_KEY];
    char remedy[256];
    for (int32_t i = 0; i < N_KEY; i++)
        names[i] = keys[i].key;
    const char *near = cli_nearest(key, names, N_KEY);
    if (near) {
        snprintf(remedy, sizeof remedy, "did you mean \"%s\"?", near);
    } else {
        snprintf(remedy, sizeof remedy,
                 "write positions, velocities, accelerations, torques, base, wrenches");
    }
    return fail(r, NULL, remedy, "unknown key \"%s\"", key);
}

// The file's keys by topic, each given once.
static int find_items(const reader *r, const cJSON *root, const cJSON *items[N_TOPIC]) {
    for (const cJSON *item = root->child; item; item = item->next) {
        int32_t topic = topic_of(item->string);
        if (topic < 0) return fail_key(r, item->string);
        if (items[topic])
            return fail(r, keys[topic].key, "write one of them", "\"%s\" and \"%s\" say the same",
                        items[topic]->string, item->string);
        items[topic] = item;
    }
    return CLI_GO_ON;
}

// Whether the topics go together: one floating base, positions given once, names in an array.
static int check_items(const reader *r, const cJSON *const items[N_TOPIC]) {
    if ((items[BASE] || items[BASE_TWIST]) && r->base < 0) {
        return r->base == -1
                   ? fail(r, "base", "leave the base out, or load the robot with --base floating",
                          "nothing floats, so that there is no base to place")
                   : fail(r, "base", "write the floating joints by name in positions and velocities",
                          "more than one joint floats, so that \"base\" may be any of them");
    }
    if (items[JOINTS] && items[POSITION])
        return fail(r, "joints", "write one of them", "\"joints\" and \"%s\" both give positions",
                    items[POSITION]->string);
    if (items[NAMES] && !cJSON_IsArray(items[NAMES]))
        return fail(r, "names", "write an array of joint names", "not an array");
    return CLI_GO_ON;
}

int cli_state_read(const cli_state_file *file, const us_spec *spec, const us_model *model, cli_state *state) {
    us_model_counts n = us_model_get_counts(model);
    *state = (cli_state){.q = cli_allocate((size_t)n.n_q, sizeof(double)),
                         .v = cli_allocate((size_t)n.n_v, sizeof(double))};
    state->a = cli_allocate((size_t)n.n_v, sizeof(double));
    state->tau = cli_allocate((size_t)n.n_v, sizeof(double));
    state->wrench = cli_allocate((size_t)n.n_body, sizeof(us_wrench));
    fill_start(spec, model, n.n_joint, state);
    if (!file->root) return CLI_GO_ON;

    reader r = {.path = file->path,
                .spec = spec,
                .model = model,
                .n = n,
                .state = state,
                .base = find_base(model, n.n_joint)};
    const cJSON *items[N_TOPIC] = {NULL};
    int code = find_items(&r, file->root, items);
    if (code == CLI_GO_ON) code = check_items(&r, items);
    if (code != CLI_GO_ON) return code;
    if (r.base < 0) r.base = -1;
    r.names = items[NAMES];
    state->has_a = items[ACCELERATION] != NULL;
    state->has_tau = items[TORQUE] != NULL;
    state->has_wrench = items[WRENCHES] != NULL;

    // The base after the joints, so that it wins over a plain array; its twist after its pose, whose axes it
    // may need.
    for (int32_t topic = POSITION; topic <= TORQUE && code == CLI_GO_ON; topic++) {
        if (items[topic]) code = read_quantity(&r, (state_topic)topic, items[topic]);
    }
    const cJSON *twist = items[BASE_TWIST];
    if (code == CLI_GO_ON && items[JOINTS]) code = read_joints(&r, items[JOINTS]);
    if (code == CLI_GO_ON && items[BASE]) code = read_base(&r, items[BASE], &twist);
    if (code == CLI_GO_ON && items[BASE_TWIST] && twist != items[BASE_TWIST])
        code = fail(&r, "base", "write one of them", "\"twist\" and \"%s\" say the same",
                    items[BASE_TWIST]->string);
    if (code == CLI_GO_ON && twist) code = read_base_twist(&r, twist);
    if (code == CLI_GO_ON && items[WRENCHES]) code = read_wrenches(&r, items[WRENCHES]);
    return code;
}

void cli_state_fini(cli_state *state) {
    free(state->q);
    free(state->v);
    free(state->a);
    free(state->tau);
    free(state->wrench);
    *state = (cli_state){0};
}
