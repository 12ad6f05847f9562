/* examples/digits.c: a trained classifier: reads handwritten digits of 8 x 8 pixels.
 *
 *   cc digits.c $(pkg-config --cflags --libs wick) -o digits
 *   ./digits digits_cnn.safetensors digits.safetensors    (both in Wick's tests/data/real)
 *
 * Prints how many of the test images are read right, and which are not. */
#include <wick/wick.h>

#include <stdio.h>

/* images [n, 1, 8, 8], 0 to 16: the logits of ten digits, [n, 10]. Each call takes a tensor that
 * failed as NULL and passes it on, and the device keeps the first reason: a weight that the file
 * lacks is reported when the result is read. */
static wick_tensor *classify(wick_tensor_file *weights, wick_tensor *images) {
    wick_device *const device = wick_tensor_device(images);
#define W(name) wick_tensor_file_load(weights, device, name)
    const wick_conv_desc conv1 = {.padding = {1, 1}};
    const wick_conv_desc conv2 = {.padding = {1, 1}, .groups = 4};
    const wick_pooling_desc halves = {.kernel = {2, 2}};

    wick_tensor *x = wick_affine(wick_cast(images, WICK_F32), 1.0 / 16, 0);
    x = wick_conv2d(x, W("conv1.weight"), NULL, &conv1);
    x = wick_batch_norm(x, W("bn1.running_mean"), W("bn1.running_var"), W("bn1.weight"),
                        W("bn1.bias"), 1e-5F);
    x = wick_max_pool2d(wick_relu(x), &halves, NULL);
    x = wick_conv2d(x, W("conv2.weight"), W("conv2.bias"), &conv2);
    x = wick_group_norm(x, 4, W("gn2.weight"), W("gn2.bias"), 1e-5F);
    x = wick_avg_pool2d(wick_gelu_erf(x), &halves);
    return wick_linear(wick_flatten(x, 1, -1), W("fc.weight"), W("fc.bias"));
#undef W
}

/* wrong [n, 1]: where digits and labels differ; at most capacity bytes of a table of them. */
static wick_status show(wick_tensor *wrong, wick_tensor *labels, wick_tensor *digits, char *text,
                        size_t capacity) {
    wick_tensor *const places = wick_squeeze(wrong, 1);
    wick_tensor *const columns[] = {places, wick_index_select(labels, 0, places),
                                    wick_index_select(digits, 0, places)};
    return wick_read_text(wick_stack(columns, 3, 1), text, capacity, NULL);
}

static wick_status run(wick_device *device, wick_tensor_file *weights, wick_tensor_file *data) {
    const wick_scope scope = wick_scope_begin(device); /* frees the tensors at its end */
    wick_tensor *const test =
        wick_cast(wick_tensor_file_load(data, device, "test_index"), WICK_U32);
    wick_tensor *const images =
        wick_index_select(wick_tensor_file_load(data, device, "images"), 0, test);
    wick_tensor *const labels = wick_cast(
        wick_index_select(wick_tensor_file_load(data, device, "labels"), 0, test), WICK_U32);

    wick_tensor *const logits = classify(weights, images);
    wick_tensor *const digits = wick_argmax(logits, 1, false);
    wick_tensor *const wrong = wick_nonzero(wick_ne(digits, labels), -1); /* computes and waits */
    wick_tensor *const stored = wick_tensor_file_load(data, device, "test_logits");
    double error = 0;
    char text[512] = "";
    wick_status status =
        wick_read_scalar(wick_max(wick_abs(wick_sub(logits, stored)), 0, NULL, false), &error);
    if (status == WICK_OK) status = show(wrong, labels, digits, text, sizeof text);
    if (status == WICK_OK) {
        const double n = (double)wick_tensor_size(digits);
        const double right = n - (double)wick_tensor_size(wrong);
        printf("%.0f of %.0f images right (%.1f %%); logits within %.0e of the stored ones\n",
               right, n, 100 * right / n, error);
        printf("image, digit, read as:\n%s\n", text);
    }
    wick_scope_end(scope);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s WEIGHTS.safetensors DATA.safetensors\n", argv[0]);
        return 2;
    }
    wick_error error = {0};
    wick_device *device = NULL;
    wick_tensor_file *weights = NULL, *data = NULL;
    wick_status status = wick_device_open(NULL, &device, &error);
    if (status == WICK_OK) status = wick_tensor_file_open(argv[1], &weights, &error);
    if (status == WICK_OK) status = wick_tensor_file_open(argv[2], &data, &error);
    if (status == WICK_OK && run(device, weights, data) != WICK_OK)
        status = wick_device_error(device, &error); /* what went wrong first */
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_tensor_file_close(data);
    wick_tensor_file_close(weights);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
