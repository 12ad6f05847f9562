/* sample/sampler_desc.c: ranges and defaults of wick_sampler_desc. */
#include "sample/sampler.h"

#include "core/compiler.h"
#include "sys/clock.h"

#include <float.h>
#include <math.h>

/* 0 is always accepted: off, or the default. */
typedef struct field_range {
    const char *name;
    float value, least, most;
} field_range;

static wick_status check_ranges(const wick_sampler_desc *desc, wick_error *err) {
    const field_range ranges[] = {
        {"temperature", desc->temperature, 0, FLT_MAX},
        {"typical_p", desc->typical_p, 0, 1},
        {"top_p", desc->top_p, 0, 1},
        {"min_p", desc->min_p, 0, 1},
        {"repetition penalty", desc->repeat_penalty, 0, FLT_MAX},
        {"frequency penalty", desc->frequency_penalty, -100, 100},
        {"presence penalty", desc->presence_penalty, -100, 100},
        {"multiplier of DRY", desc->dry_multiplier, 0, FLT_MAX},
        {"base of DRY", desc->dry_base, 1, 100},
        {"probability of XTC", desc->xtc_probability, 0, 1},
        {"threshold of XTC", desc->xtc_threshold, 0, 1},
        {"tau of mirostat", desc->mirostat_tau, 0, 100},
        {"eta of mirostat", desc->mirostat_eta, 0, 10},
    };
    for (size_t i = 0; i < WK_COUNT(ranges); i++) {
        const field_range r = ranges[i];
        if (r.value == 0 || (r.value >= r.least && r.value <= r.most)) continue;
        if (r.most == FLT_MAX)
            return wk_fail(err, WICK_ERR_VALUE, "%s %g: must be a finite number, %g or more",
                           r.name, (double)r.value, (double)r.least);
        return wk_fail(err, WICK_ERR_VALUE, "%s %g: must be between %g and %g", r.name,
                       (double)r.value, (double)r.least, (double)r.most);
    }
    return WICK_OK;
}

wick_status wk_sampler_check(const wick_sampler_desc *desc, uint32_t n_vocab, wick_error *err) {
    WK_TRY(check_ranges(desc, err));
    if (desc->dry_allowed > WK_DRY_MOST)
        return wk_fail(err, WICK_ERR_VALUE, "allowed repetition of DRY %u: at most %d tokens",
                       desc->dry_allowed, WK_DRY_MOST);
    if (desc->n_bias > 0 && !desc->bias)
        return wk_fail(err, WICK_ERR_VALUE, "n_bias is %zu, but bias is NULL", desc->n_bias);
    if (desc->n_dry_breakers > 0 && !desc->dry_breakers)
        return wk_fail(err, WICK_ERR_VALUE, "n_dry_breakers is %zu, but dry_breakers is NULL",
                       desc->n_dry_breakers);
    for (size_t i = 0; i < desc->n_bias; i++) {
        const wick_logit_bias b = desc->bias[i];
        if (b.id >= n_vocab)
            return wk_fail(err, WICK_ERR_INDEX,
                           "a bias for token %u, which is not in the vocabulary of %u", b.id,
                           n_vocab);
        if (!(b.bias < INFINITY))
            return wk_fail(err, WICK_ERR_VALUE, "bias %g of token %u: must be a number",
                           (double)b.bias, b.id);
    }
    return WICK_OK;
}

void wk_sampler_resolve(wick_sampler_desc *desc) {
    if (desc->typical_p == 0) desc->typical_p = 1;
    if (desc->top_p == 0) desc->top_p = 1;
    if (desc->repeat_last == 0) desc->repeat_last = 64;
    if (desc->repeat_penalty == 0) desc->repeat_penalty = 1;
    if (desc->dry_base == 0) desc->dry_base = 1.75F;
    if (desc->dry_allowed == 0) desc->dry_allowed = 2;
    if (desc->xtc_threshold == 0) desc->xtc_threshold = 0.1F;
    if (desc->mirostat_eta == 0) desc->mirostat_eta = 0.1F;
    /* Of 53 bits, which every reader of JSON keeps. */
    while (desc->seed == 0) desc->seed = wk_entropy() >> 11;
}
