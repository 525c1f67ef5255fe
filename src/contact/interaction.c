// What two surfaces do where they touch: the two models that the library brings, and the arithmetic of
// restitution.
//
// A model answers with a force and its slopes, and the solver takes
//
//     f(end of step) = force - stiffness * (change of the gap) - damping * (change of the normal velocity),
//     never less than 0
//
// so that a law may be as stiff as it likes. Along the surface an anchor remembers where the contact stuck: a
// spring of tangent_stiffness and a damper of tangent_damping between the anchor and the surface, which slips
// when it pulls harder than friction allows.
#include "contact/interaction.h"

#include <math.h>

// Stiffness of a contact for which none is given. Four points share the weight of all that hangs together
// through contacts, and may sink by this depth under it; light things get the least stiffness. A softer one
// lets a row of gripped blocks buckle, a stiffer one leaves fewer digits for the gap.
static const double SINK = 1e-4;          // m
static const double MIN_STIFFNESS = 1e7;  // N/m
static const double POINTS = 4;

// spring-damper: where its slopes are taken when the surfaces do not overlap yet, so that they are never both
// 0.
static const double FIRST_DEPTH = 1e-6;  // m
// spring-damper: an impact without restitution keeps this much of its speed. A true 0 would need infinite
// damping.
static const double MIN_RESTITUTION = 0.05;
// spring-damper: a contact slower than this counts as resting. Well below the speeds at which restitution is
// measured.
static const double REST_SPEED = 0.01;  // m/s

// ---- Restitution ----
//
// A mass m meets f = k d^n (1 - a v) at speed v0, v being negative on the way in. Dividing m dv/dt by dd/dt =
// -v takes time out:
//
//     m v dv / (1 - a v) = -k d^n dd
//
// The right side does the same work on the way in and out, whatever k and n are; so the left side's integral
// over v from -v0 to 0 must cancel that from 0 to e v0. With D = a v0 and phi(t) = t - ln(1 + t), which that
// integral is:
//
//     phi(D) = phi(-e D),    or    ln((1 + D) / (1 - e D)) = D (1 + e)
//
// Both sides of 0 are reached by one parameter: y = 1 + D and x = 1 - e D have x exp(-x) = y exp(-y), and
// with y / x = exp(2 z)
//
//     D = z + (z coth z - 1),    e D = z - (z coth z - 1)
//
// Sum and difference give the pair that is used here, with Langevin's function L(z) = coth z - 1/z, which
// rises from 0 to 1:
//
//     (1 - e) / (1 + e) = L(z),    D = z (1 + L(z)) = 2 z / (1 + e)

// L and 1 - L, to the last digits, by L = z / (3 + z^2 / (5 + z^2 / (7 + ...))), without any function of the
// C library. The number of levels that are needed grows like z. Beyond z = 20 coth z is 1.
static double langevin(double z, double *out_rest) {
    double L, rest;
    if (z < 20) {
        int n = 12 + (int)z;
        double zz = z * z, tail = 0;
        for (int k = n; k > 1; k--)
            tail = zz / (2 * k + 1 + tail);
        L = z / (3 + tail);
        rest = 1 - L;
    } else {
        rest = 1 / z;
        L = 1 - rest;
    }
    if (out_rest) *out_rest = rest;
    return L;
}

// dL/dz = 1 - L^2 - 2 L / z: Riccati's equation of the function above. Beyond 20 the three terms nearly
// cancel and 1 / z^2 is left.
static double langevin_slope(double z, double L) { return z < 20 ? 1 - L * L - 2 * L / z : 1 / (z * z); }

double us_restitution_damping(double e, double v) {
    if (!(e >= 0 && e <= 1 && v >= 0)) return NAN;
    if (e == 1) return 0;
    // z beyond 20: L = 1 - 1/z gives D = 1/e.
    if (e < 1.0 / 40) return 1 / (e * v);
    double y = (1 - e) / (1 + e), yy = y * y;
    // Start: Kroger (J. Non-Newtonian Fluid Mech. 223, 2015), within 0.3 %. Newton squares that: three or
    // four times reach the last digit.
    double z = y * (3 - yy * (6 + yy * (1 - 2 * yy)) / 5) / (1 - yy);
    for (int i = 0; i < 6; i++) {
        double L = langevin(z, NULL), change = (L - y) / langevin_slope(z, L);
        z -= change;
        if (fabs(change) <= 1e-9 * z) break;  // the next one would be below 1e-18
    }
    return 2 * z / ((1 + e) * v);
}

double us_damping_restitution(double a, double v) {
    double D = a * v;
    if (!(a >= 0 && v >= 0) || isnan(D)) return NAN;
    if (D == 0) return 1;
    if (D > 40) return 1 / D;
    // z (1 + L(z)) = D. The left side is convex and rises; from a start on the right Newton comes down to the
    // solution without passing it.
    double z = fmin(D, (1 + D) / 2), rest = 1;
    for (int i = 0; i < 30; i++) {
        double L = langevin(z, NULL), change = (z * (1 + L) - D) / (1 + L + z * langevin_slope(z, L));
        z -= change;
        if (fabs(change) <= 1e-9 * z) break;
    }
    double L = langevin(z, &rest);
    return rest / (1 + L);
}

// ---- compliant ----

static double mass_of(const us_touch *touch) {
    return touch->mass > 0 ? touch->mass : touch->values->assumed_mass;
}

