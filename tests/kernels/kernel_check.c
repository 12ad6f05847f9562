/* kernel_check: compares every kernel that this processor or GPU can run with the reference, on
 * random ops; reference kernels are compared with themselves in other ranges.
 *
 *   kernel_check [--kernel=GLOB] [--seed=N] [--cases=N] [--isa=NAME] [--bench] [--list]
 *                [--backend=webgpu] [options of webgpu_options.h]
 *
 * Prints TAP, one test for each kernel: errors relative to the rms of the results, and the largest
 * part of its bound that one was. NAME is ref, avx2, avx512, neon, dotprod or i8mm; this processor
 * must have it. Exit status: 0 all passed, 1 one failed, 2 wrong use. */
#include "tensor/device.h"
#include "verify/verify.h"
#include "webgpu_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct options {
    const char *glob;
    uint64_t seed;
    int64_t n_cases;
    bool is_bench, is_list;
    wick_device_desc device; /* CPU or WebGPU */
} options;

static bool parse_number(const char *text, uint64_t *number) {
    char *end;
    *number = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && *end == '\0';
}

static bool parse_isa(const char *name, wick_isa *isa) {
    static const struct {
        const char *name;
        wick_isa isa;
    } sets[] = {
        {"ref", WICK_ISA_REF},   {"avx2", WICK_ISA_AVX2},       {"avx512", WICK_ISA_AVX512},
        {"neon", WICK_ISA_NEON}, {"dotprod", WICK_ISA_DOTPROD}, {"i8mm", WICK_ISA_I8MM},
    };
    for (size_t i = 0; i < WK_COUNT(sets); i++) {
        if (strcmp(name, sets[i].name) != 0) continue;
        *isa = sets[i].isa;
        return true;
    }
    return false;
}

static bool parse_backend(const char *name, wick_device_desc *desc) {
    return wick_backend_from_name(name, &desc->backend) &&
           (desc->backend == WICK_BACKEND_CPU || desc->backend == WICK_BACKEND_WEBGPU);
}

static bool parse(int argc, char **argv, options *o) {
    *o = (options){.glob = "*", .seed = 1, .n_cases = 100};
    o->device.backend = WICK_BACKEND_CPU;
    o->device.n_threads = 1; /* kernels run on the calling thread */
    for (int i = 1; i < argc; i++) {
        uint64_t number;
        const char *text;
        if ((text = option_value(argc, argv, &i, "--kernel")) != NULL) {
            o->glob = text;
        } else if ((text = option_value(argc, argv, &i, "--seed")) != NULL) {
            if (!parse_number(text, &o->seed)) return false;
        } else if ((text = option_value(argc, argv, &i, "--cases")) != NULL) {
            if (!parse_number(text, &number) || number > INT32_MAX) return false;
            o->n_cases = (int64_t)number;
        } else if ((text = option_value(argc, argv, &i, "--isa")) != NULL) {
            if (!parse_isa(text, &o->device.isa)) return false;
        } else if ((text = option_value(argc, argv, &i, "--backend")) != NULL) {
            if (!parse_backend(text, &o->device)) return false;
        } else if (strcmp(argv[i], "--bench") == 0) {
            o->is_bench = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            o->is_list = true;
        } else if (!parse_webgpu(argc, argv, &i, &o->device.webgpu)) {
            return false;
        }
    }
    return !o->is_bench || o->device.backend == WICK_BACKEND_CPU;
}

static bool check(const wk_verify_subject *subject, const options *o, int number, wk_heap *heap) {
    wk_verify_report report;
    const char *const name = subject->kernel->name;
    const wick_status status = wk_verify_kernel(subject, o->seed, o->n_cases, heap, &report);
    printf("%s %d - %s: %" PRId64 " cases, %" PRId64 " elements, relative error mean %.2g rms %.2g "
           "max %.2g, %.2g of the bound, digest %016" PRIx64 "\n",
           status == WICK_OK ? "ok" : "not ok", number, name, report.n_cases, report.n_elements,
           report.mean_error, report.rms_error, report.max_error, report.worst, report.digest);
    if (status == WICK_OK) return true;
    printf("# %s: %s\n", wick_status_text(status), report.failure);
    printf("# repeat: kernel_check --kernel=%s --seed=%" PRIu64 " --cases=1\n", name, report.seed);
    return false;
}

static void bench(const wk_verify_subject *subject, wk_heap *heap) {
    wk_verify_bench b;
    for (int i = 0;; i++) {
        const wick_status status = wk_verify_time(subject, i, heap, &b);
        if (status == WICK_ERR_UNSUPPORTED) continue;
        if (status != WICK_OK) return;
        printf("%-26s %10.1f us %7.2f GB/s %7.2f GFLOP/s %7.1f x ref  %s\n", subject->kernel->name,
               b.seconds * 1e6, b.bytes / b.seconds * 1e-9, b.flops / b.seconds * 1e-9,
               b.reference_seconds / b.seconds, b.op);
        fflush(stdout);
    }
}

/* Counts of cases that ran. */
typedef struct tally {
    int n_run, n_failed;
} tally;

static void take(const wk_verify_subject *subject, const options *o, tally *t, wk_heap *heap) {
    t->n_run++;
    if (o->is_list) {
        puts(subject->kernel->name);
    } else if (o->is_bench) {
        bench(subject, heap);
    } else {
        t->n_failed += !check(subject, o, t->n_run, heap);
        fflush(stdout);
    }
}

static void print_device(const wick_device *device) {
    wick_device_info info;
    wick_device_get_info(device, &info);
    printf("# %s, %s, %s\n", info.name, info.adapter.implementation, info.adapter.driver);
}

static void print_programs(const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    printf("# %" PRIu64 " programs compiled\n", stats.n_pipelines);
}

/* False: there is no such device. */
static bool take_all(const options *o, tally *t, wk_heap *heap) {
    wick_device *device;
    wick_error error = {0};
    const bool is_webgpu = o->device.backend == WICK_BACKEND_WEBGPU;
    if (wick_device_open(&o->device, &device, &error) != WICK_OK) {
        fprintf(stderr, "kernel_check: %s\n", error.message);
        return false;
    }
    if (is_webgpu) print_device(device);
    wk_verify_subject subject = {.backend = device->backend, .device = device->handle};
    for (size_t i = 0; (subject.kernel = device->backend->kernels->at(device->handle, i)); i++)
        if (wk_str_matches(wk_str_of(o->glob), wk_str_of(subject.kernel->name)))
            take(&subject, o, t, heap);
    if (is_webgpu) print_programs(device);
    wick_device_close(device);
    return true;
}

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: kernel_check [--kernel=GLOB] [--seed=N] [--cases=N] "
                        "[--isa=NAME] [--bench] [--list]\n"
                        "                [--backend=webgpu] " WEBGPU_USAGE "\n");
        return 2;
    }
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    tally t = {0};
    if (!take_all(&o, &t, &heap)) return 2;
    if (t.n_run == 0) {
        fprintf(stderr, "kernel_check: no kernel that can be run here is called %s\n", o.glob);
        return 2;
    }
    if (!o.is_bench && !o.is_list) printf("1..%d\n", t.n_run);
    return t.n_failed > 0;
}
