// Parts of the scene and contacts as messages: visualization_msgs/MarkerArray or foxglove_msgs/SceneUpdate.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view/view__scenery.h"

// Of visualization_msgs/Marker.
enum {
    MARKER_CUBE = 1,
    MARKER_SPHERE = 2,
    MARKER_CYLINDER = 3,
    MARKER_LINE_LIST = 5,
    MARKER_MESH = 10,
    MARKER_TRIANGLES = 11,
    MARKER_DELETE_ALL = 3,
};
enum { LINE_LIST = 2, DELETE_ALL = 1 };  // of foxglove_msgs

static const double FORCE = 1e-3, LINE = 0.005;  // m per N of a contact's force, m thick
static const float ORANGE[4] = {1.0F, 0.5F, 0.1F, 1.0F};
static char frame[] = "map";

void *usi_scenery_take(usi_scenery_message *m, size_t n, size_t each) {
    void *memory = usi_arena_alloc(m->arena, n * each + 1, _Alignof(max_align_t));
    if (memory) memset(memory, 0, n * each);
    if (!memory) m->is_full = true;
    return memory;
}

us_msg_time usi_scenery_time(int64_t time) {
    return (us_msg_time){(int32_t)(time / 1000000000), (uint32_t)(time % 1000000000)};
}

us_msg_pose usi_scenery_pose(us_pose X) {
    return (us_msg_pose){{X.p.x, X.p.y, X.p.z}, {X.q.x, X.q.y, X.q.z, X.q.w}};
}

us_msg_scene_entity usi_scenery_entity(const usi_scenery_message *m, const char *id) {
    return (us_msg_scene_entity){
        .timestamp = usi_scenery_time(m->time), .frame_id = frame, .id = usi_text(id), .frame_locked = true};
}

static us_msg_color colour_of(const float rgba[4]) {
    return (us_msg_color){(double)rgba[0], (double)rgba[1], (double)rgba[2], (double)rgba[3]};
}

static us_msg_vector3 size_of(const usi_scenery_part *p) {
    return (us_msg_vector3){p->size[0], p->size[1], p->size[2]};
}

// The whole name of a model's file; "" without a place to get it from.
static char *address_of(usi_scenery_message *m, const usi_scenery_part *p) {
    if (!m->sink->assets || !p->file) return usi_text("");
    const size_t n = strlen(m->sink->assets) + strlen(p->file) + 16;
    char *text = usi_scenery_take(m, n, 1);
    if (text) snprintf(text, n, "%s%u/%s", m->sink->assets, (unsigned)m->revision, p->file);
    return text;
}

// ---------------------------------------------------------------- markers

static us_msg_marker marker_of(const usi_scenery_message *m, const char *name, int32_t id) {
    return (us_msg_marker){.header = {usi_scenery_time(m->time), frame},
                           .ns = usi_text(name),
                           .id = id,
                           .pose.orientation.w = 1,
                           .scale = {1, 1, 1}};
}

static us_msg_marker draw_marker(usi_scenery_message *m, const usi_scenery_part *p, int32_t id,
                                 us_pose X_WB) {
    static const int32_t types[] = {[USI_PART_CUBE] = MARKER_CUBE,
                                    [USI_PART_BALL] = MARKER_SPHERE,
                                    [USI_PART_CYLINDER] = MARKER_CYLINDER,
                                    [USI_PART_TRIANGLES] = MARKER_TRIANGLES,
                                    [USI_PART_MODEL] = MARKER_MESH};
    us_msg_marker out = marker_of(m, p->name, id);
    out.type = types[p->kind];
    out.pose = usi_scenery_pose(us_pose_mul(X_WB, p->X_BG));
    out.scale = size_of(p);
    out.frame_locked = true;
    out.color = (us_msg_color_rgba){p->rgba[0], p->rgba[1], p->rgba[2], p->rgba[3]};
    if (p->kind == USI_PART_TRIANGLES) {
        USI_SCENERY_TAKE(m, out.points, p->n_index);
        for (uint32_t i = 0; i < out.points._length; i++)
            out.points._buffer[i] = p->point[p->index[i]];
    }
    if (p->kind == USI_PART_MODEL) {
        out.mesh_resource = address_of(m, p);
        out.mesh_use_embedded_materials = true;
        out.color = (us_msg_color_rgba){0};  // those of the file alone
    }
    return out;
}

static bool is_in(const usi_scenery_view *view, int32_t i) {
    const int32_t body = view->parts->part[i].body;
    return view->is_still ? body < 0 : body >= 0 && view->is_wanted[body];
}

