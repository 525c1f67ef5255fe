// One world in several processes: the exchange.
//
// Time is cut into intervals of n steps. At each exchange point every process sends the state of its own
// trees (a state message), and goes on when it has those of all others. The trees of others are ghosts here:
// they are put where their owners have them and stand still, unless something of ours may touch them before
// the next exchange point. Such a pair is solved by the process of lower rank, and the two step one after the
// other:
//
//     rank 0   |  state k   | steps k .. k+n: its own, and the ghost, awake, with all that it touches |
//              state k+n, with the forces on the ghost
//     rank 1   |  state k   | waits for that message ................. | steps k .. k+n: its own, with the
//     forces
//
// So each contact is solved once, by one process that has both sides of it moving, and the other side gets
// the same impulses in the same steps: their sum is 0, and no delay is in the loop. Which pairs may touch
// follows from state messages alone: all processes find the same without asking. So they do with what is far
// from everything of others: where nothing could touch for longer, several intervals go by without a message.
//
//     gather   hellos until everything that must have an owner has one               --> run
//     return   others are under way: the last state of our own that they have        --> run
//     run      state messages of the point | predecessors | n steps | own state message
#include "split/split__inner.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// How far ahead of an exchange point boxes reach: so many intervals of the motion of now, and what an
// acceleration of 3 g and a centimetre add.
static const double LEAD = 1.25, MAX_ACCELERATION = 30, CLEARANCE = 0.01;
// ns: repetition of the last message; silence after which a process may be replaced; wait that is logged.
static const int64_t REPEAT_NS = 500000000, SILENT_NS = 2000000000, PATIENCE_NS = 1000000000;

typedef enum phase { GATHER, RETURN, RUN } phase;

typedef struct packet {
    void *bytes;
    size_t cap, length;
} packet;

struct usi_split {
    usi_split_def def;
    us_sim *sim;
    usi_arena arena;
    usi_ownership ownership;
    bool *owns;     // per group
    bool *missing;  // scratch, per group
    int32_t first;  // its first robot
    int32_t n_step;
    phase phase;
    us_error fault;
    int64_t now_ns, sent_ns, waiting_ns;  // waiting_ns: since when; 0: it does not wait
    bool is_logged;
    int32_t n_peer;
    usi_peer peer[USI_SPLIT_PEERS];
    usi_state_message inbox;

    int32_t *owner;  // per tree: peer, or -1: it is ours
    us_aabb *box;    // per tree: where it may be until the next exchange point
    bool *moves;     // per tree: it is ours, or a ghost that is awake
    int32_t *stack;  // of trees
    int64_t point;   // the exchange point that was reached last
    int64_t span;    // steps from there to the next
    bool is_put, is_open;
    int64_t open_end;             // how far steps may be made
    bool needs[USI_SPLIT_PEERS];  // predecessors: their forces come before our steps
    bool has_awake;
    packet packet[2], hello;  // the last message, and the one before
    int last;                 // which of the two
    us_msg_world_share out;
    us_wrench *wrench, *force;  // n_body: of predecessors, and on ghosts
    bool *is_touched;           // n_body
    us_command command;
    usi_split_counts counts;
};

// ---------------------------------------------------------------- sending

static void transmit(usi_split *s, const packet *p) {
    if (p->length == 0) return;
    s->sent_ns = s->now_ns;
    s->def.send(s->def.context, p->bytes, p->length);
}

US_PRINTF(3, 4) static void log_line(usi_split *s, int32_t level, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (s->def.log) s->def.log(s->def.context, level, text);
}

static us_status fail_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the shared world");
}

static us_status pack(usi_split *s, const us_msg_world_share *m, packet *p, us_error *err) {
    size_t length = 0;
    p->length = 0;
    us_status status = us_message_encode(usi_type_world_share, m, NULL, 0, &length);
    if (!status && length > p->cap) {
        usi_release(&s->def.allocator, p->bytes, p->cap, 16);
        *p = (packet){.bytes = usi_alloc(&s->def.allocator, 2 * length, 16), .cap = 2 * length};
        if (!p->bytes) p->cap = 0;
    }
    if (!status && !p->bytes) return fail_memory(err);
    if (!status) status = us_message_encode(usi_type_world_share, m, p->bytes, p->cap, &p->length);
    return status ? us_error_set(err, status, NULL, NULL, "the shared state cannot be written: %s",
                                 us_status_text(status))
                  : US_OK;
}

