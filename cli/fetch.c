/* fetch.c: resuming, checking, trying again. A part is continued only where it certainly belongs to
 * the same file: by its hash where that is known beforehand, else by a strong ETag and If-Range
 * (RFC 9110, section 13.1.5). */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "fetch.h"

#include "cli.h"
#include "interrupt.h"
#include "partial.h"
#include "progress.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct fetch {
    const cli_fetch_desc *desc;
    cli_partial partial;
    cli_note note;         /* of the part */
    uint64_t total;        /* UINT64_MAX: not known */
    int code;              /* why begin or take stopped */
    bool is_to_be_renewed; /* the part is of another file, or the server cannot go on with it */
    cli_progress line;
} fetch;

static bool is_known(uint64_t size) { return size != UINT64_MAX; }

bool cli_is_fetched(const cli_fetch_desc *desc) {
    struct stat info;
    cli_note note;
    if (stat(desc->path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    if (is_known(desc->size) && (uint64_t)info.st_size != desc->size) return false;
    cli_note_read(desc->path, &note);
    if (desc->sha256.text[0] != '\0') return strcmp(desc->sha256.text, note.sha256.text) == 0;
    return strcmp(desc->source, note.source) == 0;
}

/* ---- Progress ---- */

static void show_progress(fetch *f) {
    if (!f->desc->is_quiet) cli_progress_show(&f->line, f->partial.size, f->total);
}

/* ---- What the server sends ---- */

static int check_answer(const fetch *f, const cli_http_answer *answer) {
    const cli_fetch_desc *const desc = f->desc;
    if (answer->offset != f->partial.size)
        return cli_error("%s: the server sent the file from byte %" PRIu64
                         ", not from byte %" PRIu64 " as asked",
                         desc->url, answer->offset, f->partial.size);
    if (is_known(desc->size) && is_known(answer->total) && desc->size != answer->total)
        return cli_error("%s: the server announces %" PRIu64 " bytes, %" PRIu64 " were expected",
                         desc->url, answer->total, desc->size);
    if (is_known(f->total) && f->total < f->partial.size)
        return cli_error("%s: the file now has only %" PRIu64 " bytes, but %" PRIu64
                         " are here already",
                         desc->url, f->total, f->partial.size);
    const bool has_both = desc->sha256.text[0] != '\0' && answer->sha256.text[0] != '\0';
    if (has_both && strcmp(desc->sha256.text, answer->sha256.text) != 0)
        return cli_error("%s has the sha256 %s, but %s was expected", desc->url,
                         answer->sha256.text, desc->sha256.text);
    if (!is_known(f->total)) return CLI_OK;
    const uint64_t rest = f->total - f->partial.size;
    const uint64_t later = desc->later_bytes;
    return cli_partial_check_space(&f->partial,
                                   rest <= UINT64_MAX - later ? rest + later : UINT64_MAX);
}

static bool begin(void *user, const cli_http_answer *answer) {
    fetch *const f = user;
    const bool has_other_etag = answer->etag[0] != '\0' && f->note.etag[0] != '\0' &&
                                f->desc->sha256.text[0] == '\0' &&
                                strcmp(answer->etag, f->note.etag) != 0;
    if (answer->offset > 0 && has_other_etag) { /* the server minds no If-Range */
        f->is_to_be_renewed = true;
        return false;
    }
    f->code = CLI_OK;
    if (answer->offset == 0 && f->partial.size > 0) f->code = cli_partial_restart(&f->partial);
    f->total = is_known(answer->total) ? answer->total : f->desc->size;
    if (f->code == CLI_OK) f->code = check_answer(f, answer);
    if (f->code != CLI_OK) return false;
    snprintf(f->note.etag, sizeof f->note.etag, "%s", answer->etag);
    /* From the beginning it may be another file than the one before. */
    const bool is_new = answer->offset == 0 && f->desc->sha256.text[0] == '\0';
    if (is_new || f->note.sha256.text[0] == '\0') f->note.sha256 = answer->sha256;
    f->code = cli_note_write(f->partial.path.text, &f->note);
    f->line = cli_progress_begin("fetching", NULL);
    return f->code == CLI_OK;
}

/* A page that asks to log in, or shows an error with status 200, ends here. */
static bool is_gguf(uint64_t offset, const char *bytes, size_t size) {
    static const char magic[] = "GGUF";
    for (size_t i = 0; i < size && offset + i < 4; i++)
        if (bytes[i] != magic[offset + i]) return false;
    return true;
}

static bool take(void *user, const void *bytes, size_t size) {
    fetch *const f = user;
    if (!is_gguf(f->partial.size, bytes, size))
        f->code = cli_error("%s is not a GGUF file; it may be a web page: open it in a browser",
                            f->desc->url);
    else if (is_known(f->total) && size > f->total - f->partial.size)
        f->code = cli_error("%s: the server sent more than the %" PRIu64 " bytes it announced",
                            f->desc->url, f->total);
    else
        f->code = cli_partial_append(&f->partial, bytes, size);
    show_progress(f);
    return f->code == CLI_OK;
}

/* ---- Failures ---- */

/* W/"..." may stand for other bytes. */
static bool is_strong(const char *etag) { return etag[0] == '"'; }

/* Whether more bytes of the same file can be asked for. */
static bool can_resume(const fetch *f) {
    return f->desc->sha256.text[0] != '\0' || is_strong(f->note.etag);
}

/* What becomes of the part. */
static const char *next_time(const fetch *f) {
    return can_resume(f) ? "are kept; the same command continues from there"
                         : "were received, but the server cannot tell whether the file has changed "
                           "since: the same command starts again";
}

static int fail_transfer(const fetch *f, const cli_http_end *end) {
    const char *const token =
        f->desc->token != NULL ? "HF_TOKEN does not give access" : "HF_TOKEN is not set";
    if ((end->status == 401 || end->status == 403) && f->desc->page != NULL)
        return cli_error("%s: %s; its owner asks you to accept terms at %s (%s)", f->desc->url,
                         end->reason, f->desc->page, token);
    if (f->partial.size == 0) return cli_error("%s: %s", f->desc->url, end->reason);
    const cli_size_text size = cli_bytes_text(f->partial.size);
    return cli_error("%s: %s; %s %s", f->desc->url, end->reason, size.text, next_time(f));
}

static int report_interrupted(const fetch *f) {
    if (f->partial.size > 0)
        cli_say("stopped; %s %s", cli_bytes_text(f->partial.size).text, next_time(f));
    return CLI_INTERRUPTED;
}

/* Longer from one try to the next, up to 8 s. */
static void wait_for_next_try(uint32_t n_tries) {
    const struct timespec step = {.tv_nsec = 100000000};
    const uint32_t seconds = n_tries < 4 ? 1U << (n_tries - 1) : 8;
    for (uint32_t i = 0; i < 10 * seconds && !cli_interrupted(); i++) (void)nanosleep(&step, NULL);
}

/* ---- One file ---- */

/* Whether the part that is there belongs to the file that is wanted. */
static bool can_go_on(const fetch *f, const cli_note *before) {
    const char *const wanted = f->desc->sha256.text;
    if (f->partial.size == 0 || strcmp(before->source, f->desc->source) != 0) return false;
    if (is_known(f->desc->size) && f->partial.size > f->desc->size) return false;
    if (wanted[0] != '\0') return strcmp(before->sha256.text, wanted) == 0;
    return is_strong(before->etag);
}

static int prepare(fetch *f) {
    cli_note before;
    cli_note_read(f->partial.path.text, &before);
    f->note.sha256 = f->desc->sha256;
    snprintf(f->note.source, sizeof f->note.source, "%s", f->desc->source);
    snprintf(f->note.licence, sizeof f->note.licence, "%s", f->desc->licence);
    if (!can_go_on(f, &before)) return cli_partial_restart(&f->partial);
    if (!f->desc->is_quiet)
        cli_say("continuing after the %s that are here already",
                cli_bytes_text(f->partial.size).text);
    f->note = before;
    return cli_partial_keep(&f->partial);
}

static cli_http_end request(fetch *f, cli_http *http) {
    const cli_http_request r = {.url = f->desc->url,
                                .token = f->desc->token,
                                .offset = can_resume(f) ? f->partial.size : 0,
                                .if_range = f->desc->sha256.text[0] != '\0' ? NULL : f->note.etag,
                                .user = f,
                                .begin = begin,
                                .take = take};
    f->code = CLI_OK;
    cli_http_end end = cli_http_get(http, &r);
    cli_progress_clear(&f->line);
    const bool is_short = is_known(f->total) && f->partial.size < f->total;
    if (end.outcome == CLI_HTTP_DONE && is_short) {
        end.outcome = CLI_HTTP_CUT;
        snprintf(end.reason, sizeof end.reason, "the server sent less than it announced");
    }
    if (f->is_to_be_renewed)
        snprintf(end.reason, sizeof end.reason, "the file has changed on the server");
    /* 416: there is nothing after the part. */
    if (end.status == 416 && f->partial.size > 0) f->is_to_be_renewed = true;
    return end;
}

/* Until all bytes are there. */
static int transfer(fetch *f, cli_http *http) {
    const uint64_t start = f->partial.size;
    uint64_t most = start; /* a server that cuts at the same place gets no further */
    bool was_renewed = false;
    for (uint32_t n_tries = 0;;) {
        if (f->partial.size > 0 && f->partial.size == f->desc->size) return CLI_OK;
        f->is_to_be_renewed = false;
        const cli_http_end end = request(f, http);
        if (end.outcome == CLI_HTTP_DONE) return CLI_OK;
        if (end.outcome == CLI_HTTP_INTERRUPTED) return report_interrupted(f);
        if (f->is_to_be_renewed && !was_renewed) {
            was_renewed = true;
            f->note.etag[0] = '\0';
            const int code = cli_partial_restart(&f->partial);
            if (code != CLI_OK) return code;
            continue;
        }
        if (end.outcome == CLI_HTTP_STOPPED && f->code != CLI_OK) return f->code;
        if (f->partial.size > most && !end.is_slow)
            n_tries = 0; /* not after a trickle, which could go on for ever */
        if (f->partial.size > most) most = f->partial.size;
        const bool was_reached = most > start;
        const bool may_help =
            end.outcome == CLI_HTTP_CUT || (end.outcome == CLI_HTTP_UNREACHED && was_reached);
        if (!may_help || n_tries == f->desc->n_retries) return fail_transfer(f, &end);
        wait_for_next_try(++n_tries);
    }
}

/* A part of a split model cannot be checked alone; loading the model checks all parts. */
static int check_file(const fetch *f) {
    cli_part part;
    if (cli_part_parse(f->desc->path, &part) && part.count > 1) return CLI_OK;
    wick_file *file = NULL;
    wick_error error = {0};
    const wick_status status = wick_file_open(f->partial.path.text, &file, &error);
    wick_file_close(file);
    if (status != WICK_ERR_FORMAT && status != WICK_ERR_IO) return CLI_OK;
    return cli_error("the file from %s is not a valid GGUF file and was deleted: %s", f->desc->url,
                     error.message);
}

static int check_hash(const fetch *f, const cli_digest *digest) {
    const char *const wanted = f->note.sha256.text;
    if (wanted[0] == '\0' || strcmp(wanted, digest->text) == 0) return CLI_OK;
    return cli_error("the file from %s has the sha256 %s, but %s was expected: it is damaged or "
                     "was changed, and was deleted",
                     f->desc->url, digest->text, wanted);
}

/* *is_kept: whether the part can be used by another try. */
static int complete(fetch *f, bool *is_kept) {
    cli_sha256 sha = f->partial.sha;
    const cli_digest digest = cli_sha256_finish(&sha);
    if (!cli_partial_is_there(&f->partial))
        return cli_error("'%s' was removed meanwhile", f->partial.path.text);
    int code = check_hash(f, &digest);
    if (code == CLI_OK) code = check_file(f);
    *is_kept = code == CLI_OK;
    if (code == CLI_OK) code = cli_partial_rename(&f->partial, f->desc->path);
    if (code != CLI_OK) return code;
    f->note.sha256 = digest;
    return cli_note_write(f->desc->path, &f->note);
}

static void remove_note(const cli_partial *partial) {
    cli_path note;
    if (cli_path_join(partial->path.text, ".note", &note)) (void)unlink(note.text);
}

int cli_fetch(cli_http *http, const cli_fetch_desc *desc) {
    cli_watch_interrupt();
    fetch f = {.desc = desc, .total = desc->size};
    int code = cli_partial_open(desc->path, &f.partial);
    if (code != CLI_OK) return code;
    /* Another wick may have fetched it since the caller looked. */
    bool is_kept = !cli_is_fetched(desc);
    if (is_kept) {
        code = prepare(&f);
        if (code == CLI_OK) code = transfer(&f, http);
        if (code == CLI_OK) code = complete(&f, &is_kept);
        is_kept = is_kept && f.partial.size > 0;
    }
    if (!is_kept || code == CLI_OK) remove_note(&f.partial);
    cli_partial_close(&f.partial, is_kept);
    return code;
}
