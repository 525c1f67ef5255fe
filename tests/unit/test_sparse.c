// Block-sparse LU against a dense solve with pivoting: any structure, any sizes, any order of the pairs.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contact/contact.h"

enum { MAX_UNIT = 240, MAX_PAIR = 2000, MAX_ROW = 1500 };

// A structure, its numbers as a dense matrix, and where the units start in it.
typedef struct problem {
    int32_t n, n_pair, n_row;
    int32_t size[MAX_UNIT], start[MAX_UNIT], pair[MAX_PAIR][2];
    double *A;  // n_row x n_row
    uint64_t seed, counter;
} problem;

static double random_in(problem *p, double low, double high) {
    return low + (high - low) * us_random_uniform(p->seed, 1, p->counter++);
}
static int32_t random_index(problem *p, int32_t n) {
    return (int32_t)(us_random_bits(p->seed, 2, p->counter++) % (uint64_t)n);
}

static problem *new_problem(uint64_t seed, int32_t n) {
    problem *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->n = n;
    p->seed = seed;
    return p;
}

static void set_sizes(problem *p, int32_t low, int32_t high) {
    for (int32_t i = 0; i < p->n; i++) {
        p->size[i] = low + random_index(p, high - low + 1);
        p->start[i] = p->n_row;
        p->n_row += p->size[i];
    }
    p->A = calloc((size_t)p->n_row * (size_t)p->n_row + 1, sizeof *p->A);
    assert_non_null(p->A);
}

static void free_problem(problem *p) {
    free(p->A);
    free(p);
}

static void add_pair(problem *p, int32_t i, int32_t j) {
    assert_true(p->n_pair < MAX_PAIR);
    p->pair[p->n_pair][0] = i;
    p->pair[p->n_pair][1] = j;
    p->n_pair++;
}

// Pairs with equal ends and pairs given twice or in both orders are among them.
static void add_random_pairs(problem *p, int32_t n_pair) {
    for (int32_t k = 0; k < n_pair; k++)
        add_pair(p, random_index(p, p->n), random_index(p, p->n));
}

static bool is_in_structure(const problem *p, int32_t i, int32_t j) {
    if (i == j) return true;
    for (int32_t k = 0; k < p->n_pair; k++) {
        if ((p->pair[k][0] == i && p->pair[k][1] == j) || (p->pair[k][0] == j && p->pair[k][1] == i))
            return true;
    }
    return false;
}

// Random numbers in all blocks of the structure, more on the diagonal than in the rest of its row and column.
static void fill_dominant(problem *p) {
    for (int32_t i = 0; i < p->n; i++) {
        for (int32_t j = 0; j < p->n; j++) {
            if (!is_in_structure(p, i, j)) continue;
            for (int32_t r = 0; r < p->size[i]; r++) {
                for (int32_t c = 0; c < p->size[j]; c++)
                    p->A[(p->start[i] + r) * p->n_row + p->start[j] + c] = random_in(p, -1, 1);
            }
        }
    }
    for (int32_t r = 0; r < p->n_row; r++) {
        double sum = 1;
        for (int32_t c = 0; c < p->n_row; c++)
            sum += fabs(p->A[r * p->n_row + c]) + fabs(p->A[c * p->n_row + r]);
        p->A[r * p->n_row + r] = sum;
    }
}

