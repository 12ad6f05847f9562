/* server/access.c: see access.h. */
#define _POSIX_C_SOURCE 200809L

#include "server/access.h"

#include <string.h>
#include <strings.h>

static bool is_same(const char *a, const char *b) {
    const size_t n = strlen(a), n_b = strlen(b);
    unsigned char differs = n != n_b;
    for (size_t i = 0; i < n; i++) differs |= (unsigned char)(a[i] ^ b[n_b > 0 ? i % n_b : 0]);
    return differs == 0;
}

static bool has_key(const cli_access *access, const cli_access_headers *headers) {
    static const char bearer[] = "Bearer ";
    const char *const authorization = headers->authorization;
    const char *given = headers->x_api_key; /* any other authorization may be a proxy's */
    if (authorization != NULL && strncasecmp(authorization, bearer, sizeof bearer - 1) == 0)
        given = authorization + sizeof bearer - 1;
    bool is_known = false;
    for (size_t i = 0; i < access->n_keys && given != NULL; i++)
        is_known |= is_same(given, access->keys[i]);
    return is_known;
}

/* Whether the n bytes of name are an item of the list. */
static bool is_listed(const char *list, const char *name, size_t n) {
    for (const char *at = list; *at != '\0';) {
        const size_t size = strcspn(at, ",");
        if (size == n && strncasecmp(at, name, n) == 0) return true;
        at += size + (at[size] == ',');
    }
    return false;
}

/* Of "host:port" or "[address]:port", without the port. */
static size_t host_size(const char *host) {
    return host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
}

static bool has_host(const char *allowed, const char *host) {
    if (host == NULL) return false;
    const size_t n = host_size(host);
    return n <= strlen(host) && is_listed(allowed, host, n);
}

int cli_access_refuses(const cli_access *access, const cli_access_headers *headers,
                       bool is_public) {
    enum { UNAUTHORIZED = 401, FORBIDDEN = 403 };
    if (access->hosts != NULL && !has_host(access->hosts, headers->host)) return FORBIDDEN;
    return is_public || access->n_keys == 0 || has_key(access, headers) ? 0 : UNAUTHORIZED;
}

const char *cli_access_origin(const cli_access *access, const char *origin) {
    static const char local[] = "localhost,127.0.0.1,[::1]";
    if (strcmp(access->origins, "*") == 0) return origin != NULL ? origin : "*";
    if (origin == NULL) return NULL;
    const char *const host = strstr(origin, "://");
    if (strcmp(access->origins, "localhost") == 0)
        return host != NULL && is_listed(local, host + 3, host_size(host + 3)) ? origin : NULL;
    return is_listed(access->origins, origin, strlen(origin)) ? origin : NULL;
}
