/* Fuzzes what stands before the kernels: op records that are nearly right. wk_op_check refuses them
 * with a sentence or the CPU device computes them, on every instruction set, within their operands
 * and with the results of cpu/ref.
 *
 * The first bytes of an input are the opcode, whether activations may be quantized, and the seed of
 * a legal op (verify/case.h); five bytes each change it: what, which operand, which dimension, and
 * the new value. Buffers have exactly the bytes that the views reach. */
#include "verify/case.h"

#include "backend/cpu/cpu.h"
#include "backend/row.h"
#include "core/dtype.h"
#include "quant/block.h"
#include "sys/cpu_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CHANGES = 6,
    MAX_BYTES = 1 << 18, /* of a buffer; views that reach further must be refused */
};

/* Elements times elements: slower cases are left out. */
static const double max_work = 1 << 15;
/* Part of the largest result that counts as another result. */
static const double gross = 0.02;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static uint8_t take(input *in) {
    if (in->size == 0) return 0;
    in->size--;
    return *in->data++;
}

/* Small, or one of those at which arithmetic ends. */
static int64_t take_value(input *in) {
    static const int64_t edges[] = {INT64_MAX,
                                    INT64_MIN,
                                    INT64_MAX / 2,
                                    INT64_MAX / 8,
                                    INT64_C(1) << 32,
                                    UINT32_MAX,
                                    INT32_MAX,
                                    INT32_MIN,
                                    -1,
                                    INT64_C(1) << 62,
                                    INT64_C(1) << 40,
                                    1 << 20,
                                    65536,
                                    1000,
                                    INT64_MAX / 1024,
                                    INT64_C(3) << 61};
    const uint8_t kind = take(in), low = take(in);
    return kind < 230 ? (kind & 1 ? low : low % 8) : edges[low % WK_COUNT(edges)];
}

/* --- The op --- */

static void change_params(wk_op *op, uint8_t at, int64_t value) {
    const size_t where = (size_t)at * 4 % sizeof op->p;
    const int32_t word = (int32_t)value;
    const float number = (float)value / 4;
    memcpy((unsigned char *)&op->p + where, at & 128 ? (const void *)&number : (const void *)&word,
           sizeof word);
}

/* A bool of other bits than 0 and 1 is none in C, however it is looked at. */
static void mend_bools(wk_op *op) {
    bool *flag = NULL;
    switch (op->code) {
    case WK_OP_SOFTMAX: flag = &op->p.softmax.is_log; break;
    case WK_OP_ROPE: flag = &op->p.rope.interleaved; break;
    case WK_OP_ROPE_TABLE: flag = &op->p.rope_table.interleaved; break;
    case WK_OP_LINEAR:
    case WK_OP_LINEAR_EXPERTS: flag = &op->p.linear.fast; break;
    case WK_OP_ATTENTION: flag = &op->p.attention.causal; break;
    case WK_OP_SCAN: flag = &op->p.scan.is_tiled; break;
    case WK_OP_ARGSORT: flag = &op->p.argsort.is_descending; break;
    default: return;
    }
    *(unsigned char *)flag &= 1;
}

/* Equal extents stay equal and blocks whole, so that most ops stay legal; strides stay. */
static void shorten(wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        for (int d = 0; d < op->view[i].rank; d++) {
            int64_t *const extent = &op->view[i].extent[d];
            if (*extent % WK_QK_K == 0 && *extent > 0)
                *extent = WK_QK_K;
            else if (*extent > 70)
                *extent %= *extent % 32 == 0 ? 96 : 67;
        }
    }
}

static void change(wk_case *c, input *in, int64_t *shrink) {
    const uint8_t kind = take(in);
    const int i = take(in) % (c->op.n_dst + c->op.n_src);
    const uint8_t at = take(in);
    const int64_t value = take_value(in);
    wk_view *const view = &c->op.view[i];
    switch (kind % 12) {
    case 0:
    case 1: view->extent[at % WICK_MAX_RANK] = value; break;
    case 2:
    case 3: view->stride[at % WICK_MAX_RANK] = value; break;
    case 4: view->dtype = (wick_dtype)value; break;
    case 5: view->rank = (int)value; break;
    case 6: view->layout = (uint8_t)value; break;
    case 7: view->offset = (uint64_t)value; break;
    case 8: view->buf = at % 4 ? c->op.view[at % (c->op.n_dst + c->op.n_src)].buf : NULL; break;
    case 9: *shrink = at % 64; break;
    case 10: *view = c->op.view[at % (c->op.n_dst + c->op.n_src)]; break;
    default: change_params(&c->op, at, value); break;
    }
}

