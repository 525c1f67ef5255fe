// The web server: a thread with libwebsockets, and the door.
//
//     listener --accept--> slot --HTTP--> web_request.c: an answer from memory
//                            |
//                            +--Upgrade--> web_client.c: messages in, a bounded queue out
//
// How each promise is kept:
//   No caller ever waits. usi_web_wake sets a flag and, when it was not set, writes to an eventfd.
//   Servers share nothing. Each has a context of libwebsockets; of that library's own globals only the log is
//   touched: it is silent. The process stays as it is. libwebsockets ignores SIGPIPE for everybody when it
//   starts; that is undone, and the thread blocks all signals. Nobody holds a place for ever. There are as
//   many slots as clients, and some more for those that ask for files; one that stands still while it asks
//     or is answered is dropped after `timeout`, a WebSocket client that does not answer a ping after twice
//     `ping`. When all are taken, whoever is silent makes room (web_places.c); where nobody is, a connection
//     is closed as soon as it is made.
//   The listening socket is ours, so that a port that is taken says so in plain words.
#include "bus/web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bus/bus__web.h"
#include "bus/descriptors.h"

enum {
    BACKLOG = 128,
    N_ACCEPT = 16,        // per round
    N_TOLD = 5,           // lines for the log per second
    UNSENT = 65536,       // bytes that the system may hold unsent before the socket counts as full
    MAX_CLIENT = 4096,    //
    MAX_TOKEN = 256,      //
    MAX_TIMEOUT = 30000,  // s: half of what libwebsockets can count
};

// One line of plain characters: what a client says of itself may hold anything.
static void tell_refused(usi_web *web, const char *peer, const char *format, va_list args) {
    char text[400];
    int n = snprintf(text, sizeof text, "refused %s: ", peer);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    for (char *at = text; *at; at++) {
        if (*at < ' ' || *at > '~') *at = '?';
    }
    web->def.refused(web->def.context, text);
}

void usi_web_refused(usi_web *web, const char *peer, const char *format, ...) {
    if (!web->def.refused) return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec != web->told_second) {
        if (web->n_untold) {
            char text[40];
            snprintf(text, sizeof text, "%d more were refused", web->n_untold);
            web->def.refused(web->def.context, text);
        }
        web->told_second = now.tv_sec;
        web->n_told = web->n_untold = 0;
    }
    if (web->n_told >= N_TOLD) {
        web->n_untold++;
        return;
    }
    web->n_told++;
    va_list args;
    va_start(args, format);
    tell_refused(web, peer, format, args);
    va_end(args);
}

void usi_web_sent_away(usi_web *web, const char *peer, const char *format, ...) {
    if (!web->def.refused) return;
    va_list args;
    va_start(args, format);
    tell_refused(web, peer, format, args);
    va_end(args);
}

// ---- The door ----

static void address_text(const struct sockaddr_storage *a, socklen_t length, bool with_port, char *out,
                         size_t cap) {
    char host[USI_WEB_PEER - 8], port[8];
    if (getnameinfo((const struct sockaddr *)a, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV)) {
        snprintf(out, cap, "somebody");
    } else if (with_port) {
        snprintf(out, cap, "%s:%s", host, port);
    } else {
        snprintf(out, cap, "%s", host);
    }
}

static int open_listener(const char *address, int32_t port) {
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM,
                            .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE},
                    *found = NULL;
    if (getaddrinfo(address, service, &hint, &found)) {
        errno = EINVAL;
        return -1;
    }
    const int one = 1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), why = errno;
    // Connections of a server that has just ended must not keep the next one out.
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
                    bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, BACKLOG))) {
        why = errno;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    errno = why;
    return fd;
}

