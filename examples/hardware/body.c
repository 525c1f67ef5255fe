// The rover's body: the URDF file read once more, by other eyes, and written as a MuJoCo model with errors of
// its own.
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <math.h>
#include <mujoco/mujoco.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware.h"

static const double PHYSICS_STEP = 1e-3;              // s
static const double STEER_KP = 800, STEER_KD = 60;    // N m/rad, N m s/rad
static const double WHEEL_KD = 40;                    // N m s/rad
static const double RAMP_START = 2, RAMP_LENGTH = 6;  // m ahead of the world's origin

// ---- reading ----

static const xmlNode *child_of(const xmlNode *node, const char *name) {
    for (const xmlNode *c = node ? node->children : NULL; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE && strcmp((const char *)c->name, name) == 0) return c;
    }
    return NULL;
}

static const char *text_of(const xmlNode *node, const char *name, const char *otherwise) {
    for (const xmlAttr *a = node ? node->properties : NULL; a; a = a->next) {
        if (strcmp((const char *)a->name, name) == 0 && a->children && a->children->content)
            return (const char *)a->children->content;
    }
    return otherwise;
}

static double number_of(const xmlNode *node, const char *name, double otherwise) {
    const char *text = text_of(node, name, NULL);
    return text ? strtod(text, NULL) : otherwise;
}

static void vector_of(const xmlNode *node, const char *name, double otherwise, double out[3]) {
    const char *text = text_of(node, name, "");
    char *end = NULL;
    for (int i = 0; i < 3; i++) {
        out[i] = strtod(text, &end);
        if (end == text) out[i] = otherwise;
        text = end;
    }
}

static void copy_name(char out[NAME_SIZE], const char *name) { snprintf(out, NAME_SIZE, "%s", name); }

static const xmlNode *find_link(const xmlNode *robot, const char *name) {
    for (const xmlNode *c = robot->children; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE && strcmp((const char *)c->name, "link") == 0 &&
            strcmp(text_of(c, "name", ""), name) == 0)
            return c;
    }
    return NULL;
}

static int32_t joint_to(const body *b, const char *link) {
    for (int32_t i = 0; i < b->n_joint; i++) {
        if (strcmp(b->joints[i].child, link) == 0) return i;
    }
    return -1;
}

// ---- writing ----

static void write_origin(FILE *f, const xmlNode *origin) {
    double xyz[3], rpy[3];
    vector_of(origin, "xyz", 0, xyz);
    vector_of(origin, "rpy", 0, rpy);
    fprintf(f, " pos=\"%.9g %.9g %.9g\" euler=\"%.9g %.9g %.9g\"", xyz[0], xyz[1], xyz[2], rpy[0], rpy[1],
            rpy[2]);
}

static void write_shapes(FILE *f, const xmlNode *link, double scale) {
    for (const xmlNode *c = link->children; c; c = c->next) {
        if (c->type != XML_ELEMENT_NODE || strcmp((const char *)c->name, "collision") != 0) continue;
        const xmlNode *geometry = child_of(c, "geometry"), *box = child_of(geometry, "box"),
                      *cylinder = child_of(geometry, "cylinder");
        if (box) {
            double size[3];
            vector_of(box, "size", 0.1, size);
            fprintf(f, "<geom type=\"box\" size=\"%.9g %.9g %.9g\"", 0.5 * size[0], 0.5 * size[1],
                    0.5 * size[2]);
        } else if (cylinder) {
            fprintf(f, "<geom type=\"cylinder\" size=\"%.9g %.9g\"",
                    scale * number_of(cylinder, "radius", 0.1), 0.5 * number_of(cylinder, "length", 0.1));
        } else {
            continue;
        }
        write_origin(f, child_of(c, "origin"));
        fprintf(f, "/>\n");
    }
}

static void write_inertia(FILE *f, const xmlNode *link, double scale) {
    const xmlNode *inertial = child_of(link, "inertial"), *inertia = child_of(inertial, "inertia");
    static const char *const names[] = {"ixx", "iyy", "izz", "ixy", "ixz", "iyz"};
    fprintf(f, "<inertial mass=\"%.9g\"", scale * number_of(child_of(inertial, "mass"), "value", 1));
    double xyz[3];
    vector_of(child_of(inertial, "origin"), "xyz", 0, xyz);
    fprintf(f, " pos=\"%.9g %.9g %.9g\" fullinertia=\"", xyz[0], xyz[1], xyz[2]);
    for (int i = 0; i < 6; i++)
        fprintf(f, "%.9g ", scale * number_of(inertia, names[i], i < 3 ? 0.01 : 0));
    fprintf(f, "\"/>\n");
}

static bool is_wheel(const body *b, const char *link) {
    for (int i = 0; i < N_WHEEL; i++) {
        if (strcmp(b->joints[b->wheels[i].drive].child, link) == 0) return true;
    }
    return false;
}

