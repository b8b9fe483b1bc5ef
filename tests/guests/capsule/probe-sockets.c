/* SPDX-License-Identifier: Apache-2.0
 *
 * Script capsule: tries every way to a raw socket. The task is `PORT NAME`; out/result.txt holds
 * one line a way,
 * `<way>: <outcome>`, where the outcome of 127.0.0.1:PORT or of looking NAME up is `reached` or
 * `denied <code>`.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

#include "guest.h"

static struct mur_text result;

static void
tell (const char *way, bool is_reached, unsigned code)
{
    if (is_reached)
        mur_text_printf (&result, "%s: reached\n", way);
    else
        mur_text_printf (&result, "%s: denied %u\n", way, code);
}

static void
try_tcp (wasi_sockets_tcp_borrow_network_t network, wasi_sockets_tcp_ip_socket_address_t *address)
{
    wasi_sockets_tcp_create_socket_own_tcp_socket_t socket;
    wasi_sockets_tcp_error_code_t code = 0;
    if (! wasi_sockets_tcp_create_socket_create_tcp_socket (
            WASI_SOCKETS_NETWORK_IP_ADDRESS_FAMILY_IPV4, &socket, &code)) {
        tell ("tcp create", false, code);
        return;
    }
    wasi_sockets_tcp_borrow_tcp_socket_t borrowed = wasi_sockets_tcp_borrow_tcp_socket (socket);
    bool is_started =
        wasi_sockets_tcp_method_tcp_socket_start_connect (borrowed, network, address, &code);
    if (is_started) {
        wasi_sockets_tcp_tuple2_own_input_stream_own_output_stream_t streams;
        wasi_sockets_tcp_own_pollable_t ready =
            wasi_sockets_tcp_method_tcp_socket_subscribe (borrowed);
        wasi_io_poll_method_pollable_block (wasi_io_poll_borrow_pollable (ready));
        is_started = wasi_sockets_tcp_method_tcp_socket_finish_connect (borrowed, &streams, &code);
    }
    tell ("tcp connect", is_started, code);
}

static void
try_tcp_listen (wasi_sockets_tcp_borrow_network_t network)
{
    wasi_sockets_tcp_create_socket_own_tcp_socket_t socket;
    wasi_sockets_tcp_error_code_t code = 0;
    wasi_sockets_tcp_ip_socket_address_t any = { .tag =
                                                     WASI_SOCKETS_NETWORK_IP_SOCKET_ADDRESS_IPV4 };
    if (! wasi_sockets_tcp_create_socket_create_tcp_socket (
            WASI_SOCKETS_NETWORK_IP_ADDRESS_FAMILY_IPV4, &socket, &code))
        return;
    bool is_bound = wasi_sockets_tcp_method_tcp_socket_start_bind (
        wasi_sockets_tcp_borrow_tcp_socket (socket), network, &any, &code);
    tell ("tcp bind", is_bound, code);
}

static void
try_udp (wasi_sockets_udp_borrow_network_t network, wasi_sockets_udp_ip_socket_address_t *address)
{
    wasi_sockets_udp_create_socket_own_udp_socket_t socket;
    wasi_sockets_udp_error_code_t code = 0;
    wasi_sockets_udp_ip_socket_address_t any = { .tag =
                                                     WASI_SOCKETS_NETWORK_IP_SOCKET_ADDRESS_IPV4 };
    wasi_sockets_udp_tuple2_own_incoming_datagram_stream_own_outgoing_datagram_stream_t streams;
    if (! wasi_sockets_udp_create_socket_create_udp_socket (
            WASI_SOCKETS_NETWORK_IP_ADDRESS_FAMILY_IPV4, &socket, &code)) {
        tell ("udp create", false, code);
        return;
    }
    wasi_sockets_udp_borrow_udp_socket_t borrowed = wasi_sockets_udp_borrow_udp_socket (socket);
    bool is_bound =
        wasi_sockets_udp_method_udp_socket_start_bind (borrowed, network, &any, &code) &&
        wasi_sockets_udp_method_udp_socket_finish_bind (borrowed, &code);
    tell ("udp bind", is_bound, code);
    if (is_bound)
        tell ("udp connect",
              wasi_sockets_udp_method_udp_socket_stream (borrowed, address, &streams, &code), code);
}

static void
try_lookup (wasi_sockets_ip_name_lookup_borrow_network_t network, const char *name)
{
    guest_string_t string = { (uint8_t *)(uintptr_t)name, strlen (name) };
    wasi_sockets_ip_name_lookup_own_resolve_address_stream_t stream;
    wasi_sockets_ip_name_lookup_error_code_t code = 0;
    wasi_sockets_ip_name_lookup_option_ip_address_t address = { 0 };
    bool is_started =
        wasi_sockets_ip_name_lookup_resolve_addresses (network, &string, &stream, &code);
    if (is_started) {
        wasi_sockets_ip_name_lookup_borrow_resolve_address_stream_t borrowed =
            wasi_sockets_ip_name_lookup_borrow_resolve_address_stream (stream);
        wasi_sockets_ip_name_lookup_own_pollable_t ready =
            wasi_sockets_ip_name_lookup_method_resolve_address_stream_subscribe (borrowed);
        wasi_io_poll_method_pollable_block (wasi_io_poll_borrow_pollable (ready));
        is_started =
            wasi_sockets_ip_name_lookup_method_resolve_address_stream_resolve_next_address (
                borrowed, &address, &code) &&
            address.is_some;
    }
    tell ("lookup", is_started, code);
}

void
mur_capsule (void)
{
    char *task = mur_file_read ("murmur-runtime/task.md", 4096, NULL, NULL);
    char *name = task != NULL ? strchr (task, ' ') : NULL;
    wasi_sockets_instance_network_own_network_t network =
        wasi_sockets_instance_network_instance_network ();
    wasi_sockets_network_borrow_network_t borrowed = wasi_sockets_network_borrow_network (network);
    wasi_sockets_network_ip_socket_address_t address = {
        .tag = WASI_SOCKETS_NETWORK_IP_SOCKET_ADDRESS_IPV4
    };
    address.val.ipv4.port = (uint16_t)(task != NULL ? strtoul (task, NULL, 10) : 0);
    address.val.ipv4.address.f0 = 127;
    address.val.ipv4.address.f3 = 1;
    try_tcp (borrowed, &address);
    try_tcp_listen (borrowed);
    try_udp (borrowed, &address);
    try_lookup (borrowed, name != NULL ? name + 1 : "localhost");
    mur_file_write ("out/result.txt", result.data, result.len, true, NULL);
}
