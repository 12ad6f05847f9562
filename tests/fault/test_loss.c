/* Devices that are lost, anywhere: the text goes on as if nothing had been; where it cannot, the
 * status is WICK_ERR_DEVICE_LOST with a sentence, nothing leaks and a reset starts again. On the
 * null backend, which says so at once or, late, swallows commands until it is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amount.h"
#include "null_place.h"

/* --- A session --- */

static wick_session *begin(wick_model *model, const wick_session_desc *desc) {
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    if (wick_session_open(model, desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    return session;
}

static void fail_with_error(const wick_session *session) {
    wick_error error = {.status = WICK_OK};
    (void)wick_session_error(session, &error);
    fail_msg("%s", error.message);
}

/* One event; false: it was the last. */
static bool go_on(wick_session *session, told *it) {
    wick_event event;
    if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
    hear(it, &event);
    return event.kind != WICK_EVENT_END;
}

static void check_same(const told *got, const told *want) {
    if (got->size != want->size || memcmp(got->text, want->text, want->size) != 0)
        fail_msg("it goes '%.*s', not '%.*s'", (int)got->size, got->text, (int)want->size,
                 want->text);
    assert_int_equal(got->n_tokens, want->n_tokens);
    assert_int_equal(got->reason, want->reason);
}

static uint64_t weights_checksum; /* of what wanted() has told */

static const told *wanted(size_t teller) {
    static told all[N_TELLERS];
    told *const want = &all[teller];
    if (want->n_tokens > 0) return want;
    place p;
    open_place(&p, false);
    weights_checksum = p.model->weights_checksum;
    wick_session *const session = begin(p.model, &tellers[teller]);
    while (go_on(session, want)) continue;
    assert_int_equal(want->n_tokens, 200);
    wick_session_close(session);
    close_place(&p);
    return want;
}

/* --- Lost while it generates --- */

static uint32_t draw(uint64_t *state, uint32_t n) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 33) % n;
}

/* In about ten tokens of 200, at any of the calls that a token takes. */
static void lose_at_random(size_t teller, bool is_late, uint64_t seed) {
    place p;
    told got = {.size = 0};
    open_place(&p, is_late);
    wick_session *const session = begin(p.model, &tellers[teller]);
    uint32_t next = draw(&seed, 19);
    uint64_t n = 0;
    while (go_on(session, &got)) {
        if (got.n_tokens < next || n == 20) continue;
        wk_null_lose_after(p.device->handle, 1 + draw(&seed, 150));
        next = got.n_tokens + 3 + draw(&seed, 6);
        n++;
    }
    check_same(&got, wanted(teller));
    assert_int_equal(n, 20);
    /* Some lie within one token, or one batch, some after the end. */
    assert_true(n_losses(&p) >= (tellers[teller].speculate == WICK_SPECULATE_AHEAD ? 8U : 15U));
    wick_session_close(session);
    close_place(&p);
}

static void test_random_tokens(void **state) {
    (void)state;
    for (size_t teller = 0; teller < N_TELLERS; teller++)
        for (int is_late = 0; is_late < 2; is_late++)
            if (tests_all() || (size_t)is_late == teller % 2)
                lose_at_random(teller, is_late, 5 * teller + (uint64_t)is_late);
}

/* --- Lost at every call --- */

/* Loading and a short text, the n-th call being the device's last; false: there were fewer.
 */
static bool lose_at(uint32_t n, bool is_late) {
    static const wick_session_desc desc = {
        .context_length = 64, .max_tokens = 6, .chunk_length = 8};
    place p;
    wick_device_desc on = null_desc(&p, is_late);
    on.null_lose_after = n;
    open_device(&p, &on);
    lose_each_after(&p, 0);
    p.model = load(&p);
    wick_session *const session = begin(p.model, &desc);
    told got = {.size = 0};
    while (go_on(session, &got)) continue;
    assert_int_equal(got.n_tokens, 6);
    assert_true(got.size <= wanted(0)->size);
    assert_memory_equal(got.text, wanted(0)->text, got.size);
    assert_true(p.model->weights_checksum == weights_checksum);
    const bool was_lost = n_losses(&p) > 0;
    assert_true(n_losses(&p) <= 1);
    assert_int_equal(wick_device_error(p.device, NULL), WICK_OK);
    wick_session_close(session);
    close_place(&p);
    return was_lost;
}

