// The two texts of DDS Security: governance (what is protected in which domain) and permissions (who may
// write and read which topic). XML by the schemas of the specification, OMG DDS Security 1.1, 9.4.1.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "keys/keys.h"

// Cyclone DDS reads no document with a domain beyond 230.
enum { MAX_DOMAIN = 230, MAX_TOPIC = 250 };

typedef struct policy_text {
    char *bytes;
    size_t length, cap;
} policy_text;

US_PRINTF(2, 3) static void add(policy_text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const size_t room = t->length < t->cap ? t->cap - t->length : 0;
    const int n = vsnprintf(room ? t->bytes + t->length : NULL, room, format, args);
    va_end(args);
    if (n > 0) t->length += (size_t)n;
}

static us_status finish(const policy_text *t, us_error *err) {
    if (t->length < t->cap) return US_OK;
    return us_error_set(err, US_ERR_LIMIT, NULL, "Use patterns such as /k10/*.",
                        "too many topics or domains");
}

// A number from 0 to 230 at *text, which moves behind it; -1 when there is none.
static long read_domain(const char **text) {
    if (**text < '0' || **text > '9') return -1;
    char *end = NULL;
    const long number = strtol(*text, &end, 10);
    *text = end;
    return number <= MAX_DOMAIN ? number : -1;
}

// "0,7,20-25" as elements <id> and <id_range>.
static us_status add_domains(policy_text *t, const char *domains, us_error *err) {
    add(t, "<domains>");
    for (const char *at = domains;;) {
        const long first = read_domain(&at);
        long last = first;
        if (*at == '-') {
            at++;
            last = read_domain(&at);
        }
        if (first < 0 || last < first || (*at && *at != ',')) {
            return us_error_set(err, US_ERR_VALUE, NULL, "Write numbers from 0 to 230, as 0,7,20-25.",
                                "invalid list of domains \"%.100s\"", domains);
        }
        if (first == last) {
            add(t, "<id>%ld</id>", first);
        } else {
            add(t, "<id_range><min>%ld</min><max>%ld</max></id_range>", first, last);
        }
        if (!*at++) break;
    }
    add(t, "</domains>\n");
    return US_OK;
}

us_status usi_governance_text(const char *domains, char *buf, size_t cap, us_error *err) {
    policy_text t = {.cap = cap};
    t.bytes = buf;
    add(&t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dds>\n<domain_access_rules>\n<domain_rule>\n");
    us_status status = add_domains(&t, domains, err);
    if (status) return status;
    add(&t, "<allow_unauthenticated_participants>false</allow_unauthenticated_participants>\n"
            "<enable_join_access_control>true</enable_join_access_control>\n"
            "<discovery_protection_kind>ENCRYPT</discovery_protection_kind>\n"
            "<liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>\n"
            "<rtps_protection_kind>SIGN</rtps_protection_kind>\n"
            "<topic_access_rules>\n<topic_rule>\n<topic_expression>*</topic_expression>\n"
            "<enable_discovery_protection>true</enable_discovery_protection>\n"
            "<enable_liveliness_protection>true</enable_liveliness_protection>\n"
            "<enable_read_access_control>true</enable_read_access_control>\n"
            "<enable_write_access_control>true</enable_write_access_control>\n"
            "<metadata_protection_kind>ENCRYPT</metadata_protection_kind>\n"
            "<data_protection_kind>ENCRYPT</data_protection_kind>\n"
            "</topic_rule>\n</topic_access_rules>\n</domain_rule>\n</domain_access_rules>\n</dds>\n");
    return finish(&t, err);
}

// ---- permissions ----

static us_status add_topic(policy_text *t, const char *topic, us_error *err) {
    const size_t n = topic ? strlen(topic) : 0;
    const bool is_dds = n > 3 && (strncmp(topic, "rt/", 3) == 0 || strncmp(topic, "rq/", 3) == 0 ||
                                  strncmp(topic, "rr/", 3) == 0);
    const bool is_all = n == 1 && topic[0] == '*';
    if (n == 0 || n > MAX_TOPIC || (topic[0] != '/' && !is_dds && !is_all) ||
        strspn(topic, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/*?") != n) {
        return us_error_set(err, US_ERR_VALUE, NULL,
                            "Write /k10/odom, a pattern such as /k10/*, or * for every topic.",
                            "invalid topic \"%.100s\"", topic ? topic : "");
    }
    add(t, "<topic>%s%s</topic>", topic[0] == '/' ? "rt" : "", topic);
    return US_OK;
}

static us_status add_rule(policy_text *t, const char *verb, const char *const *topics, int32_t n, bool is_all,
                          us_error *err) {
    us_status status = US_OK;
    add(t, "<%s><topics>", verb);
    if (is_all) add(t, "<topic>*</topic>");
    for (int32_t i = 0; i < n && !status; i++)
        status = add_topic(t, topics[i], err);
    if (!is_all) add(t, "<topic>ros_discovery_info</topic>");
    add(t, "</topics></%s>\n", verb);
    return status;
}

static void add_time(policy_text *t, const char *name, int64_t seconds) {
    const time_t time = (time_t)seconds;
    struct tm utc;
    char text[32] = "";
    if (gmtime_r(&time, &utc)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    add(t, "<%s>%s</%s>", name, text, name);
}

us_status usi_permissions_text(const us_enclave_def *def, const char *subject, int64_t start, int64_t until,
                               char *buf, size_t cap, us_error *err) {
    policy_text t = {.cap = cap};
    t.bytes = buf;
    add(&t,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dds>\n<permissions>\n<grant name=\"%s\">\n"
        "<subject_name>%s</subject_name>\n<validity>",
        def->enclave, subject);
    add_time(&t, "not_before", start);
    add_time(&t, "not_after", until);
    add(&t, "</validity>\n<allow_rule>\n");
    us_status status = add_domains(&t, def->domains, err);
    const bool is_all = def->n_publish == 0 && def->n_subscribe == 0;
    if (!status) status = add_rule(&t, "publish", def->publish, def->n_publish, is_all, err);
    if (!status) status = add_rule(&t, "subscribe", def->subscribe, def->n_subscribe, is_all, err);
    if (status) return status;
    add(&t, "</allow_rule>\n<default>DENY</default>\n</grant>\n</permissions>\n</dds>\n");
    return finish(&t, err);
}
