/* examples/tensors.c: tensors on a device: a small classifier, its weights written by hand.
 *
 *   cc tensors.c $(pkg-config --cflags --libs wick) -o tensors && ./tensors */
#include <wick/wick.h>

#include <stdio.h>

/* Two inputs in, three probabilities out. Operations are queued here; reading computes them. A
 * failed one gives NULL and passes it on, so that one check at the end is enough. */
static wick_status classify(wick_device *device, char *text, size_t capacity) {
    static const float inputs[2][4] = {{1, 0, 2, -1}, {0, 1, -1, 3}};
    static const float weights[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0.5F}, {0, 0, 1, 0}};
    static const float bias[3] = {0, 0.5F, -0.5F};

    const wick_scope scope = wick_scope_begin(device); /* frees the tensors at its end */
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 4), inputs, sizeof inputs);
    wick_tensor *const w =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(3, 4), weights, sizeof weights);
    wick_tensor *const b =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(3), bias, sizeof bias);
    wick_tensor *const y = wick_softmax(wick_linear(x, w, b), -1);
    const wick_status status = wick_read_text(y, text, capacity, NULL); /* refuses NULL */
    wick_scope_end(scope);
    return status;
}

int main(void) {
    wick_error error = {0};
    wick_device *device = NULL;
    if (wick_device_open(NULL, &device, &error) != WICK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    wick_device_info info;
    wick_device_get_info(device, &info);
    printf("on %s (%s)\n", info.name, info.backend_name);

    char text[256];
    const bool is_done = classify(device, text, sizeof text) == WICK_OK;
    if (is_done) {
        puts(text); /* wick_read gives the numbers themselves */
    } else {
        wick_device_error(device, &error); /* what went wrong first */
        fprintf(stderr, "%s\n", error.message);
    }
    wick_device_close(device);
    return is_done ? 0 : 1;
}
