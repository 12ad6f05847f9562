/* model/metadata.c: numbers and texts from metadata, and the sentences when they are not good. */
#include "model/metadata.h"

#include "core/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

wk_key wk_metadata_key(const wk_metadata *meta, const char *suffix) {
    wk_key key;
    snprintf(key.text, sizeof key.text, "%s.%s", meta->architecture, suffix);
    return key;
}

static const wick_value *find(const wk_metadata *meta, const char *suffix) {
    return wk_gguf_find(meta->gguf, wk_metadata_key(meta, suffix).text);
}

bool wk_metadata_has(const wk_metadata *meta, const char *suffix) {
    return find(meta, suffix) != NULL;
}

static const char *type_name(wick_value_type type) {
    static const char *const names[] = {
        [WICK_VALUE_U8] = "u8",         [WICK_VALUE_I8] = "i8",
        [WICK_VALUE_U16] = "u16",       [WICK_VALUE_I16] = "i16",
        [WICK_VALUE_U32] = "u32",       [WICK_VALUE_I32] = "i32",
        [WICK_VALUE_F32] = "f32",       [WICK_VALUE_BOOL] = "a bool",
        [WICK_VALUE_STRING] = "a text", [WICK_VALUE_ARRAY] = "an array",
        [WICK_VALUE_U64] = "u64",       [WICK_VALUE_I64] = "i64",
        [WICK_VALUE_F64] = "f64",
    };
    return names[type];
}

static wick_status refuse_missing(const wk_metadata *meta, const char *suffix) {
    return wk_fail(meta->err, WICK_ERR_FORMAT, "the metadata has no key '%s'",
                   wk_metadata_key(meta, suffix).text);
}

static wick_status refuse_type(const wk_metadata *meta, const wick_value *value,
                               const char *wanted) {
    return wk_fail(meta->err, WICK_ERR_FORMAT, "the metadata key '%s' is %s, but must be %s",
                   value->key.text, type_name(value->type), wanted);
}

wick_status wk_metadata_f64(const wk_metadata *meta, const char *suffix, const double *fallback,
                            double *out) {
    const wick_value *const value = find(meta, suffix);
    if (value == NULL && fallback == NULL) return refuse_missing(meta, suffix);
    if (value == NULL) {
        *out = *fallback;
        return WICK_OK;
    }
    if (value->type != WICK_VALUE_F32 && value->type != WICK_VALUE_F64)
        return refuse_type(meta, value, "a floating-point number");
    if (!isfinite(value->f))
        return wk_fail(meta->err, WICK_ERR_FORMAT, "the metadata key '%s' is not finite",
                       value->key.text);
    *out = value->f;
    return WICK_OK;
}

/* An integer of one of the eight types as u64; false for other types. Negative ones become larger
 * than any limit. */
static bool integer_of(const wick_value *value, uint64_t *out) {
    switch (value->type) {
    case WICK_VALUE_U8:
    case WICK_VALUE_U16:
    case WICK_VALUE_U32:
    case WICK_VALUE_U64: *out = value->u; return true;
    case WICK_VALUE_I8:
    case WICK_VALUE_I16:
    case WICK_VALUE_I32:
    case WICK_VALUE_I64: *out = value->i < 0 ? UINT64_MAX : (uint64_t)value->i; return true;
    default: return false;
    }
}

static wick_status check_u32(const wk_metadata *meta, const wick_value *value, wk_u32_rule rule,
                             uint64_t number, uint32_t *out) {
    if (number < rule.least || number > rule.most) {
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is %" PRId64 ", but must be from %" PRIu32
                       " to %" PRIu32,
                       value->key.text, (int64_t)number, rule.least, rule.most);
    }
    *out = (uint32_t)number;
    return WICK_OK;
}

wick_status wk_metadata_u32(const wk_metadata *meta, const char *suffix, wk_u32_rule rule,
                            uint32_t *out) {
    const wick_value *const value = find(meta, suffix);
    if (value == NULL && rule.fallback == NULL) return refuse_missing(meta, suffix);
    if (value == NULL) {
        *out = *rule.fallback;
        return WICK_OK;
    }
    uint64_t number;
    if (!integer_of(value, &number)) return refuse_type(meta, value, "an integer");
    return check_u32(meta, value, rule, number, out);
}

