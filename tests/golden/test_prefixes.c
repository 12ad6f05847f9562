/* Texts that begin alike: a session of any family goes on from what others have computed, with the
 * bits that it gives alone, and says how much that was; what was saved in a folder is found again.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */

#include "golden/families.h"

#include "core/checksum.h"
#include "llm/runner_struct.h"
#include "llm/session_struct.h"
#include "random_bits.h"

#include <wick/wick.h>

#include <stdlib.h>
#include <unistd.h>

enum { N_PROMPT = 600, N_ANSWER = 6, N_NEW = 9, CONTEXT = 700, CHUNK = 128 };

static wick_device_desc chosen; /* backend AUTO: the CPU */

typedef struct answer {
    wick_logprob tokens[N_ANSWER];
} answer;

typedef struct scene {
    wick_model *model, *other; /* the same, which nothing else is computed with */
    uint32_t n_vocab, n_prompt, n_reused;
    uint32_t ids[CONTEXT];
    answer got;
} scene;

static void fail_with(const wick_session *session) {
    wick_error error = {0};
    (void)wick_session_error(session, &error);
    fail_msg("%s", error.message);
}

static wick_session *open_session(const scene *s, bool no_reuse) {
    const wick_session_desc desc = {.context_length = s->n_prompt + 100,
                                    .chunk_length = CHUNK,
                                    .max_tokens = N_ANSWER,
                                    .ignore_end = true,
                                    .n_logprobs = 1,
                                    .no_reuse = no_reuse};
    wick_session *session;
    wick_error error = {0};
    if (wick_session_open(no_reuse ? s->other : s->model, &desc, &session, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return session;
}

static answer read_answer(wick_session *session) {
    answer a;
    uint32_t n = 0;
    wick_event event = {.kind = WICK_EVENT_PENDING};
    while (event.kind != WICK_EVENT_END) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with(session);
        if (event.kind == WICK_EVENT_TOKEN) a.tokens[n++] = event.logprobs[0];
    }
    assert_int_equal(n, N_ANSWER);
    return a;
}

static answer answer_alone(const scene *s, uint32_t n) {
    wick_session *const session = open_session(s, true);
    if (wick_session_append_tokens(session, s->ids, n) != WICK_OK) fail_with(session);
    const answer a = read_answer(session);
    wick_session_close(session);
    return a;
}

/* The first n ids in a session, which is NULL: a new one. What it gives has to be what they give
 * alone. */
static void ask(scene *s, wick_session *session, uint32_t n) {
    const answer want = answer_alone(s, n);
    wick_session *const own = session ? session : open_session(s, false);
    wick_session_stats before, after;
    wick_session_get_stats(own, &before);
    if (wick_session_sync_tokens(own, s->ids, n) != WICK_OK) fail_with(own);
    s->got = read_answer(own);
    wick_session_get_stats(own, &after);
    s->n_reused = after.n_reused - before.n_reused;
    if (!session) wick_session_close(own);
    for (uint32_t i = 0; i < N_ANSWER; i++) {
        assert_int_equal(s->got.tokens[i].id, want.tokens[i].id);
        assert_memory_equal(&s->got.tokens[i].logprob, &want.tokens[i].logprob, sizeof(float));
    }
}

/* The answer becomes part of the text, and other tokens follow. */
static uint32_t go_on(scene *s, uint32_t n) {
    for (uint32_t i = 0; i < N_ANSWER; i++) s->ids[n++] = s->got.tokens[i].id;
    for (uint32_t i = 0; i < N_NEW; i++) s->ids[n + i] = ((n + i) * 31 + 7) % s->n_vocab;
    return n + N_NEW;
}

static void make_prompt(scene *s, uint32_t first) {
    wick_model_info info;
    wick_model_get_info(s->model, &info);
    s->n_vocab = info.n_vocab;
    s->n_prompt = has_position_table(info.architecture) ? info.context_length - 50 : N_PROMPT;
    if (chosen.backend == WICK_BACKEND_WEBGPU) s->n_prompt = 150; /* its driver is slow here */
    for (uint32_t i = 0; i < s->n_prompt; i++) s->ids[i] = (i * 37 + i / 7 + first) % info.n_vocab;
}

static void check_turns(scene *s) {
    const uint32_t n = s->n_prompt;
    ask(s, NULL, n);
    assert_int_equal(s->n_reused, 0);
    /* The second turn computes its new tokens alone; the last of the answer was not computed. */
    const uint32_t n_second = go_on(s, n);
    ask(s, NULL, n_second);
    assert_int_equal(s->n_reused, n + N_ANSWER - 1);
    wick_session *const session = open_session(s, false);
    const uint32_t n_third = go_on(s, n_second);
    ask(s, session, n_third);
    assert_int_equal(s->n_reused, n_second + N_ANSWER - 1);
    /* Back to the second turn in the same session, with another end; then to the first prompt, with
     * another last part: there is a snapshot before it, also before the texts differ.
     */
    s->ids[n_second - 1] ^= 1;
    ask(s, session, n_second);
    assert_true(s->n_reused >= n);
    const uint32_t at = n - 60;
    s->ids[at] ^= 1;
    ask(s, session, n);
    assert_true(s->n_reused >= (at >= 512 ? 512 : 0));
    /* From now on the place where they part is known. */
    s->ids[at] ^= 3;
    wick_session_reset(session);
    ask(s, session, n);
    assert_int_equal(s->n_reused, at);
    wick_session_close(session);
}

/* --- Saved --- */

typedef struct bytes {
    unsigned char *data; /* [size] */
    size_t size;
} bytes;

static wick_status append(void *user, const void *data, size_t size, wick_error *error) {
    (void)error;
    bytes *const to = user;
    to->data = realloc(to->data, to->size + size);
    assert_non_null(to->data);
    memcpy(to->data + to->size, data, size);
    to->size += size;
    return WICK_OK;
}

static wick_status end_moving(const wick_model *model, wick_prefixes *prefixes) {
    wick_error error = {0};
    while (wick_prefixes_poll(prefixes) == WICK_PENDING) wick_pause(wick_model_device(model));
    const wick_status status = wick_prefixes_finish(prefixes, &error);
    if (status < 0) assert_true(error.status == status && error.message[0] != '\0');
    return status;
}

static bytes save(wick_model *model) {
    bytes saved = {.data = NULL};
    wick_prefixes *prefixes;
    assert_int_equal(wick_prefixes_save_start(model, append, &saved, &prefixes, NULL), WICK_OK);
    assert_int_equal(end_moving(model, prefixes), WICK_OK);
    return saved;
}

static wick_status load(wick_model *model, const bytes *saved, size_t size) {
    wick_prefixes *prefixes;
    wick_source source = wick_source_memory(saved->data, size);
    source.is_sequential = true; /* they are read twice */
    assert_int_equal(wick_prefixes_load_start(model, source, &prefixes, NULL), WICK_OK);
    assert_int_equal(end_moving(model, prefixes), WICK_ERR_UNSUPPORTED);
    source.is_sequential = false;
    assert_int_equal(wick_prefixes_load_start(model, source, &prefixes, NULL), WICK_OK);
    return end_moving(model, prefixes);
}

static void set_checksum(const bytes *saved) {
    const size_t n = saved->size - sizeof(uint64_t);
    const uint64_t sum = wk_checksum(WK_CHECKSUM_BEGIN, saved->data, n);
    memcpy(saved->data + n, &sum, sizeof sum);
}

/* Cut or changed anywhere: refused, and where the checksum is right, no crash. */
static void check_damage(wick_model *model, const bytes *saved) {
    for (uint32_t i = 0; i < 12; i++) {
        assert_true(load(model, saved, (size_t)(random_bits() % saved->size)) < 0);
        unsigned char *const at = saved->data + random_bits() % (i < 6 ? 200 : saved->size);
        const unsigned char before = *at;
        *at ^= (unsigned char)(1 + random_bits() % 255);
        assert_int_equal(load(model, saved, saved->size), WICK_ERR_FORMAT);
        set_checksum(saved);
        (void)load(model, saved, saved->size);
        *at = before;
        set_checksum(saved);
    }
    saved->data[16] ^= 1; /* the checksum of the model */
    set_checksum(saved);
    assert_int_equal(load(model, saved, saved->size), WICK_ERR_MISMATCH);
    saved->data[16] ^= 1;
    set_checksum(saved);
}

/* error is clear again. */
static void expect_refused(wick_status status, wick_status want, wick_error *error,
                           const char *words) {
    assert_int_equal(status, want);
    if (strstr(error->message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, error->message);
    *error = (wick_error){.status = WICK_OK};
}

/* Arguments that are NULL, a source of too few bytes, what is given up, and sessions that go on
 * while prefixes are saved. */
static void check_misuse(scene *s, const bytes *saved) {
    wick_prefixes *prefixes;
    wick_error error = {0};
    bytes unused = {.data = NULL};
    const wick_source source = wick_source_memory(saved->data, 10);
    expect_refused(wick_prefixes_save_start(s->model, NULL, NULL, &prefixes, &error),
                   WICK_ERR_ARGUMENT, &error, "save_start: an argument is NULL");
    expect_refused(wick_prefixes_load_start(NULL, source, &prefixes, &error), WICK_ERR_ARGUMENT,
                   &error, "load_start: an argument is NULL");
    assert_null(prefixes);
    expect_refused(wick_prefixes_finish(NULL, &error), WICK_ERR_ARGUMENT, &error, "is NULL");
    assert_int_equal(wick_prefixes_load_start(s->model, source, &prefixes, &error), WICK_OK);
    assert_int_equal(wick_prefixes_poll(prefixes), WICK_ERR_FORMAT);
    expect_refused(wick_prefixes_finish(prefixes, &error), WICK_ERR_FORMAT, &error,
                   "not saved prefixes");
    assert_int_equal(wick_prefixes_save_start(s->model, append, &unused, &prefixes, NULL), WICK_OK);
    assert_int_equal(wick_prefixes_poll(prefixes), WICK_PENDING);
    expect_refused(wick_prefixes_finish(prefixes, &error), WICK_ERR_CANCELLED, &error, "given up");
    assert_int_equal(wick_prefixes_save_start(s->model, append, &unused, &prefixes, NULL), WICK_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(wick_prefixes_poll(prefixes), WICK_PENDING);
    wick_session *const session = open_session(s, false);
    wick_event event;
    assert_int_equal(wick_session_append_tokens(session, s->ids, 8), WICK_OK);
    do assert_int_equal(wick_session_next(session, &event), WICK_OK);
    while (event.kind != WICK_EVENT_TOKEN);
    wick_session_close(session);
    assert_int_equal(wick_prefixes_poll(prefixes), WICK_ERR_STATE);
    expect_refused(wick_prefixes_finish(prefixes, &error), WICK_ERR_STATE, &error, "went on");
    free(unused.data);
}

/* What the text had in the one model, it has in another one that has loaded it. */
static void check_saved(scene *s, wick_model *fresh) {
    char folder[] = "/tmp/wick_prefixes_XXXXXX", command[64];
    wick_error error = {0};
    ask(s, NULL, s->n_prompt);
    const uint32_t n = go_on(s, s->n_prompt);
    ask(s, NULL, n);
    assert_int_equal(s->n_reused, s->n_prompt + N_ANSWER - 1);
    bytes saved = save(s->model);
    check_damage(fresh, &saved);
    static bool is_checked; /* once: it is the same for all */
    if (!is_checked) check_misuse(s, &saved);
    is_checked = true;
    wick_model_trim(fresh);
    assert_non_null(mkdtemp(folder));
    assert_int_equal(wick_model_load_prefixes(fresh, folder, &error), WICK_ERR_NOT_FOUND);
    if (wick_model_save_prefixes(s->model, folder, &error) != WICK_OK)
        fail_msg("%s", error.message);
    if (wick_model_load_prefixes(fresh, folder, &error) != WICK_OK) fail_msg("%s", error.message);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    wick_model *const before = s->model;
    s->model = fresh;
    ask(s, NULL, go_on(s, n));
    assert_int_equal(s->n_reused, n + N_ANSWER - 1);
    s->model = before;
    free(saved.data);
}

/* With room for two: the one that was not found for the longest time goes. */
static void check_oldest(const scene *s) {
    static const uint32_t ids[3][4] = {{1, 2, 3, 4}, {1, 2, 3, 5}, {2, 2, 3, 4}};
    const uint64_t key = 77, budget = s->other->snapshot_budget;
    wick_session *const session = open_session(s, true);
    wk_runner *const runner = session->sequence->runner;
    if (wk_snapshot_size(runner, 4, 0) > 0) {
        wk_snapshots_drop(runner);
        for (int i = 0; i < 2; i++) assert_non_null(wk_snapshot_add(runner, key, ids[i], 4, 0));
        s->other->snapshot_budget = runner->snapshots.bytes;
        assert_non_null(wk_snapshot_find(runner, key, ids[0], 4, 0));
        assert_non_null(wk_snapshot_add(runner, key, ids[2], 4, 0));
        assert_non_null(wk_snapshot_find(runner, key, ids[0], 4, 0));
        assert_null(wk_snapshot_find(runner, key, ids[1], 4, 0));
        s->other->snapshot_budget = budget;
        wk_snapshots_drop(runner);
    }
    wick_session_close(session);
}

static void check(const fixture *of, const wick_device_desc *desc) {
    wick_device *device;
    scene s = {.model = NULL};
    wick_error error = {0};
    assert_int_equal(wick_device_open(desc, &device, NULL), WICK_OK);
    if (wick_model_open(device, of->path, NULL, &s.model, &error) != WICK_OK ||
        wick_model_open(device, of->path, NULL, &s.other, &error) != WICK_OK)
        fail_msg("%s", error.message);
    wick_model *fresh;
    assert_int_equal(wick_model_open(device, of->path, NULL, &fresh, &error), WICK_OK);
    make_prompt(&s, 11);
    check_turns(&s);
    make_prompt(&s, 12);
    check_saved(&s, fresh);
    check_oldest(&s);
    wick_model_close(fresh);
    wick_model_close(s.other);
    wick_model_close(s.model);
    wick_device_close(device);
}

static void test_fixture(void **state) {
    const fixture *const of = *state;
    if (of->is_encoder) return; /* an encoder generates nothing */
    wick_device_desc desc = chosen;
    if (desc.backend == WICK_BACKEND_AUTO) desc.backend = WICK_BACKEND_CPU;
    desc.math = WICK_MATH_EXACT;
    check(of, &desc);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const bool is_gpu = chosen.backend == WICK_BACKEND_WEBGPU;
    return test_some_fixtures("prefixes", test_fixture, is_gpu ? 6 : tests_all() ? 1 : 3);
}
