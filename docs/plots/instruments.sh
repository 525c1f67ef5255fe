#!/usr/bin/env bash
# Makes docs/images/instrument-*.png: docs/plots/instruments.sh PROGRAM. What instruments say in small worlds of their own, beside what is true there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=$(realpath "${1:-${US_PROGRAM:-build/understudy}}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp tests/support/carrier.urdf models/k10.urdf "$work"

# A carrier that slides along x and turns about z, with a sensor "s"; rows of what is in the table, by a program of awk.
table() { # name seconds world-attributes world robot-attributes sensor awk
    cat >"$work/$1.xml" <<EOF
<scene name="$1" version="1"><world $3>$4</world><robot name="r" file="carrier.urdf">$5<sensor name="s" link="base" $6/></robot></scene>
EOF
    "$program" sense "$work/$1.xml" --sensor r/s --time "$2" -o "$work/all.csv" >/dev/null
    awk -F, "$7" "$work/all.csv" >"$work/$1.csv"
}
ground='<shape type="half-space" xyz="0 0 -1"/>'

# Day and night at three places. The sensor looks at the whole sky: the z of its truth is the sine of the Sun's height, while it is up or not.
height='function asin(x) { return atan2(x, sqrt(1 - x * x)) } NR == 1 { print "time,height" } NR > 1 { printf "%g,%.4f\n", $1, asin($7) * 57.29578 }'
table sun-earth 86400 'step="1 s" planet="earth" latitude="37.4 deg" longitude="-122 deg" date="2026-06-21T08:00:00Z"' "" "" \
    'type="sun-sensor" field-of-view="360 deg" rate="0.00333 Hz"' "$height"
table sun-mars 86400 'step="1 s" planet="mars" latitude="18.44 deg" longitude="77.45 deg" date="2026-06-21T08:00:00Z"' "" "" \
    'type="sun-sensor" field-of-view="360 deg" rate="0.00333 Hz"' "$height"
table sun-moon 86400 'step="1 s" planet="moon" latitude="0.7 deg" longitude="23.5 deg" date="2026-06-21T08:00:00Z"' "" "" \
    'type="sun-sensor" field-of-view="360 deg" rate="0.00333 Hz"' "$height"

# An hour of fixes: a metre of latitude is 9.0e-6 degrees, one of longitude more by 1 / cos of it.
fix='NR == 1 { print "east,north" } NR > 1 { printf "%.3f,%.3f\n", ($4 - $5) * 6378137 * cos($3), ($2 - $3) * 6356752 }'
place='step="10 ms" planet="earth" latitude="37.4 deg" longitude="-122 deg"'
table fix-open 3600 "$place" "$ground" "" 'type="navsat" rate="1 Hz"' "$fix"
table fix-wall 3600 "$place" "$ground"'<shape type="box" size="40 1 60" xyz="0 3 0"/>' "" 'type="navsat" rate="1 Hz"' "$fix"

# A turn with hard iron ahead of the compass.
table compass 62.7 'step="1 ms" gravity="0 0 -9.81"' "" '<joint name="turn" v="0.1"/>' \
    'type="compass" field="given" field-y="2e-5" field-z="-4e-5" hard-iron-x="5e-6" rate="10 Hz"' \
    'NR == 1 { print "heading,error,theory" } NR > 1 { e = $2 - $3; e = atan2(sin(e), cos(e)); a = $3; t = atan2(-5e-6 * sin(a), 2e-5 + 5e-6 * cos(a)); printf "%.3f,%.4f,%.4f\n", a * 57.29578, e * 57.29578, t * 57.29578 }'

# Towards a wall at half a metre a second.
range='NR == 1 { print "time,range,truth" } NR > 1 { printf "%g,%.5f,%.5f\n", $1, $2, $3 }'
wall='<shape type="box" size="1 20 20" xyz="8 0 0"/>'
for preset in ultrasound laser; do
    table "range-$preset" 14 'step="1 ms" gravity="0 0 0"' "$wall" '<joint name="slide" v="0.5"/>' "type=\"range\" preset=\"$preset\" rate=\"10 Hz\"" "$range"
done

# A spectrum on the ground.
cat >"$work/spectrum.xml" <<EOF
<scene name="spectrum" version="1"><material name="basalt"><string key="spectrum" value="400 0.04  600 0.09  700 0.10  900 0.06  1000 0.07"/></material>
<world gravity="0 0 0"><shape type="half-space" xyz="0 0 -1" surface="basalt"/></world>
<robot name="r" file="carrier.urdf"><sensor name="s" link="base" type="spectrometer" rpy="0 60 0 deg" noise="0.002"/></robot></scene>
EOF
"$program" sense "$work/spectrum.xml" --sensor r/s --time 0.2 -o "$work/all.csv" >/dev/null
awk -F, 'NR == 1 { print "wave,reading,truth" } NR == 2 { for (i = 0; i < 32; i++) printf "%.2f,%.5f,%.5f\n", 400 + 18.75 * (i + 0.5), $(2 + 2 * i), $(3 + 2 * i) }' \
    "$work/all.csv" >"$work/spectrum.csv"

# The rover's wheel on the Moon: from rest, and as it comes down from 0.3 m.
"$program" run scenes/instruments.xml --rate max --headless --quiet --time 20 --csv "$work/motor.csv" --csv-rate 10 \
    --values k10/wheel_current.current,k10/wheel_temperature.true.temperature
"$program" run scenes/instruments.xml --rate max --headless --quiet --time 1.5 --csv "$work/touch.csv" --csv-rate 100 \
    --values k10/wheel_touch.true.force,k10/wheel_touch.closed

gnuplot -e "work='$work'; out='docs/images'" docs/plots/instruments.gp
