// Matcher: settings, memory, and the order of things.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "vision/vision__lanes.h"
#include "vision/vision__stereo.h"

// Sums of windows fit into 16 bits: 21 x 21 differences of gradients, up to 126; for paths, with a quarter of
// the brightness, 17 x 17 of up to 189.
enum { MAX_WINDOW = 21, MAX_PATH_WINDOW = 17 };

us_stereo_def us_stereo_def_default(us_stereo_method method, int32_t width, int32_t height) {
    us_stereo_def d = {.width = width, .height = height, .method = method};
    d.cost = method == US_STEREO_BLOCK ? US_STEREO_SAD : US_STEREO_CENSUS_5X5;
    d.n_disparity = 64;
    d.window = 9;
    d.prefilter_cap = 31;
    d.texture = 810;
    d.uniqueness = 15;
    d.p1 = 10;
    d.p2 = 90;
    d.n_path = 8;
    d.left_right = 1;
    d.n_after = 2;
    d.after[0] = (us_filter){.kind = US_FILTER_MEDIAN};
    d.after[1] = (us_filter){.kind = US_FILTER_SPECKLE, .size = 100, .range = 1};
    return d;
}

float us_stereo_invalid(const us_stereo_def *def) { return (float)(def->min_disparity - 1); }

// ---- checks ----

static const us_place here = {.element = "stereo"};

static us_status check_number(const char *name, int32_t x, int32_t low, int32_t high, us_error *err) {
    if (x >= low && x <= high) return US_OK;
    char remedy[96];
    snprintf(remedy, sizeof remedy, "give a number from %d to %d", (int)low, (int)high);
    return us_error_set(err, US_ERR_VALUE, &here, remedy, "%s is %d", name, (int)x);
}

static us_status check_filters(const us_filter *filters, int32_t n, bool is_before, us_error *err) {
    us_status status = check_number(is_before ? "number of filters before" : "number of filters after", n, 0,
                                    US_FILTER_MAX, err);
    for (int32_t i = 0; !status && i < n; i++) {
        const us_filter *f = &filters[i];
        const bool is_picture = f->kind == US_FILTER_BLUR || f->kind == US_FILTER_NORMALIZE;
        const bool is_disparity = f->kind == US_FILTER_SPECKLE || f->kind == US_FILTER_FILL;
        if ((unsigned)f->kind >= US_FILTER_KIND_COUNT || (is_before ? is_disparity : is_picture))
            return us_error_set(
                err, US_ERR_VALUE, &here,
                is_before ? "pictures: median, blur, normalize" : "disparities: median, speckle, fill",
                "filter %d is not one of %s", (int)i + 1, is_before ? "pictures" : "disparities");
        if (f->kind == US_FILTER_NORMALIZE) {
            status = check_number("window of normalize", f->window, 3, 31, err);
            if (!status && f->window % 2 == 0)
                return us_error_set(err, US_ERR_VALUE, &here, "give an odd number",
                                    "window of normalize is %d", (int)f->window);
        }
        if (f->kind == US_FILTER_SPECKLE && !(f->size >= 0 && f->range >= 0 && isfinite(f->range)))
            return us_error_set(err, US_ERR_VALUE, &here, "give a size in pixels, and a range of 0 or more",
                                "speckle of %d pixels and range %g", (int)f->size, f->range);
    }
    return status;
}

static us_status check_penalties(const us_stereo_def *d, us_error *err) {
    // In a byte stand the largest cost and p2; of windows they are halved together until they fit.
    const int32_t most = d->cost == US_STEREO_SAD ? 20000 : 127;
    us_status status = check_number("p1", d->p1, 1, most, err);
    if (!status) status = check_number("p2", d->p2, d->p1, most, err);
    if (!status && d->n_path != 4 && d->n_path != 8)
        return us_error_set(err, US_ERR_VALUE, &here, "give 4 or 8", "n_path is %d", (int)d->n_path);
    return status;
}

