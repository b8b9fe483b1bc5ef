/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging artifacts[]: name, role, source, version, what an entry may carry by role, and its
 * gateway (spec/manifest.md 5).
 */
#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/text.h"
#include "manifest/capsule/capsule_entry.h"
#include "manifest/capsule/endpoint.h"
#include "manifest/capsule/judge_mcp.h"
#include "manifest/capsule/judges_internal.h"
#include "manifest/text/suggest.h"
#include "manifest/text/yaml_tree.h"
#include "net/auth_header.h"

#include <string.h>

/* --- one entry, in the order of 2.1 (5) --- */

struct entry {
    struct reading *rd;
    struct artifact_entry *e;
    size_t index;
};

static char *
key_path (const struct entry *en, const char *key)
{
    return path_of (en->rd, "artifacts[%zu].%s", en->index, key);
}

static bool
judge_name (struct entry *en, struct mur_error **err)
{
    struct artifact_entry *e = en->e;
    const char *path = key_path (en, "name");
    if (text_is_blank (e->name))
        return refuse_value (en->rd, err, path, "the required field 'name' is missing or blank");
    if (! e->source) {
        struct mur_error *why = NULL;
        if (! name_check_full (e->name, E_MAN_003, NULL, &why)) {
            refuse_value (en->rd, err, path, "%s", why->message);
            if (why->hint)
                mur_hint (err, "%s", why->hint);
            mur_error_free (why);
            return false;
        }
    } else {
        const char *slash = strchr (e->name, '/');
        if (slash) {
            refuse_value (en->rd, err, path,
                          "\"%s\" has a scope, but an entry with a source has none", e->name);
            return mur_hint (err, "write name: %s", strrchr (e->name, '/') + 1);
        }
        _cleanup_free_ char *why = name_part_problem (e->name, strlen (e->name));
        if (why)
            return refuse_value (en->rd, err, path, "invalid artifact name \"%s\": it %s", e->name,
                                 why);
    }
    e->tool_name = name_bare (e->name);
    return true;
}

static bool
judge_runtime (struct entry *en, struct mur_error **err)
{
    struct artifact_entry *e = en->e;
    e->role = ROLE_TOOL;
    if (! e->written_runtime)
        return true;
    const char *roles[ARTIFACT_ROLE_COUNT + 1] = { NULL };
    for (size_t i = 0; i < ARTIFACT_ROLE_COUNT; i++) {
        roles[i] = artifact_role_name ((enum artifact_role)i);
        if (strcmp (roles[i], e->written_runtime) == 0) {
            e->role = (enum artifact_role)i;
            return true;
        }
    }
    refuse_value (en->rd, err, key_path (en, "runtime"),
                  "'%s' is refused: it must be one of: tool, driver, hook, skill, mcp",
                  e->written_runtime);
    suggestion_among (e->written_runtime, roles, err);
    if (strcmp (e->written_runtime, "wasm") == 0 || strcmp (e->written_runtime, "native") == 0)
        mur_hint (
            err,
            "how an artifact is implemented is said in its own manifest; here stands its role");
    return false;
}

static bool
judge_source (struct entry *en, struct mur_error **err)
{
    struct artifact_entry *e = en->e;
    bool is_skill = e->role == ROLE_SKILL;
    if (! e->local_source.is_set)
        e->local_source.value = is_skill;
    e->may_be_prompt = e->prompt_payload.is_set ? e->prompt_payload.value : is_skill;
    if (! e->source || e->local_source.value)
        return true;
    refuse_value (en->rd, err, key_path (en, "source"),
                  "a %s comes from the stores, not from a path", artifact_role_name (e->role));
    return mur_hint (err, "set local_source: true if the path holds a skill");
}

static bool
judge_version (struct entry *en, struct mur_error **err)
{
    struct artifact_entry *e = en->e;
    if (e->source) {
        e->version_is_ignored = e->version != NULL;
        e->version = "local";
        return true;
    }
    if (! text_is_blank (e->version))
        return true;
    return refuse_value (en->rd, err, key_path (en, "version"),
                         "the required field 'version' is missing or blank");
}

static bool
refuse_on_skill (const struct entry *en, const char *key, struct mur_error **err)
{
    return refuse_value (en->rd, err, key_path (en, key), "a skill takes no %s: it is only text",
                         key);
}

/* What a role may not be granted, whatever the value of the block. */
static bool
judge_role_grants (struct entry *en, struct mur_error **err)
{
    const struct capabilities *c = en->e->capabilities;
    bool is_hook = en->e->role == ROLE_HOOK;
    const char *role = artifact_role_name (en->e->role);
    if (c->filesystem && c->filesystem->records.value) {
        const char *path = key_path (en, "capabilities.filesystem.records");
        if (! is_hook)
            return refuse_value (en->rd, err, path, "only a hook can be granted this, not a %s",
                                 role);
        if (c->filesystem->scope)
            return refuse_value (en->rd, err, path,
                                 "it excludes filesystem.scope: both decide what '.' is");
    }
    if (c->task_io && ! is_hook)
        return refuse_value (en->rd, err, key_path (en, "capabilities.task_io"),
                             "only a hook can be granted this, not a %s", role);
    if (c->conversation && ! is_hook)
        return refuse_value (en->rd, err, key_path (en, "capabilities.conversation"),
                             "only a hook can be granted this, not a %s", role);
    if (c->install)
        return refuse_value (en->rd, err, key_path (en, "capabilities.install"),
                             "only the capsule as a whole can be granted this");
    return true;
}

