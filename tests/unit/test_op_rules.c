/* The rules of op.def (wk_op_check_rule): every extent one more and one less, every rank, every
 * dtype, and the bounds that are not equalities at n - 1, n and n + 1. */
#include "backend/backend.h"
#include "core/dtype.h"
#include "op_functions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { N_ROWS = 11, BLOCK_SIZE = 16, N_WORDS = 97 };
#define BATCH {.n_rows = N_ROWS, .block_size = BLOCK_SIZE, .n_words = N_WORDS}

/* A legal op. views: the operands in the order of op.def, a letter for each extent, equal letters
 * are equal extents; a digit is that extent. dtypes: a letter for each operand, see in_set. */
typedef struct rule {
    wk_opcode code;
    const char *views, *dtypes;
    const char *free;  /* letters that may change in one operand alone */
    const char *bound; /* letters that may not even change in all operands at once */
    bool has_any_rank;
    wk_params p;
} rule;

static const rule rules[] = {
    {WK_OP_UNARY, "bm bm", "ff", "", "", false, {.unary = {.fn = WK_UNARY_SILU}}},
    {WK_OP_UNARY, "bm bm", "nn", "", "", false, {.unary = {.fn = WK_UNARY_NEG}}},
    {WK_OP_BINARY, "bm bm bm", "nnn", "", "", false, {.binary = WK_BINARY_ADD}},
    {WK_OP_BINARY, "bm bm bm", "fff", "", "", false, {.binary = WK_BINARY_POW}},
    {WK_OP_BINARY, "bm bm bm", "fff", "", "", false, {.binary = WK_BINARY_NEXTAFTER}},
    {WK_OP_COMPARE, "bm bm bm", "Bss", "", "", false, {.compare = WK_COMPARE_EQ}},
    {WK_OP_WHERE, "bm bm bm bm", "sCss", "", "", false, {{0}}},
    {WK_OP_GATED, "bm bm bm", "fff", "", "", false, {.gated = {.fn = WK_GATED_SWIGLU}}},
    {WK_OP_REDUCE, "bm bmnk", "nn", "nk", "", true, {.reduce = {.fn = WK_REDUCE_SUM}}},
    {WK_OP_REDUCE, "bm bmnk", "ff", "nk", "", true, {.reduce = {.fn = WK_REDUCE_VAR}}},
    {WK_OP_REDUCE, "bm bmn", "US", "n", "", false, {.reduce = {.fn = WK_REDUCE_ARGMIN}}},
    {WK_OP_COPY, "bm bm", "DA", "", "", false, {{0}}},
    {WK_OP_ARANGE, "n", ".", "n", "", false, {{0}}},
    {WK_OP_SOFTMAX, "bm bm", "ff", "", "", false, {{0}}},
    {WK_OP_RMS_NORM, "bm bm m", "ffP", "", "", false, {{0}}},
    {WK_OP_LAYER_NORM, "bm bm m m", "ffPP", "", "", false, {{0}}},
    {WK_OP_ROPE, "bthd bthd bt", "ggI", "", "", false, {.rope = {.rotary_dim = 6}}},
    {WK_OP_ROPE_TABLE, "bthd bthd btz btz", "ggFF", "", "", false, {{0}}},
    {WK_OP_MATMUL, "mn mk kn", "fff", "", "", false, {{0}}},
    {WK_OP_MATMUL, "btmn btmk btkn", "fff", "", "", false, {{0}}},
    {WK_OP_LINEAR, "mn mk nk n", "ffW.", "", "", false, {{0}}},
    {WK_OP_LINEAR_EXPERTS, "mun muk enk en mu", "ffW.U", "", "", false, {{0}}},
    {WK_OP_EMBEDDING, "mk nk m", ".AI", "n", "", false, {{0}}},
    {WK_OP_ATTENTION, "bhte bhtd bgsd bgse bhts bhts h h", "ffffM...", "", "hg", false, {{0}}},
    {WK_OP_ATTENTION_CACHED,
     "rhe rhd BgSd BgSe w h h",
     "PPkkU..",
     "",
     "rhgSw",
     false,
     {.cached = {.batch = BATCH}}},
    {WK_OP_KV_APPEND,
     "BgSd BgSe rgd rge w",
     "kkPPU",
     "",
     "rSw",
     false,
     {.cached = {.batch = BATCH}}},
    {WK_OP_CAUSAL_CONV,
     "rc sjc rc ck c w",
     "PPPPPU",
     "s",
     "rjkw",
     false,
     {.conv = {.batch = BATCH}}},
    {WK_OP_SCAN,
     "rhp shnp rhp rhp hpn r2gn w",
     "PPPPPPU",
     "s",
     "rhgw",
     false,
     {.scan = {.fn = WK_SCAN_SELECTIVE, .batch = BATCH}}},
    {WK_OP_SCAN,
     "rhp shnp rhp rhp rhp r2gn w",
     "PPPPPPU",
     "s",
     "rhgw",
     false,
     {.scan = {.fn = WK_SCAN_DELTA, .batch = BATCH}}},
    {WK_OP_RANDOM, "bm 4", "FU", "bm", "", true, {.random = {.b = 1}}},
    {WK_OP_RANDOM, "bm 4", "UU", "bm", "", true, {.random = {.fn = WK_RANDOM_BITS}}},
    {WK_OP_GATHER, "bmk bmn bmk", "ssI", "n", "", false, {{0}}},
    {WK_OP_SCATTER, "bmn bmk bmk", "ssI", "n", "", false, {.scatter = WK_SCATTER_SET}},
    {WK_OP_SCATTER, "bmn bmk bmk", "nnI", "n", "", false, {.scatter = WK_SCATTER_ADD}},
    {WK_OP_CUMULATE, "bm bm", "nn", "", "", false, {{0}}},
    {WK_OP_ARGSORT, "bm bm", "US", "", "", false, {{0}}},
    {WK_OP_TOP_K, "bmk bmk bmn", "fUf", "n", "", false, {{0}}},
    {WK_OP_DRAW, "1 m m", "UPU", "", "1", false, {.draw = {.k = 2}}},
    {WK_OP_POOL,
     "nkgtz nkdmz",
     "nn",
     "",
     "gtdm",
     false,
     {.pool = {.windows = {.kernel = {4, 4, 3},
                           .stride = {1, 1, 1},
                           .dilation = {1, 1, 1},
                           .before = {0, 2, 1},
                           .after = {0, 0, 1}}}}},
    {WK_OP_CONVOLUTION,
     "nsgtz nudmz sj443 s",
     "ffff",
     "",
     "sujgtdm",
     false,
     {.windows = {.kernel = {4, 4, 3},
                  .stride = {1, 1, 1},
                  .dilation = {1, 1, 1},
                  .before = {0, 2, 1},
                  .after = {0, 0, 1}}}},
    {WK_OP_CHAIN,
     "bm bm bm",
     "PPP",
     "",
     "",
     false,
     {.chain = {.n_steps = 1, .step = {{.code = WK_OP_BINARY, .in = {0, 1}}}}}},
};

