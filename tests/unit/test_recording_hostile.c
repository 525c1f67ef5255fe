// Recordings whose bytes lie: refused, or harmless.
//
// A recording is taken apart into its records, without compression and checksums, which would keep every
// change from being looked at. Changes are made in the records and between them; then the file is read, run
// again and compared with itself.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "live_world.h"
#include "understudy/record.h"
#include "wire/mcap.h"

enum { SNAPSHOT_HEADER = 32, MAX_PART = 4096 };

// ---------------------------------------------------------------- records

typedef struct part {
    uint8_t *bytes;  // with kind and length
    size_t length;
} part;

typedef struct parts {
    int32_t n;
    part part[MAX_PART];
} parts;

static void add_part(parts *p, const uint8_t *bytes, size_t length) {
    assert_true(p->n < MAX_PART);
    uint8_t *copy = malloc(length);
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    p->part[p->n++] = (part){copy, length};
}

static void split_records(parts *p, usi_mcap_bytes bytes, usi_mcap_decoder *decoder) {
    usi_mcap_record record;
    for (size_t at = 0; at < bytes.length && usi_mcap_read_record(bytes, at, &record); at += record.size) {
        usi_mcap_chunk chunk;
        usi_mcap_bytes records;
        const char *why = "";
        switch (record.op) {
        case USI_MCAP_CHUNK:
            assert_true(usi_mcap_read_chunk(record.contents, &chunk));
            assert_int_equal(usi_mcap_decode_chunk(decoder, &chunk, &records, &why), US_OK);
            split_records(p, records, decoder);
            break;
        case USI_MCAP_DATA_END:
            return;
        case USI_MCAP_MESSAGE_INDEX:
            break;
        default:
            add_part(p, bytes.at + at, record.size);
            // No checksum of an attachment.
            if (record.op == USI_MCAP_ATTACHMENT) memset(p->part[p->n - 1].bytes + record.size - 4, 0, 4);
        }
    }
}

static parts *read_parts(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t length = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(length);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, length, file), length);
    fclose(file);
    parts *p = calloc(1, sizeof *p);
    assert_non_null(p);
    us_allocator a = us_allocator_default();
    usi_mcap_decoder decoder;
    usi_mcap_decoder_init(&decoder, &a);
    split_records(p, (usi_mcap_bytes){bytes + USI_MCAP_MAGIC_SIZE, length - USI_MCAP_MAGIC_SIZE}, &decoder);
    usi_mcap_decoder_fini(&decoder);
    free(bytes);
    return p;
}

static void free_parts(parts *p) {
    for (int32_t i = 0; i < p->n; i++)
        free(p->part[i].bytes);
    free(p);
}

// ---------------------------------------------------------------- changes

static uint64_t random_state;
static uint64_t roll(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 11;
}

static void change(uint8_t *bytes, size_t length) {
    static const uint64_t odd[] = {
        0,          1,      UINT64_MAX, UINT64_C(1) << 31, UINT64_C(1) << 63, 0x7ff8000000000000,
        0x7fffffff, 0xffff, 1000000000};
    const uint64_t value = roll() & 1 ? odd[roll() % (sizeof odd / sizeof odd[0])] : roll() * roll();
    size_t width = (size_t)1 << (roll() & 3), at = roll() % length;
    if (width > length - at) width = length - at;
    memcpy(bytes + at, &value, width);
}

// The start state with a right checksum, so that what is in it is looked at.
static void sign_state(uint8_t *bytes, size_t length) {
    usi_mcap_record record;
    usi_mcap_attachment a;
    if (!usi_mcap_read_record((usi_mcap_bytes){bytes, length}, 0, &record) ||
        record.op != USI_MCAP_ATTACHMENT || !usi_mcap_read_attachment(record.contents, &a) ||
        a.name.length != 5 || memcmp(a.name.text, "state", 5) != 0 || a.data.length < SNAPSHOT_HEADER)
        return;
    uint8_t *state = bytes + (a.data.at - bytes);
    uint64_t check = us_hash_bytes(0, state + SNAPSHOT_HEADER, a.data.length - SNAPSHOT_HEADER);
    memcpy(state + 24, &check, sizeof check);
}

