/* convert/hf_steps.h: what tokenizer.json does with a text before its vocabulary is looked up. GGUF
 * says it by a name or not at all, so that other steps and settings are WICK_ERR_UNSUPPORTED, each
 * with its name. */
#ifndef WK_CONVERT_HF_STEPS_H
#define WK_CONVERT_HF_STEPS_H

#include "core/json.h"
#include "core/status.h"

/* Byte-level BPE: the name of the way to split a text, as tokenizer.ggml.pre has it. */
wick_status wk_hf_find_split(const wk_json *root, const char **name, wick_error *err);
/* Whether such a name implies ignore_merges. */
bool wk_hf_split_takes_whole(const char *name);
/* WordPiece; is_cased: capital letters are in the vocabulary. */
wick_status wk_hf_check_word_pieces(const wk_json *root, bool is_cased, wick_error *err);

#endif
