// Directories and whole files.
#ifndef USI_BASE_FILES_H
#define USI_BASE_FILES_H

#include "understudy/base.h"

// Makes a directory below an existing one; one that exists already is no error.
us_status usi_directory_make(const char *path, us_error *err);
// Makes a directory, or accepts an empty one.
us_status usi_directory_begin(const char *path, us_error *err);

// Reads a file into the caller's memory. US_ERR_IO when it cannot be read, US_ERR_LIMIT when it is longer
// than `cap`; neither fills an error.
us_status usi_bytes_read(const char *path, void *out, size_t cap, size_t *out_length);
// Writes a file atomically: under another name first, which is then renamed.
us_status usi_bytes_write(const char *path, const void *head, size_t head_length, const void *body,
                          size_t body_length, us_error *err);
// The same for a file that somebody else writes, under the name `part`; at the end it takes its place, or is
// removed when the disk could not keep it.
enum { USI_PART_PATH = 4200 };
us_status usi_part_begin(const char *path, char part[USI_PART_PATH], us_error *err);
us_status usi_part_end(const char *part, const char *path, us_error *err);
// Adds to the end of a file, which is made with the given mode where it is not there: all of it or nothing.
us_status usi_bytes_append(const char *path, int mode, const void *bytes, size_t length, us_error *err);
// Writes all bytes to an open file, in as many parts as the system wants. False: errno says why.
bool usi_write_all(int file, const void *bytes, size_t length);

#endif
