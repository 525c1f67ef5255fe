// Every broken scene file gets its own clear error: status, line, message and remedy.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "understudy/model.h"

typedef struct bad_file {
    const char *file;
    us_status status;
    int32_t line;
    const char *message;     // a part of it
    const char *suggestion;  // a part of the remedy; NULL: any remedy will do
} bad_file;

static const bad_file bad_files[] = {
    {"attribute-twice.xml", US_ERR_SYNTAX, 3, "Attribute step redefined", NULL},
    {"attribute-unquoted.xml", US_ERR_SYNTAX, 3, "the value of an attribute is not in quotes", NULL},
    {"axes-parallel.xml", US_ERR_VALUE, 5, "its two axes are parallel or 0", NULL},
    {"axis-zero.xml", US_ERR_VALUE, 5, "axis: it has no direction", NULL},
    {"axis2-misplaced.xml", US_ERR_VALUE, 6, "axis2: a revolute joint has no second axis", NULL},
    {"bad-encoding.xml", US_ERR_SYNTAX, 2, "the text is not valid UTF-8", NULL},
    {"base-of-hanging-object.xml", US_ERR_TREE, 3, "base: the object hangs on its own joints and has no base",
     NULL},
    {"battery-capacity-missing.xml", US_ERR_SCHEMA, 9, "<battery> lacks the attribute \"capacity\"", NULL},
    {"battery-capacity-zero.xml", US_ERR_VALUE, 9, "capacity: \"0\" is not greater than 0", NULL},
    {"battery-twice.xml", US_ERR_SCHEMA, 10, "there are two <battery> (the first in line 9)", NULL},
    {"battery-unit.xml", US_ERR_VALUE, 9,
     "capacity: \"W\" is the unit of a power, but an energy is needed here", "J kJ Wh kWh"},
    {"billion-laughs.xml", US_ERR_SYNTAX, 2,
     "the entity \"b\" is made of other entities: such nested entities are ref", NULL},
    {"binary.xml", US_ERR_SYNTAX, 1, "the file is binary, not XML text", NULL},
    {"blank.xml", US_ERR_SYNTAX, 1, "the file is empty", NULL},
    {"clock-rate-negative.xml", US_ERR_VALUE, 3, "clock-rate: \"-1 Hz\" is negative", NULL},
    {"commas.xml", US_ERR_VALUE, 3, "gravity: the numbers are separated by \",\"", NULL},
    {"content-in-leaf.xml", US_ERR_SCHEMA, 3, "<step> is not allowed in <world>", NULL},
    {"control-character.xml", US_ERR_SYNTAX, 3, "invalid character in attribute value", NULL},
    {"coupling-factor-zero.xml", US_ERR_VALUE, 10, "factor: 0 couples nothing", NULL},
    {"coupling-name-twice.xml", US_ERR_NAME, 9, "the name is used already in line 8", NULL},
    {"coupling-same-joint.xml", US_ERR_NAME, 11, "the same coordinate occurs twice in the coupling", NULL},
    {"coupling-too-long.xml", US_ERR_LIMIT, 22, "a coupling has at most 8 terms", NULL},
    {"coupling-unknown-joint.xml", US_ERR_NAME, 10, "there is no joint \"rod/elbo\"",
     "did you mean \"rod/elbow\"?"},
    {"coupling-without-term.xml", US_ERR_SCHEMA, 8, "<coupling> is not complete", NULL},
    {"damping-negative.xml", US_ERR_VALUE, 6, "damping: \"-1\" is negative", NULL},
    {"deep-nesting.xml", US_ERR_SYNTAX, 3, "the elements are nested more than 256 deep", NULL},
    {"default-bad-value.xml", US_ERR_VALUE, 4, "damping: \"-1\" is negative", NULL},
    {"default-twice.xml", US_ERR_NAME, 4, "the default is defined in line 3 already", NULL},
    {"density-and-inertial.xml", US_ERR_SCHEMA, 3, "both density and <inertial> give the mass", NULL},
    {"density-of-plane.xml", US_ERR_MASS, 3, "density: the half-space has no volume", NULL},
    {"density-without-shape.xml", US_ERR_MASS, 3, "density: the link has no shape", NULL},
    {"density-zero.xml", US_ERR_VALUE, 3, "density: \"0\" is not greater than 0", NULL},
    {"dh-and-xyz.xml", US_ERR_VALUE, 5, "xyz: the joint has <dh>, which gives its frame and axis", NULL},
    {"dh-of-ball.xml", US_ERR_VALUE, 6, "a spherical joint has no Denavit-Hartenberg parameters", NULL},
    {"division-by-zero.xml", US_ERR_VALUE, 4, "in ${1/n}: division by zero", NULL},
    {"doctype.xml", US_ERR_SYNTAX, 2, "the file has a DOCTYPE, which is refused", NULL},
    {"drive-coordinate.xml", US_ERR_VALUE, 8, "a revolute joint has no coordinate 1", NULL},
    {"drive-full-name-inside.xml", US_ERR_NAME, 8, "\"rod\" has no joint \"rod/shoulder\"",
     "did you mean \"shoulder\"?"},
    {"drive-gain-negative.xml", US_ERR_VALUE, 8, "kp: \"-1\" is negative", NULL},
    {"drive-name-twice.xml", US_ERR_NAME, 9, "the name is used twice", NULL},
    {"drive-of-fixed-joint.xml", US_ERR_VALUE, 4,
     "\"arm/fixed_base\" is a fixed joint, which has no single coordinates", NULL},
    {"drive-short-name-outside.xml", US_ERR_NAME, 9, "there is no joint \"shoulder\"", NULL},
    {"drive-unknown-joint.xml", US_ERR_NAME, 8, "\"rod\" has no joint \"shouder\"",
     "did you mean \"shoulder\"?"},
    {"duration-negative.xml", US_ERR_VALUE, 3, "duration: \"-5 s\" is negative", NULL},
    {"element-order.xml", US_ERR_SCHEMA, 9, "<b> is in the wrong place in <loop>, or once too often", NULL},
    {"empty.xml", US_ERR_SYNTAX, 1, "the file is empty", NULL},
    {"exclude-itself.xml", US_ERR_VALUE, 4, "both links are \"a/l\"", NULL},
    {"exclude-unknown-link.xml", US_ERR_NAME, 4, "there is no link \"a/m\"", "did you mean \"a/l\"?"},
    {"expression-of-text.xml", US_ERR_VALUE, 4, "the parameter \"who\" is \"arm\", which is not a number",
     NULL},
    {"expression-open.xml", US_ERR_SYNTAX, 3, "\"${1+1\" has no closing brace", NULL},
    {"expression-syntax.xml", US_ERR_SYNTAX, 3,
     "in ${2*(3+4}: a closing parenthesis is missing at \"the end\"", NULL},
    {"external-dtd.xml", US_ERR_SYNTAX, 2,
     "the DOCTYPE names an external file (\"http://127.0.0.1/scene.dtd\"): ext", NULL},
    {"external-entity.xml", US_ERR_SYNTAX, 2,
     "the DOCTYPE names an external file (\"file:///etc/passwd\"): external en", NULL},
    {"field-count.xml", US_ERR_VALUE, 3, "heights: 2 x 3 = 6 heights are needed, 4 given", NULL},
    {"field-division-by-zero.xml", US_ERR_VALUE, 3, "in \"1/x\": division by zero", NULL},
    {"field-expression-syntax.xml", US_ERR_SYNTAX, 3,
     "in \"2*(x+1\": a closing parenthesis is missing at \"the end\"", NULL},
    {"field-file-missing.xml", US_ERR_IO, 3, "nowhere.csv\" does not exist", NULL},
    {"field-file-word.xml", US_ERR_VALUE, 3, "heights-bad.csv: \"low\" is not a finite number (line 3 of it)",
     NULL},
    {"field-not-finite.xml", US_ERR_VALUE, 3, "in \"log(x)\": log(-0.5) is not a finite number", NULL},
    {"field-nothing.xml", US_ERR_SCHEMA, 3, "nothing gives the heights", NULL},
    {"field-one-argument.xml", US_ERR_SYNTAX, 3,
     "in \"max(x)\": a comma and a second number are missing at \")\"", NULL},
    {"field-one-sample.xml", US_ERR_VALUE, 3, "nx, ny: 1 x 3 samples span no surface", NULL},
    {"field-spacing-missing.xml", US_ERR_SCHEMA, 3, "the attribute \"dy\" is missing", NULL},
    {"field-spacing-zero.xml", US_ERR_VALUE, 3, "dx: \"0\" is not greater than 0", NULL},
    {"field-too-large.xml", US_ERR_LIMIT, 3, "nx, ny: 10000000000 samples are more than 16000000", NULL},
    {"field-too-many.xml", US_ERR_LIMIT, 3, "heights: there are more than 4 numbers", NULL},
    {"field-two-ways.xml", US_ERR_SCHEMA, 3, "more than one attribute gives the heights", NULL},
    {"field-unknown-function.xml", US_ERR_NAME, 3, "there is no function \"sine\"", NULL},
    {"field-unknown-name.xml", US_ERR_NAME, 3, "expression: \"z\" is not known", NULL},
    {"function-in-parameter.xml", US_ERR_VALUE, 3, "in \"sqrt(0-1)\": sqrt(-1) is not a finite number", NULL},
    {"half-space-moves.xml", US_ERR_VALUE, 3, "a half-space cannot move", NULL},
    {"height-field-moves.xml", US_ERR_VALUE, 3, "a height-field cannot move", NULL},
    {"hexadecimal.xml", US_ERR_VALUE, 3, "duration: \"x10\" is neither a number nor a known unit", NULL},
    {"huge-number.xml", US_ERR_VALUE, 3, "gravity: \"-1e400\" is too large: numbers may go up to 1e15", NULL},
    {"include-broken.xml", US_ERR_SYNTAX, 5,
     "a tag is not finished: the name of an attribute is expected here", NULL},
    {"include-circle.xml", US_ERR_NAME, 3,
     "the include of \"../include-circle.xml\" goes in a circle: that file is ", NULL},
    {"include-directory.xml", US_ERR_IO, 3, "parts\" is a directory, not a file", NULL},
    {"include-itself.xml", US_ERR_NAME, 3,
     "the include of \"include-itself.xml\" goes in a circle: that file is bei", NULL},
    {"include-missing-file.xml", US_ERR_IO, 3, "nowhere.xml\" does not exist", NULL},
    {"include-robot.xml", US_ERR_SCHEMA, 1, "the file has the root <robot>, not <scene>", NULL},
    {"inertia-count.xml", US_ERR_VALUE, 3, "inertia: 3 or 6 numbers are needed, 4 given", NULL},
    {"inertia-impossible.xml", US_ERR_MASS, 3, "inertia: no body can have these moments", NULL},
    {"infinite.xml", US_ERR_VALUE, 3, "step: \"inf\" is not a finite number", NULL},
    {"intersection-of-field.xml", US_ERR_VALUE, 3, "part 0 of an intersection is of kind height-field", NULL},
    {"joint-circle.xml", US_ERR_TREE, 3, "the joints of the object go in a circle", NULL},
    {"joint-name-twice.xml", US_ERR_NAME, 9, "the name is used twice", NULL},
    {"level-unknown-link.xml", US_ERR_NAME, 4, "\"r\" has no link \"nothing\"", NULL},
    {"level-word.xml", US_ERR_VALUE, 4, "value: \"high\" is not a finite number", NULL},
    {"limit-alone.xml", US_ERR_VALUE, 6, "only one of the two limits is given", NULL},
    {"limits-of-ball.xml", US_ERR_VALUE, 5, "a spherical joint has no limits", NULL},
    {"limits-reversed.xml", US_ERR_VALUE, 6, "the lower limit 1 is above the upper limit -1", NULL},
    {"link-name-twice.xml", US_ERR_NAME, 3, "the link name \"rod/l1\" is used twice, again in line 8", NULL},
    {"link-without-joint.xml", US_ERR_TREE, 3, "no joint holds the link \"rod/lost\" (line 8)", NULL},
    {"locomotion-ackermann-without-steer.xml", US_ERR_VALUE, 9,
     "ackermann: there are 2 wheels, 0 of them with steer", "at least one wheel with steer"},
    {"locomotion-all-wheel-without-steer.xml", US_ERR_VALUE, 9,
     "all-wheel: there are 2 wheels, 1 of them with steer", "each with steer"},
    {"locomotion-drive-missing.xml", US_ERR_NAME, 11, "drive: the joint \"fixed_base\" has no drive",
     "<drive joint=\"fixed_base\""},
    {"locomotion-joint-slides.xml", US_ERR_VALUE, 11, "drive: \"lift\" is a prismatic joint", NULL},
    {"locomotion-joint-twice.xml", US_ERR_NAME, 11, "drive: the joint \"left\" belongs to another wheel",
     NULL},
    {"locomotion-joint-unknown.xml", US_ERR_NAME, 11, "\"cart\" has no joint \"rihgt\"",
     "did you mean \"right\"?"},
    {"locomotion-no-wheel.xml", US_ERR_VALUE, 9, "skid: there are 0 wheels, 0 of them with steer", NULL},
    {"locomotion-radius-missing.xml", US_ERR_SCHEMA, 10, "<wheel> lacks the attribute \"radius\"", NULL},
    {"locomotion-radius-zero.xml", US_ERR_VALUE, 10, "radius: \"0 m\" is not greater than 0", NULL},
    {"locomotion-skid-with-steer.xml", US_ERR_VALUE, 9, "skid: there are 3 wheels, 1 of them with steer",
     "without steer"},
    {"locomotion-speed-zero.xml", US_ERR_VALUE, 9, "max-speed: \"0\" is not greater than 0", NULL},
    {"locomotion-steer-itself.xml", US_ERR_NAME, 12, "drive and steer are the same joint", NULL},
    {"locomotion-track-scale.xml", US_ERR_VALUE, 9, "track-scale: wheels that steer do not slip sideways",
     NULL},
    {"locomotion-leg-of-wheels.xml", US_ERR_VALUE, 12, "a robot on wheels has no legs", "type=\"tripod\""},
    {"locomotion-step-of-wheels.xml", US_ERR_VALUE, 9, "step-height: wheels do not step", NULL},
    {"locomotion-tripod-duty.xml", US_ERR_VALUE, 9, "duty: with 0.5 a tripod would not stand", "above 0.5"},
    {"locomotion-tripod-height.xml", US_ERR_SCHEMA, 9, "body-height is missing", "body-height="},
    {"locomotion-tripod-joint-twice.xml", US_ERR_NAME, 10, "femur: the joint \"left\" is named before", NULL},
    {"locomotion-tripod-joint-slides.xml", US_ERR_VALUE, 10, "tibia: \"lift\" is a prismatic joint", NULL},
    {"locomotion-tripod-one-leg.xml", US_ERR_VALUE, 9, "tripod: there are 1 legs", "six <leg>"},
    {"locomotion-tripod-wheel.xml", US_ERR_VALUE, 11, "a tripod has no wheels", NULL},
    {"locomotion-twice.xml", US_ERR_SCHEMA, 13, "there are two <locomotion> (the first in line 9)", NULL},
    {"locomotion-unknown-type.xml", US_ERR_VALUE, 9, "type: invalid value \"akermann\"",
     "did you mean ackermann?"},
    {"loop-unknown-link.xml", US_ERR_NAME, 10, "\"rod\" has no link \"l9\"", "did you mean \"l1\"?"},
    {"loop-unknown-type.xml", US_ERR_VALUE, 8, "type: invalid value \"ball\"", NULL},
    {"loop-with-itself.xml", US_ERR_CONSTRAINT, 8, "the loop joins \"l2\" with itself", NULL},
    {"mass-negative.xml", US_ERR_MASS, 3, "mass: -1 is negative", NULL},
    {"massless-mesh.xml", US_ERR_MASS, 3, "density: the mesh \"nowhere.stl\" has no volume that is known",
     NULL},
    {"material-twice.xml", US_ERR_NAME, 4, "the material is defined already in", NULL},
    {"material-without-name.xml", US_ERR_SCHEMA, 3, "<material> lacks the attribute \"name\"", NULL},
    {"max-contact-negative.xml", US_ERR_VALUE, 3, "max-contact: -1 is negative", NULL},
    {"mesh-scale-zero.xml", US_ERR_VALUE, 3, "scale: 0 makes the mesh flat", NULL},
    {"mesh-without-file.xml", US_ERR_SCHEMA, 3, "the attribute \"file\" is missing", NULL},
    {"mismatched-tags.xml", US_ERR_SYNTAX, 4, "Opening and ending tag mismatch: object line 3 and scene",
     NULL},
    {"missing-attribute.xml", US_ERR_SCHEMA, 3, "<object> lacks the attribute \"name\"", NULL},
    {"motor-joint-missing.xml", US_ERR_NAME, 10, "joint: the joint \"fixed_base\" has no drive", NULL},
    {"motor-joint-twice.xml", US_ERR_NAME, 11, "the joint \"left\" has the motor \"LEFT\" already", NULL},
    {"motor-name-comma.xml", US_ERR_NAME, 10, "name: a motor cannot be called \"L,FT\"", NULL},
    {"motor-name-long.xml", US_ERR_NAME, 10, "name: a motor cannot be called \"RIGHT\"", "four letters"},
    {"motor-name-twice.xml", US_ERR_NAME, 11, "the name is used twice", NULL},
    {"line-name-long.xml", US_ERR_NAME, 10, "name: a line cannot be called \"LAMP1\"", NULL},
    {"line-name-twice.xml", US_ERR_NAME, 11, "the name is used twice", NULL},
    {"line-value-missing.xml", US_ERR_SCHEMA, 10, "it is not said what it reads", NULL},
    {"line-value-of-output.xml", US_ERR_SCHEMA, 10, "an output reads nothing", NULL},
    {"line-joint-missing.xml", US_ERR_SCHEMA, 10, "it is not said which joint it reads", NULL},
    {"line-joint-of-battery.xml", US_ERR_SCHEMA, 10, "it reads no joint", NULL},
    {"line-battery-missing.xml", US_ERR_NAME, 10, "value: it has no battery", NULL},
    {"motors-counts-zero.xml", US_ERR_VALUE, 9, "counts", NULL},
    {"motors-port-large.xml", US_ERR_VALUE, 9, "port: there is no port 65536", NULL},
    {"motors-port-missing.xml", US_ERR_SCHEMA, 9, "<motors> lacks the attribute \"port\"", NULL},
    {"motors-port-shared.xml", US_ERR_VALUE, 13, "port: 5010 is that of \"cart\"", NULL},
    {"motors-port-negative.xml", US_ERR_VALUE, 9, "port: there is no port -1", NULL},
    {"mujoco-root.xml", US_ERR_SCHEMA, 1, "a file with the root <mujoco> is neither a scene nor a robot",
     NULL},
    {"name-with-slash.xml", US_ERR_NAME, 3, "name: invalid value \"a/b\"", NULL},
    {"name-world.xml", US_ERR_NAME, 3, "\"world\" is the name of the world itself", NULL},
    {"namespace.xml", US_ERR_SCHEMA, 3, "scene files use no namespaces", NULL},
    {"nan.xml", US_ERR_VALUE, 3, "gravity: \"nan\" is not a finite number", NULL},
    {"network-base-unknown.xml", US_ERR_NAME, 9, "\"cart\" has no link \"bse\"", "did you mean \"base\"?"},
    {"network-base-world.xml", US_ERR_NAME, 9, "base: the world does not move", NULL},
    {"network-enabled-word.xml", US_ERR_VALUE, 9, "enabled: invalid boolean \"off\"", NULL},
    {"network-frame-prefix.xml", US_ERR_NAME, 9,
     "frame-prefix: \"/cart/\" cannot stand before the name of a frame", NULL},
    {"network-namespace-shared.xml", US_ERR_NAME, 11, "the namespace \"other\" is that of \"cart\" (line 9)",
     NULL},
    {"network-namespace.xml", US_ERR_NAME, 9, "namespace: \"/cart\" is no name of a ROS 2 namespace",
     "letters, digits and _"},
    {"network-node.xml", US_ERR_NAME, 9, "node: \"2fast\" is no name of a ROS 2 node", NULL},
    {"network-of-object.xml", US_ERR_SCHEMA, 4, "<network> is not allowed in <object>", NULL},
    {"network-timeout-negative.xml", US_ERR_VALUE, 9, "timeout: \"-1 s\" is negative", NULL},
    {"network-twice.xml", US_ERR_SCHEMA, 10, "there are two <network> (the first in line 9)", NULL},
    {"no-number.xml", US_ERR_VALUE, 3, "step: there is no number", NULL},
    {"no-version.xml", US_ERR_SCHEMA, 2, "the attribute \"version\" is missing", NULL},
    {"noise-memory-long.xml", US_ERR_VALUE, 5, "memory: 11 s is longer", "at most 10 s"},
    {"noise-memory-unit.xml", US_ERR_VALUE, 5,
     "memory: \"m\" is the unit of a length, but a time is needed here", NULL},
    {"noise-nameless.xml", US_ERR_SCHEMA, 5, "<noise> lacks the attribute \"of\"", NULL},
    {"noise-negative.xml", US_ERR_VALUE, 5, "deviation: \"-0.1\" is negative", NULL},
    {"noise-step-orientation.xml", US_ERR_VALUE, 5, "an orientation has no step", NULL},
    {"noise-step-word.xml", US_ERR_VALUE, 5, "step: \"coarse\" is not a finite number", NULL},
    {"noise-twice.xml", US_ERR_NAME, 6, "there is a <noise of=\"imu-rate\"> already, in line 5", NULL},
    {"noise-unit.xml", US_ERR_VALUE, 5,
     "deviation: \"m\" is the unit of a length, but a plain number is needed here", "without a unit"},
    {"noise-unknown.xml", US_ERR_VALUE, 5, "of: invalid value \"imu-rat\"", "did you mean imu-rate?"},
    {"not-a-number.xml", US_ERR_VALUE, 3, "gravity: \"down\" is neither a number nor a known unit", NULL},
    {"not-xml.xml", US_ERR_SYNTAX, 1, "this is not XML: there is no element", NULL},
    {"object-without-link.xml", US_ERR_TREE, 3, "the object has no link", NULL},
    {"pair-exponent.xml", US_ERR_VALUE, 3, "its exponent is 0.5", "from 1 (flat faces) to 4"},
    {"pair-exponent-text.xml", US_ERR_VALUE, 3, "its exponent is the text \"3/2\"", "write it as a number"},
    {"pair-friction-negative.xml", US_ERR_VALUE, 3, "friction: \"-1\" is negative", NULL},
    {"pair-friction-order.xml", US_ERR_VALUE, 3, "kinetic-friction: 0.6 is above the static friction 0.5",
     NULL},
    {"pair-friction-twice.xml", US_ERR_VALUE, 3, "both friction and a friction of its own kind", NULL},
    {"pair-mass-zero.xml", US_ERR_VALUE, 3, "assumed-mass: \"0\" is not greater than 0", NULL},
    {"pair-parameter.xml", US_ERR_NAME, 3, "spring-damper has no parameter \"exponant\"; known: exponent",
     "leave it out"},
    {"pair-restitution.xml", US_ERR_VALUE, 3, "restitution: 1.5 is above 1", NULL},
    {"pair-unit.xml", US_ERR_VALUE, 3,
     "torsion-radius: \"kg\" is the unit of a mass, but a length is needed her", NULL},
    {"pair-unknown-attribute.xml", US_ERR_SCHEMA, 3, "<pair> has no attribute \"statik-friction\"",
     "did you mean static-friction?"},
    {"pair-unknown-material.xml", US_ERR_NAME, 4, "b: there is no material \"rok\"", NULL},
    {"pair-unknown-model.xml", US_ERR_NAME, 3,
     "there is no interaction model \"magic\"; known: compliant, spring-damper", NULL},
    {"parameter-bomb.xml", US_ERR_LIMIT, 6, "the value with its parameters is longer than 4096 bytes", NULL},
    {"parameter-name.xml", US_ERR_NAME, 3, "a parameter cannot be called \"2fast\"", NULL},
    {"parameter-twice.xml", US_ERR_NAME, 4, "the parameter \"a\" is already defined in", NULL},
    {"plain-entity.xml", US_ERR_SYNTAX, 2, "the file declares the entity \"step\": entities are refused",
     NULL},
    {"plugin-missing-file.xml", US_ERR_IO, 3, "the plug-in cannot be loaded", NULL},
    {"property-key-twice.xml", US_ERR_NAME, 4, "the key \"k\" is used twice", NULL},
    {"property-not-a-number.xml", US_ERR_VALUE, 3, "value: \"hard\" is not a finite number", NULL},
    {"property-not-whole.xml", US_ERR_VALUE, 3, "value: invalid whole number \"1.5\"", NULL},
    {"property-unknown-type.xml", US_ERR_SCHEMA, 3, "<float> is not allowed in <material>", NULL},
    {"property-without-key.xml", US_ERR_SCHEMA, 3, "<number> lacks the attribute \"key\"", NULL},
    {"q-count.xml", US_ERR_VALUE, 6, "q: a revolute joint has 1 positions, but 2 numbers are given", NULL},
    {"q-quaternion-count.xml", US_ERR_VALUE, 5,
     "q: a spherical joint has 4 positions, but 3 numbers are given", NULL},
    {"q-wrong-unit.xml", US_ERR_VALUE, 6, "q: \"mm\" is the unit of a length, but an angle is needed here",
     NULL},
    {"record-index.xml", US_ERR_VALUE, 10, "a revolute joint has 1 positions", NULL},
    {"record-rate-negative.xml", US_ERR_VALUE, 9, "rate: \"-100 Hz\" is negative", NULL},
    {"record-unknown-joint.xml", US_ERR_NAME, 10, "there is no joint \"rod/elbw\"",
     "did you mean \"rod/elbow\"?"},
    {"record-unknown-value.xml", US_ERR_NAME, 10, "invalid value to record \"rod/elbow.speed\"", NULL},
    {"recursive-parameter.xml", US_ERR_NAME, 3, "the parameter \"a\" is defined by itself", NULL},
    {"repeat-bomb.xml", US_ERR_LIMIT, 3, "the copies would be more than 1000000 nodes", NULL},
    {"repeat-count-large.xml", US_ERR_VALUE, 3, "count: 10001 copies cannot be made", NULL},
    {"repeat-count-missing.xml", US_ERR_SCHEMA, 3, "the attribute \"count\" is missing", NULL},
    {"repeat-count-zero.xml", US_ERR_VALUE, 3, "count: 0 copies cannot be made", NULL},
    {"repeat-in-repeat.xml", US_ERR_SCHEMA, 4, "<repeat> is not allowed in <repeat>", NULL},
    {"repeat-include.xml", US_ERR_SCHEMA, 4, "<include> is not allowed in <repeat>", NULL},
    {"repeat-name-missing.xml", US_ERR_SCHEMA, 3, "<repeat> lacks the attribute \"name\"", NULL},
    {"repeat-name-taken.xml", US_ERR_NAME, 4, "the count cannot be called \"i\"", NULL},
    {"repeat-outside.xml", US_ERR_NAME, 6, "there is no parameter \"i\"", NULL},
    {"repeat-same-name.xml", US_ERR_NAME, 4, "the name \"b\" is used already in", NULL},
    {"repeat-start-far.xml", US_ERR_VALUE, 3, "start: 1000001 is too far from 0", NULL},
    {"repeat-unknown-attribute.xml", US_ERR_SCHEMA, 3, "<repeat> has no attribute \"cuont\"",
     "name count start"},
    {"robot-fixed-base-velocity.xml", US_ERR_VALUE, 4,
     "\"arm\" has no floating base that could have a velocity", NULL},
    {"robot-is-scene.xml", US_ERR_SCHEMA, 3, "the file is a scene, not a robot", NULL},
    {"robot-joint-twice.xml", US_ERR_NAME, 5, "the joint is changed in line 4 already", NULL},
    {"robot-missing-file.xml", US_ERR_IO, 3, "nowhere.urdf\" does not exist", NULL},
    {"robot-name-twice.xml", US_ERR_NAME, 4, "the name \"arm\" is used already in", NULL},
    {"robot-unknown-joint.xml", US_ERR_NAME, 4, "\"arm\" has no joint \"hinges\"", "did you mean \"hinge\"?"},
    {"rpy-and-quat.xml", US_ERR_VALUE, 3, "both rpy and quat give the orientation", NULL},
    {"seed-negative.xml", US_ERR_VALUE, 3, "seed: invalid number \"-1\"", NULL},
    {"shape-colour.xml", US_ERR_VALUE, 3, "rgba: 255 is not between 0 and 1", NULL},
    {"shape-cone-size.xml", US_ERR_VALUE, 3, "size: 2 numbers are needed, 1 given", NULL},
    {"shape-group-too-large.xml", US_ERR_VALUE, 3, "group: invalid number \"4294967296\"", NULL},
    {"shape-inside-box.xml", US_ERR_SCHEMA, 3, "a box has no shapes inside it", NULL},
    {"shape-level-word.xml", US_ERR_VALUE, 3, "level: \"fine\" is not a finite number", NULL},
    {"shape-margin-negative.xml", US_ERR_VALUE, 3, "margin: \"-1 mm\" is negative", NULL},
    {"shape-mask-word.xml", US_ERR_VALUE, 3, "mask: invalid number \"all\"", NULL},
    {"shape-not-boolean.xml", US_ERR_VALUE, 3, "visual: invalid boolean \"yes\"", NULL},
    {"shape-part-error-of-box.xml", US_ERR_VALUE, 3, "part-error: a box has none", NULL},
    {"shape-points-and-file.xml", US_ERR_VALUE, 3, "both file and points give the shape", NULL},
    {"shape-points-count.xml", US_ERR_VALUE, 3, "points: 4 points are needed, but 9 numbers are given", NULL},
    {"shape-points-flat.xml", US_ERR_VALUE, 3,
     "4 points lie in a plane, on a line or in one place: their hull has no ", NULL},
    {"shape-points-missing.xml", US_ERR_SCHEMA, 3, "the attribute \"points\" is missing", NULL},
    {"shape-points-of-box.xml", US_ERR_VALUE, 3, "points: a box has none", NULL},
    {"shape-points-word.xml", US_ERR_VALUE, 3, "points: \"zero\" is not a finite number (line 1 of it)",
     NULL},
    {"shape-size-count.xml", US_ERR_VALUE, 3, "size: 3 numbers are needed, 2 given", NULL},
    {"shape-size-missing.xml", US_ERR_SCHEMA, 3, "the attribute \"size\" is missing", NULL},
    {"shape-size-of-plane.xml", US_ERR_VALUE, 3, "size: a plane has none", NULL},
    {"shape-size-zero.xml", US_ERR_VALUE, 3, "size: 0 is not a length of a shape", NULL},
    {"shape-surface-unknown.xml", US_ERR_NAME, 3, "surface: there is no material \"ruber\"",
     "did you mean \"rubber\"?"},
    {"shape-unknown-type.xml", US_ERR_VALUE, 3, "type: invalid value \"sphre\"", "did you mean sphere?"},
    {"sky-date-broken.xml", US_ERR_VALUE, 3, "date: invalid date \"18.11.2026\"", "2026-11-18T12:00:00Z"},
    {"sky-date-zone.xml", US_ERR_VALUE, 3, "date: invalid date \"2026-11-18T12:00:00+01:00\"", "write UTC"},
    {"sky-date-without-planet.xml", US_ERR_VALUE, 3, "date without a planet means nothing", NULL},
    {"sky-heading-unit.xml", US_ERR_VALUE, 3,
     "heading: \"m\" is the unit of a length, but an angle is needed here", NULL},
    {"sky-latitude-alone.xml", US_ERR_VALUE, 3, "longitude is missing beside latitude", NULL},
    {"sky-latitude-degrees.xml", US_ERR_VALUE, 3, "latitude: 40.2 rad is beyond the pole",
     "write it in degrees, as 40.2 deg"},
    {"sky-latitude-without-planet.xml", US_ERR_VALUE, 3, "latitude without a planet means nothing",
     "planet="},
    {"sky-longitude-alone.xml", US_ERR_VALUE, 3, "latitude is missing beside longitude", NULL},
    {"sky-longitude-degrees.xml", US_ERR_VALUE, 3, "longitude: 111.5 rad is more than a turn", NULL},
    {"sky-place-of-no-ground.xml", US_ERR_VALUE, 3, "planet: no ground says where the world lies",
     "latitude="},
    {"sky-planet-unknown.xml", US_ERR_VALUE, 3, "planet: invalid value \"pluto\"", NULL},
    {"solver-unknown.xml", US_ERR_VALUE, 3, "solver: invalid value \"newtn\"", "did you mean newton?"},
    {"some-units.xml", US_ERR_VALUE, 3, "xyz: some of the numbers have a unit and others have none", NULL},
    {"step-long.xml", US_ERR_VALUE, 3, "step: 60 s is too long", NULL},
    {"step-negative.xml", US_ERR_VALUE, 3, "step: \"-1 ms\" is not greater than 0", NULL},
    {"step-zero.xml", US_ERR_VALUE, 3, "step: \"0\" is not greater than 0", NULL},
    {"stiffness-of-ball.xml", US_ERR_VALUE, 5, "a spherical joint has no spring", NULL},
    {"surface-changes-nothing.xml", US_ERR_SCHEMA, 4, "the <surface> changes nothing", NULL},
    {"surface-unknown-link.xml", US_ERR_NAME, 5, "\"r\" has no link \"nothing*\"", NULL},
    {"surface-unknown-material.xml", US_ERR_NAME, 4, "surface: there is no material \"m\"", NULL},
    {"text-content.xml", US_ERR_SCHEMA, 3, "<world> has text in it, which is not allowed", NULL},
    {"tolerance-zero.xml", US_ERR_VALUE, 3, "tolerance: \"0\" is not greater than 0", NULL},
    {"too-few-numbers.xml", US_ERR_VALUE, 3, "gravity: 3 numbers are needed, 2 given", NULL},
    {"too-many-numbers.xml", US_ERR_VALUE, 3, "gravity: at most 3 numbers are possible here, 4 are given",
     NULL},
    {"topic-rate-negative.xml", US_ERR_VALUE, 10, "rate: \"-5 Hz\" is negative", NULL},
    {"topic-rate-unit.xml", US_ERR_VALUE, 10,
     "rate: \"ms\" is the unit of a time, but a frequency is needed here", NULL},
    {"topic-twice.xml", US_ERR_NAME, 11,
     "the topic \"/cart/odom\" is published twice: from \"odom\" and from \"odom\"", NULL},
    {"topic-nameless.xml", US_ERR_SCHEMA, 5, "neither source nor name is given", "source="},
    {"topic-unknown.xml", US_ERR_NAME, 5, "there is no topic \"joint_state\"",
     "did you mean \"joint_states\"?"},
    {"topic-unknown-far.xml", US_ERR_NAME, 5, "there is no topic \"camera/image_raw\"",
     "source=\"odom\" name="},
    {"topic-unknown-source.xml", US_ERR_NAME, 5, "\"odomm\"", "\"odom\""},
    {"topic-bad-name.xml", US_ERR_NAME, 5, "name: \"wheel odometry\" is no name of a topic", NULL},
    {"topic-name-taken.xml", US_ERR_NAME, 5,
     "the topic \"/cart/joint_states\" is published twice: from \"joint_states\" and from \"imu\"",
     "the rate 0"},
    {"topic-command.xml", US_ERR_NAME, 5, "the topic \"/cart/cmd_vel\" is what the robot listens to", NULL},
    {"topic-clock.xml", US_ERR_NAME, 5, "the topic \"/clock\" is the simulation's clock", NULL},
    {"topic-of-simulator.xml", US_ERR_NAME, 5, "the topic \"/understudy/status\" is the simulator's own",
     NULL},
    {"topic-of-another-robot.xml", US_ERR_NAME, 6,
     "the topic \"/other/joint_states\" is another robot's, with samples of sensor_msgs/msg/JointState",
     NULL},
    {"sensor-without-link.xml", US_ERR_SCHEMA, 4, "<sensor> lacks the attribute \"link\"", NULL},
    {"sensor-unknown-link.xml", US_ERR_NAME, 4, "\"cart\" has no link \"bas\"", "did you mean \"base\"?"},
    {"sensor-on-world.xml", US_ERR_NAME, 4, "link: the world has no sensors", NULL},
    {"sensor-unknown-type.xml", US_ERR_VALUE, 4, "type: invalid value \"gps\"", "imu"},
    {"sensor-name-twice.xml", US_ERR_NAME, 5, "the name \"a\" is used twice", NULL},
    {"sensor-name-of-source.xml", US_ERR_NAME, 4, "name: \"odom\" is published on odom", NULL},
    {"sensor-bad-name.xml", US_ERR_NAME, 4, "name: \"a-b\" is no name of a sensor", NULL},
    {"sensor-frame-of-link.xml", US_ERR_NAME, 4, "name: a link of the robot is called \"fork\"", NULL},
    {"sensor-rate-negative.xml", US_ERR_VALUE, 4, "rate: \"-1 Hz\" is negative", NULL},
    {"sensor-noise-unit.xml", US_ERR_VALUE, 4, "spin-noise: \"m/s^2\" is the unit of an acceleration",
     "rad/s"},
    {"sensor-seed.xml", US_ERR_VALUE, 4, "seed: 1.5", NULL},
    {"camera-aperture.xml", US_ERR_VALUE, 4, "aperture: 0 is out of range", NULL},
    {"camera-bits.xml", US_ERR_VALUE, 4, "bits: there is no bits \"12\"", NULL},
    {"camera-exposure-negative.xml", US_ERR_VALUE, 4, "exposure: -0.001 is out of range", NULL},
    {"camera-exposure-unit.xml", US_ERR_VALUE, 4,
     "exposure: \"m\" is the unit of a length, but a time is nee", NULL},
    {"camera-fov-flat.xml", US_ERR_VALUE, 4, "fov: 3.31613 rad is more than a flat picture can show", NULL},
    {"camera-fov-unit.xml", US_ERR_VALUE, 4, "fov: \"m\" is the unit of a length, but an angle is needed",
     NULL},
    {"camera-fov-zero.xml", US_ERR_VALUE, 4, "fov: 0 is out of range", NULL},
    {"camera-full-well.xml", US_ERR_VALUE, 4, "full-well: 1 is out of range", NULL},
    {"camera-gain-zero.xml", US_ERR_VALUE, 4, "gain: 0 is out of range", NULL},
    {"camera-height-large.xml", US_ERR_VALUE, 4, "height: 20000 is out of range", NULL},
    {"camera-k1.xml", US_ERR_VALUE, 4, "k1: \"x\" is neither a number nor a known unit", NULL},
    {"camera-latency.xml", US_ERR_VALUE, 4, "latency: 0.2 s is more than a camera takes for one", NULL},
    {"camera-like-no-other.xml", US_ERR_VALUE, 4, "no Brown-Conrady and no equidistant model comes near thi",
     NULL},
    {"camera-linearity.xml", US_ERR_VALUE, 4, "linearity: 2 is out of range", NULL},
    {"camera-many-pixels.xml", US_ERR_LIMIT, 4, "width, height: a picture has at most 33554432 pixels", NULL},
    {"camera-model.xml", US_ERR_VALUE, 4, "model: there is no model \"orthographic\"", NULL},
    {"camera-pixels.xml", US_ERR_VALUE, 4, "pixels: there is no pixels \"bayer\"", NULL},
    {"camera-rate-zero.xml", US_ERR_VALUE, 4, "rate: a camera takes no picture in each step", NULL},
    {"camera-response.xml", US_ERR_VALUE, 4, "response: there is no response \"log\"", NULL},
    {"camera-shadows.xml", US_ERR_VALUE, 4, "shadows: there is no shadows \"soft-ish\"", NULL},
    {"camera-width-fraction.xml", US_ERR_VALUE, 4, "width: 640.5 is no whole number", NULL},
    {"camera-width-zero.xml", US_ERR_VALUE, 4, "width: 0 is out of range", NULL},
    {"camera-zoom.xml", US_ERR_SCHEMA, 4, "zoom: a sensor of the type \"camera\" has none", NULL},
    {"light-attribute.xml", US_ERR_SCHEMA, 4, "<light> has no attribute \"colour\"", NULL},
    {"light-azimuth-alone.xml", US_ERR_SCHEMA, 4, "azimuth, elevation, direction: the Sun stands at both an",
     NULL},
    {"light-both.xml", US_ERR_SCHEMA, 4, "azimuth, elevation, direction: the Sun stands at both an", NULL},
    {"light-direction-short.xml", US_ERR_VALUE, 4, "direction: 3 numbers are needed, 2 given", NULL},
    {"light-direction-zero.xml", US_ERR_VALUE, 4, "direction: 0 0 0 is none", NULL},
    {"light-elevation-unit.xml", US_ERR_VALUE, 4, "elevation: \"m\" is the unit of a length, but an angle is",
     NULL},
    {"light-elevation.xml", US_ERR_VALUE, 4, "elevation: 1.74533 rad is beyond the zenith", NULL},
    {"light-sky-negative.xml", US_ERR_VALUE, 4, "sky: \"-1\" is negative", NULL},
    {"light-sun-negative.xml", US_ERR_VALUE, 4, "sun: \"-1\" is negative", NULL},
    {"light-twice.xml", US_ERR_SCHEMA, 4, "there are two <light> in the <world>", NULL},
    {"lamp-attribute.xml", US_ERR_SCHEMA, 4, "<light> has no attribute \"brightness\"", NULL},
    {"lamp-cone.xml", US_ERR_VALUE, 4, "cone: 0 is out of range", NULL},
    {"lamp-link.xml", US_ERR_NAME, 4, "\"cart\" has no link \"nose\"", NULL},
    {"lamp-name-twice.xml", US_ERR_NAME, 5, "the name \"head\" is used twice", NULL},
    {"lamp-on.xml", US_ERR_VALUE, 4, "on: there is no on \"maybe\"", NULL},
    {"lamp-power-unit.xml", US_ERR_VALUE, 4, "power: \"m\" is the unit of a length, but a power is neede",
     NULL},
    {"lamp-power.xml", US_ERR_VALUE, 4, "power: -3 is out of range", NULL},
    {"lamp-red.xml", US_ERR_VALUE, 4, "red: 2 is out of range", NULL},
    {"lidar-preset.xml", US_ERR_VALUE, 4, "hdl-64", NULL},
    {"lidar-no-beams.xml", US_ERR_SCHEMA, 4, "needs one of them", NULL},
    {"lidar-two-kinds.xml", US_ERR_SCHEMA, 4, "needs one of them", NULL},
    {"lidar-no-rate.xml", US_ERR_VALUE, 4, "turns per second", NULL},
    {"lidar-no-columns.xml", US_ERR_VALUE, 4, "columns, period", NULL},
    {"lidar-columns-and-period.xml", US_ERR_SCHEMA, 4, "even angles or at even times", NULL},
    {"lidar-few-columns.xml", US_ERR_VALUE, 4, "columns: 3", NULL},
    {"lidar-many-points.xml", US_ERR_LIMIT, 4, "more than 4000000 points", NULL},
    {"lidar-elevation.xml", US_ERR_VALUE, 4, "beam 1 looks", NULL},
    {"lidar-beam-time.xml", US_ERR_VALUE, 4, "beam 1 fires", NULL},
    {"lidar-beam-time-of-preset.xml", US_ERR_SCHEMA, 4, "have their times already", NULL},
    {"lidar-sweep.xml", US_ERR_VALUE, 4, "sweep, start", NULL},
    {"lidar-sweep-zero.xml", US_ERR_VALUE, 4, "sweep, start", NULL},
    {"lidar-range.xml", US_ERR_VALUE, 4, "from 200 to 100 m", NULL},
    {"lidar-no-range.xml", US_ERR_VALUE, 4, "min-range, max-range", NULL},
    {"lidar-noise-unit.xml", US_ERR_VALUE, 4, "range-noise", NULL},
    {"lidar-angle-noise.xml", US_ERR_VALUE, 4, "noise is out of range", NULL},
    {"lidar-reflectivity.xml", US_ERR_VALUE, 4, "reflectivity: 1.5", NULL},
    {"lidar-force-noise.xml", US_ERR_SCHEMA, 4, "force-noise", NULL},
    {"lidar-period.xml", US_ERR_VALUE, 4, "fewer than 4 groups", NULL},
    {"lidar-table-missing.xml", US_ERR_IO, 4, "none.csv", NULL},
    {"lidar-table-empty.xml", US_ERR_VALUE, 1, "there is no beam", NULL},
    {"lidar-table-line.xml", US_ERR_SYNTAX, 3, "line 3 is no beam", NULL},
    {"lidar-pattern.xml", US_ERR_VALUE, 4, "spiral", NULL},
    {"lidar-grid-rate.xml", US_ERR_SCHEMA, 4, "follows from its shots", NULL},
    {"lidar-grid-columns.xml", US_ERR_SCHEMA, 4, "columns: a grid has none", NULL},
    {"lidar-grid-sweep.xml", US_ERR_SCHEMA, 4, "sweep: a grid has none", NULL},
    {"lidar-grid-window.xml", US_ERR_VALUE, 4, "window of 40 by 200 deg", NULL},
    {"lidar-grid-resolution.xml", US_ERR_VALUE, 4, "window, resolution", NULL},
    {"lidar-grid-period.xml", US_ERR_VALUE, 4, "fires at even times", NULL},
    {"lidar-grid-fine.xml", US_ERR_LIMIT, 4, "more than 4000000 points", NULL},
    {"lidar-grid-one-angle.xml", US_ERR_VALUE, 4, "window", NULL},
    {"lidar-spin-window.xml", US_ERR_SCHEMA, 4, "window: a head that turns has none", NULL},
    {"lidar-rosette-bend.xml", US_ERR_VALUE, 4, "bend, spin", NULL},
    {"lidar-rosette-rate.xml", US_ERR_VALUE, 4, "frames per second", NULL},
    {"lidar-rosette-spin-unit.xml", US_ERR_VALUE, 4, "prism-spin", NULL},
    {"lidar-divergence.xml", US_ERR_VALUE, 4, "no opening of a beam", NULL},
    {"lidar-rays.xml", US_ERR_VALUE, 4, "rays: 1 lines", NULL},
    {"lidar-rays-many.xml", US_ERR_VALUE, 4, "rays: 99 lines", NULL},
    {"lidar-pulse.xml", US_ERR_VALUE, 4, "pulse", NULL},
    {"lidar-returns.xml", US_ERR_VALUE, 4, "second", NULL},
    {"lidar-backscatter.xml", US_ERR_VALUE, 4, "extinction, backscatter", NULL},
    {"lidar-extinction.xml", US_ERR_VALUE, 4, "extinction", NULL},
    {"lidar-sun-direction.xml", US_ERR_VALUE, 4, "sun-direction", NULL},
    {"lidar-sun-no-reach.xml", US_ERR_VALUE, 4, "without a reach", NULL},
    {"lidar-blind-odd.xml", US_ERR_VALUE, 4, "3 angles are no pairs", NULL},
    {"lidar-blind-range.xml", US_ERR_VALUE, 4, "sector 0", NULL},
    {"lidar-blind-many.xml", US_ERR_VALUE, 4, "blind", NULL},
    {"lidar-hide.xml", US_ERR_VALUE, 4, "maybe", NULL},
    {"lidar-deskew-scan.xml", US_ERR_VALUE, 4, "a lidar of one beam sends scans", NULL},
    {"lidar-imu-returns.xml", US_ERR_SCHEMA, 4, "returns", NULL},
    {"lidar-packets.xml", US_ERR_VALUE, 4, "is no address and port", NULL},
    {"lidar-packets-port.xml", US_ERR_VALUE, 4, "is no address and port", NULL},
    {"lidar-packets-elsewhere.xml", US_ERR_VALUE, 4, "this machine alone", NULL},
    {"lidar-packets-device.xml", US_ERR_VALUE, 4, "no packets of a maker", NULL},
    {"lidar-packets-first.xml", US_ERR_VALUE, 4, "no mode for first", NULL},
    {"lidar-topic.xml", US_ERR_NAME, 5, "eye/data", NULL},
    {"lidar-fault.xml", US_ERR_NAME, 5, "eyes", NULL},
    {"imu-with-preset.xml", US_ERR_SCHEMA, 4, "preset", NULL},
    {"sensor-attribute.xml", US_ERR_SCHEMA, 4, "colour: a sensor of the type \"imu\" has none",
     "known: force-noise"},
    {"sensor-attribute-near.xml", US_ERR_SCHEMA, 4, "force-nose: a sensor of the type",
     "did you mean \"force-noise\""},
    {"sensor-attribute-of-lidar.xml", US_ERR_SCHEMA, 4, "beams: a sensor of the type \"imu\" has none", NULL},
    {"sensor-noise-negative.xml", US_ERR_VALUE, 4, "force-noise: -1 is out of range",
     "from 0 to 1000000 m/s^2"},
    {"sensor-noise-huge.xml", US_ERR_VALUE, 4, "force-noise: 1e+09 is out of range", NULL},
    {"sensor-noise-nan.xml", US_ERR_VALUE, 4, "force-noise: \"nan\"", "decimal number"},
    {"sensor-noise-word.xml", US_ERR_VALUE, 4, "force-noise: \"much\"", "decimal number"},
    {"sensor-noise-two.xml", US_ERR_VALUE, 4, "force-noise: \"2\" is neither", "one of: m/s^2"},
    {"sensor-noise-unknown-unit.xml", US_ERR_VALUE, 4,
     "spin-noise: \"gon/s\" is neither a number nor a known unit", "one of: rad/s"},
    {"sensor-noise-comma.xml", US_ERR_VALUE, 4, "spin-noise: \",1\" is neither", NULL},
    {"sensor-noise-empty.xml", US_ERR_VALUE, 4, "spin-noise: \"\"", NULL},
    {"sensor-latency-negative.xml", US_ERR_VALUE, 4, "latency: \"-1 ms\" is negative", NULL},
    {"sensor-latency-long.xml", US_ERR_VALUE, 4, "latency: 11 s is out of range", "from 0 to 10 s"},
    {"sensor-latency-unit.xml", US_ERR_VALUE, 4, "latency: \"m\" is the unit of a length", NULL},
    {"sensor-phase-negative.xml", US_ERR_VALUE, 4, "phase: \"-1 ms\" is negative", NULL},
    {"sensor-phase-long.xml", US_ERR_VALUE, 4, "phase: 0.2 s is out of range", "one period"},
    {"sensor-phase-without-rate.xml", US_ERR_VALUE, 4, "phase: 0.001 s is out of range", NULL},
    {"sensor-seed-negative.xml", US_ERR_VALUE, 4, "seed: \"-1\" is negative", NULL},
    {"sensor-two-rotations.xml", US_ERR_VALUE, 4, "both rpy and quat", NULL},
    {"sensor-preset-unknown.xml", US_ERR_SCHEMA, 4, "preset: a sensor of the type \"imu\" has no \"cheap\"",
     NULL},
    {"lidar-phase.xml", US_ERR_VALUE, 4, "phase: a lidar has none", "start"},
    {"lidar-latency.xml", US_ERR_VALUE, 4, "more than one turn of a lidar", NULL},
    {"lidar-attribute.xml", US_ERR_SCHEMA, 4, "max-rnage: a sensor of the type \"lidar\" has none",
     "did you mean \"max-range\""},
    {"sensor-type-near.xml", US_ERR_VALUE, 4, "type: invalid value \"lider\"", "did you mean \"lidar\""},
    {"sensor-fault-unknown.xml", US_ERR_NAME, 5, "\"b\"", "known: imu, a"},
    {"sensor-fault-kind.xml", US_ERR_NAME, 5, "\"blind\"", "known: ok, dead"},
    {"sensor-fault-reading.xml", US_ERR_NAME, 5, "force.w", "did you mean"},
    {"sensor-fault-exact.xml", US_ERR_NAME, 5, "orientation.w", NULL},
    {"sensor-fault-form.xml", US_ERR_SYNTAX, 5, "needs a reading and a number", "offset:READING,VALUE"},
    {"sensor-fault-factor.xml", US_ERR_VALUE, 5, "noisy", "0"},
    {"sensor-fault-delay.xml", US_ERR_VALUE, 5, "delayed", "1"},
    {"sensor-fault-share.xml", US_ERR_VALUE, 5, "dropping", "1"},
    {"sensor-fault-number.xml", US_ERR_SYNTAX, 5, "takes no number", NULL},
    {"sensor-fault-without-name.xml", US_ERR_SYNTAX, 5, "names no sensor", "sensor:NAME=dead"},
    {"sensor-too-many.xml", US_ERR_LIMIT, 36, "a robot has at most 32 sensors", NULL},
    {"fault-imu-unknown.xml", US_ERR_NAME, 5, "what: ", "\"mast\""},
    {"truncated.xml", US_ERR_SYNTAX, 6, "the file ends too early", NULL},
    {"two-inertials.xml", US_ERR_SCHEMA, 5, "the link has two <inertial>", NULL},
    {"two-joints-on-link.xml", US_ERR_TREE, 8, "link \"rod/l2\" already hangs on joint \"rod/elbow\"", NULL},
    {"two-roots-in-object.xml", US_ERR_TREE, 3, "no joint holds the link \"a/l2\" (line 5)", NULL},
    {"two-roots.xml", US_ERR_SYNTAX, 10, "Extra content at the end of the document", NULL},
    {"two-worlds.xml", US_ERR_SCHEMA, 4, "there are two <world> (the first in line 3)", NULL},
    {"undeclared-entity.xml", US_ERR_SYNTAX, 3, "Entity 'fast' not defined", NULL},
    {"union-empty.xml", US_ERR_SCHEMA, 3, "a union of nothing", NULL},
    {"union-part-bad-size.xml", US_ERR_VALUE, 4, "size: 0 is not a length of a shape", NULL},
    {"union-part-surface.xml", US_ERR_VALUE, 3, "surface: it holds for the whole union", NULL},
    {"union-too-deep.xml", US_ERR_LIMIT, 3, "unions and intersections are nested more than 16 deep", NULL},
    {"unit-on-plain-number.xml", US_ERR_VALUE, 6,
     "damping: \"Nm\" is the unit of a torque, but a plain number is needed he", NULL},
    {"unknown-attribute.xml", US_ERR_SCHEMA, 3, "<world> has no attribute \"gravty\"",
     "did you mean gravity?"},
    {"unknown-child.xml", US_ERR_NAME, 8, "\"rod\" has no link \"gripper\"", NULL},
    {"unknown-default.xml", US_ERR_NAME, 7, "there is no default \"stif\"", "did you mean \"stiff\"?"},
    {"unknown-element.xml", US_ERR_SCHEMA, 3, "<wrold> is not allowed in <scene>", "did you mean <world>?"},
    {"unknown-encoding.xml", US_ERR_SYNTAX, 1, "Unsupported encoding klingon-8", NULL},
    {"unknown-integrator.xml", US_ERR_VALUE, 3, "integrator: invalid value \"rk45\"", "did you mean rk4?"},
    {"unknown-joint-type.xml", US_ERR_VALUE, 9, "type: invalid value \"revolut\"", "did you mean revolute?"},
    {"unknown-parameter.xml", US_ERR_NAME, 4, "there is no parameter \"stifness\"",
     "did you mean ${stiffness}?"},
    {"unknown-parent.xml", US_ERR_NAME, 9, "\"rod\" has no link \"ll2\"", "did you mean \"l2\"?"},
    {"unknown-unit.xml", US_ERR_VALUE, 3, "step: \"fortnight\" is neither a number nor a known unit", NULL},
    {"uplink-bandwidth-zero.xml", US_ERR_VALUE, 10, "bandwidth: \"0\" is not greater than 0", NULL},
    {"uplink-delay-negative.xml", US_ERR_VALUE, 10, "delay: \"-1 ms\" is negative", NULL},
    {"uplink-loss.xml", US_ERR_VALUE, 10, "loss: 5 is above 1", NULL},
    {"uplink-outages-many.xml", US_ERR_VALUE, 10,
     "outages: at most 64 numbers are possible here, 66 are given", NULL},
    {"uplink-outages-negative.xml", US_ERR_VALUE, 10, "outages: -1 s is negative", NULL},
    {"uplink-outages-odd.xml", US_ERR_VALUE, 10, "outages: 3 numbers are not pairs", NULL},
    {"uplink-outages-order.xml", US_ERR_VALUE, 10, "outages: 15 s does not come after 20 s", NULL},
    {"uplink-twice.xml", US_ERR_SCHEMA, 11, "there are two <uplink> (the first in line 10)", NULL},
    {"world-as-child.xml", US_ERR_TREE, 8, "the world cannot be a child", NULL},
    {"wrong-dimension.xml", US_ERR_VALUE, 3, "step: \"kg\" is the unit of a mass, but a time is needed here",
     NULL},
    {"wrong-root.xml", US_ERR_SCHEMA, 2, "a file with the root <world> is neither a scene nor a robot", NULL},
    {"wrong-version.xml", US_ERR_SCHEMA, 2, "version \"7\" of the format is not known", NULL},
    {"zero-quaternion.xml", US_ERR_VALUE, 3, "quat: the quaternion is 0 and gives no direction", NULL},
};
enum { N_BAD = sizeof bad_files / sizeof bad_files[0] };