// All records into one file, some of them changed, left out, twice or at another place.
static size_t write_changed(const parts *p, uint8_t *out) {
    size_t n = USI_MCAP_MAGIC_SIZE;
    memcpy(out, usi_mcap_magic, n);
    int32_t victim[4];
    for (int k = 0; k < 4; k++)
        victim[k] = (int32_t)(roll() % (uint64_t)p->n);
    // Small records are many: half of all changes go to those that stand at the start.
    if (roll() & 1) victim[0] = (int32_t)(roll() % 16);
    const uint64_t how = roll() % 8;
    const int n_victim = (int)(1 + roll() % 4);
    for (int32_t i = 0; i < p->n; i++) {
        const part *from = &p->part[i];
        if (how == 6 && i == victim[0]) from = &p->part[victim[1]];
        if (how == 7 && i == victim[0] && i > 0) continue;
        memcpy(out + n, from->bytes, from->length);
        for (int k = 0; k < n_victim && how < 6; k++) {
            // The length of a record stays, mostly: a wrong one hides all that follows.
            size_t keep = roll() % 8 == 0 ? 0 : USI_MCAP_RECORD_HEAD;
            if (victim[k] == i && from->length > keep) change(out + n + keep, from->length - keep);
        }
        sign_state(out + n, from->length);
        n += from->length;
    }
    return n;
}

static size_t room_for(const parts *p) {
    size_t n = USI_MCAP_MAGIC_SIZE, longest = 0;
    for (int32_t i = 0; i < p->n; i++) {
        n += p->part[i].length;
        if (p->part[i].length > longest) longest = p->part[i].length;
    }
    return n + longest;
}

// ---------------------------------------------------------------- worlds

static const char path[] = "hostile.mcap";

static void make_recording(void) {
    us_world *world = live_open(live_robot_scene);
    us_error err = {0};
    live_ok(us_world_record(world, path, &err), &err);
    for (int i = 0; i < 5; i++) {
        live_drive(world, 0.2 * i);
        live_step(world, 4);
    }
    live_done(world, "fault k10 motor:rear_left_drive=weak:0.5");
    live_done(world, "move stone 1 1 0.5");
    live_done(world, "add sphere ball size=0.1 at=2,0,0.5");
    live_step(world, 5);
    live_done(world, "remove ball");
    live_step(world, 5);
    live_ok(us_world_record(world, NULL, &err), &err);
    us_world_destroy(world);
}

static void ignore_field(void *context, const us_compared_field *field) {
    (void)context;
    (void)field;
}

// Everything that is done with a recording. *out_same: it ran again to the same bits.
static void use(const us_spec *spec, const uint8_t *bytes, size_t length, bool *out_opens, bool *out_same) {
    us_recording *r = NULL, *again = NULL;
    us_error err = {0};
    us_verify_result result;
    *out_same = false;
    *out_opens = us_recording_open_bytes(bytes, length, NULL, &r, &err) == US_OK;
    if (!*out_opens) {
        assert_true(err.message[0] != 0);
        return;
    }
    us_status status = us_world_verify(spec, r, NULL, NULL, &result, &err);
    *out_same = status == US_OK;
    if (status) assert_true(err.message[0] != 0);
    if (!us_recording_open_bytes(bytes, length, NULL, &again, &err)) {
        us_compare_def def = us_compare_def_default();
        def.field = ignore_field;
        us_compare_result compared;
        us_recording_compare(r, again, &def, &compared, &err);
    }
    us_recording_close(again);
    us_recording_close(r);
}

static void changes_at_random_do_no_harm(void **state) {
    (void)state;
    const char *long_tests = getenv("US_LONG_TESTS"), *first = getenv("US_FIRST_SEED");
    const int n = long_tests ? 100000 : 600, from = first ? atoi(first) : 0;  // NOLINT(cert-err34-c)
    make_recording();
    parts *p = read_parts(path);
    us_spec *spec = live_load(live_robot_scene);
    uint8_t *bytes = malloc(room_for(p));
    assert_non_null(bytes);
    bool opens, is_same;
    int n_opened = 0, n_same = 0;
    for (int i = from; i < from + n; i++) {
        random_state = (uint64_t)i + 1;
        size_t length = write_changed(p, bytes);
        use(spec, bytes, length, &opens, &is_same);
        n_opened += opens;
        n_same += is_same;
    }
    print_message("%d of %d opened, %d ran again\n", n_opened, n, n_same);
    // A test whose files are all refused at the first byte, or all taken, tests nothing.
    assert_true(n_opened > n / 2 && n_same < n * 9 / 10);
    us_spec_destroy(spec);
    free_parts(p);
    free(bytes);
}

