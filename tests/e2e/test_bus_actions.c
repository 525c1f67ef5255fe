// Actions: states, cancelling, results that are kept; and a storm of goals while packets are lost, goals
// cancelled and servers killed, in both dialects: every goal has one end.
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "test_bus_support.h"
#include "understudy/action.h"

enum { BYTES = 512, AT_ONCE = 24, MAX_GOAL = 1024 };

static const char type_name[] = "simulation_interfaces/action/SimulateSteps";
static const char action_name[] = "/test/steps";

// ---- a network that loses packets ----

static _Atomic uint32_t loss_per_mille;
static _Atomic uint64_t n_datagram, n_lost;

static bool is_lost(void) {
    const uint32_t loss = atomic_load(&loss_per_mille);
    if (loss == 0) return false;
    const uint64_t number = atomic_fetch_add(&n_datagram, 1);
    const bool is = us_random_bits(5, (uint64_t)getpid(), number) % 1000 < loss;
    if (is) atomic_fetch_add(&n_lost, 1);
    return is;
}

// These stand before the C library's, for both vendors. Whoever sends a datagram does not learn that it was
// lost.
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (!message->msg_name || !is_lost()) return syscall(SYS_sendmsg, fd, message, flags);
    size_t n = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        n += message->msg_iov[i].iov_len;
    return (ssize_t)n;
}

ssize_t lossy_sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to,
                     socklen_t length) __asm__("sendto");
ssize_t lossy_sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to,
                     socklen_t length) {
    if (to && is_lost()) return (ssize_t)n;
    return syscall(SYS_sendto, fd, bytes, n, flags, to, length);
}

// ---- messages ----

static us_action_types types(void) {
    us_action_types t;
    us_error err = {0};
    if (us_action_types_find(type_name, &t, &err)) abort();
    return t;
}

static size_t encode(const us_message_type *type, const void *message, uint8_t bytes[BYTES]) {
    size_t length = 0;
    if (us_message_encode(type, message, bytes, BYTES, &length)) abort();
    return length;
}

static us_status send_steps(us_action_client *client, uint64_t steps, us_goal_id *out_id) {
    const us_msg_simulate_steps_send_goal_request m = {.goal = {.steps = steps}};
    uint8_t bytes[BYTES];
    const size_t length = encode(types().send_goal_request, &m, bytes);
    return us_action_client_send(client, bytes, length, out_id);
}

static us_status finish(us_action_server *server, us_goal_id id, us_goal_status end, const char *text) {
    union {
        const char *in;
        char *out;
    } message = {.in = text};
    const us_msg_simulate_steps_get_result_response m = {
        .result = {.result = {.result = 1, .error_message = message.out}}};
    uint8_t bytes[BYTES];
    const size_t length = encode(types().get_result_response, &m, bytes);
    return us_action_server_finish(server, id, end, bytes, length);
}

// ---- a server that a test looks at ----

typedef struct desk {
    us_action_server *server;
    pthread_mutex_t lock;
    int n_goal, n_cancel;
    us_goal_id last;
    uint64_t steps;
    bool refuses, keeps;
} desk;

static bool on_goal(void *context, us_goal_id id, const void *bytes, size_t length) {
    desk *d = context;
    pthread_mutex_lock(&d->lock);
    d->n_goal++;
    d->last = id;
    d->steps = (uint64_t)us_message_get_number(types().send_goal_request, bytes, length, "goal.steps");
    const bool is_good = !d->refuses;
    pthread_mutex_unlock(&d->lock);
    return is_good;
}

static bool on_cancel(void *context, us_goal_id id) {
    (void)id;
    desk *d = context;
    pthread_mutex_lock(&d->lock);
    d->n_cancel++;
    const bool may = !d->keeps;
    pthread_mutex_unlock(&d->lock);
    return may;
}

