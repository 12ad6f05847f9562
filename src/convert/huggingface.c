/* convert/huggingface.c: a folder as Hugging Face has them to a GGUF file, one tensor after the
 * other. Numbers and names are hf_family.c's matter, tokens hf_vocabulary.c's. */
#include <wick/convert.h>

#include "convert/checkpoint.h"
#include "convert/hf_family.h"
#include "convert/hf_vocabulary.h"
#include "convert/mix.h"
#include "core/compiler.h"
#include "core/dtype.h"
#include "core/status.h"
#include "quant/block.h"
#include "quant/encode.h"

#include <inttypes.h>
#include <string.h>

/* A tensor of the new file and where it comes from. */
typedef struct source {
    const wk_checkpoint_tensor *tensor;
    wk_hf_change change;
} source;

struct wick_converting {
    wk_heap heap;
    wk_arena arena; /* of what is known, the plan included */
    wk_checkpoint *checkpoint;
    const wk_json *config;
    const wk_hf_family *family;
    wick_dtype matrix_dtype; /* WICK_DTYPE_COUNT_: as it is */
    wk_value_list values;
    wick_file_tensor *tensors; /* [n], in the order of the checkpoint */
    source *sources;           /* [n] */
    size_t n, at;
    uint64_t done_bytes, total_bytes; /* of the checkpoint */
    wick_file_writer *writer;
    float *row; /* [row_capacity] */
    uint8_t *encoded;
    size_t row_capacity; /* elements */
    wick_error failure;  /* repeated by every later poll */
};

static wick_status fail_memory(wick_error *err) {
    return wk_fail_memory(err, 0, 0, "converting a checkpoint");
}

/* ---- The plan ---- */

/* Vectors, and tables of what is added to embeddings, are f32 in every GGUF file. */
static wick_dtype dtype_of(const wick_converting *c, const wick_file_tensor *tensor,
                           wick_dtype stored) {
    const wk_str name = {tensor->name.text, tensor->name.size};
    if (tensor->shape.rank < 2 || wk_str_is(name, "position_embd.weight") ||
        wk_str_is(name, "token_types.weight"))
        return WICK_F32;
    return c->matrix_dtype != WICK_DTYPE_COUNT_ ? c->matrix_dtype : stored;
}

static wick_status plan_tensor(wick_converting *c, const wk_checkpoint_tensor *tensor,
                               wick_error *err) {
    char name[WK_HF_NAME];
    wk_hf_change change;
    const wk_str given = {tensor->name.text, tensor->name.size};
    if (!wk_hf_rename(c->family, given, name, &change))
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "the tensor '%s' is not known in this model",
                       wk_str_show(given).text);
    if (change == WK_HF_LEFT_OUT) return WICK_OK;
    if (!wk_can_encode(tensor->dtype))
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "the tensor '%s' has the type %s",
                       wk_str_show(given).text, wick_dtype_name(tensor->dtype));
    const size_t size = strlen(name);
    char *const copy = wk_arena_alloc(&c->arena, size + 1);
    if (copy == NULL) return fail_memory(err);
    memcpy(copy, name, size + 1);
    wick_file_tensor *const planned = &c->tensors[c->n];
    *planned = (wick_file_tensor){.name = {copy, size}, .shape = tensor->shape};
    planned->dtype = dtype_of(c, planned, tensor->dtype);
    c->sources[c->n++] = (source){tensor, change};
    c->total_bytes += tensor->size;
    const int rank = tensor->shape.rank;
    const size_t row = rank > 0 ? (size_t)tensor->shape.extent[rank - 1] : 1;
    c->row_capacity = row > c->row_capacity ? row : c->row_capacity;
    return WICK_OK;
}

/* Rows of a head of dim rows; 0: they do not fit the heads. */
static int64_t head_rows(const wick_converting *c, const source *from) {
    const uint32_t n_heads = wk_hf_heads(c->config, from->change);
    const int64_t n = from->tensor->shape.extent[0];
    return n_heads > 0 && n % n_heads == 0 && n / n_heads % 2 == 0 ? n / n_heads : 0;
}

