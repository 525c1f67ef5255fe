// Frames as a stranger finds them: four rovers and an arm in one scene, with prefixes of four kinds. All that
// the test knows of them it hears: descriptions, joint states, odometry, readings, /tf and /tf_static. The
// descriptions are read by libxml here, and placed by REP 105 and by what URDF says of joints.
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_peer.h"
#include "understudy/math.h"

enum { MAX_FRAME = 256, MAX_JOINT = 64, NAME = 80, N_ROBOT = 5 };

typedef struct frame {
    char name[NAME], parent[NAME];
    bool is_fixed;
    us_pose X;
    double stamp;  // s
} frame;

typedef struct urdf_joint {
    char name[NAME], parent[NAME], child[NAME], type[24];
    us_pose X_PF;
    us_vec3 axis;
} urdf_joint;

typedef struct urdf {
    int32_t n_link, n_joint;
    char link[MAX_JOINT][NAME];
    urdf_joint joint[MAX_JOINT];
    char root[NAME];
} urdf;

static const struct {
    const char *name, *prefix;
    bool moves;
} robots[N_ROBOT] = {{"one", "one/", true},
                     {"two", "", true},
                     {"three", "rover_3_", true},
                     {"four", "four/", true},
                     {"arm", "arm/", false}};

static net_peer *p;
static int32_t tf, tf_static, description[N_ROBOT], joints[N_ROBOT], odom[N_ROBOT], imu[N_ROBOT];
static frame frames[MAX_FRAME];
static int32_t n_frame;
static urdf robot[N_ROBOT];

// ---------------------------------------------------------------- the scene

static void put_rover(FILE *f, const char *name, const char *file, const char *network, int y) {
    fprintf(f, "<robot name='%s' file='%s' base='floating' default='wheel' xyz='0 %d 0.1'>", name, file, y);
    static const char *const wheels[] = {"front_left", "front_right", "rear_left", "rear_right"};
    for (int i = 0; i < 4; i++)
        fprintf(f, "<drive joint='%s'/>", wheels[i]);
    fprintf(f, "<network %s/><locomotion type='skid' max-speed='1 m/s'>", network);
    for (int i = 0; i < 4; i++)
        fprintf(f, "<wheel drive='%s' radius='0.1'/>", wheels[i]);
    fprintf(f, "</locomotion></robot>\n");
}

// The cart as others write robots: a footprint on the ground above the base, and a mast that turns.
static void write_own_urdf(const char *path) {
    char *text = net_read_text(US_SOURCE_DIR "/models/cart.urdf");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    const char *end = strstr(text, "</robot>");
    assert_non_null(end);
    for (const char *at = text; at < end; at++) {
        // The link keeps its shape and becomes base_link.
        if (strncmp(at, "\"base\"", 6) == 0) {
            fprintf(f, "\"base_link\"");
            at += 5;
        } else {
            fputc(*at, f);
        }
    }
    fprintf(f,
            "<link name='base_footprint'/>"
            "<joint name='footprint' type='fixed'><parent link='base_footprint'/><child link='base_link'/>"
            "<origin xyz='0.02 -0.01 0.1' rpy='0.1 -0.2 0.3'/></joint>"
            "<link name='mast'><inertial><mass value='1'/><inertia ixx='0.1' iyy='0.1' izz='0.1' ixy='0' "
            "ixz='0' iyz='0'/></inertial></link>"
            "<joint name='pan' type='revolute'><parent link='base_link'/><child link='mast'/>"
            "<origin xyz='0.2 0 0.3' rpy='0.4 0 0'/><axis xyz='0 0 1'/>"
            "<limit lower='-1' upper='1' effort='10' velocity='1'/></joint>"
            "<link name='camera'/><joint name='camera_mount' type='fixed'><parent link='mast'/>"
            "<child link='camera'/><origin xyz='0 0 0.1' rpy='-1.5707963 0 -1.5707963'/></joint></robot>\n");
    assert_int_equal(fclose(f), 0);
    free(text);
}

