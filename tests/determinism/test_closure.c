// The state is closed: what happens next depends on the state and the command alone. Scratch filled with
// garbage between steps changes nothing, and a restored state goes on as the original did.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "contract_build.h"

enum { N_STEP = 200 };

// The command of a tick: some ticks have none, some torques, wrenches or new drive targets.
typedef struct commands {
    us_command command;
    double torque[64], position[16], velocity[16];
    us_wrench wrench[32];
} commands;

static const us_command *command_at(commands *c, const us_model *m, int tick) {
    us_model_counts n = us_model_get_counts(m);
    memset(c, 0, sizeof *c);
    if (tick % 5 == 0) return NULL;
    if (tick % 7 == 0) {
        for (int32_t i = 0; i < n.n_v; i++)
            c->torque[i] = 0.02 * (us_random_uniform(1, (uint64_t)i, (uint64_t)tick) - 0.5);
        c->command.torque = c->torque;
    }
    if (tick % 11 == 0) {
        for (int32_t i = 0; i < n.n_body; i++) {
            c->wrench[i].f.x = 0.1 * i;
            c->wrench[i].n.z = -0.01 * i;
        }
        c->command.wrench = c->wrench;
    }
    if (tick % 13 == 0) {
        for (int32_t i = 0; i < n.n_drive; i++)
            c->position[i] = 0.1 * us_random_normal(2, (uint64_t)i, (uint64_t)tick);
        c->command.drive_position = c->position;
    }
    if (tick % 17 == 0) c->command.drive_velocity = c->velocity;
    return &c->command;
}

static void step(us_sim *sim, const us_model *m, int tick) {
    commands c;
    us_status status = us_sim_step(sim, command_at(&c, m, tick));
    if (status)
        fail_msg("tick %d: %s: %s", tick, us_sim_view_error(sim)->element, us_sim_view_error(sim)->message);
}

static void for_every_world(void (*check)(const us_model *m)) {
    for (int w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        for (int i = 0; i < US_INTEGRATOR_COUNT; i++) {
            us_model *m = contract_model((contract_world)w, (us_integrator)i);
            us_model_counts n = us_model_get_counts(m);
            assert_true(n.n_v <= 64 && n.n_drive <= 16 && n.n_body <= 32);
            check(m);
            us_model_destroy(m);
        }
    }
}

static void check_poison(const us_model *m) {
    us_sim *plain = contract_sim(m), *poisoned = contract_sim(m);
    assert_int_equal(us_sim_hash(plain), us_sim_hash(poisoned));
    for (int tick = 0; tick < N_STEP; tick++) {
        us_sim_poison(poisoned);
        step(plain, m, tick);
        step(poisoned, m, tick);
        if (us_sim_hash(plain) != us_sim_hash(poisoned))
            fail_msg("tick %d, integrator %s", tick, us_integrator_name(us_model_get_integrator(m)));
    }
    us_sim_destroy(plain);
    us_sim_destroy(poisoned);
}

static void garbage_in_the_scratch_between_steps_changes_nothing(void **state) {
    (void)state;
    for_every_world(check_poison);
}

static void check_queries(const us_model *m) {
    us_sim *plain = contract_sim(m), *asked = contract_sim(m);
    int32_t n_body = us_model_get_counts(m).n_body;
    for (int tick = 0; tick < N_STEP; tick++) {
        us_energy e = us_sim_get_energy(asked);
        us_momentum p = us_sim_get_momentum(asked);
        assert_true(isfinite(e.kinetic) && isfinite(e.potential) && isfinite(p.mass) &&
                    isfinite(us_sim_get_closure(asked)));
        for (int32_t b = 0; b < n_body; b++) {
            us_sim_get_twist(asked, (us_body){b});
            us_sim_get_pose(asked, (us_body){b});
        }
        step(plain, m, tick);
        step(asked, m, tick);
        assert_int_equal(us_sim_hash(plain), us_sim_hash(asked));
    }
    us_sim_destroy(plain);
    us_sim_destroy(asked);
}

static void questions_between_steps_change_nothing(void **state) {
    (void)state;
    for_every_world(check_queries);
}

static void check_restore(const us_model *m) {
    us_sim *sim = contract_sim(m), *other = contract_sim(m);
    size_t length = 0;
    assert_int_equal(us_sim_save(sim, NULL, 0, &length), US_OK);
    void *snapshot = malloc(length);
    uint64_t hash[N_STEP];
    for (int tick = 0; tick < N_STEP; tick++) {
        if (tick == 60) assert_int_equal(us_sim_save(sim, snapshot, length, NULL), US_OK);
        step(sim, m, tick);
        hash[tick] = us_sim_hash(sim);
    }
    // Back in the same sim, and over into one that has gone another way.
    for (int tick = 0; tick < 30; tick++)
        assert_int_equal(us_sim_step(other, NULL), US_OK);
    us_sim *const both[] = {sim, other};
    for (int k = 0; k < 2; k++) {
        us_sim_poison(both[k]);
        assert_int_equal(us_sim_restore(both[k], snapshot, length), US_OK);
        assert_int_equal(us_sim_get_tick(both[k]), 60);
        assert_int_equal(us_sim_hash(both[k]), hash[59]);
        for (int tick = 60; tick < N_STEP; tick++) {
            step(both[k], m, tick);
            assert_int_equal(us_sim_hash(both[k]), hash[tick]);
        }
    }
    free(snapshot);
    us_sim_destroy(sim);
    us_sim_destroy(other);
}

