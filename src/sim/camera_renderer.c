// Pictures of cameras: a table of rays, what they meet, the light that comes from there, and the chip.
//
//     lens --> rays --> shapes --> light (Sun, shadow, sky) --> radiance --> electrons --> numbers
//     once     a tile of 8 by 8 pixels at a time, by any thread             row by row, by any thread
//
// The light that a rough surface sends to the camera (Lambert) from the Sun, whose irradiance is E, and a sky
// that is equally bright everywhere and sheds S on level ground:
//
//     L = colour / pi * (E max(0, n . s) V + S (1 + n . z) / 2)        V: the share of the Sun that is free
//
// Surfaces of other laws (sense/reflectance.h) send the Sun's light otherwise, and the sky's like this one.
//
// Between tiles nothing is shared but what is read, so that the bytes do not depend on who does which.
#include "understudy/camera.h"

#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "base/random.h"
#include "contact/soil.h"
#include "model/robots.h"
#include "sense/image_sensor.h"
#include "sim/sim__lidar.h"
#include "sim/sim__picture.h"
#include "spec/camera_device.h"

static const double PI = 3.14159265358979323846;
// Of random numbers: beside those of links, sensors and instruments.
static const uint64_t chip_stream = UINT64_C(6) << 32;

struct us_camera_renderer {
    us_allocator allocator;
    const us_model *model;
    int32_t sensor;
    us_camera_model lens;
    usi_pool *pool;
    usi_picture_scene scene;
    us_image image;
    size_t bytes;
    char *block;
    // In the block, of all pixels: the ray's direction in the optical frame (0: none leads there), and where
    // it starts, of lenses whose rays have no common point.
    float (*direction)[3], (*origin)[3];
    float (*radiance)[3];
    float *depth;
    int32_t *shape;
    usi_picture_surface *surface;  // of each material
    double spread;                 // rad from pixel to pixel, in the middle
    // Of the last picture.
    us_pose X_WC;
    us_light light;
    usi_picture_lamp lamp[USI_PICTURE_LAMPS];
    int32_t n_lamp;
    double disc;  // rad: the radius of the Sun
    const double *parameter;
    usi_image_sensor chip;
    double exposure;
    int64_t tick;
};

// Of the optical frame in the sensor's, which looks along x with z up.
static us_quat optical(void) { return (us_quat){0.5, -0.5, 0.5, -0.5}; }

static const usi_sensor *camera_row(const us_model *m, us_sensor camera) {
    const bool is_one =
        m && camera.i >= 0 && camera.i < m->n_sensor && usi_sensor_is(&m->sensor[camera.i], "camera");
    return is_one ? &m->sensor[camera.i] : NULL;
}

us_status us_model_get_camera(const us_model *m, us_sensor camera, us_camera_model *out_lens) {
    const usi_sensor *k = camera_row(m, camera);
    return k && out_lens ? usi_camera_lens(k->parameter, out_lens, NULL) : US_ERR_ARG;
}

// ---------------------------------------------------------------- create

static us_status lay_out(us_camera_renderer *x) {
    const size_t n = (size_t)x->lens.width * (size_t)x->lens.height;
    const bool has_origin = x->lens.kind == US_CAMERA_CAHVORE;
    size_t at[6], size = 0;
    at[0] = usi_carve(&size, n, sizeof *x->direction);
    at[1] = usi_carve(&size, has_origin ? n : 0, sizeof *x->origin);
    at[2] = usi_carve(&size, n, sizeof *x->radiance);
    at[3] = usi_carve(&size, n, sizeof *x->depth);
    at[4] = usi_carve(&size, n, sizeof *x->shape);
    at[5] = usi_carve(&size, (size_t)x->model->n_material, sizeof *x->surface);
    x->block = usi_alloc(&x->allocator, size, USI_ALIGN);
    if (!x->block) return US_ERR_MEMORY;
    x->bytes = size;
    memset(x->block, 0, size);
    x->direction = (float(*)[3])(void *)(x->block + at[0]);
    x->origin = has_origin ? (float(*)[3])(void *)(x->block + at[1]) : NULL;
    x->radiance = (float(*)[3])(void *)(x->block + at[2]);
    x->depth = (float *)(void *)(x->block + at[3]);
    x->shape = (int32_t *)(void *)(x->block + at[4]);
    x->surface = (usi_picture_surface *)(void *)(x->block + at[5]);
    const double *p = x->model->sensor[x->sensor].parameter;
    const bool is_mono = p[USI_CAMERA_PIXELS] == USI_CAMERA_MONO,
               is_8 = p[USI_CAMERA_BITS] == USI_CAMERA_8_BIT;
    const us_pixel_format format =
        is_mono ? (is_8 ? US_PIXEL_MONO8 : US_PIXEL_MONO16) : (is_8 ? US_PIXEL_RGB8 : US_PIXEL_RGB16);
    return us_image_create(format, x->lens.width, x->lens.height, &x->allocator, &x->image);
}

