/* server/peers.h: connections whose request takes too long. libmicrohttpd ends those that are
 * silent, not those that send a byte now and then. */
#ifndef WICK_CLI_SERVER_PEERS_H
#define WICK_CLI_SERVER_PEERS_H

#include "server/mhd.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

typedef struct cli_peer cli_peer;
typedef struct cli_peers {
    pthread_mutex_t lock; /* of all below */
    cli_peer *first;
    time_t swept;
} cli_peers;

/* Told by libmicrohttpd of connections that come and go; given: the cli_peers. */
void cli_peers_watch(void *given, struct MHD_Connection *connection, void **state,
                     enum MHD_ConnectionNotificationCode code);
/* Whether the connection's request is whole, or the next one should begin. */
void cli_peers_set_whole(cli_peers *peers, struct MHD_Connection *connection, bool is_whole);
/* Once a second, ends connections whose request takes longer than timeout seconds. */
void cli_peers_sweep(cli_peers *peers, uint32_t timeout);
int cli_socket_of(struct MHD_Connection *connection);

#endif
