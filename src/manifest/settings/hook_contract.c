/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/hook_contract.h"

#include <string.h>

static const char *const bindings[] = {
    [BIND_ALL] = "",
    [BIND_ON_STAGE] = "on-stage",
    [BIND_ON_SESSION_START] = "on-session-start",
    [BIND_ON_TASK_START] = "on-task-start",
    [BIND_ON_INFERENCE] = "on-inference",
    [BIND_ON_TOOL_CALL] = "on-tool-call",
    [BIND_ON_SHELL] = "on-shell",
    [BIND_ON_COMPACTION] = "on-compaction",
    [BIND_ON_TASK_END] = "on-task-end",
    [BIND_ON_SESSION_END] = "on-session-end",
    NULL,
};

static const char *const modes[] = { "blocking", "async", NULL };

static const char *const commits[] = {
    [COMMIT_NONE] = "none",
    [COMMIT_WRITE_MANIFESTS] = "write-manifests",
    [COMMIT_REPLACE_CONTEXT] = "replace-context",
    [COMMIT_REOPEN_TASK] = "reopen-task",
    [COMMIT_SEED_CONTEXT] = "seed-context",
    [COMMIT_DENY] = "deny",
    NULL,
};

/* The one policy beside none a binding honours. */
static const enum hook_commit honoured[] = {
    [BIND_ON_STAGE] = COMMIT_WRITE_MANIFESTS,
    [BIND_ON_TASK_START] = COMMIT_SEED_CONTEXT,
    [BIND_ON_COMPACTION] = COMMIT_REPLACE_CONTEXT,
    [BIND_ON_TASK_END] = COMMIT_REOPEN_TASK,
    [BIND_ON_TOOL_CALL] = COMMIT_DENY,
    [BIND_ON_SHELL] = COMMIT_DENY,
    [BIND_ON_SESSION_END] = COMMIT_NONE,
};

struct subject {
    const struct artifact_manifest *m;
    const char *bare, *version;
    struct mur_error **err;
};

/* Index of the word of a key, 0 when absent or no text. -1 with an error for an unknown one. */
static int
word_of (const struct subject *s, const struct yaml_node *n, const char *key,
         const char *const *words, int first)
{
    if (! n || n->kind != YAML_STRING)
        return 0;
    for (int i = first; words[i]; i++)
        if (strcmp (words[i], n->text) == 0)
            return i;
    mur_fail (s->err, E_IO_003, "hook %s@%s: %s: '%s' is refused: it must be one of: %s", s->bare,
              s->version, key, n->text, schema_words (s->m->arena, words + first));
    return -1;
}

static bool
judge (const struct subject *s, const struct hook_contract *c)
{
    const char *binding =
        c->binding == BIND_ALL ? "every event (no binding)" : bindings[c->binding];
    if (c->mode == HOOK_ASYNC && c->commit != COMMIT_NONE)
        return mur_fail (
            s->err, E_IO_003,
            "hook %s@%s: execution_mode async on %s cannot commit %s: only none is honoured",
            s->bare, s->version, binding, commits[c->commit]);
    if (c->mode == HOOK_ASYNC && c->binding == BIND_ON_STAGE)
        return mur_fail (s->err, E_IO_003, "hook %s@%s: on-stage runs only blocking, not async",
                         s->bare, s->version);
    if (c->commit == COMMIT_NONE)
        return true;
    if (c->binding == BIND_ALL)
        return c->commit != COMMIT_DENY ||
               mur_fail (s->err, E_IO_003,
                         "hook %s@%s: commit_policy deny needs binding on-tool-call or on-shell; "
                         "without a binding it is not honoured",
                         s->bare, s->version);
    return honoured[c->binding] == c->commit ||
           mur_fail (s->err, E_IO_003,
                     "hook %s@%s: binding %s does not honour commit_policy %s; it honours %s",
                     s->bare, s->version, binding, commits[c->commit],
                     commits[honoured[c->binding]]);
}

bool
artifact_manifest_hook (const struct artifact_manifest *m, const char *bare, const char *version,
                        struct hook_contract *out, struct mur_error **err)
{
    const struct subject s = { m, bare, version, err };
    int binding = word_of (&s, m->binding, "binding", bindings, 1);
    int mode = binding < 0 ? -1 : word_of (&s, m->execution_mode, "execution_mode", modes, 0);
    int commit = mode < 0 ? -1 : word_of (&s, m->commit_policy, "commit_policy", commits, 0);
    if (commit < 0)
        return false;
    *out = (struct hook_contract){ (enum hook_binding)binding, (enum hook_mode)mode,
                                   (enum hook_commit)commit };
    return judge (&s, out);
}
