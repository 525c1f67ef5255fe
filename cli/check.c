// understudy check: what is in a file, as the program understood it, and all that is doubtful in it.
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *const loop_names[US_LOOP_COUNT] = {"point", "hinge", "weld"};

// ---- the tree, in the order in which it is shown ----

// One joint with its child link, or a link that no joint holds (joint is -1). `depth` counts from the world.
typedef struct node {
    int32_t joint, link, depth;
    int32_t merged_into;  // the link that carries it, US_WORLD, or the link itself when it moves
} node;

typedef struct tree {
    int32_t n;
    node *nodes;
} tree;

// Parents before children, siblings in the order of the file. With a list of children per link, since robots
// have thousands of links.
static tree make_tree(const us_spec *spec) {
    us_spec_counts n = us_spec_get_counts(spec);
    tree t = {0, cli_allocate((size_t)(n.n_link + n.n_joint), sizeof *t.nodes)};
    // first[link + 1], next[joint]: the joints below each link; the world is entry 0
    int32_t *first = cli_allocate((size_t)n.n_link + 1, sizeof *first),
            *next = cli_allocate((size_t)n.n_joint, sizeof *next);
    int32_t *is_held = cli_allocate((size_t)n.n_link, sizeof *is_held);
    node *stack = cli_allocate((size_t)(n.n_link + n.n_joint), sizeof *stack);
    for (int32_t i = 0; i <= n.n_link; i++)
        first[i] = -1;
    for (int32_t j = n.n_joint - 1; j >= 0; j--) {
        const us_joint_def *joint = us_spec_view_joint(spec, j);
        next[j] = first[joint->parent + 1];
        first[joint->parent + 1] = j;
        is_held[joint->child] = 1;
    }
    int32_t top = 0;
    for (int32_t i = n.n_link - 1; i >= 0; i--) {
        if (!is_held[i]) stack[top++] = (node){-1, i, 0, US_WORLD};
    }
    // Pushed last, so that what hangs on the world comes first; and in reverse, so that the first comes out
    // first.
    for (int32_t link = US_WORLD;;) {
        const node *above = link == US_WORLD ? NULL : &t.nodes[t.n - 1];
        int32_t begin = top;
        for (int32_t j = first[link + 1]; j >= 0; j = next[j]) {
            const us_joint_def *joint = us_spec_view_joint(spec, j);
            bool is_merged = joint->type == US_JOINT_FIXED;
            stack[top++] = (node){j, joint->child, above ? above->depth + 1 : 0,
                                  !is_merged ? joint->child
                                  : above    ? above->merged_into
                                             : US_WORLD};
        }
        for (int32_t a = begin, b = top - 1; a < b; a++, b--) {
            node swap = stack[a];
            stack[a] = stack[b];
            stack[b] = swap;
        }
        if (top == 0) break;
        t.nodes[t.n++] = stack[--top];
        link = t.nodes[t.n - 1].link;
    }
    free(first);
    free(next);
    free(is_held);
    free(stack);
    return t;
}

// What the whole comes to.
typedef struct totals {
    us_model_counts n;
    double mass;
    int32_t rank;  // independent constraint rows at the start; -1 when they could not be counted
} totals;

static totals count(const cli_world *world) {
    totals sum = {.n = us_model_get_counts(world->model), .rank = -1};
    for (int32_t i = 0; i < sum.n.n_body; i++)
        sum.mass += us_model_get_inertia(world->model, (us_body){i}).mass;
    if (sum.n.n_row == 0) {
        sum.rank = 0;
        return sum;
    }
    us_dyn *dyn;
    if (us_dyn_create(world->model, NULL, &dyn) != US_OK) return sum;
    double *tau = cli_allocate((size_t)sum.n.n_v, sizeof *tau),
           *a = cli_allocate((size_t)sum.n.n_v, sizeof *a);
    int32_t rank;
    if (us_dyn_forward_constrained(dyn, us_sim_view_q(world->sim), us_sim_view_v(world->sim), tau, NULL, a,
                                   NULL, &rank) == US_OK)
        sum.rank = rank;
    free(tau);
    free(a);
    us_dyn_destroy(dyn);
    return sum;
}

// ---- as text ----

// Deep chains would run out of the page: beyond this depth lines stay where they are.
enum { MAX_INDENT = 24 };

