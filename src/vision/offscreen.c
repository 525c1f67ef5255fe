// OpenGL by dlopen, in a context that has no window.
//
// The few functions and numbers of EGL and OpenGL that are used stand here, as their specifications have them
// (EGL 1.5, OpenGL 3.3 core), so that neither headers nor libraries are needed to build. A depth buffer of 32
// bits in floats decides what is in front; what a pixel sees is written as a number.
#include "vision/offscreen.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

// ---------------------------------------------------------------- EGL

typedef void *egl_handle;

#define EGL_FUNCTIONS(X)                                                                                    \
    X(void *, eglGetProcAddress, (const char *name))                                                        \
    X(int32_t, eglGetError, (void))                                                                         \
    X(egl_handle, eglGetDisplay, (void *native))                                                            \
    X(unsigned, eglInitialize, (egl_handle display, int32_t * major, int32_t * minor))                      \
    X(unsigned, eglBindAPI, (unsigned api))                                                                 \
    X(unsigned, eglChooseConfig,                                                                            \
      (egl_handle display, const int32_t *wanted, egl_handle *out, int32_t cap, int32_t *out_n))            \
    X(egl_handle, eglCreateContext,                                                                         \
      (egl_handle display, egl_handle config, egl_handle shared, const int32_t *wanted))                    \
    X(unsigned, eglDestroyContext, (egl_handle display, egl_handle context))                                \
    X(unsigned, eglMakeCurrent, (egl_handle display, egl_handle draw, egl_handle read, egl_handle context)) \
    X(unsigned, eglReleaseThread, (void))

enum {
    EGL_NONE = 0x3038,
    EGL_SURFACE_TYPE = 0x3033,
    EGL_PBUFFER_BIT = 1,
    EGL_RENDERABLE_TYPE = 0x3040,
    EGL_OPENGL_BIT = 8,
    EGL_OPENGL_API = 0x30A2,
    EGL_CONTEXT_MAJOR_VERSION = 0x3098,
    EGL_CONTEXT_MINOR_VERSION = 0x30FB,
    EGL_PLATFORM_SURFACELESS_MESA = 0x31DD,
    EGL_PLATFORM_DEVICE_EXT = 0x313F,
};

// ---------------------------------------------------------------- OpenGL

#define GL_FUNCTIONS(X)                                                                                     \
    X(unsigned, glGetError, (void))                                                                         \
    X(const char *, glGetString, (unsigned name))                                                           \
    X(void, glGetIntegerv, (unsigned name, int32_t *out))                                                   \
    X(uint32_t, glCreateShader, (unsigned kind))                                                            \
    X(void, glShaderSource, (uint32_t shader, int32_t n, const char *const *text, const int32_t *length))   \
    X(void, glCompileShader, (uint32_t shader))                                                             \
    X(uint32_t, glCreateProgram, (void))                                                                    \
    X(void, glAttachShader, (uint32_t program, uint32_t shader))                                            \
    X(void, glDeleteShader, (uint32_t shader))                                                              \
    X(void, glLinkProgram, (uint32_t program))                                                              \
    X(void, glGetProgramiv, (uint32_t program, unsigned name, int32_t *out))                                \
    X(void, glUseProgram, (uint32_t program))                                                               \
    X(int32_t, glGetUniformLocation, (uint32_t program, const char *name))                                  \
    X(void, glUniformMatrix4fv, (int32_t at, int32_t n, unsigned char is_transposed, const float *values))  \
    X(void, glGenVertexArrays, (int32_t n, uint32_t * out))                                                 \
    X(void, glBindVertexArray, (uint32_t array))                                                            \
    X(void, glGenBuffers, (int32_t n, uint32_t * out))                                                      \
    X(void, glBindBuffer, (unsigned target, uint32_t buffer))                                               \
    X(void, glBufferData, (unsigned target, ptrdiff_t size, const void *bytes, unsigned usage))             \
    X(void, glEnableVertexAttribArray, (uint32_t at))                                                       \
    X(void, glVertexAttribPointer,                                                                          \
      (uint32_t at, int32_t n, unsigned kind, unsigned char is_scaled, int32_t stride, const void *offset)) \
    X(void, glGenRenderbuffers, (int32_t n, uint32_t * out))                                                \
    X(void, glBindRenderbuffer, (unsigned target, uint32_t buffer))                                         \
    X(void, glRenderbufferStorage, (unsigned target, unsigned format, int32_t width, int32_t height))       \
    X(void, glGenFramebuffers, (int32_t n, uint32_t * out))                                                 \
    X(void, glBindFramebuffer, (unsigned target, uint32_t buffer))                                          \
    X(void, glFramebufferRenderbuffer, (unsigned target, unsigned at, unsigned kind, uint32_t buffer))      \
    X(unsigned, glCheckFramebufferStatus, (unsigned target))                                                \
    X(void, glViewport, (int32_t x, int32_t y, int32_t width, int32_t height))                              \
    X(void, glEnable, (unsigned what))                                                                      \
    X(void, glDepthFunc, (unsigned how))                                                                    \
    X(void, glClearBufferuiv, (unsigned buffer, int32_t which, const uint32_t *value))                      \
    X(void, glClearBufferfv, (unsigned buffer, int32_t which, const float *value))                          \
    X(void, glDrawElements, (unsigned kind, int32_t n, unsigned type, const void *offset))                  \
    X(void, glReadPixels,                                                                                   \
      (int32_t x, int32_t y, int32_t width, int32_t height, unsigned format, unsigned type, void *out))

