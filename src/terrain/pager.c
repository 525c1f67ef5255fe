// Heights of a site, paged in tile by tile.
//
//     heights, row by row; # is in memory     A row of a tile is half a page long, so that neighbours share
//     +--------+--------+--------+            pages. Each page counts the rows of resident tiles that have a
//     |        |########|        |            part in it, and is released when there are none. The memory of
//     |        |########|        |            the tiles is therefore known exactly, and so is what one more
//     +--------+--------+--------+            would take.
//
// A tile is absent, wanted or resident. Clients name the tiles that they need, pin them, and wait until they
// are resident. The worker alone reads tiles, releases pages and changes what is resident, so that it may
// read the heights without a lock. Pinned tiles stay. The others stay as long as there is room for them, and
// are dropped least recently used first.
//
//     client   pin, want ---> [mutex] ---> wait .................. all resident: read without any lock
//     worker   ................ take ---> drop others, read, fill ---> [mutex] resident
#include "terrain/pager.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/memory.h"
#include "base/pages.h"
#include "terrain/site.h"

typedef enum tile_state { ABSENT, WANTED, RESIDENT, BROKEN, REFUSED } tile_state;

typedef struct paged_tile {
    tile_state state;
    bool is_urgent;
    int32_t n_pin;   // clients that need it
    int64_t wanted;  // the last request for it
} paged_tile;

// Array in reserved addresses, and the number of rows of resident tiles that each of its pages has a part of.
typedef struct paged {
    char *base;
    size_t bytes;
    size_t width, each;  // elements of a row, bytes of one
    uint16_t *n_use;
    size_t n_page;
} paged;

// Queue of tiles for the worker, first in, first out.
typedef struct tile_queue {
    int32_t *tile;
    int32_t first, n;
} tile_queue;

struct usi_pager {
    us_allocator allocator;
    us_site *site;
    int32_t layer;
    usi_window window;           // of the layer's samples
    int32_t n_x, n_y;            // samples
    int32_t u0, v0, n_u, n_v;    // tiles
    int32_t n_cell_x, n_cell_y;  // blocks of 8 by 8 cells
    size_t page, memory;
    paged height, extremes;
    usi_tile_reader *reader;  // the worker's, with the samples of a tile
    float *samples;
    bool *is_here;  // of each tile: the worker's own knowledge of what is resident
    void *block;
    size_t block_size;

    pthread_mutex_t mutex;
    pthread_cond_t work, done;
    pthread_t thread;
    bool has_mutex, has_work, has_done, has_thread, is_over;
    // Guarded by the mutex.
    paged_tile *tile;
    tile_queue urgent, ahead;
    int64_t now;  // counts requests
    usi_pager_info info;
    us_error error;  // of the last tile that could not be read
};

struct usi_pager_client {
    usi_pager *pager;
    size_t size;
    uint32_t *mark;  // of each tile: the last request that listed it
    uint32_t request;
    // Lists of tiles: needed and expected ones of this request, and of the last one.
    int32_t *need, *ahead, *pinned, *expected;
    int32_t n_need, n_ahead, n_pinned, n_expected;
    int64_t n_wait, n_request;
    bool is_met;  // the last request was fulfilled
};

// ---------------------------------------------------------------- pages

typedef enum page_use { COUNT, TAKE, GIVE } page_use;

// Counts, takes or releases the pages under rows j0 .. j1 of columns i0 .. i1. COUNT: those not in use; TAKE:
// uses them; GIVE: releases those that are no longer in use. Returns the number of pages that are new or were
// released.
static size_t use_pages(const usi_pager *p, paged *a, usi_window w, page_use what) {
    size_t n = 0, seen = SIZE_MAX, run = 0, run_end = 0;
    for (int32_t j = w.j0; j <= w.j1; j++) {
        size_t from = ((size_t)j * a->width + (size_t)w.i0) * a->each,
               to = ((size_t)j * a->width + (size_t)w.i1 + 1) * a->each;
        for (size_t page = from / p->page; page <= (to - 1) / p->page; page++) {
            bool is_changed;
            if (what == COUNT) {
                is_changed = a->n_use[page] == 0 && page != seen;
                seen = page;
            } else if (what == TAKE)
                is_changed = a->n_use[page]++ == 0;
            else
                is_changed = --a->n_use[page] == 0;
            n += is_changed;
            if (what != GIVE || !is_changed) continue;
            if (page != run_end) {
                if (run_end > run) usi_pages_drop(a->base + run * p->page, (run_end - run) * p->page);
                run = page;
            }
            run_end = page + 1;
        }
    }
    if (run_end > run) usi_pages_drop(a->base + run * p->page, (run_end - run) * p->page);
    return n;
}

