// What surfaces are made of, and how two of them touch: the interaction table.
//
// The table has one element for each ordered pair of materials. A row of the spec may name both materials,
// one or none, and a fidelity or none; the most particular row that fits wins, and where no row fits the
// defaults hold:
//
//     both materials  >  one  >  none;    then  with the wanted fidelity  >  without;    then  later  >
//     earlier
#include "model/compile.h"

#include <stdio.h>
#include <string.h>

static const char *const solver_names[] = {"newton", "gauss-seidel", "rigid-direct", "rigid-iterative"};
enum { N_SOLVER = sizeof solver_names / sizeof *solver_names };

// Appends to a list of names; what does not fit is left out.
static void list_name(char *list, size_t cap, const char *name) {
    size_t used = strlen(list), length = strlen(name);
    if (used + length + 3 > cap) return;
    if (used) {
        memcpy(list + used, ", ", 2);
        used += 2;
    }
    memcpy(list + used, name, length + 1);
}

static us_status read_solver(usi_build *b, us_model *m) {
    const char *name = b->spec->world.solver;
    if (!name || !name[0]) name = solver_names[USI_SOLVER_NEWTON];
    for (int32_t i = 0; i < N_SOLVER; i++) {
        if (strcmp(name, solver_names[i]) != 0) continue;
        m->solver = i;
        return US_OK;
    }
    return us_error_set(b->err, US_ERR_NAME, NULL,
                        "use one of newton, gauss-seidel, rigid-direct, rigid-iterative",
                        "there is no contact solver \"%.60s\"", name);
}

int32_t usi_find_material(const us_model *m, const char *name) {
    for (int32_t i = 0; i < m->n_material; i++) {
        if (strcmp(m->material[i].name, name) == 0) return i;
    }
    return -1;
}

us_status usi_build_unknown_material(usi_build *b, const us_model *m, const char *file, int32_t line,
                                     const char *what, const char *name, const char *material) {
    char message[400], known[200] = "";
    for (int32_t i = 0; i < m->n_material; i++)
        list_name(known, sizeof known, m->material[i].name);
    snprintf(message, sizeof message, "there is no material \"%.80s\"; known: %s", material, known);
    return usi_build_fail(b, US_ERR_NAME, file, line, what, name,
                          "name one of these, or define it: <material name=\"...\"/>", message);
}

// Copies the materials: 0 is "default", defined or not; the others follow in the order of the spec.
static us_status copy_materials(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    us_material_def *out = usi_arena_alloc(&m->assets.arena, ((size_t)s->n_material + 1) * sizeof *out,
                                           _Alignof(us_material_def));
    if (!out) return usi_build_out_of_memory(b);
    out[0] = (us_material_def){.name = "default"};
    m->material = out;
    m->n_material = 1;
    bool is_default_seen = false;
    for (int32_t i = 0; i < s->n_material; i++) {
        us_material_def d = s->material[i];
        if (!d.name || !d.name[0])
            return usi_build_fail(b, US_ERR_NAME, d.file, d.line, "material", "", "give it a name",
                                  "it has no name");
        bool is_default = strcmp(d.name, "default") == 0;
        if (is_default ? is_default_seen : usi_find_material(m, d.name) >= 0)
            return usi_build_fail(b, US_ERR_NAME, d.file, d.line, "material", d.name,
                                  "give each its own name", "the name is used twice");
        is_default_seen |= is_default;
        for (int32_t k = 0; k < d.n_property; k++) {
            for (int32_t l = 0; l < k; l++) {
                if (strcmp(d.properties[k].key, d.properties[l].key) != 0) continue;
                char message[160];
                snprintf(message, sizeof message, "it has two properties \"%.80s\"", d.properties[k].key);
                return usi_build_fail(b, US_ERR_NAME, d.file, d.line, "material", d.name, "keep one of them",
                                      message);
            }
        }
        bool ok = true;
        us_error why;
        if (d.is_soil && us_soil_check(&d.soil, &why))
            return usi_build_fail(b, US_ERR_VALUE, d.file, d.line, "material", d.name, why.remedy,
                                  why.message);
        if (d.is_soil) m->n_soil = -1;
        d.name = usi_arena_text(&m->assets.arena, d.name, &ok);
        d.file = NULL;
        if (!ok || !usi_properties_keep(&m->assets.arena, &d.properties, d.n_property))
            return usi_build_out_of_memory(b);
        out[is_default ? 0 : m->n_material++] = d;
    }
    m->n_soil = m->n_soil ? m->n_material : 0;
    return US_OK;
}

