/* convert/hf_kinds.h: fields of tokenizer.json, each of the kind that it must have: WICK_ERR_FORMAT
 * names one that has another, as Hugging Face's tokenizers refuse it. */
#ifndef WK_CONVERT_HF_KINDS_H
#define WK_CONVERT_HF_KINDS_H

#include "core/json.h"

bool wk_hf_is_text(const wk_json *item);
/* An object whose "type" is this. */
bool wk_hf_is_type(const wk_json *object, const char *type);

/* Members of an object; object may be NULL, where nothing is there. */
wick_status wk_hf_read_switch(const wk_json *object, const char *key, bool otherwise, bool *out,
                              wick_error *err);
/* text NULL: null, or not there. */
wick_status wk_hf_read_text(const wk_json *object, const char *key, wk_str *out, wick_error *err);
/* NULL: not there. */
wick_status wk_hf_read_list(const wk_json *object, const char *key, const wk_json **out,
                            wick_error *err);

/* Steps of the normalizer or the pre-tokenizer: none, one, or those of a sequence. */
typedef struct wk_hf_steps {
    const wk_json *at; /* NULL: no more */
    bool is_sequence;
} wk_hf_steps;
/* part of root: "normalizer"; its steps where it is a Sequence are list: "normalizers". */
wick_status wk_hf_first_step(const wk_json *root, const char *part, const char *list,
                             wk_hf_steps *out, wick_error *err);
void wk_hf_next_step(wk_hf_steps *steps);
/* WICK_ERR_UNSUPPORTED; what: "normalizer". */
wick_status wk_hf_refuse_step(const char *what, const wk_json *step, wick_error *err);

#endif
