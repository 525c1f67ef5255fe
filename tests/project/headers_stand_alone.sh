#!/usr/bin/env bash
# Each public header compiles alone, as C17 and as C++17, without a warning, has fewer than 400 lines, is part of understudy.h, and stands in the table of
# docs/library.md.
set -euo pipefail
source=${1:-${US_SOURCE_DIR:-.}}
build=$(realpath "${2:-${US_BINARY_DIR:-$source/build}}")
cd "$source"
warnings=(-Wall -Wextra -Wpedantic -Werror -Wshadow)
compilers=(gcc)
if command -v clang >/dev/null; then compilers+=(clang); fi
n_header=0
n_failed=0
for header in include/understudy/*.h "$build/generated/include/understudy/messages.h"; do
    n_header=$((n_header + 1))
    name=understudy/$(basename "$header")
    for compiler in "${compilers[@]}"; do
        for language in c:c17 c++:c++17; do
            if ! echo "#include <$name>" | "$compiler" -x "${language%%:*}" -std="${language##*:}" "${warnings[@]}" -Iinclude -I"$build/generated/include" -fsyntax-only -; then
                echo "$header does not stand alone ($compiler, ${language##*:})"
                n_failed=$((n_failed + 1))
            fi
        done
    done
    if [[ $name != understudy/understudy.h ]] && ! grep -q "^#include \"$name\"" include/understudy/understudy.h; then
        echo "$header is not part of understudy.h"
        n_failed=$((n_failed + 1))
    fi
    if ! grep -q "^|.*\`$(basename "$header")\`.*|" docs/library.md; then
        echo "$header is not in the table of docs/library.md"
        n_failed=$((n_failed + 1))
    fi
    # What is made from the IDL is as long as that.
    if [[ $name == understudy/messages.h ]]; then continue; fi
    n_line=$(wc -l <"$header")
    if ((n_line >= 400)); then
        echo "$header has $n_line lines; a public header has fewer than 400"
        n_failed=$((n_failed + 1))
    fi
done
((n_header > 0 && n_failed == 0))