// A message without trees and forces.
static us_status send_bare(usi_split *s, usi_split_kind kind, us_error *err) {
    us_msg_world_share m = s->out;
    m.kind = (uint8_t)kind;
    m.tick = us_sim_get_tick(s->sim);
    m.positions._length = m.velocities._length = m.drives._length = 0;
    // A process that ends between two exchange points sends its forces so far: the others can come as far.
    if (kind != USI_SHARE_END) m.push_steps._length = m.push_links._length = m.push_forces._length = 0;
    us_status status = pack(s, &m, &s->hello, err);
    if (!status) transmit(s, &s->hello);
    return status;
}

static us_status send_state(usi_split *s, us_error *err) {
    us_msg_world_share *m = &s->out;
    uint32_t n_q = 0, n_v = 0, n_actuation = 0;
    for (int32_t t = 0; t < s->ownership.n_tree; t++) {
        if (s->owner[t] >= 0) continue;
        usi_tree_size n = usi_sim_tree_size(s->sim, t);
        usi_sim_get_tree(s->sim, t, m->positions._buffer + n_q, m->velocities._buffer + n_v,
                         m->drives._buffer + n_actuation);
        n_q += (uint32_t)n.n_q;
        n_v += (uint32_t)n.n_v;
        n_actuation += (uint32_t)n.n_actuation;
    }
    m->kind = USI_SHARE_POINT;
    m->tick = s->point;
    m->positions._length = n_q;
    m->velocities._length = n_v;
    m->drives._length = n_actuation;
    s->last = !s->last;
    packet *p = &s->packet[s->last];
    us_status status = pack(s, m, p, err);
    if (!status) transmit(s, p);
    m->push_steps._length = m->push_links._length = m->push_forces._length = 0;
    return status;
}

static usi_state_message *newer_state(usi_peer *p) { return &p->state[p->state[1].tick > p->state[0].tick]; }
static usi_state_message *older_state(usi_peer *p) { return &p->state[p->state[1].tick <= p->state[0].tick]; }

// A process that has come back gets the last state of its trees.
static void send_return(usi_split *s, usi_peer *p) {
    const usi_state_message *l = newer_state(p);
    if (l->tick < 0) return;
    us_msg_world_share m = s->out;
    m.kind = USI_SHARE_RETURN;
    m.receiver = p->id;
    m.tick = l->tick;
    m.positions = l->message->positions;
    m.velocities = l->message->velocities;
    m.drives = l->message->drives;
    m.push_steps._length = m.push_links._length = m.push_forces._length = 0;
    if (!pack(s, &m, &s->hello, NULL)) transmit(s, &s->hello);
}

void usi_split_keep_alive(usi_split *s, int64_t now_ns) {
    s->now_ns = now_ns;
    if (now_ns - s->sent_ns < REPEAT_NS) return;
    if (s->phase != RUN) {
        send_bare(s, USI_SHARE_HELLO, NULL);
        return;
    }
    transmit(s, &s->packet[!s->last]);
    transmit(s, &s->packet[s->last]);
}

void usi_split_end(usi_split *s) { send_bare(s, USI_SHARE_END, NULL); }

// ---------------------------------------------------------------- receiving

static bool decode(usi_split *s, const void *bytes, size_t length) {
    size_t want = 4 * length + 4096;
    if (s->inbox.size < want) {
        usi_release(&s->def.allocator, s->inbox.memory, s->inbox.size, 16);
        s->inbox = (usi_state_message){.memory = usi_alloc(&s->def.allocator, want, 16), .size = want};
        if (!s->inbox.memory) s->inbox.size = 0;
    }
    const void *message = NULL;
    if (!s->inbox.memory || us_message_decode(usi_type_world_share, bytes, length, s->inbox.memory,
                                              s->inbox.size, &message, NULL))
        return false;
    s->inbox.message = message;
    s->inbox.tick = s->inbox.message->tick;
    return true;
}

// The message just read is kept; what was kept there before is read over next.
static void keep(usi_split *s, usi_state_message *to) {
    usi_state_message old = *to;
    *to = s->inbox;
    s->inbox = old;
}

static bool read_owns(usi_split *s, const us_msg_world_share *m, bool *out) {
    memset(out, 0, (size_t)s->ownership.n_group + 1);
    for (uint32_t i = 0; i < m->own._length; i++) {
        for (int32_t g = 0; g < s->ownership.n_group; g++)
            out[g] |= strcmp(us_spec_view_group(s->ownership.spec, g)->name, m->own._buffer[i]) == 0;
    }
    return m->own._length > 0;
}

