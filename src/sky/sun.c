// Where the Sun stands.
//
// The Earth's and the Moon's places are ERFA's series (fractions of an arc second, some arc seconds), that of
// Mars is Simon and others' mean elements with perturbations (at most 25 arc seconds, 0.007 degrees, in this
// century). Light that arrives left the Sun when the planet was elsewhere: seen from the planet, which moves
// evenly meanwhile, the Sun stands where it would if the planet were where it was a light time ago.
#include <erfa.h>
#include <erfam.h>

#include "sky/ephemeris.h"

us_vec3 usi_sun_from(us_planet planet, double date) {
    const usi_epoch tt = usi_epoch_of(date);
    double pv[2][3], other[2][3];
    if (planet == US_PLANET_MARS) {
        (void)eraPlan94(tt.whole, tt.part, 4, pv);
    } else {
        (void)eraEpv00(tt.whole, tt.part, pv, other);
        if (planet == US_PLANET_MOON) {
            eraMoon98(tt.whole, tt.part, other);
            eraPvppv(pv, other, pv);
        }
    }
    const us_vec3 p = us_vec3_make(pv[0][0], pv[0][1], pv[0][2]),
                  v = us_vec3_make(pv[1][0], pv[1][1], pv[1][2]);
    const double light_time = us_vec3_norm(p) * ERFA_AULT / ERFA_DAYSEC;  // days
    return us_vec3_scale(-ERFA_DAU, us_vec3_sub(p, us_vec3_scale(light_time, v)));
}

us_vec3 us_sky_sun(const us_sky *sky, double time) {
    if (!sky || sky->planet == US_PLANET_NONE) return us_vec3_make(0, 0, 0);
    const double date = sky->date + time;
    const us_vec3 sun = us_quat_rotate(usi_planet_orientation(sky->planet, date),
                                       usi_sun_from(sky->planet, date)),
                  d = us_vec3_sub(sun, usi_fixed_point(sky->planet, sky->origin));
    return us_quat_rotate(us_quat_conj(usi_world_axes(sky)), us_vec3_scale(1 / us_vec3_norm(d), d));
}

us_quat us_sky_stars(const us_sky *sky, double time) {
    if (!sky || sky->planet == US_PLANET_NONE) return us_quat_identity();
    const us_quat turn = usi_planet_orientation(sky->planet, sky->date + time);
    return us_quat_normalize(us_quat_mul(us_quat_conj(turn), usi_world_axes(sky)));
}
