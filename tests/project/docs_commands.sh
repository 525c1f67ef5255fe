#!/usr/bin/env bash
# docs_commands.sh SOURCE_DIRECTORY BUILD_DIRECTORY
# What the documentation shows is what the program does. Code blocks say by their first line how they are checked:
#
#   ```sh run            the commands end with status 0; ```sh run=2: with status 2
#   ```sh run with=NAME  the same, where the example NAME is built (it is in the PATH); skipped elsewhere, with the output that follows
#   ```text output       lines of what the block before it printed, in order; "..." stands for anything left out
#   ```xml file=NAME     is written to NAME, for the commands that follow (any language)
#   ```c excerpt=PATH    every line of it is in that file of the source tree
#   ```c compile         is a whole C file that compiles against the public headers
#   ```c run             is a program that also links, and ends with status 0
#
# Numbers may differ by 1e-3 of their size (another compiler rounds otherwise); times, paces and hashes are not compared.
set -euo pipefail
export LC_ALL=C NO_COLOR=1
source=$(cd "${1:-${US_SOURCE_DIR:-.}}" && pwd)
build=${2:-${US_BINARY_DIR:-$source/build}}
program=$(realpath "${US_PROGRAM:-$build/understudy}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$program" "$work/bin/understudy"
if [[ -d $build/examples ]]; then PATH=$(realpath "$build/examples"):$PATH; fi
export PATH=$work/bin:$PATH
is_skipped=false
n_checked=0
n_failed=0

complain() {
    echo "$1"
    n_failed=$((n_failed + 1))
}

# Whether every line of the first file matches a line of the second one, in order.
same_output() { # expected actual
    awk '
    function plain(line) {
        gsub(/ in [0-9.e+-]+ s: [0-9.e+-]+x real time, step [0-9.e+-]+ us/, " TIMING", line)
        gsub(/[][(),:;=]/, " ", line)
        return line
    }
    function is_number(x) { return x ~ /^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$/ }
    function is_hash(x) { return length(x) == 16 && x ~ /^[0-9a-f]+$/ }
    function near(a, b,    size, off) {
        size = a > 0 ? a : -a
        off = a > b ? a - b : b - a
        return off <= 1e-3 * size + 1e-12
    }
    function matches(want, got,    n, m, w, g, i) {
        n = split(plain(want), w, " ")
        m = split(plain(got), g, " ")
        for (i = 1; i <= n; i++) {
            if (w[i] == "...") return 1
            if (i > m) return 0
            if (w[i] == g[i] || (is_hash(w[i]) && is_hash(g[i]))) continue
            if (!is_number(w[i]) || !is_number(g[i]) || !near(w[i] + 0, g[i] + 0)) return 0
        }
        return n == m
    }
    NR == FNR { if ($0 !~ /^ *(\.\.\.)? *$/) want[++n_want] = $0; next }
    { got[++n_got] = $0 }
    END {
        at = 1
        for (i = 1; i <= n_want; i++) {
            while (at <= n_got && !matches(want[i], got[at])) at++
            if (at++ > n_got) { print "  not printed, or not in this order: " want[i]; exit 1 }
        }
    }' "$1" "$2"
}

# One code block: its first line's words in $kind, its text in $work/block.
check_block() { # document line kind
    local place="$1:$2" kind=$3 status=0 want file
    if [[ $kind == "sh run"* ]]; then is_skipped=false; fi
    if [[ $kind == "sh run with="* ]]; then
        if [[ ! -x $build/examples/${kind#*with=} ]]; then is_skipped=true; fi
        kind="sh run"
    fi
    if $is_skipped && [[ $kind == "sh run" || $kind == "text output" ]]; then
        echo "skipped: $place needs an example that is not built"
        return 0
    fi
    case $kind in
    "sh run" | "sh run="*)
        want=${kind#sh run}
        want=${want#=}
        # In a session of its own: what a block that fails leaves running ends with it.
        (cd "$work/at" && exec setsid bash -e -o pipefail "$work/block") </dev/null >"$work/printed" 2>&1 &
        wait $! || status=$?
        kill -KILL -- "-$!" 2>/dev/null || true
        if ((status != ${want:-0})); then
            complain "$place: the commands end with status $status instead of ${want:-0}:"
            cat "$work/printed"
        fi
        ;;
    "text output")
        same_output "$work/block" "$work/printed" >"$work/difference" || {
            complain "$place: this is not what the commands print"
            cat "$work/difference"
        }
        ;;
    *" file="*) cp "$work/block" "$work/at/${kind#* file=}" ;;
    *" excerpt="*)
        file=$source/${kind#* excerpt=}
        grep -v '^[[:space:]]*$' "$work/block" | while IFS= read -r line; do
            grep -qxF -- "$line" "$file" || { echo "  not in the file: $line"; exit 1; }
        done || complain "$place: this is not what ${kind#* excerpt=} says"
        ;;
    "c compile")
        "${CC:-gcc}" -std=c17 -Wall -Wextra -Werror -fsyntax-only -I"$source/include" -I"$build/generated/include" -x c "$work/block" || complain "$place: this does not compile"
        ;;
    "c run")
        if "${CC:-gcc}" -std=c17 -Wall -Wextra -Werror -I"$source/include" -I"$build/generated/include" -o "$work/program" -x c "$work/block" -x none \
            -L"$build" -Wl,-rpath,"$(realpath "$build")" -lunderstudy -lm; then
            (cd "$work/at" && "$work/program") </dev/null >"$work/printed" 2>"$work/noise" || {
                complain "$place: the program ends with status $?"
                cat "$work/printed" "$work/noise"
            }
        else
            complain "$place: this does not build"
        fi
        ;;
    *) return 0 ;;
    esac
    n_checked=$((n_checked + 1))
}

