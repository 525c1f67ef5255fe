// Places of the server: who has to go when all are taken.
//
// There are as many places as `max_client`, and whoever opens connections and falls silent could hold all of
// them. So, when half are taken, silent clients are asked (by a ping, which every browser answers by itself),
// and when all are, a newcomer gets the place of the one that has been silent the longest:
//
//     heard    a message or a pong came, or it connected
//     asked    a ping was sent since; it is alive when it is heard after that
//     told     a message came: it drives, commands, asks for pictures
//
// Never of one that answered what it was asked, or told something within PROTECTED. Not more often than
// REPLACE_EVERY, so that a crowd of newcomers cannot push everybody out in one go. And whoever holds half of
// the places from one address gets only places of that address: others are not pushed out by a crowd.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bus/web_local.h"

// s. A client on a slow line answers within a second; one that drives tells something several times a second,
// and may be cut off for some seconds without losing its place.
static const double SILENT = 2, PROTECTED = 10, ASK_EVERY = 1, REPLACE_EVERY = 0.25;
// s: a connection that has not asked for anything yet keeps its slot for so long when all slots are taken.
static const double IDLE = 1;
// s that one who is replaced has for reading why.
enum { FAREWELL = 1 };

double usi_web_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void usi_web_heard(usi_web_client *c, bool has_told) {
    c->heard = usi_web_clock();
    if (has_told) c->told = c->heard;
}

// "10.0.0.7" of "10.0.0.7:4711", "fe80::1" of "fe80::1:4711".
static bool is_same_address(const char *a, const char *b) {
    const char *end_a = strrchr(a, ':'), *end_b = strrchr(b, ':');
    return end_a && end_b && end_a - a == end_b - b && strncmp(a, b, (size_t)(end_a - a)) == 0;
}

static void ask_silent(usi_web *web, double now) {
    if (now - web->asked < ASK_EVERY) return;
    web->asked = now;
    for (int32_t k = 0; k < web->n_slot; k++) {
        usi_web_client *c = &web->slots[k];
        if (!c->is_open || c->is_closing || now - c->heard < ASK_EVERY || c->asked > c->heard) continue;
        c->asked = now;
        c->must_ping = true;
        lws_callback_on_writable(c->wsi);
    }
}

static bool may_be_replaced(const usi_web_client *c, double now) {
    if (!c->is_open || !c->is_counted || c->is_closing) return false;
    if (c->told > 0 && now - c->told < PROTECTED) return false;
    return c->asked > c->heard && now - c->asked >= ASK_EVERY && now - c->heard >= SILENT;
}

static usi_web_client *find_silent(const usi_web_client *newcomer, bool must_be_same, double now) {
    usi_web *web = newcomer->web;
    usi_web_client *found = NULL;
    for (int32_t k = 0; k < web->n_slot; k++) {
        usi_web_client *c = &web->slots[k];
        if (!may_be_replaced(c, now) || (found && found->heard <= c->heard)) continue;
        if (!must_be_same || is_same_address(c->peer, newcomer->peer)) found = c;
    }
    return found;
}

static int32_t count_address(const usi_web_client *newcomer) {
    const usi_web *web = newcomer->web;
    int32_t n = 0;
    for (int32_t k = 0; k < web->n_slot; k++) {
        const usi_web_client *c = &web->slots[k];
        n += c->is_counted && is_same_address(c->peer, newcomer->peer);
    }
    return n;
}

bool usi_web_find_place(usi_web_client *newcomer) {
    usi_web *web = newcomer->web;
    const double now = usi_web_clock();
    if (2 * web->n_client >= web->def.max_client) ask_silent(web, now);
    if (web->n_client < web->def.max_client) return true;
    if (now - web->replaced < REPLACE_EVERY) return false;
    const bool must_be_same = 2 * count_address(newcomer) >= web->def.max_client;
    usi_web_client *c = find_silent(newcomer, must_be_same, now);
    if (!c) return false;
    web->replaced = now;
    usi_web_sent_away(web, c->peer,
                      "%s was silent for %.0f s while all %d places are taken: %s has its place", c->name,
                      now - c->heard, web->def.max_client, newcomer->peer);
    c->is_counted = false;
    web->n_client--;
    usi_web_close(c, "all places were taken, and this one was silent for the longest");
    lws_set_timeout(c->wsi, PENDING_TIMEOUT_CLOSE_SEND, FAREWELL);
    return true;
}

usi_web_client *usi_web_find_slot(usi_web *web) {
    usi_web_client *oldest = NULL;
    for (int32_t k = 0; k < web->n_slot; k++) {
        usi_web_client *c = &web->slots[k];
        if (!c->wsi) return c;
        if (!c->protocol && !c->is_answering && (!oldest || c->heard < oldest->heard)) oldest = c;
    }
    if (!oldest || usi_web_clock() - oldest->heard < IDLE) return NULL;
    usi_web_refused(web, oldest->peer, "it asked for nothing while all connections are taken");
    // The slot is free when this returns (LWS_CALLBACK_WSI_DESTROY).
    lws_set_timeout(oldest->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
    return oldest->wsi ? NULL : oldest;
}
