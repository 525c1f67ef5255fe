#!/usr/bin/env bash
# sensor_plugin.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# A kind of sensor of one's own, from outside: installs, copies examples/sensor away from the source tree, builds it with find_package, and compares what it
# says of a crate that falls with the law of falling. Then plug-ins that are wrong get their errors.
set -euo pipefail
. "$(dirname "$0")/../support/plugin_example.sh"

build_example sensor clearance us_plugin_sensor_kinds asks
cd "$work/clearance"

# ---- It measures ----

sense() { "$program" sense clearance.xml --sensor crate/belly --time 0.5 -o "$1" >"$work/log" 2>&1 || { cat "$work/log"; fail "the scene does not run"; }; }
sense one.csv
sense two.csv
cmp one.csv two.csv || fail "the same run gives other samples"
head -1 one.csv | grep -qx 'time \[s\],range \[m\],true range \[m\],seen,true seen' || { head -1 one.csv; fail "the head of the table is another"; }
# 1.5 m less g t^2 / 2: free bodies fall exactly, so that what is off is rounding in the table's nine digits. The noise of 2 mm and an offset that has wandered
# by 1 mm sqrt(t) are told apart from 51 samples: five times sqrt(2^2 + 0.5) / sqrt(51) = 1.5 mm in the mean, and 1 to 4 mm in the deviation.
awk -F, '
NR > 1 {
    z = 1.5 - 9.81 * $1 * $1 / 2
    if ($3 - z > 1e-8 || z - $3 > 1e-8) { printf "at %s s the clearance is %s m, expected %.9g\n", $1, $3, z; exit 1 }
    if ($4 != 1 || $5 != 1) { print "the ground is not seen"; exit 1 }
    e = $2 - $3; sum += e; square += e * e; n++
}
END {
    if (n != 51) { printf "%d samples, not 51\n", n; exit 1 }
    mean = sum / n; deviation = sqrt(square / n - mean * mean)
    if (mean > 1.5e-3 || mean < -1.5e-3 || deviation < 1e-3 || deviation > 4e-3) { printf "error %g, deviation %g m\n", mean, deviation; exit 1 }
}' one.csv
"$program" sense clearance.xml --kinds >"$work/kinds"
grep -q '^clearance: how far' "$work/kinds" || { cat "$work/kinds"; fail "the kind is not listed"; }
grep -q 'reach .*0.01 to 100 m, usual 5' "$work/kinds" || { cat "$work/kinds"; fail "its parameter is not listed"; }
# A parameter beyond its range names the range.
sed 's/noise="2 mm"/reach="1 km"/' clearance.xml >far.xml
if "$program" check far.xml >"$work/log" 2>&1; then fail "a reach of 1 km passes"; fi
grep -q 'from 0.01 to 100 m' "$work/log" || { cat "$work/log"; fail "the error does not name the range"; }

# ---- Plug-ins that are wrong ----

# NAME, a part of the error; the plug-in's kind is on the standard input, behind a good one's parts.
make_bad() {
    mkdir "$work/$1"
    {
        cat <<'END'
#include <math.h>
#include <understudy/sensor.h>
static const us_sensor_parameter parameters[] = {{"noise", "m", 0, 1, 0, "Noise."}, {"wander", "m", 0, 1, 0, "Walk."}};
static const us_sensor_reading readings[] = {{"range", "m", false}};
static bool sample(const us_sensor_view *view, double *state, double *truth, double *reading) {
    state[0] += 1; truth[0] = reading[0] = view->time; return true;
}
#define GOOD .abi = US_SENSOR_ABI, .size = sizeof(us_sensor_kind), .name = "clearance", .about = "bad", .n_parameter = 2, .parameters = parameters, \
    .n_reading = 1, .readings = readings, .n_state = 1, .usual_rate = 50, .sample = sample
END
        cat
        echo 'US_API const us_sensor_kind *us_plugin_sensor_kinds(int32_t *n) { *n = sizeof kinds / sizeof *kinds; (void)sample; return kinds; }'
    } >"$work/$1/plugin.c"
    "${CC:-cc}" -std=c17 -shared -fPIC -I"$work/prefix/include" -o "$work/$1/clearance.so" "$work/$1/plugin.c" -lm || fail "$1 does not compile"
    cp clearance.xml crate.urdf "$work/$1/"
}
refuse() {
    make_bad "$1"
    if (cd "$work/$1" && "$program" check clearance.xml) >"$work/log" 2>&1; then fail "$1: the scene passes the check"; fi
    grep -qF -- "$2" "$work/log" || { cat "$work/log"; fail "$1: the error does not say: $2"; }
    grep -q "clearance.xml:3" "$work/log" || { cat "$work/log"; fail "$1: the error does not name the line"; }
    grep -q "remedy:" "$work/log" || { cat "$work/log"; fail "$1: the error has no remedy"; }
}
refuse no-kind "nor a kind of sensor" <<'END'
static const us_sensor_kind kinds[1] = {{GOOD}};
#define us_plugin_sensor_kinds us_plugin_sensor_kinds(int32_t *n) { *n = 0; return kinds; } const us_sensor_kind *other
END
refuse other-abi "has abi 77" <<'END'
static const us_sensor_kind kinds[] = {{GOOD, .abi = 77}};
END
refuse other-size "but this library knows abi" <<'END'
static const us_sensor_kind kinds[] = {{GOOD, .size = 8}};
END
refuse no-function "\"clearance\" has no function" <<'END'
static const us_sensor_kind kinds[] = {{GOOD, .sample = 0}};
END
refuse much-state "999 numbers of state" <<'END'
static const us_sensor_kind kinds[] = {{GOOD, .n_state = 999}};
END
refuse many-readings "99 readings" <<'END'
static const us_sensor_kind kinds[] = {{GOOD, .n_reading = 99}};
END
refuse name-of-ours "another kind of sensor \"imu\"" <<'END'
static const us_sensor_kind kinds[] = {{GOOD, .name = "imu"}};
END
refuse name-twice "another kind of sensor \"clearance\"" <<'END'
static const us_sensor_kind kinds[] = {{GOOD}, {GOOD}};
END

# NAME, a part of the error: they pass the check, and fail in the step, which ends with the tick before.
catch() {
    make_bad "$1"
    if (cd "$work/$1" && "$program" run clearance.xml --rate max) >"$work/log" 2>&1; then fail "$1: the scene runs"; fi
    grep -qF -- "sensor \"crate/belly\" of the kind \"clearance\": $2" "$work/log" || { cat "$work/log"; fail "$1: the error does not say: $2"; }
    grep -q "tick 100:" "$work/log" || { cat "$work/log"; fail "$1: the error does not name the tick"; }
}
bad_sample() {
    echo "static bool bad(const us_sensor_view *v, double *state, double *truth, double *reading) { sample(v, state, truth, reading); if (v->tick >= 100) { $1; } return true; }"
    echo 'static const us_sensor_kind kinds[] = {{GOOD, .sample = bad}};'
}
bad_sample 'state[1] = 1' | catch writes-beyond-state "it wrote beyond its state"
bad_sample 'reading[1] = 1' | catch writes-beyond-readings "it wrote beyond its readings"
bad_sample 'reading[0] = NAN' | catch gives-nan "it gave no finite reading (up to 1e12) of range"
bad_sample 'state[0] = INFINITY' | catch keeps-infinity "a number of its state is not finite"
bad_sample 'return false' | catch gives-up "it gave no sample"
echo "a kind of one's own measures, and bad ones are refused or caught"
