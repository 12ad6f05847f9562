/* bench/gpu/limits.c: what the device can do at most, whatever Wick's kernels make of it: by
 * wick_device_measure and a few kernels in WGSL. */
#include "gpu_bench.h"

#include "core/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7, THREADS = 256, GROUPS = 1024, N_DISPATCHES = 1000, MIB = 1 << 20 };

static const double long_enough = 0.05; /* seconds */

/* Four vectors in flight a thread. Nothing is ever written, which no compiler knows. */
static const char *const read_source =
    "@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;\n"
    "@group(0) @binding(1) var<storage, read_write> y: array<u32>;\n"
    "@compute @workgroup_size(WORKGROUP_X)\n"
    "fn main(@builtin(global_invocation_id) at: vec3<u32>,\n"
    "        @builtin(num_workgroups) groups: vec3<u32>) {\n"
    "  let step = groups.x * WORKGROUP_X;\n"
    "  let n = arrayLength(&x);\n"
    "  var a = vec4<u32>(0);\n"
    "  var b = vec4<u32>(0);\n"
    "  for (var i = at.x; i + 3 * step < n; i += 4 * step) {\n"
    "    a ^= x[i] ^ x[i + step];\n"
    "    b ^= x[i + 2 * step] ^ x[i + 3 * step];\n"
    "  }\n"
    "  if (all((a ^ b) == vec4<u32>(0x9e3779b9u))) { y[0] = a.x; }\n"
    "}\n";

/* 8 vectors of 4 products and sums a round: 64 operations. */
static const char *const f16_source =
    "struct Rounds { n: u32, salt: u32, a: u32, b: u32 }\n"
    "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
    "@group(0) @binding(1) var<uniform> rounds: Rounds;\n"
    "@compute @workgroup_size(WORKGROUP_X)\n"
    "fn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"
    "  let m = vec4<f16>(f16(at.x & 255) * 0.001h + 0.5h);\n"
    "  var s0 = vec4<f16>(0.1h); var s1 = vec4<f16>(0.2h); var s2 = vec4<f16>(0.3h);\n"
    "  var s3 = vec4<f16>(0.4h); var s4 = vec4<f16>(0.5h); var s5 = vec4<f16>(0.6h);\n"
    "  var s6 = vec4<f16>(0.7h); var s7 = vec4<f16>(0.8h);\n"
    "  for (var i = 0u; i < rounds.n; i++) {\n"
    "    s0 = fma(s0, m, s1); s1 = fma(s1, m, s2); s2 = fma(s2, m, s3); s3 = fma(s3, m, s4);\n"
    "    s4 = fma(s4, m, s5); s5 = fma(s5, m, s6); s6 = fma(s6, m, s7); s7 = fma(s7, m, s0);\n"
    "  }\n"
    "  let s = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;\n"
    "  if (dot(s, s) == 123.0h) { y[0] = rounds.salt; }\n"
    "}\n";

static const char *const empty_source =
    "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
    "@compute @workgroup_size(WORKGROUP_X)\n"
    "fn main() { if (arrayLength(&y) == 0) { y[0] = 1; } }\n";

static wick_tensor *words(bench *b, int64_t n) {
    wick_tensor *const tensor = wick_empty(b->device, WICK_U32, WICK_SHAPE(n));
    check_device(b, tensor != NULL ? WICK_OK : WICK_ERR_OUT_OF_MEMORY);
    return tensor;
}

static void fill(bench *b, wick_tensor *tensor) {
    const size_t size = wick_tensor_bytes(tensor);
    uint32_t *const data = malloc(size);
    if (data == NULL) check(WICK_ERR_OUT_OF_MEMORY, &(wick_error){.message = "out of memory"});
    uint32_t state = 1;
    for (size_t i = 0; i < size / sizeof *data; i++)
        data[i] = state = state * 1664525U + 1013904223U; /* Numerical Recipes */
    check_device(b, wick_write(tensor, data, size));
    free(data);
}

/* ---- What wick_device_measure knows ---- */

static void measure_basics(bench *b) {
    wick_device_limits limits = {0};
    wick_error error = {0};
    check(wick_device_measure(b->device, &limits, &error), &error);
    begin_line(b);
    put_number(b, "f32_ops_per_second", limits.f32_ops_per_second);
    put_number(b, "packed_dot_ops_per_second", limits.integer_ops_per_second);
    put_number(b, "make_buffer_seconds", limits.buffer_seconds);
    put_number(b, "write_and_read_back_seconds", limits.round_trip_seconds);
    put_number(b, "make_pipeline_seconds", limits.pipeline_seconds);
    end_line(b);
}

