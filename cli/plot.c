// Curves in panels, as a picture. SVG is written here and needs nothing; PNG is drawn by gnuplot, where it is
// installed.
//
//   +--------------------------------+
//   |             title              |
//   |  panel      |   panel          |    Two panels in a row, each with a frame, ticks at round numbers and
//   a grid; the names of the lines |  panel      |   panel          |    stand once, at the bottom. | names
//   of the lines       |
//   +--------------------------------+
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "run.h"

// Colours that people who see no red or no green tell apart, and dashes for print without colour.
static const struct {
    const char *colour, *dash;
} styles[CLI_PLOT_LINES] = {{"#0072b2", "none"},    {"#d55e00", "7 3"},  {"#009e73", "2 3"},
                            {"#cc79a7", "9 3 2 3"}, {"#444444", "none"}, {"#e69f00", "12 4"},
                            {"#56b4e9", "4 2"},     {"#882255", "1 2"}};

// Pixels.
enum {
    PANEL_WIDTH = 380,
    PANEL_HEIGHT = 230,
    LEFT = 62,
    RIGHT = 18,
    TOP = 30,
    BOTTOM = 44,
    HEAD = 34,
    FOOT = 34
};

typedef struct range {
    double low, high, tick;
} range;

// From one round number to another, four to eight ticks.
static range round_range(double low, double high) {
    if (!(high > low)) {
        low -= 0.5;
        high = low + 1;
    }
    double raw = (high - low) / 6, power = pow(10, floor(log10(raw))), step = raw / power;
    range r = {.tick = power * (step < 1.5 ? 1 : step < 3.5 ? 2 : step < 7.5 ? 5 : 10)};
    r.low = r.tick * floor(low / r.tick + 1e-9);
    r.high = r.tick * ceil(high / r.tick - 1e-9);
    return r;
}

static range range_of(const cli_panel *p, bool is_y) {
    double low = INFINITY, high = -INFINITY;
    for (int32_t i = 0; i < p->n_line; i++) {
        for (int32_t k = 0; k < p->line[i].n; k++) {
            double value = is_y ? p->line[i].y[k] : p->line[i].x[k];
            if (isfinite(value)) {
                low = fmin(low, value);
                high = fmax(high, value);
            }
        }
    }
    return isfinite(low) ? round_range(low, high) : round_range(0, 1);
}

static void put_text(FILE *out, double x, double y, const char *anchor, const char *more, const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor, more);
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
    fputs("</text>\n", out);
}

static void put_number(FILE *out, double x, double y, const char *anchor, const range *r, double value) {
    char text[32];
    snprintf(text, sizeof text, "%g", fabs(value) < 1e-9 * r->tick ? 0 : value);
    put_text(out, x, y, anchor, " fill=\"#333\"", text);
}

static void svg_panel(FILE *out, const cli_panel *p, double left, double top) {
    const double width = PANEL_WIDTH - LEFT - RIGHT, height = PANEL_HEIGHT - TOP - BOTTOM,
                 x0 = left + (double)LEFT, y0 = top + (double)TOP;
    range rx = range_of(p, false), ry = range_of(p, true);
    double sx = width / (rx.high - rx.low), sy = height / (ry.high - ry.low);
    put_text(out, x0 + 0.5 * width, top + (double)TOP - 9, "middle", " font-weight=\"bold\"", p->title);
    for (int32_t i = 0; i <= lround((rx.high - rx.low) / rx.tick); i++) {
        double value = rx.low + i * rx.tick, x = x0 + sx * (value - rx.low);
        fprintf(out, "<path d=\"M%.1f %.1fv%.1f\" stroke=\"%s\"/>\n", x, y0, height,
                fabs(value) < 1e-9 * rx.tick ? "#999" : "#e4e4e4");
        put_number(out, x, y0 + height + 16, "middle", &rx, value);
    }
    for (int32_t i = 0; i <= lround((ry.high - ry.low) / ry.tick); i++) {
        double value = ry.low + i * ry.tick, y = y0 + height - sy * (value - ry.low);
        fprintf(out, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"%s\"/>\n", x0, y, width,
                fabs(value) < 1e-9 * ry.tick ? "#999" : "#e4e4e4");
        put_number(out, x0 - 6, y + 4, "end", &ry, value);
    }
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#333\"/>\n",
            x0, y0, width, height);
    put_text(out, x0 + 0.5 * width, y0 + height + 34, "middle", "", p->x_label);
    char turned[96];
    snprintf(turned, sizeof turned, " transform=\"rotate(-90 %.1f %.1f)\"", left + 16, y0 + 0.5 * height);
    put_text(out, left + 16, y0 + 0.5 * height, "middle", turned, p->y_label);
    for (int32_t i = 0; i < p->n_line && i < CLI_PLOT_LINES; i++) {
        const cli_line *line = &p->line[i];
        bool is_on = false;
        fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"%s\" d=\"",
                styles[i].colour, styles[i].dash);
        for (int32_t k = 0; k < line->n; k++) {
            bool is_point = isfinite(line->x[k]) && isfinite(line->y[k]);
            if (is_point)
                fprintf(out, "%c%.2f %.2f", is_on ? 'L' : 'M', x0 + sx * (line->x[k] - rx.low),
                        y0 + height - sy * (line->y[k] - ry.low));
            is_on = is_point;
        }
        fputs("\"/>\n", out);
    }
}

