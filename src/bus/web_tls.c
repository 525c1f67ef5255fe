// TLS for the page: a certificate of the user's, or one that is made for this run.
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bus/bus__web.h"

us_status usi_web_tls_open(usi_web *web, us_error *err) {
    const usi_web_def *def = &web->def;
    if (!def->enable_tls) return US_OK;
    us_status status;
    if (def->tls_cert) {
        status = usi_identity_read(def->tls_cert, def->tls_key, &web->identity, err);
        if (status && err)
            snprintf(err->remedy, sizeof err->remedy,
                     "Name a certificate and its private key in PEM, the key without a password: --tls-cert, "
                     "--tls-key.");
    } else {
        const int64_t now = (int64_t)time(NULL);
        status = usi_identity_make_page(web->machine, now - 86400, now + 30 * 86400, &web->identity, err);
    }
    if (status) return status;
    return usi_certificate_fingerprint(web->identity.certificate, web->fingerprint);
}

// libwebsockets has made its context of OpenSSL, and asks for what else belongs into it.
int usi_web_tls_fill(usi_web *web, void *context) {
    SSL_CTX *tls = context;
    const bool is_ok = SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) == 1 &&
                       (web->def.tls_cert ? SSL_CTX_use_certificate_chain_file(tls, web->def.tls_cert)
                                          : SSL_CTX_use_certificate(tls, web->identity.certificate)) == 1 &&
                       SSL_CTX_use_PrivateKey(tls, web->identity.key) == 1;
    web->has_tls = is_ok;
    ERR_clear_error();
    return is_ok ? 0 : 1;
}

const char *usi_web_fingerprint(const usi_web *web) { return web ? web->fingerprint : ""; }
