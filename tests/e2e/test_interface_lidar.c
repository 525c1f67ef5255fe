// A lidar's turns on topics of a robot's own types: point for point what /k10/points has, in as many samples
// as the type's sequences ask for. A run without a network, and its recording.
#include <math.h>

#include "test_cli_support.h"
#include "understudy/interface.h"
#include "understudy/messages.h"
#include "understudy/record.h"

enum { MOST = 16384, RINGS = 32, COLUMNS = 2171 };

static const char types_text[] =
    "module own {\n"
    "  struct Point { short xyz[3]; octet attributes[2]; };\n"
    "  struct Cloud { long long stamp; sequence<Point, 16384> points; sequence<short, 128> rows; };\n"
    "  struct Columns { sequence<float> range, azimuth, elevation; sequence<double> time; };\n"
    "  struct Flash { float range[70000]; sequence<octet> intensity; };\n"
    "};\n";

static const char scene_text[] =
    "<scene name='own' version='1'><world step='1 ms'><shape name='ground' type='half-space'/>"
    "<shape name='wall' type='box' size='0.3 6 2.5' xyz='4 0 1'/></world>"
    "<robot name='k10' file='" US_SOURCE_DIR "/models/k10.urdf' base='floating'>"
    "<drive joint='front_left_drive' kd='40' velocity='2'/><drive joint='rear_right_drive' kd='40' "
    "velocity='1'/>"
    "<sensor type='lidar' name='lidar' preset='hdl-32e' link='base' xyz='0.12 0 1.45'/>"
    "<sensor type='lidar' name='twin' link='base' xyz='0.3 0 1' elevations='-25 -15 -10 -5 0 5 deg' "
    "columns='360' "
    "max-range='30' rate='10' divergence='0.03' returns='dual'/>"
    "<network><interface file='own.idl'>"
    "<publish topic='both' type='own::Cloud' rate='10'><set member='stamp' value='time' unit='ns'/>"
    "<set member='points[].xyz' value='point.position' sensor='twin' axes='x -y -z' scale='250'/>"
    "<set member='points[].attributes[0]' value='point.intensity' sensor='twin'/>"
    "<set member='points[].attributes[1]' value='point.ring' sensor='twin'/>"
    "<set member='rows' value='row.length' sensor='twin'/></publish>"
    "<publish topic='cloud' type='own::Cloud' rate='10'><set member='stamp' value='time' unit='ns'/>"
    "<set member='points[].xyz' value='point.position' axes='x -y -z' scale='250'/>"
    "<set member='points[].attributes[0]' value='point.intensity'/>"
    "<set member='points[].attributes[1]' value='point.ring'/><set member='rows' "
    "value='row.length'/></publish>"
    "<publish topic='columns' type='own::Columns' rate='5'><set member='range' value='point.range'/>"
    "<set member='azimuth' value='point.azimuth' unit='deg'/><set member='elevation' "
    "value='point.elevation'/>"
    "<set member='time' value='point.time'/></publish>"
    "<publish topic='flash' type='own::Flash' rate='10'><set member='range' value='shot.range' "
    "sensor='lidar'/>"
    "<set member='intensity' value='shot.intensity'/></publish>"
    "</interface></network></robot></scene>\n";

static us_interface *types;
static us_recording *recording;

static void put_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int record_it(void **state) {
    (void)state;
    const char *file = "own.idl";
    us_interface_def def = us_interface_def_default();
    us_error err = {0};
    def.n_file = 1;
    def.files = &file;
    put_file("own.idl", types_text);
    put_file("own.xml", scene_text);
    assert_code(run("run own.xml --time 0.45 --rate max --offline --headless --quiet --record own.mcap"), 0);
    if (us_interface_load(&def, &types, &err)) fail_msg("%s", err.message);
    if (us_recording_open("own.mcap", NULL, &recording, &err)) fail_msg("%s", err.message);
    return 0;
}

static int release_it(void **state) {
    (void)state;
    us_recording_close(recording);
    us_interface_release(types);
    return 0;
}

// The n-th message of a topic; false: there are not so many. Its bytes are kept until the next call.
static bool find(const char *topic, int n, us_recorded *out) {
    bool has = true;
    assert_int_equal(us_recording_rewind(recording), US_OK);
    while (!us_recording_next(recording, out, &has, NULL) && has) {
        if (strcmp(us_recording_get_channel(recording, out->channel).topic, topic) == 0 && n-- == 0)
            return true;
    }
    return false;
}

