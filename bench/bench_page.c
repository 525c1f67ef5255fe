// The page as the step feels it: what clients that look at the world cost the thread that steps.
//
//     bench_page [SECONDS]
//
// Starts `understudy run scenes/default.xml` as a process of its own, and lets a process of WebSocket clients
// look at it over the loopback. Rounds without clients, with some and with demanding ones follow each other,
// so that the machine's moods fall on all alike. What counts is the processor time of the stepping thread,
// which other programs do not change much.
#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

enum { N_CLIENT = 20, N_ROUND = 5 };

// ---------------------------------------------------------------- WebSocket clients

// What the clients' process tells the one that measures.
typedef struct tally {
    _Atomic int64_t n_open, n_picture, n_byte;
} tally;

// A client that reads: frames of the server have no mask.
typedef struct client {
    int socket;
    unsigned char head[14];  // of the frame under way
    size_t n_head;
    uint64_t left;   // bytes of it to come
    bool is_binary;  // the frame, and its first byte is yet to come
} client;

static bool send_all(int socket, const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t n = send(socket, at, length, MSG_NOSIGNAL);
        if (n <= 0) return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

// A text of up to 64 KiB, with a mask of zeros.
static bool send_text(int socket, const char *text) {
    size_t n = strlen(text);
    unsigned char head[8] = {0x81, 0x80 | 126, (unsigned char)(n >> 8), (unsigned char)n};
    if (n < 126) {
        head[1] = (unsigned char)(0x80 | n);
        return send_all(socket, head, 2) && send_all(socket, "\0\0\0", 4) && send_all(socket, text, n);
    }
    return send_all(socket, head, 8) && send_all(socket, text, n);
}

static int join(int port, const char *const *wishes) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[1024], answer[1024];
    size_t n = 0;
    if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof to) != 0) return -1;
    snprintf(text, sizeof text,
             "GET / HTTP/1.1\r\nHost: localhost:%d\r\nUpgrade: websocket\r\nConnection: "
             "Upgrade\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: understudy.v1\r\n\r\n",
             port);
    if (!send_all(s, text, strlen(text))) return -1;
    // Byte by byte to the end of the answer: what follows are frames.
    while (n + 1 < sizeof answer && recv(s, answer + n, 1, 0) == 1) {
        answer[++n] = 0;
        if (strstr(answer, "\r\n\r\n")) break;
    }
    if (strncmp(answer, "HTTP/1.1 101", 12) != 0) return -1;
    for (int i = 0; wishes[i]; i++) {
        if (!send_text(s, wishes[i])) return -1;
    }
    return s;
}

static size_t head_size(const client *c) {
    if (c->n_head < 2) return 2;
    int length = c->head[1] & 127;
    return length == 126 ? 4 : length == 127 ? 10 : 2;
}

static void take_bytes(client *c, const unsigned char *bytes, size_t n, tally *t) {
    atomic_fetch_add(&t->n_byte, (int64_t)n);
    for (size_t i = 0; i < n;) {
        if (c->left > 0) {
            // A picture is a frame of poses: its first byte is 1.
            if (c->is_binary && bytes[i] == 1) atomic_fetch_add(&t->n_picture, 1);
            c->is_binary = false;
            uint64_t step = c->left < n - i ? c->left : n - i;
            c->left -= step;
            i += (size_t)step;
            continue;
        }
        c->head[c->n_head++] = bytes[i++];
        size_t size = head_size(c);
        if (c->n_head < size || c->n_head < 2) continue;
        c->left = size == 2 ? c->head[1] & 127u : 0;
        for (size_t k = 2; k < size; k++)
            c->left = c->left << 8 | c->head[k];
        c->is_binary = (c->head[0] & 15) == 2;
        c->n_head = 0;
    }
}

// A process of its own, so that its work is not the one that is measured.
static pid_t start_clients(int port, const char *const *wishes, tally *t) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    static client clients[N_CLIENT];
    static unsigned char bytes[1 << 16];
    struct pollfd wait[N_CLIENT];
    for (int i = 0; i < N_CLIENT; i++) {
        int s = join(port, wishes);
        if (s < 0) _exit(1);
        clients[i].socket = s;
        wait[i] = (struct pollfd){.fd = s, .events = POLLIN};
        atomic_fetch_add(&t->n_open, 1);
    }
    for (;;) {
        poll(wait, N_CLIENT, 1000);
        for (int i = 0; i < N_CLIENT; i++) {
            if (!wait[i].revents) continue;
            ssize_t n = recv(wait[i].fd, bytes, sizeof bytes, MSG_DONTWAIT);
            if (n > 0) {
                take_bytes(&clients[i], bytes, (size_t)n, t);
            } else if (n == 0) {
                wait[i].fd = -1;  // it was closed
                atomic_fetch_sub(&t->n_open, 1);
            }
        }
    }
}

// ---------------------------------------------------------------- rounds

typedef struct company {
    const char *name;
    const char *const *wishes;  // NULL: nobody looks
} company;

typedef struct round_ {
    double used;      // us: processor time of the stepping thread per tick
    double step;      // us: wall time of a step
    double pictures;  // per second and client
    double bytes;     // per second, of all
} round_;

