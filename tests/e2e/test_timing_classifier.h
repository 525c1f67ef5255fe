// A classifier that tries to tell two kinds of starts of a program apart, and what a guess would have
// reached.
//
// A round is one start of each of two programs, and of each start there are some windows of time as lists of
// numbers. What belongs to one start (which thread runs where, at which moment it began) is the same in all
// its windows and another in the next start: it tells nothing about who it is, and must not help. So the
// classifier learns from the starts of some rounds and is asked about those of another, and what counts is
// the share of windows that it tells right when each round was left out once:
//
//     round      1    2    3    4   ...
//     one       ...  ...  ...  ###       learned from: .     asked about: #
//     other     ...  ...  ...  ###
//
// How much a guess gets right is found with the same numbers and the same method: if the two are alike, each
// round might as well have had its names the other way round. All 2^(n-1) ways to deal them are tried (all
// names the other way round is the same question), and `chance` is the share of ways that are told at least
// as well as the true one. Among 8 rounds the least that can be is 1 in 128.
#ifndef UNDERSTUDY_TEST_TIMING_CLASSIFIER_H
#define UNDERSTUDY_TEST_TIMING_CLASSIFIER_H

#include <libsvm/svm.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    MAX_ROUND = 8,
    MAX_PER_START = 15,
    MAX_WINDOW = 2 * MAX_ROUND * MAX_PER_START,
    MAX_FEATURE = 128,
    N_GAMMA = 3,
    N_COST = 3
};

// Windows stand in the order round, kind, window of the start.
typedef struct trial {
    int n_round, n_per_start, n_feature;
    double x[MAX_WINDOW][MAX_FEATURE];
} trial;

typedef struct verdict {
    double right;      // share of windows told right
    double low, high;  // between which 98 of 100 ways to deal the names lie
    double chance;     // share of these ways that are told as well or better
} verdict;

static inline int n_window_of(const trial *t) { return 2 * t->n_round * t->n_per_start; }
static inline int round_of(const trial *t, int w) { return w / (2 * t->n_per_start); }
static inline int kind_of(const trial *t, int w) { return w / t->n_per_start % 2; }
static inline double *window_of(trial *t, int round, int kind, int w) {
    return t->x[(2 * round + kind) * t->n_per_start + w];
}

// How alike two windows are, as the library wants it: in front of each row its number. Who is who has no part
// in it.
typedef struct svm_node kernel[MAX_WINDOW][MAX_WINDOW + 2];

static inline void make_kernels(const trial *t, kernel out[N_GAMMA]) {
    static const double gammas[N_GAMMA] = {0.1, 1, 5};
    static double z[MAX_WINDOW][MAX_FEATURE];
    int n = n_window_of(t);
    for (int f = 0; f < t->n_feature; f++) {
        double mean = 0, spread = 0;
        for (int i = 0; i < n; i++)
            mean += t->x[i][f] / n;
        for (int i = 0; i < n; i++)
            spread += pow(t->x[i][f] - mean, 2) / n;
        spread = sqrt(spread);
        // A hiccup of the machine is a hiccup, however long: at most 4 spreads.
        for (int i = 0; i < n; i++)
            z[i][f] = spread > 1e-12 ? fmax(-4, fmin(4, (t->x[i][f] - mean) / spread)) : 0;
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++) {
            double distance = 0;
            for (int f = 0; f < t->n_feature; f++)
                distance += pow(z[i][f] - z[k][f], 2);
            for (int g = 0; g < N_GAMMA; g++)
                out[g][i][k + 1] = (struct svm_node){k + 1, exp(-gammas[g] / t->n_feature * distance)};
        }
        for (int g = 0; g < N_GAMMA; g++) {
            out[g][i][0] = (struct svm_node){0, i + 1};
            out[g][i][n + 1].index = -1;
        }
    }
}

// Bit r of `swapped`: the names of round r are the other way round.
static inline double name_of(const trial *t, int w, uint32_t swapped) {
    return (kind_of(t, w) ^ (int)(swapped >> round_of(t, w) & 1)) == 0 ? 1 : -1;
}

static inline int count_right(const trial *t, kernel k, uint32_t swapped, int left_out, double cost) {
    struct svm_node *x[MAX_WINDOW];
    double y[MAX_WINDOW];
    struct svm_problem problem = {.y = y, .x = x};
    int n = n_window_of(t), n_right = 0;
    for (int i = 0; i < n; i++) {
        if (round_of(t, i) == left_out) continue;
        x[problem.l] = k[i];
        y[problem.l++] = name_of(t, i, swapped);
    }
    struct svm_parameter parameter = {.svm_type = C_SVC,
                                      .kernel_type = PRECOMPUTED,
                                      .C = cost,
                                      .cache_size = 10,
                                      .eps = 1e-2,
                                      .shrinking = 1};
    struct svm_model *model = svm_train(&problem, &parameter);
    for (int i = 0; i < n; i++)
        n_right += round_of(t, i) == left_out && svm_predict(model, k[i]) == name_of(t, i, swapped);
    svm_free_and_destroy_model(&model);
    return n_right;
}

// With the parameters that do best: every way to deal the names has the same choice.
static inline double share_right(const trial *t, kernel kernels[N_GAMMA], uint32_t swapped) {
    static const double costs[N_COST] = {0.3, 3, 30};
    int best = 0;
    for (int i = 0; i < N_GAMMA * N_COST; i++) {
        int right = 0;
        for (int r = 0; r < t->n_round; r++)
            right += count_right(t, kernels[i / N_COST], swapped, r, costs[i % N_COST]);
        if (right > best) best = right;
    }
    return (double)best / n_window_of(t);
}

static inline void be_silent(const char *text) { (void)text; }

static inline int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static inline verdict judge(const trial *t) {
    static kernel kernels[N_GAMMA];
    double shares[1 << (MAX_ROUND - 1)];
    int n_way = 1 << (t->n_round - 1), as_well = 0;
    svm_set_print_string_function(be_silent);
    make_kernels(t, kernels);
    for (int way = 0; way < n_way; way++)
        shares[way] = share_right(t, kernels, (uint32_t)way);
    verdict v = {.right = shares[0]};
    for (int way = 0; way < n_way; way++)
        as_well += shares[way] >= v.right;
    v.chance = (double)as_well / n_way;
    qsort(shares, (size_t)n_way, sizeof *shares, compare_doubles);
    v.low = shares[(int)(0.01 * n_way)];
    v.high = shares[n_way - 1 - (int)(0.01 * n_way)];
    return v;
}

#endif
