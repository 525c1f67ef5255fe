// Numbers with units, as people write them: "30 deg", "5mm", "0 0 90 deg", "1 m 20 cm 0 m".
//
// A plain number is in SI units. One unit behind a list holds for the whole list; otherwise every number has
// its own. Anything between ("1 2 mm 3") is refused as ambiguous.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "spec/scene.h"

static const double PI = 3.14159265358979323846;

static const struct {
    const char *what, *units;
} dimensions_known[] = {
#define DIMENSION_ROW(code, what, units) {what, units},
    USI_DIMENSION_LIST(DIMENSION_ROW)
#undef DIMENSION_ROW
};

// Every unit and what one of it is in SI.
static const struct {
    const char *name;
    usi_dimension dimension;
    double in_si;
} units_known[] = {
    {"m", USI_LENGTH, 1},          {"mm", USI_LENGTH, 1e-3},     {"cm", USI_LENGTH, 1e-2},
    {"km", USI_LENGTH, 1e3},       {"in", USI_LENGTH, 0.0254},   {"ft", USI_LENGTH, 0.3048},
    {"rad", USI_ANGLE, 1},         {"deg", USI_ANGLE, PI / 180}, {"s", USI_TIME, 1},
    {"ms", USI_TIME, 1e-3},        {"us", USI_TIME, 1e-6},       {"ns", USI_TIME, 1e-9},
    {"min", USI_TIME, 60},         {"h", USI_TIME, 3600},        {"kg", USI_MASS, 1},
    {"g", USI_MASS, 1e-3},         {"t", USI_MASS, 1e3},         {"N", USI_FORCE, 1},
    {"kN", USI_FORCE, 1e3},        {"Nm", USI_TORQUE, 1},        {"kNm", USI_TORQUE, 1e3},
    {"Hz", USI_FREQUENCY, 1},      {"kHz", USI_FREQUENCY, 1e3},  {"m/s", USI_SPEED, 1},
    {"mm/s", USI_SPEED, 1e-3},     {"km/h", USI_SPEED, 1 / 3.6}, {"rad/s", USI_SPIN, 1},
    {"deg/s", USI_SPIN, PI / 180}, {"rpm", USI_SPIN, PI / 30},   {"m/s^2", USI_ACCELERATION, 1},
    {"J", USI_ENERGY, 1},          {"kJ", USI_ENERGY, 1e3},      {"Wh", USI_ENERGY, 3600},
    {"kWh", USI_ENERGY, 3.6e6},    {"W", USI_POWER, 1},          {"kW", USI_POWER, 1e3},
    {"V", USI_VOLTAGE, 1},         {"mV", USI_VOLTAGE, 1e-3},    {"kV", USI_VOLTAGE, 1e3},
    {"B/s", USI_DATA_RATE, 1},     {"kB/s", USI_DATA_RATE, 1e3}, {"MB/s", USI_DATA_RATE, 1e6},
    {"B", USI_BYTES, 1},           {"kB", USI_BYTES, 1e3},       {"MB", USI_BYTES, 1e6},
    {"GB", USI_BYTES, 1e9},
};
enum { N_UNIT = sizeof units_known / sizeof units_known[0], NO_UNIT = -1, BAD_UNIT = -2 };

// The unit named by the first `length` bytes of text.
static int find_unit(const char *text, int length) {
    for (int i = 0; i < N_UNIT; i++) {
        if ((int)strlen(units_known[i].name) == length &&
            strncmp(units_known[i].name, text, (size_t)length) == 0)
            return i;
    }
    return BAD_UNIT;
}

// True where a number may begin; anything else behind a number is taken for a unit.
static bool starts_number(char c) { return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; }

// One number and the unit behind it.
typedef struct measure {
    const char *wrong;      // what is wrong with the number, or NULL
    const char *text;       // the number's beginning
    const char *unit_text;  // the unit's beginning, or NULL
    double value;           // in the unit
    int length;             // of the number as written
    int unit;               // index, NO_UNIT or BAD_UNIT
    int unit_length;
} measure;

