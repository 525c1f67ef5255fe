// Constants of IDL: whole numbers, fractions and texts, with the operators of C.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_value.h"
#include "wire/wire__idl.h"

static usi_idl_value whole(int64_t x) {
    return (usi_idl_value){.number = (double)x, .whole = x, .is_whole = true};
}

static bool read_number(usi_idl *p, usi_idl_value *out) {
    const char *word = p->s.word;
    char *end = NULL;
    const bool is_hex = word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
    if (is_hex || strspn(word, "0123456789") == strlen(word)) {
        errno = 0;
        const unsigned long long x = strtoull(word, &end, 0);
        if (*end || errno)
            return usi_idl_fail(&p->s, US_ERR_VALUE, "write a number of at most 64 bits",
                                "\"%.60s\" is no whole number", word);
        *out = whole((int64_t)x);
        if (x > INT64_MAX) out->number = (double)x;
        return usi_idl_next(&p->s);
    }
    const char *rest = NULL;
    double x = 0;
    const char *wrong = usi_number_scan(word, &rest, &x);
    // A letter behind it says how wide it is.
    if (wrong || (*rest && strcmp(rest, "d") != 0 && strcmp(rest, "D") != 0 && strcmp(rest, "f") != 0))
        return usi_idl_fail(&p->s, US_ERR_VALUE, "write a number like 12, 0x1f or 1.5e3",
                            "\"%.60s\" is no number", word);
    *out = (usi_idl_value){.number = x};
    return usi_idl_next(&p->s);
}

static bool read_name(usi_idl *p, usi_idl_value *out) {
    char name[USI_INTERFACE_NAME];
    const bool is_true = usi_idl_is(&p->s, "TRUE");
    if (is_true || usi_idl_is(&p->s, "FALSE")) {
        *out = whole(is_true);
        return usi_idl_next(&p->s);
    }
    if (!usi_idl_scoped_name(p, name)) return false;
    const usi_symbol *symbol = usi_idl_look_up(p, name);
    if (!symbol || (symbol->kind != USI_SYMBOL_NUMBER && symbol->kind != USI_SYMBOL_LABEL &&
                    symbol->kind != USI_SYMBOL_TEXT))
        return usi_idl_fail(&p->s, US_ERR_NAME, "define the constant before it is used",
                            "there is no constant \"%.100s\"", name);
    *out = (usi_idl_value){symbol->number, symbol->whole, symbol->is_whole, symbol->text};
    return true;
}

static bool read_level(usi_idl *p, int level, usi_idl_value *out);

// NOLINTNEXTLINE(misc-no-recursion): brackets nest at most USI_IDL_DEPTH deep
static bool read_single(usi_idl *p, usi_idl_value *out) {
    usi_idl_scanner *s = &p->s;
    if (s->token == USI_IDL_NUMBER) return read_number(p, out);
    if (s->token == USI_IDL_NAME || usi_idl_is(s, "::")) return read_name(p, out);
    if (s->token == USI_IDL_TEXT) {
        out->text = usi_reading_text(s->r, s->word, strlen(s->word));
        return out->text && usi_idl_next(s);
    }
    const bool is_minus = usi_idl_is(s, "-"), is_not = usi_idl_is(s, "~"), is_open = usi_idl_is(s, "(");
    if (!is_minus && !is_not && !is_open && !usi_idl_is(s, "+"))
        return usi_idl_fail(s, US_ERR_SYNTAX, "write a number, a text or the name of a constant",
                            "a value is missing before \"%.60s\"", s->word);
    if (++p->depth > USI_IDL_DEPTH)
        return usi_idl_fail(s, US_ERR_LIMIT, "write it with fewer brackets",
                            "signs and brackets nest deeper than %d", USI_IDL_DEPTH);
    if (!usi_idl_next(s) || !(is_open ? read_level(p, 0, out) : read_single(p, out))) return false;
    p->depth--;
    if (is_open) return usi_idl_expect(s, ")");
    if (out->text || (is_not && !out->is_whole))
        return usi_idl_fail(s, US_ERR_VALUE, "write it before a number",
                            "a sign stands before something that is none");
    if (is_minus && out->is_whole)
        *out = whole((int64_t)(0 - (uint64_t)out->whole));
    else if (is_minus)
        out->number = -out->number;
    if (is_not) *out = whole(~out->whole);
    return true;
}

