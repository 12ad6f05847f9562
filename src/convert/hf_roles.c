/* convert/hf_roles.c: see hf_roles.h. */
#include "convert/hf_roles.h"

#include "convert/hf_kinds.h"
#include "core/compiler.h"
#include "core/status.h"

#include <stdio.h>
#include <string.h>

/* What is known beside the tokens; each NULL where the folder has no such file. */
typedef struct roles {
    const wk_checkpoint *checkpoint;
    const wk_hf_vocabulary *vocabulary;
    wk_value_list *values;
    wk_json *tokenizer_config, *special_tokens, *generation_config, *config;
    wick_error *err;
} roles;

static wick_status read_json(roles *r, const char *name, wk_json **out) {
    return wk_checkpoint_json(r->checkpoint, r->values->arena, name, false, out, r->err);
}

/* ---- Ids ---- */

static bool take_id(const wk_json *item, uint32_t *id) {
    if (item == NULL || !item->is_integer || item->integer < 0 || item->integer >= UINT32_MAX)
        return false;
    *id = (uint32_t)item->integer;
    return true;
}

bool wk_hf_find_token(const wk_json *tokenizer, wk_str text, uint32_t *id) {
    const wk_json *const vocab = wk_json_get(wk_json_get(tokenizer, "model"), "vocab");
    const wk_json *const added = wk_json_get(tokenizer, "added_tokens");
    for (const wk_json *item = vocab != NULL ? vocab->child : NULL; item != NULL; item = item->next)
        if (wk_str_equal(item->key, text) && take_id(item, id)) return true;
    for (const wk_json *item = added != NULL ? added->child : NULL; item != NULL;
         item = item->next) {
        const wk_json *const content = wk_json_get(item, "content");
        if (wk_hf_is_text(content) && wk_str_equal(content->string, text) &&
            take_id(wk_json_get(item, "id"), id))
            return true;
    }
    return false;
}

/* Word pieces are written otherwise in GGUF. */
static bool find_token(const wk_hf_vocabulary *v, wk_str text, uint32_t *id) {
    if (v->has_word_pieces) return wk_hf_find_token(v->tokenizer, text, id);
    for (*id = 0; *id < v->n; ++*id)
        if (wk_str_equal(text, (wk_str){v->tokens[*id].text, v->tokens[*id].size})) return true;
    return false;
}

static bool is_id(const roles *r, const wk_json *item) {
    return item != NULL && item->kind == WK_JSON_NUMBER && item->is_integer && item->integer >= 0 &&
           item->integer < r->vocabulary->n;
}

/* What generation must never choose. */
static wick_status add_suppressed(const roles *r) {
    const wk_json *const list = wk_json_get(r->generation_config, "suppress_tokens");
    if (list == NULL || list->kind != WK_JSON_ARRAY || list->child == NULL) return WICK_OK;
    uint32_t *const ids = wk_arena_array(r->values->arena, list->count, sizeof *ids);
    size_t n = 0;
    if (ids == NULL) return wk_fail_memory(r->err, list->count * sizeof *ids, "suppress_tokens");
    for (const wk_json *item = list->child; item != NULL; item = item->next)
        if (is_id(r, item)) ids[n++] = (uint32_t)item->integer;
    if (n > 0)
        wk_value_list_array(r->values, "tokenizer.ggml.suppress_tokens", WICK_VALUE_I32, ids, n);
    return WICK_OK;
}

/* "bos_token" is a text, or an object with its content. */
static const wk_json *role_text(const wk_json *config, const char *role) {
    const wk_json *const item = wk_json_get(config, role);
    return item != NULL && item->kind == WK_JSON_OBJECT ? wk_json_get(item, "content") : item;
}

