/* sys/posix/file_write.c: files that appear whole: written without a name where the system can do
 * that, else to a temporary name beside the target, then renamed.
 *
 * Every temporary file is locked as long as its writer lives. The next write of the same target
 * removes those without a lock: their writers were killed. */
#define _GNU_SOURCE /* O_TMPFILE, F_OFD_SETLK */
#define _DARWIN_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "sys/clock.h"
#include "sys/file.h"
#include "sys/posix/file_errno.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct wk_file_writer {
    int fd;
    bool is_direct;   /* a device or pipe: written in place, nothing is renamed */
    bool is_nameless; /* temporary is not the name of a file yet */
    bool has_failed;  /* such a file is never committed */
    size_t path_size; /* with its zero byte */
    char *temporary;  /* after path in the same block */
    char path[];
};

/* ".wick-" and 16 hexadecimal digits and the zero byte: the end of a temporary name. */
#define SUFFIX ".wick-"
enum { N_DIGITS = 16, SUFFIX_SIZE = sizeof SUFFIX - 1 + N_DIGITS + 1, N_TRIES = 16 };

/* ---- Temporary files ---- */

/* The folder of path in place: "a/b" becomes "a", "/b" "/", "b" ".". */
static void keep_folder(char *path) {
    char *const slash = strrchr(path, '/');
    if (slash == NULL)
        memcpy(path, ".", 2);
    else
        slash[slash == path ? 1 : 0] = '\0';
}

static const char *name_of(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_temporary_of(const char *entry, const char *name) {
    const size_t size = strlen(name);
    if (strncmp(entry, name, size) != 0 || strncmp(entry + size, SUFFIX, sizeof SUFFIX - 1) != 0)
        return false;
    const char *const digits = entry + size + sizeof SUFFIX - 1;
    return strspn(digits, "0123456789abcdef") == N_DIGITS && digits[N_DIGITS] == '\0';
}

/* Locks an open file until all its descriptors are closed. False with errno: another has locked it
 * (EAGAIN, EACCES), or the system has no such locks, where nothing is swept. */
static bool lock_file(int fd) {
#ifdef F_OFD_SETLK
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0;
#else
    (void)fd;
    errno = ENOTSUP;
    return false;
#endif
}

/* Removes the file unless somebody holds its lock. */
static void remove_abandoned(int folder, const char *name) {
    const int fd = openat(folder, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    if (lock_file(fd)) (void)unlinkat(folder, name, 0);
    close(fd);
}

/* Removes what killed writers of this target have left. */
static void sweep(wk_file_writer *writer) {
    memcpy(writer->temporary, writer->path, writer->path_size);
    keep_folder(writer->temporary);
    DIR *const stream = opendir(writer->temporary);
    if (stream == NULL) return;
    const char *const name = name_of(writer->path);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (is_temporary_of(entry->d_name, name)) remove_abandoned(dirfd(stream), entry->d_name);
    }
    closedir(stream);
}

/* A fresh name beside the target, so that rename stays within one file system. */
static void choose_name(wk_file_writer *writer) {
    snprintf(writer->temporary, writer->path_size - 1 + SUFFIX_SIZE, "%s" SUFFIX "%016" PRIx64,
             writer->path, wk_entropy());
}

/* Whether fd is a file that no sweep removes: false where one has taken it before the lock. Without
 * locks nothing is swept. */
static bool hold(int fd) {
    struct stat status;
    if (!lock_file(fd) && (errno == EAGAIN || errno == EACCES)) return false;
    return fstat(fd, &status) == 0 && status.st_nlink > 0;
}

static int open_named(wk_file_writer *writer) {
    for (int i = 0; i < N_TRIES; i++) {
        choose_name(writer);
        const int fd = wk_open_retrying(writer->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd < 0 && errno != EEXIST) return fd;
        if (fd >= 0 && hold(fd)) return fd;
        if (fd >= 0) close(fd);
        errno = EAGAIN;
    }
    return -1;
}

/* Gives a file without a name one; false with errno. */
static bool link_temporary(wk_file_writer *writer, int fd) {
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    for (int i = 0; i < N_TRIES; i++) {
        choose_name(writer);
        if (linkat(AT_FDCWD, open_file, AT_FDCWD, writer->temporary, AT_SYMLINK_FOLLOW) == 0)
            return true;
        if (errno != EEXIST) return false;
    }
    return false;
}

/* A file without a name ends with its process. -1 where the system has no such files, or does not
 * let them be named: tried with an empty one first, since at the end it would be too late. */
static int open_nameless(wk_file_writer *writer) {
#ifdef O_TMPFILE
    int fds[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        memcpy(writer->temporary, writer->path, writer->path_size);
        keep_folder(writer->temporary);
        fds[i] = wk_open_retrying(writer->temporary, O_TMPFILE | O_WRONLY, 0666);
    }
    const bool can_link = fds[0] >= 0 && fds[1] >= 0 && link_temporary(writer, fds[0]);
    if (can_link) (void)unlink(writer->temporary);
    if (fds[0] >= 0) close(fds[0]);
    if (can_link) (void)lock_file(fds[1]); /* for when it has a name */
    if (can_link || fds[1] < 0) return fds[1];
    close(fds[1]);
#else
    (void)writer;
#endif
    return -1;
}

static void open_temporary(wk_file_writer *writer) {
    sweep(writer);
    writer->fd = open_nameless(writer);
    writer->is_nameless = writer->fd >= 0;
    if (!writer->is_nameless) writer->fd = open_named(writer);
}

/* ---- Writing ---- */

static bool is_link(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

/* The path of the file that a link leads to, so that the file is replaced and not the link
 * (/dev/stdout is a link, too); path itself where there is no link, or no such file. */
static const char *follow(const char *path, char resolved[PATH_MAX]) {
    const bool leads_on = is_link(path) && realpath(path, resolved) != NULL;
    return leads_on && wk_file_is_same(path, resolved) ? resolved : path;
}

/* A path that names a device or a pipe ("/dev/stdout") must not be replaced by a file. */
static wick_status open_target(wk_file_writer *writer, wick_error *err) {
    if (writer->path[0] == '\0') return wk_fail_errno(err, ENOENT, "write", writer->path);
    struct stat status;
    const bool exists = stat(writer->path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) {
        return wk_fail(err, WICK_ERR_IO, "cannot write '%s': it is a directory", writer->path);
    }
    writer->is_direct = exists && !S_ISREG(status.st_mode);
    if (exists && !writer->is_direct && is_link(writer->path))
        return wk_fail(err, WICK_ERR_IO, "cannot write '%s': it links to a file without a name",
                       writer->path);
    if (writer->is_direct) /* not retried: a signal ends the wait for the reader of a pipe */
        writer->fd = open(writer->path, O_WRONLY | O_CLOEXEC);
    else
        open_temporary(writer);
    return writer->fd >= 0 ? WICK_OK : wk_fail_errno(err, errno, "write", writer->path);
}

static size_t writer_size(size_t path_size) {
    return sizeof(wk_file_writer) + path_size + path_size - 1 + SUFFIX_SIZE;
}

wick_status wk_file_write_start(wk_heap *heap, const char *path, wk_file_writer **out,
                                wick_error *err) {
    char resolved[PATH_MAX];
    *out = NULL;
    path = follow(path, resolved);
    const size_t path_size = strlen(path) + 1;
    wk_file_writer *const writer = wk_alloc(heap, writer_size(path_size));
    if (!writer) return wk_fail_memory(err, writer_size(path_size), path);
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
        const size_t step = size < WK_MAX_TRANSFER ? size : WK_MAX_TRANSFER;
        const ssize_t put = write(writer->fd, at, step);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            writer->has_failed = true;
            return wk_fail_errno(err, errno, "write", writer->path);
        }
        at += put;
        size -= (size_t)put;
    }
    return WICK_OK;
}

