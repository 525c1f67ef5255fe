// MCAP: what is written is read back, a file that was cut off is read as far as it goes, and damage is
// noticed wherever it is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "allocator.h"
#include "understudy/record.h"
#include "wire/crc32.h"
#include "wire/mcap.h"

// ---- A file whose contents follow from the number of the message ----

enum { N_CHANNEL = 4, N_PER_CHUNK = 250, MAX_LENGTH = 400, MAX_PARTS = 64 };

typedef struct sample {
    int32_t channel;
    uint32_t sequence;
    int64_t log_time, publish_time;
    uint8_t bytes[MAX_LENGTH];
    size_t length;
} sample;

// Some messages are empty, times sometimes go back, and the bytes compress to about a half.
static sample sample_of(int32_t i, uint32_t *sequences) {
    sample s = {.channel = (int32_t)(us_random_bits(1, 0, (uint64_t)i) % N_CHANNEL)};
    s.length = us_random_bits(1, 1, (uint64_t)i) % MAX_LENGTH;
    s.log_time = (int64_t)i * 1000000 - (i % 7 == 3 ? 2500000 : 0) + 5000000;
    s.publish_time = s.log_time - 1000;
    uint64_t bits = 0;
    for (size_t k = 0; k < s.length; k++, bits >>= 4) {
        if (k % 16 == 0) bits = us_random_bits(1, 2, (uint64_t)i * MAX_LENGTH + k);
        s.bytes[k] = bits & 15;
    }
    s.sequence = sequences[s.channel]++;
    return s;
}

typedef struct file {
    uint8_t *bytes;
    size_t length;
    size_t chunk_end[MAX_PARTS];  // with its message indices
    int32_t n_message_at[MAX_PARTS];
    int32_t n_part;
    size_t data_end;
} file;

static const char *const topics[N_CHANNEL] = {"/k10/odom", "/k10/joint_states", "/k10/cmd_vel", "/clock"};
static const char scene[] = "<scene name=\"crater\"/>";

static void append(file *f, usi_mcap_writer *w) {
    f->bytes = realloc(f->bytes, f->length + w->out.length + 1);
    assert_non_null(f->bytes);
    memcpy(f->bytes + f->length, w->out.data, w->out.length);
    f->length += w->out.length;
    usi_mcap_writer_taken(w);
    assert_int_equal(w->offset, f->length);
}

static file make_file(usi_mcap_compression compression, int32_t n_message) {
    us_allocator a = us_allocator_default();
    usi_mcap_writer w;
    file f = {0};
    uint16_t schema[2], channel;
    uint32_t sequences[N_CHANNEL] = {0};
    assert_int_equal(usi_mcap_writer_init(&w, &a, compression, "ros2", "test 1.0"), US_OK);
    append(&f, &w);
    assert_int_equal(
        usi_mcap_write_schema(&w, "nav_msgs/msg/Odometry", "ros2msg", "float64 x\n", 10, &schema[0]), US_OK);
    assert_int_equal(usi_mcap_write_schema(&w, "std_msgs/msg/Empty", "ros2msg", "", 0, &schema[1]), US_OK);
    for (int32_t i = 0; i < N_CHANNEL; i++) {
        const char *keys[] = {"offered_qos_profiles"}, *values[] = {""};
        assert_int_equal(
            usi_mcap_write_channel(&w, schema[i % 2], topics[i], "cdr", 1, keys, values, &channel), US_OK);
        assert_int_equal(channel, i + 1);
    }
    assert_int_equal(usi_mcap_write_attachment(&w, "scene.xml", "text/xml", 7, 3, scene, strlen(scene)),
                     US_OK);
    append(&f, &w);
    for (int32_t i = 0; i < n_message; i++) {
        sample s = sample_of(i, sequences);
        assert_int_equal(usi_mcap_write_message(&w, (uint16_t)(s.channel + 1), s.sequence,
                                                (uint64_t)s.log_time, (uint64_t)s.publish_time, s.bytes,
                                                s.length),
                         US_OK);
        if (i % N_PER_CHUNK == N_PER_CHUNK - 1 || i == n_message - 1) {
            assert_int_equal(usi_mcap_write_chunk(&w), US_OK);
            append(&f, &w);
            assert_in_range(f.n_part, 0, MAX_PARTS - 1);
            f.n_message_at[f.n_part] = i + 1;
            f.chunk_end[f.n_part++] = f.length;
        }
    }
    const char *keys[] = {"seed", "robot"}, *values[] = {"7", "k10"};
    assert_int_equal(usi_mcap_write_metadata(&w, "run", 2, keys, values), US_OK);
    assert_int_equal(usi_mcap_write_attachment(&w, "nothing", "", 0, 0, NULL, 0), US_OK);
    append(&f, &w);
    f.data_end = f.length;
    assert_int_equal(usi_mcap_write_end(&w), US_OK);
    append(&f, &w);
    usi_mcap_writer_fini(&w);
    return f;
}

