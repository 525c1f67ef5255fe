// The environment variables with which ROS 2 asks for DDS Security.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus.h"
#include "understudy/keys.h"

char *usi_text_keep(usi_text_room *room, const char *text) {
    const size_t n = strlen(text) + 1;
    if (n > room->left) return NULL;
    char *copy = memcpy(room->at, text, n);
    room->at += n;
    room->left -= n;
    return copy;
}

us_status usi_security_uri(const char *scheme, const char *directory, const char *name, char *out,
                           size_t cap) {
    const int n = snprintf(out, cap, "%s%s/%s", scheme, directory, name);
    return n > 0 && (size_t)n < cap ? US_OK : US_ERR_LIMIT;
}

us_status usi_security_refuse(us_error *err, const char *topic, bool is_writer) {
    char remedy[384];
    snprintf(remedy, sizeof remedy,
             "Allow it: understudy keys add KEYSTORE ENCLAVE --%s '%.200s', beside its others.",
             is_writer ? "publish" : "subscribe", strncmp(topic, "rt/", 3) == 0 ? topic + 2 : topic);
    return us_error_set(err, US_ERR_IO, NULL, remedy,
                        "the permissions of this enclave do not allow to %s %.200s",
                        is_writer ? "write" : "read", topic);
}

// True when the variable has the value `yes`, false when it is absent or has the value `no`.
static us_status read_choice(const char *name, const char *yes, const char *no, bool *out_is_yes,
                             us_error *err) {
    const char *value = getenv(name);
    *out_is_yes = value && strcmp(value, yes) == 0;
    if (!value || !value[0] || *out_is_yes || strcmp(value, no) == 0) return US_OK;
    char remedy[128];
    snprintf(remedy, sizeof remedy, "Set it to %s or %s, or unset it.", yes, no);
    return us_error_set(err, US_ERR_VALUE, &(us_place){.element = name}, remedy,
                        "the environment variable %s has the value \"%.100s\"", name, value);
}

static us_status too_long(us_error *err) {
    return us_error_set(err, US_ERR_LIMIT, &(us_place){.element = "ROS_SECURITY_KEYSTORE"},
                        "Use a shorter path.", "the path of the keys is too long");
}

// The enclave's directory below the keystore, absolute.
static us_status find_directory(const us_bus_def *def, const char *keystore, char out[PATH_MAX],
                                us_error *err) {
    char path[PATH_MAX];
    if (def->enclave[0] != '/' || strstr(def->enclave, "..")) {
        return us_error_set(err, US_ERR_VALUE, &(us_place){.element = "ROS_SECURITY_ENCLAVE_OVERRIDE"},
                            "Write / or a name like /rover.", "invalid enclave \"%.100s\"", def->enclave);
    }
    const int n = snprintf(path, sizeof path, "%s/enclaves%s", keystore, def->enclave[1] ? def->enclave : "");
    if (n >= (int)sizeof path) return too_long(err);
    // What is not there keeps its name, for the message.
    if (!realpath(path, out)) memcpy(out, path, (size_t)n + 1);
    return US_OK;
}

static us_status use_keys(us_bus_def *def, const char *keystore, bool is_enforced, usi_text_room *room,
                          us_error *err) {
    char directory[PATH_MAX], place[PATH_MAX + 64], notice[PATH_MAX + 400];
    us_error why = {0};
    us_status status = find_directory(def, keystore, directory, err);
    if (status) return status;
    status = us_enclave_check(directory, -1, &why);
    if (!status) {
        def->keys = usi_text_keep(room, directory);
        return def->keys ? US_OK : too_long(err);
    }
    if (is_enforced || status != US_ERR_IO) {
        snprintf(place, sizeof place, "%s", why.file);
        char remedy[PATH_MAX + 200];
        snprintf(remedy, sizeof remedy,
                 "understudy keys add %s %s (before the first one: understudy keys create %s)", keystore,
                 def->enclave, keystore);
        return us_error_set(err, status, &(us_place){.file = place, .element = "ROS_SECURITY_ENABLE"},
                            status == US_ERR_IO ? remedy : why.remedy, "%s", why.message);
    }
    snprintf(
        notice, sizeof notice,
        "ROS_SECURITY_ENABLE is true, but %.*s: %s. ROS_SECURITY_STRATEGY is not Enforce: it runs open to "
        "everybody.",
        PATH_MAX, why.file, why.message);
    def->notice = usi_text_keep(room, notice);
    return def->notice ? US_OK : too_long(err);
}

us_status usi_security_read(us_bus_def *def, usi_text_room *room, us_error *err) {
    bool is_on = false, is_enforced = false;
    us_status status = read_choice("ROS_SECURITY_ENABLE", "true", "false", &is_on, err);
    if (!status) status = read_choice("ROS_SECURITY_STRATEGY", "Enforce", "Permissive", &is_enforced, err);
    const char *enclave = getenv("ROS_SECURITY_ENCLAVE_OVERRIDE");
    if (!status && enclave && enclave[0]) {
        char *copy = usi_text_keep(room, enclave);
        if (!copy) return too_long(err);
        def->enclave = copy;
    }
    if (status || !is_on) return status;
    if (!def->enclave) def->enclave = "/";
    const char *keystore = getenv("ROS_SECURITY_KEYSTORE");
    if (keystore && keystore[0]) return use_keys(def, keystore, is_enforced, room, err);
    if (is_enforced) {
        return us_error_set(
            err, US_ERR_VALUE, &(us_place){.element = "ROS_SECURITY_KEYSTORE"},
            "Set it to a keystore: understudy keys create KEYSTORE makes one.",
            "ROS_SECURITY_STRATEGY is Enforce, and the environment variable ROS_SECURITY_KEYSTORE "
            "is not set");
    }
    def->notice =
        "ROS_SECURITY_ENABLE is true, but ROS_SECURITY_KEYSTORE is not set. ROS_SECURITY_STRATEGY is not "
        "Enforce: it runs open to everybody.";
    return US_OK;
}
