/* backend/webgpu/shader.c: the text of a program: what its dtypes and constants come to, then its
 * source. */
#include "backend/webgpu/shader.h"

#include <string.h>

/* How elements of a dtype lie in 32-bit words. */
typedef struct element {
    const char *type;  /* WGSL's, of a value */
    uint32_t per_word; /* 0: two words each */
    const char *load;  /* from `w`, its word, `s`, the bit where it begins */
    const char *store; /* the bits of `v` */
} element;

static element element_of(wick_dtype dtype) {
    switch (dtype) {
    case WICK_F32: return (element){"f32", 1, "bitcast<f32>(w)", "bitcast<u32>(v)"};
    case WICK_I32: return (element){"i32", 1, "bitcast<i32>(w)", "bitcast<u32>(v)"};
    case WICK_U32: return (element){"u32", 1, "w", "v"};
    case WICK_F16: return (element){"f32", 2, "unpack2x16float(w >> s).x", "f16_bits(v)"};
    case WICK_BF16: return (element){"f32", 2, "bitcast<f32>((w >> s) << 16u)", "bf16_bits(v)"};
    case WICK_I16:
        return (element){"i32", 2, "extractBits(bitcast<i32>(w), s, 16u)",
                         "(bitcast<u32>(v) & 0xffffu)"};
    case WICK_I8:
        return (element){"i32", 4, "extractBits(bitcast<i32>(w), s, 8u)",
                         "(bitcast<u32>(v) & 0xffu)"};
    case WICK_U8:
    case WICK_BOOL: return (element){"u32", 4, "extractBits(w, s, 8u)", "(v & 0xffu)"};
    case WICK_I64: return (element){"i32", 0, "bitcast<i32>(w)", NULL};
    default: return (element){"u32", 1, "w", NULL};
    }
}

/* To the nearest, ties to even, as core/half.h: NaN stays one. WGSL leaves open how pack2x16float
 * rounds, and what it makes of numbers that are too large or too small. */
static const char to_16_bits[] =
    "fn bf16_bits(v: f32) -> u32 {\n"
    "    let b = bitcast<u32>(v);\n"
    "    if ((b & 0x7fffffffu) > 0x7f800000u) { return (b >> 16u) | 0x40u; }\n"
    "    return (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;\n"
    "}\n"
    "fn f16_bits(v: f32) -> u32 {\n"
    "    let b = bitcast<u32>(v);\n"
    "    let sign = (b >> 16u) & 0x8000u;\n"
    "    let m = b & 0x7fffffffu;\n"
    "    if (m > 0x7f800000u) { return sign | 0x7e00u; }\n"
    "    if (m >= 0x47800000u) { return sign | 0x7c00u; }\n"
    "    if (m >= 0x38800000u) {\n"
    "        return sign | ((m - 0x38000000u + 0xfffu + ((m >> 13u) & 1u)) >> 13u);\n"
    "    }\n"
    "    if (m <= 0x33000000u) { return sign; }\n"
    "    let shift = 126u - (m >> 23u);\n"
    "    let f = (m & 0x7fffffu) | 0x800000u;\n"
    "    return sign | ((f + (1u << (shift - 1u)) - 1u + ((f >> shift) & 1u)) >> shift);\n"
    "}\n";

static bool is_vector(const wk_program_operand *o) {
    return o->form == WK_FORM_VECTORS ||
           (o->form == WK_FORM_LANES && element_of((wick_dtype)o->dtype).per_word == 1);
}

static bool is_partial(const wk_program_operand *o) {
    return o->form == WK_FORM_ELEMENTS && element_of((wick_dtype)o->dtype).per_word > 1;
}

/* What a slot's binding is an array of. */
typedef enum slot_kind { SLOT_WORDS, SLOT_VECTORS, SLOT_ATOMICS } slot_kind;

