// Pictures of robots' cameras, by a thread of their own: see cameras.h.
//
//     publish:  notice (ask) ... start                          is_ready ... done
//                       |          |                                |
//     thread:           |          +--> soil, pictures, `is_running` false
//                  copy of the world
//
// The copy (`mirror`) is written by the thread that publishes while the other one waits, and read by the
// other one while `is_running`. A job belongs to the thread while it is asked for and running, otherwise to
// the one that publishes.
#include "proxy/cameras.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "model/robots.h"
#include "sim/sim.h"
#include "spec/camera_device.h"

typedef enum job_phase { JOB_NONE, JOB_ASKED, JOB_MADE } job_phase;

typedef struct camera_job {
    int32_t sensor;
    us_camera_renderer *renderer;
    us_camera_info info;
    job_phase phase;
    int64_t tick, before;  // of the sample, and of the one before it
    int64_t seen;          // the last sample that was noticed
    int64_t n_lost;        // samples that faults had lost then
    bool has_picture;
} camera_job;

struct usi_cameras {
    us_allocator allocator;
    const us_model *model;
    us_sim *mirror;
    camera_job *job;
    int32_t n;
    char *soil;  // packed
    size_t n_soil, cap_soil;
    bool is_mirrored;  // the copy is of the tick `mirrored`, and nobody has looked yet
    int64_t mirrored, n_dropped;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_running, is_closing;
};

static bool is_camera(const us_model *m, int32_t sensor) {
    return usi_sensor_is(&m->sensor[sensor], "camera");
}

size_t usi_cameras_sample_size(const us_model *m) {
    size_t most = 0;
    for (int32_t i = 0; i < m->n_sensor; i++) {
        if (!is_camera(m, i)) continue;
        const double *p = m->sensor[i].parameter;
        const size_t n = (size_t)p[USI_CAMERA_WIDTH] * (size_t)p[USI_CAMERA_HEIGHT];
        const size_t bytes = n * 6 + 65536;  // three numbers of 16 bits, or a depth
        most = bytes > most ? bytes : most;
    }
    return most;
}

// ---------------------------------------------------------------- the thread

static void *run(void *context) {
    usi_cameras *c = context;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->is_running && !c->is_closing)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->is_closing) break;
        pthread_mutex_unlock(&c->lock);
        const bool is_good = usi_deformables_restore(c->mirror, c->soil, c->n_soil);
        for (int32_t i = 0; i < c->n; i++) {
            camera_job *j = &c->job[i];
            if (j->phase != JOB_ASKED) continue;
            const bool is_made = is_good && us_camera_renderer_render(j->renderer, c->mirror, NULL) == US_OK;
            j->phase = is_made ? JOB_MADE : JOB_NONE;
            j->has_picture = j->has_picture || is_made;
        }
        pthread_mutex_lock(&c->lock);
        c->is_running = false;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static bool is_running(usi_cameras *c) {
    pthread_mutex_lock(&c->lock);
    const bool is = c->is_running;
    pthread_mutex_unlock(&c->lock);
    return is;
}

