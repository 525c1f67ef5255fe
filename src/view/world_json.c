// The world of an revision as JSON, for the page: docs/viewer-protocol.md, "The world as JSON".
//
// Everything that the page may name stands at its index. What is large goes elsewhere: meshes and heights are
// assets, fetched on their own and only once where several shapes show the same file.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geom/geom.h"
#include "model/lidars.h"
#include "model/robots.h"
#include "spec/sensor_kind.h"
#include "understudy/network.h"
#include "view/view__asset.h"
#include "view/view__bytes.h"
#include "view/view__ground.h"
#include "world/revision.h"

enum {
    JSON_LIMIT = 256 * 1024 * 1024,  // bytes
    POINTS_AS_WRITTEN = 64,          // of a hull; of more points only the hull's corners are sent
    PART_DEPTH = 32,                 // nesting of unions and intersections
    NAME_BYTES = 400,                // of an asset's name: a number and a dot for each level
};

static void put_pose(usi_json *json, us_pose X) {
    const double q[4] = {X.q.w, X.q.x, X.q.y, X.q.z};
    usi_json_vector(json, "p", X.p);
    usi_json_numbers(json, "q", q, 4);
}

// ---- Groups, links, joints, drives ----

// One that the scene has in store.
static void put_fault(usi_json *json, const us_fault_def *fault) {
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "what", fault->what);
    usi_json_number(json, "at", fault->at);
    usi_json_text(json, "when", fault->when);
    usi_json_text(json, "name", fault->name);
    usi_json_text(json, "after", fault->after);
    usi_json_number(json, "for", fault->duration);
    usi_json_end(json, '}');
}

static void put_group(usi_json *json, const us_spec *spec, int32_t i) {
    const us_group_def *group = us_spec_view_group(spec, i);
    const us_network_def *network = us_spec_view_network(spec, i);
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "name", group->name);
    usi_json_bool(json, "floating", group->is_floating);
    usi_json_text(json, "file", group->file);
    usi_json_bool(json, "robot", network != NULL);
    // A robot that is hidden from the network has no namespace, and takes no commands by it; one that was
    // added takes none from a page.
    bool is_on = network && !network->is_off && !group->is_added;
    usi_json_text(json, "namespace", is_on ? network->namespace_ : NULL);
    if (is_on && network->locomotion != US_LOCOMOTION_NONE) {
        usi_json_begin(json, "locomotion", '{');
        usi_json_text(json, "type", us_locomotion_name(network->locomotion));
        usi_json_number(json, "max_speed", network->max_speed);
        usi_json_number(json, "max_turn", network->max_turn);
        usi_json_end(json, '}');
    } else {
        usi_json_null(json, "locomotion");
    }
    usi_json_begin(json, "faults", '[');
    for (int32_t k = 0; is_on && k < network->n_fault; k++)
        put_fault(json, &network->faults[k]);
    usi_json_end(json, ']');
    usi_json_end(json, '}');
}

static void put_link(usi_json *json, const us_link_def *link) {
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "name", link->name);
    usi_json_integer(json, "group", link->group);
    usi_json_number(json, "mass", link->inertia.mass);
    usi_json_vector(json, "com", link->inertia.com);
    usi_json_numbers(json, "inertia", link->inertia.about_com, 6);
    usi_json_end(json, '}');
}

// A broken one is what it acts as: it floats.
static void put_joint(usi_json *json, const us_joint_def *joint) {
    us_joint_type type = joint->is_broken ? US_JOINT_FLOATING : joint->type;
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "name", joint->name);
    usi_json_integer(json, "group", joint->group);
    usi_json_text(json, "type", us_joint_type_name(type));
    usi_json_integer(json, "parent", joint->is_broken ? US_WORLD : joint->parent);
    usi_json_integer(json, "child", joint->child);
    put_pose(json, joint->is_broken ? us_pose_identity() : joint->X_PF);
    usi_json_vector(json, "axis", joint->axis);
    if (joint->has_limits && !joint->is_broken) {
        const double limits[2] = {joint->lower, joint->upper};
        usi_json_numbers(json, "limits", limits, 2);
    } else {
        usi_json_null(json, "limits");
    }
    usi_json_number(json, "damping", joint->damping);
    usi_json_number(json, "stiffness", joint->stiffness);
    usi_json_number(json, "friction", joint->friction);
    usi_json_number(json, "armature", joint->armature);
    usi_json_integer(json, "n_q", us_joint_type_n_q(type));
    usi_json_integer(json, "n_v", us_joint_type_n_v(type));
    if (joint->is_broken) usi_json_bool(json, "broken", true);
    usi_json_end(json, '}');
}