static us_status copy_interactions(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    int32_t n = USI_MODEL_FIRST_REGISTERED + s->n_interaction;
    us_interaction *out =
        usi_arena_alloc(&m->assets.arena, (size_t)n * sizeof *out, _Alignof(us_interaction));
    if (!out) return usi_build_out_of_memory(b);
    out[USI_MODEL_COMPLIANT] = (us_interaction){.version = US_INTERACTION_VERSION, .name = "compliant"};
    out[USI_MODEL_SPRING_DAMPER] =
        (us_interaction){.version = US_INTERACTION_VERSION, .name = "spring-damper"};
    bool ok = true;
    for (int32_t i = 0; i < s->n_interaction; i++) {
        us_interaction *one = &out[USI_MODEL_FIRST_REGISTERED + i];
        *one = s->interaction[i];
        one->name = usi_arena_text(&m->assets.arena, one->name, &ok);
    }
    m->interaction = out;
    m->n_interaction = n;
    return ok ? US_OK : usi_build_out_of_memory(b);
}

static us_status copy_soil_laws(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    us_soil_law *out =
        usi_arena_alloc(&m->assets.arena, ((size_t)s->n_soil_law + 1) * sizeof *out, _Alignof(us_soil_law));
    if (!out) return usi_build_out_of_memory(b);
    bool ok = true;
    for (int32_t i = 0; i < s->n_soil_law; i++) {
        out[i] = s->soil_law[i];
        out[i].name = usi_arena_text(&m->assets.arena, out[i].name, &ok);
        if (out[i].n_state > m->n_law_state) m->n_law_state = out[i].n_state;
    }
    m->soil_law = out;
    m->n_soil_law = s->n_soil_law;
    return ok ? US_OK : usi_build_out_of_memory(b);
}

static us_status copy_ground_models(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    us_ground_model *out = usi_arena_alloc(&m->assets.arena, ((size_t)s->n_ground_model + 1) * sizeof *out,
                                           _Alignof(us_ground_model));
    if (!out) return usi_build_out_of_memory(b);
    bool ok = true;
    for (int32_t i = 0; i < s->n_ground_model; i++) {
        out[i] = s->ground_model[i];
        out[i].name = usi_arena_text(&m->assets.arena, out[i].name, &ok);
    }
    m->ground_model = out;
    m->n_ground_model = s->n_ground_model;
    return ok ? US_OK : usi_build_out_of_memory(b);
}

static us_status copy_rows(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    usi_interaction_row *out = usi_arena_alloc(&m->assets.arena, ((size_t)s->n_pair + 1) * sizeof *out,
                                               _Alignof(usi_interaction_row));
    if (!out) return usi_build_out_of_memory(b);
    for (int32_t i = 0; i < s->n_pair; i++) {
        out[i] = (usi_interaction_row){s->pair[i].parameters, s->pair[i].n_parameter};
        if (!usi_properties_keep(&m->assets.arena, &out[i].parameters, out[i].n_parameter))
            return usi_build_out_of_memory(b);
    }
    m->pair_row = out;
    m->n_pair_row = s->n_pair;
    return US_OK;
}

us_status usi_build_materials(usi_build *b, us_model *m) {
    us_status status = read_solver(b, m);
    if (!status) status = copy_materials(b, m);
    if (!status) status = copy_interactions(b, m);
    if (!status) status = copy_soil_laws(b, m);
    if (!status) status = copy_ground_models(b, m);
    if (!status) status = copy_rows(b, m);
    return status;
}

