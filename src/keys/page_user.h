// What a line of the file of the page's users can say.
#ifndef USI_KEYS_PAGE_USER_H
#define USI_KEYS_PAGE_USER_H

#include <stdbool.h>
#include <stdint.h>

enum { USI_PAGE_ROLES = 4, USI_PAGE_USER_NAME = 24 };  // bytes of a name, with its end

// What each may do includes what those before it may.
extern const char *const usi_page_role_names[USI_PAGE_ROLES];

int32_t usi_page_role_find(const char *name);  // -1: none has this name
bool usi_page_user_name_is_sound(const char *name);

#endif
