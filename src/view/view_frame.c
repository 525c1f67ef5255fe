// Frames of the world, taken by the thread that steps.
//
// When nobody looks this is one read of an atomic; when no frame is due, a read of the clock besides. A
// frame copies what somebody asked for into memory that was used before, and hands it over by swapping an
// index: the stepping thread never waits, and once the world and what is asked of it have been the same for
// three frames nothing is allocated.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proxy/fault.h"
#include "view/view__foxglove.h"
#include "view/view__page.h"

// Names of watched values that are looked up per frame: each look goes through all names of the model.
enum { LOOKS = 64 };
static const double SHORTEST =
    1.0 / (double)USI_VIEW_HZ;  // s between two frames, also when the world was changed in between
enum { FRESH = 4 };

double usi_view_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---------------------------------------------------------------- memory

// Room for n elements, whose old content does not matter.
static bool room(const us_allocator *a, void **array, int32_t *cap, int32_t n, size_t each) {
    if (n <= *cap) return true;
    int32_t more = n + n / 2;  // so that one more body is not one more block
    void *block = usi_alloc(a, (size_t)more * each, _Alignof(max_align_t));
    if (!block) return false;
    usi_release(a, *array, (size_t)*cap * each, _Alignof(max_align_t));
    *array = block;
    *cap = more;
    return true;
}

static void release(const us_allocator *a, void *array, int32_t cap, size_t each) {
    usi_release(a, array, (size_t)cap * each, _Alignof(max_align_t));
}

void usi_view_frames_fini(us_view *view) {
    const us_allocator *a = &view->allocator;
    for (int i = 0; i < 3; i++) {
        usi_view_frame *p = &view->frames[i];
        release(a, p->pose, p->cap_body, sizeof *p->pose);
        release(a, p->contact, p->cap_contact, sizeof *p->contact);
        release(a, p->torque, p->cap_torque, sizeof *p->torque);
        release(a, p->pairs.row, p->pairs.cap, sizeof *p->pairs.row);
        usi_revision_unref(p->revision);
    }
    usi_frame_taker *t = &view->taker;
    release(a, t->pairs.row, t->pairs.cap, sizeof *t->pairs.row);
    usi_revision_unref(t->revision);
    usi_watch_unref(t->watch);
}

// ---------------------------------------------------------------- what is in a frame

static bool take_poses(const us_allocator *a, us_sim *sim, usi_view_frame *p) {
    int32_t n = us_model_get_counts(us_sim_view_model(sim)).n_body;
    if (!room(a, (void **)&p->pose, &p->cap_body, n, sizeof *p->pose)) return false;
    for (int32_t i = 0; i < n; i++) {
        us_pose X_WB = us_sim_get_pose(sim, (us_body){i});
        const double x[7] = {X_WB.p.x, X_WB.p.y, X_WB.p.z, X_WB.q.w, X_WB.q.x, X_WB.q.y, X_WB.q.z};
        for (int k = 0; k < 7; k++)
            p->pose[i][k] = usi_view_float(x[k]);
    }
    p->n_body = n;
    return true;
}

static void put_vector(float out[3], us_vec3 v) {
    out[0] = usi_view_float(v.x);
    out[1] = usi_view_float(v.y);
    out[2] = usi_view_float(v.z);
}

static bool take_contacts(const us_allocator *a, const us_sim *sim, usi_view_frame *p) {
    int32_t n = us_sim_n_contact(sim);
    if (n > USI_PAGE_CONTACTS) n = USI_PAGE_CONTACTS;
    if (!room(a, (void **)&p->contact, &p->cap_contact, n, sizeof *p->contact)) return false;
    for (int32_t i = 0; i < n; i++) {
        us_contact c = us_sim_get_contact(sim, i);
        usi_view_contact *out = &p->contact[i];
        out->body_a = c.body_a.i;
        out->body_b = c.body_b.i;
        put_vector(out->point, c.point);
        put_vector(out->normal, c.normal);
        put_vector(out->force, c.force);
        out->gap = usi_view_float(c.gap);
        out->is_sliding = c.is_sliding;
    }
    p->n_contact = n;
    return true;
}

