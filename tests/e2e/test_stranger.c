// A machine beside this one, as a network namespace with a cable to ours: what it forges is not taken where
// the range is this machine.
//
// The packets are RTPS made by hand: a participant that does not exist, its writer, samples. They need no
// answer, so that a robot that listens on all addresses takes them for a local program's; the same bytes sent
// on the loopback show that they would be understood.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net_peer.h"
#include "shell.h"

static const char OURS[] = "10.77.0.1", THEIRS[] = "10.77.0.2";

// ---------------------------------------------------------------- RTPS by hand

typedef struct packet {
    uint8_t bytes[2048];
    size_t n;
} packet;

static void put(packet *p, const void *bytes, size_t n) {
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
}
static void put_16(packet *p, uint16_t x) { put(p, &x, sizeof x); }
static void put_32(packet *p, uint32_t x) { put(p, &x, sizeof x); }

static const uint8_t guid_prefix[12] = {1, 15, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t nobody[4] = {0}, participant_id[4] = {0, 0, 1, 0xc1}, spdp_writer[4] = {0, 1, 0, 0xc2},
                     sedp_writer[4] = {0, 0, 3, 0xc2}, user_writer[4] = {0, 0, 1, 3};

static packet begin_packet(void) {
    packet p = {.n = 0};
    put(&p, "RTPS\x02\x02\x01\x0f", 8);
    put(&p, guid_prefix, sizeof guid_prefix);
    return p;
}

static void put_data(packet *p, const uint8_t writer[4], uint32_t number, const packet *payload) {
    put(p, "\x15\x05", 2);
    put_16(p, (uint16_t)(20 + payload->n));
    put_16(p, 0);
    put_16(p, 16);
    put(p, nobody, 4);
    put(p, writer, 4);
    put_32(p, 0);
    put_32(p, number);
    put(p, payload->bytes, payload->n);
}

// The writer has this one sample: a reader waits for none before it.
static void put_heartbeat(packet *p, const uint8_t writer[4], uint32_t number) {
    put(p, "\x07\x03", 2);
    put_16(p, 28);
    put(p, nobody, 4);
    put(p, writer, 4);
    put_32(p, 0);
    put_32(p, number);
    put_32(p, 0);
    put_32(p, number);
    put_32(p, number);
}

static void put_parameter(packet *p, uint16_t id, const void *bytes, size_t n) {
    size_t padded = (n + 3) / 4 * 4;
    put_16(p, id);
    put_16(p, (uint16_t)padded);
    put(p, bytes, n);
    put(p, "\0\0\0", padded - n);
}

static void put_text_parameter(packet *p, uint16_t id, const char *text) {
    packet t = {.n = 0};
    put_32(&t, (uint32_t)strlen(text) + 1);
    put(&t, text, strlen(text) + 1);
    put_parameter(p, id, t.bytes, t.n);
}

static void put_guid(packet *p, uint16_t id, const uint8_t entity[4]) {
    uint8_t guid[16];
    memcpy(guid, guid_prefix, 12);
    memcpy(guid + 12, entity, 4);
    put_parameter(p, id, guid, sizeof guid);
}

static void put_locator(packet *p, uint16_t id, uint32_t port) {
    packet t = {.n = 0};
    put_32(&t, 1);
    put_32(&t, port);
    put(&t, "\0\0\0\0\0\0\0\0\0\0\0\0\x7f\0\0\x01", 16);
    put_parameter(p, id, t.bytes, t.n);
}

static packet begin_list(void) {
    packet p = {.n = 0};
    put(&p, "\0\x03\0\0", 4);
    put_parameter(&p, 0x15, "\x02\x02", 2);
    put_parameter(&p, 0x16, "\x01\x0f", 2);
    put_guid(&p, 0x50, participant_id);
    return p;
}

static packet announce_participant(void) {
    packet list = begin_list(), p = begin_packet();
    const uint32_t endpoints = 0xc3f, lease[2] = {100, 0};
    put_parameter(&list, 0x58, &endpoints, sizeof endpoints);
    put_locator(&list, 0x31, 39999);
    put_locator(&list, 0x32, 39998);
    put_parameter(&list, 0x02, lease, sizeof lease);
    put_32(&list, 1);
    put_data(&p, spdp_writer, 1, &list);
    return p;
}

static packet announce_writer(const char *topic, const char *type) {
    packet list = begin_list(), p = begin_packet();
    const uint32_t reliable[3] = {2, 0, 0x19999999}, is_volatile = 0;
    put_guid(&list, 0x5a, user_writer);
    put_text_parameter(&list, 0x05, topic);
    put_text_parameter(&list, 0x07, type);
    put_parameter(&list, 0x1a, reliable, sizeof reliable);
    put_parameter(&list, 0x1d, &is_volatile, sizeof is_volatile);
    put_32(&list, 1);
    put_heartbeat(&p, sedp_writer, 1);
    put_data(&p, sedp_writer, 1, &list);
    return p;
}

static packet sample_packet(uint32_t number, const packet *payload) {
    packet p = begin_packet();
    put_heartbeat(&p, user_writer, number);
    put_data(&p, user_writer, number, payload);
    return p;
}

static packet twist_payload(double vx) {
    packet p = {.n = 0};
    const double twist[6] = {vx, 0, 0, 0, 0, 0};
    put(&p, "\0\x01\0\0", 4);
    put(&p, twist, sizeof twist);
    return p;
}

static packet text_payload(const char *text) {
    packet p = {.n = 0};
    put(&p, "\0\x01\0\0", 4);
    put_32(&p, (uint32_t)strlen(text) + 1);
    put(&p, text, strlen(text) + 1);
    while (p.n % 4)
        put(&p, "", 1);
    return p;
}

// To the first participants of the domain: their ports for discovery, or for samples.
static void send_to(int fd, const char *address, int32_t domain, bool is_user, const packet *p) {
    for (int i = 0; i < 6; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)(7410 + 250 * domain + 2 * i + is_user))};
        inet_pton(AF_INET, address, &to.sin_addr);
        sendto(fd, p->bytes, p->n, 0, (const struct sockaddr *)&to, sizeof to);
    }
}

