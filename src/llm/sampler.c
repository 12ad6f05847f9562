/* llm/sampler.c: see sampler.h. Candidates are a max-heap by logit: the nucleus is usually a few
 * tokens, so taking the best one after another is cheaper than sorting the vocabulary. */
#include "llm/sampler.h"

#include "sys/clock.h"

#include <math.h>
#include <string.h>

static void set_defaults(wick_sampler_desc *desc) {
    if (desc->top_p == 0) desc->top_p = 1;
    if (desc->repeat_penalty == 0) desc->repeat_penalty = 1;
    if (desc->repeat_last == 0) desc->repeat_last = 64;
    if (desc->seed == 0) desc->seed = wk_entropy();
}

wick_status wk_sampler_make(wk_heap *heap, const wick_sampler_desc *desc, uint32_t n_vocab,
                            wk_sampler *out, wick_error *err) {
    *out = (wk_sampler){.desc = *desc, .n_vocab = n_vocab};
    if (!(desc->temperature >= 0) || !isfinite(desc->temperature))
        return wk_fail(err, WICK_ERR_VALUE, "temperature %g: must be 0 or more",
                       (double)desc->temperature);
    if (!(desc->top_p >= 0 && desc->top_p <= 1))
        return wk_fail(err, WICK_ERR_VALUE, "top_p %g: must be between 0 and 1",
                       (double)desc->top_p);
    if (!(desc->min_p >= 0 && desc->min_p <= 1))
        return wk_fail(err, WICK_ERR_VALUE, "min_p %g: must be between 0 and 1",
                       (double)desc->min_p);
    if (!(desc->repeat_penalty >= 0) || !isfinite(desc->repeat_penalty))
        return wk_fail(err, WICK_ERR_VALUE, "repetition penalty %g: must be more than 0",
                       (double)desc->repeat_penalty);
    set_defaults(&out->desc);
    out->candidates = wk_alloc_array(heap, n_vocab, sizeof *out->candidates);
    if (!out->candidates)
        return wk_fail_memory(err, n_vocab * sizeof *out->candidates, 0, "the sampler");
    out->rng = (wk_rng){.seed = out->desc.seed};
    return WICK_OK;
}

void wk_sampler_free(wk_heap *heap, wk_sampler *sampler) {
    wk_free(heap, sampler->candidates, sampler->n_vocab * sizeof *sampler->candidates);
    sampler->candidates = NULL;
}

/* --- Penalty --- */

/* Divides positive and multiplies negative logits of tokens that occurred lately, each once: the
 * candidates are still in the order of their ids. */
static void penalize(wk_sampler *sampler, const uint32_t *tokens, size_t n_tokens) {
    const float penalty = sampler->desc.repeat_penalty;
    if (penalty == 1) return;
    const size_t last = sampler->desc.repeat_last < n_tokens ? sampler->desc.repeat_last : n_tokens;
    const uint32_t *const recent = tokens + (n_tokens - last);
    for (size_t i = 0; i < last; i++) {
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++) seen = recent[j] == recent[i];
        if (seen || recent[i] >= sampler->n_vocab) continue;
        float *const logit = &sampler->candidates[recent[i]].logit;
        *logit = *logit > 0 ? *logit / penalty : *logit * penalty;
    }
}

/* --- Heap, best on top; of equal logits the lower id --- */

static bool is_better(wk_candidate a, wk_candidate b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static void sift_down(wk_candidate *heap, size_t n, size_t at) {
    const wk_candidate moved = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_better(heap[child + 1], heap[child])) child++;
        if (!is_better(heap[child], moved)) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* The best one goes to heap[n - 1]; the first n - 1 stay a heap. */
static void take_best(wk_candidate *heap, size_t n) {
    const wk_candidate best = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = best;
    sift_down(heap, n - 1, 0);
}

/* --- Choice --- */

static size_t find_best(const wk_candidate *c, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (is_better(c[i], c[best])) best = i;
    return best;
}

/* Probability, up to a common factor, at the desc's temperature. */
static double weight_of(const wk_sampler *sampler, wk_candidate c, float best) {
    return exp(((double)c.logit - (double)best) / (double)sampler->desc.temperature);
}

/* How many of the best candidates may be drawn; they end up at the end of the array, best last.
 * top_p counts what top_k has left; min_p is relative to the best. */
static size_t cut(wk_sampler *sampler, float best, double *kept_weight) {
    const wick_sampler_desc *const desc = &sampler->desc;
    const size_t n = sampler->n_vocab;
    const size_t most = desc->top_k && desc->top_k < n ? desc->top_k : n;
    double total = 0; /* of the top_k best */
    if (most == n)
        for (size_t i = 0; i < n; i++) total += weight_of(sampler, sampler->candidates[i], best);
    for (size_t i = n / 2; i-- > 0;) sift_down(sampler->candidates, n, i);
    size_t taken = 0;
    for (; most < n && taken < most; taken++) {
        take_best(sampler->candidates, n - taken);
        total += weight_of(sampler, sampler->candidates[n - taken - 1], best);
    }
    const size_t sorted = taken;
    double sum = 0;
    for (taken = 0; taken < most && sum < (double)desc->top_p * total; taken++) {
        if (taken >= sorted) take_best(sampler->candidates, n - taken);
        const double weight = weight_of(sampler, sampler->candidates[n - taken - 1], best);
        if (taken > 0 && weight < (double)desc->min_p) break;
        sum += weight;
    }
    *kept_weight = sum;
    return taken;
}

static uint32_t draw(wk_sampler *sampler, size_t first, float best, double total) {
    double left = (double)wk_rng_uniform(&sampler->rng) * total;
    for (size_t i = sampler->n_vocab; i-- > first;) {
        left -= weight_of(sampler, sampler->candidates[i], best);
        if (left < 0) return sampler->candidates[i].id;
    }
    return sampler->candidates[sampler->n_vocab - 1].id;
}

wick_status wk_sampler_choose(wk_sampler *sampler, const float *logits, const uint32_t *tokens,
                              size_t n_tokens, uint32_t *chosen, wick_error *err) {
    const wick_sampler_desc *const desc = &sampler->desc;
    const size_t n = sampler->n_vocab;
    for (size_t i = 0; i < n; i++) {
        const bool is_number = logits[i] == logits[i] && logits[i] < INFINITY;
        sampler->candidates[i] =
            (wk_candidate){.logit = is_number ? logits[i] : -INFINITY, .id = (uint32_t)i};
    }
    penalize(sampler, tokens, n_tokens);
    const wk_candidate best = sampler->candidates[find_best(sampler->candidates, n)];
    if (!(best.logit > -INFINITY))
        return wk_fail(err, WICK_ERR_DEVICE, "the model's output holds no finite number");
    *chosen = best.id;
    if (desc->temperature == 0) return WICK_OK;
    double total = 0;
    if (desc->top_k == 0 && desc->top_p >= 1 && desc->min_p == 0) {
        for (size_t i = 0; i < n; i++)
            total += weight_of(sampler, sampler->candidates[i], best.logit);
        *chosen = draw(sampler, 0, best.logit, total);
        return WICK_OK;
    }
    const size_t kept = cut(sampler, best.logit, &total);
    *chosen = draw(sampler, n - kept, best.logit, total);
    return WICK_OK;
}
