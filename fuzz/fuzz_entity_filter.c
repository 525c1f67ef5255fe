// Any text as a filter of entities, the first line, for the names in the other lines: refused in words, or
// looked for in next to no time.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "world/entity_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int is_so) {
    if (!is_so) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    char *next = strchr(text, '\n');
    if (next) *next++ = 0;
    regex_t regex;
    const char *why = usi_entity_filter_compile(text, &regex);
    must(!why || why[0]);
    must(why || strlen(text) <= USI_FILTER_MAX);
    while (!why && next) {
        char *name = next;
        next = strchr(name, '\n');
        if (next) *next++ = 0;
        const int found = regexec(&regex, name, 0, NULL, 0);
        must(found == 0 || found == REG_NOMATCH || found == REG_ESPACE);
    }
    if (!why) regfree(&regex);
    free(text);
    return 0;
}
