/* Files: read, map, write whole. */
#define _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L

#include "sys/file.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* These take the place of the C library's in this program and write down who was called: 'F' a
 * flushed file, 'D' a flushed folder, 'R' a renamed file. */
static char calls[16];
static bool flush_fails;

static void note_call(char which) {
    const size_t n = strlen(calls);
    if (n + 1 < sizeof calls) calls[n] = which;
}

int fsync(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) return -1;
    note_call(S_ISDIR(status.st_mode) ? 'D' : 'F');
    errno = EIO;
    return flush_fails ? -1 : 0;
}

int rename(const char *from, const char *to) {
    note_call('R');
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

typedef struct fixture {
    checked_heap checked;
    char folder[64];
    char path[96]; /* in folder, absent at first */
    int free_fd;
} fixture;

/* The descriptor that is free first: one that is left open would take it. */
static int find_free_fd(void) {
    const int fd = dup(STDERR_FILENO);
    if (fd >= 0) close(fd);
    return fd;
}

static int set_up(void **state) {
    static fixture f;
    checked_heap_init(&f.checked, UINT64_MAX);
    strcpy(f.folder, "/tmp/wick_test_XXXXXX");
    if (!mkdtemp(f.folder)) return 1;
    snprintf(f.path, sizeof f.path, "%s/file", f.folder);
    f.free_fd = find_free_fd();
    *state = &f;
    return 0;
}

/* Fails where anything but f.path is left in the folder, or a file is open. */
static int tear_down(void **state) {
    fixture *const f = *state;
    unlink(f->path);
    const bool is_clean = checked_heap_is_clean(&f->checked) && find_free_fd() == f->free_fd;
    return rmdir(f->folder) == 0 && is_clean ? 0 : 1;
}

static void write_file(fixture *f, const void *data, size_t size) {
    wk_file_writer *writer;
    wick_error err = {0};
    assert_int_equal(wk_file_write_start(&f->checked.heap, f->path, &writer, &err), WICK_OK);
    assert_int_equal(wk_file_write(writer, data, size / 2, &err), WICK_OK);
    assert_int_equal(wk_file_write(writer, (const char *)data + size / 2, size - size / 2, &err),
                     WICK_OK);
    assert_int_equal(wk_file_write_finish(&f->checked.heap, writer, true, &err), WICK_OK);
    assert_int_equal(err.status, WICK_OK);
}

static wk_file *open_file(fixture *f) {
    wk_file *file;
    assert_int_equal(wk_file_open(&f->checked.heap, f->path, &file, NULL), WICK_OK);
    return file;
}

static void test_read(void **state) {
    fixture *const f = *state;
    write_file(f, "0123456789", 10);
    wk_file *const file = open_file(f);
    assert_int_equal(wk_file_size(file), 10);
    char text[11] = {0};
    assert_int_equal(wk_file_read_at(file, 0, text, 10, NULL), WICK_OK);
    assert_string_equal(text, "0123456789");
    assert_int_equal(wk_file_read_at(file, 7, text, 3, NULL), WICK_OK);
    assert_memory_equal(text, "789", 3);
    assert_int_equal(wk_file_read_at(file, 10, text, 0, NULL), WICK_OK);
    wick_error err = {0};
    assert_int_equal(wk_file_read_at(file, 7, text, 4, &err), WICK_ERR_IO);
    assert_non_null(strstr(err.message, f->path));
    assert_int_equal(wk_file_read_at(file, UINT64_MAX, text, 4, NULL), WICK_ERR_IO);
    assert_int_equal(truncate(f->path, 5), 0);
    err = (wick_error){0};
    assert_int_equal(wk_file_read_at(file, 3, text, 4, &err), WICK_ERR_IO);
    assert_non_null(strstr(err.message, "ends at 5 now"));
    wk_file_close(&f->checked.heap, file);
    wk_file_close(&f->checked.heap, NULL);
}

/* Beyond 4 GB, on a file that is almost all hole. */
static void test_large_offset(void **state) {
    fixture *const f = *state;
    FILE *const stream = fopen(f->path, "wb");
    assert_non_null(stream);
    const int64_t offset = (1LL << 33) + 7;
    if (fseeko(stream, offset, SEEK_SET) != 0 || fputs("far", stream) < 0 || fclose(stream) != 0) {
        print_message("skipped: no files of 8 GB in /tmp\n");
        skip();
    }
    wk_file *const file = open_file(f);
    assert_true(wk_file_size(file) == (uint64_t)offset + 3);
    char text[3];
    assert_int_equal(wk_file_read_at(file, (uint64_t)offset, text, 3, NULL), WICK_OK);
    assert_memory_equal(text, "far", 3);
    wk_file_close(&f->checked.heap, file);
}

static void refuse(fixture *f, const char *path, wick_status status, const char *word) {
    wk_file *file;
    wick_error err = {0};
    assert_int_equal(wk_file_open(&f->checked.heap, path, &file, &err), status);
    assert_null(file);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, path) || !strstr(err.message, word)) fail_msg("%s", err.message);
}

