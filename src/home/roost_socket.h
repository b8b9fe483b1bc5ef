/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the spawn referee is found when nobody says: a socket and a token in the user's own
 * ~/.murmur (spec/spawn.md B1). Both sides ask here.
 */
#pragma once

#include <stdbool.h>

/* "<home>/.murmur/roost.sock" and "<home>/.murmur/roost.token". Owned; NULL without HOME. */
char *roost_socket_path (void);
char *roost_token_path (void);

#define ROOST_REACH_MAX 64

/* The address of a socket is short and paths are not: holds its folder and writes a path through
 * that. Returns the held descriptor, open as long as the path is used, or -1 with errno. */
int roost_socket_reach (const char *path, char reach[ROOST_REACH_MAX]);
