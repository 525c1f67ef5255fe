// The process that reads mesh files, seen from the library.
//
//     library                        reader                 its child, one for each file
//       | -- request, 2 descriptors --> |                         |
//       |                               | ------- fork ---------> | limits, filter of system calls
//       | <------------------ a name, on the socket for files --- |
//       | -- a descriptor, or none -----------------------------> |
//       |                               | <------- ends --------- | the answer is in the first descriptor
//       | <------- how it ended ------- |
//       | seals the answer, maps it, looks at it (mesh_answer.c)
//
// The reader is a program inside the library (reader/mesh_reader.c): it is written to memory that has no name
// and started from there, so that nothing has to be installed or found. It lives as long as the load. The
// child has no way to the socket of requests: how it ended is what the reader says, not the child. The answer
// is sealed before it is looked at: whoever still holds the descriptor cannot change it behind our back.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spec/mesh_file.h"
#include "understudy/pace.h"

// The program's bytes, and how many.
extern const uint8_t usi_mesh_reader[];
extern const uint64_t usi_mesh_reader_size;
__asm__(".section .rodata\n"
        ".hidden usi_mesh_reader\n.global usi_mesh_reader\n"
        ".hidden usi_mesh_reader_size\n.global usi_mesh_reader_size\n"
        ".balign 8\n"
        "usi_mesh_reader: .incbin \"" US_MESH_READER "\"\n"
        ".Lusi_mesh_reader_end: .balign 8\n"
        "usi_mesh_reader_size: .quad .Lusi_mesh_reader_end - usi_mesh_reader\n"
        ".previous\n");

// Limits of one file. Assimp needs some ten times the bytes of a file; what is small may have them all.
enum {
    SMALL = 10 << 20,    // bytes of a file
    MEMORY = 448 << 20,  // of a small one: address space of the child, with the 100 MB of Assimp's libraries
    MEMORY_PER_BYTE = 32,  // and for each byte beyond
    ANSWER = 160 << 20,    // bytes that the answer to a small one may have
    ANSWER_PER_BYTE = 12,
    SECONDS = 9,                 // of a small one
    BYTES_PER_SECOND = 2 << 20,  // beyond it
    MAX_WISH = 1000,             // files that one mesh may ask for
};

static const float crease_deg = 35;  // where normals are made, edges sharper than this stay edges: a machined
                                     // part has its chamfers at 45 degrees

static us_status fail(usi_reader *r, const xmlNode *node, const char *path, const char *remedy,
                      const char *what) {
    return usi_fail(r, US_ERR_MESH, node, remedy, "the mesh \"%.200s\" %.250s", path, what);
}

static const char *const again =
    "write it again from the program that made it; Blender opens most damaged files";

// ---------------------------------------------------------------- start and end

// The program in memory, as a descriptor that is not the one it will find its socket at. -1: errno says why.
static int program_fd(void) {
    int fd = memfd_create("understudy-mesh-reader", MFD_CLOEXEC);
    if (fd < 0) return -1;
    uint64_t done = 0;
    while (done < usi_mesh_reader_size) {
        ssize_t n = write(fd, usi_mesh_reader + done, usi_mesh_reader_size - done);
        if (n <= 0) break;
        done += (uint64_t)n;
    }
    int moved = done == usi_mesh_reader_size ? fcntl(fd, F_DUPFD_CLOEXEC, 10) : -1;
    int why = errno;
    close(fd);
    errno = why;
    return moved;
}

// 0, or why not.
static int spawn(int program, int socket, pid_t *out_pid) {
    char path[64], name[] = "understudy-mesh-reader", *argv[] = {name, NULL};
    snprintf(path, sizeof path, "/proc/self/fd/%d", program);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGTERM);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGALRM);
    if (posix_spawn_file_actions_init(&files)) return ENOMEM;
    if (posix_spawnattr_init(&attributes)) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&files, socket, 3);
    // Nothing of what it or Assimp says reaches the terminal: the library prints nothing.
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_addopen(&files, i, "/dev/null", i == 0 ? O_RDONLY : O_WRONLY, 0);
    int why = posix_spawn(out_pid, path, &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return why;
}

static us_status fail_start(usi_reader *r, const xmlNode *node, const char *path, int why) {
    return usi_fail(
        r, US_ERR_MESH, node,
        "meshes are read by a process of its own, which needs /proc, memfd_create and libassimp: allow "
        "them here (docs/security-files.md)",
        "the mesh \"%.200s\" cannot be read: its reader cannot be started: %s", path, strerror(why));
}

