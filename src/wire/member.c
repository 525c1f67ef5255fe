#include "wire/member.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_value.h"
#include "understudy/interface.h"

// ---- finding ----

static void say_no_member(const us_message_type *type, const us_message_type *at, const char *path, size_t n,
                          const us_place *place, us_error *err) {
    char name[80], remedy[200] = "name a member of the type";
    snprintf(name, sizeof name, "%.*s", (int)(n < 79 ? n : 79), path);
    usi_guess guess = usi_guess_start(name);
    for (int32_t i = 0; i < at->n_field; i++)
        usi_guess_offer(&guess, at->fields[i].name);
    if (guess.best) snprintf(remedy, sizeof remedy, "did you mean \"%.80s\"?", guess.best);
    us_error_set(err, US_ERR_NAME, place, remedy, "\"%.100s\" has no member \"%s\"", type->name, name);
}

static int32_t find_field(const us_message_type *type, const char *name, size_t n) {
    for (int32_t i = 0; i < type->n_field; i++) {
        if (strlen(type->fields[i].name) == n && memcmp(type->fields[i].name, name, n) == 0) return i;
    }
    return -1;
}

// "[12]", or "[]" for `open`.
static bool read_item(const char **path, int64_t open, int64_t *out) {
    const char *at = *path + 1;
    const size_t n = strspn(at, "0123456789");
    if (at[n] != ']' || n > 10 || (n == 0 && open == -1)) return false;
    *out = n == 0 ? open : strtoll(at, NULL, 10);
    *path = at + n + 1;
    return true;
}

us_status usi_member_find(const us_message_type *type, const char *path, int64_t open, const us_place *place,
                          usi_member *out, us_error *err) {
    const us_message_type *at = type;
    const char *whole = path;
    *out = (usi_member){0};
    for (bool is_inside = false;;) {
        const size_t n = is_inside ? 0 : strcspn(path, ".[");
        const int32_t field = is_inside ? 0 : find_field(at, path, n);
        if (field < 0) {
            say_no_member(type, at, path, n, place, err);
            return US_ERR_NAME;
        }
        const usi_message_field *f = &at->fields[field];
        int64_t item = -1;
        path += n;
        if (*path == '[') {
            if (f->shape == USI_SHAPE_ONE || !read_item(&path, open, &item) ||
                (f->count > 0 && item >= (int64_t)f->count)) {
                us_error_set(err, US_ERR_VALUE, place, "write an index that the array or sequence has",
                             "\"%.100s\": the index of \"%.60s\" is none", whole, f->name);
                return US_ERR_VALUE;
            }
        }
        out->field[out->n_step] = field;
        out->item[out->n_step++] = item;
        out->leaf = f;
        if (*path == 0) return US_OK;
        is_inside = *path == '[' && f->kind == USI_KIND_MESSAGE && f->type->is_inner;
        if (f->kind != USI_KIND_MESSAGE || (!is_inside && *path != '.') ||
            (f->shape != USI_SHAPE_ONE && item == -1)) {
            us_error_set(err, US_ERR_NAME, place, "write a path like \"motor[3].q\"",
                         "\"%.100s\": nothing can follow \"%.60s\"", whole, f->name);
            return US_ERR_NAME;
        }
        path += !is_inside;
        at = f->type;
    }
}

int usi_member_compare(const usi_member *a, const usi_member *b) {
    for (int32_t i = 0; i < a->n_step && i < b->n_step; i++) {
        if (a->field[i] != b->field[i]) return a->field[i] < b->field[i] ? -1 : 1;
        if (a->item[i] != b->item[i]) return a->item[i] < b->item[i] ? -1 : 1;
    }
    return a->n_step == b->n_step ? 0 : a->n_step < b->n_step ? -1 : 1;
}

