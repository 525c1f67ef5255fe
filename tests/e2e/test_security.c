// DDS Security: who has keys takes part, nobody else hears or says anything, and the wire carries no plain
// text.
//
// Where it may, the test has a network of its own, so that a packet capture on the loopback sees its packets
// alone.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "bus/bus.h"
#include "test_bus_support.h"
#include "understudy/keys.h"
#include "understudy/service.h"

static const char MARKER[] = "the-quick-brown-fox-crosses-the-wire";
static bool has_network;
static char root[512];  // directory of this test's keystores

static int32_t domain(void) {
    const char *text = getenv("ROS_DOMAIN_ID");
    return text && !has_network ? atoi(text) : 5;
}

// ---------------------------------------------------------------- keystores

static const char *directory_of(const char *keystore, const char *enclave) {
    static char paths[16][1024];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s/enclaves%s", root, keystore, strcmp(enclave, "/") ? enclave : "");
    return path;
}

static void make_keystore(const char *name) {
    char path[1024];
    us_error err = {0};
    us_keystore_def def = us_keystore_def_default();
    snprintf(path, sizeof path, "%s/%s", root, name);
    expect_ok(us_keystore_create(path, &def, &err), &err);
}

static void make_enclave(const char *keystore, us_enclave_def def) {
    char path[1024];
    us_error err = {0};
    snprintf(path, sizeof path, "%s/%s", root, keystore);
    expect_ok(us_keystore_add(path, &def, &err), &err);
}

static void make_plain_enclave(const char *keystore, const char *enclave) {
    us_enclave_def def = us_enclave_def_default();
    def.enclave = enclave;
    make_enclave(keystore, def);
}

static int make_all(void **state) {
    (void)state;
    if (geteuid() == 0 && unshare(CLONE_NEWNET) == 0) {
        struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING};
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        has_network = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
        close(fd);
    }
    char pattern[256];
    snprintf(pattern, sizeof pattern, "%s/understudy-keys-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(pattern)) return -1;
    snprintf(root, sizeof root, "%s", pattern);
    make_keystore("ours");
    make_plain_enclave("ours", "/rover");
    make_plain_enclave("ours", "/operator");
    make_keystore("theirs");
    make_plain_enclave("theirs", "/operator");
    return 0;
}

static int remove_all(void **state) {
    (void)state;
    char line[600];
    snprintf(line, sizeof line, "rm -rf '%s'", root);
    return system(line);
}

// ---------------------------------------------------------------- programs on the bus

static us_bus *join(const char *vendor, const char *keys) {
    us_bus_def def = us_bus_def_default();
    def.vendor = vendor;
    def.domain = domain();
    def.keys = keys;
    return open_bus_def(&def);
}

static bool has_vendor(const char *vendor) {
    us_bus_def def = us_bus_def_default();
    us_bus *bus = NULL;
    def.vendor = vendor;
    def.domain = domain();
    def.range = US_BUS_OFF;
    const us_status status = us_bus_open(&def, &bus, NULL);
    us_bus_close(bus);
    if (status) print_message("skipped: %s is not there\n", vendor);
    return status == US_OK;
}

static const us_qos reliable = {.is_reliable = true, .depth = 100};

// A writer and a reader of two programs that trust each other: all that is written arrives.
static void exchange(us_bus *from, us_bus *to, const char *topic, int32_t n) {
    us_writer *writer = add_writer(from, topic, usi_type_string, reliable);
    us_reader *reader = add_reader(to, topic, usi_type_string, reliable, NULL, NULL);
    WAIT_FOR(us_writer_n_match(writer) == 1 && us_reader_n_match(reader) == 1);
    int32_t n_heard = 0;
    // The first ones may be written before the other side knows the writer's key.
    WAIT_FOR((write_text_message(writer, MARKER), n_heard += take_all(reader)) > 0);
    for (int32_t i = 0; i < n; i++)
        write_text_message(writer, MARKER);
    WAIT_FOR((n_heard += take_all(reader)) > n);
    us_reader_remove(reader);
    us_writer_remove(writer);
}

