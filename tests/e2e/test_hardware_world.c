// The stand-in hardware's body, ground and link: different from what the description says, as told on the
// command line.
#include "test_hardware_support.h"

static void its_body_differs_from_its_description_as_told(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("--radius-error 0.2 --mass-error 0.3 --friction 0.9 --noise 0");
    operator_ *o = join_as_operator();
    command(o, 0.4, 0, 0.3, false);
    heard m = measure(o, 0.6);
    assert_near(m.sum_wz, 0.3, 0.02);
    // Wheels that are larger by a fifth turn it faster by a fifth than it believes; 0.03: the wheels' breadth
    // rubs.
    assert_near(m.sum_gyro / m.sum_wz, 1.2, 0.03);
    leave(o);
    end(pid);
}

static void it_climbs_the_ramp_and_stays_there(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("--ramp 0.2 --x 1.4 --noise 0");
    operator_ *o = join_as_operator();
    heard h;
    WAIT_FOR((h = listen(o), h.n > 0 && h.n_gyro > 0));
    assert_near(h.pitch, 0, 0.01);
    command(o, 0.6, 0, 0, false);
    // All wheels are on it. 0.01 rad: tyres and drives give way.
    WAIT_DRIVING(o, h.pitch > 0.19);
    assert_near(h.pitch, 0.2, 0.01);
    o->is_quiet = true;
    WAIT_DRIVING(o, is_still(&h));
    heard rest = h;
    WAIT_DRIVING(o, h.stamp > rest.stamp + 0.5);
    // 2 cm, as on flat ground: what a drive loses to the slope it makes up for.
    assert_near(h.x, rest.x, 0.02);
    assert_near(h.pitch, 0.2, 0.01);
    // So does the brake of the emergency stop.
    send(o->emergency, usi_type_bool, &(us_msg_bool){.data = true});
    WAIT_DRIVING(o, strstr(h.diagnostics, "the emergency stop is on"));
    WAIT_DRIVING(o, h.stamp > rest.stamp + 2);
    assert_near(h.x, rest.x, 0.02);
    leave(o);
    end(pid);
}

static void its_link_is_gone_every_now_and_then(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("--dropout-every 1 --dropout-time 0.4");
    operator_ *o = join_as_operator();
    heard h;
    WAIT_FOR((h = listen(o), h.n > 0 && h.stamp > h.first_stamp + 2.5));
    // Two whole outages at least, of 20 samples each; and stamps on either side of one are a sample more than
    // 0.4 s apart.
    assert_true(h.gap > 0.39);
    assert_true((double)h.n < (h.stamp - h.first_stamp) * 50 + 1 - 35);
    leave(o);
    end(pid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_body_differs_from_its_description_as_told, use_own_domain,
                                        kill_the_rest),
        cmocka_unit_test_setup_teardown(it_climbs_the_ramp_and_stays_there, use_own_domain, kill_the_rest),
        cmocka_unit_test_setup_teardown(its_link_is_gone_every_now_and_then, use_own_domain, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}
