// Writing a recording: callers fill a queue, a thread empties it into an MCAP file.
//
// The queue is a ring of bytes. `head` and `tail` count all bytes that ever went in and out; entries are
// contiguous, so that one which does not fit before the end of the ring starts at its beginning, behind a
// gap.
//
//          tail (thread)         head (callers)
//           v                     v
//     |.....[head bytes][head bytes].......|        .  free
//
// A message is copied into the ring under the lock. Attachments, metadata and messages that are larger than a
// quarter of the ring are not copied: the entry points to the caller's memory, and the caller waits until the
// thread has passed it.
//
// The thread sleeps until a chunk's worth of bytes waits, somebody waits for it, or the time to flush has
// come; then it takes what is there, some bytes at a time, without the lock. At every flush the open chunk is
// closed, whatever is in it, and the file is synced to the disk: between two flushes lies all that a crash
// can cost.
//
// The first failure stays. From then on entries are thrown away, so that nobody waits for ever, and every
// caller is notified.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/monotonic_cond.h"
#include "record/rosbag.h"
#include "understudy/record.h"
#include "wire/mcap.h"

enum {
    MIN_QUEUE = 64 * 1024,         // bytes
    MIN_CHUNK = 1024,              // bytes
    MAX_CHUNK = 64 * 1024 * 1024,  // bytes; with the largest message it stays below what readers accept
    BATCH = 256 * 1024,            // bytes taken before the callers get their room back
    MAX_CHANNEL = 4096,            // as many as readers accept
};
_Static_assert((long long)MAX_CHUNK + USI_MCAP_MAX_MESSAGE < USI_MCAP_MAX_CHUNK,
               "every chunk that is written can be read");
_Static_assert((int)US_COMPRESSION_NONE == (int)USI_MCAP_NONE &&
                   (int)US_COMPRESSION_LZ4 == (int)USI_MCAP_LZ4 &&
                   (int)US_COMPRESSION_ZSTD == (int)USI_MCAP_ZSTD,
               "the same numbers in both");

typedef enum entry_kind { ENTRY_MESSAGE, ENTRY_ATTACHMENT, ENTRY_METADATA, ENTRY_GAP } entry_kind;

// The head of an entry in the ring; the bytes follow, filled up to ENTRY_ALIGN.
typedef struct queue_entry {
    entry_kind kind;
    int32_t channel;
    uint32_t sequence;
    int64_t log_time, publish_time;
    size_t length;
    const void *bytes;  // NULL: they follow
    const void *more;   // attachment, metadata: what else belongs to it
    size_t size;        // in the ring
} queue_entry;

enum { ENTRY_ALIGN = 64 };
_Static_assert(sizeof(queue_entry) <= ENTRY_ALIGN, "a gap of any size has room for its head");

typedef struct queued_attachment {
    const char *name, *media_type;
} queued_attachment;

typedef struct metadata {
    const char *name;
    int32_t n;
    const char *const *keys, *const *values;
} metadata;

// Lives in the arena; all but the sequence stays as it is.
typedef struct written_channel {
    const char *topic, *type, *schema, *hash;
    const char *qos;    // usi_rosbag_qos; "": not known
    uint32_t sequence;  // of the next message; under the lock
} written_channel;

typedef struct known_schema {
    const char *type;
    uint16_t id;
} known_schema;

struct us_recorder {
    us_allocator allocator;
    char path[256];
    size_t chunk_size;
    int64_t flush_every;  // ns

    pthread_mutex_t mutex;
    pthread_cond_t wake;   // the thread
    pthread_cond_t moved;  // the tail, for callers that wait
    bool is_closing;
    int32_t n_waiting;  // callers
    uint8_t *ring;
    size_t ring_size, wake_size;
    uint64_t head, tail;
    usi_arena arena;
    written_channel **channels;
    int32_t n_channel, cap_channel;
    int64_t last_time;  // max log time so far
    us_recorder_info info;
    us_error error;

