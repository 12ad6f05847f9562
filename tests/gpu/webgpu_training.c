/* usage: webgpu_training [--backend webgpu] --webgpu-lib LIBRARY
 * An adapter of stories260K trained on a GPU: its losses are those of the CPU within 1 %, also
 * where the GPU is taken away on the way, as Dawn can do it on request. With the drivers that the
 * environment names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amount.h"
#include "backend/webgpu/gpu/gpu.h"
#include "backend/webgpu/webgpu.h"
#include "loss.h"

#include <wick/finetune.h>

#include <math.h>
#include <unistd.h>

enum { N_STEPS = 8 };

static const char *library;
static const char text[] =
    "There was once a miller who left no more estate to the three sons he had than his mill, his "
    "ass, and his cat. The partition was soon made. Neither scrivener nor attorney was sent for. "
    "They would soon have eaten up all the poor patrimony. The eldest had the mill, the second the "
    "ass, and the youngest nothing but the cat.";

typedef struct curve {
    double losses[N_STEPS + 1]; /* of step i, from 1 on */
    double held_out[2];         /* perplexities before the first and after the last step */
    uint64_t n_steps, n_ops, n_fallbacks, n_losses;
} curve;

static void note(curve *c, const wick_finetune_event *event) {
    if (event->kind == WICK_FINETUNE_STEP) c->losses[event->step] = event->loss;
    if (event->kind == WICK_FINETUNE_HELD_OUT) c->held_out[event->step > 0] = event->perplexity;
}

/* path NULL: without a file. */
static wick_finetune *start(wick_model *model, const wick_examples *examples, const char *path) {
    wick_finetune *finetune;
    wick_error error = {.status = WICK_OK};
    const wick_finetune_desc desc = {.rate = 2e-3,
                                     .schedule = WICK_SCHEDULE_COSINE,
                                     .warmup = 2,
                                     .steps = N_STEPS,
                                     .batch = 4,
                                     .held_out = 0.2,
                                     .checkpoint = path,
                                     .every = 3};
    if (wick_finetune_start(model, examples, &desc, &finetune, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return finetune;
}

/* To memory, while the training goes on. */
static void save_state(wick_finetune *finetune, uint64_t step, bool *is_saving) {
    const void *bytes;
    size_t size;
    if (step % 3 == 0 && !*is_saving) {
        assert_int_equal(wick_finetune_save_start(finetune, WICK_FINETUNE_STATE, NULL), WICK_OK);
        *is_saving = true;
    }
    if (*is_saving) *is_saving = wick_finetune_save_poll(finetune, &bytes, &size, NULL) != WICK_OK;
}

/* lose_at: the device goes after this step; 0: it stays. in_memory: there is no file. */
static void train(wick_backend backend, uint64_t lose_at, bool in_memory, curve *c) {
    wick_device *device = NULL;
    wick_model *model = NULL;
    wick_examples *examples;
    wick_error error = {.status = WICK_OK};
    char path[64];
    snprintf(path, sizeof path, "/tmp/wick-gpu-training-%ld", (long)getpid());
    const wick_device_desc desc = {.backend = backend, .webgpu.library = library};
    if (wick_device_open(&desc, &device, &error) != WICK_OK ||
        wick_model_open(device, stories_path(), NULL, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(wick_examples_make(model, 32, &examples, NULL), WICK_OK);
    assert_int_equal(wick_examples_add_text(examples, text, sizeof text - 1, NULL), WICK_OK);
    wick_finetune *const finetune = start(model, examples, in_memory ? NULL : path);
    bool is_saving = false;
    wick_finetune_event event;
    wick_status status;
    while ((status = wick_finetune_poll(finetune, &event, &error)) == WICK_PENDING) {
        note(c, &event);
        if (event.kind == WICK_FINETUNE_WORKING) wick_pause(device);
        c->n_steps += event.kind == WICK_FINETUNE_STEP;
        if (in_memory && event.step > 0) save_state(finetune, event.step, &is_saving);
        if (event.kind != WICK_FINETUNE_STEP || event.step != lose_at) continue;
        assert_true(wk_webgpu_lose(device->handle));
        lose_at = 0; /* once */
    }
    if (status != WICK_OK) fail_msg("%s", error.message);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    c->n_ops = stats.n_ops;
    c->n_fallbacks = stats.n_fallbacks;
    c->n_losses = stats.n_losses;
    wick_finetune_finish(finetune);
    wick_examples_free(examples);
    wick_model_close(model);
    wick_device_close(device);
    unlink(path);
}

/* The one that nothing happens to: on a GPU it takes long, its kernels compiled. */
static const curve *whole(wick_backend backend) {
    static curve found[2];
    curve *const c = &found[backend == WICK_BACKEND_WEBGPU];
    if (c->n_steps == 0) train(backend, 0, false, c);
    return c;
}

static void check_same(const curve *got, const curve *want, double most) {
    double largest = 0;
    for (int i = 1; i <= N_STEPS; i++)
        largest = fmax(largest, fabs(got->losses[i] / want->losses[i] - 1));
    for (int i = 0; i < 2; i++)
        largest = fmax(largest, fabs(got->held_out[i] / want->held_out[i] - 1));
    print_message("loss from %.4f to %.4f, at most %.2g off\n", got->losses[1],
                  got->losses[N_STEPS], largest);
    assert_true(largest < most);
    assert_true(got->losses[N_STEPS] < got->losses[1]);
}

static void test_same_as_cpu(void **state) {
    (void)state;
    const curve *const gpu = whole(WICK_BACKEND_WEBGPU);
    check_same(gpu, whole(WICK_BACKEND_CPU), 0.01);
    print_message("%u operations, %u fell back to the CPU\n", (unsigned)gpu->n_ops,
                  (unsigned)gpu->n_fallbacks);
    assert_int_equal(gpu->n_fallbacks, 0);
}

static bool can_lose(void) {
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU, .webgpu.library = library};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    const bool is_lost = wk_webgpu_lose(device->handle);
    wick_device_close(device);
    return is_lost;
}

/* After step 5: steps 4 and 5 are made again. */
static void check_lost(bool in_memory) {
    if (!can_lose()) {
        print_message("only Dawn can take a device away\n");
        skip();
    }
    curve lost = {.n_ops = 0};
    train(WICK_BACKEND_WEBGPU, 5, in_memory, &lost);
    assert_int_equal(lost.n_losses, 1);
    assert_int_equal(lost.n_steps, N_STEPS + 2);
    check_same(&lost, whole(WICK_BACKEND_WEBGPU), 1e-4);
}

/* In `make test` webgpu_loss takes GPUs away, and fault/test_training devices on the way. */
static void test_lost_with_file(void **state) {
    (void)state;
    skip_unless_all();
    check_lost(false);
}

static void test_lost_in_memory(void **state) {
    (void)state;
    skip_unless_all();
    check_lost(true);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_cpu),
        cmocka_unit_test(test_lost_with_file),
        cmocka_unit_test(test_lost_in_memory),
    };
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--webgpu-lib") == 0) library = argv[i + 1];
    wick_error reason = {0};
    const wick_webgpu_desc webgpu = {.library = library};
    if (library && wk_gpu_available(&webgpu, false, &reason) == WICK_OK)
        return cmocka_run_group_tests(tests, NULL, NULL);
    printf("skipped: %s\n", library ? reason.message : "no --webgpu-lib was given");
    return 77;
}
