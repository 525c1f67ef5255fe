// What a lidar sees, by a depth buffer.
//
// Around the sensor stand up to six windows, one for each half axis, and each beam looks through the one that
// it is nearest to. A window is as wide as the beams need. Of each pixel the picture says which triangle it
// sees at its middle; how deep that is, along the window's axis, follows from the triangle's plane, g . p =
// 1:
//
//     1 / d = g . (f + x r + y u)          x, y tangents of the pixel's middle, to the right and up
//
// It is kept as a depth buffer of N bits keeps it (near n, far m, M = 2^N - 1):
//
//     z = floor(M (a + b / d)),    a = m / (m - n),    b = m n / (n - m)
//
// Rounding down makes depths too short by half a unit in the mean, so that half a unit is added on the way
// back. Two neighbouring numbers are d^2 / (M |b|) apart. 1 / d is linear in x and y over a plane: beams
// between pixels are exact when it is mixed of the four around them, by shares. Over an edge nothing is
// mixed: there the nearest pixel counts. The range is the depth times the stretch sqrt(x^2 + y^2 + 1).
#include "understudy/depth_scanner.h"

#include <string.h>

#include "base/memory.h"
#include "contact/soil.h"
#include "model/robots.h"
#include "sense/lidar_return.h"
#include "sim/depth_mesh.h"
#include "sim/sim__lidar.h"
#include "vision/offscreen.h"

enum { FACES = 6, MARGIN = 4, MIN_SIDE = 64, MAX_SIDE = 16384 };

struct us_depth_scanner {
    us_allocator allocator;
    const us_model *model;
    const usi_lidar *lidar;
    us_depth_scanner_def def;
    usi_depth_mesh mesh;
    usi_offscreen *screen;
    size_t bytes;
    // In one block.
    us_vec3 *point, *plane;  // of all shapes in the sensor's frame; g of each triangle
    float (*upload)[3];
    int32_t *owner;  // of each triangle, its shape
    uint32_t *pixel;
    us_vec3 *direction;    // of all beams of a turn
    usi_lidar_echo *echo;  // of the same, `n_ray` of each
    float (*frame)[4];
    char *block;
};

us_depth_scanner_def us_depth_scanner_def_default(void) {
    return (us_depth_scanner_def){.bits = 24, .side = 2048, .facet = 1e-4};
}

// ---------------------------------------------------------------- numbers of N bits

typedef struct depth_code {
    double most, a, b;
} depth_code;

static depth_code code_of(int32_t bits, double near, double far) {
    return (depth_code){ldexp(1, bits) - 1, far / (far - near), far * near / (near - far)};
}

// 1 / d, as the buffer gives it back.
static double kept(const depth_code *c, double inverse_depth) {
    const double z = floor(c->most * (c->a + c->b * inverse_depth));
    return (fmin(c->most, fmax(0, z)) + 0.5 - c->a * c->most) / (c->b * c->most);
}

double us_depth_resolution(int32_t bits, double near, double far, double depth) {
    if (bits < 1 || bits > 52 || !(near > 0 && near < far) || !(depth > 0) || !isfinite(far)) return NAN;
    const depth_code c = code_of(bits, near, far);
    return depth * depth / (c.most * -c.b);
}

// ---------------------------------------------------------------- create

static us_status check(const us_model *model, us_lidar lidar, us_depth_scanner_def *d, us_error *err) {
    if (!model || lidar.i < 0 || lidar.i >= model->n_lidar)
        return us_error_set(err, US_ERR_ARG, NULL, "take it from us_model_find_lidar",
                            "there is no such lidar");
    const us_lidar_def *l = model->lidar[lidar.i].def;
    if (d->near == 0) d->near = l->min_range > 0 ? 0.5 * l->min_range : 0.05;
    if (d->far == 0) d->far = l->max_range;
    if (d->bits < 8 || d->bits > 32)
        return us_error_set(err, US_ERR_ARG, NULL, "take 8 to 32; usual are 16, 24 and 32",
                            "a depth of %d bits", (int)d->bits);
    if (!(d->near > 0 && d->near < d->far && isfinite(d->far)))
        return us_error_set(err, US_ERR_ARG, NULL,
                            "give two distances, the first above 0 and below the second",
                            "depths from %g to %g m", d->near, d->far);
    if (d->side < MIN_SIDE || d->side > MAX_SIDE)
        return us_error_set(err, US_ERR_ARG, NULL, "take 64 to 16384; the default is 2048",
                            "a picture of %d pixels a side", (int)d->side);
    if (!(d->facet > 0 && d->facet <= 1))
        return us_error_set(err, US_ERR_ARG, NULL, "take up to 1 m; the default is 1e-4",
                            "triangles that stand off by %g m", d->facet);
    return US_OK;
}

