// Governance and permissions are S/MIME documents: the text, and beside it a signature of their authority.
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pkcs7.h>
#include <string.h>

#include "base/files.h"
#include "keys/keys.h"

us_status usi_document_sign(const char *path, const char *text, const usi_identity *authority,
                            us_error *err) {
    BIO *in = BIO_new_mem_buf(text, -1), *out = BIO_new(BIO_s_mem());
    PKCS7 *signature =
        in ? PKCS7_sign(authority->certificate, authority->key, NULL, in, PKCS7_DETACHED | PKCS7_TEXT) : NULL;
    us_status status = US_OK;
    if (!out || !signature || BIO_reset(in) != 1 ||
        SMIME_write_PKCS7(out, signature, in, PKCS7_DETACHED | PKCS7_TEXT) != 1) {
        char why[256];
        status = us_error_set(err, US_ERR_IO, &(us_place){.file = path}, NULL,
                              "the document cannot be signed: %s", usi_openssl_error(why, sizeof why));
    } else {
        char *bytes = NULL;
        const long n = BIO_get_mem_data(out, &bytes);
        status = usi_bytes_write(path, bytes, (size_t)n, NULL, 0, err);
    }
    PKCS7_free(signature);
    BIO_free(out);
    BIO_free(in);
    return status;
}

us_status usi_document_verify(const char *path, X509 *authority, const usi_claim *claim, us_error *err) {
    BIO *in = BIO_new_file(path, "r"), *text = NULL, *out = BIO_new(BIO_s_mem());
    PKCS7 *signature = in ? SMIME_read_PKCS7(in, &text) : NULL;
    X509_STORE *store = X509_STORE_new();
    us_status status = US_OK;
    char why[256];
    if (!out || !store || X509_STORE_add_cert(store, authority) != 1) {
        status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a document");
    } else if (!signature || !text) {
        status = us_error_set(err, US_ERR_VALUE, &(us_place){.file = path}, USI_MAKE_ENCLAVE_ANEW,
                              "this is no signed document (S/MIME, the text beside the signature): %s",
                              usi_openssl_error(why, sizeof why));
    } else if (PKCS7_verify(signature, NULL, store, text, out, PKCS7_TEXT) != 1) {
        status = us_error_set(err, US_ERR_VALUE, &(us_place){.file = path},
                              "It was changed, or another authority signed it. " USI_MAKE_ENCLAVE_ANEW,
                              "the signature does not hold: %s", usi_openssl_error(why, sizeof why));
    }
    if (!status) {
        char *signed_text = NULL;
        const long n = BIO_get_mem_data(out, &signed_text);
        status = usi_document_judge(signed_text, n > 0 ? (size_t)n : 0, path, claim, err);
    }
    X509_STORE_free(store);
    PKCS7_free(signature);
    BIO_free(text);
    BIO_free(out);
    BIO_free(in);
    ERR_clear_error();
    return status;
}
