/* sample/filters.c: see filters.h. Weights are probabilities at temperature 1 up to a common
 * factor: exp(logit - best). Only what can be kept is put in order: where a lower bound of the
 * logits that will be kept is known beforehand, the rest never gets into the list. */
#include "sample/filters.h"

#include <assert.h>
#include <math.h>

typedef struct filtering {
    const wick_sampler_desc *desc;
    const float *logits; /* [n_logits] */
    size_t n_logits;
    double best;
    wk_candidates *list;
    double total; /* weight of what may be chosen, as far as a later filter needs it */
    bool is_min_p_done;
} filtering;

static double weight_of(const filtering *f, float logit) { return exp((double)logit - f->best); }

static bool cuts_top_p(const filtering *f) { return f->desc->top_p < 1; }
static bool cuts_typical(const filtering *f) { return f->desc->typical_p < 1; }

/* Logits below it are less than min_p times as likely as one of best. */
static double min_p_bound(const filtering *f, float best) {
    return f->desc->min_p > 0 ? (double)best + log((double)f->desc->min_p) : -INFINITY;
}

/* --- top_k --- */

/* Largest logit of each of n_stripes stripes: k of them hold k logits that are no less than the
 * k-th best maximum, so the k best logits are no less, either. */
static double top_k_bound(filtering *f, size_t k) {
    assert(k > 0);
    enum { STRIPES_SHARE = 16 };
    const size_t n_stripes = f->n_logits / STRIPES_SHARE;
    if (k > n_stripes) return -INFINITY;
    wk_candidate *const stripes = f->list->items;
    for (size_t i = 0; i < n_stripes; i++)
        stripes[i] = (wk_candidate){.key = f->logits[i], .id = (uint32_t)i};
    for (size_t row = 1; row < STRIPES_SHARE; row++) {
        const float *const logits = f->logits + row * n_stripes;
        for (size_t i = 0; i < n_stripes; i++)
            stripes[i].key = logits[i] > stripes[i].key ? logits[i] : stripes[i].key;
    }
    wk_candidates_begin(f->list, n_stripes);
    return (double)wk_candidates_at(f->list, k - 1).key;
}

static void cut_top_k(filtering *f) {
    const size_t k = f->desc->top_k;
    wk_candidates_fill(f->list, f->logits, f->n_logits, top_k_bound(f, k));
    if (k < f->list->end) f->list->end = k;
    for (size_t rank = 0; rank < f->list->end; rank++)
        f->total += weight_of(f, wk_candidates_at(f->list, rank).key);
}

/* Without top_k. The tokens that are each less likely than (1 - top_p) / n make up less than
 * 1 - top_p, so all of top_p's are among the others; half of that leaves room for rounding. */
static void fill_list(filtering *f) {
    double least = -INFINITY;
    if (cuts_top_p(f) || cuts_typical(f))
        for (size_t i = 0; i < f->n_logits; i++) f->total += weight_of(f, f->logits[i]);
    if (cuts_top_p(f) && !cuts_typical(f))
        least = f->best + log((1 - (double)f->desc->top_p) * f->total / (double)f->n_logits / 2);
    else if (!cuts_typical(f))
        least = min_p_bound(f, (float)f->best);
    f->is_min_p_done = !cuts_top_p(f) && !cuts_typical(f);
    wk_candidates_fill(f->list, f->logits, f->n_logits, least);
}

/* --- typical_p --- */

/* Keeps the tokens whose surprise is nearest to the mean one (the entropy), as many as make up
 * typical_p. Meanwhile keys are distances, negative so that the nearest one is best. */
static void cut_typical(filtering *f) {
    size_t n;
    wk_candidate *const kept = wk_candidates_kept(f->list, &n);
    wk_candidate *const items = f->list->items;
    const double log_total = f->best + log(f->total);
    double entropy = 0;
    for (size_t i = 0; i < n; i++) {
        items[i] = kept[i];
        const double surprise = log_total - (double)items[i].key;
        entropy += surprise * exp(-surprise);
    }
    for (size_t i = 0; i < n; i++)
        items[i].key = -(float)fabs(log_total - (double)items[i].key - entropy);
    wk_candidates_begin(f->list, n);
    double sum = 0;
    size_t end = 0;
    while (end < n && sum < (double)f->desc->typical_p * f->total)
        sum += weight_of(f, f->logits[wk_candidates_at(f->list, end++).id]);
    f->list->end = end;
    f->total = sum;
    const wk_candidate *const typical = wk_candidates_kept(f->list, &n);
    for (size_t i = 0; i < n; i++) {
        items[i] = typical[i];
        items[i].key = f->logits[items[i].id];
    }
    wk_candidates_begin(f->list, n);
}

/* --- top_p, min_p --- */

static void cut_top_p(filtering *f) {
    double sum = 0;
    size_t end = 0;
    while (end < f->list->end && (end == 0 || sum < (double)f->desc->top_p * f->total))
        sum += weight_of(f, wk_candidates_at(f->list, end++).key);
    f->list->end = end;
}

static void cut_min_p(filtering *f) {
    assert(f->list->end > 0); /* the best token is always kept */
    const double least = min_p_bound(f, wk_candidates_at(f->list, 0).key);
    size_t end = 1;
    while (end < f->list->end && (double)wk_candidates_at(f->list, end).key >= least) end++;
    f->list->end = end;
}

/* --- XTC --- */

static void cut_xtc(filtering *f, wk_rng *rng) {
    wk_candidates *const list = f->list;
    if (wk_rng_uniform(rng) >= f->desc->xtc_probability) return;
    size_t n;
    const wk_candidate *const kept = wk_candidates_kept(list, &n);
    double total = 0;
    for (size_t i = 0; i < n; i++) total += weight_of(f, kept[i].key);
    const double least = (double)f->desc->xtc_threshold * total;
    size_t n_top = 0;
    while (n_top < list->end && weight_of(f, wk_candidates_at(list, n_top).key) >= least) n_top++;
    if (n_top > 1) list->begin = n_top - 1;
}

void wk_filter(const wick_sampler_desc *desc, const float *logits, size_t n, float best,
               wk_candidates *list, wk_rng *rng) {
    filtering f = {
        .desc = desc, .logits = logits, .n_logits = n, .best = (double)best, .list = list};
    if (desc->top_k > 0 && desc->top_k < n)
        cut_top_k(&f);
    else
        fill_list(&f);
    if (cuts_typical(&f)) cut_typical(&f);
    if (cuts_top_p(&f)) cut_top_p(&f);
    if (desc->min_p > 0 && !f.is_min_p_done) cut_min_p(&f);
    if (desc->xtc_probability > 0) cut_xtc(&f, rng);
}
