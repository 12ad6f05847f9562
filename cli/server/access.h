/* server/access.h: who may ask: keys, pages of other origins, names of this host. */
#ifndef WICK_CLI_SERVER_ACCESS_H
#define WICK_CLI_SERVER_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cli_access {
    const char *const *keys; /* [n_keys]: who has one of them may ask; n_keys 0: anybody */
    size_t n_keys;
    const char *origins; /* what pages may ask: "*", "localhost", or origins with commas */
    const char *hosts;   /* names that Host may have, with commas between them; NULL: any */
} cli_access;

/* Of a request; NULL: not there. */
typedef struct cli_access_headers {
    const char *host, *authorization, *x_api_key, *origin;
} cli_access_headers;

/* The status of HTTP that refuses a request (403: the host, or the origin of the page that asks;
 * 401: the key); 0: none. is_public: it needs no key, and any page may ask. Comparing keys takes as
 * long whatever differs. */
int cli_access_refuses(const cli_access *access, const cli_access_headers *headers, bool is_public);
/* The origin that an answer allows, for the request's (NULL: none). NULL: none. */
const char *cli_access_origin(const cli_access *access, const char *origin);

#endif
