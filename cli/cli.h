// What the files of the command line share: exit codes, option tables, messages, loading, number and JSON
// output.
//
// One file per sub-command; each uses the public headers of the library and nothing else of it. Only these
// files print, and only main() ends the program.
#ifndef UNDERSTUDY_CLI_H
#define UNDERSTUDY_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "understudy/base.h"
#include "understudy/model.h"
#include "understudy/sim.h"
#include "understudy/spec.h"

// What the program returns to the shell.
enum {
    CLI_OK = 0,
    CLI_FOUND = 1,         // doctor: something is wrong
    CLI_BAD_INPUT = 2,     // a file, an option or a value that cannot be used
    CLI_RUN_FAILED = 3,    // the motion diverged or a constraint could not be kept; nobody answers; a replay
                           // that goes another way
    CLI_CANNOT_WRITE = 4,  // a file or standard output could not be written
};

// ---- commands and options (args.c) ----

typedef enum cli_kind {
    CLI_FLAG,     // bool *
    CLI_TEXT,     // const char **
    CLI_NUMBER,   // double *; finite
    CLI_INTEGER,  // int64_t *
    CLI_LIST,     // cli_list *; may be given more than once
    CLI_REST,     // cli_list *; what follows the operand; `name` is how the help calls it
} cli_kind;

enum { CLI_LIST_MAX = 64 };

typedef struct cli_list {
    int32_t n;
    const char *item[CLI_LIST_MAX];  // borrowed from argv
} cli_list;

typedef struct cli_option {
    const char *name;  // without the "--"; of one dash with it: "-o"
    cli_kind kind;
    void *target;       // left alone when the option is absent
    const char *value;  // how the help calls its value; NULL for a flag
    const char *about;
} cli_option;

typedef struct cli_command {
    const char *name;
    const char *operand;  // how the help calls the file; NULL when there is none
    bool needs_operand;
    const char *summary;  // one line
    const char *about;    // the rest of the help, with examples
    int (*run)(const struct cli_command *command, int argc,
               char **argv);  // argv[0] is the command's name; returns the exit code
} cli_command;

enum { CLI_GO_ON = -1 };

// Reads argv into the targets. Returns CLI_GO_ON, or the exit code when there is nothing left to do (help
// shown, usage error shown).
int cli_parse(const cli_command *command, const cli_option *options, int32_t n_option, int argc, char **argv,
              const char **out_operand);

// The candidate that somebody who wrote `text` most likely meant, or NULL when none is near.
const char *cli_nearest(const char *text, const char *const *candidates, int32_t n_candidate);

// "x,y,z" to three finite numbers; false when it is anything else.
bool cli_parse_vector(const char *text, us_vec3 *out_vector);

// ---- messages (message.c) ----

// True when a line can be rewritten on this stream: a terminal, TERM not "dumb".
bool cli_is_terminal(FILE *stream);
// True when colours may be used too: NO_COLOR is not set.
bool cli_is_fancy(FILE *stream);
// An error on standard error, in the form of us_error_format.
void cli_print_error(const us_error *err);
// 3 where memory ran out, otherwise 2: what a command ends with that could not take its input.
int cli_input_code(const us_error *err);
// 3 where memory ran out, otherwise 4: what a command ends with that could not write a file.
int cli_output_code(const us_error *err);
// Makes an error of a message and a remedy (may be NULL), prints it and returns `code`.
int cli_fail(int code, const char *element, const char *remedy, const char *format, ...) US_PRINTF(4, 5);
// A warning of the program itself, on standard error.
void cli_warn(const char *remedy, const char *format, ...) US_PRINTF(2, 3);
// Every warning of the spec once, equal ones with their count. Returns how many different ones there are.
int32_t cli_print_warnings(FILE *stream, const us_spec *spec);
// The different warnings, for other forms of output: calls back once each.
int32_t cli_each_warning(const us_spec *spec,
                         void (*visit)(void *context, const us_error *warning, int32_t n_times),
                         void *context);
// Zeroed memory; ends the program with a message when there is none.
void *cli_allocate(size_t count, size_t size);

// ---- loading (load.c) ----

typedef struct cli_load {
    const char *file;
    const char *text;  // what is loaded, under the name `file`; NULL: what stands in the file
    size_t n_text;
    const char *how_to_allow;  // not NULL: no file that is named inside is opened; what to do about it
    cli_list set;              // --set name=value
    cli_list path;             // --path DIR
    const char *base;          // --base fixed|floating; NULL: not given
    bool exclude_overlaps;     // --exclude-overlaps
    bool is_quiet;             // --quiet of a command that has it: no bar while a large raster is read
} cli_load;