static int64_t extent_of(char letter) {
    static const struct {
        char letter;
        int64_t extent;
    } extents[] = {{'b', 3},  {'t', 4},      {'h', 15},         {'d', 8},      {'m', 5},
                   {'n', 7},  {'k', 4},      {'u', 6},          {'e', 9},      {'g', 5},
                   {'s', 10}, {'p', 6},      {'c', 12},         {'z', 3},      {'B', 13},
                   {'j', 3},  {'r', N_ROWS}, {'S', BLOCK_SIZE}, {'w', N_WORDS}};
    if (letter >= '0' && letter <= '9') return letter - '0';
    for (size_t i = 0; i < WK_COUNT(extents); i++)
        if (extents[i].letter == letter) return extents[i].extent;
    fail_msg("no extent %c", letter);
    return 0;
}

/* Small letters: all operands with this letter have one dtype. */
static bool is_group(char set) { return set >= 'a' && set <= 'z'; }

static bool in_set(char set, wick_dtype dtype) {
    const wk_dtype_class kind = wk_dtype_get(dtype)->dtype_class;
    switch (set) {
    case 'f':
    case 'F': return kind == WK_CLASS_FLOAT;
    case 'n': return kind == WK_CLASS_FLOAT || kind == WK_CLASS_INTEGER;
    case 's':
    case 'S': return kind < WK_CLASS_BLOCK;
    case 'D': return kind != WK_CLASS_BLOCK;
    case 'k':
        return dtype == WICK_F32 || dtype == WICK_F16 || dtype == WICK_Q8_0 || dtype == WICK_Q4_0;
    case 'W': return kind == WK_CLASS_FLOAT || kind == WK_CLASS_BLOCK;
    case 'I': return dtype == WICK_U32 || dtype == WICK_I64 || dtype == WICK_U8;
    case 'C': return dtype == WICK_U8 || dtype == WICK_BOOL || dtype == WICK_I64;
    case 'M': return dtype == WICK_U8 || dtype == WICK_BOOL;
    case 'U': return dtype == WICK_U32;
    case 'B': return dtype == WICK_U8;
    case 'P': return dtype == WICK_F32;
    default: return true; /* 'A'; 'g' and '.', of which the rule says nothing */
    }
}

