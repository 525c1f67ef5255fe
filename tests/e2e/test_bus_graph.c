// The ROS graph: what we say of ourselves on ros_discovery_info, read by the tables of the room wire, and
// what we understand of others.
#include "bus/bus.h"
#include "test_bus_support.h"

static const us_qos reliable = {.is_reliable = true, .depth = 10};

// A participant of bare DDS that hears ros_discovery_info.
typedef struct listener {
    pthread_mutex_t lock;
    uint8_t bytes[MESSAGE_BYTES];
    size_t length;
    int32_t n;
    usi_vendor_participant *participant;
    usi_vendor_endpoint *reader;
} listener;

static void keep_last(void *context, const us_sample *sample) {
    listener *l = context;
    if (sample->length > sizeof l->bytes) return;
    pthread_mutex_lock(&l->lock);
    memcpy(l->bytes, sample->bytes, sample->length);
    l->length = sample->length;
    l->n++;
    pthread_mutex_unlock(&l->lock);
}

static void start_listening(listener *l) {
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    const usi_vendor *vendor = usi_cyclone_vendor();
    us_error err = {0};
    usi_vendor_open open = {.allocator = us_allocator_default(),
                            .domain = test_domain(),
                            .range = US_BUS_LOCALHOST,
                            .user_data = ""};
    expect_ok(vendor->open(&open, &l->participant, &err), &err);
    usi_vendor_endpoint_def def = {
        .topic = "ros_discovery_info",
        .type = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_",
        .user_data = "",
        .qos = {.is_reliable = true, .is_transient_local = true},
        .on_sample = keep_last,
        .context = l,
    };
    expect_ok(vendor->add_reader(l->participant, &def, &l->reader, &err), &err);
}

static void stop_listening(listener *l) {
    usi_cyclone_vendor()->remove(l->reader);
    usi_cyclone_vendor()->close(l->participant);
    pthread_mutex_destroy(&l->lock);
}

// Copies the last message; false when there is none yet.
static size_t last_heard(listener *l, uint8_t out[MESSAGE_BYTES]) {
    pthread_mutex_lock(&l->lock);
    size_t n = l->length;
    memcpy(out, l->bytes, n);
    pthread_mutex_unlock(&l->lock);
    return n;
}

// Waits until the last message equals what the bus would say now.
static size_t hear_what_the_bus_says(listener *l, const us_bus *bus, uint8_t out[MESSAGE_BYTES]) {
    static uint8_t expected[MESSAGE_BYTES];
    size_t n = usi_graph_encode(bus, bus->layouts, expected), n_heard = 0;
    // DDS fills up to a multiple of 4.
    WAIT_FOR((n_heard = last_heard(l, out)) >= n && n_heard < n + 4 && !memcmp(out, expected, n));
    return n_heard;
}

static void every_change_of_nodes_and_endpoints_is_announced(void **state) {
    (void)state;
    static listener l;
    static uint8_t bytes[MESSAGE_BYTES];
    static _Alignas(16) uint8_t memory[MEMORY_BYTES];
    start_listening(&l);
    us_bus *bus = open_bus("cyclone", test_domain());
    us_error err = {0};
    int32_t driver = -1, bare = -1;
    expect_ok(us_bus_add_node(bus, "/k10", "driver", &driver, &err), &err);
    expect_ok(us_bus_add_node(bus, "", "clock", &bare, &err), &err);
    us_writer *odom = NULL, *clock_writer = NULL;
    us_reader *command = NULL, *hidden = NULL;
    expect_ok(us_bus_add_writer(bus, &(us_topic_def){"/k10/odom", usi_type_odometry, reliable, driver}, &odom,
                                &err),
              &err);
    expect_ok(us_bus_add_reader(bus, &(us_topic_def){"/k10/cmd_vel", usi_type_twist, reliable, driver}, NULL,
                                NULL, &command, &err),
              &err);
    expect_ok(us_bus_add_writer(bus, &(us_topic_def){"/clock", usi_type_clock, reliable, bare}, &clock_writer,
                                &err),
              &err);
    expect_ok(us_bus_add_reader(bus, &(us_topic_def){"/x", usi_type_string, reliable, -1}, NULL, NULL,
                                &hidden, &err),
              &err);
    size_t n = hear_what_the_bus_says(&l, bus, bytes);

    const void *decoded = NULL;
    expect_ok(us_message_decode(usi_type_participant_entities_info, bytes, n, memory, sizeof memory, &decoded,
                                &err),
              &err);
    const us_msg_participant_entities_info *info = decoded;
    assert_memory_equal(info->gid.data, bus->id, 16);
    assert_int_equal(info->node_entities_info_seq._length, 2);
    const us_msg_node_entities_info *nodes = info->node_entities_info_seq._buffer;
    assert_string_equal(nodes[0].node_namespace, "/k10");
    assert_string_equal(nodes[0].node_name, "driver");
    assert_int_equal(nodes[0].reader_gid_seq._length, 1);
    assert_memory_equal(nodes[0].reader_gid_seq._buffer[0].data, command->id, 16);
    assert_int_equal(nodes[0].writer_gid_seq._length, 1);
    assert_memory_equal(nodes[0].writer_gid_seq._buffer[0].data, odom->id, 16);
    assert_string_equal(nodes[1].node_namespace, "/");
    assert_string_equal(nodes[1].node_name, "clock");
    assert_int_equal(nodes[1].reader_gid_seq._length, 0);
    assert_int_equal(nodes[1].writer_gid_seq._length, 1);

    us_writer_remove(odom);
    n = hear_what_the_bus_says(&l, bus, bytes);
    expect_ok(us_message_decode(usi_type_participant_entities_info, bytes, n, memory, sizeof memory, &decoded,
                                &err),
              &err);
    info = decoded;
    assert_int_equal(info->node_entities_info_seq._buffer[0].writer_gid_seq._length, 0);
    us_bus_close(bus);
    stop_listening(&l);
}

