// Names: ROS topics as DDS topics, nodes, and the "key=value;" texts that ROS hides in DDS user data.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bus/bus.h"

// Tokens of letters, digits and _ that do not begin with a digit, separated by single slashes.
static bool is_name(const char *text, bool allow_slash) {
    bool at_start = true;
    for (; *text; text++) {
        if (*text == '/') {
            if (!allow_slash || at_start) return false;
            at_start = true;
            continue;
        }
        if (!isalnum((unsigned char)*text) && *text != '_') return false;
        if (at_start && isdigit((unsigned char)*text)) return false;
        at_start = false;
    }
    return !at_start;
}

// Any name that DDS can have, as it stands.
static us_status take_dds_name(const char *name, char out[USI_NAME_LENGTH], us_error *err) {
    const size_t n = strlen(name);
    bool is_good = n > 0 && n < USI_NAME_LENGTH;
    for (size_t i = 0; i < n && is_good; i++)
        is_good = isalnum((unsigned char)name[i]) || strchr("_-./:", name[i]);
    if (!is_good)
        return us_error_set(err, US_ERR_NAME, NULL,
                            "Write letters, digits and _ - . / : behind dds:, for example dds:rapid_ack.",
                            "invalid DDS topic name \"%.200s\"", name);
    snprintf(out, USI_NAME_LENGTH, "%s", name);
    return US_OK;
}

us_status usi_topic_to_dds(const char *topic, char out[USI_NAME_LENGTH], us_error *err) {
    static const char remedy[] = "Write an absolute name of letters, digits, _ and /, for example /k10/odom.";
    if (!topic || !topic[0]) return us_error_set(err, US_ERR_NAME, NULL, remedy, "a topic without a name");
    if (strncmp(topic, "dds:", 4) == 0) return take_dds_name(topic + 4, out, err);
    bool is_dds = !strncmp(topic, "rt/", 3) || !strncmp(topic, "rq/", 3) || !strncmp(topic, "rr/", 3);
    if (!is_dds && topic[0] != '/')
        return us_error_set(err, US_ERR_NAME, NULL, remedy, "topic \"%.200s\" does not begin with a slash",
                            topic);
    if (!is_name(is_dds ? topic : topic + 1, true))
        return us_error_set(err, US_ERR_NAME, NULL, remedy, "invalid topic name \"%.200s\"", topic);
    if (strlen(topic) + 3 > USI_NAME_LENGTH) {
        return us_error_set(err, US_ERR_NAME, NULL, remedy,
                            "the topic's name is longer than %d characters: %.80s...", USI_NAME_LENGTH - 3,
                            topic);
    }
    snprintf(out, USI_NAME_LENGTH, is_dds ? "%s" : "rt%s", topic);
    return US_OK;
}

us_status usi_graph_node_check(const char *namespace_, const char *name, usi_graph_node *out_node,
                               us_error *err) {
    if (!namespace_ || !namespace_[0]) namespace_ = "/";
    if (!name || !is_name(name, false) || strlen(name) >= USI_NAME_LENGTH) {
        return us_error_set(err, US_ERR_NAME, NULL, "Write letters, digits and _, for example driver.",
                            "invalid node name \"%.200s\"", name ? name : "");
    }
    bool is_good = namespace_[0] == '/' && (!namespace_[1] || is_name(namespace_ + 1, true));
    if (!is_good || strlen(namespace_) >= USI_NAME_LENGTH) {
        return us_error_set(err, US_ERR_NAME, NULL, "Write an absolute name, for example / or /k10.",
                            "invalid namespace \"%.200s\"", namespace_);
    }
    memset(out_node, 0, sizeof *out_node);
    memcpy(out_node->namespace_, namespace_, strlen(namespace_));
    memcpy(out_node->name, name, strlen(name));
    return US_OK;
}

void usi_user_data_get(const char *bytes, size_t length, const char *key, char *out, size_t cap) {
    size_t n_key = strlen(key);
    out[0] = 0;
    for (size_t at = 0; at < length;) {
        const char *pair = bytes + at;
        const char *end = memchr(pair, ';', length - at);
        size_t n = end ? (size_t)(end - pair) : length - at;
        if (n > n_key && !memcmp(pair, key, n_key) && pair[n_key] == '=') {
            size_t n_value = n - n_key - 1;
            if (n_value >= cap) return;
            memcpy(out, pair + n_key + 1, n_value);
            out[n_value] = 0;
            return;
        }
        at += n + 1;
    }
}