// A turn of /k10/points: ring by ring, points without a return are not finite.
static struct { float x, y, z, intensity, time; } shot[RINGS][COLUMNS];
static int64_t stamp;
static int n_row, n_column;

static void read_turn(const char *topic, int n) {
    static _Alignas(16) char memory[4 << 20];
    us_recorded m;
    const void *message = NULL;
    assert_true(find(topic, n, &m));
    assert_int_equal(us_message_decode(us_message_find("sensor_msgs/msg/PointCloud2"), m.bytes, m.length,
                                       memory, sizeof memory, &message, NULL),
                     US_OK);
    const us_msg_point_cloud2 *c = message;
    n_row = (int)c->height;
    n_column = (int)c->width;
    assert_true(n_row <= RINGS && n_column <= COLUMNS);
    stamp = (int64_t)c->header.stamp.sec * 1000000000 + c->header.stamp.nanosec;
    for (uint32_t ring = 0; ring < c->height; ring++) {
        for (uint32_t k = 0; k < c->width; k++) {
            const uint8_t *p = c->data._buffer + ring * c->row_step + k * c->point_step;
            memcpy(&shot[ring][k], p, 16);
            memcpy(&shot[ring][k].time, p + 18, sizeof(float));
        }
    }
}

// ---------------------------------------------------------------- plain CDR, as a stranger reads it

typedef struct cursor {
    const uint8_t *bytes;
    size_t at, length;
} cursor;

static const uint8_t *take(cursor *c, size_t size, size_t n) {
    c->at = (c->at + size - 1) / size * size;
    const uint8_t *from = c->bytes + c->at;
    assert_true(n * size <= c->length - c->at);
    c->at += n * size;
    return from;
}
static uint32_t take_count(cursor *c) {
    uint32_t n;
    memcpy(&n, take(c, 4, 1), 4);
    return n;
}
static cursor open_it(const us_recorded *m) {
    static const uint8_t plain[4] = {0, 1, 0, 0};
    assert_true(m->length > 4);
    assert_memory_equal(m->bytes, plain, 4);
    return (cursor){(const uint8_t *)m->bytes + 4, 0, m->length - 4};
}
static void assert_end(const cursor *c) { assert_true(c->length - c->at < 4); }

// ---------------------------------------------------------------- what they hold

// Metres as the type has them: 250 to the metre, the nearest whole number.
static void assert_short(int16_t x, double metres) { assert_true(fabs(x - 250 * metres) <= 0.5 + 1e-4); }

// Every turn of a cloud; n_back: returns of a shot; least: points of a turn.
static void check_cloud(const char *points, const char *cloud, int n_back, int least) {
    int n_sample = 0;
    for (int turn = 0; turn < 4; turn++) {
        read_turn(points, turn);
        int ring = 0, column = 0, n_more = 0;
        for (int all = -1; n_more != all;) {
            us_recorded m;
            int64_t time = 0;
            uint32_t row[RINGS] = {0};
            assert_true(find(cloud, n_sample++, &m));
            cursor c = open_it(&m);
            memcpy(&time, take(&c, 8, 1), 8);
            assert_true(time == stamp);
            const uint32_t n = take_count(&c);
            all = 0;
            for (int r = 0; r < n_row; r++) {
                for (int k = 0; k < n_column; k++)
                    all += isfinite(shot[r][k].x);
            }
            n_more += (int)n;
            // All but the last are full.
            assert_true(n <= MOST && (n == MOST || n_more == all) && all > least);
            for (uint32_t i = 0; i < n; i++) {
                int16_t xyz[3];
                memcpy(xyz, take(&c, 2, 3), 6);
                const uint8_t *attribute = take(&c, 1, 2);
                while (!isfinite(shot[ring][column].x)) {
                    column = (column + 1) % n_column;
                    ring += column == 0;
                }
                assert_short(xyz[0], (double)shot[ring][column].x);
                assert_short(xyz[1], -(double)shot[ring][column].y);
                assert_short(xyz[2], -(double)shot[ring][column].z);
                assert_int_equal(attribute[0], (uint8_t)nearbyint((double)shot[ring][column].intensity));
                assert_int_equal(attribute[1], ring % (n_row / n_back));
                row[ring]++;
                column = (column + 1) % n_column;
                ring += column == 0;
            }
            assert_int_equal(take_count(&c), n_row);
            for (int r = 0; r < n_row; r++) {
                int16_t length;
                memcpy(&length, take(&c, 2, 1), 2);
                assert_int_equal(length, row[r]);
            }
            assert_end(&c);
        }
    }
    us_recorded m;
    assert_false(find(cloud, n_sample, &m));
}

