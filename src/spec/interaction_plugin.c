// Models of one's own, of contact, of soil and of sensors: made known to a spec one by one, or all those of a
// shared library.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "spec/sensor_kind.h"
#include "spec/soil_plugin.h"
#include "spec/spec.h"

// The models that are always there: usi_pair.model counts them first.
static const char *const builtin[] = {"compliant", "spring-damper", "soil"};

bool usi_is_builtin_model(const char *name) {
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++) {
        if (strcmp(name, builtin[i]) == 0) return true;
    }
    return false;
}

// Checks a model without looking at what another version may have placed elsewhere: the version comes first.
static us_status check_model(const us_spec *spec, const us_interaction *model, const us_place *place,
                             bool *out_is_known, us_error *err) {
    *out_is_known = false;
    if (model->version != US_INTERACTION_VERSION) {
        return us_error_set(err, US_ERR_VALUE, place,
                            "build it with the headers of this library (US_INTERACTION_VERSION)",
                            "an interaction model has version %d, but this library knows version %d",
                            (int)model->version, US_INTERACTION_VERSION);
    }
    if (!model->name || !model->name[0]) {
        return us_error_set(err, US_ERR_NAME, place, "give it the name that <pair model=\"...\"> will use",
                            "an interaction model has no name");
    }
    if (!model->touch)
        return us_error_set(err, US_ERR_VALUE, place, "set its member touch",
                            "the interaction model \"%.100s\" has no function", model->name);
    if (usi_is_builtin_model(model->name))
        return us_error_set(err, US_ERR_NAME, place, "choose another name",
                            "\"%.100s\" is a model of the library itself", model->name);
    if (usi_find_ground_model(spec, model->name) >= 0)
        return us_error_set(err, US_ERR_NAME, place, "give each model its own name",
                            "there is a ground model \"%.100s\" already", model->name);
    if (usi_find_soil_law(spec, model->name) >= 0)
        return us_error_set(err, US_ERR_NAME, place, "give each model its own name",
                            "there is a law of soil \"%.100s\" already", model->name);
    for (int32_t i = 0; i < spec->n_interaction; i++) {
        const us_interaction *have = &spec->interaction[i];
        if (strcmp(model->name, have->name) != 0) continue;
        *out_is_known = have->touch == model->touch && have->user == model->user;
        if (*out_is_known) return US_OK;
        return us_error_set(err, US_ERR_NAME, place, "give each model its own name",
                            "there is another interaction model \"%.100s\" already", model->name);
    }
    return US_OK;
}

static us_status add(us_spec *spec, const us_interaction *model, const us_place *place, us_error *err) {
    bool is_known = false, ok = true;
    us_status status = check_model(spec, model, place, &is_known, err);
    if (status || is_known) return status;
    status = usi_grow(&spec->texts.allocator, (void **)&spec->interaction, spec->n_interaction,
                      &spec->cap_interaction, sizeof *model);
    us_interaction copy = *model;
    if (!status) copy.name = usi_arena_text(&spec->texts, model->name, &ok);
    if (status || !ok) {
        return us_error_set(err, status ? status : US_ERR_MEMORY, place, "free memory",
                            "there is no memory for the interaction model \"%.100s\"", model->name);
    }
    spec->interaction[spec->n_interaction++] = copy;
    return US_OK;
}

us_status us_spec_add_interaction(us_spec *spec, const us_interaction *model, us_error *err) {
    if (err) memset(err, 0, sizeof *err);
    if (!spec || !model)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a model",
                            "us_spec_add_interaction: an argument is NULL");
    return add(spec, model, NULL, err);
}

// A function of a library by its name. ISO C has no cast from an object pointer to a function pointer; POSIX
// promises that they look alike.
static void find_function(void *library, const char *name, void *out_function) {
    void *symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof symbol);
}

