/* format/tensor_names.c: see tensor_names.h. */
#include "format/tensor_names.h"

#include "core/map.h"

static wick_status check(wk_map *names, const wick_file_tensor *tensor, size_t index,
                         const char *format, const char *reserved, wick_error *err) {
    const wk_str name = {tensor->name.text, tensor->name.size};
    uint32_t other;
    size_t bad;
    if (name.size > WK_MAX_TENSOR_NAME || !wk_str_is_utf8(name, &bad) ||
        (reserved != NULL && wk_str_is(name, reserved)))
        return wk_fail(err, WICK_ERR_VALUE, "no tensor of a %s file can be called '%s'", format,
                       wk_str_show(name).text);
    if (wk_map_get(names, name, &other))
        return wk_fail(err, WICK_ERR_VALUE, "two tensors have the name '%s'",
                       wk_str_show(name).text);
    if (wk_map_put(names, name, (uint32_t)index) == WICK_OK) return WICK_OK;
    return wk_fail_memory(err, (index + 1) * sizeof name, "the names of a file's tensors");
}

wick_status wk_tensor_names_check(wk_heap *heap, const wick_file_tensor *tensors, size_t n,
                                  const char *format, const char *reserved,
                                  const char *(*type_of)(wick_dtype dtype), wick_error *err) {
    wk_map names;
    wk_map_init(&names, heap);
    wick_status status = WICK_OK;
    for (size_t i = 0; i < n && status == WICK_OK; i++) {
        status = check(&names, &tensors[i], i, format, reserved, err);
        if (status == WICK_OK && type_of(tensors[i].dtype) == NULL)
            status = wk_fail(err, WICK_ERR_DTYPE,
                             "'%s' is %s, which %s files do not have: convert it to f32",
                             wk_str_show((wk_str){tensors[i].name.text, tensors[i].name.size}).text,
                             wick_dtype_name(tensors[i].dtype), format);
    }
    wk_map_release(&names);
    return status;
}
