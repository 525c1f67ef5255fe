// Any bytes to a session of the ASCII link, whole and in pieces: it makes the same of both, what it
// takes means something, and what it sends back is one message.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "understudy/link.h"
#include "wire/motor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) __builtin_trap();
}

// One message, that ends where it ends.
static void check_reply(const char *reply, size_t length) {
    must(length >= 5 && length <= USI_MOTOR_REPLY);
    must(memchr(reply, ';', length) == reply + length - 1);
}

static void check_event(const usi_motor_event *e) {
    char reply[USI_MOTOR_REPLY], name[USI_MOTOR_NAME + 1];
    must(e->length <= USI_MOTOR_TEXT);
    if (e->kind == USI_MOTOR_REFUSED) {
        must(e->reason != USI_MOTOR_GOOD && e->reason < USI_MOTOR_REASON_COUNT);
        check_reply(reply, usi_motor_format_refusal(e->text, e->length, e->reason, reply, sizeof reply));
        return;
    }
    const usi_motor_command *c = &e->command;
    must(fabs(c->value) <= USI_MOTOR_GREATEST && c->motor == -1);
    must(usi_motor_has_name(c->kind) ? usi_motor_name_is_valid(c->name) : c->name[0] == 0);
    must(usi_motor_is_stop(c->kind) == usi_motor_text_is_stop(e->text, e->length));
    must(c->n_number >= 0 && c->n_number <= USI_MOTOR_NUMBERS && memchr(c->word, 0, sizeof c->word));
    for (int i = 0; i < c->n_number; i++)
        must(fabs(c->number[i]) <= USI_MOTOR_GREATEST);
    if (c->kind == USI_MOTOR_RUN) must((unsigned)c->function < USI_FUNCTION_COUNT);
    if (c->kind == USI_MOTOR_TRAJECTORY) must(c->acceleration > 0 && c->max_velocity > 0);
    check_reply(reply, usi_motor_format_ack(e->text, e->length, reply, sizeof reply));

    // Its numbers as a state: what is printed reads back as it was.
    usi_motor_status status, back;
    if (usi_motor_level_of(c->kind) != USI_LEVEL_MOTOR || c->kind == USI_MOTOR_STOP_ALL) return;
    must(usi_motor_status_round(c->acceleration, c->max_velocity, c->value, &status));
    size_t n = usi_motor_format_status(c->name, &status, reply, sizeof reply);
    check_reply(reply, n);
    must(usi_motor_parse_status(reply, n - 1, name, &back));
    must(strcmp(name, c->name) == 0);
    must(back.acceleration == status.acceleration && back.velocity == status.velocity &&
         back.position == status.position);
}

// Feeds all in pieces of at most `piece` bytes. Returns a hash of what came out.
static uint64_t run(const uint8_t *data, size_t size, size_t piece) {
    usi_motor_session s;
    usi_motor_session_init(&s);
    usi_motor_event e;
    uint64_t hash = 0, n_event = 0;
    for (size_t at = 0; at < size;) {
        size_t n = size - at < piece ? size - at : piece, used = usi_motor_session_feed(&s, data + at, n, &e);
        must(used >= 1 && used <= n && s.length <= USI_MOTOR_TEXT);
        at += used;
        if (e.kind == USI_MOTOR_NOTHING) continue;
        n_event++;
        check_event(&e);
        hash = us_hash_bytes(hash, e.text, e.length);
        hash = us_hash_bytes(hash, &e.reason, sizeof e.reason);
    }
    usi_motor_session_end(&s, &e);
    if (e.kind != USI_MOTOR_NOTHING) {
        n_event++;
        check_event(&e);
    }
    uint64_t n_counted = s.n_command;
    for (int i = 0; i < USI_MOTOR_REASON_COUNT; i++)
        n_counted += s.n_refused[i];
    must(n_counted == n_event);
    return us_hash_bytes(hash, &s.n_empty, sizeof s.n_empty);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t whole = run(data, size, size + 1);
    must(run(data, size, 1) == whole && run(data, size, 7) == whole);
    char name[USI_MOTOR_NAME + 1];
    usi_motor_status status;
    (void)usi_motor_parse_status((const char *)data, size, name, &status);
    us_link_message message;
    if (us_link_message_parse((const char *)data, size, &message))
        must(message.n_number >= 0 && message.n_number <= US_LINK_NUMBERS &&
             memchr(message.text, 0, sizeof message.text) &&
             memchr(message.reason, 0, sizeof message.reason));
    return 0;
}
