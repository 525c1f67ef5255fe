// The ASCII motor protocol at a running robot: what is acknowledged over TCP and UDP moves joints that others
// see on the network.
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_peer.h"

static const char motors[] =
    "<network timeout='10 s'/><motors port='%d'><motor name='FLDR' joint='front_left_drive'/>"
    "<motor name='FRDR' joint='front_right_drive'/><motor name='RLDR' joint='rear_left_drive'/>"
    "<motor name='RRDR' joint='rear_right_drive'/><motor name='FLST' joint='front_left_steer'/></motors>";

static int write_scene(void) {
    char inside[1000];
    int port = net_free_port();
    snprintf(inside, sizeof inside, motors, port);
    net_write_k10("motors.xml", inside);
    return port;
}

// ---------------------------------------------------------------- a client

typedef struct client {
    int fd;
    size_t n;
    char text[1 << 16];  // all that was received
} client;

static bool connect_client(client *c, int kind, int port) {
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->n = 0;
    c->text[0] = 0;
    c->fd = socket(AF_INET, kind, 0);
    assert_true(c->fd >= 0);
    if (connect(c->fd, (struct sockaddr *)&at, sizeof at) == 0) return true;
    close(c->fd);
    return false;
}

static void say(const client *c, const char *text) {
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static bool has_heard(client *c, const char *text) {
    struct pollfd waiting = {.fd = c->fd, .events = POLLIN};
    while (poll(&waiting, 1, 0) == 1 && c->n + 1 < sizeof c->text) {
        ssize_t n = recv(c->fd, c->text + c->n, sizeof c->text - 1 - c->n, MSG_DONTWAIT);
        if (n <= 0) break;
        c->n += (size_t)n;
        c->text[c->n] = 0;
    }
    return strstr(c->text, text) != NULL;
}

static double joint_now(net_peer *p, int32_t ear, const char *name, bool is_velocity) {
    const us_msg_joint_state *m = net_decode(p, ear, -1);
    for (uint32_t i = 0; i < m->name._length; i++) {
        if (strcmp(m->name._buffer[i], name) == 0)
            return is_velocity ? m->velocity._buffer[i] : m->position._buffer[i];
    }
    fail_msg("no joint %s", name);
    return NAN;
}

// ---------------------------------------------------------------- tests

static void lines_of_text_move_joints_that_the_network_shows(void **state) {
    (void)state;
    static client c;
    int port = write_scene();
    net_run("motors.xml --headless --quiet");
    net_peer *p = net_open("cyclone");
    int32_t joints = net_listen(p, "/k10/joint_states", usi_type_joint_state);
    NET_WAIT(net_count(p, joints) > 0);
    NET_WAIT(connect_client(&c, SOCK_STREAM, port));
    // Who connects hears how every motor stands.
    NET_WAIT(has_heard(&c, "MSTAFLDR") && has_heard(&c, "MSTAFLST"));
    say(&c, "MMOVFLDRV1.5;MMOVFRDRV1.5;MMOVRLDRV1.5;MMOVRRDRV1.5;");
    NET_WAIT(has_heard(&c, "MACKMMOVFLDRV1.5;") && has_heard(&c, "MACKMMOVRRDRV1.5;"));
    // Drives give way by torque over gain.
    NET_WAIT(fabs(joint_now(p, joints, "front_left_drive", true) - 1.5) < 0.05);
    say(&c, "MSTP;");
    NET_WAIT(has_heard(&c, "MACKMSTP;"));
    NET_WAIT(fabs(joint_now(p, joints, "front_left_drive", true)) < 0.02);
    // A motor without power takes no command, and says so.
    say(&c, "MPWRFLST0;MMOVFLSTP0.3;");
    NET_WAIT(has_heard(&c, "MNAKMMOVFLSTP0.3,power;"));
    say(&c, "MPWRFLST1;MMOVFLSTT2,1,0.25;MMOVFLSTP99;MMOVNONEP1;");
    NET_WAIT(has_heard(&c, "MACKMMOVFLSTT2,1,0.25;") && has_heard(&c, "MNAKMMOVFLSTP99,limit;") &&
             has_heard(&c, "MNAKMMOVNONEP1,motor;"));
    // A wheel that stands scrubs when it steers: 0.03 rad.
    NET_WAIT(fabs(joint_now(p, joints, "front_left_steer", false) - 0.25) < 0.03);
    close(c.fd);

    assert_true(connect_client(&c, SOCK_DGRAM, port));
    say(&c, "MMOVFLSTP-0.2;");
    NET_WAIT(has_heard(&c, "MACKMMOVFLSTP-0.2;"));
    NET_WAIT(fabs(joint_now(p, joints, "front_left_steer", false) + 0.2) < 0.03);
    close(c.fd);
    net_close(p);
    assert_int_equal(net_end(SIGINT), 0);
}

// Somebody else has the port. The socket.
static int hold_port(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void a_port_that_is_taken_is_replaced_by_the_next_free_one(void **state) {
    (void)state;
    static client c;
    int port = write_scene();
    int fd = hold_port(port), next = 0;
    net_run("motors.xml --headless --quiet");
    char text[40];
    snprintf(text, sizeof text, "port %d is taken, port ", port);
    NET_WAIT(strstr(net_output(), text));
    assert_int_equal(sscanf(strstr(net_output(), text) + strlen(text), "%d is used instead", &next), 1);
    assert_true(next > port && next <= port + 20);
    // Over both: TCP was in use, UDP was not.
    NET_WAIT(connect_client(&c, SOCK_STREAM, next));
    NET_WAIT(has_heard(&c, "MSTAFLDR"));
    close(c.fd);
    assert_true(connect_client(&c, SOCK_DGRAM, next));
    say(&c, "MSTP;");
    NET_WAIT(has_heard(&c, "MACKMSTP;"));
    close(c.fd);
    close(fd);
    assert_int_equal(net_end(SIGINT), 0);
}

// Twenty more ports than the first are tried, and no more.
static void ports_that_are_all_taken_end_the_run_with_their_numbers(void **state) {
    (void)state;
    enum { N = 21 };
    // Below the range from which the system gives out ports.
    int port = 21000 + (int)(getpid() % 500) * 22, fds[N];
    char inside[1000], text[60];
    snprintf(inside, sizeof inside, motors, port);
    net_write_k10("motors.xml", inside);
    for (int i = 0; i < N; i++)
        fds[i] = hold_port(port + i);
    net_run("motors.xml --headless --quiet --time 1");
    int code = net_end(0);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    if (code != 3) fail_msg("exit code %d\n%s", code, net_output());
    snprintf(text, sizeof text, "TCP ports %d to %d of 127.0.0.1", port, port + N - 1);
    if (!strstr(net_output(), text)) fail_msg("no \"%s\" in:\n%s", text, net_output());
}

// Two programs with the default scene at the same time, as two people on one machine have them.
static void the_default_scene_runs_twice_on_one_machine(void **state) {
    (void)state;
    static client c;
    static char output[4096];
    int port = net_free_port(), next = 0;
    net_run(US_SOURCE_DIR "/scenes/default.xml --set motor_port=%d --headless --quiet", port);
    NET_WAIT(connect_client(&c, SOCK_STREAM, port));
    close(c.fd);
    char command[600], text[80];
    snprintf(command, sizeof command,
             "echo $$; exec " US_PROGRAM " run " US_SOURCE_DIR
             "/scenes/default.xml --set motor_port=%d --headless --quiet --time 300 2>&1",
             port);
    FILE *second = popen(command, "r");  // NOLINT(cert-env33-c): the program under test
    assert_non_null(second);
    assert_non_null(fgets(output, sizeof output, second));
    pid_t pid = (pid_t)strtol(output, NULL, 10);
    assert_true(pid > 1);
    snprintf(text, sizeof text, "motors of k10: port %d is taken, port ", port);
    while (!strstr(output, text) && fgets(output, sizeof output, second))
        continue;
    char *at = strstr(output, text);
    if (!at) fail_msg("the second program does not name its port: %s", output);
    assert_int_equal(sscanf(at + strlen(text), "%d is used instead", &next), 1);
    // Each moves its own rover.
    int ports[2] = {port, next};
    for (int i = 0; i < 2; i++) {
        NET_WAIT(connect_client(&c, SOCK_STREAM, ports[i]));
        say(&c, "MMOVFLDRV1.5;");
        NET_WAIT(has_heard(&c, "MACKMMOVFLDRV1.5;"));
        close(c.fd);
    }
    assert_int_equal(net_end(SIGINT), 0);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(pclose(second), 0);
}

static void offline_opens_no_port(void **state) {
    (void)state;
    int port = write_scene();
    int fd = hold_port(port);
    net_run("motors.xml --headless --quiet --offline --time 0.1 --rate max");
    int code = net_end(0);
    close(fd);
    if (code != 0) fail_msg("exit code %d\n%s", code, net_output());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_text_move_joints_that_the_network_shows),
        cmocka_unit_test(a_port_that_is_taken_is_replaced_by_the_next_free_one),
        cmocka_unit_test(ports_that_are_all_taken_end_the_run_with_their_numbers),
        cmocka_unit_test(the_default_scene_runs_twice_on_one_machine),
        cmocka_unit_test(offline_opens_no_port),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
