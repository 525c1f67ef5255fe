// Inside the page: what its two threads have between them.
//
//   stepping thread                                   server's thread
//   us_view_show ---- frame: one of three --------> usi_page_wake: each session what it asked for
//        ^                                                |
//        +------ rate, contacts?, torques?, values? <-----+
//   reply of a command -> usi_session_reply (lock) -> sent with the next wake
//
// Three frames go round: one is being taken, one is being shown, and one lies between them, the newest that
// is whole. Neither thread ever waits for the other's copying, and a frame that nobody looked at in time is
// taken over. The lock guards the log, the replies and the list of watched values, each held for a few copies
// of short texts.
#ifndef USI_VIEW_PAGE_H
#define USI_VIEW_PAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/text_value.h"
#include "bus/web.h"
#include "firmware/firmware.h"
#include "proxy/tap.h"
#include "spec/spec.h"
#include "understudy/view.h"
#include "view/view__bytes.h"
#include "view/view__clouds.h"
#include "view/view__ruts.h"
#include "view/view__watch.h"
#include "wire/view.h"
#include "world/hooks.h"

enum {
    USI_PAGE_LOG = 200,                // lines that are kept
    USI_PAGE_LINE = 1024,              // bytes of one
    USI_PAGE_REPLIES = 16,             // commands of one client that may wait for their answers
    USI_PAGE_PAIRS = 4096,             // rows of the pair table that are shown
    USI_PAGE_CONTACTS = 8192,          // contacts that are shown
    USI_PAGE_PATH = 512,               // of a recording
    USI_PAGE_ERRORS = 20,              // protocol errors that a client may make
    USI_PAGE_QUEUE = 8 * 1024 * 1024,  // bytes that may wait for a client
    USI_PAGE_STATUS_HZ = 4,
    USI_PAGE_FAULTS = 2048,        // bytes of a robot's faults that are shown
    USI_PAGE_SOILS = 64,           // soils that are shown
    USI_PAGE_REGIONS = 256,        // and regions
    USI_PAGE_SOIL_CONTACTS = 256,  // and what stands in soil
};

// ---------------------------------------------------------------- frames (view_frame.c)

typedef struct usi_robot_status {
    int64_t n_command, n_refused;
    char refusal[USI_REFUSAL_MAX];
    char faults[USI_PAGE_FAULTS];      // each as a command would have it, a tab, in words, a line feed
    uint8_t script[USI_SCRIPT_LIMIT];  // as usi_proxy_script_state
    int32_t n_script;
} usi_robot_status;

// Taken four times a second.
typedef struct usi_page_status {
    uint64_t version;  // another number when it was taken anew; 0: never
    double time;       // s, simulated
    int64_t tick;
    us_pace_request request;
    us_view_pace pace;
    double energy;  // J
    bool is_recording;
    char path[USI_PAGE_PATH];
    int64_t n_message, n_byte;
    int32_t n_snapshot;
    struct {
        char name[USI_NAME_MAX + 1];
        double time;
    } snapshot[USI_WORLD_SNAPSHOTS];
    int32_t n_authority;
    char authority[USI_AUTHORITY_ROBOTS][USI_AUTHORITY_LINE];
    int32_t n_soil_contact;
    us_soil_contact soil_contact[USI_PAGE_SOIL_CONTACTS];
    int32_t n_robot;
    usi_robot_status *robot;
} usi_page_status;

// How materials touch and what soils are like. Taken when a pair, a soil, a region or the revision has
// changed.
typedef struct usi_view_pair {
    int32_t a, b;  // materials of the frame's model
    us_pair_values values;
} usi_view_pair;
typedef struct usi_view_soil {
    int32_t material;
    us_soil soil;
} usi_view_soil;
typedef struct usi_page_pairs {
    uint64_t version;
    int32_t n, cap;
    usi_view_pair *row;
    int32_t n_soil, n_region;
    usi_view_soil soil[USI_PAGE_SOILS];
    int32_t region[USI_PAGE_REGIONS];  // what each is made of
} usi_page_pairs;

