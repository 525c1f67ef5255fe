// Forces of a rigid wheel on soft soil.
//
//              o  hub              theta counts from straight down, positive ahead.
//            / | .
//     exit  /  |  \  entry         The rim meets the soil at `entry`, presses hardest at `peak`, leaves at
//    _____ /   |   \____ surface   `exit`. The normal stress between entry and peak is Bekker's for the depth
//         \    |peak/              there; between peak and exit it falls off as it rose, mirrored and
//           '--+--'                stretched (Wong and Reece).
//
// Shear stress grows with the distance that the rim has slipped through the soil since it entered (Janosi and
// Hanamoto), up to the Mohr-Coulomb limit of the normal stress. Both directions are taken together by
// default: j = hypot(jx, jy), which never exceeds that limit; Ishigami's form, each direction by itself, is
// kept for comparison with the literature.
//
// Soil that was pressed before follows its unloading line until the stress reaches the curve of fresh soil
// again (Wong): a second wheel in the same rut sinks hardly deeper.
//
// Each of the two parts of the arc is integrated by itself: one rule over the whole arc, with the kink
// inside, would need ten times as many points.
#include <float.h>

#include "math/v4_functions.h"
#include "understudy/soil.h"

// Quadrature points and weights on [0, 1], from where the stress is 0, the entry or the exit, to where it is
// maximal.
enum { N_POINT = 8, N_QUAD = N_POINT / 4 };
typedef struct rule {
    _Alignas(32) double at[N_POINT], weight[N_POINT];
} rule;
// For n = 1 all is smooth: Gauss points. Otherwise z^n has a corner where it begins, which points that crowd
// there resolve: Gauss points in the cube root of the distance. Both are good to 1e-6 for every soil of the
// library; Gauss points in the distance itself would be good to 5e-4 for clay.
static const rule smooth_rule = {
    {0.019855071751231856, 0.10166676129318658, 0.2372337950418355, 0.40828267875217511, 0.59171732124782483,
     0.7627662049581645, 0.89833323870681348, 0.9801449282487682},
    {0.050614268145188393, 0.11119051722668723, 0.15685332293894369, 0.181341891689181, 0.181341891689181,
     0.15685332293894369, 0.11119051722668723, 0.050614268145188393}};
static const rule corner_rule = {
    {7.8273433092141578e-06, 0.0010508408971763657, 0.013351487977240289, 0.06805857733650128,
     0.20717762371412879, 0.44378674742710805, 0.72495726627880142, 0.94160962902573508},
    {5.9860058641052042e-05, 0.0034478390398325789, 0.026483055523858028, 0.090686221597220867,
     0.19047937681169008, 0.27377756994631985, 0.26919311208218494, 0.14587296494025342}};

static const double MAX_SINKAGE = 0.95;      // over the radius: beyond it the arc would end above the hub
static const double MAX_SHEAR = 20;          // shear displacement over its modulus: more changes nothing
static const double BULLDOZE_ANGLE = 0.035;  // rad: below it the side force fades, where its sign would jump
static const double MIN_SPEED = 1e-3;        // m/s: slip of slower wheels is relative to this speed

// Normal stress at a depth below the present surface.
typedef struct stress_law {
    double k, n;         // fresh soil: k z^n
    double rut, reload;  // m below the fresh surface; Pa/m of reloading, 0: the soil is fresh
} stress_law;

static stress_law law_of(const us_soil *soil, double width, double pressed) {
    stress_law law = {.k = soil->kc / width + soil->kphi, .n = soil->n};
    double reload = soil->unload + soil->unload_depth * pressed;
    if (pressed > 0 && reload > 0) {
        law.reload = reload;
        law.rut = us_soil_rut_depth(soil, width, pressed);
    }
    return law;
}

// Stress at depths greater than 0.
static usi_v4 stress(const stress_law *law, usi_v4 depth) {
    usi_v4 z = law->rut + depth;
    usi_v4 fresh = law->k * (law->n == 1 ? z : usi_v4_exp(law->n * usi_v4_log(z)));
    return law->reload > 0 ? usi_v4_min(law->reload * depth, fresh) : fresh;
}

