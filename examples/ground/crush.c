// Deformable ground of one's own, as a plug-in: soil that is crushed for good and springs back a little.
//
// Each column remembers how far it was crushed and the stress that did it (its yield). What presses less acts
// on a spring of the stiffness Ke against the crushed surface; what presses more crushes it on along Bekker's
// law, after the soil contact model of Krenn and Hirzinger:
//
//     stress                                       p = k z^n,  k = kc (1/a + 1/b) + kphi
//      |          .  fresh                         a, b: the length and width of the patch
//      |        /.
//      |      ./ |                                 crushed = z - p / Ke
//      |   . /   | reloading: Ke
//      | .  /    |
//      +---/-----+--- depth of the body
//
//     <shape type="height-field" bed="2 cm" bed-model="crush" surface="soil" .../>
//     <pair a="soil" b="steel">
//       <number key="elastic" value="2e8"/>   Pa/m: Ke
//       <number key="damping" value="2e4"/>   Pa s/m
//     </pair>
#include <math.h>
#include <understudy/ground_model.h>

// The state: of the ground the work that bodies did on it, J; of a column its yield, Pa. How far it was
// crushed is the change of its height.
enum { WORK, N_STATE };
enum { YIELD, N_COLUMN_STATE };

typedef struct law {
    double k, n, elastic, damping, area;
} law;

static law law_of(const us_ground *g, const us_ground_patch *patch) {
    // Length and width of what lies in the ground.
    int32_t x0 = g->n_x, x1 = -1, y0 = g->n_y, y1 = -1;
    for (int32_t i = 0; i < patch->n_node; i++) {
        const us_ground_node *node = &patch->node[i];
        if (node->sinkage <= 0) continue;
        x0 = node->i < x0 ? node->i : x0;
        x1 = node->i > x1 ? node->i : x1;
        y0 = node->j < y0 ? node->j : y0;
        y1 = node->j > y1 ? node->j : y1;
    }
    double a = g->spacing * (x1 >= x0 ? x1 - x0 + 1 : 1), b = g->spacing * (y1 >= y0 ? y1 - y0 + 1 : 1);
    law l;
    l.k = g->soil->kc * (1 / a + 1 / b) + g->soil->kphi;
    l.n = g->soil->n;
    l.elastic = us_property_number(patch->parameters, patch->n_parameter, "elastic", 2e8);
    l.damping = us_property_number(patch->parameters, patch->n_parameter, "damping", 2e4);
    l.area = g->spacing * g->spacing;
    return l;
}

// What a column bears at a depth below its surface, Pa, and how that grows. Returns whether it is crushed on,
// along the fresh curve from where it was.
static bool bear(const law *l, double crushed, double yield, double depth, double *stress, double *slope) {
    const double total = crushed + depth, fresh = l->k * pow(total, l->n);
    *stress = l->elastic * depth;
    *slope = l->elastic;
    if (!(*stress > yield && *stress > fresh)) return false;
    *stress = fresh;
    *slope = l->n * fresh / total;
    return true;
}

// Steps 1 to 3 of gluing: these nodes, and what they bear.
static bool act(const us_ground *g, const double *state, const us_ground_patch *patch,
                us_ground_answer *answer, void *user) {
    (void)state, (void)user;
    const law l = law_of(g, patch);
    if (!(l.k > 0 && l.elastic > 0 && l.damping >= 0)) return false;  // the step fails
    for (int32_t i = 0; i < patch->n_node; i++) {
        const us_ground_node *node = &patch->node[i];
        double stress, slope;
        bear(&l, -g->get_change(g, node->i, node->j), g->view_column(g, node->i, node->j)[YIELD],
             fmax(node->sinkage, 0), &stress, &slope);
        const double force = l.area * stress,
                     shear = tan(node->soil->friction_angle) * force + node->soil->cohesion * l.area;
        answer[i].force = force;
        answer[i].stiffness = l.area * slope;
        answer[i].damping = l.area * l.damping;
        answer[i].friction = force > 0 ? fmin(shear / force, 10) : 0;
        answer[i].hold = fmax(shear, 1e-3) / node->soil->shear_x;
    }
    return true;
}

// Step 5: what was crushed stays so. `carried`, what the step made of it, with the damping, is work.
static void settle(const us_ground *g, double *state, const us_ground_patch *patch, int32_t n_patch,
                   void *user) {
    (void)user;
    for (int32_t p = 0; p < n_patch; p++) {
        const law l = law_of(g, &patch[p]);
        for (int32_t i = 0; i < patch[p].n_node; i++) {
            const us_ground_node *node = &patch[p].node[i];
            const us_vec3 f = node->carried, v = node->velocity;
            state[WORK] -= g->step * (f.x * v.x + f.y * v.y + f.z * v.z);
            const double crushed = -g->get_change(g, node->i, node->j), depth = fmax(node->sinkage, 0),
                         yield = g->view_column(g, node->i, node->j)[YIELD];
            double stress, slope;
            if (!bear(&l, crushed, yield, depth, &stress, &slope)) continue;
            // The bedrock ends it: then the column stays as it is.
            if (g->set_change(g, node->i, node->j, stress / l.elastic - crushed - depth))
                g->set_column(g, node->i, node->j, &stress);
        }
    }
}

static bool check(const double *numbers, bool is_column, void *user) {
    (void)user;
    return !is_column || numbers[YIELD] >= 0;
}

// Every ground model of this library. The program asks for them when the scene says <plugin
// file="crush.so"/>. It is found by its name, which C++ would change.
#ifdef __cplusplus
extern "C"
#endif
    US_API const us_ground_model *
    us_plugin_ground_models(int32_t *out_n);
US_API const us_ground_model *us_plugin_ground_models(int32_t *out_n) {
    static const us_ground_model models[] = {{US_GROUND_MODEL_ABI, (int32_t)sizeof(us_ground_model), "crush",
                                              N_STATE, N_COLUMN_STATE, false, NULL, act, settle, check}};
    *out_n = (int32_t)(sizeof models / sizeof *models);
    return models;
}
