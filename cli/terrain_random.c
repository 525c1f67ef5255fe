// understudy terrain random: a site from a seed.
#include "cli.h"
#include "terrain.h"

int terrain_random(int argc, char **argv) {
    (void)argc;
    return cli_fail(CLI_BAD_INPUT, "understudy terrain", "this program was built without it", "\"%s\" is not there", argv[0]);
}
