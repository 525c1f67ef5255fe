// understudy sense: one frame of a sensor, into a file.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "understudy/camera.h"
#include "understudy/depth_scanner.h"
#include "understudy/sensing.h"

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
            (int)f->head.n_column, (int)(f->head.n_ring * f->head.n_return), (int)f->n);
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

static double range_of(const us_lidar_point *p) {
    return hypot(hypot((double)p->x, (double)p->y), (double)p->z);
}

// A picture: lines of pixels with a byte before each.
typedef struct picture {
    int32_t width, height;
    uint8_t *raw;
} picture;

static uint8_t *pixel(const picture *p, int32_t x, int32_t y) {
    return p->raw + (size_t)y * (1 + 3 * (size_t)p->width) + 1 + 3 * (size_t)x;
}

static picture picture_of(int32_t width, int32_t height) {
    picture p = {width, height, NULL};
    p.raw = cli_allocate((1 + 3 * (size_t)width) * (size_t)height, 1);
    return p;
}

// Rows are rings, the highest on top, several lines each where they are few; columns follow the turn.
static picture draw_rings(const frame *f, double far) {
    const int32_t n_ring = f->head.n_ring, tall = n_ring < 8 ? 24 : n_ring <= 64 ? 6 : 1;
    const picture out = picture_of(f->head.n_column, tall * n_ring);
    for (int32_t y = 0; y < out.height; y++) {
        for (int32_t x = 0; x < out.width; x++) {
            const us_lidar_point *p = &f->point[(n_ring - 1 - y / tall) * out.width + x];
            if (has_return(p)) colour_of(log(fmax(range_of(p), 1)) / log(far), pixel(&out, x, y));
        }
    }
    return out;
}

// Shots without an order, where they looked: the middle is straight ahead, the border the farthest from it.
static picture draw_directions(const frame *f, double far) {
    enum { SIDE = 512, DOT = 1 };
    const picture out = picture_of(SIDE, SIDE);
    double widest = 1e-3;
    for (int32_t i = 0; i < f->n; i++) {
        const us_lidar_point *p = &f->point[i];
        if (has_return(p)) widest = fmax(widest, atan2(hypot((double)p->y, (double)p->z), (double)p->x));
    }
    for (int32_t i = 0; i < f->n; i++) {
        const us_lidar_point *p = &f->point[i];
        if (!has_return(p)) continue;
        const double scale = (0.5 * SIDE - 2) / widest, left = atan2((double)p->y, (double)p->x),
                     up = atan2((double)p->z, hypot((double)p->x, (double)p->y));
        const int32_t x = (int32_t)lround(0.5 * SIDE - scale * left),
                      y = (int32_t)lround(0.5 * SIDE - scale * up);
        for (int32_t k = 0; k < (1 + DOT) * (1 + DOT); k++) {
            const int32_t u = x + k % (1 + DOT), v = y + k / (1 + DOT);
            if (u >= 0 && u < SIDE && v >= 0 && v < SIDE)
                colour_of(log(fmax(range_of(p), 1)) / log(far), pixel(&out, u, v));
        }
    }
    return out;
}

// Ranges by the logarithm, from a metre to the longest.
static void write_png(FILE *out, const frame *f) {
    enum { SCAN = 4000 };  // columns that one turn of a single beam may have
    double far = 2;
    for (int32_t i = 0; i < f->n; i++) {
        if (has_return(&f->point[i])) far = fmax(far, range_of(&f->point[i]));
    }
    const bool is_ordered = f->head.n_ring > 1 || f->head.n_column <= SCAN;
    const picture p = is_ordered ? draw_rings(f, far) : draw_directions(f, far);
    const size_t n = (1 + 3 * (size_t)p.width) * (size_t)p.height;
    uint8_t *packed = cli_allocate(n + n / 65535 * 5 + 64, 1);
    uint8_t head[13] = {0};
    put32(head, (uint32_t)p.width);
    put32(head + 4, (uint32_t)p.height);
    head[8] = 8;
    head[9] = 2;
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, out);
    write_chunk(out, "IHDR", head, sizeof head);
    write_chunk(out, "IDAT", packed, store(packed, p.raw, n));
    write_chunk(out, "IEND", head, 0);
    free(p.raw);
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
    for (int32_t i = 0; i < us_model_n_sensor(model); i++) {
        const us_sensor_info k = us_model_get_sensor(model, (us_sensor){i});
        const size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s%s/%s", at ? ", " : "there is: ", k.robot, k.name);
    }
    return cli_fail(CLI_BAD_INPUT, "--sensor",
                    known[0] ? known : "give a robot a <sensor type=\"lidar\" preset=\"hdl-32e\" .../>",
                    name[0] ? "there is no sensor \"%s\"" : "there is no lidar%s", name);
}

