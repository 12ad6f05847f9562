/* usage: test_sessions [--programs N] [--seed S] [--backend webgpu --webgpu-lib LIBRARY ...]
 *
 * Many sessions of one model: programs that open, step, fork, cancel, reset, save, load and close
 * them at random, with and without guesses at the tokens to come, while memory is refused and
 * devices are lost at random. Every text has the tokens that its prompt gives alone and without
 * guesses, and the bits of their probabilities unless a device may run ahead, which it does where
 * no one asks for them. A session fails for no other reason than memory, and no more of them than
 * there were refusals. */
#define _POSIX_C_SOURCE 200809L
#include "golden/going_back.h"
#include "golden/head_file.h"

#include "backend/null/null.h"
#include "backend/webgpu/webgpu.h"
#include "checked_heap.h"
#include "tensor/device.h"

#include <wick/saving.h>

#include <stdlib.h>
#include <unistd.h>

enum {
    N_PROMPTS = 5,
    N_SHORT = 2, /* of these, the first ones */
    MOST_PROMPT = 80,
    N_TOKENS = 20,
    N_ACTORS = 6,
    CONTEXT = 128,
    CHUNK = 16,
    N_ACTS = 250
};

/* With + the model gets a prediction head. */
static const char *const models[] = {
    "llama",         "gemma3", "gemma2",  "mistral",  "deepseek2-v3", "mamba2",
    "lfm2",          "qwen35", "gpt-oss", "qwen3moe", "qwen3next",    "granite-hybrid",
    "phi3-longrope", "gpt2",   "+llama",  "+qwen35",  "+gemma3",      "falcon-h1"};

enum { N_SETUPS = 6 };      /* beside those of WebGPU */
static uint64_t n_programs; /* in all; rounded up to the same number for each model and setup */
static uint64_t seed = 1;   /* of the next one */
static uint64_t n_refused, n_lost, n_failures; /* allocations, devices, sessions so far */
static uint64_t n_drafted[2], n_accepted[2];   /* [1]: of texts with is_short */
static const char *model_name;                 /* of the one that runs; NULL: none does */

/* What a prompt gives alone. */
typedef struct text {
    bool is_short; /* its choices need the best logits alone */
    uint32_t prompt[MOST_PROMPT], n_prompt;
    wick_logprob tokens[N_TOKENS];
} text;

typedef struct actor {
    wick_session *session; /* NULL: it is not on the stage */
    bool is_short;         /* as of its texts */
    const text *follows;
    uint32_t n_told;
} actor;

enum { REFUSALS = 1, LOSSES = 2 };

/* A saved session. */
typedef struct image {
    unsigned char *bytes;
    size_t size;
    bool is_short;
    const text *follows; /* NULL: there is none */
    uint32_t n_told;
} image;

typedef struct scene {
    checked_heap heap;
    wick_device *device;
    wick_model *model;
    bool drafts;   /* it can go back, and makes guesses for itself: without the bias, often wrong */
    bool has_head; /* which makes them in its place */
    bool has_little_room;
    text texts[N_PROMPTS];
    actor actors[N_ACTORS];
    image kept;
    uint32_t faults;    /* of the program: REFUSALS, LOSSES */
    uint64_t n_told;    /* tokens of all actors */
    uint64_t told_then; /* when the device was lost last */
    uint64_t n_failed;
} scene;

static uint32_t below(uint32_t n) { return (uint32_t)(random_bits() % n); }

/* Whether it is WICK_OK; else memory was refused. */
static bool is_done(scene *s, wick_status status, const char *what) {
    if (status == WICK_OK) return true;
    if (status != WICK_ERR_OUT_OF_MEMORY || !(s->faults & REFUSALS))
        fail_msg("%s: %s", what, wick_status_text(status));
    s->n_failed++;
    return false;
}

static void leave(actor *a) {
    wick_session_stats stats;
    wick_session_get_stats(a->session, &stats);
    assert_true(stats.n_accepted <= stats.n_drafted);
    n_drafted[a->is_short] += stats.n_drafted;
    n_accepted[a->is_short] += stats.n_accepted;
    wick_session_close(a->session);
    a->session = NULL;
}