static us_status find_port(usi_web *web, us_error *err) {
    const usi_web_def *def = &web->def;
    int32_t port = def->port, last = def->port > 0 ? def->port + def->n_port_more : 0;
    if (last > 65535) last = 65535;
    while ((web->listener = open_listener(web->address, port)) < 0 && errno == EADDRINUSE && port < last)
        port++;
    if (web->listener < 0) {
        const int why = errno;
        const char *remedy = "Look at the address and the port of the page.";
        if (why == EADDRINUSE) {
            remedy = "Choose another port with --port, 0 for any that is free, or end the program that has "
                     "this one (ss -tlpn shows it).";
        } else if (why == EACCES) {
            remedy = "Choose a port above 1023 with --port: those below belong to the system.";
        } else if (why == EADDRNOTAVAIL || why == EINVAL) {
            remedy = "Write the number of an address that this machine has: 127.0.0.1 for this machine "
                     "alone, 0.0.0.0 for all its networks.";
        }
        const char *text = why == EADDRINUSE ? "in use by another program"
                           : why == EINVAL   ? "this is not an address in numbers"
                                             : strerror(why);
        if (last > def->port) {
            return us_error_set(err, US_ERR_IO, NULL, remedy, "the page cannot open port %d to %d of %s: %s",
                                def->port, last, web->address, text);
        }
        return us_error_set(err, US_ERR_IO, NULL, remedy, "the page cannot open port %d of %s: %s", def->port,
                            web->address, text);
    }
    union {
        struct sockaddr_storage any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a;
    memset(&a, 0, sizeof a);
    socklen_t length = sizeof a;
    (void)getsockname(web->listener, (struct sockaddr *)&a.any, &length);
    web->port = ntohs(a.any.ss_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
    web->is_loopback = a.any.ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr)
                                                   : ntohl(a.v4.sin_addr.s_addr) >> 24 == 127;
    return US_OK;
}

static void free_slot(usi_web_client *c) {
    usi_web_request_end(c);
    usi_web_client_end(c);
    *c = (usi_web_client){.web = c->web};
}

static void adopt(usi_web *web, int fd, const struct sockaddr_storage *from, socklen_t length) {
    char peer[USI_WEB_PEER];
    address_text(from, length, true, peer, sizeof peer);
    usi_web_client *c = usi_web_find_slot(web);
    if (!c) {
        usi_web_refused(web, peer, "there are too many connections");
        close(fd);
        return;
    }
    // A client that is slow should get fewer pictures, not old ones: little may wait where nobody sees it.
    const int one = 1, unsent = UNSENT;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    memcpy(c->peer, peer, sizeof peer);
    c->address = usi_web_address(peer);
    usi_web_heard(c, false);
    const lws_adoption_type type =
        LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP | (web->has_tls ? LWS_ADOPT_ALLOW_SSL : 0);
    lws_adopt_desc_t how = {.vh = web->vhost, .type = type, .fd.sockfd = fd, .opaque = c};
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&how);  // closes it when it fails
    if (wsi) {
        c->wsi = wsi;
    } else {
        free_slot(c);
    }
}

