// ros_package PACKAGE VERSION DIRECTORY FILE.idl...
//
// Writes a package of our IDL as ROS 2 builds it, so that ROS programs know its types.
//     package.xml, CMakeLists.txt   what it needs, and its files
//     msg/NAME.msg                  a struct of PACKAGE::msg::dds_, with its comments
//     srv/NAME.srv                  a pair of PACKAGE::srv::dds_, without the client's id and number, which
//     ROS
//                                   adds itself
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "idl_read.h"

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Packages that types of this one are made of, by name.
static int find_dependencies(const char *package, const char *out[MAX_TYPE]) {
    int n = 0;
    for (int i = 0; i < n_type; i++) {
        if (strcmp(types[i].package, package) != 0) continue;
        for (int k = 0; k < types[i].n_field; k++) {
            const field *f = &types[i].fields[k];
            const char *other = f->kind == MESSAGE ? types[f->type].package : package;
            bool is_known = strcmp(other, package) == 0;
            for (int j = 0; j < n && !is_known; j++)
                is_known = strcmp(out[j], other) == 0;
            if (!is_known) out[n++] = other;
        }
    }
    qsort(out, (size_t)n, sizeof *out, compare_names);
    return n;
}

// ---- messages and services
// ----------------------------------------------------------------

static void add_comment(text *out, const char *comment) {
    while (comment && *comment) {
        const int n = (int)strcspn(comment, "\n");
        add(out, n ? "# %.*s\n" : "#\n", n, comment);
        comment += comment[n] ? n + 1 : n;
    }
}

static void add_type(text *out, const type *t) {
    add_comment(out, t->comment);
    if (t->comment) add(out, "\n");
    for (int i = n_request_id(t); i < t->n_field && !is_empty(t); i++) {
        const field *f = &t->fields[i];
        add_comment(out, f->comment);
        add_msg_member(out, f);
        if (f->note) add(out, "  # %s", f->note);
        add(out, "\n");
    }
}

static bool is_request(const type *t) {
    return t->is_service && strcmp(strrchr(t->name, '_'), "_Request") == 0;
}

// The other half of a service.
static const type *find_other(const type *t) {
    char full[sizeof t->full + 16];
    snprintf(full, sizeof full, "%.*s%s", (int)(strrchr(t->full, '_') - t->full), t->full,
             is_request(t) ? "_Response" : "_Request");
    int i = find_type(full);
    if (i < 0) die("%s needs %s beside it", t->full, full);
    return &types[i];
}

// "msg/NAME.msg", or "srv/NAME.srv" of a request; false for a reply, which stands in the file of its request.
static bool make_path(const type *t, char *out, size_t cap) {
    if (t->is_service) find_other(t);
    if (t->is_service && !is_request(t)) return false;
    const int n = (int)(t->is_service ? strrchr(t->name, '_') - t->name : (ptrdiff_t)strlen(t->name));
    const char *kind = t->is_service ? "srv" : "msg";
    snprintf(out, cap, "%s/%.*s.%s", kind, n, t->name, kind);
    return true;
}

static void write_type(const char *directory, const type *t) {
    char name[MAX_NAME + 16], path[1024];
    if (!make_path(t, name, sizeof name)) return;
    text out = {0};
    add(&out, "%s", "");
    add_type(&out, t);
    if (t->is_service) {
        add(&out, "---\n");
        add_type(&out, find_other(t));
    }
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        die("%s: a shorter path is needed", directory);
    write_file(path, &out);
    free(out.s);
}

// ---- what ROS needs to build them
// ----------------------------------------------------------------

