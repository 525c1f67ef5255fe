// <sensor type="lidar">: a maker's device, a table of beams, or beams that are written out.
#include <math.h>
#include <string.h>

#include "spec/lidar_device.h"
#include "spec/scene.h"
#include "spec/spec.h"

// Attributes that lidars alone have, and those that they do not have.
static const char *const lidar_only[] = {
    "preset",    "beams",     "elevations",  "beam-time",   "columns", "period", "start",       "sweep",
    "min-range", "max-range", "range-noise", "angle-noise", "quantum", "reach",  "reflectivity"};
static const char *const not_lidar[] = {"force-noise", "spin-noise"};

static us_status refuse(usi_reader *r, const xmlNode *node, const char *const *names, size_t n,
                        const char *remedy) {
    for (size_t i = 0; i < n; i++) {
        if (usi_xml_attr(node, names[i]))
            return usi_fail(r, US_ERR_SCHEMA, node, remedy, "%s: a sensor of this type has none", names[i]);
    }
    return US_OK;
}

// beams="FILE.csv", beside the scene.
static us_status read_table(usi_reader *r, const xmlNode *node, const char *file, us_lidar_beam *beams,
                            us_lidar_def *d) {
    char element[160], *text = NULL;
    const us_place place = usi_xml_place(r, node, element, sizeof element);
    const char *path = usi_path_beside(r, usi_xml_file(node), file);
    size_t length = 0;
    int32_t line = 0;
    us_error why = {0};
    if (!path) return usi_fail_memory(r);
    us_status status = usi_reader_permit(r, node, "table of beams", path);
    if (!status) status = usi_file_read(r, path, &place, &text, &length);
    if (status) return status;
    status = usi_lidar_read_table(text, beams, &d->n_beam, &line, &why);
    if (!status) return US_OK;
    const us_place inside = {path, line, 0, "table of beams"};
    return us_error_set(r->err, status, &inside, why.remedy, "%.200s", why.message);
}

// elevations="-15 -13 ... deg", with beam-time from one to the next.
static us_status read_elevations(usi_reader *r, const xmlNode *node, us_lidar_beam *beams, us_lidar_def *d) {
    const usi_look look = usi_look_at(node);
    usi_dimension angles[USI_LIST_LIMIT];
    double elevation[USI_LIST_LIMIT], time = 0;
    int n = 0;
    for (int i = 0; i < USI_LIST_LIMIT; i++)
        angles[i] = USI_ANGLE;
    us_status status = usi_look_list(r, &look, "elevations", angles, USI_LIST_LIMIT, elevation, &n);
    if (!status) status = usi_look_positive(r, &look, "beam-time", USI_TIME, false, &time);
    if (status) return status;
    for (int i = 0; i < n; i++)
        beams[i] = (us_lidar_beam){elevation[i], 0, time * i};
    d->n_beam = n;
    return US_OK;
}

static us_status read_beams(usi_reader *r, const xmlNode *node, us_lidar_beam *beams, us_lidar_def *d,
                            double *rate) {
    const char *preset = usi_xml_attr(node, "preset"), *file = usi_xml_attr(node, "beams"),
               *elevations = usi_xml_attr(node, "elevations");
    if (!!preset + !!file + !!elevations != 1)
        return usi_fail(r, US_ERR_SCHEMA, node,
                        "write preset=\"hdl-32e\", or elevations=\"-10 0 10 deg\", or beams=\"FILE.csv\"",
                        "preset, elevations, beams: a lidar needs one of them, and one alone");
    if (usi_xml_attr(node, "beam-time") && !elevations)
        return usi_fail(r, US_ERR_SCHEMA, node, "write it with elevations; tables and presets have times",
                        "beam-time: the beams have their times already");
    if (file) return read_table(r, node, file, beams, d);
    if (elevations) return read_elevations(r, node, beams, d);
    // The schema knows the names.
    return us_lidar_preset(preset, beams, d, rate);
}

static us_status read_numbers(usi_reader *r, const xmlNode *node, us_lidar_def *d) {
    const usi_look look = usi_look_at(node);
    int32_t columns = 0;
    us_status status = usi_xml_int(r, node, "columns", false, &columns);
    if (!status && usi_xml_attr(node, "columns")) {
        d->columns = columns;
        d->period = 0;
        if (columns < 4)
            status = usi_fail(r, US_ERR_VALUE, node, "write a whole number from 4 up",
                              "columns: %d is too few for a turn", (int)columns);
    }
    if (!status && usi_xml_attr(node, "period")) {
        if (usi_xml_attr(node, "columns"))
            return usi_fail(r, US_ERR_SCHEMA, node, "leave one of them out",
                            "columns, period: a head fires at even angles or at even times");
        d->columns = 0;
        status = usi_look_positive(r, &look, "period", USI_TIME, true, &d->period);
    }
    if (!status) status = usi_look_number(r, &look, "start", USI_ANGLE, &d->start);
    if (!status) status = usi_look_number(r, &look, "sweep", USI_ANGLE, &d->sweep);
    if (!status) status = usi_look_positive(r, &look, "min-range", USI_LENGTH, false, &d->min_range);
    if (!status) status = usi_look_positive(r, &look, "max-range", USI_LENGTH, true, &d->max_range);
    if (!status) status = usi_look_positive(r, &look, "range-noise", USI_LENGTH, false, &d->range_noise);
    if (!status) status = usi_look_positive(r, &look, "angle-noise", USI_ANGLE, false, &d->angle_noise);
    if (!status) status = usi_look_positive(r, &look, "quantum", USI_LENGTH, false, &d->quantum);
    if (!status) status = usi_look_positive(r, &look, "reach", USI_LENGTH, false, &d->reach);
    if (!status) status = usi_look_positive(r, &look, "reflectivity", USI_PLAIN, true, &d->reflectivity);
    return status;
}

us_status usi_scene_lidar(usi_reader *r, const xmlNode *node, us_sensor_def *s) {
    if (s->kind != US_SENSOR_LIDAR)
        return refuse(r, node, lidar_only, sizeof lidar_only / sizeof *lidar_only,
                      "leave it out, or write type=\"lidar\"");
    us_status status = refuse(r, node, not_lidar, sizeof not_lidar / sizeof *not_lidar,
                              "a lidar has range-noise and angle-noise");
    us_lidar_def *d = usi_reader_alloc(r, sizeof *d);
    us_lidar_beam *beams = usi_reader_alloc(r, US_LIDAR_MAX_BEAM * sizeof *beams);
    if (!d || !beams) return usi_fail_memory(r);
    *d = us_lidar_def_default();
    d->beams = beams;
    if (!status) status = read_beams(r, node, beams, d, &s->rate);
    if (!status) status = read_numbers(r, node, d);
    s->lidar = d;
    return status;
}
