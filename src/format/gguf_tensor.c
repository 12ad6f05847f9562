/* format/gguf_tensor.c: GGUF tensor descriptions, and where their data lies.
 *
 * Where the specification is silent: no dimensions (a scalar) and extents of 0 (no bytes) are
 * accepted, tensors may lie in any order and with gaps, padding is not looked at. */
#include "format/gguf_state.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "format/tensor_order.h"

#include <assert.h>
#include <inttypes.h>

static wick_status set_dtype(wk_gguf_parser *parser, uint64_t at, uint32_t type) {
    static const struct {
        uint32_t type;
        const char *name;
    } removed[] = {
        {4, "q4_2"},      {5, "q4_3"},        {31, "q4_0_4_4"},   {32, "q4_0_4_8"},
        {33, "q4_0_8_8"}, {36, "iq4_nl_4_4"}, {37, "iq4_nl_4_8"}, {38, "iq4_nl_8_8"},
    };
    const wk_shown name = wk_gguf_show(parser->tensor.name);
    for (size_t i = 0; i < WK_COUNT(removed); i++) {
        if (removed[i].type == type)
            return wk_gguf_refuse(parser, WICK_ERR_UNSUPPORTED, at,
                                  "tensor '%s' is of type %u (%s), which was removed from GGUF",
                                  name.text, (unsigned)type, removed[i].name);
    }
    if (!wk_dtype_from_ggml(type, &parser->tensor.dtype))
        return wk_gguf_refuse(parser, WICK_ERR_UNSUPPORTED, at,
                              "tensor '%s' is of the unknown type %u", name.text, (unsigned)type);
    return WICK_OK;
}

/* Reads the extents, which lie fastest first in the file; with the type they give the size. */
static wick_status set_shape(wk_gguf_parser *parser, const uint8_t *extents) {
    wick_file_tensor *const tensor = &parser->tensor;
    const wk_shown name = wk_gguf_show(tensor->name);
    const int rank = tensor->shape.rank;
    for (int i = 0; i < rank; i++) {
        const size_t position = (size_t)i * parser->width;
        const uint64_t extent = wk_gguf_count(parser, extents + position);
        if (extent > INT64_MAX)
            return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at + position,
                                  "tensor '%s' has an extent of %" PRIu64 ", over 2^63", name.text,
                                  extent);
        tensor->shape.extent[rank - 1 - i] = (int64_t)extent;
    }
    const wk_dtype_info *const dtype = wk_dtype_get(tensor->dtype);
    const int64_t row = rank > 0 ? tensor->shape.extent[rank - 1] : 1;
    if (row % dtype->block_elements != 0)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "tensor '%s' has rows of %" PRId64
                              " elements, no multiple of the %d in a block of %s",
                              name.text, row, dtype->block_elements, dtype->name);
    int64_t count;
    if (!wk_shape_count(&tensor->shape, &count) ||
        !wk_dtype_bytes(tensor->dtype, count, &tensor->size))
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "tensor '%s' has too many elements for 64 bits", name.text);
    return WICK_OK;
}

static wick_status set_offset(wk_gguf_parser *parser, uint64_t at, uint64_t offset) {
    const wk_shown name = wk_gguf_show(parser->tensor.name);
    assert(parser->gguf.alignment > 0);
    if (offset % parser->gguf.alignment != 0)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, at,
                              "tensor '%s' has the offset %" PRIu64
                              ", no multiple of the alignment %u",
                              name.text, offset, (unsigned)parser->gguf.alignment);
    /* Half the range leaves room for adding the place of the data section. */
    if (offset > INT64_MAX || parser->tensor.size > INT64_MAX - offset)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, at,
                              "tensor '%s' has %" PRIu64 " bytes at the offset %" PRIu64
                              ", which ends beyond 2^63",
                              name.text, parser->tensor.size, offset);
    parser->tensor.offset = offset;
    return WICK_OK;
}

