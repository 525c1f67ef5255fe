// A keystore on disk: its authority, its enclaves, and whether they hold.
#include <dirent.h>
#include <errno.h>
#include <openssl/bn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/spare_memory.h"
#include "keys/keys.h"

enum { DAY = 86400, MAX_DAYS = 36500, MAX_NAME = 64, MAX_DEPTH = 8 };

us_keystore_def us_keystore_def_default(void) {
    return (us_keystore_def){.name = "understudy", .days = 3650, .domains = "0-230"};
}

us_enclave_def us_enclave_def_default(void) {
    return (us_enclave_def){.enclave = "/", .days = 365, .domains = "0-230"};
}

// Bytes that OpenSSL takes for keys and signatures, with room: 0.6 MB were seen.
static const size_t ssl_memory = (size_t)1 << 20;

static us_status check_memory(us_error *err) {
    if (usi_memory_is_there(ssl_memory)) return US_OK;
    return us_error_set(err, US_ERR_MEMORY, NULL, "End other programs, or raise the limit (ulimit -v).",
                        "no memory for keys");
}

// ---- names and places ----

static us_status join(char out[USI_KEY_PATH], const char *directory, const char *name, us_error *err) {
    const int n = snprintf(out, USI_KEY_PATH, "%s/%s", directory, name);
    if (n > 0 && n < USI_KEY_PATH) return US_OK;
    return us_error_set(err, US_ERR_LIMIT, NULL, "Use a shorter path.", "the path is too long");
}

// The name becomes a path and the subject of a certificate, which is 64 characters long at most.
static us_status check_enclave(const char *enclave, us_error *err) {
    const size_t n = enclave ? strlen(enclave) : 0;
    bool ok = n > 0 && n <= MAX_NAME && enclave[0] == '/' && !strstr(enclave, "//") &&
              (n == 1 || enclave[n - 1] != '/') &&
              strspn(enclave, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/") == n;
    if (ok) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL,
                        "Write / or names like /rover and /fleet/rover_1: letters, digits and _, at most 64 "
                        "characters.",
                        "invalid enclave \"%.100s\"", enclave ? enclave : "");
}

static us_status check_days(int32_t days, us_error *err) {
    if (days >= 1 && days <= MAX_DAYS) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, "Write 1 to 36500.", "keys cannot be valid for %d days",
                        days);
}

static us_status make_private_directory(const char *path, us_error *err) {
    if (mkdir(path, 0700) == 0) return US_OK;
    return us_error_set(err, US_ERR_IO, &(us_place){.file = path},
                        "Look at the permissions of the directory.", "the directory cannot be made: %s",
                        strerror(errno));
}

// ---- the authority ----

// The same certificate and key under the names that SROS 2 has for identities and for permissions.
static us_status write_authority(const char *path, const usi_identity *authority, us_error *err) {
    static const char *const certificates[] = {"public/ca.cert.pem", "public/identity_ca.cert.pem",
                                               "public/permissions_ca.cert.pem"};
    static const char *const links[] = {"private/identity_ca.key.pem", "private/permissions_ca.key.pem"};
    char file[USI_KEY_PATH];
    us_status status = join(file, path, "private/ca.key.pem", err);
    if (!status) status = usi_private_key_write(file, authority->key, err);
    for (size_t i = 0; i < sizeof certificates / sizeof certificates[0] && !status; i++) {
        status = join(file, path, certificates[i], err);
        if (!status) status = usi_certificate_write(file, authority->certificate, err);
    }
    for (size_t i = 0; i < sizeof links / sizeof links[0] && !status; i++) {
        status = join(file, path, links[i], err);
        if (!status && symlink("ca.key.pem", file) != 0)
            status = us_error_set(err, US_ERR_IO, &(us_place){.file = file}, "Use a file system with links.",
                                  "the link cannot be made: %s", strerror(errno));
    }
    return status;
}

