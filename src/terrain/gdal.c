// GDAL by dlopen: once, whichever thread is first; and its errors, which are caught instead of printed.
#include "terrain/gdal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

// The name with the number of the interface that the headers belong to; the build finds it.
#ifndef US_GDAL_LIBRARY
#define US_GDAL_LIBRARY "libgdal.so"
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static usi_gdal table;
static char why[300];  // "" when the table is filled

static void load(void) {
    static const char *const names[] = {
#define GDAL_NAME(name) #name,
        USI_GDAL_LIST(GDAL_NAME)
#undef GDAL_NAME
    };
    // GDAL's objects end when the process does: its code stays for good.
    void *library = dlopen(US_GDAL_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *text = dlerror();
        snprintf(why, sizeof why, "%s", text ? text : "dlopen failed");
        return;
    }
    _Static_assert(sizeof table == sizeof names / sizeof *names * sizeof(void *),
                   "one pointer for each name");
    for (size_t i = 0; i < sizeof names / sizeof *names && !why[0]; i++) {
        // A pointer to data cannot be cast to one to a function in strict C; POSIX promises that its bits can
        // be.
        void *symbol = dlsym(library, names[i]);
        memcpy((char *)&table + i * sizeof symbol, &symbol, sizeof symbol);
        if (!symbol) snprintf(why, sizeof why, "it has no function %s", names[i]);
    }
    dlclose(library);
    if (why[0]) return;
    usi_gdal_error error;
    usi_gdal_catch_begin(&table, &error);  // errors of drivers that cannot be loaded are ignored
    table.GDALAllRegister();
    table.OSRSetPROJEnableNetwork(0);
    usi_gdal_catch_end(&table);
}

const usi_gdal *usi_gdal_get(us_error *err) {
    pthread_once(&once, load);
    if (!why[0]) return &table;
    us_error_set(err, US_ERR_IO, NULL,
                 "install GDAL (Debian: libgdal32 or later, or libgdal-dev), and build again when its "
                 "version has changed",
                 "rasters are read by GDAL, and " US_GDAL_LIBRARY " cannot be loaded: %s", why);
    return NULL;
}

static void CPL_STDCALL on_error(CPLErr level, CPLErrorNum number, const char *text) {
    (void)number;
    usi_gdal_error *error = table.CPLGetErrorHandlerUserData();
    if (level < CE_Failure || !error || error->text[0]) return;
    snprintf(error->text, sizeof error->text, "%s", text);
    // One line.
    for (char *s = error->text; *s; s++) {
        if ((unsigned char)*s < 0x20) *s = ' ';
    }
}

void usi_gdal_catch_begin(const usi_gdal *gdal, usi_gdal_error *error) {
    error->text[0] = 0;
    gdal->CPLPushErrorHandlerEx(on_error, error);
}

void usi_gdal_catch_end(const usi_gdal *gdal) { gdal->CPLPopErrorHandler(); }
