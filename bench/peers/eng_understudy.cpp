// Adapter of Understudy for the peers' driver: the same scenes, the same control, the same clock as every other engine there.
//
// Only public headers are used.
// Variants are the integrators: euler (semi-implicit, what the other engines do), midpoint, rk4, adaptive. The first one is what
// runs when none is asked for; -DUS_DEFAULT_VARIANT=\"midpoint\" makes a program in which that is another one, so that two
// programs of the same source stand side by side in one table.
#include "scene.hpp"

#include <understudy/sim.h>

#ifndef US_DEFAULT_VARIANT
#define US_DEFAULT_VARIANT "euler"
#endif

namespace {

us_vec3 vec(const V3 &a) { return us_vec3_make(a[0], a[1], a[2]); }
V3 vec(us_vec3 a) { return {a.x, a.y, a.z}; }
us_quat quat(const Q4 &a) { return us_quat{a[0], a[1], a[2], a[3]}; }

bool complain(const char *what, const us_error &err) {
    char text[1500];
    us_error_format(&err, text, sizeof text);
    fprintf(stderr, "understudy: %s: %s\n", what, text);
    return false;
}

struct UnderstudyEngine : Engine {
    std::string variant;
    std::vector<Link> links;
    us_model *model = nullptr;
    us_sim *sim = nullptr;
    us_dyn *dyn = nullptr;
    us_model_counts n{};
    std::vector<us_joint_info> joints;
    std::vector<double> tau;             // torques for the next step
    bool has_torque = false, has_failed = false;  // a failure is told once
    std::vector<double> fd_q, fd_v, fd_tau, fd_a;
    double fd_shift = 1e-9;
    std::vector<us_pose> poses;          // of all links, made by sync()
    std::vector<us_twist> twists;

    ~UnderstudyEngine() override {
        us_dyn_destroy(dyn);
        us_sim_destroy(sim);
        us_model_destroy(model);
    }

    std::string id() override { return std::string("understudy-") + us_version(); }

    bool build(const Scene &s) override {
        links = s.links;
        us_spec *spec = nullptr;
        us_error err{};
        us_status status = us_spec_create(nullptr, &spec);
        if (!status) status = describe(spec, s);
        if (!status) status = us_model_compile(spec, nullptr, &model, &err);
        us_spec_destroy(spec);
        if (!status) status = us_sim_create(model, nullptr, &sim, &err);
        if (!status) status = us_dyn_create(model, nullptr, &dyn);
        if (status) return complain(us_status_text(status), err);
        n = us_model_get_counts(model);
        for (int32_t i = 0; i < n.n_joint; i++) joints.push_back(us_model_get_joint(model, us_joint{i}));
        tau.assign(n.n_v, 0);
        fd_tau = fd_a = tau;
        poses.resize(n.n_body);
        twists.resize(n.n_body);
        return true;
    }

    // Link i and joint i of the scene become link i and joint i of the spec.
    us_status describe(us_spec *spec, const Scene &s) {
        us_world_settings world = us_world_settings_default();
        world.gravity = vec(s.gravity);
        world.step = s.dt;
        for (int k = 0; k < US_INTEGRATOR_COUNT; k++)
            if (variant == us_integrator_name((us_integrator)k)) world.integrator = (us_integrator)k;
        us_status status = us_spec_set_world(spec, &world);
        if (!status && s.contact) status = describe_ground(spec, s);
        for (size_t i = 0; i < s.links.size() && !status; i++) {
            const Link &l = s.links[i];
            const std::string link_name = "b" + std::to_string(i), joint_name = "j" + std::to_string(i);
            us_link_def link = us_link_def_default();
            link.name = link_name.c_str();
            link.inertia = us_inertia{l.mass, vec(l.com), {l.inertia[0], l.inertia[1], l.inertia[2], 0, 0, 0}};
            status = us_spec_add_link(spec, &link, nullptr);
            us_joint_def joint = us_joint_def_default(l.jt == J_FREE ? US_JOINT_FLOATING : l.jt == J_REV ? US_JOINT_CONTINUOUS : US_JOINT_PRISMATIC);
            joint.name = joint_name.c_str();
            joint.parent = l.parent < 0 ? US_WORLD : l.parent;
            joint.child = (int32_t)i;
            if (l.jt == J_FREE) {
                // The scene gives the velocity of the com in the world; the joint wants that of the link's origin, in the link's axes.
                us_quat q = quat(l.quat), back = us_quat_conj(q);
                us_vec3 w = us_quat_rotate(back, vec(l.w0)), v = us_vec3_sub(us_quat_rotate(back, vec(l.v0)), us_vec3_cross(w, vec(l.com)));
                const double q0[7] = {q.w, q.x, q.y, q.z, l.pos[0], l.pos[1], l.pos[2]}, v0[6] = {w.x, w.y, w.z, v.x, v.y, v.z};
                std::copy(q0, q0 + 7, joint.q0);
                std::copy(v0, v0 + 6, joint.v0);
            } else {
                joint.X_PF.p = vec(l.pos);
                joint.axis = vec(l.axis);
                joint.q0[0] = l.q0;
            }
            if (!status) status = us_spec_add_joint(spec, &joint, nullptr);
            for (size_t g = 0; g < l.geoms.size() && !status && s.contact; g++) status = describe_geom(spec, l, l.geoms[g], (int32_t)i);
        }
        return status;
    }