static void open_desk(desk *d, us_bus *bus, int32_t max_goal) {
    us_action_server_def def = us_action_server_def_default();
    def.name = action_name;
    def.types = types();
    def.max_goal = max_goal;
    def.on_goal = on_goal;
    def.on_cancel = on_cancel;
    def.context = d;
    us_error err = {0};
    pthread_mutex_init(&d->lock, NULL);
    expect_ok(us_bus_add_action_server(bus, &def, &d->server, &err), &err);
}

static us_action_client *add_action_client(us_bus *bus, us_dialect dialect) {
    us_error err = {0};
    us_action_client *client = NULL;
    const us_action_client_def def = {action_name, types(), -1, dialect};
    expect_ok(us_bus_add_action_client(bus, &def, &client, &err), &err);
    return client;
}

// The next event of a kind; others before it are passed over.
static us_action_event wait_event(us_action_client *client, us_action_event_kind kind, uint8_t bytes[BYTES],
                                  size_t *length) {
    us_action_event e;
    const double until = clock_now() + PATIENCE;
    do {
        assert_int_equal(us_action_client_take(client, bytes, BYTES, length, &e), US_OK);
        if (clock_now() > until) fail_msg("no event %d", (int)kind);
        if (e.kind == US_ACTION_NONE) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    } while (e.kind != kind);
    return e;
}

static void a_goal_goes_through_its_states(void **state) {
    (void)state;
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    desk d = {0};
    open_desk(&d, robot, 8);
    us_action_client *client = add_action_client(tool, US_DIALECT_CYCLONE);
    WAIT_FOR(us_action_client_is_ready(client));
    uint8_t bytes[BYTES];
    size_t length = 0;
    us_goal_id id;
    assert_int_equal(send_steps(client, 7, &id), US_OK);
    us_action_event e = wait_event(client, US_ACTION_ACCEPTED, bytes, &length);
    assert_memory_equal(e.id.bytes, id.bytes, sizeof id);
    assert_int_equal(d.steps, 7);
    assert_int_equal(us_action_server_get_status(d.server, id), US_GOAL_ACCEPTED);
    // Not before it is executed, and not as cancelled: nobody asked for that.
    assert_int_equal(finish(d.server, id, US_GOAL_SUCCEEDED, ""), US_ERR_VALUE);
    assert_int_equal(finish(d.server, id, US_GOAL_CANCELED, ""), US_ERR_VALUE);
    assert_int_equal(us_action_server_execute(d.server, id), US_OK);
    assert_int_equal(us_action_server_execute(d.server, id), US_ERR_VALUE);
    const us_msg_simulate_steps_feedback_message feedback = {
        .feedback = {.completed_steps = 3, .remaining_steps = 4}};
    length = encode(types().feedback, &feedback, bytes);
    assert_int_equal(us_action_server_send_feedback(d.server, id, bytes, length), US_OK);
    e = wait_event(client, US_ACTION_FEEDBACK, bytes, &length);
    assert_memory_equal(e.id.bytes, id.bytes, sizeof id);
    assert_true(us_message_get_number(types().feedback, bytes, length, "feedback.completed_steps") == 3);
    assert_int_equal(finish(d.server, id, US_GOAL_SUCCEEDED, "done"), US_OK);
    assert_int_equal(finish(d.server, id, US_GOAL_ABORTED, ""), US_ERR_VALUE);
    e = wait_event(client, US_ACTION_RESULT, bytes, &length);
    assert_int_equal(e.status, US_GOAL_SUCCEEDED);
    assert_true(us_message_get_number(types().get_result_response, bytes, length, "status") == 4);
    // It has ended: there is nothing to cancel.
    assert_int_equal(us_action_client_cancel(client, id), US_OK);
    wait_event(client, US_ACTION_KEPT, bytes, &length);
    assert_int_equal(us_action_server_get_status(d.server, (us_goal_id){{1}}), US_GOAL_UNKNOWN);
    assert_int_equal(us_action_server_execute(d.server, (us_goal_id){{1}}), US_ERR_NAME);
    us_action_client_remove(client);
    us_action_server_remove(d.server);
    us_bus_close(tool);
    us_bus_close(robot);
}

