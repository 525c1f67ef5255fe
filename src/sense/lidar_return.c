// What a lidar makes of what its beams meet: returns that are mixed, told apart or lost, noise, rounding.
//
// The received power over that which is needed to see a return is, for a surface that scatters evenly and
// sends a part straight back,
//
//     P = 10 (rho cos(incidence) + retro) (reach / r)^2 exp(-2 extinction r)
//
// and a return is seen with probability Phi((P - T) / (power noise T)), T = 1 without the sun. Light of the
// sun that the surface scatters into the receiver adds to its variance, and what is needed grows with its
// deviation: T = sqrt(1 + sun rho cos(sun)). Intensities are those of a device that is calibrated:
// 255 (rho cos(incidence) + retro), whatever the range.
//
// Of dust there is one echo more: where it is seen first, by the chances of the model (model/lidars.c).
//
// What is told of the seen ones gets noise along the beam, is rounded to the device's unit, and the point is
// moved across the beam by an angle, both ways:
//
//     r' = q round((r + s_r n_0) / q),   p = r' (d + s_a (n_1 e_1 + n_2 e_2))
//
// Normals come four beams at a time, by Box and Muller from counters: of an angle from -90 to 90 degrees, a
// sign that turns it around, and a radius. What only lidars of several returns need is drawn from a key of
// its own, so that what one echo makes is the same with and without.
#include "sense/lidar_return.h"

#include "base/random.h"
#include "math/v4_functions.h"

static const double HALF_PI = 1.57079632679489661923;

enum { DRAWS = 5 };  // counters of a beam: two radii, two angles, one for the return

typedef struct normals {
    usi_v4 range, across[2];
} normals;

static usi_v4 uniform4(uint64_t key, uint64_t first) {
    usi_v4 u;
    for (int k = 0; k < 4; k++)
        u[k] = usi_random_uniform(key, first + (uint64_t)(DRAWS * k));
    return u;
}

// Two normals of each lane.
static void pair4(uint64_t key, uint64_t first, usi_v4 *out_a, usi_v4 *out_b) {
    const usi_v4 u = uniform4(key, first), turn = uniform4(key, first + 1);
    const usi_v4 radius = usi_v4_sqrt(-2 * usi_v4_log(1 - u));
    usi_v4 s, c;
    // A whole turn is two halves: in the second one both signs change.
    const usi_v4i is_second = turn >= usi_v4_all(0.5);
    const usi_v4 within = turn - usi_v4_select(is_second, usi_v4_all(0.75), usi_v4_all(0.25));
    usi_v4_sin_cos(within * (4 * HALF_PI), &s, &c);
    const usi_v4 signed_radius = usi_v4_select(is_second, -radius, radius);
    *out_a = signed_radius * c;
    *out_b = signed_radius * s;
}

static normals normals_of(const us_lidar_def *d, uint64_t key, uint64_t first) {
    normals n = {usi_v4_zero(), {usi_v4_zero(), usi_v4_zero()}};
    usi_v4 unused;
    if (d->range_noise > 0) pair4(key, first, &n.range, &unused);
    if (d->angle_noise > 0) pair4(key, first + 2, &n.across[0], &n.across[1]);
    return n;
}

// ---------------------------------------------------------------- where it looks

// By a rotation vector across the axis: `left` and `up` of its end. Straight ahead is x.
static us_vec3 bent(double left, double up) {
    const double angle = sqrt(left * left + up * up), share = angle > 1e-12 ? sin(angle) / angle : 1;
    return us_vec3_make(cos(angle), share * left, share * up);
}

usi_lidar_aim usi_lidar_aim_at(const usi_lidar *l, int64_t group, double time, double into) {
    const us_lidar_def *d = l->def;
    usi_lidar_aim aim = {0, 1, {1, 0, 0}};
    if (d->pattern == US_LIDAR_SPIN) {
        const double azimuth = d->start + l->spin * into;
        aim.sine = sin(azimuth);
        aim.cosine = cos(azimuth);
    } else if (d->pattern == US_LIDAR_GRID) {
        const int64_t k = group % l->n_group, row = k / l->n_column, column = k % l->n_column;
        const double left = d->resolution[0] * (0.5 * (l->n_column - 1) - (double)column),
                     up = d->resolution[1] * ((double)row - 0.5 * (l->n_ring - 1));
        aim.d = us_vec3_make(cos(up) * cos(left), cos(up) * sin(left), sin(up));
    } else {
        const double a = d->spin[0] * time, b = d->spin[1] * time;
        aim.d = bent(d->bend[0] * cos(a) + d->bend[1] * cos(b), d->bend[0] * sin(a) + d->bend[1] * sin(b));
    }
    return aim;
}