static void test_every_call(void **state) {
    (void)state;
    uint32_t n = 1;
    while (lose_at(n, n % 2 != 0)) n += n < 60 ? case_step(3, 7) : case_step(7, 23);
    assert_true(n > 500);
    print_message("lost at each of %u calls\n", n);
}

/* --- Lost again and again --- */

/* The text on devices that each last for n_calls; false: it was given up. */
static bool goes_on_after(size_t teller, uint32_t n_calls) {
    place p;
    told got = {.size = 0};
    wick_event event = {.kind = WICK_EVENT_PENDING};
    open_place(&p, false);
    wick_session *const session = begin(p.model, &tellers[teller]);
    lose_each_after(&p, n_calls);
    wk_null_lose_after(p.device->handle, 1);
    wick_status status = WICK_OK;
    while (status == WICK_OK && event.kind != WICK_EVENT_END) {
        status = wick_session_next(session, &event);
        if (status == WICK_OK) hear(&got, &event);
    }
    if (status == WICK_OK) check_same(&got, wanted(teller));
    assert_true(n_losses(&p) >= 3);
    wick_session_close(session);
    close_place(&p);
    return status == WICK_OK;
}

/* Each device gives a few tokens and goes: there is progress, so it goes on to the end. Guesses
 * need no device that lasts longer. */
static void test_in_a_row_with_progress(void **state) {
    (void)state;
    assert_true(goes_on_after(0, 5000));
    uint32_t n = 1000;
    while (!goes_on_after(0, n)) n += 100;
    for (size_t i = 0; i < N_TELLERS; i++)
        if (tellers[i].speculate == WICK_SPECULATE_AHEAD) assert_true(goes_on_after(i, n + 100));
}

/* No device lives long enough to load the model, or to compute a token. */
static void give_up(uint32_t n_calls, bool is_late) {
    place p;
    told got = {.size = 0};
    open_place(&p, is_late);
    wick_session *const session = begin(p.model, &tellers[0]);
    while (got.n_tokens < 5) assert_true(go_on(session, &got));
    lose_each_after(&p, n_calls);
    wk_null_lose_after(p.device->handle, 20);
    wick_event event;
    wick_status status;
    while ((status = wick_session_next(session, &event)) == WICK_OK) hear(&got, &event);
    assert_int_equal(status, WICK_ERR_DEVICE_LOST);
    assert_int_equal(wick_session_step(session, &event), WICK_ERR_DEVICE_LOST);
    assert_true(n_losses(&p) >= 3); /* more where there was progress */
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_session_error(session, &error), WICK_ERR_DEVICE_LOST);
    assert_non_null(strstr(error.message, "taken away"));
    assert_non_null(strstr(error.message, "given up after 3 attempts"));

    lose_each_after(&p, 0);
    wick_session_reset(session);
    assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    got = (told){.size = 0};
    while (go_on(session, &got)) continue;
    check_same(&got, wanted(0));
    wick_session_close(session);
    close_place(&p);
}

static void test_too_often(void **state) {
    (void)state;
    give_up(1, false);
    give_up(10, true);
    give_up(30, false);
    give_up(300, true);
}

/* --- Loading --- */

static void test_loading_too_often(void **state) {
    (void)state;
    for (int is_late = 0; is_late < 2; is_late++) {
        place p;
        wick_device_desc desc = null_desc(&p, is_late);
        desc.null_lose_after = 7;
        open_device(&p, &desc);
        wick_model *model;
        wick_error error = {.status = WICK_OK};
        assert_int_equal(wick_model_open(p.device, stories_path(), NULL, &model, &error),
                         WICK_ERR_DEVICE_LOST);
        assert_null(model);
        assert_non_null(strstr(error.message, "given up"));
        close_place(&p);
    }
}

static void push_all(wick_push_source *push) {
    static char piece[4096];
    FILE *const file = fopen(stories_path(), "rb");
    assert_non_null(file);
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;)
        assert_int_equal(wick_source_push(push, piece, n), WICK_OK);
    fclose(file);
    wick_source_push_finish(push);
}

