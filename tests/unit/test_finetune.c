/* Fine-tuning: what is learned of texts and conversations, falling losses, checkpoints and files.
 */
#include <wick/finetune.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetune/batch.h"
#include "model/model_struct.h"

#include "adapter_gradients.h"
#include "stories_session.h"

#include <wick/convert.h>

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

typedef struct path {
    char text[64];
} path;

static path file_name(const char *name) {
    path p;
    snprintf(p.text, sizeof p.text, "/tmp/wick-finetune-%d-%s", (int)getpid(), name);
    return p;
}

static void test_gradients(void **state) {
    (void)state;
    wick_examples *const examples = make_examples();
    wick_finetune *const f = begin(examples, &(wick_finetune_desc){.rate = 1e-2, .steps = 3});
    history h = {0};
    train(f, 0, &h); /* until b is not zero any more */
    check_gradients(f, "stories260K");
    wick_finetune_finish(f);
    wick_examples_free(examples);
}

static void quantize_stories(const char *type, const char *to) {
    char in[1024];
    snprintf(in, sizeof in, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    const wick_quantize_desc desc = {.type = type, .n_threads = 1};
    wick_quantizing *quantizing;
    wick_error error = {0};
    if (wick_quantize_start(in, to, &desc, &quantizing, &error) != WICK_OK)
        fail_msg("%s", error.message);
    wick_status status;
    while ((status = wick_quantize_poll(quantizing, NULL, &error)) == WICK_PENDING) continue;
    assert_int_equal(wick_quantize_finish(quantizing, status == WICK_OK, &error), WICK_OK);
}

/* The weights stay blocks; gradients go through what they decode to. */
static void test_quantized(void **state) {
    static const char *const types[] = {"F16", "BF16", "Q8_0", "Q4_0", "Q5_1", "IQ4_NL"};
    (void)state;
    const path file = file_name("quantized.gguf");
    wick_model *const whole = model;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        wick_error error = {0};
        quantize_stories(types[i], file.text);
        if (wick_model_open(device, file.text, NULL, &model, &error) != WICK_OK)
            fail_msg("%s", error.message);
        wick_examples *const examples = make_examples();
        const wick_finetune_desc desc = {.rate = 1e-2, .steps = 6, .batch = 4};
        wick_finetune *const f = begin(examples, &desc);
        history h = {0};
        train(f, 0, &h);
        print_message("%s: from %.4f to %.4f\n", types[i], h.losses[1], h.losses[6]);
        assert_true(h.losses[6] < h.losses[1] - 0.1);
        check_gradients(f, types[i]);
        wick_finetune_finish(f);
        wick_examples_free(examples);
        wick_model_close(model);
        remove(file.text);
    }
    model = whole;
}

/* Recomputed layers need less memory for the same losses. */
static void test_recompute(void **state) {
    (void)state;
    uint64_t peaks[2];
    history h[2] = {0};
    for (int i = 0; i < 2; i++) { /* on a device of its own, for peaks only rise */
        wick_device *const old_device = device;
        wick_model *const old_model = model;
        assert_int_equal(setup(NULL), 0);
        wick_examples *examples;
        assert_int_equal(wick_examples_make(model, 256, &examples, NULL), WICK_OK);
        assert_int_equal(wick_examples_add_text(examples, TEXT, sizeof TEXT - 1, NULL), WICK_OK);
        const wick_finetune_desc desc = {
            .rate = 1e-3, .steps = 2, .batch = 2, .recompute = i == 1, .dropout = 0.1};
        wick_finetune *const f = begin(examples, &desc);
        train(f, 0, &h[i]);
        wick_finetune_finish(f);
        wick_examples_free(examples);
        wick_device_stats stats;
        wick_device_get_stats(device, &stats);
        peaks[i] = stats.buffer_peak_bytes;
        assert_int_equal(teardown(NULL), 0);
        device = old_device;
        model = old_model;
    }
    print_message("%u bytes, recomputed %u\n", (unsigned)peaks[0], (unsigned)peaks[1]);
    assert_memory_equal(h[0].losses, h[1].losses, sizeof h[0].losses);
    assert_true(peaks[1] < 2 * peaks[0] / 3);
}

static void check_segments(const wk_layer_segment *want, size_t n_want) {
    wk_layer_segment got[16];
    assert_int_equal(wk_layer_segments(model, got), n_want);
    for (size_t i = 0; i < n_want; i++) {
        assert_int_equal(got[i].first, want[i].first);
        assert_int_equal(got[i].count, want[i].count);
    }
}

