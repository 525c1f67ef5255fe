# For tests of the plug-ins of examples/, sourced: an installation, and the example built with it from a copy outside of the source tree.
#
# Sets program (understudy), work (a directory that goes with the test) and defines fail and build_example.
export LC_ALL=C NO_COLOR=1
source=${1:-$US_SOURCE_DIR}
build=${2:-$US_BINARY_DIR}
program=$(realpath "${US_PROGRAM:-$build/understudy}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "$*"
    exit 1
}

# Builds examples/EXAMPLE into $work/NAME: NAME.so, which exports FUNCTION and nothing else, and needs nothing of the library unless it asks the world.
build_example() { # example name function [asks]
    cmake --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; fail "the installation failed"; }
    cp -r "$source/examples/$1" "$work/mine"
    if ! { cmake -S "$work/mine" -B "$work/$2" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Werror" &&
        cmake --build "$work/$2"; } >"$work/log" 2>&1; then
        cat "$work/log"
        fail "examples/$1 does not build"
    fi
    local exported
    exported=$(nm -D --defined-only "$work/$2/$2.so" | awk '{ print $3 }')
    [[ $exported == "$3" ]] || fail "the plug-in exports more than its one function"
    if [[ ${4:-} != asks ]] && nm -D --undefined-only "$work/$2/$2.so" | grep -q " us_"; then fail "the plug-in needs the library, not the headers alone"; fi
}