static bool is_silent(const usi_split *s, const usi_peer *p) {
    return p->has_ended || s->now_ns - p->heard_ns > SILENT_NS;
}

static bool shares(const usi_split *s, const bool *a, const bool *b, int32_t *out_group) {
    for (int32_t g = 0; g < s->ownership.n_group; g++) {
        if (a[g] && b[g]) {
            *out_group = g;
            return true;
        }
    }
    return false;
}

static void name_peer(usi_peer *p, const us_msg_world_share *m) {
    p->id = m->process;
    snprintf(p->label, sizeof p->label, "%s", m->label);
    p->has_ended = p->has_begun = false;
}

// A new process. While the processes gather it joins them; later only one that replaces another that has
// gone.
static usi_peer *admit(usi_split *s, const us_msg_world_share *m) {
    // The first that does not fit ends the gathering.
    us_error *fault = s->phase == GATHER && !s->fault.code ? &s->fault : NULL;
    if (m->kind == USI_SHARE_END || !usi_split_fits(m, &s->out, fault) || !read_owns(s, m, s->missing))
        return NULL;
    int32_t group = 0;
    for (int32_t i = 0; i < s->n_peer; i++) {
        usi_peer *p = &s->peer[i];
        if (!shares(s, p->owns, s->missing, &group)) continue;
        bool is_same = memcmp(p->owns, s->missing, (size_t)s->ownership.n_group) == 0;
        if (is_same && is_silent(s, p)) {
            name_peer(p, m);
            if (s->phase == RUN)
                log_line(s, 0, "the process %s takes the place of one that has gone", p->label);
            return p;
        }
        if (s->phase == GATHER && !s->fault.code && !is_silent(s, p))
            us_error_set(&s->fault, US_ERR_NAME, NULL, "give each robot to one process",
                         "\"%.100s\" is owned twice: by the processes %s and %.79s",
                         us_spec_view_group(s->ownership.spec, group)->name, p->label, m->label);
        return NULL;
    }
    if (s->phase != GATHER) return NULL;
    if (shares(s, s->owns, s->missing, &group)) {
        if (!s->fault.code)
            us_error_set(&s->fault, US_ERR_NAME, NULL, "give each robot to one process",
                         "\"%.100s\" is owned twice: by this process and by %.79s",
                         us_spec_view_group(s->ownership.spec, group)->name, m->label);
        return NULL;
    }
    if (s->n_peer == USI_SPLIT_PEERS) {
        us_error_set(&s->fault, US_ERR_LIMIT, NULL, "give each process more robots",
                     "more than %d processes share this world", USI_SPLIT_PEERS);
        return NULL;
    }
    usi_peer *p = &s->peer[s->n_peer];
    *p = (usi_peer){.state = {{.tick = -1}, {.tick = -1}}, .last_seen.tick = -1, .ending.tick = -1};
    p->owns = usi_arena_alloc(&s->arena, (size_t)s->ownership.n_group + 1, 1);
    if (!p->owns) return NULL;
    memcpy(p->owns, s->missing, (size_t)s->ownership.n_group + 1);
    p->first = usi_ownership_first(&s->ownership, p->owns);
    name_peer(p, m);
    s->n_peer++;
    return p;
}

static void release_message(const us_allocator *a, usi_state_message *l) {
    usi_release(a, l->memory, l->size, 16);
}

static void release_peer(usi_split *s, usi_peer *p) {
    release_message(&s->def.allocator, &p->state[0]);
    release_message(&s->def.allocator, &p->state[1]);
    release_message(&s->def.allocator, &p->last_seen);
    release_message(&s->def.allocator, &p->ending);
}

// A process that ends before all are there is forgotten.
static void end_peer(usi_split *s, usi_peer *p) {
    p->has_ended = true;
    if (s->phase != GATHER) {
        keep(s, &p->ending);
        return;
    }
    release_peer(s, p);
    *p = s->peer[--s->n_peer];
}