/* What came from a stream is gone with the device. */
static void test_stream(void **state) {
    (void)state;
    for (uint32_t n = 0; n < 20; n += 19) {
        place p;
        wick_device_desc desc = null_desc(&p, false);
        desc.null_lose_after = n;
        open_device(&p, &desc);
        wick_source source;
        wick_push_source *push;
        wick_model_loading *loading;
        wick_error error = {.status = WICK_OK};
        assert_int_equal(wick_source_push_make(WICK_SIZE_UNKNOWN, &source, &push), WICK_OK);
        push_all(push);
        assert_int_equal(wick_model_open_start(p.device, source, NULL, &loading, &error), WICK_OK);
        while (wick_model_open_poll(loading, NULL) == WICK_PENDING) continue;
        const wick_status status = wick_model_open_finish(loading, &p.model, &error);
        assert_int_equal(status, n > 0 ? WICK_ERR_DEVICE_LOST : WICK_OK);
        if (n == 0) {
            wick_session *const session = begin(p.model, &tellers[0]);
            wk_null_lose_after(p.device->handle, 30);
            wick_event event;
            while (wick_session_next(session, &event) == WICK_OK) continue;
            assert_int_equal(wick_session_error(session, &error), WICK_ERR_DEVICE_LOST);
            assert_non_null(strstr(error.message, "stream"));
            wick_session_close(session);
        }
        close_place(&p);
    }
}

/* Everything may be closed while it is being brought back. */
static void test_closed_on_the_way(void **state) {
    (void)state;
    for (int n = 0; n < 12; n++) {
        place p;
        open_place(&p, false);
        wick_session *const session = begin(p.model, &tellers[0]);
        told got = {.size = 0};
        while (got.n_tokens < 3) assert_true(go_on(session, &got));
        wk_null_lose_after(p.device->handle, 1);
        wick_event event;
        uint64_t n_steps = 0;
        for (uint64_t before = n_losses(&p); n_steps < (uint64_t)n;) {
            assert_int_equal(wick_session_step(session, &event), WICK_OK);
            if (n < 3 || n_losses(&p) > before) n_steps++; /* before or after it is opened */
        }
        wick_session_close(session);
        close_place(&p);
    }
}

/* --- Several at once --- */

/* Two sessions of one model and one of another: each brings back what it needs. */
static void test_several(void **state) {
    (void)state;
    for (int is_late = 0; is_late < 2; is_late++) {
        place p;
        open_place(&p, is_late);
        wick_model *const other = load(&p);
        wick_session *const sessions[] = {begin(p.model, &tellers[0]), begin(p.model, &tellers[1]),
                                          begin(other, &tellers[2])};
        static told got[3];
        memset(got, 0, sizeof got);
        bool goes_on = true;
        uint64_t seed = 3;
        for (uint32_t next = 30; goes_on;) {
            goes_on = false;
            for (int i = 0; i < 3; i++) {
                wick_event event;
                if (wick_session_step(sessions[i], &event) != WICK_OK) fail_with_error(sessions[i]);
                if (got[i].reason != WICK_END_NONE) continue;
                hear(&got[i], &event);
                goes_on = true;
            }
            if (got[0].n_tokens + got[1].n_tokens + got[2].n_tokens < next) continue;
            wk_null_lose_after(p.device->handle, 1 + draw(&seed, 200));
            next += 100;
        }
        for (size_t i = 0; i < 3; i++) {
            check_same(&got[i], wanted(i));
            wick_session_close(sessions[i]);
        }
        assert_true(n_losses(&p) >= 3);
        wick_model_close(other);
        close_place(&p);
    }
}

static void lose_and_recover(const place *p) {
    wick_status recovery;
    wk_null_lose_after(p->device->handle, 1);
    assert_int_equal(wk_device_check(p->device), WICK_ERR_DEVICE_LOST);
    while ((recovery = wk_device_recover(p->device)) == WICK_PENDING) continue;
    assert_int_equal(recovery, WICK_OK);
}

