/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a login on this machine: a port of loopback a browser is sent back to, and a terminal
 * where its address can be pasted when the browser is elsewhere.
 *
 * Always true: only loopback is listened on; what comes is bounded in size and time and never
 * shown; what does not belong to the login is answered and waited past.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct login_listener;

/* <port> 0: any. E-IO-003. */
struct login_listener *login_listener_new (unsigned port, struct mur_error **err);
/* "http://127.0.0.1:PORT/callback". Borrowed. */
const char *login_listener_uri (const struct login_listener *l);

typedef bool login_query_fn (void *ctx, const char *query);
/* The query of the first answer <is_ours> says yes to, within that time. Owned; E-MCP-009. */
char *login_listener_wait (struct login_listener *l, uint64_t timeout_ms, login_query_fn *is_ours,
                           void *ctx, struct mur_error **err);
void login_listener_free (struct login_listener *l);
DEFINE_CLEANUP (struct login_listener, login_listener_free)

/* Opens an address in the person's browser ($BROWSER, else the desktop's). False: there is none. */
bool login_open_browser (const char *url);
