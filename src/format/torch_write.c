/* format/torch_write.c: the pickle of a dict of tensors, as torch_pickle.c reads it. Nothing is put
 * into the memo: values that repeat are short. */
#include "core/dtype.h"
#include "core/shape.h"
#include "format/torch_types.h"

#include <stdio.h>
#include <string.h>

/* The shortest opcode for an integer >= 0. */
static void put_integer(wk_strbuf *buf, uint64_t value) {
    const int n_bytes = value < 256 ? 1 : value < 65536 ? 2 : value <= INT32_MAX ? 4 : 8;
    wk_strbuf_text(buf, n_bytes == 1 ? "K" : n_bytes == 2 ? "M" : n_bytes == 4 ? "J" : "\x8A\x08");
    wk_strbuf_put(buf, value, n_bytes);
}

static void put_text(wk_strbuf *buf, const char *text, size_t size) {
    wk_strbuf_text(buf, "X");
    wk_strbuf_put(buf, size, 4);
    wk_strbuf_append(buf, text, size);
}

/* "torch.FloatStorage": module, then name, split at the last dot. */
static void put_global(wk_strbuf *buf, const char *name) {
    const char *const dot = strrchr(name, '.');
    wk_strbuf_format(buf, "c%.*s\n%s\n", (int)(dot - name), name, dot + 1);
}

static void put_storage(wk_strbuf *buf, const wick_file_tensor *tensor, size_t index,
                        uint64_t count) {
    const char *const class = wk_torch_storage_name(tensor->dtype);
    const uint64_t size = (uint64_t)wk_dtype_get(tensor->dtype)->block_bytes;
    char key[24];
    wk_strbuf_text(buf, "(");
    put_text(buf, "storage", strlen("storage"));
    put_global(buf, class != NULL ? class : "torch.storage.UntypedStorage");
    put_text(buf, key, (size_t)snprintf(key, sizeof key, "%zu", index));
    put_text(buf, "cpu", strlen("cpu"));
    put_integer(buf, class != NULL ? count : count * size);
    wk_strbuf_text(buf, "tQ");
}

static void put_tensor(wk_strbuf *buf, const wick_file_tensor *tensor, size_t index) {
    const bool has_class = wk_torch_storage_name(tensor->dtype) != NULL;
    int64_t count = 0, stride[WICK_MAX_RANK] = {0};
    (void)wk_shape_count(&tensor->shape, &count); /* of a tensor that there is */
    wk_shape_dense(&tensor->shape, stride);
    put_global(buf,
               has_class ? "torch._utils._rebuild_tensor_v2" : "torch._utils._rebuild_tensor_v3");
    wk_strbuf_text(buf, "(");
    put_storage(buf, tensor, index, (uint64_t)count);
    put_integer(buf, 0); /* the first element */
    for (int k = 0; k < 2; k++) {
        wk_strbuf_text(buf, "(");
        for (int d = 0; d < tensor->shape.rank; d++)
            put_integer(buf, (uint64_t)(k == 0 ? tensor->shape.extent[d] : stride[d]));
        wk_strbuf_text(buf, "t");
    }
    wk_strbuf_text(buf, "\x89"); /* needs no gradient, has no hooks: */
    put_global(buf, "collections.OrderedDict");
    wk_strbuf_text(buf, ")R");
    if (!has_class) put_global(buf, wk_torch_type_name(tensor->dtype));
    wk_strbuf_text(buf, "tR");
}

void wk_torch_pickle(wk_strbuf *buf, const wick_file_tensor *tensors, size_t n) {
    wk_strbuf_text(buf, "\x80\x02}(");
    for (size_t i = 0; i < n; i++) {
        put_text(buf, tensors[i].name.text, tensors[i].name.size);
        put_tensor(buf, &tensors[i], i);
    }
    wk_strbuf_text(buf, "u.");
}