// Scans one measure at *s and moves *s behind it.
static measure scan_measure(const char **s) {
    measure m = {.text = *s, .unit = NO_UNIT};
    const char *end;
    m.wrong = usi_number_scan(*s, &end, &m.value);
    m.length = (int)(end - *s);
    *s = end;
    if (m.wrong) return m;
    const char *u = end;
    while (usi_is_blank(*u))
        u++;
    // A sign or digit glued to the number ("1-2") is no unit and no second number.
    if (!*u || (u > end && starts_number(*u))) return m;
    const char *stop = u;
    while (*stop && !usi_is_blank(*stop))
        stop++;
    m.unit_text = u;
    m.unit_length = (int)(stop - u);
    if ((m.unit_length == 3 && (strncasecmp(u, "nan", 3) == 0 || strncasecmp(u, "inf", 3) == 0)) ||
        (m.unit_length == 8 && strncasecmp(u, "infinity", 8) == 0)) {
        return m;  // the next number, which is none: found at the next scan
    }
    m.unit = find_unit(u, m.unit_length);
    *s = stop;
    return m;
}

static int clip(int length) { return length > 60 ? 60 : length; }

bool usi_measure_whole(const char *text, double *out) {
    while (usi_is_blank(*text))
        text++;
    measure m = scan_measure(&text);
    while (usi_is_blank(*text))
        text++;
    if (m.wrong || *text || m.unit == BAD_UNIT) return false;
    *out = m.unit == NO_UNIT ? m.value : m.value * units_known[m.unit].in_si;
    return true;
}

us_status usi_measure_in(const char *text, const char *unit, double *out, us_error *err) {
    const char *behind;
    while (usi_is_blank(*text))
        text++;
    const char *wrong = usi_number_scan(text, &behind, out);
    if (wrong)
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "write a decimal number such as 0.25 or -1.5e-3, with or without a unit",
                            "\"%.60s\" %s", text, wrong);
    while (usi_is_blank(*behind))
        behind++;
    int length = (int)strlen(behind);
    while (length > 0 && usi_is_blank(behind[length - 1]))
        length--;
    const bool is_same = (int)strlen(unit) == length && strncmp(unit, behind, (size_t)length) == 0;
    if (length == 0 || (is_same && strcmp(unit, "1") != 0)) return US_OK;
    // A unit that scenes do not know goes by its name alone.
    const int needed = find_unit(unit, (int)strlen(unit)), given = find_unit(behind, length);
    const usi_dimension dimension = needed >= 0 ? units_known[needed].dimension : USI_PLAIN;
    char remedy[160];
    if (needed >= 0)
        snprintf(remedy, sizeof remedy, "write a plain number in SI units, or one of: %s",
                 dimensions_known[dimension].units);
    else if (strcmp(unit, "1") == 0)
        snprintf(remedy, sizeof remedy, "write the number without a unit");
    else
        snprintf(remedy, sizeof remedy, "write the number without a unit, or in %.60s", unit);
    if (given < 0)
        return us_error_set(err, US_ERR_VALUE, NULL, remedy, "\"%.*s\" is neither a number nor a known unit",
                            clip(length), behind);
    if (needed < 0 || units_known[given].dimension != dimension)
        return us_error_set(err, US_ERR_VALUE, NULL, remedy,
                            "\"%s\" is the unit of %s, but %s is needed here", units_known[given].name,
                            dimensions_known[units_known[given].dimension].what,
                            needed >= 0 ? dimensions_known[dimension].what : "another");
    *out *= units_known[given].in_si;
    return US_OK;
}

usi_look usi_look_at(const xmlNode *node) {
    usi_look look = {{node, NULL, NULL}};
    return look;
}

const xmlNode *usi_look_find(const usi_look *look, const char *name) {
    for (int i = 0; i < 3; i++) {
        if (look->node[i] && usi_xml_attr(look->node[i], name)) return look->node[i];
    }
    return NULL;
}

