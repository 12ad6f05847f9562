/* server/listen.h: a socket at which clients may connect. */
#ifndef WICK_CLI_SERVER_LISTEN_H
#define WICK_CLI_SERVER_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_listener {
    int socket;        /* for the caller to close; -1: there is none */
    uint32_t port;     /* 0: it has none */
    char address[160]; /* "http://127.0.0.1:8080", "unix:PATH" */
    char path[108];    /* of a UNIX socket; "": it is none */
} cli_listener;

/* Returns why it cannot listen there; NULL: it does. The socket of a server that was killed is
 * taken over. */
const char *cli_listen_at_path(cli_listener *to, const char *path);
/* The same; port 0: one that is free. */
const char *cli_listen_at_host(cli_listener *to, const char *host, uint32_t port);
/* The file of a UNIX socket. */
void cli_listener_remove(const cli_listener *listener);

#endif
