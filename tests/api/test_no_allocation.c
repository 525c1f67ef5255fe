// Nothing is allocated after create: neither from the caller's allocator nor from the C library's heap.
//
// The program has its own malloc and its friends, which count and pass on to glibc's: every call from the
// library goes through them.
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator.h"
#include "contact_crowd.h"
#include "contract_build.h"

// A sanitizer has its own malloc, which must stay: there the caller's allocator alone is watched.
#if defined(__SANITIZE_ADDRESS__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#if !defined(OWN_MALLOC)
#if defined(__GLIBC__)
#define OWN_MALLOC 1
#else
#define OWN_MALLOC 0
#endif
#endif

static volatile long n_heap;

#if OWN_MALLOC
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *memory);

void *malloc(size_t size) {
    n_heap++;
    return __libc_malloc(size);
}
void *calloc(size_t n, size_t size) {
    n_heap++;
    return __libc_calloc(n, size);
}
void *realloc(void *memory, size_t size) {
    n_heap++;
    return __libc_realloc(memory, size);
}
void *memalign(size_t align, size_t size) {
    n_heap++;
    return __libc_memalign(align, size);
}
void *aligned_alloc(size_t align, size_t size) {
    n_heap++;
    return __libc_memalign(align, size);
}
int posix_memalign(void **out, size_t align, size_t size) {
    n_heap++;
    *out = __libc_memalign(align, size);
    return *out ? 0 : ENOMEM;
}
void free(void *memory) {
    if (memory) n_heap++;
    __libc_free(memory);
}
#endif

static void the_heap_is_watched(void **state) {
    (void)state;
    if (!OWN_MALLOC) skip();
    long before = n_heap;
    us_allocator a = us_allocator_default();
    void *memory = a.alloc(a.context, 100, 64);
    assert_int_equal(n_heap, before + 1);
    a.release(a.context, memory, 100, 64);
    assert_int_equal(n_heap, before + 2);
}

typedef struct buffers {
    double torque[64], target[16], matrix[64 * 64], vector[128], jacobian[6 * 64], q[128], v[64];
    us_wrench wrench[32];
    us_pose pose[32];
    us_twist twist[32];
    char text[256];
    unsigned char snapshot[16384];
} buffers;

// Everything that can be asked of a sim.
static void ask_everything(us_sim *sim, const us_model *m, buffers *b) {
    us_model_counts n = us_model_get_counts(m);
    for (int32_t i = 0; i < n.n_body; i++) {
        b->pose[i] = us_sim_get_pose(sim, (us_body){i});
        b->twist[i] = us_sim_get_twist(sim, (us_body){i});
    }
    us_sim_get_energy(sim);
    us_sim_get_momentum(sim);
    us_sim_get_closure(sim);
    us_sim_get_value(sim, us_sim_find_value(sim, "energy.kinetic"));
    us_sim_get_value(sim, us_sim_find_value(sim, "nothing.q"));
    us_sim_hash(sim);
    us_sim_take_profile(sim);
    us_model_find_body(m, "nobody");
    us_model_velocity_name(m, n.n_v - 1, b->text, sizeof b->text);
    for (int32_t i = 0; i < us_sim_n_field(sim); i++)
        us_sim_get_field(sim, i);
    size_t length = 0;
    us_sim_save(sim, NULL, 0, &length);
    if (length <= sizeof b->snapshot) {
        us_sim_save(sim, b->snapshot, sizeof b->snapshot, NULL);
        us_sim_restore(sim, b->snapshot, length);
    }
    memcpy(b->q, us_sim_view_q(sim), (size_t)n.n_q * sizeof(double));
    memcpy(b->v, us_sim_view_v(sim), (size_t)n.n_v * sizeof(double));
}

static void evaluate_everything(us_dyn *d, const us_model *m, buffers *b) {
    us_energy e;
    us_momentum p;
    int32_t rank;
    us_dyn_forward(d, b->q, b->v, b->torque, b->wrench, b->vector);
    us_dyn_forward_crba(d, b->q, b->v, b->torque, b->wrench, b->vector);
    us_dyn_forward_constrained(d, b->q, b->v, b->torque, b->wrench, b->vector, NULL, &rank);
    us_dyn_inverse(d, b->q, b->v, b->torque, b->wrench, b->vector);
    us_dyn_bias(d, b->q, b->v, b->vector);
    us_dyn_mass_matrix(d, b->q, b->matrix);
    us_dyn_poses(d, b->q, b->pose);
    us_dyn_twists(d, b->q, b->v, b->twist);
    us_dyn_accelerations(d, b->q, b->v, b->torque, b->twist);
    us_dyn_jacobian(d, b->q, (us_body){0}, us_vec3_make(0, 0, 0), b->jacobian);
    us_dyn_energy(d, b->q, b->v, &e);
    us_dyn_momentum(d, b->q, b->v, &p);
    us_dyn_constraints(d, b->q, b->vector, NULL);
    us_dyn_project(d, b->q, b->v);
    us_dyn_add(m, b->q, b->v, b->vector);
}

