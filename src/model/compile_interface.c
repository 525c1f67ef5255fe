// From the rows of an <interface> to places and numbers.
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text_value.h"
#include "model/lidars.h"
#include "model/model__interface.h"

static us_place place_of(usi_linker *k, int32_t line) {
    snprintf(k->element, sizeof k->element, "robot \"%.100s\"", k->r->name);
    return (us_place){k->r->network->file, line, 0, k->element};
}

us_status usi_link_fail(usi_linker *k, const us_binding *b, us_status status, const char *remedy,
                        const char *format, ...) {
    char message[300];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const us_place place = place_of(k, b->line);
    return us_error_set(k->err, status, &place, remedy, "%s: %s", b->member ? b->member : b->value, message);
}

// ---------------------------------------------------------------- values by name

// X(name, source, part, how many numbers; 0: a text)
#define MOTION(X, name, source)                           \
    X(name ".position", source, USI_PART_POSITION, 3)     \
    X(name ".x", source, USI_PART_POSITION, 1)            \
    X(name ".y", source, USI_PART_POSITION + 1, 1)        \
    X(name ".z", source, USI_PART_POSITION + 2, 1)        \
    X(name ".quaternion", source, USI_PART_QUATERNION, 4) \
    X(name ".matrix", source, USI_PART_MATRIX, 9)         \
    X(name ".rpy", source, USI_PART_RPY, 3)               \
    X(name ".yaw", source, USI_PART_RPY + 2, 1)
#define VALUES(X)                                                  \
    X("time", USI_VALUE_TIME, 0, 1)                                \
    X("time.sec", USI_VALUE_SECONDS, 0, 1)                         \
    X("time.nanosec", USI_VALUE_NANOSECONDS, 0, 1)                 \
    X("joint.position", USI_VALUE_JOINT_POSITION, 0, 1)            \
    X("joint.velocity", USI_VALUE_JOINT_VELOCITY, 0, 1)            \
    X("joint.torque", USI_VALUE_JOINT_TORQUE, 0, 1)                \
    X("joint.name", USI_VALUE_TEXT, 1, 0)                          \
    MOTION(X, "odom", USI_VALUE_ODOM)                              \
    X("odom.velocity", USI_VALUE_ODOM, USI_PART_VELOCITY, 3)       \
    X("odom.spin", USI_VALUE_ODOM, USI_PART_SPIN, 3)               \
    MOTION(X, "pose", USI_VALUE_POSE)                              \
    X("imu.quaternion", USI_VALUE_IMU, USI_PART_QUATERNION, 4)     \
    X("imu.matrix", USI_VALUE_IMU, USI_PART_MATRIX, 9)             \
    X("imu.rpy", USI_VALUE_IMU, USI_PART_RPY, 3)                   \
    X("imu.spin", USI_VALUE_IMU, USI_PART_SPIN, 3)                 \
    X("imu.acceleration", USI_VALUE_IMU, USI_PART_ACCELERATION, 3) \
    X("frame.name", USI_VALUE_TEXT, 2, 0)                          \
    X("frame.parent", USI_VALUE_TEXT, 3, 0)                        \
    X("frame.position", USI_VALUE_FRAME, USI_PART_POSITION, 3)     \
    X("frame.quaternion", USI_VALUE_FRAME, USI_PART_QUATERNION, 4) \
    X("frame.matrix", USI_VALUE_FRAME, USI_PART_MATRIX, 9)         \
    X("battery.charge", USI_VALUE_BATTERY, 0, 1)                   \
    X("battery.voltage", USI_VALUE_BATTERY, 1, 1)                  \
    X("battery.current", USI_VALUE_BATTERY, 2, 1)                  \
    X("point.position", USI_VALUE_POINT, USI_POINT_POSITION, 3)    \
    X("point.range", USI_VALUE_POINT, USI_POINT_RANGE, 1)          \
    X("point.azimuth", USI_VALUE_POINT, USI_POINT_AZIMUTH, 1)      \
    X("point.elevation", USI_VALUE_POINT, USI_POINT_ELEVATION, 1)  \
    X("point.intensity", USI_VALUE_POINT, USI_POINT_INTENSITY, 1)  \
    X("point.ring", USI_VALUE_POINT, USI_POINT_RING, 1)            \
    X("point.time", USI_VALUE_POINT, USI_POINT_TIME, 1)            \
    X("row.length", USI_VALUE_ROW, 0, 1)                           \
    X("shot.range", USI_VALUE_SHOT, USI_POINT_RANGE, 1)            \
    X("shot.intensity", USI_VALUE_SHOT, USI_POINT_INTENSITY, 1)    \
    X("robot.name", USI_VALUE_TEXT, 0, 0)                          \
    X("controller", USI_VALUE_CONTROLLER, 0, 0)                    \
    X("refusal", USI_VALUE_REFUSAL, 0, 0)

