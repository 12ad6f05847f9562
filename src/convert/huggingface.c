/* convert/huggingface.c: a folder as Hugging Face has them to a GGUF file, one tensor after the
 * other. Names are hf_family.c's matter, numbers hf_config.c's,
 * rows hf_tensors.c's, tokens hf_vocabulary.c's. */
#include <wick/convert.h>

#include "convert/header_file.h"
#include "convert/hf_config.h"
#include "convert/hf_defaults.h"
#include "convert/hf_kinds.h"
#include "convert/hf_tensors.h"
#include "convert/hf_text.h"
#include "convert/hf_unread.h"
#include "convert/hf_vocabulary.h"
#include "convert/hf_xielu.h"
#include "convert/mix.h"
#include "core/compiler.h"
#include "core/dtype.h"
#include "core/status.h"
#include "format/gguf_write.h"
#include "llm/llm.h"
#include "quant/encode.h"

#include <inttypes.h>
#include <string.h>

struct wick_converting {
    wk_heap heap;
    wk_arena arena; /* of the configuration, the values and the plan */
    wk_checkpoint *checkpoint;
    wk_json *config;
    const wk_hf_family *family;
    wick_dtype matrix_dtype; /* WICK_DTYPE_COUNT_: as it is */
    wk_value_list values;
    wk_hf_plan plan;
    size_t at; /* the tensor that is next */
    uint64_t done_bytes;
    wick_file_writer *writer;
    float *row; /* [row_capacity] */
    uint8_t *encoded;
    size_t row_capacity; /* elements */
    wick_error failure;  /* repeated by every later poll */
};

static const wick_convert_desc default_desc;

static wick_status fail_memory(wick_error *err) {
    return wk_fail_memory(err, 0, "converting a checkpoint");
}

/* ---- Types ---- */

/* Vectors, norms and the tables that are added to embeddings are f32 in every GGUF file. */
static wick_dtype dtype_of(const wick_converting *c, const wick_file_tensor *tensor) {
    static const char *const floats[] = {"position_embd.weight",
                                         "token_types.weight",
                                         "*norm.weight",
                                         "*ssm_conv1d.weight",
                                         "*ssm_a",
                                         "*ssm_d"};
    bool is_float = tensor->shape.rank < 2;
    for (size_t i = 0; i < WK_COUNT(floats); i++)
        is_float |=
            wk_str_matches(wk_str_of(floats[i]), (wk_str){tensor->name.text, tensor->name.size});
    if (is_float) return WICK_F32;
    return c->matrix_dtype != WICK_DTYPE_COUNT_ ? c->matrix_dtype : tensor->dtype;
}

static void choose_dtypes(wick_converting *c) {
    for (size_t i = 0; i < c->plan.n; i++) {
        const size_t width = (size_t)wk_hf_count_rows(&c->plan, i).width;
        c->plan.tensors[i].dtype = dtype_of(c, &c->plan.tensors[i]);
        c->row_capacity = width > c->row_capacity ? width : c->row_capacity;
    }
}

/* ---- Metadata ---- */

/* The last part of the folder's path. */
static wk_str name_of(const char *folder) {
    wk_str name = wk_str_of(folder);
    while (name.size > 1 && name.text[name.size - 1] == '/') name.size--;
    for (size_t i = name.size; i-- > 0;) {
        if (name.text[i] != '/') continue;
        name = (wk_str){name.text + i + 1, name.size - i - 1};
        break;
    }
    return name;
}

/* The file's type is that of most matrices: of the first. */
static uint32_t file_type(const wick_converting *c) {
    for (size_t i = 0; i < c->plan.n; i++) {
        const wick_file_tensor *const tensor = &c->plan.tensors[i];
        if (tensor->shape.rank < 2) continue;
        const wk_mix *const mix = wk_mix_find(wick_dtype_name(tensor->dtype));
        if (mix != NULL && tensor->dtype != WICK_F32) return wk_mix_file_type(mix);
    }
    return 0;
}

/* Rows of the embedding; 0: the tokenizer alone knows. */
static uint32_t vocabulary_size(const wick_converting *c) {
    const wk_json *const item = wk_hf_get(c->config, "vocab_size");
    const bool is_size =
        item != NULL && item->is_integer && item->integer > 0 && item->integer < INT32_MAX;
    return is_size ? (uint32_t)item->integer : 0;
}

/* Empty: there is none. */
static wk_str text_of(const wk_json *object, const char *key) {
    const wk_json *const item = wk_json_get(object, key);
    return wk_hf_is_text(item) ? item->string : wk_str_of("");
}

