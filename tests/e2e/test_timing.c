// Operators see one robot through the switch. Whether the hardware plays it or the proxy cannot be told from when samples come, what their headers
// say, how large they are and in which order they come; and could be told if it were otherwise.
#ifdef US_HAVE_SVM

#include <sched.h>

#include "test_timing_support.h"

enum { MAX_SCENE = 1 << 16 };

static void replace(char *text, const char *old, const char *by) {
    char *at = strstr(text, old);
    assert_non_null(at);
    assert_true(strlen(text) + strlen(by) < MAX_SCENE);
    memmove(at + strlen(by), at + strlen(old), strlen(at + strlen(old)) + 1);
    memcpy(at, by, strlen(by));
}

// The default scene as a text, its robot with these elements in its <network>.
static char *scene_with(const char *elements) {
    char *text = calloc(1, MAX_SCENE), network[8192];
    FILE *in = fopen(scene, "r");
    assert_true(in && text);
    assert_in_range(fread(text, 1, MAX_SCENE - 1, in), 1, MAX_SCENE - 2);
    fclose(in);
    snprintf(network, sizeof network, "<network namespace=\"k10\" timeout=\"0.5 s\">\n%s</network>", elements);
    replace(text, "<network namespace=\"k10\" timeout=\"0.5 s\"/>", network);
    replace(text, "../models/", US_SOURCE_DIR "/models/");
    return text;
}

// Starts it; again when it happens to speak at the same time as the hardware. On the processors that they share here one of the two would wait for
// the other, which on two machines neither does.
static pid_t start_proxy(ear *e, char *text) {
    FILE *out = fopen("proxy.xml", "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
    free(text);
    use_domain(test_domain_of(2));
    begin_to_hear(e);
    for (int i = 0;; i++) {
        pid_t pid = start("proxy", "run proxy.xml --headless --quiet --set motor_port=0");
        double apart = phase_of(e, "proxy") - phase_of(e, "hardware");
        if (fabs(apart - nearbyint(apart)) > 0.25 || i == 10) {
            stop_hearing(e);
            return pid;
        }
        end(pid);
    }
}

// US_SEND_JITTER: another jitter of the hardware's computer than 0.0015 s.
static pid_t start_robot_of_metal(int32_t domain) {
    const char *jitter = getenv("US_SEND_JITTER");
    char options[100];
    snprintf(options, sizeof options, "--clock-offset 0.25 --send-jitter %.20s", jitter ? jitter : "0.0015");
    use_domain(domain);
    return start_hardware(options);
}

// What `understudy timing` prints for the hardware while it is driven: a robot that moves has more to compute than one that stands.
static char *learn(ear *e, double seconds, const char *options) {
    int status = 0;
    char *text = calloc(1, 8192);
    assert_non_null(text);
    use_domain(test_domain_of(0));
    pid_t pid = start("learn", "timing k10 --time %g %s", seconds, options);
    while (waitpid(pid, &status, WNOHANG) == 0) drive(e, 0.1);
    forget(pid);
    FILE *in = fopen("learn.out", "r");
    assert_non_null(in);
    assert_in_range(fread(text, 1, 8000, in), 1, 7999);
    fclose(in);
    assert_int_equal(exit_code(status), 0);
    return text;
}

// The same; then with a proxy that does as it says and is driven as well, and corrected by what that lacks.
static char *learn_well(ear *e, double seconds) {
    char *text = learn(e, seconds, ""), *timing = strstr(text, "<timing");
    double offset, delay, jitter, more;
    assert_non_null(timing);
    assert_int_equal(
        sscanf(timing, "<timing clock=\"wall\" offset=\"%lf ms\" drift=\"0\" delay=\"%lf ms\" jitter=\"%lf ms\"", &offset, &delay, &jitter), 3);
    pid_t proxy = start_proxy(e, scene_with(text));
    ask_for(e, "shadow");
    char *both = learn(e, seconds, "--both"), *lack = strstr(both, "to its offset add");
    assert_non_null(lack);
    assert_int_equal(sscanf(lack, "to its offset add %lf ms", &more), 1);
    free(both);
    ask_for(e, "hardware");
    end(proxy);
    print_message("offset %.3f ms, to which is added %.3f ms; jitter %.3f ms\n", offset, more, jitter);
    snprintf(timing, 200, "<timing clock=\"wall\" offset=\"%.6f ms\" delay=\"%g ms\" jitter=\"%g ms\"/>\n", offset + more, delay, jitter);
    return text;
}

static pid_t start_switch(void) {
    use_domain(test_domain_of(0));
    // When they speak is what counts here, not where they are.
    return start("switch", "switch k10 --hardware %d --proxy %d --plain", (int)test_domain_of(1), (int)test_domain_of(2));
}

static double accuracy(ear *e, int n_pair, int per_block, int *out_n) {
    static window windows[MAX_WINDOW];
    begin_to_hear(e);
    *out_n = record_windows(e, n_pair, per_block, windows);
    print_telling(windows, *out_n);
    return held_out_accuracy(windows, *out_n, n_pair);
}

static void who_plays_cannot_be_told(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    bool is_long = getenv("US_LONG_TESTS") != NULL;
    pid_t robot = start_robot_of_metal(test_domain_of(1));
    pid_t between = start_switch();
    ear *e = join_as_ear(test_domain_of(0));
    char *learned = learn_well(e, is_long ? 20 : 6);
    pid_t proxy = start_proxy(e, scene_with(learned));
    int n = 0;
    double share = accuracy(e, is_long ? 20 : 6, is_long ? 6 : 4, &n), bound = chance_bound(n);
    print_message("%d windows of %g s: %.3f told right; by chance %.3f to %.3f (99.9 %%)\n", n, WINDOW, share, 1 - bound, bound);
    assert_true(share <= bound);
    assert_true(share >= 1 - bound);
    leave_as_ear(e);
    end(between);
    end(proxy);
    end(robot);
    free(learned);
}

static void a_proxy_with_another_rate_can_be_told(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t robot = start_robot_of_metal(test_domain_of(1));
    pid_t between = start_switch();
    ear *e = join_as_ear(test_domain_of(0));
    char *learned = learn(e, 4, ""), *text = scene_with(learned);
    while (strstr(text, "\"50 Hz\"")) replace(text, "\"50 Hz\"", "\"51 Hz\"");
    replace(text, "\"100 Hz\"", "\"102 Hz\"");
    pid_t proxy = start_proxy(e, text);
    int n = 0;
    double share = accuracy(e, 4, 2, &n);
    print_message("%d windows: %.3f told right\n", n, share);
    assert_true(share > 0.9);
    leave_as_ear(e);
    end(between);
    end(proxy);
    end(robot);
    free(learned);
}

int main(void) {
    if (!getenv("US_LONG_TESTS")) {
        print_message("skipped: takes minutes and a machine that does nothing else: set US_LONG_TESTS\n");
        return 0;
    }
    // A robot's computer is its own, and a proxy runs on a machine that can: what else this one does should be no concern of theirs. For this program
    // and all that it starts. Where that is not allowed, it is their concern.
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = sched_get_priority_min(SCHED_FIFO)});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_plays_cannot_be_told, use_own_domain, kill_the_rest),
        cmocka_unit_test_setup_teardown(a_proxy_with_another_rate_can_be_told, use_own_domain, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}

#else

#include <stdio.h>

int main(void) {
    printf("skipped: libsvm is not there\n");
    return 0;
}

#endif
