/* What people type for a conversation: the history's file, completion, questions of several lines.
 */
#define _XOPEN_SOURCE 700
#include "../../cli/cache_folder.c"
#include "../../cli/complete.c"

#include <fcntl.h>

static int n_interruptions; /* of the next calls of open */
static int interrupted_open(const char *path, int flags, int mode);
#define open interrupted_open
#include "../../cli/history.c"
#undef open
#include "../../cli/question.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char folder[64];

static int make_place(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/wick-typing-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_place(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static const char *below(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- History ---- */

typedef struct entries {
    char text[4][200];
    size_t n; /* all, of which the last ones are in text */
} entries;

static int interrupted_open(const char *path, int flags, int mode) {
    if (n_interruptions == 0) return open(path, flags, mode);
    n_interruptions--;
    errno = EINTR;
    return -1;
}

static void take_entry(void *user, const char *entry) {
    entries *const e = user;
    snprintf(e->text[e->n++ % 4], sizeof e->text[0], "%s", entry);
}

static void test_cut_history(void **state) {
    (void)state;
    const char *const path = below("cut");
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs("one\ntw", file);
    fclose(file);
    entries e = {.n = 0};
    assert_true(cli_history_add(path, "three"));
    cli_history_read(path, take_entry, &e);
    assert_int_equal(e.n, 3);
    assert_string_equal(e.text[1], "tw");
    assert_string_equal(e.text[2], "three");
}

static void test_history_not_a_file(void **state) {
    (void)state;
    entries e = {.n = 0};
    alarm(5); /* opening a pipe waits for its other end */
    assert_int_equal(mkfifo(below("pipe"), 0600), 0);
    cli_history_read(below("pipe"), take_entry, &e);
    assert_false(cli_history_add(below("pipe"), "one"));
    cli_history_read("/dev/zero", take_entry, &e);
    alarm(0);
    assert_int_equal(e.n, 0);
}

static void test_entries(void **state) {
    (void)state;
    const char *const path = below("state/wick/history");
    entries e = {.n = 0};
    cli_history_read(path, take_entry, &e); /* is not there */
    assert_int_equal(e.n, 0);
    static const char *const typed[] = {"one", "two\nlines \\n and \\", "\\", "\u4f60\u597d"};
    for (size_t i = 0; i < 4; i++) assert_true(cli_history_add(path, typed[i]));
    assert_true(cli_history_add(path, ""));
    cli_history_read(path, take_entry, &e);
    assert_int_equal(e.n, 4);
    for (size_t i = 0; i < 4; i++) assert_string_equal(e.text[i], typed[i]);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(stat(below("state/wick"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(chmod(path, 0644), 0); /* somebody opened it to all: the next entry does not */
    const char *const again = below("state/wick/history");
    assert_true(cli_history_add(again, "five"));
    assert_int_equal(stat(again, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_false(cli_history_add("/dev/null/history", "six"));
}

static void test_interrupted(void **state) {
    (void)state;
    const char *const path = below("interrupted");
    entries e = {.n = 0};
    n_interruptions = 2;
    assert_true(cli_history_add(path, "one"));
    n_interruptions = 2;
    cli_history_read(path, take_entry, &e);
    assert_int_equal(e.n, 1);
}

/* Of lines of n bytes each. */
static void fill_history(const char *path, size_t n, size_t n_lines) {
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < n_lines; i++) fprintf(file, "%0*zu\n", (int)n - 1, i);
    fclose(file);
}

/* A file that has grown too large keeps as many bytes as fit; a link stays a link, and nothing else
 * is in the folder. */
static void test_shortened(void **state) {
    (void)state;
    enum { LINE = 64, KEPT = CLI_HISTORY_LEFT / LINE, N = CLI_HISTORY_MOST / LINE };
    char target[256], path[256], entry[LINE + 1];
    struct stat info;
    assert_int_equal(mkdir(below("links"), 0700), 0);
    snprintf(target, sizeof target, "%s", below("links/target"));
    snprintf(path, sizeof path, "%s", below("links/history"));
    assert_int_equal(symlink(target, path), 0);
    for (int more = -1; more <= 1; more++) { /* the last entry, beside the length of all others */
        entries e = {.n = 0};
        fill_history(target, LINE, N);
        snprintf(entry, sizeof entry, "%0*d", LINE - 1 + more, 7);
        assert_true(cli_history_add(path, entry));
        cli_history_read(path, take_entry, &e);
        assert_int_equal(e.n, more > 0 ? KEPT - 1 : KEPT);
        assert_string_equal(e.text[(e.n - 1) % 4], entry);
        assert_int_equal(lstat(path, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        assert_int_equal(stat(target, &info), 0);
        assert_int_equal(info.st_size, (off_t)((e.n - 1) * LINE + LINE + (size_t)more));
    }
    size_t n = 0;
    DIR *const dir = opendir(below("links"));
    assert_non_null(dir);
    while (readdir(dir) != NULL) n++;
    closedir(dir);
    assert_int_equal(n, 4); /* with "." and ".." */
}

/* A limit on file sizes stands for a full disk. */
static void test_full_disk(void **state) {
    (void)state;
    const char *const path = below("full");
    entries e = {.n = 0};
    struct stat info;
    int status = -1;
    assert_true(cli_history_add(path, "one"));
    if (fork() == 0) {
        const struct rlimit limit = {6, 6};
        signal(SIGXFSZ, SIG_IGN);
        _exit(setrlimit(RLIMIT_FSIZE, &limit) == 0 && !cli_history_add(path, "two") ? 0 : 1);
    }
    assert_true(wait(&status) > 0 && status == 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 4);
    assert_true(cli_history_add(path, "three"));
    cli_history_read(path, take_entry, &e);
    assert_int_equal(e.n, 2);
}

static void test_bound(void **state) {
    (void)state;
    const char *const path = below("bounded");
    char entry[CLI_ENTRY_MOST + 2];
    struct stat info = {.st_size = 0};
    entries e = {.n = 0};
    memset(entry, 'x', sizeof entry);
    entry[CLI_ENTRY_MOST + 1] = '\0';
    assert_true(cli_history_add(path, entry)); /* too long to be kept */
    cli_history_read(path, take_entry, &e);
    assert_int_equal(e.n, 0);
    enum { N = 5000 };
    for (int i = 0; i < N; i++) {
        snprintf(entry, sizeof entry, "entry %d %0100d", i, 0);
        assert_true(cli_history_add(path, entry));
        assert_int_equal(stat(path, &info), 0);
        assert_true(info.st_size <= CLI_HISTORY_MOST);
    }
    cli_history_read(path, take_entry, &e);
    assert_true(e.n > 1000 && e.n < N);
    assert_string_equal(e.text[(e.n - 1) % 4], entry);
    assert_int_equal(strncmp(e.text[0], "entry ", 6), 0); /* whole ones alone */
}

/* Two chats at the same time, with so many lines that each has to shorten the file: all of the
 * newest entries of both are there. */
static void test_two_writers(void **state) {
    (void)state;
    enum { WRITERS = 3, N = 1500 };
    const char *const path = below("shared");
    for (int w = 0; w < WRITERS; w++) {
        if (fork() != 0) continue;
        char entry[200];
        bool is_done = true;
        for (int i = 0; i < N && is_done; i++) {
            snprintf(entry, sizeof entry, "%d %d %080d", w, i, 0);
            is_done = cli_history_add(path, entry);
        }
        _exit(is_done ? 0 : 1);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        assert_true(wait(&status) > 0 && status == 0);
    }
    FILE *const file = fopen(path, "r");
    int last[WRITERS] = {-1, -1, -1}, w = 0, i = 0, n = 0;
    assert_non_null(file);
    for (; fscanf(file, "%d %d %*s", &w, &i) == 2; n++) {
        if (last[w] >= 0) assert_int_equal(i, last[w] + 1); /* nothing is lost in between */
        last[w] = i;
    }
    fclose(file);
    assert_true(n > 1000);
    for (w = 0; w < WRITERS; w++) assert_true(last[w] == N - 1 || last[w] == -1);
}

static void test_place(void **state) {
    (void)state;
    char path[256];
    setenv("HOME", "/home/a", 1);
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_true(cli_history_path(path, sizeof path));
    assert_string_equal(path, "/state/wick/history");
    setenv("XDG_STATE_HOME", "relative", 1); /* is to be ignored */
    assert_true(cli_history_path(path, sizeof path));
    assert_string_equal(path, "/home/a/.local/state/wick/history");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME");
    assert_false(cli_history_path(path, sizeof path));
}

/* ---- Completion ---- */

static const char *const settings[] = {"temp", "top-k", "top-p", NULL};
static const cli_typed words[] = {
    {.name = "save", .takes_path = true},
    {.name = "set", .words = settings},
    {.name = "system"},
    {.name = NULL},
};

/* expected: the candidates with a blank after each; common: what is added at once. */
static void completes(const char *line, const char *expected, const char *common) {
    cli_completion c;
    char found[512] = "";
    cli_complete(words, line, &c);
    for (size_t i = 0; i < c.n; i++) {
        strcat(found, c.items[i]);
        strcat(found, i + 1 < c.n || c.n > 1 ? " " : c.after);
    }
    assert_string_equal(found, expected);
    if (c.n > 0) {
        char added[64];
        snprintf(added, sizeof added, "%.*s", (int)(c.common - c.typed), c.items[0] + c.typed);
        assert_string_equal(added, common);
    }
    cli_completion_free(&c);
}

static void test_completion(void **state) {
    (void)state;
    completes("/s", "save set system ", "");
    completes("/sa", "save ", "ve");
    completes("/", "save set system ", "s");
    completes("/x", "", "");
    completes("save", "", "");
    completes("", "", "");
    completes("/set t", "temp top-k top-p ", "");
    completes("/set to", "top-k top-p ", "p-");
    completes("/set temp ", "", "");
    completes("/system t", "", "");
    char line[256];
    fclose(fopen(below("a b.json"), "w"));
    fclose(fopen(below(".hidden"), "w"));
    assert_int_equal(mkdir(below("abc"), 0700), 0);
    snprintf(line, sizeof line, "/save %s/a", folder);
    completes(line, "a b.json abc/ ", "");
    strcat(line, " ");
    completes(line, "a b.json ", "b.json");
    snprintf(line, sizeof line, "/save %s/ab", folder);
    completes(line, "abc/", "c/");
    snprintf(line, sizeof line, "/save %s/.h", folder);
    completes(line, ".hidden ", "idden");
    completes("/save /nonexistent/x", "", "");
    /* Characters that begin with the same byte. */
    fclose(fopen(below("u\u00e9"), "w"));
    fclose(fopen(below("u\u00e8"), "w"));
    snprintf(line, sizeof line, "/save %s/u", folder);
    completes(line, "u\u00e8 u\u00e9 ", "");
}

/* What all of them begin with, also where there are more than are listed. */
static void test_many_candidates(void **state) {
    (void)state;
    enum { MOST = CLI_MAX_CANDIDATES + 1 };
    static char names[MOST][8];
    for (int n = CLI_MAX_CANDIDATES - 1; n <= MOST; n++) {
        cli_typed many[MOST + 1] = {{.name = NULL}};
        cli_completion c;
        for (int i = 0; i < n; i++) {
            snprintf(names[i], sizeof names[i], "%s%03d", i + 1 < n ? "aaa" : "aab", i);
            many[i].name = names[i];
        }
        cli_complete(many, "/a", &c);
        assert_int_equal(c.n, n < CLI_MAX_CANDIDATES ? n : CLI_MAX_CANDIDATES);
        assert_int_equal(c.n_left_out, n > CLI_MAX_CANDIDATES ? n - CLI_MAX_CANDIDATES : 0);
        assert_int_equal(c.common, 2);
        cli_completion_free(&c);
    }
}

/* ---- Questions ---- */

static const char *const *typed_lines; /* "^C" is Ctrl-C; NULL at the end */

cli_line_result cli_line_read(cli_line_reader *reader, const char *prompt, const char **line) {
    (void)reader, (void)prompt;
    if (*typed_lines == NULL) return CLI_LINE_END;
    *line = *typed_lines++;
    return strcmp(*line, "^C") == 0 ? CLI_LINE_INTERRUPTED : CLI_LINE_READ;
}

/* question NULL: the result alone counts. */
static void asks(const char *const *lines, cli_line_result result, const char *question,
                 bool is_command) {
    cli_question q;
    typed_lines = lines;
    assert_int_equal(cli_question_read(NULL, &q), result);
    if (question != NULL) {
        assert_string_equal(q.text, question);
        assert_int_equal(q.is_command, is_command);
    }
    free(q.text);
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_questions(void **state) {
    (void)state;
    asks(LINES("one"), CLI_LINE_READ, "one", false);
    asks(LINES("one\\", "two\\", "three"), CLI_LINE_READ, "one\ntwo\nthree", false);
    asks(LINES("one\r"), CLI_LINE_READ, "one", false);
    asks(LINES("one\\"), CLI_LINE_READ, "one\n", false);
    asks(LINES(" \t"), CLI_LINE_READ, "", false);
    asks(LINES("/help"), CLI_LINE_READ, "/help", true);
    asks(LINES("/load a b.json \t"), CLI_LINE_READ, "/load a b.json", true);
    asks(LINES("/ "), CLI_LINE_READ, "/", true);
    asks(LINES("one "), CLI_LINE_READ, "one ", false);
    asks(LINES("/* pasted\nlines */"), CLI_LINE_READ, "/* pasted\nlines */", false);
    asks(LINES("\"\"\"", "one", "", "two\\", "\"\"\"", "three"), CLI_LINE_READ, "one\n\ntwo\\",
         false);
    asks(LINES("\"\"\"one", "two\"\"\" "), CLI_LINE_READ, "one\ntwo", false);
    asks(LINES("\"\"\"/one\"\"\""), CLI_LINE_READ, "/one", false);
    asks(LINES("\"\"\"\"\"\""), CLI_LINE_READ, "", false);
    asks(LINES("\"\"\"", "one"), CLI_LINE_READ, "one", false); /* the input's end closes it */
    asks(LINES("\"\"\"", "one", "^C"), CLI_LINE_INTERRUPTED, NULL, false);
    asks(LINES("\"\"one\"\""), CLI_LINE_READ, "\"\"one\"\"", false);
    asks((const char *const[]){NULL}, CLI_LINE_END, NULL, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_cut_history),
        cmocka_unit_test(test_history_not_a_file),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_shortened),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_two_writers),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_completion),
        cmocka_unit_test(test_many_candidates),
        cmocka_unit_test(test_questions),
    };
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