static int listen(void **state) {
    (void)state;
    write_own_urdf("own.urdf");
    FILE *f = fopen("five.xml", "w");
    assert_non_null(f);
    fprintf(f, "<scene name='five' version='1'>"
               "<world step='1 ms'><shape name='ground' type='half-space'/></world>"
               "<default name='wheel'><drive kd='4'/></default>\n");
    const char *cart = US_SOURCE_DIR "/models/cart.urdf";
    put_rover(f, "one", cart, "", 0);
    put_rover(f, "two", "own.urdf", "frame-prefix='' base='base_link'", 2);
    put_rover(f, "three", cart, "frame-prefix='rover_3_'", 4);
    put_rover(f, "four", "own.urdf", "", 6);
    fprintf(f,
            "<robot name='arm' file='%s/models/arm6-gripper.urdf' xyz='0 -3 0.2' rpy='0 0 90 deg'/></scene>",
            US_SOURCE_DIR);
    assert_int_equal(fclose(f), 0);
    net_run("five.xml --headless --quiet");
    p = net_open("cyclone");
    tf = net_listen(p, "/tf", usi_type_tf_message);
    tf_static = net_listen(p, "/tf_static", usi_type_tf_message);
    for (int i = 0; i < N_ROBOT; i++) {
        char topic[NAME];
        snprintf(topic, sizeof topic, "/%s/robot_description", robots[i].name);
        description[i] = net_listen(p, topic, usi_type_string);
        snprintf(topic, sizeof topic, "/%s/joint_states", robots[i].name);
        joints[i] = net_listen(p, topic, usi_type_joint_state);
        snprintf(topic, sizeof topic, "/%s/imu/data", robots[i].name);
        imu[i] = net_listen(p, topic, usi_type_imu);
        odom[i] = -1;
        if (!robots[i].moves) continue;
        snprintf(topic, sizeof topic, "/%s/odom", robots[i].name);
        odom[i] = net_listen(p, topic, usi_type_odometry);
    }
    for (int i = 0; i < N_ROBOT; i++) {
        NET_WAIT(net_count(p, description[i]) == 1 && net_count(p, joints[i]) > 0 &&
                 net_count(p, imu[i]) > 0);
        if (odom[i] >= 0) NET_WAIT(net_count(p, odom[i]) > 0);
    }
    net_wait_until(p, net_time(p) + 1);
    // Nothing comes any more: what was heard can be compared.
    assert_int_equal(net_end(SIGINT), 0);
    return 0;
}

// ---------------------------------------------------------------- reading

static us_pose pose_of(us_msg_transform t) {
    return (us_pose){{t.rotation.w, t.rotation.x, t.rotation.y, t.rotation.z},
                     {t.translation.x, t.translation.y, t.translation.z}};
}

// All frames with their newest transforms at or before `until`; what is told twice has to have one parent.
static void read_frames(double until) {
    n_frame = 0;
    for (int which = 0; which < 2; which++) {
        const int32_t ear = which == 0 ? tf_static : tf;
        for (int64_t i = 0; i < net_count(p, ear); i++) {
            const us_msg_tf_message *m = net_decode(p, ear, i);
            for (uint32_t k = 0; k < m->transforms._length; k++) {
                const us_msg_transform_stamped *t = &m->transforms._buffer[k];
                const double stamp = (double)t->header.stamp.sec + 1e-9 * t->header.stamp.nanosec;
                if (which == 1 && stamp > until + 1e-9) continue;
                int32_t at = 0;
                while (at < n_frame && strcmp(frames[at].name, t->child_frame_id) != 0)
                    at++;
                assert_in_range(at, 0, MAX_FRAME - 1);
                frame *f = &frames[at];
                if (at == n_frame) {
                    n_frame++;
                    snprintf(f->name, NAME, "%s", t->child_frame_id);
                    snprintf(f->parent, NAME, "%s", t->header.frame_id);
                    f->is_fixed = which == 0;
                }
                assert_string_equal(f->parent, t->header.frame_id);
                assert_int_equal(f->is_fixed, which == 0);
                f->X = pose_of(t->transform);
                f->stamp = stamp;
            }
        }
    }
}

static const frame *find_frame(const char *name) {
    for (int32_t i = 0; i < n_frame; i++) {
        if (strcmp(frames[i].name, name) == 0) return &frames[i];
    }
    return NULL;
}

static void copy_attribute(xmlNode *node, const char *attribute, char *out, size_t cap) {
    xmlChar *value = node ? xmlGetProp(node, BAD_CAST attribute) : NULL;
    snprintf(out, cap, "%s", value ? (const char *)value : "");
    xmlFree(value);
}

static xmlNode *child_of(xmlNode *node, const char *name) {
    for (xmlNode *at = node->children; at; at = at->next) {
        if (at->type == XML_ELEMENT_NODE && xmlStrEqual(at->name, BAD_CAST name)) return at;
    }
    return NULL;
}

static us_vec3 vector_of(xmlNode *node, const char *attribute, us_vec3 otherwise) {
    char text[100];
    copy_attribute(node, attribute, text, sizeof text);
    us_vec3 v = otherwise;
    if (text[0]) assert_int_equal(sscanf(text, "%lf %lf %lf", &v.x, &v.y, &v.z), 3);
    return v;
}

static us_quat about(double angle, us_vec3 axis) {
    const double s = sin(0.5 * angle) / us_vec3_norm(axis);
    return (us_quat){cos(0.5 * angle), s * axis.x, s * axis.y, s * axis.z};
}

