/* llm/none/guess_none.c: in place of draft.c and head.c where a page generates text: it has neither
 * draft models nor prediction heads. */
#include "llm/session_struct.h"

wick_status wk_draft_open(wick_session *session, const wick_session_desc *desc, wick_error *err) {
    (void)session;
    if (!desc->draft && desc->speculate != WICK_SPECULATE_DRAFT) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "pages have no draft models");
}

void wk_draft_begin(wick_session *session, uint32_t n) { (void)session, (void)n; }

void wk_draft_step(wick_session *session) { (void)session; }

wick_status wk_head_open(wick_session *session, const wick_session_desc *desc, wick_error *err) {
    (void)session;
    if (desc->speculate != WICK_SPECULATE_HEADS) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "pages have no prediction heads");
}

void wk_head_close(wick_session *session) { (void)session; }

float *wk_head_states(const wick_session *session) {
    (void)session;
    return NULL;
}

void wk_head_take(wick_session *session, const wk_result *result) { (void)session, (void)result; }

bool wk_head_is_due(const wick_session *session) {
    (void)session;
    return false;
}

void wk_head_forget(wick_session *session) { (void)session; }

uint64_t wk_head_step_ns(const wick_session *session) {
    (void)session;
    return 0;
}

void wk_head_begin(wick_session *session, uint32_t n) { (void)session, (void)n; }

void wk_head_step(wick_session *session) { (void)session; }
