// Reads mesh files by Assimp for the library, in a process of its own.
//
// The library carries this program inside itself and starts it when a scene has meshes
// (src/spec/mesh_child.c). It waits on descriptor 3 for requests; each is served by a child of its own, so
// that what one file has done to Assimp touches no other. A child has limits of memory and time, and a filter
// of system calls: it can compute, read files that are handed to it, write its answer, and nothing else. It
// opens nothing: names are sent to the library, which answers with a descriptor or with none.
#include <assimp/GltfMaterial.h>
#include <assimp/cfileio.h>
#include <assimp/cimport.h>
#include <assimp/config.h>
#include <assimp/material.h>
#include <assimp/mesh.h>
#include <assimp/postprocess.h>
#include <assimp/scene.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spec/mesh_answer.h"

enum {
    CONTROL = 3,       // requests come here
    NODE_DEPTH = 128,  // nesting of nodes inside a mesh file
    BUFFER = 1 << 16,
};

typedef struct job {
    usi_mesh_request request;
    int answer, files;  // descriptors
    const struct aiScene *scene;
    uint8_t buffer[BUFFER];
    size_t n_buffer;
    uint64_t n_written;
} job;

static _Noreturn void give_up(int code) { _exit(code); }

// ---- What the child may do ----

#if defined __x86_64__
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "say here which architecture the filter of system calls is for"
#endif

static void lock_up(void) {
    static const int allowed[] = {
        SYS_read,           SYS_write,   SYS_pread64,       SYS_lseek,        SYS_close,     SYS_mmap,
        SYS_munmap,         SYS_mremap,  SYS_mprotect,      SYS_brk,          SYS_madvise,   SYS_futex,
        SYS_sendmsg,        SYS_recvmsg, SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_rt_sigreturn,
        SYS_rt_sigprocmask, SYS_exit,    SYS_exit_group,
    };
    enum { N = sizeof allowed / sizeof allowed[0] };
    struct sock_filter f[N + 6];
    unsigned short n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < N; i++)
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i],
                                              (uint8_t)(N - i), 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        give_up(100);
}

static void limit(int what, uint64_t amount) {
    const struct rlimit l = {amount, amount};
    if (setrlimit(what, &l)) give_up(100);
}

static void set_limits(const usi_mesh_request *r) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_AS, r->memory);
    limit(RLIMIT_CPU, r->seconds);
    limit(RLIMIT_FSIZE, r->answer);
    // It cannot sleep: what takes longer by the clock waits for a busy machine.
    const struct itimerval clock = {.it_value = {.tv_sec = (time_t)(USI_MESH_PATIENCE * r->seconds)}};
    if (setitimer(ITIMER_REAL, &clock, NULL)) give_up(100);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL)) give_up(100);
}

// ---- Messages with descriptors ----

static int receive(int from, void *message, size_t length, int *out_fds, int n_fd) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec part = {message, length};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    do
        n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    for (int i = 0; i < n_fd; i++)
        out_fds[i] = -1;
    const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN((size_t)n_fd * sizeof(int)))
        memcpy(out_fds, CMSG_DATA(c), (size_t)n_fd * sizeof(int));
    return (int)n;
}

// ---- Files, by way of the library ----

typedef struct open_file {
    struct aiFile base;
    int fd;
    size_t at, size;
} open_file;

