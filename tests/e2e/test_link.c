// The ASCII link at a running robot, by the client library: three levels, lines and inertial units, over TCP
// and UDP; what it refuses, and that stops are taken from anybody.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net_peer.h"
#include "understudy/link.h"

static const char inside[] =
    "<motors port='%d'><motor name='FLDR' joint='front_left_drive'/>"
    "<motor name='FLST' joint='front_left_steer'/>"
    "<line name='VBAT' type='analog-in' value='battery.voltage' scale='0.1'/>"
    "<line name='STER' type='analog-in' value='joint.position' joint='front_left_steer' scale='2' "
    "offset='1'/>"
    "<line name='LIMI' type='digital-in' value='joint.position' joint='front_left_steer' threshold='0.1'/>"
    "<line name='LAMP' type='digital-out'/><line name='AUX0' type='analog-out'/></motors>"
    "<sensor type='imu' name='mast' link='base' xyz='0 0 1'/>";

static char address[2][60];  // tcp, udp

static int start(const char *more) {
    char text[1400];
    const int port = net_free_port();
    snprintf(text, sizeof text, inside, port);
    net_write_k10("link.xml", text);
    net_run("link.xml --headless %s", more);
    snprintf(address[0], sizeof address[0], "tcp:127.0.0.1:%d", port);
    snprintf(address[1], sizeof address[1], "udp:127.0.0.1:%d", port);
    return port;
}

static us_link_client *connect_to(const char *where) {
    us_link_client *c = NULL;
    us_error err;
    NET_WAIT(us_link_client_open(where, NULL, &c, &err) == US_OK);
    // A datagram may come before the robot listens.
    NET_WAIT(us_link_client_command(c, "RGET", 0.5, NULL, &err) == US_OK);
    return c;
}

static void good(us_link_client *c, const char *command) {
    us_error err = {0};
    if (us_link_client_command(c, command, NET_PATIENCE, NULL, &err)) net_fail(command, err.message);
}

static void bad(us_link_client *c, const char *command, const char *reason) {
    us_error err = {0};
    us_link_message m = {0};
    assert_int_equal(us_link_client_command(c, command, NET_PATIENCE, &m, &err), US_ERR_VALUE);
    if (strcmp(m.reason, reason) != 0) fail_msg("%s: %s rather than %s", command, m.reason, reason);
}

// The next message of a kind.
static us_link_message hear(us_link_client *c, us_link_message_kind kind) {
    us_link_message m = {0};
    us_error err = {0};
    const double until = net_clock() + NET_PATIENCE;
    bool has = false;
    do {
        if (us_link_client_poll(c, 1, &m, &has, &err)) net_fail("poll", err.message);
        if (net_clock() > until) net_fail("waited for", "a message of the link");
    } while (!has || m.kind != kind);
    return m;
}

static us_link_message hear_line(us_link_client *c, const char *name) {
    us_link_message m;
    do
        m = hear(c, US_LINK_LINE);
    while (strcmp(m.name, name) != 0);
    return m;
}

static double property(us_link_client *c, const char *name) {
    char text[60];
    snprintf(text, sizeof text, "FGET%s", name);
    good(c, text);
    us_link_message m = hear(c, US_LINK_VALUE);
    assert_string_equal(m.text, name);
    return m.number[0];
}

// ---------------------------------------------------------------- tests

