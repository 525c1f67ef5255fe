#!/usr/bin/env bash
# hardware_example.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# The stand-in hardware has nothing of the simulation in it: of the library it includes the headers of the network and of the firmware, and no
# function of the simulation, its models or the proxy is linked into it.
set -euo pipefail
source=$(cd "${1:-${US_SOURCE_DIR:-.}}" && pwd)
build=${2:-${US_BINARY_DIR:-$source/build}}
program=$build/examples/k10_hardware
own=${US_PROGRAM:-$build/understudy}
simulation='[[:space:]]us[i]?_(sim|model|spec|dyn|proxy|robot|world|contact)_'

wrong=$(grep -rhoE '#include "[^"]*"' "$source/examples/hardware" | sort -u | grep -vE '"(hardware|understudy/(bus|gate|wire|base)|firmware/firmware)\.h"' || true)
if [[ $wrong ]]; then
    echo "examples/hardware includes more than the network's public headers and the firmware:"
    echo "$wrong"
    exit 1
fi
if [[ ! -x $program ]]; then
    echo "skipped: $program is not built"
    exit 0
fi
nm "$program" >symbols.txt
nm "$own" | grep -E "$simulation" >own_symbols.txt
# The pattern finds what it looks for where that is known to be.
for symbol in us_sim_step us_model_ us_proxy_ us_dyn_ usi_robot_; do
    grep -q "$symbol" own_symbols.txt || { echo "no $symbol in $own: this test would find nothing"; exit 1; }
done
grep -q ' usi_firmware_step$' symbols.txt || { echo "$program does not use the firmware"; exit 1; }
grep -q ' us_bus_open$' symbols.txt || { echo "$program has no us_bus_open: are its symbols stripped?"; exit 1; }
if grep -E "$simulation" symbols.txt; then
    echo "$program has these symbols of the simulation in it"
    exit 1
fi
