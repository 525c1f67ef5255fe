// The stand-in hardware's single joints: joint_commands and motor_group/command, what they do, and what is
// refused.
#include "test_hardware_support.h"

enum { N_DRIVE = 8 };  // steering and wheel of each corner, in the order of joint_states

typedef struct motors {
    pthread_mutex_t lock;
    double position[N_DRIVE], velocity[N_DRIVE], sequence, result;
    int64_t n;
} motors;

static void hear_motors(void *context, const us_sample *s) {
    motors *m = context;
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < N_DRIVE; i++) {
        char path[64];
        snprintf(path, sizeof path, "motors[%d].position", i);
        m->position[i] = number_in(usi_type_motor_group_status, s, path);
        snprintf(path, sizeof path, "motors[%d].velocity", i);
        m->velocity[i] = number_in(usi_type_motor_group_status, s, path);
    }
    m->sequence = number_in(usi_type_motor_group_status, s, "sequence");
    m->result = number_in(usi_type_motor_group_status, s, "result");
    m->n++;
    pthread_mutex_unlock(&m->lock);
}

static motors look(motors *m) {
    pthread_mutex_lock(&m->lock);
    motors copy = *m;
    pthread_mutex_unlock(&m->lock);
    return copy;
}

// Every so often, as velocities want it. Always true.
static bool repeat_joints(us_writer *writer, const double *value, uint32_t n, double *sent) {
    if (clock_now() - *sent < 0.05) return true;
    *sent = clock_now();
    double copy[2 * N_DRIVE];
    memcpy(copy, value, n * sizeof copy[0]);
    us_msg_float64_multi_array m = {.data = {._length = n, ._maximum = n, ._buffer = copy}};
    send(writer, usi_type_float64_multi_array, &m);
    return true;
}

static void command_motor(us_writer *writer, uint32_t sequence, const char *name, uint8_t mode,
                          double value) {
    us_msg_motor_profile motor = {.name = usi_text(name), .mode = mode, .value = value};
    us_msg_motor_group_command m = {.header.frame_id = usi_text(""),
                                    .sequence = sequence,
                                    .motors = {._length = 1, ._maximum = 1, ._buffer = &motor}};
    send(writer, usi_type_motor_group_command, &m);
}

static void single_joints_do_as_they_are_told(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("");
    operator_ *o = join_as_operator();
    static motors m = {.lock = PTHREAD_MUTEX_INITIALIZER};
    motors now;
    heard h;
    double sent = 0;
    o->is_quiet = true;
    add_reader(o->bus, "/k10/motor_group/status", usi_type_motor_group_status, (us_qos){.is_reliable = true},
               hear_motors, &m);
    us_writer *joints = writer_to(o->bus, "/k10/joint_commands", usi_type_float64_multi_array);
    us_writer *group = writer_to(o->bus, "/k10/motor_group/command", usi_type_motor_group_command);

    // All wheels askew by 0.4 rad and rolling with 1 rad/s: the body goes that way. 15 % and 1 cm/s as for
    // the body's commands.
    const double askew[N_DRIVE] = {0.4, 1, 0.4, 1, 0.4, 1, 0.4, 1};
    WAIT_FOR((repeat_joints(joints, askew, N_DRIVE, &sent), h = listen(o), now = look(&m),
              fabs(now.position[6] - 0.4) < 0.02 && h.vx > 0.14));
    assert_near(atan2(h.vy, h.vx), 0.4, 0.06);
    assert_near(hypot(h.vx, h.vy), 0.18, 0.027 + 0.01);
    // Nobody repeats it: the wheels stop, the steering stays.
    WAIT_FOR((h = listen(o), is_still(&h) && strstr(h.diagnostics, "safe stops\n    value: '1'")));
    // 0.02 rad: a spring holds it, and the encoders have noise.
    assert_near(look(&m).position[0], 0.4, 0.02);

    command_motor(group, 5, "front_left_steer", 2, -0.3);
    WAIT_FOR((now = look(&m), now.sequence == 5 && fabs(now.position[0] + 0.3) < 0.02));
    assert_true(now.result == 0);
    assert_near(now.position[2], 0.4, 0.02);
    command_motor(group, 6, "rear_right_drive", 2, now.position[7] + 1);
    double goal = now.position[7] + 1;
    // 0.15 rad: it turns alone while three others hold, and slips. The ground's 30 N m bend a drive of 400 N
    // m/rad by half of that.
    WAIT_FOR((now = look(&m), now.sequence == 6 && fabs(now.position[7] - goal) < 0.15));

    // A body velocity takes them all back.
    o->is_quiet = false;
    command(o, 0.3, 0, 0, false);
    WAIT_DRIVING(o, h.vx > 0.25 &&
                        (now = look(&m), fabs(now.position[0]) < 0.02 && fabs(now.position[6]) < 0.02));
    leave(o);
    end(pid);
}

static void what_joints_cannot_do_is_refused(void **state) {
    (void)state;
    NEEDS_HARDWARE();
    pid_t pid = start_hardware("");
    operator_ *o = join_as_operator();
    static motors m = {.lock = PTHREAD_MUTEX_INITIALIZER};
    motors now;
    add_reader(o->bus, "/k10/motor_group/status", usi_type_motor_group_status, (us_qos){.is_reliable = true},
               hear_motors, &m);
    us_writer *group = writer_to(o->bus, "/k10/motor_group/command", usi_type_motor_group_command);
    static const struct {
        const char *name;
        uint8_t mode;
        double value;
    } wrong[] = {
        {"tail", 1, 0},
        {"left_rocker", 1, 0},
        {"front_left_steer", 2, 2},
        {"front_left_drive", 1, 50},
        {"front_left_drive", 1, NAN},
        {"front_left_drive", 3, 1},
        {"a name that is far too long for a joint of a rover, and goes on and on beyond sixty-four", 1, 0}};
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        command_motor(group, 10 + i, wrong[i].name, wrong[i].mode, wrong[i].value);
        WAIT_FOR((now = look(&m), now.sequence == 10 + i));
        assert_true(now.result == 1);
    }
    heard h;
    WAIT_FOR((h = listen(o), strstr(h.diagnostics, "there is no motor")));
    WAIT_FOR((h = listen(o), strstr(h.diagnostics, "refused\n    value: '7'")));
    us_writer *joints = writer_to(o->bus, "/k10/joint_commands", usi_type_float64_multi_array);
    const double nine[9] = {0};
    double sent = 0;
    repeat_joints(joints, nine, 9, &sent);
    WAIT_FOR((h = listen(o), strstr(h.diagnostics, "joint_commands: more numbers than the 8 drives")));
    sent = 0;
    repeat_joints(joints, nine, 7, &sent);
    WAIT_FOR(
        (h = listen(o),
         strstr(h.diagnostics, "joint_commands: velocity of \"rear_right_drive\" is not a finite number")));
    assert_true(is_still(&h));
    leave(o);
    end(pid);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(single_joints_do_as_they_are_told, use_own_domain, kill_the_rest),
        cmocka_unit_test_setup_teardown(what_joints_cannot_do_is_refused, use_own_domain, kill_the_rest),
    };
    return cmocka_run_group_tests(tests, start_alone, kill_the_rest);
}
