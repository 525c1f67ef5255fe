// The file of the page's registered users: a line for each, with the hash of a token that only the user has.
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys/keys.h"

enum { TOKEN_BYTES = 16, MAX_USER_NAME = 23 };

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
    static const char *const roles[] = {"look", "drive", "world", "switch"};
    const size_t n = strlen(name);
    bool is_role = false;
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        is_role = is_role || strcmp(role, roles[i]) == 0;
    if (!is_role)
        return us_error_set(err, US_ERR_VALUE, NULL, "Write look, drive, world or switch.",
                            "unknown role \"%.60s\"", role);
    if (n == 0 || n > MAX_USER_NAME ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != n)
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
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const bool is_written = file >= 0 && write(file, line, (size_t)length) == length;
    const int why = errno;
    if (file >= 0) close(file);
    if (is_written) return US_OK;
    return us_error_set(err, US_ERR_IO, &(us_place){.file = path},
                        "Look at the directory's permissions and at the room on the disk.",
                        "the file cannot be written: %s", strerror(why));
}
