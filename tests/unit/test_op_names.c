/* Failures name the operation that was called, and not one of those that it is made of: all
 * operations of web/glue/tensors/ops.def with random operands, most of which they refuse, and with
 * some that they accept. */
#include "ops_fixture.h"

#include "../web/glue/tensors/operands.h"
#include "core/compiler.h"
#include "core/dtype.h"
#include "core/rng.h"

#include <wick/grad.h>
#include <wick/wick.h>

#include <math.h>
#include <stdio.h>

enum { TRIES = 300, TENSORS = 10, NUMBERS = 15, PARTS_ROOM = 64 };

wick_status door_refuse(wick_status status, const char *format, ...) {
    (void)format; /* of the glue, not of an operation */
    return status;
}

/* --- Calling --- */

typedef struct operation {
    const char *name;
    wick_tensor *(*call)(operands *in);
} operation;

static wick_tensor *first_of(size_t n, wick_tensor *const *parts) {
    return n > 0 ? parts[0] : NULL;
}

#define OP(name, ...)                                                                              \
    static wick_tensor *call_##name(operands *in) {                                                \
        (void)in;                                                                                  \
        return wick_##name(__VA_ARGS__);                                                           \
    }
#define PARTS(name, ...)                                                                           \
    static wick_tensor *call_##name(operands *in) {                                                \
        wick_tensor *parts[PARTS_ROOM];                                                            \
        return first_of(wick_##name(__VA_ARGS__, parts), parts);                                   \
    }
#include "../web/glue/tensors/ops.def"
#undef PARTS
#undef OP

static const operation operations[] = {
#define OP(name, ...) {#name, call_##name},
#define PARTS OP
#include "../web/glue/tensors/ops.def"
#undef PARTS
#undef OP
};

/* --- Random operands --- */

static const wick_shape shapes[] = {
    {.rank = 0},
    {.rank = 1, .extent = {3}},
    {.rank = 1, .extent = {4}},
    {.rank = 1, .extent = {8}},
    {.rank = 2, .extent = {3, 3}},
    {.rank = 2, .extent = {3, 4}},
    {.rank = 2, .extent = {4, 3}},
    {.rank = 2, .extent = {8, 2}},
    {.rank = 3, .extent = {2, 3, 4}},
    {.rank = 3, .extent = {1, 4, 3}},
    {.rank = 4, .extent = {1, 4, 2, 2}},
    {.rank = 4, .extent = {4, 4, 1, 2}},
    {.rank = 5, .extent = {1, 2, 2, 2, 2}},
    {.rank = 6, .extent = {1, 2, 1, 2, 1, 1}},
    {.rank = 2, .extent = {0, 3}},
};

static uint32_t below(wk_rng *rng, uint32_t n) { return (uint32_t)wk_rng_below(rng, n); }

static wick_dtype random_dtype(wk_rng *rng) {
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F32, WICK_F64, WICK_F16, WICK_I32,
                                        WICK_I64, WICK_U32, WICK_U8,  WICK_BOOL};
    return dtypes[below(rng, WK_COUNT(dtypes))];
}

/* Small numbers, or indices that are mostly out of range. */
static wick_tensor *random_tensor(wick_device *device, wk_rng *rng, wick_dtype dtype,
                                  wick_shape shape) {
    wick_tensor *const x =
        wick_full(device, dtype, shape, below(rng, 3) == 0 ? 99 : (double)below(rng, 2));
    assert_non_null(x);
    return x;
}

static void random_tensors(wick_device *device, wk_rng *rng, wick_tensor *out[TENSORS]) {
    const wick_dtype common = random_dtype(rng);
    const wick_shape shape = shapes[below(rng, WK_COUNT(shapes))];
    const uint32_t others = below(rng, 3); /* how many of the next ones are like the first */
    for (uint32_t i = 0; i < TENSORS; i++) {
        const wick_dtype dtype = below(rng, 3) == 0 ? random_dtype(rng) : common;
        const bool is_alike = below(rng, 3) < others;
        const wick_shape own = is_alike ? shape : shapes[below(rng, WK_COUNT(shapes))];
        out[i] = i > 0 && below(rng, 6) == 0 ? NULL : random_tensor(device, rng, dtype, own);
    }
}

