// Reading world commands: words, names, numbers, keys with values.
//
// A line is cut into words at blanks; double quotes keep blanks in a name ("old crate"). Every refusal says
// what is wrong and what to write instead, for a line may come from a person who typed it.
#include "wire/world_command.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"

enum { MAX_WORD = 64 };

static const char *const verb_names[] = {
#define VERB_NAME(code, name, usage) name,
    USI_VERB_LIST(VERB_NAME)
#undef VERB_NAME
};
static const char *const verb_usages[] = {
#define VERB_USAGE(code, name, usage) usage,
    USI_VERB_LIST(VERB_USAGE)
#undef VERB_USAGE
};

// ---------------------------------------------------------------- words

typedef struct words {
    int32_t n;
    char *word[MAX_WORD];
} words;

const char *usi_command_find_resource(const char *text) {
    static const char head[] = "add robot ", key[] = " xml=";
    if (strncmp(text, head, sizeof head - 1) != 0) return NULL;
    const char *at = strstr(text + sizeof head - 2, key);
    return at ? at + sizeof key - 1 : NULL;
}

static us_status check_text(const char *text, us_error *err) {
    const char *resource = usi_command_find_resource(text);
    const size_t length = resource ? (size_t)(resource - text) : strnlen(text, USI_COMMAND_MAX + 1);
    if (length > USI_COMMAND_MAX)
        return us_error_set(err, US_ERR_LIMIT, NULL, "say it in several commands",
                            "the command is longer than %d bytes", (int)USI_COMMAND_MAX);
    if (resource && strnlen(resource, USI_RESOURCE_MAX + 1) > USI_RESOURCE_MAX)
        return us_error_set(err, US_ERR_LIMIT, NULL, "put the robot into a file, and write file=",
                            "the robot's text is longer than %d bytes", (int)USI_RESOURCE_MAX);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = usi_utf8_length(s);
        if (n == 0)
            return us_error_set(err, US_ERR_SYNTAX, NULL, "write it in UTF-8",
                                "the command is no text: byte 0x%02x", (unsigned)*s);
        if (usi_is_control(*s) && *s != '\t')
            return us_error_set(err, US_ERR_SYNTAX, NULL,
                                "write one command on one line, with blanks between the words",
                                "the command has a control character, 0x%02x", (unsigned)*s);
        s += n;
    }
    return US_OK;
}

// Cuts in place. What stands in quotes belongs to one word, and the quotes go.
static us_status cut(char *text, words *out, us_error *err) {
    out->n = 0;
    for (char *s = text; *s;) {
        while (*s == ' ' || *s == '\t')
            s++;
        if (!*s) break;
        if (out->n == MAX_WORD)
            return us_error_set(err, US_ERR_LIMIT, NULL, "say it in several commands", "more than %d words",
                                (int)MAX_WORD);
        char *to = out->word[out->n++] = s;
        bool is_quoted = false;
        for (; *s && (is_quoted || (*s != ' ' && *s != '\t')); s++) {
            if (*s == '"') {
                is_quoted = !is_quoted;
            } else {
                *to++ = *s;
            }
        }
        if (is_quoted)
            return us_error_set(err, US_ERR_SYNTAX, NULL, "end it with \"", "a name in quotes has no end");
        if (*s) s++;
        *to = 0;
    }
    return US_OK;
}

// ---------------------------------------------------------------- keys with values

// Cuts "key=value" at the sign.
static us_status cut_key(char *word, const char *usage, const char **out_key, const char **out_value,
                         us_error *err) {
    char *equals = strchr(word, '=');
    if (!equals || equals == word || !equals[1])
        return us_error_set(err, US_ERR_SYNTAX, NULL, usage, "\"%.60s\" is not KEY=VALUE", word);
    *equals = 0;
    *out_key = word;
    *out_value = equals + 1;
    return US_OK;
}

// ---------------------------------------------------------------- pair

static const struct {
    const char *name;
    double low, high;
} pair_keys[USI_PAIR_KEYS] = {
#define PAIR_ROW(field, name, low, high) {name, low, high},
    USI_PAIR_KEY_LIST(PAIR_ROW)
#undef PAIR_ROW
};