static void programs_with_keys_of_one_keystore_meet(void **state) {
    (void)state;
    static const char *const vendors[] = {"cyclone", "fastdds"};
    for (int i = 0; i < 2; i++) {
        if (!has_vendor(vendors[i])) continue;
        us_bus *rover = join(vendors[i], directory_of("ours", "/rover"));
        us_bus *operator_ = join(vendors[i], directory_of("ours", "/operator"));
        exchange(rover, operator_, "/odom", 20);
        exchange(operator_, rover, "/cmd_vel", 20);
        us_bus_close(operator_);
        us_bus_close(rover);
    }
}

static void expect_meeting(const char *vendor_a, const char *keys_a, const char *vendor_b,
                           const char *keys_b) {
    us_bus *a = join(vendor_a, keys_a), *b = join(vendor_b, keys_b);
    exchange(a, b, "/odom", 20);
    exchange(b, a, "/cmd_vel", 20);
    us_bus_close(b);
    us_bus_close(a);
}

// Which of two begins the handshake follows from their certificates' names. With Fast DDS 2.9 it must be the
// other one: these names have that order (docs/security.md).
static void vendors_meet_where_cyclone_begins(void **state) {
    (void)state;
    if (!has_vendor("fastdds")) return;
    make_plain_enclave("ours", "/op");
    expect_meeting("cyclone", directory_of("ours", "/rover"), "fastdds", directory_of("ours", "/op"));
}

// Whatever the names: those that do not have the order by themselves get it.
static void vendors_meet_with_keys_that_say_whose_they_are(void **state) {
    (void)state;
    if (!has_vendor("fastdds")) return;
    static const char *const names[] = {"/op", "/rover", "/a", "/fleet/rover_1", "/"};
    enum { N = sizeof names / sizeof names[0] };
    make_keystore("both");
    for (int i = 0; i < N; i++) {
        us_enclave_def def = us_enclave_def_default();
        def.enclave = names[i];
        def.vendor = "cyclone";
        make_enclave("both", def);
        def.enclave = names[(i + 1) % N];
        def.vendor = "fastdds";
        make_enclave("both", def);
        expect_meeting("cyclone", directory_of("both", names[i]), "fastdds",
                       directory_of("both", names[(i + 1) % N]));
    }
    us_enclave_def def = us_enclave_def_default();
    def.vendor = "opendds";
    char path[1024];
    us_error err = {0};
    snprintf(path, sizeof path, "%s/both", root);
    assert_int_equal(us_keystore_add(path, &def, &err), US_ERR_VALUE);
    assert_non_null(strstr(err.remedy, "cyclone or fastdds"));
}

// Two who trust each other talk while a third, who has no keys or those of another authority, listens to
// everything and says what it can.
static void expect_shut_out(const char *vendor, const char *strange_keys) {
    us_bus *rover = join(vendor, directory_of("ours", "/rover"));
    us_bus *operator_ = join(vendor, directory_of("ours", "/operator"));
    us_bus *stranger = join(vendor, strange_keys);
    us_reader *ear = add_reader(stranger, "/odom", usi_type_string, reliable, NULL, NULL);
    us_writer *mouth = add_writer(stranger, "/cmd_vel", usi_type_string, reliable);
    us_reader *rover_ear = add_reader(rover, "/cmd_vel", usi_type_string, reliable, NULL, NULL);
    us_writer *operator_mouth = add_writer(operator_, "/cmd_vel", usi_type_string, reliable);
    // The stranger has had as long as those who know each other, and longer.
    for (int round = 0; round < 3; round++) {
        exchange(rover, operator_, "/odom", 20);
        write_text_message(mouth, "from the stranger");
    }
    WAIT_FOR(us_writer_n_match(operator_mouth) == 1 && us_reader_n_match(rover_ear) == 1);
    assert_int_equal(take_all(rover_ear), 0);
    int32_t n_heard = 0;
    WAIT_FOR((write_text_message(operator_mouth, "from the operator"), n_heard += take_all(rover_ear)) > 0);
    assert_int_equal(us_reader_n_match(ear), 0);
    assert_int_equal(us_writer_n_match(mouth), 0);
    assert_int_equal(take_all(ear), 0);
    us_bus_close(stranger);
    us_bus_close(operator_);
    us_bus_close(rover);
}

static void without_keys_nothing_is_heard_and_nothing_moves(void **state) {
    (void)state;
    expect_shut_out("cyclone", NULL);
    if (has_vendor("fastdds")) expect_shut_out("fastdds", NULL);
}

