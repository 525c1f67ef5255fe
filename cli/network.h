// The robots of a run on the network, and its recording.
#ifndef UNDERSTUDY_CLI_NETWORK_H
#define UNDERSTUDY_CLI_NETWORK_H

#include "cli.h"
#include "understudy/proxy.h"

typedef struct cli_network {
    us_proxy *proxy;
    us_bus *bus;            // NULL: offline, or no robot
    us_recorder *recorder;  // NULL: nothing is recorded
    const char *record_path;
} cli_network;

// Makes the proxy of a compiled world, and the sim with it. CLI_GO_ON or the exit code, the error shown; so with the others.
int cli_network_create(cli_network *network, cli_world *world);
// Opens the bus that the environment asks for, and lets the robots speak on it. Does nothing when the world has no robot.
int cli_network_connect(cli_network *network);
// Begins a recording: what is needed to run it again goes into it. `seed` is that of the world.
int cli_network_record(cli_network *network, const cli_world *world, const cli_load *load, const char *path);
// Ends all. A recording that could not be written to its end is an error.
int cli_network_close(cli_network *network, bool is_quiet, FILE *out);

#endif
