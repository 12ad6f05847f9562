/* llm/compare.c: the tensors of two files side by side: GGUF, safetensors and .npy.
 *
 * A pair is read in pieces of whole blocks, decoded to float64, and leaves sums behind. */
#include <wick/judge.h>

#include "core/dtype.h"
#include "core/map.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "format/npy.h"
#include "format/safetensors.h"
#include "quant/block.h"
#include "sys/file.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Elements of a piece, a multiple of every block. */
enum { PIECE = 4096, LARGEST_ELEMENT = 8 /* bytes */ };

/* A file of tensors: read through gguf, or where it lies in memory. */
typedef struct tensor_file {
    wick_file *gguf; /* NULL: another format */
    wk_file *file;
    const uint8_t *data; /* offsets are from here */
    wk_safetensors safetensors;
    wick_file_tensor array; /* of an npy file */
    bool is_npy;
    void *unpacked; /* an npy file's array that does not lie as tensors do; NULL: it does */
    const wick_file_tensor *tensors;
    size_t n_tensors;
} tensor_file;

typedef struct pair {
    const wick_file_tensor *a, *b; /* NULL: not in this file */
} pair;

struct wick_comparison {
    wk_heap heap;
    wk_arena arena;
    tensor_file files[2];
    pair *pairs; /* [n_pairs] */
    size_t n_pairs;
    double a[PIECE], b[PIECE];
    float decoded[PIECE];
    uint8_t bytes[PIECE * LARGEST_ELEMENT];
};

/* ---- Files ---- */

static wick_status open_npy(wick_comparison *c, tensor_file *f, uint64_t size, wick_error *err) {
    wk_npy npy;
    WK_TRY(wk_npy_parse(f->data, (size_t)size, &npy, err));
    f->is_npy = true;
    f->array = (wick_file_tensor){
        .name = {"", 0}, .dtype = npy.dtype, .shape = npy.shape, .size = npy.size};
    f->tensors = &f->array;
    f->n_tensors = 1;
    f->data = npy.data;
    if (wk_npy_is_plain(&npy)) return WICK_OK;
    f->unpacked = wk_alloc(&c->heap, (size_t)npy.size);
    if (f->unpacked == NULL && npy.size > 0)
        return wk_fail_memory(err, npy.size, 0, "the array of an npy file");
    wk_npy_unpack(&npy, f->unpacked);
    f->data = f->unpacked;
    return WICK_OK;
}

static wick_status open_mapped(wick_comparison *c, tensor_file *f, const char *path,
                               wick_error *err) {
    static const uint8_t npy_magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    const void *data = NULL;
    WK_TRY(wk_file_map(f->file, &data, err));
    f->data = data;
    const uint64_t size = wk_file_size(f->file);
    const bool is_npy = size >= sizeof npy_magic && memcmp(data, npy_magic, sizeof npy_magic) == 0;
    wick_error reason = {0};
    const wick_status status =
        is_npy ? open_npy(c, f, size, &reason)
               : wk_safetensors_parse(&c->heap, &c->arena, data, size, &f->safetensors, &reason);
    if (status != WICK_OK && !is_npy)
        return wk_fail(err, status,
                       "'%s' is no GGUF or .npy file, and no sound safetensors file: %s", path,
                       reason.message);
    if (status != WICK_OK) return wk_fail(err, status, "'%s': %s", path, reason.message);
    if (is_npy) return WICK_OK;
    f->tensors = f->safetensors.tensors;
    f->n_tensors = f->safetensors.n_tensors;
    return WICK_OK;
}

static wick_status open_file(wick_comparison *c, tensor_file *f, const char *path,
                             wick_error *err) {
    char magic[4] = "";
    WK_TRY(wk_file_open(&c->heap, path, &f->file, err));
    if (wk_file_size(f->file) >= sizeof magic)
        WK_TRY(wk_file_read_at(f->file, 0, magic, sizeof magic, err));
    if (memcmp(magic, "GGUF", sizeof magic) != 0) return open_mapped(c, f, path, err);
    wick_error reason = {0};
    const wick_status status = wick_file_open(path, &f->gguf, &reason);
    if (status != WICK_OK) return wk_fail(err, status, "'%s': %s", path, reason.message);
    f->tensors = wick_file_get_tensor(f->gguf, 0);
    f->n_tensors = wick_file_tensor_count(f->gguf);
    return WICK_OK;
}