static void keys_of_another_authority_open_nothing(void **state) {
    (void)state;
    expect_shut_out("cyclone", directory_of("theirs", "/operator"));
}

// ---------------------------------------------------------------- requests

typedef struct served {
    _Atomic int n, n_strange;  // requests of friends and of strangers
} served;

// Requests and replies of get_parameters; who asks says so in the name of the parameter.
static void serve_request(void *context, us_service *service, us_request_id id, const void *bytes,
                          size_t length) {
    served *s = context;
    _Alignas(16) uint8_t memory[1024];
    const void *m = NULL;
    const us_msg_get_parameters_response reply = {0};
    uint8_t out[256];
    size_t n_out = 0;
    if (us_message_decode(usi_type_get_parameters_request, bytes, length, memory, sizeof memory, &m, NULL))
        return;
    const us_msg_get_parameters_request *request = m;
    const bool is_strange = request->names._length != 1 || strcmp(request->names._buffer[0], "friend") != 0;
    atomic_fetch_add(is_strange ? &s->n_strange : &s->n, 1);
    if (!us_message_encode(usi_type_get_parameters_response, &reply, out, sizeof out, &n_out))
        us_service_reply(service, id, out, n_out);
}

static us_client *add_client_of(us_bus *bus, const char *name) {
    us_error err = {0};
    us_client *client = NULL;
    const us_client_def def = {name, usi_type_get_parameters_request, usi_type_get_parameters_response, -1,
                               us_bus_dialect(bus)};
    expect_ok(us_bus_add_client(bus, &def, &client, &err), &err);
    return client;
}

static us_client *add_client(us_bus *bus) { return add_client_of(bus, "/rover/ask"); }

static size_t make_request(const char *who, uint8_t bytes[256]) {
    char text[16];
    char *names[] = {text};
    const us_msg_get_parameters_request request = {.names = {._length = 1, ._buffer = names}};
    size_t length = 0;
    snprintf(text, sizeof text, "%s", who);
    assert_int_equal(us_message_encode(usi_type_get_parameters_request, &request, bytes, 256, &length),
                     US_OK);
    return length;
}

static void ask_as(us_client *client, const char *who) {
    uint8_t bytes[256];
    int64_t number = 0;
    const size_t length = make_request(who, bytes);
    assert_int_equal(us_client_ask(client, bytes, length, &number), US_OK);
}

static bool has_reply(us_client *client) {
    uint8_t bytes[256];
    size_t length = 0;
    int64_t number = 0;
    assert_int_equal(us_client_take(client, bytes, sizeof bytes, &length, &number), US_OK);
    return length > 0;
}

// Asks until it is answered: what was asked before the service knew of the client is lost.
static void ask_until_answered(us_client *client) {
    WAIT_FOR(us_client_is_ready(client));
    int n = 0;
    WAIT_FOR((n++ % 200 == 0 ? ask_as(client, "friend") : (void)0, has_reply(client)));
}

static us_service *add_service(us_bus *bus, served *s) {
    us_error err = {0};
    us_service *service = NULL;
    const us_service_def def = {"/rover/ask", usi_type_get_parameters_request,
                                usi_type_get_parameters_response, -1};
    expect_ok(us_bus_add_service(bus, &def, &service, &err), &err);
    assert_int_equal(us_service_serve(service, serve_request, s), US_OK);
    return service;
}

// A keystore with an enclave for each vendor, of its name.
static void make_enclaves_of_vendors(const char *keystore) {
    make_keystore(keystore);
    for (int i = 0; i < 2; i++) {
        us_enclave_def def = us_enclave_def_default();
        def.enclave = i == 0 ? "/cyclone" : "/fastdds";
        def.vendor = def.enclave + 1;
        make_enclave(keystore, def);
    }
}

