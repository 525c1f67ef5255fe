// The recorder: nothing is lost, whoever writes; what fails is told; what was flushed survives the program.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocator.h"
#include "understudy/record.h"

enum { MAX_LENGTH = 1000 };

static const us_message_type *type_of(const char *name) {
    const us_message_type *type = us_message_find(name);
    if (!type) fail_msg("no type %s", name);
    return type;
}

// The i-th message of a stream: two numbers, then bytes that follow from them.
static size_t make_message(uint32_t stream, uint32_t i, uint8_t *out) {
    size_t length = 8 + us_random_bits(stream, 0, i) % (MAX_LENGTH - 8);
    memcpy(out, &stream, 4);
    memcpy(out + 4, &i, 4);
    for (size_t k = 8; k < length; k++)
        out[k] = (uint8_t)(i + k * stream);
    return length;
}

static void check_message(const us_recorded *m, uint32_t stream, uint32_t i) {
    uint8_t expected[MAX_LENGTH];
    size_t length = make_message(stream, i, expected);
    assert_int_equal(m->length, length);
    assert_memory_equal(m->bytes, expected, length);
}

static us_recorder *open_recorder(const us_recorder_def *def) {
    us_recorder *r = NULL;
    us_error err = {0};
    if (us_recorder_open(def, &r, &err)) fail_msg("%s: %s", err.file, err.message);
    return r;
}

static void close_recorder(us_recorder *r) {
    us_error err = {0};
    if (us_recorder_close(r, &err)) fail_msg("%s", err.message);
}

static us_recording *open_recording(const char *path) {
    us_recording *r = NULL;
    us_error err = {0};
    if (us_recording_open(path, NULL, &r, &err)) fail_msg("%s: %s", path, err.message);
    return r;
}

static void all_that_is_written_is_in_the_file(void **state) {
    (void)state;
    static const char path[] = "written.mcap";
    for (int compression = 0; compression < US_COMPRESSION_COUNT; compression++) {
        enum { N = 6000, N_CHANNEL = 3 };
        us_recorder_def def = us_recorder_def_default();
        def.path = path;
        def.compression = (us_compression)compression;
        def.chunk_size = 64 * 1024;
        us_recorder *r = open_recorder(&def);
        const us_message_type *twist = type_of("geometry_msgs/msg/Twist"),
                              *odom = type_of("nav_msgs/msg/Odometry");
        assert_int_equal(us_recorder_add_channel(r, "/a/cmd_vel", twist, NULL), 0);
        assert_int_equal(us_recorder_add_channel(r, "/a/odom", odom, NULL), 1);
        assert_int_equal(us_recorder_attach(r, "scene.xml", "text/xml", "<scene/>", 8), US_OK);
        uint8_t bytes[MAX_LENGTH];
        for (uint32_t i = 0; i < N; i++) {
            // A channel that comes later.
            if (i == N / 2) assert_int_equal(us_recorder_add_channel(r, "/b/cmd_vel", twist, NULL), 2);
            int32_t channel = (int32_t)(i % (i < N / 2 ? 2 : N_CHANNEL));
            assert_int_equal(us_recorder_write(r, channel, (int64_t)i * 1000, (int64_t)i * 1000 + 1, bytes,
                                               make_message(7, i, bytes)),
                             US_OK);
        }
        const char *keys[] = {"seed"}, *values[] = {"42"};
        assert_int_equal(us_recorder_set_metadata(r, "run", 1, keys, values), US_OK);
        assert_int_equal(us_recorder_add_channel(r, "/silent", odom, NULL), 3);
        assert_int_equal(us_recorder_get_info(r).n_message, N);
        close_recorder(r);

        us_recording *recording = open_recording(path);
        us_recording_info info = us_recording_get_info(recording);
        assert_true(info.is_complete);
        assert_int_equal(info.n_message, N);
        assert_int_equal(info.n_channel, 4);
        assert_int_equal(info.last_time, (N - 1) * 1000);
        assert_non_null(strstr(info.library, "understudy"));
        us_recorded m;
        bool has;
        uint32_t sequence[N_CHANNEL] = {0};
        for (uint32_t i = 0; i < N; i++) {
            assert_int_equal(us_recording_next(recording, &m, &has, NULL), US_OK);
            assert_true(has);
            assert_int_equal(m.channel, i % (i < N / 2 ? 2 : N_CHANNEL));
            assert_int_equal(m.sequence, sequence[m.channel]++);
            assert_int_equal(m.log_time, i * 1000);
            assert_int_equal(m.publish_time, i * 1000 + 1);
            check_message(&m, 7, i);
        }
        assert_int_equal(us_recording_next(recording, &m, &has, NULL), US_OK);
        assert_false(has);
        us_channel_info a = us_recording_get_channel(recording, 0),
                        b = us_recording_get_channel(recording, 2),
                        silent = us_recording_get_channel(recording, 3);
        assert_string_equal(a.type, "geometry_msgs/msg/Twist");
        assert_string_equal(a.schema, us_message_schema(twist));
        assert_string_equal(b.topic, "/b/cmd_vel");
        // One schema for both.
        assert_ptr_equal(a.schema, b.schema);
        assert_int_equal(b.n_message, sequence[2]);
        assert_string_equal(silent.topic, "/silent");
        assert_int_equal(silent.n_message, 0);
        size_t length;
        assert_memory_equal(us_recording_find_attachment(recording, "scene.xml", &length), "<scene/>", 8);
        assert_int_equal(length, 8);
        assert_string_equal(us_recording_find_metadata(recording, "run", "seed"), "42");
        us_recording_close(recording);
        remove(path);
    }
}

