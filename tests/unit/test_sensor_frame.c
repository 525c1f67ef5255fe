// The frame of sensors: when they sample and when the robot has it, faults, parameters, truth, and kinds that
// misbehave.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/robots.h"
#include "proxy/tap.h"
#include "proxy_world.h"
#include "sim/sim.h"
#include "understudy/sensing.h"

static const double STEP = 1e-3;

// ---------------------------------------------------------------- kinds

// What is true is a pattern that nobody must see; what it says is the tick times a gain, and how often it has
// sampled, with noise.
static const double TRUTH = 1.6180339887498948e11;
enum { GAIN, NOISE, MODE, N_PARAMETER };
static const char *const modes[] = {"plain", "fancy", NULL};
static const us_sensor_parameter parameters[N_PARAMETER] = {
    {.name = "gain", .unit = "m", .low = -10, .high = 10, .usual = 1, .about = "Of the tick."},
    {.name = "noise", .unit = "m", .high = 1, .about = "Standard deviation."},
    {.name = "mode", .unit = "1", .about = "Nothing.", .type = US_PARAMETER_CHOICE, .choices = modes},
};
static const us_sensor_reading readings[] = {{.name = "ticks", .unit = "m"}, {.name = "count", .unit = "1"}};
static const us_sensor_preset presets[] = {
    {"maker", "A unit.", 1, &(const us_sensor_setting){"gain", 3}},
};

static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    state[0] += 1;
    truth[0] = truth[1] = TRUTH;
    reading[0] =
        view->parameter[GAIN] * (double)view->tick + view->parameter[NOISE] * us_sensor_normal(view, 3);
    reading[1] = state[0];
    return true;
}
static bool check(const double *parameter, const double *state) {
    return parameter[GAIN] <= 10 && state[0] >= 0;
}

static const us_sensor_kind counter = {.abi = US_SENSOR_ABI,
                                       .size = sizeof(us_sensor_kind),
                                       .name = "counter",
                                       .about = "counts",
                                       .n_parameter = N_PARAMETER,
                                       .n_reading = 2,
                                       .n_preset = 1,
                                       .n_state = 1,
                                       .parameters = parameters,
                                       .readings = readings,
                                       .presets = presets,
                                       .sample = sample,
                                       .check = check};

// ---------------------------------------------------------------- a world

static void world_of(proxy_world *w, int32_t n, const us_sensor_def *sensors) {
    static const char scene[] =
        "<scene name='s' version='1'><world step='1 ms'/><robot name='arm' file='../models/arm6.urdf' "
        "base='fixed'><battery capacity='1 Wh'/></robot></scene>";
    us_error err = {0};
    us_spec *spec = NULL;
    us_sensor_def own[8];
    assert_int_equal(
        us_spec_load_text(scene, strlen(scene), US_SOURCE_DIR "/scenes/test.xml", NULL, &spec, &err), US_OK);
    us_network_def d = *us_spec_view_network(spec, 0);
    memcpy(own, sensors, (size_t)n * sizeof *own);
    d.n_sensor = n;
    d.sensors = own;
    assert_int_equal(us_spec_set_network(spec, &d), US_OK);
    proxy_world_of(w, spec);
}

static us_sensor find(const proxy_world *w, const char *name) {
    const us_sensor s = us_model_find_sensor(w->model, "arm", name);
    assert_true(s.i >= 0);
    return s;
}

static us_sensor_def a_counter(const char *name, double rate, double latency) {
    return (us_sensor_def){
        .kind = &counter, .name = name, .X_BS = us_pose_identity(), .rate = rate, .latency = latency};
}

// ---------------------------------------------------------------- time