// ---- Rows ----

static us_status fail_pair(usi_build *b, const us_pair_def *p, us_status code, const char *remedy,
                           const char *message) {
    char name[128];
    snprintf(name, sizeof name, "%.50s, %.50s", p->material_a ? p->material_a : "any",
             p->material_b ? p->material_b : "any");
    return usi_build_fail(b, code, p->file, p->line, "pair", name, remedy, message);
}

static us_status check_values(usi_build *b, const us_pair_def *p) {
    const us_pair_values *v = &p->values;
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"static friction", v->static_friction},
        {"kinetic friction", v->kinetic_friction},
        {"viscous friction", v->viscous},
        {"normal-static", v->normal_static},
        {"rotational scale", v->rotational},
        {"assumed mass", v->assumed_mass},
        {"restitution", v->restitution},
        {"reference speed", v->reference_speed},
        {"stiffness", v->stiffness},
        {"damping ratio", v->damping_ratio},
        {"torsion radius", v->torsion_radius},
        {"rolling length", v->rolling_length},
        {"transition speed", v->transition_speed},
    };
    char message[160];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value >= 0 && numbers[i].value <= 1e15) continue;
        snprintf(message, sizeof message, "its %s is %g", numbers[i].name, numbers[i].value);
        return fail_pair(b, p, US_ERR_VALUE, "write a number of 0 or more", message);
    }
    if (v->restitution > 1) {
        snprintf(message, sizeof message, "its restitution is %g", v->restitution);
        return fail_pair(b, p, US_ERR_VALUE, "write a number from 0 (does not bounce) to 1 (keeps its speed)",
                         message);
    }
    if (v->kinetic_friction > v->static_friction) {
        snprintf(message, sizeof message, "its kinetic friction %g is above its static friction %g",
                 v->kinetic_friction, v->static_friction);
        return fail_pair(b, p, US_ERR_VALUE, "give both, the kinetic one at most as large as the static one",
                         message);
    }
    if (!(v->assumed_mass > 0) || !(v->reference_speed > 0))
        return fail_pair(b, p, US_ERR_VALUE, "write numbers above 0",
                         "its assumed mass or its reference speed is 0");
    return US_OK;
}

// Parameters of the model spring-damper: its exponent, and nothing else. Models of plug-ins know their own.
static us_status check_spring_damper(usi_build *b, const us_pair_def *p) {
    char message[200];
    for (int32_t i = 0; i < p->n_parameter; i++) {
        const us_property *x = &p->parameters[i];
        if (strcmp(x->key, "exponent") != 0) {
            snprintf(message, sizeof message,
                     "the model spring-damper has no parameter \"%.80s\"; known: exponent", x->key);
            return fail_pair(b, p, US_ERR_NAME,
                             "leave it out, or write <number key=\"exponent\" value=\"1.5\"/>", message);
        }
        if (x->type == US_PROPERTY_STRING) {
            snprintf(message, sizeof message, "its exponent is the text \"%.80s\"", x->text);
            return fail_pair(b, p, US_ERR_VALUE,
                             "write it as a number: <number key=\"exponent\" value=\"1.5\"/>", message);
        }
        double n = x->type == US_PROPERTY_INTEGER ? (double)x->integer : x->number;
        if (n >= (double)USI_MIN_EXPONENT && n <= (double)USI_MAX_EXPONENT) continue;
        snprintf(message, sizeof message, "its exponent is %g", n);
        return fail_pair(b, p, US_ERR_VALUE,
                         "write a number from 1 (flat faces) to 4; a sphere on a plane has 1.5", message);
    }
    return US_OK;
}

static bool is_named(const char *text) { return text && text[0]; }

us_status usi_find_pair_model(const us_model *m, const char *name, int32_t *out_model) {
    if (strcmp(name, "soil") == 0) {
        *out_model = USI_MODEL_SOIL;
        return US_OK;
    }
    for (int32_t i = 0; i < m->n_interaction; i++) {
        if (strcmp(m->interaction[i].name, name) != 0) continue;
        *out_model = i;
        return US_OK;
    }
    for (int32_t i = 0; i < m->n_soil_law; i++) {
        if (strcmp(m->soil_law[i].name, name) != 0) continue;
        *out_model = USI_MODEL_SOIL - 1 - i;
        return US_OK;
    }
    return US_ERR_NAME;
}

