/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP server's loop: libmicrohttpd run from our own epoll, on one thread.
 *
 * We accept ourselves and hand connections over (MHD_add_connection), so that the cap sheds whom we
 * choose and no library default decides. Other threads never touch libmicrohttpd: an answer or a
 * wake is queued under server->lock and an eventfd tells the loop.
 */
#pragma once

/* Runs until the server is closing and has wound down; <ctx> is the struct http_server. NULL. */
void *http_server_run (void *ctx);
