// The files of the page, from inside the program; made from web/ by tools/build_page.
#ifndef USI_WORLD_PAGE_FILES_H
#define USI_WORLD_PAGE_FILES_H

#include "bus/web.h"

extern const usi_web_file usi_page_files[];
extern const int32_t usi_page_n_file;

#endif
