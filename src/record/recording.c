// Reading a recording: an MCAP file that nobody vouches for.
//
// A file that ends as it should is opened through its summary: schemas, channels, statistics, and the places
// of attachments and metadata are there. A file without an end, or with one whose checksum is wrong, is
// walked from its start once, chunk by chunk, to learn the same; where a record is cut off, the recording
// ends. Messages are always read by walking: records in the order of the file, one chunk opened at a time.
//
//     data section:   [chunk][index]..[attachment][chunk][index]..[data end]
//     at                             ^
//     chunk                   ....... the records of the chunk before `at`
//     chunk_at                    ^
//
// The checksum of the data section is summed up while walking and compared at its end: with the checksums of
// the chunks and of the summary, every byte of the file is under one.
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "record/recording_file.h"
#include "understudy/record.h"
#include "wire/crc32.h"
#include "wire/mcap.h"

// What a file may ask for. A stranger's bytes can stand for thirty thousand times as many, so that what is
// kept and what is unpacked have limits of their own: 10 MB never take more than 512 MB of memory or some
// seconds.
enum {
    MAX_KEPT = 64 << 20,     // bytes of names, definitions and metadata that stay while the file is open
    MAX_CHANNEL = 4096,      // recordings of robots have some ten, those of cars some hundred
    MIN_UNPACKED = 1 << 30,  // bytes that all chunks together may unpack to, of a small file
    MAX_EXPANSION = 256,     // and of a large one, as a multiple of its length
};

// Index by the 16-bit number that the file uses. Grows with the numbers, which are small in most files.
typedef struct id_map {
    int32_t *index;  // -1: none
    int32_t cap;
} id_map;

typedef struct schema {
    const char *name, *encoding, *text;
} schema;

typedef struct channel {
    us_channel_info info;
    uint16_t schema;
} channel;

typedef struct attachment {
    const char *name;
    uint64_t offset, length;  // in the file
    void *bytes;              // once they were asked for
} attachment;

typedef struct pair {
    const char *name, *key, *value;
} pair;

struct us_recording {
    us_allocator allocator;
    usi_arena arena;
    size_t n_kept;     // bytes of texts in the arena
    bool is_over;      // more should have been kept than MAX_KEPT
    const char *path;  // in the arena; NULL: from memory
    usi_recording_file file;
    us_recording_info info;

    schema *schemas;
    channel *channels;
    attachment *attachments;
    pair *pairs;
    int32_t n_schema, cap_schema, cap_channel, cap_attachment, n_pair, cap_pair;
    id_map schema_of_id, channel_of_id;

    size_t data_start, data_end;
    bool has_summary;
    bool is_scanning;  // the walk also gathers attachments and metadata
    bool is_checking;  // the walk has seen everything from the start, so that the checksum of the data
                       // section can be compared
    uint32_t crc;
    size_t at;
    usi_mcap_bytes chunk;
    size_t chunk_at, chunk_offset;  // offset: of the chunk in the file
    uint64_t from_time;
    uint64_t n_unpacked;  // bytes of the chunks opened by this walk
    usi_mcap_decoder decoder;
};

// ---- Errors ----

static us_status complain(const us_recording *r, us_status status, size_t offset, us_error *err,
                          const char *what) {
    if (status == US_ERR_MEMORY && !r->is_over)
        return us_error_set(err, status, NULL, NULL, "no memory left to read the recording");
    if (status == US_ERR_MEMORY) {
        status = US_ERR_LIMIT;
        what = "its names, definitions and metadata take more than 64 MiB";
    }
    us_place place = {.file = r->path};
    const char *remedy =
        status == US_ERR_LIMIT
            ? NULL
            : "what stands before that place can be used; the rest needs a good copy of the file";
    return us_error_set(err, status, &place, remedy, "%s at byte %zu: %s",
                        status == US_ERR_LIMIT ? "cannot be read" : "damaged", offset, what);
}

// ---- What the file has ----

static int32_t find_id(const id_map *map, uint16_t id) { return id < map->cap ? map->index[id] : -1; }