/* ---- Bandwidth ---- */

/* Reads all tensors n_times over; the seconds that this took. */
static double read_all(bench *b, wick_kernel *kernel, wick_tensor **tensors, int n, wick_tensor *y,
                       int n_times) {
    const double begin = wick_time();
    for (int t = 0; t < n_times; t++) {
        for (int i = 0; i < n; i++) {
            wick_tensor *const both[] = {tensors[i], y};
            check_device(
                b, wick_kernel_run(kernel, both, 2, (const uint32_t[]){GROUPS, 1, 1}, NULL, 0));
        }
    }
    check_device(b, wick_synchronize(b->device));
    return wick_time() - begin;
}

/* In pieces that any device can bind, each a multiple of what the kernel reads in a step. */
static void measure_read(bench *b, wick_kernel *kernel, uint64_t n_mib) {
    enum { MOST = 16, STEP = 4 * 16 * GROUPS * THREADS };
    char name[48];
    const uint64_t binding = b->info.adapter.limits.binding_bytes / STEP * STEP;
    const uint64_t piece = binding < (uint64_t)n_mib * MIB ? binding : (uint64_t)n_mib * MIB;
    const int n = (int)((n_mib * MIB + piece - 1) / piece);
    wick_tensor *tensors[MOST];
    if (piece == 0 || n > MOST) {
        leave_out(b, "read bandwidth", "bindings are too small");
        return;
    }
    const wick_scope scope = wick_scope_begin(b->device);
    for (int i = 0; i < n; i++) fill(b, tensors[i] = words(b, (int64_t)(piece / 4)));
    wick_tensor *const y = words(b, 4);
    double rates[ROUNDS];
    int n_times = 1, n_rounds = 0;
    (void)read_all(b, kernel, tensors, n, y, 1);
    while (read_all(b, kernel, tensors, n, y, n_times) < long_enough && n_times < 4096)
        n_times *= 2;
    while (n_rounds < ROUNDS && (n_rounds == 0 || !is_late(b)))
        rates[n_rounds++] =
            (double)(piece * (uint64_t)n) * n_times / read_all(b, kernel, tensors, n, y, n_times);
    begin_line(b);
    snprintf(name, sizeof name, "read_%llu_mib_bytes_per_second", (unsigned long long)n_mib);
    put_number(b, name, median(rates, n_rounds));
    end_line(b);
    wick_scope_end(scope);
}

static void measure_reads(bench *b) {
    wick_kernel *kernel = NULL;
    wick_error error = {0};
    const wick_kernel_desc desc = {
        .source = read_source,
        .label = "read",
        .workgroup = {THREADS, 1, 1},
        .n_buffers = 2,
        .access = {WICK_KERNEL_READ, WICK_KERNEL_READ_WRITE},
    };
    check(wick_kernel_make(b->device, &desc, &kernel, &error), &error);
    measure_read(b, kernel, 64);
    if (is_late(b))
        leave_out(b, "read_1024_mib_bytes_per_second", "no time was left");
    else
        measure_read(b, kernel, 1024);
    wick_kernel_release(kernel);
}

static void measure_transfers(bench *b) {
    const size_t size = (size_t)64 * MIB;
    void *const data = calloc(1, size);
    const wick_scope scope = wick_scope_begin(b->device);
    wick_tensor *const tensor = words(b, (int64_t)(size / 4));
    double up[3], down[3];
    for (int i = -1; i < 3 && data != NULL; i++) { /* the first one warms up */
        const double begin = wick_time();
        check_device(b, wick_write(tensor, data, size));
        check_device(b, wick_synchronize(b->device));
        const double middle = wick_time();
        check_device(b, wick_read(tensor, data, size));
        if (i < 0) continue;
        up[i] = (double)size / (middle - begin);
        down[i] = (double)size / (wick_time() - middle);
    }
    if (data != NULL) {
        begin_line(b);
        put_number(b, "upload_bytes_per_second", median(up, 3));
        put_number(b, "read_back_bytes_per_second", median(down, 3));
        end_line(b);
    }
    wick_scope_end(scope);
    free(data);
}

/* ---- Arithmetic ---- */

