// Messages of Foxglove clients: what is taken, what is refused and why; and the bytes of the frames.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/foxglove.h"

static usi_foxglove_message m;
static us_error err;

static us_status parse(const char *text) { return usi_foxglove_parse(false, text, strlen(text), &m, &err); }

static void frames_are_these_bytes(void **state) {
    (void)state;
    uint8_t data[USI_FOXGLOVE_DATA_HEAD], time[USI_FOXGLOVE_TIME_SIZE];
    usi_foxglove_put_data(data, 0x01020304, 0x1112131415161718);
    assert_memory_equal(data, "\x01\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11", 13);
    usi_foxglove_put_time(time, 1500000000);
    assert_memory_equal(time, "\x02\x00\x2f\x68\x59\x00\x00\x00\x00", 9);
}

static void good_messages_are_taken(void **state) {
    (void)state;
    assert_int_equal(parse(" {\"op\":\"subscribe\",\"subscriptions\":[{\"id\":0,\"channelId\":3},{"
                           "\"channelId\":5,\"id\":4294967295,\"x\":[]}]}"),
                     US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_SUBSCRIBE);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.list[0].id, 0);
    assert_int_equal(m.list[0].channel, 3);
    assert_int_equal(m.list[1].id, 4294967295u);
    assert_int_equal(m.list[1].channel, 5);
    assert_int_equal(parse("{\"op\":\"unsubscribe\",\"subscriptionIds\":[7,8]}"), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_UNSUBSCRIBE);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.list[1].id, 8);
    assert_int_equal(parse("{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"topic\":\"/"
                           "a\",\"encoding\":\"cdr\",\"schemaName\":\"b/msg/C\",\"schema\":\"x\\ny\"},"
                           "{\"id\":2,\"topic\":\"/d\",\"encoding\":\"json\",\"schemaName\":\"e\"}]}"),
                     US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_ADVERTISE);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.channels[0].topic, "/a");
    assert_string_equal(m.channels[0].schema, "b/msg/C");
    assert_true(m.channels[0].is_cdr);
    assert_false(m.channels[1].is_cdr);
    assert_int_equal(parse("{\"op\":\"unadvertise\",\"channelIds\":[]}"), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_UNADVERTISE);
    assert_int_equal(m.n, 0);
    assert_int_equal(usi_foxglove_parse(true, "\x01\x04\x03\x02\x01pay", 8, &m, &err), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_DATA);
    assert_int_equal(m.id, 0x01020304);
    assert_int_equal(m.length, 3);
    assert_memory_equal(m.bytes, "pay", 3);
    assert_int_equal(usi_foxglove_parse(true, "\x01\x04\x03\x02\x01", 5, &m, &err), US_OK);
    assert_int_equal(m.length, 0);
}

