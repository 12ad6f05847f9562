/* convert/hf_tensors.c: see hf_tensors.h. */
#include "convert/hf_tensors.h"

#include "convert/hf_rope.h"
#include "core/dtype.h"
#include "core/status.h"
#include "quant/block.h"
#include "quant/encode.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { MOST_PARTS = 4096 };

typedef struct planner {
    wk_arena *arena;
    wk_hf_plan *plan;
    wick_error *err;
} planner;

static wick_status fail_memory(const planner *p) {
    return wk_fail_memory(p->err, 0, 0, "the tensors of a checkpoint");
}

/* ---- Parts ---- */

/* Where part belongs, growing the list by doubling. */
static wick_status add_part(const planner *p, wk_hf_source *source, uint32_t part,
                            const wk_checkpoint_tensor *tensor) {
    if (part >= MOST_PARTS)
        return wk_fail(p->err, WICK_ERR_UNSUPPORTED, "'%s' is one of more than %d parts",
                       tensor->name.text, (int)MOST_PARTS);
    const uint32_t n = part < source->n_parts ? source->n_parts : part + 1;
    uint32_t capacity = 1, old = 1;
    while (capacity < n) capacity *= 2;
    while (old < source->n_parts) old *= 2;
    if (source->parts == NULL || capacity > old) {
        const wk_checkpoint_tensor **const grown =
            wk_arena_array(p->arena, capacity, sizeof(const wk_checkpoint_tensor *));
        if (grown == NULL) return fail_memory(p);
        for (uint32_t i = 0; i < capacity; i++)
            grown[i] = i < source->n_parts ? source->parts[i] : NULL;
        source->parts = grown;
    }
    if (source->parts[part] != NULL)
        return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' and '%s' are the same tensor",
                       source->parts[part]->name.text, tensor->name.text);
    source->parts[part] = tensor;
    source->n_parts = n;
    return WICK_OK;
}

static wk_hf_source *find_source(const planner *p, const char *name) {
    for (size_t i = p->plan->n; i-- > 0;) /* the newest first: parts follow each other */
        if (strcmp(p->plan->tensors[i].name.text, name) == 0) return &p->plan->sources[i];
    return NULL;
}

static wick_status add_tensor(const planner *p, const char *name, wk_hf_change change,
                              const wk_checkpoint_tensor *tensor) {
    const size_t size = strlen(name);
    char *const copy = wk_arena_alloc(p->arena, size + 1);
    if (copy == NULL) return fail_memory(p);
    memcpy(copy, name, size + 1);
    wk_hf_source *const source = &p->plan->sources[p->plan->n];
    *source = (wk_hf_source){.change = change};
    p->plan->tensors[p->plan->n++] =
        (wick_file_tensor){.name = {copy, size}, .dtype = tensor->dtype};
    p->plan->total_bytes += tensor->size;
    return add_part(p, source, 0, tensor);
}

static wick_status plan_tensor(const planner *p, const wk_hf_family *family,
                               const wk_checkpoint_tensor *tensor) {
    wk_hf_place place;
    const wk_str given = {tensor->name.text, tensor->name.size};
    if (!wk_hf_rename(family, given, &place))
        return wk_fail(p->err, WICK_ERR_UNSUPPORTED, "the tensor '%s' is not known in this model",
                       wk_str_show(given).text);
    if (place.change == WK_HF_LEFT_OUT) return WICK_OK;
    if (!wk_can_encode(tensor->dtype))
        return wk_fail(p->err, WICK_ERR_UNSUPPORTED, "the tensor '%s' has the type %s",
                       wk_str_show(given).text, wick_dtype_name(tensor->dtype));
    wk_hf_source *const known = find_source(p, place.name);
    if (known == NULL && !place.is_part) return add_tensor(p, place.name, place.change, tensor);
    if (known == NULL) {
        WK_TRY(add_tensor(p, place.name, place.change, tensor));
        if (place.part == 0) return WICK_OK;
        p->plan->sources[p->plan->n - 1].parts[0] = NULL; /* another one is the first */
        return add_part(p, &p->plan->sources[p->plan->n - 1], place.part, tensor);
    }
    p->plan->total_bytes += tensor->size;
    return add_part(p, known, place.part, tensor);
}

/* ---- Shapes ---- */

static bool is_same(const wk_checkpoint_tensor *a, const wk_checkpoint_tensor *b) {
    return a->dtype == b->dtype && a->shape.rank == b->shape.rank &&
           memcmp(a->shape.extent, b->shape.extent,
                  (size_t)a->shape.rank * sizeof *a->shape.extent) == 0;
}