static wick_dtype first_of(char set) {
    for (int dtype = 0; dtype < WICK_DTYPE_COUNT_; dtype++)
        if (in_set(set, (wick_dtype)dtype)) return (wick_dtype)dtype;
    return WICK_F32;
}

static void make_dense(wk_view *view) {
    int64_t stride = 1;
    for (int d = view->rank - 1; d >= 0; d--) {
        view->stride[d] = stride;
        stride *= view->extent[d];
    }
}

static wk_op make(const rule *of) {
    static wk_buffer any;
    const wk_op_info *const info = wk_op_get_info(of->code);
    wk_op op = {.code = of->code, .n_dst = info->n_dst, .n_src = info->n_src, .p = of->p};
    int n = 0;
    for (const char *at = of->views; *at != '\0'; at++, n++) {
        wk_view *const view = &op.view[n];
        *view = (wk_view){.buf = &any, .dtype = first_of(of->dtypes[n])};
        for (; *at != ' ' && *at != '\0'; at++) view->extent[view->rank++] = extent_of(*at);
        make_dense(view);
        if (*at == '\0') at--;
    }
    if (of->code == WK_OP_CHAIN) { /* as many as there are */
        op.n_dst = 1;
        op.n_src = (uint8_t)(n - 1);
    }
    assert_int_equal(n, op.n_dst + op.n_src);
    return op;
}

static void expect(bool is_legal, const wk_op *op, const char *what, int operand, int change) {
    wick_error err = {.status = WICK_OK};
    char text[320];
    if ((wk_op_check_rule(op, &err) == WICK_OK) != is_legal)
        fail_msg("%s: %s of operand %d by %d was %s", wk_op_text(op, text, sizeof text), what,
                 operand, change, is_legal ? err.message : "accepted");
}

/* The letters of one operand. */
static const char *letters_of(const rule *of, int operand) {
    const char *at = of->views;
    for (; operand > 0; operand--) at = strchr(at, ' ') + 1;
    return at;
}

static bool has(const char *letters, char letter) { return strchr(letters, letter) != NULL; }

static void test_one_extent(void **state) {
    (void)state;
    for (size_t r = 0; r < WK_COUNT(rules); r++) {
        const wk_op legal = make(&rules[r]);
        expect(true, &legal, "nothing", 0, 0);
        for (int i = 0; i < legal.n_dst + legal.n_src; i++) {
            for (int d = 0; d < legal.view[i].rank; d++) {
                for (int change = -1; change <= 1; change += 2) {
                    wk_op op = legal;
                    op.view[i].extent[d] += change;
                    make_dense(&op.view[i]);
                    expect(has(rules[r].free, letters_of(&rules[r], i)[d]), &op, "extent", i,
                           change);
                }
            }
        }
    }
}