static size_t file_read(struct aiFile *f, char *to, size_t size, size_t count) {
    open_file *o = (open_file *)(void *)f->UserData;
    size_t left = o->at < o->size ? o->size - o->at : 0, wanted = 0;
    if (size == 0 || __builtin_mul_overflow(size, count, &wanted)) return 0;
    if (wanted > left) wanted = left / size * size;
    size_t done = 0;
    while (done < wanted) {
        ssize_t n = pread(o->fd, to + done, wanted - done, (off_t)(o->at + done));
        if (n <= 0) break;
        done += (size_t)n;
    }
    o->at += done;
    return done / size;
}
static size_t file_write(struct aiFile *f, const char *from, size_t size, size_t count) {
    (void)f;
    (void)from;
    (void)size;
    (void)count;
    return 0;
}
static size_t file_tell(struct aiFile *f) { return ((open_file *)(void *)f->UserData)->at; }
static size_t file_size(struct aiFile *f) { return ((open_file *)(void *)f->UserData)->size; }
static void file_flush(struct aiFile *f) { (void)f; }
static enum aiReturn file_seek(struct aiFile *f, size_t offset, enum aiOrigin origin) {
    open_file *o = (open_file *)(void *)f->UserData;
    size_t from = origin == aiOrigin_SET ? 0 : origin == aiOrigin_CUR ? o->at : o->size, to = 0;
    // Backwards is a number that wraps around.
    to = from + offset;
    if (to > o->size) return aiReturn_FAILURE;
    o->at = to;
    return aiReturn_SUCCESS;
}

static struct aiFile *file_open(struct aiFileIO *io, const char *name, const char *mode) {
    const job *j = (const job *)(void *)io->UserData;
    usi_mesh_file_request request = {{0}};
    if (mode[0] != 'r' || strchr(mode, '+') || strlen(name) >= sizeof request.path) return NULL;
    memcpy(request.path, name, strlen(name) + 1);
    struct iovec part = {&request, sizeof request};
    const struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (sendmsg(j->files, &m, MSG_NOSIGNAL) != (ssize_t)sizeof request) return NULL;
    char reply;
    int fd = -1;
    if (receive(j->files, &reply, 1, &fd, 1) != 1 || fd < 0) return NULL;
    const off_t size = lseek(fd, 0, SEEK_END);
    open_file *o = size >= 0 ? calloc(1, sizeof *o) : NULL;
    if (!o) {
        close(fd);
        return NULL;
    }
    o->fd = fd;
    o->size = (size_t)size;
    o->base = (struct aiFile){file_read,  file_write,           file_tell, file_size, file_seek,
                              file_flush, (aiUserData)(void *)o};
    return &o->base;
}
static void file_close(struct aiFileIO *io, struct aiFile *f) {
    (void)io;
    open_file *o = (open_file *)(void *)f->UserData;
    close(o->fd);
    free(o);
}

// ---- The answer ----

static void flush(job *j) {
    for (size_t done = 0; done < j->n_buffer;) {
        ssize_t n = write(j->answer, j->buffer + done, j->n_buffer - done);
        if (n <= 0) give_up(101);
        done += (size_t)n;
    }
    j->n_buffer = 0;
}

static void put(job *j, const void *bytes, size_t length) {
    const uint8_t *from = bytes;
    while (length > 0) {
        size_t n = sizeof j->buffer - j->n_buffer;
        if (n > length) n = length;
        memcpy(j->buffer + j->n_buffer, from, n);
        j->n_buffer += n;
        j->n_written += n;
        from += n;
        length -= n;
        if (j->n_buffer == sizeof j->buffer) flush(j);
    }
}

static void pad(job *j) {
    static const uint8_t nothing[8];
    put(j, nothing, (size_t)(usi_mesh_padded(j->n_written) - j->n_written));
}

static _Noreturn void refuse(job *j, const char *why) {
    usi_mesh_refusal r = {.magic = USI_MESH_REFUSAL_MAGIC};
    snprintf(r.why, sizeof r.why, "%s", why);
    put(j, &r, sizeof r);
    flush(j);
    give_up(0);
}

// ---- Materials ----

static float number_of(const struct aiMaterial *m, const char *key, unsigned type, unsigned index) {
    ai_real value = 0;
    unsigned n = 1;
    return aiGetMaterialFloatArray(m, key, type, index, &value, &n) == aiReturn_SUCCESS && n >= 1
               ? (float)value
               : NAN;
}

