/* convert/value_list.h: metadata that is being collected for a new file. */
#ifndef WK_CONVERT_VALUE_LIST_H
#define WK_CONVERT_VALUE_LIST_H

#include "core/arena.h"
#include "core/str.h"

#include <wick/file.h>

/* Keys and texts are copied to the arena. The first failed allocation sets failed; later additions
 * then do nothing, so one check at the end is enough. */
typedef struct wk_value_list {
    wk_arena *arena;
    const char *prefix; /* of keys that begin with a dot: "llama" */
    wick_value *items;
    size_t n, capacity;
    bool failed;
} wk_value_list;

void wk_value_list_u32(wk_value_list *list, const char *key, uint32_t value);
void wk_value_list_f32(wk_value_list *list, const char *key, double value);
void wk_value_list_bool(wk_value_list *list, const char *key, bool value);
void wk_value_list_text(wk_value_list *list, const char *key, wk_str value);
/* values: in the arena. */
void wk_value_list_array(wk_value_list *list, const char *key, wick_value_type type,
                         const void *values, size_t count);

#endif
