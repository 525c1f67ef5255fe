// What `understudy switch` has to do with the comparison of hardware and proxy: its tolerances, and what it
// says.
#ifndef UNDERSTUDY_CLI_SHADOW_H
#define UNDERSTUDY_CLI_SHADOW_H

#include "bus.h"
#include "understudy/switch.h"

// Items like "position=0.3". CLI_GO_ON, or the exit code with the error shown.
int cli_shadow_set(us_shadow_def *def, const cli_list *items);

// One who listens to what is said about a robot.
typedef struct cli_shadow {
    us_bus *bus;
    us_reader *reader;
    const char *robot;
    char *line;  // the last that was said
} cli_shadow;

us_status cli_shadow_open(cli_shadow *s, us_bus *bus, int32_t node, const char *robot, us_error *err);
void cli_shadow_close(cli_shadow *s);
// What is said now, in one line below the status; nothing when nobody says anything for a second.
void cli_shadow_show(cli_shadow *s, bool is_json);
// One line per second, in a terminal rewritten, until Ctrl-C or until nobody has said anything for `patience`
// seconds.
int cli_shadow_watch(cli_shadow *s, bool is_json, double patience);

#endif
