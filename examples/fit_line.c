/* examples/fit_line.c: fits a line to points by gradients.
 *
 *   cc fit_line.c $(pkg-config --cflags --libs wick) -o fit_line */
#include <wick/wick.h>
#include <stdio.h>

/* y = w x + b through points of a line: w and b are found by gradients. */
int main(void) {
    wick_device *device = NULL;
    wick_error error = {0};
    wick_status status = wick_device_open(NULL, &device, &error);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_rand(device, WICK_F32, WICK_SHAPE(64), -1, 1);
    wick_tensor *const y = wick_affine(x, 3, -2);
    wick_tensor *params[2] = {wick_zeros(device, WICK_F32, WICK_SCALAR),
                              wick_zeros(device, WICK_F32, WICK_SCALAR)};
    wick_optimizer *optimizer = NULL;
    const wick_optimizer_desc desc = {.kind = WICK_OPTIMIZER_ADAMW};
    if (status == WICK_OK) status = wick_optimizer_make(&desc, params, NULL, 2, &optimizer);
    for (int i = 0; i < 200 && status == WICK_OK; i++) {
        const wick_scope inner = wick_scope_begin(device);
        wick_tape *tape = NULL;
        wick_tensor *grads[2];
        status = wick_tape_begin(device, &tape);
        for (int k = 0; k < 2; k++) (void)wick_tape_watch(tape, params[k]);
        wick_tensor *const guess = wick_add(wick_mul(params[0], x), params[1]);
        wick_tensor *const loss = wick_mse(guess, y, WICK_REDUCTION_MEAN);
        if (status == WICK_OK) status = wick_grad(tape, loss, NULL, params, 2, grads);
        wick_tape_end(tape);
        if (status == WICK_OK) status = wick_optimizer_step(optimizer, grads, 0.1);
        wick_scope_end(inner);
    }
    double w = 0, b = 0;
    if (status == WICK_OK) status = wick_read_scalar(params[0], &w);
    if (status == WICK_OK) status = wick_read_scalar(params[1], &b);
    printf("%.2f x + %.2f\n", w, b);
    wick_optimizer_free(optimizer);
    wick_scope_end(scope);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
