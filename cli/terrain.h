// The parts of understudy terrain.
#ifndef UNDERSTUDY_CLI_TERRAIN_H
#define UNDERSTUDY_CLI_TERRAIN_H

// Each parses its own options; argv[0] is its name. Returns the exit code.
int terrain_import(int argc, char **argv);
int terrain_info(int argc, char **argv);
int terrain_random(int argc, char **argv);

// A line of progress, for a terminal. `context`: an int32_t, -1 at first.
void terrain_progress(void *context, double share);

#endif
