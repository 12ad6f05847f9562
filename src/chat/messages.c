/* chat/messages.c: see chat/messages.h. */
#include "chat/messages.h"

#include <string.h>

/* One block of the heap for each message, so that any can be freed alone. */
typedef struct message {
    wk_json object; /* first: the list's items are these */
    wk_arena arena; /* everything but text */
    wk_strbuf text; /* of content, where the message is a role and a text */
    wk_json *content;
} message;

static const char role_key[] = "role", content_key[] = "content";

/* ---- One message ---- */

static void free_message(wk_heap *heap, message *m) {
    wk_strbuf_release(&m->text);
    wk_arena_release(&m->arena);
    wk_free(heap, m, sizeof *m);
}

static message *make_message(wk_heap *heap) {
    enum { CHUNK = 256 };
    message *const m = wk_alloc_zeroed(heap, sizeof *m);
    if (!m) return NULL;
    m->object.kind = WK_JSON_OBJECT;
    wk_arena_init(&m->arena, heap, CHUNK);
    wk_strbuf_init(&m->text, heap);
    return m;
}

static void append_utf8(wk_strbuf *to, wk_str text) {
    for (size_t i = 0; i < text.size;) {
        size_t bad = 0;
        const size_t n = wk_utf8_size(text.text + i, text.size - i, &bad);
        wk_strbuf_append(to, n > 0 ? text.text + i : "\xEF\xBF\xBD", n > 0 ? n : 3);
        i += n > 0 ? n : bad;
    }
}

/* By all of text, or by nothing. False: out of memory. */
static bool grow(message *m, wk_str text) {
    const size_t size = m->text.size;
    append_utf8(&m->text, text);
    const bool is_whole = !m->text.failed;
    if (!is_whole) {
        m->text.size = size;
        m->text.failed = false;
        if (m->text.data) m->text.data[size] = '\0';
    }
    /* Also after a failure: an earlier part of text may have moved the bytes. */
    m->content->string = (wk_str){m->text.data ? m->text.data : "", m->text.size};
    return is_whole;
}

static wk_json *add_text(message *m, const char *key) {
    wk_json *const item = wk_arena_array(&m->arena, 1, sizeof *item);
    if (!item) return NULL;
    item->kind = WK_JSON_STRING;
    item->key = wk_str_of(key);
    wk_json_append(&m->object, item);
    return item;
}

static bool fill(message *m, const char *role, wk_str content) {
    wk_json *const item = add_text(m, role_key);
    m->content = add_text(m, content_key);
    return item && m->content && wk_json_copy_text(&m->arena, wk_str_of(role), &item->string) &&
           grow(m, content);
}

/* ---- The list ---- */

static wick_status fail_memory(wick_error *err) {
    return wk_fail_memory(err, sizeof(message), "a message");
}

wk_chat_messages wk_chat_messages_none(wk_heap *heap) {
    return (wk_chat_messages){.heap = heap, .list = {.kind = WK_JSON_ARRAY}};
}

void wk_chat_messages_cut(wk_chat_messages *messages, size_t n) {
    wk_json *item = messages->list.child;
    messages->list.child = messages->list.last = NULL;
    messages->list.count = 0;
    for (wk_json *next; item; item = next) {
        next = item->next;
        if (messages->list.count < n)
            wk_json_append(&messages->list, item);
        else
            free_message(messages->heap, (message *)item);
    }
}

wick_status wk_chat_messages_add(wk_chat_messages *messages, const char *role, wk_str content,
                                 wick_error *err) {
    message *const m = make_message(messages->heap);
    if (!m || !fill(m, role, content)) {
        if (m) free_message(messages->heap, m);
        return fail_memory(err);
    }
    wk_json_append(&messages->list, &m->object);
    return WICK_OK;
}

wick_status wk_chat_messages_add_json(wk_chat_messages *messages, const wk_json *from,
                                      wick_error *err) {
    const wk_json *const role = wk_json_get(from, role_key);
    if (!from || from->kind != WK_JSON_OBJECT || !role || role->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "a message must be an object with a text as its role");
    message *const m = make_message(messages->heap);
    if (!m || !wk_json_copy(&m->arena, from, &m->object)) {
        if (m) free_message(messages->heap, m);
        return fail_memory(err);
    }
    wk_json_append(&messages->list, &m->object);
    return WICK_OK;
}

static bool has_role(const wk_json *object, const char *role) {
    const wk_json *const found = wk_json_get(object, role_key);
    return found && found->kind == WK_JSON_STRING && wk_str_is(found->string, role);
}

size_t wk_chat_messages_fixed(const wk_chat_messages *messages) {
    size_t n = 0;
    const wk_json *item = messages->list.child;
    for (; item && (has_role(item, "system") || has_role(item, "developer")); item = item->next)
        n++;
    return n;
}

wick_status wk_chat_messages_set_system(wk_chat_messages *messages, const char *text,
                                        wick_error *err) {
    wk_chat_messages made = wk_chat_messages_none(messages->heap);
    if (text && text[0] != '\0')
        WK_TRY(wk_chat_messages_add(&made, "system", wk_str_of(text), err));
    wk_json *item = messages->list.child;
    if (item && has_role(item, "system")) {
        wk_json *const next = item->next;
        free_message(messages->heap, (message *)item);
        item = next;
    }
    for (wk_json *next; item; item = next) {
        next = item->next;
        wk_json_append(&made.list, item);
    }
    messages->list = made.list;
    return WICK_OK;
}

wick_status wk_chat_messages_grow(wk_chat_messages *messages, wk_str text, wick_error *err) {
    return grow((message *)messages->list.last, text) ? WICK_OK : fail_memory(err);
}

/* ---- Turns ---- */

/* The n-th message of the user after message `first`; *n is reduced by those that there are. */
static size_t find_turn(const wk_chat_messages *messages, size_t first, size_t *n) {
    size_t i = 0;
    for (const wk_json *item = messages->list.child; item; item = item->next, i++)
        if (i > first && has_role(item, "user") && --*n == 0) return i;
    return first;
}

size_t wk_chat_messages_turns(const wk_chat_messages *messages, size_t first) {
    size_t left = SIZE_MAX;
    (void)find_turn(messages, first, &left);
    return SIZE_MAX - left;
}

size_t wk_chat_messages_turn(const wk_chat_messages *messages, size_t first, size_t n) {
    return n > 0 ? find_turn(messages, first, &n) : first;
}

const wk_json *wk_chat_messages_view(const wk_chat_messages *messages, size_t first, size_t end,
                                     wk_arena *arena) {
    const size_t n_fixed = wk_chat_messages_fixed(messages);
    wk_json *const view = wk_arena_array(arena, 1, sizeof *view);
    if (!view) return NULL;
    view->kind = WK_JSON_ARRAY;
    const wk_json *item = messages->list.child;
    for (size_t i = 0; item && i < end; item = item->next, i++) {
        if (i >= n_fixed && i < first) continue;
        wk_json *const copy = wk_arena_alloc(arena, sizeof *copy);
        if (!copy) return NULL;
        *copy = *item;
        wk_json_append(view, copy);
    }
    return view;
}