bool usi_lidar_is_between(const usi_lidar *l, const usi_lidar_aim *aim, double from, double to) {
    const double azimuth =
        l->def->pattern == US_LIDAR_SPIN ? atan2(aim->sine, aim->cosine) : atan2(aim->d.y, aim->d.x);
    const double turn = 4 * HALF_PI, width = to - from, at = azimuth - from;
    return at - turn * floor(at / turn) <= width - turn * floor(width / turn);
}

bool usi_lidar_is_blind(const usi_lidar *l, const usi_lidar_aim *aim) {
    bool is_blind = false;
    for (int32_t i = 0; i < l->def->n_blind; i++)
        is_blind = is_blind || usi_lidar_is_between(l, aim, l->def->blind[i][0], l->def->blind[i][1]);
    return is_blind;
}

// ---------------------------------------------------------------- echoes

void usi_lidar_mix(const usi_lidar *l, usi_lidar_echo *echo) {
    const int32_t n = l->n_ray;
    if (n == 1) return;
    for (int32_t i = 1; i < n; i++) {
        const usi_lidar_echo e = echo[i];
        int32_t k = i;
        for (; k > 0 && echo[k - 1].range > e.range; k--)
            echo[k] = echo[k - 1];
        echo[k] = e;
    }
    int32_t n_echo = 0;
    for (int32_t i = 0; i < n && isfinite(echo[i].range);) {
        const double first = echo[i].range, until = first + l->def->pulse;
        usi_lidar_echo sum = {.cosine = 1};
        double light = 0, middle = 0;
        for (; i < n && echo[i].range <= until; i++) {
            const usi_lidar_echo *e = &echo[i];
            const double sent = e->reflectivity * e->cosine + e->retroreflection,
                         near = first > 0 ? first / e->range : 1, power = sent * near * near;
            light += power;
            middle += power * (e->range - first);
            sum.reflectivity += e->reflectivity * e->cosine / n;
            sum.retroreflection += e->retroreflection / n;
            sum.sunlit += e->sunlit / n;
        }
        sum.range = first + (light > 0 ? middle / light : 0);
        echo[n_echo++] = sum;
    }
    for (; n_echo < n; n_echo++)
        echo[n_echo] = (usi_lidar_echo){.range = INFINITY};
}

// What of the shot may be told: its range, the received power and the intensity.
typedef struct seen {
    double range, power, intensity;
} seen;

static double fading(const us_lidar_def *d, double range) {
    return d->extinction > 0 ? exp(-2 * d->extinction * range) : 1;
}

static double power_of(const us_lidar_def *d, const usi_lidar_echo *e, double light) {
    const double ratio = d->reach / e->range;
    return light *
           (10 * e->reflectivity * e->cosine * ratio * ratio + 10 * e->retroreflection * ratio * ratio) *
           fading(d, e->range);
}

// Whether enough light comes back. Only near the limit is a number drawn.
static bool is_seen(const us_lidar_def *d, const usi_lidar_echo *e, double power, uint64_t key,
                    uint64_t counter) {
    if (d->reach == 0) return true;
    const double needed = d->sun > 0 ? sqrt(1 + d->sun * e->sunlit) : 1;
    if (d->power_noise == 0) return power >= needed;
    const double z = (power - needed) / (d->power_noise * needed);
    if (fabs(z) > 8) return z > 0;
    return usi_random_uniform(key, counter) < 0.5 * erfc(-z * 0.70710678118654752440);
}

// Counters of a shot from the second key: its echoes but the first, two for dust, and of the second return
// two for its range.
enum { MORE = 16, DUST_AT = US_LIDAR_MAX_RAY, DUST_POWER_AT, RANGE_AT };