static void change_everywhere(const rule *of, wk_op *op, char letter, int change) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        for (int d = 0; d < op->view[i].rank; d++)
            if (letters_of(of, i)[d] == letter) op->view[i].extent[d] += change;
        make_dense(&op->view[i]);
    }
}

static void test_extents_together(void **state) {
    (void)state;
    for (size_t r = 0; r < WK_COUNT(rules); r++) {
        for (const char *at = rules[r].views; *at != '\0'; at++) {
            if (*at == ' ' || (*at >= '0' && *at <= '9')) continue;
            for (int change = -1; change <= 1; change += 2) {
                wk_op op = make(&rules[r]);
                change_everywhere(&rules[r], &op, *at, change);
                expect(!has(rules[r].bound, *at), &op, "all extents like one", *at, change);
            }
        }
    }
}

static void test_ranks(void **state) {
    (void)state;
    for (size_t r = 0; r < WK_COUNT(rules); r++) {
        const wk_op legal = make(&rules[r]);
        const bool is_shapeless = rules[r].has_any_rank;
        for (int i = is_shapeless ? 1 : 0; i < legal.n_dst + legal.n_src; i++) {
            if (is_shapeless && rules[r].code == WK_OP_REDUCE) continue; /* below */
            for (int change = -1; change <= 1; change += 2) {
                wk_op op = legal;
                op.view[i].rank += change;
                if (change > 0) op.view[i].extent[op.view[i].rank - 1] = 1;
                make_dense(&op.view[i]);
                expect(false, &op, "rank", i, change);
            }
        }
    }
}

static void test_dtypes(void **state) {
    (void)state;
    for (size_t r = 0; r < WK_COUNT(rules); r++) {
        const char *const sets = rules[r].dtypes;
        const wk_op legal = make(&rules[r]);
        for (int i = 0; i < legal.n_dst + legal.n_src; i++) {
            if (sets[i] == '.') continue;
            for (int dtype = 0; dtype < WICK_DTYPE_COUNT_; dtype++) {
                wk_op op = legal;
                op.view[i].dtype = (wick_dtype)dtype;
                const bool is_same = op.view[i].dtype == legal.view[i].dtype;
                expect(is_group(sets[i]) ? is_same : in_set(sets[i], (wick_dtype)dtype), &op,
                       "dtype", i, dtype);
                if (!is_group(sets[i]) || sets[i] == 'g') continue;
                for (int k = 0; k < op.n_dst + op.n_src; k++)
                    if (sets[k] == sets[i]) op.view[k].dtype = (wick_dtype)dtype;
                expect(in_set(sets[i], (wick_dtype)dtype), &op, "dtypes", i, dtype);
            }
        }
    }
}

static void test_optional_operands(void **state) {
    (void)state;
    for (size_t r = 0; r < WK_COUNT(rules); r++) {
        const wk_op legal = make(&rules[r]);
        for (int i = 0; i < legal.n_dst + legal.n_src; i++) {
            if (!wk_op_operand(&legal, i)->is_optional) continue;
            wk_op op = legal;
            op.view[i] = (wk_view){.buf = NULL};
            expect(true, &op, "presence", i, 0);
        }
    }
}

/* --- What is not an equality --- */

static const rule *rule_of(wk_opcode code) {
    for (size_t r = 0; r < WK_COUNT(rules); r++)
        if (rules[r].code == code) return &rules[r];
    fail_msg("no rule");
    return NULL;
}

/* The op with all extents of a letter set. */
static wk_op with(wk_opcode code, char letter, int64_t extent) {
    const rule *const of = rule_of(code);
    wk_op op = make(of);
    change_everywhere(of, &op, letter, (int)(extent - extent_of(letter)));
    return op;
}