/* The new name is safe against a power cut once its folder is written, too. Not every file system
 * can do that, so a failure is ignored: the contents are safe already. */
static void flush_folder(char *path) {
    keep_folder(path);
    const int fd = wk_open_retrying(path, O_RDONLY, 0);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

/* Everything on the disk, then the name. Some systems report a full disk only here. */
/* Of the file that it replaces, if there is one; not for a group that it cannot belong to. */
static void take_permissions(const wk_file_writer *writer) {
    struct stat old;
    if (stat(writer->path, &old) != 0) return;
    const bool has_group = fchown(writer->fd, (uid_t)-1, old.st_gid) == 0;
    (void)fchmod(writer->fd, old.st_mode & (has_group ? 0777 : 0707));
}

static wick_status commit_file(wk_file_writer *writer, wick_error *err) {
    if (!writer->is_direct) take_permissions(writer);
    bool is_safe = writer->is_direct || fsync(writer->fd) == 0;
    if (is_safe && writer->is_nameless) {
        is_safe = link_temporary(writer, writer->fd);
        writer->is_nameless = !is_safe;
    }
    int error = errno;
    const int lock =
        dup(writer->fd); /* which close below must not end before the file is renamed */
    const bool is_closed = close(writer->fd) == 0;
    if (is_safe && !is_closed) error = errno;
    is_safe = is_safe && is_closed;
    if (is_safe && !writer->is_direct && rename(writer->temporary, writer->path) != 0) {
        error = errno;
        is_safe = false;
    }
    if (lock >= 0) close(lock);
    if (!is_safe) return wk_fail_errno(err, error, "write", writer->path);
    if (!writer->is_direct) flush_folder(writer->temporary);
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
    if (!is_kept && !writer->is_direct && !writer->is_nameless) unlink(writer->temporary);
    wk_free(heap, writer, writer_size(writer->path_size));
    return status;
}

wick_status wk_file_try_write(wk_heap *heap, const char *path, wick_error *err) {
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
        return access(path, W_OK) == 0 ? WICK_OK : wk_fail_errno(err, errno, "write", path);
    }
    wk_file_writer *writer;
    WK_TRY(wk_file_write_start(heap, path, &writer, err));
    return wk_file_write_finish(heap, writer, false, err);
}
