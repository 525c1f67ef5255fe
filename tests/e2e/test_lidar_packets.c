// Packets of Velodyne's lidars on a real socket: what a decoder that shares nothing with the encoder makes of
// them is the frame of the sim, to a unit of distance.
#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "domain.h"
#include "proxy_world.h"
#include "understudy/bus.h"
#include "understudy/query.h"

static const double DEGREE = 3.14159265358979323846 / 180;

// ---------------------------------------------------------------- a decoder

typedef struct device {
    const char *preset;
    int model, n_laser, n_column;
    double firing, laser_time;  // us
    double unit;                // m
    double up[32], right[32];   // degrees, by laser
} device;

// Tables of the manuals, written out.
static const device devices[3] = {
    {"hdl-32e",
     0x21,
     32,
     2171,
     46.08,
     1.152,
     0.002,
     {-30.67, -9.33,  -29.33, -8.00,  -28.00, -6.67,  -26.67, -5.33,  -25.33, -4.00,  -24.00,
      -2.67,  -22.67, -1.33,  -21.33, 0.00,   -20.00, 1.33,   -18.67, 2.67,   -17.33, 4.00,
      -16.00, 5.33,   -14.67, 6.67,   -13.33, 8.00,   -12.00, 9.33,   -10.67, 10.67},
     {0}},
    {"vlp-16",
     0x22,
     16,
     1809,
     55.296,
     2.304,
     0.002,
     {-15, 1, -13, 3, -11, 5, -9, 7, -7, 9, -5, 11, -3, 13, -1, 15},
     {0}},
    {"vlp-32c",
     0x28,
     32,
     1809,
     55.296,
     1.152,  // two at a time, each 2.304
     0.004,
     {-25,    -1,     -1.667, -15.639, -11.31, 0,      -0.667, -8.843, -7.254, 0.333,  -0.333,
      -6.148, -5.333, 1.333,  0.667,   -4,     -4.667, 1.667,  1,      -3.667, -3.333, 3.333,
      2.333,  -2.667, -3,     7,       4.667,  -2.333, -2,     15,     10.333, -1.333},
     {1.4, -4.2, 1.4, -1.4, 1.4, -1.4, 4.2, -1.4, 1.4, -4.2, 1.4, -1.4, 4.2, -1.4, 4.2, -1.4,
      1.4, -4.2, 1.4, -4.2, 4.2, -1.4, 1.4, -1.4, 1.4, -1.4, 1.4, -4.2, 4.2, -1.4, 1.4, -1.4}}};

static double laser_time(const device *d, int laser) {
    return d->model == 0x28 ? 2.304 * (laser / 2) : d->laser_time * laser;
}

typedef struct echo {
    int64_t firing;  // since time began
    int laser;
    us_vec3 p;
    double range, intensity;
} echo;

static unsigned u16(const uint8_t *p) { return (unsigned)p[0] | (unsigned)p[1] << 8; }

// All returns of the blocks of a packet from `first` on, each `every` blocks.
static int decode(const device *d, const uint8_t *packet, int first, int every, echo out[384]) {
    const uint32_t time = u16(packet + 1200) | u16(packet + 1202) << 16;
    const int per_block = 32 / d->n_laser;
    int n = 0;
    assert_int_equal(packet[1205], d->model);
    for (int b = first; b < 12; b += every) {
        const uint8_t *block = packet + 100 * b;
        assert_int_equal(block[0], 0xff);
        assert_int_equal(block[1], 0xee);
        assert_true(u16(block + 2) < 36000);
        for (int c = 0; c < 32; c++) {
            const int laser = c % d->n_laser, sequence = c / d->n_laser;
            const double later = sequence * d->firing + laser_time(d, laser),
                         azimuth = u16(block + 2) * 0.01 + 360e-5 * later + d->right[laser],
                         up = d->up[laser] * DEGREE, range = u16(block + 4 + 3 * c) * d->unit;
            out[n++] = (echo){.firing = llround((double)time / d->firing) + (int64_t)(b / every) * per_block +
                                        sequence,
                              .laser = laser,
                              .p = {range * cos(up) * cos(azimuth * DEGREE),
                                    -range * cos(up) * sin(azimuth * DEGREE), range * sin(up)},
                              .range = range,
                              .intensity = block[6 + 3 * c]};
        }
    }
    return n;
}

// ---------------------------------------------------------------- a client

typedef struct client {
    int data, position;
    char address[40];
} client;