// The engine of the other vendor, which is opened when the first program of that vendor asks, has the keys of
// the bus: it answers who has keys, and strangers of either vendor neither find it nor are heard.
static void services_are_for_those_with_keys_whichever_vendor_they_use(void **state) {
    (void)state;
    static const char *const vendors[] = {"cyclone", "fastdds"};
    if (!has_vendor("fastdds")) return;
    make_enclaves_of_vendors("services");
    for (int i = 0; i < 2; i++) {
        served s = {0};
        const char *const other = vendors[1 - i];
        us_bus *rover = join(vendors[i], directory_of("services", i == 0 ? "/cyclone" : "/fastdds"));
        us_service *service = add_service(rover, &s);
        us_bus *friend = join(other, directory_of("services", i == 0 ? "/fastdds" : "/cyclone"));
        us_bus *strangers[] = {join("cyclone", NULL), join("fastdds", NULL),
                               join("cyclone", directory_of("theirs", "/operator"))};
        us_client *asks[] = {add_client(strangers[0]), add_client(strangers[1]), add_client(strangers[2])};
        us_client *client = add_client(friend);
        for (int round = 0; round < 3; round++) {
            ask_until_answered(client);
            for (int k = 0; k < 3; k++)
                ask_as(asks[k], "stranger");
        }
        ask_until_answered(client);
        assert_true(s.n >= 4);
        assert_int_equal(s.n_strange, 0);
        for (int k = 0; k < 3; k++) {
            assert_false(us_client_is_ready(asks[k]) || has_reply(asks[k]));
            us_client_remove(asks[k]);
            us_bus_close(strangers[k]);
        }
        us_client_remove(client);
        us_bus_close(friend);
        us_service_remove(service);
        us_bus_close(rover);
    }
}

// Bytes that are no request in the dialect of Fast DDS, and one of a stranger in that of Cyclone.
static size_t make_ambiguous(uint8_t bytes[512]) {
    uint8_t plain[256];
    const size_t length = make_request("stranger", plain);
    memcpy(bytes, plain, 4);
    memset(bytes + 4, 0xff, 16);
    memcpy(bytes + 20, plain + 4, length - 4);
    return length + 16;
}

// A reply to a writer's requests has come.
static bool is_answered(us_reader *answers, const us_writer *asker) {
    uint8_t bytes[256];
    size_t length = 0;
    us_sample sample;
    assert_int_equal(us_reader_take(answers, bytes, sizeof bytes, &length, &sample), US_OK);
    if (length > 0) assert_memory_equal(sample.related_writer, asker->id, sizeof asker->id);
    return length > 0;
}

// Programs of ROS 2 on Fast DDS announce requests as any topic. With keys they match the robot's endpoints
// for Cyclone too: they are heard in their own dialect alone.
static void clients_that_match_both_dialects_are_heard_in_their_own(void **state) {
    (void)state;
    if (!has_vendor("fastdds")) return;
    make_enclaves_of_vendors("plain");
    served s = {0};
    us_bus *rover = join("cyclone", directory_of("plain", "/cyclone"));
    us_service *service = add_service(rover, &s);
    us_bus *other = join("fastdds", directory_of("plain", "/fastdds"));
    us_writer *asks = add_writer(other, "rq/rover/askRequest", usi_type_get_parameters_request, reliable);
    us_reader *answers =
        add_reader(other, "rr/rover/askReply", usi_type_get_parameters_response, reliable, NULL, NULL);
    WAIT_FOR(us_writer_n_match(asks) == 2 && us_reader_n_match(answers) == 2);
    uint8_t ambiguous[512], plain[256];
    const size_t n_ambiguous = make_ambiguous(ambiguous), n_plain = make_request("friend", plain);
    for (int round = 0; round < 4; round++) {
        int n = 0;
        assert_int_equal(usi_writer_send(asks, ambiguous, n_ambiguous, 0), US_OK);
        WAIT_FOR(
            (n++ % 200 == 0 ? us_writer_write(asks, plain, n_plain, 0) : US_OK, is_answered(answers, asks)));
    }
    assert_true(s.n >= 4);
    assert_int_equal(s.n_strange, 0);
    us_bus_close(other);
    us_service_remove(service);
    us_bus_close(rover);
}

// Own participants have their vendor's name, and others that of theirs where keys do not hide it.
static void expect_vendors(us_bus *bus, const char *own, const char *other) {
    us_participant all[64];
    int32_t n = 0, n_own = 0, n_other = 0;
    assert_int_equal(us_bus_list_participants(bus, all, 64, &n), US_OK);
    for (int32_t i = 0; i < n && i < 64; i++) {
        n_own += all[i].is_own && !strcmp(all[i].vendor, own);
        n_other += !all[i].is_own && !strcmp(all[i].vendor, other);
    }
    assert_int_equal(n_own, 1);
    assert_true(n_other >= 1);
}