// ---- Reading it ----

static us_recording *open_file(const uint8_t *bytes, size_t length) {
    us_recording *r = NULL;
    us_error err = {0};
    us_status status = us_recording_open_bytes(bytes, length, NULL, &r, &err);
    if (status) fail_msg("%s", err.message);
    return r;
}

// The next message is the i-th one that was written.
static void check_next(us_recording *r, int32_t i, uint32_t *sequences) {
    us_recorded m;
    bool has = false;
    us_error err = {0};
    us_status status = us_recording_next(r, &m, &has, &err);
    if (status) fail_msg("message %d: %s", i, err.message);
    if (!has) fail_msg("message %d is missing", i);
    sample s = sample_of(i, sequences);
    assert_int_equal(m.channel, s.channel);
    assert_int_equal(m.sequence, s.sequence);
    assert_int_equal(m.log_time, s.log_time);
    assert_int_equal(m.publish_time, s.publish_time);
    assert_int_equal(m.length, s.length);
    if (s.length) assert_memory_equal(m.bytes, s.bytes, s.length);
}

static void check_end(us_recording *r) {
    us_recorded m;
    bool has = true;
    us_error err = {0};
    us_status status = us_recording_next(r, &m, &has, &err);
    if (status) fail_msg("at the end: %s", err.message);
    assert_false(has);
}

static void what_is_written_is_read_back_with_every_compression(void **state) {
    (void)state;
    enum { N = 5000 };
    for (int compression = 0; compression < USI_MCAP_COMPRESSION_COUNT; compression++) {
        file f = make_file((usi_mcap_compression)compression, N);
        us_recording *r = open_file(f.bytes, f.length);
        us_recording_info info = us_recording_get_info(r);
        assert_true(info.is_complete);
        assert_int_equal(info.n_channel, N_CHANNEL);
        assert_int_equal(info.n_attachment, 2);
        assert_int_equal(info.n_metadata, 1);
        assert_int_equal(info.n_message, N);
        assert_string_equal(info.library, "test 1.0");
        // Message 3 goes back, but not before message 0: 5 + 3 - 2.5 > 5 ms.
        assert_int_equal(info.first_time, 5000000);
        assert_int_equal(info.last_time, (N - 1) * INT64_C(1000000) + 5000000);
        uint32_t sequences[N_CHANNEL] = {0};
        for (int pass = 0; pass < 2; pass++) {
            memset(sequences, 0, sizeof sequences);
            for (int32_t i = 0; i < N; i++)
                check_next(r, i, sequences);
            check_end(r);
            check_end(r);
            assert_int_equal(us_recording_rewind(r), US_OK);
        }
        for (int32_t i = 0; i < N_CHANNEL; i++) {
            us_channel_info c = us_recording_get_channel(r, i);
            assert_string_equal(c.topic, topics[i]);
            assert_string_equal(c.type, i % 2 ? "std_msgs/msg/Empty" : "nav_msgs/msg/Odometry");
            assert_string_equal(c.schema, i % 2 ? "" : "float64 x\n");
            assert_string_equal(c.encoding, "cdr");
            assert_int_equal(c.n_message, sequences[i]);
        }
        assert_null(us_recording_get_channel(r, N_CHANNEL).topic);
        assert_null(us_recording_get_channel(r, -1).topic);
        size_t length;
        const void *bytes = us_recording_find_attachment(r, "scene.xml", &length);
        assert_non_null(bytes);
        assert_int_equal(length, strlen(scene));
        assert_memory_equal(bytes, scene, length);
        assert_non_null(us_recording_find_attachment(r, "nothing", &length));
        assert_int_equal(length, 0);
        assert_null(us_recording_find_attachment(r, "other", &length));
        assert_string_equal(us_recording_find_metadata(r, "run", "seed"), "7");
        assert_string_equal(us_recording_find_metadata(r, "run", "robot"), "k10");
        assert_null(us_recording_find_metadata(r, "run", "none"));
        assert_null(us_recording_find_metadata(r, "none", "seed"));
        us_recording_close(r);
        free(f.bytes);
    }
}

