// <sensor type="lidar">: a maker's device, a table of beams, or beams that are written out.
#include <math.h>
#include <string.h>

#include "base/text_value.h"
#include "spec/lidar_device.h"
#include "spec/scene.h"
#include "spec/spec.h"

// Attributes that a lidar has beside those of all sensors.
static const char *const own[] = {
    "beams",       "elevations",  "pattern",    "beam-time",  "columns",     "period",       "start",
    "sweep",       "window",      "resolution", "bend",       "prism-spin",  "min-range",    "max-range",
    "range-noise", "angle-noise", "quantum",    "reach",      "power-noise", "reflectivity", "divergence",
    "rays",        "pulse",       "returns",    "extinction", "backscatter", "sun",          "sun-direction",
    "blind",       "hide-robot",  "deskew",     "packets"};

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

static us_status read_preset(usi_reader *r, const xmlNode *node, const char *preset, us_lidar_beam *beams,
                             us_lidar_def *d, double *rate) {
    if (us_lidar_preset(preset, beams, d, rate) == US_OK) return US_OK;
    const char *known[32];
    int32_t n = 0;
    while (n < 32 && (known[n] = us_lidar_preset_name(n)))
        n++;
    us_error why = {0};
    usi_fail_unknown("lidar", preset, known, n, &why);
    return usi_fail(r, US_ERR_VALUE, node, why.remedy, "preset: invalid value \"%.60s\"", preset);
}

static us_status read_beams(usi_reader *r, const xmlNode *node, us_lidar_beam *beams, us_lidar_def *d,
                            double *rate) {
    const char *preset = usi_xml_attr(node, "preset"), *file = usi_xml_attr(node, "beams"),
               *elevations = usi_xml_attr(node, "elevations"), *pattern = usi_xml_attr(node, "pattern");
    if (!!preset + !!file + !!elevations + !!pattern != 1)
        return usi_fail(r, US_ERR_SCHEMA, node,
                        "write preset=\"hdl-32e\", or elevations=\"-10 0 10 deg\", or beams=\"FILE.csv\", or "
                        "pattern=\"grid\"",
                        "preset, elevations, beams, pattern: a lidar needs one of them, and one alone");
    if (usi_xml_attr(node, "beam-time") && !elevations)
        return usi_fail(r, US_ERR_SCHEMA, node, "write it with elevations; tables and presets have times",
                        "beam-time: the beams have their times already");
    if (file) return read_table(r, node, file, beams, d);
    if (elevations) return read_elevations(r, node, beams, d);
    if (preset) return read_preset(r, node, preset, beams, d, rate);
    d->pattern = strcmp(pattern, "grid") == 0 ? US_LIDAR_GRID : US_LIDAR_ROSETTE;
    d->n_beam = 1;
    beams[0] = (us_lidar_beam){0, 0, 0};
    return US_OK;
}

// Attributes that say where the beams of one pattern look.
static us_status check_place(usi_reader *r, const xmlNode *node, us_lidar_pattern pattern) {
    static const struct {
        const char *name;
        us_lidar_pattern pattern;
    } of[] = {{"columns", US_LIDAR_SPIN},      {"start", US_LIDAR_SPIN},      {"sweep", US_LIDAR_SPIN},
              {"window", US_LIDAR_GRID},       {"resolution", US_LIDAR_GRID}, {"bend", US_LIDAR_ROSETTE},
              {"prism-spin", US_LIDAR_ROSETTE}};
    static const char *const what[] = {"a head that turns", "a grid", "a rosette"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        if (of[i].pattern != pattern && usi_xml_attr(node, of[i].name))
            return usi_fail(r, US_ERR_SCHEMA, node, "leave it out", "%s: %s has none", of[i].name,
                            what[pattern]);
    }
    if (pattern == US_LIDAR_GRID && usi_xml_attr(node, "rate"))
        return usi_fail(r, US_ERR_SCHEMA, node, "leave it out; window, resolution and period say it",
                        "rate: how often a grid is whole follows from its shots");
    return US_OK;
}

static us_status read_place(usi_reader *r, const xmlNode *node, us_lidar_def *d) {
    const usi_look look = usi_look_at(node);
    us_status status = check_place(r, node, d->pattern);
    if (!status) status = usi_look_number(r, &look, "start", USI_ANGLE, &d->start);
    if (!status) status = usi_look_number(r, &look, "sweep", USI_ANGLE, &d->sweep);
    if (!status) status = usi_look_numbers(r, &look, "window", USI_ANGLE, 2, d->window);
    if (!status) status = usi_look_numbers(r, &look, "resolution", USI_ANGLE, 2, d->resolution);
    if (!status) status = usi_look_numbers(r, &look, "bend", USI_ANGLE, 2, d->bend);
    if (!status) status = usi_look_numbers(r, &look, "prism-spin", USI_SPIN, 2, d->spin);
    return status;
}

// The cone of a beam and what comes back of it.
static us_status read_returns(usi_reader *r, const xmlNode *node, us_lidar_def *d) {
    static const char *const names[] = {"strongest", "first", "last", "dual"};
    const usi_look look = usi_look_at(node);
    const char *returns = usi_xml_attr(node, "returns");
    us_status status = usi_look_positive(r, &look, "divergence", USI_ANGLE, false, &d->divergence);
    if (!status) status = usi_xml_int(r, node, "rays", false, &d->n_ray);
    if (!status) status = usi_look_positive(r, &look, "pulse", USI_LENGTH, true, &d->pulse);
    for (int32_t i = 0; returns && i < US_LIDAR_RETURNS_COUNT; i++) {
        if (strcmp(returns, names[i]) == 0) d->returns = (us_lidar_returns)i;
    }
    return status;
}

