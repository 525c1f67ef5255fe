// Device faces as a driver sees them: registers, bytes and flags against what the data sheets say.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/device_face.h"

static const double TURN = 6.28318530717958647693;

typedef struct motor {
    usi_lm629 chip;
    usi_lm629_reading now;
} motor;

// Readings stand in the middle of a count.
static const double HALF = 0.0005;

static motor make(void) {
    motor m = {.now = {.time = 1, .position = (0.5 + HALF) * TURN}};
    usi_lm629_init(&m.chip, 1000, 6e6, &m.now);
    return m;
}

static void move(motor *m, double time, double turns) {
    const double position = (turns + HALF) * TURN;
    m->now.velocity = (position - m->now.position) / (time - m->now.time);
    m->now.time = time;
    m->now.position = position;
    (void)usi_lm629_observe(&m->chip, &m->now);
}

static usi_lm629_order command(motor *m, int byte) {
    return usi_lm629_write_command(&m->chip, (uint8_t)byte);
}

static void data(motor *m, uint32_t value, int n) {
    for (int i = n - 1; i >= 0; i--)
        (void)usi_lm629_write_data(&m->chip, (uint8_t)(value >> 8 * i));
}

static int32_t read_number(motor *m, int byte, int n) {
    uint32_t u = 0;
    (void)command(m, byte);
    for (int i = 0; i < n; i++)
        u = u << 8 | usi_lm629_read_data(&m->chip);
    return n == 2 ? (int16_t)u : (int32_t)u;
}

static int status(const motor *m) { return usi_lm629_read_status(&m->chip); }

static void after_a_reset_the_motor_is_off_at_home(void **state) {
    (void)state;
    motor m = make();
    assert_int_equal(status(&m), 0x84);
    (void)command(&m, 0x1D);
    data(&m, 0, 2);
    assert_int_equal(status(&m), 0x80);
    assert_int_equal(read_number(&m, 0x0A, 4), 0);
    move(&m, 2, 1.75);
    assert_int_equal(read_number(&m, 0x0A, 4), 1250);
    (void)command(&m, 0x02);
    assert_int_equal(read_number(&m, 0x0A, 4), 0);
    assert_int_equal(command(&m, 0x00).kind, USI_LM629_OFF);
    assert_int_equal(status(&m), 0x84);
}

// Two turns with 4 turns/s at most and 8 turns/s^2: 0.5 s up, no time to cruise between, 0.5 s down.
static void a_trajectory_is_loaded_started_and_completed(void **state) {
    (void)state;
    motor m = make();
    const double sample = 2048 / 6e6;
    const uint32_t acceleration = (uint32_t)(8 * 1000 * sample * sample * 65536 + 0.5),
                   velocity = (uint32_t)(4 * 1000 * sample * 65536 + 0.5);
    (void)command(&m, 0x1F);
    data(&m, 0x002A, 2);
    data(&m, acceleration, 4);
    data(&m, velocity, 4);
    data(&m, 2000, 4);
    assert_int_equal(status(&m) & 0x80, 0x80);  // loaded is not started
    (void)command(&m, 0x1D);
    data(&m, 0, 2);
    (void)command(&m, 0x1C);
    data(&m, 0x04, 2);
    const usi_lm629_order o = command(&m, 0x01);
    assert_int_equal(o.kind, USI_LM629_TRAPEZOID);
    // A 2^-16 count is 3 % of this acceleration's last digit: 61 of them.
    assert_true(fabs(o.acceleration - 8 * TURN) < 0.01 * 8 * TURN);
    assert_true(fabs(o.velocity - 4 * TURN) < 1e-4 * 4 * TURN);
    assert_true(fabs(o.position - 2.5 * TURN) < 1e-9);
    assert_int_equal(status(&m), 0x00);
    assert_false(usi_lm629_host_interrupt(&m.chip));
    move(&m, 1.25, 0.75);
    assert_int_equal(read_number(&m, 0x0A, 4), 250);
    assert_in_range(read_number(&m, 0x08, 4), 245, 255);  // 0.5 * 8 * 0.25^2 turns
    assert_in_range(read_number(&m, 0x07, 4) / 65536.0 / sample, 1980, 2020);
    assert_int_equal(status(&m) & 0x04, 0);
    move(&m, 2.1, 2.5);
    assert_int_equal(status(&m), 0x04);
    assert_true(usi_lm629_host_interrupt(&m.chip));
    assert_int_equal(read_number(&m, 0x0C, 2) & 0x8500,
                     (int16_t)0x8500 & 0x8500);  // interrupt, on target, 8 bit
    (void)command(&m, 0x1D);
    data(&m, 0xFFFB, 2);
    assert_false(usi_lm629_host_interrupt(&m.chip));
    // A relative position counts from the last goal.
    (void)command(&m, 0x1F);
    data(&m, 0x0003, 2);
    data(&m, (uint32_t)-500, 4);
    assert_true(fabs(command(&m, 0x01).position - 2 * TURN) < 1e-9);
    // While it moves the acceleration stays.
    (void)command(&m, 0x1F);
    data(&m, 0x0020, 2);
    data(&m, acceleration / 2, 4);
    assert_int_equal(command(&m, 0x01).kind, USI_LM629_NOTHING);
    assert_int_equal(status(&m) & 0x02, 0x02);
}

