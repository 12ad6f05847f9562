/* convert/hf_steps.c: see hf_steps.h. */
#include "convert/hf_steps.h"

#include "core/compiler.h"

static bool is_text(const wk_json *item) { return item != NULL && item->kind == WK_JSON_STRING; }

static bool is_type(const wk_json *step, const char *type) {
    const wk_json *const item = wk_json_get(step, "type");
    return is_text(item) && wk_str_is(item->string, type);
}

/* ---- Steps ---- */

/* Of the normalizer or the pre-tokenizer: nothing, one, or a sequence. */
typedef struct steps {
    const wk_json *at; /* NULL: no more */
    bool is_sequence;
} steps;

static steps first_step(const wk_json *root, const char *part, const char *list) {
    const wk_json *const all = wk_json_get(root, part);
    if (all == NULL || all->kind != WK_JSON_OBJECT) return (steps){.at = NULL};
    const wk_json *const items = wk_json_get(all, list);
    const bool is_sequence = items != NULL && items->kind == WK_JSON_ARRAY;
    return (steps){is_sequence ? items->child : all, is_sequence};
}

static void go_on(steps *s) { s->at = s->is_sequence ? s->at->next : NULL; }

static wick_status refuse_step(const char *what, const wk_json *step, wick_error *err) {
    const wk_json *const type = wk_json_get(step, "type");
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "tokenizer.json: the %s '%s' cannot be converted yet",
                   what, is_text(type) ? wk_str_show(type->string).text : "without a type");
}

/* A switch of a step that must be as expected where it is there. */
static wick_status check_switch(const wk_json *step, const char *key, bool expected,
                                wick_error *err) {
    const wk_json *const item = wk_json_get(step, key);
    const wk_json *const type = wk_json_get(step, "type");
    if (item == NULL || item->kind != WK_JSON_BOOL || item->boolean == expected) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: %s with '%s' %s cannot be converted yet",
                   is_text(type) ? wk_str_show(type->string).text : "a step", key,
                   item->boolean ? "true" : "false");
}

/* ---- Byte-level BPE ---- */

/* By the pattern that splits a text before merging. Llama 3's also takes tokens whole that no
 * merges lead to (ignore_merges); others with this pattern do not. */
static const struct {
    const char *pattern, *name, *merging_name;
    bool has_others; /* beside Punctuation and Digits */
} splits[] = {
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     "llama-bpe", "dbrx", false},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     "qwen2", "qwen2", false},
    {"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
     "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
     "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     "tekken", "tekken", false},
    {"[0-9][0-9][0-9]", "falcon", "falcon", true},
};

/* The steps that ways to split are made of; NULL: not there. */
typedef struct splitting {
    const wk_json *bytes, *split, *digits, *punctuation;
} splitting;

static wick_status find_steps(const wk_json *root, splitting *out, wick_error *err) {
    const wk_json *other = NULL;
    *out = (splitting){.bytes = NULL};
    for (steps s = first_step(root, "pre_tokenizer", "pretokenizers"); s.at != NULL; go_on(&s)) {
        const struct {
            const char *type;
            const wk_json **place;
        } known[] = {{"ByteLevel", &out->bytes},
                     {"Split", &out->split},
                     {"Digits", &out->digits},
                     {"Punctuation", &out->punctuation}};
        size_t i = 0;
        while (i < WK_COUNT(known) && !is_type(s.at, known[i].type)) i++;
        const bool is_new = i < WK_COUNT(known) && *known[i].place == NULL;
        if (is_new)
            *known[i].place = s.at;
        else if (other == NULL)
            other = s.at;
    }
    if (out->bytes != NULL && other != NULL) return refuse_step("pre-tokenizer", other, err);
    if (out->bytes != NULL) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: BPE that is not of bytes (SentencePiece) is converted from"
                   " tokenizer.model, which is missing");
}

/* Kept are the matches: as parts of their own, or as what is not removed. */
static bool keeps_matches(const wk_json *split) {
    const wk_json *const behavior = wk_json_get(split, "behavior");
    const wk_json *const invert = wk_json_get(split, "invert");
    const bool is_inverted = invert != NULL && invert->boolean;
    if (!is_text(behavior)) return !is_inverted;
    return wk_str_is(behavior->string, is_inverted ? "Removed" : "Isolated");
}

static bool matches(const wk_json *split, const char *pattern) {
    const wk_json *const regex = wk_json_get(wk_json_get(split, "pattern"), "Regex");
    return is_text(regex) && wk_str_is(regex->string, pattern) && keeps_matches(split);
}

