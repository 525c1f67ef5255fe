// Any returns in packets of Velodyne's lidars: whatever azimuths, ranges, intensities and times are given,
// packets have their form, blocks do not touch each other, and what a reader takes out of them is what was
// put in, to half a unit.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/velodyne.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) __builtin_trap();
}

static unsigned u16(const uint8_t *p) { return (unsigned)p[0] | (unsigned)p[1] << 8; }

// A number of the input: any double, or one that ranges are like.
static double take(const uint8_t **at, const uint8_t *end, double like) {
    double x = 0;
    if (end - *at < 9) return 0;
    const bool is_any = (*at)[0] & 1;
    if (is_any)
        memcpy(&x, *at + 1, sizeof x);
    else
        x = like * u16(*at + 1) / 65536;
    *at += 9;
    return x;
}

static void check_block(const uint8_t *block, double azimuth) {
    const double turn = 6.283185307179586;
    must(block[0] == 0xff && block[1] == 0xee && u16(block + 2) < 36000);
    if (!(fabs(azimuth) < 1e6)) return;
    const double off = u16(block + 2) * turn / 36000 + azimuth;
    must(fabs(off - turn * nearbyint(off / turn)) < 0.51 * turn / 36000 + 1e-9);
}

static void check_return(const uint8_t *at, double unit, double range, double intensity) {
    const double told = u16(at) * unit;
    const bool fits = range > 0.5001 * unit && range < 65535.4999 * unit;
    must(told == 0 || fabs(told - range) < 0.51 * unit);
    must(told > 0 || !fits);
    if (told > 0 && intensity >= 0 && intensity <= 255) must(fabs(at[2] - intensity) <= 0.5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int32_t devices[] = {USI_VELODYNE_HDL_32E, USI_VELODYNE_VLP_16, USI_VELODYNE_VLP_32C};
    const uint8_t *at = data, *end = data + size;
    if (size < 10) return 0;
    const int32_t device = devices[data[0] % 3];
    const double unit = usi_velodyne_unit(device);
    int64_t time = 0;
    memcpy(&time, data + 1, sizeof time);
    at += 9;
    uint8_t packet[USI_VELODYNE_DATA + 1], position[USI_VELODYNE_POSITION + 1];
    memset(packet, 0x5a, sizeof packet);
    for (int32_t b = 0; b < USI_VELODYNE_BLOCKS; b++) {
        const double azimuth = take(&at, end, 100);
        // What lrint cannot make a number of is no azimuth of a head.
        usi_velodyne_block(packet, b, isfinite(azimuth) && fabs(azimuth) < 1e9 ? azimuth : 0);
        check_block(packet + 100 * (ptrdiff_t)b, fabs(azimuth) < 1e9 ? azimuth : 0);
        for (int32_t c = 0; c < USI_VELODYNE_CHANNELS && end - at >= 18; c++) {
            const double range = take(&at, end, 300), intensity = take(&at, end, 255);
            usi_velodyne_return(packet, b, c, device, range, intensity);
            check_return(packet + 100 * (ptrdiff_t)b + 4 + 3 * (ptrdiff_t)c, unit, range, intensity);
        }
    }
    usi_velodyne_finish(packet, time, USI_VELODYNE_DUAL, device);
    const uint32_t past = u16(packet + 1200) | (uint32_t)u16(packet + 1202) << 16;
    must(past < 3600000000U && packet[1204] == USI_VELODYNE_DUAL && packet[1205] == device);
    must(packet[USI_VELODYNE_DATA] == 0x5a);
    position[USI_VELODYNE_POSITION] = 0x5a;
    usi_velodyne_position(position, time);
    must(position[USI_VELODYNE_POSITION] == 0x5a);
    must(position[206] == 0 || memcmp(position + 206, "$GPRMC,", 7) == 0);
    return 0;
}
