// The arithmetic in ${...}: a recursive-descent parser that computes as it reads.
//
//   sum     = product { ("+" | "-") product }
//   product = signed { ("*" | "/") signed }
//   signed  = { "+" | "-" } atom
//   atom    = number | name | "(" sum ")"
#include <math.h>
#include <string.h>

#include "spec/scene.h"

enum { NESTING_LIMIT = 64 };  // of parentheses: keeps the recursion from running out of stack

typedef struct parser {
    usi_reader *r;
    const xmlNode *node;
    const char *text, *s;
    int nesting;
    usi_name_value value_of;
    void *context;
} parser;

static us_status read_sum(parser *p, double *out);

static void skip_blanks(parser *p) {
    while (usi_is_blank(*p->s)) p->s++;
}

static us_status fail_here(parser *p, const char *message) {
    return usi_fail(p->r, US_ERR_SYNTAX, p->node, "write numbers and parameter names with + - * / and parentheses, for example ${2*(a+1)}",
                    "in ${%.80s}: %s at \"%.20s\"", p->text, message, *p->s ? p->s : "the end");
}

static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_name_part(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

static us_status read_name(parser *p, double *out) {
    char name[128];
    size_t n = 0;
    while (is_name_part(p->s[n]) && n < sizeof name - 1) n++;
    memcpy(name, p->s, n);
    name[n] = 0;
    if (is_name_part(p->s[n])) return fail_here(p, "the name is too long");
    p->s += n;
    return p->value_of(p->context, name, out);
}

static us_status read_atom(parser *p, double *out) {
    skip_blanks(p);
    if (*p->s == '(') {
        if (++p->nesting > NESTING_LIMIT) return fail_here(p, "parentheses are nested too deeply");
        p->s++;
        us_status status = read_sum(p, out);
        if (status) return status;
        if (*p->s != ')') return fail_here(p, "a closing parenthesis is missing");
        p->s++;
        p->nesting--;
        return US_OK;
    }
    if (is_name_start(*p->s)) return read_name(p, out);
    const char *end;
    const char *wrong = usi_number_scan(p->s, &end, out);
    if (wrong) return fail_here(p, *p->s ? "a number or a name is expected, or the number is too large," : "a number or a name is missing");
    p->s = end;
    return US_OK;
}

static us_status read_signed(parser *p, double *out) {
    double sign = 1;
    for (skip_blanks(p); *p->s == '+' || *p->s == '-'; skip_blanks(p)) {
        if (*p->s == '-') sign = -sign;
        p->s++;
    }
    us_status status = read_atom(p, out);
    if (!status) *out *= sign;
    skip_blanks(p);
    return status;
}

static us_status read_product(parser *p, double *out) {
    us_status status = read_signed(p, out);
    while (!status && (*p->s == '*' || *p->s == '/')) {
        char operation = *p->s++;
        double right = 1;
        status = read_signed(p, &right);
        if (status) break;
        if (operation == '/' && right == 0) {
            return usi_fail(p->r, US_ERR_VALUE, p->node, "check the parameter by which it divides", "in ${%.80s}: division by zero", p->text);
        }
        *out = operation == '*' ? *out * right : *out / right;
    }
    return status;
}

static us_status read_sum(parser *p, double *out) {
    us_status status = read_product(p, out);
    while (!status && (*p->s == '+' || *p->s == '-')) {
        char operation = *p->s++;
        double right = 0;
        status = read_product(p, &right);
        *out = operation == '+' ? *out + right : *out - right;
    }
    return status;
}

us_status usi_expression(usi_reader *r, const xmlNode *node, const char *text, usi_name_value value_of, void *context, double *out) {
    parser p = {.r = r, .node = node, .text = text, .s = text, .value_of = value_of, .context = context};
    double value = 0;
    us_status status = read_sum(&p, &value);
    if (status) return status;
    if (*p.s) return fail_here(&p, "this does not belong there:");
    if (!(fabs(value) <= 1e15)) return usi_fail(r, US_ERR_VALUE, node, "numbers may go up to 1e15", "in ${%.80s}: the result is too large", text);
    *out = value;
    return US_OK;
}
