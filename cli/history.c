/* history.c: see history.h. A line of the file is an entry, in which "\n" stands for the end of a
 * line and "\\" for a backslash. Whoever changes the file locks it and writes in place, so that a
 * link stays one and nothing is left beside it: an entry is appended; where the file has become too
 * large, its newest half moves over the oldest one, and the end is cut off. A kill in between
 * leaves some entries twice. */
#define _POSIX_C_SOURCE 200809L

#include "history.h"

#include "cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_history_path(char *path, size_t size) { return cli_state_path("history", path, size); }

/* -1 with errno: also for what is not a regular file, such as a pipe or device, which could block
 * or never end. */
static int open_regular(const char *path, int flags) {
    struct stat info;
    int fd;
    do fd = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0600);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))) return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

/* ---- Entries ---- */

/* In place. */
static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        const bool is_escape = *from == '\\' && from[1] != '\0';
        if (is_escape) from++;
        *to++ = is_escape && *from == 'n' ? '\n' : *from;
    }
    *to = '\0';
}

/* With the end of its line; freed by the caller. NULL: out of memory. */
static char *escape(const char *entry, size_t *size) {
    char *const text = malloc(2 * strlen(entry) + 2);
    char *to = text;
    if (text == NULL) return NULL;
    for (; *entry != '\0'; entry++) {
        if (*entry == '\\' || *entry == '\n') *to++ = '\\';
        *to++ = *entry == '\n' ? 'n' : *entry;
    }
    *to++ = '\n';
    *size = (size_t)(to - text);
    return text;
}

void cli_history_read(const char *path, cli_entry_fn take, void *user) {
    const int fd = open_regular(path, O_RDONLY);
    FILE *const file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t capacity = 0;
    if (file == NULL) {
        if (fd >= 0) close(fd);
        return;
    }
    while (getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        unescape(line);
        if (line[0] != '\0') take(user, line);
    }
    free(line);
    fclose(file);
}

/* ---- The file ---- */

static bool make_folder(const char *path) {
    char *const folder = strdup(path);
    if (folder == NULL) return false;
    char *const slash = strrchr(folder, '/');
    if (slash != NULL) *slash = '\0';
    const bool is_there = cli_make_folders(folder);
    free(folder);
    return is_there;
}

/* -1: errno says why not. */
static int open_locked(const char *path) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int fd = open_regular(path, O_RDWR | O_CREAT);
    if (fd < 0) return -1;
    int result;
    do result = fcntl(fd, F_SETLKW, &lock);
    while (result != 0 && errno == EINTR);
    if (result == 0) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool write_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno != EINTR) return false;
        if (n > 0) bytes += n;
        if (n > 0) size -= (size_t)n;
    }
    return true;
}

/* All of line, or nothing of it where the disk is full. An editor may have left the last line
 * without an end, which does not swallow the entry. */
static bool append_line(int fd, const char *line, size_t size) {
    char last = '\n';
    const off_t end = lseek(fd, 0, SEEK_END);
    if (end < 0 || (end > 0 && pread(fd, &last, 1, end - 1) != 1)) return false;
    if ((last == '\n' || write_all(fd, "\n", 1)) && write_all(fd, line, size)) return true;
    const int error = errno;
    if (ftruncate(fd, end) == 0) errno = error;
    return false;
}

/* The newest entries, whole, that fit into CLI_HISTORY_LEFT bytes; *size becomes theirs. */
static const char *newest(const char *bytes, size_t *size) {
    const char *from = bytes + (*size > CLI_HISTORY_LEFT ? *size - CLI_HISTORY_LEFT : 0);
    if (from > bytes) {
        from--; /* the end of the line before, where that is the last to go */
        const char *const end = memchr(from, '\n', *size - (size_t)(from - bytes));
        from = end != NULL ? end + 1 : bytes + *size;
    }
    *size -= (size_t)(from - bytes);
    return from;
}

/* fd: the locked file, of size bytes. */
static bool shorten(int fd, size_t size) {
    char *const bytes = malloc(size);
    bool is_done = bytes != NULL && pread(fd, bytes, size, 0) == (ssize_t)size;
    if (is_done) {
        const char *const from = newest(bytes, &size);
        is_done = lseek(fd, 0, SEEK_SET) == 0 && write_all(fd, from, size) &&
                  ftruncate(fd, (off_t)size) == 0;
    }
    free(bytes);
    return is_done;
}

bool cli_history_add(const char *path, const char *entry) {
    size_t size = 0;
    struct stat info;
    if (entry[0] == '\0' || strlen(entry) > CLI_ENTRY_MOST) return true;
    if (!make_folder(path)) return false;
    char *const line = escape(entry, &size);
    const int fd = line != NULL ? open_locked(path) : -1;
    bool is_done = fd >= 0 && fchmod(fd, 0600) == 0 && append_line(fd, line, size);
    if (is_done && fstat(fd, &info) == 0 && info.st_size > CLI_HISTORY_MOST)
        is_done = shorten(fd, (size_t)info.st_size);
    if (fd >= 0) close(fd);
    free(line);
    return is_done;
}
