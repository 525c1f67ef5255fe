// A machine beside this one, as a network namespace with a cable to ours: what it forges is not taken where
// the range is this machine.
//
// Two cables lead there, so that the robot's machine has a second network card, and both have addresses of
// IPv6 besides.
//
// The packets are RTPS made by hand: a participant that does not exist, its writer, samples. They need no
// answer, so that a robot that listens on all addresses takes them for a local program's; the same bytes sent
// on the loopback show that they would be understood.
#include <arpa/inet.h>
#include <dirent.h>
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

#include "bus/local_socket.h"
#include "net_peer.h"
#include "shell.h"
#include "understudy/service.h"

static const char OURS[] = "10.77.0.1", THEIRS[] = "10.77.0.2", OTHER_CARD[] = "10.78.0.1";
// Theirs has the four bytes of THEIRS where a header of version 4 has its source, read by somebody who takes
// this one for such.
static const char OURS_6[] = "fd00:0:a4d:2::1", THEIRS_6[] = "fd00:0:a4d:2::2";
// Groups that DDS uses.
static const char GROUP[] = "239.255.0.1";

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

typedef enum deed { DEED_FORGE, DEED_STORM, DEED_CONNECT, DEED_HAIL } deed;

// What is to be done to an address: a command forged, packets in a storm, a connection, a few bytes to a
// port.
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

// An address of either version, with a port. How long it is.
static socklen_t read_address(const order *o, struct sockaddr_storage *out) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->n)};
    struct sockaddr_in6 to_6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)o->n)};
    if (inet_pton(AF_INET, o->address, &to.sin_addr) == 1) {
        memcpy(out, &to, sizeof to);
        return sizeof to;
    }
    inet_pton(AF_INET6, o->address, &to_6.sin6_addr);
    memcpy(out, &to_6, sizeof to_6);
    return sizeof to_6;
}

static bool can_connect(const order *o) {
    struct sockaddr_storage to = {0};
    const socklen_t n_to = read_address(o, &to);
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int result = connect(fd, (const struct sockaddr *)&to, n_to), error = 0;
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

// Datagrams to a port: to an address of either version, or to a group by the first cable.
enum { HAIL = 20 };

static void hail(const order *o) {
    struct sockaddr_storage to = {0};
    const socklen_t n_to = read_address(o, &to);
    const int fd = socket(to.ss_family, SOCK_DGRAM, 0);
    const struct ip_mreqn cable = {.imr_ifindex = (int)if_nametoindex("them")};
    if (to.ss_family == AF_INET) setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &cable, sizeof cable);
    for (int i = 0; i < HAIL; i++)
        sendto(fd, "hail", 4, 0, (const struct sockaddr *)&to, n_to);
    close(fd);
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
        if (o.deed == DEED_HAIL) hail(&o);
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
        if (!shell("ip link set lo up && ip addr add %s/24 dev them && ip addr add %s/64 dev them nodad && "
                   "ip addr add 10.78.0.2/24 dev them2 && ip link set them up && ip link set them2 up",
                   THEIRS, THEIRS_6))
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
    const bool is_wired =
        shell("ip link set lo up && ip link add us type veth peer name them netns %d && "
              "ip link add us2 type veth peer name them2 netns %d && ip addr add %s/24 dev us && "
              "ip addr add %s/64 dev us nodad && ip addr add %s/24 dev us2 && ip link set us up && "
              "ip link set us2 up",
              (int)stranger, (int)stranger, OURS, OURS_6, OTHER_CARD);
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
    const char *const addresses[] = {OURS, OTHER_CARD, OURS_6};
    for (int i = 0; i < 6; i++) {
        const order o = make_order(DEED_CONNECT, addresses[i % 3], ports[i / 3]);
        assert_int_equal(ask_stranger(&o), 0);
    }
    end_robot();
}

// ---------------------------------------------------------------- every socket

typedef struct udp_socket {
    unsigned long inode;
    int port;
    unsigned int n_refused;  // datagrams that the kernel has thrown away
    bool is_seen;            // by the second look
} udp_socket;

enum { MAX_SOCKET = 200 };

// Whether a process has it open.
static bool has_socket(int process, unsigned long inode) {
    char path[64], want[64], link[64];
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/fd", process);
    snprintf(want, sizeof want, "socket:[%lu]", inode);
    DIR *dir = opendir(path);
    for (const struct dirent *e = NULL; dir && !has && (e = readdir(dir));) {
        const ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        has = strcmp(link, want) == 0;
    }
    if (dir) closedir(dir);
    return has;
}