static us_status start(usi_reader *r, const xmlNode *node, const char *path) {
    if (r->mesh_pid) return US_OK;
    int ends[2] = {-1, -1};
    pid_t pid = 0;
    int program = program_fd();
    int why = program < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ? errno : 0;
    // Not below 4: the child's end becomes 3 in the new process before the others are closed.
    if (!why) why = spawn(program, ends[1], &pid);
    if (program >= 0) close(program);
    if (ends[1] >= 0) close(ends[1]);
    if (why) {
        if (ends[0] >= 0) close(ends[0]);
        return fail_start(r, node, path, why);
    }
    r->mesh_pid = (int)pid;
    r->mesh_socket = ends[0];
    return US_OK;
}

void usi_mesh_child_end(usi_reader *r) {
    if (!r->mesh_pid) return;
    close(r->mesh_socket);
    kill((pid_t)r->mesh_pid, SIGKILL);
    while (waitpid((pid_t)r->mesh_pid, NULL, 0) < 0 && errno == EINTR)
        ;
    r->mesh_pid = r->mesh_socket = 0;
}

// ---------------------------------------------------------------- files that a mesh names

// The folder of `path` with a slash at its end, as it really is. False: there is none.
static bool folder_of(const char *path, char out[PATH_MAX + 1]) {
    char *real = realpath(path, out), *slash = real ? strrchr(out, '/') : NULL;
    if (slash) slash[1] = 0;
    return slash != NULL;
}

static int open_regular(const char *path) {
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

int usi_mesh_open_beside(const char *mesh, const char *name) {
    char real[PATH_MAX + 1], folder[PATH_MAX + 1], beside[PATH_MAX + 1];
    if (!realpath(name, real)) return -1;
    // Where links stand in for the files of a source tree, the folder is that of the file itself; or that of
    // the link.
    const char *slash = strrchr(mesh, '/');
    snprintf(beside, sizeof beside, "%.*s.", slash ? (int)(slash - mesh + 1) : 0, mesh);
    bool is_beneath = folder_of(mesh, folder) && strncmp(real, folder, strlen(folder)) == 0;
    if (!is_beneath && realpath(beside, folder)) {
        size_t n = strlen(folder);
        is_beneath = strncmp(real, folder, n) == 0 && (real[n] == '/' || folder[n - 1] == '/');
    }
    return is_beneath ? open_regular(real) : -1;
}

// ---------------------------------------------------------------- one request

static bool send_with(int socket, const void *message, size_t length, const int *fds, size_t n_fd) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {{0}};
    struct iovec part = {.iov_len = length};
    memcpy(&part.iov_base, &message, sizeof message);  // which is only read
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (n_fd > 0) {
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(n_fd * sizeof(int));
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(n_fd * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), fds, n_fd * sizeof(int));
    }
    return sendmsg(socket, &m, MSG_NOSIGNAL) == (ssize_t)length;
}

// Answers one request for a file. False: the child has ended, or says what it should not.
static bool serve_wish(int socket, const char *mesh) {
    usi_mesh_file_request request;
    if (recv(socket, &request, sizeof request, MSG_DONTWAIT) != (ssize_t)sizeof request) return false;
    request.path[sizeof request.path - 1] = 0;
    int fd = strcmp(request.path, mesh) == 0 ? open_regular(mesh) : usi_mesh_open_beside(mesh, request.path);
    bool is_sent = send_with(socket, "", 1, &fd, fd >= 0);
    if (fd >= 0) close(fd);
    return is_sent;
}

typedef enum ending { ENDED, REFUSED_TO_END, READER_GONE } ending;

// Serves files until the child has ended.
static ending serve(int control, int files, const char *mesh, uint32_t seconds, int *out_status) {
    const int64_t until = us_clock_ns() + ((int64_t)USI_MESH_PATIENCE * seconds + 3) * 1000000000;
    int n_wish = 0;
    for (;;) {
        int64_t left = (until - us_clock_ns()) / 1000000;
        struct pollfd at[2] = {{control, POLLIN, 0}, {n_wish < MAX_WISH ? files : -1, POLLIN, 0}};
        int n = left > 0 ? poll(at, 2, (int)left) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return REFUSED_TO_END;
        if (at[1].revents) {
            n_wish = serve_wish(files, mesh) ? n_wish + 1 : MAX_WISH;
        } else if (at[0].revents) {
            return recv(control, out_status, sizeof *out_status, 0) == (ssize_t)sizeof *out_status
                       ? ENDED
                       : READER_GONE;
        }
    }
}

