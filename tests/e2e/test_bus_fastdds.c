// Two DDS vendors: our bus over Cyclone DDS and over Fast DDS, with each other and with a program that is Fast DDS's own.
#include "test_bus_support.h"

// Whether the plug-in was built. Without it a test says so and passes.
static bool has_fastdds(void) {
    us_bus_def def = us_bus_def_default();
    def.vendor = "fastdds";
    def.domain = test_domain();
    us_bus *bus = NULL;
    us_error err = {0};
    us_status status = us_bus_open(&def, &bus, &err);
    if (status == US_OK) {
        us_bus_close(bus);
        return true;
    }
    assert_non_null(strstr(err.message, "libunderstudy-fastdds.so"));
    assert_non_null(strstr(err.remedy, "US_PLUGIN_PATH"));
    print_message("skipped: the plug-in for Fast DDS is not built\n");
    return false;
}

static bool start_fastdds_program(peer *out) {
    char program[] = US_BINARY_DIR "/tests/e2e/fastdds_peer";
    if (access(program, X_OK) != 0) {
        print_message("skipped: fastdds_peer is not built\n");
        return false;
    }
    char domain[16];
    snprintf(domain, sizeof domain, "%d", test_domain());
    *out = start_peer(program, (char *[]){program, domain, NULL});
    return true;
}

static void cyclone_exchanges_every_type_with_a_program_of_fast_dds(void **state) {
    (void)state;
    peer p;
    if (!start_fastdds_program(&p)) return;
    us_bus *bus = open_bus("cyclone", test_domain());
    exchange_every_type(bus);
    us_bus_close(bus);
    stop_peer(&p);
}

static void ten_thousand_samples_between_cyclone_and_a_program_of_fast_dds_lose_none(void **state) {
    (void)state;
    peer p;
    if (!start_fastdds_program(&p)) return;
    us_bus *bus = open_bus("cyclone", test_domain());
    exchange_many(bus, 10000);
    us_bus_close(bus);
    stop_peer(&p);
}

static void our_fast_dds_exchanges_every_type_with_our_cyclone(void **state) {
    (void)state;
    if (!has_fastdds()) return;
    peer p = start_self("fastdds", test_domain());
    us_bus *bus = open_bus("cyclone", test_domain());
    exchange_every_type(bus);
    exchange_many(bus, 10000);
    us_bus_close(bus);
    stop_peer(&p);
}

static void our_fast_dds_exchanges_every_type_with_a_program_of_fast_dds(void **state) {
    (void)state;
    peer p;
    if (!has_fastdds() || !start_fastdds_program(&p)) return;
    us_bus *bus = open_bus("fastdds", test_domain());
    exchange_every_type(bus);
    exchange_many(bus, 10000);
    us_bus_close(bus);
    stop_peer(&p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cyclone_exchanges_every_type_with_a_program_of_fast_dds),
    cmocka_unit_test(ten_thousand_samples_between_cyclone_and_a_program_of_fast_dds_lose_none),
    cmocka_unit_test(our_fast_dds_exchanges_every_type_with_our_cyclone),
    cmocka_unit_test(our_fast_dds_exchanges_every_type_with_a_program_of_fast_dds),
};

BUS_TEST_MAIN(tests)