static void a_recording_of_nothing_is_complete(void **state) {
    (void)state;
    us_allocator a = us_allocator_default();
    usi_mcap_writer w;
    file f = {0};
    assert_int_equal(usi_mcap_writer_init(&w, &a, USI_MCAP_ZSTD, "ros2", ""), US_OK);
    assert_int_equal(usi_mcap_write_end(&w), US_OK);
    append(&f, &w);
    usi_mcap_writer_fini(&w);
    us_recording *r = open_file(f.bytes, f.length);
    us_recording_info info = us_recording_get_info(r);
    assert_true(info.is_complete);
    assert_int_equal(info.n_message, 0);
    assert_int_equal(info.n_channel, 0);
    check_end(r);
    us_recording_close(r);
    free(f.bytes);
}

static void seeking_skips_all_messages_before_the_time(void **state) {
    (void)state;
    enum { N = 2000 };
    file f = make_file(USI_MCAP_LZ4, N);
    us_recording *r = open_file(f.bytes, f.length);
    for (int32_t from = 0; from < N + 300; from += 333) {
        int64_t time = (int64_t)from * 1000000 + 5000000;
        uint32_t sequences[N_CHANNEL] = {0};
        us_recorded m;
        bool has;
        assert_int_equal(us_recording_seek(r, time), US_OK);
        for (int32_t i = 0; i < N; i++) {
            sample s = sample_of(i, sequences);
            if (s.log_time < time) continue;
            assert_int_equal(us_recording_next(r, &m, &has, NULL), US_OK);
            assert_true(has);
            assert_int_equal(m.log_time, s.log_time);
            assert_int_equal(m.sequence, s.sequence);
        }
        check_end(r);
    }
    us_recording_close(r);
    free(f.bytes);
}

// ---- Files that were cut off ----

// Messages of the chunks that are whole in the first `length` bytes. The message indices behind the last one
// need not be.
static int32_t count_whole(const file *f, size_t length) {
    int32_t n = 0;
    for (int32_t i = 0; i < f->n_part; i++) {
        size_t start = i ? f->chunk_end[i - 1] : 0;
        usi_mcap_record record;
        // After the first chunk's start stands its record; the header and an attachment stand before the
        // first.
        usi_mcap_bytes bytes = {f->bytes, f->length};
        if (i == 0) {
            start = USI_MCAP_MAGIC_SIZE;
            while (usi_mcap_read_record(bytes, start, &record) && record.op != USI_MCAP_CHUNK)
                start += record.size;
        }
        assert_true(usi_mcap_read_record(bytes, start, &record));
        assert_int_equal(record.op, USI_MCAP_CHUNK);
        if (start + record.size <= length) n = f->n_message_at[i];
    }
    return n;
}