static bool combine_whole(usi_idl *p, char op, int64_t a, int64_t b, usi_idl_value *out) {
    if ((op == '/' || op == '%') && (b == 0 || (b == -1 && a == INT64_MIN)))
        return usi_idl_fail(&p->s, US_ERR_VALUE, "write another divisor", "a division by 0");
    if ((op == '<' || op == '>') && (b < 0 || b > 63))
        return usi_idl_fail(&p->s, US_ERR_VALUE, "shift by 0 to 63", "a shift by %lld bits", (long long)b);
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
    case '|':
        *out = whole(a | b);
        break;
    case '^':
        *out = whole(a ^ b);
        break;
    case '&':
        *out = whole(a & b);
        break;
    case '<':
        *out = whole((int64_t)(x << y));
        break;
    case '>':
        *out = whole((int64_t)(x >> y));
        break;
    case '+':
        *out = whole((int64_t)(x + y));
        break;
    case '-':
        *out = whole((int64_t)(x - y));
        break;
    case '*':
        *out = whole((int64_t)(x * y));
        break;
    case '/':
        *out = whole(a / b);
        break;
    default:
        *out = whole(a % b);
    }
    return true;
}

static bool combine(usi_idl *p, char op, const usi_idl_value *a, const usi_idl_value *b, usi_idl_value *out) {
    if (a->text || b->text)
        return usi_idl_fail(&p->s, US_ERR_VALUE, "write numbers", "a text cannot be calculated with");
    if (a->is_whole && b->is_whole) return combine_whole(p, op, a->whole, b->whole, out);
    const double x = a->number, y = b->number;
    if (!strchr("+-*/", op))
        return usi_idl_fail(&p->s, US_ERR_VALUE, "write whole numbers", "a fraction has no bits");
    *out = (usi_idl_value){.number = op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y};
    return isfinite(out->number) ||
           usi_idl_fail(&p->s, US_ERR_VALUE, "write another divisor", "a division by 0");
}

// NOLINTNEXTLINE(misc-no-recursion): one call per level, and brackets nest at most USI_IDL_DEPTH deep
static bool read_level(usi_idl *p, int level, usi_idl_value *out) {
    static const char *const signs[][4] = {{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == 6) return read_single(p, out);
    if (!read_level(p, level + 1, out)) return false;
    for (;;) {
        char op = 0;
        for (int i = 0; i < 3 && signs[level][i]; i++) {
            if (usi_idl_is(&p->s, signs[level][i])) op = signs[level][i][0];
        }
        usi_idl_value right = {0};
        if (!op) return true;
        if (!usi_idl_next(&p->s) || !read_level(p, level + 1, &right) || !combine(p, op, out, &right, out))
            return false;
    }
}

bool usi_idl_constant(usi_idl *p, usi_idl_value *out) {
    *out = (usi_idl_value){0};
    return read_level(p, 0, out);
}

// A bound ends with ">", which is no shift: only what stands before the shifts is read.
bool usi_idl_count(usi_idl *p, const char *what, int64_t low, int64_t high, int64_t *out) {
    usi_idl_value value = {0};
    if (!read_level(p, 4, &value)) return false;
    if (!value.is_whole || value.whole < low || value.whole > high)
        return usi_idl_fail(&p->s, US_ERR_VALUE, "write a whole number in that range",
                            "%s is not from %lld to %lld", what, (long long)low, (long long)high);
    *out = value.whole;
    return true;
}
