/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging network, the capsule's own door: who may come in and what each may call (spec/manifest.md
 * 11).
 */
#include "manifest/capsule/door_methods.h"
#include "manifest/capsule/judges_internal.h"
#include "manifest/text/suggest.h"

#include <string.h>

/* Names of an older protocol and what stands in their place. */
static const struct {
    const char *name, *instead;
} retired[] = {
    { "message/send", "SendMessage" },
    { "message/stream", "SendStreamingMessage" },
    { "tasks/get", "GetTask" },
    { "tasks/cancel", "CancelTask" },
    { "agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard, which needs no scope" },
    { "stream/watch", "murmur.WatchSession" },
    { "session/stop", "murmur.StopSession" },
};

static bool
name_is_valid (const char *name)
{
    size_t len = strlen (name);
    return len && len <= 32 && name[0] >= 'a' && name[0] <= 'z' &&
           strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == len;
}

static bool
judge_scope (struct reading *rd, const char *scope, const char *path, struct mur_error **err)
{
    const char *scopes[DOOR_METHOD_COUNT + DOOR_PLANE_SCOPE_COUNT + 1] = { NULL };
    for (size_t i = 0; i < DOOR_METHOD_COUNT; i++)
        scopes[i] = door_methods[i].name;
    for (size_t i = 0; i < DOOR_PLANE_SCOPE_COUNT; i++)
        scopes[DOOR_METHOD_COUNT + i] = door_plane_scopes[i];
    for (size_t i = 0; scopes[i]; i++)
        if (strcmp (scopes[i], scope) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN (retired); i++)
        if (strcmp (retired[i].name, scope) == 0) {
            refuse_value (rd, err, path, "'%s' is a retired name", scope);
            return mur_hint (err, "use %s", retired[i].instead);
        }
    refuse_value (rd, err, path, "'%s' is refused: it must be one of: %s", scope,
                  schema_words (rd->r.arena, scopes));
    return suggestion_among (scope, scopes, err);
}

static bool
judge_credential (struct reading *rd, const struct door_credential *c, struct mur_error **err)
{
    const char *path = path_of (rd, "network.authentication.credentials.%s", c->name);
    if (! name_is_valid (c->name))
        return refuse_value (rd, err, path,
                             "a name of a-z, 0-9, '_' and '-', beginning with a letter and at most "
                             "32 long is required");
    if (strcmp (c->name, "operator") == 0)
        return refuse_value (rd, err, path, "the name operator is the operator's own");
    const char *list = path_of (rd, "%s.scopes", path);
    if (! c->scopes.len)
        return refuse_value (rd, err, list, "at least one scope is required");
    for (size_t i = 0; i < c->scopes.len; i++)
        if (! judge_scope (rd, c->scopes.items[i], path_of (rd, "%s[%zu]", list, i), err))
            return false;
    size_t twice = find_repeat (c->scopes.items, c->scopes.len);
    if (twice < c->scopes.len)
        return refuse_value (rd, err, path_of (rd, "%s[%zu]", list, twice), "'%s' stands twice",
                             c->scopes.items[twice]);
    return true;
}

bool
judge_door (struct reading *rd, struct mur_error **err)
{
    const struct door_authentication *a = rd->m->network ? rd->m->network->authentication : NULL;
    if (! a)
        return true;
    if (! a->scheme || strcmp (a->scheme, "bearer") != 0)
        return refuse_value (rd, err, "network.authentication.scheme",
                             "'%s' is refused: it must be bearer", a->scheme ? a->scheme : "");
    for (size_t i = 0; i < a->credentials.len; i++)
        if (! judge_credential (rd, &a->credentials.items[i], err))
            return false;
    return true;
}

bool
judge_door_and_spawn (struct reading *rd, struct mur_error **err)
{
    const struct cap_spawn *spawn = rd->m->capabilities->spawn;
    if (! rd->m->network || ! rd->m->network->authentication || ! spawn || ! spawn->allow.len)
        return true;
    return refuse_value (
        rd, err, "network.authentication",
        "it excludes capabilities.spawn.allow: a child has no token for this door");
}
