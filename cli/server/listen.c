/* server/listen.c: see listen.h. */
#define _POSIX_C_SOURCE 200809L

#include "server/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_at(const struct sockaddr *address, socklen_t size) {
    const int listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1, unread = 64 * 1024;
    if (listener < 0) return -1;
    if (address->sa_family != AF_UNIX)
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    /* Of connections, which have it from here: else the system keeps megabytes of an answer that a
     * client does not read, and its text goes on for as long. */
    setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &unread, sizeof unread);
    if (bind(listener, address, size) == 0 && listen(listener, SOMAXCONN) == 0) return listener;
    const int why = errno;
    close(listener);
    errno = why;
    return -1;
}

/* The socket that a server left which was killed: no server listens at it. */
static void remove_stale(const struct sockaddr_un *address) {
    struct stat file;
    if (stat(address->sun_path, &file) != 0 || !S_ISSOCK(file.st_mode)) return;
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_stale = probe >= 0 &&
                          connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 &&
                          errno == ECONNREFUSED;
    if (probe >= 0) close(probe);
    if (is_stale) unlink(address->sun_path);
}

const char *cli_listen_at_path(cli_listener *to, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    to->socket = -1;
    if (strlen(path) >= sizeof address.sun_path) return strerror(ENAMETOOLONG);
    strcpy(address.sun_path, path);
    remove_stale(&address);
    to->socket = listen_at((const struct sockaddr *)&address, sizeof address);
    if (to->socket < 0) return strerror(errno);
    strcpy(to->path, path);
    snprintf(to->address, sizeof to->address, "unix:%s", path);
    return NULL;
}

const char *cli_listen_at_host(cli_listener *to, const char *host, uint32_t port) {
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char service[16];
    snprintf(service, sizeof service, "%u", port);
    to->socket = -1;
    const int unknown = getaddrinfo(host, service, &hints, &found);
    if (unknown != 0) return gai_strerror(unknown);
    to->socket = listen_at(found->ai_addr, found->ai_addrlen);
    const int why = errno;
    freeaddrinfo(found);
    if (to->socket < 0) return strerror(why);
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    if (getsockname(to->socket, (struct sockaddr *)&own, &size) != 0) return strerror(errno);
    getnameinfo((const struct sockaddr *)&own, size, NULL, 0, service, sizeof service,
                NI_NUMERICSERV);
    to->port = (uint32_t)strtoul(service, NULL, 10);
    const char *const format = strchr(host, ':') != NULL ? "http://[%s]:%s" : "http://%s:%s";
    snprintf(to->address, sizeof to->address, format, host, service);
    return NULL;
}

void cli_listener_remove(const cli_listener *listener) {
    if (listener->path[0] != '\0') unlink(listener->path);
}