static void a_rover_goes_where_it_is_told_and_says_so(void **state) {
    (void)state;
    start("--quiet --rate 4");
    for (int i = 0; i < 2; i++) {
        us_link_client *c = connect_to(address[i]);
        us_link_message m = {0};
        us_error err = {0};
        good(c, "RPOS0,0,0");
        if (us_link_client_move(c, "RGTOR1,0,0.5,0.05,30", NET_PATIENCE, &m, &err))
            net_fail("RGTO", err.message);
        assert_int_equal(m.state, US_ROVER_DONE);
        // Within the tolerance when it was there, and then it came to rest with 1 m/s^2: by odometry.
        assert_true(fabs(m.number[0] - 1) < 0.06 && fabs(m.number[1]) < 0.06);
        if (us_link_client_move(c, "RTRN1.5,0.8", NET_PATIENCE, &m, &err)) net_fail("RTRN", err.message);
        assert_true(fabs(m.number[2] - 1.5) < 0.05);
        if (us_link_client_move(c, "RARC0.5,0,0.4", NET_PATIENCE, &m, &err)) net_fail("RARC", err.message);
        // Too far for its time.
        assert_int_equal(us_link_client_move(c, "RGTOS50,0,0.3,0.1,1", NET_PATIENCE, &m, &err), US_ERR_VALUE);
        assert_int_equal(m.state, US_ROVER_FAILED);
        assert_int_equal(m.error, US_ROVER_TIMEOUT);
        us_link_client_close(c);
    }
    assert_int_equal(net_end(SIGINT), 0);
}

static void functions_run_by_name_and_end_with_a_state(void **state) {
    (void)state;
    start("--quiet --rate 4");
    us_link_client *c = connect_to(address[0]), *other = connect_to(address[1]);
    us_link_message m;
    good(c, "RPOS0,0,0");
    good(c, "FSETnavigator.speed,0.6");
    good(c, "FSETsite.x,10");
    assert_true(property(c, "navigator.speed") == 0.6 && property(c, "limit.speed") == 0.9);
    assert_true(fabs(property(c, "pose.x") + 10) < 1e-3);
    good(c, "RPOS0,0,0");
    good(c, "FRUNmove_to,1,0.5,-1.57");
    do
        m = hear(c, US_LINK_FUNCTION);
    while (m.state == US_ROVER_MOVING);
    assert_string_equal(m.text, "move_to");
    assert_int_equal(m.run, 1);
    assert_int_equal(m.state, US_ROVER_DONE);
    assert_true(fabs(property(c, "pose.heading") + 1.57) < 0.05 && fabs(property(c, "pose.x") - 1) < 0.15);
    // Another client stops it.
    good(c, "FRUNhome,0.3");
    good(other, "FSTP");
    do
        m = hear(c, US_LINK_FUNCTION);
    while (m.run < 2 || m.state == US_ROVER_MOVING);
    assert_int_equal(m.state, US_ROVER_STOPPED);
    assert_int_equal(m.error, US_ROVER_INTERRUPTED);
    // Without power it fails at once.
    good(c, "FRUNpower,0");
    good(c, "FRUNhome");
    do
        m = hear(c, US_LINK_FUNCTION);
    while (m.run < 4 || m.state == US_ROVER_MOVING);
    assert_int_equal(m.error, US_ROVER_FAILURE);
    bad(c, "FRUNgait,1", "unsupported");
    bad(c, "FRUNfly", "function");
    bad(c, "FGETwings", "property");
    bad(c, "FSETlimit.speed,5", "fixed");
    bad(c, "FSETnavigator.speed,5", "limit");
    bad(c, "RDRV0,0,9", "limit");
    us_link_client_close(c);
    us_link_client_close(other);
    assert_int_equal(net_end(SIGINT), 0);
}

static void lines_and_inertial_units_show_readings(void **state) {
    (void)state;
    start("--quiet");
    us_link_client *c = connect_to(address[0]);
    good(c, "IGETVBAT");
    // 48 V, full: 106 % of it.
    assert_true(fabs(hear_line(c, "VBAT").number[0] - 4.8) < 0.3);
    good(c, "MMOVFLSTP0.3");
    us_link_message m;
    do
        m = hear_line(c, "STER");
    while (fabs(m.number[0] - (2 * 0.3 + 1)) > 0.06);
    do {
        good(c, "IGETLIMI");
        m = hear_line(c, "LIMI");
    } while (m.number[0] != 1);
    good(c, "IOUTLAMP1");
    good(c, "IOUTAUX02.25");
    good(c, "IGETLAMP");
    do
        m = hear_line(c, "LAMP");
    while (m.number[0] != 1);
    good(c, "IGETAUX0");
    do
        m = hear_line(c, "AUX0");
    while (m.number[0] != 2.25);
    bad(c, "IOUTLAMP2", "value");
    bad(c, "IOUTVBAT1", "fixed");
    bad(c, "IGETNONE", "line");
    bad(c, "IIMUIMU7", "line");
    for (int i = 0; i < 2; i++) {
        good(c, i == 0 ? "IIMUIMU0" : "IIMUIMU1");
        do
            m = hear(c, US_LINK_IMU);
        while (m.name[3] != '0' + i);
        assert_true(fabs(m.number[7] - 9.81) < 0.5 && fabs(m.number[0]) < 0.05);
    }
    us_link_client_close(c);
    assert_int_equal(net_end(SIGINT), 0);
}

