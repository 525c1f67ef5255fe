// An interface that goes down and comes up again while a robot runs on it: the run goes on, and robot and
// operator meet again without a restart of either. Two machines are network namespaces with a wire between:
//
//     robot 10.3.0.1 ──────── operator 10.3.0.2
#include "shell.h"
#include "test_network_support.h"

static char robot_machine[32], operator_machine[32];

static int make_wire(void **state) {
    start_alone(state);
    snprintf(robot_machine, sizeof robot_machine, "us%d-robot", (int)getpid());
    snprintf(operator_machine, sizeof operator_machine, "us%d-operator", (int)getpid());
    if (geteuid() != 0 || !shell("command -v ip >/dev/null && ip netns add %s 2>/dev/null", robot_machine)) {
        fprintf(stderr, "no network namespaces: run as root, with iproute2 installed\n");
        return -1;
    }
    const char *r = robot_machine, *o = operator_machine;
    if (!shell("ip netns add %s && ip link add wire netns %s type veth peer name wire netns %s", o, r, o) ||
        !shell("ip -n %s addr add 10.3.0.1/24 dev wire && ip -n %s addr add 10.3.0.2/24 dev wire", r, o) ||
        !shell("for n in %s %s; do ip -n $n link set lo up && ip -n $n link set wire up; done", r, o))
        return -1;
    setenv("ROS_DOMAIN_ID", "7", 1);
    setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET", 1);
    return 0;
}

static int end_wire(void **state) {
    kill_the_rest(state);
    shell("for n in %s %s; do ip netns del $n 2>/dev/null; done; true", robot_machine, operator_machine);
    return 0;
}

// The program on a machine, with what it prints in the file NAME.txt.
static pid_t start_on(const char *machine, const char *name, const char *command) {
    fflush(stdout);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char line[3000];
        snprintf(line, sizeof line, "exec ip netns exec %s %s %s >%s.txt 2>&1", machine, program(), command,
                 name);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return keep(pid);
}

static bool hears(int seconds) {
    return shell(
        "ip netns exec %s timeout 30 %s echo /k10/odom --count 1 --timeout %d --field child_frame_id "
        ">heard.txt 2>&1 && grep -q k10/base heard.txt",
        operator_machine, program(), seconds);
}

static long size_of(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 ? (long)about.st_size : 0;
}

static void set_wire(const char *machine, const char *state) {
    assert_true(shell("ip -n %s link set wire %s", machine, state));
}

// The recorder of the network was there before, and hears the robot again; a new operator meets it too.
static void robot_and_operator_meet_again(void **state) {
    (void)state;
    const char *const cut[] = {robot_machine, operator_machine};
    remove("heard.mcap");
    remove("robot.mcap");
    pid_t robot =
        start_on(robot_machine, "robot",
                 "run " US_SOURCE_DIR "/scenes/flat.xml --headless --quiet --time 3600 --record robot.mcap");
    pid_t recorder = start_on(operator_machine, "recorder", "record heard.mcap /k10/odom");
    WAIT_FOR(size_of("heard.mcap") > 5000);
    for (int i = 0; i < 2; i++) {
        set_wire(cut[i], "down");
        // Nobody is heard over a wire that is cut, and the run does not mind.
        const long before = size_of("robot.mcap");
        assert_false(hears(1));
        WAIT_FOR(size_of("robot.mcap") > before + 10000);
        // Longer than the 10 s after which DDS forgets who is silent.
        const double until = clock_now() + (getenv("US_LONG_TESTS") ? 13 : 0);
        while (clock_now() < until)
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        set_wire(cut[i], "up");
        const long heard = size_of("heard.mcap");
        WAIT_FOR(hears(2));
        WAIT_FOR(size_of("heard.mcap") > heard + 5000);
    }
    end(recorder);
    end(robot);
    outcome a = run("replay robot.mcap --verify --scene %s/scenes/flat.xml", US_SOURCE_DIR);
    assert_code(a, 0);
    assert_has(a.out, "same: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(robot_and_operator_meet_again, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, make_wire, end_wire);
}