// "k10/lidar"; without a name the first lidar.
static us_sensor find_sensor(const us_model *model, const char *name) {
    char robot[300];
    const char *slash = name ? strchr(name, '/') : NULL;
    if (!name && us_model_n_lidar(model) > 0)
        return us_model_find_sensor(model, us_model_lidar_robot(model, (us_lidar){0}),
                                    us_model_lidar_name(model, (us_lidar){0}));
    if (!slash || (size_t)(slash - name) >= sizeof robot) return (us_sensor){-1};
    snprintf(robot, sizeof robot, "%.*s", (int)(slash - name), name);
    return us_model_find_sensor(model, robot, slash + 1);
}

// Steps until the time is over and a turn is whole.
static int step_until(cli_world *world, us_lidar lidar, double time, us_lidar_frame *out) {
    const double step = us_model_get_step(world->model);
    const int64_t limit = (int64_t)ceil((time + 3600) / step);
    for (int64_t i = 0; i < limit; i++) {
        us_sim_get_lidar_frame(world->sim, lidar, false, out, NULL, 0);
        if (out->turn >= 0 && (double)i * step >= time - 1e-9) return CLI_GO_ON;
        if (us_sim_step(world->sim, NULL)) {
            cli_print_error(us_sim_view_error(world->sim));
            return CLI_RUN_FAILED;
        }
    }
    return cli_fail(CLI_RUN_FAILED, "--sensor", "make its window smaller, or its steps larger",
                    "no frame was whole within an hour");
}

// What to look at, and how.
typedef struct sense_options {
    cli_load load;
    const char *sensor, *path, *method;
    double time;
    int64_t bits, side;
    bool is_deskewed, lists_kinds;
} sense_options;

// A frame at the end of the time, by a depth buffer.
static int scan_depths(cli_world *world, us_lidar lidar, const sense_options *o, frame *f) {
    us_depth_scanner_def def = us_depth_scanner_def_default();
    us_depth_scanner *scanner = NULL;
    us_error err = {0};
    const double step = us_model_get_step(world->model);
    for (int64_t i = 0; (double)i * step < o->time - 1e-9; i++) {
        if (us_sim_step(world->sim, NULL)) {
            cli_print_error(us_sim_view_error(world->sim));
            return CLI_RUN_FAILED;
        }
    }
    def.bits = (int32_t)o->bits;
    def.side = (int32_t)o->side;
    us_status status = us_depth_scanner_create(world->model, lidar, &def, NULL, &scanner, &err);
    if (!status) status = us_depth_scanner_scan(scanner, world->sim, &f->head, f->point, f->n, &err);
    us_depth_scanner_destroy(scanner);
    if (status) cli_print_error(&err);
    return status == US_OK ? CLI_GO_ON : status == US_ERR_ARG ? CLI_BAD_INPUT : CLI_RUN_FAILED;
}

// A frame of rays: the first that is whole when the time is over.
static int scan_rays(cli_world *world, us_lidar lidar, const sense_options *o, frame *f) {
    const int code = step_until(world, lidar, o->time, &f->head);
    if (code == CLI_GO_ON)
        us_sim_get_lidar_frame(world->sim, lidar, o->is_deskewed, &f->head, f->point, f->n);
    return code;
}

