/* core/map.h: hash maps from strings, and from 64-bit keys, to 32-bit values. Open addressing. */
#ifndef WK_CORE_MAP_H
#define WK_CORE_MAP_H

#include "core/alloc.h"
#include "core/str.h"

typedef struct wk_map_slot wk_map_slot;

/* Keys are not copied: they must outlive the map. */
typedef struct wk_map {
    wk_heap *heap;
    wk_map_slot *slots;
    size_t capacity, count; /* capacity: 0 or a power of two */
} wk_map;

void wk_map_init(wk_map *map, wk_heap *heap);
void wk_map_release(wk_map *map);
/* Makes room for count keys. */
wick_status wk_map_reserve(wk_map *map, size_t count);
/* Sets or replaces. WICK_ERR_OUT_OF_MEMORY when it cannot grow. */
wick_status wk_map_put(wk_map *map, wk_str key, uint32_t value);
/* False when absent; *value is then untouched. */
bool wk_map_get(const wk_map *map, wk_str key, uint32_t *value);

typedef struct wk_map64_slot wk_map64_slot;

typedef struct wk_map64 {
    wk_heap *heap;
    wk_map64_slot *slots;
    size_t capacity, count;
} wk_map64;

void wk_map64_init(wk_map64 *map, wk_heap *heap);
void wk_map64_release(wk_map64 *map);
wick_status wk_map64_put(wk_map64 *map, uint64_t key, uint32_t value);
bool wk_map64_get(const wk_map64 *map, uint64_t key, uint32_t *value);

#endif
