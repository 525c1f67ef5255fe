// Worlds on stage for tests: worlds of small scenes without network and page, and commands with what came of
// them.
//
// A failed call fails the running cmocka test, with the library's own words.
#ifndef TEST_HOST_WORLD_H
#define TEST_HOST_WORLD_H

#include "understudy/world.h"

// A ground, the shape "slab" that is part of it, the object "stone" that lies loose, a "post" that stands
// with a gate on a hinge, and a "frame" that hangs on the world by two joints; the other scenes have the
// rover "k10" too, the last one with a battery of 500 Wh that gives 40 W when idle.
extern const char live_plain_scene[], live_robot_scene[], live_battery_scene[];

void live_ok(us_status status, const us_error *err);
us_spec *live_load(const char *scene);
us_world *live_open(const char *scene);
// The same; *log, which is emptied, gets every line of its log, "LEVEL TEXT".
typedef struct live_log {
    char text[8192];
} live_log;
us_world *live_open_logged(const char *scene, live_log *log);
void live_step(us_world *world, int n);

typedef struct live_reply {
    int n;
    int64_t id;
    us_status status;
    char text[1200];
} live_reply;
void live_on_reply(void *context, int64_t id, us_status status, const char *text);  // context: a live_reply

// Posts a command and turns once.
live_reply live_say(us_world *world, const char *text);
void live_done(us_world *world, const char *text);
// Refused with this status and a text that has the part, and nothing has changed.
void live_refused(us_world *world, const char *text, us_status status, const char *part);
// A velocity for the rover, which enters with the next step.
void live_drive(us_world *world, double v);
// The walker "hexapod" goes on at this speed for n ticks, told ten times a second.
void live_walk(us_world *world, double vx, int n);
// The text of scenes/hexapod.xml, on its rough ground or on a plane.
const char *live_walker_scene(bool is_flat);
// Runs the scene again beside a recording, which must begin as the scene does and give the same bits.
us_verify_result live_verify(const char *scene, const char *path);

double live_value(us_world *world, const char *name);
us_pose live_pose(us_world *world, const char *link);
bool live_has_link(us_world *world, const char *link);
void live_near(double value, double expected, double tolerance);

#endif
