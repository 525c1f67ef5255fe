// What benchmarks of whole programs share: clocks, processes, the processor time of the thread that steps.
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

enum { BENCH_MAX_CPU = 64 };

int64_t bench_now_ns(void);      // of the monotonic clock
void bench_nap(double seconds);  // sleeps

int bench_n_cpu(void);  // at most BENCH_MAX_CPU
// Keeps each processor from going idle with work that gives way to any other, so that it wakes and runs alike
// in all rounds. Returns how many processes that are.
int bench_keep_awake(pid_t out[BENCH_MAX_CPU]);
void bench_end_processes(const pid_t *pids, int n);

// Starts `understudy run` with these arguments, which end with NULL, on a DDS domain; what it prints goes to
// the file `out`.
pid_t bench_start_run(int domain, const char *out, const char *const *arguments);
// Processor time that the simulation's thread of such a process has used so far, s: what others take from it
// does not count.
double bench_used_by(pid_t pid);
// Wall time of a step in us as the program itself reports it, "step 12 us"; NaN when it does not.
double bench_step_time(const char *out);
void bench_print_file(const char *path);

double bench_median_of(double *values, int n);  // sorts them

#endif
