/* partial.c: see partial.h. */
#define _DEFAULT_SOURCE /* flock, which stays while the file is opened a second time to be checked \
                         */
#define _DARWIN_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "partial.h"

#include "cache_folder.h"
#include "cli.h"
#include "interrupt.h"
#include "text_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int fail(const cli_partial *partial, const char *verb) {
    return cli_error("cannot %s '%s': %s", verb, partial->path.text, strerror(errno));
}

/* The folder above path; false: it needs none. */
static bool keep_parent(char *path) {
    char *const slash = strrchr(path, '/');
    if (slash == NULL || slash == path) return false;
    *slash = '\0';
    return true;
}

static size_t size_of_what_is_there(const char *folder) {
    cli_path above;
    struct stat info;
    snprintf(above.text, sizeof above.text, "%s", folder);
    while (stat(above.text, &info) != 0)
        if (!keep_parent(above.text)) return 0;
    return strlen(above.text);
}

static void remove_empty_folders(const cli_partial *partial) {
    cli_path folder = partial->path;
    while (keep_parent(folder.text) && strlen(folder.text) > partial->there)
        if (rmdir(folder.text) != 0) return;
}

static int make_folders(const char *path, cli_partial *partial) {
    cli_path folder;
    if (!cli_path_join(path, "", &folder)) return CLI_FAILURE;
    if (!keep_parent(folder.text)) return CLI_OK;
    partial->there = size_of_what_is_there(folder.text);
    if (cli_make_folders(folder.text)) return CLI_OK;
    const int error = errno;
    remove_empty_folders(partial);
    return cli_error("cannot make the folder '%s': %s", folder.text, strerror(error));
}

bool cli_partial_is_there(const cli_partial *partial) {
    struct stat named, opened;
    return stat(partial->path.text, &named) == 0 && fstat(partial->descriptor, &opened) == 0 &&
           named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
}

int cli_partial_open(const char *path, cli_partial *partial) {
    *partial = (cli_partial){.descriptor = -1};
    if (!cli_path_join(path, ".part", &partial->path) || make_folders(path, partial) != CLI_OK)
        return CLI_FAILURE;
    partial->descriptor = open(partial->path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (partial->descriptor < 0) {
        (void)fail(partial, "open");
        remove_empty_folders(partial);
        return CLI_FAILURE;
    }
    struct stat info;
    int code = CLI_OK;
    /* Some file systems have no locks. */
    const bool is_held = flock(partial->descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (is_held || !cli_partial_is_there(partial))
        code = cli_error("another wick is fetching '%s'; wait until it is done, or stop it", path);
    else if (fstat(partial->descriptor, &info) != 0)
        code = fail(partial, "read");
    else
        partial->size = (uint64_t)info.st_size;
    if (code != CLI_OK) cli_partial_close(partial, true);
    return code;
}

void cli_partial_close(cli_partial *partial, bool is_kept) {
    if (partial->descriptor < 0) return;
    if (!is_kept && cli_partial_is_there(partial)) (void)unlink(partial->path.text);
    (void)close(partial->descriptor);
    partial->descriptor = -1;
    if (!is_kept) remove_empty_folders(partial);
}

enum { PIECE = 1 << 20 };

int cli_partial_keep(cli_partial *partial) {
    unsigned char *const piece = malloc(PIECE);
    if (piece == NULL) return cli_error("out of memory for %d bytes", PIECE);
    cli_sha256_start(&partial->sha);
    int code = lseek(partial->descriptor, 0, SEEK_SET) == 0 ? CLI_OK : fail(partial, "read");
    while (code == CLI_OK && partial->sha.size < partial->size) {
        const ssize_t n = read(partial->descriptor, piece, PIECE);
        if (n > 0)
            cli_sha256_add(&partial->sha, piece, (size_t)n);
        else if (n == 0 || errno != EINTR)
            code = fail(partial, "read");
        if (cli_interrupted()) code = CLI_INTERRUPTED;
    }
    free(piece);
    return code;
}

int cli_partial_restart(cli_partial *partial) {
    cli_sha256_start(&partial->sha);
    partial->size = 0;
    if (ftruncate(partial->descriptor, 0) == 0 && lseek(partial->descriptor, 0, SEEK_SET) == 0)
        return CLI_OK;
    return fail(partial, "empty");
}

int cli_partial_append(cli_partial *partial, const void *bytes, size_t size) {
    enum { CHECKED = 16 << 20 }; /* a body that does not say how long it is must leave room, too */
    if (partial->size / CHECKED != (partial->size + size) / CHECKED) {
        const int code = cli_partial_check_space(partial, size);
        if (code != CLI_OK) return code;
    }
    const unsigned char *at = bytes;
    for (size_t left = size; left > 0;) {
        const ssize_t n = write(partial->descriptor, at, left);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            const cli_size_text kept = cli_bytes_text(partial->size);
            return cli_error("cannot write '%s': %s; %s are kept; the same command continues from "
                             "there",
                             partial->path.text, strerror(errno), kept.text);
        }
        cli_sha256_add(&partial->sha, at, (size_t)n);
        partial->size += (uint64_t)n;
        at += n;
        left -= (size_t)n;
    }
    return CLI_OK;
}

/* Room on the disk that stays for other programs and the system: a hundredth of the disk, but no
 * more than this, in bytes. */
enum { MOST_RESERVED = 1 << 30 };

int cli_partial_check_space(const cli_partial *partial, uint64_t bytes) {
    struct statvfs disk;
    if (fstatvfs(partial->descriptor, &disk) != 0) return CLI_OK; /* writing fails if it is full */
    const uint64_t there = (uint64_t)disk.f_bavail * disk.f_frsize;
    const uint64_t hundredth = (uint64_t)disk.f_blocks * disk.f_frsize / 100;
    const uint64_t reserve = hundredth < MOST_RESERVED ? hundredth : MOST_RESERVED;
    if (bytes <= there && there - bytes >= reserve) return CLI_OK;
    cli_size_text needed = cli_bytes_text(bytes), left = cli_bytes_text(there);
    return cli_error("not enough room on the disk of '%s': %s needed, %s free, of which %s stay "
                     "reserved; WICK_HOME can name another folder",
                     partial->path.text, needed.text, left.text, cli_bytes_text(reserve).text);
}

int cli_partial_rename(cli_partial *partial, const char *path) {
    if (fsync(partial->descriptor) != 0) return fail(partial, "write");
    if (rename(partial->path.text, path) != 0) return fail(partial, "rename");
    return CLI_OK;
}
