/* api/rerank.c: how well documents answer a query (jina.ai/reranker; with `texts` in place of
 * `documents`, the shape of Hugging Face's text-embeddings-inference). See api.h. */
#include "api/api.h"

#include <stdlib.h>

typedef struct ranked {
    size_t index;
    float score;
} ranked;

static int by_score(const void *a, const void *b) {
    const ranked *const x = a, *const y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static void write_result(wick_exchange *x, const ranked *result, bool is_bare) {
    const wk_embedding *const e = x->embedding;
    wk_strbuf *const to = &x->part;
    const wk_str text = {e->texts[result->index], e->sizes[result->index]};
    wk_write_open(to, '{');
    wk_write_put_whole(to, "index", result->index);
    wk_write_key(to, is_bare ? "score" : "relevance_score");
    wk_write_number(to, result->score);
    if (e->has_texts && is_bare) wk_write_put_string(to, "text", text);
    if (e->has_texts && !is_bare) {
        wk_write_key(to, "document");
        wk_write_open(to, '{');
        wk_write_put_string(to, "text", text);
        wk_write_close(to, '}');
    }
    wk_write_close(to, '}');
}

static void write_results(wick_exchange *x, bool is_bare) {
    const wk_embedding *const e = x->embedding;
    ranked *const order = wk_arena_array(&x->arena, e->n, sizeof *order);
    wk_write_open(&x->part, '[');
    x->part.failed |= !order;
    for (size_t i = 0; order && i < e->n; i++) order[i] = (ranked){i, e->rows[i * e->n_row]};
    if (order) qsort(order, e->n, sizeof *order, by_score);
    for (size_t i = 0; order && i < e->n && i < e->n_best; i++) write_result(x, &order[i], is_bare);
    wk_write_close(&x->part, ']');
}

static void write_bare(wick_exchange *x) { write_results(x, true); }

static void write_answer(wick_exchange *x) {
    wk_strbuf *const to = &x->part;
    wk_write_open(to, '{');
    wk_write_put(to, "model", x->api->name);
    wk_write_put(to, "object", "list");
    wk_write_key(to, "results");
    write_results(x, false);
    wk_write_raw(to, "\"usage\":{");
    wk_write_put_whole(to, "prompt_tokens", x->embedding->n_tokens);
    wk_write_put_whole(to, "total_tokens", x->embedding->n_tokens);
    wk_write_close(to, '}');
    wk_write_close(to, '}');
}

/* A document is a text, or an object that has one. */
static wick_status read_documents(wick_exchange *x, const wk_json *given, wick_error *err) {
    enum { MOST = 2048 };
    wk_embedding *const e = x->embedding;
    if (!given || given->kind != WK_JSON_ARRAY || given->count == 0 || given->count > MOST)
        return wk_fail(err, WICK_ERR_VALUE, "documents must be an array of 1 to %d texts", MOST);
    e->n = given->count;
    e->texts = wk_arena_array(&x->arena, e->n, sizeof *e->texts);
    e->sizes = wk_arena_array(&x->arena, e->n, sizeof *e->sizes);
    e->rows = wk_arena_array(&x->arena, e->n * e->n_row, sizeof *e->rows);
    if (!e->texts || !e->sizes || !e->rows) return wk_fail_memory(err, 0, "documents");
    size_t i = 0;
    for (const wk_json *item = given->child; item; item = item->next, i++) {
        const wk_json *const text = item->kind == WK_JSON_OBJECT ? wk_json_get(item, "text") : item;
        if (!text || text->kind != WK_JSON_STRING)
            return wk_fail(err, WICK_ERR_VALUE, "documents: each must be a text");
        e->texts[i] = text->string.text;
        e->sizes[i] = text->string.size;
    }
    return WICK_OK;
}

wick_status wk_answer_rerank(wick_exchange *x, wick_error *err) {
    const wk_json *const query = wk_request_field(x, "query");
    const wk_json *const texts = wk_request_field(x, "texts");
    wick_model_info info;
    wick_model_get_info(x->api->model, &info);
    if (info.n_labels == 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "this model is not a reranker");
    wk_embedding *const e = x->embedding = wk_arena_array(&x->arena, 1, sizeof *e);
    if (!e) return wk_fail_memory(err, sizeof *e, "documents");
    if (!query || query->kind != WK_JSON_STRING || query->string.size == 0)
        return wk_fail(err, WICK_ERR_VALUE, "query must be a text");
    e->query = query->string;
    e->n_row = e->n_dims = info.n_labels;
    e->n_best = UINT32_MAX;
    e->write = texts ? write_bare : write_answer;
    WK_TRY(read_documents(x, texts ? texts : wk_request_field(x, "documents"), err));
    WK_TRY(wk_request_whole(x, "top_n", 1, UINT32_MAX, &e->n_best, err));
    WK_TRY(wk_request_bool(x, texts ? "return_text" : "return_documents", &e->has_texts, err));
    if (x->api->ranker) return WICK_OK;
    const wick_embedder_desc desc = {.chunk_length = x->api->session.chunk_length,
                                     .pooling = WICK_POOLING_RANK};
    return wick_embedder_open(x->api->model, &desc, &x->api->ranker, err);
}
