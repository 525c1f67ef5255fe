// Mesh files of strangers: whatever is in them, the library goes on, and says which file it was.
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "spec/mesh_file.h"
#include "understudy/sim.h"

static uint64_t random_state;
static uint64_t roll(void) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 11;
}

static void write_bytes(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}
static void write_text(const char *path, const char *text) { write_bytes(path, text, strlen(text)); }

// The status of loading a world of one mesh.
static us_status load(const char *mesh, us_error *err) {
    char scene[600];
    int n = snprintf(
        scene, sizeof scene,
        "<scene name='s' version='1'><world><shape name='w' type='mesh' file='%s'/></world></scene>", mesh);
    us_spec *spec = NULL;
    us_status status = us_spec_load_text(scene, (size_t)n, "scene.xml", NULL, &spec, err);
    us_spec_destroy(spec);
    return status;
}

// ---------------------------------------------------------------- files

// A tetrahedron in each format.
static const char obj[] =
    "mtllib plain.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nusemtl red\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
static const char stl[] =
    "solid s\nfacet normal 0 0 -1\nouter loop\nvertex 0 0 0\nvertex 0 1 0\nvertex 1 0 0\nendloop\nendfacet\n"
    "facet normal 0 -1 0\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 0 1\nendloop\nendfacet\nendsolid "
    "s\n";
static const char dae[] =
    "<?xml version='1.0'?><COLLADA xmlns='http://www.collada.org/2005/11/COLLADASchema' version='1.4.1'>"
    "<asset><unit name='meter' meter='1'/><up_axis>Z_UP</up_axis></asset><library_geometries>"
    "<geometry id='g'><mesh><source id='p'><float_array id='a' count='12'>0 0 0 1 0 0 0 1 0 0 0 "
    "1</float_array>"
    "<technique_common><accessor source='#a' count='4' stride='3'><param name='X' type='float'/>"
    "<param name='Y' type='float'/><param name='Z' type='float'/></accessor></technique_common></source>"
    "<vertices id='v'><input semantic='POSITION' source='#p'/></vertices><triangles count='4'>"
    "<input semantic='VERTEX' source='#v' offset='0'/><p>0 2 1 0 1 3 0 3 2 1 2 "
    "3</p></triangles></mesh></geometry>"
    "</library_geometries><library_visual_scenes><visual_scene id='s'><node id='n'>"
    "<instance_geometry url='#g'/></node></visual_scene></library_visual_scenes>"
    "<scene><instance_visual_scene url='#s'/></scene></COLLADA>";
// `uri` of the buffer: 48 bytes of positions and 24 of indices.
static const char gltf[] =
    "{\"asset\":{\"version\":\"2.0\"},\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0}],"
    "\"meshes\":[{\"primitives\":[{\"attributes\":{\"POSITION\":0},\"indices\":1}]}],\"accessors\":[{"
    "\"bufferView\":0,"
    "\"componentType\":5126,\"count\":4,\"type\":\"VEC3\",\"min\":[0,0,0],\"max\":[1,1,1]},{\"bufferView\":1,"
    "\"componentType\":5123,\"count\":12,\"type\":\"SCALAR\"}],\"bufferViews\":[{\"buffer\":0,\"byteLength\":"
    "48},"
    "{\"buffer\":0,\"byteOffset\":48,\"byteLength\":24}],\"buffers\":[{\"byteLength\":72,\"uri\":\"%s\"}]}";
static const char inside[] =
    "data:application/octet-stream;base64,AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAAAAAAAAAAAAAAAIA/"
    "AAABAAIAAAACAAMAAAADAAEAAQADAAIA";

static void write_buffer(const char *path) {
    const float position[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    const uint16_t index[12] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3};
    uint8_t bytes[72];
    memcpy(bytes, position, 48);
    memcpy(bytes + 48, index, 24);
    write_bytes(path, bytes, sizeof bytes);
}

static void write_gltf(const char *path, const char *uri) {
    char text[2000];
    // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
    snprintf(text, sizeof text, gltf, uri);
    write_text(path, text);
}

static void whole_files_of_every_kind_are_read(void **state) {
    (void)state;
    us_error err = {0};
    write_text("good.obj", obj);
    write_text("good.stl", stl);
    write_text("good.dae", dae);
    write_gltf("good.gltf", inside);
    static const char *const names[] = {"good.obj", "good.stl", "good.dae", "good.gltf"};
    for (int i = 0; i < 4; i++) {
        if (load(names[i], &err)) fail_msg("%s: %s", names[i], err.message);
    }
}

