/* core/map.c: open addressing with linear probing, at most three quarters full. Nothing is ever
 * removed, so an empty slot ends every search. */
#include "core/map.h"

#include "core/hash.h"

#include <assert.h>

enum { LEAST_CAPACITY = 16 };

/* hash 0 marks an empty slot. It also picks the slot, so that growing never reads the keys. */
struct wk_map_slot {
    wk_str key;
    uint32_t hash;
    uint32_t value;
};

struct wk_map64_slot {
    uint64_t key;
    uint32_t value;
    bool is_used;
};

/* The least capacity for count keys; 0 when there is none. */
static size_t capacity_for(size_t count) {
    size_t capacity = LEAST_CAPACITY;
    while (capacity - capacity / 4 < count) {
        if (capacity > SIZE_MAX / 2) return 0;
        capacity *= 2;
    }
    return capacity;
}

static uint32_t hash_string(wk_str key) {
    const uint32_t hash = (uint32_t)(wk_hash(key.text, key.size) >> 32);
    return hash ? hash : 1;
}

void wk_map_init(wk_map *map, wk_heap *heap) { *map = (wk_map){.heap = heap}; }

void wk_map_release(wk_map *map) {
    wk_free(map->heap, map->slots, map->capacity * sizeof *map->slots);
    wk_map_init(map, map->heap);
}

/* The slot that holds key, or the empty one where it belongs. */
static wk_map_slot *find_string(const wk_map *map, wk_str key, uint32_t hash) {
    assert(hash != 0 && map->count < map->capacity); /* an empty slot ends the search */
    const size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        wk_map_slot *const slot = &map->slots[i];
        if (slot->hash == 0) return slot;
        if (slot->hash == hash && wk_str_equal(slot->key, key)) return slot;
    }
}

wick_status wk_map_reserve(wk_map *map, size_t count) {
    if (count <= map->capacity - map->capacity / 4) return WICK_OK;
    const size_t capacity = capacity_for(count);
    wk_map_slot *const slots = wk_alloc_array(map->heap, capacity, sizeof *slots);
    if (!slots) return WICK_ERR_OUT_OF_MEMORY;

    const size_t mask = capacity - 1;
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].hash == 0) continue;
        size_t j = map->slots[i].hash & mask;
        while (slots[j].hash != 0) j = (j + 1) & mask;
        slots[j] = map->slots[i];
    }
    wk_free(map->heap, map->slots, map->capacity * sizeof *map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return WICK_OK;
}

wick_status wk_map_put(wk_map *map, wk_str key, uint32_t value) {
    const wick_status status = wk_map_reserve(map, map->count + 1);
    if (status != WICK_OK) return status;
    const uint32_t hash = hash_string(key);
    wk_map_slot *const slot = find_string(map, key, hash);
    if (slot->hash == 0) {
        slot->key = key;
        slot->hash = hash;
        map->count++;
    }
    slot->value = value;
    return WICK_OK;
}

bool wk_map_get(const wk_map *map, wk_str key, uint32_t *value) {
    if (map->count == 0) return false;
    const wk_map_slot *const slot = find_string(map, key, hash_string(key));
    if (slot->hash == 0) return false;
    *value = slot->value;
    return true;
}

void wk_map64_init(wk_map64 *map, wk_heap *heap) { *map = (wk_map64){.heap = heap}; }

void wk_map64_release(wk_map64 *map) {
    wk_free(map->heap, map->slots, map->capacity * sizeof *map->slots);
    wk_map64_init(map, map->heap);
}

static wk_map64_slot *find_key(wk_map64_slot *slots, size_t capacity, uint64_t key) {
    assert(capacity > 0 && (capacity & (capacity - 1)) == 0);
    const size_t mask = capacity - 1;
    for (size_t i = (size_t)wk_hash_u64(key) & mask;; i = (i + 1) & mask) {
        wk_map64_slot *const slot = &slots[i];
        if (!slot->is_used || slot->key == key) return slot;
    }
}

static wick_status reserve_keys(wk_map64 *map, size_t count) {
    if (count <= map->capacity - map->capacity / 4) return WICK_OK;
    const size_t capacity = capacity_for(count);
    wk_map64_slot *const slots = wk_alloc_array(map->heap, capacity, sizeof *slots);
    if (!slots) return WICK_ERR_OUT_OF_MEMORY;
    for (size_t i = 0; i < map->capacity; i++) {
        const wk_map64_slot *const old = &map->slots[i];
        if (old->is_used) *find_key(slots, capacity, old->key) = *old;
    }
    wk_free(map->heap, map->slots, map->capacity * sizeof *map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return WICK_OK;
}

wick_status wk_map64_put(wk_map64 *map, uint64_t key, uint32_t value) {
    const wick_status status = reserve_keys(map, map->count + 1);
    if (status != WICK_OK) return status;
    wk_map64_slot *const slot = find_key(map->slots, map->capacity, key);
    if (!slot->is_used) map->count++;
    *slot = (wk_map64_slot){.key = key, .value = value, .is_used = true};
    return WICK_OK;
}

bool wk_map64_get(const wk_map64 *map, uint64_t key, uint32_t *value) {
    if (map->count == 0) return false;
    const wk_map64_slot *const slot = find_key(map->slots, map->capacity, key);
    if (!slot->is_used) return false;
    *value = slot->value;
    return true;
}
