// A ray into ground with soil on it, whose columns have risen and sunk.
//
// The surface is the ground as it was written, and over it what the columns between which a place lies have
// changed. So it is nowhere higher than the written ground lifted by as much as soil has risen anywhere, and
// a ray into that is as fast as one into any height field: before it meets the lifted ground there is nothing
// to be met.
//
//     ray  - - - - -.
//                     ` - .             lifted ground: from here on
//     ___________________   ` -.___     column by column
//        written ground     \__/ `-.    rut: met where the ray is below the surface
//
// From there it is followed from column to column. Between columns that have not changed the surface is the
// written one, whose hit is known. Between others it is looked at, at a quarter of the columns' distance, and
// where the ray comes under it the place is found by false position (Illinois). A ray that leaves the lifted
// ground behind, over a crest, is cast into it again.
#include <math.h>

#include "contact/soil.h"
#include "geom/geom.h"
#include "sim/sim__query.h"

// m: to which the place on changed ground is found.
static const double PRECISION = 1e-9;

// A height field with a patch, and a ray in its frame.
typedef struct soil_ray {
    const usi_geom *g;
    const usi_deformable *patch;
    us_vec3 o, d;
    double range, end;   // m: of the ray, and where it leaves the rectangle or is below all of it
    double lift;         // m: as much as soil has risen anywhere
    us_ray_hit written;  // the hit of the ground as it was written
    bool has_written;
} soil_ray;

static us_vec3 point_at(const soil_ray *x, double t) { return us_vec3_add(x->o, us_vec3_scale(t, x->d)); }

static double height_over(const soil_ray *x, double t) {
    const us_vec3 p = point_at(x, t);
    return p.z - usi_surface_at(x->g, x->patch, p.x, p.y);
}

// The hit with the written ground, lifted, from t on; its range counts from the ray's origin.
static us_ray_hit cast_lifted(const soil_ray *x, double t, double lift) {
    us_vec3 from = point_at(x, t);
    from.z -= lift;
    us_ray_hit hit = us_geom_ray(&x->g->geom, us_pose_identity(), from, x->d, x->range - t);
    hit.range += t;
    return hit;
}

// Where the ray is over the border of the rectangle at last, or below all that the surface may be.
static double end_of(const soil_ray *x) {
    const us_height_field *f = x->g->geom.field;
    const double half_x = 0.5 * (f->n_x - 1) * f->dx, half_y = 0.5 * (f->n_y - 1) * f->dy,
                 lowest = f->low + USI_DEFORMABLE_UNIT * fmin(0, x->patch->lowest) - 1;
    double end = x->range;
    if (x->d.x != 0) end = fmin(end, (copysign(half_x, x->d.x) - x->o.x) / x->d.x);
    if (x->d.y != 0) end = fmin(end, (copysign(half_y, x->d.y) - x->o.y) / x->d.y);
    if (x->d.z < 0) end = fmin(end, (lowest - x->o.z) / x->d.z);
    return end;
}

// ---------------------------------------------------------------- columns

// The way along one axis of the columns' grid.
typedef struct column_axis {
    double o, rate;    // columns: place at the ray's origin, and for each metre of it
    int32_t at, last;  // the column before the ray, and the last one that is followed by another
    int32_t step;      // of the column, as the ray goes on
} column_axis;

static column_axis axis_of(double o, double d, double spacing, int32_t n, double t) {
    column_axis a = {o / spacing + 0.5 * (n - 1), d / spacing, 0, n - 2, d > 0 ? 1 : -1};
    const double place = floor(a.o + t * a.rate);
    a.at = place < 0 ? 0 : place > a.last ? a.last : (int32_t)place;
    return a;
}

// When the ray goes over to the next column. The last ones reach beyond the grid.
static double leave_at(const column_axis *a) {
    const bool is_last = a->step > 0 ? a->at == a->last : a->at == 0;
    return a->rate == 0 || is_last ? INFINITY : (a->at + (a->step > 0) - a->o) / a->rate;
}