// A link and all that hangs on it; URDF is flat, MuJoCo nests.
static void write_link(FILE *f, const body *b, const xmlNode *robot, const char *name, const options *o,
                       int depth) {
    const xmlNode *link = find_link(robot, name);
    if (!link || depth > MAX_JOINT) return;
    write_inertia(f, link, 1 + o->mass_error);
    write_shapes(f, link, is_wheel(b, name) ? 1 + o->radius_error : 1);
    int32_t i = 0;
    for (const xmlNode *c = robot->children; c; c = c->next) {
        if (c->type != XML_ELEMENT_NODE || strcmp((const char *)c->name, "joint") != 0) continue;
        const joint *j = &b->joints[i++];
        if (strcmp(j->parent, name) != 0) continue;
        fprintf(f, "<body name=\"%s\"", j->child);
        write_origin(f, child_of(c, "origin"));
        fprintf(f, "><joint name=\"%s\" type=\"hinge\" axis=\"%.9g %.9g %.9g\" damping=\"%.9g\"", j->name,
                j->axis[0], j->axis[1], j->axis[2], number_of(child_of(c, "dynamics"), "damping", 0));
        // The steering's own end stops are a little wider than what the firmware may ask for.
        if (j->is_limited)
            fprintf(f, " limited=\"true\" range=\"%.9g %.9g\"", j->lower - 0.02, j->upper + 0.02);
        fprintf(f, "/>\n");
        write_link(f, b, robot, j->child, o, depth + 1);
        fprintf(f, "</body>\n");
    }
}

// Drives that give way: torque = kp (target - q) - kd v for steering, kd (target - v) for wheels.
static void write_drives(FILE *f, const body *b, const xmlNode *robot) {
    fprintf(f, "<actuator>\n");
    int32_t i = 0;
    for (const xmlNode *c = robot->children; c; c = c->next) {
        if (c->type != XML_ELEMENT_NODE || strcmp((const char *)c->name, "joint") != 0) continue;
        const joint *j = &b->joints[i++];
        if (j->actuator < 0) continue;
        double effort = number_of(child_of(c, "limit"), "effort", 0), kp = j->is_limited ? STEER_KP : 0,
               kd = j->is_limited ? STEER_KD : WHEEL_KD;
        fprintf(f,
                "<general joint=\"%s\" gainprm=\"%.9g\" biastype=\"affine\" biasprm=\"0 %.9g %.9g\" "
                "forcelimited=\"true\" forcerange=\"%.9g %.9g\"/>\n",
                j->name, kp > 0 ? kp : kd, -kp, -kd, -effort, effort);
    }
    fprintf(f, "</actuator>\n<equality>\n");
    for (const xmlNode *c = robot->children; c; c = c->next) {
        const xmlNode *mimic = c->type == XML_ELEMENT_NODE ? child_of(c, "mimic") : NULL;
        if (!mimic) continue;
        fprintf(f, "<joint joint1=\"%s\" joint2=\"%s\" polycoef=\"%.9g %.9g 0 0 0\"/>\n",
                text_of(c, "name", ""), text_of(mimic, "joint", ""), number_of(mimic, "offset", 0),
                number_of(mimic, "multiplier", 1));
    }
    fprintf(f, "</equality>\n");
}

static void write_world(FILE *f, const body *b, const xmlNode *robot, const options *o) {
    fprintf(f, "<mujoco model=\"k10\"><compiler angle=\"radian\" eulerseq=\"XYZ\"/>\n");
    fprintf(f, "<option timestep=\"%.9g\" integrator=\"implicit\" cone=\"elliptic\" impratio=\"10\"/>\n",
            PHYSICS_STEP);
    // The robot touches the ground, and not itself.
    fprintf(f,
            "<default><geom friction=\"%.9g 0.005 0.0001\" contype=\"1\" "
            "conaffinity=\"0\"/></default>\n<worldbody>\n",
            o->friction);
    fprintf(f, "<geom type=\"plane\" size=\"0 0 1\" contype=\"0\" conaffinity=\"1\"/>\n");
    if (o->ramp > 0) {
        double c = cos(o->ramp), s = sin(o->ramp), half = 0.5 * RAMP_LENGTH, thick = 0.1;
        fprintf(f,
                "<geom type=\"box\" size=\"%.9g 3 %.9g\" pos=\"%.9g 0 %.9g\" euler=\"0 %.9g 0\" "
                "contype=\"0\" conaffinity=\"1\"/>\n",
                half, thick, RAMP_START + half * c + thick * s, half * s - thick * c, -o->ramp);
    }
    fprintf(f,
            "<body name=\"%s\" pos=\"%.9g %.9g 0.01\" euler=\"0 0 %.9g\"><freejoint/><site name=\"imu\"/>\n",
            b->root, o->x, o->y, o->yaw);
    write_link(f, b, robot, b->root, o, 0);
    fprintf(f, "</body>\n</worldbody>\n");
    write_drives(f, b, robot);
    fprintf(f, "<sensor><framequat objtype=\"site\" objname=\"imu\"/><gyro site=\"imu\"/><accelerometer "
               "site=\"imu\"/></sensor>\n</mujoco>\n");
}