#define CLI_LOAD_OPTIONS(load)                                                                    \
    {"set", CLI_LIST, &(load).set, "NAME=VALUE", "another value for a <parameter> of the scene"}, \
        {"path", CLI_LIST, &(load).path, "DIR", "where package://NAME/... is looked for first"},  \
        {"base", CLI_TEXT, &(load).base, "fixed|floating",                                        \
         "how the root link of a robot file stands (fixed)"},                                     \
    {                                                                                             \
        "exclude-overlaps", CLI_FLAG, &(load).exclude_overlaps, NULL,                             \
            "links of a robot that overlap at the start never collide"                            \
    }

// A file, loaded and compiled as far as a command needs it.
typedef struct cli_world {
    us_spec *spec;
    us_model *model;
    us_sim *sim;
    bool is_robot;   // a lone robot file, not a scene
    us_error error;  // what was shown when one of the functions below failed
} cli_world;

// Each returns CLI_GO_ON, or prints the error and returns the exit code. `fallback` holds when --base is not
// given.
int cli_load_spec(const cli_load *load, us_base fallback, cli_world *world);
int cli_compile(cli_world *world);
int cli_create_sim(cli_world *world, const us_sim_def *def);

// sense_camera.c: the picture of a camera (us_sensor) as the world stands after so many seconds.
int cli_sense_camera(cli_world *world, int32_t sensor, double time, const char *path);
// sense_readings.c: samples of a sensor (us_sensor) as a table; and the kinds of sensors that a spec knows,
// with their parameters, presets and readings.
int cli_sense_readings(cli_world *world, int32_t sensor, double time, const char *path);
void cli_print_sensor_kinds(const us_spec *spec);
void cli_world_fini(cli_world *world);

// Whole file into memory with a 0 after it; "-" is standard input. Caller frees. CLI_GO_ON or the exit code.
int cli_read_file(const char *path, char **out_bytes, size_t *out_length);

// "arm/elbow" of joint or link i, for messages; "the world" for US_WORLD.
const char *cli_link_name(const us_spec *spec, int32_t link);

// ---- numbers and JSON (number.c, json.c) ----

enum { CLI_NUMBER_MAX = 32 };
// The text of "%.17g" without its cost; buf holds CLI_NUMBER_MAX. Returns the length; the text is not ended
// by 0.
size_t cli_number_format(double x, char *buf);

enum { CLI_JSON_DEPTH = 16 };
// Writes JSON as it comes. Keys are NULL inside arrays. Numbers carry 17 digits; what is not finite is null.
typedef struct cli_json {
    FILE *out;
    int32_t depth;
    bool is_compact;                // everything on one line
    bool is_short[CLI_JSON_DEPTH];  // this level on one line
    bool has_item[CLI_JSON_DEPTH];
    char close[CLI_JSON_DEPTH];
} cli_json;

void cli_json_begin(cli_json *json, const char *key, char bracket);        // '{' or '['
void cli_json_begin_short(cli_json *json, const char *key, char bracket);  // the same, on one line
void cli_json_end(cli_json *json);
void cli_json_text(cli_json *json, const char *key, const char *text);  // NULL is null
void cli_json_number(cli_json *json, const char *key, double x);
void cli_json_integer(cli_json *json, const char *key, int64_t x);
void cli_json_bool(cli_json *json, const char *key, bool x);
void cli_json_numbers(cli_json *json, const char *key, const double *x, size_t n);
void cli_json_vector(cli_json *json, const char *key, us_vec3 a);
void cli_json_error(cli_json *json, const char *key, const us_error *err, int32_t n_times);

// ---- robots on the network (interface.c) ----

void cli_print_interfaces(
    const us_spec *spec,
    const char *before);  // `before` stands before the first line; nothing where there is no robot
void cli_json_interfaces(cli_json *json,
                         const us_spec *spec);  // "clock_rate" and "network" of the object that is open

// ---- links that collide and overlap at the start (overlap.c) ----

void cli_print_overlaps(const us_spec *spec, const us_model *model);  // as a scene file excludes them
void cli_json_overlaps(cli_json *json, const us_model *model);

// ---- the sub-commands ----

extern const cli_command cli_command_run, cli_command_check, cli_command_info, cli_command_eval,
    cli_command_sense, cli_command_bench;
extern const cli_command cli_command_topics, cli_command_echo, cli_command_drive, cli_command_record,
    cli_command_replay, cli_command_doctor, cli_command_tell, cli_command_fault, cli_command_switch,
    cli_command_timing, cli_command_terrain, cli_command_keys, cli_command_stereo;

#endif