/* Rows of a head, or of a head's q, k or v; 0: they do not fit the heads. */
static int64_t head_rows(const wk_hf_plan *plan, const wk_hf_source *source) {
    const int64_t n = source->parts[0]->shape.rank > 0 ? source->parts[0]->shape.extent[0] : 0;
    const wk_hf_heads heads = plan->heads;
    const bool is_grouped = source->change == WK_HF_REGROUP_QKV;
    if (is_grouped && (heads.n_kv == 0 || heads.n_q % heads.n_kv != 0)) return 0;
    const int64_t n_heads = is_grouped ? heads.n_q + 2 * (int64_t)heads.n_kv
                            : source->change == WK_HF_PERMUTE_Q ? heads.n_q
                                                                : heads.n_kv;
    return n_heads > 0 && n % n_heads == 0 && n / n_heads % 2 == 0 ? n / n_heads : 0;
}

static bool is_by_heads(const wk_hf_source *source) {
    return source->change == WK_HF_PERMUTE_Q || source->change == WK_HF_PERMUTE_K ||
           source->change == WK_HF_REGROUP_QKV;
}

static wick_status finish_tensor(const planner *p, size_t index) {
    wick_file_tensor *const tensor = &p->plan->tensors[index];
    const wk_hf_source *const source = &p->plan->sources[index];
    for (uint32_t i = 0; i < source->n_parts; i++) {
        if (source->parts[i] == NULL)
            return wk_fail(p->err, WICK_ERR_FORMAT, "part %" PRIu32 " of '%s' is missing", i,
                           tensor->name.text);
        if (!is_same(source->parts[0], source->parts[i]))
            return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' has another type or shape than '%s'",
                           source->parts[i]->name.text, source->parts[0]->name.text);
    }
    const wick_shape *const shape = &source->parts[0]->shape;
    if (is_by_heads(source) && head_rows(p->plan, source) == 0)
        return wk_fail(p->err, WICK_ERR_FORMAT, "the rows of '%s' do not fit the heads",
                       source->parts[0]->name.text);
    tensor->shape = *shape;
    if (source->change == WK_HF_TRANSPOSE) {
        if (shape->rank != 2)
            return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' is no matrix",
                           source->parts[0]->name.text);
        tensor->shape.extent[0] = shape->extent[1];
        tensor->shape.extent[1] = shape->extent[0];
    }
    if (source->n_parts == 1) return WICK_OK;
    if (shape->rank + 1 > WICK_MAX_RANK)
        return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' has too many axes",
                       source->parts[0]->name.text);
    tensor->shape.rank = shape->rank + 1;
    tensor->shape.extent[0] = source->n_parts;
    memcpy(tensor->shape.extent + 1, shape->extent, (size_t)shape->rank * sizeof *shape->extent);
    return WICK_OK;
}

/* ---- The plan ---- */

/* Tensors that are in no checkpoint. */
static wick_status plan_divisors(const planner *p, const wk_json *config) {
    wk_hf_divisors divisors[WK_HF_MAX_DIVISORS];
    size_t n = 0;
    WK_TRY(wk_hf_rope_divisors(config, p->arena, divisors, &n, p->err));
    for (size_t i = 0; i < n; i++) {
        wk_checkpoint_tensor *const made = wk_arena_alloc(p->arena, sizeof *made);
        if (made == NULL) return fail_memory(p);
        *made = (wk_checkpoint_tensor){.name = {divisors[i].name, strlen(divisors[i].name)},
                                       .dtype = WICK_F32,
                                       .shape = {.rank = 1, .extent = {divisors[i].n}},
                                       .data = divisors[i].values,
                                       .size = divisors[i].n * sizeof *divisors[i].values};
        WK_TRY(add_tensor(p, divisors[i].name, WK_HF_AS_IT_IS, made));
    }
    return WICK_OK;
}

static void remove_tensor(wk_hf_plan *plan, size_t index) {
    const size_t n = plan->n - index - 1;
    plan->total_bytes -= plan->sources[index].parts[0]->size;
    memmove(plan->tensors + index, plan->tensors + index + 1, n * sizeof *plan->tensors);
    memmove(plan->sources + index, plan->sources + index + 1, n * sizeof *plan->sources);
    plan->n--;
}