static void indent(int32_t depth) { printf("%*s", 2 * (depth < MAX_INDENT ? depth : MAX_INDENT), ""); }

// Numbers as people write them; a rounding error instead of a zero helps nobody.
static double tidy(double x) { return fabs(x) < 1e-12 ? 0 : x; }

static void print_vector(us_vec3 a) { printf("(%.6g, %.6g, %.6g)", tidy(a.x), tidy(a.y), tidy(a.z)); }

static bool is_identity(us_pose X) {
    return us_vec3_norm(X.p) == 0 && X.q.x == 0 && X.q.y == 0 && X.q.z == 0;
}

static void print_pose(us_pose X) {
    if (is_identity(X)) return;
    printf(", at ");
    print_vector(X.p);
    us_vec3 r = us_quat_log(X.q);
    if (us_vec3_norm(r) > 1e-12) {
        printf(" turned by ");
        print_vector(r);
        printf(" rad");
    }
}

static void print_option(const char *format, double x) {
    if (x != 0) printf(format, x);
}

static void print_joint(const us_spec *spec, int32_t j, int32_t depth) {
    const us_joint_def *joint = us_spec_view_joint(spec, j);
    indent(depth);
    printf("joint %s: %s", joint->name, us_joint_type_name(joint->type));
    bool is_turning = joint->type == US_JOINT_REVOLUTE || joint->type == US_JOINT_CONTINUOUS ||
                      joint->type == US_JOINT_HELICAL || joint->type == US_JOINT_UNIVERSAL;
    if (is_turning || joint->type == US_JOINT_PRISMATIC || joint->type == US_JOINT_CYLINDRICAL ||
        joint->type == US_JOINT_PLANAR) {
        printf(joint->type == US_JOINT_PRISMATIC ? " along "
               : joint->type == US_JOINT_PLANAR  ? " normal to "
                                                 : " about ");
        print_vector(joint->axis);
    }
    if (joint->type == US_JOINT_UNIVERSAL) {
        printf(" and ");
        print_vector(joint->axis2);
    }
    if (joint->type == US_JOINT_HELICAL) printf(", pitch %.6g m/rad", joint->pitch);
    print_pose(joint->X_PF);
    if (joint->has_limits)
        printf(", limits %.6g .. %.6g %s", joint->lower, joint->upper,
               joint->type == US_JOINT_PRISMATIC ? "m" : "rad");
    print_option(", effort %.6g", joint->effort);
    print_option(", speed %.6g", joint->velocity);
    print_option(", damping %.6g", joint->damping);
    if (joint->stiffness != 0) printf(", stiffness %.6g about %.6g", joint->stiffness, joint->rest);
    print_option(", armature %.6g", joint->armature);
    print_option(", friction %.6g", joint->friction);
    putchar('\n');
}

static void print_mesh(const us_shape_def *shape) {
    const double *s = shape->size;
    us_vec3 d = us_vec3_sub(shape->box_max, shape->box_min);
    printf(" %s", shape->mesh_uri ? shape->mesh_uri : shape->mesh ? shape->mesh : "");
    if (s[0] != 1 || s[1] != 1 || s[2] != 1) printf(", scale (%.6g, %.6g, %.6g)", s[0], s[1], s[2]);
    if (shape->n_triangle > 0) {
        printf(", %d triangles, %.4g x %.4g x %.4g m%s", (int)shape->n_triangle, d.x, d.y, d.z,
               shape->is_closed ? ", closed" : "");
    } else {
        printf(", not read");
    }
}

