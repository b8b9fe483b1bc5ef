/* SPDX-License-Identifier: Apache-2.0
 *
 * The requestState of a call that wants input: what a server gets back of a client it does not
 * trust.
 *
 * Always true: only the one who made it can have made it; it is good for one binding - who asks,
 * what was called with what - and until its end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MCP_STATE_KEY_LEN 32

/* <subject> holds no dot and comes back; <binding> must be the same when it does. Owned. */
char *mcp_state_make (const unsigned char key[MCP_STATE_KEY_LEN], const char *subject,
                      const char *binding, uint64_t until_ms);
/* The subject (owned), or NULL: altered, of another binding, or past its end. */
char *mcp_state_read (const unsigned char key[MCP_STATE_KEY_LEN], const char *state,
                      const char *binding, uint64_t now_ms);