static void before_iron_ids_have_24_bytes(void **state) {
    (void)state;
    static listener l;
    static uint8_t bytes[MESSAGE_BYTES];
    static _Alignas(16) uint8_t memory[MEMORY_BYTES];
    start_listening(&l);
    us_bus_def def = us_bus_def_default();
    def.domain = test_domain();
    def.use_humble_gid = true;
    us_bus *bus = open_bus_def(&def);
    us_error err = {0};
    int32_t driver = -1;
    expect_ok(us_bus_add_node(bus, "/k10", "driver", &driver, &err), &err);
    us_writer *odom = NULL;
    expect_ok(us_bus_add_writer(bus, &(us_topic_def){"/k10/odom", usi_type_odometry, reliable, driver}, &odom,
                                &err),
              &err);
    size_t n = hear_what_the_bus_says(&l, bus, bytes);
    const void *decoded = NULL;
    expect_ok(us_message_decode(usi_type_humble_participant_entities_info, bytes, n, memory, sizeof memory,
                                &decoded, &err),
              &err);
    const us_msg_humble_participant_entities_info *info = decoded;
    static const uint8_t zeros[8];
    assert_memory_equal(info->gid.data, bus->id, 16);
    assert_memory_equal(info->gid.data + 16, zeros, 8);
    assert_int_equal(info->node_entities_info_seq._length, 1);
    assert_int_equal(info->node_entities_info_seq._buffer[0].writer_gid_seq._length, 1);
    assert_memory_equal(info->node_entities_info_seq._buffer[0].writer_gid_seq._buffer[0].data, odom->id, 16);
    us_bus_close(bus);
    stop_listening(&l);
}

// What a bus of bare DDS heard of one participant: how often in each layout, and the last one.
typedef struct layouts {
    uint8_t id[16];
    atomic_int n_later, n_humble, last;
} layouts;

static void note_layout(void *context, const us_sample *sample) {
    layouts *l = context;
    usi_graph graph;
    us_allocator allocator = us_allocator_default();
    unsigned int layout = 0;
    if (sample->length < 20 || memcmp((const uint8_t *)sample->bytes + 4, l->id, 16) != 0) return;
    assert_int_equal(usi_graph_init(&graph, &allocator), US_OK);
    assert_int_equal(usi_graph_take(&graph, sample->bytes, sample->length, &layout), US_OK);
    usi_graph_fini(&graph);
    atomic_fetch_add(layout == USI_LAYOUT_HUMBLE ? &l->n_humble : &l->n_later, 1);
    atomic_store(&l->last, (int)layout);
}

