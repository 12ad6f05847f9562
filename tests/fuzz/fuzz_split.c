/* Fuzzes joining the parts of a split GGUF file, and writing headers: parts are refused with a
 * sentence, or give a source that reads as one sound file, whatever is asked of it.
 *
 * The first two bytes of an input tell where the second and the third part begin, in 256ths of what
 * is left; the rest are the parts. */
#include "source/split.h"

#include "checked_heap.h"
#include "llm/llm.h"
#include "source/header.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_true) {
    if (!is_true) abort();
}

/* Every tensor lies inside, and can be read. */
static void check_whole(wick_source *source) {
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_gguf_parser *parser;
    wick_error error = {.status = WICK_OK};
    require(wk_read_header(&checked.heap, source, &parser, &error) == WICK_OK);
    const wk_gguf *const gguf = wk_gguf_parser_result(parser);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &gguf->tensors[i];
        require(tensor->size <= source->size && tensor->offset <= source->size - tensor->size);
        const size_t size = (size_t)tensor->size;
        uint8_t *const bytes = malloc(size + 1);
        size_t got;
        require(bytes != NULL && size <= 1 << 20);
        require(source->read_at(source, tensor->offset, size, bytes, &error) == WICK_OK);
        require(source->poll(source, &got, &error) == WICK_OK && got == size);
        const void *const mapped = size > 0 ? source->map(source, tensor->offset, size) : bytes;
        require(mapped != NULL && memcmp(mapped, bytes, size) == 0);
        free(bytes);
    }
    wk_gguf_parser_free(parser);
    require(checked_heap_is_clean(&checked));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    static const char *const names[] = {"one", "two", "three"};
    const uint8_t *const file = data + 2;
    const size_t whole = size - 2, first = whole * data[0] / 256;
    const size_t second = (whole - first) * data[1] / 256;
    wick_source parts[] = {
        wick_source_memory(file, first),
        wick_source_memory(file + first, second),
        wick_source_memory(file + first + second, whole - first - second),
    };
    const size_t n = second == 0 ? 1 : 3;
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wick_source source;
    wick_error error = {.status = WICK_OK};
    const wick_status status = wk_split_join(&checked.heap.hook, parts, names, n, &source, &error);
    require(status == error.status);
    if (status == WICK_OK) {
        check_whole(&source);
        source.close(&source);
    }
    require(checked.n_live == 0 && checked.n_wrong_sizes == 0);
    return 0;
}
