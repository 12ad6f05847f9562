/* model/rope.c: rotary frequencies and their scaling: linear (Chen et al., 2023), YaRN (Peng et
 * al., 2023) and divisors from the file (Llama 3); rows of cos and sin in float64. */
#include "model/rope.h"

#include "core/status.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

static const double two_pi = 6.283185307179586476925286766559;

typedef struct scaling {
    bool is_yarn;
    double factor; /* positions are divided by it */
    double base, original_length, beta_fast, beta_slow, attn_factor;
} scaling;

static wick_status positive(const wk_metadata *meta, const char *suffix, const double *fallback,
                            double *out) {
    WK_TRY(wk_metadata_f64(meta, suffix, fallback, out));
    if (*out > 0.0) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_FORMAT, "the metadata key '%s' is %g, but must be positive",
                   wk_metadata_key(meta, suffix).text, *out);
}

/* What YaRN's keys say beyond the paper's standard values is refused rather than ignored. */
static wick_status refuse_unless_one(const wk_metadata *meta, const char *suffix) {
    const double one = 1.0;
    double value;
    WK_TRY(wk_metadata_f64(meta, suffix, &one, &value));
    if (value == one) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_UNSUPPORTED,
                   "the metadata key '%s' is %g, only 1 is supported",
                   wk_metadata_key(meta, suffix).text, value);
}

static wick_status read_yarn(const wk_metadata *meta, scaling *out) {
    static const double one = 1.0, fast = 32.0, slow = 1.0;
    uint32_t length;
    WK_TRY(wk_metadata_u32(meta, "rope.scaling.original_context_length",
                           (wk_u32_rule){1, INT32_MAX, NULL}, &length));
    out->original_length = length;
    WK_TRY(positive(meta, "rope.scaling.attn_factor", &one, &out->attn_factor));
    WK_TRY(positive(meta, "rope.scaling.yarn_beta_fast", &fast, &out->beta_fast));
    WK_TRY(positive(meta, "rope.scaling.yarn_beta_slow", &slow, &out->beta_slow));
    WK_TRY(refuse_unless_one(meta, "rope.scaling.yarn_ext_factor"));
    WK_TRY(refuse_unless_one(meta, "rope.scaling.yarn_attn_factor"));
    if (out->base <= 1.0)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is %g, but YaRN needs more than 1",
                       wk_metadata_key(meta, "rope.freq_base").text, out->base);
    out->is_yarn = true;
    return WICK_OK;
}

/* Without a type a factor means linear; so does the older key rope.scale_linear. */
static wick_status read_scaling(const wk_metadata *meta, scaling *out) {
    static const double one = 1.0, default_base = 10000.0;
    wk_str type;
    WK_TRY(positive(meta, "rope.freq_base", &default_base, &out->base));
    WK_TRY(positive(meta, "rope.scale_linear", &one, &out->factor));
    WK_TRY(positive(meta, "rope.scaling.factor", &out->factor, &out->factor));
    WK_TRY(wk_metadata_string(meta, "rope.scaling.type", &type));
    if (wk_str_is(type, "none")) out->factor = 1.0;
    if (type.size == 0 || wk_str_is(type, "none") || wk_str_is(type, "linear")) return WICK_OK;
    if (wk_str_is(type, "yarn")) return read_yarn(meta, out);
    return wk_fail(meta->err, WICK_ERR_UNSUPPORTED,
                   "the rotary scaling '%s' (%s) is not supported yet", wk_str_show(type).text,
                   wk_metadata_key(meta, "rope.scaling.type").text);
}

/* The (real) index of the pair that turns beta times over the original context. */
static double pair_of_turns(const scaling *s, uint32_t n_pairs, double beta) {
    return n_pairs * log(s->original_length / (beta * two_pi)) / log(s->base);
}

/* Pairs below the ramp keep their frequency, those above it are interpolated, between them both
 * are mixed. */
