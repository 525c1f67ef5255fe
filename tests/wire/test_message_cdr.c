// Messages to bytes and back: golden bytes, every type, both orders of bytes, Cyclone's own coder, and bytes
// that lie.
#include "test_message_support.h"

// The inner headers of Cyclone say asm, which strict C spells otherwise.
#define asm __asm__
#include <dds/ddsi/ddsi_cdrstream.h>
#undef asm

enum { BUF = 1 << 16 };
static uint8_t buf[BUF], other[BUF];

static void assert_bytes(const uint8_t *bytes, size_t length, const char *hex) {
    char text[2048] = "";
    for (size_t i = 0; i < length && 2 * i + 3 < sizeof text; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    char plain[2048] = "";
    size_t n = 0;
    for (; *hex; hex++) {
        if (*hex != ' ') plain[n++] = *hex;
    }
    assert_string_equal(text, plain);
}

// ---- golden bytes
// ----------------------------------------------------------------

static void a_string_carries_its_length_with_the_end(void **state) {
    (void)state;
    us_msg_string message = {.data = usi_text("Hi")};
    assert_bytes(buf, encode(usi_type_string, &message, buf, BUF), "00010000 03000000 486900");
    // NULL stands for "".
    message.data = NULL;
    assert_bytes(buf, encode(usi_type_string, &message, buf, BUF), "00010000 01000000 00");
    const us_msg_string *back = decode(usi_type_string, buf, 9);
    assert_string_equal(back->data, "");
}

static void numbers_are_aligned_from_the_end_of_the_header(void **state) {
    (void)state;
    us_msg_tick_hash message = {.tick = 0x0102030405060708, .hash = 0x1112131415161718};
    assert_bytes(buf, encode(usi_type_tick_hash, &message, buf, BUF),
                 "00010000 0807060504030201 1817161514131211");
    // status int8 at 0, service uint16 at 2.
    us_msg_nav_sat_status status = {.status = -2, .service = 0x0102};
    assert_bytes(buf, encode(usi_type_nav_sat_status, &status, buf, BUF), "00010000 fe00 0201");
    // Header: sec, nanosec, "ab"; then a double array at the next multiple of 8.
    us_msg_twist_stamped twist = {
        .header.stamp = {1, 2}, .header.frame_id = usi_text("ab"), .twist.linear.x = 1.0};
    size_t length = encode(usi_type_twist_stamped, &twist, buf, BUF);
    assert_int_equal(length, 4 + 16 + 48);
    assert_bytes(buf, 28, "00010000 01000000 02000000 03000000 61620000 000000000000f03f");
}

static void an_empty_sequence_is_its_count_alone(void **state) {
    (void)state;
    // Three empty sequences of doubles and a Duration: no padding to 8 anywhere but before the one number.
    double position = 1.0;
    us_msg_joint_trajectory_point point = {.positions = {1, 1, &position, false}, .time_from_start = {3, 4}};
    assert_bytes(buf, encode(usi_type_joint_trajectory_point, &point, buf, BUF),
                 "00010000 01000000 00000000 000000000000f03f 00000000 00000000 00000000 03000000 04000000");
}

static void a_message_without_members_is_one_byte(void **state) {
    (void)state;
    us_msg_empty message = {0};
    assert_bytes(buf, encode(usi_type_empty, &message, buf, BUF), "00010000 00");
    decode(usi_type_empty, buf, 5);
}

// What rmw_cyclonedds puts before a request: the client's id and the number, then the members of the .srv.
static void a_request_begins_with_the_16_bytes_of_its_client_and_number(void **state) {
    (void)state;
    us_msg_pose_estimator_request message = {
        .guid = 0x0807060504030201u, .seq = 0x1122334455667788, .command.header.frame_id = usi_text("m")};
    message.command.sequence = 5;
    message.command.mode = 1;
    message.command.pose.orientation.w = 1;
    assert_bytes(
        buf, encode(usi_type_pose_estimator_request, &message, buf, BUF),
        "00010000 0102030405060708 8877665544332211 00000000 00000000 02000000 6d00 0000 05000000 01 000000 "
        "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
        "0000000000000000 000000000000f03f");
    us_msg_navigator_response reply = {.guid = 1, .seq = 2, .accepted = true, .message = usi_text("")};
    reply.status.header.frame_id = reply.status.message = usi_text("");
    reply.status.distance = 1;
    assert_bytes(buf, encode(usi_type_navigator_response, &reply, buf, BUF),
                 "00010000 0100000000000000 0200000000000000 01 000000 01000000 00 00 0000 00000000 00000000 "
                 "01000000 00 000000 00000000 "
                 "00 000000 01000000 00 000000 00000000 000000000000f03f 00");
}

// ---- every type
// ----------------------------------------------------------------

// Runs `check` on n messages of each type.
static void with_every_type(uint64_t n,
                            void (*check)(const us_message_type *type, const void *message, size_t length)) {
    static maker m;
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const us_message_type *type = us_message_get_type(i);
        for (uint64_t seed = 0; seed < n; seed++) {
            m = (maker){.seed = seed * 1000 + (uint64_t)i};
            const void *message = make_any(&m, type);
            check(type, message, encode(type, message, buf, BUF));
            maker_free(&m);
        }
    }
}

