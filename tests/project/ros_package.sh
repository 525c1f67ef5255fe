#!/usr/bin/env bash
# ros/understudy_msgs is what tools/ros_package.c makes of idl/, to the letter; members, bounds and comments are carried over; what cannot be written
# is refused by its name.
set -euo pipefail
source_dir=${1:-${US_SOURCE_DIR:-.}}
build_dir=${2:-${US_BINARY_DIR:-$source_dir/build}}
tool=$build_dir/ros_package
[[ -x $tool ]] || { echo "$tool is not built"; exit 1; }
failed=0
rm -rf made reversed small none

version=$(sed -n 's/^project(understudy VERSION \([0-9.]*\).*/\1/p' "$source_dir/CMakeLists.txt")
[[ -n $version ]] || { echo "CMakeLists.txt has no version"; exit 1; }
"$tool" understudy_msgs "$version" made "$source_dir"/idl/*.idl
diff -r made "$source_dir/ros/understudy_msgs" || {
    echo "ros/understudy_msgs is not what idl/ says: cmake --build $build_dir --target us_ros_package, and delete files that stand there alone"
    failed=1
}
# The order in which the files are given does not matter.
mapfile -t files < <(printf '%s\n' "$source_dir"/idl/*.idl | sort -r)
"$tool" understudy_msgs "$version" reversed "${files[@]}"
diff -r made reversed || failed=1

cat >small.idl <<'IDL'
// Of the file, not of a type.

module other { module msg { module dds_ { @final struct Inner_ { boolean x; }; }; }; };
module small { module msg { module dds_ {
// Two lines
// of comment.
@final
struct All_ {  // of no member
    // Before a member.
    octet a;  // behind it
    string<12> b;
    double c[36];
    sequence<other::msg::dds_::Inner_, 4> d;

    // Alone.

    sequence<float> _sequence;
};
}; }; module srv { module dds_ {
@final
struct Ask_Response_ { uint64 guid; int64 seq; small::msg::dds_::All_ all; };
@final
struct Ask_Request_ { uint8 structure_needs_at_least_one_member; };
}; }; };
IDL
"$tool" small 1.2.3 small small.idl
diff small/msg/All.msg - <<'MSG' || failed=1
# Two lines
# of comment.

# Before a member.
byte a  # behind it
string<=12 b
float64[36] c
other/Inner[<=4] d
float32[] sequence
MSG
printf -- '---\nsmall/All all\n' | diff small/srv/Ask.srv - || failed=1
[[ $(find small -type f | sort | tr '\n' ' ') == "small/CMakeLists.txt small/msg/All.msg small/package.xml small/srv/Ask.srv " ]] || failed=1
grep -q '<depend>other</depend>' small/package.xml || failed=1
grep -q '<version>1.2.3</version>' small/package.xml || failed=1
grep -q '^  DEPENDENCIES other)$' small/CMakeLists.txt || failed=1

# refuses REASON ARGUMENT...
refuses() {
    local reason=$1
    shift
    if "$tool" "$@" 2>message.txt || ! grep -q "^ros_package: .*$reason" message.txt; then
        echo "expected \"$reason\", not: $(cat message.txt)"
        failed=1
    fi
}
half='module p { module srv { module dds_ { @final struct A_%s_ { int32 x; }; }; }; };'
# shellcheck disable=SC2059
printf "$half" Request >request.idl
# shellcheck disable=SC2059
printf "$half" Response >response.idl
printf 'module p { module msg { module dds_ { @final struct A_ { const int8 x; }; }; }; };' >bad.idl
refuses 'no type of package absent' absent 1.0.0 none small.idl
refuses 'p/srv/A_Request needs p/srv/A_Response beside it' p 1.0.0 none request.idl
refuses 'p/srv/A_Response needs p/srv/A_Request beside it' p 1.0.0 none response.idl
refuses 'bad.idl:1: type const of package p is not known here' p 1.0.0 none bad.idl
refuses 'missing.idl: cannot be read' p 1.0.0 none missing.idl
refuses 'small.idl/msg: cannot be made' small 1.0.0 small.idl small.idl
refuses 'VERSION DIRECTORY FILE.idl' small 1.0.0 none
[[ ! -e none ]] || { echo "something was written though the files were refused"; failed=1; }
exit $failed
