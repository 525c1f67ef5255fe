// What rosbag2 wants to find in an MCAP file beside its messages.
#ifndef USI_RECORD_ROSBAG_H
#define USI_RECORD_ROSBAG_H

#include "understudy/record.h"

// Of one topic.
typedef struct usi_rosbag_topic {
    const char *name, *type, *hash;
    const char *qos;  // usi_rosbag_qos
    uint64_t n_message;
} usi_rosbag_topic;

typedef struct usi_rosbag {
    const char *path;  // of the file
    uint64_t n_message;
    uint64_t first, last;  // ns; of its messages
    int32_t n_topic;
    const usi_rosbag_topic *topics;
} usi_rosbag;

enum { USI_ROSBAG_QOS = 640 };

// The profiles that writers of a topic offer, as the channel's "offered_qos_profiles" has them.
void usi_rosbag_qos(const us_offered_qos *qos, char out[USI_ROSBAG_QOS]);

// The text of the metadata record "rosbag2", key "serialized_metadata". Its length without the 0 at the end,
// which is there when `cap` has room; `cap` 0: the length alone.
size_t usi_rosbag_metadata(const usi_rosbag *bag, char *out, size_t cap);

#endif
