// Types of samples that pass: known ones, and those of which the switch knows the name alone.
//
// What is not known is carried as it is. Its stand-in has the name and the hash that the source announces, so
// that the operators' side announces the same; the bytes are not looked at. A type that is known by name and
// not by hash, or has keys where ours has none, is another one.
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "switch/switch.h"
#include "wire/type.h"

struct usi_raw_type {
    us_message_type type;
    char name[USI_NAME], hash[80];
    usi_raw_type *next;
};

static bool is_same_type(const us_message_type *known, const us_endpoint *e) {
    const char *hash = us_message_hash(known);
    const bool has_both = e->hash[0] && hash && hash[0];
    return e->is_xcdr1 && known->has_key == e->is_keyed && (!has_both || strcmp(hash, e->hash) == 0);
}

const us_message_type *usi_switch_find_type(us_switch *sw, const us_endpoint *e) {
    const us_message_type *known = us_message_find(e->type);
    // Requests and replies are carried as they are in either dialect.
    const bool is_topic = strncmp(e->topic, "rq/", 3) != 0 && strncmp(e->topic, "rr/", 3) != 0;
    if (known && is_topic && is_same_type(known, e)) return known;
    const bool is_xcdr2 = !e->is_xcdr1;
    for (usi_raw_type *at = sw->raw_types; at; at = at->next) {
        if (!strcmp(at->name, e->type) && !strcmp(at->hash, e->hash) && at->type.has_key == e->is_keyed &&
            at->type.is_xcdr2 == is_xcdr2)
            return &at->type;
    }
    usi_raw_type *raw = usi_alloc(&sw->allocator, sizeof *raw, _Alignof(usi_raw_type));
    if (!raw) return NULL;
    *raw = (usi_raw_type){.next = sw->raw_types};
    snprintf(raw->name, sizeof raw->name, "%s", e->type);
    snprintf(raw->hash, sizeof raw->hash, "%s", e->hash);
    raw->type = (us_message_type){.name = raw->name,
                                  .dds_name = raw->name,
                                  .hash = raw->hash,
                                  .schema = "",
                                  .has_key = e->is_keyed,
                                  .is_opaque = true,
                                  .is_xcdr2 = is_xcdr2,
                                  .other = -1};
    sw->raw_types = raw;
    return &raw->type;
}

void usi_switch_release_types(us_switch *sw) {
    for (usi_raw_type *at = sw->raw_types, *next; at; at = next) {
        next = at->next;
        usi_release(&sw->allocator, at, sizeof *at, _Alignof(usi_raw_type));
    }
    sw->raw_types = NULL;
}