// The UDP sockets of a process that could hear more than the loopback, as the kernel lists them: those of
// IPv4, and those of IPv6.
static int list_sockets(int process, udp_socket *out) {
    static const char *const tables[] = {"/proc/self/net/udp", "/proc/self/net/udp6"};
    int n = 0;
    for (int k = 0; k < 2; k++) {
        char line[400], address[64];
        FILE *file = fopen(tables[k], "r");
        while (file && n < MAX_SOCKET && fgets(line, sizeof line, file)) {
            udp_socket s = {0};
            unsigned int port = 0;
            const int n_read = sscanf(line, " %*d: %63[0-9A-F]:%x %*s %*s %*s %*s %*s %*s %*s %lu %*s %*s %u",
                                      address, &port, &s.inode, &s.n_refused);
            // The address is written as the processor holds it: of 127.0.0.1 the 7F is at the end.
            const bool is_loopback = k == 0 && strcmp(address + 6, "7F") == 0;
            if (n_read != 4 || is_loopback || !has_socket(process, s.inode)) continue;
            s.port = (int)port;
            out[n++] = s;
        }
        if (file) fclose(file);
    }
    return n;
}

// The port of one that has thrown away fewer datagrams than were sent to it; 0: there is none. Those that are
// no more do not count.
static int find_open_port(int process, const udp_socket *before, int n) {
    static udp_socket now[MAX_SOCKET];
    const int n_now = list_sockets(process, now);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n_now; k++) {
            if (now[k].inode == before[i].inode && now[k].n_refused - before[i].n_refused < HAIL)
                return now[k].port;
        }
    }
    return 0;
}

static void wait_until_refused(int process, const udp_socket *before, int n) {
    const double until = net_clock() + NET_PATIENCE;
    for (int port = 1; port != 0; net_nap()) {
        port = find_open_port(process, before, n);
        if (port != 0 && net_clock() > until) fail_msg("the socket with port %d has taken something", port);
    }
}

static void hail_from_outside(int port) {
    const char *const addresses[] = {OURS, OTHER_CARD, OURS_6, GROUP};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        const order o = make_order(DEED_HAIL, addresses[i], port);
        ask_stranger(&o);
    }
}

// A socket with a port on all addresses; of AF_INET6, on those of both versions.
static int open_any(int family, int *out_port) {
    const int fd = socket(family, SOCK_DGRAM, 0), zero = 0;
    struct sockaddr_in6 at = {.sin6_family = (sa_family_t)family};
    socklen_t length = family == AF_INET6 ? sizeof at : sizeof(struct sockaddr_in);
    assert_true(fd >= 0);
    if (family == AF_INET6)
        assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    *out_port = ntohs(at.sin6_port);  // at the same place in both
    return fd;
}

// How many datagrams have come; the stranger has sent them when it answers, and the cable holds none back.
static int count_heard(int fd) {
    char bytes[16];
    int n = 0;
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        n++;
    return n;
}

// Groups are heard on the cables from now on, as by any other program of this machine.
static int join_group(void) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    const char *const cards[] = {"us", "us2"};
    for (int i = 0; i < 2; i++) {
        struct ip_mreqn group = {.imr_ifindex = (int)if_nametoindex(cards[i])};
        inet_pton(AF_INET, GROUP, &group.imr_multiaddr);
        assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group), 0);
    }
    return fd;
}

// Lidar packets, motors, a page, topics of the scene, serial lines, and services that a program of the other
// vendor asks, so that there is an engine of that vendor too.
static void start_everything(const char *rmw, int *out_n_before) {
    static udp_socket all[MAX_SOCKET];
    const int motors = net_free_port(), page = net_free_port();
    char inside[400];
    snprintf(inside, sizeof inside,
             "<sensor type='lidar' name='lidar' link='base' preset='vlp-16' packets='127.0.0.1:2368'/>"
             "<network/><motors port='%d'><motor name='FLDR' joint='front_left_drive'/></motors>",
             motors);
    net_set_rmw(rmw);
    net_write_k10("k10.xml", inside);
    ear = net_open("cyclone");
    truth = net_listen(ear, "/understudy/truth/k10/odom", usi_type_odometry);
    assert_true(shell("rm -rf lines && mkdir lines"));
    net_run("k10.xml --quiet --port %d --scene-topics --serial lines", page);
    NET_WAIT(net_count(ear, truth) > 20);
    *out_n_before = list_sockets(net_process(), all);
}

