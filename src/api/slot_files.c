/* api/slot_files.c: what slots keep, saved to files and loaded from them in steps, between which
 * other texts go on; the file's way to the disk at the end of saving is one step. See api.h. */
#include "api/api.h"
#include "llm/session_image.h"
#include "sys/clock.h"
#include "sys/file.h"

#include <wick/saving.h>

#include <stdio.h>
#include <string.h>

enum { STEP_NS = 2000000 }; /* for polls of a transfer between two batches of texts */

/* The text of a slot on its way to a file or from one: its slot is_moving. */
struct wk_slot_transfer {
    uint32_t id; /* of the slot */
    const char *name;
    wick_session_saving *saving; /* to file; NULL: it is loaded */
    wk_file_writer *file;
    wick_session_loading *loading; /* into made; NULL: it is saved */
    wick_session *made;
};

/* ---- What is asked for ---- */

static bool has_action(const wick_exchange *x, const char *action) {
    static const char key[] = "action=";
    const char *at = x->query;
    while (at && strncmp(at, key, sizeof key - 1) != 0) {
        at = strchr(at, '&');
        if (at) at++;
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

/* A failure of a file: with its name in place of the path in quotes, which is none of the client's
 * business. */
static wick_status fail_with_file(const char *name, wick_status status, const wick_error *reason,
                                  wick_error *err) {
    const char *const begin = strchr(reason->message, '\'');
    const char *const end = begin ? strchr(begin + 1, '\'') : NULL;
    const char *const slash = end ? memchr(begin, '/', (size_t)(end - begin)) : NULL;
    /* What is not found is the folder, which was there: no fault of the client's. */
    if (status == WICK_ERR_NOT_FOUND) status = WICK_ERR_IO;
    if (!slash) return wk_fail(err, status, "%s", reason->message);
    return wk_fail(err, status, "%.*s'%s%s", (int)(begin - reason->message), reason->message, name,
                   end);
}

/* ---- Answers ---- */

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

/* ---- Transfers ---- */

/* Only a saved text is replaced: clients choose the name. */
static wick_status check_replaced(wick_exchange *x, const wk_slot_transfer *t, const char *path,
                                  wick_error *err) {
    char magic[sizeof WK_IMAGE_MAGIC - 1];
    wick_error own = {.status = WICK_OK};
    wk_file *file;
    const wick_status status = wk_file_open(x->heap, path, &file, &own);
    if (status == WICK_ERR_NOT_FOUND) return WICK_OK;
    if (status != WICK_OK) return fail_with_file(t->name, status, &own, err);
    const bool is_saved = wk_file_read_at(file, 0, magic, sizeof magic, NULL) == WICK_OK &&
                          memcmp(magic, WK_IMAGE_MAGIC, sizeof magic) == 0;
    wk_file_close(x->heap, file);
    if (is_saved) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE, "'%s' is another file, which is not replaced", t->name);
}

static wick_status start_saving(wick_exchange *x, wk_slot_transfer *t, const char *path,
                                wick_error *err) {
    wick_error own = {.status = WICK_OK};
    wick_session *const kept = x->api->slots[t->id].kept;
    if (!kept) return wk_fail(err, WICK_ERR_VALUE, "this slot has no text");
    WK_TRY(check_replaced(x, t, path, err));
    wick_status status = wk_file_write_start(x->heap, path, &t->file, &own);
    if (status != WICK_OK) return fail_with_file(t->name, status, &own, err);
    status = wick_session_save_start(kept, wk_file_sink, t->file, &t->saving, err);
    if (status != WICK_OK) (void)wk_file_write_finish(x->heap, t->file, false, NULL);
    return status;
}

static wick_status start_loading(wick_exchange *x, wk_slot_transfer *t, const char *path,
                                 wick_error *err) {
    wick_error own = {.status = WICK_OK};
    wick_source source;
    WK_TRY(wick_session_open(x->api->model, &x->api->session, &t->made, err));
    wick_status status = wick_source_file(path, &source, &own);
    if (status == WICK_OK) status = wick_session_load_start(t->made, source, &t->loading, &own);
    if (status == WICK_OK) return WICK_OK;
    wick_session_close(t->made);
    if (status == WICK_ERR_NOT_FOUND) return wk_fail(err, WICK_ERR_VALUE, "there is no such file");
    return fail_with_file(t->name, status, &own, err);
}

static wick_status start(wick_exchange *x, const wk_slot_transfer *of, bool saves, const char *path,
                         wick_error *err) {
    wick_api *const api = x->api;
    wk_slot_transfer *const t = wk_arena_array(&x->arena, 1, sizeof *t);
    if (!t) return wk_fail_memory(err, sizeof *t, "a saved text");
    *t = *of;
    WK_TRY(saves ? start_saving(x, t, path, err) : start_loading(x, t, path, err));
    x->transfer = t;
    api->slots[t->id].is_moving = true;
    api->n_moving++;
    wk_exchange_move(x, &api->running);
    return WICK_OK;
}

/* The file is whole or not there, or the slot has the text that was loaded. What is not done is
 * given up. */
static wick_status end(wick_exchange *x, wick_error *err) {
    wk_slot_transfer *const t = x->transfer;
    wk_slot *const slot = &x->api->slots[t->id];
    x->transfer = NULL;
    slot->is_moving = false;
    x->api->n_moving--;
    if (t->saving) {
        const wick_status status = wick_session_save_finish(t->saving, err);
        const wick_status closed = wk_file_write_finish(x->heap, t->file, status == WICK_OK, err);
        return status != WICK_OK ? status : closed;
    }
    const wick_status status = wick_session_load_finish(t->loading, err);
    wick_session_close(status == WICK_OK ? slot->kept : t->made);
    if (status == WICK_OK) slot->kept = t->made;
    return status;
}

void wk_transfer_cancel(wick_exchange *x) {
    if (x->transfer) (void)end(x, NULL);
}

void wk_transfer_step(wick_exchange *x) {
    const wk_slot_transfer t = *x->transfer;
    const uint64_t until_ns = wk_clock_ns() + STEP_NS;
    wick_error own = {.status = WICK_OK}, err = {.status = WICK_OK};
    while ((t.saving ? wick_session_save_poll(t.saving) : wick_session_load_poll(t.loading)) ==
           WICK_PENDING)
        if (wk_clock_ns() >= until_ns) return;
    const wick_status status = end(x, &own);
    if (status != WICK_OK) {
        wk_exchange_break(x, fail_with_file(t.name, status, &own, &err), &err);
        return;
    }
    wk_exchange_stop(x);
    write_done(x, t.id, t.saving ? "n_saved" : "n_restored", t.name);
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
    const wk_slot *const slot = &x->api->slots[id];
    if (slot->choice) return wk_fail(err, WICK_ERR_STATE, "this slot is generating a text");
    if (slot->is_moving)
        return wk_fail(err, WICK_ERR_STATE, "this slot is being saved or restored");
    if (erases) return erase(x, id);
    WK_TRY(read_path(x, &path, &name, err));
    return start(x, &(wk_slot_transfer){.id = id, .name = name}, saves, path, err);
}
