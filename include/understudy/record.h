// Recordings: MCAP files with every message, the commands that entered, and a hash of the state per tick.
//
// Any MCAP tool reads them: channels are ROS 2 topics (encoding "cdr", schemas "ros2msg"). The writer has a
// thread of its own: a message is copied into a bounded queue, and when that is full the caller waits
// (counted), for a recording with holes proves nothing. Chunks are compressed, and written to the disk at
// least once per second: a program that is killed leaves a file readable up to then.
#ifndef UNDERSTUDY_RECORD_H
#define UNDERSTUDY_RECORD_H

#include "understudy/base.h"
#include "understudy/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum us_compression {
    US_COMPRESSION_NONE,
    US_COMPRESSION_LZ4,
    US_COMPRESSION_ZSTD,
    US_COMPRESSION_COUNT
} us_compression;

typedef struct us_recorder us_recorder;
typedef struct us_recorder_def {
    us_allocator allocator;      // the recorder's thread uses it too: it must allow several threads at once
    const char *path;            // a file that is there already is overwritten
    us_compression compression;  // default zstd
    size_t chunk_size;           // bytes before compression; default 1 MiB
    double flush_every;          // s of wall time; default 0.5
    size_t queue_size;           // bytes; default 32 MiB
} us_recorder_def;
US_API us_recorder_def us_recorder_def_default(void);

US_API us_status us_recorder_open(const us_recorder_def *def, us_recorder **out_recorder, us_error *err);
// Adds or finds a channel. Its index >= 0, or -1 with err set.
US_API int32_t us_recorder_add_channel(us_recorder *recorder, const char *topic, const us_message_type *type,
                                       us_error *err);
// What the writers of a topic offer, which rosbag2 offers again when it plays the file.
typedef struct us_offered_qos {
    bool is_reliable;
    bool is_latched;  // late readers get the last samples
    int32_t depth;    // samples that are kept for them; 0: all
} us_offered_qos;
// The same, of a topic whose quality of service is known; NULL: it is not. That of a channel that is there
// stays.
US_API int32_t us_recorder_add_offered(us_recorder *recorder, const char *topic, const us_message_type *type,
                                       const us_offered_qos *offered, us_error *err);
// Times in ns (simulated time), not negative. Channels and messages may be added from any thread; messages of
// one thread keep their order. US_ERR_ARG for a bad channel or time, US_ERR_LIMIT for more than 255 MiB;
// after a failure to write the file, that failure.
US_API us_status us_recorder_write(us_recorder *recorder, int32_t channel, int64_t log_time,
                                   int64_t publish_time, const void *bytes, size_t length);
// A file inside the file: the scene, the model's hash, the start state. Any time before close. Waits until it
// is in the file (or in vain).
US_API us_status us_recorder_attach(us_recorder *recorder, const char *name, const char *media_type,
                                    const void *bytes, size_t length);
US_API us_status us_recorder_set_metadata(us_recorder *recorder, const char *name, int32_t n,
                                          const char *const *keys, const char *const *values);

typedef struct us_recorder_info {
    int64_t n_message;        // taken from callers
    int64_t n_chunk, n_byte;  // in the file
    int64_t n_wait;           // times that a caller had to wait for the disk
    us_status failed;         // the first failure (disk full, no memory); nothing is written after it, and
                              // us_recorder_close says more
} us_recorder_info;
US_API us_recorder_info us_recorder_get_info(const us_recorder *recorder);
// Writes all that waits, the index and the end. The recorder is gone afterwards also when that fails.
US_API us_status us_recorder_close(us_recorder *recorder, us_error *err);

// ---- reading ----

// A whole recording, read as it is walked. A file without an end (killed while recording) is read chunk by
// chunk up to where it stops: is_complete says so. Damaged chunks are an error that names the offset.
typedef struct us_recording us_recording;
US_API us_status us_recording_open(const char *path, const us_allocator *allocator,
                                   us_recording **out_recording, us_error *err);
// The same from memory, which must stay.
US_API us_status us_recording_open_bytes(const void *bytes, size_t length, const us_allocator *allocator,
                                         us_recording **out_recording, us_error *err);
US_API void us_recording_close(us_recording *recording);

typedef struct us_recording_info {
    bool is_complete;
    int32_t n_channel, n_attachment, n_metadata;
    int64_t n_message;              // -1: not known without reading all
    int64_t first_time, last_time;  // ns
    char library[128];
} us_recording_info;
US_API us_recording_info us_recording_get_info(const us_recording *recording);

typedef struct us_channel_info {
    const char *topic;
    const char *type;    // schema's name, "nav_msgs/msg/Odometry"
    const char *schema;  // its text
    const char *encoding;
    int64_t n_message;  // -1: not known
} us_channel_info;
US_API us_channel_info us_recording_get_channel(const us_recording *recording, int32_t i);