static void files_that_a_mesh_names_stay_beneath_its_folder(void **state) {
    (void)state;
    us_error err = {0};
    char here[PATH_MAX], absolute[PATH_MAX + 20];
    assert_non_null(getcwd(here, sizeof here));
    mkdir("own", 0777);
    mkdir("own/deeper", 0777);
    write_buffer("outside.bin");
    write_buffer("own/beside.bin");
    write_buffer("own/deeper/below.bin");
    unlink("own/link.bin");
    assert_int_equal(symlink("../outside.bin", "own/link.bin"), 0);
    snprintf(absolute, sizeof absolute, "%s/outside.bin", here);
    const struct {
        const char *uri;
        bool is_read;
    } cases[] = {{"beside.bin", true},
                 {"deeper/below.bin", true},
                 {"./deeper/../beside.bin", true},
                 {"../outside.bin", false},
                 {absolute, false},
                 {"link.bin", false},
                 {"deeper/../../outside.bin", false},
                 {"/dev/zero", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_gltf("own/named.gltf", cases[i].uri);
        us_status status = load("own/named.gltf", &err);
        if ((status == US_OK) != cases[i].is_read)
            fail_msg("%s: %s", cases[i].uri, status ? err.message : "was read");
    }
    // A mesh that is a link itself, as in an installed workspace, still has what lies beside the file.
    mkdir("installed", 0777);
    unlink("installed/named.gltf");
    unlink("installed/beside.bin");
    assert_int_equal(symlink("../own/named.gltf", "installed/named.gltf"), 0);
    assert_int_equal(symlink("../own/beside.bin", "installed/beside.bin"), 0);
    write_gltf("own/named.gltf", "beside.bin");
    if (load("installed/named.gltf", &err)) fail_msg("%s", err.message);
}

static void what_would_take_all_memory_is_refused(void **state) {
    (void)state;
    us_error err = {0};
    char text[sizeof dae + 40];
    const char *at = strstr(dae, "triangles count='4'");
    assert_non_null(at);
    // Assimp makes room for as many faces as the file claims.
    snprintf(text, sizeof text, "%.*striangles count='400000000'%s", (int)(at - dae), dae,
             at + strlen("triangles count='4'"));
    write_text("bomb.dae", text);
    assert_int_equal(load("bomb.dae", &err), US_ERR_MESH);
    assert_non_null(strstr(err.message, "bomb.dae"));
    // Nodes that place one mesh again and again.
    enum { N = 60000 };
    char *many = malloc(N * 40 + sizeof gltf + sizeof inside);
    assert_non_null(many);
    const char *node = strstr(gltf, "{\"mesh\":0}"), *nodes = strstr(gltf, "[0]}]");
    size_t n = (size_t)sprintf(many, "%.*s[", (int)(nodes - gltf), gltf);
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(many + n, "%s%d", i ? "," : "", i);
    n += (size_t)sprintf(many + n, "%.*s", (int)(node - nodes - 2), nodes + 2);
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(many + n, "%s{\"mesh\":0}", i ? "," : "");
    // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
    n += (size_t)sprintf(many + n, node + strlen("{\"mesh\":0}"), inside);
    write_bytes("many.gltf", many, n);
    us_status status = load("many.gltf", &err);
    // Harmless so far: 240 000 triangles are less than a million.
    if (status) fail_msg("%s", err.message);
    free(many);
}

// ---------------------------------------------------------------- at random

static void change(uint8_t *bytes, size_t *length, size_t cap) {
    static const char *const words[] = {"-1", "4294967295", "1e308", "nan", "99999999",
                                        "0",  "\"",         "<",     "[[[["};
    size_t at = roll() % *length;
    switch (roll() % 5) {
    case 0:
        bytes[at] = (uint8_t)roll();
        break;
    case 1: {
        const char *word = words[roll() % (sizeof words / sizeof words[0])];
        for (size_t i = 0; word[i] && at + i < *length; i++)
            bytes[at + i] = (uint8_t)word[i];
        break;
    }
    case 2:  // cut off
        if (roll() % 4 == 0) *length = at + 1;
        break;
    case 3: {  // a part twice
        size_t n = 1 + roll() % 64;
        if (n > *length - at) n = *length - at;
        if (*length + n <= cap) {
            memmove(bytes + at + n, bytes + at, *length - at);
            *length += n;
        }
        break;
    }
    default: {  // a part taken out
        size_t n = 1 + roll() % 16;
        if (n >= *length - at) break;
        memmove(bytes + at, bytes + at + n, *length - at - n);
        *length -= n;
    }
    }
}

static void damaged_files_do_no_harm(void **state) {
    (void)state;
    const int n = getenv("US_LONG_TESTS") ? 100000 : 160;
    char text[2000];
    // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
    snprintf(text, sizeof text, gltf, inside);
    const char *const seeds[] = {obj, stl, dae, text}, *const names[] = {"bad.obj", "bad.stl", "bad.dae",
                                                                         "bad.gltf"};
    int n_read = 0;
    for (int i = 0; i < n; i++) {
        random_state = (uint64_t)i + 1;
        uint8_t bytes[8192];
        size_t length = strlen(seeds[i % 4]);
        memcpy(bytes, seeds[i % 4], length);
        for (uint64_t k = 1 + roll() % 6; k > 0; k--)
            change(bytes, &length, sizeof bytes);
        write_bytes(names[i % 4], bytes, length);
        us_error err = {0};
        us_status status = load(names[i % 4], &err);
        n_read += status == US_OK;
        if (!status) continue;
        if (status != US_ERR_MESH && status != US_ERR_LIMIT && status != US_ERR_VALUE &&
            status != US_ERR_MASS)
            fail_msg("seed %d: status %d, %s", i, (int)status, err.message);
        assert_non_null(strstr(err.message, names[i % 4]));
    }
    print_message("%d of %d were read\n", n_read, n);
    assert_true(n_read > n / 20 && n_read < n * 19 / 20);
}

// ---------------------------------------------------------------- the answer

// All that an answer gives access to.
static void use_answer(const usi_mesh_answer *a) {
    uint64_t hash = us_hash_bytes(0, a->materials, a->n_material * sizeof *a->materials);
    const uint8_t *at = a->textures;
    for (uint32_t i = 0; i < a->n_texture; i++) {
        hash = us_hash_bytes(hash, at, (size_t)a->texture_length[i]);
        at += usi_mesh_padded(a->texture_length[i]);
    }
    for (uint32_t i = 0; i < a->n_material; i++) {
        for (int k = 0; k < USI_MESH_N_IMAGE; k++)
            hash += strlen(a->materials[i].image[k]);
    }
    usi_mesh_cursor cursor = {0};
    usi_mesh_part part;
    while (usi_mesh_next_part(a, &cursor, &part)) {
        for (size_t k = 0; k < 3 * (size_t)part.n_triangle; k++) {
            const size_t i = part.corner[k];
            hash = us_hash_bytes(hash, part.position + 3 * i, 12);
            if (part.normal) hash = us_hash_bytes(hash, part.normal + 3 * i, 12);
            if (part.uv) hash = us_hash_bytes(hash, part.uv + 2 * i, 8);
            if (part.colour) hash = us_hash_bytes(hash, part.colour + 4 * i, 16);
        }
    }
    volatile uint64_t kept = hash;
    (void)kept;
}

static void a_lying_answer_is_refused_or_harmless(void **state) {
    (void)state;
    const int n = getenv("US_LONG_TESTS") ? 5000000 : 50000;
    us_load_def def = us_load_def_default();
    us_error err = {0};
    usi_reader reader;
    usi_reader_init(&reader, NULL, &def, &err);
    write_gltf("answered.gltf", inside);
    usi_mesh_block block;
    us_status status = usi_mesh_ask(&reader, NULL, "answered.gltf", 1000, 0x40, USI_MESH_LOOKS_GLTF, &block);
    if (status) fail_msg("%s", err.message);
    usi_mesh_answer a;
    const char *why = NULL;
    assert_true(usi_mesh_answer_check(block.bytes, block.length, &a, &why));
    assert_int_equal(a.n_mesh, 1);
    use_answer(&a);
    int n_taken = 0;
    for (int i = 0; i < n; i++) {
        random_state = (uint64_t)i + 1;
        // As long as it is, so that a byte too far is seen.
        size_t length = roll() % 8 ? block.length : roll() % (block.length + 1);
        uint32_t *bytes = malloc(length + 1);
        assert_non_null(bytes);
        memcpy(bytes, block.bytes, length);
        for (uint64_t k = 1 + roll() % 4; k > 0 && length >= 4; k--) {
            static const uint32_t odd[] = {0, 1, UINT32_MAX, 0x7fffffff, 0x80000000, 100000, 5, 0x55555556};
            // The counts stand at the start, and those of the meshes near the end.
            size_t at = roll() & 1 ? roll() % 6 : roll() % (length / 4);
            if (at < length / 4) bytes[at] = roll() & 3 ? odd[roll() % 8] : (uint32_t)roll();
        }
        if (usi_mesh_answer_check(bytes, length, &a, &why)) {
            n_taken++;
            use_answer(&a);
        }
        free(bytes);
    }
    print_message("%d of %d were taken\n", n_taken, n);
    assert_true(n_taken > n / 20 && n_taken < n);
    usi_mesh_block_release(&block);
    usi_reader_fini(&reader);
}

// ---------------------------------------------------------------- the process

static void read_status(pid_t pid, const char *name, char *out, size_t cap) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = 0;
    out[0] = 0;
    while (fgets(line, sizeof line, file) && n + strlen(line) < cap)
        n += (size_t)snprintf(out + n, cap - n, "%s", line);
    fclose(file);
}

