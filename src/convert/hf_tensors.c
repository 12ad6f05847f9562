/* convert/hf_tensors.c: see hf_tensors.h. */
#include "convert/hf_tensors.h"

#include "convert/hf_rope.h"
#include "convert/hf_scales.h"
#include "core/dtype.h"
#include "core/map.h"
#include "core/status.h"
#include "quant/block.h"
#include "quant/encode.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PARTS = 4096 };

typedef struct planner {
    wk_arena *arena;
    wk_hf_plan *plan;
    wk_map *index; /* of the plan's tensors, by name */
    wick_error *err;
} planner;

static wick_status fail_memory(const planner *p) {
    return wk_fail_memory(p->err, 0, "the tensors of a checkpoint");
}

/* ---- Parts ---- */

/* Parts that the list of n of them has room for. */
static uint32_t capacity_of(uint32_t n) {
    uint32_t capacity = 1;
    while (capacity < n) capacity *= 2;
    return capacity;
}

static wick_status make_room(const planner *p, wk_hf_source *source, uint32_t n) {
    const uint32_t capacity = capacity_of(n);
    if (source->n_parts > 0 && capacity == capacity_of(source->n_parts)) return WICK_OK;
    const wk_checkpoint_tensor **const grown =
        wk_arena_array(p->arena, capacity, sizeof(const wk_checkpoint_tensor *));
    if (grown == NULL) return fail_memory(p);
    for (uint32_t i = 0; i < capacity; i++)
        grown[i] = i < source->n_parts ? source->parts[i] : NULL;
    source->parts = grown;
    return WICK_OK;
}

static wick_status add_part(const planner *p, wk_hf_source *source, uint32_t part,
                            const wk_checkpoint_tensor *tensor) {
    if (part >= MOST_PARTS)
        return wk_fail(p->err, WICK_ERR_UNSUPPORTED, "'%s' is one of more than %d parts",
                       tensor->name.text, (int)MOST_PARTS);
    const uint32_t n = part < source->n_parts ? source->n_parts : part + 1;
    WK_TRY(make_room(p, source, n));
    if (source->parts[part] != NULL)
        return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' and '%s' are the same tensor",
                       source->parts[part]->name.text, tensor->name.text);
    source->parts[part] = tensor;
    source->n_parts = n;
    p->plan->total_bytes += tensor->size;
    return WICK_OK;
}

static wk_hf_source *find_source(const planner *p, const char *name) {
    uint32_t at;
    return wk_map_get(p->index, wk_str_of(name), &at) ? &p->plan->sources[at] : NULL;
}

/* The tensor, or a part of one, at its place. */
static wick_status add_tensor(const planner *p, const wk_hf_place *place,
                              const wk_checkpoint_tensor *tensor) {
    wk_hf_source *source = find_source(p, place->name);
    if (source == NULL) {
        const size_t size = strlen(place->name);
        char *const name = wk_arena_alloc(p->arena, size + 1);
        if (name == NULL) return fail_memory(p);
        memcpy(name, place->name, size + 1);
        if (wk_map_put(p->index, (wk_str){name, size}, (uint32_t)p->plan->n) != WICK_OK)
            return fail_memory(p);
        source = &p->plan->sources[p->plan->n];
        *source = (wk_hf_source){.is_stacked = place->is_part, .change = place->change};
        p->plan->tensors[p->plan->n++] =
            (wick_file_tensor){.name = {name, size}, .dtype = tensor->dtype};
    }
    return add_part(p, source, place->part, tensor);
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
    return add_tensor(p, &place, tensor);
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

static wick_status check_parts(const planner *p, const wk_hf_source *source, const char *name) {
    for (uint32_t i = 0; i < source->n_parts; i++) {
        if (source->parts[i] == NULL)
            return wk_fail(p->err, WICK_ERR_FORMAT, "part %" PRIu32 " of '%s' is missing", i, name);
        if (!is_same(source->parts[0], source->parts[i]))
            return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' has another type or shape than '%s'",
                           source->parts[i]->name.text, source->parts[0]->name.text);
    }
    const char *const first = source->parts[0]->name.text;
    const int rank = source->parts[0]->shape.rank;
    if (is_by_heads(source) && head_rows(p->plan, source) == 0)
        return wk_fail(p->err, WICK_ERR_FORMAT, "the rows of '%s' do not fit the heads", first);
    if (source->change == WK_HF_TRANSPOSE && rank != 2)
        return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' is not a matrix", first);
    const int64_t *const extent = source->parts[0]->shape.extent;
    if (source->change == WK_HF_SQUEEZE && (rank != 3 || extent[1] != 1))
        return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' is not a convolution", first);
    if (source->change == WK_HF_GROUPS &&
        (rank != 1 || p->plan->n_groups == 0 || extent[0] % p->plan->n_groups != 0))
        return wk_fail(p->err, WICK_ERR_FORMAT, "the rows of '%s' do not fit the groups", first);
    if (source->is_stacked && rank == WICK_MAX_RANK)
        return wk_fail(p->err, WICK_ERR_FORMAT, "'%s' has too many axes", first);
    return WICK_OK;
}

/* A vector as rows of this width. */
static wick_shape rows_of(int64_t n, int64_t width) {
    return (wick_shape){.rank = 2, .extent = {n / width, width}};
}

