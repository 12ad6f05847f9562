/* Fuzzes the header of safetensors files: any bytes are refused with a sentence
 * or give tensors whose bytes all lie inside them. */
#include "format/safetensors.h"

#include <stdint.h>
#include <stdlib.h>

static void require(bool is_true) {
    if (!is_true) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_arena arena;
    wk_arena_init(&arena, &heap, 0);
    wk_safetensors file;
    wick_error error = {.status = WICK_OK};
    const wick_status status = wk_safetensors_parse(&heap, &arena, data, size, &file, &error);
    require(status == error.status && (status == WICK_OK) == (error.message[0] == '\0'));
    for (size_t i = 0; i < file.n_tensors; i++) {
        const wick_file_tensor *const tensor = &file.tensors[i];
        require(tensor->offset <= size && tensor->size <= size - tensor->offset);
        const wk_str name = {tensor->name.text, tensor->name.size};
        require(wk_safetensors_find(&file, name) == tensor);
    }
    wk_map_release(&file.index);
    wk_arena_release(&arena);
    require(heap.live_bytes == 0);
    return 0;
}
