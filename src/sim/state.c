// A sim's life, and its state as a block: snapshot, hash, poison.
#include <string.h>

#include "sim/half_steps.h"

us_sim_def us_sim_def_default(void) {
    us_sim_def d = {.allocator = us_allocator_default(), .n_thread = 1};
    return d;
}

int32_t usi_state_fields(const us_model *m, int32_t room, size_t n_plugin_byte, usi_field *out, int32_t cap,
                         size_t *out_size) {
    const size_t n_q_pad = (size_t)m->n_q_pad, n_pad = (size_t)m->n_pad, n_drive = (size_t)m->n_drive,
                 n_body = (size_t)m->n_body;
    const size_t n_friction = (size_t)m->n_friction, n_battery = (size_t)m->n_battery;
    const size_t n_encoder = (size_t)m->n_encoder, n_sensor = (size_t)m->n_sensor,
                 n_reading = (size_t)m->n_reading, n_sensor_part = (size_t)m->n_sensor_part;
    const size_t max_contact = m->n_geom > 0 ? (size_t)room : 0,
                 n_pair = (size_t)m->n_material * (size_t)m->n_material, n_loose = (size_t)m->n_loose,
                 n_soil = (size_t)m->n_soil, n_region = (size_t)m->n_region, n_hold = (size_t)m->n_hold,
                 n_law_state = (size_t)m->n_law_state;
    size_t size = 0;
    int32_t n = 0;
    USI_STATE_FIELDS(USI_FIELD_ROW)
    USI_CONTACT_STATE_FIELDS(USI_FIELD_ROW)
    if (out_size) *out_size = size;
    return n;
}

static int32_t scratch_fields(const us_model *m, usi_field *out, int32_t cap, size_t *out_size) {
    const size_t n_q_pad = (size_t)m->n_q_pad, n_pad = (size_t)m->n_pad,
                 max_joint_row = (size_t)m->max_joint_row, n_actuated = (size_t)m->n_actuated,
                 n_body = (size_t)m->n_body, n_loop = (size_t)m->n_loop;
    size_t size = 0;
    int32_t n = 0;
    USI_SCRATCH_FIELDS(USI_FIELD_ROW)
    if (out_size) *out_size = size ? size : 1;
    return n;
}

enum { MAX_FIELDS = USI_STATE_MAX_FIELDS };

bool usi_state_make(us_sim *s, usi_state *state) {
    usi_field f[MAX_FIELDS];
    usi_state_fields(s->model, s->max_contact, s->n_plugin_byte, f, MAX_FIELDS, &s->state_size);
    state->block = usi_alloc(&s->allocator, s->state_size, USI_ALIGN);
    if (!state->block) return false;
    memset(state->block, 0, s->state_size);
    int32_t i = 0;
#define CARVE(type, name, count, unit, about) \
    state->name = (type *)(void *)((char *)state->block + f[i++].offset);
    USI_STATE_FIELDS(CARVE)
#undef CARVE
#define CARVE(type, name, count, unit, about) \
    state->contact.name = (type *)(void *)((char *)state->block + f[i++].offset);
    USI_CONTACT_STATE_FIELDS(CARVE)
#undef CARVE
    return true;
}

static bool make_scratch(us_sim *s) {
    usi_field f[MAX_FIELDS];
    scratch_fields(s->model, f, MAX_FIELDS, &s->scratch_size);
    s->scratch = usi_alloc(&s->allocator, s->scratch_size, USI_ALIGN);
    if (!s->scratch) return false;
    int32_t i = 0;
#define CARVE(type, name, count, unit, about) s->name = (type *)(void *)((char *)s->scratch + f[i++].offset);
    USI_SCRATCH_FIELDS(CARVE)
#undef CARVE
    return true;
}

