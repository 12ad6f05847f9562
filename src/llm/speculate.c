/* llm/speculate.c: see speculate.h. */
#include "llm/speculate.h"

#include "llm/session_struct.h"
#include "sys/clock.h"

#include <assert.h>

enum {
    LEAST_MATCH = 2,
    MOST_MATCH = 32, /* longer ones say no more */
    REFUSALS = 128,  /* after that many the prices are measured again */
    FORCED = 7,      /* guesses where it is not asked what pays */
};
_Static_assert(FORCED == WK_MOST_STEPS - 1, "as many as a device that runs ahead may make");

/* Little is believed before much is seen. */
void wk_speculate_begin(wk_speculation *s, wick_speculate mode) {
    *s = (wk_speculation){.mode = mode};
    for (uint32_t i = 0; i < WK_GUESS_KINDS; i++) {
        s->hits[i] = (float)i + 0.5F;
        s->tries[i] = s->hits[i] + 4;
    }
}

/* --- What comes next --- */

/* The longest run that the text ends with and that was in it before; of equal ones the latest. */
static void look_up(wk_speculation *s, const uint32_t *tokens, uint32_t n) {
    s->length = 0;
    for (uint32_t i = n; i-- > LEAST_MATCH && s->length < MOST_MATCH;) {
        if (tokens[i - 1] != tokens[n - 1] || tokens[i - 2] != tokens[n - 2]) continue;
        uint32_t length = LEAST_MATCH;
        while (length < wk_smaller(i, MOST_MATCH) &&
               tokens[i - 1 - length] == tokens[n - 1 - length])
            length++;
        if (length <= s->length) continue;
        s->length = length;
        s->at = i;
    }
}

static uint32_t size_of(uint32_t length) {
    uint32_t size = 0;
    while (length >= 2 * LEAST_MATCH && size + 1 < WK_MATCH_SIZES) {
        length /= 2;
        size++;
    }
    return size;
}

static void note(wk_speculation *s, uint32_t kind, bool is_hit) {
    static const float memory = 31.0F / 32;
    s->hits[kind] = memory * s->hits[kind] + (is_hit ? 1.0F : 0.0F);
    s->tries[kind] = memory * s->tries[kind] + 1.0F;
}

void wk_speculate_learn(wk_speculation *s, const uint32_t *tokens, uint32_t n) {
    assert(s->length == 0 || s->at + 1 < n); /* else it was of another text */
    if (s->length > 0) {
        const bool is_hit = tokens[s->at] == tokens[n - 1];
        note(s, size_of(s->length), is_hit);
        s->at++;
        s->length = is_hit ? wk_smaller(s->length + 1, MOST_MATCH) : 0;
    }
    if (s->length == 0) look_up(s, tokens, n);
}

/* --- What pays --- */

/* How many of n guesses will be accepted. */
static double expect(const wk_speculation *s, uint32_t length, uint32_t n) {
    double all = 1, sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t kind = length > 0 ? size_of(length + i) : s->kind;
        all *= (double)s->hits[kind] / (double)s->tries[kind];
        sum += all;
    }
    return sum;
}

static uint32_t class_of(uint32_t n_rows) {
    uint32_t size_class = 0;
    while (UINT32_C(1) << size_class < n_rows) size_class++;
    return size_class;
}

/* What was not measured yet is tried when it may pay at a quarter more for twice the rows. */
static double cost_of(const uint64_t *costs, uint32_t size_class) {
    double factor = 1;
    for (; size_class > 0 && costs[size_class] <= WK_COST_SEEN; size_class--) factor *= 1.25;
    return factor * (double)costs[size_class];
}

uint32_t wk_speculate_depth(wk_speculation *s, uint32_t length, double step_ns, uint64_t *costs,
                            uint32_t n_beside, uint32_t most) {
    const uint32_t own = n_beside + 1;
    if (s->mode == WICK_SPECULATE_NGRAM || s->mode == WICK_SPECULATE_DRAFT ||
        s->mode == WICK_SPECULATE_AHEAD)
        return wk_smaller(most, FORCED);
    if (most == 0 || class_of(own + 1) >= WK_COST_CLASSES || costs[0] <= WK_COST_SEEN) return 0;
    double best = 1.05 * (double)own / cost_of(costs, class_of(own));
    uint32_t n_best = 0;
    bool might_pay = false;
    bool is_known = true; /* else the size is tried, and no larger one yet */
    for (uint32_t size_class = class_of(own + 1); size_class < WK_COST_CLASSES && is_known;
         size_class++) {
        is_known = costs[size_class] > WK_COST_SEEN;
        const uint32_t n = wk_smaller((UINT32_C(1) << size_class) - own, most);
        const double tokens = (double)own + expect(s, length, n);
        const double cost = cost_of(costs, size_class) + n * step_ns;
        if (tokens > best * cost) {
            best = tokens / cost;
            n_best = n;
        }
        might_pay = might_pay || tokens > 1.25 * (double)own;
    }
    /* Measured again after a while: what was slow may have had other reasons. */
    if (n_best == 0 && might_pay && ++s->n_refused % REFUSALS == 0)
        for (uint32_t size_class = class_of(own + 1); size_class < WK_COST_CLASSES; size_class++)
            costs[size_class] = WK_COST_SEEN;
    return n_best;
}

/* --- In a session --- */

/* As many as there is room for: each has to leave one token to choose. */
static uint32_t most_ahead(const wick_session *s) {
    const uint32_t most = wk_smaller(s->context_length - s->n_tokens, WK_MOST_AHEAD);
    const uint32_t n_generated = s->n_since_prompt + s->n_shifted;
    if (s->max_tokens == 0) return most;
    return s->max_tokens > n_generated ? wk_smaller(most, s->max_tokens - n_generated - 1) : 0;
}

