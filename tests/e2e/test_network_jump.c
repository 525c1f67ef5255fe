// Robots on a real network while their world is reset, restored and edited: who listens and commands goes on
// as before.
#include "proxy_world.h"
#include "test_bus_support.h"

// What the operator's side has heard.
typedef struct ear {
    _Atomic int64_t n, first, last;  // samples, and the stamps in them, ns
} ear;

// A stamp is the first thing in a Clock and in what has a header, after the header of 4 bytes.
static void on_sample(void *context, const us_sample *sample) {
    ear *e = context;
    int32_t seconds = 0;
    uint32_t ns = 0;
    if (sample->length >= 12) {
        memcpy(&seconds, (const char *)sample->bytes + 4, 4);
        memcpy(&ns, (const char *)sample->bytes + 8, 4);
    }
    int64_t stamp = (int64_t)seconds * 1000000000 + ns;
    if (atomic_load(&e->n) == 0) atomic_store(&e->first, stamp);
    // Last: who has seen the stamp finds the sample counted.
    atomic_fetch_add(&e->n, 1);
    atomic_store(&e->last, stamp);
}

typedef struct stage {
    proxy_world w;
    us_bus *robot_bus, *bus;
    ear clock, odom, urdf;
    us_writer *writer;
} stage;

static stage *open_stage(void) {
    static const char *const ball = "<object name='ball' xyz='5 5 1'><link name='ball' density='1000'><shape "
                                    "type='sphere' size='0.1'/></link></object>";
    stage *s = calloc(1, sizeof *s);
    us_error err = {0};
    assert_non_null(s);
    proxy_world_k10_behind(&s->w, ball, "");
    // The scene's motor port may be taken by another test.
    us_sim_destroy(s->w.sim);
    us_proxy_destroy(s->w.proxy);
    us_proxy_def proxy_def = us_proxy_def_default();
    proxy_def.enable_motor_servers = false;
    expect_ok(us_proxy_create(s->w.model, &proxy_def, &s->w.proxy, &err), &err);
    us_plugin part = us_proxy_get_plugin(s->w.proxy);
    us_sim_def def = us_sim_def_default();
    def.n_plugin = 1;
    def.plugins = &part;
    expect_ok(us_sim_create(s->w.model, &def, &s->w.sim, &err), &err);
    s->robot_bus = open_bus("cyclone", test_domain());
    s->bus = open_bus("cyclone", test_domain());
    expect_ok(us_proxy_connect(s->w.proxy, s->robot_bus, &err), &err);
    us_reader *clock = add_reader(s->bus, "/clock", usi_type_clock,
                                  us_qos_for_topic("/clock", usi_type_clock), on_sample, &s->clock);
    us_reader *odom = add_reader(s->bus, "/k10/odom", usi_type_odometry,
                                 us_qos_for_topic("/k10/odom", usi_type_odometry), on_sample, &s->odom);
    add_reader(s->bus, "/k10/robot_description", usi_type_string,
               us_qos_for_topic("/k10/robot_description", usi_type_string), on_sample, &s->urdf);
    s->writer =
        add_writer(s->bus, "/k10/cmd_vel", usi_type_twist, us_qos_for_topic("/k10/cmd_vel", usi_type_twist));
    WAIT_FOR(us_reader_n_match(clock) > 0 && us_reader_n_match(odom) > 0 && us_writer_n_match(s->writer) > 0);
    // Heard from end to end.
    WAIT_FOR((proxy_world_step(&s->w, 1),
              atomic_load(&s->odom.n) > 0 && atomic_load(&s->clock.n) > 0 && atomic_load(&s->urdf.n) > 0));
    return s;
}

static void close_stage(stage *s) {
    // The proxy before its bus.
    proxy_world_fini(&s->w);
    us_bus_close(s->bus);
    us_bus_close(s->robot_bus);
    free(s);
}

static void listen_anew(stage *s) {
    // What has been sent arrives first: one sender, in order.
    int64_t now = us_sim_get_tick(s->w.sim) / 20 * 20000000;
    WAIT_FOR(atomic_load(&s->odom.last) == now && atomic_load(&s->clock.last) >= now);
    atomic_store(&s->clock.n, 0);
    atomic_store(&s->odom.n, 0);
    atomic_store(&s->urdf.n, 0);
}