static void put_drive(usi_json *json, const us_drive_def *drive) {
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "name", drive->name);
    usi_json_integer(json, "joint", drive->joint);
    usi_json_number(json, "kp", drive->kp);
    usi_json_number(json, "kd", drive->kd);
    usi_json_number(json, "limit", drive->limit);
    usi_json_end(json, '}');
}

// ---- Shapes ----

// What makes the files of two shapes the same: the mesh, its scale, and the colour for what has none in the
// file.
static uint64_t asset_key(const us_shape_def *shape) {
    if (!shape->mesh || usi_asset_of(shape) != USI_ASSET_GLB) return 0;
    uint64_t key = us_hash_bytes(1, shape->mesh, strlen(shape->mesh));
    key = us_hash_bytes(key, shape->size, sizeof shape->size);
    return us_hash_bytes(key, shape->rgba, sizeof shape->rgba);
}

static bool is_same_asset(const us_shape_def *a, const us_shape_def *b) {
    return strcmp(a->mesh, b->mesh) == 0 && memcmp(a->size, b->size, sizeof a->size) == 0 &&
           memcmp(a->rgba, b->rgba, sizeof a->rgba) == 0;
}

// The first shape whose file is that of shape i.
static int32_t first_of_asset(const us_spec *spec, const uint64_t *keys, int32_t i) {
    if (keys[i] == 0) return i;
    for (int32_t k = 0; k < i; k++) {
        if (keys[k] == keys[i] && is_same_asset(us_spec_view_shape(spec, k), us_spec_view_shape(spec, i)))
            return k;
    }
    return i;
}

// A hull may be that of a scan with a million points: its corners say the same.
static void put_points(usi_json *json, const us_shape_def *shape) {
    us_hull *hull = NULL;
    const us_vec3 *points = shape->points;
    int32_t n = shape->n_point;
    if (shape->kind == US_SHAPE_CONVEX && n > POINTS_AS_WRITTEN &&
        us_hull_create(points, n, &json->out->allocator, &hull, NULL) == US_OK) {
        points = hull->vertex;
        n = hull->n_vertex;
    }
    usi_json_begin(json, "points", '[');
    for (int32_t i = 0; i < n; i++) {
        usi_json_number(json, NULL, points[i].x);
        usi_json_number(json, NULL, points[i].y);
        usi_json_number(json, NULL, points[i].z);
    }
    usi_json_end(json, ']');
    us_hull_destroy(hull);
}

static bool has_colour(const us_shape_def *shape) {
    us_shape_def silent = us_shape_def_default(shape->kind);
    return memcmp(silent.rgba, shape->rgba, sizeof silent.rgba) != 0;
}

// Where its tiles are, and how many levels of them.
static void put_ground(usi_json *json, const us_shape_def *shape, uint32_t revision, const char *name) {
    usi_ground ground;
    if (usi_ground_open(shape, &json->out->allocator, &ground, NULL)) return;
    char path[NAME_BYTES + 64];
    double low, high;
    snprintf(path, sizeof path, "/api/asset/%u/%s", (unsigned)revision, name);
    usi_ground_extremes(&ground, &low, &high);
    usi_json_begin(json, "ground", '{');
    usi_json_text(json, "tiles", path);
    usi_json_integer(json, "levels", ground.n_level);
    usi_json_bool(json, "photo", ground.colour_index >= 0);
    usi_json_number(json, "low", low);
    usi_json_number(json, "high", high);
    usi_json_end(json, '}');
    usi_ground_close(&ground);
}