static void print_size(const us_shape_def *shape) {
    const double *s = shape->size;
    switch (shape->kind) {
    case US_SHAPE_BOX:
        printf(" %.6g x %.6g x %.6g m", s[0], s[1], s[2]);
        break;
    case US_SHAPE_SPHERE:
        printf(" radius %.6g m", s[0]);
        break;
    case US_SHAPE_CYLINDER:
    case US_SHAPE_CONE:
    case US_SHAPE_CAPSULE:
        printf(" radius %.6g m, length %.6g m", s[0], s[1]);
        break;
    case US_SHAPE_MESH:
        print_mesh(shape);
        break;
    case US_SHAPE_LOZENGE:
        printf(" %.6g x %.6g m, radius %.6g m", s[0], s[1], s[2]);
        break;
    case US_SHAPE_DISC:
        printf(" radius %.6g m, rounded by %.6g m", s[0], s[1]);
        break;
    case US_SHAPE_TRIANGLE:
        printf(" rounded by %.6g m", s[0]);
        break;
    case US_SHAPE_ELLIPSOID:
        printf(" half axes %.6g x %.6g x %.6g m", s[0], s[1], s[2]);
        break;
    case US_SHAPE_CONVEX:
        printf(" of %d points", (int)shape->n_point);
        break;
    case US_SHAPE_HEIGHT_FIELD:
        printf(" %d x %d samples, %.6g x %.6g m apart", (int)shape->n_x, (int)shape->n_y, s[0], s[1]);
        if (shape->site) printf(", of the site %s", shape->site);
        break;
    case US_SHAPE_UNION:
    case US_SHAPE_INTERSECTION:
        printf(" of %d parts", (int)shape->n_part);
        break;
    case US_SHAPE_TETRAHEDRON:
    case US_SHAPE_HALF_SPACE:
    case US_SHAPE_COUNT:
        break;
    }
}

static const char *shape_use(const us_shape_def *shape, bool is_part) {
    if (is_part) return "part";
    if (shape->is_visual && shape->is_collision) return "visual and collision";
    if (shape->is_visual) return "visual";
    return shape->is_collision ? "collision" : "unused";
}

static void print_shape(const us_shape_def *shape, int32_t depth, bool is_part) {
    indent(depth);
    printf("%s %s", shape_use(shape, is_part), us_shape_kind_name(shape->kind));
    print_size(shape);
    print_pose(shape->X_BG);
    if (shape->name) printf(", \"%s\"", shape->name);
    if (shape->surface) printf(", surface %s", shape->surface);
    if (shape->margin > 0) printf(", margin %.6g m", shape->margin);
    if (shape->group != 1 || shape->mask != UINT32_MAX)
        printf(", group %u, mask %u", (unsigned)shape->group, (unsigned)shape->mask);
    if (shape->level != 0) printf(", level %d", (int)shape->level);
    if (shape->part_error > 0) printf(", part error %.6g m", shape->part_error);
    putchar('\n');
    for (int32_t i = 0; i < shape->n_part; i++)
        print_shape(&shape->parts[i], depth + 1, true);
}

// The shapes of each link, as chains of indices: `first` has room for every link and, at 0, the world.
typedef struct shape_lists {
    int32_t *first, *next;
} shape_lists;

static shape_lists make_shape_lists(const us_spec *spec) {
    us_spec_counts n = us_spec_get_counts(spec);
    shape_lists lists = {cli_allocate((size_t)n.n_link + 1, sizeof(int32_t)),
                         cli_allocate((size_t)n.n_shape, sizeof(int32_t))};
    for (int32_t i = 0; i <= n.n_link; i++)
        lists.first[i] = -1;
    for (int32_t i = n.n_shape - 1; i >= 0; i--) {
        int32_t *first = &lists.first[us_spec_view_shape(spec, i)->link + 1];
        lists.next[i] = *first;
        *first = i;
    }
    return lists;
}

static void print_shapes(const us_spec *spec, const shape_lists *lists, int32_t link, int32_t depth) {
    for (int32_t i = lists->first[link + 1]; i >= 0; i = lists->next[i])
        print_shape(us_spec_view_shape(spec, i), depth, false);
}

static void print_group(const us_spec *spec, int32_t group) {
    const us_group_def *def = us_spec_view_group(spec, group);
    if (!def) {
        printf("without a group\n");
        return;
    }
    printf("%s%s%s", def->name && def->name[0] ? "group \"" : "robot", def->name ? def->name : "",
           def->name && def->name[0] ? "\"" : "");
    if (def->file) printf(" from %s", def->file);
    printf(", %s base\n", def->is_floating ? "floating" : "fixed");
}

