// Any bytes as a message of the page: what is taken is bounded, finite, UTF-8 and of one line, and what is
// refused has a text.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) __builtin_trap();
}

static void check_text(const usi_view_message *m, const char *text, size_t least, size_t most) {
    must(text >= m->memory && text < m->memory + sizeof m->memory);
    size_t n = strnlen(text, (size_t)(m->memory + sizeof m->memory - text));
    must(n >= least && n <= most && usi_view_is_utf8(text, n));
    for (size_t i = 0; i < n; i++)
        must((uint8_t)text[i] >= 0x20 && text[i] != 0x7f);
}

static bool is_finite(double x) { return fabs(x) <= 1e6; }

static void check_message(const usi_view_message *m) {
    switch (m->op) {
    case USI_VIEW_OP_VIEW:
        must(m->has < 32 && m->points >= 0 && m->points <= USI_VIEW_MAX_POINT && m->hz >= 0 &&
             m->hz <= USI_VIEW_HZ);
        break;
    case USI_VIEW_OP_WATCH:
        must(m->n_value >= 0 && m->n_value <= USI_VIEW_VALUE_COUNT);
        for (int32_t i = 0; i < m->n_value; i++)
            check_text(m, m->values[i], 1, USI_VIEW_NAME);
        break;
    case USI_VIEW_OP_FULL:
        break;
    case USI_VIEW_OP_COMMAND:
        check_text(m, m->text, 1, USI_VIEW_COMMAND);
        break;
    case USI_VIEW_OP_DRIVE:
        check_text(m, m->robot, 0, USI_VIEW_NAME);
        must(is_finite(m->vx) && is_finite(m->vy) && is_finite(m->wz));
        break;
    default:
        must(false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static usi_view_message m;
    us_error err = {.code = US_OK};
    us_status status = usi_view_parse(data, size, &m, &err);
    if (status == US_OK) {
        check_message(&m);
    } else {
        must(err.code == status && err.message[0] != 0);
        must(usi_view_is_utf8(err.message, strlen(err.message)));
    }
    return 0;
}
