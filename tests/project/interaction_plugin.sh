#!/usr/bin/env bash
# interaction_plugin.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# An interaction model of one's own, from outside: installs, copies examples/interaction away from the source tree, builds it with find_package, runs
# its scene and compares the motion with statics and with a slide integrated here. Then plug-ins that are wrong get their errors.
set -euo pipefail
. "$(dirname "$0")/../support/plugin_example.sh"

build_example interaction mud us_plugin_interactions

# ---- The model acts ----

# $1: directory with the scene. The columns are time, still/box.z, sliding/box.x, sliding/box.z.
run() {
    (cd "$1" && "$program" run mud.xml --rate max >"$work/log" 2>&1) || { cat "$work/log"; fail "the scene does not run"; }
    [[ -s $1/mud.csv ]] || fail "the scene wrote no recording"
}
run "$work/mud"
# A box of 10 kg on four points of 2e4 N/m rests 10 * 9.81 / 8e4 = 1.22625 mm deep; drag, which keeps it from overshooting, has died down after 3
# s: within 0.1 %. The slide: dv/dt = -(0.2 + 0.4 * 0.05 / (0.05 + v)) * 9.81 from 2 m/s, whatever the load on each corner; the first 10 ms, in
# which the box still sinks, have less friction: 1 %.
awk -F, '
NR > 1 { z = $2; x = $3 }
END {
    depth = 0.1 - z; want = 10 * 9.81 / 8e4
    if (!(depth > 0.999 * want && depth < 1.001 * want)) { printf "the box rests %g m deep, expected %g\n", depth, want; exit 1 }
    v = 2; h = 1e-5
    while (v > 0) { s += h * v; v -= h * (0.2 + 0.4 * 0.05 / (0.05 + v)) * 9.81 }
    if (!(x > 0.99 * s && x < 1.01 * s)) { printf "the box slides %g m, expected %g\n", x, s; exit 1 }
    printf "depth %.6f m, slide %.4f m (expected %.6f, %.4f)\n", depth, x, want, s
}' "$work/mud/mud.csv"

# The same scene with the default model: the box stays on top, so that it was the plug-in that let it sink.
mkdir "$work/plain"
sed -e '/<plugin/d' -e 's/ model="mud" stiffness="2e4"//' -e '/<number/d' "$work/mud/mud.xml" >"$work/plain/mud.xml"
run "$work/plain"
awk -F, '
NR > 1 { z = $2 }
END { if (!(0.1 - z < 1e-4)) { printf "with the default model the box sinks by %g m\n", 0.1 - z; exit 1 } }' "$work/plain/mud.csv"

# ---- Plug-ins that are wrong ----

# NAME, a part of the error; the plug-in's text is on the standard input.
refuse() {
    mkdir "$work/$1"
    cat >"$work/$1/plugin.c"
    "${CC:-cc}" -std=c17 -shared -fPIC -I"$work/prefix/include" -o "$work/$1/mud.so" "$work/$1/plugin.c" || fail "$1 does not compile"
    refuse_file "$1" "$2"
}
refuse_file() {
    cp "$work/mud/mud.xml" "$work/$1/"
    if (cd "$work/$1" && "$program" check mud.xml) >"$work/log" 2>&1; then fail "$1: the scene passes the check"; fi
    grep -qF -- "$2" "$work/log" || { cat "$work/log"; fail "$1: the error does not say: $2"; }
    grep -q "mud.xml:3" "$work/log" || { cat "$work/log"; fail "$1: the error does not name the line"; }
    grep -q "remedy:" "$work/log" || { cat "$work/log"; fail "$1: the error has no remedy"; }
}
refuse no-function "has no function us_plugin_interactions" <<'END'
int something_else;
END
refuse no-model "offers no interaction model" <<'END'
#include <understudy/interaction.h>
US_API const us_interaction *us_plugin_interactions(int32_t *n) { *n = 0; return 0; }
END
refuse other-version "has version 77" <<'END'
#include <understudy/interaction.h>
US_API const us_interaction *us_plugin_interactions(int32_t *n) {
    static const us_interaction models[] = {{.version = 77, .name = "mud"}};
    *n = 1;
    return models;
}
END
refuse name-twice "another interaction model \"mud\"" <<'END'
#include <understudy/interaction.h>
static bool one(const us_touch *t, double *m, us_touch_law *l, void *u) { return t && m && l && !u; }
static bool two(const us_touch *t, double *m, us_touch_law *l, void *u) { return t && m && l && u; }
US_API const us_interaction *us_plugin_interactions(int32_t *n) {
    static const us_interaction models[] = {{US_INTERACTION_VERSION, "mud", 0, one}, {US_INTERACTION_VERSION, "mud", 0, two}};
    *n = 2;
    return models;
}
END
mkdir "$work/absent" "$work/text"
refuse_file absent "cannot be loaded"
echo "no library" >"$work/text/mud.so"
refuse_file text "cannot be loaded"
echo "the plug-in acts, and six wrong ones are refused"
