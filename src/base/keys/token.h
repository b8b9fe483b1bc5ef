/* SPDX-License-Identifier: Apache-2.0
 *
 * Bearer tokens of the MAC families: <tag>.<base64url payload>.<base64url HMAC-SHA256>
 * (spec/spawn.md C1).
 *
 * The MAC is over domain, 0x1f and the text of the payload segment, then 0x1f and each bound value.
 * Shape, then MAC in constant time, then payload: nothing of a payload is looked at before its MAC
 * has passed.
 */
#pragma once

#include "base/json.h"

struct token_family {
    const char *tag;    /* "msc1" */
    const char *domain; /* "murmur-spawn-credential-v1" */
};

extern const struct token_family token_spawn_credential; /* msc1 */
extern const struct token_family token_spawn_approval;   /* msa1 */
extern const struct token_family token_door;             /* mdt1 */
extern const struct token_family token_peer_handle;      /* mh1 */
extern const struct token_family token_child_ticket;     /* mct1 */
extern const struct token_family token_control;          /* ctl1 */

#define TOKEN_KEY_LEN 32

/* Mints one. <bound> is NULL or a further value the MAC covers. The caller wipes and frees it. */
char *token_mint (const struct token_family *family, const unsigned char key[TOKEN_KEY_LEN],
                  const json_t *payload, const char *bound);
/* The payload of a genuine token, a new reference, or NULL for anything else. */
json_t *token_verify (const struct token_family *family, const unsigned char key[TOKEN_KEY_LEN],
                      const char *token, const char *bound);
/* True for three segments of strict base64url under the family's tag; says nothing of the MAC. */
bool token_has_shape (const struct token_family *family, const char *token);
/* Replaces what looks like a token of the family, anywhere in the text from <start> on, by
 * "<handle:<loggable id>>". */
void token_scrub (const struct token_family *family, struct buf *text, size_t start);
/* What may be logged of a token: the first 16 hex digits of its SHA-256. */
void token_loggable_id (const char *token, char out[17]);
