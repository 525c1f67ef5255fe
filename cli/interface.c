// How robots appear on the network, for `check` and `info`: as text and as JSON.
#include <string.h>

#include "cli.h"
#include "understudy/network.h"

static const char *drive_name(const us_spec *spec, int32_t drive) {
    const us_drive_def *d = us_spec_view_drive(spec, drive);
    return d && d->name ? d->name : "?";
}

static bool is_perfect(const us_link_model *l) {
    return l->delay == 0 && l->jitter == 0 && l->loss == 0 && l->bandwidth == 0 && l->n_outage == 0;
}

static void print_sources(const us_network_def *d) {
    for (int32_t i = 0; i < d->n_source; i++) {
        const us_command_source *c = &d->sources[i];
        printf("    commands of %s%s%s: priority %d, held for %.6g s%s\n", c->name, c->topic ? " on " : "",
               c->topic ? c->topic : "", (int)c->priority, c->hold,
               c->is_exclusive ? ", exclusive ownership" : "");
    }
}

static void print_link(const char *name, const us_link_model *l) {
    if (is_perfect(l)) return;
    printf("    %s: delay %.6g s, jitter %.6g s, loss %.6g", name, l->delay, l->jitter, l->loss);
    if (l->bandwidth > 0) printf(", %.6g bytes/s", l->bandwidth);
    for (int32_t i = 0; i < l->n_outage; i++)
        printf("%s%.6g to %.6g s", i == 0 ? ", none from " : " and ", l->outages[2 * i],
               l->outages[2 * i + 1]);
    putchar('\n');
}

static void print_timing(const us_timing *t) {
    if (!t->is_wall && t->offset == 0 && t->drift == 0 && t->delay == 0 && t->jitter == 0) return;
    printf("    stamps by %s time, ahead by %.6g s, gaining %.6g s/s; leaves %.6g to %.6g s later\n",
           t->is_wall ? "wall" : "simulated", t->offset, t->drift, t->delay, t->delay + t->jitter);
}

static bool is_sent_once(const us_publication_def *t) {
    for (int32_t i = 0; us_topic_source_view(i); i++) {
        if (strcmp(us_topic_source_view(i)->name, t->source) == 0) return us_topic_source_view(i)->is_once;
    }
    return false;
}

static void print_topics(const us_network_def *d) {
    printf("    publishes");
    const char *comma = "";
    for (int32_t i = 0; i < d->n_topic; i++) {
        const us_publication_def *t = &d->topics[i];
        if (t->rate == 0 || (strcmp(t->source, "battery") == 0 && d->battery_capacity == 0)) continue;
        printf("%s %s", comma, t->name);
        if (!is_sent_once(t)) printf(" %.6g Hz", t->rate);
        comma = ",";
    }
    printf("%s\n", comma[0] ? "" : " nothing");
}

static void print_sensors(const us_spec *spec, const us_network_def *d) {
    for (int32_t i = 0; i < d->n_sensor; i++) {
        const us_sensor_def *k = &d->sensors[i];
        printf("    sensor %s (%s%s%s) on %s", k->name, k->kind->name, k->preset ? ", " : "",
               k->preset ? k->preset : "", us_spec_view_link(spec, k->link)->name);
        if (k->rate > 0) printf(", %.6g Hz", k->rate);
        if (k->latency > 0) printf(", %.6g s late", k->latency);
        for (int32_t s = 0; s < k->n_setting; s++)
            printf(", %s %.6g", k->settings[s].parameter, k->settings[s].value);
        putchar('\n');
    }
}

static void print_wheels(const us_network_def *d) {
    if (d->locomotion == US_LOCOMOTION_NONE) return;
    bool is_walker = d->n_leg > 0;
    printf("    moves on %d %s, %s", (int)(is_walker ? d->n_leg : d->n_wheel), is_walker ? "legs" : "wheels",
           us_locomotion_name(d->locomotion));
    if (d->max_speed > 0) printf(", at most %.6g m/s", d->max_speed);
    if (d->max_turn > 0) printf(", at most %.6g rad/s", d->max_turn);
    if (d->max_acceleration > 0) printf(", accelerates with %.6g m/s^2", d->max_acceleration);
    putchar('\n');
}