    // Friction and restitution of every pair, and nothing else: no viscous part, as the other engines have none.
    us_status describe_ground(us_spec *spec, const Scene &s) {
        us_pair_def pair = us_pair_def_default();
        pair.values.static_friction = pair.values.kinetic_friction = s.mu;
        pair.values.viscous = 0;
        pair.values.restitution = s.e;
        us_status status = us_spec_add_pair(spec, &pair, nullptr);
        if (status || s.ground == GR_NONE) return status;
        us_shape_def shape = us_shape_def_default(s.ground == GR_PLANE ? US_SHAPE_HALF_SPACE : US_SHAPE_HEIGHT_FIELD);
        shape.group = 1, shape.mask = ~0u;
        std::vector<double> heights;
        if (s.ground == GR_HFIELD) {
            for (int j = 0; j < s.hn; j++)
                for (int i = 0; i < s.hn; i++) heights.push_back(s.hfun(hcoord(s, i), hcoord(s, j)));
            shape.heights = heights.data();
            shape.n_x = shape.n_y = s.hn;
            shape.size[0] = shape.size[1] = s.hs;
        }
        return us_spec_add_shape(spec, &shape, nullptr);
    }

    us_status describe_geom(us_spec *spec, const Link &l, const Geom &g, int32_t link) {
        static const us_shape_kind kinds[] = {US_SHAPE_BOX, US_SHAPE_SPHERE, US_SHAPE_CAPSULE, US_SHAPE_CYLINDER};
        us_shape_def shape = us_shape_def_default(kinds[g.type]);
        shape.link = link;
        shape.X_BG = us_pose{quat(g.quat), vec(g.pos)};
        for (int k = 0; k < 3; k++) shape.size[k] = g.type == G_BOX ? 2 * g.size[k] : g.size[k];
        if (g.type == G_CAPSULE || g.type == G_CYLINDER) shape.size[1] = 2 * g.size[1];
        shape.group = 2;
        shape.mask = l.groundOnly ? 1 : ~0u;
        return us_spec_add_shape(spec, &shape, nullptr);
    }

    // Torques hold for one step; without any, the step gets no command, as a user's would.
    void step() override {
        us_command command{};
        command.torque = tau.data();
        us_status status = us_sim_step(sim, has_torque ? &command : nullptr);
        if (status && !has_failed) complain(us_status_text(status), *us_sim_view_error(sim));
        has_failed = has_failed || status;
        if (has_torque) std::fill(tau.begin(), tau.end(), 0.0);
        has_torque = false;
    }

    // The library keeps nothing between evaluations; q and v still change each time, so that this need not be believed.
    bool fd() override {
        if (fd_q.empty()) {
            fd_q.assign(us_sim_view_q(sim), us_sim_view_q(sim) + n.n_q);
            fd_v.assign(us_sim_view_v(sim), us_sim_view_v(sim) + n.n_v);
        }
        fd_shift = -fd_shift;
        for (double &x : fd_q) x += fd_shift;
        for (double &x : fd_v) x += fd_shift;
        return us_dyn_forward(dyn, fd_q.data(), fd_v.data(), fd_tau.data(), nullptr, fd_a.data()) == US_OK;
    }

    void torque(int i, double t) override {
        tau[joints[i].first_v] = t;
        has_torque = true;
    }
    double q(int i) override { return us_sim_view_q(sim)[joints[i].first_q]; }
    double qd(int i) override { return us_sim_view_v(sim)[joints[i].first_v]; }

    void sync() override {
        us_dyn_poses(dyn, us_sim_view_q(sim), poses.data());
        us_dyn_twists(dyn, us_sim_view_q(sim), us_sim_view_v(sim), twists.data());
    }
    int contacts(double *maxpen) override {
        int n = us_sim_n_contact(sim);
        *maxpen = 0;
        for (int i = 0; i < n; i++) *maxpen = std::max(*maxpen, -us_sim_get_contact(sim, i).gap);
        return n;
    }
    Body body(int i) override {
        us_pose X = poses[i];
        us_twist V = twists[i];
        us_vec3 arm = us_quat_rotate(X.q, vec(links[i].com));
        return {vec(us_vec3_add(X.p, arm)), vec(us_vec3_add(V.v, us_vec3_cross(V.w, arm))), vec(V.w), {X.q.w, X.q.x, X.q.y, X.q.z}};
    }
};

}  // namespace

std::vector<std::string> variants() {
    std::vector<std::string> list = {US_DEFAULT_VARIANT};
    for (const char *name : {"euler", "midpoint", "rk4", "adaptive"})
        if (list[0] != name) list.push_back(name);
    return list;
}
Engine *make(const std::string &v) {
    auto *e = new UnderstudyEngine;
    e->variant = v;
    return e;
}
