/* generate.c: the loop of `wick run`. Every step is short, so that Ctrl-C is noticed between two.
 */
#include "generate.h"

#include "cli.h"
#include "engine.h"
#include "interrupt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int put_text(cli_generation *g, const char *text, size_t size) {
    if (size == 0) return CLI_OK;
    errno = 0;
    if (fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0)
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

static int put_event(cli_generation *g, const wick_event *event) {
    if (event->kind != WICK_EVENT_TOKEN && event->kind != WICK_EVENT_END) return CLI_OK;
    return g->prints_ids ? put_ids(g) : put_text(g, event->text, event->text_size);
}

int cli_generate(cli_generation *g) {
    wick_session_tokens(g->session, &g->n_seen);
    if (g->n_seen == 0)
        return cli_error("the prompt is empty and this model has no token to begin with; "
                         "give a text with -p");
    wick_event event = {0};
    int code = CLI_OK;
    while (code == CLI_OK && event.kind != WICK_EVENT_END) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        const wick_status status = wick_session_step(g->session, &event);
        if (status != WICK_OK) return cli_report_device(g->device, status, cli_step_hint(status));
        code = put_event(g, &event);
    }
    g->reason = event.reason;
    return code == CLI_OK && g->prints_ids ? put_text(g, "\n", 1) : code;
}
