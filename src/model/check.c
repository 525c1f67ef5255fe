// The spec as written: numbers that are finite and make sense, names that differ.
#include "model/compile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

us_status usi_build_fail(usi_build *b, us_status code, const char *file, int32_t line, const char *what,
                         const char *name, const char *remedy, const char *message) {
    char element[128];
    snprintf(element, sizeof element, "%s \"%.100s\"", what, name ? name : "");
    us_place place = {file, line, 0, element};
    return us_error_set(b->err, code, &place, remedy, "%s", message);
}
us_status usi_build_out_of_memory(usi_build *b) {
    return us_error_set(b->err, US_ERR_MEMORY, NULL, "free memory or make the model smaller",
                        "no memory left for the model");
}

bool usi_all_finite(const double *x, int n) {
    for (int i = 0; i < n; i++) {
        if (!isfinite(x[i])) return false;
    }
    return true;
}

// Long enough to be made a rotation by scaling.
bool usi_is_rotation(us_quat q) {
    double n2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
    return n2 > 1e-12 && isfinite(n2);
}
static us_status check_world(usi_build *b) {
    const us_world_settings *w = &b->spec->world;
    if (!(w->step > 0 && w->step <= 10))
        return us_error_set(b->err, US_ERR_VALUE, NULL,
                            "write a step in seconds above 0 and up to 10, for example 1e-3",
                            "the step is %g s", w->step);
    if (!usi_all_finite(&w->gravity.x, 3))
        return us_error_set(b->err, US_ERR_VALUE, NULL, "write three finite numbers, for example 0 0 -9.81",
                            "gravity is not finite");
    if (!(w->tolerance > 0 && w->tolerance < 1))
        return us_error_set(b->err, US_ERR_VALUE, NULL,
                            "write a tolerance above 0 and below 1, for example 1e-9", "the tolerance is %g",
                            w->tolerance);
    if (!(w->duration >= 0))
        return us_error_set(b->err, US_ERR_VALUE, NULL, "write a duration in seconds of 0 or more",
                            "the duration is %g s", w->duration);
    if ((unsigned)w->integrator >= (unsigned)US_INTEGRATOR_COUNT)
        return us_error_set(b->err, US_ERR_ARG, NULL, "use one of us_integrator", "unknown integrator");
    if (!us_sky_is_valid(&w->sky))
        return us_error_set(b->err, US_ERR_VALUE, NULL,
                            "write a planet of us_planet, a latitude within 90 degrees and finite numbers",
                            "the world's place on its planet is invalid");
    const us_light_def *l = &w->sky.light;
    const double length = us_vec3_norm(l->direction);
    if ((l->has_direction && !(length > 0 && isfinite(length))) || !(l->sun >= 0 && isfinite(l->sun)) ||
        !(l->sky >= 0 && isfinite(l->sky)))
        return us_error_set(b->err, US_ERR_VALUE, NULL,
                            "write a direction that is not 0, and W/m^2 of 0 or more",
                            "the light of the world is invalid");
    if (w->max_contact < 0)
        return us_error_set(
            b->err, US_ERR_VALUE, NULL,
            "write a number of contact points above 0, or 0 for one that follows from the shapes",
            "room for %d contact points", (int)w->max_contact);
    return US_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(**(const char *const *const *)a, **(const char *const *const *)b);
}

// Names must differ, and be there where they are needed. `names` point into the definitions, so that the
// index of the second one can be found.
static us_status check_names(usi_build *b, const char *what, bool is_needed, int32_t n, const char **first,
                             size_t stride, const char *const *files, const int32_t *lines) {
    const char ***sorted = usi_arena_alloc(&b->arena, (size_t)(n + 1) * sizeof *sorted, _Alignof(char *));
    if (!sorted) return usi_build_out_of_memory(b);
    int32_t n_name = 0;
    for (int32_t i = 0; i < n; i++) {
        const char **name = (const char **)((char *)first + (size_t)i * stride);
        const char *file = *(const char *const *)((const char *)files + (size_t)i * stride);
        int32_t line = *(const int32_t *)((const char *)lines + (size_t)i * stride);
        bool is_there = *name && (*name)[0];
        if (!is_there && is_needed)
            return usi_build_fail(b, US_ERR_NAME, file, line, what, "", "give it a name", "it has no name");
        if (is_there) sorted[n_name++] = name;
    }
    qsort(sorted, (size_t)n_name, sizeof *sorted, compare_names);
    for (int32_t i = 1; i < n_name; i++) {
        if (strcmp(*sorted[i - 1], *sorted[i]) != 0) continue;
        const char **later = sorted[i - 1] > sorted[i] ? sorted[i - 1] : sorted[i];
        size_t offset = (size_t)((const char *)later - (const char *)first);
        return usi_build_fail(b, US_ERR_NAME, *(const char *const *)((const char *)files + offset),
                              *(const int32_t *)((const char *)lines + offset), what, *later,
                              "give each its own name", "the name is used twice");
    }
    return US_OK;
}

