/* backend/webgpu/pace.c: how long the open recording will take, so that no submit holds the GPU for
 * longer than its budget: a desktop draws its pictures with the same one, and a watchdog ends what
 * takes seconds.
 *
 * Estimates are nanoseconds of a nominal device; what submits really take, seen by polls, gives the
 * factor of this one. */
#include "backend/webgpu/pace.h"

#include "backend/webgpu/webgpu_state.h"
#include "sys/clock.h"

#include <assert.h>

/* Of the nominal device, in a nanosecond; and the fixed cost of a dispatch. */
static const double bytes_per_ns = 100, flops_per_ns = 1000, dispatch_ns = 2000;
static const double least_part = 40000; /* of an op that is cut, nanoseconds */

enum {
    BUDGET_US = 50000,
    MOST_COMMANDS = 2048,     /* of a submit */
    LEAST_MEASURED = 1000000, /* nanoseconds: less says more about the poll than about the GPU */
    SOFTWARE_FACTOR = 100,    /* at first, of adapters that compute on the CPU */
};

void wk_pace_open(wk_backend_device *dev, uint32_t submit_us) {
    const bool is_software = dev->adapter.type == WICK_ADAPTER_SOFTWARE;
    dev->pace.factor = is_software ? SOFTWARE_FACTOR : 1;
    dev->pace.budget = 1000.0 * (submit_us > 0 ? submit_us : BUDGET_US);
}

/* --- Estimates --- */

static double count_of(const wk_view *view) { return view->buf ? (double)wk_view_count(view) : 0; }

/* Ops without products: some operations for each element that is written or read; of a cache that
 * is appended to, its new keys and values. */
static double other_work(const wk_op *op) {
    const wk_view *const y = op->code == WK_OP_KV_APPEND ? wk_src(op, 1) : wk_dst(op, 0);
    return 8 * (count_of(y) + (op->n_src > 0 ? count_of(wk_src(op, 0)) : 0));
}

double wk_pace_estimate(const wk_op *op, const wk_cost *cost) {
    const double work = cost->flops > 0 ? cost->flops : other_work(op);
    return dispatch_ns + (cost->bytes_read + cost->bytes_written) / bytes_per_ns +
           work / flops_per_ns;
}

int64_t wk_pace_parts(const wk_backend_device *dev, double estimate) {
    const double most = estimate / least_part; /* each is worth its dispatch */
    assert(estimate >= 0 && dev->pace.budget > 0);
    const double parts = estimate * dev->pace.factor / dev->pace.budget;
    return (int64_t)(parts < most ? parts : most) + 1;
}

bool wk_pace_is_full(const wk_backend_device *dev, double estimate) {
    const wk_pace *const pace = &dev->pace;
    if (dev->recorder.n_commands >= MOST_COMMANDS) return true;
    return pace->recorded > 0 && (pace->recorded + estimate) * pace->factor > pace->budget;
}

void wk_pace_add(wk_backend_device *dev, double estimate) { dev->pace.recorded += estimate; }

/* --- Measurements --- */

void wk_pace_work(wk_backend_device *dev) {
    wk_pace *const pace = &dev->pace;
    if (pace->idle_since == 0 && dev->n_done == dev->n_submitted) pace->idle_since = wk_clock_ns();
}

void wk_pace_submitted(wk_backend_device *dev) {
    wk_pace *const pace = &dev->pace;
    const double estimate = pace->recorded;
    pace->recorded = 0;
    if (pace->idle_since != 0) pace->waited += wk_clock_ns() - pace->idle_since;
    pace->idle_since = 0;
    if (pace->n_waiting == WK_PACE_WAITING) return; /* no caller polls: nothing to learn */
    pace->waiting[(pace->first + pace->n_waiting++) % WK_PACE_WAITING] =
        (wk_pace_submit){.ticket = dev->n_submitted, .estimate = estimate, .begun = wk_clock_ns()};
}

/* Half the way down, a quarter up, and no more than twice: a late poll looks like a slow GPU. */
static void learn(wk_pace *pace, double estimate, double taken) {
    assert(estimate > 0);
    double factor = taken / estimate;
    if (factor > 2 * pace->factor) factor = 2 * pace->factor;
    pace->factor += (factor - pace->factor) / (factor < pace->factor ? 2 : 4);
}

void wk_pace_look(wk_backend_device *dev) {
    wk_pace *const pace = &dev->pace;
    if (pace->n_waiting == 0 || pace->waiting[pace->first].ticket > dev->n_done) return;
    const uint64_t now = wk_clock_ns(), begun = pace->waiting[pace->first].begun;
    const uint64_t from = begun > pace->last_done ? begun : pace->last_done;
    double estimate = 0;
    while (pace->n_waiting > 0 && pace->waiting[pace->first].ticket <= dev->n_done) {
        estimate += pace->waiting[pace->first].estimate;
        pace->first = (pace->first + 1) % WK_PACE_WAITING;
        pace->n_waiting--;
    }
    pace->last_done = now;
    if (estimate == 0) return; /* uploads, which the loader seldom polls */
    if (now - from > pace->longest) pace->longest = now - from;
    if (estimate * pace->factor + (double)(now - from) > (double)LEAST_MEASURED)
        learn(pace, estimate, (double)(now - from));
}
