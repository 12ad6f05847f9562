/* api/generate.c: the texts that a request asks for, from their sessions to the answer. See api.h.
 */
#include "api/api.h"

#include "chat/scan.h"
#include "sample/logprobs.h"
#include "sys/clock.h"

#include <math.h>
#include <string.h>

static void free_choice(wk_api_choice *choice) {
    wick_answer_close(choice->answer);
    wk_strbuf_release(&choice->content);
    wk_strbuf_release(&choice->reasoning);
    wk_strbuf_release(&choice->calls);
    wk_strbuf_release(&choice->tokens);
    wk_strbuf_release(&choice->logprobs);
    wk_strbuf_release(&choice->blanks);
}

wick_status wk_texts_make(wick_exchange *x, wick_error *err) {
    enum { MOST = 128 };
    const uint32_t n = x->n_prompts * x->n;
    if (n > MOST)
        return wk_fail(err, WICK_ERR_VALUE, "a request may ask for %d texts, not for %u", MOST, n);
    x->choices = wk_arena_array(&x->arena, n, sizeof *x->choices);
    if (!x->choices) return wk_fail_memory(err, n * sizeof *x->choices, "a request");
    x->n_choices = n;
    for (uint32_t i = 0; i < n; i++) {
        wk_api_choice *const choice = &x->choices[i];
        *choice = (wk_api_choice){.exchange = x, .index = i, .prompt = &x->prompts[i / x->n]};
        wk_strbuf *const buffers[] = {&choice->content, &choice->reasoning, &choice->calls,
                                      &choice->tokens,  &choice->logprobs,  &choice->blanks};
        for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
            wk_strbuf_init(buffers[b], x->heap);
    }
    return WICK_OK;
}

void wk_texts_close(wick_exchange *x) {
    for (uint32_t i = 0; i < x->n_choices; i++) wk_slot_leave(&x->choices[i], false);
}

void wk_texts_free(wick_exchange *x) {
    for (uint32_t i = 0; i < x->n_choices; i++) free_choice(&x->choices[i]);
}

/* To read the prompt alone, for what the model makes of its tokens. */
static wick_status open_scoring(wk_api_choice *choice, wick_error *err) {
    wick_session_desc desc = choice->exchange->api->session;
    const uint32_t *const ids = choice->prompt->ids;
    desc.logits = WICK_LOGITS_ALL;
    desc.context_shift = false;
    desc.n_keep = 0;
    WK_TRY(wk_slot_take(choice, &desc, err));
    choice->is_scoring = true;
    const wick_logprob first = {.id = ids[0], .logprob = NAN};
    wk_logprobs_keep(choice, &first, 1);
    return WICK_OK;
}

static wick_status open_choice(wk_api_choice *choice, wick_error *err) {
    wick_exchange *const x = choice->exchange;
    wick_session_desc desc = x->desc;
    if (x->echoes && x->has_logprobs && !choice->has_scored && choice->prompt->n > 0)
        return open_scoring(choice, err);
    if (desc.sampler.seed > 0 && (desc.sampler.seed += choice->index) < choice->index)
        desc.sampler.seed++; /* past 0, which would be no seed */
    WK_TRY(wk_slot_take(choice, &desc, err));
    const bool is_json = desc.sampler.json_schema && !x->must_call;
    if (!x->style->is_chat || is_json) return WICK_OK; /* nothing is a tag or a call */
    wick_answer_desc answer = {.has_tools = x->tools != NULL};
    answer.prompt = wick_prompt_text(x->rendered, &answer.prompt_size);
    const wick_status opened = wick_answer_open(&answer, &choice->answer);
    return opened == WICK_OK ? WICK_OK : wk_fail_memory(err, 0, "an answer");
}

/* It has the only call that the request allows. */
static bool has_called(const wk_api_choice *choice) {
    return choice->exchange->has_one_call && choice->n_calls > 0;
}

/* Blanks wait for what follows: models write them around thoughts and calls. */
static void put_content(wk_api_choice *choice, wk_str text) {
    wk_strbuf *const held = &choice->blanks;
    size_t n = text.size;
    while (n > 0 && wk_scan_is_blank(text.text[n - 1])) n--;
    wk_strbuf_append(held, text.text, text.size);
    if (n == 0 || held->failed) return;
    n += held->size - text.size;
    wk_str said = {held->data, n};
    if (choice->after_mark && (!choice->has_said || choice->exchange->style->has_blocks))
        said = wk_scan_trim(said);
    choice->exchange->style->text(choice, false, said);
    choice->has_said = true;
    choice->after_mark = false;
    held->size -= n;
    memmove(held->data, held->data + n, held->size);
}

