/* format/gguf_value.c: GGUF metadata: keys, scalars, strings, arrays of scalars and of strings.
 *
 * Scalars of an array are one token, copied as they are (hosts are little-endian, as the file is);
 * the strings of an array are read one by one. */
#include "format/gguf_state.h"

#include <assert.h>
#include <inttypes.h>

_Static_assert(sizeof(bool) == 1, "arrays of bool are copied byte for byte");

static const struct {
    const char *name;
    uint8_t size; /* bytes; 0: not a scalar */
} value_types[] = {
    [WICK_VALUE_U8] = {"u8", 1},         [WICK_VALUE_I8] = {"i8", 1},
    [WICK_VALUE_U16] = {"u16", 2},       [WICK_VALUE_I16] = {"i16", 2},
    [WICK_VALUE_U32] = {"u32", 4},       [WICK_VALUE_I32] = {"i32", 4},
    [WICK_VALUE_F32] = {"f32", 4},       [WICK_VALUE_BOOL] = {"bool", 1},
    [WICK_VALUE_STRING] = {"string", 0}, [WICK_VALUE_ARRAY] = {"array", 0},
    [WICK_VALUE_U64] = {"u64", 8},       [WICK_VALUE_I64] = {"i64", 8},
    [WICK_VALUE_F64] = {"f64", 8},
};

size_t wk_gguf_scalar_size(wick_value_type type) {
    return (unsigned)type < WK_COUNT(value_types) ? value_types[type].size : 0;
}

static wick_status set_alignment(wk_gguf_parser *parser) {
    const wick_value *const value = &parser->value;
    if (value->type != WICK_VALUE_U32)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "general.alignment is of type %s, it must be u32",
                              value_types[value->type].name);
    if (value->u == 0 || value->u % 8 != 0)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "general.alignment is %" PRIu64 ", it must be a multiple of 8",
                              value->u);
    parser->gguf.alignment = (uint32_t)value->u;
    return WICK_OK;
}

/* The value is complete. */
static wick_status add_value(wk_gguf_parser *parser) {
    const wk_str key = {parser->value.key.text, parser->value.key.size};
    if (wk_str_is(key, WK_GGUF_ALIGNMENT_KEY)) WK_TRY(set_alignment(parser));
    WK_TRY(
        wk_gguf_index(parser, &parser->gguf.value_index, parser->value.key, parser->values.count));
    wick_value *const value =
        wk_gguf_list_add(parser, &parser->values, parser->n_values, sizeof *value);
    if (value == NULL) return parser->error.status;
    *value = parser->value;
    parser->strings = (wk_gguf_list){.items = NULL}; /* they belong to the value now */
    parser->is_entry_complete = true;
    return WICK_OK;
}

void wk_gguf_free_strings(wk_gguf_parser *parser) {
    const wick_value *const values = parser->values.items;
    for (size_t i = 0; i < parser->values.count; i++) {
        const wick_value *const value = &values[i];
        if (value->type == WICK_VALUE_ARRAY && value->array.element_type == WICK_VALUE_STRING &&
            value->array.count > 0)
            wk_free(parser->heap, (void *)(uintptr_t)value->array.values,
                    (size_t)value->array.count * sizeof(wick_string));
    }
    wk_free(parser->heap, parser->strings.items, parser->strings.capacity * sizeof(wick_string));
}

static wick_status check_bools(wk_gguf_parser *parser, const uint8_t *token) {
    for (size_t i = 0; i < parser->need; i++) {
        if (token[i] > 1)
            return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at + i,
                                  "'%s' has a bool of value %d, which is neither 0 nor 1",
                                  wk_gguf_show(parser->value.key).text, token[i]);
    }
    return WICK_OK;
}

static wick_status read_scalar(wk_gguf_parser *parser, const uint8_t *token) {
    assert(parser->need == wk_gguf_scalar_size(parser->value.type) && parser->need > 0);
    wick_value *const value = &parser->value;
    uint64_t bits = 0;
    float f;
    memcpy(&bits, token, parser->need);
    switch (value->type) {
    case WICK_VALUE_I8: value->i = (int8_t)bits; break;
    case WICK_VALUE_I16: value->i = (int16_t)bits; break;
    case WICK_VALUE_I32: value->i = (int32_t)bits; break;
    case WICK_VALUE_I64: value->i = (int64_t)bits; break;
    case WICK_VALUE_F32:
        memcpy(&f, token, sizeof f);
        value->f = (double)f;
        break;
    case WICK_VALUE_F64: memcpy(&value->f, token, sizeof value->f); break;
    case WICK_VALUE_BOOL:
        WK_TRY(check_bools(parser, token));
        value->u = bits;
        break;
    default: value->u = bits; break;
    }
    return add_value(parser);
}