// Whether none of the four columns around a place has changed.
static bool is_as_written(const usi_deformable *patch, int32_t i, int32_t j) {
    for (int k = 0; k < 4; k++) {
        const uint32_t at = usi_deformable_column(patch, i + (k & 1), j + (k >> 1));
        if (at >= USI_DEFORMABLE_COLUMNS && usi_deformable_change(patch, at) != 0) return false;
    }
    return true;
}

// Between a place above the surface and one that is not.
static double find_crossing(const soil_ray *x, double above, double high, double below, double low) {
    int side = 0;
    for (int i = 0; i < 100 && below - above > PRECISION; i++) {
        double t = above + (below - above) * (high / (high - low));
        if (!(t > above && t < below)) t = 0.5 * (above + below);
        const double h = height_over(x, t);
        if (fabs(h) < 0.1 * PRECISION) return t;
        if (h > 0) {
            above = t;
            high = h;
            if (side > 0) low *= 0.5;
            side = 1;
        } else {
            below = t;
            low = h;
            if (side < 0) high *= 0.5;
            side = -1;
        }
    }
    return below;
}

static us_ray_hit hit_at(const soil_ray *x, double t) {
    const us_vec3 p = point_at(x, t);
    const double apart = 0.25 * x->patch->spacing;
    const double gx = usi_surface_at(x->g, x->patch, p.x + 0.5 * apart, p.y) -
                      usi_surface_at(x->g, x->patch, p.x - 0.5 * apart, p.y),
                 gy = usi_surface_at(x->g, x->patch, p.x, p.y + 0.5 * apart) -
                      usi_surface_at(x->g, x->patch, p.x, p.y - 0.5 * apart);
    const us_vec3 normal = us_vec3_make(-gx / apart, -gy / apart, 1);
    return (us_ray_hit){t, us_vec3_scale(1 / us_vec3_norm(normal), normal)};
}

// The first place between two times at which the ray is not above the surface.
static us_ray_hit look(const soil_ray *x, double from, double to) {
    const double apart = 0.25 * x->patch->spacing, across = hypot(x->d.x, x->d.y);
    // A steep ray is over one place, where the surface is the same all along: its ends say all.
    const int n = 1 + (int)fmin(across * (to - from) / apart, 64);
    double before = from, high = height_over(x, from);
    if (high <= 0) return hit_at(x, from);
    for (int k = 1; k <= n; k++) {
        const double t = k < n ? from + (to - from) * k / n : to, h = height_over(x, t);
        if (h <= 0) return hit_at(x, find_crossing(x, before, high, t, h));
        before = t;
        high = h;
    }
    return (us_ray_hit){INFINITY, {0, 0, 0}};
}

// The hit with the ground as it was written, if it is from t until `leave`, between columns that have not
// changed: there a ray that is not above the surface at t, since it came through a rut, has it at once.
static us_ray_hit meet_written(soil_ray *x, double t, double leave) {
    const us_ray_hit miss = {INFINITY, {0, 0, 0}};
    if (!x->has_written || x->written.range < t) {
        if (height_over(x, t) <= 0) return hit_at(x, t);
        x->written = cast_lifted(x, t, 0);
        x->has_written = true;
    }
    return x->written.range <= leave ? x->written : miss;
}

// Whether the columns of a tile, and the next ones beside them, are as they were.
static bool is_untouched(const usi_deformable *patch, int32_t u, int32_t v) {
    const int32_t n_u = patch->n_tile_x, n_v = (patch->n_y + USI_DEFORMABLE_TILE - 1) / USI_DEFORMABLE_TILE;
    for (int k = 0; k < 4; k++) {
        const int32_t i = u + (k & 1), j = v + (k >> 1);
        if (i < n_u && j < n_v && patch->slot[(size_t)j * (size_t)n_u + (size_t)i] != 0) return false;
    }
    return true;
}

