#!/usr/bin/env bash
# install_and_embed.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# Installs into an empty prefix, looks at what came, then builds examples/embed against it in both documented ways
# (find_package and pkg-config) and compares the motion with a pendulum integrated here.
set -euo pipefail
export LC_ALL=C
source=${1:-$US_SOURCE_DIR}
build=${2:-$US_BINARY_DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
fail() {
    echo "$*"
    exit 1
}

cmake --install "$build" --prefix "$prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
libdir=$(dirname "$(find "$prefix" -name libunderstudy.so)")
for file in "$prefix/bin/understudy" "$libdir/libunderstudy.so" "$libdir/libunderstudy.so.0" "$libdir/libunderstudy.a" "$libdir/pkgconfig/understudy.pc" \
    "$libdir/cmake/Understudy/UnderstudyConfig.cmake" "$libdir/cmake/Understudy/UnderstudyConfigVersion.cmake" "$prefix/share/understudy/schema/scene.xsd"; do
    [[ -e $file ]] || fail "not installed: ${file#"$prefix"/}"
done
for header in "$source"/include/understudy/*.h; do
    [[ -e $prefix/include/understudy/$(basename "$header") ]] || fail "not installed: $(basename "$header")"
done

# Everything that the shared library offers begins with us_, and every function that a public header promises is there.
nm -D --defined-only "$libdir/libunderstudy.so" | awk '{ print $3 }' | sort >"$work/exported"
sed -n 's/^US_API [^(]*[ *]\(us_[a-z0-9_]*\)(.*/\1/p' "$source"/include/understudy/*.h | sort >"$work/promised"
[[ -s $work/promised ]] || fail "no promised functions found in the public headers"
foreign=$(grep -v "^us_" "$work/exported" || true)
[[ -z $foreign ]] || fail "exported but not us_*: $foreign"
absent=$(comm -13 "$work/exported" "$work/promised")
[[ -z $absent ]] || fail "declared in a public header but not exported: $absent"

version=$(LD_LIBRARY_PATH='' "$prefix/bin/understudy" --version) || fail "the installed program does not run"
[[ $version == *[0-9].[0-9]* ]] || fail "understudy --version says: $version"

cmake -S "$source/examples/embed" -B "$work/by-cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 && cmake --build "$work/by-cmake" >>"$work/log" 2>&1 ||
    { cat "$work/log"; fail "examples/embed does not build with find_package"; }
mkdir "$work/by-make"
PKG_CONFIG_PATH=$libdir/pkgconfig make -C "$source/examples/embed" OUT="$work/by-make/pendulum" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "examples/embed does not build with pkg-config"; }
by_cmake=$("$work/by-cmake/pendulum") || fail "the example built with find_package failed: $by_cmake"
by_make=$(LD_LIBRARY_PATH=$libdir "$work/by-make/pendulum") || fail "the example built with pkg-config failed: $by_make"
[[ $by_cmake == "$by_make" ]] || fail "the two builds differ: $by_cmake / $by_make"
echo "$by_cmake"

# The example's pendulum: 2 kg on a massless rod of 0.5 m, 0.02 kg m^2 about its centre of mass, released at 1 rad.
# Here by the fourth-order Runge-Kutta rule with 10 us steps, exact to 1e-12. The library's second-order step of 1 ms is
# within 1e-5 rad of it.
echo "$by_cmake" | awk '
function acceleration(angle) { return -2 * 9.81 * 0.5 * sin(angle) / (0.02 + 2 * 0.5 * 0.5) }
/^time/ { angle = $5; drift = $NF; seen = 1 }
END {
    if (!seen) { print "no line \"time ...\" in the output"; exit 1 }
    h = 1e-5; q = 1; v = 0
    for (i = 0; i < 100000; i++) {
        k1 = acceleration(q); k2 = acceleration(q + h / 2 * v); k3 = acceleration(q + h / 2 * v + h * h / 4 * k1); k4 = acceleration(q + h * v + h * h / 2 * k2)
        q += h * v + h * h / 6 * (k1 + k2 + k3); v += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    }
    if (!(angle - q < 1e-5 && q - angle < 1e-5)) { printf "angle %.9f, expected %.9f\n", angle, q; exit 1 }
    if (!(drift < 1e-6 && drift > -1e-6)) { printf "the energy changed by %g of its size\n", drift; exit 1 }
}'
