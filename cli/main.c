// understudy: finds the sub-command and hands over.
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"

static const cli_command *const commands[] = {
    &cli_command_run,     &cli_command_check,  &cli_command_info,   &cli_command_eval,   &cli_command_bench,
    &cli_command_topics,  &cli_command_echo,   &cli_command_drive,  &cli_command_tell,   &cli_command_fault,
    &cli_command_switch,  &cli_command_timing, &cli_command_record, &cli_command_replay, &cli_command_doctor,
    &cli_command_terrain, &cli_command_keys,   &cli_command_sense,  &cli_command_stereo,
};

enum { N_COMMAND = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out) {
    fputs("understudy simulates robots.\n\nUsage: understudy COMMAND [FILE] [OPTIONS]\n\nCommands:\n", out);
    for (int32_t i = 0; i < N_COMMAND; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help     this text, or with a command's name the text about it\n"
          "\n"
          "Options:\n"
          "  --help     this text; after a command, the text about it\n"
          "  --version  the version of program and library\n"
          "\n"
          "Exit codes: 0 well, 1 the doctor found something, 2 bad input or usage, 3 the run failed, 4 "
          "cannot write.\n"
          "NO_COLOR in the environment turns colours off.\n"
          "\n"
          "Begin with: understudy check scenes/default.xml\n"
          "            understudy run scenes/default.xml\n"
          "and in another terminal: understudy topics\n",
          out);
}

static const cli_command *find_command(const char *name) {
    for (int32_t i = 0; i < N_COMMAND; i++) {
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    }
    return NULL;
}

static int fail_unknown(const char *name) {
    const char *names[N_COMMAND + 1];
    for (int32_t i = 0; i < N_COMMAND; i++)
        names[i] = commands[i]->name;
    names[N_COMMAND] = "help";
    const char *near = cli_nearest(name, names, N_COMMAND + 1);
    char remedy[128];
    if (near) {
        snprintf(remedy, sizeof remedy, "did you mean \"understudy %s\"?", near);
    } else {
        snprintf(remedy, sizeof remedy, "\"understudy help\" lists the commands");
    }
    return cli_fail(CLI_BAD_INPUT, "understudy", remedy, "unknown %s \"%s\"",
                    name[0] == '-' ? "option" : "command", name);
}

// A program built for AVX2 dies of an illegal instruction on a processor without it; better to say so first.
static bool is_processor_good(void) {
#if defined(__AVX2__) && (defined(__x86_64__) || defined(__i386__))
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return true;
#endif
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return CLI_BAD_INPUT;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("understudy %s\n", us_version());
        return CLI_OK;
    }
    bool is_help = strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (is_help && argc == 2) {
        print_help(stdout);
        return CLI_OK;
    }
    const cli_command *command = find_command(is_help ? argv[2] : name);
    if (!command) return fail_unknown(is_help ? argv[2] : name);
    if (is_help) {
        char help[] = "--help";
        char *help_argv[] = {argv[2], help, NULL};
        return command->run(command, 2, help_argv);
    }
    return command->run(command, argc - 1, argv + 1);
}

// Libraries of others end the program without a word where memory runs out. In a signal handler nothing may
// be formatted.
static void on_abort(int number) {
    static const char text[] =
        "error: understudy: a library ended the program, as some do when memory runs out\n"
        "  remedy: free memory, or raise its limit (ulimit -v); where there is enough of it "
        "this is a fault of the program\n";
    (void)number;
    const ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    _exit(n < 0 ? CLI_CANNOT_WRITE : CLI_RUN_FAILED);
}

// A bad address: a fault of ours, or of a library that went on without the memory that it asked for. It is
// said, and the program ends by the signal, as whoever looks for the reason needs it.
static void on_bad_address(int number) {
    static const char text[] =
        "error: understudy: the program used a bad address and ends\n"
        "  remedy: where memory is short, free some or raise its limit (ulimit -v); otherwise this is a "
        "fault of the program: please report it\n";
    const ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    signal(number, SIG_DFL);
    raise(number);
}

// ms that a stopped command waits for a reader of its output, such as a pager that is not looked at.
enum { LAST_WORDS = 50 };

// True when what is still to be printed would find nobody. A full pipe takes nothing until somebody reads,
// and one that takes anything takes as much as the buffer of standard output holds.
static bool is_output_stuck(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return cli_is_stopped() && poll(&out, 1, LAST_WORDS) == 0;
}

int main(int argc, char **argv) {
    if (!is_processor_good()) {
        // Plain stdio: the library itself may hold instructions that this processor lacks.
        fputs("error: understudy: this program was built for processors with AVX2, FMA and BMI2, and this "
              "one lacks some of them\n"
              "  remedy: build it again with US_ARCH=x86-64, for example: US_ARCH=x86-64 ./dev build\n",
              stderr);
        return CLI_BAD_INPUT;
    }
    signal(SIGABRT, on_abort);
    // A sanitizer has its own handler, which says more.
    struct sigaction before = {0};
    if (sigaction(SIGSEGV, NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
        signal(SIGSEGV, on_bad_address);
        signal(SIGBUS, on_bad_address);
    }
    int code = dispatch(argc, argv);
    if (is_output_stuck()) _exit(code);
    // What was printed may still sit in a buffer: a full disk must not pass for success.
    // Ctrl-C may have cut off a line that was waiting for its reader: that is no error.
    if (fflush(stdout) != 0 || (ferror(stdout) && !cli_is_stopped())) {
        cli_fail(CLI_CANNOT_WRITE, "standard output", "free space on the disk, or send the output elsewhere",
                 "cannot write");
        if (code == CLI_OK) code = CLI_CANNOT_WRITE;
    }
    return code;
}
