// Who owns what in a world of several processes: names to groups of the spec, groups to trees of the model.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "spec/spec.h"
#include "spec/xml.h"
#include "split/split__inner.h"

us_status usi_ownership_init(usi_ownership *e, const us_spec *spec, const us_model *m, usi_arena *arena,
                             us_error *err) {
    *e = (usi_ownership){.spec = spec, .n_group = us_spec_get_counts(spec).n_group, .n_tree = m->n_tree};
    size_t n = (size_t)e->n_group + 1;
    e->group_of_tree =
        usi_arena_alloc(arena, ((size_t)m->n_tree + 1) * sizeof *e->group_of_tree, _Alignof(int32_t));
    e->must_own = usi_arena_alloc(arena, n * sizeof(bool), 1);
    e->is_mobile = usi_arena_alloc(arena, n * sizeof(bool), 1);
    if (!e->group_of_tree || !e->must_own || !e->is_mobile)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for the shared world");
    memset(e->must_own, 0, n);
    memset(e->is_mobile, 0, n);
    for (int32_t t = 0; t < m->n_tree; t++)
        e->group_of_tree[t] = -1;
    // Of a tree that reaches over several groups its root's decides: links stand in the order of the spec.
    for (int32_t b = m->n_body - 1; b >= 0; b--) {
        if (m->body[b].node < 0) continue;
        int32_t tree = m->node[m->body[b].node].tree, group = spec->link[b].group;
        const usi_node *root = &m->node[m->tree[tree].first];
        if (group >= 0 && (e->group_of_tree[tree] < 0 || m->joint[root->joint].child == b))
            e->group_of_tree[tree] = group;
    }
    bool any_robot = false;
    for (int32_t t = 0; t < m->n_tree; t++) {
        int32_t g = e->group_of_tree[t];
        if (g < 0) continue;
        e->is_mobile[g] = true;
        e->must_own[g] = us_spec_view_network(spec, g) != NULL;
        any_robot |= e->must_own[g];
    }
    for (int32_t g = 0; g < e->n_group && !any_robot; g++)
        e->must_own[g] = e->is_mobile[g];
    return US_OK;
}

static us_status add_name(const usi_ownership *e, const char *name, bool *owns, us_error *err) {
    usi_guess guess = usi_guess_start(name);
    for (int32_t g = 0; g < e->n_group; g++) {
        const char *have = us_spec_view_group(e->spec, g)->name;
        if (strcmp(have, name) == 0) {
            if (!e->is_mobile[g])
                return us_error_set(err, US_ERR_NAME, NULL, "leave it out",
                                    "own: \"%.100s\" does not move: it needs no owner", name);
            if (owns[g])
                return us_error_set(err, US_ERR_NAME, NULL, "name it once", "own: \"%.100s\" is named twice",
                                    name);
            owns[g] = true;
            return US_OK;
        }
        if (e->is_mobile[g]) usi_guess_offer(&guess, have);
    }
    char remedy[256];
    snprintf(remedy, sizeof remedy,
             guess.best ? "did you mean \"%.200s\"?"
                        : "name robots and objects of the scene; \"understudy check\" lists them",
             guess.best);
    return us_error_set(err, US_ERR_NAME, NULL, remedy, "own: the scene has no robot or object \"%.100s\"",
                        name);
}

us_status usi_ownership_parse(const usi_ownership *e, const char *text, bool *out_owns, us_error *err) {
    memset(out_owns, 0, (size_t)e->n_group + 1);
    us_status status = US_OK;
    bool any = false, any_robot = false;
    for (const char *at = text; *at && !status;) {
        size_t n = strcspn(at, ",");
        char name[256];
        const char *from = at;
        while (n > 0 && *from == ' ') {
            from++;
            n--;
        }
        at = from + n + (from[n] == ',');
        while (n > 0 && from[n - 1] == ' ')
            n--;
        if (n == 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), from);
        status = add_name(e, name, out_owns, err);
        any = true;
    }
    for (int32_t g = 0; g < e->n_group; g++)
        any_robot |= out_owns[g] && e->must_own[g];
    // Of objects alone nobody else would know that somebody is to come.
    if (!status && any && !any_robot)
        return us_error_set(err, US_ERR_NAME, NULL, "add a robot",
                            "own: a process owns one robot at least, and \"%.100s\" names none", text);
    if (!status && !any)
        return us_error_set(err, US_ERR_ARG, NULL, "name at least one robot, for example r1,r2",
                            "own: nothing is named");
    return status;
}

