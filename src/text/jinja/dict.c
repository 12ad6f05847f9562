/* text/jinja/dict.c: dicts, the attributes of namespaces and the variables of a scope.
 *
 * Entries lie in the order in which their keys came. Up to LINEAR of them are searched one by
 * one; beyond that slots[hash % n_slots] and those after it (open addressing, linear probing, at
 * most half full) hold numbers of entries. What a search looks at is counted as work, so that keys
 * chosen to collide end at the limit of the template. */
#include "text/jinja/state.h"

#include "core/hash.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    LINEAR = 8,
    PROBE = 4, /* bytes that a look at a slot or an entry counts as */
};

struct wk_jslot {
    uint32_t hash;
    uint32_t place; /* of the entry, from 1; 0: empty */
};

wick_status wk_jdict_make(wk_jinja *j, wk_jkind kind, wk_jvalue *out) {
    wk_jdict *const dict = wk_jalloc(j, 1, sizeof *dict);
    if (dict == NULL) return WICK_ERR_VALUE;
    *dict = (wk_jdict){.n = 0};
    *out = (wk_jvalue){.kind = kind, .dict = dict};
    return WICK_OK;
}

/* ---- Hashes ---- */

/* Of 64 bits. */
static uint32_t mix(uint64_t bits) { return (uint32_t)(wk_hash_u64(bits) >> 32); }

/* Equal numbers have equal hashes, whatever their kinds: 1, 1.0 and True are one key. */
static uint32_t hash_number(const wk_jvalue *key) {
    if (wk_jis_integer(key)) return mix((uint64_t)wk_jas_integer(key));
    const double number = key->number;
    if (number >= -9.2e18 && number <= 9.2e18 && floor(number) == number)
        return mix((uint64_t)(int64_t)number);
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return mix(bits);
}

static uint32_t hash_text(wk_jinja *j, wk_str text) {
    wk_jcount(j, text.size);
    return (uint32_t)(wk_hash(text.text, text.size) >> 32);
}

/* A key that cannot be hashed is a failure. */
static wick_status hash_key(wk_jinja *j, const wk_jvalue *key, uint32_t *hash) {
    *hash = (uint32_t)key->kind; /* of kinds that are hardly ever keys */
    if (key->kind == WK_J_LIST || key->kind == WK_J_DICT)
        return wk_jfail(j, "unhashable type: '%s'", wk_jtype_name(key));
    if (key->kind == WK_J_STRING) *hash = hash_text(j, wk_jtext_str(key->string));
    if (wk_jis_number(key)) *hash = hash_number(key);
    if (key->kind != WK_J_TUPLE) return WICK_OK;
    WK_TRY(wk_jenter(j));
    for (size_t i = 0; i < key->list->n; i++) {
        uint32_t part;
        WK_TRY(wk_jwork(j, 1));
        WK_TRY(hash_key(j, &key->list->items[i], &part));
        *hash = mix((uint64_t)*hash << 32 | part);
    }
    j->depth--;
    return WICK_OK;
}

/* ---- Searching ---- */

/* Strings are by far the most keys. */
static wick_status equal_keys(wk_jinja *j, const wk_jvalue *a, const wk_jvalue *b, bool *equal) {
    wk_jcount(j, PROBE);
    *equal = false;
    if (a->kind != WK_J_STRING || b->kind != WK_J_STRING) return wk_jequal(j, a, b, equal);
    if (a->string.size != b->string.size) return WICK_OK;
    wk_jcount(j, a->string.size);
    *equal = wk_str_equal(wk_jtext_str(a->string), wk_jtext_str(b->string));
    return WICK_OK;
}

static wick_status find_slowly(wk_jinja *j, const wk_jdict *dict, const wk_jvalue *key,
                               wk_jvalue **found) {
    for (size_t i = 0; i < dict->n && *found == NULL; i++) {
        bool equal;
        WK_TRY(equal_keys(j, &dict->entries[i].key, key, &equal));
        if (equal) *found = &dict->entries[i].value;
    }
    return WICK_OK;
}

static wick_status find_by_hash(wk_jinja *j, const wk_jdict *dict, const wk_jvalue *key,
                                uint32_t hash, wk_jvalue **found) {
    assert(dict->n_slots >= 2 * dict->n); /* an empty slot ends the search */
    const size_t mask = dict->n_slots - 1;
    for (size_t i = hash & mask; dict->slots[i].place != 0; i = (i + 1) & mask) {
        wk_jentry *const entry = &dict->entries[dict->slots[i].place - 1];
        bool equal = false;
        if (dict->slots[i].hash == hash) WK_TRY(equal_keys(j, &entry->key, key, &equal));
        if (equal) *found = &entry->value;
        if (equal) break;
        WK_TRY(wk_jread(j, PROBE));
    }
    return WICK_OK;
}