static us_status start(us_sim *s, us_error *err) {
    const us_model *m = s->model;
    memset(s->now.block, 0, s->state_size);
    s->has_last_step = false;
    s->n_event = 0;
    usi_events_clear(s);
    usi_deformables_clear(s);
    usi_lidars_clear(s);
    if (usi_hold_follow(s)) return US_ERR_MEMORY;
    if (m->n_q) memcpy(s->now.q, m->q_start, (size_t)m->n_q * sizeof(double));
    if (m->n_node) memcpy(s->now.v, m->v_start, (size_t)m->n_node * sizeof(double));
    for (int32_t i = 0; i < m->n_drive; i++) {
        s->now.drive_position[i] = m->drive[i].position;
        s->now.drive_velocity[i] = m->drive[i].velocity;
        s->now.drive_torque[i] = m->drive[i].torque;
        s->now.drive_limit_scale[i] = 1;
        s->now.drive_strength[i] = 1;
    }
    if (m->n_friction > 0) memcpy(s->now.blockage, m->blockage, (size_t)m->n_friction * sizeof(double));
    for (int32_t i = 0; i < m->n_battery; i++) {
        s->now.battery_energy[i] = m->battery[i].capacity;
        s->now.battery_on[i] = 1;
    }
    for (int32_t i = 0; i < m->n_material * m->n_material; i++)
        s->now.contact.pair[i] = m->pair[i].values;
    if (m->n_material > 0)
        memcpy(s->now.contact.pair_model, m->pair_model,
               (size_t)m->n_material * (size_t)m->n_material * sizeof *m->pair_model);
    for (int32_t i = 0; i < m->n_soil; i++)
        s->now.contact.soil[i] = m->material[i].soil;
    for (int32_t i = 0; i < m->n_region; i++)
        s->now.contact.region[i] = m->region[i].material;
    usi_let_all_run(s);
    if (us_dyn_project(s->dyn, s->now.q, s->now.v)) {
        return us_error_set(err, US_ERR_CONSTRAINT, NULL,
                            "check the loops' frames and couplings, and give a start state near to closed",
                            "the start state cannot be moved onto the loops and couplings");
    }
    usi_stiction_set(m, s->now.q, s->now.blockage, s->now.stuck);
    s->has_sensor_failed = false;
    us_status status = usi_sensors_start(s);
    if (status) return us_error_set(err, status, NULL, s->error.remedy, "%.300s", s->error.message);
    usi_carry_over(s);
    if (!usi_accelerate_first(s, s->next.a)) {
        usi_diverged(s, "start", "give every moving link mass and inertia, or its joint an armature");
        us_place place = {NULL, 0, 0, s->error.element};
        return us_error_set(err, US_ERR_MASS, &place, s->error.remedy,
                            "the inertia about this joint's axis is not positive");
    }
    if (m->n_node) memcpy(s->now.a, s->next.a, (size_t)m->n_node * sizeof(double));
    memcpy(s->now.a_before, s->now.a, (size_t)m->n_pad * sizeof(double));
    return US_OK;
}

// Every pair of two steps may be in an event.
size_t usi_event_bytes(int32_t max_contact) { return 2 * (size_t)max_contact * sizeof(us_contact_event); }

us_status usi_sim_make(const us_model *model, const us_sim_def *def, us_sim **out_sim, us_error *err) {
    us_sim_def d = *def;
    us_sim *s = usi_alloc(&d.allocator, sizeof *s, _Alignof(us_sim));
    us_status status = s ? US_OK : US_ERR_MEMORY;
    if (!status) {
        memset(s, 0, sizeof *s);
        s->model = model;
        s->max_contact = model->max_contact;
        s->has_fixed_room = d.has_fixed_room;
        s->allocator = d.allocator;
        s->enable_profile = d.enable_profile;
        s->has_joints_alone = model->n_tree > 0;
        for (int32_t t = 0; t < model->n_tree; t++)
            s->has_joints_alone = s->has_joints_alone && !model->tree[t].is_free_body;
        status = us_dyn_create(model, &d.allocator, &s->dyn);
    }
    if (!status) status = usi_take_plugins(s, &d, err);
    if (!status && d.n_thread > 1) status = usi_pool_create(d.n_thread, &d.allocator, &s->pool);
    if (!status && model->n_geom > 0)
        status = usi_contacts_create(model, s->dyn, s->pool, &d.allocator, s->max_contact, &s->contacts);
    if (!status && model->n_geom > 0) {
        s->event = usi_alloc(&d.allocator, usi_event_bytes(s->max_contact), _Alignof(us_contact_event));
        if (!s->event) status = US_ERR_MEMORY;
    }
    if (!status) status = usi_events_create(s, &d, err);
    if (!status) status = usi_deformables_create(s);
    if (!status) status = usi_lidars_create(s);
    if (!status) status = usi_sensors_create(s);
    if (!status && !(usi_state_make(s, &s->now) && usi_state_make(s, &s->next) && make_scratch(s) &&
                     usi_half_steps_create(s)))
        status = US_ERR_MEMORY;
    if (status) {
        if (status == US_ERR_MEMORY)
            us_error_set(err, status, NULL, "free memory or make the model smaller",
                         "no memory left for the sim");
    } else {
        us_sim_poison(s);
        status = start(s, err);
    }
    if (status) {
        us_sim_destroy(s);
        return status;
    }
    *out_sim = s;
    return US_OK;
}

