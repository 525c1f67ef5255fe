// A wheel across the edge of a region: how much of its width lies in which soil.
//
//     o---o---o---o-|-o---o---o---o---o      Nine places across the width. Between two of different soils the
//     sand          |            clay        edge is found by halving: the shares go over without jumps.
//
// Each soil acts on its share of the width, at the middle of that. Parts are in the order of the materials,
// so that a mirrored wheel has the same ones.
#include <math.h>

#include "contact/contact__soil.h"

enum { INTERVALS = 8, HALVINGS = 40 };

// Less of the width than this belongs to the other soils.
static const double MIN_SHARE = 1e-3;

typedef struct split {
    const usi_contacts *c;
    const usi_contact_state *now;
    const usi_touch *t;
    us_vec3 hub, axle;
    usi_wheel_part *part;  // aside: the integral of the place over the width, until all is counted
    int32_t n;
} split;

static int32_t soil_at(const split *x, double s) {
    const us_model *m = x->c->model;
    const int32_t material =
        usi_ground_material_at(m, x->now, x->t->geom_a, x->hub.x + s * x->axle.x, x->hub.y + s * x->axle.y);
    return usi_soil_acts(x->c, material, m->geom[x->t->geom_b].material) ? material : x->t->material;
}

// Adds a piece of the width, from `low` to `high`. More soils than there may be parts: it goes to the last.
static void add_piece(split *x, int32_t material, double low, double high) {
    int32_t i = 0;
    while (i < x->n && x->part[i].material != material)
        i++;
    if (i == USI_WHEEL_PARTS) i--;
    if (i == x->n) x->part[x->n++] = (usi_wheel_part){.material = material};
    x->part[i].share += high - low;
    x->part[i].aside += 0.5 * (high * high - low * low);
}

// Where the soil changes between two places.
static double edge_between(const split *x, double low, double high, int32_t soil) {
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = 0.5 * (low + high);
        if (soil_at(x, middle) == soil)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

static void sort_parts(split *x) {
    for (int32_t i = 1; i < x->n; i++) {
        usi_wheel_part part = x->part[i];
        int32_t k = i;
        for (; k > 0 && x->part[k - 1].material > part.material; k--)
            x->part[k] = x->part[k - 1];
        x->part[k] = part;
    }
}

// Lengths to shares; slivers are left out.
static void finish(split *x, double width) {
    double all = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < x->n; i++) {
        usi_wheel_part part = x->part[i];
        if (part.share < MIN_SHARE * width) continue;
        all += part.share;
        part.aside /= part.share;
        x->part[n++] = part;
    }
    for (int32_t i = 0; i < n; i++)
        x->part[i].share /= all;
    x->n = n;
    sort_parts(x);
}

int32_t usi_split_wheel(const usi_contacts *c, const usi_contact_state *now, const usi_touch *t, us_vec3 hub,
                        us_vec3 axle, double width, usi_wheel_part out[USI_WHEEL_PARTS]) {
    split x = {.c = c, .now = now, .t = t, .hub = hub, .axle = axle, .part = out};
    int32_t soil[INTERVALS + 1], n_other = 0;
    for (int i = 0; i <= INTERVALS; i++) {
        soil[i] = soil_at(&x, width * ((double)i / INTERVALS - 0.5));
        n_other += soil[i] != t->material;
    }
    out[0] = (usi_wheel_part){.material = t->material, .share = 1};
    if (n_other == 0) return 1;
    for (int i = 0; i < INTERVALS; i++) {
        const double low = width * ((double)i / INTERVALS - 0.5),
                     high = width * ((double)(i + 1) / INTERVALS - 0.5);
        const double edge = soil[i] == soil[i + 1] ? high : edge_between(&x, low, high, soil[i]);
        add_piece(&x, soil[i], low, edge);
        if (edge < high) add_piece(&x, soil[i + 1], edge, high);
    }
    finish(&x, width);
    return x.n;
}
