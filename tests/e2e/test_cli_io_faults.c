// A disk that fails: every operation on a file of every command that writes one fails in its turn, with the
// disk broken or full, for once or for good, or is cut short or interrupted.
//
// What is asked of a command: with a write that was cut short or interrupted, what it writes is the same as
// without. Otherwise it ends with code 4 and a line that names the file and a remedy; what it was to replace
// is still there; nothing that is not whole looks as if it were.
#include <limits.h>

#include "instrumented.h"
#include "io_fault.h"
#include "shell.h"
#include "test_cli_support.h"
#include "understudy/record.h"

static char here[PATH_MAX];

typedef enum file_promise {
    REPLACED,   // the old content or the whole new one
    APPENDED,   // the old content, and behind it a whole line or nothing
    PREFIX,     // text that ends early
    RECORDING,  // can be read up to where it ends; its messages are the first of the whole one's
    PRINTED,    // standard output: whatever came through
    ANY,        // keys are other ones each time: `verify` looks at them
} file_promise;

typedef struct command {
    const char *prepare;  // a line for the shell, in the directory; NULL: none
    const char *line;
    struct {
        const char *name;
        file_promise promise;
    } file[3];
    // A command that must succeed on what a successful one wrote, and whose refusal of what a failed one
    // left is code 2 or 4.
    const char *verify;
    bool has_foreign_writer;  // a library writes the file, and may give up when interrupted
} command;

// ---- one run ----

typedef struct call {
    char *argv[MAX_ARGS];
    int in, out, err;
} call;

// Nothing is opened, written or closed here: that would be an operation of the command.
static int execute(void *context) {
    const call *c = context;
    if (chdir("try") || dup2(c->in, 0) < 0 || dup2(c->out, 1) < 0 || dup2(c->err, 2) < 0) return 98;
    execv(c->argv[0], c->argv);
    return 97;
}

