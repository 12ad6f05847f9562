/* verify/case_memory.c: the operands' memory: poison, values, copies.
 *
 * Poison is NaN in every float type and far out of range as an index: all bits set in what is only
 * read, another NaN in what is written, so that poison copied from one to the other shows. */
#include "verify/case.h"

#include "backend/row.h"
#include "core/dtype.h"
#include "core/half.h"
#include "quant/block.h"

#include <math.h>
#include <string.h>

enum { GUARD_BYTES = 256, WEIGHT_ALIGNMENT = 16, N_COPIES = 4 };

static bool is_own(const wk_case *c, int i) { return c->op.view[i].buf == &c->buffer[i]; }

/* --- Floats --- */

static double special_value(wk_case *c) {
    switch (wk_case_below(c, 6)) {
    case 0: return 0.0;
    case 1: return -0.0;
    case 2: return 1e-40 * wk_case_signed(c); /* subnormal in f32 */
    case 3: return 1e-20 * wk_case_signed(c);
    case 4: return 30 * wk_case_signed(c);
    default: /* e^-1000 is 0 here and not there, which infinities tell apart */
        return (c->values == WK_VALUES_NOT_FINITE ? 80 : 1000) * wk_case_signed(c);
    }
}

static double random_value(wk_case *c) {
    const int64_t kind = c->values == WK_VALUES_PLAIN ? 100 : wk_case_below(c, 100);
    if (kind < 2 && c->values == WK_VALUES_NOT_FINITE) {
        const int64_t which = wk_case_below(c, 3);
        return which == 0 ? (double)NAN : which == 1 ? (double)INFINITY : -(double)INFINITY;
    }
    return kind < 15 ? special_value(c) : 2 * wk_case_signed(c);
}

static void fill_floats(wk_case *c, const wk_view *view) {
    for (int64_t r = 0; wk_view_count(view) > 0 && r < wk_row_count(view); r++) {
        const wk_row row = wk_row_at(view, r);
        for (int64_t i = 0; i < row.n; i++) {
            const double value = random_value(c);
            wk_row_store(&row, i, 1, &value);
        }
    }
}

/* Uniform in [least, most). */
static void fill_range(wk_case *c, const wk_view *view, double least, double most) {
    for (int64_t r = 0; wk_view_count(view) > 0 && r < wk_row_count(view); r++) {
        const wk_row row = wk_row_at(view, r);
        for (int64_t i = 0; i < row.n; i++) {
            const double value = least + (most - least) * (double)wk_rng_uniform(&c->rng);
            wk_row_store(&row, i, 1, &value);
        }
    }
}

/* --- Integers: uniform in [least, least + range) --- */

static void fill_integers(wk_case *c, const wk_view *view, int64_t least, int64_t range) {
    for (int64_t r = 0; wk_view_count(view) > 0 && r < wk_row_count(view); r++) {
        const wk_row row = wk_row_at(view, r);
        for (int64_t i = 0; i < row.n; i++) {
            const int64_t value = least + wk_case_below(c, range);
            wk_row_store_integer(&row, i, 1, &value);
        }
    }
}

/* Row numbers of a weight of n rows. */
static void fill_ids(wk_case *c, const wk_view *view, int64_t n) {
    fill_integers(c, view, 0, n);
    if (!c->has_bad_index || wk_view_count(view) == 0) return;
    const wk_row row = wk_row_at(view, 0);
    wk_row_store_integer(&row, wk_case_below(c, row.n), 1, &n);
}

/* --- Weights --- */

/* Where the f16 scales of a block are; the other bytes may be anything, except for exponents. */
static int scale_offsets(wick_dtype dtype, int offsets[2]) {
    offsets[0] = 0;
    offsets[1] = 2;
    switch (dtype) {
    case WICK_MXFP4:
    case WICK_NVFP4:
    case WICK_IQ1_M: return 0;
    case WICK_Q4_1:
    case WICK_Q5_1:
    case WICK_Q4_K:
    case WICK_Q5_K: return 2;
    case WICK_Q2_K:
        offsets[0] = 80;
        offsets[1] = 82;
        return 2;
    case WICK_Q3_K: offsets[0] = 108; return 1;
    case WICK_Q6_K: offsets[0] = 208; return 1;
    case WICK_TQ1_0: offsets[0] = 52; return 1;
    case WICK_TQ2_0: offsets[0] = 64; return 1;
    default: return 1;
    }
}

