// The filters by which requests pick entities: POSIX extended regular expressions, from anybody on the
// network.
//
// The C library's matcher calls itself for each bracket, writes out what is repeated by a count, doubles what
// stands before a plus, and takes exponential time to look for what stood there before (\1). So an expression
// is taken only when it is short, is not copied too often, and has nothing of the last kind: then it costs
// next to nothing.
#include "world/entity_filter.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The largest count of an interval "{2,5}" that begins behind its brace; of "{2,}", its least.
static uint64_t largest_count(const char *at) {
    uint64_t largest = 1;
    for (;; at++) {
        uint64_t count = 0;
        for (; isdigit((unsigned char)*at); at++)
            count = count < USI_FILTER_COPIES ? 10 * count + (uint64_t)(*at - '0') : count;
        if (count > largest) largest = count;
        if (*at != ',') return largest;
    }
}

const char *usi_entity_filter_compile(const char *text, regex_t *out_regex) {
    uint64_t copies = 1;
    if (strlen(text) > USI_FILTER_MAX) return "the filter has more than 128 characters";
    for (const char *at = text; *at; at++) {
        if (at[0] == '\\' && at[1]) {
            at++;
            if (isdigit((unsigned char)*at)) return "the filter refers back (\\1), which is not supported";
        } else if (*at == '{') {
            copies *= largest_count(at + 1);
        } else if (*at == '+' && at > text && strchr(")+*?}", at[-1])) {
            copies *= 2;
        }
        if (copies > USI_FILTER_COPIES) return "the filter repeats too much, by counts {n} or plus signs";
    }
    return regcomp(out_regex, text, REG_EXTENDED | REG_NOSUB)
               ? "the filter is no POSIX extended regular expression"
               : NULL;
}
