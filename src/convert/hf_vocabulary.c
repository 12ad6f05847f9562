/* convert/hf_vocabulary.c: see hf_vocabulary.h. */
#include "convert/hf_vocabulary.h"

#include "convert/hf_kinds.h"
#include "convert/hf_pieces.h"
#include "convert/hf_roles.h"
#include "convert/hf_steps.h"
#include "core/compiler.h"
#include "core/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Types of tokens in GGUF. */
enum {
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_USER_DEFINED = 4,
    TYPE_UNUSED = 5,
    TYPE_BYTE = 6
};
enum { MOST_TOKENS = 1 << 24 };

typedef struct vocabulary {
    wk_arena *arena;
    wk_json *root;        /* tokenizer.json */
    const wk_json *model; /* its model */
    const wk_json *added; /* without it: what other files add to the pieces, as it would */
    wick_string *tokens;  /* [n] */
    int32_t *types;       /* [n] */
    float *scores;        /* [n], of SentencePiece */
    uint32_t n;
    uint32_t unknown; /* the id of this type, or none */
    bool is_cased;    /* word pieces have capital letters */
    wick_error *err;
} vocabulary;

static wick_status fail_memory(const vocabulary *v) {
    return wk_fail_memory(v->err, 0, "a vocabulary");
}

static bool is_id(const wk_json *item) {
    return item != NULL && item->kind == WK_JSON_NUMBER && item->is_integer && item->integer >= 0 &&
           item->integer < MOST_TOKENS;
}

/* Returns first followed by second, terminated; text is NULL when memory is short. */
static wick_string join(wk_arena *arena, wk_str first, wk_str second) {
    char *const text = wk_arena_alloc(arena, first.size + second.size + 1);
    if (text == NULL) return (wick_string){0};
    if (first.size > 0) memcpy(text, first.text, first.size);
    if (second.size > 0) memcpy(text + first.size, second.text, second.size);
    text[first.size + second.size] = '\0';
    return (wick_string){text, first.size + second.size};
}

/* ---- Tokens ---- */

static wick_status set_token(vocabulary *v, const wk_json *id, wk_str text, int32_t type) {
    if (!is_id(id) || (uint64_t)id->integer >= v->n)
        return wk_fail(v->err, WICK_ERR_FORMAT, "the vocabulary: the token '%s' has no id",
                       wk_str_show(text).text);
    v->tokens[id->integer] = join(v->arena, text, (wk_str){0});
    v->types[id->integer] = type;
    return v->tokens[id->integer].text != NULL ? WICK_OK : fail_memory(v);
}

/* More than the embedding has rows: the largest id of all counts. */
static uint32_t count_tokens(const wk_json *vocab, const wk_json *added, uint32_t n_vocab) {
    int64_t n = n_vocab;
    for (const wk_json *item = vocab != NULL ? vocab->child : NULL; item != NULL; item = item->next)
        if (is_id(item) && item->integer >= n) n = item->integer + 1;
    for (const wk_json *item = added != NULL ? added->child : NULL; item != NULL;
         item = item->next) {
        const wk_json *const id = wk_json_get(item, "id");
        if (is_id(id) && id->integer >= n) n = id->integer + 1;
    }
    return (uint32_t)n;
}

static wick_status name_unused(vocabulary *v) {
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->tokens[i].text != NULL) continue;
        char name[24];
        snprintf(name, sizeof name, "[PAD%" PRIu32 "]", i);
        v->tokens[i] = join(v->arena, wk_str_of(name), (wk_str){0});
        v->types[i] = TYPE_UNUSED;
        if (v->tokens[i].text == NULL) return fail_memory(v);
    }
    return WICK_OK;
}

static wick_status make_tokens(vocabulary *v, uint32_t n) {
    v->n = n;
    v->tokens = wk_arena_array(v->arena, n, sizeof *v->tokens);
    v->types = wk_arena_array(v->arena, n, sizeof *v->types);
    v->scores = wk_arena_array(v->arena, n, sizeof *v->scores);
    return v->tokens != NULL && v->types != NULL && v->scores != NULL ? WICK_OK : fail_memory(v);
}

