/* api/embeddings.c: OpenAI's embeddings (platform.openai.com/docs/api-reference/embeddings). One
 * request at a time has the embedder; all of its texts are computed together. See api.h. */
#include "api/api.h"

#include <math.h>
#include <string.h>

/* ---- The request ---- */

static wick_status fail_memory(wick_error *err) { return wk_fail_memory(err, 0, "embeddings"); }

/* As the embedder reads texts that are given to it as such. */
enum { FLAGS = WICK_TOKENIZE_ADD_SPECIAL };

static wick_status read_text(wick_exchange *x, size_t i, const wk_json *given, wick_error *err) {
    wk_embedding *const e = x->embedding;
    wk_ids ids;
    if (given->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE,
                       "input must be a text, token ids, or several of either");
    WK_TRY(wk_ids_of_text(x, given->string, FLAGS, &ids, err));
    if (ids.n == 0) return wk_fail(err, WICK_ERR_VALUE, "input: text %zu is empty", i + 1);
    e->is_cut |= e->most > 0 && ids.n > e->most;
    e->texts[i] = given->string.text;
    e->sizes[i] = given->string.size;
    e->n_tokens += ids.n;
    return WICK_OK;
}

/* ollama's clients expect that what is too long is read up to there; a token that ends texts stays.
 */
static wick_status cut(wick_exchange *x, wk_ids *ids, wick_error *err) {
    const size_t most = x->embedding->most;
    wk_ids marks;
    if (most == 0 || ids->n <= most) return WICK_OK;
    WK_TRY(wk_ids_of_text(x, wk_str_of(""), FLAGS, &marks, err));
    if (marks.n > 1) ids->ids[most - 1] = ids->ids[ids->n - 1];
    ids->n = most;
    return WICK_OK;
}

/* One of several of which some are ids. */
static wick_status read_ids(wick_exchange *x, size_t i, const wk_json *given, wick_error *err) {
    wk_ids *const ids = &x->embedding->ids[i];
    WK_TRY(given->kind == WK_JSON_STRING ? wk_ids_of_text(x, given->string, FLAGS, ids, err)
                                         : wk_ids_of_list(x, given, ids, err));
    if (ids->n == 0) return wk_fail(err, WICK_ERR_VALUE, "input: text %zu is empty", i + 1);
    WK_TRY(cut(x, ids, err));
    x->embedding->n_tokens += ids->n;
    return WICK_OK;
}

/* n items, or the one. */
static wick_status read_items(wick_exchange *x, const wk_json *item, bool are_ids,
                              wick_error *err) {
    wk_embedding *const e = x->embedding;
    e->n_tokens = 0;
    e->ids = are_ids ? wk_arena_array(&x->arena, e->n, sizeof *e->ids) : NULL;
    if (are_ids && !e->ids) return fail_memory(err);
    for (size_t i = 0; i < e->n; i++, item = item->next)
        WK_TRY(are_ids ? read_ids(x, i, item, err) : read_text(x, i, item, err));
    return WICK_OK;
}

static wick_status read_inputs(wick_exchange *x, wick_error *err) {
    enum { MOST = 2048 };
    const wk_json *input = wk_json_get(x->body, "input");
    if (!input) input = wk_json_get(x->body, "content"); /* llama-server's name */
    if (!input) input = wk_json_get(x->body, "prompt");  /* ollama's, once */
    const wk_json *const first = input && input->kind == WK_JSON_ARRAY ? input->child : NULL;
    const bool is_list = first && wk_json_is_list_of_prompts(input);
    const wk_json *item = is_list ? first : input;
    wk_embedding *const e = x->embedding;
    e->n = is_list ? input->count : 1;
    if (!input || (input->kind == WK_JSON_ARRAY && !first) || e->n > MOST)
        return wk_fail(err, WICK_ERR_VALUE, "input must be 1 to %d texts", MOST);
    bool are_ids = e->has_tokens; /* one at a time */
    for (const wk_json *at = item; at; at = is_list ? at->next : NULL)
        are_ids = are_ids || at->kind == WK_JSON_ARRAY;
    e->texts = wk_arena_array(&x->arena, e->n, sizeof *e->texts);
    e->sizes = wk_arena_array(&x->arena, e->n, sizeof *e->sizes);
    if (!e->texts || !e->sizes) return fail_memory(err);
    WK_TRY(read_items(x, item, are_ids, err));
    return e->is_cut && !are_ids ? read_items(x, item, true, err) : WICK_OK;
}

/* ---- The answer ---- */

/* The first n_dims numbers, of length 1 again. */
static void shorten(float *row, uint32_t n_dims) {
    double sum = 0;
    for (uint32_t i = 0; i < n_dims; i++) sum += (double)row[i] * row[i];
    const double scale = sum > 0 ? 1 / sqrt(sum) : 0;
    for (uint32_t i = 0; i < n_dims; i++) row[i] = (float)(row[i] * scale);
}

