// The page of a world: the server, who may control it and from where, and the log.
#include "view/view__page.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "proxy/tap.h"
#include "view/view__foxglove.h"
#include "view/view__page_files.h"
#include "wire/messages.h"

enum { MORE_PORTS = 20, MAX_CLIENT = 64, MAX_TEXT = 4 * 1024 * 1024, MAX_FRAME = 8 * 1024 * 1024 };

static const char HOOKS[] = "view";

// ---------------------------------------------------------------- the log

void usi_page_note(us_view *view, int32_t level, double time, const char *text) {
    pthread_mutex_lock(&view->lock);
    usi_log_line *line = &view->line[view->n_line++ % USI_PAGE_LOG];
    line->level = level < 0 ? 0 : level > 2 ? 2 : level;
    line->time = time;
    snprintf(line->text, sizeof line->text, "%s", text ? text : "");
    pthread_mutex_unlock(&view->lock);
}

static void on_log(void *context, int32_t level, double time, const char *text) {
    us_view *view = context;
    usi_page_note(view, level, time, text);
    usi_web_wake(view->web);
}

static void note_warnings(us_view *view) {
    const us_spec *spec = us_world_view_spec(view->world);
    int32_t n = us_spec_get_counts(spec).n_warning;
    // The last ones when there are too many; the first line says so.
    int32_t first = n > USI_PAGE_LOG / 2 ? n - USI_PAGE_LOG / 2 : 0;
    char text[USI_PAGE_LINE];
    if (first > 0) {
        snprintf(text, sizeof text,
                 "the scene has %d warnings; these are the last %d: `understudy check` shows all", n,
                 n - first);
        usi_page_note(view, 1, 0, text);
    }
    for (int32_t i = first; i < n; i++) {
        us_error_format(us_spec_view_warning(spec, i), text, sizeof text);
        usi_page_note(view, 1, 0, text);
    }
}

// ---------------------------------------------------------------- what the server calls

static void wake(void *context) {
    us_view *view = context;
    usi_page_wake(view);
    usi_foxglove_wake(view->foxglove);
}

static void refused(void *context, const char *text) {
    us_view *view = context;
    usi_page_note(view, 1, view->frames[view->front].time, text);
}

// The subprotocols of this port.
enum { MAX_PROTOCOL = 1 + USI_FOXGLOVE_N_PROTOCOL };
static int32_t list_protocols(us_view *view, usi_web_protocol out[MAX_PROTOCOL]) {
    out[0] = (usi_web_protocol){.name = "understudy.v1",
                                .label = "page",
                                .max_message = USI_VIEW_MESSAGE,
                                .max_queue = USI_PAGE_QUEUE,
                                .open = usi_session_open,
                                .message = usi_session_message,
                                .drained = usi_session_drained,
                                .close = usi_session_close};
    return 1 + usi_foxglove_protocols(view->foxglove, out + 1);
}

// ---------------------------------------------------------------- address and token

