// Robot and operator on two networks: across a router, and with one of them behind NAT. The machines are
// network namespaces that the test makes:
//
//     outside 10.1.0.2 ── router ── far 10.2.0.2       routed, no multicast
//                           │
//                           └────── inside 192.168.9.2   behind NAT: nobody outside can begin a connection
#include <sched.h>

#include "shell.h"
#include "test_network_support.h"

static const char scene_file[] = US_SOURCE_DIR "/scenes/default.xml";
static char outside[32], router[32], far[32], inside[32];

static bool make_wire(const char *machine, const char *name, const char *address, const char *gateway) {
    return shell("ip netns add %s && ip -n %s link set lo up && ip link add %s netns %s type veth peer name "
                 "to_%s netns "
                 "%s && ip -n %s addr add %s/24 dev %s && ip -n %s link set %s up && ip -n %s addr add %s/24 "
                 "dev to_%s && "
                 "ip -n %s link set to_%s up && ip -n %s route add default via %s",
                 machine, machine, name, machine, name, router, machine, address, name, machine, name, router,
                 gateway, name, router, name, machine, gateway);
}

static int make_networks(void **state) {
    start_alone(state);
    snprintf(outside, sizeof outside, "us%d-outside", (int)getpid());
    snprintf(router, sizeof router, "us%d-router", (int)getpid());
    snprintf(far, sizeof far, "us%d-far", (int)getpid());
    snprintf(inside, sizeof inside, "us%d-inside", (int)getpid());
    if (geteuid() != 0 ||
        !shell("command -v ip >/dev/null && command -v nft >/dev/null && ip netns add %s 2>/dev/null",
               router)) {
        fprintf(stderr, "no network namespaces: run as root, with iproute2 and nftables installed\n");
        return -1;
    }
    const bool has_networks =
        make_wire(outside, "outer", "10.1.0.2", "10.1.0.1") &&
        make_wire(far, "farther", "10.2.0.2", "10.2.0.1") &&
        make_wire(inside, "inner", "192.168.9.2", "192.168.9.1") &&
        shell("ip netns exec %s sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'", router) &&
        shell("printf 'table ip t {\\n chain after {\\n type nat hook postrouting priority 100\\n "
              "iifname \"to_inner\" "
              "masquerade\\n }\\n chain wall {\\n type filter hook forward priority 0\\n oifname "
              "\"to_inner\" ct state new "
              "drop\\n }\\n}\\n' | ip netns exec %s nft -f - 2>nft.err",
              router);
    if (!has_networks) {
        fprintf(stderr, "no networks with NAT: look at nft.err, and at the kernel's modules for nftables\n");
        return -1;
    }
    setenv("ROS_DOMAIN_ID", "7", 1);
    setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET", 1);
    return 0;
}

static int end_networks(void **state) {
    kill_the_rest(state);
    shell("for n in %s %s %s %s; do ip netns del $n 2>/dev/null; done; true", outside, router, far, inside);
    return 0;
}

// The program on another machine, until it is killed.
static pid_t start_on(const char *machine, const char *environment, const char *command) {
    fflush(stdout);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char line[3000];
        snprintf(line, sizeof line, "exec ip netns exec %s env %s %s >peer.out 2>&1", machine, environment,
                 command);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return keep(pid);
}

static pid_t start_robot_on(const char *machine, const char *environment) {
    char command[1500];
    snprintf(command, sizeof command, "%s run %s --headless --quiet --set motor_port=0", program(),
             scene_file);
    return start_on(machine, environment, command);
}

// Whether the operator on a machine hears the robot within some seconds.
static bool hears(const char *machine, const char *environment, int seconds) {
    return shell(
        "ip netns exec %s env %s timeout 30 %s echo /k10/odom --count 1 --timeout %d --field child_frame_id "
        ">heard.txt 2>heard.err && grep -q k10/base heard.txt",
        machine, environment, program(), seconds);
}

// Whether the operator finds the robot's ear. The one who calls tries again from time to time, so that an
// operator who comes anew may wait longer than `drive` does.
static bool drives(const char *machine, const char *environment) {
    const double until = clock_now() + PATIENCE;
    bool ok = false;
    while (!ok && clock_now() < until)
        ok = shell(
            "ip netns exec %s env %s timeout 30 %s drive k10 --v 0.2 --time 0.3 --quiet >drive.txt 2>&1",
            machine, environment, program());
    return ok;
}

static void kill_one(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    forget(pid);
}

// ---------------------------------------------------------------- static peers

