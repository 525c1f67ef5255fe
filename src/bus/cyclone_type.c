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

typedef struct sample {
    struct ddsi_serdata head;
    uint32_t length;             // with the header and the zeros at the end
    struct ddsi_serdata *owner;  // of the bytes; NULL: they are its own
    const unsigned char *bytes;
    _Alignas(8) unsigned char own[];
} sample;

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
    s->head.hash = type->serdata_basehash;  // one instance: there is no key
    s->length = (uint32_t)padded;
    s->owner = NULL;
    s->bytes = s->own;
    memset(s->own + length, 0, padded - length);
    return s;
}

struct ddsi_serdata *usi_cyclone_sample(const struct ddsi_sertype *type, const void *bytes, size_t length) {
    sample *s = make(type, SDK_DATA, length);
    if (!s) return NULL;
    memcpy(s->own, bytes, length);
    return &s->head;
}

struct ddsi_serdata *usi_cyclone_share(const struct ddsi_sertype *type, struct ddsi_serdata *owner) {
    sample *s = make(type, SDK_DATA, 0);
    if (!s) return NULL;
    s->owner = ddsi_serdata_ref(owner);
    s->bytes = as_sample(owner)->bytes;
    s->length = as_sample(owner)->length;
    return &s->head;
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
    (void)a;
    (void)b;
    return true;
}

static uint32_t sample_get_size(const struct ddsi_serdata *d) { return as_sample(d)->length; }

static void sample_free(struct ddsi_serdata *d) {
    if (as_sample(d)->owner) ddsi_serdata_unref(as_sample(d)->owner);
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
    if (have == size) return &s->head;
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
    return &s->head;
}

static struct ddsi_serdata *sample_from_keyhash(const struct ddsi_sertype *type,
                                                const struct ddsi_keyhash *hash) {
    (void)hash;
    sample *s = make(type, SDK_KEY, 0);
    return s ? &s->head : NULL;
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
    sample *s = make(d->type, SDK_KEY, 0);
    if (!s) return NULL;
    s->head.type = NULL;
    return &s->head;
}

static size_t sample_print(const struct ddsi_sertype *type, const struct ddsi_serdata *d, char *buf,
                           size_t size) {
    return (size_t)snprintf(buf, size, "%s of %u bytes", type->type_name, as_sample(d)->length);
}

static void sample_get_keyhash(const struct ddsi_serdata *d, struct ddsi_keyhash *hash, bool force_md5) {
    (void)d;
    (void)force_md5;
    memset(hash, 0, sizeof *hash);
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

// The name is all there is, and Cyclone has compared that already.
static bool type_equal(const struct ddsi_sertype *a, const struct ddsi_sertype *b) {
    (void)a;
    (void)b;
    return true;
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

struct ddsi_sertype *usi_cyclone_type(const char *name) {
    struct ddsi_sertype *type = calloc(1, sizeof *type);
    if (!type) return NULL;
    ddsi_sertype_init(type, name, &type_ops, &sample_ops, true);
    type->allowed_data_representation = DDS_DATA_REPRESENTATION_FLAG_XCDR1;
    return type;
}