static void test_open_failures(void **state) {
    fixture *const f = *state;
    refuse(f, f->path, WICK_ERR_NOT_FOUND, "cannot open");
    refuse(f, f->folder, WICK_ERR_IO, "is a directory");
    refuse(f, "/dev/null", WICK_ERR_IO, "not a regular file");
    assert_int_equal(mkfifo(f->path, 0600), 0);
    refuse(f, f->path, WICK_ERR_IO, "not a regular file"); /* and does not wait for a writer */
    unlink(f->path);
    write_file(f, "x", 1);
    char inside[128];
    snprintf(inside, sizeof inside, "%s/inside", f->path);
    refuse(f, inside, WICK_ERR_NOT_FOUND, "cannot open");
    f->checked.n_allowed = 0;
    refuse(f, f->path, WICK_ERR_OUT_OF_MEMORY, "");
}

static void test_map(void **state) {
    fixture *const f = *state;
    static char data[100000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7);
    write_file(f, data, sizeof data);
    wk_file *const file = open_file(f);
    const void *map, *again;
    wk_file_drop(file, 0, sizeof data); /* not mapped yet: nothing to do */
    assert_int_equal(wk_file_map(file, &map, NULL), WICK_OK);
    assert_memory_equal(map, data, sizeof data);
    assert_int_equal(wk_file_map(file, &again, NULL), WICK_OK);
    assert_ptr_equal(map, again);
    wk_file_drop(file, 1, 50000);
    wk_file_drop(file, 50000, UINT64_MAX);
    wk_file_drop(file, UINT64_MAX, 1);
    wk_file_drop(file, 99999, 1);
    assert_memory_equal(map, data, sizeof data); /* read again from the file */
    wk_file_close(&f->checked.heap, file);
}

static void test_empty_map(void **state) {
    fixture *const f = *state;
    write_file(f, "", 0);
    wk_file *const file = open_file(f);
    const void *map = f;
    assert_int_equal(wk_file_map(file, &map, NULL), WICK_OK);
    assert_null(map);
    wk_file_drop(file, 0, 1);
    wk_file_close(&f->checked.heap, file);
}

static void check_contents(fixture *f, const char *expected) {
    char text[100] = {0};
    FILE *const stream = fopen(f->path, "rb");
    assert_non_null(stream);
    assert_true(fread(text, 1, sizeof text - 1, stream) < sizeof text - 1);
    fclose(stream);
    assert_string_equal(text, expected);
}