static us_status lay_out(us_depth_scanner *x, us_error *err) {
    const size_t n_point = (size_t)x->mesh.n_point + 1, n_triangle = (size_t)x->mesh.n_triangle + 1,
                 n_beam = (size_t)(usi_lidar_most(x->lidar) * x->lidar->def->n_beam),
                 n_pixel = (size_t)x->def.side * (size_t)x->def.side;
    size_t at[8], size = 0;
    at[0] = usi_carve(&size, n_point, sizeof *x->point);
    at[1] = usi_carve(&size, n_triangle, sizeof *x->plane);
    at[2] = usi_carve(&size, n_point, sizeof *x->upload);
    at[3] = usi_carve(&size, n_triangle, sizeof *x->owner);
    at[4] = usi_carve(&size, n_pixel, sizeof *x->pixel);
    at[5] = usi_carve(&size, n_beam, sizeof *x->direction);
    at[6] = usi_carve(&size, n_beam * (size_t)x->lidar->n_ray, sizeof *x->echo);
    at[7] = usi_carve(&size, (size_t)usi_lidar_n_point(x->lidar), sizeof *x->frame);
    x->block = usi_alloc(&x->allocator, size, USI_ALIGN);
    if (!x->block) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for pictures of depths");
    x->bytes = size;
    x->point = (us_vec3 *)(void *)(x->block + at[0]);
    x->plane = (us_vec3 *)(void *)(x->block + at[1]);
    x->upload = (float(*)[3])(void *)(x->block + at[2]);
    x->owner = (int32_t *)(void *)(x->block + at[3]);
    x->pixel = (uint32_t *)(void *)(x->block + at[4]);
    x->direction = (us_vec3 *)(void *)(x->block + at[5]);
    x->echo = (usi_lidar_echo *)(void *)(x->block + at[6]);
    x->frame = (float(*)[4])(void *)(x->block + at[7]);
    for (int32_t i = 0; i < x->mesh.n_geom; i++) {
        for (int32_t t = x->mesh.first_triangle[i]; t < x->mesh.first_triangle[i + 1]; t++)
            x->owner[t] = i;
    }
    return US_OK;
}

us_status us_depth_scanner_create(const us_model *model, us_lidar lidar, const us_depth_scanner_def *def,
                                  const us_allocator *allocator, us_depth_scanner **out_scanner,
                                  us_error *err) {
    if (!out_scanner) return us_error_set(err, US_ERR_ARG, NULL, NULL, "no place for the result");
    us_depth_scanner_def d = def ? *def : us_depth_scanner_def_default();
    us_status status = check(model, lidar, &d, err);
    if (status) return status;
    const us_allocator a = allocator ? *allocator : us_allocator_default();
    us_depth_scanner *x = usi_alloc(&a, sizeof *x, _Alignof(us_depth_scanner));
    if (!x) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for pictures of depths");
    *x = (us_depth_scanner){
        .allocator = a, .model = model, .lidar = &model->lidar[lidar.i], .mesh = {.allocator = a}, .def = d};
    status = usi_offscreen_create(d.side, &a, &x->screen, err);
    if (!status) status = usi_depth_mesh_init(&x->mesh, model, d.facet, &a, err);
    if (!status) status = lay_out(x, err);
    if (status) {
        us_depth_scanner_destroy(x);
        return status;
    }
    *out_scanner = x;
    return US_OK;
}

void us_depth_scanner_destroy(us_depth_scanner *x) {
    if (!x) return;
    const us_allocator a = x->allocator;
    usi_offscreen_destroy(x->screen);
    usi_depth_mesh_fini(&x->mesh);
    usi_release(&a, x->block, x->bytes, USI_ALIGN);
    usi_release(&a, x, sizeof *x, _Alignof(us_depth_scanner));
}

const char *us_depth_scanner_renderer(const us_depth_scanner *x) {
    return x ? usi_offscreen_renderer(x->screen) : "";
}

// ---------------------------------------------------------------- windows

// The half axis that a direction is nearest to, +x -x +y -y +z -z, and its own axes.
static int face_of(us_vec3 d) {
    const double x = fabs(d.x), y = fabs(d.y), z = fabs(d.z);
    if (x >= y && x >= z) return d.x < 0 ? 1 : 0;
    return y >= z ? (d.y < 0 ? 3 : 2) : (d.z < 0 ? 5 : 4);
}