us_status us_sim_create(const us_model *model, const us_sim_def *def, us_sim **out_sim, us_error *err) {
    if (!model || !out_sim)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a model and a place for the sim",
                            "us_sim_create: an argument is NULL");
    us_sim_def d = def ? *def : us_sim_def_default();
    us_status status = usi_sim_make(model, &d, out_sim, err);
    if (!status) usi_start_plugins(*out_sim);
    return status;
}

void us_sim_destroy(us_sim *s) {
    if (!s) return;
    us_allocator a = s->allocator;
    usi_contacts_destroy(s->contacts);
    usi_deformables_destroy(s);
    usi_lidars_destroy(s);
    usi_sensors_destroy(s);
    usi_events_destroy(s);
    usi_half_steps_destroy(s);
    usi_pool_destroy(s->pool);
    us_dyn_destroy(s->dyn);
    usi_release(&a, s->now.block, s->state_size, USI_ALIGN);
    usi_release(&a, s->next.block, s->state_size, USI_ALIGN);
    usi_release(&a, s->scratch, s->scratch_size, USI_ALIGN);
    usi_release(&a, s->event, s->event ? usi_event_bytes(s->max_contact) : 0, _Alignof(us_contact_event));
    if (s->ghost) usi_release(&a, s->ghost, 2 * ((size_t)s->model->n_tree + 1), 1);
    usi_release(&a, s->plugin, (size_t)s->n_plugin * sizeof *s->plugin, _Alignof(us_plugin));
    usi_release(&a, s, sizeof *s, _Alignof(us_sim));
}

us_status us_sim_reset(us_sim *s) {
    us_status status = s ? start(s, NULL) : US_ERR_ARG;
    if (status) return status;
    usi_start_plugins(s);
    usi_report_input(s, &(usi_input){.kind = USI_INPUT_STATE});
    return US_OK;
}

void us_sim_poison(us_sim *s) {
    if (!s) return;
    // All ones: not a number as a double, -1 as an index. Whatever reads it before writing it shows.
    memset(s->scratch, 0xff, s->scratch_size);
    memset(s->dyn->block, 0xff, s->dyn->block_size);
    usi_run_all(s->dyn);
    if (s->contacts) usi_contacts_poison(s->contacts);
    usi_lidars_poison(s);
    memset(s->next.block, 0xff, s->state_size);
    s->back_buffer_is_one_step_old = false;
    s->has_last_step = false;
}

// ---------------------------------------------------------------- snapshot

typedef struct header {
    char magic[8];
    uint64_t model;
    uint64_t length;  // of all, header included
    uint64_t check;   // hash of what follows
} header;
static const char MAGIC[8] = {'U', 'S', 'T', 'A', 'T', 'E', '0', '1'};

// How many elements of the state's lists are in use.
typedef struct used_counts {
    int32_t n_touch, n_anchor, n_applied;
} used_counts;

static used_counts used_now(const us_sim *s) {
    return (used_counts){s->now.contact.n_touch[0], s->now.contact.n_anchor[0], s->now.n_applied[0]};
}

// The fields of the state, with as many elements as are in use: what lies beyond them means nothing.
static int32_t used_fields(const us_sim *s, usi_field *f, const used_counts *used) {
    int32_t n = usi_state_fields(s->model, s->max_contact, s->n_plugin_byte, f, MAX_FIELDS, NULL);
    for (int32_t i = 0; i < n; i++) {
        // By name: arrays without elements share their place with the next one.
        if (strcmp(f[i].name, "touch") == 0) f[i].count = (size_t)used->n_touch;
        if (strcmp(f[i].name, "anchor") == 0) f[i].count = (size_t)used->n_anchor;
        if (strcmp(f[i].name, "law_state") == 0)
            f[i].count = (size_t)used->n_anchor * (size_t)s->model->n_law_state;
        if (strcmp(f[i].name, "applied") == 0) f[i].count = (size_t)used->n_applied;
    }
    return n;
}