static void take_rgba(const struct aiMaterial *m, const char *key, unsigned type, unsigned index,
                      usi_mesh_material *out, usi_mesh_colour which) {
    struct aiColor4D c = {1, 1, 1, 1};
    if (aiGetMaterialColor(m, key, type, index, &c) != aiReturn_SUCCESS) return;
    const float rgba[4] = {(float)c.r, (float)c.g, (float)c.b, (float)c.a};
    memcpy(out->rgba[which], rgba, sizeof rgba);
    out->has_rgba[which] = 1;
}

static void take_text(char *out, size_t cap, const struct aiString *text) {
    size_t n = text->length < cap - 1 ? text->length : cap - 1;
    memcpy(out, text->data, n);
    out[n] = 0;
}

static const enum aiTextureType image_types[USI_MESH_N_IMAGE] = {
    [USI_MESH_BASE_COLOUR] = aiTextureType_BASE_COLOR, [USI_MESH_DIFFUSE] = aiTextureType_DIFFUSE,
    [USI_MESH_NORMALS] = aiTextureType_NORMALS,        [USI_MESH_ROUGHNESS] = aiTextureType_UNKNOWN,
    [USI_MESH_EMISSIVE] = aiTextureType_EMISSIVE,
};

static void put_material(job *j, const struct aiMaterial *from) {
    usi_mesh_material m = {.metallic = number_of(from, AI_MATKEY_METALLIC_FACTOR),
                           .roughness = number_of(from, AI_MATKEY_ROUGHNESS_FACTOR),
                           .opacity = number_of(from, AI_MATKEY_OPACITY),
                           .cutoff = number_of(from, AI_MATKEY_GLTF_ALPHACUTOFF)};
    struct aiString text;
    if (aiGetMaterialString(from, AI_MATKEY_NAME, &text) == aiReturn_SUCCESS) {
        take_text(m.name, sizeof m.name, &text);
        m.is_default_name = strcmp(text.data, AI_DEFAULT_MATERIAL_NAME) == 0;
    }
    for (int k = 0; k < USI_MESH_N_IMAGE; k++) {
        if (aiGetMaterialTexture(from, image_types[k], 0, &text, NULL, NULL, NULL, NULL, NULL, NULL) ==
            aiReturn_SUCCESS)
            take_text(m.image[k], sizeof m.image[k], &text);
    }
    take_rgba(from, AI_MATKEY_BASE_COLOR, &m, USI_MESH_RGBA_BASE);
    take_rgba(from, AI_MATKEY_COLOR_DIFFUSE, &m, USI_MESH_RGBA_DIFFUSE);
    take_rgba(from, AI_MATKEY_COLOR_EMISSIVE, &m, USI_MESH_RGBA_EMISSIVE);
    int two_sided = 0;
    unsigned n = 1;
    if (aiGetMaterialIntegerArray(from, AI_MATKEY_TWOSIDED, &two_sided, &n) == aiReturn_SUCCESS)
        m.is_two_sided = two_sided != 0;
    if (aiGetMaterialString(from, AI_MATKEY_GLTF_ALPHAMODE, &text) == aiReturn_SUCCESS)
        m.alpha = strcmp(text.data, "BLEND") == 0  ? USI_MESH_BLEND
                  : strcmp(text.data, "MASK") == 0 ? USI_MESH_MASK
                                                   : USI_MESH_OPAQUE;
    put(j, &m, sizeof m);
}

// Which set of texture coordinates the material's image uses.
static unsigned uv_channel(const job *j, unsigned index) {
    const struct aiScene *scene = j->scene;
    if (index >= scene->mNumMaterials) return 0;
    struct aiString name;
    unsigned channel = 0;
    const struct aiMaterial *m = scene->mMaterials[index];
    enum aiTextureType type = aiTextureType_DIFFUSE;
    if (j->request.looks == USI_MESH_LOOKS_GLTF && aiGetMaterialTextureCount(m, aiTextureType_BASE_COLOR) > 0)
        type = aiTextureType_BASE_COLOR;
    if (aiGetMaterialTexture(m, type, 0, &name, NULL, &channel, NULL, NULL, NULL, NULL) != aiReturn_SUCCESS)
        return 0;
    return channel < AI_MAX_NUMBER_OF_TEXTURECOORDS ? channel : 0;
}

