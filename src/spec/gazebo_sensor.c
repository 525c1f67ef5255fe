// <gazebo reference="LINK"><sensor type="..."> of robot files: what they ask for as sensors of ours.
//
// Types are mapped to kinds by a table; pose, rate, topic and noise are taken over where the kind has what
// they are. What is not understood is named once for each sensor, in a warning at the element. A <sensor> of
// the scene with the same name goes first.
#include "spec/gazebo_sensor.h"

#include <ctype.h>
#include <libxml/parser.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_value.h"
#include "spec/publication.h"
#include "spec/sensor_kind.h"
#include "spec/spec.h"
#include "understudy/lidar.h"

static const double PI = 3.14159265358979323846;

static const struct {
    const char *type, *kind;
} types[] = {{"imu", "imu"},
             {"ray", "lidar"},
             {"gpu_ray", "lidar"},
             {"lidar", "lidar"},
             {"gpu_lidar", "lidar"},
             {"gps", "navsat"},
             {"navsat", "navsat"},
             {"altimeter", "altimeter"},
             {"magnetometer", "magnetometer"},
             {"force_torque", "force-torque"},
             {"contact", "contact-switch"},
             {"camera", "camera"},
             {"depth", "camera"},
             {"depth_camera", "camera"},
             {"rgbd_camera", "camera"}};
enum { N_TYPE = sizeof types / sizeof *types };

typedef struct gazebo {
    usi_reader *r;
    us_network_def *d;
    us_sensor_def *sensors;      // of d
    us_publication_def *topics;  // of d
    const us_extension_def *extension;
    const xmlNode *node;  // the <sensor>
    char unknown[300];    // what was not understood of it
} gazebo;

// ---------------------------------------------------------------- texts

// The first child of this path of names, or NULL.
static const xmlNode *at(const xmlNode *node, const char *path) {
    char name[40];
    while (node && *path) {
        const size_t n = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        node = usi_xml_child(node, name);
        path += n + (path[n] == '/');
    }
    return node;
}

static const char *text_at(const xmlNode *node, const char *path) {
    const xmlNode *found = at(node, path);
    const xmlNode *text = found ? found->children : NULL;
    const char *s = text && text->content ? (const char *)text->content : "";
    while (isspace((unsigned char)*s))
        s++;
    return found ? s : NULL;
}

// Up to n numbers; how many there are.
static int numbers_at(const xmlNode *node, const char *path, int n, double *out) {
    const char *s = text_at(node, path);
    int count = 0;
    while (s && count < n) {
        const char *end;
        while (usi_is_blank(*s))
            s++;
        if (!*s || usi_number_scan(s, &end, &out[count])) break;
        s = end;
        count++;
    }
    return count;
}

static double number_at(const xmlNode *node, const char *path, double otherwise) {
    double x;
    return numbers_at(node, path, 1, &x) == 1 ? x : otherwise;
}

static void note(gazebo *g, const char *what) {
    const size_t n = strlen(g->unknown);
    if (strstr(g->unknown, what)) return;
    snprintf(g->unknown + n, sizeof g->unknown - n, "%s%s", n ? ", " : "", what);
}

// Children beyond those that are understood.
static void note_others(gazebo *g, const xmlNode *node, const char *known) {
    char name[60];
    for (const xmlNode *c = usi_xml_child(node, NULL); c; c = usi_xml_next(c, NULL)) {
        snprintf(name, sizeof name, " %.50s ", (const char *)c->name);
        if (!strstr(known, name)) {
            name[strlen(name) - 1] = 0;
            note(g, name + 1);
        }
    }
}

static us_status warn(gazebo *g, const char *remedy, const char *message) {
    const us_place place = {g->extension->file, g->extension->line, 0, "gazebo"};
    us_error w = {0};
    us_error_set(&w, US_OK, &place, remedy, "%.400s", message);
    return us_spec_add_warning(g->r->spec, &w) ? usi_fail_memory(g->r) : US_OK;
}

// ---------------------------------------------------------------- noise

// The standard deviation of a <noise>; a mean and a bias are not understood.
static double deviation_of(gazebo *g, const xmlNode *noise) {
    if (!noise) return 0;
    if (number_at(noise, "mean", 0) != 0) note(g, "mean of noise");
    if (number_at(noise, "bias_mean", 0) != 0 || number_at(noise, "bias_stddev", 0) != 0)
        note(g, "bias of noise");
    return fmax(0, number_at(noise, "stddev", 0));
}

