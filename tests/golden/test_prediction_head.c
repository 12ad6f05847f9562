/* A model's own prediction head guesses what it should: what a model of its layer alone says to the
 * rows that it reads, computed here; and no text changes. Fixtures with a head that is added to
 * them. */
#define _POSIX_C_SOURCE 200809L
#include "golden/going_back.h"
#include "golden/head_file.h"

#include "core/compiler.h"
#include "llm/session_struct.h"

#include <math.h>
#include <unistd.h>

enum { MOST = 72, MOST_EMBD = 64 };

static char folder[64], with_head[96], alone[96];

static int set_up(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/wick_head_%ld", (long)getpid());
    snprintf(with_head, sizeof with_head, "%s_with.gguf", folder);
    snprintf(alone, sizeof alone, "%s_alone.gguf", folder);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    (void)unlink(with_head);
    (void)unlink(alone);
    return 0;
}

static wick_model *open_with(const char *path, bool has_head, wick_device **device) {
    wick_model *model = NULL;
    wick_error error = {0};
    const wick_device_desc of_device = device_desc();
    const wick_model_desc desc = {.prediction_head = has_head};
    if (borrow_device(&of_device, device, &error) != WICK_OK ||
        wick_model_open(*device, path, &desc, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return model;
}

/* --- What it guesses --- */

/* What the model makes of each of n tokens or rows [n_embd]: its logits or states, in rows of width
 * floats. */
static void run_whole(wick_model *model, wick_logits_mode mode, const uint32_t *ids,
                      const float *rows, uint32_t n, size_t width, float *out) {
    wick_session *session;
    wick_event event = {.kind = WICK_EVENT_PENDING};
    const wick_session_desc desc = {.logits = mode, .cache = WICK_CACHE_F32};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(ids ? wick_session_append_tokens(session, ids, n)
                         : wick_session_append_embeddings(session, rows, n),
                     WICK_OK);
    while (event.kind != WICK_EVENT_END) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_LOGITS)
            memcpy(out + event.position * width, event.logits, width * sizeof *out);
    }
    wick_session_close(session);
}

static void norm(const float *x, const float *weight, uint32_t n, double *out) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    const double scale = 1 / sqrt(sum / n + 0.01); /* the fixture's epsilon */
    for (uint32_t i = 0; i < n; i++) out[i] = (double)x[i] * scale * (double)weight[i];
}

/* What the head's layer reads of a token's embedding and the state before it. */
static void make_row(const head_numbers *h, const float *embedding, const float *state,
                     float *out) {
    double x[2 * MOST_EMBD];
    norm(embedding, h->embedding_norm, h->n_embd, x);
    norm(state, h->state_norm, h->n_embd, x + h->n_embd);
    for (uint32_t i = 0; i < h->n_embd; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < 2 * h->n_embd; k++)
            sum += (double)h->projection[i * 2 * h->n_embd + k] * x[k];
        out[i] = (float)sum;
    }
}

static void read_table(const char *path, uint32_t n_vocab, uint32_t n_embd, float *out) {
    wick_file *file;
    assert_int_equal(wick_file_open(path, &file, NULL), WICK_OK);
    const wick_file_tensor *const table = find_file_tensor(file, "token_embd.weight");
    const size_t size = (size_t)n_vocab * n_embd * sizeof *out;
    assert_int_equal(table->dtype, WICK_F32);
    assert_int_equal(wick_file_read(file, table->offset, out, size, NULL), WICK_OK);
    wick_file_close(file);
}

