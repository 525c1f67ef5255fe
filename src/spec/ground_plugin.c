// Deformable ground of one's own: made known to a spec.
#include <string.h>

#include "spec/soil_plugin.h"

int32_t usi_find_ground_model(const us_spec *spec, const char *name) {
    for (int32_t i = 0; i < spec->n_ground_model; i++) {
        if (strcmp(spec->ground_model[i].name, name) == 0) return i;
    }
    return -1;
}

// What comes first is looked at first: another version may have placed the rest elsewhere.
static us_status check_ground_model(const us_spec *spec, const us_ground_model *model, const us_place *place,
                                    us_error *err) {
    if (model->abi != US_GROUND_MODEL_ABI || model->size != (int32_t)sizeof *model)
        return us_error_set(err, US_ERR_VALUE, place,
                            "build it with the headers of this library: .abi = US_GROUND_MODEL_ABI, .size = "
                            "sizeof(us_ground_model)",
                            "a ground model has abi %d and size %d, but this library knows abi %d and size "
                            "%d",
                            (int)model->abi, (int)model->size, US_GROUND_MODEL_ABI, (int)sizeof *model);
    if (!model->name || !model->name[0])
        return us_error_set(err, US_ERR_NAME, place, "give it the name that bed-model=\"...\" will use",
                            "a ground model has no name");
    if (!model->act)
        return us_error_set(err, US_ERR_VALUE, place, "set its member act",
                            "the ground model \"%.100s\" has no function act", model->name);
    if (model->n_state < 0 || model->n_state > US_GROUND_STATE)
        return us_error_set(err, US_ERR_VALUE, place, "keep fewer numbers: n_state is at most 64",
                            "the ground model \"%.100s\" has a state of %d numbers", model->name,
                            (int)model->n_state);
    if (model->n_column_state < 0 || model->n_column_state > US_GROUND_COLUMN_STATE)
        return us_error_set(err, US_ERR_VALUE, place, "keep fewer numbers: n_column_state is at most 16",
                            "the ground model \"%.100s\" has %d numbers for each column", model->name,
                            (int)model->n_column_state);
    bool is_taken = usi_is_builtin_model(model->name) || usi_find_soil_law(spec, model->name) >= 0;
    for (int32_t i = 0; i < spec->n_interaction; i++)
        is_taken = is_taken || strcmp(spec->interaction[i].name, model->name) == 0;
    if (is_taken)
        return us_error_set(err, US_ERR_NAME, place, "give each model its own name",
                            "there is another model \"%.100s\" already", model->name);
    return US_OK;
}

static bool is_same_model(const us_ground_model *a, const us_ground_model *b) {
    return a->act == b->act && a->settle == b->settle && a->check == b->check && a->user == b->user &&
           a->n_state == b->n_state && a->n_column_state == b->n_column_state &&
           a->is_flowing == b->is_flowing;
}

us_status usi_add_ground_model(us_spec *spec, const us_ground_model *model, const us_place *place,
                               us_error *err) {
    us_status status = check_ground_model(spec, model, place, err);
    if (status) return status;
    int32_t known = usi_find_ground_model(spec, model->name);
    if (known >= 0)
        return is_same_model(&spec->ground_model[known], model)
                   ? US_OK
                   : us_error_set(err, US_ERR_NAME, place, "give each model its own name",
                                  "there is another ground model \"%.100s\" already", model->name);
    bool ok = true;
    us_ground_model copy = *model;
    status = usi_grow(&spec->texts.allocator, (void **)&spec->ground_model, spec->n_ground_model,
                      &spec->cap_ground_model, sizeof copy);
    if (!status) copy.name = usi_arena_text(&spec->texts, model->name, &ok);
    if (status || !ok)
        return us_error_set(err, US_ERR_MEMORY, place, "free memory",
                            "there is no memory for the ground model \"%.100s\"", model->name);
    spec->ground_model[spec->n_ground_model++] = copy;
    return US_OK;
}

us_status us_spec_add_ground_model(us_spec *spec, const us_ground_model *model, us_error *err) {
    if (err) memset(err, 0, sizeof *err);
    if (!spec || !model)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a model",
                            "us_spec_add_ground_model: an argument is NULL");
    return usi_add_ground_model(spec, model, NULL, err);
}