static const char *name_split(const splitting *s, const wk_json *model) {
    const wk_json *const whole = wk_json_get(model, "ignore_merges");
    const wk_json *const single = wk_json_get(s->digits, "individual_digits");
    const bool takes_whole = whole != NULL && whole->boolean;
    const bool has_others = s->digits != NULL || s->punctuation != NULL;
    if (s->split == NULL && s->punctuation == NULL) {
        if (s->digits == NULL) return "gpt-2";
        return single != NULL && single->boolean ? "smollm" : NULL;
    }
    for (size_t i = 0; i < WK_COUNT(splits); i++)
        if (matches(s->split, splits[i].pattern) && has_others == splits[i].has_others)
            return takes_whole ? splits[i].name : splits[i].merging_name;
    return NULL;
}

/* NFC changes a text only where characters are composed of several; Wick, like other readers of
 * such files, takes texts as they are. */
static wick_status check_bpe(const wk_json *root, wick_error *err) {
    static const char *const marks[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const wk_json *const model = wk_json_get(root, "model");
    for (steps s = first_step(root, "normalizer", "normalizers"); s.at != NULL; go_on(&s))
        if (!is_type(s.at, "NFC")) return refuse_step("normalizer", s.at, err);
    for (size_t i = 0; i < WK_COUNT(marks); i++) {
        const wk_json *const mark = wk_json_get(model, marks[i]);
        if (is_text(mark) && mark->string.size > 0)
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "tokenizer.json: BPE with a %s ('%s') cannot be converted yet", marks[i],
                           wk_str_show(mark->string).text);
    }
    const wk_json *const dropout = wk_json_get(model, "dropout");
    if (dropout == NULL || dropout->kind != WK_JSON_NUMBER || dropout->number == 0.0)
        return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: BPE with a dropout of %g cannot be converted", dropout->number);
}

wick_status wk_hf_find_split(const wk_json *root, const char **name, wick_error *err) {
    splitting s;
    WK_TRY(find_steps(root, &s, err));
    WK_TRY(check_bpe(root, err));
    const wk_json *const pattern = wk_json_get(wk_json_get(s.split, "pattern"), "Regex");
    *name = name_split(&s, wk_json_get(root, "model"));
    if (*name == NULL)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.json: the way to split texts '%s' is not known yet",
                       is_text(pattern) ? wk_str_show(pattern->string).text : "without a pattern");
    /* A pattern that splits alone leaves nothing to ByteLevel's own. */
    const bool has_own_regex = s.split == NULL || s.digits != NULL;
    WK_TRY(check_switch(s.bytes, "use_regex", has_own_regex, err));
    return check_switch(s.bytes, "add_prefix_space", false, err);
}

/* ---- WordPiece ---- */

static wick_status check_bert(const wk_json *step, bool is_cased, wick_error *err) {
    if (!is_type(step, "BertNormalizer")) return refuse_step("normalizer", step, err);
    WK_TRY(check_switch(step, "clean_text", true, err));
    WK_TRY(check_switch(step, "handle_chinese_chars", true, err));
    WK_TRY(check_switch(step, "strip_accents", !is_cased, err));
    const wk_json *const lower = wk_json_get(step, "lowercase");
    if (lower == NULL || lower->boolean == !is_cased) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: lowercase is %s, but the vocabulary has %scapital letters: it"
                   " cannot be converted, because a GGUF file does not store this setting",
                   lower->boolean ? "true" : "false", is_cased ? "" : "no ");
}

static wick_status check_word_model(const wk_json *model, wick_error *err) {
    const wk_json *const prefix = wk_json_get(model, "continuing_subword_prefix");
    const wk_json *const longest = wk_json_get(model, "max_input_chars_per_word");
    if (is_text(prefix) && !wk_str_is(prefix->string, "##"))
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.json: continuing_subword_prefix is '%s', only '##' can be"
                       " converted",
                       wk_str_show(prefix->string).text);
    if (longest != NULL && longest->kind == WK_JSON_NUMBER && longest->number != 100.0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.json: max_input_chars_per_word is %g, only 100 can be converted",
                       longest->number);
    return WICK_OK;
}

wick_status wk_hf_check_word_pieces(const wk_json *root, bool is_cased, wick_error *err) {
    WK_TRY(check_word_model(wk_json_get(root, "model"), err));
    for (steps s = first_step(root, "normalizer", "normalizers"); s.at != NULL; go_on(&s))
        WK_TRY(check_bert(s.at, is_cased, err));
    for (steps s = first_step(root, "pre_tokenizer", "pretokenizers"); s.at != NULL; go_on(&s))
        if (!is_type(s.at, "BertPreTokenizer")) return refuse_step("pre-tokenizer", s.at, err);
    return WICK_OK;
}