    // The thread's own.
    pthread_t thread;
    int fd;
    usi_mcap_writer writer;
    known_schema *schemas;
    int32_t n_schema, cap_schema;
    int32_t n_written_channel;
    bool is_failed;    // as info.failed, without the lock
    bool is_unsynced;  // the disk does not have all of the file yet
};

us_recorder_def us_recorder_def_default(void) {
    us_recorder_def def = {.allocator = us_allocator_default(),
                           .compression = US_COMPRESSION_ZSTD,
                           .chunk_size = 1024 * 1024,
                           .flush_every = 0.5,
                           .queue_size = 32 * 1024 * 1024};
    return def;
}

// ---- The thread: into the file ----

static void fail(us_recorder *r, us_status status, const char *what, const char *remedy) {
    r->is_failed = true;
    pthread_mutex_lock(&r->mutex);
    if (!r->info.failed) {
        us_place place = {.file = r->path};
        r->info.failed =
            us_error_set(&r->error, status, &place, remedy, "the recording stopped after %lld bytes: %s",
                         (long long)r->info.n_byte, what);
    }
    pthread_mutex_unlock(&r->mutex);
}

static void fail_writer(us_recorder *r, us_status status) { fail(r, status, us_status_text(status), NULL); }

static void fail_file(us_recorder *r, int error) {
    const char *remedy = error == ENOSPC || error == EDQUOT || error == EFBIG
                             ? "make room, or record to another disk; what was written before can be read"
                             : "look at the disk, or record to another; what was written before can be read";
    fail(r, US_ERR_IO, strerror(error), remedy);
}

// Whether what was written can still be found. A file without a name goes on taking bytes, and is gone when
// it is closed; one that was shortened has lost its beginning.
static void check_file(us_recorder *r) {
    struct stat s;
    if (r->is_failed || fstat(r->fd, &s) != 0 || !S_ISREG(s.st_mode)) return;
    if (s.st_nlink == 0)
        fail(r, US_ERR_IO, "the file was deleted while it was written",
             "leave it where it is until the recording has ended");
    else if ((int64_t)s.st_size < r->info.n_byte)
        fail(r, US_ERR_IO, "the file was shortened while it was written",
             "let nobody else write it until the recording has ended");
}

// Writes what the writer has made.
static void drain_writer(us_recorder *r) {
    usi_mcap_writer *w = &r->writer;
    if (r->is_failed) return;
    if (w->failed) {
        fail_writer(r, w->failed);
        return;
    }
    check_file(r);
    if (r->is_failed) return;
    for (size_t done = 0; done < w->out.length;) {
        ssize_t n = write(r->fd, w->out.data + done, w->out.length - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            fail_file(r, n < 0 ? errno : ENOSPC);
            return;
        }
        done += (size_t)n;
    }
    if (!w->out.length) return;
    r->is_unsynced = true;
    usi_mcap_writer_taken(w);
    pthread_mutex_lock(&r->mutex);
    r->info.n_byte = (int64_t)w->offset;
    r->info.n_chunk = w->n_chunk;
    pthread_mutex_unlock(&r->mutex);
}

static void close_chunk(us_recorder *r) {
    if (r->is_failed) return;
    us_status status = usi_mcap_write_chunk(&r->writer);
    if (status) fail_writer(r, status);
    drain_writer(r);
}

static void sync_file(us_recorder *r) {
    if (r->is_failed || !r->is_unsynced) return;
    check_file(r);
    if (r->is_failed) return;
    int failed = fdatasync(r->fd);
    while (failed && errno == EINTR)
        failed = fdatasync(r->fd);
    // Pipes and devices cannot be synced to a disk, and need not.
    if (failed && errno != EINVAL && errno != EROFS && errno != ENOTSUP) fail_file(r, errno);
    r->is_unsynced = false;
}