/* Blanks before a thought or a call belong to it; one of them keeps content apart from more. */
static void pass_mark(wk_api_choice *choice) {
    const bool may_go_on = choice->has_said && !choice->exchange->style->has_blocks;
    choice->after_mark = true;
    if (!may_go_on || choice->blanks.size > 0) choice->blanks.size = may_go_on;
}

/* Blanks at the end are content, unless a call came or nothing else since a thought. */
static void end_content(wk_api_choice *choice) {
    const wk_str blanks = {choice->blanks.data, choice->blanks.size};
    if (blanks.size > 0 && choice->n_calls == 0 && !choice->after_mark)
        choice->exchange->style->text(choice, false, blanks);
}

static void put_span(wk_api_choice *choice, const wick_answer_span *span) {
    if (span->open) put_content(choice, wk_str_of(span->open));
    put_content(choice, (wk_str){span->text, span->size});
    if (span->close) put_content(choice, wk_str_of(span->close));
}

/* A call that makes no sense is content, and so is any where there are no tools: nothing is lost.
 */
static void take_call(wk_api_choice *choice, const wick_answer_span *span) {
    wick_exchange *const x = choice->exchange;
    wk_arena scratch;
    wk_arena_init(&scratch, x->heap, 4096);
    const wk_str text = {span->text, span->size};
    wk_tool_call *calls;
    const wick_status status =
        x->tools ? wk_tool_calls_read(&scratch, span->format, text, x->tools, &calls)
                 : WICK_ERR_FORMAT;
    choice->calls.failed |= status == WICK_ERR_OUT_OF_MEMORY;
    if (status == WICK_OK) {
        pass_mark(choice);
        for (; calls && !has_called(choice); calls = calls->next) {
            x->style->call(choice, calls);
            choice->n_calls++;
        }
    } else {
        put_span(choice, span);
    }
    wk_arena_release(&scratch);
}

/* Reasoning that is content has its tags. */
static void take_reasoning(wk_api_choice *choice, const wick_answer_span *span) {
    const wick_exchange *const x = choice->exchange;
    choice->is_thinking = !span->close;
    choice->has_thought = true;
    if (x->reasoning != WICK_REASONING_APART) {
        put_span(choice, span);
        return;
    }
    pass_mark(choice);
    if (span->size > 0) x->style->text(choice, true, (wk_str){span->text, span->size});
}

static void take_spans(wk_api_choice *choice) {
    wick_answer_span span;
    while (!has_called(choice) && wick_answer_next(choice->answer, &span)) {
        if (span.kind == WICK_ANSWER_CALL)
            take_call(choice, &span);
        else if (span.kind == WICK_ANSWER_REASONING)
            take_reasoning(choice, &span);
        else
            put_span(choice, &span);
    }
}

static wick_status take_text(wk_api_choice *choice, const wick_event *event) {
    const wick_exchange *const x = choice->exchange;
    if (event->logprobs && x->has_logprobs)
        wk_logprobs_keep(choice, event->logprobs, event->n_logprobs);
    if (x->keeps_tokens && event->kind == WICK_EVENT_TOKEN)
        wk_write_whole(&choice->tokens, event->token);
    if (!choice->answer) {
        if (event->text_size > 0)
            x->style->text(choice, false, (wk_str){event->text, event->text_size});
        return WICK_OK;
    }
    WK_TRY(wick_answer_feed(choice->answer, event->text, event->text_size));
    choice->has_thought = choice->is_thinking;
    take_spans(choice);
    choice->n_reasoning += event->kind == WICK_EVENT_TOKEN && choice->has_thought;
    return WICK_OK;
}

static void count_choice(wk_totals *totals, const wick_session_stats *stats) {
    totals->n_prompt += stats->n_prompt - stats->n_reused;
    totals->n_cached += stats->n_reused;
    totals->n_generated += stats->n_generated;
    totals->n_drafted += stats->n_drafted;
    totals->n_accepted += stats->n_accepted;
    if (stats->n_context > totals->n_most) totals->n_most = stats->n_context;
    totals->prompt_seconds += stats->prompt_seconds;
    totals->generate_seconds += stats->generate_seconds;
}

static void end_choice(wk_api_choice *choice, wick_end_reason reason) {
    choice->is_over = true;
    choice->reason = reason;
    wick_answer_finish(choice->answer);
    if (choice->answer) take_spans(choice);
    end_content(choice);
    wk_choice_get_stats(choice, &choice->stats);
    count_choice(&choice->exchange->api->totals, &choice->stats);
    choice->exchange->style->end(choice);
    wk_slot_leave(choice, true);
}