const char *usi_pair_key_name(int32_t key) {
    return key >= 0 && key < USI_PAIR_KEYS ? pair_keys[key].name : NULL;
}

static us_status add_value(usi_command *c, int32_t field, const char *text, us_error *err) {
    const char *name = pair_keys[field].name;
    for (int32_t i = 0; i < c->n_value; i++) {
        if (c->value[i].field == field)
            return us_error_set(err, US_ERR_NAME, NULL, "say it once", "%s is said twice", name);
    }
    usi_key_value *v = &c->value[c->n_value];
    v->field = field;
    us_status status =
        usi_read_number(name, text, pair_keys[field].low, pair_keys[field].high, &v->value, err);
    if (!status) c->n_value++;
    return status;
}

static us_status read_pair(usi_command *c, const words *w, us_error *err) {
    const char *const usage =
        "write pair A B KEY=VALUE ..., for example pair rubber soil static-friction=0.6";
    if (w->n < 4)
        return us_error_set(err, US_ERR_SYNTAX, NULL, usage,
                            "pair: two materials and at least one value are needed");
    c->name = w->word[1];
    c->other = w->word[2];
    for (int32_t i = 3; i < w->n; i++) {
        const char *key = "", *value = "", *names[USI_PAIR_KEYS + 2] = {"friction", "model"};
        us_status status = cut_key(w->word[i], usage, &key, &value, err);
        if (status) return status;
        int32_t field = 0;
        while (field < USI_PAIR_KEYS && strcmp(pair_keys[field].name, key) != 0)
            field++;
        for (int32_t k = 0; k < USI_PAIR_KEYS; k++)
            names[k + 2] = pair_keys[k].name;
        if (strcmp(key, "model") == 0) {
            if (c->model) return us_error_set(err, US_ERR_NAME, NULL, "say it once", "model is said twice");
            c->model = value;
            continue;
        }
        bool is_both = strcmp(key, "friction") == 0;  // static and kinetic alike
        if (field == USI_PAIR_KEYS && !is_both)
            return usi_fail_unknown("value of a pair", key, names, USI_PAIR_KEYS + 2, err);
        status = add_value(c, is_both ? 0 : field, value, err);
        if (!status && is_both) status = add_value(c, 1, value, err);
        if (status) return status;
    }
    return US_OK;
}

// ---------------------------------------------------------------- soil

static const char *const soil_keys[USI_SOIL_KEYS] = {
#define SOIL_NAME(field) #field,
    USI_SOIL_KEY_LIST(SOIL_NAME)
#undef SOIL_NAME
};
_Static_assert(USI_SOIL_KEYS <= 2 * USI_PAIR_KEYS, "a command has room for all of them");

const char *usi_soil_key_name(int32_t key) { return key >= 0 && key < USI_SOIL_KEYS ? soil_keys[key] : NULL; }

// A key with - where the name has _.
static bool is_field(const char *key, const char *name) {
    for (; *key && *name; key++, name++) {
        if (*key != *name && !(*key == '-' && *name == '_')) return false;
    }
    return *key == *name;
}

static us_status read_soil(usi_command *c, const words *w, us_error *err) {
    const char *const usage =
        "write soil MATERIAL KEY=VALUE ..., for example soil regolith cohesion=500 friction-angle=0.6";
    if (w->n < 3)
        return us_error_set(err, US_ERR_SYNTAX, NULL, usage,
                            "soil: a material and at least one value are needed");
    c->name = w->word[1];
    for (int32_t i = 2; i < w->n; i++) {
        const char *key = "", *value = "", *names[USI_SOIL_KEYS];
        us_status status = cut_key(w->word[i], usage, &key, &value, err);
        if (status) return status;
        int32_t field = 0;
        while (field < USI_SOIL_KEYS && !is_field(key, soil_keys[field]))
            field++;
        for (int32_t k = 0; k < USI_SOIL_KEYS; k++)
            names[k] = soil_keys[k];
        if (field == USI_SOIL_KEYS)
            return usi_fail_unknown("number of a soil", key, names, USI_SOIL_KEYS, err);
        for (int32_t k = 0; k < c->n_value; k++) {
            if (c->value[k].field == field)
                return us_error_set(err, US_ERR_NAME, NULL, "say it once", "%s is said twice", key);
        }
        status = usi_read_number(key, value, -1e15, 1e15, &c->value[c->n_value].value, err);
        if (status) return status;
        c->value[c->n_value++].field = field;
    }
    return US_OK;
}

