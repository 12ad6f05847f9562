/* llm/llm.h: a loaded model, for the files of this folder. */
#ifndef WK_LLM_LLM_H
#define WK_LLM_LLM_H

#include "format/gguf_parse.h"
#include "model/model.h"
#include "text/tokenizer.h"

#include <wick/model.h>

/* What a session has where its desc says 0, and how many tokens a block of the cache holds. */
enum { WK_DEFAULT_CONTEXT = 4096, WK_DEFAULT_CHUNK = 512, WK_BLOCK_SIZE = 64 };

struct wick_model {
    wick_device *device;
    wk_heap *heap; /* the device's */
    wk_gguf_parser *parser;
    const wk_gguf *gguf; /* of parser */
    wk_model *model;
    wk_arena arena; /* the vocabulary's arrays */
    wick_tokenizer *tokenizer;
    wick_source source; /* close NULL: closed; stays open while weights lie in its mapping */
    bool has_weights_in_place;
    wick_model_info info;
};

/* file.c */
const wk_gguf *wk_file_gguf(const wick_file *file);

/* header.c: the header of the file that source holds; *out is for the caller to free, NULL on
 * failure. The source must answer at once, as files and memory do. */
wick_status wk_read_header(wk_heap *heap, wick_source *source, wk_gguf_parser **out,
                           wick_error *err);

/* vocabulary.c: the tokenizer that the metadata describes. Arrays are made in arena; they and gguf
 * must outlive the tokenizer. */
wick_status wk_tokenizer_from_gguf(wk_heap *heap, wk_arena *arena, const wk_gguf *gguf,
                                   wick_tokenizer **out, wick_error *err);

/* The context length of a session whose desc says requested. */
uint32_t wk_context_length(const wk_hparams *hparams, uint32_t requested);

#endif