/* A batch is under way when somebody else sees the loss and brings the device back. */
static void test_recovered_by_others(void **state) {
    (void)state;
    uint32_t n_running = 0;
    for (int n = 1; n < 12; n++) {
        place p;
        open_place(&p, n % 2 != 0);
        wick_session *const session = begin(p.model, &tellers[0]);
        told got = {.size = 0};
        wick_event event;
        while (got.n_tokens < 3) assert_true(go_on(session, &got));
        for (int i = 0; i < n; i++) {
            assert_int_equal(wick_session_step(session, &event), WICK_OK);
            hear(&got, &event);
        }
        n_running += event.kind == WICK_EVENT_PENDING;
        lose_and_recover(&p);
        while (got.n_tokens < 20) assert_true(go_on(session, &got));
        assert_true(got.size <= wanted(0)->size);
        assert_memory_equal(got.text, wanted(0)->text, got.size);
        assert_int_equal(n_losses(&p), 1);
        wick_session_close(session);
        close_place(&p);
    }
    assert_true(n_running > 3);
}

/* A session may be opened, and reset, while the device is lost. */
static void test_opened_on_a_lost_device(void **state) {
    (void)state;
    place p;
    open_place(&p, false);
    wick_session *const first = begin(p.model, &tellers[0]);
    told got = {.size = 0};
    while (got.n_tokens < 3) assert_true(go_on(first, &got));
    wk_null_lose_after(p.device->handle, 5);
    wick_event event;
    while (!wk_device_is_lost(p.device))
        assert_int_equal(wick_session_step(first, &event), WICK_OK);
    wick_session *const second = begin(p.model, &tellers[1]);
    wick_session_reset(first);
    assert_int_equal(wick_session_append_text(first, prompt), WICK_OK);
    got = (told){.size = 0};
    while (go_on(first, &got)) continue;
    check_same(&got, wanted(0));
    got = (told){.size = 0};
    while (go_on(second, &got)) continue;
    check_same(&got, wanted(1));
    wick_session_close(first);
    wick_session_close(second);
    close_place(&p);
}

/* --- Loading a session --- */

typedef struct saved {
    unsigned char data[1 << 19];
    size_t size;
} saved;

static wick_status keep(void *user, const void *bytes, size_t size, wick_error *error) {
    saved *const to = user;
    (void)error;
    assert_true(size <= sizeof to->data - to->size);
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
    return WICK_OK;
}

static void save(wick_session *session, saved *to) {
    wick_session_saving *saving;
    to->size = 0;
    assert_int_equal(wick_session_save_start(session, keep, to, &saving, NULL), WICK_OK);
    while (wick_session_save_poll(saving) == WICK_PENDING) continue;
    assert_int_equal(wick_session_save_finish(saving, NULL), WICK_OK);
}

/* Loses the device after n polls and opens it again; false: there were no more than these. */
static bool lose_while_loading(place *p, wick_session *session, const saved *from, uint32_t n) {
    wick_session_loading *loading;
    wick_error error = {.status = WICK_OK};
    const wick_source source = wick_source_memory(from->data, from->size);
    assert_int_equal(wick_session_load_start(session, source, &loading, NULL), WICK_OK);
    wick_status status = WICK_PENDING;
    for (uint32_t i = 0; i < n && status == WICK_PENDING; i++)
        status = wick_session_load_poll(loading);
    const bool is_loaded = status == WICK_OK;
    if (!is_loaded) lose_and_recover(p); /* as by another session */
    while (status == WICK_PENDING) status = wick_session_load_poll(loading);
    assert_int_equal(wick_session_load_finish(loading, &error), status);
    if (status == WICK_OK) return !is_loaded; /* all rows were there */
    assert_int_equal(status, WICK_ERR_DEVICE_LOST);
    assert_string_equal(error.message, "the device was lost while the session was being loaded");
    return true;
}

static void test_lost_while_loading(void **state) {
    (void)state;
    static saved kept;
    place p;
    open_place(&p, false);
    wick_session *const session = begin(p.model, &tellers[0]);
    told got = {.size = 0};
    while (got.n_tokens < 3) assert_true(go_on(session, &got));
    save(session, &kept);
    uint32_t n = 0;
    while (lose_while_loading(&p, session, &kept, n)) {
        wick_session_reset(session);
        assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
        got = (told){.size = 0};
        while (go_on(session, &got)) continue;
        check_same(&got, wanted(0));
        n++;
    }
    assert_true(n > 6); /* the header, tokens, logits, two parts of rows and more */
    wick_session_close(session);
    close_place(&p);
}

/* --- Prefixes --- */

