// A training script for a switch: when which mode is asked for, and what breaks in the simulated world.
#ifndef UNDERSTUDY_CLI_SWITCH_SCRIPT_H
#define UNDERSTUDY_CLI_SWITCH_SCRIPT_H

#include "bus.h"
#include "understudy/switch.h"

typedef struct cli_script cli_script;

// Reads the file and draws what is random in it, so that the whole plan stands. CLI_GO_ON, or the exit code
// with the error shown.
int cli_script_load(const char *path, uint64_t seed, cli_script **out_script);
// Opens a connection to the proxy's world when the script needs one; `proxy` is where that is.
int cli_script_begin(cli_script *script, const us_bus_def *proxy);
// Does what is due at `time`, s since the script began, below 0 before that; each line is passed to `say`.
void cli_script_go_on(cli_script *script, us_switch *sw, double time, us_switch_event_function *say);
void cli_script_destroy(cli_script *script);  // NULL is allowed

#endif
