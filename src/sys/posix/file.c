/* sys/posix/file.c: files by pread, mmap, write and rename. */
#define _DEFAULT_SOURCE /* madvise; posix_madvise ignores DONTNEED on Linux */
#define _DARWIN_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "sys/file.h"

#include "sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux moves at most 0x7ffff000 bytes in one call, other systems refuse more than INT_MAX. */
static const size_t MAX_TRANSFER = (size_t)1 << 30;

struct wk_file {
    int fd;
    uint64_t size;
    void *map;        /* NULL until mapped */
    size_t path_size; /* with its zero byte */
    char path[];
};

struct wk_file_writer {
    int fd;
    bool is_direct;   /* a device or pipe: written in place, nothing is renamed */
    bool has_failed;  /* such a file is never committed */
    size_t path_size; /* with its zero byte */
    char *temporary;  /* behind path in the same block */
    char path[];
};

/* ".wick-" and 16 hexadecimal digits and the zero byte: the end of a temporary name. */
enum { SUFFIX_SIZE = 6 + 16 + 1 };

/* "cannot VERB 'PATH': REASON", from errno. */
static wick_status fail_errno(wick_error *err, int error, const char *verb, const char *path) {
    char reason[128] = "";
    if (strerror_r(error, reason, sizeof reason) != 0) {
        snprintf(reason, sizeof reason, "system error %d", error);
    }
    const bool is_absent = error == ENOENT || error == ENOTDIR;
    return wk_fail(err, is_absent ? WICK_ERR_NOT_FOUND : WICK_ERR_IO, "cannot %s '%s': %s", verb,
                   path, reason);
}

static int open_retrying(const char *path, int flags, mode_t mode) {
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/* Only a regular file has a size and can be read at an offset. */
static wick_status check_regular(int fd, const char *path, uint64_t *size, wick_error *err) {
    struct stat status;
    if (fstat(fd, &status) != 0) return fail_errno(err, errno, "open", path);
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
    const int fd = open_retrying(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0) return fail_errno(err, errno, "open", path);
    const wick_status status = check_regular(fd, path, &size, err);
    if (status != WICK_OK) {
        close(fd);
        return status;
    }
    const size_t path_size = strlen(path) + 1;
    wk_file *const file = wk_alloc(heap, sizeof *file + path_size);
    if (!file) {
        close(fd);
        return wk_fail_memory(err, sizeof *file + path_size, 0, path);
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
        const size_t step = size < MAX_TRANSFER ? size : MAX_TRANSFER;
        const ssize_t got = pread(file->fd, at, step, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(err, errno, "read", file->path);
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
    if (map == MAP_FAILED) {
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "cannot map '%s': the system refuses (error %d)",
                       file->path, errno);
    }
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

/* A fresh name beside the target, so that rename stays within one file system. */
static int open_temporary(wk_file_writer *writer) {
    int fd = -1;
    for (int i = 0; i < 16; i++) {
        snprintf(writer->temporary, writer->path_size - 1 + SUFFIX_SIZE, "%s.wick-%016" PRIx64,
                 writer->path, wk_entropy());
        fd = open_retrying(writer->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd >= 0 || errno != EEXIST) break;
    }
    return fd;
}

/* A path that names a device or a pipe ("/dev/stdout") must not be replaced by a file. */
static wick_status open_target(wk_file_writer *writer, wick_error *err) {
    if (writer->path[0] == '\0') return fail_errno(err, ENOENT, "write", writer->path);
    struct stat status;
    const bool exists = stat(writer->path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) {
        return wk_fail(err, WICK_ERR_IO, "cannot write '%s': it is a directory", writer->path);
    }
    writer->is_direct = exists && !S_ISREG(status.st_mode);
    writer->fd =
        writer->is_direct ? open_retrying(writer->path, O_WRONLY, 0) : open_temporary(writer);
    return writer->fd >= 0 ? WICK_OK : fail_errno(err, errno, "write", writer->path);
}

static size_t writer_size(size_t path_size) {
    return sizeof(wk_file_writer) + path_size + path_size - 1 + SUFFIX_SIZE;
}

wick_status wk_file_write_start(wk_heap *heap, const char *path, wk_file_writer **out,
                                wick_error *err) {
    *out = NULL;
    const size_t path_size = strlen(path) + 1;
    wk_file_writer *const writer = wk_alloc(heap, writer_size(path_size));
    if (!writer) return wk_fail_memory(err, writer_size(path_size), 0, path);
    *writer = (wk_file_writer){.path_size = path_size, .temporary = writer->path + path_size};
    memcpy(writer->path, path, path_size);
    const wick_status status = open_target(writer, err);
    if (status == WICK_OK)
        *out = writer;
    else
        wk_free(heap, writer, writer_size(path_size));
    return status;
}

wick_status wk_file_write(wk_file_writer *writer, const void *data, size_t size, wick_error *err) {
    const char *at = data;
    while (size > 0) {
        const size_t step = size < MAX_TRANSFER ? size : MAX_TRANSFER;
        const ssize_t put = write(writer->fd, at, step);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            writer->has_failed = true;
            return fail_errno(err, errno, "write", writer->path);
        }
        at += put;
        size -= (size_t)put;
    }
    return WICK_OK;
}

/* The new name is safe against a power cut once its folder is written, too. Not every file system
 * can do that, so a failure is no error: the contents are safe already. */
static void flush_folder(char *path) {
    char *const slash = strrchr(path, '/');
    if (slash) slash[slash == path ? 1 : 0] = '\0';
    const int fd = open_retrying(slash ? path : ".", O_RDONLY, 0);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

/* Everything on the disk, then the name. Some systems report a full disk only here. */
static wick_status commit_file(wk_file_writer *writer, wick_error *err) {
    const bool is_flushed = writer->is_direct || fsync(writer->fd) == 0;
    const int flush_error = errno;
    const bool is_closed = close(writer->fd) == 0;
    if (!is_flushed) return fail_errno(err, flush_error, "write", writer->path);
    if (!is_closed) return fail_errno(err, errno, "write", writer->path);
    if (writer->is_direct) return WICK_OK;
    if (rename(writer->temporary, writer->path) != 0) {
        return fail_errno(err, errno, "write", writer->path);
    }
    flush_folder(writer->temporary);
    return WICK_OK;
}

wick_status wk_file_write_finish(wk_heap *heap, wk_file_writer *writer, bool commit,
                                 wick_error *err) {
    wick_status status = WICK_OK;
    if (writer->has_failed && commit) {
        status = wk_fail(err, WICK_ERR_IO, "'%s' was not written: an earlier write failed",
                         writer->path);
    }
    if (writer->has_failed || !commit)
        close(writer->fd);
    else
        status = commit_file(writer, err);
    const bool is_kept = commit && status == WICK_OK;
    if (!is_kept && !writer->is_direct) unlink(writer->temporary);
    wk_free(heap, writer, writer_size(writer->path_size));
    return status;
}
