// Texts of the server to the page, in JSON.
#include <stdio.h>
#include <string.h>

#include "proxy/tap.h"
#include "view/view__page.h"
#include "world/pair_field.h"

static usi_json begin(usi_bytes *out, const char *op) {
    out->length = 0;
    out->status = US_OK;
    usi_json json;
    usi_json_init(&json, out);
    usi_json_begin(&json, NULL, '{');
    usi_json_text(&json, "op", op);
    return json;
}

static bool end(usi_json *json) {
    usi_json_end(json, '}');
    usi_json_fini(json);
    return json->out->status == US_OK;
}

bool usi_text_hello(usi_bytes *out, const char *scene, uint32_t revision, usi_web_role role) {
    usi_json j = begin(out, "hello");
    usi_json_text(&j, "version", us_version());
    usi_json_text(&j, "scene", scene);
    usi_json_integer(&j, "epoch", revision);
    usi_json_bool(&j, "control", role > USI_ROLE_LOOK);
    usi_json_text(&j, "role", usi_role_name(role));
    usi_json_text(
        &j, "reason",
        role > USI_ROLE_LOOK
            ? ""
            : "control needs the token: open the address that `understudy run` printed, with its ?token=");
    return end(&j);
}

bool usi_text_revision(usi_bytes *out, uint32_t revision) {
    usi_json j = begin(out, "epoch");
    usi_json_integer(&j, "epoch", revision);
    return end(&j);
}

bool usi_text_reply(usi_bytes *out, int64_t id, bool is_ok, const char *text) {
    usi_json j = begin(out, "reply");
    usi_json_integer(&j, "id", id);
    usi_json_bool(&j, "ok", is_ok);
    usi_json_text(&j, "text", text);
    return end(&j);
}

bool usi_text_error(usi_bytes *out, const char *text) {
    usi_json j = begin(out, "error");
    usi_json_text(&j, "text", text);
    return end(&j);
}

static void put_faults(usi_json *j, const usi_robot_status *r) {
    char what[USI_FAULT_TEXT], said[USI_FAULT_TEXT];
    usi_json_begin(j, "faults", '[');
    for (const char *s = r->faults; *s; s += strcspn(s, "\n") + 1) {
        int tab = (int)strcspn(s, "\t");
        snprintf(what, sizeof what, "%.*s", tab, s);
        snprintf(said, sizeof said, "%.*s", (int)strcspn(s, "\n") - tab - 1, s + tab + 1);
        usi_json_begin(j, NULL, '{');
        usi_json_text(j, "what", what);
        usi_json_text(j, "text", said);
        usi_json_end(j, '}');
    }
    usi_json_end(j, ']');
    usi_json_begin(j, "scripts", '[');
    for (int32_t i = 0; i < r->n_script; i++)
        usi_json_integer(j, NULL, r->script[i]);
    usi_json_end(j, ']');
}

static void put_sunk(usi_json *j, const usi_page_status *s) {
    usi_json_begin(j, "sunk", '[');
    for (int32_t i = 0; i < s->n_soil_contact; i++) {
        const us_soil_contact *soil_contact = &s->soil_contact[i];
        usi_json_begin(j, NULL, '{');
        usi_json_integer(j, "link", soil_contact->body.i);
        usi_json_integer(
            j, "soil",
            soil_contact->soil.i -
                1);  // the world lists what the scene names: the default material, 0, is not among it
        usi_json_bool(j, "wheel", soil_contact->is_wheel);
        usi_json_bool(j, "buried", soil_contact->is_buried);
        usi_json_number(j, "sinkage", soil_contact->sinkage);
        usi_json_number(j, "slip", soil_contact->slip);
        usi_json_number(j, "slip_angle", soil_contact->slip_angle);
        usi_json_vector(j, "force", soil_contact->force);
        usi_json_number(j, "moment", soil_contact->moment);
        usi_json_end(j, '}');
    }
    usi_json_end(j, ']');
}