static void a_sample_is_there_when_its_latency_is_over_and_says_when_it_was_taken(void **state) {
    (void)state;
    static const double rates[] = {0, 1000, 200, 7, 33}, latencies[] = {0, 0.001, 0.0155, 0.3};
    for (size_t r = 0; r < 5; r++) {
        for (size_t l = 0; l < 4; l++) {
            proxy_world w;
            const us_sensor_def def = a_counter("eye", rates[r], latencies[l]);
            const int64_t late = (int64_t)ceil(latencies[l] / STEP - 1e-9);
            int64_t taken[2001] = {0};
            world_of(&w, 1, &def);
            for (int64_t tick = 1; tick <= 2000; tick++) {
                proxy_world_step(&w, 1);
                const us_sensor_sample last = us_sim_view_sensor_sample(w.sim, find(&w, "eye")),
                                       has = us_sim_view_sensor_reading(w.sim, find(&w, "eye"));
                taken[tick] = last.tick;
                // What the robot has now is what was the last sample so many ticks ago.
                const int64_t expected = tick < late ? -1 : taken[tick - late];
                assert_int_equal(has.tick, expected);
                assert_null(has.truth);
                if (has.tick >= 0) assert_true(has.reading[0] == (double)has.tick);
                if (rates[r] == 0) assert_int_equal(last.tick, tick);
                assert_true(rates[r] == 0 || tick - last.tick <= (int64_t)ceil(1 / (rates[r] * STEP)));
            }
            proxy_world_fini(&w);
        }
    }
}

