// Worlds on stage for tests: hosts of small scenes without network and page, and commands with what came of
// them.
//
// A failed call fails the running cmocka test, with the library's own words.
#ifndef TEST_HOST_WORLD_H
#define TEST_HOST_WORLD_H

#include "understudy/world.h"

// A ground, the shape "slab" that is part of it, the object "stone" that lies loose, a "post" that stands
// with a gate on a hinge, and a "frame" that hangs on the world by two joints; the other scene has the rover
// "k10" too.
extern const char host_plain_scene[], host_robot_scene[];

void host_ok(us_status status, const us_error *err);
us_spec *host_load(const char *scene);
us_world *host_open(const char *scene);
void host_step(us_world *host, int n);

typedef struct host_reply {
    int n;
    int64_t id;
    us_status status;
    char text[1200];
} host_reply;
void host_on_reply(void *context, int64_t id, us_status status, const char *text);  // context: a host_reply

// Posts a command and turns once.
host_reply host_say(us_world *host, const char *text);
void host_done(us_world *host, const char *text);
// Refused with this status and a text that has the part, and nothing has changed.
void host_refused(us_world *host, const char *text, us_status status, const char *part);
// A velocity for the rover, which enters with the next step.
void host_drive(us_world *host, double v);
// The walker "hexapod" goes on at this speed for n ticks, told ten times a second.
void host_walk(us_world *host, double vx, int n);
// The text of scenes/hexapod.xml, on its rough ground or on a plane.
const char *host_walker_scene(bool is_flat);
// Runs the scene again beside a recording, which must begin as the scene does and give the same bits.
us_verify_result host_verify(const char *scene, const char *path);

double host_value(us_world *host, const char *name);
us_pose host_pose(us_world *host, const char *link);
bool host_has_link(us_world *host, const char *link);
void host_near(double value, double expected, double tolerance);

#endif