static us_status read_region(usi_command *c, const words *w, us_error *err) {
    if (w->n != 3)
        return us_error_set(err, US_ERR_SYNTAX, NULL, "write region NAME MATERIAL",
                            "region: a region and a material are needed");
    c->name = w->word[1];
    c->other = w->word[2];
    return US_OK;
}

// ---------------------------------------------------------------- names

static bool is_name_character(char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_' ||
           ch == '-' || ch == '.';
}

// A name that is given, not looked up: it goes into files and topics.
static us_status check_new_name(const char *name, us_error *err) {
    size_t n = strlen(name);
    bool is_good = n > 0 && n <= USI_NAME_MAX && name[0] != '.' && name[0] != '-';
    for (size_t i = 0; i < n && is_good; i++)
        is_good = is_name_character(name[i]);
    if (is_good) return US_OK;
    return us_error_set(
        err, US_ERR_NAME, NULL,
        "write letters, digits, _, - and full stops, up to 64, beginning with a letter, a digit or _",
        "\"%.80s\" cannot be a name", name);
}

// ---------------------------------------------------------------- add

static const struct {
    const char *name;
    usi_object_kind kind;
    int n_size;
    bool is_last_free;  // its last length may be 0
    const char *meaning;
} kinds[] = {
    {"box", USI_OBJECT_BOX, 3, false, "of a box write size=X,Y,Z: the three lengths"},
    {"sphere", USI_OBJECT_SPHERE, 1, false, "of a sphere write size=R: the radius"},
    {"cylinder", USI_OBJECT_CYLINDER, 2, false, "of a cylinder write size=R,L: radius and length"},
    {"capsule", USI_OBJECT_CAPSULE, 2, true,
     "of a capsule write size=R,L: radius and length of the straight part"},
    {"cone", USI_OBJECT_CONE, 2, false, "of a cone write size=R,L: radius of the base and length"},
    {"ellipsoid", USI_OBJECT_ELLIPSOID, 3, false, "of an ellipsoid write size=A,B,C: the three half axes"},
};
enum { N_KIND = sizeof kinds / sizeof kinds[0] };

static const char *const add_keys[] = {"size",    "at",   "rpy",      "mass", "density",
                                       "surface", "rgba", "velocity", "tags", "fixed"};
enum {
    KEY_SIZE,
    KEY_AT,
    KEY_RPY,
    KEY_MASS,
    KEY_DENSITY,
    KEY_SURFACE,
    KEY_RGBA,
    KEY_VELOCITY,
    KEY_TAGS,
    KEY_FIXED,
    N_KEY
};

static us_status read_size(usi_object_def *o, int32_t kind, const char *text, us_error *err) {
    int n = 0;
    us_error why = {0};
    us_status status =
        usi_read_list("size", text, kinds[kind].n_size, kinds[kind].n_size, 0, 1e4, o->size, &n, &why);
    if (status) return us_error_set(err, status, NULL, kinds[kind].meaning, "%s", why.message);
    for (int i = 0; i < n; i++) {
        bool may_be_0 = kinds[kind].is_last_free && i + 1 == n;
        if (!(o->size[i] >= 1e-4 || (may_be_0 && o->size[i] == 0)))
            return us_error_set(err, US_ERR_VALUE, NULL, "write lengths from 0.0001 to 10000 m",
                                "size: %g is no length of a %s", o->size[i], kinds[kind].name);
    }
    return US_OK;
}