static void check_cut(const file *f, size_t length) {
    // A copy of its own, so that the sanitizer sees a read beyond the cut.
    uint8_t *bytes = malloc(length ? length : 1);
    assert_non_null(bytes);
    memcpy(bytes, f->bytes, length);
    us_recording *r = NULL;
    us_error err = {0};
    us_status status = us_recording_open_bytes(bytes, length, NULL, &r, &err);
    if (length < USI_MCAP_MAGIC_SIZE) {
        assert_int_equal(status, US_ERR_SYNTAX);
        assert_null(r);
        free(bytes);
        return;
    }
    if (status) fail_msg("cut at %zu: %s", length, err.message);
    us_recording_info info = us_recording_get_info(r);
    int32_t n = count_whole(f, length);
    assert_false(info.is_complete);
    assert_int_equal(info.n_message, n);
    uint32_t sequences[N_CHANNEL] = {0};
    for (int32_t i = 0; i < n; i++)
        check_next(r, i, sequences);
    check_end(r);
    for (int32_t i = 0; i < info.n_channel; i++)
        assert_int_equal(us_recording_get_channel(r, i).n_message, sequences[i]);
    us_recording_close(r);
    free(bytes);
}

static void a_file_cut_anywhere_reads_up_to_its_last_whole_chunk(void **state) {
    (void)state;
    static const usi_mcap_compression compressions[] = {USI_MCAP_ZSTD, USI_MCAP_NONE};
    for (int k = 0; k < 2; k++) {
        file f = make_file(compressions[k], 2000);
        for (size_t length = 0; length < 200; length++)
            check_cut(&f, length);
        for (size_t length = 200; length < f.length; length += 997)
            check_cut(&f, length);
        // Around the end of each chunk, and everywhere in the summary's last bytes.
        for (int32_t i = 0; i < f.n_part; i++) {
            for (size_t d = 0; d < 3; d++)
                check_cut(&f, f.chunk_end[i] - 1 + d);
        }
        for (size_t d = 1; d < 100; d++)
            check_cut(&f, f.length - d);
        free(f.bytes);
    }
}

static void zeros_where_bytes_never_came_are_an_end(void **state) {
    (void)state;
    file f = make_file(USI_MCAP_ZSTD, 1000);
    size_t cut = f.chunk_end[1];
    memset(f.bytes + cut, 0, f.length - cut);
    us_recording *r = open_file(f.bytes, f.length);
    assert_false(us_recording_get_info(r).is_complete);
    uint32_t sequences[N_CHANNEL] = {0};
    for (int32_t i = 0; i < f.n_message_at[1]; i++)
        check_next(r, i, sequences);
    check_end(r);
    us_recording_close(r);
    free(f.bytes);
}

// ---- Damage ----

// Reads all; true when somebody noticed that something is wrong.
static bool is_noticed(const uint8_t *bytes, size_t length) {
    us_recording *r = NULL;
    us_error err = {0};
    us_status status = us_recording_open_bytes(bytes, length, NULL, &r, &err);
    bool has = true, is_complete = us_recording_get_info(r).is_complete;
    us_recorded m;
    while (!status && has)
        status = us_recording_next(r, &m, &has, &err);
    if (status) {
        assert_true(err.message[0] != 0);
        assert_int_equal(err.code, status);
        if (bytes[0] == usi_mcap_magic[0] && status == US_ERR_SYNTAX)
            assert_true(strstr(err.message, "at byte") || strstr(err.message, "not an MCAP"));
    }
    us_recording_close(r);
    return status || !is_complete;
}

static void one_wrong_bit_anywhere_is_noticed(void **state) {
    (void)state;
    for (int compression = 0; compression < USI_MCAP_COMPRESSION_COUNT; compression++) {
        file f = make_file((usi_mcap_compression)compression, 100);
        assert_false(is_noticed(f.bytes, f.length));
        for (size_t i = 0; i < f.length; i += i < 1000 || i + 2500 > f.length ? 1 : 29) {
            uint8_t bit = (uint8_t)(1u << (i % 8));
            f.bytes[i] ^= bit;
            if (!is_noticed(f.bytes, f.length))
                fail_msg("compression %d: bit %zu of byte %zu", compression, i % 8, i);
            f.bytes[i] ^= bit;
        }
        free(f.bytes);
    }
}