static void make_rays(us_camera_renderer *x) {
    for (int32_t v = 0; v < x->lens.height; v++) {
        for (int32_t u = 0; u < x->lens.width; u++) {
            const int64_t i = (int64_t)v * x->lens.width + u;
            us_vec3 d, o;
            if (!us_camera_unproject(&x->lens, u, v, &d, &o)) continue;
            const float to[3] = {(float)d.x, (float)d.y, (float)d.z},
                        from[3] = {(float)o.x, (float)o.y, (float)o.z};
            memcpy(x->direction[i], to, sizeof to);
            if (x->origin) memcpy(x->origin[i], from, sizeof from);
        }
    }
    us_vec3 a, b;
    const double u = 0.5 * x->lens.width, v = 0.5 * x->lens.height;
    x->spread = 1e-3;
    if (us_camera_unproject(&x->lens, u - 0.5, v, &a, NULL) &&
        us_camera_unproject(&x->lens, u + 0.5, v, &b, NULL))
        x->spread = us_vec3_norm(us_vec3_sub(a, b));
}

us_status us_camera_renderer_create(const us_model *model, us_sensor camera, int32_t n_thread,
                                    const us_allocator *allocator, us_camera_renderer **out_renderer,
                                    us_error *err) {
    const usi_sensor *k = camera_row(model, camera);
    if (!k || !out_renderer || n_thread < 1)
        return us_error_set(err, US_ERR_ARG, NULL,
                            "take it from us_model_find_sensor, and one thread or more",
                            "the sensor is no camera, or there are no threads");
    const us_allocator a = allocator ? *allocator : us_allocator_default();
    us_camera_renderer *x = usi_alloc(&a, sizeof *x, _Alignof(us_camera_renderer));
    if (!x) return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory for pictures");
    *x = (us_camera_renderer){.allocator = a, .model = model, .sensor = camera.i, .X_WC = us_pose_identity()};
    us_status status = usi_camera_lens(k->parameter, &x->lens, err);
    if (!status) status = lay_out(x);
    if (!status) status = usi_picture_scene_init(&x->scene, model, &x->allocator);
    if (!status) status = usi_pool_create(n_thread, &x->allocator, &x->pool);
    for (int32_t i = 0; i < model->n_material && !status; i++)
        status = usi_picture_surface_read(&model->material[i], &x->surface[i], err);
    if (status == US_ERR_MEMORY) us_error_set(err, status, NULL, "free memory", "no memory for pictures");
    if (status) {
        us_camera_renderer_destroy(x);
        return status;
    }
    make_rays(x);
    *out_renderer = x;
    return US_OK;
}

void us_camera_renderer_destroy(us_camera_renderer *x) {
    if (!x) return;
    const us_allocator a = x->allocator;
    usi_pool_destroy(x->pool);
    usi_picture_scene_fini(&x->scene);
    us_image_destroy(&x->image, &a);
    if (x->block) usi_release(&a, x->block, x->bytes, USI_ALIGN);
    usi_release(&a, x, sizeof *x, _Alignof(us_camera_renderer));
}

// ---------------------------------------------------------------- light

// The places that a tile's rays met.
typedef struct lit_tile {
    usi_picture_rays rays;
    int64_t pixel[USI_PICTURE_RAYS];
    us_vec3 normal[USI_PICTURE_RAYS];  // of the side that is seen
    double sun[USI_PICTURE_RAYS];      // W/m^2 that arrive, square to their direction
} lit_tile;

