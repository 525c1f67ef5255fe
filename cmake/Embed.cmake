# cmake -DINPUT=file -DOUTPUT=file.c -DNAME=symbol -DHEADER=header -P Embed.cmake
# Writes a C file with the bytes of INPUT as `const char NAME[]`, ended by a 0 that `NAME_length` does not count.
file(READ "${INPUT}" hex HEX)
file(SIZE "${INPUT}" size)
# One line per 24 bytes; bytes above 127 get a cast, since plain char may be signed.
string(REGEX REPLACE "(................................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x[89a-f])" "(char)\\1" bytes "${bytes}")
get_filename_component(input_name "${INPUT}" NAME)
file(WRITE "${OUTPUT}" "// Made from ${input_name} by cmake/Embed.cmake.
#include \"${HEADER}\"

#include <stddef.h>

const char ${NAME}[] = {
${bytes}0};
const size_t ${NAME}_length = ${size};
")
