/* generate.c: the loop of `wick run`. Every step is short, so that Ctrl-C is noticed between two.
 */
#define _POSIX_C_SOURCE 200809L

#include "generate.h"

#include "cli.h"
#include "engine.h"
#include "interrupt.h"
#include "json_out.h"
#include "terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int put_text(cli_generation *g, const char *text, size_t size) {
    if (size == 0) return CLI_OK;
    errno = 0;
    if (g->is_shown) {
        if (g->wrap.columns > 0) g->wrap.columns = cli_columns(STDOUT_FILENO);
        cli_wrap_put(&g->wrap, text, size);
    } else {
        fwrite(text, 1, size, stdout);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_error("cannot write standard output: %s", strerror(errno));
    g->last_byte = text[size - 1];
    return CLI_OK;
}

/* The session's tokens that are new: they include what ended the text. */
static int put_ids(cli_generation *g) {
    size_t n = 0;
    const uint32_t *const tokens = wick_session_tokens(g->session, &n);
    for (; g->n_seen < n; g->n_seen++) {
        char text[16];
        const int size = snprintf(text, sizeof text, g->last_byte != 0 ? " %" PRIu32 : "%" PRIu32,
                                  tokens[g->n_seen]);
        const int code = put_text(g, text, (size_t)size);
        if (code != CLI_OK) return code;
    }
    return CLI_OK;
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
    return g->prints_ids ? put_ids(g) : put_text(g, event->text, event->text_size);
}

static int step_all(cli_generation *g) {
    wick_event event = {0};
    int code = CLI_OK;
    while (code == CLI_OK && event.kind != WICK_EVENT_END) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        const wick_status status = wick_session_step(g->session, &event);
        if (status != WICK_OK) return cli_report_device(g->device, status, cli_step_hint(status));
        if (event.kind == WICK_EVENT_PENDING) wick_pause(g->device);
        code = put_event(g, &event);
    }
    g->reason = event.reason;
    return code == CLI_OK && g->prints_ids ? put_text(g, "\n", 1) : code;
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

int cli_generate(cli_generation *g) {
    wick_session_tokens(g->session, &g->n_seen);
    if (g->n_seen == 0)
        return cli_error("the prompt is empty and this model has no token to begin with; "
                         "give a text with -p");
    g->wrap = (cli_wrap){.out = stdout, .has_styles = cli_has_colors(STDOUT_FILENO)};
    if (cli_is_terminal(STDOUT_FILENO)) g->wrap.columns = cli_columns(STDOUT_FILENO);
    if (g->is_shown && g->wrap.has_styles && g->prompt != NULL) put_prompt(g);
    cli_echo_off();
    const int code = step_all(g);
    if (g->is_shown) cli_wrap_flush(&g->wrap);
    fflush(stdout);
    cli_echo_on();
    return code;
}
