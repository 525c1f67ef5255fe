// <inertial>: mass properties, what is wrong with them, and how it is repaired.
//
// A good inertia passes untouched, bit for bit. What is doubtful is used after a repair that the warning
// states:
//   principal moments that no rigid body has   raised as little as possible, the principal axes kept: one
//                                              that is not positive to a millionth of the largest; then the
//                                              two smaller ones by half of what they lack to the largest
//                                              (A + B >= C)
//   mass without inertia                       that of a ball of the link's mass at the density of water
//   inertia without mass                       not used: the link is massless
// A link on a fixed joint is one body with its parent, whose moments make up for what it lacks: only negative
// moments are raised there, and the rest is reported.
//
// Most links without <inertial> are mere frames, fixed to others: they stay massless, without a warning.
// Links joined by fixed joints are one rigid body, and only where such a body moves and has no mass at all,
// mass properties are computed from the collision shapes of its links (the visual ones where there are none)
// at the density of water. Shapes that overlap count twice.
#include <stdio.h>
#include <string.h>

#include "spec/mesh_file.h"
#include "spec/urdf.h"

static const double density = 1000;     // kg/m^3
static const double MIN_MASS = 1e-12;   // kg; a smaller one is a mistake, and makes accelerations of any size
static const double ROUND_OFF = 1e-6;   // relative: digits of a file break A + B >= C by less than this
static const double MIN_MOMENT = 1e-6;  // over the largest moment: one that is not positive is raised to it

// ---- Principal moments ----

// Jacobi's rotations: A = V diag(out) V^T, columns of V are the axes. 3x3 matrices are done after a few
// sweeps.
static void principal(const double I[6], double out[3], double V[9]) {
    double A[9] = {I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2]};
    static const double unit[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(V, unit, sizeof unit);
    for (int sweep = 0; sweep < 30; sweep++) {
        double off = fabs(A[1]) + fabs(A[2]) + fabs(A[5]);
        if (off <= 1e-17 * (fabs(A[0]) + fabs(A[4]) + fabs(A[8]))) break;
        for (int p = 0; p < 2; p++) {
            for (int q = p + 1; q < 3; q++) {
                double apq = A[3 * p + q];
                if (apq == 0) continue;
                double theta = (A[4 * q] - A[4 * p]) / (2 * apq);
                double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1)),
                       c = 1 / sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < 3; k++) {
                    double a = A[3 * k + p], b = A[3 * k + q];
                    A[3 * k + p] = c * a - s * b;
                    A[3 * k + q] = s * a + c * b;
                }
                for (int k = 0; k < 3; k++) {
                    double a = A[3 * p + k], b = A[3 * q + k], v = V[3 * k + p], w = V[3 * k + q];
                    A[3 * p + k] = c * a - s * b;
                    A[3 * q + k] = s * a + c * b;
                    V[3 * k + p] = c * v - s * w;
                    V[3 * k + q] = s * v + c * w;
                }
            }
        }
    }
    for (int k = 0; k < 3; k++)
        out[k] = A[4 * k];
}

// The moments as a body can have them. Returns whether anything had to change. `is_part`: of a part of a
// body, which may be as thin as it likes.
static bool repair(double moment[3], bool is_part) {
    int i[3] = {0, 1, 2};  // by size, smallest first
    for (int k = 0; k < 3; k++) {
        for (int j = 0; j < 2; j++) {
            if (moment[i[j]] > moment[i[j + 1]]) {
                int swap = i[j];
                i[j] = i[j + 1];
                i[j + 1] = swap;
            }
        }
    }
    double *a = &moment[i[0]], *b = &moment[i[1]], *c = &moment[i[2]];
    // All negative: the signs were turned.
    if (*c <= 0) {
        for (int k = 0; k < 3; k++)
            moment[k] = fabs(moment[k]);
        repair(moment, is_part);
        return true;
    }
    bool is_changed = false;
    double least = MIN_MOMENT * *c, bound = is_part ? -1e-9 * *c : 1e-9 * *c;
    if (*a <= bound) {
        *a = least;
        is_changed = true;
    }
    if (*b <= bound) {
        *b = least;
        is_changed = true;
    }
    double lack = *c - (*a + *b);
    if (lack > ROUND_OFF * *c) {
        *a += 0.5 * lack;
        *b += 0.5 * lack;
        is_changed = true;
    }
    return is_changed;
}

static bool is_zero(const double I[6]) {
    for (int k = 0; k < 6; k++) {
        if (I[k] != 0) return false;
    }
    return true;
}

// Whether the link takes its joint's motion itself, and does not ride on its parent.
static bool is_leader(const usi_urdf *u, int32_t link) { return u->links[link].body == link; }
static bool is_moving(const usi_urdf *u, int32_t link) {
    return u->links[link].body != u->root || u->is_floating;
}