static usi_view_window window_of(int face) {
    const double s = face % 2 ? -1 : 1;
    static const us_vec3 x = {1, 0, 0}, y = {0, 1, 0}, z = {0, 0, 1};
    usi_view_window w = {.up = z};
    w.forward = us_vec3_scale(s, face < 2 ? x : face < 4 ? y : z);
    w.right = us_vec3_scale(face < 2 || face >= 4 ? -s : s, face < 2 || face >= 4 ? y : x);
    if (face >= 4) w.up = us_vec3_scale(-1, x);
    return w;
}

typedef struct tangents {
    double x, y;
} tangents;

static tangents tangents_of(const usi_view_window *w, us_vec3 d) {
    const double ahead = us_vec3_dot(d, w->forward);
    return (tangents){us_vec3_dot(d, w->right) / ahead, us_vec3_dot(d, w->up) / ahead};
}

// As wide as its beams need, with some pixels beyond them; pixels are square. False: no beam looks through
// it.
static bool fit(const us_depth_scanner *x, int32_t n_beam, int face, usi_view_window *w) {
    *w = window_of(face);
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int32_t i = 0; i < n_beam; i++) {
        if (face_of(x->direction[i]) != face) continue;
        const tangents t = tangents_of(w, x->direction[i]);
        low[0] = fmin(low[0], t.x);
        high[0] = fmax(high[0], t.x);
        low[1] = fmin(low[1], t.y);
        high[1] = fmax(high[1], t.y);
    }
    if (!(low[0] <= high[0])) return false;
    const double wide = high[0] - low[0], tall = high[1] - low[1], most = fmax(wide, tall),
                 size = most > 0 ? most / (x->def.side - 2 * MARGIN - 1) : 1e-3;
    w->width = (int32_t)fmin(x->def.side, ceil(wide / size) + 2 * MARGIN + 1);
    w->height = (int32_t)fmin(x->def.side, ceil(tall / size) + 2 * MARGIN + 1);
    w->left_limit = low[0] - MARGIN * size;
    w->right_limit = w->left_limit + w->width * size;
    w->low_limit = low[1] - MARGIN * size;
    w->high_limit = w->low_limit + w->height * size;
    w->near = x->def.near;
    w->far = x->def.far;
    return true;
}

// ---------------------------------------------------------------- depths

typedef struct depth_picture {
    const us_depth_scanner *x;
    usi_view_window w;
    depth_code code;
    double size;  // of a pixel
} depth_picture;

// The triangle that a pixel sees; -1: none.
static int32_t seen_by(const depth_picture *p, int32_t i, int32_t j) {
    if (i < 0 || j < 0 || i >= p->w.width || j >= p->w.height) return -1;
    return (int32_t)p->x->pixel[(size_t)j * (size_t)p->w.width + (size_t)i] - 1;
}

// 1 / d of a pixel as the buffer keeps it; 0: it sees nothing. Beside the edge of a triangle, where rounded
// corners let it be seen, its plane is not followed beyond its own depths.
static double depth_of(const depth_picture *p, int32_t i, int32_t j) {
    const int32_t t = seen_by(p, i, j);
    if (t < 0) return 0;
    const us_vec3 d = us_vec3_add(
        us_vec3_add(p->w.forward, us_vec3_scale(p->w.left_limit + (i + 0.5) * p->size, p->w.right)),
        us_vec3_scale(p->w.low_limit + (j + 0.5) * p->size, p->w.up));
    const uint32_t *corner = p->x->mesh.corner[t];
    double nearest = INFINITY, farthest = 0;
    for (int k = 0; k < 3; k++) {
        const double depth = us_vec3_dot(p->x->point[corner[k]], p->w.forward);
        nearest = fmin(nearest, depth);
        farthest = fmax(farthest, depth);
    }
    double inverse = us_vec3_dot(p->x->plane[t], d);
    if (!isfinite(inverse)) return 0;
    inverse = fmax(inverse, 1 / farthest);
    if (nearest > p->w.near) inverse = fmin(inverse, 1 / nearest);
    return kept(&p->code, fmin(1 / p->w.near, fmax(1 / p->w.far, inverse)));
}

// Between w[1] and w[2], of four in a row: by shares where the step is like one of those beside it, the
// nearer of both over an edge. `slack`: what numbers of N bits leave open.
static double mix(const double w[4], double share, double slack) {
    const double step = w[2] - w[1], before = w[1] > 0 && w[0] > 0 ? fabs(w[1] - w[0]) : 0,
                 after = w[2] > 0 && w[3] > 0 ? fabs(w[3] - w[2]) : 0;
    const bool is_smooth = w[1] > 0 && w[2] > 0 && fabs(step) <= 2 * fmin(before, after) + slack;
    if (is_smooth) return w[1] + share * step;
    return share < 0.5 ? w[1] : w[2];
}

