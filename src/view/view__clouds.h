// What lidars saw on the page: the last whole turn of each, as bytes that need only be sent.
//
//   stepping thread                                     server's thread
//   usi_clouds_take: turns that have become whole ----> usi_clouds_put: one that a client has not got yet
//
// Points are made with the frame that shows them: thinned to what the most demanding client asked for, put
// into the world by the sensor's true poses, and rounded to a share of the lidar's range. A client that asked
// for fewer gets each second of them, or each third.
//
// One lock guards everything. The stepping thread only tries it: when the server has it, the turn is taken
// with the next frame.
#ifndef USI_VIEW_CLOUDS_H
#define USI_VIEW_CLOUDS_H

#include <pthread.h>

#include "understudy/query.h"
#include "view/view__bytes.h"
#include "wire/view.h"

enum { USI_CLOUDS_LIDARS = 32 };  // lidars that are shown

typedef struct usi_cloud {
    uint64_t stamp;  // 0: nothing was seen yet
    int64_t turn;
    int64_t tick;
    double time;  // s: when the turn began
    usi_view_cloud head;
    int32_t n, cap;
    uint8_t *point;  // entries of a frame
} usi_cloud;

typedef struct usi_clouds {
    us_allocator allocator;
    pthread_mutex_t lock;
    uint32_t revision;  // 0: none was taken yet
    uint64_t jump, stamp;
    int32_t n;
    usi_cloud cloud[USI_CLOUDS_LIDARS];
} usi_clouds;

void usi_clouds_init(usi_clouds *clouds, const us_allocator *allocator);
void usi_clouds_fini(usi_clouds *clouds);

// Stepping thread, between two steps: turns that are new, with at most `wanted` points each. `jump` is
// another number when time has jumped. What has no memory is not shown.
void usi_clouds_take(usi_clouds *clouds, const us_sim *sim, uint32_t revision, uint64_t jump, int32_t wanted);

// Server's thread: a message with the oldest cloud of the revision that is newer than *stamp, of at most
// `wanted` points. False: there is none, or no memory. *stamp becomes that of the cloud.
bool usi_clouds_put(usi_clouds *clouds, uint32_t revision, int32_t wanted, uint64_t *stamp, usi_bytes *out);

#endif
