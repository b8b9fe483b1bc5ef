/* SPDX-License-Identifier: Apache-2.0
 *
 * pull-artifact and remove-artifact as the model calls them (docs/spec/artifacts.md 14). The
 * engine is the pull's.
 */
#include "base/alloc.h"
#include "manifest/capsule/capsule_entry.h"
#include "session/state/outcome.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"
#include "session/toolbox/pull.h"
#include "session/toolbox/pull_list.h"

#include <string.h>

static const char pull_parameters[] =
    "{\"properties\":{\"artifact\":{\"description\":\"The full name, <scope>/<name>.\",\"type\":"
    "\"string\"}},\"required\":[\"artifact\"],\"type\":\"object\"}";

static bool
pull_is_offered (const struct session *s)
{
    return s->manifest->inference && pull_is_granted (s);
}

static void
set_refusal (char *refusal, struct call_outcome *out)
{
    outcome_set_error (out, "%s", refusal);
    free (refusal);
}

static void
set_pulled (const struct pulled *p, struct call_outcome *out)
{
    const struct staged_artifact *a = p->artifact;
    _cleanup_json_ json_t *answer = json_object ();
    json_set_string (answer, "artifact", a->full_name);
    json_set_string (answer, "version", a->version);
    json_set_string (answer, "runtime", artifact_role_name (a->role));
    json_set_string (answer, "tool_name", a->tool_name);
    json_set_string (answer, "fetched_from", p->fetched_from);
    if (p->notes.len) {
        json_t *notes = json_array ();
        for (size_t i = 0; i < p->notes.len; i++)
            json_array_append_new (notes, json_string (p->notes.items[i]));
        json_object_set_new (answer, "notes", notes);
    }
    _cleanup_free_ char *text = json_text (answer, JSON_TEXT_SORTED);
    outcome_set_result (out, "pull-artifact", TOOL_PASSED, text, strlen (text));
    if (p->is_new)
        buf_printf (&out->text, "\n%s is listed among your tools from the next turn.",
                    a->tool_name);
}

static void
pull_call (struct session *s, struct running_task *task, const json_t *input,
           struct call_outcome *out)
{
    const char *name = outcome_need_text ("pull-artifact", input, "artifact", out);
    char *refusal = NULL;
    if (! name)
        return;
    if (str_ends (name, "*")) {
        _cleanup_buf_ struct buf list = { 0 };
        if (pull_list (s, name, task->cancel, &list, &refusal))
            outcome_set_result (out, "pull-artifact", TOOL_PASSED, list.data, list.len);
        else
            set_refusal (refusal, out);
        out->is_canceled = cancel_is_raised (task->cancel);
        return;
    }
    const char *at = strrchr (name, '@');
    _cleanup_free_ char *full = at ? x_strndup (name, (size_t)(at - name)) : x_strdup (name);
    _cleanup_pulled_ struct pulled pulled = { 0 };
    if (! pull_artifact (s, full, at ? at + 1 : NULL, task->cancel, &pulled, &refusal)) {
        set_refusal (refusal, out);
        out->is_canceled = cancel_is_raised (task->cancel);
        return;
    }
    set_pulled (&pulled, out);
    if (pulled.is_new)
        pull_record (s, &pulled);
}

static void
remove_call (struct session *s, struct running_task *task, const json_t *input,
             struct call_outcome *out)
{
    (void)task;
    const char *name = outcome_need_text ("remove-artifact", input, "artifact", out);
    char *refusal = NULL;
    bool was_removed = false;
    if (! name)
        return;
    if (! pull_remove (s, name, &was_removed, &refusal)) {
        set_refusal (refusal, out);
        return;
    }
    _cleanup_json_ json_t *answer = json_object ();
    json_set_string (answer, "artifact", name);
    json_object_set_new (answer, "removed", json_boolean (was_removed));
    _cleanup_free_ char *text = json_text (answer, JSON_TEXT_SORTED);
    outcome_set_result (out, "remove-artifact", TOOL_PASSED, text, strlen (text));
    if (was_removed)
        buf_printf (&out->text, "\nIt is no longer listed from the next turn.");
}

const struct provided_tool provided_pull_artifact = {
    .name = "pull-artifact",
    .description =
        "Fetches a tool or skill this capsule may install: <scope>/<name> for the newest that fits, "
        "<scope>/<name>@<version>, or a pattern ending in * to list what there is.",
    .parameters = pull_parameters,
    .missing = "capabilities.install",
    .token = "not-granted: ",
    .exists = pull_is_offered,
    .call = pull_call,
};

const struct provided_tool provided_remove_artifact = {
    .name = "remove-artifact",
    .description = "Takes a tool or skill away again that this capsule pulled.",
    .parameters = pull_parameters,
    .missing = "capabilities.install",
    .token = "not-granted: ",
    .exists = pull_is_offered,
    .call = remove_call,
};
