/* format/gguf.h: what the header of a GGUF file says: metadata, and where every tensor lies. */
#ifndef WK_FORMAT_GGUF_H
#define WK_FORMAT_GGUF_H

#include "core/map.h"

#include <wick/file.h>

/* Made by a parser (gguf_parse.h), which owns all that it points to. */
typedef struct wk_gguf {
    uint32_t version, alignment;
    uint64_t data_offset; /* of the first tensor's section, from the file's beginning */
    size_t n_values, n_tensors;
    const wick_value *values;         /* in file order; keys are unique */
    const wick_file_tensor *tensors;  /* in file order; names are unique; offsets are absolute */
    wk_map value_index, tensor_index; /* by key, by name */
} wk_gguf;

/* NULL: the file has none of this name. */
const wick_value *wk_gguf_find(const wk_gguf *gguf, const char *key);
const wick_file_tensor *wk_gguf_find_tensor(const wk_gguf *gguf, const char *name);

/* Bytes of a value or element of this type; 0: a string, an array, or no type at all. */
size_t wk_gguf_scalar_size(wick_value_type type);

/* gguf_checksum.c: of everything but the places of tensors and their contents. */
uint64_t wk_gguf_checksum(const wk_gguf *gguf);

#define WK_GGUF_ALIGNMENT_KEY "general.alignment"

#endif