static uint32_t best_of(const float *logits, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Steps it until it has guessed what follows the tokens that it has. */
static void step_to_guesses(wick_session *s) {
    /* Batches of more rows are said to cost nothing more. */
    for (uint32_t i = 0; i < WK_COST_CLASSES; i++) wk_sequence_costs(s->sequence, false)[i] = 1000;
    const uint32_t n_before = s->n_tokens;
    wick_event event;
    do {
        if (wick_session_step(s, &event) < 0) fail_with_error(s);
        assert_int_not_equal(event.kind, WICK_EVENT_END);
    } while (s->n_tokens == n_before || s->has_logits || s->n_ahead == 0 ||
             wk_session_is_guessing(s));
}

/* Of text [n], the last token of which was just chosen. */
static void check_guesses(const wick_session *session, wick_model *model, wick_model *head,
                          const head_numbers *h, const float *table, const uint32_t *text,
                          uint32_t n) {
    static float states[MOST * MOST_EMBD], rows[MOST * MOST_EMBD], head_states[MOST * MOST_EMBD],
        logits[MOST * 512];
    wick_model_info info;
    wick_model_get_info(model, &info);
    const size_t n_embd = h->n_embd;
    const uint32_t *const guesses = session->tokens + session->n_tokens;
    run_whole(model, WICK_LOGITS_STATES, text, NULL, n, n_embd, states);
    for (uint32_t i = 0; i + 1 < n; i++)
        make_row(h, table + text[i + 1] * n_embd, states + i * n_embd, rows + i * n_embd);
    for (uint32_t g = 0; g < session->n_ahead; g++) {
        const uint32_t n_rows = n - 1 + g;
        const size_t last = n_rows - 1;
        assert_true(n_rows < MOST);
        run_whole(head, WICK_LOGITS_ALL, NULL, rows, n_rows, info.n_vocab, logits);
        run_whole(head, WICK_LOGITS_STATES, NULL, rows, n_rows, n_embd, head_states);
        assert_int_equal(guesses[g], best_of(logits + last * info.n_vocab, info.n_vocab));
        make_row(h, table + guesses[g] * n_embd, head_states + last * n_embd,
                 rows + n_rows * n_embd);
    }
}

/* After the prompt, and after batches of which some guesses were right: the test puts in the tokens
 * that follow. */
static void check_text(wick_model *model, wick_model *head, const head_numbers *h,
                       const float *table, uint32_t *text, uint32_t n, uint32_t chunk) {
    enum { N_NEW = 10, ROUNDS = 4 };
    wick_session_desc desc = {.no_reuse = true, /* the head reads all of the prompt */
                              .chunk_length = chunk,
                              .cache = WICK_CACHE_F32,
                              .ignore_end = true,
                              .max_tokens = N_NEW,
                              .speculate = WICK_SPECULATE_NONE};
    wick_session *session;
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, text, n), WICK_OK);
    generate(session, text + n, N_NEW);
    wick_session_close(session);

    desc.speculate = WICK_SPECULATE_HEADS;
    desc.max_tokens = 0;
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, text, n), WICK_OK);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        step_to_guesses(session);
        assert_true(session->n_ahead > (round == 0 ? 2 : 0));
        const uint32_t n_tokens = session->n_tokens;
        assert_true(n_tokens < n + N_NEW);
        assert_memory_equal(session->tokens, text, n_tokens * sizeof *text);
        check_guesses(session, model, head, h, table, text, n_tokens);
        const uint32_t n_right =
            wk_smaller(wk_smaller(round, session->n_ahead), n + N_NEW - n_tokens);
        memcpy(session->tokens + n_tokens, text + n_tokens, n_right * sizeof *text);
    }
    wick_session_close(session);
}

/* The prompt in chunks of several sizes: the head reads the states of all of them. */
static void check_form(const char *path, head_form form) {
    static const uint32_t chunks[] = {512, 7, 1};
    static float table[512 * MOST_EMBD];
    head_numbers h = draw_head(width_of(path));
    assert_true(h.n_embd <= MOST_EMBD);
    write_model_with_head(path, with_head, &h, form);
    write_head_alone(path, alone, &h);
    wick_device *device, *other;
    wick_model *const model = open_with(with_head, true, &device);
    wick_model *const head = open_with(alone, false, &other);
    wick_model_info info;
    wick_model_get_info(model, &info);
    read_table(path, info.n_vocab, h.n_embd, table);
    for (uint32_t p = 0; p < 6; p++) {
        uint32_t text[MOST];
        const uint32_t n = 2 + (uint32_t)(random_bits() % 20);
        for (uint32_t i = 0; i < n; i++) text[i] = (uint32_t)(random_bits() % info.n_vocab);
        check_text(model, head, &h, table, text, n, chunks[p % WK_COUNT(chunks)]);
    }
    wick_model_close(head);
    wick_model_close(model);
    give_back_device(other);
    give_back_device(device);
    free_head_numbers(&h);
}