static void goals_are_refused_cancelled_and_kept(void **state) {
    (void)state;
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    desk d = {.refuses = true};
    open_desk(&d, robot, 3);
    us_action_client *client = add_action_client(tool, US_DIALECT_CYCLONE);
    WAIT_FOR(us_action_client_is_ready(client));
    uint8_t bytes[BYTES];
    size_t length = 0;
    us_goal_id id, more[3];
    assert_int_equal(send_steps(client, 1, &id), US_OK);
    wait_event(client, US_ACTION_REFUSED, bytes, &length);
    d.refuses = false;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(send_steps(client, 1, &more[i]), US_OK);
        wait_event(client, US_ACTION_ACCEPTED, bytes, &length);
    }
    // All places are taken by goals that are under way: the program is not even asked.
    const int n_goal = d.n_goal;
    assert_int_equal(send_steps(client, 1, &id), US_OK);
    wait_event(client, US_ACTION_REFUSED, bytes, &length);
    assert_int_equal(d.n_goal, n_goal);
    d.keeps = true;
    assert_int_equal(us_action_client_cancel(client, more[0]), US_OK);
    wait_event(client, US_ACTION_KEPT, bytes, &length);
    assert_int_equal(us_action_server_get_status(d.server, more[0]), US_GOAL_ACCEPTED);
    d.keeps = false;
    assert_int_equal(us_action_client_cancel(client, (us_goal_id){{0}}), US_OK);
    wait_event(client, US_ACTION_CANCELING, bytes, &length);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(us_action_server_get_status(d.server, more[i]), US_GOAL_CANCELING);
        assert_int_equal(finish(d.server, more[i], US_GOAL_CANCELED, ""), US_OK);
        us_action_event e = wait_event(client, US_ACTION_RESULT, bytes, &length);
        assert_int_equal(e.status, US_GOAL_CANCELED);
    }
    // An ended one makes room.
    assert_int_equal(send_steps(client, 1, &id), US_OK);
    wait_event(client, US_ACTION_ACCEPTED, bytes, &length);
    us_action_client_remove(client);
    us_action_server_remove(d.server);
    us_bus_close(tool);
    us_bus_close(robot);
}

// Goals under way when their server is removed end as aborted, in the result and in the status.
static void remove_server(us_dialect dialect) {
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    desk d = {0};
    open_desk(&d, robot, 8);
    us_action_client *client = add_action_client(tool, dialect);
    us_reader *status = add_reader(tool, "/test/steps/_action/status", usi_type_goal_status_array,
                                   (us_qos){.is_reliable = true, .depth = 0}, NULL, NULL);
    WAIT_FOR(us_action_client_is_ready(client) && us_reader_n_match(status) > 0);
    uint8_t bytes[BYTES];
    size_t length = 0;
    us_goal_id ids[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(send_steps(client, 1, &ids[i]), US_OK);
        wait_event(client, US_ACTION_ACCEPTED, bytes, &length);
    }
    assert_int_equal(us_action_server_execute(d.server, ids[1]), US_OK);
    assert_int_equal(us_action_server_execute(d.server, ids[2]), US_OK);
    assert_int_equal(finish(d.server, ids[2], US_GOAL_SUCCEEDED, ""), US_OK);
    us_action_event e = wait_event(client, US_ACTION_RESULT, bytes, &length);
    assert_int_equal(e.status, US_GOAL_SUCCEEDED);
    // It was asked for after those of the other two, which the server has thus.
    us_action_server_remove(d.server);
    for (int i = 0; i < 2; i++) {
        e = wait_event(client, US_ACTION_RESULT, bytes, &length);
        assert_int_equal(e.status, US_GOAL_ABORTED);
        assert_true(!memcmp(e.id.bytes, ids[0].bytes, 16) || !memcmp(e.id.bytes, ids[1].bytes, 16));
    }
    double last = 0;
    while (last != US_GOAL_ABORTED) {
        WAIT_FOR(us_reader_take(status, bytes, sizeof bytes, &length, NULL) == US_OK && length > 0);
        last = us_message_get_number(usi_type_goal_status_array, bytes, length, "status_list[1].status");
    }
    us_action_client_remove(client);
    us_bus_close(tool);
    us_bus_close(robot);
}

