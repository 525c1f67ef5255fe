#!/usr/bin/env bash
# spin_authority.sh SOURCE_DIRECTORY: every state that the model of the switch's authority (tests/spin/authority.pml) can reach keeps the assertions,
# for each rule of loss; and each deliberately broken variant is caught, so that the assertions can fail.
set -euo pipefail
. "$(dirname "$0")/../support/spin.sh" authority "${1:-}"

for rule in "" -DON_LOSS_STOP -DON_LOSS_PROXY; do
    # shellcheck disable=SC2086
    search 60 1000 1000000 "" $rule
    expect_holds "authority ${rule:-(the other takes over)}"
done
for broken in BROKEN_GATE BROKEN_FENCE BROKEN_WATCH BROKEN_WAIT BROKEN_ANSWER; do
    search 60 1000 1000000 "" -D$broken
    expect_caught $broken
done
((n_failed == 0))