static us_status write_channel(us_recorder *r, const written_channel *c) {
    uint16_t schema = 0, id;
    for (int32_t i = 0; i < r->n_schema; i++) {
        if (strcmp(r->schemas[i].type, c->type) == 0) schema = r->schemas[i].id;
    }
    us_status status = US_OK;
    if (!schema) {
        status =
            usi_grow(&r->allocator, (void **)&r->schemas, r->n_schema, &r->cap_schema, sizeof *r->schemas);
        if (!status)
            status =
                usi_mcap_write_schema(&r->writer, c->type, "ros2msg", c->schema, strlen(c->schema), &schema);
        if (status) return status;
        r->schemas[r->n_schema++] = (known_schema){c->type, schema};
    }
    // What rosbag2 writes and looks for: no profile offered means its defaults.
    const char *keys[] = {"offered_qos_profiles", "topic_type_hash"}, *values[] = {c->qos, c->hash};
    return usi_mcap_write_channel(&r->writer, schema, c->topic, "cdr", 2, keys, values, &id);
}

// All channels that callers have added so far, in their order: ids are their indices + 1.
static void write_channels(us_recorder *r) {
    for (;;) {
        pthread_mutex_lock(&r->mutex);
        const written_channel *c =
            r->n_written_channel < r->n_channel ? r->channels[r->n_written_channel] : NULL;
        pthread_mutex_unlock(&r->mutex);
        if (!c || r->is_failed) return;
        us_status status = write_channel(r, c);
        if (status) fail_writer(r, status);
        r->n_written_channel++;
    }
}

// What rosbag2 knows of a file, as it is now: at the start, for one that never gets its end, and at the end.
static us_status write_rosbag(us_recorder *r) {
    const usi_mcap_writer *w = &r->writer;
    const us_allocator *a = &r->allocator;
    const size_t n = (size_t)r->n_written_channel;
    usi_rosbag_topic *topics = usi_alloc(a, (n + 1) * sizeof *topics, _Alignof(usi_rosbag_topic));
    if (!topics) return US_ERR_MEMORY;
    pthread_mutex_lock(&r->mutex);  // the table of channels may grow
    for (size_t i = 0; i < n; i++) {
        const written_channel *c = r->channels[i];
        topics[i] = (usi_rosbag_topic){c->topic, c->type, c->hash, c->qos, w->channels[i].n_message};
    }
    pthread_mutex_unlock(&r->mutex);
    const usi_rosbag bag = {.path = r->path,
                            .n_message = w->n_message,
                            .first = w->n_message ? w->first : 0,
                            .last = w->n_message ? w->last : 0,
                            .n_topic = (int32_t)n,
                            .topics = topics};
    const size_t size = usi_rosbag_metadata(&bag, NULL, 0) + 1;
    char *text = usi_alloc(a, size, 1);
    us_status status = US_ERR_MEMORY;
    if (text) {
        usi_rosbag_metadata(&bag, text, size);
        const char *key = "serialized_metadata", *value = text;
        status = usi_mcap_write_metadata(&r->writer, "rosbag2", 1, &key, &value);
    }
    usi_release(a, text, size, 1);
    usi_release(a, topics, (n + 1) * sizeof *topics, _Alignof(usi_rosbag_topic));
    return status;
}

static void write_entry(us_recorder *r, const queue_entry *e) {
    if (r->is_failed) return;
    usi_mcap_writer *w = &r->writer;
    us_status status = US_OK;
    switch (e->kind) {
    case ENTRY_MESSAGE: {
        if (e->channel >= r->n_written_channel) write_channels(r);
        if (r->is_failed) return;
        const void *bytes = e->bytes ? e->bytes : (const void *)(e + 1);
        status = usi_mcap_write_message(w, (uint16_t)(e->channel + 1), e->sequence, (uint64_t)e->log_time,
                                        (uint64_t)e->publish_time, bytes, e->length);
        if (!status && w->chunk.length >= r->chunk_size) close_chunk(r);
        break;
    }
    case ENTRY_ATTACHMENT: {
        const queued_attachment *a = e->more;
        status = usi_mcap_write_attachment(w, a->name, a->media_type, (uint64_t)e->log_time, 0, e->bytes,
                                           e->length);
        drain_writer(r);
        break;
    }
    case ENTRY_METADATA: {
        const metadata *m = e->more;
        status = usi_mcap_write_metadata(w, m->name, m->n, m->keys, m->values);
        drain_writer(r);
        break;
    }
    case ENTRY_GAP:
        break;
    }
    if (status) fail_writer(r, status);
}