static us_status fail_unit(usi_reader *r, const xmlNode *node, const char *name, const measure *m) {
    if (m->unit_text[0] == ',' || m->unit_text[0] == ';') {
        return usi_fail(r, US_ERR_VALUE, node, "separate numbers by blanks: 1 2 3",
                        "%s: the numbers are separated by \"%c\"", name, m->unit_text[0]);
    }
    return usi_fail(r, US_ERR_VALUE, node,
                    "known units: m mm cm km in ft, rad deg, s ms us min, kg g t, N kN, Nm kNm, Hz kHz, m/s "
                    "mm/s km/h, rad/s deg/s rpm, m/s^2, "
                    "J kJ Wh kWh, W kW, V mV kV, B/s kB/s MB/s, B kB MB GB",
                    "%s: \"%.*s\" is neither a number nor a known unit", name, clip(m->unit_length),
                    m->unit_text);
}

// Brings a number to SI, when its unit fits.
static us_status to_si(usi_reader *r, const xmlNode *node, const char *name, usi_dimension dimension,
                       int unit, double value, double *out) {
    if (unit == NO_UNIT) {
        *out = value;
        return US_OK;
    }
    usi_dimension given = units_known[unit].dimension;
    if (given != dimension) {
        char remedy[160];
        snprintf(remedy, sizeof remedy,
                 dimension == USI_PLAIN ? "write the number without a unit, in SI units"
                                        : "write a plain number in SI units, or one of: %s",
                 dimensions_known[dimension].units);
        return usi_fail(r, US_ERR_VALUE, node, remedy, "%s: \"%s\" is the unit of %s, but %s is needed here",
                        name, units_known[unit].name, dimensions_known[given].what,
                        dimensions_known[dimension].what);
    }
    *out = value * units_known[unit].in_si;
    return US_OK;
}

us_status usi_look_list(usi_reader *r, const usi_look *look, const char *name,
                        const usi_dimension *dimensions, int max, double *out, int *out_count) {
    const xmlNode *node = usi_look_find(look, name);
    *out_count = 0;
    if (!node) return US_OK;
    measure list[USI_LIST_LIMIT];
    int count = 0, n_with_unit = 0;
    for (const char *s = usi_xml_attr(node, name);;) {
        while (usi_is_blank(*s))
            s++;
        if (!*s) break;
        measure m = scan_measure(&s);
        if (m.wrong) {
            return usi_fail(r, US_ERR_VALUE, node,
                            "write a decimal number such as 0.25 or -1.5e-3, with or without a unit",
                            "%s: \"%.*s\" %s", name, clip(m.length), m.text, m.wrong);
        }
        if (m.unit == BAD_UNIT) return fail_unit(r, node, name, &m);
        if (m.unit != NO_UNIT) n_with_unit++;
        if (count < max && count < USI_LIST_LIMIT) list[count] = m;
        count++;
    }
    if (count == 0)
        return usi_fail(r, US_ERR_VALUE, node, "write a number, or leave the attribute out",
                        "%s: there is no number", name);
    if (count > max || count > USI_LIST_LIMIT) {
        return usi_fail(r, US_ERR_VALUE, node, "remove the numbers that are too many",
                        "%s: at most %d number%s possible here, %d are given", name, max,
                        max == 1 ? " is" : "s are", count);
    }
    bool is_shared = count > 1 && n_with_unit == 1 && list[count - 1].unit != NO_UNIT;
    if (n_with_unit > 0 && n_with_unit < count && !is_shared) {
        return usi_fail(r, US_ERR_VALUE, node,
                        "write one unit at the end, for all numbers, or a unit behind each of them",
                        "%s: some of the numbers have a unit and others have none", name);
    }
    double values[USI_LIST_LIMIT];
    for (int i = 0; i < count; i++) {
        us_status status = to_si(r, node, name, dimensions[i],
                                 is_shared ? list[count - 1].unit : list[i].unit, list[i].value, &values[i]);
        if (status) return status;
    }
    memcpy(out, values, (size_t)count * sizeof *out);
    *out_count = count;
    return US_OK;
}