// A mass matrix plus contact: each unit gets B^T B + 1, each pair (and each unit, against the world) J^T G J
// of 12 rows, G with stiffnesses 1 .. 1e4 and entries like those of sliding friction, which make it
// unsymmetric; its symmetric part stays positive, so that no order of pivots can fail.
static void fill_contact(problem *p) {
    static double J[3][2 * 60];
    for (int32_t i = 0; i < p->n; i++) {
        for (int32_t r = 0; r < p->size[i]; r++)
            p->A[(p->start[i] + r) * p->n_row + p->start[i] + r] += random_in(p, 0.5, 2);
    }
    for (int32_t k = 0; k < p->n_pair + p->n; k++) {
        int32_t a = k < p->n_pair ? p->pair[k][0] : k - p->n_pair, b = k < p->n_pair ? p->pair[k][1] : -1;
        if (a == b) continue;
        int32_t n_a = p->size[a], n_b = b < 0 ? 0 : p->size[b];
        for (int point = 0; point < 4; point++) {
            for (int row = 0; row < 3; row++) {
                for (int32_t c = 0; c < n_a + n_b; c++)
                    J[row][c] = random_in(p, -1, 1);
            }
            double k_n = pow(10, random_in(p, 0, 4)),
                   G[3][3] = {{k_n, 0, 0}, {0.3 * k_n, 0.1 * k_n, 0}, {-0.2 * k_n, 0, 0.1 * k_n}};
            for (int32_t r = 0; r < n_a + n_b; r++) {
                for (int32_t c = 0; c < n_a + n_b; c++) {
                    double sum = 0;
                    for (int u = 0; u < 3; u++) {
                        for (int v = 0; v < 3; v++)
                            sum += J[u][r] * G[u][v] * J[v][c];
                    }
                    int32_t at_r = r < n_a ? p->start[a] + r : p->start[b] + r - n_a,
                            at_c = c < n_a ? p->start[a] + c : p->start[b] + c - n_a;
                    p->A[at_r * p->n_row + at_c] += sum;
                }
            }
        }
    }
}

// x = A^-1 x by Gaussian elimination with partial pivoting.
static void dense_solve(const problem *p, double *x) {
    int32_t n = p->n_row;
    double *A = malloc((size_t)n * (size_t)n * sizeof *A + 1);
    assert_non_null(A);
    memcpy(A, p->A, (size_t)n * (size_t)n * sizeof *A);
    for (int32_t k = 0; k < n; k++) {
        int32_t best = k;
        for (int32_t r = k + 1; r < n; r++) {
            if (fabs(A[r * n + k]) > fabs(A[best * n + k])) best = r;
        }
        for (int32_t c = k; c < n; c++) {
            double t = A[k * n + c];
            A[k * n + c] = A[best * n + c];
            A[best * n + c] = t;
        }
        double t = x[k];
        x[k] = x[best];
        x[best] = t;
        for (int32_t r = k + 1; r < n; r++) {
            double l = A[r * n + k] / A[k * n + k];
            if (l == 0) continue;
            for (int32_t c = k; c < n; c++)
                A[r * n + c] -= l * A[k * n + c];
            x[r] -= l * x[k];
        }
    }
    for (int32_t r = n - 1; r >= 0; r--) {
        for (int32_t c = r + 1; c < n; c++)
            x[r] -= A[r * n + c] * x[c];
        x[r] /= A[r * n + r];
    }
    free(A);
}

// Memory that is full of garbage, and the structure in it.
static usi_sparse *set_up(const problem *p, void **out_memory) {
    size_t bytes = usi_sparse_bytes(p->n, p->size, p->n_pair);
    *out_memory = malloc(bytes + 1);
    assert_non_null(*out_memory);
    memset(*out_memory, 0xa5, bytes);
    usi_sparse *s =
        usi_sparse_setup(*out_memory, bytes, p->n, p->size, (const int32_t(*)[2])p->pair, p->n_pair);
    assert_non_null(s);
    return s;
}

static void assemble(const problem *p, usi_sparse *s) {
    usi_sparse_clear(s);
    for (int32_t i = 0; i < p->n; i++) {
        for (int32_t j = 0; j < p->n; j++) {
            double *block = usi_sparse_block(s, i, j);
            if (!block) {
                assert_false(is_in_structure(p, i, j));
                continue;
            }
            assert_int_equal((uintptr_t)block % 32, 0);
            int32_t stride = usi_sparse_stride(s, j);
            for (int32_t r = 0; r < p->size[i]; r++) {
                for (int32_t c = 0; c < p->size[j]; c++) {
                    assert_true(block[r * stride + c] == 0);
                    block[r * stride + c] = p->A[(p->start[i] + r) * p->n_row + p->start[j] + c];
                }
            }
        }
    }
}

