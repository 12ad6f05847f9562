/* examples/image_filter.c: finds the edges of a picture, by a kernel in WGSL on a GPU or, where
 * there is none, by a convolution.
 *
 *   cc image_filter.c $(pkg-config --cflags --libs wick) -o image_filter
 *   ./image_filter in.ppm out.ppm    (or .pgm; binary, of 8 bits, without comments)
 *
 * A third argument names the library of WebGPU to use, see docs/webgpu.md. */
#include <wick/wick.h>

#include <stdio.h>

/* x and y: [channels, height, width]. How much a pixel differs from its neighbours to the side and
 * below, each a sum of nine (Sobel, Feldman, 1968): the length of both. An edge repeats outwards.
 */
static const char source[] =
    "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
    "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
    "@group(0) @binding(2) var<uniform> size: vec2u;\n"
    "@compute @workgroup_size(WORKGROUP_X, WORKGROUP_Y)\n"
    "fn main(@builtin(global_invocation_id) at: vec3u) {\n"
    "    if (any(at.xy >= size)) { return; }\n"
    "    let weights = array(-1f, 0, 1, -2, 0, 2, -1, 0, 1);\n"
    "    var sums = vec2f();\n"
    "    for (var i = 0u; i < 9; i++) {\n"
    "        let near = vec2i(at.xy + vec2u(i % 3, i / 3)) - 1;\n"
    "        let place = vec2u(clamp(near, vec2i(), vec2i(size) - 1));\n"
    "        let value = x[(at.z * size.y + place.y) * size.x + place.x];\n"
    "        sums += value * vec2f(weights[i], weights[i % 3 * 3 + i / 3]);\n"
    "    }\n"
    "    y[(at.z * size.y + at.y) * size.x + at.x] = length(sums);\n"
    "}\n";
static const wick_kernel_desc kernel_desc = {.source = source,
                                             .workgroup = {8, 8, 1},
                                             .n_buffers = 2,
                                             .access = {WICK_KERNEL_READ, WICK_KERNEL_READ_WRITE},
                                             .uniform_bytes = 2 * sizeof(uint32_t)};

static wick_tensor *by_kernel(wick_kernel *kernel, wick_tensor *x) {
    const wick_shape shape = wick_tensor_shape(x);
    const uint32_t size[2] = {(uint32_t)shape.extent[2], (uint32_t)shape.extent[1]};
    const uint32_t groups[3] = {(size[0] + 7) / 8, (size[1] + 7) / 8, (uint32_t)shape.extent[0]};
    wick_tensor *const tensors[2] = {x, wick_empty_like(x)};
    wick_kernel_run(kernel, tensors, 2, groups, size, sizeof size); /* reading reports a failure */
    return tensors[1];
}

static wick_tensor *by_convolution(wick_tensor *x) {
    const float weights[18] = {-1, 0, 1, -2, 0, 2, -1, 0, 1, -1, -2, -1, 0, 0, 0, 1, 2, 1};
    wick_tensor *const w = wick_tensor_from_data(wick_tensor_device(x), WICK_F32,
                                                 WICK_SHAPE(2, 1, 3, 3), weights, sizeof weights);
    const int64_t around[3] = {0, 1, 1};
    x = wick_unsqueeze(wick_pad(x, around, around, WICK_PAD_REPLICATE, 0), 1);
    return wick_norm(wick_conv2d(x, w, NULL, NULL), 2, 1, (const int[]){1}, false);
}

/* pixels [height, width, channels] become the filtered ones. */
static wick_status filter(wick_device *device, wick_kernel *kernel, wick_shape shape, void *pixels,
                          size_t size, wick_error *error) {
    const wick_scope scope = wick_scope_begin(device); /* frees the tensors at its end */
    wick_tensor *x = wick_tensor_from_data(device, WICK_U8, shape, pixels, size);
    x = wick_permute(wick_cast(x, WICK_F32), 3, (const int[]){2, 0, 1});
    x = kernel != NULL ? by_kernel(kernel, x) : by_convolution(x);
    x = wick_round(wick_permute(x, 3, (const int[]){1, 2, 0}));
    x = wick_cast(x, WICK_U8); /* at most 255 */
    const bool is_done = wick_read(x, pixels, size) == WICK_OK;
    wick_scope_end(scope);
    return is_done ? WICK_OK : wick_device_error(device, error); /* what went wrong first */
}

int main(int argc, char **argv) {
    static char file[1 << 26]; /* header and pixels */
    char kind = 0;
    int width = 0, height = 0, start = 0;
    FILE *const in = argc > 2 ? fopen(argv[1], "rb") : NULL;
    const size_t size = in != NULL ? fread(file, 1, sizeof file - 1, in) : 0;
    if (in != NULL) fclose(in);
    if (sscanf(file, "P%c %d %d 255%n", &kind, &width, &height, &start) != 3 || start++ == 0) {
        fprintf(stderr, "usage: %s IN.ppm OUT.ppm [LIBRARY]\n", argv[0]);
        return 2;
    }
    wick_error error = {0};
    wick_device *device = NULL;
    wick_kernel *kernel = NULL;
    const wick_device_desc gpu = {.backend = WICK_BACKEND_WEBGPU, .webgpu.library = argv[argc - 1]};
    wick_status status = wick_device_open(argc > 3 ? &gpu : NULL, &device, &error);
    wick_device_info info = {0};
    wick_device_get_info(device, &info);
    if (info.backend == WICK_BACKEND_WEBGPU)
        status = wick_kernel_make(device, &kernel_desc, &kernel, &error);
    else
        printf("by convolution: %s\n", info.fallback_reason);
    const wick_shape shape = WICK_SHAPE(height, width, kind == '6' ? 3 : 1);
    if (status == WICK_OK)
        status = filter(device, kernel, shape, file + start, size - (size_t)start, &error);
    if (status == WICK_OK) status = wick_bytes_save(argv[2], file, size, &error);
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_kernel_release(kernel);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