static size_t length_of(const usi_field *f, int32_t n) {
    size_t length = sizeof(header);
    for (int32_t i = 0; i < n; i++)
        length += f[i].count * f[i].each;
    return length;
}

us_status us_sim_save(const us_sim *s, void *buf, size_t cap, size_t *out_length) {
    if (!s) return US_ERR_ARG;
    usi_field f[MAX_FIELDS];
    const used_counts used = used_now(s);
    int32_t n = used_fields(s, f, &used);
    const size_t lidars = length_of(f, n), sensors = lidars + usi_lidars_save(s, NULL),
                 fields = sensors + usi_sensors_save(s, NULL),
                 length = fields + usi_deformables_save(s, NULL);
    if (out_length) *out_length = length;
    if (!buf) return US_OK;
    if (cap < length) return US_ERR_ARG;
    char *to = (char *)buf + sizeof(header);
    for (int32_t i = 0; i < n; i++) {
        memcpy(to, (const char *)s->now.block + f[i].offset, f[i].count * f[i].each);
        to += f[i].count * f[i].each;
    }
    usi_lidars_save(s, (char *)buf + lidars);
    usi_sensors_save(s, (char *)buf + sensors);
    usi_deformables_save(s, (char *)buf + fields);
    header h = {
        {0}, s->model->hash, length, us_hash_bytes(0, (const char *)buf + sizeof h, length - sizeof h)};
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    memcpy(buf, &h, sizeof h);
    return US_OK;
}

us_status us_sim_restore(us_sim *s, const void *buf, size_t length) {
    if (!s || !buf) return US_ERR_ARG;
    header h;
    if (length < sizeof h) return US_ERR_SNAPSHOT;
    memcpy(&h, buf, sizeof h);
    if (memcmp(h.magic, MAGIC, sizeof MAGIC) != 0 || h.model != s->model->hash || h.length != length)
        return US_ERR_SNAPSHOT;
    const char *start = (const char *)buf + sizeof h;
    if (us_hash_bytes(0, start, length - sizeof h) != h.check) return US_ERR_SNAPSHOT;
    // The counts stand before the lists, so their places are found one list after another.
    usi_field f[MAX_FIELDS];
    used_counts used = {0, 0, 0};
    int32_t n = used_fields(s, f, &used);
    const int32_t max_contact = s->model->n_geom > 0 ? USI_MAX_CONTACTS : 0;
    size_t at = sizeof h;
    for (int32_t i = 0; i < n; i++) {
        int32_t *count = strcmp(f[i].name, "n_touch") == 0     ? &used.n_touch
                         : strcmp(f[i].name, "n_anchor") == 0  ? &used.n_anchor
                         : strcmp(f[i].name, "n_applied") == 0 ? &used.n_applied
                                                               : NULL;
        if (strcmp(f[i].name, "applied") == 0) f[i].count = (size_t)used.n_applied;
        if (strcmp(f[i].name, "touch") == 0) f[i].count = (size_t)used.n_touch;
        if (strcmp(f[i].name, "anchor") == 0) f[i].count = (size_t)used.n_anchor;
        if (strcmp(f[i].name, "law_state") == 0)
            f[i].count = (size_t)used.n_anchor * (size_t)s->model->n_law_state;
        const size_t bytes = f[i].count * f[i].each;
        if (bytes > length - at) return US_ERR_SNAPSHOT;
        if (count) memcpy(count, (const char *)buf + at, sizeof *count);
        if (count && (*count < 0 || *count > (count == &used.n_applied ? s->model->n_body : max_contact)))
            return US_ERR_SNAPSHOT;
        at += bytes;
    }
    const size_t lidars = length_of(f, n), sensors = lidars + usi_lidars_save(s, NULL);
    if (length < sensors) return US_ERR_SNAPSHOT;
    const int32_t n_contact = used.n_touch > used.n_anchor ? used.n_touch : used.n_anchor;
    if (n_contact > s->max_contact && s->has_fixed_room) return US_ERR_SNAPSHOT;
    if (n_contact > s->max_contact && usi_make_room(s, n_contact)) return US_ERR_MEMORY;
    // The places in the block may have changed; the lengths have not.
    used_fields(s, f, &used);
    // Into the back buffer first: it is looked at before it counts.
    s->back_buffer_is_one_step_old = false;
    memset(s->next.block, 0, s->state_size);
    const char *from = start;
    for (int32_t i = 0; i < n; i++) {
        size_t bytes = f[i].count * f[i].each;
        if (bytes) memcpy((char *)s->next.block + f[i].offset, from, bytes);
        from += bytes;
    }
    if (!usi_state_is_sound(s, &s->next)) return US_ERR_SNAPSHOT;
    const size_t pending = usi_sensors_length(s->model, s->next.sensor), fields = sensors + pending;
    if (length - sensors < pending ||
        !usi_sensors_are_sound(s->model, s->next.sensor, (const char *)buf + sensors) ||
        !usi_lidars_are_sound(s, (const char *)buf + lidars, sensors - lidars) ||
        !usi_deformables_restore(s, (const char *)buf + fields, length - fields))
        return US_ERR_SNAPSHOT;
    usi_lidars_restore(s, (const char *)buf + lidars);
    if (s->contacts) s->contacts->collide.n_soil_contact = 0;
    s->has_last_step = false;
    s->n_event = 0;
    usi_events_clear(s);
    memcpy(s->now.block, s->next.block, s->state_size);
    s->has_sensor_failed = false;
    usi_sensors_restore(s, (const char *)buf + sensors);
    if (usi_hold_follow(s)) return US_ERR_MEMORY;
    usi_report_input(s, &(usi_input){.kind = USI_INPUT_STATE});
    return US_OK;
}