static void a_phase_moves_the_samples(void **state) {
    (void)state;
    us_sensor_def def = a_counter("eye", 10, 0);
    def.phase = 0.03;
    proxy_world w;
    world_of(&w, 1, &def);
    proxy_world_step(&w, 1000);
    assert_int_equal(us_sim_view_sensor_sample(w.sim, find(&w, "eye")).tick, 930);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- state

static void a_snapshot_amid_queues_goes_on_with_the_same_bits(void **state) {
    (void)state;
    const us_sensor_setting noise = {"noise", 0.1};
    us_sensor_def defs[2] = {a_counter("eye", 100, 0.2), a_counter("ear", 0, 0.05)};
    for (int i = 0; i < 2; i++) {
        defs[i].settings = &noise;
        defs[i].n_setting = 1;
    }
    proxy_world w, other;
    world_of(&w, 2, defs);
    world_of(&other, 2, defs);
    const us_sensor_fault fault = {.noise = 2, .delay = 0.1, .drop = 0.3};
    assert_int_equal(us_sim_set_sensor_fault(w.sim, find(&w, "eye"), &fault), US_OK);
    proxy_world_step(&w, 777);
    assert_true(us_sim_view_sensor_sample(w.sim, find(&w, "eye")).n_lost > 0);
    size_t length = 0;
    us_sim_save(w.sim, NULL, 0, &length);
    void *bytes = malloc(length);
    assert_int_equal(us_sim_save(w.sim, bytes, length, NULL), US_OK);
    const uint64_t before = us_sim_hash(w.sim);
    proxy_world_step(&w, 500);
    const uint64_t hash = us_sim_hash(w.sim);
    us_sim_poison(w.sim);
    assert_int_equal(us_sim_restore(w.sim, bytes, length), US_OK);
    assert_true(us_sim_hash(w.sim) == before);
    proxy_world_step(&w, 500);
    assert_true(us_sim_hash(w.sim) == hash);
    // In another sim of the same model too, whatever stood in its queues.
    proxy_world_step(&other, 50);
    us_sim_poison(other.sim);
    assert_int_equal(us_sim_restore(other.sim, bytes, length), US_OK);
    proxy_world_step(&other, 500);
    assert_true(us_sim_hash(other.sim) == hash);
    // One whose queue is torn is refused: a length that does not fit.
    assert_int_equal(us_sim_restore(other.sim, bytes, length - 8), US_ERR_SNAPSHOT);
    free(bytes);
    proxy_world_fini(&w);
    proxy_world_fini(&other);
}

static void threads_change_no_bit(void **state) {
    (void)state;
    const us_sensor_setting noise = {"noise", 0.1};
    us_sensor_def defs[2] = {a_counter("eye", 100, 0.2), a_counter("ear", 0, 0.05)};
    defs[0].settings = defs[1].settings = &noise;
    defs[0].n_setting = defs[1].n_setting = 1;
    uint64_t hash[4];
    proxy_world w;
    world_of(&w, 2, defs);
    for (int i = 0; i < 4; i++) {
        us_sim_def def = us_sim_def_default();
        us_sim *sim = NULL;
        def.n_thread = i + 1;
        assert_int_equal(us_sim_create(w.model, &def, &sim, NULL), US_OK);
        for (int k = 0; k < 300; k++)
            assert_int_equal(us_sim_step(sim, NULL), US_OK);
        hash[i] = us_sim_hash(sim);
        us_sim_destroy(sim);
        assert_true(hash[i] == hash[0]);
    }
    proxy_world_fini(&w);
}

static void noise_depends_on_seeds_sensor_and_tick_alone(void **state) {
    (void)state;
    const us_sensor_setting noise = {"noise", 0.1};
    us_sensor_def defs[3] = {a_counter("a", 100, 0), a_counter("b", 100, 0), a_counter("c", 50, 0)};
    for (int i = 0; i < 3; i++) {
        defs[i].settings = &noise;
        defs[i].n_setting = 1;
    }
    double value[2][3];
    for (int k = 0; k < 2; k++) {
        proxy_world w;
        defs[0].seed = (uint64_t)k;
        world_of(&w, 3, defs);
        proxy_world_step(&w, 100);
        value[k][0] = us_sim_view_sensor_sample(w.sim, find(&w, "a")).reading[0];
        value[k][1] = us_sim_view_sensor_sample(w.sim, find(&w, "b")).reading[0];
        value[k][2] = us_sim_view_sensor_sample(w.sim, find(&w, "c")).reading[0];
        proxy_world_fini(&w);
    }
    assert_true(value[0][0] != value[1][0]);
    assert_true(value[0][1] == value[1][1] && value[0][2] == value[1][2]);
    assert_true(value[0][0] != value[0][1]);
}

// ---------------------------------------------------------------- parameters and faults

static void parameters_change_while_it_runs_within_their_ranges(void **state) {
    (void)state;
    us_sensor_def def = a_counter("eye", 100, 0);
    def.preset = "maker";
    proxy_world w;
    us_error err = {0};
    world_of(&w, 1, &def);
    const us_sensor eye = find(&w, "eye");
    assert_true(us_sim_get_sensor_parameter(w.sim, eye, "gain") == 3);
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "gain", 11, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.remedy, "from -10 to 10 m"));
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "gian", 1, &err), US_ERR_NAME);
    assert_non_null(strstr(err.remedy, "did you mean \"gain\""));
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "mode", 2, &err), US_ERR_VALUE);
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "gain", NAN, &err), US_ERR_VALUE);
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "latency", 11, &err), US_ERR_VALUE);
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "latency", 9, &err), US_ERR_LIMIT);
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "rate", -1, &err), US_ERR_VALUE);
    const uint64_t hash = us_sim_hash(w.sim);
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "gain", 2, &err), US_OK);
    assert_true(us_sim_hash(w.sim) != hash);
    assert_int_equal(us_sim_set_sensor_parameter(w.sim, eye, "rate", 10, &err), US_OK);
    proxy_world_step(&w, 250);
    const us_sensor_sample s = us_sim_view_sensor_sample(w.sim, eye);
    assert_int_equal(s.tick, 200);
    assert_int_equal(s.number, 3);
    assert_true(s.reading[0] == 400);
    // Another model with the same robot goes on with what was changed.
    us_model *model = NULL;
    assert_int_equal(us_model_compile(w.spec, NULL, &model, NULL), US_OK);
    assert_int_equal(us_sim_replace(w.sim, model, NULL), US_OK);
    assert_true(us_sim_get_sensor_parameter(w.sim, eye, "gain") == 2);
    assert_true(us_sim_get_sensor_parameter(w.sim, eye, "rate") == 10);
    us_sim_reset(w.sim);
    assert_true(us_sim_get_sensor_parameter(w.sim, eye, "gain") == 3);
    us_sim_destroy(w.sim);
    w.sim = NULL;
    us_model_destroy(model);
    proxy_world_fini(&w);
}