static void a_turn_of_more_points_than_a_sample_holds_goes_on_in_the_next(void **state) {
    (void)state;
    check_cloud("/k10/points", "/k10/cloud", 1, 2 * MOST);
}

static void second_returns_come_after_the_first(void **state) {
    (void)state;
    check_cloud("/k10/twin/points", "/k10/both", 2, 1000);
    assert_int_equal(n_row, 12);
    int n_second = 0;
    for (int row = 6; row < n_row; row++) {
        for (int k = 0; k < n_column; k++)
            n_second += isfinite(shot[row][k].x);
    }
    assert_true(n_second > 10);
}

static void lists_of_their_own_have_the_same_points_in_the_same_order(void **state) {
    (void)state;
    us_recorded m;
    // At 5 Hz it is every second turn.
    assert_true(find("/k10/columns", 1, &m) && !find("/k10/columns", 2, &m));
    assert_true(find("/k10/columns", 1, &m));
    read_turn("/k10/points", 3);
    assert_true(find("/k10/columns", 1, &m));
    cursor c = open_it(&m);
    const uint32_t n = take_count(&c);
    const uint8_t *range = take(&c, 4, n);
    assert_int_equal(take_count(&c), n);
    const uint8_t *azimuth = take(&c, 4, n);
    assert_int_equal(take_count(&c), n);
    const uint8_t *elevation = take(&c, 4, n);
    assert_int_equal(take_count(&c), n);
    const uint8_t *time = take(&c, 8, n);
    assert_end(&c);
    uint32_t i = 0;
    for (int ring = 0; ring < RINGS; ring++) {
        for (int column = 0; column < COLUMNS; column++) {
            const double x = (double)shot[ring][column].x, y = (double)shot[ring][column].y,
                         z = (double)shot[ring][column].z;
            if (!isfinite(x)) continue;
            float f[3];
            double at;
            assert_true(i < n);
            memcpy(&f[0], range + 4 * i, 4);
            memcpy(&f[1], azimuth + 4 * i, 4);
            memcpy(&f[2], elevation + 4 * i, 4);
            memcpy(&at, time + 8 * i++, 8);
            assert_true(fabs((double)f[0] - sqrt(x * x + y * y + z * z)) < 1e-5);
            assert_true(fabs((double)f[1] - atan2(y, x) * 180 / acos(-1)) < 1e-4);
            assert_true(fabs((double)f[2] - atan2(z, hypot(x, y))) < 1e-6);
            assert_true(fabs(at - (double)shot[ring][column].time) < 1e-6);
        }
    }
    assert_int_equal(i, n);
}

static void shots_have_their_places_whether_they_return_or_not(void **state) {
    (void)state;
    us_recorded m;
    int n_none = 0;
    read_turn("/k10/points", 1);
    assert_true(find("/k10/flash", 1, &m));
    cursor c = open_it(&m);
    const uint8_t *range = take(&c, 4, 70000);
    assert_int_equal(take_count(&c), RINGS * COLUMNS);
    const uint8_t *intensity = take(&c, 1, RINGS * COLUMNS);
    assert_end(&c);
    for (int i = 0; i < 70000; i++) {
        const int ring = i / COLUMNS, column = i % COLUMNS;
        float r;
        memcpy(&r, range + 4 * i, 4);
        if (i >= RINGS * COLUMNS) {
            assert_true(r == 0);
        } else if (isfinite(shot[ring][column].x)) {
            assert_true(r > 1 && r < 101);
            assert_int_equal(intensity[i], (uint8_t)nearbyint((double)shot[ring][column].intensity));
        } else {
            // REP 117: too near, or nothing.
            assert_true(isinf(r));
            assert_int_equal(intensity[i], 0);
            n_none++;
        }
    }
    assert_true(n_none > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_of_more_points_than_a_sample_holds_goes_on_in_the_next),
        cmocka_unit_test(second_returns_come_after_the_first),
        cmocka_unit_test(lists_of_their_own_have_the_same_points_in_the_same_order),
        cmocka_unit_test(shots_have_their_places_whether_they_return_or_not),
    };
    return cmocka_run_group_tests(tests, record_it, release_it);
}
