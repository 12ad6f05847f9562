/* examples/tour.c: tensors, step by step; docs/tensors.md explains the steps.
 *
 *   cc tour.c $(pkg-config --cflags --libs wick) -o tour && ./tour */
#include <wick/wick.h>

#include <stdio.h>

static void show(const char *title, wick_tensor *x) {
    char text[512];
    const bool is_read = wick_read_text(x, text, sizeof text, NULL) == WICK_OK;
    printf("%s\n%s\n", title, is_read ? text : "failed");
}

static void make(wick_device *device) {
    const float numbers[2][3] = {{1, 2, 3}, {4, 5, 6}};
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 3), numbers, sizeof numbers);
    wick_tensor *const zeros = wick_zeros(device, WICK_I32, WICK_SHAPE(4));
    wick_tensor *const half = wick_full(device, WICK_F16, WICK_SCALAR, 0.5); /* rank 0 */
    wick_tensor *const even = wick_arange(device, WICK_I64, 0, 10, 2);       /* 0 2 4 6 8 */
    wick_tensor *const noise = wick_randn(device, WICK_F32, WICK_SHAPE(2, 3), 0, 1);
    show("numbers:", x);
    show("even numbers:", even);
    show("numbers and noise, halved:", wick_mul(wick_add(x, noise), half));
    show("zeros:", zeros);
}

static void look(wick_device *device) {
    wick_tensor *const x = wick_reshape(wick_arange(device, WICK_F32, 0, 12, 1), WICK_SHAPE(3, -1));
    wick_tensor *const column = wick_narrow(x, 1, 2, 1); /* [3, 1]: x[:, 2:3] in NumPy */
    wick_fill(column, -1);                               /* x sees it */
    show("a column filled:", x);
    show("transposed:", wick_transpose(x, 0, 1));
    show("each row less its mean:", wick_sub(x, wick_mean(x, 1, (const int[]){1}, true)));
    wick_tensor *const ids =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(2), (const uint32_t[]){2, 0}, 8);
    show("rows 2 and 0:", wick_index_select(x, 0, ids));
    show("elements above 8:", wick_masked_select(x, wick_gt(x, wick_full_like(x, 8)), -1));
}

/* Distances of the rows of a and b, [n] each. The temporaries go; the result stays. */
static wick_tensor *distance(wick_tensor *a, wick_tensor *b) {
    const wick_scope scope = wick_scope_begin(wick_tensor_device(a));
    wick_tensor *const y = wick_norm(wick_sub(a, b), 2, 1, (const int[]){-1}, false);
    return wick_scope_result(scope, y);
}

static void mix(wick_device *device) {
    wick_tensor *const i = wick_arange(device, WICK_I32, 1, 4, 1);
    wick_tensor *const f = wick_full(device, WICK_F32, WICK_SHAPE(3), 2);
    show("i32 + f32:", wick_add(i, f));
    show("i32 / i32:", wick_div(i, wick_full_like(i, 2)));
    show("f32 > i32:", wick_gt(f, i));
    show("the largest is at:", wick_argmax(i, 0, false));
    show("their mean:", wick_mean(wick_cast(i, WICK_F32), 0, NULL, false));
}

static void fail(wick_device *device) {
    wick_tensor *const a = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 3));
    wick_tensor *const y = wick_exp(wick_sum(wick_matmul(a, a), 0, NULL, false));
    double value;
    if (wick_read_scalar(y, &value) != WICK_OK) {
        wick_error error;
        wick_device_error(device, &error); /* takes the first failure */
        printf("refused: %s\n", error.message);
    }
}

int main(void) {
    wick_error error = {0};
    wick_device *device = NULL;
    if (wick_device_open(NULL, &device, &error) != WICK_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    const wick_scope scope = wick_scope_begin(device);
    make(device);
    look(device);
    wick_tensor *const points = wick_eye(device, WICK_F32, 2);
    show("distances:", distance(points, wick_zeros_like(points)));
    mix(device);
    fail(device);
    wick_scope_end(scope);
    wick_device_close(device);
    return 0;
}
