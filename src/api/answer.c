/* api/answer.c: the bytes of answers: events of streams, errors, what several APIs have in common.
 * See api.h. */
#include "api/api.h"

#include "core/hash.h"
#include "sys/clock.h"

#include <stdio.h>
#include <string.h>

void wk_call_id(const wk_api_choice *choice, char id[WK_CALL_ID]) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    const char *const number = choice->exchange->number;
    const uint64_t place = (uint64_t)choice->index << 32 | choice->n_calls;
    uint64_t rest = wk_hash(number, strlen(number)) ^ wk_hash_u64(place);
    for (int i = 0; i + 1 < WK_CALL_ID; i++, rest /= 36) id[i] = digits[rest % 36];
    id[WK_CALL_ID - 1] = 0;
}

/* ---- The end of an exchange ---- */

static void flush_part(wick_exchange *x) {
    wk_strbuf_append(&x->out, x->part.data, x->part.size);
    if (x->part.failed) x->out.failed = true;
    wk_strbuf_clear(&x->part);
}

/* A part of an answer is none: where memory is short, that is the answer. */
void wk_exchange_end(wick_exchange *x, int status) {
    flush_part(x);
    if (x->out.failed && status == 200) {
        wk_exchange_fail(x, 503, "out of memory");
        return;
    }
    if (x->status == 0) x->status = status;
}

void wk_exchange_event(wick_exchange *x, const char *type) {
    const size_t before = x->out.size;
    x->event_ns = wk_clock_ns();
    x->has_events = true;
    x->status = 200;
    if (type) wk_strbuf_format(&x->out, "event: %s\n", type);
    wk_strbuf_text(&x->out, "data: ");
    flush_part(x);
    wk_strbuf_text(&x->out, "\n\n");
    if (x->out.failed) x->out.size = before;
}

void wk_exchange_line(wick_exchange *x) {
    const size_t before = x->out.size;
    x->event_ns = wk_clock_ns();
    x->has_events = true;
    x->status = 200;
    flush_part(x);
    wk_strbuf_text(&x->out, "\n");
    if (x->out.failed) x->out.size = before;
}

void wk_exchange_ping(wick_exchange *x) {
    const uint64_t since = x->event_ns > 0 ? x->event_ns : x->opened_ns;
    if (!x->is_stream || x->style->stream_type || x->is_paused ||
        wk_seconds_since(since) < x->api->ping_interval)
        return;
    x->event_ns = wk_clock_ns();
    x->has_events = true;
    x->status = 200;
    wk_strbuf_text(&x->out, ": waiting\n\n");
}

static const char *type_of(int status) {
    switch (status) {
    case 401: return "authentication_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 500: return "server_error";
    case 501: return "not_supported_error";
    case 503: return "unavailable_error";
    default: return "invalid_request_error";
    }
}

void wk_write_error(wk_strbuf *to, int status, const char *message) {
    wk_write_open(to, '{');
    wk_write_key(to, "error");
    wk_write_open(to, '{');
    wk_write_put_whole(to, "code", (uint64_t)status);
    wk_write_put(to, "message", message);
    wk_write_put(to, "type", type_of(status));
    wk_write_put(to, "param", NULL);
    wk_write_close(to, '}');
    wk_write_close(to, '}');
}

void wk_exchange_fail(wick_exchange *x, int status, const char *message) {
    wk_strbuf_clear(&x->part);
    x->out.failed = false;
    if (x->has_events && x->style->event_error)
        x->style->event_error(x, status, message);
    else if (x->style && x->style->error)
        x->style->error(&x->part, status, message);
    else
        wk_write_error(&x->part, status, message);
    if (x->has_events && x->style->stream_type)
        wk_exchange_line(x);
    else if (x->has_events)
        wk_exchange_event(x, x->style->error || x->style->event_error ? "error" : NULL);
    wk_exchange_end(x, status);
}