static int sense(cli_world *world, const sense_options *o) {
    frame f = {.n = 0};
    const char *sensor = o->sensor, *path = o->path;
    writer *write = writer_of(path);
    const us_sensor which = find_sensor(world->model, sensor);
    const us_lidar lidar = us_model_get_sensor(world->model, which).lidar;
    us_camera_model lens;
    if (us_model_get_camera(world->model, which, &lens) == US_OK)
        return cli_sense_camera(world, which.i, o->time, path);
    if (which.i >= 0 && lidar.i < 0)
        return cli_sense_readings(world, which.i, o->time > 0 ? o->time : 1, path);
    if (!write)
        return cli_fail(CLI_BAD_INPUT, "-o", "end it with .ply, .pcd, .csv or .png",
                        "\"%s\" is of no kind that can be written", path);
    if (which.i < 0) return fail_sensor(world->model, sensor ? sensor : "");
    us_sim_get_lidar_frame(world->sim, lidar, false, &f.head, NULL, 0);
    f.n = f.head.n_return * f.head.n_ring * f.head.n_column;
    f.point = cli_allocate((size_t)f.n, sizeof *f.point);
    int code = o->method ? scan_depths(world, lidar, o, &f) : scan_rays(world, lidar, o, &f);
    if (code != CLI_GO_ON) {
        free(f.point);
        return code;
    }
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

static int check_options(sense_options *o) {
    if (!o->path && !o->lists_kinds)
        return cli_fail(CLI_BAD_INPUT, "-o", "write -o frame.ply", "no file is named");
    if (!(o->time >= 0 && o->time <= 1e6))
        return cli_fail(CLI_BAD_INPUT, "--time", "write seconds from 0 to 1e6", "%g s is no time", o->time);
    if (o->method && strcmp(o->method, "rays") == 0) o->method = NULL;
    if (o->method && strcmp(o->method, "depth-buffer") != 0)
        return cli_fail(CLI_BAD_INPUT, "--method", "write rays or depth-buffer", "there is no method \"%s\"",
                        o->method);
    return CLI_GO_ON;
}

static int run(const cli_command *command, int argc, char **argv) {
    sense_options o = {.bits = us_depth_scanner_def_default().bits,
                       .side = us_depth_scanner_def_default().side};
    const cli_option table[] = {
        {"sensor", CLI_TEXT, &o.sensor, "ROBOT/NAME", "which sensor (the first lidar)"},
        {"time", CLI_NUMBER, &o.time, "S",
         "simulated seconds before the frame is taken (0: the first frame); of readings how long"},
        {"deskew", CLI_FLAG, &o.is_deskewed, NULL, "points in the frame of the sensor when the turn began"},
        {"method", CLI_TEXT, &o.method, "rays|depth-buffer",
         "how a lidar looks (rays); depth-buffer: all beams at once, at --time"},
        {"bits", CLI_INTEGER, &o.bits, "N", "of a depth in the depth buffer, 8 to 32 (24)"},
        {"side", CLI_INTEGER, &o.side, "N", "pixels of the longer side of its pictures (2048)"},
        {"kinds", CLI_FLAG, &o.lists_kinds, NULL, "list the kinds of sensors that the file knows, and end"},
        {"-o", CLI_TEXT, &o.path, "FILE",
         "where to: .ply, .pcd, .csv, or .png for a picture of the ranges; readings: .csv; a camera: .png, "
         "or .pfm "
         "for depths"},
        CLI_LOAD_OPTIONS(o.load),
    };
    int code = cli_parse(command, table, sizeof table / sizeof table[0], argc, argv, &o.load.file);
    if (code == CLI_GO_ON) code = check_options(&o);
    if (code != CLI_GO_ON) return code;
    cli_world world;
    code = cli_load_spec(&o.load, US_BASE_FIXED, &world);
    if (code == CLI_GO_ON && o.lists_kinds) {
        cli_print_sensor_kinds(world.spec);
        code = CLI_OK;
    }
    if (code == CLI_GO_ON) code = cli_compile(&world);
    if (code == CLI_GO_ON) code = cli_create_sim(&world, NULL);
    if (code == CLI_GO_ON) {
        cli_print_warnings(stderr, world.spec);
        code = sense(&world, &o);
    }
    cli_world_fini(&world);
    return code;
}

const cli_command cli_command_sense = {
    .name = "sense",
    .operand = "FILE",
    .needs_operand = true,
    .summary = "write what a sensor sees: a frame of a lidar, a picture, or a table of readings",
    .about =
        "The world runs without a network until --time, and on until a turn is whole. A sensor with\n"
        "readings gives a row for each sample: what it says, and beside it what is true. A camera gives the\n"
        "picture of the world at --time.\n"
        "\n"
        "  understudy sense scenes/lidar.xml --sensor k10/lidar -o frame.ply\n"
        "  understudy sense scenes/lidar.xml --time 2 -o ranges.png\n"
        "  understudy sense scenes/lidar.xml --method depth-buffer -o depths.ply\n"
        "  understudy sense scenes/lidar.xml --sensor k10/imu --time 1 -o imu.csv\n"
        "  understudy sense scenes/camera.xml --sensor k10/eye -o picture.png\n",
    .run = run,
};