static void velocity_mode_and_the_three_stops(void **state) {
    (void)state;
    motor m = make();
    (void)command(&m, 0x1F);
    data(&m, 0x1828, 2);
    data(&m, 60, 4);
    data(&m, 65536 / 4, 4);
    usi_lm629_order o = command(&m, 0x01);
    assert_int_equal(o.kind, USI_LM629_VELOCITY);
    const double turns = 0.25 * 6e6 / 2048 / 1000;  // per second
    assert_true(fabs(o.velocity - turns * TURN) < 1e-9);
    assert_int_equal(read_number(&m, 0x0C, 2) & 0x1800, 0x1800);
    move(&m, 2, 0.5 + turns);
    assert_int_equal(read_number(&m, 0x0B, 2), 0);  // whole counts per sample: a quarter is none
    assert_int_equal(read_number(&m, 0x07, 4), 65536 / 4);
    (void)command(&m, 0x1F);
    data(&m, 0x0400, 2);
    o = command(&m, 0x01);
    assert_int_equal(o.kind, USI_LM629_TRAPEZOID);
    assert_true(o.position > m.now.position);
    (void)command(&m, 0x1F);
    data(&m, 0x0200, 2);
    assert_int_equal(command(&m, 0x01).kind, USI_LM629_STOP);
    (void)command(&m, 0x1F);
    data(&m, 0x0100, 2);
    assert_int_equal(command(&m, 0x01).kind, USI_LM629_OFF);
    assert_int_equal(status(&m) & 0x84, 0x84);
}

static void flags_follow_what_the_encoder_shows(void **state) {
    (void)state;
    motor m = make();
    (void)command(&m, 0x1D);
    data(&m, 0, 2);
    (void)command(&m, 0x20);  // breakpoint at 100
    data(&m, 100, 4);
    (void)command(&m, 0x03);  // the next index pulse, at a whole turn
    assert_int_equal(read_number(&m, 0x0C, 2) & 1, 1);
    move(&m, 1.1, 0.59);
    assert_int_equal(status(&m), 0x80);
    move(&m, 1.2, 0.61);
    assert_int_equal(status(&m), 0xC0);
    move(&m, 1.3, 1.1);
    assert_int_equal(status(&m), 0xC8);
    assert_int_equal(read_number(&m, 0x09, 4), 500);
    // More than 50 counts from where it should be: reported, and with LPES switched off.
    (void)command(&m, 0x1F);
    data(&m, 0x002A, 2);
    data(&m, 60, 4);
    data(&m, 65536, 4);
    data(&m, 5000, 4);
    (void)command(&m, 0x01);
    (void)command(&m, 0x1A);
    data(&m, 50, 2);
    m.now.time += 1;
    const usi_lm629_order o = usi_lm629_observe(&m.chip, &m.now);
    assert_int_equal(o.kind, USI_LM629_OFF);
    assert_int_equal(status(&m) & 0xA0, 0xA0);
}

static void a_byte_on_the_wrong_side_is_a_command_error(void **state) {
    (void)state;
    motor m = make();
    for (int k = 0; k < 3; k++) {
        (void)command(&m, 0x1D);
        data(&m, 0, 2);
        assert_int_equal(status(&m) & 0x02, 0);
        if (k == 0) (void)usi_lm629_read_data(&m.chip);
        if (k == 1) (void)usi_lm629_write_data(&m.chip, 1);
        if (k == 2) (void)command(&m, 0x77);
        assert_int_equal(status(&m) & 0x02, 0x02);
    }
}

static void random_bytes_never_upset_a_chip(void **state) {
    (void)state;
    motor m = make();
    usi_gyro g;
    usi_adc a = {.volts = {1}};
    usi_gyro_init(&g);
    for (uint64_t k = 0; k < 200000; k++) {
        const uint64_t r = us_random_bits(5, 6, k);
        const uint8_t byte = (uint8_t)(r >> 8);
        uint8_t out[USI_GYRO_PACKET];
        usi_lm629_order o = {.kind = USI_LM629_NOTHING};
        switch (r % 5) {
        case 0:
            o = usi_lm629_write_command(&m.chip, byte % 0x24);
            break;
        case 1:
        case 2:
            o = usi_lm629_write_data(&m.chip, byte);
            break;
        case 3:
            (void)usi_lm629_read_data(&m.chip);
            break;
        default:
            m.now.time += 0.001;
            m.now.position += 0.01 * ((double)byte - 127);
            o = usi_lm629_observe(&m.chip, &m.now);
            break;
        }
        assert_true(isfinite(o.position) && isfinite(o.velocity) && isfinite(o.acceleration));
        assert_true(o.kind != USI_LM629_TRAPEZOID || (o.acceleration > 0 && o.velocity > 0));
        assert_true(m.chip.n_due <= 14 && m.chip.n_written <= 14);
        assert_in_range(usi_gyro_take(&g, byte, out), 0, USI_GYRO_PACKET);
        (void)usi_adc_exchange(&a, byte);
    }
}