typedef struct value_row {
    const char *name;
    usi_value_source source;
    int32_t part, n;
} value_row;

static const value_row rows[] = {
#define ROW(name, source, part, n) {name, source, part, n},
    VALUES(ROW)
#undef ROW
};
enum { N_ROW = sizeof rows / sizeof *rows };

static us_status find_value(usi_linker *k, const us_binding *b, const value_row **out) {
    const char *names[N_ROW];
    for (int i = 0; i < N_ROW; i++) {
        names[i] = rows[i].name;
        *out = &rows[i];
        if (strcmp(rows[i].name, b->value) == 0) return US_OK;
    }
    us_error why = {0};
    usi_fail_unknown("value", b->value, names, N_ROW, &why);
    return usi_link_fail(k, b, US_ERR_NAME, why.remedy, "%.200s", why.message);
}

// ---------------------------------------------------------------- joints

us_status usi_link_joints(usi_linker *k, const us_binding *b, bool needs_drive, usi_joint_list *out) {
    const usi_firmware *fw = &k->r->firmware;
    out->n = 0;
    if (!b->joints) {
        for (int32_t i = 0; i < fw->n_joint && out->n < USI_LINK_JOINTS; i++) {
            if (needs_drive && fw->joint[i].drive < 0) continue;
            out->joint[out->n] = i;
            out->sign[out->n++] = 1;
        }
        return US_OK;
    }
    for (const char *at = b->joints; *(at += strspn(at, " \t\r\n"));) {
        const size_t n = strcspn(at, " \t\r\n");
        const bool is_gap = n == 1 && *at == '-', is_minus = *at == '-' && !is_gap;
        const char *name = at + is_minus;
        const size_t length = n - is_minus;
        int32_t i = 0;
        while (i < fw->n_joint &&
               (strlen(fw->joint[i].name) != length || memcmp(fw->joint[i].name, name, length) != 0))
            i++;
        if (!is_gap && i == fw->n_joint)
            return usi_link_fail(
                k, b, US_ERR_NAME, "name joints of the robot with one coordinate, or - for a gap",
                "joints: there is no joint \"%.*s\"", (int)(length < 60 ? length : 60), name);
        if (!is_gap && needs_drive && fw->joint[i].drive < 0)
            return usi_link_fail(k, b, US_ERR_NAME, "give it a <drive>", "joints: \"%.60s\" has no drive",
                                 fw->joint[i].name);
        if (out->n == USI_LINK_JOINTS)
            return usi_link_fail(k, b, US_ERR_LIMIT, "name fewer", "joints: more than %d", USI_LINK_JOINTS);
        out->joint[out->n] = is_gap ? -1 : i;
        out->sign[out->n++] = is_minus ? -1 : 1;
        at += n;
    }
    return US_OK;
}

// ---------------------------------------------------------------- axes

typedef struct axes {
    int32_t index[3];
    double sign[3];
} axes;