us_status us_keystore_create(const char *path, const us_keystore_def *def, us_error *err) {
    if (!path || !def || !def->name || !def->domains)
        return us_error_set(err, US_ERR_ARG, NULL, "Begin with us_keystore_def_default().",
                            "a keystore needs a path and a definition");
    if (!def->name[0] || strlen(def->name) > MAX_NAME)
        return us_error_set(err, US_ERR_VALUE, NULL, "Write 1 to 64 characters.",
                            "invalid name of an authority \"%.100s\"", def->name);
    char text[4096], file[USI_KEY_PATH];
    us_status status = check_days(def->days, err);
    if (!status) status = check_memory(err);
    if (!status) status = usi_governance_text(def->domains, text, sizeof text, err);
    if (status) return status;
    usi_identity authority = {0};
    const int64_t now = (int64_t)time(NULL);
    const usi_subject subject = {.name = def->name};
    status = usi_identity_make(&subject, NULL, now - DAY, now + (int64_t)def->days * DAY, &authority, err);
    if (!status) status = usi_directory_begin(path, err);
    if (!status) status = join(file, path, "private", err);
    if (!status) status = make_private_directory(file, err);
    if (!status) status = join(file, path, "public", err);
    if (!status) status = usi_directory_make(file, err);
    if (!status) status = join(file, path, "enclaves", err);
    if (!status) status = usi_directory_make(file, err);
    if (!status) status = write_authority(path, &authority, err);
    if (!status) status = join(file, path, "enclaves/governance.xml", err);
    if (!status) status = usi_bytes_write(file, text, strlen(text), NULL, 0, err);
    if (!status) status = join(file, path, "enclaves/governance.p7s", err);
    if (!status) status = usi_document_sign(file, text, &authority, err);
    usi_identity_fini(&authority);
    return status;
}

// SROS 2 knows two authorities, "identity" and "permissions", which mostly are one and the same.
static us_status read_authority(const char *path, const char *which, usi_identity *out, us_error *err) {
    char certificate[USI_KEY_PATH], key[USI_KEY_PATH], name[64];
    snprintf(name, sizeof name, "public/%s_ca.cert.pem", which);
    us_status status = join(certificate, path, name, err);
    snprintf(name, sizeof name, "private/%s_ca.key.pem", which);
    if (!status) status = join(key, path, name, err);
    if (status) return status;
    if (access(certificate, R_OK) != 0 || access(key, R_OK) != 0) {
        return us_error_set(err, US_ERR_IO,
                            &(us_place){.file = access(certificate, R_OK) ? certificate : key},
                            "Make a keystore with: understudy keys create KEYSTORE.",
                            "this is no keystore with its authority's key: %s", strerror(errno));
    }
    return usi_identity_read(certificate, key, out, err);
}

// ---- enclaves ----

// Makes all directories of an enclave; `out` gets the last one.
static us_status make_enclave_directory(const char *path, const char *enclave, char out[USI_KEY_PATH],
                                        us_error *err) {
    us_status status = join(out, path, "enclaves", err);
    for (const char *at = enclave; !status && at[0] && at[1];) {
        const size_t n = strcspn(at + 1, "/");
        char name[MAX_NAME + 1], above[USI_KEY_PATH];
        snprintf(name, sizeof name, "%.*s", (int)n, at + 1);
        memcpy(above, out, sizeof above);
        status = join(out, above, name, err);
        if (!status) status = usi_directory_make(out, err);
        at += 1 + n;
    }
    return status;
}

static us_status copy_file(const char *from, const char *to, us_error *err) {
    static const size_t cap = 1 << 16;
    if (strcmp(from, to) == 0) return US_OK;
    char *bytes = malloc(cap);
    if (!bytes) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a file");
    size_t n = 0;
    us_status status = usi_bytes_read(from, bytes, cap, &n);
    if (status) {
        us_error_set(err, status, &(us_place){.file = from},
                     "Make a keystore with: understudy keys create KEYSTORE.", "the file cannot be read");
    } else {
        status = usi_bytes_write(to, bytes, n, NULL, 0, err);
    }
    free(bytes);
    return status;
}

static us_status copy_public(const char *path, const char *directory, us_error *err) {
    static const char *const files[][2] = {{"public/identity_ca.cert.pem", "identity_ca.cert.pem"},
                                           {"public/permissions_ca.cert.pem", "permissions_ca.cert.pem"},
                                           {"enclaves/governance.p7s", "governance.p7s"}};
    us_status status = US_OK;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !status; i++) {
        char from[USI_KEY_PATH], to[USI_KEY_PATH];
        status = join(from, path, files[i][0], err);
        if (!status) status = join(to, directory, files[i][1], err);
        if (!status) status = copy_file(from, to, err);
    }
    return status;
}