/* One that is in no checkpoint. */
static wick_status plan_rope_divisors(wick_converting *c, wick_error *err) {
    const float *divisors;
    uint32_t n;
    WK_TRY(wk_hf_rope_divisors(c->config, &c->arena, &divisors, &n, err));
    if (n == 0) return WICK_OK;
    wk_checkpoint_tensor *const made = wk_arena_alloc(&c->arena, sizeof *made);
    if (made == NULL) return fail_memory(err);
    *made = (wk_checkpoint_tensor){.name = {"rope_freqs.weight", 17},
                                   .dtype = WICK_F32,
                                   .shape = {.rank = 1, .extent = {n}},
                                   .data = divisors,
                                   .size = n * sizeof *divisors};
    c->tensors[c->n] =
        (wick_file_tensor){.name = made->name, .dtype = made->dtype, .shape = made->shape};
    c->sources[c->n++] = (source){made, WK_HF_AS_IT_IS};
    c->total_bytes += made->size;
    c->row_capacity = n > c->row_capacity ? n : c->row_capacity;
    return WICK_OK;
}

static wick_status plan_tensors(wick_converting *c, wick_error *err) {
    const size_t n = wk_checkpoint_count(c->checkpoint);
    c->tensors = wk_arena_array(&c->arena, n + 1, sizeof *c->tensors);
    c->sources = wk_arena_array(&c->arena, n + 1, sizeof *c->sources);
    if (c->tensors == NULL || c->sources == NULL) return fail_memory(err);
    for (size_t i = 0; i < n; i++) WK_TRY(plan_tensor(c, wk_checkpoint_get(c->checkpoint, i), err));
    WK_TRY(plan_rope_divisors(c, err));
    for (size_t i = 0; i < c->n; i++) {
        if (c->sources[i].change != WK_HF_AS_IT_IS && head_rows(c, &c->sources[i]) == 0)
            return wk_fail(err, WICK_ERR_FORMAT, "the rows of '%s' do not fit the heads",
                           c->tensors[i].name.text);
    }
    return WICK_OK;
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
    for (size_t i = 0; i < c->n; i++) {
        if (c->tensors[i].shape.rank < 2) continue;
        const wk_mix *const mix = wk_mix_find(wick_dtype_name(c->tensors[i].dtype));
        if (mix != NULL && c->tensors[i].dtype != WICK_F32) return wk_mix_file_type(mix);
    }
    return 0;
}

/* Rows of the embedding; 0: the tokenizer alone knows. */
static uint32_t vocabulary_size(const wick_converting *c) {
    const wk_json *const item = wk_json_get(c->config, "vocab_size");
    const bool is_size =
        item != NULL && item->is_integer && item->integer > 0 && item->integer < INT32_MAX;
    return is_size ? (uint32_t)item->integer : 0;
}

/* How an encoder's states become one embedding, as sentence-transformers note it. */
static wick_status add_pooling(wick_converting *c, wick_error *err) {
    static const struct {
        const char *key;
        uint32_t type;
    } modes[] = {{"pooling_mode_mean_tokens", 1},
                 {"pooling_mode_cls_token", 2},
                 {"pooling_mode_lasttoken", 3}};
    const wk_json *config = NULL;
    WK_TRY(
        wk_checkpoint_json(c->checkpoint, &c->arena, "1_Pooling/config.json", false, &config, err));
    for (size_t i = 0; i < WK_COUNT(modes); i++) {
        const wk_json *const item = wk_json_get(config, modes[i].key);
        if (item == NULL || item->kind != WK_JSON_BOOL || !item->boolean) continue;
        wk_value_list_u32(&c->values, ".pooling_type", modes[i].type);
        break;
    }
    return WICK_OK;
}

static wick_status describe(wick_converting *c, const char *folder, wick_error *err) {
    wk_value_list *const values = &c->values;
    *values = (wk_value_list){.arena = &c->arena, .prefix = wk_hf_architecture(c->family)};
    wk_value_list_text(values, "general.architecture", wk_str_of(values->prefix));
    wk_value_list_text(values, "general.type", wk_str_of("model"));
    wk_value_list_text(values, "general.name", name_of(folder));
    WK_TRY(wk_hf_describe(c->family, c->config, values, err));
    WK_TRY(add_pooling(c, err));
    wk_value_list_u32(values, "general.file_type", file_type(c));
    wk_value_list_u32(values, "general.quantization_version", 2);
    WK_TRY(wk_hf_add_vocabulary(c->checkpoint, vocabulary_size(c), values, err));
    return values->failed ? fail_memory(err) : WICK_OK;
}

/* ---- Starting ---- */

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
                   "'%.40s' is no type to convert to; there are F32 F16 BF16, others come from"
                   " quantizing",
                   type);
}

