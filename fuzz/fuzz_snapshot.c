// Snapshots changed at any places and signed again: refused, or the world goes on, says on the network what
// it says, and answers what is asked of it.
//
// The worlds have everything that has a state: a stone and an arm that fall; sensors of every kind with
// samples on their way; lidars of every pattern in the middle of a turn; a rover in a bed of soil; robots
// with interfaces, legs, batteries, loops, breakage and scripts.
//
// The input is a list of changes, 8 bytes each: 4 where, 1 how wide, 3 of the value. So seeds stay of use
// when the layout of the state changes. Bytes before them, up to 7, choose the world; without any it is the
// first one.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "understudy/proxy.h"
#include "understudy/query.h"
#include "understudy/sensing.h"
#include "understudy/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 32, MAX_CHANGE = 64, N_STEP = 300 };

typedef struct world {
    const char *text, *file;  // one of them
    us_model *model;
    us_proxy *proxy;
    us_sim *sim;
    uint8_t *good;
    size_t length;
} world;

#define CARRIER "<robot name='r' file='../tests/support/carrier.urdf' xyz='0 0 1'>"

static world worlds[] = {
    {.text = "<scene name='s' version='1'><world><shape name='ground' type='plane'/></world>"
             "<object name='stone' xyz='3 0 0.2' base='floating'><link name='core'><inertial mass='5' "
             "inertia='0.1 0.1 0.1'/><shape type='box' size='0.4 0.4 0.4'/></link></object>"
             "<object name='arm' xyz='0 3 1'><link name='a'><inertial mass='1' inertia='0.1 0.1 0.1'/></link>"
             "<link name='b'><inertial mass='1' inertia='0.1 0.1 0.1'/></link>"
             "<joint name='j' type='revolute' parent='a' child='b' axis='0 1 0'/></object></scene>"},
    {.text = "<scene name='s' version='1'><world><shape name='ground' type='plane'/>"
             "<shape name='rock' type='sphere' size='1' xyz='3 0 0'/></world>" CARRIER
             "<sensor type='imu' name='late' link='base' rate='200 Hz' latency='50 ms'/>"
             "<sensor type='range' name='laser' preset='laser' link='base' rate='50 Hz' latency='0.1 s'/>"
             "<sensor type='lidar' name='turns' link='base' elevations='-9 -3 0 deg' columns='36' "
             "rate='20 Hz' max-range='20' divergence='0.003 rad' returns='dual' latency='10 ms'/>"
             "<sensor type='lidar' name='grid' link='base' pattern='grid' window='20 deg 10 deg' "
             "resolution='2 deg 2 deg' period='1 ms' max-range='20'/>"
             "<sensor type='lidar' name='rose' link='base' pattern='rosette' bend='8 deg 8 deg' "
             "prism-spin='100 rad/s -70 rad/s' period='1 ms' rate='10 Hz' max-range='20'/>"
             "<network/></robot></scene>"},
    {.file = "instruments"},
    {.file = "default"},
    {.file = "hexapod-breakage"},
    {.file = "rapid"},
    {.file = "faults"},
    {.file = "four-bar"},
};
enum { N_WORLD = sizeof worlds / sizeof worlds[0] };

static uint8_t *bad;
static size_t most;

static void must(bool is_so, const us_error *err) {
    if (is_so) return;
    fprintf(stderr, "%s: %s\n", err->file, err->message);
    abort();
}

static us_spec *read_world(const world *w, us_error *err) {
    static const char here[] = US_SOURCE_DIR "/scenes/fuzz.xml";
    char path[4096];
    us_spec *spec = NULL;
    if (w->text) {
        must(us_spec_load_text(w->text, strlen(w->text), here, NULL, &spec, err) == US_OK, err);
    } else {
        snprintf(path, sizeof path, "%s/scenes/%s.xml", US_SOURCE_DIR, w->file);
        must(us_spec_load(path, NULL, &spec, err) == US_OK, err);
    }
    return spec;
}

