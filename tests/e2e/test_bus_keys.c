// Topics with keys over both vendors: of each value of the key a reader has the newest samples, also one that
// comes late.
#include "test_bus_support.h"
#include "understudy/interface.h"

// The key of the first fits into the 16 bytes of a key hash, that of the second does not.
static const char IDL[] = "module keyed {"
                          "struct Small { @key long id; double value; };"
                          "struct Large { double value; @key string<64> name; @key long long id; };"
                          "};";

static us_interface *load(void) {
    FILE *f = fopen("keyed.idl", "w");
    assert_non_null(f);
    fputs(IDL, f);
    assert_int_equal(fclose(f), 0);
    const char *files[] = {"keyed.idl"};
    us_interface_def def = us_interface_def_default();
    us_interface *own = NULL;
    us_error err = {0};
    def.n_file = 1;
    def.files = files;
    expect_ok(us_interface_load(&def, &own, &err), &err);
    return own;
}

static us_bus *open_as(const char *vendor) {
    us_bus_def def = us_bus_def_default();
    us_bus *bus = NULL;
    us_error err = {0};
    def.vendor = vendor;
    def.domain = test_domain();
    const us_status status = us_bus_open(&def, &bus, &err);
    if (status && strcmp(vendor, "fastdds") == 0 && strstr(err.message, "libunderstudy-fastdds.so"))
        return NULL;
    expect_ok(status, &err);
    return bus;
}

static void write_value(us_writer *writer, const us_message_type *type, int32_t id, double value) {
    uint8_t bytes[256];
    char name[64];
    size_t length = 0;
    us_error err = {0};
    // Names that differ at their ends alone.
    snprintf(name, sizeof name, "a name that is much longer than sixteen bytes %d", (int)id % 2);
    const us_member_value values[] = {{"id", id, NULL}, {"value", value, NULL}, {"name", 0, name}};
    const int32_t n = strstr(us_message_name(type), "Large") ? 3 : 2;
    expect_ok(us_message_compose(type, values, n, bytes, sizeof bytes, &length, &err), &err);
    assert_int_equal(us_writer_write(writer, bytes, length, 0), US_OK);
}

enum { N_KEY = 40 };

// What a reader that keeps one sample of each key has in the end: the last of each, none twice.
static void expect_last_of_each(us_reader *reader, const us_message_type *type, double last,
                                const char *what) {
    int seen[N_KEY] = {0}, n = 0;
    const double until = clock_now() + PATIENCE;
    while (n < N_KEY) {
        uint8_t bytes[256];
        size_t length = 0;
        assert_int_equal(us_reader_take(reader, bytes, sizeof bytes, &length, NULL), US_OK);
        if (length == 0) {
            if (clock_now() > until) fail_msg("%s: %d of %d keys", what, n, N_KEY);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            continue;
        }
        const int id = (int)us_message_get_number(type, bytes, length, "id");
        const double value = us_message_get_number(type, bytes, length, "value");
        assert_in_range(id, 0, N_KEY - 1);
        assert_true(value == last + id);
        if (seen[id]++ == 0) n++;
    }
    for (int i = 0; i < N_KEY; i++)
        assert_int_equal(seen[i], 1);
}

static void try_pair(const char *from, const char *to, const char *name, const us_interface *own) {
    us_bus *a = open_as(from), *b = open_as(to);
    us_error err = {0};
    if (!a || !b) {
        us_bus_close(a);
        us_bus_close(b);
        print_message("skipped: the plug-in for Fast DDS is not built\n");
        return;
    }
    const us_message_type *type = us_interface_find(own, name);
    char topic[100];
    snprintf(topic, sizeof topic, "dds:keys_%s_%s_%s", from, to, strrchr(name, ':') + 1);
    const us_topic_def def = {topic, type, {.is_reliable = true, .is_transient_local = true, .depth = 1}, -1};
    us_writer *writer = NULL;
    us_reader *reader = NULL;
    expect_ok(us_bus_add_writer(a, &def, &writer, &err), &err);
    for (int round = 0; round < 3; round++) {
        for (int32_t id = 0; id < N_KEY; id++)
            write_value(writer, type, id, 1000 * round + id);
    }
    // Who comes now gets the newest of each key, of which the writer keeps one.
    expect_ok(us_bus_add_reader(b, &def, NULL, NULL, &reader, &err), &err);
    expect_last_of_each(reader, type, 2000, topic);
    us_reader_remove(reader);
    us_writer_remove(writer);
    us_bus_close(a);
    us_bus_close(b);
}

static void each_key_has_its_own_history(void **state) {
    (void)state;
    us_interface *own = load();
    static const char *const vendors[] = {"cyclone", "fastdds"};
    for (int i = 0; i < 4; i++) {
        try_pair(vendors[i / 2], vendors[i % 2], "keyed::Small", own);
        try_pair(vendors[i / 2], vendors[i % 2], "keyed::Large", own);
    }
    us_interface_release(own);
}

// What knows the key goes with its interface: another one of the same names takes its place.
static void a_type_that_is_read_anew_keeps_its_keys(void **state) {
    (void)state;
    us_bus *bus = open_as("fastdds"), *other = open_as("cyclone");
    us_error err = {0};
    for (int k = 0; k < 3 && bus; k++) {
        us_interface *own = load();
        const us_message_type *type = us_interface_find(own, "keyed::Large");
        const us_topic_def def = {
            "dds:keys_anew", type, {.is_reliable = true, .is_transient_local = true, .depth = 1}, -1};
        us_writer *writer = NULL;
        us_reader *reader = NULL;
        expect_ok(us_bus_add_writer(bus, &def, &writer, &err), &err);
        for (int32_t id = 0; id < N_KEY; id++)
            write_value(writer, type, id, 1000 * k + id);
        expect_ok(us_bus_add_reader(other, &def, NULL, NULL, &reader, &err), &err);
        expect_last_of_each(reader, type, 1000 * k, def.topic);
        us_reader_remove(reader);
        us_writer_remove(writer);
        us_interface_release(own);
    }
    us_bus_close(bus);
    us_bus_close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_has_its_own_history),
        cmocka_unit_test(a_type_that_is_read_anew_keeps_its_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