static us_status set_id(const us_allocator *a, id_map *map, uint16_t id, int32_t index) {
    if (id >= map->cap) {
        int32_t cap = map->cap ? map->cap : 64;
        while (cap <= id)
            cap *= 2;
        int32_t *grown = usi_alloc(a, (size_t)cap * sizeof *grown, 16);
        if (!grown) return US_ERR_MEMORY;
        for (int32_t i = 0; i < cap; i++)
            grown[i] = i < map->cap ? map->index[i] : -1;
        usi_release(a, map->index, (size_t)map->cap * sizeof *map->index, 16);
        *map = (id_map){grown, cap};
    }
    map->index[id] = index;
    return US_OK;
}

static const char *keep(us_recording *r, usi_mcap_text text) {
    r->is_over = text.length >= MAX_KEPT - r->n_kept;
    char *copy = r->is_over ? NULL : usi_arena_alloc(&r->arena, text.length + 1, 1);
    if (!copy) return NULL;
    r->n_kept += text.length + 1;
    if (text.length) memcpy(copy, text.text, text.length);
    copy[text.length] = 0;
    return copy;
}

// The kept text is the one of the file, up to a 0 within.
static bool is_same(const char *kept, usi_mcap_text text) {
    return strnlen(kept, text.length + 1) <= text.length &&
           (!text.length || strncmp(kept, text.text, text.length) == 0);
}

static us_status add_schema(us_recording *r, const usi_mcap_schema *s, size_t offset, us_error *err) {
    if (s->id == 0) return US_OK;  // the format says: to be ignored
    int32_t known = find_id(&r->schema_of_id, s->id);
    if (known >= 0) {
        const schema *old = &r->schemas[known];
        if (is_same(old->name, s->name) && is_same(old->encoding, s->encoding) && is_same(old->text, s->data))
            return US_OK;
        return complain(r, US_ERR_SYNTAX, offset, err,
                        "a schema differs from an earlier one of the same number");
    }
    us_status status =
        usi_grow(&r->allocator, (void **)&r->schemas, r->n_schema, &r->cap_schema, sizeof *r->schemas);
    schema new = {0};
    bool is_kept = (new.name = keep(r, s->name)) && (new.encoding = keep(r, s->encoding)) &&
                   (new.text = keep(r, s->data));
    if (!status && is_kept) status = set_id(&r->allocator, &r->schema_of_id, s->id, r->n_schema);
    if (status || !is_kept) return complain(r, US_ERR_MEMORY, offset, err, "");
    r->schemas[r->n_schema++] = new;
    return US_OK;
}

static us_status add_channel(us_recording *r, const usi_mcap_channel *c, size_t offset, us_error *err) {
    int32_t known = find_id(&r->channel_of_id, c->id);
    if (known >= 0) {
        const channel *old = &r->channels[known];
        if (old->schema == c->schema && is_same(old->info.topic, c->topic) &&
            is_same(old->info.encoding, c->encoding))
            return US_OK;
        return complain(r, US_ERR_SYNTAX, offset, err,
                        "a channel differs from an earlier one of the same number");
    }
    int32_t schema_index = find_id(&r->schema_of_id, c->schema);
    if (c->schema && schema_index < 0)
        return complain(r, US_ERR_SYNTAX, offset, err,
                        "a channel has a schema that does not stand before it");
    if (r->info.n_channel == MAX_CHANNEL)
        return complain(r, US_ERR_LIMIT, offset, err, "it has more than 4096 channels");
    us_status status = usi_grow(&r->allocator, (void **)&r->channels, r->info.n_channel, &r->cap_channel,
                                sizeof *r->channels);
    channel new = {{NULL, "", "", NULL, -1}, c->schema};
    bool is_kept = (new.info.topic = keep(r, c->topic)) && (new.info.encoding = keep(r, c->encoding));
    if (!status && is_kept) status = set_id(&r->allocator, &r->channel_of_id, c->id, r->info.n_channel);
    if (status || !is_kept) return complain(r, US_ERR_MEMORY, offset, err, "");
    if (c->schema) {
        new.info.type = r->schemas[schema_index].name;
        new.info.schema = r->schemas[schema_index].text;
    }
    r->channels[r->info.n_channel++] = new;
    return US_OK;
}

