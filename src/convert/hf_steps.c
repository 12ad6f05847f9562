/* convert/hf_steps.c: see hf_steps.h. */
#include "convert/hf_steps.h"

#include "convert/hf_kinds.h"
#include "core/compiler.h"
#include "text/tokenize/pretokenize.h"

/* A switch of a step that must be as expected. */
static wick_status check_switch(const wk_json *step, const char *key, bool otherwise, bool expected,
                                wick_error *err) {
    const wk_json *const type = wk_json_get(step, "type");
    bool is_on = false;
    WK_TRY(wk_hf_read_switch(step, key, otherwise, &is_on, err));
    if (is_on == expected) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: %s with '%s' %s cannot be converted yet",
                   wk_hf_is_text(type) ? wk_str_show(type->string).text : "a step", key,
                   is_on ? "true" : "false");
}

/* ---- Byte-level BPE ---- */

enum { MOST_SPLITS = 4 };

typedef enum digit_step { NO_DIGITS, NUMBERS, SINGLE_DIGITS } digit_step;

#define ENDING "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BLANKS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char llama3_words[] =
    ENDING "|" BEFORE "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS;
static const char qwen2_words[] =
    ENDING "|" BEFORE "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS;
static const char qwen35_words[] =
    ENDING "|" BEFORE "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" BLANKS;
static const char seed_words[] =
    ENDING "|" BEFORE "\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" BLANKS;
static const char tekken_words[] = BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER
                                                "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS;
static const char gpt4o_words[] =
    BEFORE UPPER "*" LOWER "+" ENDING "?|" BEFORE UPPER "+" LOWER "*" ENDING
                 "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS;
/* With line ends themselves, not escaped ones */
static const char deepseek_words[] =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

/* By the patterns that split a text before merging, beside Digits and Punctuation. Llama 3's also
 * takes tokens whole that no merges lead to (ignore_merges); others with this pattern do not.
 * Falcon's looks for digits among the signs of bytes, too, which only tokens taken whole show. */
static const struct {
    const char *patterns[MOST_SPLITS], *name, *merging_name;
    digit_step digits;
    bool has_punctuation;
} splits[] = {
    {{llama3_words}, "llama-bpe", "dbrx", NO_DIGITS, false},
    {{qwen2_words}, "qwen2", "qwen2", NO_DIGITS, false},
    {{qwen35_words}, "qwen35", "qwen35", NO_DIGITS, false},
    {{seed_words}, "seed-coder", "seed-coder", NO_DIGITS, false},
    {{tekken_words}, "tekken", "tekken", NO_DIGITS, false},
    {{gpt4o_words}, "gpt-4o", "gpt-4o", NO_DIGITS, false},
    {{"[0-9][0-9][0-9]"}, NULL, "falcon", NUMBERS, true},
    {{"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+"},
     "deepseek-coder",
     "deepseek-coder",
     SINGLE_DIGITS,
     false},
    {{"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", deepseek_words},
     "deepseek-v3",
     "deepseek-v3",
     NO_DIGITS,
     false},
};

/* The steps that ways to split are made of; NULL: not there. */
typedef struct splitting {
    const wk_json *bytes, *split[MOST_SPLITS], *digits, *punctuation;
} splitting;

static wick_status find_steps(const wk_json *root, splitting *out, wick_error *err) {
    const wk_json *other = NULL;
    wk_hf_steps s;
    size_t n_splits = 0;
    *out = (splitting){.bytes = NULL};
    WK_TRY(wk_hf_first_step(root, "pre_tokenizer", "pretokenizers", &s, err));
    for (; s.at != NULL; wk_hf_next_step(&s)) {
        const struct {
            const char *type;
            const wk_json **place;
        } known[] = {{"ByteLevel", &out->bytes},
                     {"Digits", &out->digits},
                     {"Punctuation", &out->punctuation}};
        size_t i = 0;
        while (i < WK_COUNT(known) && !wk_hf_is_type(s.at, known[i].type)) i++;
        if (i < WK_COUNT(known) && *known[i].place == NULL)
            *known[i].place = s.at;
        else if (n_splits < MOST_SPLITS && wk_hf_is_type(s.at, "Split"))
            out->split[n_splits++] = s.at;
        else if (other == NULL)
            other = s.at;
    }
    if (out->bytes != NULL && other != NULL) return wk_hf_refuse_step("pre-tokenizer", other, err);
    if (out->bytes != NULL) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: BPE that is not of bytes (SentencePiece) is converted from"
                   " tokenizer.model, which is missing");
}