static void test_guesses(void **state) {
    (void)state;
    char path[1024];
    make_path("llama", path, sizeof path);
    const int last = chosen.backend == WICK_BACKEND_WEBGPU ? HEAD_PLAIN : HEAD_WITH_TABLES;
    for (int form = HEAD_PLAIN; form <= last; form++) check_form(path, (head_form)form);
}

/* --- Texts --- */

/* The tokens that follow ids. */
static uint32_t tell(wick_model *model, wick_speculate mode, uint32_t p, const uint32_t *ids,
                     uint32_t n, uint32_t *out, wick_session_stats *stats) {
    wick_session *session;
    wick_event event = {.kind = WICK_EVENT_PENDING};
    const wick_session_desc desc = {.speculate = mode,
                                    .context_length = 128,
                                    .max_tokens = 60,
                                    .chunk_length = p % 2 ? 16 : 0,
                                    .no_reuse = p % 3 == 0,
                                    .sampler = {.temperature = p % 4 == 3 ? 0.8F : 0, .seed = p}};
    uint32_t n_out = 0;
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    for (uint32_t turn = 0; turn < 2; turn++) {
        if (wick_session_append_tokens(session, ids, turn == 0 ? n : 3) != WICK_OK) break;
        if (mode == WICK_SPECULATE_HEADS && p % 2) /* else they are measured */
            for (uint32_t i = 0; i < WK_COST_CLASSES; i++)
                wk_sequence_costs(session->sequence, false)[i] = 1000;
        do {
            if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
            if (event.kind == WICK_EVENT_TOKEN) out[n_out++] = event.token;
        } while (event.kind != WICK_EVENT_END);
    }
    wick_session_get_stats(session, stats);
    wick_session_close(session);
    return n_out;
}

static void test_texts(void **state) {
    (void)state;
    static const char *const names[] = {"llama",  "deepseek2-v3", "qwen35",
                                        "gemma3", "glm4moe",      "granite-hybrid"};
    const size_t n_names = chosen.backend == WICK_BACKEND_WEBGPU ? 2 : WK_COUNT(names);
    for (size_t m = 0; m < n_names; m++) {
        char path[1024];
        make_path(names[m], path, sizeof path);
        write_random_head(path, with_head);
        wick_device *device;
        wick_model *const model = open_with(with_head, true, &device);
        wick_model_info info;
        wick_model_get_info(model, &info);
        uint32_t n_drafted = 0, n_accepted = 0;
        for (uint32_t p = 0; p < 12; p++) {
            uint32_t ids[MOST], want[160], got[160];
            const uint32_t n = 3 + (uint32_t)(random_bits() % 30), n_kinds = 2 + p % 9;
            for (uint32_t i = 0; i < n; i++)
                ids[i] = (uint32_t)(7 + random_bits() % n_kinds) % info.n_vocab;
            wick_session_stats stats;
            const uint32_t n_want = tell(model, WICK_SPECULATE_NONE, p, ids, n, want, &stats);
            assert_int_equal(tell(model, WICK_SPECULATE_HEADS, p, ids, n, got, &stats), n_want);
            assert_memory_equal(got, want, n_want * sizeof *want);
            n_drafted += (uint32_t)stats.n_drafted;
            n_accepted += (uint32_t)stats.n_accepted;
        }
        print_message("%s: %u of %u guesses were right\n", names[m], n_accepted, n_drafted);
        assert_true(n_drafted > n_accepted);
        wick_model_close(model);
        give_back_device(device);
    }
}

/* --- Memory --- */