typedef struct usi_view_frame {
    uint64_t number;         // from 1; 0: nothing was taken into it yet
    double taken;            // s, monotonic
    usi_revision *revision;  // what it is of: a reference
    uint64_t jump;           // counts usi_page_changed
    double time;             // s, simulated
    int64_t tick;
    int32_t n_body, cap_body;
    float (*pose)[7];  // x y z, qw qx qy qz
    bool has_contacts, has_torques;
    int32_t n_contact, cap_contact;
    usi_view_contact *contact;
    int32_t n_torque, cap_torque;
    float *torque;
    uint64_t watched;  // the generation of watched values whose names were looked up
    int32_t n_value;
    double value[USI_WATCH_SLOTS];
    bool is_known[USI_WATCH_SLOTS];
    usi_page_status status;
    usi_page_pairs pairs;
} usi_view_frame;

// What the stepping thread keeps between frames.
typedef struct usi_frame_taker {
    uint64_t n_frame, jump;
    double due, last, status_due;  // s, monotonic
    bool is_changed, is_pairs_old, is_world_new;
    usi_revision *revision;  // of the ids below and of the pair table; NULL: none
    usi_watch *watch;
    int32_t next_slot;  // the first whose name was not looked up yet
    uint64_t watched;   // as in usi_view_frame
    int32_t id[USI_WATCH_SLOTS];
    uint64_t born[USI_WATCH_SLOTS];
    usi_page_status status;
    usi_page_pairs pairs;
} usi_frame_taker;

// ---------------------------------------------------------------- sessions (session.c)

typedef struct usi_page_reply {
    int64_t id;
    bool is_ok;
    char text[USI_WORLD_REPLY];
} usi_page_reply;

typedef struct usi_session {
    us_view *view;
    usi_web_client *client;
    struct usi_session *next;
    double opened;  // s, monotonic

    // What it asked for.
    double hz;
    bool enable_contacts, enable_torques, enable_topics;
    uint32_t generation;  // of its list of values, by its own count
    int32_t n_slot;
    int32_t slot[USI_VIEW_VALUE_COUNT];
    uint64_t needed;  // the generation of the table from which on its values can be seen

    // What it was sent.
    double due;     // s, monotonic: when it wants the next frame
    bool is_full;   // that one has every body
    bool is_dirty;  // it asked for something new: a frame that is otherwise the same is sent too
    uint32_t revision;
    int64_t tick;
    uint64_t jump, frame, status, pairs, log, topics;  // 0: none yet
    int32_t points;                                    // of a lidar in a frame that it wants
    uint64_t cloud;                                    // the newest that it has
    uint32_t cloud_revision;
    uint32_t patches;  // the revision whose patches it was told
    uint64_t rut;      // the newest that it has
    double rut_due;    // s, monotonic
    bool is_watching_sent;
    uint32_t watching_revision;
    int32_t n_sent, cap_sent;
    float (*sent)[7];

    // How it behaves.
    int32_t n_error;
    bool is_closing;
    double allowance, allowed;  // messages that it may send now, and when that was reckoned

    // Answers to its commands. Guarded by the page's lock: the stepping thread adds to them.
    int32_t n_waiting;  // posted and not answered yet: for each there is room in `reply`
    int32_t n_reply;
    usi_page_reply reply[USI_PAGE_REPLIES];
} usi_session;

// ---------------------------------------------------------------- the page

typedef struct usi_log_line {
    int32_t level;
    double time;
    char text[USI_PAGE_LINE];
} usi_log_line;

typedef struct usi_page_robot {
    char *name;
    char *topic;  // of its cmd_vel; NULL: it has none
} usi_page_robot;

// A topic as it was when its rate was last reckoned.
typedef struct usi_topic_count {
    int64_t n_message;
    double hz;
} usi_topic_count;

// An answer to GET that is likely to be asked for again.
typedef struct usi_page_asset {
    char name[40];
    void *bytes;
    size_t length;
} usi_page_asset;

