// Lidars as they are described: devices of makers, tables of beams, checks.
//
// Angles and times of the devices are published facts of their manuals. Where a manual's table follows a
// rule, the rule stands here.
#include "spec/lidar_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;
static const double DEGREE = 3.14159265358979323846 / 180;

us_lidar_def us_lidar_def_default(void) {
    return (us_lidar_def){.sweep = 2 * PI,
                          .power_noise = 0.1,
                          .reflectivity = 0.3,
                          .n_ray = 5,
                          .pulse = 0.4,
                          .sun_direction = {0, 0, 1}};
}

// ---------------------------------------------------------------- devices

// Velodyne HDL-32E: two interleaved fans of 16, 4/3 degrees apart, in the maker's table rounded to hundredths
// of a degree.
static us_lidar_beam hdl_32e(int i) {
    const int row = i / 2;
    const double exact = (i % 2 ? -28.0 / 3 : -92.0 / 3) + 4.0 / 3 * row;
    return (us_lidar_beam){nearbyint(100 * exact) / 100 * DEGREE, 0, 1.152e-6 * i};
}

// Velodyne VLP-16: even beams from -15 degrees up, odd ones from 1 up, 2 degrees apart.
static us_lidar_beam vlp_16(int i) {
    const int degrees = (i % 2 ? 1 : -15) + 2 * (i / 2);
    return (us_lidar_beam){degrees * DEGREE, 0, 2.304e-6 * i};
}

// Velodyne VLP-32C: thousandths of a degree up, and tenths of a degree to the right, by laser. Beams fire in
// pairs.
static us_lidar_beam vlp_32c(int i) {
    static const int32_t up[32] = {-25000, -1000, -1667, -15639, -11310, 0,     -667,  -8843,
                                   -7254,  333,   -333,  -6148,  -5333,  1333,  667,   -4000,
                                   -4667,  1667,  1000,  -3667,  -3333,  3333,  2333,  -2667,
                                   -3000,  7000,  4667,  -2333,  -2000,  15000, 10333, -1333};
    static const int32_t right[32] = {14, -42, 14, -14, 14, -14, 42, -14, 14, -42, 14, -14, 42, -14, 42, -14,
                                      14, -42, 14, -42, 42, -14, 14, -14, 14, -14, 14, -42, 42, -14, 14, -14};
    const int pair = i / 2;
    return (us_lidar_beam){1e-3 * up[i] * DEGREE, -0.1 * right[i] * DEGREE, 2.304e-6 * pair};
}

// Ouster OS1 with 32 beams: even rows over 45 degrees, all at once.
static us_lidar_beam os1_32(int i) { return (us_lidar_beam){(-22.5 + 45.0 * i / 31) * DEGREE, 0, 0}; }

static us_lidar_beam ahead(int i) { return (us_lidar_beam){0, 0, 1e-6 * i}; }

