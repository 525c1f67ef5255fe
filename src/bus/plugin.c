// Vendors that come as a library of their own.
//
// libunderstudy-NAME.so is looked for in the directories of US_PLUGIN_PATH, then beside this library or
// program, in "plugins" below that and in "understudy" below that (where it is installed), and last where the
// system looks.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus/bus.h"

// Where the build installs plug-ins, seen from the program's directory.
#ifndef US_PLUGIN_DIR
#define US_PLUGIN_DIR "../lib/understudy/"
#endif

enum { MAX_PATH = 1024 };

typedef struct search {
    const char *name;
    void *library;
    char why[300];  // what the loader said of a file that is there and cannot be loaded
} search;

static void try_path(search *s, const char *path) {
    if (s->library) return;
    if (strchr(path, '/') && access(path, F_OK) != 0) return;
    // A vendor's threads end when they like: its code stays for good.
    s->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (s->library || s->why[0]) return;
    const char *why = dlerror();
    snprintf(s->why, sizeof s->why, "%s", why ? why : "");
}

static void try_directory(search *s, const char *directory, int length, const char *below) {
    char path[MAX_PATH];
    int n = snprintf(path, sizeof path, "%.*s/%slibunderstudy-%s.so", length, directory, below, s->name);
    if (n > 0 && n < (int)sizeof path) try_path(s, path);
}

static void try_beside(search *s, const char *file) {
    const char *slash = strrchr(file, '/');
    if (!slash) return;
    int length = (int)(slash - file);
    try_directory(s, file, length, "");
    try_directory(s, file, length, "plugins/");
    try_directory(s, file, length, "understudy/");
    try_directory(s, file, length, US_PLUGIN_DIR);
    try_directory(s, file, length, "../../plugins/");  // tests stand two directories below the build
}

us_status usi_vendor_load(const char *name, const usi_vendor **out_vendor, us_error *err) {
    search s = {.name = name};
    const char *paths = getenv("US_PLUGIN_PATH");
    for (const char *at = paths ? paths : ""; *at;) {
        size_t length = strcspn(at, ":");
        if (length && length < MAX_PATH) try_directory(&s, at, (int)length, "");
        at += length + (at[length] ? 1 : 0);
    }
    Dl_info self;
    static const char here = 0;
    if (dladdr(&here, &self) && self.dli_fname) try_beside(&s, self.dli_fname);
    char program[MAX_PATH];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n > 0) {
        program[n] = 0;
        try_beside(&s, program);
    }
    char plain[MAX_PATH];
    snprintf(plain, sizeof plain, "libunderstudy-%s.so", name);
    if (!s.why[0]) try_path(&s, plain);
    if (!s.library) {
        return us_error_set(
            err, US_ERR_IO, NULL,
            "Install Fast DDS (Debian: libfastrtps-dev) and build again, name the library's directory in "
            "US_PLUGIN_PATH, or use the vendor cyclone.",
            "the vendor \"%s\" needs the library libunderstudy-%s.so, which cannot be loaded: %s", name, name,
            s.why);
    }
    // A pointer to data cannot be cast to one to a function in strict C; POSIX promises that its bits can be.
    void *symbol = dlsym(s.library, USI_VENDOR_SYMBOL);
    usi_vendor_function *table = NULL;
    memcpy(&table, &symbol, sizeof table);
    const usi_vendor *vendor = table ? table() : NULL;
    dlclose(s.library);
    if (!vendor || vendor->abi != USI_VENDOR_ABI || vendor->size != sizeof *vendor) {
        return us_error_set(err, US_ERR_IO, NULL, "Build and install both from the same version.",
                            "libunderstudy-%s.so belongs to another version of Understudy", name);
    }
    *out_vendor = vendor;
    return US_OK;
}
