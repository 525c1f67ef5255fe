// Single numbers out of CDR, and the member of a union that follows.
#include "wire/cdr.h"

bool usi_cdr_value(usi_cdr *r, usi_kind kind, double *out, int64_t *out_whole, bool *out_is_whole) {
    usi_cdr_number v = {0};
    int64_t whole = 0;
    if (!usi_cdr_numbers(r, kind, 1, &v)) return false;
    *out_is_whole = kind < USI_KIND_FLOAT32;
    switch (kind) {
    case USI_KIND_FLOAT32:
        *out = (double)v.f32;
        return true;
    case USI_KIND_FLOAT64:
        *out = v.f64;
        return true;
    case USI_KIND_BOOL:
        whole = v.b;
        break;
    case USI_KIND_INT8:
        whole = (int32_t)v.i8;
        break;
    case USI_KIND_INT16:
        whole = v.i16;
        break;
    case USI_KIND_UINT16:
        whole = v.u16;
        break;
    case USI_KIND_INT32:
        whole = v.i32;
        break;
    case USI_KIND_UINT32:
        whole = v.u32;
        break;
    case USI_KIND_INT64:
    case USI_KIND_UINT64:
        whole = v.i64;
        break;
    default:
        whole = v.u8;
    }
    *out_whole = whole;
    *out = kind == USI_KIND_UINT64 ? (double)v.u64 : (double)whole;
    return true;
}

bool usi_cdr_choose(usi_cdr *r, const us_message_type *type, int32_t *out_field) {
    double number = 0;
    bool is_whole = false;
    if (!usi_cdr_value(r, (usi_kind)type->fields[0].kind, &number, &r->choice, &is_whole)) return false;
    *out_field = type->other;
    for (int32_t i = 0; i < type->n_label; i++) {
        if (type->labels[i].value == r->choice) *out_field = type->labels[i].field;
    }
    return true;
}
