/* generate.c: the loop of `wick run`. Every step is short, so that Ctrl-C is noticed between two.
 */
#define _POSIX_C_SOURCE 200809L

#include "generate.h"

#include "chat.h"
#include "cli.h"
#include "engine.h"
#include "interrupt.h"
#include "json_out.h"
#include "progress.h"
#include "reading.h"
#include "terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_answer(const cli_generation *g) {
    return g->is_shown && g->chat != NULL && !g->prints_ids;
}

static int put_text(cli_generation *g, const char *text, size_t size) {
    if (size == 0) return CLI_OK;
    errno = 0;
    if (is_answer(g)) {
        if (!cli_answer_add(&g->answer, text, size))
            return cli_error("out of memory for the answer");
    } else if (g->is_shown) {
        if (g->wrap.columns > 0) g->wrap.columns = cli_columns(STDOUT_FILENO);
        cli_wrap_put(&g->wrap, text, size);
    } else {
        fwrite(text, 1, size, stdout);
    }
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        g->last_byte = text[size - 1];
        return CLI_OK;
    }
    if (g->is_saved || cli_pipe_closed()) return CLI_OK; /* main reports what was lost */
    return cli_error("cannot write standard output: %s", strerror(errno));
}

/* Of each event that has a token, the one that ended the text included. */
static int put_id(cli_generation *g, const wick_event *event) {
    char text[16];
    const bool is_last = event->kind == WICK_EVENT_END;
    if (is_last && event->reason != WICK_END_TOKEN && event->reason != WICK_END_STOP_STRING)
        return CLI_OK;
    const int size =
        snprintf(text, sizeof text, g->last_byte != 0 ? " %" PRIu32 : "%" PRIu32, event->token);
    return put_text(g, text, (size_t)size);
}

static void put_logprob(cli_json *json, const wick_tokenizer *tokenizer, wick_logprob item) {
    size_t size;
    const char *const text = wick_token_bytes(tokenizer, item.id, true, &size);
    cli_json_key(json, "id");
    cli_json_unsigned(json, item.id);
    cli_json_key(json, "text");
    cli_json_bytes(json, text, size);
    cli_json_key(json, "logprob");
    cli_json_number(json, (double)item.logprob, 9);
}

/* {"id": 5, "text": "a", "logprob": -1.5, "best": [{"id": ...}, ...]} */
static void put_logprobs(const cli_generation *g, const wick_event *event) {
    cli_json json = {.out = stderr, .is_line = true};
    cli_json_open(&json, '{');
    put_logprob(&json, g->tokenizer, event->logprobs[0]);
    cli_json_key(&json, "best");
    cli_json_open(&json, '[');
    for (size_t i = 1; i < event->n_logprobs; i++) {
        cli_json_open(&json, '{');
        put_logprob(&json, g->tokenizer, event->logprobs[i]);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

static int put_event(cli_generation *g, const wick_event *event) {
    if (event->kind != WICK_EVENT_TOKEN && event->kind != WICK_EVENT_END) return CLI_OK;
    if (event->n_logprobs > 0) put_logprobs(g, event);
    return g->prints_ids ? put_id(g, event) : put_text(g, event->text, event->text_size);
}

static int step(const cli_generation *g, wick_event *event) {
    const wick_status status =
        g->chat != NULL ? wick_chat_step(g->chat, event) : wick_session_step(g->session, event);
    if (status == WICK_OK) return CLI_OK;
    return g->chat != NULL ? cli_report_chat(g->chat)
                           : cli_report_step(g->session, g->device, cli_step_hint(status));
}

/* The end of it, if it is long. */
static void put_prompt(cli_generation *g) {
    enum { MOST = 400 };
    const char *text = g->prompt;
    size_t size = strlen(text);
    cli_wrap_style(&g->wrap, CLI_STYLE_DIM);
    if (size > MOST) {
        text += size - MOST;
        const char *const blank = strpbrk(text, " \n");
        if (blank != NULL) text = blank;
        while (((unsigned char)*text & 0xC0U) == 0x80) text++; /* a whole character */
        size = strlen(text);
        cli_wrap_put(&g->wrap, "...", 3);
    }
    cli_wrap_put(&g->wrap, text, size);
    cli_wrap_style(&g->wrap, CLI_STYLE_NONE);
    fflush(stdout);
}

/* What stands before the text. Not before the prompt has been read: the line that shows how far
 * that is would erase it. */
static void begin_text(cli_generation *g) {
    if (g->has_begun) return;
    g->has_begun = true;
    cli_progress_hide();
    if (g->is_shown && g->wrap.has_styles && g->prompt != NULL) put_prompt(g);
    if (!is_answer(g)) return;
    size_t size;
    const char *const prompt = wick_chat_prompt(g->chat, &size);
    g->answer = cli_answer_of(false);
    cli_answer_begin(&g->answer, prompt, size);
}

static int step_all(cli_generation *g) {
    wick_event event = {0};
    int code = CLI_OK;
    cli_reading reading = cli_reading_begin(g->session, &(wick_session_stats){0});
    while (code == CLI_OK && event.kind != WICK_EVENT_END) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        if (cli_pipe_closed() && !g->is_saved) return CLI_OK; /* no one reads the rest */
        code = step(g, &event);
        if (code != CLI_OK) return code;
        if (event.kind == WICK_EVENT_PENDING) wick_pause(g->device);
        if (cli_reading_take(&reading, &event)) continue;
        begin_text(g);
        code = put_event(g, &event);
    }
    g->reason = event.reason;
    return code == CLI_OK && g->prints_ids ? put_text(g, "\n", 1) : code;
}

int cli_generate(cli_generation *g) {
    size_t n = 0;
    wick_session_tokens(g->session, &n);
    if (n == 0)
        return cli_error("the prompt is empty and this model has no token to begin with; "
                         "give a text with -p");
    g->wrap = (cli_wrap){.out = stdout, .has_styles = cli_has_colors(STDOUT_FILENO)};
    if (cli_is_terminal(STDOUT_FILENO)) g->wrap.columns = cli_columns(STDOUT_FILENO);
    cli_echo_off();
    const int code = step_all(g);
    if (code == CLI_FAILURE) g->prompt = NULL; /* nothing goes on from it */
    begin_text(g);
    if (is_answer(g))
        cli_answer_end(&g->answer);
    else if (g->is_shown)
        cli_wrap_flush(&g->wrap);
    fflush(stdout);
    cli_echo_on();
    return code;
}