// What is recorded runs again to the same bits, outputs and functions included.
static void a_recording_of_the_link_runs_again(void **state) {
    (void)state;
    start("--quiet --record link.mcap");
    us_link_client *c = connect_to(address[0]);
    us_link_message m;
    good(c, "FRUNmove,0.3,0,0.5");
    good(c, "IOUTLAMP1");
    do
        m = hear(c, US_LINK_FUNCTION);
    while (m.state == US_ROVER_MOVING);
    assert_int_equal(m.state, US_ROVER_DONE);
    us_link_client_close(c);
    assert_int_equal(net_end(SIGINT), 0);
    assert_int_equal(system(US_PROGRAM " replay link.mcap --verify --scene link.xml > replay.out 2>&1"), 0);
    char *text = net_read_text("replay.out");
    if (!strstr(text, "same")) fail_msg("%s", text);
    free(text);
}

static void the_demo_drives_a_square(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        start("--quiet --rate 4");  // anew: its battery lasts 90 s
        us_link_client_close(connect_to(address[0]));
        char command[400];
        snprintf(command, sizeof command, US_BINARY_DIR "/examples/square %s 0.8 > square.out 2>&1",
                 address[i]);
        const int code = system(command);
        char *text = net_read_text("square.out");
        if (code != 0) net_fail("square", text);
        double x = 9, y = 9;
        const char *last = strstr(text, "corner 4:");
        assert_non_null(last);
        assert_int_equal(sscanf(last, "corner 4: x %lf m y %lf m", &x, &y), 2);
        assert_true(hypot(x, y) < 0.07);
        assert_non_null(strstr(text, "force"));
        free(text);
        assert_int_equal(net_end(SIGINT), 0);
    }
    assert_int_equal(system(US_BINARY_DIR "/examples/square tcp:127.0.0.1:1 > square.out 2>&1") >> 8, 1);
    assert_int_equal(system(US_BINARY_DIR "/examples/square nowhere > square.out 2>&1") >> 8, 1);
}

static void addresses_that_cannot_be_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        "tcp",
                                        "tcp:",
                                        "tcp:127.0.0.1",
                                        "tcp:127.0.0.1:",
                                        "tcp::5010",
                                        "tcp:host.name:5010",
                                        "tcp:127.0.0.1:http",
                                        "http:127.0.0.1:80",
                                        "udp:[::1:5"};
    us_link_client *c = NULL;
    us_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(us_link_client_open(wrong[i], NULL, &c, &err), US_ERR_SYNTAX);
        assert_null(c);
        assert_true(err.remedy[0] != 0);
    }
    assert_int_equal(us_link_client_open("tcp:127.0.0.1:1", NULL, &c, &err), US_ERR_IO);
    assert_int_equal(us_link_client_open("serial:/nowhere/at/all", NULL, &c, &err), US_ERR_IO);
    assert_int_equal(us_link_client_open(NULL, NULL, &c, &err), US_ERR_ARG);
    us_link_client_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rover_goes_where_it_is_told_and_says_so),
        cmocka_unit_test(functions_run_by_name_and_end_with_a_state),
        cmocka_unit_test(lines_and_inertial_units_show_readings),
        cmocka_unit_test(a_recording_of_the_link_runs_again),
        cmocka_unit_test(the_demo_drives_a_square),
        cmocka_unit_test(addresses_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
