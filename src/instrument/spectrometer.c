// A spectrometer that looks along its x axis: the reflectance of the material that it sees, in 32 bands from
// `low` to `high`. A material has a spectrum as a property of text, wavelengths in nanometres and
// reflectances:
//
//     <string key="spectrum" value="400 0.05  700 0.12  900 0.09  1100 0.15"/>
//
// A band has the mean of that, straight between the wavelengths that are given and level beyond them; noise
// is of each band, and light that falls at a slant is less.
#include "instrument/measure.h"

enum { N_BAND = 32, VALID = N_BAND, DISTANCE, N_READING };
enum { LOW, HIGH, REACH, NOISE, GAIN };
static const us_sensor_parameter parameters[] = {
    USI_NUMBER("low", "nm", 1, 1e6, 400, "Where its first band begins."),
    USI_NUMBER("high", "nm", 1, 1e6, 1000, "Where its last band ends; above low."),
    USI_NUMBER("max-range", "m", 1e-3, 1e6, 10, "It sees nothing farther away."),
    USI_NUMBER("noise", "1", 0, 1, 0.005, "Standard deviation of each band."),
    USI_NUMBER("gain-error", "1", 0, 1, 0, "Deviation of each band's gain from unit to unit."),
};
#define BAND(i) \
    { "band." #i, "1", false }
#define BANDS(a, b, c, d, e, f, g, h) BAND(a), BAND(b), BAND(c), BAND(d), BAND(e), BAND(f), BAND(g), BAND(h)
static const us_sensor_reading readings[N_READING] = {
    BANDS(0, 1, 2, 3, 4, 5, 6, 7),         BANDS(8, 9, 10, 11, 12, 13, 14, 15),
    BANDS(16, 17, 18, 19, 20, 21, 22, 23), BANDS(24, 25, 26, 27, 28, 29, 30, 31),
    [VALID] = {"valid", "1", true},        [DISTANCE] = {"distance", "m", true},
};

// A decimal number without a sign or an exponent, as they stand in such tables.
static bool next_number(const char **text, double *out) {
    const char *c = *text;
    while (*c == ' ' || *c == '\n' || *c == '\t')
        c++;
    double value = 0, unit = 1;
    int n = 0;
    for (; (*c >= '0' && *c <= '9') || (*c == '.' && unit == 1); c++) {
        if (*c == '.') {
            unit = 0.1;
        } else if (unit == 1) {
            value = 10 * value + (*c - '0');
            n++;
        } else {
            value += unit * (*c - '0');
            unit *= 0.1;
            n++;
        }
    }
    while (*c == ' ' || *c == '\n' || *c == '\t')
        c++;
    *text = c;
    *out = value;
    return n > 0;
}

static bool next_point(const char **text, double *out_wave, double *out_value) {
    return next_number(text, out_wave) && next_number(text, out_value);
}

// Pairs by rising wavelength, at least one, and nothing else.
static bool is_spectrum(const char *text) {
    double last = -1, wave, value;
    int n = 0;
    for (; next_point(&text, &wave, &value); n++) {
        if (!(wave > last)) return false;
        last = wave;
    }
    return n > 0 && *text == 0;
}

// The spectrum at a wavelength.
static double spectrum_at(const char *text, double wave) {
    double w0 = 0, v0 = 0, w1, v1;
    if (!next_point(&text, &w0, &v0) || wave <= w0) return v0;
    while (next_point(&text, &w1, &v1)) {
        if (wave <= w1) return w1 > w0 ? v0 + (v1 - v0) * (wave - w0) / (w1 - w0) : v1;
        w0 = w1;
        v0 = v1;
    }
    return v0;
}

static const char *spectrum_of(const us_sensor_view *view, int32_t geom) {
    const us_model *m = us_sim_view_model(view->sim);
    const us_property *p = us_model_find_property(m, us_model_get_geom(m, geom).material, "spectrum");
    return p && p->type == US_PROPERTY_STRING ? p->text : NULL;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type of all kinds
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    (void)state;
    enum { POINTS = 4 };  // of each band's mean
    const double *p = view->parameter;
    if (!(p[HIGH] > p[LOW])) return usi_refuse(view, "write a high above low", "high is not above low");
    us_sim_hit hit = {.geom = -1};
    const us_vec3 axis = us_quat_rotate(view->X_WS.q, us_vec3_make(1, 0, 0));
    const double distance = usi_free_range(view, axis, p[REACH], &hit);
    if (isnan(distance)) return false;
    const char *spectrum = isfinite(distance) ? spectrum_of(view, hit.geom) : NULL;
    if (spectrum && !is_spectrum(spectrum))
        return usi_refuse(
            view,
            "write pairs of a wavelength in nm and a reflectance, by rising wavelength: 400 0.05 700 0.1",
            "the spectrum of the material that it sees is no list of such pairs");
    const double slant = spectrum ? fmax(0, -us_vec3_dot(axis, hit.normal)) : 0,
                 width = (p[HIGH] - p[LOW]) / N_BAND;
    for (int i = 0; i < N_BAND; i++) {
        truth[i] = 0;
        for (int k = 0; k < POINTS && spectrum; k++)
            truth[i] += spectrum_at(spectrum, p[LOW] + width * (i + (k + 0.5) / POINTS)) * slant / POINTS;
        reading[i] =
            (1 + p[GAIN] * usi_unit_normal(view, i)) * truth[i] + p[NOISE] * us_sensor_normal(view, i);
    }
    truth[VALID] = reading[VALID] = spectrum != NULL;
    truth[DISTANCE] = reading[DISTANCE] = isfinite(distance) ? distance : p[REACH];
    return true;
}

const us_sensor_kind usi_spectrometer_kind = {
    .abi = US_SENSOR_ABI,
    .size = sizeof(us_sensor_kind),
    .name = "spectrometer",
    .about = "a spectrometer: the reflectance of the material that it looks at, along its x axis",
    .n_parameter = USI_COUNT(parameters),
    .n_reading = USI_COUNT(readings),
    .parameters = parameters,
    .readings = readings,
    .usual_rate = 1,
    .sample = sample,
};
