/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/environment.h"

#include "base/alloc.h"
#include "base/json.h"

#include <stdlib.h>

static const char *const runtime_owned[] = {
    "PATH",
    "HOME",
    "LOGNAME",
    "USER",
    "MURMUR_CA_FILE",
    "MURMUR_SECRETS_DIR",
    "MURMUR_RECORDS_STORE",
    "MURMUR_ROOST_URL",
    "MURMUR_HOST_WARNINGS_REPORTED",
    "MURMUR_SPAWNER",
    "MURMUR_SPAWNER_LIFELINE",
    "MURMUR_FORMATION_ID",
    "MURMUR_FORMATION_PEERS",
    "MURMUR_FORMATION_CHANNEL",
    "MURMUR_FORMATION_LIFELINE",
};

static const char *const inherited[] = { "PATH",
                                         "HOME",
                                         "LOGNAME",
                                         "USER",
                                         "MURMUR_CA_FILE",
                                         "MURMUR_SECRETS_DIR",
                                         "MURMUR_RECORDS_STORE" };

static bool
has (const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq (names[i], name))
            return true;
    return false;
}

static void
pass_on (const char *name, struct strv *out)
{
    const char *value = getenv (name);
    if (value)
        strv_printf (out, "%s=%s", name, value);
}

void
environment_build (const struct child_environment *e, struct strv *out)
{
    for (size_t i = 0; e->allow && e->allow[i]; i++)
        if (! has (runtime_owned, ARRAY_LEN (runtime_owned), e->allow[i]) &&
            ! has (e->allow, i, e->allow[i]))
            pass_on (e->allow[i], out);
    for (size_t i = 0; i < ARRAY_LEN (inherited); i++)
        pass_on (inherited[i], out);
    strv_printf (out, "MURMUR_ROOST_URL=%s", e->roost_url);
    strv_push (out, "MURMUR_HOST_WARNINGS_REPORTED=1");
    strv_printf (out, "MURMUR_SPAWNER_LIFELINE=%d", e->lifeline_fd);
    if (e->spawner)
        strv_printf (out, "MURMUR_SPAWNER=%s", e->spawner);
    if (e->formation_id)
        strv_printf (out, "MURMUR_FORMATION_ID=%s", e->formation_id);
}

void
environment_clamp (const char *const *child, size_t child_count, const char *const *parent,
                   size_t parent_count, struct strv *out)
{
    for (size_t i = 0; i < child_count; i++)
        if (has (parent, parent_count, child[i]) && ! strv_contains (out, child[i]))
            strv_push (out, child[i]);
}

char *
spawner_text (const char *session_id, const char *context_id, const char *delegation_id,
              const char *url, const json_t *approvals)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "session_id", session_id);
    json_set_string (o, "context_id", context_id);
    json_set_string (o, "delegation_id", delegation_id);
    if (url)
        json_set_string (o, "url", url);
    if (approvals)
        json_object_set (o, "approvals", (json_t *)(uintptr_t)approvals);
    return json_text (o, JSON_TEXT_ORDERED);
}