static us_status add_attachment(us_recording *r, usi_mcap_bytes contents, size_t offset, us_error *err) {
    usi_mcap_attachment a;
    if (!usi_mcap_read_attachment(contents, &a))
        return complain(r, US_ERR_SYNTAX, offset, err, "an attachment is too short");
    if (!a.is_whole) return complain(r, US_ERR_SYNTAX, offset, err, "the checksum of an attachment is wrong");
    us_status status = usi_grow(&r->allocator, (void **)&r->attachments, r->info.n_attachment,
                                &r->cap_attachment, sizeof *r->attachments);
    attachment new = {keep(r, a.name), 0, a.data.length, NULL};
    new.offset = offset + USI_MCAP_RECORD_HEAD + (uint64_t)(a.data.length ? a.data.at - contents.at : 0);
    if (status || !new.name) return complain(r, US_ERR_MEMORY, offset, err, "");
    r->attachments[r->info.n_attachment++] = new;
    return US_OK;
}

static us_status add_metadata(us_recording *r, usi_mcap_bytes contents, size_t offset, us_error *err) {
    usi_mcap_text name, key, value;
    usi_mcap_bytes map;
    if (!usi_mcap_read_metadata(contents, &name, &map))
        return complain(r, US_ERR_SYNTAX, offset, err, "metadata is too short");
    const char *kept = keep(r, name);
    if (!kept) return complain(r, US_ERR_MEMORY, offset, err, "");
    while (usi_mcap_next_pair(&map, &key, &value)) {
        us_status status =
            usi_grow(&r->allocator, (void **)&r->pairs, r->n_pair, &r->cap_pair, sizeof *r->pairs);
        pair new = {.name = kept};
        bool is_kept = (new.key = keep(r, key)) && (new.value = keep(r, value));
        if (status || !is_kept) return complain(r, US_ERR_MEMORY, offset, err, "");
        r->pairs[r->n_pair++] = new;
    }
    if (map.length) return complain(r, US_ERR_SYNTAX, offset, err, "a key or value of metadata is too short");
    r->info.n_metadata++;
    return US_OK;
}

static us_status read_definition(us_recording *r, const usi_mcap_record *record, size_t offset,
                                 us_error *err) {
    if (record->op == USI_MCAP_SCHEMA) {
        usi_mcap_schema s;
        if (!usi_mcap_read_schema(record->contents, &s))
            return complain(r, US_ERR_SYNTAX, offset, err, "a schema is too short");
        return add_schema(r, &s, offset, err);
    }
    usi_mcap_channel c;
    if (!usi_mcap_read_channel(record->contents, &c))
        return complain(r, US_ERR_SYNTAX, offset, err, "a channel is too short");
    return add_channel(r, &c, offset, err);
}

// ---- Walking ----

static void start_walk(us_recording *r, uint64_t from_time) {
    r->at = r->data_start;
    r->chunk = (usi_mcap_bytes){NULL, 0};
    r->chunk_at = 0;
    r->from_time = from_time;
    r->n_unpacked = 0;
    r->is_checking = from_time == 0;
    r->crc = 0;
    if (r->is_checking && !usi_recording_file_crc(&r->file, 0, r->data_start, &r->crc))
        r->is_checking = false;
}

// A message, wherever it stands. *out_has stays false when it is before the time that was asked for.
static us_status read_message(us_recording *r, const usi_mcap_record *record, size_t offset, us_recorded *out,
                              bool *out_has, us_error *err) {
    usi_mcap_message m;
    if (!usi_mcap_read_message(record->contents, &m))
        return complain(r, US_ERR_SYNTAX, offset, err, "a message is too short");
    int32_t index = find_id(&r->channel_of_id, m.channel);
    if (index < 0)
        return complain(r, US_ERR_SYNTAX, offset, err,
                        "a message has a channel that does not stand before it");
    if (m.log_time > INT64_MAX || m.publish_time > INT64_MAX)
        return complain(r, US_ERR_SYNTAX, offset, err, "the time of a message is too large");
    if (m.log_time < r->from_time) return US_OK;
    *out = (us_recorded){index,     m.sequence,   (int64_t)m.log_time, (int64_t)m.publish_time,
                         m.data.at, m.data.length};
    *out_has = true;
    return US_OK;
}

