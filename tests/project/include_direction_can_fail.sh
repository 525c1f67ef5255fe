#!/usr/bin/env bash
# Feeds include_direction.sh small trees with one fault each: it must name the line. A tree without a fault must pass.
set -euo pipefail
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/include_direction.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fresh_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{cmake,include/understudy,src/low,src/high,src/apart,cli,examples/one}
    printf '# comment\nlow\nhigh\napart: low\n' >"$tree/cmake/rooms.txt"
    printf '#include <stddef.h>\n' >"$tree/include/understudy/low.h"
    printf '#include "understudy/low.h"\n' >"$tree/include/understudy/high.h"
    printf '#include "low/a.h"\n#include "understudy/low.h"\n#include <libxml/tree.h>\n' >"$tree/src/low/a.c"
    printf '\n' >"$tree/src/low/a.h"
    printf '#include "low/a.h"\n#include "understudy/high.h"\n' >"$tree/src/high/b.c"
    printf '#include "low/a.h"\n' >"$tree/src/apart/c.c"
    printf '#include "args.h"\n#include "understudy/high.h"\n#include <cjson/cJSON.h>\n' >"$tree/cli/main.c"
    printf '\n' >"$tree/cli/args.h"
    printf '#include <understudy/high.h>\n' >"$tree/examples/one/main.c"
}

n_failed=0
expect_fault() { # file line: the line appended to the file must be found
    fresh_tree
    printf '%s\n' "$2" >>"$tree/$1"
    local place
    place="$1:$(wc -l <"$tree/$1")"
    if output=$(bash "$script" "$tree"); then
        echo "not noticed: $place: $2"
        n_failed=$((n_failed + 1))
    elif [[ $output != "$place: $2"* ]]; then
        echo "expected a complaint about $place, got: $output"
        n_failed=$((n_failed + 1))
    fi
}

fresh_tree
if ! bash "$script" "$tree"; then
    echo "a tree without a fault was refused"
    n_failed=$((n_failed + 1))
fi
expect_fault src/low/a.c '#include "high/b.h"'
expect_fault src/low/a.c '  #  include "high/b.h"'
expect_fault src/low/a.h '#include "understudy/high.h"'
expect_fault src/low/a.c '#include <understudy/high.h>'
expect_fault src/low/a.c '#include "../high/b.h"'
expect_fault src/low/a.c '#include "a.h"'
expect_fault src/low/a.c '#include "nowhere/a.h"'
expect_fault src/apart/c.c '#include "high/b.h"'
expect_fault include/understudy/low.h '#include "understudy/high.h"'
expect_fault include/understudy/low.h '#include "low/a.h"'
expect_fault include/understudy/low.h '#include <libxml/tree.h>'
expect_fault include/understudy/low.h '#include <unistd.h>'
expect_fault cli/main.c '#include "low/a.h"'
expect_fault cli/main.c '#include "absent.h"'
expect_fault examples/one/main.c '#include "high/b.h"'
((n_failed == 0))
