// The proxy hands back to the hardware: only where both agree, after the hardware was driven there, and with
// velocities that rise slowly.
#include "test_handover_support.h"

static const double RAMP = 0.5, RAMP_TURN = 1;  // m/s^2, rad/s^2: the defaults
static const double MAX_PAUSE = 0.1;            // s: what counts at most between two commands

// The last n lines are those that were heard; before them there may be some of the time when not all had
// found each other.
static void check_evidence(int32_t n) {
    char *text = read_text("evidence.jsonl");
    assert_non_null(text);
    int32_t n_found = 0, n_all = count_text(text, "\n");
    assert_true(n_all >= n);
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL && line[0]; n_found++) {
        if (n_found < n_all - n) continue;
        cJSON *json = parse_json(line);
        static const char *const keys[] = {"time",   "epoch",   "from", "to",     "mode",
                                           "reason", "verdict", "why",  "limits", "durations"};
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            member(json, keys[i]);
        for (int k = 0; k < 2; k++) {
            const cJSON *moment = member(json, k ? "after" : "before"),
                        *difference = member(moment, "difference");
            number_of(difference, "position");
            number_of(difference, "joint");
            for (int s = 0; s < 2; s++) {
                const cJSON *one = member(moment, s ? "proxy" : "hardware");
                assert_int_equal(cJSON_GetArraySize(member(one, "pose")), 3);
                assert_int_equal(cJSON_GetArraySize(member(one, "velocity")), 3);
                assert_true(cJSON_GetArraySize(member(one, "joints")) >= 8);
                assert_true(number_of(one, "age") < 5);  // the watchdog
            }
        }
        cJSON_Delete(json);
    }
    free(text);
    assert_int_equal(n_found, n_all);
}

static void the_hardware_takes_over_where_it_agrees_or_is_driven_there(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    theatre *t = open_theatre("", "--watchdog 5");
    drive(t, 0.4, 0.2);
    wait_steady(t, 0.4, 0.3);
    cJSON_Delete(hand_over(t, "k10 proxy"));
    // The proxy drives on, and the hardware stands.
    wait_steady(t, 0.4, 0.8);
    cJSON *line = refusal_of(t, "k10 hardware", "the states differ: position ");
    const char *why = member(line, "why")->valuestring;
    print_message("refused: %s\n", why);
    assert_has(why, "m (limit 0.1)");
    assert_has(why, "m/s (0.05)");
    assert_true(number_of(member(member(line, "before"), "difference"), "position") > 0.1);
    cJSON_Delete(line);
    cJSON_Delete(refusal_of(t, "k10 hardware match", "the proxy moves"));

    drive(t, 0, 0);
    int64_t since = latest(&t->odom).stamp;
    WAIT_FOR(is_at_rest(t, since));
    int32_t n = n_line(t);
    double began = clock_now();
    write_text_message(t->request, "k10 hardware match");
    for (double until = clock_now() + 3 * PATIENCE; n_line(t) <= n && clock_now() < until;)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    line = next_evidence(t, n);
    print_message("driven there in %.1f s: %s %s\n", clock_now() - began,
                  member(line, "verdict")->valuestring, member(line, "why")->valuestring);
    assert_string_equal(member(line, "verdict")->valuestring, "done");
    assert_string_equal(member(line, "to")->valuestring, "hardware");
    const cJSON *difference = member(member(line, "after"), "difference");
    print_message("apart: %.1f mm, %.2f deg, joint %.2f deg, %.1f mm/s\n",
                  1e3 * number_of(difference, "position"), number_of(difference, "yaw") * 180 / M_PI,
                  number_of(difference, "joint") * 180 / M_PI, 1e3 * number_of(difference, "speed"));
    // The limits, and a little that it may still roll.
    assert_true(number_of(difference, "position") < 0.11);
    assert_true(number_of(difference, "yaw") < 6 * M_PI / 180);
    cJSON_Delete(line);

    // Once more, and back in full drive: the hardware stands, and what reaches it rises no faster than it
    // may.
    cJSON_Delete(hand_over(t, "k10 proxy"));
    drive(t, 0.4, 0.2);
    wait_steady(t, 0.4, 0.2);
    int32_t first = atomic_load(&t->told.n);
    cJSON_Delete(hand_over(t, "k10 hardware anyway"));
    wait_steady(t, 0.4, 0.2);
    int32_t last = atomic_load(&t->told.n);
    double step = 0, turn = 0;
    assert_true(last > first + 8);
    for (int32_t i = first; i < last; i++) {
        step = fmax(step, fabs(t->told.at[i].v[0] - t->told.at[i - 1].v[0]));
        turn = fmax(turn, fabs(t->told.at[i].v[2] - t->told.at[i - 1].v[2]));
    }
    print_message("largest steps of the velocities that reached the hardware: %.4f m/s, %.4f rad/s\n", step,
                  turn);
    // The first one begins with what it does, which is known to 5 mm/s and rad/s while it stands.
    assert_true(step > 0 && step <= RAMP * MAX_PAUSE + 0.005);
    assert_true(turn > 0 && turn <= RAMP_TURN * MAX_PAUSE + 0.005);
    // Once there, commands cross as they are.
    assert_near(t->told.at[last - 1].v[0], 0.4, 0);
    check_evidence(n_line(t));
    close_theatre(t);
}

static void a_way_that_cannot_be_gone_is_given_up_with_the_reason(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    // Its emergency stop holds it.
    theatre *t = open_theatre("", "--watchdog 5");
    drive(t, 0.3, 0);
    wait_steady(t, 0.3, 0.2);
    cJSON_Delete(hand_over(t, "k10 proxy"));
    wait_steady(t, 0.3, 0.8);
    drive(t, 0, 0);
    int64_t since = latest(&t->odom).stamp;
    WAIT_FOR(is_at_rest(t, since));
    us_writer *emergency = writer_to(t->hardware_bus, "/k10/emergency_stop", usi_type_bool);
    send(emergency, usi_type_bool, &(us_msg_bool){.data = true});
    cJSON_Delete(refusal_of(t, "k10 hardware match", "stuck"));
    close_theatre(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_hardware_takes_over_where_it_agrees_or_is_driven_there,
                                        use_own_domain, kill_the_rest),
        cmocka_unit_test_setup_teardown(a_way_that_cannot_be_gone_is_given_up_with_the_reason, use_own_domain,
                                        kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}
