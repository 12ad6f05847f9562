/* model/rope.c: rotary frequencies and their scaling: linear (Chen et al., 2023), YaRN (Peng et
 * al., 2023) and divisors from the file (Llama 3); rows of cos and sin in float64. */
#include "model/rope.h"

#include "core/status.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

static const double two_pi = 6.283185307179586476925286766559;

typedef struct scaling {
    bool is_yarn, is_ramp_exact;
    uint32_t original_context;
    double factor; /* positions are divided by it */
    double base, beta_fast, beta_slow, attn_factor;
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

static const char original_key[] = "rope.scaling.original_context_length";

static wick_status read_yarn(const wk_metadata *meta, scaling *out) {
    static const double fast = 32.0, slow = 1.0;
    const uint32_t trained = out->original_context; /* where the file does not say it */
    WK_TRY(wk_metadata_u32(meta, original_key, (wk_u32_rule){1, INT32_MAX, &trained},
                           &out->original_context));
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

/* Without a type a factor means linear; so does the older key rope.scale_linear. A model with long
 * and short divisors says so by having them. */
static wick_status read_scaling(const wk_metadata *meta, scaling *out) {
    static const double one = 1.0;
    wk_str type;
    WK_TRY(positive(meta, "rope.scale_linear", &one, &out->factor));
    WK_TRY(wk_metadata_f64(meta, "rope.scaling.factor", &out->factor, &out->factor));
    if (out->factor == 0.0)
        out->factor = 1.0; /* none */
    else
        WK_TRY(positive(meta, "rope.scaling.factor", &out->factor, &out->factor));
    WK_TRY(wk_metadata_string(meta, "rope.scaling.type", &type));
    WK_TRY(positive(meta, "rope.scaling.attn_factor", &one, &out->attn_factor));
    WK_TRY(wk_metadata_u32(meta, original_key, (wk_u32_rule){0, INT32_MAX, &out->original_context},
                           &out->original_context));
    const bool is_long = wk_str_is(type, "longrope"); /* by divisors: Ding et al., 2024 */
    if (wk_str_is(type, "none") || is_long) out->factor = 1.0;
    if (type.size == 0 || wk_str_is(type, "none") || wk_str_is(type, "linear") || is_long)
        return WICK_OK;
    if (wk_str_is(type, "yarn")) return read_yarn(meta, out);
    return wk_fail(meta->err, WICK_ERR_UNSUPPORTED,
                   "the rotary scaling '%s' (%s) is not supported yet", wk_str_show(type).text,
                   wk_metadata_key(meta, "rope.scaling.type").text);
}

/* The (real) index of the pair that turns beta times over the original context. */
static double pair_of_turns(const scaling *s, uint32_t n_pairs, double beta) {
    return n_pairs * log(s->original_context / (beta * two_pi)) / log(s->base);
}

/* Pairs below the ramp keep their frequency, those above it are interpolated, between them both
 * are mixed. */
static double yarn_frequency(const scaling *s, uint32_t n_pairs, uint32_t i, double frequency) {
    assert(s->original_context > 0 && s->base > 1.0 && n_pairs > 0);
    const double fast = pair_of_turns(s, n_pairs, s->beta_fast);
    const double slow = pair_of_turns(s, n_pairs, s->beta_slow);
    const double low = fmax(s->is_ramp_exact ? fast : floor(fast), 0.0);
    double high = fmin(s->is_ramp_exact ? slow : ceil(slow), 2.0 * n_pairs - 1.0);
    if (high == low) high += 0.001; /* a step instead of a ramp */
    const double ramp = fmin(fmax((i - low) / (high - low), 0.0), 1.0);
    return frequency / s->factor * ramp + frequency * (1.0 - ramp);
}

static wick_status read_pairs(const wk_metadata *meta, const wk_rope_desc *desc,
                              uint32_t *n_pairs) {
    const char *const key =
        desc->dimensions_key != NULL ? desc->dimensions_key : "rope.dimension_count";
    uint32_t n_dims;
    WK_TRY(wk_metadata_u32(meta, key, (wk_u32_rule){2, desc->head_dim, &desc->head_dim}, &n_dims));
    *n_pairs = n_dims / 2;
    if (n_dims % 2 == 0) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_FORMAT,
                   "the metadata key '%s' is %" PRIu32 ", but must be even",
                   wk_metadata_key(meta, key).text, n_dims);
}

/* Hunyuan's files may give alpha, of NTK-aware scaling, beside the base. */
static wick_status read_base(const wk_metadata *meta, const wk_rope_desc *desc, uint32_t n_pairs,
                             double *out) {
    static const char key[] = "rope.freq_base";
    const double usual = 10000.0, none = 0.0;
    double fallback = desc->default_base, alpha;
    if (fallback == 0.0) WK_TRY(positive(meta, key, &usual, &fallback));
    WK_TRY(positive(meta, desc->base_key != NULL ? desc->base_key : key, &fallback, out));
    WK_TRY(wk_metadata_f64(meta, "rope.scaling.alpha", &none, &alpha));
    if (alpha > 0.0 && n_pairs > 1 && !desc->is_plain)
        *out *= pow(alpha, n_pairs / (n_pairs - 1.0));
    return WICK_OK;
}

static wick_status allocate(wk_arena *arena, uint32_t n, double **out, wick_error *err) {
    *out = wk_arena_array(arena, n, sizeof **out);
    if (*out != NULL) return WICK_OK;
    return wk_fail_memory(err, n * sizeof **out, "rotary frequencies");
}

wick_status wk_rope_add(const wk_metadata *meta, wk_hparams *hparams, const wk_rope_desc *desc) {
    assert(hparams->n_ropes < WK_MAX_ROPES);
    uint32_t n_pairs;
    WK_TRY(read_pairs(meta, desc, &n_pairs));
    scaling s = {.is_ramp_exact = desc->is_ramp_exact,
                 .factor = 1.0,
                 .attn_factor = 1.0,
                 .original_context = hparams->context_length};
    WK_TRY(read_base(meta, desc, n_pairs, &s.base));
    if (!desc->is_plain) WK_TRY(read_scaling(meta, &s));

    double *frequency;
    WK_TRY(allocate(meta->arena, n_pairs, &frequency, meta->err));
    for (uint32_t i = 0; i < n_pairs; i++) {
        const double plain = pow(s.base, -(double)i / n_pairs);
        frequency[i] = s.is_yarn ? yarn_frequency(&s, n_pairs, i, plain) : plain / s.factor;
    }
    const bool is_longer = s.is_yarn && s.factor > 1.0;
    hparams->rope[hparams->n_ropes++] = (wk_rope){
        .desc = *desc,
        .n_pairs = n_pairs,
        .frequency = frequency,
        .original_context = s.original_context,
        .magnitude = s.attn_factor * (is_longer ? 1.0 + 0.1 * log(s.factor) : 1.0),
    };
    return WICK_OK;
}

uint32_t wk_rope_divided_pairs(const wk_hparams *hparams) {
    for (uint32_t r = 0; r < hparams->n_ropes; r++) {
        if (!hparams->rope[r].desc.is_plain) return hparams->rope[r].n_pairs;
    }
    return 0;
}

static wick_status divide(wk_arena *arena, wk_rope *rope, int kind, const float *divisors,
                          wick_error *err) {
    double *quotients;
    WK_TRY(allocate(arena, rope->n_pairs, &quotients, err));
    for (uint32_t i = 0; i < rope->n_pairs; i++)
        quotients[i] = rope->frequency[i] / (double)divisors[i];
    *(kind == WK_ROPE_DIVISORS_LONG ? &rope->long_frequency : &rope->frequency) = quotients;
    return WICK_OK;
}

wick_status wk_rope_divide(wk_arena *arena, wk_hparams *hparams, int kind, const float *divisors,
                           wick_error *err) {
    for (uint32_t i = 0; i < wk_rope_divided_pairs(hparams); i++) {
        if (!(divisors[i] > 0.0F))
            return wk_fail(err, WICK_ERR_FORMAT, "the rotary divisor %" PRIu32 " is %g", i,
                           (double)divisors[i]);
    }
    for (uint32_t r = 0; r < hparams->n_ropes; r++) {
        if (!hparams->rope[r].desc.is_plain)
            WK_TRY(divide(arena, &hparams->rope[r], kind, divisors, err));
    }
    return WICK_OK;
}

bool wk_rope_is_long(const wk_rope *rope, uint32_t context_length) {
    return rope->long_frequency != NULL && context_length > rope->original_context;
}

void wk_rope_rows(const wk_rope *rope, wk_rope_positions at, float *cos_rows, float *sin_rows) {
    assert(rope->frequency && rope->n_pairs > 0 && cos_rows != sin_rows);
    const bool is_long = wk_rope_is_long(rope, at.context_length);
    const double *const frequency = is_long ? rope->long_frequency : rope->frequency;
    for (uint32_t row = 0; row < at.n; row++) {
        double magnitude = rope->magnitude;
        if (rope->warmth > 0.0) /* in whole numbers: the floor */
            magnitude *= 1.0 + rope->warmth * log(1.0 + at.positions[row] / rope->original_context);
        for (uint32_t pair = 0; pair < rope->n_pairs; pair++) {
            const double angle = at.positions[row] * frequency[pair];
            const size_t i = (size_t)row * rope->n_pairs + pair;
            cos_rows[i] = (float)(magnitude * cos(angle));
            sin_rows[i] = (float)(magnitude * sin(angle));
        }
    }
}
