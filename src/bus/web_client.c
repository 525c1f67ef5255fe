// One WebSocket client: messages from fragments, and the queue of messages to it.
//
// Nothing is written but when libwebsockets says that the socket takes something, and then one message at a
// time: what libwebsockets cannot send at once it keeps, and comes back when that is gone. Only then does a
// message leave the queue, so that the backlog is honest. The rest of the way is kept short
// (TCP_NOTSENT_LOWAT in web.c): what waits, waits here, where the sessions can see it and send less.
//
// libwebsockets checks opcodes, reserved bits, fragments and UTF-8; frames without a mask, which no browser
// sends, it takes like others.
#include <stdio.h>
#include <string.h>

#include "bus/bus__web.h"

static size_t message_size(size_t length) { return sizeof(usi_web_message) + LWS_PRE + length; }

static void drop_first(usi_web_client *c) {
    usi_web_message *m = c->first;
    c->first = m->next;
    if (!c->first) c->last = NULL;
    c->n_message--;
    c->n_byte -= m->length;
    usi_release(&c->web->def.allocator, m, message_size(m->length), _Alignof(usi_web_message));
}

bool usi_web_send(usi_web_client *client, bool is_binary, const void *bytes, size_t length) {
    usi_web_client *c = client;
    if (!c->is_open || c->is_closing) return false;
    // Many small messages are worth as much as a few large ones.
    const size_t each = message_size(0), room = c->protocol->max_queue;
    if (length > room || c->n_byte + c->n_message * each > room - length) return false;
    usi_web_message *m = usi_alloc(&c->web->def.allocator, message_size(length), _Alignof(usi_web_message));
    if (!m) return false;
    *m = (usi_web_message){.length = length, .is_binary = is_binary};
    if (length) memcpy(m->bytes + LWS_PRE, bytes, length);
    if (c->last) {
        c->last->next = m;
    } else {
        c->first = m;
    }
    c->last = m;
    c->n_message++;
    c->n_byte += length;
    lws_callback_on_writable(c->wsi);
    return true;
}

size_t usi_web_backlog(const usi_web_client *client) { return client->n_byte; }
usi_web_role usi_web_get_role(const usi_web_client *client) { return client->role; }

const char *usi_web_user_name(const usi_web_client *client) { return client->user ? client->user->name : ""; }
const char *usi_web_client_name(const usi_web_client *client) { return client->name; }
const char *usi_web_client_protocol(const usi_web_client *client) { return client->protocol->name; }

// Length of a text cut to at most `max` bytes, at the end of a UTF-8 character.
static size_t cut_at_character(const char *text, size_t max) {
    size_t n = strlen(text);
    if (n <= max) return n;
    while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80)
        max--;
    return max;
}

void usi_web_close(usi_web_client *client, const char *why) {
    usi_web_client *c = client;
    if (!c->is_open || c->is_closing) return;
    c->is_closing = true;
    snprintf(c->why, sizeof c->why, "%.*s", (int)cut_at_character(why ? why : "", sizeof c->why - 1),
             why ? why : "");
    lws_callback_on_writable(c->wsi);
    // One that never reads never becomes writeable.
    lws_set_timeout(c->wsi, PENDING_TIMEOUT_CLOSE_SEND, c->web->def.timeout);
}

static int close_now(usi_web_client *c, enum lws_close_status code, const char *why) {
    c->is_closing = true;
    unsigned char text[sizeof c->why];
    const size_t n = strlen(why);
    memcpy(text, why, n);
    lws_close_reason(c->wsi, code, text, n);
    return -1;
}

int usi_web_client_established(usi_web_client *c) {
    usi_web *web = c->web;
    const char *label = c->protocol->label ? c->protocol->label : "page";
    snprintf(c->name, sizeof c->name, "%.24s:%lld%s%s", label, (long long)++web->serial, c->user ? ":" : "",
             usi_web_user_name(c));
    usi_web_heard(c, false);
    c->is_open = true;  // messages may be queued from now on
    if (c->protocol->open(c->protocol->context, c, &c->session) == US_OK) return 0;
    c->is_open = false;
    usi_web_refused(web, c->peer, "a session of %s cannot be opened", c->protocol->name);
    return -1;
}

