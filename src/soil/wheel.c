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
// A rim that slips carries soil away. What it has dug is sinkage that presses nothing: of the depth z at a
// place of the rim the share 1 - dug / sinkage is pressed.
#include <float.h>

#include "soil/soil__quadrature.h"
#include "understudy/soil.h"

static const double MAX_SINKAGE = 0.95;      // over the radius: beyond it the arc would end above the hub
static const double MAX_SHEAR = 20;          // shear displacement over its modulus: more changes nothing
static const double BULLDOZE_ANGLE = 0.035;  // rad: below it the side force fades, where its sign would jump
static const double MIN_SPEED = 1e-3;        // m/s: slip of slower wheels is relative to this speed

// Normal stress at a depth below the present surface.
typedef struct stress_law {
    double k, n;         // fresh soil: k z^n
    double rut, reload;  // m below the fresh surface; Pa/m of reloading, 0: the soil is fresh
    double meets;        // m below the rut, where the line of reloading ends on the fresh curve
    double share;        // of a depth that is pressed; the rest was dug
} stress_law;

// Modulus of a strip, Pa/m^n: published values of kc may be negative, and hold for strips that are wide
// enough. Narrower ones carry a hundredth of kphi, so that nothing falls through.
double us_soil_modulus(const us_soil *soil, double width) {
    return fmax(soil->kc / width + soil->kphi, 0.01 * soil->kphi);
}

double us_soil_reload_stiffness(const us_soil *soil, double width, double pressed) {
    double reload = soil->unload + soil->unload_depth * pressed;
    if (!(pressed > 0) || !(reload > 0)) return 0;
    // The line ends where it began to unload, above the fresh surface nowhere: no flatter than the line from
    // the fresh surface to that point, nor than the fresh curve there.
    return fmax(reload, fmax(1, soil->n) * us_soil_modulus(soil, width) * pow(pressed, soil->n - 1));
}

double us_soil_rut_depth(const us_soil *soil, double width, double pressed) {
    double reload = us_soil_reload_stiffness(soil, width, pressed);
    return reload > 0 ? fmax(0, pressed - us_soil_modulus(soil, width) * pow(pressed, soil->n) / reload) : 0;
}

static stress_law law_of(const us_soil *soil, const us_soil_wheel *wheel, double pressed, double sinkage) {
    double width = wheel->width;
    stress_law law = {
        .share = fmax(0, 1 - fmax(wheel->dug, 0) / sinkage), .k = us_soil_modulus(soil, width), .n = soil->n};
    law.reload = us_soil_reload_stiffness(soil, width, pressed);
    if (law.reload > 0) law.rut = us_soil_rut_depth(soil, width, pressed);
    law.meets = pressed - law.rut;
    return law;
}

// How the stress grows at a depth, over the stress, 1/m.
static double stress_growth(const stress_law *law, double depth) {
    return law->reload > 0 && depth < law->meets ? fmin(1, law->n) / depth : law->n / (law->rut + depth);
}

static usi_v4 fresh_stress(const stress_law *law, usi_v4 z) {
    return law->k * (law->n == 1 ? z : usi_v4_exp(law->n * usi_v4_log(z)));
}

// Stress at depths greater than 0. Soil that was pressed follows its line up to the curve of fresh soil, and
// carries at no depth below its surface less than fresh soil does at that depth below its own: where n < 1
// that curve begins steeper than any line.
static usi_v4 stress(const stress_law *law, usi_v4 depth) {
    usi_v4 fresh = fresh_stress(law, law->rut + depth);
    if (!(law->reload > 0)) return fresh;
    usi_v4 again = law->reload * depth;
    if (law->n < 1) again = usi_v4_max(again, fresh_stress(law, depth));
    return usi_v4_select(depth < usi_v4_all(law->meets), usi_v4_min(again, fresh), fresh);
}

// Length of the wedge of soil that a grouser pushes before it, over its height: tan^2(45 deg + phi/2), for an
// angle of friction of 30 deg.
static const double WEDGE = 3;

// Grousers closer than their wedges carry all the soil between them along: the wheel shears soil on soil at
// their tips. Those farther apart do so over the length of their wedges.
double us_soil_wheel_radius(const us_soil_wheel *wheel) {
    if (wheel->n_grouser <= 0 || !(wheel->grouser_height > 0)) return wheel->radius;
    double spacing = 2 * M_PI * wheel->radius / wheel->n_grouser;
    return wheel->radius + fmin(1, WEDGE * wheel->grouser_height / spacing) * wheel->grouser_height;
}

