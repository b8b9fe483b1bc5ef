/* SPDX-License-Identifier: Apache-2.0
 *
 * Door authentication: the tokens of one session, and who a request comes from (spec/door.md 10).
 *
 * The key lives in this object's memory alone and is overwritten when it goes: tokens die with the
 * process.
 */
#pragma once

#include "base/keys/ed25519.h"
#include "base/secret.h"
#include "net/http_client.h"

#define AUTH_OPERATOR "operator"

struct door_auth;

struct auth_declaration {
    const char *name;
    const char *const *scopes; /* names of the scope set, checked by the manifest */
    size_t scope_count;
};

/* Mints `operator` (every scope) and each declared credential. <realm> is the capsule's name. */
struct door_auth *
door_auth_new (const char *realm, const struct auth_declaration *declared, size_t count);
void door_auth_free (struct door_auth *a);
DEFINE_CLEANUP (struct door_auth, door_auth_free)

/* Makes this the door of a formation's member: formation tokens addressed to it grant the
 * credential member:<from>. The key is copied; ed25519_load came before. */
void door_auth_set_formation (struct door_auth *a, const char *formation_id, const char *member,
                              const unsigned char verify_key[ED25519_KEY_LEN]);
/* The member behind a credential of a formation token, or NULL. Borrowed from the credential. */
const char *auth_member_of (const char *credential);

/* Operator first, then the others sorted by name. Borrowed. */
size_t door_auth_count (const struct door_auth *a);
const char *door_auth_name (const struct door_auth *a, size_t i);
const struct secret *door_auth_token (const struct door_auth *a, size_t i);

enum auth_refusal {
    AUTH_GRANTED,
    AUTH_UNAUTHENTICATED,    /* 401: no Authorization line */
    AUTH_INVALID_TOKEN,      /* 401: never saying why */
    AUTH_INSUFFICIENT_SCOPE, /* 403 */
    AUTH_NOT_PERMITTED,      /* 403: a genuine formation token for another member's door */
};

/* Who sent these headers: *credential (borrowed from a) when granted or not permitted. On one
 * thread. */
enum auth_refusal door_auth_check (struct door_auth *a, const struct http_header *headers,
                                   size_t count, const char **credential);
/* Whether a credential of this session holds a scope. */
bool door_auth_allows (const struct door_auth *a, const char *credential, const char *scope);

/* The token of the only Authorization line when that is "Bearer <token>", as sent; else NULL.
 * Borrowed. */
const char *bearer_of_headers (const struct http_header *headers, size_t count);

/* The answer to a refusal: status, challenge (owned) and JSON body (owned). <credential> and
 * <scope> for the 403. */
int auth_refusal_answer (const struct door_auth *a, enum auth_refusal refusal,
                         const char *credential, const char *scope, char **challenge, char **body);