enum {
    GL_RENDERER = 0x1F01,
    GL_MAX_RENDERBUFFER_SIZE = 0x84E8,
    GL_VERTEX_SHADER = 0x8B31,
    GL_FRAGMENT_SHADER = 0x8B30,
    GL_LINK_STATUS = 0x8B82,
    GL_ARRAY_BUFFER = 0x8892,
    GL_ELEMENT_ARRAY_BUFFER = 0x8893,
    GL_STREAM_DRAW = 0x88E0,
    GL_FLOAT = 0x1406,
    GL_UNSIGNED_INT = 0x1405,
    GL_RENDERBUFFER = 0x8D41,
    GL_FRAMEBUFFER = 0x8D40,
    GL_R32UI = 0x8236,
    GL_RED_INTEGER = 0x8D94,
    GL_DEPTH_COMPONENT32F = 0x8CAC,
    GL_COLOR_ATTACHMENT0 = 0x8CE0,
    GL_DEPTH_ATTACHMENT = 0x8D00,
    GL_FRAMEBUFFER_COMPLETE = 0x8CD5,
    GL_DEPTH_TEST = 0x0B71,
    GL_LESS = 0x0201,
    GL_COLOR = 0x1800,
    GL_DEPTH = 0x1801,
    GL_TRIANGLES = 4,
};

#define MEMBER(result, name, arguments) result(*name) arguments;
#define NAME(result, name, arguments) #name,
typedef struct egl_table {
    EGL_FUNCTIONS(MEMBER)
} egl_table;
typedef struct gl_table {
    GL_FUNCTIONS(MEMBER)
} gl_table;

struct usi_offscreen {
    us_allocator allocator;
    gl_table gl;
    egl_handle context;
    int32_t side, n_triangle, matrix_at;
    char renderer[120];
};

// ---------------------------------------------------------------- loading

static pthread_once_t once = PTHREAD_ONCE_INIT;
static egl_table egl;
static egl_handle display;
static char why[300];  // "" when there is a display