static void faults_are_the_same_for_every_kind(void **state) {
    (void)state;
    const us_sensor_def def = a_counter("eye", 0, 0);
    proxy_world w;
    us_error err = {0};
    world_of(&w, 1, &def);
    const us_sensor eye = find(&w, "eye");
    us_sensor_fault f = us_sensor_fault_default();
    proxy_world_step(&w, 10);
    f.is_frozen = true;
    assert_int_equal(us_sim_set_sensor_fault(w.sim, eye, &f), US_OK);
    proxy_world_step(&w, 5);
    us_sensor_sample s = us_sim_view_sensor_reading(w.sim, eye);
    assert_true(s.tick == 15 && s.reading[0] == 10);
    f = us_sensor_fault_default();
    f.is_dead = true;
    assert_int_equal(us_sim_set_sensor_fault(w.sim, eye, &f), US_OK);
    proxy_world_step(&w, 5);
    s = us_sim_view_sensor_reading(w.sim, eye);
    assert_true(s.tick == 15 && s.n_lost == 5);
    // The truth goes on.
    assert_int_equal(us_sim_view_sensor_sample(w.sim, eye).tick, 20);
    f = us_sensor_fault_default();
    f.delay = 0.004;
    assert_int_equal(us_sim_set_sensor_fault(w.sim, eye, &f), US_OK);
    assert_int_equal(us_sim_set_sensor_error(w.sim, eye, "ticks", 1000, 0, &err), US_OK);
    proxy_world_step(&w, 10);
    s = us_sim_view_sensor_reading(w.sim, eye);
    assert_true(s.tick == 26 && s.reading[0] == 1026);
    assert_int_equal(us_sim_set_sensor_error(w.sim, eye, "tick", 1, 0, &err), US_ERR_NAME);
    assert_int_equal(us_sim_set_sensor_error(w.sim, find(&w, "imu"), "orientation.w", 1, 0, &err),
                     US_ERR_VALUE);
    f.delay = 2;
    assert_int_equal(us_sim_set_sensor_fault(w.sim, eye, &f), US_ERR_VALUE);
    f = us_sensor_fault_default();
    f.drop = 0.25;
    assert_int_equal(us_sim_set_sensor_fault(w.sim, eye, &f), US_OK);
    const int64_t lost = us_sim_view_sensor_sample(w.sim, eye).n_lost;
    proxy_world_step(&w, 4000);
    // Five standard deviations of a binomial with p = 0.25.
    const double n = (double)(us_sim_view_sensor_sample(w.sim, eye).n_lost - lost);
    assert_true(fabs(n - 1000) < 5 * sqrt(4000 * 0.25 * 0.75));
    proxy_world_fini(&w);
}

// What scopes and recordings ask for by name.
static void what_a_sensor_says_has_names(void **state) {
    (void)state;
    const us_sensor_def def = a_counter("eye", 0, 0.005);
    proxy_world w;
    world_of(&w, 1, &def);
    const us_sensor eye = find(&w, "eye"), imu = find(&w, "imu");
    char name[300];
    const char *robot = us_model_get_sensor(w.model, eye).robot;
    proxy_world_step(&w, 20);
    snprintf(name, sizeof name, "%s/eye.ticks", robot);
    const int32_t ticks = us_sim_find_value(w.sim, name);
    snprintf(name, sizeof name, "%s/eye.set.gain", robot);
    const int32_t gain = us_sim_find_value(w.sim, name);
    snprintf(name, sizeof name, "%s/eye.set.latency", robot);
    const int32_t latency = us_sim_find_value(w.sim, name);
    snprintf(name, sizeof name, "%s/imu.true.force.z", robot);
    const int32_t force = us_sim_find_value(w.sim, name);
    assert_true(ticks >= 0 && gain >= 0 && latency >= 0 && force >= 0);
    // What the robot has, five milliseconds later than it was taken.
    assert_true(us_sim_get_value(w.sim, ticks) == us_sim_view_sensor_reading(w.sim, eye).reading[0]);
    assert_true(us_sim_view_sensor_reading(w.sim, eye).tick == 15);
    assert_true(us_sim_get_value(w.sim, gain) == us_sim_get_sensor_parameter(w.sim, eye, "gain"));
    assert_true(us_sim_get_value(w.sim, latency) == 0.005);
    const int32_t z = us_model_get_sensor(w.model, imu).kind->n_reading - 1;
    assert_true(us_sim_get_value(w.sim, force) == us_sim_view_sensor_sample(w.sim, imu).truth[z]);
    static const char *const none[] = {
        "eye.nothing", "eye.true.nothing", "eye.set.nothing", "ear.ticks", "eye.",
        "eye",         "eye.set.",         "eye.true."};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(name, sizeof name, "%s/%s", robot, none[i]);
        assert_int_equal(us_sim_find_value(w.sim, name), -1);
    }
    assert_int_equal(us_sim_find_value(w.sim, "nobody/eye.ticks"), -1);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- truth