// ---- Several threads ----

enum { N_EACH = 20000 };

typedef struct talker {
    us_recorder *recorder;
    uint32_t stream;
    int32_t own, common;
    us_status status;
} talker;

static void *talk(void *context) {
    talker *t = context;
    uint8_t bytes[MAX_LENGTH];
    for (uint32_t i = 0; i < N_EACH && !t->status; i++) {
        size_t length = make_message(t->stream, i, bytes);
        t->status = us_recorder_write(t->recorder, i % 3 ? t->own : t->common, i, i, bytes, length);
    }
    return NULL;
}

static void two_threads_lose_nothing_and_each_keeps_its_order(void **state) {
    (void)state;
    static const char path[] = "threads.mcap";
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    // So small that the threads must wait for the disk.
    def.queue_size = 64 * 1024;
    def.chunk_size = 32 * 1024;
    us_recorder *r = open_recorder(&def);
    talker talkers[2];
    pthread_t threads[2];
    const us_message_type *type = type_of("nav_msgs/msg/Odometry");
    int32_t common = us_recorder_add_channel(r, "/common", type, NULL);
    for (int i = 0; i < 2; i++) {
        talkers[i] = (talker){r, (uint32_t)i + 1, us_recorder_add_channel(r, i ? "/two" : "/one", type, NULL),
                              common, US_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, talk, &talkers[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    us_recorder_info info = us_recorder_get_info(r);
    assert_int_equal(talkers[0].status, US_OK);
    assert_int_equal(talkers[1].status, US_OK);
    assert_int_equal(info.n_message, 2 * N_EACH);
    assert_true(info.n_wait > 0);
    assert_int_equal(info.failed, US_OK);
    close_recorder(r);

    us_recording *recording = open_recording(path);
    us_recorded m;
    bool has = true;
    uint32_t next[2] = {0}, sequence[3] = {0};
    while (!us_recording_next(recording, &m, &has, NULL) && has) {
        uint32_t stream;
        memcpy(&stream, m.bytes, 4);
        assert_in_range(stream, 1, 2);
        check_message(&m, stream, next[stream - 1]++);
        assert_int_equal(m.sequence, sequence[m.channel]++);
    }
    assert_false(has);
    assert_int_equal(next[0], N_EACH);
    assert_int_equal(next[1], N_EACH);
    us_recording_close(recording);
    remove(path);
}

static void a_message_larger_than_the_queue_goes_through(void **state) {
    (void)state;
    static const char path[] = "large.mcap";
    enum { LARGE = 3000000 };
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    def.queue_size = 64 * 1024;
    us_recorder *r = open_recorder(&def);
    int32_t channel = us_recorder_add_channel(r, "/points", type_of("std_msgs/msg/String"), NULL);
    uint8_t *large = malloc(LARGE);
    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (uint8_t)us_random_bits(5, 0, i / 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(us_recorder_write(r, channel, i, i, large, LARGE), US_OK);
        assert_int_equal(us_recorder_write(r, channel, i, i, "small", 5), US_OK);
    }
    assert_int_equal(us_recorder_attach(r, "large", "", large, LARGE), US_OK);
    close_recorder(r);
    us_recording *recording = open_recording(path);
    us_recorded m;
    bool has;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(us_recording_next(recording, &m, &has, NULL), US_OK);
        assert_true(has);
        assert_int_equal(m.sequence, i);
        assert_int_equal(m.length, i % 2 ? 5 : LARGE);
        assert_memory_equal(m.bytes, i % 2 ? (const void *)"small" : large, m.length);
    }
    size_t length;
    const void *attached = us_recording_find_attachment(recording, "large", &length);
    assert_int_equal(length, LARGE);
    assert_memory_equal(attached, large, LARGE);
    us_recording_close(recording);
    free(large);
    remove(path);
}

// ---- Crashes ----

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Messages that can be read from the file now; -1 while it is no recording.
static int64_t count_messages(const char *path) {
    us_recording *r = NULL;
    if (us_recording_open(path, NULL, &r, NULL)) return -1;
    int64_t n = us_recording_get_info(r).n_message;
    us_recording_close(r);
    return n;
}

static void what_was_written_can_be_read_while_the_recorder_goes_on(void **state) {
    (void)state;
    static const char path[] = "open.mcap";
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    def.flush_every = 0.02;
    us_recorder *r = open_recorder(&def);
    assert_int_equal(count_messages(path), 0);
    int32_t channel = us_recorder_add_channel(r, "/a", type_of("std_msgs/msg/String"), NULL);
    for (int i = 0; i < 10; i++)
        assert_int_equal(us_recorder_write(r, channel, i, i, "hello", 5), US_OK);
    double deadline = seconds() + 30;
    while (count_messages(path) < 10 && seconds() < deadline)
        usleep(1000);
    assert_int_equal(count_messages(path), 10);
    us_recording *recording = open_recording(path);
    assert_false(us_recording_get_info(recording).is_complete);
    us_recording_close(recording);
    close_recorder(r);
    remove(path);
}

static void a_killed_recorder_leaves_a_file_that_reads(void **state) {
    (void)state;
    static const char path[] = "killed.mcap";
    remove(path);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        us_recorder_def def = us_recorder_def_default();
        def.path = path;
        def.flush_every = 0.01;
        us_recorder *r = NULL;
        if (us_recorder_open(&def, &r, NULL)) _exit(1);
        us_recorder_attach(r, "scene.xml", "text/xml", "<scene/>", 8);
        int32_t channel = us_recorder_add_channel(r, "/a", us_message_find("nav_msgs/msg/Odometry"), NULL);
        uint8_t bytes[MAX_LENGTH];
        // Some megabytes at most, should nobody kill it; then it stays.
        for (uint32_t i = 0; i < 100000; i++) {
            if (us_recorder_write(r, channel, i, i, bytes, make_message(3, i, bytes))) _exit(2);
            if (i % 100 == 0) usleep(100);
        }
        for (;;)
            pause();
    }
    double deadline = seconds() + 30;
    while (count_messages(path) < 1000 && seconds() < deadline)
        usleep(1000);
    assert_int_equal(kill(child, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));

    us_recording *recording = open_recording(path);
    us_recording_info info = us_recording_get_info(recording);
    assert_false(info.is_complete);
    assert_true(info.n_message >= 1000);
    assert_non_null(us_recording_find_attachment(recording, "scene.xml", NULL));
    us_recorded m;
    bool has = true;
    uint32_t n = 0;
    while (!us_recording_next(recording, &m, &has, NULL) && has)
        check_message(&m, 3, n++);
    assert_false(has);
    assert_int_equal(n, info.n_message);
    us_recording_close(recording);
    remove(path);
}

// ---- Failures ----

static void a_full_disk_is_told_at_once(void **state) {
    (void)state;
    us_recorder_def def = us_recorder_def_default();
    def.path = "/dev/full";
    us_recorder *r = NULL;
    us_error err = {0};
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_IO);
    assert_null(r);
    assert_non_null(strstr(err.message, strerror(ENOSPC)));
    assert_string_equal(err.file, "/dev/full");
    assert_true(err.remedy[0] != 0);
}

