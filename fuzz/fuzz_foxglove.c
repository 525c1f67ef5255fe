// Any bytes as a message of a Foxglove client, binary and text: what is taken is within its bounds, what is
// refused says why, and it is the same twice.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/foxglove.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) __builtin_trap();
}

static void check(const usi_foxglove_message *m, const uint8_t *data, size_t size) {
    must(m->op <= USI_FOXGLOVE_OTHER && m->n >= 0);
    const bool is_list = m->op == USI_FOXGLOVE_SUBSCRIBE || m->op == USI_FOXGLOVE_UNSUBSCRIBE ||
                         m->op == USI_FOXGLOVE_UNADVERTISE;
    must(m->n <= (m->op == USI_FOXGLOVE_ADVERTISE ? USI_FOXGLOVE_CHANNELS
                  : is_list                       ? USI_FOXGLOVE_LIST
                                                  : USI_FOXGLOVE_PARAMETERS));
    must(memchr(m->request, 0, sizeof m->request) && memchr(m->uri, 0, sizeof m->uri));
    if (m->op == USI_FOXGLOVE_FETCH) must(m->uri[0] > ' ');
    if (m->op == USI_FOXGLOVE_CALL) must(m->bytes >= data + 13 && m->bytes + m->length == data + size);
    for (int32_t k = 0; m->op >= USI_FOXGLOVE_GET && m->op <= USI_FOXGLOVE_UNWATCH && k < m->n; k++) {
        const usi_foxglove_parameter *p = &m->parameters[k];
        must(p->name[0] > ' ' && memchr(p->name, 0, sizeof p->name) && p->kind <= USI_FOXGLOVE_TEXT);
        if (m->op == USI_FOXGLOVE_SET) must(memchr(p->text, 0, sizeof p->text) != NULL);
    }
    must(strlen(m->name) < sizeof m->name);
    if (m->op == USI_FOXGLOVE_DATA) must(m->bytes == data + 5 && m->length == size - 5);
    for (int32_t k = 0; m->op == USI_FOXGLOVE_ADVERTISE && k < m->n; k++) {
        const usi_foxglove_channel *c = &m->channels[k];
        must(memchr(c->topic, 0, sizeof c->topic) && memchr(c->schema, 0, sizeof c->schema));
        must(c->topic[0] > ' ' && c->schema[0] > ' ');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static usi_foxglove_message a, b;
    us_error err = {0};
    if (size == 0) return 0;
    // The first bit says which kind it is.
    const bool is_binary = data[0] & 1;
    data++, size--;
    us_status status = usi_foxglove_parse(is_binary, data, size, &a, &err);
    if (status) {
        must(err.code == status && err.message[0]);
    } else {
        check(&a, data, size);
    }
    // Bytes of an earlier message must not show through.
    memset(&b, 0xA5, sizeof b);
    must(usi_foxglove_parse(is_binary, data, size, &b, NULL) == status);
    if (status) return 0;
    must(a.op == b.op && a.n == b.n && a.id == b.id && a.length == b.length && strcmp(a.name, b.name) == 0);
    must(a.call == b.call && strcmp(a.request, b.request) == 0 && strcmp(a.uri, b.uri) == 0);
    for (int32_t k = 0; k < a.n; k++) {
        if (a.op == USI_FOXGLOVE_ADVERTISE) {
            must(a.channels[k].id == b.channels[k].id && a.channels[k].is_cdr == b.channels[k].is_cdr &&
                 strcmp(a.channels[k].topic, b.channels[k].topic) == 0);
        } else if (a.op >= USI_FOXGLOVE_GET && a.op <= USI_FOXGLOVE_UNWATCH) {
            must(strcmp(a.parameters[k].name, b.parameters[k].name) == 0 &&
                 a.parameters[k].kind == b.parameters[k].kind);
        } else {
            must(a.list[k].id == b.list[k].id);
        }
    }
    return 0;
}