static void test_functions(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(op_functions); i++) {
        for (int change = -1; change <= 1; change++) {
            /* The last one has other shapes, or dtypes. */
            const wk_opcode code = op_functions[i].code;
            if ((code == WK_OP_SCAN || code == WK_OP_RANDOM) && change < 0) continue;
            wk_op op = make(rule_of(op_functions[i].code));
            const unsigned fn = op_functions[i].count + (unsigned)change;
            memcpy((char *)&op.p + op_functions[i].at, &fn, sizeof fn);
            /* The last of these take integers only. */
            const bool is_of_bits = op.code == WK_OP_UNARY || op.code == WK_OP_BINARY;
            for (int v = 0; is_of_bits && v < op.n_dst + op.n_src; v++) op.view[v].dtype = WICK_I32;
            expect(change < 0, &op, "function", (int)op_functions[i].code, change);
        }
    }
}

static void test_rotated_dimensions(void **state) {
    (void)state;
    for (int n = -2; n <= 10; n++) { /* of 8 */
        wk_op op = make(rule_of(WK_OP_ROPE));
        op.p.rope.rotary_dim = n;
        expect(n >= 0 && n <= 8 && n % 2 == 0, &op, "rotary_dim", 0, n);
        if (n < 0) continue;
        op = with(WK_OP_ROPE_TABLE, 'z', n);
        expect(2 * n <= 8, &op, "table", 2, n);
    }
}

static void test_reduced_ranks(void **state) {
    (void)state;
    wk_op op = make(rule_of(WK_OP_REDUCE)); /* y [b, m], x [b, m, n, k] */
    for (int rank = 0; rank <= 4; rank++) {
        for (int d = 0; d < 4; d++) op.view[0].extent[d] = op.view[1].extent[d];
        op.view[0].rank = rank;
        op.view[0].dtype = WICK_F32;
        op.p.reduce.fn = WK_REDUCE_SUM;
        expect(true, &op, "rank", 0, rank);
        op.view[0].dtype = WICK_U32;
        op.p.reduce.fn = WK_REDUCE_ARGMAX;
        expect(rank == 3, &op, "rank", 0, rank);
    }
    op.view[0].dtype = WICK_F32;
    op.p.reduce.fn = WK_REDUCE_SUM;
    op.view[0].rank = 5;
    op.view[0].extent[4] = 1;
    expect(false, &op, "rank", 0, 5);
}

static void test_reduced_emptiness(void **state) {
    (void)state;
    for (int fn = 0; fn < WK_REDUCE_COUNT_; fn++) {
        const bool takes_none = fn == WK_REDUCE_SUM || fn == WK_REDUCE_MEAN ||
                                fn == WK_REDUCE_VAR || fn == WK_REDUCE_PROD;
        const bool is_index = fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN;
        for (int empty = 0; empty < 3; empty++) {
            wk_op op = make(rule_of(WK_OP_REDUCE)); /* y [b, m], x [b, m, n] */
            op.view[1].rank = 3;
            op.view[1].extent[empty] = 0;
            if (empty < 2) op.view[0].extent[empty] = 0;
            if (is_index) op.view[0].dtype = WICK_U32;
            op.p.reduce.fn = (wk_reduce_fn)fn;
            expect(takes_none || empty < 2, &op, "emptiness", 1, empty);
        }
    }
}

static void test_counts_of_elements(void **state) {
    (void)state;
    wk_op op;
    for (int k = 0; k <= 8; k++) {
        op = with(WK_OP_TOP_K, 'k', k); /* of 7 */
        expect(k <= 7, &op, "k", 0, k);
    }
    for (int change = 0; change <= 1; change++) {
        op = make(rule_of(WK_OP_DRAW));
        op.p.draw.k = change == 0 ? 1 : 0;
        expect(change == 0, &op, "k", 1, change);
        op.p.draw.k = (uint32_t)op.view[1].extent[0] + (uint32_t)change;
        expect(change == 0, &op, "k", 1, change);
        op = make(rule_of(WK_OP_TOP_K));
        op.view[2].extent[2] = UINT32_MAX + (int64_t)change;
        expect(change == 0, &op, "n", 2, change);
        op = make(rule_of(WK_OP_LINEAR_EXPERTS));
        op.view[2].extent[0] = op.view[3].extent[0] = INT32_MAX + (int64_t)change;
        expect(change == 0, &op, "experts", 2, change);
        op = with(WK_OP_LINEAR_EXPERTS, 'u', 1);
        op.view[0].extent[0] = op.view[1].extent[0] = op.view[4].extent[0] =
            INT32_MAX + (int64_t)change;
        expect(change == 0, &op, "rows", 0, change);
    }
    wk_op norm = make(rule_of(WK_OP_RMS_NORM));
    norm.view[0].rank = norm.view[1].rank = 0;
    norm.view[2] = (wk_view){.buf = NULL};
    expect(false, &norm, "rank", 1, 0);
}