void usi_split_receive(usi_split *s, const void *bytes, size_t length, int64_t now_ns) {
    s->now_ns = now_ns;
    if (!decode(s, bytes, length)) return;
    const us_msg_world_share *m = s->inbox.message;
    if (m->process == s->def.id) return;
    usi_peer *p = NULL;
    for (int32_t i = 0; i < s->n_peer && !p; i++)
        p = s->peer[i].id == m->process ? &s->peer[i] : NULL;
    bool is_new = !p;
    if (!p) p = admit(s, m);
    if (!p) return;
    p->heard_ns = now_ns;
    p->tick = m->tick;
    switch ((usi_split_kind)m->kind) {
    case USI_SHARE_HELLO:
        // An answer, so that a new process does not wait for the next repetition.
        if (s->phase == RUN)
            send_return(s, p);
        else if (is_new)
            send_bare(s, USI_SHARE_HELLO, NULL);
        break;
    case USI_SHARE_POINT: {
        p->has_begun = true;
        // A process that sends a third point has our state message of the second: the first is of no use any
        // more.
        usi_state_message *l = older_state(p);
        if (m->tick > l->tick && m->tick != newer_state(p)->tick && (s->phase != RUN || m->tick >= s->point))
            keep(s, l);
        break;
    }
    case USI_SHARE_RETURN:
        p->has_begun = true;
        if (m->receiver == s->def.id && m->tick > p->last_seen.tick) keep(s, &p->last_seen);
        break;
    default:
        end_peer(s, p);
        break;
    }
}

// ---------------------------------------------------------------- waiting

static us_status wait_for(usi_split *s, const usi_peer *p, const char *what, us_error *err) {
    if (s->waiting_ns == 0) s->waiting_ns = s->now_ns;
    // A process that sends now and then may take its time.
    int64_t since = p && p->heard_ns > s->waiting_ns ? p->heard_ns : s->waiting_ns;
    bool is_over = s->def.timeout > 0 && 1e-9 * (double)(s->now_ns - since) > s->def.timeout;
    if (!is_over && (s->is_logged || (s->now_ns - s->waiting_ns < PATIENCE_NS && !(p && p->has_ended))))
        return US_OK;
    char names[256], line[512];
    usi_ownership_list(&s->ownership, p ? p->owns : s->missing, names, sizeof names);
    if (p) {
        snprintf(line, sizeof line, "at %.9g s: the process %s, which owns %s, %s", us_sim_get_time(s->sim),
                 p->label, names, p->has_ended ? "has ended" : what);
    } else {
        snprintf(line, sizeof line, "no process owns %s", names);
    }
    if (is_over)
        return us_error_set(err, US_ERR_LIMIT, NULL,
                            p ? "start it again with the same --own, or wait longer: --share-timeout"
                              : "start a process that has them in its --own",
                            "%s; waited for %g s", line, s->def.timeout);
    log_line(s, 1, "%s: waiting for it", line);
    s->is_logged = true;
    return US_OK;
}

static void proceed(usi_split *s) {
    if (s->is_logged) log_line(s, 0, "at %.9g s: all are there, going on", us_sim_get_time(s->sim));
    s->is_logged = false;
    s->waiting_ns = 0;
}

// ---------------------------------------------------------------- gather, return

// Owners of all trees. What nobody names belongs to the first of all.
static us_status assign(usi_split *s, us_error *err) {
    int32_t lowest = -1;
    for (int32_t i = 0; i < s->n_peer; i++) {
        if (s->peer[i].first < (lowest < 0 ? s->first : s->peer[lowest].first)) lowest = i;
    }
    for (int32_t t = 0; t < s->ownership.n_tree; t++) {
        int32_t g = s->ownership.group_of_tree[t];
        s->owner[t] = lowest;
        if (g < 0) continue;
        if (s->owns[g]) s->owner[t] = -1;
        for (int32_t i = 0; i < s->n_peer; i++) {
            if (s->peer[i].owns[g]) s->owner[t] = i;
        }
    }
    us_status status = usi_ownership_check(&s->ownership, s->sim->model, s->owner, err);
    for (int32_t t = 0; t < s->ownership.n_tree && !status; t++)
        usi_sim_mark_ghost(s->sim, t, s->owner[t] < 0 ? USI_OWN : USI_GHOST_STILL);
    return status;
}

// The trees of an owner (-1: we) as a message has them.
static bool put_trees(usi_split *s, int32_t owner, const us_msg_world_share *m) {
    uint32_t n_q = 0, n_v = 0, n_actuation = 0;
    for (int32_t t = 0; t < s->ownership.n_tree; t++) {
        if (s->owner[t] != owner) continue;
        usi_tree_size n = usi_sim_tree_size(s->sim, t);
        const double *q = m->positions._buffer + n_q, *v = m->velocities._buffer + n_v,
                     *actuation = n.n_actuation ? m->drives._buffer + n_actuation : NULL;
        n_q += (uint32_t)n.n_q;
        n_v += (uint32_t)n.n_v;
        n_actuation += (uint32_t)n.n_actuation;
        if (n_q > m->positions._length || n_v > m->velocities._length || n_actuation > m->drives._length)
            return false;
        if (!usi_sim_put_tree(s->sim, t, q, v, actuation)) return false;
    }
    return true;
}