static void measure_f16(bench *b) {
    if (!(b->info.adapter.features & WICK_WEBGPU_F16)) {
        leave_out(b, "f16_ops_per_second", "the device has no f16");
        return;
    }
    wick_kernel *kernel = NULL;
    wick_error error = {0};
    const wick_kernel_desc desc = {.source = f16_source,
                                   .label = "f16",
                                   .workgroup = {THREADS, 1, 1},
                                   .n_buffers = 1,
                                   .access = {WICK_KERNEL_READ_WRITE},
                                   .uniform_bytes = 16,
                                   .needs = WICK_WEBGPU_F16};
    check(wick_kernel_make(b->device, &desc, &kernel, &error), &error);
    const wick_scope scope = wick_scope_begin(b->device);
    wick_tensor *y = words(b, 4);
    double seconds = 0, rates[ROUNDS];
    uint32_t uniform[4] = {8, 1, 0, 0};
    int n_rounds = 0;
    for (int i = 0; n_rounds < ROUNDS && (n_rounds == 0 || !is_late(b)); i++) {
        const double begin = wick_time();
        check_device(b, wick_kernel_run(kernel, &y, 1, (const uint32_t[]){GROUPS, 1, 1}, uniform,
                                        sizeof uniform));
        check_device(b, wick_synchronize(b->device));
        seconds = wick_time() - begin;
        if (i > 0 && seconds < long_enough && uniform[0] < 1 << 24)
            uniform[0] *= 2;
        else if (i > 0)
            rates[n_rounds++] = 64.0 * GROUPS * THREADS * uniform[0] / seconds;
    }
    begin_line(b);
    put_number(b, "f16_ops_per_second", median(rates, n_rounds));
    end_line(b);
    wick_scope_end(scope);
    wick_kernel_release(kernel);
}

/* ---- Dispatches ---- */

/* n dispatches, each of the next of n_tensors; seconds of the host, then of all. */
static void run_empty(bench *b, wick_kernel *kernel, wick_tensor **tensors, int n_tensors, int n,
                      double seconds[2]) {
    const double begin = wick_time();
    for (int i = 0; i < n; i++)
        check_device(b, wick_kernel_run(kernel, &tensors[i % n_tensors], 1,
                                        (const uint32_t[]){1, 1, 1}, NULL, 0));
    check_device(b, wick_flush(b->device));
    seconds[0] = wick_time() - begin;
    check_device(b, wick_synchronize(b->device));
    seconds[1] = wick_time() - begin;
}

/* The medians of host and wall. */
static void time_empty(bench *b, wick_kernel *kernel, wick_tensor **tensors, int n_tensors, int n,
                       double out[2]) {
    double host[ROUNDS], wall[ROUNDS], seconds[2];
    for (int i = -1; i < ROUNDS; i++) {
        run_empty(b, kernel, tensors, n_tensors, n, seconds);
        if (i < 0) continue;
        host[i] = seconds[0];
        wall[i] = seconds[1];
    }
    out[0] = median(host, ROUNDS);
    out[1] = median(wall, ROUNDS);
}

static void measure_dispatches(bench *b) {
    wick_kernel *kernel = NULL;
    wick_error error = {0};
    const wick_kernel_desc desc = {.source = empty_source,
                                   .label = "empty",
                                   .workgroup = {1, 1, 1},
                                   .n_buffers = 1,
                                   .access = {WICK_KERNEL_READ_WRITE}};
    check(wick_kernel_make(b->device, &desc, &kernel, &error), &error);
    const wick_scope scope = wick_scope_begin(b->device);
    static wick_tensor *tensors[N_DISPATCHES];
    for (int i = 0; i < N_DISPATCHES; i++) tensors[i] = words(b, 4);
    double one[2], dependent[2], independent[2];
    time_empty(b, kernel, tensors, 1, 1, one);
    time_empty(b, kernel, tensors, 1, N_DISPATCHES, dependent);
    time_empty(b, kernel, tensors, N_DISPATCHES, N_DISPATCHES, independent);
    begin_line(b);
    put_number(b, "submit_seconds", one[1]);
    put_number(b, "thousand_dependent_dispatches_seconds", dependent[1]);
    put_number(b, "thousand_independent_dispatches_seconds", independent[1]);
    put_number(b, "host_seconds_per_dispatch", dependent[0] / N_DISPATCHES);
    end_line(b);
    wick_scope_end(scope);
    wick_kernel_release(kernel);
}

void measure_limits(bench *b) {
    measure_basics(b);
    measure_dispatches(b);
    measure_f16(b);
    leave_out(b, "subgroup_matrix_ops_per_second",
              "Wick has no kernels with subgroup matrices and opens no device with them");
    measure_transfers(b);
    measure_reads(b);
}
