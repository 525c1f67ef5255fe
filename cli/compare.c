// understudy replay A --compare B: two recordings, number by number.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bus.h"
#include "compare.h"

typedef struct printer {
    const cli_compare *options;
    bool has_head;
} printer;

static bool is_wanted(void *context, const char *topic) {
    const printer *p = context;
    return cli_is_listed(p->options->topics, topic) &&
           (p->options->topics || strncmp(topic, "/understudy/", 12) != 0);
}

static void show(void *context, const us_compared_field *f) {
    printer *p = context;
    if (p->options->is_quiet) return;
    if (!f->path) {
        printf("%s: only in %s\n", f->topic, f->side == 0 ? p->options->path : p->options->other);
        return;
    }
    if (!p->has_head) printf("%-58s %12s %12s %12s  %s\n", "number", "max", "rms", "at", "beyond tolerance");
    p->has_head = true;
    char name[256], onset[32] = "";
    snprintf(name, sizeof name, "%s %s", f->topic, f->path);
    if (p->options->has_tolerance && isfinite(f->onset))
        snprintf(onset, sizeof onset, "from %.6g s", f->onset);
    printf("%-58s %12.5g %12.5g %10.6g s  %s\n", name, f->max, f->rms, f->max_time, onset);
}

int cli_compare_recordings(const cli_compare *o, us_recording *recording) {
    us_error err = {0};
    us_recording *other = NULL;
    if (us_recording_open(o->other, NULL, &other, &err)) {
        cli_print_error(&err);
        return cli_input_code(&err);
    }
    printer p = {.options = o};
    us_compare_def def = us_compare_def_default();
    def.tolerance = o->has_tolerance ? o->tolerance : 0;
    def.slack = o->slack;
    def.is_wanted = is_wanted;
    def.field = show;
    def.context = &p;
    us_compare_result result = {0};
    us_status status = us_recording_compare(recording, other, &def, &result, &err);
    us_recording_close(other);
    if (status) {
        cli_print_error(&err);
        return cli_input_code(&err);
    }
    if (result.n_sample == 0)
        return cli_fail(CLI_BAD_INPUT, o->path, "compare recordings of the same robot over the same time",
                        "nothing in it has a counterpart in %s: the same topics at the same stamps",
                        o->other);
    bool is_same = result.n_different == 0 && result.n_alone == 0;
    printf("%s: %" PRId64 " of %" PRId64 " numbers of %d topics differ, %" PRId64
           " samples compared, %" PRId64 " without a counterpart\n",
           is_same ? "same" : "different", result.n_different, result.n_field, (int)result.n_topic,
           result.n_sample, result.n_unmatched);
    if (!o->has_tolerance) return CLI_OK;
    printf("%" PRId64 " beyond the tolerance of %g\n", result.n_beyond, o->tolerance);
    return result.n_beyond > 0 || result.n_alone > 0 ? CLI_FOUND : CLI_OK;
}