static double yarn_frequency(const scaling *s, uint32_t n_pairs, uint32_t i, double frequency) {
    const double low = fmax(floor(pair_of_turns(s, n_pairs, s->beta_fast)), 0.0);
    double high = fmin(ceil(pair_of_turns(s, n_pairs, s->beta_slow)), 2.0 * n_pairs - 1.0);
    if (high == low) high += 0.001; /* a step instead of a ramp */
    const double ramp = fmin(fmax((i - low) / (high - low), 0.0), 1.0);
    return frequency / s->factor * ramp + frequency * (1.0 - ramp);
}

wick_status wk_rope_add(const wk_metadata *meta, wk_hparams *hparams) {
    assert(hparams->n_ropes < WK_MAX_ROPES);
    uint32_t n_dims;
    WK_TRY(wk_metadata_u32(meta, "rope.dimension_count",
                           (wk_u32_rule){2, hparams->head_dim, &hparams->head_dim}, &n_dims));
    if (n_dims % 2 != 0)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is %" PRIu32 ", but must be even",
                       wk_metadata_key(meta, "rope.dimension_count").text, n_dims);
    scaling s = {.is_yarn = false};
    WK_TRY(read_scaling(meta, &s));

    const uint32_t n_pairs = n_dims / 2;
    double *const frequency = wk_arena_array(meta->arena, n_pairs, sizeof *frequency);
    if (frequency == NULL)
        return wk_fail_memory(meta->err, n_pairs * sizeof *frequency, 0, "rotary frequencies");
    for (uint32_t i = 0; i < n_pairs; i++) {
        const double plain = pow(s.base, -2.0 * i / n_dims);
        frequency[i] = s.is_yarn ? yarn_frequency(&s, n_pairs, i, plain) : plain / s.factor;
    }
    const bool is_longer = s.is_yarn && s.factor > 1.0;
    hparams->rope[hparams->n_ropes].n_pairs = n_pairs;
    hparams->rope[hparams->n_ropes].frequency = frequency;
    hparams->rope[hparams->n_ropes].magnitude =
        s.is_yarn ? s.attn_factor * (is_longer ? 1.0 + 0.1 * log(s.factor) : 1.0) : 1.0;
    hparams->n_ropes++;
    return WICK_OK;
}

wick_status wk_rope_divide(wk_arena *arena, wk_hparams *hparams, const float *divisors, uint32_t n,
                           wick_error *err) {
    for (uint32_t i = 0; i < n; i++) {
        if (!(divisors[i] > 0.0F))
            return wk_fail(err, WICK_ERR_FORMAT, "the rotary divisor %" PRIu32 " is %g", i,
                           (double)divisors[i]);
    }
    for (uint32_t r = 0; r < hparams->n_ropes; r++) {
        assert(hparams->rope[r].n_pairs == n);
        double *const frequency = wk_arena_array(arena, n, sizeof *frequency);
        if (frequency == NULL)
            return wk_fail_memory(err, n * sizeof *frequency, 0, "rotary frequencies");
        for (uint32_t i = 0; i < n; i++)
            frequency[i] = hparams->rope[r].frequency[i] / (double)divisors[i];
        hparams->rope[r].frequency = frequency;
    }
    return WICK_OK;
}

void wk_rope_rows(const wk_hparams *hparams, uint32_t i, const uint32_t *positions, uint32_t n,
                  float *cos_rows, float *sin_rows) {
    assert(i < hparams->n_ropes);
    const uint32_t n_pairs = hparams->rope[i].n_pairs;
    const double magnitude = hparams->rope[i].magnitude;
    for (uint32_t row = 0; row < n; row++) {
        for (uint32_t pair = 0; pair < n_pairs; pair++) {
            const double angle = positions[row] * hparams->rope[i].frequency[pair];
            cos_rows[(size_t)row * n_pairs + pair] = (float)(magnitude * cos(angle));
            sin_rows[(size_t)row * n_pairs + pair] = (float)(magnitude * sin(angle));
        }
    }
}
