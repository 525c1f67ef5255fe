// The motor protocol through the switch: two motor servers, one port for the operator, over TCP and UDP.
//
// Each command of the operator has a number. The servers acknowledge some at once and others a moment later,
// so that changes of control find commands under way.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "bus/motor_server.h"
#include "test_bus_support.h"
#include "understudy/switch.h"

enum { MAX_COMMAND = 200000, N_CHANGE = 1000 };

static const us_qos reliable = {.is_reliable = true, .depth = 10};

typedef struct late {
    int32_t client;
    char text[USI_MOTOR_TEXT + 1];
} late;

typedef struct source {
    us_bus *bus;
    us_writer *heart;
    usi_motor_server *server;
    pthread_mutex_t lock;  // of what follows
    uint8_t n_of[MAX_COMMAND];
    int32_t n_command, n_stop, n_late;
    late waiting[256];
} source;

static source *sources[2];
static us_switch *sw;
static pthread_t thread;
static atomic_bool is_over;

static void answer(source *s, int32_t client, const char *text) {
    usi_motor_server_ack(s->server, client, text, strlen(text));
}

static void take_command(void *context, int32_t client, const usi_motor_command *command, const char *text,
                         size_t length) {
    source *s = context;
    late l = {.client = client};
    snprintf(l.text, sizeof l.text, "%.*s", (int)length, text);
    pthread_mutex_lock(&s->lock);
    bool is_late = false;
    if (command->kind == USI_MOTOR_VELOCITY) {
        const int32_t number = (int32_t)command->value;
        s->n_of[number % MAX_COMMAND]++;
        s->n_command++;
        is_late = number % 3 == 0 && s->n_late < 256;
    } else {
        s->n_stop++;
    }
    if (is_late) s->waiting[s->n_late++] = l;
    pthread_mutex_unlock(&s->lock);
    if (!is_late) answer(s, client, l.text);
}

// The sources live: each says so, answers what is late, and moves its motor.
static void *live(void *context) {
    (void)context;
    for (int n = 0; !atomic_load(&is_over); n++) {
        for (int i = 0; i < 2; i++) {
            source *s = sources[i];
            write_text_message(s->heart, "alive");
            pthread_mutex_lock(&s->lock);
            for (int k = 0; k < s->n_late; k++)
                answer(s, s->waiting[k].client, s->waiting[k].text);
            s->n_late = 0;
            pthread_mutex_unlock(&s->lock);
            usi_motor_server_status(s->server, 0, 0, i == 0 ? 1 : 2, n);
        }
        nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
    }
    return NULL;
}

static source *start_source(int which, int32_t port) {
    source *s = calloc(1, sizeof *s);
    assert_non_null(s);
    us_error err = {0};
    int32_t node = -1;
    pthread_mutex_init(&s->lock, NULL);
    s->bus = open_bus("cyclone", test_domain_of(1 + which));
    expect_ok(us_bus_add_node(s->bus, "/k10", "driver", &node, &err), &err);
    expect_ok(us_bus_add_writer(s->bus, &(us_topic_def){"/k10/state", usi_type_string, reliable, node},
                                &s->heart, &err),
              &err);
    usi_motor_server_def def = usi_motor_server_def_default();
    const us_motor_def motors[] = {{.name = "FLDR"}};
    def.port = port;
    def.n_motor = 1;
    def.motors = motors;
    def.on_command = take_command;
    def.context = s;
    def.message_rate = def.byte_rate = 1e9;
    expect_ok(usi_motor_server_create(&def, &s->server, &err), &err);
    return s;
}

static us_status open_switch(us_error *err) {
    char ports[2][32];
    us_switch_def def = us_switch_def_default();
    def.robot = "k10";
    def.operators.domain = test_domain_of(0);
    def.hardware.domain = test_domain_of(1);
    def.proxy.domain = test_domain_of(2);
    def.handover.is_off = true;
    def.watchdog = 20;  // on a busy machine nobody is to be lost here
    for (int i = 0; i < 2; i++)
        snprintf(ports[i], sizeof ports[i], "127.0.0.1:%d", usi_motor_server_port(sources[i]->server));
    def.motors = (us_switch_motors){.is_on = true, .hardware = ports[0], .proxy = ports[1]};
    return us_switch_open(&def, &sw, err);
}

static int set_up(void **state) {
    (void)state;
    us_error err = {0};
    for (int i = 0; i < 2; i++)
        sources[i] = start_source(i, 0);
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, live, NULL), 0);
    expect_ok(open_switch(&err), &err);
    WAIT_FOR(us_switch_get_state(sw).n_output > 0 && us_switch_get_state(sw).is_alive[1]);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    us_switch_close(sw);
    sw = NULL;
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        usi_motor_server_destroy(sources[i]->server);
        us_bus_close(sources[i]->bus);
        free(sources[i]);
    }
    return 0;
}

