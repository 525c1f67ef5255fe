#!/usr/bin/env bash
# ground_plugin.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# Deformable ground of one's own, from outside: installs, copies examples/ground away from the source tree, builds it with find_package, runs its scene and
# compares how deep a plate and a wheel sink with their analytic answers; records it and replays it to the bit. Then plug-ins that are wrong get their errors.
set -euo pipefail
. "$(dirname "$0")/../support/plugin_example.sh"

build_example ground crush us_plugin_ground_models

# ---- The ground acts ----

(cd "$work/crush" && "$program" run crush.xml --rate max --record crush.mcap --hash --save-ground crush.tif >"$work/log" 2>&1) || { cat "$work/log"; fail "the scene does not run"; }
# A plate of 20 x 20 cm with 100 N in lunar soil: 2500 Pa over kc (1/a + 1/b) + kphi = 1400 * 10 + 820000 Pa/m is 2.99760 mm. The micrometres in which
# heights are kept leave 0.5 um. A rigid wheel with W = 6.5 kg: W = b k r^2 (t/2 - sin 2t / 4) up to the angle t where it enters, b = 0.12 m in columns of 2 cm
# (k = 868000 Pa/m, 17.2 mm); three columns lie along its arc: 10 %.
awk -F, '
NR > 1 { z = $2; sink = $3 }
END {
    depth = 0.05 - z; want = 2500 / 834000
    if (!(depth > want - 5e-7 && depth < want + 5e-7)) { printf "the plate stands %.9g m deep, expected %.9g\n", depth, want; exit 1 }
    if (!(sink > 0.9 * 0.0172 && sink < 1.1 * 0.0172)) { printf "the wheel stands %g m deep\n", sink; exit 1 }
    printf "the plate stands %.7f m deep (expected %.7f), the wheel %.4f m\n", depth, want, sink
}' "$work/crush/crush.csv"
(cd "$work/crush" && "$program" replay crush.mcap --verify --scene crush.xml >"$work/log" 2>&1) || { cat "$work/log"; fail "the recording does not verify"; }

# Without the model it is lunar soil by the library's own laws: the plug-in made the difference.
mkdir "$work/plain"
sed -e '/<plugin/d' -e 's/ bed-model="crush"//' "$work/crush/crush.xml" >"$work/plain/crush.xml"
(cd "$work/plain" && "$program" run crush.xml --rate max >"$work/log" 2>&1) || { cat "$work/log"; fail "the plain scene does not run"; }
cmp -s "$work/crush/crush.csv" "$work/plain/crush.csv" && fail "with and without the plug-in the same comes out"

# ---- Plug-ins that are wrong ----

# NAME, a part of the error, the line of the scene; the plug-in's text is on the standard input.
refuse() {
    mkdir "$work/$1"
    cat >"$work/$1/plugin.c"
    "${CC:-cc}" -std=c17 -shared -fPIC -I"$work/prefix/include" -o "$work/$1/crush.so" "$work/$1/plugin.c" || fail "$1 does not compile"
    cp "$work/crush/crush.xml" "$work/$1/"
    if (cd "$work/$1" && "$program" check crush.xml) >"$work/log" 2>&1; then fail "$1: the scene passes the check"; fi
    grep -qF -- "$2" "$work/log" || { cat "$work/log"; fail "$1: the error does not say: $2"; }
    grep -q "crush.xml:$3" "$work/log" || { cat "$work/log"; fail "$1: the error does not name the line"; }
    grep -q "remedy:" "$work/log" || { cat "$work/log"; fail "$1: the error has no remedy"; }
}
model='#include <understudy/ground_model.h>
static bool act(const us_ground *g, const double *s, const us_ground_patch *p, us_ground_answer *a, void *u) { return g && s && p && a && !u; }'
refuse other-abi "a ground model has abi 77" 3 <<END
$model
US_API const us_ground_model *us_plugin_ground_models(int32_t *n) {
    static const us_ground_model models[] = {{.abi = 77, .size = sizeof(us_ground_model), .name = "crush", .act = act}};
    *n = 1;
    return models;
}
END
refuse other-name "there is no ground model \"crush\"; known: crash" 5 <<END
$model
US_API const us_ground_model *us_plugin_ground_models(int32_t *n) {
    static const us_ground_model models[] = {{.abi = US_GROUND_MODEL_ABI, .size = sizeof(us_ground_model), .name = "crash", .act = act}};
    *n = 1;
    return models;
}
END
refuse too-much-state "has 17 numbers for each column" 3 <<END
$model
US_API const us_ground_model *us_plugin_ground_models(int32_t *n) {
    static const us_ground_model models[] = {{.abi = US_GROUND_MODEL_ABI, .size = sizeof(us_ground_model), .name = "crush", .n_column_state = 17, .act = act}};
    *n = 1;
    return models;
}
END
echo "the ground acts, and three wrong plug-ins are refused"