// ---- The thread: its life ----

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Sleeps until there is reason to work. Under the lock.
static void wait_for_work(us_recorder *r, int64_t deadline) {
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000),
                             .tv_nsec = (long)(deadline % 1000000000)};
    while (!r->is_closing && (!r->n_waiting || r->tail == r->head) && r->head - r->tail < r->wake_size) {
        if (pthread_cond_timedwait(&r->wake, &r->mutex, &until) == ETIMEDOUT) return;
    }
}

// Takes all that is in the queue now; what comes meanwhile is for the next time, so that callers who never
// pause do not put off the flush. The lock is held at the start and at the end, not while writing.
static void empty_queue(us_recorder *r) {
    uint64_t to = r->head;
    while (r->tail < to) {
        uint64_t from = r->tail;
        pthread_mutex_unlock(&r->mutex);
        while (from < to && from - r->tail < BATCH) {
            const queue_entry *e = (const queue_entry *)(r->ring + from % r->ring_size);
            write_entry(r, e);
            from += e->size;
        }
        pthread_mutex_lock(&r->mutex);
        r->tail = from;
        if (r->n_waiting) pthread_cond_broadcast(&r->moved);
    }
}

static void *run(void *context) {
    us_recorder *r = context;
    int64_t deadline = now() + r->flush_every;
    pthread_mutex_lock(&r->mutex);
    for (;;) {
        wait_for_work(r, deadline);
        // Read before the queue is emptied: what came before closing is written.
        bool is_closing = r->is_closing;
        empty_queue(r);
        if (!is_closing && now() < deadline) continue;
        pthread_mutex_unlock(&r->mutex);
        write_channels(r);
        if (is_closing) break;
        close_chunk(r);
        sync_file(r);
        deadline = now() + r->flush_every;
        pthread_mutex_lock(&r->mutex);
    }
    if (!r->is_failed) {
        us_status status = usi_mcap_write_chunk(&r->writer);
        if (!status) status = write_rosbag(r);
        if (!status) status = usi_mcap_write_end(&r->writer);
        if (status) fail_writer(r, status);
        drain_writer(r);
        sync_file(r);
    }
    return NULL;
}

// ---- The callers ----

// The entry's place in the ring, with its head written and the lock held; NULL after a failure, without the
// lock. Waits while the ring is full.
static queue_entry *enqueue(us_recorder *r, const queue_entry *head, size_t length) {
    size_t size = (sizeof(queue_entry) + length + ENTRY_ALIGN - 1) / ENTRY_ALIGN * ENTRY_ALIGN;
    bool has_waited = false;
    for (;;) {
        if (r->info.failed) {
            pthread_mutex_unlock(&r->mutex);
            return NULL;
        }
        size_t at = (size_t)(r->head % r->ring_size), gap = r->ring_size - at < size ? r->ring_size - at : 0;
        if (r->head + gap + size - r->tail <= r->ring_size) {
            if (gap) *(queue_entry *)(r->ring + at) = (queue_entry){.kind = ENTRY_GAP, .size = gap};
            queue_entry *e = (queue_entry *)(r->ring + (r->head + gap) % r->ring_size);
            *e = *head;
            e->size = size;
            r->head += gap + size;
            return e;
        }
        if (!has_waited) r->info.n_wait++;
        has_waited = true;
        r->n_waiting++;
        pthread_cond_signal(&r->wake);
        pthread_cond_wait(&r->moved, &r->mutex);
        r->n_waiting--;
    }
}

