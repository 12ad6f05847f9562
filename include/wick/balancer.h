/* wick/balancer.h: one model on several devices: each session opens on one of them. */
#ifndef WICK_BALANCER_H
#define WICK_BALANCER_H

#include <wick/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_balancer wick_balancer;

/* Which device takes the next session; the first one in the list where several are alike. */
typedef enum wick_balance {
    WICK_BALANCE_ROUND_ROBIN, /* each in its turn */
    WICK_BALANCE_LOAD,        /* with the fewest open sessions */
    WICK_BALANCE_MEMORY,      /* with the most memory left; of those that do not say how much that
                                 is (most GPUs): with the fewest bytes in use */
    WICK_BALANCE_SPEED,       /* that will give the session the most tokens per second, by what it
                                 did so far; one that did nothing yet is tried first */
    WICK_BALANCE_COUNT_,
} wick_balance;

/* A model on its device, and what has become of it. */
typedef struct wick_replica {
    wick_model *model;
    wick_model_usage usage;
    uint64_t memory_available, memory_used; /* bytes; available 0: not known */
    double tokens_per_second;               /* read and generated, while it was busy; 0: none yet */
    uint64_t n_refused; /* sessions for which its memory did not suffice, or that it had lost */
} wick_replica;

typedef struct wick_balancer_desc {
    wick_balance balance;
    /* Instead: gives the index of one of n replicas; anything else refuses the session. */
    size_t (*choose)(void *user, const wick_replica *replicas, size_t n);
    void *user;
} wick_balancer_desc;

/* The models, whether of one file or not, must outlive the balancer; each has a device of its own
 * or shares it. They, their sessions and the balancer belong to one thread at a time. desc NULL:
 * round robin. WICK_ERR_ARGUMENT; WICK_ERR_VALUE: no such balance, no models;
 * WICK_ERR_OUT_OF_MEMORY. */
WICK_API wick_status wick_balancer_make(wick_model *const *models, size_t n,
                                        const wick_balancer_desc *desc, wick_balancer **balancer,
                                        wick_error *error);
/* NULL is allowed. Sessions stay as they are. */
WICK_API void wick_balancer_free(wick_balancer *balancer);

/* wick_session_open on the chosen replica. If its memory does not suffice or its device is lost,
 * the others are tried in the order of the balance, and the last error is returned. With
 * desc.choose no others are tried; WICK_ERR_CANCELLED if it chose none. */
WICK_API wick_status wick_balancer_open_session(wick_balancer *balancer,
                                                const wick_session_desc *desc,
                                                wick_session **session, wick_error *error);

/* The same for a text that will begin with ids [n]: where at least half of them are known from
 * other sessions' texts, it opens on the replica that knows most of them and need not compute them
 * again (wick_session_stats.n_reused); the others are tried after that. With desc.choose it is
 * asked alone. */
WICK_API wick_status wick_balancer_open_session_for(wick_balancer *balancer, const uint32_t *ids,
                                                    size_t n, const wick_session_desc *desc,
                                                    wick_session **session, wick_error *error);

/* Returns how many replicas there are and writes at most capacity, in the order of the models. */
WICK_API size_t wick_balancer_replicas(const wick_balancer *balancer, wick_replica *out,
                                       size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