// Angles in degrees, which us_lidar_preset makes radians. Heads that go round begin behind, clockwise.
static const struct {
    const char *name;
    double rate;  // Hz
    us_lidar_beam (*beam)(int i);
    us_lidar_def def;
} devices[] = {
    {"hdl-32e",
     10,
     hdl_32e,
     {.n_beam = 32,
      .packet_device = 0x21,
      .period = 46.08e-6,
      .start = 180,
      .sweep = -360,
      .min_range = 1,
      .max_range = 100,
      .range_noise = 0.02,
      .angle_noise = 0.0005,
      .quantum = 0.002,
      .reach = 70}},
    {"vlp-16",
     10,
     vlp_16,
     {.n_beam = 16,
      .packet_device = 0x22,
      .period = 55.296e-6,
      .start = 180,
      .sweep = -360,
      .min_range = 0.5,
      .max_range = 100,
      .range_noise = 0.03,
      .angle_noise = 0.0005,
      .quantum = 0.002,
      .reach = 70}},
    {"vlp-32c",
     10,
     vlp_32c,
     {.n_beam = 32,
      .packet_device = 0x28,
      .period = 55.296e-6,
      .start = 180,
      .sweep = -360,
      .min_range = 1,
      .max_range = 200,
      .range_noise = 0.03,
      .angle_noise = 0.0005,
      .quantum = 0.004,
      .reach = 120}},
    {"os1-32",
     10,
     os1_32,
     {.n_beam = 32,
      .columns = 1024,
      .start = 180,
      .sweep = -360,
      .min_range = 0.3,
      .max_range = 120,
      .range_noise = 0.02,
      .angle_noise = 0.0002,
      .quantum = 0.001,
      .reach = 45}},
    // 270 degrees, a quarter of a degree apart.
    {"scan-2d",
     40,
     ahead,
     {.n_beam = 1,
      .columns = 1440,
      .start = -135,
      .sweep = 270,
      .min_range = 0.1,
      .max_range = 30,
      .range_noise = 0.01,
      .quantum = 0.001,
      .reach = 10}},
    // Optech ILRIS-3D: 2500 shots a second over 40 by 40 degrees, here 0.2 degrees apart, 16 s; 7 mm
    // and 80 microradians, 350 m to what reflects 4 %.
    {"ilris-3d",
     0,
     ahead,
     {.pattern = US_LIDAR_GRID,
      .n_beam = 1,
      .period = 0.4e-3,
      .window = {40, 40},
      .resolution = {0.2, 0.2},
      .divergence = 0.00974,
      .min_range = 3,
      .max_range = 1500,
      .range_noise = 0.007,
      .angle_noise = 8e-5,
      .quantum = 1500.0 / 65535,
      .reach = 550}},
    // Two prisms that bend by 9.6 degrees each: a rosette of 38.4 degrees that closes after minutes.
    {"rosette-40",
     10,
     ahead,
     {.pattern = US_LIDAR_ROSETTE,
      .n_beam = 1,
      .period = 10e-6,
      .bend = {9.6, 9.6},
      .spin = {7294 * 6, -4664 * 6},
      .divergence = 0.28,
      .min_range = 1,
      .max_range = 260,
      .range_noise = 0.02,
      .angle_noise = 0.0009,
      .quantum = 0.001,
      .reach = 90}}};
enum { N_DEVICE = sizeof devices / sizeof devices[0] };

const char *us_lidar_preset_name(int32_t i) { return i >= 0 && i < N_DEVICE ? devices[i].name : NULL; }

us_status us_lidar_preset(const char *name, us_lidar_beam *beams, us_lidar_def *out_def, double *out_rate) {
    if (!name || !beams || !out_def || !out_rate) return US_ERR_ARG;
    for (int i = 0; i < N_DEVICE; i++) {
        if (strcmp(devices[i].name, name) != 0) continue;
        const us_lidar_def usual = us_lidar_def_default();
        *out_def = devices[i].def;
        *out_rate = devices[i].rate;
        out_def->start *= DEGREE;
        out_def->sweep = out_def->sweep != 0 ? out_def->sweep * DEGREE : usual.sweep;
        out_def->divergence *= DEGREE;
        for (int k = 0; k < 2; k++) {
            out_def->window[k] *= DEGREE;
            out_def->resolution[k] *= DEGREE;
            out_def->bend[k] *= DEGREE;
            out_def->spin[k] *= DEGREE;
        }
        out_def->power_noise = usual.power_noise;
        out_def->reflectivity = usual.reflectivity;
        out_def->n_ray = usual.n_ray;
        out_def->pulse = usual.pulse;
        out_def->sun_direction = usual.sun_direction;
        out_def->beams = beams;
        for (int k = 0; k < out_def->n_beam; k++)
            beams[k] = devices[i].beam(k);
        if (out_def->pattern == US_LIDAR_GRID) *out_rate = usi_lidar_grid_rate(out_def);
        return US_OK;
    }
    return US_ERR_NAME;
}

// ---------------------------------------------------------------- checks

// Of a window, with both ends.
static int64_t steps_in(double window, double step) {
    return (int64_t)floor(fmin(window / step, 1e9) + 1e-9) + 1;
}

int64_t usi_lidar_columns(const us_lidar_def *d, double rate) {
    if (d->pattern == US_LIDAR_GRID) return steps_in(d->window[0], d->resolution[0]);
    const double share = d->pattern == US_LIDAR_SPIN ? fabs(d->sweep) / (2 * PI) : 1;
    const bool is_whole = share > 1 - 1e-12;
    if (d->columns > 0) return is_whole ? d->columns : (int64_t)floor(d->columns * share + 1e-9) + 1;
    const double n = fmin(share / (rate * d->period), 1e12);
    return is_whole ? (int64_t)ceil(n - 1e-9) : (int64_t)floor(n + 1e-9) + 1;
}

int64_t usi_lidar_rows(const us_lidar_def *d) {
    return d->pattern == US_LIDAR_GRID ? steps_in(d->window[1], d->resolution[1]) : d->n_beam;
}