// The samples of a tile.
static usi_window tile_window(const usi_pager *p, int32_t t) {
    int32_t x = (p->u0 + t % p->n_u) * US_SITE_TILE - p->window.i0,
            y = (p->v0 + t / p->n_u) * US_SITE_TILE - p->window.j0;
    usi_window w = {x, x + US_SITE_TILE - 1, y, y + US_SITE_TILE - 1};
    if (w.i0 < 0) w.i0 = 0;
    if (w.j0 < 0) w.j0 = 0;
    if (w.i1 > p->n_x - 1) w.i1 = p->n_x - 1;
    if (w.j1 > p->n_y - 1) w.j1 = p->n_y - 1;
    return w;
}

// The blocks of cells that have a sample in a window: block b has samples 8 b to 8 b + 8.
static usi_window block_window(const usi_pager *p, usi_window w) {
    const int32_t n = USI_EXTREMES_CELLS;
    usi_window b = {w.i0 > 0 ? (w.i0 - 1) / n : 0, w.i1 / n, w.j0 > 0 ? (w.j0 - 1) / n : 0, w.j1 / n};
    if (b.i1 > p->n_cell_x - 1) b.i1 = p->n_cell_x - 1;
    if (b.j1 > p->n_cell_y - 1) b.j1 = p->n_cell_y - 1;
    return b;
}

static size_t use_tile(usi_pager *p, int32_t t, page_use what) {
    usi_window w = tile_window(p, t);
    return (use_pages(p, &p->height, w, what) + use_pages(p, &p->extremes, block_window(p, w), what)) *
           p->page;
}

// ---------------------------------------------------------------- the worker

static int32_t tile_at(const usi_pager *p, int32_t i, int32_t j) {
    return ((j + p->window.j0) / US_SITE_TILE - p->v0) * p->n_u + (i + p->window.i0) / US_SITE_TILE - p->u0;
}

// Extremes of the blocks that tile t completes: all other tiles with samples of theirs are resident.
static void find_extremes(usi_pager *p, int32_t t) {
    usi_window b = block_window(p, tile_window(p, t));
    double(*extremes)[2] = (double(*)[2])(void *)p->extremes.base;
    const double *height = (const double *)(void *)p->height.base;
    for (int32_t v = b.j0; v <= b.j1; v++) {
        for (int32_t u = b.i0; u <= b.i1; u++) {
            const int32_t n = USI_EXTREMES_CELLS;
            int32_t i0 = u * n, j0 = v * n, i1 = i0 + n < p->n_x ? i0 + n : p->n_x - 1,
                    j1 = j0 + n < p->n_y ? j0 + n : p->n_y - 1;
            const int32_t corner[4] = {tile_at(p, i0, j0), tile_at(p, i1, j0), tile_at(p, i0, j1),
                                       tile_at(p, i1, j1)};
            bool is_whole = true;
            for (int k = 0; k < 4; k++)
                is_whole = is_whole && (corner[k] == t || p->is_here[corner[k]]);
            if (!is_whole) continue;
            double low = INFINITY, high = -INFINITY;
            for (int32_t j = j0; j <= j1; j++) {
                const double *row = height + (size_t)j * (size_t)p->n_x;
                for (int32_t i = i0; i <= i1; i++) {
                    low = fmin(low, row[i]);
                    high = fmax(high, row[i]);
                }
            }
            double *e = extremes[(size_t)v * (size_t)p->n_cell_x + (size_t)u];
            e[0] = low;
            e[1] = high;
        }
    }
}

static us_status fill_tile(usi_pager *p, int32_t t, us_error *err) {
    int32_t u = p->u0 + t % p->n_u, v = p->v0 + t / p->n_u, n_x = 0;
    us_status status = usi_site_read(p->site, p->reader, p->layer, 0, u, v, p->samples, err);
    if (status) return status;
    us_site_tile_size(p->site, p->layer, 0, u, v, &n_x, NULL);
    usi_window w = tile_window(p, t);
    double *height = (double *)(void *)p->height.base;
    for (int32_t j = w.j0; j <= w.j1; j++) {
        const float *from = p->samples + (ptrdiff_t)(j + p->window.j0 - v * US_SITE_TILE) * n_x +
                            (w.i0 + p->window.i0 - u * US_SITE_TILE);
        double *to = height + (size_t)j * (size_t)p->n_x + (size_t)w.i0;
        for (int32_t i = 0; i <= w.i1 - w.i0; i++)
            to[i] = (double)from[i];
    }
    find_extremes(p, t);
    return US_OK;
}