static void test_norm_dtypes(void **state) {
    (void)state;
    wk_op op = make(rule_of(WK_OP_LAYER_NORM));
    op.view[0].dtype = op.view[1].dtype = WICK_F16;
    for (int dtype = 0; dtype < WICK_DTYPE_COUNT_; dtype++) {
        op.view[3].dtype = (wick_dtype)dtype;
        expect(dtype == WICK_F32 || dtype == WICK_F16, &op, "dtype", 3, dtype);
    }
}

static void test_weights_that_lie_apart(void **state) {
    (void)state;
    static const struct {
        wk_opcode code;
        int weight;
    } products[] = {{WK_OP_LINEAR, 2}, {WK_OP_LINEAR_EXPERTS, 2}, {WK_OP_EMBEDDING, 1}};
    for (size_t i = 0; i < WK_COUNT(products); i++) {
        wk_op op = make(rule_of(products[i].code));
        wk_view *const w = &op.view[products[i].weight];
        w->stride[0] *= 2;
        expect(true, &op, "stride", products[i].weight, 2);
        w->dtype = WICK_Q8_0;
        expect(false, &op, "stride", products[i].weight, 2);
        w->layout = WK_LAYOUT_RAW + 1;
        expect(true, &op, "layout", products[i].weight, 1);
    }
}

static void test_heads(void **state) {
    (void)state;
    static const wk_opcode codes[] = {WK_OP_ATTENTION, WK_OP_ATTENTION_CACHED, WK_OP_SCAN};
    for (size_t i = 0; i < WK_COUNT(codes); i++) {
        const rule *const of = rule_of(codes[i]);
        for (int g = 0; g <= 16; g++) {
            wk_op op = with(codes[i], 'g', g);
            expect(g > 0 && 15 % g == 0, &op, "groups", 0, g);
            change_everywhere(of, &op, 'h', -15); /* no heads */
            expect(g > 0 || codes[i] == WK_OP_ATTENTION, &op, "groups of no heads", 0, g);
        }
    }
}

static void test_conv_width(void **state) {
    (void)state;
    for (int k = 1; k <= 3; k++) {
        wk_op op = with(WK_OP_CAUSAL_CONV, 'k', k);
        change_everywhere(rule_of(WK_OP_CAUSAL_CONV), &op, 'j', k - 1 - 3);
        expect(k >= 2, &op, "width", 3, k);
    }
}

/* As many elements as an operand may have, with its padding and a stride, and one row more. */
static void test_padded_extents(void **state) {
    (void)state;
    static const wk_opcode codes[] = {WK_OP_POOL, WK_OP_CONVOLUTION};
    for (size_t i = 0; i < WK_COUNT(codes); i++)
        for (int more = 0; more <= 1; more++) {
            wk_op op = make(rule_of(codes[i])); /* x [n, c, d, h, w] */
            wk_window_shape *const w = codes[i] == WK_OP_POOL ? &op.p.pool.windows : &op.p.windows;
            const int64_t rows = WK_MOST_ELEMENTS / (7 * op.view[1].extent[1] * 8 * 8) + more;
            op.view[0].extent[0] = op.view[1].extent[0] = 7;
            for (int d = 0; d < WK_WINDOW_DIMS; d++) {
                const int64_t padded = d == 0 ? rows : d == 1 ? 8 : 7; /* and a stride of 1 */
                w->before[d] = 0;
                w->after[d] = padded - op.view[1].extent[2 + d];
                w->dilation[d] = w->stride[d] = 1;
                op.view[0].extent[2 + d] = padded - w->kernel[d] + 1;
            }
            for (int v = 0; v < 2; v++) memset(op.view[v].stride, 0, sizeof op.view[v].stride);
            expect(more == 0, &op, "padding", 1, more);
        }
}

