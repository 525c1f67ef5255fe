// The bytes of a recording: in memory, or in a file that is read piece by piece.
//
// The file is not mapped: whoever shortens a mapped file ends every program that reads it (SIGBUS).
#ifndef USI_RECORD_RECORDING_FILE_H
#define USI_RECORD_RECORDING_FILE_H

#include "wire/mcap.h"

typedef struct usi_recording_file {
    us_allocator allocator;
    const uint8_t *bytes;  // all of them; NULL: they are in the file
    int fd;                // -1: none
    uint64_t length;
    // The piece that was read last.
    uint8_t *window;
    size_t cap, n_window;
    uint64_t at;
    us_status failed;  // of the last view that was within the file: US_ERR_IO, US_ERR_LIMIT, US_ERR_MEMORY
    const char *why;
} usi_recording_file;

void usi_recording_file_init(usi_recording_file *f, const us_allocator *allocator);
void usi_recording_file_fini(usi_recording_file *f);
us_status usi_recording_file_open(usi_recording_file *f, const char *path, us_error *err);

// n bytes from `offset`, borrowed until the next view. NULL: they are not there (failed is US_OK), or cannot
// be read.
const uint8_t *usi_recording_file_view(usi_recording_file *f, uint64_t offset, uint64_t n);
// The record at `offset`, which ends before `end`.
bool usi_recording_file_record(usi_recording_file *f, uint64_t end, uint64_t offset, usi_mcap_record *out);
// The checksum of n bytes from `offset`, going on from `crc`. False: they cannot be read.
bool usi_recording_file_crc(usi_recording_file *f, uint64_t offset, uint64_t n, uint32_t *crc);
bool usi_recording_file_is_zero(usi_recording_file *f, uint64_t offset);  // all bytes from there on

#endif