static void ask_as(const char *vendor) {
    net_peer *other = net_open(vendor);
    us_client *client = NULL;
    us_error err = {0};
    assert_non_null(other);
    const us_client_def def = {"/k10/driver/get_parameters", usi_type_get_parameters_request,
                               usi_type_get_parameters_response, -1, us_bus_dialect(net_bus(other))};
    if (us_bus_add_client(net_bus(other), &def, &client, &err)) fail_msg("%s", err.message);
    NET_WAIT(us_client_is_ready(client));
    us_client_remove(client);
    net_close(other);
}

static void no_socket_takes_what_another_machine_sends(void **state) {
    (void)state;
    static udp_socket all[MAX_SOCKET];
    net_peer *fast = net_open("fastdds");
    if (fast) net_close(fast);
    const int group = join_group();
    for (int i = 0; i < (fast ? 2 : 1); i++) {
        int n_before = 0;
        start_everything(i == 0 ? NULL : "rmw_fastrtps_cpp", &n_before);
        if (fast) ask_as(i == 0 ? "fastdds" : "cyclone");
        const int n = list_sockets(net_process(), all);
        print_message("%s: %d sockets, %d with the other vendor\n", i == 0 ? "cyclone" : "fastdds", n_before,
                      n);
        // Two for discovery, two for samples and the lidar's, at least; the other vendor has its own.
        assert_true(n_before >= 5 && (!fast || n > n_before));
        for (int k = 0; k < n; k++)
            hail_from_outside(all[k].port);
        wait_until_refused(net_process(), all, n);
        end_robot();
    }
    close(group);
}

static void what_is_sent_there_would_arrive_without_a_filter(void **state) {
    (void)state;
    static const int families[] = {AF_INET, AF_INET6};
    const int group = join_group();
    for (int i = 0; i < 2; i++) {
        int port = 0;
        const int fd = open_any(families[i], &port);
        hail_from_outside(port);
        // To two addresses of IPv4, and to the group, or to the address of IPv6.
        assert_int_equal(count_heard(fd), 3 * HAIL);
        close(fd);
    }
    close(group);
}

// A peer is an address of IPv4: bytes of another header that look like it are not it.
static void a_peer_is_not_taken_for_somebody_with_a_long_address(void **state) {
    (void)state;
    const char *const peers[] = {THEIRS};
    int port = 0;
    assert_int_equal(usi_local_sockets_begin(peers, 1, NULL), US_OK);
    const int fd = open_any(AF_INET6, &port);
    assert_int_equal(usi_local_sockets_end(), 1);
    const order long_one = make_order(DEED_HAIL, OURS_6, port), peer = make_order(DEED_HAIL, OURS, port);
    ask_stranger(&long_one);
    assert_int_equal(count_heard(fd), 0);
    ask_stranger(&peer);
    assert_int_equal(count_heard(fd), HAIL);
    close(fd);
}

// Connections come from anywhere, and are not filtered. (Cyclone DDS loses memory of a TCP transport that is
// closed again.)
static void tcp_is_refused_where_nobody_outside_is_to_be_heard(void **state) {
    (void)state;
    const char *program = getenv("US_PROGRAM");
    assert_true(
        shell("CYCLONEDDS_URI='<CycloneDDS><Domain><General><Transport>tcp</Transport></General><TCP>"
              "<Enable>true</Enable><Port>0</Port></TCP></Domain></CycloneDDS>' "
              "ASAN_OPTIONS=detect_leaks=0 ROS_DOMAIN_ID=%d '%s' topics >tcp.out 2>&1; test $? = 3 && "
              "grep -q 'leave TCP out of CYCLONEDDS_URI' tcp.out",
              (int)net_domain(), program ? program : US_PROGRAM));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_packets_of_this_machine_are_understood),
        cmocka_unit_test(forged_packets_of_another_machine_move_nothing),
        cmocka_unit_test(a_named_peer_is_let_in),
        cmocka_unit_test(a_storm_changes_nothing_and_time_goes_on),
        cmocka_unit_test(no_port_of_ours_answers_another_machine),
        cmocka_unit_test(what_is_sent_there_would_arrive_without_a_filter),
        cmocka_unit_test(no_socket_takes_what_another_machine_sends),
        cmocka_unit_test(a_peer_is_not_taken_for_somebody_with_a_long_address),
        cmocka_unit_test(tcp_is_refused_where_nobody_outside_is_to_be_heard),
    };
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_machines, end_machines);
}
