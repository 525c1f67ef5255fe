// Mass properties of shapes at density 1, radius included.
//
// A sphere of radius r that sweeps a polyhedron adds three sorts of pieces, which meet without gap or overlap
// (seen along an edge):
//
//            ___________________
//          /  |                 |   prism over a face: polygon plus segment of length r along the normal
//         | s |     prism       |   sector s along an edge: segment plus circular sector between two normals
//         |___|_________________|   at a vertex (where edges meet): a ball's sector over the normals' polygon
//             |                 |
//             |   polyhedron    |
//
// Each is a sum of two simple sets (moments.h), so all of them have closed forms; the only one that takes
// thought is the ball's sector. Let P be a polygon of great arcs on the unit sphere, O its area, n a point of
// it, theta_i the length of arc i, m_i the unit normal of its plane, inwards, and c_i the integral of n along
// it. The divergence theorem on the sphere, for the tangent fields a - (a.n) n and (b.n)(a - (a.n) n), gives
//
//     integral of n     = 1/2 sum theta_i m_i
//     integral of n n^T = 1/3 (O 1 + sum of the symmetric part of m_i c_i^T)
//
// and the sector's moments are r^3/3, r^4/4 and r^5/5 times those of P. For the arc at an edge's end, m is
// the edge's direction (towards the edge's outside).
//
// Round kinds (disc, cylinder, cone) are solids of revolution whose profile consists of lines and arcs:
// one-dimensional integrals of polynomials, and of trigonometric polynomials of degree 6, which Gauss' rule
// with 16 points gets to the last digit. Only the swept ellipsoid has no closed form (its volume holds
// elliptic integrals); it is integrated over its surface.
//
// Unions are the sum of their parts: space that parts share counts as often. Intersections are cut into rods
// along z, each from where a ray from below meets the solid to where one from above does; only rods at its
// outline err, together by some 1e-4 of the mass.
#include "geom/geom.h"
#include "geom/moments.h"

static const double pi = 3.14159265358979323846;

static us_inertia no_answer(void) {
    us_inertia I = {.mass = NAN, .com = {NAN, NAN, NAN}, .about_com = {NAN, NAN, NAN, NAN, NAN, NAN}};
    return I;
}

// ---- Boxes with a radius: sphere, capsule, lozenge, box ----

// Integral of x^2 over the octant x, y, z >= 0 of a box with half lengths a (along x), b, c, swept by r.
static double octant_xx(double a, double b, double c, double r) {
    double core = a * a * a / 3, r2 = r * r, r3 = r2 * r, r4 = r2 * r2, out = a + r;
    double slabs = (out * out * out - a * a * a) / 3 * b * c + core * r * (b + c);
    double edges = core * pi / 4 * r2 + (b + c) * (a * a * pi / 4 * r2 + 2 * a * r3 / 3 + pi / 16 * r4);
    double corner = a * a * pi / 6 * r3 + a * pi / 8 * r4 + pi / 30 * r4 * r;
    return core * b * c + slabs + edges + corner;
}

static us_inertia box_inertia(double a, double b, double c, double r) {
    us_inertia I = {0};
    I.mass =
        8 * (a * b * c + r * (a * b + b * c + c * a) + pi / 4 * r * r * (a + b + c) + pi / 6 * r * r * r);
    double xx = 8 * octant_xx(a, b, c, r), yy = 8 * octant_xx(b, c, a, r), zz = 8 * octant_xx(c, a, b, r);
    I.about_com[0] = yy + zz;
    I.about_com[1] = xx + zz;
    I.about_com[2] = xx + yy;
    return I;
}

// ---- Solids of revolution: disc, cylinder, cone ----

// Gauss' rule with 16 points on -1 .. 1: nodes above 0 and their weights; the others mirror them.
static const double gauss_x[8] = {0.0950125098376374402, 0.281603550779258913, 0.458016777657227386,
                                  0.617876244402643748,  0.755404408355003034, 0.865631202387831744,
                                  0.944575023073232576,  0.989400934991649933};
static const double gauss_w[8] = {0.189450610455068496,  0.182603415044923589, 0.169156519395002538,
                                  0.149595988816576732,  0.124628971255533872, 0.0951585116824927848,
                                  0.0622535239386478929, 0.0271524594117540949};

