// Where commands wait for the tick: a flood keeps no stop out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/mailbox.h"
#include "spec/publication.h"
#include "wire/messages.h"

static usi_mailbox box;
static uint64_t mails[USI_MAILBOX_SIZE / 8];
static uint8_t bytes[USI_MAIL_MAX];

static size_t encode_twist(double vx) {
    us_msg_twist m = {{vx, 0, 0}, {0, 0, 0}};
    size_t n = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &m, bytes, sizeof bytes, &n), US_OK);
    return n;
}

static size_t encode_text(char *text) {
    us_msg_string m = {text};
    size_t n = 0;
    assert_int_equal(us_message_encode(usi_type_string, &m, bytes, sizeof bytes, &n), US_OK);
    return n;
}

// Messages of all lengths until not even the shortest fits.
static void flood(void) {
    for (size_t length = USI_MAIL_MAX; length > 0; length /= 2) {
        while (usi_mailbox_put(&box, USI_COMMAND_TWIST, "flood", bytes, length) == US_OK)
            continue;
    }
}

static void stops_have_room_where_nothing_else_has(void **state) {
    (void)state;
    usi_mailbox_init(&box);
    memset(bytes, 0xff, sizeof bytes);
    flood();
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_TWIST, "operator", bytes, encode_twist(0.1)),
                     US_ERR_LIMIT);
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_TWIST, "operator", bytes, encode_twist(0)), US_OK);
    char all[] = "MSTP", one[] = "MSTPFLDR", move[] = "MMOVFLDRV0";
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_MOTOR_TEXT, "motor:1", bytes, encode_text(all)),
                     US_OK);
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_MOTOR_TEXT, "motor:1", bytes, encode_text(one)),
                     US_OK);
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_MOTOR_TEXT, "motor:1", bytes, encode_text(move)),
                     US_ERR_LIMIT);
    // All that fitted comes out, the stops last; then there is room again.
    size_t used = usi_mailbox_take(&box, mails), at = 0;
    int32_t n_stop = 0;
    for (const usi_mail *m; (m = usi_mail_next(mails, used, &at));)
        n_stop += strcmp(m->source, "flood") != 0;
    assert_int_equal(n_stop, 3);
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_TWIST, "operator", bytes, encode_twist(0.1)), US_OK);
    usi_mailbox_fini(&box);
}

// The reserve has an end, too, and what is lost there is counted.
static void a_flood_of_stops_ends_at_the_box(void **state) {
    (void)state;
    usi_mailbox_init(&box);
    const size_t n = encode_twist(0);
    int64_t n_put = 0;
    while (usi_mailbox_put(&box, USI_COMMAND_TWIST, "operator", bytes, n) == US_OK)
        n_put++;
    assert_true(n_put * (int64_t)(sizeof(usi_mail) + n) <= USI_MAILBOX_SIZE);
    assert_int_equal(usi_mailbox_n_dropped(&box), 1);
    usi_mailbox_fini(&box);
}

static void what_only_looks_like_a_stop_is_none(void **state) {
    (void)state;
    usi_mailbox_init(&box);
    memset(bytes, 0xff, sizeof bytes);
    flood();
    memset(bytes, 0, sizeof bytes);
    // Too short for six numbers; another topic; a text that ends before its word.
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_TWIST, "x", bytes, 20), US_ERR_LIMIT);
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_TWIST, "x", bytes, 0), US_ERR_LIMIT);
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_ASK_MOTORS, "x", bytes, 52), US_ERR_LIMIT);
    memcpy(bytes + 8, "MST", 3);
    assert_int_equal(usi_mailbox_put(&box, USI_COMMAND_MOTOR_TEXT, "x", bytes, 11), US_ERR_LIMIT);
    usi_mailbox_fini(&box);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_have_room_where_nothing_else_has),
        cmocka_unit_test(a_flood_of_stops_ends_at_the_box),
        cmocka_unit_test(what_only_looks_like_a_stop_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
