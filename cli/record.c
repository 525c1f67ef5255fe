// Recordings: rows of numbers to CSV files, fast enough not to show beside the steps, loud when the disk is
// full.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

// Large enough that system calls do not show, small enough to stay in the second-level cache.
enum { BUFFER_SIZE = 1 << 18, NAME_MAX_LENGTH = 512 };

static bool write_all(int file, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t n = write(file, bytes, length);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

static bool write_file_at(const char *path, const void *bytes, size_t length) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return false;
    bool is_written = write_all(file, bytes, length);
    int reason = errno;
    if (close(file) != 0 && errno != EINTR && is_written) return false;
    errno = reason;
    return is_written;
}

bool cli_write_file(const char *path, const void *bytes, size_t length) {
    // A link stays one: what it points at is replaced. Pipes and devices cannot be.
    char *real = realpath(path, NULL);
    const char *to = real ? real : path;
    struct stat about;
    bool is_plain = stat(to, &about) != 0 || S_ISREG(about.st_mode), is_written = false;
    const size_t room = strlen(to) + sizeof ".part";
    char *part = cli_allocate(room, 1);
    snprintf(part, room, "%s.part", to);
    if (!is_plain) {
        is_written = write_file_at(to, bytes, length);
    } else {
        is_written = write_file_at(part, bytes, length) && rename(part, to) == 0;
        int reason = errno;
        if (!is_written) unlink(part);
        errno = reason;
    }
    int reason = errno;
    free(part);
    free(real);
    errno = reason;
    return is_written;
}

void cli_recorder_flush(cli_recorder *recorder) {
    // After a failure nothing more is written: a file with a hole in it would be worse than a short one.
    if (recorder->failed == 0 && !write_all(recorder->file, recorder->buffer, recorder->n_byte))
        recorder->failed = errno;
    recorder->n_byte = 0;
}

static char *reserve(cli_recorder *recorder, size_t n) {
    if (recorder->n_byte + n > BUFFER_SIZE) cli_recorder_flush(recorder);
    return recorder->buffer + recorder->n_byte;
}

// The tick of row k is the first at or after k rows' worth of ticks; the small term forgives rounding in the
// quotient.
static int64_t tick_of_row(const cli_recorder *recorder, int64_t row) {
    return (int64_t)ceil((double)row * recorder->ticks_per_row - 1e-6);
}

// Rows are counted from tick 0, also when a snapshot lets the run begin later: the same ticks are written
// either way.
static void find_row(cli_recorder *recorder, int64_t tick) {
    recorder->next_row = (int64_t)ceil((double)tick / recorder->ticks_per_row - 1e-6);
    recorder->next_tick = tick_of_row(recorder, recorder->next_row);
    recorder->last_tick = tick;
}

// ---- names ----

// Quoted where CSV asks for it.
static void write_name(cli_recorder *recorder, const char *name) {
    size_t length = strlen(name);
    char *out = reserve(recorder, 2 * length + 4), *p = out;
    if (recorder->n_column > 0) *p++ = ',';
    if (strpbrk(name, ",\"\n\r")) {
        *p++ = '"';
        for (size_t i = 0; i < length; i++) {
            if (name[i] == '"') *p++ = '"';
            *p++ = name[i];
        }
        *p++ = '"';
    } else {
        memcpy(p, name, length);
        p += length;
    }
    recorder->n_byte += (size_t)(p - out);
}

static void add_column(cli_recorder *recorder, const char *name, int32_t value) {
    write_name(recorder, name);
    recorder->name[recorder->n_column] = strdup(name);
    recorder->value[recorder->n_column++] = value;
}