// Nodes of one layout alone are spoken to in that one; who begins with the one and hears the other speaks
// both, that of Humble first.
static void both_layouts_are_spoken_where_both_are_heard(void **state) {
    (void)state;
    for (int humble = 0; humble < 2; humble++) {
        us_error err = {0};
        int32_t node = -1;
        us_bus_def def = us_bus_def_default();
        def.domain = test_domain();
        def.use_humble_gid = humble;
        us_bus *bus = open_bus_def(&def), *like = open_bus_def(&def);
        expect_ok(us_bus_add_node(bus, "/k10", "driver", &node, &err), &err);
        layouts l = {0};
        memcpy(l.id, bus->id, sizeof l.id);
        const usi_vendor *vendor = usi_cyclone_vendor();
        usi_vendor_open open = {
            .allocator = us_allocator_default(), .domain = test_domain(), .user_data = ""};
        usi_vendor_participant *participant = NULL;
        usi_vendor_endpoint *reader = NULL;
        expect_ok(vendor->open(&open, &participant, &err), &err);
        usi_vendor_endpoint_def endpoint = {
            .topic = "ros_discovery_info",
            .type = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_",
            .user_data = "",
            .qos = {.is_reliable = true, .is_transient_local = true},
            .on_sample = note_layout,
            .context = &l,
        };
        expect_ok(vendor->add_reader(participant, &endpoint, &reader, &err), &err);
        expect_ok(us_bus_add_node(like, "/", "like", &node, &err), &err);
        WAIT_FOR(usi_graph_count_nodes(&bus->graph, like->id) == 1);
        WAIT_FOR(atomic_load(humble ? &l.n_humble : &l.n_later) > 0);
        assert_int_equal(atomic_load(humble ? &l.n_later : &l.n_humble), 0);
        def.use_humble_gid = !humble;
        us_bus *other = open_bus_def(&def);
        expect_ok(us_bus_add_node(other, "/", "other", &node, &err), &err);
        WAIT_FOR(atomic_load(&l.n_humble) > 0 && atomic_load(&l.n_later) > 0 &&
                 atomic_load(&l.last) == USI_LAYOUT_LATER);
        WAIT_FOR(usi_graph_count_nodes(&other->graph, bus->id) == 1);
        vendor->remove(reader);
        vendor->close(participant);
        us_bus_close(other);
        us_bus_close(like);
        us_bus_close(bus);
    }
}

// With NULL for the node: of any.
static bool has_endpoint(us_bus *bus, const char *topic, bool is_writer, const char *node) {
    us_endpoint all[64];
    int32_t n = 0;
    assert_int_equal(us_bus_list(bus, all, 64, &n), US_OK);
    for (int32_t i = 0; i < n && i < 64; i++) {
        if (i > 0) assert_true(memcmp(all[i - 1].id, all[i].id, 16) < 0);
        if (all[i].is_writer == is_writer && !strcmp(all[i].topic, topic) &&
            (!node || !strcmp(all[i].node, node)))
            return true;
    }
    return false;
}

static int32_t count_participants(us_bus *bus) {
    int32_t n = 0;
    assert_int_equal(us_bus_list_participants(bus, NULL, 0, &n), US_OK);
    return n;
}

// Both layouts, and a bus that hides.
static void endpoints_are_listed_with_the_node_they_belong_to(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        us_bus_def def = us_bus_def_default();
        def.domain = test_domain();
        us_bus *looker = open_bus_def(&def);
        def.use_humble_gid = kind == 1;
        def.hide_from_graph = kind == 2;
        us_bus *bus = open_bus_def(&def);
        us_error err = {0};
        int32_t driver = -1, top = -1;
        expect_ok(us_bus_add_node(bus, "/k10", "driver", &driver, &err), &err);
        expect_ok(us_bus_add_node(bus, "/", "top", &top, &err), &err);
        us_writer *odom = NULL;
        us_reader *command = NULL;
        expect_ok(us_bus_add_writer(bus, &(us_topic_def){"/k10/odom", usi_type_odometry, reliable, driver},
                                    &odom, &err),
                  &err);
        expect_ok(us_bus_add_reader(bus, &(us_topic_def){"/k10/cmd_vel", usi_type_twist, reliable, top}, NULL,
                                    NULL, &command, &err),
                  &err);
        WAIT_FOR(has_endpoint(looker, "rt/k10/odom", true, kind == 2 ? "" : "/k10/driver"));
        WAIT_FOR(has_endpoint(looker, "rt/k10/cmd_vel", false, kind == 2 ? "" : "/top"));
        assert_true(has_endpoint(bus, "rt/k10/odom", true, "/k10/driver"));
        us_participant people[8];
        int32_t n = 0;
        assert_int_equal(us_bus_list_participants(looker, people, 8, &n), US_OK);
        assert_int_equal(n, 2);
        for (int32_t i = 0; i < n; i++) {
            assert_int_equal(people[i].n_node, people[i].is_own || kind == 2 ? 0 : 2);
            assert_true(people[i].host[0] != 0);
            assert_string_equal(people[i].enclave, "/");
        }
        us_bus_close(bus);
        // A participant's endpoints are withdrawn before the participant itself.
        WAIT_FOR(!has_endpoint(looker, "rt/k10/odom", true, NULL));
        WAIT_FOR(count_participants(looker) == 1);
        us_bus_close(looker);
    }
}

