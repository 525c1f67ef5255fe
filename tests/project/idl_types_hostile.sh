#!/usr/bin/env bash
# tools/idl_types.c with damaged IDL, under sanitizers: it makes its tables, or refuses with the file and the line. Seeds 1..N; a long run with US_LONG_TESTS.
set -euo pipefail
source_dir=${1:-${US_SOURCE_DIR:-.}}
n=120
[[ -z ${US_LONG_TESTS:-} ]] || n=20000
command -v perl >/dev/null || {
    echo "skipped: perl is not installed"
    exit 0
}
${CC:-cc} -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -I "$source_dir"/src -o idl_types_checked \
    "$source_dir"/tools/idl_types.c "$source_dir"/tools/idl_read.c
export ASAN_OPTIONS=detect_leaks=0
n_taken=0 n_refused=0
for ((seed = 1; seed <= n; seed++)); do
    perl -e '
        srand($ARGV[0]); undef $/; open(my $f, "<", $ARGV[1]) or die; my $text = <$f>;
        my @words = ("{", "}", ";", "<", ">", "[", "]", "@", "module", "struct", "sequence<", "99999999999", "-1", "\"", "#include \"x\"\n", "\0", "A" x 5000, "::", "const", "/*");
        for (1 .. 1 + int rand 4) {
            my $at = int rand length $text; my $how = int rand 4;
            if ($how == 0) { substr($text, $at, 1) = chr int rand 256 }
            elsif ($how == 1) { substr($text, $at, 0) = $words[rand @words] }
            elsif ($how == 2) { substr($text, $at, 1 + int rand 40) = "" }
            else { substr($text, $at, 0) = substr($text, int rand length $text, int rand 200) }
        }
        print $text' "$seed" "$source_dir/idl/$([[ $((seed % 2)) == 0 ]] && echo std_msgs.idl || echo builtin_interfaces.idl)" >bad.idl
    cp "$source_dir"/idl/builtin_interfaces.idl .
    code=0
    timeout 10 ./idl_types_checked bad_list.h bad_table.c bad_public.h bad.idl >out.txt 2>&1 || code=$?
    if ((code == 0)); then
        n_taken=$((n_taken + 1))
    elif ((code == 1)) && grep -q "\.idl" out.txt && ! grep -q Sanitizer out.txt; then
        n_refused=$((n_refused + 1))
    else
        echo "seed $seed: code $code"
        head -c 2000 out.txt
        exit 1
    fi
done
echo "$n_taken taken, $n_refused refused"
((n_refused > n / 10))
