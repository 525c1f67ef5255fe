// simulation_interfaces: entities that are spawned, objects and robots, as the world command add.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spec/spec.h"
#include "world/world__simulation.h"

static const struct {
    const char *uri, *words, *description;
} spawnables[] = {
    {"understudy:box", "box size=1,1,1", "a box, 1 m long"},
    {"understudy:sphere", "sphere size=0.5", "a sphere of 1 m diameter"},
    {"understudy:cylinder", "cylinder size=0.5,1", "a cylinder of 1 m diameter and height"},
    {"understudy:capsule", "capsule size=0.25,0.5", "a capsule, 1 m long"},
    {"understudy:cone", "cone size=0.5,1", "a cone of 1 m diameter and height"},
    {"understudy:ellipsoid", "ellipsoid size=0.5,0.5,0.25", "an ellipsoid, 1 m long"},
};
enum { N_SPAWNABLE = sizeof spawnables / sizeof spawnables[0] };

// "default.xml#k10": a robot as one of the scene is. False for one that no file has.
static bool robot_uri(const us_spec *spec, int32_t network, char *out, size_t cap) {
    const char *path = spec->origin.path;
    const us_group_def *group = &spec->group[spec->network[network].group];
    if (!path || group->is_added || !group->name || access(path, R_OK) != 0) return false;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    // A robot file that is alone in its world has no name.
    return group->name[0] ? snprintf(out, cap, "%s#%s", name, group->name) < (int)cap
                          : snprintf(out, cap, "%s", name) < (int)cap;
}

void usi_list_spawnables(usi_simulation *s, usi_request_slot *x) {
    const us_spec *spec = s->w->live.revision->spec;
    const size_t n_max = N_SPAWNABLE + (size_t)spec->n_network, text = 600;
    us_msg_spawnable *list = usi_alloc(&s->w->allocator, n_max * sizeof *list, _Alignof(us_msg_spawnable));
    char *uris = usi_alloc(&s->w->allocator, n_max * text, 1);
    uint32_t n = 0;
    if (list && uris) memset(list, 0, n_max * sizeof *list);
    for (; list && uris && n < N_SPAWNABLE; n++) {
        list[n].entity_resource.uri = usi_message_text(spawnables[n].uri);
        list[n].description = usi_message_text(spawnables[n].description);
    }
    for (int32_t i = 0; list && uris && i < spec->n_network; i++) {
        if (!robot_uri(spec, i, uris + n * text, text)) continue;
        list[n].entity_resource.uri = uris + n * text;
        list[n++].description = usi_message_text("a robot as the scene has it");
    }
    if (n == 0) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, "no memory left");
    } else {
        usi_simulation_send(s, x,
                            &(us_msg_get_spawnables_response){.result = usi_result_of(USI_RESULT_DONE, ""),
                                                              .spawnables = {._length = n, ._buffer = list}});
    }
    usi_release(&s->w->allocator, list, n_max * sizeof *list, _Alignof(us_msg_spawnable));
    usi_release(&s->w->allocator, uris, n_max * text, 1);
}

// A name that is free, behind the wanted one; false when none of a thousand is.
static bool find_name(const us_spec *spec, const char *wanted, char out[USI_ENTITY_NAME]) {
    for (int i = 1; i < 1000; i++) {
        snprintf(out, USI_ENTITY_NAME, "%.50s_%d", wanted, i);
        if (usi_simulation_find(spec, out) < 0) return true;
    }
    return false;
}

// "file:///k10.urdf", "default.xml#k10".
static bool is_robot_file(const char *uri) {
    const size_t n = strcspn(uri, "#");
    return n > 4 &&
           (strncmp(uri + n - 4, ".xml", 4) == 0 || (n > 5 && strncmp(uri + n - 5, ".urdf", 5) == 0));
}

// The text of a robot on one line: blanks for all that ends one.
static void copy_line(char *to, const char *from) {
    for (; *from; from++)
        *to++ = *from == '\n' || *from == '\r' || *from == '\t' ? ' ' : *from;
    *to = 0;
}

// A word in quotes, so that blanks may stand in it. False where it has quotes itself.
static bool is_word(const char *text) { return !strpbrk(text, "\"\n\r\t"); }

static void spawn_robot(usi_simulation *s, usi_request_slot *x, const us_msg_spawn_entity_request *m,
                        const double p[3], const double rpy[3]) {
    const char *uri = m->entity_resource.uri, *xml = uri[0] ? "" : m->entity_resource.resource_string,
               *namespace_ = m->entity_namespace + (m->entity_namespace[0] == '/');
    const size_t size = strlen(uri) + strlen(xml) + strlen(namespace_) + 512;
    char *text = usi_alloc(&s->w->allocator, size, 1);
    x->is_robot = true;
    if (!text) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, "no memory left");
        return;
    }
    int n = snprintf(text, size, "add robot %s at=%.17g,%.17g,%.17g rpy=%.17g,%.17g,%.17g%s%s", x->name, p[0],
                     p[1], p[2], rpy[0], rpy[1], rpy[2], namespace_[0] ? " namespace=" : "", namespace_);
    if (uri[0]) {
        snprintf(text + n, size - (size_t)n, " \"file=%s\"", uri);
    } else {
        n += snprintf(text + n, size - (size_t)n, " xml=");
        copy_line(text + n, xml);
    }
    if (is_word(uri)) {
        usi_simulation_post(s, x, text);
    } else {
        usi_simulation_result(s, x, USI_RESULT_NO_ROBOT, "a uri has no quotes and no ends of lines");
    }
    usi_release(&s->w->allocator, text, size, 1);
}

