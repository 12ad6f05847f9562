/* format/safetensors.c: reads safetensors headers.
 *
 * Reference: the format's description in huggingface/safetensors: a little-endian u64 length, that
 * many bytes of JSON (an object of tensors by name, and "__metadata__"), then the data, which the
 * tensors cover without holes or overlap. */
#include "format/safetensors.h"

#include "core/dtype.h"
#include "core/json.h"
#include "core/json_write.h"
#include "core/shape.h"
#include "format/tensor_names.h"
#include "format/tensor_order.h"

#include <inttypes.h>
#include <string.h>

enum { LENGTH_BYTES = 8, MAX_HEADER = 100 * 1000 * 1000 /* the limit of the reference reader */ };

/* Names from the file in sentences are cut here. */
enum { MAX_NAME_SHOWN = 80 };

static int shown(wk_str name) {
    return (int)(name.size < MAX_NAME_SHOWN ? name.size : MAX_NAME_SHOWN);
}

static const char *name_of_dtype(wick_dtype dtype) {
    switch (dtype) {
    case WICK_F64: return "F64";
    case WICK_F32: return "F32";
    case WICK_F16: return "F16";
    case WICK_BF16: return "BF16";
    case WICK_I64: return "I64";
    case WICK_I32: return "I32";
    case WICK_I16: return "I16";
    case WICK_I8: return "I8";
    case WICK_U32: return "U32";
    case WICK_U8: return "U8";
    case WICK_BOOL: return "BOOL";
    case WICK_F8_E4M3: return "F8_E4M3";
    case WICK_F8_E5M2: return "F8_E5M2";
    default: return NULL; /* block types */
    }
}

static wick_status read_dtype(const wk_json *tensor, wick_dtype *dtype, wick_error *err) {
    const wk_json *const name = wk_json_get(tensor, "dtype");
    if (name == NULL || name->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_FORMAT, "tensor '%.*s' has no dtype", shown(tensor->key),
                       tensor->key.text);
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        const char *const known = name_of_dtype((wick_dtype)i);
        if (known == NULL || !wk_str_is(name->string, known)) continue;
        *dtype = (wick_dtype)i;
        return WICK_OK;
    }
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "tensor '%.*s' has the dtype '%.*s', not supported by Wick", shown(tensor->key),
                   tensor->key.text, shown(name->string), name->string.text);
}

static bool is_natural(const wk_json *item) {
    return item->kind == WK_JSON_NUMBER && item->is_integer && item->integer >= 0;
}

static wick_status read_shape(const wk_json *tensor, wick_shape *shape, wick_error *err) {
    const wk_json *const list = wk_json_get(tensor, "shape");
    if (list == NULL || list->kind != WK_JSON_ARRAY)
        return wk_fail(err, WICK_ERR_FORMAT, "tensor '%.*s' has no shape", shown(tensor->key),
                       tensor->key.text);
    if (list->count > WICK_MAX_RANK)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "tensor '%.*s' has %zu dimensions, at most %d work", shown(tensor->key),
                       tensor->key.text, list->count, WICK_MAX_RANK);
    for (const wk_json *item = list->child; item != NULL; item = item->next) {
        if (!is_natural(item))
            return wk_fail(err, WICK_ERR_FORMAT,
                           "tensor '%.*s' has an extent that is not an integer >= 0",
                           shown(tensor->key), tensor->key.text);
        shape->extent[shape->rank++] = item->integer;
    }
    return WICK_OK;
}

/* data_offsets: [begin, end) within the data section. */
static wick_status read_range(const wk_json *tensor, uint64_t data_size, wick_file_tensor *out,
                              wick_error *err) {
    const wk_json *const range = wk_json_get(tensor, "data_offsets");
    if (range == NULL || range->kind != WK_JSON_ARRAY || range->count != 2 ||
        !is_natural(range->child) || !is_natural(range->child->next))
        return wk_fail(err, WICK_ERR_FORMAT, "tensor '%.*s' has no data_offsets [begin, end]",
                       shown(tensor->key), tensor->key.text);
    const uint64_t begin = (uint64_t)range->child->integer;
    const uint64_t end = (uint64_t)range->child->next->integer;
    if (begin > end || end > data_size)
        return wk_fail(err, WICK_ERR_FORMAT,
                       "tensor '%.*s' has the data_offsets [%" PRIu64 ", %" PRIu64
                       "], the file has %" PRIu64 " bytes of data",
                       shown(tensor->key), tensor->key.text, begin, end, data_size);
    out->offset = begin;
    out->size = end - begin;
    return WICK_OK;
}