// Adds disc after disc: a slice at z of radius rho and thickness dz.
static void add_slice(usi_moments *M, double rho, double z, double dz) {
    double a = pi * rho * rho * dz, across = 0.25 * a * rho * rho;
    M->m += a;
    M->s.z += a * z;
    M->q[0] += across;
    M->q[1] += across;
    M->q[2] += a * z * z;
}

static void add_line(usi_moments *M, double rho0, double z0, double rho1, double z1) {
    for (int i = 0; i < 16; i++) {
        double t = 0.5 * (1 + (i < 8 ? -gauss_x[i] : gauss_x[i - 8]));
        add_slice(M, rho0 + t * (rho1 - rho0), z0 + t * (z1 - z0), 0.5 * gauss_w[i % 8] * (z1 - z0));
    }
}

// The part of a circle of radius r about (rho, z) whose normal turns from the angle `from` to `to`, counted
// from the rho axis towards z.
static void add_arc(usi_moments *M, double rho, double z, double r, double from, double to) {
    for (int i = 0; i < 16; i++) {
        double t = 0.5 * (1 + (i < 8 ? -gauss_x[i] : gauss_x[i - 8])), angle = from + t * (to - from);
        add_slice(M, rho + r * cos(angle), z + r * sin(angle),
                  0.5 * gauss_w[i % 8] * (to - from) * r * cos(angle));
    }
}

static us_inertia cylinder_inertia(double radius, double half, double r) {
    usi_moments M = {0};
    add_arc(&M, radius, -half, r, -pi / 2, 0);
    add_line(&M, radius + r, -half, radius + r, half);
    add_arc(&M, radius, half, r, 0, pi / 2);
    // About the middle, where its centre of mass is.
    M.s.z = 0;
    return usi_moments_inertia(&M, us_vec3_make(0, 0, 0));
}

static us_inertia cone_inertia(double radius, double half, double r) {
    // The side's normal; a cone of no size is a point, and any angle serves.
    double lean = radius > 0 || half > 0 ? atan2(radius, 2 * half) : 0, out = r * cos(lean),
           up = r * sin(lean);
    usi_moments M = {0};
    add_arc(&M, radius, -half, r, -pi / 2, lean);
    add_line(&M, radius + out, -half + up, out, half + up);
    add_arc(&M, 0, half, r, lean, pi / 2);
    return usi_moments_inertia(&M, us_vec3_make(0, 0, 0));
}

// ---- Ellipsoids ----

// With p the distance of the tangent plane from the centre, an ellipsoid with half axes a, b, c has at the
// point y
//     area element  (a b c / p) dO (dO of the unit sphere that it is an image of), curvatures  K = p^4 / (a b
//     c)^2  and 2 H = p^3 (a^2 + b^2 + c^2 - |y|^2) / (a b c)^2,
// and the swept surface x = y + r n has 1 + 2 H r + K r^2 times the area, at the distance p + r. One octant;
// nodes crowd towards its sides (tanh-sinh rule), where flat and needle-like ellipsoids have all their
// curvature.
static us_inertia swept_ellipsoid_inertia(const double *size, double r) {
    enum { N = 128 };
    // Flatter than this is no different: the radius covers it.
    double min_size = 1e-4 * fmax(r, fmax(size[0], fmax(size[1], size[2])));
    double a = fmax(size[0], min_size), b = fmax(size[1], min_size), c = fmax(size[2], min_size),
           abc = a * b * c;
    double sine[2 * N + 1], cosine[2 * N + 1], weight[2 * N + 1], h = 3.2 / (double)N;
    for (int i = 0; i <= 2 * N; i++) {
        double t = (i - N) * h, u = 0.5 * pi * sinh(t), from_0 = 0.5 * pi / (1 + exp(-2 * u)),
               from_1 = 0.5 * pi / (1 + exp(2 * u));
        // Both are angles measured from their own end, so that neither loses digits near it.
        sine[i] = sin(from_0);
        cosine[i] = sin(from_1);
        weight[i] = h * 0.5 * pi * cosh(t) * 2 * from_0 * from_1 / (0.5 * pi);
    }
    double m = 0, xx = 0, yy = 0, zz = 0;
    for (int i = 0; i <= 2 * N; i++) {
        for (int j = 0; j <= 2 * N; j++) {
            us_vec3 u = us_vec3_make(sine[i] * cosine[j], sine[i] * sine[j], cosine[i]),
                    n = us_vec3_make(u.x / a, u.y / b, u.z / c);
            double p = 1 / us_vec3_norm(n), p2 = p * p, k = p / abc;
            us_vec3 y = us_vec3_make(a * u.x, b * u.y, c * u.z), x = us_vec3_add(y, us_vec3_scale(r * p, n));
            double bend = p2 * (a * a + b * b + c * c - us_vec3_dot(y, y)) / abc;
            // (p + r) dA, with the a b c / p multiplied into the curvatures.
            double volume = weight[i] * weight[j] * sine[i] * (p + r) * (abc / p + r * bend + r * r * p2 * k);
            m += volume;
            xx += volume * x.x * x.x;
            yy += volume * x.y * x.y;
            zz += volume * x.z * x.z;
        }
    }
    // Cones from the centre to the surface: 1/3 of the volume element, 1/5 for second moments; 8 octants.
    us_inertia I = {.mass = 8 * m / 3};
    I.about_com[0] = 8 * (yy + zz) / 5;
    I.about_com[1] = 8 * (xx + zz) / 5;
    I.about_com[2] = 8 * (xx + yy) / 5;
    return I;
}

