// The event log: a thread that writes events and lines of evidence.
//
// The log may be a stopped terminal, a pipe that nobody reads, or a busy disk. The thread with the watchdog
// must not wait for any of them: it queues events here, in their order, and continues.
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/monotonic_cond.h"
#include "switch/switch.h"

// Capacity of the queue. An event that does not fit is counted, and the count is written with the next event.
enum { MAX_EVENT = 4096 };

typedef struct usi_event {
    struct usi_event *next;
    int64_t time;  // wall time, ns
    bool is_evidence;
    size_t n;  // characters of the text, with the 0 at its end
    char text[];
} usi_event;

// A line that cannot be written is said, and lost; who is in control is not changed by it.
static void write_evidence(us_switch *sw, usi_event *event) {
    us_error err = {0};
    // The line's end takes the place of the 0.
    event->text[event->n - 1] = '\n';
    if (!usi_bytes_append(sw->handover.evidence, 0666, event->text, event->n, &err)) return;
    usi_switch_log(sw, "the evidence of a hand-over is lost: %.300s: %.120s; %.120s", err.file, err.message,
                   err.remedy);
}

static void write_event(us_switch *sw, usi_event *event, int64_t n_lost) {
    char text[64];
    snprintf(text, sizeof text, "%lld events lost: the log is too slow", (long long)n_lost);
    if (n_lost > 0 && sw->on_event) sw->on_event(sw->context, event->time, text);
    if (event->is_evidence) {
        write_evidence(sw, event);
    } else if (sw->on_event) {
        sw->on_event(sw->context, event->time, event->text);
    }
}

static void *run(void *context) {
    us_switch *sw = context;
    usi_event_log *log = &sw->event_log;
    pthread_mutex_lock(&log->lock);
    for (;;) {
        while (!log->first && !log->is_closing)
            pthread_cond_wait(&log->wake, &log->lock);
        usi_event *event = log->first;
        if (!event) break;
        log->first = event->next;
        if (!log->first) log->last = NULL;
        int64_t n_lost = log->n_lost;
        log->n_lost = 0;
        pthread_mutex_unlock(&log->lock);
        write_event(sw, event, n_lost);
        usi_release(&sw->allocator, event, sizeof *event + event->n, _Alignof(usi_event));
        pthread_mutex_lock(&log->lock);
        if (--log->n_queued == 0) {
            log->is_stuck = false;
            pthread_cond_signal(&log->done);
        }
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

static void add(us_switch *sw, int64_t time, const char *text, bool is_evidence) {
    usi_event_log *log = &sw->event_log;
    size_t n = strlen(text) + 1;
    usi_event *event = usi_alloc(&sw->allocator, sizeof *event + n, _Alignof(usi_event));
    if (event) {
        *event = (usi_event){.time = time, .is_evidence = is_evidence, .n = n};
        memcpy(event->text, text, n);
    }
    pthread_mutex_lock(&log->lock);
    bool has_room = event && log->n_queued < MAX_EVENT;
    if (has_room) {
        if (log->last) {
            log->last->next = event;
        } else {
            log->first = event;
        }
        log->last = event;
        log->n_queued++;
        pthread_cond_signal(&log->wake);
    } else {
        log->n_lost++;
    }
    pthread_mutex_unlock(&log->lock);
    if (event && !has_room) usi_release(&sw->allocator, event, sizeof *event + n, _Alignof(usi_event));
}

void usi_event_log_add(us_switch *sw, int64_t time, const char *text) {
    if (sw->on_event) add(sw, time, text, false);
}

void usi_event_log_add_evidence(us_switch *sw, const char *line) {
    if (sw->handover.evidence[0]) add(sw, 0, line, true);
}

void usi_event_log_drain(us_switch *sw, int64_t timeout) {
    usi_event_log *log = &sw->event_log;
    int64_t deadline = usi_switch_now() + timeout;
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    pthread_mutex_lock(&log->lock);
    while (log->n_queued > 0 && !log->is_stuck) {
        if (pthread_cond_timedwait(&log->done, &log->lock, &until)) log->is_stuck = true;
    }
    pthread_mutex_unlock(&log->lock);
}

us_status usi_event_log_open(us_switch *sw, us_error *err) {
    usi_event_log *log = &sw->event_log;
    usi_cond_init(&log->wake);
    usi_cond_init(&log->done);
    pthread_mutex_init(&log->lock, NULL);
    log->has_thread = pthread_create(&log->thread, NULL, run, sw) == 0;
    return log->has_thread ? US_OK : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no thread for a switch");
}

void usi_event_log_close(us_switch *sw) {
    usi_event_log *log = &sw->event_log;
    pthread_mutex_lock(&log->lock);
    log->is_closing = true;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    if (log->has_thread) pthread_join(log->thread, NULL);
    pthread_cond_destroy(&log->wake);
    pthread_cond_destroy(&log->done);
    pthread_mutex_destroy(&log->lock);
}