/* The least limit that the model with a session of this context fits in. */
static uint64_t find_limit(const char *path, bool has_head, uint32_t context_length) {
    const wick_session_desc sessions = {
        .context_length = context_length, .chunk_length = 16, .cache = WICK_CACHE_F32};
    const wick_device_desc of_device = {.backend = WICK_BACKEND_CPU};
    wick_device *device;
    assert_int_equal(wick_device_open(&of_device, &device, NULL), WICK_OK);
    uint64_t too_small = 0, enough = UINT64_C(1) << 30;
    while (enough - too_small > 1) {
        const uint64_t limit = too_small + (enough - too_small) / 2;
        const wick_model_desc desc = {
            .sessions = &sessions, .memory_limit = limit, .prediction_head = has_head};
        wick_model *model = NULL;
        const wick_status status = wick_model_open(device, path, &desc, &model, NULL);
        wick_model_close(model);
        *(status == WICK_OK ? &enough : &too_small) = limit;
    }
    wick_device_close(device);
    return enough;
}

/* What a model needs counts the head's cache, whose runner keeps all of the text. */
static void test_memory(void **state) {
    (void)state;
    char path[1024];
    wick_file *file;
    /* Its last layer, which the head is like, has a window. */
    make_path("gemma2", path, sizeof path);
    write_random_head(path, with_head);
    assert_int_equal(wick_file_open(path, &file, NULL), WICK_OK);
    const uint64_t row = file_number(file, ".attention.head_count_kv") *
                         (file_number(file, ".attention.key_length") +
                          file_number(file, ".attention.value_length")) *
                         sizeof(float);
    wick_file_close(file);
    const uint64_t plain = find_limit(with_head, false, 512) - find_limit(with_head, false, 64);
    const uint64_t more = find_limit(with_head, true, 512) - find_limit(with_head, true, 64);
    assert_int_equal(more - plain, (512 - 64) * row);
}

/* --- Refusals --- */

static void expect_refused(const char *path, wick_status status, const char *sentence) {
    wick_model *model;
    wick_error error = {0};
    const wick_device_desc of_device = device_desc();
    wick_device *device;
    assert_int_equal(borrow_device(&of_device, &device, &error), WICK_OK);
    assert_int_equal(
        wick_model_open(device, path, &(wick_model_desc){.prediction_head = true}, &model, &error),
        status);
    if (!strstr(error.message, sentence)) fail_msg("%s", error.message);
    give_back_device(device);
}

/* In the header, which has no other such word; both are of one length. */
static void rename_tensor(const char *path, const char *from, const char *to) {
    static char text[1 << 16];
    FILE *const file = fopen(path, "r+b");
    const size_t size = fread(text, 1, sizeof text, file);
    size_t at = 0;
    while (memcmp(text + at, from, strlen(from)) != 0) assert_true(++at < size - strlen(from));
    fseek(file, (long)at, SEEK_SET);
    fwrite(to, 1, strlen(to), file);
    fclose(file);
}

static void test_refusals(void **state) {
    (void)state;
    char path[1024];
    make_path("llama", path, sizeof path);
    expect_refused(path, WICK_ERR_UNSUPPORTED, "has no prediction heads");
    write_random_head(path, with_head);
    rename_tensor(with_head, "nextn.enorm", "nextn.enorn");
    expect_refused(with_head, WICK_ERR_UNSUPPORTED, "'blk.2.nextn.enorn.weight' is not known");
    make_path("falcon-h1", path, sizeof path); /* its layers carry states beside their attention */
    write_random_head(path, with_head);
    expect_refused(with_head, WICK_ERR_UNSUPPORTED, "heads of the architecture 'falcon-h1'");
    make_path("llama", path, sizeof path);
    wick_device *device;
    wick_model *const model = open_with(path, false, &device);
    wick_session *session;
    wick_error error = {0};
    const wick_session_desc desc = {.speculate = WICK_SPECULATE_HEADS};
    assert_int_equal(wick_session_open(model, &desc, &session, &error), WICK_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "was opened without it"));
    wick_model_close(model);
    give_back_device(device);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_refusals),
    };
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
