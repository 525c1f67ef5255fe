// Any bytes as a scene file: read, compile, create, three steps. Nothing may crash, leak, hang or read what
// it should not.
#include <stddef.h>
#include <stdint.h>

#include "understudy/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    us_load_def def = us_load_def_default();
    def.skip_meshes = true;
    def.skip_plugins = true;
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_sim *sim = NULL;
    us_error err;
    // The directory does not exist, so that no file beside the scene is ever found.
    us_status status =
        us_spec_load_text((const char *)data, size, "/nowhere/fuzz/scene.xml", &def, &spec, &err);
    if (!status) status = us_model_compile(spec, NULL, &model, &err);
    if (!status) status = us_sim_create(model, NULL, &sim, &err);
    for (int i = 0; i < 3 && !status; i++)
        status = us_sim_step(sim, NULL);
    us_sim_destroy(sim);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return 0;
}