// Resumes from the last state of our trees that others have. True when all that are under way have sent it.
static bool resume(usi_split *s) {
    const usi_state_message *last = NULL;
    for (int32_t i = 0; i < s->n_peer; i++) {
        const usi_peer *p = &s->peer[i];
        if (p->has_begun && p->tick > us_sim_get_tick(s->sim) && p->last_seen.tick < 0) return false;
        if (p->last_seen.tick >= 0 && (!last || p->last_seen.tick > last->tick)) last = &p->last_seen;
    }
    if (!last || !put_trees(s, -1, last->message)) return false;
    for (int32_t t = 0; t < s->ownership.n_tree; t++) {
        if (s->owner[t] < 0) usi_sim_restart(s->sim, t);
    }
    usi_sim_set_tick(s->sim, last->tick);
    log_line(s, 0, "takes up at %.9g s, where the others last saw what it owns", us_sim_get_time(s->sim));
    return true;
}

static us_status begin(usi_split *s, us_error *err) {
    proceed(s);
    s->phase = RUN;
    s->point = us_sim_get_tick(s->sim);
    return send_state(s, err);
}

static us_status gather(usi_split *s, us_error *err) {
    const bool *owns[USI_SPLIT_PEERS + 1];
    int32_t n = 0;
    owns[n++] = s->owns;
    for (int32_t i = 0; i < s->n_peer; i++)
        owns[n++] = s->peer[i].owns;
    if (usi_ownership_missing(&s->ownership, owns, n, s->missing)) return wait_for(s, NULL, NULL, err);
    us_status status = assign(s, err);
    if (status) return status;
    for (int32_t i = 0; i < s->n_peer; i++) {
        if (s->peer[i].has_begun && s->peer[i].tick > us_sim_get_tick(s->sim)) s->phase = RETURN;
    }
    return s->phase == RETURN ? US_OK : begin(s, err);
}

static us_status rejoin(usi_split *s, us_error *err) {
    if (resume(s)) return begin(s, err);
    return wait_for(s, &s->peer[0], "has not sent the last state of what this one owns", err);
}

// ---------------------------------------------------------------- run

static bool overlap(const us_aabb *a, const us_aabb *b) {
    return a->min.x <= b->max.x && b->min.x <= a->max.x && a->min.y <= b->max.y && b->min.y <= a->max.y &&
           a->min.z <= b->max.z && b->min.z <= a->max.z;
}

static bool has_rank_above(const usi_split *s, int32_t owner) {
    return owner >= 0 && s->peer[owner].first > s->first;
}

// The ghosts of processes of higher rank that one which moves here may touch before the next exchange point
// move here too, and those that these may touch in turn: then each contact of ours has both sides as they
// really are. Stack is a list of trees to look around.
static void find_movers(usi_split *s) {
    int32_t n = 0;
    for (int32_t t = 0; t < s->ownership.n_tree; t++) {
        s->moves[t] = s->owner[t] < 0;
        if (s->moves[t]) s->stack[n++] = t;
    }
    while (n > 0) {
        const us_aabb *box = &s->box[s->stack[--n]];
        for (int32_t t = 0; t < s->ownership.n_tree; t++) {
            if (s->moves[t] || !has_rank_above(s, s->owner[t]) || !overlap(box, &s->box[t])) continue;
            s->moves[t] = true;
            s->stack[n++] = t;
        }
    }
}

// Predecessors: processes of lower rank with something that may touch what moves here.
static void find_predecessors(usi_split *s) {
    for (int32_t t = 0; t < s->ownership.n_tree; t++) {
        int32_t owner = s->owner[t];
        if (owner < 0 || has_rank_above(s, owner) || s->needs[owner]) continue;
        for (int32_t k = 0; k < s->ownership.n_tree && !s->needs[owner]; k++)
            s->needs[owner] = s->moves[k] && overlap(&s->box[t], &s->box[k]);
    }
}

