// Shared by the files of the web server: web.c has the thread and the listening socket, web_request.c access
// control and the answers to requests, web_client.c the messages of one WebSocket client, web_places.c who
// has to go when all places are taken.
#ifndef USI_BUS_WEB_LOCAL_H
#define USI_BUS_WEB_LOCAL_H

#include <libwebsockets.h>
#include <pthread.h>
#include <stdatomic.h>

#include "bus/web.h"
#include "keys/keys.h"

enum {
    USI_WEB_CHUNK = 32768,   // bytes of an answer that are written at once
    USI_WEB_HEADER = 16384,  // bytes of a request's headers: browsers send the cookies of everything that was
                             // ever served on this machine
    USI_WEB_N_GUEST =
        128,  // connections beyond max_client: those that ask for files, and those that never get to ask
    USI_WEB_RECEIVE = 16384,
    USI_WEB_PEER = 64,
};

// A message that waits. libwebsockets writes its header into the bytes before the payload.
typedef struct usi_web_message {
    struct usi_web_message *next;
    size_t length;
    bool is_binary;
    unsigned char bytes[];  // LWS_PRE, then the payload
} usi_web_message;

// A connection, from accept to the end: at first it asks for something by HTTP, and it may become a WebSocket
// client. Slots are reused.
struct usi_web_client {
    usi_web *web;
    struct lws *wsi;  // NULL: the slot is free
    char peer[USI_WEB_PEER];
    uint64_t address;  // a hash of where it comes from, without the port
    // s, CLOCK_MONOTONIC: when something came last, when a message did, when it was asked whether it is
    // there.
    double heard, told, asked;
    bool must_ping;

    // An answer under way. `bytes` are a file's, or the `owned` ones.
    const unsigned char *bytes;
    void *owned;
    size_t length, at;
    bool is_answering;

    // As a WebSocket client.
    const usi_web_protocol *protocol;
    void *session;
    bool is_counted;  // among the clients
    bool is_open;     // its `open` has been called and was content; its `close` has not
    bool is_closing;
    usi_web_role role;
    const usi_web_user *user;  // NULL: not registered
    char name[80];
    char why[96];
    usi_web_message *first, *last;
    size_t n_message, n_byte;  // that wait
    bool is_writing;           // the first one is with libwebsockets, which has not sent all of it yet
    unsigned char *part;       // of a message that is arriving
    size_t message_length, message_cap;
};

struct usi_web {
    usi_web_def def;
    char address[USI_WEB_PEER];
    char machine[256];  // the name of this machine
    char *token;
    size_t token_length;
    int32_t port;
    bool is_loopback;
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct lws_protocols *lws;    // "http", one per WebSocket protocol, and an end
    usi_web_protocol *protocols;  // def's points here
    lws_retry_bo_t patience;
    usi_identity identity;  // of TLS
    char fingerprint[96];
    bool has_tls;
    int listener;  // until the thread has it
    int spare;     // a descriptor to give up when there are no others: then a connection can be taken, to be
                   // closed
    pthread_t thread;
    pthread_mutex_t ending;
    atomic_bool is_ending, is_woken;
    usi_web_client *slots;
    int32_t n_slot, n_client;
    double asked, replaced;  // s, CLOCK_MONOTONIC: when silent clients were asked, when one was replaced
    int64_t serial;
    int64_t told_second;  // of the log: when the present second began
    int32_t n_told, n_untold;
    unsigned char chunk[LWS_PRE + USI_WEB_CHUNK];
};

static inline usi_web_client *usi_web_client_of(struct lws *wsi) { return lws_get_opaque_user_data(wsi); }

// A line for the log, with who it was.
void usi_web_refused(usi_web *web, const char *peer, const char *format, ...) US_PRINTF(3, 4);
// Of one that was in: never left out of the log, however many are refused. The caller bounds how often.
void usi_web_sent_away(usi_web *web, const char *peer, const char *format, ...) US_PRINTF(3, 4);

// ---- web_request.c ----
// Each returns the result for libwebsockets: 0 to continue, negative to close.
int usi_web_request(usi_web_client *c, const char *path, size_t length);
int usi_web_request_writeable(usi_web_client *c);
// A WebSocket wants in: sets protocol, role and user. 0: it may; else it has had its answer.
int usi_web_request_upgrade(usi_web_client *c, const char *to);
void usi_web_request_end(usi_web_client *c);

// ---- web_places.c ----
double usi_web_clock(void);  // s, CLOCK_MONOTONIC
// Something came from it; `has_told`: a message.
void usi_web_heard(usi_web_client *c, bool has_told);
// True when there is a place for one more client, be it that of one that has been silent for long.
bool usi_web_find_place(usi_web_client *newcomer);
// The hash of "10.0.0.7" in "10.0.0.7:4711".
uint64_t usi_web_address(const char *peer);
// A free slot, be it that of a connection that has asked for nothing; NULL: there is none.
usi_web_client *usi_web_find_slot(usi_web *web);

// ---- web_user.c ----
// The registered user whose token this is, or NULL.
const usi_web_user *usi_web_find_user(const usi_web *web, const char *token);

// ---- web_tls.c ----
// Reads or makes the certificate, where TLS is wanted.
us_status usi_web_tls_open(usi_web *web, us_error *err);
// Puts it into a context of OpenSSL. 0: well.
int usi_web_tls_fill(usi_web *web, void *context);

// ---- web_client.c ----
int usi_web_client_established(usi_web_client *c);
int usi_web_client_receive(usi_web_client *c, const void *bytes, size_t length);
int usi_web_client_writeable(usi_web_client *c);
void usi_web_client_end(usi_web_client *c);

#endif
