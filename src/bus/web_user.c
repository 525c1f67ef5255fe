// Registered users of the page: who they are, by the token that they show, and what they may do.
//
// The file has hashes of tokens, so that whoever reads it cannot use them. Tokens are long random numbers: a
// plain SHA-256 of one cannot be turned round.
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/bus__web.h"
#include "keys/page_user.h"

enum { MAX_USERS_FILE = 1 << 17 };

const char *usi_role_name(usi_web_role role) { return usi_page_role_names[role]; }

void usi_role_refusal(const usi_web_client *client, usi_web_role needed, char *out, size_t cap) {
    if (client->role == USI_ROLE_LOOK && !client->user) {
        snprintf(out, cap,
                 "this client may only look, and this needs the role \"%s\": open the address that "
                 "`understudy run` printed, with its ?token=, or with the token of a user who has that role",
                 usi_role_name(needed));
    } else {
        snprintf(out, cap, "this needs the role \"%s\", and %s has \"%s\": ask who keeps the users' file",
                 usi_role_name(needed), usi_web_user_name(client), usi_role_name(client->role));
    }
}

// ---- the file ----

static bool read_hash(const char *text, uint8_t out[32]) {
    if (strspn(text, "0123456789abcdefABCDEF") != 64 || text[64]) return false;
    for (int i = 0; i < 32; i++) {
        const char pair[3] = {text[2 * i], text[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

static us_status read_user(char *line, const us_place *place, usi_web_user *out, us_error *err) {
    char *rest = line, *words[4] = {NULL};
    int n = 0;
    for (char *word; n < 4 && (word = strsep(&rest, " \t\r")) != NULL;) {
        if (word[0]) words[n++] = word;
    }
    const int32_t role = n == 3 ? usi_page_role_find(words[1]) : -1;
    *out = (usi_web_user){.role = role < 0 ? USI_ROLE_LOOK : (usi_web_role)role};
    if (role >= 0 && usi_page_user_name_is_sound(words[0]) && read_hash(words[2], out->hash)) {
        memcpy(out->name, words[0], strlen(words[0]) + 1);
        return US_OK;
    }
    return us_error_set(
        err, US_ERR_SYNTAX, place,
        "Write NAME ROLE HASH: a role look, drive, world or switch, and the SHA-256 of the token in "
        "64 hexadecimal digits; understudy keys user FILE NAME ROLE makes such lines.",
        "this line is no user");
}

us_status usi_web_users_read(const char *path, const us_allocator *allocator, usi_web_user **out_users,
                             int32_t *out_n, us_error *err) {
    *out_users = NULL;
    *out_n = 0;
    FILE *file = fopen(path, "rbe");
    char *text = file ? calloc(1, MAX_USERS_FILE) : NULL;
    const size_t length = text ? fread(text, 1, MAX_USERS_FILE - 1, file) : 0;
    const bool is_whole = text && feof(file) && !ferror(file) && !memchr(text, 0, length);
    if (file) fclose(file);
    us_place place = {.file = path};
    if (!is_whole) {
        free(text);
        return us_error_set(err, US_ERR_IO, &place, "Name a file of users: lines of NAME ROLE HASH.",
                            "the users cannot be read");
    }
    usi_web_user *users = usi_alloc(allocator, USI_WEB_MAX_USER * sizeof *users, _Alignof(usi_web_user));
    if (!users) {
        free(text);
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for users");
    }
    us_status status = US_OK;
    int32_t n = 0;
    char *rest = text;
    for (char *line; !status && (line = strsep(&rest, "\n")) != NULL;) {
        place.line++;
        if (!line[strspn(line, " \t\r")] || line[0] == '#') continue;
        if (n == USI_WEB_MAX_USER) {
            status = us_error_set(err, US_ERR_LIMIT, &place, "List fewer.", "more than %d users",
                                  USI_WEB_MAX_USER);
        } else {
            status = read_user(line, &place, &users[n], err);
        }
        n += status == US_OK;
    }
    free(text);
    if (status) {
        usi_web_users_release(users, allocator);
        return status;
    }
    *out_users = users;
    *out_n = n;
    return US_OK;
}

void usi_web_users_release(usi_web_user *users, const us_allocator *allocator) {
    usi_release(allocator, users, USI_WEB_MAX_USER * sizeof *users, _Alignof(usi_web_user));
}

// ---- the door ----

const usi_web_user *usi_web_find_user(const usi_web *web, const char *token) {
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    if (EVP_Digest(token, strlen(token), hash, &n, EVP_sha256(), NULL) != 1 || n != 32) return NULL;
    const usi_web_user *found = NULL;
    // All are compared: the time tells nothing.
    for (int32_t i = 0; i < web->def.n_user; i++) {
        if (CRYPTO_memcmp(web->def.users[i].hash, hash, 32) == 0) found = &web->def.users[i];
    }
    return found;
}