static void print_tree(const us_spec *spec) {
    tree t = make_tree(spec);
    shape_lists lists = make_shape_lists(spec);
    int32_t group = INT32_MIN;
    if (lists.first[0] >= 0) {
        printf("world\n");
        print_shapes(spec, &lists, US_WORLD, 1);
    }
    for (int32_t i = 0; i < t.n; i++) {
        const node *at = &t.nodes[i];
        const us_link_def *link = us_spec_view_link(spec, at->link);
        if (at->depth == 0 && link->group != group) print_group(spec, group = link->group);
        // A joint and its link share a level; the next joint is one deeper.
        if (at->joint >= 0) print_joint(spec, at->joint, 1 + at->depth);
        indent(2 + at->depth);
        printf("link %s", link->name);
        if (at->merged_into != at->link) {
            printf(": merged into %s", cli_link_name(spec, at->merged_into));
            if (link->inertia.mass > 0) printf(", mass %.6g kg", link->inertia.mass);
        } else {
            printf(": mass %.6g kg", link->inertia.mass);
        }
        if (link->inertia.mass > 0) {
            printf(", com ");
            print_vector(link->inertia.com);
        }
        putchar('\n');
        print_shapes(spec, &lists, at->link, 3 + at->depth);
    }
    free(lists.first);
    free(lists.next);
    free(t.nodes);
}

static const char *joint_name(const us_spec *spec, int32_t joint) {
    const us_joint_def *def = us_spec_view_joint(spec, joint);
    return def ? def->name : "?";
}

static void print_properties(const us_property *p, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        printf(", %s ", p[i].key);
        if (p[i].type == US_PROPERTY_STRING) printf("\"%s\"", p[i].text);
        if (p[i].type == US_PROPERTY_NUMBER) printf("%.6g", p[i].number);
        if (p[i].type == US_PROPERTY_INTEGER) printf("%lld", (long long)p[i].integer);
    }
    putchar('\n');
}

static const char *or_any(const char *text) { return text && text[0] ? text : "any"; }

static void print_materials(const us_spec *spec) {
    us_spec_counts n = us_spec_get_counts(spec);
    if (n.n_material > 0) printf("materials\n");
    for (int32_t i = 0; i < n.n_material; i++) {
        const us_material_def *m = us_spec_view_material(spec, i);
        printf("  material %s", m->name);
        print_properties(m->properties, m->n_property);
    }
    if (n.n_pair > 0) printf("pairs\n");
    for (int32_t i = 0; i < n.n_pair; i++) {
        const us_pair_def *p = us_spec_view_pair(spec, i);
        const us_pair_values *v = &p->values;
        printf("  pair %s, %s", or_any(p->material_a), or_any(p->material_b));
        if (p->fidelity && p->fidelity[0]) printf(", fidelity %s", p->fidelity);
        printf(": model %s, friction %.6g static, %.6g kinetic, viscous %.6g N s/m, restitution %.6g",
               p->model ? p->model : "compliant", v->static_friction, v->kinetic_friction, v->viscous,
               v->restitution);
        print_option(", stiffness %.6g N/m", v->stiffness);
        print_option(", torsion radius %.6g m", v->torsion_radius);
        print_option(", rolling length %.6g m", v->rolling_length);
        print_option(", transition speed %.6g m/s", v->transition_speed);
        print_properties(p->parameters, p->n_parameter);
    }
    if (n.n_exclude > 0) printf("never collide\n");
    for (int32_t i = 0; i < n.n_exclude; i++) {
        const us_exclude_def *e = us_spec_view_exclude(spec, i);
        printf("  %s and %s\n", cli_link_name(spec, e->link_a), cli_link_name(spec, e->link_b));
    }
}