static void set(gazebo *g, us_sensor_def *s, const char *parameter, double value) {
    const int32_t i = usi_find_parameter(s->kind, parameter);
    us_sensor_setting *settings = (us_sensor_setting *)s->settings;
    if (value == 0) return;
    if (i < 0 || usi_check_parameter(&s->kind->parameters[i], value, NULL)) {
        note(g, "noise");
        return;
    }
    settings[s->n_setting++] = (us_sensor_setting){s->kind->parameters[i].name, value};
}

// Of three axes: one deviation for all.
static void set_axes(gazebo *g, us_sensor_def *s, const char *parameter, const xmlNode *axes) {
    static const char *const paths[3] = {"x/noise", "y/noise", "z/noise"};
    double x[3];
    for (int i = 0; i < 3; i++)
        x[i] = deviation_of(g, at(axes, paths[i]));
    if (x[0] != x[1] || x[1] != x[2]) note(g, "noise that differs from axis to axis");
    set(g, s, parameter, fmax(x[0], fmax(x[1], x[2])));
}

static void read_imu(gazebo *g, us_sensor_def *s) {
    const xmlNode *imu = at(g->node, "imu");
    set_axes(g, s, "spin-noise", at(imu, "angular_velocity"));
    set_axes(g, s, "force-noise", at(imu, "linear_acceleration"));
    // The older form.
    set(g, s, "spin-noise", deviation_of(g, at(imu, "noise/rate")));
    set(g, s, "force-noise", deviation_of(g, at(imu, "noise/accel")));
    if (imu) note_others(g, imu, " angular_velocity linear_acceleration noise ");
}

// ---------------------------------------------------------------- lidar

static us_status read_lidar(gazebo *g, us_sensor_def *s) {
    const xmlNode *ray = at(g->node, "ray") ? at(g->node, "ray") : at(g->node, "lidar"),
                  *level = at(ray, "scan/horizontal"), *upright = at(ray, "scan/vertical");
    us_lidar_def *d = usi_reader_alloc(g->r, sizeof *d);
    us_lidar_beam *beams = usi_reader_alloc(g->r, US_LIDAR_MAX_BEAM * sizeof *beams);
    if (!d || !beams) return usi_fail_memory(g->r);
    const double from = number_at(level, "min_angle", -PI), to = number_at(level, "max_angle", PI);
    const int samples = (int)fmin(1e6, fmax(2, number_at(level, "samples", 640))),
              rows = (int)fmin(US_LIDAR_MAX_BEAM, fmax(1, number_at(upright, "samples", 1)));
    const double low = number_at(upright, "min_angle", 0), high = number_at(upright, "max_angle", low);
    *d = us_lidar_def_default();
    for (int i = 0; i < rows; i++)
        beams[i] = (us_lidar_beam){.elevation = rows > 1 ? low + (high - low) * i / (rows - 1) : low};
    const double sweep = fmin(2 * PI, fabs(to - from));
    const bool is_whole = sweep > 2 * PI * 0.9999;
    d->n_beam = rows;
    d->beams = beams;
    d->start = from;
    d->sweep = is_whole ? 2 * PI : sweep;
    d->columns = is_whole ? samples : (int32_t)llround((samples - 1) * 2 * PI / fmax(sweep, 1e-3));
    d->min_range = fmax(0, number_at(ray, "range/min", 0.1));
    d->max_range = number_at(ray, "range/max", 100);
    d->quantum = fmax(0, number_at(ray, "range/resolution", 0));
    d->range_noise = deviation_of(g, at(ray, "noise"));
    s->lidar = d;
    if (s->rate == 0) s->rate = 10;
    if (ray) note_others(g, ray, " scan range noise ");
    return US_OK;
}

// ---------------------------------------------------------------- a sensor

// ---------------------------------------------------------------- cameras

