// Pager: heights of a site as one array, of which only the tiles near a client are in memory.
//
// The array is as large as the ground and lies in reserved addresses, so that heights[j * n_x + i] is read as
// of a small field. A client that is about to read requests a window (usi_pager_need): the tiles there stay
// until its next request. It waits for tiles that are not resident, so that nothing depends on the speed of a
// disk. A thread of the pager reads ahead what is expected (usi_pager_expect).
#ifndef USI_TERRAIN_PAGER_H
#define USI_TERRAIN_PAGER_H

#include "understudy/terrain.h"

enum { USI_EXTREMES_CELLS = 8 };  // see usi_pager_extremes

typedef struct usi_pager usi_pager;
typedef struct usi_pager_client usi_pager_client;  // one for each reader; one thread at a time

// Samples, both ends included.
typedef struct usi_window {
    int32_t i0, i1, j0, j1;
} usi_window;

typedef struct usi_pager_info {
    int64_t n_read;      // tiles, since the start
    int64_t n_drop;      // tiles given back
    int32_t n_resident;  // now
    size_t bytes;        // that they take
    size_t memory;       // that they may take
} usi_pager_info;

// The part `window` of a layer of numbers of the site (0: its heights), of which sample (i0, j0) becomes (0,
// 0). Reads no tile. The site is the pager's from then on, also when this fails.
us_status usi_pager_create(us_site *site, int32_t layer, usi_window window, size_t memory,
                           const us_allocator *allocator, usi_pager **out_pager, us_error *err);
void usi_pager_destroy(usi_pager *pager);           // NULL is allowed; no client may be left
double *usi_pager_heights(const usi_pager *pager);  // n_x * n_y, x fastest
// Minimum and maximum height of each 8 by 8 cells, as in us_height_field.
double (*usi_pager_extremes(const usi_pager *pager))[2];
usi_pager_info usi_pager_get_info(usi_pager *pager);

us_status usi_pager_client_create(usi_pager *pager, usi_pager_client **out_client);
void usi_pager_client_destroy(usi_pager_client *client);   // NULL is allowed
int64_t usi_pager_n_wait(const usi_pager_client *client);  // number of waits, without the first request

// A request: begin, any number of need and expect, wait. Then the needed windows are resident, with the
// extremes of all cells that have a sample in them, until the next begin. Windows may reach beyond the
// ground. No allocation. US_ERR_IO names a tile that cannot be read, US_ERR_LIMIT the memory that is not
// enough; the next request tries again.
void usi_pager_begin(usi_pager_client *client);
void usi_pager_need(usi_pager_client *client, usi_window window);
void usi_pager_expect(usi_pager_client *client, usi_window window);
us_status usi_pager_wait(usi_pager_client *client, us_error *err);
// Whether a tile that usi_pager_need would take for this window could not be read when last tried.
bool usi_pager_is_broken(usi_pager_client *client, usi_window window);

#endif