static void damage_is_told_with_its_place_and_all_before_it_is_read(void **state) {
    (void)state;
    file f = make_file(USI_MCAP_ZSTD, 1000);
    // The third chunk begins where the second one's indices end; 90 bytes on it is deep in compressed data.
    f.bytes[f.chunk_end[1] + 90] ^= 0x40;
    us_recording *r = open_file(f.bytes, f.length);
    uint32_t sequences[N_CHANNEL] = {0};
    for (int32_t i = 0; i < f.n_message_at[1]; i++)
        check_next(r, i, sequences);
    us_recorded m;
    bool has;
    us_error err = {0};
    char expected[64];
    snprintf(expected, sizeof expected, "at byte %zu", f.chunk_end[1]);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(us_recording_next(r, &m, &has, &err), US_ERR_SYNTAX);
        assert_false(has);
        assert_non_null(strstr(err.message, expected));
    }
    us_recording_close(r);
    free(f.bytes);
}

// Changes the first chunk by `change` and returns what reading it gives.
static us_status read_changed_chunk(void (*change)(uint8_t *contents), us_error *err) {
    file f = make_file(USI_MCAP_ZSTD, 300);
    usi_mcap_bytes bytes = {f.bytes, f.length};
    usi_mcap_record record;
    size_t at = USI_MCAP_MAGIC_SIZE;
    while (usi_mcap_read_record(bytes, at, &record) && record.op != USI_MCAP_CHUNK)
        at += record.size;
    change(f.bytes + at + USI_MCAP_RECORD_HEAD);
    us_recording *r = open_file(f.bytes, f.length);
    us_recorded m;
    bool has;
    us_status status = us_recording_next(r, &m, &has, err);
    us_recording_close(r);
    free(f.bytes);
    return status;
}

static void claim_a_terabyte(uint8_t *contents) { contents[16 + 5] = 1; }
static void claim_some_megabytes(uint8_t *contents) { contents[16 + 3] = 0x08; }
static void claim_one_byte_more(uint8_t *contents) { contents[16]++; }
static void claim_another_compression(uint8_t *contents) { memcpy(contents + 32, "zstx", 4); }

static void a_chunk_that_claims_what_cannot_be_is_refused(void **state) {
    (void)state;
    us_error err = {0};
    assert_int_equal(read_changed_chunk(claim_a_terabyte, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "256 MiB"));
    assert_int_equal(read_changed_chunk(claim_some_megabytes, &err), US_ERR_SYNTAX);
    assert_int_equal(read_changed_chunk(claim_one_byte_more, &err), US_ERR_SYNTAX);
    assert_non_null(strstr(err.message, "decompress"));
    assert_int_equal(read_changed_chunk(claim_another_compression, &err), US_ERR_LIMIT);
    assert_non_null(strstr(err.message, "zstd"));
}

static void other_files_are_told_apart(void **state) {
    (void)state;
    us_recording *r = NULL;
    us_error err = {0};
    assert_int_equal(us_recording_open_bytes("<xml> is no recording", 21, NULL, &r, &err), US_ERR_SYNTAX);
    assert_non_null(strstr(err.message, "not an MCAP file"));
    assert_int_equal(us_recording_open_bytes(NULL, 0, NULL, &r, &err), US_ERR_SYNTAX);
    assert_int_equal(us_recording_open_bytes(NULL, 5, NULL, &r, &err), US_ERR_ARG);
    assert_int_equal(us_recording_open("no/such/file.mcap", NULL, &r, &err), US_ERR_IO);
    assert_string_equal(err.file, "no/such/file.mcap");
    assert_int_equal(us_recording_open(".", NULL, &r, &err), US_ERR_IO);
    assert_int_equal(us_recording_open(NULL, NULL, &r, &err), US_ERR_ARG);
    assert_null(r);
    us_recording_close(NULL);
}

// ---- Files of other writers ----

static void raw(file *f, const void *bytes, size_t n) {
    f->bytes = realloc(f->bytes, f->length + n + 1);
    assert_non_null(f->bytes);
    memcpy(f->bytes + f->length, bytes, n);
    f->length += n;
}

