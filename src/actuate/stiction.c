// Stiction: where dry friction holds a joint. Within its bounds friction is a stiff spring from there; beyond
// them the joint slides and takes the place along.
#include "actuate/actuate.h"

void usi_stiction_set(const us_model *m, const double *q, const double *blockage, double *out_stuck) {
    for (int32_t k = 0; k < m->n_friction; k++) {
        const usi_joint_law *law = &m->joint_law[m->friction[k]];
        out_stuck[k] = usi_friction_now(law, blockage[k]).kp > 0 ? q[law->q] : 0;
    }
}

void usi_stiction_move(const us_model *m, const double *q, const double *blockage, const double *stuck,
                       double *out_stuck) {
    for (int32_t k = 0; k < m->n_friction; k++) {
        const usi_joint_law *law = &m->joint_law[m->friction[k]];
        const usi_friction f = usi_friction_now(law, blockage[k]);
        out_stuck[k] = 0;
        if (f.kp == 0) continue;
        double at = q[law->q], reach = f.bound / f.kp, stretch = stuck[k] - at;
        out_stuck[k] = stretch > reach ? at + reach : stretch < -reach ? at - reach : stuck[k];
    }
}