us_status usi_look_numbers(usi_reader *r, const usi_look *look, const char *name, usi_dimension dimension,
                           int n, double *out) {
    usi_dimension dimensions[USI_LIST_LIMIT];
    double values[USI_LIST_LIMIT];
    int count = 0;
    for (int i = 0; i < USI_LIST_LIMIT; i++)
        dimensions[i] = dimension;
    us_status status = usi_look_list(r, look, name, dimensions, n, values, &count);
    if (status || count == 0) return status;
    if (count != n) {
        return usi_fail(r, US_ERR_VALUE, usi_look_find(look, name), "write all of them, separated by blanks",
                        "%s: %d numbers are needed, %d given", name, n, count);
    }
    memcpy(out, values, (size_t)n * sizeof *out);
    return US_OK;
}

us_status usi_look_number(usi_reader *r, const usi_look *look, const char *name, usi_dimension dimension,
                          double *out) {
    return usi_look_numbers(r, look, name, dimension, 1, out);
}

us_status usi_look_positive(usi_reader *r, const usi_look *look, const char *name, usi_dimension dimension,
                            bool is_strict, double *out) {
    double value = is_strict ? 1 : 0;
    us_status status = usi_look_numbers(r, look, name, dimension, 1, &value);
    const xmlNode *node = usi_look_find(look, name);
    if (status || !node) return status;
    if (value < 0 || (is_strict && value == 0)) {
        return usi_fail(r, US_ERR_VALUE, node,
                        is_strict ? "write a number greater than 0" : "write 0 or a greater number",
                        "%s: \"%.60s\" is %s", name, usi_xml_attr(node, name),
                        is_strict ? "not greater than 0" : "negative");
    }
    *out = value;
    return US_OK;
}

us_status usi_scene_unit_quat(usi_reader *r, const xmlNode *node, const char *name, us_quat *q) {
    double length = sqrt(q->w * q->w + q->x * q->x + q->y * q->y + q->z * q->z);
    if (!(length > 1e-9)) {
        return usi_fail(r, US_ERR_VALUE, node, "write w x y z of length 1, for example 1 0 0 0",
                        "%s: the quaternion is 0 and gives no direction", name);
    }
    us_status status = US_OK;
    if (fabs(length - 1) > 1e-3) {
        status = usi_warn(r, node, "write w x y z (w first) of length 1",
                          "%s: the quaternion has length %g; it is scaled to 1", name, length);
    }
    // A quaternion that is already exact keeps its bits.
    if (length != 1) *q = us_quat_normalize(*q);
    return status;
}

us_status usi_scene_rotation(usi_reader *r, const xmlNode *node, us_quat *out_q) {
    usi_look look = usi_look_at(node);
    if (usi_xml_attr(node, "quat")) {
        if (usi_xml_attr(node, "rpy"))
            return usi_fail(r, US_ERR_VALUE, node, "keep one of the two",
                            "both rpy and quat give the orientation");
        double q[4];
        us_status status = usi_look_numbers(r, &look, "quat", USI_PLAIN, 4, q);
        if (status) return status;
        us_quat quat = {q[0], q[1], q[2], q[3]};
        status = usi_scene_unit_quat(r, node, "quat", &quat);
        if (!status) *out_q = quat;
        return status;
    }
    double rpy[3] = {0, 0, 0};
    us_status status = usi_look_numbers(r, &look, "rpy", USI_ANGLE, 3, rpy);
    if (!status && usi_xml_attr(node, "rpy")) *out_q = us_quat_from_rpy(rpy[0], rpy[1], rpy[2]);
    return status;
}

us_status usi_scene_pose(usi_reader *r, const xmlNode *node, us_pose *out_X) {
    usi_look look = usi_look_at(node);
    us_pose X = *out_X;
    double p[3] = {X.p.x, X.p.y, X.p.z};
    us_status status = usi_look_numbers(r, &look, "xyz", USI_LENGTH, 3, p);
    if (!status) status = usi_scene_rotation(r, node, &X.q);
    if (status) return status;
    X.p = us_vec3_make(p[0], p[1], p[2]);
    *out_X = X;
    return US_OK;
}
