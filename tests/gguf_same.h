/* tests/gguf_same.h: whether two parsed GGUF headers are equal, every value and byte. Touches all
 * that a result points to, so that a sanitizer sees what is wrong with it. */
#ifndef GGUF_SAME_H
#define GGUF_SAME_H

#include "core/shape.h"
#include "format/gguf_parse.h"

#include <string.h>

static inline bool same_string(wick_string a, wick_string b) {
    return a.size == b.size && memcmp(a.text, b.text, a.size + 1) == 0;
}

static inline bool same_array(const wick_value *a, const wick_value *b) {
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (a->array.element_type != b->array.element_type || a->array.count != b->array.count)
        return false;
    const size_t count = (size_t)a->array.count;
    if (a->array.element_type != WICK_VALUE_STRING)
        return memcmp(a->array.values, b->array.values, count * sizes[a->array.element_type]) == 0;
    const wick_string *const strings_a = a->array.values, *const strings_b = b->array.values;
    for (size_t i = 0; i < count; i++) {
        if (!same_string(strings_a[i], strings_b[i])) return false;
    }
    return true;
}

static inline bool same_value(const wick_value *a, const wick_value *b) {
    if (!same_string(a->key, b->key) || a->type != b->type) return false;
    if (a->type == WICK_VALUE_ARRAY) return same_array(a, b);
    if (a->type == WICK_VALUE_STRING) return same_string(a->string, b->string);
    return memcmp(&a->u, &b->u, sizeof a->u) == 0; /* bits: a value may be NaN */
}

static inline bool same_tensor(const wick_file_tensor *a, const wick_file_tensor *b) {
    return same_string(a->name, b->name) && a->dtype == b->dtype && a->offset == b->offset &&
           a->size == b->size && wk_shape_equal(&a->shape, &b->shape);
}

static inline bool same_gguf(const wk_gguf *a, const wk_gguf *b) {
    if (a->version != b->version || a->alignment != b->alignment ||
        a->data_offset != b->data_offset || a->n_values != b->n_values ||
        a->n_tensors != b->n_tensors)
        return false;
    for (size_t i = 0; i < a->n_values; i++) {
        if (!same_value(&a->values[i], &b->values[i])) return false;
    }
    for (size_t i = 0; i < a->n_tensors; i++) {
        if (!same_tensor(&a->tensors[i], &b->tensors[i])) return false;
    }
    return true;
}

#endif
