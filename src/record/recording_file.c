// Reading a recording's file piece by piece.
#include "record/recording_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/crc32.h"

enum {
    WINDOW = 256 * 1024,      // bytes that are read at once: small records stand close together
    MAX_WINDOW = 1024 << 20,  // a record that is longer is refused
};

void usi_recording_file_init(usi_recording_file *f, const us_allocator *allocator) {
    *f = (usi_recording_file){.allocator = *allocator, .fd = -1};
}

void usi_recording_file_fini(usi_recording_file *f) {
    if (f->fd >= 0) close(f->fd);
    usi_release(&f->allocator, f->window, f->cap, 16);
    usi_recording_file_init(f, &f->allocator);
}

us_status usi_recording_file_open(usi_recording_file *f, const char *path, us_error *err) {
    us_place place = {.file = path};
    // Not blocking: a pipe has no writer yet, and is refused below.
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0)
        return us_error_set(err, US_ERR_IO, &place,
                            errno == EMFILE || errno == ENFILE
                                ? "raise the limit of open files (ulimit -n 1024)"
                                : "check the name, and whether this user may read it",
                            "the recording cannot be opened: %s", strerror(errno));
    struct stat s;
    if (fstat(f->fd, &s) != 0 || !S_ISREG(s.st_mode))
        return us_error_set(err, US_ERR_IO, &place, "copy it into a file first",
                            "the recording is not a regular file");
    f->length = (uint64_t)s.st_size;
    return US_OK;
}

static const uint8_t *fail(usi_recording_file *f, us_status status, const char *why) {
    f->failed = status;
    f->why = why;
    return NULL;
}

static bool make_room(usi_recording_file *f, size_t n) {
    if (n <= f->cap) return true;
    // The old one first: two of them would be twice the memory.
    usi_release(&f->allocator, f->window, f->cap, 16);
    f->n_window = f->cap = 0;
    f->window = usi_alloc(&f->allocator, n, 16);
    if (f->window) f->cap = n;
    return f->window != NULL;
}

const uint8_t *usi_recording_file_view(usi_recording_file *f, uint64_t offset, uint64_t n) {
    static const uint8_t nothing[1];
    f->failed = US_OK;
    if (offset > f->length || n > f->length - offset) return NULL;
    if (f->bytes || n == 0) return f->bytes ? f->bytes + offset : nothing;
    if (offset >= f->at && offset - f->at <= f->n_window && n <= f->n_window - (offset - f->at))
        return f->window + (offset - f->at);
    if (n > MAX_WINDOW) return fail(f, US_ERR_LIMIT, "a record is longer than 1 GiB");
    uint64_t wanted = n > WINDOW ? n : WINDOW;
    if (wanted > f->length - offset) wanted = f->length - offset;
    if (!make_room(f, (size_t)wanted)) return fail(f, US_ERR_MEMORY, "");
    f->at = offset;
    f->n_window = 0;
    while (f->n_window < wanted) {
        ssize_t got = pread(f->fd, f->window + f->n_window, (size_t)wanted - f->n_window,
                            (off_t)(offset + f->n_window));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        f->n_window += (size_t)got;
    }
    if (f->n_window >= n) return f->window;
    return fail(f, US_ERR_IO, "the file has become shorter while it was read, or the disk fails");
}

bool usi_recording_file_record(usi_recording_file *f, uint64_t end, uint64_t offset, usi_mcap_record *out) {
    if (end > f->length) end = f->length;
    f->failed = US_OK;
    if (offset > end || end - offset < USI_MCAP_RECORD_HEAD) return false;
    const uint8_t *head = usi_recording_file_view(f, offset, USI_MCAP_RECORD_HEAD);
    if (!head) return false;
    uint64_t length = 0;
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)head[1 + i] << 8 * i;
    if (length > end - offset - USI_MCAP_RECORD_HEAD) return false;
    const uint64_t size = USI_MCAP_RECORD_HEAD + length;
    const uint8_t *record = usi_recording_file_view(f, offset, size);
    return record && usi_mcap_read_record((usi_mcap_bytes){record, (size_t)size}, 0, out);
}

bool usi_recording_file_crc(usi_recording_file *f, uint64_t offset, uint64_t n, uint32_t *crc) {
    while (n > 0) {
        uint64_t piece = n < WINDOW ? n : WINDOW;
        const uint8_t *bytes = usi_recording_file_view(f, offset, piece);
        if (!bytes) return false;
        *crc = usi_crc32(*crc, bytes, (size_t)piece);
        offset += piece;
        n -= piece;
    }
    return true;
}

bool usi_recording_file_is_zero(usi_recording_file *f, uint64_t offset) {
    while (offset < f->length) {
        uint64_t n = f->length - offset < WINDOW ? f->length - offset : WINDOW;
        const uint8_t *bytes = usi_recording_file_view(f, offset, n);
        for (uint64_t i = 0; i < n; i++) {
            if (!bytes || bytes[i]) return false;
        }
        offset += n;
    }
    return true;
}