static us_status check(const us_stereo_def *d, us_error *err) {
    us_status status = check_number("width", d->width, 1, 65535, err);
    if (!status) status = check_number("height", d->height, 1, 65535, err);
    if ((unsigned)d->method >= US_STEREO_METHOD_COUNT || (unsigned)d->cost >= US_STEREO_COST_COUNT)
        return us_error_set(err, US_ERR_VALUE, &here, "give one of us_stereo_method and of us_stereo_cost",
                            "method %d with cost %d is unknown", (int)d->method, (int)d->cost);
    if (!status && d->method == US_STEREO_BLOCK && d->cost != US_STEREO_SAD)
        return us_error_set(err, US_ERR_VALUE, &here, "give US_STEREO_SAD, or US_STEREO_SEMI_GLOBAL",
                            "blocks are not compared by census");
    if (!status) status = check_number("n_disparity", d->n_disparity, 16, US_STEREO_MAX_DISPARITY, err);
    if (!status && d->n_disparity % 16 != 0)
        return us_error_set(err, US_ERR_VALUE, &here, "give a multiple of 16", "n_disparity is %d",
                            (int)d->n_disparity);
    if (!status) status = check_number("min_disparity", d->min_disparity, -512, 512, err);
    const int32_t first = d->min_disparity + d->n_disparity - 1,
                  last = d->min_disparity < 0 ? -d->min_disparity : 0;
    if (!status && (first > 0 ? first : 0) + last >= d->width)
        return us_error_set(err, US_ERR_VALUE, &here, "try fewer disparities, or larger pictures",
                            "%d disparities from %d leave nothing of a picture of %d pixels",
                            (int)d->n_disparity, (int)d->min_disparity, (int)d->width);
    if (!status)
        status = check_number("window", d->window, 1,
                              d->method == US_STEREO_BLOCK ? MAX_WINDOW : MAX_PATH_WINDOW, err);
    if (!status && d->window % 2 == 0)
        return us_error_set(err, US_ERR_VALUE, &here, "give an odd number", "window is %d", (int)d->window);
    if (!status) status = check_number("prefilter_cap", d->prefilter_cap, 1, 63, err);
    if (!status) status = check_number("texture", d->texture, 0, INT32_MAX, err);
    if (!status) status = check_number("uniqueness", d->uniqueness, 0, 99, err);
    if (!status) status = check_number("left_right", d->left_right, INT32_MIN, US_STEREO_MAX_DISPARITY, err);
    if (!status && d->method == US_STEREO_SEMI_GLOBAL) status = check_penalties(d, err);
    if (!status) status = check_filters(d->before, d->n_before, true, err);
    if (!status) status = check_filters(d->after, d->n_after, false, err);
    return status;
}

// ---- plan and memory ----

static usi_stereo_plan plan_of(const us_stereo_def *d) {
    usi_stereo_plan p = {.p1 = d->p1, .p2 = d->p2};
    const int32_t first = d->min_disparity + d->n_disparity - 1;
    p.x0 = first > 0 ? first : 0;
    p.x1 = d->width + (d->min_disparity < 0 ? d->min_disparity : 0);
    p.n_column = p.x1 - p.x0;
    p.n_vector = (d->n_disparity + 31) / 32;
    p.n_lane = 32 * p.n_vector;
    p.row = ((size_t)d->width + 2 * USI_MARGIN + 31) / 32 * 32;
    p.has_window = d->cost == US_STEREO_SAD;
    p.has_volume = d->method == US_STEREO_SEMI_GLOBAL;
    p.n_plane = p.has_window ? 1 + p.has_volume : d->cost == US_STEREO_CENSUS_5X5 ? 3 : 8;
    const int32_t largest = (2 * d->prefilter_cap + (p.has_volume ? 63 : 0)) * d->window * d->window;
    while (p.has_window && ((largest >> p.shift) + (d->p2 >> p.shift) > 254 || d->p2 >> p.shift > 127))
        p.shift++;
    p.p2 = d->p2 >> p.shift ? d->p2 >> p.shift : 1;
    p.p1 = usi_clamp(d->p1 >> p.shift, 1, p.p2);
    return p;
}

