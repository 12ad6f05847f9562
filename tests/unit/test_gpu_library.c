/* backend/webgpu/gpu/gpu_library: which libraries are refused, and why. They are made here, by the
 * compiler of this build, each under a name of its own: a library stays in memory once opened. */
#define _GNU_SOURCE /* mkdtemp */
#include "backend/webgpu/gpu/gpu_library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[96], source[96];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/wick-gpu-library-XXXXXX");
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(source, sizeof source, "%s/fake.c", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    remove(source);
    return rmdir(folder);
}

static void make_library(const char *name, const char *text) {
    const char *const compiler = getenv("CC");
    char command[512];
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    FILE *const file = fopen(source, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    snprintf(command, sizeof command, "%s -shared -fPIC -o %s %s", compiler ? compiler : "cc", path,
             source);
    assert_int_equal(system(command), 0);
}

static void refuse(const char *words) {
    wk_gpu_library libraries[WK_GPU_MAX_LIBRARIES];
    assert_int_equal(wk_gpu_libraries_open(path, libraries), 1);
    assert_null(libraries[0].handle);
    assert_string_equal(libraries[0].path, path);
    if (strstr(libraries[0].reason, words) == NULL) fail_msg("%s", libraries[0].reason);
    remove(path);
}

static void test_refused_libraries(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/absent.so", folder);
    refuse("absent.so");
    make_library("other", "int other(void) { return 1; }\n");
    refuse("not an implementation of WebGPU");
    make_library("old", "void wgpuCreateInstance(void) {}\n");
    refuse("older than that of 2026");
    make_library("part", "void wgpuCreateInstance(void) {}\n"
                         "void wgpuComputePassEncoderSetImmediates(void) {}\n");
    refuse("it has no function wgpu");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_libraries),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
