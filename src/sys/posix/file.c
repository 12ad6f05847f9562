/* sys/posix/file.c: reading files by pread and mmap; file_write.c writes them. */
#define _DEFAULT_SOURCE /* madvise; posix_madvise ignores DONTNEED on Linux */
#define _DARWIN_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "sys/file.h"

#include "sys/posix/file_errno.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct wk_file {
    int fd;
    uint64_t size;
    void *map;        /* NULL until mapped */
    size_t path_size; /* with its zero byte */
    char path[];
};

static wick_status fail_as(wick_error *err, wick_status status, int error, const char *verb,
                           const char *path) {
    char reason[128] = "";
    if (strerror_r(error, reason, sizeof reason) != 0) {
        snprintf(reason, sizeof reason, "system error %d", error);
    }
    return wk_fail(err, status, "cannot %s '%s': %s", verb, path, reason);
}

wick_status wk_fail_errno(wick_error *err, int error, const char *verb, const char *path) {
    const bool is_absent = error == ENOENT || error == ENOTDIR;
    return fail_as(err, is_absent ? WICK_ERR_NOT_FOUND : WICK_ERR_IO, error, verb, path);
}

int wk_open_retrying(const char *path, int flags, mode_t mode) {
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* Only a regular file has a size and can be read at an offset. */
static wick_status check_regular(int fd, const char *path, uint64_t *size, wick_error *err) {
    struct stat status;
    if (fstat(fd, &status) != 0) return wk_fail_errno(err, errno, "open", path);
    if (S_ISDIR(status.st_mode)) {
        return wk_fail(err, WICK_ERR_IO, "cannot open '%s': it is a directory", path);
    }
    if (!S_ISREG(status.st_mode)) {
        return wk_fail(err, WICK_ERR_IO, "cannot open '%s': it is not a regular file", path);
    }
    *size = (uint64_t)status.st_size;
    return WICK_OK;
}

wick_status wk_file_open(wk_heap *heap, const char *path, wk_file **out, wick_error *err) {
    *out = NULL;
    uint64_t size = 0;
    /* O_NONBLOCK: opening a pipe must not wait for its writer. Regular files ignore it. */
    const int fd = wk_open_retrying(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return wk_fail_errno(err, errno, "open", path);
    const wick_status status = check_regular(fd, path, &size, err);
    if (status != WICK_OK) {
        close(fd);
        return status;
    }
    const size_t path_size = strlen(path) + 1;
    wk_file *const file = wk_alloc(heap, sizeof *file + path_size);
    if (!file) {
        close(fd);
        return wk_fail_memory(err, sizeof *file + path_size, path);
    }
    *file = (wk_file){.fd = fd, .size = size, .path_size = path_size};
    memcpy(file->path, path, path_size);
    *out = file;
    return WICK_OK;
}

void wk_file_close(wk_heap *heap, wk_file *file) {
    if (!file) return;
    if (file->map) munmap(file->map, (size_t)file->size);
    close(file->fd);
    wk_free(heap, file, sizeof *file + file->path_size);
}

uint64_t wk_file_size(const wk_file *file) { return file->size; }

wick_status wk_file_read_at(wk_file *file, uint64_t offset, void *dst, size_t size,
                            wick_error *err) {
    if (offset > file->size || size > file->size - offset) {
        return wk_fail(err, WICK_ERR_IO,
                       "cannot read '%s': %zu bytes at %" PRIu64 " go past its end at %" PRIu64,
                       file->path, size, offset, file->size);
    }
    char *at = dst;
    while (size > 0) {
        const size_t step = size < WK_MAX_TRANSFER ? size : WK_MAX_TRANSFER;
        const ssize_t got = pread(file->fd, at, step, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return wk_fail_errno(err, errno, "read", file->path);
        if (got == 0) {
            return wk_fail(err, WICK_ERR_IO,
                           "cannot read '%s': it ends at %" PRIu64
                           " now, it was cut while it was open",
                           file->path, offset);
        }
        at += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return WICK_OK;
}

bool wk_file_exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool wk_file_is_same(const char *a, const char *b) {
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

wick_status wk_file_map(wk_file *file, const void **data, wick_error *err) {
    *data = file->map;
    if (file->map || file->size == 0) return WICK_OK;
    if (file->size > SIZE_MAX) {
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "cannot map '%s': it is larger than the address space", file->path);
    }
    void *const map = mmap(NULL, (size_t)file->size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (map == MAP_FAILED) return fail_as(err, WICK_ERR_UNSUPPORTED, errno, "map", file->path);
    *data = file->map = map;
    return WICK_OK;
}

/* Whole pages inside the range only: the rest of the first and the last page belongs to others. */
void wk_file_drop(wk_file *file, uint64_t offset, uint64_t size) {
    const long page_size = sysconf(_SC_PAGESIZE);
    if (!file->map || page_size <= 0 || offset > file->size) return;
    const uint64_t page = (uint64_t)page_size;
    const uint64_t end = size < file->size - offset ? offset + size : file->size;
    const uint64_t first = (offset + page - 1) / page * page;
    /* The page that the file ends in holds nothing else. */
    const uint64_t last = end == file->size ? end : end / page * page;
    if (first < last) madvise((char *)file->map + first, (size_t)(last - first), MADV_DONTNEED);
}