/* A run that reaches the end of the text goes on with itself. */
static void copy_run(wick_session *s, uint32_t n) {
    const uint32_t *const run = s->tokens + s->guess.at;
    for (; s->n_ahead < n && run[s->n_ahead] != WICK_NO_TOKEN; s->n_ahead++)
        s->tokens[s->n_tokens + s->n_ahead] = run[s->n_ahead];
}

/* Those that are not tried may have become better meanwhile. */
static void forgive(wk_speculation *s, uint32_t kind) {
    s->tries[kind] -= (s->tries[kind] - s->hits[kind]) / 64;
}

/* How many guesses of the draft model or the head to make. */
static uint32_t count_wanted(wick_session *s, uint32_t n_beside, uint32_t most) {
    wk_speculation *const guess = &s->guess;
    uint64_t *const costs = wk_sequence_costs(s->sequence, false);
    const uint64_t step_ns =
        s->draft ? wk_sequence_costs(s->draft->sequence, false)[0] : wk_head_step_ns(s);
    const uint32_t n = wk_speculate_depth(guess, 0, (double)step_ns, costs, n_beside, most);
    /* Once it is known what batches without guesses take. */
    if (n == 0 && guess->mode == WICK_SPECULATE_HEADS && costs[0] > WK_COST_SEEN) return 1;
    if (n == 0) forgive(guess, WK_DRAFT);
    return n;
}

static bool looks_up(const wk_speculation *s) {
    return s->mode == WICK_SPECULATE_AUTO || s->mode == WICK_SPECULATE_NGRAM;
}

/* As the sampler will choose where no penalty and no other filter changes it. */
static void set_draws(wick_session *s, uint32_t n) {
    const wick_sampler_desc *const desc = &s->sampler.desc;
    for (uint32_t i = 0; i < n; i++)
        s->guess.draws[i] = (wk_draw){.temperature = desc->temperature,
                                      .top_p = desc->top_p,
                                      .min_p = desc->min_p,
                                      .u = wk_sampler_foresee(&s->sampler, i),
                                      .k = desc->temperature > 0 ? desc->top_k : 1};
}

/* How many tokens the device is to draw and compute by itself. */
static uint32_t count_ahead(wick_session *s, uint32_t most) {
    wk_speculation *const guess = &s->guess;
    if (guess->mode != WICK_SPECULATE_AUTO && guess->mode != WICK_SPECULATE_AHEAD) return 0;
    if (wk_sequence_beside(s->sequence) > 0 || wk_session_needs_all_logits(s)) return 0;
    const uint32_t n = wk_speculate_depth(guess, 0, 0, wk_sequence_costs(s->sequence, true), 0,
                                          wk_smaller(most, wk_sequence_most_ahead(s->sequence)));
    /* Up to every second one: what they cost is measured again and again where they seem good. */
    if (n == 0 && 2 * guess->hits[WK_AHEAD] < guess->tries[WK_AHEAD]) forgive(guess, WK_AHEAD);
    set_draws(s, n);
    return n;
}

void wk_session_guess(wick_session *session) {
    wick_session *const s = session;
    wk_speculation *const guess = &s->guess;
    if (guess->mode == WICK_SPECULATE_NONE) return;
    if (looks_up(guess)) wk_speculate_learn(guess, s->tokens, s->n_tokens);
    if (s->has_logits) return;
    uint64_t *const costs = wk_sequence_costs(s->sequence, false);
    const uint32_t n_beside = wk_sequence_beside(s->sequence), most = most_ahead(s);
    if (most == 0) return; /* nothing follows */
    if (guess->length > 0)
        copy_run(s, wk_speculate_depth(guess, guess->length, 0, costs, n_beside, most));
    const bool is_draft = (s->draft || s->head) && s->n_ahead == 0;
    guess->kind = s->n_ahead > 0 ? size_of(guess->length) : is_draft ? WK_DRAFT : WK_AHEAD;
    const uint32_t n = is_draft ? count_wanted(s, n_beside, most) : 0;
    if (n > 0 && s->draft) wk_draft_begin(s, n);
    if (s->head) wk_head_begin(s, n);
    if (guess->kind == WK_AHEAD) s->n_ahead = count_ahead(s, most);
}

void wk_session_take_guess(wick_session *session, uint32_t id) {
    wick_session *const s = session;
    s->n_wanted = id == WICK_NO_TOKEN ? 0 : s->n_wanted - 1;
    if (s->n_wanted == 0) s->generate_ns += wk_clock_ns() - s->draft_ns;
    if (id != WICK_NO_TOKEN) s->tokens[s->n_tokens + s->n_ahead++] = id;
}

bool wk_session_is_guessing(const wick_session *session) {
    return session->n_wanted > 0 || wk_head_is_due(session);
}

void wk_session_go_on_guessing(wick_session *session) {
    if (session->draft)
        wk_draft_step(session);
    else
        wk_head_step(session);
}

bool wk_session_verify(wick_session *session, uint32_t id) {
    wick_session *const s = session;
    const bool is_hit = s->n_ahead > 0 && s->tokens[s->n_tokens] == id;
    if (s->n_ahead > 0 && s->guess.kind >= WK_DRAFT) note(&s->guess, s->guess.kind, is_hit);
    if (!is_hit) return false;
    s->n_ahead--;
    s->n_computed++;
    s->row++;
    s->guess.n_accepted++;
    return true;
}

void wk_session_take_back(wick_session *session) {
    wick_session *const s = session;
    const uint32_t n = wk_sequence_accept(s->sequence, s->tokens, s->n_computed);
    s->n_ahead = s->n_wanted = 0;
    /* Of a state that had to go back more is computed again. */
    if (!s->has_logits && n < s->n_computed) s->n_computed = n;
}