static void goals_of_a_server_that_is_removed_are_aborted(void **state) {
    (void)state;
    remove_server(US_DIALECT_CYCLONE);
    if (has_fastdds()) remove_server(US_DIALECT_FASTDDS);
}

// Who comes late sees the last states.
static void the_status_is_kept_for_those_who_come_late(void **state) {
    (void)state;
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    desk d = {0};
    open_desk(&d, robot, 8);
    us_action_client *client = add_action_client(tool, US_DIALECT_CYCLONE);
    WAIT_FOR(us_action_client_is_ready(client));
    uint8_t bytes[BYTES];
    size_t length = 0;
    us_goal_id id;
    assert_int_equal(send_steps(client, 7, &id), US_OK);
    wait_event(client, US_ACTION_ACCEPTED, bytes, &length);
    assert_int_equal(us_action_server_execute(d.server, id), US_OK);
    us_reader *late =
        add_reader(tool, "/test/steps/_action/status", usi_type_goal_status_array,
                   (us_qos){.is_reliable = true, .is_transient_local = true, .depth = 1}, NULL, NULL);
    WAIT_FOR(us_reader_take(late, bytes, sizeof bytes, &length, NULL) == US_OK && length > 0);
    assert_true(us_message_get_number(usi_type_goal_status_array, bytes, length, "status_list[0].status") ==
                US_GOAL_EXECUTING);
    us_action_client_remove(client);
    us_action_server_remove(d.server);
    us_bus_close(tool);
    us_bus_close(robot);
}

static void bad_actions_are_refused(void **state) {
    (void)state;
    us_bus *bus = open_bus("cyclone", test_domain());
    us_error err = {0};
    us_action_types t;
    assert_int_equal(us_action_types_find("std_msgs/msg/String", &t, &err), US_ERR_NAME);
    assert_non_null(strstr(err.message, "SendGoal_Request"));
    us_action_server_def def = us_action_server_def_default();
    us_action_server *server = NULL;
    def.types = types();
    def.on_goal = on_goal;
    def.name = "steps";
    assert_int_equal(us_bus_add_action_server(bus, &def, &server, &err), US_ERR_NAME);
    def.name = "/steps";
    def.max_goal = 0;
    assert_int_equal(us_bus_add_action_server(bus, &def, &server, &err), US_ERR_ARG);
    assert_null(server);
    us_action_client *client = add_action_client(bus, US_DIALECT_CYCLONE);
    us_goal_id id;
    assert_int_equal(us_action_client_send(client, "\0\1\0\0", 4, &id), US_ERR_SYNTAX);
    us_action_client_remove(client);
    us_action_server_remove(NULL);
    us_action_client_remove(NULL);
    us_bus_close(bus);
}

// ---- an action of one's own ----

typedef struct digging {
    us_action_server *server;
    us_action_types types;
    us_goal_id goal;
    double depth;
    atomic_int n_goal;
} digging;

static bool on_dig(void *context, us_goal_id id, const void *bytes, size_t length) {
    digging *d = context;
    d->goal = id;
    d->depth = us_message_get_number(d->types.send_goal_request, bytes, length, "goal.depth");
    atomic_fetch_add(&d->n_goal, 1);
    return true;
}

