/* api/show.c: what ollama's API says of a model, which the header of its file tells. See api.h. */
#include "api/api.h"

#include "source/file.h"

#include <stdio.h>
#include <string.h>

static wk_str architecture(const wk_gguf *gguf) {
    const wick_value *const value = wk_gguf_find(gguf, "general.architecture");
    return value && value->type == WICK_VALUE_STRING ? value->string : wk_str_of("");
}

/* The type that most bytes of the weights have; *n_parameters: how many weights there are. */
static wick_dtype main_type(const wk_gguf *gguf, uint64_t *n_parameters) {
    uint64_t n_bytes[WICK_DTYPE_COUNT_] = {0};
    size_t best = 0;
    *n_parameters = 0;
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &gguf->tensors[i];
        uint64_t count = 1;
        for (int d = 0; d < tensor->shape.rank; d++) count *= (uint64_t)tensor->shape.extent[d];
        *n_parameters += count;
        n_bytes[tensor->dtype] += tensor->size;
        if (n_bytes[tensor->dtype] > n_bytes[best]) best = tensor->dtype;
    }
    return (wick_dtype)best;
}

/* "Q4_1", "134.52M". */
static void write_sizes(wk_strbuf *to, const wk_gguf *gguf) {
    static const char units[] = "KMBT";
    uint64_t n_parameters;
    char text[32] = "";
    const char *const type = wick_dtype_name(main_type(gguf, &n_parameters));
    for (size_t i = 0; type[i] != '\0' && i + 1 < sizeof text; i++)
        text[i] = (char)(type[i] >= 'a' && type[i] <= 'z' ? type[i] - 'a' + 'A' : type[i]);
    wk_write_put(to, "quantization_level", text);
    double size = (double)n_parameters / 1000;
    size_t unit = 0;
    for (; size >= 1000 && unit + 2 < sizeof units; unit++) size /= 1000;
    snprintf(text, sizeof text, "%.4g%c", size, units[unit]);
    wk_use_point(text);
    wk_write_put(to, "parameter_size", text);
    wk_write_put_whole(to, "parameter_count", n_parameters);
}

void wk_write_details(wk_strbuf *to, const wk_gguf *gguf) {
    char digest[17];
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)wk_gguf_checksum(gguf));
    wk_write_put(to, "digest", digest);
    wk_write_raw(to, "\"details\":{\"parent_model\":\"\",\"format\":\"gguf\"");
    wk_write_put_string(to, "family", architecture(gguf));
    wk_write_raw(to, "\"families\":[");
    wk_write_string(to, architecture(gguf));
    wk_write_close(to, ']');
    write_sizes(to, gguf);
    wk_write_close(to, '}');
}

/* Metadata of the model, without lists and without its tokenizer's. */
static void write_value(wk_strbuf *to, const wick_value *value) {
    static const char tokenizer[] = "tokenizer.";
    if (value->type == WICK_VALUE_ARRAY ||
        strncmp(value->key.text, tokenizer, sizeof tokenizer - 1) == 0)
        return;
    wk_write_key_of(to, value->key);
    switch (value->type) {
    case WICK_VALUE_STRING: wk_write_string(to, value->string); break;
    case WICK_VALUE_BOOL: wk_write_bool(to, value->u != 0); break;
    case WICK_VALUE_F32: wk_write_number(to, value->f); break;
    case WICK_VALUE_F64: wk_write_double(to, value->f); break;
    case WICK_VALUE_I8:
    case WICK_VALUE_I16:
    case WICK_VALUE_I32:
    case WICK_VALUE_I64: wk_write_integer(to, value->i); break;
    default: wk_write_whole(to, value->u);
    }
}

void wk_write_show(wk_strbuf *to, const wk_gguf *gguf) {
    const wk_str name = architecture(gguf);
    uint64_t n_parameters;
    char key[128];
    (void)main_type(gguf, &n_parameters);
    snprintf(key, sizeof key, "%.*s.attention.causal", (int)name.size, name.text);
    const wick_value *const causal = wk_gguf_find(gguf, key);
    const bool is_encoder = causal && causal->type == WICK_VALUE_BOOL && causal->u == 0;
    wk_write_open(to, '{');
    wk_write_details(to, gguf);
    wk_write_raw(to, "\"model_info\":{");
    for (size_t i = 0; i < gguf->n_values; i++) write_value(to, &gguf->values[i]);
    wk_write_put_whole(to, "general.parameter_count", n_parameters);
    wk_write_close(to, '}');
    wk_write_raw(to, is_encoder ? "\"capabilities\":[\"embedding\"]"
                                : "\"capabilities\":[\"completion\",\"tools\"]");
    wk_write_close(to, '}');
}

size_t wick_api_show(const wick_file *file, char *text, size_t capacity) {
    wk_heap heap;
    wk_strbuf made;
    if (!file || !text) return 0;
    wk_heap_init(&heap, NULL);
    wk_strbuf_init(&made, &heap);
    wk_write_show(&made, wk_file_gguf(file));
    const size_t size = made.failed || made.size >= capacity ? 0 : made.size;
    if (size > 0) memcpy(text, made.data, size + 1);
    wk_strbuf_release(&made);
    return size;
}
