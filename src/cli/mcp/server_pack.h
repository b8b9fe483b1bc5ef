/* SPDX-License-Identifier: Apache-2.0
 *
 * From a fetched server to a package in the store: looked at once in walls of its own, what it
 * offers shown to a person, everything packed.
 */
#pragma once

#include "cli/line/args.h"
#include "cli/mcp/server_source.h"
#include "mcp/pinned.h"
#include "session/mcp_review.h"

/* Options of the commands that start a server: "--scope", "--network", "--program",
 * "--startup-secs". */
struct server_start {
    struct review_request request; /* its lists point below */
    struct str_list network;
    struct strv hosts, programs, args, env;
    struct secret *key;          /* of one far away; NULL: none */
    char *key_name, *key_header; /* NULL: none; the header: authorization */
    char *work;
};
void server_start_clear (struct server_start *s);
#define _cleanup_start_ _cleanup_ (server_start_clear)
/* Reads them; args and env stay empty. E-IO-001, E-IO-003. */
bool
server_start_read (struct server_start *s, const struct cli_args *args, struct mur_error **err);
/* Points the request to this server, with the arguments and variables it was reviewed with. */
void server_start_as_pinned (struct server_start *s, const char *name,
                             const struct mcp_pinned *pinned, const char *tree);

/* The items of "a,b". */
void split_list (const char *text, struct strv *out);

struct pack_request {
    const struct server_source *source;
    const char *name, *version; /* of the package; NULL: the source's own */
    struct server_start *start;
    bool is_accepted;     /* findings and changes need no answer */
    const json_t *before; /* tools of the version it follows; NULL: it is new */
};
/* Prints what it found; *name and *stored_version (owned) are what is in the store now. False with
 * *err, or without when the person said no. */
bool server_pack (const struct pack_request *q, char **name, char **stored_version,
                  struct mur_error **err);
/* Asks on the terminal, which is told yes or no; without one: no. */
bool server_is_agreed (const char *question);
/* One line a tool: its tokens, its first words, its findings below. */
void server_print_tools (const json_t *tools);
/* What is different, a block a tool; how many are. */
size_t server_print_difference (const json_t *before, const json_t *now);
