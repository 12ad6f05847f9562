/* Embeddings: pooling of the states that a session gives, texts and tokens that are refused. The
 * states themselves are compared in golden/test_families.c. */
#include <wick/wick.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "fixture_file.h"
#include "format/gguf_write.h"
#include "model/hparams.h"
#include "random_bits.h"

#include <math.h>
#include <string.h>

enum { N_TOKENS = 9, MAX_EMBD = 64 };

static const uint32_t tokens[N_TOKENS] = {3, 17, 42, 5, 250, 99, 7, 42, 8};

static wick_device *device;

/* Skips where there are no fixtures. */
static wick_model *open_model(const char *name) {
    char file[128], path[1024];
    snprintf(file, sizeof file, "families/%s.gguf", name);
    if (!fixture_path("WICK_SHARED_DATA", file, path, sizeof path)) skip();
    wick_error error = {.status = WICK_OK};
    wick_model *model;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    assert_int_equal(wick_device_open(&desc, &device, &error), WICK_OK);
    if (wick_model_open(device, path, NULL, &model, &error) != WICK_OK)
        fail_msg("%s: %s", name, error.message);
    return model;
}

static void close_model(wick_model *model) {
    wick_model_close(model);
    wick_device_close(device);
}

/* The rows of the tokens, copied to out; returns how many. */
static size_t embed(wick_model *model, const wick_embedder_desc *desc, float *out) {
    wick_embedder *embedder;
    wick_error error = {.status = WICK_OK};
    if (wick_embedder_open(model, desc, &embedder, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(wick_embedder_start_tokens(embedder, tokens, N_TOKENS), WICK_OK);
    while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
    size_t n_rows;
    wick_model_info info;
    wick_model_get_info(model, &info);
    const float *const rows = wick_embedder_result(embedder, &n_rows);
    memcpy(out, rows, n_rows * info.n_embd * sizeof *out);
    wick_embedder_close(embedder);
    return n_rows;
}

static void assert_near(const float *a, const double *b, size_t n) {
    for (size_t i = 0; i < n; i++) assert_true(fabs((double)a[i] - b[i]) < 1e-6);
}

/* Every pooling against what the rows of all tokens give. */
static void test_pooling(void **state) {
    (void)state;
    static float rows[N_TOKENS * MAX_EMBD], pooled[MAX_EMBD];
    wick_model *const model = open_model("modernbert");
    wick_embedder_desc desc = {.pooling = WICK_POOLING_NONE};
    assert_int_equal(embed(model, &desc, rows), N_TOKENS);

    double mean[MAX_EMBD] = {0}, first[MAX_EMBD], last[MAX_EMBD], length = 0.0;
    for (size_t i = 0; i < MAX_EMBD; i++) {
        for (size_t r = 0; r < N_TOKENS; r++)
            mean[i] += (double)rows[r * MAX_EMBD + i] / (double)N_TOKENS;
        first[i] = (double)rows[i];
        last[i] = (double)rows[(N_TOKENS - 1) * MAX_EMBD + i];
        length += mean[i] * mean[i];
    }
    desc = (wick_embedder_desc){.pooling = WICK_POOLING_MEAN, .is_raw = true};
    assert_int_equal(embed(model, &desc, pooled), 1);
    assert_near(pooled, mean, MAX_EMBD);
    desc.pooling = WICK_POOLING_CLS;
    assert_int_equal(embed(model, &desc, pooled), 1);
    assert_near(pooled, first, MAX_EMBD);
    desc.pooling = WICK_POOLING_LAST;
    assert_int_equal(embed(model, &desc, pooled), 1);
    assert_near(pooled, last, MAX_EMBD);

    assert_int_equal(embed(model, NULL, pooled), 1); /* the mean, of length 1 */
    for (size_t i = 0; i < MAX_EMBD; i++) mean[i] /= sqrt(length);
    assert_near(pooled, mean, MAX_EMBD);
    close_model(model);
}

/* Of other models, too, texts are read whole where the longest one is a chunk: the same bits. */
static void test_whole_texts(void **state) {
    (void)state;
    static const char *const names[] = {"qwen3-embedding", "gemma2", "lfm2"};
    static float in_chunks[N_TOKENS * MAX_EMBD], whole[N_TOKENS * MAX_EMBD];
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        wick_model *const model = open_model(names[m]);
        wick_model_info info;
        wick_device_stats before, with_cache, without;
        wick_embedder *embedder;
        wick_model_get_info(model, &info);
        assert_true(info.n_embd <= MAX_EMBD);
        wick_embedder_desc desc = {
            .max_tokens = 64, .chunk_length = 4, .pooling = WICK_POOLING_NONE};
        assert_int_equal(embed(model, &desc, in_chunks), N_TOKENS);
        wick_model_trim(model);
        wick_device_get_stats(device, &before);
        assert_int_equal(wick_embedder_open(model, &desc, &embedder, NULL), WICK_OK);
        wick_device_get_stats(device, &with_cache);
        wick_embedder_close(embedder);
        wick_model_trim(model);
        desc.chunk_length = 64;
        assert_int_equal(embed(model, &desc, whole), N_TOKENS);
        assert_memory_equal(whole, in_chunks, N_TOKENS * info.n_embd * sizeof *whole);
        assert_int_equal(wick_embedder_open(model, &desc, &embedder, NULL), WICK_OK);
        wick_device_get_stats(device, &without);
        wick_embedder_close(embedder);
        assert_true(with_cache.buffer_bytes > before.buffer_bytes);
        assert_true(without.buffer_bytes == before.buffer_bytes);
        close_model(model);
    }
}

/* Texts of random lengths, more than are computed at once: each has the bits that it has alone. */
static void check_many(const char *name) {
    enum { N_TEXTS = 75, MOST_SIZE = 40 };
    static char texts[N_TEXTS][MOST_SIZE];
    const char *items[N_TEXTS];
    size_t sizes[N_TEXTS], n_rows;
    wick_model *const model = open_model(name);
    wick_embedder *embedder, *alone;
    wick_model_info info;
    wick_device_stats before, after;
    wick_model_get_info(model, &info);
    for (size_t i = 0; i < N_TEXTS; i++) {
        sizes[i] = 1 + random_bits() % (i % 3 == 0 ? MOST_SIZE : 12);
        for (size_t k = 0; k < sizes[i]; k++) texts[i][k] = (char)('a' + random_bits() % 26);
        items[i] = texts[i];
    }
    const wick_embedder_desc desc = {.max_tokens = 64};
    assert_int_equal(wick_embedder_open(model, &desc, &embedder, NULL), WICK_OK);
    assert_int_equal(wick_embedder_open(model, &desc, &alone, NULL), WICK_OK);
    wick_device_get_stats(device, &before);
    assert_int_equal(wick_embedder_start_texts(embedder, items, sizes, N_TEXTS), WICK_OK);
    while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
    wick_device_get_stats(device, &after);
    assert_true(after.n_reads - before.n_reads < N_TEXTS / 2); /* one for each batch */
    const float *const rows = wick_embedder_result(embedder, &n_rows);
    assert_int_equal(n_rows, N_TEXTS);
    for (size_t i = 0; i < N_TEXTS; i++) {
        assert_int_equal(wick_embedder_start(alone, items[i], sizes[i]), WICK_OK);
        while (wick_embedder_poll(alone) == WICK_PENDING) wick_pause(device);
        const float *const want = wick_embedder_result(alone, &n_rows);
        assert_int_equal(n_rows, 1);
        assert_memory_equal(rows + i * info.n_embd, want, info.n_embd * sizeof *want);
    }
    wick_embedder_close(alone);
    wick_embedder_close(embedder);
    close_model(model);
}

static void test_many(void **state) {
    (void)state;
    static const char *const names[] = {"bert", "nomic-bert",     "modernbert", "qwen3-embedding",
                                        "lfm2", "embedding-gemma"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_many(names[i]);
}

/* --- Rerankers --- */

enum { N_LABELS = 2, N_HEAD = MAX_EMBD * MAX_EMBD + MAX_EMBD + N_LABELS * (MAX_EMBD + 1) };
static const char reranker_path[] = "test_embed_reranker.gguf";

/* The model with a classifier of these numbers: w [MAX_EMBD, MAX_EMBD], b, v [N_LABELS, MAX_EMBD],
 * c; form: its template for pairs, or NULL. */
static void write_reranker(const char *name, const char *form, const float *numbers) {
    static const char form_key[] = "tokenizer.chat_template.rerank";
    static const struct {
        const char *name;
        wick_shape shape;
    } parts[] = {
        {"cls.weight", {.rank = 2, .extent = {MAX_EMBD, MAX_EMBD}}},
        {"cls.bias", {.rank = 1, .extent = {MAX_EMBD}}},
        {"cls.output.weight", {.rank = 2, .extent = {N_LABELS, MAX_EMBD}}},
        {"cls.output.bias", {.rank = 1, .extent = {N_LABELS}}},
    };
    static wick_value values[128];
    static wick_file_tensor tensors[256];
    static const char zeros[64];
    char key[64];
    snprintf(key, sizeof key, "families/%s.gguf", name);
    fixture_file file;
    assert_true(fixture_read("WICK_SHARED_DATA", key, &file));
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    wk_gguf_parser *parser, *written;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wk_gguf_parser_make(&heap.heap, file.size, &parser, &error), WICK_OK);
    assert_int_equal(wk_gguf_parser_feed(parser, file.data, file.size, NULL, &error), WICK_OK);
    const wk_gguf *const from = wk_gguf_parser_result(parser);
    wk_gguf_contents to = {.values = values, .tensors = tensors, .n_tensors = from->n_tensors};
    snprintf(key, sizeof key, "%s.pooling_type", name);
    for (size_t i = 0; i < from->n_values; i++)
        if (strcmp(from->values[i].key.text, key) != 0) values[to.n_values++] = from->values[i];
    values[to.n_values++] =
        (wick_value){.key = {key, strlen(key)}, .type = WICK_VALUE_U32, .u = WK_POOLING_RANK};
    if (form)
        values[to.n_values++] = (wick_value){.key = {form_key, strlen(form_key)},
                                             .type = WICK_VALUE_STRING,
                                             .string = {form, strlen(form)}};
    memcpy(tensors, from->tensors, from->n_tensors * sizeof *tensors);
    for (size_t i = 0; i < 4; i++)
        tensors[to.n_tensors++] = (wick_file_tensor){.name = {parts[i].name, strlen(parts[i].name)},
                                                     .dtype = WICK_F32,
                                                     .shape = parts[i].shape};
    wk_strbuf header;
    wk_strbuf_init(&header, &heap.heap);
    assert_int_equal(wk_gguf_write_header(&header, &to, &written, &error), WICK_OK);
    const wk_gguf *const result = wk_gguf_parser_result(written);
    FILE *const out = fopen(reranker_path, "wb");
    assert_non_null(out);
    fwrite(header.data, 1, header.size, out);
    for (size_t i = 0; i < to.n_tensors; i++) {
        const wick_file_tensor *const tensor = &result->tensors[i];
        const bool is_old = i < from->n_tensors;
        const void *const data =
            is_old ? (const void *)(file.data + from->tensors[i].offset) : numbers;
        fwrite(zeros, 1, (size_t)(tensor->offset - (uint64_t)ftell(out)), out);
        fwrite(data, 1, (size_t)tensor->size, out);
        if (!is_old) numbers += tensor->size / sizeof *numbers;
    }
    assert_int_equal(fclose(out), 0);
    wk_strbuf_release(&header);
    wk_gguf_parser_free(written);
    wk_gguf_parser_free(parser);
    free(file.data);
}

/* In float64, of the state of the first token. */
static void score(const float *state, const float *numbers, double *scores) {
    const float *const b = numbers + MAX_EMBD * MAX_EMBD, *const v = b + MAX_EMBD;
    const float *const c = v + N_LABELS * MAX_EMBD;
    double hidden[MAX_EMBD];
    for (size_t i = 0; i < MAX_EMBD; i++) {
        double sum = (double)b[i];
        for (size_t k = 0; k < MAX_EMBD; k++)
            sum += (double)numbers[i * MAX_EMBD + k] * (double)state[k];
        hidden[i] = tanh(sum);
    }
    for (size_t i = 0; i < N_LABELS; i++) {
        scores[i] = (double)c[i];
        for (size_t k = 0; k < MAX_EMBD; k++) scores[i] += (double)v[i * MAX_EMBD + k] * hidden[k];
    }
}

/* Pairs of a query and texts: the scores that the classifier gives for their tokens. */
static void test_reranker(void **state) {
    (void)state;
    static float numbers[N_HEAD], rows[N_TOKENS * MAX_EMBD];
    static const char *const texts[] = {"water", "a long river of fire", "x"};
    static const size_t sizes[] = {5, 20, 1};
    for (size_t i = 0; i < N_HEAD; i++)
        numbers[i] = (float)((double)(random_bits() >> 40) / (double)(1 << 24) - 0.5) * 0.5F;
    write_reranker("bert", NULL, numbers);
    wick_model *model = open_model("bert");
    wick_embedder *embedder;
    const wick_embedder_desc no_pooling = {.pooling = WICK_POOLING_NONE};
    const wick_embedder_desc rank = {.pooling = WICK_POOLING_RANK};
    assert_int_equal(embed(model, &no_pooling, rows), N_TOKENS);
    assert_int_equal(wick_embedder_open(model, &rank, &embedder, NULL), WICK_ERR_UNSUPPORTED);
    close_model(model);

    wick_model_info info;
    wick_error error = {.status = WICK_OK};
    const wick_device_desc on = {.backend = WICK_BACKEND_CPU};
    assert_int_equal(wick_device_open(&on, &device, &error), WICK_OK);
    if (wick_model_open(device, reranker_path, NULL, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    wick_model_get_info(model, &info);
    assert_int_equal(info.n_embd, MAX_EMBD);
    assert_int_equal(info.n_labels, N_LABELS);
    assert_int_equal(wick_embedder_open(model, NULL, &embedder, NULL), WICK_ERR_UNSUPPORTED);
    assert_int_equal(wick_embedder_open(model, &rank, &embedder, &error), WICK_OK);
    double want[N_LABELS];
    size_t n_rows;
    score(rows, numbers, want);
    assert_int_equal(wick_embedder_start_tokens(embedder, tokens, N_TOKENS), WICK_OK);
    while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
    assert_near(wick_embedder_result(embedder, &n_rows), want, N_LABELS);
    assert_int_equal(n_rows, 1);

    assert_int_equal(wick_embedder_start_pairs(embedder, (wick_string){"fire", 4}, texts, sizes, 3),
                     WICK_OK);
    while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
    float pairs[3 * N_LABELS];
    memcpy(pairs, wick_embedder_result(embedder, &n_rows), sizeof pairs);
    assert_int_equal(n_rows, 3);
    for (size_t i = 0; i < 3; i++) {
        uint32_t ids[64];
        size_t n, n_text;
        const wick_tokenizer *const tokenizer = wick_model_tokenizer(model);
        assert_int_equal(
            wick_tokenize(tokenizer, "fire", 4, WICK_TOKENIZE_ADD_SPECIAL, ids, 64, &n), WICK_OK);
        assert_int_equal(wick_tokenize(tokenizer, texts[i], sizes[i], WICK_TOKENIZE_ADD_SPECIAL,
                                       ids + n, 64 - n, &n_text),
                         WICK_OK);
        if (ids[n] == wick_token_begin(tokenizer))
            memmove(ids + n, ids + n + 1, --n_text * sizeof *ids);
        assert_int_equal(wick_embedder_start_tokens(embedder, ids, n + n_text), WICK_OK);
        while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
        assert_memory_equal(wick_embedder_result(embedder, NULL), pairs + i * N_LABELS,
                            N_LABELS * sizeof *pairs);
    }
    wick_embedder_close(embedder);
    close_model(model);
    remove(reranker_path);
}

/* A pair in a template is the text that this gives, with what stands after the last name. */
static void test_template_of_pairs(void **state) {
    (void)state;
    static const char *const forms[] = {"a {query} of {document} x", "{document}{query}",
                                        "{query} of {que"};
    static const char *const filled[] = {"a fire of water x", "waterfire", "fire of {que"};
    static const char *const text = "water";
    static const float numbers[N_HEAD] = {0.5F, [MAX_EMBD * MAX_EMBD + MAX_EMBD] = 1};
    const wick_embedder_desc rank = {.pooling = WICK_POOLING_RANK};
    const size_t size = 5;
    for (size_t i = 0; i < 3; i++) {
        wick_model *model;
        wick_embedder *embedder;
        float score_of_pair[N_LABELS];
        uint32_t ids[64];
        size_t n;
        write_reranker("bert", forms[i], numbers);
        assert_int_equal(
            wick_device_open(&(wick_device_desc){.backend = WICK_BACKEND_CPU}, &device, NULL),
            WICK_OK);
        assert_int_equal(wick_model_open(device, reranker_path, NULL, &model, NULL), WICK_OK);
        assert_int_equal(wick_embedder_open(model, &rank, &embedder, NULL), WICK_OK);
        assert_int_equal(
            wick_embedder_start_pairs(embedder, (wick_string){"fire", 4}, &text, &size, 1),
            WICK_OK);
        while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
        memcpy(score_of_pair, wick_embedder_result(embedder, NULL), sizeof score_of_pair);
        assert_int_equal(wick_tokenize(wick_model_tokenizer(model), filled[i], strlen(filled[i]),
                                       WICK_TOKENIZE_PARSE_SPECIAL, ids, 64, &n),
                         WICK_OK);
        assert_int_equal(wick_embedder_start_tokens(embedder, ids, n), WICK_OK);
        while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
        assert_memory_equal(wick_embedder_result(embedder, NULL), score_of_pair,
                            sizeof score_of_pair);
        wick_embedder_close(embedder);
        close_model(model);
        remove(reranker_path);
    }
}

/* The file says so. */
static void test_default_pooling(void **state) {
    (void)state;
    wick_model *const model = open_model("qwen3-embedding");
    wick_embedder *embedder;
    assert_int_equal(wick_embedder_open(model, NULL, &embedder, NULL), WICK_OK);
    assert_int_equal(wick_embedder_pooling(embedder), WICK_POOLING_LAST);
    wick_embedder_close(embedder);
    close_model(model);
}

static void expect(const wick_embedder *embedder, wick_status status, wick_status wanted,
                   const char *text) {
    wick_error error = {.status = WICK_OK};
    assert_int_equal(status, wanted);
    assert_int_equal(wick_embedder_error(embedder, &error), wanted);
    if (strstr(error.message, text) == NULL) fail_msg("'%s' lacks '%s'", error.message, text);
}

static void test_refusals(void **state) {
    (void)state;
    wick_model *const model = open_model("modernbert");
    wick_embedder *embedder;
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    const wick_embedder_desc wrong = {.pooling = (wick_pooling)9};
    assert_int_equal(wick_embedder_open(model, &wrong, &embedder, &error), WICK_ERR_VALUE);
    assert_null(embedder);
    assert_int_equal(wick_embedder_open(NULL, NULL, &embedder, &error), WICK_ERR_ARGUMENT);
    error = (wick_error){.status = WICK_OK}; /* the first one is kept */
    assert_int_equal(wick_session_open(model, NULL, &session, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "an encoder"));

    const wick_embedder_desc desc = {.max_tokens = N_TOKENS - 1};
    assert_int_equal(wick_embedder_open(model, &desc, &embedder, &error), WICK_OK);
    expect(embedder, wick_embedder_poll(embedder), WICK_ERR_STATE, "no text");
    expect(embedder, wick_embedder_start_tokens(embedder, tokens, 0), WICK_ERR_ARGUMENT,
           "no tokens");
    expect(embedder, wick_embedder_start_tokens(embedder, tokens, N_TOKENS), WICK_ERR_STATE,
           "9 tokens");
    expect(embedder, wick_embedder_start_tokens(embedder, (const uint32_t[]){1U << 20}, 1),
           WICK_ERR_INDEX, "vocabulary");
    expect(embedder, wick_embedder_poll(embedder), WICK_ERR_STATE, "no text");
    const char *const texts[] = {"a", NULL};
    expect(embedder, wick_embedder_start_texts(embedder, texts, (const size_t[]){1, 1}, 0),
           WICK_ERR_ARGUMENT, "there are no texts to embed");
    expect(embedder, wick_embedder_start_texts(embedder, NULL, (const size_t[]){1}, 1),
           WICK_ERR_ARGUMENT, "there are no texts to embed");
    expect(embedder, wick_embedder_start_texts(embedder, texts, NULL, 1), WICK_ERR_ARGUMENT,
           "there are no texts to embed");
    expect(embedder, wick_embedder_start_texts(embedder, texts, (const size_t[]){1, 1}, 2),
           WICK_ERR_ARGUMENT, "text 1 to embed is NULL");
    expect(embedder, wick_embedder_start(embedder, NULL, 1), WICK_ERR_ARGUMENT,
           "wick_embedder_start: text is NULL");
    expect(embedder, wick_embedder_start_tokens(embedder, NULL, 1), WICK_ERR_ARGUMENT,
           "wick_embedder_start_tokens: ids is NULL");
    expect(
        embedder,
        wick_embedder_start_pairs(embedder, (wick_string){"a", 1}, texts, (const size_t[]){1}, 1),
        WICK_ERR_STATE, "pairs are scored with WICK_POOLING_RANK");
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(wick_embedder_error(NULL, &error), WICK_ERR_ARGUMENT);
    assert_string_equal(error.message, "wick_embedder_error: embedder is NULL");
    /* It goes on with what it can read. */
    assert_int_equal(wick_embedder_start_tokens(embedder, tokens, 2), WICK_OK);
    while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
    size_t n_rows;
    (void)wick_embedder_result(embedder, &n_rows);
    assert_int_equal(n_rows, 1);
    wick_embedder_close(embedder);
    close_model(model);
}

static void test_rows_of_tokens(void **state) {
    (void)state;
    wick_model *const model = open_model("modernbert");
    const wick_embedder_desc desc = {.pooling = WICK_POOLING_NONE};
    const char *const texts[] = {"a", "b"};
    const size_t sizes[] = {1, 1};
    wick_embedder *embedder;
    assert_int_equal(wick_embedder_open(model, &desc, &embedder, NULL), WICK_OK);
    expect(embedder, wick_embedder_start_texts(embedder, texts, sizes, 2), WICK_ERR_UNSUPPORTED,
           "without pooling one text at a time is embedded");
    expect(embedder, wick_embedder_poll(embedder), WICK_ERR_STATE, "no text");
    assert_int_equal(wick_embedder_start_texts(embedder, texts, sizes, 1), WICK_OK);
    while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
    size_t n_rows;
    assert_non_null(wick_embedder_result(embedder, &n_rows));
    assert_int_equal(n_rows, wick_embedder_token_count(embedder));
    wick_embedder_close(embedder);
    close_model(model);
}

/* What sees the whole text does not read it in parts. */
static void test_encoder_session(void **state) {
    (void)state;
    wick_model *const model = open_model("modernbert");
    wick_session *session;
    const wick_session_desc desc = {.logits = WICK_LOGITS_STATES};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, tokens, 4), WICK_OK);
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_session_append_tokens(session, tokens, 1), WICK_ERR_STATE);
    assert_int_equal(wick_session_error(session, &error), WICK_ERR_STATE);
    assert_non_null(strstr(error.message, "at once"));
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    assert_int_equal(stats.cache_bytes, 0); /* nothing to go on from */
    wick_session_close(session);
    close_model(model);
}

