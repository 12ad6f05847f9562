/* format/gguf_write.c: see gguf_write.h. What is right is decided by the parser alone; here only
 * what could not be written down is refused. Hosts are little-endian, as the file is. */
#include "format/gguf_write.h"

#include "core/compiler.h"
#include "core/dtype.h"
#include "core/shape.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { VERSION = 3, DEFAULT_ALIGNMENT = 32 };

static wk_shown show(wick_string text) { return wk_str_show((wk_str){text.text, text.size}); }

static void put_u32(wk_strbuf *buf, uint32_t value) { wk_strbuf_append(buf, &value, sizeof value); }

static void put_u64(wk_strbuf *buf, uint64_t value) { wk_strbuf_append(buf, &value, sizeof value); }

static void put_text(wk_strbuf *buf, wick_string text) {
    put_u64(buf, text.size);
    wk_strbuf_append(buf, text.text, text.size);
}

/* ---- Metadata ---- */

static bool is_signed(wick_value_type type) {
    return type == WICK_VALUE_I8 || type == WICK_VALUE_I16 || type == WICK_VALUE_I32 ||
           type == WICK_VALUE_I64;
}

/* Whether the number keeps its value in size bytes. */
static bool does_fit(const wick_value *value, size_t size) {
    if (size == sizeof value->u) return true;
    const unsigned bits = 8 * (unsigned)size;
    if (!is_signed(value->type)) return value->u >> bits == 0;
    const int64_t limit = INT64_C(1) << (bits - 1);
    return value->i >= -limit && value->i < limit;
}

static wick_status put_scalar(wk_strbuf *buf, const wick_value *value, wick_error *err) {
    const float narrow = value->type == WICK_VALUE_F32 ? (float)value->f : 0.0F;
    const size_t size = wk_gguf_scalar_size(value->type);
    if (value->type == WICK_VALUE_F32) {
        wk_strbuf_append(buf, &narrow, sizeof narrow);
    } else if (value->type == WICK_VALUE_F64) {
        wk_strbuf_append(buf, &value->f, sizeof value->f);
    } else if (does_fit(value, size)) {
        wk_strbuf_append(buf, &value->u, size); /* i lies in the same bytes */
    } else {
        return wk_fail(err, WICK_ERR_VALUE, "the value of '%s' does not fit into %zu bytes",
                       show(value->key).text, size);
    }
    return WICK_OK;
}

static wick_status put_array(wk_strbuf *buf, const wick_value *value, wick_error *err) {
    const wick_value_type type = value->array.element_type;
    const uint64_t count = value->array.count;
    const size_t size = type == WICK_VALUE_STRING ? sizeof(wick_string) : wk_gguf_scalar_size(type);
    if (size == 0)
        return wk_fail(err, WICK_ERR_VALUE,
                       "'%s' is an array of the type %d, which no array can have",
                       show(value->key).text, (int)type);
    if (count > SIZE_MAX / size || (count > 0 && value->array.values == NULL))
        return wk_fail(err, WICK_ERR_VALUE,
                       "'%s' is an array of %" PRIu64 " values that are not"
                       " there",
                       show(value->key).text, count);
    put_u32(buf, (uint32_t)type);
    put_u64(buf, count);
    if (type != WICK_VALUE_STRING) {
        wk_strbuf_append(buf, value->array.values, (size_t)count * size);
        return WICK_OK;
    }
    const wick_string *const texts = value->array.values;
    for (uint64_t i = 0; i < count; i++) put_text(buf, texts[i]);
    return WICK_OK;
}

static wick_status put_value(wk_strbuf *buf, const wick_value *value, wick_error *err) {
    put_text(buf, value->key);
    put_u32(buf, (uint32_t)value->type);
    if (value->type == WICK_VALUE_ARRAY) return put_array(buf, value, err);
    if (wk_gguf_scalar_size(value->type) > 0) return put_scalar(buf, value, err);
    if (value->type != WICK_VALUE_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "'%s' is of the unknown type %d", show(value->key).text,
                       (int)value->type);
    put_text(buf, value->string);
    return WICK_OK;
}