static us_status check_moments(usi_urdf *u, int32_t i) {
    usi_urdf_link *link = &u->links[i];
    double moment[3], V[9];
    principal(link->inertia.about_com, moment, V);
    double old[3] = {moment[0], moment[1], moment[2]}, *I = link->inertia.about_com;
    bool is_part = !is_leader(u, i) || !is_moving(u, i);
    if (!repair(moment, is_part)) {
        // A moment of 0 may come out of a rotation as one just below.
        for (int k = 0; k < 3; k++)
            I[k] = I[k] < 0 ? 0 : I[k];
        return US_OK;
    }
    bool is_positive = old[0] > 0 && old[1] > 0 && old[2] > 0, is_repaired = !is_part || !is_positive;
    static const int row[6] = {0, 1, 2, 0, 0, 1}, column[6] = {0, 1, 2, 1, 2, 2};
    for (int e = 0; e < 6 && is_repaired; e++) {
        I[e] = 0;
        for (int k = 0; k < 3; k++)
            I[e] += V[3 * row[e] + k] * moment[k] * V[3 * column[e] + k];
    }
    char done[160];
    if (is_repaired) {
        snprintf(done, sizeof done, "they are raised to %.6g, %.6g, %.6g", moment[0], moment[1], moment[2]);
    } else {
        snprintf(done, sizeof done, "they are used as they are, because the link is fixed to %s",
                 is_moving(u, i) ? "another one" : "the ground");
    }
    return usi_warn(u->r, usi_xml_child(usi_xml_child(link->node, "inertial"), "inertia"),
                    "correct <inertia>: moments about the centre of mass, in kg m^2, not scaled",
                    "link \"%s\": no body has the principal moments %.6g, %.6g, %.6g (%s); %s", link->name,
                    old[0], old[1], old[2],
                    is_positive ? "the largest is more than the sum of the others" : "not all are positive",
                    done);
}

// ---- Reading ----

static us_status read_inertial(usi_urdf *u, usi_urdf_link *link) {
    const xmlNode *node = usi_xml_child(link->node, "inertial");
    if (!node) return US_OK;
    us_inertia I = {0};
    us_pose X = us_pose_identity();
    bool is_turned = false;
    us_status status = usi_urdf_check(u, node, "origin mass inertia", "");
    if (!status) status = usi_urdf_origin(u, node, &X, &is_turned);
    if (status) return status;
    const xmlNode *mass = usi_xml_child(node, "mass"), *inertia = usi_xml_child(node, "inertia");
    if (!mass)
        return usi_fail(u->r, US_ERR_SCHEMA, node, "add <mass value=\"...\"/>, in kg",
                        "the <inertial> of link \"%s\" has no <mass>", link->name);
    status = usi_urdf_check(u, mass, "", "value");
    if (!status) status = usi_xml_double(u->r, mass, "value", true, &I.mass);
    if (status) return status;
    if (I.mass < 0)
        return usi_fail(u->r, US_ERR_MASS, mass, "write a mass of 0 or more, in kg",
                        "link \"%s\" has a negative mass, %.6g kg", link->name, I.mass);
    bool is_tiny = I.mass > 0 && I.mass < MIN_MASS;
    if (is_tiny)
        status = usi_warn(u->r, mass, "write the mass in kg, or 0 for a massless link",
                          "the mass of link \"%s\", %.6g kg, is too small to be meant: the link is massless",
                          link->name, I.mass);
    if (is_tiny) I.mass = 0;
    static const char *const names[6] = {"ixx", "iyy", "izz", "ixy", "ixz", "iyz"};
    double in_own[6] = {0};
    if (inertia && !status) status = usi_urdf_check(u, inertia, "", "ixx ixy ixz iyy iyz izz");
    for (int k = 0; k < 6 && inertia && !status; k++)
        status = usi_xml_double(u->r, inertia, names[k], k < 3, &in_own[k]);
    if (status) return status;
    I.com = X.p;
    memcpy(I.about_com, in_own, sizeof in_own);
    if (is_turned) usi_inertia_rotate(&X.q, in_own, I.about_com);
    link->has_inertial = I.mass > 0;
    if (I.mass == 0 && !is_tiny && !is_zero(in_own)) {
        status = usi_warn(u->r, mass, "give the link a mass, or write zeros in <inertia>",
                          "link \"%s\" has inertia but no mass: its inertia is not used", link->name);
    }
    if (I.mass > 0) link->inertia = I;
    return status;
}

// ---- Mass properties that the file lacks ----