static void a_disk_that_becomes_full_is_told_to_every_caller(void **state) {
    (void)state;
    static const char path[] = "limited.mcap";
    enum { LIMIT = 300000 };
    // No file may become larger: the same to a program as a full disk.
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = LIMIT;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    def.compression = US_COMPRESSION_NONE;
    def.chunk_size = 50000;
    def.queue_size = 64 * 1024;
    us_recorder *r = open_recorder(&def);
    int32_t channel = us_recorder_add_channel(r, "/a", type_of("nav_msgs/msg/Odometry"), NULL);
    uint8_t bytes[MAX_LENGTH];
    us_status status = US_OK;
    uint32_t n = 0;
    // The queue holds 64 KiB: the failure shows long before 100 000 messages.
    while (!status && n < 100000) {
        status = us_recorder_write(r, channel, n, n, bytes, make_message(4, n, bytes));
        n++;
    }
    assert_int_equal(status, US_ERR_IO);
    assert_in_range(n, 300, 2000);
    assert_int_equal(us_recorder_get_info(r).failed, US_ERR_IO);
    assert_int_equal(us_recorder_write(r, channel, 0, 0, bytes, 10), US_ERR_IO);
    assert_int_equal(us_recorder_attach(r, "a", "b", bytes, 10), US_ERR_IO);
    assert_int_equal(us_recorder_set_metadata(r, "m", 0, NULL, NULL), US_ERR_IO);
    us_error err = {0};
    assert_int_equal(us_recorder_close(r, &err), US_ERR_IO);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_non_null(strstr(err.message, strerror(EFBIG)));
    assert_string_equal(err.file, path);
    assert_true(err.remedy[0] != 0);

    // What came before is there.
    us_recording *recording = open_recording(path);
    assert_false(us_recording_get_info(recording).is_complete);
    us_recorded m;
    bool has = true;
    uint32_t n_read = 0;
    while (!us_recording_next(recording, &m, &has, NULL) && has)
        check_message(&m, 4, n_read++);
    assert_false(has);
    // Chunks of 50 000 bytes below 300 000: the header and the indices leave room for five.
    assert_true(n_read * 520u > LIMIT - 2 * 60000);
    us_recording_close(recording);
    remove(path);
}