bool usi_members_agree(const us_message_type *type, const usi_member *a, const usi_member *b) {
    for (int32_t i = 0; i < a->n_step && i < b->n_step; i++) {
        if (a->field[i] != b->field[i]) return !type->is_union || a->field[i] == 0 || b->field[i] == 0;
        if (a->item[i] != b->item[i]) return a->item[i] != USI_MEMBER_EACH && b->item[i] != USI_MEMBER_EACH;
        if (i + 1 == a->n_step || i + 1 == b->n_step) return true;
        type = type->fields[a->field[i]].type;
    }
    return true;
}

bool usi_member_is_listed(const usi_member *a, const usi_member *b) {
    for (int32_t i = 0; i < a->n_step && i < b->n_step && a->field[i] == b->field[i]; i++) {
        if (a->item[i] != b->item[i]) return false;
        if (a->item[i] == USI_MEMBER_EACH) return true;
    }
    return false;
}

// ---- reading ----

typedef struct member_reading {
    usi_cdr r;
    const usi_member *member;
    usi_wire_value *value;
} member_reading;

static bool read_leaf(member_reading *w, const usi_message_field *f, usi_wire_value *v) {
    v->is_there = true;
    if (f->kind == USI_KIND_STRING) return usi_cdr_string(&w->r, f, &v->text, &v->length);
    return usi_cdr_value(&w->r, (usi_kind)f->kind, &v->number, &v->whole, &v->is_whole);
}

static bool read_message(member_reading *w, const us_message_type *type, int32_t first, int32_t end,
                         int32_t depth);