// ---- an operator ----

typedef struct operator_ {
    int fd;
    int32_t n_sent, n_ack, n_refused, n_state, n_turn;
    double last_velocity;
    uint8_t *answers;  // by number
    char line[256];
    size_t n_line;
} operator_;

static operator_ join(int kind) {
    operator_ o = {.fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0), .answers = calloc(1, MAX_COMMAND)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)us_switch_motor_port(sw)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(o.fd >= 0 && o.answers && us_switch_motor_port(sw) > 0);
    assert_int_equal(connect(o.fd, (const struct sockaddr *)&to, sizeof to), 0);
    fcntl(o.fd, F_SETFL, O_NONBLOCK);
    return o;
}

static void take_line(operator_ *o) {
    o->line[o->n_line] = 0;
    int number = 0;
    double velocity = 0;
    if (sscanf(o->line, "MACKMMOVFLDRV%d", &number) == 1 ||
        sscanf(o->line, "MNAKMMOVFLDRV%d", &number) == 1) {
        assert_in_range(number, 1, o->n_sent);
        o->answers[number]++;
        o->n_ack += o->line[1] == 'A';
        o->n_refused += o->line[1] == 'N';
    } else if (sscanf(o->line, "MSTAFLDR%*f,%lf", &velocity) == 1) {
        o->n_state++;
        if (velocity > 0 && velocity != o->last_velocity) {
            o->n_turn++;
            o->last_velocity = velocity;
        }
    } else if (strcmp(o->line, "MACKMSTP") != 0) {
        fail_msg("\"%s\" came", o->line);
    }
    o->n_line = 0;
}

static void read_lines(operator_ *o) {
    char bytes[4096];
    for (ssize_t n; (n = recv(o->fd, bytes, sizeof bytes, 0)) != 0;) {
        if (n < 0) return;
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] == ';') {
                take_line(o);
            } else {
                assert_true(o->n_line < sizeof o->line - 1);
                o->line[o->n_line++] = bytes[i];
            }
        }
    }
    fail_msg("the connection was closed");
}

static void send_command(operator_ *o) {
    char text[32];
    const int n = snprintf(text, sizeof text, "MMOVFLDRV%d;", o->n_sent + 1);
    assert_int_equal(send(o->fd, text, (size_t)n, MSG_NOSIGNAL), n);
    o->n_sent++;
}

static int32_t n_answered(const operator_ *o) { return o->n_ack + o->n_refused; }

static void change_under_load(int kind) {
    operator_ o = join(kind);
    static const us_switch_mode modes[] = {US_MODE_PROXY, US_MODE_HARDWARE};
    for (int i = 0; i < N_CHANGE; i++) {
        const int64_t n = us_switch_get_state(sw).n_answer;
        assert_int_equal(us_switch_request_with_policy(sw, modes[i % 2], US_POLICY_UNCONDITIONAL), US_OK);
        const double until = clock_now() + PATIENCE;
        while (us_switch_get_state(sw).n_answer == n || n_answered(&o) < o.n_sent - 16) {
            if (clock_now() > until) fail_msg("change %d: %d of %d answered", i, n_answered(&o), o.n_sent);
            if (o.n_sent - n_answered(&o) < 20) send_command(&o);
            read_lines(&o);
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        }
        assert_string_equal(us_switch_get_state(sw).refused, "");
        // However quick the change was: one command that only the new source can have.
        send_command(&o);
    }
    WAIT_FOR((read_lines(&o), n_answered(&o) == o.n_sent));
    // No more comes than that, and each number was answered once, by the one source that had it.
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    read_lines(&o);
    int32_t n_wrong = 0, n_taken = 0;
    for (int32_t i = 1; i <= o.n_sent; i++) {
        const int n = sources[0]->n_of[i] + sources[1]->n_of[i];
        n_wrong += o.answers[i] != 1 || n != 1;
        n_taken += n;
    }
    print_message(
        "%d changes: %d commands, %d acknowledged, %d refused; %d and %d to the sources; states of the other "
        "%d times\n",
        (int)N_CHANGE, o.n_sent, o.n_ack, o.n_refused, sources[0]->n_command, sources[1]->n_command,
        o.n_turn);
    assert_int_equal(n_wrong, 0);
    assert_int_equal(n_taken, o.n_sent);
    assert_int_equal(o.n_refused, 0);
    assert_true(sources[0]->n_command > N_CHANGE / 4 && sources[1]->n_command > N_CHANGE / 4);
    assert_true(o.n_turn > 10);
    // Who lost control was told to stop each time, over both connections.
    assert_true(sources[0]->n_stop >= N_CHANGE / 2 && sources[1]->n_stop >= N_CHANGE / 2 - 1);
    close(o.fd);
    free(o.answers);
}

