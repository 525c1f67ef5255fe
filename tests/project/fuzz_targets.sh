#!/usr/bin/env bash
# Every fuzz target compiles, with the flags that ./dev fuzz gives it, which takes minutes to build them: fuzz_targets.sh SOURCE BUILD
# Without clang, which fuzzing needs, there is nothing to check.
set -euo pipefail
source=$1 build=$2
command -v clang >/dev/null || {
    echo "skipped: clang is not installed"
    exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
complain() {
    echo "$*"
    status=1
}

cmake -S "$source" -B "$work" -G Ninja -DCMAKE_C_COMPILER=clang -DUS_FUZZ=ON -DUS_SANITIZE=address,undefined -DUS_WERROR=ON -DUS_PAGE=OFF -DUS_TESTS=OFF \
    -DUS_BENCH=OFF -DUS_PEERS=OFF -DUS_FASTDDS=OFF -DCMAKE_C_COMPILER_LAUNCHER= >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
}
shopt -s nullglob
targets=("$source"/fuzz/fuzz_*.c)
((${#targets[@]} > 0)) || complain "there are no fuzz targets"
for target in "${targets[@]}"; do
    name=$(basename "$target" .c)
    command=$(sed -n "s|^ *\"command\": \"\(.*/$name\.c\)\",\{0,1\}\$|\1|p" "$work/compile_commands.json")
    if [[ -z $command ]]; then
        complain "$name is not built"
        continue
    fi
    # As JSON has it, a backslash stands before each quote and each backslash.
    command=$(sed 's/\\\(["\\]\)/\1/g' <<<"$command")
    # The headers of the messages are made while building: those of the build that is tested are the same.
    command=${command//$work\/generated/$build/generated}
    (cd "$work" && bash -c "${command/ -c / -fsyntax-only }") || complain "$name does not compile"
    [[ -d $source/fuzz/corpus/${name#fuzz_} ]] || complain "$name has no seeds in fuzz/corpus/${name#fuzz_}"
done
exit $status
