// Topics of a robot, and who commands it: <topic> and <source> inside <network>.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/publication.h"
#include "spec/scene.h"
#include "spec/spec.h"

// A rate of messages: 0 or more, and nothing is sent twice in one step.
us_status usi_scene_rate(usi_reader *r, const xmlNode *node, const char *name, double *out) {
    usi_look look = usi_look_at(node);
    us_status status = usi_look_positive(r, &look, name, USI_FREQUENCY, false, out);
    double step = us_spec_view_world(r->spec)->step;
    // A rate of exactly one per step may come out a rounding above it.
    if (status || !usi_xml_attr(node, name) || *out * step <= 1 + 1e-9) return status;
    return usi_warn(r, node, "lower the rate, or the step of the <world>",
                    "%s: %g Hz is more than one sample in each step of %g s: one is sent", name, *out, step);
}

// ---- <topic> ----

static us_status fail_topic(usi_reader *r, const xmlNode *node, const us_network_def *d, const char *name) {
    usi_guess guess = usi_guess_start(name);
    char own[USI_TOPIC_NAME], remedy[400];
    for (int32_t i = 0; us_topic_source_view(i); i++) {
        us_topic_source_topic(i, "", own, sizeof own);
        if (i != USI_SOURCE_TRUTH) usi_guess_offer(&guess, own + 1);
        if (guess.best == own + 1) guess.best = usi_reader_text(r, "%s", own + 1);
    }
    for (int32_t i = 0; i < d->n_sensor; i++) {
        const char *topic = usi_reader_text(r, "%s/%s", d->sensors[i].name, usi_sensor_topic(&d->sensors[i]));
        if (topic) usi_guess_offer(&guess, topic);
    }
    if (guess.best) {
        snprintf(remedy, sizeof remedy, "did you mean \"%.100s\"?", guess.best);
    } else {
        snprintf(remedy, sizeof remedy,
                 "docs/network.md lists the topics; for a name of your own, name its source: "
                 "source=\"odom\" name=\"%.100s\"",
                 name);
    }
    return usi_fail(r, US_ERR_NAME, node, remedy, "there is no topic \"%.60s\"", name);
}

// <topic source="mast_imu" name="mast/imu" rate="50 Hz"/>. Without a source it is that whose own topic has
// the name; with one, the name is any.
static us_status read_topic(usi_reader *r, const xmlNode *node, us_network_def *d, us_publication_def *t) {
    const char *source = usi_xml_attr(node, "source"), *name = usi_xml_attr(node, "name");
    us_error why = {0};
    if (!source && !name)
        return usi_fail(r, US_ERR_SCHEMA, node, "write name=\"odom\", or source=\"odom\" and any name",
                        "neither source nor name is given");
    *t = (us_publication_def){.source = source, .name = source ? name : NULL};
    if (!source) {
        // The topics of sensors are theirs by name: "mast_imu/data".
        const char *slash = strrchr(name, '/');
        int32_t own = usi_find_source_by_topic(name);
        if (own >= 0) {
            t->source = us_topic_source_view(own)->name;
        } else if (slash) {
            t->source = usi_reader_text(r, "%.*s", (int)(slash - name), name);
            const us_sensor_def *sensor = t->source ? usi_find_sensor_def(d, t->source) : NULL;
            // Pictures of depths are on "eye/depth/image_raw", and "eye/camera_info" is its own source.
            const bool is_depth = t->source && usi_find_source(d, t->source) == USI_SOURCE_DEPTH &&
                                  strcmp(slash + 1, "image_raw") == 0;
            if (!is_depth && (!sensor || strcmp(slash + 1, usi_sensor_topic(sensor)) != 0)) t->source = NULL;
            if (!t->source && usi_find_source(d, name) == USI_SOURCE_CAMERA_INFO) t->source = name;
        }
        if (!t->source || usi_find_source(d, t->source) < 0) return fail_topic(r, node, d, name);
    }
    us_status status = usi_check_publication(d, d->n_topic, &why);
    if (status) return usi_fail(r, status, node, why.remedy, "%.300s", why.message);
    t->rate = usi_publication_rate(d, t->source);
    status = usi_scene_rate(r, node, "rate", &t->rate);
    const us_sensor_def *sensor = usi_find_source_sensor(d, t->source);
    if (status || !sensor || sensor->rate == 0 || t->rate <= sensor->rate * (1 + 1e-9)) return status;
    status = usi_warn(r, node, "lower the rate, or raise the sensor's",
                      "rate: the sensor samples at %g Hz, and no sample is sent twice", sensor->rate);
    t->rate = sensor->rate;
    return status;
}

// ---- <source> ----

us_status usi_scene_command_sources(usi_reader *r, const xmlNode *network, us_network_def *d) {
    us_command_source *sources = usi_reader_alloc(r, USI_COMMAND_SOURCES * sizeof *sources);
    if (!sources) return usi_fail_memory(r);
    d->sources = sources;
    us_status status = US_OK;
    for (const xmlNode *n = usi_xml_child(network, "source"); n && !status; n = usi_xml_next(n, "source")) {
        if (d->n_source >= USI_COMMAND_SOURCES)
            return usi_fail(r, US_ERR_LIMIT, n, "write fewer", "a robot has at most %d sources of commands",
                            USI_COMMAND_SOURCES);
        usi_look look = usi_look_at(n);
        const char *ownership = usi_xml_attr(n, "ownership");
        us_command_source c = {.name = usi_xml_attr(n, "name"),
                               .topic = usi_xml_attr(n, "topic"),
                               .hold = 0.5,
                               .is_exclusive = ownership && strcmp(ownership, "exclusive") == 0};
        status = usi_look_positive(r, &look, "hold", USI_TIME, false, &c.hold);
        if (!status) status = usi_xml_int(r, n, "priority", false, &c.priority);
        if (status) return status;
        const char *why = NULL;
        sources[d->n_source] = c;
        status = usi_check_command_source(d, d->n_source, &why);
        if (status)
            return usi_fail(
                r, status, n,
                "write <source name=\"operator\" topic=\"operator/cmd_vel\" priority=\"10\"/>, or "
                "the name of a way by which commands come: network, motor, page, foxglove, world",
                "source \"%.40s\": %s", c.name, why);
        d->n_source++;
    }
    return status;
}

// ---- <topic> ----

us_status usi_scene_topics(usi_reader *r, const xmlNode *network, us_network_def *d) {
    int32_t n = 0;
    for (const xmlNode *t = usi_xml_child(network, "topic"); t; t = usi_xml_next(t, "topic")) {
        if (++n > USI_TOPIC_LIMIT)
            return usi_fail(r, US_ERR_LIMIT, t, "write fewer", "a robot has at most %d topics",
                            USI_TOPIC_LIMIT);
    }
    us_publication_def *topics = usi_reader_alloc(r, ((size_t)n + 1) * sizeof *topics);
    if (!topics) return usi_fail_memory(r);
    d->topics = topics;
    us_status status = US_OK;
    for (const xmlNode *t = usi_xml_child(network, "topic"); t && !status; t = usi_xml_next(t, "topic")) {
        status = read_topic(r, t, d, &topics[d->n_topic]);
        if (!status) d->n_topic++;
    }
    return status;
}
