/* curl.c: http.h by libcurl. */
#define _POSIX_C_SOURCE 200809L

#include "http.h"

#include "interrupt.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_REDIRECTS = 10 };

struct cli_http {
    CURL *curl;
    uint32_t stall_seconds;
    char reason[CURL_ERROR_SIZE];
};

/* One call of cli_http_get. */
typedef struct exchange {
    CURL *curl;
    const cli_http_request *request;
    cli_http_answer answer;
    bool has_begun, is_stopped;
    bool is_odd; /* neither an error of HTTP nor what was asked for */
} exchange;

bool cli_http_is_here(void) { return true; }

cli_http *cli_http_open(uint32_t stall_seconds) {
    cli_http *const http = calloc(1, sizeof *http);
    if (http == NULL) return NULL;
    http->stall_seconds = stall_seconds;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) http->curl = curl_easy_init();
    if (http->curl != NULL) return http;
    free(http);
    return NULL;
}

void cli_http_close(cli_http *http) {
    if (http == NULL) return;
    curl_easy_cleanup(http->curl);
    curl_global_cleanup();
    free(http);
}

/* ---- Headers ---- */

/* The value of a line "name: value" without white space around it; NULL: another header. */
static const char *header_value(const char *line, size_t size, const char *name, size_t *length) {
    const size_t n = strlen(name);
    if (size <= n || line[n] != ':' || strncasecmp(line, name, n) != 0) return NULL;
    const char *begin = line + n + 1, *end = line + size;
    while (begin < end && (*begin == ' ' || *begin == '\t')) begin++;
    while (end > begin && (unsigned char)end[-1] <= ' ') end--;
    *length = (size_t)(end - begin);
    return begin;
}

/* "bytes 5-9/10". */
static void take_range(cli_http_answer *answer, const char *value, size_t length) {
    char text[96];
    uint64_t first = 0, last = 0, total = 0;
    snprintf(text, sizeof text, "%.*s", length < sizeof text ? (int)length : 0, value);
    const int n = sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &first, &last, &total);
    if (n < 2) return;
    answer->offset = first;
    if (n == 3) answer->total = total;
}

static size_t take_header(char *line, size_t one, size_t size, void *user) {
    cli_http_answer *const answer = &((exchange *)user)->answer;
    (void)one; /* is 1 */
    size_t length = 0;
    const char *value;
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* what a redirect said of itself is void */
        answer->etag[0] = '\0';
        answer->offset = 0;
        answer->total = UINT64_MAX;
    } else if ((value = header_value(line, size, "etag", &length)) != NULL) {
        if (length < sizeof answer->etag)
            snprintf(answer->etag, sizeof answer->etag, "%.*s", (int)length, value);
    } else if ((value = header_value(line, size, "content-range", &length)) != NULL) {
        take_range(answer, value, length);
    } else if ((value = header_value(line, size, "x-linked-etag", &length)) != NULL) {
        const bool is_quoted = length > 2 && value[0] == '"';
        (void)cli_digest_parse(value + is_quoted, length - 2 * (size_t)is_quoted, &answer->sha256);
    }
    return size;
}

/* ---- Body ---- */

static void complete_answer(exchange *e) {
    curl_off_t length = -1;
    curl_easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &e->answer.status);
    curl_easy_getinfo(e->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (e->answer.status != 206) e->answer.offset = 0;
    if (e->answer.status != 206 && length >= 0) e->answer.total = (uint64_t)length;
}

static bool begin_once(exchange *e) {
    if (e->has_begun) return !e->is_stopped && !e->is_odd;
    e->has_begun = true;
    complete_answer(e);
    e->is_odd = e->answer.status != 200 && e->answer.status != 206;
    if (e->is_odd) return false;
    e->is_stopped = !e->request->begin(e->request->user, &e->answer);
    return !e->is_stopped;
}

static size_t take_bytes(char *bytes, size_t one, size_t size, void *user) {
    exchange *const e = user;
    (void)one;
    if (!begin_once(e)) return 0;
    e->is_stopped = !e->request->take(e->request->user, bytes, size);
    return e->is_stopped ? 0 : size; /* 0 fails the transfer where size is not 0 */
}

static int watch(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up) {
    (void)user, (void)total, (void)now, (void)up_total, (void)up;
    return cli_interrupted();
}

/* ---- The call ---- */