static us_inertia ellipsoid_inertia(const double *s, double r) {
    if (r > 0 && s[0] == s[1] && s[1] == s[2]) return box_inertia(0, 0, 0, s[0] + r);
    if (r > 0) return swept_ellipsoid_inertia(s, r);
    us_inertia I = {.mass = 4.0 / 3 * pi * s[0] * s[1] * s[2]};
    double f = I.mass / 5, x = s[0] * s[0], y = s[1] * s[1], z = s[2] * s[2];
    I.about_com[0] = f * (y + z);
    I.about_com[1] = f * (x + z);
    I.about_com[2] = f * (x + y);
    return I;
}

// ---- Pieces of swept polyhedra ----

static double angle_between(us_vec3 u, us_vec3 v) {
    return atan2(us_vec3_norm(us_vec3_cross(u, v)), us_vec3_dot(u, v));
}

// The circular sector of radius r between the unit vectors u and v, less than half a circle apart.
static usi_moments sector(us_vec3 u, us_vec3 v, double r) {
    double theta = angle_between(u, v);
    us_vec3 sum = us_vec3_add(u, v), difference = us_vec3_sub(v, u);
    double n_sum = us_vec3_norm(sum), n_difference = us_vec3_norm(difference);
    us_vec3 b = us_vec3_scale(1 / n_sum, sum),
            t = n_difference > 0 ? us_vec3_scale(1 / n_difference, difference) : us_vec3_make(0, 0, 0);
    usi_moments M = {.m = 0.5 * theta * r * r, .s = us_vec3_scale(r * r * r / 3 * 2 * sin(0.5 * theta), b)};
    double f = r * r * r * r / 8;
    usi_moments_add_outer(&M, f * (theta + sin(theta)), b, b);
    usi_moments_add_outer(&M, f * (theta - sin(theta)), t, t);
    return M;
}

// What one arc of a polygon on the sphere adds to the ball's sector over it: `area` on the sphere (as far as
// it is charged to this arc), the arc's length, its inward normal m and the integral c of the points along
// it.
static usi_moments ball_piece(double area, double theta, us_vec3 m, us_vec3 c, double r) {
    double r3 = r * r * r, r4 = r3 * r, r5 = r4 * r;
    usi_moments M = {.m = r3 / 3 * area, .s = us_vec3_scale(r4 / 8 * theta, m)};
    for (int i = 0; i < 3; i++)
        M.q[i] = r5 / 15 * area;
    usi_moments_add_outer(&M, r5 / 15, m, c);
    return M;
}

