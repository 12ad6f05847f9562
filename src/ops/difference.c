/* ops/difference.c: differences of neighbours. */
#include <wick/ops.h>

#include "ops/operand.h"

wick_tensor *wick_diff(wick_tensor *x, int n, int dim) {
    int d;
    if (!x || !wk_operand_is_scalars("diff", x) || !wk_operand_is_number("diff", x)) return NULL;
    if (!wk_operand_dim("diff", x, dim, &d)) return NULL;
    if (n < 0) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "diff: order %d", n);
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(x->device, "diff");
    wick_tensor *y = x;
    for (int i = 0; y && i < n && y->view.extent[d] > 0; i++) {
        const int64_t length = y->view.extent[d] - 1;
        y = wick_sub(wick_narrow(y, d, 1, length), wick_narrow(y, d, 0, length));
    }
    return wick_scope_result(scope, wk_fresh(y, x));
}
