// The messages as C structs, under short names, and their types.
//
//   us_msg_twist twist = {.linear.x = 0.3};
//   us_message_encode(usi_type_twist, &twist, buf, sizeof buf, &length);
//
// Of each type in idl/*.idl tools/idl_types.c makes, in understudy/messages.h and wire/message_list.h,
//   us_msg_joint_state       the struct, which lies in memory as that of Cyclone's IDL compiler does
//   USI_MESSAGE_JOINT_STATE  its number, for us_message_get_type and for switches
//   usi_type_joint_state     its us_message_type, also for static initialisers
// Strings are char * (bounded ones char[]), never written to by the encoder; sequences have _length and
// _buffer, and _maximum and _release are not looked at.
#ifndef USI_WIRE_MESSAGES_H
#define USI_WIRE_MESSAGES_H

#include "wire/message_list.h"

// What Cyclone DDS wants to know of a type. Its m_typename is that of the C module: for the types of before
// Iron (usi_type_humble_...) use us_message_dds_name(type) instead.
static inline const dds_topic_descriptor_t *usi_message_descriptor(const us_message_type *type) {
    return (const dds_topic_descriptor_t *)type->descriptor;
}

// A constant text as the member of a message that is only sent.
static inline char *usi_text(const char *text) {
    union {
        const char *given;
        char *member;
    } u = {.given = text};
    return u.member;
}

#endif