// ---- the robot ----

// Joints with a motor, and which of them are wheels: those without end. A wheel hangs on the link that its
// steering joint turns.
static bool find_wheels(body *b, const xmlNode *robot, char *why, size_t cap) {
    int n = 0;
    for (int32_t i = 0; i < b->n_joint; i++) {
        if (b->joints[i].actuator < 0 || b->joints[i].is_limited) continue;
        wheel w = US_ZERO;
        w.drive = i;
        w.steer = joint_to(b, b->joints[i].parent);
        const xmlNode *shape = child_of(
            child_of(child_of(find_link(robot, b->joints[i].child), "collision"), "geometry"), "cylinder");
        if (w.steer < 0 || b->joints[w.steer].actuator < 0 || !shape || n == N_WHEEL) {
            snprintf(why, cap, "joint \"%s\" is no wheel of a rover with four steered wheels",
                     b->joints[i].name);
            return false;
        }
        w.radius = number_of(shape, "radius", 0.1);
        for (int32_t at = i; at >= 0; at = joint_to(b, b->joints[at].parent)) {
            w.x += b->joints[at].xyz[0];
            w.y += b->joints[at].xyz[1];
        }
        b->wheels[n++] = w;
    }
    if (n != N_WHEEL) snprintf(why, cap, "%d wheels instead of %d", n, N_WHEEL);
    return n == N_WHEEL;
}

static bool read_joints(body *b, const xmlNode *robot, char *why, size_t cap) {
    int n_actuator = 0;
    for (const xmlNode *c = robot->children; c; c = c->next) {
        if (c->type != XML_ELEMENT_NODE || strcmp((const char *)c->name, "joint") != 0) continue;
        const char *type = text_of(c, "type", "");
        if (b->n_joint == MAX_JOINT || (strcmp(type, "revolute") != 0 && strcmp(type, "continuous") != 0)) {
            snprintf(why, cap, "joint \"%s\": %s", text_of(c, "name", ""),
                     b->n_joint == MAX_JOINT ? "too many joints" : "neither revolute nor continuous");
            return false;
        }
        joint *j = &b->joints[b->n_joint++];
        copy_name(j->name, text_of(c, "name", ""));
        copy_name(j->parent, text_of(child_of(c, "parent"), "link", ""));
        copy_name(j->child, text_of(child_of(c, "child"), "link", ""));
        vector_of(child_of(c, "origin"), "xyz", 0, j->xyz);
        vector_of(child_of(c, "origin"), "rpy", 0, j->rpy);
        vector_of(child_of(c, "axis"), "xyz", 0, j->axis);
        j->is_limited = strcmp(type, "revolute") == 0;
        j->lower = number_of(child_of(c, "limit"), "lower", -1);
        j->upper = number_of(child_of(c, "limit"), "upper", 1);
        j->max_speed = number_of(child_of(c, "limit"), "velocity", 1);
        j->actuator = number_of(child_of(c, "limit"), "effort", 0) > 0 ? n_actuator++ : -1;
    }
    for (const xmlNode *c = robot->children; c && !b->root[0]; c = c->next) {
        if (c->type != XML_ELEMENT_NODE || strcmp((const char *)c->name, "link") != 0) continue;
        if (joint_to(b, text_of(c, "name", "")) < 0) copy_name(b->root, text_of(c, "name", ""));
    }
    if (!b->root[0]) snprintf(why, cap, "no link is the root");
    return b->root[0] != 0;
}

static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    long n = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) n = ftell(f);
    char *text = n >= 0 ? (char *)calloc((size_t)n + 1, 1) : NULL;
    if (text) {
        rewind(f);
        if (fread(text, 1, (size_t)n, f) != (size_t)n) {
            free(text);
            text = NULL;
        }
    }
    if (f) fclose(f);
    return text;
}

// MuJoCo takes files; this one is in memory.
static mjModel *compile(const char *text, size_t length, char *why, size_t cap) {
    mjVFS *files = (mjVFS *)calloc(1, sizeof *files);
    mjModel *model = NULL;
    if (!files) return NULL;
    mj_defaultVFS(files);
    if (mj_makeEmptyFileVFS(files, "k10.xml", (int)length) == 0) {
        memcpy(files->filedata[mj_findFileVFS(files, "k10.xml")], text, length);
        model = mj_loadXML("k10.xml", files, why, (int)cap);
    }
    mj_deleteVFS(files);
    free(files);
    return model;
}

