// Sensors and topics as tables: which topics a robot has, what is in them and how often they come.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/fault.h"
#include "proxy/tap.h"
#include "proxy_world.h"

enum { MAX_CHANNEL = 100, MAX_SAMPLE = 4000 };

// ---------------------------------------------------------------- listening

typedef struct heard {
    us_proxy *proxy;
    int64_t n[MAX_CHANNEL];
    us_msg_imu imu[MAX_SAMPLE];  // of the channel `imu_channel`
    char frame[64];
    int32_t imu_channel, n_imu;
} heard;

static void on_sample(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    heard *h = context;
    uint64_t memory[512];
    const void *m = NULL;
    (void)time;
    h->n[channel]++;
    if (channel != h->imu_channel || h->n_imu >= MAX_SAMPLE) return;
    assert_int_equal(us_message_decode(usi_type_imu, bytes, length, memory, sizeof memory, &m, NULL), US_OK);
    h->imu[h->n_imu] = *(const us_msg_imu *)m;
    snprintf(h->frame, sizeof h->frame, "%s", h->imu[h->n_imu].header.frame_id);
    h->n_imu++;
}

static int32_t find(const us_proxy *proxy, const char *topic) {
    for (int32_t i = 0; i < usi_proxy_n_channel(proxy); i++) {
        usi_channel_info c = usi_proxy_get_channel(proxy, i);
        if (c.is_out && strcmp(c.topic, topic) == 0) return i;
    }
    return -1;
}

static heard *listen(proxy_world *w, const char *imu) {
    heard *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->proxy = w->proxy;
    h->imu_channel = imu ? find(w->proxy, imu) : -1;
    assert_true(!imu || h->imu_channel >= 0);
    usi_proxy_set_tap(w->proxy, on_sample, h);
    return h;
}

static double stamp_of(const us_msg_imu *m) {
    return m->header.stamp.sec + 1e-9 * (double)m->header.stamp.nanosec;
}

// ---------------------------------------------------------------- the table

// A table of rows at random, and what must come of it by another way: each row that names a source, then each
// source that none has named. `wanted` has one line "TOPIC RATE" for each topic that is published.
typedef struct row {
    const char *source;
    char name[40];
    int rate;
} row;

static uint64_t seed_now;
static int roll(int n) {
    seed_now = seed_now * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed_now >> 33) % (uint64_t)n);
}

// Sources of the K10 with the topics and rates that docs/network.md promises.
static const struct {
    const char *source, *topic;
    int rate;
} promised[] = {{"joint_states", "/k10/joint_states", 50},
                {"odom", "/k10/odom", 50},
                {"tf", "/tf", 50},
                {"imu", "/k10/imu/data", 100},
                {"battery", "/k10/battery_state", 1},
                {"diagnostics", "/diagnostics", 1},
                {"truth", "/understudy/truth/k10/odom", 50},
                {"motor_group", "/k10/motor_group/status", 25},
                {"locomotor", "/k10/locomotor/status", 25},
                {"pose_estimator", "/k10/pose_estimator/status", 25},
                {"navigator", "/k10/navigator/status", 5},
                {"mast", "/k10/mast/data", 100},
                {"slow", "/k10/slow/data", 20}};
enum { N_PROMISED = sizeof promised / sizeof promised[0] };

