// Any bytes as a URDF file: read, compile, create, three steps. Nothing may crash, leak, hang or read what it
// should not.
#include <stddef.h>
#include <stdint.h>

#include "understudy/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    us_load_def def = us_load_def_default();
    // The first byte's lowest bit chooses the base; "<" is even, so that plain files have a fixed one.
    def.base = size > 0 && data[0] & 1 ? US_BASE_FLOATING : US_BASE_FIXED;
    def.skip_meshes = true;
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_sim *sim = NULL;
    us_error err;
    size_t skip = size > 0 && data[0] & 1 ? 1 : 0;
    us_status status =
        us_spec_load_text((const char *)data + skip, size - skip, "fuzz.urdf", &def, &spec, &err);
    if (!status) status = us_model_compile(spec, NULL, &model, &err);
    if (!status) status = us_sim_create(model, NULL, &sim, &err);
    for (int i = 0; i < 3 && !status; i++)
        status = us_sim_step(sim, NULL);
    us_sim_destroy(sim);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return 0;
}