/* The state of every token of the session's text, and then its end. */
static void read_states(wick_session *session, size_t n, float *out) {
    wick_event event;
    size_t n_seen = 0;
    do {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind != WICK_EVENT_LOGITS) continue;
        assert_int_equal(event.position, n_seen);
        memcpy(out + n_seen++ * MAX_EMBD, event.logits, MAX_EMBD * sizeof *out);
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(n_seen, n);
}

/* Texts are padded by different numbers of rows: what a text gives depends on none of them, nor on
 * the texts before it. */
static void test_any_length(void **state) {
    enum { N = 130 };
    (void)state;
    static const char *const names[] = {"modernbert", "embedding-gemma", "bert"};
    static const uint32_t lengths[] = {130, 1, 33, 60, 64, 65, 97, 128};
    static float got[N * MAX_EMBD], again[N * MAX_EMBD];
    for (size_t m = 0; m < sizeof names / sizeof *names; m++) {
        wick_model *const model = open_model(names[m]);
        uint32_t ids[N];
        for (uint32_t i = 0; i < N; i++) ids[i] = tokens[i * i % 7] + i % 5;
        wick_model_info info;
        wick_model_get_info(model, &info);
        assert_int_equal(info.n_embd, MAX_EMBD);
        wick_session *all;
        const wick_session_desc desc = {.logits = WICK_LOGITS_STATES};
        assert_int_equal(wick_session_open(model, &desc, &all, NULL), WICK_OK);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            if (lengths[i] > info.context_length) continue;
            wick_session *one;
            const wick_session_desc exactly = {.context_length = lengths[i],
                                               .logits = WICK_LOGITS_STATES};
            assert_int_equal(wick_session_open(model, &exactly, &one, NULL), WICK_OK);
            assert_int_equal(wick_session_append_tokens(one, ids, lengths[i]), WICK_OK);
            read_states(one, lengths[i], again);
            wick_session_close(one);
            wick_session_reset(all);
            assert_int_equal(wick_session_append_tokens(all, ids, lengths[i]), WICK_OK);
            read_states(all, lengths[i], got);
            assert_memory_equal(got, again, lengths[i] * MAX_EMBD * sizeof *got);
        }
        wick_session_close(all);
        close_model(model);
    }
}

