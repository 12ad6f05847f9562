/* sample/sampler.c: see sampler.h. */
#include "sample/sampler.h"

#include "sample/filters.h"
#include "sample/penalties.h"
#include "sample/scores.h"
#include "text/tokenize/tokenizer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { PIECE = 1024 }; /* logits, few of which are larger than all before them */

/* --- Making --- */

/* The caller's, and those of the tokens that the model must not choose. */
static wick_status copy_biases(wk_heap *heap, const wick_sampler_desc *desc,
                               const wick_tokenizer *tokenizer, wk_sampler *out, wick_error *err) {
    size_t n_suppressed = 0;
    const uint32_t *suppressed = NULL;
    if (tokenizer) suppressed = wk_tokenizer_suppressed(tokenizer, &n_suppressed);
    const size_t n = desc->n_bias + n_suppressed;
    if (n == 0) return WICK_OK;
    out->biases = wk_alloc_array(heap, n, sizeof *out->biases);
    if (!out->biases) return wk_fail_memory(err, n * sizeof *out->biases, "biases");
    out->n_biases = n;
    if (desc->n_bias > 0) memcpy(out->biases, desc->bias, desc->n_bias * sizeof *out->biases);
    for (size_t i = 0; i < n_suppressed; i++)
        out->biases[desc->n_bias + i] = (wick_logit_bias){suppressed[i], -INFINITY};
    return WICK_OK;
}

static wick_status make_scratch(wk_heap *heap, wk_sampler *out, wick_error *err) {
    const uint32_t n = out->n_vocab;
    const bool draws = out->desc.temperature > 0;
    const bool counts = wk_has_penalties(&out->desc) || out->desc.dry_multiplier > 0;
    out->logits = wk_alloc_array(heap, n, sizeof *out->logits);
    if (draws) out->candidates.items = wk_alloc_array(heap, n, sizeof *out->candidates.items);
    if (counts) out->counts = wk_alloc_array(heap, n, sizeof *out->counts);
    if (!out->logits || (draws && !out->candidates.items) || (counts && !out->counts))
        return wk_fail_memory(err, n * sizeof *out->candidates.items, "the sampler");
    return WICK_OK;
}

wick_status wk_sampler_make(wk_heap *heap, const wick_sampler_desc *desc,
                            const wick_tokenizer *tokenizer, uint32_t n_vocab, wk_sampler *out,
                            wick_error *err) {
    *out = (wk_sampler){.n_vocab = n_vocab};
    WK_TRY(wk_sampler_check(desc, n_vocab, err));
    out->desc = *desc;
    wk_sampler_resolve(&out->desc);
    WK_TRY(wk_dry_make(heap, &out->desc, tokenizer, n_vocab, &out->dry, err));
    WK_TRY(copy_biases(heap, desc, tokenizer, out, err));
    out->desc.bias = NULL;
    out->desc.dry_breakers = NULL;
    out->desc.grammar = out->desc.json_schema = NULL;
    WK_TRY(make_scratch(heap, out, err));
    out->is_seeded = desc->seed != 0;
    out->rng = (wk_rng){.seed = out->desc.seed};
    wk_sampler_reset(out);
    return WICK_OK;
}

void wk_sampler_free(wk_heap *heap, wk_sampler *sampler) {
    const size_t n = sampler->n_vocab;
    wk_free(heap, sampler->biases, sampler->n_biases * sizeof *sampler->biases);
    wk_free(heap, sampler->logits, n * sizeof *sampler->logits);
    wk_free(heap, sampler->candidates.items, n * sizeof *sampler->candidates.items);
    wk_free(heap, sampler->counts, n * sizeof *sampler->counts);
    wk_dry_free(heap, &sampler->dry);
    wk_matcher_free(sampler->matcher);
    *sampler = (wk_sampler){0};
}

void wk_sampler_reset(wk_sampler *sampler) {
    wk_mirostat_reset(&sampler->mirostat, &sampler->desc);
}

