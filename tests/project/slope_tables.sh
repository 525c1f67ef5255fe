#!/usr/bin/env bash
# slope_tables.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# The tables of slip on slopes in docs/wheel-soil.md are what bench_soil prints: some rows, or with US_LONG_TESTS all of them. Figures may differ by 0.02:
# wheels that are nearly stuck are sensitive to rounding, which differs from compiler to compiler; and a rover that does not get up may dig in or slide back.
set -euo pipefail
export LC_ALL=C
source=${1:-$US_SOURCE_DIR}
build=${2:-$US_BINARY_DIR}
bench=$build/bench/bench_soil
if [[ ! -x $bench ]]; then
    echo "skipped: the benchmarks are not built"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The lines of the table whose first cell is the rover's name.
table_of() { # name
    awk -F'|' -v name=" $1 " '$2 == name { on = 1 } on && !/^\|/ { exit } on && $2 ~ /^ `/ { print }' "$source/docs/wheel-soil.md"
}

# Both rows cell by cell: words are the same, figures nearly.
same() { # documented printed
    awk -F' *[|] *' '
        { gsub(/slides back/, "digs in") }
        NR == 1 { for (i = 2; i < NF; i++) cell[i] = $i; n = NF; next }
        NF != n { exit 1 }
        {
            for (i = 2; i < NF; i++) {
                both = split(cell[i], a, " / ") == 2 && split($i, b, " / ") == 2
                if (!both && cell[i] != $i) exit 1
                for (k = 1; both && k <= 2; k++) if ((a[k] - b[k]) ^ 2 > 0.0201 ^ 2) exit 1
            }
        }' <(printf '%s\n%s\n' "$1" "$2")
}

rows=0
check() { # name rover soil...
    local name=$1 rover=$2 soil documented printed
    shift 2
    for soil in "$@"; do
        documented=$(table_of "$name" | grep -F "| \`$soil\` |") || {
            echo "docs/wheel-soil.md has no row of $name in $soil"
            exit 1
        }
        printed=$("$bench" slopes "$source" "$rover" "$soil")
        if ! same "$documented" "$printed"; then
            printf '%s: the table says\n%s\nbench_soil prints\n%s\n' "$name" "$documented" "$printed"
            exit 1
        fi
        rows=$((rows + 1))
    done
}

# The comparison can fail.
if same '| `x` | 0.10 / 0.10 |' '| `x` | 0.10 / 0.13 |' || same '| `x` | digs in |' '| `x` | buried |' || same '| `x` | 0.1 / 0.1 |' '| `x` |'; then
    echo "rows that differ are taken for the same"
    exit 1
fi
soils=$(table_of K10 | awk -F'`' '{ print $2 }')
[[ $(wc -w <<<"$soils") == 10 && $soils == "$(table_of 'Rocky 7' | awk -F'`' '{ print $2 }')" ]] || {
    echo "docs/wheel-soil.md has not both tables with ten soils"
    exit 1
}
if [[ -n ${US_LONG_TESTS:-} ]]; then
    # shellcheck disable=SC2086
    check K10 k10 $soils
    # shellcheck disable=SC2086
    check "Rocky 7" rocky7 $soils
else
    check K10 k10 jsc1a
    check "Rocky 7" rocky7 lunar
fi
echo "$rows rows are as documented"
