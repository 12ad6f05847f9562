/* backend/cpu/ref/random.c: random numbers of Philox 4x32-10: each element of its own number alone.
 *
 * Uniform ones are defined in the arithmetic of their dtype (float32 for the 16-bit ones), so that
 * every device gives the same bits; normal ones are Box and Muller's (1958), in float64. */
#include "backend/cpu/ref/ref.h"

#include "core/rng.h"

#include <math.h>

enum { WORDS = 4 }; /* of a block */

/* What the elements of an op come from: a block gives four numbers of 24 bits, or two of 53. */
typedef struct source {
    uint32_t key[2], stream[2];
    bool is_wide;
    wk_random_fn fn;
    int n; /* numbers of a block */
} source;

static source source_of(const wk_op *op) {
    const wk_row state = wk_row_at(wk_src(op, 0), 0);
    source s = {.is_wide = wk_dst(op, 0)->dtype == WICK_F64, .fn = op->p.random.fn};
    s.n = s.is_wide ? WORDS / 2 : WORDS;
    for (int i = 0; i < 2; i++) {
        s.key[i] = (uint32_t)wk_row_integer_at(&state, i);
        s.stream[i] = (uint32_t)wk_row_integer_at(&state, 2 + i);
    }
    return s;
}

static double uniform_of(const uint32_t *words, bool is_wide) {
    if (!is_wide) return (double)(words[0] >> 8) * 0x1p-24;
    const uint64_t bits = (uint64_t)words[0] << 32 | words[1];
    return (double)(bits >> 11) * 0x1p-53;
}

/* Pairs of uniform numbers to pairs of normal ones; the first is moved up by its last bit, to
 * (0, 1], so that its logarithm is finite. */
static void make_normal(const source *s, double *numbers) {
    static const double two_pi = 6.28318530717958647692;
    const double step = s->is_wide ? 0x1p-53 : 0x1p-24;
    for (int i = 0; i < s->n; i += 2) {
        const double radius = sqrt(-2 * log(numbers[i] + step)), angle = two_pi * numbers[i + 1];
        numbers[i] = radius * cos(angle);
        numbers[i + 1] = radius * sin(angle);
    }
}

static void make_block(const source *s, uint64_t block, double numbers[WORDS]) {
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), s->stream[0],
                                 s->stream[1]};
    uint32_t words[WORDS];
    wk_philox(counter, s->key, words);
    for (int i = 0; i < s->n; i++) {
        const uint32_t *const at = words + i * (WORDS / s->n);
        numbers[i] = s->fn == WK_RANDOM_BITS ? (double)*at : uniform_of(at, s->is_wide);
    }
    if (s->fn == WK_RANDOM_NORMAL) make_normal(s, numbers);
}

/* Numbers [begin, begin + n) of the stream. */
static void draw(const source *s, uint64_t begin, int64_t n, double *to) {
    uint64_t block = begin / (uint64_t)s->n;
    int at = (int)(begin % (uint64_t)s->n);
    for (int64_t i = 0; i < n; at = 0) {
        double numbers[WORDS];
        make_block(s, block++, numbers);
        while (at < s->n && i < n) to[i++] = numbers[at++];
    }
}

static double uniform_in(const wk_random_scaling *s, double u, bool is_wide) {
    double value = s->shift + s->scale * u;
    if (!is_wide) {
        const float part = (float)s->scale * (float)u;
        value = (double)((float)s->shift + part);
    }
    return fmin(fmax(value, s->least), s->most);
}

/* Numbers to elements. */
static void scale(const source *from, const wk_random_scaling *s, int64_t n, double *numbers) {
    if (from->fn == WK_RANDOM_BITS) return;
    for (int64_t i = 0; i < n; i++)
        numbers[i] = from->fn == WK_RANDOM_NORMAL ? s->shift + s->scale * numbers[i]
                                                  : uniform_in(s, numbers[i], from->is_wide);
}

/* Elements [begin, end) of y, in chunks that lie in one row. */
static void run_random(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const y = wk_dst(run->op, 0);
    const wk_params *const p = &run->op->p;
    const source from = source_of(run->op);
    wk_random_scaling scaling = {0};
    double numbers[WK_REF_CHUNK];
    if (from.fn != WK_RANDOM_BITS) (void)wk_random_scale(y->dtype, p, &scaling);
    for (int64_t i = begin; i < end;) {
        const int64_t extent = y->rank > 0 ? y->extent[y->rank - 1] : 1, at = i % extent;
        const wk_row row = wk_row_at(y, i / extent);
        int64_t n = extent - at < end - i ? extent - at : end - i;
        if (n > WK_REF_CHUNK) n = WK_REF_CHUNK;
        draw(&from, p->random.first + (uint64_t)i, n, numbers);
        scale(&from, &scaling, n, numbers);
        wk_row_store(&row, at, n, numbers);
        i += n;
    }
}

static int64_t random_items(const wk_op *op, int phase) {
    (void)phase;
    return wk_view_count(wk_dst(op, 0));
}

static int64_t random_grain(const wk_op *op, int phase) {
    (void)op, (void)phase;
    return WK_REF_CHUNK;
}

const wk_cpu_kernel wk_random_ref = {
    .base.name = "random_ref",
    .base.code = WK_OP_RANDOM,
    .base.is_reference = true,
    .n_phases = 1,
    .items = random_items,
    .grain = random_grain,
    .run = run_random,
};
