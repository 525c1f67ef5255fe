// The values that all clients of the page want to see, each of them once.
//
// The server's thread keeps a table of names with their number of users, and hands copies of it to the
// stepping thread. A name keeps its slot as long as somebody watches it, so that one client's change disturbs
// no other's values; a slot that is given to another name is born again, and a frame that is older than
// that says nothing about it.
#ifndef USI_WORLD_WATCH_H
#define USI_WORLD_WATCH_H

#include <stdatomic.h>

#include "base/memory.h"

enum { USI_WATCH_SLOTS = 2048 };  // different names of all clients together

// One copy of the table, never changed once made.
typedef struct usi_watch_row {
    const char *name;  // NULL: nobody watches this slot
    uint64_t born;     // generation of the first copy in which the slot has this name
} usi_watch_row;
typedef struct usi_watch {
    _Atomic int32_t n_ref;
    us_allocator allocator;
    size_t size;
    uint64_t generation;
    int32_t n;
    usi_watch_row row[];
} usi_watch;
usi_watch *usi_watch_ref(usi_watch *watch);
void usi_watch_unref(usi_watch *watch);  // NULL is allowed

typedef struct usi_watch_slot {
    char *name;
    uint64_t hash, born;
    int32_t n_user;
} usi_watch_slot;
typedef struct usi_watch_table {
    us_allocator allocator;
    uint64_t generation;  // of the last copy
    bool is_dirty;        // it has changed since
    int32_t n;            // slots that were ever used
    usi_watch_slot slot[USI_WATCH_SLOTS];
} usi_watch_table;

void usi_watch_table_init(usi_watch_table *table, const us_allocator *allocator);
void usi_watch_table_fini(usi_watch_table *table);
// Slots of n names, each counted. *out_needed is the generation from which on all of them can be seen.
// US_ERR_LIMIT when there are too many different names; then nothing has changed.
us_status usi_watch_table_take(usi_watch_table *table, int32_t n, const char *const *names,
                               int32_t *out_slots, uint64_t *out_needed);
void usi_watch_table_drop(usi_watch_table *table, int32_t n, const int32_t *slots);
// A copy of the table as it is now, with one reference; NULL when there is no memory.
usi_watch *usi_watch_table_copy(usi_watch_table *table);

#endif
