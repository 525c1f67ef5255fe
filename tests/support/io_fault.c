#include "io_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { CREATE = 1, WRITE = 2, SYNC = 4, TRUNCATE = 8, RENAME = 16, CLOSE = 32, DIRECTORY = 64 };

// Which kinds of operation each fault can hit.
static const struct {
    const char *name;
    int group, error;
} kinds[] = {
    [IO_FAULT_NONE] = {"no fault", ~0, 0},
    [IO_FAULT_EIO] = {"EIO", CREATE | WRITE | SYNC | TRUNCATE | RENAME | CLOSE | DIRECTORY, EIO},
    [IO_FAULT_ENOSPC] = {"ENOSPC", CREATE | WRITE | TRUNCATE | RENAME | DIRECTORY, ENOSPC},
    [IO_FAULT_SHORT] = {"a short write", WRITE, 0},
    [IO_FAULT_EINTR] = {"EINTR", WRITE | SYNC | TRUNCATE, EINTR},
};

// The system calls that are looked at. `path`: the argument with the name of the file, -1: argument 0 is a
// descriptor; `flags`: the argument with the flags of an open.
static const struct {
    const char *name;
    int number, group, path, flags;
} calls[] = {
    {"write", __NR_write, WRITE, -1, -1},
    {"pwrite64", __NR_pwrite64, WRITE, -1, -1},
    {"writev", __NR_writev, WRITE, -1, -1},
    {"fsync", __NR_fsync, SYNC, -1, -1},
    {"fdatasync", __NR_fdatasync, SYNC, -1, -1},
    {"ftruncate", __NR_ftruncate, TRUNCATE, -1, -1},
    {"close", __NR_close, CLOSE, -1, -1},
    {"openat", __NR_openat, CREATE, 1, 2},
    {"mkdirat", __NR_mkdirat, DIRECTORY, 1, -1},
    {"renameat", __NR_renameat, RENAME, 3, -1},
    {"renameat2", __NR_renameat2, RENAME, 3, -1},
#ifdef __NR_open
    {"open", __NR_open, CREATE, 0, 1},
    {"mkdir", __NR_mkdir, DIRECTORY, 0, -1},
    {"rename", __NR_rename, RENAME, 1, -1},
#endif
};
enum { N_CALL = sizeof calls / sizeof calls[0] };

#ifdef __x86_64__
enum { OUR_ARCH = (int)AUDIT_ARCH_X86_64 };
#else
enum { OUR_ARCH = (int)AUDIT_ARCH_AARCH64 };
#endif

const char *io_fault_name(io_fault_kind kind) { return kinds[kind].name; }

// ---- In the process ----

static int install_filter(void) {
    struct sock_filter f[N_CALL + 5];
    unsigned short n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)OUR_ARCH, 0, N_CALL + 1);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < N_CALL; i++)
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number,
                                              (unsigned char)(N_CALL - i), 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {.len = n, .filter = f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

// The listener goes to the test with one byte of text.
static void send_descriptor(int socket, int descriptor) {
    char byte = 'x', room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        m.msg_control = room;
        m.msg_controllen = sizeof room;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
    }
    if (sendmsg(socket, &m, 0) != 1) _exit(97);
}

static int receive_descriptor(int socket) {
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int descriptor = -1;
    if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) == 1) {
        const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (c) memcpy(&descriptor, CMSG_DATA(c), sizeof descriptor);
    }
    return descriptor;
}

// ---- In the test ----

static bool read_memory(pid_t thread, uint64_t address, void *out, size_t length) {
    struct iovec here = {out, length}, there = {(void *)(uintptr_t)address, length};
    return process_vm_readv(thread, &here, 1, &there, 1, 0) == (ssize_t)length;
}

// A name in the process's memory, which may end anywhere before a page that is not there.
static bool read_name(pid_t thread, uint64_t address, char *out, size_t cap) {
    for (size_t i = 0; i < cap; i++) {
        if (!read_memory(thread, address + i, out + i, 1)) return false;
        if (!out[i]) return true;
    }
    return false;
}

// The file that the call is about, below the directory; false: another, which is none of ours.
static bool find_file(const io_fault *fault, const struct seccomp_notif *n, int call, char *out, size_t cap) {
    const pid_t thread = (pid_t)n->pid;
    char path[4096], link[64];
    if (calls[call].path >= 0) {
        if (!read_name(thread, n->data.args[calls[call].path], path, sizeof path)) return false;
        if (calls[call].flags >= 0 && !(n->data.args[calls[call].flags] & O_CREAT)) return false;
    } else {
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)thread, (int)n->data.args[0]);
        const ssize_t length = readlink(link, path, sizeof path - 1);
        if (length <= 0 || path[0] != '/') return false;  // a socket, a pipe
        path[length] = 0;
    }
    const size_t above = strlen(fault->directory);
    const char *name = path;
    if (path[0] == '/') {
        if (strncmp(path, fault->directory, above) != 0 || path[above] != '/') return false;
        name = path + above + 1;
    }
    const size_t length = strlen(name), end = fault->spared ? strlen(fault->spared) : 0;
    if (end > 0 && length >= end && strcmp(name + length - end, fault->spared) == 0) return false;
    snprintf(out, cap, "%.250s", name);
    return true;
}