static void check_round_trip(const us_message_type *type, const void *message, size_t length) {
    const void *back = decode(type, buf, length);
    assert_same_message(type, message, back);
    assert_int_equal(encode(type, back, other, BUF), length);
    assert_memory_equal(buf, other, length);
    // Up to three bytes of padding may follow.
    memset(buf + length, 0xee, 3);
    assert_same_message(type, message, decode(type, buf, length + 3));
}
static void every_type_comes_back_as_it_went(void **state) {
    (void)state;
    with_every_type(12, check_round_trip);
}

// Cyclone's own serialiser, from the same struct and idlc's description of it.
static void check_cyclone(const us_message_type *type, const void *message, size_t length) {
    const uint32_t *ops = usi_message_descriptor(type)->m_ops;
    dds_ostreamLE_t little;
    dds_ostreamLE_init(&little, 0, 1);
    assert_non_null(dds_stream_writeLE(&little, message, ops));
    assert_int_equal(little.x.m_index, length - 4);
    assert_memory_equal(little.x.m_buffer, buf + 4, length - 4);
    dds_ostreamLE_fini(&little);

    // The same in the other order of bytes, which nobody but Cyclone writes for us.
    static const uint8_t header[4] = {0, 0, 0, 0};
    dds_ostreamBE_t big;
    dds_ostreamBE_init(&big, 0, 1);
    assert_non_null(dds_stream_writeBE(&big, message, ops));
    assert_int_equal(big.x.m_index, length - 4);
    memcpy(other, header, 4);
    memcpy(other + 4, big.x.m_buffer, length - 4);
    dds_ostreamBE_fini(&big);
    assert_same_message(type, message, decode(type, other, length));
}
static void bytes_are_those_that_cyclone_writes_and_its_big_endian_is_read(void **state) {
    (void)state;
    with_every_type(12, check_cyclone);
}

static void check_room(const us_message_type *type, const void *message, size_t length) {
    const void *back = NULL;
    us_error err;
    // Too small a buffer: said, with the length that is needed, and not a byte beyond its end.
    size_t needed = 0;
    for (size_t cap = 0; cap < length; cap += 1 + cap / 4) {
        memset(other, 0xcd, length + 8);
        assert_int_equal(us_message_encode(type, message, other, cap, &needed), US_ERR_LIMIT);
        assert_int_equal(needed, length);
        for (size_t i = cap; i < length + 8; i++)
            assert_int_equal(other[i], 0xcd);
    }
    // Too little memory to decode into: refused, and nothing behind it is touched. By halving, down to the
    // smallest that is enough.
    size_t refused = 0, enough = ROOM - 1;
    while (enough - refused > 1) {
        size_t cap = (refused + enough) / 2;
        room[cap] = 0xcd;
        us_status status = us_message_decode(type, buf, length, room, cap, &back, &err);
        assert_int_equal(room[cap], 0xcd);
        assert_true(status == US_OK || status == US_ERR_LIMIT);
        if (status == US_OK)
            enough = cap;
        else
            refused = cap;
    }
    assert_true(enough >= us_message_size(type));
    assert_int_equal(us_message_decode(type, buf, length, room, enough, &back, &err), US_OK);
    assert_same_message(type, message, back);
}
static void too_little_room_is_refused_and_nothing_beyond_it_is_touched(void **state) {
    (void)state;
    with_every_type(12, check_room);
}