struct us_view {
    us_world *world;
    us_allocator allocator;
    usi_arena arena;
    struct usi_foxglove *foxglove;
    usi_web *web;  // for the stepping thread; callbacks have no use for it
    char token[80];
    usi_web_user *users;
    char url[256];
    const char *scene;
    int32_t n_robot;
    usi_page_robot *robots;

    // What the server's thread asks of the stepping thread.
    _Atomic int32_t rate;  // frames per second; 0: nobody looks
    _Atomic bool want_contacts, want_torques;
    _Atomic int32_t want_points;
    _Atomic uint64_t watch_generation;

    pthread_mutex_t lock;
    usi_watch *watch;                 // the newest copy of the table
    uint64_t n_line;                  // log lines ever
    usi_log_line line[USI_PAGE_LOG];  // line i is at i % USI_PAGE_LOG

    usi_view_frame frames[3];
    _Atomic uint32_t
        between;  // which one lies between the threads; 4 is added when the server's thread has not seen it
    uint32_t back, front;  // the stepping thread's, the server's
    usi_frame_taker taker;
    usi_ruts ruts;  // these two have locks of their own
    usi_clouds clouds;

    // The server's thread alone.
    usi_session *sessions;
    int32_t n_session;
    usi_watch_table table;
    usi_view_message message;
    usi_bytes buffer;  // one message under construction
    // Texts and frames that are the same for all.
    usi_bytes status_text, pairs_text, contacts, torques;
    uint64_t status_made, pairs_made, contacts_made, torques_made;
    usi_bytes topics_text;
    double topics_time;  // s, monotonic
    uint64_t topics_made;
    int32_t n_topic;
    usi_topic_count *topics;
    // Of the revision of now, for GET.
    uint32_t cache_revision;
    char *world_json;
    size_t world_length;
    int32_t n_asset, cap_asset;
    usi_page_asset *assets;
    size_t asset_bytes;
};

double usi_view_clock(void);  // s, monotonic

// view_frame.c
void usi_view_frames_fini(us_view *view);
// The newest frame, for the server's thread; NULL when there is none.
const usi_view_frame *usi_view_newest_frame(us_view *view);
// Hook of the world: the next frame is taken at once, and clients are notified.
void usi_view_changed(void *context);

// session.c: the subprotocol "understudy.v1". Server's thread, but for usi_session_reply.
us_status usi_session_open(void *context, usi_web_client *client, void **out_session);
void usi_session_message(void *context, void *session, bool is_binary, const void *bytes, size_t length);
void usi_session_drained(void *context, void *session);
void usi_session_close(void *context, void *session);
us_world_reply usi_session_reply;
// The role that a world command needs.
usi_web_role usi_world_command_role(const char *text);
void usi_page_wake(us_view *view);

// page_text.c: texts of the server, each into a buffer that is emptied first. False when there is no memory.
bool usi_text_hello(usi_bytes *out, const char *scene, uint32_t revision, usi_web_role role);
bool usi_text_revision(usi_bytes *out, uint32_t revision);
bool usi_text_reply(usi_bytes *out, int64_t id, bool is_ok, const char *text);
bool usi_text_error(usi_bytes *out, const char *text);
bool usi_text_status(usi_bytes *out, const us_view *view, const usi_page_status *status);
bool usi_text_pairs(usi_bytes *out, const usi_view_frame *frame);
bool usi_text_deformables(usi_bytes *out, uint32_t revision, int32_t n, const us_deformable_info *patches);
bool usi_text_log(usi_bytes *out, us_view *view, uint64_t from, uint64_t *out_to);  // takes the lock
bool usi_text_topics(usi_bytes *out, us_view *view, double elapsed);                // and reckons their rates
bool usi_text_watching(usi_bytes *out, const usi_session *session, const usi_view_frame *frame);

// page_get.c: what a GET under /api/ is answered.
void usi_page_get(void *context, const char *path, usi_web_answer *out);
void usi_page_get_fini(us_view *view);

// page.c: a line for the log without waking the server, for its own thread.
void usi_page_note(us_view *view, int32_t level, double time, const char *text);

#endif