static void warn(const char *message) { fprintf(stderr, "k10_hardware: %s\n", message); }

// Joints, sensors: what MuJoCo computed. Its first coordinates are those of the free body: 7 positions, 6
// velocities.
static void look(body *b) {
    const mjModel *m = (const mjModel *)b->model;
    const mjData *d = (const mjData *)b->data;
    for (int i = 0; i < b->n_joint; i++) {
        joint *j = &b->joints[i];
        int k = mj_name2id(m, mjOBJ_JOINT, j->name);
        j->q = d->qpos[m->jnt_qposadr[k]];
        j->v = d->qvel[m->jnt_dofadr[k]];
        j->torque = j->actuator >= 0 ? d->actuator_force[j->actuator] : 0;
    }
    memcpy(b->orientation, d->sensordata, sizeof b->orientation);
    memcpy(b->gyro, d->sensordata + 4, sizeof b->gyro);
    memcpy(b->accelerometer, d->sensordata + 7, sizeof b->accelerometer);
}

static void put_prefix(xmlNode *node, const char *attribute, const char *namespace_) {
    xmlChar *old = xmlGetNoNsProp(node, BAD_CAST attribute);
    char name[2 * NAME_SIZE];
    snprintf(name, sizeof name, "%s/%s", namespace_, old ? (const char *)old : "");
    if (old) xmlSetProp(node, BAD_CAST attribute, BAD_CAST name);
    xmlFree(old);
}

// On the network its links have the names of its frames.
static char *describe(xmlDoc *document, const char *namespace_) {
    for (xmlNode *at = xmlDocGetRootElement(document)->children; at; at = at->next) {
        if (at->type != XML_ELEMENT_NODE) continue;
        if (xmlStrEqual(at->name, BAD_CAST "link")) put_prefix(at, "name", namespace_);
        for (xmlNode *of = xmlStrEqual(at->name, BAD_CAST "joint") ? at->children : NULL; of; of = of->next) {
            if (xmlStrEqual(of->name, BAD_CAST "parent") || xmlStrEqual(of->name, BAD_CAST "child"))
                put_prefix(of, "link", namespace_);
        }
    }
    xmlChar *bytes = NULL;
    int length = 0;
    xmlDocDumpMemory(document, &bytes, &length);
    char *text = bytes ? strdup((const char *)bytes) : NULL;
    xmlFree(bytes);
    return text;
}

bool body_create(body *b, const options *o, char *why, size_t cap) {
    memset(b, 0, sizeof *b);
    mju_user_warning = warn;
    b->description = read_file(o->urdf);
    xmlDoc *document = b->description ? xmlReadMemory(b->description, (int)strlen(b->description), o->urdf,
                                                      NULL, XML_PARSE_NOERROR | XML_PARSE_NONET)
                                      : NULL;
    const xmlNode *robot = document ? xmlDocGetRootElement(document) : NULL;
    char *text = NULL;
    size_t length = 0;
    if (!b->description) {
        snprintf(why, cap, "the file cannot be read");
    } else if (!robot || strcmp((const char *)robot->name, "robot") != 0) {
        snprintf(why, cap, "the file is no URDF");
    } else if (read_joints(b, robot, why, cap) && find_wheels(b, robot, why, cap)) {
        FILE *f = open_memstream(&text, &length);
        if (f) {
            write_world(f, b, robot, o);
            fclose(f);
            b->model = compile(text, length, why, cap);
        }
        if (b->model) b->data = mj_makeData((const mjModel *)b->model);
    }
    free(text);
    if (b->data) {
        free(b->description);
        b->description = describe(document, o->namespace_);
    }
    xmlFreeDoc(document);
    if (!b->data) {
        body_destroy(b);
        return false;
    }
    mj_forward((const mjModel *)b->model, (mjData *)b->data);
    look(b);
    return true;
}

void body_destroy(body *b) {
    if (b->data) mj_deleteData((mjData *)b->data);
    if (b->model) mj_deleteModel((mjModel *)b->model);
    free(b->description);
    memset(b, 0, sizeof *b);
}

// Of a steering drive kp (position - q) + kd (velocity - v), by the one number that it takes.
double body_target(const joint *j, double position, double velocity) {
    return j->is_limited ? position + STEER_KD / STEER_KP * velocity : velocity;
}

void body_step(body *b, double time) {
    mjData *d = (mjData *)b->data;
    for (int i = 0; i < b->n_joint; i++) {
        if (b->joints[i].actuator >= 0) d->ctrl[b->joints[i].actuator] = b->joints[i].target;
    }
    for (int n = (int)lround(time / PHYSICS_STEP); n > 0; n--)
        mj_step((const mjModel *)b->model, d);
    look(b);
}
