// The converter and the inertial unit: instruments that answer bytes with bytes.
#include <math.h>
#include <string.h>

#include "firmware/device_face.h"

// ---------------------------------------------------------------- converter
//
// Control byte: 1 S2 S1 S0 unipolar single-ended PD1 PD0. While two more bytes come, the result goes out: a
// 0, twelve bits from the top, three zeros. Channels are wired so that S2 tells odd from even ones.

static uint16_t convert(const usi_adc *a, uint8_t control) {
    const int select = control >> 4 & 7, pair = (select & 3) << 1, odd = select >> 2;
    const bool is_unipolar = control & 8, is_single = control & 4;
    const double volts = is_single ? a->volts[pair + odd] : a->volts[pair + odd] - a->volts[pair + 1 - odd];
    const double steps = floor(volts / USI_ADC_REFERENCE * 4096), low = is_unipolar ? 0 : -2048;
    const double held = isfinite(steps) ? fmin(fmax(steps, low), low + 4095) : low;
    return (uint16_t)((int32_t)held & 0x0FFF);
}

uint8_t usi_adc_exchange(usi_adc *a, uint8_t byte) {
    const uint8_t out = (uint8_t)(a->shift >> 8);
    a->shift = (uint16_t)(a->shift << 8);
    // The first bit that is 1 starts a conversion; a byte that comes while a result goes out has none.
    if (byte & 0x80) a->shift = (uint16_t)(convert(a, byte) << 3);
    return out;
}

// ---------------------------------------------------------------- inertial unit
//
// Letters: R answers H; a chooses angles, c scaled sensors, each answered by its capital letter; P sends when
// asked, by G; C sends by itself; S and v tell serial number and version.

static const double DEGREE = 57.2957795130823208768;                // of a rad
static const double G = 9.80665;                                    // m/s^2
static const double RATE_RANGE = 100 * 1.5, FORCE_RANGE = 2 * 1.5;  // degree/s, g at 2^15
static const double TICK = 0.79e-6;                                 // s: its clock counts down in these
static const double PERIOD = 0.01;                                  // s between packets that nobody asks for
enum { TEMPERATURE = 1587 };  // 25 degrees: (25 / 44.4 + 1.375) V of 5 V in 4096 steps

static uint8_t *put(uint8_t *at, double value, double range) {
    const double x = fmin(fmax(value / range * 32768, -32768), 32767);
    const uint16_t u = (uint16_t)(int16_t)(isfinite(x) ? lround(x) : 0);
    at[0] = (uint8_t)(u >> 8);
    at[1] = (uint8_t)u;
    return at + 2;
}

static size_t make_packet(const usi_gyro *g, uint8_t *out) {
    const double *x = g->values;
    uint8_t *at = out;
    *at++ = 0xFF;
    if (g->is_angle) {
        at = put(at, x[0] * DEGREE, 180);
        at = put(at, x[1] * DEGREE, 180);
    }
    for (int i = 2; i < 5; i++)
        at = put(at, x[i] * DEGREE, RATE_RANGE);
    for (int i = 5; i < 8; i++)
        at = put(at, x[i] / G, FORCE_RANGE);
    const uint16_t count = (uint16_t)(65535 - (uint64_t)fmod(g->time / TICK, 65536));
    const uint8_t rest[4] = {TEMPERATURE >> 8, TEMPERATURE & 0xFF, (uint8_t)(count >> 8), (uint8_t)count};
    memcpy(at, rest, sizeof rest);
    at += sizeof rest;
    uint8_t sum = 0;
    for (const uint8_t *p = out + 1; p < at; p++)
        sum = (uint8_t)(sum + *p);
    *at++ = sum;
    return (size_t)(at - out);
}

void usi_gyro_init(usi_gyro *g) { *g = (usi_gyro){.is_angle = true}; }

static size_t answer(const char *text, uint8_t *out) {
    const size_t n = strlen(text);
    memcpy(out, text, n);
    return n;
}

size_t usi_gyro_take(usi_gyro *g, uint8_t byte, uint8_t *out) {
    switch (byte) {
    case 'R':
        return answer("H", out);
    case 'a':
        g->is_angle = true;
        return answer("A", out);
    case 'c':
        g->is_angle = false;
        return answer("C", out);
    case 'P':
        g->is_continuous = false;
        return 0;
    case 'C':
        g->is_continuous = true;
        g->sent = g->time;
        return 0;
    case 'G':
        return make_packet(g, out);
    case 'S':
        return answer("\xFF"
                      "0001"
                      "\xFF",
                      out);
    case 'v':
        return answer("\xFF"
                      "VG 1.0"
                      "\xFF",
                      out);
    default:
        return 0;
    }
}

size_t usi_gyro_tick(usi_gyro *g, uint8_t *out) {
    // Time that was set back begins anew.
    if (!g->is_continuous || (g->time >= g->sent && g->time < g->sent + PERIOD)) return 0;
    g->sent = g->time;
    return make_packet(g, out);
}