typedef enum deed { DEED_FORGE, DEED_STORM, DEED_CONNECT } deed;

// What is to be done to an address: a command forged, packets in a storm, a connection.
typedef struct order {
    deed deed;
    char address[32];
    int32_t domain;
    int32_t n;  // the number of the command, of packets, of the port
} order;

// A participant that is not there, its writer, and one command. Nothing is asked back, so it takes as many
// orders as the robot needs to know of the one before it hears the other.
static void forge(const order *o) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    const packet participant = announce_participant(),
                 writer = announce_writer("rt/k10/cmd_vel", "geometry_msgs::msg::dds_::Twist_"),
                 payload = twist_payload(0.4), command = sample_packet((uint32_t)o->n, &payload);
    send_to(fd, o->address, o->domain, false, &participant);
    send_to(fd, o->address, o->domain, false, &writer);
    send_to(fd, o->address, o->domain, true, &command);
    close(fd);
}

static bool can_connect(const order *o) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->n)};
    inet_pton(AF_INET, o->address, &to.sin_addr);
    int result = connect(fd, (const struct sockaddr *)&to, sizeof to), error = 0;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t length = sizeof error;
    if (result && errno == EINPROGRESS && poll(&p, 1, 2000) > 0)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    else if (result)
        error = ETIMEDOUT;
    close(fd);
    return error == 0;
}

// Packets of every kind, whole and damaged, as fast as they go.
static int64_t storm(const order *o) {
    static const char *const topics[][2] = {
        {"rt/k10/cmd_vel", "geometry_msgs::msg::dds_::Twist_"},
        {"rt/k10/cmd_vel", "geometry_msgs::msg::dds_::TwistStamped_"},
        {"rt/k10/joint_commands", "std_msgs::msg::dds_::Float64MultiArray_"},
        {"rt/k10/motor_group/command", "understudy_msgs::msg::dds_::MotorGroupCommand_"},
        {"rt/k10/locomotor/command", "understudy_msgs::msg::dds_::LocomotorCommand_"},
        {"rt/understudy/command", "std_msgs::msg::dds_::String_"},
        {"rt/understudy/authority", "std_msgs::msg::dds_::String_"},
        {"ros_discovery_info", "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"},
    };
    enum { N_TOPIC = sizeof topics / sizeof topics[0], N_DAMAGE = 25 };  // 200 kinds
    static const char *const texts[] = {"reset", "pause", "fault k10 motor:front_left_drive=dead",
                                        "record start /tmp/stranger.mcap"};
    uint64_t seed = 1;
    int64_t n = 0;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    for (int32_t round = 0; n < o->n; round++) {
        for (int t = 0; t < N_TOPIC; t++) {
            for (int damage = 0; damage < N_DAMAGE; damage++) {
                const packet payload = t >= 5 ? text_payload(texts[round % 4]) : twist_payload(0.5);
                packet p[3] = {announce_participant(), announce_writer(topics[t][0], topics[t][1]),
                               sample_packet((uint32_t)round + 1, &payload)};
                for (int k = 0; k < 3; k++) {
                    for (int i = 0; i < damage; i++) {
                        seed = seed * UINT64_C(6364136223846793005) + 1;
                        p[k].bytes[20 + (seed >> 33) % (p[k].n - 20)] ^= (uint8_t)(seed >> 50);
                    }
                    send_to(fd, o->address, o->domain, k == 2, &p[k]);
                    n += 6;
                }
            }
        }
    }
    close(fd);
    return n;
}