static bool is_loopback(const char *address) {
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

// Letters, digits and a few signs: what stands in an address without being escaped.
static bool is_plain(const char *text) {
    return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")] == 0;
}

static us_status choose_token(us_view *view, const us_view_def *def, const char *address, us_error *err) {
    if (def->token) {
        size_t n = strlen(def->token);
        if (n == 0 || n >= sizeof view->token || !is_plain(def->token)) {
            return us_error_set(
                err, US_ERR_VALUE, NULL,
                "choose letters, digits and - . _ ~, at most 79, or leave the token out and one is made up",
                "the token cannot be used in an address");
        }
        memcpy(view->token, def->token, n + 1);
        return US_OK;
    }
    if (is_loopback(address) && !def->users) return US_OK;  // whoever is on this machine may control
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return us_error_set(err, US_ERR_IO, NULL, "give a token of your own",
                            "the system has no random numbers for a token");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(view->token + 2 * i, 3, "%02x", bytes[i]);
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

static void write_url(us_view *view, const char *address) {
    char host[80];
    if (strcmp(address, "127.0.0.1") == 0) {
        snprintf(host, sizeof host, "localhost");
    } else if (strcmp(address, "0.0.0.0") == 0) {
        find_own_address(host, sizeof host);
    } else {
        snprintf(host, sizeof host, strchr(address, ':') ? "[%.60s]" : "%.60s", address);
    }
    snprintf(view->url, sizeof view->url, "%s://%s:%d/%s%s",
             usi_web_fingerprint(view->web)[0] ? "https" : "http", host, (int)usi_web_port(view->web),
             view->token[0] ? "?token=" : "", view->token);
}

// ---------------------------------------------------------------- making it

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Texts of its own: those of the spec go with the revision, and those of the proxy are for the stepping
// thread.
static us_status list_robots(us_view *view) {
    const us_proxy *proxy = us_world_get_proxy(view->world);
    bool is_ok = true;
    usi_revision *revision = usi_world_take_revision(view->world);
    const char *name = us_spec_view_world(revision->spec)->name;
    view->scene = usi_arena_text(&view->arena,
                                 name && name[0]  ? name
                                 : revision->file ? file_name(revision->file)
                                                  : "",
                                 &is_ok);
    usi_revision_unref(revision);
    int32_t n = us_proxy_n_robot(proxy);
    view->robots =
        usi_arena_alloc(&view->arena, (size_t)n * sizeof *view->robots + 1, _Alignof(usi_page_robot));
    if (!view->robots || !is_ok) return US_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        usi_page_robot *robot = &view->robots[i];
        const us_message_type *type = NULL;
        const char *topic;
        robot->topic = NULL;
        robot->name = usi_arena_text(&view->arena, us_proxy_robot_name(proxy, i), &is_ok);
        for (int32_t k = 0; (topic = us_proxy_command_topic(proxy, i, k, &type)) && !robot->topic; k++) {
            if (type == usi_type_twist && strncmp(file_name(topic), "cmd_vel", 7) == 0)
                robot->topic = usi_arena_text(&view->arena, topic, &is_ok);
        }
        if (!is_ok) return US_ERR_MEMORY;
    }
    view->n_robot = n;
    // Each frame has room for what the robots say of themselves.
    for (int i = 0; i < 4; i++) {
        usi_page_status *status = i < 3 ? &view->frames[i].status : &view->taker.status;
        status->n_robot = n;
        status->robot =
            usi_arena_alloc(&view->arena, (size_t)n * sizeof *status->robot + 1, _Alignof(usi_robot_status));
        if (!status->robot) return US_ERR_MEMORY;
    }
    view->n_topic = usi_proxy_n_channel(proxy);
    view->topics = usi_arena_alloc(&view->arena, (size_t)view->n_topic * sizeof *view->topics + 1,
                                   _Alignof(usi_topic_count));
    if (!view->topics) return US_ERR_MEMORY;
    for (int32_t i = 0; i < view->n_topic; i++)
        view->topics[i] = (usi_topic_count){usi_proxy_get_channel(proxy, i).n_message, 0};
    return US_OK;
}

static us_status start(us_view *view, const us_view_def *def, us_error *err) {
    const char *address = def->address && strcmp(def->address, "localhost") != 0 ? def->address : "127.0.0.1";
    us_status status = list_robots(view);
    if (status) return us_error_set(err, status, NULL, NULL, "the page has no memory");
    if ((status = choose_token(view, def, address, err))) return status;
    int32_t n_user = 0;
    if (def->users && (status = usi_web_users_read(def->users, &view->allocator, &view->users, &n_user, err)))
        return status;
    note_warnings(view);
    if ((status = usi_foxglove_create(view->world, view->scene, &view->foxglove, err))) return status;
    usi_web_protocol protocols[MAX_PROTOCOL];
    usi_web_def web = {
        .allocator = view->allocator,
        .address = address,
        .port = def->port,
        .n_port_more = def->search_free_port && def->port ? MORE_PORTS : 0,
        .token = view->token[0] ? view->token : NULL,
        .users = view->users,
        .n_user = n_user,
        .enable_tls = def->enable_tls,
        .tls_cert = def->tls_cert,
        .tls_key = def->tls_key,
        .max_client = MAX_CLIENT,
        .files = usi_page_files,
        .n_file = usi_page_n_file,
        .protocols = protocols,
        .n_protocol = list_protocols(view, protocols),
        .context = view,
        .get = usi_page_get,
        .wake = wake,
        .refused = refused,
    };
    if ((status = usi_web_create(&web, &view->web, err))) return status;
    usi_foxglove_feed(view->foxglove, view->web);
    write_url(view, address);
    return US_OK;
}

// From here on the world calls the view.
static us_status attach(us_view *view, us_error *err) {
    // The view may come after the network.
    char text[USI_PAGE_LINE];
    for (int32_t i = 0; i < view->n_robot; i++) {
        if (usi_world_moved_port(view->world, i, text, sizeof text)) on_log(view, 1, 0, text);
    }
    const usi_world_hooks hooks = {
        .name = HOOKS, .context = view, .log = on_log, .changed = usi_view_changed};
    us_status status = usi_world_add_hooks(view->world, &hooks);
    return status ? us_error_set(err, status, NULL, NULL, "the world has too many hooks") : US_OK;
}

const char *us_view_fingerprint(const us_view *view) { return view ? usi_web_fingerprint(view->web) : ""; }

us_view_def us_view_def_default(void) {
    return (us_view_def){.address = "127.0.0.1", .port = 8080, .search_free_port = true};
}

us_status us_view_create(us_world *world, const us_view_def *def, us_view **out_view, us_error *err) {
    if (!world || !out_view)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a world and a place for the view",
                            "us_view_create: an argument is NULL");
    if (usi_world_has_hooks(world, HOOKS))
        return us_error_set(err, US_ERR_ARG, NULL, "destroy the other view first",
                            "us_view_create: the world has a view already");
    us_view_def d = def ? *def : us_view_def_default();
    us_allocator a = *usi_world_allocator(world);
    us_view *view = usi_alloc(&a, sizeof *view, USI_ALIGN);
    if (!view) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "the page has no memory");
    memset(view, 0, sizeof *view);
    view->world = world;
    view->allocator = a;
    usi_arena_init(&view->arena, &a);
    pthread_mutex_init(&view->lock, NULL);
    usi_watch_table_init(&view->table, &a);
    usi_ruts_init(&view->ruts, &a);
    usi_clouds_init(&view->clouds, &a);
    view->back = 0;
    view->front = 1;
    atomic_init(&view->between, 2);
    view->topics_time = usi_view_clock();
    usi_bytes *buffers[] = {&view->buffer,   &view->status_text, &view->pairs_text,
                            &view->contacts, &view->torques,     &view->topics_text};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        usi_bytes_init(buffers[i], &a, i == 0 ? MAX_FRAME : MAX_TEXT);
    us_status status = start(view, &d, err);
    if (!status) status = attach(view, err);
    if (status) {
        us_view_destroy(view);
        return status;
    }
    *out_view = view;
    return US_OK;
}

void us_view_destroy(us_view *view) {
    if (!view) return;
    usi_world_remove_hooks(view->world, view);
    // First the server's thread ends, and with it every session: then nobody but this thread is here.
    if (view->foxglove) usi_foxglove_feed(view->foxglove, NULL);
    if (view->web) usi_web_destroy(view->web);
    usi_web_users_release(view->users, &view->allocator);
    usi_foxglove_destroy(view->foxglove);
    usi_view_frames_fini(view);
    usi_ruts_fini(&view->ruts);
    usi_clouds_fini(&view->clouds);
    usi_page_get_fini(view);
    usi_watch_table_fini(&view->table);
    usi_watch_unref(view->watch);
    usi_bytes *buffers[] = {&view->buffer,   &view->status_text, &view->pairs_text,
                            &view->contacts, &view->torques,     &view->topics_text};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        usi_bytes_fini(buffers[i]);
    usi_arena_fini(&view->arena);
    pthread_mutex_destroy(&view->lock);
    us_allocator a = view->allocator;
    usi_release(&a, view, sizeof *view, USI_ALIGN);
}

const char *us_view_url(const us_view *view) { return view ? view->url : NULL; }