static bool take_torques(const us_allocator *a, const us_sim *sim, usi_view_frame *p) {
    int32_t n = us_model_get_counts(us_sim_view_model(sim)).n_drive;
    if (!room(a, (void **)&p->torque, &p->cap_torque, n, sizeof *p->torque)) return false;
    const double *torque = us_sim_view_torque(sim);
    for (int32_t i = 0; i < n; i++)
        p->torque[i] = usi_view_float(torque[i]);
    p->n_torque = n;
    return true;
}

// ---------------------------------------------------------------- watched values

// Takes the newest list, and looks up the next few names that are new in it.
static void find_values(us_view *view, const us_sim *sim) {
    usi_frame_taker *t = &view->taker;
    if (atomic_load(&view->watch_generation) != (t->watch ? t->watch->generation : 0)) {
        usi_watch *old = t->watch;
        pthread_mutex_lock(&view->lock);
        t->watch = view->watch ? usi_watch_ref(view->watch) : NULL;
        pthread_mutex_unlock(&view->lock);
        usi_watch_unref(old);
        t->next_slot = 0;
    }
    if (!t->watch) return;
    for (int32_t n_look = 0; t->next_slot < t->watch->n && n_look < LOOKS; t->next_slot++) {
        const usi_watch_row *row = &t->watch->row[t->next_slot];
        if (!row->name) {
            t->id[t->next_slot] = -1;
            t->born[t->next_slot] = 0;
        } else if (t->born[t->next_slot] != row->born) {
            t->id[t->next_slot] = us_sim_find_value(sim, row->name);
            t->born[t->next_slot] = row->born;
            n_look++;
        }
    }
    if (t->next_slot == t->watch->n) t->watched = t->watch->generation;
}

static void take_values(const usi_frame_taker *t, us_sim *sim, usi_view_frame *p) {
    p->watched = t->watched;
    p->n_value = t->watch ? t->watch->n : 0;
    for (int32_t i = 0; i < p->n_value; i++) {
        // A slot that has another name in the newest list and was not looked up yet has an id of before.
        p->is_known[i] = t->born[i] != 0 && t->id[i] >= 0;
        p->value[i] = p->is_known[i] ? us_sim_get_value(sim, t->id[i]) : NAN;
    }
}

// ---------------------------------------------------------------- status and pairs

// What does not fit is not shown.
static void add_fault(void *context, const char *what, const char *said) {
    usi_robot_status *out = context;
    size_t at = strlen(out->faults);
    if (at + strlen(what) + strlen(said) + 3 > sizeof out->faults) return;
    snprintf(out->faults + at, sizeof out->faults - at, "%s\t%s\n", what, said);
}

static void take_status(us_view *view, us_sim *sim, const us_view_pace *pace) {
    us_world *world = view->world;
    usi_page_status *s = &view->taker.status;
    s->version++;
    s->time = us_sim_get_time(sim);
    s->tick = us_sim_get_tick(sim);
    s->request = us_world_get_pace_request(world);
    s->pace = pace ? *pace : (us_view_pace){0};
    us_energy energy = us_sim_get_energy(sim);
    s->energy = energy.kinetic + energy.potential;
    us_world_recording recording = us_world_get_recording(world);
    s->is_recording = recording.path != NULL;
    usi_text_clean(recording.path ? recording.path : "", s->path, sizeof s->path);
    s->n_message = recording.info.n_message;
    s->n_byte = recording.info.n_byte;
    s->n_snapshot = usi_world_n_snapshot(world);
    for (int32_t i = 0; i < s->n_snapshot; i++) {
        usi_snapshot_info snapshot = usi_world_get_snapshot(world, i);
        snprintf(s->snapshot[i].name, sizeof s->snapshot[i].name, "%s", snapshot.name);
        s->snapshot[i].time = snapshot.time;
    }
    s->n_authority = usi_authorities_copy(world, s->authority);
    s->n_soil_contact = us_sim_n_soil_contact(sim) < USI_PAGE_SOIL_CONTACTS ? us_sim_n_soil_contact(sim)
                                                                            : USI_PAGE_SOIL_CONTACTS;
    for (int32_t i = 0; i < s->n_soil_contact; i++)
        s->soil_contact[i] = us_sim_get_soil_contact(sim, i);
    const us_proxy *proxy = us_world_get_proxy(world);
    for (int32_t i = 0; i < view->n_robot; i++) {
        usi_robot_status *out = &s->robot[i];
        usi_proxy_count_commands(proxy, sim, i, &out->n_command, &out->n_refused);
        us_proxy_last_refusal(proxy, sim, i, out->refusal, sizeof out->refusal);
        out->faults[0] = 0;
        usi_proxy_each_fault(proxy, sim, i, add_fault, out);
        out->n_script = 0;
        for (int32_t k = 0; k < USI_SCRIPT_LIMIT && usi_proxy_script(proxy, i, k); k++)
            out->script[out->n_script++] = (uint8_t)usi_proxy_script_state(proxy, sim, i, k);
    }
}

