/* The folder of compiled kernels (cli/kernel_cache.c, which belongs to no library). */
#include "../../cli/kernel_cache.c"

#include "../../cli/cache_folder.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <sys/wait.h>

static char root[64];
static cli_kernel_cache cache;

static int set_up(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/wick-kernels-XXXXXX");
    if (mkdtemp(root) == NULL || setenv("XDG_CACHE_HOME", root, 1) != 0) return 1;
    if (unsetenv("WICK_HOME") != 0) return 1;
    cache = (cli_kernel_cache){0};
    cli_kernel_cache_open(&cache, 4096);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char folder[sizeof root + 16];
    static const char *const below[] = {"/wick/kernels", "/wick", ""};
    cache.limit = 0;
    trim(&cache);
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        snprintf(folder, sizeof folder, "%s%s", root, below[i]);
        if (access(folder, F_OK) == 0 && rmdir(folder) != 0) return 1;
    }
    return 0;
}

static size_t load_text(const char *key, char *value, size_t capacity) {
    const wick_kernel_cache functions = cli_kernel_cache_functions(&cache);
    return functions.load(functions.user, key, strlen(key), value, capacity);
}

static void store_text(const char *key, const char *value) {
    const wick_kernel_cache functions = cli_kernel_cache_functions(&cache);
    functions.store(functions.user, key, strlen(key), value, strlen(value));
}

static void test_round_trip(void **state) {
    (void)state;
    char value[16] = "untouched";
    assert_int_equal(load_text("key", value, sizeof value), 0);
    store_text("key", "first");
    store_text("key", "second!");
    assert_int_equal(load_text("key", NULL, 0), 7);
    assert_int_equal(load_text("key", value, 6), 7);
    assert_string_equal(value, "untouched");
    assert_int_equal(load_text("key", value, sizeof value), 7);
    assert_memory_equal(value, "second!", 7);
    assert_int_equal(load_text("ke", value, sizeof value), 0);
    cache = (cli_kernel_cache){0}; /* another process */
    cli_kernel_cache_open(&cache, 4096);
    assert_int_equal(load_text("key", value, sizeof value), 7);
}

/* The entry as a file, changed by what the caller does to its bytes. */
static void rewrite(const char *key, size_t at, int difference, size_t size) {
    unsigned char bytes[256];
    const entry_path path = path_of(&cache, key, strlen(key));
    FILE *file = fopen(path.text, "rb");
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(at < n && size <= n + 1);
    bytes[at] = (unsigned char)(bytes[at] + difference);
    file = fopen(path.text, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void test_damaged_entries(void **state) {
    (void)state;
    const size_t whole = sizeof(entry_header) + 3 + 5;
    char value[16];
    for (size_t at = 0; at < whole; at++) {
        store_text("key", "value");
        rewrite("key", at, 1, whole);
        assert_int_equal(load_text("key", value, sizeof value), 0);
    }
    for (size_t size = 0; size <= whole + 1; size++) {
        store_text("key", "value");
        rewrite("key", 0, 0, size);
        assert_int_equal(load_text("key", value, sizeof value), size == whole ? 5 : 0);
    }
}

/* An entry under the name of another key, as if both had one hash. */
static void test_other_key(void **state) {
    (void)state;
    char value[16];
    store_text("one", "value");
    const entry_path one = path_of(&cache, "one", 3), two = path_of(&cache, "two", 3);
    assert_int_equal(rename(one.text, two.text), 0);
    assert_int_equal(load_text("two", value, sizeof value), 0);
}

static void test_bounded(void **state) {
    (void)state;
    char text[1024], key[16];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "%d", i);
        store_text(key, text);
    }
    assert_int_equal(load_text("2", NULL, 0), sizeof text - 1);
    assert_int_equal(load_text("3", NULL, 0), 0); /* 4096 bytes have been stored */
    const entry_path first = path_of(&cache, "0", 1);
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path_of(&cache, "1", 1).text, long_ago, 0), 0);
    cache.limit = 3000;
    cli_kernel_cache_close(&cache);
    assert_int_equal(access(first.text, F_OK), 0);
    assert_int_equal(load_text("1", NULL, 0), 0);
    assert_int_equal(load_text("2", NULL, 0), sizeof text - 1);
}

/* While other processes store, an entry is there whole or not at all. */
static void test_processes(void **state) {
    (void)state;
    enum { CHILDREN = 2, ROUNDS = 300 };
    pid_t children[CHILDREN];
    char text[600];
    cache.room = UINT32_MAX;
    for (int c = 0; c < CHILDREN; c++) {
        children[c] = fork();
        if (children[c] != 0) continue;
        for (int i = 0; i < ROUNDS; i++) {
            memset(text, 'a' + c, sizeof text);
            text[i % 2 == 0 ? 300 : 500] = '\0';
            store_text("key", text);
        }
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        const size_t size = load_text("key", text, sizeof text);
        assert_true(size == 0 || size == 300 || size == 500);
        for (size_t k = 1; k < size; k++) assert_int_equal(text[k], text[0]);
    }
    for (int c = 0; c < CHILDREN; c++) {
        int status;
        assert_int_equal(waitpid(children[c], &status, 0), children[c]);
        assert_int_equal(status, 0);
    }
}

static void test_no_folder(void **state) {
    (void)state;
    const char *const homes[] = {NULL, "relative"};
    for (size_t i = 0; i < 2; i++) {
        cli_kernel_cache none = {0};
        unsetenv("XDG_CACHE_HOME");
        if (homes[i] == NULL)
            unsetenv("HOME");
        else
            setenv("HOME", homes[i], 1);
        cli_kernel_cache_open(&none, 4096);
        assert_null(cli_kernel_cache_functions(&none).load);
        cli_kernel_cache_close(&none);
    }
    /* One that cannot be made: nothing is kept, nothing fails. */
    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    cli_kernel_cache nowhere = {0};
    cli_kernel_cache_open(&nowhere, 4096);
    const wick_kernel_cache functions = cli_kernel_cache_functions(&nowhere);
    functions.store(functions.user, "key", 3, "value", 5);
    assert_int_equal(functions.load(functions.user, "key", 3, NULL, 0), 0);
    cli_kernel_cache_close(&nowhere);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_entries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_folder, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("kernel cache", tests, NULL, NULL);
}
