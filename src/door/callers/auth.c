/* SPDX-License-Identifier: Apache-2.0 */
#include "door/callers/auth.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/keys/formation_token.h"
#include "base/keys/token.h"
#include "door/card/card.h"
#include "manifest/capsule/door_methods.h"

#include <string.h>
#include <strings.h>

struct credential {
    char *name;
    struct strv scopes;
    struct secret *token;
};

struct door_auth {
    char *realm;
    unsigned char key[TOKEN_KEY_LEN];
    struct credential *credentials;
    size_t len;
    char *formation_id, *member; /* NULL: no member's door */
    unsigned char verify_key[ED25519_KEY_LEN];
    struct strv callers; /* "member:<name>" of every one that came */
};

#define MEMBER_PREFIX "member:"

/* What a formation token grants. */
static const enum door_method member_methods[] = { METHOD_SEND_MESSAGE, METHOD_GET_TASK,
                                                   METHOD_CANCEL_TASK, METHOD_LIST_TASKS,
                                                   METHOD_SUBSCRIBE_TO_TASK };

/* True for a name of the scope set: the served methods but GetExtendedAgentCard, and
 * resources/files. */
static bool
auth_scope_is_known (const char *scope)
{
    enum door_method method = door_method_find (scope);
    for (size_t i = 0; i < DOOR_PLANE_SCOPE_COUNT; i++)
        if (strcmp (scope, door_plane_scopes[i]) == 0)
            return true;
    return method < METHOD_GET_EXTENDED_AGENT_CARD;
}

static void
mint (struct door_auth *a, struct credential *c)
{
    _cleanup_json_ json_t *payload = json_object ();
    json_t *scopes = json_array ();
    for (size_t i = 0; i < c->scopes.len; i++)
        json_array_append_new (scopes, json_string (c->scopes.items[i]));
    json_set_string (payload, "credential", c->name);
    json_object_set_new (payload, "scopes", scopes);
    char *token = token_mint (&token_door, a->key, payload, NULL);
    c->token = secret_new (token, strlen (token));
    secret_wipe (token, strlen (token));
    free (token);
}

static int
by_name (const void *a, const void *b)
{
    return strcmp (((const struct credential *)a)->name, ((const struct credential *)b)->name);
}

struct door_auth *
door_auth_new (const char *realm, const struct auth_declaration *declared, size_t count)
{
    struct door_auth *a = x_new0 (struct door_auth);
    a->realm = x_strdup (realm);
    random_bytes (a->key, sizeof a->key);
    a->credentials = x_new_array (struct credential, count + 1);
    a->len = count + 1;
    struct credential *operator_all = &a->credentials[0];
    operator_all->name = x_strdup (AUTH_OPERATOR);
    for (int method = 0; method < METHOD_GET_EXTENDED_AGENT_CARD; method++)
        strv_push (&operator_all->scopes, door_method_name ((enum door_method)method));
    for (size_t i = 0; i < DOOR_PLANE_SCOPE_COUNT; i++)
        strv_push (&operator_all->scopes, door_plane_scopes[i]);
    for (size_t i = 0; i < count; i++) {
        a->credentials[i + 1].name = x_strdup (declared[i].name);
        for (size_t k = 0; k < declared[i].scope_count; k++)
            strv_push (&a->credentials[i + 1].scopes, declared[i].scopes[k]);
    }
    qsort (a->credentials + 1, count, sizeof *a->credentials, by_name);
    for (size_t i = 0; i < a->len; i++)
        mint (a, &a->credentials[i]);
    return a;
}

void
door_auth_free (struct door_auth *a)
{
    if (! a)
        return;
    secret_wipe (a->key, sizeof a->key);
    for (size_t i = 0; i < a->len; i++) {
        free (a->credentials[i].name);
        strv_free (&a->credentials[i].scopes);
        secret_free (a->credentials[i].token);
    }
    free (a->credentials);
    free (a->formation_id);
    free (a->member);
    strv_free (&a->callers);
    free (a->realm);
    free (a);
}

size_t
door_auth_count (const struct door_auth *a)
{
    return a->len;
}

const char *
door_auth_name (const struct door_auth *a, size_t i)
{
    return a->credentials[i].name;
}

const struct secret *
door_auth_token (const struct door_auth *a, size_t i)
{
    return a->credentials[i].token;
}

static const struct credential *
find (const struct door_auth *a, const char *name)
{
    for (size_t i = 0; i < a->len; i++)
        if (strcmp (a->credentials[i].name, name) == 0)
            return &a->credentials[i];
    return NULL;
}

void
door_auth_set_formation (struct door_auth *a, const char *formation_id, const char *member,
                         const unsigned char verify_key[ED25519_KEY_LEN])
{
    a->formation_id = x_strdup (formation_id);
    a->member = x_strdup (member);
    memcpy (a->verify_key, verify_key, sizeof a->verify_key);
}

const char *
auth_member_of (const char *credential)
{
    return credential && str_starts (credential, MEMBER_PREFIX)
               ? credential + strlen (MEMBER_PREFIX)
               : NULL;
}

