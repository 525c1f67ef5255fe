// The table of watched values.
#include "view/view__watch.h"

#include <string.h>

usi_watch *usi_watch_ref(usi_watch *watch) {
    atomic_fetch_add(&watch->n_ref, 1);
    return watch;
}

void usi_watch_unref(usi_watch *watch) {
    if (!watch || atomic_fetch_sub(&watch->n_ref, 1) != 1) return;
    us_allocator allocator = watch->allocator;
    usi_release(&allocator, watch, watch->size, _Alignof(usi_watch));
}

void usi_watch_table_init(usi_watch_table *table, const us_allocator *allocator) {
    memset(table, 0, sizeof *table);
    table->allocator = *allocator;
}

static void clear(usi_watch_table *table, usi_watch_slot *slot) {
    if (slot->name) usi_release(&table->allocator, slot->name, strlen(slot->name) + 1, 1);
    memset(slot, 0, sizeof *slot);
}

void usi_watch_table_fini(usi_watch_table *table) {
    for (int32_t i = 0; i < table->n; i++)
        clear(table, &table->slot[i]);
    table->n = 0;
}

static int32_t find(const usi_watch_table *table, const char *name, uint64_t hash, int32_t *out_free) {
    *out_free = table->n < USI_WATCH_SLOTS ? table->n : -1;
    for (int32_t i = 0; i < table->n; i++) {
        const usi_watch_slot *slot = &table->slot[i];
        if (slot->name && slot->hash == hash && strcmp(slot->name, name) == 0) return i;
        if (!slot->name && (*out_free < 0 || *out_free == table->n)) *out_free = i;
    }
    return -1;
}

us_status usi_watch_table_take(usi_watch_table *table, int32_t n, const char *const *names,
                               int32_t *out_slots, uint64_t *out_needed) {
    *out_needed = 0;
    for (int32_t i = 0; i < n; i++) {
        size_t length = strlen(names[i]);
        uint64_t hash = us_hash_bytes(0, names[i], length);
        int32_t empty, at = find(table, names[i], hash, &empty);
        if (at < 0) {
            char *name = empty < 0 ? NULL : usi_alloc(&table->allocator, length + 1, 1);
            if (!name) {
                usi_watch_table_drop(table, i, out_slots);
                return empty < 0 ? US_ERR_LIMIT : US_ERR_MEMORY;
            }
            at = empty;
            if (at == table->n) table->n++;
            memcpy(name, names[i], length + 1);
            table->slot[at] = (usi_watch_slot){name, hash, table->generation + 1, 0};
            table->is_dirty = true;
        }
        table->slot[at].n_user++;
        out_slots[i] = at;
        if (table->slot[at].born > *out_needed) *out_needed = table->slot[at].born;
    }
    return US_OK;
}

void usi_watch_table_drop(usi_watch_table *table, int32_t n, const int32_t *slots) {
    for (int32_t i = 0; i < n; i++) {
        usi_watch_slot *slot = &table->slot[slots[i]];
        if (--slot->n_user > 0) continue;
        clear(table, slot);
        table->is_dirty = true;
    }
    while (table->n > 0 && !table->slot[table->n - 1].name)
        table->n--;
}

usi_watch *usi_watch_table_copy(usi_watch_table *table) {
    size_t size = sizeof(usi_watch) + (size_t)table->n * sizeof(usi_watch_row);
    size_t texts = size;
    for (int32_t i = 0; i < table->n; i++)
        size += table->slot[i].name ? strlen(table->slot[i].name) + 1 : 0;
    usi_watch *watch = usi_alloc(&table->allocator, size, _Alignof(usi_watch));
    if (!watch) return NULL;
    atomic_init(&watch->n_ref, 1);
    watch->allocator = table->allocator;
    watch->size = size;
    watch->generation = ++table->generation;
    watch->n = table->n;
    char *at = (char *)watch + texts;
    for (int32_t i = 0; i < table->n; i++) {
        const usi_watch_slot *slot = &table->slot[i];
        watch->row[i] = (usi_watch_row){NULL, slot->born};
        if (!slot->name) continue;
        size_t length = strlen(slot->name) + 1;
        watch->row[i].name = memcpy(at, slot->name, length);
        at += length;
    }
    table->is_dirty = false;
    return watch;
}