static void static_peers_meet_across_a_router(void **state) {
    (void)state;
    static const char *const vendors[] = {"rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"};
    for (int i = 0; i < 2; i++) {
        if (i == 1 &&
            !shell("RMW_IMPLEMENTATION=%s %s topics --wait 0 >fast.txt 2>&1", vendors[i], program())) {
            print_message("skipped: Fast DDS is not there\n");
            continue;
        }
        char robot[200], operator_[200];
        snprintf(robot, sizeof robot, "RMW_IMPLEMENTATION=%s ROS_STATIC_PEERS=10.2.0.2", vendors[i]);
        snprintf(operator_, sizeof operator_, "RMW_IMPLEMENTATION=%s ROS_STATIC_PEERS=10.1.0.2", vendors[i]);
        pid_t pid = start_robot_on(outside, robot);
        assert_true(hears(far, operator_, 20));
        assert_true(drives(far, operator_));
        kill_one(pid);
    }
}

// ---------------------------------------------------------------- NAT

// Cyclone DDS leaves the 200 bytes of a connection of TCP behind when it ends: no leaks are looked for there.
static const char settings[] =
    "ASAN_OPTIONS=detect_leaks=0 "
    "CYCLONEDDS_URI='<General><Transport>tcp</Transport><AllowMulticast>false</AllowMulticast>"
    "</General><TCP><Enable>true</Enable><Port>%s</Port>%s</TCP><Discovery><SPDPInterval>1s</"
    "SPDPInterval>%s</Discovery>'";

// The one outside has the port; the one behind NAT calls it, and both speak over that connection.
static void tcp_passes_nat_either_way_with_keys(void **state) {
    (void)state;
    assert_true(shell("rm -rf keystore"));
    assert_code(run("keys create keystore"), 0);
    assert_code(run("keys add keystore /rover /operator"), 0);
    static const char secure[] =
        "ROS_SECURITY_ENABLE=true ROS_SECURITY_STRATEGY=Enforce ROS_SECURITY_KEYSTORE=keystore "
        "ROS_SECURITY_ENCLAVE_OVERRIDE";
    for (int is_robot_inside = 0; is_robot_inside < 2; is_robot_inside++) {
        char called[1000], caller[1000];
        const char *names[] = {"/rover", "/operator"};
        int n = snprintf(called, sizeof called, "%s=%s ", secure, names[is_robot_inside]);
        snprintf(called + n, sizeof called - (size_t)n, settings, "7400",
                 "<AlwaysUsePeeraddrForUnicast>true</AlwaysUsePeeraddrForUnicast>", "");
        n = snprintf(caller, sizeof caller, "%s=%s ", secure, names[1 - is_robot_inside]);
        snprintf(caller + n, sizeof caller - (size_t)n, settings, "-1", "",
                 "<Peers><Peer Address=\"10.1.0.2:7400\"/></Peers>");
        pid_t pid = start_robot_on(is_robot_inside ? inside : outside, is_robot_inside ? caller : called);
        assert_true(hears(is_robot_inside ? outside : inside, is_robot_inside ? called : caller, 20));
        assert_true(drives(is_robot_inside ? outside : inside, is_robot_inside ? called : caller));
        kill_one(pid);
    }
}

// The wall is one: datagrams go out through it, and the answers to the addresses they tell do not come in.
static void udp_does_not_pass_nat(void **state) {
    (void)state;
    pid_t pid = start_robot_on(outside, "ROS_STATIC_PEERS=10.2.0.2");
    assert_true(hears(far, "ROS_STATIC_PEERS=10.1.0.2", 20));
    assert_false(hears(inside, "ROS_STATIC_PEERS=10.1.0.2", 3));
    kill_one(pid);
}

// ---------------------------------------------------------------- discovery server

static void a_discovery_server_brings_programs_on_fast_dds_together(void **state) {
    (void)state;
    static const char asked[] = "RMW_IMPLEMENTATION=rmw_fastrtps_cpp ROS_DISCOVERY_SERVER=10.1.0.2:11811";
    if (!shell("command -v fast-discovery-server >/dev/null && RMW_IMPLEMENTATION=rmw_fastrtps_cpp %s topics "
               "--wait 0 "
               ">fast.txt 2>&1",
               program())) {
        print_message("skipped: Fast DDS or its discovery server is not there\n");
        return;
    }
    assert_false(shell(
        "RMW_IMPLEMENTATION=rmw_fastrtps_cpp ROS_DISCOVERY_SERVER=nonsense:x:y %s topics --wait 0 >bad.txt "
        "2>&1",
        program()));
    assert_true(shell("grep -q ROS_DISCOVERY_SERVER bad.txt"));
    pid_t server = start_on(outside, "A=1", "fast-discovery-server -i 0 -l 10.1.0.2 -p 11811");
    pid_t robot = start_robot_on(outside, asked);
    assert_true(hears(far, asked, 20));
    assert_true(drives(far, asked));
    kill_one(robot);
    kill_one(server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(static_peers_meet_across_a_router),
        cmocka_unit_test(udp_does_not_pass_nat),
        cmocka_unit_test(tcp_passes_nat_either_way_with_keys),
        cmocka_unit_test(a_discovery_server_brings_programs_on_fast_dds_together),
    };
    return cmocka_run_group_tests(tests, make_networks, end_networks);
}
