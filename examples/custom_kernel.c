/* examples/custom_kernel.c: a kernel of your own, in WGSL, among the operations of a WebGPU device:
 * heat spreads over a plate.
 *
 *   cc custom_kernel.c $(pkg-config --cflags --libs wick) -o custom_kernel && ./custom_kernel
 *
 * An argument names the library of WebGPU to use, see docs/webgpu.md. */
#include <wick/wick.h>

#include <stdio.h>

/* Tensors are bindings 0, 1, ... in the order of the desc, the uniform is the one after them.
 * WORKGROUP_X and _Y come from the desc. */
static const char source[] =
    "struct Plate { width: u32, height: u32, rate: f32 }\n"
    "@group(0) @binding(0) var<storage, read> old: array<f32>;\n"
    "@group(0) @binding(1) var<storage, read_write> fresh: array<f32>;\n"
    "@group(0) @binding(2) var<uniform> plate: Plate;\n"
    "\n"
    "fn heat(x: u32, y: u32) -> f32 {\n" /* beyond an edge: as at the edge, no heat is lost */
    "    return old[min(y, plate.height - 1) * plate.width + min(x, plate.width - 1)];\n"
    "}\n"
    "@compute @workgroup_size(WORKGROUP_X, WORKGROUP_Y)\n"
    "fn spread(@builtin(global_invocation_id) at: vec3u) {\n"
    "    if (at.x >= plate.width || at.y >= plate.height) { return; }\n"
    "    let west = heat(max(at.x, 1) - 1, at.y);\n"
    "    let north = heat(at.x, max(at.y, 1) - 1);\n"
    "    let here = heat(at.x, at.y);\n"
    "    let around = west + north + heat(at.x + 1, at.y) + heat(at.x, at.y + 1);\n"
    "    fresh[at.y * plate.width + at.x] = here + plate.rate * (around - 4 * here);\n"
    "}\n";

enum { WIDTH = 96, HEIGHT = 64, STEPS = 200, GROUP = 8 };

/* All of it is queued here; reading the totals computes it. */
static wick_status simulate(wick_device *device, wick_kernel *kernel) {
    static float start[HEIGHT * WIDTH];
    start[HEIGHT / 2 * WIDTH + WIDTH / 2] = 1000;
    const struct {
        uint32_t width, height;
        float rate;
    } plate = {WIDTH, HEIGHT, 0.2F};
    const uint32_t workgroups[3] = {WIDTH / GROUP, HEIGHT / GROUP, 1};

    const wick_scope scope = wick_scope_begin(device);
    const wick_shape shape = WICK_SHAPE(HEIGHT, WIDTH);
    wick_tensor *old = wick_tensor_from_data(device, WICK_F32, shape, start, sizeof start);
    wick_tensor *fresh = wick_empty(device, WICK_F32, shape);
    wick_status status = WICK_OK;
    for (int i = 0; i < STEPS && status == WICK_OK; i++) {
        wick_tensor *const tensors[] = {old, fresh};
        status = wick_kernel_run(kernel, tensors, 2, workgroups, &plate, sizeof plate);
        old = tensors[1];
        fresh = tensors[0];
    }
    double total = 0, largest = 0;
    if (status == WICK_OK) status = wick_read_scalar(wick_sum(old, 0, NULL, false), &total);
    if (status == WICK_OK) status = wick_read_scalar(wick_max(old, 0, NULL, false), &largest);
    wick_scope_end(scope);
    if (status == WICK_OK)
        printf("after %d steps: %.2f of heat, %.3f at the hottest point\n", STEPS, total, largest);
    return status;
}

int main(int argc, char **argv) {
    wick_error error = {0};
    wick_device *device = NULL;
    wick_kernel *kernel = NULL;
    const wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU,
                                   .webgpu.library = argc > 1 ? argv[argc - 1] : NULL};
    const wick_kernel_desc spread = {
        .source = source,
        .entry = "spread",
        .workgroup = {GROUP, GROUP, 1},
        .n_buffers = 2,
        .access = {WICK_KERNEL_READ, WICK_KERNEL_READ_WRITE},
        .uniform_bytes = 3 * sizeof(uint32_t),
    };
    wick_status status = wick_device_open(&desc, &device, &error);
    if (status == WICK_OK) status = wick_kernel_make(device, &spread, &kernel, &error);
    if (status == WICK_OK) {
        status = simulate(device, kernel);
        wick_device_error(device, &error); /* what went wrong first, if anything did */
    }
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_kernel_release(kernel);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