// `name`: of its asset, without the ending: "3", and for a part of it "3.0".
static void put_shape(usi_json *json, const us_shape_def *shape, uint32_t revision, const char *name,
                      int depth) {
    usi_json_begin(json, NULL, '{');
    usi_json_integer(json, "link", shape->link);
    usi_json_text(json, "name", shape->name);
    usi_json_text(json, "kind", us_shape_kind_name(shape->kind));
    usi_json_numbers(json, "size", shape->size, 3);
    put_pose(json, shape->X_BG);
    usi_json_bool(json, "visual", shape->is_visual);
    usi_json_bool(json, "collision", shape->is_collision);
    usi_json_text(json, "surface", shape->surface);
    if (has_colour(shape)) {
        usi_json_floats(json, "rgba", shape->rgba, 4);
    } else {
        usi_json_null(json, "rgba");
    }
    usi_json_number(json, "margin", shape->margin);
    usi_json_integer(json, "level", shape->level);
    if (shape->kind == US_SHAPE_HEIGHT_FIELD) {
        usi_json_integer(json, "nx", shape->n_x);
        usi_json_integer(json, "ny", shape->n_y);
        put_ground(json, shape, revision, name);
    }
    usi_asset_kind asset = usi_asset_of(shape);
    if (asset != USI_ASSET_NONE) {
        char path[NAME_BYTES + 64];
        snprintf(path, sizeof path, "/api/asset/%u/%s%s", (unsigned)revision, name, usi_asset_ending(asset));
        usi_json_text(json, "asset", path);
    }
    bool is_file = shape->kind == US_SHAPE_MESH || asset == USI_ASSET_GLB;
    if (is_file && shape->n_triangle > 0) {
        usi_json_begin(json, "box", '{');
        usi_json_vector(json, "min", shape->box_min);
        usi_json_vector(json, "max", shape->box_max);
        usi_json_end(json, '}');
    }
    if (shape->kind != US_SHAPE_MESH && shape->n_point > 0) put_points(json, shape);
    if ((shape->kind == US_SHAPE_UNION || shape->kind == US_SHAPE_INTERSECTION) && depth < PART_DEPTH) {
        usi_json_begin(json, "parts", '[');
        for (int32_t k = 0; k < shape->n_part; k++) {
            char part[NAME_BYTES];
            snprintf(part, sizeof part, "%.*s.%d", NAME_BYTES - 16, name, (int)k);
            put_shape(json, &shape->parts[k], revision, part, depth + 1);
        }
        usi_json_end(json, ']');
    }
    usi_json_end(json, '}');
}

static void put_shapes(usi_json *json, const usi_revision *revision, int32_t n_shape) {
    const us_allocator *a = &json->out->allocator;
    size_t size = (size_t)n_shape * sizeof(uint64_t);
    uint64_t *keys = usi_alloc(a, size, _Alignof(uint64_t));
    if (!keys) {
        json->out->status = US_ERR_MEMORY;
        return;
    }
    usi_json_begin(json, "shapes", '[');
    for (int32_t i = 0; i < n_shape; i++) {
        const us_shape_def *shape = us_spec_view_shape(revision->spec, i);
        keys[i] = asset_key(shape);
        char name[16];
        snprintf(name, sizeof name, "%d", (int)first_of_asset(revision->spec, keys, i));
        put_shape(json, shape, revision->number, name, 0);
    }
    usi_json_end(json, ']');
    usi_release(a, keys, size, _Alignof(uint64_t));
}

// ---- How surfaces touch, and what holds joints and links together ----

static void put_material(usi_json *json, const us_material_def *material) {
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "name", material->name);
    usi_json_begin(json, "properties", '{');
    for (int32_t k = 0; k < material->n_property; k++) {
        const us_property *p = &material->properties[k];
        if (p->type == US_PROPERTY_STRING) usi_json_text(json, p->key, p->text);
        if (p->type == US_PROPERTY_NUMBER) usi_json_number(json, p->key, p->number);
        if (p->type == US_PROPERTY_INTEGER) usi_json_integer(json, p->key, p->integer);
    }
    usi_json_end(json, '}');
    usi_json_end(json, '}');
}