// Shear of the soil under the rim.
typedef struct shear_law {
    double cohesion, tan_phi;  // Mohr-Coulomb: the limit is cohesion + sigma tan phi
    double tan_wedge;          // tan(45 deg + phi/2)
    double kx, ky;             // m, shear moduli along the wheel and across it
    double advance;            // radii that the hub moves while the rim rotates by an angle of 1
    double tan_beta;           // of the slip angle
    bool is_isotropic;
} shear_law;

static inline shear_law shear_law_of(const us_soil *soil, double radius, double s, double beta) {
    // Shear displacement is in proportion to the size of what shears: the moduli of large wheels are too
    // great for small ones.
    double fit = soil->shear_radius > radius ? radius / soil->shear_radius : 1;
    double sine = sin(soil->friction_angle), cosine = cos(soil->friction_angle);
    return (shear_law){
        .cohesion = soil->cohesion,
        .tan_phi = sine / cosine,
        .tan_wedge = (1 + sine) / cosine,
        .tan_beta = beta > 0 ? tan(fmin(beta, 1.55)) : 0,
        .kx = fit * (soil->shear_x + soil->shear_x_angle * beta),
        .ky = fit * (soil->shear_y + soil->shear_y_angle * beta),
        .is_isotropic = soil->lateral == US_LATERAL_ISOTROPIC,
        // Driving 1 - s; braking 1 / (1 + s), where s is relative to the hub's speed.
        .advance = s >= 0 ? 1 - s : 1 / fmax(1 + s, 1e-6),
    };
}

// Bulldozing resistance of a wall of height h, N/m: linear h + square h^2 (Hegedus).
typedef struct bulldozing {
    double linear, square;
} bulldozing;

// D1 = 2 t and D2 = t + t^2 tan phi with t = cot(45 deg - phi/2): each of its angles is one of t's.
static bulldozing bulldozing_of(const us_soil *soil, const shear_law *shear, double gravity) {
    double t = shear->tan_wedge, d1 = 2 * t, d2 = t + t * t * shear->tan_phi;
    return (bulldozing){.linear = d1 * soil->cohesion, .square = 0.5 * d1 * d2 * soil->density * gravity};
}

// Passive resistance of the wedge of soil behind a grouser, N: of its face, and of its side walls. The wedge
// rises freely: under the rim the same soil is sheared along the arc instead, which its stress resists.
static double wedge_force(const us_soil *soil, double width, double height, double gravity) {
    double phi = soil->friction_angle, t = tan(0.25 * M_PI + 0.5 * phi), gamma = soil->density * gravity;
    double length = height * t * t,
           face = width * (0.5 * gamma * height * height * t * t + 2 * soil->cohesion * height * t);
    // Each wall is a triangle; earth at rest presses on it.
    double wall = soil->cohesion * 0.5 * height * length +
                  (1 - sin(phi)) * gamma * tan(phi) * length * height * height / 6;
    return face + 2 * wall;
}

