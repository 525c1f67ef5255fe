// Laws of soil of one's own: made known to a spec.
#include "spec/soil_plugin.h"

#include <string.h>

int32_t usi_find_soil_law(const us_spec *spec, const char *name) {
    for (int32_t i = 0; i < spec->n_soil_law; i++) {
        if (strcmp(spec->soil_law[i].name, name) == 0) return i;
    }
    return -1;
}

// What comes first is looked at first: another version may have placed the rest elsewhere.
static us_status check_head(const us_soil_law *law, const us_place *place, us_error *err) {
    if (law->abi != US_SOIL_LAW_ABI || law->size != (int32_t)sizeof *law)
        return us_error_set(err, US_ERR_VALUE, place,
                            "build it with the headers of this library: .abi = US_SOIL_LAW_ABI, .size = "
                            "sizeof(us_soil_law)",
                            "a law of soil has abi %d and size %d, but this library knows abi %d and size %d",
                            (int)law->abi, (int)law->size, US_SOIL_LAW_ABI, (int)sizeof *law);
    if (!law->name || !law->name[0])
        return us_error_set(err, US_ERR_NAME, place, "give it the name that <pair model=\"...\"> will use",
                            "a law of soil has no name");
    return US_OK;
}

static us_status fail_twice(const char *name, const us_place *place, us_error *err) {
    return us_error_set(err, US_ERR_NAME, place, "give each model its own name",
                        "there is another model \"%.100s\" already", name);
}

static us_status fail_memory(const char *name, const us_place *place, us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, place, "free memory",
                        "there is no memory for the model \"%.100s\"", name);
}

static us_status check_law(const us_spec *spec, const us_soil_law *law, const us_place *place,
                           us_error *err) {
    us_status status = check_head(law, place, err);
    if (status) return status;
    if (!law->act)
        return us_error_set(err, US_ERR_VALUE, place, "set its member act",
                            "the law of soil \"%.100s\" has no function", law->name);
    if (law->n_state < 0 || law->n_state > US_SOIL_LAW_STATE)
        return us_error_set(err, US_ERR_VALUE, place, "keep fewer numbers: n_state is at most 16",
                            "the law of soil \"%.100s\" has a state of %d numbers", law->name,
                            (int)law->n_state);
    bool is_taken = usi_is_builtin_model(law->name) || usi_find_ground_model(spec, law->name) >= 0;
    for (int32_t i = 0; i < spec->n_interaction; i++)
        is_taken = is_taken || strcmp(spec->interaction[i].name, law->name) == 0;
    return is_taken ? fail_twice(law->name, place, err) : US_OK;
}

us_status usi_add_soil_law(us_spec *spec, const us_soil_law *law, const us_place *place, us_error *err) {
    us_status status = check_law(spec, law, place, err);
    if (status) return status;
    int32_t known = usi_find_soil_law(spec, law->name);
    if (known >= 0) {
        const us_soil_law *have = &spec->soil_law[known];
        bool is_same = have->act == law->act && have->user == law->user && have->n_state == law->n_state;
        return is_same ? US_OK : fail_twice(law->name, place, err);
    }
    bool ok = true;
    us_soil_law copy = *law;
    if (usi_grow(&spec->texts.allocator, (void **)&spec->soil_law, spec->n_soil_law, &spec->cap_soil_law,
                 sizeof copy))
        return fail_memory(law->name, place, err);
    copy.name = usi_arena_text(&spec->texts, law->name, &ok);
    if (!ok) return fail_memory(law->name, place, err);
    spec->soil_law[spec->n_soil_law++] = copy;
    return US_OK;
}

us_status us_spec_add_soil_law(us_spec *spec, const us_soil_law *law, us_error *err) {
    if (err) memset(err, 0, sizeof *err);
    if (!spec || !law)
        return us_error_set(err, US_ERR_ARG, NULL, "pass a spec and a law",
                            "us_spec_add_soil_law: an argument is NULL");
    return usi_add_soil_law(spec, law, NULL, err);
}
