/* SPDX-License-Identifier: Apache-2.0
 *
 * libmicrohttpd as one table of functions, loaded when a door is bound (DESIGN 3).
 *
 * Callers: net/http_server.c only.
 */
#pragma once

#include <microhttpd.h>

struct mhd_api {
    struct MHD_Daemon *(*start_daemon) (unsigned flags, uint16_t port, MHD_AcceptPolicyCallback apc,
                                        void *apc_cls, MHD_AccessHandlerCallback dh, void *dh_cls,
                                        ...);
    void (*stop_daemon) (struct MHD_Daemon *daemon);
    enum MHD_Result (*run) (struct MHD_Daemon *daemon);
    enum MHD_Result (*get_timeout) (struct MHD_Daemon *daemon, MHD_UNSIGNED_LONG_LONG *timeout_ms);
    const union MHD_DaemonInfo *(*get_daemon_info) (struct MHD_Daemon *daemon,
                                                    enum MHD_DaemonInfoType what, ...);
    enum MHD_Result (*add_connection) (struct MHD_Daemon *daemon, MHD_socket fd,
                                       const struct sockaddr *peer, socklen_t peer_len);
    int (*get_connection_values_n) (struct MHD_Connection *connection, enum MHD_ValueKind kind,
                                    MHD_KeyValueIteratorN iterator, void *iterator_cls);
    const union MHD_ConnectionInfo *(*get_connection_info) (struct MHD_Connection *connection,
                                                            enum MHD_ConnectionInfoType what, ...);
    enum MHD_Result (*queue_response) (struct MHD_Connection *connection, unsigned status,
                                       struct MHD_Response *response);
    struct MHD_Response *(*create_response_from_buffer) (size_t len, void *data,
                                                         enum MHD_ResponseMemoryMode mode);
    struct MHD_Response *(*create_response_from_callback) (uint64_t size, size_t block_size,
                                                           MHD_ContentReaderCallback reader,
                                                           void *reader_cls,
                                                           MHD_ContentReaderFreeCallback done);
    enum MHD_Result (*add_response_header) (struct MHD_Response *response, const char *name,
                                            const char *value);
    enum MHD_Result (*set_response_options) (struct MHD_Response *response,
                                             enum MHD_ResponseFlags flags, ...);
    void (*destroy_response) (struct MHD_Response *response);
    void (*suspend_connection) (struct MHD_Connection *connection);
    void (*resume_connection) (struct MHD_Connection *connection);
};

/* The loaded table, or NULL with *why set to a static sentence. Thread-safe; loads once. */
const struct mhd_api *mhd_api_get (const char **why);