void wk_sampler_resume(wk_sampler *sampler, wk_rng rng, double mirostat_most) {
    if (sampler->mirostat.tau > 0) sampler->mirostat.most = mirostat_most;
    if (sampler->is_seeded && sampler->desc.seed != rng.seed) return;
    sampler->rng = rng;
    sampler->desc.seed = rng.seed;
}

void wk_sampler_begin_text(wk_sampler *sampler) {
    if (sampler->matcher) wk_matcher_reset(sampler->matcher);
}

wick_status wk_sampler_prepare(wk_sampler *sampler, wick_error *err) {
    return sampler->matcher ? wk_matcher_prepare(sampler->matcher, err) : WICK_OK;
}

/* --- Choice --- */

/* Each logit that may be lowered brings one more into reach; where any may be raised, all are. */
uint64_t wk_sampler_reach(const wk_sampler *sampler) {
    const wick_sampler_desc *const desc = &sampler->desc;
    const bool draws = desc->temperature > 0;
    uint64_t n_lowered = sampler->n_biases;
    bool may_be_any = (draws && desc->top_k == 0) || sampler->matcher ||
                      sampler->mirostat.tau > 0 || desc->dry_multiplier > 0;
    for (size_t i = 0; i < sampler->n_biases; i++) may_be_any |= sampler->biases[i].bias > 0;
    if (wk_has_penalties(desc)) {
        n_lowered += desc->repeat_last;
        may_be_any |=
            desc->repeat_penalty < 1 || desc->frequency_penalty < 0 || desc->presence_penalty < 0;
    }
    if (may_be_any) return UINT64_MAX;
    return n_lowered + (draws ? desc->top_k : 1);
}

static void change_logits(wk_sampler *s, const float *logits, const uint32_t *tokens,
                          size_t n_tokens) {
    for (size_t i = 0; i < s->n_vocab; i++) s->logits[i] = wk_logit_of(logits[i]);
    for (size_t i = 0; i < s->n_biases; i++) {
        assert(s->biases[i].id < s->n_vocab); /* wk_sampler_check has seen to it */
        const wick_logit_bias bias = s->biases[i];
        if (bias.bias > -INFINITY)
            wk_logit_add(&s->logits[bias.id], (double)bias.bias);
        else
            s->logits[bias.id] = -INFINITY;
    }
    if (wk_has_penalties(&s->desc))
        wk_penalize(&s->desc, tokens, n_tokens, s->counts, s->logits, s->n_vocab);
    if (s->desc.dry_multiplier > 0) wk_dry_apply(&s->dry, tokens, n_tokens, s->counts, s->logits);
}

/* Whether the largest logit is chosen as it is. */
static bool is_greedy(const wk_sampler *s) {
    return !(s->desc.temperature > 0) && s->n_biases == 0 && !s->counts && !s->matcher;
}

/* Of equal ones the first. Whether a piece has a larger one compilers find out in vectors. */
static size_t find_best(const float *logits, size_t n) {
    float most = -INFINITY;
    size_t best = 0;
    for (size_t i = 0, end; i < n; i = end) {
        int is_larger = 0;
        end = n - i < PIECE ? n : i + PIECE;
        for (size_t k = i; k < end; k++) is_larger |= wk_logit_of(logits[k]) > most;
        for (size_t k = i; is_larger && k < end; k++) {
            if (!(wk_logit_of(logits[k]) > most)) continue;
            most = logits[k];
            best = k;
        }
    }
    return best;
}