// Solves for a random right-hand side; returns the largest residual relative to |A| |x| + |b| of its row, and
// checks the solution against the dense one to `tolerance` of its largest component.
static double solve_and_compare(problem *p, double tolerance) {
    static double b[MAX_ROW], x[MAX_ROW], dense[MAX_ROW];
    assert_true(p->n_row <= MAX_ROW);
    void *memory;
    usi_sparse *s = set_up(p, &memory);
    assemble(p, s);
    assert_true(usi_sparse_factor(s));
    for (int32_t i = 0; i < p->n_row; i++)
        b[i] = random_in(p, -1, 1);
    memcpy(x, b, sizeof x);
    memcpy(dense, b, sizeof dense);
    usi_sparse_solve(s, x);
    dense_solve(p, dense);
    double residual = 0, largest = 0;
    for (int32_t r = 0; r < p->n_row; r++)
        largest = fmax(largest, fabs(dense[r]));
    for (int32_t r = 0; r < p->n_row; r++) {
        double sum = -b[r], scale = fabs(b[r]);
        for (int32_t c = 0; c < p->n_row; c++) {
            sum += p->A[r * p->n_row + c] * x[c];
            scale += fabs(p->A[r * p->n_row + c] * x[c]);
        }
        residual = fmax(residual, fabs(sum) / scale);
        assert_true(fabs(x[r] - dense[r]) <= tolerance * largest);
    }
    // The same matrix again gives the same bits, whatever the memory held before.
    void *other;
    usi_sparse *again = set_up(p, &other);
    assemble(p, again);
    assert_true(usi_sparse_factor(again));
    usi_sparse_solve(again, b);
    assert_memory_equal(b, x, (size_t)p->n_row * sizeof *x);
    free(memory);
    free(other);
    return residual;
}

// Dominant matrices of these sizes have a condition below 1e3: 1e-12 leaves a factor of a thousand above
// rounding.
static void random_structures_of_mixed_sizes_agree_with_a_dense_solve(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        problem *p = new_problem(seed, 1 + (int32_t)(seed % 14));
        set_sizes(p, 1, 40);
        add_random_pairs(p, (int32_t)(seed * 7 % 30));
        fill_dominant(p);
        assert_true(solve_and_compare(p, 1e-12) < 1e-13);
        free_problem(p);
    }
}

static void free_bodies_and_robots_together_agree_with_a_dense_solve(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        problem *p = new_problem(100 + seed, 12);
        for (int32_t i = 0; i < p->n; i++) {
            p->size[i] = i % 4 ? 6 : 14 + (int32_t)seed;
            p->start[i] = p->n_row;
            p->n_row += p->size[i];
        }
        p->A = calloc((size_t)p->n_row * (size_t)p->n_row, sizeof *p->A);
        assert_non_null(p->A);
        add_random_pairs(p, 20);
        fill_dominant(p);
        assert_true(solve_and_compare(p, 1e-12) < 1e-13);
        free_problem(p);
    }
}

static void every_size_works_alone_and_beside_a_free_body(void **state) {
    (void)state;
    for (int32_t size = 1; size <= 70; size++) {
        problem *p = new_problem(200 + (uint64_t)size, 3);
        const int32_t sizes[3] = {size, 6, size};
        for (int32_t i = 0; i < 3; i++) {
            p->size[i] = sizes[i];
            p->start[i] = p->n_row;
            p->n_row += sizes[i];
        }
        p->A = calloc((size_t)p->n_row * (size_t)p->n_row, sizeof *p->A);
        assert_non_null(p->A);
        add_pair(p, 0, 1);
        add_pair(p, 1, 2);
        fill_dominant(p);
        assert_true(solve_and_compare(p, 1e-12) < 1e-13);
        free_problem(p);
    }
}

// Conditions up to 1e8 or so: the solution is known to 1e-16 times that, the residual is not touched by it.
static void mass_plus_contact_matrices_agree_with_a_dense_solve(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        problem *p = new_problem(300 + seed, 2 + (int32_t)(seed % 20));
        set_sizes(p, 6, seed % 2 ? 6 : 12);
        for (int32_t i = 1; i < p->n; i++)
            add_pair(p, i - 1, i);
        add_random_pairs(p, p->n);
        fill_contact(p);
        assert_true(solve_and_compare(p, 1e-6) < 1e-11);
        free_problem(p);
    }
}

