/* curl.c: http.h by libcurl, which is loaded when it is needed: it brings some thirty libraries
 * along, 7 MB and their start-up time, and every other command does without. */
#define _POSIX_C_SOURCE 200809L

#include "http.h"

#include "cli.h"
#include "interrupt.h"
#include "library.h"

#include <wick/tools.h>

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MAX_REDIRECTS = 10,
    MAX_HEADER_BYTES = 256 << 10, /* of one answer */
    LEAST_SPEED = 1024            /* bytes a second of a body, below which it is given up */
};

/* X(result, name after "curl_", parameters...) */
#define CURL_FUNCTIONS(X)                                                                          \
    X(CURLcode, global_init, long)                                                                 \
    X(void, global_cleanup, void)                                                                  \
    X(CURL *, easy_init, void)                                                                     \
    X(void, easy_cleanup, CURL *)                                                                  \
    X(void, easy_reset, CURL *)                                                                    \
    X(CURLcode, easy_setopt, CURL *, CURLoption, ...)                                              \
    X(CURLcode, easy_getinfo, CURL *, CURLINFO, ...)                                               \
    X(CURLcode, easy_perform, CURL *)                                                              \
    X(const char *, easy_strerror, CURLcode)                                                       \
    X(struct curl_slist *, slist_append, struct curl_slist *, const char *)                        \
    X(void, slist_free_all, struct curl_slist *)                                                   \
    X(curl_version_info_data *, version_info, CURLversion)

typedef struct curl_library {
    void *handle;
#define CURL_MEMBER(result, name, ...) result (*name)(__VA_ARGS__);
    CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
} curl_library;

struct cli_http {
    curl_library f;
    CURL *curl;
    uint32_t stall_seconds;
    char reason[CURL_ERROR_SIZE];
};

/* One call of cli_http_get. */
typedef struct exchange {
    const curl_library *f;
    CURL *curl;
    const cli_http_request *request;
    cli_http_answer answer;
    double last_bytes;   /* when some of the body came, seconds */
    size_t header_bytes; /* of the answer that is coming */
    bool has_begun, is_stopped;
    bool is_odd; /* neither an error of HTTP nor what was asked for */
} exchange;

/* ---- The library ---- */

static bool load(curl_library *f) {
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"};
    for (size_t i = 0; f->handle == NULL && i < sizeof names / sizeof *names; i++)
        f->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (f->handle == NULL) return false;
    bool has_all = true;
#define CURL_FIND(result, name, ...)                                                               \
    has_all = cli_find_function(f->handle, "curl_" #name, &f->name) && has_all;
    CURL_FUNCTIONS(CURL_FIND)
#undef CURL_FIND
    /* An older one would follow redirects that leave https: it takes no lists of protocols. */
    enum { LEAST_VERSION = 0x075500 };
    return has_all && f->version_info(CURLVERSION_NOW)->version_num >= LEAST_VERSION;
}

bool cli_http_is_here(void) {
    curl_library f = {.handle = NULL};
    const bool is_here = load(&f);
    if (!is_here) cli_error("'wick pull' needs libcurl 7.85 or newer, which is not installed");
    return is_here;
}

cli_http *cli_http_open(uint32_t stall_seconds) {
    cli_http *const http = calloc(1, sizeof *http);
    if (http == NULL) return NULL;
    http->stall_seconds = stall_seconds;
    if (load(&http->f) && http->f.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        http->curl = http->f.easy_init();
    if (http->curl != NULL) return http;
    free(http);
    return NULL;
}

/* The library stays: what it has loaded may have threads or handlers of its own. */
void cli_http_close(cli_http *http) {
    if (http == NULL) return;
    http->f.easy_cleanup(http->curl);
    http->f.global_cleanup();
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
    exchange *const e = user;
    cli_http_answer *const answer = &e->answer;
    (void)one; /* is 1 */
    e->header_bytes += size;
    if (e->header_bytes > MAX_HEADER_BYTES) return 0;
    size_t length = 0;
    const char *value;
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* what a redirect said of itself is void */
        e->header_bytes = size;
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
    e->f->easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &e->answer.status);
    e->f->easy_getinfo(e->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (e->answer.status == 206) return;
    e->answer.offset = 0;
    e->answer.total = (uint64_t)length; /* -1, which is UINT64_MAX: not known */
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
    e->last_bytes = wick_time();
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
    const curl_library *const f = &http->f;
    CURL *const curl = http->curl;
    const cli_http_request *const r = e->request;
    const char *const authorities = getenv("SSL_CERT_FILE");
    f->easy_reset(curl);
    f->easy_setopt(curl, CURLOPT_URL, r->url);
    f->easy_setopt(curl, CURLOPT_USERAGENT, "wick");
    f->easy_setopt(curl, CURLOPT_ERRORBUFFER, http->reason);
    f->easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    f->easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    f->easy_setopt(curl, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    f->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    /* What begins encrypted stays so. */
    f->easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_https(r->url) ? "https" : "http,https");
    f->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)http->stall_seconds);
    f->easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)LEAST_SPEED);
    f->easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)http->stall_seconds);
    if (authorities != NULL && authorities[0] != '\0')
        f->easy_setopt(curl, CURLOPT_CAINFO, authorities);
    if (r->token != NULL) {
        f->easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        f->easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, r->token);
    }
    f->easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    f->easy_setopt(curl, CURLOPT_HEADERDATA, e);
    f->easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    f->easy_setopt(curl, CURLOPT_WRITEDATA, e);
    f->easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch);
    f->easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