// With the mutex: the least recently used resident tile that is not pinned; -1 when there is none. What is
// read ahead takes no room from what was requested since.
static int32_t find_evictable(const usi_pager *p, bool is_urgent, int64_t before) {
    int32_t best = -1;
    for (int32_t t = 0; t < p->n_u * p->n_v; t++) {
        const paged_tile *x = &p->tile[t];
        if (x->state != RESIDENT || x->n_pin > 0 || (!is_urgent && x->wanted >= before)) continue;
        if (best < 0 || x->wanted < p->tile[best].wanted) best = t;
    }
    return best;
}

// With the mutex, which is released meanwhile: makes room for a tile. False when there is none.
static bool make_room(usi_pager *p, int32_t t) {
    while (p->info.bytes + use_tile(p, t, COUNT) > p->memory) {
        int32_t spare = find_evictable(p, p->tile[t].is_urgent, p->tile[t].wanted);
        if (spare < 0) return false;
        p->tile[spare].state = ABSENT;
        p->info.n_resident--;
        p->info.n_drop++;
        pthread_mutex_unlock(&p->mutex);
        p->is_here[spare] = false;
        size_t bytes = use_tile(p, spare, GIVE);
        pthread_mutex_lock(&p->mutex);
        p->info.bytes -= bytes;
    }
    return true;
}

static void read_tile(usi_pager *p, int32_t t) {
    if (!make_room(p, t)) {
        // A tile that is read ahead is requested again, and may find room then.
        p->tile[t].state = p->tile[t].is_urgent ? REFUSED : ABSENT;
        return;
    }
    pthread_mutex_unlock(&p->mutex);
    us_error err = {0};
    size_t bytes = use_tile(p, t, TAKE);
    us_status status = fill_tile(p, t, &err);
    if (status) use_tile(p, t, GIVE);
    p->is_here[t] = !status;
    pthread_mutex_lock(&p->mutex);
    if (status) {
        p->tile[t].state = BROKEN;
        p->error = err;
        return;
    }
    p->tile[t].state = RESIDENT;
    p->info.bytes += bytes;
    p->info.n_read++;
    p->info.n_resident++;
}

static int32_t take(tile_queue *q, int32_t cap) {
    int32_t t = q->tile[q->first];
    q->first = (q->first + 1) % cap;
    q->n--;
    return t;
}