// Every truncation and every changed byte of a real message is refused or understood, and nothing else
// happens.
static void damaged_announcements_do_no_harm(void **state) {
    (void)state;
    us_allocator allocator = us_allocator_default();
    for (int humble = 0; humble < 2; humble++) {
        const us_message_type *type =
            humble ? usi_type_humble_participant_entities_info : usi_type_participant_entities_info;
        static uint8_t bytes[MESSAGE_BYTES];
        size_t n = make_message(type, 5, bytes);
        // The padding of long ids is zero: a made message has something there, and is no announcement.
        usi_graph graph;
        assert_int_equal(usi_graph_init(&graph, &allocator), US_OK);
        for (size_t length = 0; length < n; length++) {
            uint8_t *copy =
                malloc(length + 1);  // a block of its own: reading beyond shows under the sanitizers
            assert_non_null(copy);
            memcpy(copy, bytes, length);
            us_status status = usi_graph_take(&graph, copy, length, NULL);
            assert_true(status == US_OK || status == US_ERR_SYNTAX);
            free(copy);
        }
        for (size_t i = 0; i < 8 * n; i++) {
            bytes[i / 8] ^= (uint8_t)(1u << i % 8);
            us_status status = usi_graph_take(&graph, bytes, n, NULL);
            assert_true(status == US_OK || status == US_ERR_SYNTAX);
            bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        }
        usi_graph_fini(&graph);
    }
}

static void a_crowd_of_participants_takes_bounded_memory(void **state) {
    (void)state;
    us_allocator allocator = us_allocator_default();
    usi_graph graph;
    assert_int_equal(usi_graph_init(&graph, &allocator), US_OK);
    us_bus bus = {.allocator = allocator};
    usi_graph_node node = {"/k10", "driver"};
    bus.nodes = &node;
    bus.n_node = 1;
    uint8_t bytes[256];
    for (uint32_t i = 0; i < 2000; i++) {
        memcpy(bus.id, &i, sizeof i);
        size_t n = usi_graph_encode(&bus, USI_LAYOUT_LATER, bytes);
        assert_int_equal(usi_graph_take(&graph, bytes, n, NULL), US_OK);
    }
    assert_true(graph.n_entry < 1000);
    assert_int_equal(usi_graph_count_nodes(&graph, bus.id), 1);  // the last one is known, the first forgotten
    memset(bus.id, 0, sizeof bus.id);
    assert_int_equal(usi_graph_count_nodes(&graph, bus.id), 0);
    usi_graph_fini(&graph);
}

static void user_data_is_read_by_key(void **state) {
    (void)state;
    char out[16];
    static const char text[] = "enclave=/k10;typehash=RIHS01_1;empty=;last=end";
    usi_user_data_get(text, strlen(text), "enclave", out, sizeof out);
    assert_string_equal(out, "/k10");
    usi_user_data_get(text, strlen(text), "typehash", out, sizeof out);
    assert_string_equal(out, "RIHS01_1");
    usi_user_data_get(text, strlen(text), "last", out, sizeof out);
    assert_string_equal(out, "end");
    usi_user_data_get(text, strlen(text), "hash", out, sizeof out);
    assert_string_equal(out, "");
    usi_user_data_get(text, strlen(text), "enclave", out, 3);
    assert_string_equal(out, "");
    usi_user_data_get(NULL, 0, "enclave", out, sizeof out);
    assert_string_equal(out, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_change_of_nodes_and_endpoints_is_announced),
    cmocka_unit_test(before_iron_ids_have_24_bytes),
    cmocka_unit_test(both_layouts_are_spoken_where_both_are_heard),
    cmocka_unit_test(endpoints_are_listed_with_the_node_they_belong_to),
    cmocka_unit_test(damaged_announcements_do_no_harm),
    cmocka_unit_test(a_crowd_of_participants_takes_bounded_memory),
    cmocka_unit_test(user_data_is_read_by_key),
};

BUS_TEST_MAIN(tests, NULL, NULL)
