#!/usr/bin/env bash
# soil_plugin.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# A law of soil of one's own, from outside: installs, copies examples/soil away from the source tree, builds it with find_package, runs its scene and
# compares sinkage and slide with their analytic answers. Then plug-ins that are wrong get their errors.
set -euo pipefail
. "$(dirname "$0")/../support/plugin_example.sh"

build_example soil springs us_plugin_soil_laws

# ---- The law acts ----

(cd "$work/springs" && "$program" run springs.xml --rate max >"$work/log" 2>&1) || { cat "$work/log"; fail "the scene does not run"; }
# 10 kg on 2e4 N/m: 4.905 mm, to 1e-5: the solver leaves a millionth of the load. 2 m/s against 0.4 g: v^2 / (2 mu g) = 0.50968 m, and v h / 2 = 0.5 mm,
# which a step of the first order adds at h = 0.5 ms (it halves with the step). The last cm/s, in which the shear falls with the speed and friction takes
# over, add some hundredths of a mm: within 0.1 mm.
awk -F, '
NR > 1 { z = $2; x = $3 }
END {
    depth = 0.1 - z; want = 10 * 9.81 / 2e4
    if (!(depth > want * (1 - 1e-5) && depth < want * (1 + 1e-5))) { printf "the wheel rests %.9g m deep, expected %.9g\n", depth, want; exit 1 }
    s = 4 / (2 * 0.4 * 9.81) + 2 * 0.0005 / 2
    if (!(x > s - 1e-4 && x < s + 1e-4)) { printf "the wheel slides %g m, expected %g\n", x, s; exit 1 }
    printf "sinkage %.7f m, slide %.5f m (expected %.7f, %.5f)\n", depth, x, want, s
}' "$work/springs/springs.csv"

# Without the law it is dry sand, in which the wheel sinks deeper: it was the plug-in that held it up.
mkdir "$work/plain"
sed -e '/<plugin/d' -e 's/ model="springs"//' -e '/<number/d' "$work/springs/springs.xml" >"$work/plain/springs.xml"
(cd "$work/plain" && "$program" run springs.xml --rate max >"$work/log" 2>&1) || { cat "$work/log"; fail "the plain scene does not run"; }
awk -F, 'NR > 1 { z = $2 } END { if (!(0.1 - z > 0.006)) { printf "in dry sand the wheel sinks by %g m\n", 0.1 - z; exit 1 } }' "$work/plain/springs.csv"

# ---- Plug-ins that are wrong ----

# NAME, a part of the error; the plug-in's text is on the standard input.
refuse() {
    mkdir "$work/$1"
    cat >"$work/$1/plugin.c"
    "${CC:-cc}" -std=c17 -shared -fPIC -I"$work/prefix/include" -o "$work/$1/springs.so" "$work/$1/plugin.c" || fail "$1 does not compile"
    cp "$work/springs/springs.xml" "$work/$1/"
    if (cd "$work/$1" && "$program" check springs.xml) >"$work/log" 2>&1; then fail "$1: the scene passes the check"; fi
    grep -qF -- "$2" "$work/log" || { cat "$work/log"; fail "$1: the error does not say: $2"; }
    grep -q "springs.xml:3" "$work/log" || { cat "$work/log"; fail "$1: the error does not name the line"; }
    grep -q "remedy:" "$work/log" || { cat "$work/log"; fail "$1: the error has no remedy"; }
}
law='#include <understudy/soil_law.h>
static bool act(const us_soil_touch *t, double *s, us_soil_answer *a, void *u) { return t && s && a && !u; }'
refuse no-law "offers no interaction model, no law of soil and no ground model" <<END
$law
US_API const us_soil_law *us_plugin_soil_laws(int32_t *n) { *n = 0; (void)act; return 0; }
END
refuse other-abi "a law of soil has abi 77" <<END
$law
US_API const us_soil_law *us_plugin_soil_laws(int32_t *n) {
    static const us_soil_law laws[] = {{.abi = 77, .size = sizeof(us_soil_law), .name = "springs", .act = act}};
    *n = 1;
    return laws;
}
END
refuse too-much-state "has a state of 17 numbers" <<END
$law
US_API const us_soil_law *us_plugin_soil_laws(int32_t *n) {
    static const us_soil_law laws[] = {{US_SOIL_LAW_ABI, sizeof(us_soil_law), "springs", 17, 0, 0, act}};
    *n = 1;
    return laws;
}
END
refuse name-of-the-library "there is another model \"soil\"" <<END
$law
US_API const us_soil_law *us_plugin_soil_laws(int32_t *n) {
    static const us_soil_law laws[] = {{US_SOIL_LAW_ABI, sizeof(us_soil_law), "soil", 0, 0, 0, act}};
    *n = 1;
    return laws;
}
END
echo "the law acts, and four wrong plug-ins are refused"
