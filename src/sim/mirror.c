// A copy of what can be seen of a sim: for a thread of its own that looks while the sim steps on.
//
// Poses, readings, parameters and materials are copied where both have the same arrays; what a step alone
// needs (contacts, what plug-ins keep) is left out. Soil goes by way of a buffer: packed by the thread that
// steps, laid out by the one that looks.
#include <string.h>

#include "sim/sim.h"

enum { MAX_FIELDS = USI_STATE_MAX_FIELDS };

void usi_sim_mirror(const us_sim *from, us_sim *to) {
    usi_field a[MAX_FIELDS], b[MAX_FIELDS];
    static const char *const left_out[] = {"n_touch",   "touch",     "n_anchor", "anchor",
                                           "law_state", "n_applied", "applied",  "plugin"};
    const int32_t n =
        usi_state_fields(from->model, from->max_contact, from->n_plugin_byte, a, MAX_FIELDS, NULL);
    usi_state_fields(to->model, to->max_contact, to->n_plugin_byte, b, MAX_FIELDS, NULL);
    for (int32_t i = 0; i < n && i < MAX_FIELDS; i++) {
        bool is_left_out = a[i].count != b[i].count;
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            is_left_out = is_left_out || strcmp(a[i].name, left_out[k]) == 0;
        if (is_left_out) continue;
        memcpy((char *)to->now.block + b[i].offset, (const char *)from->now.block + a[i].offset,
               a[i].count * a[i].each);
    }
}
