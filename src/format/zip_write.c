/* format/zip_write.c: CRC-32, and the records of ZIP archives whose entries are stored.
 *
 * Every entry has the extra field of 64-bit sizes, so that no size needs a second way to write. */
#include "format/zip.h"

#include <string.h>

enum { ALIGNMENT = 64, LOCAL_SIZE = 30, EXTRA_PADDING = 0xD935, VERSION_64 = 45 };

/* Eight tables make a step of eight bytes (Kounavis and Berry, "A systematic approach to building
 * high performance software-based CRC generators", 2005). */
uint32_t wk_crc32(uint32_t sum, const void *bytes, size_t size) {
    uint32_t table[8][256];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = (c & 1) != 0 ? c >> 1 ^ 0xEDB88320U : c >> 1;
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
    const uint8_t *at = bytes;
    uint32_t c = ~sum;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t next = 0;
        for (int k = 0; k < 4; k++) {
            next ^= table[7 - k][at[k] ^ (c >> (8 * k) & 255)];
            next ^= table[3 - k][at[4 + k]];
        }
        c = next;
    }
    for (; size > 0; size--, at++) c = c >> 8 ^ table[0][(c ^ *at) & 255];
    return ~c;
}

/* What the local header and the directory say alike: version to checksum, then sizes that the extra
 * field has. 1980-01-01 is the first date that there is. */
static void put_common(wk_strbuf *buf, const wk_zip_entry *entry) {
    wk_strbuf_put(buf, VERSION_64, 2);
    wk_strbuf_put(buf, 0x800, 2); /* the name is UTF-8 */
    wk_strbuf_put(buf, 0, 2);     /* stored */
    wk_strbuf_put(buf, 0, 2);
    wk_strbuf_put(buf, 1 << 5 | 1, 2);
    wk_strbuf_put(buf, entry->checksum, 4);
    wk_strbuf_put(buf, UINT32_MAX, 4);
    wk_strbuf_put(buf, UINT32_MAX, 4);
    wk_strbuf_put(buf, entry->name.size, 2);
}

void wk_zip_local_header(wk_strbuf *buf, uint64_t at, wk_zip_entry *entry) {
    const uint64_t plain = LOCAL_SIZE + entry->name.size + 20 + 4;
    const uint64_t padding = (ALIGNMENT - (at + plain) % ALIGNMENT) % ALIGNMENT;
    wk_strbuf_append(buf, "PK\3\4", 4);
    put_common(buf, entry);
    wk_strbuf_put(buf, 20 + 4 + padding, 2);
    wk_strbuf_append(buf, entry->name.text, entry->name.size);
    wk_strbuf_put(buf, 1, 2);
    wk_strbuf_put(buf, 16, 2);
    wk_strbuf_put(buf, entry->size, 8);
    wk_strbuf_put(buf, entry->size, 8);
    wk_strbuf_put(buf, EXTRA_PADDING, 2);
    wk_strbuf_put(buf, padding, 2);
    for (uint64_t i = 0; i < padding; i++) wk_strbuf_put(buf, 0, 1);
    entry->offset = at + plain + padding;
}

void wk_zip_directory(wk_strbuf *buf, uint64_t at, const wk_zip_entry *entries,
                      const uint64_t *headers, size_t n) {
    const size_t begin = buf->size;
    for (size_t i = 0; i < n; i++) {
        wk_strbuf_append(buf, "PK\1\2", 4);
        wk_strbuf_put(buf, VERSION_64, 2);
        put_common(buf, &entries[i]);
        wk_strbuf_put(buf, 4 + 24, 2);
        wk_strbuf_put(buf, 0, 2 + 2 + 2); /* no comment, first disk, attributes */
        wk_strbuf_put(buf, 0, 4);
        wk_strbuf_put(buf, UINT32_MAX, 4);
        wk_strbuf_append(buf, entries[i].name.text, entries[i].name.size);
        wk_strbuf_put(buf, 1, 2);
        wk_strbuf_put(buf, 24, 2);
        wk_strbuf_put(buf, entries[i].size, 8);
        wk_strbuf_put(buf, entries[i].size, 8);
        wk_strbuf_put(buf, headers[i], 8);
    }
    const uint64_t size = buf->size - begin;
    wk_strbuf_append(buf, "PK\6\6", 4);
    wk_strbuf_put(buf, 44, 8); /* bytes of the record that follow */
    wk_strbuf_put(buf, VERSION_64, 2);
    wk_strbuf_put(buf, VERSION_64, 2);
    wk_strbuf_put(buf, 0, 8); /* disks */
    wk_strbuf_put(buf, n, 8);
    wk_strbuf_put(buf, n, 8);
    wk_strbuf_put(buf, size, 8);
    wk_strbuf_put(buf, at, 8);
    wk_strbuf_append(buf, "PK\6\7", 4);
    wk_strbuf_put(buf, 0, 4);
    wk_strbuf_put(buf, at + size, 8);
    wk_strbuf_put(buf, 1, 4);
    wk_strbuf_append(buf, "PK\5\6", 4);
    wk_strbuf_put(buf, 0, 4);
    wk_strbuf_put(buf, n < UINT16_MAX ? n : UINT16_MAX, 2);
    wk_strbuf_put(buf, n < UINT16_MAX ? n : UINT16_MAX, 2);
    wk_strbuf_put(buf, size < UINT32_MAX ? size : UINT32_MAX, 4);
    wk_strbuf_put(buf, at < UINT32_MAX ? at : UINT32_MAX, 4);
    wk_strbuf_put(buf, 0, 2);
}