static void no_line_is_lost_or_doubled_in_a_thousand_changes_over_tcp(void **state) {
    (void)state;
    change_under_load(SOCK_STREAM);
}

static void nor_over_udp(void **state) {
    (void)state;
    change_under_load(SOCK_DGRAM);
}

// ---- sources that go away ----

static void expect_line(operator_ *o, const char *text) {
    char bytes[1024] = "";
    size_t n = 0;
    const double until = clock_now() + PATIENCE;
    while (!strstr(bytes, text)) {
        if (clock_now() > until) fail_msg("no \"%s\" in \"%s\"", text, bytes);
        char byte;
        if (recv(o->fd, &byte, 1, 0) != 1) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            continue;
        }
        // states are not looked for
        if (n > 500) memset(bytes, 0, n = 0);
        if (n == 0) memset(bytes, 0, sizeof bytes);
        bytes[n++] = byte;
    }
}

static void say(operator_ *o, const char *text) {
    assert_int_equal(send(o->fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void a_source_that_is_gone_leaves_no_command_without_an_answer(void **state) {
    (void)state;
    operator_ o = join(SOCK_STREAM);
    say(&o, "MMOVFLDRV1;");
    expect_line(&o, "MACKMMOVFLDRV1;");

    // without a source in control commands are refused, and stops go through
    us_switch_request(sw, US_MODE_STOP);
    WAIT_FOR(us_switch_get_state(sw).mode == US_MODE_STOP);
    say(&o, "MMOVFLDRV2; MSTPFLDR;");
    expect_line(&o, "MNAKMMOVFLDRV2,busy;");
    expect_line(&o, "MACKMSTPFLDR;");
    us_switch_request_with_policy(sw, US_MODE_HARDWARE, US_POLICY_UNCONDITIONAL);
    WAIT_FOR(us_switch_get_state(sw).control == US_SWITCH_HARDWARE);

    // garbage and what is too long are answered; the connection goes on
    char text[300];
    memset(text, 'x', sizeof text);
    snprintf(text + 200, 10, ";");
    say(&o, text);
    expect_line(&o, ",long;");
    say(&o, "XYZ;MPWRFLDR1;");
    expect_line(&o, "MNAKXYZ,keyword;");
    expect_line(&o, "MACKMPWRFLDR1;");

    // the hardware's server ends before it has answered, and comes back
    const int32_t port = usi_motor_server_port(sources[0]->server);
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    say(&o, "MMOVFLDRV3;");
    WAIT_FOR(sources[0]->n_of[3] == 1);
    usi_motor_server_destroy(sources[0]->server);
    sources[0]->server = NULL;
    expect_line(&o, "MNAKMMOVFLDRV3,lost;");
    us_error err = {0};
    const us_motor_def motors[] = {{.name = "FLDR"}};
    usi_motor_server_def def = usi_motor_server_def_default();
    def.port = port;
    def.n_motor = 1;
    def.motors = motors;
    def.on_command = take_command;
    def.context = sources[0];
    sources[0]->n_late = 0;
    expect_ok(usi_motor_server_create(&def, &sources[0]->server, &err), &err);
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, live, NULL), 0);
    for (int i = 4;; i++) {
        assert_true(i < 1000);
        char command[32], ack[40];
        snprintf(command, sizeof command, "MMOVFLDRV%d;", i);
        snprintf(ack, sizeof ack, "MMOVFLDRV%d", i);
        say(&o, command);
        expect_line(&o, ack);
        if (sources[0]->n_of[i] == 1) break;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }

    // a client that sends no more still gets its answers
    say(&o, "MPWRFLDR0;");
    shutdown(o.fd, SHUT_WR);
    expect_line(&o, "MACKMPWRFLDR0;");
    close(o.fd);
    free(o.answers);
}

static void a_port_that_is_none_is_refused(void **state) {
    (void)state;
    us_switch_def def = us_switch_def_default();
    us_error err = {0};
    us_switch *none = NULL;
    def.robot = "k10";
    def.operators.domain = test_domain_of(0);
    def.hardware.domain = test_domain_of(1);
    def.proxy.domain = test_domain_of(2);
    static const char *const wrong[] = {"", "5010", ":5010"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        def.motors = (us_switch_motors){.is_on = true, .hardware = wrong[i], .proxy = "127.0.0.1:5010"};
        assert_int_equal(us_switch_open(&def, &none, &err), US_ERR_VALUE);
        assert_non_null(strstr(err.message, "motor port"));
        assert_null(none);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_line_is_lost_or_doubled_in_a_thousand_changes_over_tcp, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nor_over_udp, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_source_that_is_gone_leaves_no_command_without_an_answer, set_up,
                                        tear_down),
        cmocka_unit_test(a_port_that_is_none_is_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