// The area of a triangle on the unit sphere, signed: above 0 when u, v, w run counter-clockwise seen from
// outside.
static double sphere_triangle(us_vec3 u, us_vec3 v, us_vec3 w) {
    return 2 * atan2(us_vec3_dot(u, us_vec3_cross(v, w)),
                     1 + us_vec3_dot(u, v) + us_vec3_dot(v, w) + us_vec3_dot(w, u));
}

static usi_moments point_moments(us_vec3 p) { return usi_moments_simplex(1, &p, 1); }

static void add_product(usi_moments *M, const usi_moments *a, const usi_moments *b) {
    usi_moments P = usi_moments_product(a, b);
    usi_moments_add(M, &P);
}

// A segment from 0 to r n across a face.
static usi_moments across(us_vec3 n, double r) {
    us_vec3 p[2] = {{0, 0, 0}, us_vec3_scale(r, n)};
    return usi_moments_simplex(r, p, 2);
}

// ---- Polyhedra: convex, tetrahedron ----

static us_inertia polyhedron_inertia(const us_hull *h, double r) {
    us_vec3 origin = us_vec3_make(0, 0, 0);
    for (int32_t v = 0; v < h->n_vertex; v++)
        origin = us_vec3_add(origin, us_vec3_scale(1.0 / h->n_vertex, h->vertex[v]));
    usi_moments M = {0};
    for (int32_t f = 0; f < h->n_face; f++) {
        const int32_t *c = h->face_vertex + h->face_start[f];
        usi_moments face = {0};
        us_vec3 p[3] = {us_vec3_sub(h->vertex[c[0]], origin)};
        for (int32_t k = 2; k < h->face_start[f + 1] - h->face_start[f]; k++) {
            p[1] = us_vec3_sub(h->vertex[c[k - 1]], origin);
            p[2] = us_vec3_sub(h->vertex[c[k]], origin);
            usi_moments solid = usi_moments_tetrahedron(p[0], p[1], p[2]);
            usi_moments_add(&M, &solid);
            double area = 0.5 * us_vec3_dot(h->normal[f],
                                            us_vec3_cross(us_vec3_sub(p[1], p[0]), us_vec3_sub(p[2], p[0])));
            usi_moments triangle = usi_moments_simplex(area, p, 3);
            usi_moments_add(&face, &triangle);
        }
        usi_moments thick = across(h->normal[f], r);
        add_product(&M, &face, &thick);
    }
    for (int32_t e = 0; r > 0 && e < h->n_edge; e++) {
        us_vec3 p[2] = {us_vec3_sub(h->vertex[h->edge[e][0]], origin),
                        us_vec3_sub(h->vertex[h->edge[e][1]], origin)};
        us_vec3 left = h->normal[h->edge[e][2]], right = h->normal[h->edge[e][3]],
                d = us_vec3_sub(p[1], p[0]);
        double length = us_vec3_norm(d), theta = angle_between(left, right), turn = tan(0.5 * theta);
        if (!(length > 0)) continue;
        usi_moments line = usi_moments_simplex(length, p, 2), round = sector(left, right, r);
        add_product(&M, &line, &round);
        // Round a vertex the normals run counter-clockwise: from the right to the left face of an edge that
        // leaves it. The area of their polygon is cut into triangles with one more corner, outwards from the
        // middle; any would do, as long as it is the same for all arcs.
        us_vec3 along = us_vec3_scale(turn, us_vec3_add(left, right));
        for (int end = 0; end < 2; end++) {
            us_vec3 middle = us_vec3_scale(1 / us_vec3_norm(p[end]), p[end]),
                    inwards = us_vec3_scale((end ? 1 : -1) / length, d);
            double area = end ? sphere_triangle(middle, left, right) : sphere_triangle(middle, right, left);
            usi_moments ball = ball_piece(area, theta, inwards, along, r), corner = point_moments(p[end]);
            add_product(&M, &corner, &ball);
        }
    }
    return usi_moments_inertia(&M, origin);
}

// ---- Flat polygons with a radius: triangle, flat tetrahedron; lines and points among them ----

