// Interaction models of one's own: made known to a spec one by one, or all those of a shared library.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "spec/spec.h"

// The models that are always there: usi_pair.model counts them first.
static const char *const builtin[] = {"compliant", "spring-damper"};

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
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++) {
        if (strcmp(model->name, builtin[i]) != 0) continue;
        return us_error_set(err, US_ERR_NAME, place, "choose another name",
                            "\"%.100s\" is a model of the library itself", model->name);
    }
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

// The function that lists the models. ISO C has no cast from an object pointer to a function pointer; POSIX
// promises that they look alike.
static us_plugin_function find_function(void *library) {
    void *symbol = dlsym(library, "us_plugin_interactions");
    us_plugin_function function = NULL;
    memcpy(&function, &symbol, sizeof function);
    return function;
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
    us_plugin_function function = find_function(library);
    us_status status = US_OK;
    int32_t n = 0, before = spec->n_interaction;
    const us_interaction *models = function ? function(&n) : NULL;
    if (!function) {
        status =
            us_error_set(err, US_ERR_NAME, &place,
                         "export const us_interaction *us_plugin_interactions(int32_t *out_n), marked US_API",
                         "the library has no function us_plugin_interactions");
    } else if (!models || n <= 0) {
        status = us_error_set(err, US_ERR_VALUE, &place,
                              "return the array of models and set *out_n to their number",
                              "the plug-in offers no interaction model");
    }
    for (int32_t i = 0; models && i < n && !status; i++)
        status = add(spec, &models[i], &place, err);
    // All of them or none.
    if (status) spec->n_interaction = before;
    dlclose(library);
    return status;
}
