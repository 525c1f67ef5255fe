// Who may ask, and what is answered.
//
// A page from anywhere can make its visitor's browser talk to this machine. Two checks keep such pages out:
//   Host     A name that somebody else's DNS says is this machine (rebinding) would make a foreign page
//   "ours". So a request must be addressed to a name
//            that is known to be ours. An address in numbers is nobody's name: it is good wherever the server
//            is reachable by numbers.
//   Origin   A WebSocket may be opened by a page from anywhere; the browser says from where. It must be where
//   the request is addressed to. What is
//            no browser sends none: it could say what it likes anyhow. A protocol may have guests, which
//            look, and control only with the token.
// Everything is answered from memory: no path ever reaches a file system.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "bus/bus__web.h"

static const char *status_text(int32_t status) {
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 406:
        return "Not Acceptable";
    case 410:
        return "Gone";
    case 426:
        return "Upgrade Required";
    case 500:
        return "Internal Server Error";
    case 503:
        return "Service Unavailable";
    default:
        return "Answer";
    }
}

// Styles are set by the page's own code; images and glTF textures travel inside other things; workers are
// made from the page's own text.
static const char policy[] =
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; connect-src 'self' "
    "data: blob:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

// The address of a page may carry the token: it is sent to nobody else (Referrer-Policy).
static int write_head(usi_web_client *c, int32_t status, const char *type, size_t length, const char *more) {
    unsigned char *head = c->web->chunk + LWS_PRE;
    int n = snprintf(
        (char *)head, USI_WEB_CHUNK,
        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
        "Content-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: SAMEORIGIN\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n\r\n",
        status, status_text(status), type, length, more, policy);
    if (n < 0 || n >= USI_WEB_CHUNK) return -1;
    return lws_write(c->wsi, head, (size_t)n, LWS_WRITE_HTTP_HEADERS) < n ? -1 : 0;
}

// A line of text, after which the connection ends: whoever asks so has no more to ask.
static int answer_text(usi_web_client *c, int32_t status, bool is_head, const char *text) {
    if (write_head(c, status, "text/plain; charset=utf-8", strlen(text),
                   "Cache-Control: no-store\r\nConnection: close\r\n"))
        return -1;
    unsigned char *body = c->web->chunk + LWS_PRE;
    size_t n = strlen(text);
    memcpy(body, text, n);
    if (!is_head) (void)lws_write(c->wsi, body, n, LWS_WRITE_HTTP_FINAL);
    return -1;
}

// ---- Who asks ----

// A header as a text. 0: there is none, or it is empty; -1: too long.
static int get_header(usi_web_client *c, enum lws_token_indexes token, char *out, size_t cap) {
    *out = 0;
    return lws_hdr_total_length(c->wsi, token) > 0 ? lws_hdr_copy(c->wsi, out, (int)cap, token) : 0;
}

// The name in "name:port" and "[address]:port".
static bool host_name(const char *host, char *out, size_t cap) {
    const char *begin = host, *end;
    if (*host == '[') {
        begin++;
        end = strchr(begin, ']');
        if (!end || (end[1] && end[1] != ':')) return false;
    } else {
        end = strchr(begin, ':');
        if (!end) end = begin + strlen(begin);
    }
    const char *port = *end == ']' ? end + 1 : end;
    if (*port == ':' && strspn(port + 1, "0123456789") != strlen(port + 1)) return false;
    size_t n = (size_t)(end - begin);
    if (n == 0 || n >= cap) return false;
    memcpy(out, begin, n);
    out[n] = 0;
    return true;
}