static void write_svg(FILE *out, const char *title, const cli_panel *panel, int32_t n_panel) {
    int n_row = (n_panel + 1) / 2, width = 2 * PANEL_WIDTH, height = HEAD + n_row * PANEL_HEIGHT + FOOT;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n",
            width, height, width, height);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
    put_text(out, 0.5 * width, 24, "middle", " font-size=\"15\"", title);
    for (int32_t i = 0; i < n_panel; i++) {
        int32_t left = i % 2 * PANEL_WIDTH, top = HEAD + i / 2 * PANEL_HEIGHT;
        svg_panel(out, &panel[i], left, top);
    }
    int32_t n_line = n_panel > 0 ? panel[0].n_line : 0;
    for (int32_t i = 0; i < n_line && i < CLI_PLOT_LINES; i++) {
        double x = 0.5 * width + (i - 0.5 * n_line) * 120 + 10, y = height - 14;
        fprintf(out,
                "<path d=\"M%.1f %.1fh30\" stroke=\"%s\" stroke-width=\"1.8\" stroke-dasharray=\"%s\"/>\n", x,
                y - 4, styles[i].colour, styles[i].dash);
        put_text(out, x + 36, y, "start", "", panel[0].line[i].name);
    }
    fputs("</svg>\n", out);
}

// ---- PNG ----

static void put_quoted(FILE *out, const char *text) {
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'') fputc('\'', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void write_gnuplot(FILE *out, const char *path, const char *title, const cli_panel *panel,
                          int32_t n_panel) {
    fprintf(out, "set terminal pngcairo size %d,%d font 'sans,10' noenhanced\nset output ", 2 * PANEL_WIDTH,
            HEAD + (n_panel + 1) / 2 * PANEL_HEIGHT);
    put_quoted(out, path);
    fprintf(out, "\nset grid\nset xzeroaxis lw 1.2\nset multiplot layout %d,2 title ", (n_panel + 1) / 2);
    put_quoted(out, title);
    fputc('\n', out);
    for (int32_t i = 0; i < n_panel; i++) {
        const cli_panel *p = &panel[i];
        fputs("set title ", out);
        put_quoted(out, p->title);
        fputs("\nset xlabel ", out);
        put_quoted(out, p->x_label);
        fputs("\nset ylabel ", out);
        put_quoted(out, p->y_label);
        fputs("\nplot ", out);
        for (int32_t k = 0; k < p->n_line; k++) {
            fputs(k > 0 ? ", '-' with lines lw 2 lc rgb " : "'-' with lines lw 2 lc rgb ", out);
            put_quoted(out, styles[k % CLI_PLOT_LINES].colour);
            fputs(" title ", out);
            put_quoted(out, p->line[k].name);
        }
        fputc('\n', out);
        for (int32_t k = 0; k < p->n_line; k++) {
            for (int32_t j = 0; j < p->line[k].n; j++)
                fprintf(out, "%.9g %.9g\n", p->line[k].x[j], p->line[k].y[j]);
            fputs("e\n", out);
        }
    }
    fputs("unset multiplot\n", out);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

int cli_plot_check(const char *path) {
    if (ends_with(path, ".svg")) return CLI_GO_ON;
    if (!ends_with(path, ".png"))
        return cli_fail(CLI_BAD_INPUT, path, "write FILE.svg or FILE.png",
                        "it is not known what kind of picture this is");
    // NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): a constant command, and no other thread is there.
    if (system("gnuplot --version >/dev/null 2>&1") == 0) return CLI_GO_ON;
    return cli_fail(CLI_BAD_INPUT, path,
                    "write FILE.svg, which needs nothing; or apt-get install gnuplot-nox",
                    "a PNG is drawn by gnuplot, which is not installed");
}

int cli_plot(const char *path, const char *title, const cli_panel *panel, int32_t n_panel) {
    int code = cli_plot_check(path);
    if (code != CLI_GO_ON) return code;
    bool is_bad;
    int reason = 0;
    if (ends_with(path, ".svg")) {
        char *text = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);
        if (out) write_svg(out, title, panel, n_panel);
        is_bad = !out || ferror(out) != 0;
        if (out && fclose(out) != 0) is_bad = true;
        is_bad = is_bad || !cli_write_file(path, text, length);
        reason = errno;
        free(text);
    } else {
        // NOLINTNEXTLINE(cert-env33-c): a constant command.
        FILE *pipe = popen("gnuplot", "w");
        if (!pipe)
            return cli_fail(CLI_CANNOT_WRITE, path, "write FILE.svg, which needs nothing",
                            "gnuplot cannot be started: %s", strerror(errno));
        write_gnuplot(pipe, path, title, panel, n_panel);
        is_bad = ferror(pipe) != 0;
        if (pclose(pipe) != 0) is_bad = true;
    }
    return is_bad ? cli_fail(CLI_CANNOT_WRITE, path, "check the directory, the permissions and the space",
                             "cannot be written: %s", reason ? strerror(reason) : "gnuplot could not")
                  : CLI_GO_ON;
}