// Room for `more` bytes after those that are there.
static bool grow_message(usi_web_client *c, size_t more) {
    const us_allocator *a = &c->web->def.allocator;
    size_t need = c->message_length + more;
    if (need <= c->message_cap) return true;
    size_t cap = c->message_cap ? 2 * c->message_cap : 4096;
    if (cap < need) cap = need;
    unsigned char *part = usi_alloc(a, cap, 1);
    if (!part) return false;
    if (c->message_length) memcpy(part, c->part, c->message_length);
    usi_release(a, c->part, c->message_cap, 1);
    c->part = part;
    c->message_cap = cap;
    return true;
}

int usi_web_client_receive(usi_web_client *c, const void *bytes, size_t length) {
    if (!c->is_open || c->is_closing) return 0;
    struct lws *wsi = c->wsi;
    lws_validity_confirmed(wsi);
    usi_web_heard(c, true);
    const size_t max = c->protocol->max_message, still = lws_remaining_packet_payload(wsi);
    // `still` is what the frame's header says, up to 2^63: never added to anything before it is known to be
    // small.
    if (still > max || length > max - still || c->message_length > max - still - length) {
        usi_web_refused(c->web, c->peer, "%s sent a message of more than %zu bytes", c->name, max);
        return close_now(c, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "the message is too large");
    }
    const bool is_whole = lws_is_final_fragment(wsi);
    if (c->message_length == 0 && is_whole) {
        c->protocol->message(c->protocol->context, c->session, lws_frame_is_binary(wsi), bytes, length);
    } else {
        if (!grow_message(c, length))
            return close_now(c, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "out of memory");
        if (length) memcpy(c->part + c->message_length, bytes, length);
        c->message_length += length;
        if (!is_whole) return 0;
        size_t n = c->message_length;
        c->message_length = 0;
        c->protocol->message(c->protocol->context, c->session, lws_frame_is_binary(wsi), c->part, n);
    }
    return 0;
}

int usi_web_client_writeable(usi_web_client *c) {
    if (!c->is_open) return 0;
    const bool had = c->first != NULL;
    if (had && c->is_writing) {  // libwebsockets has got rid of it
        c->is_writing = false;
        drop_first(c);
    }
    if (c->must_ping && !lws_send_pipe_choked(c->wsi)) {
        // With a word in it: libwebsockets passes no empty pong on.
        unsigned char word[LWS_PRE + 5] = {0};
        memcpy(word + LWS_PRE, "there", 5);
        c->must_ping = false;
        if (lws_write(c->wsi, word + LWS_PRE, 5, LWS_WRITE_PING) < 5) return -1;
    }
    while (c->first && !lws_send_pipe_choked(c->wsi)) {
        usi_web_message *m = c->first;
        if (lws_write(c->wsi, m->bytes + LWS_PRE, m->length,
                      m->is_binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT) < (int)m->length)
            return -1;
        if (lws_partial_buffered(c->wsi)) {
            c->is_writing = true;
            break;
        }
        drop_first(c);
    }
    if (c->first) {
        lws_callback_on_writable(c->wsi);
    } else if (c->is_closing) {
        // What was queued before it was to be closed has been said.
        return close_now(c, LWS_CLOSE_STATUS_POLICY_VIOLATION, c->why);
    } else if (had && c->protocol->drained) {
        c->protocol->drained(c->protocol->context, c->session);
    }
    return 0;
}

void usi_web_client_end(usi_web_client *c) {
    if (c->is_open) {
        c->is_open = false;
        c->protocol->close(c->protocol->context, c->session);
    }
    while (c->first)
        drop_first(c);
    usi_release(&c->web->def.allocator, c->part, c->message_cap, 1);
    c->part = NULL;
    c->message_length = c->message_cap = 0;
    c->session = NULL;
    c->is_writing = false;
    if (c->is_counted) c->web->n_client--;
    c->is_counted = false;
}
