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

static bool is_known(const cli_access *access, const char *key) {
    bool is_found = false;
    for (size_t i = 0; i < access->n_keys && key != NULL; i++)
        is_found |= is_same(key, access->keys[i]);
    return is_found;
}

/* One of them may be a proxy's: Anthropic's clients send both where they have both. */
static bool has_key(const cli_access *access, const cli_access_headers *headers) {
    static const char bearer[] = "Bearer ";
    const char *token = headers->authorization;
    const bool is_bearer = token != NULL && strncasecmp(token, bearer, sizeof bearer - 1) == 0;
    token = is_bearer ? token + sizeof bearer - 1 : NULL;
    const bool has_token = is_known(access, token);
    return is_known(access, headers->x_api_key) || has_token;
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

/* Programs name no origin; a page of this server may ask, and those of the origins that may. */
static bool has_origin(const cli_access *access, const cli_access_headers *headers) {
    const char *const origin = headers->origin;
    if (origin == NULL || cli_access_origin(access, origin) != NULL) return true;
    const char *const own = strstr(origin, "://");
    return own != NULL && headers->host != NULL && strcasecmp(own + 3, headers->host) == 0;
}

int cli_access_refuses(const cli_access *access, const cli_access_headers *headers,
                       bool is_public) {
    enum { UNAUTHORIZED = 401, FORBIDDEN = 403 };
    if (access->hosts != NULL && !has_host(access->hosts, headers->host)) return FORBIDDEN;
    if (is_public) return 0;
    if (!has_origin(access, headers)) return FORBIDDEN;
    return access->n_keys == 0 || has_key(access, headers) ? 0 : UNAUTHORIZED;
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
