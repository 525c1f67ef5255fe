#!/usr/bin/env bash
# Which file may include which: include_direction.sh [SOURCE_DIRECTORY]
#   src/<room>/           headers of its own room and of the rooms that cmake/rooms.txt allows it, public ones likewise
#   include/understudy/   standard headers and public headers
#   cli/, examples/       public headers and their own, never src/; examples/hardware also src/firmware, which runs inside it
# Prints each line that breaks this, as file:line, and ends with 1 when there is one.
set -euo pipefail
cd "${1:-${US_SOURCE_DIR:-.}}"

files=$(find src include cli examples -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) 2>/dev/null | sort || true)
[[ -n $files ]] || { echo "no source files below $PWD"; exit 1; }

# shellcheck disable=SC2086
awk '
function complain(why) { printf "%s:%d: %s\n    %s\n", FILENAME, FNR, $0, why; bad = 1 }

# The public header of a room has its name, so that a room sees public headers only of the rooms it may use.
function check_room(from, to) {
    # What plug-ins of the spec are made of stands in a header of its own, and so do networks, materials, laws of soil, sensors, lidars and rasters.
    if (to == "interaction" || to == "network" || to == "material" || to == "soil_law" || to == "ground_model" || to == "lidar" || to == "sensor") to = "spec"
    if (from == "interaction" || from == "network" || from == "material" || from == "soil_law" || from == "ground_model" || from == "lidar" || from == "sensor") from = "spec"
    if (to == "raster") to = "terrain"
    if (from == "raster") from = "terrain"
    if (to == "query" || to == "sensing" || to == "depth_scanner" || to == "camera") to = "sim"
    if (from == "query" || from == "sensing" || from == "depth_scanner" || from == "camera") from = "sim"
    if (to == "messages" || to == "interface" || to == "link") to = "wire"
    if (from == "interface" || from == "link") from = "wire"
    if (to == "service" || to == "action") to = "bus"
    if (from == "service" || from == "action") from = "bus"
    if (to == "pace" || to == "rover") to = "base"
    if (from == "pace" || from == "rover") from = "base"
    if (to == "camera_model" || to == "image") to = "vision"
    if (from == "camera_model" || from == "image") from = "vision"
    # All of the library in one header.
    if (from == "understudy") return
    if (!(to in is_room)) complain("\"" to "\" is not a room of cmake/rooms.txt")
    else if (from != to && !((from, to) in allowed)) complain("room " from " may not include room " to)
}

FILENAME == "cmake/rooms.txt" {
    if ($0 !~ /^[a-z]/) next
    room = $1
    sub(/:.*/, "", room)
    if ($0 ~ /:/) { for (i = 2; i <= NF; i++) allowed[room, $i] = 1 }
    else { for (other in is_room) allowed[room, other] = 1 }
    is_room[room] = 1
    next
}

/^[ \t]*#[ \t]*include/ {
    if (!match($0, /[<"][^>"]*[>"]/)) { complain("this include cannot be read"); next }
    quote = substr($0, RSTART, 1)
    header = substr($0, RSTART + 1, RLENGTH - 2)
    split(FILENAME, path, "/")
    n = split(header, part, "/")
    is_public = part[1] == "understudy"
    if (header ~ /\.\./) { complain("paths with .. hide where a header comes from"); next }
    if (path[1] == "src") {
        if (is_public) { room = part[2]; sub(/\.h$/, "", room); check_room(path[2], room) }
        else if (quote == "\"") {
            if (n < 2) complain("write the room too: \"" path[2] "/" header "\"")
            else check_room(path[2], part[1])
        }
    } else if (path[1] == "include") {
        if (is_public) {
            room = part[2]; sub(/\.h$/, "", room)
            own = path[3]; sub(/\.h$/, "", own)
            check_room(own, room)
        } else if (quote == "\"" || n > 1 || !(header in is_standard)) complain("a public header includes standard and public headers only")
    } else if (FILENAME ~ /^examples\/hardware\// && part[1] == "firmware") {
        next
    } else if (quote == "\"" && !is_public) {
        # cli/ and examples/: a header of their own stands in the same directory.
        directory = FILENAME
        sub(/[^\/]*$/, "", directory)
        if (n > 1) complain("only public headers and those of the same directory")
        else if ((getline line < (directory header)) < 0) complain("only public headers and those of the same directory")
        else close(directory header)
    }
}

BEGIN {
    n = split("assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h limits.h locale.h math.h setjmp.h signal.h stdalign.h stdarg.h " \
              "stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h tgmath.h threads.h time.h uchar.h wchar.h wctype.h", names, " ")
    for (i = 1; i <= n; i++) is_standard[names[i]] = 1
}
END { exit bad }
' cmake/rooms.txt $files
