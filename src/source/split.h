/* source/split.h: split GGUF files: NAME-00001-of-00003.gguf and the keys that describe a part.
 *
 * As in llama.cpp (tools/gguf-split): the first part has all metadata, every part has split.no
 * (from 0), split.count and split.tensors.count (of all parts). */
#ifndef WK_SOURCE_SPLIT_H
#define WK_SOURCE_SPLIT_H

#include "core/status.h"
#include "core/str.h"
#include "format/gguf.h"

#include <wick/source.h>

#define WK_SPLIT_NO "split.no"
#define WK_SPLIT_COUNT "split.count"
#define WK_SPLIT_TENSORS "split.tensors.count"

enum { WK_SPLIT_MAX_PARTS = UINT16_MAX }; /* what split.no can count */

/* Whether a key describes parts, not the model. */
bool wk_split_is_key(wick_string key);
/* "-00002-of-00003.gguf" at the end of path; *stem: bytes before it. Parts count from 1. */
bool wk_split_parse_name(const char *path, size_t *stem, uint32_t *part, uint32_t *n_parts);
/* Appends the name of a part, whose stem need not be terminated. */
void wk_split_name(wk_strbuf *name, wk_str stem, uint32_t part, uint32_t n_parts);

/* The number that a key has, which writers give different integer types. False: no such key, or no
 * number from 0 on. */
bool wk_split_number(const wk_gguf *gguf, const char *key, uint64_t *number);
/* WICK_ERR_NOT_FOUND for the header of one part among several. */
wick_status wk_split_check_whole(const wk_gguf *gguf, wick_error *err);

/* wick_source_join_* in one go, of parts that answer at once. hook NULL: malloc. */
wick_status wk_split_join(const wick_allocator *hook, const wick_source *parts,
                          const char *const *names, size_t n, wick_source *out, wick_error *err);

#endif
