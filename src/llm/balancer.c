/* llm/balancer.c: see wick/balancer.h. */
#include "llm/runner.h"

#include <wick/balancer.h>

#include <string.h>

typedef struct member {
    wick_model *model;
    uint64_t n_refused;
    bool is_tried; /* for the session that is being opened */
} member;

struct wick_balancer {
    wk_heap *heap; /* of the first model's device */
    wick_balancer_desc desc;
    size_t n, turn;         /* turn: of ROUND_ROBIN, the next one */
    wick_replica *replicas; /* [n] for desc.choose */
    member members[];
};

static size_t size_of(size_t n) { return sizeof(wick_balancer) + n * sizeof(member); }

/* --- Figures --- */

static wick_replica describe(const member *m) {
    wick_replica out = {.model = m->model, .n_refused = m->n_refused};
    wick_device_info info;
    wick_device_stats stats;
    wick_model_get_usage(m->model, &out.usage);
    wick_device_get_info(wick_model_device(m->model), &info);
    wick_device_get_stats(wick_model_device(m->model), &stats);
    out.memory_available = info.memory_available;
    out.memory_used = stats.buffer_bytes;
    if (out.usage.busy_seconds > 0)
        out.tokens_per_second =
            (double)(out.usage.n_prompt + out.usage.n_generated) / out.usage.busy_seconds;
    return out;
}

size_t wick_balancer_replicas(const wick_balancer *balancer, wick_replica *out, size_t capacity) {
    if (!balancer || (!out && capacity > 0)) return 0;
    for (size_t i = 0; i < balancer->n && i < capacity; i++)
        out[i] = describe(&balancer->members[i]);
    return balancer->n;
}

/* --- Choosing --- */

/* What a session would get of a busy device: it shares it with the others. */
static double speed_left(const wick_replica *r) {
    return r->tokens_per_second / (double)(r->usage.n_sessions + 1);
}

static bool has_more_memory(const wick_replica *a, const wick_replica *b) {
    if (a->memory_available != b->memory_available)
        return a->memory_available > b->memory_available;
    return a->memory_available == 0 && a->memory_used < b->memory_used;
}

static bool is_faster(const wick_replica *a, const wick_replica *b) {
    const bool a_is_new = a->tokens_per_second <= 0, b_is_new = b->tokens_per_second <= 0;
    if (a_is_new != b_is_new) return a_is_new;
    if (a_is_new) return a->usage.n_sessions < b->usage.n_sessions;
    return speed_left(a) > speed_left(b);
}

static bool is_better(wick_balance balance, const wick_replica *a, const wick_replica *b) {
    switch (balance) {
    case WICK_BALANCE_LOAD: return a->usage.n_sessions < b->usage.n_sessions;
    case WICK_BALANCE_MEMORY: return has_more_memory(a, b);
    case WICK_BALANCE_SPEED: return is_faster(a, b);
    default: return false; /* they come in their turn */
    }
}

/* Of those that were not tried yet; n: none is left. */
static size_t choose_next(const wick_balancer *b) {
    size_t best = b->n;
    wick_replica best_of = {0};
    for (size_t k = 0; k < b->n; k++) {
        const bool is_in_turn = b->desc.balance == WICK_BALANCE_ROUND_ROBIN;
        const size_t i = is_in_turn ? (b->turn + k) % b->n : k;
        if (b->members[i].is_tried) continue;
        const wick_replica here = describe(&b->members[i]);
        if (best < b->n && !is_better(b->desc.balance, &here, &best_of)) continue;
        best = i;
        best_of = here;
    }
    return best;
}

/* --- The interface --- */