static slot_kind kind_of_slot(const wk_program *p, uint32_t slot, bool *is_written) {
    bool all_vectors = true, has_partial_store = false;
    *is_written = false;
    for (int i = 0; i < WK_PROGRAM_OPERANDS; i++) {
        const wk_program_operand *const o = &p->operands[i];
        if (o->form == WK_FORM_ABSENT || o->slot != slot) continue;
        if (!is_vector(o)) all_vectors = false;
        if (o->is_written) *is_written = true;
        if (o->is_written && is_partial(o)) has_partial_store = true;
    }
    if (has_partial_store) return SLOT_ATOMICS;
    return all_vectors ? SLOT_VECTORS : SLOT_WORDS;
}

/* The word of a slot at an index, as text. */
static void put_word(wk_strbuf *out, slot_kind kind, unsigned slot, const char *index) {
    if (kind == SLOT_ATOMICS)
        wk_strbuf_format(out, "atomicLoad(&slot%u[%s])", slot, index);
    else if (kind == SLOT_VECTORS)
        wk_strbuf_format(out, "slot%u[(%s) >> 2u][(%s) & 3u]", slot, index, index);
    else
        wk_strbuf_format(out, "slot%u[%s]", slot, index);
}

static void put_element_load(wk_strbuf *out, const char *name, slot_kind kind, unsigned slot,
                             const element *e) {
    static const char *const words[] = {[0] = "i * 2u", [1] = "i", [2] = "i / 2u", [4] = "i / 4u"};
    wk_strbuf_format(out, "fn load_%s(i: u32) -> %s {\n    let w = ", name, e->type);
    put_word(out, kind, slot, words[e->per_word]);
    if (e->per_word > 1)
        wk_strbuf_format(out, ";\n    let s = (i %% %uu) * %uu", e->per_word, 32 / e->per_word);
    wk_strbuf_format(out, ";\n    return %s;\n}\n", e->load);
}

/* What LANES have, for sources that may be bound either way. */
static void put_lanes_of_one(wk_strbuf *out, const char *name, const char *type) {
    wk_strbuf_format(out, "fn store_lanes_%s(i: u32, v: vec4<%s>) { store_%s(i, v.x); }\n", name,
                     type, name);
}

/* Less than a word: its bits are cleared and set, so that whoever writes to the others meanwhile
 * is not disturbed. */
static void put_element_store(wk_strbuf *out, const char *name, slot_kind kind, unsigned slot,
                              const element *e) {
    wk_strbuf_format(out, "fn store_%s(i: u32, v: %s) {\n", name, e->type);
    if (e->per_word == 1) {
        wk_strbuf_format(out,
                         kind == SLOT_ATOMICS ? "    atomicStore(&slot%u[i], %s);\n}\n"
                                              : "    slot%u[i] = %s;\n}\n",
                         slot, e->store);
        put_lanes_of_one(out, name, e->type);
        return;
    }
    const unsigned bits = 32 / e->per_word, mask = (1U << bits) - 1;
    wk_strbuf_format(out,
                     "    let s = (i %% %uu) * %uu;\n"
                     "    atomicAnd(&slot%u[i / %uu], ~(%uu << s));\n"
                     "    atomicOr(&slot%u[i / %uu], %s << s);\n}\n",
                     e->per_word, bits, slot, e->per_word, mask, slot, e->per_word, e->store);
    put_lanes_of_one(out, name, e->type);
}

static void put_words(wk_strbuf *out, const char *name, slot_kind kind, unsigned slot,
                      bool is_written) {
    wk_strbuf_format(out, "fn load_%s(i: u32) -> u32 { return ", name);
    put_word(out, kind, slot, "i");
    wk_strbuf_text(out, "; }\n");
    if (!is_written) return;
    wk_strbuf_format(out,
                     kind == SLOT_ATOMICS
                         ? "fn store_%s(i: u32, v: u32) { atomicStore(&slot%u[i], v); }\n"
                         : "fn store_%s(i: u32, v: u32) { slot%u[i] = v; }\n",
                     name, slot);
    put_lanes_of_one(out, name, "u32");
}