wick_status wk_jdict_find(wk_jinja *j, const wk_jdict *dict, const wk_jvalue *key,
                          wk_jvalue **found) {
    uint32_t hash;
    *found = NULL;
    if (dict->n_slots == 0 && key->kind == WK_J_STRING) return find_slowly(j, dict, key, found);
    WK_TRY(hash_key(j, key, &hash));
    return dict->n_slots > 0 ? find_by_hash(j, dict, key, hash, found)
                             : find_slowly(j, dict, key, found);
}

wick_status wk_jdict_named(wk_jinja *j, const wk_jdict *dict, wk_str name, wk_jvalue **found) {
    const wk_jvalue key = wk_jstring((wk_jtext){name.text, name.size, NULL});
    return wk_jdict_find(j, dict, &key, found);
}

/* ---- Changing ---- */

static wick_status put_slot(wk_jinja *j, wk_jslot *slots, size_t n_slots, wk_jslot slot) {
    assert(slot.place > 0 && n_slots > 0 && (n_slots & (n_slots - 1)) == 0);
    size_t i = slot.hash & (n_slots - 1), n_probes = 1;
    for (; slots[i].place != 0; n_probes++) i = (i + 1) & (n_slots - 1);
    slots[i] = slot;
    return wk_jread(j, PROBE * n_probes);
}

/* Slots for all entries, and room for as many again; those that there are, if they are enough. */
static wick_status make_slots(wk_jinja *j, wk_jdict *dict) {
    size_t n_slots = dict->n_slots > 0 ? dict->n_slots : 32;
    while (n_slots < 4 * dict->n) n_slots *= 2;
    wk_jslot *const slots =
        n_slots == dict->n_slots ? dict->slots : wk_jalloc(j, n_slots, sizeof *slots);
    if (slots == NULL) return WICK_ERR_VALUE;
    memset(slots, 0, n_slots * sizeof *slots);
    WK_TRY(wk_jread(j, PROBE * n_slots));
    for (size_t i = 0; i < dict->n; i++) {
        wk_jslot slot = {.place = (uint32_t)i + 1};
        WK_TRY(hash_key(j, &dict->entries[i].key, &slot.hash));
        WK_TRY(put_slot(j, slots, n_slots, slot));
    }
    dict->slots = slots;
    dict->n_slots = n_slots;
    return WICK_OK;
}

/* The last entry becomes one that is found. */
static wick_status add_slot(wk_jinja *j, wk_jdict *dict) {
    if (dict->n_slots == 0 && dict->n <= LINEAR) return WICK_OK;
    if (dict->n > UINT32_MAX) return wk_jfail(j, "a dict has too many keys");
    if (dict->n_slots < 2 * dict->n) return make_slots(j, dict);
    wk_jslot slot = {.place = (uint32_t)dict->n};
    WK_TRY(hash_key(j, &dict->entries[dict->n - 1].key, &slot.hash));
    return put_slot(j, dict->slots, dict->n_slots, slot);
}

wick_status wk_jdict_set(wk_jinja *j, wk_jdict *dict, wk_jvalue key, wk_jvalue value) {
    wk_jvalue *found;
    WK_TRY(wk_jdict_find(j, dict, &key, &found));
    if (found != NULL) {
        *found = value;
        return WICK_OK;
    }
    if (dict->n == dict->capacity) {
        wk_jentry *const entries = wk_jgrow(j, dict->entries, &dict->capacity, 4, sizeof *entries);
        if (entries == NULL) return WICK_ERR_VALUE;
        dict->entries = entries;
    }
    dict->entries[dict->n++] = (wk_jentry){key, value};
    WK_TRY(wk_jwork(j, 2));
    return add_slot(j, dict);
}

wick_status wk_jdict_remove(wk_jinja *j, wk_jdict *dict, const wk_jvalue *key, wk_jvalue *value,
                            bool *is_found) {
    wk_jvalue *found;
    WK_TRY(wk_jdict_find(j, dict, key, &found));
    *is_found = found != NULL;
    if (found == NULL) return WICK_OK;
    *value = *found;
    wk_jentry *const entry = (wk_jentry *)(void *)((char *)found - offsetof(wk_jentry, value));
    const size_t after = dict->n - 1 - (size_t)(entry - dict->entries);
    memmove(entry, entry + 1, after * sizeof *entry);
    dict->n--;
    WK_TRY(wk_jread(j, PROBE * after));
    return dict->n_slots > 0 ? make_slots(j, dict) : WICK_OK;
}

void wk_jdict_clear(wk_jinja *j, wk_jdict *dict) {
    dict->n = 0;
    if (dict->n_slots > 0) memset(dict->slots, 0, dict->n_slots * sizeof *dict->slots);
    wk_jcount(j, PROBE * dict->n_slots);
}
