/* SPDX-License-Identifier: Apache-2.0
 *
 * Hook: appends one line for each event it sees to events.log in its folder, and changes nothing.
 *
 * Its config may say `deny: {tool: NAME, reason: TEXT}`: a call of that tool that has not run yet
 * is denied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

#include "guest.h"

typedef exports_murmur_hook_lifecycle_hook_output_t output_t;

static bool
note (output_t *ret, const char *event, const char *detail, size_t len)
{
    FILE *file = fopen ("events.log", "a");
    if (file != NULL) {
        fprintf (file, "%s %.*s\n", event, (int)len, detail);
        fclose (file);
    }
    *ret = (output_t){ .tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_NONE };
    return true;
}

static bool
note_string (output_t *ret, const char *event, const guest_string_t *detail)
{
    return note (ret, event, (const char *)detail->ptr, detail->len);
}

bool
exports_murmur_hook_lifecycle_on_stage (exports_murmur_hook_lifecycle_stage_event_t *event,
                                        output_t *ret, guest_string_t *err)
{
    (void)event, (void)err;
    return note (ret, "on-stage", "", 0);
}

bool
exports_murmur_hook_lifecycle_on_session_start (
    exports_murmur_hook_lifecycle_session_context_t *ctx, output_t *ret, guest_string_t *err)
{
    (void)err;
    return note_string (ret, "on-session-start", &ctx->session_id);
}

bool
exports_murmur_hook_lifecycle_on_task_start (
    exports_murmur_hook_lifecycle_task_start_event_t *event, output_t *ret, guest_string_t *err)
{
    (void)err;
    return note_string (ret, "on-task-start", &event->task_id);
}

bool
exports_murmur_hook_lifecycle_on_inference (exports_murmur_hook_lifecycle_inference_event_t *event,
                                            output_t *ret, guest_string_t *err)
{
    (void)err;
    return note_string (ret, "on-inference", &event->decision);
}

/* True, with *ret set, when the config denies this tool. */
static bool
denies (const guest_string_t *tool, output_t *ret)
{
    struct mur_json *config = mur_config ();
    mur_node deny = mur_json_get (config, 0, "deny");
    char *denied = mur_json_text (config, mur_json_get (config, deny, "tool"));
    char *reason = mur_json_text (config, mur_json_get (config, deny, "reason"));
    bool is_denied = denied != NULL && strlen (denied) == tool->len &&
                     memcmp (denied, tool->ptr, tool->len) == 0;
    if (is_denied) {
        const char *text = reason != NULL ? reason : "";
        ret->tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_DENY;
        guest_string_dup (&ret->val.deny, text);
    }
    free (denied);
    free (reason);
    mur_json_free (config);
    return is_denied;
}

bool
exports_murmur_hook_lifecycle_on_tool_call (exports_murmur_hook_lifecycle_tool_event_t *event,
                                            output_t *ret, guest_string_t *err)
{
    (void)err;
    const char *name = event->outcome.is_some ? "on-tool-call" : "before-tool-call";
    note_string (ret, name, &event->tool_name);
    if (! event->outcome.is_some)
        denies (&event->tool_name, ret);
    return true;
}

bool
exports_murmur_hook_lifecycle_on_shell (exports_murmur_hook_lifecycle_shell_event_t *event,
                                        output_t *ret, guest_string_t *err)
{
    (void)err;
    return note_string (ret, event->outcome.is_some ? "on-shell" : "before-shell", &event->command);
}

bool
exports_murmur_hook_lifecycle_on_compaction (
    exports_murmur_hook_lifecycle_compaction_event_t *event, output_t *ret, guest_string_t *err)
{
    (void)err;
    char count[24];
    int len = snprintf (count, sizeof count, "%zu", event->messages.len);
    return note (ret, "on-compaction", count, (size_t)len);
}

bool
exports_murmur_hook_lifecycle_on_task_end (exports_murmur_hook_lifecycle_task_end_event_t *event,
                                           output_t *ret, guest_string_t *err)
{
    (void)err;
    return note_string (ret, "on-task-end", &event->exit_status);
}

bool
exports_murmur_hook_lifecycle_on_session_end (
    exports_murmur_hook_lifecycle_session_end_event_t *event, output_t *ret, guest_string_t *err)
{
    (void)err;
    return note_string (ret, "on-session-end", &event->exit_status);
}
