/* A device that is lost while an adapter is trained: the training goes on from its last checkpoint,
 * or from the beginning, and ends with the same losses and the same adapter, to the last bit. On
 * the null backend, which says so at once or, late, swallows commands until it is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amount.h"
#include "null_place.h"

#include <wick/finetune.h>

#include <unistd.h>

enum { N_STEPS = 5, MAX_FILE = 1 << 16 };

static const char text[] =
    "Once upon a time there was a miller who had three sons. The eldest had the mill, the second "
    "the ass, and the youngest nothing but the cat, who said that he wanted a pair of boots.";

static char checkpoint[64], adapter[64];

typedef struct trained {
    double losses[N_STEPS + 1]; /* of step i, from 1 on */
    double perplexity;          /* of the held-out examples after the last step */
    unsigned char file[MAX_FILE];
    size_t size; /* of the adapter */
    uint64_t n_restored, last_restored;
} trained;

static void note(trained *t, const wick_finetune_event *event) {
    if (event->kind == WICK_FINETUNE_HELD_OUT) t->perplexity = event->perplexity;
    if (event->kind == WICK_FINETUNE_RESTORED) {
        t->n_restored++;
        t->last_restored = event->step;
    }
    if (event->kind != WICK_FINETUNE_STEP) return;
    assert_true(t->losses[event->step] == 0 || t->losses[event->step] == event->loss);
    t->losses[event->step] = event->loss;
}

static void read_adapter(trained *t) {
    FILE *const file = fopen(adapter, "rb");
    assert_non_null(file);
    t->size = fread(t->file, 1, MAX_FILE, file);
    assert_true(t->size > 0 && t->size < MAX_FILE);
    fclose(file);
    unlink(adapter);
}

/* The first n calls of polls, or all of them; false: it is not at its end. */
static wick_status poll_all(wick_finetune *finetune, uint64_t n, trained *t, wick_error *error) {
    wick_finetune_event event;
    wick_status status = WICK_PENDING;
    for (uint64_t i = 0; i < n && status == WICK_PENDING; i++) {
        status = wick_finetune_poll(finetune, &event, error);
        note(t, &event);
    }
    return status;
}

typedef struct run {
    uint64_t lose_at, lose_after; /* polls, then calls of the device; 0: it is not lost */
    uint64_t every;               /* checkpoints */
    bool is_late, recompute;
    double dropout;
} run;

static wick_examples *make_examples(const wick_model *model) {
    wick_examples *examples;
    assert_int_equal(wick_examples_make(model, 16, &examples, NULL), WICK_OK);
    assert_int_equal(wick_examples_add_text(examples, text, sizeof text - 1, NULL), WICK_OK);
    return examples;
}