// The first length of the pulse in which dust is seen, if it is before a range. What it sends back there is
// more than what is needed by an exponential number of its mean, and may be too little behind dirt.
static bool see_dust(const usi_lidar *l, double before, double light, uint64_t key, uint64_t first,
                     seen *out) {
    const us_lidar_def *d = l->def;
    const double u = usi_random_uniform(key, first + DUST_AT);
    if (l->n_dust == 0 || !(u < l->dust[l->n_dust - 1])) return false;
    int32_t low = 0, high = l->n_dust - 1;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (u < l->dust[middle])
            high = middle;
        else
            low = middle + 1;
    }
    const double under = low > 0 ? l->dust[low - 1] : 0, share = (u - under) / (l->dust[low] - under),
                 range = l->dust_from + (low + share) * d->pulse;
    if (!(range < before)) return false;
    const double mean = usi_lidar_dust_power(d, range),
                 power = light * (1 - mean * log1p(-usi_random_uniform(key, first + DUST_POWER_AT))),
                 ratio = range / d->reach;
    if (power < 1) return false;
    *out = (seen){range, power, fmin(255, 25.5 * power * ratio * ratio)};
    return true;
}

static double intensity_of(const us_lidar_def *d, const usi_lidar_echo *e, double light) {
    const double even = light * 255 * e->reflectivity * e->cosine * fading(d, e->range);
    return e->retroreflection > 0 ? fmin(255, even + light * 255 * e->retroreflection * fading(d, e->range))
                                  : even;
}

// All that is seen of a shot, from near to far; how many, and whether something was too near.
static int32_t see_all(const usi_lidar *l, const usi_lidar_echo *echo, double light, const uint64_t key[2],
                       uint64_t counter, uint64_t more, seen out[US_LIDAR_MAX_RAY + 1], bool *out_is_near) {
    const us_lidar_def *d = l->def;
    seen dust;
    int32_t n = 0;
    bool is_dusty =
        l->n_dust > 0 && see_dust(l, fmin(echo[0].range, d->max_range), light, key[1], more, &dust);
    if (is_dusty) out[n++] = dust;
    *out_is_near = false;
    for (int32_t i = 0; i < l->n_ray; i++) {
        const usi_lidar_echo *e = &echo[i];
        if (!(e->range <= d->max_range)) break;
        if (e->range < d->min_range) {
            *out_is_near = true;
            continue;
        }
        const double power =
            d->reach > 0 ? power_of(d, e, light) : e->reflectivity * e->cosine + e->retroreflection;
        const bool is_first = i == 0;
        if (is_seen(d, e, power, is_first ? key[0] : key[1], is_first ? counter : more + (uint64_t)i - 1))
            out[n++] = (seen){e->range, power, intensity_of(d, e, light)};
    }
    return n;
}

// The same of a line without dust, which is what most lidars are: it is what is told.
static bool see_one(const us_lidar_def *d, const usi_lidar_echo *e, double light, uint64_t key,
                    uint64_t counter, seen *out, bool *out_is_near) {
    if (!(e->range <= d->max_range)) return false;
    *out_is_near = e->range < d->min_range;
    if (*out_is_near) return false;
    out->range = e->range;
    out->power = d->reach > 0 ? power_of(d, e, light) : e->reflectivity * e->cosine + e->retroreflection;
    out->intensity = intensity_of(d, e, light);
    return is_seen(d, e, out->power, key, counter);
}

// Which of them are told: one, or two of dual returns.
static int32_t choose(const us_lidar_def *d, const seen *all, int32_t n, seen out[2]) {
    int32_t strongest = 0;
    for (int32_t i = 1; i < n; i++) {
        if (all[i].power > all[strongest].power) strongest = i;
    }
    if (n == 0) return 0;
    out[0] = all[d->returns == US_LIDAR_FIRST ? 0 : d->returns == US_LIDAR_LAST ? n - 1 : strongest];
    if (d->returns != US_LIDAR_DUAL || n == 1) return 1;
    int32_t other = n - 1;
    if (strongest == other) {
        other = 0;
        for (int32_t i = 1; i < n - 1; i++) {
            if (all[i].power > all[other].power) other = i;
        }
    }
    out[1] = all[other];
    return 2;
}

// ---------------------------------------------------------------- points

static void put_none(float out[4], bool is_near) {
    out[0] = is_near ? -INFINITY : INFINITY;
    out[1] = out[2] = out[3] = 0;
}