// Gives every array its place from `base` on; returns how many bytes that are. With base NULL it only counts.
static size_t lay_out(us_stereo *s, char *base, int32_t n_thread) {
    const us_stereo_def *d = &s->def;
    const usi_stereo_plan *p = &s->plan;
    const size_t pixels = (size_t)d->width * d->height, plane = p->row * d->height;
    // As much as the widest range of columns and the longest code take, so that settings may change.
    const size_t volume = pixels * p->n_lane, paths = p->has_volume ? 1 : 0;
    const size_t windows = (size_t)n_thread * (d->width + MAX_WINDOW);
    size_t size = 0;
#define TAKE(array, count)                                                 \
    do {                                                                   \
        const size_t offset = usi_carve(&size, (count), sizeof *s->array); \
        s->array = base ? (void *)(base + offset) : NULL;                  \
    } while (0)
    for (int i = 0; i < 2; i++) {
        TAKE(grey[i], plane);
        TAKE(spare[i], plane);
        TAKE(code[i], plane * USI_MAX_PLANE);
    }
    TAKE(cost, d->is_plain || paths ? volume : 0);
    TAKE(sum, d->is_plain || paths ? volume : 0);
    s->n_slot = n_thread + 1;
    s->path_slot = USI_GUARD + (size_t)(d->width + 2) * 3 * (p->n_lane + USI_GUARD);
    TAKE(path, paths * (s->n_slot + 1 + 2 * (size_t)n_thread) * s->path_slot + 64);
    TAKE(along, paths * n_thread * USI_BAND * p->n_lane);
    TAKE(progress, paths * (d->height / USI_BAND + 1) * USI_PROGRESS_EACH);
    TAKE(column, windows * p->n_lane);
    TAKE(texture, windows);
    TAKE(right_disparity, pixels);
    TAKE(right_cost, (size_t)n_thread * USI_BAND * d->width);
    TAKE(result, pixels);
    TAKE(other, pixels);
    TAKE(label, pixels);
    TAKE(count, pixels);
    TAKE(plain, d->is_plain ? 2 * volume : 0);
#undef TAKE
    return size;
}

us_status us_stereo_create(const us_stereo_def *def, int32_t n_thread, const us_allocator *allocator,
                           us_stereo **out_stereo, us_error *err) {
    if (!def || !out_stereo || n_thread < 1) return US_ERR_ARG;
    us_status status = check(def, err);
    if (status) return status;
    const us_allocator a = allocator ? *allocator : us_allocator_default();
    us_stereo *s = usi_alloc(&a, sizeof *s, _Alignof(us_stereo));
    if (!s)
        return us_error_set(err, US_ERR_MEMORY, &here, "make pictures or disparities smaller",
                            "there is no memory");
    *s = (us_stereo){.allocator = a, .def = *def, .plan = plan_of(def)};
    s->size = lay_out(s, NULL, n_thread);
    s->block = usi_alloc(&a, s->size, USI_ALIGN);
    status = s->block ? US_OK : US_ERR_MEMORY;
    if (!status && n_thread > 1) status = usi_pool_create(n_thread, &a, &s->pool);
    if (status) {
        const size_t size = s->size;
        us_stereo_destroy(s);
        return us_error_set(err, status, &here, "make pictures or disparities smaller, or take fewer threads",
                            "a matcher of %zu bytes and %d threads cannot be made", size, (int)n_thread);
    }
    memset(s->block, 0, s->size);
    lay_out(s, s->block, n_thread);
    *out_stereo = s;
    return US_OK;
}

void us_stereo_destroy(us_stereo *s) {
    if (!s) return;
    const us_allocator a = s->allocator;
    usi_pool_destroy(s->pool);
    if (s->block) usi_release(&a, s->block, s->size, USI_ALIGN);
    usi_release(&a, s, sizeof *s, _Alignof(us_stereo));
}

