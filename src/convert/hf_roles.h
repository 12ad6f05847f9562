/* convert/hf_roles.h: which tokens begin and end texts, and the chat templates. */
#ifndef WK_CONVERT_HF_ROLES_H
#define WK_CONVERT_HF_ROLES_H

#include "convert/checkpoint.h"
#include "convert/value_list.h"

typedef struct wk_hf_vocabulary {
    const wk_json *tokenizer;  /* tokenizer.json; NULL: there is none */
    const wick_string *tokens; /* [n] */
    uint32_t n;
    uint32_t unknown; /* the id, where the vocabulary itself tells; UINT32_MAX: it does not */
    bool has_word_pieces, is_byte_level;
    bool is_cased; /* word pieces have capital letters */
} wk_hf_vocabulary;

/* The id of a word piece or an added token of tokenizer.json, as it is written there. False: there
 * is none, and *id is left alone. */
bool wk_hf_find_token(const wk_json *tokenizer, wk_str text, uint32_t *id);

/* Ids come from tokenizer_config.json and special_tokens_map.json, which name texts, else from
 * generation_config.json and config.json. A template of a file of its own counts more than that of
 * tokenizer_config.json. */
wick_status wk_hf_add_roles(const wk_checkpoint *checkpoint, const wk_hf_vocabulary *vocabulary,
                            wk_value_list *values, wick_error *err);

#endif