// Loads and compiles; both clean up behind themselves, whatever happens.
static us_status load_and_compile(const char *path, us_error *err) {
    us_spec *spec = NULL;
    us_model *model = NULL;
    us_status status = us_spec_load(path, NULL, &spec, err);
    if (!status) status = us_model_compile(spec, NULL, &model, err);
    us_model_destroy(model);
    us_spec_destroy(spec);
    return status;
}

static void every_broken_scene_gets_its_own_error_with_line_and_remedy(void **state) {
    (void)state;
    for (int i = 0; i < N_BAD; i++) {
        const bad_file *b = &bad_files[i];
        char path[512];
        us_error err;
        memset(&err, 0, sizeof err);
        snprintf(path, sizeof path, "%s/tests/bad/scene/%s", US_SOURCE_DIR, b->file);
        us_status status = load_and_compile(path, &err);
        if (status != b->status || err.code != b->status || err.line != b->line ||
            !strstr(err.message, b->message) || !err.remedy[0] || !err.file[0] ||
            (b->suggestion && !strstr(err.remedy, b->suggestion))) {
            char text[1500];
            us_error_format(&err, text, sizeof text);
            fail_msg("%s: expected \"%s\" in line %d, got status %d (%s):\n%s", b->file, b->message,
                     (int)b->line, (int)status, us_status_text(status), text);
        }
    }
}