// One record of the open chunk.
static us_status walk_in_chunk(us_recording *r, us_recorded *out, bool *out_has, us_error *err) {
    usi_mcap_record record;
    if (!usi_mcap_read_record(r->chunk, r->chunk_at, &record)) {
        return complain(r, US_ERR_SYNTAX, r->chunk_offset, err,
                        "a record in this chunk is longer than the chunk");
    }
    us_status status = US_OK;
    if (record.op == USI_MCAP_MESSAGE) {
        status = read_message(r, &record, r->chunk_offset, out, out_has, err);
    } else if (record.op == USI_MCAP_SCHEMA || record.op == USI_MCAP_CHANNEL) {
        status = read_definition(r, &record, r->chunk_offset, err);
    }
    if (!status) r->chunk_at += record.size;
    return status;
}

static us_status open_chunk(us_recording *r, const usi_mcap_record *record, us_error *err) {
    usi_mcap_chunk chunk;
    if (!usi_mcap_read_chunk(record->contents, &chunk))
        return complain(r, US_ERR_SYNTAX, r->at, err, "a chunk is too short");
    if (chunk.last_time < r->from_time) return US_OK;
    uint64_t most = (uint64_t)r->file.length * MAX_EXPANSION;
    if (most < MIN_UNPACKED) most = MIN_UNPACKED;
    if (chunk.size <= USI_MCAP_MAX_CHUNK && chunk.size > most - r->n_unpacked)
        return complain(r, US_ERR_LIMIT, r->at, err,
                        "its chunks unpack to more than 1 GiB, and to more than 256 times the file");
    const char *why;
    usi_mcap_bytes records;
    us_status status = usi_mcap_decode_chunk(&r->decoder, &chunk, &records, &why);
    if (status) return complain(r, status, r->at, err, why);
    r->n_unpacked += chunk.size;
    r->chunk = records;
    r->chunk_at = 0;
    r->chunk_offset = r->at;
    return US_OK;
}

// The record that ends the data holds the checksum of everything before it, 0 for none.
static us_status check_data_end(const us_recording *r, const usi_mcap_record *record, us_error *err) {
    uint32_t crc = 0;
    for (size_t i = 0; i < 4 && i < record->contents.length; i++)
        crc |= (uint32_t)record->contents.at[i] << 8 * i;
    if (crc && r->is_checking && crc != r->crc) {
        return complain(r, US_ERR_SYNTAX, r->at, err,
                        "the checksum of all data before this place is wrong, though each chunk's is right");
    }
    if (r->has_summary && r->at + record->size != r->data_end)
        return complain(r, US_ERR_SYNTAX, r->at, err, "the data ends here, but the summary does not begin");
    return US_OK;
}