static us_vec3 place_of(const usi_picture_rays *r, int32_t i) {
    return us_vec3_add(r->o[i], us_vec3_scale(r->hit[i].range, r->d[i]));
}

// The disc of the Sun: its middle, four points of its edge, and a spiral of as many as a penumbra has shades.
enum { DISC_FEW = 5, DISC_ALL = DISC_FEW + 48 };

static us_vec3 on_disc(const us_camera_renderer *x, int32_t k) {
    static const double golden = 2.39996322972865332;  // rad
    const us_vec3 s = x->light.direction,
                  any = fabs(s.z) < 0.9 ? us_vec3_make(0, 0, 1) : us_vec3_make(1, 0, 0);
    us_vec3 u = us_vec3_cross(any, s);
    u = us_vec3_scale(1 / us_vec3_norm(u), u);
    const us_vec3 v = us_vec3_cross(s, u);
    const int32_t i = k - DISC_FEW;
    const double size = k == 0         ? 0
                        : k < DISC_FEW ? 1
                                       : sqrt((i + 0.5) / (DISC_ALL - DISC_FEW)),
                 turn = k < DISC_FEW ? 0.5 * PI * k : golden * i, r = x->disc * size;
    const us_vec3 d =
        us_vec3_add(s, us_vec3_add(us_vec3_scale(r * cos(turn), u), us_vec3_scale(r * sin(turn), v)));
    return us_vec3_scale(1 / us_vec3_norm(d), d);
}

// The share of the Sun's disc that is free from each of n places: from five points of it, and where they
// differ from all.
static void see_disc(const us_camera_renderer *x, int32_t n, const us_vec3 *p, double *out_share) {
    bool is_dark[USI_PICTURE_RAYS];
    us_vec3 some[USI_PICTURE_RAYS];
    int32_t n_dark[USI_PICTURE_RAYS] = {0}, of[USI_PICTURE_RAYS], n_some = 0;
    for (int32_t k = 0; k < DISC_FEW; k++) {
        usi_picture_cover(&x->scene, n, p, on_disc(x, k), is_dark);
        for (int32_t i = 0; i < n; i++)
            n_dark[i] += is_dark[i];
    }
    for (int32_t i = 0; i < n; i++) {
        out_share[i] = n_dark[i] == 0;
        if (n_dark[i] == 0 || n_dark[i] == DISC_FEW) continue;
        some[n_some] = p[i];
        of[n_some++] = i;
    }
    for (int32_t k = DISC_FEW; k < DISC_ALL && n_some > 0; k++) {
        usi_picture_cover(&x->scene, n_some, some, on_disc(x, k), is_dark);
        for (int32_t i = 0; i < n_some; i++)
            out_share[of[i]] += is_dark[i] ? 0 : 1.0 / (DISC_ALL - DISC_FEW);
    }
}

// How much of the Sun arrives at each place: nothing where it is behind the surface, or hidden.
static void light_by_sun(const us_camera_renderer *x, lit_tile *t) {
    static const double off = 1e-5;  // m above the surface: it does not hide itself
    const double shadows = x->parameter[USI_CAMERA_SHADOWS];
    us_vec3 p[USI_PICTURE_RAYS];
    double share[USI_PICTURE_RAYS] = {0};
    bool is_dark[USI_PICTURE_RAYS] = {false};
    int32_t of[USI_PICTURE_RAYS], n = 0;
    for (int32_t i = 0; i < t->rays.n; i++) {
        t->sun[i] = 0;
        if (t->rays.geom[i] < 0) continue;
        if (!(us_vec3_dot(t->normal[i], x->light.direction) > 0) || x->light.sun == 0) continue;
        t->sun[i] = x->light.sun;
        p[n] = us_vec3_add(place_of(&t->rays, i),
                           us_vec3_scale(off + 1e-9 * t->rays.hit[i].range, t->normal[i]));
        of[n++] = i;
    }
    if (shadows == USI_CAMERA_NO_SHADOW) return;
    if (shadows == USI_CAMERA_SOFT) see_disc(x, n, p, share);
    if (shadows == USI_CAMERA_HARD) usi_picture_cover(&x->scene, n, p, x->light.direction, is_dark);
    for (int32_t k = 0; k < n; k++)
        t->sun[of[k]] *= shadows == USI_CAMERA_SOFT ? share[k] : !is_dark[k];
}