typedef struct image {
    unsigned char data[4096];
    size_t size;
} image;

static wick_status keep(void *user, const void *bytes, size_t size, wick_error *error) {
    image *const to = user;
    (void)error;
    assert_true(to->size + size <= sizeof to->data);
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
    return WICK_OK;
}

/* Wherever memory ends while a text is embedded: a sentence, nothing leaks, and the next text is
 * embedded. */
static void test_no_memory(void **state) {
    (void)state;
    checked_heap heap;
    checked_heap_init(&heap, UINT64_MAX);
    char path[1024];
    if (!fixture_path("WICK_SHARED_DATA", "families/modernbert.gguf", path, sizeof path)) skip();
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_CPU, .n_threads = 1, .allocator = heap.heap.hook};
    wick_model *model;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    assert_int_equal(wick_model_open(device, path, NULL, &model, NULL), WICK_OK);
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    uint64_t n_failed = 0;
    for (uint64_t n = 0; status != WICK_OK; n++) {
        wick_embedder *embedder;
        wick_model_trim(model); /* each begins with nothing */
        assert_int_equal(wick_device_trim(device, NULL, NULL), WICK_OK);
        assert_int_equal(wick_embedder_open(model, NULL, &embedder, NULL), WICK_OK);
        assert_int_equal(wick_embedder_start_tokens(embedder, tokens, N_TOKENS), WICK_OK);
        heap.n_allowed = n;
        while ((status = wick_embedder_poll(embedder)) == WICK_PENDING) wick_pause(device);
        heap.n_allowed = UINT64_MAX;
        n_failed += status != WICK_OK;
        if (status != WICK_OK) expect(embedder, status, WICK_ERR_OUT_OF_MEMORY, " ");
        assert_int_equal(wick_embedder_start_tokens(embedder, tokens, N_TOKENS), WICK_OK);
        while (wick_embedder_poll(embedder) == WICK_PENDING) wick_pause(device);
        size_t n_rows;
        (void)wick_embedder_result(embedder, &n_rows);
        assert_int_equal(n_rows, 1);
        wick_embedder_close(embedder);
    }
    assert_true(n_failed > 100);
    close_model(model);
    assert_true(checked_heap_is_clean(&heap));
}

