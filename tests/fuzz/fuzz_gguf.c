/* Fuzzes the GGUF parser: whatever the bytes are, feeding them whole, one by one and in chunks
 * whose sizes come from the bytes gives the same status, sentence and result; nothing leaks, and
 * memory stays a small multiple of the input.
 *
 * The first byte of an input chooses the announced file size (even: that of the rest; odd:
 * unknown), the second the chunks; the rest is the file. */
#include "format/gguf_parse.h"

#include "checked_heap.h"
#include "gguf_same.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct parse {
    checked_heap checked;
    wk_gguf_parser *parser;
    wick_status status;
    wick_error error;
} parse;

static void require(bool is_true) {
    if (!is_true) abort();
}

/* The next chunk's size: all, one, or up to 256 as the generator says. */
static size_t next_chunk(uint8_t kind, uint32_t *random, size_t left) {
    *random = *random * 1664525 + 1013904223;
    const size_t size = kind == 0 ? left : kind == 1 ? 1 : *random >> 24;
    return size < left ? size : left;
}

static void run(parse *p, const uint8_t *data, size_t size, uint64_t file_size, uint8_t kind) {
    memset(p, 0, sizeof *p);
    checked_heap_init(&p->checked, UINT64_MAX);
    require(wk_gguf_parser_make(&p->checked.heap, file_size, &p->parser, &p->error) == WICK_OK);
    uint32_t random = kind;
    p->status = WICK_PENDING;
    for (size_t at = 0; at < size && p->status == WICK_PENDING;) {
        const size_t chunk = next_chunk(kind, &random, size - at);
        size_t used;
        p->status = wk_gguf_parser_feed(p->parser, data + at, chunk, &used, &p->error);
        require(used <= chunk && (p->status != WICK_PENDING || used == chunk));
        at += chunk;
    }
    if (p->status == WICK_PENDING) p->status = wk_gguf_parser_end(p->parser, &p->error);
    require(p->status == p->error.status);
    require(p->status == WICK_OK || memcmp(p->error.message, "byte ", 5) == 0);
    require(p->checked.heap.peak_bytes <= 20 * (uint64_t)size + 16384);
}

static void require_same(const parse *a, const parse *b) {
    require(a->status == b->status && strcmp(a->error.message, b->error.message) == 0);
    if (a->status == WICK_OK)
        require(same_gguf(wk_gguf_parser_result(a->parser), wk_gguf_parser_result(b->parser)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const uint8_t *const file = data + 2;
    const uint64_t file_size = data[0] % 2 == 0 ? size - 2 : WICK_SIZE_UNKNOWN;
    parse whole;
    run(&whole, file, size - 2, file_size, 0);
    const uint8_t kinds[] = {1, (uint8_t)(data[1] | 2)};
    for (size_t i = 0; i < sizeof kinds; i++) {
        parse split;
        run(&split, file, size - 2, file_size, kinds[i]);
        require_same(&whole, &split);
        wk_gguf_parser_free(split.parser);
        require(checked_heap_is_clean(&split.checked));
    }
    wk_gguf_parser_free(whole.parser);
    require(checked_heap_is_clean(&whole.checked));
    return 0;
}