/* Every section ends with the descriptor, or one word after it. */
static void test_sections(void **state) {
    (void)state;
    static const size_t sections[] = {
        offsetof(wk_batch_layout, ids),       offsetof(wk_batch_layout, positions),
        offsetof(wk_batch_layout, sequences), offsetof(wk_batch_layout, slots),
        offsetof(wk_batch_layout, outputs),   offsetof(wk_batch_layout, lengths),
        offsetof(wk_batch_layout, states),    offsetof(wk_batch_layout, tables)};
    for (size_t i = 0; i < WK_COUNT(sections); i++) {
        const uint32_t size[] = {N_ROWS, N_ROWS, N_ROWS, N_ROWS, 2, 3, 3, 3 * 5};
        for (int change = -1; change <= 1; change++) {
            wk_op op = make(rule_of(WK_OP_KV_APPEND));
            wk_batch_layout *const batch = &op.p.cached.batch;
            batch->n_outputs = 2;
            batch->n_sequences = 3;
            batch->n_blocks = 5;
            const uint32_t at = N_WORDS - size[i] + (uint32_t)change;
            memcpy((char *)batch + sections[i], &at, sizeof at);
            expect(change <= 0, &op, "section", (int)i, change);
        }
    }
    for (uint32_t n = N_WORDS - 1; n <= N_WORDS + 1; n++) { /* longer than all */
        wk_op op = make(rule_of(WK_OP_KV_APPEND));
        op.p.cached.batch.n_outputs = n;
        expect(n <= N_WORDS, &op, "outputs", 0, (int)n);
    }
    wk_op op = make(rule_of(WK_OP_KV_APPEND));
    op.view[4].stride[0] = 2;
    expect(false, &op, "stride", 4, 2);
}

/* What a kernel of the user's is bound to. */
static void test_custom(void **state) {
    (void)state;
    wk_op op = make(&rules[0]);
    op.code = WK_OP_CUSTOM;
    expect(true, &op, "nothing", 0, 0);
    for (int i = 0; i < 2; i++) {
        wk_op other = op;
        other.view[i].stride[0]++;
        expect(false, &other, "stride", i, 1);
        other = op;
        other.view[i].extent[0] = 0;
        make_dense(&other.view[i]);
        expect(false, &other, "extent", i, 0);
    }
}

/* Rows of three elements, this many apart: two may not share an element that is written. */
static void test_plain_views(void **state) {
    (void)state;
    wk_buffer buffer = {.size = 7 * sizeof(float)};
    for (int64_t stride = 0; stride <= 5; stride++) {
        const wk_view view = {
            .buf = &buffer, .dtype = WICK_F32, .rank = 2, .extent = {2, 3}, .stride = {stride, 1}};
        assert_int_equal(wk_view_is_plain(&view, true), stride == 3 || stride == 4);
        assert_int_equal(wk_view_is_plain(&view, false), stride <= 4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_extent),
        cmocka_unit_test(test_extents_together),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_plain_views),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_optional_operands),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_rotated_dimensions),
        cmocka_unit_test(test_reduced_ranks),
        cmocka_unit_test(test_reduced_emptiness),
        cmocka_unit_test(test_counts_of_elements),
        cmocka_unit_test(test_norm_dtypes),
        cmocka_unit_test(test_weights_that_lie_apart),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_conv_width),
        cmocka_unit_test(test_padded_extents),
        cmocka_unit_test(test_sections),
        cmocka_unit_test(test_custom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