// Until the thread has passed what is in the queue now. The lock is held before and after.
static void wait_until_passed(us_recorder *r) {
    uint64_t head = r->head;
    r->n_waiting++;
    pthread_cond_signal(&r->wake);
    while (r->tail < head)
        pthread_cond_wait(&r->moved, &r->mutex);
    r->n_waiting--;
}

us_status us_recorder_write(us_recorder *r, int32_t index, int64_t log_time, int64_t publish_time,
                            const void *bytes, size_t length) {
    if (!r || (!bytes && length) || log_time < 0 || publish_time < 0) return US_ERR_ARG;
    if (length > USI_MCAP_MAX_MESSAGE) return US_ERR_LIMIT;
    bool is_large = length > r->ring_size / 4;
    queue_entry head = {.kind = ENTRY_MESSAGE,
                        .channel = index,
                        .log_time = log_time,
                        .publish_time = publish_time,
                        .length = length};
    pthread_mutex_lock(&r->mutex);
    if (index < 0 || index >= r->n_channel) {
        pthread_mutex_unlock(&r->mutex);
        return US_ERR_ARG;
    }
    if (is_large) head.bytes = bytes;
    queue_entry *e = enqueue(r, &head, is_large ? 0 : length);
    if (!e) return us_recorder_get_info(r).failed;
    // The number is given where the order is: while this thread waited for room, others may have gone ahead.
    e->sequence = r->channels[index]->sequence++;
    r->info.n_message++;
    if (log_time > r->last_time) r->last_time = log_time;
    if (is_large) {
        r->info.n_wait++;
        wait_until_passed(r);
    } else {
        if (length) memcpy(e + 1, bytes, length);
        if (r->head - r->tail >= r->wake_size) pthread_cond_signal(&r->wake);
    }
    us_status status = r->info.failed;
    pthread_mutex_unlock(&r->mutex);
    return status;
}

// Puts an entry that points to the caller's memory, and waits until it is in the file.
static us_status push_and_wait(us_recorder *r, queue_entry *head) {
    pthread_mutex_lock(&r->mutex);
    head->log_time = r->last_time;
    if (!enqueue(r, head, 0)) return us_recorder_get_info(r).failed;
    wait_until_passed(r);
    us_status status = r->info.failed;
    pthread_mutex_unlock(&r->mutex);
    return status;
}

us_status us_recorder_attach(us_recorder *r, const char *name, const char *media_type, const void *bytes,
                             size_t length) {
    if (!r || !name || (!bytes && length)) return US_ERR_ARG;
    queued_attachment a = {name, media_type ? media_type : ""};
    queue_entry head = {.kind = ENTRY_ATTACHMENT, .bytes = bytes, .length = length, .more = &a};
    return push_and_wait(r, &head);
}

us_status us_recorder_set_metadata(us_recorder *r, const char *name, int32_t n, const char *const *keys,
                                   const char *const *values) {
    if (!r || !name || n < 0 || (n && (!keys || !values))) return US_ERR_ARG;
    for (int32_t i = 0; i < n; i++) {
        if (!keys[i] || !values[i]) return US_ERR_ARG;
    }
    metadata m = {name, n, keys, values};
    queue_entry head = {.kind = ENTRY_METADATA, .more = &m};
    return push_and_wait(r, &head);
}

// A new channel, under the lock.
static us_status new_channel(us_recorder *r, const char *topic, const us_message_type *type,
                             const us_offered_qos *offered, us_error *err) {
    if (r->n_channel == MAX_CHANNEL)
        return us_error_set(err, US_ERR_LIMIT, NULL, NULL, "a recording has at most %d channels",
                            (int)MAX_CHANNEL);
    bool ok = true;
    written_channel *c = usi_arena_alloc(&r->arena, sizeof *c, _Alignof(written_channel));
    us_status status = usi_grow(&r->allocator, (void **)&r->channels, r->n_channel, &r->cap_channel,
                                sizeof(written_channel *));
    const char *copy = usi_arena_text(&r->arena, topic, &ok), *hash = us_message_hash(type);
    char text[USI_ROSBAG_QOS] = "";
    if (offered) usi_rosbag_qos(offered, text);
    const char *qos = usi_arena_text(&r->arena, text, &ok);
    if (!c || status || !ok)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory left for another channel");
    *c = (written_channel){copy, us_message_name(type), us_message_schema(type), hash ? hash : "", qos, 0};
    r->channels[r->n_channel++] = c;
    return US_OK;
}