/* --- Memory --- */

static void fill_view(const wk_view *view, uint32_t *state) {
    for (int64_t r = 0; r < wk_row_count(view); r++) {
        const wk_row row = wk_row_at(view, r);
        for (int64_t i = 0; i < row.n; i++) {
            *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
            const double real = (double)(int32_t)*state / INT32_MAX;
            const int64_t integer = *state >> 29;
            if (wk_dtype_is_float(view->dtype))
                wk_row_store(&row, i, 1, &real);
            else
                wk_row_store_integer(&row, i, 1, &integer);
        }
    }
}

/* Bytes up to 0x3B are small numbers in every format, scales of blocks included. */
static void allocate(wk_case *c, int64_t shrink) {
    for (int b = 0; b < WK_MAX_OPERANDS; b++) {
        uint64_t most = 0;
        for (int i = 0; i < c->op.n_dst + c->op.n_src; i++) {
            const wk_view *const view = &c->op.view[i];
            uint64_t begin, end;
            if (view->buf != &c->buffer[b] || !wk_view_is_well_formed(view, true)) continue;
            wk_view_range(view, &begin, &end);
            if (end > most) most = end;
        }
        if (most > MAX_BYTES) most = MAX_BYTES;
        if (most > 0 && most < MAX_BYTES) most -= (uint64_t)shrink % most;
        wk_case_memory *const m = &c->memory[b];
        m->size = most;
        m->live = malloc(most);
        m->initial = malloc(3 * most + 1);
        require(m->initial && (m->live || most == 0));
        m->expected = m->initial + most;
        m->first = m->expected + most;
        for (uint64_t i = 0; i < most; i++) m->live[i] = (unsigned char)((i * 37 ^ i >> 5) & 0x3B);
        c->buffer[b] = (wk_buffer){.size = most, .data = m->live};
    }
}

static void release(wk_case *c) {
    for (int b = 0; b < WK_MAX_OPERANDS; b++) {
        free(c->memory[b].live);
        free(c->memory[b].initial);
    }
}

/* Numbers instead of bytes where the views say what they are. */
static void fill(wk_case *c) {
    uint32_t state = 1;
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++) {
        const wk_view *const view = &c->op.view[i];
        const bool is_scalar = view->buf && !wk_dtype_is_block(view->dtype);
        if (is_scalar && view->layout == WK_LAYOUT_RAW && wk_view_count(view) > 0)
            fill_view(view, &state);
    }
    for (int b = 0; b < WK_MAX_OPERANDS; b++)
        if (c->memory[b].size > 0)
            memcpy(c->memory[b].initial, c->memory[b].live, c->memory[b].size);
}

static void restore(wk_case *c) {
    for (int b = 0; b < WK_MAX_OPERANDS; b++)
        if (c->memory[b].size > 0)
            memcpy(c->memory[b].live, c->memory[b].initial, c->memory[b].size);
}

/* --- Running --- */

static double work_of(const wk_op *op) {
    double work = 1;
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_view *const view = &op->view[i];
        const double count = view->buf ? (double)wk_view_count(view) : 0;
        work = fmax(work, count);
    }
    if (op->code == WK_OP_CAUSAL_CONV) return work * (double)wk_src(op, 1)->extent[1];
    if (op->code == WK_OP_SCAN) return work * (double)wk_src(op, 3)->extent[3];
    const wk_view *const x = op->n_src > 0 ? wk_src(op, 0) : wk_dst(op, 0);
    const bool is_sum = op->code == WK_OP_MATMUL || wk_op_is_linear(op) ||
                        op->code == WK_OP_ATTENTION || op->code == WK_OP_ATTENTION_CACHED;
    return is_sum ? work * (double)(x->extent[x->rank - 1] + wk_src(op, 1)->extent[0]) : work;
}

static wk_backend_device *device_of(int index) {
    static const wick_isa isas[] = {WICK_ISA_REF, WICK_ISA_AUTO, WICK_ISA_AVX2};
    static wk_backend_device *devices[WK_COUNT(isas)];
    static wk_heap heap;
    if (index >= (int)WK_COUNT(isas)) return NULL;
    if (!devices[0]) wk_heap_init(&heap, NULL);
    if (!devices[index]) {
        const wick_device_desc desc = {.isa = isas[index], .n_threads = 1};
        const wk_open_desc open = {.heap = &heap, .device = &desc};
        if (wk_backend_cpu.open_start(&open, &devices[index], NULL) != WICK_OK) return NULL;
    }
    return devices[index];
}

