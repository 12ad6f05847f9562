/* tests/unit/webgpu_libraries.h: runs tests for every implementation of WebGPU found
 * (WICK_WEBGPU_LIB, or those in deps/webgpu) that has an adapter with the driver that the
 * environment names. */
#ifndef WEBGPU_LIBRARIES_H
#define WEBGPU_LIBRARIES_H

#include "backend/webgpu/gpu.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

static const char *library; /* that the tests are running for */

/* The exit status of main. */
static inline int run_for_each_library(const struct CMUnitTest *tests, size_t n) {
    const char *const named = getenv("WICK_WEBGPU_LIB");
    const char *const paths[] = {named, "deps/webgpu/libwebgpu_dawn.so",
                                 "deps/webgpu/libwgpu_native.so"};
    int failed = 0, n_run = 0;
    for (size_t i = 0; i < WK_COUNT(paths); i++) {
        if (!paths[i] || (named && i > 0)) continue;
        library = paths[i];
        const char *const reason = wk_gpu_unavailable(library, false);
        printf("# %s%s%s\n", library, reason ? ": " : "", reason ? reason : "");
        if (reason) continue;
        failed += _cmocka_run_group_tests(library, tests, n, NULL, NULL);
        n_run++;
    }
    if (n_run > 0) return failed > 0;
    printf("no implementation of WebGPU with an adapter (tools/fetch_webgpu)\n");
    return 77;
}

#endif
