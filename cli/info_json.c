/* info_json.c: `wick info --json`. Keys are only ever added. */
#include "file_info.h"

#include "json_out.h"

#include <stdio.h>

enum { MAX_ELEMENTS = 16 }; /* longer arrays are summarised */

static void put_scalar(cli_json *json, const wick_value *value) {
    switch (value->type) {
    case WICK_VALUE_STRING: cli_json_bytes(json, value->string.text, value->string.size); break;
    case WICK_VALUE_BOOL: cli_json_bool(json, value->u != 0); break;
    case WICK_VALUE_F32: cli_json_number(json, value->f, 9); break;
    case WICK_VALUE_F64: cli_json_number(json, value->f, 17); break;
    case WICK_VALUE_I8:
    case WICK_VALUE_I16:
    case WICK_VALUE_I32:
    case WICK_VALUE_I64: cli_json_signed(json, value->i); break;
    default: cli_json_unsigned(json, value->u); break;
    }
}

static void put_elements(cli_json *json, const wick_value *array, uint64_t n) {
    cli_json_open(json, '[');
    for (uint64_t i = 0; i < n; i++) {
        const wick_value element = cli_array_element(array, i);
        put_scalar(json, &element);
    }
    cli_json_close(json, ']');
}

/* A short array as it is, a long one as {"type", "count", "first": [...]}. */
static void put_array(cli_json *json, const wick_value *array) {
    if (array->array.count <= MAX_ELEMENTS) {
        put_elements(json, array, array->array.count);
        return;
    }
    cli_json_open(json, '{');
    cli_json_put_string(json, "type", cli_value_type_name(array->array.element_type));
    cli_json_put_unsigned(json, "count", array->array.count);
    cli_json_key(json, "first");
    put_elements(json, array, MAX_ELEMENTS);
    cli_json_close(json, '}');
}

static void put_metadata(cli_json *json, const wick_file *file) {
    cli_json_key(json, "metadata");
    cli_json_open(json, '{');
    for (size_t i = 0; i < wick_file_value_count(file); i++) {
        const wick_value *const value = wick_file_value(file, i);
        cli_json_key_bytes(json, value->key.text, value->key.size);
        if (value->type == WICK_VALUE_ARRAY)
            put_array(json, value);
        else
            put_scalar(json, value);
    }
    cli_json_close(json, '}');
}

static void put_types(cli_json *json, const cli_file_info *info) {
    cli_json_key(json, "tensor_types");
    cli_json_open(json, '{');
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        const cli_type_count *const type = &info->types[i];
        if (type->n_tensors == 0) continue;
        cli_json_key(json, wick_dtype_name((wick_dtype)i));
        cli_json_open(json, '{');
        cli_json_put_unsigned(json, "count", type->n_tensors);
        cli_json_put_unsigned(json, "elements", type->n_elements);
        cli_json_put_unsigned(json, "bytes", type->n_bytes);
        cli_json_close(json, '}');
    }
    cli_json_close(json, '}');
}

static void put_tensors(cli_json *json, const cli_file_info *info) {
    cli_json_key(json, "tensors");
    cli_json_open(json, '[');
    const wick_file_tensor *tensor;
    for (size_t i = 0; (tensor = cli_tensor_at(info, i)) != NULL; i++) {
        cli_json_open(json, '{');
        cli_json_key(json, "name");
        cli_json_bytes(json, tensor->name.text, tensor->name.size);
        cli_json_put_string(json, "type", wick_dtype_name(tensor->dtype));
        cli_json_key(json, "shape");
        cli_json_open(json, '[');
        for (int d = 0; d < tensor->shape.rank; d++) cli_json_signed(json, tensor->shape.extent[d]);
        cli_json_close(json, ']');
        cli_json_put_unsigned(json, "offset", tensor->offset);
        cli_json_put_unsigned(json, "bytes", tensor->size);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_prediction(cli_json *json, const cli_file_info *info) {
    const wick_prediction *const p = &info->prediction;
    cli_json_key(json, "predicted_memory");
    cli_json_open(json, '{');
    if (info->unpredicted.status == WICK_OK) {
        cli_json_put_unsigned(json, "total_bytes", p->total_bytes);
        cli_json_put_unsigned(json, "low_memory_bytes", p->low_bytes);
        cli_json_put_unsigned(json, "weight_bytes", p->weight_bytes);
        cli_json_put_unsigned(json, "cache_bytes", p->cache_bytes);
        cli_json_put_unsigned(json, "activation_bytes", p->activation_bytes);
        cli_json_put_unsigned(json, "context_length", p->context_length);
        cli_json_put_unsigned(json, "n_layers", p->n_layers);
        cli_json_put_unsigned(json, "device_layers", p->device_layers);
        cli_json_put_unsigned(json, "available_bytes", p->available_bytes);
        cli_json_put_unsigned(json, "whole_context_length", p->whole_context_length);
    } else {
        cli_json_put_string(json, "error",
                            info->unpredicted.message[0] != '\0'
                                ? info->unpredicted.message
                                : wick_status_text(info->unpredicted.status));
    }
    cli_json_close(json, '}');
}

static void put_text(cli_json *json, const char *key, const wick_value *value) {
    cli_json_key(json, key);
    if (value != NULL)
        cli_json_bytes(json, value->string.text, value->string.size);
    else
        cli_json_null(json);
}

void cli_print_info_json(const cli_file_info *info) {
    cli_json json = {.out = stdout};
    cli_json_open(&json, '{');
    cli_json_put_string(&json, "path", info->path);
    cli_json_put_unsigned(&json, "file_bytes", info->size);
    cli_json_put_string(&json, "format", cli_format_name(info));
    cli_json_put_unsigned(&json, "gguf_version", wick_file_version(info->file));
    put_text(&json, "architecture", info->architecture);
    put_text(&json, "name", info->name);
    cli_json_put_unsigned(&json, "n_parameters", info->all.n_elements);
    cli_json_put_unsigned(&json, "n_tensors", info->all.n_tensors);
    put_prediction(&json, info);
    put_metadata(&json, info->file);
    put_types(&json, info);
    if (info->lists_tensors) put_tensors(&json, info);
    cli_json_close(&json, '}');
}
