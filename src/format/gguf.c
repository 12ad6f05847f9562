/* format/gguf.c: looking up metadata and tensors by name. */
#include "format/gguf.h"

const wick_value *wk_gguf_find(const wk_gguf *gguf, const char *key) {
    uint32_t index;
    return wk_map_get(&gguf->value_index, wk_str_of(key), &index) ? &gguf->values[index] : NULL;
}

const wick_file_tensor *wk_gguf_find_tensor(const wk_gguf *gguf, const char *name) {
    uint32_t index;
    return wk_map_get(&gguf->tensor_index, wk_str_of(name), &index) ? &gguf->tensors[index] : NULL;
}