// "x -y -z": a rotation, no mirror.
static us_status read_axes(usi_linker *k, const us_binding *b, axes *out) {
    static const char *const remedy = "name each of x, y and z once, right-handed: \"x -y -z\", \"y -x z\"";
    int32_t seen = 0, n = 0;
    *out = (axes){{0, 1, 2}, {1, 1, 1}};
    if (!b->axes) return US_OK;
    for (const char *at = b->axes; *(at += strspn(at, " \t\r\n")); at++) {
        const double sign = *at == '-' ? -1 : 1;
        at += *at == '-';
        if (n == 3 || *at < 'x' || *at > 'z')
            return usi_link_fail(k, b, US_ERR_VALUE, remedy, "axes: \"%.40s\" are none", b->axes);
        out->index[n] = *at - 'x';
        out->sign[n++] = sign;
        seen |= 1 << (*at - 'x');
    }
    const int32_t *i = out->index;
    const bool is_even = (i[1] + 3 - i[0]) % 3 == 1;
    const double hand = out->sign[0] * out->sign[1] * out->sign[2] * (is_even ? 1 : -1);
    if (n != 3 || seen != 7 || hand < 0)
        return usi_link_fail(k, b, US_ERR_VALUE, remedy, "axes: \"%.40s\" are no right-handed axes", b->axes);
    return US_OK;
}

// Element i of n numbers of a value, as the wire's axes and order have it.
static void pick(const us_binding *b, const axes *a, const value_row *v, int32_t i, usi_value *out) {
    int32_t part = i;
    double sign = 1;
    if (v->n == 3) {
        part = a->index[i];
        sign = a->sign[i];
    } else if (v->n == 9) {
        part = 3 * a->index[i / 3] + a->index[i % 3];
        sign = a->sign[i / 3] * a->sign[i % 3];
    } else if (v->n == 4) {
        const bool is_scalar_first = b->order && strcmp(b->order, "wxyz") == 0;
        const int32_t axis = is_scalar_first ? i - 1 : i;
        part = axis < 0 || axis > 2 ? 0 : 1 + a->index[axis];
        sign = axis < 0 || axis > 2 ? 1 : a->sign[axis];
    }
    out->part = v->part + part;
    out->scale *= sign;
}

// ---------------------------------------------------------------- rows

us_status usi_link_row(usi_linker *k, const us_binding *b, const usi_member *m) {
    if (k->n == USI_LINK_ROWS)
        return usi_link_fail(k, b, US_ERR_LIMIT, "write fewer", "the topic has more than %d values",
                             USI_LINK_ROWS);
    k->member[k->n] = *m;
    return US_OK;
}

us_status usi_link_check_kind(usi_linker *k, const us_binding *b, const usi_member *m, bool is_text) {
    if (m->leaf->kind == USI_KIND_MESSAGE)
        return usi_link_fail(k, b, US_ERR_VALUE, "name one of its members", "it is a struct");
    if ((m->leaf->kind == USI_KIND_STRING) == is_text) return US_OK;
    return usi_link_fail(
        k, b, US_ERR_VALUE, is_text ? "name a member that is a string" : "name a member that is a number",
        is_text ? "it is a number, and the value a text" : "it is a string, and the value a number");
}

// Whether the member is a struct of n numbers, as the vectors and quaternions of ROS 2 are.
static bool is_struct_of(const usi_member *m, int32_t n) {
    const us_message_type *t = m->leaf->type;
    if (m->leaf->kind != USI_KIND_MESSAGE || usi_member_is_whole(m) || t->is_union || t->is_inner ||
        t->n_field != n || m->n_step == USI_MESSAGE_DEPTH)
        return false;
    for (int32_t i = 0; i < n; i++) {
        if (t->fields[i].kind >= USI_KIND_STRING || t->fields[i].shape != USI_SHAPE_ONE) return false;
    }
    return true;
}

static usi_member member_of_struct(const usi_member *m, int32_t i) {
    usi_member out = *m;
    out.field[out.n_step] = i;
    out.item[out.n_step++] = -1;
    out.leaf = &m->leaf->type->fields[i];
    return out;
}