// No axis may have a negative moment of inertia: all principal minors are 0 or more, but for rounding.
static bool is_inertia(const double a[6]) {
    double size = a[0] + a[1] + a[2], tolerance = -1e-9 * size * size;
    double det = a[0] * (a[1] * a[2] - a[5] * a[5]) - a[3] * (a[3] * a[2] - a[5] * a[4]) +
                 a[4] * (a[3] * a[5] - a[1] * a[4]);
    return a[0] * a[1] - a[3] * a[3] >= tolerance && a[0] * a[2] - a[4] * a[4] >= tolerance &&
           a[1] * a[2] - a[5] * a[5] >= tolerance && det >= tolerance * size;
}

static us_status check_link(usi_build *b, const us_link_def *l) {
    const us_inertia *I = &l->inertia;
    if (!isfinite(I->mass) || !usi_all_finite(&I->com.x, 3) || !usi_all_finite(I->about_com, 6)) {
        return USI_FAIL_LINK(b, US_ERR_MASS, l, "write finite numbers for mass, centre of mass and inertia",
                             "its mass properties are not finite");
    }
    if (I->mass < 0)
        return USI_FAIL_LINK(b, US_ERR_MASS, l, "write a mass of 0 or more", "its mass is negative");
    if (I->about_com[0] < 0 || I->about_com[1] < 0 || I->about_com[2] < 0)
        return USI_FAIL_LINK(b, US_ERR_MASS, l, "write moments of inertia of 0 or more",
                             "a moment of inertia is negative");
    if (!is_inertia(I->about_com))
        return USI_FAIL_LINK(b, US_ERR_MASS, l,
                             "check the products of inertia: xy squared is at most xx times yy, and so on",
                             "its products of inertia are too large for its moments");
    return US_OK;
}