/* One of "added_tokens". */
static wick_status add_token(vocabulary *v, const wk_json *item) {
    const wk_json *const content = wk_json_get(item, "content");
    bool is_control = false;
    if (!wk_hf_is_text(content))
        return wk_fail(v->err, WICK_ERR_FORMAT, "tokenizer.json: an added token has no text");
    WK_TRY(wk_hf_read_switch(item, "special", false, &is_control, v->err));
    return set_token(v, wk_json_get(item, "id"), content->string,
                     is_control ? TYPE_CONTROL : TYPE_USER_DEFINED);
}

static wick_status read_tokens(vocabulary *v, uint32_t n_vocab) {
    const wk_json *const vocab = wk_json_get(v->model, "vocab");
    const wk_json *added = NULL;
    if (vocab == NULL || vocab->kind != WK_JSON_OBJECT)
        return wk_fail(v->err, WICK_ERR_FORMAT, "tokenizer.json has no model.vocab");
    WK_TRY(wk_hf_read_list(v->root, "added_tokens", &added, v->err));
    WK_TRY(make_tokens(v, count_tokens(vocab, added, n_vocab)));
    for (const wk_json *item = vocab->child; item != NULL; item = item->next)
        WK_TRY(set_token(v, item, item->key, TYPE_NORMAL));
    for (const wk_json *item = added != NULL ? added->child : NULL; item != NULL; item = item->next)
        WK_TRY(add_token(v, item));
    return name_unused(v);
}

/* ---- Byte-level BPE ---- */

static bool has_blank(wk_str text) {
    return text.size > 0 && memchr(text.text, ' ', text.size) != NULL;
}

/* A merge is "a b", or in newer files ["a", "b"]; GGUF has the first form alone. */
static bool read_merge(const vocabulary *v, const wk_json *item, wick_string *out) {
    if (wk_hf_is_text(item)) {
        *out = join(v->arena, item->string, (wk_str){0});
        return true;
    }
    if (item->kind != WK_JSON_ARRAY || item->count != 2 || !wk_hf_is_text(item->child) ||
        !wk_hf_is_text(item->child->next) || has_blank(item->child->string) ||
        has_blank(item->child->next->string))
        return false;
    const wick_string first = join(v->arena, item->child->string, wk_str_of(" "));
    if (first.text != NULL)
        *out = join(v->arena, (wk_str){first.text, first.size}, item->child->next->string);
    return true;
}

static wick_status add_merges(const vocabulary *v, wk_value_list *values) {
    const wk_json *const list = wk_json_get(v->model, "merges");
    if (list == NULL || list->kind != WK_JSON_ARRAY)
        return wk_fail(v->err, WICK_ERR_FORMAT, "tokenizer.json has no model.merges");
    wick_string *const merges = wk_arena_array(v->arena, list->count, sizeof *merges);
    if (merges == NULL) return fail_memory(v);
    size_t n = 0;
    for (const wk_json *item = list->child; item != NULL; item = item->next, n++) {
        if (!read_merge(v, item, &merges[n]))
            return wk_fail(v->err, WICK_ERR_FORMAT, "tokenizer.json: merge %zu is none", n);
        if (merges[n].text == NULL) return fail_memory(v);
    }
    wk_value_list_array(values, "tokenizer.ggml.merges", WICK_VALUE_STRING, merges, n);
    return WICK_OK;
}

/* ---- WordPiece ---- */

/* GGUF marks where words begin, the checkpoint where they go on: "##ing" is "ing", "go" is "_go"
 * with U+2581. Names in brackets stay. */
static wick_status mark_words(vocabulary *v) {
    for (uint32_t i = 0; i < v->n; i++) {
        const wk_str token = {v->tokens[i].text, v->tokens[i].size};
        if (v->types[i] != TYPE_NORMAL || wk_str_matches(wk_str_of("[*]"), token)) continue;
        if (wk_str_matches(wk_str_of("##*"), token))
            v->tokens[i] = (wick_string){token.text + 2, token.size - 2};
        else
            v->tokens[i] = join(v->arena, wk_str_of("\xE2\x96\x81"), token);
        if (v->tokens[i].text == NULL) return fail_memory(v);
    }
    return WICK_OK;
}