static void copy_status(usi_page_status *to, const usi_page_status *from) {
    if (to->version == from->version) return;
    usi_robot_status *robot = to->robot;
    *to = *from;
    to->robot = robot;
    if (from->n_robot) memcpy(robot, from->robot, (size_t)from->n_robot * sizeof *robot);
}

// What soils are like and what regions are made of. True when something is other than it was.
static bool take_soils(usi_page_pairs *pairs, const us_sim *sim, int32_t n_material) {
    int32_t n = 0, n_region = 0;
    bool is_other = false;
    for (int32_t i = 0; i < n_material && n < USI_PAGE_SOILS; i++) {
        us_soil soil;
        if (us_sim_get_soil(sim, (us_material){i}, &soil)) continue;
        is_other |= n >= pairs->n_soil || pairs->soil[n].material != i ||
                    memcmp(&pairs->soil[n].soil, &soil, sizeof soil) != 0;
        pairs->soil[n++] = (usi_view_soil){i, soil};
    }
    for (int32_t made_of; n_region < USI_PAGE_REGIONS && (made_of = us_sim_get_region(sim, n_region).i) >= 0;
         n_region++) {
        is_other |= n_region >= pairs->n_region || pairs->region[n_region] != made_of;
        pairs->region[n_region] = made_of;
    }
    is_other |= n != pairs->n_soil || n_region != pairs->n_region;
    pairs->n_soil = n;
    pairs->n_region = n_region;
    return is_other;
}

// The table as it is now; another version only when something in it has changed, for every client is sent all
// of it.
static bool take_pairs(us_view *view, const us_sim *sim) {
    usi_page_pairs *pairs = &view->taker.pairs;
    int32_t n_material = us_model_get_counts(us_sim_view_model(sim)).n_material, n = 0;
    int64_t n_all = (int64_t)n_material * (n_material + 1) / 2;
    int32_t most = n_all < USI_PAGE_PAIRS ? (int32_t)n_all : USI_PAGE_PAIRS;
    if (most > pairs->cap) pairs->n = 0;
    if (!room(&view->allocator, (void **)&pairs->row, &pairs->cap, most, sizeof *pairs->row)) return false;
    bool is_other = view->taker.is_world_new || pairs->version == 0;
    for (int32_t a = 0; a < n_material; a++) {
        for (int32_t b = a; b < n_material && n < most; b++) {
            usi_view_pair row = {.a = a, .b = b};
            if (us_sim_get_pair(sim, (us_material){a}, (us_material){b}, &row.values)) continue;
            is_other |= n >= pairs->n || memcmp(&pairs->row[n], &row, sizeof row) != 0;
            pairs->row[n++] = row;
        }
    }
    is_other |= take_soils(pairs, sim, n_material);
    if (is_other || n != pairs->n) pairs->version++;
    pairs->n = n;
    view->taker.is_world_new = false;
    return true;
}

static bool copy_pairs(const us_allocator *a, usi_page_pairs *to, const usi_page_pairs *from) {
    if (to->version == from->version) return true;
    if (!room(a, (void **)&to->row, &to->cap, from->n, sizeof *to->row)) return false;
    if (from->n) memcpy(to->row, from->row, (size_t)from->n * sizeof *to->row);
    to->n = from->n;
    to->n_soil = from->n_soil;
    to->n_region = from->n_region;
    memcpy(to->soil, from->soil, sizeof to->soil);
    memcpy(to->region, from->region, sizeof to->region);
    to->version = from->version;
    return true;
}