static void test_write_is_whole(void **state) {
    fixture *const f = *state;
    wk_heap *const heap = &f->checked.heap;
    wk_file_writer *writer;
    write_file(f, "old", 3);
    assert_int_equal(wk_file_write_start(heap, f->path, &writer, NULL), WICK_OK);
    assert_int_equal(wk_file_write(writer, "new contents", 12, NULL), WICK_OK);
    check_contents(f, "old"); /* nothing before finish */
    assert_int_equal(wk_file_write_finish(heap, writer, true, NULL), WICK_OK);
    check_contents(f, "new contents");
    assert_int_equal(wk_file_write_start(heap, f->path, &writer, NULL), WICK_OK);
    assert_int_equal(wk_file_write(writer, "unwanted", 8, NULL), WICK_OK);
    assert_int_equal(wk_file_write_finish(heap, writer, false, NULL), WICK_OK);
    check_contents(f, "new contents");
}

/* A new file has what the mask leaves, one that replaces another has its permissions. */
static void test_permissions(void **state) {
    fixture *const f = *state;
    wk_heap *const heap = &f->checked.heap;
    const mode_t mask = umask(0);
    umask(mask);
    const mode_t modes[] = {0666 & ~mask, 0600, 0640, 0755, 0444};
    for (size_t i = 0; i < WK_COUNT(modes); i++) {
        wk_file_writer *writer;
        struct stat status;
        if (i > 0) assert_int_equal(chmod(f->path, modes[i]), 0);
        assert_int_equal(wk_file_write_start(heap, f->path, &writer, NULL), WICK_OK);
        assert_int_equal(wk_file_write(writer, "new", 3, NULL), WICK_OK);
        assert_int_equal(wk_file_write_finish(heap, writer, true, NULL), WICK_OK);
        assert_int_equal(stat(f->path, &status), 0);
        assert_int_equal(status.st_mode & 0777, modes[i]);
    }
}

/* A name that leads to contents that are not on the disk yet would lead to nothing after a power
 * cut. */
static void test_flush_before_rename(void **state) {
    fixture *const f = *state;
    wk_file_writer *writer;
    wick_error err = {0};
    memset(calls, 0, sizeof calls);
    write_file(f, "old", 3);
    assert_string_equal(calls, "FRD");
    memset(calls, 0, sizeof calls);
    flush_fails = true;
    assert_int_equal(wk_file_write_start(&f->checked.heap, f->path, &writer, NULL), WICK_OK);
    assert_int_equal(wk_file_write(writer, "new", 3, NULL), WICK_OK);
    const wick_status status = wk_file_write_finish(&f->checked.heap, writer, true, &err);
    flush_fails = false;
    assert_int_equal(status, WICK_ERR_IO);
    assert_non_null(strstr(err.message, f->path));
    assert_string_equal(calls, "F"); /* and no rename */
    check_contents(f, "old");
}

static void refuse_write(fixture *f, const char *path, wick_status status, const char *word) {
    wk_file_writer *writer;
    wick_error err = {0};
    assert_int_equal(wk_file_write_start(&f->checked.heap, path, &writer, &err), status);
    assert_null(writer);
    if (!strstr(err.message, path) || !strstr(err.message, word)) fail_msg("%s", err.message);
}

static void test_write_failures(void **state) {
    fixture *const f = *state;
    refuse_write(f, f->folder, WICK_ERR_IO, "is a directory");
    char absent[128];
    snprintf(absent, sizeof absent, "%s/absent/file", f->folder);
    refuse_write(f, absent, WICK_ERR_NOT_FOUND, "cannot write");
    f->checked.n_allowed = 0;
    refuse_write(f, f->path, WICK_ERR_OUT_OF_MEMORY, "");
}

/* False stands for a file system where a file without a name cannot be given one. */
static bool can_link = true;
#ifdef SYS_linkat
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    if (can_link) return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    errno = EPERM;
    return -1;
}
#endif

/* Files in f->folder beside f->path. */
static size_t count_others(const fixture *f) {
    size_t n = 0;
    DIR *const stream = opendir(f->folder);
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
        n += entry->d_name[0] != '.' && strcmp(entry->d_name, "file") != 0;
    closedir(stream);
    return n;
}