/* "bos_token_id", a number or a list of them, of which the first counts. */
static bool find_listed(const roles *r, const char *role, uint32_t *id) {
    const wk_json *const files[] = {r->generation_config, r->config};
    char key[40];
    snprintf(key, sizeof key, "%s_id", role);
    for (size_t i = 0; i < WK_COUNT(files); i++) {
        const wk_json *item = wk_json_get(files[i], key);
        if (item != NULL && item->kind == WK_JSON_ARRAY) item = item->child;
        if (!is_id(r, item)) continue;
        *id = (uint32_t)item->integer;
        return true;
    }
    return false;
}

/* The text of a role; NULL: none is named. */
static const wk_json *find_text(const roles *r, const char *role) {
    const wk_json *text = role_text(r->tokenizer_config, role);
    if (!wk_hf_is_text(text)) text = role_text(r->special_tokens, role);
    return wk_hf_is_text(text) ? text : NULL;
}

static bool find_role(const roles *r, const char *role, uint32_t *id) {
    const wk_json *const text = find_text(r, role);
    return text != NULL ? find_token(r->vocabulary, text->string, id) : find_listed(r, role, id);
}

/* A role whose token is missing: without the end no answer ends, and SentencePiece puts the
 * beginning before every text. Byte-level vocabularies often name a beginning that is not used. */
static wick_status check_missing(const roles *r, const char *role) {
    const wk_json *const text = find_text(r, role);
    const bool is_needed = strcmp(role, "eos_token") == 0 ||
                           (strcmp(role, "bos_token") == 0 && !r->vocabulary->is_byte_level);
    if (text == NULL || !is_needed || r->vocabulary->has_word_pieces) return WICK_OK;
    return wk_fail(r->err, WICK_ERR_FORMAT,
                   "the folder names the %s '%s', which the vocabulary does not have", role,
                   wk_str_show(text->string).text);
}

/* Answers may end in several ways: GGUF has keys for two more. */
static void add_other_ends(const roles *r, uint32_t end) {
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const wk_json *const ids = wk_json_get(r->generation_config, "eos_token_id");
    const bool is_list = ids != NULL && ids->kind == WK_JSON_ARRAY;
    uint32_t before = end;
    size_t n = 0;
    for (const wk_json *item = is_list ? ids->child : ids; item != NULL && n < WK_COUNT(keys);
         item = is_list ? item->next : NULL) {
        if (!is_id(r, item) || item->integer == end || item->integer == before) continue;
        before = (uint32_t)item->integer;
        wk_value_list_u32(r->values, keys[n++], before);
    }
}

typedef struct role {
    const char *name, *key;
} role;

static const role text_roles[] = {
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"},
    {.name = NULL},
};
/* BERT's [CLS] and [SEP] begin and end a text. */
static const role word_piece_roles[] = {
    {"cls_token", "tokenizer.ggml.bos_token_id"},
    {"sep_token", "tokenizer.ggml.eos_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"},
    {"sep_token", "tokenizer.ggml.seperator_token_id"},
    {"mask_token", "tokenizer.ggml.mask_token_id"},
    {.name = NULL},
};

/* The id that stands for words without pieces. WordPiece needs one: its model names it, else a
 * role does, else it is the token with the usual text. */
static uint32_t find_unknown(const roles *r) {
    const wk_hf_vocabulary *const v = r->vocabulary;
    uint32_t id = UINT32_MAX;
    if (v->has_word_pieces && v->unknown < v->n) return v->unknown;
    if (find_role(r, "unk_token", &id)) return id;
    if (v->has_word_pieces && find_token(v, wk_str_of("[UNK]"), &id)) return id;
    return v->unknown;
}