// One record outside of chunks. *out_end is set where the data ends.
static us_status walk_in_file(us_recording *r, us_recorded *out, bool *out_has, bool *out_end,
                              us_error *err) {
    usi_mcap_record record;
    *out_end = true;
    if (r->at == r->data_end) {
        // All writers of summaries end the data before it.
        return r->has_summary ? complain(r, US_ERR_SYNTAX, r->at, err,
                                         "the record that ends the data is missing before this place")
                              : US_OK;
    }
    // A file that was cut off may end in zeros, when the disk had made room for what never came.
    if (!r->info.is_complete && usi_recording_file_is_zero(&r->file, r->at)) return US_OK;
    if (!usi_recording_file_record(&r->file, r->data_end, r->at, &record)) {
        if (r->file.failed) return complain(r, r->file.failed, r->at, err, r->file.why);
        // Where a recording was cut off, this is where it ends. A file with an end has no reason for it.
        return r->info.is_complete
                   ? complain(r, US_ERR_SYNTAX, r->at, err, "a record is longer than the file")
                   : US_OK;
    }
    us_status status = US_OK;
    switch (record.op) {
    case 0:
        status = complain(r, US_ERR_SYNTAX, r->at, err, "no record begins with 0");
        break;
    case USI_MCAP_SCHEMA:
    case USI_MCAP_CHANNEL:
        status = read_definition(r, &record, r->at, err);
        break;
    case USI_MCAP_MESSAGE:
        status = read_message(r, &record, r->at, out, out_has, err);
        break;
    case USI_MCAP_CHUNK:
        status = open_chunk(r, &record, err);
        break;
    case USI_MCAP_ATTACHMENT:
        status = r->is_scanning ? add_attachment(r, record.contents, r->at, err) : US_OK;
        break;
    case USI_MCAP_METADATA:
        status = r->is_scanning ? add_metadata(r, record.contents, r->at, err) : US_OK;
        break;
    case USI_MCAP_DATA_END:
        return check_data_end(r, &record, err);
    case USI_MCAP_FOOTER:
        return US_OK;
    default:
        break;  // indices, and kinds that newer versions of the format may have
    }
    if (status) return status;
    if (r->is_checking) r->crc = usi_crc32(r->crc, record.contents.at - USI_MCAP_RECORD_HEAD, record.size);
    r->at += record.size;
    *out_end = false;
    return US_OK;
}

static us_status walk(us_recording *r, us_recorded *out, bool *out_has, us_error *err) {
    bool is_end = false;
    us_status status = US_OK;
    *out_has = false;
    while (!status && !*out_has && !is_end) {
        status = r->chunk_at < r->chunk.length ? walk_in_chunk(r, out, out_has, err)
                                               : walk_in_file(r, out, out_has, &is_end, err);
    }
    return status;
}

// ---- Opening ----

static void forget(us_recording *r) {
    for (int32_t i = 0; i < r->info.n_attachment; i++)
        usi_release(&r->allocator, r->attachments[i].bytes, (size_t)r->attachments[i].length + 1, 16);
    r->n_schema = r->n_pair = r->info.n_channel = r->info.n_attachment = r->info.n_metadata = 0;
    r->info.n_message = -1;
    r->info.first_time = r->info.last_time = 0;
    for (int32_t i = 0; i < r->schema_of_id.cap; i++)
        r->schema_of_id.index[i] = -1;
    for (int32_t i = 0; i < r->channel_of_id.cap; i++)
        r->channel_of_id.index[i] = -1;
}

// Walks all of the file to learn what is in it. Damage is no error here: reading the messages will meet it
// again, and has more to say.
static us_status scan(us_recording *r, us_error *err) {
    us_recorded m;
    bool has;
    int64_t n = 0;
    us_status status;
    forget(r);
    start_walk(r, 0);
    r->is_scanning = true;
    while (!(status = walk(r, &m, &has, err)) && has) {
        int64_t *n_message = &r->channels[m.channel].info.n_message;
        *n_message = *n_message < 0 ? 1 : *n_message + 1;
        if (n == 0 || m.log_time < r->info.first_time) r->info.first_time = m.log_time;
        if (n == 0 || m.log_time > r->info.last_time) r->info.last_time = m.log_time;
        n++;
    }
    r->is_scanning = false;
    for (int32_t i = 0; i < r->info.n_channel; i++) {
        us_channel_info *info = &r->channels[i].info;
        info->n_message = status ? -1 : info->n_message < 0 ? 0 : info->n_message;
    }
    r->info.n_message = status ? -1 : n;
    if (status == US_ERR_MEMORY) return status;
    us_error_set(err, US_OK, NULL, NULL, "%s", "");
    return US_OK;
}

