/* examples/train_stories.c: trains a small language model of bytes from scratch on a text of tales.
 *
 *   cc train_stories.c $(pkg-config --cflags --libs wick) -o train_stories
 *   ./train_stories tales.txt 2000    (steps; it prints the loss in nats a byte, then a story)
 */
#include <stdio.h>
#include <stdlib.h>
#include <wick/wick.h>

enum { WIDTH = 64, HEADS = 4, LAYERS = 2, VOCAB = 256, CONTEXT = 64, BATCH = 16 };
enum { QKV, OUT, UP, DOWN, PER_LAYER, EMBED = LAYERS * PER_LAYER, N_PARAMS, STORY = 400 };
static wick_device *device;
static wick_tensor *params[N_PARAMS];

/* x [b * t, WIDTH]: what the bytes of each of b texts see of those before them. */
static wick_tensor *attend(wick_tensor *const *p, wick_tensor *x, int64_t b) {
    x = wick_reshape(wick_linear(x, p[QKV], NULL), WICK_SHAPE(b, -1, 3 * HEADS, WIDTH / HEADS));
    x = wick_transpose(x, 1, 2);
    wick_tensor *const q = wick_rope(wick_narrow(x, 1, 0, HEADS), NULL, NULL);
    wick_tensor *const k = wick_rope(wick_narrow(x, 1, HEADS, HEADS), NULL, NULL);
    wick_tensor *const v = wick_narrow(x, 1, 2 * HEADS, HEADS);
    x = wick_attention(q, k, v, &(wick_attention_desc){.causal = true});
    return wick_linear(wick_reshape(wick_transpose(x, 1, 2), WICK_SHAPE(-1, WIDTH)), p[OUT], NULL);
}

/* ids [b, t]: logits of the byte after each, [b * t, VOCAB]. */
static wick_tensor *predict(wick_tensor *ids) {
    wick_tensor *x = wick_embedding(params[EMBED], wick_cast(wick_flatten(ids, 0, -1), WICK_U32));
    for (wick_tensor *const *p = params; p < params + EMBED; p += PER_LAYER) {
        x = wick_add(x, attend(p, wick_rms_norm(x, NULL, 1e-5F), wick_tensor_shape(ids).extent[0]));
        wick_tensor *const y = wick_linear(wick_rms_norm(x, NULL, 1e-5F), p[UP], NULL);
        x = wick_add(x, wick_matmul(wick_gelu(y), p[DOWN]));
    }
    return wick_linear(wick_rms_norm(x, NULL, 1e-5F), params[EMBED], NULL);
}

/* One step, with BATCH pieces of the text and the byte after each; gives the loss, a scalar. */
static wick_tensor *step(wick_optimizer *optimizer, wick_tensor *text, double rate) {
    const double n = (double)wick_tensor_size(text) - CONTEXT;
    wick_tensor *at = wick_rand(device, WICK_F32, WICK_SHAPE(BATCH, 1), 0, n), *grads[N_PARAMS];
    at = wick_add(wick_cast(at, WICK_U32), wick_arange(device, WICK_U32, 0, CONTEXT + 1, 1));
    at = wick_reshape(wick_index_select(text, 0, wick_flatten(at, 0, -1)), wick_tensor_shape(at));
    wick_tensor *const next = wick_flatten(wick_narrow(at, 1, 1, CONTEXT), 0, -1);
    wick_tape *tape;
    if (wick_tape_begin(device, &tape) != WICK_OK) return NULL;
    for (int i = 0; i < N_PARAMS; i++) (void)wick_tape_watch(tape, params[i]);
    at = wick_cross_entropy(predict(wick_narrow(at, 1, 0, CONTEXT)), next, NULL);
    if (wick_grad(tape, at, NULL, params, N_PARAMS, grads) == WICK_OK)
        (void)wick_optimizer_step(optimizer, grads, rate);
    wick_tape_end(tape);
    return at;
}

/* Over the text, after its first CONTEXT bytes: draws each from those that are likely there. */
static void tell(wick_tensor *text) {
    for (int64_t i = CONTEXT; i < STORY; i++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *x = wick_unsqueeze(wick_narrow(text, 0, i - CONTEXT, CONTEXT), 0);
        wick_tensor *const u = wick_rand(device, WICK_F32, WICK_SHAPE(1, VOCAB), 1e-6, 1);
        x = wick_affine(wick_narrow(predict(x), 0, CONTEXT - 1, 1), 1.5, 0);
        x = wick_argmax(wick_sub(x, wick_log(wick_neg(wick_log(u)))), 1, false); /* Gumbel, 1954 */
        (void)wick_copy(wick_narrow(text, 0, i, 1), wick_cast(x, WICK_U8));
        wick_scope_end(scope);
    }
}

int main(int argc, char **argv) {
    static const int rows[] = {3 * WIDTH, WIDTH, 256, 256, 3 * WIDTH, WIDTH, 256, 256, VOCAB};
    static unsigned char bytes[1 << 20];
    FILE *const file = fopen(argc > 1 ? argv[1] : "", "rb");
    const size_t size = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    const uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 200;
    const wick_schedule rates = {WICK_SCHEDULE_COSINE, .rate = 5e-3, .warmup = 20, .steps = n};
    const wick_optimizer_desc adamw = {.kind = WICK_OPTIMIZER_ADAMW};
    wick_error error = {.message = "give a text of tales"};
    if (size < STORY || wick_device_open(NULL, &device, &error) != WICK_OK)
        return fprintf(stderr, "%s\n", error.message);
    const wick_scope scope = wick_scope_begin(device);
    wick_optimizer *optimizer = NULL;
    double loss;
    const wick_shape shape = WICK_SHAPE((int64_t)size);
    wick_tensor *const text = wick_tensor_from_data(device, WICK_U8, shape, bytes, size);
    for (int i = 0; i < N_PARAMS; i++)
        params[i] = wick_randn(device, WICK_F32, WICK_SHAPE(rows[i], WIDTH), 0, 0.08);
    (void)wick_optimizer_make(&adamw, params, NULL, N_PARAMS, &optimizer);
    for (uint64_t i = 0; optimizer != NULL && i < n; i++) {
        const wick_scope inner = wick_scope_begin(device); /* frees the step's tensors */
        wick_tensor *const x = step(optimizer, text, wick_schedule_rate(&rates, i));
        if (i % 20 == 19 && wick_read_scalar(x, &loss) == WICK_OK)
            printf("step %d: loss %.3f\n", (int)i + 1, loss);
        wick_scope_end(inner);
    }
    tell(text);
    if (wick_read(text, bytes, size) == WICK_OK) printf("%.*s\n", STORY, (char *)bytes);
    wick_optimizer_free(optimizer);
    wick_scope_end(scope);
    if (wick_device_error(device, &error) != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_device_close(device);
    return error.status == WICK_OK ? 0 : 1;
}
