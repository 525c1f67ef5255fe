// Our bytes and schemas against those of another implementation: Foxglove's npm packages @foxglove/rosmsg and
// @foxglove/rosmsg2-serialization.
//
// Messages of every type go to node as bytes, as schema text and, past the codec, as JSON. message_npm.mjs
// reads the bytes with the schema and compares with the JSON, then writes the JSON as bytes of its own, which
// must decode here to what was sent.
//
// ros_package_npm.mjs reads the ROS package ros/understudy_msgs by the same reader: its members are those of
// our tables, and the type hashes that follow from its files are those that we announce.
//
// The packages are looked for in the node_modules directory that $US_NPM names, and in npm/ of the build;
// without them the tests are skipped.
#include "test_message_support.h"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { BUF = 1 << 16, N_SEED = 8 };
static uint8_t buf[BUF];

// ---- a message as JSON, from the struct
// ----------------------------------------------------------------

static void write_string(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(file, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, file);
    }
    fputc('"', file);
}

static void write_message(FILE *file, const us_message_type *type, const uint8_t *from);

static void write_value(FILE *file, const usi_message_field *f, const uint8_t *at) {
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
        const char *text;
    } v = {0};
    if (f->kind == USI_KIND_STRING && f->bound) {
        write_string(file, (const char *)at);
        return;
    }
    if (f->kind == USI_KIND_MESSAGE) {
        write_message(file, f->type, at);
        return;
    }
    memcpy(&v, at, f->each);
    switch ((usi_kind)f->kind) {
    case USI_KIND_BOOL:
        fputs(v.u8 ? "true" : "false", file);
        break;
    case USI_KIND_BYTE:
    case USI_KIND_UINT8:
        fprintf(file, "%d", v.u8);
        break;
    case USI_KIND_INT8:
        fprintf(file, "%d", v.i8);
        break;
    case USI_KIND_INT16:
        fprintf(file, "%d", v.i16);
        break;
    case USI_KIND_UINT16:
        fprintf(file, "%d", v.u16);
        break;
    case USI_KIND_INT32:
        fprintf(file, "%ld", (long)v.i32);
        break;
    case USI_KIND_UINT32:
        fprintf(file, "%lu", (unsigned long)v.u32);
        break;
    case USI_KIND_INT64:
        fprintf(file, "\"%lld\"", (long long)v.i64);
        break;
    case USI_KIND_UINT64:
        fprintf(file, "\"%llu\"", (unsigned long long)v.u64);
        break;
    case USI_KIND_FLOAT32:
        fprintf(file, "%.17g", (double)v.f32);
        break;
    case USI_KIND_FLOAT64:
        fprintf(file, "%.17g", v.f64);
        break;
    default:
        write_string(file, v.text);
        break;
    }
}

static void write_message(FILE *file, const us_message_type *type, const uint8_t *from) {
    fputc('{', file);
    for (int32_t i = 0; i < type->n_field && !type->is_empty; i++) {
        const usi_message_field *f = &type->fields[i];
        const uint8_t *at = from + f->offset;
        uint32_t n = f->shape == USI_SHAPE_ONE ? 1 : f->count;
        if (f->shape == USI_SHAPE_SEQUENCE) {
            usi_sequence sequence;
            memcpy(&sequence, at, sizeof sequence);
            n = sequence._length;
            at = sequence._buffer;
        }
        fprintf(file, "%s\"%s\":%s", i ? "," : "", f->name, f->shape == USI_SHAPE_ONE ? "" : "[");
        for (uint32_t k = 0; k < n; k++, at += f->each) {
            if (k) fputc(',', file);
            write_value(file, f, at);
        }
        if (f->shape != USI_SHAPE_ONE) fputc(']', file);
    }
    fputc('}', file);
}

// ---- the other side
// ----------------------------------------------------------------

static bool find_packages(char *out, size_t cap) {
    const char *given = getenv("US_NPM");
    const char *const roots[] = {given ? given : "", US_BINARY_DIR "/npm/node_modules",
                                 US_SOURCE_DIR "/build/npm/node_modules"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char path[1024];
        struct stat info;
        snprintf(path, sizeof path, "%s/@foxglove/rosmsg2-serialization/package.json", roots[i]);
        if (!roots[i][0] || stat(path, &info) != 0) continue;
        snprintf(out, cap, "%s", roots[i]);
        return true;
    }
    return false;
}