static wick_status make_row(wick_converting *c, wick_error *err) {
    c->row = wk_alloc_array(&c->heap, c->row_capacity, sizeof *c->row);
    c->encoded = wk_alloc_array(&c->heap, c->row_capacity, sizeof *c->row);
    if (c->row_capacity == 0 || (c->row != NULL && c->encoded != NULL)) return WICK_OK;
    return fail_memory(err);
}

static wick_status start(wick_converting *c, const char *folder, const char *out,
                         const wick_convert_desc *desc, wick_error *err) {
    WK_TRY(choose_dtype(desc->type, &c->matrix_dtype, err));
    WK_TRY(wk_checkpoint_open(&c->heap, folder, &c->checkpoint, err));
    WK_TRY(wk_checkpoint_json(c->checkpoint, &c->arena, "config.json", true, &c->config, err));
    WK_TRY(wk_hf_family_find(c->config, &c->family, err));
    WK_TRY(plan_tensors(c, err));
    WK_TRY(describe(c, folder, err));
    WK_TRY(make_row(c, err));
    const wick_file_desc file = {.values = c->values.items,
                                 .n_values = c->values.n,
                                 .tensors = c->tensors,
                                 .n_tensors = c->n,
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

wick_status wick_convert_start(const char *folder, const char *out, const wick_convert_desc *desc,
                               wick_converting **converting, wick_error *error) {
    if (converting == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_convert_start: converting is NULL");
    *converting = NULL;
    if (folder == NULL || out == NULL || desc == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_convert_start: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_converting *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return fail_memory(error);
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    const wick_status status = start(made, folder, out, desc, error);
    if (status == WICK_OK)
        *converting = made;
    else
        free_converting(made);
    return status;
}

/* ---- Working ---- */

/* Where row r of the new tensor was: pair i of a head lay in its rows i and i + dim / 2. */
static int64_t source_row(int64_t r, int64_t dim) {
    const int64_t in_head = r % dim;
    return r - in_head + in_head % 2 * (dim / 2) + in_head / 2;
}

static wick_status write_row(wick_converting *c, const source *from, int64_t row, int64_t k,
                             wick_error *err) {
    const wick_file_tensor *const to = &c->tensors[c->at];
    const int64_t element_bytes = wk_dtype_get(from->tensor->dtype)->block_bytes;
    wk_decoder(from->tensor->dtype)((const uint8_t *)from->tensor->data + row * k * element_bytes,
                                    c->row, k);
    const int64_t bad = wk_find_unencodable(to->dtype, c->row, k);
    if (bad < k)
        return wk_fail(err, WICK_ERR_VALUE,
                       "tensor '%s', element %" PRId64 ": %g cannot be stored as %s",
                       from->tensor->name.text, row * k + bad, (double)c->row[bad],
                       wick_dtype_name(to->dtype));
    wk_encode(to->dtype, c->row, NULL, c->encoded, k);
    return wick_file_write(c->writer, c->encoded,
                           (size_t)(k * wk_dtype_get(to->dtype)->block_bytes), err);
}

/* Vectors are a column when their elements move like rows do. */
static wick_status do_tensor(wick_converting *c, wick_error *err) {
    const source *const from = &c->sources[c->at];
    const wick_shape *const shape = &from->tensor->shape;
    const bool is_permuted = from->change != WK_HF_AS_IT_IS;
    const bool is_column = is_permuted && shape->rank == 1;
    const int64_t k = shape->rank == 0 || is_column ? 1 : shape->extent[shape->rank - 1];
    const int64_t bytes = wk_dtype_get(from->tensor->dtype)->block_bytes;
    const int64_t n_rows = k > 0 ? (int64_t)from->tensor->size / bytes / k : 0;
    const int64_t dim = is_permuted ? head_rows(c, from) : 1;
    for (int64_t r = 0; r < n_rows; r++)
        WK_TRY(write_row(c, from, is_permuted ? source_row(r, dim) : r, k, err));
    c->done_bytes += from->tensor->size;
    c->at++;
    return WICK_OK;
}

wick_status wick_convert_poll(wick_converting *converting, wick_progress *progress,
                              wick_error *error) {
    if (converting == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_convert_poll: converting is NULL");
    wick_converting *const c = converting;
    wick_status status = c->failure.status;
    if (status == WICK_OK && c->at < c->n) status = do_tensor(c, &c->failure);
    if (progress != NULL)
        *progress = (wick_progress){.done = c->done_bytes, .total = c->total_bytes};
    if (status < 0) return wk_fail(error, status, "%s", c->failure.message);
    return c->at < c->n ? WICK_PENDING : WICK_OK;
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