// Puts the n elements of a value to a member: itself, as many elements of an array or sequence, or the
// members of a struct.
static us_status put_elements(usi_linker *k, const us_binding *b, const usi_member *m, const axes *a,
                              const value_row *v, const usi_value *with) {
    const bool is_whole = usi_member_is_whole(m), is_struct = v->n > 1 && is_struct_of(m, v->n);
    const int32_t n = v->n == 0 ? 1 : v->n;
    us_status status = is_struct ? US_OK : usi_link_check_kind(k, b, m, v->n == 0);
    if (status) return status;
    if (is_struct ? false : is_whole ? m->leaf->count > 0 && m->leaf->count < (uint32_t)n : n > 1)
        return usi_link_fail(k, b, US_ERR_VALUE, "name an array or sequence that is long enough",
                             "the value has %d numbers", (int)n);
    for (int32_t i = 0; i < n && !status; i++) {
        const usi_member element = is_struct ? member_of_struct(m, i) : is_whole ? usi_member_item(m, i) : *m;
        status = usi_link_row(k, b, &element);
        if (status) return status;
        k->value[k->n] = *with;
        if (v->n > 0) pick(b, a, v, i, &k->value[k->n]);
        k->n++;
    }
    return status;
}

us_status usi_link_member(usi_linker *k, const us_binding *b, const us_message_type *type, int64_t open,
                          usi_member *out) {
    const us_place place = place_of(k, b->line);
    return usi_member_find(type, b->member, open, &place, out, k->err);
}

static bool is_open(const us_binding *b) { return strstr(b->member, "[]") != NULL; }

// The member of element `i` of a list: "motor[].q", or element i of an array or sequence.
us_status usi_link_element(usi_linker *k, const us_binding *b, const us_message_type *type, int32_t i,
                           usi_member *out) {
    us_status status = usi_link_member(k, b, type, i, out);
    if (status || is_open(b)) return status;
    if (!usi_member_is_whole(out))
        return usi_link_fail(k, b, US_ERR_VALUE,
                             "name an array or sequence, or write [] where the index stands",
                             "a value of each joint or frame needs as many places");
    if (out->leaf->count > 0 && (uint32_t)i >= out->leaf->count)
        return usi_link_fail(k, b, US_ERR_VALUE, "name fewer, or a longer array", "it has %u places",
                             (unsigned)out->leaf->count);
    *out = usi_member_item(out, i);
    return US_OK;
}

static void set_text(usi_value *v, const char *text) {
    v->source = USI_VALUE_TEXT;
    v->text = text;
    v->length = (uint32_t)strlen(text);
}

static us_status set_joints(usi_linker *k, const us_binding *b, const us_message_type *type,
                            const value_row *v, const usi_value *with) {
    usi_joint_list list;
    const axes none = {{0, 1, 2}, {1, 1, 1}};
    us_status status = usi_link_joints(k, b, false, &list);
    for (int32_t i = 0; i < list.n && !status; i++) {
        usi_member m;
        usi_value value = *with;
        if (list.joint[i] < 0) continue;
        value.index = list.joint[i];
        value.scale *= list.sign[i];
        if (v->n == 0) set_text(&value, k->r->firmware.joint[list.joint[i]].name);
        status = usi_link_element(k, b, type, i, &m);
        if (!status) status = put_elements(k, b, &m, &none, v, &value);
    }
    return status;
}

static us_status set_frames(usi_linker *k, const us_binding *b, const us_message_type *type,
                            const value_row *v, const axes *a, const usi_value *with) {
    us_status status = US_OK;
    for (int32_t i = 0; i < k->r->n_frame && !status; i++) {
        usi_member m;
        usi_value value = *with;
        value.index = i;
        if (v->n == 0) set_text(&value, v->part == 2 ? k->r->frame[i].child : k->r->frame[i].parent);
        if (v->n > 1 && !is_open(b))
            return usi_link_fail(k, b, US_ERR_VALUE, "write [] where the frame's index stands",
                                 "it has one place for all frames");
        status = v->n > 1 ? usi_link_member(k, b, type, i, &m) : usi_link_element(k, b, type, i, &m);
        if (!status) status = put_elements(k, b, &m, a, v, &value);
    }
    return status;
}

