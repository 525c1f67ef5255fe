// schema/scene.xsd, embedded by the build so that one program file is enough. Ended by 0, which the length
// does not count.
#ifndef USI_SPEC_SCHEMA_H
#define USI_SPEC_SCHEMA_H

#include <stddef.h>

extern const char usi_scene_xsd[];
extern const size_t usi_scene_xsd_length;

#endif
