// The parts of `understudy run`: recordings, pace, status line.
#ifndef UNDERSTUDY_CLI_RUN_H
#define UNDERSTUDY_CLI_RUN_H

#include "cli.h"
#include <understudy/pace.h>

// ---- recordings (record.c) ----

// One CSV file: a header with names, then a row per due tick, "time" first. Written through a buffer of its
// own.
typedef struct cli_recorder {
    const char *path;  // borrowed; "-" is standard output
    int file;
    char *buffer;
    size_t n_byte;
    int32_t n_column;
    int32_t *value;        // ids of us_sim_find_value; -1: it is gone, and written as nan
    char **name;           // of the columns
    bool is_warned;        // that one is gone
    double ticks_per_row;  // at least 1
    int64_t next_row;      // its number, counted from tick 0
    int64_t next_tick;     // when it is due
    int64_t last_tick;     // of the last row, or where it began
    int64_t n_row;         // written so far
    int failed;            // errno of the first failed write; 0: none
} cli_recorder;

typedef struct cli_recorder_def {
    const char *path;
    double ticks_per_row;
    int32_t n_value;  // 0: every joint's q and v
    const char *const *values;
    bool with_energy;  // a last column "energy"
    us_place place;    // where it was asked for, for errors
} cli_recorder_def;

// Opens the file and writes the header. CLI_GO_ON or the exit code, the error shown.
int cli_recorder_init(cli_recorder *recorder, const cli_recorder_def *def, const us_spec *spec, us_sim *sim);
// Writes the row that is due at the sim's tick.
void cli_recorder_write(cli_recorder *recorder, us_sim *sim);
// The world is another one, or its time has jumped: finds the values again, and the row that is due next.
void cli_recorder_follow(cli_recorder *recorder, us_sim *sim);
void cli_recorder_flush(cli_recorder *recorder);
// Flushes and closes. CLI_GO_ON, or CLI_CANNOT_WRITE with the error shown.
int cli_recorder_fini(cli_recorder *recorder);

// The whole buffer to a file; false with errno set when that fails.
bool cli_write_file(const char *path, const void *bytes, size_t length);

// ---- status line (status.c) ----

typedef struct cli_status {
    bool is_live;
    double goal;  // simulated seconds to run; 0: until stopped
    double start_energy;
    bool has_rows;
    int64_t last_ns;  // of the line on the screen
    int64_t start_ns;
    int64_t last_step;    // steps done then
    double step_seconds;  // time inside steps since start
    double last_step_seconds;
    int64_t n_dropped;  // frames of lidars
} cli_status;

void cli_status_start(cli_status *status, us_sim *sim, bool is_live, double goal);
void cli_status_show(cli_status *status, us_sim *sim, const us_pace *pace, int64_t now_ns);
void cli_status_clear(const cli_status *status);
// One line about the whole run.
void cli_status_summary(const cli_status *status, us_sim *sim, const us_pace *pace, FILE *out);

#endif
