// Contacts between what different processes own: each is solved once, nothing is lost between them, and the
// world goes as in one process.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "split_world.h"

static double distance(us_vec3 a, us_vec3 b) { return us_vec3_norm(us_vec3_sub(a, b)); }

static us_vec3 total(us_sim *sim) { return us_sim_get_momentum(sim).linear; }

// ---------------------------------------------------------------- momentum

// Two cubes in free flight that meet off-centre, and a third in the way.
static const char flight[] = "<scene name='flight' version='1'><world step='1 ms' gravity='0 0 0'/>"
                             "<object name='a' xyz='0 0 0'><link name='core' density='1000'><shape "
                             "type='box' size='0.2 0.2 0.2'/></link><base linear='1 0.1 0'/></object>"
                             "<object name='b' xyz='0.5 0.06 0.03'><link name='core' density='1500'><shape "
                             "type='box' size='0.2 0.2 0.2'/></link><base linear='-0.5 0 "
                             "0'/></object>"
                             "<object name='c' xyz='0.9 0.1 0'><link name='core' density='700'><shape "
                             "type='box' size='0.2 0.2 0.2'/></link><base linear='-0.5 0 "
                             "0'/></object></scene>";

// The momentum of all, each taken from its owner.
static us_vec3 momentum_of(const split_process *const *owner, const char *const *links, int n) {
    us_vec3 sum = us_vec3_make(0, 0, 0);
    for (int i = 0; i < n; i++) {
        us_body body = us_model_find_body(owner[i]->model, links[i]);
        us_inertia inertia = us_model_get_inertia(owner[i]->model, body);
        sum = us_vec3_add(sum, us_vec3_scale(inertia.mass, us_sim_get_twist(owner[i]->sim, body).v));
    }
    return sum;
}

static void momentum_is_kept_by_collisions_across_processes(void **state) {
    (void)state;
    static const char *const links[] = {"a/core", "b/core", "c/core"};
    split_net net;
    split_open(&net);
    const split_process *one = split_add(&net, flight, NULL, 0), *p = split_add(&net, flight, "a", 0.01),
                        *q = split_add(&net, flight, "b", 0.01), *r = split_add(&net, flight, "c", 0.01);
    const split_process *const owner[] = {p, q, r};
    us_vec3 before = total(one->sim);
    assert_true(split_run(&net, 1000, 5));
    us_vec3 after = momentum_of(owner, links, 3);
    // Some 10 kg m/s go over. The two sides get the same impulses; where the solver stops, at a share of
    // 1e-9, one's velocity is not quite that of its impulse.
    if (!(distance(before, after) < 1e-7)) fail_msg("momentum changed by %g", distance(before, after));
    // They have met: a was stopped.
    assert_true(us_sim_get_twist(p->sim, us_model_find_body(p->model, "a/core")).v.x < 0.5);
    assert_true(usi_split_get_counts(p->split).n_force > 0 && usi_split_get_counts(q->split).n_force > 0);
    // The solver stops at changes of some nm/s: half a second later that is a nanometre, and the turning of
    // cubes makes it some tens.
    for (int i = 0; i < 3; i++) {
        double off = distance(split_position(one, links[i]), split_position(owner[i], links[i]));
        if (!(off < 1e-7)) fail_msg("%s is %g m off", links[i], off);
    }
    split_close(&net);
}

// ---------------------------------------------------------------- pushing

// One cart drives against a row of two that stand.
static const char *row(void) {
    static char text[8192];
    snprintf(text, sizeof text, "%s%s%s%s%s", split_head, split_cart("a", 0, 0, 3),
             split_cart("b", 0.55, 0.05, 0), split_cart("c", 1.1, 0, 0), split_tail);
    return text;
}

