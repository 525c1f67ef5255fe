// Serial lines of a running robot: the ASCII link, and devices as their drivers see them.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "net_peer.h"
#include "understudy/link.h"

static const char inside[] = "<network timeout='10 s'/>"
                             "<motors port='%d' counts='1000'><motor name='FLDR' joint='front_left_drive'/>"
                             "<motor name='FLST' joint='front_left_steer'/>"
                             "<line name='VBAT' type='analog-in' value='battery.voltage' scale='0.05'/>"
                             "<line name='STER' type='analog-in' value='joint.position' "
                             "joint='front_left_steer' scale='1' offset='2'/>"
                             "</motors>";

static void start(const char *more) {
    char text[1400];
    snprintf(text, sizeof text, inside, net_free_port());
    net_write_k10("serial.xml", text);
    net_run("serial.xml --headless --quiet --serial lines %s", more);
}

static us_link_client *connect_line(void) {
    us_link_client *c = NULL;
    us_error err;
    NET_WAIT(us_link_client_open("serial:lines/k10", NULL, &c, &err) == US_OK);
    NET_WAIT(us_link_client_command(c, "RGET", 0.5, NULL, &err) == US_OK);
    return c;
}

static void the_link_over_a_serial_line(void **state) {
    (void)state;
    start("--rate 2");
    // Again and again: each program on the line is a client of its own.
    for (int i = 0; i < 5; i++) {
        us_link_client *c = connect_line();
        us_link_message m = {0};
        us_error err = {0};
        if (us_link_client_move(c, "RTRN0.2,0.8,20", NET_PATIENCE, &m, &err)) net_fail("RTRN", err.message);
        assert_int_equal(us_link_client_command(c, "FRUNfly", 5, &m, &err), US_ERR_VALUE);
        assert_string_equal(m.reason, "function");
        us_link_client_close(c);
    }
    assert_int_equal(system(US_BINARY_DIR "/examples/square serial:lines/k10 0.3 > square.out 2>&1"), 0);
    // Its names are said, and gone with it.
    struct stat s;
    assert_int_equal(lstat("lines/k10.imu", &s), 0);
    // The terminal behind it is for nobody else.
    assert_true(stat("lines/k10.imu", &s) == 0 && s.st_uid == geteuid() && (s.st_mode & 0777) == 0600);
    assert_int_equal(net_end(SIGINT), 0);
    assert_int_not_equal(lstat("lines/k10", &s), 0);
    assert_int_not_equal(lstat("lines/k10.imu", &s), 0);
}

static void a_name_that_is_taken_is_left_alone_and_a_dead_link_replaced(void **state) {
    (void)state;
    (void)mkdir("lines", 0700);
    net_write_text("lines/k10.adc", "mine\n");
    start("--time 1");
    const int code = net_end(0);
    if (code != 3 || !strstr(net_output(), "lines/k10.adc")) fail_msg("code %d: %s", code, net_output());
    char *text = net_read_text("lines/k10.adc");
    assert_string_equal(text, "mine\n");
    free(text);
    assert_int_equal(unlink("lines/k10.adc"), 0);
    // None of the others was left behind.
    struct stat s;
    assert_int_not_equal(lstat("lines/k10", &s), 0);
    assert_int_equal(symlink("/dev/pts/99999", "lines/k10"), 0);
    start("--rate 1");
    us_link_client_close(connect_line());
    assert_int_equal(net_end(SIGINT), 0);
}

// ---------------------------------------------------------------- devices

static int open_line(const char *path) {
    int fd = -1;
    NET_WAIT((fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK)) >= 0);
    struct termios t;
    assert_int_equal(tcgetattr(fd, &t), 0);
    cfmakeraw(&t);
    assert_int_equal(tcsetattr(fd, TCSANOW, &t), 0);
    return fd;
}

static void say(int fd, const void *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        const ssize_t done = write(fd, (const uint8_t *)bytes + at, n - at);
        if (done > 0) at += (size_t)done;
        if (done < 0 && errno != EAGAIN) fail_msg("the line is closed: %s", strerror(errno));
        if (done < 0) net_nap();
    }
}

static void hear(int fd, void *bytes, size_t n) {
    const double until = net_clock() + NET_PATIENCE;
    for (size_t at = 0; at < n;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)poll(&p, 1, 100);
        const ssize_t got = read(fd, (uint8_t *)bytes + at, n - at);
        if (got > 0) at += (size_t)got;
        if (net_clock() > until) net_fail("waited for", "bytes of a serial line");
    }
}

static uint8_t operate(int fd, char operation, int chip, int value) {
    const uint8_t frame[3] = {(uint8_t)operation, (uint8_t)chip, (uint8_t)value};
    uint8_t out[2];
    say(fd, frame, sizeof frame);
    hear(fd, out, sizeof out);
    assert_int_equal(out[0], 0x06);
    return out[1];
}

static void put(int fd, int chip, uint32_t value, int n) {
    for (int i = n - 1; i >= 0; i--)
        operate(fd, 'D', chip, (int)(value >> 8 * i & 0xFF));
}

static int32_t get(int fd, int chip, int command, int n) {
    uint32_t u = 0;
    operate(fd, 'C', chip, command);
    for (int i = 0; i < n; i++)
        u = u << 8 | operate(fd, 'R', chip, 0);
    return (int32_t)u;
}