// The bytes of an attachment, borrowed; NULL when there is none of that name.
US_API const void *us_recording_find_attachment(const us_recording *recording, const char *name,
                                                size_t *out_length);
US_API const char *us_recording_find_metadata(const us_recording *recording, const char *name,
                                              const char *key);  // NULL when absent

typedef struct us_recorded {
    int32_t channel;
    uint32_t sequence;
    int64_t log_time, publish_time;
    const void *bytes;  // borrowed until the next call
    size_t length;
} us_recorded;
// The messages in the order they stand in the file. US_OK with *out_has false at the end; US_ERR_SYNTAX where
// the file is damaged.
US_API us_status us_recording_rewind(us_recording *recording);
// From the start again, but only messages with log_time >= time (ns); whole chunks before it are not opened.
US_API us_status us_recording_seek(us_recording *recording, int64_t time);
US_API us_status us_recording_next(us_recording *recording, us_recorded *out, bool *out_has, us_error *err);

// ---- comparing ----

struct us_compared_field;
typedef struct us_compare_def {
    us_allocator allocator;
    double tolerance;  // in the unit of each number; default 0
    double slack;      // s: a shift in time that explains a difference; default 0
    bool (*is_wanted)(void *context, const char *topic);  // NULL: all but those of the simulation itself
    void *context;                                        // of is_wanted and field
    // Each number that differs by more than 0, in the order of the first recording; may be NULL.
    void (*field)(void *context, const struct us_compared_field *field);
} us_compare_def;
US_API us_compare_def us_compare_def_default(void);

typedef struct us_compared_field {
    const char *topic;
    const char *path;  // "pose.pose.position.x"; NULL: only one of the two recordings has the topic
    int32_t side;      // where the path is NULL: which one has it, 0 or 1
    int64_t n;         // samples that were compared
    double max, rms;   // of the absolute difference; infinite where only one of the two is a number
    double max_time;   // s of the stamps
    double onset;      // s: since when it has been beyond the tolerance; NaN: it never was
} us_compared_field;

typedef struct us_compare_result {
    int32_t n_topic;   // that both have
    int32_t n_alone;   // that one of them has
    int64_t n_sample;  // of the first that were compared
    int64_t
        n_unmatched;  // and that had no counterpart: at their stamp the second has no samples on both sides
    int64_t n_field, n_different, n_beyond;  // numbers; that differ; that differ by more than the tolerance
} us_compare_result;

// Compares two recordings topic by topic, number by number: each sample of the first with the second at the
// same stamp (publish_time), on the straight line between two of its samples that are no further apart than
// three periods or 0.3 s. Stamps inside messages are not compared, nor is what lies behind the first 256
// numbers of a message. Reads both from the start. US_ERR_SYNTAX where a file is damaged, US_ERR_MEMORY.
US_API us_status us_recording_compare(us_recording *a, us_recording *b, const us_compare_def *def,
                                      us_compare_result *out_result, us_error *err);

// ---- playing ----

// Says which message of a recording is due when. It waits for nothing and reads no clock: the caller tells it
// the time (ns of any clock that does not go back), sleeps and publishes. A message is due when as much time
// has passed since the first call as lies between its log_time and the start, divided by the rate; one whose
// time goes back is due at once, for the order of the file is kept.
typedef struct us_timeline {
    us_recording *recording;
    double rate;
    int64_t anchor_time, anchor_clock;  // recorded time `anchor_time` is at `anchor_clock`
    us_recorded message;                // the next one
    bool is_anchored, has_message;
} us_timeline;

typedef enum us_timeline_what { US_TIMELINE_DUE, US_TIMELINE_WAIT, US_TIMELINE_END } us_timeline_what;

typedef struct us_timeline_step {
    us_timeline_what what;
    us_recorded message;  // when something is due; its bytes are borrowed until the next call
    int64_t wait;  // ns of the clock until something is due: 0 when it is or at the end, INT64_MAX while it
                   // is paused
} us_timeline_step;

// rate 1: as recorded; N: N times as fast; INFINITY: all at once; 0: paused. from: the first log_time to play
// (ns); negative: where the recording begins. US_ERR_ARG for a rate that is negative or no number. The
// recording must stay, and nobody else may read messages from it.
US_API us_status us_timeline_init(us_timeline *timeline, us_recording *recording, double rate, int64_t from);
US_API us_status us_timeline_next(us_timeline *timeline, int64_t clock, us_timeline_step *out, us_error *err);
// From `clock` on at another rate; the recorded time does not jump.
US_API us_status us_timeline_set_rate(us_timeline *timeline, int64_t clock, double rate);
// The recorded time at `clock`, ns. At an infinite rate: that of the last message that was due.
US_API int64_t us_timeline_get_time(const us_timeline *timeline, int64_t clock);

#ifdef __cplusplus
}
#endif
#endif
