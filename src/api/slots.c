/* api/slots.c: the places where texts are generated, as llama-server shows them, saves them and
 * loads them. See api.h. */
#include "api/api.h"

#include <wick/saving.h>

#include <stdio.h>
#include <string.h>

/* ---- Places of texts ---- */

/* The one that was asked for; else one without a text that is kept, if there is one. */
static wk_slot *find_slot(const wick_exchange *x) {
    const wick_api *const api = x->api;
    if (x->slot >= 0 && !api->slots[x->slot].choice) return &api->slots[x->slot];
    wk_slot *found = NULL;
    for (uint32_t i = 0; i < api->n_parallel; i++) {
        wk_slot *const slot = &api->slots[i];
        if (!slot->choice && (!found || (found->kept && !slot->kept))) found = slot;
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
    x->api->n_running++;
    if (x->n_loras == 0 && desc->logits == WICK_LOGITS_NONE && continue_kept(choice, desc))
        return WICK_OK;
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
    wk_write_bool(to, choice != NULL);
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

/* ---- Saved ones ---- */

static bool has_action(const wick_exchange *x, const char *action) {
    static const char key[] = "action=";
    const char *at = x->query;
    while (at && strncmp(at, key, sizeof key - 1) != 0) {
        at = strchr(at, '&');
        at += at != NULL;
    }
    if (!at) return false;
    at += sizeof key - 1;
    return wk_str_is((wk_str){at, strcspn(at, "&")}, action);
}

/* A file in the folder: a name of letters, digits and - _ . that does not begin with a point. */
static wick_status read_path(wick_exchange *x, const char **path, const char **name,
                             wick_error *err) {
    enum { MOST = 200 };
    const wk_json *const given = wk_json_get(x->body, "filename");
    const bool is_text = given && given->kind == WK_JSON_STRING;
    bool is_plain = is_text && given->string.size > 0 && given->string.size <= MOST;
    for (size_t i = 0; is_plain && i < given->string.size; i++) {
        const char c = given->string.text[i];
        is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   c == '-' || c == '_' || (c == '.' && i > 0);
    }
    if (!is_plain)
        return wk_fail(err, WICK_ERR_VALUE,
                       "filename must be a name of at most %d letters, digits, - _ and points, "
                       "which does not begin with a point",
                       MOST);
    const size_t size = strlen(x->api->slot_folder) + given->string.size + 2;
    char *const made = wk_arena_alloc(&x->arena, size);
    if (!made) return wk_fail_memory(err, size, "a path");
    snprintf(made, size, "%s/%s", x->api->slot_folder, given->string.text);
    *path = made;
    *name = given->string.text;
    return WICK_OK;
}

/* A failure of a file: with its name alone, as the folder is none of the client's business. */
static wick_status fail_with_file(wick_exchange *x, wick_status status, const wick_error *reason,
                                  wick_error *err) {
    const size_t folder = strlen(x->api->slot_folder) + 1;
    const char *const at = strstr(reason->message, x->api->slot_folder);
    const char *const rest = at ? at + folder : reason->message;
    const int before = at ? (int)(at - reason->message) : 0;
    return wk_fail(err, status, "%.*s%s", before, reason->message, rest);
}

static wick_status save(wick_exchange *x, const wk_slot *slot, const char *path, wick_error *err) {
    wick_error own = {.status = WICK_OK};
    if (!slot->kept) return wk_fail(err, WICK_ERR_VALUE, "this slot has no text");
    const wick_status status = wick_session_save(slot->kept, path, &own);
    if (status == WICK_OK) return WICK_OK;
    const bool is_lost = status == WICK_ERR_NOT_FOUND; /* the folder, which was there */
    return fail_with_file(x, is_lost ? WICK_ERR_IO : status, &own, err);
}

static wick_status restore(wick_exchange *x, wk_slot *slot, const char *path, wick_error *err) {
    wick_session *made;
    wick_error own = {.status = WICK_OK};
    WK_TRY(wick_session_open(x->api->model, &x->api->session, &made, err));
    const wick_status status = wick_session_load(made, path, &own);
    wick_session_close(status == WICK_OK ? slot->kept : made);
    if (status == WICK_OK) slot->kept = made;
    if (status == WICK_ERR_NOT_FOUND) return wk_fail(err, WICK_ERR_VALUE, "there is no such file");
    return status == WICK_OK ? WICK_OK : fail_with_file(x, status, &own, err);
}

static void write_done(wick_exchange *x, uint32_t id, const char *key, const char *name) {
    wick_session_stats stats = {.n_context = 0};
    if (x->api->slots[id].kept) wick_session_get_stats(x->api->slots[id].kept, &stats);
    wk_write_open(&x->part, '{');
    wk_write_put_whole(&x->part, "id_slot", id);
    if (name) wk_write_put(&x->part, "filename", name);
    wk_write_put_whole(&x->part, key, stats.n_context);
    wk_write_close(&x->part, '}');
    wk_exchange_end(x, 200);
}

/* Also what the text left in the cache, and others with it. */
static wick_status erase(wick_exchange *x, uint32_t id) {
    wk_slot *const slot = &x->api->slots[id];
    write_done(x, id, "n_erased", NULL);
    wick_session_close(slot->kept);
    slot->kept = NULL;
    wick_model_trim(x->api->model);
    return WICK_OK;
}

wick_status wk_answer_slot_action(wick_exchange *x, wick_error *err) {
    uint32_t id = 0;
    const char *const number = x->path.text + strlen("/slots/");
    const char *path = NULL, *name = NULL;
    for (const char *at = number; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || id > 10000)
            return wk_fail(err, WICK_ERR_NOT_FOUND, "there is no such slot");
        id = 10 * id + (uint32_t)(*at - '0');
    }
    if (*number == '\0' || id >= x->api->n_parallel)
        return wk_fail(err, WICK_ERR_NOT_FOUND, "there is no such slot");
    const bool saves = has_action(x, "save"), erases = has_action(x, "erase");
    if (!saves && !erases && !has_action(x, "restore"))
        return wk_fail(err, WICK_ERR_VALUE, "action must be save, restore or erase");
    if (!x->api->slot_folder) {
        wk_exchange_fail(x, 501, "this server saves no slots (--slot-save-path)");
        return WICK_OK;
    }
    wk_slot *const slot = &x->api->slots[id];
    if (slot->choice) return wk_fail(err, WICK_ERR_STATE, "this slot is generating a text");
    if (erases) return erase(x, id);
    WK_TRY(read_path(x, &path, &name, err));
    WK_TRY(saves ? save(x, slot, path, err) : restore(x, slot, path, err));
    write_done(x, id, saves ? "n_saved" : "n_restored", name);
    return WICK_OK;
}