typedef struct search {
    const us_proxy *proxy;
    int64_t n_sample, n_truth, n_leak;
} search;

static void look_for_truth(void *context, int32_t channel, int64_t time, const void *bytes, size_t length) {
    search *x = context;
    const bool is_truth =
        strncmp(usi_proxy_get_channel(x->proxy, channel).topic, "/understudy/truth/", 18) == 0;
    bool has_it = false;
    (void)time;
    for (size_t i = 0; i + sizeof TRUTH <= length && !has_it; i++)
        has_it = memcmp((const char *)bytes + i, &TRUTH, sizeof TRUTH) == 0;
    x->n_sample++;
    x->n_truth += is_truth && has_it;
    x->n_leak += !is_truth && has_it;
}

static void no_topic_of_a_robot_and_no_reading_carries_truth(void **state) {
    (void)state;
    const us_sensor_def defs[2] = {a_counter("eye", 100, 0), a_counter("ear", 100, 0.05)};
    proxy_world w;
    world_of(&w, 2, defs);
    search x = {.proxy = w.proxy};
    usi_proxy_set_tap(w.proxy, look_for_truth, &x);
    const us_sensor_fault fault = {.noise = 1, .drop = 0.2};
    for (int i = 0; i < 1000; i++) {
        // Restores, resets and faults in between.
        if (i == 500) assert_int_equal(us_sim_set_sensor_fault(w.sim, find(&w, "eye"), &fault), US_OK);
        if (i == 700) assert_int_equal(us_sim_reset(w.sim), US_OK);
        proxy_world_step(&w, 1);
        for (int32_t r = 0; r < w.model->n_reading; r++)
            assert_true(w.sim->now.reading[r] != TRUTH);
    }
    usi_proxy_set_tap(w.proxy, NULL, NULL);
    assert_true(x.n_sample > 500);
    assert_int_equal(x.n_leak, 0);
    // Both sensors, at 100 Hz for a second.
    assert_true(x.n_truth >= 198 && x.n_truth <= 202);
    proxy_world_fini(&w);
}

// ---------------------------------------------------------------- kinds that misbehave

typedef enum crime {
    NONE,
    WRITES_BEYOND_STATE,
    WRITES_BEYOND_READINGS,
    TRUTH_IS_NAN,
    READING_IS_MISSING,
    STATE_IS_INFINITE,
    GIVES_UP,
    N_CRIME
} crime;
typedef struct plan {
    crime crime;
    int64_t tick;
} plan;

static bool misbehave(const us_sensor_view *view, double *state, double *truth, double *reading) {
    const plan *p = view->user;
    sample(view, state, truth, reading);
    if (view->tick < p->tick) return true;
    if (p->crime == WRITES_BEYOND_STATE) state[1] = 1;
    if (p->crime == WRITES_BEYOND_READINGS) reading[2] = 1;
    if (p->crime == TRUTH_IS_NAN) truth[1] = NAN;
    if (p->crime == READING_IS_MISSING) reading[1] = NAN;
    if (p->crime == STATE_IS_INFINITE) state[0] = INFINITY;
    return p->crime != GIVES_UP;
}

static void a_kind_that_misbehaves_fails_the_step_and_the_last_tick_stays_whole(void **state) {
    (void)state;
    static const char *const texts[N_CRIME] = {"",
                                               "it wrote beyond its state",
                                               "it wrote beyond its readings",
                                               "it gave no finite truth (up to 1e12) of count",
                                               "it gave no finite reading (up to 1e12) of count",
                                               "a number of its state is not finite",
                                               "it gave no sample"};
    for (int i = 1; i < N_CRIME; i++) {
        plan p = {(crime)i, 40};
        us_sensor_kind kind = counter;
        kind.name = "bad";
        kind.user = &p;
        kind.sample = misbehave;
        us_sensor_def def = a_counter("eye", 0, 0.01);
        def.kind = &kind;
        proxy_world w;
        world_of(&w, 1, &def);
        proxy_world_step(&w, 39);
        const uint64_t hash = us_sim_hash(w.sim);
        assert_int_equal(us_sim_step(w.sim, NULL), US_ERR_VALUE);
        const us_error *err = us_sim_view_error(w.sim);
        if (!strstr(err->message, texts[i]) || !strstr(err->message, "arm/eye") ||
            !strstr(err->message, "\"bad\""))
            fail_msg("%s", err->message);
        assert_int_equal(us_sim_get_tick(w.sim), 39);
        assert_true(us_sim_hash(w.sim) == hash);
        // It goes on as if nothing had been, once the kind does what it should.
        p.crime = NONE;
        proxy_world_step(&w, 20);
        proxy_world plain;
        world_of(&plain, 1,
                 &(const us_sensor_def){
                     .kind = &counter, .name = "eye", .X_BS = us_pose_identity(), .latency = 0.01});
        proxy_world_step(&plain, 59);
        assert_true(us_sim_hash(w.sim) == us_sim_hash(plain.sim));
        proxy_world_fini(&plain);
        proxy_world_fini(&w);
    }
}

