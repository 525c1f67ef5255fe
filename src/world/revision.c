// Worlds: spec and model together, counted by those who use them.
#include <string.h>

#include "spec/spec.h"
#include "world/revision.h"

static char *copy_text(const us_allocator *a, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = usi_alloc(a, n, 1);
    if (copy) memcpy(copy, text, n);
    return copy;
}

us_status usi_revision_wrap(us_spec *spec, us_model *model, const us_allocator *allocator, uint32_t number,
                            const char *edits, const char *file, usi_revision **out, us_error *err) {
    usi_revision *w = usi_alloc(allocator, sizeof *w, _Alignof(usi_revision));
    char *copy = w ? copy_text(allocator, edits) : NULL;
    if (!copy) {
        usi_release(allocator, w, sizeof *w, _Alignof(usi_revision));
        us_model_destroy(model);
        us_spec_destroy(spec);
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the world");
    }
    *w = (usi_revision){
        .allocator = *allocator, .number = number, .spec = spec, .model = model, .edits = copy, .file = file};
    atomic_init(&w->n_ref, 1);
    *out = w;
    return US_OK;
}

static bool is_same_warning(const us_error *a, const us_error *b) {
    return a->line == b->line && strcmp(a->file, b->file) == 0 && strcmp(a->element, b->element) == 0 &&
           strcmp(a->message, b->message) == 0;
}

// A copy of a spec brings the warnings of its first compilation along; the second one finds them again.
static void drop_repeated_warnings(us_spec *spec, int32_t n_before) {
    int32_t n = n_before;
    for (int32_t i = n_before; i < spec->n_warning; i++) {
        bool is_known = false;
        for (int32_t k = 0; k < n_before && !is_known; k++)
            is_known = is_same_warning(&spec->warning[k], &spec->warning[i]);
        if (!is_known) spec->warning[n++] = spec->warning[i];
    }
    spec->n_warning = n;
}

us_status usi_revision_create(us_spec *spec, const us_allocator *allocator, uint32_t number,
                              const char *edits, const char *file, usi_revision **out, us_error *err) {
    us_model *model = NULL;
    int32_t n_warning = spec->n_warning;
    us_status status = us_model_compile(spec, allocator, &model, err);
    if (status) {
        us_spec_destroy(spec);
        return status;
    }
    drop_repeated_warnings(spec, n_warning);
    return usi_revision_wrap(spec, model, allocator, number, edits, file, out, err);
}

usi_revision *usi_revision_ref(usi_revision *revision) {
    atomic_fetch_add_explicit(&revision->n_ref, 1, memory_order_relaxed);
    return revision;
}

void usi_revision_unref(usi_revision *revision) {
    if (!revision || atomic_fetch_sub_explicit(&revision->n_ref, 1, memory_order_acq_rel) > 1) return;
    us_allocator a = revision->allocator;
    us_model_destroy(revision->model);
    us_spec_destroy(revision->spec);
    usi_release(&a, revision->edits, strlen(revision->edits) + 1, 1);
    usi_release(&a, revision, sizeof *revision, _Alignof(usi_revision));
}