static void parameters_files_and_calls_come_out_as_they_were_sent(void **state) {
    (void)state;
    assert_int_equal(parse("{\"op\":\"getParameters\",\"parameterNames\":[\"/a\",\"/b\"],\"id\":\"r-1\"}"),
                     US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_GET);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.parameters[1].name, "/b");
    assert_string_equal(m.request, "r-1");
    assert_int_equal(parse("{\"op\":\"setParameters\",\"parameters\":[{\"name\":\"/a\",\"value\":2.5},"
                           "{\"name\":\"/b\",\"value\":true},{\"name\":\"/c\",\"value\":\"x y\"},"
                           "{\"name\":\"/d\",\"value\":[1]},{\"name\":\"/e\"}]}"),
                     US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_SET);
    assert_int_equal(m.n, 5);
    assert_string_equal(m.request, "");
    assert_int_equal(m.parameters[0].kind, USI_FOXGLOVE_NUMBER);
    assert_true(m.parameters[0].number == 2.5);
    assert_int_equal(m.parameters[1].kind, USI_FOXGLOVE_BOOL);
    assert_true(m.parameters[1].number == 1);
    assert_int_equal(m.parameters[2].kind, USI_FOXGLOVE_TEXT);
    assert_string_equal(m.parameters[2].text, "x y");
    assert_int_equal(m.parameters[3].kind, USI_FOXGLOVE_NOTHING);
    assert_int_equal(m.parameters[4].kind, USI_FOXGLOVE_NOTHING);
    assert_int_equal(parse("{\"op\":\"subscribeParameterUpdates\",\"parameterNames\":[]}"), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_WATCH);
    assert_int_equal(parse("{\"op\":\"unsubscribeParameterUpdates\",\"parameterNames\":[\"/a\"]}"), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_UNWATCH);
    assert_int_equal(parse("{\"op\":\"fetchAsset\",\"uri\":\"package://a/b.stl\",\"requestId\":9}"), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_FETCH);
    assert_string_equal(m.uri, "package://a/b.stl");
    assert_int_equal(m.id, 9);
    static const char call[] = "\x02\x03\0\0\0\x05\0\0\0\x03\0\0\0cdrpay";
    assert_int_equal(usi_foxglove_parse(true, call, sizeof call - 1, &m, &err), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_CALL);
    assert_int_equal(m.id, 3);
    assert_int_equal(m.call, 5);
    assert_true(m.is_cdr);
    assert_int_equal(m.length, 3);
    assert_memory_equal(m.bytes, "pay", 3);
    for (size_t n = 1; n < 16; n++)
        assert_int_equal(usi_foxglove_parse(true, call, n, &m, &err), US_ERR_SYNTAX);
    assert_int_equal(usi_foxglove_parse(true, call, 16, &m, &err), US_OK);
    assert_int_equal(m.length, 0);
    uint8_t out[USI_FOXGLOVE_REPLY_HEAD];
    usi_foxglove_put_reply(out, 3, 5);
    assert_memory_equal(out, "\x03\x03\0\0\0\x05\0\0\0\x03\0\0\0cdr", USI_FOXGLOVE_REPLY_HEAD);
    usi_foxglove_put_asset(out, 9, 0);
    assert_memory_equal(out, "\x04\x09\0\0\0\0\0\0\0\0", USI_FOXGLOVE_ASSET_HEAD);
    usi_foxglove_put_asset(out, 9, 2);
    assert_memory_equal(out, "\x04\x09\0\0\0\1\2\0\0\0", USI_FOXGLOVE_ASSET_HEAD);
}

static void what_others_may_say_is_passed_over_by_name(void **state) {
    (void)state;
    assert_int_equal(parse("{\"op\":\"subscribeConnectionGraph\",\"x\":[{\"a\":[null,true,1.5]}]}"), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_OTHER);
    assert_string_equal(m.name, "subscribeConnectionGraph");
    assert_int_equal(
        parse("{\"op\":\"a name that is much longer than any name that anybody has thought of\"}"), US_OK);
    assert_string_equal(m.name, "a");
    assert_int_equal(parse("{\"op\":\"anamethatismuchlongerthananynamethatanybodyhasthoughtof\"}"), US_OK);
    assert_int_equal(strlen(m.name), sizeof m.name - 1);
    assert_int_equal(usi_foxglove_parse(true, "\x09", 1, &m, &err), US_OK);
    assert_int_equal(m.op, USI_FOXGLOVE_OTHER);
    assert_string_equal(m.name, "");
}

static void bad_messages_are_refused_with_a_reason(void **state) {
    (void)state;
    static const struct {
        const char *text;
        us_status status;
        const char *why;
    } cases[] = {
        {"", US_ERR_SYNTAX, "not JSON"},
        {"nonsense", US_ERR_SYNTAX, "not JSON"},
        {"{\"op\":\"subscribe\"", US_ERR_SYNTAX, "not JSON"},
        {"[]", US_ERR_SYNTAX, "op"},
        {"{}", US_ERR_SYNTAX, "op"},
        {"{\"op\":1}", US_ERR_SYNTAX, "op"},
        {"{\"op\":\"subscribe\"}", US_ERR_VALUE, "\"subscriptions\" is not a list"},
        {"{\"op\":\"subscribe\",\"subscriptions\":{}}", US_ERR_VALUE, "\"subscriptions\" is not a list"},
        {"{\"op\":\"subscribe\",\"subscriptions\":[1]}", US_ERR_VALUE, "\"id\""},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":1}]}", US_ERR_VALUE, "\"channelId\""},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":-1,\"channelId\":1}]}", US_ERR_VALUE, "\"id\""},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":1.5,\"channelId\":1}]}", US_ERR_VALUE, "\"id\""},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":4294967296,\"channelId\":1}]}", US_ERR_VALUE,
         "\"id\""},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":1e999,\"channelId\":1}]}", US_ERR_VALUE, "\"id\""},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":\"1\",\"channelId\":1}]}", US_ERR_VALUE, "\"id\""},
        {"{\"op\":\"unsubscribe\",\"subscriptionIds\":[null]}", US_ERR_VALUE, "\"subscriptionIds\""},
        {"{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"encoding\":\"cdr\",\"schemaName\":\"a\"}]}",
         US_ERR_VALUE, "\"topic\" is not a text"},
        {"{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"topic\":\"\",\"encoding\":\"cdr\",\"schemaName\":"
         "\"a\"}]}",
         US_ERR_LIMIT, "\"topic\" is empty"},
        {"{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"topic\":\"/"
         "a\\n\",\"encoding\":\"cdr\",\"schemaName\":\"a\"}]}",
         US_ERR_VALUE, "no name has"},
        {"{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"topic\":\"/"
         "\\u00e4\",\"encoding\":\"cdr\",\"schemaName\":\"a\"}]}",
         US_ERR_VALUE, "no name has"},
        {"{\"op\":\"subscribe\\u0000\"}", US_ERR_SYNTAX, "a zero"},
        {"{\"op\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}", US_ERR_LIMIT, "nested"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        memset(&err, 0, sizeof err);
        us_status status = parse(cases[k].text);
        if (status != cases[k].status || !strstr(err.message, cases[k].why))
            fail_msg("%s: %d, %s", cases[k].text, (int)status, err.message);
    }
    assert_int_equal(usi_foxglove_parse(false, "{\"op\":\0\"a\"}", 11, &m, &err), US_ERR_SYNTAX);
    assert_int_equal(usi_foxglove_parse(true, "", 0, &m, &err), US_ERR_SYNTAX);
    assert_int_equal(usi_foxglove_parse(true, "\1\2\3\4", 4, &m, &err), US_ERR_SYNTAX);
}

