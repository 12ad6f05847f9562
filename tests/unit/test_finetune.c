/* Fine-tuning: what is learned of texts and conversations, falling losses, checkpoints and files.
 */
#include <wick/finetune.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetune/batch.h"
#include "finetune/finetune.h"
#include "stories_session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CONTEXT = 32, MOST_STEPS = 16 };

static const char TEXT[] =
    "There was once a miller who left no more estate to the three sons he had than his mill, his "
    "ass, and his cat. The partition was soon made. Neither scrivener nor attorney was sent for. "
    "They would soon have eaten up all the poor patrimony. The eldest had the mill, the second the "
    "ass, and the youngest nothing but the cat. The poor young fellow was quite comfortless at "
    "having so poor a lot. My brothers, said he, may get their living handsomely enough by joining "
    "their stocks together; but for my part, when I have eaten up my cat, and made me a muff of "
    "his skin, I must die of hunger.";

static wick_examples *make_examples(void) {
    wick_examples *examples;
    wick_error error = {0};
    assert_int_equal(wick_examples_make(model, CONTEXT, &examples, &error), WICK_OK);
    assert_int_equal(wick_examples_add_text(examples, TEXT, sizeof TEXT - 1, &error), WICK_OK);
    return examples;
}

typedef struct history {
    double losses[MOST_STEPS + 1]; /* of step i, from 1 on */
    double first, last;            /* perplexity of the held-out examples */
    uint64_t n_measured, n_stored;
} history;

/* Up to a step, or to the end. */
static void train(wick_finetune *finetune, uint64_t until, history *h) {
    wick_finetune_event event = {0};
    wick_error error = {0};
    wick_status status = WICK_PENDING;
    while (status == WICK_PENDING && (until == 0 || event.step < until)) {
        status = wick_finetune_poll(finetune, &event, &error);
        if (status < 0) fail_msg("%s", error.message);
        if (event.kind == WICK_FINETUNE_STEP) h->losses[event.step] = event.loss;
        if (event.kind == WICK_FINETUNE_CHECKPOINT) h->n_stored++;
        if (event.kind != WICK_FINETUNE_HELD_OUT) continue;
        if (h->n_measured++ == 0) h->first = event.perplexity;
        h->last = event.perplexity;
    }
}

