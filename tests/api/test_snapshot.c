// Snapshots: a size that can be asked for, and a refusal of everything that is not a whole snapshot of the
// same model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contract_build.h"

typedef struct fixture {
    us_model *model;
    us_sim *sim;
    unsigned char *bytes;
    size_t length;
    uint64_t now;  // hash of the sim's state, which is 10 ticks later than the snapshot
} fixture;

static int set_up(void **state) {
    static fixture f;
    f.model = contract_model(CONTRACT_EVERY_JOINT, US_INTEGRATOR_MIDPOINT);
    f.sim = contract_sim(f.model);
    for (int i = 0; i < 20; i++)
        assert_int_equal(us_sim_step(f.sim, NULL), US_OK);
    assert_int_equal(us_sim_save(f.sim, NULL, 0, &f.length), US_OK);
    f.bytes = malloc(f.length);
    assert_int_equal(us_sim_save(f.sim, f.bytes, f.length, NULL), US_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(us_sim_step(f.sim, NULL), US_OK);
    f.now = us_sim_hash(f.sim);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    free(f->bytes);
    us_sim_destroy(f->sim);
    us_model_destroy(f->model);
    return 0;
}

static void refused(const fixture *f, const void *bytes, size_t length) {
    assert_int_equal(us_sim_restore(f->sim, bytes, length), US_ERR_SNAPSHOT);
    assert_int_equal(us_sim_hash(f->sim), f->now);
    assert_int_equal(us_sim_get_tick(f->sim), 30);
}

static void the_size_is_told_before_anything_is_written(void **state) {
    fixture *f = *state;
    size_t length = 0;
    unsigned char small[4] = {1, 2, 3, 4};
    assert_int_equal(us_sim_save(f->sim, small, sizeof small, &length), US_ERR_ARG);
    assert_int_equal(length, f->length);
    assert_memory_equal(small, "\1\2\3\4", 4);
    unsigned char *exact = malloc(f->length + 1);
    exact[f->length] = 77;
    assert_int_equal(us_sim_save(f->sim, exact, f->length - 1, NULL), US_ERR_ARG);
    assert_int_equal(us_sim_save(f->sim, exact, f->length, NULL), US_OK);
    assert_int_equal(exact[f->length], 77);
    free(exact);
}

static void two_snapshots_of_one_state_are_equal_byte_by_byte(void **state) {
    fixture *f = *state;
    assert_int_equal(us_sim_restore(f->sim, f->bytes, f->length), US_OK);
    assert_int_equal(us_sim_get_tick(f->sim), 20);
    unsigned char *again = malloc(f->length);
    us_sim_poison(f->sim);
    assert_int_equal(us_sim_save(f->sim, again, f->length, NULL), US_OK);
    assert_memory_equal(again, f->bytes, f->length);
    free(again);
}

static void a_snapshot_that_is_cut_off_is_refused_at_every_length(void **state) {
    fixture *f = *state;
    for (size_t n = 0; n < f->length; n++) {
        // A copy of just this size, so that reading on would be found.
        unsigned char *cut = malloc(n ? n : 1);
        memcpy(cut, f->bytes, n);
        refused(f, cut, n);
        free(cut);
    }
}

static void a_snapshot_with_bytes_too_many_is_refused(void **state) {
    fixture *f = *state;
    unsigned char *longer = calloc(1, f->length + 8);
    memcpy(longer, f->bytes, f->length);
    refused(f, longer, f->length + 1);
    refused(f, longer, f->length + 8);
    free(longer);
}

static void a_snapshot_with_a_single_damaged_bit_is_refused(void **state) {
    fixture *f = *state;
    for (size_t n = 0; n < f->length; n++) {
        f->bytes[n] ^= (unsigned char)(1u << (n % 8));
        refused(f, f->bytes, f->length);
        f->bytes[n] ^= (unsigned char)(1u << (n % 8));
    }
    assert_int_equal(us_sim_restore(f->sim, f->bytes, f->length), US_OK);
}

static void a_snapshot_of_another_model_is_refused(void **state) {
    fixture *f = *state;
    // The same world but for one number: same size, another model.
    us_spec *spec = NULL;
    assert_int_equal(contract_spec(CONTRACT_EVERY_JOINT, US_INTEGRATOR_MIDPOINT, NULL, &spec), US_OK);
    us_joint_def j = *us_spec_view_joint(spec, us_spec_find_joint(spec, "elbow"));
    j.damping = nextafter(j.damping, 1);
    assert_int_equal(us_spec_set_joint(spec, us_spec_find_joint(spec, "elbow"), &j), US_OK);
    us_model *model = contract_compile(spec);
    us_sim *sim = contract_sim(model);
    size_t length = 0;
    assert_int_equal(us_sim_save(sim, NULL, 0, &length), US_OK);
    assert_int_equal(length, f->length);
    unsigned char *bytes = malloc(length);
    assert_int_equal(us_sim_save(sim, bytes, length, NULL), US_OK);
    refused(f, bytes, length);
    free(bytes);
    us_sim_destroy(sim);
    us_model_destroy(model);
}

static void a_snapshot_is_good_for_a_model_that_was_compiled_again(void **state) {
    fixture *f = *state;
    us_model *twin = contract_model(CONTRACT_EVERY_JOINT, US_INTEGRATOR_MIDPOINT);
    us_sim *sim = contract_sim(twin);
    assert_int_equal(us_sim_restore(sim, f->bytes, f->length), US_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    assert_int_equal(us_sim_hash(sim), f->now);
    us_sim_destroy(sim);
    us_model_destroy(twin);
}

static void a_snapshot_need_not_be_aligned(void **state) {
    fixture *f = *state;
    unsigned char *shifted = malloc(f->length + 1);
    memcpy(shifted + 1, f->bytes, f->length);
    assert_int_equal(us_sim_restore(f->sim, shifted + 1, f->length), US_OK);
    assert_int_equal(us_sim_save(f->sim, shifted + 1, f->length, NULL), US_OK);
    assert_memory_equal(shifted + 1, f->bytes, f->length);
    free(shifted);
}

static void the_fields_of_the_state_have_the_size_that_a_snapshot_needs(void **state) {
    fixture *f = *state;
    size_t bytes = 0;
    bool in_scratch = false;
    int32_t n_scratch = 0;
    for (int32_t i = 0; i < us_sim_n_field(f->sim); i++) {
        us_field_info info = us_sim_get_field(f->sim, i);
        assert_true(info.name[0] != 0 && info.type[0] != 0 && info.about[0] != 0);
        if (strcmp(info.block, "scratch") == 0) {
            in_scratch = true;
            n_scratch++;
        }
        if (!in_scratch) {
            assert_string_equal(info.block, "state");
            // Of lists a snapshot holds what is in use: nothing touches here, and no wrench was applied.
            bool is_list = strcmp(info.name, "touch") == 0 || strcmp(info.name, "anchor") == 0 ||
                           strcmp(info.name, "applied") == 0;
            if (!is_list) bytes += info.bytes;
        }
    }
    assert_true(n_scratch > 0);
    // The rest is the head: what it is, of which model, how long, and whether it is whole.
    assert_true(bytes < f->length && f->length - bytes <= 64);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_size_is_told_before_anything_is_written),
        TEST(two_snapshots_of_one_state_are_equal_byte_by_byte),
        TEST(a_snapshot_that_is_cut_off_is_refused_at_every_length),
        TEST(a_snapshot_with_bytes_too_many_is_refused),
        TEST(a_snapshot_with_a_single_damaged_bit_is_refused),
        TEST(a_snapshot_of_another_model_is_refused),
        TEST(a_snapshot_is_good_for_a_model_that_was_compiled_again),
        TEST(a_snapshot_need_not_be_aligned),
        TEST(the_fields_of_the_state_have_the_size_that_a_snapshot_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
