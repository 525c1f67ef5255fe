// Records of an MCAP file, from untrusted bytes.
//
// Every field is taken through a bounded reader: once something did not fit, all that follows is zero, and
// the one check at the end of a record sees it. A chunk is opened only when its claimed size is believable
// for as many compressed bytes as it has.
#include <lz4frame.h>
#include <string.h>
#include <zstd.h>

#include "base/memory.h"
#include "wire/crc32.h"
#include "wire/mcap.h"

// ---- A bounded reader ----

typedef struct reader {
    const uint8_t *at;
    size_t left;
    bool is_short;
} reader;

static reader read_from(usi_mcap_bytes bytes) { return (reader){bytes.at, bytes.length, false}; }

// n bytes, or NULL when there are not so many.
static const uint8_t *take(reader *r, uint64_t n) {
    if (r->is_short || n > r->left) {
        r->is_short = true;
        return NULL;
    }
    const uint8_t *at = r->at;
    r->at += n;
    r->left -= (size_t)n;
    return at;
}

static uint64_t take_number(reader *r, unsigned n) {
    const uint8_t *p = take(r, n);
    uint64_t value = 0;
    for (unsigned i = 0; p && i < n; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}
static uint64_t take_8(reader *r) { return take_number(r, 8); }
static uint32_t take_4(reader *r) { return (uint32_t)take_number(r, 4); }
static uint16_t take_2(reader *r) { return (uint16_t)take_number(r, 2); }

static usi_mcap_bytes take_bytes(reader *r, uint64_t n) {
    const uint8_t *p = take(r, n);
    return p ? (usi_mcap_bytes){p, (size_t)n} : (usi_mcap_bytes){NULL, 0};
}

static usi_mcap_text take_text(reader *r) {
    usi_mcap_bytes bytes = take_bytes(r, take_4(r));
    return (usi_mcap_text){(const char *)bytes.at, bytes.length};
}

// ---- Records ----

bool usi_mcap_read_record(usi_mcap_bytes bytes, size_t offset, usi_mcap_record *out) {
    if (offset > bytes.length) return false;
    reader r = {bytes.at + offset, bytes.length - offset, false};
    out->op = (uint8_t)take_number(&r, 1);
    out->contents = take_bytes(&r, take_8(&r));
    out->size = USI_MCAP_RECORD_HEAD + out->contents.length;
    return !r.is_short;
}

bool usi_mcap_read_header(usi_mcap_bytes contents, usi_mcap_text *out_profile, usi_mcap_text *out_library) {
    reader r = read_from(contents);
    *out_profile = take_text(&r);
    *out_library = take_text(&r);
    return !r.is_short;
}

bool usi_mcap_read_schema(usi_mcap_bytes contents, usi_mcap_schema *out) {
    reader r = read_from(contents);
    out->id = take_2(&r);
    out->name = take_text(&r);
    out->encoding = take_text(&r);
    out->data = take_text(&r);
    return !r.is_short;
}

bool usi_mcap_read_channel(usi_mcap_bytes contents, usi_mcap_channel *out) {
    reader r = read_from(contents);
    out->id = take_2(&r);
    out->schema = take_2(&r);
    out->topic = take_text(&r);
    out->encoding = take_text(&r);
    out->metadata = take_bytes(&r, take_4(&r));
    return !r.is_short;
}

bool usi_mcap_read_message(usi_mcap_bytes contents, usi_mcap_message *out) {
    reader r = read_from(contents);
    out->channel = take_2(&r);
    out->sequence = take_4(&r);
    out->log_time = take_8(&r);
    out->publish_time = take_8(&r);
    out->data = take_bytes(&r, r.left);
    return !r.is_short;
}

bool usi_mcap_read_chunk(usi_mcap_bytes contents, usi_mcap_chunk *out) {
    reader r = read_from(contents);
    out->first_time = take_8(&r);
    out->last_time = take_8(&r);
    out->size = take_8(&r);
    out->crc = take_4(&r);
    out->compression = take_text(&r);
    out->records = take_bytes(&r, take_8(&r));
    return !r.is_short;
}

bool usi_mcap_read_attachment(usi_mcap_bytes contents, usi_mcap_attachment *out) {
    reader r = read_from(contents);
    out->log_time = take_8(&r);
    out->create_time = take_8(&r);
    out->name = take_text(&r);
    out->media_type = take_text(&r);
    out->data = take_bytes(&r, take_8(&r));
    size_t covered = contents.length - r.left;
    uint32_t crc = take_4(&r);
    out->is_whole = !r.is_short && (crc == 0 || crc == usi_crc32(0, contents.at, covered));
    return !r.is_short;
}

bool usi_mcap_read_metadata(usi_mcap_bytes contents, usi_mcap_text *out_name, usi_mcap_bytes *out_map) {
    reader r = read_from(contents);
    *out_name = take_text(&r);
    *out_map = take_bytes(&r, take_4(&r));
    return !r.is_short;
}

// What is left of a map when a reader has taken a pair from it; untouched when the pair was not whole.
static bool advance(usi_mcap_bytes *map, const reader *r) {
    if (r->is_short) return false;
    *map = (usi_mcap_bytes){r->at, r->left};
    return true;
}

bool usi_mcap_next_pair(usi_mcap_bytes *map, usi_mcap_text *out_key, usi_mcap_text *out_value) {
    reader r = read_from(*map);
    *out_key = take_text(&r);
    *out_value = take_text(&r);
    return advance(map, &r);
}

bool usi_mcap_next_count(usi_mcap_bytes *map, uint16_t *out_channel, uint64_t *out_count) {
    reader r = read_from(*map);
    *out_channel = take_2(&r);
    *out_count = take_8(&r);
    return advance(map, &r);
}

bool usi_mcap_read_place(usi_mcap_bytes contents, uint64_t *out_offset, uint64_t *out_length) {
    reader r = read_from(contents);
    *out_offset = take_8(&r);
    *out_length = take_8(&r);
    return !r.is_short;
}

bool usi_mcap_read_statistics(usi_mcap_bytes contents, usi_mcap_statistics *out) {
    reader r = read_from(contents);
    out->n_message = take_8(&r);
    out->n_schema = take_2(&r);
    out->n_channel = take_4(&r);
    out->n_attachment = take_4(&r);
    out->n_metadata = take_4(&r);
    out->n_chunk = take_4(&r);
    out->first_time = take_8(&r);
    out->last_time = take_8(&r);
    out->counts = take_bytes(&r, take_4(&r));
    return !r.is_short;
}

bool usi_mcap_read_end(usi_mcap_bytes tail, uint64_t length, usi_mcap_end *out) {
    if (tail.length != USI_MCAP_END_SIZE || length < USI_MCAP_MAGIC_SIZE + USI_MCAP_END_SIZE) return false;
    const uint64_t at = length - USI_MCAP_END_SIZE;
    usi_mcap_record footer;
    if (memcmp(tail.at + tail.length - USI_MCAP_MAGIC_SIZE, usi_mcap_magic, USI_MCAP_MAGIC_SIZE) != 0)
        return false;
    if (!usi_mcap_read_record(tail, 0, &footer) || footer.op != USI_MCAP_FOOTER ||
        footer.contents.length != USI_MCAP_FOOTER_SIZE)
        return false;
    reader r = read_from(footer.contents);
    uint64_t summary = take_8(&r), offsets = take_8(&r);
    out->crc = take_4(&r);
    if (summary == 0) summary = offsets ? offsets : at;
    if (offsets == 0) offsets = at;
    if (summary < USI_MCAP_MAGIC_SIZE || summary > offsets || offsets > at) return false;
    out->data_end = (size_t)summary;
    out->summary_end = (size_t)offsets;
    return true;
}

// ---- Chunks ----

void usi_mcap_decoder_init(usi_mcap_decoder *d, const us_allocator *allocator) {
    memset(d, 0, sizeof *d);
    d->allocator = *allocator;
}

void usi_mcap_decoder_fini(usi_mcap_decoder *d) {
    usi_release(&d->allocator, d->buffer, d->cap, 16);
    ZSTD_freeDCtx(d->zstd);
    LZ4F_freeDecompressionContext(d->lz4);
    memset(d, 0, sizeof *d);
}

static bool is_text(usi_mcap_text text, const char *expected) {
    return text.length == strlen(expected) && (!text.length || memcmp(text.text, expected, text.length) == 0);
}

static us_status decode_lz4(usi_mcap_decoder *d, usi_mcap_bytes from, uint8_t *to, size_t size) {
    LZ4F_dctx *context = d->lz4;
    if (!context) {
        if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) return US_ERR_MEMORY;
        d->lz4 = context;
    }
    LZ4F_resetDecompressionContext(context);
    size_t done = 0, hint = 0;
    while (from.length) {
        size_t n_to = size - done, n_from = from.length;
        hint = LZ4F_decompress(context, to + done, &n_to, from.at, &n_from, NULL);
        // No progress: it wants more room than the chunk said it would need.
        if (LZ4F_isError(hint) || (n_to == 0 && n_from == 0)) return US_ERR_SYNTAX;
        done += n_to;
        from.at += n_from;
        from.length -= n_from;
    }
    return hint == 0 && done == size ? US_OK : US_ERR_SYNTAX;
}

