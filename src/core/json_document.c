/* core/json_document.c: the public face of core/json.h. */
#include "core/json.h"

#include <wick/json.h>

struct wick_json_document {
    wk_heap heap;
    wk_arena arena;
    wk_json *root;
};

_Static_assert((int)WICK_JSON_OBJECT == (int)WK_JSON_OBJECT &&
                   (int)WICK_JSON_STRING == (int)WK_JSON_STRING,
               "one list of kinds");

wick_status wick_json_parse(const char *text, size_t size, wick_json_document **out,
                            wick_error *error) {
    if (out != NULL) *out = NULL;
    if (out == NULL || (text == NULL && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_json_parse: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_json_document *const document = wk_alloc_zeroed(&heap, sizeof *document);
    if (document == NULL) return wk_fail_memory(error, sizeof *document, "JSON");
    document->heap = heap;
    wk_arena_init(&document->arena, &document->heap, 0);
    const wick_status status = wk_json_parse(&document->arena, text, size, &document->root, error);
    if (status != WICK_OK)
        wick_json_free(document);
    else
        *out = document;
    return status;
}

void wick_json_free(wick_json_document *document) {
    if (document == NULL) return;
    wk_arena_release(&document->arena);
    wk_heap heap = document->heap;
    wk_free(&heap, document, sizeof *document);
}

const wick_json *wick_json_root(const wick_json_document *document) {
    return document != NULL ? document->root : NULL;
}

wick_json_kind wick_json_kind_of(const wick_json *value) {
    return value != NULL ? (wick_json_kind)value->kind : WICK_JSON_NULL;
}

const wick_json *wick_json_get(const wick_json *object, const char *key) {
    return key != NULL ? wk_json_get(object, key) : NULL;
}

const wick_json *wick_json_first(const wick_json *list) {
    return list != NULL ? list->child : NULL;
}

const wick_json *wick_json_next(const wick_json *item) { return item != NULL ? item->next : NULL; }

static const char *text_of(const wk_str *text, size_t *size) {
    if (size != NULL) *size = text != NULL ? text->size : 0;
    return text != NULL ? text->text : NULL;
}

const char *wick_json_text(const wick_json *value, size_t *size) {
    const bool is_text = value != NULL && value->kind == WK_JSON_STRING;
    return text_of(is_text ? &value->string : NULL, size);
}

const char *wick_json_key(const wick_json *member, size_t *size) {
    return text_of(member != NULL ? &member->key : NULL, size);
}

bool wick_json_get_number(const wick_json *value, double *number) {
    if (value == NULL || value->kind != WK_JSON_NUMBER || number == NULL) return false;
    *number = value->number;
    return true;
}

bool wick_json_get_whole(const wick_json *value, uint64_t *number) {
    if (value == NULL || value->kind != WK_JSON_NUMBER || !value->is_integer ||
        value->integer < 0 || number == NULL)
        return false;
    *number = (uint64_t)value->integer;
    return true;
}

bool wick_json_is_true(const wick_json *value) {
    return value != NULL && value->kind == WK_JSON_BOOL && value->boolean;
}
