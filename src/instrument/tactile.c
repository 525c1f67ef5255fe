// A tactile pad of four by four cells in the xy plane of the sensor, its middle in the origin: the force on
// each along -z. A point of contact beside the pad's plane by less than `reach` presses on the four cells
// around it, in parts that add up to its force.
#include "instrument/measure.h"

enum { SIDE = 4, N_CELL = SIDE * SIDE };
enum { WIDTH, HEIGHT, REACH, NOISE, THRESHOLD, LIMIT };
static const us_sensor_parameter parameters[] = {
    USI_NUMBER("width", "m", 1e-4, 100, 0.04, "Of the pad, along x."),
    USI_NUMBER("height", "m", 1e-4, 100, 0.04, "Of the pad, along y."),
    USI_NUMBER("reach", "m", 1e-6, 1, 0.005, "How far from its plane a contact may be."),
    USI_NUMBER("noise", "N", 0, 1e6, 0.005, "Standard deviation of each cell."),
    USI_NUMBER("threshold", "N", 0, 1e6, 0.02, "A cell says 0 below it."),
    USI_NUMBER("limit", "N", 0, 1e9, 0, "Largest force of a cell; 0: any."),
};
#define CELL(i) \
    { "cell." #i, "N", false }
static const us_sensor_reading readings[N_CELL] = {CELL(0),  CELL(1),  CELL(2),  CELL(3), CELL(4),  CELL(5),
                                                   CELL(6),  CELL(7),  CELL(8),  CELL(9), CELL(10), CELL(11),
                                                   CELL(12), CELL(13), CELL(14), CELL(15)};

// The two cells around a place along a side, and the share of the second; false: beside the pad.
static bool find_cells(double x, double width, int *out_first, double *out_share) {
    const double at = (x / width + 0.5) * SIDE - 0.5;
    if (at < -0.5 || at > SIDE - 0.5) return false;
    const double in = fmax(0, fmin(SIDE - 1, at));
    *out_first = (int)fmin(SIDE - 2, floor(in));
    *out_share = in - *out_first;
    return true;
}

static void press(const us_sensor_view *view, double *cells, us_vec3 point_W, us_vec3 force_W) {
    const double *p = view->parameter;
    const us_vec3 at = usi_in_sensor(view, us_vec3_sub(point_W, view->X_WS.p));
    const double push = -usi_in_sensor(view, force_W).z;
    int i, j;
    double s, t;
    if (fabs(at.z) > p[REACH] || push <= 0 || !find_cells(at.x, p[WIDTH], &i, &s) ||
        !find_cells(at.y, p[HEIGHT], &j, &t))
        return;
    double *cell = cells + SIDE * j + i;
    cell[0] += push * (1 - s) * (1 - t);
    cell[1] += push * s * (1 - t);
    cell[SIDE] += push * (1 - s) * t;
    cell[SIDE + 1] += push * s * t;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    const double *p = view->parameter;
    for (int i = 0; i < N_CELL; i++)
        truth[i] = 0;
    for (int32_t i = 0, n = us_sim_n_contact(view->sim); i < n; i++) {
        const us_contact c = us_sim_get_contact(view->sim, i);
        const double sign = (c.body_a.i == view->body) - (c.body_b.i == view->body);
        if (sign != 0) press(view, truth, c.point, us_vec3_scale(sign, c.force));
    }
    for (int i = 0; i < N_CELL; i++) {
        const double y = truth[i] + p[NOISE] * us_sensor_normal(view, i);
        reading[i] = y < p[THRESHOLD] ? 0 : usi_noise_limit(p[LIMIT], y);
    }
    return true;
}

const us_sensor_kind usi_tactile_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "tactile",
    .about = "a tactile pad of four by four cells in its xy plane",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 50,
    .sample = sample,
};
