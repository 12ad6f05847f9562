/* convert/value_list.c: see value_list.h. */
#include "convert/value_list.h"

#include <string.h>

/* Returns a followed by b, terminated. */
static wick_string join(wk_value_list *list, wk_str a, wk_str b) {
    char *const text = wk_arena_alloc(list->arena, a.size + b.size + 1);
    if (text == NULL) {
        list->failed = true;
        return (wick_string){0};
    }
    if (a.size > 0) memcpy(text, a.text, a.size);
    if (b.size > 0) memcpy(text + a.size, b.text, b.size);
    text[a.size + b.size] = '\0';
    return (wick_string){text, a.size + b.size};
}

static bool reserve(wk_value_list *list) {
    if (list->n < list->capacity) return true;
    const size_t capacity = list->capacity > 0 ? 2 * list->capacity : 32;
    wick_value *const grown = wk_arena_array(list->arena, capacity, sizeof *grown);
    if (grown == NULL) {
        list->failed = true;
        return false;
    }
    if (list->n > 0) memcpy(grown, list->items, list->n * sizeof *grown);
    list->items = grown;
    list->capacity = capacity;
    return true;
}

static void add(wk_value_list *list, const char *key, wick_value value) {
    if (list->failed || !reserve(list)) return;
    value.key = join(list, wk_str_of(key[0] == '.' ? list->prefix : ""), wk_str_of(key));
    if (!list->failed) list->items[list->n++] = value;
}

void wk_value_list_u32(wk_value_list *list, const char *key, uint32_t value) {
    add(list, key, (wick_value){.type = WICK_VALUE_U32, .u = value});
}

void wk_value_list_f32(wk_value_list *list, const char *key, double value) {
    add(list, key, (wick_value){.type = WICK_VALUE_F32, .f = value});
}

void wk_value_list_bool(wk_value_list *list, const char *key, bool value) {
    add(list, key, (wick_value){.type = WICK_VALUE_BOOL, .u = value ? 1 : 0});
}

void wk_value_list_text(wk_value_list *list, const char *key, wk_str value) {
    const wick_string copy = join(list, value, (wk_str){0});
    add(list, key, (wick_value){.type = WICK_VALUE_STRING, .string = copy});
}

void wk_value_list_array(wk_value_list *list, const char *key, wick_value_type type,
                         const void *values, size_t count) {
    add(list, key, (wick_value){.type = WICK_VALUE_ARRAY, .array = {type, count, values}});
}