static us_pose pose_of(const usi_scenery_view *view, const usi_scenery_part *p) {
    return p->body < 0 ? us_pose_identity() : view->X_WB[p->body];
}

static const void *draw_markers(usi_scenery_message *m, const usi_scenery_view *view) {
    us_msg_marker_array *out = usi_scenery_take(m, 1, sizeof *out);
    int32_t n = view->is_new;
    for (int32_t i = view->first; i < view->end; i++)
        n += is_in(view, i);
    if (!out || n == 0) return NULL;
    USI_SCENERY_TAKE(m, out->markers, n);
    if (!out->markers._buffer) return NULL;
    us_msg_marker *at = out->markers._buffer;
    if (view->is_new) {
        *at = marker_of(m, "", 0);
        at++->action = MARKER_DELETE_ALL;
    }
    for (int32_t i = view->first; i < view->end; i++) {
        const usi_scenery_part *p = &view->parts->part[i];
        if (is_in(view, i)) *at++ = draw_marker(m, p, i, pose_of(view, p));
    }
    return out;
}

// ---------------------------------------------------------------- entities

// glTF has y up, and who reads it so turns it: our files have z up, and are turned back before.
static us_pose turned_back(us_pose X) {
    const double half = sqrt(0.5);
    return us_pose_mul(X, (us_pose){{half, -half, 0, 0}, {0, 0, 0}});
}

static void draw_part(usi_scenery_message *m, const usi_scenery_part *p, us_pose X, us_msg_scene_entity *to) {
    const us_msg_pose pose = usi_scenery_pose(X);
    const us_msg_color colour = colour_of(p->rgba);
    const us_msg_vector3 size = size_of(p);
    switch (p->kind) {
    case USI_PART_CUBE:
        to->cubes._buffer[to->cubes._length++] = (us_msg_cube_primitive){pose, size, colour};
        break;
    case USI_PART_BALL:
        to->spheres._buffer[to->spheres._length++] = (us_msg_sphere_primitive){pose, size, colour};
        break;
    case USI_PART_CYLINDER:
        to->cylinders._buffer[to->cylinders._length++] =
            (us_msg_cylinder_primitive){pose, size, 1, 1, colour};
        break;
    case USI_PART_TRIANGLES: {
        us_msg_triangle_list_primitive *t = &to->triangles._buffer[to->triangles._length++];
        t->pose = pose;
        t->color = colour;
        t->points._buffer = p->point;
        t->points._length = (uint32_t)p->n_point;
        t->indices._buffer = p->index;
        t->indices._length = (uint32_t)p->n_index;
        break;
    }
    case USI_PART_MODEL:
        to->models._buffer[to->models._length++] =
            (us_msg_model_primitive){.pose = usi_scenery_pose(turned_back(X)),
                                     .scale = size,
                                     .color = colour,
                                     .url = address_of(m, p),
                                     .media_type = usi_text("model/gltf-binary")};
        break;
    }
}

// An entity of parts first to end. Each list has room for all of them, and is as long as it needs.
static void draw_entity(usi_scenery_message *m, const usi_scenery_view *view, int32_t first, int32_t end,
                        us_msg_scene_entity *out) {
    const usi_scenery_part *part = view->parts->part;
    int32_t n[USI_PART_MODEL + 1] = {0};
    for (int32_t i = first; i < end; i++)
        n[part[i].kind]++;
    *out = usi_scenery_entity(m, part[first].name);
    USI_SCENERY_TAKE(m, out->cubes, n[USI_PART_CUBE]);
    USI_SCENERY_TAKE(m, out->spheres, n[USI_PART_BALL]);
    USI_SCENERY_TAKE(m, out->cylinders, n[USI_PART_CYLINDER]);
    USI_SCENERY_TAKE(m, out->triangles, n[USI_PART_TRIANGLES]);
    USI_SCENERY_TAKE(m, out->models, n[USI_PART_MODEL]);
    if (m->is_full) return;
    out->cubes._length = out->spheres._length = out->cylinders._length = 0;
    out->triangles._length = out->models._length = 0;
    for (int32_t i = first; i < end; i++)
        draw_part(m, &part[i], us_pose_mul(pose_of(view, &part[i]), part[i].X_BG), out);
}

static int32_t end_of_entity(const usi_scenery_parts *parts, int32_t first) {
    int32_t end = first + 1;
    while (end < parts->n && parts->part[end].name == parts->part[first].name)
        end++;
    return end;
}