/* Returns what the caller frees; *has_failed: memory is short. */
static struct curl_slist *set_range(cli_http *http, const cli_http_request *r, bool *has_failed) {
    *has_failed = false;
    if (r->offset == 0) return NULL;
    char text[CLI_ETAG_BYTES + 16];
    snprintf(text, sizeof text, "%" PRIu64 "-", r->offset);
    *has_failed = http->f.easy_setopt(http->curl, CURLOPT_RANGE, text) != CURLE_OK;
    if (r->if_range == NULL) return NULL;
    snprintf(text, sizeof text, "If-Range: %s", r->if_range);
    struct curl_slist *const headers = http->f.slist_append(NULL, text);
    *has_failed = *has_failed || headers == NULL;
    http->f.easy_setopt(http->curl, CURLOPT_HTTPHEADER, headers);
    return headers;
}

/* The largest header is ours, the longest line of one libcurl's own. Before 8.6 that is out of
 * memory to libcurl, too. */
static bool has_endless_header(const exchange *e, CURLcode code) {
    enum { TOO_LARGE = 100 }; /* CURLE_TOO_LARGE, which older headers of libcurl do not have */
    const bool is_long_line = !e->has_begun && e->last_bytes == 0 && (int)code == TOO_LARGE;
    return e->header_bytes > MAX_HEADER_BYTES || is_long_line;
}

static bool may_be_endless_header(const cli_http *http, const exchange *e, CURLcode code) {
    enum { TELLS_APART = 0x080600 };
    return code == CURLE_OUT_OF_MEMORY && !e->has_begun && e->last_bytes == 0 &&
           http->f.version_info(CURLVERSION_NOW)->version_num < TELLS_APART;
}

/* A body that comes, but hardly. */
static bool is_trickling(const cli_http *http, const exchange *e, CURLcode code) {
    return code == CURLE_OPERATION_TIMEDOUT && e->last_bytes > 0 &&
           wick_time() - e->last_bytes < (double)http->stall_seconds - 0.5;
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
    const char *const detail = http->reason[0] != '\0' ? http->reason : http->f.easy_strerror(code);
    const size_t size = sizeof end->reason;
    if (has_endless_header(e, code)) {
        snprintf(end->reason, size, "the header of the server's answer has no end");
        return;
    }
    if (may_be_endless_header(http, e, code)) {
        snprintf(end->reason, size,
                 "out of memory, or the header of the server's answer has no end");
        return;
    }
    switch (e->is_odd ? CURLE_HTTP_RETURNED_ERROR : code) {
    case CURLE_HTTP_RETURNED_ERROR:
        snprintf(end->reason, size, "the server answered %ld", e->answer.status);
        break;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR: snprintf(end->reason, size, "the connection was cut"); break;
    case CURLE_OPERATION_TIMEDOUT:
        if (is_trickling(http, e, code))
            snprintf(end->reason, size,
                     "less than %d bytes a second were received for %" PRIu32 " s", LEAST_SPEED,
                     http->stall_seconds);
        else
            snprintf(end->reason, size, "nothing was received for %" PRIu32 " s",
                     http->stall_seconds);
        break;
    case CURLE_TOO_MANY_REDIRECTS:
        snprintf(end->reason, size, "the server redirects more than %d times", MAX_REDIRECTS);
        break;
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (e->answer.status >= 300 && is_https(e->request->url))
            snprintf(end->reason, size,
                     "the server redirects from https to an address without encryption");
        else
            snprintf(end->reason, size, "only http and https are supported");
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        snprintf(end->reason, size, "the server's certificate is not trusted (%s)", detail);
        break;
    default: snprintf(end->reason, size, "%s", detail); break;
    }
}

cli_http_end cli_http_get(cli_http *http, const cli_http_request *request) {
    exchange e = {
        .f = &http->f, .curl = http->curl, .request = request, .answer.total = UINT64_MAX};
    bool has_failed = false;
    set_up(http, &e);
    struct curl_slist *const headers = set_range(http, request, &has_failed);
    http->reason[0] = '\0';
    const CURLcode code = has_failed ? CURLE_OUT_OF_MEMORY : http->f.easy_perform(http->curl);
    if (code == CURLE_OK)
        (void)begin_once(&e); /* there may have been no body */
    else
        complete_answer(&e);
    cli_http_end end = {.outcome = outcome_of(&e, code), .status = e.answer.status};
    end.is_slow = code == CURLE_OPERATION_TIMEDOUT;
    if (end.outcome != CLI_HTTP_DONE) explain(http, &e, code, &end);
    http->f.slist_free_all(headers);
    return end;
}