static us_status read_add_value(usi_object_def *o, int32_t kind, int32_t key, const char *text,
                                us_error *err) {
    const double far = 1e6;
    double x[4] = {0};
    int n = 0;
    us_status status = US_OK;
    switch (key) {
    case KEY_SIZE:
        return read_size(o, kind, text, err);
    case KEY_AT:
        status = usi_read_list("at", text, 3, 3, -far, far, x, &n, err);
        if (!status) memcpy(o->position, x, sizeof o->position);
        return status;
    case KEY_RPY:
        return usi_read_list("rpy", text, 3, 3, -1e3, 1e3, o->rpy, &n, err);
    case KEY_MASS:
        return usi_read_number("mass", text, 1e-6, 1e9, &o->mass, err);
    case KEY_DENSITY:
        return usi_read_number("density", text, 1e-3, 1e6, &o->density, err);
    case KEY_SURFACE:
        o->surface = text;
        return US_OK;
    case KEY_TAGS:
        o->tags = text;
        return US_OK;
    case KEY_RGBA:
        x[3] = 1;
        status = usi_read_list("rgba", text, 3, 4, 0, 1, x, &n, err);
        for (int i = 0; i < 4 && !status; i++)
            o->rgba[i] = (float)x[i];
        return status;
    case KEY_VELOCITY:
        status = usi_read_list("velocity", text, 3, 3, -1e4, 1e4, x, &n, err);
        if (!status) memcpy(o->velocity, x, sizeof o->velocity);
        return status;
    default:
        o->is_fixed = strcmp(text, "true") == 0;
        if (o->is_fixed || strcmp(text, "false") == 0) return US_OK;
        return us_error_set(err, US_ERR_VALUE, NULL, "write fixed=true or fixed=false",
                            "fixed: \"%.60s\" is neither true nor false", text);
    }
}

static us_status read_spawn_value(usi_command *c, const char *key, const char *text, us_error *err) {
    static const char *const keys[] = {"file", "xml", "namespace", "at", "rpy", "tags", "fixed"};
    if (strcmp(key, "file") == 0) {
        c->spawn.file = text;
        return US_OK;
    }
    if (strcmp(key, "namespace") == 0) {
        c->spawn.namespace_ = text;
        return US_OK;
    }
    if (strcmp(key, "at") == 0) return read_add_value(&c->object, 0, KEY_AT, text, err);
    if (strcmp(key, "rpy") == 0) return read_add_value(&c->object, 0, KEY_RPY, text, err);
    if (strcmp(key, "tags") == 0) return read_add_value(&c->object, 0, KEY_TAGS, text, err);
    if (strcmp(key, "fixed") == 0) {
        c->spawn.has_base = true;
        return read_add_value(&c->object, 0, KEY_FIXED, text, err);
    }
    return usi_fail_unknown("key of add robot", key, keys, sizeof keys / sizeof keys[0], err);
}

static us_status read_add_robot(usi_command *c, const words *w, us_error *err) {
    const char *const usage = "write add robot NAME file=PATH at=X,Y,Z rpy=R,P,Y, for example add robot k10b "
                              "file=default.xml#k10 at=3,0,0.2";
    us_status status = check_new_name(w->word[2], err);
    c->name = w->word[2];
    c->is_robot = true;
    for (int32_t i = 3; i < w->n && !status; i++) {
        const char *key = "", *value = "";
        status = cut_key(w->word[i], usage, &key, &value, err);
        for (int32_t k = 3; k < i && !status; k++) {
            // Those before are cut at their sign.
            if (strcmp(w->word[k], key) == 0)
                return us_error_set(err, US_ERR_NAME, NULL, "say it once", "%s is said twice", key);
        }
        if (!status) status = read_spawn_value(c, key, value, err);
    }
    if (status) return status;
    if (!c->spawn.file == !c->spawn.xml)
        return us_error_set(err, US_ERR_SYNTAX, NULL, usage,
                            "add robot: exactly one of file= and xml= says what it is");
    return US_OK;
}