double us_soil_rut_depth(const us_soil *soil, double width, double pressed) {
    double reload = soil->unload + soil->unload_depth * pressed;
    if (!(pressed > 0) || !(reload > 0)) return 0;
    return fmax(0, pressed - (soil->kc / width + soil->kphi) * pow(pressed, soil->n) / reload);
}

// Grousers carry the soil between them along: the effective radius reaches to their tips where they are
// close together, half way to them where they are not.
double us_soil_wheel_radius(const us_soil_wheel *wheel) {
    if (wheel->n_grouser <= 0 || !(wheel->grouser_height > 0)) return wheel->radius;
    double spacing = 2 * M_PI * wheel->radius / wheel->n_grouser;
    return wheel->radius + (spacing > 3 * wheel->grouser_height ? 0.5 : 1) * wheel->grouser_height;
}

// Bulldozing resistance of a wall of height h, N/m: linear h + square h^2 (Hegedus).
typedef struct bulldozing {
    double linear, square;
} bulldozing;

static bulldozing bulldozing_of(const us_soil *soil, double gravity) {
    double phi = soil->friction_angle, x = 0.25 * M_PI - 0.5 * phi;
    double cot_x = 1 / tan(x), d1 = cot_x + tan(x + phi), d2 = cot_x + cot_x * cot_x * tan(phi);
    return (bulldozing){.linear = d1 * soil->cohesion, .square = 0.5 * d1 * d2 * soil->density * gravity};
}

// Adds the thrust of the grousers: each one in the soil is a spud with a wedge of soil before it (Bekker), as
// far as the wheel slips at all. s: slip, kx: shear modulus along the wheel.
static void add_grousers(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history, double s,
                         double kx, us_wheel_force *f) {
    double r = us_soil_wheel_radius(wheel), b = wheel->width;
    double hg = wheel->grouser_height, t = tan(0.25 * M_PI + 0.5 * soil->friction_angle), n_phi = t * t;
    double mean = f->fz / (r * b * (f->entry - f->exit));  // Pa, on the rim
    double spud = b * (0.5 * soil->density * history.gravity * hg * hg * n_phi + mean * hg * n_phi +
                       2 * soil->cohesion * hg * t);
    double n_in = wheel->n_grouser * (f->entry - f->exit) / (2 * M_PI);
    double mobilised = copysign(1 - exp(-fabs(s) * r * f->entry / kx), s);
    f->fx += n_in * spud * mobilised;
    f->moment += n_in * spud * mobilised * r;
}

// Shear of the soil under the rim.
typedef struct shear_law {
    double cohesion, tan_phi;  // Mohr-Coulomb: the limit is cohesion + sigma tan phi
    double kx, ky;             // m, shear moduli along the wheel and across it
    double advance;            // radii that the hub moves while the rim rotates by an angle of 1
    double tan_beta;           // of the slip angle
    bool is_isotropic;
} shear_law;

static inline shear_law shear_law_of(const us_soil *soil, double s, double beta) {
    return (shear_law){
        .cohesion = soil->cohesion,
        .tan_phi = tan(soil->friction_angle),
        .tan_beta = tan(fmin(beta, 1.55)),
        .kx = soil->shear_x + soil->shear_x_angle * beta,
        .ky = soil->shear_y + soil->shear_y_angle * beta,
        .is_isotropic = soil->lateral == US_LATERAL_ISOTROPIC,
        // Driving 1 - s; braking 1 / (1 + s), where s is relative to the hub's speed.
        .advance = s >= 0 ? 1 - s : 1 / fmax(1 + s, 1e-6),
    };
}

// Shear stresses for displacements jx along the wheel and jy across it, up to the limit.
static inline void shear_stress(const shear_law *law, usi_v4 limit, usi_v4 jx, usi_v4 jy, usi_v4 *tau_x,
                                usi_v4 *tau_y) {
    const usi_v4 longest = usi_v4_all(MAX_SHEAR);
    if (law->is_isotropic) {
        usi_v4 j = usi_v4_max(usi_v4_sqrt(jx * jx + jy * jy), usi_v4_all(DBL_MIN));
        usi_v4 tau = limit * (1 - usi_v4_exp(-usi_v4_min(j / law->kx, longest))) / j;
        *tau_x = tau * jx;
        *tau_y = tau * jy;
    } else {
        usi_v4 along = limit * (1 - usi_v4_exp(-usi_v4_min(usi_v4_abs(jx) / law->kx, longest)));
        *tau_x = usi_v4_copysign(along, jx);
        *tau_y = limit * (1 - usi_v4_exp(-usi_v4_min(jy / law->ky, longest)));
    }
}

