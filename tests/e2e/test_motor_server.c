// The motor server over real sockets on loopback: commands, refusals, states, many clients, and what it needs
// to start.
#include <arpa/inet.h>
#include <dirent.h>
#include <math.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocator.h"
#include "motor_rig.h"

// ---- Commands ----

static void commands_are_handed_over_and_acknowledged_on(int kind) {
    usi_motor_server_def def = rig_def();
    rig_start(&def, true);
    rig_peer *p = rig_open(kind);
    rig_say(p, "MPWRFRDR1;MMOVFLDRV1.5;MMOVARM1P-0.25;MMOVARM1T 1,2,3;MSTPFRDR;MSTP;");
    rig_expect(p, "MACKMPWRFRDR1");
    rig_expect(p, "MACKMMOVFLDRV1.5");
    rig_expect(p, "MACKMMOVARM1P-0.25");
    rig_expect(p, "MACKMMOVARM1T 1,2,3");
    rig_expect(p, "MACKMSTPFRDR");
    rig_expect(p, "MACKMSTP");
    assert_int_equal(rig_n_taken(), 6);
    const int32_t motor[] = {1, 0, 2, 2, 1, -1};
    const usi_motor_kind kinds[] = {USI_MOTOR_POWER,      USI_MOTOR_VELOCITY, USI_MOTOR_POSITION,
                                    USI_MOTOR_TRAJECTORY, USI_MOTOR_STOP,     USI_MOTOR_STOP_ALL};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(rig.taken[i].command.kind, kinds[i]);
        assert_int_equal(rig.taken[i].command.motor, motor[i]);
        assert_int_equal(rig.taken[i].client, rig.taken[0].client);
    }
    assert_true(rig.taken[1].command.value == 1.5 && rig.taken[3].command.acceleration == 1);
    rig_close(p);
    rig_stop();
}

static void commands_over_tcp_are_handed_over_and_acknowledged(void **state) {
    (void)state;
    commands_are_handed_over_and_acknowledged_on(SOCK_STREAM);
}

static void commands_over_udp_are_handed_over_and_acknowledged(void **state) {
    (void)state;
    commands_are_handed_over_and_acknowledged_on(SOCK_DGRAM);
}

static void bytes_that_come_one_by_one_make_messages(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    rig_start(&def, true);
    rig_peer *p = rig_open(SOCK_STREAM);
    const char text[] = "\r\nMMOVFLDRT1.5,2.5,-3.5;\nMSTP;";
    for (size_t i = 0; i + 1 < sizeof text; i++)
        assert_int_equal(send(p->fd, text + i, 1, MSG_NOSIGNAL), 1);
    rig_expect(p, "MACKMMOVFLDRT1.5,2.5,-3.5");
    rig_expect(p, "MACKMSTP");
    rig_close(p);
    rig_stop();
}

static void what_is_wrong_is_said_and_the_connection_goes_on(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    rig_start(&def, true);
    rig_peer *p = rig_open(SOCK_STREAM);
    char long_one[3000], expected[200];
    memset(long_one, 'y', sizeof long_one);
    memcpy(long_one + sizeof long_one - 2, ";", 2);
    rig_say(p,
            "hello;MPWRfront_left_drive1;MSTPFLDRX;MPWRNONE1;MMOVFLDRVnan;MMOVFLDRV1e300;MMOVFLDRT0,0,0;;;");
    rig_say(p, "\x01\x02\xff;");
    rig_say(p, long_one);
    rig_say(p, "MSTP;");
    rig_expect(p, "MNAKhello,keyword");
    rig_expect(p, "MNAKMPWRfront_left_drive1,syntax");
    rig_expect(p, "MNAKMSTPFLDRX,name");
    rig_expect(p, "MNAKMPWRNONE1,motor");
    rig_expect(p, "MNAKMMOVFLDRVnan,syntax");
    rig_expect(p, "MNAKMMOVFLDRV1e300,value");
    rig_expect(p, "MNAKMMOVFLDRT0,0,0,value");
    rig_expect(p, "MNAK???,keyword");
    snprintf(expected, sizeof expected, "MNAK%.*s,long", USI_MOTOR_TEXT, long_one);
    rig_expect(p, expected);
    rig_expect(p, "MACKMSTP");
    assert_int_equal(RIG_COUNT(n_bad), 9);
    assert_int_equal(RIG_COUNT(n_command), 1);
    // Whoever took a command may refuse it too.
    assert_int_equal(
        usi_motor_server_refuse(rig.server, rig.taken[0].client, "MMOVFLDRV1", 10, USI_MOTOR_UNPOWERED),
        US_OK);
    rig_expect(p, "MNAKMMOVFLDRV1,power");
    assert_int_equal(usi_motor_server_refuse(rig.server, rig.taken[0].client, "x", 1, USI_MOTOR_GOOD),
                     US_ERR_ARG);
    assert_int_equal(usi_motor_server_ack(rig.server, 12345, "x", 1),
                     US_OK);  // nobody is there, and nothing happens
    assert_int_equal(usi_motor_server_ack(rig.server, -1, "x", 1), US_OK);
    rig_close(p);
    rig_stop();
}