static void *work(void *context) {
    usi_pager *p = context;
    const int32_t cap = 2 * p->n_u * p->n_v;
    pthread_mutex_lock(&p->mutex);
    while (!p->is_over) {
        if (p->urgent.n + p->ahead.n == 0) {
            pthread_cond_wait(&p->work, &p->mutex);
            continue;
        }
        int32_t t = take(p->urgent.n > 0 ? &p->urgent : &p->ahead, cap);
        // A tile that was read ahead and then became urgent is in both queues.
        if (p->tile[t].state != WANTED) continue;
        read_tile(p, t);
        pthread_cond_broadcast(&p->done);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

// ---------------------------------------------------------------- create, destroy

static bool make_paged(usi_pager *p, paged *a, int32_t width, int32_t rows, size_t each) {
    a->width = (size_t)width;
    a->each = each;
    a->n_page = ((size_t)width * (size_t)rows * each - 1) / p->page + 1;
    a->base = usi_pages_reserve(a->n_page * p->page);
    if (a->base) a->bytes = a->n_page * p->page;
    return a->base != NULL;
}

// Starts the thread with all signals blocked: those are for the program's own threads.
static bool start(usi_pager *p) {
    sigset_t all, before;
    sigfillset(&all);
    p->has_mutex = !pthread_mutex_init(&p->mutex, NULL);
    p->has_work = p->has_mutex && !pthread_cond_init(&p->work, NULL);
    p->has_done = p->has_work && !pthread_cond_init(&p->done, NULL);
    if (!p->has_done || pthread_sigmask(SIG_SETMASK, &all, &before)) return false;
    p->has_thread = !pthread_create(&p->thread, NULL, work, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return p->has_thread;
}

static us_status no_memory(us_error *err) {
    return us_error_set(err, US_ERR_MEMORY, NULL,
                        "give the field a smaller zone, or allow the program more addresses (ulimit -v)",
                        "no memory for the addresses of a site's heights");
}

us_status usi_pager_create(us_site *site, int32_t layer, usi_window window, size_t memory,
                           const us_allocator *allocator, usi_pager **out_pager, us_error *err) {
    usi_pager *p = usi_alloc(allocator, sizeof *p, USI_ALIGN);
    if (!p) {
        us_site_close(site);
        return no_memory(err);
    }
    *p = (usi_pager){.allocator = *allocator,
                     .site = site,
                     .layer = layer,
                     .window = window,
                     .memory = memory,
                     .page = usi_page_size()};
    p->info.memory = memory;
    p->n_x = window.i1 - window.i0 + 1;
    p->n_y = window.j1 - window.j0 + 1;
    p->u0 = window.i0 / US_SITE_TILE;
    p->v0 = window.j0 / US_SITE_TILE;
    p->n_u = window.i1 / US_SITE_TILE - p->u0 + 1;
    p->n_v = window.j1 / US_SITE_TILE - p->v0 + 1;
    p->n_cell_x = (p->n_x - 2) / USI_EXTREMES_CELLS + 1;
    p->n_cell_y = (p->n_y - 2) / USI_EXTREMES_CELLS + 1;
    bool ok = make_paged(p, &p->height, p->n_x, p->n_y, sizeof(double)) &&
              make_paged(p, &p->extremes, p->n_cell_x, p->n_cell_y, 2 * sizeof(double));
    size_t n = (size_t)p->n_u * (size_t)p->n_v, size = 0, at_tile = usi_carve(&size, n, sizeof(paged_tile));
    size_t at_height = usi_carve(&size, p->height.n_page, sizeof(uint16_t)),
           at_extremes = usi_carve(&size, p->extremes.n_page, sizeof(uint16_t));
    size_t at_queue = usi_carve(&size, 4 * n, sizeof(int32_t)),
           at_samples = usi_carve(&size, US_SITE_TILE * US_SITE_TILE, sizeof(float));
    size_t at_here = usi_carve(&size, n, sizeof(bool));
    p->block = ok ? usi_alloc(allocator, size, USI_ALIGN) : NULL;
    if (p->block) {
        p->block_size = size;
        memset(p->block, 0, size);
        char *block = p->block;
        p->tile = (paged_tile *)(void *)(block + at_tile);
        p->height.n_use = (uint16_t *)(void *)(block + at_height);
        p->extremes.n_use = (uint16_t *)(void *)(block + at_extremes);
        p->urgent.tile = (int32_t *)(void *)(block + at_queue);
        p->ahead.tile = p->urgent.tile + 2 * n;
        p->samples = (float *)(void *)(block + at_samples);
        p->is_here = (bool *)(void *)(block + at_here);
    }
    if (!p->block || usi_tile_reader_create(allocator, &p->reader) || !start(p)) {
        usi_pager_destroy(p);
        return no_memory(err);
    }
    *out_pager = p;
    return US_OK;
}

void usi_pager_destroy(usi_pager *p) {
    if (!p) return;
    if (p->has_thread) {
        pthread_mutex_lock(&p->mutex);
        p->is_over = true;
        pthread_cond_signal(&p->work);
        pthread_mutex_unlock(&p->mutex);
        pthread_join(p->thread, NULL);
    }
    if (p->has_done) pthread_cond_destroy(&p->done);
    if (p->has_work) pthread_cond_destroy(&p->work);
    if (p->has_mutex) pthread_mutex_destroy(&p->mutex);
    usi_tile_reader_destroy(p->reader);
    usi_pages_free(p->height.base, p->height.bytes);
    usi_pages_free(p->extremes.base, p->extremes.bytes);
    us_site_close(p->site);
    us_allocator a = p->allocator;
    usi_release(&a, p->block, p->block_size, USI_ALIGN);
    usi_release(&a, p, sizeof *p, USI_ALIGN);
}

double *usi_pager_heights(const usi_pager *pager) { return (double *)(void *)pager->height.base; }
double (*usi_pager_extremes(const usi_pager *pager))[2] { return (double(*)[2])(void *)pager->extremes.base; }

usi_pager_info usi_pager_get_info(usi_pager *pager) {
    pthread_mutex_lock(&pager->mutex);
    usi_pager_info info = pager->info;
    pthread_mutex_unlock(&pager->mutex);
    return info;
}

// ---------------------------------------------------------------- clients

us_status usi_pager_client_create(usi_pager *pager, usi_pager_client **out_client) {
    size_t n = (size_t)pager->n_u * (size_t)pager->n_v, size = sizeof(usi_pager_client),
           at = usi_carve(&size, 5 * n, sizeof(int32_t));
    usi_pager_client *c = usi_alloc(&pager->allocator, size, USI_ALIGN);
    if (!c) return US_ERR_MEMORY;
    memset(c, 0, size);
    c->pager = pager;
    c->size = size;
    c->mark = (uint32_t *)(void *)((char *)c + at);
    c->need = (int32_t *)(void *)(c->mark + n);
    c->ahead = c->need + n;
    c->pinned = c->ahead + n;
    c->expected = c->pinned + n;
    *out_client = c;
    return US_OK;
}

void usi_pager_client_destroy(usi_pager_client *client) {
    if (!client) return;
    usi_pager *p = client->pager;
    pthread_mutex_lock(&p->mutex);
    for (int32_t i = 0; i < client->n_pinned; i++)
        p->tile[client->pinned[i]].n_pin--;
    pthread_mutex_unlock(&p->mutex);
    us_allocator a = p->allocator;
    usi_release(&a, client, client->size, USI_ALIGN);
}

int64_t usi_pager_n_wait(const usi_pager_client *client) { return client->n_wait; }

void usi_pager_begin(usi_pager_client *client) {
    client->n_need = client->n_ahead = 0;
    // Marks of a request 2^32 requests ago would count as this one's.
    if (++client->request == 0) {
        memset(client->mark, 0,
               (size_t)client->pager->n_u * (size_t)client->pager->n_v * sizeof *client->mark);
        client->request = 1;
    }
}

static int32_t list_tiles(usi_pager_client *c, usi_window w, int32_t *list, int32_t n) {
    const usi_pager *p = c->pager;
    if (w.i1 < 0 || w.j1 < 0 || w.i0 > p->n_x - 1 || w.j0 > p->n_y - 1 || w.i0 > w.i1 || w.j0 > w.j1)
        return n;
    int32_t i0 = w.i0 < 0 ? 0 : w.i0, j0 = w.j0 < 0 ? 0 : w.j0, i1 = w.i1 > p->n_x - 1 ? p->n_x - 1 : w.i1,
            j1 = w.j1 > p->n_y - 1 ? p->n_y - 1 : w.j1;
    int32_t first = tile_at(p, i0, j0), last = tile_at(p, i1, j1);
    for (int32_t v = first / p->n_u; v <= last / p->n_u; v++) {
        for (int32_t u = first % p->n_u; u <= last % p->n_u; u++) {
            int32_t t = v * p->n_u + u;
            if (c->mark[t] == c->request) continue;
            c->mark[t] = c->request;
            list[n++] = t;
        }
    }
    return n;
}

// Grown to whole blocks of cells: their extremes are known when all of their samples are resident. A window
// beyond the ground stays empty.
static usi_window whole_blocks(const usi_pager *p, usi_window window) {
    const int32_t more = USI_EXTREMES_CELLS;
    usi_window w = {window.i0 < 0 ? 0 : window.i0, window.i1, window.j0 < 0 ? 0 : window.j0, window.j1};
    if (w.i1 > p->n_x - 1) w.i1 = p->n_x - 1;
    if (w.j1 > p->n_y - 1) w.j1 = p->n_y - 1;
    if (w.i0 > w.i1 || w.j0 > w.j1) return (usi_window){0, -1, 0, -1};
    return (usi_window){w.i0 - more, w.i1 + more, w.j0 - more, w.j1 + more};
}

void usi_pager_need(usi_pager_client *client, usi_window window) {
    client->n_need = list_tiles(client, whole_blocks(client->pager, window), client->need, client->n_need);
}

bool usi_pager_is_broken(usi_pager_client *client, usi_window window) {
    usi_pager *p = client->pager;
    const usi_window w = whole_blocks(p, window);
    if (w.i0 > w.i1 || w.j0 > w.j1) return false;
    const int32_t first = tile_at(p, w.i0 < 0 ? 0 : w.i0, w.j0 < 0 ? 0 : w.j0),
                  last = tile_at(p, w.i1 > p->n_x - 1 ? p->n_x - 1 : w.i1,
                                 w.j1 > p->n_y - 1 ? p->n_y - 1 : w.j1);
    bool is_broken = false;
    pthread_mutex_lock(&p->mutex);
    for (int32_t v = first / p->n_u; v <= last / p->n_u; v++) {
        for (int32_t u = first % p->n_u; u <= last % p->n_u; u++)
            is_broken = is_broken || p->tile[v * p->n_u + u].state == BROKEN;
    }
    pthread_mutex_unlock(&p->mutex);
    return is_broken;
}

void usi_pager_expect(usi_pager_client *client, usi_window window) {
    client->n_ahead = list_tiles(client, window, client->ahead, client->n_ahead);
}

// With the mutex: queues a tile unless it is resident or queued.
static void want(usi_pager *p, int32_t t, bool is_urgent) {
    const int32_t cap = 2 * p->n_u * p->n_v;
    paged_tile *x = &p->tile[t];
    x->wanted = p->now;
    // A tile that cannot be read is tried again when somebody needs it.
    if (x->state == RESIDENT || (x->state == BROKEN && !is_urgent) ||
        (x->state == WANTED && (x->is_urgent || !is_urgent)))
        return;
    tile_queue *q = is_urgent ? &p->urgent : &p->ahead;
    if (q->n == cap) return;
    x->state = WANTED;
    x->is_urgent = is_urgent;
    q->tile[(q->first + q->n++) % cap] = t;
}

static bool is_same(const int32_t *a, int32_t n, const int32_t *b, int32_t m) {
    return n == m && (n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0);
}

// With the mutex: whether all pinned tiles are resident, or one cannot be.
static bool is_settled(const usi_pager *p, const usi_pager_client *c, tile_state *out_worst) {
    bool is_over = true;
    *out_worst = RESIDENT;
    for (int32_t i = 0; i < c->n_pinned; i++) {
        tile_state state = p->tile[c->pinned[i]].state;
        if (state == BROKEN || state == REFUSED) *out_worst = state;
        is_over = is_over && state != WANTED;
    }
    return is_over;
}

us_status usi_pager_wait(usi_pager_client *c, us_error *err) {
    usi_pager *p = c->pager;
    if (c->is_met && is_same(c->need, c->n_need, c->pinned, c->n_pinned) &&
        is_same(c->ahead, c->n_ahead, c->expected, c->n_expected))
        return US_OK;

    // Pin what is needed now, release what was needed before.
    pthread_mutex_lock(&p->mutex);
    p->now++;
    for (int32_t i = 0; i < c->n_need; i++)
        p->tile[c->need[i]].n_pin++;
    for (int32_t i = 0; i < c->n_pinned; i++)
        p->tile[c->pinned[i]].n_pin--;
    int32_t *last = c->pinned, *last_expected = c->expected;
    c->pinned = c->need;
    c->n_pinned = c->n_need;
    c->need = last;
    c->expected = c->ahead;
    c->n_expected = c->n_ahead;
    c->ahead = last_expected;

    // Queue both, and wait for the pinned tiles.
    for (int32_t i = 0; i < c->n_pinned; i++)
        want(p, c->pinned[i], true);
    for (int32_t i = 0; i < c->n_expected; i++)
        want(p, c->expected[i], false);
    if (p->urgent.n + p->ahead.n > 0) pthread_cond_signal(&p->work);
    tile_state worst;
    bool is_over = is_settled(p, c, &worst);
    if (!is_over && c->n_request > 0) c->n_wait++;
    c->n_request++;
    for (; !is_over; is_over = is_settled(p, c, &worst))
        pthread_cond_wait(&p->done, &p->mutex);
    c->is_met = worst == RESIDENT;
    if (worst == BROKEN && err) *err = p->error;
    us_status status = worst == BROKEN ? p->error.code : US_OK;
    pthread_mutex_unlock(&p->mutex);
    if (worst == REFUSED)
        status = us_error_set(err, US_ERR_LIMIT, NULL, "write a larger memory=\"...\" at the height field",
                              "the tiles of ground under the robots, and under soil that flows, do not fit "
                              "into memory=\"%.6g MB\"",
                              (double)p->memory / 1e6);
    return status;
}