/* float32, little-endian (RFC 4648). */
static void write_base64(wk_strbuf *to, const float *row, uint32_t n) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t size = n * sizeof *row;
    wk_write_raw(to, "\"");
    for (size_t i = 0; i < size; i += 3) {
        uint32_t word = 0;
        char text[4];
        for (size_t k = 0; k < 3 && i + k < size; k++) {
            uint32_t bits;
            memcpy(&bits, row + (i + k) / sizeof bits, sizeof bits);
            word |= (bits >> (i + k) % sizeof bits * 8 & 255) << (16 - 8 * k);
        }
        for (size_t k = 0; k < 4; k++)
            text[k] = i + k > size ? '=' : letters[word >> (18 - 6 * k) & 63];
        wk_strbuf_append(to, text, sizeof text);
    }
    wk_strbuf_text(to, "\"");
}

static void write_vector(wk_strbuf *to, const wk_embedding *e, const float *row) {
    if (e->is_base64) {
        write_base64(to, row, e->n_dims);
        return;
    }
    wk_write_open(to, '[');
    for (uint32_t i = 0; i < e->n_dims; i++) wk_write_number(to, row[i]);
    wk_write_close(to, ']');
}

/* As ollama has it. */
static void write_bare(wick_exchange *x) {
    const wk_embedding *const e = x->embedding;
    wk_strbuf *const to = &x->part;
    wk_write_open(to, '{');
    if (wk_str_is(x->path, "/api/embeddings")) {
        wk_write_key(to, "embedding");
        write_vector(to, e, e->rows);
        wk_write_close(to, '}');
        return;
    }
    wk_write_put(to, "model", x->api->name);
    wk_write_key(to, "embeddings");
    wk_write_open(to, '[');
    for (size_t i = 0; i < e->n; i++) write_vector(to, e, e->rows + i * e->n_row);
    wk_write_close(to, ']');
    wk_write_put_whole(to, "prompt_eval_count", e->n_tokens);
    wk_write_close(to, '}');
}

/* As llama-server has it: several vectors for each text, or one of them. */
static void write_lists(wick_exchange *x) {
    const wk_embedding *const e = x->embedding;
    wk_strbuf *const to = &x->part;
    const float *row = e->rows;
    wk_write_open(to, '[');
    for (size_t i = 0; i < e->n; i++) {
        const size_t n_rows = e->has_tokens ? e->ids[i].n : 1;
        wk_write_open(to, '{');
        wk_write_put_whole(to, "index", i);
        wk_write_key(to, "embedding");
        wk_write_open(to, '[');
        for (size_t k = 0; k < n_rows; k++, row += e->n_row) write_vector(to, e, row);
        wk_write_close(to, ']');
        wk_write_close(to, '}');
    }
    wk_write_close(to, ']');
}

static void write_answer(wick_exchange *x) {
    const wk_embedding *const e = x->embedding;
    wk_strbuf *const to = &x->part;
    wk_write_raw(to, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < e->n; i++) {
        const float *const row = e->rows + i * e->n_row;
        wk_write_raw(to, "{\"object\":\"embedding\"");
        wk_write_put_whole(to, "index", i);
        wk_write_key(to, "embedding");
        write_vector(to, e, row);
        wk_write_close(to, '}');
    }
    wk_write_close(to, ']');
    wk_write_put(to, "model", x->api->name);
    wk_write_raw(to, "\"usage\":{");
    wk_write_put_whole(to, "prompt_tokens", e->n_tokens);
    wk_write_put_whole(to, "total_tokens", e->n_tokens);
    wk_write_close(to, '}');
    wk_write_close(to, '}');
}

static wick_status read_format(const wick_exchange *x, wick_error *err) {
    const wk_json *const format = wk_request_field(x, "encoding_format");
    x->embedding->is_base64 = wk_json_is(format, "base64");
    if (!format || x->embedding->is_base64 || wk_json_is(format, "float")) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE, "encoding_format must be float or base64");
}

static wick_status open_embedder(wick_api *api, wick_error *err) {
    const wick_embedder_desc desc = {.chunk_length = api->session.chunk_length,
                                     .pooling = api->pooling};
    if (api->embedder) return WICK_OK;
    return wick_embedder_open(api->model, &desc, &api->embedder, err);
}

/* Of a text, as wick_embedder_open has it. */
static uint32_t most_tokens(const wick_api *api) {
    const uint32_t most = api->is_encoder ? 8192 : 4096;
    wick_model_info info;
    wick_model_get_info(api->model, &info);
    const uint32_t context =
        info.short_context_length > 0 ? info.short_context_length : info.context_length;
    return context < most ? context : most;
}