// Adds the thrust of the grousers to that of the arc at their tips. Only a wedge that reaches free ground
// rises: that of the last grouser in the arc. All in all no more than the soil's strength along the arc. s:
// slip; kx: shear modulus along the wheel; strength: N, of the arc.
static void add_grousers(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history, double s,
                         double kx, double strength, us_wheel_force *f) {
    double r = us_soil_wheel_radius(wheel), arc = f->entry - f->exit,
           height = fmin(wheel->grouser_height, r * (1 - cos(f->entry)));
    double n_free = fmin(1, wheel->n_grouser * arc / (2 * M_PI));
    double mobilised = 1 - exp(-fabs(s) * r * arc / kx), shear = f->moment / r;
    double thrust = n_free * wedge_force(soil, wheel->width, height, history.gravity) * mobilised,
           room = fmax(0, strength - copysign(shear, s * shear));
    thrust = copysign(fmin(thrust, room), s);
    f->fx += thrust;
    f->moment += thrust * r;
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

// Shear moduli that the rim slips in the arc, at the pace at which it enters: with more the shear rises
// within a short way.
static const double STEEP = 6;

// The arc in the soil, what presses and shears on it, and the integrals over it.
typedef struct arc {
    double r, entry, peak, exit, sin_f, cos_f;
    stress_law stress;
    shear_law shear;
    bulldozing side;
    usi_v4 x, z, m, y, sink, strength;  // sums: stresses along the wheel, up, about the axle, across; ...
} arc;

static bool is_steep(const arc *a) {
    double pace = fabs(1 - a->shear.advance * a->cos_f);
    return a->r * (a->entry - a->exit) * pace > STEEP * a->shear.kx;
}

// Stress at the points of a rule: at a fraction of the way from the entry to the peak, and at the same
// fraction from the exit. cosine: of the angles of the front part.
static void stress_at(const arc *a, const usi_quadrature *rule, const double *cosine, double *out) {
    for (int i = 0; i < rule->n; i += 4) {
        usi_v4 depth = a->r * (*(const usi_v4 *)(cosine + i) - a->cos_f) * a->stress.share;
        *(usi_v4 *)(out + i) = stress(&a->stress, usi_v4_max(depth, usi_v4_all(DBL_MIN)));
    }
}

// Adds one part of the arc: four points at a time.
static void add_part(arc *a, const usi_quadrature *rule, double length, const double *angle,
                     const double *sine, const double *cosine, const double *sigma) {
    for (int i = 0; i < rule->n; i += 4) {
        usi_v4 th = *(const usi_v4 *)(angle + i), sin_t = *(const usi_v4 *)(sine + i),
               cos_t = *(const usi_v4 *)(cosine + i), weight = length * *(const usi_v4 *)(rule->weight + i);
        usi_v4 press = length * *(const usi_v4 *)(rule->stress_weight + i) * *(const usi_v4 *)(sigma + i),
               limit = weight * a->shear.cohesion + press * a->shear.tan_phi;
        usi_v4 jx = a->r * (a->entry - th - a->shear.advance * (a->sin_f - sin_t)),
               jy = a->r * a->shear.advance * (a->entry - th) * a->shear.tan_beta, tau_x, tau_y;
        shear_stress(&a->shear, limit, jx, jy, &tau_x, &tau_y);
        usi_v4 height = usi_v4_max(a->r * (cos_t - a->cos_f), usi_v4_zero());
        a->x += tau_x * cos_t - press * sin_t;
        a->z += tau_x * sin_t + press * cos_t;
        a->m += tau_x;
        a->y += tau_y;
        a->strength += limit;
        a->sink += weight * height * (a->side.linear + a->side.square * height) * (a->r - height * cos_t);
    }
}

// Both parts by one rule: the stress is computed once.
static void integrate(arc *a) {
    usi_quadrature rule;
    usi_rule_of_power(a->stress.n, &rule);
    double front = a->entry - a->peak, rear = a->peak - a->exit;
    _Alignas(32) double angle[2 * USI_POINTS], sine[2 * USI_POINTS], cosine[2 * USI_POINTS],
        sigma[USI_POINTS];
    for (int i = 0; i < USI_POINTS; i++) {
        angle[i] = a->entry - front * rule.at[i];
        angle[USI_POINTS + i] = a->exit + rear * rule.at[i];
    }
    usi_sincos(2 * USI_POINTS, angle, sine, cosine);
    stress_at(a, &rule, cosine, sigma);
    add_part(a, &rule, front, angle, sine, cosine, sigma);
    add_part(a, &rule, rear, angle + USI_POINTS, sine + USI_POINTS, cosine + USI_POINTS, sigma);
}

// The same where the shear changes its sign within the arc, or rises within a short way from the entry:
// pieces between the changes of sign, with points that crowd where the arc begins. Two parts without a change
// have one rule, and the stress is computed once.
static void integrate_in_pieces(arc *a, const double change[2]) {
    usi_quadrature rule;
    _Alignas(32) double angle[USI_MAX_POINTS], sine[USI_MAX_POINTS], cosine[USI_MAX_POINTS],
        sigma[USI_MAX_POINTS];
    bool is_whole = false;
    for (int part = 0; part < 2; part++) {
        double from = part == 0 ? a->entry : a->exit, length = a->peak - from, cut[2];
        bool has_cut = false;
        for (int i = 0; i < 2; i++) {
            cut[i] = length != 0 ? (change[i] - from) / length : NAN;
            has_cut |= cut[i] > 0 && cut[i] < 1;
        }
        if (!is_whole || has_cut) {
            usi_rule_of_pieces(cut, a->stress.n == 1 && !is_steep(a), &rule);
            for (int i = 0; i < rule.n; i++)
                angle[i] = a->entry + (a->peak - a->entry) * rule.at[i];
            usi_sincos(rule.n, angle, sine, cosine);
            stress_at(a, &rule, cosine, sigma);
        }
        is_whole = !has_cut;
        if (part == 1) {
            for (int i = 0; i < rule.n; i++)
                angle[i] = from + length * rule.at[i];
            usi_sincos(rule.n, angle, sine, cosine);
        }
        add_part(a, &rule, fabs(length), angle, sine, cosine, sigma);
    }
}

// Slip distance at an angle, over the radius.
static double slipped(const arc *a, double angle) {
    return a->entry - angle - a->shear.advance * (a->sin_f - sin(angle));
}

// Where the slip distance changes sign between two angles: by false position, with the value at an end that
// stays halved (Illinois). A few digits of it are enough: the shear has a corner there in its second
// derivative alone.
static double find_change(const arc *a, double from, double to) {
    double at_from = slipped(a, from), at_to = slipped(a, to), middle = 0.5 * (from + to),
           all = fabs(to - from);
    int last = 0;
    for (int i = 0; i < 20; i++) {
        double before = middle;
        middle = (from * at_to - to * at_from) / (at_to - at_from);
        if (i > 0 && fabs(middle - before) < 1e-5 * all) break;
        double here = slipped(a, middle);
        bool is_from = here * at_from > 0;
        if (is_from) {
            from = middle;
            at_from = here;
            if (last == 1) at_to *= 0.5;
        } else {
            to = middle;
            at_to = here;
            if (last == -1) at_from *= 0.5;
        }
        last = is_from ? 1 : -1;
    }
    return middle;
}

// Where the shear changes its sign. It does under a braked wheel alone: the rim first lags behind the soil
// that it turns into, as far as cos > 1 / advance; then the soil overtakes it, and behind the hub it may do
// so again. NaN: nowhere.
static void find_changes(const arc *a, double out[2]) {
    out[0] = out[1] = NAN;
    if (!(a->shear.advance > 1)) return;
    double turn = acos(1 / a->shear.advance), low = fmax(-turn, a->exit);
    if (!(turn < a->entry) || !(slipped(a, low) < 0)) return;
    out[0] = find_change(a, turn, low);
    if (a->exit < low && slipped(a, a->exit) > 0) out[1] = find_change(a, low, a->exit);
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
    arc a = {.r = r,
             .cos_f = 1 - h / r,
             .sin_f = sqrt(h / r * (2 - h / r)),
             .shear = shear_law_of(soil, r, s, beta),
             .stress = law_of(soil, wheel, history.pressed, h)};
    a.side = bulldozing_of(soil, &a.shear, history.gravity);
    f.depth = a.stress.rut + h;
    f.entry = a.entry = acos(1 - h / r);
    f.exit = a.exit = -acos(fmax(-1, 1 - soil->exit_ratio * a.stress.share * h / r));
    f.peak = a.peak = fmin((soil->peak_angle + soil->peak_angle_slip * fabs(s)) * f.entry, f.entry);

    // Integrals of the stresses over the rim.
    double change[2];
    find_changes(&a, change);
    // Pressed soil begins along a line, whatever n is.
    bool has_line = a.stress.reload > 0 && a.stress.n != 1;
    if (is_steep(&a) || has_line || !isnan(change[0]))
        integrate_in_pieces(&a, change);
    else
        integrate(&a);

    // Forces and moment.
    double deepest = fmax(r * (cos(f.peak) - a.cos_f) * a.stress.share, DBL_MIN);
    f.peak_stress = stress(&a.stress, usi_v4_all(deepest))[0];
    f.fx = r * b * usi_v4_sum(a.x);
    f.fz = r * b * usi_v4_sum(a.z);
    f.moment = r * r * b * usi_v4_sum(a.m);
    f.fy_shear = r * b * usi_v4_sum(a.y);
    // The arc grows like the root of the sinkage. Where next to nothing is pressed the growth has a bound.
    f.stiffness = fmax(f.fz, 0) * (stress_growth(&a.stress, h * fmax(a.stress.share, 0.01)) + 0.5 / h);
    f.fy_bulldoze = usi_v4_sum(a.sink) * fmin(beta / BULLDOZE_ANGLE, 1);
    if (wheel->n_grouser > 0 && wheel->grouser_height > 0)
        add_grousers(soil, wheel, history, s, a.shear.kx, r * b * usi_v4_sum(a.strength), &f);
    return f;
}

// ---------------------------------------------------------------- digging

// Layer of soil that the rim carries along where it slips, m: what its grousers hold, and below it a part of
// what it presses. The deeper it stands the more falls back from the walls, up to the depth where the model
// ends.
static double carried_layer(const us_soil *soil, const us_soil_wheel *wheel, double sinkage, double dug) {
    double r = us_soil_wheel_radius(wheel), deep = fmin(sinkage / (MAX_SINKAGE * r), 1);
    return (soil->slip_sinkage * fmax(sinkage - dug, 0) + r - wheel->radius) * (1 - deep * deep);
}

double us_soil_wheel_dig(const us_soil *soil, const us_soil_wheel *wheel, double sinkage, double slide,
                         double travel) {
    if (!(sinkage > 0)) return 0;
    // A hole as long as the wheel is in the soil: filled by what it presses ahead when it moves on, emptied
    // by what slides.
    double r = us_soil_wheel_radius(wheel), h = fmin(sinkage, MAX_SINKAGE * r), ahead = sqrt(h * (2 * r - h)),
           dug = fmin(fmax(wheel->dug, 0), h), risen = fmin(soil->exit_ratio, 1) * (h - dug),
           length = ahead + sqrt(risen * (2 * r - risen));
    double gone = fabs(travel) / length, kept = exp(-gone), share = gone > 1e-9 ? (1 - kept) / gone : 1;
    return fmin(dug * kept + share * carried_layer(soil, wheel, sinkage, dug) * fabs(slide) / length,
                sinkage);
}

double us_soil_wheel_dug(const us_soil *soil, const us_soil_wheel *wheel, double sinkage, double slip) {
    if (!(sinkage > 0)) return 0;
    // Where as much is carried out as is left ahead: dug = (a (h - dug) + lugs) slide / travel.
    double slide = slip >= 0 ? fmin(slip / fmax(1 - slip, 1e-12), 1e12) : fmin(-slip, 1),
           lugs = slide * carried_layer(soil, wheel, sinkage, sinkage),
           all = slide * carried_layer(soil, wheel, sinkage, 0);
    return fmin(all / (1 + (all - lugs) / sinkage), sinkage);
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
    // At rest the signs of what trembles say nothing.
    if (vx * rim >= 0 || fade == 0) return react_to(soil, wheel, history, sinkage, slip);

    // The hub moves against the rim: on a slope that is too steep. Between spinning on the spot (a slip of 1)
    // and sliding as fast as the rim rotates (-1, seen in the direction of motion) the soil in front changes
    // sides, and the forces are blended from one to the other.
    double share = fade * fmin(fabs(vx / rim), 1), size = fabs(slip.slip);
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

// Sinkage at which the soil carries a weight; has_dug: with what a wheel has dug that goes on at this slip.
static double find_sinkage(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history,
                           double weight, double slip, double slip_angle, bool has_dug) {
    if (!(weight > 0)) return 0;
    us_soil_wheel now = *wheel;
    double low = 0, high = MAX_SINKAGE * us_soil_wheel_radius(wheel);
    // The force grows with the sinkage: bisection, 60 times, is at the end of a double's digits.
    for (int i = -1; i < 60; i++) {
        double middle = i < 0 ? high : 0.5 * (low + high);
        if (has_dug) now.dug = us_soil_wheel_dug(soil, wheel, middle, slip);
        bool is_less = us_soil_wheel_force(soil, &now, history, middle, slip, slip_angle).fz < weight;
        if (i < 0 && is_less) return NAN;
        if (is_less)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

double us_soil_wheel_sinkage(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history,
                             double weight, double slip, double slip_angle) {
    return find_sinkage(soil, wheel, history, weight, slip, slip_angle, false);
}

double us_soil_wheel_rolling_sinkage(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history,
                                     double weight, double slip, double slip_angle) {
    return find_sinkage(soil, wheel, history, weight, slip, slip_angle, true);
}
