/* format/npy_read.c: reads .npy files held in memory.
 *
 * Reference: numpy/lib/format.py: magic, version, length (16 bits in version 1, 32 since), then a
 * Python dict literal with exactly the keys descr, fortran_order and shape, in any order. */
#include "format/npy.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "format/npy_types.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

typedef struct cursor {
    const char *file, *at, *end; /* end: of the dict */
    wick_error *err;
} cursor;

static wick_status refuse(const cursor *c, const char *reason) {
    return wk_fail(c->err, WICK_ERR_FORMAT, "byte %td: the header of the npy file %s",
                   c->at - c->file, reason);
}

/* ---- Tokens of a Python literal ---- */

static void skip_blanks(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
}

static bool take(cursor *c, char wanted) {
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    skip_blanks(c);
    const size_t size = strlen(word);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0) return false;
    c->at += size;
    return true;
}

static wick_status take_string(cursor *c, wk_str *text) {
    const char quote = take(c, '"') ? '"' : '\'';
    if (quote == '\'' && !take(c, '\'')) return refuse(c, "lacks a string here");
    text->text = c->at;
    while (c->at < c->end && *c->at != quote) c->at++;
    text->size = (size_t)(c->at - text->text);
    return take(c, quote) ? WICK_OK : refuse(c, "ends inside a string");
}

static wick_status take_extent(cursor *c, int64_t *extent) {
    skip_blanks(c);
    const char *const begin = c->at;
    *extent = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        const int digit = *c->at - '0';
        if (*extent > (INT64_MAX - digit) / 10) return refuse(c, "has an extent over 2^63");
        *extent = *extent * 10 + digit;
    }
    if (c->at == begin) return refuse(c, "lacks an extent here");
    (void)take(c, 'L'); /* Python 2 wrote long integers so */
    return WICK_OK;
}

/* ---- The dict ---- */

static wick_status take_shape(cursor *c, wick_shape *shape) {
    if (!take(c, '(')) return refuse(c, "has a shape that is not a tuple");
    shape->rank = 0;
    while (!take(c, ')')) {
        if (shape->rank == WICK_MAX_RANK)
            return wk_fail(c->err, WICK_ERR_UNSUPPORTED,
                           "the npy file has more than the %d dimensions that work", WICK_MAX_RANK);
        WK_TRY(take_extent(c, &shape->extent[shape->rank++]));
        if (take(c, ',')) continue;
        return take(c, ')') ? WICK_OK : refuse(c, "has a shape that does not end");
    }
    return WICK_OK;
}

/* "<f4": byte order, kind and bytes of an element. */
static wick_status take_type(cursor *c, wk_npy *npy) {
    skip_blanks(c);
    if (c->at < c->end && *c->at == '[')
        return wk_fail(c->err, WICK_ERR_UNSUPPORTED,
                       "the npy file holds records, only plain numbers can be read");
    wk_str descr;
    WK_TRY(take_string(c, &descr));
    const char order = descr.size > 0 ? descr.text[0] : '?';
    npy->is_swapped = order == '>';
    for (int i = 0; i < WICK_DTYPE_COUNT_ && memchr("<>|=", order, 4) != NULL; i++) {
        const char *const name = wk_npy_type_name((wick_dtype)i);
        if (name == NULL || !wk_str_is((wk_str){descr.text + 1, descr.size - 1}, name + 1))
            continue;
        npy->dtype = (wick_dtype)i;
        return WICK_OK;
    }
    return wk_fail(c->err, WICK_ERR_UNSUPPORTED,
                   "the npy file is of the type '%s', which Wick does not have",
                   wk_str_show(descr).text);
}

static wick_status take_entry(cursor *c, wk_npy *npy, unsigned *seen) {
    wk_str key;
    WK_TRY(take_string(c, &key));
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned which = 0;
    while (which < WK_COUNT(keys) && !wk_str_is(key, keys[which])) which++;
    if (which == WK_COUNT(keys)) return refuse(c, "has a key that is not known");
    if ((*seen & 1U << which) != 0) return refuse(c, "has a key twice");
    *seen |= 1U << which;
    if (!take(c, ':')) return refuse(c, "lacks a colon here");
    if (which == 0) return take_type(c, npy);
    if (which == 2) return take_shape(c, &npy->shape);
    npy->is_fortran = take_word(c, "True");
    if (npy->is_fortran || take_word(c, "False")) return WICK_OK;
    return refuse(c, "has a fortran_order that is neither True nor False");
}