static void strangers_get_no_answer_until_they_send_a_good_command(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    rig_start(&def, true);
    rig_peer *p = rig_open(SOCK_DGRAM);
    rig_say(p, "who is there?;");
    rig_say(p, "MPWRNONE1;");
    rig_say(p, "MSTP");
    RIG_WAIT_UNTIL(RIG_COUNT(n_unknown_sender) == 3);
    rig_say(p, "rubbish;MSTP;cut off");
    // The first answer is to this datagram; from now on it is told what is wrong.
    rig_expect(p, "MNAKrubbish,keyword");
    rig_expect(p, "MNAKcut off,cut");
    rig_expect(p, "MACKMSTP");
    rig_say(p, "MPWRNONE1;");
    rig_expect(p, "MNAKMPWRNONE1,motor");
    assert_int_equal(RIG_COUNT(n_udp), 1);
    rig_close(p);
    rig_stop();
}

static void a_client_that_has_said_its_last_word_still_gets_its_answers(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    rig_start(&def, false);
    rig_peer *p = rig_open(SOCK_STREAM);
    rig_say(p, "MPWRFLDR1;MSTP;");
    assert_int_equal(shutdown(p->fd, SHUT_WR), 0);
    RIG_WAIT_UNTIL(rig_n_taken() == 2);
    rig_answer_all();
    rig_expect(p, "MACKMPWRFLDR1");
    rig_expect(p, "MACKMSTP");
    rig_expect_end(p);
    rig_close(p);
    rig_stop();
}

// ---- Many ----

