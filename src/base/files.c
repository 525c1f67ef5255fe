// Directories, and files read and written whole.
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static us_status failed(const char *path, const char *what, us_error *err) {
    const char *remedy = errno == ENOSPC   ? "make room on the disk"
                         : errno == EACCES ? "allow this user to write there, or write somewhere else"
                         : errno == ENOENT ? "make the directory above it first"
                                           : "write somewhere else";
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

us_status usi_bytes_write(const char *path, const void *head, size_t head_length, const void *body,
                          size_t body_length, us_error *err) {
    char part[4200];
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part) {
        us_place place = {.file = path};
        return us_error_set(err, US_ERR_LIMIT, &place, "use a shorter path", "the path is too long");
    }
    FILE *file = fopen(part, "wbe");
    if (!file) return failed(path, "the file cannot be written", err);
    setvbuf(file, NULL, _IONBF, 0);
    bool ok = fwrite(head, 1, head_length, file) == head_length &&
              (body_length == 0 || fwrite(body, 1, body_length, file) == body_length);
    int code = errno;
    if (fclose(file) != 0 && ok) {
        ok = false;
        code = errno;
    }
    if (ok && rename(part, path) != 0) {
        ok = false;
        code = errno;
    }
    if (ok) return US_OK;
    remove(part);
    errno = code;
    return failed(path, "the file cannot be written", err);
}