// A driver sets a steering motor to a position and waits for the interrupt, as it would at the chip.
static void a_driver_moves_a_motor_by_its_controller(void **state) {
    (void)state;
    start("--rate 1");
    net_peer *p = net_open("cyclone");
    const int32_t joints = net_listen(p, "/k10/joint_states", usi_type_joint_state);
    NET_WAIT(net_count(p, joints) > 0);
    const int fd = open_line("lines/k10.lm629"), chip = 1;
    // The chips have their first readings with the first steps.
    NET_WAIT(operate(fd, 'S', chip, 0) == 0x84);
    operate(fd, 'C', chip, 0x00);
    assert_int_equal(operate(fd, 'S', chip, 0), 0x84);
    operate(fd, 'C', chip, 0x1D);
    put(fd, chip, 0, 2);
    assert_int_equal(operate(fd, 'S', chip, 0), 0x80);
    // 50 counts of 1000 for a turn, 0.314 rad: 80 counts/s and 400 counts/s^2.
    const double sample = 2048 / 6e6;
    operate(fd, 'C', chip, 0x1F);
    put(fd, chip, 0x002A, 2);
    put(fd, chip, (uint32_t)(400 * sample * sample * 65536 + 0.5), 4);
    put(fd, chip, (uint32_t)(80 * sample * 65536 + 0.5), 4);
    put(fd, chip, 50, 4);
    operate(fd, 'C', chip, 0x1C);
    put(fd, chip, 0x04, 2);
    assert_int_equal(operate(fd, 'I', chip, 0), 0);
    operate(fd, 'C', chip, 0x01);
    NET_WAIT(operate(fd, 'I', chip, 0) == 1);
    assert_int_equal(operate(fd, 'S', chip, 0) & 0x84, 0x04);
    // A wheel that stands scrubs when it steers: 0.03 rad, 5 counts.
    NET_WAIT(abs(get(fd, chip, 0x0A, 4) - 50) <= 5);
    assert_int_equal(get(fd, chip, 0x08, 4), 50);
    const us_msg_joint_state *m = net_decode(p, joints, -1);
    double angle = NAN;
    for (uint32_t i = 0; i < m->name._length; i++) {
        if (strcmp(m->name._buffer[i], "front_left_steer") == 0) angle = m->position._buffer[i];
    }
    assert_true(fabs(angle - 0.314) < 0.035);
    // What is no frame of a chip is answered, too.
    const uint8_t strange[6] = {'X', 0, 0, 'S', 9, 0};
    uint8_t out[4];
    say(fd, strange, sizeof strange);
    hear(fd, out, sizeof out);
    assert_memory_equal(out, "\x15\x01\x15\x02", 4);
    close(fd);
    net_close(p);
    assert_int_equal(net_end(SIGINT), 0);
}

static void a_driver_reads_converter_and_inertial_unit(void **state) {
    (void)state;
    start("--rate 1");
    int fd = open_line("lines/k10.adc");
    const uint8_t ask[6] = {0x8F, 0, 0, 0xCF, 0, 0};  // channel 0, then 1
    uint8_t out[22];
    int volts[2];
    do {
        say(fd, ask, sizeof ask);
        hear(fd, out, 6);
        volts[0] = (out[1] << 8 | out[2]) >> 3;
        volts[1] = (out[4] << 8 | out[5]) >> 3;
    } while (volts[1] == 0);
    // 48 V, full: 106 % of it, a twentieth; a steering angle of 0 with 2 V.
    assert_in_range(volts[0], 2300, 2600);
    assert_in_range(volts[1], 1980, 2020);
    close(fd);
    fd = open_line("lines/k10.imu");
    say(fd, "R", 1);
    hear(fd, out, 1);
    assert_int_equal(out[0], 'H');
    say(fd, "G", 1);
    hear(fd, out, 22);
    assert_int_equal(out[0], 0xFF);
    const int up = (int16_t)(uint16_t)(out[15] << 8 | out[16]);
    assert_in_range(up, 10500, 11300);  // 1 of 3 g
    say(fd, "C", 1);
    for (int i = 0; i < 20; i++) {
        int sum = 0;
        hear(fd, out, 22);
        for (int k = 1; k < 21; k++)
            sum += out[k];
        assert_int_equal(out[0], 0xFF);
        assert_int_equal(out[21], sum & 0xFF);
    }
    close(fd);
    assert_int_equal(net_end(SIGINT), 0);
}

// Whatever comes over the lines, the robot goes on.
static void random_bytes_on_every_line(void **state) {
    (void)state;
    start("--rate 1");
    static const char *const lines[] = {"lines/k10", "lines/k10.lm629", "lines/k10.adc", "lines/k10.imu"};
    uint64_t counter = 0;
    for (int i = 0; i < 4; i++) {
        const int fd = open_line(lines[i]);
        for (int k = 0; k < 50; k++) {
            uint8_t bytes[60], ignored[4096];
            for (size_t b = 0; b < sizeof bytes; b++)
                bytes[b] = (uint8_t)us_random_bits(7, 7, counter++);
            say(fd, bytes, sizeof bytes);
            while (read(fd, ignored, sizeof ignored) > 0) {
            }
        }
        close(fd);
    }
    us_link_client *c = connect_line();
    us_error err = {0};
    if (us_link_client_command(c, "RSTP", NET_PATIENCE, NULL, &err)) net_fail("RSTP", err.message);
    us_link_client_close(c);
    assert_int_equal(net_end(SIGINT), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_link_over_a_serial_line),
        cmocka_unit_test(a_name_that_is_taken_is_left_alone_and_a_dead_link_replaced),
        cmocka_unit_test(a_driver_moves_a_motor_by_its_controller),
        cmocka_unit_test(a_driver_reads_converter_and_inertial_unit),
        cmocka_unit_test(random_bytes_on_every_line),
    };
    return cmocka_run_group_tests(tests, NULL, net_teardown);
}
