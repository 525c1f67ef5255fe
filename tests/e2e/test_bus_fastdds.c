// Two DDS vendors: our bus over Cyclone DDS and over Fast DDS, with each other and with a program that is
// Fast DDS's own.
#include "test_bus_support.h"

// One program of Fast DDS serves all tests: it takes seconds to start.
static peer fastdds_program;

static int start_fastdds_program(void **state) {
    (void)state;
    char program[] = US_BINARY_DIR "/tests/e2e/fastdds_peer";
    if (access(program, X_OK) != 0) return 0;
    char domain[16];
    snprintf(domain, sizeof domain, "%d", test_domain());
    fastdds_program = start_peer(program, (char *[]){program, domain, NULL});
    running_peer = 0;
    return 0;
}

static int stop_fastdds_program(void **state) {
    (void)state;
    if (fastdds_program.pid) stop_peer(&fastdds_program);
    return 0;
}

static bool has_program(void) {
    if (!fastdds_program.pid) print_message("skipped: fastdds_peer is not built\n");
    return fastdds_program.pid != 0;
}

// Fast DDS looks for settings with the first participant of a process, so this is the first test.
static void settings_that_lie_in_the_working_directory_are_not_read(void **state) {
    (void)state;
    char left[16] = "";
    FILE *file = fopen("precious.txt", "w");
    assert_true(file && fputs("precious", file) >= 0 && fclose(file) == 0);
    file = fopen("DEFAULT_FASTRTPS_PROFILES.xml", "w");
    assert_true(file &&
                fputs("<?xml version=\"1.0\"?><dds "
                      "xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\"><log>"
                      "<use_default>FALSE</use_default><consumer><class>FileConsumer</class>"
                      "<property><name>filename</name><value>precious.txt</value></property>"
                      "<property><name>append</name><value>FALSE</value></property>"
                      "</consumer></log></dds>",
                      file) >= 0 &&
                fclose(file) == 0);
    const bool has = has_fastdds();
    if (!has) print_message("skipped: the plug-in for Fast DDS is not built\n");
    remove("DEFAULT_FASTRTPS_PROFILES.xml");
    file = fopen("precious.txt", "r");
    assert_true(file && fgets(left, sizeof left, file) && fclose(file) == 0);
    assert_string_equal(left, "precious");
}

static void cyclone_exchanges_every_type_with_a_program_of_fast_dds(void **state) {
    (void)state;
    if (!has_program()) return;
    us_bus *bus = open_bus("cyclone", test_domain());
    exchange_every_type(bus);
    us_bus_close(bus);
}

static void ten_thousand_samples_between_cyclone_and_a_program_of_fast_dds_lose_none(void **state) {
    (void)state;
    if (!has_program()) return;
    us_bus *bus = open_bus("cyclone", test_domain());
    exchange_many(bus, 10000);
    us_bus_close(bus);
}

static void our_fast_dds_exchanges_every_type_with_a_program_of_fast_dds(void **state) {
    (void)state;
    if (!has_fastdds() || !has_program()) return;
    us_bus *bus = open_bus("fastdds", test_domain());
    exchange_every_type(bus);
    exchange_many(bus, 10000);
    us_bus_close(bus);
}

// On a domain beside, where the program of Fast DDS does not echo too.
static void our_fast_dds_exchanges_every_type_with_our_cyclone(void **state) {
    (void)state;
    if (!has_fastdds()) return;
    peer p = start_self("fastdds", test_domain_of(1));
    us_bus *bus = open_bus("cyclone", test_domain_of(1));
    exchange_every_type(bus);
    exchange_many(bus, 10000);
    us_bus_close(bus);
    stop_peer(&p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(settings_that_lie_in_the_working_directory_are_not_read),
    cmocka_unit_test(cyclone_exchanges_every_type_with_a_program_of_fast_dds),
    cmocka_unit_test(ten_thousand_samples_between_cyclone_and_a_program_of_fast_dds_lose_none),
    cmocka_unit_test(our_fast_dds_exchanges_every_type_with_our_cyclone),
    cmocka_unit_test(our_fast_dds_exchanges_every_type_with_a_program_of_fast_dds),
};

BUS_TEST_MAIN(tests, start_fastdds_program, stop_fastdds_program)