static bool is_https(const char *url) { return strncasecmp(url, "https:", 6) == 0; }

static void set_up(cli_http *http, exchange *e) {
    CURL *const curl = http->curl;
    const cli_http_request *const r = e->request;
    const char *const authorities = getenv("SSL_CERT_FILE");
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, r->url);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "wick");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->reason);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    /* What begins encrypted stays so. */
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_https(r->url) ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)http->stall_seconds);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)http->stall_seconds);
    if (authorities != NULL && authorities[0] != '\0')
        curl_easy_setopt(curl, CURLOPT_CAINFO, authorities);
    if (r->token != NULL) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, r->token);
    }
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, e);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, e);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

/* Returns what the caller frees; *has_failed: memory is short. */
static struct curl_slist *set_range(CURL *curl, const cli_http_request *r, bool *has_failed) {
    *has_failed = false;
    if (r->offset == 0) return NULL;
    char text[CLI_ETAG_BYTES + 16];
    snprintf(text, sizeof text, "%" PRIu64 "-", r->offset);
    *has_failed = curl_easy_setopt(curl, CURLOPT_RANGE, text) != CURLE_OK;
    if (r->if_range == NULL) return NULL;
    snprintf(text, sizeof text, "If-Range: %s", r->if_range);
    struct curl_slist *const headers = curl_slist_append(NULL, text);
    *has_failed = *has_failed || headers == NULL;
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    return headers;
}

static cli_http_outcome outcome_of(const exchange *e, CURLcode code) {
    if (e->is_stopped) return CLI_HTTP_STOPPED;
    if (e->is_odd) return CLI_HTTP_REFUSED;
    if (cli_interrupted()) return CLI_HTTP_INTERRUPTED;
    switch (code) {
    case CURLE_OK: return CLI_HTTP_DONE;
    case CURLE_HTTP_RETURNED_ERROR: {
        const bool is_passing = e->answer.status >= 500 || e->answer.status == 429;
        return is_passing ? CLI_HTTP_CUT : CLI_HTTP_REFUSED;
    }
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return CLI_HTTP_CUT;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR: return CLI_HTTP_UNREACHED;
    default: return CLI_HTTP_FAILED;
    }
}

/* What libcurl says in its own way is said in ours where people meet it. */
static void explain(const cli_http *http, const exchange *e, CURLcode code, cli_http_end *end) {
    const char *const detail = http->reason[0] != '\0' ? http->reason : curl_easy_strerror(code);
    const size_t size = sizeof end->reason;
    switch (e->is_odd ? CURLE_HTTP_RETURNED_ERROR : code) {
    case CURLE_HTTP_RETURNED_ERROR:
        snprintf(end->reason, size, "the server answered %ld", e->answer.status);
        break;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR: snprintf(end->reason, size, "the connection was cut"); break;
    case CURLE_OPERATION_TIMEDOUT:
        snprintf(end->reason, size, "nothing came for %" PRIu32 " s", http->stall_seconds);
        break;
    case CURLE_TOO_MANY_REDIRECTS:
        snprintf(end->reason, size, "the server redirects more than %d times", MAX_REDIRECTS);
        break;
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (e->answer.status >= 300 && is_https(e->request->url))
            snprintf(end->reason, size, "the server redirects from https to what is not encrypted");
        else
            snprintf(end->reason, size, "only http and https are spoken");
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        snprintf(end->reason, size, "the server's certificate is not trusted (%s)", detail);
        break;
    default: snprintf(end->reason, size, "%s", detail); break;
    }
}

cli_http_end cli_http_get(cli_http *http, const cli_http_request *request) {
    exchange e = {.curl = http->curl, .request = request, .answer.total = UINT64_MAX};
    bool has_failed = false;
    set_up(http, &e);
    struct curl_slist *const headers = set_range(http->curl, request, &has_failed);
    http->reason[0] = '\0';
    const CURLcode code = has_failed ? CURLE_OUT_OF_MEMORY : curl_easy_perform(http->curl);
    if (code == CURLE_OK)
        (void)begin_once(&e); /* there may have been no body */
    else
        complete_answer(&e);
    cli_http_end end = {.outcome = outcome_of(&e, code), .status = e.answer.status};
    if (end.outcome != CLI_HTTP_DONE) explain(http, &e, code, &end);
    curl_slist_free_all(headers);
    return end;
}