static void more_units_than_bits_in_a_word_agree_with_a_dense_solve(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        problem *p = new_problem(400 + seed, seed ? 200 : 65);
        set_sizes(p, seed == 1 ? 6 : 1, 6);
        for (int32_t i = 1; i < p->n; i++)
            add_pair(p, random_index(p, i), i);
        add_random_pairs(p, p->n / 3);
        fill_dominant(p);
        assert_true(solve_and_compare(p, 1e-12) < 1e-13);
        free_problem(p);
    }
}

static int32_t count_blocks(usi_sparse *s, int32_t n) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = 0; j < n; j++)
            count += usi_sparse_block(s, i, j) != NULL;
    }
    return count;
}

static void a_tree_has_no_fill_and_a_ring_has_as_much_as_it_must(void **state) {
    (void)state;
    for (int32_t n = 4; n <= 100; n += 16) {
        problem *p = new_problem(500, n);
        set_sizes(p, 6, 6);
        for (int32_t i = 1; i < n; i++)
            add_pair(p, random_index(p, i), i);
        void *memory;
        assert_int_equal(count_blocks(set_up(p, &memory), n), n + 2 * (n - 1));
        free(memory);
        // A ring of n units: n edges, and a chord for each unit eliminated but the last three.
        p->n_pair = 0;
        for (int32_t i = 0; i < n; i++)
            add_pair(p, i, (i + 1) % n);
        assert_int_equal(count_blocks(set_up(p, &memory), n), n + 2 * (n + n - 3));
        free(memory);
        free_problem(p);
    }
}

static void the_blocks_of_a_pair_are_those_of_its_units(void **state) {
    (void)state;
    problem *p = new_problem(600, 30);
    set_sizes(p, 1, 9);
    add_random_pairs(p, 80);
    add_pair(p, 4, 4);
    void *memory;
    usi_sparse *s = set_up(p, &memory);
    for (int32_t k = 0; k < p->n_pair; k++) {
        int32_t i = p->pair[k][0], j = p->pair[k][1];
        double *ij = NULL, *ji = NULL;
        usi_sparse_pair_blocks(s, k, &ij, &ji);
        assert_non_null(ij);
        assert_ptr_equal(ij, usi_sparse_block(s, i, j));
        assert_ptr_equal(ji, usi_sparse_block(s, j, i));
        if (i != j) assert_ptr_not_equal(ij, ji);
    }
    for (int32_t i = 0; i < p->n; i++)
        assert_int_equal(usi_sparse_stride(s, i), (p->size[i] + 3) / 4 * 4);
    assert_null(usi_sparse_block(s, -1, 0));
    assert_null(usi_sparse_block(s, 0, p->n));
    free(memory);
    free_problem(p);
}

static void the_blocks_of_each_pair_are_first_once_and_the_rest_is_fill(void **state) {
    (void)state;
    problem *p = new_problem(650, 30);
    set_sizes(p, 1, 9);
    add_random_pairs(p, 60);
    add_pair(p, p->pair[0][1], p->pair[0][0]);
    add_pair(p, 4, 4);
    void *memory;
    usi_sparse *s = set_up(p, &memory);
    for (int32_t i = 0; i < p->n; i++) {
        for (int32_t j = 0; j < p->n; j++) {
            if (usi_sparse_block(s, i, j)) *usi_sparse_block(s, i, j) = 1;
        }
    }
    usi_sparse_clear_fill(s);
    for (int32_t i = 0; i < p->n; i++) {
        for (int32_t j = 0; j < p->n; j++) {
            int32_t n_first = 0, n_pair = 0;
            for (int32_t k = 0; k < p->n_pair; k++) {
                const bool is_here =
                    (p->pair[k][0] == i && p->pair[k][1] == j) || (p->pair[k][0] == j && p->pair[k][1] == i);
                n_pair += is_here;
                n_first += is_here && usi_sparse_is_first(s, k);
            }
            const double *block = usi_sparse_block(s, i, j);
            assert_int_equal(n_first, i != j && n_pair > 0);
            if (block) assert_true(*block == (i == j || n_pair > 0));
        }
    }
    free(memory);
    free_problem(p);
}

