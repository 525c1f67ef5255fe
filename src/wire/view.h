// Messages between the page and the simulator (docs/viewer-protocol.md), as bytes: the frames of a
// picture, and the messages of a client.
//
// Pure functions: no sockets, no threads. What a client sends is looked at as a whole before anything is made
// of it: its size, its nesting, its characters and the kind and range of every field are bounded, and what is
// refused is refused with a text that the client gets.
#ifndef USI_WIRE_VIEW_H
#define USI_WIRE_VIEW_H

#include "understudy/base.h"

// ---- frames: little endian, a head and then n entries ----

typedef enum usi_view_kind {
    USI_VIEW_POSES = 1,
    USI_VIEW_VALUES,
    USI_VIEW_CONTACTS,
    USI_VIEW_TORQUES,
    USI_VIEW_RUTS,
    USI_VIEW_POINTS
} usi_view_kind;

enum {
    USI_VIEW_HEAD_SIZE = 32,  // bytes of the head and of one entry of each kind
    USI_VIEW_POSE_SIZE = 32,
    USI_VIEW_VALUE_SIZE = 8,
    USI_VIEW_CONTACT_SIZE = 52,
    USI_VIEW_TORQUE_SIZE = 4,
    USI_VIEW_RUT_COLUMNS = 64 * 64,  // of a tile of a patch
    USI_VIEW_RUT_SIZE = 16 + 2 * USI_VIEW_RUT_COLUMNS,
    USI_VIEW_CLOUD_SIZE = 32,  // of points: what lies between the head and the entries
    USI_VIEW_POINT_SIZE = 8,
    USI_VIEW_FULL = 1,  // flag of poses: every body is in it
};

typedef struct usi_view_head {
    usi_view_kind kind;
    uint8_t flags;
    uint32_t epoch;  // of values: the generation
    double time;     // s, simulated
    int64_t tick;
    uint32_t n;
} usi_view_head;

typedef struct usi_view_contact {
    int32_t body_a, body_b;  // -1: the world
    float point[3];          // m, in W
    float normal[3];         // from B to A
    float force[3];          // N, on A
    float gap;               // m
    bool is_sliding;
} usi_view_contact;

// Each writes one part to `at`, which has room for it, and returns where the next one goes.
uint8_t *usi_view_put_head(uint8_t *at, const usi_view_head *head);
uint8_t *usi_view_put_pose(uint8_t *at, uint32_t body, const float pose[7]);  // x y z, qw qx qy qz
uint8_t *usi_view_put_value(uint8_t *at, double value);
uint8_t *usi_view_put_contact(uint8_t *at, const usi_view_contact *contact);
uint8_t *usi_view_put_torque(uint8_t *at, float torque);
// How a tile of a patch of soil differs from the ground as it was: `change` in units of `unit` m, x fastest.
uint8_t *usi_view_put_rut(uint8_t *at, int32_t patch, int32_t u, int32_t v, float unit,
                          const int16_t change[USI_VIEW_RUT_COLUMNS]);

// The cloud of a lidar: points follow as whole numbers of `unit` m from the origin, along the world's axes.
typedef struct usi_view_cloud {
    uint32_t lidar;
    float unit;        // m
    double origin[3];  // m, in W
} usi_view_cloud;
uint8_t *usi_view_put_cloud(uint8_t *at, const usi_view_cloud *cloud);
uint8_t *usi_view_put_point(uint8_t *at, const int16_t place[3], uint8_t intensity, uint8_t ring);

// The nearest float; larger values become the largest one.
float usi_view_float(double value);

// ---- messages of a client ----

enum {
    USI_VIEW_MESSAGE = 65536,  // bytes of a message at most
    USI_VIEW_VALUE_COUNT = 256,
    USI_VIEW_NAME = 255,      // bytes of a name at most
    USI_VIEW_COMMAND = 4096,  // bytes of a world command at most
    USI_VIEW_HZ = 60,
    USI_VIEW_DEPTH = 2,           // an object with lists in it
    USI_VIEW_MAX_POINT = 200000,  // of each lidar in a frame
};

typedef enum usi_view_op {
    USI_VIEW_OP_VIEW,
    USI_VIEW_OP_WATCH,
    USI_VIEW_OP_FULL,
    USI_VIEW_OP_COMMAND,
    USI_VIEW_OP_DRIVE
} usi_view_op;

// Fields of `view` may be left out; those that are there.
enum {
    USI_VIEW_HAS_HZ = 1,
    USI_VIEW_HAS_CONTACTS = 2,
    USI_VIEW_HAS_TORQUES = 4,
    USI_VIEW_HAS_TOPICS = 8,
    USI_VIEW_HAS_POINTS = 16
};

// Texts lie in `memory`, end with 0, are UTF-8 and have no control characters. Only the fields of its op mean
// anything.
typedef struct usi_view_message {
    usi_view_op op;
    // view
    uint32_t has;
    double hz;  // 0 .. USI_VIEW_HZ
    bool enable_contacts, enable_torques, enable_topics;
    int32_t points;  // of each lidar in a frame at most, 0 .. USI_VIEW_MAX_POINT
    // watch
    uint32_t generation;
    int32_t n_value;
    const char *values[USI_VIEW_VALUE_COUNT];
    // command
    int64_t id;  // any whole number that a double holds
    const char *text;
    // drive
    const char *robot;  // may be ""
    double vx, vy, wz;  // m/s, m/s, rad/s; finite

    char memory[USI_VIEW_MESSAGE];
} usi_view_message;

// US_ERR_SYNTAX for what is no JSON object of this kind, US_ERR_NAME for an unknown op or field, US_ERR_VALUE
// for a field that is missing or of the wrong kind or range, US_ERR_LIMIT for too much of something; err says
// what and what to send instead.
us_status usi_view_parse(const void *bytes, size_t length, usi_view_message *out, us_error *err);

// True when the bytes are UTF-8 as RFC 3629 has it.
bool usi_view_is_utf8(const void *bytes, size_t length);

#endif
