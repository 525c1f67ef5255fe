// The doctor looks at the programs of this computer that have DDS inside, for those that cannot hear us.
//
// Discovery shows who was found, and nothing of the others. The kernel knows them: a program has a library of
// DDS mapped, and the environment that it was started with says where it looks. Programs of other users
// cannot be looked at, and are left out.
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

enum { MAX_ENVIRONMENT = 1 << 17, MAX_ELSEWHERE = 4 };

typedef struct process {
    int pid;
    char name[64];
    char environment[MAX_ENVIRONMENT];  // texts "NAME=VALUE", each ended by 0, the last one empty
} process;

static size_t read_all(int pid, const char *what, char *out, size_t cap) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
    FILE *file = fopen(path, "r");
    const size_t n = file ? fread(out, 1, cap - 2, file) : 0;
    if (file) fclose(file);
    out[n] = out[n + 1] = 0;
    return n;
}

static bool has_dds(int pid) {
    static const char *const libraries[] = {"/libddsc", "/libfastrtps", "/libfastdds", "/librmw_"};
    char path[64], line[4400];
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "r");
    while (file && !has && fgets(line, sizeof line, file)) {
        for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
            has = has || strstr(line, libraries[i]) != NULL;
    }
    if (file) fclose(file);
    return has;
}

// The value of a variable of its environment; "" when it has none.
static const char *variable(const process *p, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = p->environment; at[0]; at += strlen(at) + 1) {
        if (strncmp(at, name, n) == 0 && at[n] == '=') return at + n + 1;
    }
    return "";
}

static bool is_in_our_network(int pid) {
    char path[64];
    struct stat theirs, ours;
    snprintf(path, sizeof path, "/proc/%d/ns/net", pid);
    return stat(path, &theirs) || stat("/proc/self/ns/net", &ours) || theirs.st_ino == ours.st_ino;
}

// Why it does not hear us. A program on another domain, or in a network of its own, is most likely meant so.
static void examine(cli_doctor *d, const process *p, int *n_elsewhere) {
    char where[192];
    snprintf(where, sizeof where, "%s (process %d)", p->name, p->pid);
    const int domain = atoi(variable(p, "ROS_DOMAIN_ID"));
    const char *range = variable(p, "ROS_AUTOMATIC_DISCOVERY_RANGE"),
               *rmw = variable(p, "RMW_IMPLEMENTATION");
    const bool has_network = is_in_our_network(p->pid);
    // A few of those tell enough.
    if ((!has_network || domain != d->def.domain) && (*n_elsewhere)++ >= MAX_ELSEWHERE) return;
    if (!has_network) {
        cli_doctor_add(d, CLI_NOTE, where,
                       "share the network (docker run --network host), or set "
                       "ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET on both sides",
                       "it does not hear us: it has a network of its own, as programs in containers do");
    } else if (domain != d->def.domain) {
        cli_doctor_add(d, CLI_NOTE, where, "give both the same ROS_DOMAIN_ID",
                       "it does not hear us: it was started on domain %d, and this is domain %d", domain,
                       (int)d->def.domain);
    } else if (strcmp(range, "OFF") == 0) {
        cli_doctor_add(d, CLI_WARNING, where, "start it with another ROS_AUTOMATIC_DISCOVERY_RANGE",
                       "it does not hear us: its ROS_AUTOMATIC_DISCOVERY_RANGE is OFF");
    } else if (strstr(rmw, "zenoh")) {
        cli_doctor_add(d, CLI_WARNING, where, "start it with RMW_IMPLEMENTATION=rmw_cyclonedds_cpp",
                       "it does not hear us: it uses %.60s, which is no DDS", rmw);
    } else if (variable(p, "ROS_DISCOVERY_SERVER")[0] && strstr(rmw, "cyclone") == NULL) {
        cli_doctor_add(d, CLI_WARNING, where, "start it without ROS_DISCOVERY_SERVER",
                       "it does not hear us: it asks the discovery server %.100s alone",
                       variable(p, "ROS_DISCOVERY_SERVER"));
    } else if ((strcmp(variable(p, "ROS_SECURITY_ENABLE"), "true") == 0) != (d->def.keys != NULL)) {
        cli_doctor_add(d, CLI_WARNING, where, "give both keys of one keystore, or none",
                       "it does not hear us: %s has keys (ROS_SECURITY_ENABLE), and the other has none",
                       d->def.keys ? "this one" : "it");
    } else if (d->def.range == US_BUS_LOOPBACK && !range[0] && !variable(p, "ROS_LOCALHOST_ONLY")[0]) {
        cli_doctor_add(d, CLI_NOTE, where, "set ROS_LOCALHOST_ONLY for both, or for none",
                       "it may not hear us: ROS_LOCALHOST_ONLY is set here, and not there");
    }
}

void cli_doctor_processes(cli_doctor *d) {
    DIR *list = opendir("/proc");
    process *p = cli_allocate(1, sizeof *p);
    int n_elsewhere = 0;
    // Nobody else reads this list.
    // cppcheck-suppress readdirCalled
    for (const struct dirent *at; list && (at = readdir(list)) != NULL;) {
        p->pid = isdigit((unsigned char)at->d_name[0]) ? atoi(at->d_name) : 0;
        if (p->pid <= 0 || p->pid == (int)getpid() || !has_dds(p->pid)) continue;
        if (!read_all(p->pid, "environ", p->environment, sizeof p->environment)) continue;
        read_all(p->pid, "comm", p->name, sizeof p->name);
        p->name[strcspn(p->name, "\n")] = 0;
        examine(d, p, &n_elsewhere);
    }
    if (list) closedir(list);
    free(p);
}
