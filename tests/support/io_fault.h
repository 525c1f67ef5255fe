// Faults of the disk in a process that knows nothing of them: the n-th operation on a file fails, is cut
// short or is interrupted, whoever asked for it: our code, the C library, a library of others.
//
// The kernel hands each such system call of the process to the test (seccomp user notification), which lets
// it pass or answers in the kernel's place.
#ifndef TEST_IO_FAULT_H
#define TEST_IO_FAULT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum io_fault_kind {
    IO_FAULT_NONE,
    IO_FAULT_EIO,     // the disk is broken: create, write, sync, truncate, rename, close, make a directory
    IO_FAULT_ENOSPC,  // the disk is full: all of these but sync and close
    IO_FAULT_SHORT,   // half of a write is done, and its length is the answer
    IO_FAULT_EINTR,   // a signal came: write, sync, truncate
    IO_FAULT_KINDS
} io_fault_kind;

typedef struct io_fault {
    io_fault_kind kind;
    int64_t at;             // the operation that it hits, from 1; of those that this kind can hit
    bool stays;             // and all that follow
    const char *directory;  // files beneath it alone, an absolute path; relative names count as beneath it
    const char *spared;     // but not files whose path ends so; NULL: all

    // What came of it.
    int64_t n_of[IO_FAULT_KINDS];  // operations that each kind could have hit
    int64_t n_hit;
    char call[16], file[256];  // the first that was hit; the file without its directory
    int code;                  // of the process: its exit code, 128 + the signal that ended it
} io_fault;

const char *io_fault_name(io_fault_kind kind);

// Runs `body` in a process of its own under the fault. Its result is the exit code, where it returns. False:
// this system has no such notifications, and nothing was run.
bool io_fault_run(io_fault *fault, int (*body)(void *context), void *context);

#endif