// p: the corners of a convex polygon, counter-clockwise about the unit vector z, about the origin of the
// moments. Two corners are a line there and back, one is a point.
static usi_moments polygon_moments(const us_vec3 *p, int n, us_vec3 z, double r) {
    usi_moments M = {0};
    if (n == 1) {
        usi_moments ball = {.m = 4.0 / 3 * pi * r * r * r}, centre = point_moments(p[0]);
        ball.q[0] = ball.q[1] = ball.q[2] = ball.m * r * r / 5;
        return usi_moments_product(&centre, &ball);
    }
    usi_moments thick = across(z, r), below = across(us_vec3_scale(-1, z), r);
    usi_moments_add(&thick, &below);
    for (int k = 2; k < n; k++) {
        us_vec3 corner[3] = {p[0], p[k - 1], p[k]};
        double area =
            0.5 * us_vec3_dot(z, us_vec3_cross(us_vec3_sub(p[k - 1], p[0]), us_vec3_sub(p[k], p[0])));
        usi_moments triangle = usi_moments_simplex(area, corner, 3);
        add_product(&M, &triangle, &thick);
    }
    us_vec3 d[4], out[4];
    for (int k = 0; k < n; k++) {
        us_vec3 side[2] = {p[k], p[(k + 1) % n]}, along = us_vec3_sub(side[1], side[0]);
        double length = us_vec3_norm(along);
        d[k] = us_vec3_scale(1 / length, along);
        out[k] = us_vec3_cross(d[k], z);
        // Half a cylinder, as two quarters.
        usi_moments line = usi_moments_simplex(length, side, 2), round = sector(z, out[k], r),
                    lower = sector(out[k], us_vec3_scale(-1, z), r);
        usi_moments_add(&round, &lower);
        add_product(&M, &line, &round);
    }
    for (int k = 0; k < n; k++) {
        // At a corner the ball's sector is a slice between two half circles from z to -z, through the outward
        // directions of its two sides.
        int before = (k + n - 1) % n;
        double turn = atan2(us_vec3_dot(z, us_vec3_cross(d[before], d[k])), us_vec3_dot(d[before], d[k]));
        // There and back along a line: half a turn, and never minus half a turn by rounding.
        if (n == 2) turn = pi;
        usi_moments ball = ball_piece(turn, pi, d[before], us_vec3_scale(2, out[before]), r);
        usi_moments other = ball_piece(turn, pi, us_vec3_scale(-1, d[k]), us_vec3_scale(2, out[k]), r),
                    corner = point_moments(p[k]);
        usi_moments_add(&ball, &other);
        add_product(&M, &corner, &ball);
    }
    return M;
}

// The convex polygon around n points in a plane of normal z, counter-clockwise from an outermost one: always
// on to the point that leaves all others on the left, the farthest of those in line. Returns its number of
// corners.
static int wrap_polygon(const us_vec3 *p, int n, int first, us_vec3 z, double size2, us_vec3 *polygon) {
    int count = 0, at = first;
    do {
        polygon[count++] = p[at];
        int next = at == 0 ? 1 : 0;
        for (int i = 0; i < n; i++) {
            us_vec3 a = us_vec3_sub(p[next], p[at]), b = us_vec3_sub(p[i], p[at]);
            double side = us_vec3_dot(z, us_vec3_cross(a, b)), aa = us_vec3_dot(a, a), bb = us_vec3_dot(b, b);
            bool in_line = fabs(side) <= 1e-12 * size2;
            if (!in_line ? side < 0 : bb > aa) next = i;
        }
        at = next;
    } while (at != first && count < n);
    return count;
}