static void check_one_table(uint64_t seed) {
    static const int rates[] = {0, 1, 2, 4, 5, 10, 20, 50, 100, 125, 200, 500, 1000};
    char inside[4000] = "<sensor type='imu' name='mast' link='base' xyz='0 0 1'/>"
                        "<sensor type='imu' name='slow' link='base' rate='20 Hz'/><network>";
    row rows[8];
    seed_now = seed;
    const int n = roll(9);
    for (int i = 0; i < n; i++) {
        rows[i].source = promised[roll(N_PROMISED)].source;
        rows[i].rate = rates[roll(sizeof rates / sizeof rates[0])];
        const bool is_absolute = roll(3) == 0;
        snprintf(rows[i].name, sizeof rows[i].name, "%stopic_%d/x", is_absolute ? "/" : "", i);
        size_t at = strlen(inside);
        snprintf(inside + at, sizeof inside - at, "<topic source='%s' name='%s' rate='%d Hz'/>",
                 rows[i].source, rows[i].name, rows[i].rate);
    }
    strcat(inside, "</network>");
    proxy_world w;
    proxy_world_k10(&w, inside);
    heard *h = listen(&w, NULL);
    proxy_world_step(&w, 1000);
    int n_expected = 0;
    char topic[100];
    for (int i = 0; i < n; i++) {
        snprintf(topic, sizeof topic, "%s%s", rows[i].name[0] == '/' ? "" : "/k10/", rows[i].name);
        int rate = strcmp(rows[i].source, "slow") == 0 && rows[i].rate > 20 ? 20 : rows[i].rate;
        int32_t channel = find(w.proxy, topic);
        if ((channel >= 0) != (rate > 0)) fail_msg("seed %d: %s at %d Hz", (int)seed, topic, rate);
        if (rate == 0) continue;
        n_expected++;
        // The first step ends at 1 ms: of each rate as many as periods end in (0, 1 s].
        if (h->n[channel] != rate) fail_msg("seed %d: %d of %s", (int)seed, (int)h->n[channel], topic);
    }
    for (int i = 0; i < N_PROMISED; i++) {
        bool is_named = false;
        for (int k = 0; k < n; k++)
            is_named = is_named || strcmp(rows[k].source, promised[i].source) == 0;
        int32_t channel = find(w.proxy, promised[i].topic);
        if ((channel >= 0) == is_named) fail_msg("seed %d: %s", (int)seed, promised[i].topic);
        if (is_named) continue;
        n_expected++;
        if (h->n[channel] != promised[i].rate)
            fail_msg("seed %d: %d of %s", (int)seed, (int)h->n[channel], promised[i].topic);
    }
    // Beside them: the clock, tf_static, robot_description, and what is true of four sensors.
    int n_out = 0;
    for (int32_t i = 0; i < usi_proxy_n_channel(w.proxy); i++)
        n_out += usi_proxy_get_channel(w.proxy, i).is_out;
    if (n_out != n_expected + 7) fail_msg("seed %d: %d topics, not %d", (int)seed, n_out, n_expected + 7);
    free(h);
    proxy_world_fini(&w);
}

static void any_table_publishes_what_it_says_and_nothing_else(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        check_one_table(seed);
}

// ---------------------------------------------------------------- two inertial units

static const char *const two_units =
    "<sensor type='imu' name='mast' link='base' xyz='0.5 0 1.2' rpy='0 0 90 deg' rate='50 Hz'/>"
    "<network><topic source='mast' name='/head/imu'/></network>";

static void a_unit_has_its_own_topic_rate_stamps_and_frame(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, two_units);
    heard *h = listen(&w, "/head/imu");
    const int32_t usual = find(w.proxy, "/k10/imu/data");
    proxy_world_step(&w, 1000);
    assert_int_equal(h->n_imu, 50);
    assert_int_equal(h->n[usual], 100);
    assert_string_equal(h->frame, "k10/mast");
    for (int i = 0; i < 50; i++)
        assert_true(fabs(stamp_of(&h->imu[i]) - 0.02 * (i + 1)) < 1e-9);
    // A quarter turn about the vertical: gravity upwards in both, and yaw 90 degrees.
    const us_msg_imu *last = &h->imu[49];
    assert_true(fabs(last->linear_acceleration.z - 9.81) < 0.1);
    assert_true(fabs(2 * atan2(last->orientation.z, last->orientation.w) - 1.5707963) < 0.05);
    free(h);
    proxy_world_fini(&w);
}

static void a_slower_topic_has_the_stamps_of_its_sensors_samples(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "<sensor type='imu' name='mast' link='base' rate='40 Hz'/>"
                        "<network><topic source='mast' rate='15 Hz'/></network>");
    heard *h = listen(&w, "/k10/mast/data");
    proxy_world_step(&w, 2000);
    assert_int_equal(h->n_imu, 30);
    for (int i = 0; i < 30; i++) {
        double periods = stamp_of(&h->imu[i]) / 0.025;
        assert_true(fabs(periods - nearbyint(periods)) < 1e-6);
        assert_true(i == 0 || stamp_of(&h->imu[i]) > stamp_of(&h->imu[i - 1]));
    }
    // Without a pose of its own its frame is the link's.
    assert_string_equal(h->frame, "k10/base");
    free(h);
    proxy_world_fini(&w);
}

typedef struct kept {
    uint8_t bytes[16384];
    size_t length;
    int32_t channel;
} kept;

static void keep(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    kept *k = context;
    (void)time;
    if (channel != k->channel || length > sizeof k->bytes) return;
    memcpy(k->bytes, bytes, length);
    k->length = length;
}

