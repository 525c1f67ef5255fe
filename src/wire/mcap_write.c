// The bytes of an MCAP file, record by record.
//
// What the summary will repeat or point to (schemas, channels, indices) is kept as finished records in one
// buffer per kind, so that the end of the file is these buffers one after another. Nothing is seeked: a
// length that is known only later is filled in within the buffer.
#include <limits.h>
#include <lz4frame.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"
#include "wire/crc32.h"
#include "wire/mcap.h"

const uint8_t usi_mcap_magic[USI_MCAP_MAGIC_SIZE] = {0x89, 'M', 'C', 'A', 'P', '0', '\r', '\n'};

// The fastest level of zstd: it already halves most telemetry, and the simulation needs the processor.
enum { ZSTD_LEVEL = 1 };

enum { GROUP_SCHEMA, GROUP_CHANNEL, GROUP_CHUNK, GROUP_ATTACHMENT, GROUP_METADATA };
_Static_assert(GROUP_METADATA + 1 == USI_MCAP_N_GROUP, "a buffer per group");
static const uint8_t group_op[USI_MCAP_N_GROUP] = {USI_MCAP_SCHEMA, USI_MCAP_CHANNEL, USI_MCAP_CHUNK_INDEX,
                                                   USI_MCAP_ATTACHMENT_INDEX, USI_MCAP_METADATA_INDEX};

static const char *const compression_name[USI_MCAP_COMPRESSION_COUNT] = {"", "lz4", "zstd"};

// ---- Bytes ----

// Room for n more bytes. After a failure every buffer stays as it is.
static bool reserve(usi_mcap_writer *w, usi_mcap_buffer *b, size_t n) {
    if (w->failed) return false;
    if (n <= b->cap - b->length) return true;
    size_t cap = b->cap ? b->cap : 4096;
    while (cap - b->length < n) {
        if (cap > SIZE_MAX / 4) {
            w->failed = US_ERR_LIMIT;
            return false;
        }
        cap *= 2;
    }
    uint8_t *data = usi_alloc(&w->allocator, cap, 16);
    if (!data) {
        w->failed = US_ERR_MEMORY;
        return false;
    }
    if (b->length) memcpy(data, b->data, b->length);
    usi_release(&w->allocator, b->data, b->cap, 16);
    b->data = data;
    b->cap = cap;
    return true;
}

