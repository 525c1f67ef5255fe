// What a run has open: the world with its robots on the network, its page and its recording.
#ifndef UNDERSTUDY_CLI_NETWORK_H
#define UNDERSTUDY_CLI_NETWORK_H

#include "cli.h"
#include "understudy/split.h"
#include "understudy/view.h"
#include "understudy/world.h"

typedef struct cli_network {
    us_world *world;
    us_view *view;           // NULL: not served
    us_scene_topics *scene;  // NULL: not on the network
    us_split *split;         // NULL: the whole world is here
    us_bus *bus;             // NULL: offline, or no robot
    int32_t n_thread;        // that share a step; 0: one
    const char *serial;      // directory of the robots' serial lines; NULL: none
    bool is_quiet;           // only warnings and errors of the world are shown
    bool is_live;            // a status line may stand on the terminal
} cli_network;

// Makes the world of a spec, with the rate to begin with. The network stays where it is. CLI_GO_ON or the
// exit code, the error shown; so with the others.
// max_object: that commands may add; below 0: as the library has it.
int cli_network_create(cli_network *network, us_spec *spec, const cli_load *load, double rate,
                       int32_t max_object);
// Opens the bus that the environment asks for, and shares the world there with other processes. Before the
// robots are connected.
int cli_network_split(cli_network *network, const us_split_def *def);
// Opens the bus that the environment asks for, and puts the robots on it. Does nothing when the world
// has no robot.
int cli_network_connect(cli_network *network);
// Begins a recording: what is needed to run it again goes into it.
int cli_network_record(cli_network *network, const char *path);
// Serves the page and prints its address.
int cli_network_serve(cli_network *network, const us_view_def *def, FILE *out);
// Puts the scene on the network for viewers of others, after the page.
int cli_network_show_scene(cli_network *network);
// Ends all. A recording that could not be written to its end is an error.
int cli_network_close(cli_network *network);

#endif