static us_status write_identity(const char *directory, const usi_identity *identity, us_error *err) {
    char file[USI_KEY_PATH];
    us_status status = join(file, directory, "key.pem", err);
    if (!status) status = usi_private_key_write(file, identity->key, err);
    if (!status) status = join(file, directory, "cert.pem", err);
    if (!status) status = usi_certificate_write(file, identity->certificate, err);
    return status;
}

static us_status write_permissions(const char *directory, const char *text, const usi_identity *authority,
                                   us_error *err) {
    char file[USI_KEY_PATH];
    us_status status = join(file, directory, "permissions.xml", err);
    if (!status) status = usi_bytes_write(file, text, strlen(text), NULL, 0, err);
    if (!status) status = join(file, directory, "permissions.p7s", err);
    if (!status) status = usi_document_sign(file, text, authority, err);
    return status;
}

// Fast DDS must not be the one who begins with Cyclone DDS: version 2.9 proposes to agree on a secret by
// Diffie-Hellman over integers (DH+MODP-2048-256), and sends its public key as a plain number where Cyclone
// DDS 0.10 reads an ASN.1 integer. Cyclone DDS proposes elliptic curves for keys of P-256, which both read.
static us_status read_turn(const char *vendor, usi_turn *out, us_error *err) {
    *out = !vendor ? USI_TURN_ANY : strcmp(vendor, "cyclone") == 0 ? USI_TURN_FIRST : USI_TURN_SECOND;
    if (*out != USI_TURN_SECOND || strcmp(vendor, "fastdds") == 0) return US_OK;
    return us_error_set(err, US_ERR_VALUE, NULL, "Write cyclone or fastdds.",
                        "keys for an unknown DDS \"%.60s\"", vendor);
}

static us_status add_enclave(const char *path, const us_enclave_def *def, char *text, us_error *err) {
    const int64_t start = def->start ? def->start : (int64_t)time(NULL) - DAY;
    const int64_t until = start + ((int64_t)def->days + (def->start ? 0 : 1)) * DAY;
    usi_identity identities = {0}, permissions = {0}, identity = {0};
    char directory[USI_KEY_PATH], name[256] = "";
    usi_subject subject = {.name = def->enclave};
    us_status status = read_turn(def->vendor, &subject.turn, err);
    if (!status) status = read_authority(path, "identity", &identities, err);
    if (!status) status = read_authority(path, "permissions", &permissions, err);
    if (!status) status = usi_identity_make(&subject, &identities, start, until, &identity, err);
    if (!status) usi_certificate_subject(identity.certificate, name, sizeof name);
    if (!status) status = usi_permissions_text(def, name, start, until, text, USI_KEY_TEXT, err);
    if (!status) status = make_enclave_directory(path, def->enclave, directory, err);
    if (!status) status = copy_public(path, directory, err);
    if (!status) status = write_permissions(directory, text, &permissions, err);
    if (!status) status = write_identity(directory, &identity, err);
    usi_identity_fini(&identity);
    usi_identity_fini(&permissions);
    usi_identity_fini(&identities);
    return status;
}

us_status us_keystore_add(const char *path, const us_enclave_def *def, us_error *err) {
    if (!path || !def || !def->domains || (def->n_publish > 0 && !def->publish) ||
        (def->n_subscribe > 0 && !def->subscribe))
        return us_error_set(err, US_ERR_ARG, NULL, "Begin with us_enclave_def_default().",
                            "an enclave needs a keystore and a definition");
    us_status status = check_enclave(def->enclave, err);
    if (!status) status = check_days(def->days, err);
    if (!status) status = check_memory(err);
    if (status) return status;
    char *text = malloc(USI_KEY_TEXT);
    if (!text) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for permissions");
    status = add_enclave(path, def, text, err);
    free(text);
    return status;
}

// ---- judging ----

static us_status check_documents(const char *directory, const usi_claim *claim, us_error *err) {
    char file[USI_KEY_PATH];
    X509 *authority = NULL;
    us_status status = join(file, directory, "permissions_ca.cert.pem", err);
    if (!status) status = usi_certificate_read(file, &authority, err);
    if (!status) status = join(file, directory, "governance.p7s", err);
    if (!status) status = usi_document_verify(file, authority, claim, err);
    if (!status) status = join(file, directory, "permissions.p7s", err);
    if (!status) status = usi_document_verify(file, authority, claim, err);
    X509_free(authority);
    return status;
}