/* --- Texts alone --- */

static wick_session_desc session_desc(const scene *s, bool is_short, wick_speculate speculate) {
    /* Few tokens make texts that repeat themselves: there are guesses, right and wrong ones. A
     * penalty makes wrong those of a device that runs ahead. */
    static const wick_logit_bias few[] = {{11, 20}, {12, 20}, {13, 20}, {14, 20}};
    const wick_sampler_desc penalty = {.frequency_penalty = 0.2F, .repeat_last = 16};
    const wick_sampler_desc bias = {.bias = few, .n_bias = WK_COUNT(few)};
    return (wick_session_desc){.context_length = CONTEXT,
                               .chunk_length = CHUNK,
                               .max_tokens = N_TOKENS,
                               .ignore_end = true,
                               .sampler = is_short ? penalty : bias,
                               .speculate = speculate,
                               .draft = s->drafts && !is_short ? s->model : NULL,
                               .n_logprobs = is_short ? 0 : 1};
}

/* Recurrent layers do not go back, and such a draft model is refused. */
static bool can_draft(scene *s) {
    wick_session *session = NULL;
    wick_error error = {0};
    s->drafts = true;
    const wick_session_desc desc = session_desc(s, false, WICK_SPECULATE_DRAFT);
    const wick_status status = wick_session_open(s->model, &desc, &session, &error);
    if (status != WICK_OK) {
        assert_int_equal(status, WICK_ERR_UNSUPPORTED);
        assert_non_null(strstr(error.message, "recurrent layers"));
        assert_null(session);
    }
    wick_session_close(session);
    return status == WICK_OK;
}

static void make_text(scene *s, text *t, uint32_t most, uint32_t n_vocab) {
    wick_session *session;
    wick_error error = {0};
    t->n_prompt = 1 + below(most);
    for (uint32_t k = 0; k < t->n_prompt; k++) t->prompt[k] = below(n_vocab);
    const wick_session_desc desc = session_desc(s, t->is_short, WICK_SPECULATE_NONE);
    if (wick_session_open(s->model, &desc, &session, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(wick_session_append_tokens(session, t->prompt, t->n_prompt), WICK_OK);
    uint32_t n = 0;
    wick_event event = {.kind = WICK_EVENT_PENDING};
    while (event.kind != WICK_EVENT_END) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_TOKEN)
            t->tokens[n++] = t->is_short ? (wick_logprob){.id = event.token} : event.logprobs[0];
    }
    assert_int_equal(n, N_TOKENS);
    wick_session_close(session);
}

static void make_texts(scene *s) {
    wick_model_info info;
    wick_model_get_info(s->model, &info);
    s->drafts = !s->has_head && can_draft(s);
    for (uint32_t i = 0; i < N_SHORT; i++) s->texts[i].is_short = true;
    for (uint32_t i = 0; i < N_PROMPTS; i++)
        make_text(s, &s->texts[i], i % 2 ? MOST_PROMPT : 8, info.n_vocab);
}

/* --- What sessions do --- */

static wick_session_desc any_desc(const scene *s, bool is_short) {
    static const wick_speculate kinds[] = {WICK_SPECULATE_AUTO, WICK_SPECULATE_HEADS,
                                           WICK_SPECULATE_HEADS, WICK_SPECULATE_NONE};
    if (is_short && below(3) > 0) return session_desc(s, true, WICK_SPECULATE_AHEAD);
    if (s->has_head) return session_desc(s, is_short, kinds[below(WK_COUNT(kinds))]);
    const bool drafts = s->drafts && !is_short;
    const uint32_t n_kinds = drafts ? WICK_SPECULATE_DRAFT + 1 : WICK_SPECULATE_DRAFT;
    return session_desc(s, is_short, (wick_speculate)below(n_kinds));
}

static void begin(scene *s, actor *a) {
    a->follows = &s->texts[a->is_short ? below(N_SHORT) : N_SHORT + below(N_PROMPTS - N_SHORT)];
    a->n_told = 0;
    const wick_status status =
        wick_session_append_tokens(a->session, a->follows->prompt, a->follows->n_prompt);
    if (!is_done(s, status, "append")) leave(a);
}

