/* Time, memory, processor, container limits. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L

#include "sys/clock.h"
#include "sys/cpu_features.h"
#include "sys/posix/cgroup.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_clock(void **state) {
    (void)state;
    const uint64_t begin = wk_clock_ns();
    usleep(20000);
    const uint64_t elapsed = wk_clock_ns() - begin;
    assert_in_range(elapsed, 20000000, 20000000000);
}

static void test_memory(void **state) {
    (void)state;
    enum { SIZE = 64 << 20 };
    const uint64_t before = wk_process_peak_bytes();
    char *const block = malloc(SIZE);
    assert_non_null(block);
    for (size_t i = 0; i < SIZE; i += 512) ((volatile char *)block)[i] = 1;
    free(block);
    const uint64_t peak = wk_process_peak_bytes();
    assert_true(peak >= SIZE && before > 0 && peak >= before);
    const uint64_t total = wk_memory_total(), available = wk_memory_available();
    print_message("peak %.1f MiB, total %.1f MiB, available %.1f MiB\n", (double)peak / 0x1p20,
                  (double)total / 0x1p20, (double)available / 0x1p20);
    assert_true(total > SIZE);
    assert_true(available <= total);
}

static void test_entropy(void **state) {
    (void)state;
    uint64_t all_ones = UINT64_MAX, any_ones = 0;
    for (int i = 0; i < 64; i++) {
        const uint64_t bits = wk_entropy();
        all_ones &= bits;
        any_ones |= bits;
    }
    assert_true(all_ones == 0 && any_ones == UINT64_MAX);
}

static void test_processor(void **state) {
    (void)state;
    char name[96], small[6];
    wk_cpu_name(name, sizeof name);
    const uint32_t features = wk_cpu_features();
    print_message("%s, features %#x\n", name, (unsigned)features);
    assert_true(strlen(name) > 0 && name[0] != ' ' && name[strlen(name) - 1] != ' ');
    wk_cpu_name(small, sizeof small);
    assert_memory_equal(small, name, 5);
    assert_int_equal(strlen(small), 5);
    if (features & WK_CPU_AVX512) assert_true(features & WK_CPU_AVX2);
}

static void test_numbers_in_text(void **state) {
    (void)state;
    const char *const text =
        "MemTotal:       123 kB\nActive_MemTotal: 9\nMemFree:    7 kB\nBad: x\n";
    uint64_t number = 1;
    assert_true(wk_find_number(text, "MemTotal:", &number) && number == 123);
    assert_true(wk_find_number(text, "MemFree:", &number) && number == 7);
    assert_false(wk_find_number(text, "Bad:", &number));
    assert_false(wk_find_number(text, "kB", &number));
    assert_false(wk_find_number("max\n", "", &number));
    assert_true(wk_find_number("4096\n", "", &number) && number == 4096);
}

/* A tree of groups as the kernel shows it: folders root, root/a, root/a/b. */
typedef struct tree {
    char root[64];
    char membership[96];
} tree;