static us_status check_identity(const char *directory, usi_claim *claim, us_error *err) {
    char file[USI_KEY_PATH], key[USI_KEY_PATH];
    X509 *authority = NULL;
    usi_identity identity = {0};
    us_status status = join(file, directory, "identity_ca.cert.pem", err);
    if (!status) status = usi_certificate_read(file, &authority, err);
    if (!status) status = join(file, directory, "cert.pem", err);
    if (!status) status = join(key, directory, "key.pem", err);
    if (!status) status = usi_identity_read(file, key, &identity, err);
    if (!status) status = usi_certificate_verify(identity.certificate, authority, file, err);
    if (!status) usi_certificate_subject(identity.certificate, claim->subject, sizeof claim->subject);
    usi_identity_fini(&identity);
    X509_free(authority);
    return status;
}

us_status us_enclave_check(const char *directory, int32_t domain, us_error *err) {
    static const char *const names[] = {"identity_ca.cert.pem",    "cert.pem",       "key.pem",
                                        "permissions_ca.cert.pem", "governance.p7s", "permissions.p7s"};
    if (!directory) return us_error_set(err, US_ERR_ARG, NULL, NULL, "no directory of an enclave");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char file[USI_KEY_PATH];
        us_status status = join(file, directory, names[i], err);
        if (status) return status;
        if (access(file, R_OK) != 0) {
            return us_error_set(err, US_ERR_IO, &(us_place){.file = file},
                                "Make the enclave's keys: understudy keys create KEYSTORE (once), then "
                                "understudy keys add KEYSTORE ENCLAVE.",
                                "the file cannot be read: %s", strerror(errno));
        }
    }
    usi_claim claim = {.domain = domain, .now = (int64_t)time(NULL)};
    us_status status = check_identity(directory, &claim, err);
    return status ? status : check_documents(directory, &claim, err);
}

// ---- listing ----

typedef struct enclave_list {
    us_enclave_info *infos;
    int32_t cap, n;
} enclave_list;

static us_status describe(const char *directory, const char *enclave, us_enclave_info *info, us_error *err) {
    char file[USI_KEY_PATH];
    X509 *certificate = NULL;
    memset(info, 0, sizeof *info);
    snprintf(info->enclave, sizeof info->enclave, "%s", enclave);
    info->status = us_enclave_check(directory, -1, &info->error);
    us_status status = join(file, directory, "cert.pem", err);
    if (status || usi_certificate_read(file, &certificate, NULL)) return status;
    info->until = usi_certificate_until(certificate);
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *text = number ? BN_bn2hex(number) : NULL;
    snprintf(info->serial, sizeof info->serial, "%s", text ? text : "");
    OPENSSL_free(text);
    BN_free(number);
    X509_free(certificate);
    return US_OK;
}

// An enclave is a directory with a cert.pem; others may lie below it.
static us_status collect(const char *directory, const char *enclave, int32_t depth, enclave_list *list,
                         us_error *err) {
    char path[USI_KEY_PATH], below[USI_KEY_PATH];
    us_status status = join(path, directory, "cert.pem", err);
    if (!status && access(path, F_OK) == 0) {
        if (list->n < list->cap)
            status = describe(directory, depth ? enclave : "/", &list->infos[list->n], err);
        list->n++;
    }
    struct dirent **entries = NULL;
    const int n = status || depth == MAX_DEPTH ? 0 : scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        struct stat info;
        if (!status && name[0] != '.' && !join(path, directory, name, err) && stat(path, &info) == 0 &&
            S_ISDIR(info.st_mode) && !join(below, enclave, name, err))
            status = collect(path, below, depth + 1, list, err);
        free(entries[i]);
    }
    free(entries);
    return status;
}

us_status us_keystore_list(const char *path, us_enclave_info *out_list, int32_t cap, int32_t *out_n,
                           us_error *err) {
    if (!path || !out_n || (cap > 0 && !out_list))
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "a list needs a keystore and a place");
    *out_n = 0;
    char directory[USI_KEY_PATH];
    us_status status = join(directory, path, "enclaves", err);
    if (status) return status;
    if (access(directory, R_OK) != 0)
        return us_error_set(err, US_ERR_IO, &(us_place){.file = directory},
                            "Make a keystore with: understudy keys create KEYSTORE.",
                            "this is no keystore: %s", strerror(errno));
    enclave_list list = {.infos = out_list, .cap = cap};
    status = collect(directory, "", 0, &list, err);
    *out_n = list.n;
    return status;
}