double usi_lidar_grid_rate(const us_lidar_def *d) {
    return 1 / (d->period * (double)usi_lidar_columns(d, 0) * (double)usi_lidar_rows(d));
}

static bool is_at_least_0(double x) { return isfinite(x) && x >= 0; }

static us_status check_beams(const us_lidar_def *d, double between, us_error *err) {
    if (d->n_beam < 1 || d->n_beam > US_LIDAR_MAX_BEAM || !d->beams)
        return us_error_set(err, US_ERR_LIMIT, NULL, "give it a preset, or elevations of 1 to 256 beams",
                            "a lidar of %d beams", (int)d->n_beam);
    for (int32_t i = 0; i < d->n_beam; i++) {
        const us_lidar_beam *b = &d->beams[i];
        if (!(fabs(b->elevation) <= 0.5 * PI) || !(fabs(b->azimuth) <= PI))
            return us_error_set(err, US_ERR_VALUE, NULL,
                                "write elevations from -90 to 90 degrees, and azimuths from -180 to 180",
                                "beam %d looks at an angle that is none", (int)i);
        if (!is_at_least_0(b->time) || b->time >= between)
            return us_error_set(err, US_ERR_VALUE, NULL,
                                "let each beam fire before the next group begins, or make that later",
                                "beam %d fires %g us after its group, and the next one begins after %g us",
                                (int)i, 1e6 * b->time, 1e6 * between);
    }
    return US_OK;
}

// What belongs to the pattern.
static us_status check_pattern(const us_lidar_def *d, double rate, us_error *err) {
    if ((unsigned)d->pattern >= (unsigned)US_LIDAR_PATTERN_COUNT)
        return us_error_set(err, US_ERR_VALUE, NULL, "use one of us_lidar_pattern",
                            "pattern: there is no such one");
    if (d->pattern == US_LIDAR_SPIN) {
        if (!(isfinite(rate) && rate > 0))
            return us_error_set(err, US_ERR_VALUE, NULL, "write rate=\"10 Hz\", for example",
                                "rate: a lidar needs its turns per second");
        if (d->columns < 0 || (d->columns == 0) == !(isfinite(d->period) && d->period > 0))
            return us_error_set(err, US_ERR_VALUE, NULL,
                                "write columns=\"1024\" for a head that fires at even angles, or "
                                "period=\"46.08 us\" for one that fires at even times",
                                "columns, period: a lidar needs one of the two");
        if (!(fabs(d->sweep) > 0 && fabs(d->sweep) <= 2 * PI + 1e-9) || !(fabs(d->start) <= 2 * PI + 1e-9))
            return us_error_set(err, US_ERR_VALUE, NULL,
                                "write an angle up to 360 deg, negative for clockwise",
                                "sweep, start: an angle is out of range");
        return US_OK;
    }
    if (d->n_beam != 1 || d->columns != 0 || !(isfinite(d->period) && d->period > 0))
        return us_error_set(err, US_ERR_VALUE, NULL, "write period=\"0.4 ms\" from shot to shot",
                            "period: a grid and a rosette have one beam that fires at even times");
    if (d->pattern == US_LIDAR_ROSETTE) {
        if (!(isfinite(rate) && rate > 0))
            return us_error_set(err, US_ERR_VALUE, NULL, "write rate=\"10 Hz\", for example",
                                "rate: a rosette needs its frames per second");
        if (!isfinite(d->spin[0]) || !isfinite(d->spin[1]) || !(fabs(d->bend[0]) + fabs(d->bend[1]) > 0) ||
            !(fabs(d->bend[0]) + fabs(d->bend[1]) <= 0.5 * PI))
            return us_error_set(err, US_ERR_VALUE, NULL,
                                "write two angles that are 90 deg together at most, and two finite spins",
                                "bend, spin: prisms that bend the beam by this make no rosette");
        return US_OK;
    }
    for (int k = 0; k < 2; k++) {
        if (!(d->window[k] > 0 && d->window[k] <= (k == 0 ? 2 * PI + 1e-9 : PI + 1e-9)) ||
            !(d->resolution[k] > 0 && d->resolution[k] <= d->window[k]))
            return us_error_set(
                err, US_ERR_VALUE, NULL,
                "write window=\"40 40 deg\" and resolution=\"0.2 0.2 deg\", for example",
                "window, resolution: a window of %g by %g deg in steps of %g by %g deg is none",
                d->window[0] / DEGREE, d->window[1] / DEGREE, d->resolution[0] / DEGREE,
                d->resolution[1] / DEGREE);
    }
    return US_OK;
}

