// understudy drive: by numbers and by keys, with an end in every case.
#include <math.h>
#include <pty.h>
#include <termios.h>

#include "test_network_support.h"

// A robot made of one ear: what it was told last, and what came before the last zero.
typedef struct listener {
    const us_message_type *type;
    _Atomic int32_t n;
    _Atomic double x, y, turn;  // of the last command
} listener;

static void hear_command(void *context, const us_sample *sample) {
    listener *l = context;
    bool is_stamped = l->type == usi_type_twist_stamped;
    atomic_store(&l->x, us_message_get_number(l->type, sample->bytes, sample->length,
                                              is_stamped ? "twist.linear.x" : "linear.x"));
    atomic_store(&l->y, us_message_get_number(l->type, sample->bytes, sample->length,
                                              is_stamped ? "twist.linear.y" : "linear.y"));
    atomic_store(&l->turn, us_message_get_number(l->type, sample->bytes, sample->length,
                                                 is_stamped ? "twist.angular.z" : "angular.z"));
    atomic_fetch_add(&l->n, 1);
}

static us_bus *listen_as(const char *topic, listener *l) {
    us_bus *bus = open_bus("cyclone", test_domain());
    add_reader(bus, topic, l->type, us_qos_for_topic(topic, l->type), hear_command, l);
    return bus;
}

static bool has_command(listener *l, double x, double y, double turn) {
    return atomic_load(&l->x) == x && atomic_load(&l->y) == y && atomic_load(&l->turn) == turn;
}

static void drive_moves_the_robot_forward(void **state) {
    (void)state;
    outcome a = run("drive k10 --v 0.4 --time 2");
    assert_code(a, 0);
    double moved, x0, y0, yaw0, x1, y1, yaw1;
    const char *at = strstr(a.out, "; moved ");
    assert_non_null(at);
    // NOLINTNEXTLINE(cert-err34-c): the count of what was read is all that is asked for
    assert_int_equal(sscanf(at, "; moved %lf m, from x %lf y %lf yaw %lf to x %lf y %lf yaw %lf", &moved, &x0,
                            &y0, &yaw0, &x1, &y1, &yaw1),
                     7);
    // 0.8 m at real time and without the time to get going; a slow machine simulates less of it.
    double forward = (x1 - x0) * cos(yaw0) + (y1 - y0) * sin(yaw0);
    if (!(forward > 0.02)) fail_msg("%s", a.out);
    // Said to stand still, it does.
    double until = clock_now() + PATIENCE, v;
    do {
        outcome b = run("echo /k10/odom --count 1 --field twist.twist.linear.x --timeout 20");
        assert_code(b, 0);
        v = strtod(b.out, NULL);
        assert_true(clock_now() < until);
    } while (fabs(v) > 0.02);
}

static void drive_sends_the_command_and_a_stop(void **state) {
    (void)state;
    listener l = {.type = usi_type_twist};
    us_bus *bus = listen_as("/ear/cmd_vel", &l);
    pid_t pid = start("drive", "drive ear --v -0.3 --side 0.1 --w 0.2 --rate 20");
    WAIT_FOR(atomic_load(&l.n) >= 3);
    assert_true(has_command(&l, -0.3, 0.1, 0.2));
    // Ctrl-C: it stops, and ends well.
    kill(pid, SIGINT);
    assert_int_equal(wait_for_end(pid), 0);
    WAIT_FOR(has_command(&l, 0, 0, 0));
    us_bus_close(bus);
}

static void drive_sends_stamped_commands(void **state) {
    (void)state;
    listener l = {.type = usi_type_twist_stamped};
    us_bus *bus = listen_as("/cmd_vel_stamped", &l);
    pid_t pid = start("drive", "drive / --v 0.25 --stamped --quiet");
    WAIT_FOR(atomic_load(&l.n) >= 1);
    assert_true(has_command(&l, 0.25, 0, 0));
    end(pid);
    WAIT_FOR(has_command(&l, 0, 0, 0));
    us_bus_close(bus);
}

static void hear_text(void *context, const us_sample *sample) {
    _Atomic bool *is_heard = context;
    const char *text = (const char *)sample->bytes + 8;
    if (sample->length > 8 && strcmp(text, "wave") == 0) atomic_store(is_heard, true);
}

static void drive_tells_a_walker_how_to_walk(void **state) {
    (void)state;
    listener l = {.type = usi_type_twist};
    _Atomic bool is_heard = false;
    us_bus *bus = listen_as("/legs/cmd_vel", &l);
    add_reader(bus, "/legs/gait", usi_type_string, us_qos_for_topic("/legs/gait", usi_type_string), hear_text,
               &is_heard);
    pid_t pid = start("drive", "drive legs --gait wave --v 0.05 --quiet");
    WAIT_FOR(atomic_load(&is_heard) && has_command(&l, 0.05, 0, 0));
    end(pid);
    us_bus_close(bus);
    outcome a = run("drive k10 --gait wave --v 0.1 --time 1");
    assert_int_equal(a.code, 3);
    assert_has(a.err, "nobody listens on /k10/gait");
}