bool usi_text_status(usi_bytes *out, const us_view *view, const usi_page_status *s) {
    usi_json j = begin(out, "status");
    usi_json_number(&j, "time", s->time);
    usi_json_integer(&j, "tick", s->tick);
    usi_json_number(&j, "rate", s->request.rate);
    usi_json_number(&j, "actual", s->pace.actual);
    usi_json_bool(&j, "paused", s->request.is_paused);
    usi_json_number(&j, "step_us", s->pace.step_us);
    usi_json_integer(&j, "missed", s->pace.n_missed);
    usi_json_number(&j, "worst_late_ms", 1000 * s->pace.worst_late);
    usi_json_integer(&j, "dropped", s->pace.n_dropped);
    usi_json_integer(&j, "clients", view->n_session);
    if (s->is_recording) {
        usi_json_begin(&j, "recording", '{');
        usi_json_text(&j, "file", s->path);
        usi_json_integer(&j, "messages", s->n_message);
        usi_json_integer(&j, "bytes", s->n_byte);
        usi_json_end(&j, '}');
    } else {
        usi_json_null(&j, "recording");
    }
    usi_json_begin(&j, "snapshots", '[');
    for (int32_t i = 0; i < s->n_snapshot; i++) {
        usi_json_begin(&j, NULL, '{');
        usi_json_text(&j, "name", s->snapshot[i].name);
        usi_json_number(&j, "time", s->snapshot[i].time);
        usi_json_end(&j, '}');
    }
    usi_json_end(&j, ']');
    usi_json_begin(&j, "robots", '[');
    for (int32_t i = 0; i < s->n_robot; i++) {
        usi_json_begin(&j, NULL, '{');
        usi_json_text(&j, "name", view->robots[i].name);
        usi_json_integer(&j, "commands", s->robot[i].n_command);
        usi_json_integer(&j, "refused", s->robot[i].n_refused);
        usi_json_text(&j, "refusal", s->robot[i].refusal);
        put_faults(&j, &s->robot[i]);
        usi_json_end(&j, '}');
    }
    usi_json_end(&j, ']');
    usi_json_begin(&j, "authority", '[');
    for (int32_t i = 0; i < s->n_authority; i++)
        usi_json_text(&j, NULL, s->authority[i]);
    usi_json_end(&j, ']');
    put_sunk(&j, s);
    usi_json_number(&j, "energy", s->energy);
    return end(&j);
}

bool usi_text_pairs(usi_bytes *out, const usi_view_frame *frame) {
    usi_json j = begin(out, "pairs");
    usi_json_begin(&j, "pairs", '[');
    const us_model *model = frame->revision->model;
    for (int32_t i = 0; i < frame->pairs.n; i++) {
        const usi_view_pair *row = &frame->pairs.row[i];
        us_pair_values values = row->values;
        usi_json_begin(&j, NULL, '{');
        usi_json_text(&j, "a", us_model_material_name(model, (us_material){row->a}));
        usi_json_text(&j, "b", us_model_material_name(model, (us_material){row->b}));
        usi_json_begin(&j, "values", '{');
        for (int32_t k = 0; usi_pair_key_name(k); k++)
            usi_json_number(&j, usi_pair_key_name(k), *usi_pair_field(&values, k));
        usi_json_end(&j, '}');
        usi_json_end(&j, '}');
    }
    usi_json_end(&j, ']');
    usi_json_begin(&j, "soils", '[');
    for (int32_t i = 0; i < frame->pairs.n_soil; i++) {
        const us_soil *soil = &frame->pairs.soil[i].soil;
        usi_json_begin(&j, NULL, '{');
        usi_json_text(&j, "name",
                      us_model_material_name(model, (us_material){frame->pairs.soil[i].material}));
        usi_json_begin(&j, "values", '{');
#define PUT_NUMBER(field, unit, least, greatest, what) usi_json_number(&j, #field, soil->field);
        US_SOIL_LIST(PUT_NUMBER)
#undef PUT_NUMBER
        usi_json_end(&j, '}');
        usi_json_end(&j, '}');
    }
    usi_json_end(&j, ']');
    usi_json_begin(&j, "regions", '[');
    for (int32_t i = 0; i < frame->pairs.n_region; i++) {
        usi_json_begin(&j, NULL, '{');
        usi_json_text(&j, "name", us_spec_view_region(frame->revision->spec, i)->name);
        usi_json_text(&j, "material", us_model_material_name(model, (us_material){frame->pairs.region[i]}));
        usi_json_end(&j, '}');
    }
    usi_json_end(&j, ']');
    return end(&j);
}