static void wait_until_idle(usi_cameras *c) {
    pthread_mutex_lock(&c->lock);
    while (c->is_running)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

// ---------------------------------------------------------------- create

static us_status make_jobs(usi_cameras *c, us_error *err) {
    const us_model *m = c->model;
    c->job = usi_alloc(&c->allocator, (size_t)c->n * sizeof *c->job, _Alignof(camera_job));
    if (!c->job) return US_ERR_MEMORY;
    memset(c->job, 0, (size_t)c->n * sizeof *c->job);
    us_status status = US_OK;
    for (int32_t i = 0, k = 0; i < m->n_sensor && !status; i++) {
        if (!is_camera(m, i)) continue;
        camera_job *j = &c->job[k++];
        us_camera_model lens;
        *j = (camera_job){.sensor = i, .tick = -1, .before = -1, .seen = -1};
        status = usi_camera_lens(m->sensor[i].parameter, &lens, err);
        if (!status) status = us_camera_get_info(&lens, &j->info, err);
        if (!status)
            status = us_camera_renderer_create(m, (us_sensor){i}, 1, &c->allocator, &j->renderer, err);
    }
    return status;
}

us_status usi_cameras_create(const us_model *model, const us_allocator *allocator, usi_cameras **out,
                             us_error *err) {
    int32_t n = 0;
    for (int32_t i = 0; i < model->n_sensor; i++)
        n += is_camera(model, i);
    *out = NULL;
    if (n == 0) return US_OK;
    usi_cameras *c = usi_alloc(allocator, sizeof *c, _Alignof(usi_cameras));
    if (!c) return US_ERR_MEMORY;
    *c = (usi_cameras){.allocator = *allocator, .model = model, .n = n};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    us_sim_def def = us_sim_def_default();
    def.allocator = *allocator;
    us_status status = us_sim_create(model, &def, &c->mirror, err);
    if (!status) status = make_jobs(c, err);
    c->has_thread = !status && pthread_create(&c->thread, NULL, run, c) == 0;
    if (!status && !c->has_thread)
        status = us_error_set(err, US_ERR_LIMIT, NULL, "end other programs",
                              "there is no thread for the pictures of cameras");
    if (status)
        usi_cameras_destroy(c);
    else
        *out = c;
    return status;
}

void usi_cameras_destroy(usi_cameras *c) {
    if (!c) return;
    if (c->has_thread) {
        wait_until_idle(c);
        pthread_mutex_lock(&c->lock);
        c->is_closing = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
    }
    const us_allocator a = c->allocator;
    for (int32_t i = 0; c->job && i < c->n; i++)
        us_camera_renderer_destroy(c->job[i].renderer);
    if (c->job) usi_release(&a, c->job, (size_t)c->n * sizeof *c->job, _Alignof(camera_job));
    if (c->soil) usi_release(&a, c->soil, c->cap_soil, USI_ALIGN);
    us_sim_destroy(c->mirror);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    usi_release(&a, c, sizeof *c, _Alignof(usi_cameras));
}

// ---------------------------------------------------------------- asking

static camera_job *find(const usi_cameras *c, int32_t sensor) {
    for (int32_t i = 0; c && i < c->n; i++) {
        if (c->job[i].sensor == sensor) return &c->job[i];
    }
    return NULL;
}

// The world as it is now, once for all pictures of a tick. False: there is no memory.
static bool take_world(usi_cameras *c, const us_sim *sim) {
    const int64_t tick = us_sim_get_tick(sim);
    if (c->is_mirrored && c->mirrored == tick) return true;
    const size_t n = usi_deformables_save(sim, NULL);
    if (n > c->cap_soil) {
        char *more = usi_alloc(&c->allocator, n + n / 2, USI_ALIGN);
        if (!more) return false;
        if (c->soil) usi_release(&c->allocator, c->soil, c->cap_soil, USI_ALIGN);
        c->soil = more;
        c->cap_soil = n + n / 2;
    }
    usi_deformables_save(sim, c->soil);
    c->n_soil = n;
    usi_sim_mirror(sim, c->mirror);
    c->is_mirrored = true;
    c->mirrored = tick;
    return true;
}

void usi_cameras_notice(usi_cameras *c, const us_sim *sim, int32_t sensor, bool is_wanted, bool waits) {
    camera_job *j = find(c, sensor);
    const usi_sensor_state *k = &sim->now.sensor[sensor];
    const int64_t tick = us_sim_get_tick(sim);
    if (!j || k->sampled != tick || j->seen == tick) return;
    const bool is_lost = k->n_lost != j->n_lost;
    const int64_t before = j->seen;
    j->seen = tick;
    j->n_lost = k->n_lost;
    if (!is_wanted || is_lost || c->model->sensor[sensor].is_lost) return;
    if (waits) wait_until_idle(c);
    if (is_running(c) || j->phase == JOB_ASKED) {
        c->n_dropped++;
        return;
    }
    // A frozen camera gives its last picture again, each time as if it were new.
    const bool is_frozen = k->is_stuck && j->has_picture;
    if (!is_frozen && !take_world(c, sim)) return;
    j->tick = tick;
    j->before = before;
    j->phase = is_frozen ? JOB_MADE : JOB_ASKED;
}

void usi_cameras_start(usi_cameras *c) {
    if (!c || !c->is_mirrored) return;
    c->is_mirrored = false;
    pthread_mutex_lock(&c->lock);
    c->is_running = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

// ---------------------------------------------------------------- taking

bool usi_cameras_is_ready(usi_cameras *c, const us_sim *sim, int32_t sensor, bool waits) {
    const camera_job *j = find(c, sensor);
    if (!j || j->tick < 0 || sim->now.sensor[sensor].tick < j->tick) return false;
    if (waits) {
        usi_cameras_start(c);
        wait_until_idle(c);
    }
    return !is_running(c) && j->phase == JOB_MADE;
}

void usi_cameras_done(usi_cameras *c, int32_t sensor) {
    camera_job *j = find(c, sensor);
    if (j && !is_running(c) && j->phase == JOB_MADE) j->phase = JOB_NONE;
}

int64_t usi_cameras_tick(const usi_cameras *c, int32_t sensor, int64_t *out_before) {
    const camera_job *j = find(c, sensor);
    if (out_before) *out_before = j ? j->before : -1;
    return j ? j->tick : -1;
}

const us_camera_renderer *usi_cameras_view(const usi_cameras *c, int32_t sensor) {
    const camera_job *j = find(c, sensor);
    return j ? j->renderer : NULL;
}

const us_camera_info *usi_cameras_info(const usi_cameras *c, int32_t sensor) {
    const camera_job *j = find(c, sensor);
    return j ? &j->info : NULL;
}

bool usi_cameras_is_idle(usi_cameras *c) { return !c || !is_running(c); }

int64_t usi_cameras_n_dropped(const usi_cameras *c) { return c ? c->n_dropped : 0; }
