/* server/mhd.h: the functions of libmicrohttpd that the server calls. The library is loaded when a
 * server starts, so that other commands do without it. */
#ifndef WICK_CLI_SERVER_MHD_H
#define WICK_CLI_SERVER_MHD_H

#include <microhttpd.h>
#include <stdbool.h>

#define MHD_FUNCTIONS(F)                                                                           \
    F(struct MHD_Daemon *, start_daemon, unsigned, uint16_t, MHD_AcceptPolicyCallback, void *,     \
      MHD_AccessHandlerCallback, void *, ...)                                                      \
    F(enum MHD_Result, is_feature_supported, enum MHD_FEATURE)                                     \
    F(void, stop_daemon, struct MHD_Daemon *)                                                      \
    F(MHD_socket, quiesce_daemon, struct MHD_Daemon *)                                             \
    F(void, suspend_connection, struct MHD_Connection *)                                           \
    F(void, resume_connection, struct MHD_Connection *)                                            \
    F(const union MHD_ConnectionInfo *, get_connection_info, struct MHD_Connection *,              \
      enum MHD_ConnectionInfoType, ...)                                                            \
    F(int, get_connection_values, struct MHD_Connection *, enum MHD_ValueKind,                     \
      MHD_KeyValueIterator, void *)                                                                \
    F(const char *, lookup_connection_value, struct MHD_Connection *, enum MHD_ValueKind,          \
      const char *)                                                                                \
    F(struct MHD_Response *, create_response_from_callback, uint64_t, size_t,                      \
      MHD_ContentReaderCallback, void *, MHD_ContentReaderFreeCallback)                            \
    F(struct MHD_Response *, create_response_from_buffer, size_t, void *,                          \
      enum MHD_ResponseMemoryMode)                                                                 \
    F(enum MHD_Result, add_response_header, struct MHD_Response *, const char *, const char *)     \
    F(enum MHD_Result, queue_response, struct MHD_Connection *, unsigned, struct MHD_Response *)   \
    F(void, destroy_response, struct MHD_Response *)

typedef struct cli_mhd {
#define MHD_MEMBER(result, name, ...) result (*name)(__VA_ARGS__);
    MHD_FUNCTIONS(MHD_MEMBER)
#undef MHD_MEMBER
} cli_mhd;

extern cli_mhd mhd;

/* False: the library is not installed, or is older. */
bool cli_mhd_load(void);

#endif
