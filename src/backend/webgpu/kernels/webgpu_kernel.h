/* backend/webgpu/kernels/webgpu_kernel.h: what kernels are made of: programs (WGSL text and what it
 * is specialised for) and their dispatches.
 *
 * The text of a program is: the lines that the features need; a const for each constant of its
 * source; for each operand a storage binding and functions to load and store its elements, by its
 * dtype; `params`, the source's struct Params; the source's parts, and what it writes. Operands in
 * one buffer share one binding, for WebGPU allows no buffer to be bound both writable and not. */
#ifndef WK_BACKEND_WEBGPU_KERNELS_WEBGPU_KERNEL_H
#define WK_BACKEND_WEBGPU_KERNELS_WEBGPU_KERNEL_H

#include "backend/backend.h"
#include "backend/op.h"
#include "backend/webgpu/gpu/gpu.h"
#include "backend/webgpu/kernels/wgsl.h"
#include "core/compiler.h"
#include "quant/block.h"

enum {
    WK_MAX_CONSTANTS = 26,
    WK_CORE_BINDINGS = 8,                  /* that every device has */
    WK_MAX_BINDINGS = WK_GPU_MAX_BINDINGS, /* a device may have fewer */
    WK_PROGRAM_OPERANDS = 12,              /* of which several may share a binding */
    WK_PARAM_WORDS = WK_GPU_PARAM_BYTES / 4,
    WK_INTEGER_WORDS = 20, /* of a block of 32 elements, wgsl/quantize.wgsl */
};

/* How a program sees an operand NAME, by fn load_NAME(i: u32) -> V and, where it is written,
 * fn store_NAME(i: u32, value: V). i counts what V holds from the begin of the binding on:
 * dispatch.first says where the view begins. */
typedef enum wk_form {
    WK_FORM_ABSENT, /* no functions: a program must not name it */
    /* An element: f32 for floats, i32 for i32 and i16, u32 for u32, u8 and bool; of i64 an i32, the
     * low word, which cannot be stored. A store of less than a word leaves the rest of the word as
     * it is, whoever else writes to that. */
    WK_FORM_ELEMENTS,
    /* Four elements, a vec4 of these, that begin at a multiple of four. A source that may be bound
     * either way calls store_lanes_NAME, which stores one of ELEMENTS. */
    WK_FORM_LANES,
    WK_FORM_WORDS, /* 32 bits, u32 */
    /* 16 bytes, vec4<u32>, at a multiple of 16; fn word_of_NAME(i: u32) -> u32: one of the words */
    WK_FORM_VECTORS,
} wk_form;

/* A WGSL source; entry point main. Programs hold its address: static. */
typedef struct wk_program wk_program;
typedef struct wk_source {
    const char *name;
    const char *parts[10];                         /* of the text, NULL after the last */
    const char *operands[WK_PROGRAM_OPERANDS + 1]; /* names, NULL at the end */
    const char *constants[WK_MAX_CONSTANTS + 1];   /* names of consts of type i32 */
    /* Writes what follows the parts, by the program's constants; NULL: nothing. */
    void (*write)(const wk_program *program, wk_strbuf *out);
} wk_source;

typedef struct wk_program_operand {
    uint8_t form, dtype, slot, is_written;
} wk_program_operand;

/* Hashed and compared as bytes: cleared by wk_dispatch_begin. */
struct wk_program {
    const wk_source *source;
    uint32_t needs; /* WICK_WEBGPU_* */
    uint32_t n_slots;
    wk_program_operand operands[WK_PROGRAM_OPERANDS];
    int32_t constants[WK_MAX_CONSTANTS];
};

/* A storage binding: bytes of a block of memory. */
typedef struct wk_block wk_block;
typedef struct wk_window {
    wk_block *block;
    uint64_t offset, size;
} wk_window;

typedef struct wk_dispatch {
    wk_program program;
    wk_window windows[WK_MAX_BINDINGS];  /* of the slots, by wk_dispatch_place */
    wk_view views[WK_PROGRAM_OPERANDS];  /* of the operands */
    uint32_t first[WK_PROGRAM_OPERANDS]; /* by wk_dispatch_place: index of a view's first element,
                                        word or vector in its binding */
    uint32_t n_params;
    uint32_t params[WK_PARAM_WORDS]; /* struct Params */
} wk_dispatch;

/* Where kernels put their dispatches. */
typedef struct wk_encoder wk_encoder;

void wk_dispatch_begin(wk_dispatch *d, const wk_source *source, uint32_t needs);
/* Operand i of the source; a view without a buffer is absent. */
void wk_dispatch_bind(wk_dispatch *d, int i, const wk_view *view, wk_form form, bool is_written);
/* After all operands are bound: finds their bindings. WICK_ERR_UNSUPPORTED where a view does not
 * fit one (the device's limits). */
