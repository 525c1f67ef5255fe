// Shows how well hardware and proxy agree, as the switch publishes it on /understudy/shadow.
#include "shadow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

// Room for a line with the residuals of 64 joints.
enum { LINE_SIZE = 32768 };

static const char *const element = "understudy switch";

// ---- tolerances ----

typedef struct tolerance {
    const char *name;
    size_t place;
} tolerance;

#define PLACE(member) offsetof(us_shadow_def, member)
static const tolerance tolerances[] = {
    {"position", PLACE(position)},
    {"position-share", PLACE(position_growth)},
    {"yaw", PLACE(yaw)},
    {"yaw-share", PLACE(yaw_growth)},
    {"speed", PLACE(speed)},
    {"turn-rate", PLACE(yaw_rate)},
    {"joint", PLACE(joint)},
    {"joint-share", PLACE(joint_growth)},
    {"joint-speed", PLACE(joint_speed)},
    {"gyro", PLACE(gyro)},
    {"accelerometer", PLACE(accelerometer)},
    {"time", PLACE(time)},
    {"degraded", PLACE(degraded)},
    {"diverged", PLACE(diverged)},
};
enum { N_TOLERANCE = sizeof tolerances / sizeof tolerances[0] };

static int set_one(us_shadow_def *def, const char *item) {
    const char *names[N_TOLERANCE], *equals = strchr(item, '=');
    char name[64], remedy[128];
    snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - item : (long)strlen(item)), item);
    for (int i = 0; i < N_TOLERANCE; i++) {
        names[i] = tolerances[i].name;
        if (strcmp(names[i], name) != 0) continue;
        char *end = NULL;
        double value = equals ? strtod(equals + 1, &end) : NAN;
        if (!equals || end == equals + 1 || *end || !isfinite(value))
            return cli_fail(CLI_BAD_INPUT, element, "write for example --tolerance position=0.3",
                            "\"%.60s\" has no number", item);
        memcpy((char *)def + tolerances[i].place, &value, sizeof value);
        return CLI_GO_ON;
    }
    const char *near = cli_nearest(name, names, N_TOLERANCE);
    snprintf(remedy, sizeof remedy, near ? "did you mean %s?" : "see docs/switch.md for the names", near);
    return cli_fail(CLI_BAD_INPUT, element, remedy, "unknown tolerance \"%.60s\"", name);
}

int cli_shadow_set(us_shadow_def *def, const cli_list *items) {
    int code = CLI_GO_ON;
    for (int32_t i = 0; i < items->n && code == CLI_GO_ON; i++)
        code = set_one(def, items->item[i]);
    return code;
}

// ---- listening ----

us_status cli_shadow_open(cli_shadow *s, us_bus *bus, int32_t node, const char *robot, us_error *err) {
    *s = (cli_shadow){.bus = bus, .robot = robot, .line = cli_allocate(1, LINE_SIZE)};
    us_topic_def topic = {
        .topic = "/understudy/shadow", .type = us_message_find("std_msgs/msg/String"), .node = node};
    topic.qos = (us_qos){.is_reliable = true, .depth = 10};
    return us_bus_add_reader(bus, &topic, NULL, NULL, &s->reader, err);
}

void cli_shadow_close(cli_shadow *s) {
    free(s->line);
    s->line = NULL;
}

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

// The newest that is said about the robot; NULL when nothing comes in time. The caller deletes it.
static cJSON *next(cli_shadow *s, double until) {
    cJSON *newest = NULL;
    char *bytes = cli_allocate(1, LINE_SIZE);
    while (!cli_is_stopped() && !newest) {
        size_t length = 0;
        // Plain CDR: a String is its length, with the 0 at its end, and its characters.
        while (us_reader_take(s->reader, bytes, LINE_SIZE, &length, NULL) == US_OK && length > 8) {
            bytes[length - 1] = 0;
            cJSON *json = cJSON_Parse(bytes + 8);
            if (json && strcmp(text_of(json, "robot"), s->robot) == 0) {
                snprintf(s->line, LINE_SIZE, "%s", bytes + 8);
                cJSON_Delete(newest);
                newest = json;
            } else {
                cJSON_Delete(json);
            }
        }
        double left = until - cli_clock();
        if (left <= 0) break;
        if (!newest) us_bus_wait(s->bus, left < 0.1 ? left : 0.1);
    }
    free(bytes);
    return newest;
}

static void make_plain(char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
    }
}

// "ok, confidence 0.97; most pose.y: -0.11 of 0.31; 0.62 s later"
static void describe(const cJSON *json, char *out, size_t cap) {
    const cJSON *residuals = cJSON_GetObjectItemCaseSensitive(json, "residuals"),
                *offset = cJSON_GetObjectItemCaseSensitive(json, "offset"), *r;
    const char *worst = text_of(json, "worst");
    int n =
        snprintf(out, cap, "%.20s, confidence %.2f", text_of(json, "state"), number_of(json, "confidence"));
    cJSON_ArrayForEach(r, residuals) {
        if (n < 0 || (size_t)n >= cap || !worst[0] || strcmp(text_of(r, "name"), worst) != 0) continue;
        n += snprintf(out + n, cap - (size_t)n, "; most %.80s: %.3g of %.3g; lag %.2f s", worst,
                      number_of(r, "value"), number_of(r, "tolerance"), number_of(offset, "lag"));
        break;
    }
    if (!worst[0] && n > 0 && (size_t)n < cap) snprintf(out + n, cap - (size_t)n, "; nothing to compare");
    make_plain(out);
}

void cli_shadow_show(cli_shadow *s, bool is_json) {
    cJSON *json = next(s, cli_clock() + 1);
    if (!json) return;
    char text[256];
    describe(json, text, sizeof text);
    make_plain(s->line);
    if (is_json) {
        printf("%s\n", s->line);
    } else {
        printf("  side by side: %s\n", text);
    }
    cJSON_Delete(json);
}

int cli_shadow_watch(cli_shadow *s, bool is_json, double patience) {
    bool is_live = cli_is_terminal(stdout) && cli_is_terminal(stderr) && !is_json;
    double heard = cli_clock(), shown = -1;
    while (!cli_is_stopped()) {
        cJSON *json = next(s, cli_clock() + 0.5);
        double now = cli_clock();
        if (!json && now - heard > patience) {
            if (is_live) cli_line_clear();
            return cli_fail(CLI_RUN_FAILED, element,
                            "hardware and proxy are compared in the modes shadow and mirror: --to shadow",
                            "nothing is said about \"%.60s\"", s->robot);
        }
        if (!json) continue;
        heard = now;
        if (is_live || now - shown >= 0.99) {
            char text[256], bar[64];
            time_t seconds = time(NULL);
            struct tm local;
            char stamp[16] = "";
            if (localtime_r(&seconds, &local)) strftime(stamp, sizeof stamp, "%H:%M:%S", &local);
            describe(json, text, sizeof text);
            make_plain(s->line);
            cli_bar(number_of(json, "confidence"), bar, sizeof bar);
            if (is_json) {
                printf("%s\n", s->line);
            } else if (is_live) {
                cli_line_show("%s %s %s", stamp, bar, text);
            } else {
                printf("%s  %s\n", stamp, text);
            }
            fflush(stdout);
            shown = now;
        }
        cJSON_Delete(json);
    }
    if (is_live) cli_line_clear();
    return CLI_OK;
}
