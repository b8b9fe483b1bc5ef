/* SPDX-License-Identifier: Apache-2.0
 *
 * The server of the page: which address answers what.
 *
 * Nothing that may take a while is done on the server's thread; a request has a thread of its own
 * for as long as it is answered, and their number is bounded.
 */
#pragma once

#include "cli/ui/ui_acts.h"
#include "cli/ui/ui_gate.h"
#include "cli/ui/ui_hub.h"
#include "cli/ui/ui_world.h"

struct ui_server;

struct ui_server_parts {
    struct ui_gate *gate;
    struct ui_hub *hub;
    struct ui_world *world;
    struct ui_acts *acts;
    const char *workdir; /* of --workdir; NULL: none */
    bool is_read_only;
};

/* Listens on 127.0.0.1. Everything is borrowed. E-RUN-010, E-IO-003. */
struct ui_server *
ui_server_bind (const struct ui_server_parts *parts, unsigned port, struct mur_error **err);
unsigned ui_server_port (const struct ui_server *s);
/* Begins to answer. */
bool ui_server_serve (struct ui_server *s, struct mur_error **err);
void ui_server_free (struct ui_server *s);
DEFINE_CLEANUP (struct ui_server, ui_server_free)
