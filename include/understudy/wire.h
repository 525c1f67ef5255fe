// Messages as bytes: the ROS 2 types that Understudy speaks, their CDR encoding, their text, their schema and
// their hash.
//
// Pure functions over constant tables made from idl/*.idl: no sockets, no threads, no allocation. A message
// is a C struct of understudy/messages.h, us_msg_twist for geometry_msgs/msg/Twist; its bytes are plain CDR
// (XCDR1) with the 4-byte header, as DDS carries and MCAP stores them.
#ifndef UNDERSTUDY_WIRE_H
#define UNDERSTUDY_WIRE_H

#include "understudy/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_message_type us_message_type;

enum { US_PARTITION_TEXT = 64 };  // bytes of the names of a topic's DDS partitions

US_API int32_t us_message_n_type(void);
US_API const us_message_type *us_message_get_type(int32_t i);  // NULL for a bad index
// By "geometry_msgs/msg/Twist" or "geometry_msgs::msg::dds_::Twist_"; NULL when unknown.
US_API const us_message_type *us_message_find(const char *name);
US_API const char *us_message_name(const us_message_type *type);      // "geometry_msgs/msg/Twist"
US_API const char *us_message_dds_name(const us_message_type *type);  // "geometry_msgs::msg::dds_::Twist_"
US_API const char *
us_message_hash(const us_message_type *type);  // "RIHS01_9c45..."; "" for layouts without one
// The .msg text with that of every type in it, as MCAP's "ros2msg" wants it.
US_API const char *us_message_schema(const us_message_type *type);
US_API size_t us_message_size(const us_message_type *type);  // of the C struct

// The message as CDR, little endian, into buf. buf NULL asks for the length only. US_ERR_LIMIT when it does
// not fit. A sequence of length 0 may have a NULL buffer; a string NULL is sent as "".
US_API us_status us_message_encode(const us_message_type *type, const void *message, void *buf, size_t cap,
                                   size_t *out_length);

// Reads CDR of either endianness. The struct and all that hangs on it are put into `memory` (aligned to 16
// bytes), nothing else is touched; *out_message points to its start. Strings end with 0 and are checked for
// it. Up to 3 bytes may be left over at the end (padding to 4). US_ERR_SYNTAX for bytes that are no such
// message (err says which field), US_ERR_LIMIT when the memory is too small.
US_API us_status us_message_decode(const us_message_type *type, const void *bytes, size_t length,
                                   void *memory, size_t cap, const void **out_message, us_error *err);

// The message as text, one "field: value" per line, nested ones indented, as `ros2 topic echo` shows it;
// numbers that read back to the same bits, bytes as numbers. Long arrays are cut after max_item elements with
// "..." (0: never). Into buf, always ended by 0; *out_length is what all would need.
US_API us_status us_message_print(const us_message_type *type, const void *bytes, size_t length,
                                  int32_t max_item, char *buf, size_t cap, size_t *out_length, us_error *err);

// One number by its path in the message, for example "pose.pose.position.x" or "position[2]": NaN when there
// is none.
US_API double us_message_get_number(const us_message_type *type, const void *bytes, size_t length,
                                    const char *path);

#ifdef __cplusplus
}
#endif
#endif
