// The state file of `understudy eval`: positions, velocities, torques and the base, by name, in JSON.
#ifndef UNDERSTUDY_CLI_STATE_H
#define UNDERSTUDY_CLI_STATE_H

#include "cli.h"

struct cJSON;

typedef struct cli_state_file {
    const char *path;
    struct cJSON *root;  // NULL: no file
} cli_state_file;

// Parses the file; `path` NULL gives an empty one. CLI_GO_ON or the exit code.
int cli_state_open(cli_state_file *file, const char *path);
void cli_state_close(cli_state_file *file);
// Whether it has a base: then a robot file is loaded with one that floats.
bool cli_state_has_base(const cli_state_file *file);

typedef struct cli_state {
    double *q, *v, *a, *tau;  // n_q, n_v, n_v, n_v
    us_wrench *wrench;        // n_body
    bool has_a, has_tau, has_wrench;
} cli_state;

// The start state of the spec, changed by what the file says. CLI_GO_ON or the exit code; cli_state_fini
// either way.
int cli_state_read(const cli_state_file *file, const us_spec *spec, const us_model *model,
                   cli_state *out_state);
void cli_state_fini(cli_state *state);

#endif