static void write_manifest(const char *directory, const char *package, const char *version) {
    const char *dependencies[MAX_TYPE];
    const int n = find_dependencies(package, dependencies);
    char path[1024];
    text out = {0};
    add(&out,
        "<?xml version=\"1.0\"?>\n"
        "<!-- Made from idl/*.idl by tools/ros_package.c. -->\n"
        "<package format=\"3\">\n"
        "  <name>%s</name>\n"
        "  <version>%s</version>\n"
        "  <description>Messages and services of robots that Understudy simulates.</description>\n"
        "  <!-- There is no address of the project yet: who distributes the package writes theirs. -->\n"
        "  <maintainer email=\"maintainers@understudy.example\">Understudy maintainers</maintainer>\n"
        "  <license>Apache-2.0</license>\n\n"
        "  <buildtool_depend>ament_cmake</buildtool_depend>\n"
        "  <buildtool_depend>rosidl_default_generators</buildtool_depend>\n",
        package, version);
    for (int i = 0; i < n; i++)
        add(&out, "  <depend>%s</depend>\n", dependencies[i]);
    add(&out, "  <exec_depend>rosidl_default_runtime</exec_depend>\n"
              "  <member_of_group>rosidl_interface_packages</member_of_group>\n\n"
              "  <export>\n    <build_type>ament_cmake</build_type>\n  </export>\n"
              "</package>\n");
    snprintf(path, sizeof path, "%s/package.xml", directory);
    write_file(path, &out);
    free(out.s);
}

static void write_build(const char *directory, const char *package, const char *const *paths, int n_path) {
    const char *dependencies[MAX_TYPE];
    const int n = find_dependencies(package, dependencies);
    char path[1024];
    text out = {0};
    add(&out,
        "# Made from idl/*.idl by tools/ros_package.c.\n"
        "cmake_minimum_required(VERSION 3.16)\n"
        "project(%s)\n\n"
        "find_package(ament_cmake REQUIRED)\n"
        "find_package(rosidl_default_generators REQUIRED)\n",
        package);
    for (int i = 0; i < n; i++)
        add(&out, "find_package(%s REQUIRED)\n", dependencies[i]);
    add(&out, "\nrosidl_generate_interfaces(${PROJECT_NAME}\n");
    for (int i = 0; i < n_path; i++)
        add(&out, "%s  \"%s\"", i ? "\n" : "", paths[i]);
    if (n) add(&out, "\n  DEPENDENCIES");
    for (int i = 0; i < n; i++)
        add(&out, " %s", dependencies[i]);
    add(&out, ")\n\nament_export_dependencies(rosidl_default_runtime)\nament_package()\n");
    snprintf(path, sizeof path, "%s/CMakeLists.txt", directory);
    write_file(path, &out);
    free(out.s);
}

static void make_directory(const char *directory, const char *below) {
    char path[1024];
    if (snprintf(path, sizeof path, "%s%s", directory, below) >= (int)sizeof path)
        die("%s: a shorter path is needed", directory);
    if (mkdir(path, 0777) != 0 && errno != EEXIST) die("%s: cannot be made: %s", path, strerror(errno));
}

int main(int n_arg, char **args) {
    tool_name = "ros_package";
    if (n_arg < 5) die("ros_package PACKAGE VERSION DIRECTORY FILE.idl...");
    const char *package = args[1], *directory = args[3];
    for (int i = 4; i < n_arg; i++)
        read_file(args[i]);

    static char names[MAX_TYPE][MAX_NAME + 16];
    const char *paths[MAX_TYPE];
    int n = 0;
    bool has_service = false, has_message = false;
    for (int i = 0; i < n_type; i++) {
        if (strcmp(types[i].package, package) != 0) continue;
        if (!make_path(&types[i], names[n], sizeof names[n])) continue;
        has_service = has_service || types[i].is_service;
        has_message = has_message || !types[i].is_service;
        paths[n] = names[n];
        n++;
    }
    if (n == 0) die("no type of package %s stands in the files", package);
    qsort(paths, (size_t)n, sizeof *paths, compare_names);

    make_directory(directory, "");
    if (has_message) make_directory(directory, "/msg");
    if (has_service) make_directory(directory, "/srv");
    write_manifest(directory, package, args[2]);
    write_build(directory, package, paths, n);
    for (int i = 0; i < n_type; i++) {
        if (strcmp(types[i].package, package) == 0) write_type(directory, &types[i]);
    }
    return 0;
}