static void sixty_four_clients_get_their_own_answers_and_the_next_may_stop_and_no_more(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    rig_start(&def, false);
    enum { N = 64 };
    rig_peer *tcp[N], *udp[N];
    char text[64], expected[64];
    for (int i = 0; i < N; i++) {
        tcp[i] = rig_open(SOCK_STREAM);
        udp[i] = rig_open(SOCK_DGRAM);
        snprintf(text, sizeof text, "MMOVFLDRV%d;", i);
        rig_say(tcp[i], text);
        snprintf(text, sizeof text, "MMOVFLDRP%d;", i);
        rig_say(udp[i], text);
        RIG_WAIT_UNTIL(rig_n_taken() == 2 * i + 2);
    }
    rig_peer *late = rig_open(SOCK_STREAM);
    rig_expect(late, "MNAK,full");
    rig_say(late, "MMOVFLDRV1;");
    rig_expect(late, "MNAKMMOVFLDRV1,full");
    // Of every level a stop is taken, and no more.
    rig_say(late, "RGTOR1,0;FRUNhome;RSTP;FSTP;");
    rig_expect(late, "MNAKRGTOR1,0,full");
    rig_expect(late, "MNAKFRUNhome,full");
    rig_say(late, "MSTP;");
    RIG_WAIT_UNTIL(rig_n_taken() == 2 * N + 3);
    rig_peer *later = rig_open(SOCK_DGRAM);
    rig_say(later, "MMOVFLDRV1;MSTPFLDR;");
    rig_expect(later, "MNAKMMOVFLDRV1,full");
    RIG_WAIT_UNTIL(rig_n_taken() == 2 * N + 4);
    assert_int_equal(RIG_COUNT(n_rejected), 2);

    rig_answer_all();
    rig_expect(late, "MACKRSTP");
    rig_expect(late, "MACKFSTP");
    rig_expect(late, "MACKMSTP");
    rig_expect(later, "MACKMSTPFLDR");
    rig_expect_end(late);
    rig_close(late);
    rig_close(later);
    for (int i = 0; i < N; i++) {
        snprintf(expected, sizeof expected, "MACKMMOVFLDRV%d", i);
        rig_expect(tcp[i], expected);
        snprintf(expected, sizeof expected, "MACKMMOVFLDRP%d", i);
        rig_expect(udp[i], expected);
    }
    // Who leaves makes room, and the newcomer has another number.
    int32_t old = rig.taken[0].client;
    rig_close(tcp[0]);
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == N - 1);
    tcp[0] = rig_open(SOCK_STREAM);
    rig_say(tcp[0], "MSTP;");
    RIG_WAIT_UNTIL(rig_n_taken() == 2 * N + 5);
    assert_int_not_equal(rig.taken[2 * N + 4].client, old);
    assert_int_equal(usi_motor_server_ack(rig.server, old, "MMOVFLDRV99", 11), US_OK);
    rig_answer_all();
    rig_expect(tcp[0], "MACKMSTP");
    for (int i = 0; i < N; i++) {
        rig_close(tcp[i]);
        rig_close(udp[i]);
    }
    rig_stop();
}

static int n_open_files(void) {
    DIR *dir = opendir("/proc/self/fd");
    if (!dir) return 0;
    int n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void a_storm_of_connections_leaves_nothing_behind(void **state) {
    (void)state;
    int n_before = n_open_files();
    usi_motor_server_def def = rig_def();
    rig_start(&def, true);
    for (int i = 0; i < 500; i++) {
        int fd = rig_connect(SOCK_STREAM, 0);
        if (i % 3 == 1) (void)send(fd, "MPWRFL", 6, MSG_NOSIGNAL);
        if (i % 3 == 2) (void)send(fd, "MSTP;MSTP;", 10, MSG_NOSIGNAL);
        // Some end in the middle of a word, and some by a reset.
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        if (i % 2) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == 0 && RIG_COUNT(n_joined) + RIG_COUNT(n_rejected) >= 250);
    rig_peer *p = rig_open(SOCK_STREAM);
    rig_say(p, "MSTPARM1;");
    rig_expect(p, "MACKMSTPARM1");
    rig_close(p);
    rig_stop();
    assert_int_equal(n_open_files(), n_before);
}

// ---- States ----

static void states_are_sent_when_they_change_to_everybody(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.status_rate = 0;
    rig_start(&def, true);
    rig_peer *a = rig_open(SOCK_STREAM), *b = rig_open(SOCK_DGRAM);
    rig_say(b, "MSTP;");
    rig_expect(b, "MACKMSTP");
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == 1);
    assert_int_equal(usi_motor_server_status(rig.server, 1, 0.5, -1, 3.25), US_OK);
    rig_expect(a, "MSTAFRDR0.500,-1.000000,3.250000");
    rig_expect(b, "MSTAFRDR0.500,-1.000000,3.250000");
    // The same to the last printed digit: nothing is sent, and the next that comes is the acknowledgement.
    for (int i = 0; i < 100; i++)
        assert_int_equal(usi_motor_server_status(rig.server, 1, 0.5, -1, 3.25 + 1e-9 * i), US_OK);
    rig_say(a, "MSTPFLDR;");
    rig_expect(a, "MACKMSTPFLDR");
    assert_int_equal(usi_motor_server_status(rig.server, 1, 0.5, -1, 3.250001), US_OK);
    rig_expect(a, "MSTAFRDR0.500,-1.000000,3.250001");
    // A newcomer is told how things stand, of those motors of which anything is known.
    rig_peer *c = rig_open(SOCK_STREAM);
    rig_expect(c, "MSTAFRDR0.500,-1.000000,3.250001");
    rig_say(c, "MSTP;");
    rig_expect(c, "MACKMSTP");

    assert_int_equal(usi_motor_server_status(rig.server, 1, NAN, 0, 0), US_ERR_VALUE);
    assert_int_equal(usi_motor_server_status(rig.server, 1, 0, 1e10, 0), US_ERR_VALUE);
    assert_int_equal(usi_motor_server_status(rig.server, 3, 0, 0, 0), US_ERR_ARG);
    assert_int_equal(usi_motor_server_status(rig.server, -1, 0, 0, 0), US_ERR_ARG);
    rig_close(a);
    rig_close(b);
    rig_close(c);
    rig_stop();
}

