// MCAP files as bytes: what is in each record, how it is written and how it is read. No files, no threads.
//
// A file is a sequence of records, each one byte of kind, eight bytes of length and that many of contents,
// all little endian:
//
//     magic  header  chunk index.. chunk index.. attachment metadata ..  data end | schema.. channel..
//     statistics chunk index.. ..  footer  magic
//     |<------------------------- data section ------------------------------->|<---------------- summary
//     ------------------->|
//
// A chunk holds schemas, channels and messages, compressed together; a message index per channel follows it.
// The summary repeats schemas and channels and says where everything is; a file that lacks it can still be
// read from the start. (The format: mcap.dev/spec.)
#ifndef USI_WIRE_MCAP_H
#define USI_WIRE_MCAP_H

#include "understudy/base.h"

typedef enum usi_mcap_op {
    USI_MCAP_HEADER = 1,
    USI_MCAP_FOOTER,
    USI_MCAP_SCHEMA,
    USI_MCAP_CHANNEL,
    USI_MCAP_MESSAGE,
    USI_MCAP_CHUNK,
    USI_MCAP_MESSAGE_INDEX,
    USI_MCAP_CHUNK_INDEX,
    USI_MCAP_ATTACHMENT,
    USI_MCAP_ATTACHMENT_INDEX,
    USI_MCAP_STATISTICS,
    USI_MCAP_METADATA,
    USI_MCAP_METADATA_INDEX,
    USI_MCAP_SUMMARY_OFFSET,
    USI_MCAP_DATA_END,
    USI_MCAP_OP_COUNT
} usi_mcap_op;

typedef enum usi_mcap_compression {
    USI_MCAP_NONE,
    USI_MCAP_LZ4,
    USI_MCAP_ZSTD,
    USI_MCAP_COMPRESSION_COUNT
} usi_mcap_compression;

enum {
    USI_MCAP_MAGIC_SIZE = 8,
    USI_MCAP_RECORD_HEAD = 9,                // kind and length
    USI_MCAP_MESSAGE_HEAD = 22,              // of the contents: channel, sequence, two times
    USI_MCAP_FOOTER_SIZE = 20,               // of the contents
    USI_MCAP_END_SIZE = 9 + 20 + 8,          // footer and magic
    USI_MCAP_MAX_CHUNK = 256 * 1024 * 1024,  // bytes before compression: what claims more is refused
    USI_MCAP_MAX_MESSAGE =
        USI_MCAP_MAX_CHUNK / 2 - 4096  // bytes; leaves room for a chunk that was nearly full before it
};
extern const uint8_t usi_mcap_magic[USI_MCAP_MAGIC_SIZE];

// ---- writing ----

// Bytes that grow.
typedef struct usi_mcap_buffer {
    uint8_t *data;
    size_t length, cap;
} usi_mcap_buffer;

typedef struct usi_mcap_index_entry {
    uint64_t log_time, offset;
    int32_t channel;  // its id - 1
} usi_mcap_index_entry;

typedef struct usi_mcap_channel_state {
    uint64_t n_message;
    uint32_t n_in_chunk;
    size_t at;  // where the next entry of its message index goes
} usi_mcap_channel_state;

// The groups of the summary, in the order in which they are written.
enum { USI_MCAP_N_GROUP = 5 };

// Makes the bytes of a file. They gather in `out`; the owner writes them somewhere and calls
// usi_mcap_writer_taken. The first failure (memory) stays: from then on every call returns it and `out` must
// not be written any more.
typedef struct usi_mcap_writer {
    us_allocator allocator;
    us_status failed;
    usi_mcap_compression compression;
    usi_mcap_buffer out;
    uint64_t offset;  // of the first byte of `out` in the file
    uint32_t crc;     // of all bytes before `out`

    // The chunk that is open.
    usi_mcap_buffer chunk;
    usi_mcap_index_entry *entries;
    int32_t n_entry, cap_entry;
    uint64_t chunk_first, chunk_last;  // log times

    usi_mcap_buffer group[USI_MCAP_N_GROUP];  // records of the summary so far
    usi_mcap_channel_state *channels;         // [id - 1]
    int32_t n_channel, cap_channel;
    uint64_t n_message, first, last;
    uint32_t n_attachment, n_metadata, n_chunk;
    uint16_t n_schema;
    void *zstd;
} usi_mcap_writer;

// Starts a file: magic and header are in `out` afterwards. fini also after a failed init.
us_status usi_mcap_writer_init(usi_mcap_writer *w, const us_allocator *allocator,
                               usi_mcap_compression compression, const char *profile, const char *library);
void usi_mcap_writer_fini(usi_mcap_writer *w);
// The bytes of `out` are in the file.
void usi_mcap_writer_taken(usi_mcap_writer *w);

// Ids count from 1. US_ERR_LIMIT after 65535 of them.
us_status usi_mcap_write_schema(usi_mcap_writer *w, const char *name, const char *encoding, const void *data,
                                size_t length, uint16_t *out_id);
us_status usi_mcap_write_channel(usi_mcap_writer *w, uint16_t schema, const char *topic, const char *encoding,
                                 int32_t n, const char *const *keys, const char *const *values,
                                 uint16_t *out_id);
us_status usi_mcap_write_message(usi_mcap_writer *w, uint16_t channel, uint32_t sequence, uint64_t log_time,
                                 uint64_t publish_time, const void *bytes, size_t length);
