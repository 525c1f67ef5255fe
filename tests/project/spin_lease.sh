#!/usr/bin/env bash
# spin_lease.sh SOURCE_DIRECTORY: each deliberately broken variant of the model of the leases (tests/spin/lease.pml) is caught. With US_LONG_TESTS: and
# every state that two switches at one gate can reach keeps the assertions (three million states, half a minute of the processor).
set -euo pipefail
. "$(dirname "$0")/../support/spin.sh" lease "${1:-}"

# Roles and states of the model are those of the code.
expect_names() { # file prefix names...
    local file=$source/$1 prefix=$2 name
    shift 2
    for name in "$@"; do
        grep -q "^#define $name " "$model" && grep -qw "$prefix$name" "$file" && continue
        echo "$name of $model is not $prefix$name of $file"
        n_failed=$((n_failed + 1))
    done
}
expect_names include/understudy/gate.h US_GATE_ NONE PASSIVE ACTIVE
expect_names src/switch/lease_machine.h USI_TENURE_ WAITING OFFICE OVER

if [[ -n ${US_LONG_TESTS:-} ]]; then
    search 120 2000 10000000 -DCOLLAPSE -DN_SWITCH=2 -DN_GATE=1
    expect_holds "two switches, one gate"
fi
for broken in "-DN_SWITCH=2 -DN_GATE=1 -DNO_FENCE" "-DN_SWITCH=2 -DN_GATE=1 -DRETURN" "-DN_SWITCH=1 -DN_GATE=2 -DQUICK -DNO_CONFIRM"; do
    # shellcheck disable=SC2086
    search 120 2000 10000000 -DCOLLAPSE $broken
    expect_caught "$broken"
done
((n_failed == 0))