static void print_rest(const us_spec *spec) {
    us_spec_counts n = us_spec_get_counts(spec);
    print_materials(spec);
    if (n.n_drive > 0) printf("drives\n");
    for (int32_t i = 0; i < n.n_drive; i++) {
        const us_drive_def *d = us_spec_view_drive(spec, i);
        printf("  drive %s on %s", d->name, joint_name(spec, d->joint));
        if (d->coordinate > 0) printf("[%d]", (int)d->coordinate);
        printf(": kp %.6g, kd %.6g, position %.6g, velocity %.6g, torque %.6g", d->kp, d->kd, d->position,
               d->velocity, d->torque);
        print_option(", limit %.6g", d->limit);
        putchar('\n');
    }
    if (n.n_coupling > 0) printf("couplings\n");
    for (int32_t i = 0; i < n.n_coupling; i++) {
        const us_coupling_def *c = us_spec_view_coupling(spec, i);
        printf("  coupling %s:", c->name ? c->name : "");
        for (int32_t k = 0; k < c->n_term; k++) {
            printf("%s%.6g %s", k > 0 ? " + " : " ", c->factor[k], joint_name(spec, c->joint[k]));
            if (c->coordinate[k] > 0) printf("[%d]", (int)c->coordinate[k]);
        }
        printf(" = %.6g\n", c->offset);
    }
    if (n.n_loop > 0) printf("loops\n");
    for (int32_t i = 0; i < n.n_loop; i++) {
        const us_loop_def *l = us_spec_view_loop(spec, i);
        printf("  loop %s: %s between %s", l->name ? l->name : "",
               l->type < US_LOOP_COUNT ? loop_names[l->type] : "?", cli_link_name(spec, l->link_a));
        print_pose(l->X_AC);
        printf(" and %s", cli_link_name(spec, l->link_b));
        print_pose(l->X_BD);
        putchar('\n');
    }
    if (n.n_record > 0) printf("recordings\n");
    for (int32_t i = 0; i < n.n_record; i++) {
        const us_record_def *r = us_spec_view_record(spec, i);
        printf("  record %s: ", r->file_name);
        if (r->n_value == 0) printf("every joint's q and v");
        for (int32_t k = 0; k < r->n_value; k++)
            printf("%s%s", k > 0 ? ", " : "", r->values[k]);
        if (r->rate > 0) {
            printf(", %.6g Hz\n", r->rate);
        } else {
            printf(", every step\n");
        }
    }
    if (n.n_extension > 0) printf("kept for others\n");
    for (int32_t i = 0; i < n.n_extension; i++) {
        const us_extension_def *e = us_spec_view_extension(spec, i);
        printf("  <%s>%s%s, %s:%d\n", e->tag, e->reference ? " about " : "", e->reference ? e->reference : "",
               e->file ? e->file : "", (int)e->line);
    }
}

static void print_text(const cli_load *load, const cli_world *world, const totals *sum) {
    const us_spec *spec = world->spec;
    const us_world_settings *def = us_spec_view_world(spec);
    us_spec_counts n = us_spec_get_counts(spec);
    printf("%s: %s", load->file, world->is_robot ? "robot" : "scene");
    if (def->name && def->name[0]) printf(" \"%s\"", def->name);
    putchar('\n');
    print_tree(spec);
    print_rest(spec);
    cli_print_interfaces(spec, "");
    printf("in all\n  %d groups, %d links, %d joints, %d shapes, %d drives\n", (int)n.n_group, (int)n.n_link,
           (int)n.n_joint, (int)n.n_shape, (int)n.n_drive);
    printf("  %d positions (n_q), %d velocities (n_v), %d constraint rows", (int)sum->n.n_q, (int)sum->n.n_v,
           (int)sum->n.n_row);
    if (sum->rank >= 0) {
        if (sum->n.n_row > 0) printf(" (%d independent)", (int)sum->rank);
        printf(", mobility %d", (int)(sum->n.n_v - sum->rank));
    }
    printf("\n  mass %.9g kg, gravity ", sum->mass);
    print_vector(def->gravity);
    printf(" m/s^2\n  step %.9g s, integrator %s, ", us_model_get_step(world->model),
           us_integrator_name(us_model_get_integrator(world->model)));
    if (def->duration > 0) {
        printf("runs for %.9g s\n", def->duration);
    } else {
        printf("runs until stopped\n");
    }
    cli_print_overlaps(spec, world->model);
    int32_t n_warning = cli_print_warnings(stdout, spec);
    printf("no errors, %d warning%s\n", (int)n_warning, n_warning == 1 ? "" : "s");
}

// ---- as JSON ----

static void json_pose(cli_json *json, const char *key, us_pose X) {
    double q[4] = {X.q.w, X.q.x, X.q.y, X.q.z};
    cli_json_begin_short(json, key, '{');
    cli_json_vector(json, "position", X.p);
    cli_json_numbers(json, "quaternion", q, 4);
    cli_json_end(json);
}