// From a file of ROS 2, as a package has it, and nothing built.
static us_interface *load_dig(us_action_types *out) {
    static const char path[] = "rover/action/Dig.action";
    const char *file = path;
    us_interface_def def = us_interface_def_default();
    us_interface *own = NULL;
    us_error err = {0};
    mkdir("rover", 0777);
    mkdir("rover/action", 0777);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("float64 depth\n---\nstring found\n---\nfloat32 reached\n", f);
    assert_int_equal(fclose(f), 0);
    def.n_file = 1;
    def.files = &file;
    expect_ok(us_interface_load(&def, &own, &err), &err);
    expect_ok(us_action_types_of(own, "rover/action/Dig", out, &err), &err);
    assert_int_equal(us_action_types_of(own, "rover/action/Fly", &(us_action_types){0}, &err), US_ERR_NAME);
    return own;
}

static size_t compose(const us_message_type *type, const us_member_value *value, uint8_t bytes[BYTES]) {
    size_t length = 0;
    us_error err = {0};
    expect_ok(us_message_compose(type, value, 1, bytes, BYTES, &length, &err), &err);
    return length;
}

static void dig(us_dialect dialect) {
    digging d = {0};
    us_interface *own = load_dig(&d.types);
    us_bus *robot = open_bus("cyclone", test_domain()), *tool = open_bus("cyclone", test_domain());
    us_action_server_def def = us_action_server_def_default();
    us_action_client *client = NULL;
    us_error err = {0};
    def.name = "/rover/dig";
    def.types = d.types;
    def.on_goal = on_dig;
    def.context = &d;
    expect_ok(us_bus_add_action_server(robot, &def, &d.server, &err), &err);
    const us_action_client_def client_def = {"/rover/dig", d.types, -1, dialect};
    expect_ok(us_bus_add_action_client(tool, &client_def, &client, &err), &err);
    WAIT_FOR(us_action_client_is_ready(client));
    uint8_t bytes[BYTES];
    us_goal_id id;
    size_t length = compose(d.types.send_goal_request, &(us_member_value){"goal.depth", 0.25, NULL}, bytes);
    assert_int_equal(us_action_client_send(client, bytes, length, &id), US_OK);
    wait_event(client, US_ACTION_ACCEPTED, bytes, &length);
    assert_true(atomic_load(&d.n_goal) == 1 && d.depth == 0.25);
    assert_int_equal(us_action_server_execute(d.server, d.goal), US_OK);
    length = compose(d.types.feedback, &(us_member_value){"feedback.reached", 0.125, NULL}, bytes);
    assert_int_equal(us_action_server_send_feedback(d.server, d.goal, bytes, length), US_OK);
    wait_event(client, US_ACTION_FEEDBACK, bytes, &length);
    assert_true(us_message_get_number(d.types.feedback, bytes, length, "feedback.reached") == 0.125);
    length = compose(d.types.get_result_response, &(us_member_value){"result.found", 0, "ice"}, bytes);
    assert_int_equal(us_action_server_finish(d.server, d.goal, US_GOAL_SUCCEEDED, bytes, length), US_OK);
    const us_action_event e = wait_event(client, US_ACTION_RESULT, bytes, &length);
    assert_int_equal(e.status, US_GOAL_SUCCEEDED);
    char found[16];
    assert_int_equal(
        us_message_get_text(d.types.get_result_response, bytes, length, "result.found", found, 16), US_OK);
    assert_string_equal(found, "ice");
    us_action_client_remove(client);
    us_action_server_remove(d.server);
    us_bus_close(tool);
    us_bus_close(robot);
    us_interface_release(own);
}

static void an_action_of_ones_own_is_served_from_its_file(void **state) {
    (void)state;
    dig(US_DIALECT_CYCLONE);
    if (has_fastdds()) dig(US_DIALECT_FASTDDS);
}

// ---- the storm ----