const char *usi_pair_model_name(const us_model *m, int32_t model) {
    return model >= 0                ? m->interaction[model].name
           : model == USI_MODEL_SOIL ? "soil"
                                     : m->soil_law[USI_MODEL_SOIL - 1 - model].name;
}

static bool is_soil_pair(const us_model *m, int32_t a, int32_t b) {
    return m->material[a].is_soil || m->material[b].is_soil;
}

bool usi_pair_model_fits(const us_model *m, int32_t a, int32_t b, int32_t model) {
    if (model < 0) return is_soil_pair(m, a, b);
    if (model != USI_MODEL_SPRING_DAMPER) return true;
    const int32_t row = m->pair[a * m->n_material + b].parameter;
    if (row < 0) return true;
    double n = us_property_number(m->pair_row[row].parameters, m->pair_row[row].n_parameter, "exponent", 1.5);
    return n >= (double)USI_MIN_EXPONENT && n <= (double)USI_MAX_EXPONENT;
}

// A row while the table is filled.
typedef struct row {
    int32_t a, b;  // materials; -1: any
    int32_t model;
    bool has_model;  // it names one; otherwise soil acts where one of the two is soil
    int32_t rank;    // -1: for another fidelity
} row;

static us_status read_row(usi_build *b, const us_model *m, const us_pair_def *p, row *out) {
    us_status status = check_values(b, p);
    if (status) return status;
    const char *names[2] = {p->material_a, p->material_b};
    int32_t found[2] = {-1, -1};
    for (int k = 0; k < 2; k++) {
        if (!is_named(names[k])) continue;
        found[k] = usi_find_material(m, names[k]);
        if (found[k] < 0)
            return usi_build_unknown_material(b, m, p->file, p->line, "pair", names[k], names[k]);
    }
    int32_t model = USI_MODEL_COMPLIANT;
    if (is_named(p->model) && usi_find_pair_model(m, p->model, &model)) {
        char message[400], known[200] = "";
        for (int32_t i = 0; i < m->n_interaction; i++)
            list_name(known, sizeof known, m->interaction[i].name);
        list_name(known, sizeof known, "soil");
        for (int32_t i = 0; i < m->n_soil_law; i++)
            list_name(known, sizeof known, m->soil_law[i].name);
        snprintf(message, sizeof message, "there is no interaction model \"%.80s\"; known: %s", p->model,
                 known);
        return fail_pair(b, p, US_ERR_NAME,
                         "name one of these, or load the plug-in that has it: <plugin file=\"...\"/>",
                         message);
    }
    bool has_soil = m->n_soil > 0 && (found[0] < 0 || found[1] < 0 || is_soil_pair(m, found[0], found[1]));
    if (model < 0 && !has_soil)
        return fail_pair(b, p, US_ERR_VALUE,
                         "give one of the two a <soil>, or name a model of firm contact: compliant",
                         "its model is one of soil, but neither material is soil");
    if (model == USI_MODEL_SPRING_DAMPER) status = check_spring_damper(b, p);
    if (status) return status;
    const char *wanted = b->spec->world.fidelity;
    bool fits = !is_named(p->fidelity) || (wanted && strcmp(p->fidelity, wanted) == 0);
    *out = (row){found[0], found[1], model, is_named(p->model),
                 fits ? 2 * ((found[0] >= 0) + (found[1] >= 0)) + is_named(p->fidelity) : -1};
    return US_OK;
}

static bool speaks_of(const row *r, int32_t i, int32_t k) {
    return ((r->a < 0 || r->a == i) && (r->b < 0 || r->b == k)) ||
           ((r->a < 0 || r->a == k) && (r->b < 0 || r->b == i));
}

