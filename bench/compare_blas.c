/* bench/compare_blas.c: products by OpenBLAS, where the system has it. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "compare.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 }; /* of the CBLAS interface */

typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc);
typedef void (*threads_fn)(int n);

static sgemm_fn sgemm;
static threads_fn set_threads;

/* Versions that do not know a new processor take their slowest kernels on it, unless told. */
static void name_processor(void) {
#ifdef __x86_64__
    const char *name = NULL;
    if (__builtin_cpu_supports("avx2")) name = "Haswell";
    if (__builtin_cpu_supports("avx512vl")) name = "SkylakeX";
    if (__builtin_cpu_supports("avx512bf16")) name = "Sapphirerapids";
    if (name) setenv("OPENBLAS_CORETYPE", name, 0);
#endif
}

static bool is_open(void) {
    static bool was_tried;
    if (!was_tried) {
        was_tried = true;
        name_processor();
        void *const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
        if (library) {
            *(void **)&sgemm = dlsym(library, "cblas_sgemm");
            *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
        }
    }
    return sgemm && set_threads;
}

bool blas_product(const product *p, int n_threads, const float *a, const float *b, float *c) {
    if (!is_open()) return false;
    set_threads(n_threads);
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    for (int64_t i = 0; i < p->batch; i++)
        sgemm(ROW_MAJOR, p->a_is_transposed ? TRANSPOSE : NO_TRANSPOSE,
              p->b_is_transposed ? TRANSPOSE : NO_TRANSPOSE, m, n, k, 1, a + i * p->m * p->k,
              p->a_is_transposed ? m : k, b + i * p->k * p->n, p->b_is_transposed ? k : n, 0,
              c + i * p->m * p->n, n);
    return true;
}