wick_status wk_dispatch_place(wk_encoder *e, wk_dispatch *d);
/* Appends to the parameters. */
void wk_dispatch_u32(wk_dispatch *d, uint32_t value);
void wk_dispatch_f32(wk_dispatch *d, float value);
/* Gives it to the device; workgroups of each dimension, at most limits.workgroups. */
wick_status wk_dispatch_run(wk_encoder *e, const wk_dispatch *d, uint32_t x, uint32_t y,
                            uint32_t z);
/* The same for n workgroups in x and y: number y * num_workgroups.x + x, those from n on do
 * nothing. */
wick_status wk_dispatch_run_n(wk_encoder *e, const wk_dispatch *d, uint64_t n);

/* A dense buffer of f32 for what one dispatch hands on to the next; lives as long as it must. */
wick_status wk_encoder_temp(wk_encoder *e, int64_t count, wk_view *out);
/* The device's one buffer of constant tables: n words, which write fills when they are first asked
 * for. */
wick_status wk_encoder_tables(wk_encoder *e, int64_t n, void (*write)(uint32_t *words),
                              const wk_view **out);
/* Whether products of the op's last result follow that will ask for its integers. */
bool wk_encoder_makes_integers(const wk_encoder *e);
/* Rows of x that an earlier dispatch of the plan has made integers (wgsl/quantize.wgsl), and
 * nothing has changed since; NULL: none has. */
const wk_view *wk_encoder_integers(const wk_encoder *e, const wk_view *x);
/* That it has: a temporary of this op, which stays until the next one takes its place. */
void wk_encoder_keep_integers(wk_encoder *e, const wk_view *x, const wk_view *integers);
/* WICK_ERR_UNSUPPORTED with a sentence that begins with the op's name. */
wick_status wk_encoder_refuse(const wk_encoder *e, const char *why);
/* One u32: kernels that meet an index out of range store the opcode plus 1. */
const wk_view *wk_encoder_fault(wk_encoder *e);
/* It may be only a part of its table: rows (experts) [*first, *first + its extent[0]) of *n. Ids in
 * other rows of the table are left alone; those from *n on are out of range. */
void wk_encoder_rows(const wk_encoder *e, const wk_op *op, uint32_t *first, uint32_t *n);
const wick_adapter_limits *wk_encoder_limits(const wk_encoder *e);
/* The one that encodes. */
const wk_kernel *wk_encoder_kernel(const wk_encoder *e);
/* Which of the kernel's tunings is wanted, below n_tunings. */
uint32_t wk_encoder_tuning(const wk_encoder *e);
/* Whether the device has these features (WICK_WEBGPU_*). */
bool wk_encoder_has(const wk_encoder *e, uint32_t features);
/* Threads of every subgroup, at the least: a power of two. */
uint32_t wk_encoder_subgroup(const wk_encoder *e);

typedef struct wk_webgpu_kernel {
    wk_kernel base;           /* needs: WICK_WEBGPU_* */
    bool takes_rows;          /* minds wk_encoder_rows */
    uint8_t processor_tuning; /* that drivers in software take, unless another one is kept */
    /* Can leave its last result as integers, too; multiplies integers that it makes of its first
     * source. */
    bool makes_integers, takes_integers;
    /* Bytes of its largest temporary, which must fit a block; NULL: none outgrows its operands. */
    uint64_t (*temp_bytes)(const wk_op *op);
    wick_status (*encode)(wk_encoder *e, const wk_op *op);
} wk_webgpu_kernel;

#define WK_WEBGPU_KERNEL(symbol) extern const wk_webgpu_kernel symbol;
#include "backend/webgpu/kernels/kernels.def"
#undef WK_WEBGPU_KERNEL
/* Of the user's kernels: not of kernels.def, for there is nothing to compare it with. */
extern const wk_webgpu_kernel wk_webgpu_custom;

/* f32, f16 or bf16: float64 is not computed with. */
static inline bool wk_webgpu_is_float(wick_dtype dtype) {
    return dtype == WICK_F32 || dtype == WICK_F16 || dtype == WICK_BF16;
}

/* The 16-bit units of one block of a cache's block type: a scale and the quants of 32 elements. 0:
 * not such a type. */
static inline int64_t wk_webgpu_block_units(wick_dtype dtype) {
    return dtype == WICK_Q8_0 ? 17 : dtype == WICK_Q4_0 ? 9 : 0;
}
/* A cache of blocks as these units: the two in a word may be written at the same time. Other caches
 * as they are. */
static inline wk_view wk_webgpu_units(const wk_view *cache) {
    const int64_t units = wk_webgpu_block_units(cache->dtype);
    wk_view out = *cache;
    if (units == 0) return out;
    out.dtype = WICK_I16;
    for (int i = 0; i < 3; i++) out.stride[i] = cache->stride[i] / WK_QK_SMALL * units;
    out.extent[3] = cache->extent[3] / WK_QK_SMALL * units;
    return out;
}

#endif
