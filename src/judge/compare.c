/* judge/compare.c: the tensors of two files side by side: GGUF, safetensors and .npy.
 *
 * A pair is read in pieces of whole blocks, decoded to float64, and only sums are kept. */
#include <wick/judge.h>

#include "core/arena.h"
#include "core/dtype.h"
#include "core/map.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "quant/block.h"
#include "source/tensor_file.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Elements of a piece, a multiple of every block. */
enum { PIECE = 4096, LARGEST_ELEMENT = 8 /* bytes */ };

typedef struct pair {
    const wick_file_tensor *a, *b; /* NULL: not in this file */
} pair;

struct wick_comparison {
    wk_heap heap;
    wk_arena arena;
    wick_tensor_file *files[2];
    pair *pairs; /* [n_pairs] */
    size_t n_pairs;
    double a[PIECE], b[PIECE];
    float decoded[PIECE];
    uint8_t bytes[PIECE * LARGEST_ELEMENT];
};

/* ---- Pairs ---- */

static wk_str name_of(const wick_file_tensor *tensor) {
    return (wk_str){tensor->name.text, tensor->name.size};
}

/* index: the tensors of a by name. */
static wick_status list_pairs(wick_comparison *c, wk_map *index, wick_error *err) {
    const wick_tensor_file *const a = c->files[0], *const b = c->files[1];
    const size_t n_a = wick_tensor_file_count(a), n_b = wick_tensor_file_count(b);
    c->pairs = wk_arena_array(&c->arena, n_a + n_b, sizeof *c->pairs);
    if (c->pairs == NULL || wk_map_reserve(index, n_a) != WICK_OK)
        return wk_fail_memory(err, 0, "a list of tensors");
    for (size_t i = 0; i < n_a; i++) {
        c->pairs[i].a = wick_tensor_file_get(a, i);
        if (wk_map_put(index, name_of(c->pairs[i].a), (uint32_t)i) != WICK_OK)
            return wk_fail_memory(err, 0, "an index of tensors");
    }
    c->n_pairs = n_a;
    for (size_t i = 0; i < n_b; i++) {
        const wick_file_tensor *const tensor = wick_tensor_file_get(b, i);
        uint32_t place;
        if (!wk_map_get(index, name_of(tensor), &place)) place = (uint32_t)c->n_pairs++;
        c->pairs[place].b = tensor;
    }
    return WICK_OK;
}

static wick_status open_both(wick_comparison *c, const char *a, const char *b, wick_error *err) {
    WK_TRY(wick_tensor_file_open(a, &c->files[0], err));
    WK_TRY(wick_tensor_file_open(b, &c->files[1], err));
    if (wk_tensor_file_is_npy(c->files[0]) != wk_tensor_file_is_npy(c->files[1]))
        return wk_fail(err, WICK_ERR_VALUE,
                       "the array of an npy file has no name: it can only be compared with that of "
                       "another npy file");
    wk_map index;
    wk_map_init(&index, &c->heap);
    const wick_status status = list_pairs(c, &index, err);
    wk_map_release(&index);
    return status;
}