// ---------------------------------------------------------------- few bytes that stand for many

// Reads to the end.
static us_status read_all(const uint8_t *bytes, size_t length, us_error *err) {
    us_recording *r = NULL;
    us_status status = us_recording_open_bytes(bytes, length, NULL, &r, err);
    us_recorded m;
    for (bool has = true; !status && has;)
        status = us_recording_next(r, &m, &has, err);
    us_recording_close(r);
    return status;
}

static void start_file(usi_mcap_writer *w) {
    us_allocator a = us_allocator_default();
    assert_int_equal(usi_mcap_writer_init(w, &a, USI_MCAP_ZSTD, "", "test"), US_OK);
}

static void small_files_that_ask_for_much_are_refused(void **state) {
    (void)state;
    enum { LARGE = 40 << 20 };
    us_error err = {0};
    usi_mcap_writer w;
    uint16_t id = 0;
    char *large = calloc(1, LARGE);
    assert_non_null(large);
    // Definitions stay in memory as long as the file is open.
    start_file(&w);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(usi_mcap_write_schema(&w, "a/msg/B", "ros2msg", large, LARGE, &id), US_OK);
        assert_int_equal(usi_mcap_write_channel(&w, id, "/t", "cdr", 0, NULL, NULL, &id), US_OK);
        assert_int_equal(usi_mcap_write_message(&w, id, 0, 1, 1, large, 8), US_OK);
        assert_int_equal(usi_mcap_write_chunk(&w), US_OK);
    }
    assert_true(w.out.length < 1 << 20);
    assert_int_equal(read_all(w.out.data, w.out.length, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "64 MiB"));
    usi_mcap_writer_fini(&w);
    // Chunks are gone when the next is read, but each takes its time.
    start_file(&w);
    assert_int_equal(usi_mcap_write_schema(&w, "a/msg/B", "ros2msg", "", 0, &id), US_OK);
    assert_int_equal(usi_mcap_write_channel(&w, id, "/t", "cdr", 0, NULL, NULL, &id), US_OK);
    assert_int_equal(usi_mcap_write_message(&w, id, 0, 1, 1, large, LARGE), US_OK);
    const size_t before = w.out.length;
    assert_int_equal(usi_mcap_write_chunk(&w), US_OK);
    const size_t chunk = w.out.length - before, length = before + 30 * chunk;
    uint8_t *bytes = malloc(length);
    assert_non_null(bytes);
    memcpy(bytes, w.out.data, before);
    for (size_t i = 0; i < 30; i++)
        memcpy(bytes + before + i * chunk, w.out.data + before, chunk);
    assert_int_equal(read_all(bytes, length, &err), US_ERR_LIMIT);
    free(bytes);
    assert_non_null(strstr(err.message, "unpack"));
    usi_mcap_writer_fini(&w);
    // Each channel costs whoever plays it a writer on the network.
    start_file(&w);
    assert_int_equal(usi_mcap_write_schema(&w, "a/msg/B", "ros2msg", "", 0, &id), US_OK);
    const uint16_t schema = id;
    for (int i = 0; i < 5000; i++)
        assert_int_equal(usi_mcap_write_channel(&w, schema, "/t", "cdr", 0, NULL, NULL, &id), US_OK);
    assert_int_equal(usi_mcap_write_message(&w, id, 0, 1, 1, large, 8), US_OK);
    assert_int_equal(usi_mcap_write_chunk(&w), US_OK);
    assert_int_equal(read_all(w.out.data, w.out.length, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "4096 channels"));
    usi_mcap_writer_fini(&w);
    free(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_files_that_ask_for_much_are_refused),
        cmocka_unit_test(changes_at_random_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