// 1 / d between pixels; 0: nothing is seen there.
static double depth_at(const depth_picture *p, double at_x, double at_y) {
    const int32_t i = (int32_t)floor(at_x), j = (int32_t)floor(at_y);
    const double slack = 3 / (p->code.most * -p->code.b);
    double row[4];
    for (int k = 0; k < 4; k++) {
        double w[4];
        for (int n = 0; n < 4; n++)
            w[n] = depth_of(p, i - 1 + n, j - 1 + k);
        row[k] = mix(w, at_x - i, slack);
    }
    return mix(row, at_y - j, slack);
}

// The pixel around a place whose depth is nearest to the one that was found there.
static int32_t triangle_at(const depth_picture *p, double at_x, double at_y, double depth) {
    int32_t best = -1;
    double off = INFINITY;
    for (int k = 0; k < 4; k++) {
        const int32_t i = (int32_t)floor(at_x) + (k & 1), j = (int32_t)floor(at_y) + (k >> 1);
        const double other = depth_of(p, i, j);
        if (other > 0 && fabs(other - depth) < off) {
            best = seen_by(p, i, j);
            off = fabs(other - depth);
        }
    }
    return best;
}

static usi_lidar_echo echo_of(const depth_picture *p, const us_sim *s, us_pose X_WS, us_vec3 d) {
    const us_depth_scanner *x = p->x;
    const tangents t = tangents_of(&p->w, d);
    const double at_x = (t.x - p->w.left_limit) / p->size - 0.5,
                 at_y = (t.y - p->w.low_limit) / p->size - 0.5, inverse = depth_at(p, at_x, at_y);
    const usi_lidar_echo none = {.range = INFINITY};
    const int32_t triangle = inverse > 0 ? triangle_at(p, at_x, at_y, inverse) : -1;
    if (triangle < 0) return none;
    const usi_geom *g = &x->model->geom[x->owner[triangle]];
    const int32_t robot = x->model->sensor[x->lidar->sensor].robot;
    if (x->lidar->def->hides_own_robot && g->owner >= 0 && g->owner == x->model->robot[robot].network->group)
        return none;
    const double range = sqrt(t.x * t.x + t.y * t.y + 1) / inverse;
    int32_t material = g->material;
    if (g->has_region) {
        const us_pose X_WG = usi_shape_pose(s, x->owner[triangle]);
        const us_vec3 q = us_pose_point(us_pose_inverse(X_WG), us_pose_point(X_WS, us_vec3_scale(range, d)));
        material = usi_ground_material_at(x->model, &s->now.contact, x->owner[triangle], q.x, q.y);
    }
    const usi_lidar_surface *look = &x->lidar->surface[material];
    const us_vec3 plane = x->plane[triangle];
    return (usi_lidar_echo){.range = range,
                            .cosine = fmin(1, fabs(us_vec3_dot(plane, d)) / us_vec3_norm(plane)),
                            .reflectivity = look->reflectivity,
                            .retroreflection = look->retroreflection};
}

// ---------------------------------------------------------------- the frame

static us_status place(us_depth_scanner *x, const us_sim *s, us_pose X_WS, us_error *err) {
    const usi_depth_mesh *m = &x->mesh;
    usi_depth_mesh_place(m, s, X_WS, x->point);
    for (int32_t i = 0; i < m->n_point; i++) {
        x->upload[i][0] = (float)x->point[i].x;
        x->upload[i][1] = (float)x->point[i].y;
        x->upload[i][2] = (float)x->point[i].z;
    }
    for (int32_t t = 0; t < m->n_triangle; t++) {
        const us_vec3 a = x->point[m->corner[t][0]];
        const us_vec3 n = us_vec3_cross(us_vec3_sub(x->point[m->corner[t][1]], a),
                                        us_vec3_sub(x->point[m->corner[t][2]], a));
        x->plane[t] = us_vec3_scale(1 / us_vec3_dot(n, a), n);
    }
    return usi_offscreen_set(x->screen, m->n_point, (const float(*)[3])x->upload, m->n_triangle,
                             (const uint32_t(*)[3])m->corner, err);
}