static void json_joint(cli_json *json, const us_spec *spec, int32_t j) {
    const us_joint_def *d = us_spec_view_joint(spec, j);
    cli_json_begin(json, NULL, '{');
    cli_json_text(json, "name", d->name);
    cli_json_text(json, "type", us_joint_type_name(d->type));
    cli_json_text(json, "parent", d->parent == US_WORLD ? NULL : cli_link_name(spec, d->parent));
    cli_json_text(json, "child", cli_link_name(spec, d->child));
    json_pose(json, "origin", d->X_PF);
    if (d->type != US_JOINT_FIXED && d->type != US_JOINT_SPHERICAL && d->type != US_JOINT_FLOATING)
        cli_json_vector(json, "axis", d->axis);
    if (d->type == US_JOINT_UNIVERSAL) cli_json_vector(json, "axis2", d->axis2);
    if (d->type == US_JOINT_HELICAL) cli_json_number(json, "pitch", d->pitch);
    if (d->has_limits) {
        double limits[2] = {d->lower, d->upper};
        cli_json_numbers(json, "limits", limits, 2);
    }
    const char *const names[] = {"effort", "velocity", "damping", "stiffness",
                                 "rest",   "armature", "friction"};
    const double values[] = {d->effort, d->velocity, d->damping, d->stiffness,
                             d->rest,   d->armature, d->friction};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (values[i] != 0) cli_json_number(json, names[i], values[i]);
    }
    cli_json_end(json);
}

static void json_links(cli_json *json, const us_spec *spec) {
    tree t = make_tree(spec);
    cli_json_begin(json, "links", '[');
    for (int32_t i = 0; i < t.n; i++) {
        const us_link_def *link = us_spec_view_link(spec, t.nodes[i].link);
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "name", link->name);
        cli_json_number(json, "mass", link->inertia.mass);
        cli_json_vector(json, "com", link->inertia.com);
        cli_json_numbers(json, "inertia_xx_yy_zz_xy_xz_yz", link->inertia.about_com, 6);
        if (t.nodes[i].merged_into != t.nodes[i].link)
            cli_json_text(json, "merged_into", cli_link_name(spec, t.nodes[i].merged_into));
        cli_json_end(json);
    }
    cli_json_end(json);
    free(t.nodes);
}

