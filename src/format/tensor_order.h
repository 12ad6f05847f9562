/* format/tensor_order.h: tensors in the order of their bytes, to find overlaps and holes. */
#ifndef WK_FORMAT_TENSOR_ORDER_H
#define WK_FORMAT_TENSOR_ORDER_H

#include <wick/file.h>

/* Writes to order the indices of n tensors by rising offset, then size. */
void wk_tensor_order(const wick_file_tensor *tensors, uint32_t *order, size_t n);

#endif
