#!/usr/bin/env bash
# examples_both_languages.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# Every example compiles as C17 and as C++17 without a warning, against the public headers alone. Not those of examples/hardware, which is a program of
# this tree built with its flags.
set -euo pipefail
source=$(cd "${1:-${US_SOURCE_DIR:-.}}" && pwd)
build=$(realpath "${2:-${US_BINARY_DIR:-$source/build}}")
warnings=(-Wall -Wextra -Wpedantic -Werror -Wshadow)
compilers=(gcc)
if command -v clang >/dev/null; then compilers+=(clang); fi
n_example=0
n_failed=0
for example in "$source"/examples/*/*.c; do
    if [[ $example == */examples/hardware/* ]]; then continue; fi
    n_example=$((n_example + 1))
    for compiler in "${compilers[@]}"; do
        for language in c:c17 c++:c++17; do
            if ! "$compiler" -x "${language%%:*}" -std="${language##*:}" "${warnings[@]}" -I"$source/include" -I"$build/generated/include" -fsyntax-only "$example"; then
                echo "${example#"$source/"} does not compile ($compiler, ${language##*:})"
                n_failed=$((n_failed + 1))
            fi
        done
    done
done
((n_example >= 3 && n_failed == 0))