static void a_pivot_that_is_zero_or_not_finite_is_refused(void **state) {
    (void)state;
    const double bad[] = {0, NAN, INFINITY, -INFINITY};
    const int32_t sizes[] = {6, 1, 5, 14};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        problem *p = new_problem(700 + k, 3);
        set_sizes(p, sizes[k], sizes[k]);
        add_pair(p, 0, 1);
        add_pair(p, 1, 2);
        fill_dominant(p);
        void *memory;
        usi_sparse *s = set_up(p, &memory);
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            for (int32_t row = 0; row < p->n_row; row++) {
                // A row of its own: the pivot is then exactly what stands on the diagonal.
                assemble(p, s);
                int32_t unit = row / sizes[k], r = row % sizes[k], stride = usi_sparse_stride(s, unit);
                for (int32_t j = 0; j < p->n; j++) {
                    double *block = usi_sparse_block(s, unit, j);
                    if (block)
                        memset(block + r * usi_sparse_stride(s, j), 0, (size_t)p->size[j] * sizeof *block);
                }
                usi_sparse_block(s, unit, unit)[r * stride + r] = bad[b];
                assert_false(usi_sparse_factor(s));
            }
        }
        // It recovers.
        assemble(p, s);
        assert_true(usi_sparse_factor(s));
        free(memory);
        free_problem(p);
    }
}

static void too_little_memory_and_wrong_units_are_refused(void **state) {
    (void)state;
    problem *p = new_problem(800, 9);
    set_sizes(p, 1, 20);
    add_random_pairs(p, 25);
    fill_dominant(p);
    size_t bytes = usi_sparse_bytes(p->n, p->size, p->n_pair);
    int n_refused = 0;
    for (size_t some = 0; some <= bytes; some += some + 97 > bytes && some < bytes ? bytes - some : 97) {
        // Exactly as many bytes as it is told, for AddressSanitizer to watch.
        char *memory = malloc(some + 1);
        assert_non_null(memory);
        usi_sparse *s =
            usi_sparse_setup(memory + 1, some, p->n, p->size, (const int32_t(*)[2])p->pair, p->n_pair);
        if (!s) n_refused++;
        if (s) {
            static double x[MAX_ROW];
            assemble(p, s);
            assert_true(usi_sparse_factor(s));
            usi_sparse_solve(s, x);
        }
        assert_true(s || some < bytes);
        free(memory);
    }
    assert_true(n_refused > 10);
    char *memory = malloc(bytes + 1);
    assert_non_null(memory);
    p->pair[3][1] = 9;
    assert_null(usi_sparse_setup(memory, bytes, p->n, p->size, (const int32_t(*)[2])p->pair, p->n_pair));
    p->pair[3][1] = -1;
    assert_null(usi_sparse_setup(memory, bytes, p->n, p->size, (const int32_t(*)[2])p->pair, p->n_pair));
    p->pair[3][1] = 0;
    p->size[2] = 0;
    assert_null(usi_sparse_setup(memory, bytes, p->n, p->size, (const int32_t(*)[2])p->pair, p->n_pair));
    assert_null(usi_sparse_setup(NULL, 0, p->n, p->size, (const int32_t(*)[2])p->pair, p->n_pair));
    free(memory);
    free_problem(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_structures_of_mixed_sizes_agree_with_a_dense_solve),
        cmocka_unit_test(free_bodies_and_robots_together_agree_with_a_dense_solve),
        cmocka_unit_test(every_size_works_alone_and_beside_a_free_body),
        cmocka_unit_test(mass_plus_contact_matrices_agree_with_a_dense_solve),
        cmocka_unit_test(more_units_than_bits_in_a_word_agree_with_a_dense_solve),
        cmocka_unit_test(a_tree_has_no_fill_and_a_ring_has_as_much_as_it_must),
        cmocka_unit_test(the_blocks_of_a_pair_are_those_of_its_units),
        cmocka_unit_test(the_blocks_of_each_pair_are_first_once_and_the_rest_is_fill),
        cmocka_unit_test(a_pivot_that_is_zero_or_not_finite_is_refused),
        cmocka_unit_test(too_little_memory_and_wrong_units_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
