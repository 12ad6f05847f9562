/* The forward pass without a state, over whole texts at once, against sessions that read the same
 * texts in chunks: of the tiny models of all families.
 *
 * Both compute in float32, in exact math: on the CPU the bits are the same. On a GPU sums over keys
 * may be taken in another order. */
#include "golden/families.h"

#include <wick/session.h>

enum { CHUNK = 16, N_TEXTS = 2, LONG = 200 };

typedef struct text {
    uint32_t ids[LONG], n;
} text;

/* What the options ask for; WICK_BACKEND_AUTO: the CPU and the null backend. */
static wick_device_desc chosen;

static void fail_with(const char *what, const wick_error *error) {
    fail_msg("%s: %s", what, error->message);
}

/* Logits or states [n, width] of a session that reads CHUNK tokens at once. */
static float *read_in_chunks(wick_model *model, const text *of, uint32_t context, bool is_encoder,
                             size_t width) {
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    wick_event event;
    float *const rows = malloc(of->n * width * sizeof *rows);
    const wick_session_desc desc = {.context_length = context,
                                    .chunk_length = CHUNK,
                                    .logits = is_encoder ? WICK_LOGITS_STATES : WICK_LOGITS_ALL};
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_with("open", &error);
    assert_int_equal(wick_session_append_tokens(session, of->ids, of->n), WICK_OK);
    do {
        if (wick_session_next(session, &event) != WICK_OK) {
            (void)wick_session_error(session, &error);
            fail_with("session", &error);
        }
        if (event.kind == WICK_EVENT_LOGITS)
            memcpy(rows + event.position * width, event.logits, width * sizeof *rows);
    } while (event.kind != WICK_EVENT_END);
    wick_session_close(session);
    return rows;
}

/* Text i begins at row i * most; after it there is padding. */
static wk_batch_layout describe(const text *texts, uint32_t most, uint32_t *words) {
    wk_batch_layout at = {.n_rows = N_TEXTS * most, .n_sequences = N_TEXTS};
    at.positions = at.n_rows;
    at.sequences = at.positions + at.n_rows;
    at.states = at.sequences + at.n_rows;
    at.outputs = at.states + N_TEXTS;
    for (uint32_t t = 0; t < N_TEXTS; t++) {
        words[at.states + t] = t;
        for (uint32_t i = 0; i < most; i++) {
            const bool is_padding = i >= texts[t].n;
            words[at.ids + t * most + i] = is_padding ? 0 : texts[t].ids[i];
            words[at.positions + t * most + i] = is_padding ? 0 : i;
            words[at.sequences + t * most + i] = is_padding ? WK_NO_ROW : t;
            if (!is_padding) words[at.outputs + at.n_outputs++] = t * most + i;
        }
    }
    at.n_words = at.outputs + at.n_outputs;
    return at;
}

/* All texts as one batch: [n of all texts, width]. */
static float *read_whole(wick_model *model, const text *texts, uint32_t most, bool is_encoder,
                         size_t width) {
    uint32_t words[4 * N_TEXTS * (LONG + 3) + N_TEXTS];
    wk_batch batch = {.layout = describe(texts, most, words)};
    wick_device *const device = model->device;
    const wk_hparams *const hparams = wk_model_hparams(model->model);
    const wick_scope scope = wick_scope_begin(device);
    batch.descriptor = wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(batch.layout.n_words),
                                             words, batch.layout.n_words * sizeof *words);
    const wk_rope_positions positions = {words + batch.layout.positions, batch.layout.n_rows,
                                         texts[0].n};
    for (uint32_t i = 0; i < hparams->n_ropes; i++)
        make_tables(device, i, positions, &batch, hparams);
    wick_tensor *const hidden =
        wk_model_forward(model->model, NULL, &batch, 0, hparams->n_layers, NULL);
    wick_tensor *const result = is_encoder ? wk_model_outputs(model->model, &batch, hidden)
                                           : wk_model_logits(model->model, &batch, hidden);
    const size_t size = batch.layout.n_outputs * width * sizeof(float);
    float *const rows = malloc(size);
    wick_error error = {.status = WICK_OK};
    if (wick_read(result, rows, size) != WICK_OK) {
        (void)wick_device_error(device, &error);
        fail_with("forward", &error);
    }
    wick_scope_end(scope);
    return rows;
}

/* The reference's tokens over and over, as many as the model takes; and without its beginning. */
static bool make_texts(const fixture *of, const wick_model *model, text *texts) {
    enum { CUT = 37 };
    reference from;
    if (!read_reference(of, &from)) return false;
    free(from.file.data);
    const uint32_t context = model->info.context_length;
    texts[0].n = context < LONG ? context : LONG;
    texts[1].n = texts[0].n - CUT;
    for (uint32_t i = 0; i < texts[0].n; i++) texts[0].ids[i] = from.ids[i * i % 89 % from.n];
    memcpy(texts[1].ids, texts[0].ids + CUT, texts[1].n * sizeof *texts[1].ids);
    return true;
}

static void check(const fixture *of, const wick_device_desc *desc) {
    text texts[N_TEXTS];
    wick_device *device;
    wick_model *model = NULL;
    wick_error error = {.status = WICK_OK};
    if (borrow_device(desc, &device, &error) != WICK_OK ||
        wick_model_open(device, of->path, NULL, &model, &error) != WICK_OK)
        fail_with(of->name, &error);
    assert_true(make_texts(of, model, texts));
    const size_t width = of->is_encoder ? model->info.n_embd : model->info.n_vocab;

    float *const found = read_whole(model, texts, texts[0].n + 3, of->is_encoder, width);
    const float *at = found;
    for (size_t t = 0; t < N_TEXTS; t++) {
        float *const want = read_in_chunks(model, &texts[t], texts[0].n, of->is_encoder, width);
        const double difference = worst(at, want, texts[t].n * width);
        print_message("%s, %u tokens: %.1e\n", of->name, texts[t].n, difference);
        if (desc->backend == WICK_BACKEND_WEBGPU)
            assert_true(difference <= 2e-5);
        else
            assert_memory_equal(at, want, texts[t].n * width * sizeof *want);
        at += texts[t].n * width;
        free(want);
    }
    free(found);
    wick_model_close(model);
    give_back_device(device);
}

static void test_fixture(void **state) {
    const fixture *const of = *state;
    if (chosen.backend == WICK_BACKEND_WEBGPU) {
        check(of, &chosen);
        return;
    }
    if (tests_all()) /* the plain loops take as long as all others together */
        check(of, &(wick_device_desc){.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF});
    check(of, &(wick_device_desc){.backend = WICK_BACKEND_CPU});
    check(of, &(wick_device_desc){.backend = WICK_BACKEND_NULL,
                                  .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER});
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    return test_each_fixture("whole texts", test_fixture, chosen.backend == WICK_BACKEND_WEBGPU);
}