static us_status find_sensor(usi_linker *k, const us_binding *b, usi_value_source source, int32_t *out) {
    static const struct {
        const char *name, *remedy;
    } usual[] = {{"imu", "name a <sensor> of the robot"},
                 {"battery", "give the robot a <battery>"},
                 {"lidar", "name a <sensor type=\"lidar\"> of the robot"}};
    const int i = source == USI_VALUE_IMU ? 0 : source == USI_VALUE_BATTERY ? 1 : 2;
    const char *name = b->sensor ? b->sensor : usual[i].name;
    *out = usi_robot_find_sensor(k->m, k->r, usual[i].name, name);
    if (*out >= 0) return US_OK;
    return usi_link_fail(k, b, US_ERR_NAME, usual[i].remedy, "the robot has no sensor \"%.60s\"", name);
}

// ---------------------------------------------------------------- lists

// The array or sequence in which a list stands; NULL: the member is in none, or in two.
static const usi_message_field *list_of(const us_message_type *type, const usi_member *m) {
    const usi_message_field *list = NULL;
    for (int32_t i = 0; i < m->n_step; i++) {
        const usi_message_field *f = &type->fields[m->field[i]];
        if (m->item[i] == USI_MEMBER_EACH && list) return NULL;
        if (m->item[i] == USI_MEMBER_EACH) list = f;
        type = f->type;
    }
    return list;
}

// Whether the array or sequence has room for the list. Points that are too many are sent in several samples.
static us_status check_room(usi_linker *k, const us_binding *b, usi_value_source source,
                            const usi_message_field *list) {
    const usi_lidar *l = &k->m->lidar[k->lidar];
    const uint32_t n =
        source == USI_VALUE_SHOT ? (uint32_t)usi_lidar_n_point(l) : (uint32_t)(l->n_ring * l->n_return);
    if (source != USI_VALUE_POINT && list->count > 0 && list->count < n)
        return usi_link_fail(k, b, US_ERR_VALUE, "name a longer one, or a lidar that fires less",
                             "it has %u places, and the lidar %u", (unsigned)list->count, (unsigned)n);
    if (source == USI_VALUE_POINT && list->shape != USI_SHAPE_SEQUENCE)
        return usi_link_fail(k, b, US_ERR_VALUE, "name a sequence, or set shot.range",
                             "it is an array, and how many points come back differs");
    if (source == USI_VALUE_POINT && list->count > 0 && list->count < k->most_point)
        k->most_point = list->count;
    return US_OK;
}

// A value of each point, row or shot of a lidar's turn.
static us_status set_list(usi_linker *k, const us_binding *b, const us_endpoint_def *e,
                          const us_message_type *type, const value_row *v, const axes *a,
                          const usi_value *with) {
    int32_t sensor = -1;
    usi_member m;
    us_status status = find_sensor(k, b, v->source, &sensor);
    if (status) return status;
    const int32_t lidar = k->m->sensor[sensor].lidar;
    if (e->use != US_ENDPOINT_PUBLISH || e->rate == 0)
        return usi_link_fail(k, b, US_ERR_NAME, "write it in a <publish> with a rate",
                             "a lidar's turns come again and again");
    if (k->lidar >= 0 && k->lidar != lidar)
        return usi_link_fail(k, b, US_ERR_VALUE, "give each lidar a topic", "a topic has one lidar");
    k->lidar = lidar;
    status = usi_link_member(k, b, type, USI_MEMBER_EACH, &m);
    if (status) return status;
    if (!is_open(b) && usi_member_is_whole(&m)) m = usi_member_item(&m, USI_MEMBER_EACH);
    const usi_message_field *list = list_of(type, &m);
    if (!list)
        return usi_link_fail(k, b, US_ERR_VALUE, "name an array or sequence, or write one [] in the path",
                             "a list of a lidar needs as many places");
    status = check_room(k, b, v->source, list);
    usi_value value = *with;
    value.index = lidar;
    return status ? status : put_elements(k, b, &m, a, v, &value);
}