static void fill_blocks(wk_case *c, wick_dtype dtype, unsigned char *to, uint64_t size) {
    const uint64_t step = (uint64_t)wk_dtype_get(dtype)->block_bytes;
    int offsets[2];
    const int n_scales = scale_offsets(dtype, offsets);
    for (uint64_t i = 0; i < size; i += 4) {
        const uint32_t word = wk_rng_u32(&c->rng);
        memcpy(to + i, &word, size - i < 4 ? (size_t)(size - i) : 4);
    }
    for (uint64_t at = 0; at < size; at += step) {
        for (int s = 0; s < n_scales; s++) {
            const bool is_zero = c->values != WK_VALUES_PLAIN && wk_case_chance(c, 5);
            const uint16_t half = wk_f64_to_f16(is_zero ? 0 : 0.02 * wk_case_signed(c));
            memcpy(to + at + offsets[s], &half, sizeof half);
        }
        /* 2^-9 ... 2^6 */
        if (dtype == WICK_MXFP4) to[at] = (unsigned char)(118 + wk_case_below(c, 16));
        /* The top half byte of the scale: 2^-7 ... 2^-4 */
        if (dtype == WICK_IQ1_M) to[at + 55] = (unsigned char)((to[at + 55] & 0x8F) | 0x20);
    }
}

static void fill_raw(wk_case *c, const wk_view *view) {
    uint64_t begin, end;
    wk_view_range(view, &begin, &end);
    if (wk_dtype_is_block(view->dtype)) {
        fill_blocks(c, view->dtype, wk_view_data(view), end - begin);
    } else {
        const wk_case_values values = c->values; /* those of x suffice: 0 times infinity is NaN */
        if (values == WK_VALUES_NOT_FINITE) c->values = WK_VALUES_SPECIAL;
        fill_floats(c, view);
        c->values = values;
    }
}

/* Raw rows, then the layout made of them. */
static wick_status fill_weight(wk_case *c, const wk_view *view, wk_heap *heap) {
    if (view->layout == WK_LAYOUT_RAW) {
        fill_raw(c, view);
        return WICK_OK;
    }
    const int64_t n = wk_view_rows(view), k = view->extent[view->rank - 1];
    wk_buffer rows = {0};
    (void)wk_layout_bytes(WK_LAYOUT_RAW, view->dtype, n, k, &rows.size);
    rows.data = wk_alloc(heap, (size_t)rows.size + 1);
    if (!rows.data) return WICK_ERR_OUT_OF_MEMORY;
    wk_view raw = *view;
    raw.buf = &rows;
    raw.offset = 0;
    raw.layout = WK_LAYOUT_RAW;
    fill_raw(c, &raw);
    wk_layout_store((wk_layout)view->layout, view->dtype, n, k, 0, n, rows.data,
                    wk_view_data(view));
    wk_free(heap, rows.data, (size_t)rows.size + 1);
    return WICK_OK;
}

/* --- The paged cache --- */

static void fill_cache_row(wk_case *c, const wk_view *cache, int64_t block, int64_t in_block) {
    for (int64_t g = 0; g < cache->extent[1]; g++) {
        const wk_row row = wk_row_of(cache, (const int64_t[3]){block, g, in_block});
        for (int64_t i = 0; i < row.n; i += WK_QK_SMALL) { /* whole blocks, where there are such */
            const int64_t n = row.n - i < WK_QK_SMALL ? row.n - i : WK_QK_SMALL;
            double values[WK_QK_SMALL];
            for (int64_t j = 0; j < n; j++) values[j] = 2 * wk_case_signed(c);
            wk_row_store(&row, i, n, values);
        }
    }
}

/* The keys that the sequences have; the other slots stay poison. */
static void fill_cache(wk_case *c, const wk_view *cache, const uint32_t *words) {
    const wk_batch_layout *const b = &c->op.p.cached.batch;
    for (uint32_t s = 0; s < b->n_sequences; s++) {
        const uint32_t *const table = words + b->tables + s * b->n_blocks;
        for (uint32_t key = 0; key < words[b->lengths + s]; key++) {
            const uint32_t block = table[key / b->block_size];
            if (block < cache->extent[0]) fill_cache_row(c, cache, block, key % b->block_size);
        }
    }
}

/* --- All operands --- */

/* One function for each kind of ops: true where it filled operand i. */
static bool fill_plain(wk_case *c, int i) {
    (void)c, (void)i;
    return false;
}

/* Of gather and scatter: places in the last dimension of the other operand that has one. */
static bool fill_index(wk_case *c, int i) {
    enum { INDEX = 2 };
    const wk_view *const of_n = &c->op.view[c->op.code == WK_OP_GATHER ? 1 : 0];
    if (i == INDEX) fill_ids(c, &c->op.view[i], of_n->extent[of_n->rank - 1]);
    return i == INDEX;
}

/* Distances of a shift, now and then too far. */
static bool fill_binary(wk_case *c, int i) {
    enum { B = 2 };
    const bool is_shift =
        c->op.p.binary == WK_BINARY_SHIFT_LEFT || c->op.p.binary == WK_BINARY_SHIFT_RIGHT;
    if (is_shift && i == B) fill_integers(c, &c->op.view[i], -2, 70);
    return is_shift && i == B;
}