static void a_kind_that_is_not_whole_is_refused_by_name(void **state) {
    (void)state;
    us_spec *spec = NULL;
    us_error err = {0};
    assert_int_equal(us_spec_create(NULL, &spec), US_OK);
    us_sensor_parameter odd[N_PARAMETER];
    us_sensor_reading twice[2] = {readings[0], readings[0]};
    const us_sensor_member member = {.path = "rnage", .value = "ticks"},
                           other = {.path = "range", .value = "tocks"};
    us_sensor_kind bad[16];
    for (int i = 0; i < 16; i++)
        bad[i] = counter;
    memcpy(odd, parameters, sizeof odd);
    odd[GAIN].name = "rate";
    int n = 0;
    bad[n++].abi = 7;
    bad[n++].size -= 8;
    bad[n++].name = NULL;
    bad[n++].sample = NULL;
    bad[n++].n_state = US_SENSOR_MAX_STATE + 1;
    bad[n++].n_reading = US_SENSOR_MAX_READING + 1;
    bad[n++].n_reading = 0;
    bad[n++].parameters = NULL;
    bad[n++].parameters = odd;
    bad[n++].readings = twice;
    bad[n++].is_frame = true;
    bad[n++].message = "sensor_msgs/msg/Rnage";
    bad[n].message = "sensor_msgs/msg/Imu";
    bad[n].n_member = 1;
    bad[n++].members = &member;
    bad[n].message = "sensor_msgs/msg/Imu";
    bad[n].n_member = 1;
    bad[n++].members = &other;
    bad[n++].usual_rate = -1;
    bad[n++].name = "imu";
    assert_int_equal(n, 16);
    for (int i = 0; i < n; i++) {
        memset(&err, 0, sizeof err);
        const us_status status = us_spec_add_sensor_kind(spec, &bad[i], &err);
        if (status != US_ERR_VALUE && status != US_ERR_NAME) fail_msg("%d: %s", i, us_status_text(status));
        assert_true(err.message[0] && err.remedy[0]);
    }
    assert_int_equal(us_spec_add_sensor_kind(spec, &counter, &err), US_OK);
    assert_int_equal(us_spec_add_sensor_kind(spec, &counter, &err), US_OK);
    const us_sensor_kind again = counter;
    assert_int_equal(us_spec_add_sensor_kind(spec, &again, &err), US_ERR_NAME);
    assert_ptr_equal(us_spec_find_sensor_kind(spec, "counter"), &counter);
    assert_null(us_spec_find_sensor_kind(spec, "none"));
    for (int32_t i = 0; us_sensor_kind_view(i); i++)
        assert_int_equal(us_sensor_kind_check(us_sensor_kind_view(i), &err), US_OK);
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_there_when_its_latency_is_over_and_says_when_it_was_taken),
        cmocka_unit_test(a_phase_moves_the_samples),
        cmocka_unit_test(a_snapshot_amid_queues_goes_on_with_the_same_bits),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(noise_depends_on_seeds_sensor_and_tick_alone),
        cmocka_unit_test(parameters_change_while_it_runs_within_their_ranges),
        cmocka_unit_test(faults_are_the_same_for_every_kind),
        cmocka_unit_test(what_a_sensor_says_has_names),
        cmocka_unit_test(no_topic_of_a_robot_and_no_reading_carries_truth),
        cmocka_unit_test(a_kind_that_misbehaves_fails_the_step_and_the_last_tick_stays_whole),
        cmocka_unit_test(a_kind_that_is_not_whole_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
