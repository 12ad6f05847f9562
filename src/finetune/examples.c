/* finetune/examples.c: what is learned from: texts and conversations as tokens. */
#include "finetune/examples.h"

#include "core/checksum.h"
#include "core/json.h"

#include <inttypes.h>
#include <string.h>

static wick_status fail_memory(wick_error *err) { return wk_fail_memory(err, 0, "examples"); }

wick_status wick_examples_make(const wick_model *model, uint32_t context_length,
                               wick_examples **examples, wick_error *error) {
    if (examples != NULL) *examples = NULL;
    if (model == NULL || examples == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_examples_make: an argument is NULL");
    if (context_length < 2)
        return wk_fail(error, WICK_ERR_VALUE,
                       "examples of %" PRIu32
                       " tokens: at least 2, for a token is predicted from those before it",
                       context_length);
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_examples *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return fail_memory(error);
    made->heap = heap;
    made->model = model;
    made->context_length = context_length;
    *examples = made;
    return WICK_OK;
}

void wick_examples_free(wick_examples *examples) {
    if (examples == NULL) return;
    wick_examples *const e = examples;
    wick_template_free(e->template);
    wk_free(&e->heap, e->ids, e->capacity * sizeof *e->ids);
    wk_free(&e->heap, e->is_learned, e->capacity * sizeof *e->is_learned);
    wk_free(&e->heap, e->places, e->n_places * sizeof *e->places);
    wk_heap heap = e->heap; /* e lies in it */
    wk_free(&heap, e, sizeof *e);
}

void wick_examples_get_info(const wick_examples *examples, wick_examples_info *info) {
    if (info == NULL) return;
    *info = examples != NULL ? examples->info : (wick_examples_info){0};
}

wk_example wk_example_at(const wick_examples *examples, size_t i) {
    const wk_example_place *const place = &examples->places[i];
    return (wk_example){.ids = examples->ids + place->first,
                        .is_learned = examples->is_learned + place->first,
                        .n = place->n,
                        .n_learned = place->n_learned};
}

uint64_t wk_examples_checksum(const wick_examples *e) {
    uint64_t sum = wk_checksum(WK_CHECKSUM_BEGIN, &e->context_length, sizeof e->context_length);
    for (size_t i = 0; i < e->n; i++)
        sum = wk_checksum(sum, &e->places[i].n, sizeof e->places[i].n);
    sum = wk_checksum(sum, e->ids, e->n_ids * sizeof *e->ids);
    return wk_checksum(sum, e->is_learned, e->n_ids);
}

/* ---- Tokens ---- */

/* An example before it is cut off. */
typedef struct tokens {
    wk_heap *heap;
    uint32_t *ids;
    uint8_t *is_learned;
    size_t n, capacity;
} tokens;

static void free_tokens(tokens *t) {
    wk_free(t->heap, t->ids, t->capacity * sizeof *t->ids);
    wk_free(t->heap, t->is_learned, t->capacity * sizeof *t->is_learned);
    *t = (tokens){.heap = t->heap};
}

static bool grow(wk_heap *heap, void **items, size_t size, size_t capacity, size_t more) {
    void *const larger = wk_realloc(heap, *items, capacity * size, more * size);
    if (larger != NULL) *items = larger;
    return larger != NULL;
}

/* Room for n in both arrays, or in none: then they stay as they are. */
static bool grow_both(wk_heap *heap, uint32_t **ids, uint8_t **is_learned, size_t *capacity,
                      size_t n) {
    if (n <= *capacity) return true;
    const size_t more = n > 2 * *capacity ? n : 2 * *capacity;
    uint32_t *const new_ids = wk_alloc(heap, more * sizeof *new_ids);
    uint8_t *const new_learned = wk_alloc(heap, more);
    if (new_ids == NULL || new_learned == NULL) {
        wk_free(heap, new_ids, more * sizeof *new_ids);
        wk_free(heap, new_learned, more);
        return false;
    }
    if (*capacity > 0) {
        memcpy(new_ids, *ids, *capacity * sizeof *new_ids);
        memcpy(new_learned, *is_learned, *capacity);
    }
    wk_free(heap, *ids, *capacity * sizeof *new_ids);
    wk_free(heap, *is_learned, *capacity);
    *ids = new_ids;
    *is_learned = new_learned;
    *capacity = more;
    return true;
}

static wick_status reserve(tokens *t, size_t extra, wick_error *err) {
    const bool fits = grow_both(t->heap, &t->ids, &t->is_learned, &t->capacity, t->n + extra);
    return fits ? WICK_OK : fail_memory(err);
}

static wick_status tokenize(const wick_examples *e, tokens *t, const char *text, size_t size,
                            uint32_t flags, bool is_learned, wick_error *err) {
    size_t n = size / 2 + 16;
    for (;;) {
        WK_TRY(reserve(t, n, err));
        const size_t room = t->capacity - t->n;
        const wick_status status = wick_tokenize(wick_model_tokenizer(e->model), text, size, flags,
                                                 t->ids + t->n, room, &n);
        if (status != WICK_OK)
            return wk_fail(err, status, "a text cannot be tokenized: %s", wick_status_text(status));
        if (n <= room) break;
    }
    memset(t->is_learned + t->n, is_learned, n);
    t->n += n;
    return WICK_OK;
}

static wick_status add_end(const wick_examples *e, tokens *t, wick_error *err) {
    const uint32_t end = wick_token_end(wick_model_tokenizer(e->model));
    if (end == WICK_NO_TOKEN) return WICK_OK;
    WK_TRY(reserve(t, 1, err));
    t->ids[t->n] = end;
    t->is_learned[t->n++] = 1;
    return WICK_OK;
}

/* ---- Adding ---- */

static wick_status add_example(wick_examples *e, const uint32_t *ids, const uint8_t *is_learned,
                               size_t n_given, wick_error *err) {
    const bool is_cut = n_given > e->context_length;
    const uint32_t n = is_cut ? e->context_length : (uint32_t)n_given;
    uint32_t n_learned = 0;
    for (uint32_t i = 1; i < n; i++) n_learned += is_learned[i];
    e->info.n_cut += is_cut;
    if (n_learned == 0) {
        e->info.n_left_out++;
        return WICK_OK;
    }
    if (e->n == e->n_places) {
        const size_t more = e->n_places > 0 ? 2 * e->n_places : 64;
        if (!grow(&e->heap, (void **)&e->places, sizeof *e->places, e->n_places, more))
            return fail_memory(err);
        e->n_places = more;
    }
    if (!grow_both(&e->heap, &e->ids, &e->is_learned, &e->capacity, e->n_ids + n))
        return fail_memory(err);
    e->places[e->n++] = (wk_example_place){e->n_ids, n, n_learned};
    memcpy(e->ids + e->n_ids, ids, n * sizeof *ids);
    memcpy(e->is_learned + e->n_ids, is_learned, n);
    e->is_learned[e->n_ids] = 0; /* nothing stands before it */
    e->n_ids += n;
    e->info.n_examples++;
    e->info.n_tokens += n;
    e->info.n_learned += n_learned;
    return WICK_OK;
}

/* Pieces of context_length tokens. Each begins with the begin token, which is written over the last
 * token of the piece before it (that one was added already), or where the model wants none with
 * that last token itself. */
static wick_status cut_text(wick_examples *e, tokens *t, wick_error *err) {
    const uint32_t begin = wick_token_begin(wick_model_tokenizer(e->model));
    const bool has_begin = t->n > 0 && t->ids[0] == begin;
    const size_t step = e->context_length - 1;
    for (size_t i = 0; i + 1 < t->n; i += step) {
        const size_t left = t->n - i;
        if (has_begin) t->ids[i] = begin; /* it was learned in the example before */
        WK_TRY(add_example(e, t->ids + i, t->is_learned + i,
                           left < e->context_length ? left : e->context_length, err));
    }
    return WICK_OK;
}

wick_status wick_examples_add_text(wick_examples *examples, const char *text, size_t size,
                                   wick_error *error) {
    if (examples == NULL || (text == NULL && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_examples_add_text: an argument is NULL");
    tokens t = {.heap = &examples->heap};
    wick_status status = tokenize(examples, &t, text, size, WICK_TOKENIZE_ADD_BEGIN, true, error);
    if (status == WICK_OK) status = cut_text(examples, &t, error);
    free_tokens(&t);
    return status;
}

/* ---- Conversations ---- */

static wick_status render(wick_examples *e, const wk_json *messages, bool asks, tokens *out,
                          wick_error *err) {
    static const struct {
        const char *name;
        uint32_t (*find)(const wick_tokenizer *);
    } tokens_by_name[] = {{"bos_token", wick_token_begin}, {"eos_token", wick_token_end}};
    const wick_tokenizer *const tokenizer = wick_model_tokenizer(e->model);
    wk_json variables = {.kind = WK_JSON_OBJECT}, texts[2];
    for (size_t i = 0; i < 2; i++) {
        size_t size;
        const char *const text =
            wick_token_bytes(tokenizer, tokens_by_name[i].find(tokenizer), true, &size);
        if (text == NULL) continue;
        texts[i] = (wk_json){.kind = WK_JSON_STRING,
                             .key = wk_str_of(tokens_by_name[i].name),
                             .string = {text, size}};
        wk_json_append(&variables, &texts[i]);
    }
    const wick_conversation conversation = {.messages = messages,
                                            .variables = &variables,
                                            .generation_prompt = asks ? WICK_GENERATION_PROMPT_ON
                                                                      : WICK_GENERATION_PROMPT_OFF};
    wick_prompt *prompt;
    WK_TRY(wick_template_render(e->template, &conversation, &prompt, err));
    size_t n;
    (void)wick_prompt_text(prompt, &n);
    n += 2; /* a token is a byte at least, except in texts that are mostly unknown */
    wick_status status;
    out->n = 0;
    do {
        status = reserve(out, n, err);
        if (status == WICK_OK)
            status = wick_prompt_tokenize(prompt, tokenizer, out->ids, out->capacity, &n);
    } while (status == WICK_OK && n > out->capacity);
    wick_prompt_free(prompt);
    out->n = n;
    return status == WICK_OK ? WICK_OK
                             : wk_fail(err, status, "the conversation cannot be tokenized: %s",
                                       wick_status_text(status));
}

/* The messages up to and including before; asks: the text ends where an answer is to follow. */
static wick_status render_part(wick_examples *e, wk_json *messages, wk_json *before, bool asks,
                               tokens *out, wick_error *err) {
    const wk_json all = *messages;
    wk_json *const next = before->next;
    before->next = NULL;
    messages->last = before;
    messages->count = 0;
    for (const wk_json *item = messages->child; item != NULL; item = item->next) messages->count++;
    const wick_status status = render(e, messages, asks, out, err);
    before->next = next;
    *messages = all;
    return status;
}

static size_t common(const tokens *a, const tokens *b) {
    size_t i = 0;
    while (i < a->n && i < b->n && a->ids[i] == b->ids[i]) i++;
    return i;
}

/* The same from the end, of the first n of a. */
static size_t common_end(const tokens *a, size_t n, const tokens *b) {
    size_t i = 0;
    while (i < n && i < b->n && a->ids[n - 1 - i] == b->ids[b->n - 1 - i]) i++;
    return i;
}

/* A conversation whose answers are being looked for. */
typedef struct answered {
    wick_examples *e;
    wk_json *messages;
    const tokens *all;
    tokens part, other; /* of some of the messages */
    wick_error *err;
} answered;

/* Templates may write a question in another way while it is the last message (Mistral's put the
 * system's text before it): then the answer begins where the whole text is most like the end of
 * what asks for it. */
static wick_status find_begin(answered *a, wk_json *before, wk_json *answer, size_t *begin) {
    WK_TRY(render_part(a->e, a->messages, before, true, &a->part, a->err));
    WK_TRY(render_part(a->e, a->messages, before, false, &a->other, a->err));
    *begin = common(a->all, &a->part);
    if (*begin >= a->other.n) return WICK_OK;
    WK_TRY(render_part(a->e, a->messages, answer, false, &a->other, a->err));
    const size_t end = common(a->all, &a->other);
    size_t longest = common_end(a->all, *begin, &a->part);
    for (size_t at = *begin + 1; at <= end; at++) {
        const size_t n = common_end(a->all, at, &a->part);
        if (n <= longest) continue;
        *begin = at;
        longest = n;
    }
    return WICK_OK;
}

/* Templates may write an answer in another way while it is the last message (Qwen3's put an empty
 * thought before it): then it ends as that text does. */
static wick_status find_end(answered *a, wk_json *answer, size_t begin, size_t *end) {
    const tokens *const all = a->all, *const part = &a->part;
    WK_TRY(render_part(a->e, a->messages, answer, false, &a->part, a->err));
    *end = common(all, part);
    for (size_t n = part->n > begin ? part->n - begin : 0; begin + n > *end && n > 0; n--) {
        const bool fits = begin + n <= all->n;
        if (fits && memcmp(all->ids + begin, part->ids + part->n - n, n * sizeof *all->ids) == 0)
            *end = begin + n;
    }
    return WICK_OK;
}

/* An answer begins where the whole text differs from the text of the messages before it that asks
 * for an answer, and ends where it differs from the text that has the answer as its last message:
 *
 *   whole   <user>Hi</s><model>Hello</s><user>Bye</s>..
 *   asks    <user>Hi</s><model>
 *   ends    <user>Hi</s><model>Hello</s>                  so "Hello</s>" is learned */
static wick_status learn_answers(answered *a, uint8_t *is_learned) {
    wk_json *before = NULL;
    memset(is_learned, 0, a->all->n);
    for (wk_json *item = a->messages->child; item != NULL; before = item, item = item->next) {
        size_t begin, end;
        if (!wk_str_is(wk_json_get(item, "role")->string, "assistant") || before == NULL) continue;
        WK_TRY(find_begin(a, before, item, &begin));
        WK_TRY(find_end(a, item, begin, &end));
        if (end > begin) memset(is_learned + begin, 1, end - begin);
    }
    return WICK_OK;
}

static bool has_role(const wk_json *message) {
    const wk_json *const role = wk_json_get(message, "role");
    return role != NULL && role->kind == WK_JSON_STRING;
}

static wick_status add_conversation(wick_examples *e, wk_json *messages, tokens *t,
                                    wick_error *err) {
    size_t number = 1;
    for (const wk_json *item = messages->child; item != NULL; item = item->next, number++)
        if (!has_role(item))
            return wk_fail(err, WICK_ERR_FORMAT,
                           "message %zu of the conversation is not an object with a text 'role'",
                           number);
    if (e->template == NULL) WK_TRY(wick_model_template(e->model, NULL, &e->template, err));
    WK_TRY(render(e, messages, false, t, err));
    answered a = {.e = e,
                  .messages = messages,
                  .all = t,
                  .part = {.heap = &e->heap},
                  .other = {.heap = &e->heap},
                  .err = err};
    const wick_status status = learn_answers(&a, t->is_learned);
    free_tokens(&a.part);
    free_tokens(&a.other);
    return status;
}

/* ---- JSON ---- */

static bool get_text(const wk_json *object, const char *key, wk_str *out) {
    const wk_json *const value = wk_json_get(object, key);
    if (value == NULL || value->kind != WK_JSON_STRING) return false;
    *out = value->string;
    return true;
}

static wick_status read_object(wick_examples *e, const wk_json *object, tokens *t,
                               wick_error *err) {
    wk_str prompt, text;
    wk_json *const messages = (wk_json *)(uintptr_t)wk_json_get(object, "messages");
    if (messages != NULL && messages->kind == WK_JSON_ARRAY && messages->child != NULL)
        return add_conversation(e, messages, t, err);
    if (get_text(object, "prompt", &prompt) && get_text(object, "completion", &text)) {
        WK_TRY(tokenize(e, t, prompt.text, prompt.size, WICK_TOKENIZE_ADD_BEGIN, false, err));
        WK_TRY(tokenize(e, t, text.text, text.size, WICK_TOKENIZE_CONTINUE, true, err));
    } else if (get_text(object, "text", &text)) {
        WK_TRY(tokenize(e, t, text.text, text.size, WICK_TOKENIZE_ADD_BEGIN, true, err));
    } else {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "an example is an object with \"messages\", with a \"prompt\" and a "
                       "\"completion\", or with a \"text\"");
    }
    return add_end(e, t, err);
}

wick_status wick_examples_add_json(wick_examples *examples, const char *text, size_t size,
                                   wick_error *error) {
    if (examples == NULL || text == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_examples_add_json: an argument is NULL");
    wick_examples *const e = examples;
    tokens t = {.heap = &e->heap};
    wk_arena arena;
    wk_json *object;
    wk_arena_init(&arena, &e->heap, 4096);
    wick_status status = wk_json_parse(&arena, text, size, &object, error);
    if (status == WICK_OK) status = read_object(e, object, &t, error);
    if (status == WICK_OK) status = add_example(e, t.ids, t.is_learned, t.n, error);
    free_tokens(&t);
    wk_arena_release(&arena);
    return status;
}

static bool is_blank(const char *text, size_t size) {
    while (size > 0 && strchr(" \t\r", text[size - 1]) != NULL) size--;
    return size == 0;
}

wick_status wick_examples_add_json_lines(wick_examples *examples, const char *text, size_t size,
                                         wick_error *error) {
    if (examples == NULL || (text == NULL && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT,
                       "wick_examples_add_json_lines: an argument is NULL");
    size_t number = 0;
    for (size_t at = 0; at < size;) {
        const char *const end = memchr(text + at, '\n', size - at);
        const size_t length = end != NULL ? (size_t)(end - (text + at)) : size - at;
        wick_error reason = {.status = WICK_OK};
        number++;
        if (!is_blank(text + at, length) &&
            wick_examples_add_json(examples, text + at, length, &reason) != WICK_OK)
            return wk_fail(error, reason.status, "line %zu: %s", number, reason.message);
        at += length + 1;
    }
    return WICK_OK;
}