us_status us_stereo_set(us_stereo *s, const us_stereo_def *def, us_error *err) {
    if (!s || !def) return US_ERR_ARG;
    const us_status status = check(def, err);
    if (status) return status;
    if (def->width != s->def.width || def->height != s->def.height)
        return us_error_set(err, US_ERR_ARG, &here, "make another matcher",
                            "the size of the picture is fixed");
    us_stereo next = *s;
    next.def = *def;
    next.plan = plan_of(def);
    const size_t size = lay_out(&next, NULL, usi_pool_n_thread(s->pool));
    if (size > s->size)
        return us_error_set(err, US_ERR_LIMIT, &here,
                            "make the matcher with the largest settings that it will have",
                            "these settings need %zu bytes, and it was made with %zu", size, s->size);
    lay_out(&next, s->block, usi_pool_n_thread(s->pool));
    *s = next;
    return US_OK;
}

us_stereo_def us_stereo_get_def(const us_stereo *s) { return s->def; }

// ---- match ----

void usi_fill_margins(uint8_t *row, int32_t width) {
    memset(row, row[USI_MARGIN], USI_MARGIN);
    memset(row + USI_MARGIN + width, row[USI_MARGIN + width - 1], USI_MARGIN);
}

void usi_each_strip(us_stereo *s, usi_part part) {
    usi_pool_run(s->pool, (s->def.height + USI_STRIP - 1) / USI_STRIP, 1, part, s);
}

static void take_strip(void *context, int32_t strip, int32_t thread) {
    us_stereo *s = context;
    (void)thread;
    for (int side = 0; side < 2; side++) {
        const us_image *from = s->picture[side];
        for (int32_t y = strip * USI_STRIP; y < usi_strip_end(s, strip); y++) {
            uint8_t *row = s->grey[side] + (size_t)y * s->plan.row;
            const us_image one = {from->format, from->width, 1, from->stride,
                                  (char *)from->pixels + (size_t)y * from->stride};
            us_image mono = {US_PIXEL_MONO8, from->width, 1, s->plan.row, row + USI_MARGIN};
            us_image_to_mono8(&one, &mono);
            usi_fill_margins(row, from->width);
        }
    }
}

static void clear_strip(void *context, int32_t strip, int32_t thread) {
    us_stereo *s = context;
    (void)thread;
    const float invalid = us_stereo_invalid(&s->def);
    const int32_t end = usi_strip_end(s, strip) * s->def.width;
    for (int32_t i = strip * USI_STRIP * s->def.width; i < end; i++)
        s->result[i] = invalid;
}

static void block_strip(void *context, int32_t strip, int32_t thread) {
    usi_window_strip(context, strip, thread);
}

us_status us_stereo_match(us_stereo *s, const us_image *left, const us_image *right, float *out_disparity) {
    if (!s || !left || !right || !out_disparity) return US_ERR_ARG;
    s->picture[0] = left;
    s->picture[1] = right;
    for (int side = 0; side < 2; side++) {
        const us_image *p = s->picture[side];
        if (p->width != s->def.width || p->height != s->def.height || us_pixel_size(p->format) == 0)
            return US_ERR_ARG;
    }
    usi_each_strip(s, take_strip);
    for (int32_t i = 0; i < s->def.n_before; i++)
        usi_filter_picture(s, &s->def.before[i]);
    usi_each_strip(s, clear_strip);
    if (s->def.is_plain) {
        usi_stereo_plain(s);
    } else {
        usi_make_codes(s);
        if (s->plan.has_volume) {
            usi_semi_global(s);
        } else {
            usi_each_strip(s, block_strip);
        }
    }
    for (int32_t i = 0; i < s->def.n_after; i++)
        usi_filter_disparity(s, &s->def.after[i]);
    memcpy(out_disparity, s->result, (size_t)s->def.width * s->def.height * sizeof out_disparity[0]);
    return US_OK;
}