static void every_file_of_the_directory_is_in_the_table(void **state) {
    (void)state;
    DIR *directory = opendir(US_SOURCE_DIR "/tests/bad/scene");
    assert_non_null(directory);
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".xml") != 0) continue;
        n++;
        bool is_known = false;
        for (int i = 0; i < N_BAD; i++)
            is_known |= strcmp(bad_files[i].file, entry->d_name) == 0;
        if (!is_known) fail_msg("%s is not in the table", entry->d_name);
    }
    closedir(directory);
    assert_int_equal(n, N_BAD);
}

static void a_missing_file_is_an_error_that_names_it(void **state) {
    (void)state;
    us_error err;
    assert_int_equal(load_and_compile("/nowhere/scene.xml", &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "\"/nowhere/scene.xml\" does not exist"));
    assert_true(err.remedy[0] != 0);
}

static void a_directory_is_no_file(void **state) {
    (void)state;
    us_error err;
    assert_int_equal(load_and_compile(US_SOURCE_DIR "/tests/bad/scene", &err), US_ERR_IO);
    assert_non_null(strstr(err.message, "is a directory"));
    assert_true(err.remedy[0] != 0);
}

static void an_error_leaves_no_spec_and_a_null_error_is_allowed(void **state) {
    (void)state;
    us_spec *spec = NULL;
    assert_int_equal(us_spec_load(US_SOURCE_DIR "/tests/bad/scene/nan.xml", NULL, &spec, NULL), US_ERR_VALUE);
    assert_null(spec);
    assert_int_equal(us_spec_load(NULL, NULL, &spec, NULL), US_ERR_ARG);
    assert_int_equal(us_spec_load("x.xml", NULL, NULL, NULL), US_ERR_ARG);
    assert_int_equal(us_spec_load_text(NULL, 0, "x.xml", NULL, &spec, NULL), US_ERR_ARG);
}