int32_t us_recorder_add_channel(us_recorder *r, const char *topic, const us_message_type *type,
                                us_error *err) {
    return us_recorder_add_offered(r, topic, type, NULL, err);
}

int32_t us_recorder_add_offered(us_recorder *r, const char *topic, const us_message_type *type,
                                const us_offered_qos *offered, us_error *err) {
    if (!r || !topic || !topic[0] || !type || (offered && offered->depth < 0)) {
        us_error_set(err, US_ERR_ARG, NULL, NULL,
                     "us_recorder_add_channel: recorder, topic or type is missing, or a depth is below 0");
        return -1;
    }
    const char *name = us_message_name(type);
    int32_t index = 0;
    pthread_mutex_lock(&r->mutex);
    while (index < r->n_channel &&
           (strcmp(r->channels[index]->topic, topic) != 0 || strcmp(r->channels[index]->type, name) != 0))
        index++;
    if (index == r->n_channel && new_channel(r, topic, type, offered, err)) index = -1;
    pthread_mutex_unlock(&r->mutex);
    return index;
}

us_recorder_info us_recorder_get_info(const us_recorder *recorder) {
    // Looking changes nothing but the lock.
    us_recorder *r = (us_recorder *)recorder;
    if (!r) return (us_recorder_info){.failed = US_ERR_ARG};
    pthread_mutex_lock(&r->mutex);
    us_recorder_info info = r->info;
    pthread_mutex_unlock(&r->mutex);
    return info;
}

// ---- Opening and closing ----

static us_status check(const us_recorder_def *def, us_error *err) {
    if (!def || !def->path || !def->path[0])
        return us_error_set(err, US_ERR_ARG, NULL, "set path in the definition", "a recording needs a file");
    us_place place = {.file = def->path};
    if ((unsigned)def->compression >= US_COMPRESSION_COUNT) {
        return us_error_set(err, US_ERR_ARG, &place, "use US_COMPRESSION_NONE, _LZ4 or _ZSTD",
                            "compression %d is unknown", (int)def->compression);
    }
    if (def->chunk_size < MIN_CHUNK || def->chunk_size > MAX_CHUNK) {
        return us_error_set(err, US_ERR_ARG, &place, "use 1 KiB to 64 MiB",
                            "a chunk_size of %zu bytes is out of range", def->chunk_size);
    }
    if (!(def->flush_every >= 1e-3 && def->flush_every <= 3600)) {
        return us_error_set(err, US_ERR_ARG, &place, "use 0.001 to 3600 s",
                            "flush_every = %g s is out of range", def->flush_every);
    }
    if (def->queue_size < MIN_QUEUE || def->queue_size > SIZE_MAX / 4) {
        return us_error_set(err, US_ERR_ARG, &place, "use 64 KiB or more",
                            "a queue_size of %zu bytes is out of range", def->queue_size);
    }
    if (!def->allocator.alloc || !def->allocator.release) {
        return us_error_set(err, US_ERR_ARG, &place, "start from us_recorder_def_default()",
                            "the definition has no allocator");
    }
    return US_OK;
}

static void init_lock(us_recorder *r) {
    pthread_mutex_init(&r->mutex, NULL);
    usi_cond_init(&r->wake);
    pthread_cond_init(&r->moved, NULL);
}

// The thread takes no signals: they are for those who know what to do with them.
static us_status start_thread(us_recorder *r, us_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&r->thread, NULL, run, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no thread for the recording: %s",
                                strerror(error))
                 : US_OK;
}