static us_status compute_mass(usi_urdf *u, usi_urdf_link *link, bool *out_is_done) {
    us_inertia sum = {0};
    int n = 0, n_open = 0;
    bool is_collision = false;
    for (int32_t s = 0; s < link->n_shape; s++)
        is_collision |= u->shapes[link->first_shape + s].is_collision;
    for (int32_t s = 0; s < link->n_shape; s++) {
        const us_shape_def *shape = &u->shapes[link->first_shape + s];
        if (shape->is_collision != is_collision) continue;
        us_inertia one = usi_shape_inertia(shape, density);
        if (!(one.mass > MIN_MASS && one.mass <= 1e15)) {
            n_open++;
            continue;
        }
        sum = usi_inertia_add(&sum, &one);
        n++;
    }
    *out_is_done = n > 0;
    if (n == 0) return US_OK;
    link->inertia = sum;
    char open[80] = "";
    if (n_open > 0) snprintf(open, sizeof open, "; %d without a known volume left out", n_open);
    return usi_warn(u->r, link->node, "add <inertial> with the true mass, centre of mass and moments",
                    "the link moves and has no mass: %.6g kg and moments computed from its %s at 1000 kg/m^3 "
                    "(%d shape%s%s)",
                    sum.mass, is_collision ? "collision shapes" : "visual shapes", n, n == 1 ? "" : "s",
                    open);
}

// What the links of each body have together, kept at the leader.
typedef struct body_sum {
    double mass;
    double below;  // mass of the body and of all that hangs on it
    bool has_moments;
} body_sum;

static void sum_bodies(const usi_urdf *u, body_sum *sums) {
    memset(sums, 0, (size_t)u->n_link * sizeof *sums);
    for (int32_t i = 0; i < u->n_link; i++) {
        body_sum *sum = &sums[u->links[i].body];
        sum->mass += u->links[i].inertia.mass;
        sum->has_moments |= !is_zero(u->links[i].inertia.about_com);
    }
    for (int32_t k = u->n_link - 1; k >= 0; k--) {
        int32_t i = u->order[k];
        if (!is_leader(u, i)) continue;
        sums[i].below += sums[i].mass;
        if (i != u->root) sums[u->links[u->joints[u->links[i].joint].def.parent].body].below += sums[i].below;
    }
}

static us_status fill_massless(usi_urdf *u, const body_sum *sums) {
    for (int32_t k = 0; k < u->n_link; k++) {
        int32_t i = u->order[k];
        bool is_done = false;
        us_status status = is_moving(u, i) && !(sums[u->links[i].body].mass > 0)
                               ? compute_mass(u, &u->links[i], &is_done)
                               : US_OK;
        if (status) return status;
    }
    return US_OK;
}

static us_status fill_moments(usi_urdf *u, body_sum *sums) {
    for (int32_t k = 0; k < u->n_link; k++) {
        int32_t i = u->order[k];
        usi_urdf_link *link = &u->links[i];
        body_sum *sum = &sums[link->body];
        if (!is_moving(u, i) || !(link->inertia.mass > 0) || sum->has_moments) continue;
        // m = 4/3 pi r^3 density, I = 2/5 m r^2
        double r = cbrt(link->inertia.mass / (4.0 / 3 * 3.14159265358979323846 * density)),
               moment = 0.4 * link->inertia.mass * r * r;
        for (int e = 0; e < 3; e++)
            link->inertia.about_com[e] = moment;
        sum->has_moments = true;
        us_status status = usi_warn(u->r, usi_xml_child(link->node, "inertial"),
                                    "add <inertia> with the moments about the centre of mass",
                                    "link \"%s\" has a mass but no inertia: that of a ball of its mass at "
                                    "1000 kg/m^3 is used, %.6g kg m^2 about each axis",
                                    link->name, moment);
        if (status) return status;
    }
    return US_OK;
}

us_status usi_urdf_read_inertias(usi_urdf *u) {
    us_status status = US_OK;
    for (int32_t i = 0; i < u->n_link && !status; i++) {
        status = read_inertial(u, &u->links[i]);
        if (!status && u->links[i].has_inertial && !is_zero(u->links[i].inertia.about_com))
            status = check_moments(u, i);
    }
    if (status) return status;
    body_sum *sums = usi_reader_alloc(u->r, (size_t)u->n_link * sizeof *sums);
    if (!sums) return usi_fail_memory(u->r);
    sum_bodies(u, sums);
    status = fill_massless(u, sums);
    if (status) return status;
    sum_bodies(u, sums);
    status = fill_moments(u, sums);
    for (int32_t i = 0; i < u->n_link && !status; i++) {
        if (!is_leader(u, i) || !is_moving(u, i) || sums[i].below > 0) continue;
        // The first one of a massless branch speaks for all of it.
        int32_t parent = i == u->root ? -1 : u->joints[u->links[i].joint].def.parent;
        if (parent >= 0 && is_moving(u, parent) && !(sums[u->links[parent].body].below > 0)) continue;
        status = usi_warn(u->r, u->links[i].node,
                          "add <inertial>, or give the joint an armature in a scene file; a frame that need "
                          "not move takes a fixed joint",
                          "the link moves, but neither it nor anything on it has mass or a shape to compute "
                          "it from: it stays massless");
    }
    return status;
}