static wick_status add_ids(const roles *r) {
    const bool has_pieces = r->vocabulary->has_word_pieces;
    const role *at = has_pieces ? word_piece_roles : text_roles;
    for (; at->name != NULL; at++) {
        const bool is_unknown = strcmp(at->name, "unk_token") == 0;
        uint32_t id = UINT32_MAX;
        if (is_unknown)
            id = find_unknown(r);
        else if (!find_role(r, at->name, &id))
            WK_TRY(check_missing(r, at->name));
        if (is_unknown && has_pieces && id >= r->vocabulary->n)
            return wk_fail(r->err, WICK_ERR_FORMAT,
                           "the WordPiece vocabulary has no unknown token: tokenizer.json and"
                           " tokenizer_config.json name no unk_token that it has, and [UNK] is"
                           " not in it");
        if (id >= r->vocabulary->n) continue;
        wk_value_list_u32(r->values, at->key, id);
        if (!has_pieces && strcmp(at->name, "eos_token") == 0) add_other_ends(r, id);
    }
    return WICK_OK;
}

/* ---- What is added to texts ---- */

/* The template of a single text: special tokens and "A" in the order in which they stand. */
static const wk_json *find_single(const wk_json *processor) {
    const wk_json *const single = wk_json_get(processor, "single");
    if (single != NULL && single->kind == WK_JSON_ARRAY) return single;
    const wk_json *const list = wk_json_get(processor, "processors");
    for (const wk_json *item = list != NULL ? list->child : NULL; item != NULL; item = item->next) {
        const wk_json *const found = wk_json_get(item, "single");
        if (found != NULL && found->kind == WK_JSON_ARRAY) return found;
    }
    return NULL;
}

typedef struct end_switch {
    const char *name, *key, *role, *id_key;
} end_switch;

static const end_switch end_switches[] = {
    {"add_bos_token", "tokenizer.ggml.add_bos_token", "bos_token", "tokenizer.ggml.bos_token_id"},
    {"add_eos_token", "tokenizer.ggml.add_eos_token", "eos_token", "tokenizer.ggml.eos_token_id"},
};

/* What is added must have an id. The template names one even where no role does. */
static wick_status add_switch(const roles *r, const end_switch *s, bool is_on,
                              const wk_json *special) {
    const wk_json *const name = wk_json_get(special, "id");
    uint32_t id = UINT32_MAX;
    wk_value_list_bool(r->values, s->key, is_on);
    if (!is_on || find_role(r, s->role, &id)) return WICK_OK;
    if (!wk_hf_is_text(name) || !find_token(r->vocabulary, name->string, &id))
        return wk_fail(r->err, WICK_ERR_FORMAT,
                       "%s is to be added to texts, but the folder names no %s that the vocabulary"
                       " has",
                       s->role, s->role);
    wk_value_list_u32(r->values, s->id_key, id);
    return WICK_OK;
}

/* Settings of their own count; without them what tokenizer.json does with a text tells.
 * SentencePiece alone has a default that every GGUF file of it means, and word pieces are always
 * put between two tokens. */
static wick_status add_switches(const roles *r) {
    if (r->vocabulary->has_word_pieces) return WICK_OK;
    const wk_json *const single =
        find_single(wk_json_get(r->vocabulary->tokenizer, "post_processor"));
    const wk_json *last = single != NULL ? single->child : NULL;
    while (last != NULL && last->next != NULL) last = last->next;
    const wk_json *const ends[] = {single != NULL ? single->child : NULL, last};
    for (size_t i = 0; i < WK_COUNT(end_switches); i++) {
        const wk_json *const item = wk_json_get(r->tokenizer_config, end_switches[i].name);
        const wk_json *const special = wk_json_get(ends[i], "SpecialToken");
        if (item != NULL && item->kind == WK_JSON_BOOL)
            WK_TRY(add_switch(r, &end_switches[i], item->boolean, special));
        else if (r->vocabulary->is_byte_level || single != NULL)
            WK_TRY(add_switch(r, &end_switches[i], special != NULL, special));
    }
    return WICK_OK;
}

/* ---- Chat templates ---- */

/* What can be the end of a key. */
static bool is_name(const wk_json *item) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (!wk_hf_is_text(item) || item->string.size == 0 || item->string.size > 60) return false;
    for (size_t i = 0; i < item->string.size; i++)
        if (memchr(letters, item->string.text[i], sizeof letters - 1) == NULL) return false;
    return true;
}