static bool is_open_for_writing(const struct seccomp_notif *n) {
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)n->pid, (int)n->data.args[0]);
    FILE *file = fopen(path, "re");
    unsigned long flags = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags:", 6) == 0) flags = strtoul(line + 6, NULL, 8);
    }
    if (file) fclose(file);
    return (flags & O_ACCMODE) != O_RDONLY;
}

static pid_t group_of(pid_t thread) {
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    FILE *file = fopen(path, "re");
    pid_t group = thread;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "Tgid:", 5) == 0) group = (pid_t)strtol(line + 5, NULL, 10);
    }
    if (file) fclose(file);
    return group;
}

// Half of the write, done here on the process's own open file, whose position moves with it. The length that
// was written, or 0 when it cannot be done.
static int64_t write_half(const struct seccomp_notif *n, int call) {
    const size_t half = (size_t)n->data.args[2] / 2;
    if (half == 0 || calls[call].number == __NR_writev) return 0;
    char *bytes = malloc(half);
    const int process = (int)syscall(__NR_pidfd_open, group_of((pid_t)n->pid), 0);
    const int file = process >= 0 ? (int)syscall(__NR_pidfd_getfd, process, (int)n->data.args[0], 0) : -1;
    ssize_t done = 0;
    if (bytes && file >= 0 && read_memory((pid_t)n->pid, n->data.args[1], bytes, half))
        done = calls[call].number == __NR_write ? write(file, bytes, half)
                                                : pwrite(file, bytes, half, (off_t)n->data.args[3]);
    if (file >= 0) close(file);
    if (process >= 0) close(process);
    free(bytes);
    return done > 0 ? done : 0;
}

// The answer to one call: 0 and `answer` as it was, to let it pass.
static void judge(io_fault *fault, const struct seccomp_notif *n, struct seccomp_notif_resp *answer) {
    answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    int call = 0;
    while (call < N_CALL && calls[call].number != n->data.nr)
        call++;
    char file[256];
    if (call == N_CALL || !find_file(fault, n, call, file, sizeof file)) return;
    if (calls[call].group == CLOSE && !is_open_for_writing(n)) return;
    for (int i = 0; i < IO_FAULT_KINDS; i++) {
        const bool can_hit = i != IO_FAULT_SHORT || n->data.args[2] >= 2;
        if (calls[call].group & kinds[i].group && can_hit) fault->n_of[i]++;
    }
    const int64_t count = fault->n_of[fault->kind];
    if (fault->kind == IO_FAULT_NONE || !(calls[call].group & kinds[fault->kind].group)) return;
    if (count != fault->at && !(fault->stays && count > fault->at)) return;
    int64_t done = 0;
    if (fault->kind == IO_FAULT_SHORT) {
        done = write_half(n, call);
        if (done == 0) return;
    }
    if (fault->n_hit++ == 0) {
        snprintf(fault->call, sizeof fault->call, "%s", calls[call].name);
        snprintf(fault->file, sizeof fault->file, "%s", file);
    }
    answer->flags = 0;
    answer->val = done;
    answer->error = done > 0 ? 0 : -kinds[fault->kind].error;
}

// Until no process of the filter is left.
static void serve(io_fault *fault, int listener) {
    struct pollfd p = {.fd = listener, .events = POLLIN};
    for (;;) {
        if (poll(&p, 1, -1) < 0 && errno != EINTR) return;
        if (!(p.revents & POLLIN)) {
            if (p.revents & (POLLHUP | POLLERR)) return;
            continue;
        }
        // The kernel fills more than the header of the day knows.
        union {
            struct seccomp_notif one;
            char room[512];
        } n;
        memset(&n, 0, sizeof n);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &n.one)) continue;  // a process that ended meanwhile
        struct seccomp_notif_resp answer = {.id = n.one.id};
        judge(fault, &n.one, &answer);
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

bool io_fault_run(io_fault *fault, int (*body)(void *context), void *context) {
    memset(fault->n_of, 0, sizeof fault->n_of);
    fault->n_hit = 0;
    fault->call[0] = fault->file[0] = 0;
    int ends[2], status = 0;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int listener = install_filter();
        send_descriptor(ends[1], listener);
        if (listener < 0) _exit(98);
        // From here on whatever closes a file asks the test.
        fcntl(listener, F_SETFD, FD_CLOEXEC);
        _exit(body(context));
    }
    close(ends[1]);
    const int listener = receive_descriptor(ends[0]);
    close(ends[0]);
    if (listener >= 0) serve(fault, listener);
    if (listener >= 0) close(listener);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    fault->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return listener >= 0;
}
