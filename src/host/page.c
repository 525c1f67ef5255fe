// The page of a host: the server, who may control it and from where, and the log.
#include "host/page.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "host/foxglove.h"
#include "host/page_files.h"
#include "host/page_local.h"
#include "proxy/tap.h"
#include "wire/messages.h"

enum { MORE_PORTS = 20, MAX_CLIENT = 64, TEXT_MOST = 4 * 1024 * 1024, FRAME_MOST = 8 * 1024 * 1024 };

// ---------------------------------------------------------------- the log

void usi_page_note(usi_page *page, int32_t level, double time, const char *text) {
    pthread_mutex_lock(&page->lock);
    usi_log_line *line = &page->line[page->n_line++ % USI_PAGE_LOG];
    line->level = level < 0 ? 0 : level > 2 ? 2 : level;
    line->time = time;
    snprintf(line->text, sizeof line->text, "%s", text ? text : "");
    pthread_mutex_unlock(&page->lock);
}

void usi_page_log(usi_page *page, int32_t level, double time, const char *text) {
    usi_page_note(page, level, time, text);
    usi_web_wake(page->web);
}

static void note_warnings(usi_page *page) {
    const us_spec *spec = us_world_view_spec(page->host);
    int32_t n = us_spec_get_counts(spec).n_warning;
    // The last ones when there are too many; the first line says so.
    int32_t first = n > USI_PAGE_LOG / 2 ? n - USI_PAGE_LOG / 2 : 0;
    char text[USI_PAGE_LINE];
    if (first > 0) {
        snprintf(text, sizeof text,
                 "the scene has %d warnings; these are the last %d: `understudy check` shows all", n,
                 n - first);
        usi_page_note(page, 1, 0, text);
    }
    for (int32_t i = first; i < n; i++) {
        us_error_format(us_spec_view_warning(spec, i), text, sizeof text);
        usi_page_note(page, 1, 0, text);
    }
}

// ---------------------------------------------------------------- what the server calls

static void wake(void *context) {
    usi_page *page = context;
    usi_page_wake(page);
    usi_foxglove_wake(page->foxglove);
}

static void refused(void *context, const char *text) {
    usi_page *page = context;
    usi_page_note(page, 1, page->picture[page->front].time, text);
}

// The subprotocols of this port.
enum { MAX_PROTOCOL = 1 + USI_FOXGLOVE_N_PROTOCOL };
static int32_t list_protocols(usi_page *page, usi_web_protocol out[MAX_PROTOCOL]) {
    out[0] = (usi_web_protocol){.name = "understudy.v1",
                                .label = "page",
                                .max_message = USI_VIEW_MESSAGE,
                                .max_queue = USI_PAGE_QUEUE,
                                .open = usi_session_open,
                                .message = usi_session_message,
                                .drained = usi_session_drained,
                                .close = usi_session_close};
    return 1 + usi_foxglove_protocols(page->foxglove, out + 1);
}

// ---------------------------------------------------------------- address and token

static bool is_loopback(const char *address) {
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

// Letters, digits and a few signs: what stands in an address without being escaped.
static bool is_plain(const char *text) {
    return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")] == 0;
}

static us_status choose_token(usi_page *page, const us_page_def *def, const char *address, us_error *err) {
    if (def->token) {
        size_t n = strlen(def->token);
        if (n == 0 || n >= sizeof page->token || !is_plain(def->token)) {
            return us_error_set(
                err, US_ERR_VALUE, NULL,
                "choose letters, digits and - . _ ~, at most 79, or leave the token out and one is made up",
                "the token cannot be used in an address");
        }
        memcpy(page->token, def->token, n + 1);
        return US_OK;
    }
    if (is_loopback(address)) return US_OK;  // whoever is on this machine may control
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return us_error_set(err, US_ERR_IO, NULL, "give a token of your own",
                            "the system has no random numbers for a token");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(page->token + 2 * i, 3, "%02x", bytes[i]);
    return US_OK;
}

// Where others find a server that listens on all addresses of this machine: the first that is not loopback.
static void find_own_address(char *out, size_t cap) {
    struct ifaddrs *list = NULL;
    snprintf(out, cap, "localhost");
    if (getifaddrs(&list)) return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_LOOPBACK) ||
            !(i->ifa_flags & IFF_UP))
            continue;
        struct sockaddr_in in;
        memcpy(&in, i->ifa_addr, sizeof in);
        if (inet_ntop(AF_INET, &in.sin_addr, out, (socklen_t)cap)) break;
    }
    freeifaddrs(list);
}

static void write_url(usi_page *page, const char *address) {
    char host[80];
    if (strcmp(address, "127.0.0.1") == 0) {
        snprintf(host, sizeof host, "localhost");
    } else if (strcmp(address, "0.0.0.0") == 0) {
        find_own_address(host, sizeof host);
    } else {
        snprintf(host, sizeof host, strchr(address, ':') ? "[%.60s]" : "%.60s", address);
    }
    snprintf(page->url, sizeof page->url, "http://%s:%d/%s%s", host, (int)usi_web_port(page->web),
             page->token[0] ? "?token=" : "", page->token);
}

