/* info.c: `wick info`: what is inside a model file, read from its header alone. */
#include "info.h"

#include "cli.h"

typedef struct info_options {
    const char *model;
    bool json, tensors;
    uint32_t context_length;
    wick_backend backend;
    int math; /* wick_math */
} info_options;

_Static_assert(WICK_MATH_EXACT == 0 && WICK_MATH_FAST == 1, "words of --math");

static void set_defaults(void *given) {
    info_options *const o = given;
    o->backend = WICK_BACKEND_CPU;
    o->math = WICK_MATH_FAST;
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the file",
     .kind = &cli_text,
     .offset = offsetof(info_options, model),
     .is_required = true},
    {.name = "json",
     .help = "print JSON; long arrays are summarised as in the text",
     .kind = &cli_flag,
     .offset = offsetof(info_options, json)},
    {.name = "tensors",
     .help = "list every tensor",
     .kind = &cli_flag,
     .offset = offsetof(info_options, tensors)},
    {.name = "context",
     .alias = "ctx",
     .argument = "N",
     .help = "predict memory for a context of N tokens; 0: what 'wick run' takes",
     .kind = &cli_u32,
     .offset = offsetof(info_options, context_length),
     .most = UINT32_MAX},
    {.name = "backend",
     .argument = "auto|cpu|webgpu",
     .help = "predict memory for this backend",
     .kind = &cli_backend,
     .offset = offsetof(info_options, backend)},
    {.name = "math",
     .argument = "exact|fast",
     .help = "predict memory for this math",
     .kind = &cli_word,
     .offset = offsetof(info_options, math)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

uint64_t cli_element_count(const wick_shape *shape) {
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

static const wick_value *find_string(const wick_file *file, const char *key) {
    const wick_value *const value = wick_file_find_value(file, key);
    return value != NULL && value->type == WICK_VALUE_STRING ? value : NULL;
}

static void count_tensors(cli_file_info *info) {
    const size_t n = wick_file_tensor_count(info->file);
    for (size_t i = 0; i < n; i++) {
        const wick_file_tensor *const tensor = wick_file_get_tensor(info->file, i);
        cli_type_count *const counts[] = {&info->types[tensor->dtype], &info->all};
        for (size_t k = 0; k < 2; k++) {
            counts[k]->n_tensors++;
            counts[k]->n_elements += cli_element_count(&tensor->shape);
            counts[k]->n_bytes += tensor->size;
        }
    }
}

/* A file that Wick cannot run still has contents to show: a failure here is part of the answer. */
static int predict(const info_options *o, cli_file_info *info) {
    const wick_device_desc desc = {.backend = o->backend, .math = (wick_math)o->math};
    wick_device *device = NULL;
    wick_error error = {0};
    if (wick_device_open(&desc, &device, &error) != WICK_OK) return cli_report(&error, NULL);
    const wick_status status =
        wick_predict(info->file, device, o->context_length, &info->prediction, &info->unpredicted);
    if (status != WICK_OK) info->unpredicted.status = status;
    wick_device_close(device);
    return CLI_OK;
}

static int run(void *given) {
    const info_options *const o = given;
    wick_error error = {0};
    wick_file *file = NULL;
    if (wick_file_open(o->model, &file, &error) != WICK_OK)
        return cli_report_file(&error, o->model);
    cli_file_info info = {.path = o->model,
                          .file = file,
                          .lists_tensors = o->tensors,
                          .architecture = find_string(file, "general.architecture"),
                          .name = find_string(file, "general.name")};
    count_tensors(&info);
    const int code = predict(o, &info);
    if (code == CLI_OK && o->json) cli_print_info_json(&info);
    if (code == CLI_OK && !o->json) cli_print_info_text(&info);
    wick_file_close(file);
    return code;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "show what is inside a model file, and the memory it will need",
    .groups = groups,
    .options_size = sizeof(info_options),
    .defaults = set_defaults,
    .run = run,
};