static void the_frame_of_a_unit_stands_in_tf_static(void **state) {
    (void)state;
    static uint64_t memory[8192];
    static kept k;
    proxy_world w;
    proxy_world_k10(&w, two_units);
    k.channel = find(w.proxy, "/tf_static");
    assert_true(k.channel >= 0);
    usi_proxy_set_tap(w.proxy, keep, &k);
    proxy_world_step(&w, 2);
    const void *m = NULL;
    assert_int_equal(
        us_message_decode(usi_type_tf_message, k.bytes, k.length, memory, sizeof memory, &m, NULL), US_OK);
    const us_msg_tf_message *tf = m;
    int n_found = 0;
    for (uint32_t i = 0; i < tf->transforms._length; i++) {
        const us_msg_transform_stamped *t = &tf->transforms._buffer[i];
        if (strcmp(t->child_frame_id, "k10/mast") != 0) continue;
        n_found++;
        assert_string_equal(t->header.frame_id, "k10/base");
        assert_true(fabs(t->transform.translation.x - 0.5) < 1e-12 &&
                    fabs(t->transform.translation.z - 1.2) < 1e-12);
        assert_true(fabs(t->transform.rotation.z - sqrt(0.5)) < 1e-12);
    }
    assert_int_equal(n_found, 1);
    proxy_world_fini(&w);
}

