/* info_text.c: `wick info` for people. */
#include "file_info.h"

#include "bar.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TEXT = 60, MAX_ELEMENTS = 6 }; /* bytes and elements that are shown of long ones */

static void put_string(const wick_string *string) {
    size_t size = string->size;
    if (size > MAX_TEXT) {
        size = MAX_TEXT; /* and not in the middle of a character */
        while (size > MAX_TEXT - 4 && ((unsigned char)string->text[size] & 0xC0U) == 0x80) size--;
    }
    putchar('"');
    cli_put_escaped(stdout, string->text, size);
    putchar('"');
    if (size < string->size) printf("... (%zu bytes)", string->size);
}

static void put_scalar(const wick_value *value) {
    switch (value->type) {
    case WICK_VALUE_STRING: put_string(&value->string); break;
    case WICK_VALUE_BOOL: fputs(value->u != 0 ? "true" : "false", stdout); break;
    case WICK_VALUE_F32: printf("%.7g", value->f); break;
    case WICK_VALUE_F64: printf("%.16g", value->f); break;
    case WICK_VALUE_I8:
    case WICK_VALUE_I16:
    case WICK_VALUE_I32:
    case WICK_VALUE_I64: printf("%" PRId64, value->i); break;
    default: printf("%" PRIu64, value->u); break;
    }
}

static void put_array(const wick_value *value) {
    const uint64_t n = value->array.count;
    printf("[%" PRIu64 " %s", n, cli_value_type_name(value->array.element_type));
    for (uint64_t i = 0; i < n && i < MAX_ELEMENTS; i++) {
        const wick_value element = cli_array_element(value, i);
        fputs(i == 0 ? ": " : ", ", stdout);
        put_scalar(&element);
    }
    fputs(n > MAX_ELEMENTS ? ", ...]" : "]", stdout);
}

static void print_metadata(const wick_file *file) {
    const size_t n = wick_file_value_count(file);
    printf("\nmetadata (%zu)\n", n);
    for (size_t i = 0; i < n; i++) {
        const wick_value *const value = wick_file_value(file, i);
        fputs("  ", stdout);
        cli_put_padded(stdout, value->key.text, 40);
        putchar(' ');
        if (value->type == WICK_VALUE_ARRAY)
            put_array(value);
        else
            put_scalar(value);
        putchar('\n');
    }
}

static void print_types(const cli_file_info *info) {
    printf("\ntensors by type\n");
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        const cli_type_count *const type = &info->types[i];
        if (type->n_tensors == 0) continue;
        const double all = info->all.n_bytes > 0 ? (double)info->all.n_bytes : 1;
        const double share = (double)type->n_bytes / all;
        printf("  %-8s %6" PRIu64 "  %12s %5.1f %%  %s\n", wick_dtype_name((wick_dtype)i),
               type->n_tensors, cli_bytes_text(type->n_bytes).text, 100 * share,
               cli_bar_of(share, CLI_BAR_COLUMNS).text);
    }
}

static void print_tensors(const cli_file_info *info) {
    printf("\ntensors\n");
    const wick_file_tensor *tensor;
    for (size_t i = 0; (tensor = cli_tensor_at(info, i)) != NULL; i++) {
        fputs("  ", stdout);
        cli_put_padded(stdout, tensor->name.text, 40);
        printf(" %-8s [", wick_dtype_name(tensor->dtype));
        for (int d = 0; d < tensor->shape.rank; d++)
            printf("%s%" PRId64, d > 0 ? ", " : "", tensor->shape.extent[d]);
        printf("] %s at %" PRIu64 "\n", cli_bytes_text(tensor->size).text, tensor->offset);
    }
}

/* What of the model the device has room for. */
static void print_room(const wick_prediction *p) {
    if (p->available_bytes == 0) return;
    printf("room          %s: ", cli_bytes_text(p->available_bytes).text);
    const uint32_t n_host = p->n_layers - p->device_layers;
    if (n_host > 0)
        printf("%" PRIu32 " of %" PRIu32 " layers fit, the first %" PRIu32 " run on the CPU; ",
               p->device_layers, p->n_layers, n_host);
    if (p->whole_context_length > 0)
        printf("all %" PRIu32 " layers fit with a context of up to %" PRIu32 " tokens\n",
               p->n_layers, p->whole_context_length);
    else
        printf("no context is short enough for all %" PRIu32 " layers\n", p->n_layers);
}

static void print_prediction(const cli_file_info *info) {
    const wick_prediction *const p = &info->prediction;
    fputs("memory        ", stdout);
    if (info->unpredicted.status != WICK_OK) {
        const char *const reason = info->unpredicted.message;
        printf("not predicted: %s\n",
               reason[0] != '\0' ? reason : wick_status_text(info->unpredicted.status));
        return;
    }
    printf("%s for a context of %" PRIu32 " tokens: ", cli_bytes_text(p->total_bytes).text,
           p->context_length);
    printf("weights %s, ", cli_bytes_text(p->weight_bytes).text);
    printf("cache %s, ", cli_bytes_text(p->cache_bytes).text);
    printf("activations %s, ", cli_bytes_text(p->activation_bytes).text);
    printf("vocabulary and process %s\n",
           cli_bytes_text(p->total_bytes - p->weight_bytes - p->cache_bytes - p->activation_bytes)
               .text);
    if (p->low_bytes > 0)
        printf("low memory    %s beside the mapped file, with --low-memory\n",
               cli_bytes_text(p->low_bytes).text);
    print_room(p);
}