// Endpoints of a service in one dialect, which an engine of the other matches: no client of that takes the
// service for ready.
static void services_of_another_dialect_are_not_ready(void **state) {
    (void)state;
    static const char *const vendors[] = {"cyclone", "fastdds"};
    if (!has_vendor("fastdds")) return;
    make_enclaves_of_vendors("ready");
    for (int i = 0; i < 2; i++) {
        us_bus *server = join(vendors[i], directory_of("ready", i == 0 ? "/cyclone" : "/fastdds"));
        us_bus *asker = join(vendors[1 - i], directory_of("ready", i == 0 ? "/fastdds" : "/cyclone"));
        us_reader *in =
            add_reader(server, "rq/askRequest", usi_type_get_parameters_request, reliable, NULL, NULL);
        us_writer *out = add_writer(server, "rr/askReply", usi_type_get_parameters_response, reliable);
        us_client *client = add_client_of(asker, "/ask");
        // endpoints of a plain topic, which meet those of the server
        us_writer *plain_out = add_writer(asker, "rq/askRequest", usi_type_get_parameters_request, reliable);
        us_reader *plain_in =
            add_reader(asker, "rr/askReply", usi_type_get_parameters_response, reliable, NULL, NULL);
        // Cyclone matches all four, Fast DDS keeps away from Cyclone.
        const int32_t n = i == 0 ? 1 : 2;
        WAIT_FOR(us_writer_n_match(plain_out) == 1 && us_reader_n_match(plain_in) == 1 &&
                 us_reader_n_match(in) == n && us_writer_n_match(out) == n);
        assert_false(us_client_is_ready(client));
        expect_vendors(server, vendors[i], i == 0 ? "" : "cyclone");
        us_client_remove(client);
        us_bus_close(asker);
        us_bus_close(server);
    }
}

static void topics_that_are_not_allowed_are_refused(void **state) {
    (void)state;
    static const char *const write[] = {"/odom"}, *const read[] = {"/cmd_vel", "/arm/*"};
    us_enclave_def def = us_enclave_def_default();
    def.enclave = "/narrow";
    def.publish = write;
    def.n_publish = 1;
    def.subscribe = read;
    def.n_subscribe = 2;
    make_enclave("ours", def);
    static const char *const vendors[] = {"cyclone", "fastdds"};
    for (int i = 0; i < 2; i++) {
        if (!has_vendor(vendors[i])) continue;
        us_bus *bus = join(vendors[i], directory_of("ours", "/narrow"));
        us_error err = {0};
        us_writer *writer = NULL;
        us_reader *reader = NULL;
        us_topic_def topic = {"/odom", usi_type_string, reliable, -1};
        expect_ok(us_bus_add_writer(bus, &topic, &writer, &err), &err);
        topic.topic = "/arm/elbow";
        expect_ok(us_bus_add_reader(bus, &topic, NULL, NULL, &reader, &err), &err);
        assert_int_equal(us_bus_add_writer(bus, &topic, &writer, &err), US_ERR_IO);
        assert_non_null(strstr(err.message, "rt/arm/elbow"));
        assert_non_null(strstr(err.remedy, "understudy keys add"));
        topic.topic = "/odom";
        assert_int_equal(us_bus_add_reader(bus, &topic, NULL, NULL, &reader, &err), US_ERR_IO);
        us_bus_close(bus);
    }
}

// ---------------------------------------------------------------- the wire

typedef struct capture {
    int fd;
    FILE *file;
    int64_t n_packet, n_marked;
} capture;

static void begin_capture(capture *c, const char *path) {
    const int size = 8 << 20;
    const uint32_t header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};  // pcap, Ethernet
    *c = (capture){.fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL)),
                   .file = fopen(path, "wb")};
    assert_true(c->fd >= 0);
    assert_non_null(c->file);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    fwrite(header, sizeof header, 1, c->file);
}

static void take_packets(capture *c) {
    static uint8_t bytes[1 << 17];
    for (ssize_t n; (n = recv(c->fd, bytes, sizeof bytes, 0)) > 0;) {
        const uint32_t head[4] = {(uint32_t)c->n_packet, 0, (uint32_t)n, (uint32_t)n};
        fwrite(head, sizeof head, 1, c->file);
        fwrite(bytes, 1, (size_t)n, c->file);
        c->n_packet++;
        c->n_marked += memmem(bytes, (size_t)n, MARKER, sizeof MARKER - 1) != NULL;
    }
}