// An attachment or metadata at the offset that its index gives. *out_ok is cleared when there is none.
static us_status read_indexed(us_recording *r, const usi_mcap_record *index, bool *out_ok, us_error *err) {
    uint64_t offset, length;
    usi_mcap_record record;
    bool is_attachment = index->op == USI_MCAP_ATTACHMENT_INDEX;
    if (!usi_mcap_read_place(index->contents, &offset, &length) || offset > SIZE_MAX ||
        !usi_recording_file_record(&r->file, r->data_end, offset, &record) ||
        record.op != (is_attachment ? USI_MCAP_ATTACHMENT : USI_MCAP_METADATA)) {
        *out_ok = false;
        return US_OK;
    }
    return is_attachment ? add_attachment(r, record.contents, (size_t)offset, err)
                         : add_metadata(r, record.contents, (size_t)offset, err);
}

// The numbers of messages. A map of counts stands for all channels or for none.
static bool read_statistics(us_recording *r, usi_mcap_bytes contents, usi_mcap_statistics *out) {
    uint16_t id;
    uint64_t count;
    if (!usi_mcap_read_statistics(contents, out)) return false;
    bool has_counts = out->counts.length > 0;
    for (int32_t i = 0; i < r->info.n_channel; i++)
        r->channels[i].info.n_message = has_counts ? 0 : -1;
    while (usi_mcap_next_count(&out->counts, &id, &count)) {
        int32_t index = find_id(&r->channel_of_id, id);
        if (index >= 0 && count <= INT64_MAX) r->channels[index].info.n_message = (int64_t)count;
    }
    return true;
}

// Everything from the summary. *out_ok is false when that is not enough: no statistics, or something that
// they count is missing.
static us_status read_summary(us_recording *r, const usi_mcap_end *end, bool *out_ok, us_error *err) {
    usi_mcap_statistics statistics = {0};
    size_t statistics_at = 0;
    bool ok = true;
    us_status status = US_OK;
    for (size_t at = end->data_end; at < end->summary_end && ok && !status;) {
        usi_mcap_record record;
        if (!usi_recording_file_record(&r->file, end->summary_end, at, &record)) break;
        const size_t size = record.size;
        if (record.op == USI_MCAP_SCHEMA || record.op == USI_MCAP_CHANNEL)
            status = read_definition(r, &record, at, err);
        if (record.op == USI_MCAP_ATTACHMENT_INDEX || record.op == USI_MCAP_METADATA_INDEX)
            status = read_indexed(r, &record, &ok, err);
        if (record.op == USI_MCAP_STATISTICS) statistics_at = at;
        at += size;
    }
    // Last: the channels may stand behind it.
    usi_mcap_record record;
    bool has_statistics = statistics_at > 0 &&
                          usi_recording_file_record(&r->file, end->summary_end, statistics_at, &record) &&
                          read_statistics(r, record.contents, &statistics);
    r->info.n_message = (int64_t)statistics.n_message;
    r->info.first_time = (int64_t)statistics.first_time;
    r->info.last_time = (int64_t)statistics.last_time;
    *out_ok = ok && has_statistics && statistics.n_channel == (uint32_t)r->info.n_channel &&
              statistics.n_attachment == (uint32_t)r->info.n_attachment &&
              statistics.n_metadata == (uint32_t)r->info.n_metadata && r->info.n_message >= 0 &&
              r->info.first_time >= 0 && r->info.last_time >= 0;
    return status;
}

static us_status read_start(us_recording *r, us_error *err) {
    us_place place = {.file = r->path};
    const uint8_t *magic = usi_recording_file_view(&r->file, 0, USI_MCAP_MAGIC_SIZE);
    if (!magic && r->file.failed) return complain(r, r->file.failed, 0, err, r->file.why);
    if (!magic || memcmp(magic, usi_mcap_magic, USI_MCAP_MAGIC_SIZE) != 0) {
        return us_error_set(err, US_ERR_SYNTAX, &place, "recordings are made by understudy run --record FILE",
                            "this is not an MCAP file: its first bytes differ");
    }
    r->data_start = USI_MCAP_MAGIC_SIZE;
    usi_mcap_record header;
    usi_mcap_text profile, library;
    // Cut off within the header: a recording of nothing.
    if (!usi_recording_file_record(&r->file, r->file.length, r->data_start, &header)) {
        if (r->file.failed) return complain(r, r->file.failed, r->data_start, err, r->file.why);
        r->data_start = r->file.length;
        return US_OK;
    }
    if (header.op != USI_MCAP_HEADER || !usi_mcap_read_header(header.contents, &profile, &library)) {
        return complain(r, US_ERR_SYNTAX, r->data_start, err, "the header is missing");
    }
    size_t n = library.length < sizeof r->info.library - 1 ? library.length : sizeof r->info.library - 1;
    if (n) memcpy(r->info.library, library.text, n);
    r->data_start += header.size;
    return US_OK;
}