/* What sentence-transformers do with the states, in order: only what GGUF can say. */
static wick_status check_modules(wick_converting *c, wick_error *err) {
    static const struct {
        const char *type, *path; /* path NULL: any */
    } known[] = {{"*.Transformer", NULL}, {"*.Pooling", "1_Pooling"}, {"*.Normalize", NULL}};
    wk_json *modules = NULL;
    WK_TRY(wk_checkpoint_json(c->checkpoint, &c->arena, "modules.json", false, &modules, err));
    for (const wk_json *item = modules != NULL ? modules->child : NULL; item != NULL;
         item = item->next) {
        const wk_str type = text_of(item, "type"), path = text_of(item, "path");
        size_t i = 0;
        while (i < WK_COUNT(known) && !(wk_str_matches(wk_str_of(known[i].type), type) &&
                                        (known[i].path == NULL || wk_str_is(path, known[i].path))))
            i++;
        if (i == WK_COUNT(known))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "modules.json: the module '%s' in '%s' cannot be converted",
                           wk_str_show(type).text, wk_str_show(path).text);
    }
    return WICK_OK;
}

/* How an encoder's states become one embedding, as sentence-transformers note it: by one of the
 * modes, of which GGUF has three. */
static wick_status add_pooling(wick_converting *c, wick_error *err) {
    static const struct {
        const char *key;
        uint32_t type;
    } modes[] = {{"pooling_mode_mean_tokens", 1},
                 {"pooling_mode_cls_token", 2},
                 {"pooling_mode_lasttoken", 3}};
    uint32_t type = 0;
    wk_json *config = NULL;
    WK_TRY(
        wk_checkpoint_json(c->checkpoint, &c->arena, "1_Pooling/config.json", false, &config, err));
    for (const wk_json *item = config != NULL ? config->child : NULL; item != NULL;
         item = item->next) {
        if (item->kind != WK_JSON_BOOL || !item->boolean ||
            !wk_str_matches(wk_str_of("pooling_mode_*"), item->key))
            continue;
        size_t i = 0;
        while (i < WK_COUNT(modes) && !wk_str_is(item->key, modes[i].key)) i++;
        if (i == WK_COUNT(modes) || type != 0)
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "1_Pooling/config.json: '%s' cannot be converted%s",
                           wk_str_show(item->key).text, type != 0 ? " beside another mode" : "");
        type = modes[i].type;
    }
    if (type != 0) wk_value_list_u32(&c->values, ".pooling_type", type);
    return WICK_OK;
}

/* Every layer has several tensors, so a number that is believed is bounded by the files. */
static wick_status check_layers(wick_converting *c, wick_error *err) {
    const size_t n_tensors = wk_checkpoint_count(c->checkpoint);
    uint32_t n_layers = 0;
    WK_TRY(wk_hf_read_u32(c->config, "num_hidden_layers|n_layer", &n_layers, err));
    if (n_layers <= n_tensors) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT,
                   "config.json: there are %" PRIu32 " layers, but only %zu tensors", n_layers,
                   n_tensors);
}

static wick_status add_xielu(wick_converting *c, wick_error *err) {
    uint32_t n_layers = 0;
    if (!(c->family->traits & WK_HF_XIELU)) return WICK_OK;
    WK_TRY(wk_hf_read_u32(c->config, "num_hidden_layers", &n_layers, err));
    return wk_hf_add_xielu(c->checkpoint, n_layers, &c->values, err);
}

static wick_status describe(wick_converting *c, const char *folder, wick_error *err) {
    wk_value_list *const values = &c->values;
    *values = (wk_value_list){.arena = &c->arena, .prefix = c->family->architecture};
    wk_value_list_text(values, "general.architecture", wk_str_of(values->prefix));
    wk_value_list_text(values, "general.type", wk_str_of("model"));
    wk_value_list_text(values, "general.name", name_of(folder));
    WK_TRY(wk_hf_describe(c->family, c->config, values, err));
    WK_TRY(add_xielu(c, err));
    WK_TRY(check_modules(c, err));
    WK_TRY(add_pooling(c, err));
    wk_value_list_u32(values, "general.file_type", file_type(c));
    wk_value_list_u32(values, "general.quantization_version", 2);
    WK_TRY(wk_hf_add_vocabulary(c->checkpoint, vocabulary_size(c), values, err));
    WK_TRY(wk_hf_refuse_unread(c->family, c->config, err));
    return values->failed ? fail_memory(err) : WICK_OK;
}

/* ---- Starting ---- */

/* What is read opens: no tensor is missing or has another shape than the numbers say, and the
 * vocabulary makes a tokenizer with a token for each row. */