/* Element i of an array of u32 or i32, which is what converters write. */
static uint64_t array_element(const wick_value *value, uint64_t i) {
    if (value->array.element_type == WICK_VALUE_U32)
        return ((const uint32_t *)value->array.values)[i];
    const int32_t number = ((const int32_t *)value->array.values)[i];
    return number < 0 ? UINT64_MAX : (uint64_t)number;
}

/* Whether the value is an array with one element for each layer. */
static wick_status check_array(const wk_metadata *meta, const wick_value *value,
                               wk_layer_index at) {
    const uint64_t n = value->array.count;
    if (n == at.n_layers || n + at.n_ahead == at.n_layers) return WICK_OK;
    return wk_fail(meta->err, WICK_ERR_FORMAT,
                   "the metadata key '%s' has %" PRIu64 " elements for %" PRIu32 " blocks",
                   value->key.text, n, at.n_layers);
}

wick_status wk_metadata_u32_of_layer(const wk_metadata *meta, const char *suffix, wk_u32_rule rule,
                                     wk_layer_index at, uint32_t *out) {
    const wick_value *const value = find(meta, suffix);
    if (value == NULL || value->type != WICK_VALUE_ARRAY)
        return wk_metadata_u32(meta, suffix, rule, out);

    const wick_value_type type = value->array.element_type;
    if (type != WICK_VALUE_U32 && type != WICK_VALUE_I32)
        return wk_fail(meta->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' is an array of %s, but must be one of u32 or i32",
                       value->key.text, type_name(type));
    WK_TRY(check_array(meta, value, at));
    return check_u32(meta, value, rule, array_element(value, at.layer), out);
}

bool wk_metadata_is_array(const wk_metadata *meta, const char *suffix) {
    const wick_value *const value = find(meta, suffix);
    return value != NULL && value->type == WICK_VALUE_ARRAY;
}

wick_status wk_metadata_bool_of_layer(const wk_metadata *meta, const char *suffix,
                                      wk_layer_index at, bool *out) {
    const wick_value *const value = find(meta, suffix);
    if (value == NULL) return refuse_missing(meta, suffix);
    if (value->type != WICK_VALUE_ARRAY) return refuse_type(meta, value, "an array of bools");
    if (value->array.element_type != WICK_VALUE_BOOL) {
        uint32_t number;
        WK_TRY(wk_metadata_u32_of_layer(meta, suffix, (wk_u32_rule){0, 1, NULL}, at, &number));
        *out = number == 1;
        return WICK_OK;
    }
    WK_TRY(check_array(meta, value, at));
    *out = ((const bool *)value->array.values)[at.layer];
    return WICK_OK;
}

wick_status wk_metadata_bool(const wk_metadata *meta, const char *suffix, bool fallback,
                             bool *out) {
    const wick_value *const value = find(meta, suffix);
    *out = fallback;
    if (value == NULL) return WICK_OK;
    if (value->type != WICK_VALUE_BOOL) return refuse_type(meta, value, "a bool");
    *out = value->u != 0;
    return WICK_OK;
}

bool wk_metadata_layer_has(const wk_metadata *meta, uint32_t layer, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "blk.%" PRIu32 ".%s", layer, name);
    return wk_gguf_find_tensor(meta->gguf, full) != NULL;
}

static wick_status text_of(const wick_value *value, wk_str *out, wick_error *err) {
    if (value->type != WICK_VALUE_STRING)
        return wk_fail(err, WICK_ERR_FORMAT, "the metadata key '%s' is %s, but must be a text",
                       value->key.text, type_name(value->type));
    *out = (wk_str){value->string.text, value->string.size};
    return WICK_OK;
}

wick_status wk_metadata_string(const wk_metadata *meta, const char *suffix, wk_str *out) {
    return wk_metadata_general(meta->gguf, wk_metadata_key(meta, suffix).text, false, out,
                               meta->err);
}

wick_status wk_metadata_general(const wk_gguf *gguf, const char *key, bool is_required, wk_str *out,
                                wick_error *err) {
    const wick_value *const value = wk_gguf_find(gguf, key);
    *out = (wk_str){0};
    if (value != NULL) return text_of(value, out, err);
    if (!is_required) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "the metadata has no key '%s'", key);
}
