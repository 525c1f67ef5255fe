// The lines of the lease's topics: words with one space between, the first names the format.
//
//     lease1 ROBOT SEQ BOOT NONCE TERM ROLE take|wait
//     lease1 ROBOT BOOT ASKER SEQ NONCE TERM ACCESS ROLE HOLDER LEFT_MS TAKER quiet|busy
//
// SEQ, TERM and LEFT_MS are decimal; BOOT and NONCE 16 hexadecimal digits; participants 24.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gate/gate_machine.h"

static const char format_name[] = "lease1";
static const char *const role_names[US_GATE_N_ROLE] = {"none", "passive", "beside", "active"};
static const char *const access_names[US_GATE_N_ACCESS] = {"open", "held", "closed"};
static const char *const busy_names[] = {"quiet", "busy"};
static const int64_t ms = 1000000;

const char *us_gate_role_name(us_gate_role role) {
    return (unsigned)role < (unsigned)US_GATE_N_ROLE ? role_names[role] : "";
}

void usi_gate_id_write(const usi_gate_id *id, char out[25]) {
    for (int i = 0; i < 12; i++)
        snprintf(out + 2 * i, 3, "%02x", id->v[i]);
}

void usi_lease_request_write(const usi_lease_request *r, char out[USI_LEASE_LINE]) {
    snprintf(out, USI_LEASE_LINE, "%s %.63s %" PRIu64 " %016" PRIx64 " %016" PRIx64 " %" PRIu64 " %s %s",
             format_name, r->robot, r->seq, r->boot, r->nonce, r->term, us_gate_role_name(r->role),
             r->is_take ? "take" : "wait");
}

void usi_lease_answer_write(const usi_lease_answer *a, char out[USI_LEASE_LINE]) {
    char asker[25], holder[25], taker[25];
    usi_gate_id_write(&a->asker, asker);
    usi_gate_id_write(&a->holder, holder);
    usi_gate_id_write(&a->taker, taker);
    snprintf(out, USI_LEASE_LINE,
             "%s %.63s %016" PRIx64 " %s %" PRIu64 " %016" PRIx64 " %" PRIu64 " %s %s %s %" PRId64 " %s %s",
             format_name, a->robot, a->boot, asker, a->seq, a->nonce, a->term, access_names[a->access],
             us_gate_role_name(a->role), holder, a->left / ms, taker, busy_names[a->is_busy]);
}

// ---- reading ----

// A line that is read word by word; `at` NULL: it is wrong.
typedef struct word_reader {
    const char *at, *end;
} word_reader;

// The next word, of at most cap - 1 characters, into out.
static void read_word(word_reader *w, char *out, size_t cap) {
    out[0] = 0;
    if (!w->at) return;
    const char *space = memchr(w->at, ' ', (size_t)(w->end - w->at));
    const char *behind = space ? space : w->end;
    size_t n = (size_t)(behind - w->at);
    if (n == 0 || n >= cap) {
        w->at = NULL;
        return;
    }
    memcpy(out, w->at, n);
    out[n] = 0;
    w->at = space ? space + 1 : w->end;
}

static int digit_of(char c, int base) {
    int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
    return d < base ? d : -1;
}

// A number: 16 hexadecimal digits, or up to 19 decimal ones.
static uint64_t read_number(word_reader *w, int base) {
    char word[20];
    read_word(w, word, sizeof word);
    uint64_t x = 0;
    size_t n = strlen(word);
    if (base == 16 && n != 16) w->at = NULL;
    for (size_t i = 0; i < n && w->at; i++) {
        int d = digit_of(word[i], base);
        if (d < 0) w->at = NULL;
        x = x * (uint64_t)base + (uint64_t)d;
    }
    return w->at ? x : 0;
}

static usi_gate_id read_id(word_reader *w) {
    char word[25];
    usi_gate_id id = {{0}};
    read_word(w, word, sizeof word);
    if (strlen(word) != 24) w->at = NULL;
    for (int i = 0; i < 24 && w->at; i++) {
        int d = digit_of(word[i], 16);
        if (d < 0) w->at = NULL;
        id.v[i / 2] = (uint8_t)(16 * id.v[i / 2] + d);
    }
    return id;
}

static int read_name(word_reader *w, const char *const *names, int n) {
    char word[16];
    read_word(w, word, sizeof word);
    for (int i = 0; i < n && w->at; i++) {
        if (strcmp(word, names[i]) == 0) return i;
    }
    w->at = NULL;
    return 0;
}

static word_reader begin(const char *text, size_t length, char robot[US_GATE_NAME]) {
    char word[16];
    word_reader w = {.at = text, .end = text + length};
    if (length == 0 || text[length - 1] == ' ' || memchr(text, 0, length)) w.at = NULL;
    read_word(&w, word, sizeof word);
    if (strcmp(word, format_name) != 0) w.at = NULL;
    read_word(&w, robot, US_GATE_NAME);
    return w;
}

bool usi_lease_request_read(const char *text, size_t length, usi_lease_request *out) {
    static const char *const wishes[] = {"wait", "take"};
    *out = (usi_lease_request){0};
    word_reader w = begin(text, length, out->robot);
    out->seq = read_number(&w, 10);
    out->boot = read_number(&w, 16);
    out->nonce = read_number(&w, 16);
    out->term = read_number(&w, 10);
    out->role = (us_gate_role)read_name(&w, role_names, US_GATE_N_ROLE);
    out->is_take = read_name(&w, wishes, 2) == 1;
    return w.at == w.end;
}

bool usi_lease_answer_read(const char *text, size_t length, usi_lease_answer *out) {
    *out = (usi_lease_answer){0};
    word_reader w = begin(text, length, out->robot);
    out->boot = read_number(&w, 16);
    out->asker = read_id(&w);
    out->seq = read_number(&w, 10);
    out->nonce = read_number(&w, 16);
    out->term = read_number(&w, 10);
    out->access = (us_gate_access)read_name(&w, access_names, US_GATE_N_ACCESS);
    out->role = (us_gate_role)read_name(&w, role_names, US_GATE_N_ROLE);
    out->holder = read_id(&w);
    uint64_t left = read_number(&w, 10);
    out->taker = read_id(&w);
    out->is_busy = read_name(&w, busy_names, 2) == 1;
    if (left > (uint64_t)(US_GATE_LEASE / ms)) return false;
    out->left = (int64_t)left * ms;
    return w.at == w.end;
}