// ---------------------------------------------------------------- the other machine

static int to_stranger = -1, from_stranger = -1;
static pid_t stranger;

// Carries out orders until its parent is gone.
static void be_stranger(int in, int out) {
    order o;
    while (read(in, &o, sizeof o) == (ssize_t)sizeof o) {
        int64_t n = 0;
        if (o.deed == DEED_STORM) n = storm(&o);
        if (o.deed == DEED_CONNECT) n = can_connect(&o);
        if (o.deed == DEED_FORGE) forge(&o);
        if (write(out, &n, sizeof n) != (ssize_t)sizeof n) break;
    }
    _exit(0);
}

static int64_t ask_stranger(const order *o) {
    int64_t n = 0;
    assert_int_equal(write(to_stranger, o, sizeof *o), sizeof *o);
    assert_int_equal(read(from_stranger, &n, sizeof n), sizeof n);
    return n;
}

// A network of our own, as root or as a user who is root in a namespace.
static bool unshare_network(void) {
    return unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

// Namespaces end with the processes in them.
static int make_machines(void **state) {
    (void)state;
    int there[2], back[2];
    char go = 0;
    if (!shell("command -v ip >/dev/null")) {
        fprintf(stderr, "the program ip is missing: install iproute2\n");
        return -1;
    }
    if (!unshare_network()) {
        fprintf(stderr, "no network namespace (%s): run as root, or allow user namespaces\n",
                strerror(errno));
        return -1;
    }
    if (pipe(there) || pipe(back)) return -1;
    stranger = fork();
    if (stranger == 0) {
        signal(SIGPIPE, SIG_IGN);
        close(there[1]);
        close(back[0]);
        if (unshare(CLONE_NEWNET) != 0 || write(back[1], &go, 1) != 1 || read(there[0], &go, 1) != 1)
            _exit(1);
        if (!shell("ip link set lo up && ip addr add %s/24 dev them && ip link set them up", THEIRS))
            _exit(1);
        if (write(back[1], &go, 1) != 1) _exit(1);
        be_stranger(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    to_stranger = there[1];
    from_stranger = back[0];
    fcntl(to_stranger, F_SETFD, FD_CLOEXEC);
    fcntl(from_stranger, F_SETFD, FD_CLOEXEC);
    if (read(from_stranger, &go, 1) != 1) return -1;
    const bool is_wired = shell("ip link set lo up && ip link add us type veth peer name them netns %d && "
                                "ip addr add %s/24 dev us && ip link set us up",
                                (int)stranger, OURS);
    if (!is_wired || write(to_stranger, &go, 1) != 1 || read(from_stranger, &go, 1) != 1) return -1;
    return 0;
}

static int end_machines(void **state) {
    if (stranger > 0) {
        kill(stranger, SIGKILL);
        waitpid(stranger, NULL, 0);
    }
    return net_teardown(state);
}

// ---------------------------------------------------------------- a robot

static net_peer *ear;
static int32_t truth;

static void start_robot(const char *rmw) {
    net_set_rmw(rmw);
    net_write_k10("k10.xml", "<network timeout='1 s'/>");
    ear = net_open("cyclone");
    truth = net_listen(ear, "/understudy/truth/k10/odom", usi_type_odometry);
    net_run("k10.xml --headless --quiet");
    NET_WAIT(net_count(ear, truth) > 20);
}

static double position(void) {
    int64_t n = net_count(ear, truth);
    NET_WAIT(net_count(ear, truth) > n + 2);
    return ((const us_msg_odometry *)net_decode(ear, truth, -1))->pose.pose.position.x;
}

// Simulated time, s, and that of the machine.
typedef struct instant {
    double simulated, real;
} instant;

static instant look_at_clocks(void) {
    (void)position();
    const us_msg_odometry *m = net_decode(ear, truth, -1);
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (instant){m->header.stamp.sec + 1e-9 * m->header.stamp.nanosec,
                     (double)t.tv_sec + 1e-9 * (double)t.tv_nsec};
}

static void end_robot(void) {
    assert_int_equal(net_end(SIGINT), 0);
    net_close(ear);
    net_set_rmw(NULL);
}

static order make_order(deed what, const char *address, int32_t n) {
    order o = {.deed = what, .domain = net_domain(), .n = n};
    snprintf(o.address, sizeof o.address, "%s", address);
    return o;
}

// Commands to an address, from this machine or the other, one with every few samples of the truth, until the
// robot has moved so far or has had that many. How far it moved, m.
static double drive(const char *address, bool is_stranger, double far, int32_t n_command) {
    const double before = position();
    double moved = 0;
    for (int32_t i = 1; i <= n_command && !(fabs(moved) > far); i++) {
        const order o = make_order(DEED_FORGE, address, i);
        if (is_stranger)
            ask_stranger(&o);
        else
            forge(&o);
        moved = position() - before;
    }
    return moved;
}

// ---------------------------------------------------------------- tests

// Commands of ours drive off after about ten; a robot that hears nobody gets several times that.
enum { FEW = 50, MANY = 500 };

static void forged_packets_of_this_machine_are_understood(void **state) {
    (void)state;
    start_robot(NULL);
    assert_true(drive("127.0.0.1", false, 0.1, MANY) > 0.1);
    end_robot();
}

static void forged_packets_of_another_machine_move_nothing(void **state) {
    (void)state;
    static const char *const vendors[] = {NULL, "rmw_fastrtps_cpp"};
    for (int i = 0; i < 2; i++) {
        net_peer *other = vendors[i] ? net_open("fastdds") : NULL;
        if (vendors[i] && !other) {
            print_message("skipped: Fast DDS is not built\n");
            continue;
        }
        if (other) net_close(other);
        start_robot(vendors[i]);
        // A rover that stands creeps by less than a micrometre.
        const double moved = drive(OURS, true, INFINITY, FEW);
        if (!(fabs(moved) < 1e-5)) fail_msg("%s: moved by %g m", vendors[i] ? vendors[i] : "default", moved);
        end_robot();
    }
}

static void a_named_peer_is_let_in(void **state) {
    (void)state;
    net_set_static_peers(THEIRS);
    start_robot(NULL);
    net_set_static_peers(NULL);
    assert_true(drive(OURS, true, 0.1, MANY) > 0.1);
    end_robot();
}

static void a_storm_changes_nothing_and_time_goes_on(void **state) {
    (void)state;
    start_robot(NULL);
    const order o = make_order(DEED_STORM, OURS, getenv("US_LONG_TESTS") ? 1000000 : 30000);
    double before = position();
    int64_t n = net_count(ear, truth);
    const instant from = look_at_clocks();
    const int64_t n_packet = ask_stranger(&o);
    const instant to = look_at_clocks();
    assert_true(n_packet >= o.n);
    assert_true(net_count(ear, truth) > n);
    print_message("%lld packets of 200 kinds in %.2f s: %.2f s passed in the world\n", (long long)n_packet,
                  to.real - from.real, to.simulated - from.simulated);
    assert_true(fabs(position() - before) < 1e-5);
    assert_int_not_equal(access("/tmp/stranger.mcap", F_OK), 0);
    end_robot();
}

static void no_port_of_ours_answers_another_machine(void **state) {
    (void)state;
    const int motors = net_free_port(), page = net_free_port();
    char inside[200];
    snprintf(inside, sizeof inside,
             "<motors port='%d'><motor name='FLDR' joint='front_left_drive'/></motors>", motors);
    net_set_rmw(NULL);
    net_write_k10("k10.xml", inside);
    ear = net_open("cyclone");
    truth = net_listen(ear, "/understudy/truth/k10/odom", usi_type_odometry);
    net_run("k10.xml --quiet --port %d", page);
    NET_WAIT(net_count(ear, truth) > 20);
    const int ports[] = {page, motors};
    for (int i = 0; i < 2; i++) {
        const order o = make_order(DEED_CONNECT, OURS, ports[i]);
        assert_int_equal(ask_stranger(&o), 0);
    }
    end_robot();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_packets_of_this_machine_are_understood),
        cmocka_unit_test(forged_packets_of_another_machine_move_nothing),
        cmocka_unit_test(a_named_peer_is_let_in),
        cmocka_unit_test(a_storm_changes_nothing_and_time_goes_on),
        cmocka_unit_test(no_port_of_ours_answers_another_machine),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make_machines, end_machines);
}