static wick_status read_string(wk_gguf_parser *parser, const uint8_t *token) {
    WK_TRY(wk_gguf_add_text(parser, token, &parser->value.string));
    return add_value(parser);
}

static wick_status read_string_length(wk_gguf_parser *parser, const uint8_t *token) {
    return wk_gguf_expect_text(parser, read_string, token, UINT64_MAX, "a string");
}

static wick_status read_scalars(wk_gguf_parser *parser, const uint8_t *token) {
    if (parser->value.array.element_type == WICK_VALUE_BOOL) WK_TRY(check_bools(parser, token));
    void *const values = wk_arena_alloc(&parser->arena, parser->need);
    if (values == NULL) return wk_gguf_no_memory(parser, parser->need);
    memcpy(values, token, parser->need);
    parser->value.array.values = values;
    return add_value(parser);
}

static wick_status read_item_length(wk_gguf_parser *parser, const uint8_t *token);

static wick_status read_item(wk_gguf_parser *parser, const uint8_t *token) {
    wick_string text;
    WK_TRY(wk_gguf_add_text(parser, token, &text));
    wk_gguf_list *const strings = &parser->strings;
    wick_string *const item = wk_gguf_list_add(parser, strings, parser->n_strings, sizeof *item);
    if (item == NULL) return parser->error.status;
    *item = text;
    if (strings->count < parser->n_strings)
        return wk_gguf_expect(parser, read_item_length, parser->width, "the length of a string");
    parser->value.array.values = strings->items;
    return add_value(parser);
}

static wick_status read_item_length(wk_gguf_parser *parser, const uint8_t *token) {
    return wk_gguf_expect_text(parser, read_item, token, UINT64_MAX, "a string");
}

static wick_status read_array_head(wk_gguf_parser *parser, const uint8_t *token) {
    const uint32_t type = wk_load_u32(token);
    const uint64_t count = wk_gguf_count(parser, token + 4);
    if (type >= WK_COUNT(value_types))
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "'%s' is an array of the unknown type %u",
                              wk_gguf_show(parser->value.key).text, (unsigned)type);
    if (type == WICK_VALUE_ARRAY)
        return wk_gguf_refuse(parser, WICK_ERR_UNSUPPORTED, parser->at,
                              "'%s' is an array of arrays, which cannot be read",
                              wk_gguf_show(parser->value.key).text);
    const bool is_string = type == WICK_VALUE_STRING;
    const size_t size = is_string ? parser->width : value_types[type].size;
    WK_TRY(wk_gguf_check_count(parser, parser->at + 4, count, size, "elements of an array"));

    parser->value.array.element_type = (wick_value_type)type;
    parser->value.array.count = count;
    parser->n_strings = is_string ? count : 0;
    if (parser->n_strings > 0)
        return wk_gguf_expect(parser, read_item_length, parser->width, "the length of a string");
    return wk_gguf_expect(parser, read_scalars, (size_t)count * size, "an array");
}

static wick_status read_value_type(wk_gguf_parser *parser, const uint8_t *token) {
    const uint32_t type = wk_load_u32(token);
    if (type >= WK_COUNT(value_types))
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at, "'%s' is of the unknown type %u",
                              wk_gguf_show(parser->value.key).text, (unsigned)type);
    parser->value.type = (wick_value_type)type;
    if (type == WICK_VALUE_STRING)
        return wk_gguf_expect(parser, read_string_length, parser->width, "the length of a string");
    if (type == WICK_VALUE_ARRAY)
        return wk_gguf_expect(parser, read_array_head, (size_t)4 + parser->width,
                              "the head of an array");
    return wk_gguf_expect(parser, read_scalar, value_types[type].size, "a value");
}

static wick_status read_key(wk_gguf_parser *parser, const uint8_t *token) {
    parser->value = (wick_value){.type = WICK_VALUE_U8};
    wick_string *const key = &parser->value.key;
    WK_TRY(wk_gguf_add_text(parser, token, key));
    uint32_t index;
    if (wk_map_get(&parser->gguf.value_index, (wk_str){key->text, key->size}, &index))
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at, "the key '%s' occurs twice",
                              wk_gguf_show(*key).text);
    return wk_gguf_expect(parser, read_value_type, 4, "the type of a value");
}

wick_status wk_gguf_read_key_length(wk_gguf_parser *parser, const uint8_t *token) {
    return wk_gguf_expect_text(parser, read_key, token, WK_GGUF_MAX_KEY, "a key");
}
