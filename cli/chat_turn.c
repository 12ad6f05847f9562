/* chat_turn.c: one question, and its answer as it comes. */
#define _POSIX_C_SOURCE 200809L

#include "answer.h"
#include "chat.h"
#include "cli.h"
#include "interrupt.h"
#include "progress.h"
#include "reading.h"
#include "terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

wick_time_of_day cli_local_time(void) {
    const time_t now = time(NULL);
    struct tm t = {0};
    localtime_r(&now, &t);
    return (wick_time_of_day){t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                              t.tm_hour,        t.tm_min,     t.tm_sec};
}

int cli_report_chat(const wick_chat *talk) {
    wick_error error = {0};
    const wick_status status = wick_chat_error(talk, &error);
    const char *hint = cli_step_hint(status);
    if (status == WICK_ERR_STATE) hint = "a larger --context holds more";
    if (status == WICK_ERR_CANCELLED) return CLI_INTERRUPTED;
    if (status == WICK_ERR_VALUE)
        return cli_error("the chat template refuses this: %s", error.message);
    return cli_report(&error, hint);
}

/* What the answer was, beside its text. */
typedef struct outcome {
    wick_end_reason reason;
    uint32_t n_left_out; /* messages */
} outcome;

static void begin_answer(const cli_chat *chat, cli_answer *answer) {
    size_t size;
    const char *const prompt = wick_chat_prompt(chat->talk, &size);
    cli_progress_hide();
    cli_answer_begin(answer, prompt, size);
}

/* Up to the end of the answer, to a closed pipe, or to the first event after Ctrl-C: what has been
 * computed stays there for the next question. The answer begins when the question has been read, so
 * that the line that shows how far that is erases nothing. */
static int stream(const cli_chat *chat, cli_reading *reading, cli_answer *answer, outcome *out) {
    wick_event event = {0};
    while (event.kind != WICK_EVENT_END && !cli_pipe_closed()) {
        if (event.kind != WICK_EVENT_PENDING && cli_interrupted()) return CLI_INTERRUPTED;
        if (wick_chat_step(chat->talk, &event) != WICK_OK) return cli_report_chat(chat->talk);
        if (event.kind == WICK_EVENT_PENDING) wick_pause(chat->engine.device);
        if (event.kind == WICK_EVENT_LEFT_OUT) out->n_left_out = event.total;
        if (cli_reading_take(reading, &event)) continue;
        if (!answer->has_begun) begin_answer(chat, answer);
        const bool has_text = event.kind == WICK_EVENT_TOKEN || event.kind == WICK_EVENT_END;
        if (has_text && !cli_answer_add(answer, event.text, event.text_size))
            return cli_error("out of memory for the answer");
    }
    out->reason = event.reason;
    return CLI_OK;
}

static void report(int code, const outcome *out) {
    if (code == CLI_INTERRUPTED) fputs("(stopped)\n", stderr);
    if (out->n_left_out > 0)
        cli_say("(the context is full: the model no longer sees the oldest %" PRIu32 " messages)",
                out->n_left_out);
    if (out->reason == WICK_END_CONTEXT_FULL)
        cli_say("(the answer ends here: the context is full; --context makes it larger)");
}

/* "42 tokens, 23.4 tokens/s" of this answer, to a person alone; before: it began. */
static void print_speed(const cli_chat *chat, wick_session_stats before) {
    wick_session_stats now;
    wick_session_get_stats(wick_chat_session(chat->talk), &now);
    if (now.n_generated < before.n_generated) before = (wick_session_stats){0}; /* a reset */
    const uint32_t n = now.n_generated - before.n_generated;
    const double seconds = now.generate_seconds - before.generate_seconds;
    const bool is_seen = cli_is_terminal(STDOUT_FILENO) && cli_is_terminal(STDERR_FILENO) && n > 0;
    if (!is_seen || cli_common.quiet) return;
    const bool has_colors = cli_has_colors(STDERR_FILENO);
    fprintf(stderr, "%s%" PRIu32 " token%s", has_colors ? "\033[2m" : "", n, n == 1 ? "" : "s");
    /* The prompt's last step gives the first token. */
    if (n > 1 && seconds > 0) fprintf(stderr, ", %.1f tokens/s", (n - 1) / seconds);
    fputs(has_colors ? "\033[0m\n\n" : "\n\n", stderr);
}

int cli_chat_ask(cli_chat *chat, const char *question) {
    outcome out = {.reason = WICK_END_NONE};
    wick_session_stats before;
    wick_session_get_stats(wick_chat_session(chat->talk), &before);
    if (wick_chat_send(chat->talk, question) != WICK_OK) {
        const int code = cli_report_chat(chat->talk);
        report(code, &out);
        return code;
    }
    cli_reading reading = cli_reading_begin(wick_chat_session(chat->talk), &before);
    wick_session_get_stats(wick_chat_session(chat->talk), &before);
    cli_echo_off();
    cli_answer answer = cli_answer_of(chat->has_tools);
    const int code = stream(chat, &reading, &answer, &out);
    if (!answer.has_begun) begin_answer(chat, &answer);
    cli_answer_end(&answer);
    if (answer.last_byte != '\n') putchar('\n');
    fflush(stdout);
    report(code, &out);
    if (code != CLI_FAILURE) print_speed(chat, before);
    return code;
}
