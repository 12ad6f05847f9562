/* What goes wrong with one object is no other's business: four sessions and calls on tensors share
 * a device and take turns at random, with refusals, faults and losses in between. Each session's
 * text and each tensor's numbers are those of a run in which it was alone.
 *
 * WICK_INTERLEAVINGS says how many runs (100). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/null/null.h"
#include "llm/session_struct.h"
#include "loss.h"
#include "model/model_struct.h"

enum { N_SESSIONS = 4, N_TOKENS = 10, N_ROWS = 8, N_COLS = 4, N_IDS = 3, MAX_VALUES = 6 };

static checked_heap heap;
static wick_device *device;
static wick_model *model;
static uint64_t seed;

static uint32_t draw(uint32_t n) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(seed >> 33) % n;
}

/* --- Sessions --- */

static const wick_session_desc descs[N_SESSIONS] = {
    {.context_length = 64,
     .max_tokens = N_TOKENS,
     .ignore_end = true,
     .speculate = WICK_SPECULATE_NONE}, /* test_spoiled_keys looks for its next token */
    {.context_length = 48,
     .max_tokens = N_TOKENS,
     .ignore_end = true,
     .chunk_length = 4,
     .sampler = {.temperature = 0.9F, .top_k = 50, .repeat_penalty = 1.1F, .seed = 7}},
    {.context_length = 64,
     .max_tokens = N_TOKENS,
     .ignore_end = true,
     .chunk_length = 8,
     .speculate = WICK_SPECULATE_AHEAD},
    {.context_length = 128,
     .max_tokens = N_TOKENS,
     .ignore_end = true,
     .sampler = {.temperature = 0.8F, .mirostat_tau = 3, .seed = 11}},
};
static const char *const prompts[N_SESSIONS] = {prompt, "The dog", "Once upon a time", "One day, "};

static told alone[N_SESSIONS];

typedef struct actor {
    wick_session *session;
    told got;
    bool has_ended;
} actor;

static void begin(actor *a, int i) {
    wick_error error = {.status = WICK_OK};
    *a = (actor){.session = NULL};
    if (wick_session_open(model, &descs[i], &a->session, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(wick_session_append_text(a->session, prompts[i]), WICK_OK);
}

static void step(actor *a) {
    wick_event event;
    wick_error error = {.status = WICK_OK};
    if (a->has_ended) return;
    if (wick_session_step(a->session, &event) != WICK_OK) {
        (void)wick_session_error(a->session, &error);
        fail_msg("%s", error.message);
    }
    hear(&a->got, &event);
    a->has_ended = event.kind == WICK_EVENT_END;
}

/* Each is refused, with a sentence, and the session is as before. */
static void refuse(actor *a) {
    static const uint32_t wrong[] = {UINT32_MAX, 3};
    static uint32_t many[200];
    wick_status status = WICK_OK;
    wick_error error = {.status = WICK_OK};
    switch (draw(4)) {
    case 0: status = wick_session_append_tokens(a->session, wrong, 2); break;
    case 1: status = wick_session_append_tokens(a->session, many, 200); break;
    case 2: status = wick_session_sync_tokens(a->session, many, 200); break;
    case 3: status = wick_session_append_text(a->session, NULL); break;
    }
    assert_true(status < 0);
    assert_int_equal(wick_session_error(a->session, &error), status);
    assert_true(error.message[0] != 0);
}

static void check_session(const actor *a, int i) {
    assert_int_equal(a->got.n_tokens, alone[i].n_tokens);
    assert_int_equal(a->got.reason, alone[i].reason);
    if (a->got.size != alone[i].size || memcmp(a->got.text, alone[i].text, a->got.size) != 0)
        fail_msg("session %d goes '%.*s', not '%.*s'", i, (int)a->got.size, a->got.text,
                 (int)alone[i].size, alone[i].text);
}

/* --- Tensors: each with what it must hold --- */

typedef struct value {
    wick_tensor *tensor; /* [N_IDS, N_COLS] */
    wick_reading *reading;
    float want;       /* every element */
    bool is_spoiled;  /* reads must fail */
    bool was_spoiled; /* when the read was asked for */
    float asked;      /* what it must give */
} value;

typedef struct tensors {
    wick_tensor *table; /* [N_ROWS, N_COLS] of ones */
    value values[MAX_VALUES];
    uint64_t n_losses; /* with which it was made */
} tensors;

static uint64_t n_losses(void) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    return stats.n_losses;
}

static void drop_tensors(tensors *t) {
    for (int i = 0; i < MAX_VALUES; i++) {
        if (t->values[i].reading) (void)wick_read_finish(t->values[i].reading, NULL, 0);
        wick_release(t->values[i].tensor);
    }
    wick_release(t->table);
    *t = (tensors){.table = NULL};
}

/* False: the device is lost just now. */
static bool make_tensors(tensors *t) {
    t->n_losses = n_losses();
    t->table = wick_full(device, WICK_F32, WICK_SHAPE(N_ROWS, N_COLS), 1);
    bool complete = t->table != NULL;
    for (int i = 0; i < MAX_VALUES && complete; i++) {
        t->values[i].tensor = wick_full(device, WICK_F32, WICK_SHAPE(N_IDS, N_COLS), i);
        t->values[i].want = (float)i;
        complete = t->values[i].tensor != NULL;
    }
    return complete;
}

static bool is_lost(wick_status status) { return status == WICK_ERR_DEVICE_LOST; }

/* Takes the place of a value; false: lost. */
static bool put(value *v, wick_tensor *tensor, float want, bool is_spoiled) {
    if (!tensor) return false;
    if (v->reading) {
        (void)wick_read_finish(v->reading, NULL, 0);
        v->reading = NULL;
    }
    wick_release(v->tensor);
    v->tensor = tensor;
    v->want = want;
    v->is_spoiled = is_spoiled;
    return true;
}

/* Rows of the table; one of the ids may be too large. */
static bool embed(tensors *t, value *v) {
    uint32_t ids[N_IDS] = {0, draw(N_ROWS), N_ROWS - 1};
    const bool is_wrong = draw(3) == 0;
    if (is_wrong) ids[draw(N_IDS)] = N_ROWS + draw(3);
    wick_tensor *const which =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(N_IDS), ids, sizeof ids);
    wick_tensor *const rows = wick_embedding(t->table, which);
    wick_release(which);
    return put(v, rows, 1, is_wrong);
}