// ---------------------------------------------------------------- making it

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Texts of its own: those of the spec go with the epoch, and those of the proxy are for the stepping thread.
static us_status list_robots(usi_page *page) {
    const us_proxy *proxy = us_world_get_proxy(page->host);
    bool is_ok = true;
    usi_revision *world = usi_world_take_world(page->host);
    const char *name = us_spec_view_world(world->spec)->name;
    page->scene = usi_arena_text(&page->arena,
                                 name && name[0] ? name
                                 : world->file   ? file_name(world->file)
                                                 : "",
                                 &is_ok);
    usi_revision_unref(world);
    int32_t n = us_proxy_n_robot(proxy);
    page->robots =
        usi_arena_alloc(&page->arena, (size_t)n * sizeof *page->robots + 1, _Alignof(usi_page_robot));
    if (!page->robots || !is_ok) return US_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        usi_page_robot *robot = &page->robots[i];
        const us_message_type *type = NULL;
        const char *topic;
        robot->topic = NULL;
        robot->name = usi_arena_text(&page->arena, us_proxy_robot_name(proxy, i), &is_ok);
        for (int32_t k = 0; (topic = us_proxy_command_topic(proxy, i, k, &type)) && !robot->topic; k++) {
            if (type == usi_type_twist && strcmp(file_name(topic), "cmd_vel") == 0)
                robot->topic = usi_arena_text(&page->arena, topic, &is_ok);
        }
        if (!is_ok) return US_ERR_MEMORY;
    }
    page->n_robot = n;
    // Each picture has room for what the robots say of themselves.
    for (int i = 0; i < 4; i++) {
        usi_page_status *status = i < 3 ? &page->picture[i].status : &page->taker.status;
        status->n_robot = n;
        status->robot =
            usi_arena_alloc(&page->arena, (size_t)n * sizeof *status->robot + 1, _Alignof(usi_robot_status));
        if (!status->robot) return US_ERR_MEMORY;
    }
    page->n_topic = usi_proxy_n_channel(proxy);
    page->topics = usi_arena_alloc(&page->arena, (size_t)page->n_topic * sizeof *page->topics + 1,
                                   _Alignof(usi_topic_count));
    if (!page->topics) return US_ERR_MEMORY;
    for (int32_t i = 0; i < page->n_topic; i++)
        page->topics[i] = (usi_topic_count){usi_proxy_get_channel(proxy, i).n_message, 0};
    return US_OK;
}

static us_status start(usi_page *page, const us_page_def *def, us_error *err) {
    const char *address = def->address && strcmp(def->address, "localhost") != 0 ? def->address : "127.0.0.1";
    us_status status = list_robots(page);
    if (status) return us_error_set(err, status, NULL, NULL, "the page has no memory");
    if ((status = choose_token(page, def, address, err))) return status;
    note_warnings(page);
    if ((status = usi_foxglove_create(page->host, &page->foxglove, err))) return status;
    usi_web_protocol protocols[MAX_PROTOCOL];
    usi_web_def web = {
        .allocator = page->allocator,
        .address = address,
        .port = def->port,
        .n_port_more = def->search_free_port && def->port ? MORE_PORTS : 0,
        .token = page->token[0] ? page->token : NULL,
        .max_client = MAX_CLIENT,
        .files = usi_page_files,
        .n_file = usi_page_n_file,
        .protocols = protocols,
        .n_protocol = list_protocols(page, protocols),
        .context = page,
        .get = usi_page_get,
        .wake = wake,
        .refused = refused,
    };
    if ((status = usi_web_create(&web, &page->web, err))) return status;
    usi_foxglove_feed(page->foxglove, page->web);
    write_url(page, address);
    return US_OK;
}

us_status usi_page_create(us_world *host, const us_page_def *def, usi_page **out_page, us_error *err) {
    us_allocator a = host->allocator;
    usi_page *page = usi_alloc(&a, sizeof *page, USI_ALIGN);
    if (!page) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "the page has no memory");
    memset(page, 0, sizeof *page);
    page->host = host;
    page->allocator = a;
    usi_arena_init(&page->arena, &a);
    pthread_mutex_init(&page->lock, NULL);
    usi_watch_table_init(&page->table, &a);
    usi_ruts_init(&page->ruts, &a);
    page->back = 0;
    page->front = 1;
    atomic_init(&page->between, 2);
    page->topics_time = usi_page_clock();
    usi_bytes *buffers[] = {&page->frame,    &page->status_text, &page->pairs_text,
                            &page->contacts, &page->torques,     &page->topics_text};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        usi_bytes_init(buffers[i], &a, i == 0 ? FRAME_MOST : TEXT_MOST);
    us_status status = start(page, def, err);
    if (status) {
        usi_page_destroy(page);
        return status;
    }
    *out_page = page;
    return US_OK;
}

void usi_page_destroy(usi_page *page) {
    if (!page) return;
    // First the server's thread ends, and with it every session: then nobody but this thread is here.
    if (page->web) {
        usi_foxglove_feed(page->foxglove, NULL);
        usi_web_destroy(page->web);
    }
    usi_foxglove_destroy(page->foxglove);
    usi_view_frames_fini(page);
    usi_ruts_fini(&page->ruts);
    usi_page_get_fini(page);
    usi_watch_table_fini(&page->table);
    usi_watch_unref(page->watch);
    usi_bytes *buffers[] = {&page->frame,    &page->status_text, &page->pairs_text,
                            &page->contacts, &page->torques,     &page->topics_text};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        usi_bytes_fini(buffers[i]);
    usi_arena_fini(&page->arena);
    pthread_mutex_destroy(&page->lock);
    us_allocator a = page->allocator;
    usi_release(&a, page, sizeof *page, USI_ALIGN);
}

const char *usi_page_url(const usi_page *page) { return page->url; }