static void put_pair(usi_json *json, const us_pair_def *pair) {
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "a", pair->material_a);
    usi_json_text(json, "b", pair->material_b);
    usi_json_text(json, "model", pair->model);
    usi_json_text(json, "fidelity", pair->fidelity);
    usi_json_end(json, '}');
}

// The shape that a region lies on; -1 for none. Of two with the same name it is the later one.
static int32_t find_ground(const us_spec *spec, int32_t n_shape, const char *name) {
    for (int32_t i = n_shape - 1; i >= 0; i--) {
        const us_shape_def *shape = us_spec_view_shape(spec, i);
        bool is_ground = shape->kind == US_SHAPE_HALF_SPACE || shape->kind == US_SHAPE_HEIGHT_FIELD;
        if (is_ground && shape->link == US_WORLD && shape->is_collision && shape->name &&
            strcmp(shape->name, name) == 0)
            return i;
    }
    return -1;
}

static void put_polygon(usi_json *json, const us_region_def *region) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int32_t k = 0; k < 2 * region->n_corner; k++) {
        low[k % 2] = fmin(low[k % 2], region->corners[k]);
        high[k % 2] = fmax(high[k % 2], region->corners[k]);
    }
    usi_json_numbers(json, "min", low, 2);
    usi_json_numbers(json, "max", high, 2);
    usi_json_numbers(json, "polygon", region->corners, 2 * (size_t)region->n_corner);
}

static void put_mask(usi_json *json, const us_region_def *region, uint32_t revision, int32_t index) {
    usi_region_grid grid = usi_region_grid_of(region);
    const double low[2] = {-0.5 * region->n_x * region->dx, -0.5 * region->n_y * region->dy};
    const double high[2] = {low[0] + grid.n_x * grid.step * region->dx,
                            low[1] + grid.n_y * grid.step * region->dy};
    char path[64];
    snprintf(path, sizeof path, "/api/asset/%u/region/%d.mask", (unsigned)revision, (int)index);
    usi_json_numbers(json, "min", low, 2);
    usi_json_numbers(json, "max", high, 2);
    usi_json_begin(json, "mask", '{');
    usi_json_text(json, "path", path);
    usi_json_integer(json, "nx", grid.n_x);
    usi_json_integer(json, "ny", grid.n_y);
    usi_json_end(json, '}');
}

static void put_regions(usi_json *json, const usi_revision *revision, const us_spec_counts *n) {
    usi_json_begin(json, "regions", '[');
    for (int32_t i = 0; i < n->n_region; i++) {
        const us_region_def *region = us_spec_view_region(revision->spec, i);
        usi_json_begin(json, NULL, '{');
        usi_json_text(json, "name", region->name);
        usi_json_integer(json, "shape", find_ground(revision->spec, n->n_shape, region->ground));
        usi_json_text(json, "material", region->material);
        if (region->mask) {
            put_mask(json, region, revision->number, i);
        } else {
            put_polygon(json, region);
        }
        usi_json_end(json, '}');
    }
    usi_json_end(json, ']');
}