static bool fill_where(wk_case *c, int i) {
    enum { CONDITION = 1 };
    if (i == CONDITION) fill_integers(c, &c->op.view[i], 0, 2);
    return i == CONDITION;
}

static bool fill_rope(wk_case *c, int i) {
    enum { POSITIONS = 2 };
    const wk_view *const view = &c->op.view[i];
    if (i == POSITIONS) fill_integers(c, view, 0, view->dtype == WICK_U8 ? 256 : 5000);
    return i == POSITIONS;
}

/* Falls, now and then not at all. */
static bool fill_draw(wk_case *c, int i) {
    enum { X = 1 };
    if (i != X) return false;
    const wk_row x = wk_row_at(&c->op.view[i], 0);
    double value = 4 * wk_case_signed(c);
    for (int64_t k = 0; k < x.n; k++) {
        wk_row_store(&x, k, 1, &value);
        if (!wk_case_chance(c, 10)) value -= fabs(wk_case_signed(c)) / 4;
    }
    return true;
}

static bool fill_attention(wk_case *c, int i) {
    enum { MASK = 4 };
    if (i == MASK) fill_integers(c, &c->op.view[i], 0, 2);
    return i == MASK;
}

static bool fill_cached(wk_case *c, int i) {
    enum { K_CACHE = 2, V_CACHE, BATCH };
    const bool is_cache = i == K_CACHE || i == V_CACHE;
    if (is_cache) fill_cache(c, &c->op.view[i], wk_view_data(&c->op.view[BATCH]));
    return is_cache;
}

/* Numbers fade, and a delta removes no more than there is. */
static bool fill_scan(wk_case *c, int i) {
    enum { STEP = 3, GATE, BC };
    const wk_view *const view = &c->op.view[i];
    const bool is_delta = c->op.p.scan.fn == WK_SCAN_DELTA;
    const double most = is_delta ? 1 / sqrt((double)view->extent[3]) : 2;
    switch (i) {
    case STEP: fill_range(c, view, is_delta ? -3 : 0, is_delta ? 0 : 2); return true;
    case GATE: fill_range(c, view, is_delta ? 0 : -3, is_delta ? 1 : 0); return true;
    case BC: fill_range(c, view, -most, most); return true;
    default: return false;
    }
}

/* Operand i, whose memory is poison. */
static wick_status fill_operand(wk_case *c, int i, wk_heap *heap) {
    static bool (*const fills[])(wk_case *c, int i) = {
#define WK_TRAITS(code, rows, cost, tolerance, cuts, gradient, cases, values, fill, ...)           \
    [WK_OP_##code] = fill_##fill,
#include "backend/op_traits.def"
#undef WK_TRAITS
    };
    const wk_view *const view = &c->op.view[i];
    const wk_operand_info *const info = wk_op_operand(&c->op, i);
    if (info->is_batch || fills[c->op.code](c, i)) return WICK_OK; /* the batch is filled first */
    if (info->is_weight || wk_dtype_is_block(view->dtype)) return fill_weight(c, view, heap);
    if (info->is_index)
        fill_ids(c, view, c->op.view[wk_op_table(c->op.code)].extent[0]);
    else if (wk_dtype_is_real(view->dtype))
        fill_floats(c, view);
    else
        fill_integers(c, view, -1000000, 2000000);
    return WICK_OK;
}

/* Bytes before the operand: a multiple of its elements. */
static uint64_t random_lead(wk_case *c, const wk_view *view, bool is_tight) {
    uint64_t element =
        wk_dtype_is_block(view->dtype) ? 4 : (uint64_t)wk_dtype_get(view->dtype)->block_bytes;
    if (view->layout != WK_LAYOUT_RAW) element = WEIGHT_ALIGNMENT;
    const uint64_t n = is_tight ? 0 : GUARD_BYTES / element;
    return (n + (uint64_t)wk_case_below(c, 20)) * element;
}

static void poison(const wk_case *c, int i, wk_case_memory *m) {
    const bool is_written = wk_op_operand(&c->op, i)->access & WK_WRITE;
    memset(m->live, 0xFF, m->size);
    for (uint64_t at = 0; is_written && at < m->size; at += 2) m->live[at] = 0xFE;
}

/* In one of four cases the operand ends where its allocation does, so that the address sanitizer
 * sees what the poison cannot: a read whose result is not used. */
static wick_status allocate(wk_case *c, int i, wk_heap *heap) {
    wk_view *const view = &c->op.view[i];
    wk_case_memory *const m = &c->memory[i];
    const bool is_tight = wk_case_chance(c, 25);
    uint64_t end;
    view->offset = 0;
    wk_view_range(view, &view->offset, &end);
    const uint64_t span = end;
    view->offset = random_lead(c, view, is_tight);
    m->size = (size_t)(view->offset + span) + (is_tight ? 0 : GUARD_BYTES);
    if (m->size == 0) m->size = 1;
    m->live = wk_alloc(heap, m->size);
    m->initial = wk_alloc(heap, N_COPIES * m->size);
    if (!m->live || !m->initial) return WICK_ERR_OUT_OF_MEMORY;
    m->expected = m->initial + m->size;
    m->first = m->expected + m->size;
    m->flushed = m->first + m->size;
    c->buffer[i] = (wk_buffer){.size = m->size, .data = m->live};
    poison(c, i, m);
    return WICK_OK;
}

wick_status wk_case_fill(wk_case *c, wk_heap *heap, wick_error *err) {
    const int n = c->op.n_dst + c->op.n_src;
    for (int i = 0; i < n; i++) {
        if (is_own(c, i)) {
            WK_TRY(allocate(c, i, heap));
        } else if (c->op.view[i].buf) {
            c->op.view[i].offset = c->op.view[0].offset; /* in place */
        }
    }
    int batch;
    const wk_batch_layout *const layout = wk_op_batch(&c->op, &batch);
    if (layout) wk_case_fill_batch(c, layout, wk_view_data(&c->op.view[batch]));
    for (int i = 0; i < n; i++) {
        const bool is_read = wk_op_operand(&c->op, i)->access & WK_READ;
        if (c->op.view[i].buf && is_read) WK_TRY(fill_operand(c, i, heap));
    }
    for (int i = 0; i < n; i++)
        if (is_own(c, i)) memcpy(c->memory[i].initial, c->memory[i].live, c->memory[i].size);
    return wk_op_check(&c->op, err);
}

void wk_case_release(wk_case *c, wk_heap *heap) {
    for (int i = 0; i < WK_MAX_OPERANDS; i++) {
        wk_case_memory *const m = &c->memory[i];
        wk_free(heap, m->live, m->size);
        wk_free(heap, m->initial, N_COPIES * m->size);
        *m = (wk_case_memory){0};
    }
}

void wk_case_reset(wk_case *c) {
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++)
        if (is_own(c, i)) memcpy(c->memory[i].live, c->memory[i].initial, c->memory[i].size);
}