static bool add(const value *a, const value *b, value *to) {
    wick_tensor *const sum = wick_add(a->tensor, b->tensor);
    const float want = a->want + b->want > 1e6F ? 0 : a->want + b->want;
    if (a->want + b->want > 1e6F) {
        wick_release(sum);
        return put(to, wick_full(device, WICK_F32, WICK_SHAPE(N_IDS, N_COLS), 0), 0, false);
    }
    return put(to, sum, want, a->is_spoiled || b->is_spoiled);
}

/* All of it, so that it is sound again. */
static bool write_anew(value *v) {
    float data[N_IDS * N_COLS];
    v->want = (float)draw(100);
    v->is_spoiled = false;
    for (int i = 0; i < N_IDS * N_COLS; i++) data[i] = v->want;
    return wick_write(v->tensor, data, sizeof data) == WICK_OK;
}

/* The sticky error is taken: no other object sees it. */
static bool refuse_sum(const tensors *t) {
    wick_error error = {.status = WICK_OK};
    assert_null(wick_add(t->table, t->values[0].tensor));
    const wick_status status = wick_device_error(device, &error);
    if (is_lost(status)) return false;
    assert_int_equal(status, WICK_ERR_SHAPE);
    return true;
}

static bool ask(value *v) {
    if (v->reading) return true;
    v->asked = v->want;
    v->was_spoiled = v->is_spoiled;
    return wick_read_start(v->tensor, &v->reading) == WICK_OK;
}

static bool look(value *v) {
    float data[N_IDS * N_COLS];
    if (!v->reading) return true;
    const wick_status status = wick_read_poll(v->reading);
    if (status == WICK_PENDING) return true;
    const wick_status finished = wick_read_finish(v->reading, data, sizeof data);
    v->reading = NULL;
    if (is_lost(status) || is_lost(finished)) return false;
    if (v->was_spoiled) {
        assert_int_equal(status, WICK_ERR_INDEX);
        return true;
    }
    assert_int_equal(status, WICK_OK);
    assert_int_equal(finished, WICK_OK);
    for (int i = 0; i < N_IDS * N_COLS; i++) assert_float_equal(data[i], v->asked, 0);
    return true;
}

static bool use_tensors(tensors *t) {
    value *const v = &t->values[draw(MAX_VALUES)];
    switch (draw(7)) {
    case 0: return embed(t, v);
    case 1: return add(&t->values[draw(MAX_VALUES)], &t->values[draw(MAX_VALUES)], v);
    case 2: return write_anew(v);
    case 3: return refuse_sum(t);
    case 4: return ask(v);
    default: return look(v);
    }
}

