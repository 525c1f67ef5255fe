// What the robot says of itself on the ASCII link: reports of all levels as text.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "understudy/rover.h"
#include "wire/motor.h"
#include "wire/motor_text.h"

typedef struct report_row {
    const char *keyword;
    usi_motor_level level;
    int32_t n;
} report_row;

static const report_row rows[USI_REPORT_COUNT] = {
#define REPORT_ROW(code, keyword, level, n) {keyword, level, n},
    USI_REPORT_LIST(REPORT_ROW)
#undef REPORT_ROW
};

// Decimals of each value. Those of an inertial unit are what is left of a message's room: 1e-5 rad/s is below
// the noise of any unit of a rover.
static const int8_t decimals[USI_REPORT_COUNT][USI_MOTOR_VALUES] = {
    [USI_REPORT_MOTOR] = {3, 6, 6},
    [USI_REPORT_ROVER] = {0, 0, 0, 4, 4, 5, 4, 4, 5, 4},
    [USI_REPORT_LINE] = {6},
    [USI_REPORT_IMU] = {5, 5, 5, 5, 5, 4, 4, 4},
};

int32_t usi_report_n_value(usi_report_kind kind) { return rows[kind].n; }

usi_motor_level usi_report_level(usi_report_kind kind) { return rows[kind].level; }

bool usi_report_round(usi_report_kind kind, const char *name, const double *values, usi_motor_report *out) {
    usi_motor_report r = {.kind = kind};
    for (int i = 0; i < rows[kind].n; i++) {
        if (!(fabs(values[i]) <= USI_MOTOR_GREATEST)) return false;
        r.value[i] = llround(values[i] * pow(10, decimals[kind][i]));
    }
    snprintf(r.name, sizeof r.name, "%s", name);
    *out = r;
    return true;
}

size_t usi_report_format(const usi_motor_report *report, char *buf, size_t cap) {
    const usi_report_kind kind = report->kind;
    usi_motor_line w = usi_motor_line_begin(buf, cap);
    usi_motor_line_text(&w, rows[kind].keyword);
    usi_motor_line_text(&w, report->name);
    for (int i = 0; i < rows[kind].n; i++) {
        const int64_t v = report->value[i];
        const bool is_rover = kind == USI_REPORT_ROVER, is_function = kind == USI_REPORT_FUNCTION;
        if (i > 0) usi_motor_line_text(&w, ",");
        if (is_function && i == 0) {
            usi_motor_line_text(&w, usi_function_name((int32_t)v));
        } else if ((is_rover && i == 1) || (is_function && i == 2)) {
            usi_motor_line_text(&w, us_rover_state_word((us_rover_state)v));
        } else if ((is_rover && i == 2) || (is_function && i == 3)) {
            usi_motor_line_text(&w, us_rover_error_word((us_rover_error)v));
        } else {
            usi_motor_line_fixed(&w, v, decimals[kind][i]);
        }
    }
    return usi_motor_line_finish(&w);
}

size_t usi_report_key(const char *text, size_t length) {
    for (int kind = 0; kind < USI_REPORT_COUNT && length >= 4; kind++) {
        if (memcmp(text, rows[kind].keyword, 4) != 0) continue;
        // A robot has one rover, which runs one function.
        const bool has_name = kind != USI_REPORT_ROVER && kind != USI_REPORT_FUNCTION;
        return !has_name ? 4 : length < USI_REPORT_KEY ? length : USI_REPORT_KEY;
    }
    return 0;
}

size_t usi_report_format_value(const char *property, double value, char *buf, size_t cap) {
    char digits[40];
    if (!isfinite(value)) return 0;
    // The shortest that reads back as it was; the decimal separator is a point in every locale.
    int n = 0;
    for (int precision = 6; precision <= 17; precision++) {
        n = snprintf(digits, sizeof digits, "%.*g", precision, value);
        double back = 0;
        if (sscanf(digits, "%lf", &back) == 1 && back == value) break;
    }
    for (int i = 0; i < n; i++) {
        const bool is_plain = (digits[i] >= '0' && digits[i] <= '9') || strchr("+-e", digits[i]);
        if (!is_plain) digits[i] = '.';
    }
    usi_motor_line w = usi_motor_line_begin(buf, cap);
    usi_motor_line_text(&w, "FVAL");
    usi_motor_line_text(&w, property);
    usi_motor_line_text(&w, ",");
    usi_motor_line_put(&w, digits, (size_t)n);
    return usi_motor_line_finish(&w);
}