int32_t usi_ownership_first(const usi_ownership *e, const bool *owns) {
    int32_t g = 0;
    while (g < e->n_group && !(owns[g] && e->must_own[g]))
        g++;
    return g;
}

void usi_ownership_list(const usi_ownership *e, const bool *marks, char *out, size_t cap) {
    size_t n = 0;
    out[0] = 0;
    for (int32_t g = 0; g < e->n_group; g++) {
        if (!marks[g]) continue;
        const char *name = us_spec_view_group(e->spec, g)->name;
        if (n + strlen(name) + 8 > cap) {
            snprintf(out + n, cap - n, ", ...");
            return;
        }
        n += (size_t)snprintf(out + n, cap - n, "%s%s", n > 0 ? ", " : "", name);
    }
}

bool usi_ownership_missing(const usi_ownership *e, const bool *const *owns, int32_t n, bool *out_missing) {
    bool any = false;
    for (int32_t g = 0; g < e->n_group; g++) {
        bool is_owned = !e->must_own[g];
        for (int32_t i = 0; i < n && !is_owned; i++)
            is_owned = owns[i][g];
        out_missing[g] = !is_owned;
        any |= !is_owned;
    }
    return any;
}

static const char *name_of(const usi_ownership *e, int32_t tree) {
    return e->group_of_tree[tree] < 0 ? "?" : us_spec_view_group(e->spec, e->group_of_tree[tree])->name;
}

us_status usi_ownership_check(const usi_ownership *e, const us_model *m, const int32_t *owner,
                              us_error *err) {
    static const char *const remedy = "give both to the same process";
    for (int32_t i = 0; i < m->n_loop; i++) {
        if (m->loop[i].node_a < 0 || m->loop[i].node_b < 0) continue;
        int32_t a = m->node[m->loop[i].node_a].tree, b = m->node[m->loop[i].node_b].tree;
        if (owner[a] != owner[b])
            return us_error_set(err, US_ERR_TREE, NULL, remedy,
                                "own: a loop holds \"%.100s\" and \"%.100s\" together", name_of(e, a),
                                name_of(e, b));
    }
    for (int32_t i = 0; i < m->n_coupling; i++) {
        for (int32_t k = 1; k < m->coupling[i].n_term; k++) {
            int32_t a = m->node[m->coupling[i].v[0]].tree, b = m->node[m->coupling[i].v[k]].tree;
            if (owner[a] != owner[b])
                return us_error_set(err, US_ERR_TREE, NULL, remedy,
                                    "own: a coupling holds \"%.100s\" and \"%.100s\" together", name_of(e, a),
                                    name_of(e, b));
        }
    }
    return US_OK;
}

bool usi_split_fits(const us_msg_world_share *m, const us_msg_world_share *own, us_error *err) {
    if (strcmp(m->version, own->version) != 0) {
        us_error_set(err, US_ERR_VALUE, NULL, "start the same program everywhere",
                     "the process %.79s is version %.40s, this one %.40s", m->label, m->version,
                     own->version);
    } else if (m->step != own->step) {
        us_error_set(err, US_ERR_VALUE, NULL, "give the world the same step everywhere",
                     "the process %.79s has a step of %g s, this one %g s", m->label, m->step, own->step);
    } else if (m->exchange != own->exchange) {
        us_error_set(err, US_ERR_VALUE, NULL, "write the same --exchange everywhere",
                     "the process %.79s exchanges every %g s, this one every %g s", m->label,
                     m->exchange * m->step, own->exchange * own->step);
    } else if (m->scene != own->scene) {
        us_error_set(
            err, US_ERR_VALUE, NULL, "start all with the same scene file, models, parameters and seed",
            "the process %.79s has another scene: its hash is %016" PRIx64 ", this one's %016" PRIx64,
            m->label, m->scene, own->scene);
    } else {
        return true;
    }
    return false;
}