/* False: no kernel, no memory for its scratch, or an index was out of range. */
static bool compute(wk_backend_device *dev, wk_case *c, const wk_kernel **kernel) {
    const wk_backend *const cpu = &wk_backend_cpu;
    wick_error err = {.status = WICK_OK};
    wk_ticket ticket;
    *kernel = cpu->find_kernel(dev, &c->op);
    if (!*kernel || cpu->encode(dev, *kernel, &c->op, &err) != WICK_OK) return false;
    require(cpu->submit(dev, &ticket, &err) == WICK_OK);
    wick_status status;
    while ((status = cpu->poll(dev, ticket, &err)) == WICK_PENDING) continue;
    require(status == WICK_OK);
    uint32_t slot;
    return !cpu->take_fault(dev, &slot);
}

static void save(wk_case *c, bool is_reference) {
    for (int i = 0; i < c->op.n_dst; i++) {
        const wk_case_memory *const m = &c->memory[c->op.view[i].buf - c->buffer];
        if (m->size > 0) memcpy(is_reference ? m->expected : m->first, m->live, m->size);
    }
}

/* What is not finite here or there is beyond what the bounds speak of, and rows that nearly cancel
 * are beyond all bounds: kernel_check is exact, here results need only be no others. */
static void compare(wk_case *c, const wk_kernel *kernel) {
    static wk_heap heap;
    wk_heap_init(&heap, NULL);
    restore(c);
    for (int d = 0; d < c->op.n_dst; d++) {
        const wk_case_memory *const m = &c->memory[c->op.view[d].buf - c->buffer];
        wk_buffer wanted = {.size = m->size, .data = m->expected};
        wk_buffer given = {.size = m->size, .data = m->first};
        wk_view want = c->op.view[d], got = want;
        want.buf = &wanted;
        got.buf = &given;
        wk_bounds bounds;
        require(wk_bounds_make(c, kernel, &want, &heap, &bounds) == WICK_OK);
        for (int64_t r = 0; bounds.count > 0 && r < wk_row_count(&want); r++) {
            const wk_row of_want = wk_row_at(&want, r), of_got = wk_row_at(&got, r);
            for (int64_t i = 0; i < of_want.n; i++) {
                double a, b;
                wk_row_load(&of_want, i, 1, &a);
                wk_row_load(&of_got, i, 1, &b);
                if (!isfinite(a) || !isfinite(b)) continue;
                const double bound = wk_bounds_at(&bounds, r * of_want.n + i, a);
                require(fabs(a - b) <= 16 * bound + gross * bounds.largest);
            }
        }
        wk_bounds_release(&bounds, &heap);
    }
}

/* Parameters or shared memory that make numbers of which the bounds do not speak. */
static bool is_comparable(const wk_op *op, bool has_odd_params) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        for (int j = 0; j < i; j++)
            if (op->view[i].buf && op->view[i].buf == op->view[j].buf &&
                op->view[i].dtype != op->view[j].dtype)
                return false;
    return !has_odd_params;
}

static void run_everywhere(wk_case *c, bool has_odd_params) {
    const wk_kernel *reference = NULL, *kernel = NULL;
    if (!compute(device_of(0), c, &reference)) return;
    save(c, true);
    for (int d = 0; d < c->op.n_dst; d++) require(c->op.view[d].buf != NULL);
    for (int i = 1; device_of(i); i++) {
        restore(c);
        require(compute(device_of(i), c, &kernel));
        save(c, false);
        if (is_comparable(&c->op, has_odd_params)) compare(c, kernel);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    static wk_case c;
    const wk_opcode code = (wk_opcode)(take(&in) % WK_OP_COUNT_);
    const uint8_t flags = take(&in);
    const uint64_t seed = (uint64_t)take(&in) << 8 | take(&in);
    wk_case_describe(&c, seed, code, flags & 1);
    if (!(flags & 2)) shorten(&c.op);
    const wk_params params = c.op.p;
    int64_t shrink = 0;
    for (int i = 0; i < MAX_CHANGES && in.size > 0; i++) change(&c, &in, &shrink);
    mend_bools(&c.op);
    const bool has_odd_params = memcmp(&params, &c.op.p, sizeof params) != 0;

    allocate(&c, shrink);
    wick_error err = {.status = WICK_OK};
    const wick_status status = wk_op_check(&c.op, &err);
    require(status == err.status && (status == WICK_OK || err.message[0] != '\0'));
    if (status == WICK_OK && work_of(&c.op) <= max_work) {
        fill(&c);
        run_everywhere(&c, has_odd_params);
    }
    release(&c);
    return 0;
}