// Runs the command in a fresh directory "try" with the fault; false: this system cannot.
static bool attempt(const command *c, io_fault *fault) {
    static char directory[PATH_MAX + 8], line[1024];
    snprintf(directory, sizeof directory, "%s/try", here);
    assert_true(shell("rm -rf try && mkdir try"));
    if (c->prepare) assert_true(shell("cd try && %s", c->prepare));
    snprintf(line, sizeof line, c->line, US_SOURCE_DIR);
    call asked = {.in = open("/dev/null", O_RDONLY | O_CLOEXEC),
                  .out = open("try/stdout.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
                  .err = open("stderr.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    assert_true(asked.in >= 0 && asked.out >= 0 && asked.err >= 0);
    split(line, asked.argv);
    fault->directory = directory;
    const bool can = io_fault_run(fault, execute, &asked);
    close(asked.in);
    close(asked.out);
    close(asked.err);
    return can;
}

// ---- judging ----

typedef struct content {
    char *bytes;
    size_t n;
} content;

static content read_content(const char *directory, const char *name) {
    char path[300];
    content c = {0};
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (stat(path, &about) || !S_ISREG(about.st_mode)) return c;
    c.n = (size_t)about.st_size;
    c.bytes = malloc(c.n + 1);
    FILE *file = fopen(path, "rb");
    assert_true(c.bytes && file && fread(c.bytes, 1, c.n, file) == c.n);
    fclose(file);
    return c;
}

static bool is_same(content a, content b) {
    return a.bytes && b.bytes && a.n == b.n && memcmp(a.bytes, b.bytes, a.n) == 0;
}

static bool is_old(content a) { return !a.bytes || (a.n == 4 && memcmp(a.bytes, "old\n", 4) == 0); }

// Whether the messages of one recording are the first of the other's. *out_n is their number, -1: it is no
// recording.
static bool is_beginning(content part, content whole, int *out_n) {
    us_recording *a = NULL, *b = NULL;
    us_error err = {0};
    bool is_good = true, has = true;
    *out_n = -1;
    assert_int_equal(us_recording_open_bytes((const uint8_t *)whole.bytes, whole.n, NULL, &b, &err), US_OK);
    if (us_recording_open_bytes((const uint8_t *)part.bytes, part.n, NULL, &a, &err) == US_OK) {
        for (*out_n = 0; is_good && has;) {
            us_recorded m, n;
            bool has_other = false;
            if (us_recording_next(a, &m, &has, &err) || !has) break;
            is_good = us_recording_next(b, &n, &has_other, &err) == US_OK && has_other &&
                      m.log_time == n.log_time && m.length == n.length &&
                      memcmp(m.bytes, n.bytes, m.length) == 0;
            ++*out_n;
        }
    }
    us_recording_close(a);
    us_recording_close(b);
    return is_good;
}

// The file after a run that ended with `code`, against that of a run without fault.
static const char *judge_file(file_promise promise, const char *name, int code) {
    content whole = read_content("whole", name), now = read_content("try", name);
    const char *wrong = NULL;
    int n = 0;
    assert_non_null(whole.bytes);
    if (promise == RECORDING) {
        int n_whole = 0;
        const bool is_good = is_beginning(whole, whole, &n_whole);
        assert_true(is_good && n_whole > 0);
        if (now.bytes && !is_beginning(now, whole, &n)) wrong = "has messages that are not those of the run";
        if (code == 0 && n != n_whole) wrong = "lacks messages";
        // An empty file is none that looks whole; all others can be read.
        if (now.n > 0 && n < 0) wrong = "cannot be read";
    } else if (promise == APPENDED) {
        const size_t more = now.n > 4 ? now.n - 4 : 0;
        if (now.n < 4 || memcmp(now.bytes, "old\n", 4) != 0) wrong = "has lost what was in it";
        if ((code == 0 && more == 0) ||
            (more > 0 && memchr(now.bytes + 4, '\n', more) != now.bytes + now.n - 1))
            wrong = "has a part of a line";
    } else if (promise != ANY && code == 0) {
        if (!is_same(whole, now)) wrong = "is not the same as without the fault";
    } else if (promise == REPLACED) {
        if (!is_old(now) && !is_same(now, whole)) wrong = "is neither the old one nor the new one";
    } else if (promise == PREFIX && now.bytes) {
        if (now.n > whole.n || memcmp(now.bytes, whole.bytes, now.n) != 0) wrong = "has other text";
    }
    free(whole.bytes);
    free(now.bytes);
    return wrong;
}

// The name as an error line has it.
static bool is_named(const char *err, const char *file) {
    char name[256];
    snprintf(name, sizeof name, "%s", file);
    const size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".part") == 0) name[n - 5] = 0;
    return strstr(err, strcmp(name, "stdout.txt") == 0 ? "standard output" : name) != NULL;
}

static const char *judge(const command *c, const io_fault *fault, const char *err) {
    static char text[400];
    const bool is_mild = fault->kind == IO_FAULT_SHORT || fault->kind == IO_FAULT_EINTR;
    // The C library, which prints, takes an interruption for a failure too.
    const bool is_foreign = c->has_foreign_writer || strcmp(fault->file, "stdout.txt") == 0;
    const bool may_fail = !is_mild || (fault->kind == IO_FAULT_EINTR && is_foreign);
    if (fault->code != 0 && fault->code != 4) return "this is not the code for it";
    if (fault->code == 4 && !may_fail) return "this is no reason to give up";
    if (fault->code == 0 && !is_mild) return "it passes for success";
    if (fault->code == 4 && (!strstr(err, "error: ") || !strstr(err, "remedy: "))) return "no clear line";
    if (fault->code == 4 && !is_named(err, fault->file)) return "the file is not named";
    if (!shell("test -z \"$(find try -name '*.part*')\"")) return "it leaves a file of its own behind";
    for (int i = 0; i < 3 && c->file[i].name; i++) {
        const char *wrong = judge_file(c->file[i].promise, c->file[i].name, fault->code);
        if (!wrong) continue;
        snprintf(text, sizeof text, "%s %s", c->file[i].name, wrong);
        return text;
    }
    if (c->verify) {
        assert_int_equal(chdir("try"), 0);
        outcome verified = run(c->verify, US_SOURCE_DIR);
        assert_int_equal(chdir(".."), 0);
        if (fault->code == 0 ? verified.code != 0 : verified.code > 4) return verified.err;
    }
    return NULL;
}

// ---- the sweep ----

static int n_run;

static void hit(const command *c, io_fault_kind kind, int64_t at) {
    // A disk that is broken at one place, and one that is full from then on.
    io_fault fault = {.kind = kind, .at = at, .stays = kind == IO_FAULT_ENOSPC};
    assert_true(attempt(c, &fault));
    n_run++;
    char *err = read_text("stderr.txt");
    // The last operations may be fewer in another run, where a thread was slower.
    const char *wrong = fault.n_hit > 0   ? judge(c, &fault, err)
                        : fault.code != 0 ? "and no fault was met"
                                          : NULL;
    if (wrong)
        fail_msg("%s\n%s at operation %d (%s of %s): code %d, %s\n%s", c->line, io_fault_name(kind), (int)at,
                 fault.call, fault.file, fault.code, wrong, err);
    free(err);
}

// At every operation in turn; without US_LONG_TESTS at some of them, from the first to the last.
static void try_all(const command *c) {
    static const int some[] = {[IO_FAULT_EIO] = IS_INSTRUMENTED ? 2 : 4,
                               [IO_FAULT_ENOSPC] = IS_INSTRUMENTED ? 1 : 2,
                               [IO_FAULT_SHORT] = IS_INSTRUMENTED ? 1 : 2,
                               [IO_FAULT_EINTR] = 1};
    io_fault none = {.kind = IO_FAULT_NONE};
    if (!attempt(c, &none)) fail_msg("this system cannot hand system calls to a test (seccomp)");
    char *err = read_text("stderr.txt");
    if (none.code != 0) fail_msg("%s: code %d without a fault: %s", c->line, none.code, err);
    free(err);
    assert_true(shell("rm -rf whole && mv try whole"));
    for (io_fault_kind kind = IO_FAULT_EIO; kind < IO_FAULT_KINDS; kind++) {
        const int64_t last = none.n_of[kind];
        assert_true(last > 0);
        const int64_t n = getenv("US_LONG_TESTS") || last < some[kind] ? last : some[kind];
        for (int64_t i = 0; i < n; i++)
            hit(c, kind, n > 1 ? 1 + i * (last - 1) / (n - 1) : (last + 1) / 2);
    }
}

#define RUN "run %s/scenes/flat.xml --offline --headless --quiet --rate max --time 0.02 "

static void a_run_that_records(void **state) {
    (void)state;
    static const command c = {.line = RUN "--record out.mcap", .file = {{"out.mcap", RECORDING}}};
    try_all(&c);
}

static void what_is_said_on_the_network(void **state) {
    (void)state;
    static const command c = {.line = "record out.mcap --time 0.05", .file = {{"out.mcap", ANY}}};
    try_all(&c);
}

static void rows_of_numbers_and_a_snapshot(void **state) {
    (void)state;
    static const command rows = {.line = RUN "--csv out.csv", .file = {{"out.csv", PREFIX}}};
    static const command snapshot = {
        .prepare = "echo old > out.snap", .line = RUN "--save out.snap", .file = {{"out.snap", REPLACED}}};
    static const command printed = {.line = RUN "--csv -", .file = {{"stdout.txt", PREFIX}}};
    try_all(&rows);
    try_all(&snapshot);
    try_all(&printed);
}

static void ground_that_was_driven_on(void **state) {
    (void)state;
    static const command c = {
        .prepare = "echo old > out.tif",
        .line = "run %s/scenes/default.xml --offline --headless --quiet --rate max --time 0.002 "
                "--save-ground out.tif --ground-zone 0,0,2,2",
        .file = {{"out.tif", REPLACED}},
        .has_foreign_writer = true};
    try_all(&c);
}

static void sites(void **state) {
    (void)state;
    static const command random = {.line = "terrain random -o site --size 300 --spacing 4 --method patch",
                                   .verify = "terrain info site"};
    static const command picture = {.prepare = "echo old > out.png && cp -r ../site .",
                                    .line = "terrain info site --picture out.png",
                                    .file = {{"out.png", REPLACED}, {"stdout.txt", PRINTED}},
                                    .has_foreign_writer = true};
    static const command import = {.prepare = "cp ../ground.tif .",
                                   .line = "terrain import ground.tif -o site --metric --band 1",
                                   .verify = "terrain info site"};
    try_all(&random);
    assert_true(shell("rm -rf site && cp -r whole/site site"));
    try_all(&picture);
    assert_code(run("run %s/scenes/default.xml --offline --headless --quiet --rate max --time 0.002 "
                    "--save-ground ground.tif --ground-zone 0,0,2,2",
                    US_SOURCE_DIR),
                0);
    try_all(&import);
}

static void keys_and_users(void **state) {
    (void)state;
    static const command create = {.line = "keys create keystore", .verify = "keys list keystore"};
    static const command add = {
        .prepare = "cp -r ../keystore .", .line = "keys add keystore /rover", .verify = "keys list keystore"};
    static const command user = {.prepare = "echo old > users.txt",
                                 .line = "keys user users.txt ann drive",
                                 .file = {{"users.txt", APPENDED}, {"stdout.txt", ANY}}};
    try_all(&user);
    try_all(&create);
    assert_true(shell("rm -rf keystore && cp -r whole/keystore keystore"));
    try_all(&add);
}

static void what_is_printed(void **state) {
    (void)state;
    static const char *const lines[] = {
        "check %s/scenes/flat.xml",
        "info %s/scenes/flat.xml --json",
        "eval %s/scenes/pendulum.xml --json",
        "help",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const command c = {.line = lines[i], .file = {{"stdout.txt", PRINTED}}};
        try_all(&c);
    }
}

// A disk of 40 kB, which no injected answer stands for: code and words of a run in it.
static void a_small_disk(const char *line, const char *named) {
    static const char can[] = "unshare -rm true 2>/dev/null";
    if (!shell("%s", can)) fail_msg("no name space for a disk of its own: run it as root");
    assert_true(shell("rm -rf disk && mkdir disk && unshare -rm sh -c '"
                      "mount -t tmpfs -o size=40k none disk && cd disk && %s %s 2>../stderr.txt "
                      ">/dev/null; echo $? >../code.txt; find . -name \"*.part\" >../parts.txt'",
                      program(), line));
    char *code = read_text("code.txt"), *err = read_text("stderr.txt"), *parts = read_text("parts.txt");
    if (strcmp(code, "4\n") != 0 || !strstr(err, "No space left on device") || !strstr(err, "remedy: ") ||
        !strstr(err, named) || parts[0])
        fail_msg("%s: code %s%s%s", line, code, err, parts);
    free(code);
    free(err);
    free(parts);
}

static void a_disk_that_is_full(void **state) {
    (void)state;
    a_small_disk("run " US_SOURCE_DIR
                 "/scenes/flat.xml --offline --headless --quiet --rate max --time 1 --record out.mcap",
                 "out.mcap");
    a_small_disk("run " US_SOURCE_DIR
                 "/scenes/flat.xml --offline --headless --quiet --rate max --time 1 --csv out.csv",
                 "out.csv");
    a_small_disk("terrain random -o site --size 800 --spacing 4 --method patch", "site/");
}

static int set_up(void **state) {
    (void)state;
    return getcwd(here, sizeof here) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    print_message("%d runs\n", n_run);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_records),
        cmocka_unit_test(what_is_said_on_the_network),
        cmocka_unit_test(rows_of_numbers_and_a_snapshot),
        cmocka_unit_test(ground_that_was_driven_on),
        cmocka_unit_test(sites),
        cmocka_unit_test(keys_and_users),
        cmocka_unit_test(what_is_printed),
        cmocka_unit_test(a_disk_that_is_full),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
