/* chat/answer.c: a model's text, as it comes, to content, reasoning and calls of tools. */
#include "chat/answer.h"

#include "chat/call.h"
#include "chat/scan.h"
#include "core/compiler.h"
#include "core/json_write.h"
#include "core/str.h"
#include "text/unicode/unicode.h"

#include <string.h>

const wk_mark wk_marks[WK_N_MARKS] = {
    {"<think>", "</think>", WK_MARK_REASONING, WICK_CALL_NONE},
    {"[THINK]", "[/THINK]", WK_MARK_REASONING, WICK_CALL_NONE},
    {"<seed:think>", "</seed:think>", WK_MARK_REASONING, WICK_CALL_NONE},
    {"<|channel>thought", "<channel|>", WK_MARK_REASONING, WICK_CALL_NONE},
    {"<|START_THINKING|>", "<|END_THINKING|>", WK_MARK_REASONING, WICK_CALL_NONE},
    {"<|START_RESPONSE|>", NULL, WK_MARK_FRAME, WICK_CALL_NONE},
    {"<|END_RESPONSE|>", NULL, WK_MARK_FRAME, WICK_CALL_NONE},
    {"<|channel|>", NULL, WK_MARK_HEADER, WICK_CALL_NONE},
    {"<|start|>assistant", NULL, WK_MARK_HEADER, WICK_CALL_NONE},
    {"<|channel|>analysis<|message|>", "<|end|>", WK_MARK_REASONING, WICK_CALL_NONE},
    {"<|end|>", NULL, WK_MARK_FRAME, WICK_CALL_NONE},
    {"<tool_call>", "</tool_call>", WK_MARK_CALL, WICK_CALL_HERMES},
    {"<seed:tool_call>", "</seed:tool_call>", WK_MARK_CALL, WICK_CALL_SEED},
    {"<|tool_call|>", "<|/tool_call|>", WK_MARK_CALL, WICK_CALL_PIPES},
    {"<|python_tag|>", NULL, WK_MARK_CALL, WICK_CALL_PYTHON_TAG},
    {"[TOOL_CALLS]", NULL, WK_MARK_CALL, WICK_CALL_MISTRAL},
    {"<function=", "</function>", WK_MARK_CALL, WICK_CALL_FUNCTION},
    {"<|tool_call_start|>", "<|tool_call_end|>", WK_MARK_CALL, WICK_CALL_LIST},
    {"<function_calls>", "</function_calls>", WK_MARK_CALL, WICK_CALL_LIST},
    {"<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "calls\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "calls\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     WK_MARK_CALL, WICK_CALL_DEEPSEEK},
    {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", WK_MARK_CALL, WICK_CALL_KIMI},
    {"<|tool_call>", "<tool_call|>", WK_MARK_CALL, WICK_CALL_BRACES},
    {"<minimax:tool_call>", "</minimax:tool_call>", WK_MARK_CALL, WICK_CALL_INVOKE},
    {"<\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9C"
     "function_calls>",
     "</\xEF\xBD\x9C"
     "DSML\xEF\xBD\x9C"
     "function_calls>",
     WK_MARK_CALL, WICK_CALL_INVOKE},
    {"<|START_ACTION|>", "<|END_ACTION|>", WK_MARK_CALL, WICK_CALL_PIPES},
    {"<TOOLCALL>", "</TOOLCALL>", WK_MARK_CALL, WICK_CALL_PIPES},
    {"<tool_calls>", "</tool_calls>", WK_MARK_CALL, WICK_CALL_PIPES},
    {"<|tools_prefix|>", "<|tools_suffix|>", WK_MARK_CALL, WICK_CALL_KEYED},
    {"functools[", NULL, WK_MARK_CALL, WICK_CALL_FUNCTOOLS},
};
/* An answer that is JSON and nothing else. */
static const wk_mark bare_call = {"", NULL, WK_MARK_CALL, WICK_CALL_JSON};
/* What a header names a recipient for. */
static const wk_mark channel_call = {"<|channel|>commentary to=", "<|call|>", WK_MARK_CALL,
                                     WICK_CALL_CHANNEL};

struct wick_answer {
    wk_heap heap;
    wk_strbuf text;
    size_t taken;          /* bytes of text that are in spans */
    size_t looked;         /* bytes after them where no tag begins */
    const wk_mark *inside; /* NULL: content */
    bool is_opened;        /* inside has been entered; no span says so yet */
    bool is_said;          /* content, not only blanks, has come since the last call or thought */
    bool may_be_bare;      /* no content has come yet; JSON would be a call */
    bool in_header;        /* no text has come yet; the prompt began a message's header */
    bool follows_function; /* nothing but blanks has come since a call by <function= */
    bool is_over;          /* no more text comes */
    wick_answer_span last;
    wk_arena arena; /* of the tools */
    wk_json *tools; /* NULL: not known */
    wk_strbuf calls;
};

/* ---- Opening and feeding ---- */

const wk_mark *wk_mark_at_end(const char *prompt, size_t size) {
    while (size > 0 && (prompt[size - 1] == ' ' || prompt[size - 1] == '\n')) size--;
    for (size_t i = 0; i < WK_N_MARKS; i++) {
        const wk_mark *const mark = &wk_marks[i];
        const size_t n = strlen(mark->open);
        if ((mark->kind == WK_MARK_REASONING || mark->kind == WK_MARK_HEADER) && n <= size &&
            memcmp(prompt + size - n, mark->open, n) == 0)
            return mark;
    }
    return NULL;
}

wick_status wick_answer_open(const wick_answer_desc *desc, wick_answer **answer) {
    static const wick_answer_desc defaults;
    if (!answer) return WICK_ERR_ARGUMENT;
    if (!desc) desc = &defaults;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_answer *const made = wk_alloc_zeroed(&heap, sizeof *made);
    *answer = made;
    if (!made) return WICK_ERR_OUT_OF_MEMORY;
    made->heap = heap;
    wk_strbuf_init(&made->text, &made->heap);
    wk_strbuf_init(&made->calls, &made->heap);
    wk_arena_init(&made->arena, &made->heap, 1024);
    const wk_mark *const mark = wk_mark_at_end(desc->prompt, desc->prompt ? desc->prompt_size : 0);
    made->in_header = mark && mark->kind == WK_MARK_HEADER;
    made->inside = made->in_header ? NULL : mark;
    made->is_opened = made->inside != NULL;
    made->may_be_bare = desc->has_tools || (desc->tools && desc->tools->child);
    if (!desc->tools) return WICK_OK;
    made->tools = wk_arena_alloc(&made->arena, sizeof *made->tools);
    if (made->tools && wk_json_copy(&made->arena, desc->tools, made->tools)) return WICK_OK;
    wick_answer_close(made);
    *answer = NULL;
    return WICK_ERR_OUT_OF_MEMORY;
}

void wick_answer_close(wick_answer *answer) {
    if (!answer) return;
    wk_strbuf_release(&answer->text);
    wk_strbuf_release(&answer->calls);
    wk_arena_release(&answer->arena);
    wk_heap heap = answer->heap;
    wk_free(&heap, answer, sizeof *answer);
}

wick_status wick_answer_feed(wick_answer *answer, const char *text, size_t size) {
    if (!answer || (!text && size > 0)) return WICK_ERR_ARGUMENT;
    if (answer->is_over) return WICK_ERR_STATE;
    answer->last = (wick_answer_span){.kind = WICK_ANSWER_CONTENT}; /* its text may move */
    wk_strbuf *const to = &answer->text;
    if (answer->taken > 0) {
        to->size -= answer->taken;
        memmove(to->data, to->data + answer->taken, to->size);
        answer->taken = 0;
    }
    wk_strbuf_append(to, text, size);
    const bool has_failed = to->failed;
    to->failed = false;
    return has_failed ? WICK_ERR_OUT_OF_MEMORY : WICK_OK;
}

void wick_answer_finish(wick_answer *answer) {
    if (answer) answer->is_over = true;
}

/* ---- Spans ---- */

/* Whether word stands at text, or could: text is only its beginning. */
static bool may_stand(const char *text, size_t size, const char *word, bool *is_whole) {
    if (text[0] != word[0]) return false;
    const size_t n = strlen(word);
    *is_whole = n <= size;
    return memcmp(text, word, *is_whole ? n : size) == 0;
}

/* Bytes at the end of text of a character that is not complete. */
static size_t partial_character(const char *text, size_t size) {
    for (size_t n = 1; n < 4 && n <= size; n++) {
        const unsigned char *const bytes = (const unsigned char *)text + size - n;
        if (wk_utf8_classify(bytes, n) == WK_UTF8_PARTIAL) return n;
    }
    return 0;
}

/* Bytes up to the next tag: the one that closes what is open, or any that opens something. Thinking
 * begins before content: "models write <think> and ..." is about the tag. Where *found is NULL the
 * bytes end with the text, or where a tag or a character is not complete yet. */
static size_t find_tag(wick_answer *a, const char *text, size_t size, const wk_mark **found) {
    const wk_mark *const first = a->inside ? a->inside : wk_marks;
    const wk_mark *const end = a->inside ? first + 1 : wk_marks + WK_N_MARKS;
    *found = NULL;
    for (size_t i = a->looked; i < size; i++) {
        for (const wk_mark *mark = first; mark < end; mark++) {
            const char *const tag = a->inside ? mark->close : mark->open;
            bool is_whole;
            if (!tag || !may_stand(text + i, size - i, tag, &is_whole)) continue;
            if (a->is_said && mark->kind == WK_MARK_REASONING) continue;
            if (is_whole) *found = mark;
            if (is_whole || !a->is_over) return i;
        }
        a->is_said = !a->inside && (a->is_said || !wk_scan_is_blank(text[i]));
    }
    return a->is_over ? size : size - partial_character(text, size);
}

/* The size bytes of what opens it are over; NULL: content follows. */
static void enter(wick_answer *a, const wk_mark *mark, size_t size) {
    a->taken += size;
    if (!mark || mark->kind == WK_MARK_FRAME) return;
    a->inside = mark;
    a->is_opened = true;
    a->is_said = false;
}

/* Takes the header that stands at text, if one does: tags and ASCII up to <|message|>, beginning
 * with a tag or a recipient. A recipient makes what follows a call, else the channel says what it
 * is. False: more text has to come. */
static bool take_header(wick_answer *a, const char *text, size_t size, bool *is_taken) {
    enum { MESSAGE, RECIPIENT, ANALYSIS, N_TAGS = 6 };
    static const char *const tags[N_TAGS] = {
        "<|message|>",        " to=",         "<|channel|>analysis", "<|channel|>",
        "<|start|>assistant", "<|constrain|>"};
    const char *const thought = "<|channel|>analysis<|message|>";
    const wk_mark *mark = NULL;
    size_t call = 0; /* its beginning */
    *is_taken = false;
    for (size_t at = 0; at < size;) {
        bool is_whole = false;
        int i = 0;
        while (i < N_TAGS && !may_stand(text + at, size - at, tags[i], &is_whole)) i++;
        is_whole = is_whole && i < N_TAGS;
        if (is_whole) at += strlen(tags[i]);
        if (is_whole && i == RECIPIENT) {
            mark = &channel_call;
            call = at;
        } else if (is_whole && i == ANALYSIS && !mark) {
            mark = wk_mark_at_end(thought, strlen(thought));
        } else if (is_whole && i == MESSAGE) {
            *is_taken = true;
            enter(a, mark, call > 0 ? call : at);
            return true;
        }
        if (is_whole) continue;
        if (i < N_TAGS && (at == 0 || text[at] == '<')) break;
        if (at == 0 || text[at] < ' ' || text[at] >= 127 || text[at] == '<') return true;
        at++;
    }
    return a->is_over;
}

/* Qwen's coders close a tag that they often forget to open. False: more text has to come. */
static bool take_rest_of_call(wick_answer *a, const char *text, size_t size) {
    static const char tag[] = "</tool_call>";
    size_t n = 0;
    bool is_whole = false;
    while (n < size && wk_scan_is_blank(text[n])) n++;
    const bool may = n == size || may_stand(text + n, size - n, tag, &is_whole);
    if (may && !is_whole && !a->is_over) return false;
    a->follows_function = false;
    if (may && is_whole) a->taken += n + strlen(tag);
    return true;
}

static bool take_content(wick_answer *a, wick_answer_span *span) {
    while (!a->inside) {
        const size_t size = a->text.size - a->taken;
        if (size == 0) return false;
        const char *const text = a->text.data + a->taken;
        if (a->follows_function) {
            if (!take_rest_of_call(a, text, size)) return false;
            continue;
        }
        bool is_header = false;
        if (a->in_header && !take_header(a, text, size, &is_header)) return false;
        a->in_header = false;
        a->may_be_bare = a->may_be_bare && !is_header; /* a header would say that it is a call */
        if (is_header) continue;
        const wk_mark *found = &bare_call;
        size_t n = 0, n_blank = 0;
        while (a->may_be_bare && n_blank < size && wk_scan_is_blank(text[n_blank])) n_blank++;
        if (n_blank == size && !a->is_over) return false;
        if (a->may_be_bare && n_blank < size && text[n_blank] == '{')
            a->taken += n_blank;
        else
            n = find_tag(a, text, size, &found);
        if (n == 0 && found && found->kind == WK_MARK_HEADER) {
            if (!take_header(a, text, size, &is_header)) return false;
            a->may_be_bare = false;
            if (is_header) continue;
            n = strlen(found->open);
        }
        if (n > 0) {
            a->may_be_bare = n == n_blank;
            *span = (wick_answer_span){.text = text, .size = n};
            a->taken += n;
            return true;
        }
        if (!found) return false;
        a->may_be_bare = a->may_be_bare && found->kind == WK_MARK_REASONING;
        enter(a, found, strlen(found->open));
    }
    return false;
}

/* A call when it is whole, reasoning as it comes. */
static bool take_inside(wick_answer *a, wick_answer_span *span) {
    const wk_mark *const mark = a->inside, *found;
    const bool is_call = mark->kind == WK_MARK_CALL;
    const char *const text = a->text.size > 0 ? a->text.data + a->taken : "";
    const size_t n = find_tag(a, text, a->text.size - a->taken, &found);
    const bool is_end = found || a->is_over;
    a->looked = is_call && !is_end ? n : 0;
    if (!is_end && (is_call || (n == 0 && !a->is_opened))) return false;
    *span = (wick_answer_span){.kind = is_call ? WICK_ANSWER_CALL : WICK_ANSWER_REASONING,
                               .format = mark->format,
                               .text = text,
                               .size = n,
                               .open = a->is_opened ? mark->open : NULL,
                               .close = found    ? mark->close
                                        : is_end ? ""
                                                 : NULL};
    a->taken += n + (found ? strlen(mark->close) : 0);
    a->is_opened = false;
    a->follows_function = is_end && mark->format == WICK_CALL_FUNCTION;
    if (is_end) a->inside = NULL;
    return true;
}

bool wick_answer_next(wick_answer *answer, wick_answer_span *span) {
    if (!answer || !span) return false;
    if (!take_content(answer, span) && !(answer->inside && take_inside(answer, span))) return false;
    answer->last = *span;
    return true;
}

/* ---- Calls ---- */

static void write_calls(wk_strbuf *to, const wk_tool_call *call) {
    wk_write_open(to, '[');
    for (; call; call = call->next) {
        wk_write_open(to, '{');
        wk_write_put_string(to, "name", call->name);
        wk_write_key(to, "arguments");
        wk_strbuf_append(to, call->arguments.text, call->arguments.size);
        wk_write_close(to, '}');
    }
    wk_write_close(to, ']');
}

const char *wick_answer_calls(wick_answer *answer, size_t *size) {
    if (size) *size = 0;
    if (!answer || answer->last.kind != WICK_ANSWER_CALL) return NULL;
    const wk_str text = {answer->last.text, answer->last.size};
    wk_strbuf *const to = &answer->calls;
    wk_tool_call *calls;
    wk_arena scratch;
    wk_strbuf_release(to);
    wk_arena_init(&scratch, &answer->heap, 1024);
    if (wk_tool_calls_read(&scratch, answer->last.format, text, answer->tools, &calls) == WICK_OK) {
        write_calls(to, calls);
        wk_strbuf_append(to, "", 1);
    }
    wk_arena_release(&scratch);
    if (to->failed || to->size == 0) return NULL;
    if (size) *size = to->size - 1;
    return to->data;
}