static us_status read_add(usi_command *c, const words *w, us_error *err) {
    const char *const usage =
        "write add KIND NAME KEY=VALUE ..., for example add box crate size=0.5,0.5,0.5 at=1,0,2 density=300";
    if (w->n < 3) return us_error_set(err, US_ERR_SYNTAX, NULL, usage, "add: a kind and a name are needed");
    const char *names[N_KIND];
    for (int32_t i = 0; i < N_KIND; i++)
        names[i] = kinds[i].name;
    int32_t kind = 0;
    while (kind < N_KIND && strcmp(names[kind], w->word[1]) != 0)
        kind++;
    if (strcmp(w->word[1], "robot") == 0) return read_add_robot(c, w, err);
    if (kind == N_KIND) return usi_fail_unknown("kind of object", w->word[1], names, N_KIND, err);
    c->name = w->word[2];
    us_status status = check_new_name(c->name, err);
    usi_object_def *o = &c->object;
    *o = (usi_object_def){
        .kind = kinds[kind].kind, .mass = NAN, .density = 1000, .rgba = {0.7F, 0.7F, 0.7F, 1}};
    bool is_said[N_KEY] = {false};
    for (int32_t i = 3; i < w->n && !status; i++) {
        const char *text = "", *value = "";
        status = cut_key(w->word[i], usage, &text, &value, err);
        if (status) return status;
        int32_t key = 0;
        while (key < N_KEY && strcmp(add_keys[key], text) != 0)
            key++;
        if (key == N_KEY) return usi_fail_unknown("key of add", text, add_keys, N_KEY, err);
        if (is_said[key])
            return us_error_set(err, US_ERR_NAME, NULL, "say it once", "%s is said twice", text);
        is_said[key] = true;
        status = read_add_value(o, kind, key, value, err);
    }
    if (status) return status;
    if (!is_said[KEY_SIZE])
        return us_error_set(err, US_ERR_SYNTAX, NULL, kinds[kind].meaning, "size is missing");
    if (is_said[KEY_MASS] && is_said[KEY_DENSITY])
        return us_error_set(err, US_ERR_VALUE, NULL, "keep one of the two",
                            "both mass and density give the mass");
    if (o->is_fixed && is_said[KEY_VELOCITY])
        return us_error_set(err, US_ERR_VALUE, NULL, "leave out velocity, or fixed",
                            "what is fixed has no velocity");
    return US_OK;
}

// ---------------------------------------------------------------- the others

static us_status fail_usage(usi_verb verb, us_error *err) {
    char remedy[160];
    snprintf(remedy, sizeof remedy, "write %s", verb_usages[verb]);
    return us_error_set(err, US_ERR_SYNTAX, NULL, remedy, "%s: too few or too many words", verb_names[verb]);
}

// NAME and numbers behind it.
static us_status read_numbers(usi_command *c, const words *w, const char *const *what,
                              const double (*range)[2], us_error *err) {
    us_status status = US_OK;
    c->name = w->word[1];
    for (int32_t i = 2; i < w->n && !status; i++)
        status = usi_read_number(what[i - 2], w->word[i], range[i - 2][0], range[i - 2][1], &c->number[i - 2],
                                 err);
    c->n_number = w->n - 2;
    return status;
}

static us_status read_move(usi_command *c, const words *w, us_error *err) {
    static const char *const what[] = {"x", "y", "z", "roll", "pitch", "yaw"};
    static const double range[][2] = {{-1e6, 1e6}, {-1e6, 1e6}, {-1e6, 1e6},
                                      {-1e3, 1e3}, {-1e3, 1e3}, {-1e3, 1e3}};
    return w->n == 5 || w->n == 8 ? read_numbers(c, w, what, range, err) : fail_usage(c->verb, err);
}

static us_status read_velocity(usi_command *c, const words *w, us_error *err) {
    static const char *const what[] = {"vx", "vy", "vz", "wx", "wy", "wz"};
    static const double range[][2] = {{-1e4, 1e4}, {-1e4, 1e4}, {-1e4, 1e4},
                                      {-1e4, 1e4}, {-1e4, 1e4}, {-1e4, 1e4}};
    return w->n == 5 || w->n == 8 ? read_numbers(c, w, what, range, err) : fail_usage(c->verb, err);
}

static us_status read_height(usi_command *c, const words *w, us_error *err) {
    static const char *const what[] = {"height"};
    static const double range[][2] = {{-1e6, 1e6}};
    return w->n == 3 ? read_numbers(c, w, what, range, err) : fail_usage(c->verb, err);
}