wick_status wick_compare_open(const char *a, const char *b, wick_comparison **comparison,
                              wick_error *error) {
    if (comparison == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_compare_open: comparison is NULL");
    *comparison = NULL;
    if (a == NULL || b == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_compare_open: a path is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_comparison *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, "a comparison");
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    const wick_status status = open_both(made, a, b, error);
    if (status == WICK_OK)
        *comparison = made;
    else
        wick_compare_close(made);
    return status;
}

void wick_compare_close(wick_comparison *comparison) {
    if (comparison == NULL) return;
    for (size_t i = 0; i < 2; i++) wick_tensor_file_close(comparison->files[i]);
    wk_arena_release(&comparison->arena);
    wk_heap heap = comparison->heap; /* comparison lies in it */
    wk_free(&heap, comparison, sizeof *comparison);
}

size_t wick_compare_count(const wick_comparison *comparison) {
    return comparison != NULL ? comparison->n_pairs : 0;
}

/* ---- Values ---- */

typedef struct sums {
    double squares_a, squares_b, product, squares_of_difference;
} sums;

/* Elements [at, at + n) of a tensor; at is a multiple of PIECE. */
static wick_status read_values(wick_comparison *c, wick_tensor_file *f,
                               const wick_file_tensor *tensor, int64_t at, int64_t n, double *out,
                               wick_error *err) {
    const wk_dtype_info *const type = wk_dtype_get(tensor->dtype);
    assert(at % type->block_elements == 0 && n % type->block_elements == 0);
    const uint64_t before = (uint64_t)(at / type->block_elements) * (uint64_t)type->block_bytes;
    const size_t size = (size_t)(n / type->block_elements) * (size_t)type->block_bytes;
    assert(size <= sizeof c->bytes);
    WK_TRY(wk_tensor_file_read(f, tensor, before, c->bytes, size, err));
    const wk_decode_fn decode = wk_dtype_is_block(tensor->dtype) ? wk_decoder(tensor->dtype) : NULL;
    if (decode != NULL) decode(c->bytes, c->decoded, n);
    for (int64_t i = 0; i < n; i++)
        out[i] =
            decode != NULL ? (double)c->decoded[i] : wk_scalar_load(tensor->dtype, c->bytes, i);
    return WICK_OK;
}

static double difference(double a, double b) {
    if (a == b || (isnan(a) && isnan(b))) return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

static void add_element(wick_compared *r, sums *s, double tolerance, uint64_t i, double a,
                        double b) {
    const double d = difference(a, b);
    s->squares_a += a * a;
    s->squares_b += b * b;
    s->product += a * b;
    s->squares_of_difference += d * d;
    if (d > r->largest) r->largest = d;
    if (d <= tolerance) return;
    if (r->n_different++ > 0) return;
    r->first = i;
    r->first_a = a;
    r->first_b = b;
}

static double cosine(const sums *s) {
    if (s->squares_a == 0 && s->squares_b == 0) return 1;
    if (s->squares_a == 0 || s->squares_b == 0) return 0;
    return s->product / (sqrt(s->squares_a) * sqrt(s->squares_b));
}

static wick_status compare_values(wick_comparison *c, const pair *p, double tolerance,
                                  wick_compared *r, wick_error *err) {
    sums s = {0};
    const int64_t n = (int64_t)r->n_elements;
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t n_piece = n - at < PIECE ? n - at : PIECE;
        WK_TRY(read_values(c, c->files[0], p->a, at, n_piece, c->a, err));
        WK_TRY(read_values(c, c->files[1], p->b, at, n_piece, c->b, err));
        for (int64_t i = 0; i < n_piece; i++)
            add_element(r, &s, tolerance, (uint64_t)(at + i), c->a[i], c->b[i]);
    }
    r->rms = n > 0 ? sqrt(s.squares_of_difference / (double)n) : 0;
    r->cosine = cosine(&s);
    r->is_compared = true;
    return WICK_OK;
}

wick_status wick_compare_tensor(wick_comparison *comparison, size_t index, double tolerance,
                                wick_compared *compared, wick_error *error) {
    if (comparison == NULL || compared == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_compare_tensor: an argument is NULL");
    *compared = (wick_compared){.name = ""};
    if (index >= comparison->n_pairs)
        return wk_fail(error, WICK_ERR_INDEX, "wick_compare_tensor: %zu of %zu tensors", index,
                       comparison->n_pairs);
    if (!(tolerance >= 0)) return wk_fail(error, WICK_ERR_VALUE, "a tolerance of %g", tolerance);
    const pair *const p = &comparison->pairs[index];
    compared->name = p->a != NULL ? p->a->name.text : p->b->name.text;
    compared->is_in_a = p->a != NULL;
    compared->is_in_b = p->b != NULL;
    if (p->a != NULL) {
        compared->dtype_a = p->a->dtype;
        compared->shape_a = p->a->shape;
    }
    if (p->b != NULL) {
        compared->dtype_b = p->b->dtype;
        compared->shape_b = p->b->shape;
    }
    if (p->a == NULL || p->b == NULL || !wk_shape_equal(&p->a->shape, &p->b->shape)) return WICK_OK;
    int64_t n = 0;
    (void)wk_shape_count(&p->a->shape, &n); /* the readers of the files saw that it can be */
    compared->n_elements = (uint64_t)n;
    return compare_values(comparison, p, tolerance, compared, error);
}