// At a range off by `more`, and off across by two angles, in deviations.
static void put_point(const us_lidar_def *d, double cos_up, double sin_up, us_vec3 direction, const seen *e,
                      double more, const double across[2], float out[4]) {
    double r = e->range + d->range_noise * more;
    if (d->quantum > 0) r = d->quantum * nearbyint(r / d->quantum);
    us_vec3 p = us_vec3_scale(r, direction);
    if (d->angle_noise > 0) {
        // Across: level to the left, and upwards.
        const double flat = cos_up > 1e-12 ? 1 / cos_up : 0, left = r * d->angle_noise * across[0],
                     up = r * d->angle_noise * across[1];
        const double c = direction.x * flat, s = direction.y * flat;
        p.x += -left * s - up * sin_up * c;
        p.y += left * c - up * sin_up * s;
        p.z += up * cos_up;
    }
    out[0] = (float)p.x;
    out[1] = (float)p.y;
    out[2] = (float)p.z;
    out[3] = (float)e->intensity;
}

// A number of the normal distribution for the range of the second return.
static double normal_of(uint64_t key, uint64_t counter) {
    const double u = usi_random_uniform(key, counter), turn = usi_random_uniform(key, counter + 1);
    return sqrt(-2 * log(1 - u)) * cos(4 * HALF_PI * turn);
}

void usi_lidar_points(const us_model *m, const usi_lidar *l, const usi_lidar_wear *wear, int64_t group,
                      int64_t k, const usi_lidar_aim *aim, const usi_lidar_echo *echo, float (*frame)[4],
                      float *truth) {
    // Beside those of links and inertial units; and what only some lidars draw.
    static const uint64_t lidar_stream = UINT64_C(3) << 32, more_stream = UINT64_C(4) << 32;
    const us_lidar_def *d = l->def;
    const double noise = wear ? wear->noise : 1, light = wear ? wear->light : 1;
    const uint64_t seed = m->seed + USI_GOLDEN * m->sensor[l->sensor].seed,
                   key[2] = {usi_random_key(seed, lidar_stream + (uint64_t)l->sensor),
                             usi_random_key(seed, more_stream + (uint64_t)l->sensor)};
    for (int32_t i = 0; i < d->n_beam; i += 4) {
        const uint64_t shot = (uint64_t)group * (uint64_t)d->n_beam + (uint64_t)i, first = DRAWS * shot;
        const normals n = normals_of(d, key[0], first);
        for (int lane = 0; lane < 4 && i + lane < d->n_beam; lane++) {
            const usi_lidar_beam *b = &l->beam[i + lane];
            const uint64_t more = MORE * (shot + (uint64_t)lane);
            const usi_lidar_echo *first_echo = &echo[(i + lane) * l->n_ray];
            if (truth) truth[usi_lidar_truth_place(l, k, b->ring)] = (float)first_echo->range;
            seen all[US_LIDAR_MAX_RAY + 1], told[2] = {{0, 0, 0}, {0, 0, 0}};
            bool is_near = false;
            const uint64_t counter = first + (uint64_t)(DRAWS * lane) + 4;
            int32_t n_told = 0;
            if (first_echo->is_lost)
                n_told = 0;
            else if (l->n_ray == 1 && l->n_dust == 0)
                n_told = see_one(d, first_echo, light, key[0], counter, &told[0], &is_near) ? 1 : 0;
            else
                n_told =
                    choose(d, all, see_all(l, first_echo, light, key, counter, more, all, &is_near), told);
            const us_vec3 direction = usi_lidar_direction(l, b, aim);
            const bool is_spin = d->pattern == US_LIDAR_SPIN;
            const double sin_up = is_spin ? b->sin_up : direction.z,
                         cos_up = is_spin ? b->cos_up : sqrt(fmax(0, 1 - direction.z * direction.z)),
                         across[2] = {noise * n.across[0][lane], noise * n.across[1][lane]};
            for (int32_t j = 0; j < l->n_return; j++) {
                float *point = frame[usi_lidar_place(l, k, b->ring, j)];
                if (j >= n_told) {
                    put_none(point, is_near);
                    continue;
                }
                double along = n.range[lane];
                if (j > 0 && d->range_noise > 0) along = normal_of(key[1], more + RANGE_AT);
                put_point(d, cos_up, sin_up, direction, &told[j], noise * along, across, point);
            }
        }
    }
}