static egl_handle open_display(void) {
    typedef egl_handle get_platform_display(unsigned platform, void *native, const int32_t *wanted);
    typedef unsigned query_devices(int32_t cap, void **out, int32_t *out_n);
    get_platform_display *get;
    query_devices *query;
    // A pointer to data cannot be cast to one to a function in strict C; POSIX promises that its bits can be.
    void *symbol[2] = {egl.eglGetProcAddress("eglGetPlatformDisplayEXT"),
                       egl.eglGetProcAddress("eglQueryDevicesEXT")};
    memcpy(&get, &symbol[0], sizeof get);
    memcpy(&query, &symbol[1], sizeof query);
    if (get) {
        egl_handle d = get(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);
        if (d && egl.eglInitialize(d, NULL, NULL)) return d;
        void *device = NULL;
        int32_t n = 0;
        if (query && query(1, &device, &n) && n > 0) {
            d = get(EGL_PLATFORM_DEVICE_EXT, device, NULL);
            if (d && egl.eglInitialize(d, NULL, NULL)) return d;
        }
    }
    egl_handle d = egl.eglGetDisplay(NULL);
    return d && egl.eglInitialize(d, NULL, NULL) ? d : NULL;
}

static void load(void) {
    static const char *const names[] = {EGL_FUNCTIONS(NAME)};
    // Drivers have threads and tables that end with the process: their code stays for good.
    void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *text = dlerror();
        snprintf(why, sizeof why, "%s", text ? text : "dlopen failed");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && !why[0]; i++) {
        void *symbol = dlsym(library, names[i]);
        memcpy((char *)&egl + i * sizeof symbol, &symbol, sizeof symbol);
        if (!symbol) snprintf(why, sizeof why, "libEGL.so.1 has no function %s", names[i]);
    }
    dlclose(library);
    if (!why[0]) display = open_display();
    if (!why[0] && !display) snprintf(why, sizeof why, "no driver draws without a display");
}

static us_status fail(us_error *err, const char *reason) {
    us_error_set(err, US_ERR_IO, NULL,
                 "install a driver that draws by the processor (Debian: libegl1 and libgl1-mesa-dri)",
                 "pictures without a display are drawn by OpenGL through EGL: %s", reason);
    return US_ERR_IO;
}