// Commands over the network until one is taken, with no more than that many ticks.
static void drive(stage *s) {
    us_msg_twist m = {{0.3, 0, 0}, {0, 0, 0}};
    uint8_t bytes[100];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &length), US_OK);
    int64_t before = us_proxy_get_counts(s->w.proxy, s->w.sim).n_command;
    WAIT_FOR((us_writer_write(s->writer, bytes, length, 0), proxy_world_step(&s->w, 1),
              us_proxy_get_counts(s->w.proxy, s->w.sim).n_command > before));
}

static void after_a_reset_the_network_goes_on_from_0(void **state) {
    (void)state;
    stage *s = open_stage();
    drive(s);
    proxy_world_step(&s->w, 500);
    listen_anew(s);
    assert_int_equal(us_sim_reset(s->w.sim), US_OK);
    // The counts are state. Read before a step: commands that are still on their way come after it too.
    assert_int_equal(us_proxy_get_counts(s->w.proxy, s->w.sim).n_command, 0);
    // The clock jumps back at once, with the first step.
    proxy_world_step(&s->w, 1);
    WAIT_FOR(atomic_load(&s->clock.last) == 1000000);
    proxy_world_step(&s->w, 99);
    WAIT_FOR(atomic_load(&s->odom.last) == 100000000 && atomic_load(&s->clock.last) == 100000000 &&
             atomic_load(&s->urdf.n) > 0);
    assert_int_equal(atomic_load(&s->odom.first), 20000000);
    assert_int_equal(atomic_load(&s->odom.n), 5);
    drive(s);
    close_stage(s);
}

static void after_a_restore_the_network_goes_on_from_there(void **state) {
    (void)state;
    stage *s = open_stage();
    proxy_world_step(&s->w, 100 - (int)(us_sim_get_tick(s->w.sim) % 100));
    int64_t tick = us_sim_get_tick(s->w.sim);
    size_t length = 0;
    us_sim_save(s->w.sim, NULL, 0, &length);
    void *snapshot = malloc(length);
    assert_non_null(snapshot);
    assert_int_equal(us_sim_save(s->w.sim, snapshot, length, &length), US_OK);
    drive(s);
    proxy_world_step(&s->w, 700);
    listen_anew(s);
    assert_int_equal(us_sim_restore(s->w.sim, snapshot, length), US_OK);
    proxy_world_step(&s->w, 1);
    WAIT_FOR(atomic_load(&s->clock.last) == (tick + 1) * 1000000);
    proxy_world_step(&s->w, 99);
    WAIT_FOR(atomic_load(&s->odom.last) == (tick + 100) * 1000000 && atomic_load(&s->urdf.n) > 0);
    assert_int_equal(atomic_load(&s->odom.n), 5);
    drive(s);
    free(snapshot);
    close_stage(s);
}

static void after_an_edit_the_network_goes_on(void **state) {
    (void)state;
    stage *s = open_stage();
    us_error err = {0};
    for (int i = 0; i < 3; i++) {
        drive(s);
        us_spec *spec = NULL;
        us_model *model = NULL;
        assert_int_equal(us_spec_copy(s->w.spec, &spec), US_OK);
        // The first edit moves all indices of the robot.
        if (i == 0) assert_int_equal(us_spec_remove_link(spec, us_spec_find_link(spec, "ball/ball")), US_OK);
        expect_ok(us_model_compile(spec, NULL, &model, &err), &err);
        expect_ok(us_proxy_replace(s->w.proxy, s->w.sim, model, &err), &err);
        us_model_destroy(s->w.model);
        us_spec_destroy(s->w.spec);
        s->w.model = model;
        s->w.spec = spec;
        listen_anew(s);
        int64_t tick = us_sim_get_tick(s->w.sim) / 20 * 20;
        proxy_world_step(&s->w, 100);
        WAIT_FOR(atomic_load(&s->odom.last) == (us_sim_get_tick(s->w.sim) / 20 * 20) * 1000000);
        assert_int_equal(atomic_load(&s->odom.first), (tick + 20) * 1000000);
        assert_int_equal(atomic_load(&s->odom.n), 5);
        // What was told once is not told again.
        assert_int_equal(atomic_load(&s->urdf.n), 0);
    }
    close_stage(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_reset_the_network_goes_on_from_0),
        cmocka_unit_test(after_a_restore_the_network_goes_on_from_there),
        cmocka_unit_test(after_an_edit_the_network_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