static void raw_record(file *f, uint8_t op, const void *contents, size_t n) {
    uint8_t head[9] = {op};
    for (int i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)((uint64_t)n >> 8 * i);
    raw(f, head, sizeof head);
    raw(f, contents, n);
}

// No chunks, no summary, no checksums, an unknown kind of record: all allowed.
static void messages_outside_of_chunks_are_read(void **state) {
    (void)state;
    static const uint8_t channel[] = "\1\0\0\0\2\0\0\0/t\4\0\0\0json\0\0\0\0";
    uint8_t message[22 + 2] = {1, 0, 9, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    static const uint8_t nothing[20];
    file f = {0};
    raw(&f, usi_mcap_magic, 8);
    raw_record(&f, USI_MCAP_HEADER, nothing, 8);
    raw_record(&f, USI_MCAP_CHANNEL, channel, sizeof channel - 1);
    raw_record(&f, 0x90, "private", 7);
    raw_record(&f, USI_MCAP_MESSAGE, message, sizeof message);
    raw_record(&f, USI_MCAP_MESSAGE, message, sizeof message);
    raw_record(&f, USI_MCAP_DATA_END, nothing, 4);
    raw_record(&f, USI_MCAP_FOOTER, nothing, 20);
    raw(&f, usi_mcap_magic, 8);
    us_recording *r = open_file(f.bytes, f.length);
    us_recording_info info = us_recording_get_info(r);
    assert_true(info.is_complete);
    assert_int_equal(info.n_message, 2);
    assert_int_equal(info.n_channel, 1);
    assert_int_equal(info.first_time, 100);
    us_channel_info c = us_recording_get_channel(r, 0);
    assert_string_equal(c.topic, "/t");
    assert_string_equal(c.encoding, "json");
    assert_string_equal(c.type, "");
    us_recorded m;
    bool has;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(us_recording_next(r, &m, &has, NULL), US_OK);
        assert_true(has);
        assert_int_equal(m.sequence, 9);
        assert_int_equal(m.publish_time, 99);
        assert_int_equal(m.length, 2);
        assert_memory_equal(m.bytes, "{}", 2);
    }
    check_end(r);
    us_recording_close(r);
    free(f.bytes);
}

// ---- Pieces ----

static void the_checksum_is_the_published_one(void **state) {
    (void)state;
    assert_int_equal(usi_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(usi_crc32(0, "", 0), 0);
    uint8_t bytes[100];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)us_random_bits(3, 0, i);
    // Bit by bit, as the polynomial says.
    uint32_t slow = ~0u;
    for (size_t i = 0; i < sizeof bytes; i++) {
        slow ^= bytes[i];
        for (int k = 0; k < 8; k++)
            slow = slow >> 1 ^ (slow & 1 ? 0xedb88320u : 0);
    }
    for (size_t cut = 0; cut <= sizeof bytes; cut++)
        assert_int_equal(usi_crc32(usi_crc32(0, bytes, cut), bytes + cut, sizeof bytes - cut),
                         (uint32_t)~slow);
}

static void write_with(test_allocator *t) {
    usi_mcap_writer w;
    uint16_t schema = 0, channel = 0;
    us_status status = usi_mcap_writer_init(&w, &t->allocator, USI_MCAP_LZ4, "ros2", "test");
    if (!status) status = usi_mcap_write_schema(&w, "a/msg/B", "ros2msg", "int8 x", 6, &schema);
    if (!status) status = usi_mcap_write_channel(&w, schema, "/t", "cdr", 0, NULL, NULL, &channel);
    for (int32_t i = 0; i < 40 && !status; i++)
        status =
            usi_mcap_write_message(&w, channel, (uint32_t)i, (uint64_t)i, (uint64_t)i, scene, sizeof scene);
    if (!status) status = usi_mcap_write_attachment(&w, "a", "b", 0, 0, scene, sizeof scene);
    if (!status) status = usi_mcap_write_metadata(&w, "m", 0, NULL, NULL);
    if (!status) status = usi_mcap_write_end(&w);
    assert_int_equal(status, t->n_failed ? US_ERR_MEMORY : US_OK);
    assert_int_equal(w.failed, status);
    usi_mcap_writer_fini(&w);
}

