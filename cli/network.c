#include "network.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

int cli_network_create(cli_network *network, cli_world *world) {
    us_error err = {0};
    if (us_proxy_create(world->spec, world->model, NULL, &network->proxy, &err)) {
        cli_print_error(&err);
        return CLI_BAD_INPUT;
    }
    us_part part = us_proxy_get_part(network->proxy);
    us_sim_def def = us_sim_def_default();
    def.n_part = 1;
    def.parts = &part;
    return cli_create_sim(world, &def);
}

int cli_network_connect(cli_network *network) {
    if (us_proxy_n_robot(network->proxy) == 0) return CLI_GO_ON;
    us_error err = {0};
    char text[1024];
    us_bus_def def = us_bus_def_default();
    us_status status = us_bus_def_from_environment(&def, text, sizeof text, &err);
    if (!status) status = us_bus_open(&def, &network->bus, &err);
    if (!status) status = us_proxy_connect(network->proxy, network->bus, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return status == US_ERR_VALUE ? CLI_BAD_INPUT : CLI_RUN_FAILED;
}

// What `replay --verify` needs: the scene by its full path and its bytes, what was said on the command line, and the state to begin with.
static us_status describe(us_recorder *recorder, const cli_world *world, const cli_load *load) {
    char path[PATH_MAX], parameters[4096] = "", search[4096] = "", seed[32], hash[32];
    if (!realpath(load->file, path)) snprintf(path, sizeof path, "%s", load->file);
    for (int32_t i = 0; i < load->set.n; i++) {
        size_t n = strlen(parameters);
        snprintf(parameters + n, sizeof parameters - n, "%s%s", i ? "\n" : "", load->set.item[i]);
    }
    for (int32_t i = 0; i < load->path.n; i++) {
        size_t n = strlen(search);
        snprintf(search + n, sizeof search - n, "%s%s", i ? "\n" : "", load->path.item[i]);
    }
    snprintf(seed, sizeof seed, "%" PRIu64, us_spec_view_world(world->spec)->seed);
    snprintf(hash, sizeof hash, "%016" PRIx64, us_model_hash(world->model));
    const char *const keys[] = {"version", "scene", "base", "parameters", "search", "seed", "model"};
    const char *const values[] = {us_version(), path, load->base ? load->base : "", parameters, search, seed, hash};
    us_status status = us_recorder_set_metadata(recorder, "understudy", sizeof keys / sizeof keys[0], keys, values);
    size_t length = 0;
    us_sim_save(world->sim, NULL, 0, &length);
    void *state = cli_allocate(length, 1);
    if (!status) status = us_sim_save(world->sim, state, length, &length);
    if (!status) status = us_recorder_attach(recorder, "state", "application/octet-stream", state, length);
    free(state);
    char *bytes = NULL;
    if (!status && cli_read_file(load->file, &bytes, &length) == CLI_GO_ON) {
        status = us_recorder_attach(recorder, "scene", "application/xml", bytes, length);
        free(bytes);
    }
    return status;
}

int cli_network_record(cli_network *network, const cli_world *world, const cli_load *load, const char *path) {
    us_error err = {0};
    us_recorder_def def = us_recorder_def_default();
    def.path = network->record_path = path;
    us_status status = us_recorder_open(&def, &network->recorder, &err);
    if (!status) {
        status = describe(network->recorder, world, load);
        if (status) us_error_set(&err, status, NULL, "name a file on a disk with space", "%s cannot be written", path);
    }
    if (!status) status = us_proxy_record(network->proxy, network->recorder, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return CLI_CANNOT_WRITE;
}

int cli_network_close(cli_network *network, bool is_quiet, FILE *out) {
    int code = CLI_GO_ON;
    us_proxy_destroy(network->proxy);
    us_bus_close(network->bus);
    if (network->recorder) {
        us_error err = {0};
        us_recorder_info info = us_recorder_get_info(network->recorder);
        if (us_recorder_close(network->recorder, &err)) {
            cli_print_error(&err);
            code = CLI_CANNOT_WRITE;
        } else if (!is_quiet) {
            fprintf(out, "wrote %s: %lld messages\n", network->record_path, (long long)info.n_message);
        }
    }
    *network = (cli_network){0};
    return code;
}