static wick_status read_tensor(const wk_json *tensor, uint64_t data_size, wick_file_tensor *out,
                               wick_error *err) {
    *out = (wick_file_tensor){.name = {tensor->key.text, tensor->key.size}};
    if (tensor->kind != WK_JSON_OBJECT)
        return wk_fail(err, WICK_ERR_FORMAT, "the entry '%.*s' is not an object",
                       shown(tensor->key), tensor->key.text);
    WK_TRY(read_dtype(tensor, &out->dtype, err));
    WK_TRY(read_shape(tensor, &out->shape, err));
    WK_TRY(read_range(tensor, data_size, out, err));
    int64_t count;
    uint64_t bytes;
    if (!wk_shape_count(&out->shape, &count) || !wk_dtype_bytes(out->dtype, count, &bytes))
        return wk_fail(err, WICK_ERR_FORMAT, "tensor '%.*s' has too many elements for 64 bits",
                       shown(tensor->key), tensor->key.text);
    if (bytes != out->size)
        return wk_fail(err, WICK_ERR_FORMAT,
                       "tensor '%.*s' needs %" PRIu64 " bytes for its shape, data_offsets give it "
                       "%" PRIu64,
                       shown(tensor->key), tensor->key.text, bytes, out->size);
    return WICK_OK;
}

/* Offsets are still those of the data section. */
static wick_status check_cover(const wick_file_tensor *tensors, const uint32_t *order, size_t n,
                               uint64_t data_size, wick_error *err) {
    uint64_t covered = 0;
    for (size_t i = 0; i < n; i++) {
        const wick_file_tensor *const tensor = &tensors[order[i]];
        const wk_str name = {tensor->name.text, tensor->name.size};
        if (tensor->offset != covered)
            return wk_fail(err, WICK_ERR_FORMAT,
                           "tensor '%.*s' begins at %" PRIu64
                           " of the data, but the tensors before it end at %" PRIu64,
                           shown(name), name.text, tensor->offset, covered);
        covered += tensor->size;
    }
    if (covered == data_size) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT,
                   "the tensors end at %" PRIu64 " of the data, the file at %" PRIu64, covered,
                   data_size);
}

static wick_status read_tensors(wk_heap *heap, const wk_json *root, wick_file_tensor *tensors,
                                uint64_t data_size, wk_safetensors *out, wick_error *err) {
    for (const wk_json *item = root->child; item != NULL; item = item->next) {
        if (wk_str_is(item->key, "__metadata__")) continue;
        uint32_t index;
        if (wk_map_get(&out->index, item->key, &index))
            return wk_fail(err, WICK_ERR_FORMAT, "two tensors have the name '%.*s'",
                           shown(item->key), item->key.text);
        WK_TRY(read_tensor(item, data_size, &tensors[out->n_tensors], err));
        if (wk_map_put(&out->index, item->key, (uint32_t)out->n_tensors) != WICK_OK)
            return wk_fail_memory(err, (out->n_tensors + 1) * sizeof(wk_str),
                                  "the index of a safetensors file");
        out->n_tensors++;
    }
    const size_t n = out->n_tensors;
    uint32_t *const order = wk_alloc_array(heap, n, sizeof *order);
    if (order == NULL && n > 0)
        return wk_fail_memory(err, n * sizeof *order, "the tensors of a safetensors file");
    wk_tensor_order(tensors, order, n);
    const wick_status status = check_cover(tensors, order, n, data_size, err);
    wk_free(heap, order, n * sizeof *order);
    return status;
}

bool wk_safetensors_begins(const void *data, uint64_t size) {
    uint64_t length = 0;
    if (size <= LENGTH_BYTES) return false;
    memcpy(&length, data, sizeof length);
    return length <= MAX_HEADER && ((const char *)data)[LENGTH_BYTES] == '{';
}

