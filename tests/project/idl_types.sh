#!/usr/bin/env bash
# tools/idl_types.c takes our IDL, and refuses what it cannot read with the file, the line and the reason instead of making a wrong table.
set -euo pipefail
source_dir=${1:-${US_SOURCE_DIR:-.}}
build_dir=${2:-${US_BINARY_DIR:-$source_dir/build}}
tool=$build_dir/idl_types
[[ -x $tool ]] || { echo "$tool is not built"; exit 1; }
failed=0

"$tool" list.h table.c public.h "$source_dir"/idl/*.idl
# The order in which the files are given does not matter.
mapfile -t reversed < <(printf '%s\n' "$source_dir"/idl/*.idl | sort -r)
"$tool" list_reversed.h table_reversed.c public_reversed.h "${reversed[@]}"
cmp table.c table_reversed.c || failed=1
cmp public.h public_reversed.h || failed=1

# The public header needs nothing but standard headers, as C and as C++.
for language in c:c17 c++:c++17; do
    ${CC:-cc} -x "${language%%:*}" -std="${language##*:}" -Wall -Wextra -Wpedantic -Werror -fsyntax-only public.h || failed=1
done

# refuses REASON LINE TEXT: the text as bad.idl is refused at that line with that reason.
refuses() {
    printf '%s' "$3" >bad.idl
    if "$tool" bad.h bad.c bad_public.h bad.idl 2>message.txt; then
        echo "taken, though it should be refused ($1): $3"
        failed=1
    elif ! grep -q "bad.idl:$2: .*$1" message.txt; then
        echo "expected bad.idl:$2: ... $1, not: $(cat message.txt)"
        failed=1
    fi
}

open='module p { module msg { module dds_ { '
close=' }; }; };'
refuses '"@" is expected' 1 "$open struct A_ { int32 x; }; $close"
refuses 'must end with _' 1 "$open @final struct A { int32 x; }; $close"
refuses '"final" is expected' 1 "$open @mutable struct A_ { int32 x; }; $close"
refuses 'a struct stands in module' 1 "module p { @final struct A_ { int32 x; }; };"
refuses 'a struct stands in module' 1 "module p { module idl { module dds_ { @final struct A_ { int32 x; }; $close"
refuses 'a member is expected' 2 "$open @final struct A_ {"$'\n'"}; $close"
refuses 'type B_ of package p is not known' 1 "$open @final struct A_ { B_ b; }; $close"
refuses 'type long of package p is not known' 1 "$open @final struct A_ { long b; }; $close"
refuses 'member x stands twice' 3 "$open @final struct A_ {"$'\n'"int32 x;"$'\n'"int8 x; }; $close"
refuses 'no array of sequences' 1 "$open @final struct A_ { sequence<int32> x[3]; }; $close"
refuses 'a number from 1 to 65536' 1 "$open @final struct A_ { int32 x[0]; }; $close"
refuses 'a number from 1 to 65536' 1 "$open @final struct A_ { string<N> x; }; $close"
refuses 'would share its short name' 2 "$open @final struct A_ { int8 x; }; $close
module q { module msg { module dds_ { @final struct A_ { int8 x; }; $close"
refuses 'a name is expected' 1 "$open @final struct A_ { int32 x; "
refuses '";" is expected' 1 "$open @final struct A_ { int32 x }; $close"
refuses '#include "file" is expected' 1 '#include <other.idl>'
deep=$open
previous=int8
for i in 1 2 3 4 5 6 7 8 9; do
    deep+="@final struct A${i}_ { $previous x; }; "
    previous=A${i}_
done
refuses 'nested too deep' 1 "$deep $close"

# A missing file is said by its name.
if "$tool" bad.h bad.c bad_public.h missing.idl 2>message.txt || ! grep -q 'missing.idl: cannot be read' message.txt; then
    echo "a missing file: $(cat message.txt)"
    failed=1
fi
exit $failed