static wick_status take_dict(cursor *c, wk_npy *npy) {
    unsigned seen = 0;
    if (!take(c, '{')) return refuse(c, "is not a dict");
    while (!take(c, '}')) {
        WK_TRY(take_entry(c, npy, &seen));
        if (take(c, ',')) continue;
        if (!take(c, '}')) return refuse(c, "does not end its dict");
        break;
    }
    if (seen != 7) return refuse(c, "lacks descr, fortran_order or shape");
    skip_blanks(c);
    return c->at == c->end ? WICK_OK : refuse(c, "has something after its dict");
}

/* ---- The file ---- */

enum { MAGIC_SIZE = 6, VERSION_SIZE = 2 };

static wick_status find_dict(cursor *c, size_t size) {
    const unsigned char *const bytes = (const unsigned char *)c->file;
    const size_t start = MAGIC_SIZE + VERSION_SIZE;
    if (size < start + 2 || memcmp(bytes, "\x93NUMPY", MAGIC_SIZE) != 0)
        return wk_fail(c->err, WICK_ERR_FORMAT, "byte 0: not an npy file");
    const int version = bytes[MAGIC_SIZE];
    if (version < 1 || version > 3)
        return wk_fail(c->err, WICK_ERR_UNSUPPORTED,
                       "byte 6: version %d of the npy format is not known, only 1, 2 and 3 are",
                       version);
    const size_t width = version == 1 ? 2 : 4;
    size_t length = 0;
    for (size_t i = 0; i < width && start + i < size; i++)
        length |= (size_t)bytes[start + i] << (8 * i);
    if (size < start + width || length > size - start - width)
        return wk_fail(c->err, WICK_ERR_FORMAT, "byte %zu: the npy file ends inside its header",
                       size);
    c->at = c->file + start + width;
    c->end = c->at + length;
    return WICK_OK;
}

static wick_status check_bools(const cursor *c, const wk_npy *npy) {
    for (uint64_t i = 0; i < npy->size; i++) {
        if (npy->data[i] > 1)
            return wk_fail(c->err, WICK_ERR_FORMAT, "byte %td: a bool of value %d",
                           (const char *)npy->data + i - c->file, npy->data[i]);
    }
    return WICK_OK;
}

wick_status wk_npy_parse_header(const void *bytes, size_t held, uint64_t size, wk_npy *out,
                                wick_error *err) {
    cursor c = {.file = bytes, .err = err};
    *out = (wk_npy){.dtype = WICK_F32};
    WK_TRY(find_dict(&c, held));
    WK_TRY(take_dict(&c, out));
    int64_t count;
    const uint64_t left = size - (uint64_t)(c.end - c.file);
    if (!wk_shape_count(&out->shape, &count) || !wk_dtype_bytes(out->dtype, count, &out->size))
        return refuse(&c, "has a shape of too many elements for 64 bits");
    if (out->size != left)
        return wk_fail(err, WICK_ERR_FORMAT,
                       "the array of the npy file has %" PRIu64 " bytes, but %" PRIu64
                       " follow its header",
                       out->size, left);
    out->data = (const unsigned char *)c.end;
    return WICK_OK;
}

wick_status wk_npy_parse(const void *bytes, size_t size, wk_npy *out, wick_error *err) {
    WK_TRY(wk_npy_parse_header(bytes, size, size, out, err));
    const cursor c = {.file = bytes, .err = err};
    return out->dtype == WICK_BOOL ? check_bools(&c, out) : WICK_OK;
}

bool wk_npy_is_plain(const wk_npy *npy) {
    const bool has_order = wk_dtype_get(npy->dtype)->block_bytes > 1;
    return !(npy->is_fortran && npy->shape.rank > 1) && !(npy->is_swapped && has_order);
}

void wk_npy_unpack(const wk_npy *npy, void *dst) {
    assert(dst || npy->size == 0);
    const wick_shape *const shape = &npy->shape;
    const size_t size = (size_t)wk_dtype_get(npy->dtype)->block_bytes;
    const uint64_t n = npy->size / size;
    int64_t stride[WICK_MAX_RANK] = {0}, index[WICK_MAX_RANK] = {0};
    wk_shape_dense(shape, stride);
    int64_t passed = 1;
    for (int d = 0; npy->is_fortran && d < shape->rank; d++) {
        stride[d] = passed;
        passed *= shape->extent[d];
    }
    unsigned char *to = dst;
    int64_t at = 0; /* the element of data that belongs to index */
    for (uint64_t i = 0; i < n; i++, to += size) {
        const unsigned char *const from = npy->data + (size_t)at * size;
        for (size_t b = 0; b < size; b++) to[b] = from[npy->is_swapped ? size - 1 - b : b];
        for (int d = shape->rank; d-- > 0;) {
            at += stride[d];
            if (++index[d] < shape->extent[d]) break;
            at -= index[d] * stride[d];
            index[d] = 0;
        }
    }
}
