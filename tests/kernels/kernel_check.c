/* kernel_check: compares every CPU kernel that this processor can run with the reference, on random
 * ops; reference kernels are compared with themselves in other ranges.
 *
 *   kernel_check [--kernel=GLOB] [--seed=N] [--cases=N] [--isa=NAME] [--bench] [--list]
 *
 * Prints TAP, one test for each kernel: errors relative to the rms of the results, and the largest
 * part of its bound that one was. NAME is ref, avx2, avx512, neon, dotprod or i8mm. Exit status: 0
 * all passed, 1 one failed, 2 wrong use. */
#include "sys/cpu_features.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *glob;
    uint64_t seed;
    int64_t n_cases;
    uint32_t features;
    bool is_bench, is_list;
} options;

/* * stands for any characters, ? for one. */
static bool matches(const char *glob, const char *name) {
    if (*glob == '*') return matches(glob + 1, name) || (*name != '\0' && matches(glob, name + 1));
    if (*name == '\0') return *glob == '\0';
    return (*glob == '?' || *glob == *name) && matches(glob + 1, name + 1);
}

static bool parse_number(const char *text, uint64_t *number) {
    char *end;
    *number = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && *end == '\0';
}

static bool parse_isa(const char *name, uint32_t *features) {
    static const struct {
        const char *name;
        uint32_t features;
    } sets[] = {
        {"ref", 0},
        {"avx2", WK_CPU_AVX2},
        {"avx512", UINT32_MAX},
        {"neon", WK_CPU_NEON},
        {"dotprod", WK_CPU_NEON | WK_CPU_DOTPROD},
        {"i8mm", UINT32_MAX},
    };
    for (size_t i = 0; i < WK_COUNT(sets); i++) {
        if (strcmp(name, sets[i].name) != 0) continue;
        *features &= sets[i].features;
        return true;
    }
    return false;
}

static bool parse(int argc, char **argv, options *o) {
    *o = (options){.glob = "*", .seed = 1, .n_cases = 100, .features = wk_cpu_features()};
    for (int i = 1; i < argc; i++) {
        uint64_t number;
        if (strncmp(argv[i], "--kernel=", 9) == 0) {
            o->glob = argv[i] + 9;
        } else if (strncmp(argv[i], "--seed=", 7) == 0) {
            if (!parse_number(argv[i] + 7, &o->seed)) return false;
        } else if (strncmp(argv[i], "--cases=", 8) == 0) {
            if (!parse_number(argv[i] + 8, &number) || number > INT32_MAX) return false;
            o->n_cases = (int64_t)number;
        } else if (strncmp(argv[i], "--isa=", 6) == 0) {
            if (!parse_isa(argv[i] + 6, &o->features)) return false;
        } else if (strcmp(argv[i], "--bench") == 0) {
            o->is_bench = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            o->is_list = true;
        } else {
            return false;
        }
    }
    return true;
}

static bool check(const wk_cpu_kernel *kernel, const options *o, int number, wk_heap *heap) {
    wk_verify_report report;
    const char *const name = kernel->base.name;
    const wick_status status = wk_verify_kernel(kernel, o->seed, o->n_cases, heap, &report);
    printf("%s %d - %s: %" PRId64 " cases, %" PRId64 " elements, relative error mean %.2g rms %.2g "
           "max %.2g, %.2g of the bound, digest %016" PRIx64 "\n",
           status == WICK_OK ? "ok" : "not ok", number, name, report.n_cases, report.n_elements,
           report.mean_error, report.rms_error, report.max_error, report.worst, report.digest);
    if (status == WICK_OK) return true;
    printf("# %s: %s\n", wick_status_text(status), report.failure);
    printf("# repeat: kernel_check --kernel=%s --seed=%" PRIu64 " --cases=1\n", name, report.seed);
    return false;
}

static void bench(const wk_cpu_kernel *kernel, wk_heap *heap) {
    wk_verify_bench b;
    for (int i = 0;; i++) {
        const wick_status status = wk_verify_time(kernel, i, heap, &b);
        if (status == WICK_ERR_UNSUPPORTED) continue;
        if (status != WICK_OK) return;
        printf("%-26s %10.1f us %7.2f GB/s %7.2f GFLOP/s %7.1f x ref  %s\n", kernel->base.name,
               b.seconds * 1e6, b.bytes / b.seconds * 1e-9, b.flops / b.seconds * 1e-9,
               b.reference_seconds / b.seconds, b.op);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: kernel_check [--kernel=GLOB] [--seed=N] [--cases=N] "
                        "[--isa=NAME] [--bench] [--list]\n");
        return 2;
    }
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    int n_run = 0, n_failed = 0;
    const wk_cpu_kernel *kernel;
    for (size_t i = 0; (kernel = wk_cpu_kernel_at(i)) != NULL; i++) {
        if (!matches(o.glob, kernel->base.name) || (kernel->needs & ~o.features) != 0) continue;
        n_run++;
        if (o.is_list) {
            puts(kernel->base.name);
        } else if (o.is_bench) {
            bench(kernel, &heap);
        } else {
            n_failed += !check(kernel, &o, n_run, &heap);
            fflush(stdout);
        }
    }
    if (n_run == 0) {
        fprintf(stderr, "kernel_check: no kernel that this processor can run is called %s\n",
                o.glob);
        return 2;
    }
    if (!o.is_bench && !o.is_list) printf("1..%d\n", n_run);
    return n_failed > 0;
}
