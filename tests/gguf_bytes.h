/* tests/gguf_bytes.h: writes GGUF files byte by byte, for tests: right ones and wrong ones. */
#ifndef GGUF_BYTES_H
#define GGUF_BYTES_H

#include <wick/file.h>

#include <assert.h>
#include <string.h>

typedef struct gguf_bytes {
    uint8_t data[8192];
    size_t size;
    int width; /* of counts and lengths: 4 in version 1 */
} gguf_bytes;

static inline void put_bytes(gguf_bytes *file, const void *bytes, size_t size) {
    assert(size <= sizeof file->data - file->size);
    memcpy(file->data + file->size, bytes, size);
    file->size += size;
}

static inline void put_u32(gguf_bytes *file, uint32_t value) { put_bytes(file, &value, 4); }
static inline void put_u64(gguf_bytes *file, uint64_t value) { put_bytes(file, &value, 8); }

static inline void put_count(gguf_bytes *file, uint64_t value) {
    put_bytes(file, &value, (size_t)file->width);
}

static inline void put_text(gguf_bytes *file, const char *text) {
    put_count(file, strlen(text));
    put_bytes(file, text, strlen(text));
}

static inline void put_start(gguf_bytes *file, uint32_t version, uint64_t n_tensors,
                             uint64_t n_values) {
    *file = (gguf_bytes){.width = version == 1 ? 4 : 8};
    put_bytes(file, "GGUF", 4);
    put_u32(file, version);
    put_count(file, n_tensors);
    put_count(file, n_values);
}

/* A key and the type of its value, which must follow. */
static inline void put_key(gguf_bytes *file, const char *key, wick_value_type type) {
    put_text(file, key);
    put_u32(file, (uint32_t)type);
}

static inline void put_array(gguf_bytes *file, const char *key, wick_value_type type,
                             uint64_t count) {
    put_key(file, key, WICK_VALUE_ARRAY);
    put_u32(file, (uint32_t)type);
    put_count(file, count);
}

/* extents: fastest first, as in the file. */
static inline void put_tensor(gguf_bytes *file, const char *name, int rank, const uint64_t *extents,
                              uint32_t type, uint64_t offset) {
    put_text(file, name);
    put_u32(file, (uint32_t)rank);
    for (int i = 0; i < rank; i++) put_count(file, extents[i]);
    put_u32(file, type);
    put_u64(file, offset);
}

/* Zeros up to the next multiple of alignment, then size bytes of data. */
static inline void put_data(gguf_bytes *file, size_t alignment, size_t size) {
    while (file->size % alignment != 0) put_bytes(file, "", 1);
    for (size_t i = 0; i < size; i++) put_bytes(file, "d", 1);
}

#endif