static const wk_json *pattern_of(const wk_json *split) {
    const wk_json *const regex = wk_json_get(wk_json_get(split, "pattern"), "Regex");
    return wk_hf_is_text(regex) ? regex : NULL;
}

static bool has_patterns(const splitting *s, const char *const patterns[MOST_SPLITS]) {
    for (int i = 0; i < MOST_SPLITS; i++) {
        const wk_json *const regex = pattern_of(s->split[i]);
        if (patterns[i] == NULL ? s->split[i] != NULL
                                : regex == NULL || !wk_str_is(regex->string, patterns[i]))
            return false;
    }
    return true;
}

/* Kept are the matches: as parts of their own, or as what is not removed. */
static wick_status keeps_matches(const wk_json *split, bool *keeps, wick_error *err) {
    bool is_inverted = false;
    wk_str behavior;
    WK_TRY(wk_hf_read_switch(split, "invert", false, &is_inverted, err));
    WK_TRY(wk_hf_read_text(split, "behavior", &behavior, err));
    *keeps = behavior.text == NULL ? !is_inverted
                                   : wk_str_is(behavior, is_inverted ? "Removed" : "Isolated");
    return WICK_OK;
}

/* NULL: no way that is known. */
static wick_status name_split(const splitting *s, const wk_json *model, const char **name,
                              wick_error *err) {
    bool takes_whole = false, is_single = false, keeps = true;
    *name = NULL;
    WK_TRY(wk_hf_read_switch(model, "ignore_merges", false, &takes_whole, err));
    WK_TRY(wk_hf_read_switch(s->digits, "individual_digits", false, &is_single, err));
    for (int i = 0; i < MOST_SPLITS && s->split[i] != NULL && keeps; i++)
        WK_TRY(keeps_matches(s->split[i], &keeps, err));
    const digit_step digits = s->digits == NULL ? NO_DIGITS : is_single ? SINGLE_DIGITS : NUMBERS;
    const bool has_punctuation = s->punctuation != NULL;
    if (s->split[0] == NULL && !has_punctuation)
        *name = digits == NO_DIGITS ? "gpt-2" : is_single ? "smollm" : NULL;
    for (size_t i = 0; i < WK_COUNT(splits) && keeps; i++)
        if (digits == splits[i].digits && has_punctuation == splits[i].has_punctuation &&
            has_patterns(s, splits[i].patterns))
            *name = takes_whole ? splits[i].name : splits[i].merging_name;
    return WICK_OK;
}

/* NFC changes a text only where characters are composed of several; Wick, like other readers of
 * such files, takes texts as they are. */
static wick_status check_bpe(const wk_json *root, wick_error *err) {
    static const char *const marks[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const wk_json *const model = wk_json_get(root, "model");
    wk_hf_steps s;
    WK_TRY(wk_hf_first_step(root, "normalizer", "normalizers", &s, err));
    for (; s.at != NULL; wk_hf_next_step(&s))
        if (!wk_hf_is_type(s.at, "NFC")) return wk_hf_refuse_step("normalizer", s.at, err);
    for (size_t i = 0; i < WK_COUNT(marks); i++) {
        wk_str mark;
        WK_TRY(wk_hf_read_text(model, marks[i], &mark, err));
        if (mark.size > 0)
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "tokenizer.json: BPE with a %s ('%s') cannot be converted yet", marks[i],
                           wk_str_show(mark).text);
    }
    const wk_json *const dropout = wk_json_get(model, "dropout");
    if (dropout == NULL || dropout->kind == WK_JSON_NULL ||
        (dropout->kind == WK_JSON_NUMBER && dropout->number == 0.0))
        return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: BPE with a dropout of %g cannot be converted", dropout->number);
}