// The server of the storm, in a process of its own that may be killed at any moment. A goal of n steps is
// worked on for n looks; its number says how it ends: n % 3 == 0 aborts. Most cancels are granted.
typedef struct job {
    us_goal_id id;
    uint64_t left, steps;
} job;

typedef struct shop {
    pthread_mutex_t lock;
    int n;
    job jobs[MAX_GOAL];
} shop;

static bool on_job(void *context, us_goal_id id, const void *bytes, size_t length) {
    shop *s = context;
    const uint64_t steps =
        (uint64_t)us_message_get_number(types().send_goal_request, bytes, length, "goal.steps");
    pthread_mutex_lock(&s->lock);
    const bool is_good = steps % 11 != 0 && s->n < MAX_GOAL;
    if (is_good) s->jobs[s->n++] = (job){id, steps % 40, steps};
    pthread_mutex_unlock(&s->lock);
    return is_good;
}

static bool on_job_cancel(void *context, us_goal_id id) {
    (void)context;
    return id.bytes[0] % 4 != 0;
}

static void work(shop *s, us_action_server *server) {
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->n;) {
        job *j = &s->jobs[i];
        us_action_server_execute(server, j->id);
        us_goal_status end = US_GOAL_UNKNOWN;
        if (us_action_server_get_status(server, j->id) == US_GOAL_CANCELING) end = US_GOAL_CANCELED;
        if (end == US_GOAL_UNKNOWN && j->left-- == 0)
            end = j->steps % 3 == 0 ? US_GOAL_ABORTED : US_GOAL_SUCCEEDED;
        // One that was cancelled in between ends so in the next look.
        const bool is_done = end != US_GOAL_UNKNOWN && finish(server, j->id, end, "") == US_OK;
        if (end != US_GOAL_UNKNOWN && !is_done) j->left = 0;
        if (is_done) {
            *j = s->jobs[--s->n];
        } else {
            i++;
        }
    }
    pthread_mutex_unlock(&s->lock);
}