/* Layers that share keys and values are computed again together, with those between them. */
static void test_segments(void **state) {
    (void)state;
    static const wk_layer_segment alone[] = {
        {.first = 0, .count = 1}, {.first = 1, .count = 1}, {.first = 2, .count = 1},
        {.first = 3, .count = 1}, {.first = 4, .count = 1},
    };
    static const wk_layer_segment shared[] = {
        {.first = 0, .count = 1}, {.first = 1, .count = 3}, {.first = 4, .count = 1}};
    check_segments(alone, 5);
    wk_attention_spec *const attention = &model->model->layers[3].spec.attention;
    const wk_attention_spec before = *attention;
    attention->is_kv_shared = true;
    attention->kv_layer = 1;
    check_segments(shared, 3);
    attention->kv_layer = 2;
    check_segments((wk_layer_segment[]){alone[0], alone[1], {.first = 2, .count = 2}, alone[4]}, 4);
    *attention = before;
}

/* ---- Options ---- */

/* The parts of names between "blk.0." and ".weight.lora_a" of the first layer. */
static void check_targets(const wick_examples *examples, uint32_t targets, const char *names) {
    char found[256] = "";
    wick_finetune *const f = begin(examples, &(wick_finetune_desc){.targets = targets});
    for (size_t i = 0; i < 2 * f->n_factors; i += 2) {
        char name[64];
        if (sscanf(f->names[i], "blk.0.%63[a-z_].weight", name) != 1) continue;
        strcat(strcat(found, name), " ");
    }
    assert_string_equal(found, names);
    wick_finetune_finish(f);
}

static void test_targets(void **state) {
    (void)state;
    wick_examples *const examples = make_examples();
    check_targets(examples, 0, "attn_q attn_k attn_v attn_output ffn_gate ffn_down ffn_up ");
    check_targets(examples, WICK_TARGET_Q | WICK_TARGET_V, "attn_q attn_v ");
    check_targets(examples, WICK_TARGET_K | WICK_TARGET_O, "attn_k attn_output ");
    check_targets(examples, WICK_TARGET_GATE | WICK_TARGET_UP | WICK_TARGET_DOWN,
                  "ffn_gate ffn_down ffn_up ");
    wick_examples_free(examples);
}

/* Examples of a step are computed some at a time: the gradients of all of them are added up. */
static void test_accumulation(void **state) {
    (void)state;
    static const uint32_t batches[] = {6, 2}; /* of the same text: the same mean */
    history h[2] = {0};
    size_t n_slices[2] = {0};
    wick_examples *examples;
    assert_int_equal(wick_examples_make(model, 200, &examples, NULL), WICK_OK);
    for (int i = 0; i < 6; i++) /* up to four of these make a slice */
        assert_int_equal(wick_examples_add_text(examples, TEXT, 300, NULL), WICK_OK);
    assert_int_equal(examples->n, 6);
    for (int i = 0; i < 2; i++) {
        const wick_finetune_desc desc = {.rate = 1e-2, .steps = 3, .batch = batches[i]};
        wick_finetune *const f = begin(examples, &desc);
        size_t at = SIZE_MAX;
        while (f->step == 0) {
            assert_int_equal(wick_finetune_poll(f, NULL, NULL), WICK_PENDING);
            n_slices[i] += f->next != at;
            at = f->next;
        }
        train(f, 0, &h[i]);
        wick_finetune_finish(f);
    }
    assert_true(n_slices[0] > n_slices[1]);
    assert_true(h[0].losses[3] < 4.5);
    assert_true(fabs(h[0].losses[3] - h[1].losses[3]) < 1e-4);
    wick_examples_free(examples);
}

/* ---- Files ---- */

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

/* The bytes of the training's file; the caller's until its next call. */
static const void *save(wick_finetune *finetune, wick_finetune_file file, size_t *size) {
    const void *bytes = NULL;
    wick_error error = {0};
    wick_status status = wick_finetune_save_start(finetune, file, &error);
    if (status == WICK_OK) {
        do {
            status = wick_finetune_save_poll(finetune, &bytes, size, &error);
        } while (status == WICK_PENDING);
    }
    if (status != WICK_OK) fail_msg("%s", error.message);
    return bytes;
}

/* They are those of a file that was written. */
static void check_saved(wick_finetune *finetune, wick_finetune_file file, const char *name) {
    static unsigned char stored[1 << 20];
    size_t size;
    const void *const bytes = save(finetune, file, &size);
    FILE *const in = fopen(name, "rb");
    assert_int_equal(fread(stored, 1, sizeof stored, in), size);
    fclose(in);
    assert_memory_equal(bytes, stored, size);
}

/* A state in memory is the checkpoint's file, and a training goes on from it as if nothing had
 * happened. It goes on itself while it is saved. */