/* It is its tokens. */
static void test_saved_encoder(void **state) {
    (void)state;
    wick_model *const model = open_model("modernbert");
    static float states[N_TOKENS * MAX_EMBD];
    wick_session *session, *other;
    wick_session_saving *saving;
    wick_session_loading *loading;
    image saved = {.size = 0};
    const wick_session_desc desc = {.logits = WICK_LOGITS_STATES};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, tokens, N_TOKENS), WICK_OK);
    read_states(session, N_TOKENS, states);
    assert_int_equal(wick_session_save_start(session, keep, &saved, &saving, NULL), WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) wick_pause(device);
    assert_int_equal(wick_session_save_finish(saving, NULL), WICK_OK);

    assert_int_equal(wick_session_open(model, &desc, &other, NULL), WICK_OK);
    const wick_source source = wick_source_memory(saved.data, saved.size);
    assert_int_equal(wick_session_load_start(other, source, &loading, NULL), WICK_OK);
    while (wick_session_load_poll(loading) == WICK_PENDING) wick_pause(device);
    assert_int_equal(wick_session_load_finish(loading, NULL), WICK_OK);
    size_t n;
    assert_memory_equal(wick_session_tokens(other, &n), tokens, sizeof tokens);
    assert_int_equal(n, N_TOKENS);
    wick_event event;
    assert_int_equal(wick_session_next(other, &event), WICK_OK);
    assert_int_equal(event.kind, WICK_EVENT_END);
    wick_session_close(other);
    wick_session_close(session);
    close_model(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pooling),           cmocka_unit_test(test_many),
        cmocka_unit_test(test_template_of_pairs), cmocka_unit_test(test_reranker),
        cmocka_unit_test(test_default_pooling),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_encoder_session),   cmocka_unit_test(test_any_length),
        cmocka_unit_test(test_whole_texts),       cmocka_unit_test(test_saved_encoder),
        cmocka_unit_test(test_no_memory),         cmocka_unit_test(test_rows_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
