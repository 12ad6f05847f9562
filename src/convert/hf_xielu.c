/* convert/hf_xielu.c: see hf_xielu.h. */
#include "convert/hf_xielu.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "core/status.h"
#include "quant/block.h"

#include <inttypes.h>
#include <stdio.h>

/* name: with * for any characters. */
static const wk_checkpoint_tensor *find(const wk_checkpoint *checkpoint, const char *name) {
    for (size_t i = 0; i < wk_checkpoint_count(checkpoint); i++) {
        const wk_checkpoint_tensor *const tensor = wk_checkpoint_get(checkpoint, i);
        const wk_str own = {tensor->name.text, tensor->name.size};
        if (wk_str_matches(wk_str_of(name), own)) return tensor;
    }
    return NULL;
}

static wick_status read_number(const wk_checkpoint *checkpoint, const char *name, uint32_t layer,
                               float *out, wick_error *err) {
    char path[80];
    snprintf(path, sizeof path, "*layers.%" PRIu32 ".mlp.act_fn.%s", layer, name);
    const wk_checkpoint_tensor *const tensor = find(checkpoint, path);
    const wk_decode_fn decode = tensor != NULL ? wk_decoder(tensor->dtype) : NULL;
    if (decode == NULL || wk_dtype_get(tensor->dtype)->block_elements != 1 ||
        tensor->size != (uint64_t)wk_dtype_get(tensor->dtype)->block_bytes)
        return wk_fail(err, WICK_ERR_FORMAT, "the tensor '%s' is missing, or not one number", path);
    decode(tensor->data, out, 1);
    return WICK_OK;
}

wick_status wk_hf_add_xielu(const wk_checkpoint *checkpoint, uint32_t n_layers,
                            wk_value_list *values, wick_error *err) {
    static const char *const names[][2] = {{"alpha_n", "xielu.alpha_n"},
                                           {"alpha_p", "xielu.alpha_p"},
                                           {"beta", "xielu.beta"},
                                           {"eps", "xielu.eps"}};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        float *const numbers = wk_arena_array(values->arena, n_layers, sizeof *numbers);
        if (numbers == NULL) return wk_fail_memory(err, n_layers, "the layers of a model");
        for (uint32_t layer = 0; layer < n_layers; layer++)
            WK_TRY(read_number(checkpoint, names[i][0], layer, &numbers[layer], err));
        wk_value_list_array(values, names[i][1], WICK_VALUE_F32, numbers, n_layers);
    }
    return WICK_OK;
}