// The material of the place that ray i met, and what its texture makes of it.
static const usi_reflector *surface_at(const us_camera_renderer *x, const lit_tile *t, int32_t i,
                                       double *out_texture) {
    const us_model *m = x->model;
    const usi_geom *g = &m->geom[t->rays.geom[i]];
    const bool is_ground = g->geom.kind == US_GEOM_HEIGHT_FIELD || g->geom.kind == US_GEOM_HALF_SPACE;
    const usi_picture_surface *s = &x->surface[g->material];
    *out_texture = 1;
    if (!is_ground && s->other == 0) return &s->law;
    const us_vec3 place = place_of(&t->rays, i);
    const us_vec3 p = us_pose_point(us_pose_inverse(usi_shape_pose(x->scene.sim, t->rays.geom[i])), place);
    if (g->has_region)
        s = &x->surface[usi_ground_material_at(m, &x->scene.sim->now.contact, t->rays.geom[i], p.x, p.y)];
    const double facing = fabs(us_vec3_dot(t->normal[i], t->rays.d[i]));
    const double footprint = x->spread * t->rays.hit[i].range / fmax(0.05, facing);
    *out_texture = usi_picture_texture(p.x, is_ground ? p.y : p.y + 0.6 * p.z, footprint,
                                       is_ground ? s->ground : s->other);
    return &s->law;
}

// What the lamps add to the places of a tile.
static void add_lamps(us_camera_renderer *x, const lit_tile *t) {
    const usi_picture_rays *r = &t->rays;
    const bool has_shadow = x->parameter[USI_CAMERA_SHADOWS] != USI_CAMERA_NO_SHADOW;
    us_vec3 p[USI_PICTURE_RAYS], toward[USI_PICTURE_RAYS];
    double light[USI_PICTURE_RAYS];
    int32_t of[USI_PICTURE_RAYS], n = 0;
    for (int32_t i = 0; i < r->n && x->n_lamp > 0; i++) {
        if (r->geom[i] < 0) continue;
        p[n] = place_of(r, i);
        of[n++] = i;
    }
    for (int32_t l = 0; l < x->n_lamp && n > 0; l++) {
        usi_picture_shine(&x->scene, &x->lamp[l], has_shadow, n, p, light, toward);
        for (int32_t j = 0; j < n; j++) {
            const int32_t i = of[j];
            const double mu0 = us_vec3_dot(t->normal[i], toward[j]),
                         mu = fmax(1e-6, -us_vec3_dot(t->normal[i], r->d[i]));
            double texture;
            if (light[j] == 0 || !(mu0 > 0)) continue;
            const usi_reflector *law = surface_at(x, t, i, &texture);
            for (int k = 0; k < 3; k++) {
                const double own = (double)x->model->geom[r->geom[i]].colour[k],
                             sent = usi_reflectance(law, own, mu0, mu, -us_vec3_dot(toward[j], r->d[i]));
                x->radiance[t->pixel[i]][k] += (float)(texture * x->lamp[l].colour[k] * light[j] * sent);
            }
        }
    }
}

static void write_pixel(us_camera_renderer *x, const lit_tile *t, int32_t i) {
    const usi_picture_rays *r = &t->rays;
    const int64_t at = t->pixel[i];
    x->shape[at] = r->geom[i];
    if (r->geom[i] < 0) {
        const float sky = r->d[i].z > 0 ? (float)(x->light.sky / PI) : 0;
        for (int k = 0; k < 3; k++)
            x->radiance[at][k] = sky;
        return;
    }
    const float *colour = x->model->geom[r->geom[i]].colour;
    const us_vec3 s = x->light.direction, n = t->normal[i];
    const double mu0 = us_vec3_dot(n, s), mu = fmax(1e-6, -us_vec3_dot(n, r->d[i])),
                 cosg = -us_vec3_dot(s, r->d[i]), sky = 0.5 / PI * x->light.sky * (1 + n.z);
    double texture;
    const usi_reflector *law = surface_at(x, t, i, &texture);
    for (int k = 0; k < 3; k++) {
        const double own = (double)colour[k];
        const double sun = t->sun[i] > 0 ? t->sun[i] * usi_reflectance(law, own, mu0, mu, cosg) : 0;
        x->radiance[at][k] = (float)(texture * (sun + own * sky));
    }
    const us_vec3 ahead = us_quat_rotate(x->X_WC.q, us_vec3_make(0, 0, 1));
    x->depth[at] = (float)us_vec3_dot(us_vec3_sub(place_of(r, i), x->X_WC.p), ahead);
}