static us_msg_scene_update *begin_update(usi_scenery_message *m, int32_t n_entity, bool is_new) {
    us_msg_scene_update *out = usi_scenery_take(m, 1, sizeof *out);
    if (!out) return NULL;
    USI_SCENERY_TAKE(m, out->deletions, is_new);
    USI_SCENERY_TAKE(m, out->entities, n_entity);
    if (m->is_full) return NULL;
    if (is_new) {
        out->deletions._buffer[0] =
            (us_msg_scene_entity_deletion){.timestamp = usi_scenery_time(m->time), .type = DELETE_ALL};
    }
    return out;
}

static const void *draw_update(usi_scenery_message *m, const usi_scenery_view *view) {
    const usi_scenery_parts *parts = view->parts;
    int32_t n = 0;
    for (int32_t i = view->first; i < view->end; i = end_of_entity(parts, i))
        n += is_in(view, i);
    if (n == 0 && !view->is_new) return NULL;
    us_msg_scene_update *out = begin_update(m, n, view->is_new);
    if (!out) return NULL;
    us_msg_scene_entity *at = out->entities._buffer;
    for (int32_t i = view->first, end; i < view->end && !m->is_full; i = end) {
        end = end_of_entity(parts, i);
        if (is_in(view, i)) draw_entity(m, view, i, end, at++);
    }
    return m->is_full ? NULL : out;
}

int32_t usi_scenery_message_end(const usi_scenery_parts *parts, int32_t first) {
    enum { EACH = 400, CORNER = sizeof(us_msg_point) };  // bytes of a part on the wire, about
    size_t bytes = 0;
    int32_t i = first;
    while (i < parts->n && bytes < USI_SCENERY_BYTES) {
        const int32_t end = end_of_entity(parts, i);
        for (; i < end; i++)
            bytes += EACH + CORNER * (size_t)parts->part[i].n_index;
    }
    return i;
}

const void *usi_scenery_draw_parts(usi_scenery_message *m, const usi_scenery_view *view) {
    return m->sink->is_foxglove ? draw_update(m, view) : draw_markers(m, view);
}

// ---------------------------------------------------------------- contacts

// Each is a line from its point along the force that acts there on what moves.
static us_msg_point *contact_lines(usi_scenery_message *m, const us_sim *sim, int32_t *out_n) {
    const int32_t n = us_sim_n_contact(sim);
    us_msg_point *at = usi_scenery_take(m, 2 * (size_t)n, sizeof *at), *point = at;
    for (int32_t i = 0; i < n && point; i++) {
        const us_contact c = us_sim_get_contact(sim, i);
        const us_vec3 tip = us_vec3_add(c.point, us_vec3_scale(c.body_a.i < 0 ? -FORCE : FORCE, c.force));
        *at++ = (us_msg_point){c.point.x, c.point.y, c.point.z};
        *at++ = (us_msg_point){tip.x, tip.y, tip.z};
    }
    *out_n = 2 * n;
    return point;
}

const void *usi_scenery_draw_contacts(usi_scenery_message *m, const us_sim *sim) {
    int32_t n = 0;
    us_msg_point *points = contact_lines(m, sim, &n);
    if (!points) return NULL;
    if (m->sink->is_foxglove) {
        us_msg_scene_update *out = begin_update(m, 1, false);
        if (!out) return NULL;
        us_msg_scene_entity *e = out->entities._buffer;
        *e = usi_scenery_entity(m, "contacts");
        USI_SCENERY_TAKE(m, e->lines, 1);
        if (m->is_full) return NULL;
        us_msg_line_primitive *line = e->lines._buffer;
        *line = (us_msg_line_primitive){.type = LINE_LIST,
                                        .pose = usi_scenery_pose(us_pose_identity()),
                                        .thickness = LINE,
                                        .color = colour_of(ORANGE)};
        line->points._buffer = points;
        line->points._length = (uint32_t)n;
        return out;
    }
    us_msg_marker_array *out = usi_scenery_take(m, 1, sizeof *out);
    if (!out) return NULL;
    USI_SCENERY_TAKE(m, out->markers, 1);
    if (m->is_full) return NULL;
    us_msg_marker *marker = out->markers._buffer;
    *marker = marker_of(m, "contacts", 0);
    marker->type = MARKER_LINE_LIST;
    // A list without points is an error to RViz: where nothing touches, the lines go.
    if (n == 0) marker->action = 2;
    marker->scale = (us_msg_vector3){LINE, 0, 0};
    marker->color = (us_msg_color_rgba){ORANGE[0], ORANGE[1], ORANGE[2], ORANGE[3]};
    marker->points._buffer = points;
    marker->points._length = (uint32_t)n;
    return out;
}