static int sample(usi_adc *a, int control) {
    assert_int_equal(usi_adc_exchange(a, (uint8_t)control), 0);
    const int high = usi_adc_exchange(a, 0), low = usi_adc_exchange(a, 0);
    assert_int_equal(high & 0x80, 0);
    assert_int_equal(low & 7, 0);
    return (high << 8 | low) >> 3;
}

static void the_converter_gives_twelve_bits_of_the_chosen_channel(void **state) {
    (void)state;
    usi_adc a = {.volts = {0.0005, 1.0005, 2.0005, 3.0005, 4.0955, 5, -1, NAN}};
    // Channel n: n / 2 in the lower bits, odd ones in the upper.
    const int expected[8] = {0, 1000, 2000, 3000, 4095, 4095, 0, 0};
    for (int n = 0; n < 8; n++)
        assert_int_equal(sample(&a, 0x8F | (n >> 1) << 4 | (n & 1) << 6), expected[n]);
    // Bipolar and differential: two's complement of half the range each way.
    assert_int_equal(sample(&a, 0x80 | 0x03 | 1 << 4), 0x0FFF & -1000);
    assert_int_equal(sample(&a, 0x80 | 0x03 | 5 << 4), 1000);
    // A byte without its start bit converts nothing.
    assert_int_equal(sample(&a, 0x0F), 0);
}

static int word(const uint8_t *at) { return (int16_t)(uint16_t)(at[0] << 8 | at[1]); }

static void the_inertial_unit_answers_letters_with_packets(void **state) {
    (void)state;
    usi_gyro g;
    uint8_t out[USI_GYRO_PACKET];
    usi_gyro_init(&g);
    const double values[8] = {TURN / 12, -TURN / 24, 0, 0, TURN * 25 / 360, 0, -9.80665, 9.80665};
    memcpy(g.values, values, sizeof values);
    assert_int_equal(usi_gyro_take(&g, 'R', out), 1);
    assert_int_equal(out[0], 'H');
    assert_int_equal(usi_gyro_take(&g, 'G', out), 22);
    assert_int_equal(out[0], 0xFF);
    assert_int_equal(word(out + 1), 5461);  // 30 of 180 degrees at 2^15
    assert_int_equal(word(out + 3), -2731);
    assert_int_equal(word(out + 9), 5461);  // 25 of 150 degree/s
    assert_int_equal(word(out + 13), -10923);
    assert_int_equal(word(out + 15), 10923);  // 1 of 3 g
    int sum = 0;
    for (int i = 1; i < 21; i++)
        sum += out[i];
    assert_int_equal(out[21], sum & 0xFF);
    assert_int_equal(usi_gyro_take(&g, 'c', out), 1);
    assert_int_equal(out[0], 'C');
    assert_int_equal(usi_gyro_take(&g, 'G', out), 18);
    assert_int_equal(word(out + 5), 5461);
    // By itself it sends a hundred a second, and nothing more when it is told to wait.
    assert_int_equal(usi_gyro_tick(&g, out), 0);
    (void)usi_gyro_take(&g, 'C', out);
    int n = 0;
    for (int i = 1; i <= 1000; i++) {
        g.time = 0.001 * i;
        n += usi_gyro_tick(&g, out) > 0;
    }
    assert_in_range(n, 90, 100);  // a period is whole ticks, rounded up
    (void)usi_gyro_take(&g, 'P', out);
    g.time += 1;
    assert_int_equal(usi_gyro_tick(&g, out), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_reset_the_motor_is_off_at_home),
        cmocka_unit_test(a_trajectory_is_loaded_started_and_completed),
        cmocka_unit_test(velocity_mode_and_the_three_stops),
        cmocka_unit_test(flags_follow_what_the_encoder_shows),
        cmocka_unit_test(a_byte_on_the_wrong_side_is_a_command_error),
        cmocka_unit_test(random_bytes_never_upset_a_chip),
        cmocka_unit_test(the_converter_gives_twelve_bits_of_the_chosen_channel),
        cmocka_unit_test(the_inertial_unit_answers_letters_with_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