/* *probability: of the token that is returned. Turns the keys into weights. */
static uint32_t draw(wk_sampler *s, double *probability) {
    const double temperature = (double)s->desc.temperature;
    size_t n;
    wk_candidate *const kept = wk_candidates_kept(&s->candidates, &n);
    assert(n > 0 && temperature > 0);
    float best = kept[0].key;
    for (size_t i = 1; i < n; i++)
        if (kept[i].key > best) best = kept[i].key;
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        kept[i].key = (float)exp(((double)kept[i].key - (double)best) / temperature);
        total += (double)kept[i].key;
    }
    double left = (double)wk_rng_uniform(&s->rng) * total;
    size_t drawn = 0; /* rounding may leave a rest: then the last one that can be drawn */
    for (size_t i = 0; i < n && left >= 0; i++) {
        if (!(kept[i].key > 0)) continue;
        left -= (double)kept[i].key;
        drawn = i;
    }
    *probability = (double)kept[drawn].key / total;
    return kept[drawn].id;
}

/* XTC takes one before. */
float wk_sampler_foresee(const wk_sampler *sampler, uint32_t i) {
    const uint32_t n_before = sampler->desc.xtc_probability > 0;
    wk_rng rng = sampler->rng;
    rng.next += i * (n_before + 1) + n_before;
    return wk_rng_uniform(&rng);
}

/* No token is left. */
static wick_status end_or_fail(const wk_sampler *s, const float *logits, uint32_t *chosen,
                               wick_error *err) {
    size_t n_finite = 0;
    for (size_t i = 0; i < s->n_vocab; i++) n_finite += isfinite(logits[i]) != 0;
    if (n_finite == 0)
        return wk_fail(err, WICK_ERR_DEVICE, "the model's output holds no finite number");
    if (!s->matcher) return wk_fail(err, WICK_ERR_VALUE, "the biases leave no token to choose");
    *chosen = WICK_NO_TOKEN;
    if (wk_matcher_may_end(s->matcher)) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE,
                   "the grammar leaves no token to choose: none of the vocabulary goes on as it "
                   "must, or the biases forbid it");
}

static uint32_t draw_filtered(wk_sampler *s, float best) {
    const bool has_mirostat = s->mirostat.tau > 0;
    if (has_mirostat)
        wk_mirostat_filter(&s->mirostat, s->logits, s->n_vocab, best, (double)s->desc.temperature,
                           &s->candidates);
    else
        wk_filter(&s->desc, s->logits, s->n_vocab, best, &s->candidates, &s->rng);
    double probability;
    const uint32_t drawn = draw(s, &probability);
    if (has_mirostat) wk_mirostat_learn(&s->mirostat, probability);
    return drawn;
}

wick_status wk_sampler_choose(wk_sampler *sampler, const float *logits, const uint32_t *tokens,
                              size_t n_tokens, uint32_t *chosen, wick_error *err) {
    wk_sampler *const s = sampler;
    const float *const scores = is_greedy(s) ? logits : s->logits;
    if (scores == s->logits) change_logits(s, logits, tokens, n_tokens);
    if (s->matcher) WK_TRY(wk_matcher_apply(s->matcher, s->logits, err));
    const size_t best_id = find_best(scores, s->n_vocab);
    const float best = wk_logit_of(scores[best_id]);
    if (!(best > -INFINITY)) return end_or_fail(s, logits, chosen, err);
    *chosen = s->desc.temperature > 0 ? draw_filtered(s, best) : (uint32_t)best_id;
    return s->matcher ? wk_matcher_accept(s->matcher, *chosen, err) : WICK_OK;
}

/* The keys of the candidates are weights since the token was drawn. */
const float *wk_sampler_drawn(wk_sampler *sampler, uint32_t chosen) {
    float *const logits = sampler->logits;
    size_t n = 0;
    for (size_t i = 0; i < sampler->n_vocab; i++) logits[i] = -INFINITY;
    logits[chosen] = 0;
    const wk_candidate *kept = NULL;
    if (sampler->desc.temperature > 0) kept = wk_candidates_kept(&sampler->candidates, &n);
    for (size_t i = 0; i < n; i++) logits[kept[i].id] = logf(kept[i].key);
    return logits;
}
