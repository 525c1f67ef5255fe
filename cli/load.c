// From a file name and its options to a spec, a model and a sim, with every error shown.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bus.h"
#include "cli.h"
#include "run.h"

// A bar while a large raster is read; what is read within half a second shows none.
typedef struct reading {
    int64_t begun_ns;
    int32_t shown;     // thousandths; -1: nothing yet
    const char *file;  // what is loaded: names in it are seen from its directory
    char wanted[400];  // what it wanted to open and may not
} reading;

static bool refuse_all(void *context, const char *kind, const char *path) {
    reading *x = context;
    const char *slash = strrchr(x->file, '/');
    size_t n = slash ? (size_t)(slash + 1 - x->file) : 0;
    snprintf(x->wanted, sizeof x->wanted, "the %s %.300s", kind,
             strncmp(path, x->file, n) == 0 ? path + n : path);
    return false;
}

static void show_reading(void *context, const char *file, double share) {
    reading *x = context;
    int32_t now = (int32_t)(1000 * share);
    if (now == x->shown || us_clock_ns() - x->begun_ns < 500000000) return;
    x->shown = now;
    char bar[64];
    cli_bar(share, bar, sizeof bar);
    cli_line_show("%s  reading %s", bar, file);
}

int cli_load_spec(const cli_load *load, us_base fallback, cli_world *world) {
    memset(world, 0, sizeof *world);
    us_load_def def = us_load_def_default();
    def.base = fallback;
    def.exclude_overlaps = load->exclude_overlaps;
    if (load->base) {
        if (strcmp(load->base, "fixed") == 0) {
            def.base = US_BASE_FIXED;
        } else if (strcmp(load->base, "floating") == 0) {
            def.base = US_BASE_FLOATING;
        } else {
            return cli_fail(CLI_BAD_INPUT, "understudy", "write --base fixed or --base floating",
                            "--base: \"%s\" is neither", load->base);
        }
    }
    for (int32_t i = 0; i < load->set.n; i++) {
        const char *equals = strchr(load->set.item[i], '=');
        if (!equals || equals == load->set.item[i]) {
            return cli_fail(CLI_BAD_INPUT, "understudy", "write --set NAME=VALUE",
                            "--set: \"%s\" has no name or no \"=\"", load->set.item[i]);
        }
    }
    def.n_parameter = load->set.n;
    def.parameters = load->set.item;
    def.n_search = load->path.n;
    def.search = load->path.item;

    reading bar = {.begun_ns = us_clock_ns(), .shown = -1};
    if (!load->is_quiet && cli_is_terminal(stderr)) {
        def.progress = show_reading;
        def.context = &bar;
    }
    if (load->how_to_allow) {
        bar.file = load->file;
        def.may_open = refuse_all;
        def.context = &bar;
    }
    us_status status = load->text ? us_spec_load_text(load->text, load->n_text, load->file, &def,
                                                      &world->spec, &world->error)
                                  : us_spec_load(load->file, &def, &world->spec, &world->error);
    if (bar.shown >= 0) cli_line_clear();
    if (status == US_ERR_ACCESS) {
        snprintf(
            world->error.message, sizeof world->error.message,
            "what was recorded wants to load %s; nothing that a recording names is loaded unless you say "
            "so",
            bar.wanted);
        snprintf(world->error.remedy, sizeof world->error.remedy, "%s", load->how_to_allow);
    }
    if (status) {
        cli_print_error(&world->error);
        return cli_input_code(&world->error);
    }
    // A lone robot file makes one group without a name; a scene names its groups.
    const us_group_def *group = us_spec_view_group(world->spec, 0);
    world->is_robot =
        us_spec_get_counts(world->spec).n_group == 1 && group && (!group->name || !group->name[0]);
    if (load->base && !world->is_robot)
        cli_warn("say it in the scene",
                 "--base has no effect: %s is a scene, and a scene says itself how its robots stand",
                 load->file);
    return CLI_GO_ON;
}

int cli_compile(cli_world *world) {
    if (us_model_compile(world->spec, NULL, &world->model, &world->error) != US_OK) {
        cli_print_warnings(stderr, world->spec);
        cli_print_error(&world->error);
        return cli_input_code(&world->error);
    }
    return CLI_GO_ON;
}

int cli_create_sim(cli_world *world, const us_sim_def *def) {
    if (us_sim_create(world->model, def, &world->sim, &world->error) != US_OK) {
        cli_print_warnings(stderr, world->spec);
        cli_print_error(&world->error);
        return cli_input_code(&world->error);
    }
    return CLI_GO_ON;
}

void cli_world_fini(cli_world *world) {
    us_sim_destroy(world->sim);
    us_model_destroy(world->model);
    us_spec_destroy(world->spec);
    memset(world, 0, sizeof *world);
}

int cli_read_file(const char *path, char **out_bytes, size_t *out_length) {
    bool is_input = strcmp(path, "-") == 0;
    FILE *file = is_input ? stdin : fopen(path, "rb");
    if (!file)
        return cli_fail(CLI_BAD_INPUT, path, "check the name and the permissions", "cannot be opened: %s",
                        strerror(errno));
    size_t length = 0, capacity = 4096;
    char *bytes = cli_allocate(capacity, 1);
    for (;;) {
        length += fread(bytes + length, 1, capacity - length - 1, file);
        if (length + 1 < capacity) break;
        char *larger = cli_allocate(capacity * 2, 1);
        memcpy(larger, bytes, length);
        free(bytes);
        bytes = larger;
        capacity *= 2;
    }
    bool has_failed = ferror(file) != 0;
    int reason = errno;
    if (!is_input) fclose(file);
    if (has_failed) {
        free(bytes);
        return cli_fail(CLI_BAD_INPUT, path, "name a file that can be read", "cannot be read: %s",
                        strerror(reason));
    }
    bytes[length] = 0;
    *out_bytes = bytes;
    *out_length = length;
    return CLI_GO_ON;
}

const char *cli_link_name(const us_spec *spec, int32_t link) {
    const us_link_def *def = us_spec_view_link(spec, link);
    return def ? def->name : "the world";
}
