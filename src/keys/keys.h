// Inside the room of keys: certificates and signed documents by OpenSSL, and the texts that are signed.
#ifndef USI_KEYS_KEYS_H
#define USI_KEYS_KEYS_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "understudy/keys.h"

enum { USI_KEY_PATH = 4096, USI_KEY_TEXT = 1 << 17 };

// The remedy for a file of an enclave that is not what it should be.
#define USI_MAKE_ENCLAVE_ANEW "Make the enclave anew: understudy keys add KEYSTORE ENCLAVE."

// ---- certificates (certificate.c) ----

// A key and its certificate; both NULL after _fini.
typedef struct usi_identity {
    EVP_PKEY *key;
    X509 *certificate;
} usi_identity;

// Of two participants the one with the lower id sends the first message of the handshake. In its first 47
// bits an id is the hash of the certificate's subject (OMG DDS Security 1.1, 9.3.3), so that the subject
// decides.
typedef enum usi_turn {
    USI_TURN_ANY,
    USI_TURN_FIRST,  // begins with all of USI_TURN_SECOND
    USI_TURN_SECOND,
} usi_turn;

typedef struct usi_subject {
    const char *name;  // of a person or thing: CN
    usi_turn turn;
} usi_subject;

void usi_identity_fini(usi_identity *identity);
// A new key with a certificate for `subject`, signed by `issuer` (NULL: by itself, an authority).
us_status usi_identity_make(const usi_subject *subject, const usi_identity *issuer, int64_t start,
                            int64_t until, usi_identity *out, us_error *err);
// The same by itself, for the page of this machine: valid for localhost and the machine's name.
us_status usi_identity_make_page(const char *machine, int64_t start, int64_t until, usi_identity *out,
                                 us_error *err);
us_status usi_identity_read(const char *certificate, const char *key, usi_identity *out, us_error *err);
us_status usi_certificate_read(const char *path, X509 **out, us_error *err);
us_status usi_certificate_write(const char *path, X509 *certificate, us_error *err);
us_status usi_private_key_write(const char *path, EVP_PKEY *key, us_error *err);  // mode 0600
// Whether `authority` signed the certificate, and it is valid now. `path` stands in the error.
us_status usi_certificate_verify(X509 *certificate, X509 *authority, const char *path, us_error *err);
// "CN=/rover" into out.
void usi_certificate_subject(const X509 *certificate, char *out, size_t cap);
int64_t usi_certificate_until(const X509 *certificate);
// The certificate's SHA-256 as "AB:CD:...": 95 characters and a 0.
us_status usi_certificate_fingerprint(const X509 *certificate, char out[96]);

// ---- signed documents (sign.c) ----

// Signs `text` as S/MIME with the text outside of the signature, as DDS Security wants it.
us_status usi_document_sign(const char *path, const char *text, const usi_identity *authority, us_error *err);

// Who asks to take part, where and when.
typedef struct usi_claim {
    char subject[256];  // of its certificate, "CN=/rover"
    int32_t domain;     // -1: none in particular
    int64_t now;        // seconds since 1970
} usi_claim;

// Whether the authority signed the document, and what it says allows the claim.
us_status usi_document_verify(const char *path, X509 *authority, const usi_claim *claim, us_error *err);
// The same of a text whose signature holds (judge.c).
us_status usi_document_judge(const char *text, size_t length, const char *path, const usi_claim *claim,
                             us_error *err);

// What OpenSSL says went wrong last, into buf.
const char *usi_openssl_error(char *buf, size_t cap);

// ---- texts (policy.c) ----

us_status usi_governance_text(const char *domains, char *buf, size_t cap, us_error *err);
// `subject` is that of the certificate, "CN=/rover".
us_status usi_permissions_text(const us_enclave_def *def, const char *subject, int64_t start, int64_t until,
                               char *buf, size_t cap, us_error *err);

#endif