/* One that the parser will refuse is not taken. */
static uint32_t find_alignment(const wk_gguf_contents *contents) {
    for (size_t i = 0; i < contents->n_values; i++) {
        const wick_value *const value = &contents->values[i];
        const wk_str key = {value->key.text, value->key.size};
        if (value->type == WICK_VALUE_U32 && wk_str_is(key, WK_GGUF_ALIGNMENT_KEY) &&
            value->u > 0 && value->u <= UINT32_MAX)
            return (uint32_t)value->u;
    }
    return DEFAULT_ALIGNMENT;
}

/* ---- Tensors ---- */

uint64_t wk_gguf_description_bytes(const wick_file_tensor *tensor) {
    /* Length and bytes of the name, rank, extents, type, offset. */
    return 8 + (uint64_t)tensor->name.size + 4 + 8 * (uint64_t)tensor->shape.rank + 4 + 8;
}

uint64_t wk_gguf_padded(uint64_t size, uint32_t alignment) {
    assert(alignment > 0 && size <= UINT64_MAX - alignment);
    return (size + alignment - 1) / alignment * alignment;
}

/* *offset: where the tensor's data begin, then where the next one's do. */
static wick_status put_tensor(wk_strbuf *buf, const wick_file_tensor *tensor, uint32_t alignment,
                              uint64_t *offset, wick_error *err) {
    const bool is_known = (unsigned)tensor->dtype < WICK_DTYPE_COUNT_;
    const int type = is_known ? wk_dtype_get(tensor->dtype)->ggml_type : -1;
    if (type < 0)
        return wk_fail(err, WICK_ERR_DTYPE, "tensor '%s' has the type %s, unknown in GGUF",
                       show(tensor->name).text, wick_dtype_name(tensor->dtype));
    int64_t count;
    uint64_t size;
    if (!wk_shape_count(&tensor->shape, &count) || !wk_dtype_bytes(tensor->dtype, count, &size) ||
        size > INT64_MAX / 2 || *offset > INT64_MAX / 2 - size)
        return wk_fail(err, WICK_ERR_SHAPE, "tensor '%s' of %s cannot have its shape",
                       show(tensor->name).text, wick_dtype_name(tensor->dtype));
    put_text(buf, tensor->name);
    put_u32(buf, (uint32_t)tensor->shape.rank);
    for (int i = tensor->shape.rank; i-- > 0;) put_u64(buf, (uint64_t)tensor->shape.extent[i]);
    put_u32(buf, (uint32_t)type);
    put_u64(buf, *offset);
    *offset += wk_gguf_padded(size, alignment);
    return WICK_OK;
}

/* ---- All of it ---- */

static wick_status put_contents(wk_strbuf *buf, const wk_gguf_contents *contents,
                                uint32_t alignment, wick_error *err) {
    wk_strbuf_append(buf, "GGUF", 4);
    put_u32(buf, VERSION);
    put_u64(buf, contents->n_tensors);
    put_u64(buf, contents->n_values);
    for (size_t i = 0; i < contents->n_values; i++)
        WK_TRY(put_value(buf, &contents->values[i], err));
    uint64_t offset = 0;
    for (size_t i = 0; i < contents->n_tensors; i++)
        WK_TRY(put_tensor(buf, &contents->tensors[i], alignment, &offset, err));
    return WICK_OK;
}

wick_status wk_gguf_write_header(wk_strbuf *buf, const wk_gguf_contents *contents,
                                 wk_gguf_parser **out, wick_error *err) {
    *out = NULL;
    WK_TRY(put_contents(buf, contents, find_alignment(contents), err));
    if (buf->failed) return wk_fail_memory(err, buf->size, "a GGUF header");
    wk_gguf_parser *parser;
    WK_TRY(wk_gguf_parser_make(buf->heap, WICK_SIZE_UNKNOWN, &parser, err));
    wick_error refusal = {0};
    const wick_status status = wk_gguf_parser_feed(parser, buf->data, buf->size, NULL, &refusal);
    if (status == WICK_OK) {
        *out = parser;
        return WICK_OK;
    }
    wk_gguf_parser_free(parser);
    if (status == WICK_ERR_OUT_OF_MEMORY)
        return wk_fail_memory(err, refusal.bytes_requested, "a GGUF header");
    return wk_fail(err, WICK_ERR_VALUE, "the GGUF file would not be readable: %s", refusal.message);
}
