// Packets of Velodyne's lidars as bytes.
#include "wire/velodyne.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 100, RETURN = 3, TIME_AT = 198, SENTENCE_AT = 206 };

static void put16(uint8_t *to, uint32_t x) {
    to[0] = (uint8_t)x;
    to[1] = (uint8_t)(x >> 8);
}

static void put32(uint8_t *to, uint32_t x) {
    put16(to, x);
    put16(to + 2, x >> 16);
}

static uint32_t past_the_hour(int64_t time) {
    const int64_t hour = INT64_C(3600000000000);
    return (uint32_t)((time % hour + hour) % hour / 1000);
}

double usi_velodyne_unit(int32_t device) { return device == USI_VELODYNE_VLP_32C ? 0.004 : 0.002; }

void usi_velodyne_block(uint8_t *packet, int32_t block, double azimuth) {
    uint8_t *to = packet + (ptrdiff_t)block * BLOCK;
    const double turn = 6.283185307179586, share = -azimuth / turn;
    memset(to, 0, BLOCK);
    to[0] = 0xff;
    to[1] = 0xee;
    put16(to + 2, (uint32_t)lrint(36000 * (share - floor(share))) % 36000);
}

void usi_velodyne_return(uint8_t *packet, int32_t block, int32_t channel, int32_t device, double range,
                         double intensity) {
    uint8_t *to = packet + (ptrdiff_t)block * BLOCK + 4 + (ptrdiff_t)channel * RETURN;
    const double n = range / usi_velodyne_unit(device);
    if (!(n >= 0.5 && n < 65535.5)) return;
    put16(to, (uint32_t)lrint(n));
    to[2] = (uint8_t)lrint(fmin(255, fmax(0, intensity)));
}

void usi_velodyne_finish(uint8_t *packet, int64_t time, int32_t mode, int32_t device) {
    put32(packet + 1200, past_the_hour(time));
    packet[1204] = (uint8_t)mode;
    packet[1205] = (uint8_t)device;
}

void usi_velodyne_position(uint8_t *packet, int64_t time) {
    char body[80];
    const time_t seconds = (time_t)(time / 1000000000);
    struct tm t;
    memset(packet, 0, USI_VELODYNE_POSITION);
    put32(packet + TIME_AT, past_the_hour(time));
    if (!gmtime_r(&seconds, &t)) return;
    snprintf(body, sizeof body, "GPRMC,%02d%02d%02d,V,,,,,,,%02d%02d%02d,,", t.tm_hour, t.tm_min, t.tm_sec,
             t.tm_mday, t.tm_mon + 1, t.tm_year % 100);
    unsigned sum = 0;
    for (const char *c = body; *c; c++)
        sum ^= (unsigned)(unsigned char)*c;
    snprintf((char *)packet + SENTENCE_AT, 100, "$%s*%02X\r\n", body, sum & 255);
}
