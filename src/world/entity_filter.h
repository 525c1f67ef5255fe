#ifndef US_WORLD_ENTITY_FILTER_H
#define US_WORLD_ENTITY_FILTER_H

#include <regex.h>

// USI_FILTER_COPIES: how often a part of an expression may be written out.
enum { USI_FILTER_MAX = 128, USI_FILTER_COPIES = 255 };

// A regular expression that may come from anybody; NULL, or why it is none or would cost too much. What was
// compiled is released by regfree.
const char *usi_entity_filter_compile(const char *text, regex_t *out_regex);

#endif