// The other program: repeats on /echo what comes on /odom, until its standard input ends.
static int run_repeater(const char *vendor, const char *number, const char *keys) {
    us_bus_def def = us_bus_def_default();
    us_bus *bus = NULL;
    us_writer *writer = NULL;
    us_reader *reader = NULL;
    us_topic_def in = {"/odom", usi_type_string, reliable, -1},
                 out = {"/echo", usi_type_string, reliable, -1};
    def.vendor = vendor;
    def.domain = atoi(number);
    def.keys = keys[0] ? keys : NULL;
    if (us_bus_open(&def, &bus, NULL) || us_bus_add_writer(bus, &out, &writer, NULL) ||
        us_bus_add_reader(bus, &in, NULL, NULL, &reader, NULL))
        return 1;
    printf("ready\n");
    fflush(stdout);
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    for (char byte; read(STDIN_FILENO, &byte, 1) != 0;) {
        uint8_t bytes[1024];
        us_bus_wait(bus, 0.05);
        for (size_t n = 1; us_reader_take(reader, bytes, sizeof bytes, &n, NULL) == US_OK && n;)
            us_writer_write(writer, bytes, n, 0);
    }
    us_bus_close(bus);
    return 0;
}

static peer start_repeater(const char *vendor, const char *keys) {
    static char program[1024], name[] = "--repeat", kind[32], number[16], directory[1024];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(n > 0);
    program[n] = 0;
    snprintf(kind, sizeof kind, "%s", vendor);
    snprintf(number, sizeof number, "%d", domain());
    snprintf(directory, sizeof directory, "%s", keys ? keys : "");
    return start_peer(program, (char *[]){program, name, kind, number, directory, NULL});
}

// Says the marker until another process has said it again 20 times; looks at the wire meanwhile, if asked to.
static void hear_repeater(us_bus *bus, capture *wire) {
    us_writer *writer = add_writer(bus, "/odom", usi_type_string, reliable);
    us_reader *reader = add_reader(bus, "/echo", usi_type_string, reliable, NULL, NULL);
    for (int32_t n = 0, i = 0; n < 20; i++) {
        assert_true(i < 4000);
        write_text_message(writer, MARKER);
        us_bus_wait(bus, 0.01);
        n += take_all(reader);
        if (wire) take_packets(wire);
    }
}

// Two programs exchange the marker; *out gets what went over the wire meanwhile.
static void watch_wire(const char *vendor, bool is_secured, const char *path, capture *out) {
    begin_capture(out, path);
    us_bus *rover = join(vendor, is_secured ? directory_of("ours", "/rover") : NULL);
    peer other = start_repeater(vendor, is_secured ? directory_of("ours", "/operator") : NULL);
    hear_repeater(rover, out);
    stop_peer(&other);
    us_bus_close(rover);
    take_packets(out);
    struct tpacket_stats lost = {0};
    socklen_t length = sizeof lost;
    assert_int_equal(getsockopt(out->fd, SOL_PACKET, PACKET_STATISTICS, &lost, &length), 0);
    assert_int_equal(lost.tp_drops, 0);
    close(out->fd);
    fclose(out->file);
}

static void the_wire_carries_no_plain_text(void **state) {
    (void)state;
    if (!has_network) {
        print_message("skipped: needs root, for a network of its own\n");
        return;
    }
    static const char *const vendors[] = {"cyclone", "fastdds"};
    for (int i = 0; i < 2; i++) {
        if (!has_vendor(vendors[i])) continue;
        capture open, secured;
        watch_wire(vendors[i], false, "open.pcap", &open);
        watch_wire(vendors[i], true, "secured.pcap", &secured);
        assert_true(open.n_marked >= 20);  // the same eyes see it where it is
        assert_true(secured.n_packet >= 20);
        assert_int_equal(secured.n_marked, 0);
    }
}

// ---------------------------------------------------------------- SROS 2

// Two processes, as keys for a single domain serve one participant of Cyclone DDS in each.
static void expect_meeting_apart(const char *vendor, const char *keys, const char *other_keys) {
    us_bus *bus = join(vendor, keys);
    peer other = start_repeater(vendor, other_keys);
    hear_repeater(bus, NULL);
    stop_peer(&other);
    us_bus_close(bus);
}