static bool has_token(const vocabulary *v, const char *text) {
    for (uint32_t i = 0; i < v->n; i++)
        if (wk_str_is((wk_str){v->tokens[i].text, v->tokens[i].size}, text)) return true;
    return false;
}

static wick_status add_word_pieces(vocabulary *v) {
    const wk_json *const unknown = wk_json_get(v->model, "unk_token");
    if (wk_hf_is_text(unknown)) (void)wk_hf_find_token(v->root, unknown->string, &v->unknown);
    WK_TRY(mark_words(v));
    v->is_cased = has_token(v, "\xE2\x96\x81"
                               "A");
    return wk_hf_check_word_pieces(v->root, v->is_cased, v->err);
}

/* ---- SentencePiece ---- */

/* The score of tokens that are not pieces: the lowest of all. */
static const float NO_SCORE = -10000;

/* What there is beside tokenizer.model; each NULL where the folder has no such file. */
typedef struct token_files {
    wk_json *config; /* tokenizer_config.json */
    wk_json *roles;  /* special_tokens_map.json */
    wk_json *texts;  /* added_tokens.json */
} token_files;

static wick_status read_token_files(const wk_checkpoint *checkpoint, const vocabulary *v,
                                    token_files *out) {
    WK_TRY(wk_checkpoint_json(checkpoint, v->arena, "tokenizer_config.json", false, &out->config,
                              v->err));
    WK_TRY(wk_checkpoint_json(checkpoint, v->arena, "special_tokens_map.json", false, &out->roles,
                              v->err));
    return wk_checkpoint_json(checkpoint, v->arena, "added_tokens.json", false, &out->texts,
                              v->err);
}

/* {"id": id, "content": text, "special": is_special}, at the end of list. */
static wick_status list_token(const vocabulary *v, int64_t id, wk_str text, bool is_special,
                              wk_json *list) {
    enum { ID, CONTENT, SPECIAL, TOKEN, N };
    wk_json *const made = wk_arena_array(v->arena, N, sizeof *made);
    if (made == NULL) return fail_memory(v);
    made[ID] = (wk_json){.kind = WK_JSON_NUMBER,
                         .key = wk_str_of("id"),
                         .is_integer = true,
                         .integer = id,
                         .number = (double)id};
    made[CONTENT] = (wk_json){.kind = WK_JSON_STRING, .key = wk_str_of("content"), .string = text};
    made[SPECIAL] =
        (wk_json){.kind = WK_JSON_BOOL, .key = wk_str_of("special"), .boolean = is_special};
    made[TOKEN] = (wk_json){.kind = WK_JSON_OBJECT};
    for (int i = 0; i < TOKEN; i++) wk_json_append(&made[TOKEN], &made[i]);
    wk_json_append(list, &made[TOKEN]);
    return WICK_OK;
}

static int64_t id_of_key(wk_str key) {
    int64_t id = 0;
    for (size_t i = 0; i < key.size && id < MOST_TOKENS; i++) {
        if (key.text[i] < '0' || key.text[i] > '9') return -1;
        id = 10 * id + (key.text[i] - '0');
    }
    return key.size > 0 ? id : -1;
}

/* Whether text is one of a list of tokens, or of an object's: each a text, or an object with its
 * content. */
static bool names_token(const wk_json *list, wk_str text) {
    for (const wk_json *item = list != NULL ? list->child : NULL; item != NULL; item = item->next) {
        const wk_json *const content =
            item->kind == WK_JSON_OBJECT ? wk_json_get(item, "content") : item;
        if (wk_hf_is_text(content) && wk_str_equal(content->string, text)) return true;
    }
    return false;
}

/* As transformers has it: what has a role. Users must not write <|...|>, either. */
static bool is_special(const token_files *files, wk_str text) {
    static const char *const key = "additional_special_tokens";
    return names_token(files->config, text) || names_token(files->roles, text) ||
           names_token(wk_json_get(files->config, key), text) ||
           names_token(wk_json_get(files->roles, key), text) ||
           wk_str_matches(wk_str_of("<|*|>"), text);
}