// Whether the file ends as it should, with a summary whose checksum is right.
static bool has_end(us_recording *r, usi_mcap_end *out) {
    usi_recording_file *f = &r->file;
    if (f->length < USI_MCAP_END_SIZE) return false;
    const uint8_t *tail = usi_recording_file_view(f, f->length - USI_MCAP_END_SIZE, USI_MCAP_END_SIZE);
    if (!tail || !usi_mcap_read_end((usi_mcap_bytes){tail, USI_MCAP_END_SIZE}, f->length, out)) return false;
    // All bytes from the summary's first to the last before the CRC itself.
    uint32_t crc = 0;
    uint64_t n = f->length - USI_MCAP_MAGIC_SIZE - 4 - out->data_end;
    return !out->crc || (usi_recording_file_crc(f, out->data_end, n, &crc) && crc == out->crc);
}

static us_status read_all(us_recording *r, us_error *err) {
    us_status status = read_start(r, err);
    if (status) return status;
    usi_mcap_end end;
    bool ok = false;
    forget(r);
    r->data_end = r->file.length;
    if (has_end(r, &end) && end.data_end >= r->data_start) {
        r->info.is_complete = true;
        r->data_end = end.data_end;
        r->has_summary = end.data_end < end.summary_end;
        status = read_summary(r, &end, &ok, err);
        if (status) return status;
    }
    if (!ok) status = scan(r, err);
    start_walk(r, 0);
    return status;
}

// NULL, with err set, when there is no memory.
static us_recording *create(const us_allocator *allocator, us_error *err) {
    us_allocator a = allocator ? *allocator : us_allocator_default();
    us_recording *r = usi_alloc(&a, sizeof *r, _Alignof(us_recording));
    if (!r) {
        us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory left to read the recording");
        return NULL;
    }
    memset(r, 0, sizeof *r);
    r->allocator = a;
    usi_arena_init(&r->arena, &a);
    usi_mcap_decoder_init(&r->decoder, &a);
    usi_recording_file_init(&r->file, &a);
    return r;
}

// Takes over r: it is the caller's when all went well, and gone otherwise.
static us_status finish_open(us_recording *r, us_status status, us_recording **out_recording) {
    if (status) {
        us_recording_close(r);
        return status;
    }
    *out_recording = r;
    return US_OK;
}

us_status us_recording_open_bytes(const void *bytes, size_t length, const us_allocator *allocator,
                                  us_recording **out_recording, us_error *err) {
    if (out_recording) *out_recording = NULL;
    if (!out_recording || (!bytes && length))
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "us_recording_open_bytes: bytes or result is NULL");
    us_recording *r = create(allocator, err);
    if (!r) return US_ERR_MEMORY;
    static const uint8_t nothing[1];
    r->file.bytes = bytes ? bytes : nothing;
    r->file.length = length;
    return finish_open(r, read_all(r, err), out_recording);
}

us_status us_recording_open(const char *path, const us_allocator *allocator, us_recording **out_recording,
                            us_error *err) {
    if (out_recording) *out_recording = NULL;
    if (!path || !out_recording)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "us_recording_open: path or result is NULL");
    us_recording *r = create(allocator, err);
    if (!r) return US_ERR_MEMORY;
    bool ok = true;
    r->path = usi_arena_text(&r->arena, path, &ok);
    us_status status =
        ok ? usi_recording_file_open(&r->file, path, err) : complain(r, US_ERR_MEMORY, 0, err, "");
    if (!status) status = read_all(r, err);
    return finish_open(r, status, out_recording);
}