/* is_text: some of the beginning of an equation of einsum. */
static size_t random_numbers(wk_rng *rng, bool is_text, double out[NUMBERS]) {
    static const double values[] = {0, 0, 1, 1, 1, 2, 2, 3, 4, -1, -2, 0.5, 1e-3};
    static const char letters[] = "ij,jk->ik";
    const size_t n = below(rng, NUMBERS + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = is_text ? letters[i % (sizeof letters - 1)] : values[below(rng, WK_COUNT(values))];
    return n;
}

/* --- What is seen --- */

/* One failure of each operation is enough. */
typedef struct watch {
    const operation *operation;
    int64_t n_wrong;
} watch;

static void complain(watch *w, const char *what, const char *text) {
    if (w->n_wrong++ == 0) printf("%s: %s: %s\n", w->operation->name, what, text);
}

static void see(void *user, const wk_call *call) {
    watch *const w = user;
    const char *const name = wk_op_name(&call->op);
    if (strcmp(name, w->operation->name) != 0) complain(w, "queues an op of another name", name);
}

/* Of tensors that cannot be, whoever asks for them. */
static bool is_of_tensor(const char *message) {
    return strncmp(message, "a tensor ", 9) == 0 || strncmp(message, "there is no dtype ", 18) == 0;
}

/* The device's error, where there is one, names the operation after those words. */
static void check_error(wick_device *device, watch *w, const char *before) {
    wick_error error = {.status = WICK_OK};
    char wanted[64];
    if (wick_device_error(device, &error) == WICK_OK || is_of_tensor(error.message)) return;
    const size_t length =
        (size_t)snprintf(wanted, sizeof wanted, "%s%s", before, w->operation->name);
    const bool is_named = strncmp(error.message, wanted, length) == 0;
    if (!is_named || (error.message[length] != ':' && error.message[length] != ' '))
        complain(w, "says", error.message);
}

/* Reads y: an index may be out of range. */
static void check_read(wick_device *device, watch *w, wick_tensor *y) {
    static unsigned char bytes[1 << 16];
    const size_t size = wick_tensor_bytes(y);
    assert_true(size <= sizeof bytes);
    wick_tensor *const dense = wick_contiguous(y);
    if (wick_read(dense, bytes, size) == WICK_ERR_INDEX) check_error(device, w, "");
    (void)wick_device_error(device, NULL);
}

/* Overwrites the operands: a gradient that needs one of them is refused. */
static void check_gradient(wick_device *device, watch *w, wick_tape *tape, wick_tensor *const *x,
                           wick_tensor *y) {
    wick_tensor *watched[TENSORS], *grads[TENSORS];
    size_t n = 0;
    for (int i = 0; i < TENSORS; i++)
        if (x[i] != NULL && x[i] != y && wk_dtype_is_float(x[i]->view.dtype)) watched[n++] = x[i];
    if (n == 0 || !wk_dtype_is_float(y->view.dtype)) return;
    for (size_t i = 0; i < n; i++) assert_non_null(wick_fill(watched[i], 1));
    wick_tensor *const total = wick_sum(y, 0, NULL, false);
    if (wick_grad(tape, total, NULL, watched, n, grads) == WICK_ERR_STATE)
        check_error(device, w, "the gradient of ");
    (void)wick_device_error(device, NULL);
}

/* Tensors and numbers of a call; the tensors are the scope's. */
typedef struct given {
    wick_tensor *tensors[TENSORS];
    double numbers[NUMBERS];
    size_t n_tensors, n_numbers, n_results;
} given;

/* Whether it was accepted. */
static bool try_one(wick_device *device, watch *w, const given *g) {
    wick_tensor *places[TENSORS]; /* where results go, too */
    memcpy(places, g->tensors, sizeof places);
    operands in = {.device = device,
                   .tensors = places,
                   .n_tensors = g->n_tensors,
                   .n_results = g->n_results,
                   .numbers = g->numbers,
                   .n_numbers = g->n_numbers};
    wick_tape *tape = NULL;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int i = 0; i < TENSORS; i++)
        if (g->tensors[i] != NULL && wk_dtype_is_float(g->tensors[i]->view.dtype))
            assert_int_equal(wick_tape_watch(tape, g->tensors[i]), WICK_OK);
    const wk_observer_hooks hooks = {.op = see, .user = w};
    wk_observer *const observer = wk_observer_add(device, &hooks);
    assert_true(observer != NULL && integers_make(&in));
    wick_tensor *const y = w->operation->call(&in);
    wk_observer_remove(observer);
    free(in.longs);
    check_error(device, w, "");
    if (y != NULL) {
        check_gradient(device, w, tape, g->tensors, y);
        check_read(device, w, y);
    }
    wick_tape_end(tape);
    return y != NULL;
}

static bool try_random(wick_device *device, watch *w, wk_rng *rng) {
    const bool is_text = strcmp(w->operation->name, "einsum") == 0;
    const wick_scope scope = wick_scope_begin(device);
    given g = {.n_tensors = 1 + below(rng, 3), .n_results = below(rng, 3)};
    random_tensors(device, rng, g.tensors);
    g.n_numbers = random_numbers(rng, is_text, g.numbers);
    const bool is_accepted = try_one(device, w, &g);
    wick_scope_end(scope);
    return is_accepted;
}