static void json_shapes(cli_json *json, const us_spec *spec, int32_t n_shape) {
    cli_json_begin(json, "shapes", '[');
    for (int32_t i = 0; i < n_shape; i++) {
        const us_shape_def *s = us_spec_view_shape(spec, i);
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "link", s->link == US_WORLD ? NULL : cli_link_name(spec, s->link));
        cli_json_text(json, "kind", us_shape_kind_name(s->kind));
        cli_json_bool(json, "visual", s->is_visual);
        cli_json_bool(json, "collision", s->is_collision);
        cli_json_numbers(json, "size", s->size, 3);
        json_pose(json, "origin", s->X_BG);
        if (s->is_collision) {
            cli_json_text(json, "surface", s->surface ? s->surface : "default");
            cli_json_number(json, "margin", s->margin);
            cli_json_integer(json, "group", (int64_t)s->group);
            cli_json_integer(json, "mask", (int64_t)s->mask);
            cli_json_integer(json, "level", s->level);
        }
        if (s->kind == US_SHAPE_MESH) {
            cli_json_text(json, "uri", s->mesh_uri);
            cli_json_text(json, "file", s->mesh);
            cli_json_integer(json, "triangles", s->n_triangle);
            cli_json_integer(json, "vertices", s->n_vertex);
            cli_json_bool(json, "closed", s->is_closed);
        }
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_properties(cli_json *json, const char *key, const us_property *p, int32_t n) {
    cli_json_begin_short(json, key, '{');
    for (int32_t i = 0; i < n; i++) {
        if (p[i].type == US_PROPERTY_STRING) cli_json_text(json, p[i].key, p[i].text);
        if (p[i].type == US_PROPERTY_NUMBER) cli_json_number(json, p[i].key, p[i].number);
        if (p[i].type == US_PROPERTY_INTEGER) cli_json_integer(json, p[i].key, p[i].integer);
    }
    cli_json_end(json);
}

static void json_materials(cli_json *json, const us_spec *spec) {
    us_spec_counts n = us_spec_get_counts(spec);
    cli_json_begin(json, "materials", '[');
    for (int32_t i = 0; i < n.n_material; i++) {
        const us_material_def *m = us_spec_view_material(spec, i);
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "name", m->name);
        json_properties(json, "properties", m->properties, m->n_property);
        cli_json_end(json);
    }
    cli_json_end(json);
    cli_json_begin(json, "pairs", '[');
    for (int32_t i = 0; i < n.n_pair; i++) {
        const us_pair_def *p = us_spec_view_pair(spec, i);
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "a", p->material_a);
        cli_json_text(json, "b", p->material_b);
        cli_json_text(json, "fidelity", p->fidelity);
        cli_json_text(json, "model", p->model);
        cli_json_number(json, "static_friction", p->values.static_friction);
        cli_json_number(json, "kinetic_friction", p->values.kinetic_friction);
        cli_json_number(json, "viscous", p->values.viscous);
        cli_json_number(json, "restitution", p->values.restitution);
        cli_json_number(json, "stiffness", p->values.stiffness);
        cli_json_number(json, "torsion_radius", p->values.torsion_radius);
        cli_json_number(json, "rolling_length", p->values.rolling_length);
        cli_json_number(json, "transition_speed", p->values.transition_speed);
        json_properties(json, "parameters", p->parameters, p->n_parameter);
        cli_json_end(json);
    }
    cli_json_end(json);
    cli_json_begin(json, "excluded", '[');
    for (int32_t i = 0; i < n.n_exclude; i++) {
        const us_exclude_def *e = us_spec_view_exclude(spec, i);
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "a", e->link_a == US_WORLD ? NULL : cli_link_name(spec, e->link_a));
        cli_json_text(json, "b", e->link_b == US_WORLD ? NULL : cli_link_name(spec, e->link_b));
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_drives(cli_json *json, const us_spec *spec, int32_t n) {
    cli_json_begin(json, "drives", '[');
    for (int32_t i = 0; i < n; i++) {
        const us_drive_def *d = us_spec_view_drive(spec, i);
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", d->name);
        cli_json_text(json, "joint", joint_name(spec, d->joint));
        cli_json_integer(json, "coordinate", d->coordinate);
        cli_json_number(json, "kp", d->kp);
        cli_json_number(json, "kd", d->kd);
        cli_json_number(json, "limit", d->limit);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_couplings(cli_json *json, const us_spec *spec, int32_t n) {
    cli_json_begin(json, "couplings", '[');
    for (int32_t i = 0; i < n; i++) {
        const us_coupling_def *c = us_spec_view_coupling(spec, i);
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", c->name);
        cli_json_begin(json, "terms", '[');
        for (int32_t k = 0; k < c->n_term; k++) {
            cli_json_begin(json, NULL, '{');
            cli_json_text(json, "joint", joint_name(spec, c->joint[k]));
            cli_json_integer(json, "coordinate", c->coordinate[k]);
            cli_json_number(json, "factor", c->factor[k]);
            cli_json_end(json);
        }
        cli_json_end(json);
        cli_json_number(json, "offset", c->offset);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_loops(cli_json *json, const us_spec *spec, int32_t n) {
    cli_json_begin(json, "loops", '[');
    for (int32_t i = 0; i < n; i++) {
        const us_loop_def *l = us_spec_view_loop(spec, i);
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", l->name);
        cli_json_text(json, "type", l->type < US_LOOP_COUNT ? loop_names[l->type] : "?");
        cli_json_text(json, "link_a", l->link_a == US_WORLD ? NULL : cli_link_name(spec, l->link_a));
        cli_json_text(json, "link_b", l->link_b == US_WORLD ? NULL : cli_link_name(spec, l->link_b));
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_extensions(cli_json *json, const us_spec *spec, int32_t n) {
    cli_json_begin(json, "extensions", '[');
    for (int32_t i = 0; i < n; i++) {
        const us_extension_def *e = us_spec_view_extension(spec, i);
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "tag", e->tag);
        cli_json_text(json, "reference", e->reference);
        cli_json_integer(json, "line", e->line);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_rest(cli_json *json, const us_spec *spec) {
    us_spec_counts n = us_spec_get_counts(spec);
    json_materials(json, spec);
    json_drives(json, spec, n.n_drive);
    json_couplings(json, spec, n.n_coupling);
    json_loops(json, spec, n.n_loop);
    cli_json_begin(json, "recordings", '[');
    for (int32_t i = 0; i < n.n_record; i++)
        cli_json_text(json, NULL, us_spec_view_record(spec, i)->file_name);
    cli_json_end(json);
    json_extensions(json, spec, n.n_extension);
}

static void json_warning(void *context, const us_error *warning, int32_t n_times) {
    cli_json_error(context, NULL, warning, n_times);
}

static void print_json(const cli_load *load, const cli_world *world, const totals *sum) {
    const us_spec *spec = world->spec;
    const us_world_settings *def = us_spec_view_world(spec);
    us_spec_counts n = us_spec_get_counts(spec);
    cli_json json = {.out = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "file", load->file);
    cli_json_text(&json, "kind", world->is_robot ? "robot" : "scene");
    cli_json_text(&json, "name", def->name);
    cli_json_begin(&json, "groups", '[');
    for (int32_t i = 0; i < n.n_group; i++) {
        const us_group_def *group = us_spec_view_group(spec, i);
        cli_json_begin_short(&json, NULL, '{');
        cli_json_text(&json, "name", group->name);
        cli_json_text(&json, "file", group->file);
        cli_json_text(&json, "base", group->is_floating ? "floating" : "fixed");
        cli_json_end(&json);
    }
    cli_json_end(&json);
    json_links(&json, spec);
    cli_json_begin(&json, "joints", '[');
    for (int32_t j = 0; j < n.n_joint; j++)
        json_joint(&json, spec, j);
    cli_json_end(&json);
    json_shapes(&json, spec, n.n_shape);
    json_rest(&json, spec);
    cli_json_interfaces(&json, spec);
    cli_json_overlaps(&json, world->model);
    cli_json_integer(&json, "n_q", sum->n.n_q);
    cli_json_integer(&json, "n_v", sum->n.n_v);
    cli_json_integer(&json, "n_row", sum->n.n_row);
    if (sum->rank >= 0) cli_json_integer(&json, "mobility", sum->n.n_v - sum->rank);
    cli_json_number(&json, "mass", sum->mass);
    cli_json_vector(&json, "gravity", def->gravity);
    cli_json_number(&json, "step", us_model_get_step(world->model));
    cli_json_text(&json, "integrator", us_integrator_name(us_model_get_integrator(world->model)));
    cli_json_number(&json, "duration", def->duration);
    cli_json_begin(&json, "warnings", '[');
    cli_each_warning(spec, json_warning, &json);
    cli_json_end(&json);
    cli_json_begin(&json, "errors", '[');
    cli_json_end(&json);
    cli_json_end(&json);
}

// A file that cannot be used: the error, and the warnings that came before it.
static void print_json_error(const cli_load *load, const cli_world *world) {
    cli_json json = {.out = stdout};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, "file", load->file);
    cli_json_begin(&json, "warnings", '[');
    cli_each_warning(world->spec, json_warning, &json);
    cli_json_end(&json);
    cli_json_begin(&json, "errors", '[');
    cli_json_error(&json, NULL, &world->error, 0);
    cli_json_end(&json);
    cli_json_end(&json);
}

static int run(const cli_command *command, int argc, char **argv) {
    cli_load load = {0};
    bool is_json = false;
    const cli_option table[] = {
        {"json", CLI_FLAG, &is_json, NULL, "the same as JSON"},
        CLI_LOAD_OPTIONS(load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &load.file);
    if (code != CLI_GO_ON) return code;
    cli_world world;
    code = cli_load_spec(&load, US_BASE_FIXED, &world);
    if (code == CLI_GO_ON) code = cli_compile(&world);
    if (code == CLI_GO_ON) code = cli_create_sim(&world, NULL);
    if (code == CLI_GO_ON) {
        totals sum = count(&world);
        if (is_json) {
            print_json(&load, &world, &sum);
        } else {
            print_text(&load, &world, &sum);
        }
        code = CLI_OK;
    } else if (is_json && world.error.code != US_OK) {
        print_json_error(&load, &world);
    }
    cli_world_fini(&world);
    return code;
}

const cli_command cli_command_check = {
    .name = "check",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "show what a scene or robot file means, and what is wrong with it",
    .about = "Loads and compiles the file, prints the tree of links and joints with all that belongs to it, "
             "and every warning once.\n"
             "\n"
             "Examples:\n"
             "  understudy check robot.urdf --path ~/models\n"
             "  understudy check scenes/default.xml --set speed=0.3\n",
    .run = run,
};