static bool is_loopback_number(const char *name) {
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, name, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_number(const char *name) {
    struct in6_addr any;
    return inet_pton(AF_INET, name, &any) == 1 || inet_pton(AF_INET6, name, &any) == 1;
}

static bool is_own_name(const usi_web *web, const char *name) {
    if (strcasecmp(name, "localhost") == 0 || is_loopback_number(name)) return true;
    if (web->is_loopback) return false;
    if (is_number(name)) return true;
    const size_t n = strlen(web->machine);
    return n > 0 && strncasecmp(name, web->machine, n) == 0 &&
           (name[n] == 0 || strcasecmp(name + n, ".local") == 0);
}

// The request's Host, when it is one of ours.
static bool check_host(usi_web_client *c, char *out_host, size_t cap) {
    char name[256];
    const int n = get_header(c, WSI_TOKEN_HOST, out_host, cap);
    if (n > 0 && host_name(out_host, name, sizeof name) && is_own_name(c->web, name)) return true;
    usi_web_refused(c->web, c->peer,
                    n > 0 ? "a request for the host \"%.100s\", which is not this one"
                          : "a request without a host",
                    out_host);
    return false;
}

static bool is_guest(const usi_web_protocol *protocol, const char *origin) {
    for (const char *const *guest = protocol->guests; guest && *guest; guest++) {
        const size_t n = strlen(*guest);
        if (strncasecmp(origin, *guest, n) != 0) continue;
        const char *port = origin + n;
        if (*port == 0 || (*port == ':' && port[1 + strspn(port + 1, "0123456789")] == 0)) return true;
    }
    return false;
}

// May it come in? One that is a guest may, to look; for more it needs the token.
static bool check_origin(usi_web_client *c, const char *host, bool *out_is_guest) {
    char origin[300];
    const int n = get_header(c, WSI_TOKEN_ORIGIN, origin, sizeof origin);
    *out_is_guest = false;
    if (n == 0) return true;
    const char *at = strncasecmp(origin, "http://", 7) == 0    ? origin + 7
                     : strncasecmp(origin, "https://", 8) == 0 ? origin + 8
                                                               : NULL;
    if (n > 0 && at && strcasecmp(at, host) == 0) return true;
    *out_is_guest = n > 0 && is_guest(c->protocol, origin);
    if (*out_is_guest) return true;
    usi_web_refused(c->web, c->peer, "a WebSocket from a page of \"%.100s\"",
                    n > 0 ? origin : "(a very long name)");
    return false;
}

// Takes as long for a good guess as for a bad one.
static bool is_same_secret(const char *a, size_t n_a, const char *b, size_t n_b) {
    unsigned char differ = n_a != n_b;
    for (size_t i = 0; i < n_b; i++)
        differ |= (unsigned char)(n_a > 0 ? a[i % n_a] ^ b[i] : 1);
    return differ == 0;
}

// What the token of the request allows, and whose it is.
static void check_token(usi_web_client *c, bool is_guest) {
    usi_web *web = c->web;
    const bool is_open = !web->token && web->def.n_user == 0;
    c->role = is_open && !is_guest ? USI_ROLE_SWITCH : USI_ROLE_LOOK;
    if (is_open) return;
    char argument[300];
    for (int k = 0; lws_hdr_copy_fragment(c->wsi, argument, sizeof argument, WSI_TOKEN_HTTP_URI_ARGS, k) >= 0;
         k++) {
        if (strncmp(argument, "token=", 6) != 0) continue;
        const char *token = argument + 6;
        c->user = usi_web_find_user(web, token);
        if (c->user) c->role = c->user->role;
        if (web->token && is_same_secret(token, strlen(token), web->token, web->token_length))
            c->role = USI_ROLE_SWITCH;
        else if (!c->user)
            usi_web_refused(web, c->peer, "the token is not one of this run: this client may only look");
        return;
    }
}

// ---- Requests ----

static bool accepts_gzip(usi_web_client *c) {
    char list[512];
    const int n = get_header(c, WSI_TOKEN_HTTP_ACCEPT_ENCODING, list, sizeof list);
    if (n <= 0) return n == 0;  // nothing said: anything goes
    const char *at = strstr(list, "gzip");
    size_t named = at ? 4 : 1;
    if (!at) at = strchr(list, '*');
    if (!at) return false;
    at += named;
    at += strspn(at, " ");
    if (*at != ';') return true;
    at += 1 + strspn(at + 1, " ");
    return strncmp(at, "q=0", 3) != 0 ||
           (at[3] == '.' && strpbrk(at + 4, "123456789,") && *strpbrk(at + 4, "123456789,") != ',');
}

static int begin_answer(usi_web_client *c, const void *bytes, void *owned, size_t length, bool is_head) {
    if (is_head || length == 0) {
        if (owned) usi_release(&c->web->def.allocator, owned, length, 1);
        return lws_http_transaction_completed(c->wsi) ? -1 : 0;
    }
    c->bytes = bytes;
    c->owned = owned;
    c->length = length;
    c->at = 0;
    c->is_answering = true;
    lws_set_timeout(c->wsi, PENDING_TIMEOUT_HTTP_CONTENT, c->web->def.timeout);
    lws_callback_on_writable(c->wsi);
    return 0;
}

static int answer_file(usi_web_client *c, const usi_web_file *file, bool is_head) {
    if (!accepts_gzip(c))
        return answer_text(c, 406, is_head,
                           "The page is kept compressed: ask with \"Accept-Encoding: gzip\".\n");
    const char *more =
        file->is_final ? "Content-Encoding: gzip\r\nCache-Control: public, max-age=31536000, immutable\r\n"
                       : "Content-Encoding: gzip\r\nCache-Control: no-cache\r\n";
    if (write_head(c, 200, file->type, file->length, more)) return -1;
    return begin_answer(c, file->bytes, NULL, file->length, is_head);
}

static int answer_api(usi_web_client *c, const char *path, bool is_head) {
    usi_web_answer answer = {.status = 404};
    c->web->def.get(c->web->def.context, path, &answer);
    if (answer.status < 200 || answer.status > 599) answer.status = 500;
    if (!answer.bytes) answer.length = 0;
    const char *type = answer.type ? answer.type : "text/plain; charset=utf-8";
    if (write_head(c, answer.status, type, answer.length, "Cache-Control: no-store\r\n")) {
        usi_release(&c->web->def.allocator, answer.bytes, answer.length, 1);
        return -1;
    }
    return begin_answer(c, answer.bytes, answer.bytes, answer.length, is_head);
}

int usi_web_request(usi_web_client *c, const char *path, size_t length) {
    usi_web *web = c->web;
    char *uri = NULL;
    int n_uri = 0;
    const int method = lws_http_get_uri_and_method(c->wsi, &uri, &n_uri);
    const bool is_head = method == LWSHUMETH_HEAD;
    usi_web_heard(c, false);
    char host[300], at[512];
    if (!check_host(c, host, sizeof host))
        return answer_text(c, 403, is_head,
                           "This is not the host you asked for. Open http://localhost and the port.\n");
    if (method != LWSHUMETH_GET && !is_head) {
        usi_web_refused(web, c->peer, "a request that is neither GET nor HEAD");
        return answer_text(c, 405, false, "Only GET and HEAD.\n");
    }
    char body[32];
    if (get_header(c, WSI_TOKEN_HTTP_TRANSFER_ENCODING, body, sizeof body) ||
        (get_header(c, WSI_TOKEN_HTTP_CONTENT_LENGTH, body, sizeof body) && strcmp(body, "0") != 0)) {
        usi_web_refused(web, c->peer, "a GET with a body");
        return answer_text(c, 400, is_head, "A GET has no body.\n");
    }
    bool is_plain = length > 0 && length < sizeof at;
    for (size_t i = 0; is_plain && i < length; i++)
        is_plain = path[i] > ' ' && path[i] < 127;
    if (!is_plain) return answer_text(c, 404, is_head, "There is nothing here.\n");
    memcpy(at, path, length);
    at[length] = 0;
    const char *name = strcmp(at, "/") == 0 ? "/index.html" : at;
    for (int32_t k = 0; k < web->def.n_file; k++) {
        if (strcmp(web->def.files[k].path, name) == 0) return answer_file(c, &web->def.files[k], is_head);
    }
    if (web->def.get && strncmp(at, "/api/", 5) == 0) return answer_api(c, at, is_head);
    return answer_text(c, 404, is_head, "There is nothing here.\n");
}

int usi_web_request_writeable(usi_web_client *c) {
    if (!c->is_answering) return 0;
    size_t n = c->length - c->at;
    const bool is_last = n <= USI_WEB_CHUNK;
    if (!is_last) n = USI_WEB_CHUNK;
    memcpy(c->web->chunk + LWS_PRE, c->bytes + c->at, n);
    if (lws_write(c->wsi, c->web->chunk + LWS_PRE, n, is_last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) <
        (int)n)
        return -1;
    c->at += n;
    if (is_last) {
        usi_web_request_end(c);
        return lws_http_transaction_completed(c->wsi) ? -1 : 0;
    }
    lws_set_timeout(c->wsi, PENDING_TIMEOUT_HTTP_CONTENT, c->web->def.timeout);
    lws_callback_on_writable(c->wsi);
    return 0;
}

void usi_web_request_end(usi_web_client *c) {
    if (c->owned) usi_release(&c->web->def.allocator, c->owned, c->length, 1);
    c->owned = NULL;
    c->bytes = NULL;
    c->length = c->at = 0;
    c->is_answering = false;
}

// The first protocol in the client's list that there is, as libwebsockets will choose it.
static const usi_web_protocol *choose_protocol(usi_web_client *c) {
    char list[256];
    if (get_header(c, WSI_TOKEN_PROTOCOL, list, sizeof list) <= 0) return NULL;
    for (char *rest = list, *name; (name = strtok_r(rest, ", \t", &rest));) {
        for (int32_t k = 0; k < c->web->def.n_protocol; k++) {
            if (strcmp(c->web->def.protocols[k].name, name) == 0) return &c->web->def.protocols[k];
        }
    }
    return NULL;
}

int usi_web_request_upgrade(usi_web_client *c, const char *to) {
    usi_web *web = c->web;
    char host[300], version[16];
    bool is_guest;
    if (strcasecmp(to, "websocket") != 0 || lws_hdr_total_length(c->wsi, WSI_TOKEN_GET_URI) <= 0) {
        usi_web_refused(web, c->peer, "an upgrade to \"%.40s\"", to);
        return answer_text(c, 400, false, "Only a GET can become something else, and only a WebSocket.\n");
    }
    if (!check_host(c, host, sizeof host))
        return answer_text(c, 403, false, "This is not the host you asked for.\n");
    if (get_header(c, WSI_TOKEN_VERSION, version, sizeof version) <= 0 || strcmp(version, "13") != 0) {
        return answer_text(c, 426, false, "The WebSocket protocol spoken here is version 13.\n");
    }
    c->protocol = choose_protocol(c);
    if (!c->protocol) {
        usi_web_refused(web, c->peer, "a WebSocket without a protocol that is spoken here");
        return answer_text(c, 400, false, "None of the WebSocket protocols asked for is spoken here.\n");
    }
    if (!check_origin(c, host, &is_guest))
        return answer_text(c, 403, false, "Only the page that is served here may do this.\n");
    check_token(c, is_guest);
    if (!usi_web_find_place(c)) {
        usi_web_refused(web, c->peer, "there are %d clients already", web->n_client);
        return answer_text(c, 503, false, "There are too many clients. Close a page that is not needed.\n");
    }
    c->is_counted = true;
    web->n_client++;
    return 0;
}
