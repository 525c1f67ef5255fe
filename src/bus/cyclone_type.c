// Samples as opaque bytes in Cyclone DDS.
//
// Cyclone lets a program bring its own idea of a type (sertype) and of a sample (serdata). Ours knows nothing
// but bytes: a sample is one block of memory that holds Cyclone's head and the CDR behind it. So a message is
// encoded once, by the room wire, whatever vendor carries it; types that this program does not know can be
// carried too; and no type information is announced, which makes every peer match by the type's name.
//
//     +----------------------+--------+--------------------------+------+
//     | ddsi_serdata, length | header | CDR                      | 0..3 |
//     +----------------------+--------+--------------------------+------+
//                              4 bytes                             zeros
//
// A sample that is passed on to another domain has no bytes of its own: it holds the one that has them.
//
// Where a type has keys, each sample has its key beside it, as a sample that is nothing but the key would
// have it: so Cyclone tells instances from each other.
//
// What arrives is not checked here: it is the decoder that is built for hostile bytes. What Cyclone
// guarantees is that the length is true.
//
// Samples are freed on threads of Cyclone, and some after the bus is gone: their memory is the C library's.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/cyclone.h"
#include <dds/ddsi/q_radmin.h>
#include <dds/ddsrt/heap.h>
#include <dds/ddsrt/md5.h>

typedef struct sample {
    struct ddsi_serdata head;
    uint32_t length;             // with the header and the zeros at the end
    struct ddsi_serdata *owner;  // of the bytes; NULL: they are its own
    const unsigned char *bytes;
    unsigned char *key;  // with a header; NULL: the type has none
    size_t n_key;
    bool is_of_hash;  // the bytes of a key that were made of its hash
    _Alignas(8) unsigned char own[];
} sample;

typedef struct byte_type {
    struct ddsi_sertype head;
    usi_key_function *key;  // NULL: it has none
    const us_message_type *key_type;
    size_t key_bound;
    bool is_keyed;  // of which the keys are not known
} byte_type;

static const struct ddsi_sertype_ops type_ops;
static const struct ddsi_serdata_ops sample_ops;

static const sample *as_sample(const struct ddsi_serdata *d) { return (const sample *)d; }

// A sample with room for `length` bytes, the last of them cleared.
static sample *make(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind, size_t length) {
    if (length > UINT32_MAX - 4) return NULL;
    size_t padded = (length + 3) / 4 * 4;
    sample *s = malloc(sizeof *s + padded);
    if (!s) return NULL;
    ddsi_serdata_init(&s->head, type, kind);
    s->head.hash = type->serdata_basehash;  // one instance, while there is no key
    s->length = (uint32_t)padded;
    s->owner = NULL;
    s->bytes = s->own;
    s->key = NULL;
    s->n_key = 0;
    s->is_of_hash = false;
    memset(s->own + length, 0, padded - length);
    return s;
}

enum { HEADER = 4 };

// Of a type whose keys nobody knows, data are one instance, and each key that ends is one by itself: so what
// ends takes nothing of the history with it.
static struct ddsi_serdata *with_own_key(sample *s) {
    s->key = malloc(s->length ? s->length : 1);
    if (!s->key) {
        ddsi_serdata_unref(&s->head);
        return NULL;
    }
    s->n_key = s->length;
    memcpy(s->key, s->bytes, s->length);
    s->head.hash ^= (uint32_t)us_hash_bytes(0, s->key, s->n_key);
    return &s->head;
}

// The sample with its key, once its bytes are there; without memory, or where they are not of the type, there
// is none.
static struct ddsi_serdata *with_key(sample *s) {
    const byte_type *type = (const byte_type *)s->head.type;
    const bool is_key = s->head.kind == SDK_KEY;
    if (!type->key) return type->is_keyed && is_key ? with_own_key(s) : &s->head;
    const size_t n = type->key(type->key_type, s->bytes, s->length, is_key, true, NULL, 0);
    if (n <= UINT32_MAX) s->key = calloc(1, HEADER + n);
    if (!s->key) {
        ddsi_serdata_unref(&s->head);
        return NULL;
    }
    s->key[1] = 1;
    s->n_key = HEADER + n;
    type->key(type->key_type, s->bytes, s->length, is_key, true, s->key + HEADER, n);
    s->head.hash ^= (uint32_t)us_hash_bytes(0, s->key, s->n_key);
    return &s->head;
}

