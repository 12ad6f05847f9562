/* api/prefill.c: where an answer begins: in the last message where that is the assistant's, as
 * llama-server, vLLM and Anthropic have it, or after the thinking. See api.h. */
#include "api/api.h"

#include "chat/answer.h"
#include "text/prompt.h"

#include <string.h>

/* What the request says: true, "content" (the same), false. */
static wick_status read_wish(const wick_exchange *x, bool *is_said, bool *goes_on,
                             wick_error *err) {
    const wk_json *const given = wk_request_field(x, "continue_final_message");
    *is_said = given != NULL;
    if (!given) return WICK_OK;
    *goes_on = wk_json_is(given, "content") || given->boolean;
    if (given->kind == WK_JSON_BOOL || wk_json_is(given, "content")) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE, "continue_final_message must be true, false or content");
}

static bool can_go_on(const wk_json *message) {
    const wk_json *const calls = wk_json_get(message, "tool_calls");
    return wk_json_is(wk_json_get(message, "role"), "assistant") &&
           wk_json_get(message, "content")->string.size > 0 && (!calls || calls->count == 0);
}

wick_status wk_request_prefill(wick_exchange *x, wick_error *err) {
    const bool chooses_begin = wk_request_field(x, "add_generation_prompt") != NULL;
    bool is_said, goes_on = false;
    wk_json *before = NULL;
    const wk_json *const last = x->messages->last;
    for (wk_json *at = x->messages->child; at != last; at = at->next) before = at;
    WK_TRY(read_wish(x, &is_said, &goes_on, err));
    if (goes_on && chooses_begin && !x->has_no_answer_begun)
        return wk_fail(err, WICK_ERR_VALUE,
                       "add_generation_prompt and continue_final_message exclude each other");
    if (goes_on && !can_go_on(last))
        return wk_fail(err, WICK_ERR_VALUE,
                       "continue_final_message: the last message must be the assistant's, with a "
                       "content and without tool_calls");
    if (!is_said) goes_on = !chooses_begin && can_go_on(last);
    if (!goes_on) return WICK_OK;
    if (before && wk_json_is(wk_json_get(before, "role"), "assistant"))
        return wk_fail(err, WICK_ERR_VALUE,
                       "messages: the last two are the assistant's; an answer goes on with one");
    x->begun = wk_json_get(last, "content")->string;
    x->has_no_answer_begun = false;
    wk_json_drop(x->messages, last);
    return WICK_OK;
}

/* A template that begins to think in the model's place: that is over before there is content. One
 * that begins a header: content has the channel for it. */
static wick_status begin_content(wick_prompt *prompt) {
    size_t size;
    const char *const text = wick_prompt_text(prompt, &size);
    const wk_mark *const mark = wk_mark_at_end(text, size);
    if (!mark) return WICK_OK;
    const bool is_thought = mark->kind == WK_MARK_REASONING;
    const bool is_named = strcmp(mark->open, "<|channel|>") == 0;
    const char *const first = is_thought ? mark->close : is_named ? "" : "<|channel|>";
    WK_TRY(wk_prompt_append(prompt, wk_str_of(first), true));
    return wk_prompt_append(prompt, wk_str_of(is_thought ? "\n\n" : "final<|message|>"), true);
}

/* JSON is all that a schema allows: no header, and no end of a thought. */
wick_status wk_prefill_append(wick_exchange *x, wick_error *err) {
    const bool has_begun = x->begun.text != NULL;
    wick_status status = WICK_OK;
    if (has_begun || x->desc.sampler.json_schema) status = begin_content(x->rendered);
    if (status == WICK_OK && has_begun) status = wk_prompt_append(x->rendered, x->begun, false);
    return status == WICK_OK ? WICK_OK : wk_fail_memory(err, x->begun.size, "a prompt");
}
