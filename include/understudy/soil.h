// Soil under wheels: what a soil is, a library of measured ones, and the forces of a rigid wheel that sinks
// in (Bekker, Wong and Reece, Janosi and Hanamoto, Ishigami). docs/wheel-soil.md has the mathematics.
//
// Pure functions: no state, no allocation, any thread.
#ifndef UNDERSTUDY_SOIL_H
#define UNDERSTUDY_SOIL_H

#include "understudy/base.h"
#include "understudy/math.h"

#ifdef __cplusplus
extern "C" {
#endif

// X(field, unit, min, max, what it is): the parameters of a soil, all of which may vary from place to place.
#define US_SOIL_LIST(X)                                                                                    \
    X(kc, "N/m^(n+1)", -1e7, 1e7, "cohesive modulus of sinkage; may be negative where kc/b + kphi is not") \
    X(kphi, "N/m^(n+2)", 0, 1e9, "frictional modulus of sinkage")                                          \
    X(n, "", 0.05, 3, "exponent of sinkage")                                                               \
    X(cohesion, "Pa", 0, 1e6, "")                                                                          \
    X(friction_angle, "rad", 0, 1.2, "angle of internal friction")                                         \
    X(shear_x, "m", 1e-4, 1, "shear deformation modulus along the wheel")                                  \
    X(shear_x_angle, "m/rad", 0, 1, "and how it grows with the slip angle")                                \
    X(shear_y, "m", 1e-4, 1, "shear deformation modulus across the wheel")                                 \
    X(shear_y_angle, "m/rad", 0, 1, "and how it grows with the slip angle")                                \
    X(shear_radius, "m", 0, 10,                                                                            \
      "wheel radius for which the shear moduli hold: of smaller wheels they are smaller in proportion")    \
    X(density, "kg/m^3", 1, 1e4, "in bulk")                                                                \
    X(peak_angle, "", 0, 1, "where the stress is maximal, as a fraction of the entry angle, without slip") \
    X(peak_angle_slip, "", 0, 1, "and how much farther forward with full slip")                            \
    X(exit_ratio, "", 0, 1.1,                                                                              \
      "how far the soil comes up again behind the wheel: 0 stays pressed, 1 flows back")                   \
    X(unload, "Pa/m", 0, 1e12, "stiffness of unloading and pressing again, without sinkage")               \
    X(unload_depth, "Pa/m^2", 0, 1e12,                                                                     \
      "and how it grows with the depth pressed; both 0: soil does not remember")                           \
    X(slip_sinkage, "", 0, 10,                                                                             \
      "layer of soil that a slipping rim carries away, over the depth that it presses")                    \
    X(repose_angle, "rad", 0, 1.5, "slopes stop flowing at this angle")                                    \
    X(critical_angle, "rad", 0, 1.5, "and begin to flow at this one")                                      \
    X(compaction, "", 0, 1, "fraction of the volume pressed down that does not come up elsewhere")         \
    X(max_curvature, "1/m", 0, 1e6,                                                                        \
      "spikes and notches of more flow level; 0: 2/3 of the slope of repose over a column's width")

typedef enum us_soil_lateral {
    // One shear displacement, along and across together: never above the Mohr-Coulomb limit. The default.
    US_LATERAL_ISOTROPIC,
    // Each direction by itself, as in the literature: up to sqrt(2) above it.
    US_LATERAL_ISHIGAMI,
} us_soil_lateral;

typedef struct us_soil {
#define US_SOIL_FIELD(field, unit, min, max, what) double field;
    US_SOIL_LIST(US_SOIL_FIELD)
#undef US_SOIL_FIELD
    us_soil_lateral lateral;
    int32_t reserved;  // 0
} us_soil;

US_API us_soil us_soil_default(void);  // dry sand

// The library of measured soils, by number from 0 or by name ("dry_sand", "lunar", ...). `out_source`, which
// may be NULL, says where its parameters come from. False for one that is not there.
US_API bool us_soil_get(int32_t i, const char **out_name, us_soil *out_soil, const char **out_source);
US_API bool us_soil_find(const char *name, us_soil *out_soil);

// A parameter of a soil by the name of its field; NULL when there is none. `out_min` and `out_max` may be
// NULL.
US_API double *us_soil_parameter(us_soil *soil, const char *field, double *out_min, double *out_max);

// US_ERR_VALUE with the name of the first parameter that is out of its range or does not fit the others.
US_API us_status us_soil_check(const us_soil *soil, us_error *err);

// A rigid wheel.
typedef struct us_soil_wheel {
    double radius, width;   // m
    double grouser_height;  // m; 0: none
    int32_t n_grouser;
    double dug;  // m, how much of its sinkage it has dug rather than pressed
} us_soil_wheel;

// Effective radius of the wheel, m: with grousers it reaches to their tips, or, where they are farther apart
// than three times their height, as much less far. Sinkage is that of its lowest line.
US_API double us_soil_wheel_radius(const us_soil_wheel *wheel);

// State of the soil before the wheel: `pressed`, the depth below the fresh surface to which it was pressed
// before, m (0: fresh soil); and gravity, m/s^2.
typedef struct us_soil_history {
    double pressed, gravity;
} us_soil_history;

typedef struct us_wheel_force {
    double fx;           // N, drawbar pull, along the heading
    double fy_shear;     // N, magnitude of the side force by shear, not negative
    double fy_bulldoze;  // N, and by bulldozing at the wheel's side, for a slip angle that is not near 0
    double fz;           // N, up
    double moment;       // N m, that the soil takes from the axle
    double entry, exit;  // rad, contact angles from straight down, positive ahead
    double peak;         // rad, where the normal stress is maximal
    double peak_stress;  // Pa
    double depth;        // m, below the fresh surface
    double stiffness;    // N/m, about how fz grows with the sinkage
    bool is_buried;      // sunk deeper than the model goes
} us_wheel_force;

// Wheel force: the integrals of normal and shear stress over the rim, for a sinkage below the present surface
// (behind another wheel: the rut), a slip in [-1, 1] (positive: driving) and a slip angle. Good to 1e-6 of
// the integrals. Sinkage of 0 and less: no force.
US_API us_wheel_force us_soil_wheel_force(const us_soil *soil, const us_soil_wheel *wheel,
                                          us_soil_history history, double sinkage, double slip,
                                          double slip_angle);

// Digging: what a wheel has dug of its sinkage (m) after its rim has slid over the soil and its hub has
// travelled, m each. Soil is carried away by what slides and lies fresh ahead: a wheel that goes on at a slip
// tends to us_soil_wheel_dug, one that spins on the spot digs itself in, down to 0.95 of its radius.
US_API double us_soil_wheel_dig(const us_soil *soil, const us_soil_wheel *wheel, double sinkage, double slide,
                                double travel);
// What a wheel has dug of its sinkage that goes on at a slip, m.
US_API double us_soil_wheel_dug(const us_soil *soil, const us_soil_wheel *wheel, double sinkage, double slip);

// Modulus k = kc/width + kphi of a strip, Pa/m^n; at least a hundredth of kphi.
US_API double us_soil_modulus(const us_soil *soil, double width);

// Stiffness along which soil that was pressed to a depth is unloaded and pressed again, Pa/m; 0: it does not
// remember. Never softer than the fresh soil was: unload + unload_depth z, and at least max(1, n) p(z) / z.
US_API double us_soil_reload_stiffness(const us_soil *soil, double width, double pressed);

// Rut depth: where the surface lies that was pressed to a depth and released, m below the fresh one.
US_API double us_soil_rut_depth(const us_soil *soil, double width, double pressed);

// Slip of a wheel that rotates with `spin` (rad/s, positive drives forward) while its hub moves with vx
// forward and vy to the left, m/s.
typedef struct us_wheel_slip {
    double slip, angle;    // [-1, 1]; [0, pi/2)
    double forward, left;  // 1 or -1: direction of motion
} us_wheel_slip;
US_API us_wheel_slip us_soil_wheel_slip(const us_soil_wheel *wheel, double vx, double vy, double spin);

// Wheel reaction: the forces in the wheel's frame (x heading, y left, z the soil's normal) for its motion,
// with the signs of backward and sideways motion.
typedef struct us_wheel_reaction {
    us_vec3 force;   // N, at the hub
    us_vec3 moment;  // N m, about the hub: y is what the soil takes from the axle, with its sign; x overturns
    us_wheel_force parts;
    us_wheel_slip slip;
} us_wheel_reaction;
US_API us_wheel_reaction us_soil_wheel_reaction(const us_soil *soil, const us_soil_wheel *wheel,
                                                us_soil_history history, double sinkage, double vx, double vy,
                                                double spin);
// The same with slip and slip angle scaled by a factor from 0 to 1: they mean little for a wheel that hardly
// moves.
US_API us_wheel_reaction us_soil_wheel_reaction_faded(const us_soil *soil, const us_soil_wheel *wheel,
                                                      us_soil_history history, double sinkage, double vx,
                                                      double vy, double spin, double fade);

// Sinkage at which the soil carries a weight (N), for what was dug; NaN when it cannot.
US_API double us_soil_wheel_sinkage(const us_soil *soil, const us_soil_wheel *wheel, us_soil_history history,
                                    double weight, double slip, double slip_angle);
// The same of a wheel that goes on at this slip, with what it digs: `dug` is not looked at.
US_API double us_soil_wheel_rolling_sinkage(const us_soil *soil, const us_soil_wheel *wheel,
                                            us_soil_history history, double weight, double slip,
                                            double slip_angle);

#ifdef __cplusplus
}
#endif
#endif
