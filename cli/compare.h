// Two recordings compared, for `understudy replay`.
#ifndef UNDERSTUDY_CLI_COMPARE_H
#define UNDERSTUDY_CLI_COMPARE_H

#include "cli.h"
#include "understudy/record.h"

typedef struct cli_compare {
    const char *path, *other;  // of the two
    const char *topics;        // "A,B"; NULL: all
    double tolerance, slack;
    bool has_tolerance, is_quiet;
} cli_compare;

// Prints what differs. CLI_FOUND when something is beyond the tolerance that was given.
int cli_compare_recordings(const cli_compare *options, us_recording *recording);

#endif
