/* Fuzzes tokenizer.model: any bytes are refused with a sentence or give pieces
 * whose texts all lie inside them. */
#include "convert/hf_pieces.h"

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
    const wk_str bytes = {(const char *)data, size};
    wk_hf_pieces pieces;
    wick_error error = {.status = WICK_OK};
    const wick_status status = wk_hf_pieces_parse(bytes, &arena, &pieces, &error);
    require(status == error.status && (status == WICK_OK) == (error.message[0] == '\0'));
    for (uint32_t i = 0; status == WICK_OK && i < pieces.n; i++) {
        const wk_str text = pieces.items[i].text;
        if (text.text == NULL) continue; /* a piece without one */
        require(text.text >= bytes.text && text.size <= size);
        require((size_t)(text.text - bytes.text) <= size - text.size);
    }
    wk_arena_release(&arena);
    require(heap.live_bytes == 0);
    return 0;
}