static us_status check_cone(const us_lidar_def *d, us_error *err) {
    if (!is_at_least_0(d->divergence) || d->divergence > 0.1)
        return us_error_set(err, US_ERR_VALUE, NULL, "write an angle from 0 to 0.1 rad",
                            "divergence: %g rad is no opening of a beam", d->divergence);
    if (d->divergence > 0 && (d->n_ray < 2 || d->n_ray > US_LIDAR_MAX_RAY))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a whole number from 2 to 9",
                            "rays: %d lines cannot stand for a cone", (int)d->n_ray);
    if (!(isfinite(d->pulse) && d->pulse > 0) && (d->divergence > 0 || d->backscatter > 0))
        return us_error_set(err, US_ERR_VALUE, NULL, "write pulse=\"0.4 m\", for example",
                            "pulse: %g m is no length", d->pulse);
    if ((unsigned)d->returns >= (unsigned)US_LIDAR_RETURNS_COUNT)
        return us_error_set(err, US_ERR_VALUE, NULL, "use one of us_lidar_returns",
                            "returns: there are no such ones");
    return US_OK;
}

static us_status check_air(const us_lidar_def *d, us_error *err) {
    const double length = us_vec3_norm(d->sun_direction);
    if (!is_at_least_0(d->extinction) || !is_at_least_0(d->backscatter) || !is_at_least_0(d->sun) ||
        d->backscatter > d->extinction)
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "write numbers of 0 or more; dust sends back a share of what it takes away",
                            "extinction, backscatter, sun: %g 1/m, %g 1/(m sr) and %g cannot be",
                            d->extinction, d->backscatter, d->sun);
    if (d->sun > 0 && !(fabs(length - 1) < 1e-6))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a direction that is not 0",
                            "sun-direction: there is no direction of length %g", length);
    if (d->reach == 0 && (d->extinction > 0 || d->sun > 0))
        return us_error_set(
            err, US_ERR_VALUE, NULL, "write reach=\"70 m\", for example",
            "extinction, sun: a lidar without a reach sees all surfaces, whatever is between");
    if (d->is_deskewed && d->n_beam == 1 && d->pattern == US_LIDAR_SPIN)
        return us_error_set(err, US_ERR_VALUE, NULL, "leave it out, or give it more beams",
                            "deskew: a lidar of one beam sends scans, which are ranges by angle");
    if (d->n_blind < 0 || d->n_blind > US_LIDAR_MAX_BLIND)
        return us_error_set(err, US_ERR_LIMIT, NULL, "join some of them", "blind: %d sectors are too many",
                            (int)d->n_blind);
    for (int32_t i = 0; i < d->n_blind; i++) {
        if (!(fabs(d->blind[i][0]) <= 2 * PI + 1e-9) || !(fabs(d->blind[i][1]) <= 2 * PI + 1e-9))
            return us_error_set(err, US_ERR_VALUE, NULL, "write azimuths from -360 to 360 deg, in pairs",
                                "blind: sector %d is between angles that are none", (int)i);
    }
    return US_OK;
}

static us_status check_packets(const us_lidar_def *d, us_error *err) {
    if (d->packet_port == 0) return US_OK;
    const bool is_known = d->packet_device == 0x21 || d->packet_device == 0x22 || d->packet_device == 0x28;
    if (!is_known || d->n_beam != (d->packet_device == 0x22 ? 16 : 32))
        return us_error_set(err, US_ERR_VALUE, NULL, "write it with preset hdl-32e, vlp-16 or vlp-32c",
                            "packets: this lidar has no packets of a maker");
    if (d->returns == US_LIDAR_FIRST)
        return us_error_set(err, US_ERR_VALUE, NULL, "write returns=\"strongest\", \"last\" or \"dual\"",
                            "packets: the device has no mode for first returns");
    if (d->packet_address >> 24 != 127)
        return us_error_set(err, US_ERR_VALUE, NULL, "write packets=\"127.0.0.1:2368\"",
                            "packets: they go to programs on this machine alone");
    return US_OK;
}

