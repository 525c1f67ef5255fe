// The numbers of a pair of materials by the keys of the command `pair`.
#ifndef USI_WORLD_PAIR_FIELD_H
#define USI_WORLD_PAIR_FIELD_H

#include "understudy/material.h"
#include "wire/world_command.h"

static inline double *usi_pair_field(us_pair_values *values, int32_t key) {
    static const size_t offset[USI_PAIR_KEYS] = {
#define USI_PAIR_OFFSET(field, name, low, high) offsetof(us_pair_values, field),
        USI_PAIR_KEY_LIST(USI_PAIR_OFFSET)
#undef USI_PAIR_OFFSET
    };
    return (double *)(void *)((char *)values + offset[key]);
}

#endif