static void read_with(test_allocator *t, const file *f) {
    us_recording *r = NULL;
    us_error err = {0};
    us_recorded m;
    bool has = true;
    us_status status = us_recording_open_bytes(f->bytes, f->length, &t->allocator, &r, &err);
    assert_true(!status == !!r);
    while (!status && has)
        status = us_recording_next(r, &m, &has, &err);
    assert_int_equal(status, t->n_failed ? US_ERR_MEMORY : US_OK);
    us_recording_close(r);
}

static void running_out_of_memory_anywhere_is_an_error_and_no_leak(void **state) {
    (void)state;
    file f = make_file(USI_MCAP_ZSTD, 300);
    file cut = {.bytes = f.bytes, .length = f.chunk_end[0]};
    for (int what = 0; what < 3; what++) {
        int64_t n = 1;
        for (int64_t fail_at = 0; fail_at <= n; fail_at++) {
            test_allocator t;
            test_allocator_init(&t);
            t.fail_at = fail_at;
            if (what == 0) write_with(&t);
            if (what == 1) read_with(&t, &f);
            if (what == 2) read_with(&t, &cut);
            test_allocator_check(&t);
            if (fail_at == 0) n = t.n_alloc;
        }
        assert_true(n > 2);
    }
    free(f.bytes);
}

// ---- The public reader, npm @mcap/core ----

// 32-bit FNV-1a, as mcap_read.mjs has it.
static uint32_t fnv(uint32_t hash, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 16777619u;
    return hash;
}

static double number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item)) fail_msg("no number \"%s\"", name);
    return item->valuedouble;
}
static const char *text(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsString(item)) fail_msg("no text \"%s\"", name);
    return item->valuestring;
}
static const cJSON *member(const cJSON *object, const char *name, int n) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!item || cJSON_GetArraySize(item) != n) fail_msg("\"%s\" has not %d members", name, n);
    return item;
}

