// us_load_def.may_open: each kind of file that a scene names is asked for before it is opened, and one that
// is refused ends the load. The files of these scenes do not exist: an error that is not the refusal would
// say that somebody has looked for them.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/spec.h"

#define SCENE(body) "<scene version='1'>" body "</scene>"
#define WORLD(body) SCENE("<world>" body "</world>")
#define ROBOT(body) \
    SCENE("<world/><robot name='r' file='../tests/support/carrier.urdf' base='floating'>" body "</robot>")

typedef struct naming {
    const char *kind, *file, *text;
} naming;

static const naming namings[] = {
    {"plug-in", "gone.so", SCENE("<plugin file='gone.so'/><world/>")},
    {"scene file", "gone.xml", SCENE("<include file='gone.xml'/><world/>")},
    {"robot file", "gone.urdf", SCENE("<world/><robot name='r' file='gone.urdf'/>")},
    {"mesh", "gone.stl", WORLD("<shape type='mesh' file='gone.stl'/>")},
    {"height file", "gone.txt",
     WORLD("<shape type='height-field' nx='2' ny='2' dx='1' dy='1' file='gone.txt'/>")},
    {"raster", "gone.tif", WORLD("<shape type='height-field' file='gone.tif'/>")},
    {"table of beams", "gone.csv",
     ROBOT("<sensor type='lidar' name='l' link='base' beams='gone.csv' rate='10 Hz'/>")},
    {"interface file", "gone.idl",
     ROBOT("<network><interface file='gone.idl'><publish topic='a' type='p::T'/></interface></network>")},
};
enum { N_NAMING = sizeof namings / sizeof namings[0] };

typedef struct guard {
    const char *refused;  // kind; NULL: none
    const char *file;
    int n_asked;  // for the kind and file
} guard;

static bool may_open(void *context, const char *kind, const char *path) {
    guard *g = context;
    const bool is_it = g->refused && strcmp(kind, g->refused) == 0 && strstr(path, g->file);
    g->n_asked += is_it;
    return !is_it;
}

static us_status load(const char *text, guard *g, us_error *err) {
    static const char here[] = US_SOURCE_DIR "/scenes/may_open.xml";
    us_spec *spec = NULL;
    us_load_def def = us_load_def_default();
    def.may_open = may_open;
    def.context = g;
    const us_status status = us_spec_load_text(text, strlen(text), here, &def, &spec, err);
    us_spec_destroy(spec);
    return status;
}

static void each_kind_of_file_is_asked_for_before_it_is_opened(void **state) {
    (void)state;
    for (int i = 0; i < N_NAMING; i++) {
        const naming *n = &namings[i];
        guard g = {n->kind, n->file, 0};
        us_error err = {0};
        const us_status status = load(n->text, &g, &err);
        if (status != US_ERR_ACCESS || g.n_asked != 1)
            fail_msg("%s: %s, asked %d times: %s", n->kind, us_status_text(status), g.n_asked, err.message);
        if (!strstr(err.message, n->kind) || !strstr(err.message, n->file) || !strstr(err.remedy, "may_open"))
            fail_msg("%s: %s (%s)", n->kind, err.message, err.remedy);
    }
}

// The same scenes where all is allowed: the file is looked for. A mesh may be missing, with a warning.
static void a_file_that_may_be_opened_is_missed(void **state) {
    (void)state;
    for (int i = 0; i < N_NAMING; i++) {
        guard g = {0};
        us_error err = {0};
        const us_status status = load(namings[i].text, &g, &err);
        const bool is_usable = strcmp(namings[i].kind, "mesh") == 0;
        if (is_usable ? status != US_OK : status == US_ERR_ACCESS || !strstr(err.message, namings[i].file))
            fail_msg("%s: %s: %s", namings[i].kind, us_status_text(status), err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_file_is_asked_for_before_it_is_opened),
        cmocka_unit_test(a_file_that_may_be_opened_is_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