static void make_by_sros2(const char *keystore, const char *kind, const char *enclaves) {
    char line[2000];
    snprintf(line, sizeof line, "bash '%s/tests/e2e/sros2_keystore.sh' '%s/%s' %d %s %s", US_SOURCE_DIR, root,
             keystore, domain(), kind, enclaves);
    assert_int_equal(system(line), 0);
}

// Keystores as SROS 2 makes them are used as they are, go on with `understudy keys add`, and the other way
// round.
static void keystores_of_sros2_are_used(void **state) {
    (void)state;
    static const char *const vendors[] = {"cyclone", "fastdds"}, *const kinds[] = {"old", "new"};
    for (int k = 0; k < 2; k++) {
        make_by_sros2(kinds[k], kinds[k], "/ /talker /fleet/listener");
        us_enclave_info infos[4];
        us_error err = {0};
        int32_t n = 0;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", root, kinds[k]);
        expect_ok(us_keystore_list(path, infos, 4, &n, &err), &err);
        assert_int_equal(n, 3);
        for (int i = 0; i < n; i++)
            expect_ok(infos[i].status, &infos[i].error);
        assert_int_equal(us_enclave_check(directory_of(kinds[k], "/talker"), domain() + 1, &err),
                         US_ERR_VALUE);
        make_plain_enclave(kinds[k], "/ours");
        for (int v = 0; v < 2; v++) {
            if (!has_vendor(vendors[v])) continue;
            expect_meeting_apart(vendors[v], directory_of(kinds[k], "/talker"),
                                 directory_of(kinds[k], "/fleet/listener"));
            expect_meeting_apart(vendors[v], directory_of(kinds[k], "/"), directory_of(kinds[k], "/ours"));
        }
    }
    make_by_sros2("ours", "old", "/theirs");
    expect_meeting_apart("cyclone", directory_of("ours", "/theirs"), directory_of("ours", "/rover"));
}

// A keystore may have one authority for identities and another for permissions.
static void two_authorities_are_told_apart(void **state) {
    (void)state;
    make_by_sros2("two", "old", "");
    make_by_sros2("second", "old", "");
    char line[4000];
    snprintf(line, sizeof line,
             "cd '%s/two' && mv -f ../second/public/ca.cert.pem public/identity_ca.cert.pem && "
             "mv -f ../second/private/ca.key.pem private/identity_ca.key.pem && "
             "mv -f public/ca.cert.pem public/permissions_ca.cert.pem && "
             "mv -f private/ca.key.pem private/permissions_ca.key.pem",
             root);
    assert_int_equal(system(line), 0);
    make_plain_enclave("two", "/rover");
    make_by_sros2("two", "old", "/theirs");
    expect_meeting_apart("cyclone", directory_of("two", "/rover"), directory_of("two", "/theirs"));
}

// ---------------------------------------------------------------- keys that do not hold

static void expect_refused(const char *directory, us_status status, const char *file, const char *message) {
    us_bus_def def = us_bus_def_default();
    us_bus *bus = NULL;
    us_error err = {0};
    def.domain = domain();
    def.keys = directory;
    assert_int_equal(us_bus_open(&def, &bus, &err), status);
    assert_null(bus);
    if (!strstr(err.file, file)) fail_msg("%s is not named: %s", file, err.file);
    if (!strstr(err.message, message)) fail_msg("\"%s\" is not in: %s", message, err.message);
    assert_true(err.remedy[0]);
}

static void copy_key(const char *from, const char *to, const char *name) {
    char line[3000];
    snprintf(line, sizeof line, "cp '%s/%s' '%s/%s'", from, name, to, name);
    assert_int_equal(system(line), 0);
}