static us_status check_joint(usi_build *b, const us_joint_def *j) {
    int32_t n_link = b->spec->n_link;
    if (j->parent < US_WORLD || j->parent >= n_link || j->child < 0 || j->child >= n_link) {
        return USI_FAIL_JOINT(b, US_ERR_TREE, j, "name two links that exist, or the world as parent",
                              "its parent or child is not a link");
    }
    if (j->parent == j->child)
        return USI_FAIL_JOINT(b, US_ERR_TREE, j, "name two different links",
                              "parent and child are the same link");
    if (!usi_all_finite(&j->X_PF.q.w, 4) || !usi_all_finite(&j->X_PF.p.x, 3) ||
        !usi_all_finite(&j->axis.x, 3) || !usi_all_finite(&j->axis2.x, 3) || !usi_all_finite(j->q0, 7) ||
        !usi_all_finite(j->v0, 6) || !isfinite(j->pitch) || !isfinite(j->rest)) {
        return USI_FAIL_JOINT(b, US_ERR_VALUE, j, "write finite numbers",
                              "its frame, axis or start state is not finite");
    }
    if (!usi_is_rotation(j->X_PF.q))
        return USI_FAIL_JOINT(b, US_ERR_VALUE, j, "write a quaternion of length 1, w first",
                              "the quaternion of its frame is 0 or too long");
    bool has_axis =
        j->type != US_JOINT_FIXED && j->type != US_JOINT_SPHERICAL && j->type != US_JOINT_FLOATING;
    double axis_length = us_vec3_norm(j->axis);
    if (has_axis && !(axis_length > 1e-9 && isfinite(axis_length)))
        return USI_FAIL_JOINT(b, US_ERR_VALUE, j, "write an axis such as 0 0 1", "its axis is 0 or too long");
    if (j->type == US_JOINT_UNIVERSAL) {
        double s = us_vec3_norm(us_vec3_cross(j->axis, j->axis2)),
               n = us_vec3_norm(j->axis) * us_vec3_norm(j->axis2);
        if (!(s > 1e-6 * n))
            return USI_FAIL_JOINT(b, US_ERR_VALUE, j,
                                  "write two axes that are not parallel, for example 1 0 0 and 0 1 0",
                                  "its two axes are parallel or 0");
    }
    if ((j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING) &&
        !usi_is_rotation((us_quat){j->q0[0], j->q0[1], j->q0[2], j->q0[3]})) {
        return USI_FAIL_JOINT(b, US_ERR_VALUE, j,
                              "write a quaternion of length 1, w first, for example 1 0 0 0",
                              "the quaternion of its start state is 0 or too long");
    }
    const double positive[] = {j->damping, j->stiffness, j->armature, j->friction, j->blockage};
    for (int i = 0; i < 5; i++) {
        if (!(positive[i] >= 0 && positive[i] <= 1e15)) {
            return USI_FAIL_JOINT(b, US_ERR_VALUE, j, "write a number of 0 or more",
                                  "its damping, stiffness, armature or friction is negative or not finite");
        }
    }
    if (j->stiffness > 0 && (j->type == US_JOINT_SPHERICAL || j->type == US_JOINT_FLOATING)) {
        return USI_FAIL_JOINT(b, US_ERR_VALUE, j, "leave stiffness out, or use another kind of joint",
                              "a spherical or floating joint has no spring");
    }
    if (!(j->effort >= 0) || !(j->velocity >= 0))
        return USI_FAIL_JOINT(b, US_ERR_VALUE, j, "write a number of 0 or more, 0 for no limit",
                              "its effort or velocity limit is negative or not a number");
    if (j->has_limits && !(j->lower <= j->upper))
        return USI_FAIL_JOINT(b, US_ERR_VALUE, j, "write the lower limit first",
                              "its lower limit is above its upper limit");
    return US_OK;
}

// -1 is no group.
static us_status check_group(usi_build *b, int32_t group, const char *what, const char *name,
                             const char *file, int32_t line) {
    if (group >= -1 && group < b->spec->n_group) return US_OK;
    return usi_build_fail(b, US_ERR_NAME, file, line, what, name,
                          "give the index of a group that was added, or -1 for none",
                          "its group does not exist");
}

static us_status check_groups(usi_build *b) {
    const us_spec *s = b->spec;
    us_status status = US_OK;
#define CHECK_GROUPS(list, title)                        \
    for (int32_t i = 0; !status && i < s->n_##list; i++) \
        status = check_group(b, s->list[i].group, #list, s->list[i].title, s->list[i].file, s->list[i].line);
    CHECK_GROUPS(link, name)
    CHECK_GROUPS(joint, name)
    CHECK_GROUPS(coupling, name)
    CHECK_GROUPS(loop, name)
    CHECK_GROUPS(extension, tag)
#undef CHECK_GROUPS
    return status;
}

static us_status check_record(usi_build *b, const us_record_def *r) {
    if (r->rate >= 0 && isfinite(r->rate)) return US_OK;
    return usi_build_fail(b, US_ERR_VALUE, r->file, r->line, "record", r->file_name,
                          "write a rate in Hz of 0 or more, 0 for every tick",
                          "its rate is negative or not finite");
}

us_status usi_build_check(usi_build *b) {
    us_spec *s = b->spec;
    us_status status = check_world(b);
    for (int32_t i = 0; !status && i < s->n_link; i++)
        status = check_link(b, &s->link[i]);
    for (int32_t i = 0; !status && i < s->n_joint; i++)
        status = check_joint(b, &s->joint[i]);
    for (int32_t i = 0; !status && i < s->n_record; i++)
        status = check_record(b, &s->record[i]);
    if (!status) status = check_groups(b);
#define CHECK_NAMES(list, is_needed)                                                            \
    if (!status && s->n_##list)                                                                 \
        status = check_names(b, #list, is_needed, s->n_##list, &s->list->name, sizeof *s->list, \
                             &s->list->file, &s->list->line);
    CHECK_NAMES(link, true)
    CHECK_NAMES(joint, true)
    CHECK_NAMES(drive, true)
    CHECK_NAMES(coupling, false)
    CHECK_NAMES(loop, false)
#undef CHECK_NAMES
    return status;
}
