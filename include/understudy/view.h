// The view of a live world: a web page in any browser, and the robots' topics for Foxglove, on one port.
//
//     us_view_create(world, &def, &view, &err);
//     us_view_show(view, &pace);                       // between steps, and while paused
//     us_view_destroy(view);                           // before the world
//
// docs/page.md describes the page, docs/viewer-protocol.md what it says to the server. All functions are for
// the thread that steps; the server has a thread of its own, and no client holds up the step.
#ifndef UNDERSTUDY_VIEW_H
#define UNDERSTUDY_VIEW_H

#include "understudy/bus.h"
#include "understudy/world.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_view us_view;

typedef struct us_view_def {
    const char *address;  // default "127.0.0.1"
    int32_t port;         // default 8080; 0: any
    const char *token;    // for control from clients of an address that is not loopback; NULL: one is made up
    const char *users;    // a file of registered users and their roles (docs/page.md); NULL: none
    bool enable_tls;      // https and wss; default false
    const char *tls_cert, *tls_key;  // files in PEM; NULL: a certificate is made for this run
    bool search_free_port;           // when the port is taken, try the next 20; default true
} us_view_def;
US_API us_view_def us_view_def_default(void);

// Opens the port and serves. `def` may be NULL. A world has one view: US_ERR_ARG for a second. US_ERR_IO for
// an address or port that cannot be used, US_ERR_VALUE for a token that cannot stand in an address, and for
// certificates and files of users that cannot be used.
US_API us_status us_view_create(us_world *world, const us_view_def *def, us_view **out_view, us_error *err);
US_API void us_view_destroy(us_view *view);  // before the world; NULL is allowed
// "http://localhost:8080/", with the token where one is needed; NULL for NULL.
US_API const char *us_view_url(const us_view *view);
// SHA-256 of the certificate, "AB:CD:...", for whoever opens the page to compare; "" without TLS.
US_API const char *us_view_fingerprint(const us_view *view);

// How the run goes, for the page.
typedef struct us_view_pace {
    double actual;   // simulated seconds per second, of late
    double step_us;  // wall time of a step, of late
    int64_t n_missed;
    double worst_late;  // s
    int64_t n_dropped;  // frames of lidars that were left out to keep the pace
} us_view_pace;
// Takes a frame of the world when one is due (60 Hz at most) and somebody looks. Cheap when not: call it
// between batches and while paused. `pace` may be NULL; a view of NULL does nothing.
US_API void us_view_show(us_view *view, const us_view_pace *pace);

// The scene as topics of the network, for RViz and other viewers (docs/network.md): ground, objects, ruts and
// contacts below /understudy/scene. What stands still is sent once, for those who come later too; the rest
// only while somebody listens.
typedef struct us_scene_topics us_scene_topics;
// `view` is where meshes can be fetched; NULL: they are left out. Bus, view and world must stay. Errors as of
// us_bus_add_writer.
US_API us_status us_scene_topics_open(us_world *world, us_bus *bus, const us_view *view,
                                      us_scene_topics **out_topics, us_error *err);
US_API void us_scene_topics_close(us_scene_topics *topics);  // NULL is allowed
// Between batches of steps, and while paused: sends what is due, ten times a second at most. NULL does
// nothing.
US_API void us_scene_topics_show(us_scene_topics *topics);

#ifdef __cplusplus
}
#endif
#endif