static void drive_tells_when_nobody_listens(void **state) {
    (void)state;
    outcome a = run("drive nobody --v 0.1 --time 1");
    assert_int_equal(a.code, 3);
    assert_has(a.err, "nobody listens on /nobody/cmd_vel");
    assert_has(a.err, "robots that listen here: k10");
    outcome b = run("drive k10");
    assert_int_equal(b.code, 2);
    assert_has(b.err, "no keyboard");
}

// Reads what the terminal shows, so that its writer is never held up.
static void drain(int terminal) {
    char text[4096];
    struct pollfd p = {.fd = terminal, .events = POLLIN};
    while (poll(&p, 1, 0) > 0 && (p.revents & POLLIN) && read(terminal, text, sizeof text) > 0)
        continue;
}

static bool is_key_mode(int terminal) {
    struct termios t;
    assert_int_equal(tcgetattr(terminal, &t), 0);
    return !(t.c_lflag & (ICANON | ECHO));
}

static void type_keys(int terminal, const char *keys) {
    assert_int_equal(write(terminal, keys, strlen(keys)), (ssize_t)strlen(keys));
}

// Starts a drive in a terminal of its own, and waits until it takes keys.
static pid_t drive_in_terminal(int *out_terminal, int *out_own) {
    char line[64] = "drive ear", *argv[MAX_ARGS];
    split(line, argv);
    struct termios plain;
    // The test keeps the inner end open too: the settings can be looked at when the program is gone.
    assert_int_equal(openpty(out_terminal, out_own, NULL, NULL, NULL), 0);
    assert_int_equal(tcgetattr(*out_own, &plain), 0);
    assert_true((plain.c_lflag & ICANON) && (plain.c_lflag & ECHO));
    fcntl(*out_terminal, F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, *out_own, i);
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    keep(pid);
    WAIT_FOR((drain(*out_terminal), is_key_mode(*out_own)));
    return pid;
}

static void drive_takes_keys_and_leaves_the_terminal_as_it_was(void **state) {
    (void)state;
    listener l = {.type = usi_type_twist};
    us_bus *bus = listen_as("/ear/cmd_vel", &l);
    int terminal, own;
    pid_t pid = drive_in_terminal(&terminal, &own);
    type_keys(terminal, "ww");
    WAIT_FOR((drain(terminal), has_command(&l, 0.2, 0, 0)));
    type_keys(terminal, "\033[D");
    WAIT_FOR((drain(terminal), has_command(&l, 0.2, 0, 0.1)));
    type_keys(terminal, " ");
    WAIT_FOR((drain(terminal), has_command(&l, 0, 0, 0)));
    type_keys(terminal, ",\033OB");
    WAIT_FOR((drain(terminal), has_command(&l, -0.1, 0.1, 0)));
    type_keys(terminal, "q");
    WAIT_FOR((drain(terminal), has_command(&l, 0, 0, 0)));
    assert_int_equal(wait_for_end(pid), 0);
    assert_false(is_key_mode(own));
    close(terminal);
    close(own);
    us_bus_close(bus);
}

static void drive_restores_the_terminal_when_it_is_ended(void **state) {
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGQUIT};
    listener l = {.type = usi_type_twist};
    us_bus *bus = listen_as("/ear/cmd_vel", &l);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int terminal, own;
        pid_t pid = drive_in_terminal(&terminal, &own);
        kill(pid, numbers[i]);
        int code = wait_for_end(pid);
        assert_int_equal(code, numbers[i] == SIGQUIT ? 128 + SIGQUIT : 0);
        drain(terminal);
        assert_false(is_key_mode(own));
        close(terminal);
        close(own);
    }
    us_bus_close(bus);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(drive_moves_the_robot_forward, use_own_domain),
        cmocka_unit_test_setup(drive_sends_the_command_and_a_stop, use_own_domain),
        cmocka_unit_test_setup(drive_sends_stamped_commands, use_own_domain),
        cmocka_unit_test_setup(drive_tells_a_walker_how_to_walk, use_own_domain),
        cmocka_unit_test_setup(drive_tells_when_nobody_listens, use_own_domain),
        cmocka_unit_test_setup(drive_takes_keys_and_leaves_the_terminal_as_it_was, use_own_domain),
        cmocka_unit_test_setup(drive_restores_the_terminal_when_it_is_ended, use_own_domain),
    };
    return cmocka_run_group_tests(tests, start_robot, kill_the_rest);
}