// ---- Nodes and meshes ----

// Counts nodes, or writes them, or the meshes of each, in the order of the file.
typedef enum pass { COUNT, NODES, MESHES } pass;

static void walk(job *j, pass what, const struct aiNode *node, uint32_t parent, int depth, usi_mesh_head *n) {
    if (depth > NODE_DEPTH) refuse(j, "nests its nodes too deeply");
    const uint32_t self = n->n_node++;
    n->n_node_mesh += node->mNumMeshes;
    if (n->n_node > USI_MESH_MAX_NODE || n->n_node_mesh > USI_MESH_MAX_MESH ||
        node->mNumMeshes > USI_MESH_MAX_MESH)
        refuse(j, "has more than a hundred thousand nodes");
    const struct aiMatrix4x4 *t = &node->mTransformation;
    const usi_mesh_node own = {
        parent,
        node->mNumMeshes,
        {t->a1, t->a2, t->a3, t->a4, t->b1, t->b2, t->b3, t->b4, t->c1, t->c2, t->c3, t->c4}};
    if (what == NODES) put(j, &own, sizeof own);
    if (what == MESHES) put(j, node->mMeshes, node->mNumMeshes * sizeof(uint32_t));
    for (unsigned i = 0; i < node->mNumChildren; i++)
        walk(j, what, node->mChildren[i], self, depth + 1, n);
}

static usi_mesh_shape shape_of(const job *j, const struct aiMesh *mesh) {
    usi_mesh_shape s = {.n_vertex = mesh->mNumVertices, .material = mesh->mMaterialIndex};
    // Points and lines are left out.
    for (unsigned f = 0; f < mesh->mNumFaces; f++)
        s.n_triangle += mesh->mFaces[f].mNumIndices == 3;
    if (!j->request.looks) {
        s.material = 0;
        return s;
    }
    s.has_normals = mesh->mNormals != NULL;
    s.has_uv = mesh->mTextureCoords[uv_channel(j, mesh->mMaterialIndex)] != NULL;
    s.has_colours = mesh->mColors[0] != NULL;
    return s;
}

static void put_vectors(job *j, const struct aiVector3D *v, unsigned n, int width) {
    for (unsigned i = 0; i < n; i++) {
        const float xyz[3] = {(float)v[i].x, (float)v[i].y, (float)v[i].z};
        put(j, xyz, (size_t)width * sizeof(float));
    }
    pad(j);
}

static void put_mesh(job *j, const struct aiMesh *mesh) {
    const usi_mesh_shape s = shape_of(j, mesh);
    put_vectors(j, mesh->mVertices, s.n_vertex, 3);
    if (s.has_normals) put_vectors(j, mesh->mNormals, s.n_vertex, 3);
    if (s.has_uv) put_vectors(j, mesh->mTextureCoords[uv_channel(j, mesh->mMaterialIndex)], s.n_vertex, 2);
    for (unsigned i = 0; s.has_colours && i < s.n_vertex; i++) {
        const struct aiColor4D *c = &mesh->mColors[0][i];
        const float rgba[4] = {(float)c->r, (float)c->g, (float)c->b, (float)c->a};
        put(j, rgba, sizeof rgba);
    }
    for (unsigned f = 0; f < mesh->mNumFaces; f++) {
        if (mesh->mFaces[f].mNumIndices == 3) put(j, mesh->mFaces[f].mIndices, 3 * sizeof(uint32_t));
    }
    pad(j);
}

