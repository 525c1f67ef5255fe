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

# Everything that the shared library offers begins with us_, but for bind and setsockopt, which DDS finds before the C library's
# (src/bus/local_socket.h), and every function that a public header promises is there.
nm -D --defined-only "$libdir/libunderstudy.so" | awk '{ print $3 }' | sort >"$work/exported"
sed -n 's/^US_API [^(]*[ *]\(us_[a-z0-9_]*\)(.*/\1/p' "$source"/include/understudy/*.h | sort >"$work/promised"
[[ -s $work/promised ]] || fail "no promised functions found in the public headers"
foreign=$(grep -v -e "^us_" -e "^bind$" -e "^setsockopt$" "$work/exported" || true)
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

# The first program: at most 15 lines of C, and a ball of radius 0.1 m that lies on the ground after a second. Shapes that carry weight give way by
# less than a millimetre.
n_line=$(grep -cvE '^ *(//.*)?$' "$source/examples/first/first.c")
((n_line <= 15)) || fail "examples/first/first.c has $n_line lines of code"
cmake -S "$source/examples/first" -B "$work/first" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 && cmake --build "$work/first" >>"$work/log" 2>&1 ||
    { cat "$work/log"; fail "examples/first does not build with find_package"; }
mkdir "$work/first-by-make"
PKG_CONFIG_PATH=$libdir/pkgconfig make -C "$source/examples/first" OUT="$work/first-by-make/first" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "examples/first does not build with pkg-config"; }
first=$(cd "$work/first" && ./first) || fail "examples/first failed: $first"
[[ $first == $(cd "$work/first" && LD_LIBRARY_PATH=$libdir ../first-by-make/first) ]] || fail "the two builds of examples/first differ"
echo "$first" | awk '{ seen = $1 == "ball/ball:" && $4 > 0.099 && $4 < 0.101 && $2 < 1e-3 && $2 > -1e-3 } END { exit !(seen && NR == 1) }' ||
    fail "examples/first prints: $first"
if message=$(cd "$work" && first/first 2>&1); then fail "examples/first runs without its scene"; fi
[[ $message == *first.xml*remedy:* ]] || fail "without its scene examples/first says: $message"

# Messages from outside, with nothing but what was installed, as C and as C++.
cat >"$work/message.c" <<'END'
#include <string.h>
#include <understudy/understudy.h>

int main(void) {
    char name[] = "elbow", *names[1], frame[] = "base";
    double position[1] = {0.25};
    us_msg_joint_state state = US_ZERO;
    names[0] = name;
    state.header.stamp.sec = 7;
    state.header.frame_id = frame;
    state.name._length = 1;
    state.name._buffer = names;
    state.position._length = 1;
    state.position._buffer = position;
    unsigned char bytes[256];
    size_t length = 0;
    static double memory[128];
    const void *back = NULL;
    us_error err = US_ZERO;
    const us_message_type *type = us_message_find("sensor_msgs/msg/JointState");
    if (us_message_size(type) != sizeof state) return 2;
    if (us_message_encode(type, &state, bytes, sizeof bytes, &length)) return 3;
    if (us_message_decode(type, bytes, length, memory, sizeof memory, &back, &err)) return us_error_print(stderr, &err);
    const us_msg_joint_state *got = (const us_msg_joint_state *)back;
    if (got->header.stamp.sec != 7 || strcmp(got->header.frame_id, "base") != 0 || got->name._length != 1) return 4;
    if (strcmp(got->name._buffer[0], "elbow") != 0 || got->position._buffer[0] != 0.25 || got->velocity._length != 0) return 5;
    printf("%d bytes\n", (int)length);
    return us_message_get_number(type, bytes, length, "position[0]") == 0.25 ? 0 : 6;
}
END
for language in c:c17 c++:c++17; do
    "${CC:-cc}" -x "${language%%:*}" -std="${language##*:}" -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -o "$work/message" "$work/message.c" \
        -L"$libdir" -Wl,-rpath,"$libdir" -lunderstudy || fail "a program with messages does not build (${language##*:})"
    "$work/message" >"$work/log" || fail "a program with messages failed (${language##*:}): $?"
done

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