static wick_finetune *begin(const wick_examples *examples, const wick_finetune_desc *desc) {
    wick_finetune *finetune;
    wick_error error = {0};
    if (wick_finetune_start(model, examples, desc, &finetune, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return finetune;
}

static void test_falling_loss(void **state) {
    (void)state;
    wick_examples *const examples = make_examples();
    const wick_finetune_desc desc = {
        .rate = 2e-3, .steps = MOST_STEPS, .batch = 4, .seed = 7, .held_out = 0.2};
    wick_finetune *const finetune = begin(examples, &desc);
    history h = {0};
    train(finetune, 0, &h);
    assert_int_equal(h.n_measured, 2);
    assert_true(h.losses[MOST_STEPS] < h.losses[1]);
    assert_true(h.last < h.first);
    wick_finetune_finish(finetune);
    wick_examples_free(examples);
}

/* ---- Gradients ---- */

static double loss_of(const wk_example *example) {
    double loss = 0;
    const wick_scope scope = wick_scope_begin(device);
    assert_int_equal(wick_read_scalar(wk_examples_loss(model, example, 1, CONTEXT), &loss),
                     WICK_OK);
    wick_scope_end(scope);
    return loss;
}

static void move(wick_finetune *f, wick_tensor *const *along, double by) {
    for (size_t i = 0; i < 2 * f->n_factors; i++)
        assert_non_null(
            wick_copy(f->params[i], wick_add(f->params[i], wick_affine(along[i], by, 0))));
}

/* Along the gradient, of length n, the loss rises by n for each unit: by the difference of two
 * losses. */
static void test_gradients(void **state) {
    (void)state;
    enum { MOST_PARAMS = 128 };
    wick_examples *const examples = make_examples();
    wick_finetune *const f = begin(examples, &(wick_finetune_desc){.rate = 1e-2, .steps = 3});
    history h = {0};
    train(f, 0, &h); /* until b is not zero any more */
    const wk_example example = wk_example_at(examples, 1);
    wick_tensor *gradients[MOST_PARAMS] = {NULL};
    wick_tape *tape;
    const size_t n = 2 * f->n_factors;
    assert_true(n <= MOST_PARAMS);
    const wick_scope scope = wick_scope_begin(device);
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (size_t i = 0; i < n; i++) assert_int_equal(wick_tape_watch(tape, f->params[i]), WICK_OK);
    wick_tensor *const loss = wk_examples_loss(model, &example, 1, CONTEXT);
    assert_int_equal(wick_grad(tape, loss, NULL, f->params, n, gradients), WICK_OK);
    wick_tape_end(tape);
    double norm, step = 1e-3;
    wick_tensor *const length = wick_clip_grad_norm(gradients, n, 1);
    assert_int_equal(wick_read_scalar(length, &norm), WICK_OK);
    assert_true(norm > 1); /* so that they are a direction of length 1 now */
    move(f, gradients, step);
    const double above = loss_of(&example);
    move(f, gradients, -2 * step);
    const double slope = (above - loss_of(&example)) / (2 * step);
    if (!(fabs(slope - norm) < 0.01 * norm)) fail_msg("%g, not %g", slope, norm);
    wick_scope_end(scope);
    wick_finetune_finish(f);
    wick_examples_free(examples);
}

/* ---- Files ---- */

typedef struct path {
    char text[64];
} path;

static path file_name(const char *name) {
    path p;
    snprintf(p.text, sizeof p.text, "/tmp/wick-finetune-%d-%s", (int)getpid(), name);
    return p;
}

/* As if nothing had happened, to the last bit. */
static void test_resume(void **state) {
    (void)state;
    const path checkpoint = file_name("checkpoint.gguf");
    wick_examples *const examples = make_examples();
    wick_finetune_desc desc = {
        .rate = 1e-3, .steps = 9, .batch = 3, .seed = 5, .checkpoint = checkpoint.text, .every = 4};
    history whole = {0}, parts = {0};
    wick_finetune *finetune = begin(examples, &desc);
    train(finetune, 0, &whole);
    wick_finetune_finish(finetune);
    assert_int_equal(whole.n_stored, 3); /* after 4, 8 and 9 steps */

    finetune = begin(examples, &desc);
    train(finetune, 5, &parts); /* of which the last one is lost */
    parts.losses[5] = 0;
    wick_finetune_finish(finetune);
    desc.resume = true;
    finetune = begin(examples, &desc);
    train(finetune, 7, &parts);
    wick_finetune_event event;
    assert_int_equal(wick_finetune_poll(finetune, &event, NULL), WICK_PENDING); /* within a step */
    assert_int_equal(wick_finetune_checkpoint(finetune, NULL), WICK_OK);
    wick_finetune_finish(finetune);
    finetune = begin(examples, &desc);
    train(finetune, 0, &parts);
    wick_finetune_finish(finetune);
    assert_memory_equal(parts.losses, whole.losses, sizeof whole.losses);

    finetune = begin(examples, &desc); /* nothing is left to do */
    assert_int_equal(wick_finetune_poll(finetune, &event, NULL), WICK_OK);
    assert_int_equal(event.kind, WICK_FINETUNE_END);
    wick_finetune_finish(finetune);
    wick_error error = {0};
    desc.rank = 4;
    assert_int_equal(wick_finetune_start(model, examples, &desc, &finetune, &error),
                     WICK_ERR_MISMATCH);
    assert_non_null(strstr(error.message, "finetune.rank"));
    remove(checkpoint.text);
    wick_examples_free(examples);
}

static double judge(wick_model *judged) {
    uint32_t ids[2 * CONTEXT];
    wick_judging *judging;
    wick_judgement result;
    for (uint32_t i = 0; i < 2 * CONTEXT; i++) ids[i] = 3 + i * 37 % 500;
    const wick_judge_desc desc = {.context_length = CONTEXT, .n_unscored = 1};
    assert_int_equal(wick_judge_start(judged, NULL, ids, 2 * CONTEXT, &desc, &judging, NULL),
                     WICK_OK);
    while (wick_judge_poll(judging, NULL, NULL) == WICK_PENDING) {
    }
    wick_judge_get(judging, &result);
    wick_judge_finish(judging);
    return result.model.nll;
}

/* What is saved computes what the training computed; the model itself stays as it was. */
static void test_adapter(void **state) {
    (void)state;
    const path adapter = file_name("adapter.gguf");
    wick_error error = {0};
    const double before = judge(model);
    wick_examples *const examples = make_examples();
    const wick_finetune_desc desc = {.rate = 1e-2, .steps = 3, .rank = 4, .alpha = 6};
    wick_finetune *const finetune = begin(examples, &desc);
    assert_true(judge(model) == before);
    history h = {0};
    train(finetune, 0, &h);
    const double trained = judge(model);
    assert_true(fabs(trained - before) > 1e-3);
    assert_int_equal(wick_finetune_save(finetune, adapter.text, &error), WICK_OK);
    const char *name;
    assert_non_null(wick_finetune_tensor(finetune, 1, &name));
    assert_string_equal(name, "blk.0.attn_q.weight.lora_b");
    assert_null(wick_finetune_tensor(finetune, 1000, &name));
    assert_null(name);
    wick_finetune_finish(finetune);
    wick_examples_free(examples);
    assert_true(judge(model) == before);

    char file[1024];
    wick_model *other;
    snprintf(file, sizeof file, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    assert_int_equal(wick_model_open(device, file, NULL, &other, &error), WICK_OK);
    if (wick_model_add_adapter(other, adapter.text, 1, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_true(judge(other) == trained);
    unsigned char bytes[1 << 18];
    FILE *const stored = fopen(adapter.text, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, stored);
    fclose(stored);
    assert_true(size < sizeof bytes);
    assert_int_equal(
        wick_model_add_adapter_source(other, wick_source_memory(bytes, size), -1, &error), WICK_OK);
    assert_int_equal(
        wick_model_add_adapter_source(other, wick_source_memory(bytes, 100), 1, &error),
        WICK_ERR_FORMAT);
    assert_int_equal(
        wick_model_add_adapter_source(NULL, wick_source_memory(bytes, size), 1, &error),
        WICK_ERR_ARGUMENT);
    assert_true(fabs(judge(other) - before) < 1e-5);
    assert_int_equal(wick_model_add_adapter(other, file, 1, &error), WICK_ERR_FORMAT);
    assert_true(fabs(judge(other) - before) < 1e-5);
    wick_model_close(other);
    remove(adapter.text);
}

/* ---- Examples ---- */

static void test_text(void **state) {
    (void)state;
    wick_examples *const examples = make_examples();
    wick_examples_info info;
    wick_examples_get_info(examples, &info);
    size_t n = 0;
    assert_int_equal(
        wick_tokenize(wick_model_tokenizer(model), TEXT, sizeof TEXT - 1, 0, NULL, 0, &n), WICK_OK);
    assert_int_equal(info.n_learned, n); /* each once */
    assert_int_equal(info.n_examples, (n + CONTEXT - 2) / (CONTEXT - 1));
    for (size_t i = 0; i < info.n_examples; i++) {
        const wk_example example = wk_example_at(examples, i);
        assert_int_equal(example.ids[0], 1); /* the begin token */
        assert_int_equal(example.n_learned, example.n - 1);
    }
    wick_examples_free(examples);
}

static void test_json(void **state) {
    (void)state;
    static const char lines[] = "{\"prompt\": \"The cat\", \"completion\": \" sat.\"}\n\r\n"
                                "{\"text\": \"A dog.\"}";
    wick_examples *examples;
    wick_error error = {0};
    assert_int_equal(wick_examples_make(model, CONTEXT, &examples, NULL), WICK_OK);
    assert_int_equal(wick_examples_add_json_lines(examples, lines, sizeof lines - 1, &error),
                     WICK_OK);
    assert_int_equal(examples->n, 2);
    const wk_example pair = wk_example_at(examples, 0), text = wk_example_at(examples, 1);
    size_t n_prompt = 0;
    (void)wick_tokenize(wick_model_tokenizer(model), "The cat", 7, WICK_TOKENIZE_ADD_BEGIN, NULL, 0,
                        &n_prompt);
    for (size_t i = 0; i < pair.n; i++) assert_int_equal(pair.is_learned[i], i >= n_prompt);
    assert_int_equal(pair.ids[pair.n - 1], 2); /* the end of the text */
    assert_int_equal(text.n_learned, text.n - 1);
    assert_int_equal(wick_examples_add_json_lines(examples, "\n{\"a\": 1}", 10, &error),
                     WICK_ERR_FORMAT);
    assert_non_null(strstr(error.message, "line 2"));
    wick_examples_free(examples);
}

/* ---- Refusals ---- */

static void refuse(const wick_examples *examples, wick_finetune_desc desc, wick_status status,
                   const char *word) {
    wick_finetune *finetune;
    wick_error error = {0};
    assert_int_equal(wick_finetune_start(model, examples, &desc, &finetune, &error), status);
    assert_null(finetune);
    if (strstr(error.message, word) == NULL) fail_msg("%s", error.message);
}

static void test_refusals(void **state) {
    (void)state;
    wick_examples *const examples = make_examples();
    wick_examples *none;
    wick_error error = {0};
    assert_int_equal(wick_examples_make(model, 1, &none, NULL), WICK_ERR_VALUE);
    assert_int_equal(wick_examples_make(model, 2, &none, NULL), WICK_OK);
    refuse(none, (wick_finetune_desc){0}, WICK_ERR_VALUE, "nothing to learn from");
    wick_examples_free(none);
    refuse(examples, (wick_finetune_desc){.rate = -1}, WICK_ERR_VALUE, "rate");
    refuse(examples, (wick_finetune_desc){.alpha = -1}, WICK_ERR_VALUE, "alpha");
    refuse(examples, (wick_finetune_desc){.rank = 5000}, WICK_ERR_VALUE, "rank");
    refuse(examples, (wick_finetune_desc){.held_out = 1}, WICK_ERR_VALUE, "held out");
    refuse(examples, (wick_finetune_desc){.resume = true}, WICK_ERR_VALUE, "checkpoint");
    refuse(examples, (wick_finetune_desc){.resume = true, .checkpoint = "/nowhere/file"},
           WICK_ERR_NOT_FOUND, "/nowhere/file");
    wick_session *const session = open_session(NULL);
    refuse(examples, (wick_finetune_desc){0}, WICK_ERR_STATE, "sessions");
    wick_session_close(session);
    wick_finetune *const finetune = begin(examples, &(wick_finetune_desc){0});
    assert_int_equal(wick_finetune_checkpoint(finetune, &error), WICK_ERR_STATE);
    wick_finetune_finish(finetune);
    wick_examples_free(examples);
}

/* Factors that became NaN are not stored. */
static void test_no_numbers(void **state) {
    (void)state;
    const path checkpoint = file_name("none.gguf");
    wick_examples *const examples = make_examples();
    const wick_finetune_desc desc = {
        .rate = 1e30, .max_norm = 1e30, .steps = 9, .checkpoint = checkpoint.text, .every = 9};
    wick_finetune *const finetune = begin(examples, &desc);
    wick_status status = WICK_PENDING;
    while (status == WICK_PENDING) status = wick_finetune_poll(finetune, NULL, NULL);
    assert_int_equal(status, WICK_ERR_VALUE);
    wick_error error = {0}, again = {0};
    assert_int_equal(wick_finetune_poll(finetune, NULL, &error), WICK_ERR_VALUE);
    assert_non_null(strstr(error.message, "not a number"));
    assert_int_equal(wick_finetune_checkpoint(finetune, &again), WICK_ERR_STATE);
    wick_finetune_finish(finetune);
    assert_int_not_equal(access(checkpoint.text, F_OK), 0);
    wick_examples_free(examples);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_falling_loss), cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_resume),       cmocka_unit_test(test_adapter),
        cmocka_unit_test(test_text),         cmocka_unit_test(test_json),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_no_numbers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
