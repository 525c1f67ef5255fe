// Scene reader: functions that its files share.
#ifndef USI_SPEC_SCENE_H
#define USI_SPEC_SCENE_H

#include "spec/xml.h"
#include "understudy/network.h"
#include "understudy/terrain.h"

// ---- scene_value.c: numbers with units ----

// X(code, what, units): the quantities that have units. The units are listed as users may write them.
#define USI_DIMENSION_LIST(X)                          \
    X(USI_PLAIN, "a plain number", "")                 \
    X(USI_LENGTH, "a length", "m mm cm km in ft")      \
    X(USI_ANGLE, "an angle", "rad deg")                \
    X(USI_TIME, "a time", "s ms us min")               \
    X(USI_MASS, "a mass", "kg g t")                    \
    X(USI_FORCE, "a force", "N kN")                    \
    X(USI_TORQUE, "a torque", "Nm kNm")                \
    X(USI_FREQUENCY, "a frequency", "Hz kHz")          \
    X(USI_SPEED, "a speed", "m/s mm/s km/h")           \
    X(USI_SPIN, "an angular speed", "rad/s deg/s rpm") \
    X(USI_ACCELERATION, "an acceleration", "m/s^2")    \
    X(USI_ENERGY, "an energy", "J kJ Wh kWh")          \
    X(USI_POWER, "a power", "W kW")                    \
    X(USI_VOLTAGE, "a voltage", "V mV kV")             \
    X(USI_DATA_RATE, "a data rate", "B/s kB/s MB/s")   \
    X(USI_BYTES, "an amount of memory", "B kB MB GB")

typedef enum usi_dimension {
#define USI_DIMENSION_ENUM(code, what, units) code,
    USI_DIMENSION_LIST(USI_DIMENSION_ENUM)
#undef USI_DIMENSION_ENUM
        USI_DIMENSION_COUNT
} usi_dimension;

// Lookup of an attribute: in the element itself, then in its own default, then in that of its robot or
// object. NULLs are skipped.
typedef struct usi_look {
    const xmlNode *node[3];
} usi_look;
usi_look usi_look_at(const xmlNode *node);
// The element that has the attribute, or NULL.
const xmlNode *usi_look_find(const usi_look *look, const char *name);

enum { USI_LIST_LIMIT = 64 };  // numbers in one attribute

// Reads up to `max` (<= USI_LIST_LIMIT) numbers of an attribute, each of its own dimension, into out (SI).
// *out_count is 0 when the attribute is absent; more than `max` numbers are an error.
us_status usi_look_list(usi_reader *r, const usi_look *look, const char *name,
                        const usi_dimension *dimensions, int max, double *out, int *out_count);
// Exactly n numbers of one dimension. A missing attribute leaves *out as it is.
us_status usi_look_numbers(usi_reader *r, const usi_look *look, const char *name, usi_dimension dimension,
                           int n, double *out);
us_status usi_look_number(usi_reader *r, const usi_look *look, const char *name, usi_dimension dimension,
                          double *out);
// The same for a number that must be at least 0, or greater than 0 when `is_strict`.
us_status usi_look_positive(usi_reader *r, const usi_look *look, const char *name, usi_dimension dimension,
                            bool is_strict, double *out);
// xyz with rpy or quat; what is missing leaves its part as it is.
us_status usi_scene_pose(usi_reader *r, const xmlNode *node, us_pose *out_X);
us_status usi_scene_rotation(usi_reader *r, const xmlNode *node, us_quat *out_q);
// Normalises a quaternion written by a user; warns when it is far from unit length, fails when it is 0.
us_status usi_scene_unit_quat(usi_reader *r, const xmlNode *node, const char *name, us_quat *q);

// A number with or without a unit that makes up the whole text, in SI. False when it is something else.
bool usi_measure_whole(const char *text, double *out);
// A number in a unit (SI; "1": none) or in another of the same quantity, in SI. US_ERR_VALUE.
us_status usi_measure_in(const char *text, const char *unit, double *out, us_error *err);

// ---- scene_site.c: ground on disk ----