static void read_camera(gazebo *g, us_sensor_def *s, const char *type) {
    static const char *const numbers[][2] = {{"width", "image/width"},  {"height", "image/height"},
                                             {"fov", "horizontal_fov"}, {"k1", "distortion/k1"},
                                             {"k2", "distortion/k2"},   {"k3", "distortion/k3"},
                                             {"p1", "distortion/p1"},   {"p2", "distortion/p2"}};
    const xmlNode *camera = at(g->node, "camera");
    const char *format = text_at(camera, "image/format");
    us_sensor_setting *settings = (us_sensor_setting *)s->settings;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!text_at(camera, numbers[i][1])) continue;
        settings[s->n_setting++] = (us_sensor_setting){numbers[i][0], number_at(camera, numbers[i][1], 0)};
    }
    if (format && (strcmp(format, "L8") == 0 || strcmp(format, "L16") == 0 || strcmp(format, "L_INT8") == 0))
        settings[s->n_setting++] = (us_sensor_setting){"pixels", 0};
    if (strcmp(type, "camera") != 0) settings[s->n_setting++] = (us_sensor_setting){"depth", 1};
    if (camera) note_others(g, camera, " image horizontal_fov distortion ");
}

// A name that ROS takes.
static const char *clean_name(gazebo *g, const char *name) {
    char text[100];
    snprintf(text, sizeof text, "%s", name && name[0] ? name : "sensor");
    for (char *c = text; *c; c++) {
        if (!isalnum((unsigned char)*c) && *c != '/') *c = '_';
    }
    if (isdigit((unsigned char)text[0])) text[0] = '_';
    return usi_reader_text(g->r, "%s", text);
}

// The link that is meant: a joint stands for its child.
static int32_t link_of(const gazebo *g, int32_t *out_joint) {
    const us_spec *spec = g->r->spec;
    *out_joint = -1;
    for (int32_t i = 0; g->extension->reference && i < spec->n_link; i++) {
        if (strcmp(spec->link[i].name, g->extension->reference) == 0) return i;
    }
    for (int32_t i = 0; g->extension->reference && i < spec->n_joint; i++) {
        if (strcmp(spec->joint[i].name, g->extension->reference) != 0) continue;
        *out_joint = i;
        return spec->joint[i].child;
    }
    return -1;
}

static us_status add_topic(gazebo *g, const us_sensor_def *s) {
    const char *topic = text_at(g->node, "topic");
    if (!topic || !topic[0] || g->d->n_topic == USI_TOPIC_LIMIT) return US_OK;
    for (int32_t i = 0; i < g->d->n_topic; i++) {
        if (strcmp(g->d->topics[i].source, s->name) == 0) return US_OK;
    }
    const char *name = usi_reader_text(g->r, "%.*s", (int)strcspn(topic, " \t\r\n"), topic);
    if (!name) return usi_fail_memory(g->r);
    g->topics[g->d->n_topic] = (us_publication_def){.source = s->name, .name = name, .rate = s->rate};
    if (s->rate == 0) g->topics[g->d->n_topic].rate = 100;
    if (usi_check_publication(g->d, g->d->n_topic, NULL)) {
        note(g, "topic");
    } else {
        g->d->n_topic++;
    }
    return US_OK;
}