// Boxes around all that may be reached in so many intervals.
static void find_boxes(usi_split *s, int32_t n_interval) {
    const double span = n_interval * s->n_step * s->out.step;
    usi_contacts_reach(s->sim->contacts, s->sim->now.q, s->sim->now.v, LEAD * span,
                       CLEARANCE + 0.5 * MAX_ACCELERATION * span * span, s->box);
}

// Whether no box of one owner overlaps one of another.
static bool are_apart(const usi_split *s) {
    for (int32_t i = 0; i < s->ownership.n_tree; i++) {
        for (int32_t k = 0; k < i; k++) {
            if (s->owner[i] != s->owner[k] && overlap(&s->box[i], &s->box[k])) return false;
        }
    }
    return true;
}

static void look_ahead(usi_split *s) {
    const int32_t max = s->def.n_interval > 1 ? s->def.n_interval : 1;
    memset(s->needs, 0, sizeof s->needs);
    s->has_awake = false;
    s->span = (int64_t)max * s->n_step;
    if (!s->sim->contacts) return;
    find_boxes(s, max);
    if (max > 1 && !are_apart(s)) {
        s->span = s->n_step;
        find_boxes(s, 1);
    }
    find_movers(s);
    find_predecessors(s);
    for (int32_t t = 0; t < s->ownership.n_tree; t++) {
        if (s->owner[t] < 0) continue;
        usi_sim_mark_ghost(s->sim, t, s->moves[t] ? USI_GHOST_AWAKE : USI_GHOST_STILL);
        s->has_awake |= s->moves[t];
        s->counts.n_awake += s->moves[t];
    }
}

static const usi_state_message *state_at(const usi_peer *p, int64_t tick) {
    return p->state[0].tick == tick ? &p->state[0] : p->state[1].tick == tick ? &p->state[1] : NULL;
}

// The forces of a predecessor from the point on: to the next one, or as far as it came.
static const usi_state_message *forces_of(const usi_split *s, const usi_peer *p) {
    const usi_state_message *l = state_at(p, s->point + s->span);
    return l                                                                                  ? l
           : p->has_ended && p->ending.tick > s->point && p->ending.tick < s->point + s->span ? &p->ending
                                                                                              : NULL;
}

static us_status open_interval(usi_split *s, us_error *err) {
    for (int32_t i = 0; i < s->n_peer && !s->is_put; i++) {
        if (!state_at(&s->peer[i], s->point))
            return wait_for(s, &s->peer[i], "has not come to this exchange point", err);
    }
    for (int32_t i = 0; i < s->n_peer && !s->is_put; i++) {
        if (!put_trees(s, i, state_at(&s->peer[i], s->point)->message))
            return us_error_set(err, US_ERR_VALUE, NULL, "start all with the same scene and program",
                                "at %.9g s: the process %s sent a state that does not fit",
                                us_sim_get_time(s->sim), s->peer[i].label);
    }
    if (!s->is_put) look_ahead(s);
    s->is_put = true;
    bool has_predecessor = false;
    int64_t end = s->point + s->span, tick = us_sim_get_tick(s->sim);
    for (int32_t i = 0; i < s->n_peer; i++) {
        if (!s->needs[i]) continue;
        const usi_state_message *l = forces_of(s, &s->peer[i]);
        if (!l || l->tick <= tick) return wait_for(s, &s->peer[i], "has not sent its forces", err);
        if (l->tick < end) end = l->tick;
        has_predecessor = true;
    }
    s->open_end = end;
    s->counts.n_exchange++;
    s->counts.n_predecessor += has_predecessor;
    s->is_open = true;
    proceed(s);
    return US_OK;
}

us_status usi_split_poll(usi_split *s, int64_t now_ns, bool *out_is_ready, us_error *err) {
    *out_is_ready = s->is_open;
    if (s->is_open) return US_OK;
    usi_split_keep_alive(s, now_ns);
    if (s->fault.code) {
        if (err) *err = s->fault;
        return s->fault.code;
    }
    us_status status = US_OK;
    if (s->phase == GATHER) status = gather(s, err);
    if (!status && s->phase == RETURN) status = rejoin(s, err);
    if (!status && s->phase == RUN) status = open_interval(s, err);
    *out_is_ready = s->is_open;
    return status;
}

