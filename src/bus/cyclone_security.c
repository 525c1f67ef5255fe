// Cyclone DDS with DDS Security: its own plug-ins, and the files of an enclave.
//
// Plug-ins are libraries that Cyclone loads by name. Debian keeps them in a directory of their own, which no
// loader searches: so they are looked for beside libddsc, and below it.
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bus/bus.h"
#include "bus/cyclone.h"

typedef struct security_plugin {
    const char *property;  // dds.sec.PROPERTY.library...
    const char *library;
    const char *function;  // init_FUNCTION, finalize_FUNCTION
} security_plugin;

static const security_plugin plugins[] = {
    {"auth", "libdds_security_auth.so", "authentication"},
    {"access", "libdds_security_ac.so", "access_control"},
    {"crypto", "libdds_security_crypto.so", "crypto"},
};

static const char *const files[][2] = {
    {"dds.sec.auth.identity_ca", "identity_ca.cert.pem"},
    {"dds.sec.auth.identity_certificate", "cert.pem"},
    {"dds.sec.auth.private_key", "key.pem"},
    {"dds.sec.access.permissions_ca", "permissions_ca.cert.pem"},
    {"dds.sec.access.governance", "governance.p7s"},
    {"dds.sec.access.permissions", "permissions.p7s"},
};

static us_status find_library(const char *name, char *out, size_t cap, us_error *err) {
    static const char *const below[] = {"", "libddsc0debian/", "cyclonedds/"};
    Dl_info info;
    dds_return_t (*function)(dds_entity_t) = dds_delete;
    void *address = NULL;
    memcpy(&address, &function, sizeof address);
    if (dladdr(address, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        for (size_t i = 0; slash && i < sizeof below / sizeof below[0]; i++) {
            const int n = snprintf(out, cap, "%.*s/%s%s", (int)(slash - info.dli_fname), info.dli_fname,
                                   below[i], name);
            if (n > 0 && (size_t)n < cap && access(out, R_OK) == 0) return US_OK;
        }
    }
    // Where the system looks.
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return us_error_set(err, US_ERR_IO, NULL,
                            "Install Cyclone DDS with security (Debian: libddsc0debian has it), or use "
                            "RMW_IMPLEMENTATION=rmw_fastrtps_cpp.",
                            "Cyclone DDS has no %s: it was built without DDS Security", name);
    }
    dlclose(library);
    snprintf(out, cap, "%s", name);
    return US_OK;
}

us_status usi_cyclone_secure(dds_qos_t *qos, const char *keys, us_error *err) {
    char value[PATH_MAX + 64], name[96];
    for (size_t i = 0; i < sizeof plugins / sizeof plugins[0]; i++) {
        us_status status = find_library(plugins[i].library, value, sizeof value, err);
        if (status) return status;
        snprintf(name, sizeof name, "dds.sec.%s.library.path", plugins[i].property);
        dds_qset_prop(qos, name, value);
        snprintf(name, sizeof name, "dds.sec.%s.library.init", plugins[i].property);
        snprintf(value, sizeof value, "init_%s", plugins[i].function);
        dds_qset_prop(qos, name, value);
        snprintf(name, sizeof name, "dds.sec.%s.library.finalize", plugins[i].property);
        snprintf(value, sizeof value, "finalize_%s", plugins[i].function);
        dds_qset_prop(qos, name, value);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (usi_security_uri("file:", keys, files[i][1], value, sizeof value))
            return us_error_set(err, US_ERR_LIMIT, NULL, "Use a shorter path.",
                                "the path of the keys is too long");
        dds_qset_prop(qos, files[i][0], value);
    }
    return US_OK;
}