/* rank extents, u32 type, u64 offset. */
static wick_status read_tensor(wk_gguf_parser *parser, const uint8_t *token) {
    const size_t type_at = (size_t)parser->tensor.shape.rank * parser->width;
    const size_t offset_at = type_at + 4;
    WK_TRY(set_dtype(parser, parser->at + type_at, wk_load_u32(token + type_at)));
    WK_TRY(set_shape(parser, token));
    WK_TRY(set_offset(parser, parser->at + offset_at, wk_load_u64(token + offset_at)));

    WK_TRY(wk_gguf_index(parser, &parser->gguf.tensor_index, parser->tensor.name,
                         parser->tensors.count));
    wick_file_tensor *const tensor =
        wk_gguf_list_add(parser, &parser->tensors, parser->n_tensors, sizeof *tensor);
    if (tensor == NULL) return parser->error.status;
    *tensor = parser->tensor;
    parser->is_entry_complete = true;
    return WICK_OK;
}

static wick_status read_rank(wk_gguf_parser *parser, const uint8_t *token) {
    const uint32_t rank = wk_load_u32(token);
    if (rank > WK_GGUF_MAX_RANK)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "tensor '%s' has %u dimensions, at most %d are allowed",
                              wk_gguf_show(parser->tensor.name).text, (unsigned)rank,
                              WK_GGUF_MAX_RANK);
    parser->tensor.shape.rank = (int)rank;
    return wk_gguf_expect(parser, read_tensor, (size_t)rank * parser->width + 12,
                          "the description of a tensor");
}

static wick_status read_name(wk_gguf_parser *parser, const uint8_t *token) {
    parser->tensor = (wick_file_tensor){.dtype = WICK_F32};
    wick_string *const name = &parser->tensor.name;
    WK_TRY(wk_gguf_add_text(parser, token, name));
    uint32_t index;
    if (wk_map_get(&parser->gguf.tensor_index, (wk_str){name->text, name->size}, &index))
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at, "two tensors have the name '%s'",
                              wk_gguf_show(*name).text);
    return wk_gguf_expect(parser, read_rank, 4, "the number of dimensions of a tensor");
}

wick_status wk_gguf_read_name_length(wk_gguf_parser *parser, const uint8_t *token) {
    return wk_gguf_expect_text(parser, read_name, token, WK_GGUF_MAX_NAME, "a tensor name");
}

/* ---- After the last tensor ---- */

static wick_status check_overlap(wk_gguf_parser *parser, uint32_t *order) {
    const wick_file_tensor *const tensors = parser->tensors.items;
    wk_tensor_order(tensors, order, parser->tensors.count);
    const wick_file_tensor *last = NULL; /* that has bytes */
    for (size_t i = 0; i < parser->tensors.count; i++) {
        const wick_file_tensor *const tensor = &tensors[order[i]];
        if (tensor->size == 0) continue;
        if (last != NULL && tensor->offset < last->offset + last->size)
            return wk_gguf_refuse(parser, WICK_ERR_FORMAT, tensor->offset,
                                  "the tensors '%s' and '%s' overlap",
                                  wk_gguf_show(last->name).text, wk_gguf_show(tensor->name).text);
        last = tensor;
    }
    return WICK_OK;
}

wick_status wk_gguf_place_tensors(wk_gguf_parser *parser) {
    wk_gguf *const gguf = &parser->gguf;
    const uint64_t alignment = gguf->alignment;
    gguf->data_offset = (parser->end + alignment - 1) / alignment * alignment;
    const size_t n = parser->tensors.count;
    if (n == 0) return WICK_OK;

    wick_file_tensor *const tensors = parser->tensors.items;
    for (size_t i = 0; i < n; i++) {
        wick_file_tensor *const tensor = &tensors[i];
        tensor->offset += gguf->data_offset;
        if (tensor->offset > parser->file_size || tensor->size > parser->file_size - tensor->offset)
            return wk_gguf_refuse(parser, WICK_ERR_FORMAT, tensor->offset,
                                  "tensor '%s' of %" PRIu64
                                  " bytes begins here, but the file has only %" PRIu64
                                  " bytes: it is cut off",
                                  wk_gguf_show(tensor->name).text, tensor->size, parser->file_size);
    }
    uint32_t *const order = wk_alloc_array(parser->heap, n, sizeof *order);
    if (order == NULL) return wk_gguf_no_memory(parser, n * sizeof *order);
    const wick_status status = check_overlap(parser, order);
    wk_free(parser->heap, order, n * sizeof *order);
    return status;
}