static void accept_all(usi_web *web, int listener) {
    for (int k = 0; k < N_ACCEPT; k++) {
        struct sockaddr_storage from;
        socklen_t length = sizeof from;
        int fd = accept4(listener, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            adopt(web, fd, &from, length);
        } else if ((errno == EMFILE || errno == ENFILE) && web->spare >= 0) {
            // One that cannot be taken would be reported again and again: take it with the spare descriptor
            // and send it away.
            close(web->spare);
            length = sizeof from;
            fd = accept4(listener, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
            if (fd >= 0) close(fd);
            web->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
            usi_web_refused(web, "somebody", "this process has no descriptors left");
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

// ---- The thread ----

// All that libwebsockets has to say. `wsi` belongs to a slot, but for the listener's and those of
// libwebsockets itself.
static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length) {
    usi_web *web = lws_context_user(lws_get_context(wsi));
    usi_web_client *c = usi_web_client_of(wsi);
    const struct lws_protocols *protocol = lws_get_protocol(wsi);
    const bool is_http = !protocol || protocol->id == 0;
    switch (reason) {
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:  // comes once per protocol
        if (is_http && atomic_exchange(&web->is_woken, false) && web->def.wake &&
            !atomic_load(&web->is_ending))
            web->def.wake(web->def.context);
        return 0;
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
        return is_http ? usi_web_tls_fill(web, user) : 0;
    case LWS_CALLBACK_RAW_RX_FILE:
        accept_all(web, lws_get_socket_fd(wsi));
        return 0;
    case LWS_CALLBACK_RAW_ADOPT:
    case LWS_CALLBACK_RAW_RX:
        return -1;  // CONNECT
    default:
        break;
    }
    if (!c) return 0;
    switch (reason) {
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        c->wsi = wsi;
        return usi_web_request_upgrade(c, in);
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return is_http || c->protocol != &web->def.protocols[protocol->id - 1] ? -1 : 0;
    case LWS_CALLBACK_ESTABLISHED:
        return is_http ? -1 : usi_web_client_established(c);
    case LWS_CALLBACK_RECEIVE:
        return usi_web_client_receive(c, in, length);
    case LWS_CALLBACK_RECEIVE_PONG:
        usi_web_heard(c, false);
        return 0;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return usi_web_client_writeable(c);
    case LWS_CALLBACK_CLOSED:
        usi_web_client_end(c);
        return 0;
    case LWS_CALLBACK_HTTP:
        c->wsi = wsi;
        return usi_web_request(c, in, length);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return usi_web_request_writeable(c);
    case LWS_CALLBACK_HTTP_BODY:
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return -1;  // nothing that has a body is answered
    case LWS_CALLBACK_CLOSED_HTTP:
        usi_web_request_end(c);
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        free_slot(c);
        return 0;
    default:
        return 0;
    }
}

static void *run(void *argument) {
    usi_web *web = argument;
    pthread_setname_np(pthread_self(), "understudy-web");
    while (!atomic_load(&web->is_ending) && lws_service(web->context, 0) >= 0) {
    }
    // Whoever ends the server may still be on the way out of lws_cancel_service.
    pthread_mutex_lock(&web->ending);
    pthread_mutex_unlock(&web->ending);
    lws_context_destroy(web->context);
    return NULL;
}

// ---- Life ----

static us_status start_context(usi_web *web, us_error *err) {
    const usi_web_def *def = &web->def;
    web->patience = (lws_retry_bo_t){.secs_since_valid_ping = (uint16_t)def->ping,
                                     .secs_since_valid_hangup = (uint16_t)(2 * def->ping)};
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
    info.protocols = web->lws;
    info.options = LWS_SERVER_OPTION_VALIDATE_UTF8 | LWS_SERVER_OPTION_NO_LWS_SYSTEM_STATES;
    if (def->enable_tls)
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX;
    info.uid = -1;
    info.gid = -1;
    info.user = web;
    info.max_http_header_data2 = USI_WEB_HEADER;
    info.max_http_header_pool2 = (unsigned)web->n_slot;
    info.fd_limit_per_thread = (unsigned)web->n_slot + 8;
    info.timeout_secs = (unsigned)def->timeout;
    info.timeout_secs_ah_idle = (unsigned)def->timeout;
    info.keepalive_timeout = def->timeout;
    info.retry_and_idle_policy = &web->patience;
    info.vhost_name = "page";
    info.alpn = "http/1.1";  // answers are written as such
    lws_set_log_level(0, NULL);
    struct sigaction before;
    const bool is_known = sigaction(SIGPIPE, NULL, &before) == 0;
    web->context = lws_create_context(&info);
    if (is_known) (void)sigaction(SIGPIPE, &before, NULL);
    web->vhost = web->context ? lws_get_vhost_by_name(web->context, info.vhost_name) : NULL;
    if (!web->vhost)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "libwebsockets cannot start");
    if (def->enable_tls && !web->has_tls)
        return us_error_set(err, US_ERR_VALUE, &(us_place){.file = def->tls_cert},
                            "Name another certificate, or let --tls make one.",
                            "the page cannot use the certificate");
    lws_adopt_desc_t how = {.vh = web->vhost,
                            .type = LWS_ADOPT_RAW_FILE_DESC,
                            .fd.filefd = web->listener,
                            .vh_prot_name = "http"};
    if (!lws_adopt_descriptor_vhost_via_info(&how))
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "libwebsockets cannot take the socket");
    web->listener = -1;  // its now
    return US_OK;
}

static us_status start_thread(usi_web *web, us_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int why = pthread_create(&web->thread, NULL, run, web);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "the page's thread cannot start: %s",
                            strerror(why));
    return US_OK;
}

// All but the context, which the thread has destroyed.
static void free_web(usi_web *web) {
    const us_allocator a = web->def.allocator;
    pthread_mutex_destroy(&web->ending);
    usi_identity_fini(&web->identity);
    if (web->listener >= 0) close(web->listener);
    if (web->spare >= 0) close(web->spare);
    usi_release(&a, web->slots, (size_t)web->n_slot * sizeof *web->slots, _Alignof(usi_web_client));
    usi_release(&a, web->lws, (size_t)(web->def.n_protocol + 2) * sizeof *web->lws,
                _Alignof(struct lws_protocols));
    usi_release(&a, web->protocols, (size_t)web->def.n_protocol * sizeof *web->protocols,
                _Alignof(usi_web_protocol));
    usi_release(&a, web->token, web->token_length + 1, 1);
    usi_release(&a, web, sizeof *web, _Alignof(usi_web));
}

