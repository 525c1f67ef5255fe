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

#endif
