// Recordings of a world: each is one interval of time that can be run again.
//
// A file begins with what is needed for that: which scene, how it was read, the edits since, and the state.
// Where time jumps (reset, restore) the file ends and the next begins: drive.mcap, drive-2.mcap,
// drive-3.mcap.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world/world__inner.h"

// Larger scene files are not put into the recording: their path is.
enum { MAX_SCENE = 64 << 20 };

static char *copy_text(const us_allocator *a, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = usi_alloc(a, n, 1);
    if (copy) memcpy(copy, text, n);
    return copy;
}

static void release_text(const us_allocator *a, char *text) {
    if (text) usi_release(a, text, strlen(text) + 1, 1);
}

// ---------------------------------------------------------------- what stands at the start

static us_status attach_scene(const us_world *w, us_recorder *recorder) {
    FILE *file = w->def.scene ? fopen(w->def.scene, "rb") : NULL;
    if (!file) return US_OK;
    us_status status = US_OK;
    long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (length > 0 && length <= MAX_SCENE && fseek(file, 0, SEEK_SET) == 0) {
        void *bytes = usi_alloc(&w->allocator, (size_t)length, 1);
        if (bytes && fread(bytes, 1, (size_t)length, file) == (size_t)length)
            status = us_recorder_attach(recorder, "scene", "application/xml", bytes, (size_t)length);
        if (!bytes) status = US_ERR_MEMORY;
        usi_release(&w->allocator, bytes, (size_t)length, 1);
    }
    fclose(file);
    return status;
}

static us_status attach_state(const us_world *w, us_recorder *recorder) {
    size_t size = 0, length = 0;
    us_status status = us_sim_save(w->live.sim, NULL, 0, &size);
    void *state = status ? NULL : usi_alloc(&w->allocator, size, USI_ALIGN);
    if (!status && !state) status = US_ERR_MEMORY;
    if (!status) status = us_sim_save(w->live.sim, state, size, &length);
    if (!status) status = us_recorder_attach(recorder, "state", "application/octet-stream", state, length);
    usi_release(&w->allocator, state, size, USI_ALIGN);
    return status;
}

static us_status describe(const us_world *w, us_recorder *recorder) {
    char path[PATH_MAX] = "", seed[32], hash[32];
    if (w->def.scene && !realpath(w->def.scene, path)) snprintf(path, sizeof path, "%s", w->def.scene);
    snprintf(seed, sizeof seed, "%" PRIu64, us_spec_view_world(w->first->spec)->seed);
    snprintf(hash, sizeof hash, "%016" PRIx64, us_model_hash(w->first->model));
    // "model" is that of the scene as loaded; "edits" lead from there to the world of the state.
    const char *const keys[] = {"version",          "scene", "base",  "parameters", "search",
                                "exclude-overlaps", "seed",  "model", "edits"};
    const char *const values[] = {us_version(),
                                  path,
                                  w->def.base ? w->def.base : "",
                                  w->def.parameters ? w->def.parameters : "",
                                  w->def.search ? w->def.search : "",
                                  w->def.exclude_overlaps ? "true" : "",
                                  seed,
                                  hash,
                                  w->live.revision->edits};
    us_status status =
        us_recorder_set_metadata(recorder, "understudy", sizeof keys / sizeof keys[0], keys, values);
    if (!status) status = attach_state(w, recorder);
    return status ? status : attach_scene(w, recorder);
}

// ---------------------------------------------------------------- begin and end

static us_status open_file(us_world *w, const char *path, us_recorder **out, us_error *err) {
    us_recorder_def def = us_recorder_def_default();
    def.allocator = w->allocator;
    def.path = path;
    us_status status = us_recorder_open(&def, out, err);
    if (status) return status;
    status = describe(w, *out);
    if (status) {
        us_error_set(err, status, NULL, "name a file on a disk with space", "%.300s cannot be written: %s",
                     path, us_status_text(status));
        us_recorder_close(*out, NULL);
        *out = NULL;
    }
    return status;
}

// The taps of all proxies. On failure there is none.
static us_status begin_taps(us_world *w, us_recorder *recorder, us_error *err) {
    us_status status = usi_world_recording_begin(&w->recording, &w->allocator, w->live.proxy, recorder, err);
    for (int32_t i = 0; i < w->live.n_added && !status; i++)
        status = usi_world_recording_join(&w->added[i], &w->recording, w->live.added[i], err);
    return status;
}

static void end_taps(us_world *w) {
    for (int32_t i = 0; i < USI_LIVE_ADDED; i++)
        usi_world_recording_end(&w->added[i]);
}

void usi_world_record_robot(void *world, us_proxy *proxy, bool is_new) {
    us_world *w = world;
    us_error why = {0};
    for (int32_t i = 0; i < USI_LIVE_ADDED && w->recorder; i++) {
        usi_world_recording *r = &w->added[i];
        if (r->proxy != (is_new ? NULL : proxy)) continue;
        if (!is_new) {
            usi_world_recording_end(r);
        } else if (usi_world_recording_join(r, &w->recording, proxy, &why)) {
            us_world_log(w, 2, why.message);
        }
        return;
    }
}

