// Noise of instruments, exactly discretised: what a process does between two samples is drawn from its
// distribution over that time, so that its statistics and its Allan deviation do not depend on the rate.
//
// Each function takes a normal number of mean 0 and variance 1 for each that it draws; what a process
// remembers is one double of the caller. Names and units by Allan parameters (IEEE 952), for a gyroscope in
// rad/s and an accelerometer in m/s^2 (below as x):
//
//     N   angle or velocity random walk   x / sqrt(Hz)    white noise of the reading
//     B   bias instability                x               first-order Gauss-Markov, see below
//     K   rate random walk                x sqrt(Hz)      the bias walks
//     Q   quantisation                    x s             the integral of the reading is rounded
//
//     Allan variance at tau:   N^2 / tau + B's + K^2 tau / 3
//
// Flicker has no state of finite size. B stands for a Gauss-Markov process of correlation time T whose Allan
// deviation has its maximum, at 1.89 T, at the level 0.664 B where the flicker's is flat.
#ifndef USI_SENSE_NOISE_PROCESS_H
#define USI_SENSE_NOISE_PROCESS_H

#include "understudy/math.h"

// White noise of density N, as the mean over a sample's time: its deviation is N / sqrt(interval).
static inline double usi_noise_white(double density, double interval, double normal) {
    return interval > 0 && density > 0 ? density / sqrt(interval) * normal : 0;
}

// A walk of density K; returns its value, which it also keeps.
static inline double usi_noise_walk(double density, double interval, double normal, double *at) {
    if (interval > 0) *at += density * sqrt(interval) * normal;
    return *at;
}

// First-order Gauss-Markov process of a stationary deviation and a correlation time. Over an interval h it
// forgets exp(-h / time) of what it was. Without an interval its value is drawn from the stationary
// distribution.
double usi_noise_markov(double deviation, double time, double interval, double normal, double *at);

// The stationary deviation of the Gauss-Markov process that stands for a bias instability B, and the Allan
// variance of such a process, of white noise and of a walk together at tau.
double usi_noise_markov_deviation(double instability);
double usi_noise_allan_variance(double white, double instability, double time, double walk, double tau);

// Rounded to whole units; a unit of 0 rounds nothing.
static inline double usi_noise_round(double unit, double x) {
    return unit > 0 ? unit * nearbyint(x / unit) : x;
}

// Cut off at +-limit; a limit of 0 cuts nothing.
static inline double usi_noise_limit(double limit, double x) {
    return limit > 0 ? fmax(-limit, fmin(limit, x)) : x;
}

#endif
