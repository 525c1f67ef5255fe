// Directories, and files read and written whole.
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static us_status failed(const char *path, const char *what, us_error *err) {
    const char *remedy = errno == ENOSPC   ? "make room on the disk"
                         : errno == EDQUOT ? "make room within the quota of this user"
                         : errno == EACCES ? "allow this user to write there, or write somewhere else"
                         : errno == ENOENT ? "make the directory above it first"
                                           : "look at the disk, or write somewhere else";
    int code = errno;
    us_place place = {.file = path};
    return us_error_set(err, US_ERR_IO, &place, remedy, "%s: %s", what, strerror(code));
}

us_status usi_directory_make(const char *path, us_error *err) {
    if (mkdir(path, 0777) == 0) return US_OK;
    struct stat info;
    int code = errno;
    if (code == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return US_OK;
    errno = code;
    return failed(path, "the directory cannot be made", err);
}

us_status usi_directory_begin(const char *path, us_error *err) {
    us_status status = usi_directory_make(path, err);
    if (status) return status;
    DIR *dir = opendir(path);
    if (!dir) return failed(path, "the directory cannot be read", err);
    bool is_empty = true;
    // The stream is read by this thread alone.
    // cppcheck-suppress readdirCalled
    for (const struct dirent *e = readdir(dir); e && is_empty; e = readdir(dir))
        is_empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    closedir(dir);
    us_place place = {.file = path};
    if (!is_empty)
        return us_error_set(err, US_ERR_IO, &place, "remove what is in it, or give a new name",
                            "the directory is not empty");
    return US_OK;
}

us_status usi_bytes_read(const char *path, void *out, size_t cap, size_t *out_length) {
    FILE *file = fopen(path, "rbe");
    if (!file) return US_ERR_IO;
    setvbuf(file, NULL, _IONBF, 0);
    size_t n = fread(out, 1, cap, file);
    bool is_longer = n == cap && fgetc(file) != EOF, is_bad = ferror(file) != 0;
    fclose(file);
    *out_length = n;
    return is_bad ? US_ERR_IO : is_longer ? US_ERR_LIMIT : US_OK;
}

bool usi_write_all(int file, const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        const ssize_t n = write(file, at, length);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0) return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

// Closes the file; false with the first reason in errno, of what was done before or of closing. Some file
// systems report a disk that is full only here.
static bool close_file(int file, bool is_good) {
    const int code = errno;
    // After EINTR the descriptor is gone, and what was written is with the system.
    if (close(file) != 0 && errno != EINTR && is_good) return false;
    errno = code;
    return is_good;
}

us_status usi_part_begin(const char *path, char part[USI_PART_PATH], us_error *err) {
    if (snprintf(part, USI_PART_PATH, "%s.part", path) < USI_PART_PATH) return US_OK;
    us_place place = {.file = path};
    return us_error_set(err, US_ERR_LIMIT, &place, "use a shorter path", "the path is too long");
}

us_status usi_part_end(const char *part, const char *path, us_error *err) {
    // Who wrote it may have closed it without a look at what that said: the disk is asked again.
    const int file = open(part, O_WRONLY | O_CLOEXEC);
    bool ok = file >= 0;
    while (ok && fsync(file) != 0) {
        if (errno == EINTR) continue;
        ok = errno == EINVAL || errno == EROFS || errno == ENOTSUP;
        break;
    }
    if (file >= 0) ok = close_file(file, ok);
    if (ok && rename(part, path) == 0) return US_OK;
    const int code = errno;
    remove(part);
    errno = code;
    return failed(path, "the file cannot be written", err);
}

us_status usi_bytes_write(const char *path, const void *head, size_t head_length, const void *body,
                          size_t body_length, us_error *err) {
    char part[USI_PART_PATH];
    us_status status = usi_part_begin(path, part, err);
    if (status) return status;
    const int file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return failed(path, "the file cannot be written", err);
    bool ok = usi_write_all(file, head, head_length) && usi_write_all(file, body, body_length);
    ok = close_file(file, ok);
    if (ok && rename(part, path) == 0) return US_OK;
    const int code = errno;
    remove(part);
    errno = code;
    return failed(path, "the file cannot be written", err);
}

us_status usi_bytes_append(const char *path, int mode, const void *bytes, size_t length, us_error *err) {
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, mode);
    if (file < 0) return failed(path, "the file cannot be written", err);
    struct stat before;
    bool ok = fstat(file, &before) == 0 && usi_write_all(file, bytes, length);
    const int code = errno;
    // A part of it would be taken for something else by whoever reads the file.
    if (!ok && S_ISREG(before.st_mode)) (void)!ftruncate(file, before.st_size);
    errno = code;
    if (close_file(file, ok)) return US_OK;
    return failed(path, "the file cannot be written", err);
}
