/* message.c: what the command says when something fails: one sentence, and what to do about it. */
#include "cli.h"
#include "progress.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names from files, servers and the command line may be in it. */
static void print_error(const char *format, va_list arguments) {
    char sentence[8192]; /* with two paths */
    cli_progress_hide();
    fflush(stdout); /* what was written before stays before */
    vsnprintf(sentence, sizeof sentence, format, arguments);
    fputs("wick: ", stderr);
    cli_put_sentence(stderr, sentence);
    fputc('\n', stderr);
}

int cli_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    return CLI_FAILURE;
}

int cli_usage_error(const cli_command *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    if (command != NULL)
        fprintf(stderr, "'wick help %s' lists its arguments and options\n", command->name);
    else
        fputs("'wick --help' lists the commands\n", stderr);
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
    case WICK_ERR_MISMATCH: return "please report it with the command line and 'wick devices'";
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

int cli_report_file(const wick_error *error, const char *path, const char *hint) {
    wick_error named = *error;
    if (hint == NULL && error->status == WICK_ERR_FORMAT)
        hint = "the file is damaged or no GGUF file: fetch it again";
    if (hint == NULL && error->status == WICK_ERR_UNSUPPORTED)
        hint = "'wick help run' lists what runs";
    if (path != NULL && strstr(error->message, path) == NULL)
        snprintf(named.message, sizeof named.message, "%.160s: %.340s", path, error->message);
    return cli_report(&named, hint);
}

int cli_report_device(wick_device *device, wick_status status, const char *hint) {
    wick_error error = {0};
    if (wick_device_error(device, &error) == WICK_OK) error = (wick_error){.status = status};
    wick_device_info info;
    wick_device_get_info(device, &info);
    /* The CPU itself does not fail: what it was given to compute with is wrong. */
    const bool is_cpu = info.backend == WICK_BACKEND_CPU;
    if (hint == NULL && error.status == WICK_ERR_DEVICE && is_cpu)
        hint = "the file is damaged: fetch it again";
    return cli_report(&error, hint);
}