// From column to column, so many of them, or over a whole tile that nothing has touched; *t is how far it
// came. No hit where t is at the end.
static us_ray_hit walk(soil_ray *x, double *t, int n) {
    const us_ray_hit miss = {INFINITY, {0, 0, 0}};
    column_axis a = axis_of(x->o.x, x->d.x, x->patch->spacing, x->patch->n_x, *t),
                b = axis_of(x->o.y, x->d.y, x->patch->spacing, x->patch->n_y, *t);
    const int32_t u = a.at / USI_DEFORMABLE_TILE, v = b.at / USI_DEFORMABLE_TILE;
    if (is_untouched(x->patch, u, v)) {
        column_axis over[2] = {a, b};
        const int32_t tile[2] = {u, v};
        double leave = x->end;
        for (int k = 0; k < 2; k++) {
            const int32_t until =
                tile[k] * USI_DEFORMABLE_TILE + (over[k].step > 0 ? USI_DEFORMABLE_TILE - 1 : 0);
            over[k].at = until < over[k].last ? until : over[k].last;
            leave = fmin(leave, leave_at(&over[k]));
        }
        // A little further: into the next tile, whatever was rounded.
        leave = fmin(x->end, fmax(*t, leave) + 1e-9 * x->patch->spacing);
        const us_ray_hit hit = meet_written(x, *t, leave);
        *t = leave;
        return hit;
    }
    for (int k = 0; k < n && *t < x->end; k++) {
        const double to_x = leave_at(&a), to_y = leave_at(&b),
                     leave = fmax(*t, fmin(x->end, fmin(to_x, to_y)));
        if (is_as_written(x->patch, a.at, b.at)) {
            const us_ray_hit hit = meet_written(x, *t, leave);
            if (isfinite(hit.range)) return hit;
        } else {
            const us_ray_hit hit = look(x, *t, leave);
            if (isfinite(hit.range)) return hit;
        }
        *t = leave;
        if (to_x <= to_y)
            a.at += a.step;
        else
            b.at += b.step;
    }
    return miss;
}

double usi_deformable_lift(const usi_deformable *patch) {
    return patch->highest > 0 ? USI_DEFORMABLE_UNIT * patch->highest + PRECISION : 0;
}

us_ray_hit usi_deformable_ray_from(const usi_geom *g, const usi_deformable *patch, us_vec3 o, us_vec3 d,
                                   double range, us_ray_hit first) {
    enum { SOME = 48 };  // columns, after which the lifted ground is asked again
    const us_ray_hit miss = {INFINITY, {0, 0, 0}};
    if (patch->n_tile == 0 || !isfinite(first.range)) return first;
    soil_ray x = {.g = g, .patch = patch, .o = o, .d = d, .range = range, .lift = usi_deformable_lift(patch)};
    if (x.lift == 0) {
        x.written = first;
        x.has_written = true;
    }
    // A ray that begins inside, or that meets the wall around the rectangle.
    if ((first.range == 0 || !(first.normal.z > 0)) && height_over(&x, first.range) <= 0) return first;
    x.end = end_of(&x);
    for (double t = first.range; isfinite(x.end) && isfinite(t);) {
        const us_ray_hit hit = walk(&x, &t, SOME);
        if (isfinite(hit.range) || t >= x.end) return hit;
        t = cast_lifted(&x, t, x.lift).range;
    }
    return miss;
}

us_ray_hit usi_deformable_ray(const usi_geom *g, const usi_deformable *patch, us_vec3 o, us_vec3 d,
                              double range) {
    const double lift = usi_deformable_lift(patch);
    const us_ray_hit first =
        us_geom_ray(&g->geom, us_pose_identity(), us_vec3_make(o.x, o.y, o.z - lift), d, range);
    return usi_deformable_ray_from(g, patch, o, d, range, first);
}