// A member of a sample that answers another: numbers and texts of that one.
static us_status set_copy(usi_linker *k, const us_binding *b, const us_message_type *type, int32_t copy) {
    usi_member m;
    us_status status = usi_link_member(k, b, type, -1, &m);
    if (!status && (usi_member_is_whole(&m) || m.leaf->kind == USI_KIND_MESSAGE))
        return usi_link_fail(k, b, US_ERR_VALUE, "copy single numbers and texts",
                             "it is more than one value");
    if (!status) status = usi_link_row(k, b, &m);
    if (!status) k->value[k->n++] = (usi_value){.source = USI_VALUE_COPY, .index = copy, .scale = 1};
    return status;
}

static us_status set_constant(usi_linker *k, const us_binding *b, const us_message_type *type) {
    usi_member m;
    usi_value value = {.source = USI_VALUE_NUMBER, .scale = 1, .offset = b->number};
    if (b->text) set_text(&value, b->text);
    us_status status = usi_link_member(k, b, type, -1, &m);
    if (!status) status = usi_link_check_kind(k, b, &m, b->text != NULL);
    if (!status && usi_member_is_whole(&m))
        return usi_link_fail(k, b, US_ERR_VALUE, "write an index", "a constant is one value");
    if (!status) status = usi_link_row(k, b, &m);
    if (!status) k->value[k->n++] = value;
    return status;
}

static us_status set_value(usi_linker *k, const us_binding *b, const us_endpoint_def *e,
                           const us_message_type *type) {
    const value_row *v = NULL;
    axes a;
    usi_member m;
    us_status status = find_value(k, b, &v);
    if (!status) status = read_axes(k, b, &a);
    if (status) return status;
    usi_value with = {.source = v->source, .scale = b->scale, .offset = b->offset};
    if (v->source == USI_VALUE_REFUSAL && e->use != US_ENDPOINT_REFUSED)
        return usi_link_fail(k, b, US_ERR_NAME, "write it in an <answer on=\"refused\">",
                             "only a refusal has a reason");
    if (strncmp(v->name, "joint.", 6) == 0) return set_joints(k, b, type, v, &with);
    if (strncmp(v->name, "frame.", 6) == 0) return set_frames(k, b, type, v, &a, &with);
    if (usi_value_is_list(v->source)) return set_list(k, b, e, type, v, &a, &with);
    if (v->source == USI_VALUE_IMU || v->source == USI_VALUE_BATTERY)
        status = find_sensor(k, b, v->source, &with.index);
    if (v->source == USI_VALUE_TEXT) set_text(&with, k->r->name);
    if (!status) status = usi_link_member(k, b, type, -1, &m);
    return status ? status : put_elements(k, b, &m, &a, v, &with);
}

// ---------------------------------------------------------------- topics

// In the order of the wire, none twice.
us_status usi_link_sort(usi_linker *k, const us_message_type *type, const us_endpoint_def *e, int32_t n,
                        bool is_take) {
    for (int32_t i = 1; i < n; i++) {
        const usi_member m = k->member[i];
        usi_value v = {0};
        usi_take t = {0};
        if (is_take)
            t = k->take[i];
        else
            v = k->value[i];
        int32_t at = i;
        for (; at > 0 && usi_member_compare(&m, &k->member[at - 1]) < 0; at--) {
            k->member[at] = k->member[at - 1];
            if (is_take)
                k->take[at] = k->take[at - 1];
            else
                k->value[at] = k->value[at - 1];
        }
        k->member[at] = m;
        if (is_take)
            k->take[at] = t;
        else
            k->value[at] = v;
    }
    for (int32_t i = 1; i < n && !is_take; i++) {
        const us_place place = place_of(k, e->line);
        if (usi_member_compare(&k->member[i - 1], &k->member[i]) == 0)
            return us_error_set(k->err, US_ERR_NAME, &place, "set each member once",
                                "%.100s: the member \"%.60s\" is set twice", e->topic,
                                k->member[i].leaf->name);
        if (usi_member_is_listed(&k->member[i - 1], &k->member[i]) &&
            k->value[i - 1].source != k->value[i].source)
            return us_error_set(k->err, US_ERR_VALUE, &place, "give each list an array or sequence",
                                "%.100s: \"%.60s\" and \"%.60s\" are two lists in one", e->topic,
                                k->member[i - 1].leaf->name, k->member[i].leaf->name);
        if (!usi_members_agree(type, &k->member[i - 1], &k->member[i]))
            return us_error_set(
                k->err, US_ERR_VALUE, &place, "set one case of a union, and no element of a list",
                "%.100s: two cases of a union are set, or an element beside a list", e->topic);
    }
    return US_OK;
}

