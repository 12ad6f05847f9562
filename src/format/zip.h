/* format/zip.h: ZIP archives held in memory: their directory read, and parts of new ones. */
#ifndef WK_FORMAT_ZIP_H
#define WK_FORMAT_ZIP_H

#include "core/arena.h"
#include "core/map.h"
#include "core/status.h"
#include "core/str.h"

/* One file of an archive. */
typedef struct wk_zip_entry {
    wk_str name;       /* in the archive's bytes */
    uint64_t offset;   /* of its stored bytes */
    uint64_t stored;   /* bytes from there on; equal to size unless it is deflated */
    uint64_t size;     /* its own */
    uint32_t checksum; /* CRC-32 of its size bytes */
    bool is_deflated;
} wk_zip_entry;

typedef struct wk_zip {
    const uint8_t *bytes;
    size_t n_entries;
    const wk_zip_entry *entries; /* in the order of the directory, which lies in the arena */
    wk_map index;                /* by name */
} wk_zip;

bool wk_zip_begins(const void *data, uint64_t size);
/* Reads the directory of the archive data[0, size), with or without 64-bit sizes. The index lives
 * on heap (release it with wk_map_release(&out->index)). WICK_ERR_FORMAT: it lies about places or
 * sizes, two entries share a name or bytes, or one would unpack to more than deflate can;
 * WICK_ERR_UNSUPPORTED: encryption, other ways to compress, several disks. */
wick_status wk_zip_parse(wk_heap *heap, wk_arena *arena, const void *data, uint64_t size,
                         wk_zip *out, wick_error *err);
/* NULL: there is none. */
const wk_zip_entry *wk_zip_find(const wk_zip *zip, wk_str name);
/* The first size bytes of an entry, at most its own size; wants all to be right where it is all:
 * WICK_ERR_FORMAT. is_checked: the checksum, too. */
wick_status wk_zip_unpack(wk_heap *heap, const wk_zip *zip, const wk_zip_entry *entry, void *dst,
                          size_t size, bool is_checked, wick_error *err);

/* CRC-32 of ISO 3309, of what sum is of and then these bytes; 0 is that of none. */
uint32_t wk_crc32(uint32_t sum, const void *bytes, size_t size);

/* ---- Writing: entries are stored as they are ---- */

/* Appends what precedes the bytes of an entry that begins (with this) at offset `at` of the file,
 * so that they begin at a multiple of 64. entry: name, size and checksum; its offset is set. */
void wk_zip_local_header(wk_strbuf *buf, uint64_t at, wk_zip_entry *entry);
/* Appends the directory of these entries, which begins at offset `at`. headers[n]: where their
 * local headers begin. */
void wk_zip_directory(wk_strbuf *buf, uint64_t at, const wk_zip_entry *entries,
                      const uint64_t *headers, size_t n);

#endif