// ---------------------------------------------------------------- taking one

// A new revision: other indices and ids, and another pair table.
static void look_at_world(us_view *view) {
    usi_frame_taker *t = &view->taker;
    uint32_t revision = us_world_get_revision(view->world);
    if (t->revision && t->revision->number == revision) return;
    usi_revision_unref(t->revision);
    t->revision = usi_world_take_revision(view->world);
    t->is_world_new = t->is_pairs_old = true;
    t->watched = 0;
    t->next_slot = 0;
    memset(t->born, 0, sizeof t->born);
}

static bool take(us_view *view, const us_view_pace *pace, double now) {
    usi_frame_taker *t = &view->taker;
    usi_view_frame *p = &view->frames[view->back];
    us_sim *sim = us_world_get_sim(view->world);
    const us_allocator *a = &view->allocator;
    look_at_world(view);
    // A command was carried out: the time may stand or jump, and the pair table is part of the state that it
    // jumps to.
    bool is_told = us_world_get_pace_request(view->world).change != t->status.request.change;
    t->is_pairs_old |= is_told;
    if (now >= t->status_due || t->is_changed || is_told) {
        take_status(view, sim, pace);
        t->status_due = now + 1.0 / (double)USI_PAGE_STATUS_HZ;
    }
    if (t->is_pairs_old) {
        if (!take_pairs(view, sim)) return false;
        t->is_pairs_old = false;
    }
    find_values(view, sim);
    usi_ruts_take(&view->ruts, sim, t->revision->number, t->jump, now);
    usi_clouds_take(&view->clouds, sim, t->revision->number, t->jump,
                    atomic_load_explicit(&view->want_points, memory_order_relaxed));

    if (p->revision != t->revision) {
        usi_revision_unref(p->revision);
        p->revision = usi_revision_ref(t->revision);
    }
    p->has_contacts = atomic_load_explicit(&view->want_contacts, memory_order_relaxed);
    p->has_torques = atomic_load_explicit(&view->want_torques, memory_order_relaxed);
    p->n_contact = p->n_torque = 0;
    if (!take_poses(a, sim, p) || (p->has_contacts && !take_contacts(a, sim, p)) ||
        (p->has_torques && !take_torques(a, sim, p)))
        return false;
    take_values(t, sim, p);
    copy_status(&p->status, &t->status);
    if (!copy_pairs(a, &p->pairs, &t->pairs)) return false;
    p->taken = now;
    p->jump = t->jump;
    p->tick = us_sim_get_tick(sim);
    p->time = us_sim_get_time(sim);
    p->number = ++t->n_frame;
    t->is_changed = false;
    return true;
}

void us_view_show(us_view *view, const us_view_pace *pace) {
    if (!view) return;
    usi_foxglove_show(view->foxglove);
    int32_t rate = atomic_load_explicit(&view->rate, memory_order_relaxed);
    if (rate == 0) return;
    usi_frame_taker *t = &view->taker;
    double now = usi_view_clock(), period = 1.0 / rate;
    // Somebody may have asked for a higher rate since.
    if (t->due > now + period) t->due = now + period;
    if (now < t->due && !(t->is_changed && now >= t->last + SHORTEST)) return;
    t->due = fmax(t->due + period, now);
    t->last = now;
    // Without memory there is no frame; the next one may have more luck.
    if (!take(view, pace, now)) return;
    view->back = atomic_exchange(&view->between, view->back | FRESH) & 3;
    usi_web_wake(view->web);
}

void usi_view_changed(void *context) {
    us_view *view = context;
    view->taker.is_changed = view->taker.is_pairs_old = true;
    view->taker.jump++;
}

const usi_view_frame *usi_view_newest_frame(us_view *view) {
    if (atomic_load(&view->between) & FRESH) view->front = atomic_exchange(&view->between, view->front) & 3;
    const usi_view_frame *p = &view->frames[view->front];
    return p->number ? p : NULL;
}