static int listen_on(const char *address, uint16_t port, uint16_t *out_port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t length = sizeof a;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(inet_pton(AF_INET, address, &a.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &length), 0);
    *out_port = ntohs(a.sin_port);
    return fd;
}

// An address of this machine that is this process's own, so that the port of position packets is free.
static client client_open(void) {
    client c;
    char host[20];
    uint16_t port;
    snprintf(host, sizeof host, "127.%d.%d.7", 1 + (int)getpid() / 256 % 250, (int)getpid() % 256);
    c.position = listen_on(host, 8308, &port);
    c.data = listen_on(host, 0, &port);
    snprintf(c.address, sizeof c.address, "%s:%d", host, (int)port);
    return c;
}

static void receive(int fd, uint8_t *packet, int length) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint8_t more[2000];
    assert_int_equal(poll(&p, 1, 60000), 1);
    assert_int_equal(recv(fd, more, sizeof more, 0), length);
    memcpy(packet, more, (size_t)length);
}

// ---------------------------------------------------------------- a world

typedef struct stage {
    proxy_world world;
    us_bus *bus;
    client client;
} stage;

static void stage_open(stage *t, const device *d, const char *more) {
    char scene[2000];
    us_error err = {0};
    t->client = client_open();
    snprintf(
        scene, sizeof scene,
        "<scene name='s' version='1'><world step='1 ms' gravity='0 0 0'>"
        "<shape type='box' size='1 40 40' xyz='8.5 0 0'/><shape type='box' size='1 40 40' xyz='-6.5 0 0'/>"
        "<shape type='box' size='40 1 40' xyz='0 5.5 0'/><shape type='sphere' size='2' xyz='0 -9 0'/></world>"
        "<robot name='r' file='../tests/support/carrier.urdf'><sensor type='lidar' name='lidar' link='base' "
        "preset='%s' range-noise='0' angle-noise='0' reach='0' packets='%s' %s/><network "
        "namespace='r'/></robot>"
        "</scene>",
        d->preset, t->client.address, more);
    proxy_world_init(&t->world, scene);
    us_bus_def def = us_bus_def_default();
    def.domain = test_domain_of(0);
    if (us_bus_open(&def, &t->bus, &err) || us_proxy_connect(t->world.proxy, t->bus, &err))
        fail_msg("%s (%s)", err.message, err.remedy);
}

static void stage_close(stage *t) {
    proxy_world_fini(&t->world);
    us_bus_close(t->bus);
    close(t->client.data);
    close(t->client.position);
}

// The point of a laser: of all with its ring, that are counted from the lowest up.
static const us_lidar_point *point_of(const device *d, const us_lidar_point *frame, int table, int laser,
                                      int column) {
    int ring = 0;
    for (int i = 0; i < d->n_laser; i++)
        ring += d->up[i] < d->up[laser];
    return &frame[(table * d->n_laser + ring) * d->n_column + column];
}

static double length_of(const us_lidar_point *p) {
    return sqrt((double)p->x * (double)p->x + (double)p->y * (double)p->y + (double)p->z * (double)p->z);
}

static void compare(const device *d, const echo *e, const us_lidar_point *p, int64_t *n) {
    if (isnan(p->x)) {
        assert_true(e->range == 0 && e->intensity == 0);
        return;
    }
    // Half a unit of distance; azimuths are written to a hundredth of a degree, and half of one is 0.9 mm at
    // 10 m; a float holds 1e-6 m.
    assert_true(fabs(e->range - length_of(p)) <= 0.5 * d->unit + 2e-6);
    const us_vec3 off = us_vec3_sub(e->p, us_vec3_make((double)p->x, (double)p->y, (double)p->z));
    if (!(us_vec3_norm(off) <= 0.5 * d->unit + e->range * 0.0051 * DEGREE + 1e-5))
        fail_msg("laser %d of firing %lld: %.6f m off at %.3f m", e->laser, (long long)e->firing,
                 us_vec3_norm(off), e->range);
    assert_true(fabs(e->intensity - (double)p->intensity) <= 0.5001);
    ++*n;
}