static void put_vectors(wk_strbuf *out, const char *name, slot_kind kind, unsigned slot,
                        bool is_written) {
    wk_strbuf_format(out, "fn load_%s(i: u32) -> vec4<u32> {\n    return ", name);
    if (kind == SLOT_VECTORS) {
        wk_strbuf_format(out, "slot%u[i]", slot);
    } else {
        static const char *const index[] = {"4u * i", "4u * i + 1u", "4u * i + 2u", "4u * i + 3u"};
        for (int k = 0; k < 4; k++) {
            wk_strbuf_text(out, k == 0 ? "vec4<u32>(" : ", ");
            put_word(out, kind, slot, index[k]);
        }
        wk_strbuf_text(out, ")");
    }
    wk_strbuf_format(out, ";\n}\nfn word_of_%s(i: u32) -> u32 { return ", name);
    put_word(out, kind, slot, "i");
    wk_strbuf_text(out, "; }\n");
    if (!is_written) return;
    wk_strbuf_format(out, "fn store_%s(i: u32, v: vec4<u32>) {\n", name);
    for (unsigned k = 0; k < 4 && kind != SLOT_VECTORS; k++)
        wk_strbuf_format(out,
                         kind == SLOT_ATOMICS ? "    atomicStore(&slot%u[4u * i + %uu], v[%u]);\n"
                                              : "    slot%u[4u * i + %uu] = v[%u];\n",
                         slot, k, k);
    if (kind == SLOT_VECTORS) wk_strbuf_format(out, "    slot%u[i] = v;\n", slot);
    wk_strbuf_text(out, "}\n");
}

/* Word k of the n of lanes i, as text. */
static void put_lane_word(wk_strbuf *out, slot_kind kind, unsigned slot, unsigned n, unsigned k) {
    static const char *const formats[] = {
        [SLOT_WORDS] = "slot%u[i * %uu + %uu]",
        [SLOT_ATOMICS] = "atomicLoad(&slot%u[i * %uu + %uu])",
    };
    if (kind == SLOT_VECTORS)
        wk_strbuf_format(out, "slot%u[i][%u]", slot, k);
    else
        wk_strbuf_format(out, formats[kind], slot, n, k);
}

static void put_lanes_load(wk_strbuf *out, const char *name, slot_kind kind, unsigned slot,
                           const element *e) {
    const unsigned n = 4 / e->per_word, bits = 32 / e->per_word;
    wk_strbuf_format(out,
                     "fn element_of_%s(w: u32, s: u32) -> %s { return %s; }\n"
                     "fn load_%s(i: u32) -> vec4<%s> {\n",
                     name, e->type, e->load, name, e->type);
    for (unsigned k = 0; k < n; k++) {
        wk_strbuf_format(out, "    let w%u = ", k);
        put_lane_word(out, kind, slot, n, k);
        wk_strbuf_text(out, ";\n");
    }
    wk_strbuf_format(out, "    return vec4<%s>(", e->type);
    for (unsigned k = 0; k < 4; k++)
        wk_strbuf_format(out, "%selement_of_%s(w%u, %uu)", k ? ", " : "", name, k / e->per_word,
                         k % e->per_word * bits);
    wk_strbuf_text(out, ");\n}\n");
}