static void store(uint8_t *to, uint64_t value, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static void put_bytes(usi_mcap_writer *w, usi_mcap_buffer *b, const void *bytes, size_t n) {
    if (!n || !reserve(w, b, n)) return;
    memcpy(b->data + b->length, bytes, n);
    b->length += n;
}

// An integer of n bytes.
static void put(usi_mcap_writer *w, usi_mcap_buffer *b, uint64_t value, size_t n) {
    uint8_t bytes[8];
    store(bytes, value, n);
    put_bytes(w, b, bytes, n);
}

static void put_text(usi_mcap_writer *w, usi_mcap_buffer *b, const char *text) {
    size_t n = text ? strlen(text) : 0;
    if (n > UINT32_MAX) w->failed = US_ERR_LIMIT;
    put(w, b, n, 4);
    put_bytes(w, b, text, n);
}

// Where a length of n bytes will stand, that of all that follows until fill().
static size_t leave(usi_mcap_writer *w, usi_mcap_buffer *b, size_t n) {
    put(w, b, 0, n);
    return b->length;
}

static void fill(usi_mcap_writer *w, usi_mcap_buffer *b, size_t from, size_t n) {
    if (w->failed) return;
    uint64_t length = b->length - from;
    if (n == 4 && length > UINT32_MAX) {
        w->failed = US_ERR_LIMIT;
        return;
    }
    store(b->data + from - n, length, n);
}

static size_t begin(usi_mcap_writer *w, usi_mcap_buffer *b, uint8_t op) {
    put(w, b, op, 1);
    return leave(w, b, 8);
}
static void end(usi_mcap_writer *w, usi_mcap_buffer *b, size_t from) { fill(w, b, from, 8); }

static void put_map(usi_mcap_writer *w, usi_mcap_buffer *b, int32_t n, const char *const *keys,
                    const char *const *values) {
    size_t map = leave(w, b, 4);
    for (int32_t i = 0; i < n; i++) {
        put_text(w, b, keys[i]);
        put_text(w, b, values[i]);
    }
    fill(w, b, map, 4);
}

static uint64_t position(const usi_mcap_writer *w) { return w->offset + w->out.length; }

// ---- The start and the things in the data section ----

us_status usi_mcap_writer_init(usi_mcap_writer *w, const us_allocator *allocator,
                               usi_mcap_compression compression, const char *profile, const char *library) {
    memset(w, 0, sizeof *w);
    w->allocator = *allocator;
    w->compression = compression;
    if ((unsigned)compression >= USI_MCAP_COMPRESSION_COUNT) return w->failed = US_ERR_ARG;
    if (compression == USI_MCAP_ZSTD) {
        // The compressors' own workspaces come from the C library's heap: their stable interfaces know no
        // allocator.
        w->zstd = ZSTD_createCCtx();
        if (!w->zstd) return w->failed = US_ERR_MEMORY;
    }
    put_bytes(w, &w->out, usi_mcap_magic, sizeof usi_mcap_magic);
    size_t header = begin(w, &w->out, USI_MCAP_HEADER);
    put_text(w, &w->out, profile);
    put_text(w, &w->out, library);
    end(w, &w->out, header);
    return w->failed;
}

void usi_mcap_writer_fini(usi_mcap_writer *w) {
    usi_release(&w->allocator, w->out.data, w->out.cap, 16);
    usi_release(&w->allocator, w->chunk.data, w->chunk.cap, 16);
    for (int i = 0; i < USI_MCAP_N_GROUP; i++)
        usi_release(&w->allocator, w->group[i].data, w->group[i].cap, 16);
    usi_release(&w->allocator, w->entries, (size_t)w->cap_entry * sizeof *w->entries, _Alignof(max_align_t));
    usi_release(&w->allocator, w->channels, (size_t)w->cap_channel * sizeof *w->channels,
                _Alignof(max_align_t));
    ZSTD_freeCCtx(w->zstd);
    memset(w, 0, sizeof *w);
}

void usi_mcap_writer_taken(usi_mcap_writer *w) {
    w->crc = usi_crc32(w->crc, w->out.data, w->out.length);
    w->offset += w->out.length;
    w->out.length = 0;
}

// Schemas and channels stand in the chunk before the first message that needs them, and in the summary.
us_status usi_mcap_write_schema(usi_mcap_writer *w, const char *name, const char *encoding, const void *data,
                                size_t length, uint16_t *out_id) {
    if (w->failed) return w->failed;
    if (w->n_schema == UINT16_MAX || length > UINT32_MAX) return US_ERR_LIMIT;
    usi_mcap_buffer *b = &w->group[GROUP_SCHEMA];
    size_t start = b->length, record = begin(w, b, USI_MCAP_SCHEMA);
    put(w, b, w->n_schema + 1u, 2);
    put_text(w, b, name);
    put_text(w, b, encoding);
    put(w, b, length, 4);
    put_bytes(w, b, data, length);
    end(w, b, record);
    if (!w->failed) put_bytes(w, &w->chunk, b->data + start, b->length - start);
    if (w->failed) return w->failed;
    *out_id = ++w->n_schema;
    return US_OK;
}

us_status usi_mcap_write_channel(usi_mcap_writer *w, uint16_t schema, const char *topic, const char *encoding,
                                 int32_t n, const char *const *keys, const char *const *values,
                                 uint16_t *out_id) {
    if (w->failed) return w->failed;
    if (w->n_channel == UINT16_MAX) return US_ERR_LIMIT;
    if (schema > w->n_schema) return US_ERR_ARG;
    w->failed =
        usi_grow(&w->allocator, (void **)&w->channels, w->n_channel, &w->cap_channel, sizeof *w->channels);
    usi_mcap_buffer *b = &w->group[GROUP_CHANNEL];
    size_t start = b->length, record = begin(w, b, USI_MCAP_CHANNEL);
    put(w, b, (uint64_t)w->n_channel + 1, 2);
    put(w, b, schema, 2);
    put_text(w, b, topic);
    put_text(w, b, encoding);
    put_map(w, b, n, keys, values);
    end(w, b, record);
    if (!w->failed) put_bytes(w, &w->chunk, b->data + start, b->length - start);
    if (w->failed) return w->failed;
    w->channels[w->n_channel++] = (usi_mcap_channel_state){0};
    *out_id = (uint16_t)w->n_channel;
    return US_OK;
}

us_status usi_mcap_write_message(usi_mcap_writer *w, uint16_t channel, uint32_t sequence, uint64_t log_time,
                                 uint64_t publish_time, const void *bytes, size_t length) {
    if (w->failed) return w->failed;
    if (channel == 0 || channel > w->n_channel) return US_ERR_ARG;
    if (length > USI_MCAP_MAX_MESSAGE || w->n_entry == INT32_MAX) return US_ERR_LIMIT;
    usi_mcap_buffer *b = &w->chunk;
    if ((w->failed =
             usi_grow(&w->allocator, (void **)&w->entries, w->n_entry, &w->cap_entry, sizeof *w->entries)))
        return w->failed;
    if (!reserve(w, b, USI_MCAP_RECORD_HEAD + USI_MCAP_MESSAGE_HEAD + length)) return w->failed;
    w->entries[w->n_entry] = (usi_mcap_index_entry){log_time, b->length, channel - 1};
    uint8_t *to = b->data + b->length;
    to[0] = USI_MCAP_MESSAGE;
    store(to + 1, USI_MCAP_MESSAGE_HEAD + length, 8);
    store(to + 9, channel, 2);
    store(to + 11, sequence, 4);
    store(to + 15, log_time, 8);
    store(to + 23, publish_time, 8);
    if (length) memcpy(to + 31, bytes, length);
    b->length += USI_MCAP_RECORD_HEAD + USI_MCAP_MESSAGE_HEAD + length;

    usi_mcap_channel_state *state = &w->channels[channel - 1];
    state->n_message++;
    state->n_in_chunk++;
    if (w->n_entry == 0 || log_time < w->chunk_first) w->chunk_first = log_time;
    if (w->n_entry == 0 || log_time > w->chunk_last) w->chunk_last = log_time;
    if (w->n_message == 0 || log_time < w->first) w->first = log_time;
    if (w->n_message == 0 || log_time > w->last) w->last = log_time;
    w->n_entry++;
    w->n_message++;
    return US_OK;
}

// ---- Chunks ----

// The open chunk's records, compressed, at the end of `out`.
static void put_compressed(usi_mcap_writer *w) {
    usi_mcap_buffer *b = &w->out;
    const usi_mcap_buffer *chunk = &w->chunk;
    size_t n = 0;
    switch (w->compression) {
    case USI_MCAP_NONE:
    case USI_MCAP_COMPRESSION_COUNT:
        put_bytes(w, b, chunk->data, chunk->length);
        return;
    case USI_MCAP_LZ4: {
        LZ4F_preferences_t preferences = {0};
        preferences.frameInfo.contentSize = chunk->length;
        preferences.frameInfo.blockSizeID = LZ4F_max1MB;
        size_t bound = LZ4F_compressFrameBound(chunk->length, &preferences);
        if (!reserve(w, b, bound)) return;
        n = LZ4F_compressFrame(b->data + b->length, bound, chunk->data, chunk->length, &preferences);
        if (LZ4F_isError(n)) w->failed = US_ERR_MEMORY;
        break;
    }
    case USI_MCAP_ZSTD: {
        size_t bound = ZSTD_compressBound(chunk->length);
        if (!reserve(w, b, bound)) return;
        n = ZSTD_compressCCtx(w->zstd, b->data + b->length, bound, chunk->data, chunk->length, ZSTD_LEVEL);
        if (ZSTD_isError(n)) w->failed = US_ERR_MEMORY;
        break;
    }
    }
    // With room for the bound, memory is all that compressors can lack.
    if (!w->failed) b->length += n;
}

// One record per channel that is in the chunk. Their heads are written first, then every entry into the place
// of its channel.
static void put_message_indices(usi_mcap_writer *w) {
    usi_mcap_buffer *b = &w->out;
    for (int32_t i = 0; i < w->n_channel; i++) {
        usi_mcap_channel_state *state = &w->channels[i];
        if (!state->n_in_chunk) continue;
        size_t length = 16 * (size_t)state->n_in_chunk;
        if (length > UINT32_MAX) w->failed = US_ERR_LIMIT;
        put(w, b, USI_MCAP_MESSAGE_INDEX, 1);
        put(w, b, 2 + 4 + length, 8);
        put(w, b, (uint64_t)i + 1, 2);
        put(w, b, length, 4);
        if (!reserve(w, b, length)) return;
        state->at = b->length;
        b->length += length;
    }
    for (int32_t i = 0; i < w->n_entry; i++) {
        const usi_mcap_index_entry *entry = &w->entries[i];
        usi_mcap_channel_state *state = &w->channels[entry->channel];
        store(b->data + state->at, entry->log_time, 8);
        store(b->data + state->at + 8, entry->offset, 8);
        state->at += 16;
    }
}

us_status usi_mcap_write_chunk(usi_mcap_writer *w) {
    if (w->failed || !w->chunk.length) return w->failed;
    usi_mcap_buffer *b = &w->out;
    const char *compression = compression_name[w->compression];
    uint64_t first = w->n_entry ? w->chunk_first : 0, last = w->n_entry ? w->chunk_last : 0,
             start = position(w);
    size_t record = begin(w, b, USI_MCAP_CHUNK);
    put(w, b, first, 8);
    put(w, b, last, 8);
    put(w, b, w->chunk.length, 8);
    put(w, b, usi_crc32(0, w->chunk.data, w->chunk.length), 4);
    put_text(w, b, compression);
    size_t records = leave(w, b, 8);
    put_compressed(w);
    fill(w, b, records, 8);
    end(w, b, record);
    uint64_t compressed = b->length - records, indices = position(w);
    put_message_indices(w);
    if (w->failed) return w->failed;

    uint64_t indices_size = position(w) - indices;
    usi_mcap_buffer *index = &w->group[GROUP_CHUNK];
    record = begin(w, index, USI_MCAP_CHUNK_INDEX);
    put(w, index, first, 8);
    put(w, index, last, 8);
    put(w, index, start, 8);
    put(w, index, indices - start, 8);
    size_t map = leave(w, index, 4);
    for (int32_t i = 0; i < w->n_channel; i++) {
        usi_mcap_channel_state *state = &w->channels[i];
        if (!state->n_in_chunk) continue;
        put(w, index, (uint64_t)i + 1, 2);
        put(w, index, indices, 8);
        indices += USI_MCAP_RECORD_HEAD + 2 + 4 + 16 * (uint64_t)state->n_in_chunk;
        state->n_in_chunk = 0;
    }
    fill(w, index, map, 4);
    put(w, index, indices_size, 8);
    put_text(w, index, compression);
    put(w, index, compressed, 8);
    put(w, index, w->chunk.length, 8);
    end(w, index, record);

    w->chunk.length = 0;
    w->n_entry = 0;
    w->n_chunk++;
    return w->failed;
}

// ---- Attachments and metadata ----

us_status usi_mcap_write_attachment(usi_mcap_writer *w, const char *name, const char *media_type,
                                    uint64_t log_time, uint64_t create_time, const void *bytes,
                                    size_t length) {
    if (w->failed) return w->failed;
    usi_mcap_buffer *b = &w->out;
    uint64_t start = position(w);
    size_t record = begin(w, b, USI_MCAP_ATTACHMENT);
    put(w, b, log_time, 8);
    put(w, b, create_time, 8);
    put_text(w, b, name);
    put_text(w, b, media_type);
    put(w, b, length, 8);
    put_bytes(w, b, bytes, length);
    if (w->failed) return w->failed;
    put(w, b, usi_crc32(0, b->data + record, b->length - record), 4);
    end(w, b, record);

    usi_mcap_buffer *index = &w->group[GROUP_ATTACHMENT];
    uint64_t size = position(w) - start;
    record = begin(w, index, USI_MCAP_ATTACHMENT_INDEX);
    put(w, index, start, 8);
    put(w, index, size, 8);
    put(w, index, log_time, 8);
    put(w, index, create_time, 8);
    put(w, index, length, 8);
    put_text(w, index, name);
    put_text(w, index, media_type);
    end(w, index, record);
    w->n_attachment++;
    return w->failed;
}

us_status usi_mcap_write_metadata(usi_mcap_writer *w, const char *name, int32_t n, const char *const *keys,
                                  const char *const *values) {
    if (w->failed) return w->failed;
    usi_mcap_buffer *b = &w->out;
    uint64_t start = position(w);
    size_t record = begin(w, b, USI_MCAP_METADATA);
    put_text(w, b, name);
    put_map(w, b, n, keys, values);
    end(w, b, record);

    usi_mcap_buffer *index = &w->group[GROUP_METADATA];
    uint64_t size = position(w) - start;
    record = begin(w, index, USI_MCAP_METADATA_INDEX);
    put(w, index, start, 8);
    put(w, index, size, 8);
    put_text(w, index, name);
    end(w, index, record);
    w->n_metadata++;
    return w->failed;
}

// ---- The end ----

static void put_statistics(usi_mcap_writer *w) {
    usi_mcap_buffer *b = &w->out;
    size_t record = begin(w, b, USI_MCAP_STATISTICS);
    put(w, b, w->n_message, 8);
    put(w, b, w->n_schema, 2);
    put(w, b, (uint64_t)w->n_channel, 4);
    put(w, b, w->n_attachment, 4);
    put(w, b, w->n_metadata, 4);
    put(w, b, w->n_chunk, 4);
    put(w, b, w->n_message ? w->first : 0, 8);
    put(w, b, w->n_message ? w->last : 0, 8);
    size_t map = leave(w, b, 4);
    for (int32_t i = 0; i < w->n_channel; i++) {
        put(w, b, (uint64_t)i + 1, 2);
        put(w, b, w->channels[i].n_message, 8);
    }
    fill(w, b, map, 4);
    end(w, b, record);
}

static void put_summary_offset(usi_mcap_writer *w, uint8_t op, uint64_t start, uint64_t length) {
    if (!length) return;
    size_t record = begin(w, &w->out, USI_MCAP_SUMMARY_OFFSET);
    put(w, &w->out, op, 1);
    put(w, &w->out, start, 8);
    put(w, &w->out, length, 8);
    end(w, &w->out, record);
}

us_status usi_mcap_write_end(usi_mcap_writer *w) {
    if (usi_mcap_write_chunk(w)) return w->failed;
    usi_mcap_buffer *b = &w->out;
    uint32_t data_crc = usi_crc32(w->crc, b->data, b->length);
    size_t record = begin(w, b, USI_MCAP_DATA_END);
    put(w, b, data_crc, 4);
    end(w, b, record);

    size_t summary = b->length;
    uint64_t start[USI_MCAP_N_GROUP];
    for (int i = 0; i < USI_MCAP_N_GROUP; i++) {
        start[i] = position(w);
        put_bytes(w, b, w->group[i].data, w->group[i].length);
    }
    uint64_t statistics = position(w);
    put_statistics(w);
    uint64_t offsets = position(w);
    for (int i = 0; i < USI_MCAP_N_GROUP; i++)
        put_summary_offset(w, group_op[i], start[i], w->group[i].length);
    put_summary_offset(w, USI_MCAP_STATISTICS, statistics, offsets - statistics);

    record = begin(w, b, USI_MCAP_FOOTER);
    // The footer's length is part of what its CRC covers.
    if (!w->failed) store(b->data + record - 8, USI_MCAP_FOOTER_SIZE, 8);
    put(w, b, w->offset + summary, 8);
    put(w, b, offsets, 8);
    if (w->failed) return w->failed;
    put(w, b, usi_crc32(0, b->data + summary, b->length - summary), 4);
    put_bytes(w, b, usi_mcap_magic, sizeof usi_mcap_magic);
    return w->failed;
}