// An allocator that has memory for a number of allocations and then none, and counts what is not given back.
typedef struct short_memory {
    int left, n_live;
} short_memory;

static void *short_alloc(void *context, size_t size, size_t align) {
    short_memory *m = context;
    if (m->left-- <= 0) return NULL;
    us_allocator heap = us_allocator_default();
    m->n_live++;
    return heap.alloc(heap.context, size, align);
}

static void short_release(void *context, void *memory, size_t size, size_t align) {
    short_memory *m = context;
    us_allocator heap = us_allocator_default();
    m->n_live--;
    heap.release(heap.context, memory, size, align);
}

static void memory_that_ends_anywhere_gives_a_clean_error_and_no_leak(void **state) {
    (void)state;
    static const char path[] = US_SOURCE_DIR "/scenes/every-joint.xml";
    us_status status = US_ERR_MEMORY;
    int n = 0;
    for (; status != US_OK && n < 10000; n++) {
        short_memory memory = {.left = n};
        us_load_def def = us_load_def_default();
        def.allocator = (us_allocator){short_alloc, short_release, &memory};
        us_spec *spec = NULL;
        us_error err;
        status = us_spec_load(path, &def, &spec, &err);
        if (status != US_OK) {
            assert_int_equal(status, US_ERR_MEMORY);
            assert_int_equal(err.code, US_ERR_MEMORY);
            assert_null(spec);
        }
        us_spec_destroy(spec);
        assert_int_equal(memory.n_live, 0);
    }
    assert_int_equal(status, US_OK);
    assert_true(n > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_scene_gets_its_own_error_with_line_and_remedy),
        cmocka_unit_test(every_file_of_the_directory_is_in_the_table),
        cmocka_unit_test(a_missing_file_is_an_error_that_names_it),
        cmocka_unit_test(a_directory_is_no_file),
        cmocka_unit_test(an_error_leaves_no_spec_and_a_null_error_is_allowed),
        cmocka_unit_test(memory_that_ends_anywhere_gives_a_clean_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