static void put_lanes_store(wk_strbuf *out, const char *name, slot_kind kind, unsigned slot,
                            const element *e) {
    const unsigned n = 4 / e->per_word, bits = 32 / e->per_word;
    wk_strbuf_format(out,
                     "fn bits_of_%s(v: %s) -> u32 { return %s; }\n"
                     "fn store_lanes_%s(i: u32, v: vec4<%s>) {\n",
                     name, e->type, e->store, name, e->type);
    for (unsigned k = 0; k < n; k++) {
        wk_strbuf_format(out, "    let w%u = ", k);
        for (unsigned j = 0; j < e->per_word; j++)
            wk_strbuf_format(out, "%s(bits_of_%s(v[%u]) << %uu)", j ? " | " : "", name,
                             k * e->per_word + j, j * bits);
        wk_strbuf_text(out, ";\n");
    }
    if (kind == SLOT_VECTORS)
        wk_strbuf_format(out, "    slot%u[i] = vec4<u32>(w0, w1, w2, w3);\n", slot);
    for (unsigned k = 0; k < n && kind != SLOT_VECTORS; k++)
        wk_strbuf_format(out,
                         kind == SLOT_ATOMICS ? "    atomicStore(&slot%u[i * %uu + %uu], w%u);\n"
                                              : "    slot%u[i * %uu + %uu] = w%u;\n",
                         slot, n, k, k);
    wk_strbuf_text(out, "}\n");
}

static void put_operand(wk_strbuf *out, const wk_program *p, int i) {
    const wk_program_operand *const o = &p->operands[i];
    const char *const name = p->source->operands[i];
    bool is_written;
    const slot_kind kind = kind_of_slot(p, o->slot, &is_written);
    const element e = element_of((wick_dtype)o->dtype);
    switch (o->form) {
    case WK_FORM_ELEMENTS:
        put_element_load(out, name, kind, o->slot, &e);
        if (o->is_written && e.store) put_element_store(out, name, kind, o->slot, &e);
        break;
    case WK_FORM_LANES:
        put_lanes_load(out, name, kind, o->slot, &e);
        if (o->is_written && e.store) put_lanes_store(out, name, kind, o->slot, &e);
        break;
    case WK_FORM_WORDS: put_words(out, name, kind, o->slot, o->is_written != 0); break;
    case WK_FORM_VECTORS: put_vectors(out, name, kind, o->slot, o->is_written != 0); break;
    default: break;
    }
}

/* alias V_NAME = the type of its values. */
static void put_aliases(wk_strbuf *out, const wk_program *p) {
    for (int i = 0; i < WK_PROGRAM_OPERANDS; i++) {
        const wk_program_operand *const o = &p->operands[i];
        if (o->form == WK_FORM_ABSENT || o->form == WK_FORM_VECTORS) continue;
        wk_strbuf_format(out, "alias V_%s = %s;\n", p->source->operands[i],
                         o->form == WK_FORM_WORDS ? "u32" : element_of((wick_dtype)o->dtype).type);
    }
}

void wk_webgpu_shader(const wk_gpu *gpu, const wk_program *p, wk_strbuf *out) {
    static const char *const types[] = {
        [SLOT_WORDS] = "u32", [SLOT_VECTORS] = "vec4<u32>", [SLOT_ATOMICS] = "atomic<u32>"};
    wk_strbuf_text(out, wk_gpu_enables(gpu, p->needs));
    for (int i = 0; p->source->constants[i]; i++)
        wk_strbuf_format(out, "const %s: i32 = %d;\n", p->source->constants[i], p->constants[i]);
    put_aliases(out, p);
    for (uint32_t s = 0; s < p->n_slots; s++) {
        bool is_written;
        const slot_kind kind = kind_of_slot(p, s, &is_written);
        wk_strbuf_format(out, "@group(0) @binding(%u) var<storage, %s> slot%u: array<%s>;\n", s,
                         is_written ? "read_write" : "read", s, types[kind]);
    }
    wk_strbuf_format(out, "@group(0) @binding(%u) var<uniform> params: Params;\n", p->n_slots);
    wk_strbuf_text(out, to_16_bits);
    for (int i = 0; i < WK_PROGRAM_OPERANDS && p->source->operands[i]; i++) put_operand(out, p, i);
    for (size_t i = 0; i < WK_COUNT(p->source->parts) && p->source->parts[i]; i++)
        wk_strbuf_text(out, p->source->parts[i]);
    if (p->source->write) p->source->write(p, out);
}
