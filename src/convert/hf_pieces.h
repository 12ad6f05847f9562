/* convert/hf_pieces.h: the vocabulary of SentencePiece: tokenizer.model, or of unigram models
 * tokenizer.json. */
#ifndef WK_CONVERT_HF_PIECES_H
#define WK_CONVERT_HF_PIECES_H

#include "core/arena.h"
#include "core/json.h"
#include "core/status.h"
#include "core/str.h"

typedef struct wk_hf_piece {
    wk_str text; /* in the file's bytes */
    float score;
    int32_t type; /* numbered as in GGUF */
} wk_hf_piece;

typedef struct wk_hf_pieces {
    wk_hf_piece *items; /* [n], by id */
    uint32_t n;
    bool is_unigram;           /* else BPE by scores */
    bool has_dummy_prefix;     /* a text begins with a blank */
    bool removes_extra_spaces; /* at the ends and in a row */
    bool treats_as_suffix;     /* blanks end words */
    const char *scheme;        /* of Metaspace: "always" or "first"; NULL: SentencePiece's own */
    wk_str charsmap;           /* what replaces characters, as text/tokenize/normalize.h reads it */
} wk_hf_pieces;

/* bytes: the file, which must stay. WICK_ERR_FORMAT with the byte offset. */
wick_status wk_hf_pieces_parse(wk_str bytes, wk_arena *arena, wk_hf_pieces *out, wick_error *err);
/* Of tokenizer.json whose model is of the type Unigram. */
wick_status wk_hf_pieces_from_json(const wk_json *root, wk_arena *arena, wk_hf_pieces *out,
                                   wick_error *err);
/* Where the prefix stands: tokenizer.json says so of pieces of tokenizer.model, or else
 * tokenizer_config.json; either may be NULL. */
wick_status wk_hf_pieces_read_prefix(const wk_json *root, const wk_json *config, wk_hf_pieces *out,
                                     wick_error *err);

#endif