static void start(world *w) {
    us_error err = {0};
    us_spec *spec = read_world(w, &err);
    must(us_model_compile(spec, NULL, &w->model, &err) == US_OK, &err);
    us_spec_destroy(spec);
    must(us_proxy_create(w->model, NULL, &w->proxy, &err) == US_OK, &err);
    us_plugin part = us_proxy_get_plugin(w->proxy);
    us_sim_def def = us_sim_def_default();
    def.n_plugin = 1;
    def.plugins = &part;
    must(us_sim_create(w->model, &def, &w->sim, &err) == US_OK, &err);
    for (int i = 0; i < N_STEP; i++) {
        must(us_sim_step(w->sim, NULL) == US_OK, us_sim_view_error(w->sim));
        us_proxy_publish(w->proxy, w->sim);
    }
    must(us_sim_save(w->sim, NULL, 0, &w->length) == US_OK, &err);
    w->good = malloc(w->length);
    must(w->good && us_sim_save(w->sim, w->good, w->length, &w->length) == US_OK, &err);
    if (w->length <= most) return;
    most = w->length;
    bad = realloc(bad, most);
    must(bad, &err);
}

// Sets `n` numbers of a width one behind the other.
static void change(const world *w, size_t at, const uint8_t *value, size_t width, size_t n) {
    for (size_t k = 0; k < n && at + width <= w->length; k++, at += width)
        memcpy(bad + at, value, width);
}

static void make_change(const world *w, const uint8_t *data) {
    static const uint64_t odd[] = {UINT64_MAX,
                                   UINT64_MAX >> 1,
                                   UINT64_C(1) << 63,
                                   UINT64_C(1) << 53,
                                   0x7fffffff7fffffff,
                                   0x8000000080000000,
                                   0x7fefffffffffffff,
                                   0x7ff8000000000000,
                                   0x0010000000000000,
                                   0x426d1a94a2000000,
                                   0x7f7fffff7f800000,
                                   0x3fffffff40000000,
                                   1,
                                   UINT64_C(1) << 32 | 1u,
                                   1000};
    const uint8_t form = data[4];
    const size_t width = (size_t)1 << (form & 3), n = form & 64 ? (size_t)1 << (form >> 2 & 15) : 1;
    uint32_t place = 0;
    memcpy(&place, data, 4);
    size_t at = HEADER + place % (w->length - HEADER - 8);
    // The value's bytes; or, by the highest bit of the width, the same one all over, or a number at the end
    // of something, where a number may begin.
    uint8_t value[8] = {data[5], data[6], data[7]};
    if (form & 128 && data[6] & 1) {
        memcpy(value, &odd[data[5] % (sizeof odd / sizeof odd[0])], sizeof value);
        at -= at % width;
    } else if (form & 128) {
        memset(value, data[5], sizeof value);
    }
    change(w, at, value, width, n);
}

// Everything that is made of the state for those who ask.
static void look(const world *w) {
    static us_lidar_point points[1 << 17];
    const us_model *m = w->model;
    volatile uint64_t seen = us_sim_hash(w->sim);
    for (int32_t i = 0; i < us_model_n_lidar(m); i++) {
        us_lidar_frame frame;
        us_sim_get_lidar_frame(w->sim, (us_lidar){i}, true, &frame, points,
                               (int32_t)(sizeof points / sizeof points[0]));
    }
    for (int32_t i = 0; i < us_sim_n_deformable(w->sim); i++) {
        const us_deformable_info info = us_sim_get_deformable(w->sim, i);
        seen += (uint64_t)info.n_active;
    }
    for (int32_t i = 0; i < us_model_n_sensor(m); i++)
        seen += (uint64_t)us_sim_view_sensor_reading(w->sim, (us_sensor){i}).number;
    (void)seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    world *w = &worlds[size % 8 ? data[0] % N_WORLD : 0];
    if (!w->sim) start(w);
    memcpy(bad, w->good, w->length);
    const size_t first = size % 8;
    for (size_t i = first; i + 8 <= size && i < first + (size_t)8 * MAX_CHANGE; i += 8)
        make_change(w, data + i);
    uint64_t check = us_hash_bytes(0, bad + HEADER, w->length - HEADER);
    memcpy(bad + 24, &check, sizeof check);
    if (us_sim_restore(w->sim, bad, w->length)) return 0;
    look(w);
    for (int i = 0; i < 2; i++) {
        // A step may fail, with a clear error.
        if (us_sim_step(w->sim, NULL)) break;
        us_proxy_publish(w->proxy, w->sim);
    }
    look(w);
    return 0;
}