static void keys_that_do_not_hold_are_named(void **state) {
    (void)state;
    us_enclave_def old = us_enclave_def_default();
    old.enclave = "/old";
    old.start = 1500000000;
    make_enclave("ours", old);
    expect_refused(directory_of("ours", "/old"), US_ERR_VALUE, "/old/cert.pem", "expired");
    us_enclave_def later = us_enclave_def_default();
    later.enclave = "/later";
    later.start = (int64_t)time(NULL) + 86400;
    make_enclave("ours", later);
    expect_refused(directory_of("ours", "/later"), US_ERR_VALUE, "/later/cert.pem", "not yet valid");
    us_enclave_def elsewhere = us_enclave_def_default();
    elsewhere.enclave = "/elsewhere";
    elsewhere.domains = "201,203-204";
    make_enclave("ours", elsewhere);
    expect_refused(directory_of("ours", "/elsewhere"), US_ERR_VALUE, "permissions.p7s",
                   "not meant for domain");

    char theirs[1024];
    snprintf(theirs, sizeof theirs, "%s", directory_of("theirs", "/operator"));
    static const struct {
        const char *file, *named, *message;
    } swaps[] = {{"identity_ca.cert.pem", "cert.pem", "does not hold"},
                 {"cert.pem", "key.pem", "not the private key"},
                 {"key.pem", "key.pem", "not the private key"},
                 {"permissions_ca.cert.pem", "governance.p7s", "signature does not hold"},
                 {"governance.p7s", "governance.p7s", "signature does not hold"},
                 {"permissions.p7s", "permissions.p7s", "signature does not hold"}};
    for (size_t i = 0; i < sizeof swaps / sizeof swaps[0]; i++) {
        make_plain_enclave("ours", "/mixed");
        const char *mixed = directory_of("ours", "/mixed");
        char path[1200];
        copy_key(theirs, mixed, swaps[i].file);
        expect_refused(mixed, US_ERR_VALUE, swaps[i].named, swaps[i].message);
        snprintf(path, sizeof path, "%s/%s", mixed, swaps[i].file);
        unlink(path);
        expect_refused(mixed, US_ERR_IO, swaps[i].file, "cannot be read");
    }
}

// One changed character anywhere in a signed document, seeded: none is taken. Blanks at the ends of its lines
// and the words before the text are no part of what is signed.
static void changed_documents_are_refused(void **state) {
    (void)state;
    static const char *const names[] = {"governance.p7s", "permissions.p7s"};
    make_plain_enclave("ours", "/changed");
    const char *directory = directory_of("ours", "/changed");
    uint64_t seed = 7;
    for (int k = 0; k < 200; k++) {
        char path[1200];
        static char bytes[1 << 16];
        snprintf(path, sizeof path, "%s/%s", directory, names[k % 2]);
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        const size_t n = fread(bytes, 1, sizeof bytes - 1, file);
        bytes[n] = 0;
        const char *first = strstr(bytes, "<dds>"), *last = strstr(bytes, "</dds>");
        assert_true(first && last);
        const long at =
            (long)(first - bytes) + (long)(us_random_bits(seed, 1, (uint64_t)k) % (uint64_t)(last - first));
        const char was = bytes[at], is = was == '1' ? '2' : was == '>' ? '<' : '1';
        fseek(file, at, SEEK_SET);
        fputc(is, file);
        fflush(file);
        us_error err = {0};
        const us_status status = us_enclave_check(directory, -1, &err);
        if (status != US_ERR_VALUE) fail_msg("seed %d: '%c' for '%c' at %ld is taken", k, is, was, at);
        fseek(file, at, SEEK_SET);
        fputc(was, file);
        fclose(file);
    }
    us_error err = {0};
    expect_ok(us_enclave_check(directory, -1, &err), &err);
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "--repeat") == 0) return run_repeater(argv[2], argv[3], argv[4]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_with_keys_of_one_keystore_meet),
        cmocka_unit_test(vendors_meet_where_cyclone_begins),
        cmocka_unit_test(vendors_meet_with_keys_that_say_whose_they_are),
        cmocka_unit_test(keystores_of_sros2_are_used),
        cmocka_unit_test(two_authorities_are_told_apart),
        cmocka_unit_test(without_keys_nothing_is_heard_and_nothing_moves),
        cmocka_unit_test(keys_of_another_authority_open_nothing),
        cmocka_unit_test(services_are_for_those_with_keys_whichever_vendor_they_use),
        cmocka_unit_test(clients_that_match_both_dialects_are_heard_in_their_own),
        cmocka_unit_test(services_of_another_dialect_are_not_ready),
        cmocka_unit_test(topics_that_are_not_allowed_are_refused),
        cmocka_unit_test(the_wire_carries_no_plain_text),
        cmocka_unit_test(keys_that_do_not_hold_are_named),
        cmocka_unit_test(changed_documents_are_refused),
    };
    return cmocka_run_group_tests(tests, make_all, remove_all);
}
