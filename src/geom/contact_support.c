// Supporting points of a contact patch: what of many candidates must stay.
//
// A body that moves a little, up and down and by two small tilts, is held by those points (x, y, gap) that
// are corners of their lower convex hull; the others are never reached first:
//
//     gap                            A corner of that hull is the point with the largest
//      |   .   o    .   .
//      |   o .    o   . o               s = t (c x + s y) - gap
//      |   |\_       _/ |
//      |   |  \o___o/   |            for some tilt t and direction (c, s) round the normal. A table of slots
//      +---------------------- x     asks for eight directions at tilts of 0, 1 mrad, 30 mrad, and without
//                                    end: the outermost points.
//
// A maximum does not depend on the order in which points come, so a stream of any length keeps its supporting
// points in a fixed room. Points with different normals hold in different directions: each of the six facings
// has a table of its own.
#include "geom/contact_support.h"

static const double tilts[USI_SUPPORT_TILTS] = {1e-3, 3e-2};
// Among outermost points the deeper one.
static const double outermost = 1e-6;

// Extent of a box, or of a point, across a facing.
typedef struct extent_across {
    double u0, u1, v0, v1;
} extent_across;

static extent_across extent_across_of(int facing, const us_vec3 *min, const us_vec3 *max) {
    if (facing < 2) return (extent_across){min->y, max->y, min->z, max->z};
    if (facing < 4) return (extent_across){min->z, max->z, min->x, max->x};
    return (extent_across){min->x, max->x, min->y, max->y};
}

// The largest scores that a point of that extent with this gap can have.
static void find_scores(const extent_across *f, double gap, double out[USI_SUPPORT_SLOTS]) {
    const double h = 0.70710678118654752;
    const double far[USI_SUPPORT_ROUND] = {f->u1,  h * (f->u1 + f->v1),  f->v1,  h * (f->v1 - f->u0),
                                           -f->u0, -h * (f->u0 + f->v0), -f->v0, h * (f->u1 - f->v0)};
    out[0] = -gap;
    for (int k = 0; k < USI_SUPPORT_ROUND; k++) {
        double *slot = out + 1 + k;
        for (int i = 0; i < USI_SUPPORT_TILTS; i++, slot += USI_SUPPORT_ROUND)
            *slot = tilts[i] * far[k] - gap;
        *slot = far[k] - outermost * gap;
    }
}

void usi_support_clear(usi_support *s) {
    for (int i = 0; i < USI_SUPPORT_FACINGS; i++)
        for (int k = 0; k < USI_SUPPORT_SLOTS; k++)
            s->best[i][k] = -INFINITY;
}

void usi_support_add(usi_support *s, us_vec3 normal, us_vec3 p, double gap) {
    const int facing = usi_facing(normal);
    const extent_across f = extent_across_of(facing, &p, &p);
    double score[USI_SUPPORT_SLOTS], *best = s->best[facing];
    find_scores(&f, gap, score);
    for (int k = 0; k < USI_SUPPORT_SLOTS; k++)
        best[k] = score[k] > best[k] ? score[k] : best[k];
}

bool usi_support_is_open(const usi_support *s, uint32_t facing, const us_aabb *box, double min_gap,
                         double tolerance, double same) {
    for (int i = 0; i < USI_SUPPORT_FACINGS; i++) {
        if (!(facing >> i & 1)) continue;
        const extent_across f = extent_across_of(i, &box->min, &box->max);
        const double *best = s->best[i];
        double score[USI_SUPPORT_SLOTS];
        find_scores(&f, min_gap, score);
        if (score[0] > best[0] + same) return true;
        for (int k = 1; k < USI_SUPPORT_SLOTS; k++) {
            const int level = (k - 1) / USI_SUPPORT_ROUND;
            const double slack = level < USI_SUPPORT_TILTS ? fmax(same, tilts[level] * tolerance) : tolerance;
            if (score[k] > best[k] + slack) return true;
        }
    }
    return false;
}

// ---- Candidates ----

void usi_candidates_keep_support(usi_candidates *c, int32_t first) {
    bool is_kept[USI_CANDIDATES] = {false};
    int32_t at[USI_SUPPORT_FACINGS][USI_SUPPORT_SLOTS];
    usi_support table;
    usi_support_clear(&table);
    for (int i = 0; i < USI_SUPPORT_FACINGS; i++)
        for (int k = 0; k < USI_SUPPORT_SLOTS; k++)
            at[i][k] = -1;
    for (int32_t i = first; i < c->n; i++) {
        const usi_candidate *p = &c->at[i];
        const int facing = usi_facing(p->normal);
        const extent_across f = extent_across_of(facing, &p->p_B, &p->p_B);
        double score[USI_SUPPORT_SLOTS];
        find_scores(&f, p->gap, score);
        for (int k = 0; k < USI_SUPPORT_SLOTS; k++) {
            // Of equal ones that with the lesser id, so that the order in which they came does not matter.
            int32_t *best = &at[facing][k];
            bool is_better = score[k] > table.best[facing][k] ||
                             (*best >= 0 && score[k] == table.best[facing][k] && p->id < c->at[*best].id);
            if (!is_better) continue;
            table.best[facing][k] = score[k];
            *best = i;
        }
    }
    for (int i = 0; i < USI_SUPPORT_FACINGS; i++)
        for (int k = 0; k < USI_SUPPORT_SLOTS; k++)
            if (at[i][k] >= 0) is_kept[at[i][k]] = true;
    int32_t n = first;
    for (int32_t i = first; i < c->n; i++)
        if (is_kept[i]) c->at[n++] = c->at[i];
    c->n = n;
}

void usi_candidates_make_room(usi_candidates *c, int32_t first) {
    if (c->n <= USI_CANDIDATES / 2) return;
    usi_candidates_keep_support(c, first);
    // Surfaces that look many ways at once may have more supporting points than there is room for.
    if (c->n > USI_CANDIDATES / 2) usi_candidates_keep_spread(c, first, USI_CANDIDATES / 4, 0);
    // Those of others before `first` leave no more.
    if (c->n > 3 * USI_CANDIDATES / 4) usi_candidates_keep_spread(c, first, US_MANIFOLD_POINTS, 0);
}