// Where a <world> lies, and when (scene_sky.c). What it says about its place comes from the ground where it
// names a planet alone.
us_status usi_scene_sky(usi_reader *r, const xmlNode *node, us_sky *sky);
us_status usi_scene_sky_of_ground(usi_reader *r, const xmlNode *root);
// scene_light.c: the <light> of a <world>.
us_status usi_scene_light(usi_reader *r, const xmlNode *world, us_light_def *light);
bool usi_is_site(const char *path);  // a directory, or written as one
us_status usi_scene_site(usi_reader *r, const xmlNode *node, const char *path, us_shape_def *s);

// ---- scene_expression.c: the arithmetic in ${...} ----

// Callback that gives the value of a name in an expression, or an error of the reader.
typedef us_status (*usi_name_value)(void *context, const char *name, double *out);
// Computes `text`; `node` is where errors are reported. Errors: US_ERR_SYNTAX, US_ERR_VALUE and those of
// `value_of`.
us_status usi_expression(usi_reader *r, const xmlNode *node, const char *text, usi_name_value value_of,
                         void *context, double *out);
// The same for a text without ${}.
us_status usi_expression_plain(usi_reader *r, const xmlNode *node, const char *text, usi_name_value value_of,
                               void *context, double *out);

// ---- scene_expand.c: includes, repeats and parameters ----

// Expands includes and repeats, then substitutes ${...} in all attributes but those of <parameter>.
// Afterwards there is no <include> and no <repeat>.
us_status usi_scene_expand(usi_reader *r, xmlDoc *doc);

// ---- scene_schema.c: validation ----

// Validates against schema/scene.xsd; errors in plain language.
us_status usi_scene_validate(usi_reader *r, xmlDoc *doc);

// ---- scene.c, scene_object.c, scene_shape.c, scene_surface.c, scene_joint.c, scene_relation.c: reading ----

// A robot or object while it is read. Names inside it are relative to it.
typedef struct usi_scene_group {
    const xmlNode *node;
    const char *name;            // "" for elements outside of groups
    int32_t index;               // of the spec's group; -1 outside
    int32_t first_link, n_link;  // its part of the spec's links: they follow each other
    int32_t first_joint, n_joint;
    const xmlNode *default_node;  // <default> that holds for all of it, or NULL
    us_pose X_WG;
} usi_scene_group;

// Lookup of the attributes of a joint or drive (`kind`) inside a group, defaults included. Errors: unknown
// default.
us_status usi_scene_look(usi_reader *r, const usi_scene_group *group, const xmlNode *node, const char *kind,
                         usi_look *out_look);
// The <default> that an element uses, or NULL.
us_status usi_scene_default(usi_reader *r, const xmlNode *user, const xmlNode **out_default);
// The status of us_spec_add_... as an error at the node.
us_status usi_scene_added(usi_reader *r, const xmlNode *node, us_status status);

// "group/name", or the name itself outside groups. NULL without memory.
const char *usi_scene_full_name(usi_reader *r, const usi_scene_group *group, const char *name);
// Names to indices, with a suggestion when there is none. A link may be "world" (US_WORLD).
us_status usi_scene_find_joint(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                               const char *attribute, int32_t *out_joint);
us_status usi_scene_find_link(usi_reader *r, const usi_scene_group *group, const xmlNode *node,
                              const char *attribute, int32_t *out_link);

// Values of a joint: what every joint has (damping, limits, ...) and the start state. Both look at j->type.
us_status usi_scene_joint_values(usi_reader *r, const usi_look *look, us_joint_def *j);

// scene_shape.c: one <shape> with all inside it; margin, part-error, group, mask and surface alone; a number
// made of bits.
us_status usi_scene_shape(usi_reader *r, const xmlNode *node, us_shape_def *out);
us_status usi_scene_contact(usi_reader *r, const xmlNode *node, us_shape_def *s);
us_status usi_scene_bits(usi_reader *r, const xmlNode *node, const char *name, uint32_t *out);

// scene_raster.c: file="x.tif" of a height field.
bool usi_scene_is_raster(const xmlNode *node);
us_status usi_scene_raster(usi_reader *r, const xmlNode *node, us_shape_def *s);
// A raster over a ground, which an attribute of `node` names. Over a ground that is a GeoTIFF itself it is
// laid by its reference system; over another one its middle is the ground's. Samples as of usi_raster_read,
// numbers as they are in the file; they belong to the reader.
typedef struct usi_scene_grid {
    int32_t n_x, n_y;
    double dx, dy;
    void *samples;
} usi_scene_grid;
us_status usi_scene_over(usi_reader *r, const xmlNode *node, const char *attribute, const xmlNode *ground,
                         us_layer_type type, int64_t max, usi_scene_grid *out);

