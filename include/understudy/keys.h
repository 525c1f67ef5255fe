// Keys of DDS Security, in the layout that ROS 2 (SROS 2) has for them.
//
// A keystore is a directory. `private` holds the key of its authority, which never leaves it; `public` the
// authority's certificate; `enclaves/NAME` what one program needs: its certificate and private key, the
// authority's certificates, and two signed documents: the governance (what is protected, and how) and its
// permissions (which topics it may write and read). An enclave's directory has all that its program needs and
// can be copied to another machine alone.
//
// Keys are of the curve P-256, files with private keys have mode 0600. All functions may be called from any
// thread; two at a time on one keystore must not be.
#ifndef UNDERSTUDY_KEYS_H
#define UNDERSTUDY_KEYS_H

#include "understudy/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct us_keystore_def {
    const char *name;     // of the authority; default "understudy"
    int32_t days;         // until its certificate expires; default 3650
    const char *domains;  // DDS domains that are protected: "0-230" (default), or a list as "0,7,20-25"
} us_keystore_def;

US_API us_keystore_def us_keystore_def_default(void);
// Makes the directory (or fills an empty one) with a new authority and its governance: nobody takes part
// without a certificate; discovery, samples and their headers are encrypted, every packet is signed.
US_API us_status us_keystore_create(const char *path, const us_keystore_def *def, us_error *err);

typedef struct us_enclave_def {
    const char *enclave;  // "/rover", "/fleet/rover_1"; "/" is the one that programs use by default
    int32_t days;         // until certificate and permissions expire; default 365
    int64_t start;        // from when they are valid, seconds since 1970; default 0: since yesterday
    const char *domains;  // where it may take part; default "0-230"
    // Topics by their ROS names ("/k10/odom", "/k10/*") or DDS names (rt/, rq/, rr/); with none at all it may
    // write or read every topic. ros_discovery_info is always allowed.
    int32_t n_publish, n_subscribe;
    const char *const *publish, *const *subscribe;
    // The DDS of the program that has these keys, where both are in one domain: "cyclone" or "fastdds"; NULL
    // (default): any. It decides who begins when two of them authenticate each other, which has to be Cyclone
    // DDS: a certificate whose name alone would not bring that about has a unit (OU=1) beside it.
    const char *vendor;
} us_enclave_def;

US_API us_enclave_def us_enclave_def_default(void);
// Makes an enclave, or makes it anew (other key, other permissions).
US_API us_status us_keystore_add(const char *path, const us_enclave_def *def, us_error *err);

typedef struct us_enclave_info {
    char enclave[256];
    char serial[48];   // of the certificate, hexadecimal
    int64_t until;     // seconds since 1970: its certificate expires
    us_status status;  // US_OK: it can be used now; otherwise `error` says why not
    us_error error;
} us_enclave_info;

// The enclaves in the order of their names. *out_n may be more than `cap`.
US_API us_status us_keystore_list(const char *path, us_enclave_info *out_list, int32_t cap, int32_t *out_n,
                                  us_error *err);

// The files of an enclave's directory: whether all are there, belong together, are signed by their authority,
// are valid now and meant for the domain (-1: any). US_ERR_IO names a file that is missing, US_ERR_VALUE one
// that does not hold.
US_API us_status us_enclave_check(const char *directory, int32_t domain, us_error *err);

// ---- users of the page ----

enum { US_PAGE_TOKEN = 33 };

// Adds a user of the page (docs/page.md) to a file, which is made with mode 0600 when it is not there: a
// name, a role ("look", "drive", "world", "switch") and a new token, of which the file gets the hash alone.
US_API us_status us_page_user_add(const char *path, const char *name, const char *role,
                                  char out_token[US_PAGE_TOKEN], us_error *err);

#ifdef __cplusplus
}
#endif
#endif
