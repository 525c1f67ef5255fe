// understudy sense: one frame of a sensor, into a file.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "understudy/query.h"

typedef struct frame {
    us_lidar_frame head;
    us_lidar_point *point;
    int32_t n;
} frame;

static bool has_return(const us_lidar_point *p) { return isfinite(p->x); }

static int32_t count_returns(const frame *f) {
    int32_t n = 0;
    for (int32_t i = 0; i < f->n; i++)
        n += has_return(&f->point[i]);
    return n;
}

// ---- points as text ----

static void write_csv(FILE *out, const frame *f) {
    fputs("x,y,z,intensity,ring,time\n", out);
    for (int32_t i = 0; i < f->n; i++) {
        const us_lidar_point *p = &f->point[i];
        if (has_return(p))
            fprintf(out, "%.9g,%.9g,%.9g,%.6g,%d,%.9g\n", (double)p->x, (double)p->y, (double)p->z,
                    (double)p->intensity, (int)p->ring, (double)p->time);
    }
}

static void write_rows(FILE *out, const frame *f, bool is_whole) {
    for (int32_t i = 0; i < f->n; i++) {
        const us_lidar_point *p = &f->point[i];
        if (!has_return(p) && !is_whole) continue;
        if (has_return(p)) {
            fprintf(out, "%.9g %.9g %.9g", (double)p->x, (double)p->y, (double)p->z);
        } else {
            fputs("nan nan nan", out);
        }
        fprintf(out, " %.6g %d %.9g\n", (double)p->intensity, (int)p->ring, (double)p->time);
    }
}

static void write_ply(FILE *out, const frame *f) {
    fprintf(out,
            "ply\nformat ascii 1.0\ncomment turn %lld, began at %.9g s\nelement vertex %d\n"
            "property float x\nproperty float y\nproperty float z\nproperty float intensity\n"
            "property ushort ring\nproperty float time\nend_header\n",
            (long long)f->head.turn, f->head.time, (int)count_returns(f));
    write_rows(out, f, false);
}

// As a table, gaps and all.
static void write_pcd(FILE *out, const frame *f) {
    fprintf(out,
            "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS x y z intensity ring time\n"
            "SIZE 4 4 4 4 2 4\nTYPE F F F F U F\nCOUNT 1 1 1 1 1 1\nWIDTH %d\nHEIGHT %d\n"
            "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS %d\nDATA ascii\n",
            (int)f->head.n_column, (int)f->head.n_ring, (int)f->n);
    write_rows(out, f, true);
}

// ---- a picture ----

// PNG with blocks that are stored as they are: a deflate stream without compression.
static uint32_t crc_of(uint32_t crc, const uint8_t *bytes, size_t n) {
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
    }
    return ~crc;
}

static void put32(uint8_t *to, uint32_t x) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(x >> (24 - 8 * i));
}

static void write_chunk(FILE *out, const char *type, const uint8_t *bytes, size_t n) {
    uint8_t head[8], tail[4];
    put32(head, (uint32_t)n);
    memcpy(head + 4, type, 4);
    put32(tail, crc_of(crc_of(0, head + 4, 4), bytes, n));
    fwrite(head, 1, sizeof head, out);
    fwrite(bytes, 1, n, out);
    fwrite(tail, 1, sizeof tail, out);
}

static size_t store(uint8_t *to, const uint8_t *from, size_t n) {
    uint32_t a = 1, b = 0;
    size_t used = 2;
    to[0] = 0x78;
    to[1] = 0x01;
    for (size_t at = 0; at < n;) {
        const size_t block = n - at < 65535 ? n - at : 65535;
        to[used] = at + block == n;
        to[used + 1] = (uint8_t)(block & 255);
        to[used + 2] = (uint8_t)(block >> 8);
        to[used + 3] = (uint8_t)(~to[used + 1]);
        to[used + 4] = (uint8_t)(~to[used + 2]);
        memcpy(to + used + 5, from + at, block);
        used += 5 + block;
        at += block;
    }
    for (size_t i = 0; i < n; i++) {
        a = (a + from[i]) % 65521;
        b = (b + a) % 65521;
    }
    put32(to + used, b << 16 | a);
    return used + 4;
}

