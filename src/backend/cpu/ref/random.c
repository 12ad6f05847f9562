/* backend/cpu/ref/random.c: random numbers of Philox 4x32-10: each element of its own number alone.
 *
 * Uniform ones are defined in the arithmetic of their dtype (float32 for the 16-bit ones), so that
 * every device gives the same bits; normal ones are Box and Muller's (1958), in float64. */
#include "backend/cpu/ref/ref.h"

#include "core/rng.h"

#include <math.h>

/* A block of four words, and the numbers it gives: four of 24 bits, or two of 53 for float64. */
enum { WORDS = 4 };

static double uniform_of(const uint32_t *words, bool is_wide) {
    if (!is_wide) return (double)(words[0] >> 8) * 0x1p-24;
    const uint64_t bits = (uint64_t)words[0] << 32 | words[1];
    return (double)(bits >> 11) * 0x1p-53;
}

/* Pairs of uniform numbers to pairs of normal ones: the first as 1 - ulp ... 0, of which 1 is the
 * next above, so that its logarithm is finite. */
static void make_normal(double *numbers, int n, bool is_wide) {
    static const double two_pi = 6.28318530717958647692;
    const double step = is_wide ? 0x1p-53 : 0x1p-24;
    for (int i = 0; i < n; i += 2) {
        const double radius = sqrt(-2 * log(numbers[i] + step)), angle = two_pi * numbers[i + 1];
        numbers[i] = radius * cos(angle);
        numbers[i + 1] = radius * sin(angle);
    }
}

/* Philox's key and the upper half of its counter. */
static void load_state(const wk_view *view, uint32_t key[2], uint32_t counter[4]) {
    const wk_ref_row row = wk_ref_row_at(view, 0);
    for (int i = 0; i < 2; i++) {
        key[i] = (uint32_t)wk_ref_integer_at(&row, i);
        counter[2 + i] = (uint32_t)wk_ref_integer_at(&row, 2 + i);
    }
}

/* Numbers [begin, begin + n) of the stream. */
static void draw(const wk_op *op, uint64_t begin, int64_t n, double *to) {
    const bool is_wide = wk_dst(op, 0)->dtype == WICK_F64;
    const int words_each = is_wide ? 2 : 1, n_numbers = WORDS / words_each;
    uint32_t key[2], counter[4], words[WORDS];
    double numbers[WORDS];
    load_state(wk_src(op, 0), key, counter);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t number = begin + (uint64_t)i, block = number / (uint64_t)n_numbers;
        const int at = (int)(number % (uint64_t)n_numbers);
        if (i == 0 || at == 0) {
            counter[0] = (uint32_t)block;
            counter[1] = (uint32_t)(block >> 32);
            wk_philox(counter, key, words);
            for (int k = 0; k < n_numbers; k++)
                numbers[k] = uniform_of(words + k * words_each, is_wide);
            if (op->p.random.fn == WK_RANDOM_NORMAL) make_normal(numbers, n_numbers, is_wide);
        }
        to[i] = numbers[at];
    }
}

static double bounded(const wk_random_scaling *s, double value) {
    return fmin(fmax(value, s->least), s->most);
}

static void scale(const wk_op *op, int64_t n, double *numbers) {
    const bool is_wide = wk_dst(op, 0)->dtype == WICK_F64;
    const bool is_uniform = op->p.random.fn == WK_RANDOM_UNIFORM;
    wk_random_scaling s;
    (void)wk_random_scale(wk_dst(op, 0)->dtype, &op->p, &s);
    for (int64_t i = 0; i < n; i++) {
        if (is_uniform && !is_wide) {
            const float part = (float)s.scale * (float)numbers[i];
            numbers[i] = bounded(&s, (double)((float)s.shift + part));
        } else {
            const double value = s.shift + s.scale * numbers[i];
            numbers[i] = is_uniform ? bounded(&s, value) : value;
        }
    }
}

/* Elements [begin, end) of y, in chunks that lie in one row. */
static void run_random(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const y = wk_dst(run->op, 0);
    double numbers[WK_REF_CHUNK];
    for (int64_t i = begin; i < end;) {
        const int64_t extent = y->rank > 0 ? y->extent[y->rank - 1] : 1, at = i % extent;
        const wk_ref_row row = wk_ref_row_at(y, i / extent);
        int64_t n = extent - at < end - i ? extent - at : end - i;
        if (n > WK_REF_CHUNK) n = WK_REF_CHUNK;
        draw(run->op, run->op->p.random.first + (uint64_t)i, n, numbers);
        scale(run->op, n, numbers);
        wk_ref_store(&row, at, n, numbers);
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
    .base = {.name = "random_ref", .is_reference = true},
    .code = WK_OP_RANDOM,
    .n_phases = 1,
    .items = random_items,
    .grain = random_grain,
    .run = run_random,
};