// Any split and any exchange step: as in one process, but for what the solvers leave.
static void a_push_through_several_processes_is_that_of_one(void **state) {
    (void)state;
    static const char *const splits[][3] = {
        {"a", "b,c", NULL}, {"a,c", "b", NULL}, {"c,b", "a", NULL}, {"a", "b", "c"}};
    static const double exchanges[] = {0.001, 0.016, 0.05};
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        for (size_t k = 0; k < 3; k++) {
            split_net net;
            split_open(&net);
            net.n_interval = (int32_t)(i % 2) * 4;  // before they meet
            const split_process *one = split_add(&net, row(), NULL, 0);
            for (int n = 0; n < 3 && splits[i][n]; n++)
                split_add(&net, row(), splits[i][n], exchanges[k]);
            assert_true(split_run(&net, 1600, 5));
            assert_true(split_position(one, "c/base").x > 1.1001);  // it was pushed along
            for (int32_t n = 1; n < net.n; n++) {
                const char *own = splits[i][n - 1];
                for (const char *name = own; *name; name++) {
                    if (*name == ',') continue;
                    char link[16];
                    snprintf(link, sizeof link, "%c/base", *name);
                    double off = distance(split_position(one, link), split_position(&net.process[n], link));
                    // A second of pushing with stops and slips of wheels: each makes some nanometres of what
                    // the solver leaves.
                    if (!(off < 1e-6))
                        fail_msg("split %d, exchange %g s: %s is %g m off", (int)i, exchanges[k], link, off);
                }
            }
            split_close(&net);
        }
    }
}

// ---------------------------------------------------------------- commands that change

// The wheels of a turn faster and faster, those of b more slowly, and they swing: a pushes b all the time.
static void swing(const us_model *model, int64_t tick, double *out_velocity) {
    for (int32_t i = 0; i < model->n_drive; i++) {
        const char *name = us_model_drive_name(model, (us_drive){i});
        double t = 1e-3 * (double)tick;
        out_velocity[i] = name[0] == 'a' ? t : 0.5 * t + 0.2 * t * sin(6 * t);
    }
}

static double error_of(double exchange) {
    static char text[8192];
    snprintf(text, sizeof text, "%s%s%s%s", split_head, split_cart("a", 0, 0, 0),
             split_cart("b", 0.525, 0, 0), split_tail);
    split_net net;
    split_open(&net);
    net.drive = swing;
    const split_process *one = split_add(&net, text, NULL, 0), *p = split_add(&net, text, "a", exchange),
                        *q = split_add(&net, text, "b", exchange);
    assert_true(split_run(&net, 1280, 5));
    double off = fmax(distance(split_position(one, "a/base"), split_position(p, "a/base")),
                      distance(split_position(one, "b/base"), split_position(q, "b/base")));
    print_message("exchange %g s: %g m off\n", exchange, off);
    split_close(&net);
    return off;
}

// A ghost that is awake keeps the commands of the exchange point: that is the one thing that depends on the
// exchange step.
static void the_error_of_held_commands_falls_with_the_exchange_step(void **state) {
    (void)state;
    double off[4];
    for (int i = 0; i < 4; i++)
        off[i] = error_of(0.008 * (1 << i));
    // First order: half of it for half the step; 1.6 leaves room for slips of wheels.
    for (int i = 0; i < 3; i++) {
        if (!(off[i] * 1.6 < off[i + 1]))
            fail_msg("half the exchange step brings the error from %g to %g m", off[i + 1], off[i]);
    }
    assert_true(off[3] < 2e-3);
}

// ---------------------------------------------------------------- faults

typedef enum fault_kind { BLOCKED, WEAK, EMPTY, N_FAULT } fault_kind;

static void set_fault(const split_process *p, fault_kind kind, const char *const *wheels) {
    for (int i = 0; i < 4; i++) {
        us_joint joint = us_model_find_joint(p->model, wheels[i]);
        us_drive drive = us_model_find_drive(p->model, wheels[i]);
        if (kind == BLOCKED) assert_int_equal(us_sim_set_blockage(p->sim, joint, 5), US_OK);
        if (kind == WEAK) assert_int_equal(us_sim_set_drive_strength(p->sim, drive, 0.1), US_OK);
    }
    us_battery battery = us_model_find_battery(p->model, "b");
    if (kind == EMPTY) assert_int_equal(us_sim_set_battery(p->sim, battery, 0), US_OK);
}

