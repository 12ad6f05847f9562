/* bench/gpu/gpu_bench.c: the command line, the output and what all measurements share; see
 * gpu_bench.h. */
#include "gpu_bench.h"

#include "device_options.h"

#include <stdio.h>

enum { ROTATED_MIB = 512 }; /* more than the caches of today's GPUs hold */

void begin_line(bench *b) {
    wk_strbuf_clear(&b->line);
    wk_write_open(&b->line, '{');
}

void put_number(bench *b, const char *key, double value) {
    wk_write_key(&b->line, key);
    wk_write_number(&b->line, value);
}

void end_line(bench *b) {
    wk_write_close(&b->line, '}');
    printf("%.*s\n", (int)b->line.size, b->line.data);
    fflush(stdout);
}

void leave_out(bench *b, const char *what, const char *reason) {
    begin_line(b);
    wk_write_put(&b->line, "left_out", what);
    wk_write_put(&b->line, "reason", reason);
    end_line(b);
}

void check(wick_status status, const wick_error *error) {
    if (status >= 0) return;
    fprintf(stderr, "gpu_bench: %s\n", error->message);
    exit(1);
}

void check_device(bench *b, wick_status status) {
    wick_error error = {0};
    if (status < 0) (void)wick_device_error(b->device, &error);
    check(status, &error);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_size);
    return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

static int usage(void) {
    fprintf(stderr, "usage: gpu_bench limits|kernels|model NAME [--seconds S] [--rotate MIB]\n"
                    "                 [--profile] [--backend NAME] " WEBGPU_USAGE "\n"
                    "models: smollm2-135m, qwen3-0.6b, llama-3-8b\n");
    return 2;
}

typedef void (*measure_fn)(bench *b);

static measure_fn find_mode(int argc, char **argv, bench *b, int *next) {
    static const struct {
        const char *name;
        measure_fn measure;
    } modes[] = {
        {"limits", measure_limits}, {"kernels", measure_kernels}, {"model", measure_model}};
    *next = 2;
    for (size_t i = 0; i < WK_COUNT(modes) && argc > 1; i++) {
        if (strcmp(argv[1], modes[i].name) != 0) continue;
        if (modes[i].measure != measure_model) return modes[i].measure;
        b->model = argc > 2 ? argv[2] : "";
        *next = 3;
        return find_shape(b->model) != NULL ? measure_model : NULL;
    }
    return NULL;
}

static bool set_own(bench *b, const char *name, const char *text) {
    char *end;
    const double value = strtod(text, &end);
    if (*end != '\0' || end == text || !(value > 0)) return false;
    if (strcmp(name, "--seconds") == 0)
        b->deadline = wick_time() + value;
    else if (strcmp(name, "--rotate") == 0)
        b->rotated_bytes = (uint64_t)value << 20;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU, .math = WICK_MATH_FAST};
    bench b = {.deadline = wick_time() + 1e9, .rotated_bytes = (uint64_t)ROTATED_MIB << 20};
    int i;
    const measure_fn measure = find_mode(argc, argv, &b, &i);
    if (measure == NULL) return usage();
    for (; i < argc; i++) {
        if (parse_webgpu(argc, argv, &i, &desc.webgpu)) continue;
        const bool is_pair = i + 1 < argc;
        if (strcmp(argv[i], "--profile") == 0)
            desc.profile = true;
        else if (is_pair && (set_own(&b, argv[i], argv[i + 1]) ||
                             parse_device_pair(&desc, argv[i], argv[i + 1])))
            i++;
        else
            return usage();
    }
    b.is_profiled = desc.profile;
    wk_heap_init(&b.heap, NULL);
    wk_strbuf_init(&b.line, &b.heap);
    wick_error error = {0};
    check(wick_device_open(&desc, &b.device, &error), &error);
    wick_device_get_info(b.device, &b.info);
    measure(&b);
    wick_device_close(b.device);
    wk_strbuf_release(&b.line);
    return 0;
}