static void delete (const char *path) { assert_int_equal(remove(path), 0); }
static void shorten(const char *path) { assert_int_equal(truncate(path, 100), 0); }

static void a_file_that_is_lost_while_it_is_written_is_told(void **state) {
    (void)state;
    static const char path[] = "lost.mcap";
    const struct {
        void (*lose)(const char *path);
        const char *what;
    } cases[] = {{delete, "deleted"}, {shorten, "shortened"}};
    for (int k = 0; k < 2; k++) {
        us_recorder_def def = us_recorder_def_default();
        def.path = path;
        def.chunk_size = 50000;
        us_recorder *r = open_recorder(&def);
        int32_t channel = us_recorder_add_channel(r, "/a", type_of("nav_msgs/msg/Odometry"), NULL);
        uint8_t bytes[MAX_LENGTH];
        for (uint32_t n = 0; n < 200; n++)
            assert_int_equal(us_recorder_write(r, channel, n, n, bytes, make_message(4, n, bytes)), US_OK);
        // Until it is in the file.
        double deadline = seconds() + 30;
        while (us_recorder_get_info(r).n_chunk == 0 && seconds() < deadline)
            usleep(1000);
        assert_true(us_recorder_get_info(r).n_chunk > 0);
        cases[k].lose(path);
        us_error err = {0};
        assert_int_equal(us_recorder_close(r, &err), US_ERR_IO);
        assert_non_null(strstr(err.message, cases[k].what));
        assert_string_equal(err.file, path);
        assert_true(err.remedy[0] != 0);
    }
    remove(path);
}

static void a_file_that_is_shortened_while_it_is_read_is_told(void **state) {
    (void)state;
    static const char path[] = "shrinking.mcap";
    us_recorder_def def = us_recorder_def_default();
    def.path = path;
    def.compression = US_COMPRESSION_NONE;
    def.chunk_size = 100000;
    us_recorder *r = open_recorder(&def);
    int32_t channel = us_recorder_add_channel(r, "/a", type_of("nav_msgs/msg/Odometry"), NULL);
    uint8_t bytes[MAX_LENGTH];
    enum { N = 6000 };
    for (uint32_t n = 0; n < N; n++)
        assert_int_equal(us_recorder_write(r, channel, n, n, bytes, make_message(4, n, bytes)), US_OK);
    close_recorder(r);
    us_recording *recording = open_recording(path);
    us_recorded m;
    bool has = true;
    uint32_t n_read = 0;
    us_error err = {0};
    assert_int_equal(us_recording_next(recording, &m, &has, &err), US_OK);
    assert_int_equal(truncate(path, 5000), 0);
    us_status status = US_OK;
    while (has && !(status = us_recording_next(recording, &m, &has, &err)))
        n_read++;
    assert_int_equal(status, US_ERR_IO);
    assert_true(n_read < N - 1);
    assert_non_null(strstr(err.message, "shorter"));
    us_recording_close(recording);
    remove(path);
}