// Near is red, then yellow, green and blue; without a return it is black.
static void colour_of(double share, uint8_t rgb[3]) {
    static const double stop[5][3] = {
        {165, 0, 38}, {253, 174, 97}, {255, 255, 191}, {116, 173, 209}, {49, 54, 149}};
    const double at = 4 * fmin(1, fmax(0, share));
    const int i = at < 3 ? (int)at : 3;
    for (int k = 0; k < 3; k++)
        rgb[k] = (uint8_t)lround(stop[i][k] + (at - i) * (stop[i + 1][k] - stop[i][k]));
}

// Ranges by the logarithm, from a metre to the longest: rows are rings, the highest on top, several lines
// each; columns follow the turn.
static void write_png(FILE *out, const frame *f) {
    const int32_t tall = f->head.n_ring < 8 ? 24 : 6, width = f->head.n_column,
                  height = tall * f->head.n_ring;
    const size_t line = 1 + 3 * (size_t)width, n = line * (size_t)height;
    uint8_t *raw = cli_allocate(n, 1), *packed = cli_allocate(n + n / 65535 * 5 + 64, 1);
    double far = 2;
    for (int32_t i = 0; i < f->n; i++) {
        const us_lidar_point *p = &f->point[i];
        if (has_return(p)) far = fmax(far, hypot(hypot((double)p->x, (double)p->y), (double)p->z));
    }
    for (int32_t y = 0; y < height; y++) {
        const int32_t ring = f->head.n_ring - 1 - y / tall;
        for (int32_t x = 0; x < width; x++) {
            const us_lidar_point *p = &f->point[ring * width + x];
            const double range = hypot(hypot((double)p->x, (double)p->y), (double)p->z);
            if (has_return(p))
                colour_of(log(fmax(range, 1)) / log(far), raw + (size_t)y * line + 1 + 3 * (size_t)x);
        }
    }
    uint8_t head[13] = {0};
    put32(head, (uint32_t)width);
    put32(head + 4, (uint32_t)height);
    head[8] = 8;
    head[9] = 2;
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, out);
    write_chunk(out, "IHDR", head, sizeof head);
    write_chunk(out, "IDAT", packed, store(packed, raw, n));
    write_chunk(out, "IEND", head, 0);
    free(raw);
    free(packed);
}

// ---- the command ----

typedef void writer(FILE *out, const frame *f);

static writer *writer_of(const char *path) {
    static const struct {
        const char *ending;
        writer *write;
    } known[] = {{".ply", write_ply}, {".pcd", write_pcd}, {".csv", write_csv}, {".png", write_png}};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t m = strlen(known[i].ending);
        if (n > m && strcmp(path + n - m, known[i].ending) == 0) return known[i].write;
    }
    return NULL;
}

static int fail_sensor(const us_model *model, const char *name) {
    char known[400] = "";
    for (int32_t i = 0; i < us_model_n_lidar(model); i++) {
        const us_lidar l = {i};
        const size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s%s/%s",
                 at ? ", " : "there is: ", us_model_lidar_robot(model, l), us_model_lidar_name(model, l));
    }
    return cli_fail(CLI_BAD_INPUT, "--sensor",
                    known[0] ? known : "give a robot a <sensor type=\"lidar\" preset=\"hdl-32e\" .../>",
                    "there is no lidar \"%s\"", name);
}

// "k10/lidar"; without a name the first one.
static bool find_lidar(const us_model *model, const char *name, us_lidar *out) {
    char robot[300];
    *out = (us_lidar){us_model_n_lidar(model) > 0 ? 0 : -1};
    if (!name) return out->i >= 0;
    const char *slash = strchr(name, '/');
    if (!slash || (size_t)(slash - name) >= sizeof robot) return false;
    snprintf(robot, sizeof robot, "%.*s", (int)(slash - name), name);
    *out = us_model_find_lidar(model, robot, slash + 1);
    return out->i >= 0;
}

