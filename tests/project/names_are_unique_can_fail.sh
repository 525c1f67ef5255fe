#!/usr/bin/env bash
# Feeds names_are_unique.sh small trees with one fault each: it must name the place. A tree without a fault must pass, and so must
# what looks like a fault and is none.
set -euo pipefail
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/names_are_unique.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fresh_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{include/understudy,src/base,src/top,cli,tests/unit}
    printf 'typedef struct us_thing us_thing;\n' >"$tree/include/understudy/low.h"
    printf '#include "base/base__own.h"\ntypedef struct alone { int a; } alone;\n' >"$tree/src/base/a.c"
    printf 'typedef struct usi_own { int a; } usi_own;\n' >"$tree/src/base/base__own.h"
    printf '#include "base/a.h"\n' >"$tree/src/top/b.c"
    printf '\n' >"$tree/src/base/a.h"
    printf 'typedef struct alone { int a; } alone;\n' >"$tree/cli/main.c"
    printf '#include "base/base__own.h"\n' >"$tree/tests/unit/test_a.c"
}

n_failed=0
expect_fault() { # file text: the last line of the text, appended to the file, must be found
    fresh_tree
    mkdir -p "$(dirname "$tree/$1")"
    printf '%b\n' "$2" >>"$tree/$1"
    local place
    place="$1:$(wc -l <"$tree/$1")"
    if output=$(bash "$script" "$tree"); then
        echo "not noticed: $place: $2"
        n_failed=$((n_failed + 1))
    elif [[ $output != "$place: "* || $output == *$'\n'* ]]; then
        echo "expected one complaint about $place, got: $output"
        n_failed=$((n_failed + 1))
    fi
}
expect_none() { # file text
    fresh_tree
    printf '%b\n' "$2" >>"$tree/$1"
    if ! output=$(bash "$script" "$tree"); then
        echo "refused without reason: $2: $output"
        n_failed=$((n_failed + 1))
    fi
}

fresh_tree
if ! bash "$script" "$tree"; then
    echo "a tree without a fault was refused"
    n_failed=$((n_failed + 1))
fi
rm -rf "${tree:?}"/*
if bash "$script" "$tree" >/dev/null; then
    echo "a tree without files passed"
    n_failed=$((n_failed + 1))
fi

# File names.
expect_fault src/top/a.c ''  # base/a.c is there already
expect_fault src/top/base__own.h ''

# Types.
expect_fault src/top/b.c 'typedef struct alone { double b; } alone;'
expect_fault src/top/b.c 'typedef enum alone { ONE, TWO } alone;'
expect_fault src/top/b.c 'typedef int alone[3];'
expect_fault src/top/b.c 'typedef double alone __attribute__((vector_size(32)));'
expect_fault src/top/b.c 'typedef void (*alone)(void *context, int n);'
expect_fault src/top/b.c 'typedef int alone(void *context);'
expect_fault src/top/b.c 'typedef struct us_thing us_thing;'

# Private headers.
expect_fault src/top/b.c '#include "base/base__own.h"'
expect_fault src/top/b.c '  #  include <base/base__own.h>'
expect_fault cli/main.c '#include "base/base__own.h"'

# Lines.
long=$(printf 'x%.0s' {1..109})
expect_fault src/base/a.c "//$long"
expect_fault cli/main.c "//$long"
expect_fault tests/unit/test_a.c "//$long"
expect_none src/base/a.c "// ${long:0:106}é"

# Commas.
expect_fault src/base/a.c 'void f(void) { a = 1, b = 2; }'
expect_fault src/base/a.c 'void f(void) { f(a), g(b); }'
expect_fault src/base/a.c 'void f(void) { if (a) b = 1, c = 2; }'
expect_fault src/base/a.c 'void f(void) { if (a) b = 1; else c = 1, d = 2; }'
expect_fault src/base/a.c 'void f(void) { for (;;) a++, b++; }'
expect_fault src/base/a.c 'int f(void) { return a++, b; }'
expect_fault src/base/a.c 'void f(void) { switch (a) { case 1: b = 1, c = 2; } }'
expect_fault src/base/a.c 'void f(void) { done: b = 1, c = 2; }'
expect_fault src/base/a.c 'void f(void) { do a = 1, b = 2; while (c); }'
expect_fault src/base/a.c 'void f(void) { *a = 1, *b = 2; }'
expect_fault src/base/a.c 'void f(void) { a->x = (t){1, 2}, b = 2; }'
expect_fault src/base/a.c 'void f(void) {\n    LIST(X)\n    a = 1, b = 2; }'
expect_fault src/base/a.h 'static inline void f(void) { a[i] = 1, b[i] = 2; }'
expect_fault cli/main.c 'int main(void) { a = "x;y", b = 2; }'
expect_fault include/understudy/low.h 'static inline void f(void) { (void)a, (void)b; }'
expect_none src/base/a.c 'int f(int a, int b) { int c = 1, *d = &c; us_thing *t = g(a, b), u; return c + h(a, b); }'
expect_none src/base/a.c 'void f(void) { for (int i = 0, j = 9; i < j; i++, j--) { g(i, j); } }'
expect_none src/base/a.c 'struct s { int a, b; union { double x, y; } u, v; };\nenum { ONE, TWO };\nstatic const int list[] = {1, 2, 3};'
expect_none src/base/a.c 'struct s { LIST(FIELD)\n    double a, b; };\nvoid f(void) { MACRO(a, b)\n    int c, d; }'
expect_none src/base/a.c 'void f(void) { double (*a)[2] = g(1, 2), (*b)(int, int) = 0; x = (t){1, 2}; return (t){.a = 1, .b = 2}; }'
expect_none src/base/a.c 'void f(void) { char c = '"','"'; /* a = 1, b = 2; */ g("a = 1, b = 2;"); } // a = 1, b = 2;'
expect_none src/base/a.c '#define BOTH(x, y) \\\n    x = 1, y = 2;\nint a, b;'
expect_none src/base/a.c 'struct s { unsigned a : 3, b : 4; };\nvoid f(void) { x = a ? b : c; us_thing (*t)[3], u; static us_thing v, w; }'
((n_failed == 0))
