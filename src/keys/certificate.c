// Private keys of the curve P-256 and X.509 certificates for them.
#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "keys/keys.h"

enum { SERIAL_BYTES = 16 };

const char *usi_openssl_error(char *buf, size_t cap) {
    const unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    snprintf(buf, cap, "%s", reason ? reason : "no reason given");
    ERR_clear_error();
    return buf;
}

static us_status fail(us_error *err, us_status code, const char *path, const char *remedy, const char *what) {
    char why[256];
    if (ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE) {
        ERR_clear_error();
        return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "%s: no memory", what);
    }
    return us_error_set(err, code, &(us_place){.file = path}, remedy, "%s: %s", what,
                        usi_openssl_error(why, sizeof why));
}

void usi_identity_fini(usi_identity *identity) {
    EVP_PKEY_free(identity->key);
    X509_free(identity->certificate);
    *identity = (usi_identity){0};
}

// ---- making ----

// A serial number is random, so that two authorities with one name never give the same twice.
static bool set_serial(X509 *certificate) {
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);  // positive, and of one length
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return ok;
}

static bool add_extension(X509 *certificate, X509 *issuer, int id, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
    bool ok = extension && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool add_name(X509_NAME *names, const char *field, const char *text) {
    return X509_NAME_add_entry_by_txt(names, field, MBSTRING_ASC, (const unsigned char *)text, -1, -1, 0) ==
           1;
}

// Whether the id of a participant with this subject is in the half that the turn asks for.
static bool has_turn(const X509_NAME *names, usi_turn turn) {
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    if (X509_NAME_digest(names, EVP_sha256(), digest, NULL) != 1) return false;
    return turn == USI_TURN_ANY || (turn == USI_TURN_SECOND) == (digest[0] >= 0x80);
}

// The name alone where that has the turn, otherwise with the first unit that brings it: one in two does.
static bool set_subject(X509 *x, const usi_subject *subject) {
    enum { MAX_UNIT = 64 };
    for (int unit = 0; unit <= MAX_UNIT; unit++) {
        char text[16];
        snprintf(text, sizeof text, "%d", unit);
        X509_NAME *names = X509_NAME_new();
        bool ok = names && add_name(names, "CN", subject->name) && (unit == 0 || add_name(names, "OU", text));
        const bool is_found = ok && has_turn(names, subject->turn);
        if (is_found) ok = X509_set_subject_name(x, names) == 1;
        X509_NAME_free(names);
        if (!ok || is_found) return ok;
    }
    return false;
}

static bool fill(X509 *x, const usi_subject *subject, EVP_PKEY *key, const usi_identity *issuer,
                 int64_t start, int64_t until) {
    X509 *authority = issuer ? issuer->certificate : x;
    if (X509_set_version(x, X509_VERSION_3) != 1 || !set_serial(x) ||
        !ASN1_TIME_set(X509_getm_notBefore(x), (time_t)start) ||
        !ASN1_TIME_set(X509_getm_notAfter(x), (time_t)until) || X509_set_pubkey(x, key) != 1 ||
        !set_subject(x, subject) || X509_set_issuer_name(x, X509_get_subject_name(authority)) != 1)
        return false;
    // Authorities that SROS 2 makes have no identifier that could be named. One that signs itself gets it
    // below.
    const bool names_key = issuer && (authority == x || X509_get0_subject_key_id(authority));
    return add_extension(x, authority, NID_basic_constraints,
                         issuer ? "critical,CA:FALSE" : "critical,CA:TRUE") &&
           add_extension(x, authority, NID_key_usage,
                         issuer ? "critical,digitalSignature,keyAgreement"
                                : "critical,digitalSignature,keyCertSign,cRLSign") &&
           add_extension(x, authority, NID_subject_key_identifier, "hash") &&
           (!names_key || add_extension(x, authority, NID_authority_key_identifier, "keyid"));
}

us_status usi_identity_make(const usi_subject *subject, const usi_identity *issuer, int64_t start,
                            int64_t until, usi_identity *out, us_error *err) {
    *out = (usi_identity){.key = EVP_EC_gen("P-256"), .certificate = X509_new()};
    if (out->key && out->certificate && fill(out->certificate, subject, out->key, issuer, start, until) &&
        X509_sign(out->certificate, issuer ? issuer->key : out->key, EVP_sha256()) > 0)
        return US_OK;
    usi_identity_fini(out);
    return fail(err, US_ERR_IO, NULL, "Look whether OpenSSL of this machine can make keys of P-256.",
                "no certificate can be made");
}

us_status usi_identity_make_page(const char *machine, int64_t start, int64_t until, usi_identity *out,
                                 us_error *err) {
    // Names of this machine as they stand in addresses: letters, digits, dots and lines.
    char names[400] = "DNS:localhost,IP:127.0.0.1,IP:::1";
    const size_t n = strlen(machine), length = strlen(names);
    if (n > 0 && n < 256 &&
        strspn(machine, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == n)
        snprintf(names + length, sizeof names - length, ",DNS:%s", machine);
    *out = (usi_identity){.key = EVP_EC_gen("P-256"), .certificate = X509_new()};
    const usi_identity self = *out;
    const usi_subject subject = {.name = "understudy page"};
    if (out->key && out->certificate && fill(out->certificate, &subject, out->key, &self, start, until) &&
        add_extension(out->certificate, out->certificate, NID_subject_alt_name, names) &&
        add_extension(out->certificate, out->certificate, NID_ext_key_usage, "serverAuth") &&
        X509_sign(out->certificate, out->key, EVP_sha256()) > 0)
        return US_OK;
    usi_identity_fini(out);
    return fail(err, US_ERR_IO, NULL, "Look whether OpenSSL of this machine can make keys of P-256.",
                "no certificate can be made for the page");
}

// ---- files ----

us_status usi_certificate_read(const char *path, X509 **out, us_error *err) {
    BIO *file = BIO_new_file(path, "r");
    *out = file ? PEM_read_bio_X509(file, NULL, NULL, NULL) : NULL;
    BIO_free(file);
    if (*out) return US_OK;
    return fail(err, US_ERR_VALUE, path, USI_MAKE_ENCLAVE_ANEW, "this is no certificate");
}

us_status usi_identity_read(const char *certificate, const char *key, usi_identity *out, us_error *err) {
    *out = (usi_identity){0};
    us_status status = usi_certificate_read(certificate, &out->certificate, err);
    if (status) return status;
    BIO *file = BIO_new_file(key, "r");
    // An empty password: a key that has one is an error, not a question on the terminal.
    char none[] = "";
    out->key = file ? PEM_read_bio_PrivateKey(file, NULL, NULL, none) : NULL;
    BIO_free(file);
    if (!out->key) {
        status =
            fail(err, US_ERR_VALUE, key, USI_MAKE_ENCLAVE_ANEW, "this is no private key without a password");
    } else if (X509_check_private_key(out->certificate, out->key) != 1) {
        status = fail(err, US_ERR_VALUE, key, USI_MAKE_ENCLAVE_ANEW,
                      "this is not the private key of the certificate beside it");
    }
    if (status) usi_identity_fini(out);
    return status;
}

// A new file that only its owner may read from the first moment on takes the place of the old one.
static us_status write_secret(const char *path, BIO *bytes, us_error *err) {
    char part[USI_KEY_PATH + 8];
    snprintf(part, sizeof part, "%s.part", path);
    unlink(part);
    int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    char *data = NULL;
    const long n = BIO_get_mem_data(bytes, &data);
    bool ok = file >= 0 && n >= 0 && usi_write_all(file, data, (size_t)n);
    int why = errno;
    if (file >= 0 && close(file) != 0 && errno != EINTR && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(part, path) == 0) return US_OK;
    if (ok) why = errno;
    unlink(part);
    return us_error_set(err, US_ERR_IO, &(us_place){.file = path},
                        "Look at the directory's permissions and at the room on the disk.",
                        "the file cannot be written: %s", strerror(why));
}

us_status usi_certificate_write(const char *path, X509 *certificate, us_error *err) {
    BIO *bytes = BIO_new(BIO_s_mem());
    char *text = NULL;
    const long n = bytes && PEM_write_bio_X509(bytes, certificate) == 1 ? BIO_get_mem_data(bytes, &text) : 0;
    us_status status = n > 0 ? usi_bytes_write(path, text, (size_t)n, NULL, 0, err)
                             : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a certificate");
    BIO_free(bytes);
    return status;
}

us_status usi_private_key_write(const char *path, EVP_PKEY *key, us_error *err) {
    BIO *bytes = BIO_new(BIO_s_secmem());
    us_status status = bytes && PEM_write_bio_PKCS8PrivateKey(bytes, key, NULL, NULL, 0, NULL, NULL) == 1
                           ? write_secret(path, bytes, err)
                           : us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a key");
    BIO_free(bytes);
    return status;
}

// ---- judging ----

us_status usi_certificate_verify(X509 *certificate, X509 *authority, const char *path, us_error *err) {
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    us_status status = US_OK;
    if (!store || !context || X509_STORE_add_cert(store, authority) != 1 ||
        X509_STORE_CTX_init(context, store, certificate, NULL) != 1) {
        status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a certificate");
    } else if (X509_verify_cert(context) != 1) {
        const int code = X509_STORE_CTX_get_error(context);
        const char *remedy = code == X509_V_ERR_CERT_HAS_EXPIRED ? USI_MAKE_ENCLAVE_ANEW
                             : code == X509_V_ERR_CERT_NOT_YET_VALID
                                 ? "Set the clock of this machine, or wait."
                                 : "Use certificates of one keystore: understudy keys add KEYSTORE ENCLAVE.";
        status = us_error_set(err, US_ERR_VALUE, &(us_place){.file = path}, remedy,
                              "the certificate does not hold: %s", X509_verify_cert_error_string(code));
    }
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    ERR_clear_error();
    return status;
}

void usi_certificate_subject(const X509 *certificate, char *out, size_t cap) {
    BIO *bytes = BIO_new(BIO_s_mem());
    char *text = NULL;
    out[0] = 0;
    if (bytes && X509_NAME_print_ex(bytes, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
        const long n = BIO_get_mem_data(bytes, &text);
        if (n > 0) snprintf(out, cap, "%.*s", (int)n, text);
    }
    BIO_free(bytes);
}

int64_t usi_certificate_until(const X509 *certificate) {
    int days = 0, seconds = 0;
    ASN1_TIME *zero = ASN1_TIME_set(NULL, 0);
    const bool ok = zero && ASN1_TIME_diff(&days, &seconds, zero, X509_get0_notAfter(certificate)) == 1;
    ASN1_TIME_free(zero);
    return ok ? (int64_t)days * 86400 + seconds : 0;
}

us_status usi_certificate_fingerprint(const X509 *certificate, char out[96]) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    if (X509_digest(certificate, EVP_sha256(), digest, &n) != 1 || n != 32) return US_ERR_MEMORY;
    for (unsigned int i = 0; i < n; i++)
        snprintf(out + (size_t)3 * i, 4, i + 1 < n ? "%02X:" : "%02X", digest[i]);
    return US_OK;
}