static void enter(scene *s, actor *a) {
    a->is_short = below(2) > 0;
    const wick_session_desc desc = any_desc(s, a->is_short);
    if (is_done(s, wick_session_open(s->model, &desc, &a->session, NULL), "open")) begin(s, a);
}

static void begin_again(scene *s, actor *a) {
    wick_session_reset(a->session);
    begin(s, a);
}

/* One step; what it tells has to be what the text says. False: the text has ended. */
static bool step_actor(scene *s, actor *a) {
    wick_event event;
    const wick_status status = wick_session_step(a->session, &event);
    if (status != WICK_OK && status != WICK_ERR_OUT_OF_MEMORY) fail_with_error(a->session);
    if (!is_done(s, status, "step")) {
        assert_int_equal(wick_session_error(a->session, NULL), status);
        begin_again(s, a);
        return true;
    }
    if (event.kind == WICK_EVENT_END) assert_int_equal(a->n_told, N_TOKENS);
    if (event.kind != WICK_EVENT_TOKEN) return event.kind != WICK_EVENT_END;
    assert_true(a->n_told < N_TOKENS);
    const wick_logprob *const want = &a->follows->tokens[a->n_told++];
    assert_int_equal(event.token, want->id);
    if (!a->is_short)
        assert_memory_equal(&event.logprobs[0].logprob, &want->logprob, sizeof want->logprob);
    s->n_told++;
    return true;
}

static void fork_actor(scene *s, const actor *from, actor *to) {
    if (!from->session || to->session) return;
    const wick_session_desc desc = any_desc(s, from->is_short);
    const wick_status status = wick_session_fork(from->session, &desc, &to->session, NULL);
    if (status == WICK_ERR_STATE || !is_done(s, status, "fork")) return; /* it is computing */
    to->is_short = from->is_short;
    to->follows = from->follows;
    to->n_told = from->n_told;
}

/* --- Saved sessions --- */

static wick_status write_bytes(void *user, const void *bytes, size_t size, wick_error *error) {
    image *const to = user;
    (void)error;
    unsigned char *const grown = realloc(to->bytes, to->size + size);
    assert_non_null(grown);
    memcpy(grown + to->size, bytes, size);
    to->bytes = grown;
    to->size += size;
    return WICK_OK;
}

static bool is_done_or_lost(scene *s, wick_status status, const char *what) {
    if (status == WICK_ERR_DEVICE_LOST && s->faults & LOSSES) return false;
    return is_done(s, status, what);
}

static void keep(scene *s, const actor *a) {
    wick_session_saving *saving;
    s->kept.follows = NULL;
    s->kept.size = 0;
    const wick_status begun =
        wick_session_save_start(a->session, write_bytes, &s->kept, &saving, NULL);
    if (begun == WICK_ERR_STATE) { /* it has failed, which its next step tells */
        assert_int_not_equal(wick_session_error(a->session, NULL), WICK_OK);
        return;
    }
    if (!is_done(s, begun, "begin to save")) return;
    while (wick_session_save_poll(saving) == WICK_PENDING) wick_pause(s->device);
    if (!is_done_or_lost(s, wick_session_save_finish(saving, NULL), "save")) return;
    s->kept.follows = a->follows;
    s->kept.is_short = a->is_short;
    s->kept.n_told = a->n_told;
}

static void load_kept(scene *s, actor *a) {
    const image *const kept = &s->kept;
    if (!kept->follows || a->is_short != kept->is_short) return;
    wick_session_loading *loading;
    const wick_source source = wick_source_memory(kept->bytes, kept->size);
    wick_status status = wick_session_load_start(a->session, source, &loading, NULL);
    if (status == WICK_OK) {
        while (wick_session_load_poll(loading) == WICK_PENDING) wick_pause(s->device);
        status = wick_session_load_finish(loading, NULL);
    }
    /* A cache that may not grow has no room where others have it. */
    const bool has_no_room = status == WICK_ERR_OUT_OF_MEMORY && s->has_little_room;
    if (!has_no_room && is_done_or_lost(s, status, "load")) {
        a->follows = kept->follows;
        a->n_told = kept->n_told;
    } else {
        begin_again(s, a);
    }
}