const us_command *usi_split_command(usi_split *s) {
    uint32_t step = (uint32_t)(us_sim_get_tick(s->sim) - s->point);
    const us_model *model = s->sim->model;
    bool any = false;
    memset(s->sim->pushed, 0, (size_t)model->n_tree * sizeof *s->sim->pushed);
    for (int32_t i = 0; i < s->n_peer; i++) {
        const usi_state_message *l = s->needs[i] ? forces_of(s, &s->peer[i]) : NULL;
        const us_msg_world_share *m = l ? l->message : NULL;
        for (uint32_t k = 0; m && k < m->push_steps._length && k < m->push_links._length &&
                             6 * k + 5 < m->push_forces._length;
             k++) {
            uint32_t body = m->push_links._buffer[k];
            if (m->push_steps._buffer[k] != step || body >= (uint32_t)model->n_body ||
                model->body[body].node < 0)
                continue;
            int32_t tree = model->node[model->body[body].node].tree;
            if (!s->moves[tree]) continue;
            // Also where the force is 0: what touches is moved by the contact solve, here as there.
            s->sim->pushed[tree] = true;
            if (!any) memset(s->wrench, 0, (size_t)model->n_body * sizeof *s->wrench);
            any = true;
            const double *w = m->push_forces._buffer + 6 * (size_t)k;
            s->wrench[body].n = us_vec3_add(s->wrench[body].n, us_vec3_make(w[0], w[1], w[2]));
            s->wrench[body].f = us_vec3_add(s->wrench[body].f, us_vec3_make(w[3], w[4], w[5]));
        }
    }
    return any ? &s->command : NULL;
}

// Forces of the last step on ghosts.
static us_status collect_forces(usi_split *s, us_error *err) {
    us_msg_world_share *m = &s->out;
    const us_model *model = s->sim->model;
    memset(s->force, 0, (size_t)model->n_body * sizeof *s->force);
    memset(s->is_touched, 0, (size_t)model->n_body * sizeof *s->is_touched);
    usi_contacts_wrenches(s->sim->contacts, s->force, s->is_touched);
    uint32_t step = (uint32_t)(us_sim_get_tick(s->sim) - 1 - s->point);
    for (int32_t b = 0; b < model->n_body; b++) {
        if (!s->is_touched[b]) continue;
        const us_wrench *w = &s->force[b];
        const double numbers[6] = {w->n.x, w->n.y, w->n.z, w->f.x, w->f.y, w->f.z};
        uint32_t k = m->push_steps._length;
        if (k == m->push_steps._maximum)
            return us_error_set(err, US_ERR_LIMIT, NULL,
                                "write a shorter --exchange, or give what touches to one process",
                                "at %.9g s: too much touches what others own: more than %u forces",
                                us_sim_get_time(s->sim), (unsigned)k);
        m->push_steps._buffer[k] = step;
        m->push_links._buffer[k] = (uint32_t)b;
        memcpy(m->push_forces._buffer + 6 * (size_t)k, numbers, sizeof numbers);
        m->push_steps._length = m->push_links._length = k + 1;
        m->push_forces._length = 6 * (k + 1);
        s->counts.n_force++;
    }
    return US_OK;
}

us_status usi_split_stepped(usi_split *s, us_error *err) {
    us_status status = s->has_awake ? collect_forces(s, err) : US_OK;
    if (us_sim_get_tick(s->sim) == s->open_end) s->is_open = false;
    if (status || us_sim_get_tick(s->sim) < s->point + s->span) return status;
    s->point += s->span;
    s->is_put = s->is_open = false;
    return send_state(s, err);
}

bool usi_split_is_needed(const usi_split *s) {
    for (int32_t i = 0; i < s->n_peer && s->phase == RUN; i++) {
        if (!s->peer[i].has_ended && s->peer[i].tick < s->point && !is_silent(s, &s->peer[i])) return true;
    }
    return false;
}

usi_split_counts usi_split_get_counts(const usi_split *s) { return s->counts; }
bool usi_split_owns(const usi_split *s, int32_t group) { return s->owns[group]; }
bool usi_split_is_first(const usi_split *s) {
    for (int32_t g = 0; g < s->first && g < s->ownership.n_group; g++) {
        if (s->ownership.must_own[g]) return false;
    }
    return true;
}

// ---------------------------------------------------------------- life

