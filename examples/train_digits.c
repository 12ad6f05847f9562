/* examples/train_digits.c: trains a classifier of handwritten digits of 8 x 8 pixels from scratch.
 *
 *   cc train_digits.c $(pkg-config --cflags --libs wick) -o train_digits
 *   ./train_digits digits.safetensors    (in Wick's tests/data/real)
 *
 * Prints the loss as it falls, and how many of the test images are read right. */
#include <wick/wick.h>

#include <math.h>
#include <stdio.h>

enum { N_EPOCHS = 30, BATCH = 64 };
enum { CONV1, SCALE1, SHIFT1, CONV2, SCALE2, SHIFT2, LINEAR, BIAS, N_PARAMS };
static const wick_shape shapes[N_PARAMS] = {{4, {16, 1, 3, 3}}, {1, {16}}, {1, {16}},
                                            {4, {32, 4, 3, 3}}, {1, {32}}, {1, {32}},
                                            {2, {10, 128}},     {1, {10}}};

/* Weights uniform in +-1 / sqrt(inputs), scales 1, biases 0. */
static void make_params(wick_device *device, wick_tensor **params) {
    for (int i = 0; i < N_PARAMS; i++) {
        double bound = 1;
        for (int d = 1; d < shapes[i].rank; d++) bound /= sqrt((double)shapes[i].extent[d]);
        params[i] = bound < 1 ? wick_rand(device, WICK_F32, shapes[i], -bound, bound)
                    : i == SCALE1 || i == SCALE2 ? wick_ones(device, WICK_F32, shapes[i])
                                                 : wick_zeros(device, WICK_F32, shapes[i]);
    }
}

/* images [n, 1, 8, 8], 0 to 16: the logits of ten digits, [n, 10]. */
static wick_tensor *classify(wick_tensor **p, wick_tensor *images) {
    const wick_conv_desc conv1 = {.padding = {1, 1}}, conv2 = {.padding = {1, 1}, .groups = 4};
    const wick_pooling_desc halves = {.kernel = {2, 2}};
    wick_tensor *x = wick_affine(wick_cast(images, WICK_F32), 1.0 / 16, 0);
    x = wick_group_norm(wick_conv2d(x, p[CONV1], NULL, &conv1), 4, p[SCALE1], p[SHIFT1], 1e-5F);
    x = wick_max_pool2d(wick_relu(x), &halves, NULL);
    x = wick_group_norm(wick_conv2d(x, p[CONV2], NULL, &conv2), 4, p[SCALE2], p[SHIFT2], 1e-5F);
    x = wick_avg_pool2d(wick_gelu(x), &halves);
    return wick_linear(wick_flatten(x, 1, -1), p[LINEAR], p[BIAS]);
}

/* One step down the gradient of the loss of images and labels [BATCH, ..]; gives the loss. */
static double step(wick_optimizer *optimizer, wick_tensor **params, wick_tensor *images,
                   wick_tensor *labels, double rate) {
    wick_tensor *grads[N_PARAMS];
    wick_tape *tape;
    double loss;
    if (wick_tape_begin(wick_tensor_device(images), &tape) != WICK_OK) return NAN;
    for (int i = 0; i < N_PARAMS; i++) (void)wick_tape_watch(tape, params[i]);
    wick_tensor *const error = wick_cross_entropy(classify(params, images), labels, NULL);
    if (wick_grad(tape, error, NULL, params, N_PARAMS, grads) == WICK_OK)
        (void)wick_optimizer_step(optimizer, grads, rate);
    wick_tape_end(tape);
    return wick_read_scalar(error, &loss) == WICK_OK ? loss : NAN;
}

static void train(wick_device *device, wick_tensor_file *file) {
    const wick_optimizer_desc desc = {.kind = WICK_OPTIMIZER_ADAMW, .weight_decay = 1e-2};
    wick_tensor *const images = wick_tensor_file_load(file, device, "images");
    wick_tensor *const labels = wick_tensor_file_load(file, device, "labels");
    wick_tensor *const rows = wick_tensor_file_load(file, device, "train_index");
    wick_tensor *test = wick_tensor_file_load(file, device, "test_index"), *params[N_PARAMS];
    wick_optimizer *optimizer = NULL;
    double loss = NAN, right;
    make_params(device, params);
    (void)wick_optimizer_make(&desc, params, NULL, N_PARAMS, &optimizer);
    for (int i = 0; optimizer && images && labels && rows && i < N_EPOCHS; i++) {
        wick_tensor *order = wick_rand(device, WICK_F32, wick_tensor_shape(rows), 0, 1);
        order = wick_cast(wick_index_select(rows, 0, wick_argsort(order, 0, false)), WICK_U32);
        for (int64_t at = 0; at + BATCH <= wick_tensor_size(order); at += BATCH) {
            const wick_scope scope = wick_scope_begin(device);
            wick_tensor *const batch = wick_narrow(order, 0, at, BATCH);
            loss = step(optimizer, params, wick_index_select(images, 0, batch),
                        wick_index_select(labels, 0, batch), 3e-3 * (N_EPOCHS - i) / N_EPOCHS);
            wick_scope_end(scope);
        }
        printf("epoch %d: loss %.4f\n", i + 1, loss);
    }
    test = wick_cast(test, WICK_U32);
    wick_tensor *x = wick_argmax(classify(params, wick_index_select(images, 0, test)), 1, false);
    x = wick_eq(x, wick_index_select(labels, 0, test));
    if (wick_read_scalar(wick_mean(wick_cast(x, WICK_F32), 0, NULL, false), &right) == WICK_OK)
        printf("%.1f %% of the test images are right\n", 100 * right);
    wick_optimizer_free(optimizer);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s DATA.safetensors\n", argv[0]);
        return 2;
    }
    wick_error error = {0};
    wick_device *device = NULL;
    wick_tensor_file *file = NULL;
    wick_status status = wick_device_open(NULL, &device, &error);
    const wick_scope scope = wick_scope_begin(device); /* frees the tensors at its end */
    if (status == WICK_OK) status = wick_tensor_file_open(argv[1], &file, &error);
    if (status == WICK_OK) train(device, file);
    wick_scope_end(scope);
    if (status == WICK_OK) status = wick_device_error(device, &error); /* what went wrong first */
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_tensor_file_close(file);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