static void end_prefixes(wick_prefixes *prefixes, wick_status want, const char *says) {
    wick_error error = {.status = WICK_OK};
    while (wick_prefixes_poll(prefixes) == WICK_PENDING) continue;
    assert_int_equal(wick_prefixes_finish(prefixes, &error), want);
    if (!strstr(error.message, says)) fail_msg("'%s' is not in '%s'", says, error.message);
}

/* They are of a cache that went with the device: none are saved or loaded before a session has
 * computed on the new one. */
static void test_prefixes(void **state) {
    (void)state;
    static saved kept, rest;
    place p;
    open_place(&p, false);
    wick_session *const session = begin(p.model, &tellers[0]);
    wick_prefixes *prefixes;
    told got = {.size = 0};
    while (got.n_tokens < 80) assert_true(go_on(session, &got));
    assert_int_equal(wick_prefixes_save_start(p.model, keep, &kept, &prefixes, NULL), WICK_OK);
    end_prefixes(prefixes, WICK_OK, "");
    assert_int_equal(wick_prefixes_save_start(p.model, keep, &rest, &prefixes, NULL), WICK_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(wick_prefixes_poll(prefixes), WICK_PENDING);
    lose_and_recover(&p);
    end_prefixes(prefixes, WICK_ERR_DEVICE_LOST, "the device was lost while prefixes were saved");
    const wick_source source = wick_source_memory(kept.data, kept.size);
    assert_int_equal(wick_prefixes_load_start(p.model, source, &prefixes, NULL), WICK_OK);
    end_prefixes(prefixes, WICK_ERR_STATE, "while no session computes");
    while (go_on(session, &got)) continue;
    check_same(&got, wanted(0));
    assert_int_equal(wick_prefixes_load_start(p.model, source, &prefixes, NULL), WICK_OK);
    end_prefixes(prefixes, WICK_OK, "");
    wick_session_close(session);
    close_place(&p);
}

/* --- Prompts and logits --- */

static uint32_t hash_of(const float *logits, uint32_t n) {
    uint32_t hash = 2166136261U, word;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&word, &logits[i], sizeof word);
        hash = (hash ^ word) * 16777619U;
    }
    return hash;
}

/* The logits of every position, each once; lose: calls until the device goes, 0: never. */
static uint32_t read_logits(uint32_t lose, bool is_late, uint32_t *rows) {
    static const wick_session_desc desc = {
        .context_length = 64, .chunk_length = 4, .logits = WICK_LOGITS_ALL};
    place p;
    open_place(&p, is_late);
    wick_session *const session = begin(p.model, &desc);
    wk_null_lose_after(p.device->handle, lose);
    uint32_t n = 0, done = 0;
    wick_event event;
    do {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_PROMPT) {
            assert_true(event.done > done);
            done = event.done;
        }
        if (event.kind != WICK_EVENT_LOGITS) continue;
        assert_int_equal(event.position, n);
        rows[n++] = hash_of(event.logits, 512);
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(n_losses(&p), lose > 0);
    assert_int_equal(wick_device_error(p.device, NULL), WICK_OK);
    wick_session_close(session);
    close_place(&p);
    return n;
}

static void test_logits(void **state) {
    (void)state;
    uint32_t want[64], got[64];
    const uint32_t n = read_logits(0, false, want);
    assert_true(n > 8);
    for (uint32_t lose = 1; lose < 200; lose += 13) {
        assert_int_equal(read_logits(lose, lose % 2 != 0, got), n);
        assert_memory_equal(got, want, n * sizeof *want);
    }
}

/* Rows of logits that were not shown make way for another session's batch where there is no memory
 * to keep them: they are computed again, each is shown once. */