// ---- bytes that lie
// ----------------------------------------------------------------

// The bytes stand at the very end of a heap block, where sanitizers see a read beyond them.
static us_status decode_copy(const us_message_type *type, const uint8_t *bytes, size_t length,
                             us_error *err) {
    uint8_t *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    const void *message = NULL;
    us_status status = us_message_decode(type, copy, length, room, ROOM, &message, err);
    if (status == US_OK) {
        // What was accepted can be sent on, and is the same message then.
        size_t n = 0;
        assert_int_equal(us_message_encode(type, message, other, BUF, &n), US_OK);
    }
    size_t n_text = 0;
    char text[64];
    us_status printed = us_message_print(type, copy, length, 3, text, sizeof text, &n_text, NULL);
    if (status == US_OK) assert_int_equal(printed, US_OK);
    us_message_get_number(type, copy, length, "header.stamp.sec");
    free(copy);
    return status;
}

static void check_truncation(const us_message_type *type, const void *message, size_t length) {
    (void)message;
    us_error err;
    for (size_t n = 0; n < length; n++) {
        err = (us_error){0};
        assert_int_equal(decode_copy(type, buf, n, &err), US_ERR_SYNTAX);
        assert_true(err.message[0] != 0);
    }
    assert_int_equal(decode_copy(type, buf, length, &err), US_OK);
}
static void a_message_cut_anywhere_is_refused(void **state) {
    (void)state;
    with_every_type(6, check_truncation);
}

static void check_damage(const us_message_type *type, const void *message, size_t length) {
    (void)message;
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    size_t stride = 1 + length / 150;
    for (size_t i = 0; i < length; i += stride) {
        uint8_t kept = buf[i];
        for (size_t k = 0; k < sizeof values; k++) {
            buf[i] = values[k];
            us_error err;
            us_status status = decode_copy(type, buf, length, &err);
            assert_true(status == US_OK || status == US_ERR_SYNTAX || status == US_ERR_LIMIT);
        }
        buf[i] = kept;
    }
}
static void damaged_bytes_are_read_or_refused_but_never_crash(void **state) {
    (void)state;
    with_every_type(5, check_damage);
}

static void expect_refusal(const us_message_type *type, const uint8_t *bytes, size_t length,
                           const char *part) {
    us_error err = {0};
    const void *message = NULL;
    assert_int_equal(us_message_decode(type, bytes, length, room, ROOM, &message, &err), US_ERR_SYNTAX);
    if (!strstr(err.message, part)) fail_msg("\"%s\" does not say \"%s\"", err.message, part);
    assert_string_equal(err.element, us_message_name(type));
}