// What sensors of a kind say, and what of it can be changed while they run. Lidars have neither: their frames
// are points.
static void put_sensor_kind(usi_json *json, const us_sensor_kind *k) {
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "name", k->name);
    usi_json_begin(json, "readings", '[');
    for (int32_t i = 0; i < k->n_reading; i++) {
        usi_json_begin(json, NULL, '{');
        usi_json_text(json, "name", k->readings[i].name);
        usi_json_text(json, "unit", k->readings[i].unit);
        usi_json_end(json, '}');
    }
    usi_json_end(json, ']');
    usi_json_begin(json, "parameters", '[');
    for (int32_t i = 0; i < k->n_parameter; i++) {
        const us_sensor_parameter *p = &k->parameters[i];
        if (p->is_fixed || p->type == US_PARAMETER_JOINT || p->type == US_PARAMETER_LINK) continue;
        usi_json_begin(json, NULL, '{');
        usi_json_text(json, "name", p->name);
        usi_json_text(json, "unit", p->unit);
        usi_json_number(json, "low", p->low);
        usi_json_number(json, "high", p->high);
        usi_json_text(json, "about", p->about);
        if (p->type == US_PARAMETER_CHOICE) {
            usi_json_begin(json, "choices", '[');
            for (int32_t c = 0; p->choices[c]; c++)
                usi_json_text(json, NULL, p->choices[c]);
            usi_json_end(json, ']');
        }
        usi_json_end(json, '}');
    }
    usi_json_end(json, ']');
    usi_json_end(json, '}');
}

// What a lidar sees: sectors between two elevations, or a cone.
static void put_lidar_view(usi_json *json, const usi_lidar *l) {
    const us_lidar_def *d = l->def;
    if (d->pattern == US_LIDAR_ROSETTE) {
        usi_json_number(json, "fov", 2 * (fabs(d->bend[0]) + fabs(d->bend[1])));
        return;
    }
    const bool is_grid = d->pattern == US_LIDAR_GRID;
    const double low = is_grid ? -0.5 * d->window[1] : atan(l->lowest),
                 high = is_grid ? 0.5 * d->window[1] : atan(l->highest);
    usi_json_number(json, "start", is_grid ? 0.5 * d->window[0] : d->start);
    usi_json_number(json, "sweep", is_grid ? -d->window[0] : d->sweep);
    usi_json_numbers(json, "elevation", (double[2]){low, high}, 2);
}

static void put_parameter_as(usi_json *json, const usi_sensor *sensor, const char *name, const char *key) {
    const int32_t i = usi_find_parameter(sensor->kind, name);
    if (i >= 0) usi_json_number(json, key, sensor->parameter[i]);
}

// The angles between the left and right, and the upper and lower edge of a camera's pictures, without the
// distortion of its lens.
static void put_camera_view(usi_json *json, const usi_sensor *sensor) {
    const double *value = sensor->parameter;
    const us_sensor_kind *kind = sensor->kind;
    const double wide = value[usi_find_parameter(kind, "fov")];
    const double ratio =
        value[usi_find_parameter(kind, "height")] /
        (value[usi_find_parameter(kind, "width")] * value[usi_find_parameter(kind, "aspect")]);
    usi_json_number(json, "wide", wide);
    usi_json_number(json, "high", wide < 3 ? 2 * atan(tan(0.5 * wide) * ratio) : wide * ratio);
}

// What robots measure with, and of a lidar what its cloud is called in frames.
static void put_sensor(usi_json *json, const us_model *model, const usi_sensor *sensor) {
    usi_json_begin(json, NULL, '{');
    usi_json_text(json, "robot", model->robot[sensor->robot].name);
    usi_json_text(json, "name", sensor->name);
    usi_json_text(json, "kind", sensor->kind->name);
    usi_json_number(json, "rate", sensor->rate);
    usi_json_integer(json, "link", sensor->body);
    put_pose(json, sensor->X_BS);
    if (sensor->kind->is_frame) {
        const usi_lidar *l = &model->lidar[sensor->lidar];
        usi_json_integer(json, "lidar", sensor->lidar);
        usi_json_integer(json, "rings", l->n_ring);
        usi_json_number(json, "range", l->def->max_range);
        put_lidar_view(json, l);
    } else if (usi_sensor_is(sensor, "camera")) {
        put_camera_view(json, sensor);
    } else {
        put_parameter_as(json, sensor, "max-range", "range");
        put_parameter_as(json, sensor, "field-of-view", "fov");
    }
    usi_json_end(json, '}');
}