static us_status load_gl(gl_table *gl, us_error *err) {
    static const char *const names[] = {GL_FUNCTIONS(NAME)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = egl.eglGetProcAddress(names[i]);
        if (!symbol) return fail(err, names[i]);
        memcpy((char *)gl + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return US_OK;
}

// ---------------------------------------------------------------- the context

static const char *const vertex_text = "#version 330 core\n"
                                       "layout(location = 0) in vec3 p;\n"
                                       "uniform mat4 view;\n"
                                       "void main() { gl_Position = view * vec4(p, 1.0); }\n";
static const char *const pixel_text = "#version 330 core\n"
                                      "layout(location = 0) out uint seen;\n"
                                      "void main() { seen = uint(gl_PrimitiveID) + 1u; }\n";

static uint32_t shader_of(const gl_table *gl, unsigned kind, const char *text) {
    const uint32_t shader = gl->glCreateShader(kind);
    gl->glShaderSource(shader, 1, &text, NULL);
    gl->glCompileShader(shader);
    return shader;
}

static us_status make_program(usi_offscreen *x, us_error *err) {
    const gl_table *gl = &x->gl;
    const uint32_t program = gl->glCreateProgram(),
                   shader[2] = {shader_of(gl, GL_VERTEX_SHADER, vertex_text),
                                shader_of(gl, GL_FRAGMENT_SHADER, pixel_text)};
    int32_t is_linked = 0;
    for (int k = 0; k < 2; k++)
        gl->glAttachShader(program, shader[k]);
    gl->glLinkProgram(program);
    for (int k = 0; k < 2; k++)
        gl->glDeleteShader(shader[k]);
    gl->glGetProgramiv(program, GL_LINK_STATUS, &is_linked);
    if (!is_linked) return fail(err, "the driver does not take shaders of version 3.30");
    gl->glUseProgram(program);
    x->matrix_at = gl->glGetUniformLocation(program, "view");
    return US_OK;
}

static us_status make_buffers(usi_offscreen *x, us_error *err) {
    static const unsigned target[2] = {GL_ARRAY_BUFFER, GL_ELEMENT_ARRAY_BUFFER},
                          format[2] = {GL_R32UI, GL_DEPTH_COMPONENT32F},
                          part[2] = {GL_COLOR_ATTACHMENT0, GL_DEPTH_ATTACHMENT};
    const gl_table *gl = &x->gl;
    uint32_t array, buffer[2], image[2], frame;
    int32_t most = 0;
    gl->glGetIntegerv(GL_MAX_RENDERBUFFER_SIZE, &most);
    if (x->side > most)
        return us_error_set(err, US_ERR_LIMIT, NULL, "ask for fewer pixels",
                            "a picture of %d pixels a side: this driver draws %d", (int)x->side, (int)most);
    gl->glGenVertexArrays(1, &array);
    gl->glBindVertexArray(array);
    gl->glGenBuffers(2, buffer);
    gl->glGenRenderbuffers(2, image);
    gl->glGenFramebuffers(1, &frame);
    gl->glBindFramebuffer(GL_FRAMEBUFFER, frame);
    for (int k = 0; k < 2; k++) {
        gl->glBindBuffer(target[k], buffer[k]);
        gl->glBindRenderbuffer(GL_RENDERBUFFER, image[k]);
        gl->glRenderbufferStorage(GL_RENDERBUFFER, format[k], x->side, x->side);
        gl->glFramebufferRenderbuffer(GL_FRAMEBUFFER, part[k], GL_RENDERBUFFER, image[k]);
    }
    gl->glEnableVertexAttribArray(0);
    gl->glVertexAttribPointer(0, 3, GL_FLOAT, 0, 3 * sizeof(float), NULL);
    gl->glEnable(GL_DEPTH_TEST);
    gl->glDepthFunc(GL_LESS);
    if (gl->glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE || gl->glGetError() != 0)
        return fail(err, "the driver has no pictures of whole numbers");
    return US_OK;
}

static us_status make_current(const usi_offscreen *x, us_error *err) {
    egl.eglBindAPI(EGL_OPENGL_API);
    return egl.eglMakeCurrent(display, NULL, NULL, x->context)
               ? US_OK
               : fail(err, "the context cannot be taken by this thread");
}

// Other threads may have it then.
static void let_go(void) { egl.eglMakeCurrent(display, NULL, NULL, NULL); }

static us_status make_context(usi_offscreen *x, us_error *err) {
    static const int32_t config_wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                                            EGL_OPENGL_BIT, EGL_NONE},
                         context_wanted[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 3,
                                             EGL_NONE};
    egl_handle config = NULL;
    int32_t n = 0;
    if (!egl.eglBindAPI(EGL_OPENGL_API) || !egl.eglChooseConfig(display, config_wanted, &config, 1, &n) ||
        n < 1)
        return fail(err, "the driver has no OpenGL");
    x->context = egl.eglCreateContext(display, config, NULL, context_wanted);
    if (!x->context) return fail(err, "the driver has no OpenGL 3.3");
    return make_current(x, err);
}

us_status usi_offscreen_create(int32_t side, const us_allocator *allocator, usi_offscreen **out,
                               us_error *err) {
    const us_allocator a = allocator ? *allocator : us_allocator_default();
    pthread_once(&once, load);
    if (why[0]) return fail(err, why);
    usi_offscreen *x = usi_alloc(&a, sizeof *x, _Alignof(usi_offscreen));
    if (!x) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a picture");
    *x = (usi_offscreen){.allocator = a, .side = side};
    us_status status = make_context(x, err);
    if (!status) status = load_gl(&x->gl, err);
    if (!status) status = make_program(x, err);
    if (!status) status = make_buffers(x, err);
    if (!status) {
        const char *text = x->gl.glGetString(GL_RENDERER);
        snprintf(x->renderer, sizeof x->renderer, "%s", text ? text : "");
        let_go();
        *out = x;
    } else {
        usi_offscreen_destroy(x);
    }
    return status;
}

void usi_offscreen_destroy(usi_offscreen *x) {
    if (!x) return;
    if (x->context) {
        let_go();
        egl.eglDestroyContext(display, x->context);
        egl.eglReleaseThread();
    }
    const us_allocator a = x->allocator;
    usi_release(&a, x, sizeof *x, _Alignof(usi_offscreen));
}

const char *usi_offscreen_renderer(const usi_offscreen *x) { return x->renderer; }

// ---------------------------------------------------------------- drawing

us_status usi_offscreen_set(usi_offscreen *x, int32_t n_point, const float (*points)[3], int32_t n_triangle,
                            const uint32_t (*corners)[3], us_error *err) {
    us_status status = make_current(x, err);
    if (status) return status;
    const gl_table *gl = &x->gl;
    gl->glBufferData(GL_ARRAY_BUFFER, (ptrdiff_t)((size_t)n_point * sizeof *points), points, GL_STREAM_DRAW);
    gl->glBufferData(GL_ELEMENT_ARRAY_BUFFER, (ptrdiff_t)((size_t)n_triangle * sizeof *corners), corners,
                     GL_STREAM_DRAW);
    x->n_triangle = n_triangle;
    if (gl->glGetError() != 0)
        status = us_error_set(err, US_ERR_MEMORY, NULL, NULL, "the driver has no memory for %d triangles",
                              (int)n_triangle);
    let_go();
    return status;
}

// From the origin's frame to clip coordinates: w is the depth, and depths from near to far are -1 to 1.
static void fill_matrix(const usi_view_window *v, float out[16]) {
    const double wide = v->right_limit - v->left_limit, high = v->high_limit - v->low_limit,
                 deep = v->far - v->near;
    const us_vec3 row[4] = {
        us_vec3_sub(us_vec3_scale(2 / wide, v->right),
                    us_vec3_scale((v->right_limit + v->left_limit) / wide, v->forward)),
        us_vec3_sub(us_vec3_scale(2 / high, v->up),
                    us_vec3_scale((v->high_limit + v->low_limit) / high, v->forward)),
        us_vec3_scale((v->far + v->near) / deep, v->forward),
        v->forward,
    };
    const double last[4] = {0, 0, -2 * v->far * v->near / deep, 0};
    for (int i = 0; i < 4; i++) {
        out[i] = (float)row[i].x;
        out[4 + i] = (float)row[i].y;
        out[8 + i] = (float)row[i].z;
        out[12 + i] = (float)last[i];
    }
}

us_status usi_offscreen_draw(usi_offscreen *x, const usi_view_window *view, uint32_t *out_pixels,
                             us_error *err) {
    if (view->width < 1 || view->height < 1 || view->width > x->side || view->height > x->side)
        return us_error_set(err, US_ERR_ARG, NULL, NULL, "a picture of %d by %d pixels", (int)view->width,
                            (int)view->height);
    us_status status = make_current(x, err);
    if (status) return status;
    const gl_table *gl = &x->gl;
    static const uint32_t none[4] = {0};
    static const float far = 1;
    float matrix[16];
    fill_matrix(view, matrix);
    gl->glViewport(0, 0, view->width, view->height);
    gl->glClearBufferuiv(GL_COLOR, 0, none);
    gl->glClearBufferfv(GL_DEPTH, 0, &far);
    gl->glUniformMatrix4fv(x->matrix_at, 1, 0, matrix);
    if (x->n_triangle > 0) gl->glDrawElements(GL_TRIANGLES, 3 * x->n_triangle, GL_UNSIGNED_INT, NULL);
    gl->glReadPixels(0, 0, view->width, view->height, GL_RED_INTEGER, GL_UNSIGNED_INT, out_pixels);
    const unsigned error = gl->glGetError();
    let_go();
    return error ? us_error_set(err, US_ERR_IO, NULL, NULL, "the driver could not draw (error 0x%x)", error)
                 : US_OK;
}