// Where all beams of a turn look.
static int32_t aim_all(us_depth_scanner *x, int64_t turn) {
    const usi_lidar *l = x->lidar;
    const int64_t n = usi_lidar_columns_of(l, turn);
    int32_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t group = usi_lidar_first(l, turn) + i;
        const double time = usi_lidar_group_time(l, group);
        const usi_lidar_aim aim = usi_lidar_aim_at(l, group, time, time - (double)turn * l->turn);
        for (int32_t j = 0; j < l->def->n_beam; j++)
            x->direction[k++] = usi_lidar_direction(l, &l->beam[j], &aim);
    }
    return k;
}

static us_status look(us_depth_scanner *x, const us_sim *s, us_pose X_WS, int32_t n_beam, us_error *err) {
    us_status status = US_OK;
    const int32_t n_ray = x->lidar->n_ray;
    for (int32_t i = 0; i < n_beam * n_ray; i++)
        x->echo[i] = (usi_lidar_echo){.range = INFINITY};
    for (int face = 0; face < FACES && !status; face++) {
        depth_picture p = {.x = x, .code = code_of(x->def.bits, x->def.near, x->def.far)};
        if (!fit(x, n_beam, face, &p.w)) continue;
        p.size = (p.w.right_limit - p.w.left_limit) / p.w.width;
        status = usi_offscreen_draw(x->screen, &p.w, x->pixel, err);
        for (int32_t i = 0; i < n_beam && !status; i++) {
            if (face_of(x->direction[i]) == face)
                x->echo[(size_t)i * (size_t)n_ray] = echo_of(&p, s, X_WS, x->direction[i]);
        }
    }
    return status;
}

// Points as rays make them: noise, lost returns and places in the table.
static void make_frame(us_depth_scanner *x, const usi_sensor_state *k, int64_t turn) {
    const usi_lidar *l = x->lidar;
    const usi_lidar_wear wear = usi_lidar_wear_of(k);
    for (int64_t i = 0; i < usi_lidar_n_point(l); i++) {
        x->frame[i][0] = INFINITY;
        x->frame[i][1] = x->frame[i][2] = x->frame[i][3] = 0;
    }
    for (int64_t i = 0; i < usi_lidar_columns_of(l, turn); i++) {
        const int64_t group = usi_lidar_first(l, turn) + i;
        const double time = usi_lidar_group_time(l, group);
        const usi_lidar_aim aim = usi_lidar_aim_at(l, group, time, time - (double)turn * l->turn);
        usi_lidar_echo *echo = x->echo + (size_t)i * (size_t)l->def->n_beam * (size_t)l->n_ray;
        if (usi_lidar_is_blind(l, &aim)) {
            for (int32_t j = 0; j < l->def->n_beam * l->n_ray; j++)
                echo[j].range = INFINITY;
        }
        usi_lidar_points(x->model, l, &wear, group, i, &aim, echo, x->frame, NULL);
    }
}

us_status us_depth_scanner_scan(us_depth_scanner *x, const us_sim *sim, us_lidar_frame *out_frame,
                                us_lidar_point *points, int32_t cap, us_error *err) {
    if (!x || !sim || !out_frame || sim->model != x->model)
        return us_error_set(err, US_ERR_ARG, NULL, "give a sim of the scanner's model",
                            "there is no such sim");
    const usi_lidar *l = x->lidar;
    if (points && cap < usi_lidar_n_point(l))
        return us_error_set(err, US_ERR_LIMIT, NULL, "make room for n_return * n_ring * n_column points",
                            "%d points are too few for a frame", (int)cap);
    const double now = (double)sim->now.tick[0] * sim->model->step;
    const int64_t turn = (int64_t)floor(now / l->turn + 1e-9);
    usi_kinematics(sim->dyn, sim->now.q, sim->now.v, NULL);
    const us_pose X_WS = usi_lidar_pose(sim, &sim->model->sensor[l->sensor]);
    *out_frame = (us_lidar_frame){.turn = turn,
                                  .time = now,
                                  .n_ring = l->n_ring,
                                  .n_column = l->n_column,
                                  .n_return = l->n_return,
                                  .X_WS = X_WS};
    us_status status = place(x, sim, X_WS, err);
    if (!status) status = look(x, sim, X_WS, aim_all(x, turn), err);
    if (status) return status;
    make_frame(x, &sim->now.sensor[l->sensor], turn);
    for (int64_t i = 0; points && i < usi_lidar_n_point(l); i++) {
        const int32_t ring = (int32_t)(i % l->n_ring), back = (int32_t)(i / l->n_ring % l->n_return);
        const int64_t column = i / l->n_ring / l->n_return;
        points[((int64_t)back * l->n_ring + ring) * l->n_column + column] =
            usi_lidar_point_of(x->frame[i], usi_lidar_time_in_turn(l, column, ring), ring);
    }
    return US_OK;
}