wick_status wk_hf_find_split(const wk_json *root, const char **name, wick_error *err) {
    splitting s;
    WK_TRY(find_steps(root, &s, err));
    WK_TRY(check_bpe(root, err));
    const wk_json *const pattern = pattern_of(s.split[0]);
    WK_TRY(name_split(&s, wk_json_get(root, "model"), name, err));
    if (*name == NULL)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.json: the way to split texts '%s' is not known yet",
                       pattern != NULL ? wk_str_show(pattern->string).text : "without a pattern");
    /* A pattern that splits alone leaves nothing to ByteLevel's own. */
    const bool has_own_regex = s.split[0] == NULL || s.punctuation != NULL;
    WK_TRY(check_switch(s.bytes, "use_regex", true, has_own_regex, err));
    return check_switch(s.bytes, "add_prefix_space", false, false, err);
}

bool wk_hf_split_takes_whole(const char *name) {
    const wk_pretokenizer *const found = wk_pretokenizer_find(wk_str_of(name));
    return found != NULL && found->takes_whole;
}

/* ---- WordPiece ---- */

/* Accents go where nothing else is said and letters become small. */
static wick_status check_bert(const wk_json *step, bool is_cased, wick_error *err) {
    const wk_json *const accents = wk_json_get(step, "strip_accents");
    bool is_lower = !is_cased;
    if (!wk_hf_is_type(step, "BertNormalizer")) return wk_hf_refuse_step("normalizer", step, err);
    WK_TRY(check_switch(step, "clean_text", true, true, err));
    WK_TRY(check_switch(step, "handle_chinese_chars", true, true, err));
    if (accents != NULL && accents->kind != WK_JSON_NULL)
        WK_TRY(check_switch(step, "strip_accents", true, !is_cased, err));
    WK_TRY(wk_hf_read_switch(step, "lowercase", is_lower, &is_lower, err));
    if (is_lower == !is_cased) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: lowercase is %s, but the vocabulary has %scapital letters: it"
                   " cannot be converted, because a GGUF file does not store this setting",
                   is_lower ? "true" : "false", is_cased ? "" : "no ");
}

/* Readers of GGUF files always take BERT's steps. */
static wick_status fail_plain(const char *part, const char *type, wick_error *err) {
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tokenizer.json: WordPiece without a %s cannot be converted, only with a %s",
                   part, type);
}

static wick_status check_word_model(const wk_json *model, wick_error *err) {
    const wk_json *const longest = wk_json_get(model, "max_input_chars_per_word");
    wk_str prefix;
    WK_TRY(wk_hf_read_text(model, "continuing_subword_prefix", &prefix, err));
    if (prefix.text != NULL && !wk_str_is(prefix, "##"))
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.json: continuing_subword_prefix is '%s', only '##' can be"
                       " converted",
                       wk_str_show(prefix).text);
    if (longest != NULL && (longest->kind != WK_JSON_NUMBER || longest->number != 100.0))
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.json: max_input_chars_per_word is %g, only 100 can be converted",
                       longest->number);
    return WICK_OK;
}

wick_status wk_hf_check_word_pieces(const wk_json *root, bool is_cased, wick_error *err) {
    wk_hf_steps s;
    WK_TRY(check_word_model(wk_json_get(root, "model"), err));
    WK_TRY(wk_hf_first_step(root, "normalizer", "normalizers", &s, err));
    if (s.at == NULL) return fail_plain("normalizer", "BertNormalizer", err);
    for (; s.at != NULL; wk_hf_next_step(&s)) WK_TRY(check_bert(s.at, is_cased, err));
    WK_TRY(wk_hf_first_step(root, "pre_tokenizer", "pretokenizers", &s, err));
    if (s.at == NULL) return fail_plain("pre_tokenizer", "BertPreTokenizer", err);
    for (; s.at != NULL; wk_hf_next_step(&s))
        if (!wk_hf_is_type(s.at, "BertPreTokenizer"))
            return wk_hf_refuse_step("pre-tokenizer", s.at, err);
    return WICK_OK;
}