/* In whose shape; only llama-server's has room for vectors of tokens. */
static wick_status choose_shape(wick_exchange *x, wick_error *err) {
    wk_embedding *const e = x->embedding;
    const bool is_own = wk_str_is(x->path, "/embedding") || wk_str_is(x->path, "/embeddings");
    e->has_tokens = wick_embedder_pooling(x->api->embedder) == WICK_POOLING_NONE;
    if (e->has_tokens && !is_own)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the model has no pooling: a vector for each token is not one of a text; "
                       "/embedding has them");
    e->write = write_answer;
    if (e->has_tokens || wk_str_is(x->path, "/embedding")) e->write = write_lists;
    if (x->style != &wk_ollama_style) return WICK_OK;
    bool cuts = true;
    e->write = write_bare;
    WK_TRY(wk_request_bool(x, "truncate", &cuts, err));
    if (cuts) e->most = most_tokens(x->api);
    return WICK_OK;
}

/* Which ollama answers with no vectors. */
static bool says_nothing(const wick_exchange *x) {
    const wk_json *input = wk_request_field(x, "input");
    if (!input) input = wk_request_field(x, "prompt");
    return !input || (input->kind == WK_JSON_ARRAY && !input->child) ||
           (input->kind == WK_JSON_STRING && input->string.size == 0);
}

wick_status wk_answer_embeddings(wick_exchange *x, wick_error *err) {
    enum { MOST_TOKENS = 8192 };
    wick_model_info info;
    wick_model_get_info(x->api->model, &info);
    wk_embedding *const e = x->embedding = wk_arena_array(&x->arena, 1, sizeof *e);
    if (!e) return fail_memory(err);
    e->n_dims = e->n_row = info.n_embd;
    WK_TRY(read_format(x, err));
    WK_TRY(wk_request_whole(x, "dimensions", 1, info.n_embd, &e->n_dims, err));
    WK_TRY(open_embedder(x->api, err));
    WK_TRY(choose_shape(x, err));
    if (x->style == &wk_ollama_style && says_nothing(x)) {
        e->n_dims = 0;
        write_bare(x);
        wk_exchange_end(x, 200);
        return WICK_OK;
    }
    WK_TRY(read_inputs(x, err));
    if (e->has_tokens && e->n_tokens > MOST_TOKENS)
        return wk_fail(err, WICK_ERR_VALUE, "input: at most %d tokens, of which each has a vector",
                       MOST_TOKENS);
    const size_t n_rows = e->has_tokens ? (size_t)e->n_tokens : e->n;
    e->rows = wk_arena_array(&x->arena, n_rows * info.n_embd, sizeof *e->rows);
    return e->rows ? WICK_OK : fail_memory(err);
}

/* ---- Steps ---- */

static wick_status start(const wk_embedding *e, wick_embedder *embedder) {
    const wk_ids *const ids = e->ids ? &e->ids[e->n_done] : NULL;
    if (e->query.text)
        return wick_embedder_start_pairs(embedder, (wick_string){e->query.text, e->query.size},
                                         e->texts, e->sizes, e->n);
    return ids ? wick_embedder_start_tokens(embedder, ids->ids, ids->n)
               : wick_embedder_start_texts(embedder, e->texts, e->sizes, e->n);
}

/* The rows that have come. */
static wick_status take_rows(wk_embedding *e, const wick_embedder *embedder, wick_error *err) {
    size_t n_rows;
    const float *const rows = wick_embedder_result(embedder, &n_rows);
    const size_t n_texts = e->ids ? 1 : e->n;
    if (n_rows != (e->has_tokens ? e->ids[e->n_done].n : n_texts))
        return wk_fail(err, WICK_ERR_DEVICE, "the embedder gave %zu vectors", n_rows);
    memcpy(e->rows + e->n_rows * e->n_row, rows, n_rows * e->n_row * sizeof *rows);
    if (e->query.text) e->n_tokens = wick_embedder_token_count(embedder);
    e->n_rows += n_rows;
    e->n_done += n_texts;
    e->is_started = false;
    return WICK_OK;
}

wick_status wk_embedding_step(wick_exchange *x, wick_error *err) {
    wk_embedding *const e = x->embedding;
    wick_embedder *const embedder = e->query.text ? x->api->ranker : x->api->embedder;
    if (!e->is_started && start(e, embedder) != WICK_OK) return wick_embedder_error(embedder, err);
    e->is_started = true;
    const wick_status status = wick_embedder_poll(embedder);
    if (status == WICK_PENDING) return WICK_PENDING;
    if (status != WICK_OK) return wick_embedder_error(embedder, err);
    WK_TRY(take_rows(e, embedder, err));
    if (e->n_done < e->n) return WICK_PENDING;
    for (size_t i = 0; i < e->n_rows && e->n_dims < e->n_row; i++)
        shorten(e->rows + i * e->n_row, e->n_dims);
    x->api->totals.n_prompt += e->n_tokens;
    e->write(x);
    return WICK_OK;
}