static void put_sensors(usi_json *json, const us_model *model) {
    usi_json_begin(json, "sensors", '[');
    for (int32_t i = 0; i < model->n_sensor; i++)
        put_sensor(json, model, &model->sensor[i]);
    usi_json_end(json, ']');
    usi_json_begin(json, "sensor_kinds", '[');
    for (int32_t i = 0; i < model->n_sensor; i++) {
        bool is_new = true;
        for (int32_t k = 0; k < i && is_new; k++)
            is_new = model->sensor[k].kind != model->sensor[i].kind;
        if (is_new) put_sensor_kind(json, model->sensor[i].kind);
    }
    usi_json_end(json, ']');
}

static void put_relations(usi_json *json, const us_spec *spec, const us_spec_counts *n) {
    usi_json_begin(json, "materials", '[');
    for (int32_t i = 0; i < n->n_material; i++)
        put_material(json, us_spec_view_material(spec, i));
    usi_json_end(json, ']');
    usi_json_begin(json, "pairs", '[');
    for (int32_t i = 0; i < n->n_pair; i++)
        put_pair(json, us_spec_view_pair(spec, i));
    usi_json_end(json, ']');
    usi_json_begin(json, "couplings", '[');
    for (int32_t i = 0; i < n->n_coupling; i++) {
        usi_json_begin(json, NULL, '{');
        usi_json_text(json, "name", us_spec_view_coupling(spec, i)->name);
        usi_json_end(json, '}');
    }
    usi_json_end(json, ']');
    usi_json_begin(json, "loops", '[');
    for (int32_t i = 0; i < n->n_loop; i++) {
        static const char *const types[US_LOOP_COUNT] = {"point", "hinge", "weld"};
        const us_loop_def *loop = us_spec_view_loop(spec, i);
        usi_json_begin(json, NULL, '{');
        usi_json_text(json, "name", loop->name);
        usi_json_text(json, "type", types[loop->type]);
        usi_json_end(json, '}');
    }
    usi_json_end(json, ']');
}

static void put_world(usi_json *json, const usi_revision *revision) {
    const us_spec *spec = revision->spec;
    const us_world_settings *def = us_spec_view_world(spec);
    us_spec_counts n = us_spec_get_counts(spec);
    usi_json_begin(json, NULL, '{');
    usi_json_integer(json, "epoch", revision->number);
    usi_json_text(json, "name", def->name);
    usi_json_text(json, "file", revision->file);
    usi_json_number(json, "step", def->step);
    usi_json_vector(json, "gravity", def->gravity);
    usi_json_text(json, "integrator", us_integrator_name(def->integrator));
    usi_json_text(json, "solver", def->solver);
    usi_json_number(json, "seed", (double)def->seed);
    usi_json_begin(json, "groups", '[');
    for (int32_t i = 0; i < n.n_group; i++)
        put_group(json, spec, i);
    usi_json_end(json, ']');
    usi_json_begin(json, "links", '[');
    for (int32_t i = 0; i < n.n_link; i++)
        put_link(json, us_spec_view_link(spec, i));
    usi_json_end(json, ']');
    usi_json_begin(json, "joints", '[');
    for (int32_t i = 0; i < n.n_joint; i++)
        put_joint(json, us_spec_view_joint(spec, i));
    usi_json_end(json, ']');
    usi_json_begin(json, "drives", '[');
    for (int32_t i = 0; i < n.n_drive; i++)
        put_drive(json, us_spec_view_drive(spec, i));
    usi_json_end(json, ']');
    put_shapes(json, revision, n.n_shape);
    put_relations(json, spec, &n);
    put_regions(json, revision, &n);
    put_sensors(json, revision->model);
    usi_json_end(json, '}');
}

us_status usi_world_json(const usi_revision *revision, const us_allocator *allocator, char **out_bytes,
                         size_t *out_length) {
    usi_bytes bytes;
    usi_bytes_init(&bytes, allocator, JSON_LIMIT);
    usi_json json;
    usi_json_init(&json, &bytes);
    put_world(&json, revision);
    usi_json_fini(&json);
    return usi_bytes_take(&bytes, out_bytes, out_length);
}
