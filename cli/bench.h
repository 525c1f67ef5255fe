// What the modes of `understudy bench` share: measuring time, and pictures.
#ifndef UNDERSTUDY_CLI_BENCH_H
#define UNDERSTUDY_CLI_BENCH_H

#include "cli.h"

// ---- time (bench.c) ----

enum { CLI_BENCH_SAMPLE = 9 };

typedef struct cli_figure {
    double median, min, max;  // seconds
} cli_figure;

double cli_bench_seconds(void);                                 // CPU time of the thread
cli_figure cli_bench_figure(double samples[CLI_BENCH_SAMPLE]);  // sorts them

// ---- wheels on soil (bench_soil.c) ----

// scenes/single-wheel.xml, embedded by the build so that one program file is enough. Ended by 0, which the
// length does not count.
extern const char cli_single_wheel[];
extern const size_t cli_single_wheel_length;

int cli_bench_soil(int argc, char **argv);

// ---- pictures (plot.c) ----

typedef struct cli_line {
    const char *name;
    const double *x, *y;  // points that are not numbers are left out
    int32_t n;
} cli_line;

typedef struct cli_panel {
    const char *title, *x_label, *y_label;
    const cli_line *line;
    int32_t n_line;
} cli_panel;

enum { CLI_PLOT_LINES = 8 };  // more have no colour

// Curves in panels, two in a row, into an SVG or, by gnuplot, a PNG: what the name ends with. CLI_GO_ON, or
// the error is shown and its code returned.
int cli_plot(const char *path, const char *title, const cli_panel *panel, int32_t n_panel);
// What `path` asks for can be made here, said before anything is computed.
int cli_plot_check(const char *path);

#endif