// "fault motor:front_left_drive=dead, at 12.5 s, when odom.x > 3, for 5 s"
static void print_fault(const us_fault_def *f) {
    printf("    fault");
    if (f->name) printf(" \"%s\"", f->name);
    printf(" %s", f->what);
    if (f->after) printf(", after \"%s\"", f->after);
    if (f->at > 0 || (!f->when && !f->after))
        printf(", %s %.6g s", f->after ? "later by" : f->when ? "from" : "at", f->at);
    if (f->when) printf(", when %s", f->when);
    if (f->duration > 0) printf(", for %.6g s", f->duration);
    putchar('\n');
}

void cli_print_interfaces(const us_spec *spec, const char *before) {
    bool has_title = false;
    for (int32_t g = 0; g < us_spec_get_counts(spec).n_group; g++) {
        const us_network_def *d = us_spec_view_network(spec, g);
        if (!d) continue;
        if (!has_title) printf("%snetwork, clock at %.6g Hz\n", before, us_spec_get_clock_rate(spec));
        has_title = true;
        printf("  %s", us_spec_view_group(spec, g)->name);
        if (d->is_off) {
            printf(" is off\n");
            continue;
        }
        printf(" as /%s, node %s, frames %s..., base %s, ", d->namespace_, d->node, d->frame_prefix,
               d->base_frame);
        if (d->timeout > 0) {
            printf("stops after %.6g s without a command\n", d->timeout);
        } else {
            printf("keeps its last command\n");
        }
        print_topics(d);
        print_sensors(spec, d);
        print_sources(d);
        if (d->has_services) printf("    answers requests to its services\n");
        print_link("uplink", &d->uplink);
        print_link("downlink", &d->downlink);
        print_timing(&d->timing);
        print_wheels(d);
        if (d->battery_capacity > 0)
            printf("    battery %.6g Wh, %.6g V, %.6g W idle\n", d->battery_capacity / 3600,
                   d->battery_voltage, d->battery_idle);
        if (d->motor_port > 0) printf("    motors on port %d:", (int)d->motor_port);
        for (int32_t i = 0; i < d->n_motor; i++)
            printf("%s %s %s", i > 0 ? "," : "", d->motors[i].name, drive_name(spec, d->motors[i].drive));
        if (d->motor_port > 0) putchar('\n');
        for (int32_t i = 0; i < d->n_fault; i++)
            print_fault(&d->faults[i]);
    }
}

static void json_link(cli_json *json, const char *key, const us_link_model *l) {
    cli_json_begin_short(json, key, '{');
    cli_json_number(json, "delay", l->delay);
    cli_json_number(json, "jitter", l->jitter);
    cli_json_number(json, "loss", l->loss);
    cli_json_number(json, "bandwidth", l->bandwidth);
    cli_json_numbers(json, "outages", l->outages, 2 * (size_t)l->n_outage);
    cli_json_end(json);
}

static void json_timing(cli_json *json, const us_timing *t) {
    cli_json_begin_short(json, "timing", '{');
    cli_json_text(json, "clock", t->is_wall ? "wall" : "simulated");
    cli_json_number(json, "offset", t->offset);
    cli_json_number(json, "drift", t->drift);
    cli_json_number(json, "delay", t->delay);
    cli_json_number(json, "jitter", t->jitter);
    cli_json_end(json);
}