static void nothing_is_allocated_after_create(void **state) {
    (void)state;
    static buffers b;
    for (int w = 0; w < CONTRACT_WORLD_COUNT; w++) {
        for (int i = 0; i < US_INTEGRATOR_COUNT; i++) {
            us_model *m = contract_model((contract_world)w, (us_integrator)i);
            test_allocator t;
            test_allocator_init(&t);
            us_sim_def def = us_sim_def_default();
            def.allocator = t.allocator;
            def.enable_profile = true;
            us_sim *sim = NULL;
            us_dyn *d = NULL;
            assert_int_equal(us_sim_create(m, &def, &sim, NULL), US_OK);
            assert_int_equal(us_dyn_create(m, &t.allocator, &d), US_OK);
            memset(&b, 0, sizeof b);
            us_command c = {b.torque, b.wrench, b.target, b.target, b.target, NULL};
            int64_t before = t.n_alloc, live = t.n_live;
            long heap = n_heap;
            us_status status = US_OK;
            for (int tick = 0; tick < 1000 && !status; tick++) {
                status = us_sim_step(sim, tick % 3 ? &c : NULL);
                if (tick % 50) continue;
                ask_everything(sim, m, &b);
                evaluate_everything(d, m, &b);
                us_sim_poison(sim);
            }
            // Failing and starting again cost no memory either.
            b.torque[0] = NAN;
            us_status refused = us_sim_step(sim, &c);
            b.torque[0] = 1e300;
            us_status diverged = us_sim_step(sim, &c);
            b.torque[0] = 0;
            us_status reset = us_sim_reset(sim);
            us_status set = us_sim_set_state(sim, us_sim_view_q(sim), us_sim_view_v(sim));
            long heap_after = n_heap;
            assert_int_equal(heap_after, heap);
            assert_int_equal(t.n_alloc, before);
            assert_int_equal(t.n_live, live);
            if (status)
                fail_msg("%s, %s: %s", contract_world_name((contract_world)w),
                         us_integrator_name((us_integrator)i), us_sim_view_error(sim)->message);
            assert_int_equal(refused, US_ERR_VALUE);
            assert_true(diverged == US_ERR_DIVERGED || diverged == US_OK);
            assert_int_equal(reset, US_OK);
            assert_int_equal(set, US_OK);
            us_sim_destroy(sim);
            us_dyn_destroy(d);
            us_model_destroy(m);
            test_allocator_check(&t);
        }
    }
}

// Contact: every solver, one thread and several, things that fall, meet and part.
static void nothing_is_allocated_in_contact(void **state) {
    (void)state;
    static const char *const solvers[] = {"newton", "gauss-seidel", "rigid-direct", "rigid-iterative"};
    for (int k = 0; k < 8; k++) {
        bool is_rigid = k % 4 >= 2;  // slow: fewer bodies and steps
        us_spec *spec = is_rigid ? crowd_spec(1, 2, 6, solvers[k % 4]) : crowd_spec(3, 2, 60, solvers[k % 4]);
        us_model *m = NULL;
        assert_int_equal(us_model_compile(spec, NULL, &m, NULL), US_OK);
        us_spec_destroy(spec);
        test_allocator t;
        test_allocator_init(&t);
        us_sim_def def = us_sim_def_default();
        def.allocator = t.allocator;
        def.n_thread = k < 4 ? 1 : 3;
        us_sim *sim = NULL;
        assert_int_equal(us_sim_create(m, &def, &sim, NULL), US_OK);
        int64_t before = t.n_alloc, live = t.n_live;
        long heap = n_heap;
        us_status status = US_OK;
        int32_t most = 0;
        for (int tick = 0; tick < (is_rigid ? 60 : 200) && !status; tick++) {
            status = us_sim_step(sim, NULL);
            for (int32_t i = 0; i < us_sim_n_contact(sim); i++)
                us_sim_get_contact(sim, i);
            if (us_sim_n_contact(sim) > most) most = us_sim_n_contact(sim);
            if (tick % 50 == 0) us_sim_poison(sim);
        }
        us_pose X = us_sim_get_pose(sim, (us_body){0});
        X.p.z += 1;
        us_status moved = us_sim_move(sim, (us_body){0}, X);
        us_status reset = us_sim_reset(sim);
        long heap_after = n_heap;
        assert_int_equal(heap_after, heap);
        assert_int_equal(t.n_alloc, before);
        assert_int_equal(t.n_live, live);
        if (status) fail_msg("%s: %s", solvers[k % 4], us_sim_view_error(sim)->message);
        assert_int_equal(moved, US_OK);
        assert_int_equal(reset, US_OK);
        assert_true(most > (is_rigid ? 1 : 3) * 6 * 4);  // the columns alone
        us_sim_destroy(sim);
        us_model_destroy(m);
        test_allocator_check(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heap_is_watched),
        cmocka_unit_test(nothing_is_allocated_after_create),
        cmocka_unit_test(nothing_is_allocated_in_contact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
