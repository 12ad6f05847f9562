/* Texts that begin alike: a session of any family goes on from what others have computed, with the
 * bits that it gives alone, and says how much that was; what was saved in a folder is found again.
 */
#include "golden/families.h"

#include <wick/wick.h>

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

static void make_prompt(scene *s) {
    wick_model_info info;
    wick_model_get_info(s->model, &info);
    s->n_vocab = info.n_vocab;
    /* A table of positions ends with the model's context. */
    s->n_prompt = strcmp(info.architecture, "gpt2") == 0 ? info.context_length - 50 : N_PROMPT;
    if (chosen.backend == WICK_BACKEND_WEBGPU) s->n_prompt = 150; /* its driver is slow here */
    for (uint32_t i = 0; i < s->n_prompt; i++) s->ids[i] = (i * 37 + i / 7 + 11) % info.n_vocab;
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
     * another last part: there is a snapshot before it, also where the texts have not parted yet.
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

static void check(const fixture *of, const wick_device_desc *desc) {
    char path[1200], name[128];
    snprintf(name, sizeof name, "families/%s.gguf", of->name);
    assert_true(fixture_path("WICK_SHARED_DATA", name, path, sizeof path));
    wick_device *device;
    scene s = {.model = NULL};
    wick_error error = {0};
    assert_int_equal(wick_device_open(desc, &device, NULL), WICK_OK);
    if (wick_model_open(device, path, NULL, &s.model, &error) != WICK_OK ||
        wick_model_open(device, path, NULL, &s.other, &error) != WICK_OK)
        fail_msg("%s", error.message);
    make_prompt(&s);
    check_turns(&s);
    wick_model_close(s.other);
    wick_model_close(s.model);
    wick_device_close(device);
}

static void test_fixture(void **state) {
    const fixture *const of = *state;
    if (of->is_encoder) skip();
    wick_device_desc desc = chosen;
    if (desc.backend == WICK_BACKEND_AUTO) desc.backend = WICK_BACKEND_CPU;
    desc.math = WICK_MATH_EXACT;
    check(of, &desc);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    return test_each_fixture("prefixes", test_fixture, chosen.backend == WICK_BACKEND_WEBGPU);
}