static us_status add_sensor(gazebo *g, const char *type, const us_sensor_kind *kind) {
    double pose[6] = {0};
    int32_t joint = -1;
    char message[400];
    us_sensor_setting *settings = usi_reader_alloc(g->r, (US_SENSOR_MAX_PARAMETER + 1) * sizeof *settings);
    us_sensor_def *s = &g->sensors[g->d->n_sensor];
    const char *name = clean_name(g, usi_xml_attr(g->node, "name"));
    if (!settings || !name) return usi_fail_memory(g->r);
    if (usi_find_sensor_def(g->d, name)) return US_OK;
    if (g->d->n_sensor == USI_SENSOR_LIMIT)
        return warn(g, "remove some", "<sensor> of a <gazebo> element: the robot has as many as it may have");
    numbers_at(g->node, "pose", 6, pose);
    *s = (us_sensor_def){.kind = kind, .name = name, .settings = settings, .link = link_of(g, &joint)};
    s->X_BS = (us_pose){us_quat_from_rpy(pose[3], pose[4], pose[5]), us_vec3_make(pose[0], pose[1], pose[2])};
    const double rate = number_at(g->node, "update_rate", kind->usual_rate);
    s->rate = rate > 0 ? rate : kind->usual_rate;
    if (s->link < 0) {
        snprintf(message, sizeof message,
                 "<sensor name=\"%.60s\"> of a <gazebo> element is on no link of the robot", name);
        return warn(g, "write <gazebo reference=\"LINK\"> around it", message);
    }
    const int32_t of_joint = usi_find_parameter(kind, "joint");
    if (joint >= 0 && of_joint >= 0 && kind->parameters[of_joint].type == US_PARAMETER_JOINT)
        settings[s->n_setting++] = (us_sensor_setting){"joint", joint};
    us_status status = US_OK;
    if (kind->is_frame)
        status = read_lidar(g, s);
    else if (strcmp(kind->name, "imu") == 0)
        read_imu(g, s);
    else if (strcmp(kind->name, "camera") == 0)
        read_camera(g, s, type);
    else if (at(g->node, type) && usi_xml_child(at(g->node, type), NULL))
        note(g, type);
    if (status) return status;
    us_error why = {0};
    if (usi_check_sensor(g->r->spec, g->d, g->d->n_sensor, &why)) {
        snprintf(message, sizeof message, "<sensor name=\"%.60s\"> of a <gazebo> element is left out: %.200s",
                 name, why.message);
        return warn(g, why.remedy, message);
    }
    g->d->n_sensor++;
    note_others(
        g, g->node,
        " pose update_rate topic always_on visualize ray lidar camera imu gps navsat altimeter magnetometer "
        "force_torque contact plugin ");
    if (usi_xml_child(g->node, "plugin")) note(g, "plugin");
    status = add_topic(g, s);
    if (status || !g->unknown[0]) return status;
    snprintf(message, sizeof message, "<sensor name=\"%.60s\"> of a <gazebo> element: not understood: %.250s",
             name, g->unknown);
    return warn(g, "write it as a <sensor> of the scene, whose attributes are in docs/sensors.md", message);
}

static us_status read_sensor(gazebo *g) {
    const char *type = usi_xml_attr(g->node, "type");
    const us_sensor_kind *kind = NULL;
    char message[300];
    int32_t i = 0;
    g->unknown[0] = 0;
    while (i < N_TYPE && (!type || strcmp(types[i].type, type) != 0))
        i++;
    if (i < N_TYPE) kind = us_spec_find_sensor_kind(g->r->spec, types[i].kind);
    if (kind) return add_sensor(g, type, kind);
    snprintf(message, sizeof message, "<sensor type=\"%.60s\"> of a <gazebo> element: %s", type ? type : "",
             i < N_TYPE ? "there is no such sensor yet; it is left out"
                        : "it is not understood; it is left out");
    return warn(g, "see \"understudy sense FILE --kinds\" for those that there are", message);
}

us_status usi_gazebo_sensors(usi_reader *r, us_network_def *d) {
    gazebo g = {.r = r, .d = d};
    us_status status = US_OK;
    for (int32_t i = 0; i < r->spec->n_extension && !status; i++) {
        // The list may grow by warnings, not by extensions.
        const us_extension_def x = r->spec->extension[i];
        if (x.group != d->group || strcmp(x.tag, "gazebo") != 0 || !strstr(x.xml, "<sensor")) continue;
        if (!g.sensors) {
            g.sensors = usi_reader_alloc(r, USI_SENSOR_LIMIT * sizeof *g.sensors);
            g.topics = usi_reader_alloc(r, USI_TOPIC_LIMIT * sizeof *g.topics);
            if (!g.sensors || !g.topics) return usi_fail_memory(r);
            if (d->n_sensor > 0) memcpy(g.sensors, d->sensors, (size_t)d->n_sensor * sizeof *g.sensors);
            if (d->n_topic > 0) memcpy(g.topics, d->topics, (size_t)d->n_topic * sizeof *g.topics);
            d->sensors = g.sensors;
            d->topics = g.topics;
        }
        xmlDoc *doc =
            xmlReadMemory(x.xml, (int)strlen(x.xml), NULL, NULL,
                          XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_RECOVER);
        if (!doc) return usi_fail_memory(r);
        g.extension = &x;
        for (g.node = usi_xml_child(xmlDocGetRootElement(doc), "sensor"); g.node && !status;
             g.node = usi_xml_next(g.node, "sensor"))
            status = read_sensor(&g);
        xmlFreeDoc(doc);
    }
    return status;
}
