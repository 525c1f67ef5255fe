// The arithmetic in ${...} and in the expression of a height field: a recursive-descent parser that computes
// as it reads.
//
//   sum     = product { ("+" | "-") product }
//   product = signed { ("*" | "/") signed }
//   signed  = { "+" | "-" } atom
//   atom    = number | name | function "(" sum { "," sum } ")" | "(" sum ")"
#include <math.h>
#include <string.h>

#include "spec/scene.h"

enum { NESTING_LIMIT = 64 };  // of parentheses: keeps the recursion from running out of stack

typedef struct parser {
    usi_reader *r;
    const xmlNode *node;
    const char *text, *s;
    int nesting;
    bool is_plain;  // stands by itself, without ${}
    usi_name_value value_of;
    void *context;
} parser;

static us_status read_sum(parser *p, double *out);

static void skip_blanks(parser *p) {
    while (usi_is_blank(*p->s))
        p->s++;
}

static us_status fail_here(parser *p, const char *message) {
    const char *remedy =
        p->is_plain
            ? "write numbers, x, y and functions with + - * / and parentheses, for example 0.1*sin(2*x)"
            : "write numbers and parameter names with + - * / and parentheses, for example ${2*(a+1)}";
    return usi_fail(p->r, US_ERR_SYNTAX, p->node, remedy,
                    p->is_plain ? "in \"%.80s\": %s at \"%.20s\"" : "in ${%.80s}: %s at \"%.20s\"", p->text,
                    message, *p->s ? p->s : "the end");
}

static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_name_part(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

// ---- Functions ----

// A smooth bumpy surface between -1 and 1: random heights on the points with whole coordinates, and between
// them a blend that has no kinks. The same for everybody: it does not depend on the scene's seed.
static double lattice(double i, double j) {
    // Whole numbers up to 1e15 fit; the sign keeps its own bit.
    return 2 * us_random_uniform(0x6e6f697365, (uint64_t)(int64_t)i, (uint64_t)(int64_t)j) - 1;
}
static double noise(double x, double y) {
    if (!(fabs(x) < 1e15 && fabs(y) < 1e15)) return 0;
    double i = floor(x), j = floor(y), u = x - i, v = y - j;
    u = u * u * (3 - 2 * u);
    v = v * v * (3 - 2 * v);
    double low = (1 - u) * lattice(i, j) + u * lattice(i + 1, j),
           high = (1 - u) * lattice(i, j + 1) + u * lattice(i + 1, j + 1);
    return (1 - v) * low + v * high;
}

static const struct {
    const char *name;
    double (*of_one)(double);
    double (*of_two)(double, double);
} functions[] = {
    {"sin", sin, NULL},     {"cos", cos, NULL},     {"tan", tan, NULL},     {"asin", asin, NULL},
    {"acos", acos, NULL},   {"atan", atan, NULL},   {"exp", exp, NULL},     {"log", log, NULL},
    {"sqrt", sqrt, NULL},   {"abs", fabs, NULL},    {"floor", floor, NULL}, {"tanh", tanh, NULL},
    {"min", NULL, fmin},    {"max", NULL, fmax},    {"pow", NULL, pow},     {"atan2", NULL, atan2},
    {"hypot", NULL, hypot}, {"noise", NULL, noise},
};

// At "(": the arguments and the value.
static us_status call(parser *p, const char *name, double *out) {
    double (*of_one)(double) = NULL, (*of_two)(double, double) = NULL, a[2] = {0, 0};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            of_one = functions[i].of_one;
            of_two = functions[i].of_two;
        }
    }
    if (!of_one && !of_two) {
        return usi_fail(
            p->r, US_ERR_NAME, p->node,
            "known are sin cos tan asin acos atan atan2 exp log sqrt abs floor tanh min max pow hypot noise",
            "there is no function \"%.60s\"", name);
    }
    if (++p->nesting > NESTING_LIMIT) return fail_here(p, "parentheses are nested too deeply");
    for (int i = 0; i < (of_two ? 2 : 1); i++) {
        if (*p->s != (i ? ',' : '(')) return fail_here(p, "a comma and a second number are missing");
        p->s++;
        us_status status = read_sum(p, &a[i]);
        if (status) return status;
    }
    if (*p->s != ')') return fail_here(p, "a closing parenthesis is missing");
    p->s++;
    p->nesting--;
    *out = of_two ? of_two(a[0], a[1]) : of_one(a[0]);
    if (!isfinite(*out))
        return usi_fail(p->r, US_ERR_VALUE, p->node, "check what goes into it",
                        "in \"%.80s\": %s(%g%s) is not a finite number", p->text, name, a[0],
                        of_two ? ", ..." : "");
    return US_OK;
}

static us_status read_name(parser *p, double *out) {
    char name[128];
    size_t n = 0;
    while (is_name_part(p->s[n]) && n < sizeof name - 1)
        n++;
    memcpy(name, p->s, n);
    name[n] = 0;
    if (is_name_part(p->s[n])) return fail_here(p, "the name is too long");
    p->s += n;
    skip_blanks(p);
    if (*p->s == '(') return call(p, name, out);
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
    if (wrong)
        return fail_here(p, *p->s ? "a number or a name is expected, or the number is too large,"
                                  : "a number or a name is missing");
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
            return usi_fail(p->r, US_ERR_VALUE, p->node, "check the number by which it divides",
                            p->is_plain ? "in \"%.80s\": division by zero" : "in ${%.80s}: division by zero",
                            p->text);
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

static us_status compute(parser p, double *out) {
    double value = 0;
    us_status status = read_sum(&p, &value);
    if (status) return status;
    if (*p.s) return fail_here(&p, "this does not belong there:");
    if (!(fabs(value) <= 1e15))
        return usi_fail(p.r, US_ERR_VALUE, p.node, "numbers may go up to 1e15",
                        p.is_plain ? "in \"%.80s\": the result is too large"
                                   : "in ${%.80s}: the result is too large",
                        p.text);
    *out = value;
    return US_OK;
}

us_status usi_expression(usi_reader *r, const xmlNode *node, const char *text, usi_name_value value_of,
                         void *context, double *out) {
    return compute(
        (parser){.r = r, .node = node, .text = text, .s = text, .value_of = value_of, .context = context},
        out);
}

us_status usi_expression_plain(usi_reader *r, const xmlNode *node, const char *text, usi_name_value value_of,
                               void *context, double *out) {
    return compute((parser){.r = r,
                            .node = node,
                            .text = text,
                            .s = text,
                            .is_plain = true,
                            .value_of = value_of,
                            .context = context},
                   out);
}