static us_status read_joint(usi_command *c, const words *w, us_error *err) {
    static const char *const what[] = {"position", "velocity"};
    static const double range[][2] = {{-1e6, 1e6}, {-1e4, 1e4}};
    return w->n == 3 || w->n == 4 ? read_numbers(c, w, what, range, err) : fail_usage(c->verb, err);
}

static us_status read_step(usi_command *c, const words *w, us_error *err) {
    c->n_number = 1;
    c->number[0] = 1;
    if (w->n > 2) return fail_usage(c->verb, err);
    us_status status = w->n == 2 ? usi_read_number("step", w->word[1], 1, 1e6, &c->number[0], err) : US_OK;
    if (!status && c->number[0] != floor(c->number[0]))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a whole number of ticks, for example step 10",
                            "step: %g is no whole number", c->number[0]);
    return status;
}

static us_status read_rate(usi_command *c, const words *w, us_error *err) {
    if (w->n != 2) return fail_usage(c->verb, err);
    c->n_number = 1;
    c->number[0] = strcmp(w->word[1], "max") == 0 ? 0 : 1;
    if (c->number[0] == 0 || strcmp(w->word[1], "real") == 0) return US_OK;
    us_error why = {0};
    us_status status = usi_read_number("rate", w->word[1], 1e-3, 1e3, &c->number[0], &why);
    return status
               ? us_error_set(err, status, NULL, "write rate real, rate max, or a number from 0.001 to 1000",
                              "%s", why.message)
               : US_OK;
}

// One name of the run's own directory, so that nobody on the network chooses where files go.
static us_status read_record(usi_command *c, const words *w, us_error *err) {
    if (w->n != 2) return fail_usage(c->verb, err);
    if (strcmp(w->word[1], "off") == 0) return US_OK;
    c->name = w->word[1];
    size_t n = strlen(c->name);
    us_status status = check_new_name(c->name, err);
    if (!status && (n < 6 || strcmp(c->name + n - 5, ".mcap") != 0))
        return us_error_set(err, US_ERR_NAME, NULL, "write record NAME.mcap, or record off",
                            "\"%.80s\" does not end in .mcap", c->name);
    return status;
}

static us_status read_fault(usi_command *c, const words *w, us_error *err) {
    if (w->n != 3) return fail_usage(c->verb, err);
    usi_fault_words f;
    us_status status = usi_fault_parse(w->word[2], &f, err);
    if (status) return status;
    c->name = w->word[1];
    c->part = f.part;
    c->fault = f.fault;
    c->other = f.name;
    c->reading = f.reading;
    c->n_number = f.n_number;
    memcpy(c->number, f.number, sizeof f.number);
    return US_OK;
}

// ---------------------------------------------------------------- sensor

// What the parameters are is known to the world.
static us_status read_sensor(usi_command *c, const words *w, us_error *err) {
    if (w->n < 3 || !strchr(w->word[1], '/')) return fail_usage(c->verb, err);
    c->name = w->word[1];
    if (w->n - 2 > USI_SENSOR_SETTINGS)
        return us_error_set(err, US_ERR_LIMIT, NULL, "write two commands",
                            "more than %d parameters are set at once", USI_SENSOR_SETTINGS);
    for (int32_t i = 2; i < w->n; i++) {
        char *equals = strchr(w->word[i], '=');
        if (!equals || equals == w->word[i] || !equals[1])
            return us_error_set(err, US_ERR_SYNTAX, NULL, "write PARAMETER=VALUE, for example rate=50Hz",
                                "\"%.60s\" sets no parameter", w->word[i]);
        *equals = 0;
        c->setting[c->n_setting++] = (usi_word_pair){w->word[i], equals + 1};
    }
    return US_OK;
}

// ---------------------------------------------------------------- adopt

static const struct {
    const char *name;
    uint32_t flag;
    int min, max;
} adopt_keys[] = {
    {"odom", USI_ADOPT_ODOM, 3, 3},         {"origin", USI_ADOPT_ORIGIN, 3, 3},
    {"velocity", USI_ADOPT_VELOCITY, 3, 3}, {"want", USI_ADOPT_WANT, 3, 4},
    {"battery", USI_ADOPT_BATTERY, 1, 1},   {"stamp", USI_ADOPT_STAMP, 2, 2},
};
enum { N_ADOPT_KEY = sizeof adopt_keys / sizeof adopt_keys[0] };