// Closes the open chunk, if anything is in it: chunk and message indices go to `out`.
us_status usi_mcap_write_chunk(usi_mcap_writer *w);
// These go to `out` at once, before the open chunk.
us_status usi_mcap_write_attachment(usi_mcap_writer *w, const char *name, const char *media_type,
                                    uint64_t log_time, uint64_t create_time, const void *bytes,
                                    size_t length);
us_status usi_mcap_write_metadata(usi_mcap_writer *w, const char *name, int32_t n, const char *const *keys,
                                  const char *const *values);
// The open chunk, the end of the data, the summary and the footer. Nothing may be written afterwards.
us_status usi_mcap_write_end(usi_mcap_writer *w);

// ---- reading ----
//
// Each function reads the contents of one kind of record. Everything points into the bytes that were given;
// every length is checked against them before it is used. false: the contents end before the fields do.

typedef struct usi_mcap_text {
    const char *text;  // not ended by 0
    size_t length;
} usi_mcap_text;

typedef struct usi_mcap_bytes {
    const uint8_t *at;
    size_t length;
} usi_mcap_bytes;

typedef struct usi_mcap_record {
    uint8_t op;
    usi_mcap_bytes contents;
    size_t size;  // of the whole record
} usi_mcap_record;
// The record at `offset`. false when it is not there as a whole.
bool usi_mcap_read_record(usi_mcap_bytes bytes, size_t offset, usi_mcap_record *out);

bool usi_mcap_read_header(usi_mcap_bytes contents, usi_mcap_text *out_profile, usi_mcap_text *out_library);

typedef struct usi_mcap_schema {
    uint16_t id;
    usi_mcap_text name, encoding, data;
} usi_mcap_schema;
bool usi_mcap_read_schema(usi_mcap_bytes contents, usi_mcap_schema *out);

typedef struct usi_mcap_channel {
    uint16_t id, schema;
    usi_mcap_text topic, encoding;
    usi_mcap_bytes metadata;  // a map from text to text
} usi_mcap_channel;
bool usi_mcap_read_channel(usi_mcap_bytes contents, usi_mcap_channel *out);

typedef struct usi_mcap_message {
    uint16_t channel;
    uint32_t sequence;
    uint64_t log_time, publish_time;
    usi_mcap_bytes data;
} usi_mcap_message;
bool usi_mcap_read_message(usi_mcap_bytes contents, usi_mcap_message *out);

typedef struct usi_mcap_chunk {
    uint64_t first_time, last_time, size;
    uint32_t crc;
    usi_mcap_text compression;
    usi_mcap_bytes records;
} usi_mcap_chunk;
bool usi_mcap_read_chunk(usi_mcap_bytes contents, usi_mcap_chunk *out);

typedef struct usi_mcap_attachment {
    uint64_t log_time, create_time;
    usi_mcap_text name, media_type;
    usi_mcap_bytes data;
    bool is_whole;  // its CRC is right, or it has none
} usi_mcap_attachment;
bool usi_mcap_read_attachment(usi_mcap_bytes contents, usi_mcap_attachment *out);

bool usi_mcap_read_metadata(usi_mcap_bytes contents, usi_mcap_text *out_name, usi_mcap_bytes *out_map);
// Takes the next pair off a map. false at the end or where it is damaged: then `map` is not empty.
bool usi_mcap_next_pair(usi_mcap_bytes *map, usi_mcap_text *out_key, usi_mcap_text *out_value);

// Where an attachment or a metadata record is; both begin alike.
bool usi_mcap_read_place(usi_mcap_bytes contents, uint64_t *out_offset, uint64_t *out_length);

typedef struct usi_mcap_statistics {
    uint64_t n_message, first_time, last_time;
    uint32_t n_channel, n_attachment, n_metadata, n_chunk;
    uint16_t n_schema;
    usi_mcap_bytes counts;  // a map from channel to number of messages
} usi_mcap_statistics;
bool usi_mcap_read_statistics(usi_mcap_bytes contents, usi_mcap_statistics *out);
bool usi_mcap_next_count(usi_mcap_bytes *map, uint16_t *out_channel, uint64_t *out_count);

typedef struct usi_mcap_end {
    size_t data_end;     // of the data section, and start of the summary
    size_t summary_end;  // of the summary's records; equal to data_end when there is no summary
    uint32_t
        crc;  // of all bytes from data_end to the CRC itself, which stands before the last magic; 0: none
} usi_mcap_end;
// Looks at the last USI_MCAP_END_SIZE bytes of a file of `length` bytes. false: there is no footer, or it
// cannot be right.
bool usi_mcap_read_end(usi_mcap_bytes tail, uint64_t length, usi_mcap_end *out);

// Opens chunks. Keeps one buffer, which grows to the largest chunk.
typedef struct usi_mcap_decoder {
    us_allocator allocator;
    uint8_t *buffer;
    size_t cap;
    void *zstd, *lz4;
} usi_mcap_decoder;
void usi_mcap_decoder_init(usi_mcap_decoder *d, const us_allocator *allocator);
void usi_mcap_decoder_fini(usi_mcap_decoder *d);
// The records of a chunk, checked against its CRC; they stay until the next call. What is wrong is put into
// `why` (a constant text). US_ERR_SYNTAX when it is damaged, US_ERR_LIMIT when it claims to be too large or
// is compressed in an unknown way, US_ERR_MEMORY.
us_status usi_mcap_decode_chunk(usi_mcap_decoder *d, const usi_mcap_chunk *chunk, usi_mcap_bytes *out_records,
                                const char **why);

#endif