// Of an unknown "elbwo.q" the part before the dot is most likely mistyped: look for a joint, link or drive
// like it.
static void suggest(const us_spec *spec, const char *name, char *remedy, size_t cap) {
    us_spec_counts n = us_spec_get_counts(spec);
    const char *dot = strrchr(name, '.');
    char stem[NAME_MAX_LENGTH];
    snprintf(stem, sizeof stem, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
    int32_t n_candidate = 0;
    const char **candidates = cli_allocate((size_t)(n.n_joint + n.n_link + n.n_drive), sizeof *candidates);
    for (int32_t i = 0; i < n.n_joint; i++)
        candidates[n_candidate++] = us_spec_view_joint(spec, i)->name;
    for (int32_t i = 0; i < n.n_link; i++)
        candidates[n_candidate++] = us_spec_view_link(spec, i)->name;
    for (int32_t i = 0; i < n.n_drive; i++)
        candidates[n_candidate++] = us_spec_view_drive(spec, i)->name;
    const char *near = cli_nearest(stem, candidates, n_candidate);
    if (near && strcmp(near, stem) != 0) {
        snprintf(remedy, cap, "did you mean \"%s%s\"?", near, dot ? dot : ".q");
    } else {
        snprintf(remedy, cap,
                 "write JOINT.q or JOINT.v (JOINT.q[1] for joints with several coordinates), DRIVE.torque, "
                 "LINK.x .y .z .qw .qx .qy .qz, "
                 "in soil LINK.sinkage .slip .slip-angle .pull .side .load .moment, energy, energy.kinetic, "
                 "energy.potential, closure, time; "
                 "\"understudy info\" lists the names");
    }
    free(candidates);
}

// A column for each coordinate of each joint that has any: "elbow.q", or "ball.q[0]" and so on.
static void add_joints(cli_recorder *recorder, const us_sim *sim, bool is_velocity) {
    const us_model *model = us_sim_view_model(sim);
    int32_t n_joint = us_model_get_counts(model).n_joint;
    for (int32_t j = 0; j < n_joint; j++) {
        us_joint_info info = us_model_get_joint(model, (us_joint){j});
        int32_t n = is_velocity ? info.n_v : info.n_q;
        for (int32_t i = 0; i < n; i++) {
            char name[NAME_MAX_LENGTH];
            const char *joint = us_model_joint_name(model, (us_joint){j});
            if (n == 1) {
                snprintf(name, sizeof name, "%s.%c", joint, is_velocity ? 'v' : 'q');
            } else {
                snprintf(name, sizeof name, "%s.%c[%d]", joint, is_velocity ? 'v' : 'q', (int)i);
            }
            add_column(recorder, name, us_sim_find_value(sim, name));
        }
    }
}

// ---- a recorder's life ----

static int fail_write(const cli_recorder *recorder, int reason) {
    const char *name = strcmp(recorder->path, "-") == 0 ? "standard output" : recorder->path;
    return cli_fail(CLI_CANNOT_WRITE, name,
                    reason == ENOSPC ? "free space on the disk, or record less often (--every, --csv-rate)"
                                     : "name a file that can be written",
                    "cannot be written: %s; it ends after %lld rows or earlier", strerror(reason),
                    (long long)recorder->n_row);
}

int cli_recorder_init(cli_recorder *recorder, const cli_recorder_def *def, const us_spec *spec, us_sim *sim) {
    memset(recorder, 0, sizeof *recorder);
    recorder->path = def->path;
    recorder->file = -1;
    recorder->ticks_per_row = def->ticks_per_row < 1 ? 1 : def->ticks_per_row;

    // Names first: a mistyped name must not cost an old file its content.
    for (int32_t i = 0; i < def->n_value; i++) {
        if (us_sim_find_value(sim, def->values[i]) >= 0) continue;
        us_error err = {0};
        char remedy[384];
        suggest(spec, def->values[i], remedy, sizeof remedy);
        us_error_set(&err, US_ERR_NAME, &def->place, remedy, "unknown value \"%s\"", def->values[i]);
        cli_print_error(&err);
        return CLI_BAD_INPUT;
    }
    bool is_output = strcmp(def->path, "-") == 0;
    recorder->file =
        is_output ? dup(STDOUT_FILENO) : open(def->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (recorder->file < 0) {
        return cli_fail(CLI_CANNOT_WRITE, def->path, "make the directory, or name a file that can be written",
                        "cannot be opened for writing: %s", strerror(errno));
    }
    us_model_counts n = us_model_get_counts(us_sim_view_model(sim));
    recorder->buffer = cli_allocate(BUFFER_SIZE, 1);
    recorder->value = cli_allocate((size_t)(n.n_q + n.n_v + def->n_value + 2), sizeof *recorder->value);
    recorder->name = cli_allocate((size_t)(n.n_q + n.n_v + def->n_value + 2), sizeof *recorder->name);
    add_column(recorder, "time", us_sim_find_value(sim, "time"));
    if (def->n_value == 0) {
        add_joints(recorder, sim, false);
        add_joints(recorder, sim, true);
    }
    for (int32_t i = 0; i < def->n_value; i++) {
        if (strcmp(def->values[i], "time") != 0)
            add_column(recorder, def->values[i], us_sim_find_value(sim, def->values[i]));
    }
    if (def->with_energy) add_column(recorder, "energy", us_sim_find_value(sim, "energy"));
    *reserve(recorder, 1) = '\n';
    recorder->n_byte++;

    find_row(recorder, us_sim_get_tick(sim));
    return CLI_GO_ON;
}

void cli_recorder_follow(cli_recorder *recorder, us_sim *sim) {
    for (int32_t i = 0; i < recorder->n_column; i++) {
        recorder->value[i] = recorder->name[i] ? us_sim_find_value(sim, recorder->name[i]) : -1;
        if (recorder->value[i] >= 0 || recorder->is_warned) continue;
        cli_warn(NULL, "%s: \"%s\" is not there any more; from t = %.9g s on what is gone is written as nan",
                 recorder->path, recorder->name[i] ? recorder->name[i] : "?", us_sim_get_time(sim));
        recorder->is_warned = true;
    }
    int64_t tick = us_sim_get_tick(sim);
    // Within one stretch of time no row is written twice.
    if (tick < recorder->last_tick || tick > recorder->next_tick) find_row(recorder, tick);
}

void cli_recorder_write(cli_recorder *recorder, us_sim *sim) {
    for (int32_t i = 0; i < recorder->n_column; i++) {
        char *out = reserve(recorder, CLI_NUMBER_MAX + 1);
        size_t n = cli_number_format(us_sim_get_value(sim, recorder->value[i]), out);
        out[n] = i + 1 < recorder->n_column ? ',' : '\n';
        recorder->n_byte += n + 1;
    }
    recorder->n_row++;
    recorder->last_tick = us_sim_get_tick(sim);
    recorder->next_row++;
    recorder->next_tick = tick_of_row(recorder, recorder->next_row);
}

int cli_recorder_fini(cli_recorder *recorder) {
    int code = CLI_GO_ON;
    if (recorder->file >= 0) {
        cli_recorder_flush(recorder);
        // Some file systems report a full disk only here.
        if (close(recorder->file) != 0 && recorder->failed == 0) recorder->failed = errno;
        if (recorder->failed != 0) code = fail_write(recorder, recorder->failed);
    }
    for (int32_t i = 0; i < recorder->n_column && recorder->name; i++)
        free(recorder->name[i]);
    free(recorder->name);
    free(recorder->buffer);
    free(recorder->value);
    recorder->buffer = NULL;
    recorder->value = NULL;
    recorder->name = NULL;
    recorder->file = -1;
    return code;
}