static wick_shape shape_of(const wk_hf_plan *plan, const wk_hf_source *source) {
    const wick_shape from = source->parts[0]->shape;
    const bool is_column = source->change == WK_HF_NEGATIVE_EXP || source->change == WK_HF_COLUMN;
    wick_shape shape = from;
    if (is_column && from.rank == 1) return rows_of(from.extent[0], 1);
    if (source->change == WK_HF_GROUPS)
        return rows_of(from.extent[0], from.extent[0] / plan->n_groups);
    if (source->change == WK_HF_SQUEEZE)
        return (wick_shape){.rank = 2, .extent = {from.extent[0], from.extent[2]}};
    if (source->change == WK_HF_TRANSPOSE) {
        shape.extent[0] = from.extent[1];
        shape.extent[1] = from.extent[0];
    }
    if (!source->is_stacked) return shape;
    shape.rank = from.rank + 1;
    shape.extent[0] = source->n_parts;
    memcpy(shape.extent + 1, from.extent, (size_t)from.rank * sizeof *from.extent);
    return shape;
}

/* ---- The plan ---- */

/* Tensors that are in no checkpoint. */
static wick_status plan_divisors(const planner *p, wk_json *config) {
    wk_hf_divisors divisors[WK_HF_MAX_DIVISORS];
    size_t n = 0;
    WK_TRY(wk_hf_rope_divisors(config, p->arena, divisors, &n, p->err));
    for (size_t i = 0; i < n; i++) {
        wk_hf_place place = {.change = WK_HF_AS_IT_IS};
        snprintf(place.name, sizeof place.name, "%s", divisors[i].name);
        wk_checkpoint_tensor *const made = wk_arena_alloc(p->arena, sizeof *made);
        if (made == NULL) return fail_memory(p);
        *made = (wk_checkpoint_tensor){.name = {divisors[i].name, strlen(divisors[i].name)},
                                       .dtype = WICK_F32,
                                       .shape = {.rank = 1, .extent = {divisors[i].n}},
                                       .data = divisors[i].values,
                                       .size = divisors[i].n * sizeof *divisors[i].values};
        WK_TRY(add_tensor(p, &place, made));
    }
    return WICK_OK;
}

/* The index is not valid any more. */
static void remove_tensor(wk_hf_plan *plan, size_t index) {
    const size_t n = plan->n - index - 1;
    plan->total_bytes -= plan->sources[index].parts[0]->size;
    memmove(plan->tensors + index, plan->tensors + index + 1, n * sizeof *plan->tensors);
    memmove(plan->sources + index, plan->sources + index + 1, n * sizeof *plan->sources);
    plan->n--;
}

/* An output that is the table of embeddings is not stored; one that is not must be there. */
static wick_status settle_output(const planner *p, wk_json *config) {
    const wk_json *const item = wk_hf_get(config, "tie_word_embeddings");
    if (item == NULL || item->kind != WK_JSON_BOOL) return WICK_OK;
    const wk_hf_source *const output = find_source(p, "output.weight");
    if (output != NULL && item->boolean)
        remove_tensor(p->plan, (size_t)(output - p->plan->sources));
    if (output != NULL || item->boolean) return WICK_OK;
    return wk_fail(
        p->err, WICK_ERR_FORMAT,
        "config.json: tie_word_embeddings is false, or missing, which means false in this"
        " model, but the checkpoint has no output matrix (lm_head.weight)");
}

static wick_status plan_all(const planner *p, const wk_checkpoint *checkpoint,
                            const wk_hf_family *family, wk_json *config) {
    const size_t n = wk_checkpoint_count(checkpoint), most = n + WK_HF_MAX_DIVISORS;
    wk_hf_plan *const plan = p->plan;
    plan->tensors = wk_arena_array(p->arena, most, sizeof *plan->tensors);
    plan->sources = wk_arena_array(p->arena, most, sizeof *plan->sources);
    if (plan->tensors == NULL || plan->sources == NULL) return fail_memory(p);
    for (size_t i = 0; i < n; i++) WK_TRY(plan_tensor(p, family, wk_checkpoint_get(checkpoint, i)));
    if (!(family->traits & WK_HF_LEARNED_POSITIONS)) WK_TRY(plan_divisors(p, config));
    if (!(family->traits & WK_HF_ENCODER)) WK_TRY(settle_output(p, config));
    if (family->traits & WK_HF_SCALED) WK_TRY(wk_hf_add_scales(config, plan, p->arena, p->err));
    for (size_t i = 0; i < plan->n; i++) {
        WK_TRY(check_parts(p, &plan->sources[i], plan->tensors[i].name.text));
        plan->tensors[i].shape = shape_of(plan, &plan->sources[i]);
    }
    return WICK_OK;
}

wick_status wk_hf_plan_make(const wk_checkpoint *checkpoint, const wk_hf_family *family,
                            wk_json *config, wk_arena *arena, wk_hf_plan *out, wick_error *err) {
    wk_map index;
    wk_map_init(&index, arena->heap);
    *out = (wk_hf_plan){.heads = wk_hf_read_heads(config)};
    if (family->traits & WK_HF_HEAD_STEPS)
        (void)wk_hf_read_u32(config, "mamba_n_groups|n_groups", &out->n_groups, NULL);
    const wick_status status =
        plan_all(&(planner){arena, out, &index, err}, checkpoint, family, config);
    wk_map_release(&index);
    return status;
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

static void change_row(const wk_hf_source *source, int64_t row, int64_t width, float *out) {
    const float scale = (source->scale != 0.0F ? source->scale : 1.0F) *
                        (source->scales != NULL ? source->scales[row] : 1.0F);
    for (int64_t i = 0; i < width; i++) {
        if (source->change == WK_HF_ADD_ONE) out[i] += 1.0F;
        if (source->change == WK_HF_NEGATIVE_EXP) out[i] = -expf(out[i]);
        if (scale != 1.0F) out[i] *= scale;
    }
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
    change_row(source, row, rows.width, out);
}