bool usi_text_deformables(usi_bytes *out, uint32_t revision, int32_t n, const us_deformable_info *patches) {
    usi_json j = begin(out, "beds");
    usi_json_integer(&j, "epoch", revision);
    usi_json_begin(&j, "beds", '[');
    for (int32_t i = 0; i < n; i++) {
        const us_deformable_info *patch = &patches[i];
        const us_quat q = patch->X_WB.q;
        char path[64];
        snprintf(path, sizeof path, "/api/asset/%u/bed/%d", (unsigned)revision, (int)i);
        usi_json_begin(&j, NULL, '{');
        usi_json_integer(&j, "shape", patch->shape);
        usi_json_integer(&j, "nx", patch->n_x);
        usi_json_integer(&j, "ny", patch->n_y);
        usi_json_number(&j, "spacing", patch->spacing);
        usi_json_vector(&j, "p", patch->X_WB.p);
        usi_json_numbers(&j, "q", (const double[4]){q.w, q.x, q.y, q.z}, 4);
        usi_json_text(&j, "tiles", path);
        usi_json_end(&j, '}');
    }
    usi_json_end(&j, ']');
    return end(&j);
}

bool usi_text_log(usi_bytes *out, us_view *view, uint64_t from, uint64_t *out_to) {
    static const char *const levels[] = {"info", "warning", "error"};
    usi_json j = begin(out, "log");
    usi_json_begin(&j, "lines", '[');
    pthread_mutex_lock(&view->lock);
    uint64_t n = view->n_line;
    if (from + USI_PAGE_LOG < n) from = n - USI_PAGE_LOG;
    for (uint64_t i = from; i < n; i++) {
        const usi_log_line *line = &view->line[i % USI_PAGE_LOG];
        usi_json_begin(&j, NULL, '{');
        usi_json_text(&j, "level", levels[line->level]);
        usi_json_number(&j, "time", line->time);
        usi_json_text(&j, "text", line->text);
        usi_json_end(&j, '}');
    }
    pthread_mutex_unlock(&view->lock);
    usi_json_end(&j, ']');
    *out_to = n;
    return end(&j);
}

bool usi_text_topics(usi_bytes *out, us_view *view, double elapsed) {
    const us_proxy *proxy = us_world_get_proxy(view->world);
    usi_json j = begin(out, "topics");
    usi_json_begin(&j, "topics", '[');
    for (int32_t i = 0; i < view->n_topic; i++) {
        usi_channel_info channel = usi_proxy_get_channel(proxy, i);
        usi_topic_count *count = &view->topics[i];
        // The number goes back when the world does.
        int64_t n_new = channel.n_message > count->n_message ? channel.n_message - count->n_message : 0;
        count->hz = elapsed > 0 ? (double)n_new / elapsed : 0;
        count->n_message = channel.n_message;
        if (!channel.topic || channel.is_request) continue;
        usi_json_begin(&j, NULL, '{');
        usi_json_text(&j, "name", channel.topic);
        usi_json_text(&j, "type", us_message_name(channel.type));
        usi_json_bool(&j, "out", channel.is_out);
        usi_json_number(&j, "hz", count->hz);
        usi_json_integer(&j, "count", channel.n_message);
        usi_json_end(&j, '}');
    }
    usi_json_end(&j, ']');
    return end(&j);
}

bool usi_text_watching(usi_bytes *out, const usi_session *session, const usi_view_frame *frame) {
    usi_json j = begin(out, "watching");
    usi_json_integer(&j, "generation", session->generation);
    usi_json_begin(&j, "unknown", '[');
    for (int32_t i = 0; i < session->n_slot; i++) {
        if (!frame->is_known[session->slot[i]])
            usi_json_text(&j, NULL, session->view->table.slot[session->slot[i]].name);
    }
    usi_json_end(&j, ']');
    return end(&j);
}