static wick_finetune *start(place *p, const wick_examples *examples, const run *r) {
    wick_finetune *finetune;
    wick_error error = {.status = WICK_OK};
    const wick_finetune_desc desc = {.rank = 2,
                                     .targets = WICK_TARGET_Q | WICK_TARGET_DOWN,
                                     .dropout = r->dropout,
                                     .rate = 1e-2,
                                     .steps = N_STEPS,
                                     .batch = 2,
                                     .recompute = r->recompute,
                                     .held_out = 0.2,
                                     .checkpoint = checkpoint,
                                     .every = r->every};
    if (wick_finetune_start(p->model, examples, &desc, &finetune, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return finetune;
}

/* A whole training; gives whether the device was lost in it. */
static bool train(const run *r, trained *t) {
    place p;
    wick_error error = {.status = WICK_OK};
    *t = (trained){.size = 0};
    open_place(&p, r->is_late);
    wick_examples *const examples = make_examples(p.model);
    wick_finetune *const finetune = start(&p, examples, r);
    wick_status status = WICK_PENDING;
    if (r->lose_at > 0) {
        status = poll_all(finetune, r->lose_at, t, &error);
        wk_null_lose_after(p.device->handle, (uint32_t)r->lose_after);
    }
    if (status == WICK_PENDING) status = poll_all(finetune, UINT64_MAX, t, &error);
    if (status != WICK_OK) fail_msg("%s", error.message);
    wk_null_lose_after(p.device->handle, 0);
    assert_int_equal(wick_device_error(p.device, NULL), WICK_OK);
    const bool was_lost = n_losses(&p) > 0;
    if (wick_finetune_save(finetune, adapter, &error) != WICK_OK) fail_msg("%s", error.message);
    wick_finetune_finish(finetune);
    wick_examples_free(examples);
    close_place(&p);
    read_adapter(t);
    unlink(checkpoint);
    return was_lost;
}

static void check_same(const trained *got, const trained *want) {
    assert_memory_equal(got->losses, want->losses, sizeof want->losses);
    assert_true(got->perplexity == want->perplexity);
    assert_int_equal(got->size, want->size);
    assert_memory_equal(got->file, want->file, want->size);
}

/* At any place of the training, one after the other. */
static void lose_anywhere(run r, uint64_t n_places) {
    static trained want, got;
    uint64_t n_lost = 0, n_late = 0;
    assert_false(train(&r, &want));
    for (uint64_t i = 0; i < n_places; i++) {
        r.is_late = i % 2 != 0;
        r.lose_at = 1 + i * 5 % 37;
        r.lose_after = 1 + i * 97 % 1500;
        if (!train(&r, &got)) continue;
        n_lost++;
        n_late += got.last_restored > 0;
        check_same(&got, &want);
    }
    print_message("lost in %u of %u trainings, %u of them after a checkpoint\n", (unsigned)n_lost,
                  (unsigned)n_places, (unsigned)n_late);
    assert_true(n_lost >= n_places / 2);
    assert_true((n_late > 0) == (r.every > 0));
}

static uint64_t n_places(void) {
    if (!tests_all()) return is_sanitized() ? 8 : 12;
    return is_sanitized() ? 40 : 80;
}

static void test_from_checkpoints(void **state) {
    (void)state;
    lose_anywhere((run){.every = 2}, n_places());
}

/* No checkpoint is written before the end. */
static void test_from_the_beginning(void **state) {
    (void)state;
    lose_anywhere((run){.every = 0}, n_places());
}

static void test_dropout_and_segments(void **state) {
    (void)state;
    lose_anywhere((run){.every = 1, .dropout = 0.2, .recompute = true}, n_places());
}

/* No device lives long enough: it is given up, with a sentence, and can be resumed later. */
static void test_too_often(void **state) {
    static trained want, got;
    (void)state;
    const run r = {.every = 1};
    assert_false(train(&r, &want));
    place p;
    wick_error error = {.status = WICK_OK};
    got = (trained){.size = 0};
    open_place(&p, false);
    wick_examples *const examples = make_examples(p.model);
    wick_finetune *finetune = start(&p, examples, &r);
    wick_finetune_event event = {.kind = WICK_FINETUNE_WORKING};
    while (event.kind != WICK_FINETUNE_CHECKPOINT || event.step < 2) {
        assert_int_equal(wick_finetune_poll(finetune, &event, &error), WICK_PENDING);
        note(&got, &event);
    }
    lose_each_after(&p, 700);
    wk_null_lose_after(p.device->handle, 20);
    assert_int_equal(poll_all(finetune, UINT64_MAX, &got, &error), WICK_ERR_DEVICE_LOST);
    assert_non_null(strstr(error.message, "given up"));
    assert_int_equal(wick_finetune_poll(finetune, NULL, NULL), WICK_ERR_DEVICE_LOST);
    assert_int_equal(wick_finetune_save(finetune, adapter, &error), WICK_ERR_STATE);
    assert_int_equal(wick_finetune_checkpoint(finetune, &error), WICK_ERR_STATE);
    wick_finetune_finish(finetune);

    lose_each_after(&p, 0);
    assert_int_equal(wick_device_error(p.device, NULL), WICK_OK);
    const wick_finetune_desc desc = {.rank = 2,
                                     .targets = WICK_TARGET_Q | WICK_TARGET_DOWN,
                                     .rate = 1e-2,
                                     .steps = N_STEPS,
                                     .batch = 2,
                                     .held_out = 0.2,
                                     .checkpoint = checkpoint,
                                     .every = 1,
                                     .resume = true};
    if (wick_finetune_start(p.model, examples, &desc, &finetune, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(poll_all(finetune, UINT64_MAX, &got, &error), WICK_OK);
    assert_int_equal(wick_finetune_save(finetune, adapter, &error), WICK_OK);
    wick_finetune_finish(finetune);
    wick_examples_free(examples);
    close_place(&p);
    read_adapter(&got);
    unlink(checkpoint);
    check_same(&got, &want);
}

int main(void) {
    snprintf(checkpoint, sizeof checkpoint, "/tmp/wick-training-%ld.checkpoint", (long)getpid());
    snprintf(adapter, sizeof adapter, "/tmp/wick-training-%ld.gguf", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_checkpoints),
        cmocka_unit_test(test_from_the_beginning),
        cmocka_unit_test(test_dropout_and_segments),
        cmocka_unit_test(test_too_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
