/* api/info.c: what a server says of itself and of its model, and texts to tokens and back. See
 * api.h. */
#include "api/api.h"

#include <string.h>

/* ---- The model ---- */

static void write_names(wk_strbuf *to, const char *key, const char *const *names, size_t n) {
    wk_write_key(to, key);
    wk_write_open(to, '[');
    for (size_t i = 0; i < n; i++) wk_write_string(to, wk_str_of(names[i]));
    wk_write_close(to, ']');
}

static void write_model(wick_exchange *x) {
    wk_strbuf *const to = &x->part;
    const int64_t created = x->api->modified > 0 ? x->api->modified : x->time;
    wick_model_info info;
    wick_model_get_info(x->api->model, &info);
    wk_write_open(to, '{');
    wk_write_put(to, "id", x->api->name);
    wk_write_put(to, "object", "model");
    wk_write_put_whole(to, "created", (uint64_t)created);
    wk_write_put(to, "owned_by", "wick");
    /* Anthropic's names of the same, and what it says of its own models only. */
    wk_write_put(to, "type", "model");
    wk_write_put(to, "display_name", x->api->name);
    wk_write_time(to, "created_at", created);
    wk_write_put_whole(to, "max_input_tokens", x->api->session.context_length);
    wk_write_raw(to, "\"max_tokens\":null,\"capabilities\":null,\"lifecycle\":\"active\","
                     "\"deprecated_at\":null,\"retires_at\":null,\"line\":null");
    write_names(to, "aliases", x->api->aliases, x->api->n_aliases);
    write_names(to, "tags", x->api->tags, x->api->n_tags);
    wk_write_key(to, "meta");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "n_ctx_train", info.context_length);
    wk_write_put_whole(to, "n_embd", info.n_embd);
    wk_write_put_whole(to, "n_params", info.n_parameters);
    wk_write_put_whole(to, "n_vocab", info.n_vocab);
    wk_write_put_whole(to, "size", info.file_bytes);
    wk_write_close(to, '}');
    wk_write_close(to, '}');
}