// Runs a script of this directory with the packages; skips the test where they or node are missing.
static void run_node(const char *script, const char *first, const char *second) {
    char name[] = "node", directory[1024], path[1024], arguments[2][1024];
    if (!find_packages(directory, sizeof directory)) {
        print_message("skipped: @foxglove/rosmsg2-serialization is not installed\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/tests/wire/%s", US_SOURCE_DIR, script);
    snprintf(arguments[0], sizeof arguments[0], "%s", first);
    snprintf(arguments[1], sizeof arguments[1], "%s", second);
    char *args[] = {name, path, directory, arguments[0], arguments[1], NULL};
    pid_t pid = 0;
    int code = 0;
    if (posix_spawnp(&pid, "node", NULL, NULL, args, environ) != 0) {
        print_message("skipped: node is not installed\n");
        skip();
    }
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code), 0);
}

// A message of the i-th type, and its bytes in buf. Odd seeds have texts of ASCII alone: Foxglove reads
// others, but writes them cut, since it counts characters for bytes.
static const void *make_case(maker *m, int32_t i, uint64_t seed, size_t *out_length) {
    const us_message_type *type = us_message_get_type(i);
    *m = (maker){.seed = 5000 + seed * 1000 + (uint64_t)i, .is_tame = true, .is_ascii = seed % 2 == 1};
    const void *message = make_any(m, type);
    *out_length = encode(type, message, buf, BUF);
    return message;
}

static void foxglove_reads_our_bytes_and_we_read_foxgloves(void **state) {
    (void)state;
    static maker m;
    static char line[4 * BUF];

    FILE *file = fopen("cases.jsonl", "wb");
    assert_non_null(file);
    size_t length = 0;
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const us_message_type *type = us_message_get_type(i);
        for (uint64_t seed = 0; seed < N_SEED; seed++) {
            const void *message = make_case(&m, i, seed, &length);
            fprintf(file, "{\"type\":\"%s\",\"schema\":", us_message_name(type));
            write_string(file, us_message_schema(type));
            fprintf(file, ",\"hex\":\"");
            for (size_t k = 0; k < length; k++)
                fprintf(file, "%02x", buf[k]);
            fprintf(file, "\",\"value\":");
            write_message(file, type, message);
            fprintf(file, "}\n");
            maker_free(&m);
        }
    }
    assert_int_equal(fclose(file), 0);

    run_node("message_npm.mjs", "cases.jsonl", "results.txt");

    file = fopen("results.txt", "rb");
    assert_non_null(file);
    for (int32_t i = 0; i < us_message_n_type(); i++) {
        const us_message_type *type = us_message_get_type(i);
        for (uint64_t seed = 0; seed < N_SEED; seed++) {
            static uint8_t theirs[BUF];
            static char text_a[BUF], text_b[BUF];
            size_t n = 0, n_text = 0;
            assert_non_null(fgets(line, sizeof line, file));
            for (unsigned byte = 0; n < BUF && sscanf(line + 2 * n, "%2x", &byte) == 1; n++)
                theirs[n] = (uint8_t)byte;
            if (seed % 2 == 0) continue;
            const void *message = make_case(&m, i, seed, &length);
            assert_same_message(type, message, decode(type, theirs, n));
            assert_int_equal(us_message_print(type, theirs, n, 0, text_a, BUF, &n_text, NULL), US_OK);
            assert_int_equal(us_message_print(type, buf, length, 0, text_b, BUF, &n_text, NULL), US_OK);
            assert_string_equal(text_a, text_b);
            maker_free(&m);
        }
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
}

// ---- the ROS package
// ----------------------------------------------------------------

static void write_type(FILE *file, const us_message_type *type) {
#define ROW(kind, size, name) name,
    static const char *const kinds[] = {USI_KIND_LIST(ROW)};
#undef ROW
    static const char *const shapes[] = {"one", "array", "sequence"};
    fprintf(file, "{\"name\":\"%s\",\"hash\":\"%s\",\"fields\":[", type->name, type->hash);
    for (int32_t i = 0; i < type->n_field; i++) {
        const usi_message_field *f = &type->fields[i];
        fprintf(file, "%s{\"name\":\"%s\",\"type\":\"%s\",\"shape\":\"%s\",\"count\":%u,\"bound\":%u}",
                i ? "," : "", f->name, f->type ? f->type->name : kinds[f->kind], shapes[f->shape],
                (unsigned)f->count, (unsigned)f->bound);
    }
    fprintf(file, "]}\n");
}

static void foxglove_reads_our_ros_package_and_finds_the_hashes_that_we_announce(void **state) {
    (void)state;
    FILE *file = fopen("types.jsonl", "wb");
    assert_non_null(file);
    for (int32_t i = 0; i < us_message_n_type(); i++)
        write_type(file, us_message_get_type(i));
    assert_int_equal(fclose(file), 0);
    run_node("ros_package_npm.mjs", "types.jsonl", US_SOURCE_DIR "/ros/understudy_msgs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foxglove_reads_our_bytes_and_we_read_foxgloves),
        cmocka_unit_test(foxglove_reads_our_ros_package_and_finds_the_hashes_that_we_announce)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
