// Inside the Foxglove sessions: what the files that serve them share.
#ifndef USI_VIEW_FOXGLOVE_SESSION_H
#define USI_VIEW_FOXGLOVE_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "bus/web.h"
#include "understudy/world.h"
#include "view/view__bytes.h"
#include "view/view__foxglove.h"
#include "view/view__scenery.h"
#include "wire/foxglove.h"
#include "world/hooks.h"

enum {
    USI_FOXGLOVE_CLIENT_CHANNELS = 64,  // that one client may advertise
    USI_FOXGLOVE_WAITING = 16,          // commands to the world of one client that may wait
    USI_FOXGLOVE_QUEUE =
        1 << 22,  // bytes that may wait for a client: some seconds of a robot without cameras
};

// A channel of a client that a robot listens to.
typedef struct usi_client_channel {
    uint32_t id;
    int32_t channel;  // of the proxy; -1: the entry is free
} usi_client_channel;

// A command to the world that a client waits for: the call of a service, or a parameter that is set.
typedef struct usi_foxglove_wait {
    enum { USI_WAIT_FREE, USI_WAIT_ASKED, USI_WAIT_ANSWERED } state;
    int32_t service;                         // -1: a parameter
    uint32_t call;                           // of the service
    uint32_t parameters;                     // that are told once it is done, a bit for each
    char request[USI_FOXGLOVE_REQUEST + 1];  // of the parameters
    bool is_ok;
    char text[USI_WORLD_REPLY];
} usi_foxglove_wait;

// What can be read of the world as parameters, the first ones set too.
typedef enum usi_foxglove_setting {
    USI_SETTING_RATE,
    USI_SETTING_PAUSED,
    USI_SETTING_SCENE,
    USI_SETTING_VERSION,
    USI_SETTING_COUNT
} usi_foxglove_setting;

typedef struct usi_foxglove_session {
    usi_foxglove *foxglove;
    usi_web_client *client;
    struct usi_foxglove_session *next;
    int64_t *subscription;  // per channel: the client's number for it; -1: none
    usi_client_channel says[USI_FOXGLOVE_CLIENT_CHANNELS];
    int32_t n_error;
    double allowance, allowed;  // requests that it may send now, and when that was reckoned
    int64_t n_lost;             // samples, not reported yet
    uint64_t n_ring_lost;       // as it was when last sent
    int64_t n_busy;             // commands that found no room, not reported yet
    int64_t reported;           // ms, monotonic: when losses were last sent
    int64_t clocked;            // ms, monotonic: when the time was last sent
    int64_t time;               // ns, simulated: what was sent; -1: nothing
    uint32_t watched;           // parameters whose changes it wants, a bit for each
    double told_rate;
    bool told_paused;
    usi_foxglove_wait wait[USI_FOXGLOVE_WAITING];  // guarded by the lock: the stepping thread answers
} usi_foxglove_session;

struct usi_foxglove {
    us_world *world;
    us_allocator allocator;
    us_proxy *proxy;
    usi_web *web;       // the stepping thread's; NULL: no samples come
    int32_t n_proxy;    // channels of the proxy
    int32_t n_channel;  // and those of the scene behind them
    int32_t clock;      // the channel of /clock; -1: none
    unsigned char *ring;
    _Atomic uint64_t head, tail;  // bytes ever written, ever read
    _Atomic uint64_t n_lost;      // samples that found the ring full

    // The scene: made by the stepping thread while the server's says that somebody wants it.
    usi_scenery *scene;
    _Atomic int32_t n_scene, n_viewer[USI_SCENERY_COUNT];
    _Atomic uint64_t n_arrival[USI_SCENERY_COUNT];

    pthread_mutex_t lock;
    double rate;  // guarded by it, as are the sessions' waits
    bool is_paused;
    const char *scene_name;  // its own copy

    // The server's thread alone.
    usi_foxglove_session *sessions;
    int32_t n_session;
    int32_t *n_subscriber;  // per channel
    int64_t time;           // ns, simulated: of the newest sample; -1: none yet
    usi_bytes info[2];      // serverInfo, for those who may only look and for those who may control
    usi_bytes channels;     // advertise
    usi_bytes services;     // advertiseServices
    usi_bytes text, frame;
    usi_foxglove_message message;
};

// foxglove_server.c
bool usi_foxglove_send_text(usi_foxglove_session *s, const usi_bytes *text);
void usi_foxglove_report_error(usi_foxglove_session *s, const char *message);
// An empty buffer for a message of JSON.
void usi_foxglove_begin_text(usi_bytes *text, usi_json *json, const char *op);
void usi_foxglove_end_text(usi_json *json);

// foxglove_ask.c: what clients ask for beside channels.
void usi_foxglove_write_services(usi_foxglove *f);
void usi_foxglove_call(usi_foxglove_session *s, const usi_foxglove_message *m);
void usi_foxglove_get_parameters(usi_foxglove_session *s, const usi_foxglove_message *m);
void usi_foxglove_set_parameters(usi_foxglove_session *s, const usi_foxglove_message *m);
void usi_foxglove_watch_parameters(usi_foxglove_session *s, const usi_foxglove_message *m);
void usi_foxglove_fetch(usi_foxglove_session *s, const usi_foxglove_message *m);
// Answers that have come, and parameters that have changed.
void usi_foxglove_tell(usi_foxglove_session *s);
// On the stepping thread: the parameters of now.
void usi_foxglove_take_settings(usi_foxglove *f);

#endif