wick_status wk_safetensors_parse(wk_heap *heap, wk_arena *arena, const void *data, uint64_t size,
                                 wk_safetensors *out, wick_error *err) {
    *out = (wk_safetensors){.n_tensors = 0};
    wk_map_init(&out->index, heap);
    uint64_t length = 0;
    if (size < LENGTH_BYTES)
        return wk_fail(err, WICK_ERR_FORMAT,
                       "byte %" PRIu64 ": the file ends inside the length of "
                       "its header",
                       size);
    memcpy(&length, data, sizeof length);
    if (length > size - LENGTH_BYTES || length > MAX_HEADER)
        return wk_fail(err, WICK_ERR_FORMAT,
                       "byte 0: a header of %" PRIu64 " bytes in a file of %" PRIu64
                       " bytes, at most %d are allowed",
                       length, size, MAX_HEADER);

    wk_json *root;
    WK_TRY(wk_json_parse(arena, (const char *)data + LENGTH_BYTES, (size_t)length, &root, err));
    if (root->kind != WK_JSON_OBJECT)
        return wk_fail(err, WICK_ERR_FORMAT, "byte 8: the header is not a JSON object");
    const uint64_t data_offset = LENGTH_BYTES + length;
    wick_file_tensor *const tensors = wk_arena_array(arena, root->count, sizeof *tensors);
    if (tensors == NULL)
        return wk_fail_memory(err, root->count * sizeof *tensors, "a safetensors header");
    const wick_status status = read_tensors(heap, root, tensors, size - data_offset, out, err);
    if (status != WICK_OK) {
        wk_map_release(&out->index);
        out->n_tensors = 0;
        return status;
    }
    for (size_t i = 0; i < out->n_tensors; i++) tensors[i].offset += data_offset;
    out->tensors = tensors;
    return WICK_OK;
}

const wick_file_tensor *wk_safetensors_find(const wk_safetensors *file, wk_str name) {
    uint32_t index;
    return wk_map_get(&file->index, name, &index) ? &file->tensors[index] : NULL;
}

/* ---- Writing ---- */

static size_t element_size(const wick_file_tensor *tensor) {
    return (size_t)wk_dtype_get(tensor->dtype)->block_bytes;
}

static void append_entry(wk_strbuf *buf, const wick_file_tensor *tensor, uint64_t *offset) {
    int64_t count = 0;
    uint64_t size = 0;
    (void)wk_shape_count(&tensor->shape, &count); /* of a tensor that there is */
    (void)wk_dtype_bytes(tensor->dtype, count, &size);
    wk_write_key_of(buf, (wk_str){tensor->name.text, tensor->name.size});
    wk_write_open(buf, '{');
    wk_write_put(buf, "dtype", name_of_dtype(tensor->dtype));
    wk_write_key(buf, "shape");
    wk_write_open(buf, '[');
    for (int i = 0; i < tensor->shape.rank; i++) wk_write_integer(buf, tensor->shape.extent[i]);
    wk_write_close(buf, ']');
    wk_write_key(buf, "data_offsets");
    wk_write_open(buf, '[');
    wk_write_whole(buf, *offset);
    wk_write_whole(buf, *offset + size);
    wk_write_close(buf, ']');
    wk_write_close(buf, '}');
    *offset += size;
}

wick_status wk_safetensors_header(wk_strbuf *buf, const wick_file_tensor *tensors, size_t n,
                                  uint32_t *order, wick_error *err) {
    WK_TRY(wk_tensor_names_check(buf->heap, tensors, n, "safetensors", "__metadata__",
                                 name_of_dtype, err));
    size_t n_ordered = 0;
    for (size_t size = 8; size > 0; size /= 2)
        for (size_t i = 0; i < n; i++)
            if (element_size(&tensors[i]) == size) order[n_ordered++] = (uint32_t)i;
    const size_t begin = buf->size;
    uint64_t length = 0, offset = 0;
    wk_strbuf_append(buf, &length, sizeof length);
    wk_strbuf_append(buf, "{", 1); /* after bytes that are not JSON */
    for (size_t i = 0; i < n; i++) append_entry(buf, &tensors[order[i]], &offset);
    wk_write_close(buf, '}');
    while (!buf->failed && (buf->size - begin) % LENGTH_BYTES != 0) wk_strbuf_append(buf, " ", 1);
    if (buf->failed) return wk_fail_memory(err, buf->size, "the header of a safetensors file");
    length = buf->size - begin - LENGTH_BYTES;
    memcpy(buf->data + begin, &length, sizeof length);
    return WICK_OK;
}
