/* http.h: GET over HTTP, for `wick pull` alone. http/curl.c does it with libcurl; a build without
 * libcurl has http/none.c, which says so. */
#ifndef WICK_CLI_HTTP_H
#define WICK_CLI_HTTP_H

#include "sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_ETAG_BYTES = 256 };

/* What the headers say, before the first byte of the body. */
typedef struct cli_http_answer {
    long status;               /* the last one, after redirects; 0: no answer */
    uint64_t offset;           /* of the first byte that comes: not 0 where it is a range */
    uint64_t total;            /* bytes of the whole; UINT64_MAX: not reported */
    char etag[CLI_ETAG_BYTES]; /* "": none */
    cli_digest sha256;         /* of the whole, as hubs report it (X-Linked-Etag); "": unknown */
} cli_http_answer;

typedef struct cli_http_request {
    const char *url;
    const char *token;    /* NULL: none; never sent to another host that is redirected to */
    uint64_t offset;      /* asks for what lies from here on */
    const char *if_range; /* only where the etag is still this one, else for the whole; NULL */
    void *user;
    /* Called once where the status is 200 or 206, also for a body without a byte, then for every
     * piece of it. False: stop; whoever says it knows why. */
    bool (*begin)(void *user, const cli_http_answer *answer);
    bool (*take)(void *user, const void *bytes, size_t size);
} cli_http_request;

typedef enum cli_http_outcome {
    CLI_HTTP_DONE,
    CLI_HTTP_REFUSED,     /* a status from 400 on */
    CLI_HTTP_CUT,         /* trying again may help */
    CLI_HTTP_UNREACHED,   /* no connection: only where there was one before */
    CLI_HTTP_FAILED,      /* it will not */
    CLI_HTTP_STOPPED,     /* by begin or take */
    CLI_HTTP_INTERRUPTED, /* by Ctrl-C */
} cli_http_outcome;

typedef struct cli_http_end {
    cli_http_outcome outcome;
    long status;
    bool is_slow;     /* given up, because nothing or next to nothing came */
    char reason[384]; /* for all but the first and the last two: what a sentence ends with */
} cli_http_end;

typedef struct cli_http cli_http;

/* Whether this build can, at all; reports why not. */
bool cli_http_is_here(void);
/* stall_seconds: how long nothing, or less than 1 KiB a second, may come. NULL: out of memory. */
cli_http *cli_http_open(uint32_t stall_seconds);
void cli_http_close(cli_http *http);
/* Blocks until all is there. Connections are kept from one call to the next. */
cli_http_end cli_http_get(cli_http *http, const cli_http_request *request);

#endif