int wk_status_of(wick_status status) {
    switch (status) {
    case WICK_ERR_OUT_OF_MEMORY:
    case WICK_ERR_DEVICE_LOST: return 503;
    case WICK_ERR_NOT_FOUND: return 404;
    case WICK_ERR_VALUE:
    case WICK_ERR_FORMAT:
    case WICK_ERR_INDEX:
    case WICK_ERR_STATE:
    case WICK_ERR_ARGUMENT:
    case WICK_ERR_UNSUPPORTED: return 400;
    default: return 500;
    }
}

/* The day by the proleptic Gregorian calendar (Howard Hinnant, chrono-compatible low-level date
 * algorithms): eras of 400 years that begin in March. */
wick_time_of_day wk_time_of(int64_t seconds_since_1970) {
    const int64_t days = seconds_since_1970 / 86400, z = days + 719468;
    const int64_t era = z / 146097, of_era = z - era * 146097;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int64_t month = (5 * of_year + 2) / 153, day = of_year - (153 * month + 2) / 5 + 1;
    const int m = (int)(month < 10 ? month + 3 : month - 9);
    const int s = (int)(seconds_since_1970 % 86400);
    return (wick_time_of_day){.year = (int)(year + era * 400) + (m <= 2),
                              .month = m,
                              .day = (int)day,
                              .hour = s / 3600,
                              .minute = s / 60 % 60,
                              .second = s % 60};
}

void wk_write_time(wk_strbuf *to, const char *key, int64_t seconds) {
    const wick_time_of_day t = wk_time_of(seconds);
    char text[64];
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02dZ", t.year, t.month, t.day, t.hour,
             t.minute, t.second);
    wk_write_put(to, key, text);
}

/* ---- What was generated ---- */

void wk_choice_keep_text(wk_api_choice *choice, bool is_reasoning, wk_str text) {
    wk_strbuf_append(is_reasoning ? &choice->reasoning : &choice->content, text.text, text.size);
}

void wk_exchange_name(wick_exchange *x, const char *kind) {
    snprintf(x->id, sizeof x->id, "%s%08llx%08llx", kind, (unsigned long long)x->time,
             (unsigned long long)x->api->n_opened);
    x->number = x->id + strlen(kind);
}

void wk_write_head(wick_exchange *x, const char *object) {
    wk_strbuf *const to = &x->part;
    wk_write_open(to, '{');
    wk_write_put(to, "id", x->id);
    wk_write_put(to, "object", object);
    wk_write_put_whole(to, "created", (uint64_t)x->time);
    wk_write_put(to, "model", x->api->name);
    wk_write_put(to, "system_fingerprint", x->api->build);
    if (x->has_tools_in_words) wk_write_put(to, "tool_format", "generic");
    wk_write_key(to, "choices");
    wk_write_open(to, '[');
}

const char *wk_finish_reason(const wk_api_choice *choice) {
    if (choice->reason == WICK_END_MAX_TOKENS || choice->reason == WICK_END_CONTEXT_FULL)
        return "length";
    return choice->n_calls > 0 ? "tool_calls" : "stop";
}

void wk_write_usage(wick_exchange *x) {
    uint64_t n_read = 0, n_generated = 0, n_reused = 0;
    for (uint32_t i = 0; i < x->n_choices; i++) {
        n_generated += x->choices[i].stats.n_generated;
        if (i % x->n > 0) continue;
        n_read += x->choices[i].prompt->n;
        n_reused += x->choices[i].stats.n_reused;
    }
    wk_write_key(&x->part, "usage");
    wk_write_open(&x->part, '{');
    wk_write_put_whole(&x->part, "prompt_tokens", n_read);
    wk_write_put_whole(&x->part, "completion_tokens", n_generated);
    wk_write_put_whole(&x->part, "total_tokens", n_read + n_generated);
    wk_write_key(&x->part, "prompt_tokens_details");
    wk_write_open(&x->part, '{');
    wk_write_put_whole(&x->part, "cached_tokens", n_reused);
    wk_write_close(&x->part, '}');
    wk_write_close(&x->part, '}');
}
