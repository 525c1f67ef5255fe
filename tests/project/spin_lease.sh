#!/usr/bin/env bash
# spin_lease.sh SOURCE_DIRECTORY: each deliberately broken variant of the model of the leases (tests/spin/lease.pml) is caught. With US_LONG_TESTS: and
# every state that two switches at one gate can reach keeps the assertions (three million states, half a minute of the processor).
set -euo pipefail
source=$(cd "${1:-${US_SOURCE_DIR:-.}}" && pwd)
model=$source/tests/spin/lease.pml
if ! command -v spin >/dev/null; then
    echo "skipped: spin is not installed"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
compiler=${CC:-gcc}
sizes=()
[[ -z ${US_LONG_TESTS:-} ]] || sizes=(-DN_SWITCH=2,-DN_GATE=1)

# Writes the verifier's report to report.txt. Bounded: 120 s of the processor and 2 GB a run.
search() { # options of the model...
    spin "$@" -a "$model" >spin.txt 2>&1 || { cat spin.txt; exit 1; }
    "$compiler" -O2 -w -DSAFETY -DNOFAIR -DCOLLAPSE -DMEMLIM=2000 -o pan pan.c
    (ulimit -t 120 && ./pan -m10000000) >report.txt 2>&1 || true
}

n_failed=0
for size in "${sizes[@]}"; do
    # shellcheck disable=SC2086
    search ${size//,/ }
    if grep -q "errors: 0" report.txt && ! grep -qE "max search depth too small|Search not completed|out of memory" report.txt; then
        echo "holds: leases $size: $(grep -oE "[0-9.e+]+ states, stored" report.txt)"
    else
        cat report.txt
        echo "the leases $size break an assertion, or were not searched to the end"
        n_failed=$((n_failed + 1))
    fi
done
for broken in -DN_SWITCH=2,-DN_GATE=1,-DNO_FENCE -DN_SWITCH=2,-DN_GATE=1,-DRETURN -DN_SWITCH=1,-DN_GATE=2,-DQUICK,-DNO_CONFIRM; do
    # shellcheck disable=SC2086
    search ${broken//,/ }
    if grep -q "assertion violated" report.txt; then
        echo "caught: $broken: $(grep -oE "assertion violated [^(]*\(.*\)" report.txt | head -1 | cut -c1-100)"
    else
        cat report.txt
        echo "$broken is not caught"
        n_failed=$((n_failed + 1))
    fi
done
((n_failed == 0))