static void put_textures(job *j, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        const struct aiTexture *t = j->scene->mTextures[i];
        // Pixels without a format have a height.
        const uint64_t length = t->mHeight == 0 && t->pcData ? t->mWidth : 0;
        put(j, &length, sizeof length);
    }
    for (unsigned i = 0; i < n; i++) {
        const struct aiTexture *t = j->scene->mTextures[i];
        if (t->mHeight == 0 && t->pcData) put(j, t->pcData, t->mWidth);
        pad(j);
    }
}

static void put_scene(job *j) {
    const struct aiScene *s = j->scene;
    usi_mesh_head head = {.magic = USI_MESH_ANSWER_MAGIC, .n_mesh = s->mNumMeshes}, scratch = {0};
    if (j->request.looks) {
        head.n_material = s->mNumMaterials;
        head.n_texture = s->mNumTextures;
    }
    walk(j, COUNT, s->mRootNode, 0, 0, &head);
    put(j, &head, sizeof head);
    for (uint32_t i = 0; i < head.n_material; i++)
        put_material(j, s->mMaterials[i]);
    pad(j);
    put_textures(j, head.n_texture);
    walk(j, NODES, s->mRootNode, 0, 0, &scratch);
    pad(j);
    scratch = (usi_mesh_head){0};
    walk(j, MESHES, s->mRootNode, 0, 0, &scratch);
    pad(j);
    for (unsigned i = 0; i < s->mNumMeshes; i++) {
        const usi_mesh_shape shape = shape_of(j, s->mMeshes[i]);
        put(j, &shape, sizeof shape);
    }
    for (unsigned i = 0; i < s->mNumMeshes; i++)
        put_mesh(j, s->mMeshes[i]);
    flush(j);
}

// ---- One file ----

static _Noreturn void serve(job *j) {
    close(CONTROL);
    struct aiPropertyStore *properties = aiCreatePropertyStore();
    if (!properties) give_up(102);
    set_limits(&j->request);
    lock_up();
    aiSetImportPropertyInteger(properties, AI_CONFIG_IMPORT_COLLADA_IGNORE_UP_DIRECTION, 1);
    aiSetImportPropertyFloat(properties, AI_CONFIG_PP_GSN_MAX_SMOOTHING_ANGLE, j->request.crease_deg);
    struct aiFileIO io = {file_open, file_close, (aiUserData)(void *)j};
    j->request.path[sizeof j->request.path - 1] = 0;
    j->scene = aiImportFileExWithProperties(j->request.path, aiProcess_Triangulate | j->request.steps, &io,
                                            properties);
    if (!j->scene) {
        char why[220] = "cannot be read";
        const char *text = aiGetErrorString();
        if (text && strstr(text, "bad_alloc"))
            snprintf(why, sizeof why,
                     "needs more than %llu MB to be read: it is damaged, or was made to harm",
                     (unsigned long long)(j->request.memory >> 20));
        else if (text && text[0])
            snprintf(why, sizeof why, "cannot be read: %.200s", text);
        why[strcspn(why, "\n")] = 0;
        refuse(j, why);
    }
    if (!j->scene->mRootNode || j->scene->mFlags & AI_SCENE_FLAGS_INCOMPLETE) refuse(j, "cannot be read");
    put_scene(j);
    // Memory is given back by ending.
    give_up(0);
}

int main(void) {
    static job j;
    // Not to be ended by what ends the terminal's programs: the library ends it, by closing its socket.
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    close_range(CONTROL + 1, ~0U, 0);
    for (;;) {
        int fds[2] = {-1, -1}, status = 0;
        if (receive(CONTROL, &j.request, sizeof j.request, fds, 2) != (int)sizeof j.request) return 0;
        j.answer = fds[0];
        j.files = fds[1];
        pid_t child = fork();
        if (child == 0) serve(&j);
        close(fds[0]);
        close(fds[1]);
        if (child < 0 || waitpid(child, &status, 0) != child) status = -1;
        if (send(CONTROL, &status, sizeof status, MSG_NOSIGNAL) != (ssize_t)sizeof status) return 0;
    }
}
