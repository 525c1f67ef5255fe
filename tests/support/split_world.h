// One world in several processes, all of them in the test's own: what one says reaches the others through a
// queue, and the wall's clock is a number.
#ifndef TEST_SPLIT_WORLD_H
#define TEST_SPLIT_WORLD_H

#include "split/split__inner.h"

enum { SPLIT_MAX = 4 };

typedef struct split_net split_net;

typedef struct split_process {
    split_net *net;
    us_spec *spec;
    us_model *model;
    us_sim *sim;
    usi_split *split;  // NULL: it has the whole world
    us_status status;  // of the last poll or step
    us_error err;
    char said[4096];  // what it logged, line by line
    double *velocity;
} split_process;

typedef struct split_bytes {
    struct split_bytes *next;
    size_t length;
} split_bytes;

struct split_net {
    split_process process[SPLIT_MAX];
    int32_t n;
    split_bytes *first, **last;
    int64_t now_ns;
    double timeout;
    int32_t n_interval;
    // Velocities that the drives are told before a step, of all drives; may be NULL.
    void (*drive)(const us_model *model, int64_t tick, double *out_velocity);
};

// A scene in <scene> with a ground or none, of carts (models/cart.urdf) as split_cart writes them.
us_spec *split_load(const char *scene);
// "<robot name='NAME' ...>" of a cart at x, y whose wheels turn at `speed` rad/s.
const char *split_cart(const char *name, double x, double y, double speed);
extern const char split_head[],
    split_tail[];  // what stands around them: flat ground, materials, a step of 1 ms

void split_open(split_net *net);
// Another process; `own` NULL: with the whole world, alone. Its status says what came of it.
split_process *split_add(split_net *net, const char *scene, const char *own, double exchange);
// It is gone without a word.
void split_kill(split_process *p);
// All that are alive go on until each has come to the tick or failed. False when nobody came further for
// `seconds` of the wall's clock.
bool split_run(split_net *net, int64_t tick, double seconds);
void split_close(split_net *net);

// Where an object's root is and how fast, of a process; NaN when there is none.
us_vec3 split_position(const split_process *p, const char *link);
// Whether all positions and velocities of an object are the same bits in two processes.
bool split_same(const split_process *a, const split_process *b, const char *group);

#endif