static void a_restored_state_goes_on_with_the_same_bits(void **state) {
    (void)state;
    for_every_world(check_restore);
}

static void check_reset(const us_model *m) {
    us_sim *fresh = contract_sim(m), *used = contract_sim(m);
    for (int tick = 0; tick < 50; tick++)
        step(used, m, tick);
    assert_int_not_equal(us_sim_hash(fresh), us_sim_hash(used));
    assert_int_equal(us_sim_reset(used), US_OK);
    assert_int_equal(us_sim_get_tick(used), 0);
    assert_int_equal(us_sim_hash(fresh), us_sim_hash(used));
    for (int tick = 0; tick < 50; tick++) {
        step(fresh, m, tick);
        step(used, m, tick);
        assert_int_equal(us_sim_hash(fresh), us_sim_hash(used));
    }
    us_sim_destroy(fresh);
    us_sim_destroy(used);
}

static void a_reset_sim_is_a_fresh_one(void **state) {
    (void)state;
    for_every_world(check_reset);
}

static void memory_with_garbage_in_it_gives_the_same_bits_as_clean_memory(void **state) {
    (void)state;
    for (int w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        test_allocator dirty;
        test_allocator_init(&dirty);
        us_spec *spec = NULL;
        us_model *clean_model = contract_model((contract_world)w, US_INTEGRATOR_MIDPOINT),
                 *dirty_model = NULL;
        assert_int_equal(contract_spec((contract_world)w, US_INTEGRATOR_MIDPOINT, &dirty.allocator, &spec),
                         US_OK);
        assert_int_equal(us_model_compile(spec, &dirty.allocator, &dirty_model, NULL), US_OK);
        us_spec_destroy(spec);
        assert_int_equal(us_model_hash(clean_model), us_model_hash(dirty_model));
        us_sim_def def = us_sim_def_default();
        def.allocator = dirty.allocator;
        us_sim *clean = contract_sim(clean_model), *soiled = NULL;
        assert_int_equal(us_sim_create(dirty_model, &def, &soiled, NULL), US_OK);
        for (int tick = 0; tick < N_STEP; tick++) {
            step(clean, clean_model, tick);
            step(soiled, dirty_model, tick);
            assert_int_equal(us_sim_hash(clean), us_sim_hash(soiled));
        }
        us_sim_destroy(clean);
        us_sim_destroy(soiled);
        us_model_destroy(clean_model);
        us_model_destroy(dirty_model);
        test_allocator_check(&dirty);
    }
}

// Everything in the state matters to the hash, and the hash to nothing else.
static void check_hash(const us_model *m) {
    us_sim *sim = contract_sim(m);
    size_t length = 0;
    us_sim_save(sim, NULL, 0, &length);
    uint64_t before = us_sim_hash(sim);
    us_sim_poison(sim);
    assert_int_equal(us_sim_hash(sim), before);
    us_model_counts n = us_model_get_counts(m);
    double q[128], v[64];
    for (int32_t i = 0; i < n.n_v; i++) {
        memcpy(v, us_sim_view_v(sim), (size_t)n.n_v * sizeof *v);
        v[i] = nextafter(v[i], 10);
        assert_int_equal(us_sim_set_state(sim, NULL, v), US_OK);
        assert_int_not_equal(us_sim_hash(sim), before);
        assert_int_equal(us_sim_reset(sim), US_OK);
        assert_int_equal(us_sim_hash(sim), before);
    }
    memcpy(q, us_sim_view_q(sim), (size_t)n.n_q * sizeof *q);
    q[n.n_q - 1] += 1e-3;
    assert_int_equal(us_sim_set_state(sim, q, NULL), US_OK);
    assert_int_not_equal(us_sim_hash(sim), before);
    us_sim_destroy(sim);
}

static void the_hash_sees_the_last_bit_of_every_velocity(void **state) {
    (void)state;
    for_every_world(check_hash);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_in_the_scratch_between_steps_changes_nothing),
        cmocka_unit_test(questions_between_steps_change_nothing),
        cmocka_unit_test(a_restored_state_goes_on_with_the_same_bits),
        cmocka_unit_test(a_reset_sim_is_a_fresh_one),
        cmocka_unit_test(memory_with_garbage_in_it_gives_the_same_bits_as_clean_memory),
        cmocka_unit_test(the_hash_sees_the_last_bit_of_every_velocity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
