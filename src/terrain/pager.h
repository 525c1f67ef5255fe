// Heights of a site as one array, of which only the tiles near somebody are in memory.
//
// The array is as large as the ground and lies in reserved addresses, so that all who read heights read
// heights[j * n_x + i] as they do of a small field. Who is about to read says where (usi_pager_need): the
// tiles there stay until the next time they are asked. What is not there yet is waited for, so that nothing
// depends on how fast a disk is. A thread of the pager's own reads ahead what is expected (usi_pager_expect).
#ifndef USI_TERRAIN_PAGER_H
#define USI_TERRAIN_PAGER_H

#include "understudy/terrain.h"

enum { USI_EXTREMES_CELLS = 8 };  // see usi_pager_extremes

typedef struct usi_pager usi_pager;
typedef struct usi_pager_client usi_pager_client;  // one for each who reads; one thread at a time

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
double (*usi_pager_extremes(
    const usi_pager *pager))[2];  // least and greatest height of each 8 by 8 cells, as in us_height_field
usi_pager_info usi_pager_get_info(usi_pager *pager);

us_status usi_pager_client_create(usi_pager *pager, usi_pager_client **out_client);
void usi_pager_client_destroy(usi_pager_client *client);  // NULL is allowed
int64_t
usi_pager_n_wait(const usi_pager_client *client);  // how often it had to wait, the first time left out

// begin, any number of need and expect, wait: then what was needed is there, with the extremes of all cells
// that have a sample in a window, until the next begin. Windows may reach beyond the ground. No allocation.
// US_ERR_IO names a tile that cannot be read, US_ERR_LIMIT the memory that is not enough; the next time it is
// tried again.
void usi_pager_begin(usi_pager_client *client);
void usi_pager_need(usi_pager_client *client, usi_window window);
void usi_pager_expect(usi_pager_client *client, usi_window window);
us_status usi_pager_wait(usi_pager_client *client, us_error *err);

#endif