static void flush_elements(const wk_view *view) {
    for (int64_t r = 0; wk_view_count(view) > 0 && r < wk_row_count(view); r++) {
        const wk_row row = wk_row_at(view, r);
        for (int64_t i = 0; i < row.n; i++) {
            double value;
            wk_row_load(&row, i, 1, &value);
            if (!(fabs(value) < 0x1p-126)) continue;
            value = copysign(0, value);
            wk_row_store(&row, i, 1, &value);
        }
    }
}

/* Panels of floats, seen as their elements, in any order. */
static wk_view unfold(const wk_view *weight) {
    if (weight->layout == WK_LAYOUT_RAW) return *weight;
    wk_view out = *weight;
    out.layout = WK_LAYOUT_RAW;
    out.rank = 1;
    out.extent[0] = wk_panel_bytes((wk_layout)weight->layout, weight->extent[weight->rank - 1]) /
                    (int64_t)wk_dtype_get(weight->dtype)->block_bytes *
                    ((wk_view_rows(weight) + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS);
    out.stride[0] = 1;
    return out;
}

void wk_case_flush(wk_case *c) {
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++) {
        const wk_view *const view = &c->op.view[i];
        const bool is_read = wk_op_operand(&c->op, i)->access & WK_READ;
        if (!view->buf || !is_read) continue;
        if (view->dtype != WICK_F32 && view->dtype != WICK_BF16) continue;
        const wk_view elements = unfold(view);
        flush_elements(&elements);
    }
}

/* --- Damage --- */

/* Puts back what the elements of a destination were: what differs then is damage. */
static void restore_elements(const wk_view *view, const wk_case_memory *m) {
    const wk_dtype_info *const info = wk_dtype_get(view->dtype);
    const size_t size = (size_t)info->block_bytes;
    for (int64_t r = 0; wk_view_count(view) > 0 && r < wk_row_count(view); r++) {
        const wk_row row = wk_row_at(view, r);
        for (int64_t i = 0; i < row.n / info->block_elements; i++) {
            unsigned char *const at = row.data + (size_t)(i * row.stride) * size;
            memcpy(at, m->initial + (at - m->live), size);
        }
    }
}

const char *wk_case_find_damage(const wk_case *c) {
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++) {
        if (!is_own(c, i)) continue;
        if (i < c->op.n_dst) restore_elements(&c->op.view[i], &c->memory[i]);
        if (memcmp(c->memory[i].live, c->memory[i].initial, c->memory[i].size) != 0)
            return wk_op_operand(&c->op, i)->name;
    }
    return NULL;
}