/* An output that is the table of embeddings is not stored; one that is not must be there. */
static wick_status settle_output(const planner *p, const wk_json *config) {
    const wk_json *const item = wk_json_get(config, "tie_word_embeddings");
    if (item == NULL || item->kind != WK_JSON_BOOL) return WICK_OK;
    const wk_hf_source *const output = find_source(p, "output.weight");
    if (output != NULL && item->boolean)
        remove_tensor(p->plan, (size_t)(output - p->plan->sources));
    if (output != NULL || item->boolean) return WICK_OK;
    return wk_fail(p->err, WICK_ERR_FORMAT,
                   "config.json: tie_word_embeddings is false, but the checkpoint has no output"
                   " matrix (lm_head.weight)");
}

wick_status wk_hf_plan_make(const wk_checkpoint *checkpoint, const wk_hf_family *family,
                            const wk_json *config, wk_arena *arena, wk_hf_plan *out,
                            wick_error *err) {
    const planner p = {arena, out, err};
    const size_t n = wk_checkpoint_count(checkpoint), most = n + WK_HF_MAX_DIVISORS;
    *out = (wk_hf_plan){.heads = wk_hf_read_heads(config)};
    out->tensors = wk_arena_array(arena, most, sizeof *out->tensors);
    out->sources = wk_arena_array(arena, most, sizeof *out->sources);
    if (out->tensors == NULL || out->sources == NULL) return fail_memory(&p);
    for (size_t i = 0; i < n; i++)
        WK_TRY(plan_tensor(&p, family, wk_checkpoint_get(checkpoint, i)));
    if (!(family->traits & WK_HF_ENCODER)) WK_TRY(settle_output(&p, config));
    WK_TRY(plan_divisors(&p, config));
    for (size_t i = 0; i < out->n; i++) WK_TRY(finish_tensor(&p, i));
    return WICK_OK;
}

/* ---- Rows ---- */

/* Pair i of a head lay in its rows i and i + dim / 2. */
static int64_t permuted_row(int64_t row, int64_t dim) {
    const int64_t in_head = row % dim;
    return row - in_head + in_head % 2 * (dim / 2) + in_head / 2;
}

/* A group was the queries of one head of keys, this head's keys, and its values. */
static int64_t regrouped_row(int64_t row, int64_t dim, wk_hf_heads heads) {
    const int64_t per_group = heads.n_q / heads.n_kv, head = row / dim, n_q = heads.n_q;
    int64_t group = head / per_group, in_group = head % per_group;
    if (head >= n_q) {
        group = (head - n_q) % heads.n_kv;
        in_group = per_group + (head - n_q) / heads.n_kv;
    }
    return (group * (per_group + 2) + in_group) * dim + row % dim;
}

static int64_t source_row(const wk_hf_plan *plan, const wk_hf_source *source, int64_t row) {
    switch (source->change) {
    case WK_HF_PERMUTE_Q:
    case WK_HF_PERMUTE_K: return permuted_row(row, head_rows(plan, source));
    case WK_HF_REGROUP_QKV: return regrouped_row(row, head_rows(plan, source), plan->heads);
    default: return row;
    }
}

/* Vectors are a column when their elements move like rows do. */
wk_hf_rows wk_hf_count_rows(const wk_hf_plan *plan, size_t index) {
    assert(index < plan->n);
    const wk_hf_source *const source = &plan->sources[index];
    const wick_shape *const shape = &source->parts[0]->shape;
    if (source->change == WK_HF_TRANSPOSE) return (wk_hf_rows){shape->extent[1], shape->extent[0]};
    const bool is_column = is_by_heads(source) && shape->rank == 1;
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++) n *= shape->extent[i];
    const int64_t width = shape->rank == 0 || is_column ? 1 : shape->extent[shape->rank - 1];
    return (wk_hf_rows){width > 0 ? n / width : 0, width};
}

void wk_hf_read_row(const wk_hf_plan *plan, size_t index, uint32_t part, int64_t row, float *out) {
    const wk_hf_source *const source = &plan->sources[index];
    const wk_checkpoint_tensor *const from = source->parts[part];
    const wk_hf_rows rows = wk_hf_count_rows(plan, index);
    const wk_decode_fn decode = wk_decoder(from->dtype);
    const int64_t bytes = wk_dtype_get(from->dtype)->block_bytes;
    const uint8_t *const data = from->data;
    if (source->change == WK_HF_TRANSPOSE) {
        for (int64_t i = 0; i < rows.width; i++)
            decode(data + (i * rows.n + row) * bytes, out + i, 1);
        return;
    }
    decode(data + source_row(plan, source, row) * rows.width * bytes, out, rows.width);
    for (int64_t i = 0; i < rows.width && source->change == WK_HF_ADD_ONE; i++) out[i] += 1.0F;
}