static void a_unit_called_imu_takes_the_place_of_the_usual_one(void **state) {
    (void)state;
    proxy_world w;
    proxy_world_k10(&w, "<sensor type='imu' name='imu' link='base' xyz='0 0 0.3' rate='25 Hz'/>");
    heard *h = listen(&w, "/k10/imu/data");
    proxy_world_step(&w, 1000);
    assert_int_equal(h->n_imu, 25);
    assert_string_equal(h->frame, "k10/imu");
    free(h);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- faults

static void put(void *context, const char *what, const char *text) {
    (void)text;
    strcat(context, what);
    strcat(context, ";");
}

static us_status set_fault(proxy_world *w, const char *what, char *reply, size_t cap) {
    char text[200];
    usi_fault_words words;
    us_error err = {0};
    snprintf(text, sizeof text, "%s", what);
    assert_int_equal(usi_fault_parse(text, &words, &err), US_OK);
    return usi_proxy_set_fault(w->proxy, w->sim, "k10", &words, reply, cap, &err);
}

static void a_fault_of_one_unit_leaves_the_other_alone(void **state) {
    (void)state;
    proxy_world w;
    char reply[300], list[1000] = "";
    proxy_world_k10(&w, two_units);
    proxy_world_step(&w, 500);
    assert_int_equal(set_fault(&w, "imu:mast=bias:0,0,3", reply, sizeof reply), US_OK);
    assert_non_null(strstr(reply, "inertial sensor mast off by 0 0 3 m/s^2"));
    usi_proxy_each_fault(w.proxy, w.sim, 0, put, list);
    assert_string_equal(list, "imu:mast=bias:0,0,3,0,0,0;");
    heard *h = listen(&w, "/head/imu");
    proxy_world_step(&w, 100);
    assert_true(fabs(h->imu[h->n_imu - 1].linear_acceleration.z - 12.81) < 0.1);
    free(h);
    h = listen(&w, "/k10/imu/data");
    proxy_world_step(&w, 100);
    assert_true(fabs(h->imu[h->n_imu - 1].linear_acceleration.z - 9.81) < 0.1);
    free(h);
    assert_int_equal(set_fault(&w, "imu:mast=ok", reply, sizeof reply), US_OK);
    assert_string_equal(reply, "k10: imu mast ok");
    assert_int_equal(set_fault(&w, "imu=stuck", reply, sizeof reply), US_OK);
    list[0] = 0;
    usi_proxy_each_fault(w.proxy, w.sim, 0, put, list);
    assert_string_equal(list, "imu=stuck;");
    assert_int_equal(set_fault(&w, "imu:nobody=stuck", reply, sizeof reply), US_ERR_NAME);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- noise

static void mean_and_deviation(const heard *h, bool is_spin, double *mean, double *deviation) {
    double sum = 0, square = 0;
    for (int i = 0; i < h->n_imu; i++) {
        double x = is_spin ? h->imu[i].angular_velocity.y : h->imu[i].linear_acceleration.y;
        sum += x;
        square += x * x;
    }
    *mean = sum / h->n_imu;
    *deviation = sqrt(square / h->n_imu - *mean * *mean);
}

// A slab that lies still and has two units: what they read is noise alone.
static heard *noise_of(const char *attributes, us_msg_imu *last) {
    char scene[900];
    snprintf(scene, sizeof scene,
             "<scene name='s' version='1'><world step='1 ms' gravity='0 0 0'/><robot name='k10' "
             "file='../models/arm6.urdf' base='fixed'>"
             "<sensor type='imu' name='mast' link='base' rate='0' %s/>"
             "<network><topic source='mast' rate='1 kHz'/></network></robot></scene>",
             attributes);
    proxy_world w;
    proxy_world_init(&w, scene);
    heard *h = listen(&w, "/k10/mast/data");
    proxy_world_step(&w, MAX_SAMPLE);
    assert_int_equal(h->n_imu, MAX_SAMPLE);
    *last = h->imu[MAX_SAMPLE - 1];
    usi_proxy_set_tap(w.proxy, NULL, NULL);
    proxy_world_fini(&w);
    return h;
}

static void noise_has_its_deviation_and_follows_from_its_seed(void **state) {
    (void)state;
    us_msg_imu a, b, c, d;
    double mean, deviation;
    heard *h = noise_of("force-noise='0.2' spin-noise='0.01'", &a);
    // Of 4000 samples the mean is off by s / sqrt(4000) and the deviation by s / sqrt(8000): five of these.
    mean_and_deviation(h, false, &mean, &deviation);
    assert_true(fabs(mean) < 5 * 0.2 / sqrt(4000) && fabs(deviation - 0.2) < 5 * 0.2 / sqrt(8000));
    mean_and_deviation(h, true, &mean, &deviation);
    assert_true(fabs(mean) < 5 * 0.01 / sqrt(4000) && fabs(deviation - 0.01) < 5 * 0.01 / sqrt(8000));
    free(h);
    free(noise_of("force-noise='0.2' spin-noise='0.01'", &b));
    free(noise_of("force-noise='0.2' spin-noise='0.01' seed='7'", &c));
    free(noise_of("", &d));
    assert_true(a.linear_acceleration.x == b.linear_acceleration.x &&
                a.angular_velocity.z == b.angular_velocity.z);
    assert_true(a.linear_acceleration.x != c.linear_acceleration.x &&
                a.angular_velocity.z != c.angular_velocity.z);
    assert_true(d.linear_acceleration.x == 0 && d.angular_velocity.z == 0);
}

// ---------------------------------------------------------------- battery

typedef struct gauge {
    int32_t channel;
    int n;
    double energy, last_share, first_share;  // J that left by current and voltage
} gauge;

static void on_battery(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    gauge *g = context;
    uint64_t memory[512];
    const void *m = NULL;
    (void)time;
    if (channel != g->channel) return;
    assert_int_equal(
        us_message_decode(usi_type_battery_state, bytes, length, memory, sizeof memory, &m, NULL), US_OK);
    const us_msg_battery_state *b = m;
    assert_true(b->current <= 0);
    if (g->n++ == 0) {
        g->first_share = (double)b->percentage;
    } else {
        g->energy -= (double)b->current * (double)b->voltage * 1e-3;
    }
    g->last_share = (double)b->percentage;
}

static void current_and_voltage_account_for_the_charge_that_is_gone(void **state) {
    (void)state;
    proxy_world w;
    gauge g = {0};
    proxy_world_k10(&w, "<network><topic source='battery' name='power' rate='1 kHz'/></network>");
    g.channel = find(w.proxy, "/k10/power");
    assert_true(g.channel >= 0);
    usi_proxy_set_tap(w.proxy, on_battery, &g);
    proxy_world_drive(&w, 0.5, 0, 0);
    proxy_world_step(&w, 2001);
    assert_int_equal(g.n, 2001);
    const double gone = 3600 * (g.first_share - g.last_share);
    // At least the electronics, 40 W for 2 s. Shares come in single precision: 6e-8 of 3.6 kJ, twice.
    assert_true(gone > 80);
    if (fabs(g.energy - gone) > 1e-3 + 1e-6 * gone)
        fail_msg("%.9g J by current, %.9g J by charge", g.energy, gone);
    proxy_world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_table_publishes_what_it_says_and_nothing_else),
        cmocka_unit_test(a_unit_has_its_own_topic_rate_stamps_and_frame),
        cmocka_unit_test(a_slower_topic_has_the_stamps_of_its_sensors_samples),
        cmocka_unit_test(the_frame_of_a_unit_stands_in_tf_static),
        cmocka_unit_test(a_unit_called_imu_takes_the_place_of_the_usual_one),
        cmocka_unit_test(a_fault_of_one_unit_leaves_the_other_alone),
        cmocka_unit_test(noise_has_its_deviation_and_follows_from_its_seed),
        cmocka_unit_test(current_and_voltage_account_for_the_charge_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
