#!/usr/bin/env bash
# spin_authority.sh SOURCE_DIRECTORY: every state that the model of the switch's authority (tests/spin/authority.pml) can reach keeps the assertions,
# for each rule of loss; and each deliberately broken variant is caught, so that the assertions can fail.
set -euo pipefail
source=$(cd "${1:-${US_SOURCE_DIR:-.}}" && pwd)
model=$source/tests/spin/authority.pml
if ! command -v spin >/dev/null; then
    echo "skipped: spin is not installed"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
compiler=${CC:-gcc}

# Writes the verifier's report to report.txt. Bounded: 60 s of the processor and 1 GB a run.
search() { # options of the model...
    spin "$@" -a "$model" >spin.txt 2>&1 || { cat spin.txt; exit 1; }
    "$compiler" -O2 -w -DSAFETY -DNOFAIR -DMEMLIM=1000 -o pan pan.c
    (ulimit -t 60 && ./pan -m1000000) >report.txt 2>&1 || true
}

n_failed=0
for rule in "" -DON_LOSS_STOP -DON_LOSS_PROXY; do
    search $rule
    if grep -q "errors: 0" report.txt && ! grep -qE "max search depth too small|Search not completed|out of memory" report.txt; then
        echo "holds: authority ${rule:-(the other takes over)}: $(grep -oE "[0-9.e+]+ states, stored" report.txt)"
    else
        cat report.txt
        echo "the authority ${rule:-(the other takes over)} breaks an assertion, or was not searched to the end"
        n_failed=$((n_failed + 1))
    fi
done
for broken in BROKEN_GATE BROKEN_FENCE BROKEN_WATCH BROKEN_WAIT BROKEN_ANSWER; do
    search -D$broken
    if grep -q "assertion violated" report.txt; then
        echo "caught: $broken: $(grep -oE "assertion violated [^(]*\(.*\)" report.txt | head -1)"
    else
        cat report.txt
        echo "$broken is not caught"
        n_failed=$((n_failed + 1))
    fi
done
((n_failed == 0))
