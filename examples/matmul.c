/* examples/matmul.c: the product of two random matrices on the best device there is.
 *
 *   cc matmul.c $(pkg-config --cflags --libs wick) -o matmul && ./matmul */
#include <wick/wick.h>

#include <stdio.h>

int main(void) {
    char text[256];
    wick_error error = {0};
    wick_device *device = NULL;
    wick_device_open(NULL, &device, &error);
    const wick_scope scope = wick_scope_begin(device); /* frees the tensors at its end */
    wick_tensor *const a = wick_randn(device, WICK_F32, WICK_SHAPE(2, 1000), 0, 1);
    wick_tensor *const b = wick_randn(device, WICK_F32, WICK_SHAPE(1000, 3), 0, 1);
    const wick_status status = wick_read_text(wick_matmul(a, b), text, sizeof text, NULL);
    if (status != WICK_OK) wick_device_error(device, &error); /* what went wrong first */
    puts(status == WICK_OK ? text : error.message);
    wick_scope_end(scope);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