us_status usi_link_type(usi_linker *k, const us_endpoint_def *e, const us_message_type **out,
                        const char **out_topic) {
    const us_network_def *d = k->r->network;
    const us_place place = place_of(k, e->line);
    char topic[USI_TOPIC_NAME], remedy[300] = "name a struct of its files in full: module::Name";
    *out = us_interface_find(d->interface_, e->type);
    usi_guess guess = usi_guess_start(e->type);
    for (int32_t i = 0; i < us_interface_n_type(d->interface_); i++)
        usi_guess_offer(&guess, us_message_name(us_interface_get_type(d->interface_, i)));
    if (guess.best && guess.best[0]) snprintf(remedy, sizeof remedy, "did you mean \"%.200s\"?", guess.best);
    if (!*out || (*out)->is_union)
        return us_error_set(k->err, US_ERR_NAME, &place, remedy, "the interface has no type \"%.100s\"",
                            e->type);
    usi_endpoint_topic(d, e->topic, topic);
    bool ok = true;
    *out_topic = usi_arena_text(k->arena, topic, &ok);
    return ok ? US_OK : US_ERR_MEMORY;
}

us_status usi_link_keep(usi_linker *k, int32_t n_member, const usi_member **out_member, size_t each,
                        const void *rows_, const void **out_rows) {
    usi_member *member = USI_LINK_TAKE(k->arena, n_member, usi_member);
    void *copy = usi_arena_alloc(k->arena, ((size_t)k->n + 1) * each, _Alignof(max_align_t));
    if (!member || !copy) return US_ERR_MEMORY;
    memcpy(member, k->member, (size_t)n_member * sizeof *member);
    memcpy(copy, rows_, (size_t)k->n * each);
    *out_member = member;
    *out_rows = copy;
    return US_OK;
}

// Which of the copies of a command's sample a binding means: they are counted over all answers to it.
static int32_t copy_index(const us_network_def *d, int32_t inlet, const us_binding *b) {
    int32_t n = 0;
    for (const us_binding *at = d->bindings; at < b; at++)
        n += at->copy && d->endpoints[at->endpoint].use >= US_ENDPOINT_TAKEN &&
             d->endpoints[at->endpoint].of == inlet;
    return n;
}

static uint32_t count_most(void *context, int32_t first) {
    const usi_linker *k = context;
    const usi_lidar *l = &k->m->lidar[k->lidar];
    const uint32_t n = (uint32_t)usi_lidar_n_point(l);
    if (k->value[first].source == USI_VALUE_ROW) return (uint32_t)(l->n_ring * l->n_return);
    return k->value[first].source == USI_VALUE_POINT && k->most_point < n ? k->most_point : n;
}
static void fill_nothing(void *context, int32_t first, int32_t end, uint32_t i) {
    (void)context;
    (void)first;
    (void)end;
    (void)i;
}

static us_status link_endpoint(usi_linker *k, int32_t i, usi_endpoint *out) {
    const us_network_def *d = k->r->network;
    const us_endpoint_def *e = &d->endpoints[i];
    const void *value = NULL;
    k->n = 0;
    k->lidar = -1;
    k->most_point = UINT32_MAX;
    *out = (usi_endpoint){.def = e};
    us_status status = usi_link_type(k, e, &out->type, &out->topic);
    for (int32_t row = 0; row < d->n_binding && !status; row++) {
        const us_binding *b = &d->bindings[row];
        if (b->endpoint != i || b->use != US_BINDING_SET) continue;
        if (b->copy && e->use < US_ENDPOINT_TAKEN)
            return usi_link_fail(k, b, US_ERR_NAME, "write it in an <answer>",
                                 "only answers copy from what they answer");
        status = b->copy    ? set_copy(k, b, out->type, copy_index(d, e->of, b))
                 : b->value ? set_value(k, b, e, out->type)
                            : set_constant(k, b, out->type);
    }
    if (!status) status = usi_link_sort(k, out->type, e, k->n, false);
    if (!status) status = usi_link_keep(k, k->n, &out->member, sizeof *k->value, k->value, &value);
    out->n = k->n;
    out->lidar = k->lidar;
    out->most_point = k->most_point;
    const usi_member_list most = {count_most, fill_nothing, k};
    if (!status) out->size = usi_members_write(out->type, k->member, NULL, k->n, &most, NULL, 0);
    out->value = value;
    return status;
}

