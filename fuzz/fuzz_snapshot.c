// A snapshot of a stone and an arm that fall, changed at any places and signed again: refused, or the world
// goes on.
//
// The input is a list of changes, 8 bytes each: 4 where, 1 how wide, 3 of the value. So seeds stay of use
// when the layout of the state changes.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "understudy/proxy.h"
#include "understudy/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 32, MAX_CHANGE = 64 };

static const char scene[] =
    "<scene name='s' version='1'><world><shape name='ground' type='plane'/></world>"
    "<object name='stone' xyz='3 0 0.2' base='floating'><link name='core'><inertial mass='5' inertia='0.1 "
    "0.1 0.1'/>"
    "<shape type='box' size='0.4 0.4 0.4'/></link></object>"
    "<object name='arm' xyz='0 3 1'><link name='a'><inertial mass='1' inertia='0.1 0.1 0.1'/></link>"
    "<link name='b'><inertial mass='1' inertia='0.1 0.1 0.1'/></link>"
    "<joint name='j' type='revolute' parent='a' child='b' axis='0 1 0'/></object></scene>";

static us_sim *sim;
static uint8_t *good, *bad;
static size_t length;

static void must(bool is_so) {
    if (!is_so) abort();
}

static void start(void) {
    us_error err = {0};
    us_spec *spec = NULL;
    static us_model *model;
    if (us_spec_load_text(scene, sizeof scene - 1, "scene.xml", NULL, &spec, &err)) abort();
    must(us_model_compile(spec, NULL, &model, &err) == US_OK &&
         us_sim_create(model, NULL, &sim, &err) == US_OK);
    us_spec_destroy(spec);
    for (int i = 0; i < 300; i++)
        must(us_sim_step(sim, NULL) == US_OK);
    must(us_sim_save(sim, NULL, 0, &length) == US_OK);
    good = malloc(length);
    bad = malloc(length);
    must(good && bad && us_sim_save(sim, good, length, &length) == US_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!sim) start();
    memcpy(bad, good, length);
    for (size_t i = 0; i + 8 <= size && i < 8 * MAX_CHANGE; i += 8) {
        uint32_t at = 0;
        memcpy(&at, data + i, 4);
        const size_t width = (size_t)1 << (data[i + 4] & 3), from = HEADER + at % (length - HEADER - 8);
        // The value's bytes, or, by the upper bits of the width, the same one all over.
        uint8_t value[8] = {data[i + 5], data[i + 6], data[i + 7]};
        if (data[i + 4] & 128) memset(value, data[i + 5], sizeof value);
        memcpy(bad + from, value, width);
    }
    uint64_t check = us_hash_bytes(0, bad + HEADER, length - HEADER);
    memcpy(bad + 24, &check, sizeof check);
    if (us_sim_restore(sim, bad, length)) return 0;
    for (int i = 0; i < 2; i++) {
        // A step may fail, with a clear error.
        if (us_sim_step(sim, NULL)) break;
    }
    return 0;
}