void us_recording_close(us_recording *r) {
    if (!r) return;
    us_allocator a = r->allocator;
    for (int32_t i = 0; i < r->info.n_attachment; i++)
        usi_release(&a, r->attachments[i].bytes, (size_t)r->attachments[i].length + 1, 16);
    usi_recording_file_fini(&r->file);
    usi_mcap_decoder_fini(&r->decoder);
    usi_release(&a, r->schemas, (size_t)r->cap_schema * sizeof *r->schemas, _Alignof(max_align_t));
    usi_release(&a, r->channels, (size_t)r->cap_channel * sizeof *r->channels, _Alignof(max_align_t));
    usi_release(&a, r->attachments, (size_t)r->cap_attachment * sizeof *r->attachments,
                _Alignof(max_align_t));
    usi_release(&a, r->pairs, (size_t)r->cap_pair * sizeof *r->pairs, _Alignof(max_align_t));
    usi_release(&a, r->schema_of_id.index, (size_t)r->schema_of_id.cap * sizeof(int32_t), 16);
    usi_release(&a, r->channel_of_id.index, (size_t)r->channel_of_id.cap * sizeof(int32_t), 16);
    usi_arena_fini(&r->arena);
    usi_release(&a, r, sizeof *r, _Alignof(us_recording));
}

// ---- Asking ----

us_recording_info us_recording_get_info(const us_recording *r) {
    return r ? r->info : (us_recording_info){.n_message = -1};
}

us_channel_info us_recording_get_channel(const us_recording *r, int32_t i) {
    if (!r || i < 0 || i >= r->info.n_channel) return (us_channel_info){.n_message = -1};
    return r->channels[i].info;
}

// Read when they are asked for: an attachment may be as long as the file.
static bool load_attachment(const us_recording *r, attachment *a) {
    if (a->bytes) return true;
    // Nothing is still a place: NULL means that there is no such attachment. The file's window is that of the
    // walk, which goes on behind it.
    uint8_t *bytes = a->length < SIZE_MAX ? usi_alloc(&r->allocator, (size_t)a->length + 1, 16) : NULL;
    usi_recording_file own = r->file;
    own.window = NULL;
    own.cap = own.n_window = 0;
    const uint8_t *from = bytes ? usi_recording_file_view(&own, a->offset, a->length) : NULL;
    if (from && a->length) memcpy(bytes, from, (size_t)a->length);
    usi_release(&own.allocator, own.window, own.cap, 16);
    if (!from) usi_release(&r->allocator, bytes, (size_t)a->length + 1, 16);
    if (from) a->bytes = bytes;
    return from != NULL;
}

const void *us_recording_find_attachment(const us_recording *r, const char *name, size_t *out_length) {
    if (out_length) *out_length = 0;
    for (int32_t i = 0; r && name && i < r->info.n_attachment; i++) {
        attachment *a = &r->attachments[i];
        if (strcmp(a->name, name) != 0) continue;
        if (!load_attachment(r, a)) return NULL;
        if (out_length) *out_length = (size_t)a->length;
        return a->bytes;
    }
    return NULL;
}

const char *us_recording_find_metadata(const us_recording *r, const char *name, const char *key) {
    for (int32_t i = 0; r && name && key && i < r->n_pair; i++) {
        const pair *p = &r->pairs[i];
        if (strcmp(p->name, name) == 0 && strcmp(p->key, key) == 0) return p->value;
    }
    return NULL;
}

us_status us_recording_rewind(us_recording *r) {
    if (!r) return US_ERR_ARG;
    start_walk(r, 0);
    return US_OK;
}

us_status us_recording_seek(us_recording *r, int64_t time) {
    if (!r) return US_ERR_ARG;
    start_walk(r, time > 0 ? (uint64_t)time : 0);
    return US_OK;
}

us_status us_recording_next(us_recording *r, us_recorded *out, bool *out_has, us_error *err) {
    if (!r || !out || !out_has)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "us_recording_next: an argument is NULL");
    return walk(r, out, out_has, err);
}