struct ddsi_serdata *usi_cyclone_sample(const struct ddsi_sertype *type, const void *bytes, size_t length) {
    sample *s = make(type, SDK_DATA, length);
    if (!s) return NULL;
    memcpy(s->own, bytes, length);
    return with_key(s);
}

// A key of at most 16 bytes is its own hash, in big-endian CDR.
static sample *make_of_hash(const struct ddsi_sertype *type, const uint8_t hash[16]) {
    sample *s = make(type, SDK_KEY, HEADER + 16);
    if (!s) return NULL;
    memset(s->own, 0, HEADER);
    memcpy(s->own + HEADER, hash, 16);
    s->is_of_hash = true;
    return s;
}

struct ddsi_serdata *usi_cyclone_end(const struct ddsi_sertype *type, const us_sample *sample_) {
    sample *s = NULL;
    if (sample_->length >= HEADER) {
        s = make(type, SDK_KEY, sample_->length);
        if (s) memcpy(s->own, sample_->bytes, sample_->length);
    } else if (sample_->has_key_hash) {
        s = make_of_hash(type, sample_->key_hash);
    }
    return s ? with_key(s) : NULL;
}

bool usi_cyclone_get_hash(const struct ddsi_serdata *data, uint8_t out_hash[16]) {
    const sample *s = as_sample(data);
    if (s->is_of_hash) memcpy(out_hash, s->own + HEADER, 16);
    return s->is_of_hash;
}

struct ddsi_serdata *usi_cyclone_share(const struct ddsi_sertype *type, struct ddsi_serdata *owner) {
    sample *s = make(type, SDK_DATA, 0);
    if (!s) return NULL;
    s->owner = ddsi_serdata_ref(owner);
    s->bytes = as_sample(owner)->bytes;
    s->length = as_sample(owner)->length;
    return with_key(s);
}

struct ddsi_serdata *usi_cyclone_hold(const void *bytes) {
    // Views are of bytes that lie behind the head of the sample that owns them.
    const sample *s = (const sample *)(const void *)((const unsigned char *)bytes - offsetof(sample, own));
    return ddsi_serdata_ref(&s->head);
}

const void *usi_cyclone_view(const struct ddsi_serdata *data, size_t *out_length) {
    *out_length = as_sample(data)->length;
    return as_sample(data)->bytes;
}

// ---- samples ----

static bool sample_eqkey(const struct ddsi_serdata *a, const struct ddsi_serdata *b) {
    const sample *x = as_sample(a), *y = as_sample(b);
    return x->n_key == y->n_key && (x->n_key == 0 || memcmp(x->key, y->key, x->n_key) == 0);
}

static uint32_t sample_get_size(const struct ddsi_serdata *d) { return as_sample(d)->length; }

static void sample_free(struct ddsi_serdata *d) {
    if (as_sample(d)->owner) ddsi_serdata_unref(as_sample(d)->owner);
    free(as_sample(d)->key);
    free(d);
}

// From the network: fragments in order, which may overlap.
static struct ddsi_serdata *sample_from_ser(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                            const struct nn_rdata *fragment, size_t size) {
    sample *s = make(type, kind, size);
    if (!s) return NULL;
    uint32_t have = 0;
    for (; fragment; fragment = fragment->nextfrag) {
        if (fragment->maxp1 <= have || fragment->min > have || fragment->maxp1 > size) continue;
        const unsigned char *from = NN_RMSG_PAYLOADOFF(fragment->rmsg, NN_RDATA_PAYLOAD_OFF(fragment));
        memcpy(s->own + have, from + (have - fragment->min), fragment->maxp1 - have);
        have = fragment->maxp1;
    }
    if (have == size) return with_key(s);
    free(s);
    return NULL;
}

