/* text/pretokenize.h: cuts text into the pieces inside which byte-level BPE merges.
 *
 * Each kind is the pattern that a family of models was trained with, written as a scanner. */
#ifndef WK_TEXT_PRETOKENIZE_H
#define WK_TEXT_PRETOKENIZE_H

#include "core/str.h"

typedef enum wk_pretokenizer {
    /* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
    WK_PRETOKENIZER_GPT2,
    /* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
     * |\s*[\r\n]+|\s+(?!\S)|\s+ */
    WK_PRETOKENIZER_LLAMA3,
    /* The same, but \p{N} alone. */
    WK_PRETOKENIZER_QWEN2,
    /* Each \p{N} alone, and the GPT-2 pattern on what lies between them. */
    WK_PRETOKENIZER_SMOLLM,
} wk_pretokenizer;

/* By the name in tokenizer.ggml.pre; false when it is not known. */
bool wk_pretokenizer_find(wk_str name, wk_pretokenizer *out);

/* Bytes of the first piece of text (size > 0): at least 1. The pieces cover the text, and each call
 * costs time in proportion to its piece and the white space that follows it. */
size_t wk_pretokenize(wk_pretokenizer kind, const char *text, size_t size);

#endif