static us_status read_adopt_value(usi_adopt *a, int32_t key, const char *text, us_error *err) {
    const uint32_t flag = adopt_keys[key].flag;
    const bool is_share = flag == USI_ADOPT_BATTERY, is_stamp = flag == USI_ADOPT_STAMP;
    double x[4] = {0};
    int n = 0;
    us_status status = usi_read_list(adopt_keys[key].name, text, adopt_keys[key].min, adopt_keys[key].max,
                                     is_share || is_stamp ? 0 : -1e6,
                                     is_share   ? 1
                                     : is_stamp ? 4e9
                                                : 1e6,
                                     x, &n, err);
    if (status) return status;
    switch (flag) {
    case USI_ADOPT_ODOM:
        memcpy(a->odom, x, sizeof a->odom);
        break;
    case USI_ADOPT_ORIGIN:
        memcpy(a->origin, x, sizeof a->origin);
        break;
    case USI_ADOPT_VELOCITY:
        memcpy(a->velocity, x, sizeof a->velocity);
        break;
    case USI_ADOPT_BATTERY:
        a->battery = x[0];
        break;
    case USI_ADOPT_STAMP:
        if (x[0] != floor(x[0]) || x[1] != floor(x[1]) || x[1] >= 1e9)
            return us_error_set(err, US_ERR_VALUE, NULL, "write stamp=SECONDS,NANOSECONDS in whole numbers",
                                "stamp: %g,%g is no time", x[0], x[1]);
        a->stamp = (int64_t)x[0] * 1000000000 + (int64_t)x[1];
        break;
    default:
        memcpy(a->want, x, sizeof a->want);
        if (!(x[3] >= 0))
            return us_error_set(err, US_ERR_VALUE, NULL, "write how many seconds ago it came",
                                "want: %g is no age", x[3]);
        a->age = x[3];
    }
    return US_OK;
}

// "joint:NAME" and "Q" or "Q,V".
static us_status read_adopt_joint(usi_adopt *a, const char *name, const char *text, us_error *err) {
    double x[2] = {0};
    int n = 0;
    if (!name[0])
        return us_error_set(err, US_ERR_SYNTAX, NULL, "write joint:NAME=Q or joint:NAME=Q,V",
                            "a joint has no name");
    if (a->n_joint == USI_ADOPT_JOINTS)
        return us_error_set(err, US_ERR_LIMIT, NULL, "name those with a drive alone", "more than %d joints",
                            (int)USI_ADOPT_JOINTS);
    for (int32_t i = 0; i < a->n_joint; i++) {
        if (strcmp(a->joint[i].name, name) == 0)
            return us_error_set(err, US_ERR_NAME, NULL, "say it once", "joint %.60s is said twice", name);
    }
    us_status status = usi_read_list(name, text, 1, 2, -1e6, 1e6, x, &n, err);
    if (!status) a->joint[a->n_joint++] = (usi_adopt_joint){name, x[0], x[1], n == 2};
    return status;
}

static us_status read_adopt(usi_command *c, const words *w, us_error *err) {
    const char *const usage = "write adopt ROBOT KEY=VALUE ..., for example adopt k10 odom=1,2,0.5 "
                              "velocity=0.3,0,0 joint:front_left_steer=0.1,0";
    if (w->n < 3)
        return us_error_set(err, US_ERR_SYNTAX, NULL, usage,
                            "adopt: a robot and at least one value are needed");
    c->name = w->word[1];
    for (int32_t i = 2; i < w->n; i++) {
        const char *key = "", *value = "", *names[N_ADOPT_KEY];
        us_status status = cut_key(w->word[i], usage, &key, &value, err);
        if (status) return status;
        if (strncmp(key, "joint:", strlen("joint:")) == 0) {
            status = read_adopt_joint(&c->adopt, key + strlen("joint:"), value, err);
            if (status) return status;
            continue;
        }
        int32_t k = 0;
        for (int32_t n = 0; n < N_ADOPT_KEY; n++)
            names[n] = adopt_keys[n].name;
        while (k < N_ADOPT_KEY && strcmp(names[k], key) != 0)
            k++;
        if (k == N_ADOPT_KEY) return usi_fail_unknown("key of adopt", key, names, N_ADOPT_KEY, err);
        if (c->adopt.has & adopt_keys[k].flag)
            return us_error_set(err, US_ERR_NAME, NULL, "say it once", "%s is said twice", key);
        c->adopt.has |= adopt_keys[k].flag;
        status = read_adopt_value(&c->adopt, k, value, err);
        if (status) return status;
    }
    return US_OK;
}

