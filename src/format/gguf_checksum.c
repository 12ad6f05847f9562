/* format/gguf_checksum.c: what tells one model from another: all of the header but where things
 * lie. */
#include "format/gguf.h"

#include "core/checksum.h"

static uint64_t add_number(uint64_t sum, uint64_t number) {
    return wk_checksum(sum, &number, sizeof number);
}

static uint64_t add_string(uint64_t sum, wick_string string) {
    return wk_checksum(add_number(sum, string.size), string.text, string.size);
}

static uint64_t add_array(uint64_t sum, const wick_value *value) {
    const wick_value_type type = value->array.element_type;
    const wick_string *const strings = value->array.values;
    sum = add_number(add_number(sum, (uint64_t)type), value->array.count);
    if (type != WICK_VALUE_STRING)
        return wk_checksum(sum, value->array.values,
                           (size_t)value->array.count * wk_gguf_scalar_size(type));
    for (uint64_t i = 0; i < value->array.count; i++) sum = add_string(sum, strings[i]);
    return sum;
}

static uint64_t add_value(uint64_t sum, const wick_value *value) {
    sum = add_number(add_string(sum, value->key), (uint64_t)value->type);
    switch (value->type) {
    case WICK_VALUE_STRING: return add_string(sum, value->string);
    case WICK_VALUE_ARRAY: return add_array(sum, value);
    case WICK_VALUE_F32:
    case WICK_VALUE_F64: return wk_checksum(sum, &value->f, sizeof value->f);
    default: return add_number(sum, value->u); /* signed ones have the same bits */
    }
}

static uint64_t add_tensor(uint64_t sum, const wick_file_tensor *tensor) {
    sum = add_number(add_string(sum, tensor->name), (uint64_t)tensor->dtype);
    for (int i = 0; i < tensor->shape.rank; i++)
        sum = add_number(sum, (uint64_t)tensor->shape.extent[i]);
    return sum;
}

uint64_t wk_gguf_checksum(const wk_gguf *gguf) {
    uint64_t sum = add_number(WK_CHECKSUM_BEGIN, gguf->n_values);
    for (size_t i = 0; i < gguf->n_values; i++) sum = add_value(sum, &gguf->values[i]);
    for (size_t i = 0; i < gguf->n_tensors; i++) sum = add_tensor(sum, &gguf->tensors[i]);
    return sum;
}
