// How much of the light that arrives from one direction a surface sends into another.
//
// Each function gives the radiance for an irradiance of 1 of a surface that the light would meet squarely.
// mu0 and mu are the cosines between the normal and the directions to the light and to the eye, both above 0;
// cosg is that between the two directions. `colour` is the share of light that the surface sends back.
#ifndef USI_SENSE_REFLECTANCE_H
#define USI_SENSE_REFLECTANCE_H

typedef enum usi_reflection {
    USI_LAMBERT,          // the same in all directions: colour / pi * mu0
    USI_LOMMEL_SEELIGER,  // dark dust: light that was scattered once
    USI_HAPKE  // regolith: scattered once, often, and brighter where there are no shadows to be seen
} usi_reflection;

typedef struct usi_reflector {
    usi_reflection reflection;
    double b;   // Hapke: asymmetry of the grains' phase function (Henyey-Greenstein), positive: backwards
    double b0;  // Hapke: strength of the opposition surge
    double h;   // Hapke: its width, as a tangent of half the angle
} usi_reflector;

double usi_reflectance(const usi_reflector *surface, double colour, double mu0, double mu, double cosg);

#endif