static void states_come_at_most_at_their_rate_and_the_last_one_always_comes(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    def.status_rate = 50;
    rig_start(&def, true);
    rig_peer *p = rig_open(SOCK_STREAM);
    RIG_WAIT_UNTIL(RIG_COUNT(n_tcp) == 1);
    double start = rig_now();
    int32_t n = 0;
    while (rig_now() < start + 0.3) {
        n++;
        assert_int_equal(usi_motor_server_status(rig.server, 2, 0, 0, n), US_OK);
    }
    char text[256], last[64];
    snprintf(last, sizeof last, "MSTAARM10.000,0.000000,%d.000000", n);
    int n_heard = 0;
    do {
        rig_hear_next(p, "MSTAARM1", text, sizeof text);
        n_heard++;
    } while (strcmp(text, last) != 0);
    // One at once, then one per period of the time that has passed, and one that was under way.
    assert_in_range(n_heard, 2, (int)((rig_now() - start) * 50) + 2);
    rig_close(p);
    rig_stop();
}

// ---- Making one ----

// Binds to a port that no other program has for TCP.
static int take_udp_of_a_free_tcp_port(int udp) {
    bool is_taken = false;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < 100 && !is_taken; i++) {
        const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t length = sizeof at;
        at.sin_port = 0;
        assert_int_equal(bind(tcp, (struct sockaddr *)&at, sizeof at), 0);
        assert_int_equal(getsockname(tcp, (struct sockaddr *)&at, &length), 0);
        is_taken = bind(udp, (struct sockaddr *)&at, sizeof at) == 0;
        close(tcp);
    }
    assert_true(is_taken);
    return ntohs(at.sin_port);
}

static void a_port_in_use_is_said_with_what_to_do(void **state) {
    (void)state;
    usi_motor_server_def def = rig_def();
    rig_start(&def, true);
    usi_motor_server *second = (usi_motor_server *)&def;
    us_error err;
    def.port = usi_motor_server_port(rig.server);
    assert_int_equal(usi_motor_server_create(&def, &second, &err), US_ERR_IO);
    assert_null(second);
    assert_non_null(strstr(err.message, "in use"));
    assert_non_null(strstr(err.message, "TCP"));
    assert_non_null(strstr(err.remedy, "another port"));
    rig_stop();

    // And when UDP alone is taken.
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    def.port = take_udp_of_a_free_tcp_port(fd);
    assert_int_equal(usi_motor_server_create(&def, &second, &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "UDP"));
    close(fd);

    def.address = "192.0.2.1";  // an address for documents, which no machine has
    assert_int_equal(usi_motor_server_create(&def, &second, &err), US_ERR_IO);
    assert_non_null(strstr(err.remedy, "127.0.0.1"));
    def.address = "robot.example";
    assert_int_equal(usi_motor_server_create(&def, &second, &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "invalid address"));
}

