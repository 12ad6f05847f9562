/* fetch.h: one file from a server into the store: whole and checked, or not at all. What has come
 * of it stays, and the next call goes on from there. */
#ifndef WICK_CLI_FETCH_H
#define WICK_CLI_FETCH_H

#include "http.h"
#include "store.h"

typedef struct cli_fetch_desc {
    const char *url, *token; /* token NULL: none */
    const char *path;        /* where the file will be */
    const char *source;      /* for the note */
    const char *licence;     /* as the hub reports it, for the note; "": not reported */
    const char *page;        /* where to agree to terms; NULL: there is no such page */
    cli_digest sha256;       /* "": not known beforehand */
    uint64_t size;           /* of the file; UINT64_MAX: not known beforehand */
    uint64_t later_bytes;    /* of files that will follow: space is checked for all */
    uint32_t n_retries;      /* without a byte more than before */
    bool is_quiet;           /* no progress line */
} cli_fetch_desc;

/* Whether the store has this file, so that nothing needs to be fetched. */
bool cli_is_fetched(const cli_fetch_desc *desc);

/* Returns an exit code and reports errors. Watches signals (interrupt.h). */
int cli_fetch(cli_http *http, const cli_fetch_desc *desc);

#endif