static us_status make_out(usi_split *s, us_error *err) {
    const us_model *m = s->sim->model;
    size_t max = (size_t)s->n_step * (size_t)m->n_body, n_own = 0, n_actuation = 0,
           n_body = (size_t)m->n_body;
    if (max > USI_SPLIT_FORCES) max = USI_SPLIT_FORCES;
    for (int32_t g = 0; g < s->ownership.n_group; g++)
        n_own += s->owns[g];
    for (int32_t t = 0; t < m->n_tree; t++)
        n_actuation += (size_t)usi_sim_tree_size(s->sim, t).n_actuation;
    us_msg_world_share *o = &s->out;
    *o = (us_msg_world_share){
        .process = s->def.id, .label = usi_text(s->def.label), .version = usi_text(us_version())};
    o->scene = us_model_hash(m);
    o->step = m->step;
    o->exchange = (uint32_t)s->n_step;
#define ROOM(field, n, type) ((field) = usi_arena_alloc(&s->arena, ((n) + 1) * sizeof(type), 16))
    bool ok = ROOM(o->own._buffer, n_own, char *) && ROOM(o->positions._buffer, (size_t)m->n_q, double) &&
              ROOM(o->velocities._buffer, (size_t)m->n_node, double) &&
              ROOM(o->drives._buffer, n_actuation, double) && ROOM(o->push_steps._buffer, max, uint32_t) &&
              ROOM(o->push_links._buffer, max, uint32_t) && ROOM(o->push_forces._buffer, 6 * max, double) &&
              ROOM(s->wrench, n_body, us_wrench) && ROOM(s->force, n_body, us_wrench) &&
              ROOM(s->is_touched, n_body, bool) && ROOM(s->owner, (size_t)m->n_tree, int32_t) &&
              ROOM(s->box, (size_t)m->n_tree, us_aabb) && ROOM(s->moves, (size_t)m->n_tree, bool) &&
              ROOM(s->stack, (size_t)m->n_tree, int32_t);
#undef ROOM
    if (!ok) return fail_memory(err);
    o->push_steps._maximum = (uint32_t)max;
    for (int32_t g = 0; g < s->ownership.n_group; g++) {
        if (s->owns[g])
            o->own._buffer[o->own._length++] = usi_text(us_spec_view_group(s->ownership.spec, g)->name);
    }
    s->command.wrench = s->wrench;
    return US_OK;
}

static us_status init(usi_split *s, const us_spec *spec, us_error *err) {
    const us_model *m = s->sim->model;
    double steps = s->def.exchange / m->step;
    if (!(steps >= 0.999999 && steps <= 10000 && fabs(steps - round(steps)) < 1e-6 * steps))
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "write a multiple of the world's step, for example ten times it",
                            "exchange: %g s is not a whole number of steps of %g s, from 1 to 10000",
                            s->def.exchange, m->step);
    s->n_step = (int32_t)lround(steps);
    us_status status = usi_sim_allow_ghosts(s->sim)
                           ? fail_memory(err)
                           : usi_ownership_init(&s->ownership, spec, m, &s->arena, err);
    if (status) return status;
    s->owns = usi_arena_alloc(&s->arena, (size_t)s->ownership.n_group + 1, 1);
    s->missing = usi_arena_alloc(&s->arena, (size_t)s->ownership.n_group + 1, 1);
    if (!s->owns || !s->missing) return fail_memory(err);
    status = usi_ownership_parse(&s->ownership, s->def.own, s->owns, err);
    if (status) return status;
    s->first = usi_ownership_first(&s->ownership, s->owns);
    return make_out(s, err);
}

us_status usi_split_create(const us_spec *spec, us_sim *sim, const usi_split_def *def, usi_split **out,
                           us_error *err) {
    usi_split *s = usi_alloc(&def->allocator, sizeof *s, _Alignof(usi_split));
    if (!s) return fail_memory(err);
    memset(s, 0, sizeof *s);
    s->def = *def;
    s->sim = sim;
    s->inbox.tick = -1;
    usi_arena_init(&s->arena, &s->def.allocator);
    us_status status = init(s, spec, err);
    if (status) {
        usi_split_destroy(s);
        return status;
    }
    *out = s;
    return US_OK;
}

void usi_split_destroy(usi_split *s) {
    if (!s) return;
    us_allocator a = s->def.allocator;
    for (int32_t i = 0; i < s->n_peer; i++)
        release_peer(s, &s->peer[i]);
    release_message(&a, &s->inbox);
    for (int i = 0; i < 2; i++)
        usi_release(&a, s->packet[i].bytes, s->packet[i].cap, 16);
    usi_release(&a, s->hello.bytes, s->hello.cap, 16);
    usi_arena_fini(&s->arena);
    usi_release(&a, s, sizeof *s, _Alignof(usi_split));
}
