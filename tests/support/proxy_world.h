// Worlds with a proxy and no network, for tests: commands by calls, samples from the state.
#ifndef TEST_PROXY_WORLD_H
#define TEST_PROXY_WORLD_H

#include "understudy/proxy.h"
#include "wire/messages.h"
#include "world/world__recording.h"

// Messages have texts that may be written; nobody does.
#define TEXT(x) ((char *)(uintptr_t)(x))

typedef struct proxy_world {
    us_spec *spec;
    us_model *model;
    us_proxy *proxy;
    us_sim *sim;
    usi_world_recording recording;  // of proxy_world_record
    uint8_t bytes[65536];
} proxy_world;

// A scene text, as if it stood in scenes/. Fails the test when something is wrong with it.
void proxy_world_init(proxy_world *w, const char *scene);
void proxy_world_fini(proxy_world *w);
// The K10 on flat ground; `inside` is put into its <robot>, for example a <network>.
void proxy_world_k10(proxy_world *w, const char *inside);
// The same with objects of the scene that stand before the robot, so that its joints are not the first ones.
void proxy_world_k10_behind(proxy_world *w, const char *objects, const char *inside);
// Sim and proxy of a spec, which is taken over.
void proxy_world_of(proxy_world *w, us_spec *spec);
// Encodes and posts. The status of us_proxy_post.
us_status proxy_world_post(proxy_world *w, const char *topic, const us_message_type *type,
                           const void *message);
us_status proxy_world_drive(proxy_world *w, double vx, double vy, double wz);
void proxy_world_step(proxy_world *w, int n);
// From now on samples, commands and ticks go there; NULL ends it.
void proxy_world_record(proxy_world *w, us_recorder *recorder);

#endif