static int run_shop(const char *vendor, int32_t domain) {
    static shop s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    us_bus_def def = us_bus_def_default();
    def.vendor = vendor;
    def.domain = domain;
    us_bus *bus = NULL;
    us_action_server *server = NULL;
    us_action_server_def action = us_action_server_def_default();
    action.name = action_name;
    action.types = types();
    action.max_goal = MAX_GOAL;
    action.on_goal = on_job;
    action.on_cancel = on_job_cancel;
    action.context = &s;
    if (us_bus_open(&def, &bus, NULL) || us_bus_add_action_server(bus, &action, &server, NULL)) return 1;
    atomic_store(&loss_per_mille, 50);
    printf("ready\n");
    fflush(stdout);
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    for (char byte; read(STDIN_FILENO, &byte, 1) != 0;) {
        work(&s, server);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    us_action_server_remove(server);
    us_bus_close(bus);
    return 0;
}

static peer start_shop(const char *vendor) {
    char kind[32];
    snprintf(kind, sizeof kind, "shop:%s", vendor);
    return start_self(kind, test_domain());
}

static void kill_shop(peer *p) {
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    running_peer = 0;
    close(p->in);
    close(p->out);
}

// What the client was told of each goal, and what all were told by the status.
typedef struct ledger_row {
    us_goal_id id;
    uint64_t steps;
    int n_end;
    us_goal_status end, told;
    uint8_t teller[16];  // the server that said so
    bool is_refused;
} ledger_row;

typedef struct ledger {
    int n, n_end, n_changed;
    ledger_row rows[MAX_GOAL];
} ledger;

static ledger_row *find_row(ledger *l, const uint8_t id[16]) {
    for (int i = 0; i < l->n; i++) {
        if (!memcmp(l->rows[i].id.bytes, id, 16)) return &l->rows[i];
    }
    return NULL;
}

// A state that is an end never changes. A server that was killed may have ended a goal before its client
// heard that it was accepted: then the next one begins it anew, and it is another's state.
static void read_status(ledger *l, us_reader *reader) {
    static uint8_t bytes[MESSAGE_BYTES];
    static _Alignas(16) uint8_t memory[4 * MESSAGE_BYTES];
    const void *m = NULL;
    us_sample from;
    for (size_t length; us_reader_take(reader, bytes, sizeof bytes, &length, &from) == US_OK && length > 0;) {
        if (us_message_decode(usi_type_goal_status_array, bytes, length, memory, sizeof memory, &m, NULL))
            fail_msg("a status that cannot be read");
        const us_msg_goal_status_array *list = m;
        for (uint32_t i = 0; i < list->status_list._length; i++) {
            const us_msg_goal_status *s = &list->status_list._buffer[i];
            ledger_row *row = find_row(l, s->goal_info.goal_id.uuid);
            if (!row) continue;
            const bool is_same = memcmp(row->teller, from.writer, sizeof row->teller) == 0;
            l->n_changed +=
                is_same && row->told >= US_GOAL_SUCCEEDED && row->told != (us_goal_status)s->status;
            row->told = (us_goal_status)s->status;
            memcpy(row->teller, from.writer, sizeof row->teller);
        }
    }
}

static void read_events(ledger *l, us_action_client *client) {
    uint8_t bytes[BYTES];
    size_t length = 0;
    us_action_event e;
    while (us_action_client_take(client, bytes, sizeof bytes, &length, &e) == US_OK &&
           e.kind != US_ACTION_NONE) {
        if (e.kind != US_ACTION_REFUSED && e.kind != US_ACTION_RESULT) continue;
        ledger_row *row = find_row(l, e.id.bytes);
        assert_non_null(row);
        row->n_end++;
        row->is_refused = e.kind == US_ACTION_REFUSED;
        row->end = e.status;
        l->n_end++;
    }
}

static void check_ledger(ledger *l, int n_goal, int n_kill) {
    int n_lost_goal = 0, n_of[US_GOAL_ABORTED + 1] = {0};
    assert_int_equal(l->n, n_goal);
    assert_int_equal(l->n_changed, 0);
    for (int i = 0; i < l->n; i++) {
        const ledger_row *row = &l->rows[i];
        assert_int_equal(row->n_end, 1);
        assert_int_equal(row->is_refused, row->steps % 11 == 0);
        if (row->is_refused) continue;
        // Unknown: its server was killed.
        assert_true(row->end == US_GOAL_UNKNOWN || row->end >= US_GOAL_SUCCEEDED);
        n_lost_goal += row->end == US_GOAL_UNKNOWN;
        n_of[row->end]++;
        if (row->end == US_GOAL_SUCCEEDED) assert_int_not_equal(row->steps % 3, 0);
        if (row->end == US_GOAL_ABORTED) assert_int_equal(row->steps % 3, 0);
        // The status agrees with what the client was told, unless it was told by another server.
        if (row->end != US_GOAL_UNKNOWN && row->told >= US_GOAL_SUCCEEDED)
            assert_int_equal(row->told, row->end);
    }
    if (n_kill == 0) assert_int_equal(n_lost_goal, 0);
    assert_true(n_of[US_GOAL_SUCCEEDED] > 0 && n_of[US_GOAL_CANCELED] > 0 && n_of[US_GOAL_ABORTED] > 0);
    print_message("%d goals: %d succeeded, %d cancelled, %d aborted, %d lost with %d servers; %llu datagrams "
                  "of this side lost\n",
                  l->n, n_of[US_GOAL_SUCCEEDED], n_of[US_GOAL_CANCELED], n_of[US_GOAL_ABORTED], n_lost_goal,
                  n_kill, (unsigned long long)atomic_load(&n_lost));
}

static void check_storm(const char *server, us_dialect dialect, int n_goal, int n_kill) {
    static ledger l;
    memset(&l, 0, sizeof l);
    atomic_store(&n_lost, 0);
    peer p = start_shop(server);
    us_bus *bus = open_bus("cyclone", test_domain());
    us_action_client *client = add_action_client(bus, dialect);
    us_reader *status =
        add_reader(bus, "/test/steps/_action/status", usi_type_goal_status_array,
                   (us_qos){.is_reliable = true, .is_transient_local = true, .depth = 0}, NULL, NULL);
    WAIT_FOR(us_action_client_is_ready(client));
    atomic_store(&loss_per_mille, 50);
    double until = clock_now() + 60 + 6 * n_kill + 0.1 * n_goal;
    for (int n_killed = 0; l.n_end < n_goal;) {
        if (clock_now() > until) fail_msg("%d of %d goals have ended", l.n_end, n_goal);
        if (l.n < n_goal && l.n - l.n_end < AT_ONCE) {
            ledger_row *row = &l.rows[l.n];
            row->steps = 1 + us_random_bits(3, (uint64_t)dialect, (uint64_t)l.n) % 1000;
            assert_int_equal(send_steps(client, row->steps, &row->id), US_OK);
            l.n++;
        }
        const uint64_t dice = us_random_bits(4, (uint64_t)dialect, (uint64_t)l.n + (uint64_t)l.n_end);
        if (l.n > 0 && dice % 3 == 0)
            us_action_client_cancel(client, l.rows[l.n - 1 - (int)(dice / 3) % (l.n < 8 ? l.n : 8)].id);
        if (n_killed < n_kill && l.n_end >= (n_killed + 1) * n_goal / (n_kill + 1)) {
            kill_shop(&p);
            p = start_shop(server);
            n_killed++;
        }
        read_events(&l, client);
        read_status(&l, status);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    atomic_store(&loss_per_mille, 0);
    // Nothing comes afterwards: late answers are not of open goals.
    const double quiet = clock_now() + 0.5;
    while (clock_now() < quiet) {
        read_events(&l, client);
        read_status(&l, status);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    check_ledger(&l, n_goal, n_kill);
    us_action_client_remove(client);
    us_bus_close(bus);
    stop_peer(&p);
}

static int storm_goals(void) { return getenv("US_LONG_TESTS") ? 1000 : 120; }
static int storm_kills(void) { return getenv("US_LONG_TESTS") ? 10 : 1; }

static void every_goal_has_one_end_in_the_dialect_of_cyclone(void **state) {
    (void)state;
    check_storm("cyclone", US_DIALECT_CYCLONE, storm_goals(), 0);
    check_storm("cyclone", US_DIALECT_CYCLONE, storm_goals(), storm_kills());
}

static void every_goal_has_one_end_in_the_dialect_of_fast_dds(void **state) {
    (void)state;
    if (!has_fastdds()) return;
    check_storm("cyclone", US_DIALECT_FASTDDS, storm_goals(), storm_kills());
    check_storm("fastdds", US_DIALECT_FASTDDS, storm_goals(), storm_kills());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_goal_goes_through_its_states),
    cmocka_unit_test(goals_are_refused_cancelled_and_kept),
    cmocka_unit_test(goals_of_a_server_that_is_removed_are_aborted),
    cmocka_unit_test(the_status_is_kept_for_those_who_come_late),
    cmocka_unit_test(bad_actions_are_refused),
    cmocka_unit_test(an_action_of_ones_own_is_served_from_its_file),
    cmocka_unit_test(every_goal_has_one_end_in_the_dialect_of_cyclone),
    cmocka_unit_test(every_goal_has_one_end_in_the_dialect_of_fast_dds),
};

int main(int n, char **arguments) {
    if (n == 4 && strcmp(arguments[1], "--peer") == 0 && strncmp(arguments[2], "shop:", 5) == 0)
        return run_shop(arguments[2] + 5, (int32_t)strtol(arguments[3], NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