static bool
judge_grants (struct entry *en, struct mur_error **err)
{
    if (! en->e->capabilities)
        return true;
    if (en->e->role == ROLE_SKILL)
        return refuse_on_skill (en, "capabilities", err);
    return judge_role_grants (en, err) &&
           judge_capabilities (en->rd, en->e->capabilities, key_path (en, "capabilities"), err);
}

static bool
judge_overflow (struct entry *en, struct mur_error **err)
{
    struct artifact_entry *e = en->e;
    if (! e->written_on_overflow)
        return true;
    const char *path = key_path (en, "on_overflow");
    bool is_block = strcmp (e->written_on_overflow, "block") == 0;
    if (! is_block && strcmp (e->written_on_overflow, "drop") != 0)
        return refuse_value (en->rd, err, path, "'%s' is refused: it must be one of: drop, block",
                             e->written_on_overflow);
    if (e->role != ROLE_HOOK)
        return refuse_value (en->rd, err, path, "only a hook has a queue, not a %s",
                             artifact_role_name (e->role));
    e->on_overflow = is_block ? OVERFLOW_BLOCK : OVERFLOW_DROP;
    return true;
}

/* --- gateway --- */

/* Decides how the key comes, from what is written alone: never from the address. */
static bool
judge_credential (struct reading *rd, struct artifact_entry *e, size_t index,
                  struct mur_error **err)
{
    struct gateway_block *g = e->gateway;
    if (g->written_keyless.value && g->written_api_key)
        return refuse_value (rd, err, path_of (rd, "artifacts[%zu].gateway.api_key", index),
                             "keyless: true excludes an api_key, an empty one too");
    const char *written = yaml_text (g->written_api_key);
    char *key = written ? text_trim (rd->r.arena, written) : NULL;
    g->is_keyless = g->written_keyless.value;
    if (! g->is_keyless && (! key || ! *key)) {
        schema_fail (&rd->r, err, E_CAP_018, path_of (rd, "artifacts[%zu].gateway", index),
                     "%s sends to %s without a credential decision", e->name,
                     endpoint_masked (rd->r.arena, g->endpoint.text));
        return mur_hint (err,
                         "set api_key: ${NAME}, or keyless: true if the provider wants no key");
    }
    if (! key)
        return true;
    g->key_reference = reference_name (rd->r.arena, key);
    if (g->key_reference)
        return true;
    g->has_literal = true;
    if (rd->how == MANIFEST_WITH_SECRETS)
        g->key_literal = secret_new (key, strlen (key));
    secret_wipe (key, strlen (key));
    return true;
}

/* The gateway of one entry: endpoint, then the credential decision. */
static bool
judge_gateway (struct reading *rd, struct artifact_entry *e, size_t index, struct mur_error **err)
{
    struct gateway_block *g = e->gateway;
    const char *path = path_of (rd, "artifacts[%zu].gateway.endpoint", index);
    const char *why;
    if (text_is_blank (g->written_endpoint) && e->role == ROLE_MCP && e->mcp && e->mcp->url)
        g->written_endpoint = judge_mcp_endpoint (rd, e->mcp);
    if (text_is_blank (g->written_endpoint))
        return refuse_value (rd, err, path,
                             "%s needs the provider's address, such as https://api.example.com",
                             e->name);
    if (! endpoint_parse (rd->r.arena, g->written_endpoint, &g->endpoint, &why))
        return refuse_value (rd, err, path, "'%s' of %s is refused: %s",
                             endpoint_masked (rd->r.arena, g->endpoint.text), e->name, why);
    if (g->header && (why = auth_header_fault (g->header)))
        return refuse_value (rd, err, path_of (rd, "artifacts[%zu].gateway.header", index),
                             "'%s' is refused: %s", g->header, why);
    return judge_credential (rd, e, index, err);
}

static bool
judge_config_and_gateway (struct entry *en, struct mur_error **err)
{
    if (en->e->role == ROLE_SKILL && en->e->config)
        return refuse_on_skill (en, "config", err);
    if (! en->e->gateway)
        return true;
    if (en->e->role == ROLE_SKILL)
        return refuse_on_skill (en, "gateway", err);
    return judge_gateway (en->rd, en->e, en->index, err);
}

static bool
judge_server (struct entry *en, struct mur_error **err)
{
    return judge_mcp (en->rd, en->e, key_path (en, "mcp"), err);
}

bool
judge_artifacts (struct reading *rd, struct mur_error **err)
{
    bool (*const judges[]) (struct entry *, struct mur_error **) = {
        judge_name,
        judge_runtime,
        judge_source,
        judge_version,
        judge_grants,
        judge_overflow,
        judge_config_and_gateway,
        judge_server,
    };
    const struct yaml_node *list = yaml_get (rd->r.root, "artifacts");
    for (size_t i = 0; i < rd->m->artifacts.len; i++) {
        struct entry en = { rd, &rd->m->artifacts.items[i], i };
        en.e->line = list->items[i]->line;
        en.e->column = list->items[i]->column;
        for (size_t j = 0; j < ARRAY_LEN (judges); j++)
            if (! judges[j](&en, err))
                return false;
    }
    return true;
}
