/* api/infill.c: text for a gap in a file, as llama-server's /infill: the tokens that models were
 * trained with to fill in the middle (Bavarian et al., 2022). See api.h. */
#include "api/api.h"

#include <string.h>

typedef enum mark { PREFIX, SUFFIX, MIDDLE, REPOSITORY, FILE_NAME, N_MARKS } mark;

/* Their keys in a model's metadata, and their names in vocabularies of well-known models. */
static const struct {
    const char *key, *names[6];
} marks[N_MARKS] = {
    [PREFIX] = {"tokenizer.ggml.fim_pre_token_id",
                {"<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>", "<PRE>",
                 "<\xEF\xBD\x9C"
                 "fim\xE2\x96\x81"
                 "begin\xEF\xBD\x9C>",
                 "<|code_prefix|>"}},
    [SUFFIX] = {"tokenizer.ggml.fim_suf_token_id",
                {"<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>", "<SUF>",
                 "<\xEF\xBD\x9C"
                 "fim\xE2\x96\x81hole\xEF\xBD\x9C>",
                 "<|code_suffix|>"}},
    [MIDDLE] = {"tokenizer.ggml.fim_mid_token_id",
                {"<|fim_middle|>", "<fim_middle>", "<fim-middle>", "<MID>",
                 "<\xEF\xBD\x9C"
                 "fim\xE2\x96\x81"
                 "end\xEF\xBD\x9C>",
                 "<|code_middle|>"}},
    [REPOSITORY] = {"tokenizer.ggml.fim_rep_token_id",
                    {"<|repo_name|>", "<|fim_repo|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    [FILE_NAME] = {"tokenizer.ggml.fim_sep_token_id", {"<|file_sep|>", "<file_sep>"}},
};

static bool is_name(wk_str bytes, const char *name) {
    const char space[] = "\xE2\x96\x81"; /* SentencePiece's, which may stand before it */
    if (bytes.size > 3 && memcmp(bytes.text, space, 3) == 0)
        bytes = (wk_str){bytes.text + 3, bytes.size - 3};
    if (bytes.size > 1 && bytes.text[0] == ' ') bytes = (wk_str){bytes.text + 1, bytes.size - 1};
    return wk_str_is(bytes, name);
}

static void find_marks(const wick_model *model, uint32_t ids[N_MARKS]) {
    const uint32_t n_vocab = wick_tokenizer_size(model->tokenizer);
    for (int m = 0; m < N_MARKS; m++) {
        const wick_value *const value = wk_gguf_find(model->gguf, marks[m].key);
        ids[m] = value && value->type == WICK_VALUE_U32 && value->u < n_vocab ? (uint32_t)value->u
                                                                              : WICK_NO_TOKEN;
    }
    for (uint32_t id = 0; id < n_vocab; id++) {
        wk_str bytes;
        bytes.text = wick_token_bytes(model->tokenizer, id, true, &bytes.size);
        for (int m = 0; m < N_MARKS && bytes.text; m++)
            for (int i = 0; i < 6 && marks[m].names[i] && ids[m] == WICK_NO_TOKEN; i++)
                if (is_name(bytes, marks[m].names[i])) ids[m] = id;
    }
}

/* ---- The prompt ---- */

typedef struct prompt {
    wick_exchange *x;
    wk_strbuf ids; /* uint32_t each */
    wick_error *err;
} prompt;

static void add_id(prompt *p, uint32_t id) {
    if (id != WICK_NO_TOKEN) wk_strbuf_append(&p->ids, &id, sizeof id);
}

static wick_status add_text(prompt *p, wk_str text) {
    wk_ids made = {.n = 0};
    WK_TRY(wk_ids_of_text(p->x, text, 0, &made, p->err));
    wk_strbuf_append(&p->ids, made.ids, made.n * sizeof *made.ids);
    return WICK_OK;
}

/* A field that may be missing. */
static wick_status read_text(const wick_exchange *x, const char *key, wk_str *text,
                             wick_error *err) {
    const wk_json *const given = key ? wk_request_field(x, key) : NULL;
    *text = wk_str_of("");
    if (given && given->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "%s must be a text", key);
    if (given) *text = given->string;
    return WICK_OK;
}

/* Other files: [{"filename": ..., "text": ...}]. */
static wick_status add_files(prompt *p, const uint32_t ids[N_MARKS]) {
    const wk_json *const files = wk_request_field(p->x, "input_extra");
    if (!files) return WICK_OK;
    if (files->kind != WK_JSON_ARRAY)
        return wk_fail(p->err, WICK_ERR_VALUE, "input_extra must be an array");
    if (ids[REPOSITORY] != WICK_NO_TOKEN) {
        add_id(p, ids[REPOSITORY]);
        WK_TRY(add_text(p, wk_str_of("project\n")));
    }
    for (const wk_json *file = files->child; file; file = file->next) {
        const wk_json *const text = wk_json_get(file, "text");
        const wk_json *const name = wk_json_get(file, "filename");
        if (!text || text->kind != WK_JSON_STRING || (name && name->kind != WK_JSON_STRING))
            return wk_fail(p->err, WICK_ERR_VALUE,
                           "input_extra: each must have a text, and its filename must be a text");
        if (ids[FILE_NAME] != WICK_NO_TOKEN) {
            add_id(p, ids[FILE_NAME]);
            WK_TRY(add_text(p, name ? name->string : wk_str_of("file")));
        }
        WK_TRY(add_text(p, wk_str_of("\n")));
        WK_TRY(add_text(p, text->string));
    }
    if (ids[FILE_NAME] == WICK_NO_TOKEN) return WICK_OK;
    add_id(p, ids[FILE_NAME]);
    return add_text(p, wk_str_of("filename\n"));
}

bool wk_request_has_suffix(const wick_exchange *x) {
    const wk_json *const suffix = wk_request_field(x, "suffix");
    return suffix && (suffix->kind != WK_JSON_STRING || suffix->string.size > 0);
}

static wick_status write_prompt(prompt *p, const uint32_t ids[N_MARKS], const char *const keys[3]) {
    const wick_tokenizer *const tokenizer = p->x->api->model->tokenizer;
    wk_str before, after, begun;
    uint32_t first[2];
    size_t n;
    WK_TRY(read_text(p->x, keys[0], &before, p->err));
    WK_TRY(read_text(p->x, keys[1], &after, p->err));
    WK_TRY(read_text(p->x, keys[2], &begun, p->err));
    if (wick_tokenize(tokenizer, "", 0, WICK_TOKENIZE_ADD_BEGIN, first, 2, &n) == WICK_OK && n == 1)
        add_id(p, first[0]);
    WK_TRY(add_files(p, ids));
    add_id(p, ids[PREFIX]);
    WK_TRY(add_text(p, before));
    add_id(p, ids[SUFFIX]);
    WK_TRY(add_text(p, after));
    add_id(p, ids[MIDDLE]);
    return add_text(p, begun);
}

wick_status wk_prompt_of_infill(wick_exchange *x, const char *before, const char *after,
                                const char *begun, wick_error *err) {
    const char *const keys[] = {before, after, begun};
    uint32_t ids[N_MARKS];
    find_marks(x->api->model, ids);
    if (ids[PREFIX] == WICK_NO_TOKEN || ids[SUFFIX] == WICK_NO_TOKEN ||
        ids[MIDDLE] == WICK_NO_TOKEN)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "this model has no tokens that mark a gap in a text");
    prompt p = {.x = x, .err = err};
    wk_strbuf_init(&p.ids, x->heap);
    wick_status status = write_prompt(&p, ids, keys);
    x->prompts = wk_arena_array(&x->arena, 1, sizeof *x->prompts);
    uint32_t *const made = wk_arena_alloc(&x->arena, p.ids.size + 1);
    if (status == WICK_OK && (!x->prompts || !made || p.ids.failed))
        status = wk_fail_memory(err, p.ids.size, "a prompt");
    if (status == WICK_OK) {
        memcpy(made, p.ids.data, p.ids.size);
        x->prompts[0] = (wk_ids){.ids = made, .n = p.ids.size / sizeof *made};
        x->n_prompts = 1;
    }
    wk_strbuf_release(&p.ids);
    return status;
}
