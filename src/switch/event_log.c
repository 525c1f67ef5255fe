// The scribe: a thread that writes down what happens.
//
// A log may be a terminal that somebody holds, a pipe that nobody reads, or a disk that is busy. The thread
// that watches over the sources must not wait for any of them: it leaves events and lines of evidence here,
// in their order, and goes on.
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/monotonic_cond.h"
#include "switch/switch.h"

// Notes that may wait. One that finds no room is counted, and the count is written as soon as there is some.
enum { MAX_NOTE = 4096 };

typedef struct usi_note {
    struct usi_note *next;
    int64_t time;  // wall time, ns
    bool is_evidence;
    size_t n;  // characters of the text, with the 0 at its end
    char text[];
} usi_note;

static void write_evidence(us_switch *sw, const usi_note *note) {
    const char *path = sw->handover.evidence;
    FILE *file = fopen(path, "ae");
    bool is_written = file && fputs(note->text, file) != EOF && fputc('\n', file) != EOF;
    if (file && fclose(file)) is_written = false;
    if (!is_written) usi_switch_say(sw, "the evidence of a hand-over cannot be written to %s", path);
}

static void write_down(us_switch *sw, const usi_note *note, int64_t n_lost) {
    char text[64];
    snprintf(text, sizeof text, "%lld events found no room to be written down", (long long)n_lost);
    if (n_lost > 0 && sw->on_event) sw->on_event(sw->context, note->time, text);
    if (note->is_evidence) {
        write_evidence(sw, note);
    } else if (sw->on_event) {
        sw->on_event(sw->context, note->time, note->text);
    }
}

static void *run(void *context) {
    us_switch *sw = context;
    usi_event_log *s = &sw->scribe;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->is_closing)
            pthread_cond_wait(&s->wake, &s->lock);
        usi_note *note = s->first;
        if (!note) break;
        s->first = note->next;
        if (!s->first) s->last = NULL;
        int64_t n_lost = s->n_lost;
        s->n_lost = 0;
        pthread_mutex_unlock(&s->lock);
        write_down(sw, note, n_lost);
        usi_release(&sw->allocator, note, sizeof *note + note->n, _Alignof(usi_note));
        pthread_mutex_lock(&s->lock);
        if (--s->n_waiting == 0) {
            s->is_stuck = false;
            pthread_cond_signal(&s->done);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void add(us_switch *sw, int64_t time, const char *text, bool is_evidence) {
    usi_event_log *s = &sw->scribe;
    size_t n = strlen(text) + 1;
    usi_note *note = usi_alloc(&sw->allocator, sizeof *note + n, _Alignof(usi_note));
    if (note) {
        *note = (usi_note){.time = time, .is_evidence = is_evidence, .n = n};
        memcpy(note->text, text, n);
    }
    pthread_mutex_lock(&s->lock);
    bool has_room = note && s->n_waiting < MAX_NOTE;
    if (has_room) {
        if (s->last) {
            s->last->next = note;
        } else {
            s->first = note;
        }
        s->last = note;
        s->n_waiting++;
        pthread_cond_signal(&s->wake);
    } else {
        s->n_lost++;
    }
    pthread_mutex_unlock(&s->lock);
    if (note && !has_room) usi_release(&sw->allocator, note, sizeof *note + n, _Alignof(usi_note));
}

void usi_event_log_note(us_switch *sw, int64_t time, const char *text) {
    if (sw->on_event) add(sw, time, text, false);
}

void usi_event_log_keep(us_switch *sw, const char *line) {
    if (sw->handover.evidence[0]) add(sw, 0, line, true);
}

void usi_event_log_wait(us_switch *sw, int64_t most) {
    usi_event_log *s = &sw->scribe;
    int64_t deadline = usi_switch_now() + most;
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    pthread_mutex_lock(&s->lock);
    while (s->n_waiting > 0 && !s->is_stuck) {
        if (pthread_cond_timedwait(&s->done, &s->lock, &until)) s->is_stuck = true;
    }
    pthread_mutex_unlock(&s->lock);
}

us_status usi_event_log_open(us_switch *sw, us_error *err) {
    usi_event_log *s = &sw->scribe;
    usi_cond_init(&s->wake);
    usi_cond_init(&s->done);
    pthread_mutex_init(&s->lock, NULL);
    s->has_thread = pthread_create(&s->thread, NULL, run, sw) == 0;
    return s->has_thread ? US_OK : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no thread for a switch");
}

void usi_event_log_close(us_switch *sw) {
    usi_event_log *s = &sw->scribe;
    pthread_mutex_lock(&s->lock);
    s->is_closing = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread) pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->wake);
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->lock);
}
