/* chat_turn.c: from messages to a prompt, and from tokens to an answer. */
#define _POSIX_C_SOURCE 200809L

#include "answer.h"
#include "chat.h"
#include "cli.h"
#include "interrupt.h"
#include "json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int cli_chat_open_session(cli_chat *chat) {
    wick_error error = {0};
    wick_session_close(chat->session);
    chat->session = NULL;
    if (wick_session_open(chat->engine.model, &chat->desc, &chat->session, &error) == WICK_OK)
        return CLI_OK;
    return cli_report_session(&error);
}

/* ---- The prompt ---- */

static void put_token(cli_json *json, const char *key, const wick_tokenizer *tokenizer,
                      uint32_t id) {
    size_t size;
    const char *const text = wick_token_bytes(tokenizer, id, true, &size);
    if (text == NULL) return;
    cli_json_key(json, key);
    cli_json_bytes(json, text, size);
}

/* {"bos_token": ..., "eos_token": ...} */
static wick_json_document *make_variables(const cli_chat *chat) {
    const wick_tokenizer *const tokenizer = wick_model_tokenizer(chat->engine.model);
    char *text = NULL;
    size_t size = 0;
    wick_json_document *variables = NULL;
    FILE *const out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    cli_json json = {.out = out};
    cli_json_open(&json, '{');
    put_token(&json, "bos_token", tokenizer, wick_token_begin(tokenizer));
    put_token(&json, "eos_token", tokenizer, wick_token_end(tokenizer));
    if (chat->no_thinking) {
        cli_json_key(&json, "enable_thinking");
        cli_json_bool(&json, false);
    }
    cli_json_close(&json, '}');
    if (fclose(out) == 0) wick_json_parse(text, size, &variables, NULL);
    free(text);
    return variables;
}

static wick_time_of_day local_time(void) {
    const time_t now = time(NULL);
    struct tm t = {0};
    localtime_r(&now, &t);
    return (wick_time_of_day){t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                              t.tm_hour,        t.tm_min,     t.tm_sec};
}

static int render(const cli_chat *chat, wick_prompt **prompt) {
    size_t size = 0;
    wick_error error = {0};
    wick_json_document *messages = NULL;
    char *const json = cli_messages_json(&chat->messages, &size);
    wick_json_document *const variables = make_variables(chat);
    int code = CLI_OK;
    if (json == NULL || variables == NULL)
        code = cli_error("out of memory for the messages");
    else if (wick_json_parse(json, size, &messages, &error) != WICK_OK)
        code = cli_report(&error, NULL);
    const wick_conversation conversation = {.messages = wick_json_root(messages),
                                            .tools = wick_json_root(chat->tools),
                                            .variables = wick_json_root(variables),
                                            .generation_prompt = WICK_GENERATION_PROMPT_ON,
                                            .now = local_time()};
    if (code == CLI_OK &&
        wick_template_render(chat->compiled, &conversation, prompt, &error) != WICK_OK)
        code = cli_error("the chat template refuses this: %s", error.message);
    wick_json_free(messages);
    wick_json_free(variables);
    free(json);
    return code;
}

static int sync_prompt(const cli_chat *chat, const wick_prompt *prompt) {
    const wick_tokenizer *const tokenizer = wick_model_tokenizer(chat->engine.model);
    size_t n = 0;
    wick_status status = wick_prompt_tokenize(prompt, tokenizer, NULL, 0, &n);
    uint32_t *const ids = malloc((n + 1) * sizeof *ids);
    if (ids == NULL) return cli_error("out of memory for %zu token ids", n);
    if (status == WICK_OK) status = wick_prompt_tokenize(prompt, tokenizer, ids, n, &n);
    if (status == WICK_OK) status = wick_session_sync_tokens(chat->session, ids, n);
    free(ids);
    if (status == WICK_OK) return CLI_OK;
    return cli_report_device(chat->engine.device, status,
                             status == WICK_ERR_STATE
                                 ? "the conversation is too long: /reset, or a larger --context"
                                 : NULL);
}

/* ---- The answer ---- */

/* Steps the session to the end of the answer, or to the first event after Ctrl-C: what it has
 * computed stays there for the next question. */
static int stream(const cli_chat *chat, cli_answer *answer, wick_end_reason *reason) {
    wick_event event = {0};
    while (event.kind != WICK_EVENT_END) {
        if (event.kind != WICK_EVENT_PENDING && cli_interrupted()) return CLI_INTERRUPTED;
        const wick_status status = wick_session_step(chat->session, &event);
        if (status != WICK_OK)
            return cli_report_device(chat->engine.device, status, cli_step_hint(status));
        if (event.kind == WICK_EVENT_PENDING) wick_pause(chat->engine.device);
        const bool has_text = event.kind == WICK_EVENT_TOKEN || event.kind == WICK_EVENT_END;
        if (has_text && !cli_answer_add(answer, event.text, event.text_size))
            return cli_error("out of memory for the answer");
    }
    *reason = event.reason;
    return CLI_OK;
}

static bool ends_with(const char *text, size_t size, const char *word) {
    while (size > 0 && strchr(" \n", text[size - 1]) != NULL) size--;
    const size_t n = strlen(word);
    return n <= size && memcmp(text + size - n, word, n) == 0;
}

static int answer_prompt(cli_chat *chat, const wick_prompt *prompt) {
    size_t size;
    const char *const text = wick_prompt_text(prompt, &size);
    cli_answer answer = {.has_colors = isatty(STDOUT_FILENO) == 1,
                         .has_tools = chat->tools != NULL};
    wick_end_reason reason = WICK_END_NONE;
    cli_answer_begin(&answer, ends_with(text, size, "<think>"));
    int code = stream(chat, &answer, &reason);
    cli_answer_end(&answer);
    if (answer.last_byte != '\n') putchar('\n');
    fflush(stdout);
    if (code == CLI_INTERRUPTED) fputs("(stopped)\n", stderr);
    if (reason == WICK_END_CONTEXT_FULL)
        fputs("(the context is full: /reset begins anew, --context makes it larger)\n", stderr);
    if (code == CLI_OK || code == CLI_INTERRUPTED) {
        const bool is_added = cli_messages_add(&chat->messages, "assistant",
                                               answer.text != NULL ? answer.text : "", answer.size);
        if (!is_added) code = cli_error("out of memory for the answer");
    }
    if (code == CLI_FAILURE) wick_session_reset(chat->session);
    free(answer.text);
    return code;
}

int cli_chat_answer(cli_chat *chat) {
    wick_prompt *prompt = NULL;
    int code = render(chat, &prompt);
    if (code == CLI_OK) code = sync_prompt(chat, prompt);
    if (code == CLI_OK) code = answer_prompt(chat, prompt);
    wick_prompt_free(prompt);
    return code;
}
