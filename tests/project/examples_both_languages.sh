#!/usr/bin/env bash
# examples_both_languages.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# Every example compiles as C17 and as C++17 without a warning, against the public headers alone. examples/hardware needs the firmware too; its body.c
# is left out where MuJoCo is not installed.
set -euo pipefail
source=$(cd "${1:-${US_SOURCE_DIR:-.}}" && pwd)
build=$(realpath "${2:-${US_BINARY_DIR:-$source/build}}")
warnings=(-Wall -Wextra -Wpedantic -Werror -Wshadow)
compilers=(gcc)
if command -v clang >/dev/null; then compilers+=(clang); fi
xml=$(pkg-config --variable=includedir libxml-2.0)/libxml2
n_example=0
n_failed=0
for example in "$source"/examples/*/*.c; do
    more=()
    if [[ $example == */examples/hardware/* ]]; then
        more=(-D_GNU_SOURCE -I"$source/src" -isystem "$xml")
        if [[ $example == */body.c ]] && ! echo '#include <mujoco/mujoco.h>' | gcc -E -x c - >/dev/null 2>&1; then continue; fi
    fi
    n_example=$((n_example + 1))
    for compiler in "${compilers[@]}"; do
        for language in c:c17 c++:c++17; do
            if ! "$compiler" -x "${language%%:*}" -std="${language##*:}" "${warnings[@]}" "${more[@]}" -I"$source/include" -I"$build/generated/include" -fsyntax-only "$example"; then
                echo "${example#"$source/"} does not compile ($compiler, ${language##*:})"
                n_failed=$((n_failed + 1))
            fi
        done
    done
done
((n_example >= 7 && n_failed == 0))
