#include "split_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "spec/spec.h"

const char split_head[] =
    "<scene name='split' version='1'><world step='1 ms'><shape name='ground' type='half-space' "
    "surface='ground'/></world>"
    "<material name='rubber'/><material name='ground'/>"
    "<pair a='rubber' b='ground' static-friction='0.8' kinetic-friction='0.7' rolling-length='1 mm'/>"
    "<default name='wheel'><drive kd='4'/></default>";
const char split_tail[] = "</scene>";

const char *split_cart(const char *name, double x, double y, double speed) {
    static char text[8][1024];
    static int turn;
    char *out = text[turn++ % 8];
    snprintf(
        out, sizeof text[0],
        "<robot name='%s' file='../models/cart.urdf' base='floating' default='wheel' xyz='%.17g %.17g "
        "0'><surface link='*_wheel' surface='rubber'/>"
        "<drive joint='front_left' velocity='%.17g'/><drive joint='front_right' velocity='%.17g'/>"
        "<drive joint='rear_left' velocity='%.17g'/><drive joint='rear_right' velocity='%.17g'/></robot>",
        name, x, y, speed, speed, speed, speed);
    return out;
}

us_spec *split_load(const char *scene) {
    us_error err = {0};
    us_spec *spec = NULL;
    if (us_spec_load_text(scene, strlen(scene), US_SOURCE_DIR "/scenes/test.xml", NULL, &spec, &err))
        fail_msg("%s; %s", err.message, err.remedy);
    return spec;
}

void split_open(split_net *net) {
    *net = (split_net){.now_ns = 1000000000, .timeout = 60};
    net->last = &net->first;
}

static void on_send(void *context, const void *bytes, size_t length) {
    split_net *net = ((split_process *)context)->net;
    split_bytes *b = malloc(sizeof *b + length);
    assert_non_null(b);
    *b = (split_bytes){.length = length};
    memcpy(b + 1, bytes, length);
    *net->last = b;
    net->last = &b->next;
}

static void on_log(void *context, int32_t level, const char *text) {
    split_process *p = context;
    (void)level;
    size_t n = strlen(p->said);
    snprintf(p->said + n, sizeof p->said - n, "%s\n", text);
}

split_process *split_add(split_net *net, const char *scene, const char *own, double exchange) {
    assert_true(net->n < SPLIT_MAX);
    split_process *p = &net->process[net->n++];
    *p = (split_process){.net = net, .spec = split_load(scene)};
    us_error err = {0};
    if (us_model_compile(p->spec, NULL, &p->model, &err)) fail_msg("%s", err.message);
    if (us_sim_create(p->model, NULL, &p->sim, &err)) fail_msg("%s", err.message);
    p->velocity = calloc((size_t)p->model->n_drive + 1, sizeof(double));
    assert_non_null(p->velocity);
    if (!own) return p;
    static char label[SPLIT_MAX][16];
    snprintf(label[net->n - 1], sizeof label[0], "process%d", (int)net->n);
    usi_split_def def = {.allocator = us_allocator_default(),
                         .own = own,
                         .label = label[net->n - 1],
                         .id = (uint64_t)net->n,
                         .exchange = exchange};
    def.n_interval = net->n_interval;
    def.timeout = net->timeout;
    def.send = on_send;
    def.log = on_log;
    def.context = p;
    p->status = usi_split_create(p->spec, p->sim, &def, &p->split, &p->err);
    if (p->status) {
        us_sim_destroy(p->sim);
        p->sim = NULL;
    }
    return p;
}

void split_kill(split_process *p) {
    usi_split_destroy(p->split);
    us_sim_destroy(p->sim);
    p->split = NULL;
    p->sim = NULL;
}

static void deliver(split_net *net) {
    while (net->first) {
        split_bytes *b = net->first;
        net->first = b->next;
        if (!net->first) net->last = &net->first;
        for (int32_t i = 0; i < net->n; i++) {
            if (net->process[i].split)
                usi_split_receive(net->process[i].split, b + 1, b->length, net->now_ns);
        }
        free(b);
    }
}

static void step(split_process *p) {
    const us_command *given = p->split ? usi_split_command(p->split) : NULL;
    us_command command = given ? *given : (us_command){0};
    if (p->net->drive) {
        memcpy(p->velocity, p->sim->now.drive_velocity, (size_t)p->model->n_drive * sizeof(double));
        double *wanted = calloc((size_t)p->model->n_drive + 1, sizeof(double));
        assert_non_null(wanted);
        p->net->drive(p->model, us_sim_get_tick(p->sim), wanted);
        // Of ghosts the owner's command holds.
        for (int32_t i = 0; i < p->model->n_drive; i++) {
            bool is_own =
                !p->sim->ghost || p->sim->ghost[p->model->node[p->model->drive[i].v].tree] == USI_OWN;
            if (is_own) p->velocity[i] = wanted[i];
        }
        free(wanted);
        command.drive_velocity = p->velocity;
    }
    p->status = us_sim_step(p->sim, &command);
    if (p->status) p->err = *us_sim_view_error(p->sim);
    if (!p->status && p->split) p->status = usi_split_stepped(p->split, &p->err);
}

bool split_run(split_net *net, int64_t tick, double seconds) {
    for (int64_t quiet_ns = 0; quiet_ns < (int64_t)(1e9 * seconds);) {
        bool has_moved = false, is_done = true;
        deliver(net);
        for (int32_t i = 0; i < net->n; i++) {
            split_process *p = &net->process[i];
            if (!p->sim || p->status || us_sim_get_tick(p->sim) >= tick) {
                if (p->split && !p->status) usi_split_keep_alive(p->split, net->now_ns);
                continue;
            }
            is_done = false;
            bool is_ready = true;
            if (p->split) p->status = usi_split_poll(p->split, net->now_ns, &is_ready, &p->err);
            if (!p->status && is_ready) {
                step(p);
                has_moved = true;
            }
        }
        if (is_done) return true;
        int64_t span = has_moved ? 1000 : 10000000;
        net->now_ns += span;
        quiet_ns = has_moved ? 0 : quiet_ns + span;
    }
    return false;
}

void split_close(split_net *net) {
    deliver(net);
    for (int32_t i = 0; i < net->n; i++) {
        split_process *p = &net->process[i];
        split_kill(p);
        us_model_destroy(p->model);
        us_spec_destroy(p->spec);
        free(p->velocity);
    }
}

us_vec3 split_position(const split_process *p, const char *link) {
    return us_sim_get_pose(p->sim, us_model_find_body(p->model, link)).p;
}

bool split_same(const split_process *a, const split_process *b, const char *group) {
    int32_t n = 0;
    for (int32_t i = 0; i < a->model->n_joint; i++) {
        const usi_joint *j = &a->model->joint[i];
        int32_t of = a->spec->joint[i].group;
        if (of < 0 || strcmp(us_spec_view_group(a->spec, of)->name, group) != 0) continue;
        n += j->n_v;
        if (memcmp(us_sim_view_q(a->sim) + j->first_q, us_sim_view_q(b->sim) + j->first_q,
                   (size_t)j->n_q * sizeof(double)) != 0)
            return false;
        if (memcmp(us_sim_view_v(a->sim) + j->first_v, us_sim_view_v(b->sim) + j->first_v,
                   (size_t)j->n_v * sizeof(double)) != 0)
            return false;
    }
    return n > 0;
}