us_wheel_force us_soil_wheel_force(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history,
                                   double sinkage, double slip, double slip_angle) {
    us_wheel_force f = {0};
    if (!(sinkage > 0)) return f;

    // Arc in the soil.
    double r = us_soil_wheel_radius(wheel), b = wheel->width;
    f.is_buried = sinkage > MAX_SINKAGE * r;
    double h = fmin(sinkage, MAX_SINKAGE * r);
    double s = fmin(fmax(slip, -1), 1), beta = fabs(slip_angle);
    stress_law law = law_of(soil, b, history.pressed);
    f.depth = law.rut + h;
    f.entry = acos(1 - h / r);
    f.exit = -acos(fmax(-1, 1 - soil->exit_ratio * h / r));
    f.peak = fmin((soil->peak_angle + soil->peak_angle_slip * fabs(s)) * f.entry, f.entry);

    // Angles of the quadrature points. The stress at a fraction of the distance from the exit to the peak is
    // that at the same fraction from the entry: it is computed once, at the angles of the front part.
    const rule *points = law.n == 1 ? &smooth_rule : &corner_rule;
    double front = f.entry - f.peak, rear = f.peak - f.exit;
    _Alignas(32) double angle[2 * N_POINT], sine[2 * N_POINT], cosine[2 * N_POINT];
    for (int i = 0; i < N_POINT; i++) {
        angle[i] = f.entry - front * points->at[i];
        angle[N_POINT + i] = f.exit + rear * points->at[i];
    }
    usi_sincos(2 * N_POINT, angle, sine, cosine);

    // Integrals of the stresses over the rim, four points at a time.
    const shear_law shear = shear_law_of(soil, s, beta);
    const bulldozing side = bulldozing_of(soil, history.gravity);
    double cos_f = 1 - h / r, sin_f = sqrt(h / r * (2 - h / r));
    usi_v4 sum_x = usi_v4_zero(), sum_z = sum_x, sum_m = sum_x, sum_y = sum_x, sum_side = sum_x;
    for (int q = 0; q < N_QUAD; q++) {
        usi_v4 weight = *(const usi_v4 *)(points->weight + 4 * q),
               cos_front = *(const usi_v4 *)(cosine + 4 * q);
        usi_v4 sigma = stress(&law, usi_v4_max(r * (cos_front - cos_f), usi_v4_all(DBL_MIN)));
        usi_v4 limit = shear.cohesion + sigma * shear.tan_phi;
        for (int part = 0; part < 2; part++) {
            int at = part * N_POINT + 4 * q;
            usi_v4 th = *(const usi_v4 *)(angle + at), sin_t = *(const usi_v4 *)(sine + at),
                   cos_t = *(const usi_v4 *)(cosine + at);
            usi_v4 w = weight * (part == 0 ? front : rear);
            usi_v4 jx = r * (f.entry - th - shear.advance * (sin_f - sin_t)),
                   jy = r * shear.advance * (f.entry - th) * shear.tan_beta, tau_x, tau_y;
            shear_stress(&shear, limit, jx, jy, &tau_x, &tau_y);
            usi_v4 height = usi_v4_max(r * (cos_t - cos_f), usi_v4_zero());
            sum_x += w * (tau_x * cos_t - sigma * sin_t);
            sum_z += w * (tau_x * sin_t + sigma * cos_t);
            sum_m += w * tau_x;
            sum_y += w * tau_y;
            sum_side += w * height * (side.linear + side.square * height) * (r - height * cos_t);
        }
    }

    // Forces and moment.
    f.peak_stress = stress(&law, usi_v4_all(fmax(r * (cos(f.peak) - cos_f), DBL_MIN)))[0];
    f.fx = r * b * usi_v4_sum(sum_x);
    f.fz = r * b * usi_v4_sum(sum_z);
    f.moment = r * r * b * usi_v4_sum(sum_m);
    f.fy_shear = r * b * usi_v4_sum(sum_y);
    f.fy_bulldoze = usi_v4_sum(sum_side) * fmin(beta / BULLDOZE_ANGLE, 1);
    if (wheel->n_grouser > 0 && wheel->grouser_height > 0)
        add_grousers(soil, wheel, history, s, shear.kx, &f);
    return f;
}