static void json_wheels(cli_json *json, const us_spec *spec, const us_network_def *d) {
    cli_json_begin(json, "wheels", '[');
    for (int32_t i = 0; i < d->n_wheel; i++) {
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "drive", drive_name(spec, d->wheels[i].drive));
        cli_json_text(json, "steer", d->wheels[i].steer < 0 ? NULL : drive_name(spec, d->wheels[i].steer));
        cli_json_number(json, "radius", d->wheels[i].radius);
        cli_json_end(json);
    }
    cli_json_end(json);
    if (d->n_leg > 0) {
        cli_json_begin(json, "legs", '[');
        for (int32_t i = 0; i < d->n_leg; i++) {
            cli_json_begin_short(json, NULL, '{');
            cli_json_text(json, "coxa", drive_name(spec, d->legs[i].coxa));
            cli_json_text(json, "femur", drive_name(spec, d->legs[i].femur));
            cli_json_text(json, "tibia", drive_name(spec, d->legs[i].tibia));
            cli_json_end(json);
        }
        cli_json_end(json);
    }
    cli_json_begin(json, "motors", '[');
    for (int32_t i = 0; i < d->n_motor; i++) {
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", d->motors[i].name);
        cli_json_text(json, "drive", drive_name(spec, d->motors[i].drive));
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_fault(cli_json *json, const us_fault_def *f) {
    cli_json_begin_short(json, NULL, '{');
    cli_json_text(json, "what", f->what);
    cli_json_number(json, "at", f->at);
    cli_json_text(json, "when", f->when);
    cli_json_text(json, "name", f->name);
    cli_json_text(json, "after", f->after);
    cli_json_number(json, "for", f->duration);
    cli_json_integer(json, "line", f->line);
    cli_json_end(json);
}

static void json_topics(cli_json *json, const us_network_def *d) {
    cli_json_begin(json, "topics", '[');
    for (int32_t i = 0; i < d->n_topic; i++) {
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", d->topics[i].name);
        cli_json_text(json, "source", d->topics[i].source);
        cli_json_number(json, "rate", d->topics[i].rate);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_sensors(cli_json *json, const us_spec *spec, const us_network_def *d) {
    cli_json_begin(json, "sensors", '[');
    for (int32_t i = 0; i < d->n_sensor; i++) {
        const us_sensor_def *k = &d->sensors[i];
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", k->name);
        cli_json_text(json, "type", k->kind->name);
        if (k->preset) cli_json_text(json, "preset", k->preset);
        cli_json_text(json, "link", us_spec_view_link(spec, k->link)->name);
        cli_json_number(json, "rate", k->rate);
        cli_json_number(json, "latency", k->latency);
        for (int32_t s = 0; s < k->n_setting; s++)
            cli_json_number(json, k->settings[s].parameter, k->settings[s].value);
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_sources(cli_json *json, const us_network_def *d) {
    cli_json_begin(json, "sources", '[');
    for (int32_t i = 0; i < d->n_source; i++) {
        const us_command_source *c = &d->sources[i];
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "name", c->name);
        if (c->topic) cli_json_text(json, "topic", c->topic);
        cli_json_number(json, "priority", c->priority);
        cli_json_number(json, "hold", c->hold);
        cli_json_bool(json, "exclusive", c->is_exclusive);
        cli_json_end(json);
    }
    cli_json_end(json);
}

void cli_json_interfaces(cli_json *json, const us_spec *spec) {
    cli_json_number(json, "clock_rate", us_spec_get_clock_rate(spec));
    cli_json_begin(json, "network", '[');
    for (int32_t g = 0; g < us_spec_get_counts(spec).n_group; g++) {
        const us_network_def *d = us_spec_view_network(spec, g);
        if (!d) continue;
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "robot", us_spec_view_group(spec, g)->name);
        cli_json_bool(json, "enabled", !d->is_off);
        cli_json_text(json, "namespace", d->namespace_);
        cli_json_text(json, "frame_prefix", d->frame_prefix);
        cli_json_text(json, "node", d->node);
        cli_json_text(json, "base", d->base_frame);
        cli_json_number(json, "timeout", d->timeout);
        cli_json_bool(json, "services", d->has_services);
        json_topics(json, d);
        json_sensors(json, spec, d);
        json_sources(json, d);
        json_link(json, "uplink", &d->uplink);
        json_link(json, "downlink", &d->downlink);
        json_timing(json, &d->timing);
        cli_json_text(json, "locomotion", us_locomotion_name(d->locomotion));
        cli_json_number(json, "max_speed", d->max_speed);
        cli_json_number(json, "max_turn", d->max_turn);
        cli_json_number(json, "max_acceleration", d->max_acceleration);
        cli_json_number(json, "track_scale", d->track_scale);
        cli_json_number(json, "battery_capacity", d->battery_capacity);
        cli_json_number(json, "battery_idle", d->battery_idle);
        cli_json_number(json, "battery_voltage", d->battery_voltage);
        cli_json_integer(json, "motor_port", d->motor_port);
        cli_json_number(json, "motor_rate", d->motor_rate);
        json_wheels(json, spec, d);
        cli_json_begin(json, "faults", '[');
        for (int32_t i = 0; i < d->n_fault; i++)
            json_fault(json, &d->faults[i]);
        cli_json_end(json);
        cli_json_end(json);
    }
    cli_json_end(json);
}
