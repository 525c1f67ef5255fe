#include "network.h"

#include "bus.h"

#include <stdlib.h>
#include <string.h>

// A list as lines of text. Caller frees.
static char *join_lines(const cli_list *list) {
    size_t size = 1, n = 0;
    for (int32_t i = 0; i < list->n; i++)
        size += strlen(list->item[i]) + 1;
    char *text = cli_allocate(size, 1);
    for (int32_t i = 0; i < list->n; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i > 0 ? "\n" : "", list->item[i]);
    return text;
}

// Lines of the world's log: on a line of its own, also where a status line stands.
static void show_log(void *context, int32_t level, const char *text) {
    const cli_network *network = context;
    if (level == 0 && network->is_quiet) return;
    static const char *const before[] = {"", "warning: ", "error: "};
    fprintf(stderr, "%s%s%s\n", network->is_live ? "\r\033[K" : "",
            before[level < 0 || level > 2 ? 2 : level], text);
}

int cli_network_create(cli_network *network, us_spec *spec, const cli_load *load, double rate,
                       int32_t max_object) {
    us_error err = {0};
    us_world_def def = us_world_def_default();
    char *parameters = join_lines(&load->set), *search = join_lines(&load->path);
    def.rate = rate;
    if (max_object >= 0) def.max_object = max_object;
    if (network->n_thread > 0) def.n_thread = network->n_thread;
    def.scene = load->file;
    def.base = load->base;
    def.exclude_overlaps = load->exclude_overlaps;
    def.parameters = parameters;
    def.search = search;
    def.proxy.serial_directory = network->serial;
    def.log = show_log;
    def.log_context = network;
    us_status status = us_world_create(spec, &def, &network->world, &err);
    free(parameters);
    free(search);
    if (!status) return CLI_GO_ON;
    cli_print_warnings(stderr, spec);
    cli_print_error(&err);
    return cli_input_code(&err);
}

static us_status open_bus(cli_network *network, us_error *err) {
    if (network->bus) return US_OK;
    char text[US_BUS_TEXT];
    us_bus_def def;
    us_status status = cli_bus_def(&def, NULL, text, err);
    return status ? status : us_bus_open(&def, &network->bus, err);
}

int cli_network_split(cli_network *network, const us_split_def *def) {
    us_error err = {0};
    us_status status = open_bus(network, &err);
    if (!status) status = us_split_create(network->world, network->bus, def, &network->split, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return status == US_ERR_VALUE || status == US_ERR_NAME || status == US_ERR_ARG ? CLI_BAD_INPUT
                                                                                   : CLI_RUN_FAILED;
}

int cli_network_connect(cli_network *network) {
    if (us_proxy_n_robot(us_world_get_proxy(network->world)) == 0) return CLI_GO_ON;
    us_error err = {0};
    us_status status = open_bus(network, &err);
    if (!status) status = us_world_connect(network->world, network->bus, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return status == US_ERR_VALUE ? CLI_BAD_INPUT : CLI_RUN_FAILED;
}

int cli_network_record(cli_network *network, const char *path) {
    us_error err = {0};
    if (!us_world_record(network->world, path, &err)) return CLI_GO_ON;
    cli_print_error(&err);
    return cli_output_code(&err);
}

int cli_network_serve(cli_network *network, const us_view_def *def, FILE *out) {
    us_error err = {0};
    us_status status = us_view_create(network->world, def, &network->view, &err);
    if (status) {
        cli_print_error(&err);
        return status == US_ERR_MEMORY || status == US_ERR_LIMIT ? CLI_RUN_FAILED : CLI_BAD_INPUT;
    }
    fprintf(out, "page: %s\n", us_view_url(network->view));
    const char *fingerprint = us_view_fingerprint(network->view);
    if (fingerprint[0]) fprintf(out, "certificate (SHA-256): %s\n", fingerprint);
    fflush(out);
    return CLI_GO_ON;
}

int cli_network_show_scene(cli_network *network) {
    us_error err = {0};
    us_status status = open_bus(network, &err);
    if (!status)
        status = us_scene_topics_open(network->world, network->bus, network->view, &network->scene, &err);
    if (!status) return CLI_GO_ON;
    cli_print_error(&err);
    return status == US_ERR_VALUE ? CLI_BAD_INPUT : CLI_RUN_FAILED;
}

int cli_network_close(cli_network *network) {
    int code = CLI_GO_ON;
    us_error err = {0};
    network->is_live = false;
    if (network->world && us_world_record(network->world, NULL, &err)) {
        cli_print_error(&err);
        code = cli_output_code(&err);
    }
    cli_hasten(network->bus);
    us_scene_topics_close(network->scene);
    us_view_destroy(network->view);
    us_split_destroy(network->split);
    us_world_destroy(network->world);
    us_bus_close(network->bus);
    *network = (cli_network){0};
    return code;
}