static us_status decode_zstd(usi_mcap_decoder *d, usi_mcap_bytes from, uint8_t *to, size_t size) {
    if (!d->zstd) d->zstd = ZSTD_createDCtx();
    if (!d->zstd) return US_ERR_MEMORY;
    return ZSTD_decompressDCtx(d->zstd, to, size, from.at, from.length) == size ? US_OK : US_ERR_SYNTAX;
}

us_status usi_mcap_decode_chunk(usi_mcap_decoder *d, const usi_mcap_chunk *chunk, usi_mcap_bytes *out_records,
                                const char **why) {
    // The maximum expansion of a byte: lz4 lengthens a match by 255 per byte; zstd repeats one byte 128
    // KiB long in a block of 4 bytes.
    bool is_lz4 = is_text(chunk->compression, "lz4"), is_zstd = is_text(chunk->compression, "zstd");
    uint64_t max_size = chunk->records.length * (is_lz4    ? UINT64_C(255)
                                                 : is_zstd ? UINT64_C(32768)
                                                           : UINT64_C(1));
    *why = "";
    if (!is_lz4 && !is_zstd && chunk->compression.length) {
        *why = "it is compressed in a way that is not known here: lz4, zstd and none are";
        return US_ERR_LIMIT;
    }
    if (chunk->size > USI_MCAP_MAX_CHUNK) {
        *why = "it claims to hold more than 256 MiB";
        return US_ERR_LIMIT;
    }
    if (chunk->size > max_size) {
        *why = "it claims to hold more than so few bytes can";
        return US_ERR_SYNTAX;
    }
    size_t size = (size_t)chunk->size;
    us_status status = US_OK;
    if (is_lz4 || is_zstd) {
        if (size > d->cap) {
            // The old one first: two of them would be twice the memory.
            usi_release(&d->allocator, d->buffer, d->cap, 16);
            d->cap = 0;
            d->buffer = usi_alloc(&d->allocator, size, 16);
            if (!d->buffer) return US_ERR_MEMORY;
            d->cap = size;
        }
        // An empty chunk needs no room, but the decompressors want a place.
        uint8_t nothing = 0, *to = d->buffer ? d->buffer : &nothing;
        status = is_lz4 ? decode_lz4(d, chunk->records, to, size) : decode_zstd(d, chunk->records, to, size);
        *out_records = (usi_mcap_bytes){d->buffer, size};
    } else {
        if (chunk->records.length != size) status = US_ERR_SYNTAX;
        *out_records = chunk->records;
    }
    if (status) {
        *why = status == US_ERR_SYNTAX ? "its bytes do not decompress to the size that it states" : "";
        return status;
    }
    if (chunk->crc && chunk->crc != usi_crc32(0, out_records->at, size)) {
        *why = "its checksum is wrong";
        return US_ERR_SYNTAX;
    }
    return US_OK;
}
