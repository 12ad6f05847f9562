/* convert/hf_vocabulary.h: tokenizer.json or tokenizer.model, and what stands beside them, as GGUF
 * metadata. */
#ifndef WK_CONVERT_HF_VOCABULARY_H
#define WK_CONVERT_HF_VOCABULARY_H

#include "convert/checkpoint.h"
#include "convert/value_list.h"

/* Adds the tokenizer of the folder to values: SentencePiece's BPE and unigram models, byte-level
 * BPE or WordPiece, and chat templates. n_vocab: rows of the embedding; ids that no token has get
 * names. WICK_ERR_UNSUPPORTED names what is not known. */
wick_status wk_hf_add_vocabulary(const wk_checkpoint *checkpoint, uint32_t n_vocab,
                                 wk_value_list *values, wick_error *err);

#endif