static struct ddsi_serdata *sample_from_ser_iov(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                                ddsrt_msg_iovlen_t n, const ddsrt_iovec_t *parts,
                                                size_t size) {
    sample *s = make(type, kind, size);
    if (!s) return NULL;
    size_t have = 0;
    for (ddsrt_msg_iovlen_t i = 0; i < n && have < size; i++) {
        size_t take = parts[i].iov_len < size - have ? parts[i].iov_len : size - have;
        memcpy(s->own + have, parts[i].iov_base, take);
        have += take;
    }
    memset(s->own + have, 0, size - have);
    return with_key(s);
}

static struct ddsi_serdata *sample_from_keyhash(const struct ddsi_sertype *type,
                                                const struct ddsi_keyhash *hash) {
    const byte_type *t = (const byte_type *)type;
    // The hash of a longer key tells nothing of it.
    if (t->key && t->key_bound > sizeof hash->value) return NULL;
    const bool has_key = t->key || t->is_keyed;
    sample *s = has_key ? make_of_hash(type, hash->value) : make(type, SDK_KEY, 0);
    return s ? with_key(s) : NULL;
}

// Cyclone makes samples of nothing when it disposes or unregisters: there is no key to keep.
static struct ddsi_serdata *sample_from_sample(const struct ddsi_sertype *type, enum ddsi_serdata_kind kind,
                                               const void *c_struct) {
    (void)c_struct;
    sample *s = make(type, kind, 0);
    return s ? &s->head : NULL;
}

static void sample_to_ser(const struct ddsi_serdata *d, size_t offset, size_t size, void *buf) {
    memcpy(buf, as_sample(d)->bytes + offset, size);
}

static struct ddsi_serdata *sample_to_ser_ref(const struct ddsi_serdata *d, size_t offset, size_t size,
                                              ddsrt_iovec_t *ref) {
    const unsigned char *bytes = as_sample(d)->bytes + offset;
    memcpy(&ref->iov_base, &bytes, sizeof bytes);  // the reference is for reading
    ref->iov_len = (ddsrt_iov_len_t)size;
    return ddsi_serdata_ref(d);
}

static void sample_to_ser_unref(struct ddsi_serdata *d, const ddsrt_iovec_t *ref) {
    (void)ref;
    ddsi_serdata_unref(d);
}

// There is no C struct: whoever asks for one gets none.
static bool sample_to_sample(const struct ddsi_serdata *d, void *c_struct, void **next, void *limit) {
    (void)d;
    (void)c_struct;
    (void)next;
    (void)limit;
    return false;
}

static bool sample_untyped_to_sample(const struct ddsi_sertype *type, const struct ddsi_serdata *d,
                                     void *c_struct, void **next, void *limit) {
    (void)type;
    return sample_to_sample(d, c_struct, next, limit);
}

static struct ddsi_serdata *sample_to_untyped(const struct ddsi_serdata *d) {
    const sample *from = as_sample(d);
    sample *s = make(d->type, SDK_KEY, from->n_key);
    if (!s) return NULL;
    if (from->n_key > 0) {
        s->key = malloc(from->n_key);
        if (!s->key) {
            ddsi_serdata_unref(&s->head);
            return NULL;
        }
        memcpy(s->own, from->key, from->n_key);
        memcpy(s->key, from->key, from->n_key);
        s->n_key = from->n_key;
        s->head.hash = d->hash;
    }
    s->head.type = NULL;
    return &s->head;
}

static size_t sample_print(const struct ddsi_sertype *type, const struct ddsi_serdata *d, char *buf,
                           size_t size) {
    return (size_t)snprintf(buf, size, "%s of %u bytes", type->type_name, as_sample(d)->length);
}