/* A process that is killed while it writes. */
static void write_and_die(fixture *f) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        wk_file_writer *writer;
        if (wk_file_write_start(&f->checked.heap, f->path, &writer, NULL) == WICK_OK)
            (void)wk_file_write(writer, "half", 4, NULL);
        raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static bool has_nameless_files(const fixture *f) {
#ifdef O_TMPFILE
    const int fd = open(f->folder, O_TMPFILE | O_WRONLY, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
#else
    (void)f;
    return false;
#endif
}

static void test_killed_writers(void **state) {
    fixture *const f = *state;
    if (has_nameless_files(f)) {
        write_and_die(f);
        assert_int_equal(count_others(f), 0);
    }
    can_link = false;
    write_and_die(f);
    const size_t n_left = count_others(f);
    write_file(f, "whole", 5); /* removes what is left, and nothing stays of itself */
    can_link = true;
    check_contents(f, "whole");
    assert_int_equal(count_others(f), 0);
    write_file(f, "again", 5);
    assert_int_equal(count_others(f), 0);
#ifdef SYS_linkat
    assert_int_equal(n_left, 1);
#else
    (void)n_left;
#endif
}

/* What others write, or have called similarly, is not swept. */
static void test_sweep_spares_others(void **state) {
    fixture *const f = *state;
    static const char *const names[] = {".wick-0123456789abcdef",  ".wick-0123456789abcde",
                                        ".wick-0123456789abcdef0", ".wick-0123456789abcdeg",
                                        "2.wick-0123456789abcdef", ".note"};
    enum { N = sizeof names / sizeof *names };
    char paths[N][160];
    for (size_t i = 0; i < N; i++) {
        snprintf(paths[i], sizeof paths[i], "%s%s", f->path, names[i]);
        fclose(fopen(paths[i], "wb"));
    }
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int held = open(paths[0], O_WRONLY);
    assert_int_equal(fcntl(held, F_OFD_SETLK, &whole), 0);
    write_file(f, "x", 1);
    assert_int_equal(count_others(f), N);
    close(held);
    wk_file_writer *writer;
    can_link = false;
    assert_int_equal(wk_file_write_start(&f->checked.heap, f->path, &writer, NULL), WICK_OK);
    write_file(f, "y", 1); /* leaves the other writer its file */
    assert_int_equal(wk_file_write_finish(&f->checked.heap, writer, true, NULL), WICK_OK);
    can_link = true;
    check_contents(f, "");
    assert_int_equal(access(paths[0], F_OK), -1);
    for (size_t i = 1; i < N; i++) assert_int_equal(unlink(paths[i]), 0);
}

/* The limit on the size of files stands for a full disk. */
static void test_write_beyond_limit(void **state) {
    fixture *const f = *state;
    write_file(f, "old", 3);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {.rlim_cur = 1000, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    wk_file_writer *writer;
    wick_error err = {0}, second = {0};
    static const char data[5000] = {1};
    const wick_status started = wk_file_write_start(&f->checked.heap, f->path, &writer, &err);
    const wick_status written = wk_file_write(writer, data, sizeof data, &err);
    const wick_status finished = wk_file_write_finish(&f->checked.heap, writer, true, &second);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    assert_int_equal(started, WICK_OK);
    assert_int_equal(written, WICK_ERR_IO);
    assert_int_equal(finished, WICK_ERR_IO); /* what is not whole is not committed */
    assert_non_null(strstr(err.message, f->path));
    assert_non_null(strstr(second.message, f->path));
    check_contents(f, "old");
}

/* Devices are written in place and stay devices. A terminal is one that no mistake can replace. */
static void test_write_to_device(void **state) {
    fixture *const f = *state;
    wk_file_writer *writer;
    wick_error err = {0};
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const char *const path = ptsname(terminal);
    const int kept = open(path, O_RDWR | O_NOCTTY); /* what is written stays until it is read */
    assert_true(kept >= 0);
    assert_int_equal(wk_file_write_start(&f->checked.heap, path, &writer, &err), WICK_OK);
    assert_int_equal(wk_file_write(writer, "x", 1, &err), WICK_OK);
    assert_int_equal(wk_file_write_finish(&f->checked.heap, writer, true, &err), WICK_OK);
    char written = 0;
    assert_int_equal(read(terminal, &written, 1), 1);
    assert_int_equal(written, 'x');
    close(kept);
    close(terminal);
    if (access("/dev/full", W_OK) != 0) {
        print_message("no /dev/full here: the full disk was not tried\n");
        return;
    }
    assert_int_equal(wk_file_write_start(&f->checked.heap, "/dev/full", &writer, &err), WICK_OK);
    assert_int_equal(wk_file_write(writer, "x", 1, &err), WICK_ERR_IO);
    assert_non_null(strstr(err.message, "cannot write '/dev/full': "));
    assert_int_equal(wk_file_write_finish(&f->checked.heap, writer, true, &err), WICK_ERR_IO);
}

static bool is_link(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

static wick_status write_to(fixture *f, const char *path, const char *text, wick_error *err) {
    wk_file_writer *writer;
    wick_status status = wk_file_write_start(&f->checked.heap, path, &writer, err);
    if (status != WICK_OK) return status;
    status = wk_file_write(writer, text, strlen(text), err);
    assert_int_equal(status, WICK_OK);
    return wk_file_write_finish(&f->checked.heap, writer, true, err);
}

/* What a link leads to is written, as a shell does with /dev/stdout; the link stays. */
/* By what they are, not by their names. */
static void test_is_same(void **state) {
    fixture *const f = *state;
    char other[sizeof f->path + 8], linked[sizeof f->path + 8];
    snprintf(other, sizeof other, "%s.other", f->path);
    snprintf(linked, sizeof linked, "%s.linked", f->path);
    write_file(f, "0", 1);
    assert_false(wk_file_is_same(f->path, linked));
    assert_int_equal(link(f->path, linked), 0);
    FILE *const file = fopen(other, "wb");
    assert_non_null(file);
    fclose(file);
    assert_true(wk_file_is_same(f->path, f->path));
    assert_true(wk_file_is_same(f->path, linked));
    assert_false(wk_file_is_same(f->path, other));
    assert_int_equal(unlink(linked), 0);
    assert_int_equal(unlink(other), 0);
}

static void test_write_through_links(void **state) {
    fixture *const f = *state;
    char link[160], open_file[64];
    wick_error err = {0};
    snprintf(link, sizeof link, "%s.link", f->path);
    write_file(f, "old", 3);
    assert_int_equal(symlink(f->path, link), 0);
    assert_int_equal(write_to(f, link, "new", &err), WICK_OK);
    assert_true(is_link(link));
    check_contents(f, "new");
    assert_int_equal(unlink(link), 0);

    const int fd = open(f->path, O_WRONLY);
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    if (!is_link(open_file)) { /* not Linux */
        close(fd);
        return;
    }
    assert_int_equal(symlink(open_file, link), 0);
    assert_int_equal(write_to(f, link, "through two", &err), WICK_OK);
    check_contents(f, "through two");
    assert_int_equal(unlink(f->path), 0); /* what fd has open has no name any more */
    assert_int_equal(write_to(f, link, "nowhere", &err), WICK_ERR_IO);
    assert_non_null(strstr(err.message, "links to a file without a name"));
    assert_true(is_link(link));
    close(fd);
    assert_int_equal(unlink(link), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_offset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_open_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_map, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_map, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write_is_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_permissions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_flush_before_rename, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_writers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sweep_spares_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write_beyond_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write_to_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_is_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write_through_links, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