// "page: http://localhost:8080/", which the program prints when it listens. -1 when it does not within ten
// seconds.
static int find_port(const char *path) {
    for (int i = 0; i < 1000; i++, bench_nap(0.01)) {
        char line[1000];
        int port = -1;
        FILE *file = fopen(path, "r");
        while (file && port < 0 && fgets(line, sizeof line, file)) {
            const char *at = strstr(line, "page: http://localhost:");
            if (at && strchr(at, '\n')) port = atoi(at + strlen("page: http://localhost:"));
        }
        if (file) fclose(file);
        if (port > 0) return port;
    }
    return -1;
}

static bool run_round(const company *c, int domain, int seconds, tally *t, round_ *out) {
    char time[16];
    snprintf(time, sizeof time, "%d", seconds);
    pid_t pid = bench_start_run(domain, "page.out",
                                (const char *const[]){US_SOURCE_DIR "/scenes/default.xml", "--set",
                                                      "motor_port=0", "--set", "lidar_rate=0.01", "--time",
                                                      time, "--port", "0", NULL});
    int port = find_port("page.out");
    if (port < 0) {
        printf("page      the program does not say where its page is\n");
        bench_print_file("page.out");
        bench_end_processes(&pid, 1);
        return false;
    }
    // The scene is loaded, and time begins. It ends after so many ticks, whether they came at their times or
    // not.
    double before = bench_used_by(pid);
    atomic_store(&t->n_open, 0);
    pid_t clients = c->wishes ? start_clients(port, c->wishes, t) : -1;
    bench_nap(0.5 * seconds);
    bool is_good = !c->wishes || atomic_load(&t->n_open) == N_CLIENT;
    if (!is_good)
        printf("page      only %d of %d clients are connected\n", (int)atomic_load(&t->n_open), N_CLIENT);
    int64_t n_picture = atomic_load(&t->n_picture), n_byte = atomic_load(&t->n_byte), from = bench_now_ns();
    // Ended, but not yet gone: its time can be read.
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    double elapsed = 1e-9 * (double)(bench_now_ns() - from);
    out->used = 1e6 * (bench_used_by(pid) - before) / (1000 * seconds);
    out->pictures = (double)(atomic_load(&t->n_picture) - n_picture) / elapsed / N_CLIENT;
    out->bytes = (double)(atomic_load(&t->n_byte) - n_byte) / elapsed;
    waitpid(pid, NULL, 0);
    if (clients > 0) bench_end_processes(&clients, 1);
    out->step = bench_step_time("page.out");
    return is_good;
}

int main(int argc, char **argv) {
    static const char *const some[] = {"{\"op\":\"view\",\"hz\":30}", NULL};
    static const char *const all[] = {
        "{\"op\":\"view\",\"hz\":60,\"contacts\":true,\"torques\":true,\"topics\":true}",
        "{\"op\":\"watch\",\"generation\":1,\"values\":[\"energy\",\"k10/base.x\",\"k10/base.y\",\"k10/"
        "base.z\"]}",
        NULL};
    static const company companies[] = {{"nobody looks", NULL},
                                        {"20 clients, 30 Hz", some},
                                        {"20 clients, 60 Hz, contacts, torques, values", all}};
    enum { N = sizeof companies / sizeof companies[0] };
    int seconds = argc > 1 ? atoi(argv[1]) : 8, domain = 1 + (int)(getpid() % 200);
    double used[N][N_ROUND], step[N][N_ROUND], pictures[N][N_ROUND], bytes[N][N_ROUND];
    char dir[] = "/tmp/bench_page.XXXXXX";
    if (seconds < 1 || !mkdtemp(dir) || chdir(dir) != 0) return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED) return 1;
    pid_t awake[BENCH_MAX_CPU];
    int n_awake = bench_keep_awake(awake);
    bool is_good = true;
    for (int i = 0; i < N_ROUND && is_good; i++) {
        for (int k = 0; k < N && is_good; k++) {
            round_ r = {0};
            is_good = run_round(&companies[k], domain, seconds, t, &r);
            used[k][i] = r.used;
            step[k][i] = r.step;
            pictures[k][i] = r.pictures;
            bytes[k][i] = r.bytes;
            if (is_good)
                printf("          round %d, %-46s processor time per tick %.2f us, wall time of a step %.2f "
                       "us, %.1f pictures/s each, %.0f kB/s\n",
                       i + 1, companies[k].name, r.used, r.step, r.pictures, 1e-3 * r.bytes);
        }
    }
    bench_end_processes(awake, n_awake);
    if (!is_good) return 1;
    double base_used = bench_median_of(used[0], N_ROUND), base_step = bench_median_of(step[0], N_ROUND);
    for (int k = 0; k < N; k++) {
        double u = bench_median_of(used[k], N_ROUND), s = bench_median_of(step[k], N_ROUND);
        printf("page      %-46s processor time per tick %.2f us (%.3f x), wall time of a step %.2f us (%.3f "
               "x), %.1f pictures/s each, %.0f kB/s, "
               "medians of %d\n",
               companies[k].name, u, u / base_used, s, s / base_step, bench_median_of(pictures[k], N_ROUND),
               1e-3 * bench_median_of(bytes[k], N_ROUND), N_ROUND);
    }
    return 0;
}