/* --- Legal calls of operations whose operands chance hardly finds --- */

/* Operands: f, or i for indices, and a digit for each extent; - for one that is left out. */
typedef struct legal {
    const char *name, *operands;
    double numbers[NUMBERS];
} legal;

static const legal legal_calls[] = {
    {"gather", "f34 i24", {0}},
    {"take_along_dim", "f34 i24", {0}},
    {"index_select", "f34 i2", {0}},
    {"index_add", "f34 i3 f34", {0}},
    {"index_add_in_place", "f34 i3 f34", {0}},
    {"index_copy_in_place", "f34 i3 f34", {0}},
    {"scatter_add", "f34 i34 f34", {0}},
    {"gather_nd", "f34 i21", {0}},
    {"scatter_nd", "f34 i21 f24", {0}},
    {"take", "f34 i2", {0}},
    {"embedding", "f34 i2", {0}},
    {"one_hot", "i2", {0, 3}},
    {"linear_experts", "f23 f243 - i21", {0}},
    {"rope_table", "f1222 f21 f21", {0}},
    {"attention", "f1222 f1222 f1222", {0}},
    {"slice_assign", "f34 f12", {0, 0, 1, 2}},
    {"im2col", "f1233", {2, 2, 0, 0, 1, 1, 1, 1}},
    {"col2im", "f184", {3, 3, 2, 2, 0, 0, 1, 1, 1, 1}},
    {"conv1d", "f124 f322 f3", {0}},
    {"conv2d", "f1244 f3222 f3", {0}},
    {"conv3d", "f12333 f32222 f3", {0}},
    {"conv_transpose1d", "f124 f232 f3", {0}},
    {"conv_transpose2d", "f1244 f2322 f3", {0}},
    {"conv_transpose3d", "f12333 f23222 f3", {0}},
    {"max_pool3d", "f12444", {2, 2, 2}},
    {"avg_pool3d", "f12444", {2, 2, 2}},
    {"roi_align", "f1244 f14 i1", {2, 2, 1, 1}},
    {"group_norm", "f1244 f2 f2", {2, 1e-3}},
    {"batch_norm", "f224 f2 f2 f2 f2", {1e-3}},
    {"batch_norm_train", "f224 f2 f2 f2 f2", {1e-3, 0.5}},
    {"lstm", "f123 f83 f82 f8 f8", {0}},
    {"gru", "f123 f63 f62 f6 f6", {0}},
    {"rnn", "f123 f23 f22 f2 f2", {0}},
    {"cross_entropy", "f34 i3", {0}},
    {"nll", "f34 i3", {0}},
    {"moe_route", "f34", {2}},
    {"moe_ffn", "f23 f21 i21 f243 f243 f234", {0}},
};

static size_t make_operands(wick_device *device, const char *text, double index,
                            wick_tensor *out[TENSORS]) {
    size_t n = 0;
    for (const char *at = text; *at != '\0'; at += *at == ' ') {
        const char kind = *at++;
        wick_shape shape = {.rank = 0};
        for (; *at != ' ' && *at != '\0'; at++) shape.extent[shape.rank++] = *at - '0';
        if (kind == 'f') out[n] = wick_full(device, WICK_F32, shape, 0.5);
        if (kind == 'i') out[n] = wick_full(device, WICK_U32, shape, index);
        n++;
    }
    return n;
}

/* How many there are of the operation. */
static int try_legal(wick_device *device, watch *w) {
    int n = 0;
    for (size_t i = 0; i < WK_COUNT(legal_calls); i++) {
        const legal *const l = &legal_calls[i];
        if (strcmp(l->name, w->operation->name) != 0) continue;
        for (int outside = 0; outside <= 1; outside++) {
            const wick_scope scope = wick_scope_begin(device);
            given g = {.n_numbers = NUMBERS};
            memcpy(g.numbers, l->numbers, sizeof g.numbers);
            g.n_tensors = make_operands(device, l->operands, outside * 99, g.tensors);
            if (strcmp(l->name, "slice_assign") == 0) g.n_numbers = 4; /* two for each dim */
            if (!try_one(device, w, &g) && !outside) complain(w, "refuses", l->operands);
            wick_scope_end(scope);
        }
        n++;
    }
    return n;
}

static void test_names(void **state) {
    wick_device *const device = device_of(state);
    int64_t n_wrong = 0;
    for (size_t i = 0; i < WK_COUNT(operations); i++) {
        watch w = {.operation = &operations[i]};
        wk_rng rng = {.seed = i};
        int n = try_legal(device, &w);
        for (int k = 0; k < TRIES; k++) n += try_random(device, &w, &rng);
        if (n == 0) complain(&w, "never", "accepted");
        n_wrong += w.n_wrong > 0;
    }
    assert_int_equal(n_wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