// N/m, of a contact whose pair gives none.
static double load_stiffness(const us_touch *touch) {
    return fmax(MIN_STIFFNESS, touch->load / (POINTS * SINK));
}

void usi_touch_compliant(const us_touch *touch, us_touch_law *law) {
    const us_pair_values *values = touch->values;
    double k = values->stiffness > 0 ? values->stiffness : load_stiffness(touch);
    double critical = 2 * sqrt(k * mass_of(touch)), c = values->damping_ratio * critical;
    law->force = -k * touch->gap - c * touch->normal_velocity;
    law->stiffness = k;
    law->damping = c;
    // The anchor is critically damped for the mass that the contact moves: it neither rings nor creeps back.
    law->tangent_stiffness = k;
    law->tangent_damping = critical;
    law->static_friction = values->static_friction;
    law->kinetic_friction = values->kinetic_friction;
    law->viscous = values->viscous;
    law->restitution = values->restitution;
    // Even pressure on a disc of radius r that turns: integral of mu p s over the disc, 2/3 mu r times the
    // force.
    law->torsion = values->kinetic_friction * values->torsion_radius * values->rotational * (2.0 / 3);
    law->rolling = values->rolling_length;
    law->transition = values->transition_speed;
}

// ---- spring-damper ----
//
// Hunt and Crossley (1975): a damper that grows with depth like the spring does. The force begins and ends at
// 0, no contact sticks, and restitution is exact at one speed, the reference speed; slower impacts rebound
// better. That same vanishing damper lets a contact at rest ring for long, so one more damper of ratio
// `normal_static` acts while the contact is nearly still. It fades with the fourth power of the speed and
// leaves the restitution of impacts alone: at 100 times the rest speed it takes about 1e-6 of the energy.

// x^n for n >= 0; the usual exponents without the C library's pow.
static double power(double x, double n) {
    return n == 1 ? x : n == 1.5 ? x * sqrt(x) : n == 0.5 ? sqrt(x) : n == 0 ? 1 : n == 2 ? x * x : pow(x, n);
}

bool usi_touch_spring_damper(const us_touch *touch, us_touch_law *law) {
    const us_pair_values *values = touch->values;
    double n = us_property_number(touch->parameters, touch->n_parameter, "exponent", 1.5);
    if (!(n >= (double)USI_MIN_EXPONENT && n <= (double)USI_MAX_EXPONENT)) return false;
    // A stiffness of one's own is in N/m^n. Otherwise both models carry the same force at the depth to which
    // the load may sink.
    double k = values->stiffness > 0 ? values->stiffness : load_stiffness(touch) / power(SINK, n - 1);
    double a = us_restitution_damping(fmax(values->restitution, MIN_RESTITUTION), values->reference_speed);
    if (!isfinite(a)) return false;

    // The slopes are those at FIRST_DEPTH until the surfaces overlap by so much; before they touch, the force
    // goes on below 0 along that slope.
    double depth = fmax(0, -touch->gap), held = fmax(depth, FIRST_DEPTH), v = touch->normal_velocity;
    double spring = k * power(depth, n), slope = k * n * power(held, n - 1);
    double s = v / REST_SPEED, still = 1 / ((1 + s * s) * (1 + s * s));
    double rest = 2 * values->normal_static * sqrt(slope * mass_of(touch)) * still;
    law->force = spring * (1 - a * v) - (depth > 0 ? rest * v : slope * touch->gap);
    law->stiffness = fmax(0, slope * (1 - a * v));
    law->damping = a * slope * held / n + rest;

    // The anchor's stiffness is that of the normal spring under the load. It must not follow the depth from
    // step to step: an anchor that is stretched while the spring is soft and let go while it is stiff would
    // give energy.
    double share = touch->load / (POINTS * k), under_load = fmax(SINK, n == 1     ? share
                                                                       : n == 1.5 ? cbrt(share * share)
                                                                                  : pow(share, 1 / n));
    law->tangent_stiffness = k * n * power(under_load, n - 1);
    law->tangent_damping = 2 * sqrt(law->tangent_stiffness * mass_of(touch));
    law->restitution = 0;  // the force alone decides
    return true;
}

// ---- Any model ----

static bool is_usable(double x) { return x >= 0 && x <= 1e300; }

bool usi_touch_ask(int32_t index, const us_interaction *model, const us_touch *touch,
                   double memory[US_TOUCH_MEMORY], us_touch_law *law) {
    usi_touch_compliant(touch, law);
    if (index == USI_MODEL_COMPLIANT) return true;
    if (index == USI_MODEL_SPRING_DAMPER) return usi_touch_spring_damper(touch, law);
    if (!model || !model->touch || !model->touch(touch, memory, law, model->user)) return false;
    bool ok = isfinite(law->force) && is_usable(law->stiffness) && is_usable(law->damping) &&
              law->stiffness + law->damping > 0;
    ok = ok && is_usable(law->tangent_stiffness) && law->tangent_stiffness > 0 &&
         is_usable(law->tangent_damping);
    ok = ok && is_usable(law->static_friction) && is_usable(law->kinetic_friction) && is_usable(law->viscous);
    ok = ok && is_usable(law->torsion) && is_usable(law->rolling) && is_usable(law->restitution) &&
         is_usable(law->transition) && law->restitution <= 1;
    for (int i = 0; i < US_TOUCH_MEMORY; i++)
        ok = ok && isfinite(memory[i]);
    return ok;
}
