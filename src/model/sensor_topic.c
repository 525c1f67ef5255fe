// Topics of sensors: the type of their samples, and which member is which reading.
#include "model/compile.h"
#include "model/robots.h"
#include "spec/sensor_kind.h"
#include "understudy/wire.h"

enum { N_HEAD = 3 };
static const struct {
    const char *path;
    usi_value_source source;
} head[N_HEAD] = {{"header.stamp.sec", USI_VALUE_SECONDS},
                  {"header.stamp.nanosec", USI_VALUE_NANOSECONDS},
                  {"header.frame_id", USI_VALUE_TEXT}};

static usi_value text_value(const char *text) {
    return (usi_value){.source = USI_VALUE_TEXT, .text = text, .length = (uint32_t)strlen(text)};
}

static usi_value value_of(const us_sensor_kind *k, int32_t sensor, const us_sensor_member *m) {
    if (m->text) return text_value(m->text);
    usi_value v = {.source = USI_VALUE_NUMBER,
                   .index = sensor,
                   .scale = m->scale == 0 ? 1 : m->scale,
                   .offset = m->offset,
                   .is_squared = m->is_squared};
    if (!m->value) return v;
    const int32_t reading = usi_find_reading(k, m->value);
    v.source = reading >= 0 ? USI_VALUE_READING : USI_VALUE_PARAMETER;
    v.part = reading >= 0 ? reading : usi_find_parameter(k, m->value);
    return v;
}

// In the order of the wire.
static void insert(usi_member *member, usi_value *value, int32_t n, usi_member m, usi_value v) {
    int32_t at = n;
    for (; at > 0 && usi_member_compare(&m, &member[at - 1]) < 0; at--) {
        member[at] = member[at - 1];
        value[at] = value[at - 1];
    }
    member[at] = m;
    value[at] = v;
}

us_status usi_build_sensor_topic(usi_build *b, const us_model *m, usi_arena *arena, usi_topic *topic) {
    const usi_sensor *s = topic->sensor >= 0 ? &m->sensor[topic->sensor] : NULL;
    const us_sensor_kind *k = s ? s->kind : NULL;
    topic->type = us_message_find(us_topic_source_view((int32_t)topic->source)->type);
    if (topic->source != USI_SOURCE_READINGS || !k || !k->message) return US_OK;
    const size_t cap = (size_t)k->n_member + N_HEAD;
    usi_member *member = usi_arena_alloc(arena, cap * sizeof *member, _Alignof(usi_member));
    usi_value *value = usi_arena_alloc(arena, cap * sizeof *value, _Alignof(usi_value));
    usi_endpoint *e = usi_arena_alloc(arena, sizeof *e, _Alignof(usi_endpoint));
    if (!member || !value || !e) return US_ERR_MEMORY;
    topic->type = us_message_find(k->message);
    *e = (usi_endpoint){
        .topic = topic->name, .type = topic->type, .member = member, .value = value, .lidar = -1};
    usi_member found;
    for (int32_t i = 0; i < N_HEAD; i++) {
        // Messages without a header have none.
        if (usi_member_find(e->type, head[i].path, -1, NULL, &found, NULL)) continue;
        const usi_value v = head[i].source == USI_VALUE_TEXT
                                ? text_value(s->frame ? s->frame : "")
                                : (usi_value){.source = head[i].source, .scale = 1};
        insert(member, value, e->n++, found, v);
    }
    us_status status = US_OK;
    for (int32_t i = 0; i < k->n_member && !status; i++) {
        status = usi_member_find(e->type, k->members[i].path, -1, NULL, &found, b->err);
        if (!status) insert(member, value, e->n++, found, value_of(k, topic->sensor, &k->members[i]));
    }
    topic->message = e;
    return status;
}