// Dust, the sun, and what is in the way.
static us_status read_air(usi_reader *r, const xmlNode *node, us_lidar_def *d) {
    const usi_look look = usi_look_at(node);
    double sun[3] = {d->sun_direction.x, d->sun_direction.y, d->sun_direction.z},
           blind[2 * US_LIDAR_MAX_BLIND] = {0};
    usi_dimension angles[2 * US_LIDAR_MAX_BLIND];
    int n = 0;
    for (int i = 0; i < 2 * US_LIDAR_MAX_BLIND; i++)
        angles[i] = USI_ANGLE;
    us_status status = usi_look_positive(r, &look, "extinction", USI_PLAIN, false, &d->extinction);
    if (!status) status = usi_look_positive(r, &look, "backscatter", USI_PLAIN, false, &d->backscatter);
    if (!status) status = usi_look_positive(r, &look, "sun", USI_PLAIN, false, &d->sun);
    if (!status) status = usi_look_numbers(r, &look, "sun-direction", USI_PLAIN, 3, sun);
    if (!status) status = usi_look_list(r, &look, "blind", angles, 2 * US_LIDAR_MAX_BLIND, blind, &n);
    if (!status && n % 2 != 0)
        status = usi_fail(r, US_ERR_VALUE, node, "write two azimuths for each sector: blind=\"170 190 deg\"",
                          "blind: %d angles are no pairs", n);
    if (!status) status = usi_xml_bool(r, node, "hide-robot", false, &d->hides_own_robot);
    if (!status) status = usi_xml_bool(r, node, "deskew", false, &d->is_deskewed);
    if (status) return status;
    const double length = sqrt(sun[0] * sun[0] + sun[1] * sun[1] + sun[2] * sun[2]),
                 scale = length > 0 ? 1 / length : 0;
    d->sun_direction = us_vec3_make(scale * sun[0], scale * sun[1], scale * sun[2]);
    d->n_blind = n / 2;
    for (int i = 0; i < n; i++)
        d->blind[i / 2][i % 2] = blind[i];
    return US_OK;
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
    if (!status) status = usi_look_positive(r, &look, "min-range", USI_LENGTH, false, &d->min_range);
    if (!status) status = usi_look_positive(r, &look, "max-range", USI_LENGTH, true, &d->max_range);
    if (!status) status = usi_look_positive(r, &look, "range-noise", USI_LENGTH, false, &d->range_noise);
    if (!status) status = usi_look_positive(r, &look, "angle-noise", USI_ANGLE, false, &d->angle_noise);
    if (!status) status = usi_look_positive(r, &look, "quantum", USI_LENGTH, false, &d->quantum);
    if (!status) status = usi_look_positive(r, &look, "reach", USI_LENGTH, false, &d->reach);
    if (!status) status = usi_look_positive(r, &look, "power-noise", USI_PLAIN, false, &d->power_noise);
    if (!status) status = usi_look_positive(r, &look, "reflectivity", USI_PLAIN, true, &d->reflectivity);
    return status;
}

// packets="127.0.0.1:2368".
static us_status read_packets(usi_reader *r, const xmlNode *node, us_lidar_def *d) {
    const char *text = usi_xml_attr(node, "packets"), *at = text;
    unsigned part[5] = {0};
    bool is_good = text != NULL;
    for (int i = 0; i < 5 && is_good; i++) {
        int n = 0;
        for (; *at >= '0' && *at <= '9' && n < 6; at++, n++)
            part[i] = 10 * part[i] + (unsigned)(*at - '0');
        is_good = n > 0 && part[i] <= (i < 4 ? 255 : 65535) && *at++ == (i < 3 ? '.' : i == 3 ? ':' : 0);
    }
    if (!text) return US_OK;
    if (!is_good || part[4] == 0)
        return usi_fail(r, US_ERR_VALUE, node, "write packets=\"127.0.0.1:2368\"",
                        "packets: \"%.60s\" is no address and port", text);
    d->packet_address = part[0] << 24 | part[1] << 16 | part[2] << 8 | part[3];
    d->packet_port = (uint16_t)part[4];
    return US_OK;
}

us_status usi_scene_lidar(usi_reader *r, const xmlNode *node, us_sensor_def *s) {
    us_status status = usi_scene_sensor_attributes(r, node, s->kind, own, sizeof own / sizeof *own);
    us_lidar_def *d = usi_reader_alloc(r, sizeof *d);
    us_lidar_beam *beams = usi_reader_alloc(r, US_LIDAR_MAX_BEAM * sizeof *beams);
    if (!d || !beams) return usi_fail_memory(r);
    *d = us_lidar_def_default();
    d->beams = beams;
    if (!status) status = read_beams(r, node, beams, d, &s->rate);
    if (!status) status = read_place(r, node, d);
    if (!status) status = read_numbers(r, node, d);
    if (!status) status = read_returns(r, node, d);
    if (!status) status = read_air(r, node, d);
    if (!status) status = read_packets(r, node, d);
    if (!status && d->pattern == US_LIDAR_GRID && d->period > 0 && d->resolution[0] > 0 &&
        d->resolution[1] > 0)
        s->rate = usi_lidar_grid_rate(d);
    s->lidar = d;
    return status;
}