/* Those of a folder without tokenizer.json: by id in tokenizer_config.json, or by text in
 * added_tokens.json. */
static wick_status list_added(const vocabulary *v, const token_files *files, const wk_json **out) {
    const wk_json *const decoder = wk_json_get(files->config, "added_tokens_decoder");
    wk_json *const list = wk_arena_array(v->arena, 1, sizeof *list);
    if (list == NULL) return fail_memory(v);
    *list = (wk_json){.kind = WK_JSON_ARRAY};
    for (const wk_json *item = decoder != NULL ? decoder->child : NULL; item != NULL;
         item = item->next) {
        const wk_json *const content = wk_json_get(item, "content");
        bool is_control = false;
        if (!wk_hf_is_text(content)) continue;
        WK_TRY(wk_hf_read_switch(item, "special", false, &is_control, v->err));
        WK_TRY(list_token(v, id_of_key(item->key), content->string, is_control, list));
    }
    const bool has_texts = decoder == NULL && files->texts != NULL;
    for (const wk_json *item = has_texts ? files->texts->child : NULL; item != NULL;
         item = item->next)
        WK_TRY(list_token(v, is_id(item) ? item->integer : -1, item->key,
                          is_special(files, item->key), list));
    *out = list;
    return WICK_OK;
}

/* Pieces come first; added tokens may rename them and change their types. */
static wick_status read_pieces(vocabulary *v, const wk_hf_pieces *pieces, uint32_t n_vocab) {
    const wk_json *added = v->added;
    const uint32_t least = pieces->n > n_vocab ? pieces->n : n_vocab;
    if (v->root != NULL) WK_TRY(wk_hf_read_list(v->root, "added_tokens", &added, v->err));
    WK_TRY(make_tokens(v, count_tokens(NULL, added, least)));
    for (uint32_t i = 0; i < v->n; i++) v->scores[i] = NO_SCORE;
    for (uint32_t i = 0; i < pieces->n; i++) {
        v->tokens[i] = join(v->arena, pieces->items[i].text, (wk_str){0});
        v->types[i] = pieces->items[i].type;
        v->scores[i] = pieces->items[i].score;
        if (v->types[i] == TYPE_UNKNOWN) v->unknown = i;
        if (v->tokens[i].text == NULL) return fail_memory(v);
    }
    for (const wk_json *item = added != NULL ? added->child : NULL; item != NULL;
         item = item->next) {
        const wk_json *const id = wk_json_get(item, "id");
        const bool is_piece = is_id(id) && id->integer < pieces->n;
        const int32_t type = is_piece ? v->types[id->integer] : 0;
        if (type != TYPE_UNKNOWN && type != TYPE_BYTE) WK_TRY(add_token(v, item));
    }
    return name_unused(v);
}