// {"op":"...","LIST":[ENTRY,ENTRY,...]} with n entries; to be freed.
static char *repeat(const char *begin, const char *entry, int n) {
    char *text = malloc(strlen(begin) + (size_t)n * (strlen(entry) + 1) + 3), *at = text;
    assert_non_null(text);
    at += sprintf(at, "%s", begin);
    for (int k = 0; k < n; k++)
        at += sprintf(at, "%s%s", k ? "," : "", entry);
    sprintf(at, "]}");
    return text;
}

static void lists_and_texts_have_an_end(void **state) {
    (void)state;
    const struct {
        const char *begin, *entry;
        int most;
    } lists[] = {
        {"{\"op\":\"subscribe\",\"subscriptions\":[", "{\"id\":1,\"channelId\":2}", USI_FOXGLOVE_LIST},
        {"{\"op\":\"unadvertise\",\"channelIds\":[", "3", USI_FOXGLOVE_LIST},
        {"{\"op\":\"advertise\",\"channels\":[",
         "{\"id\":1,\"topic\":\"/a\",\"encoding\":\"cdr\",\"schemaName\":\"b\"}", USI_FOXGLOVE_CHANNELS}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        char *text = repeat(lists[k].begin, lists[k].entry, lists[k].most);
        assert_int_equal(parse(text), US_OK);
        assert_int_equal(m.n, lists[k].most);
        free(text);
        text = repeat(lists[k].begin, lists[k].entry, lists[k].most + 1);
        assert_int_equal(parse(text), US_ERR_LIMIT);
        free(text);
    }
    char topic[USI_FOXGLOVE_TOPIC + 2], text[600];
    memset(topic, 't', sizeof topic);
    for (int extra = 0; extra < 2; extra++) {
        topic[USI_FOXGLOVE_TOPIC + extra] = 0;
        snprintf(text, sizeof text,
                 "{\"op\":\"advertise\",\"channels\":[{\"id\":1,\"topic\":\"%s\",\"encoding\":\"cdr\","
                 "\"schemaName\":\"b\"}]}",
                 topic);
        assert_int_equal(parse(text), extra ? US_ERR_LIMIT : US_OK);
        topic[USI_FOXGLOVE_TOPIC + extra] = 't';
    }
    char *large = calloc(1, USI_FOXGLOVE_MESSAGE + 1);
    assert_non_null(large);
    large[0] = 1;
    assert_int_equal(usi_foxglove_parse(true, large, USI_FOXGLOVE_MESSAGE, &m, &err), US_OK);
    assert_int_equal(usi_foxglove_parse(true, large, USI_FOXGLOVE_MESSAGE + 1, &m, &err), US_ERR_LIMIT);
    free(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_these_bytes),
        cmocka_unit_test(good_messages_are_taken),
        cmocka_unit_test(parameters_files_and_calls_come_out_as_they_were_sent),
        cmocka_unit_test(what_others_may_say_is_passed_over_by_name),
        cmocka_unit_test(bad_messages_are_refused_with_a_reason),
        cmocka_unit_test(lists_and_texts_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
