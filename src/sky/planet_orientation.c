// How a planet stands among the stars.
//
// The Earth turns by the IAU's precession and nutation of 2000 (the short series) and the Earth rotation
// angle; UT1 is taken for UTC (less than a second: 0.004 degrees), and the pole does not wander. Moon and
// Mars: pole (a, d) and prime meridian W of the IAU's working group on cartographic coordinates (Archinal and
// others, 2018), whose body-fixed frame is
//
//     R3(W) R1(90 - d) R3(90 + a)
//
// For the Moon the series meets the mean Earth frame of the ephemerides within 0.005 degrees.
#include <erfa.h>
#include <erfam.h>

#include "sky/ephemeris.h"

static const double DEGREE = 0.017453292519943295769;

usi_epoch usi_epoch_of(double date) {
    usi_epoch tai = {0, 0}, tt = {0, 0};
    // A year beyond the table of leap seconds gives the last one: the status says so, and means nothing here.
    (void)eraUtctai(USI_JD_1970, date / 86400, &tai.whole, &tai.part);
    (void)eraTaitt(tai.whole, tai.part, &tt.whole, &tt.part);
    return tt;
}

// An angle that grows evenly, degrees, and what its sine or cosine adds to pole and meridian.
typedef struct term {
    double at, rate;  // degrees, per day or per century
    double right_ascension, declination, meridian;
} term;

static const term moon_terms[] = {
    {125.045, -0.0529921, -3.8787, 1.5419, 3.5610},
    {250.089, -0.1059842, -0.1204, 0.0239, 0.1208},
    {260.008, 13.0120009, 0.0700, -0.0278, -0.0642},
    {176.625, 13.3407154, -0.0172, 0.0068, 0.0158},
    {357.529, 0.9856003, 0, 0, 0.0252},
    {311.589, 26.4057084, 0.0072, -0.0029, -0.0066},
    {134.963, 13.0649930, 0, 0.0009, -0.0047},
    {276.617, 0.3287146, 0, 0, -0.0046},
    {34.226, 1.7484877, 0, 0, 0.0028},
    {15.134, -0.1589763, -0.0052, 0.0008, 0.0052},
    {119.743, 0.0036096, 0, 0, 0.0040},
    {239.961, 0.1643573, 0, 0, 0.0019},
    {25.053, 12.9590088, 0.0043, -0.0009, -0.0044},
};

// Angles of Mars differ for the three, so that each term has one of them.
static const term mars_terms[] = {
    {198.991226, 19139.4819985, 0.000068, 0, 0}, {226.292679, 38280.8511281, 0.000238, 0, 0},
    {249.663391, 57420.7251593, 0.000052, 0, 0}, {266.183510, 76560.6367950, 0.000009, 0, 0},
    {79.398797, 0.5042615, 0.419057, 0, 0},      {122.433576, 19139.9407476, 0, 0.000051, 0},
    {43.058401, 38280.8753272, 0, 0.000141, 0},  {57.663379, 57420.7517205, 0, 0.000031, 0},
    {79.476401, 76560.6495004, 0, 0.000005, 0},  {166.325722, 0.5042615, 0, 1.591274, 0},
    {129.071773, 19140.0328244, 0, 0, 0.000145}, {36.352167, 38281.0473591, 0, 0, 0.000157},
    {56.668646, 57420.9295360, 0, 0, 0.000040},  {67.364003, 76560.2552215, 0, 0, 0.000001},
    {104.792680, 95700.4387578, 0, 0, 0.000001}, {95.391654, 0.5042615, 0, 0, 0.584542},
};

typedef struct pole {
    double right_ascension, declination, meridian;  // degrees
} pole;

static void add_terms(pole *p, const term *terms, int n, double time) {
    for (int i = 0; i < n; i++) {
        const double angle = DEGREE * (terms[i].at + terms[i].rate * time);
        p->right_ascension += terms[i].right_ascension * sin(angle);
        p->declination += terms[i].declination * cos(angle);
        p->meridian += terms[i].meridian * sin(angle);
    }
}

static pole pole_of(us_planet planet, usi_epoch tt) {
    const double days = (tt.whole - ERFA_DJ00) + tt.part, centuries = days / ERFA_DJC;
    if (planet == US_PLANET_MOON) {
        pole p = {269.9949 + 0.0031 * centuries, 66.5392 + 0.0130 * centuries,
                  38.3213 + 13.17635815 * days - 1.4e-12 * days * days};
        add_terms(&p, moon_terms, (int)(sizeof moon_terms / sizeof *moon_terms), days);
        return p;
    }
    pole p = {317.269202 - 0.10927547 * centuries, 54.432516 - 0.05827105 * centuries,
              176.049863 + 350.891982443297 * days};
    add_terms(&p, mars_terms, (int)(sizeof mars_terms / sizeof *mars_terms), centuries);
    return p;
}

us_quat usi_planet_orientation(us_planet planet, double date) {
    const usi_epoch tt = usi_epoch_of(date);
    double r[3][3];
    us_mat3 out;
    if (planet == US_PLANET_EARTH) {
        eraC2t00b(tt.whole, tt.part, USI_JD_1970, date / 86400, 0, 0, r);
    } else {
        const pole p = pole_of(planet, tt);
        eraIr(r);
        eraRz(DEGREE * (90 + p.right_ascension), r);
        eraRx(DEGREE * (90 - p.declination), r);
        eraRz(DEGREE * p.meridian, r);
    }
    for (int i = 0; i < 9; i++)
        out.m[i] = r[i / 3][i % 3];
    return us_quat_from_matrix(out);
}