wick_status wick_balancer_make(wick_model *const *models, size_t n, const wick_balancer_desc *desc,
                               wick_balancer **balancer, wick_error *error) {
    static const wick_balancer_desc defaults;
    if (!balancer) return wk_fail(error, WICK_ERR_ARGUMENT, "a balancer needs a place to go");
    *balancer = NULL;
    if (!models && n > 0) return wk_fail(error, WICK_ERR_ARGUMENT, "%zu models, none given", n);
    if (!desc) desc = &defaults;
    if (n == 0) return wk_fail(error, WICK_ERR_VALUE, "there are no models to balance");
    if ((uint32_t)desc->balance >= WICK_BALANCE_COUNT_)
        return wk_fail(error, WICK_ERR_VALUE, "there is no balance number %d", (int)desc->balance);
    for (size_t i = 0; i < n; i++)
        if (!models[i]) return wk_fail(error, WICK_ERR_ARGUMENT, "model %zu is NULL", i);
    wk_heap *const heap = models[0]->heap;
    wick_balancer *const b = wk_alloc_zeroed(heap, size_of(n));
    wick_replica *const replicas = wk_alloc_array(heap, n, sizeof *replicas);
    if (!b || !replicas) {
        wk_free(heap, b, size_of(n));
        wk_free(heap, replicas, n * sizeof *replicas);
        return wk_fail_memory(error, size_of(n) + n * sizeof *replicas, "a balancer");
    }
    b->heap = heap;
    b->desc = *desc;
    b->n = n;
    b->replicas = replicas;
    for (size_t i = 0; i < n; i++) b->members[i].model = models[i];
    *balancer = b;
    return WICK_OK;
}

void wick_balancer_free(wick_balancer *balancer) {
    if (!balancer) return;
    wk_heap *const heap = balancer->heap;
    wk_free(heap, balancer->replicas, balancer->n * sizeof *balancer->replicas);
    wk_free(heap, balancer, size_of(balancer->n));
}

/* Whether another device may take what this one refused. */
static bool is_of_device(wick_status status) {
    return status == WICK_ERR_OUT_OF_MEMORY || status == WICK_ERR_DEVICE_LOST;
}

static wick_status open_on(wick_balancer *b, size_t i, const wick_session_desc *desc,
                           wick_session **session, wick_error *error) {
    member *const m = &b->members[i];
    m->is_tried = true;
    b->turn = (i + 1) % b->n;
    const wick_status status = wick_session_open(m->model, desc, session, error);
    if (is_of_device(status)) m->n_refused++;
    return status;
}

static wick_status open_chosen(wick_balancer *b, const wick_session_desc *desc,
                               wick_session **session, wick_error *error) {
    (void)wick_balancer_replicas(b, b->replicas, b->n);
    const size_t i = b->desc.choose(b->desc.user, b->replicas, b->n);
    if (i < b->n) return open_on(b, i, desc, session, error);
    return wk_fail(error, WICK_ERR_CANCELLED, "no device was chosen for the session");
}

/* The one whose sessions' texts began with most of ids, at least half of them; else the next one in
 * order. */
static size_t choose_first(const wick_balancer *b, const uint32_t *ids, uint32_t n) {
    size_t best = b->n;
    uint32_t most = n > 0 ? (n - 1) / 2 : 0;
    for (size_t i = 0; i < b->n; i++) {
        const uint32_t known = wk_model_count_known(b->members[i].model, ids, n);
        if (known <= most) continue;
        best = i;
        most = known;
    }
    return best < b->n ? best : choose_next(b);
}

wick_status wick_balancer_open_session(wick_balancer *balancer, const wick_session_desc *desc,
                                       wick_session **session, wick_error *error) {
    return wick_balancer_open_session_for(balancer, NULL, 0, desc, session, error);
}

wick_status wick_balancer_open_session_for(wick_balancer *balancer, const uint32_t *ids, size_t n,
                                           const wick_session_desc *desc, wick_session **session,
                                           wick_error *error) {
    if (session) *session = NULL;
    if (!balancer || !session)
        return wk_fail(error, WICK_ERR_ARGUMENT, "a session needs a balancer and a place to go");
    if (!ids && n > 0) return wk_fail(error, WICK_ERR_ARGUMENT, "%zu tokens, none given", n);
    wick_balancer *const b = balancer;
    for (size_t i = 0; i < b->n; i++) b->members[i].is_tried = false;
    if (b->desc.choose) return open_chosen(b, desc, session, error);
    size_t i = choose_first(b, ids, n < INT32_MAX ? (uint32_t)n : INT32_MAX);
    for (;;) {
        wick_error refusal = {0};
        const wick_status status = open_on(b, i, desc, session, &refusal);
        i = choose_next(b);
        if (is_of_device(status) && i < b->n) continue;
        if (status != WICK_OK && error && error->status == WICK_OK) *error = refusal;
        return status;
    }
}