// All models of a library. `out_n`: how many there are.
static us_status add_all(us_spec *spec, void *library, const us_place *place, int32_t *out_n, us_error *err) {
    us_plugin_function interactions;
    us_plugin_soil_law_function laws;
    us_plugin_ground_model_function grounds;
    us_plugin_sensor_kind_function kinds;
    find_function(library, "us_plugin_interactions", &interactions);
    find_function(library, "us_plugin_soil_laws", &laws);
    find_function(library, "us_plugin_ground_models", &grounds);
    find_function(library, "us_plugin_sensor_kinds", &kinds);
    if (!interactions && !laws && !grounds && !kinds)
        return us_error_set(
            err, US_ERR_NAME, place,
            "export const us_interaction *us_plugin_interactions(int32_t *out_n), const "
            "us_soil_law *us_plugin_soil_laws, const us_ground_model *us_plugin_ground_models, "
            "or const us_sensor_kind *us_plugin_sensor_kinds, marked US_API",
            "the library has no function us_plugin_interactions, us_plugin_soil_laws, "
            "us_plugin_ground_models, nor us_plugin_sensor_kinds");
    int32_t n = 0, n_law = 0, n_ground = 0, n_kind = 0;
    const us_interaction *interaction = interactions ? interactions(&n) : NULL;
    const us_soil_law *law = laws ? laws(&n_law) : NULL;
    const us_ground_model *ground = grounds ? grounds(&n_ground) : NULL;
    const us_sensor_kind *kind = kinds ? kinds(&n_kind) : NULL;
    us_status status = US_OK;
    for (int32_t i = 0; interaction && i < n && !status; i++)
        status = add(spec, &interaction[i], place, err);
    for (int32_t i = 0; law && i < n_law && !status; i++)
        status = usi_add_soil_law(spec, &law[i], place, err);
    for (int32_t i = 0; ground && i < n_ground && !status; i++)
        status = usi_add_ground_model(spec, &ground[i], place, err);
    for (int32_t i = 0; kind && i < n_kind && !status; i++)
        status = usi_add_sensor_kind(spec, &kind[i], place, err);
    *out_n = (interaction && n > 0 ? n : 0) + (law && n_law > 0 ? n_law : 0) +
             (ground && n_ground > 0 ? n_ground : 0) + (kind && n_kind > 0 ? n_kind : 0);
    return status;
}

us_status us_spec_load_plugin(us_spec *spec, const char *path, us_error *err) {
    if (err) memset(err, 0, sizeof *err);
    if (!spec || !path)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a path",
                            "us_spec_load_plugin: an argument is NULL");
    us_place place = {.file = path};
    // A name without a slash would be looked for among the system's libraries.
    char beside[4096];
    int length = snprintf(beside, sizeof beside, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (length < 0 || length >= (int)sizeof beside)
        return us_error_set(err, US_ERR_LIMIT, &place, "use a shorter path",
                            "the path of the plug-in is too long");

    // RTLD_NODELETE: the models' functions outlive the handle, which is given back at once.
    void *library = dlopen(beside, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *why = dlerror();
        return us_error_set(err, US_ERR_IO, &place,
                            "name a shared library that was built for this machine; see docs/interaction.md",
                            "the plug-in cannot be loaded: %.400s", why ? why : "no reason given");
    }
    const int32_t before = spec->n_interaction, laws = spec->n_soil_law, grounds = spec->n_ground_model,
                  kinds = spec->n_sensor_kind;
    int32_t n = 0;
    us_status status = add_all(spec, library, &place, &n, err);
    if (!status && n == 0)
        status = us_error_set(
            err, US_ERR_VALUE, &place, "return the array of models and set *out_n to their number",
            "the plug-in offers no interaction model, no law of soil and no ground model, nor a "
            "kind of sensor");
    // All of them or none.
    if (status) {
        spec->n_interaction = before;
        spec->n_soil_law = laws;
        spec->n_ground_model = grounds;
        spec->n_sensor_kind = kinds;
    }
    dlclose(library);
    return status;
}
