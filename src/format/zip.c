/* format/zip.c: reads ZIP archives.
 *
 * Reference: PKWARE's APPNOTE 6.3.10, sections 4.3 and 4.5.3. An archive is read from its end: the
 * end record says where the directory is, the directory where the entries are. */
#include "format/zip.h"

#include "format/inflate.h"
#include "format/tensor_order.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    LOCAL_SIZE = 30,
    DIRECTORY_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    MAX_COMMENT = 65535,
    EXTRA_64 = 1, /* the extra field of 64-bit sizes */
    METHOD_DEFLATE = 8,
    FLAG_ENCRYPTED = 1,
};

typedef struct reader {
    const uint8_t *bytes;
    uint64_t size;
    uint64_t directory, directory_size, n_entries;
    wick_error *err;
} reader;

static uint64_t number(const uint8_t *at, int n_bytes) {
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static bool is_record(const uint8_t *at, char a, char b) {
    return at[0] == 'P' && at[1] == 'K' && at[2] == a && at[3] == b;
}

bool wk_zip_begins(const void *data, uint64_t size) {
    /* An archive without entries is its end record, of one kind or the other. */
    return size >= END_SIZE &&
           (is_record(data, 3, 4) || is_record(data, 5, 6) || is_record(data, 6, 6));
}

/* ---- The end ---- */

static wick_status find_end(const reader *r, uint64_t *end) {
    for (uint64_t back = END_SIZE; back <= r->size && back <= END_SIZE + MAX_COMMENT; back++) {
        const uint8_t *const at = r->bytes + (r->size - back);
        if (!is_record(at, 5, 6) || number(at + 20, 2) != back - END_SIZE) continue;
        *end = r->size - back;
        return WICK_OK;
    }
    return wk_fail(r->err, WICK_ERR_FORMAT,
                   "the zip archive has no directory at its end: it is cut off");
}

/* What the end record has no room for is in another one, which a locator before it points to. */
static wick_status read_end64(reader *r, uint64_t end, uint64_t *before) {
    if (end < LOCATOR_SIZE || !is_record(r->bytes + (end - LOCATOR_SIZE), 6, 7)) return WICK_OK;
    const uint64_t locator = end - LOCATOR_SIZE, at = number(r->bytes + locator + 8, 8);
    if (locator < END64_SIZE || at > locator - END64_SIZE || !is_record(r->bytes + at, 6, 6))
        return wk_fail(r->err, WICK_ERR_FORMAT,
                       "byte %" PRIu64 ": the zip archive's 64-bit end record is not where it "
                       "should be",
                       locator);
    r->n_entries = number(r->bytes + at + 32, 8);
    r->directory_size = number(r->bytes + at + 40, 8);
    r->directory = number(r->bytes + at + 48, 8);
    *before = at;
    return WICK_OK;
}

static wick_status find_directory(reader *r) {
    uint64_t end = 0;
    WK_TRY(find_end(r, &end));
    const uint8_t *const at = r->bytes + end;
    r->n_entries = number(at + 10, 2);
    r->directory_size = number(at + 12, 4);
    r->directory = number(at + 16, 4);
    if (number(at + 4, 2) != number(at + 6, 2) || number(at + 8, 2) != r->n_entries)
        return wk_fail(r->err, WICK_ERR_UNSUPPORTED, "the zip archive is one of several parts");
    WK_TRY(read_end64(r, end, &end));
    if (r->directory > end || r->directory_size > end - r->directory)
        return wk_fail(r->err, WICK_ERR_FORMAT,
                       "the zip archive's directory of %" PRIu64 " bytes at %" PRIu64
                       " does not lie before its end record at %" PRIu64,
                       r->directory_size, r->directory, end);
    if (r->n_entries > r->directory_size / DIRECTORY_SIZE)
        return wk_fail(r->err, WICK_ERR_FORMAT,
                       "the zip archive's directory of %" PRIu64 " bytes cannot have %" PRIu64
                       " entries",
                       r->directory_size, r->n_entries);
    return WICK_OK;
}

/* ---- The directory ---- */

/* Sizes and the place of an entry that 32 bits do not hold. */
static bool read_extra(const uint8_t *extra, uint64_t size, wk_zip_entry *entry, uint64_t *local) {
    uint64_t *const wanted[] = {&entry->size, &entry->stored, local};
    const uint8_t *at = NULL;
    uint64_t left = 0;
    while (at == NULL && size >= 4) {
        const uint64_t length = number(extra + 2, 2);
        if (length > size - 4) break;
        if (number(extra, 2) == EXTRA_64) at = extra + 4, left = length;
        extra += 4 + length;
        size -= 4 + length;
    }
    for (size_t i = 0; i < WK_COUNT(wanted); i++) {
        if (*wanted[i] != UINT32_MAX) continue;
        if (at == NULL) continue; /* just that number */
        if (left < 8) return false;
        *wanted[i] = number(at, 8);
        at += 8;
        left -= 8;
    }
    return true;
}

static wick_status check_kind(const reader *r, const uint8_t *at, const wk_zip_entry *entry) {
    const uint64_t method = number(at + 10, 2);
    const wk_shown shown = wk_str_show(entry->name);
    const char *const name = shown.text;
    if ((number(at + 8, 2) & FLAG_ENCRYPTED) != 0)
        return wk_fail(r->err, WICK_ERR_UNSUPPORTED, "the entry '%s' of the archive is encrypted",
                       name);
    if (method != 0 && method != METHOD_DEFLATE)
        return wk_fail(r->err, WICK_ERR_UNSUPPORTED,
                       "the entry '%s' of the archive is compressed by method %" PRIu64
                       ", only deflate is known",
                       name, method);
    return WICK_OK;
}

/* Where the bytes of an entry begin: after its own header, which must be of that name. */
static wick_status find_bytes(const reader *r, uint64_t local, wk_zip_entry *entry) {
    const wk_shown shown = wk_str_show(entry->name);
    const char *const name = shown.text;
    const bool fits = r->directory >= LOCAL_SIZE && local <= r->directory - LOCAL_SIZE;
    const uint8_t *const at = r->bytes + (fits ? local : 0);
    const uint64_t n_name = fits ? number(at + 26, 2) : 0, n_extra = fits ? number(at + 28, 2) : 0;
    if (!fits || !is_record(at, 3, 4) || n_name + n_extra > r->directory - LOCAL_SIZE - local ||
        !wk_str_equal((wk_str){(const char *)at + LOCAL_SIZE, (size_t)n_name}, entry->name))
        return wk_fail(r->err, WICK_ERR_FORMAT,
                       "byte %" PRIu64 ": the archive's entry '%s' does not begin there", local,
                       name);
    entry->offset = local + LOCAL_SIZE + n_name + n_extra;
    if (entry->stored > r->directory - entry->offset)
        return wk_fail(r->err, WICK_ERR_FORMAT,
                       "the archive's entry '%s' of %" PRIu64
                       " bytes does not end before the directory",
                       name, entry->stored);
    const uint64_t most = !entry->is_deflated ? entry->stored
                          : entry->stored > UINT64_MAX / WK_INFLATE_RATIO
                              ? UINT64_MAX
                              : entry->stored * WK_INFLATE_RATIO;
    if (entry->size <= most && (entry->is_deflated || entry->size == entry->stored)) return WICK_OK;
    return wk_fail(r->err, WICK_ERR_FORMAT,
                   "the archive's entry '%s' of %" PRIu64 " bytes cannot unpack to %" PRIu64, name,
                   entry->stored, entry->size);
}

/* place: of its local header and all that follows it. */
static wick_status read_entry(const reader *r, uint64_t *at, wk_zip_entry *entry,
                              wick_file_tensor *place) {
    const uint64_t end = r->directory + r->directory_size;
    const uint8_t *const record = r->bytes + *at;
    const bool fits = end - *at >= DIRECTORY_SIZE && is_record(record, 1, 2);
    const uint64_t n_name = fits ? number(record + 28, 2) : 0;
    const uint64_t n_extra = fits ? number(record + 30, 2) : 0;
    const uint64_t n_comment = fits ? number(record + 32, 2) : 0;
    if (!fits || n_name + n_extra + n_comment > end - *at - DIRECTORY_SIZE)
        return wk_fail(r->err, WICK_ERR_FORMAT,
                       "byte %" PRIu64 ": the zip archive's directory lacks an entry here", *at);
    const uint8_t *const name = record + DIRECTORY_SIZE;
    uint64_t local = number(record + 42, 4);
    *entry = (wk_zip_entry){.name = {(const char *)name, (size_t)n_name},
                            .stored = number(record + 20, 4),
                            .size = number(record + 24, 4),
                            .checksum = (uint32_t)number(record + 16, 4),
                            .is_deflated = number(record + 10, 2) == METHOD_DEFLATE};
    if (!read_extra(name + n_name, n_extra, entry, &local))
        return wk_fail(r->err, WICK_ERR_FORMAT,
                       "byte %" PRIu64 ": the archive's entry '%s' lacks its 64-bit sizes", *at,
                       wk_str_show(entry->name).text);
    WK_TRY(check_kind(r, record, entry));
    WK_TRY(find_bytes(r, local, entry));
    *place = (wick_file_tensor){.offset = local, .size = entry->offset + entry->stored - local};
    *at += DIRECTORY_SIZE + n_name + n_extra + n_comment;
    return WICK_OK;
}

/* Entries that share bytes are how small archives unpack to enormous ones. */
static wick_status check_apart(wk_heap *heap, const wk_zip *zip, const wick_file_tensor *places,
                               wick_error *err) {
    const size_t n = zip->n_entries;
    uint32_t *const order = wk_alloc_array(heap, n, sizeof *order);
    if (order == NULL && n > 0)
        return wk_fail_memory(err, n * sizeof *order, "the directory of a zip archive");
    wk_tensor_order(places, order, n);
    wick_status status = WICK_OK;
    for (size_t i = 1; i < n && status == WICK_OK; i++) {
        const wick_file_tensor *const a = &places[order[i - 1]], *const b = &places[order[i]];
        if (a->offset + a->size <= b->offset) continue;
        status = wk_fail(err, WICK_ERR_FORMAT,
                         "the archive's entries '%s' and '%s' share bytes of the file",
                         wk_str_show(zip->entries[order[i - 1]].name).text,
                         wk_str_show(zip->entries[order[i]].name).text);
    }
    wk_free(heap, order, n * sizeof *order);
    return status;
}

static wick_status read_entries(wk_heap *heap, const reader *r, wk_zip_entry *entries,
                                wick_file_tensor *places, wk_zip *out) {
    uint64_t at = r->directory;
    for (size_t i = 0; i < out->n_entries; i++) {
        uint32_t other;
        WK_TRY(read_entry(r, &at, &entries[i], &places[i]));
        if (wk_map_get(&out->index, entries[i].name, &other))
            return wk_fail(r->err, WICK_ERR_FORMAT, "two entries of the archive have the name '%s'",
                           wk_str_show(entries[i].name).text);
        if (wk_map_put(&out->index, entries[i].name, (uint32_t)i) != WICK_OK)
            return wk_fail_memory(r->err, (i + 1) * sizeof(wk_str),
                                  "the directory of a zip archive");
    }
    return check_apart(heap, out, places, r->err);
}

wick_status wk_zip_parse(wk_heap *heap, wk_arena *arena, const void *data, uint64_t size,
                         wk_zip *out, wick_error *err) {
    reader r = {.bytes = data, .size = size, .err = err};
    *out = (wk_zip){.bytes = data};
    wk_map_init(&out->index, heap);
    WK_TRY(find_directory(&r));
    const size_t n = (size_t)r.n_entries;
    wk_zip_entry *const entries = wk_arena_array(arena, n, sizeof *entries);
    wick_file_tensor *const places = wk_alloc_array(heap, n, sizeof *places);
    wick_status status = WICK_OK;
    out->n_entries = n;
    out->entries = entries;
    if (n > UINT32_MAX || entries == NULL || (places == NULL && n > 0))
        status =
            wk_fail_memory(err, r.n_entries * sizeof *places, "the directory of a zip archive");
    else
        status = read_entries(heap, &r, entries, places, out);
    wk_free(heap, places, n * sizeof *places);
    if (status == WICK_OK) return WICK_OK;
    wk_map_release(&out->index);
    *out = (wk_zip){.bytes = data};
    return status;
}

const wk_zip_entry *wk_zip_find(const wk_zip *zip, wk_str name) {
    uint32_t index;
    return wk_map_get(&zip->index, name, &index) ? &zip->entries[index] : NULL;
}

wick_status wk_zip_unpack(wk_heap *heap, const wk_zip *zip, const wk_zip_entry *entry, void *dst,
                          size_t size, bool is_checked, wick_error *err) {
    assert(size <= entry->size);
    const uint8_t *const from = zip->bytes + entry->offset;
    if (!entry->is_deflated) {
        if (size > 0) memcpy(dst, from, size);
    } else {
        wick_error reason = {0};
        const wick_status status =
            wk_inflate(heap, from, (size_t)entry->stored, dst, size, size < entry->size, &reason);
        if (status == WICK_ERR_FORMAT)
            return wk_fail(err, status, "the archive's entry '%s': %s",
                           wk_str_show(entry->name).text, reason.message);
        if (status != WICK_OK) return wk_pass_on(err, status, &reason);
    }
    if (!is_checked || size < entry->size || wk_crc32(0, dst, size) == entry->checksum)
        return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "the archive's entry '%s' does not have its checksum",
                   wk_str_show(entry->name).text);
}