static wick_status add_pieces(vocabulary *v, const wk_hf_pieces *pieces, uint32_t n_vocab,
                              wk_value_list *values) {
    if (pieces->treats_as_suffix)
        return wk_fail(v->err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.model: treat_whitespace_as_suffix cannot be converted");
    WK_TRY(read_pieces(v, pieces, n_vocab));
    wk_value_list_text(values, "tokenizer.ggml.model",
                       wk_str_of(pieces->is_unigram ? "t5" : "llama"));
    wk_value_list_text(values, "tokenizer.ggml.pre", wk_str_of("default"));
    wk_value_list_array(values, "tokenizer.ggml.tokens", WICK_VALUE_STRING, v->tokens, v->n);
    wk_value_list_array(values, "tokenizer.ggml.scores", WICK_VALUE_F32, v->scores, v->n);
    wk_value_list_array(values, "tokenizer.ggml.token_type", WICK_VALUE_I32, v->types, v->n);
    if (pieces->is_unigram || !pieces->has_dummy_prefix)
        wk_value_list_bool(values, "tokenizer.ggml.add_space_prefix", pieces->has_dummy_prefix);
    if (pieces->has_dummy_prefix && pieces->scheme != NULL)
        wk_value_list_text(values, "tokenizer.ggml.prepend_scheme", wk_str_of(pieces->scheme));
    if (pieces->is_unigram || pieces->removes_extra_spaces || pieces->charsmap.size > 0)
        wk_value_list_bool(values, "tokenizer.ggml.remove_extra_whitespaces",
                           pieces->removes_extra_spaces);
    if (pieces->charsmap.size > 0)
        wk_value_list_array(values, "tokenizer.ggml.precompiled_charsmap", WICK_VALUE_U8,
                            pieces->charsmap.text, pieces->charsmap.size);
    return WICK_OK;
}

/* ---- All of it ---- */

static wick_status add_model(vocabulary *v, wk_value_list *values) {
    const wk_json *const type = wk_json_get(v->model, "type");
    const bool is_bpe = wk_hf_is_type(v->model, "BPE");
    if (!is_bpe && !wk_hf_is_type(v->model, "WordPiece"))
        return wk_fail(v->err, WICK_ERR_UNSUPPORTED,
                       "tokenizer.json: a tokenizer of the type '%s' cannot be converted yet",
                       wk_hf_is_text(type) ? wk_str_show(type->string).text : "without a name");
    const char *split = "default";
    bool takes_whole = false;
    if (is_bpe) WK_TRY(wk_hf_find_split(v->root, &split, v->err));
    if (is_bpe) WK_TRY(wk_hf_read_switch(v->model, "ignore_merges", false, &takes_whole, v->err));
    wk_value_list_text(values, "tokenizer.ggml.model", wk_str_of(is_bpe ? "gpt2" : "bert"));
    wk_value_list_text(values, "tokenizer.ggml.pre", wk_str_of(split));
    if (takes_whole != wk_hf_split_takes_whole(split))
        wk_value_list_bool(values, "tokenizer.ggml.ignore_merges", takes_whole);
    if (!is_bpe) WK_TRY(add_word_pieces(v));
    wk_value_list_array(values, "tokenizer.ggml.tokens", WICK_VALUE_STRING, v->tokens, v->n);
    wk_value_list_array(values, "tokenizer.ggml.token_type", WICK_VALUE_I32, v->types, v->n);
    return is_bpe ? add_merges(v, values) : WICK_OK;
}

wick_status wk_hf_add_vocabulary(const wk_checkpoint *checkpoint, uint32_t n_vocab,
                                 wk_value_list *values, wick_error *err) {
    vocabulary v = {.arena = values->arena, .unknown = UINT32_MAX, .err = err};
    wk_str file;
    wk_hf_pieces pieces;
    WK_TRY(wk_checkpoint_read(checkpoint, v.arena, "tokenizer.model", false, &file, err));
    const bool has_file = file.text != NULL;
    WK_TRY(wk_checkpoint_json(checkpoint, v.arena, "tokenizer.json", !has_file, &v.root, err));
    v.model = wk_json_get(v.root, "model");
    if (has_file || wk_hf_is_type(v.model, "Unigram")) {
        WK_TRY(has_file ? wk_hf_pieces_parse(file, v.arena, &pieces, err)
                        : wk_hf_pieces_from_json(v.root, v.arena, &pieces, err));
        if (has_file) {
            token_files files;
            WK_TRY(read_token_files(checkpoint, &v, &files));
            WK_TRY(wk_hf_pieces_read_prefix(v.root, files.config, &pieces, err));
            WK_TRY(list_added(&v, &files, &v.added));
        }
        WK_TRY(add_pieces(&v, &pieces, n_vocab, values));
    } else {
        WK_TRY(read_tokens(&v, n_vocab));
        WK_TRY(add_model(&v, values));
    }
    const wk_hf_vocabulary known = {.tokenizer = v.root,
                                    .tokens = v.tokens,
                                    .n = v.n,
                                    .unknown = v.unknown,
                                    .has_word_pieces = wk_hf_is_type(v.model, "WordPiece"),
                                    .is_cased = v.is_cased,
                                    .is_byte_level = !has_file && wk_hf_is_type(v.model, "BPE")};
    return wk_hf_add_roles(checkpoint, &known, values, err);
}