static void packets_of(const device *d, bool is_dual) {
    stage t;
    stage_open(&t, d, is_dual ? "divergence='0.01' returns='dual'" : "");
    enum { TICKS = 210 };
    const int per_packet = 12 * (32 / d->n_laser) / (is_dual ? 2 : 1);
    const int cap = (int)(1e-3 * TICKS / (1e-6 * d->firing)) / per_packet + 1;
    uint8_t(*packet)[1206] = malloc((size_t)cap * sizeof *packet);
    us_lidar_point *frame = malloc((size_t)(2 * d->n_laser * d->n_column) * sizeof *frame);
    us_lidar_frame f = {.turn = -1};
    assert_true(packet && frame);
    int n = 0;
    for (int i = 1; i <= TICKS; i++) {
        proxy_world_step(&t.world, 1);
        const double fired = (i * 1e3 - laser_time(d, d->n_laser - 1)) / d->firing;
        for (const int full = ((int)floor(fired) + 1) / per_packet; n < full; n++)
            receive(t.client.data, packet[n], 1206);
        us_sim_get_lidar_frame(t.world.sim, (us_lidar){0}, false, &f, NULL, 0);
    }
    assert_int_equal(f.turn, 1);
    assert_int_equal(
        us_sim_get_lidar_frame(t.world.sim, (us_lidar){0}, false, &f, frame, 2 * d->n_laser * d->n_column),
        US_OK);
    const int64_t first = llround(f.time / (1e-6 * d->firing));
    int64_t n_same = 0, n_two = 0;
    for (int i = 0; i < n; i++) {
        echo last[384], other[384];
        const int n_echo = decode(d, packet[i], 0, is_dual ? 2 : 1, last);
        assert_int_equal(packet[i][1204], is_dual ? 0x39 : 0x37);
        if (is_dual) decode(d, packet[i], 1, 2, other);
        for (int k = 0; k < n_echo; k++) {
            const int64_t column = last[k].firing - first;
            if (column < 0 || column >= d->n_column || (double)last[k].firing * d->firing >= 2e5) continue;
            const us_lidar_point *a = point_of(d, frame, 0, last[k].laser, (int)column);
            if (!is_dual) {
                compare(d, &last[k], a, &n_same);
                continue;
            }
            const us_lidar_point *b = point_of(d, frame, 1, last[k].laser, (int)column);
            if (isnan(b->x)) b = a;
            n_two += a != b;
            const bool is_a_last = isnan(a->x) || length_of(a) > length_of(b);
            compare(d, &last[k], is_a_last ? a : b, &n_same);
            compare(d, &other[k], is_a_last ? b : a, &n_same);
        }
    }
    // A wall is missing on one side, where the sphere is; cones of 10 mrad have two returns at the edges of
    // the sphere.
    assert_true(n_same > d->n_laser * d->n_column * 6 / 10);
    if (is_dual) assert_true(n_two > 10);
    free(packet);
    free(frame);
    stage_close(&t);
}

static void an_hdl_32e_is_decoded(void **state) {
    (void)state;
    packets_of(&devices[0], false);
}
static void a_vlp_16_is_decoded(void **state) {
    (void)state;
    packets_of(&devices[1], false);
}
static void a_vlp_32c_is_decoded(void **state) {
    (void)state;
    packets_of(&devices[2], false);
}
static void dual_returns_are_decoded(void **state) {
    (void)state;
    packets_of(&devices[0], true);
    packets_of(&devices[1], true);
}

// A sentence of NMEA 0183 with the time of the world, ten times a second.
static void position_packets_have_the_time(void **state) {
    (void)state;
    stage t;
    uint8_t packet[512];
    stage_open(&t, &devices[1], "");
    for (int i = 0; i < 1205; i++)
        proxy_world_step(&t.world, 1);
    for (int i = 1; i <= 12; i++) {
        receive(t.client.position, packet, 512);
        const uint32_t time = u16(packet + 198) | u16(packet + 200) << 16;
        unsigned sum = 0, said = 0;
        const char *text = (const char *)packet + 206, *c = text + 1;
        char want[60];
        assert_int_equal(time, 100000 * i);
        snprintf(want, sizeof want, "$GPRMC,0000%02d,V,,,,,,,010170,,*", i / 10);
        assert_int_equal(strncmp(text, want, strlen(want)), 0);
        for (; *c && *c != '*'; c++)
            sum ^= (unsigned char)*c;
        assert_int_equal(sscanf(c, "*%2X", &said), 1);
        assert_int_equal(said, sum);
    }
    stage_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hdl_32e_is_decoded),          cmocka_unit_test(a_vlp_16_is_decoded),
        cmocka_unit_test(a_vlp_32c_is_decoded),           cmocka_unit_test(dual_returns_are_decoded),
        cmocka_unit_test(position_packets_have_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