// The convex polygon around up to 4 points that lie in a plane or nearly so, swept.
static us_inertia flat_inertia(const us_vec3 *point, int n, double r) {
    us_vec3 p[4], z = us_vec3_make(0, 0, 0), origin = point[0];
    double size2 = 0, widest = 0;
    int far[2] = {0, 0};
    for (int i = 0; i < n; i++)
        p[i] = us_vec3_sub(point[i], origin);
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            us_vec3 d = us_vec3_sub(p[j], p[i]);
            if (us_vec3_dot(d, d) > size2) {
                size2 = us_vec3_dot(d, d);
                far[0] = i;
                far[1] = j;
            }
            for (int k = j + 1; k < n; k++) {
                us_vec3 c = us_vec3_cross(d, us_vec3_sub(p[k], p[i]));
                if (us_vec3_norm(c) > widest) {
                    widest = us_vec3_norm(c);
                    z = c;
                }
            }
        }
    }
    us_vec3 polygon[5];
    int count = 0;
    if (!(size2 > 0)) {
        polygon[count++] = p[0];
    } else if (widest <= 1e-12 * size2) {
        // A line. Any direction across it will do: the one beside its smallest component.
        us_vec3 d = us_vec3_sub(p[far[1]], p[far[0]]);
        double ax = fabs(d.x), ay = fabs(d.y), az = fabs(d.z);
        us_vec3 beside = ax <= ay && ax <= az ? us_vec3_make(1, 0, 0)
                         : ay <= az           ? us_vec3_make(0, 1, 0)
                                              : us_vec3_make(0, 0, 1);
        z = us_vec3_cross(d, beside);
        polygon[count++] = p[far[0]];
        polygon[count++] = p[far[1]];
    }
    z = us_vec3_norm(z) > 0 ? us_vec3_scale(1 / us_vec3_norm(z), z) : us_vec3_make(0, 0, 1);
    if (count == 0) count = wrap_polygon(p, n, far[0], z, size2, polygon);
    usi_moments M = polygon_moments(polygon, count, z, r);
    return usi_moments_inertia(&M, origin);
}

static us_inertia tetrahedron_inertia(const us_vec3 *point, double r) {
    us_vec3 vertex[4] = {point[0], point[1], point[2], point[3]}, normal[4];
    us_vec3 a = us_vec3_sub(point[1], point[0]), b = us_vec3_sub(point[2], point[0]),
            c = us_vec3_sub(point[3], point[0]);
    double six = us_vec3_dot(a, us_vec3_cross(b, c)),
           size = fmax(us_vec3_norm(a), fmax(us_vec3_norm(b), us_vec3_norm(c)));
    // Too flat for its faces to have good normals: here both ways of looking at it err by about 1e-8.
    if (fabs(six) <= 1e-8 * size * size * size) return flat_inertia(point, 4, r);
    if (six < 0) {
        vertex[0] = point[1];
        vertex[1] = point[0];
    }
    int32_t face_vertex[12] = {0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2}, face_start[5] = {0, 3, 6, 9, 12};
    // Lower vertex, higher vertex, the face left of the way from one to the other, the face right of it.
    int32_t edge[6][4] = {{0, 1, 1, 0}, {0, 2, 0, 3}, {0, 3, 3, 1}, {1, 2, 2, 0}, {1, 3, 1, 2}, {2, 3, 2, 3}};
    for (int f = 0; f < 4; f++) {
        const int32_t *k = face_vertex + 3 * f;
        us_vec3 n =
            us_vec3_cross(us_vec3_sub(vertex[k[1]], vertex[k[0]]), us_vec3_sub(vertex[k[2]], vertex[k[0]]));
        normal[f] = us_vec3_scale(1 / us_vec3_norm(n), n);
    }
    us_hull h = {.n_vertex = 4,
                 .n_face = 4,
                 .n_edge = 6,
                 .vertex = vertex,
                 .normal = normal,
                 .face_start = face_start,
                 .face_vertex = face_vertex,
                 .edge = edge};
    return polyhedron_inertia(&h, r);
}

// ---- Unions ----

static usi_moments moments_of(const us_inertia *I, us_pose X_GP) {
    // In the axes of G, through R J R^T with J the second moments about the centre of mass.
    us_mat3 R = us_quat_matrix(X_GP.q);
    const double *J = I->about_com, half = 0.5 * (J[0] + J[1] + J[2]);
    const double q[9] = {half - J[0], -J[3], -J[4], -J[3], half - J[1], -J[5], -J[4], -J[5], half - J[2]};
    us_vec3 column[3], c = us_pose_point(X_GP, I->com);
    for (int i = 0; i < 3; i++)
        column[i] = us_vec3_make(R.m[i], R.m[3 + i], R.m[6 + i]);
    usi_moments M = {.m = I->mass, .s = us_vec3_scale(I->mass, c)};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            usi_moments_add_outer(&M, q[3 * i + j], column[i], column[j]);
    }
    usi_moments_add_outer(&M, I->mass, c, c);
    return M;
}