// ---------------------------------------------------------------- tiles and rows

static us_vec3 vector_of(const float from[3]) {
    return us_vec3_make((double)from[0], (double)from[1], (double)from[2]);
}

static void render_tile(void *context, int32_t tile, int32_t thread) {
    us_camera_renderer *x = context;
    (void)thread;
    const int32_t width = x->lens.width, height = x->lens.height,
                  n_column = (width + USI_PICTURE_TILE - 1) / USI_PICTURE_TILE,
                  left = tile % n_column * USI_PICTURE_TILE, top = tile / n_column * USI_PICTURE_TILE;
    const us_mat3 R = us_quat_matrix(x->X_WC.q);
    lit_tile t;
    usi_picture_rays *r = &t.rays;
    r->n = 0;
    for (int32_t v = top; v < top + USI_PICTURE_TILE && v < height; v++) {
        for (int32_t u = left; u < left + USI_PICTURE_TILE && u < width; u++) {
            const int64_t at = (int64_t)v * width + u;
            const us_vec3 d = us_mat3_mul_vec(&R, vector_of(x->direction[at]));
            const double length = us_vec3_norm(d);
            x->shape[at] = -1;
            x->depth[at] = INFINITY;
            memset(x->radiance[at], 0, sizeof x->radiance[at]);
            if (!(length > 0)) continue;
            r->d[r->n] = us_vec3_scale(1 / length, d);
            r->o[r->n] = x->origin ? us_pose_point(x->X_WC, vector_of(x->origin[at])) : x->X_WC.p;
            t.pixel[r->n++] = at;
        }
    }
    usi_picture_cast(&x->scene, r);
    for (int32_t i = 0; i < r->n; i++) {
        const us_vec3 n = r->hit[i].normal;
        t.normal[i] = us_vec3_dot(n, r->d[i]) > 0 ? us_vec3_scale(-1, n) : n;
    }
    light_by_sun(x, &t);
    for (int32_t i = 0; i < r->n; i++)
        write_pixel(x, &t, i);
    add_lamps(x, &t);
}

static void read_out_row(void *context, int32_t v, int32_t thread) {
    us_camera_renderer *x = context;
    (void)thread;
    const double per_radiance = usi_image_sensor_rate(&x->chip) * x->exposure;
    const usi_sensor *k = &x->model->sensor[x->sensor];
    const uint64_t seed = x->model->seed + USI_GOLDEN * k->seed, stream = chip_stream + (uint64_t)x->sensor,
                   chip = usi_random_key(seed, stream), picture = usi_random_key(chip, (uint64_t)x->tick);
    const double fall = x->parameter[USI_CAMERA_VIGNETTING];
    const bool is_mono = x->image.format == US_PIXEL_MONO8 || x->image.format == US_PIXEL_MONO16;
    uint8_t *row = (uint8_t *)x->image.pixels + (size_t)v * x->image.stride;
    uint16_t *wide = (uint16_t *)(void *)row;
    for (int32_t u = 0; u < x->lens.width; u++) {
        const int64_t at = (int64_t)v * x->lens.width + u;
        const float *from = x->radiance[at];
        const double cosine = (double)x->direction[at][2] * (double)x->direction[at][2],
                     arrives = per_radiance * (1 - fall * (1 - cosine * cosine));
        const double y = 0.2126 * (double)from[0] + 0.7152 * (double)from[1] + 0.0722 * (double)from[2];
        const int32_t n = is_mono ? 1 : 3;
        for (int32_t c = 0; c < n; c++) {
            const double radiance = is_mono ? y : (double)from[c];
            const double electrons = usi_image_sensor_expose(&x->chip, arrives * radiance, x->exposure,
                                                             picture, chip, (uint64_t)(3 * at + c));
            const uint32_t number = usi_image_sensor_number(&x->chip, electrons);
            if (x->chip.bits == 16)
                wide[n * u + c] = (uint16_t)number;
            else
                row[n * u + c] = (uint8_t)number;
        }
    }
}

