// The page of a host: what it shows goes from the stepping thread to the server's thread through one picture
// of the world at a time.
#ifndef USI_WORLD_PAGE_H
#define USI_WORLD_PAGE_H

#include "bus/web.h"
#include "understudy/world.h"

typedef struct usi_page usi_page;

// Server, page sessions and Foxglove sessions.
us_status usi_page_create(us_world *host, const us_page_def *def, usi_page **out_page, us_error *err);
void usi_page_destroy(usi_page *page);
const char *usi_page_url(const usi_page *page);

// By the stepping thread. Takes a picture when one is due.
void usi_page_show(usi_page *page, const us_world_pace *pace);
// The epoch or a pair has changed, or time has jumped: the next picture is taken at once, and clients are
// told.
void usi_page_changed(usi_page *page);
// Any thread.
void usi_page_log(usi_page *page, int32_t level, double time, const char *text);

#endif
