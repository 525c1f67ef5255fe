// Robots for a spec that is there already: read like any other, then joined to it.
#ifndef USI_SPEC_SPAWN_H
#define USI_SPEC_SPAWN_H

#include <libxml/tree.h>

#include "spec/spec.h"

// What a robot is, where it stands and how it is called. Of file and xml one is NULL.
typedef struct usi_robot_source {
    const char *name;
    const char *file;            // "PATH" of a robot file or a scene, "PATH#ROBOT" of one of a scene's robots
    const char *xml;             // a URDF, a <scene>, or its element <robot>
    const char *namespace_;      // NULL: as the source says
    const char *tags;            // NULL: as the source says
    double position[3], rpy[3];  // m, rad: of its root in the world
    bool has_base, is_fixed;     // has_base: is_fixed says how it stands; else the source, of a URDF floating
} usi_robot_source;

// Adds the robot with all it has, and the materials that the spec does not know. Names of files begin at the
// directory of the scene; files are opened in the directories of the scene, of its robots' files and of the
// search path. US_ERR_ACCESS: it names one elsewhere. US_ERR_NAME: a name is taken, or there is no such
// robot. On failure the spec may have parts of it, and is of no use.
us_status usi_spec_add_robot(us_spec *spec, const usi_robot_source *source, us_error *err);

// spec_join.c: all groups of `from` with what belongs to them become groups of `to` that were added. What
// belongs to the world itself stays behind. Both stay.
us_status usi_spec_join(us_spec *to, const us_spec *from, us_error *err);

// A load that wants one robot of a scene alone, in another place and by another name.
typedef struct usi_robot_pick {
    const usi_robot_source *source;
    const char *robot;  // of a scene with several; NULL: it has one
    const char *text;   // of the robot file "*"; NULL: there is none
} usi_robot_pick;
#define USI_PICK_INLINE "*"

struct usi_reader;
// scene_pick.c: of an expanded scene all goes but the robot, and what robots refer to.
us_status usi_scene_pick(struct usi_reader *reader, xmlDoc *doc);

#endif