static void wrong_definitions_and_arguments_are_refused(void **state) {
    (void)state;
    us_recorder *r = NULL;
    us_error err = {0};
    us_recorder_def good = us_recorder_def_default(), def = good;
    assert_int_equal(us_recorder_open(NULL, &r, &err), US_ERR_ARG);
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_ARG);  // no path
    def.path = good.path = "wrong.mcap";
    assert_int_equal(us_recorder_open(&def, NULL, &err), US_ERR_ARG);
    def.compression = US_COMPRESSION_COUNT;
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_ARG);
    def = good;
    def.chunk_size = 100;
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_ARG);
    def = good;
    def.flush_every = 0;
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_ARG);
    def = good;
    def.flush_every = -1.0 / 0.0 * 0.0;  // not a number
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_ARG);
    def = good;
    def.queue_size = 0;
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_ARG);
    def = good;
    def.allocator = (us_allocator){0};
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_ARG);
    assert_int_equal(access("wrong.mcap", F_OK), -1);
    def = good;
    def.path = "no/such/directory/x.mcap";
    assert_int_equal(us_recorder_open(&def, &r, &err), US_ERR_IO);
    assert_null(r);
    assert_int_equal(us_recorder_close(NULL, &err), US_OK);
    assert_int_equal(us_recorder_get_info(NULL).failed, US_ERR_ARG);

    r = open_recorder(&good);
    const us_message_type *twist = type_of("geometry_msgs/msg/Twist"), *text = type_of("std_msgs/msg/String");
    assert_int_equal(us_recorder_add_channel(r, NULL, twist, &err), -1);
    assert_int_equal(err.code, US_ERR_ARG);
    assert_int_equal(us_recorder_add_channel(r, "", twist, NULL), -1);
    assert_int_equal(us_recorder_add_channel(r, "/a", NULL, NULL), -1);
    assert_int_equal(us_recorder_add_channel(r, "/a", twist, NULL), 0);
    assert_int_equal(us_recorder_add_channel(r, "/a", text, NULL), 1);
    assert_int_equal(us_recorder_add_channel(r, "/a", twist, NULL), 0);
    assert_int_equal(us_recorder_write(r, -1, 0, 0, "", 0), US_ERR_ARG);
    assert_int_equal(us_recorder_write(r, 2, 0, 0, "", 0), US_ERR_ARG);
    assert_int_equal(us_recorder_write(r, 0, -1, 0, "", 0), US_ERR_ARG);
    assert_int_equal(us_recorder_write(r, 0, 0, 0, NULL, 1), US_ERR_ARG);
    assert_int_equal(us_recorder_write(r, 0, 0, 0, "", (size_t)1 << 40), US_ERR_LIMIT);
    assert_int_equal(us_recorder_write(r, 0, 0, 0, NULL, 0), US_OK);
    assert_int_equal(us_recorder_attach(r, NULL, "", "", 0), US_ERR_ARG);
    const char *keys[] = {"a"}, *values[] = {NULL};
    assert_int_equal(us_recorder_set_metadata(r, "m", 1, keys, values), US_ERR_ARG);
    assert_int_equal(us_recorder_set_metadata(r, "m", 1, NULL, NULL), US_ERR_ARG);
    assert_int_equal(us_recorder_set_metadata(r, "m", -1, keys, keys), US_ERR_ARG);
    assert_int_equal(us_recorder_get_info(r).n_message, 1);
    close_recorder(r);
    remove("wrong.mcap");
}

// ---- Memory ----

// The watching allocator, for several threads.
typedef struct shared_allocator {
    test_allocator inner;
    pthread_mutex_t mutex;
} shared_allocator;

