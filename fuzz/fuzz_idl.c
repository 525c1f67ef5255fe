// Any bytes as an IDL file, which may include itself. What is read must be sound: every type has members,
// its depth is bounded, and a sample without values can be written, read and printed.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_interface.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_interface(data, size, "fuzz.idl");
    return 0;
}