static us_status check_def(const usi_web_def *def, us_error *err) {
    if (!def->allocator.alloc || def->n_file < 0 || def->n_protocol < 0 || (def->n_file > 0 && !def->files) ||
        (def->n_protocol > 0 && !def->protocols)) {
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "the web server's definition is not whole");
    }
    if (def->port < 0 || def->port > 65535 || def->n_port_more < 0 || def->n_port_more > 65535) {
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "Choose a port from 1 to 65535 with --port, or 0 for any that is free.",
                            "invalid port %d", def->port);
    }
    if (def->max_client < 0 || def->max_client > MAX_CLIENT || def->timeout < 0 ||
        def->timeout > MAX_TIMEOUT || def->ping < 0 || def->ping > MAX_TIMEOUT) {
        return us_error_set(err, US_ERR_VALUE, NULL, NULL, "the web server's limits are out of range");
    }
    if (def->address && strlen(def->address) >= USI_WEB_PEER) {
        return us_error_set(err, US_ERR_VALUE, NULL, "Write an address in numbers.",
                            "\"%.80s\" is not an address", def->address);
    }
    if (def->token && (!*def->token || strlen(def->token) > MAX_TOKEN)) {
        return us_error_set(err, US_ERR_VALUE, NULL, "Write 1 to 256 characters.",
                            "the token is empty or too long");
    }
    return US_OK;
}

// The slots, and copies of what the definition points to.
static bool copy_lists(usi_web *web) {
    const us_allocator *a = &web->def.allocator;
    const int32_t n_slot = web->def.max_client + USI_WEB_N_GUEST;
    usi_web_client *slots = usi_alloc(a, (size_t)n_slot * sizeof *slots, _Alignof(usi_web_client));
    if (!slots) return false;
    for (int32_t k = 0; k < n_slot; k++)
        slots[k] = (usi_web_client){.web = web};
    web->slots = slots;
    web->n_slot = n_slot;

    const size_t n = (size_t)web->def.n_protocol;
    usi_web_protocol *protocols = usi_alloc(a, n * sizeof *protocols, _Alignof(usi_web_protocol));
    web->protocols = protocols;
    struct lws_protocols *lws = usi_alloc(a, (n + 2) * sizeof *lws, _Alignof(struct lws_protocols));
    web->lws = lws;
    if (!protocols || !lws) return false;
    memset(lws, 0, (n + 2) * sizeof *lws);
    lws[0] = (struct lws_protocols){.name = "http", .callback = on_event};
    for (size_t k = 0; k < n; k++) {
        protocols[k] = web->def.protocols[k];
        if (!protocols[k].context) protocols[k].context = web->def.context;
        lws[k + 1] = (struct lws_protocols){.name = protocols[k].name,
                                            .callback = on_event,
                                            .rx_buffer_size = USI_WEB_RECEIVE,
                                            .id = (unsigned)k + 1};
    }
    web->def.protocols = protocols;

    if (!web->def.token) return true;
    web->token_length = strlen(web->def.token);
    web->token = usi_alloc(a, web->token_length + 1, 1);
    if (web->token) memcpy(web->token, web->def.token, web->token_length + 1);
    return web->token != NULL;
}

us_status usi_web_create(const usi_web_def *def, usi_web **out_web, us_error *err) {
    if (!def || !out_web)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "usi_web_create needs a definition and a place for the server");
    us_status status = check_def(def, err);
    if (!status) status = usi_need_descriptors("the page", err);
    if (status) return status;
    const us_allocator *a = &def->allocator;
    usi_web *web = usi_alloc(a, sizeof *web, _Alignof(usi_web));
    if (!web) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for the web server");
    memset(web, 0, sizeof *web);
    web->def = *def;
    pthread_mutex_init(&web->ending, NULL);
    if (!web->def.max_client) web->def.max_client = 64;
    if (!web->def.timeout) web->def.timeout = 10;
    if (!web->def.ping) web->def.ping = 20;
    web->listener = -1;
    web->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    snprintf(web->address, sizeof web->address, "%s", def->address ? def->address : "127.0.0.1");
    if (gethostname(web->machine, sizeof web->machine - 1)) web->machine[0] = 0;

    if (!copy_lists(web))
        status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for the web server");
    if (!status) status = usi_web_tls_open(web, err);
    if (!status) status = find_port(web, err);
    if (!status) status = start_context(web, err);
    if (!status) status = start_thread(web, err);
    if (status) {
        if (web->context) lws_context_destroy(web->context);
        free_web(web);
        return status;
    }
    *out_web = web;
    return US_OK;
}

void usi_web_destroy(usi_web *web) {
    if (!web) return;
    pthread_mutex_lock(&web->ending);
    atomic_store(&web->is_ending, true);
    lws_cancel_service(web->context);
    pthread_mutex_unlock(&web->ending);
    pthread_join(web->thread, NULL);
    free_web(web);
}

int32_t usi_web_port(const usi_web *web) { return web ? web->port : -1; }

void usi_web_wake(usi_web *web) {
    if (!atomic_exchange(&web->is_woken, true)) lws_cancel_service(web->context);
}