static void *shared_alloc(void *context, size_t size, size_t align) {
    shared_allocator *s = context;
    pthread_mutex_lock(&s->mutex);
    void *memory = s->inner.allocator.alloc(s->inner.allocator.context, size, align);
    pthread_mutex_unlock(&s->mutex);
    return memory;
}
static void shared_release(void *context, void *memory, size_t size, size_t align) {
    shared_allocator *s = context;
    pthread_mutex_lock(&s->mutex);
    s->inner.allocator.release(s->inner.allocator.context, memory, size, align);
    pthread_mutex_unlock(&s->mutex);
}

static void running_out_of_memory_anywhere_is_told_and_nothing_leaks(void **state) {
    (void)state;
    static const char path[] = "memory.mcap";
    int64_t n_alloc = 1;
    const us_message_type *type = type_of("nav_msgs/msg/Odometry");
    for (int64_t fail_at = 0; fail_at <= n_alloc; fail_at++) {
        shared_allocator s = {.mutex = PTHREAD_MUTEX_INITIALIZER};
        test_allocator_init(&s.inner);
        s.inner.fail_at = fail_at;
        us_recorder_def def = us_recorder_def_default();
        def.allocator = (us_allocator){shared_alloc, shared_release, &s};
        def.path = path;
        def.queue_size = 64 * 1024;
        def.compression = US_COMPRESSION_LZ4;
        us_recorder *r = NULL;
        us_error err = {0};
        us_status status = us_recorder_open(&def, &r, &err);
        assert_true(!status == !!r);
        if (r) {
            bool has_channel = us_recorder_add_channel(r, "/a", type, &err) == 0;
            uint8_t bytes[MAX_LENGTH];
            for (uint32_t i = 0; i < 100 && has_channel; i++)
                us_recorder_write(r, 0, i, i, bytes, make_message(1, i, bytes));
            us_recorder_attach(r, "a", "b", bytes, sizeof bytes);
            status = us_recorder_close(r, &err);
            if (!has_channel) status = US_ERR_MEMORY;
        }
        assert_int_equal(status, s.inner.n_failed ? US_ERR_MEMORY : US_OK);
        assert_int_equal(err.code, status);
        test_allocator_check(&s.inner);
        if (fail_at == 0) n_alloc = s.inner.n_alloc;
        pthread_mutex_destroy(&s.mutex);
    }
    assert_true(n_alloc > 5);
    remove(path);
}

static void messages_cost_no_allocation(void **state) {
    (void)state;
    static const char path[] = "steady.mcap";
    shared_allocator s = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    test_allocator_init(&s.inner);
    us_recorder_def def = us_recorder_def_default();
    def.allocator = (us_allocator){shared_alloc, shared_release, &s};
    def.path = path;
    def.chunk_size = 64 * 1024;
    def.queue_size = 1024 * 1024;
    us_recorder *r = open_recorder(&def);
    int32_t channel = us_recorder_add_channel(r, "/a", type_of("nav_msgs/msg/Odometry"), NULL);
    uint8_t bytes[MAX_LENGTH];
    for (uint32_t i = 0; i < 20000; i++)
        assert_int_equal(us_recorder_write(r, channel, i, i, bytes, make_message(1, i, bytes)), US_OK);
    assert_true(us_recorder_get_info(r).n_chunk > 20);
    close_recorder(r);
    // Buffers that double up to the size of a chunk, of its index and of the summary.
    assert_true(s.inner.n_alloc < 60);
    test_allocator_check(&s.inner);
    pthread_mutex_destroy(&s.mutex);
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_written_is_in_the_file),
        cmocka_unit_test(two_threads_lose_nothing_and_each_keeps_its_order),
        cmocka_unit_test(a_message_larger_than_the_queue_goes_through),
        cmocka_unit_test(what_was_written_can_be_read_while_the_recorder_goes_on),
        cmocka_unit_test(a_killed_recorder_leaves_a_file_that_reads),
        cmocka_unit_test(a_full_disk_is_told_at_once),
        cmocka_unit_test(a_disk_that_becomes_full_is_told_to_every_caller),
        cmocka_unit_test(a_file_that_is_lost_while_it_is_written_is_told),
        cmocka_unit_test(a_file_that_is_shortened_while_it_is_read_is_told),
        cmocka_unit_test(wrong_definitions_and_arguments_are_refused),
        cmocka_unit_test(running_out_of_memory_anywhere_is_told_and_nothing_leaks),
        cmocka_unit_test(messages_cost_no_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