/* A list of templates with names: "default" is the one that has no name in GGUF. */
static wick_status add_named(const roles *r, const wk_json *list, bool has_default) {
    wick_string *const names = wk_arena_array(r->values->arena, list->count, sizeof *names);
    if (names == NULL) return wk_fail_memory(r->err, 0, "chat templates");
    size_t n = 0;
    for (const wk_json *item = list->child; item != NULL; item = item->next) {
        const wk_json *const name = wk_json_get(item, "name");
        const wk_json *const text = wk_json_get(item, "template");
        if (!is_name(name) || !wk_hf_is_text(text))
            return wk_fail(r->err, WICK_ERR_FORMAT,
                           "tokenizer_config.json: a chat template has no name, or no text");
        if (wk_str_is(name->string, "default")) {
            if (!has_default)
                wk_value_list_text(r->values, "tokenizer.chat_template", text->string);
            continue;
        }
        char key[100];
        snprintf(key, sizeof key, "tokenizer.chat_template.%.*s", (int)name->string.size,
                 name->string.text);
        wk_value_list_text(r->values, key, text->string);
        names[n++] = (wick_string){name->string.text, name->string.size};
    }
    if (n > 0)
        wk_value_list_array(r->values, "tokenizer.chat_templates", WICK_VALUE_STRING, names, n);
    return WICK_OK;
}

static wick_status add_templates(roles *r) {
    wk_str file;
    wk_json *older = NULL;
    WK_TRY(wk_checkpoint_read(r->checkpoint, r->values->arena, "chat_template.jinja", false, &file,
                              r->err));
    WK_TRY(read_json(r, "chat_template.json", &older));
    const wk_json *text = wk_json_get(r->tokenizer_config, "chat_template");
    const bool has_file = file.text != NULL;
    if (has_file) wk_value_list_text(r->values, "tokenizer.chat_template", file);
    if (text != NULL && text->kind == WK_JSON_ARRAY) return add_named(r, text, has_file);
    if (!wk_hf_is_text(text)) text = wk_json_get(older, "chat_template");
    if (!has_file && wk_hf_is_text(text))
        wk_value_list_text(r->values, "tokenizer.chat_template", text->string);
    return WICK_OK;
}

/* Of word pieces this setting counts more than that of tokenizer.json, which fits the vocabulary.
 */
static wick_status check_case(const roles *r) {
    const wk_json *const item = wk_json_get(r->tokenizer_config, "do_lower_case");
    const bool is_said = item != NULL && item->kind == WK_JSON_BOOL;
    if (!r->vocabulary->has_word_pieces || !is_said || item->boolean != r->vocabulary->is_cased)
        return WICK_OK;
    return wk_fail(r->err, WICK_ERR_UNSUPPORTED,
                   "tokenizer_config.json: do_lower_case is %s, but the vocabulary has %scapital"
                   " letters: it cannot be converted",
                   item->boolean ? "true" : "false", item->boolean ? "" : "no ");
}

wick_status wk_hf_add_roles(const wk_checkpoint *checkpoint, const wk_hf_vocabulary *vocabulary,
                            wk_value_list *values, wick_error *err) {
    roles r = {.checkpoint = checkpoint, .vocabulary = vocabulary, .values = values, .err = err};
    WK_TRY(read_json(&r, "tokenizer_config.json", &r.tokenizer_config));
    WK_TRY(read_json(&r, "special_tokens_map.json", &r.special_tokens));
    WK_TRY(read_json(&r, "generation_config.json", &r.generation_config));
    WK_TRY(read_json(&r, "config.json", &r.config));
    WK_TRY(check_case(&r));
    WK_TRY(add_ids(&r));
    WK_TRY(add_suppressed(&r));
    WK_TRY(add_switches(&r));
    return add_templates(&r);
}
