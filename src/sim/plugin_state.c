// Plug-ins: what others add to a step, with their states in the state block.
#include <string.h>

#include "sim/sim.h"

// Offset of a plug-in's state among the bytes of all plug-ins.
static size_t offset_of(const us_sim *s, int32_t plugin) {
    size_t at = 0;
    for (int32_t i = 0; i < plugin; i++)
        at += (s->plugin[i].state_size + USI_ALIGN - 1) / USI_ALIGN * USI_ALIGN;
    return at;
}

us_status usi_take_plugins(us_sim *s, const us_sim_def *def, us_error *err) {
    if (def->n_plugin <= 0) return US_OK;
    for (int32_t i = 0; i < def->n_plugin; i++) {
        const us_plugin *p = &def->plugins[i];
        if (p->version != US_PLUGIN_VERSION || !p->before) {
            return us_error_set(
                err, US_ERR_ARG, NULL, "set version to US_PLUGIN_VERSION and give it a function `before`",
                "plug-in %d (%s) does not fit this library", (int)i, p->name ? p->name : "without a name");
        }
    }
    size_t bytes = (size_t)def->n_plugin * sizeof *s->plugin;
    s->plugin = usi_alloc(&s->allocator, bytes, _Alignof(us_plugin));
    if (!s->plugin) return US_ERR_MEMORY;
    memcpy(s->plugin, def->plugins, bytes);
    s->n_plugin = def->n_plugin;
    s->n_plugin_byte = offset_of(s, s->n_plugin);
    return US_OK;
}

void usi_start_plugins(us_sim *s) {
    for (int32_t i = 0; i < s->n_plugin; i++) {
        if (s->plugin[i].start) s->plugin[i].start(s->plugin[i].context, s, s->now.plugin + offset_of(s, i));
    }
}

void usi_carry_plugins(us_sim *s) {
    // From here on next changes: a step that fails leaves it between two ticks.
    const bool is_incremental = s->back_buffer_is_one_step_old;
    s->back_buffer_is_one_step_old = false;
    if (s->n_plugin == 0) return;
    if (!is_incremental && s->n_plugin_byte > 0) memcpy(s->next.plugin, s->now.plugin, s->n_plugin_byte);
    size_t at = 0;
    for (int32_t i = 0; is_incremental && i < s->n_plugin; i++) {
        const us_plugin *p = &s->plugin[i];
        if (p->carry)
            p->carry(p->context, s, s->now.plugin + at, s->next.plugin + at);
        else if (p->state_size > 0)
            memcpy(s->next.plugin + at, s->now.plugin + at, p->state_size);
        at += (p->state_size + USI_ALIGN - 1) / USI_ALIGN * USI_ALIGN;
    }
}

void *usi_sim_plugin(us_sim *s, int32_t plugin) {
    if (!s || plugin < 0 || plugin >= s->n_plugin) return NULL;
    s->back_buffer_is_one_step_old = false;
    return s->now.plugin + offset_of(s, plugin);
}

int32_t usi_sim_find_plugin(const us_sim *s, const void *context) {
    for (int32_t i = 0; i < s->n_plugin; i++) {
        if (s->plugin[i].context == context) return i;
    }
    return -1;
}

const void *us_sim_view_plugin(const us_sim *s, int32_t plugin) {
    return s && plugin >= 0 && plugin < s->n_plugin ? s->now.plugin + offset_of(s, plugin) : NULL;
}

bool usi_plugins_are_sound(const us_sim *s, const uint8_t *state) {
    for (int32_t i = 0; i < s->n_plugin; i++) {
        const us_plugin *p = &s->plugin[i];
        if (p->check && !p->check(p->context, s, state + offset_of(s, i))) return false;
    }
    return true;
}
