// A world in this process with its page, and clients of it, for tests.
//
// One thread turns, steps and shows the world, and reads the clients between: whatever is waited for, the
// world goes on meanwhile. What does not come in time fails the test.
#ifndef TEST_PAGE_RIG_H
#define TEST_PAGE_RIG_H

#include <cjson/cJSON.h>

#include "view/view__page.h"
#include "ws_client.h"

enum { PAGE_PATIENCE = 8000 };  // ms; a machine under load may take a second

typedef struct page_rig {
    us_world *world;
    us_view *view;
    int port;
    char url[256];
    int n_step;  // per turn
} page_rig;
extern page_rig page;
extern const char page_scene[];  // a ball that falls from high up, and a block on the ground

void page_check(us_status status, const us_error *err);
// A scene's text, or a file; `given` and `allocator` may be NULL.
void page_start(const char *text, const char *file, const us_view_def *given, const us_allocator *allocator);
void page_stop(void);
void page_turn(void);  // takes commands, steps unless paused, shows
uint32_t page_body(const char *name);

ws_client *page_open(const char *path);
void page_leave(ws_client *c);
void page_say(ws_client *c, const char *format, ...) US_PRINTF(2, 3);
bool page_next(
    ws_client *c,
    double until);  // any message; `until` by usi_view_clock. False: none came, or the connection is closed
// The next text with this op; others are passed over. To be deleted.
cJSON *page_text(ws_client *c, const char *op);
double page_number(const cJSON *json, const char *key);
const char *page_text_of(const cJSON *json, const char *key);
bool page_is_true(const cJSON *json, const char *key);
// Sends a command and waits for its answer, whose text goes to `out` (which may be NULL). True when it says
// ok.
bool page_command(ws_client *c, const char *text, char *out, size_t cap);

typedef struct page_frame {
    int kind, flags;
    uint32_t epoch, n;
    double time;
    int64_t tick;
    const uint8_t *entries;  // until the client's next message
} page_frame;
// The next frame of a kind; all else is passed over.
page_frame page_frame_of(ws_client *c, int kind);
// A body's pose in a frame; false when the body is not in it.
bool page_pose_in(const page_frame *f, uint32_t body, float out[7]);

#endif
