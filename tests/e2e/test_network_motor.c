// The ASCII motor protocol at a running robot: what is acknowledged over TCP and UDP moves joints that others
// see on the network.
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
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

static void a_port_that_somebody_has_ends_the_run_with_its_number(void **state) {
    (void)state;
    int port = write_scene();
    int fd = hold_port(port);
    net_run("motors.xml --headless --quiet --time 1");
    int code = net_end(0);
    close(fd);
    if (code != 3) fail_msg("exit code %d\n%s", code, net_output());
    char text[40];
    snprintf(text, sizeof text, "TCP port %d of 127.0.0.1", port);
    if (!strstr(net_output(), text)) fail_msg("no \"%s\" in:\n%s", text, net_output());
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
        cmocka_unit_test(a_port_that_somebody_has_ends_the_run_with_its_number),
        cmocka_unit_test(offline_opens_no_port),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
