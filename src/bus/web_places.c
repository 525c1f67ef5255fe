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
// Not of one that answered what it was asked, or told something within PROTECTED, but for two cases: an
// address that holds half of the places or more gives one to a newcomer from an address that has at least two
// fewer, and who may do more gets the place of one who may do less. Then the one goes that has told nothing
// for the longest.
//
// Not more often than REPLACE_EVERY, so that a crowd of newcomers cannot push everybody out in one go. And
// whoever holds half of the places from one address gets only places of that address: others are not pushed
// out by a crowd.
//
// Before that there are slots, for connections that have not asked for anything yet (or are still on their
// TLS). When all are taken, a newcomer gets that of the oldest such connection from the address with the most
// of them: who floods takes its own, and whoever asks at once, as programs do, has asked before its turn
// comes.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bus/bus__web.h"

// s. A client on a slow line answers within a second; one that drives tells something several times a second,
// and may be cut off for some seconds without losing its place.
static const double SILENT = 2, PROTECTED = 10, ASK_EVERY = 1, REPLACE_EVERY = 0.25;
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

// FNV-1a of 64 bits: two addresses that share a hash share their places, no more.
uint64_t usi_web_address(const char *peer) {
    const char *end = strrchr(peer, ':');
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *at = peer; *at && at != end; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return hash;
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
        if (!must_be_same || c->address == newcomer->address) found = c;
    }
    return found;
}

static int32_t count_address(const usi_web *web, uint64_t address) {
    int32_t n = 0;
    for (int32_t k = 0; k < web->n_slot; k++)
        n += web->slots[k].is_counted && web->slots[k].address == address;
    return n;
}

// One of a crowd, or one who may do less than the newcomer.
static usi_web_client *find_lesser(const usi_web_client *newcomer) {
    usi_web *web = newcomer->web;
    const int32_t n_own = count_address(web, newcomer->address);
    usi_web_client *found = NULL;
    for (int32_t k = 0; k < web->n_slot; k++) {
        usi_web_client *c = &web->slots[k];
        if (!c->is_open || !c->is_counted || c->is_closing || (found && found->told <= c->told)) continue;
        const int32_t n = count_address(web, c->address);
        if ((2 * n >= web->def.max_client && n > n_own + 1) || c->role < newcomer->role) found = c;
    }
    return found;
}

bool usi_web_find_place(usi_web_client *newcomer) {
    usi_web *web = newcomer->web;
    const double now = usi_web_clock();
    if (2 * web->n_client >= web->def.max_client) ask_silent(web, now);
    if (web->n_client < web->def.max_client) return true;
    if (now - web->replaced < REPLACE_EVERY) return false;
    const bool must_be_same = 2 * count_address(web, newcomer->address) >= web->def.max_client;
    usi_web_client *c = find_silent(newcomer, must_be_same, now);
    const bool is_silent = c != NULL;
    if (!is_silent) c = find_lesser(newcomer);
    if (!c) return false;
    web->replaced = now;
    if (is_silent) {
        usi_web_sent_away(web, c->peer,
                          "%s was silent for %.0f s while all %d places are taken: %s has its place", c->name,
                          now - c->heard, web->def.max_client, newcomer->peer);
    } else {
        usi_web_sent_away(
            web, c->peer,
            "%s, of an address with %d of all %d places and with the role %s: %s has its place, "
            "with the role %s",
            c->name, count_address(web, c->address), web->def.max_client, usi_role_name(c->role),
            newcomer->peer, usi_role_name(newcomer->role));
    }
    c->is_counted = false;
    web->n_client--;
    usi_web_close(c, is_silent ? "all places were taken, and this one was silent for the longest"
                               : "all places were taken, and this one was needed for another");
    lws_set_timeout(c->wsi, PENDING_TIMEOUT_CLOSE_SEND, FAREWELL);
    return true;
}

static bool has_asked(const usi_web_client *c) { return c->protocol || c->is_answering; }

static int32_t count_not_asked(const usi_web *web, uint64_t address) {
    int32_t n = 0;
    for (int32_t k = 0; k < web->n_slot; k++)
        n += !has_asked(&web->slots[k]) && web->slots[k].address == address;
    return n;
}

usi_web_client *usi_web_find_slot(usi_web *web) {
    usi_web_client *found = NULL;
    int32_t n_found = 0;
    for (int32_t k = 0; k < web->n_slot; k++) {
        usi_web_client *c = &web->slots[k];
        if (!c->wsi) return c;
        if (has_asked(c)) continue;
        const int32_t n = count_not_asked(web, c->address);
        if (found && (n < n_found || (n == n_found && found->heard <= c->heard))) continue;
        found = c;
        n_found = n;
    }
    if (!found) return NULL;
    usi_web_refused(web, found->peer, "it asked for nothing while all connections are taken");
    // The slot is free when this returns (LWS_CALLBACK_WSI_DESTROY). With TLS the first one says farewell and
    // would wait for an answer; the second does not.
    for (int k = 0; k < 2 && found->wsi; k++)
        lws_set_timeout(found->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
    return found->wsi ? NULL : found;
}