static void send_request(int socket, const usi_mesh_request *q, const int fds[2]) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {{0}};
    struct iovec part = {(void *)(uintptr_t)q, sizeof *q};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), fds, 2 * sizeof(int));
    assert_int_equal(sendmsg(socket, &m, 0), sizeof *q);
}

// Holds a child while it waits for its file, and looks at it from outside.
static void the_child_is_locked_up_before_it_sees_a_file(void **state) {
    (void)state;
    extern char **environ;
    char name[] = "mesh-reader", *argv[] = {name, NULL}, text[8192];
    int control[2], files[2], answer = memfd_create("answer", 0), status = -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, control[1], 3);
    pid_t pid = 0;
    assert_int_equal(posix_spawn(&pid, US_BINARY_DIR "/generated/mesh-reader", &actions, NULL, argv, environ),
                     0);
    posix_spawn_file_actions_destroy(&actions);
    usi_mesh_request q = {.seconds = 5, .memory = UINT64_C(400) << 20, .answer = 1 << 20, .path = "held.obj"};
    send_request(control[0], &q, (const int[]){answer, files[1]});
    close(files[1]);
    usi_mesh_file_request request;
    assert_int_equal(recv(files[0], &request, sizeof request, 0), sizeof request);
    assert_string_equal(request.path, "held.obj");
    char children[64];
    snprintf(children, sizeof children, "task/%d/children", (int)pid);
    read_status(pid, children, text, sizeof text);
    pid_t child = (pid_t)atoi(text);  // NOLINT(cert-err34-c): asserted below
    assert_true(child > 1);
    read_status(child, "status", text, sizeof text);
    assert_non_null(strstr(text, "Seccomp:\t2"));
    assert_non_null(strstr(text, "NoNewPrivs:\t1"));
    read_status(child, "limits", text, sizeof text);
    const char *space = strstr(text, "Max address space");
    assert_non_null(space);
    assert_non_null(strstr(space, "419430400"));
    // Its two descriptors, and nothing else of ours: not the socket of requests either.
    snprintf(text, sizeof text, "/proc/%d/fd/3", (int)child);
    assert_int_not_equal(access(text, F_OK), 0);
    // No file: it refuses, and ends.
    assert_int_equal(send(files[0], "", 1, 0), 1);
    while (recv(files[0], &request, sizeof request, 0) == (ssize_t)sizeof request)
        send(files[0], "", 1, MSG_NOSIGNAL);
    assert_int_equal(recv(control[0], &status, sizeof status, 0), sizeof status);
    assert_int_equal(status, 0);
    close(control[0]);
    close(control[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(files[0]);
    close(answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_files_of_every_kind_are_read),
        cmocka_unit_test(files_that_a_mesh_names_stay_beneath_its_folder),
        cmocka_unit_test(what_would_take_all_memory_is_refused),
        cmocka_unit_test(damaged_files_do_no_harm),
        cmocka_unit_test(a_lying_answer_is_refused_or_harmless),
        cmocka_unit_test(the_child_is_locked_up_before_it_sees_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