// Fields that are not hashed: what acts between materials as long as it is what the model says, and what laws
// of soil keep where there are none.
static bool is_as_modelled(const us_sim *s, const usi_field *f) {
    const us_model *m = s->model;
    if (strcmp(f->name, "law_state") == 0) return m->n_law_state == 0;
    return strcmp(f->name, "pair_model") == 0 &&
           memcmp(s->now.contact.pair_model, m->pair_model, f->count * f->each) == 0;
}

uint64_t us_sim_hash(const us_sim *s) {
    if (!s) return 0;
    usi_field f[MAX_FIELDS];
    const used_counts used = used_now(s);
    int32_t n = used_fields(s, f, &used);
    uint64_t hash = s->model->hash;
    for (int32_t i = 0; i < n; i++) {
        if (!is_as_modelled(s, &f[i]))
            hash = us_hash_bytes(hash, (const char *)s->now.block + f[i].offset, f[i].count * f[i].each);
    }
    return usi_deformables_hash(s, usi_lidars_hash(s, usi_sensors_hash(s, hash)));
}

// ---------------------------------------------------------------- fields

static int32_t all_fields(const us_sim *s, usi_field *out, const char **blocks) {
    int32_t n = usi_state_fields(s->model, s->max_contact, s->n_plugin_byte, out, MAX_FIELDS, NULL),
            total = n;
    for (int32_t i = 0; i < n; i++)
        blocks[i] = "state";
    total += scratch_fields(s->model, out + total, MAX_FIELDS, NULL);
    total += usi_dyn_fields(s->model, out + total, MAX_FIELDS, NULL);
    if (s->contacts) total += usi_contacts_fields(s->contacts, out + total, MAX_FIELDS, NULL);
    for (int32_t i = n; i < total; i++)
        blocks[i] = "scratch";
    return total;
}

int32_t us_sim_n_field(const us_sim *s) {
    usi_field f[3 * MAX_FIELDS];
    const char *blocks[3 * MAX_FIELDS];
    return s ? all_fields(s, f, blocks) : 0;
}

us_field_info us_sim_get_field(const us_sim *s, int32_t i) {
    us_field_info info = {"", "", "", "", "", 0, 0};
    usi_field f[3 * MAX_FIELDS];
    const char *blocks[3 * MAX_FIELDS];
    if (!s || i < 0 || i >= all_fields(s, f, blocks)) return info;
    return (us_field_info){
        blocks[i], f[i].name, f[i].type, f[i].unit, f[i].about, f[i].count, f[i].count * f[i].each};
}