static void put_text(const tree *t, const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", t->root, name);
    FILE *const stream = fopen(path, "w");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

static void remove_path(const tree *t, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", t->root, name);
    assert_int_equal(remove(path), 0);
}

static void test_container_limits(void **state) {
    (void)state;
    tree t = {.root = "/tmp/wick_test_XXXXXX"};
    assert_non_null(mkdtemp(t.root));
    char path[128];
    snprintf(path, sizeof path, "%s/a", t.root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/a/b", t.root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(t.membership, sizeof t.membership, "%s/membership", t.root);

    put_text(&t, "membership", "4:memory:/elsewhere\n0::/a/b\n");
    wk_cgroup_limits limits = wk_cgroup_read(t.membership, t.root);
    assert_true(limits.cpus == 0 && limits.memory_total == 0);

    put_text(&t, "a/b/cpu.max", "max 100000\n");
    put_text(&t, "a/cpu.max", "250000 100000\n");
    put_text(&t, "a/b/memory.max", "max\n");
    put_text(&t, "a/memory.max", "1000000\n");
    put_text(&t, "a/memory.current", "700000\n");
    put_text(&t, "a/memory.stat", "anon 1\ninactive_file 100000\nactive_file 50000\n");
    limits = wk_cgroup_read(t.membership, t.root);
    assert_int_equal(limits.cpus, 3);
    assert_int_equal(limits.memory_total, 1000000);
    assert_int_equal(limits.memory_available, 450000);

    put_text(&t, "a/b/cpu.max", "50000 100000\n");
    put_text(&t, "a/b/memory.max", "400000\n");
    limits = wk_cgroup_read(t.membership, t.root);
    assert_int_equal(limits.cpus, 1);
    assert_int_equal(limits.memory_total, 400000);
    assert_int_equal(limits.memory_available, 400000);

    put_text(&t, "membership", "0::/\n");
    limits = wk_cgroup_read(t.membership, t.root);
    assert_true(limits.cpus == 0 && limits.memory_total == 0);
    limits = wk_cgroup_read("/absent", t.root);
    assert_true(limits.cpus == 0 && limits.memory_total == 0);

    static const char *const names[] = {
        "a/b/cpu.max",      "a/b/memory.max", "a/cpu.max", "a/memory.max",
        "a/memory.current", "a/memory.stat",  "a/b",       "a",
        "membership"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) remove_path(&t, names[i]);
    assert_int_equal(rmdir(t.root), 0);
}

/* Version 1: a folder for each controller, and version 2 beside them. */
static void test_container_limits_v1(void **state) {
    (void)state;
    tree t = {.root = "/tmp/wick_test_XXXXXX"};
    assert_non_null(mkdtemp(t.root));
    snprintf(t.membership, sizeof t.membership, "%s/membership", t.root);
    static const char *const folders[] = {"memory", "memory/a", "cpu", "unified"};
    enum { N_FOLDERS = sizeof folders / sizeof *folders };
    for (size_t i = 0; i < N_FOLDERS; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", t.root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    static const char *const files[][2] = {
        {"membership", "12:cpuset:/x\n7:cpu,cpuacct:/gone\n4:memory:/a\n1:name=systemd:/\n0::/\n"},
        {"memory/memory.limit_in_bytes", "9223372036854771712\n"},
        {"memory/memory.usage_in_bytes", "800000\n"},
        {"memory/a/memory.limit_in_bytes", "1000000\n"},
        {"memory/a/memory.usage_in_bytes", "700000\n"},
        {"memory/a/memory.stat",
         "active_file 7\ntotal_inactive_file 100000\ntotal_active_file 50000\n"},
        {"cpu/cpu.cfs_quota_us", "250000\n"},
        {"cpu/cpu.cfs_period_us", "100000\n"},
        {"unified/memory.max", "max\n"},
    };
    enum { N_FILES = sizeof files / sizeof *files };
    for (size_t i = 0; i < N_FILES; i++) put_text(&t, files[i][0], files[i][1]);
    wk_cgroup_limits limits = wk_cgroup_read(t.membership, t.root);
    assert_int_equal(limits.cpus, 3); /* the path is the host's: the root of the mount counts */
    assert_int_equal(limits.memory_total, 1000000);
    assert_int_equal(limits.memory_available, 450000);

    put_text(&t, "memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    put_text(&t, "cpu/cpu.cfs_quota_us", "-1\n");
    limits = wk_cgroup_read(t.membership, t.root);
    assert_true(limits.cpus == 0 && limits.memory_total == 0);
    put_text(&t, "unified/memory.max", "600000\n");
    limits = wk_cgroup_read(t.membership, t.root);
    assert_int_equal(limits.memory_total, 600000);
    for (size_t i = 0; i < N_FILES; i++) remove_path(&t, files[i][0]);
    static const char *const last[] = {"memory/a", "memory", "cpu", "unified"};
    for (size_t i = 0; i < N_FOLDERS; i++) remove_path(&t, last[i]);
    assert_int_equal(rmdir(t.root), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_entropy),
        cmocka_unit_test(test_processor),
        cmocka_unit_test(test_numbers_in_text),
        cmocka_unit_test(test_container_limits),
        cmocka_unit_test(test_container_limits_v1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