// a drives against b, whose wheels fail before they meet, in the process that owns b alone. The process of a
// solves their contact with b as it is there.
static void faults_of_a_robot_act_where_its_contact_is_solved(void **state) {
    (void)state;
    static char text[8192];
    static const char *const wheels[] = {"b/front_left", "b/front_right", "b/rear_left", "b/rear_right"};
    snprintf(text, sizeof text, "%s%s%s%s", split_head, split_cart("a", 0, 0, 4), split_cart("b", 0.6, 0, 0),
             split_tail);
    // b has a battery of its own.
    char *end = strrchr(text, '<');  // of </scene>
    memmove(end - strlen("</robot>") + strlen("<battery capacity='100 Wh'/></robot>"), end, strlen(end) + 1);
    memcpy(end - strlen("</robot>"), "<battery capacity='100 Wh'/></robot>",
           strlen("<battery capacity='100 Wh'/></robot>"));
    double x[N_FAULT + 1];
    for (int kind = 0; kind <= N_FAULT; kind++) {
        split_net net;
        split_open(&net);
        const split_process *one = split_add(&net, text, NULL, 0), *p = split_add(&net, text, "a", 0.01),
                            *q = split_add(&net, text, "b", 0.01);
        assert_true(split_run(&net, 95, 5));
        assert_true(usi_split_get_counts(p->split).n_force == 0);
        if (kind < N_FAULT) {
            set_fault(one, (fault_kind)kind, wheels);
            set_fault(q, (fault_kind)kind, wheels);
        }
        assert_true(split_run(&net, 1200, 5));
        assert_true(usi_split_get_counts(p->split).n_force > 100);
        double off_a = distance(split_position(one, "a/base"), split_position(p, "a/base")),
               off_b = distance(split_position(one, "b/base"), split_position(q, "b/base"));
        x[kind] = split_position(one, "b/base").x;
        print_message("fault %d: b at %.4f m, %.3g and %.3g m off\n", kind, x[kind], off_a, off_b);
        // As without faults: what stops and slips of wheels make of the solver's last digits.
        if (!(off_a < 1e-6 && off_b < 1e-6)) fail_msg("fault %d: %g and %g m off", kind, off_a, off_b);
        split_close(&net);
    }
    // Each fault shows: b is pushed further than one that is whole, or not as far.
    for (int kind = 0; kind < N_FAULT; kind++)
        assert_true(fabs(x[kind] - x[N_FAULT]) > 0.01);
}

// ---------------------------------------------------------------- bits

static void the_same_split_gives_the_same_bits(void **state) {
    (void)state;
    uint64_t hash[2][2];
    for (int round = 0; round < 2; round++) {
        split_net net;
        split_open(&net);
        // Who comes first is by chance.
        const split_process *p = split_add(&net, row(), round ? "b,c" : "a", 0.01),
                            *q = split_add(&net, row(), round ? "a" : "b,c", 0.01);
        assert_true(split_run(&net, 2500, 5));
        hash[round][round] = us_sim_hash(p->sim);
        hash[round][!round] = us_sim_hash(q->sim);
        split_close(&net);
    }
    assert_true(hash[0][0] == hash[1][0] && hash[0][1] == hash[1][1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(momentum_is_kept_by_collisions_across_processes),
        cmocka_unit_test(a_push_through_several_processes_is_that_of_one),
        cmocka_unit_test(the_error_of_held_commands_falls_with_the_exchange_step),
        cmocka_unit_test(faults_of_a_robot_act_where_its_contact_is_solved),
        cmocka_unit_test(the_same_split_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