us_status usi_world_record_end(us_world *w, us_error *err) {
    if (!w->recorder) return US_OK;
    us_recorder_info info = us_recorder_get_info(w->recorder);
    end_taps(w);
    usi_world_recording_end(&w->recording);
    usi_calls_record(w, false);
    us_status status = us_recorder_close(w->recorder, err);
    char line[PATH_MAX + 64];
    snprintf(line, sizeof line, status ? "%s cannot be written to its end" : "wrote %s: %lld messages",
             w->record_path, (long long)info.n_message);
    us_world_log(w, status ? 2 : 0, line);
    release_text(&w->allocator, w->record_path);
    release_text(&w->allocator, w->record_base);
    w->recorder = NULL;
    w->record_path = w->record_base = NULL;
    w->is_record_failed = false;
    return status;
}

static us_status fail_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the recording");
}

// The new file first: when it cannot be made, the old one goes on.
us_status usi_world_record(us_world *w, const char *path, bool may_overwrite, us_error *err) {
    if (usi_hooks_are_partial(w))
        return us_error_set(err, US_ERR_ARG, NULL,
                            "record what the robots say: understudy record; or values: --csv",
                            "a world in several processes cannot be recorded for replay: what others send is "
                            "not in the recording");
    bool is_same = w->record_path && strcmp(w->record_path, path) == 0;
    if (is_same || (!may_overwrite && access(path, F_OK) == 0))
        return us_error_set(err, US_ERR_NAME, NULL, "choose another name", "%.300s is %s", path,
                            is_same ? "being written" : "there already");
    us_recorder *recorder = NULL;
    char *own = copy_text(&w->allocator, path), *base = copy_text(&w->allocator, path);
    us_status status = own && base ? open_file(w, path, &recorder, err) : fail_memory(err);
    if (status) {
        release_text(&w->allocator, own);
        release_text(&w->allocator, base);
        return status;
    }
    // That the old one could not be written to its end stands in the log.
    usi_world_record_end(w, NULL);
    w->recorder = recorder;
    w->record_path = own;
    w->record_base = base;
    w->record_segment = 1;
    w->may_overwrite = may_overwrite;
    status = begin_taps(w, recorder, err);
    usi_calls_record(w, !status);
    if (status) usi_world_record_end(w, NULL);
    return status;
}

// "drive-2.mcap" of "drive.mcap".
static char *segment_path(const us_world *w, int32_t segment) {
    size_t n = strlen(w->record_base), size = n + 16;
    bool has_end = n > 5 && strcmp(w->record_base + n - 5, ".mcap") == 0;
    char *path = usi_alloc(&w->allocator, size, 1);
    if (!path) return NULL;
    snprintf(path, size, "%.*s-%d%s", (int)(has_end ? n - 5 : n), w->record_base, (int)segment,
             has_end ? ".mcap" : "");
    // Its size is known by its length alone afterwards.
    char *fit = copy_text(&w->allocator, path);
    usi_release(&w->allocator, path, size, 1);
    return fit;
}

us_status usi_world_record_next(us_world *w, us_error *err) {
    if (!w->recorder) return US_OK;
    char *base = copy_text(&w->allocator, w->record_base), *path = NULL;
    int32_t segment = w->record_segment;
    do {
        release_text(&w->allocator, path);
        path = base ? segment_path(w, ++segment) : NULL;
    } while (path && !w->may_overwrite && access(path, F_OK) == 0 && segment < 1000000);
    usi_world_record_end(w, NULL);
    us_recorder *recorder = NULL;
    us_status status = path ? open_file(w, path, &recorder, err) : fail_memory(err);
    if (status) {
        release_text(&w->allocator, base);
        release_text(&w->allocator, path);
        return status;
    }
    w->recorder = recorder;
    w->record_path = path;
    w->record_base = base;
    w->record_segment = segment;
    status = begin_taps(w, recorder, err);
    usi_calls_record(w, !status);
    if (status) usi_world_record_end(w, NULL);
    return status;
}

void usi_world_record_check(us_world *w) {
    if (!w->recorder || w->is_record_failed) return;
    us_status failed = us_recorder_get_info(w->recorder).failed;
    if (!failed) return;
    w->is_record_failed = true;
    char line[PATH_MAX + 128];
    snprintf(line, sizeof line, "%s can no longer be written: %s; the rest of the run is not recorded",
             w->record_path, us_status_text(failed));
    us_world_log(w, 2, line);
}

us_status us_world_record(us_world *w, const char *path, us_error *err) {
    if (!w)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a world", "us_world_record: an argument is NULL");
    return path ? usi_world_record(w, path, true, err) : usi_world_record_end(w, err);
}

us_world_recording us_world_get_recording(const us_world *w) {
    us_world_recording r = {.path = w->record_path};
    if (w->recorder) r.info = us_recorder_get_info(w->recorder);
    return r;
}
