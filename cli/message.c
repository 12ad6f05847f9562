/* message.c: what the command says when something fails: one sentence, and what to do about it. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */

#include "cli.h"
#include "progress.h"
#include "terminal.h"
#include "text_out.h"
#include "wrap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_failed;

bool cli_has_failed(void) { return has_failed; }

static void print_wrapped(const char *line, size_t size) {
    cli_wrap wrap = {.out = stderr, .columns = cli_columns(STDERR_FILENO)};
    cli_wrap_put(&wrap, line, size);
    cli_wrap_flush(&wrap);
}

static void print_sentence(const char *beginning, const char *format, va_list arguments) {
    char sentence[8192]; /* with two paths */
    char *line = NULL;
    size_t size = 0;
    cli_progress_hide();
    fflush(stdout); /* what was written before stays before */
    vsnprintf(sentence, sizeof sentence, format, arguments);
    FILE *const memory = cli_is_terminal(STDERR_FILENO) ? open_memstream(&line, &size) : NULL;
    FILE *const out = memory != NULL ? memory : stderr;
    fputs(beginning, out);
    cli_put_sentence(out, sentence);
    fputc('\n', out);
    if (memory != NULL && fclose(memory) == 0) print_wrapped(line, size);
    free(line);
}

void cli_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_sentence("", format, arguments);
    va_end(arguments);
}

void cli_warn(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_sentence("wick: warning: ", format, arguments);
    va_end(arguments);
}

int cli_error(const char *format, ...) {
    has_failed = true;
    va_list arguments;
    va_start(arguments, format);
    print_sentence("wick: ", format, arguments);
    va_end(arguments);
    return CLI_FAILURE;
}

int cli_usage_error(const cli_command *command, const char *format, ...) {
    has_failed = true;
    va_list arguments;
    va_start(arguments, format);
    print_sentence("wick: ", format, arguments);
    va_end(arguments);
    if (command != NULL)
        cli_say("'wick help %s' lists its arguments and options", command->name);
    else
        cli_say("'wick --help' lists the commands");
    return CLI_USAGE;
}

/* What helps in most cases of a status, "" where the library's sentence says it all. */
static const char *usual_hint(wick_status status) {
    switch (status) {
    case WICK_ERR_NOT_FOUND: return "check the path, or the name in 'wick models'";
    case WICK_ERR_NO_DEVICE: return "'wick devices' lists what is here";
    case WICK_ERR_INDEX: return "'wick info MODEL' shows the size of the vocabulary";
    case WICK_ERR_DEVICE_LOST: return "try again, or with --backend cpu";
    case WICK_ERR_DEVICE: return "try --backend cpu";
    case WICK_ERR_INTERNAL: return "please report it with the command line and 'wick devices'";
    default: return "";
    }
}

int cli_report(const wick_error *error, const char *hint) {
    const bool has_sentence = error->message[0] != '\0';
    const char *const sentence = has_sentence ? error->message : wick_status_text(error->status);
    const char *const help = hint != NULL ? hint : usual_hint(error->status);
    return cli_error("%s%s%s", sentence, help[0] != '\0' ? "; " : "", help);
}

bool cli_is_checkpoint(const char *path) {
    char config[4096];
    const int size = snprintf(config, sizeof config, "%s/config.json", path);
    return size > 0 && (size_t)size < sizeof config && access(config, F_OK) == 0;
}

int cli_report_file(const wick_error *error, const char *path, const char *hint) {
    wick_error named = *error;
    if (hint == NULL && path != NULL && cli_is_checkpoint(path))
        hint = "it is a checkpoint of Hugging Face: 'wick convert' makes a GGUF file of it";
    if (hint == NULL && error->status == WICK_ERR_FORMAT)
        hint = "the file is damaged, or not a GGUF file as Wick reads it: fetch it again, or "
               "another one";
    if (hint == NULL && error->status == WICK_ERR_UNSUPPORTED)
        hint = "'wick help run' lists what runs";
    if (path != NULL && strstr(error->message, path) == NULL)
        snprintf(named.message, sizeof named.message, "%.160s: %.340s", path, error->message);
    return cli_report(&named, hint);
}

/* error: of a session or an embedder of a model on the device. */
static int report_computing(const wick_error *error, wick_device *device, const char *hint) {
    wick_device_info info;
    wick_device_get_info(device, &info);
    /* The CPU itself does not fail: what it was given to compute with is wrong. */
    const bool is_cpu = info.backend == WICK_BACKEND_CPU;
    if (hint == NULL && error->status == WICK_ERR_DEVICE && is_cpu)
        hint = "the file is damaged: fetch it again";
    return cli_report(error, hint);
}

int cli_report_step(const wick_session *session, wick_device *device, const char *hint) {
    wick_error error = {0};
    (void)wick_session_error(session, &error);
    return report_computing(&error, device, hint);
}

int cli_report_embedder(const wick_embedder *embedder, wick_device *device, const char *hint) {
    wick_error error = {0};
    (void)wick_embedder_error(embedder, &error);
    return report_computing(&error, device, hint);
}