static cJSON *run_node(const char *npm, const char *path) {
    char command[2048];
    snprintf(command, sizeof command, "US_NPM='%s' node '%s/tests/wire/mcap_read.mjs' '%s'", npm,
             US_SOURCE_DIR, path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    static char output[65536];
    size_t n = fread(output, 1, sizeof output - 1, pipe);
    output[n] = 0;
    int status = pclose(pipe);
    if (status != 0) fail_msg("%s ended with %d", command, status);
    cJSON *json = cJSON_Parse(output);
    if (!json) fail_msg("no JSON: %s", output);
    return json;
}

static void check_by_node(const cJSON *json, const file *f, int32_t n_message) {
    uint32_t sequences[N_CHANNEL] = {0}, hash = 2166136261u, count[N_CHANNEL] = {0};
    int64_t last = 0;
    for (int32_t i = 0; i < n_message; i++) {
        sample s = sample_of(i, sequences);
        if (s.log_time > last) last = s.log_time;
        char line[128];
        int n = snprintf(line, sizeof line, "%s %u %lld %lld %zu ", topics[s.channel], s.sequence,
                         (long long)s.log_time, (long long)s.publish_time, s.length);
        hash = fnv(fnv(hash, line, (size_t)n), s.bytes, s.length);
        count[s.channel]++;
    }
    assert_string_equal(text(json, "profile"), "ros2");
    assert_string_equal(text(json, "library"), "test 1.0");
    // In the order of the file, by the reader that walks and checks every CRC.
    assert_int_equal(number(json, "streamed"), n_message);
    assert_int_equal((uint32_t)number(json, "hash"), hash);
    // In the order of time, by the reader that uses the indices.
    assert_int_equal(number(json, "indexed"), n_message);
    assert_int_equal(number(json, "indexed_sum"), number(json, "streamed_sum"));
    const cJSON *statistics = cJSON_GetObjectItemCaseSensitive(json, "statistics");
    assert_int_equal(number(statistics, "messages"), n_message);
    assert_int_equal(number(statistics, "schemas"), 2);
    assert_int_equal(number(statistics, "channels"), N_CHANNEL);
    assert_int_equal(number(statistics, "attachments"), 2);
    assert_int_equal(number(statistics, "metadata"), 1);
    assert_int_equal(number(statistics, "chunks"), f->n_part);
    assert_int_equal((int64_t)number(statistics, "first"), 5000000);
    assert_int_equal((int64_t)number(statistics, "last"), last);
    const cJSON *channels = member(json, "channels", N_CHANNEL);
    for (int i = 0; i < N_CHANNEL; i++) {
        const cJSON *channel = cJSON_GetArrayItem(channels, i);
        assert_string_equal(text(channel, "topic"), topics[i]);
        assert_string_equal(text(channel, "encoding"), "cdr");
        assert_string_equal(text(channel, "type"), i % 2 ? "std_msgs/msg/Empty" : "nav_msgs/msg/Odometry");
        assert_string_equal(text(channel, "schema_encoding"), "ros2msg");
        assert_string_equal(text(channel, "schema"), i % 2 ? "" : "float64 x\n");
        assert_string_equal(text(channel, "qos"), "");
        assert_int_equal(number(channel, "count"), count[i]);
    }
    const cJSON *attachment = cJSON_GetArrayItem(member(json, "attachments", 2), 0);
    assert_string_equal(text(attachment, "name"), "scene.xml");
    assert_string_equal(text(attachment, "media_type"), "text/xml");
    assert_string_equal(text(attachment, "text"), scene);
    assert_int_equal(number(attachment, "log_time"), 7);
    assert_int_equal(number(attachment, "create_time"), 3);
    const cJSON *metadata = cJSON_GetArrayItem(member(json, "metadata", 1), 0);
    assert_string_equal(text(metadata, "name"), "run");
    assert_string_equal(text(metadata, "seed"), "7");
    assert_string_equal(text(metadata, "robot"), "k10");
}

static void the_public_reader_sees_every_message_and_all_that_is_said_about_them(void **state) {
    (void)state;
    const char *npm = getenv("US_NPM");
    char probe[1024];
    snprintf(probe, sizeof probe, "%s/@mcap/core/package.json", npm ? npm : "");
    if (!npm || access(probe, R_OK) != 0) {
        print_message("skipped: US_NPM names no node_modules directory with @mcap/core and @mcap/support\n");
        skip();
    }
    for (int compression = 0; compression < USI_MCAP_COMPRESSION_COUNT; compression++) {
        enum { N = 3000 };
        file f = make_file((usi_mcap_compression)compression, N);
        char path[64];
        snprintf(path, sizeof path, "test_mcap_%d.mcap", compression);
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(f.bytes, 1, f.length, out), f.length);
        assert_int_equal(fclose(out), 0);
        cJSON *json = run_node(npm, path);
        check_by_node(json, &f, N);
        cJSON_Delete(json);
        remove(path);
        free(f.bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_the_published_one),
        cmocka_unit_test(what_is_written_is_read_back_with_every_compression),
        cmocka_unit_test(a_recording_of_nothing_is_complete),
        cmocka_unit_test(seeking_skips_all_messages_before_the_time),
        cmocka_unit_test(a_file_cut_anywhere_reads_up_to_its_last_whole_chunk),
        cmocka_unit_test(zeros_where_bytes_never_came_are_an_end),
        cmocka_unit_test(one_wrong_bit_anywhere_is_noticed),
        cmocka_unit_test(damage_is_told_with_its_place_and_all_before_it_is_read),
        cmocka_unit_test(a_chunk_that_claims_what_cannot_be_is_refused),
        cmocka_unit_test(other_files_are_told_apart),
        cmocka_unit_test(messages_outside_of_chunks_are_read),
        cmocka_unit_test(running_out_of_memory_anywhere_is_an_error_and_no_leak),
        cmocka_unit_test(the_public_reader_sees_every_message_and_all_that_is_said_about_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
