#!/usr/bin/env bash
# measured_wheels.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# bench_soil holds a wheel against a file of measured ones: a file that the model was computed by agrees, one that is shifted does not, and one that
# cannot be read is said so. US_WHEEL_DATA names a file of one's own measurements, US_WHEEL_SOIL its soil, as `soil=lunar cohesion=500`.
set -euo pipefail
export LC_ALL=C
source=${1:-$US_SOURCE_DIR}
build=${2:-$US_BINARY_DIR}
bench=$build/bench/bench_soil
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    cat "$work/log"
    echo "$*"
    exit 1
}
if [[ ! -x $bench ]]; then
    echo "skipped: the benchmarks are not built"
    exit 0
fi
judge() { # expected-status arguments...
    local expected=$1 status=0
    shift
    "$bench" wheel "$@" >"$work/log" 2>&1 || status=$?
    [[ $status == "$expected" ]] || fail "bench_soil wheel $*: status $status instead of $expected"
}

table=$source/tests/support/fjs1-wheel.csv
# The integrals have no slip-sinkage. The table has five digits.
judge 0 "$table" soil=fjs1 slip_sinkage=0
awk '/^smooth wheels/ { exit !($8 < 1e-4) }' "$work/log" || fail "the pull is not that of the table"
awk '/^smooth wheels/ { sub(/.*sinkage by /, ""); exit !($1 < 0.01) }' "$work/log" || fail "the sinkage is not that of the table"
# Lugs, whose bound is another one.
awk -F, 'BEGIN { OFS = "," } /^#/ { next } /^radius/ { print $0, "grousers", "lug"; next } { $2 = $2; print $0, 20, 0.005 }' "$table" >"$work/lugged.csv"
judge 0 "$work/lugged.csv" soil=fjs1 slip_sinkage=0
grep -q "^lugged wheels, 6 points.*0.15 at most" "$work/log" || fail "lugged wheels are not judged as such"
# With slip-sinkage the wheel goes deeper than the table at every slip above 0.
judge 1 "$table" soil=fjs1
grep -q "does not hold" "$work/log" || fail "nothing is said of the sinkage"
# A pull that is off by 0.2 of the load.
awk -F, 'BEGIN { OFS = "," } /^[#r]/ { print; next } { $5 += 12.9; print }' "$table" >"$work/shifted.csv"
judge 1 "$work/shifted.csv" soil=fjs1 slip_sinkage=0
# What cannot be used.
judge 2 "$work/none.csv"
judge 2 "$table" soil=butter
judge 2 "$table" cohesion=much
printf 'radius,width,load,slip,pull\n0.1,0.1,50,0,0\n' >"$work/short.csv"
judge 2 "$work/short.csv"
grep -q '"sinkage" is missing' "$work/log" || fail "a missing column is not named"
printf 'radius,width,load,slip,pull,sinkage\n0.1,0.1,fifty,0,0,0.01\n' >"$work/word.csv"
judge 2 "$work/word.csv"
grep -q "line 2" "$work/log" || fail "the line is not named"
echo "a file that the model was computed by agrees, others do not"

if [[ -z ${US_WHEEL_DATA:-} ]]; then
    echo "skipped: US_WHEEL_DATA names no file of measured wheels"
    exit 0
fi
# shellcheck disable=SC2086
"$bench" wheel "$US_WHEEL_DATA" ${US_WHEEL_SOIL:-}