static wick_status check_parsed(wk_heap *heap, const wk_gguf *gguf, wick_error *err) {
    wk_model *model = NULL;
    wick_tokenizer *tokenizer = NULL;
    wick_error reason = {0};
    const char *what = "holds no whole model";
    wick_status status = wk_model_make(heap, gguf, &model, &reason);
    if (status == WICK_OK) {
        what = "has a tokenizer that does not open";
        status = wk_tokenizer_of_model(heap, gguf, wk_model_hparams(model)->n_vocab, &tokenizer,
                                       &reason);
    }
    wk_tokenizer_free(heap, tokenizer);
    wk_model_free(model);
    if (status == WICK_ERR_OUT_OF_MEMORY) return fail_memory(err);
    return status == WICK_OK ? WICK_OK
                             : wk_fail(err, status, "the folder %s: %s", what, reason.message);
}

/* header: of the file, which will have *size bytes. */
static wick_status make_header(wick_converting *c, const wk_gguf_contents *contents,
                               wk_strbuf *header, uint64_t *size, wick_error *err) {
    wk_gguf_parser *parser = NULL;
    WK_TRY(wk_gguf_write_header(header, contents, &parser, err));
    const wk_gguf *const gguf = wk_gguf_parser_result(parser);
    const wick_status status = check_parsed(&c->heap, gguf, err);
    *size = gguf->data_offset;
    for (size_t i = 0; i < gguf->n_tensors; i++)
        *size = wk_gguf_padded(gguf->tensors[i].offset + gguf->tensors[i].size, gguf->alignment);
    wk_gguf_parser_free(parser);
    return status;
}

static wick_status choose_dtype(const char *type, wick_dtype *dtype, wick_error *err) {
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F16, WICK_BF16};
    *dtype = WICK_DTYPE_COUNT_;
    if (type == NULL) return WICK_OK;
    const wk_mix *const mix = wk_mix_find(type);
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        *dtype = dtypes[i];
        if (mix != NULL && mix == wk_mix_find(wick_dtype_name(dtypes[i]))) return WICK_OK;
    }
    return wk_fail(err, WICK_ERR_VALUE,
                   "cannot convert to the type '%.40s', only to F32, F16 and BF16; quantize the"
                   " converted file for other types",
                   type);
}

static wick_status make_row(wick_converting *c, wick_error *err) {
    c->row = wk_alloc_array(&c->heap, c->row_capacity, sizeof *c->row);
    c->encoded = wk_alloc_array(&c->heap, c->row_capacity, sizeof *c->row);
    if (c->row_capacity == 0 || (c->row != NULL && c->encoded != NULL)) return WICK_OK;
    return fail_memory(err);
}

/* All that is known before a row is read. out: the file to write, or NULL. */
static wick_status plan(wick_converting *c, const char *folder, const char *out,
                        const wick_convert_desc *desc, wick_error *err) {
    WK_TRY(choose_dtype(desc->type, &c->matrix_dtype, err));
    WK_TRY(wk_checkpoint_open(&c->heap, folder, "model", out, &c->checkpoint, err));
    WK_TRY(wk_checkpoint_json(c->checkpoint, &c->arena, "config.json", true, &c->config, err));
    WK_TRY(wk_hf_take_text(&c->config, &c->arena, err));
    WK_TRY(wk_hf_family_find(c->config, &c->family, err));
    WK_TRY(wk_hf_add_defaults(c->family, c->config, &c->arena, err));
    WK_TRY(check_layers(c, err));
    WK_TRY(wk_hf_plan_make(c->checkpoint, c->family, c->config, &c->arena, &c->plan, err));
    choose_dtypes(c);
    return describe(c, folder, err);
}

static wk_gguf_contents contents_of(const wick_converting *c) {
    return (wk_gguf_contents){c->values.items, c->values.n, c->plan.tensors, c->plan.n};
}

static wick_status start(wick_converting *c, const char *folder, const char *out,
                         const wick_convert_desc *desc, wick_error *err) {
    WK_TRY(plan(c, folder, out, desc, err));
    WK_TRY(make_row(c, err));
    const wk_gguf_contents contents = contents_of(c);
    wk_strbuf header;
    wk_strbuf_init(&header, &c->heap);
    uint64_t size = 0;
    const wick_status status = make_header(c, &contents, &header, &size, err);
    wk_strbuf_release(&header);
    if (status != WICK_OK) return status;
    const wick_file_desc file = {.values = contents.values,
                                 .n_values = contents.n_values,
                                 .tensors = contents.tensors,
                                 .n_tensors = contents.n_tensors,
                                 .replace = desc->replace};
    return wick_file_write_start(out, &file, &c->writer, err);
}