static void test_rows_without_memory(void **state) {
    (void)state;
    static const wick_session_desc desc = {
        .context_length = 64, .chunk_length = 8, .logits = WICK_LOGITS_ALL};
    uint32_t want[64], got[64], n_got = 0;
    const uint32_t n = read_logits(0, false, want);
    place p;
    open_place(&p, false);
    wick_session *const other = begin(p.model, &tellers[0]);
    told text = {.size = 0};
    while (text.n_tokens < 3) assert_true(go_on(other, &text));
    wick_session *const session = begin(p.model, &desc);
    wick_event event = {.kind = WICK_EVENT_PENDING};
    for (uint64_t n_refused = 0; event.kind != WICK_EVENT_END;) {
        const bool is_short = n_got == 0; /* the first row finds no memory for the others */
        p.heap.n_allowed = is_short && event.kind == WICK_EVENT_PROMPT ? 0 : UINT64_MAX;
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_LOGITS) {
            assert_int_equal(event.position, n_got);
            got[n_got++] = hash_of(event.logits, 512);
        }
        if (n_refused > 0 || p.heap.n_refused == 0) continue;
        n_refused = p.heap.n_refused;
        p.heap.refuses_once = true;
        while (p.heap.n_refused == n_refused) assert_true(go_on(other, &text));
        assert_int_equal(n_got, 1);
    }
    assert_int_equal(p.heap.n_refused, 2);
    assert_int_equal(n_got, n);
    assert_memory_equal(got, want, n * sizeof *want);
    while (go_on(other, &text)) continue;
    check_same(&text, wanted(0));
    wick_session_close(session);
    wick_session_close(other);
    close_place(&p);
}

/* What a sync keeps is what was computed, whether the device has been lost since or not. */
static void test_sync(void **state) {
    (void)state;
    place p;
    open_place(&p, false);
    wick_session *const session = begin(p.model, &tellers[0]);
    told got = {.size = 0};
    while (got.n_tokens < 20) assert_true(go_on(session, &got));
    size_t n;
    uint32_t ids[64];
    const uint32_t *const tokens = wick_session_tokens(session, &n);
    n -= 10;
    memcpy(ids, tokens, n * sizeof *ids);
    wk_null_lose_after(p.device->handle, 1);
    assert_int_equal(wick_session_sync_tokens(session, ids, n), WICK_OK);
    got = (told){.size = 0};
    while (got.n_tokens < 40) assert_true(go_on(session, &got));
    assert_int_equal(n_losses(&p), 1);
    const size_t first = (size_t)(strstr(wanted(0)->text, got.text) - wanted(0)->text);
    assert_true(first > 0 && first < wanted(0)->size);
    wick_session_close(session);
    close_place(&p);
}

/* --- Memory that is short --- */

/* A buffer that is refused ends the session; a reset starts again. Nor is there a model where all
 * layers have to be on the device. */
static void test_out_of_memory(void **state) {
    (void)state;
    uint32_t n_failed = 0;
    for (uint32_t n = 1; n < 200; n += case_step(3, 3)) {
        place p;
        wick_device_desc desc = null_desc(&p, n % 2 != 0);
        desc.null_refused = n;
        open_device(&p, &desc);
        wick_error error = {.status = WICK_OK};
        wick_session *session = NULL;
        const wick_model_desc whole = {.device_layers = INT32_MAX};
        wick_status status = wick_model_open(p.device, stories_path(), &whole, &p.model, &error);
        if (status == WICK_OK) status = wick_session_open(p.model, &tellers[0], &session, &error);
        if (status == WICK_OK) {
            wick_event event = {.kind = WICK_EVENT_PENDING};
            assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
            for (uint32_t i = 0; i < 5 && status == WICK_OK;) {
                status = wick_session_next(session, &event);
                i += event.kind == WICK_EVENT_TOKEN;
            }
            if (status != WICK_OK) (void)wick_session_error(session, &error);
        }
        if (status != WICK_OK) {
            n_failed++;
            assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
            assert_int_equal(error.status, WICK_ERR_OUT_OF_MEMORY);
            assert_true(error.bytes_requested > 0);
        }
        if (session && status != WICK_OK) {
            wick_session_reset(session);
            assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
            told got = {.size = 0};
            while (go_on(session, &got)) continue;
            check_same(&got, wanted(0));
        }
        const bool is_over = status == WICK_OK;
        wick_session_close(session);
        close_place(&p);
        if (is_over) break;
    }
    assert_true(n_failed > 10);
    print_message("%u buffers refused\n", n_failed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_tokens),
        cmocka_unit_test(test_every_call),
        cmocka_unit_test(test_in_a_row_with_progress),
        cmocka_unit_test(test_too_often),
        cmocka_unit_test(test_loading_too_often),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_closed_on_the_way),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_recovered_by_others),
        cmocka_unit_test(test_opened_on_a_lost_device),
        cmocka_unit_test(test_lost_while_loading),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_rows_without_memory),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