static void print_field(const char *label, const wick_value *value) {
    printf("%-14s", label);
    if (value != NULL)
        cli_put_escaped(stdout, value->string.text, value->string.size);
    else
        fputs("not given", stdout);
    putchar('\n');
}

/* "134.5 million" */
static void put_count(uint64_t n) {
    static const char *const units[] = {"", " thousand", " million", " billion"};
    double value = (double)n;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++) value /= 1000;
    printf(unit > 0 ? "%.1f%s" : "%.0f%s", value, units[unit]);
}

/* ARCHITECTURE.key, a number; 0: there is none. */
static uint64_t find_number(const cli_file_info *info, const char *key) {
    char name[128];
    if (info->architecture == NULL) return 0;
    snprintf(name, sizeof name, "%.64s.%s", info->architecture->string.text, key);
    const wick_value *const value = wick_file_find_value(info->file, name);
    const bool is_number =
        value != NULL && (value->type == WICK_VALUE_U32 || value->type == WICK_VALUE_U64);
    return is_number ? value->u : 0;
}

/* Everything at a glance: "SmolLM2 (llama): 134.5 million parameters, mostly q4_1, 30 layers,
 * made for 8192 tokens". */
static void print_summary(const cli_file_info *info) {
    const wick_value *const name = info->name != NULL ? info->name : info->architecture;
    const uint64_t n_layers = find_number(info, "block_count");
    const uint64_t context = find_number(info, "context_length");
    int largest = 0;
    for (int i = 1; i < WICK_DTYPE_COUNT_; i++)
        if (info->types[i].n_bytes > info->types[largest].n_bytes) largest = i;
    if (name != NULL) cli_put_escaped(stdout, name->string.text, name->string.size);
    if (info->name != NULL && info->architecture != NULL) {
        printf(" (");
        cli_put_escaped(stdout, info->architecture->string.text, info->architecture->string.size);
        putchar(')');
    }
    printf(name != NULL ? ": " : "A file without a name: ");
    put_count(info->all.n_elements);
    printf(" parameters");
    if (info->types[largest].n_bytes > 0)
        printf(info->types[largest].n_bytes < info->all.n_bytes ? ", mostly %s" : ", %s",
               wick_dtype_name((wick_dtype)largest));
    if (n_layers > 0) printf(", %" PRIu64 " layers", n_layers);
    if (context > 0) printf(", made for %" PRIu64 " tokens", context);
    printf("\n");
    if (info->unpredicted.status == WICK_OK)
        printf("It takes %s of memory with a context of %" PRIu32 " tokens.\n",
               cli_bytes_text(info->prediction.total_bytes).text, info->prediction.context_length);
    printf("\n");
}

static void print_place(const cli_file_info *info) {
    if (info->is_checkpoint) {
        printf("checkpoint    %s (Hugging Face)\n", info->path);
        printf("file          'wick convert' makes one of it: GGUF, %s, with what follows\n",
               cli_bytes_text(info->size).text);
        return;
    }
    printf("file          %s (%s", info->path, cli_format_name(info));
    if (info->file != NULL) printf(" version %" PRIu32, wick_file_version(info->file));
    printf(", %s)\n", cli_bytes_text(info->size).text);
}

/* "byte-level BPE, 49152 tokens"; what is not known by its own name. */
static void print_tokenizer(const wick_file *file) {
    static const char *const names[][2] = {{"gpt2", "byte-level BPE"},
                                           {"llama", "SentencePiece BPE"},
                                           {"t5", "SentencePiece unigram"},
                                           {"bert", "WordPiece"}};
    const wick_value *const model = wick_file_find_value(file, "tokenizer.ggml.model");
    const wick_value *const tokens = wick_file_find_value(file, "tokenizer.ggml.tokens");
    if (model == NULL || model->type != WICK_VALUE_STRING) return;
    const char *name = model->string.text;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0) name = names[i][1];
    fputs("tokenizer     ", stdout);
    cli_put_escaped(stdout, name, strlen(name));
    if (tokens != NULL && tokens->type == WICK_VALUE_ARRAY)
        printf(", %" PRIu64 " tokens", tokens->array.count);
    putchar('\n');
}

void cli_print_info_text(const cli_file_info *info) {
    print_summary(info);
    print_place(info);
    if (info->file != NULL) {
        print_field("architecture", info->architecture);
        print_field("name", info->name);
        print_tokenizer(info->file);
    }
    printf("parameters    %" PRIu64 " in %" PRIu64 " tensor%s\n", info->all.n_elements,
           info->all.n_tensors, info->all.n_tensors == 1 ? "" : "s");
    print_prediction(info);
    if (info->file != NULL) print_metadata(info->file);
    if (info->lists_tensors)
        print_tensors(info);
    else
        print_types(info);
}