// ---------------------------------------------------------------- all

static uint64_t hash_text(uint64_t hash, const char *text) {
    return text ? us_hash_bytes(hash, text, strlen(text) + 1) : us_hash_bytes(hash, "\1", 1);
}

static uint64_t hash_of(const us_network_def *d) {
    uint64_t h = 0;
    for (int32_t i = 0; i < d->n_endpoint; i++) {
        const us_endpoint_def *e = &d->endpoints[i];
        const double numbers[] = {(double)e->use, e->rate, e->is_reliable, e->is_latched, e->depth, e->of};
        h = us_hash_bytes(hash_text(hash_text(h, e->topic), e->type), numbers, sizeof numbers);
        if (e->partition) h = hash_text(h, e->partition);
    }
    for (int32_t i = 0; i < d->n_command; i++)
        h = hash_text(us_hash_bytes(h, &d->commands[i].endpoint, sizeof(int32_t)), d->commands[i].action);
    for (int32_t i = 0; i < d->n_binding; i++) {
        const us_binding *b = &d->bindings[i];
        const char *const texts[] = {b->member, b->value,  b->copy, b->text,
                                     b->joints, b->sensor, b->axes, b->order};
        const double numbers[] = {(double)b->use, b->endpoint, b->command, b->number, b->scale, b->offset};
        h = us_hash_bytes(h, numbers, sizeof numbers);
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            h = hash_text(h, texts[t]);
    }
    return h;
}

static us_status link_all(usi_linker *k, usi_interface_model *out) {
    const us_network_def *d = k->r->network;
    usi_endpoint *endpoint = USI_LINK_TAKE(k->arena, d->n_endpoint, usi_endpoint);
    usi_inlet *inlet = USI_LINK_TAKE(k->arena, d->n_endpoint, usi_inlet);
    if (!endpoint || !inlet) return US_ERR_MEMORY;
    out->endpoint = endpoint;
    out->inlet = inlet;
    out->hash = hash_of(d);
    us_status status = US_OK;
    int32_t inlet_of[USI_ENDPOINT_LIMIT];
    for (int32_t i = 0; i < d->n_endpoint && !status; i++) {
        const us_endpoint_use use = d->endpoints[i].use;
        inlet_of[i] = -1;
        if (use == US_ENDPOINT_SUBSCRIBE) {
            inlet_of[i] = out->n_inlet;
            status = usi_link_inlet(k, i, &inlet[out->n_inlet++]);
        } else {
            out->has_endings = out->has_endings || use >= US_ENDPOINT_DONE;
            if (use >= US_ENDPOINT_TAKEN)
                inlet[inlet_of[d->endpoints[i].of]].answer[use - US_ENDPOINT_TAKEN] = out->n_endpoint;
            status = link_endpoint(k, i, &endpoint[out->n_endpoint++]);
        }
        if (k->n > out->n_value) out->n_value = k->n;
    }
    return status;
}

us_status usi_build_interface(usi_build *b, const us_model *m, usi_arena *arena, usi_robot_model *r) {
    if (r->network->n_endpoint == 0) return US_OK;
    usi_linker *k = usi_arena_alloc(&b->arena, sizeof *k, _Alignof(usi_linker));
    if (!k) return US_ERR_MEMORY;
    k->m = m;
    k->arena = arena;
    k->r = r;
    k->err = b->err;
    us_status status = link_all(k, &r->interface_);
    if (status == US_ERR_MEMORY)
        us_error_set(b->err, status, NULL, "free memory", "no memory left for the interface");
    return status;
}
