// The joints of a robot description (URDF), read in place: what the switch needs of it, without a tree.
//
// Names and values are taken as they are written; entities (&amp;) are not replaced. Comments are passed
// over.
#ifndef USI_WIRE_DESCRIPTION_H
#define USI_WIRE_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>

enum { USI_DESCRIPTION_NAME = 64, USI_DESCRIPTION_TYPE = 16 };

typedef struct usi_description_joint {
    char name[USI_DESCRIPTION_NAME];
    char type[USI_DESCRIPTION_TYPE];  // "revolute", "continuous", ...
    double effort;                    // of its <limit>, N m or N; 0: it has none
} usi_description_joint;

// The next joint with a name and a type from *io_at on, which begins at 0; false at the end, or where the
// text is cut off. A joint whose name or type does not fit is passed over.
bool usi_description_next(const char *text, size_t length, size_t *io_at, usi_description_joint *out);
bool usi_description_find(const char *text, size_t length, const char *name, usi_description_joint *out);

#endif