us_status usi_check_lidar(const us_lidar_def *d, double rate, us_error *err) {
    us_status status = check_pattern(d, rate, err);
    if (!status) status = check_beams(d, d->columns > 0 ? 1 / (rate * d->columns) : d->period, err);
    if (!status) status = check_cone(d, err);
    if (status) return status;
    if (d->pattern != US_LIDAR_GRID && d->columns == 0 && d->period * rate > 0.25)
        return us_error_set(err, US_ERR_VALUE, NULL, "fire more often, or turn more slowly",
                            "period: there are fewer than 4 groups in a turn");
    const double n_point = (double)usi_lidar_columns(d, rate) * (double)usi_lidar_rows(d) *
                           (d->returns == US_LIDAR_DUAL ? 2 : 1);
    if (n_point > US_LIDAR_MAX_POINT)
        return us_error_set(err, US_ERR_LIMIT, NULL, "use fewer columns or beams",
                            "a frame of %lld columns of %lld beams has more than %d points",
                            (long long)usi_lidar_columns(d, rate), (long long)usi_lidar_rows(d),
                            US_LIDAR_MAX_POINT);
    if (!is_at_least_0(d->min_range) || !isfinite(d->max_range) || !(d->max_range > d->min_range))
        return us_error_set(err, US_ERR_VALUE, NULL, "write max-range=\"100 m\", for example",
                            "min-range, max-range: from %g to %g m there is nothing", d->min_range,
                            d->max_range);
    if (!is_at_least_0(d->range_noise) || !is_at_least_0(d->angle_noise) || !is_at_least_0(d->quantum) ||
        !is_at_least_0(d->reach) || !is_at_least_0(d->power_noise) || d->angle_noise > 0.1)
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "write finite numbers of 0 or more, and an angle-noise of at most 0.1 rad",
                            "a number of the lidar's noise is out of range");
    if (!(d->reflectivity > 0 && d->reflectivity <= 1))
        return us_error_set(err, US_ERR_VALUE, NULL, "write a number above 0, up to 1",
                            "reflectivity: %g is none", d->reflectivity);
    status = check_air(d, err);
    return status ? status : check_packets(d, err);
}

us_lidar_def *usi_lidar_copy(usi_arena *arena, const us_lidar_def *def) {
    us_lidar_def *copy = usi_arena_alloc(arena, sizeof *copy, _Alignof(us_lidar_def));
    us_lidar_beam *beams =
        usi_arena_alloc(arena, (size_t)def->n_beam * sizeof *beams, _Alignof(us_lidar_beam));
    if (!copy || !beams) return NULL;
    memcpy(beams, def->beams, (size_t)def->n_beam * sizeof *beams);
    *copy = *def;
    copy->beams = beams;
    return copy;
}

// ---------------------------------------------------------------- tables

// Up to three numbers of a line, between commas or spaces. False: something else is there.
static bool read_numbers(const char *at, const char *end, double out[3], int *out_n) {
    *out_n = 0;
    while (at < end) {
        if (*at == ' ' || *at == ',' || *at == '\t' || *at == '\r' || *at == ';') {
            at++;
            continue;
        }
        char *next = NULL;
        double x = strtod(at, &next);
        if (next == at || next > end || *out_n == 3 || !isfinite(x)) return false;
        out[(*out_n)++] = x;
        at = next;
    }
    return true;
}

us_status usi_lidar_read_table(const char *text, us_lidar_beam *beams, int32_t *out_n, int32_t *out_line,
                               us_error *err) {
    *out_n = 0;
    *out_line = 0;
    for (const char *at = text; *at;) {
        const char *end = at + strcspn(at, "\n"), *stop = memchr(at, '#', (size_t)(end - at));
        const bool is_first = ++*out_line == 1;
        double x[3] = {0, 0, 0};
        int n = 0;
        const bool is_good = read_numbers(at, stop ? stop : end, x, &n);
        // A line of titles may come first.
        if ((!is_good && !is_first) || (is_good && n == 1))
            return us_error_set(err, US_ERR_SYNTAX, NULL,
                                "write lines of elevation (deg), time (us) and, if need be, azimuth (deg)",
                                "line %d is no beam", (int)*out_line);
        if (is_good && n >= 2) {
            if (*out_n == US_LIDAR_MAX_BEAM)
                return us_error_set(err, US_ERR_LIMIT, NULL, "use fewer", "there are more than %d beams",
                                    US_LIDAR_MAX_BEAM);
            beams[(*out_n)++] = (us_lidar_beam){x[0] * DEGREE, x[2] * DEGREE, 1e-6 * x[1]};
        }
        at = *end ? end + 1 : end;
    }
    if (*out_n > 0) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, "write a line for each beam: -15, 0", "there is no beam");
}