static void step_model(scene *s) {
    wick_error error = {0};
    const wick_status status = wick_model_step(s->model, &error);
    if (status < 0) (void)is_done(s, status, error.message);
}

static void act(scene *s) {
    actor *const a = &s->actors[below(N_ACTORS)];
    const uint32_t what = below(64);
    if (!a->session) {
        if (what < 8) enter(s, a);
    } else if (what == 0) {
        leave(a);
    } else if (what == 1) {
        begin_again(s, a);
    } else if (what == 2) {
        wick_session_cancel(a->session);
    } else if (what == 3) {
        fork_actor(s, a, &s->actors[below(N_ACTORS)]);
    } else if (what == 4) {
        keep(s, a);
    } else if (what == 5) {
        load_kept(s, a);
    } else if (what == 6) {
        wick_model_trim(s->model);
    } else if (what < 30) {
        step_model(s);
    } else {
        (void)step_actor(s, a);
    }
}

/* --- What happens to them --- */

/* Memory is there for some more allocations, and then is not: for one of them, or until the next
 * change. */
static void change_memory(scene *s) {
    const uint32_t what = below(40);
    if (what > 3) return;
    s->heap.n_allowed = what == 0 ? UINT64_MAX : below(what == 1 ? 100 : 10);
    s->heap.refuses_once = what != 3;
}

static void lose(const scene *s) {
    if (s->device->desc.backend == WICK_BACKEND_NULL)
        wk_null_lose_after(s->device->handle, 1 + below(300));
    else
        (void)wk_webgpu_lose(s->device->handle); /* only Dawn can */
}

/* There is progress between two losses: else the model gives up. */
static void change_device(scene *s) {
    if (below(50) > 0 || s->n_told < s->told_then + 4 || wk_device_is_lost(s->device)) return;
    s->told_then = s->n_told;
    lose(s);
}

static void end_faults(scene *s) {
    s->heap.n_allowed = UINT64_MAX;
    if (s->device->desc.backend == WICK_BACKEND_NULL && !wk_device_is_lost(s->device))
        wk_null_lose_after(s->device->handle, 0);
}

static void run_program(scene *s) {
    const wick_backend backend = s->device->desc.backend;
    const uint64_t refused_before = s->heap.n_refused;
    seed_random(seed++);
    s->faults = below(4);
    if (backend != WICK_BACKEND_NULL && backend != WICK_BACKEND_WEBGPU)
        s->faults &= ~(uint32_t)LOSSES;
    s->n_failed = 0;
    for (uint32_t i = 0; i < N_ACTS; i++) {
        if (s->faults & REFUSALS) change_memory(s);
        if (s->faults & LOSSES) change_device(s);
        act(s);
    }
    end_faults(s);
    for (actor *a = s->actors; a < s->actors + N_ACTORS; a++) {
        while (a->session && step_actor(s, a)) continue;
        if (a->session) leave(a);
    }
    assert_true(s->n_failed <= s->heap.n_refused - refused_before);
    n_failures += s->n_failed;
    assert_int_equal(wick_device_error(s->device, NULL), WICK_OK);
}

/* --- Models and devices --- */

