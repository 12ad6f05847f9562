/* Fuzzes zip archives of tensors and the pickles in them: any bytes are refused
 * with a sentence or give tensors that lie in them or unpack to their sizes. What does not begin
 * like an archive is taken for a pickle, and put into one with a storage. */
#include "format/archive.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UNPACKED = 1 << 20 };

static void require(bool is_true) {
    if (!is_true) abort();
}

static void check_tensor(wk_heap *heap, wk_archive *archive, size_t i, const uint8_t *file,
                         size_t size) {
    const wick_file_tensor *const tensor = &archive->tensors[i];
    wick_error error = {.status = WICK_OK};
    const uint8_t *data;
    require(wk_archive_find(archive, (wk_str){tensor->name.text, tensor->name.size}) == tensor);
    if (tensor->size > MAX_UNPACKED) return;
    const size_t n = (size_t)tensor->size;
    wick_status status = wk_archive_data(archive, i, &data, &error);
    if (status == WICK_OK && data != NULL) {
        require(data >= file && data <= file + size && n <= (size_t)(file + size - data));
    } else if (status == WICK_OK) {
        uint8_t *const to = malloc(n + 1);
        require(to != NULL);
        to[n] = 77;
        status = wk_archive_unpack(heap, archive, i, to, &error);
        require(to[n] == 77);
        free(to);
    }
    require(status == error.status && (status == WICK_OK) == (error.message[0] == '\0'));
}

static void check_archive(const uint8_t *file, size_t size) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_arena arena;
    wk_arena_init(&arena, &heap, 0);
    wk_archive archive;
    wick_error error = {.status = WICK_OK};
    const wick_status status = wk_archive_parse(&heap, &arena, file, size, &archive, &error);
    require(status == error.status && (status == WICK_OK) == (error.message[0] == '\0'));
    if (status == WICK_OK) {
        for (size_t i = 0; i < archive.n_tensors; i++) check_tensor(&heap, &archive, i, file, size);
        wk_archive_release(&archive);
    }
    wk_arena_release(&arena);
    require(heap.live_bytes == 0);
}

static void add(wk_strbuf *buf, wk_zip_entry *entry, uint64_t *header, const void *bytes) {
    *header = buf->size;
    entry->checksum = wk_crc32(0, bytes, (size_t)entry->size);
    wk_zip_local_header(buf, buf->size, entry);
    wk_strbuf_append(buf, bytes, (size_t)entry->size);
}

static void check_pickle(const uint8_t *pickle, size_t size) {
    static const uint8_t storage[64] = {1};
    wk_zip_entry entries[] = {{.name = {"m/data.pkl", 10}, .size = size},
                              {.name = {"m/data/0", 8}, .size = sizeof storage}};
    uint64_t headers[2];
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_strbuf buf;
    wk_strbuf_init(&buf, &heap);
    add(&buf, &entries[0], &headers[0], pickle);
    add(&buf, &entries[1], &headers[1], storage);
    wk_zip_directory(&buf, buf.size, entries, headers, 2);
    require(!buf.failed);
    check_archive((const uint8_t *)buf.data, buf.size);
    wk_strbuf_release(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (wk_zip_begins(data, size))
        check_archive(data, size);
    else
        check_pickle(data, size);
    return 0;
}
