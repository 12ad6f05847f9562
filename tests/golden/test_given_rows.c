/* Rows of embeddings in place of tokens: with the rows that the model's own table has, a session
 * gives the bits that it gives for the tokens, of the tiny models of all families. */
#include "golden/families.h"

#include "model/model_struct.h"

#include <wick/session.h>

enum { CHUNK = 16, BEGIN = 5, END = 41 }; /* rows, in several chunks */

/* What the options ask for; WICK_BACKEND_AUTO: the CPU and the null backend. */
static wick_device_desc chosen;

static void fail_with(const char *what, const wick_error *error) {
    fail_msg("%s: %s", what, error->message);
}

/* Rows of the table, as they enter the first layer: [n, n_embd]. */
static float *look_up(wick_model *model, const uint32_t *ids, size_t n) {
    const wk_hparams *const hparams = wk_model_hparams(model->model);
    wick_tensor *const table = model->model->stage_weights[0].weight[WK_TOKEN_EMBEDDING];
    const wick_scope scope = wick_scope_begin(model->device);
    wick_tensor *const at = wick_tensor_from_data(model->device, WICK_U32, WICK_SHAPE((int64_t)n),
                                                  ids, n * sizeof *ids);
    wick_tensor *rows = wick_cast(wick_embedding(table, at), WICK_F32);
    if (hparams->embedding_scale != 1) rows = wick_affine(rows, hparams->embedding_scale, 0);
    float *const out = malloc(n * hparams->n_embd * sizeof *out);
    assert_int_equal(wick_read(rows, out, n * hparams->n_embd * sizeof *out), WICK_OK);
    wick_scope_end(scope);
    return out;
}

static wick_session *open_session(wick_model *model, const fixture *of) {
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    const wick_session_desc desc = {.context_length = MAX_TOKENS,
                                    .chunk_length = CHUNK,
                                    .logits =
                                        of->is_encoder ? WICK_LOGITS_STATES : WICK_LOGITS_ALL};
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_with("open", &error);
    return session;
}

/* Logits or states of the n tokens or rows that were appended, [n, width]. */
static float *read_all(wick_session *session, size_t n, size_t width) {
    float *const rows = malloc(n * width * sizeof *rows);
    wick_event event;
    size_t seen = 0;
    do {
        if (wick_session_next(session, &event) != WICK_OK) {
            wick_error error = {.status = WICK_OK};
            (void)wick_session_error(session, &error);
            fail_with("session", &error);
        }
        if (event.kind != WICK_EVENT_LOGITS) continue;
        memcpy(rows + seen++ * width, event.logits, width * sizeof *rows);
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(seen, n);
    return rows;
}

static void assert_same(const char *name, const float *found, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(&found[i], &want[i], sizeof *want) != 0)
            fail_msg("%s: number %zu is %a, not %a", name, i, (double)found[i], (double)want[i]);
}

/* All at once, and, where the model goes on with a text, between tokens. */
static void compare(wick_model *model, const fixture *of, const reference *text) {
    const size_t width = of->is_encoder ? model->info.n_embd : model->info.n_vocab;
    const size_t n = text->n, end = n < END ? n : END;
    float *const rows = look_up(model, text->ids, n);
    wick_session *const session = open_session(model, of);
    assert_int_equal(wick_session_append_tokens(session, text->ids, n), WICK_OK);
    float *const want = read_all(session, n, width);

    wick_session_reset(session);
    assert_int_equal(wick_session_append_embeddings(session, rows, n), WICK_OK);
    float *found = read_all(session, n, width);
    assert_same(of->name, found, want, n * width);
    free(found);
    if (!of->is_encoder) {
        wick_session_reset(session);
        const float *const middle = rows + BEGIN * (size_t)model->info.n_embd;
        assert_int_equal(wick_session_append_tokens(session, text->ids, BEGIN), WICK_OK);
        assert_int_equal(wick_session_append_embeddings(session, middle, end - BEGIN), WICK_OK);
        assert_int_equal(wick_session_append_tokens(session, text->ids + end, n - end), WICK_OK);
        found = read_all(session, n, width);
        assert_same(of->name, found, want, n * width);
        free(found);
    }
    wick_session_close(session);
    free(want);
    free(rows);
}

static void check(const fixture *of, const wick_device_desc *desc) {
    reference text;
    wick_device *device;
    wick_model *model = NULL;
    wick_error error = {.status = WICK_OK};
    assert_true(read_reference(of, &text));
    if (borrow_device(desc, &device, &error) != WICK_OK ||
        wick_model_open(device, of->path, NULL, &model, &error) != WICK_OK)
        fail_with(of->name, &error);
    if (wk_model_hparams(model->model)->n_embd_layer == 0) {
        compare(model, of, &text);
    } else {
        wick_session *const session = open_session(model, of);
        float *const row = look_up(model, text.ids, 1);
        assert_int_equal(wick_session_append_embeddings(session, row, 1), WICK_ERR_UNSUPPORTED);
        (void)wick_session_error(session, &error);
        assert_non_null(strstr(error.message, "tokens only"));
        assert_int_equal(wick_session_append_tokens(session, text.ids, 1), WICK_OK);
        free(read_all(session, 1, model->info.n_vocab));
        wick_session_close(session);
        free(row);
    }
    free(text.file.data);
    wick_model_close(model);
    give_back_device(device);
}

static void test_fixture(void **state) {
    const fixture *const of = *state;
    if (chosen.backend == WICK_BACKEND_WEBGPU) {
        check(of, &chosen);
        return;
    }
    check(of, &(wick_device_desc){.backend = WICK_BACKEND_CPU});
    check(of, &(wick_device_desc){.backend = WICK_BACKEND_NULL,
                                  .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER});
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    return test_each_fixture("embeddings", test_fixture, chosen.backend == WICK_BACKEND_WEBGPU);
}