static void check_model(const char *path, bool has_head, wick_device_desc desc,
                        uint64_t cache_limit, int32_t device_layers) {
    static scene s;
    wick_error error = {0};
    const wick_model_desc model_desc = {
        .cache_limit = cache_limit, .device_layers = device_layers, .prediction_head = has_head};
    s = (scene){.has_head = has_head, .has_little_room = cache_limit > 0};
    checked_heap_init(&s.heap, UINT64_MAX);
    desc.allocator = s.heap.heap.hook;
    if (wick_device_open(&desc, &s.device, &error) != WICK_OK ||
        wick_model_open(s.device, path, &model_desc, &s.model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    seed_random(seed);
    make_texts(&s);
    const uint64_t n_scenes =
        WK_COUNT(models) * (desc.backend == WICK_BACKEND_WEBGPU ? 1 : N_SETUPS);
    for (uint64_t n = 0; n * n_scenes < n_programs || n == 0; n++) run_program(&s);
    free(s.kept.bytes);
    wick_device_stats stats;
    wick_device_get_stats(s.device, &stats);
    n_refused += s.heap.n_refused;
    n_lost += stats.n_losses;
    wick_model_close(s.model);
    assert_int_equal(wick_synchronize(s.device), WICK_OK);
    assert_int_equal(wick_device_trim(s.device, NULL, NULL), WICK_OK);
    wick_device_get_stats(s.device, &stats);
    if (desc.backend == WICK_BACKEND_CPU) assert_int_equal(stats.buffer_bytes, 0);
    wick_device_close(s.device);
    assert_int_equal(s.heap.n_live, 0);
    assert_int_equal(s.heap.n_wrong_sizes, 0);
}

/* device_layers 0: all of them. */
static void check_models(wick_device_desc desc, uint64_t cache_limit, int32_t device_layers) {
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024], with_head[64];
        const bool has_head = models[m][0] == '+';
        model_name = models[m];
        make_path(models[m] + has_head, path, sizeof path);
        snprintf(with_head, sizeof with_head, "/tmp/wick_sessions_%ld.gguf", (long)getpid());
        if (has_head) write_random_head(path, with_head);
        check_model(has_head ? with_head : path, has_head, desc, cache_limit, device_layers);
        (void)unlink(with_head);
    }
    model_name = NULL;
}

static int tell_where(void **state) {
    (void)state;
    if (model_name)
        print_message("in program %llu, of %s\n", (unsigned long long)seed - 1, model_name);
    return 0;
}

static void test_exact(void **state) {
    (void)state;
    wick_device_desc desc = device_desc();
    desc.math = WICK_MATH_EXACT;
    check_models(desc, 0, 0);
}

static void test_fast(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_CPU, .math = WICK_MATH_FAST}, 0, 0);
}

/* Room for the longest session alone: others lose what they have in the cache again and again. */
static void test_little_room(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_CPU, .math = WICK_MATH_EXACT}, 1, 0);
}

static void test_null(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_NULL}, 0, 0);
}

static void test_late(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_NULL,
                                    .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
                 0, 0);
}

/* Layers on the CPU and on a device: batches have two stages. */
static void test_placed(void **state) {
    (void)state;
    check_models((wick_device_desc){.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE}, 0,
                 1);
}

/* Takes --programs and --seed out of the arguments. */
static int take_options(int argc, char **argv) {
    int n = 1;
    for (int i = 1; i < argc; i++) {
        const char *value;
        if ((value = option_value(argc, argv, &i, "--programs")) != NULL)
            n_programs = strtoull(value, NULL, 10);
        else if ((value = option_value(argc, argv, &i, "--seed")) != NULL)
            seed = strtoull(value, NULL, 10);
        else
            argv[n++] = argv[i];
    }
    return n;
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(take_options(argc, argv), argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(test_exact, tell_where)};
    const struct CMUnitTest others[N_SETUPS - 1] = {
        cmocka_unit_test_teardown(test_fast, tell_where),
        cmocka_unit_test_teardown(test_little_room, tell_where),
        cmocka_unit_test_teardown(test_null, tell_where),
        cmocka_unit_test_teardown(test_late, tell_where),
        cmocka_unit_test_teardown(test_placed, tell_where)};
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chosen.backend == WICK_BACKEND_WEBGPU) return n_failed;
    const int n_others_failed = cmocka_run_group_tests(others, NULL, NULL);
    print_message("%llu allocations refused, %llu devices lost, %llu sessions failed\n",
                  (unsigned long long)n_refused, (unsigned long long)n_lost,
                  (unsigned long long)n_failures);
    bool has_seen_all = n_refused > 0 && n_lost > 0;
    for (int i = 0; i < 2; i++) {
        print_message("%llu of %llu guesses right%s\n", (unsigned long long)n_accepted[i],
                      (unsigned long long)n_drafted[i], i == 1 ? ", of short logits" : "");
        has_seen_all = has_seen_all && n_accepted[i] > 0 && n_drafted[i] > n_accepted[i];
    }
    return n_failed + n_others_failed + !has_seen_all;
}
