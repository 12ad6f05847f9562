/* llm/session_adapters.c: the adapters that a session computes with. */
#include "llm/adapter.h"
#include "llm/session_struct.h"

#include "core/checksum.h"

#include <math.h>
#include <string.h>

static wick_status check_uses(const wick_session *s, const wick_lora_use *uses, size_t n,
                              wick_error *err) {
    if (uses == NULL && n > 0)
        return wk_fail(err, WICK_ERR_ARGUMENT, "wick_session_set_loras: uses is NULL");
    if (n > WK_MAX_ADAPTERS)
        return wk_fail(err, WICK_ERR_VALUE, "%zu adapters for one session: at most %d", n,
                       (int)WK_MAX_ADAPTERS);
    for (size_t i = 0; i < n; i++) {
        if (uses[i].lora == NULL || uses[i].lora->model != s->model)
            return wk_fail(err, WICK_ERR_ARGUMENT, "adapter %zu is NULL, or another model's", i);
        if (!isfinite(uses[i].scale))
            return wk_fail(err, WICK_ERR_VALUE, "the scale of adapter %zu is not a finite number",
                           i);
    }
    return WICK_OK;
}

static wk_choice choice_of(const wick_lora_use *uses, size_t n) {
    wk_choice choice = {.n = (uint32_t)n, .key = n > 0 ? WK_CHECKSUM_BEGIN : 0};
    for (size_t i = 0; i < n; i++) {
        choice.numbers[i] = uses[i].lora->adapter->number;
        choice.scales[i] = uses[i].scale;
        choice.key = wk_checksum(choice.key, &uses[i].lora->checksum, sizeof(uint64_t));
        choice.key = wk_checksum(choice.key, &uses[i].scale, sizeof uses[i].scale);
    }
    return choice;
}

void wk_session_release_loras(wick_session *session) {
    for (uint32_t i = 0; i < session->n_loras; i++) session->loras[i]->n_sessions--;
    session->n_loras = 0;
}

static void hold(wick_session *s, wick_lora *lora) {
    s->loras[s->n_loras++] = lora;
    lora->n_sessions++;
}

void wk_session_take_loras(wick_session *to, const wick_session *from) {
    for (uint32_t i = 0; i < from->n_loras; i++) hold(to, from->loras[i]);
    wk_sequence_choose(to->sequence, wk_sequence_choice(from->sequence));
}

wick_status wick_session_set_loras(wick_session *session, const wick_lora_use *uses, size_t n) {
    if (session == NULL) return WICK_ERR_ARGUMENT;
    wick_session *const s = session;
    WK_TRY(wk_session_check_idle(s));
    WK_TRY(check_uses(s, uses, n, &s->error));
    if (s->is_whole && s->n_tokens > 0)
        return wk_fail(&s->error, WICK_ERR_STATE,
                       "an encoder reads a text at once: reset the session before its adapters "
                       "change");
    const wk_choice choice = choice_of(uses, n);
    const wk_choice *const before = wk_sequence_choice(s->sequence);
    if (choice.key == before->key &&
        memcmp(choice.numbers, before->numbers, sizeof choice.numbers) == 0)
        return WICK_OK;
    wk_session_forget_computed(s);
    wk_session_release_loras(s);
    for (size_t i = 0; i < n; i++) hold(s, uses[i].lora);
    wk_sequence_choose(s->sequence, &choice);
    return WICK_OK;
}