// scene_soil.c: what a material is as soil, and as a tread.
us_status usi_scene_soil(usi_reader *r, const xmlNode *node, us_material_def *out);
us_status usi_scene_regions(usi_reader *r, const xmlNode *root);    // scene_region.c: after <world>'s shapes
us_status usi_scene_soil_maps(usi_reader *r, const xmlNode *root);  // scene_soil_map.c: the same
// scene_region.c: the ground that an element names, a plane or height field of the world, and where it is
// written.
us_status usi_scene_ground(usi_reader *r, const xmlNode *root, const xmlNode *node,
                           const us_shape_def **out_shape, const xmlNode **out_ground);
// scene_shape.c: counts the numbers in a text (`out` NULL), or stores them.
us_status usi_scene_numbers(usi_reader *r, const xmlNode *node, const char *what, const char *text,
                            double *out, int32_t max, int32_t *out_n);
// scene_scatter.c: after all groups. The first n_ground shapes of the spec are the ground.
us_status usi_scene_scatter(usi_reader *r, const xmlNode *node, int32_t n_ground);

// scene_surface.c: materials first, then everything that names them.
us_status usi_scene_materials(usi_reader *r, const xmlNode *root);
us_status usi_scene_pairs(usi_reader *r, const xmlNode *root);
// The material that an attribute names, with a suggestion when there is none. A missing attribute leaves
// *out_name as it is.
us_status usi_scene_material(usi_reader *r, const xmlNode *node, const char *attribute,
                             const char **out_name);
us_status usi_scene_exclude(usi_reader *r, const usi_scene_group *group, const xmlNode *node);
us_status usi_scene_surfaces(usi_reader *r, const usi_scene_group *group);  // <surface>, <level> of a robot

us_status usi_scene_object_links(usi_reader *r, usi_scene_group *group);
us_status usi_scene_object_joints(usi_reader *r, usi_scene_group *group);
us_status usi_scene_relations(usi_reader *r, const usi_scene_group *group);  // drives, couplings, loops
us_status usi_scene_record(usi_reader *r, const xmlNode *node);
us_status usi_scene_plugins(usi_reader *r, const xmlNode *root);  // scene_plugin.c

// scene_network.c: the network of a robot, after all drives; the rate of the clock, an attribute of <world>,
// after its step.
us_status usi_scene_network(usi_reader *r, const usi_scene_group *group);
us_status usi_scene_clock_rate(usi_reader *r, const xmlNode *world, double *out);
// scene_topic.c: into the definition, whose sensors are read before its topics; a rate of messages, at most
// one in each step.
us_status usi_scene_sensors(usi_reader *r, const usi_scene_group *group, us_network_def *d);
// scene_lidar.c: what a <sensor type="lidar"> is made of, and its usual rate; of another type, that it has
// nothing of that.
us_status usi_scene_lidar(usi_reader *r, const xmlNode *node, us_sensor_def *s);
// scene_sensor.c: every attribute of a <sensor> is one of all sensors, one of the kind's parameters, or one
// of `more`.
us_status usi_scene_sensor_attributes(usi_reader *r, const xmlNode *node, const us_sensor_kind *k,
                                      const char *const *more, size_t n_more);
us_status usi_scene_topics(usi_reader *r, const xmlNode *network, us_network_def *d);
// Who commands it: <source> inside <network>.
us_status usi_scene_interface(usi_reader *r, const xmlNode *network, us_network_def *d);
us_status usi_scene_command_sources(usi_reader *r, const xmlNode *network, us_network_def *d);
us_status usi_scene_rate(usi_reader *r, const xmlNode *node, const char *name, double *out);

// Dimension of a position (USI_PLAIN for quaternions), velocity and effort of a joint's coordinate.
usi_dimension usi_joint_dimension(us_joint_type type, int coordinate);
usi_dimension usi_rate_dimension(us_joint_type type, int coordinate);
usi_dimension usi_effort_dimension(us_joint_type type, int coordinate);

#endif