// Steps until the time is over and a turn is whole.
static int step_until(cli_world *world, us_lidar lidar, double time, us_lidar_frame *out) {
    const double step = us_model_get_step(world->model);
    const int64_t limit = (int64_t)ceil((time + 60) / step);
    for (int64_t i = 0; i < limit; i++) {
        us_sim_get_lidar_frame(world->sim, lidar, false, out, NULL, 0);
        if (out->turn >= 0 && (double)i * step >= time - 1e-9) return CLI_GO_ON;
        if (us_sim_step(world->sim, NULL)) {
            cli_print_error(us_sim_view_error(world->sim));
            return CLI_RUN_FAILED;
        }
    }
    return cli_fail(CLI_RUN_FAILED, "--sensor", "give it a higher rate", "no turn was whole within a minute");
}

static int sense(cli_world *world, const char *sensor, double time, bool is_deskewed, const char *path) {
    us_lidar lidar;
    frame f = {.n = 0};
    writer *write = writer_of(path);
    if (!write)
        return cli_fail(CLI_BAD_INPUT, "-o", "end it with .ply, .pcd, .csv or .png",
                        "\"%s\" is of no kind that can be written", path);
    if (!find_lidar(world->model, sensor, &lidar)) return fail_sensor(world->model, sensor ? sensor : "");
    int code = step_until(world, lidar, time, &f.head);
    if (code != CLI_GO_ON) return code;
    f.n = f.head.n_ring * f.head.n_column;
    f.point = cli_allocate((size_t)f.n, sizeof *f.point);
    us_sim_get_lidar_frame(world->sim, lidar, is_deskewed, &f.head, f.point, f.n);
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    if (out) write(out, &f);
    const bool is_bad = !out || ferror(out) || (out != stdout && fclose(out) != 0);
    if (is_bad) {
        code = cli_fail(CLI_CANNOT_WRITE, path, NULL, "cannot be written: %s", strerror(errno));
    } else {
        printf("%s: turn %lld of %s/%s, %d points in %d rings\n", path, (long long)f.head.turn,
               us_model_lidar_robot(world->model, lidar), us_model_lidar_name(world->model, lidar),
               (int)count_returns(&f), (int)f.head.n_ring);
        code = CLI_OK;
    }
    free(f.point);
    return code;
}

static int run(const cli_command *command, int argc, char **argv) {
    cli_load load = {0};
    const char *sensor = NULL, *path = NULL;
    double time = 0;
    bool is_deskewed = false;
    const cli_option table[] = {
        {"sensor", CLI_TEXT, &sensor, "ROBOT/NAME", "which lidar (the first one)"},
        {"time", CLI_NUMBER, &time, "S", "simulated seconds before the frame is taken (0: the first frame)"},
        {"deskew", CLI_FLAG, &is_deskewed, NULL, "points in the frame of the sensor when the turn began"},
        {"-o", CLI_TEXT, &path, "FILE", "where to: .ply, .pcd, .csv, or .png for a picture of the ranges"},
        CLI_LOAD_OPTIONS(load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &load.file);
    if (code != CLI_GO_ON) return code;
    if (!path) return cli_fail(CLI_BAD_INPUT, "-o", "write -o frame.ply", "no file is named");
    if (!(time >= 0 && time <= 1e6))
        return cli_fail(CLI_BAD_INPUT, "--time", "write seconds from 0 to 1e6", "%g s is no time", time);
    cli_world world;
    code = cli_load_spec(&load, US_BASE_FIXED, &world);
    if (code == CLI_GO_ON) code = cli_compile(&world);
    if (code == CLI_GO_ON) code = cli_create_sim(&world, NULL);
    if (code == CLI_GO_ON) {
        cli_print_warnings(stderr, world.spec);
        code = sense(&world, sensor, time, is_deskewed, path);
    }
    cli_world_fini(&world);
    return code;
}

const cli_command cli_command_sense = {
    .name = "sense",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "write one frame of a lidar: PLY, PCD, CSV or a picture",
    .about = "The world runs without a network until --time, and on until a turn is whole.\n"
             "\n"
             "  understudy sense scenes/lidar.xml --sensor k10/lidar -o frame.ply\n"
             "  understudy sense scenes/lidar.xml --time 2 -o ranges.png\n",
    .run = run,
};