us_status us_camera_renderer_render(us_camera_renderer *x, const us_sim *sim, us_error *err) {
    if (!x || !sim || us_sim_view_model(sim) != x->model)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a sim of the model that it was made for",
                            "us_camera_renderer_render: there is no renderer, or the sim is another's");
    const usi_sensor *k = &x->model->sensor[x->sensor];
    const double *p = sim->now.sensor_part + usi_sensor_part_at(k, USI_SENSOR_PARAMETER);
    x->parameter = p;
    x->chip = (usi_image_sensor){.aperture = p[USI_CAMERA_APERTURE],
                                 .pitch = p[USI_CAMERA_PITCH],
                                 .efficiency = p[USI_CAMERA_EFFICIENCY],
                                 .full_well = p[USI_CAMERA_FULL_WELL],
                                 .gain = p[USI_CAMERA_GAIN],
                                 .read_noise = p[USI_CAMERA_READ_NOISE],
                                 .dark = p[USI_CAMERA_DARK],
                                 .excess = sim->now.sensor[x->sensor].scale,
                                 .pattern = p[USI_CAMERA_PATTERN],
                                 .has_noise = p[USI_CAMERA_NOISE] != 0,
                                 .bits = p[USI_CAMERA_BITS] == USI_CAMERA_16_BIT ? 16 : 8,
                                 .is_linear = p[USI_CAMERA_RESPONSE] == USI_CAMERA_LINEAR};
    usi_image_sensor_prepare(&x->chip);
    usi_shapes_start(sim);
    x->X_WC = us_pose_mul(usi_lidar_pose(sim, k), (us_pose){optical(), us_vec3_make(0, 0, 0)});
    x->tick = us_sim_get_tick(sim);
    x->light = us_model_get_light(x->model, us_sim_get_time(sim));
    x->n_lamp = usi_picture_lamps(sim, x->lamp);
    x->disc = x->model->sky.planet == US_PLANET_MARS ? 0.00306 : 0.004653;
    usi_picture_scene_take(&x->scene, sim, x->X_WC.p, p[USI_CAMERA_REACH]);
    const int32_t n_column = (x->lens.width + USI_PICTURE_TILE - 1) / USI_PICTURE_TILE,
                  n_row = (x->lens.height + USI_PICTURE_TILE - 1) / USI_PICTURE_TILE;
    usi_pool_run(x->pool, n_column * n_row, 4, render_tile, x);
    const int64_t n = (int64_t)x->lens.width * x->lens.height;
    x->exposure = p[USI_CAMERA_EXPOSURE];
    if (x->exposure == 0) x->exposure = usi_image_sensor_meter(&x->chip, n, (const float(*)[3])x->radiance);
    usi_pool_run(x->pool, x->lens.height, 8, read_out_row, x);
    return US_OK;
}

// ---------------------------------------------------------------- what was made

us_image us_camera_renderer_view_image(const us_camera_renderer *x) { return x ? x->image : (us_image){0}; }
const float *us_camera_renderer_view_depth(const us_camera_renderer *x) { return x ? x->depth : NULL; }
const float (*us_camera_renderer_view_radiance(const us_camera_renderer *x))[3] {
    return x ? (const float(*)[3])x->radiance : NULL;
}
const int32_t *us_camera_renderer_view_shape(const us_camera_renderer *x) { return x ? x->shape : NULL; }
double us_camera_renderer_exposure(const us_camera_renderer *x) { return x ? x->exposure : NAN; }
us_pose us_camera_renderer_pose(const us_camera_renderer *x) { return x ? x->X_WC : us_pose_identity(); }
