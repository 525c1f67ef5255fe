// The robots' topics for Foxglove, Lichtblick and whoever else speaks the Foxglove WebSocket protocol, on the
// page's port.
//
//     usi_foxglove_create(world, name, &foxglove, &err);
//     n = usi_foxglove_protocols(foxglove, protocols);   // for usi_web_def
//     usi_web_create(&def, &web, &err);
//     usi_foxglove_feed(foxglove, web);                  // samples begin to come
//     ... usi_foxglove_wake(foxglove) whenever the server's thread was woken
//     usi_foxglove_feed(foxglove, NULL);                 // and end
//     usi_web_destroy(web);
//     usi_foxglove_destroy(foxglove);
//
// All but usi_foxglove_wake are for the stepping thread.
#ifndef USI_VIEW_FOXGLOVE_H
#define USI_VIEW_FOXGLOVE_H

#include "bus/web.h"
#include "understudy/world.h"

enum { USI_FOXGLOVE_N_PROTOCOL = 2 };

// What the names of our own assets begin with; the number of the revision follows.
#define USI_FOXGLOVE_ASSETS "package://understudy/"

typedef struct usi_foxglove usi_foxglove;

// `scene` is its name, which must stay.
us_status usi_foxglove_create(us_world *world, const char *scene, usi_foxglove **out_foxglove, us_error *err);
void usi_foxglove_destroy(usi_foxglove *foxglove);  // after the server; NULL is allowed
// Fills in what the server needs to know; returns how many.
int32_t usi_foxglove_protocols(usi_foxglove *foxglove, usi_web_protocol out[USI_FOXGLOVE_N_PROTOCOL]);
void usi_foxglove_feed(usi_foxglove *foxglove, usi_web *web);
// Between steps, and while paused: the scene for those who have asked for it. Cheap when nobody has.
void usi_foxglove_show(usi_foxglove *foxglove);
// On the server's thread: hands out the samples that have come.
void usi_foxglove_wake(usi_foxglove *foxglove);

#endif