bool
door_auth_allows (const struct door_auth *a, const char *credential, const char *scope)
{
    if (auth_member_of (credential)) {
        for (size_t i = 0; i < ARRAY_LEN (member_methods); i++)
            if (strcmp (door_method_name (member_methods[i]), scope) == 0)
                return true;
        return false;
    }
    const struct credential *c = find (a, credential);
    return c && strv_contains (&c->scopes, scope);
}

/* The token of "Bearer <token>", as sent; NULL for any other line. */
static const char *
bearer_token (const char *line)
{
    if (strncasecmp (line, "Bearer", 6) != 0 || (line[6] != ' ' && line[6] != '\t'))
        return NULL;
    return line + 6 + strspn (line + 6, " \t");
}

static const char *
verified_credential (const struct door_auth *a, const char *token)
{
    _cleanup_json_ json_t *payload = token_verify (&token_door, a->key, token, NULL);
    const char *name = payload ? json_get_string (payload, "credential") : NULL;
    const struct credential *c = name ? find (a, name) : NULL;
    size_t i;
    json_t *scope;
    json_array_foreach (json_object_get (payload, "scopes"), i,
                        scope) if (! json_is_string (scope) ||
                                   ! auth_scope_is_known (json_string_value (scope))) return NULL;
    return c ? c->name : NULL;
}

static size_t
count_lines (const struct http_header *headers, size_t count, const char **line)
{
    size_t lines = 0;
    for (size_t i = 0; i < count; i++)
        if (strcasecmp (headers[i].name, "Authorization") == 0) {
            *line = headers[i].value;
            lines++;
        }
    return lines;
}

const char *
bearer_of_headers (const struct http_header *headers, size_t count)
{
    const char *line = NULL;
    return count_lines (headers, count, &line) == 1 ? bearer_token (line) : NULL;
}

/* Borrowed for as long as the door lives. */
static const char *
credential_of_member (struct door_auth *a, const char *member)
{
    _cleanup_free_ char *credential = x_asprintf (MEMBER_PREFIX "%s", member);
    for (size_t i = 0; i < a->callers.len; i++)
        if (strcmp (a->callers.items[i], credential) == 0)
            return a->callers.items[i];
    strv_push (&a->callers, credential);
    return a->callers.items[a->callers.len - 1];
}

static enum auth_refusal
check_member (struct door_auth *a, const char *token, const char **credential)
{
    _cleanup_free_ char *from = NULL;
    enum formation_verdict verdict =
        formation_token_verify (a->verify_key, a->formation_id, a->member, token, &from);
    if (verdict == FORMATION_INVALID)
        return AUTH_INVALID_TOKEN;
    bool is_operator = verdict == FORMATION_GENUINE && str_eq (from, FLEET_OPERATOR);
    *credential = is_operator ? AUTH_OPERATOR : credential_of_member (a, from);
    return verdict == FORMATION_GENUINE ? AUTH_GRANTED : AUTH_NOT_PERMITTED;
}

enum auth_refusal
door_auth_check (struct door_auth *a, const struct http_header *headers, size_t count,
                 const char **credential)
{
    const char *line = NULL;
    size_t lines = count_lines (headers, count, &line);
    *credential = NULL;
    if (lines == 0)
        return AUTH_UNAUTHENTICATED;
    const char *token = lines == 1 ? bearer_token (line) : NULL;
    if (token && a->formation_id && str_starts (token, FORMATION_TOKEN_TAG))
        return check_member (a, token, credential);
    *credential = token && *token ? verified_credential (a, token) : NULL;
    return *credential ? AUTH_GRANTED : AUTH_INVALID_TOKEN;
}

static const struct {
    int status;
    const char *error, *message, *challenge_error;
} refusals[] = {
    [AUTH_UNAUTHENTICATED] = { 401, "unauthenticated", "This door needs a bearer token.", NULL },
    [AUTH_INVALID_TOKEN] = { 401, "invalid_token", "The bearer token is not one of this session.",
                             "invalid_token" },
    [AUTH_INSUFFICIENT_SCOPE] = { 403, "insufficient_scope", NULL, "insufficient_scope" },
    [AUTH_NOT_PERMITTED] = { 403, "not_permitted", NULL, "insufficient_scope" },
};

int
auth_refusal_answer (const struct door_auth *a, enum auth_refusal refusal, const char *credential,
                     const char *scope, char **challenge, char **body)
{
    struct buf line = { 0 };
    buf_printf (&line, "Bearer realm=\"%s\"", a->realm);
    if (refusals[refusal].challenge_error)
        buf_printf (&line, ", error=\"%s\"", refusals[refusal].challenge_error);
    if (refusal == AUTH_INSUFFICIENT_SCOPE)
        buf_printf (&line, ", scope=\"%s\"", scope);
    *challenge = buf_steal (&line);
    _cleanup_free_ char *message =
        refusals[refusal].message ? x_strdup (refusals[refusal].message)
        : scope ? x_asprintf ("Credential %s does not hold the scope %s.", credential, scope)
                : x_asprintf ("Member %s may not call this capsule.", auth_member_of (credential));
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "error", refusals[refusal].error);
    json_set_string (o, "message", message);
    *body = json_text (o, JSON_TEXT_SORTED);
    return refusals[refusal].status;
}