static void settings_that_make_no_server_are_refused(void **state) {
    (void)state;
    usi_motor_server *server = NULL;
    us_error err;
#define REFUSED(field, bad, code)                                              \
    do {                                                                       \
        usi_motor_server_def def_ = rig_def();                                 \
        def_.field = (bad);                                                    \
        assert_int_equal(usi_motor_server_create(&def_, &server, &err), code); \
        assert_null(server);                                                   \
        assert_true(strlen(err.message) > 10);                                 \
    } while (0)
    REFUSED(port, -1, US_ERR_VALUE);
    REFUSED(port, 65536, US_ERR_VALUE);
    REFUSED(max_client, 0, US_ERR_VALUE);
    REFUSED(max_client, 1001, US_ERR_VALUE);
    REFUSED(status_rate, NAN, US_ERR_VALUE);
    REFUSED(message_rate, 0, US_ERR_VALUE);
    REFUSED(byte_rate, -1, US_ERR_VALUE);
    REFUSED(stall_timeout, INFINITY, US_ERR_VALUE);
    REFUSED(idle_timeout, 0, US_ERR_VALUE);
    REFUSED(n_motor, -1, US_ERR_VALUE);
    REFUSED(motors, NULL, US_ERR_ARG);
    REFUSED(address, NULL, US_ERR_ARG);
    static const us_motor_def twice[3] = {{"FLDR", 0}, {"ARM1", 1}, {"FLDR", 2}},
                              odd[3] = {{"FLDR", 0}, {"ARM", 1}, {"A;CD", 2}};
    REFUSED(motors, twice, US_ERR_NAME);
    REFUSED(motors, odd, US_ERR_NAME);
    assert_int_equal(usi_motor_server_create(NULL, &server, NULL), US_ERR_ARG);
    usi_motor_server_def def = rig_def();
    assert_int_equal(usi_motor_server_create(&def, NULL, NULL), US_ERR_ARG);
    usi_motor_server_destroy(NULL);

    test_allocator t;
    test_allocator_init(&t);
    t.fail_at = 1;
    def.allocator = t.allocator;
    assert_int_equal(usi_motor_server_create(&def, &server, &err), US_ERR_MEMORY);
    // And when there is memory, it is asked for once, and given back.
    t.fail_at = 0;
    rig_start(&def, true);
    rig_peer *p = rig_open(SOCK_STREAM);
    rig_say(p, "MSTP;");
    rig_expect(p, "MACKMSTP");
    assert_int_equal(t.n_alloc, 2);
    rig_close(p);
    rig_stop();
    test_allocator_check(&t);
}

static void a_server_listens_on_ipv6_too(void **state) {
    (void)state;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to)) {
        printf("skipped: this machine has no IPv6 loopback\n");
        if (fd >= 0) close(fd);
        return;
    }
    close(fd);
    usi_motor_server_def def = rig_def();
    def.address = "::1";
    rig_start(&def, true);
    to.sin6_port = htons((uint16_t)usi_motor_server_port(rig.server));
    for (int kind = 0; kind < 2; kind++) {
        fd = socket(AF_INET6, (kind ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
        struct timeval patience = {.tv_sec = RIG_DEADLINE};
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
        for (int k = 0; k < 2; k++) {
            char buf[64] = "";
            assert_int_equal(send(fd, "MSTP;", 5, 0), 5);
            assert_int_equal(recv(fd, buf, sizeof buf - 1, 0), 9);
            assert_string_equal(buf, "MACKMSTP;");
        }
        close(fd);
    }
    assert_int_equal(RIG_COUNT(n_joined), 2);
    rig_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_over_tcp_are_handed_over_and_acknowledged),
        cmocka_unit_test(commands_over_udp_are_handed_over_and_acknowledged),
        cmocka_unit_test(bytes_that_come_one_by_one_make_messages),
        cmocka_unit_test(what_is_wrong_is_said_and_the_connection_goes_on),
        cmocka_unit_test(strangers_get_no_answer_until_they_send_a_good_command),
        cmocka_unit_test(a_client_that_has_said_its_last_word_still_gets_its_answers),
        cmocka_unit_test(sixty_four_clients_get_their_own_answers_and_the_next_may_stop_and_no_more),
        cmocka_unit_test(a_storm_of_connections_leaves_nothing_behind),
        cmocka_unit_test(states_are_sent_when_they_change_to_everybody),
        cmocka_unit_test(states_come_at_most_at_their_rate_and_the_last_one_always_comes),
        cmocka_unit_test(a_port_in_use_is_said_with_what_to_do),
        cmocka_unit_test(settings_that_make_no_server_are_refused),
        cmocka_unit_test(a_server_listens_on_ipv6_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