// All but the thread. What was opened and allocated is released by release(), also when this fails.
static us_status prepare(us_recorder *r, const us_recorder_def *def, us_error *err) {
    us_place place = {.file = def->path};
    char library[64];
    snprintf(library, sizeof library, "understudy %s", us_version());
    us_status status = usi_mcap_writer_init(&r->writer, &r->allocator, (usi_mcap_compression)def->compression,
                                            "ros2", library);
    r->ring = usi_alloc(&r->allocator, r->ring_size, ENTRY_ALIGN);
    if (status || !r->ring)
        return us_error_set(err, US_ERR_MEMORY, &place, NULL,
                            "no memory for the recording's queue of %zu bytes", r->ring_size);
    // Appending: bytes after a cut come where the file then ends, not behind a gap of zeros that hides it.
    r->fd = open(def->path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (r->fd < 0) {
        return us_error_set(err, US_ERR_IO, &place, "choose a directory that exists and may be written",
                            "the recording cannot be created: %s", strerror(errno));
    }
    // The header at once: a disk that is full is known now, and even the shortest recording is an MCAP file.
    if (write_rosbag(r)) return us_error_set(err, US_ERR_MEMORY, &place, NULL, "no memory for a recording");
    drain_writer(r);
    if (r->is_failed && err) *err = r->error;
    return r->info.failed;
}

// A failure to close the file is a failure to write it, on some network file systems the first sign of it.
static void release(us_recorder *r) {
    us_allocator a = r->allocator;
    usi_mcap_writer_fini(&r->writer);
    usi_release(&a, r->ring, r->ring_size, ENTRY_ALIGN);
    usi_release(&a, r->channels, (size_t)r->cap_channel * sizeof(written_channel *), _Alignof(max_align_t));
    usi_release(&a, r->schemas, (size_t)r->cap_schema * sizeof *r->schemas, _Alignof(max_align_t));
    usi_arena_fini(&r->arena);
    pthread_cond_destroy(&r->moved);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->mutex);
    usi_release(&a, r, sizeof *r, _Alignof(us_recorder));
}

us_status us_recorder_open(const us_recorder_def *def, us_recorder **out_recorder, us_error *err) {
    if (out_recorder) *out_recorder = NULL;
    if (!out_recorder)
        return us_error_set(err, US_ERR_ARG, NULL, NULL,
                            "us_recorder_open: the place for the result is NULL");
    us_status status = check(def, err);
    if (status) return status;
    us_recorder *r = usi_alloc(&def->allocator, sizeof *r, _Alignof(us_recorder));
    if (!r) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a recorder");
    memset(r, 0, sizeof *r);
    r->allocator = def->allocator;
    r->fd = -1;
    r->chunk_size = def->chunk_size;
    r->flush_every = (int64_t)(def->flush_every * 1e9);
    r->ring_size = def->queue_size / ENTRY_ALIGN * ENTRY_ALIGN;
    // A chunk's worth, but never so much that callers fill the rest before the thread has begun.
    r->wake_size = def->chunk_size < r->ring_size / 4 ? def->chunk_size : r->ring_size / 4;
    snprintf(r->path, sizeof r->path, "%s", def->path);
    usi_arena_init(&r->arena, &r->allocator);
    init_lock(r);
    status = prepare(r, def, err);
    if (!status) status = start_thread(r, err);
    if (status) {
        if (r->fd >= 0) close(r->fd);
        release(r);
        return status;
    }
    *out_recorder = r;
    return US_OK;
}

us_status us_recorder_close(us_recorder *r, us_error *err) {
    if (!r) return US_OK;
    pthread_mutex_lock(&r->mutex);
    r->is_closing = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->mutex);
    pthread_join(r->thread, NULL);
    if (close(r->fd) != 0 && errno != EINTR && !r->is_failed) fail_file(r, errno);
    us_status status = r->info.failed;
    if (status && err) *err = r->error;
    release(r);
    return status;
}