static us_inertia union_inertia(const us_geom *g) {
    usi_moments M = {0};
    bool is_known = true;
    for (int32_t i = 0; i < g->n_part; i++) {
        us_geom part = g->parts[i].geom;
        part.radius += g->radius;
        us_inertia I = us_geom_unit_inertia(&part);
        if (isnan(I.mass)) is_known = false;
        usi_moments N = moments_of(&I, g->parts[i].X_GP);
        usi_moments_add(&M, &N);
    }
    return is_known ? usi_moments_inertia(&M, us_vec3_make(0, 0, 0)) : no_answer();
}

// ---- Intersections ----

static us_inertia intersection_inertia(const us_geom *g) {
    enum { RODS = 200 };  // each way; a solid of two parts takes some 10 ms
    us_pose X = us_pose_identity();
    us_aabb b = us_geom_box(g, X);
    us_vec3 d = us_vec3_sub(b.max, b.min), middle = us_vec3_scale(0.5, us_vec3_add(b.min, b.max)),
            up = us_vec3_make(0, 0, 1), down = us_vec3_make(0, 0, -1);
    if (d.x <= 0 || d.y <= 0 || d.z <= 0) return (us_inertia){0};
    if (!isfinite(d.x + d.y + d.z)) return no_answer();  // half spaces only
    usi_moments M = {0};
    double dx = d.x / (double)RODS, dy = d.y / (double)RODS, start = 0.75 * d.z;
    for (int i = 0; i < RODS; i++) {
        for (int j = 0; j < RODS; j++) {
            us_vec3 at = us_vec3_make((i + 0.5) * dx - 0.5 * d.x, (j + 0.5) * dy - 0.5 * d.y, 0),
                    o = us_vec3_add(middle, at);
            double low = us_geom_ray(g, X, us_vec3_make(o.x, o.y, o.z - start), up, 2 * start).range - start;
            double high =
                start - us_geom_ray(g, X, us_vec3_make(o.x, o.y, o.z + start), down, 2 * start).range;
            if (!(high > low)) continue;
            us_vec3 end[2] = {{at.x, at.y, low}, {at.x, at.y, high}};
            usi_moments rod = usi_moments_simplex((high - low) * dx * dy, end, 2);
            rod.q[0] += rod.m * dx * dx / 12;
            rod.q[1] += rod.m * dy * dy / 12;
            usi_moments_add(&M, &rod);
        }
    }
    return usi_moments_inertia(&M, middle);
}

us_inertia us_geom_unit_inertia(const us_geom *geom) {
    const double *s = geom->size;
    double r = geom->radius;
    switch (geom->kind) {
    case US_GEOM_SPHERE:
        return box_inertia(0, 0, 0, r);
    case US_GEOM_CAPSULE:
        return box_inertia(0, 0, s[0], r);
    case US_GEOM_LOZENGE:
        return box_inertia(s[0], s[1], 0, r);
    case US_GEOM_BOX:
        return box_inertia(s[0], s[1], s[2], r);
    case US_GEOM_DISC:
        return cylinder_inertia(s[0], 0, r);
    case US_GEOM_CYLINDER:
        return cylinder_inertia(s[0], s[1], r);
    case US_GEOM_CONE:
        return cone_inertia(s[0], s[1], r);
    case US_GEOM_ELLIPSOID:
        return ellipsoid_inertia(s, r);
    case US_GEOM_TRIANGLE:
        return flat_inertia(geom->point, 3, r);
    case US_GEOM_TETRAHEDRON:
        return tetrahedron_inertia(geom->point, r);
    case US_GEOM_CONVEX:
        return polyhedron_inertia(geom->hull, r);
    case US_GEOM_MESH:
        return r > 0 ? no_answer()
                     : geom->mesh->unit_inertia;  // what a swept mesh encloses twice is not known
    case US_GEOM_UNION:
        return union_inertia(geom);
    case US_GEOM_INTERSECTION:
        return intersection_inertia(geom);
    default:
        return no_answer();
    }
}
