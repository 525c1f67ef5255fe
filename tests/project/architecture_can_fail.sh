#!/usr/bin/env bash
# Feeds architecture.sh small trees with one fault each: it must name it. A tree without a fault must pass.
set -euo pipefail
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/architecture.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fresh_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{cmake,docs,src/low,src/high,src/apart,cli}
    printf '# comment\nlow\nhigh\napart: low\n' >"$tree/cmake/rooms.txt"
    printf 'pthread_mutex_init(&lock, NULL);\n' >"$tree/src/low/a.c"
    printf '// not pthread_create(&thread) here\n' >"$tree/src/high/b.c"
    printf 'pthread_create(&thread, NULL, run, NULL);\n' >"$tree/cli/main.c"
    printf '\n' >"$tree/src/apart/c_one.c"
    cat >"$tree/docs/architecture.md" <<'PAGE'
# Architecture

## Rooms

| room | what is in it | may include |
|---|---|---|
| low | a | |
| high | b | all above |
| apart | c | low |

## Threads and locks

`low/a.c` and `cli/main.c`.

## Three walks

### A command to a torque to a sample

1. **low** `a.c`: in.
2. **high** `b.c`: out; **low** `a.c` again.

Two rooms (high, low) and 2 files, each counted once.

### A scene to a state

1. **apart** `c_*.c`.

One rooms.

### A slider to a contact row

1. **low** `a.c`.

One rooms.
PAGE
}

n_failed=0
expect_fault() { # change to the tree, and what must be said of it
    fresh_tree
    (cd "$tree" && eval "$1")
    if output=$(bash "$script" "$tree"); then
        echo "not noticed: $1"
        n_failed=$((n_failed + 1))
    elif [[ $output != *"$2"* || $output == *$'\n'* ]]; then
        echo "expected \"$2\" alone after $1, got: $output"
        n_failed=$((n_failed + 1))
    fi
}

fresh_tree
if ! bash "$script" "$tree"; then
    echo "a tree without a fault was refused"
    n_failed=$((n_failed + 1))
fi
page=docs/architecture.md
expect_fault "printf 'more\n' >>cmake/rooms.txt" 'the rooms are low, high, apart, more'
expect_fault "sed -i '/^| high/d' $page" 'and the table has low, apart'
expect_fault "sed -i 's/^| apart | c | low/| apart | c | all above/' $page" 'apart may include low, not all above'
expect_fault "printf 'static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n' >>src/high/b.c" 'does not name high/b.c'
expect_fault "mkdir -p plugins/x && printf 'std::mutex lock;\n' >plugins/x/v.cpp" 'does not name plugins/x/v.cpp'
expect_fault "sed -i 's/\`cli.main.c\`//' $page" 'does not name cli/main.c'
expect_fault "rm src/apart/c_one.c" 'there is no src/apart/c_*.c'
expect_fault "sed -i 's/and 2 files/and 3 files/' $page" 'names 2 files'
expect_fault "sed -i 's/^Two rooms (high, low)/Two rooms (high, apart)/' $page" 'goes through'
expect_fault "sed -i 's/^1. .*apart.*/1. **apart** \`c_*.c\`, **low** \`a.c\`./' $page" 'names 2 rooms'
expect_fault "for i in \$(seq 20); do echo >src/low/f\$i.c; sed -i \"s/^1. \*\*low\*\* \\\`a.c\\\`: in/& **low** \\\`f\$i.c\\\`/\" $page; done; sed -i 's/and 2 files/and 22 files/' $page" \
    'of at most 7 and 16'
((n_failed == 0))