us_status usi_build_pairs(usi_build *b, us_model *m) {
    const us_spec *s = b->spec;
    row *rows = usi_arena_alloc(&b->arena, ((size_t)s->n_pair + 1) * sizeof *rows, _Alignof(row));
    if (!rows) return usi_build_out_of_memory(b);
    for (int32_t i = 0; i < s->n_pair; i++) {
        us_status status = read_row(b, m, &s->pair[i], &rows[i]);
        if (status) return status;
    }
    int32_t *acts = usi_arena_alloc(&m->assets.arena, (size_t)(m->n_material * m->n_material) * sizeof *acts,
                                    _Alignof(int32_t));
    if (!acts) return usi_build_out_of_memory(b);
    m->pair_model = acts;
    us_pair_values values = us_pair_def_default().values;
    for (int32_t i = 0; i < m->n_material; i++) {
        for (int32_t k = 0; k < m->n_material; k++) {
            int32_t best = -1;
            for (int32_t r = 0; r < s->n_pair; r++) {
                if (rows[r].rank >= 0 && speaks_of(&rows[r], i, k) &&
                    (best < 0 || rows[r].rank >= rows[best].rank))
                    best = r;
            }
            usi_pair *out = &m->pair[i * m->n_material + k];
            out->values = best < 0 ? values : s->pair[best].values;
            const int32_t model = best < 0 ? USI_MODEL_COMPLIANT : rows[best].model;
            out->model = model < 0 ? USI_MODEL_COMPLIANT : model;
            out->parameter = best;
            // A row for any material may name a law of soil: where there is none, it does not act.
            const bool is_soil = is_soil_pair(m, i, k), is_named_here = best >= 0 && rows[best].has_model;
            acts[i * m->n_material + k] = !is_soil ? out->model : is_named_here ? model : USI_MODEL_SOIL;
        }
    }
    return US_OK;
}

// ---- Hash ----

static uint64_t hash_properties(uint64_t h, const us_property *p, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        h = us_hash_bytes(h, p[i].key, strlen(p[i].key) + 1);
        if (p[i].type == US_PROPERTY_STRING) h = us_hash_bytes(h, p[i].text, strlen(p[i].text) + 1);
        if (p[i].type == US_PROPERTY_NUMBER) h = us_hash_bytes(h, &p[i].number, sizeof p[i].number);
        if (p[i].type == US_PROPERTY_INTEGER) h = us_hash_bytes(h, &p[i].integer, sizeof p[i].integer);
    }
    return h;
}

uint64_t usi_materials_hash(const us_model *m, uint64_t seed) {
    uint64_t h = seed;
    for (int32_t i = 0; i < m->n_interaction; i++)
        h = us_hash_bytes(h, m->interaction[i].name, strlen(m->interaction[i].name) + 1);
    for (int32_t i = 0; i < m->n_material; i++) {
        const us_material_def *d = &m->material[i];
        h = hash_properties(h, d->properties, d->n_property);
        if (d->is_soil) h = us_hash_bytes(h, &d->soil, sizeof d->soil);
        if (d->n_grouser > 0)
            h = us_hash_bytes(us_hash_bytes(h, &d->n_grouser, sizeof d->n_grouser), &d->grouser_height,
                              sizeof d->grouser_height);
    }
    // What acts otherwise than by default: soil in soil, the row's model elsewhere.
    for (int32_t i = 0; i < m->n_material * m->n_material; i++) {
        const bool is_soil = is_soil_pair(m, i / m->n_material, i % m->n_material);
        const int32_t acts[2] = {i, m->pair_model[i]};
        if (acts[1] == (is_soil ? USI_MODEL_SOIL : m->pair[i].model)) continue;
        const char *name = usi_pair_model_name(m, acts[1]);
        h = us_hash_bytes(us_hash_bytes(h, acts, sizeof acts), name, strlen(name) + 1);
    }
    for (int32_t i = 0; i < m->n_pair_row; i++)
        h = hash_properties(h, m->pair_row[i].parameters, m->pair_row[i].n_parameter);
    return h;
}