static void sample_get_keyhash(const struct ddsi_serdata *d, struct ddsi_keyhash *hash, bool force_md5) {
    const byte_type *type = (const byte_type *)d->type;
    const sample *s = as_sample(d);
    memset(hash, 0, sizeof *hash);
    if (!type->key || s->n_key <= HEADER) return;
    const size_t n = s->n_key - HEADER;
    uint8_t *bytes = malloc(n);
    if (!bytes) return;
    type->key(type->key_type, s->bytes, s->length, d->kind == SDK_KEY, false, bytes, n);
    if (type->key_bound <= sizeof hash->value && !force_md5) {
        memcpy(hash->value, bytes, n < sizeof hash->value ? n : sizeof hash->value);
    } else {
        ddsrt_md5_state_t md5;
        ddsrt_md5_init(&md5);
        ddsrt_md5_append(&md5, bytes, (unsigned int)n);
        ddsrt_md5_finish(&md5, hash->value);
    }
    free(bytes);
}

static const struct ddsi_serdata_ops sample_ops = {
    .eqkey = sample_eqkey,
    .get_size = sample_get_size,
    .from_ser = sample_from_ser,
    .from_ser_iov = sample_from_ser_iov,
    .from_keyhash = sample_from_keyhash,
    .from_sample = sample_from_sample,
    .to_ser = sample_to_ser,
    .to_ser_ref = sample_to_ser_ref,
    .to_ser_unref = sample_to_ser_unref,
    .to_sample = sample_to_sample,
    .to_untyped = sample_to_untyped,
    .untyped_to_sample = sample_untyped_to_sample,
    .free = sample_free,
    .print = sample_print,
    .get_keyhash = sample_get_keyhash,
};

// ---- types ----

static void type_free(struct ddsi_sertype *type) {
    ddsi_sertype_fini(type);
    free(type);
}

// Cyclone has compared the names already.
static bool type_equal(const struct ddsi_sertype *a, const struct ddsi_sertype *b) {
    const byte_type *x = (const byte_type *)a, *y = (const byte_type *)b;
    return x->is_keyed == y->is_keyed && x->key == y->key && (!x->key || x->key_type == y->key_type) &&
           a->allowed_data_representation == b->allowed_data_representation;
}

static uint32_t type_hash(const struct ddsi_sertype *type) {
    (void)type;
    return 0;
}

static void type_zero_samples(const struct ddsi_sertype *type, void *samples, size_t n) {
    (void)type;
    (void)samples;
    (void)n;
}

static void type_realloc_samples(void **pointers, const struct ddsi_sertype *type, void *old, size_t n_old,
                                 size_t n) {
    (void)type;
    (void)old;
    (void)n_old;
    for (size_t i = 0; i < n; i++)
        pointers[i] = NULL;
}

static void type_free_samples(const struct ddsi_sertype *type, void **pointers, size_t n, dds_free_op_t op) {
    (void)type;
    (void)pointers;
    (void)n;
    (void)op;
}

static const struct ddsi_sertype_ops type_ops = {
    .version = ddsi_sertype_v0,
    .free = type_free,
    .zero_samples = type_zero_samples,
    .realloc_samples = type_realloc_samples,
    .free_samples = type_free_samples,
    .equal = type_equal,
    .hash = type_hash,
};

struct ddsi_sertype *usi_cyclone_type(const usi_vendor_endpoint_def *def) {
    byte_type *type = calloc(1, sizeof *type);
    if (!type) return NULL;
    type->key = def->key;
    type->key_type = def->key_type;
    type->key_bound = def->key_bound;
    type->is_keyed = def->is_keyed;
    ddsi_sertype_init(&type->head, def->type, &type_ops, &sample_ops, !def->key && !def->is_keyed);
    type->head.allowed_data_representation = DDS_DATA_REPRESENTATION_FLAG_XCDR1;
    if (def->is_xcdr2) type->head.allowed_data_representation |= DDS_DATA_REPRESENTATION_FLAG_XCDR2;
    return &type->head;
}