static void free_converting(wick_converting *c) {
    if (c->writer != NULL) (void)wick_file_write_finish(c->writer, false, NULL);
    wk_free(&c->heap, c->row, c->row_capacity * sizeof *c->row);
    wk_free(&c->heap, c->encoded, c->row_capacity * sizeof *c->row);
    wk_checkpoint_close(c->checkpoint);
    wk_arena_release(&c->arena);
    wk_heap heap = c->heap; /* c lies in it */
    wk_free(&heap, c, sizeof *c);
}

static wick_status make_converting(wick_converting **out, wick_error *err) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_converting *const made = wk_alloc_zeroed(&heap, sizeof *made);
    *out = made;
    if (made == NULL) return fail_memory(err);
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    return WICK_OK;
}

wick_status wick_convert_start(const char *folder, const char *out, const wick_convert_desc *desc,
                               wick_converting **converting, wick_error *error) {
    if (converting == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_convert_start: converting is NULL");
    *converting = NULL;
    if (folder == NULL || out == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_convert_start: an argument is NULL");
    if (desc == NULL) desc = &default_desc;
    wick_converting *made;
    WK_TRY(make_converting(&made, error));
    const wick_status status = start(made, folder, out, desc, error);
    if (status == WICK_OK)
        *converting = made;
    else
        free_converting(made);
    return status;
}

/* ---- Looking ---- */

static wick_status preview(wick_converting *c, const char *folder, const wick_convert_desc *desc,
                           wick_file **file, wick_error *err) {
    WK_TRY(plan(c, folder, NULL, desc, err));
    const wk_gguf_contents contents = contents_of(c);
    wk_strbuf header;
    wk_strbuf_init(&header, &c->heap);
    uint64_t size = 0;
    wick_status status = make_header(c, &contents, &header, &size, err);
    if (status == WICK_OK)
        status = wk_file_of_header((wk_str){header.data, header.size}, size, file, err);
    wk_strbuf_release(&header);
    return status;
}

wick_status wick_convert_preview(const char *folder, const wick_convert_desc *desc,
                                 wick_file **file, wick_error *error) {
    if (file != NULL) *file = NULL;
    if (folder == NULL || file == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_convert_preview: an argument is NULL");
    if (desc == NULL) desc = &default_desc;
    wick_converting *made;
    WK_TRY(make_converting(&made, error));
    const wick_status status = preview(made, folder, desc, file, error);
    free_converting(made);
    return status;
}

/* ---- Working ---- */

static wick_status write_row(wick_converting *c, uint32_t part, int64_t row, int64_t width,
                             wick_error *err) {
    const wick_dtype to = c->plan.tensors[c->at].dtype;
    wk_hf_read_row(&c->plan, c->at, part, row, c->row);
    const int64_t bad = wk_find_unencodable(to, c->row, width);
    if (bad < width)
        return wk_fail(err, WICK_ERR_VALUE,
                       "tensor '%s', element %" PRId64 ": %g cannot be stored as %s",
                       c->plan.sources[c->at].parts[part]->name.text, row * width + bad,
                       (double)c->row[bad], wick_dtype_name(to));
    wk_encode(to, c->row, NULL, c->encoded, width);
    return wick_file_write(c->writer, c->encoded, (size_t)(width * wk_dtype_get(to)->block_bytes),
                           err);
}

static wick_status do_tensor(wick_converting *c, wick_error *err) {
    const wk_hf_source *const source = &c->plan.sources[c->at];
    const wk_hf_rows rows = wk_hf_count_rows(&c->plan, c->at);
    for (uint32_t part = 0; part < source->n_parts; part++) {
        for (int64_t row = 0; row < rows.n; row++) WK_TRY(write_row(c, part, row, rows.width, err));
        c->done_bytes += source->parts[part]->size;
    }
    c->at++;
    return WICK_OK;
}

wick_status wick_convert_poll(wick_converting *converting, wick_progress *progress,
                              wick_error *error) {
    if (converting == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_convert_poll: converting is NULL");
    wick_converting *const c = converting;
    wick_status status = c->failure.status;
    if (status == WICK_OK && c->at < c->plan.n) status = do_tensor(c, &c->failure);
    if (progress != NULL)
        *progress = (wick_progress){.done = c->done_bytes, .total = c->plan.total_bytes};
    if (status < 0) return wk_fail(error, status, "%s", c->failure.message);
    return c->at < c->plan.n ? WICK_PENDING : WICK_OK;
}

wick_status wick_convert_finish(wick_converting *converting, bool commit, wick_error *error) {
    if (converting == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_convert_finish: converting is NULL");
    wick_file_writer *const writer = converting->writer;
    converting->writer = NULL;
    const wick_status status = wick_file_write_finish(writer, commit, error);
    free_converting(converting);
    return status;
}
