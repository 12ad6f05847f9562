/* server/peers.c: see peers.h. */
#define _POSIX_C_SOURCE 200809L

#include "server/peers.h"

#include <stdlib.h>
#include <sys/socket.h>

struct cli_peer {
    cli_peer *previous, *next;
    int socket;
    time_t since; /* when its request should have begun; 0: it is whole */
};

/* By the monotonic clock. */
static time_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

int cli_socket_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *const info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}

/* What is kept for a connection: state. */
void cli_peers_watch(void *given, struct MHD_Connection *connection, void **state,
                     enum MHD_ConnectionNotificationCode code) {
    cli_peers *const peers = given;
    cli_peer *const known = *state;
    cli_peer *const made = code == MHD_CONNECTION_NOTIFY_STARTED ? calloc(1, sizeof *made) : NULL;
    pthread_mutex_lock(&peers->lock);
    if (made != NULL) {
        *made = (cli_peer){
            .socket = cli_socket_of(connection), .since = seconds(), .next = peers->first};
        if (made->next != NULL) made->next->previous = made;
        peers->first = made;
    } else if (known != NULL) {
        *(known->previous != NULL ? &known->previous->next : &peers->first) = known->next;
        if (known->next != NULL) known->next->previous = known->previous;
    }
    pthread_mutex_unlock(&peers->lock);
    if (made == NULL) free(known);
    *state = made;
}

void cli_peers_set_whole(cli_peers *peers, struct MHD_Connection *connection, bool is_whole) {
    const union MHD_ConnectionInfo *const info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    cli_peer *const known = info != NULL ? info->socket_context : NULL;
    pthread_mutex_lock(&peers->lock);
    if (known != NULL) known->since = is_whole ? 0 : seconds();
    pthread_mutex_unlock(&peers->lock);
}

void cli_peers_sweep(cli_peers *peers, uint32_t timeout) {
    const time_t now = seconds();
    pthread_mutex_lock(&peers->lock);
    const bool is_due = now != peers->swept;
    peers->swept = now;
    for (cli_peer *at = peers->first; is_due && at != NULL; at = at->next)
        if (at->since > 0 && now - at->since > (time_t)timeout) shutdown(at->socket, SHUT_RDWR);
    pthread_mutex_unlock(&peers->lock);
}
