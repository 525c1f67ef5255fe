// The file of the page's registered users: a line for each, with the hash of a token that only the user has.
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "keys/page_user.h"
#include "understudy/keys.h"

enum { TOKEN_BYTES = 16 };

const char *const usi_page_role_names[USI_PAGE_ROLES] = {"look", "drive", "world", "switch"};

int32_t usi_page_role_find(const char *name) {
    for (int32_t i = 0; i < USI_PAGE_ROLES; i++) {
        if (strcmp(name, usi_page_role_names[i]) == 0) return i;
    }
    return -1;
}

bool usi_page_user_name_is_sound(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const size_t n = strlen(name);
    return n > 0 && n < USI_PAGE_USER_NAME && strspn(name, letters) == n;
}

// Whether the file, as far as it is there, has a line that begins with the name.
static bool has_user(const char *path, const char *name) {
    FILE *file = fopen(path, "re");
    char line[512];
    bool has = false;
    const size_t n = strlen(name);
    while (file && !has && fgets(line, sizeof line, file))
        has = strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == '\t');
    if (file) fclose(file);
    return has;
}

static us_status check_user(const char *path, const char *name, const char *role, us_error *err) {
    if (usi_page_role_find(role) < 0)
        return us_error_set(err, US_ERR_VALUE, NULL, "Write look, drive, world or switch.",
                            "unknown role \"%.60s\"", role);
    if (!usi_page_user_name_is_sound(name))
        return us_error_set(err, US_ERR_VALUE, NULL, "Write letters, digits and - . _, at most 23.",
                            "invalid name of a user \"%.60s\"", name);
    if (has_user(path, name))
        return us_error_set(err, US_ERR_NAME, &(us_place){.file = path},
                            "Choose another name, or remove the user's line first.",
                            "there is already a user \"%s\"", name);
    return US_OK;
}

us_status us_page_user_add(const char *path, const char *name, const char *role,
                           char out_token[US_PAGE_TOKEN], us_error *err) {
    if (!path || !name || !role || !out_token)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "a user needs a file, a name, a role and a place");
    us_status status = check_user(path, name, role, err);
    if (status) return status;
    unsigned char bytes[TOKEN_BYTES], hash[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return us_error_set(err, US_ERR_IO, NULL, NULL, "the system has no random numbers for a token");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out_token + 2 * i, 3, "%02x", bytes[i]);
    if (EVP_Digest(out_token, strlen(out_token), hash, &n, EVP_sha256(), NULL) != 1 || n != 32)
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a hash");
    char line[160];
    int length = snprintf(line, sizeof line, "%s %s ", name, role);
    for (unsigned int i = 0; i < n; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, "%02x", hash[i]);
    line[length++] = '\n';
    return usi_bytes_append(path, 0600, line, (size_t)length, err);
}
