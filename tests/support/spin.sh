# For tests by the model checker Spin, sourced with the model's name (tests/spin/NAME.pml) and the source directory: its states are searched, in a
# directory that goes with the test. Ends the test where there is no Spin.
source=$(cd "${2:-${US_SOURCE_DIR:-.}}" && pwd)
model=$source/tests/spin/$1.pml
if ! command -v spin >/dev/null; then
    echo "skipped: spin is not installed"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
n_failed=0

# Writes the verifier's report to report.txt. Bounded in seconds of the processor, in MB and in steps from the start.
search() { # seconds megabytes steps "options of the verifier" options of the model...
    local seconds=$1 megabytes=$2 steps=$3 verifier=$4
    shift 4
    spin "$@" -a "$model" >spin.txt 2>&1 || { cat spin.txt; exit 1; }
    # shellcheck disable=SC2086
    "${CC:-gcc}" -O2 -w -DSAFETY -DNOFAIR $verifier -DMEMLIM="$megabytes" -o pan pan.c
    (ulimit -t "$seconds" && ./pan -m"$steps") >report.txt 2>&1 || true
}

# What was searched last keeps all assertions, in every state.
expect_holds() { # name
    if grep -q "errors: 0" report.txt && ! grep -qE "max search depth too small|Search not completed|out of memory" report.txt; then
        echo "holds: $1: $(grep -oE "[0-9.e+]+ states, stored" report.txt)"
    else
        cat report.txt
        echo "$1: breaks an assertion, or was not searched to the end"
        n_failed=$((n_failed + 1))
    fi
}

# What was searched last is broken on purpose, and the assertions notice.
expect_caught() { # name
    if grep -q "assertion violated" report.txt; then
        echo "caught: $1: $(grep -oE "assertion violated [^(]*\(.*\)" report.txt | head -1 | cut -c1-100)"
    else
        cat report.txt
        echo "$1 is not caught"
        n_failed=$((n_failed + 1))
    fi
}