static us_status fail_status(usi_reader *r, const xmlNode *node, const usi_mesh_request *q, int status) {
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    char what[200];
    if (signal == SIGXCPU || signal == SIGALRM || signal == SIGKILL) {
        snprintf(what, sizeof what,
                 "takes more than %u s of the processor to be read: it is damaged, or was made to harm",
                 q->seconds);
    } else if (signal == SIGXFSZ || code == 101) {
        snprintf(what, sizeof what, "unpacks to more than %llu MB: it is damaged, or was made to harm",
                 (unsigned long long)(q->answer >> 20));
    } else if (signal) {
        snprintf(
            what, sizeof what,
            "cannot be read: its reader ended by signal %d, within %llu MB of memory: it is damaged, or was "
            "made to harm",
            signal, (unsigned long long)(q->memory >> 20));
    } else {
        return usi_fail(r, US_ERR_MESH, node, "allow seccomp filters here (docs/security-files.md)",
                        "the mesh \"%.200s\" cannot be read: its reader cannot lock itself up (code %d)",
                        q->path, code);
    }
    return fail(r, node, q->path, again, what);
}

static us_status take_answer(usi_reader *r, const xmlNode *node, const char *path, int fd,
                             usi_mesh_block *out) {
    struct stat about;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) || fstat(fd, &about) ||
        about.st_size < (off_t)sizeof(usi_mesh_head))
        return fail(r, node, path, again, "cannot be read: its reader gave no answer");
    void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) return usi_fail_memory(r);
    *out = (usi_mesh_block){bytes, (size_t)about.st_size};
    const usi_mesh_refusal *refusal = bytes;
    if (refusal->magic != USI_MESH_REFUSAL_MAGIC) return US_OK;
    char why[sizeof refusal->why + 1] = "cannot be read";
    if (out->length >= sizeof *refusal)
        snprintf(why, sizeof why, "%.*s", (int)sizeof refusal->why, refusal->why);
    return fail(r, node, path, again, why);
}

static void set_limits(usi_mesh_request *q, int64_t size) {
    const uint64_t beyond = size > SMALL ? (uint64_t)(size - SMALL) : 0;
    q->memory = MEMORY + beyond * MEMORY_PER_BYTE;
    q->answer = ANSWER + beyond * ANSWER_PER_BYTE;
    q->seconds = (uint32_t)(SECONDS + beyond / BYTES_PER_SECOND);
}

us_status usi_mesh_ask(usi_reader *r, const xmlNode *node, const char *path, int64_t size, uint32_t steps,
                       enum usi_mesh_looks looks, usi_mesh_block *out) {
    *out = (usi_mesh_block){0};
    usi_mesh_request q = {.steps = steps, .looks = looks, .crease_deg = crease_deg};
    set_limits(&q, size);
    if (snprintf(q.path, sizeof q.path, "%s", path) >= (int)sizeof q.path)
        return fail(r, node, path, "use a shorter path", "has a path that is too long");
    us_status status = start(r, node, path);
    if (status) return status;
    int answer = memfd_create("mesh", MFD_CLOEXEC | MFD_ALLOW_SEALING), ends[2] = {-1, -1}, how = 0;
    int why = answer < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ? errno : 0;
    ending end = READER_GONE;
    if (!why && send_with(r->mesh_socket, &q, sizeof q, (const int[]){answer, ends[1]}, 2)) {
        close(ends[1]);
        ends[1] = -1;
        end = serve(r->mesh_socket, ends[0], path, q.seconds, &how);
    }
    if (why || end == READER_GONE) {
        status = fail_start(r, node, path, why ? why : ENOEXEC);
    } else {
        if (end == REFUSED_TO_END) how = SIGKILL;
        status = how ? fail_status(r, node, &q, how) : take_answer(r, node, path, answer, out);
    }
    if (end != ENDED) usi_mesh_child_end(r);
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) close(ends[i]);
    }
    if (answer >= 0) close(answer);
    if (status) usi_mesh_block_release(out);
    return status;
}

void usi_mesh_block_release(usi_mesh_block *b) {
    if (b->bytes) munmap(b->bytes, b->length);
    *b = (usi_mesh_block){0};
}