static void spawn_object(usi_simulation *s, usi_request_slot *x, const char *words, const double p[3],
                         const double rpy[3]) {
    char text[USI_COMMAND_MAX + 1];
    const int n_kind = (int)strcspn(words, " ");
    const int n = snprintf(text, sizeof text, "add %.*s %s%s at=%.17g,%.17g,%.17g rpy=%.17g,%.17g,%.17g",
                           n_kind, words, x->name, words + n_kind, p[0], p[1], p[2], rpy[0], rpy[1], rpy[2]);
    if (n < 0 || (size_t)n >= sizeof text) {
        usi_simulation_result(s, x, USI_RESULT_FAILED, "the resource_string is too long");
    } else {
        usi_simulation_post(s, x, text);
    }
}

static const char *find_words(const us_msg_resource *m) {
    if (!m->uri[0]) return m->resource_string;
    for (int i = 0; i < N_SPAWNABLE; i++) {
        if (strcmp(m->uri, spawnables[i].uri) == 0) return spawnables[i].words;
    }
    return is_robot_file(m->uri) ? m->uri : NULL;
}

static bool is_new_name(const char *name) {
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")] == 0 &&
           name[0] != '-' && name[0] != '.';
}

// Whether a robot has the namespace, or it is none.
static bool is_namespace_bad(const us_spec *spec, const char *name) {
    name += name[0] == '/';
    for (int32_t i = 0; i < spec->n_network; i++) {
        if (strcmp(spec->network[i].namespace_, name) == 0) return true;
    }
    return !usi_is_ros_name(name, true);
}

void usi_simulation_spawn(usi_simulation *s, usi_request_slot *x, const us_msg_spawn_entity_request *m) {
    const us_spec *spec = s->w->live.revision->spec;
    const char *words = find_words(&m->entity_resource), *uri = m->entity_resource.uri;
    double p[3], rpy[3];
    const bool is_robot =
        words && (uri[0] ? words == uri : words[strspn(words, " \t\r\n\xef\xbb\xbf")] == '<');
    snprintf(x->name, sizeof x->name, "%.60s", m->name[0] ? m->name : "entity");
    const bool is_taken = !m->name[0] || usi_simulation_find(spec, x->name) >= 0;
    char wanted[USI_ENTITY_NAME];
    memcpy(wanted, x->name, sizeof wanted);
    if (strlen(m->name) > 60 || !is_new_name(m->name)) {
        usi_simulation_result(s, x, USI_RESULT_NAME_INVALID,
                              "names are letters, digits, _, - and full stops, 60 at most");
    } else if (is_taken && !m->allow_renaming) {
        usi_simulation_result(s, x, USI_RESULT_NAME_TAKEN,
                              "there is an entity of this name, or the name is empty");
    } else if (is_taken && !find_name(spec, wanted, x->name)) {
        usi_simulation_result(s, x, USI_RESULT_NAME_TAKEN, "there are too many entities of this name");
    } else if (!words) {
        usi_simulation_result(s, x, USI_RESULT_FORMAT_UNKNOWN,
                              "the uri is none of get_spawnables, and no .urdf or .xml file");
    } else if (!words[0]) {
        usi_simulation_result(
            s, x, USI_RESULT_NO_RESOURCE,
            "give a uri of get_spawnables, or a resource_string: a URDF, or \"box size=1,1,1\"");
    } else if (m->entity_namespace[0] && (!is_robot || is_namespace_bad(spec, m->entity_namespace))) {
        usi_simulation_result(s, x, USI_RESULT_NAMESPACE_INVALID,
                              is_robot ? "the namespace is taken, or no name" : "objects have no namespace");
    } else if (!usi_is_world_frame(m->initial_pose.header.frame_id) ||
               !usi_read_pose(&m->initial_pose.pose, p, rpy)) {
        usi_simulation_result(
            s, x, USI_RESULT_SPAWN_POSE_INVALID,
            "the pose is not finite, its quaternion has not length 1, or its frame is not world");
    } else if (is_robot) {
        spawn_robot(s, x, m, p, rpy);
    } else {
        spawn_object(s, x, words, p, rpy);
    }
}

// Why a robot was not spawned.
int usi_spawn_result(us_status status) {
    switch (status) {
    case US_ERR_IO:
        return USI_RESULT_NO_FILE;
    case US_ERR_ACCESS:
        return USI_RESULT_NOT_ALLOWED;
    case US_ERR_MEMORY:
    case US_ERR_LIMIT:
    case US_ERR_ARG:
        return USI_RESULT_FAILED;
    default:
        return USI_RESULT_NO_ROBOT;
    }
}