check_commands() { # document
    local document=$1 number=0 started=0 kind='' inside=false
    rm -rf "$work/at"
    mkdir "$work/at"
    ln -s "$source/scenes" "$source/models" "$source/examples" "$source/include" "$work/at/"
    : >"$work/printed"
    while IFS= read -r line; do
        number=$((number + 1))
        if ! $inside && [[ $line == '```'* ]]; then
            inside=true kind=${line#'```'} started=$number
            : >"$work/block"
        elif $inside && [[ $line == '```' ]]; then
            inside=false
            check_block "$document" "$started" "$kind"
        elif $inside; then
            printf '%s\n' "$line" >>"$work/block"
        fi
    done <"$source/$document"
    if $inside; then complain "$document:$started: the code block is not closed"; fi
}

# The text without code, in which a bracket and a parenthesis are a link.
prose() { awk '/^```/ { inside = !inside; next } !inside { gsub(/`[^`]*`/, "code"); print }' "$1"; }
# The headings as links name them.
anchors() {
    awk '/^```/ { inside = !inside; next }
        !inside && /^#+ / { sub(/^#+ /, ""); $0 = tolower($0); gsub(/[^a-z0-9 _-]/, ""); gsub(/ /, "-"); print }' "$1"
}

check_links() { # document
    local document=$1 directory target path anchor
    directory=$(dirname "$source/$document")
    while IFS= read -r target; do
        [[ $target == *://* || $target == mailto:* ]] && continue
        path=${target%%#*} anchor=''
        [[ $target == *#* ]] && anchor=${target#*#}
        path=${path:+$directory/$path}
        path=${path:-$source/$document}
        n_checked=$((n_checked + 1))
        if [[ ! -e $path ]]; then
            complain "$document: the link $target leads nowhere"
        elif [[ -n $anchor && $path == *.md ]] && ! anchors "$path" | grep -qxF -- "$anchor"; then
            complain "$document: the link $target names no heading"
        fi
    done < <(prose "$source/$document" | grep -o '](\([^) ]*\))' | sed 's/^](//; s/)$//')
}

cd "$source"
for document in README.md CHANGELOG.md docs/*.md; do
    check_commands "$document"
    check_links "$document"
done
((n_checked > 0)) || complain "nothing in the documentation is marked for a check"
echo "$n_checked blocks and links checked, $n_failed wrong"
((n_failed == 0))
