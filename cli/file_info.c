/* file_info.c: values and tensors of a model file, as both ways to print them need them. */
#include "file_info.h"

static uint64_t element_count(const wick_shape *shape) {
    uint64_t n = 1;
    for (int i = 0; i < shape->rank; i++) n *= (uint64_t)shape->extent[i];
    return n;
}

const char *cli_value_type_name(wick_value_type type) {
    static const char *const names[] = {
        [WICK_VALUE_U8] = "u8",       [WICK_VALUE_I8] = "i8",     [WICK_VALUE_U16] = "u16",
        [WICK_VALUE_I16] = "i16",     [WICK_VALUE_U32] = "u32",   [WICK_VALUE_I32] = "i32",
        [WICK_VALUE_F32] = "f32",     [WICK_VALUE_BOOL] = "bool", [WICK_VALUE_STRING] = "string",
        [WICK_VALUE_ARRAY] = "array", [WICK_VALUE_U64] = "u64",   [WICK_VALUE_I64] = "i64",
        [WICK_VALUE_F64] = "f64",
    };
    return names[type];
}

wick_value cli_array_element(const wick_value *array, uint64_t i) {
    const void *const values = array->array.values;
    wick_value element = {.type = array->array.element_type};
    switch (element.type) {
    case WICK_VALUE_U8:
    case WICK_VALUE_BOOL: element.u = ((const uint8_t *)values)[i]; break;
    case WICK_VALUE_U16: element.u = ((const uint16_t *)values)[i]; break;
    case WICK_VALUE_U32: element.u = ((const uint32_t *)values)[i]; break;
    case WICK_VALUE_U64: element.u = ((const uint64_t *)values)[i]; break;
    case WICK_VALUE_I8: element.i = ((const int8_t *)values)[i]; break;
    case WICK_VALUE_I16: element.i = ((const int16_t *)values)[i]; break;
    case WICK_VALUE_I32: element.i = ((const int32_t *)values)[i]; break;
    case WICK_VALUE_I64: element.i = ((const int64_t *)values)[i]; break;
    case WICK_VALUE_F32: element.f = (double)((const float *)values)[i]; break;
    case WICK_VALUE_F64: element.f = ((const double *)values)[i]; break;
    case WICK_VALUE_STRING: element.string = ((const wick_string *)values)[i]; break;
    case WICK_VALUE_ARRAY: break; /* refused by the parser */
    }
    return element;
}

const char *cli_format_name(const cli_file_info *info) {
    if (info->is_checkpoint) return "checkpoint";
    return info->file != NULL ? "GGUF" : wick_tensor_file_format(info->tensor_file);
}

const wick_file_tensor *cli_tensor_at(const cli_file_info *info, size_t i) {
    return info->file != NULL ? wick_file_get_tensor(info->file, i)
                              : wick_tensor_file_get(info->tensor_file, i);
}

void cli_count_tensors(cli_file_info *info) {
    const wick_file_tensor *tensor;
    for (size_t i = 0; (tensor = cli_tensor_at(info, i)) != NULL; i++) {
        cli_type_count *const counts[] = {&info->types[tensor->dtype], &info->all};
        for (size_t k = 0; k < 2; k++) {
            counts[k]->n_tensors++;
            counts[k]->n_elements += element_count(&tensor->shape);
            counts[k]->n_bytes += tensor->size;
        }
    }
}