static void a_refusal_names_the_member_and_the_reason(void **state) {
    (void)state;
    // 4 GB of octets in a packet of 20 bytes.
    const uint8_t huge[] = {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0,    1,    0,    0, 0, 0, 0,
                            0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4};
    expect_refusal(usi_type_command_record, huge, sizeof huge,
                   "data: the sequence claims more elements than bytes are left");
    // As many as bytes are left would fit the count, but each transform takes more than a byte.
    const uint8_t many[] = {0, 1, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    expect_refusal(usi_type_tf_message, many, sizeof many, "transforms: the sequence claims more");
    const uint8_t no_end[] = {0, 1, 0, 0, 2, 0, 0, 0, 'a', 'b'};
    expect_refusal(usi_type_string, no_end, sizeof no_end, "data: the string does not end with a 0");
    const uint8_t inside[] = {0, 1, 0, 0, 4, 0, 0, 0, 'a', 0, 'b', 0};
    expect_refusal(usi_type_string, inside, sizeof inside, "0 byte inside");
    const uint8_t truth[] = {0, 1, 0, 0, 2};
    expect_refusal(usi_type_bool, truth, sizeof truth, "neither 0 nor 1");
    const uint8_t left_over[] = {0, 1, 0, 0, 1, 0, 0, 0, 0};
    expect_refusal(usi_type_bool, left_over, sizeof left_over, "more than one message");
    const uint8_t xcdr2[] = {0, 7, 0, 0, 1};
    expect_refusal(usi_type_bool, xcdr2, sizeof xcdr2, "encoding 0007 is not plain CDR");
    expect_refusal(usi_type_bool, xcdr2, 3, "too few");

    // The second transform's child frame, deep inside.
    us_msg_transform_stamped two[2] = {{.child_frame_id = usi_text("a")},
                                       {.child_frame_id = usi_text("bcde")}};
    us_msg_tf_message tf = {.transforms = {2, 2, two, false}};
    size_t length = encode(usi_type_tf_message, &tf, buf, BUF);
    uint8_t *text = memmem(buf, length, "bcde", 5);
    assert_non_null(text);
    text[4] = 'f';
    expect_refusal(usi_type_tf_message, buf, length, "transforms[1].child_frame_id: the string does not end");
}

static void bounded_strings_keep_their_bound(void **state) {
    (void)state;
    static us_msg_node_entities_info node;
    memset(node.node_name, 'x', 256);
    size_t length = encode(usi_type_node_entities_info, &node, buf, BUF);
    const us_msg_node_entities_info *back = decode(usi_type_node_entities_info, buf, length);
    assert_string_equal(back->node_name, node.node_name);
    // One more: the struct has no end for it, so it cannot be sent...
    size_t n = 0;
    memset(node.node_name, 'x', 257);
    assert_int_equal(us_message_encode(usi_type_node_entities_info, &node, buf, BUF, &n), US_ERR_ARG);
    // ... and bytes that have it do not get into a struct.
    static uint8_t bytes[4 + 4 + 258 + 2 + 16] = {0, 1, 0, 0, 2, 1};  // 258 characters with the end
    memset(bytes + 8, 'y', 257);
    expect_refusal(usi_type_node_entities_info, bytes, sizeof bytes,
                   "node_namespace: the string is longer than its type allows");
}

static void wrong_arguments_are_said(void **state) {
    (void)state;
    us_msg_bool message = {.data = true};
    const void *back = NULL;
    size_t n = 0;
    us_error err;
    assert_int_equal(us_message_encode(NULL, &message, buf, BUF, &n), US_ERR_ARG);
    assert_int_equal(us_message_encode(usi_type_bool, NULL, buf, BUF, &n), US_ERR_ARG);
    assert_int_equal(us_message_encode(usi_type_bool, &message, buf, BUF, NULL), US_ERR_ARG);
    n = encode(usi_type_bool, &message, buf, BUF);
    assert_int_equal(us_message_decode(NULL, buf, n, room, ROOM, &back, &err), US_ERR_ARG);
    assert_int_equal(us_message_decode(usi_type_bool, NULL, n, room, ROOM, &back, &err), US_ERR_ARG);
    assert_int_equal(us_message_decode(usi_type_bool, buf, n, NULL, ROOM, &back, &err), US_ERR_ARG);
    assert_int_equal(us_message_decode(usi_type_bool, buf, n, room + 8, ROOM - 8, &back, &err), US_ERR_ARG);
    assert_int_equal(us_message_decode(usi_type_bool, buf, n, room, ROOM, NULL, &err), US_ERR_ARG);
    // A sequence that has a length and no elements.
    us_msg_float64_multi_array array = {.data = {2, 2, NULL, false}};
    assert_int_equal(us_message_encode(usi_type_float64_multi_array, &array, buf, BUF, &n), US_ERR_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_carries_its_length_with_the_end),
        cmocka_unit_test(numbers_are_aligned_from_the_end_of_the_header),
        cmocka_unit_test(an_empty_sequence_is_its_count_alone),
        cmocka_unit_test(a_message_without_members_is_one_byte),
        cmocka_unit_test(a_request_begins_with_the_16_bytes_of_its_client_and_number),
        cmocka_unit_test(every_type_comes_back_as_it_went),
        cmocka_unit_test(bytes_are_those_that_cyclone_writes_and_its_big_endian_is_read),
        cmocka_unit_test(too_little_room_is_refused_and_nothing_beyond_it_is_touched),
        cmocka_unit_test(a_message_cut_anywhere_is_refused),
        cmocka_unit_test(damaged_bytes_are_read_or_refused_but_never_crash),
        cmocka_unit_test(a_refusal_names_the_member_and_the_reason),
        cmocka_unit_test(bounded_strings_keep_their_bound),
        cmocka_unit_test(wrong_arguments_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