// The members from `first` to before `end` are those of this element.
// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool read_element(member_reading *w, const usi_message_field *f, int32_t first, int32_t end,
                         int32_t depth) {
    if (first == end) return usi_cdr_skip_element(&w->r, f);
    if (f->kind == USI_KIND_MESSAGE) {
        usi_cdr_enter(&w->r);
        const bool is_good = read_message(w, f->type, first, end, depth + 1);
        usi_cdr_leave(&w->r);
        return is_good;
    }
    if (!read_leaf(w, f, &w->value[first])) return false;
    for (int32_t i = first + 1; i < end; i++)
        w->value[i] = w->value[first];
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool read_field(member_reading *w, const usi_message_field *f, int32_t first, int32_t end,
                       int32_t depth) {
    usi_cdr_at(&w->r, f, -1);
    if (first == end) return usi_cdr_skip_field(&w->r, f);
    if (f->shape == USI_SHAPE_ONE) return read_element(w, f, first, end, depth);
    uint32_t n = f->count;
    if (f->shape == USI_SHAPE_SEQUENCE && !usi_cdr_count(&w->r, f, &n)) return false;
    for (uint32_t k = 0; k < n; k++) {
        int32_t next = first;
        while (next < end && w->member[next].item[depth] == (int64_t)k)
            next++;
        if (first == end && f->kind < USI_KIND_STRING)
            return usi_cdr_skip_numbers(&w->r, (usi_kind)f->kind, n - k);
        usi_cdr_at(&w->r, f, k);
        if (!read_element(w, f, first, next, depth)) return false;
        first = next;
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static bool read_message(member_reading *w, const us_message_type *type, int32_t first, int32_t end,
                         int32_t depth) {
    int32_t choice = -1;
    for (int32_t i = 0; i < type->n_field; i++) {
        int32_t next = first;
        while (next < end && w->member[next].field[depth] == i)
            next++;
        if (type->is_union && i == 0) {
            if (!usi_cdr_choose(&w->r, type, &choice)) return false;
            for (int32_t k = first; k < next; k++)
                w->value[k] = (usi_wire_value){
                    .number = (double)w->r.choice, .whole = w->r.choice, .is_whole = true, .is_there = true};
        } else if (!type->is_union || i == choice) {
            if (!read_field(w, &type->fields[i], first, next, depth)) return false;
        }
        first = next;
    }
    return true;
}

bool usi_members_read(const us_message_type *type, const void *bytes, size_t length,
                      const usi_member *members, int32_t n, usi_wire_value *out) {
    member_reading w = {.member = members, .value = out};
    memset(out, 0, (size_t)n * sizeof *out);
    return !usi_cdr_open(&w.r, type, bytes, length, NULL) && read_message(&w, type, 0, n, 0) &&
           usi_cdr_end(&w.r);
}

// ---- writing ----

typedef struct member_writing {
    uint8_t *bytes;
    size_t cap, at;  // behind the header
    const usi_member *member;
    const usi_wire_value *value;
    const usi_member_list *list;
} member_writing;

static uint8_t *make_room(member_writing *w, size_t n, size_t align) {
    const size_t at = (w->at + align - 1) & ~(align - 1);
    const bool fits = at <= w->cap && n <= w->cap - at;
    if (fits) memset(w->bytes + w->at, 0, at + n - w->at);
    w->at = at + n;
    return fits ? w->bytes + at : NULL;
}

static void put_whole(uint8_t *to, uint64_t x, size_t size) {
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(x >> 8 * i);
}

static int64_t limit(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

// The nearest whole number that a kind holds, as its bytes.
static uint64_t to_whole(usi_kind kind, const usi_wire_value *v) {
    const double x = isnan(v->number) ? 0 : nearbyint(v->number);
    const int64_t whole = v->is_whole    ? v->whole
                          : x >= 9.2e18  ? INT64_MAX
                          : x <= -9.2e18 ? INT64_MIN
                                         : (int64_t)x;
    switch (kind) {
    case USI_KIND_BOOL:
        return whole != 0;
    case USI_KIND_INT8:
        return (uint64_t)limit(whole, INT8_MIN, INT8_MAX);
    case USI_KIND_BYTE:
    case USI_KIND_UINT8:
        return (uint64_t)limit(whole, 0, UINT8_MAX);
    case USI_KIND_INT16:
        return (uint64_t)limit(whole, INT16_MIN, INT16_MAX);
    case USI_KIND_UINT16:
        return (uint64_t)limit(whole, 0, UINT16_MAX);
    case USI_KIND_INT32:
        return (uint64_t)limit(whole, INT32_MIN, INT32_MAX);
    case USI_KIND_UINT32:
        return (uint64_t)limit(whole, 0, UINT32_MAX);
    case USI_KIND_UINT64:
        return (uint64_t)limit(whole, 0, INT64_MAX);
    default:
        return (uint64_t)whole;
    }
}

static void put_number(member_writing *w, usi_kind kind, const usi_wire_value *v) {
    const size_t size = usi_kind_size((uint8_t)kind);
    uint8_t *to = make_room(w, size, size);
    uint64_t bits = 0;
    uint32_t half = 0;
    if (!to) return;
    const double number = v->is_whole ? (double)v->whole : v->number;
    // Beyond what a float holds it is infinite.
    const float narrow =
        fabs(number) > 3.4028235e38 && !isnan(number) ? (number > 0 ? INFINITY : -INFINITY) : (float)number;
    if (kind == USI_KIND_FLOAT64) {
        memcpy(&bits, &number, sizeof bits);
    } else if (kind == USI_KIND_FLOAT32) {
        memcpy(&half, &narrow, sizeof half);
        bits = half;
    } else {
        bits = to_whole(kind, v);
    }
    put_whole(to, bits, size);
}

static void put_count(member_writing *w, uint32_t n) {
    uint8_t *to = make_room(w, 4, 4);
    if (to) put_whole(to, n, 4);
}

static void put_text(member_writing *w, const usi_message_field *f, const usi_wire_value *v) {
    uint32_t n = v && v->text ? v->length : 0;
    if (f->bound && n > f->bound) n = f->bound;
    put_count(w, n + 1);
    uint8_t *to = make_room(w, (size_t)n + 1, 1);
    if (to && n > 0) memcpy(to, v->text, n);
}

static void write_message(member_writing *w, const us_message_type *type, int32_t first, int32_t end,
                          int32_t depth);

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static void write_element(member_writing *w, const usi_message_field *f, int32_t first, int32_t end,
                          int32_t depth) {
    static const usi_wire_value nothing = {0};
    const usi_wire_value *v = first < end && w->value ? &w->value[first] : &nothing;
    if (f->kind == USI_KIND_MESSAGE) {
        write_message(w, f->type, first, end, depth + 1);
    } else if (f->kind == USI_KIND_STRING) {
        put_text(w, f, v);
    } else {
        put_number(w, (usi_kind)f->kind, v);
    }
}

// All elements of a list; of an array what is left stays 0.
// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static void write_list(member_writing *w, const usi_message_field *f, int32_t first, int32_t end,
                       int32_t depth) {
    const uint32_t n = w->list->count(w->list->context, first);
    const uint32_t n_place = f->shape == USI_SHAPE_SEQUENCE ? n : f->count;
    if (f->shape == USI_SHAPE_SEQUENCE) put_count(w, n);
    for (uint32_t k = 0; k < n_place; k++) {
        if (k < n) w->list->fill(w->list->context, first, end, k);
        write_element(w, f, first, k < n ? end : first, depth);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static void write_field(member_writing *w, const usi_message_field *f, int32_t first, int32_t end,
                        int32_t depth) {
    uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
    if (first < end && w->member[first].item[depth] == USI_MEMBER_EACH) {
        write_list(w, f, first, end, depth);
        return;
    }
    if (f->shape == USI_SHAPE_SEQUENCE) {
        n = first < end ? (uint32_t)w->member[end - 1].item[depth] + 1 : 0;
        put_count(w, n);
    }
    for (uint32_t k = 0; k < n; k++) {
        int32_t next = first;
        while (next < end && (f->shape == USI_SHAPE_ONE || w->member[next].item[depth] == (int64_t)k))
            next++;
        if (first == end && f->kind < USI_KIND_STRING) {
            const size_t size = usi_kind_size(f->kind);
            make_room(w, (n - k) * size, size);
            return;
        }
        write_element(w, f, first, next, depth);
        first = next;
    }
}

// The case that a member names, else the one of 0, else that of the first label.
static int32_t choose(const us_message_type *type, const usi_member *m, int32_t n, int32_t depth,
                      int64_t *out_value) {
    int32_t field = 0;
    for (int32_t i = 0; i < n; i++)
        field = m[i].field[depth] > 0 ? m[i].field[depth] : field;
    *out_value = type->n_label > 0 ? type->labels[0].value : 0;
    for (int32_t i = 0; i < type->n_label; i++) {
        if (field > 0 ? type->labels[i].field == field : type->labels[i].value == 0) {
            *out_value = type->labels[i].value;
            return type->labels[i].field;
        }
    }
    if (field == 0 && type->n_label > 0) return type->labels[0].field;
    // The default: a value that no label has.
    for (bool is_taken = true; is_taken;) {
        is_taken = false;
        for (int32_t i = 0; i < type->n_label && !is_taken; i++)
            is_taken = type->labels[i].value == *out_value;
        *out_value += is_taken;
    }
    return type->other;
}

// NOLINTNEXTLINE(misc-no-recursion): types nest at most USI_MESSAGE_DEPTH deep
static void write_message(member_writing *w, const us_message_type *type, int32_t first, int32_t end,
                          int32_t depth) {
    int32_t choice = -1;
    for (int32_t i = 0; i < type->n_field; i++) {
        int32_t next = first;
        if (type->is_union && i == 0) {
            usi_wire_value label = {.is_whole = true};
            choice = choose(type, first < end ? w->member + first : NULL, end - first, depth, &label.whole);
            put_number(w, (usi_kind)type->fields[0].kind, &label);
        }
        while (next < end && w->member[next].field[depth] == i)
            next++;
        if (!type->is_union || (i == choice && i > 0)) write_field(w, &type->fields[i], first, next, depth);
        first = next;
    }
}

size_t usi_members_write(const us_message_type *type, const usi_member *members, const usi_wire_value *values,
                         int32_t n, const usi_member_list *list, void *buf, size_t cap) {
    static const uint8_t header[4] = {0, 1, 0, 0};
    member_writing w = {.bytes = buf ? (uint8_t *)buf + 4 : NULL,
                        .cap = cap > 4 ? cap - 4 : 0,
                        .member = members,
                        .value = values,
                        .list = list};
    if (cap >= 4) memcpy(buf, header, 4);
    write_message(&w, type, 0, n, 0);
    return w.at + 4;
}

// ---- by name, once ----

double us_message_get_number(const us_message_type *type, const void *bytes, size_t length,
                             const char *path) {
    usi_member m;
    usi_wire_value v;
    if (!type || !bytes || !path || usi_member_find(type, path, -1, NULL, &m, NULL) ||
        usi_member_is_whole(&m) || m.leaf->kind >= USI_KIND_STRING)
        return NAN;
    const bool is_good = usi_members_read(type, bytes, length, &m, 1, &v);
    return is_good && v.is_there ? v.number : NAN;
}

us_status us_message_get_text(const us_message_type *type, const void *bytes, size_t length,
                              const char *member, char *buf, size_t cap) {
    usi_member m;
    usi_wire_value v;
    if (!type || !bytes || !member || !buf || cap == 0) return US_ERR_ARG;
    buf[0] = 0;
    if (usi_member_find(type, member, -1, NULL, &m, NULL) || usi_member_is_whole(&m) ||
        m.leaf->kind != USI_KIND_STRING)
        return US_ERR_NAME;
    if (!usi_members_read(type, bytes, length, &m, 1, &v)) return US_ERR_SYNTAX;
    if (!v.is_there) return US_ERR_NAME;
    if (v.length >= cap) return US_ERR_LIMIT;
    memcpy(buf, v.text, v.length);
    buf[v.length] = 0;
    return US_OK;
}

enum { MAX_COMPOSE = 1024 };

us_status us_message_compose(const us_message_type *type, const us_member_value *values, int32_t n, void *buf,
                             size_t cap, size_t *out_length, us_error *err) {
    static const char *const remedy = "give a type, values and a buffer";
    if (!type || (n > 0 && !values) || n < 0 || n > MAX_COMPOSE || !buf || !out_length)
        return us_error_set(err, US_ERR_ARG, NULL, remedy, "nothing to compose, or more than %d values",
                            MAX_COMPOSE);
    usi_member members[MAX_COMPOSE];
    usi_wire_value v[MAX_COMPOSE];
    for (int32_t i = 0; i < n; i++) {
        usi_member m;
        us_status status = usi_member_find(type, values[i].member, -1, NULL, &m, err);
        if (status) return status;
        const bool is_text = values[i].text != NULL;
        if (usi_member_is_whole(&m) || m.leaf->kind == USI_KIND_MESSAGE ||
            is_text != (m.leaf->kind == USI_KIND_STRING))
            return us_error_set(err, US_ERR_VALUE, NULL, "give numbers for numbers, texts for strings",
                                "\"%.100s\" is of another kind", values[i].member);
        int32_t at = i;
        for (; at > 0 && usi_member_compare(&m, &members[at - 1]) < 0; at--) {
            members[at] = members[at - 1];
            v[at] = v[at - 1];
        }
        if (at > 0 &&
            (usi_member_compare(&m, &members[at - 1]) == 0 || !usi_members_agree(type, &members[at - 1], &m)))
            return us_error_set(err, US_ERR_NAME, NULL, "name each member once, and one case of a union",
                                "\"%.100s\" is named twice, or is another case of a union", values[i].member);
        members[at] = m;
        v[at] = (usi_wire_value){.number = values[i].number,
                                 .text = values[i].text,
                                 .length = is_text ? (uint32_t)strlen(values[i].text) : 0};
    }
    *out_length = usi_members_write(type, members, v, n, NULL, buf, cap);
    return *out_length <= cap ? US_OK
                              : us_error_set(err, US_ERR_LIMIT, NULL, "give a larger buffer",
                                             "the sample has %zu bytes", *out_length);
}
