// Any text as world commands, line by line: what is refused says why, what is taken has numbers in range, and
// edits leave a world that can be compiled.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "world/world__inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) __builtin_trap();
}

static const char scene[] =
    "<scene name='s' version='1'><world><shape name='ground' type='half-space'/>"
    "<shape name='slab' type='box' size='1 1 1'/></world><material name='rock'/>"
    "<object name='stone'><link name='core' density='1000'><shape type='sphere' size='1'/></link></object>"
    "<object name='post' base='fixed'><link name='pole' density='1000'><shape type='box' size='1 1 "
    "1'/></link>"
    "<link name='gate' density='1000'><shape type='box' size='1 1 1'/></link>"
    "<joint name='hinge' type='revolute' parent='pole' child='gate' axis='0 0 1'/></object></scene>";

static us_spec *load(void) {
    us_spec *spec = NULL;
    must(us_spec_load_text(scene, sizeof scene - 1, "scene.xml", NULL, &spec, NULL) == US_OK);
    return spec;
}

static void check(const usi_command *c) {
    must(c->verb < USI_VERB_COUNT && c->n_number <= 6 && c->n_value <= 2 * USI_PAIR_KEYS);
    for (int32_t i = 0; i < c->n_number; i++)
        must(isfinite(c->number[i]));
    for (int32_t i = 0; i < c->n_value; i++)
        must(isfinite(c->value[i].value) &&
             (c->verb == USI_VERB_SOIL ? usi_soil_key_name : usi_pair_key_name)(c->value[i].field));
    if (c->verb == USI_VERB_ADD && c->is_robot) must(!c->spawn.file != !c->spawn.xml);
    if (c->verb == USI_VERB_ADD && !c->is_robot) {
        const usi_object_def *o = &c->object;
        must(o->size[0] > 0 && isfinite(o->size[0] + o->size[1] + o->size[2]) &&
             (o->mass > 0 || o->density > 0));
        for (int k = 0; k < 3; k++)
            must(isfinite(o->position[k] + o->rpy[k] + o->velocity[k]));
        must(strlen(c->name) <= USI_NAME_MAX);
    }
    if (c->verb == USI_VERB_ADOPT) {
        const usi_adopt *a = &c->adopt;
        must(a->n_joint >= 0 && a->n_joint <= USI_ADOPT_JOINTS &&
             isfinite(a->odom[0] + a->origin[1] + a->velocity[2] + a->want[0]));
        must(a->age >= 0 && a->battery >= 0 && a->battery <= 1 && a->stamp >= 0);
        for (int32_t i = 0; i < a->n_joint; i++)
            must(a->joint[i].name[0] && isfinite(a->joint[i].q + a->joint[i].v));
    }
    if (c->verb == USI_VERB_RECORD && c->name) must(!strchr(c->name, '/') && c->name[0] != '.');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static us_spec *first;
    if (!first) first = load();
    char *text = malloc(size + 1), *clean = malloc(size + 1);
    must(text && clean);
    if (size > 0) memcpy(text, data, size);
    text[size] = 0;
    usi_text_clean(text, clean, size + 1);
    must(strlen(clean) <= size);

    us_spec *spec = NULL;
    must(us_spec_copy(first, &spec) == US_OK);
    int n_edit = 0;
    for (char *rest = text, *line; n_edit < 8 && (line = strsep(&rest, "\n")) != NULL;) {
        usi_command c;
        us_error err = {0};
        if (usi_command_parse(line, &c, &err)) {
            must(err.message[0] && err.remedy[0]);
            continue;
        }
        check(&c);
        if (usi_spec_edit(spec, &c, &err)) {
            must(err.message[0] != 0);
        } else {
            n_edit++;
        }
    }
    if (n_edit > 0) {
        us_model *model = NULL;
        us_error err = {0};
        if (us_model_compile(spec, NULL, &model, &err)) must(err.message[0] != 0);
        us_model_destroy(model);
    }
    us_spec_destroy(spec);
    free(text);
    free(clean);
    return 0;
}