static us_status read_authority(usi_command *c, const words *w, us_error *err) {
    static const char *const modes[] = {"hardware", "proxy", "mirror", "shadow", "stop"};
    if (w->n != 3) return fail_usage(c->verb, err);
    c->name = w->word[1];
    c->other = w->word[2];
    for (int32_t i = 0; i < 5; i++) {
        if (strcmp(c->other, modes[i]) == 0) return US_OK;
    }
    return usi_fail_unknown("authority", c->other, modes, 5, err);
}

static us_status read_rest(usi_command *c, const words *w, us_error *err) {
    switch (c->verb) {
    case USI_VERB_RESET:
        if (w->n == 2 && strcmp(w->word[1], "keep") == 0) {
            c->other = w->word[1];
            return US_OK;
        }
    // fall through
    case USI_VERB_PAUSE:
    case USI_VERB_RESUME:
    case USI_VERB_CLEAR:
    case USI_VERB_HOME:
        return w->n == 1 ? US_OK : fail_usage(c->verb, err);
    case USI_VERB_STEP:
        return read_step(c, w, err);
    case USI_VERB_RATE:
        return read_rate(c, w, err);
    case USI_VERB_RECORD:
        return read_record(c, w, err);
    case USI_VERB_AUTHORITY:
        return read_authority(c, w, err);
    case USI_VERB_PAIR:
        return read_pair(c, w, err);
    case USI_VERB_SOIL:
        return read_soil(c, w, err);
    case USI_VERB_REGION:
        return read_region(c, w, err);
    case USI_VERB_ADD:
        return read_add(c, w, err);
    case USI_VERB_MOVE:
        return read_move(c, w, err);
    case USI_VERB_RAISE:
    case USI_VERB_LOWER:
        return read_height(c, w, err);
    case USI_VERB_VELOCITY:
        return read_velocity(c, w, err);
    case USI_VERB_JOINT:
    case USI_VERB_DRIVE:
        return read_joint(c, w, err);
    case USI_VERB_FAULT:
        return read_fault(c, w, err);
    case USI_VERB_SENSOR:
        return read_sensor(c, w, err);
    case USI_VERB_ADOPT:
        return read_adopt(c, w, err);
    default:
        break;
    }
    // One name.
    if (w->n != 2) return fail_usage(c->verb, err);
    c->name = w->word[1];
    return c->verb == USI_VERB_SNAPSHOT ? check_new_name(c->name, err) : US_OK;
}

us_status usi_command_parse(const char *text, usi_command *out, us_error *err) {
    us_status status = check_text(text, err);
    if (status) return status;
    memset(out, 0, sizeof *out);
    const char *resource = usi_command_find_resource(text);
    const size_t length = resource ? (size_t)(resource - text) - strlen(" xml=") : strlen(text);
    snprintf(out->text, sizeof out->text, "%.*s", (int)length, text);
    if (resource) out->spawn.xml = resource;
    words w;
    status = cut(out->text, &w, err);
    if (status) return status;
    if (w.n == 0)
        return us_error_set(err, US_ERR_SYNTAX, NULL, "write a command, for example pause",
                            "the command is empty");
    int32_t verb = 0;
    while (verb < USI_VERB_COUNT && strcmp(verb_names[verb], w.word[0]) != 0)
        verb++;
    if (verb == USI_VERB_COUNT)
        return usi_fail_unknown("command", w.word[0], verb_names, USI_VERB_COUNT, err);
    out->verb = (usi_verb)verb;
    return read_rest(out, &w, err);
}
