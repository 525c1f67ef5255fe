// Links of a robot that collide and overlap at the start, and what takes them out of the contact: for
// `understudy check`.
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MAX_OVERLAPS = 1000 };

typedef struct overlaps {
    us_overlap *list;
    int32_t n;
} overlaps;

static overlaps find(const us_model *model) {
    overlaps o = {calloc(MAX_OVERLAPS, sizeof *o.list), 0};
    if (o.list && us_model_find_overlaps(model, o.list, MAX_OVERLAPS, &o.n)) o.n = 0;
    return o;
}

// A link's name within its robot.
static const char *short_name(const char *name) {
    const char *slash = strchr(name, '/');
    return slash ? slash + 1 : name;
}

static const char *group_name(const us_spec *spec, us_body body) {
    const us_link_def *link = us_spec_view_link(spec, body.i);
    const us_group_def *group = link && link->group >= 0 ? us_spec_view_group(spec, link->group) : NULL;
    return group && group->name ? group->name : "";
}

void cli_print_overlaps(const us_spec *spec, const us_model *model) {
    overlaps o = find(model);
    const char *group = NULL;
    for (int32_t i = 0; i < o.n; i++) {
        const char *name = group_name(spec, o.list[i].a);
        if (!group || strcmp(group, name) != 0) {
            printf(
                "overlap at the start: these links collide and push each other apart; in a scene write into "
                "<robot%s%s%s>\n",
                name[0] ? " name=\"" : "", name, name[0] ? "\"" : "");
            group = name;
        }
        printf("  <exclude a=\"%s\" b=\"%s\"/>  by %.3g mm\n",
               short_name(us_model_body_name(model, o.list[i].a)),
               short_name(us_model_body_name(model, o.list[i].b)), 1e3 * o.list[i].depth);
    }
    if (o.n > 0)
        printf("  or exclude-overlaps=\"true\" at the robot, or --exclude-overlaps, for all of them\n");
    free(o.list);
}

void cli_json_overlaps(cli_json *json, const us_model *model) {
    overlaps o = find(model);
    cli_json_begin(json, "overlaps", '[');
    for (int32_t i = 0; i < o.n; i++) {
        cli_json_begin_short(json, NULL, '{');
        cli_json_text(json, "a", us_model_body_name(model, o.list[i].a));
        cli_json_text(json, "b", us_model_body_name(model, o.list[i].b));
        cli_json_number(json, "depth", o.list[i].depth);
        cli_json_end(json);
    }
    cli_json_end(json);
    free(o.list);
}