static us_quat times(us_quat a, us_quat b) {
    const us_vec3 none = {0, 0, 0};
    return us_pose_mul((us_pose){a, none}, (us_pose){b, none}).q;
}

static void read_urdf(const char *text, urdf *u) {
    const us_vec3 zero = {0, 0, 0}, x = {1, 0, 0}, y = {0, 1, 0}, z = {0, 0, 1};
    xmlDoc *doc = xmlReadMemory(text, (int)strlen(text), NULL, NULL, XML_PARSE_NONET);
    assert_non_null(doc);
    memset(u, 0, sizeof *u);
    for (xmlNode *at = xmlDocGetRootElement(doc)->children; at; at = at->next) {
        if (at->type != XML_ELEMENT_NODE) continue;
        if (xmlStrEqual(at->name, BAD_CAST "link")) copy_attribute(at, "name", u->link[u->n_link++], NAME);
        if (!xmlStrEqual(at->name, BAD_CAST "joint")) continue;
        urdf_joint *j = &u->joint[u->n_joint++];
        copy_attribute(at, "name", j->name, NAME);
        copy_attribute(at, "type", j->type, sizeof j->type);
        copy_attribute(child_of(at, "parent"), "link", j->parent, NAME);
        copy_attribute(child_of(at, "child"), "link", j->child, NAME);
        const us_vec3 rpy = vector_of(child_of(at, "origin"), "rpy", zero);
        j->X_PF.p = vector_of(child_of(at, "origin"), "xyz", zero);
        j->X_PF.q = times(about(rpy.z, z), times(about(rpy.y, y), about(rpy.x, x)));
        j->axis = vector_of(child_of(at, "axis"), "xyz", x);
    }
    xmlFreeDoc(doc);
    for (int32_t i = 0; i < u->n_link; i++) {
        bool is_child = false;
        for (int32_t k = 0; k < u->n_joint; k++)
            is_child |= strcmp(u->joint[k].child, u->link[i]) == 0;
        if (!is_child) snprintf(u->root, NAME, "%s", u->link[i]);
    }
}

static void read_all(void) {
    read_frames(INFINITY);
    for (int i = 0; i < N_ROBOT; i++) {
        const us_msg_string *m = net_decode(p, description[i], 0);
        read_urdf(m->data, &robot[i]);
    }
}

// ---------------------------------------------------------------- checks

static void all_robots_are_one_tree_below_map(void **state) {
    (void)state;
    read_all();
    assert_null(find_frame("map"));
    for (int32_t i = 0; i < n_frame; i++) {
        const frame *f = &frames[i];
        int32_t depth = 0;
        while (f && depth <= n_frame) {
            if (strcmp(f->parent, "map") == 0) break;
            const frame *up = find_frame(f->parent);
            if (!up) fail_msg("%s hangs on %s, which hangs on nothing", frames[i].name, f->parent);
            f = up;
            depth++;
        }
        if (depth > n_frame) fail_msg("%s goes round in a circle", frames[i].name);
    }
    int32_t n = 0;
    for (int i = 0; i < N_ROBOT; i++)
        n += robot[i].n_link + robots[i].moves;
    assert_int_equal(n_frame, n);  // every link, an odom for each rover, and nothing else
}

static void map_odom_base_is_the_order_of_each_rover(void **state) {
    (void)state;
    read_all();
    for (int i = 0; i < N_ROBOT; i++) {
        char name[NAME];
        const frame *root = find_frame(robot[i].root);
        assert_non_null(root);
        if (!robots[i].moves) {
            assert_string_equal(root->parent, "map");
            assert_true(root->is_fixed);
            continue;
        }
        snprintf(name, sizeof name, "%sodom", robots[i].prefix);
        assert_string_equal(root->parent, name);
        assert_non_null(find_frame(name));
        assert_string_equal(find_frame(name)->parent, "map");
        const us_msg_odometry *m = net_decode(p, odom[i], -1);
        assert_string_equal(m->header.frame_id, name);
        assert_non_null(find_frame(m->child_frame_id));
        // Of a robot with a footprint it is the base that odometry tells of, where that is said.
        const bool has_footprint = strstr(robot[i].root, "footprint") != NULL;
        snprintf(name, sizeof name, "%s%s", robots[i].prefix,
                 i == 1          ? "base_link"
                 : has_footprint ? "base_footprint"
                                 : "base");
        assert_string_equal(m->child_frame_id, name);
    }
    // The arm stands where the scene has put it.
    const frame *arm = find_frame("arm/base");
    assert_true(fabs(arm->X.p.x) < 1e-9 && fabs(arm->X.p.y + 3) < 1e-9 && fabs(arm->X.p.z - 0.2) < 1e-9);
    assert_true(fabs(fabs(arm->X.q.z) - sqrt(0.5)) < 1e-9);
}