static void close_file(wick_comparison *c, tensor_file *f) {
    wick_file_close(f->gguf);
    wk_map_release(&f->safetensors.index);
    wk_free(&c->heap, f->unpacked, f->unpacked != NULL ? (size_t)f->array.size : 0);
    if (f->file != NULL) wk_file_close(&c->heap, f->file);
}

static wick_status read_bytes(tensor_file *f, const wick_file_tensor *tensor, uint64_t at,
                              void *dst, size_t size, wick_error *err) {
    if (f->gguf != NULL) return wick_file_read(f->gguf, tensor->offset + at, dst, size, err);
    memcpy(dst, f->data + tensor->offset + at, size);
    return WICK_OK;
}

/* ---- Pairs ---- */

static wk_str name_of(const wick_file_tensor *tensor) {
    return (wk_str){tensor->name.text, tensor->name.size};
}

/* index: the tensors of a by name. */
static wick_status list_pairs(wick_comparison *c, wk_map *index, wick_error *err) {
    const tensor_file *const a = &c->files[0], *const b = &c->files[1];
    c->pairs = wk_arena_array(&c->arena, a->n_tensors + b->n_tensors, sizeof *c->pairs);
    if (c->pairs == NULL || wk_map_reserve(index, a->n_tensors) != WICK_OK)
        return wk_fail_memory(err, 0, 0, "a list of tensors");
    for (size_t i = 0; i < a->n_tensors; i++) {
        c->pairs[i].a = &a->tensors[i];
        if (wk_map_put(index, name_of(&a->tensors[i]), (uint32_t)i) != WICK_OK)
            return wk_fail_memory(err, 0, 0, "an index of tensors");
    }
    c->n_pairs = a->n_tensors;
    for (size_t i = 0; i < b->n_tensors; i++) {
        uint32_t place;
        if (!wk_map_get(index, name_of(&b->tensors[i]), &place)) place = (uint32_t)c->n_pairs++;
        c->pairs[place].b = &b->tensors[i];
    }
    return WICK_OK;
}

static wick_status open_both(wick_comparison *c, const char *a, const char *b, wick_error *err) {
    WK_TRY(open_file(c, &c->files[0], a, err));
    WK_TRY(open_file(c, &c->files[1], b, err));
    if (c->files[0].is_npy != c->files[1].is_npy)
        return wk_fail(err, WICK_ERR_VALUE,
                       "the array of an npy file has no name: it can be compared with that of "
                       "another one alone");
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
    if (made == NULL) return wk_fail_memory(error, sizeof *made, 0, "a comparison");
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    for (size_t i = 0; i < 2; i++) wk_map_init(&made->files[i].safetensors.index, &made->heap);
    const wick_status status = open_both(made, a, b, error);
    if (status == WICK_OK)
        *comparison = made;
    else
        wick_compare_close(made);
    return status;
}

void wick_compare_close(wick_comparison *comparison) {
    if (comparison == NULL) return;
    for (size_t i = 0; i < 2; i++) close_file(comparison, &comparison->files[i]);
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
static wick_status read_values(wick_comparison *c, tensor_file *f, const wick_file_tensor *tensor,
                               int64_t at, int64_t n, double *out, wick_error *err) {
    const wk_dtype_info *const type = wk_dtype_get(tensor->dtype);
    assert(at % type->block_elements == 0 && n % type->block_elements == 0);
    const uint64_t before = (uint64_t)(at / type->block_elements) * (uint64_t)type->block_bytes;
    const size_t size = (size_t)(n / type->block_elements) * (size_t)type->block_bytes;
    assert(size <= sizeof c->bytes);
    WK_TRY(read_bytes(f, tensor, before, c->bytes, size, err));
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
        WK_TRY(read_values(c, &c->files[0], p->a, at, n_piece, c->a, err));
        WK_TRY(read_values(c, &c->files[1], p->b, at, n_piece, c->b, err));
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
