// The web server: pages, answers to GET, and WebSocket sessions, on one port and one thread of its own.
//
// It knows nothing of what is said. Everything but usi_web_create, usi_web_destroy and usi_web_wake is for
// the server's own thread, on which all callbacks run. A client that does not read fills its own queue and
// nobody else's.
#ifndef USI_BUS_WEB_H
#define USI_BUS_WEB_H

#include "base/memory.h"
#include "keys/page_user.h"
#include "understudy/base.h"

typedef struct usi_web usi_web;
typedef struct usi_web_client usi_web_client;

// What a client may do; each includes those before it.
typedef enum usi_web_role {
    USI_ROLE_LOOK,
    USI_ROLE_DRIVE,   // give robots commands
    USI_ROLE_WORLD,   // change the world: time, things, faults, recordings
    USI_ROLE_SWITCH,  // decide who is in control of a robot
} usi_web_role;

const char *usi_role_name(usi_web_role role);
enum { USI_ROLE_TEXT = 320 };

enum { USI_WEB_MAX_USER = 256 };

typedef struct usi_web_user {
    char name[USI_PAGE_USER_NAME];
    usi_web_role role;
    uint8_t hash[32];  // SHA-256 of the user's token
} usi_web_user;

// Users of a file: "NAME ROLE HASH" a line. US_ERR_SYNTAX names the line.
us_status usi_web_users_read(const char *path, const us_allocator *allocator, usi_web_user **out_users,
                             int32_t *out_n, us_error *err);
void usi_web_users_release(usi_web_user *users, const us_allocator *allocator);  // NULL is allowed

// A file of the page, compressed with gzip.
typedef struct usi_web_file {
    const char *path;  // "/index.html"
    const char *type;  // "text/html; charset=utf-8"
    const void *bytes;
    size_t length;
    bool is_final;  // the name has a hash in it: may be kept for ever
} usi_web_file;

// What a GET is answered: usi_alloc(&def.allocator, length, 1), which the server releases. `status` 200, 404,
// 410, ...
typedef struct usi_web_answer {
    int32_t status;
    const char *type;
    void *bytes;
    size_t length;
} usi_web_answer;

// One WebSocket subprotocol.
typedef struct usi_web_protocol {
    const char *name;   // "understudy.v1"
    const char *label;  // of its clients' names; NULL: "page"
    size_t max_message;
    size_t max_queue;  // bytes that may wait for a client
    void *context;     // for the functions below; NULL: the server's
    // Origins of other pages, and of programs that are pages inside, whose clients may look, and control only
    // with the token; one without a port stands for all ports. Ends with NULL. NULL: none, they are refused.
    const char *const *guests;
    // `session` is kept for the client. Anything but US_OK refuses it.
    us_status (*open)(void *context, usi_web_client *client, void **out_session);
    void (*message)(void *context, void *session, bool is_binary, const void *bytes,
                    size_t length);                 // whole messages
    void (*drained)(void *context, void *session);  // its queue has become empty; may be NULL
    void (*close)(void *context, void *session);
} usi_web_protocol;

typedef struct usi_web_def {
    us_allocator allocator;
    const char *address;  // in numbers; NULL: "127.0.0.1". "0.0.0.0": all of this machine's
    int32_t port;         // 0: any
    int32_t n_port_more;  // how many further ports to try when it is taken
    const char
        *token;  // of the one who may everything. NULL and no users: whoever may connect may everything
    const usi_web_user *users;  // borrowed
    int32_t n_user;
    bool enable_tls;
    const char *tls_cert, *tls_key;  // files, borrowed; NULL: a certificate is made
    int32_t
        max_client;  // default 64; further ones take the place of one that is silent, or are refused with 503
    int32_t timeout;  // s; default 10: a request or an answer that stands still for so long is dropped
    int32_t ping;  // s; default 20: a client that is quiet for so long is pinged, and dropped when it stays
                   // quiet as long again
    const usi_web_file *files;  // borrowed
    int32_t n_file;
    const usi_web_protocol *protocols;  // copied, but for the names
    int32_t n_protocol;
    void *context;
    // GET of a path that is no file and begins with "/api/". May be NULL.
    void (*get)(void *context, const char *path, usi_web_answer *out);
    void (*wake)(void *context);  // after usi_web_wake; several wakes may become one
    // Something was refused, with who and why: for a log, at most some per second. May be NULL.
    void (*refused)(void *context, const char *text);
} usi_web_def;

us_status usi_web_create(const usi_web_def *def, usi_web **out_web, us_error *err);
void usi_web_destroy(usi_web *web);  // closes all clients; their close is called
int32_t usi_web_port(const usi_web *web);
void usi_web_wake(usi_web *web);  // from any thread
// SHA-256 of the certificate, "AB:CD:..."; "" without TLS.
const char *usi_web_fingerprint(const usi_web *web);

// False when its queue is full (nothing was queued) or it is going away.
bool usi_web_send(usi_web_client *client, bool is_binary, const void *bytes, size_t length);
size_t usi_web_backlog(const usi_web_client *client);  // bytes that wait
usi_web_role usi_web_get_role(const usi_web_client *client);
const char *usi_web_user_name(const usi_web_client *client);    // "" when it is no registered user
const char *usi_web_client_name(const usi_web_client *client);  // "page:3", for logs and recordings
const char *usi_web_client_protocol(const usi_web_client *client);
void usi_web_close(usi_web_client *client, const char *why);  // soon
// What to tell a client whose role is less than `needed`.
void usi_role_refusal(const usi_web_client *client, usi_web_role needed, char *out, size_t cap);

#endif
