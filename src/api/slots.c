/* api/slots.c: the places where texts are generated, as llama-server shows them. See api.h. */
#include "api/api.h"

/* ---- Places of texts ---- */

static bool is_free(const wk_slot *slot) { return !slot->choice && !slot->is_moving; }

/* The one that was asked for; else one without a text that is kept, if there is one. */
static wk_slot *find_slot(const wick_exchange *x) {
    const wick_api *const api = x->api;
    if (x->slot >= 0 && is_free(&api->slots[x->slot])) return &api->slots[x->slot];
    wk_slot *found = NULL;
    for (uint32_t i = 0; i < api->n_parallel; i++) {
        wk_slot *const slot = &api->slots[i];
        if (is_free(slot) && (!found || (found->kept && !slot->kept))) found = slot;
    }
    return found;
}

/* Goes on from what the place keeps; false: it must be begun. */
static bool continue_kept(wk_api_choice *choice, const wick_session_desc *desc) {
    wk_slot *const slot = choice->slot;
    if (!slot->kept) return false;
    bool is_made = wick_session_fork(slot->kept, desc, &choice->session, NULL) == WICK_OK;
    wick_session_close(slot->kept);
    slot->kept = NULL;
    if (is_made && wick_session_sync_tokens(choice->session, choice->prompt->ids,
                                            choice->prompt->n) == WICK_OK) {
        wick_session_stats stats;
        wick_session_get_stats(choice->session, &stats);
        choice->is_continued = true;
        choice->n_found = stats.n_reused;
        return true;
    }
    wick_session_close(choice->session);
    choice->session = NULL;
    return false;
}

wick_status wk_slot_take(wk_api_choice *choice, const wick_session_desc *desc, wick_error *err) {
    const wick_exchange *const x = choice->exchange;
    choice->slot = find_slot(x);
    choice->slot->choice = choice;
    choice->place = (uint32_t)(choice->slot - x->api->slots);
    x->api->n_running++;
    const bool may_go_on = x->n_loras == 0 && desc->logits == WICK_LOGITS_NONE && !desc->no_reuse;
    if (may_go_on && continue_kept(choice, desc)) return WICK_OK;
    wick_status status = wick_session_open(x->api->model, desc, &choice->session, err);
    if (status != WICK_OK) return status;
    status = wick_session_set_loras(choice->session, x->loras, x->n_loras);
    if (status == WICK_OK)
        status =
            wick_session_append_tokens(choice->session, choice->prompt->ids, choice->prompt->n);
    return status == WICK_OK ? WICK_OK : wick_session_error(choice->session, err);
}

void wk_choice_get_stats(const wk_api_choice *choice, wick_session_stats *stats) {
    wick_session_get_stats(choice->session, stats);
    if (!choice->is_continued) return;
    const uint32_t n_prompt = (uint32_t)choice->prompt->n;
    const uint32_t n_computed = stats->n_prompt - (stats->n_reused - choice->n_found);
    stats->n_reused = n_prompt - (n_computed < n_prompt ? n_computed : n_prompt);
    stats->n_prompt = n_prompt;
}

void wk_slot_leave(wk_api_choice *choice, bool is_whole) {
    const wick_exchange *const x = choice->exchange;
    if (!choice->slot) return;
    x->api->n_running--;
    choice->slot->choice = NULL;
    if (is_whole && x->api->slot_folder && x->n_loras == 0 && !x->desc.no_reuse) {
        wick_session_close(choice->slot->kept);
        choice->slot->kept = choice->session;
    } else {
        wick_session_close(choice->session);
    }
    choice->slot = NULL;
    choice->session = NULL;
}

/* ---- What there is ---- */

static void write_slot(wk_strbuf *to, const wick_api *api, uint32_t id) {
    const wk_api_choice *const choice = api->slots[id].choice;
    wk_write_open(to, '{');
    wk_write_put_whole(to, "id", id);
    wk_write_put_whole(to, "n_ctx", api->session.context_length);
    wk_write_key(to, "is_processing");
    wk_write_bool(to, !is_free(&api->slots[id]));
    if (choice) {
        wick_session_stats stats;
        wk_choice_get_stats(choice, &stats);
        wk_write_put_whole(to, "n_prompt_tokens", choice->prompt->n);
        wk_write_put_whole(to, "n_prompt_tokens_cache", stats.n_reused);
        wk_write_put_whole(to, "n_decoded", stats.n_generated);
    }
    wk_write_close(to, '}');
}

wick_status wk_answer_slots(wick_exchange *x, wick_error *err) {
    (void)err;
    if (x->api->has_no_slots) {
        wk_exchange_fail(x, 501, "this server shows no slots (--no-slots)");
        return WICK_OK;
    }
    wk_write_open(&x->part, '[');
    for (uint32_t id = 0; id < x->api->n_parallel; id++) write_slot(&x->part, x->api, id);
    wk_write_close(&x->part, ']');
    wk_exchange_end(x, 200);
    return WICK_OK;
}