static void links_have_the_same_names_in_the_description_and_in_tf(void **state) {
    (void)state;
    read_all();
    for (int i = 0; i < N_ROBOT; i++) {
        assert_true(robot[i].n_link > 4);
        for (int32_t k = 0; k < robot[i].n_link; k++) {
            if (!find_frame(robot[i].link[k])) fail_msg("%s is no frame", robot[i].link[k]);
            assert_memory_equal(robot[i].link[k], robots[i].prefix, strlen(robots[i].prefix));
        }
        for (int32_t k = 0; k < robot[i].n_joint; k++)
            assert_string_equal(find_frame(robot[i].joint[k].child)->parent, robot[i].joint[k].parent);
        const us_msg_imu *m = net_decode(p, imu[i], -1);
        if (!find_frame(m->header.frame_id)) fail_msg("readings are of %s, no frame", m->header.frame_id);
    }
}

static void joint_states_name_the_joints_of_the_description(void **state) {
    (void)state;
    read_all();
    for (int i = 0; i < N_ROBOT; i++) {
        int32_t n = 0;
        const us_msg_joint_state *m = net_decode(p, joints[i], -1);
        for (int32_t k = 0; k < robot[i].n_joint; k++) {
            if (strcmp(robot[i].joint[k].type, "fixed") == 0) continue;
            bool is_there = false;
            for (uint32_t q = 0; q < m->name._length; q++)
                is_there |= strcmp(m->name._buffer[q], robot[i].joint[k].name) == 0;
            if (!is_there) fail_msg("%s has no state", robot[i].joint[k].name);
            n++;
        }
        assert_int_equal(m->name._length, n);
    }
}

// What robot_state_publisher would say of these joint states.
static void transforms_are_those_that_joint_states_and_description_give(void **state) {
    (void)state;
    int32_t n = 0;
    for (int i = 0; i < N_ROBOT; i++) {
        read_all();
        const us_msg_joint_state *m = net_decode(p, joints[i], -1);
        const double stamp = (double)m->header.stamp.sec + 1e-9 * m->header.stamp.nanosec;
        double q[MAX_JOINT] = {0};
        for (int32_t k = 0; k < robot[i].n_joint; k++) {
            for (uint32_t s = 0; s < m->name._length; s++) {
                if (strcmp(m->name._buffer[s], robot[i].joint[k].name) == 0) q[k] = m->position._buffer[s];
            }
        }
        read_frames(stamp);
        for (int32_t k = 0; k < robot[i].n_joint; k++) {
            const urdf_joint *j = &robot[i].joint[k];
            const frame *f = find_frame(j->child);
            assert_non_null(f);
            assert_int_equal(f->is_fixed, strcmp(j->type, "fixed") == 0);
            // A sample may be under way when the run ends: the one of the same moment is compared.
            if (!f->is_fixed && fabs(f->stamp - stamp) > 1e-9) continue;
            us_pose X = j->X_PF;
            const bool slides = strcmp(j->type, "prismatic") == 0;
            if (slides) {
                X = us_pose_mul(X, (us_pose){{1, 0, 0, 0}, us_vec3_scale(q[k], j->axis)});
            } else if (!f->is_fixed) {
                X = us_pose_mul(X, (us_pose){about(q[k], j->axis), {0, 0, 0}});
            }
            // Numbers of the file go through a rotation matrix and poses of the world: some rounding at 1 m,
            // 1e-12; quaternions to 1e-9 since rpy of the file has 8 digits where it says pi/2.
            const us_vec3 d = us_vec3_sub(X.p, f->X.p);
            const double dot = X.q.w * f->X.q.w + X.q.x * f->X.q.x + X.q.y * f->X.q.y + X.q.z * f->X.q.z;
            if (us_vec3_norm(d) > 1e-9 || fabs(fabs(dot) - 1) > 1e-9)
                fail_msg("%s in %s is off by %g m, %g", j->child, j->parent, us_vec3_norm(d), fabs(dot) - 1);
            n++;
        }
    }
    assert_true(n > 20);
}

static int end(void **state) {
    net_close(p);
    return net_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_robots_are_one_tree_below_map),
        cmocka_unit_test(map_odom_base_is_the_order_of_each_rover),
        cmocka_unit_test(links_have_the_same_names_in_the_description_and_in_tf),
        cmocka_unit_test(joint_states_name_the_joints_of_the_description),
        cmocka_unit_test(transforms_are_those_that_joint_states_and_description_give),
    };
    return cmocka_run_group_tests(tests, listen, end);
}