wick_status wk_answer_models(wick_exchange *x, wick_error *err) {
    (void)err;
    wk_write_raw(&x->part, "{\"object\":\"list\",\"has_more\":false,\"data\":[");
    write_model(x);
    wk_strbuf_text(&x->part, "]}");
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_model(wick_exchange *x, wick_error *err) {
    static const char tag[] = ":latest"; /* ollama's, as servers of several models take it */
    wk_str name = wk_str_of(x->path.text + strlen("/v1/models/"));
    if (wk_str_matches(wk_str_of("*:latest"), name)) name.size -= strlen(tag);
    bool is_known = wk_str_is(name, x->api->name);
    for (size_t i = 0; i < x->api->n_aliases; i++)
        is_known = is_known || wk_str_is(name, x->api->aliases[i]);
    if (!is_known) return wk_fail(err, WICK_ERR_NOT_FOUND, "there is no model of this name");
    write_model(x);
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_health(wick_exchange *x, wick_error *err) {
    (void)err;
    wk_write_raw(&x->part, "{\"status\":\"ok\"}");
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_props(wick_exchange *x, wick_error *err) {
    (void)err;
    wk_strbuf *const to = &x->part;
    wk_write_open(to, '{');
    wk_write_put(to, "model_alias", x->api->name);
    wk_write_put(to, "model_path", x->api->path);
    wk_write_put_whole(to, "total_slots", x->api->n_parallel);
    wk_write_put(to, "build_info", x->api->build);
    wk_write_key(to, "default_generation_settings");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "n_ctx", x->api->session.context_length);
    wk_write_key(to, "params");
    wk_write_settings(to, x->api, &x->api->session, false);
    wk_write_close(to, '}');
    const wick_value *const text = wk_gguf_find(x->api->model->gguf, "tokenizer.chat_template");
    if (!x->api->has_own_template && text && text->type == WICK_VALUE_STRING)
        wk_write_put_string(to, "chat_template", (wk_str){text->string.text, text->string.size});
    wk_write_raw(to, "\"modalities\":{\"vision\":false,\"audio\":false}");
    wk_write_close(to, '}');
    wk_exchange_end(x, 200);
    return WICK_OK;
}

/* ---- Tokens ---- */

wick_status wk_answer_tokenize(wick_exchange *x, wick_error *err) {
    const wk_json *const content = wk_json_get(x->body, "content");
    bool adds_special = false, parses_special = true, has_pieces = false;
    wk_ids made = {.n = 0};
    WK_TRY(wk_request_bool(x, "add_special", &adds_special, err));
    WK_TRY(wk_request_bool(x, "parse_special", &parses_special, err));
    WK_TRY(wk_request_bool(x, "with_pieces", &has_pieces, err));
    if (content && content->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "content must be a text");
    if (content)
        WK_TRY(wk_ids_of_text(x, content->string,
                              (adds_special ? WICK_TOKENIZE_ADD_SPECIAL : 0) |
                                  (parses_special ? WICK_TOKENIZE_PARSE_SPECIAL : 0),
                              &made, err));
    wk_strbuf *const to = &x->part;
    wk_write_raw(to, "{\"tokens\":[");
    for (size_t i = 0; i < made.n; i++) {
        wk_str piece;
        size_t bad;
        piece.text = wick_token_bytes(x->api->model->tokenizer, made.ids[i], true, &piece.size);
        if (has_pieces) wk_write_open(to, '{');
        if (has_pieces) wk_write_key(to, "id");
        wk_write_whole(to, made.ids[i]);
        if (!has_pieces) continue;
        wk_write_key(to, "piece");
        if (wk_str_is_utf8(piece, &bad))
            wk_write_string(to, piece);
        else
            wk_write_bytes(to, piece); /* of a part of a character */
        wk_write_close(to, '}');
    }
    wk_strbuf_text(to, "]}");
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_chat_tokens(wick_exchange *x, wick_error *err) {
    return wk_answer_count(x, NULL, err);
}

wick_status wk_answer_count(wick_exchange *x, const char *object, wick_error *err) {
    x->counts = true;
    WK_TRY(wk_request_chat(x, err));
    WK_TRY(wk_prompt_of_chat(x, err));
    wk_write_open(&x->part, '{');
    if (object) wk_write_put(&x->part, "object", object);
    wk_write_put_whole(&x->part, "input_tokens", x->prompts[0].n);
    wk_write_close(&x->part, '}');
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_detokenize(wick_exchange *x, wick_error *err) {
    const wk_json *const tokens = wk_json_get(x->body, "tokens");
    if (!tokens || tokens->kind != WK_JSON_ARRAY)
        return wk_fail(err, WICK_ERR_VALUE, "tokens must be an array of token ids");
    wk_strbuf text;
    wk_strbuf_init(&text, x->heap);
    wick_status status = WICK_OK;
    for (const wk_json *item = tokens->child; item && status == WICK_OK; item = item->next) {
        const bool is_id = item->kind == WK_JSON_NUMBER && item->is_integer && item->integer >= 0 &&
                           item->integer <= UINT32_MAX;
        size_t size = 0;
        const char *const bytes =
            is_id ? wick_token_bytes(x->api->model->tokenizer, (uint32_t)item->integer, true, &size)
                  : NULL;
        if (!bytes) status = wk_fail(err, WICK_ERR_VALUE, "tokens: one is not in the vocabulary");
        wk_strbuf_append(&text, bytes, size);
    }
    if (text.failed) status = wk_fail_memory(err, text.size, "a text");
    if (status == WICK_OK) {
        wk_write_open(&x->part, '{');
        wk_write_put_string(&x->part, "content", (wk_str){text.data, text.size});
        wk_write_close(&x->part, '}');
        wk_exchange_end(x, 200);
    }
    wk_strbuf_release(&text);
    return status;
}

wick_status wk_answer_template(wick_exchange *x, wick_error *err) {
    WK_TRY(wk_request_chat(x, err));
    WK_TRY(wk_prompt_render(x, err));
    wk_str text;
    text.text = wick_prompt_text(x->rendered, &text.size);
    wk_write_open(&x->part, '{');
    wk_write_put_string(&x->part, "prompt", text);
    wk_write_close(&x->part, '}');
    wk_exchange_end(x, 200);
    return WICK_OK;
}