static void count_token(wk_api_choice *choice) {
    wk_totals *const totals = &choice->exchange->api->totals;
    if (choice->last_ns > 0)
        wk_histogram_add(&totals->between, wk_seconds_since(choice->last_ns));
    else
        wk_histogram_add(&totals->first, wk_seconds_since(choice->exchange->opened_ns));
    choice->last_ns = wk_clock_ns();
}

static bool has_failed(const wk_api_choice *choice) {
    return choice->content.failed || choice->reasoning.failed || choice->calls.failed ||
           choice->blanks.failed || choice->tokens.failed || choice->logprobs.failed ||
           choice->exchange->out.failed;
}

/* The logits after a token of the prompt: what they give the next one. */
static wick_status score(wk_api_choice *choice, const wick_event *event, wick_error *err) {
    enum { MOST = 21 };
    const wk_ids *const prompt = choice->prompt;
    const uint32_t next = event->position + 1;
    wick_logprob found[MOST];
    if (event->kind == WICK_EVENT_LOGITS && next < prompt->n) {
        wk_logprobs_find(event->logits,
                         wick_tokenizer_size(choice->exchange->api->model->tokenizer),
                         prompt->ids[next], choice->exchange->n_top, found);
        wk_logprobs_keep(choice, found, choice->exchange->n_top + 1);
    }
    if (event->kind != WICK_EVENT_END) return WICK_OK;
    choice->is_scoring = false;
    choice->has_scored = true;
    wk_slot_leave(choice, false);
    WK_TRY(open_choice(choice, err));
    if (choice->exchange->has_no_tokens) end_choice(choice, WICK_END_MAX_TOKENS);
    return WICK_OK;
}

/* First what the cache had of the prompt, before anything was computed. */
static void show_progress(wk_api_choice *choice, const wick_event *event) {
    const wick_exchange *const x = choice->exchange;
    wick_session_stats *const stats = &choice->stats;
    if (!x->is_stream || !x->shows_progress || !x->style->progress) return;
    wk_choice_get_stats(choice, stats);
    const double seconds = stats->prompt_seconds;
    if (!choice->has_progress && stats->n_reused < event->done) {
        stats->n_prompt = stats->n_reused;
        stats->prompt_seconds = 0;
        x->style->progress(choice, stats->n_reused, event->total);
    }
    choice->has_progress = true;
    stats->n_prompt = event->done;
    stats->prompt_seconds = seconds;
    x->style->progress(choice, event->done, event->total);
}

/* One event of a choice that has a session. */
static wick_status step_choice(wk_api_choice *choice, wick_error *err) {
    wick_event event;
    const wick_status status = wick_session_step(choice->session, &event);
    if (status == WICK_PENDING) return WICK_OK;
    if (status != WICK_OK) return wick_session_error(choice->session, err);
    if (choice->is_scoring) return score(choice, &event, err);
    if (event.kind == WICK_EVENT_PROMPT) show_progress(choice, &event);
    if (event.kind == WICK_EVENT_END) choice->stop = event.stop;
    wick_status taken = WICK_OK;
    if (event.kind == WICK_EVENT_TOKEN || event.kind == WICK_EVENT_END)
        taken = take_text(choice, &event);
    if (event.kind == WICK_EVENT_TOKEN) count_token(choice);
    if (event.kind == WICK_EVENT_END)
        end_choice(choice, event.reason);
    else if (has_called(choice))
        end_choice(choice, WICK_END_TOKEN);
    if (taken != WICK_OK || has_failed(choice)) return wk_fail_memory(err, 0, "an answer");
    return WICK_OK;
}

void wk_texts_step(wick_exchange *x) {
    uint32_t n_over = 0;
    for (uint32_t i = 0; i < x->n_choices; i++) {
        wk_api_choice *const choice = &x->choices[i];
        wick_error err = {.status = WICK_OK};
        const wick_status status = choice->session ? step_choice(choice, &err) : WICK_OK;
        if (status != WICK_OK) {
            wk_exchange_break(x, status, &err);
            return;
        }
        n_over += choice->is_over;
    }
    if (n_over < x->n_choices) return;
    wk_exchange_stop(x);
    x->style->finish(x);
}

void wk_texts_open(wick_exchange *x) {
    for (uint32_t i = 0; i < x->n_choices && wk_count_free(x->api) > 0; i++) {
        wk_api_choice *const choice = &x->choices[i];
        wick_error err = {.status = WICK_OK};
        if (choice->session || choice->is_over) continue;
        const wick_status status = open_choice(choice, &err);
        if (status != WICK_OK) {
            wk_exchange_break(x, status, &err);
            return;
        }
        if (i == 0 && x->is_stream && x->style->begin) x->style->begin(x);
        if (x->has_no_tokens && !choice->is_scoring) end_choice(choice, WICK_END_MAX_TOKENS);
    }
}