/* A loss takes the tensors: the calls fail that say so, and they are made again. */
static void act_on_tensors(tensors *t) {
    if (t->table && use_tensors(t) && t->n_losses == n_losses()) return;
    wick_error error = {.status = WICK_OK};
    const wick_status status = wick_device_error(device, &error);
    if (t->table && status != WICK_OK && !is_lost(status) && status != WICK_ERR_INDEX)
        fail_msg("%s", error.message);
    drop_tensors(t);
    if (!make_tensors(t)) drop_tensors(t);
    (void)wick_device_error(device, NULL);
}

/* --- Runs --- */

static void open_place(uint32_t null_flags) {
    checked_heap_init(&heap, UINT64_MAX);
    const wick_device_desc desc = {.backend = WICK_BACKEND_NULL,
                                   .null_flags = null_flags,
                                   .n_threads = 1,
                                   .allocator = heap.heap.hook};
    wick_error error = {.status = WICK_OK};
    if (wick_device_open(&desc, &device, &error) != WICK_OK ||
        wick_model_open(device, stories_path(), NULL, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
}

static void close_place(void) {
    wick_model_close(model);
    wick_device_close(device);
    assert_int_equal(heap.n_live, 0);
}

static int setup(void **state) {
    (void)state;
    open_place(0);
    for (int i = 0; i < N_SESSIONS; i++) {
        actor a;
        begin(&a, i);
        while (!a.has_ended) step(&a);
        alone[i] = a.got;
        wick_session_close(a.session);
        if (a.got.n_tokens != N_TOKENS) return 1;
    }
    close_place();
    return 0;
}

static bool is_anyone_left(const actor *actors) {
    for (int i = 0; i < N_SESSIONS; i++)
        if (!actors[i].has_ended) return true;
    return false;
}

static void interleave(void) {
    actor actors[N_SESSIONS];
    tensors t = {.table = NULL};
    for (int i = 0; i < N_SESSIONS; i++) begin(&actors[i], i);
    (void)make_tensors(&t);
    uint32_t n_left = 2; /* losses */
    while (is_anyone_left(actors)) {
        const uint32_t what = draw(40), who = draw(N_SESSIONS);
        if (what < 20)
            step(&actors[who]);
        else if (what < 22)
            refuse(&actors[who]);
        else if (what < 38)
            act_on_tensors(&t);
        else if (what < 39)
            wick_pause(device);
        else if (n_left > 0 && draw(8) == 0 && n_left--)
            wk_null_lose_after(device->handle, 1 + draw(200));
    }
    wk_null_lose_after(device->handle, 0);
    for (int i = 0; i < N_SESSIONS; i++) check_session(&actors[i], i);
    for (int i = 0; i < N_SESSIONS; i++) wick_session_close(actors[i].session);
    drop_tensors(&t);
    (void)wick_device_error(device, NULL);
}

static void test_interleavings(void **state) {
    (void)state;
    const char *const asked = getenv("WICK_INTERLEAVINGS");
    const int n = asked ? atoi(asked) : 100;
    static const uint32_t flags[] = {0, WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER, WICK_NULL_NO_FUSED,
                                     WICK_NULL_TURNS, WICK_NULL_NO_KERNELS};
    uint64_t losses = 0;
    for (int i = 0; i < n; i++) {
        seed = (uint64_t)i;

        open_place(flags[i % 5]);
        interleave();
        losses += n_losses();
        close_place();
    }
    print_message("%d interleavings, %d losses\n", n, (int)losses);
    assert_true(losses > 0);
}

/* Keys that are spoiled end the session that has them, until it is reset. */
static void test_spoiled_keys(void **state) {
    (void)state;
    actor actors[2];
    wick_event event;
    wick_error error = {.status = WICK_OK};
    const wick_error reason = {.status = WICK_ERR_DEVICE, .message = "as if refused"};
    open_place(0);
    for (int i = 0; i < 2; i++) begin(&actors[i], i);
    while (actors[0].got.n_tokens < 3) step(&actors[0]);
    const wk_state *const kept = wk_sequence_state(actors[0].session->sequence, 1);
    wk_fault_spoil_buffer(device, kept->layers[1].k->view.buf, &reason);

    wick_status status;
    while ((status = wick_session_step(actors[0].session, &event)) == WICK_OK &&
           event.kind != WICK_EVENT_END)
        continue;
    assert_int_equal(status, WICK_ERR_DEVICE);
    assert_int_equal(wick_session_error(actors[0].session, &error), WICK_ERR_DEVICE);
    assert_string_equal(error.message, reason.message);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    while (!actors[1].has_ended) step(&actors[1]);
    check_session(&actors[1], 1);

    wick_session_reset(actors[0].session);
    assert_int_equal(wick_session_error(actors[0].session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(actors[0].session, prompts[0]), WICK_OK);
    actors[0].got = (told){.size = 0};
    while (!actors[0].has_ended) step(&actors[0]);
    check_session(&actors[0], 0);
    for (int i = 0; i < 2; i++) wick_session_close(actors[i].session);
    close_place();
}

/* --- Ops that are computed in slices --- */

/* The scratch memory of the kernels grows while an op that uses it is half done. */
static void test_larger_scratch_meanwhile(void **state) {
    enum { M = 8, K = 1024, N = 1024 };
    static float alone_y[M * N], got[M * N];
    (void)state;
    for (wick_isa isa = WICK_ISA_AUTO; isa <= WICK_ISA_REF; isa++) {
        const wick_device_desc desc = {
            .backend = WICK_BACKEND_CPU, .n_threads = 1, .slice_us = 1, .isa = isa};
        wick_device *cpu;
        assert_int_equal(wick_device_open(&desc, &cpu, NULL), WICK_OK);
        wick_tensor *const x = wick_randn(cpu, WICK_F32, WICK_SHAPE(M, K), 0, 1);
        wick_tensor *const w = wick_randn(cpu, WICK_F32, WICK_SHAPE(N, K), 0, 1);
        wick_tensor *const large = wick_randn(cpu, WICK_F32, WICK_SHAPE(64 * M, 2 * K), 0, 1);
        wick_tensor *const w_large = wick_randn(cpu, WICK_F32, WICK_SHAPE(16, 2 * K), 0, 1);
        wick_tensor *const first = wick_linear(x, w, NULL);
        assert_int_equal(wick_read(first, alone_y, sizeof alone_y), WICK_OK);
        wick_tensor *const second = wick_linear(x, w, NULL);
        assert_true(wick_flush(cpu) >= 0);
        for (int i = 0; i < 3; i++) assert_int_equal(wick_poll(cpu), WICK_PENDING);
        wick_tensor *const other = wick_linear(large, w_large, NULL);
        assert_true(wick_flush(cpu) >= 0);
        assert_int_equal(wick_read(second, got, sizeof got), WICK_OK);
        assert_memory_equal(got, alone_y, sizeof got);
        wick_tensor *const all[] = {x, w, large, w_large, first, second, other};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) wick_release(all[i]);
        wick_device_close(cpu);
    }
}

/* Nothing piles up in a program that writes and polls. */
static void test_many_writes(void **state) {
    (void)state;
    open_place(0);
    const float data[4] = {1, 2, 3, 4};
    wick_tensor *const x = wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(4), data, 16);
    wick_tensor *const y = wick_add(x, x);
    assert_true(wick_flush(device) >= 0);
    uint64_t n_live = 0;
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(wick_write(x, data, sizeof data), WICK_OK);
        while (wick_poll(device) == WICK_PENDING) wick_pause(device);
        if (i == 1000) n_live = device->trace.capacity;
    }
    assert_int_equal(device->trace.capacity, n_live);
    wick_release(x);
    wick_release(y);
    close_place();
}

/* The device of the layers that stay on the CPU is opened while the model loads. */
static void test_tensors_of_the_host(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_NULL, .n_threads = 1};
    const wick_model_desc placed = {.device_layers = 2};
    float zeros[2];
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    assert_int_equal(wick_model_open(device, stories_path(), &placed, &model, NULL), WICK_OK);
    wick_device *const host = wick_model_host(model);
    assert_non_null(host);
    wick_tensor *const x = wick_zeros(host, WICK_F32, WICK_SHAPE(2));
    assert_int_equal(wick_read(x, zeros, sizeof zeros), WICK_OK);
    assert_null(wick_zeros(host, WICK_F32, WICK_SHAPE(-1)));
    assert_int_equal(wick_device_error(host, NULL), WICK_ERR_SHAPE);
    wick_release(x);
    wick_model_close(model);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interleavings),
        cmocka_unit_test(test_spoiled_keys),
        cmocka_unit_test(test_larger_scratch_meanwhile),
        cmocka_unit_test(test_many_writes),
        cmocka_unit_test(test_tensors_of_the_host),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
