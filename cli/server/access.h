/* server/access.h: who may ask: keys, pages of other origins, names of this host. */
#ifndef WICK_CLI_SERVER_ACCESS_H
#define WICK_CLI_SERVER_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether one of keys [n_keys] was given; takes as long whatever differs. NULL: none was given. */
bool cli_access_key(const char *const *keys, size_t n_keys, const char *authorization,
                    const char *x_api_key);
/* The origin that an answer allows, for the request's (NULL: none), of those that are allowed: "*",
 * "localhost", or origins with commas between them. NULL: none. */
const char *cli_access_origin(const char *allowed, const char *origin);
/* Whether the name in the header Host (without its port) is in the list, which has commas. */
bool cli_access_host(const char *allowed, const char *host);

#endif