us_wheel_slip us_soil_wheel_slip(const us_soil_wheel *wheel, double vx, double vy, double spin) {
    double rim = us_soil_wheel_radius(wheel) * spin;
    // Forward is the direction in which the hub moves, or, where the hub is at rest, the rim.
    double forward = fabs(vx) >= MIN_SPEED || rim == 0 ? vx : rim;
    us_wheel_slip out = {.forward = forward < 0 ? -1 : 1, .left = vy < 0 ? -1 : 1};
    double v = out.forward * vx, u = out.forward * rim;
    out.slip = fmin(fmax((u - v) / fmax(fmax(fabs(u), fabs(v)), MIN_SPEED), -1), 1);
    out.angle = atan2(fabs(vy), fmax(fabs(vx), MIN_SPEED));
    return out;
}

static us_wheel_reaction react_to(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history,
                                  double sinkage, us_wheel_slip slip) {
    us_wheel_reaction out = {.slip = slip};
    us_wheel_force f = us_soil_wheel_force(soil, wheel, history, sinkage, slip.slip, slip.angle);
    double fy = -slip.left * (f.fy_shear + f.fy_bulldoze);
    out.parts = f;
    out.force = us_vec3_make(slip.forward * f.fx, fy, f.fz);
    out.moment =
        us_vec3_make(fy * us_soil_wheel_radius(wheel) * cos(0.5 * f.entry), slip.forward * f.moment, 0);
    return out;
}

us_wheel_reaction us_soil_wheel_reaction(const us_soil *soil, const us_soil_wheel *wheel,
                                         us_soil_history history, double sinkage, double vx, double vy,
                                         double spin) {
    return us_soil_wheel_reaction_faded(soil, wheel, history, sinkage, vx, vy, spin, 1);
}

us_wheel_reaction us_soil_wheel_reaction_faded(const us_soil *soil, const us_soil_wheel *wheel,
                                               us_soil_history history, double sinkage, double vx, double vy,
                                               double spin, double fade) {
    us_wheel_slip slip = us_soil_wheel_slip(wheel, vx, vy, spin);
    slip.slip *= fade;
    slip.angle *= fade;
    double rim = us_soil_wheel_radius(wheel) * spin;
    if (vx * rim >= 0) return react_to(soil, wheel, history, sinkage, slip);

    // The hub moves against the rim: on a slope that is too steep. Between spinning on the spot (a slip of 1)
    // and sliding as fast as the rim rotates (-1, seen in the direction of motion) the soil in front changes
    // sides, and the forces are blended from one to the other.
    double share = fmin(fabs(vx / rim), 1), size = fabs(slip.slip);
    slip.forward = rim < 0 ? -1 : 1;
    slip.slip = size;
    us_wheel_reaction spinning = react_to(soil, wheel, history, sinkage, slip);
    slip.forward = -slip.forward;
    slip.slip = -size;
    us_wheel_reaction sliding = react_to(soil, wheel, history, sinkage, slip),
                      out = share < 0.5 ? spinning : sliding;
    out.force = us_vec3_add(us_vec3_scale(1 - share, spinning.force), us_vec3_scale(share, sliding.force));
    out.moment = us_vec3_add(us_vec3_scale(1 - share, spinning.moment), us_vec3_scale(share, sliding.moment));
    return out;
}

double us_soil_wheel_sinkage(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history,
                             double weight, double slip, double slip_angle) {
    if (!(weight > 0)) return 0;
    double low = 0, high = MAX_SINKAGE * us_soil_wheel_radius(wheel);
    if (us_soil_wheel_force(soil, wheel, history, high, slip, slip_angle).fz < weight) return NAN;
    // The force grows with the sinkage: bisection, 60 times, is at the end of a double's digits.
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (us_soil_wheel_force(soil, wheel, history, middle, slip, slip_angle).fz < weight)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}