static void test_state(void **state) {
    (void)state;
    const path checkpoint = file_name("state.gguf");
    wick_examples *const examples = make_examples();
    wick_finetune_desc desc = {
        .rate = 1e-3, .steps = 9, .batch = 3, .seed = 5, .checkpoint = checkpoint.text};
    history whole = {0}, parts = {0};
    wick_finetune *finetune = begin(examples, &desc), *wrong;
    train(finetune, 5, &whole);
    assert_int_equal(wick_finetune_checkpoint(finetune, NULL), WICK_OK);
    check_saved(finetune, WICK_FINETUNE_STATE, checkpoint.text);
    assert_int_equal(wick_finetune_save_start(finetune, WICK_FINETUNE_STATE, NULL), WICK_OK);
    train(finetune, 6, &whole);
    const void *bytes;
    size_t size;
    wick_error error = {0};
    wick_status status;
    while ((status = wick_finetune_save_poll(finetune, &bytes, &size, &error)) == WICK_PENDING)
        continue;
    assert_int_equal(status, WICK_OK);
    desc.checkpoint = NULL;
    desc.state = malloc(size);
    desc.state_size = size;
    memcpy((void *)(uintptr_t)desc.state, bytes, size);
    assert_int_equal(wick_finetune_save_poll(finetune, &bytes, &size, &error), WICK_ERR_STATE);
    assert_null(bytes);
    train(finetune, 0, &whole);
    wick_finetune_finish(finetune);

    memcpy(parts.losses, whole.losses, 6 * sizeof *parts.losses); /* of steps up to 5 */
    finetune = begin(examples, &desc);
    train(finetune, 0, &parts);
    wick_finetune_finish(finetune);
    assert_memory_equal(parts.losses, whole.losses, sizeof whole.losses);
    desc.rank = 4;
    assert_int_equal(wick_finetune_start(model, examples, &desc, &wrong, &error),
                     WICK_ERR_MISMATCH);
    desc.rank = 0;
    desc.state_size -= 100;
    assert_int_equal(wick_finetune_start(model, examples, &desc, &wrong, NULL), WICK_ERR_FORMAT);
    desc.state_size = 20;
    assert_int_equal(wick_finetune_start(model, examples, &desc, &wrong, NULL), WICK_ERR_FORMAT);
    free((void *)(uintptr_t)desc.state);
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
    check_saved(finetune, WICK_FINETUNE_ADAPTER, adapter.text);
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

/* Rows and targets of an example of which the tokens from n_prompt on are learned: what comes
 * before a token predicts it. */
static void check_batch(const wk_example *example, size_t n_prompt) {
    uint32_t targets[64];
    wk_loss_batch batch;
    const size_t n = example->n - n_prompt;
    assert_in_range(n, 1, 64);
    const wick_scope scope = wick_scope_begin(device);
    assert_true(wk_loss_batch_make(model, example, 1, 256, &batch));
    assert_int_equal(wick_read(batch.targets, targets, n * sizeof *targets), WICK_OK);
    assert_memory_equal(targets, example->ids + n_prompt, n * sizeof *targets);
    wick_scope_end(scope);
}

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
    check_batch(&pair, n_prompt);
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
    refuse(examples, (wick_finetune_desc){.dropout = 1}, WICK_ERR_VALUE, "dropout");
    refuse(examples, (wick_finetune_desc){.targets = WICK_TARGET_ALL + 1}, WICK_ERR_VALUE,
           "targets");
    refuse(examples, (wick_finetune_desc){.targets = WICK_TARGET_IN | WICK_TARGET_OUT},
           WICK_ERR_UNSUPPORTED, "no matrices");
    refuse(examples, (wick_finetune_desc){.schedule = (wick_schedule_kind)3}, WICK_ERR_VALUE,
           "schedule");
    refuse(examples, (wick_finetune_desc){.checkpoint = "/nowhere/file"}, WICK_ERR_NOT_FOUND,
           "/nowhere/file");
    refuse(examples, (wick_finetune_desc){.resume = true}, WICK_ERR_VALUE, "checkpoint");
    refuse(examples, (wick_finetune_desc){.state = "", .state_size = 0}, WICK_ERR_FORMAT, "empty");
    refuse(examples,
           (wick_finetune_desc){.resume = true, .checkpoint = "a", .state = "b", .state_size = 1},
           WICK_ERR_VALUE, "two checkpoints");
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
        cmocka_unit_test(test_quantized),    cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_segments),     cmocka_unit_test(test_targets),
        cmocka_unit_test(test_accumulation), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_state),        cmocka_unit_test(test_adapter),
        cmocka_unit_test(test_text),         cmocka_unit_test(test_json),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_no_numbers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
