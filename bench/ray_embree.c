// Embree on one thread, by all of its calls.
#include "ray_peers.h"

#ifdef US_HAVE_EMBREE

#include <embree3/rtcore.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { ROW = 640 };  // rays of one call of many

struct ray_embree {
    RTCDevice device;
    RTCScene scene;
    int32_t n_ray;
    float range;
    const double *ray;
    struct RTCRayHit *one;
    struct RTCRayHit8 *eight;
    struct RTCRayHit16 *sixteen;
};

// Of how many rays, and whether it is told that they belong together.
static const struct {
    const char *name;
    int width;
    bool is_coherent;
} call_list[RAY_EMBREE_CALLS] = {{"rtcIntersect1", 1, false},
                                 {"rtcIntersect1M", ROW, false},
                                 {"rtcIntersect1M coherent", ROW, true},
                                 {"rtcIntersect8 coherent", 8, true},
                                 {"rtcIntersect16", 16, false},
                                 {"rtcIntersect16 coherent", 16, true}};

const char *ray_embree_name(int call) { return call_list[call].name; }

static void *aligned(size_t size) { return aligned_alloc(64, (size + 63) / 64 * 64); }

ray_embree *ray_embree_create(const char *isa, const ray_mesh *mesh, int32_t n_ray, const double *rays,
                              double range) {
    ray_embree *e = calloc(1, sizeof *e);
    char config[80];
    if (!e) return NULL;
    snprintf(config, sizeof config, isa ? "threads=1,isa=%.40s" : "threads=1%.0s", isa ? isa : "");
    *e = (ray_embree){.device = rtcNewDevice(config), .n_ray = n_ray, .range = (float)range, .ray = rays};
    if (!e->device) {
        free(e);
        return NULL;
    }
    e->scene = rtcNewScene(e->device);
    RTCGeometry g = rtcNewGeometry(e->device, RTC_GEOMETRY_TYPE_TRIANGLE);
    float *v = rtcSetNewGeometryBuffer(g, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, 3 * sizeof *v,
                                       (size_t)mesh->n_vertex);
    unsigned *t = rtcSetNewGeometryBuffer(g, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, 3 * sizeof *t,
                                          (size_t)mesh->n_triangle);
    for (int32_t i = 0; i < mesh->n_vertex; i++) {
        v[3 * i] = (float)mesh->vertex[i].x;
        v[3 * i + 1] = (float)mesh->vertex[i].y;
        v[3 * i + 2] = (float)mesh->vertex[i].z;
    }
    for (int32_t i = 0; i < 3 * mesh->n_triangle; i++)
        t[i] = (unsigned)mesh->triangle[i / 3][i % 3];
    rtcCommitGeometry(g);
    rtcAttachGeometry(e->scene, g);
    rtcReleaseGeometry(g);
    rtcSetSceneBuildQuality(e->scene, RTC_BUILD_QUALITY_HIGH);
    rtcCommitScene(e->scene);
    const size_t n = (size_t)n_ray;
    e->one = aligned(n * sizeof *e->one);
    e->eight = aligned((n / 8 + 1) * sizeof *e->eight);
    e->sixteen = aligned((n / 16 + 1) * sizeof *e->sixteen);
    if (!e->one || !e->eight || !e->sixteen) exit(1);
    return e;
}

void ray_embree_destroy(ray_embree *e) {
    if (!e) return;
    rtcReleaseScene(e->scene);
    rtcReleaseDevice(e->device);
    free(e->one);
    free(e->eight);
    free(e->sixteen);
    free(e);
}

// Rays in Embree's layouts.
#define FILL(to, lane, source, limit)                    \
    do {                                                 \
        (to)->ray.org_x lane = (float)(source)[0];       \
        (to)->ray.org_y lane = (float)(source)[1];       \
        (to)->ray.org_z lane = (float)(source)[2];       \
        (to)->ray.dir_x lane = (float)(source)[3];       \
        (to)->ray.dir_y lane = (float)(source)[4];       \
        (to)->ray.dir_z lane = (float)(source)[5];       \
        (to)->ray.tnear lane = 0;                        \
        (to)->ray.time lane = 0;                         \
        (to)->ray.tfar lane = (limit);                   \
        (to)->ray.mask lane = UINT32_MAX;                \
        (to)->ray.id lane = 0;                           \
        (to)->ray.flags lane = 0;                        \
        (to)->hit.geomID lane = RTC_INVALID_GEOMETRY_ID; \
    } while (0)

static void fill(ray_embree *e, int width) {
    for (int32_t i = 0; i < e->n_ray; i++) {
        const double *from = e->ray + 6 * (size_t)i;
        if (width == 8)
            FILL(&e->eight[i / 8], [i % 8], from, e -> range);
        else if (width == 16)
            FILL(&e->sixteen[i / 16], [i % 16], from, e -> range);
        else
            FILL(&e->one[i], , from, e->range);
    }
}

static double range_at(const ray_embree *e, int width, int32_t i) {
    const bool is_hit = (width == 8    ? e->eight[i / 8].hit.geomID[i % 8]
                         : width == 16 ? e->sixteen[i / 16].hit.geomID[i % 16]
                                       : e->one[i].hit.geomID) != RTC_INVALID_GEOMETRY_ID;
    const float t = width == 8    ? e->eight[i / 8].ray.tfar[i % 8]
                    : width == 16 ? e->sixteen[i / 16].ray.tfar[i % 16]
                                  : e->one[i].ray.tfar;
    return is_hit ? (double)t : INFINITY;
}

double ray_embree_cast(ray_embree *e, int call, double *out_range) {
    const int width = call_list[call].width;
    _Alignas(64) int valid[16];
    struct RTCIntersectContext context;
    memset(valid, -1, sizeof valid);
    rtcInitIntersectContext(&context);
    if (call_list[call].is_coherent) context.flags = RTC_INTERSECT_CONTEXT_FLAG_COHERENT;
    fill(e, width);
    const double start = bench_cpu_now();
    for (int32_t i = 0; i < e->n_ray; i += width) {
        const int32_t left = e->n_ray - i < width ? e->n_ray - i : width;
        for (int lane = left; width <= 16 && lane < width; lane++)
            valid[lane] = 0;
        if (width == 1)
            rtcIntersect1(e->scene, &context, &e->one[i]);
        else if (width == 8)
            rtcIntersect8(valid, e->scene, &context, &e->eight[i / 8]);
        else if (width == 16)
            rtcIntersect16(valid, e->scene, &context, &e->sixteen[i / 16]);
        else
            rtcIntersect1M(e->scene, &context, &e->one[i], (unsigned)left, sizeof *e->one);
    }
    const double took = bench_cpu_now() - start;
    for (int32_t i = 0; i < e->n_ray; i++)
        out_range[i] = range_at(e, width, i);
    return took;
}

#else

ray_embree *ray_embree_create(const char *isa, const ray_mesh *mesh, int32_t n_ray, const double *rays,
                              double range) {
    (void)isa, (void)mesh, (void)n_ray, (void)rays, (void)range;
    return 0;
}
void ray_embree_destroy(ray_embree *e) { (void)e; }
const char *ray_embree_name(int call) { return call ? "" : ""; }
double ray_embree_cast(ray_embree *e, int call, double *out_range) {
    (void)e, (void)call, (void)out_range;
    return 0;
}

#endif
